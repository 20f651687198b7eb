"""bench/run: races, profiles, and the table of results."""
import collections
import fnmatch
import os
import statistics
import sys

from octbench import contest, forms, layers, models, networks, tools
from octbench.places import BENCH
from octbench.race import fastest_ratio, race, ratios
from octbench.results import Results, machine, version

FIELDS = ("model", "threads", "runner", "ratio", "ratio_low", "ratio_high", "fastest_ratio", "median_ms", "fastest_ms", "runs", "rounds", "clock",
          "load", "version")
RANK = list(contest.RUNNERS)
RESULTS = Results(BENCH / "results.csv", FIELDS, ("threads", "model", "runner"), lambda r: (
    int(r["threads"]), networks.ALL.index(r["model"]), RANK.index(r["runner"].partition("@")[0]), r["runner"]))
SETTLE_SECONDS = 0.1


def cell(row):
    """Ratio of the fastest runs, where the base is of the same run, and of the medians with its range."""
    fastest = f"{float(row['fastest_ratio']):.2f}, " if row["fastest_ratio"] else ""
    return f"{fastest}{float(row['ratio']):.2f} ({float(row['ratio_low']):.2f}-{float(row['ratio_high']):.2f})"


def table(rows):
    """Prints Markdown: a table for each machine and number of threads, a column for each network; ratios of the fastest runs, then of the
    medians with their range."""
    groups = collections.defaultdict(dict)
    for row in rows:
        groups[row["cpu"], row["class"], int(row["threads"])][row["runner"], row["model"]] = row
    for (cpu, kind, threads), cells in groups.items():
        columns = [m for m in networks.ALL if any(m == model for _, model in cells)]
        days = sorted({r["date"] for r in cells.values()})
        loads = [float(r["load"]) for r in cells.values()]
        print(f"\n{cpu} ({kind}); {threads} thread{'s' * (threads > 1)}; {' to '.join(dict.fromkeys((days[0], days[-1])))}; "
              f"load {min(loads):.1f} to {max(loads):.1f}; {' and '.join(sorted({r['clock'] for r in cells.values()}))} time\n")
        print("| runner | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
        for runner in dict.fromkeys(r for r, _ in cells):
            line = [cells.get((runner, m)) for m in columns]
            print(f"| {runner} | {' | '.join(cell(c) if c else '' for c in line)} |")


# ---- measuring

def cpus_for(args, threads):
    """The list for taskset, or None when there are too few processors."""
    have = args.cpus.split(",") if args.cpus else [str(c) for c in sorted(os.sched_getaffinity(0))]
    return ",".join(have[:threads]) if len(have) >= threads else None


def isas(args):
    return [i for i in args.isa.split(",") if i]


def chosen(args, model, have):
    for name in contest.names(model, args.runners.split(","), isas(args)):
        peer = contest.peer_of(name)
        skipped = any(fnmatch.fnmatch(name, p) for p in args.skip.split(","))
        if name == contest.BASE or (not skipped and (peer is None or peer in have)):
            yield name


def contenders(args, model, threads, cpus, have):
    """{name: Runner} of those that start and survive a first turn; says which do not."""
    for name in chosen(args, model, have):            # forms are made before anything runs beside them
        try:
            forms.form(contest.RUNNERS[name.partition("@")[0]][1], model)
        except forms.Failed as why:
            print(f"{model} {name}: no form: {why}", file=sys.stderr)
    runners = {}
    for name in chosen(args, model, have):
        if not forms.path_of(contest.RUNNERS[name.partition("@")[0]][1], model).exists():
            continue
        runner = contest.start(name, model, threads, cpus, args.clock)
        try:
            runner.turn(SETTLE_SECONDS)
            runners[name] = runner
        except RuntimeError as why:
            print(f"{model} {name}: {why}", file=sys.stderr)
            if name == contest.BASE:
                sys.exit(1)
    return runners


def measure(args, model, threads, have):
    """Rows of results of one network."""
    cpus = cpus_for(args, threads)
    if not cpus:
        print(f"{threads} threads: not enough processors", file=sys.stderr)
        return []
    runners = contenders(args, model, threads, cpus, have)
    turns = race(runners, args.rounds, args.seconds)
    load = os.getloadavg()[0]
    profiles = {name: profiled(r, BRIEF) for name, r in runners.items() if contest.peer_of(name) is None}
    for runner in runners.values():
        runner.close()
    rows = []
    print(f"\n{model}, {threads} thread{'s' * (threads > 1)}, load {load:.1f}   {'median ms':>21} {'fastest':>9}   ratio (range over rounds), of the fastest")
    for name in turns:
        ratio, low, high = ratios(turns[name], turns[contest.BASE])
        fastest = fastest_ratio(turns[name], turns[contest.BASE])
        runs = [t for turn in turns[name] for t in turn]
        print(f"  {name:32s} {statistics.median(runs):16.2f} {min(runs):9.2f}   {ratio:.3f} ({low:.3f}-{high:.3f})  {fastest:.3f}", flush=True)
        rows.append({"model": model, "threads": threads, "runner": name, "ratio": f"{ratio:.4f}", "ratio_low": f"{low:.4f}",
                     "ratio_high": f"{high:.4f}", "fastest_ratio": f"{fastest:.4f}", "median_ms": f"{statistics.median(runs):.4g}", "fastest_ms": f"{min(runs):.4g}",
                     "runs": len(runs), "rounds": args.rounds, "clock": args.clock, "load": f"{load:.1f}",
                     "version": version(contest.peer_of(name)), **machine()})
    for name, nodes in profiles.items():
        show_classes(name, nodes, networks.model_file(model), threads)
    return rows


# ---- profiles

PROFILES, BRIEF = 25, 5


def profile(args, model, name, threads):
    runner = contest.start(name, model, threads, cpus_for(args, threads))
    nodes = show_profile(f"{model} {name}, {threads} thread{'s' * (threads > 1)}", runner, args.nodes)
    show_classes(name, nodes, networks.model_file(model), threads)
    runner.close()


def show_classes(title, nodes, model, threads):
    """Rates of the classes of layers, and what share of all threads' peak they are. Names of nodes are those of the float model."""
    print(f"  {title}, by class of layers")
    peaks = {kind: rate * threads for kind, rate in tools.peaks(title.partition("@")[2]).items() if kind in layers.PEAK.values()}
    layers.show(layers.summed(nodes, layers.of_model(model), peaks))


def profiled(runner, times):
    return layers.least([runner.profile() for _ in range(times)])


def show_profile(title, runner, most):
    """Time by operator and of the slowest nodes; the least of several profiles, node by node. Returns those."""
    runner.turn(SETTLE_SECONDS)
    nodes = profiled(runner, PROFILES)
    total = sum(n[3] for n in nodes)
    print(f"\n{title}: {total:.4g} ms")
    kinds = collections.defaultdict(list)
    for node in nodes:
        kinds[node[1], node[2]].append(node)

    def line(text, of):
        ms, macs, size = (sum(n[i] for n in of) for i in (3, 4, 5))
        print(f"  {text:44s} {ms:9.3f} ms {ms / total:6.1%} {macs / ms / 1e6:8.1f} GMAC/s {size / ms / 1e6:7.1f} GB/s")

    for (op, scheme), of in sorted(kinds.items(), key=lambda k: -sum(n[3] for n in k[1])):
        if sum(n[3] for n in of) > 0:
            line(f"{op} {scheme} x{len(of)}", of)
    for node in sorted(nodes, key=lambda n: -n[3])[:most]:
        line(f"    {node[0][:30]} {node[1]}", [node])
    return nodes


def main(args, have):
    if args.table:
        return table(RESULTS.read())
    tools.build()
    rows, wanted = [], networks.chosen(args.models)
    for model in wanted:
        models.make(model)
    for threads in map(int, args.threads.split(",")):
        for model in wanted:
            if args.profile:
                for name in contest.names(model, args.profile.split(","), isas(args)):
                    if contest.peer_of(name) is None:
                        profile(args, model, name, threads)
                continue
            rows += measure(args, model, threads, have)
            if not args.no_keep:
                RESULTS.keep(rows)
    if rows:
        table(rows)
    return 0

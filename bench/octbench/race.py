"""Programs timed in turns. Each is a process of its own, pinned, that answers a number of seconds with a list of times."""
import contextlib
import json
import os
import statistics
import subprocess
import tempfile


class Runner:
    """command: speaks the protocol of bench/runner.c. Started at once; set-up goes on while others are started."""

    def __init__(self, command, cpus, env=(), cwd=None):
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(["taskset", "-c", cpus, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, text=True, cwd=cwd, env=os.environ | dict(env))

    def _ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.said.seek(0)
            said = self.said.read().strip().splitlines() or [f"ended without an answer, status {self.process.wait()}"]
            raise RuntimeError(said[-1][:200])
        return answer

    def turn(self, seconds):
        """Milliseconds of each run."""
        return json.loads(self._ask(str(seconds)))

    def profile(self):
        """[(name, operator, scheme, ms, MAC, bytes)]; bench/runner.c only."""
        rows, line = [], self._ask("profile")
        while line.strip():
            name, op, scheme, *numbers = line.rstrip("\n").split("\t")
            rows.append((name, op, scheme, *map(float, numbers)))
            line = self.process.stdout.readline()
        return rows

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.said.close()


def race(runners, rounds, seconds):
    """{name: [times of each round]} of {name: Runner}: in each round each has a turn of about `seconds`, in an order that is
    rotated from round to round."""
    names, turns = list(runners), {name: [] for name in runners}
    for r in range(rounds):
        first = r % len(names)
        for name in names[first:] + names[:first]:
            turns[name].append(runners[name].turn(seconds))
    return turns


def ratios(turns, base):
    """(median, lowest, highest) over the rounds of (median of the turn / median of the base's turn)."""
    each = [statistics.median(t) / statistics.median(b) for t, b in zip(turns, base)]
    return statistics.median(each), min(each), max(each)


def fastest_ratio(turns, base):
    """Fastest run / the base's fastest: what others on the machine disturb least."""
    return min(map(min, turns)) / min(map(min, base))


def quotients(least, wanted):
    """{title: quotient} of {runner: time} for each wanted (title, above, below) of which both were timed."""
    return {title: least[above] / least[below] for title, above, below in wanted if above in least and below in least}


def means(each):
    """{title: geometric mean} of several {title: quotient}, over those that have it."""
    titles = dict.fromkeys(title for found in each for title in found)
    return {title: statistics.geometric_mean([found[title] for found in each if title in found]) for title in titles}

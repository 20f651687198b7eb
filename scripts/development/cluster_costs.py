#!/usr/bin/env python3
"""Measures what start, reading, pictures and merge cost a job in parts on this machine, and writes what follows for ImageNet into docs/cluster.md.

    cluster_costs.py [--model FILE] [--build FOLDER] [--write]

The samples are made: JPEG pictures of the size and length that ImageNet's have on average, in tar files. Costs are processor time, the least of several runs, as other work
on the machine slows some; those of a picture and of a merge are slopes between runs of few and many. Without --write the table is printed. Needs numpy and pillow: runs itself with OCT_PYTHON when that is set.
"""
import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import cost, packages

packages.need("numpy", "PIL")
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/cluster.md"
BEGIN, END = "<!-- costs: written by scripts/development/cluster_costs.py --write -->", "<!-- end of costs -->"
WIDE, HIGH, BYTES = 500, 375, 110_000  # ImageNet's training pictures on average
IMAGENET, CORES, OF_PART = 1_281_167, 16, 4  # pictures; processors of a machine, and of a part
FEW, MANY, PASSED, PARTS, TRIED = 32, 160, 50_000, 32, 640
STEPS = "imagenet"


def picture(rng):
    """Smooth colours with as much noise as makes a JPEG of about BYTES."""
    rough = rng.integers(0, 256, (6, 8, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(rough).resize((WIDE, HIGH), Image.Resampling.BICUBIC), np.float32)
    noise = rng.standard_normal((HIGH, WIDE, 3)).astype(np.float32)
    low, high = 1.0, 64.0
    for _ in range(7):
        middle = (low + high) / 2
        kept = io.BytesIO()
        Image.fromarray(np.clip(smooth + middle * noise, 0, 255).astype(np.uint8)).save(kept, "JPEG", quality=90)
        low, high = (low, middle) if kept.tell() > BYTES else (middle, high)
    return kept.getvalue()


def pack(path, pictures, count):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for k in range(count):
            for suffix, data in (("jpg", pictures[k % len(pictures)]), ("cls", str(k % 1000).encode())):
                info = tarfile.TarInfo(f"{k:08d}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def pack_holes(path, first, count):
    """One picture, and behind it members of which the file has the headers alone."""
    with open(path, "wb") as f:
        for k in range(count):
            size = len(first) if k == 0 else BYTES
            info = tarfile.TarInfo(f"{k:08d}.jpg")
            info.size = size
            f.write(info.tobuf(tarfile.USTAR_FORMAT))
            if k == 0:
                f.write(first)
            f.seek(-(-size // 512) * 512 - (size if k == 0 else 0), 1)
        f.write(bytes(1024))


def fill_folder(folder, first, count):
    """The same as a folder of pictures: a real one and empty ones, a hundred in a folder of theirs."""
    for k in range(count):
        place = folder / f"{k // 100:04d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{k:08d}.jpg").write_bytes(first if k == 0 else b"")


class Bench:
    def __init__(self, folder, build, model):
        self.folder, self.build, self.model = folder, build, model

    def command(self, tool, *words):
        return [self.build / "tools" / tool / tool, *map(str, words), "-q"]

    def run(self, tool, *words):
        """Processor time of a run, in seconds."""
        with subprocess.Popen(self.command(tool, *words), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            said = child.stderr.read()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{tool} {words}: exit {child.returncode}: {said}")
        return used.ru_utime + used.ru_stime

    def memory(self, *command):
        """The most memory that a run takes, in MB."""
        return cost.measured(self.command(*command), cwd=self.folder)[1]

    def best(self, times, *command):
        """Processor time of the cheapest run."""
        return min(self.run(*command) for _ in range(times))

    def part(self, data, *more, out="x.calib"):
        return ("qcalib", self.model, "--data", data, "--preprocess", STEPS, "--threads", 1, *more, "-o", out)

    def all_at_once(self, commands):
        """Processor time of all."""
        before = os.times()
        programs = [subprocess.Popen(self.command(*c), cwd=self.folder, stderr=subprocess.DEVNULL) for c in commands]
        if any([p.wait() for p in programs]):
            raise RuntimeError("a part failed")
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    def picture(self):
        """Processor time of a picture more, while every processor has a part."""
        cores = os.cpu_count()
        few, many = (min(self.all_at_once([self.part(data, out=f"{k}.calib") for k in range(cores)]) for _ in range(4)) for data in ("few.tar", "many.tar"))
        return (many - few) / (MANY - FEW) / cores

    def merge(self):
        """(seconds of a merge, of each part of it)"""
        names = [f"p{k}.calib" for k in range(PARTS)]
        for k, name in enumerate(names):
            self.run(*self.part("few.tar", "--shard", f"{k}/{PARTS}", out=name))
        few = self.best(5, "qcalib", "merge", *names[: PARTS // 4], "--partial", "-o", "m.calib")
        many = self.best(5, "qcalib", "merge", *names, "-o", "m.calib")
        each = (many - few) / (PARTS - PARTS // 4)
        return max(0.0, many - each * PARTS), each

    def trial(self):
        """Processor time of a calibration here, a part for each processor."""
        cores = os.cpu_count()
        parts = self.all_at_once([self.part("tried.tar", "--shard", f"{k}/{cores}", out=f"t{k}.calib") for k in range(cores)])
        return parts + self.run("qcalib", "merge", *[f"t{k}.calib" for k in range(cores)], "-o", "t.calib")


def measure(bench):
    found = {"start": bench.best(5, *bench.part("one.tar"))}
    found["pass"] = (bench.best(3, *bench.part("holes.tar", "--shard", f"0/{PASSED}")) - found["start"]) / PASSED
    found["pass_file"] = (bench.best(3, *bench.part("folder", "--shard", f"0/{PASSED}")) - found["start"]) / PASSED
    found["picture"] = bench.picture()
    found["merge"], found["merge_part"] = bench.merge()
    found["memory"], found["memory_many"] = (bench.memory(*bench.part(data)) for data in ("few.tar", "tried.tar"))
    found["trial"] = min(bench.trial() for _ in range(2))
    found["one"] = bench.best(2, "qcalib", bench.model, "--data", "tried.tar", "--preprocess", STEPS, "-o", "x.calib")
    return found


def foretold(found, pictures, cores, parts):
    """Seconds: (until the first picture and past those of others, pictures, merge)"""
    return (found["start"] + pictures * found["pass"], pictures * found["picture"] / cores, found["merge"] + parts * found["merge_part"])


def spell(seconds):
    if seconds < 0.001:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown"


def text(found, model):
    here = os.cpu_count()
    guess = here * (found["start"] + TRIED * found["pass"]) + TRIED * found["picture"] + found["merge"] + here * found["merge_part"]
    lines = [f"Measured with {model.name} on {here} processors ({processor()}), JPEG pictures of {WIDE} x {HIGH} and {BYTES // 1000} KB in the page cache:", "",
             "| cost | of | processor time |", "| --- | --- | --- |",
             f"| start | a part | {spell(found['start'])} |",
             f"| passing over | a sample of another part, in an uncompressed tar file | {spell(found['pass'])} |",
             f"| | the same, a file in a folder | {spell(found['pass_file'])} |",
             f"| a picture | read, decoded, preprocessed, run and observed, with a part on each processor | {spell(found['picture'])} |",
             f"| merge | a table | {spell(found['merge_part'])} |", "",
             f"A part takes {found['memory']:.0f} MB of memory for {FEW} pictures and {found['memory_many']:.0f} MB for {TRIED}. "
             f"A calibration on {TRIED} pictures in {here} parts should take {spell(guess)} of processor time by these costs, and took {spell(found['trial'])}; one process with "
             f"{here} threads took {spell(found['one'])}.", "",
             f"For the {IMAGENET:,} training pictures of ImageNet, and machines of {CORES} such processors with a part for every {OF_PART}, they give:", "",
             "| machines | parts | start and passing | pictures | merge | together | read by all machines |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for machines in (1, 10, 100):
        parts = machines * CORES // OF_PART
        times = foretold(found, IMAGENET, machines * CORES, parts)
        lines.append(f"| {machines} | {parts} | {' | '.join(map(spell, times))} | {spell(sum(times))} | {IMAGENET * BYTES / times[1] / 1e6:,.0f} MB/s |")
    return "\n".join(lines)


def write(found):
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.split(END)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT.parent / "shared/models/mobilenet_v2_100_224.onnx")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(18)
    pictures = [picture(rng) for _ in range(FEW)]
    with tempfile.TemporaryDirectory(prefix="octet-costs-") as name:
        folder = Path(name)
        for file, count in (("one.tar", 1), ("few.tar", FEW), ("many.tar", MANY), ("tried.tar", TRIED)):
            pack(folder / file, pictures, count)
        fill_folder(folder / "folder", pictures[0], PASSED)
        pack_holes(folder / "holes.tar", pictures[0], PASSED)
        bench = Bench(folder, args.build.resolve(), args.model.resolve())
        found = text(measure(bench), args.model)
    if args.write:
        write(found)
    else:
        print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the checks of packages and of the installed library share: what must hold, counted; commands; the demo's way through the three programs."""
import subprocess

PROGRAMS = ("qcalib", "qconvert", "qeval")
STEPS = "mean=127.5:std=127.5"
WRITTEN = ("table.calib", "demo.onnx", "direct.onnx", "y.npz")
# The arguments: model, samples to learn from, samples to judge by, preprocessing, the file to write.
MODULE = """
import sys, octet
model, calib, held, steps, made = sys.argv[1:]
octet.convert(model, data=calib, preprocess=steps, output=made)
report = octet.evaluate(model, made, data=held, preprocess=steps, latency=False)
assert report["quant"]["metrics"], report
"""


class MissingError(Exception):
    """What a check needs is not to be had here."""


class Count:
    def __init__(self, verbose):
        self.verbose, self.held, self.all = verbose, 0, 0

    def hold(self, what, good, why=""):
        self.all += 1
        self.held += bool(good)
        if not good or self.verbose:
            print(f"{'ok ' if good else 'FAILED'} {what} {'' if good else why}", flush=True)

    def finish(self):
        """Says how many hold; the exit code."""
        print(f"{self.held} of {self.all} hold")
        return 0 if self.held == self.all else 1


def ran(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **more)


def must(*words, **more):
    """What it prints; raises when it fails."""
    done = ran(*words, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def walk(at, run, data):
    """The demo calibrated, converted and evaluated: WRITTEN and report.json, in the folder `at`. run(at, program, word...) runs a program there; data
    is the folder testdata, as that program sees it: the table has that name."""
    model, calib, held = data / "demo.onnx", data / "images/calib.csv", data / "images/eval.csv"
    run(at, "qcalib", model, "--data", calib, "--preprocess", STEPS, "-o", "table.calib")
    run(at, "qconvert", model, "--calib", "table.calib", "-o", "demo.onnx")
    run(at, "qconvert", model, "--data", calib, "--preprocess", STEPS, "-o", "direct.onnx")
    run(at, "qeval", "demo.onnx", "--data", held, "--preprocess", STEPS, "--outputs", "y.npz")
    run(at, "qeval", model, "demo.onnx", "--data", held, "--preprocess", STEPS, "--no-latency", "--json", "report.json")

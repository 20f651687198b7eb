#!/usr/bin/env python3
"""Runs all graph passes over models, and raises their opsets, and compares what ONNX Runtime computes before and after.

    check_passes.py --passes-dump PROGRAM [MODEL.onnx...] [--shared ../shared] [-v]

For each model (default: testdata/models, one for each operator and opset whose form changed later, networks of the zoo, and the
real ones in SHARED/models): load, all passes, save; and load, raise the opset (to 13, 18, 21 and 26), save. A second run of the passes must change nothing,
to the byte. Each result must pass the ONNX checker and give ONNX Runtime's outputs of the
original: floats within 1e-4 of their range, integers at most 1 apart. What the program says it does not support is
listed and counts as skipped. Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import oldnodes, peer
from pylib.judge import faults, stored_case
from pylib.tool import ROOT, SHARED

sys.path.append(str(ROOT / "tests/generate"))
import make_zoo

TARGETS, EUNSUPPORTED = (13, 18, 21, 26), 5
EVERY = 4  # of the zoo's networks


TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_, "tensor(double)": np.float64}


def random_feeds(run, batch=2, other=576):
    """Open dimensions: the first is the batch, wherever it occurs again; others long enough for a window."""
    rng = np.random.default_rng(7)
    feeds, symbols = {}, {}
    for i in run.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else symbols.setdefault(d, other if at and d else batch)
                 for at, d in enumerate(i.shape)]
        kind = TYPES[i.type]
        value = rng.standard_normal(shape) if np.dtype(kind).kind == "f" else np.full(shape, 16000 if not shape else 1)
        feeds[i.name] = np.asarray(value).astype(kind)
    return feeds


def run_model(path, feeds):
    run = peer.session(path, optimize=False)
    names = [o.name for o in run.get_outputs()]
    return dict(zip(names, run.run(None, {i.name: feeds[i.name] for i in run.get_inputs()})))


def opset_of(path):
    versions = [o.version for o in onnx.load(path, load_external_data=False).opset_import if o.domain in ("", "ai.onnx")]
    return versions[0] if versions else 0


def declared(path):
    model = onnx.load(path, load_external_data=False).graph
    constants = {t.name for t in model.initializer}
    return [[v.name for v in model.input if v.name not in constants], [v.name for v in model.output]]


def checks(path, full):
    """Whether the checker takes a model; its shape inference knows no sparse initializers, for one."""
    try:
        onnx.checker.check_model(str(path), full_check=full)
        return True
    except Exception:
        return False


def second_time(program, path):
    """What running all passes over their own result changes; '' when nothing."""
    again = path.with_name("again.onnx")
    done = subprocess.run([program, str(path), str(again)], capture_output=True, text=True)
    if done.returncode or done.stdout:
        return f"a second time: {(done.stderr or done.stdout).strip().splitlines()[0]}"
    return "" if path.read_bytes() == again.read_bytes() else "a second time: another message"


def check(path, program, target, folder, feeds, want):
    """'' when it holds, 'skipped: ...', or what is wrong."""
    out = Path(folder) / "out.onnx"
    if target and len(onnx.load(path, load_external_data=False).functions):
        return "skipped: functions of the model keep their own opset"
    done = subprocess.run([program, str(path), str(out)] + ([str(target)] if target else []), capture_output=True, text=True)
    if done.returncode == EUNSUPPORTED:
        return "skipped: " + done.stderr.strip()
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    try:
        if target or checks(path, False):
            onnx.checker.check_model(str(out), full_check=checks(path, True))
    except Exception as error:  # whatever the checker raises is a fault of the model
        return "the checker says: " + str(error).split("\n")[0][:200]
    if target and opset_of(out) != target:
        return f"opset {opset_of(out)}"
    if not target and (again := second_time(program, out)):
        return again
    if declared(out) != declared(path):
        return f"inputs or outputs changed: {declared(out)}"
    if want is None:
        return ""
    try:
        return "; ".join(faults(want, run_model(out, feeds)))
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):
            return "skipped: ONNX Runtime has no kernel for it there"
        return "ONNX Runtime says: " + str(error).split("\n")[0][:200]


def check_all(path, args, folder):
    good, skipped = 0, 0
    feeds = want = None
    lines = []
    try:
        stored = stored_case(path)
        feeds = stored[0] if stored else random_feeds(peer.session(path, optimize=False))
        want = run_model(path, feeds)
    except Exception as error:
        lines.append(f"  ONNX Runtime cannot run it, so only the checker looks: {str(error).splitlines()[0][:120]}")
    targets = [0] + [t for t in TARGETS if t > opset_of(path) > 0]
    for target in targets:
        what = f"raised to {target}" if target else "all passes"
        said = check(path, args.passes_dump, target, folder, feeds, want)
        if said.startswith("skipped"):
            skipped += 1
            lines.append(f"  {what}: {said}")
        elif said:
            lines.append(f"  {what}: FAIL: {said}")
        else:
            good += 1
    bad = len(targets) - good - skipped
    if bad or skipped or args.verbose:
        print(f"{path.stem} (opset {opset_of(path)}): {'FAIL' if bad else 'ok'}", *lines, sep="\n", flush=True)
    return good, bad, skipped


def generated(folder):
    folder.mkdir()
    for name in sorted(make_zoo.NETS)[::EVERY]:
        make_zoo.build(name, folder)
    return sorted(folder.glob("*.onnx")) + oldnodes.write(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--passes-dump", required=True, help="the test program tests/tools/passes_dump")
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("-v", "--verbose", action="store_true", help="name every model")
    args = parser.parse_args()
    models = args.models
    if not models:
        models = sorted((ROOT / "testdata/models").glob("*.onnx")) + [ROOT / "testdata/demo.onnx"]
        real = sorted((args.shared / "models").glob("*.onnx"))
        if not real:
            print(f"no models in {args.shared}/models: only the bundled ones")
        models += real
    total = [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        if not args.models:
            models += generated(Path(folder) / "generated")
        for path in models:
            total = [a + b for a, b in zip(total, check_all(path, args, folder))]
    print(f"{len(models)} models: {total[0]} changed models hold, {total[1]} do not, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tests of what measures: turns and ratios, the runner's answers, files of shapes. Needs nothing beside Python.

    test_bench.py RUNNER CHECK_KERNELS PEAKS
"""
import array
import csv
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from octbench import contest, layers, race, results  # noqa: E402
from pylib import cost  # noqa: E402

RUNNER, CHECK, PEAKS = sys.argv[1:4]
# Layers of testdata/demo.onnx: output pixels, outputs, products of each.
DEMO = [(1024, 16, 27), (256, 48, 16), (256, 48, 9), (256, 16, 48), (256, 48, 16), (64, 48, 9), (64, 32, 48), (64, 24, 288),
        (64, 24, 32), (64, 48, 432), (64, 64, 48), (1, 10, 64)]


def write_npy(path, shape):
    """float32 zeros and ones by turns."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    count = 1
    for n in shape:
        count *= n
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
                     + array.array("f", (i % 2 for i in range(count))).tobytes())


class Fake:
    def __init__(self, name, said):
        self.name, self.said = name, said

    def turn(self, seconds):
        self.said.append(self.name)
        return [1.0]


class Race(unittest.TestCase):
    def test_order_is_rotated(self):
        said = []
        turns = race.race({n: Fake(n, said) for n in "abc"}, 4, 0)
        self.assertEqual("".join(said), "abcbcacababc")
        self.assertEqual([len(t) for t in turns.values()], [4, 4, 4])

    def test_ratio_is_of_the_same_round(self):
        # The machine is ten times slower in the last round; medians of turns 2, 4, 50 against 4, 4, 40.
        ours, base = [[2, 1, 9], [4, 4, 4], [50, 50]], [[4, 4], [4, 5, 3], [40, 40]]
        self.assertEqual(race.ratios(ours, base), (1.0, 0.5, 1.25))

    def test_fastest_of_all_rounds(self):
        self.assertEqual(race.fastest_ratio([[3, 2], [9, 4]], [[5], [4, 8]]), 0.5)

    def test_means_are_over_what_was_timed(self):
        wanted = (("a/b", "a", "b"), ("c/b", "c", "b"))
        each = [race.quotients({"a": 2, "b": 1, "c": 4}, wanted), race.quotients({"a": 1, "b": 2}, wanted), race.quotients({"c": 1}, wanted)]
        self.assertEqual(each, [{"a/b": 2, "c/b": 4}, {"a/b": 0.5}, {}])
        means = race.means(each)
        self.assertAlmostEqual(means["a/b"], 1)
        self.assertAlmostEqual(means["c/b"], 4)


class Narrowed(unittest.TestCase):
    def test_variables(self):
        self.assertEqual(contest.narrowed("octet", "avx2"), {"OCT_ISA": "avx2"})
        self.assertEqual(contest.narrowed("openvino", "avx512vnni"),
                         {"OV_CPU_MAX_ISA": "AVX512_CORE_VNNI", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"})
        self.assertEqual(contest.narrowed("openvino", ""), {})
        self.assertIsNone(contest.narrowed("openvino", "scalar"))
        self.assertIsNone(contest.narrowed("ort", "avx2"))

    def test_only_those_that_can_be_come_narrowed(self):
        named = contest.names("mobilenetv2", ["o*-float", "octet-static", "torch-*"], ["avx2"])
        self.assertEqual([n for n in named if "@" in n], ["openvino-float@avx2", "octet-float@avx2", "octet-static@avx2"])
        self.assertEqual(contest.names("lstm_tagger", ["*@avx2"], ["avx2"])[:2], ["ort-float", "openvino-float@avx2"])


class Layers(unittest.TestCase):
    def test_classes(self):
        for want, op, weight, groups in (("conv 1x1", "Conv", [64, 16, 1, 1], 1), ("first layer 7x7", "Conv", [64, 3, 7, 7], 1),
                                         ("depthwise 3x3", "Conv", [32, 1, 3, 3], 32), ("grouped 3x3", "Conv", [32, 8, 3, 3], 4),
                                         ("Conv", "Conv", None, 1), ("product", "MatMulInteger", [8, 8], 1),
                                         ("product of activations", "MatMul", None, 1), ("recurrent", "LSTM", [1, 8, 2], 1),
                                         ("Relu", "Relu", None, 1)):
            self.assertEqual(layers.class_of(op, weight, groups), want)

    def test_rates_and_shares(self):
        steps = [("a", "Conv", "int8", 2.0, 40e6, 0), ("b", "Conv", "int8", 3.0, 60e6, 0), ("c", "Conv", "float", 1.0, 5e6, 0),
                 ("", "Reorder", "int8", 0.5, 0, 0), ("d", "Relu", "float", 0.25, 0, 0)]
        found = layers.summed(steps, {"a": "conv 1x1", "b": "conv 1x1", "c": "conv 3x3"}, {"float": 10, "bytes": 80})
        self.assertEqual(found, [("conv 1x1", "int8", 2, 5.0, 20.0, 0.25), ("conv 3x3", "float", 1, 1.0, 5.0, 0.5),
                                 ("other steps", "", 2, 0.75, 0.0, None)])

    def test_least_of_profiles(self):
        self.assertEqual(layers.least([[("a", "Conv", "int8", 3.0, 1, 2)], [("a", "Conv", "int8", 2.0, 1, 2)]]),
                         [("a", "Conv", "int8", 2.0, 1, 2)])


class Kept(unittest.TestCase):
    """Rows of results; results.py asks for the class of this CPU only when it is measured."""

    def row(self, model, ms, kind):
        return {"model": model, "ms": ms, "date": "2026-11-23", "cpu": "Some CPU", "class": kind, "features": ""}

    def test_machines_stay_side_by_side(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(Path(folder) / "r.csv", ("model", "ms"), ("model",), lambda r: r["model"])
            kept.keep([self.row("b", "1", "avx2"), self.row("a", "2", "avx2")])
            kept.keep([self.row("a", "3", "avx512vnni")])
            kept.keep([self.row("a", "4", "avx2")])
            self.assertEqual([(r["class"], r["model"], r["ms"]) for r in kept.read()],
                             [("avx2", "a", "4"), ("avx2", "b", "1"), ("avx512vnni", "a", "3")])

    def test_every_row_has_its_class(self):
        for name in ("results.csv", "convert.csv"):
            with open(HERE / name, newline="") as file:
                self.assertTrue(all(r["class"] for r in csv.DictReader(file)), name)


class Answers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.data = Path(self.folder.name) / "x.npy"
        write_npy(self.data, (1, 3, 32, 32))

    def tearDown(self):
        self.folder.cleanup()

    def start(self, model, **env):
        return race.Runner([RUNNER, model, self.data, "1"], str(min(os.sched_getaffinity(0))), env)

    def test_turn_and_profile(self):
        runner = self.start(HERE.parent / "testdata/demo.onnx")
        self.assertGreaterEqual(len(runner.turn(0)), 3)
        took = runner.turn(0.05)
        self.assertGreater(len(took), 3)
        self.assertGreater(min(took), 0)
        self.assertLess(min(took), 50)
        steps = runner.profile()
        self.assertEqual(sum(s[4] for s in steps), sum(p * o * n for p, o, n in DEMO))
        self.assertEqual({s[1] for s in steps if s[4]}, {"Conv", "Gemm"})
        again = runner.profile()
        self.assertLess(sum(s[3] for s in again), 2 * sum(s[3] for s in steps) + 20)
        runner.close()

    def test_processor_time(self):
        runner = self.start(HERE.parent / "testdata/demo.onnx", OCT_BENCH_CLOCK="cpu")
        self.assertGreater(min(runner.turn(0.02)), 0)
        runner.close()

    def test_fault_has_its_words(self):
        runner = self.start("missing.onnx")
        with self.assertRaisesRegex(RuntimeError, "missing.onnx"):
            runner.turn(0)
        runner.close()


class Cost(unittest.TestCase):
    def test_peak_is_of_the_command_alone(self):
        ballast = bytearray(b"x") * (200 << 20)
        _, peak, _ = cost.measured(["true"])
        self.assertLess(peak, 50)
        del ballast
        _, peak, _ = cost.measured([sys.executable, "-c", "x = bytearray(b'x') * (100 << 20)"])
        self.assertGreater(peak, 100)
        self.assertLess(peak, 180)

    def test_processor_time_is_of_the_command(self):
        _, _, processor = cost.measured([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"])
        self.assertGreater(processor, 0.3)
        self.assertLess(processor, 2)

    def test_failures_have_their_words(self):
        with self.assertRaisesRegex(cost.CommandError, "(?s)exit 3: .*no such thing"):
            cost.measured([sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"])
        with self.assertRaisesRegex(cost.CommandError, "exit 127: missing-program"):
            cost.measured(["missing-program"])


class Peaks(unittest.TestCase):
    def kinds(self, **env):
        done = subprocess.run([PEAKS, "--kinds"], env=os.environ | env, capture_output=True, text=True, check=True)
        return dict(line.split("\t") for line in done.stdout.splitlines())

    def test_clock_is_one_that_there_is(self):
        """No CPU has reached 7 GHz without liquid gases."""
        clock = float(self.kinds()["clock"])
        self.assertTrue(clock == 0 or 0.3 < clock < 7, clock)

    def test_narrowed(self):
        native, scalar = self.kinds(), self.kinds(OCT_ISA="scalar")
        self.assertEqual(native["class"], scalar["class"])
        self.assertEqual((float(scalar["float"]), float(scalar["bytes"])), (0, 0))
        if native["class"] != "scalar":
            self.assertGreater(float(native["bytes"]), float(native["float"]))


class Shapes(unittest.TestCase):
    def bench(self, path):
        return subprocess.run([CHECK, "--bench", path], capture_output=True, text=True, check=False)

    def test_work_of_a_network(self):
        path = HERE / "shapes/kws_dscnn.csv"
        done = self.bench(path)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(path, newline="") as file:
            rows = [{k: v if k in ("op", "weights") else int(v) for k, v in r.items()} for r in csv.DictReader(file)]
        work = sum(2 * r["times"] * r["batch"] * r["oh"] * r["ow"] * r["oc"] * (r["c"] // r["groups"]) * r["kh"] * r["kw"] for r in rows)
        total = next(line for line in done.stdout.splitlines() if line.startswith("all,"))
        self.assertAlmostEqual(float(total.split()[6]), work * 1e-6, delta=0.05)
        self.assertGreater(float(total.split()[7]), 0)

    def test_refuses_other_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.csv"
            header = (HERE / "shapes/kws_dscnn.csv").read_text().splitlines()[0]
            for text in ("", "op,times\n", f"{header}\nConv,1,constant,1,5,5\n", f"{header}\nConv,1,constant,1,5,5,3,4,3,3,0,1,1,1,1,1,5,5,1\n"):
                path.write_text(text)
                self.assertEqual(self.bench(path).returncode, 1, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

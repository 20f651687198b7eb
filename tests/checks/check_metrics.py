#!/usr/bin/env python3
"""Holds qeval's task metrics against NumPy's on the same outputs: of small detectors in the usual families' styles, of classifiers, of maps and embeddings.

    check_metrics.py [--only GLOB] [--shared FOLDER] [--minilm FILE] [--whole] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Outputs are our runtime's. ONNX Runtime's of the float models differ by their last bits, and by them metrics of detectors are the same but for boxes of nearly
equal scores; those of the shared models are ONNX Runtime's. Where pycocotools is installed,
it computes average precision, too. With the shared models NanoDet, the face detector and the voice detector are checked on their data, and MiniLM,
which is not kept but written by a script beside them, where --minilm names it. --whole takes all pictures and the detectors' int8 models, too, and minutes.

Goals of qconvert on these metrics must be judged by what qeval says of the written model and the samples that calibration did not see.

What 3 parts of the samples, joined by 'qeval merge', report must be the same to the last bit.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import contextlib
import csv
import io
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "PIL")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import check_states
from pylib import detectors, objects, peer, sequences, taskscores, tool, zoo
from pylib.judge import Checker, options, relative_error, run_ort
from pylib.samples import open_samples

RUNNER = Path(__file__).resolve().parents[2] / "share/runners/onnxruntime_runner.py"
SAME = 1e-9     # more digits than are printed
CLOSE = 1e-3    # where the last bit of an output may exchange two boxes of nearly equal score
STEPS = "mean=127.5:std=64"


def hold_parts(c, model, quant, data, more, whole):
    """Parts of the samples, joined, say the same to the last bit: values, drops and their intervals, classes."""
    report, kept = c.folder / "joined.json", ("metrics", "drop", "classes", "output_sqnr_db", "agreement", "outputs")
    for n in (3,):
        parts = [c.folder / f"{i}.part" for i in range(n)]
        for i, part in enumerate(parts):
            tool.run([c.qeval, model, quant, "--data", data, "-q", "--shard", f"{i}/{n}", "-o", part, *more])
        tool.run([c.qeval, "merge", *parts[::-1], "-q", "--no-latency", "--json", report])
        joined = json.loads(report.read_text())["models"]
        c.hold(f"{Path(model).stem}: {n} parts", [[m.get(k) for k in kept] for m in joined] == [[m.get(k) for k in kept] for m in whole], "another report")


def evaluate(c, model, quant, data, *more):
    """{metric: (float's, quant's)} as the JSON report has them."""
    report = c.folder / "eval.json"
    tool.run([c.qeval, model, quant, "--data", data, "-q", "--no-latency", "--no-layers", "--json", report, *c.noted(more)])
    models = json.loads(report.read_text())["models"]
    if c.is_new((sorted(models[1]["metrics"]), "--per-class" in more)):
        hold_parts(c, model, quant, data, more, models)
    return {name: (models[0]["metrics"].get(name), value) for name, value in models[1]["metrics"].items()}, models[1]["drop"]


def hold_scores(c, what, got, want):
    """want: {metric: (float's, quant's)}"""
    for name, pair in want.items():
        for who, mine, theirs in zip(("float", "quantized"), got[name], pair, strict=True):
            if theirs is not None:
                c.hold(f"{what}: {name} of {who}", mine is not None and abs(mine - theirs) <= SAME * max(1, abs(theirs)), f"{mine} for {theirs}")


def hold_classes(c, what, k, want, names):
    """want: {class: row of what the names say}, of model k."""
    got = {row["class"]: [row[n] for n in names] for row in json.loads((c.folder / "eval.json").read_text())["models"][k]["classes"]}
    same = got.keys() == want.keys() and all((a is None) == (b is None) and (a is None or abs(a - b) <= SAME) for n in want for a, b in zip(got[n], want[n], strict=True))
    c.hold(f"{what}: classes of model {k}", same, f"{got} for {want}")


def hold_goals(c, what, model, data, rest, metrics, judged, judged_rest):
    """Goals on metrics, met as it is, tuned for, and out of reach: what qconvert says of the result is what qeval says of the file that it wrote. data and
    judged: words of its command line; rest and judged_rest: those of qeval for the samples that did not calibrate."""
    out, report = c.folder / "goal.onnx", c.folder / "goal.json"
    for limit, trials in (("99%", 0), ("0", 4), ("-3%", 2)):
        goals = [word for m in metrics for word in ("--max-drop", f"{m}={limit}")]
        best = c.folder / "goal.best.onnx"
        for path in (out, best):
            path.unlink(missing_ok=True)
        command = [c.qconvert, model, "-o", out, "-q", "--json", report, *data, *judged, *goals, "--trials", trials]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise tool.ToolError(f"qconvert exit {done.returncode}: {done.stderr}")
        said = json.loads(report.read_text())
        met = all(g["met"] for g in said["goals"])
        c.hold(f"{what}, {limit}: exit and files", (done.returncode, out.exists(), best.exists()) == ((0, True, False) if met else (1, False, True)),
               f"exit {done.returncode}")
        c.hold(f"{what}, {limit}: met", met == (limit == "99%") or limit == "0", str(said["goals"]))
        got = c.folder / "goal_eval.json"
        tool.run([c.qeval, model, out if met else best, "-q", "--no-latency", "--no-layers", "--json", got, *rest, *judged_rest])
        of = json.loads(got.read_text())["models"][1]
        if said["trials_on_other_samples"]:
            continue        # half of the samples have chosen, and the other half judges
        for g, m in zip(said["goals"], metrics, strict=True):
            d = of["drop"][m]
            same = (g["metric"], g["value"], g["drop"], g.get("low"), g.get("high")) == (m, of["metrics"][m], d["value"], d.get("low"), d.get("high"))
            c.hold(f"{what}, {limit}: {m} is that of qeval", same, f"{g} for {of['metrics'][m]}, {d}")


# ---- detectors ----

def write_pictures(folder, count):
    """Pictures of several sizes, and how each lies in the letterboxed input."""
    rng, folder = np.random.default_rng(5), folder / "pictures"
    folder.mkdir()
    sizes = []
    for i in range(count):
        w, h = int(rng.integers(40, 200)), int(rng.integers(40, 200))
        noise = rng.integers(0, 256, (h // 8 + 1, w // 8 + 1, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((w, h), Image.BICUBIC).save(folder / f"p{i:02}.png")
        sizes.append((w, h))
    return folder, sizes


def letterboxed(path):
    """The input of one picture, and scale and shift of each coordinate."""
    image = Image.open(path)
    r = min(detectors.WIDTH / image.width, detectors.HEIGHT / image.height)
    w, h = max(round(image.width * r), 1), max(round(image.height * r), 1)
    x0, y0 = (detectors.WIDTH - w) // 2, (detectors.HEIGHT - h) // 2
    whole = np.full((detectors.HEIGHT, detectors.WIDTH, 3), 114, np.uint8)
    whole[y0:y0 + h, x0:x0 + w] = np.asarray(image.resize((w, h), Image.BILINEAR))
    x = ((whole.astype(np.float32) - np.float32(127.5)) / np.float32(64)).transpose(2, 0, 1)[None]
    scale = np.array([w / image.width, h / image.height] * 2)
    return x, scale, np.array([x0, y0] * 2, float)


def in_picture(boxes, scale, shift):
    return np.concatenate([(boxes[:, :4] - shift) / scale, boxes[:, 4:]], 1) if len(boxes) else boxes


def make_truth(found, rng):
    """Objects near the best boxes, some of another class and some crowds: [n][6] per picture."""
    truth = []
    for boxes in found:
        rows = []
        for box in boxes[:12:2]:
            size = np.tile(box[2:4] - box[:2], 2)
            rows.append([*(box[:4] + rng.normal(0, 0.06, 4) * size), box[5] if rng.random() < 0.8 else 1, rng.random() < 0.1])
        truth.append(np.array(rows, float).reshape(-1, 6))
    return truth


def write_coco(path, truth, ids):
    categories = sorted({int(o[4]) for t in truth for o in t} | {1})
    number = {c: c if ids else i * 3 + 1 for i, c in enumerate(range(max(categories) + 1))}
    annotations = [{"id": 1 + len(truth) * k + i, "image_id": i + 1, "category_id": number[int(o[4])], "iscrowd": int(o[5]),
                    "bbox": [o[0], o[1], o[2] - o[0], o[3] - o[1]], "area": (o[2] - o[0]) * (o[3] - o[1])}
                   for i, t in enumerate(truth) for k, o in enumerate(t)]
    listed = categories if ids else range(max(categories) + 1)
    path.write_text(json.dumps({"images": [{"id": i + 1, "file_name": f"p{i:02}.png"} for i in range(len(truth))],
                                "categories": [{"id": number[c], "name": str(c)} for c in listed], "annotations": annotations}))
    return number


def write_csv(path, truth):
    with path.open("w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["file", "class", "x1", "y1", "x2", "y2", "crowd"])
        for i, t in enumerate(truth):
            w.writerows([f"p{i:02}.png", int(o[4]), *(repr(float(v)) for v in o[:4]), int(o[5])] for o in t)


def coco_says(truth, found, number):
    """(map, ap50) by pycocotools; None without it."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(truth))
        results = [{"image_id": i + 1, "category_id": number[int(b[5])], "score": b[4], "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]]}
                   for i, boxes in enumerate(found) for b in boxes if int(b[5]) in number]
        e = COCOeval(coco, coco.loadRes(results), "bbox")
        e.evaluate()
        e.accumulate()
        precision = e.eval["precision"][:, :, :, 0, 2]
    return precision[precision > -1].mean(), precision[0][precision[0] > -1].mean()


def each_output(c, model, files, pictures, steps, names):
    """Our runtime's outputs for each picture; what changes its number of rows would be joined with those of others, so these run one by one."""
    runs = [tool.run_qeval(c.qeval, model, data, c.folder / "out.npz", steps) for data in files or [pictures]]
    if files:
        return runs
    return [dict(zip(names, row)) for row in zip(*(runs[0][n] for n in names))]


def check_detector(c, family, pictures, seed):
    model, quant = c.folder / f"{family.rule}.onnx", c.folder / f"{family.rule}.q.onnx"
    net = detectors.Net(seed)
    family.build(net)
    net.save(model)
    steps = f"letterbox={detectors.WIDTH}x{detectors.HEIGHT}:{STEPS}"
    c.convert(model, quant, "--data", pictures, "-p", steps)
    session, found = peer.session(model), ([], [], [])    # by our runtime, quantized by it, by ONNX Runtime
    names = [o.name for o in session.get_outputs()]
    files = sorted(pictures.glob("*.png"))
    ours = [each_output(c, m, files if family.rule == "torchvision" else None, pictures, steps, names) for m in (model, quant)]
    for i, path in enumerate(files):
        x, scale, shift = letterboxed(path)
        ort = {n: o if n in ("boxes", "labels", "scores") else o[0] for n, o in zip(names, session.run(None, {"x": x}))}
        outputs = [o[i] for o in ours] + [ort]
        for of, o in zip(found, outputs, strict=True):
            of.append(in_picture(family.boxes(o), scale, shift))
    truth = make_truth(found[0], np.random.default_rng(seed))
    ids = family.rule in ("detr", "torchvision", "tensorflow", "retinanet")
    number = write_coco(c.folder / "truth.json", truth, ids)
    write_csv(c.folder / "truth.csv", truth)
    want = {}
    for who in found:
        ap = taskscores.average_precisions(who, truth)
        if ids:     # classes without a category are nobody's
            who = [b[np.isin(b[:, 5], list(number))] for b in who]
        for name, value in (("map", ap.mean()), ("ap50", ap[:, 0].mean()), ("f1", taskscores.f1(who, truth, family.f1_least))):
            want.setdefault(name, []).append(value)
    for truth_file in ("truth.json",) if ids else ("truth.json", "truth.csv"):
        got, drop = evaluate(c, model, quant, pictures, "-p", steps, "--decode", family.word, "--per-class", "--truth", c.folder / truth_file)
        for k, who in enumerate(found[:2]):
            if ids:
                who = [b[np.isin(b[:, 5], list(number))] for b in who]
            rows = taskscores.class_rows(who, truth, family.f1_least)
            hold_classes(c, f"{family.rule}, {truth_file}", k, {number[n] if truth_file == "truth.json" else n: row for n, row in rows.items()},
                         ("samples", "precision", "recall", "f1", "ap50"))
        hold_scores(c, f"{family.rule}, {truth_file}", got, {name: values[:2] for name, values in want.items()})
        for name, values in want.items():
            c.hold(f"{family.rule}: {name} by ONNX Runtime", abs(got[name][0] - values[2]) <= CLOSE, f"{got[name][0]} for {values[2]}")
        for name in ("map", "f1"):
            d = drop[name]
            c.hold(f"{family.rule}: interval of {name}", d["low"] <= d["value"] <= d["high"] and d["samples"] == len(files), str(d))
    if family.rule == "yolov8":
        judged = ["--decode", family.word, "--truth", c.folder / "truth.json"]
        hold_goals(c, family.rule, model, ["--data", pictures, "-p", steps, "-n", 4, "--first"], [w for f in files[4:] for w in ("--data", f)] + ["-p", steps],
                   ["ap50", "map"], judged, judged)
    if said := [coco_says(c.folder / "truth.json", who, number) for who in found[:2]]:
        if said[0]:
            hold_scores(c, f"{family.rule}, pycocotools", got, {"map": [s[0] for s in said], "ap50": [s[1] for s in said]})


# ---- masks and keypoints ----

def blob(rng, box):
    """A polygon about the middle of a box, as a list of x and y."""
    angle = np.sort(rng.random(int(rng.integers(5, 14)))) * 2 * np.pi
    reach = rng.uniform(0.3, 0.55, len(angle))
    x = (box[0] + box[2]) / 2 + np.cos(angle) * reach * (box[2] - box[0])
    y = (box[1] + box[3]) / 2 + np.sin(angle) * reach * (box[3] - box[1])
    return np.stack([x, y], 1).ravel().tolist()


def annotate_mask(rng, k, mask, box, size, outlines):
    """An extent near a mask: runs as text, runs as numbers, or polygons where there are tools for these. (what the file says, pixels)"""
    if outlines or k % 3 == 2:
        polygons = [blob(rng, box)] + ([blob(rng, box * 0.9 + 3)] if k % 2 and not outlines else [])
        pixels = objects.pixels_of_polygons(polygons, size)
        if pixels is not None or outlines:
            return polygons, pixels
    moved = np.roll(mask, rng.integers(-2, 3, 2), (0, 1)) ^ (rng.random(mask.shape) < 0.02)
    runs = objects.runs_of(moved)
    return {"size": [size[1], size[0]], "counts": objects.text_of(runs) if k % 3 else runs}, moved


def annotate_points(rng, k, found, box):
    side = np.sqrt((box[2] - box[0]) * (box[3] - box[1]))
    points = np.column_stack([found + rng.normal(0, rng.uniform(0.01, 0.1) * side, found.shape), rng.integers(0, 3, len(found))])
    points[points[:, 2] == 0, :2] = 0
    if k % 5 == 4:
        points[:] = 0       # none is labelled: it need not be found
    return points.ravel().tolist()


def objects_found(family, outputs, scale, shift, size):
    """[(box in the picture, score, class, mask or points)], best first."""
    table, extra = family.found(outputs, family.more)
    found = []
    for row in table:
        box = (row[:4] - shift) / scale
        if family.masks:
            what = objects.mask_of(extra[int(row[4])], outputs, box, size, scale, shift)
        else:
            what = (extra[int(row[4])].reshape(-1, 3)[:, :2] - shift[:2]) / scale[:2]
        found.append((box, row[5], int(row[6]), what))
    return found


def make_objects(family, found, sizes, rng, outlines):
    """Annotations as COCO has them, and their pixels, of each picture. outlines: only what lines of text can say."""
    truth = []
    for i, (of_picture, size) in enumerate(zip(found, sizes)):
        rows = []
        for k, (box, _, number, what) in enumerate(of_picture[:12:2]):
            number = number if rng.random() < 0.8 else 0
            near = box + rng.normal(0, 0.05, 4) * np.tile(box[2:] - box[:2], 2)
            o = {"id": 1 + 100 * i + k, "image_id": i + 1, "category_id": number + 1, "iscrowd": int(not outlines and rng.random() < 0.1),
                 "bbox": [near[0], near[1], near[2] - near[0], near[3] - near[1]]}
            o["area"] = o["bbox"][2] * o["bbox"][3] * 0.53
            if family.masks:
                o["segmentation"], pixels = annotate_mask(rng, k, what, near, size, outlines)
            else:
                o["keypoints"], pixels = annotate_points(rng, k, what, near), None
                o["num_keypoints"] = int((np.array(o["keypoints"])[2::3] > 0).sum())
            rows.append((o, pixels))
        truth.append(rows)
    return truth


def object_precisions(family, found, truth):
    pictures = []
    for of_picture, rows in zip(found, truth):
        mine = of_picture
        overlaps = np.array([[objects.overlap(f[3], pixels, o["iscrowd"]) if family.masks else objects.similarity(f[3], o) for o, pixels in rows] for f in mine])
        ignored = np.array([o["iscrowd"] or (not family.masks and not o["num_keypoints"]) for o, _ in rows], bool)
        pictures.append((np.array([f[1] for f in mine]), np.array([f[2] for f in mine]), overlaps.reshape(len(mine), len(rows)),
                         np.array([o["category_id"] - 1 for o, _ in rows], int), ignored, np.array([o["iscrowd"] for o, _ in rows], bool)))
    ap = objects.precisions(pictures, 100 if family.masks else 20)
    return ap.mean(), ap[:, 0].mean()


def results_of(family, found):
    """As pycocotools takes them."""
    rows = []
    for i, of_picture in enumerate(found):
        for box, score, number, what in of_picture:
            row = {"image_id": i + 1, "category_id": number + 1, "score": score}
            if family.masks:
                row["segmentation"] = {"size": list(what.shape), "counts": objects.text_of(objects.runs_of(what))}
            else:
                row["keypoints"] = np.column_stack([what, np.ones(len(what))]).ravel().tolist()
            rows.append(row)
    return rows


def write_lines(folder, family, truth, sizes):
    """As for training YOLO: class and outline, or class, box and keypoints, in shares."""
    folder.mkdir(exist_ok=True)
    for i, (rows, (w, h)) in enumerate(zip(truth, sizes)):
        lines = []
        for o, _ in rows:
            x, y, bw, bh = o["bbox"]
            if family.masks:
                words = (np.array(o["segmentation"][0]).reshape(-1, 2) / [w, h]).ravel()
            else:
                words = np.concatenate([[(x + bw / 2) / w, (y + bh / 2) / h, bw / w, bh / h], (np.array(o["keypoints"]).reshape(-1, 3) / [w, h, 1]).ravel()])
            lines.append(" ".join([str(o["category_id"] - 1), *(repr(float(v)) for v in words)]))
        (folder / f"p{i:02}.txt").write_text("\n".join(lines) + "\n")


def check_objects(c, family, pictures, sizes, seed):
    model, quant = c.folder / f"{family.rule}.onnx", c.folder / f"{family.rule}.q.onnx"
    net = detectors.Net(seed)
    family.build(net)
    net.save(model)
    steps = f"letterbox={detectors.WIDTH}x{detectors.HEIGHT}:{STEPS}"
    c.convert(model, quant, "--data", pictures, "-p", steps)
    names, files = [o.name for o in peer.session(model).get_outputs()], sorted(pictures.glob("*.png"))
    ours, found = [each_output(c, m, None, pictures, steps, names) for m in (model, quant)], ([], [])
    for i, path in enumerate(files):
        _, scale, shift = letterboxed(path)
        for of, o in zip(found, ours):
            of.append(objects_found(family, o[i], scale, shift, sizes[i]))
    prefix, kind = ("mask", "segm") if family.masks else ("keypoint", "keypoints")
    for outlines in (False, True):
        if outlines and family.masks and objects.pixels_of_polygons([[0, 0, 4, 0, 4, 4]], (8, 8)) is None:
            continue
        truth = make_objects(family, found[0], sizes, np.random.default_rng(seed), outlines)
        numbers = sorted({o["category_id"] for rows in truth for o, _ in rows} | set(range(1, 1 + objects.classes_of(family.more))))
        file = objects.save(c.folder / "objects.json", {
            "images": [{"id": i + 1, "file_name": f"p{i:02}.png", "width": w, "height": h} for i, (w, h) in enumerate(sizes)],
            "categories": [{"id": n, "name": str(n)} for n in numbers], "annotations": [o for rows in truth for o, _ in rows]})
        said = [objects.coco_says(file, results_of(family, who), kind) for who in found]
        if outlines:
            write_lines(c.folder / f"{family.rule}_lines", family, truth, sizes)
            file = c.folder / f"{family.rule}_lines"
        got, drop = evaluate(c, model, quant, pictures, "-p", steps, "--decode", f"{family.rule}:score=0.05", "--truth", file)
        want = [object_precisions(family, who, truth) for who in found]
        what = f"{family.rule}, {'lines' if outlines else 'COCO'}"
        hold_scores(c, what, got, {f"{prefix}-map": [w[0] for w in want], f"{prefix}-ap50": [w[1] for w in want]})
        c.hold(f"{what}: neither all nor nothing", 0.02 < want[0][1] < 0.98, str(want))
        d = drop[f"{prefix}-map"]
        c.hold(f"{what}: interval", d["low"] <= d["value"] <= d["high"] and d["samples"] == len(files), str(d))
        if said[0]:
            hold_scores(c, f"{what}, pycocotools", got, {f"{prefix}-map": [s[0] for s in said], f"{prefix}-ap50": [s[1] for s in said]})


# ---- other tasks ----

def save_net(path, nodes, inputs, outputs, constants):
    values = [[helper.make_tensor_value_info(n, t, s) for n, t, s in part] for part in (inputs, outputs)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "net", *values, [numpy_helper.from_array(a, n) for n, a in constants.items()]), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 13)]), path)


def both_outputs(c, model, quant, data):
    """[float's, quantized's] of the first output, by our runtime; ONNX Runtime's differ by the last bits."""
    ours = [next(iter(tool.run_qeval(c.qeval, m, data, c.folder / "out.npz").values())) for m in (model, quant)]
    want = run_ort(model, np.load(data)[:, None])[0].reshape(ours[0].shape)
    c.hold(f"{model.name}: by ONNX Runtime", relative_error(want, ours[0]) <= 1e-5, str(relative_error(want, ours[0])))
    return ours


def make_dense(c, name, rng, width, outputs, end):
    model, quant, data = c.folder / f"{name}.onnx", c.folder / f"{name}.q.onnx", c.folder / f"{name}.npy"
    save_net(model, [helper.make_node("Gemm", ["x", "w"], ["h"], name="dense"), *([helper.make_node(end, ["h"], ["y"])] if end else [])],
             [("x", TensorProto.FLOAT, ["n", width])], [("y" if end else "h", TensorProto.FLOAT, ["n", outputs])],
             {"w": rng.normal(0, 0.5, (width, outputs)).astype(np.float32)})
    np.save(data, rng.normal(0, 1, (90, width)).astype(np.float32))
    c.convert(model, quant, "--data", data)
    return model, quant, data


def check_classes(c, classes, end):
    """Labels that follow the largest output, with noise."""
    rng = np.random.default_rng(classes)
    model, quant, data = make_dense(c, f"classes{classes}", rng, 12, classes, end)
    outputs = both_outputs(c, model, quant, data)
    noisy = outputs[0] + rng.normal(0, outputs[0].std(), outputs[0].shape)
    labels = noisy.argmax(1) if classes > 1 else (noisy[:, 0] > 0.5).astype(int)
    np.save(c.folder / "labels.npy", labels)
    found = [o.argmax(1) if classes > 1 else (o[:, 0] > 0.5).astype(int) for o in outputs]
    want = {name: [taskscores.shares(labels, f)[i] for f in found] for i, name in enumerate(("precision", "recall", "f1"))}
    if classes > 3:
        want["top3"] = [taskscores.top(o, labels, 3) for o in outputs]
    want["agreement"] = [None, float((found[0] == found[1]).mean())]
    want["psnr"] = [None, taskscores.psnr(*outputs)]
    if classes > 1:
        want["kl"] = [None, taskscores.kl(*outputs, logits=not end)]
    rule = "classes" if classes > 1 else "binary"
    got, _ = evaluate(c, model, quant, data, "--labels", c.folder / "labels.npy", "--metric", ",".join(want), "--per-class", "--decode", rule)
    hold_scores(c, f"{classes} classes, {end or 'logits'}", got, want)
    cells = json.loads((c.folder / "eval.json").read_text())["models"][1]["confusion"]
    seen = {(x["label"], x["taken_for"]): x["samples"] for x in cells}
    pairs, counts = np.unique(np.stack([labels, found[1]]), axis=1, return_counts=True)
    c.hold(f"{classes} classes: confusion", seen == {(int(a), int(b)): int(n) for (a, b), n in zip(pairs.T, counts)}, str(seen))


def check_pairs(c):
    rng = np.random.default_rng(11)
    model, quant, data = make_dense(c, "embed", rng, 16, 8, "")
    outputs = both_outputs(c, model, quant, data)
    e = outputs[0].astype(np.float64)
    cosine = (e[0::2] * e[1::2]).sum(1) / np.linalg.norm(e[0::2], axis=1) / np.linalg.norm(e[1::2], axis=1)
    scores = np.round(2.5 + 2.5 * cosine + rng.normal(0, 1, len(cosine)), 0)
    np.save(c.folder / "scores.npy", scores)
    said = [taskscores.correlations(o, scores) for o in outputs]
    got, _ = evaluate(c, model, quant, data, "--truth", c.folder / "scores.npy", "--decode", "embeddings")
    hold_scores(c, "pairs", got, {"spearman": [s[0] for s in said], "pearson": [s[1] for s in said]})
    judged = ["--truth", c.folder / "scores.npy"]
    hold_goals(c, "pairs", model, ["--data", data], ["--data", data], ["spearman"], judged, judged)


def check_tokens(c):
    """Embeddings of tokens, of which the attention mask says which are there: the first's, or the mean."""
    rng, rows, tokens, wide = np.random.default_rng(13), 60, 7, 8
    model, quant, data = c.folder / "tokens.onnx", c.folder / "tokens.q.onnx", c.folder / "tokens.npz"
    save_net(model, [helper.make_node("Cast", ["attention_mask"], ["f"], to=TensorProto.FLOAT), helper.make_node("Unsqueeze", ["f", "axes"], ["m"]),
                     helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"), helper.make_node("Add", ["h", "m"], ["y"])],
             [("x", TensorProto.FLOAT, ["n", tokens, wide]), ("attention_mask", TensorProto.INT64, ["n", tokens])],
             [("y", TensorProto.FLOAT, ["n", tokens, wide])], {"w": rng.normal(0, 0.5, (wide, wide)).astype(np.float32), "axes": np.array([2])})
    mask = (np.arange(tokens) < rng.integers(2, tokens + 1, (rows, 1))).astype(np.int64)
    np.savez(data, x=rng.normal(0, 1, (rows, tokens, wide)).astype(np.float32), attention_mask=mask)
    c.convert(model, quant, "--data", data)
    scores = rng.integers(0, 6, rows // 2)
    np.save(c.folder / "pairs.npy", scores)
    outputs = [next(iter(tool.run_qeval(c.qeval, m, data, c.folder / "out.npz").values())).astype(np.float64) for m in (model, quant)]
    theirs = peer.session(model).run(None, dict(np.load(data)))[0]
    c.hold("tokens: by ONNX Runtime", relative_error(theirs, outputs[0]) <= 1e-5, str(relative_error(theirs, outputs[0])))
    pooled = {"tokens-cls": lambda o: o[:, 0], "tokens-mean": lambda o: (o * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]}
    for rule, pool in pooled.items():
        said = [taskscores.correlations(pool(o), scores) for o in outputs]
        got = metrics_of_both(c, model, quant, data, "--truth", c.folder / "pairs.npy", "--decode", rule)
        hold_scores(c, rule, got, {"spearman": [s[0] for s in said], "pearson": [s[1] for s in said]})


def make_places(c, name, rng, length, width, labels):
    """Scores of labels at each place, [n,length,labels], of numbers [n,length,width]."""
    model, quant, data = c.folder / f"{name}.onnx", c.folder / f"{name}.q.onnx", c.folder / f"{name}.npy"
    save_net(model, [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")], [("x", TensorProto.FLOAT, ["n", length, width])],
             [("y", TensorProto.FLOAT, ["n", length, labels])], {"w": rng.normal(0, 0.5, (width, labels)).astype(np.float32)})
    np.save(data, rng.normal(0, 1, (40, length, width)).astype(np.float32))
    c.convert(model, quant, "--data", data)
    return model, quant, data, both_outputs(c, model, quant, data)


def disturbed(rng, labels, share, most):
    return np.where(rng.random(labels.shape) < share, rng.integers(0, most, labels.shape), labels)


def check_labels(c):
    """Labels of places as an array and as lines, with tags and without; entities that models begin with I are counted as conlleval does."""
    rng, tags = np.random.default_rng(21), ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    model, quant, data, outputs = make_places(c, "tagger", rng, 13, 8, len(tags))
    truth = disturbed(rng, outputs[0].argmax(2), 0.2, len(tags))
    truth[rng.random(truth.shape) < 0.1] = -100
    found = [o.argmax(2) for o in outputs]
    np.save(c.folder / "places.npy", truth)
    lines = c.folder / "places.jsonl"
    lines.write_text("".join(json.dumps({"labels": row.tolist()[:9 if i % 3 else 13]}) + "\n" for i, row in enumerate(truth)))
    short = np.array([[v if k < (9 if i % 3 else 13) else -1 for k, v in enumerate(row)] for i, row in enumerate(truth)])
    for file, of in ((c.folder / "places.npy", truth), (lines, short)):
        got, _ = evaluate(c, model, quant, data, "--decode", "labels", "--truth", file, "--per-class")
        hold_scores(c, f"labels, {file.name}", got, {"token-f1": [sequences.token_f1(of, f) for f in found]})
        got, drop = evaluate(c, model, quant, data, "--decode", "labels:tags=" + " ".join(tags), "--truth", file)
        keep = [[i >= 0 for i in row] for row in of]
        words = [[[tags[v] for v, k in zip(row, kept) if k] for row, kept in zip(rows, keep)] for rows in (of, *found)]
        said = [sequences.entity_f1(words[0], w) for w in words[1:]]
        hold_scores(c, f"tags, {file.name}", got, {"token-f1": [sequences.token_f1(of, f, (0,)) for f in found], "entity-f1": [s[0] for s in said]})
        if said[0][1] is not None:
            hold_scores(c, f"seqeval, {file.name}", got, {"entity-f1": [s[1] for s in said]})
        c.hold("tags: interval", drop["entity-f1"]["low"] <= drop["entity-f1"]["value"] <= drop["entity-f1"]["high"], str(drop))


def check_texts(c):
    """Errors in words and characters, of several bytes too, of labels as they are up to an end and of CTC."""
    rng, symbols = np.random.default_rng(22), ["", "|", "a", "b", "é", "漢", "\u2581d", "e"]
    model, quant, data, outputs = make_places(c, "reader", rng, 24, 8, len(symbols))
    (c.folder / "symbols.txt").write_text("\n".join(symbols) + "\n", encoding="utf-8")
    spelled = [s.replace("|", " ").replace("\u2581", " ") for s in symbols]
    for rule, read in (("ctc", sequences.ctc), ("labels", lambda row: row[: list(row).index(7)] if 7 in row else row)):
        texts = [["".join(spelled[i] for i in read(row.tolist())) for row in o.argmax(2)] for o in outputs]
        truth = ["".join(spelled[i] for i in read(disturbed(rng, row, 0.15, len(symbols)).tolist())) for row in outputs[0].argmax(2)]
        truth = [t if t.split() else "ab a" for t in truth]
        (c.folder / "texts.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in truth))
        word = f"{rule}:symbols={c.folder / 'symbols.txt'}" + (":end=7" if rule == "labels" else "")
        got, _ = evaluate(c, model, quant, data, "--decode", word, "--truth", c.folder / "texts.jsonl")
        said = [sequences.errors(truth, t) for t in texts]
        for what, k in (("Python", 0), ("jiwer", 1)):
            if said[0][k]:
                hold_scores(c, f"texts, {rule}, {what}", got, {"wer": [s[k][0] for s in said], "cer": [s[k][1] for s in said]})
        c.hold(f"texts, {rule}: neither all nor nothing", 0.02 < said[0][0][0] < 1.5, str(said))


def check_retrieval(c):
    rng = np.random.default_rng(23)
    model, quant, data = make_dense(c, "finder", rng, 16, 4, "")
    outputs = both_outputs(c, model, quant, data)
    e = outputs[0].astype(np.float64)
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    pairs = []
    for a in range(0, 30):
        near = 30 + np.argsort(-(e[30:] @ e[a]))
        chosen = {int(near[min(int(k), 59)]): int(rng.integers(0, 4)) for k in rng.exponential(6, 4)}
        pairs += [(a, b, s) for b, s in chosen.items()]
    (c.folder / "relevant.csv").write_text("a,b,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in pairs))
    want = [sequences.retrieval(o, pairs) for o in outputs]
    names = list(want[0])
    got, drop = evaluate(c, model, quant, data, "--decode", "retrieval", "--truth", c.folder / "relevant.csv", "--metric", ",".join(names))
    hold_scores(c, "retrieval", got, {n: [w[n] for w in want] for n in names})
    d = drop["ndcg@10"]
    c.hold("retrieval: interval over queries", d["low"] <= d["value"] <= d["high"] and d["samples"] == len({a for a, _, s in pairs if s > 0}), str(d))
    # of tokens, each sample's one token
    tokens, quant2, data2 = c.folder / "finder2.onnx", c.folder / "finder2.q.onnx", c.folder / "finder2.npy"
    save_net(tokens, [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")], [("x", TensorProto.FLOAT, ["n", 5, 16])], [("y", TensorProto.FLOAT, ["n", 5, 4])],
             {"w": rng.normal(0, 0.5, (16, 4)).astype(np.float32)})
    np.save(data2, rng.normal(0, 1, (90, 5, 16)).astype(np.float32))
    c.convert(tokens, quant2, "--data", data2)
    rows = [next(iter(tool.run_qeval(c.qeval, m, data2, c.folder / "out.npz").values())).astype(np.float64).mean(1) for m in (tokens, quant2)]
    got, _ = evaluate(c, tokens, quant2, data2, "--decode", "retrieval-mean", "--truth", c.folder / "relevant.csv")
    want = [sequences.retrieval(o, pairs) for o in rows]
    hold_scores(c, "retrieval, tokens", got, {n: [w[n] for w in want] for n in ("recall@1", "recall@10", "ndcg@10", "mrr")})


def check_padding(c):
    """Agreement over positions leaves out what the attention mask says is padding: of ids and of float inputs."""
    rng, rows, length, words = np.random.default_rng(24), 200, 9, 96
    model, quant, data = c.folder / "padded.onnx", c.folder / "padded.q.onnx", c.folder / "padded.npz"
    save_net(model, [helper.make_node("Gather", ["table", "input_ids"], ["e"]), helper.make_node("Cast", ["attention_mask"], ["f"], to=TensorProto.FLOAT),
                     helper.make_node("Unsqueeze", ["f", "axes"], ["m"]), helper.make_node("Mul", ["e", "m"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"], name="dense")],
             [("input_ids", TensorProto.INT64, ["n", length]), ("attention_mask", TensorProto.INT64, ["n", length])], [("y", TensorProto.FLOAT, ["n", length, words])],
             {"table": rng.normal(0, 1, (words, 6)).astype(np.float32), "axes": np.array([2]), "w": rng.normal(0, 0.5, (6, words)).astype(np.float32)})
    mask = (np.arange(length) < rng.integers(1, length + 1, (rows, 1))).astype(np.int64)
    np.savez(data, input_ids=rng.integers(0, words, (rows, length)), attention_mask=mask)
    c.convert(model, quant, "--data", data)
    outputs = [next(iter(tool.run_qeval(c.qeval, m, data, c.folder / "out.npz").values())).argmax(2) for m in (model, quant)]
    same = outputs[0] == outputs[1]
    share = float(((same * mask).sum(1) / mask.sum(1)).mean())
    got = metrics_of_both(c, model, quant, data, "--metric", "agreement")
    hold_scores(c, "padding", got, {"agreement": [None, share]})
    c.hold("padding: makes a difference", abs(share - same.mean()) > 1e-4, f"{share}, {same.mean()}")


def check_maps(c):
    rng, classes = np.random.default_rng(12), 5
    model, quant, data = c.folder / "maps.onnx", c.folder / "maps.q.onnx", c.folder / "maps.npy"
    save_net(model, [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[3, 3], pads=[1] * 4)], [("x", TensorProto.FLOAT, ["n", 3, 12, 16])],
             [("y", TensorProto.FLOAT, ["n", classes, 12, 16])], {"w": rng.normal(0, 0.3, (classes, 3, 3, 3)).astype(np.float32)})
    np.save(data, rng.normal(0, 1, (20, 3, 12, 16)).astype(np.float32))
    c.convert(model, quant, "--data", data)
    outputs = both_outputs(c, model, quant, data)
    truth = np.where(rng.random((20, 12, 16)) < 0.7, outputs[0].argmax(1), rng.integers(0, classes, (20, 12, 16)))
    truth[rng.random(truth.shape) < 0.05] = 255
    np.save(c.folder / "truth.npy", truth.astype(np.uint8))
    got, _ = evaluate(c, model, quant, data, "--truth", c.folder / "truth.npy", "--per-class")
    for k, o in enumerate(outputs):
        found, rows = o.argmax(1), {}
        for n in range(classes):
            a, b = (found == n) & (truth != 255), truth == n
            hit, extra, missed = (int(x.sum()) for x in (a & b, a & ~b, b & ~a))
            rows[n] = (hit + missed, hit / (hit + extra), hit / (hit + missed), 2 * hit / (2 * hit + extra + missed), hit / (hit + extra + missed))
        hold_classes(c, "maps", k, rows, ("samples", "precision", "recall", "f1", "iou"))
    hold_scores(c, "maps", got, {"miou": [taskscores.miou(o.argmax(1), truth, classes) for o in outputs]})
    np.save(c.folder / "rest.npy", np.load(data)[6:])
    np.save(c.folder / "rest_truth.npy", truth[6:].astype(np.uint8))
    hold_goals(c, "maps", model, ["--data", data, "-n", 6, "--first"], ["--data", c.folder / "rest.npy"], ["miou"], ["--truth", c.folder / "truth.npy"],
               ["--truth", c.folder / "rest_truth.npy"])
    folder = c.folder / "masks"
    folder.mkdir()
    for i, t in enumerate(truth):
        np.save(folder / f"maps.npy[{i}].npy", t.astype(np.uint8))
    again, _ = evaluate(c, model, quant, data, "--truth", folder, "--decode", "segmentation")
    c.hold("maps: of a folder", again["miou"] == got["miou"], f"{again['miou']}")


# ---- shared models ----

def run_float(m, shared, count=None):
    model, _, data, _ = m.paths(shared)
    samples = open_samples(data, m.preprocess)
    samples = samples.chosen(range(count)) if count else samples
    return model, data, samples, peer.run_all(peer.session(model), samples)


def check_nanodet(c, shared):
    m = zoo.MODELS["nanodet_m_416"]
    model, data, samples, outputs = run_float(m, shared, 16)
    truth, found = [], []
    boxes_of = m.truth(shared, samples)
    for i in range(samples.count):
        boxes, scores = taskscores.nanodet({n: o[i] for n, o in outputs.items()}, 416, 416)
        found.append(taskscores.suppress(boxes / 416, scores, 0.05, 0.6, 100, most_of_class=True))
        truth.append(np.array([[*row[1:], row[0], 0] for row in boxes_of(samples.names[i])]).reshape(-1, 6))
    ap = taskscores.average_precisions(found, truth)
    report = c.folder / "nanodet.json"
    tool.run([c.qeval, model, "--data", data, "-p", m.preprocess, "-n", 16, "--first", "-q", "--no-latency", "--decode", "nanodet", "--truth",
              shared / "data" / m.boxes, "--json", report])
    got = json.loads(report.read_text())["models"][0]["metrics"]
    hold_scores(c, "nanodet_m_416", {n: [got[n], None] for n in got}, {"ap50": [ap[:, 0].mean(), None], "map": [ap.mean(), None]})


def check_faces(c, shared):
    """Beside its products in bfloat16."""
    m = zoo.MODELS["ultraface_rfb_320"]
    model, data, samples, outputs = run_float(m, shared)
    other = tool.run_qeval(c.qeval, model, data, c.folder / "out.npz", m.preprocess, ["--compute", "bf16"])
    found = []
    for o in (outputs, other):
        found.append([taskscores.suppress(o["boxes"][i].astype(np.float64) * [320, 240, 320, 240], o["scores"][i, :, 1:].astype(np.float64), np.float32(0.7), 0.3, 10 ** 6)
                      for i in range(samples.count)])
    wanted = [np.concatenate([b[:, :4], b[:, 5:], b[:, 5:]], 1) if len(b) else np.zeros((0, 6)) for b in found[0]]
    got, _ = evaluate(c, model, "--compute=bf16", data, "-p", m.preprocess, "--decode", "ultraface")
    hold_scores(c, "ultraface_rfb_320", got, {"f1": [1.0, taskscores.f1(found[1], wanted, 0.7)]})


def nanodet_boxes(outputs, i):
    boxes, scores = taskscores.nanodet({n: o[i] for n, o in outputs.items()}, 416, 416)
    return taskscores.suppress(boxes / 416, scores, 0.05, 0.6, 100, most_of_class=True)


def face_boxes(outputs, i):
    boxes = outputs["boxes"][i].astype(np.float64) * [320, 240, 320, 240]
    return taskscores.suppress(boxes, outputs["scores"][i, :, 1:].astype(np.float64), np.float32(0.7), 0.3, 10 ** 6)


def check_whole(c, shared):
    """Float and int8 on all pictures, in our runtime and in ONNX Runtime: NumPy on the outputs of each."""
    for name, folder, rule, boxes_of in (("nanodet_m_416", "coco/eval/images", "nanodet", nanodet_boxes), ("ultraface_rfb_320", "coco/eval/images", "ultraface", face_boxes)):
        m, quant, data = zoo.MODELS[name], c.folder / f"{name}.int8.onnx", shared / "data" / folder
        model, calib = m.paths(shared)[:2]
        c.convert(model, quant, "--data", calib, "-p", m.preprocess)
        samples = open_samples(data, m.preprocess)
        judged = ["-p", m.preprocess, "--decode", rule, *(["--truth", shared / "data" / m.boxes] if m.boxes else [])]
        ours = [tool.run_qeval(c.qeval, x, data, c.folder / "out.npz", m.preprocess) for x in (model, quant)]
        theirs = [peer.run_all(peer.session(x), samples) for x in (model, quant)]
        for where, outputs, more in (("", ours, []), (" in ONNX Runtime", theirs, ["--runner", f"'{sys.executable}' '{RUNNER}'"])):
            found = [[boxes_of(o, i) for i in range(samples.count)] for o in outputs]
            if m.boxes:
                truth_of = m.truth(shared, samples)
                truth = [np.array([[*row[1:], row[0], 0] for row in truth_of(n)]).reshape(-1, 6) for n in samples.names]
                ap = [taskscores.average_precisions(f, truth) for f in found]
                want = {"ap50": [a[:, 0].mean() for a in ap], "map": [a.mean() for a in ap]}
            else:
                truth = [np.concatenate([b[:, :4], b[:, 5:], b[:, 5:]], 1) if len(b) else np.zeros((0, 6)) for b in found[0]]
                want = {"f1": [1.0, taskscores.f1(found[1], truth, 0.7)]}
            got = metrics_of_both(c, model, quant, data, *judged, *more)
            hold_scores(c, f"{name}, {samples.count} pictures{where}", got, want)
            print(f"{name}, {samples.count} pictures{where}: " + ", ".join(f"{n} {v[0]:.6f} and {v[1]:.6f} as int8" for n, v in want.items()))


def metrics_of_both(c, model, quant, data, *more):
    """As evaluate, of the whole run alone."""
    report = c.folder / "eval.json"
    tool.run([c.qeval, model, quant, "--data", data, *c.noted(more), "-q", "--no-latency", "--no-layers", "--json", report])
    models = json.loads(report.read_text())["models"]
    return {name: (models[0]["metrics"].get(name), value) for name, value in models[1]["metrics"].items()}


def heard(outputs):
    return outputs.reshape(-1) > 0.5


def check_voice(c, shared):
    """Agreement over its recorded states, and from its recording, where each model has states of its own."""
    model, quant, speech = shared / "models/silero_vad_16k.onnx", c.folder / "silero.int8.onnx", shared / "data/silero"
    kept = speech / "silero_vad_16k_frames.npz"
    c.convert(model, quant, "--data", kept)
    recorded, sessions = np.load(kept), [peer.session(m) for m in (model, quant)]
    rate, stored = {"sr": np.array(16000)}, [heard(tool.run_qeval(c.qeval, m, kept, c.folder / "out.npz")["output"]) for m in (model, quant)]
    theirs = [heard(np.concatenate([s.run(["output"], {"input": x, "state": h, **rate})[0] for x, h in zip(recorded["input"], recorded["state"])])) for s in sessions]
    got, _ = evaluate(c, model, quant, kept, "--metric", "agreement")
    hold_scores(c, "silero, recorded states", got, {"agreement": [None, float((stored[0] == stored[1]).mean())]})
    hold_scores(c, "silero, recorded states, ONNX Runtime", got, {"agreement": [None, float((theirs[0] == theirs[1]).mean())]})
    steps = ["-p", "rate=16000:lead=64:frame=576:hop=512", "-p", "sr/value=16000", "--state", "stateN=state"]
    framed = [heard(tool.run_qeval(c.qeval, m, speech / "test_16k.wav", c.folder / "out.npz", extra=steps)["output"]) for m in (model, quant)]
    got = metrics_of_both(c, model, quant, speech / "test_16k.wav", *steps, "--metric", "agreement")
    hold_scores(c, "silero, its recording", got, {"agreement": [None, float((framed[0] == framed[1]).mean())]})
    # Of the int8 model the two runtimes differ: where a value lies within a float's last bits of the middle between two quantized values, it is rounded either way,
    # and the state carries the difference on. So outputs of ONNX Runtime are judged by a script that has them from there.
    recording, states = [check_states.windows(speech / "test_16k.wav", 64, 576, 512)], {"stateN": "state"}
    run = [heard(check_states.run(m, recording, states, rate)[0]["output"]) for m in (model, quant)]
    got = metrics_of_both(c, model, quant, speech / "test_16k.wav", *steps, "--metric", "agreement", "--runner", f"'{sys.executable}' '{RUNNER}'")
    hold_scores(c, "silero, its recording in ONNX Runtime", got, {"agreement": [None, float((run[0] == run[1]).mean())]})


def check_sentences(c, model, shared):
    """Spearman's and Pearson's of 400 pairs, of float by ONNX Runtime as well."""
    pairs, quant = shared / "data/stsb/eval.npz", c.folder / "minilm.int8.onnx"
    c.convert(model, quant, "--data", shared / "data/stsb/calib.npz")
    scores, decode = np.load(pairs)["scores"], ["--decode", "embeddings:output=sentence_embedding"]
    got = metrics_of_both(c, model, quant, pairs, "--truth", pairs, *decode)
    said = [taskscores.correlations(tool.run_qeval(c.qeval, m, pairs, c.folder / "out.npz")["sentence_embedding"], scores) for m in (model, quant)]
    hold_scores(c, "minilm", got, {"spearman": [s[0] for s in said], "pearson": [s[1] for s in said]})
    session, arrays = peer.session(model), np.load(pairs)
    rows = [session.run(["sentence_embedding"], {i.name: arrays[i.name][at:at + 16] for i in session.get_inputs()})[0] for at in range(0, 2 * len(scores), 16)]
    theirs = taskscores.correlations(np.concatenate(rows), scores)
    for name, value in zip(("spearman", "pearson"), theirs):
        c.hold(f"minilm: {name} by ONNX Runtime", f"{got[name][0]:.4f}" == f"{value:.4f}", f"{got[name][0]} for {value}")


def check_shared(c, shared):
    check_nanodet(c, shared)
    check_faces(c, shared)
    check_voice(c, shared)


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--shared", type=Path, default=tool.SHARED, help="folder with models/ and data/ [%(default)s]")
    parser.add_argument("--minilm", type=Path, metavar="FILE", help="MiniLM, as models/make_minilm.py of that folder writes it")
    parser.add_argument("--whole", action="store_true", help="all pictures, and int8 models of the shared detectors")
    args = parser.parse_args()
    with Judge(args) as c:
        pictures, sizes = write_pictures(c.folder, 12)
        for seed, family in enumerate(detectors.FAMILIES):
            if fnmatch(family.rule, args.only):
                check_detector(c, family, pictures, seed)
        for seed, family in enumerate(objects.FAMILIES, 50):
            if fnmatch(family.rule, args.only):
                check_objects(c, family, pictures, sizes, seed)
        for name, check in (("classes", lambda: [check_classes(c, *how) for how in ((7, "Softmax"), (7, ""), (2, "Softmax"), (1, "Sigmoid"))]),
                            ("pairs", lambda: check_pairs(c)), ("tokens", lambda: check_tokens(c)), ("labels", lambda: check_labels(c)),
                            ("texts", lambda: check_texts(c)), ("retrieval", lambda: check_retrieval(c)), ("padding", lambda: check_padding(c)),
                            ("maps", lambda: check_maps(c)),
                            ("minilm", lambda: check_sentences(c, args.minilm, args.shared) if args.minilm else None),
                            ("whole", lambda: check_whole(c, args.shared) if args.whole else None),
                            ("shared", lambda: check_shared(c, args.shared) if (args.shared / "models/nanodet_m_416.onnx").exists() else None)):
            if fnmatch(name, args.only):
                check()
        if args.only == "*":
            rules = {path.stem for path in (zoo.ROOT / "share/decode").glob("*.decode")}
            c.hold("rules: each has been used", rules == c.decoded, f"{rules ^ c.decoded}")
        return c.finish()


class Judge(Checker):
    """Knows by which rules it has judged, and of which kinds of reports it has joined parts."""

    def __init__(self, args):
        super().__init__(args)
        self.decoded, self.kinds = set(), []

    def is_new(self, kind):
        new = kind not in self.kinds
        self.kinds += [kind] * new
        return new

    def noted(self, words):
        words = [str(word) for word in words]
        self.decoded |= {word.split(":")[0] for before, word in zip(words, words[1:]) if before == "--decode"}
        return words


if __name__ == "__main__":
    sys.exit(main())

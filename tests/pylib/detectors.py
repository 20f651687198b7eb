"""Small detectors with random weights, in the styles in which the usual families are exported: name, rule, NumPy's decoding, the model."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import taskscores

WIDTH, HEIGHT, CLASSES, STRIDES = 96, 64, 3, (8, 16, 32)
MOST_FOUND = 40     # rows of what TensorFlow's detectors give


class Net:
    """Adds nodes; every tensor has a name of its own."""

    def __init__(self, seed):
        self.rng, self.nodes, self.constants, self.outputs = np.random.default_rng(seed), [], [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{name}", **attributes))
        return name

    def head(self, stride, channels):
        """[1,channels,h,w] of about unit deviation."""
        w = self.rng.normal(0, 1.5 / (stride * np.sqrt(3)), (channels, 3, stride, stride)).astype(np.float32)
        return self.add("Conv", "x", self.constant(w), strides=[stride, stride], kernel_shape=[stride, stride])

    def padded(self, stride, channels, spread):
        """[1,channels,h,w], where the last cells may hang over."""
        w = self.rng.normal(0, spread / (stride * np.sqrt(3)), (channels, 3, stride, stride)).astype(np.float32)
        return self.add("Conv", "x", self.constant(w), strides=[stride, stride], kernel_shape=[stride, stride], pads=[0, 0, -HEIGHT % stride, -WIDTH % stride])

    def rows(self, stride, channels):
        """[1,channels,cells]"""
        return self.add("Reshape", self.head(stride, channels), self.constant(np.array([1, channels, -1])))

    def scaled(self, x, scale, base):
        return self.add("Add", self.add("Mul", x, self.constant(np.float32(scale))), self.constant(np.float32(base)))

    def scores(self, x):
        return self.add("Sigmoid", self.scaled(x, 2, -2))

    def turned(self, x):
        return self.add("Transpose", x, perm=[0, 2, 1])

    def out(self, x, name=None, kind=TensorProto.FLOAT):
        if name:
            self.nodes.append(helper.make_node("Identity", [x], [name]))
        self.outputs.append(helper.make_tensor_value_info(name or x, kind, None))

    def save(self, path):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, HEIGHT, WIDTH])
        model = helper.make_model(helper.make_graph(self.nodes, "detector", [x], self.outputs, self.constants), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 13)])
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def cells():
    """Points of all cells and the stride of each: [n], [n], [n]."""
    parts = []
    for s in STRIDES:
        x, y = taskscores.grid(WIDTH, HEIGHT, s)
        parts.append(((x + 0.5) * s, (y + 0.5) * s, np.full(len(x), s)))
    return (np.concatenate(p) for p in zip(*parts))


def around_cells(net, columns):
    """[1,columns,n]: centre and size about each cell, then numbers of unit deviation; and these alone."""
    x, y, s = cells()
    all_rows = net.add("Concat", *(net.rows(stride, columns) for stride in STRIDES), axis=2)
    boxes = net.add("Slice", all_rows, net.constant(np.array([0])), net.constant(np.array([4])), net.constant(np.array([1])))
    rest = net.add("Slice", all_rows, net.constant(np.array([4])), net.constant(np.array([columns])), net.constant(np.array([1])))
    return net.scaled(boxes, np.stack([s, s, s, s])[None] / 4, np.stack([x, y, 2 * s, 2 * s])[None]), rest


def nanodet(net):
    for s in STRIDES:
        net.out(net.scores(net.turned(net.rows(s, 80))))
        net.out(net.turned(net.rows(s, 32)))


def yolov5(net):
    boxes, rest = around_cells(net, 5 + CLASSES)
    net.out(net.turned(net.add("Concat", boxes, net.scores(rest), axis=1)))


def yolov8(net):
    boxes, rest = around_cells(net, 4 + CLASSES)
    net.out(net.add("Concat", boxes, net.scores(rest), axis=1))


def yolox(net):
    raw = net.add("Concat", *(net.rows(s, 5 + CLASSES) for s in STRIDES), axis=2)
    boxes = net.add("Slice", raw, net.constant(np.array([0])), net.constant(np.array([4])), net.constant(np.array([1])))
    rest = net.add("Slice", raw, net.constant(np.array([4])), net.constant(np.array([5 + CLASSES])), net.constant(np.array([1])))
    net.out(net.turned(net.add("Concat", net.scaled(boxes, 0.5, 0.5), net.scores(rest), axis=1)))


def yolov7_raw(net):
    for s in STRIDES:
        head = net.add("Reshape", net.head(s, 3 * (5 + CLASSES)), net.constant(np.array([1, 3, 5 + CLASSES, HEIGHT // s, WIDTH // s])))
        net.out(net.add("Transpose", head, perm=[0, 1, 3, 4, 2]))


def pyramid(net, classes, flat):
    """For each level shifts and scores of nine anchors, an anchor's columns adjacent: maps, or rows of all cells (flat)."""
    parts = []
    for s in taskscores.PYRAMID:
        down, across = -(-HEIGHT // s), -(-WIDTH // s)
        for columns, spread in ((4, 0.5), (classes, 1.5)):
            head = net.padded(s, 9 * columns, spread)
            if flat:
                head = net.add("Reshape", head, net.constant(np.array([1, 9, columns, down, across])))
                head = net.add("Reshape", net.add("Transpose", head, perm=[0, 3, 4, 1, 2]), net.constant(np.array([1, -1, columns])))
            parts.append(head)
    return parts[::2], parts[1::2]


def retinanet(net):
    boxes, logits = pyramid(net, CLASSES, True)
    net.out(net.scaled(net.add("Concat", *logits, axis=1), 2, -2))
    net.out(net.add("Concat", *boxes, axis=1))


def retinanet_levels(net):
    boxes, logits = pyramid(net, CLASSES, False)
    for level in logits:
        net.out(net.scores(level))
    for level in boxes:
        net.out(level)


def shares(net, boxes, form):
    """Centre and size as shares of the input, as corners where the form asks for them."""
    c = net.add("Mul", boxes, net.constant(np.float32([1 / WIDTH, 1 / HEIGHT, 1 / WIDTH, 1 / HEIGHT]).reshape(1, 4, 1)))
    if form == "corners":
        turn = np.float32([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]])
        c = net.add("MatMul", net.constant(turn), c)
    return net.turned(c)


def ssd(net):
    boxes, rest = around_cells(net, 6 + CLASSES)     # other than four scores, as boxes have
    net.out(net.add("Softmax", net.scaled(net.turned(rest), 2, 0), axis=2))
    net.out(shares(net, boxes, "corners"))


def detr(net):
    boxes, rest = around_cells(net, 6 + CLASSES)
    net.out(net.scaled(net.turned(rest), 3, 0))
    net.out(shares(net, boxes, "centres"))


def suppressed(net):
    """Boxes as corners [n,4], category ids [n] and scores [n] of as many boxes as there are."""
    boxes, rest = around_cells(net, 4 + CLASSES)
    turn = np.float32([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]])
    corners, scores = net.turned(net.add("MatMul", net.constant(turn), boxes)), net.scores(rest)
    kept = net.add("NonMaxSuppression", corners, scores, net.constant(np.array([20])), net.constant(np.float32([0.5])), net.constant(np.float32([0.3])))
    column = [net.add("Squeeze", net.add("Slice", kept, net.constant(np.array([i])), net.constant(np.array([i + 1])), net.constant(np.array([1]))),
                      net.constant(np.array([1]))) for i in range(3)]
    return (net.add("Gather", net.add("Squeeze", corners, net.constant(np.array([0]))), column[2]), net.add("Add", column[1], net.constant(np.array([1]))),
            net.add("GatherND", net.add("Squeeze", scores, net.constant(np.array([0]))), net.add("Slice", kept, net.constant(np.array([1])),
                    net.constant(np.array([3])), net.constant(np.array([1])))))


def torchvision(net):
    boxes, labels, scores = suppressed(net)
    net.out(boxes, "boxes")
    net.out(labels, "labels", TensorProto.INT64)
    net.out(scores, "scores")


def torchvision_table(outputs):
    return np.column_stack([outputs["boxes"], outputs["scores"], outputs["labels"]])


def filled(net, x, value, dims):
    """Rows of x, then rows of the value: [1,MOST_FOUND,...]"""
    whole = net.add("Concat", x, net.constant(np.full((MOST_FOUND, *dims), value, np.float32)), axis=0)
    first = net.add("Slice", whole, net.constant(np.array([0])), net.constant(np.array([MOST_FOUND])))
    return net.add("Reshape", first, net.constant(np.array([1, MOST_FOUND, *dims])))


def tensorflow(net):
    """Of fixed size: behind what was found stand rows that would score best, and count for nothing."""
    boxes, labels, scores = suppressed(net)
    shares_of = net.add("Mul", boxes, net.constant(np.float32([1 / WIDTH, 1 / HEIGHT, 1 / WIDTH, 1 / HEIGHT])))
    turned = net.add("Gather", shares_of, net.constant(np.array([1, 0, 3, 2])), axis=1)     # y before x
    count = net.add("Cast", net.add("Slice", net.add("Shape", scores), net.constant(np.array([0])), net.constant(np.array([1]))), to=TensorProto.FLOAT)
    net.out(filled(net, turned, 0.5, (4,)), "detection_boxes")
    net.out(filled(net, net.add("Cast", labels, to=TensorProto.FLOAT), 1, ()), "detection_classes")
    net.out(filled(net, scores, 0.99, ()), "detection_scores")
    net.out(net.add("Min", count, net.constant(np.float32([MOST_FOUND]))), "num_detections")


def tensorflow_table(outputs):
    n = int(outputs["num_detections"])
    boxes = outputs["detection_boxes"][:n].astype(np.float64) * [HEIGHT, WIDTH, HEIGHT, WIDTH]
    return np.column_stack([boxes[:, [1, 0, 3, 2]], outputs["detection_scores"][:n], outputs["detection_classes"][:n]])


def ultraface(net):
    boxes, rest = around_cells(net, 6)
    net.out(net.add("Softmax", net.scaled(net.turned(rest), 2, 0), axis=2))
    net.out(shares(net, boxes, "corners"))


def end_to_end(net, boxes, rest, more=(), classes=CLASSES):
    """The best rows with their class, as the graphs of YOLOv10 and YOLO26 end: [1,MOST_FOUND,6 + more]"""
    turn = np.float32([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]])
    corners, scores = net.turned(net.add("MatMul", net.constant(turn), boxes)), net.turned(net.scores(rest))
    def count(*v):
        return net.constant(np.array(v))
    best = net.add("Reshape", scores, count(1, -1))
    net.nodes.append(helper.make_node("TopK", [best, count(MOST_FOUND)], ["best", "at"], axis=1))
    cell, number = net.add("Div", "at", net.constant(np.array(classes))), net.add("Mod", "at", net.constant(np.array(classes)))
    def chosen(x, columns):
        return net.add("GatherElements", x, net.add("Tile", net.add("Unsqueeze", cell, count(2)), count(1, 1, columns)), axis=1)
    parts = [chosen(corners, 4), net.add("Unsqueeze", "best", count(2)), net.add("Unsqueeze", net.add("Cast", number, to=TensorProto.FLOAT), count(2))]
    net.out(net.add("Concat", *parts, *(chosen(net.turned(x), columns) for x, columns in more), axis=2))


def yolov10(net):
    end_to_end(net, *around_cells(net, 4 + CLASSES))


def yolov10_table(outputs):
    return taskscores.yolov10(outputs, WIDTH, HEIGHT)


def rtdetr(net):
    boxes, rest = around_cells(net, 6 + CLASSES)
    net.out(net.scaled(net.turned(rest), 3, -2), "logits")
    net.out(shares(net, boxes, "centres"), "pred_boxes")


def blazeface(net):
    """Rows of a cell are adjacent; those of stride 16 come last."""
    raw, logits = [], []
    for s, times in ((8, 2), (16, 6)):
        for parts, columns in ((raw, 16), (logits, 1)):
            head = net.add("Transpose", net.head(s, times * columns), perm=[0, 2, 3, 1])
            parts.append(net.add("Reshape", head, net.constant(np.array([1, -1, columns]))))
    net.out(net.scaled(net.add("Concat", *logits, axis=1), 2, -2))
    grow, base = np.full(16, 4, np.float32), np.zeros(16, np.float32)
    base[2:4] = 20
    net.out(net.add("Add", net.add("Mul", net.add("Concat", *raw, axis=1), net.constant(grow)), net.constant(base)))


class Family:
    """least, limit, most and so on are those of the rule in share/decode, or what `more` makes of them."""

    def __init__(self, rule, build, decode, least=0.001, limit=0.6, most=300, more="", table=None, f1_least=None, **how):
        self.rule, self.build, self.decode, self.more, self.table, self.f1_least = rule, build, decode, more, table, f1_least
        self.least, self.limit, self.most, self.how = least, limit, most, how

    @property
    def word(self):
        return self.rule + self.more

    def boxes(self, outputs):
        """[n][6] in pixels of the input, of the outputs of one picture, without the batch."""
        if self.decode is None:     # suppressed inside
            table = self.table(outputs).astype(np.float64).reshape(-1, 6)
            return table[np.argsort(-table[:, 4], kind="stable")][:self.most]
        boxes, scores = self.decode(outputs, WIDTH, HEIGHT)
        return taskscores.suppress(boxes, scores, self.least, self.limit, self.most, **self.how)


FAMILIES = [
    Family("nanodet", nanodet, taskscores.nanodet, 0.5, 0.6, 100, ":score=0.5", most_of_class=True),
    Family("yolov5", yolov5, taskscores.yolov5, 0.001, 0.6),
    Family("yolov7-raw", yolov7_raw, taskscores.yolov7_raw, 0.05, 0.45, 100, ":score=0.05:nms=0.45:most=100"),
    Family("yolov8", yolov8, taskscores.yolov8, 0.05, 0.7, 300, ":score=0.05"),
    Family("yolov10", yolov10, None, 0.001, None, 300, table=yolov10_table),
    Family("yolox", yolox, taskscores.yolox, 0.001, 0.65),
    Family("ssd", ssd, taskscores.ssd, 0.01, 0.45, 200),
    Family("retinanet", retinanet, taskscores.retinanet, 0.2, 0.5, 300, ":score=0.2"),
    Family("retinanet-levels", retinanet_levels, taskscores.retinanet_levels, 0.2, 0.5, 100, ":score=0.2"),
    Family("detr", detr, taskscores.detr, 0.01, None, 100, best_alone=True),
    Family("rtdetr", rtdetr, taskscores.rtdetr, 0.001, None, 300),
    Family("torchvision", torchvision, None, 0.01, None, 100, table=torchvision_table),
    Family("tensorflow", tensorflow, None, 0.01, None, 100, table=tensorflow_table),
    Family("ultraface", ultraface, taskscores.ssd, 0.7, 0.3, 10000, f1_least=0.7),
    Family("blazeface", blazeface, taskscores.blazeface, 0.5, 0.3, 100),
]

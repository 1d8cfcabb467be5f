"""Writes the small graphs in `test/models/values/`, by which values are tried and runs are timed.

    /usr/bin/python3 test/models/values.py

Needs numpy and onnx.
"""

import pathlib

import numpy as np
from onnx import TensorProto as T
from onnx import checker, save
from onnx import helper as h
from onnx import numpy_helper as nh

OUT = pathlib.Path(__file__).parent / "values"


def write(name, nodes, inputs, outputs, initializers=(), known=True):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    opset, ir = (17, 8) if known else (21, 10)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir)
    if known:
        checker.check_model(model)
    save(model, OUT / f"{name}.onnx")


def value(name, kind, shape):
    return h.make_tensor_value_info(name, kind, shape)


def mixed():
    """A tensor, numbers of three kinds, truth and texts in; as many kinds out."""
    nodes = [
        h.make_node("Mul", ["matrix", "scale"], ["scaled"]),
        h.make_node("ReduceSum", ["scaled"], ["total"], keepdims=0),
        h.make_node("Cast", ["scaled"], ["half"], to=T.FLOAT16),
        h.make_node("Cast", ["scaled"], ["double"], to=T.DOUBLE),
        h.make_node("Add", ["count", "one"], ["next"]),
        h.make_node("Not", ["flag"], ["opposite"]),
        h.make_node("Identity", ["texts"], ["said"]),
    ]
    inputs = [
        value("matrix", T.FLOAT, ["rows", 3]),
        value("scale", T.FLOAT, []),
        value("count", T.INT64, []),
        value("flag", T.BOOL, []),
        value("texts", T.STRING, ["texts_length"]),
    ]
    outputs = [
        value("scaled", T.FLOAT, ["rows", 3]),
        value("total", T.FLOAT, []),
        value("half", T.FLOAT16, ["rows", 3]),
        value("double", T.DOUBLE, ["rows", 3]),
        value("next", T.INT64, []),
        value("opposite", T.BOOL, []),
        value("said", T.STRING, ["texts_length"]),
    ]
    write("mixed", nodes, inputs, outputs, [nh.from_array(np.int64(1), "one")])


def batch():
    """Pictures of 4 x 2, any number at once: their negatives and the brightness of each."""
    nodes = [
        h.make_node("Sub", ["white", "pictures"], ["negatives"]),
        h.make_node("ReduceMean", ["pictures"], ["brightness"], axes=[1, 2, 3], keepdims=0),
    ]
    inputs = [value("pictures", T.FLOAT, ["batch", 3, 2, 4])]
    outputs = [
        value("negatives", T.FLOAT, ["batch", 3, 2, 4]),
        value("brightness", T.FLOAT, ["batch"]),
    ]
    write("batch", nodes, inputs, outputs, [nh.from_array(np.float32(1), "white")])


def slow():
    """Convolutions of a picture that keep one thread busy for some tens of milliseconds."""
    nodes, initializers, last = [], [], "picture"
    for index, (channels, stride) in enumerate([(3, 2), (32, 1), (32, 1), (32, 1)]):
        # Only the shape of the weights is stored; the runtime fills them in when it loads.
        shape = nh.from_array(np.array([32, channels, 3, 3], np.int64), f"shape{index}")
        fill = nh.from_array(np.array([1 / (9 * channels)], np.float32))
        nodes += [
            h.make_node("ConstantOfShape", [shape.name], [f"weights{index}"], value=fill),
            h.make_node(
                "Conv", [last, f"weights{index}"], [f"layer{index}"],
                kernel_shape=[3, 3], strides=[stride, stride], pads=[1, 1, 1, 1],
            ),
        ]
        initializers.append(shape)
        last = f"layer{index}"
    nodes.append(h.make_node("ReduceMean", [last], ["means"], axes=[2, 3], keepdims=0))
    inputs = [value("picture", T.FLOAT, [1, 3, 224, 224])]
    write("slow", nodes, inputs, [value("means", T.FLOAT, [1, 32])], initializers)


def foreign():
    """Types of ONNX that the runtime's JavaScript has no arrays for."""
    # Older versions of the package have no name for numbers of 4 bits.
    for name, kind in [("bfloat16", T.BFLOAT16), ("int4", 22), ("complex64", T.COMPLEX64)]:
        shape = nh.from_array(np.array([2], np.int64), "shape")
        node = h.make_node("Reshape", ["x", "shape"], ["y"])
        write(name, [node], [value("x", kind, [2])], [value("y", kind, [2])], [shape], False)
    sequence = h.make_tensor_sequence_value_info
    node = h.make_node("Identity", ["x"], ["y"])
    write("sequence", [node], [sequence("x", T.FLOAT, [2])], [sequence("y", T.FLOAT, [2])])


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for graph in (mixed, batch, slow, foreign):
        graph()

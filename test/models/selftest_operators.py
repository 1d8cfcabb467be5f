"""Writes `src/engine/onnx/selftest/operator-graph.ts`: operators of the GPU self-test beside the decoder's.

    /usr/bin/python3 test/models/selftest_operators.py && npm run format

The script needs numpy and onnx. The graph has recurrent cells, `If`, `Loop`, padding by reflection, and
convolutions of the layouts in use: of one and two dimensions, with strides, by channel, of length 1, and
of patches. Like an image encoder, it has layer normalization and attention without a mask, both as
single operators and in parts, as exports have them. The weights are drawn as in `selftest.py`, so only
the graph is stored. The script computes the expected outputs in double precision.
"""

import base64
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

OUT = pathlib.Path(__file__).parents[2] / "src/engine/onnx/selftest/operator-graph.ts"
LOCATION = "weights"
CELLS = 8
ROWS, WIDTH, HEADS = 12, 16, 2
# Factor of the attention scores. With the usual one, small weights attend to all rows alike, so a
# kernel that confuses rows stays within the tolerance of the test.
SHARE = 16 * (WIDTH / HEADS) ** -0.5
SHAPES = {
    "sound": [1, 8, 20],
    "picture": [1, 3, 16, 16],
    "w1": [8, 8, 3],
    "w_channel": [8, 1, 4],
    "w_stride": [12, 8, 3],
    "lstm_w": [1, 4 * CELLS, 12],
    "lstm_r": [1, 4 * CELLS, CELLS],
    "lstm_b": [1, 8 * CELLS],
    "gru_w": [1, 3 * CELLS, CELLS],
    "gru_r": [1, 3 * CELLS, CELLS],
    "gru_b": [1, 6 * CELLS],
    "w_loop": [CELLS, CELLS],
    "w2": [16, 3, 3, 3],
    "w2_channel": [16, 1, 3, 3],
    "w2_one": [8, 16, 1, 1],
    "w2_patch": [8, 8, 4, 4],
    "rows": [1, ROWS, WIDTH],
    "norm": [WIDTH],
    "norm_bias": [WIDTH],
    **{f"{part}{layer}": [WIDTH, WIDTH] for layer in (0, 1) for part in "qkv"},
}


def draw(count):
    """Returns pseudorandom numbers from -0.5 to 0.5, the same as `selftest.ts`."""
    x = np.arange(1, count + 1, dtype=np.uint64) * 2654435761 % 2**32
    x = (x ^ (x >> 15)) * 2246822519 % 2**32
    x = (x ^ (x >> 13)) * 3266489917 % 2**32
    return ((x >> 24).astype(np.float64) - 128) / 256


def tensors():
    """Returns the numbers of each weight, by name, in the order of their bytes."""
    numbers = draw(sum(int(np.prod(shape)) for shape in SHAPES.values()))
    made, start = {}, 0
    for name, shape in SHAPES.items():
        count = int(np.prod(shape))
        made[name] = numbers[start : start + count].reshape(shape)
        start += count
    return made


def export(made):
    initializers, offset = [], 0
    for name, values in made.items():
        tensor = onnx.TensorProto(name=name, dims=values.shape, data_location=T.EXTERNAL)
        tensor.data_type = T.FLOAT
        for key, value in (("location", LOCATION), ("offset", offset), ("length", 4 * values.size)):
            tensor.external_data.add(key=key, value=str(value))
        initializers.append(tensor)
        offset += 4 * values.size
    small = {"pads": [0, 0, 2, 0, 0, 2], "one": [1], "cells": [1, CELLS], "rounds": 3}
    initializers += [nh.from_array(np.array(value, np.int64), name) for name, value in small.items()]
    initializers += [nh.from_array(np.array(value, np.float32), name) for name, value in {"low": -1000, "two": 2}.items()]

    split = {"heads": [1, ROWS, HEADS, WIDTH // HEADS], "whole": [1, ROWS, WIDTH]}
    initializers += [nh.from_array(np.array(value, np.int64), name) for name, value in split.items()]
    numbers = {"epsilon": 1e-5, "share": SHARE}
    initializers += [nh.from_array(np.array(value, np.float32), name) for name, value in numbers.items()]

    def value(name, *shape, kind=T.FLOAT):
        return h.make_tensor_value_info(name, kind, shape)

    def branch(name, node):
        return h.make_graph([node], name, [], [value(node.output[0], 1, CELLS)])

    body = h.make_graph(
        [
            h.make_node("Identity", ["go"], ["goes"]),
            h.make_node("MatMul", ["state", "w_loop"], ["product"]),
            h.make_node("Tanh", ["product"], ["next"]),
        ],
        "body",
        [value("i", kind=T.INT64), value("go", kind=T.BOOL), value("state", 1, CELLS)],
        [value("goes", kind=T.BOOL), value("next", 1, CELLS)],
    )
    nodes = [
        # The GPU gets no constants, which the runtime would compute while it loads the graph.
        h.make_node("Mul", ["sound", "scale"], ["sound_in"]),
        h.make_node("Pad", ["sound_in", "pads"], ["padded"], mode="reflect"),
        h.make_node("Conv", ["padded", "w1"], ["c1"]),
        h.make_node("Conv", ["c1", "w_channel"], ["c2"], group=8),
        h.make_node("Conv", ["c2", "w_stride"], ["c3"], strides=[2], pads=[1, 1]),
        h.make_node("Transpose", ["c3"], ["steps"], perm=[2, 0, 1]),
        h.make_node("LSTM", ["steps", "lstm_w", "lstm_r", "lstm_b"], ["lstm"], hidden_size=CELLS),
        h.make_node("Squeeze", ["lstm", "one"], ["lstm_out"]),
        h.make_node(
            "GRU",
            ["lstm_out", "gru_w", "gru_r", "gru_b"],
            ["", "gru"],
            hidden_size=CELLS,
            linear_before_reset=1,
        ),
        h.make_node("Reshape", ["gru", "cells"], ["cell"]),
        h.make_node("ReduceSum", ["cell"], ["sum"], keepdims=0),
        h.make_node("Greater", ["sum", "low"], ["is_high"]),
        h.make_node(
            "If",
            ["is_high"],
            ["chosen"],
            then_branch=branch("then", h.make_node("Mul", ["cell", "two"], ["doubled"])),
            else_branch=branch("else", h.make_node("Neg", ["cell"], ["negative"])),
        ),
        h.make_node("Loop", ["rounds", "", "chosen"], ["recurrent"], body=body),
        h.make_node("Mul", ["picture", "scale"], ["picture_in"]),
        h.make_node("Conv", ["picture_in", "w2"], ["p1"], strides=[2, 2], pads=[1, 1, 1, 1]),
        h.make_node("Relu", ["p1"], ["p2"]),
        h.make_node("Conv", ["p2", "w2_channel"], ["p3"], group=16, pads=[1, 1, 1, 1]),
        h.make_node("Conv", ["p3", "w2_one"], ["p4"]),
        h.make_node("Conv", ["p4", "w2_patch"], ["convolved"], strides=[4, 4]),
        *attention_nodes(),
    ]
    outputs = [value("recurrent", 1, CELLS), value("convolved", 1, 8, 2, 2)]
    outputs.append(value("attended", 1, ROWS, WIDTH))
    graph = h.make_graph(nodes, "operators", [value("scale")], outputs, initializers)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)], ir_version=8)
    return model.SerializeToString()


def attention_nodes():
    """Two layers of an image encoder: the first in parts, the second of single operators."""
    nodes = [
        h.make_node("Mul", ["rows", "scale"], ["rows_in"]),
        h.make_node("ReduceMean", ["rows_in"], ["mean"], axes=[-1]),
        h.make_node("Sub", ["rows_in", "mean"], ["apart"]),
        h.make_node("Pow", ["apart", "two"], ["squares"]),
        h.make_node("ReduceMean", ["squares"], ["variance"], axes=[-1]),
        h.make_node("Add", ["variance", "epsilon"], ["above"]),
        h.make_node("Sqrt", ["above"], ["deviation"]),
        h.make_node("Div", ["apart", "deviation"], ["even"]),
        h.make_node("Mul", ["even", "norm"], ["scaled"]),
        h.make_node("Add", ["scaled", "norm_bias"], ["normed0"]),
    ]
    first, second = (
        [h.make_node("MatMul", [f"normed{layer}", f"{part}{layer}"], [f"{part}{layer}_out"]) for part in "qkv"]
        for layer in (0, 1)
    )
    nodes += first
    for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(h.make_node("Reshape", [f"{part}0_out", "heads"], [f"{part}_heads"]))
        nodes.append(h.make_node("Transpose", [f"{part}_heads"], [f"{part}_turned"], perm=order))
    return [
        *nodes,
        h.make_node("MatMul", ["q_turned", "k_turned"], ["raw"]),
        h.make_node("Mul", ["raw", "share"], ["scores"]),
        h.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        h.make_node("MatMul", ["shares", "v_turned"], ["seen"]),
        h.make_node("Transpose", ["seen"], ["seen_rows"], perm=[0, 2, 1, 3]),
        h.make_node("Reshape", ["seen_rows", "whole"], ["first_rows"]),
        h.make_node("Add", ["rows_in", "first_rows"], ["sum0"]),
        h.make_node("LayerNormalization", ["sum0", "norm", "norm_bias"], ["normed1"], epsilon=1e-5),
        *second,
        h.make_node(
            "MultiHeadAttention",
            ["q1_out", "k1_out", "v1_out"],
            ["second_rows"],
            domain="com.microsoft",
            num_heads=HEADS,
            scale=SHARE,
        ),
        h.make_node("Gelu", ["second_rows"], ["attended"], domain="com.microsoft"),
    ]


def convolve(x, w, stride=1, pad=0, group=1):
    """Returns a convolution of one or two dimensions."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * axes)
    sizes = [(length - kernel) // stride + 1 for length, kernel in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros([1, w.shape[0], *sizes])
    per_in, per_out = x.shape[1] // group, w.shape[0] // group
    for out in range(w.shape[0]):
        first = out // per_out * per_in
        for at in np.ndindex(*sizes):
            window = tuple(slice(a * stride, a * stride + k) for a, k in zip(at, w.shape[2:]))
            y[(0, out, *at)] = (x[(0, slice(first, first + per_in), *window)] * w[out]).sum()
    return y


def attend(t, rows, layer):
    def heads(part):
        return (rows @ t[f"{part}{layer}"]).reshape(ROWS, HEADS, -1).transpose(1, 0, 2)

    q, k, v = heads("q"), heads("k"), heads("v")
    raw = np.exp(q @ k.transpose(0, 2, 1) * SHARE)
    return (raw / raw.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(ROWS, WIDTH)


def encode(t):
    def normed(rows):
        even = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
        return even * t["norm"] + t["norm_bias"]

    rows = t["rows"][0]
    rows = attend(t, normed(rows + attend(t, normed(rows), 0)), 1)
    return 0.5 * rows * (1 + np.vectorize(math.erf)(rows / math.sqrt(2)))


def forward(t):
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    x = np.pad(t["sound"], [(0, 0), (0, 0), (2, 2)], mode="reflect")
    x = convolve(convolve(x, t["w1"]), t["w_channel"], group=8)
    steps = convolve(x, t["w_stride"], stride=2, pad=1)[0].T
    hidden, cell, outputs = np.zeros(CELLS), np.zeros(CELLS), []
    bias = t["lstm_b"][0]
    for step in steps:
        gates = t["lstm_w"][0] @ step + t["lstm_r"][0] @ hidden + bias[: 4 * CELLS] + bias[4 * CELLS :]
        i, o, f, c = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    state, bias = np.zeros(CELLS), t["gru_b"][0]
    for step in outputs:
        wz, wr, wh = np.split(t["gru_w"][0] @ step + bias[: 3 * CELLS], 3)
        rz, rr, rh = np.split(t["gru_r"][0] @ state + bias[3 * CELLS :], 3)
        z = sigmoid(wz + rz)
        state = (1 - z) * np.tanh(wh + sigmoid(wr + rr) * rh) + z * state
    state = 2 * state
    for _ in range(3):
        state = np.tanh(state @ t["w_loop"])
    x = np.maximum(convolve(t["picture"], t["w2"], stride=2, pad=1), 0)
    x = convolve(convolve(x, t["w2_channel"], pad=1, group=16), t["w2_one"])
    convolved = convolve(x, t["w2_patch"], stride=4).ravel()
    return {"recurrent": state, "convolved": convolved, "attended": encode(t).ravel()}


def main():
    made = tensors()
    text = base64.b64encode(export(made)).decode()
    pieces = " +\n".join(f"  '{text[at : at + 90]}'" for at in range(0, len(text), 90))
    expected = {key: [round(float(x), 5) for x in values] for key, values in forward(made).items()}
    count = sum(values.size for values in made.values())
    OUT.write_text(
        "/** Operators of the GPU self-test. `test/models/selftest_operators.py` writes this file. */\n"
        f"export const OPERATOR_WEIGHTS = {count}\n"
        "/** Graph in base64. */\n"
        f"export const OPERATOR_GRAPH =\n{pieces}\n"
        "/** Expected numbers of each output. */\n"
        f"export const EXPECTED_OUTPUTS = {expected}\n"
    )
    print(OUT.name, OUT.stat().st_size, {key: np.abs(values).max() for key, values in expected.items()})


main()

"""The graph of a layout, and the one before it where there is one."""

from itertools import groupby

from onnx import TensorProto as T

from layout_builder import Builder, scalar, value
from layout_mixers import MIXERS, bias
from layout_weights import (
    BRANCHES, EXTRA, HALVES, HEAD, HIDDEN, LAYOUTS, QUARTERS, TURNS, VOCAB, quantize,
)

ROWS = "batch_size", "sequence_length"


def export(name, made):
    """The graph, and the one before it where there is one."""
    layout = LAYOUTS[name]["layers"]
    kind = T.FLOAT16 if name in HALVES else T.FLOAT
    given = dict(made)
    if name in QUARTERS:
        for key in [key for key, array in made.items() if array.ndim == 2 and key != "embed"]:
            if key not in ("cos", "sin"):
                packed, scales, _ = quantize(given.pop(key))
                given |= {f"{key}.packed": packed, f"{key}.scales": scales}
    before = None
    if name == "split":
        before = embedder({key: given.pop(key) for key in ("embed", "extra")})
    b = Builder(given, kind)
    caches, outputs = [], []
    inputs = [value("attention_mask", T.INT64, "batch_size", "total_sequence_length")]
    if name == "split":
        stream = "inputs_embeds"
        inputs += [
            value("inputs_embeds", kind, *ROWS, HIDDEN),
            value("per_layer_inputs", kind, *ROWS, 2, EXTRA),
        ]
    else:
        inputs.insert(0, value("input_ids", T.INT64, *ROWS))
        stream = b.add("Gather", ["embed", "input_ids"])
    keeps = name in ("conv", "split", "fp16", "q4f16")
    if keeps:
        inputs.append(value("num_logits_to_keep", T.INT64))
    positions = "position_ids"
    if name == "recurrent":
        inputs.append(value("position_ids", T.INT64, 3, *ROWS))
        positions = b.add("Gather", ["position_ids", scalar(b, 0)], axis=0)
    elif name in TURNS:
        inputs.append(value("position_ids", T.INT64, 3, *ROWS))
    elif "grouped" not in layout:
        inputs.append(value("position_ids", T.INT64, *ROWS))
    if name in BRANCHES:
        inputs.append(value("use_cache_branch", T.BOOL, 1))
        stream = b.add("Add", [stream, b.add("Gather", ["places", "position_ids"])])
        positions = b.add("Sub", ["position_ids", b.ints(1)])

    width = b.add("Gather", [b.add("Shape", ["attention_mask"]), scalar(b, 1)], axis=0)
    shared = {"positions": positions, "width": width}
    if name in TURNS:
        shared |= on_axes(b, TURNS[name])
    if "turned" in layout:
        shared |= one_by_one(b, shared)
    elif name in TURNS:
        shared["indices"] = in_sequence(b, width)
    if "grouped" in layout or "turned" in layout:
        total = b.add("ReduceSum", ["attention_mask", b.ints(1)], keepdims=0)
        less = b.add("Sub", [total, b.ints(1)])
        shared["lengths"] = b.add("Cast", [less], to=T.INT32)
        shared["total"] = b.add("Cast", [width], to=T.INT32)
    else:
        shared["bias"] = bias(b, shared)

    for layer, sort in enumerate(layout):
        normed = b.norm(stream, f"before{layer}")
        mixed = MIXERS[sort](b, normed, layer, shared, caches)
        stream = b.add("Add", [stream, b.linear(mixed, f"o{layer}")])
        if name == "split":
            extra = b.add("Gather", ["per_layer_inputs", scalar(b, layer)], axis=2)
            stream = b.add("Add", [stream, b.linear(extra, f"mix{layer}")])
        normed = b.norm(stream, f"between{layer}")
        gate = b.linear(normed, f"gate{layer}")
        silu = b.add("Mul", [gate, b.add("Sigmoid", [gate])])
        both = b.add("Mul", [silu, b.linear(normed, f"up{layer}")])
        stream = b.add("Add", [stream, b.linear(both, f"down{layer}")])
    normed = b.norm(stream, "norm")
    if keeps:
        # The last `num_logits_to_keep` positions.
        count = b.add("Reshape", ["num_logits_to_keep", b.ints(1)])
        start = b.add("Sub", [b.ints(0), count])
        normed = b.add("Slice", [normed, start, b.ints(2**31 - 1), b.ints(1)])
    b.add("Identity", [b.linear(normed, "head")], "logits")
    outputs.append(value("logits", kind, "batch_size", "kept", VOCAB))
    for past, present, shape, grown in caches:
        inputs.append(value(past, kind, *shape))
        outputs.append(value(present, kind, *grown))
    return b.graph(name, inputs, outputs), before


def on_axes(b, turns):
    """Angles of tokens by frame, row and column."""
    shared = {}
    for table in ("cos", "sin"):
        parts, first = [], 0
        for axis, pairs in groupby(turns):
            end = first + len(list(pairs))
            positions = b.add("Gather", ["position_ids", scalar(b, axis)], axis=0)
            rows = b.add("Gather", [table, positions])
            parts.append(b.add("Slice", [rows, b.ints(first), b.ints(end), b.ints(2)]))
            first = end
        shared[table] = b.add("Concat", parts, axis=2)
    return shared


def in_sequence(b, width):
    """Where each token is in its sequence."""
    count = b.add("Gather", [b.add("Shape", ["position_ids"]), scalar(b, 2)], axis=0)
    past = b.add("Sub", [width, count])
    indices = b.add("Range", [past, width, scalar(b, 1)])
    return b.add("Unsqueeze", [indices, b.ints(0)])


def one_by_one(b, shared):
    """Tables with a line for each token of a batch, and the line of each token."""
    flat = b.ints(-1, HEAD // 2)
    tables = {f"flat_{each}": b.add("Reshape", [shared[each], flat]) for each in ("cos", "sin")}
    count = b.add("Div", [b.add("Size", ["position_ids"]), scalar(b, 3)])
    lines = b.add("Range", [scalar(b, 0), count, scalar(b, 1)])
    shape = b.add("Slice", [b.add("Shape", ["position_ids"]), b.ints(1), b.ints(3)])
    return tables | {"order": b.add("Reshape", [lines, shape])}


def embedder(given):
    b = Builder(given, T.FLOAT)
    b.add("Gather", ["embed", "input_ids"], "inputs_embeds")
    rows = b.add("Gather", ["extra", "input_ids"])
    b.add("Reshape", [rows, b.ints(0, 0, 2, EXTRA)], "per_layer_inputs")
    outputs = [
        value("inputs_embeds", T.FLOAT, *ROWS, HIDDEN),
        value("per_layer_inputs", T.FLOAT, *ROWS, 2, EXTRA),
    ]
    return b.graph("embed", [value("input_ids", T.INT64, *ROWS)], outputs)

"""What mixes tokens in a layer, as exports write it: attention of three kinds, a convolution, a state."""

from onnx import TensorProto as T
from onnx import helper as h

from layout_builder import scalar
from layout_weights import DECAY, HEAD, HEADS, HIDDEN, KV_HEADS, MEMORY, TAPS


def bias(b, shared):
    """0 where a token may look, which is not ahead, and a large negative number elsewhere."""
    keys = b.add("Range", [scalar(b, 0), shared["width"], scalar(b, 1)])
    places = shared.get("indices", shared["positions"])
    queries = b.add("Unsqueeze", [places, b.ints(1, 3)])
    here = b.add("Unsqueeze", [b.add("Cast", ["attention_mask"], to=T.BOOL), b.ints(1, 2)])
    seen = b.add("And", [b.add("LessOrEqual", [keys, queries]), here])
    return b.add("Where", [seen, b.number(0.0), b.number(-6e4 if b.kind == T.FLOAT16 else -1e9)])


def pasts(caches, layer, shape, grown):
    names = []
    for part in ("key", "value"):
        names.append((f"past_key_values.{layer}.{part}", f"present.{layer}.{part}"))
        caches.append((*names[-1], shape[part], grown[part]))
    return names


def lists(caches, layer):
    shapes = [
        dict.fromkeys(("key", "value"), ("batch_size", KV_HEADS, f"{when}_sequence_length", HEAD))
        for when in ("past", "total")
    ]
    return pasts(caches, layer, *shapes)


def group_query(b, projected, layer, shared, caches, tables):
    """Attention that turns queries and keys by the tables, if there are some."""
    key, val = lists(caches, layer)
    return b.microsoft(
        "GroupQueryAttention",
        [*projected, key[0], val[0], shared["lengths"], shared["total"], *tables],
        *(f"attended{layer}", key[1], val[1]),
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        do_rotary=int(len(tables) > 0),
    )


def grouped(b, x, layer, shared, caches):
    projected = [b.linear(x, f"{part}{layer}") for part in "qkv"]
    return group_query(b, projected, layer, shared, caches, ("cos", "sin"))


def turned(b, x, layer, shared, caches):
    """The same, where queries and keys are turned before, each token by angles of its own."""
    queries, keys, values = (b.linear(x, f"{part}{layer}") for part in "qkv")
    angles = [shared[each] for each in ("order", "flat_cos", "flat_sin")]
    queries, keys = (b.microsoft("RotaryEmbedding", [each, *angles]) for each in (queries, keys))
    return group_query(b, (queries, keys, values), layer, shared, caches, ())


def plain(b, x, layer, shared, caches):
    key, val = lists(caches, layer)

    def heads(part, count):
        split = b.add("Reshape", [b.linear(x, f"{part}{layer}"), b.ints(0, 0, count, HEAD)])
        return b.add("Transpose", [split], perm=[0, 2, 1, 3])

    def rotate(states):
        tables = []
        for table in ("cos", "sin"):
            rows = shared.get(table) or b.add("Gather", [table, shared["positions"]])
            tables.append(b.add("Unsqueeze", [rows, b.ints(1)]))
        cos, sin = tables
        low, high = f"{states}.low", f"{states}.high"
        b.add("Split", [states, b.ints(HEAD // 2, HEAD // 2)], low, high, axis=-1)
        left = b.add("Sub", [b.add("Mul", [low, cos]), b.add("Mul", [high, sin])])
        right = b.add("Add", [b.add("Mul", [high, cos]), b.add("Mul", [low, sin])])
        return b.add("Concat", [left, right], axis=-1)

    def repeat(states):
        apart = b.add("Unsqueeze", [states, b.ints(2)])
        each = b.add("Expand", [apart, b.ints(1, 1, HEADS // KV_HEADS, 1, 1)])
        return b.add("Reshape", [each, b.ints(0, HEADS, -1, HEAD)])

    queries = rotate(heads("q", HEADS))
    b.add("Concat", [key[0], rotate(heads("k", KV_HEADS))], key[1], axis=2)
    b.add("Concat", [val[0], heads("v", KV_HEADS)], val[1], axis=2)
    turned = b.add("Transpose", [repeat(key[1])], perm=[0, 1, 3, 2])
    raw = b.add("Mul", [b.add("MatMul", [queries, turned]), b.number(HEAD**-0.5)])
    shares = b.add("Softmax", [b.add("Add", [raw, shared["bias"]])], axis=-1)
    seen = b.add("Transpose", [b.add("MatMul", [shares, repeat(val[1])])], perm=[0, 2, 1, 3])
    return b.add("Reshape", [seen, b.ints(0, 0, -1)])


def branch(b, x, layer, shared, caches):
    batch = "batch_size x num_heads"
    shapes = [
        {"key": (batch, HEAD, f"{when}_length"), "value": (batch, f"{when}_length", HEAD)}
        for when in ("past", "total")
    ]
    key, val = pasts(caches, layer, *shapes)

    def heads(part, order, shape):
        split = b.add("Reshape", [b.linear(x, f"{part}{layer}"), b.ints(0, 0, HEADS, HEAD)])
        turned = b.add("Transpose", [split], perm=order)
        return b.add("Reshape", [turned, shape])

    count = b.add("Slice", [b.add("Shape", [x]), b.ints(1), b.ints(2)])
    tall = b.add("Concat", [b.ints(-1, HEAD), count], axis=0)
    long = b.add("Concat", [b.ints(-1), count, b.ints(HEAD)], axis=0)
    queries = heads("q", [0, 2, 1, 3], long)
    new = heads("k", [0, 2, 3, 1], tall), heads("v", [0, 2, 1, 3], long)
    for (past, present), states, axis in zip((key, val), new, (2, 1)):
        out = h.make_tensor_value_info(f"{present}.out", b.kind, None)
        join = h.make_node("Concat", [past, states], [f"{present}.out"], axis=axis)
        only = h.make_node("Identity", [states], [f"{present}.out"])
        sides = [h.make_graph([node], side, [], [out]) for node, side in ((join, "w"), (only, "o"))]
        sign = {"then_branch": sides[0], "else_branch": sides[1]}
        b.add("If", ["use_cache_branch"], present, **sign)
    raw = b.add("Mul", [b.add("MatMul", [queries, key[1]]), b.number(HEAD**-0.5)])
    flat = b.add("Squeeze", [shared["bias"], b.ints(1)])
    shares = b.add("Softmax", [b.add("Add", [raw, flat])], axis=-1)
    seen = b.add("Unsqueeze", [b.add("MatMul", [shares, val[1]]), b.ints(0)])
    return b.add("Reshape", [b.add("Transpose", [seen], perm=[0, 2, 1, 3]), b.ints(0, 0, -1)])


def conv(b, x, layer, shared, caches):
    past, present = f"past_conv.{layer}", f"present_conv.{layer}"
    caches.append((past, present, *2 * [("batch_size", HIDDEN, TAPS)]))
    turned = b.add("Transpose", [b.linear(x, f"in{layer}")], perm=[0, 2, 1])
    parts = [f"part{layer}.{index}" for index in range(3)]
    b.add("Split", [turned, b.ints(HIDDEN, HIDDEN, HIDDEN)], *parts, axis=1)
    joined = b.add("Concat", [past, b.add("Mul", [parts[0], parts[2]])], axis=2)
    far = b.ints(2**31 - 1)
    b.add("Slice", [joined, b.ints(-TAPS), far, b.ints(2)], present)
    filtered = b.add("Conv", [joined, f"taps{layer}"], group=HIDDEN)
    latest = b.add("Slice", [filtered, b.ints(1), far, b.ints(2)])
    return b.add("Transpose", [b.add("Mul", [parts[1], latest])], perm=[0, 2, 1])


def recurrent(b, x, layer, shared, caches):
    past, present = f"past_recurrent.{layer}", f"present_recurrent.{layer}"
    caches.append((past, present, *2 * [("batch_size", MEMORY, MEMORY)]))
    kinds = {"state": 3, "q": 2, "k": 2, "v": 2}
    inputs = [h.make_tensor_value_info(f"{each}_in", T.FLOAT, rank * [None]) for each, rank in kinds.items()]
    body = [
        h.make_node("Mul", ["state_in", b.number(DECAY)], ["faded"]),
        h.make_node("Unsqueeze", ["k_in", b.ints(2)], ["column"]),
        h.make_node("Unsqueeze", ["v_in", b.ints(1)], ["line"]),
        h.make_node("Mul", ["column", "line"], ["news"]),
        h.make_node("Add", ["faded", "news"], ["state_out"]),
        h.make_node("Unsqueeze", ["q_in", b.ints(1)], ["question"]),
        h.make_node("MatMul", ["question", "state_out"], ["answer"]),
        h.make_node("Squeeze", ["answer", b.ints(1)], ["out"]),
    ]
    outputs = [
        h.make_tensor_value_info("state_out", T.FLOAT, 3 * [None]),
        h.make_tensor_value_info("out", T.FLOAT, 2 * [None]),
    ]
    projected = [b.linear(x, f"{part}{layer}") for part in "qkv"]
    b.add(
        "Scan",
        [past, *projected],
        *(present, f"read{layer}"),
        body=h.make_graph(body, "token", inputs, outputs),
        num_scan_inputs=3,
        scan_input_axes=[1, 1, 1],
        scan_output_axes=[1],
    )
    return f"read{layer}"


MIXERS = {
    "grouped": grouped,
    "turned": turned,
    "plain": plain,
    "branch": branch,
    "conv": conv,
    "recurrent": recurrent,
}

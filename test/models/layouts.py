"""Builds `layouts/`: decoders with random weights, one for each way in which exports are laid out.

    /usr/bin/python3 test/models/layouts.py

Needs numpy and onnx. `expected.json` has greedy continuations computed in numpy, in which no choice
is a close one. All have two layers and the vocabulary of `tiny/`, whose tokenizer fits them:

- plain: attention of plain operators, which is told positions; scores of all positions
- conv: a convolution with a state, then attention; says how many scores it wants
- recurrent: a matrix that every token changes, then attention; three copies of the positions
- split: a graph that makes embeddings and inputs of each layer, and one that takes them
- branch: a branch for when there is a past, caches shaped by heads, positions from 1 in a table
- q4: weights of 4 bits in a file of their own
- fp16: everything in half precision
"""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from tiny import tokenizer

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, CONTEXT = 32, 4, 2, 16, 32, 512
TAPS, MEMORY, EXTRA, BLOCK = 3, 16, 8, 32
EPSILON, DECAY = 1e-5, 0.9
FOLDER = pathlib.Path(__file__).parent / "layouts"

FILES = tokenizer()
VOCAB = len(FILES["model"]["vocab"]) + len(FILES["added_tokens"])

LAYOUTS = {
    "plain": {"layers": ["plain", "plain"], "config": {"model_type": "llama"}},
    "conv": {
        "layers": ["conv", "grouped"],
        "config": {
            "model_type": "lfm2",
            "conv_L_cache": TAPS,
            "layer_types": ["conv", "full_attention"],
        },
    },
    "recurrent": {"layers": ["recurrent", "plain"], "config": {"model_type": "qwen3_5_text"}},
    "split": {"layers": ["grouped", "grouped"], "config": {"model_type": "gemma3n_text"}},
    "branch": {"layers": ["branch", "branch"], "config": {"model_type": "bloom"}},
    "q4": {"layers": ["grouped", "grouped"], "config": {"model_type": "llama"}},
    "fp16": {"layers": ["grouped", "grouped"], "config": {"model_type": "llama"}},
}


def weights(name, seed):
    random = np.random.default_rng(seed)

    def draw(*shape, scale=0.3):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    made = {"embed": draw(VOCAB, HIDDEN, scale=1.0), "norm": 1 + draw(HIDDEN, scale=0.1)}
    made["head"] = draw(HIDDEN, VOCAB, scale=0.6)
    # The end token is out of reach, so that every continuation has the length asked for.
    made["head"][:, [token["id"] for token in FILES["added_tokens"]]] *= 0.01
    for layer, kind in enumerate(LAYOUTS[name]["layers"]):
        wide = MEMORY if kind == "recurrent" else HEADS * HEAD
        heads = {"recurrent": MEMORY, "branch": HEADS * HEAD}.get(kind, KV_HEADS * HEAD)
        if kind == "conv":
            made |= {
                f"in{layer}": draw(HIDDEN, 3 * HIDDEN),
                f"taps{layer}": draw(HIDDEN, 1, TAPS, scale=0.8),
                f"o{layer}": draw(HIDDEN, HIDDEN),
            }
        else:
            made |= {f"q{layer}": draw(HIDDEN, wide), f"o{layer}": draw(wide, HIDDEN)}
            made |= {f"k{layer}": draw(HIDDEN, heads), f"v{layer}": draw(HIDDEN, heads)}
        made |= {
            f"gate{layer}": draw(HIDDEN, FFN),
            f"up{layer}": draw(HIDDEN, FFN),
            f"down{layer}": draw(FFN, HIDDEN),
            f"before{layer}": 1 + draw(HIDDEN, scale=0.1),
            f"between{layer}": 1 + draw(HIDDEN, scale=0.1),
        }
        if name == "split":
            made[f"mix{layer}"] = draw(EXTRA, HIDDEN)
    if name == "split":
        made["extra"] = draw(VOCAB, 2 * EXTRA, scale=1.0)
    if name == "branch":
        made["places"] = draw(CONTEXT + 1, HIDDEN, scale=0.5)
    else:
        angles = np.arange(CONTEXT)[:, None] / 10_000 ** (np.arange(0, HEAD, 2) / HEAD)[None]
        made |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    if name == "fp16":
        made = {key: array.astype(np.float16) for key, array in made.items()}
    return made


def quantize(array):
    """Blocks of 4 bits along the first dimension: packed, scales, and what they stand for."""
    count, rows = array.shape[1], array.T.reshape(array.shape[1], -1, BLOCK)
    scales = np.abs(rows).max(-1, keepdims=True) / 7
    whole = np.clip(np.round(rows / scales), -8, 7)
    packed = (whole + 8).astype(np.uint8)
    packed = packed[..., 0::2] | packed[..., 1::2] << 4
    restored = (whole * scales).reshape(count, -1).T.astype(np.float32)
    return packed, scales.reshape(-1).astype(np.float32), restored


class Builder:
    """Nodes and constants of a graph."""

    def __init__(self, constants, kind):
        self.nodes, self.constants, self.kind = [], dict(constants), kind

    def add(self, operator, inputs, *outputs, domain="", **attributes):
        outputs = outputs or (f"t{len(self.nodes)}",)
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            h.make_node(operator, inputs, list(outputs), domain=domain, name=name, **attributes)
        )
        return outputs[0]

    def microsoft(self, operator, inputs, *outputs, **attributes):
        return self.add(operator, inputs, *outputs, domain="com.microsoft", **attributes)

    def ints(self, *values):
        name = "i" + "_".join(map(str, values)).replace("-", "m")
        self.constants[name] = np.array(values, np.int64)
        return name

    def number(self, value):
        name = f"f{value}".replace("-", "m").replace(".", "p")
        self.constants[name] = np.array(value, np.float16 if self.kind == T.FLOAT16 else np.float32)
        return name

    def linear(self, x, weight):
        if f"{weight}.packed" not in self.constants:
            return self.add("MatMul", [x, weight])
        count = self.constants[f"{weight}.packed"].shape[0]
        size = self.constants[f"{weight}.packed"].shape[1] * BLOCK
        inputs = [x, f"{weight}.packed", f"{weight}.scales"]
        sizes = {"K": size, "N": count, "bits": 4, "block_size": BLOCK}
        return self.microsoft("MatMulNBits", inputs, **sizes)

    def norm(self, x, scale):
        return self.add("SimplifiedLayerNormalization", [x, scale], epsilon=EPSILON)

    def graph(self, name, inputs, outputs):
        initializers = [nh.from_array(array, key) for key, array in self.constants.items()]
        graph = h.make_graph(self.nodes, name, inputs, outputs, initializers)
        opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="layouts")


def value(name, kind, *shape):
    return h.make_tensor_value_info(name, kind, shape)


ROWS = "batch_size", "sequence_length"


def export(name, made):
    """The graph, and the one before it where there is one."""
    layout = LAYOUTS[name]["layers"]
    kind = T.FLOAT16 if name == "fp16" else T.FLOAT
    given = dict(made)
    if name == "q4":
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
    keeps = name in ("conv", "split", "fp16")
    if keeps:
        inputs.append(value("num_logits_to_keep", T.INT64))
    positions = "position_ids"
    if name == "recurrent":
        inputs.append(value("position_ids", T.INT64, 3, *ROWS))
        positions = b.add("Gather", ["position_ids", scalar(b, 0)], axis=0)
    elif "grouped" not in layout:
        inputs.append(value("position_ids", T.INT64, *ROWS))
    if name == "branch":
        inputs.append(value("use_cache_branch", T.BOOL, 1))
        stream = b.add("Add", [stream, b.add("Gather", ["places", "position_ids"])])
        positions = b.add("Sub", ["position_ids", b.ints(1)])

    width = b.add("Gather", [b.add("Shape", ["attention_mask"]), scalar(b, 1)], axis=0)
    shared = {"positions": positions, "width": width}
    if "grouped" in layout:
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


def scalar(b, number):
    b.constants[f"s{number}"] = np.array(number, np.int64)
    return f"s{number}"


def bias(b, shared):
    """0 where a token may look, which is not ahead, and a large negative number elsewhere."""
    keys = b.add("Range", [scalar(b, 0), shared["width"], scalar(b, 1)])
    queries = b.add("Unsqueeze", [shared["positions"], b.ints(1, 3)])
    here = b.add("Unsqueeze", [b.add("Cast", ["attention_mask"], to=T.BOOL), b.ints(1, 2)])
    seen = b.add("And", [b.add("LessOrEqual", [keys, queries]), here])
    return b.add("Where", [seen, b.number(0.0), b.number(-1e9)])


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


def grouped(b, x, layer, shared, caches):
    key, val = lists(caches, layer)
    projected = [b.linear(x, f"{part}{layer}") for part in "qkv"]
    return b.microsoft(
        "GroupQueryAttention",
        [*projected, key[0], val[0], shared["lengths"], shared["total"], "cos", "sin"],
        *(f"attended{layer}", key[1], val[1]),
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        do_rotary=1,
    )


def plain(b, x, layer, shared, caches):
    key, val = lists(caches, layer)

    def heads(part, count):
        split = b.add("Reshape", [b.linear(x, f"{part}{layer}"), b.ints(0, 0, count, HEAD)])
        return b.add("Transpose", [split], perm=[0, 2, 1, 3])

    def rotate(states):
        tables = []
        for table in ("cos", "sin"):
            rows = b.add("Gather", [table, shared["positions"]])
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
        out = h.make_tensor_value_info(f"{present}.out", T.FLOAT, None)
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


MIXERS = {"grouped": grouped, "plain": plain, "branch": branch, "conv": conv, "recurrent": recurrent}


def forward(name, made, ids):
    """Scores of every position, in double precision."""
    length = len(ids)

    def norm(x, scale):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale

    def rotate(x):
        if name == "branch":
            return x
        cos, sin = made["cos"][:length, None], made["sin"][:length, None]
        a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(n, layer):
        q, k, v = ((n @ made[f"{part}{layer}"]).reshape(length, -1, HEAD) for part in "qkv")
        q, k = rotate(q), rotate(k)
        k, v = (np.repeat(each, HEADS // each.shape[1], 1) for each in (k, v))
        causal = np.tril(np.ones((length, length)))[None] > 0
        scores = np.where(causal, np.einsum("shd,thd->hst", q, k) / np.sqrt(HEAD), -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("hst,thd->shd", scores / scores.sum(-1, keepdims=True), v).reshape(length, -1)

    def convolution(n, layer):
        b, c, x = np.split(n @ made[f"in{layer}"], 3, -1)
        padded = np.concatenate([np.zeros((TAPS - 1, HIDDEN)), b * x])
        taps = made[f"taps{layer}"][:, 0]
        return c * sum(padded[tap : tap + length] * taps[:, tap] for tap in range(TAPS))

    def recurrence(n, layer):
        q, k, v = (n @ made[f"{part}{layer}"] for part in "qkv")
        state, out = np.zeros((MEMORY, MEMORY)), []
        for token in range(length):
            state = state * DECAY + np.outer(k[token], v[token])
            out.append(q[token] @ state)
        return np.array(out)

    mixers = {"conv": convolution, "recurrent": recurrence}
    stream = made["embed"][np.array(ids)]
    if name == "branch":
        stream = stream + made["places"][1 : length + 1]
    for layer, sort in enumerate(LAYOUTS[name]["layers"]):
        mixed = mixers.get(sort, attention)(norm(stream, made[f"before{layer}"]), layer)
        stream = stream + mixed @ made[f"o{layer}"]
        if name == "split":
            extra = made["extra"][np.array(ids)].reshape(length, 2, EXTRA)[:, layer]
            stream = stream + extra @ made[f"mix{layer}"]
        m = norm(stream, made[f"between{layer}"])
        gate = m @ made[f"gate{layer}"]
        stream = stream + (gate / (1 + np.exp(-gate)) * (m @ made[f"up{layer}"])) @ made[f"down{layer}"]
    return norm(stream, made["norm"]) @ made["head"]


def meaning(name, made):
    """The numbers that the weights stand for."""
    if name == "q4":
        kept = {"embed", "cos", "sin"}
        made = {
            key: array if array.ndim < 2 or key in kept else quantize(array)[2]
            for key, array in made.items()
        }
    return {key: array.astype(np.float64) for key, array in made.items()}


def continuation(name, made, prompt, count):
    ids, margins = list(prompt), []
    for _ in range(count):
        scores = forward(name, made, ids)[-1]
        margins.append(np.subtract(*np.sort(scores)[[-1, -2]]))
        ids.append(int(scores.argmax()))
    return ids[len(prompt) :], min(margins)


def cases(name, made):
    random = np.random.default_rng(13)
    made = meaning(name, made)
    for length in (1, 9, 70):
        while True:
            prompt = [int(token) for token in random.integers(0, VOCAB - 5, length)]
            greedy, margin = continuation(name, made, prompt, 12)
            if margin > (0.12 if name == "fp16" else 0.05):
                break
        print(f"{name}, {length} tokens: closest choice by {margin:.3f}")
        yield {"prompt": prompt, "greedy": greedy}


def main():
    expected = {}
    end = FILES["added_tokens"][2]["id"]
    for seed, name in enumerate(LAYOUTS):
        made = weights(name, seed + 20)
        expected[name] = list(cases(name, made))
        model, before = export(name, made)
        folder = FOLDER / name / "onnx"
        folder.mkdir(parents=True, exist_ok=True)
        if before:
            onnx.save(before, folder / "embed_tokens.onnx")
            onnx.save(model, folder / "decoder_model_merged.onnx")
        elif name == "q4":
            data = folder / "model_q4.onnx_data"
            data.unlink(missing_ok=True)
            apart = {"save_as_external_data": True, "location": data.name, "size_threshold": 128}
            onnx.save(model, str(folder / "model_q4.onnx"), **apart)
        else:
            onnx.save(model, folder / f"model{'_fp16' if name == 'fp16' else ''}.onnx")
        config = LAYOUTS[name]["config"] | {
            "vocab_size": VOCAB,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD,
            "max_position_embeddings": CONTEXT,
            "eos_token_id": end,
        }
        (FOLDER / name / "config.json").write_text(json.dumps(config) + "\n")
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()

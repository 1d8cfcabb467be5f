"""Writes `src/engine/onnx/selftest/graphs.ts`: the graphs of the GPU self-test, and their expected logits.

    /usr/bin/python3 test/models/selftest.py && npm run format

The script needs numpy and onnx. The graph is one layer of a decoder with the kernels of language
models, once in 32 and once in 16 bits. A formula that `selftest.ts` implements, too, draws its weights,
so only the graph has to be stored. The weights are multiples of a power of two, so both precisions
represent them exactly. The script computes the expected logits in double precision.
"""

import base64
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCAB, SCORES, PLACES = 128, 4, 2, 64, 256, 64, 4, 16
CONTEXT, BLOCK = 96, 32
EPSILON = 1e-5
LOCATION = "weights"
OUT = pathlib.Path(__file__).parents[2] / "src/engine/onnx/selftest/graphs.ts"

# Name, shape, and the exponent of the power of two that bounds the values; None marks 4-bit numbers.
FLOATS = {
    "before": ([HIDDEN], 0),
    "between": ([HIDDEN], 0),
    "after": ([HIDDEN], 0),
    "k": ([HIDDEN, KV_HEADS * HEAD], -3),
    "v": ([HIDDEN, KV_HEADS * HEAD], -3),
    "cos": ([CONTEXT, HEAD // 2], 0),
    "sin": ([CONTEXT, HEAD // 2], 0),
    "mix_in": ([HIDDEN, PLACES], -2),
    "mix_out": ([PLACES, HIDDEN], 0),
    "head": ([HIDDEN, SCORES], -3),
}
# Name, inner size, outer size, exponent of the scales; True if the kernel may round factors to 8 bits.
# Attention contributes much to the sums, so that its errors show in the logits.
PACKED = {
    "embed": (HIDDEN, VOCAB, 0, False),
    "q": (HIDDEN, HEADS * HEAD, -6, False),
    "o": (HEADS * HEAD, HIDDEN, -2, False),
    "gate": (HIDDEN, FFN, -6, False),
    "up": (HIDDEN, FFN, -6, True),
    "down": (FFN, HIDDEN, -6, False),
}


def draw(start, count):
    """Returns pseudorandom bytes, the same as `draw` of `selftest.ts`."""
    x = np.arange(start + 1, start + count + 1, dtype=np.uint64) * 2654435761 % 2**32
    x = (x ^ (x >> 15)) * 2246822519 % 2**32
    x = (x ^ (x >> 13)) * 3266489917 % 2**32
    return (x >> 24).astype(np.uint8)


def weights():
    """Returns tensors in the order of their bytes, as (name, shape, exponent or None, values)."""
    made, start = [], 0

    def add(name, shape, exponent):
        nonlocal start
        count = int(np.prod(shape))
        values = draw(start, count).reshape(shape)
        start += count
        if exponent is not None:
            values = (values.astype(np.float64) - 128) / 128 * 2.0**exponent
        made.append((name, shape, exponent, values))

    for name, (shape, exponent) in FLOATS.items():
        add(name, shape, exponent)
    for name, (inner, outer, exponent, _) in PACKED.items():
        blocks = inner // BLOCK
        embeds = name == "embed"
        add(f"{name}.b", [outer, inner // 2] if embeds else [outer, blocks, BLOCK // 2], None)
        add(f"{name}.s", [outer, blocks] if embeds else [outer * blocks], exponent)
    return made


def export(made, half):
    """Returns the ONNX file, and the part of it that holds the nodes."""
    kind, size = (T.FLOAT16, 2) if half else (T.FLOAT, 4)
    nodes, initializers, offset = [], [], 0
    for name, shape, exponent, values in made:
        length = values.size * (1 if exponent is None else size)
        tensor = onnx.TensorProto(name=name, dims=shape, data_location=T.EXTERNAL)
        tensor.data_type = T.UINT8 if exponent is None else kind
        for key, value in (("location", LOCATION), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        initializers.append(tensor)
        offset += length
    small = {"one": [1], "second": 1}
    initializers += [nh.from_array(np.array(value, np.int64), name) for name, value in small.items()]

    def add(operator, inputs, *outputs, domain="", **attributes):
        made = h.make_node(operator, inputs, list(outputs), domain=domain, **attributes)
        made.name = outputs[0]
        nodes.append(made)
        return outputs[0]

    def microsoft(operator, inputs, *outputs, **attributes):
        return add(operator, inputs, *outputs, domain="com.microsoft", **attributes)

    def packed(x, name):
        inner, outer, _, coarse = PACKED[name]
        sizes = {"K": inner, "N": outer, "bits": 4, "block_size": BLOCK}
        inputs = [x, f"{name}.b", f"{name}.s"]
        return microsoft(
            "MatMulNBits", inputs, f"{name}.y", accuracy_level=4 if coarse else 0, **sizes
        )

    add("ReduceSum", ["attention_mask", "one"], "sum", keepdims=0)
    add("Cast", [add("Sub", ["sum", "one"], "less")], "lengths", to=T.INT32)
    add("Gather", [add("Shape", ["attention_mask"], "shape"), "second"], "total64", axis=0)
    add("Cast", ["total64"], "total", to=T.INT32)
    microsoft(
        "GatherBlockQuantized",
        ["embed.b", "input_ids", "embed.s"],
        "x",
        bits=4,
        block_size=BLOCK,
        gather_axis=0,
        quantize_axis=1,
    )
    add("SimplifiedLayerNormalization", ["x", "before"], "n", epsilon=EPSILON)
    past, present = ([f"{word}.{part}" for part in ("key", "value")] for word in ("past", "present"))
    microsoft(
        "GroupQueryAttention",
        [
            packed("n", "q"),
            *(add("MatMul", ["n", name], f"{name}.y") for name in "kv"),
            *past,
            *("lengths", "total", "cos", "sin"),
        ],
        "attended",
        *present,
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        do_rotary=1,
    )

    def skip(stream, y, scale, result, stream_after):
        microsoft(
            "SkipSimplifiedLayerNormalization",
            [stream, y, scale],
            *(result, "", "", stream_after),
            epsilon=EPSILON,
        )

    skip("x", packed("attended", "o"), "between", "m", "x1")
    gate = packed("m", "gate")
    silu = add("Mul", [gate, add("Sigmoid", [gate], "sigmoid")], "silu")
    packed(add("Mul", [silu, packed("m", "up")], "product"), "down")
    places = add("Softmax", [add("MatMul", ["m", "mix_in"], "mixed")], "places", axis=-1)
    add("Add", ["down.y", add("MatMul", [places, "mix_out"], "mix")], "y")
    skip("x1", "y", "after", "last", "x2")
    add("MatMul", ["last", "head"], "scores")

    def value(name, type_, *shape):
        return h.make_tensor_value_info(name, type_, shape)

    inputs = [value("input_ids", T.INT64, "b", "s"), value("attention_mask", T.INT64, "b", "t")]
    inputs += [value(name, kind, "b", KV_HEADS, "p", HEAD) for name in past]
    outputs = [value("scores", kind, "b", "s", SCORES)]
    outputs += [value(name, kind, "b", KV_HEADS, "q", HEAD) for name in present]
    graph = h.make_graph(nodes, "trial", inputs, outputs, initializers)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8)
    return model.SerializeToString(), onnx.GraphProto(node=nodes).SerializeToString()


def forward(made, ids):
    """Returns the logits of every position, in double precision."""
    known = {name: values for name, _, _, values in made}
    length = len(ids)

    def packed(name):
        inner, outer, _, _ = PACKED[name]
        raw = known[f"{name}.b"].reshape(outer, inner // 2)
        numbers = np.stack([raw & 15, raw >> 4], -1).reshape(outer, inner).astype(np.float64) - 8
        return numbers * np.repeat(known[f"{name}.s"].reshape(outer, inner // BLOCK), BLOCK, 1)

    def norm(x, scale):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * known[scale]

    def rotate(x):
        cos, sin = known["cos"][:length, None], known["sin"][:length, None]
        a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def softmax(x):
        x = np.exp(x - x.max(-1, keepdims=True))
        return x / x.sum(-1, keepdims=True)

    stream = packed("embed")[ids]
    n = norm(stream, "before")
    q = rotate((n @ packed("q").T).reshape(length, HEADS, HEAD))
    k = rotate((n @ known["k"]).reshape(length, KV_HEADS, HEAD))
    v = (n @ known["v"]).reshape(length, KV_HEADS, HEAD)
    k, v = np.repeat(k, HEADS // KV_HEADS, 1), np.repeat(v, HEADS // KV_HEADS, 1)
    causal = np.tril(np.ones((length, length)))[None] > 0
    scores = np.where(causal, np.einsum("shd,thd->hst", q, k) / np.sqrt(HEAD), -np.inf)
    attended = np.einsum("hst,thd->shd", softmax(scores), v).reshape(length, -1)
    stream = stream + attended @ packed("o").T
    m = norm(stream, "between")
    gate = m @ packed("gate").T
    product = gate / (1 + np.exp(-gate)) * (m @ packed("up").T)
    mix = softmax(m @ known["mix_in"]) @ known["mix_out"]
    return norm(stream + product @ packed("down").T + mix, "after") @ known["head"]


def main():
    made = weights()
    whole = np.arange(CONTEXT) * 37 % VOCAB
    # Runs: a prompt, a second chunk of it, one token, and one token in each of two sequences.
    first, second = 40, 71
    rows = lambda ids, begin: forward(made, ids)[begin:]
    answers = {
        "prompt": rows(whole[:first], 0),
        "more": rows(whole[:second], first),
        "token": rows(whole[: second + 1], second),
        "pair": np.concatenate(
            [rows(whole[: second + 2], second + 1), rows(whole[: first + 1], first)]
        ),
    }
    models = {half: export(made, half) for half in (False, True)}
    nodes = models[False][1]
    encode = lambda part: base64.b64encode(part).decode()
    layout = [[values.size, exponent] for _, _, exponent, values in made]
    constants = {
        "CONTEXT": CONTEXT,
        "KV_HEADS": KV_HEADS,
        "HEAD": HEAD,
        "VOCABULARY": VOCAB,
        "LOCATION": LOCATION,
        "LAYOUT": layout,
        "EXPECTED_LOGITS": {key: [round(float(x), 4) for x in value.ravel()] for key, value in answers.items()},
        "NODES": encode(nodes),
        "AROUND": {
            f"float{16 if half else 32}": [encode(part) for part in model.split(nodes)]
            for half, (model, nodes) in models.items()
        },
    }
    comments = {
        "LAYOUT": "Number of values of each weight tensor, and `n` of their bound 2^n; `null` marks raw bytes.",
        "EXPECTED_LOGITS": "Expected logits of each run, row by row.",
        "NODES": "Nodes that both graphs share: a part of their files, in base64.",
        "AROUND": "Parts of each file before and after the nodes, in base64.",
    }
    types = {
        "LAYOUT": ": readonly (readonly [count: number, exponent: number | null])[]",
        "AROUND": ": Record<'float32' | 'float16', readonly [before: string, behind: string]>",
    }
    lines = ["/** Graphs of the GPU self-test. `test/models/selftest.py` writes this file and describes it. */"]
    for name, constant in constants.items():
        if name in comments:
            lines.append(f"/** {comments[name]} */")
        begin = f"export const {name}{types.get(name, '')} ="
        first, *rest = wrap(constant)
        lines += [f"{begin} {first}", *rest]
    OUT.write_text("\n".join(lines) + "\n")
    scale = np.abs(answers["prompt"]).mean()
    print(f"{OUT.name}: {OUT.stat().st_size} bytes, logits of about {scale:.2f}")


def wrap(constant, width=94):
    """Returns TypeScript in lines of at most `width` columns."""
    if isinstance(constant, dict):
        lines = ["{"]
        for key, value in constant.items():
            first, *rest = wrap(value, width - 4)
            begin = [f"  {key}: {first}", *(f"  {line}" for line in rest)]
            if isinstance(value, str) and rest:
                begin = [f"  {key}:", *(f"    {line}" for line in (first, *rest))]
            lines += [*begin[:-1], f"{begin[-1]},"]
        return [*lines, "}"]
    if isinstance(constant, str) and len(constant) > width:
        step = width - 4
        pieces = [constant[at : at + step] for at in range(0, len(constant), step)]
        return [f"'{piece}'" + (" +" if piece is not pieces[-1] else "") for piece in pieces]
    if isinstance(constant, list):
        lines, line = ["["], "  "
        if isinstance(constant[0], str):
            for item in constant:
                first, *rest = wrap(item, width - 2)
                lines += [f"  {first}", *(f"    {line}" for line in rest)]
                lines[-1] += ","
            return [*lines, "]"]
        for item in constant:
            text = json.dumps(item) + ", "
            if len(line + text) > width:
                lines.append(line.rstrip())
                line = "  "
            line += text
        return [*lines, line.rstrip(), "]"]
    return [json.dumps(constant).replace('"', "'")]


main()

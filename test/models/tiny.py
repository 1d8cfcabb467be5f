"""Builds `tiny/`: a decoder with random weights in the layout of real ones, and its answers.

    /usr/bin/python3 test/models/tiny.py

Needs numpy and onnx. Two exports of the same weights: `onnx/` counts positions in its attention and
says how many scores it wants; `older/` is given positions, always gives all scores, and keeps its
weights in a file of their own. `expected.json` has greedy continuations computed in numpy, in which
no choice is a close one, so that every device must make the same.
"""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, FFN, CONTEXT = 32, 2, 4, 2, 16, 48, 512
EPSILON = 1e-5
FOLDER = pathlib.Path(__file__).parent / "tiny"

MERGES = (
    "h e|l l|he ll|hell o|Ġ w|o r|Ġw or|l d|Ġwor ld|i n|r i|ri g|o rig|Ġ in|Ġin orig|Ġinorig in|"
    "t h|th e|Ġ the"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PLAIN_ADDED = ["<think>", "</think>"]


def byte_characters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, extra = {}, 0
    for byte in range(256):
        if byte in kept:
            names[byte] = chr(byte)
        else:
            names[byte] = chr(256 + extra)
            extra += 1
    return [names[byte] for byte in range(256)]


def tokenizer():
    merges = [pair.split(" ") for pair in MERGES.split("|")]
    pieces = byte_characters()
    for pair in merges:
        if "".join(pair) not in pieces:
            pieces.append("".join(pair))
    known = set(pieces)
    merges = [pair for pair in merges if pair[0] in known and pair[1] in known]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    added = [
        {
            "id": len(vocab) + index,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": content in SPECIAL,
        }
        for index, content in enumerate(SPECIAL + PLAIN_ADDED)
    ]
    pattern = r"\p{L}+| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": level,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": merges,
        },
    }


TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


def weights(vocab):
    random = np.random.default_rng(7)

    def draw(*shape, scale):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    made = {"embed": draw(vocab, HIDDEN, scale=1.0), "norm": 1 + draw(HIDDEN, scale=0.1)}
    made["head"] = draw(HIDDEN, vocab, scale=0.6)
    for layer in range(LAYERS):
        made |= {
            f"q{layer}": draw(HIDDEN, HEADS * HEAD, scale=0.3),
            f"k{layer}": draw(HIDDEN, KV_HEADS * HEAD, scale=0.3),
            f"v{layer}": draw(HIDDEN, KV_HEADS * HEAD, scale=0.3),
            f"o{layer}": draw(HEADS * HEAD, HIDDEN, scale=0.3),
            f"gate{layer}": draw(HIDDEN, FFN, scale=0.2),
            f"up{layer}": draw(HIDDEN, FFN, scale=0.2),
            f"down{layer}": draw(FFN, HIDDEN, scale=0.2),
            f"before{layer}": 1 + draw(HIDDEN, scale=0.1),
            f"between{layer}": 1 + draw(HIDDEN, scale=0.1),
        }
    angles = np.arange(CONTEXT)[:, None] / 10_000 ** (np.arange(0, HEAD, 2) / HEAD)[None]
    made["cos"], made["sin"] = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    return made


def export(made, vocab, older):
    """The graph: `older` is told positions and rotates by itself."""
    nodes = []

    def add(kind, inputs, *outputs, domain="", **attributes):
        name = outputs[0] + ".n"
        nodes.append(h.make_node(kind, inputs, list(outputs), domain=domain, name=name, **attributes))
        return outputs[0]

    def microsoft(kind, inputs, *outputs, **attributes):
        return add(kind, inputs, *outputs, domain="com.microsoft", **attributes)

    def value(name, kind, *shape):
        return h.make_tensor_value_info(name, kind, shape)

    def rotate(x, heads):
        inputs = [x, "position_ids", "cos", "sin"]
        return microsoft("RotaryEmbedding", inputs, f"{x}.r", num_heads=heads)

    one = np.array([1], np.int64)
    constants = {"one": one, "axis": one, "second": np.array(1, np.int64)}
    add("ReduceSum", ["attention_mask", "axis"], "mask_sum", keepdims=0)
    add("Cast", [add("Sub", ["mask_sum", "one"], "mask_less")], "seqlens", to=T.INT32)
    add("Shape", ["attention_mask"], "mask_shape")
    add("Cast", [add("Gather", ["mask_shape", "second"], "total64", axis=0)], "total", to=T.INT32)
    stream = add("Gather", ["embed", "input_ids"], "x")
    normed = add("SimplifiedLayerNormalization", [stream, "before0"], "n", epsilon=EPSILON)
    inputs = [
        value("input_ids", T.INT64, "batch_size", "sequence_length"),
        value("attention_mask", T.INT64, "batch_size", "total_sequence_length"),
    ]
    if older:
        inputs.append(value("position_ids", T.INT64, "batch_size", "sequence_length"))
    else:
        inputs.append(value("num_logits_to_keep", T.INT64))
    outputs = [value("logits", T.FLOAT, "batch_size", "kept", vocab)]
    for layer in range(LAYERS):
        q, k, v = (add("MatMul", [normed, f"{name}{layer}"], f"{name}{layer}.y") for name in "qkv")
        if older:
            q, k = rotate(q, HEADS), rotate(k, KV_HEADS)
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        tables = [] if older else ["cos", "sin"]
        attended = microsoft(
            "GroupQueryAttention",
            [q, k, v, *past, "seqlens", "total", *tables],
            f"a{layer}",
            *present,
            num_heads=HEADS,
            kv_num_heads=KV_HEADS,
            do_rotary=0 if older else 1,
        )
        for names, values, length in ((past, inputs, "past"), (present, outputs, "total")):
            for name in names:
                shape = "batch_size", KV_HEADS, f"{length}_sequence_length", HEAD
                values.append(value(name, T.FLOAT, *shape))
        out = add("MatMul", [attended, f"o{layer}"], f"o{layer}.y")
        microsoft(
            "SkipSimplifiedLayerNormalization",
            [stream, out, f"between{layer}"],
            *(f"m{layer}", "", "", f"s{layer}"),
            epsilon=EPSILON,
        )
        gate = add("MatMul", [f"m{layer}", f"gate{layer}"], f"g{layer}.y")
        silu = add("Mul", [gate, add("Sigmoid", [gate], f"g{layer}.s")], f"g{layer}.a")
        up = add("MatMul", [f"m{layer}", f"up{layer}"], f"u{layer}.y")
        down = add("MatMul", [add("Mul", [silu, up], f"gu{layer}"), f"down{layer}"], f"d{layer}.y")
        scale = f"before{layer + 1}" if layer + 1 < LAYERS else "norm"
        microsoft(
            "SkipSimplifiedLayerNormalization",
            [f"s{layer}", down, scale],
            *(f"n{layer + 1}", "", "", f"x{layer + 1}"),
            epsilon=EPSILON,
        )
        stream, normed = f"x{layer + 1}", f"n{layer + 1}"
    if not older:
        # The last `num_logits_to_keep` positions.
        constants |= {"zero": np.array([0], np.int64), "end": np.array([2**31 - 1], np.int64)}
        kept = add("Reshape", ["num_logits_to_keep", "one"], "kept_count")
        start = add("Sub", ["zero", kept], "keep_from")
        normed = add("Slice", [normed, start, "end", "axis"], "kept_states")
    add("MatMul", [normed, "head"], "logits")
    initializers = [nh.from_array(array, name) for name, array in (made | constants).items()]
    graph = h.make_graph(nodes, "tiny", inputs, outputs, initializers)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="tiny")


def forward(made, ids):
    """Scores of every position, in double precision."""
    made = {name: array.astype(np.float64) for name, array in made.items()}
    length = len(ids)

    def norm(x, scale):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale

    def rotate(x):
        cos, sin = made["cos"][:length, None], made["sin"][:length, None]
        a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    stream = made["embed"][np.array(ids)]
    causal = np.tril(np.ones((length, length)))[None] > 0
    for layer in range(LAYERS):
        n = norm(stream, made[f"before{layer}"])
        q = rotate((n @ made[f"q{layer}"]).reshape(length, HEADS, HEAD))
        k = rotate((n @ made[f"k{layer}"]).reshape(length, KV_HEADS, HEAD))
        v = (n @ made[f"v{layer}"]).reshape(length, KV_HEADS, HEAD)
        k, v = np.repeat(k, HEADS // KV_HEADS, 1), np.repeat(v, HEADS // KV_HEADS, 1)
        scores = np.where(causal, np.einsum("shd,thd->hst", q, k) / np.sqrt(HEAD), -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        attended = np.einsum("hst,thd->shd", scores / scores.sum(-1, keepdims=True), v)
        stream = stream + attended.reshape(length, -1) @ made[f"o{layer}"]
        m = norm(stream, made[f"between{layer}"])
        gate = m @ made[f"gate{layer}"]
        silu = gate / (1 + np.exp(-gate))
        stream = stream + (silu * (m @ made[f"up{layer}"])) @ made[f"down{layer}"]
    return norm(stream, made["norm"]) @ made["head"]


def continuation(made, prompt, count):
    ids = list(prompt)
    margins = []
    for _ in range(count):
        scores = np.sort(forward(made, ids)[-1])
        margins.append(scores[-1] - scores[-2])
        ids.append(int(forward(made, ids)[-1].argmax()))
    return ids[len(prompt) :], min(margins)


def main():
    files = tokenizer()
    vocab = len(files["model"]["vocab"]) + len(files["added_tokens"])
    end = files["added_tokens"][2]["id"]
    made = weights(vocab)
    # The end token is out of reach, so that every continuation has the length asked for.
    made["head"][:, [token["id"] for token in files["added_tokens"]]] *= 0.01

    random = np.random.default_rng(11)
    cases = []
    for length in (1, 12, 300):
        while True:
            prompt = [int(token) for token in random.integers(0, vocab - 5, length)]
            greedy, margin = continuation(made, prompt, 16)
            if margin > 0.05:
                break
        cases.append({"prompt": prompt, "greedy": greedy})
        print(f"{length} tokens: closest choice by {margin:.3f}")
    first = forward(made, cases[1]["prompt"])[-1][:4]

    (FOLDER / "onnx").mkdir(parents=True, exist_ok=True)
    (FOLDER / "older").mkdir(exist_ok=True)
    onnx.save(export(made, vocab, older=False), FOLDER / "onnx" / "model.onnx")
    data = FOLDER / "older" / "model.onnx_data"
    data.unlink(missing_ok=True)
    onnx.save(
        export(made, vocab, older=True),
        str(FOLDER / "older" / "model.onnx"),
        save_as_external_data=True,
        location=data.name,
        size_threshold=256,
    )
    texts = {
        "config.json": {
            "model_type": "llama",
            "vocab_size": vocab,
            "max_position_embeddings": CONTEXT,
            "eos_token_id": end,
        },
        "generation_config.json": {"eos_token_id": [end, end - 2], "do_sample": False},
        "tokenizer.json": files,
        "tokenizer_config.json": {
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": TEMPLATE,
        },
        "expected.json": {
            "firstScores": [round(float(score), 5) for score in first],
            "cases": cases,
        },
    }
    for name, content in texts.items():
        (FOLDER / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

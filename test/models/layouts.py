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
- q4f16: weights of 4 bits, everything else in half precision
- branch16: as branch, in half precision: a token's part of the keys is 2 bytes, which no GPU copies
"""

import json
import pathlib

import numpy as np
import onnx

from layout_graph import export
from layout_reference import forward
from layout_weights import (
    CONTEXT, FILES, HALVES, HEAD, HEADS, HIDDEN, KV_HEADS, LAYOUTS, VOCAB, meaning, weights,
)

FOLDER = pathlib.Path(__file__).parent / "layouts"
SUFFIXES = {"fp16": "_fp16", "q4f16": "_q4f16", "branch16": "_fp16"}


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
            if margin > (0.12 if name in HALVES else 0.05):
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
            onnx.save(model, folder / f"model{SUFFIXES.get(name, '')}.onnx")
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

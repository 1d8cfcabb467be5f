"""Builds models with random weights that see images: `vision-lfm2/` and four `vision-qwen*/`.

    /usr/bin/python3 test/models/vision_twins.py

Needs numpy, onnx and Pillow. They have the layouts of lfm2_vl, qwen2_vl, qwen2_5_vl, qwen3_vl and
qwen3_5, and see the images of `vision/`. `expected.json` has the rows of the encoder in double precision, and greedy
continuations in which no choice is close. `vision-sizes.json` has sizes from the settings of real models.
"""

import json
import pathlib

import numpy as np
import onnx
from PIL import Image

from layout_graph import export
from layout_reference import forward
from layout_weights import CONTEXT, HEAD, HEADS, KV_HEADS, TAPS, TURNS
from tiny import tokenizer
from vision import embedder, make, opaque, pictures, tokens, without_embeddings
from vision_lfm2 import LFM2, grid_of, smart_resize as lfm2_resize
from vision_qwen import QWEN2, QWEN25, QWEN3, QWEN35, smart_resize as qwen_resize

FOLDER = pathlib.Path(__file__).parent


def template(image):
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
        "{% for part in message['content'] %}{% if part['type'] == 'image' %}" + image + "{% else %}"
        "{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def on_axes(turns, tables, before, grid, after, more):
    """Angles of tokens, of the rows of an image, and of tokens behind it."""
    places = [(at, at, at) for at in range(before)]
    height, width = grid
    places += [(before, before + y, before + x) for y in range(height) for x in range(width)]
    start = before + max(grid)
    places += [(start + at,) * 3 for at in range(after + more)]
    ids = np.array(places)[:, list(turns)]
    return [table[ids, np.arange(len(turns))] for table in tables]


def continuation(family, made, rows, grid, before, after, count=10):
    """Greedy tokens after tokens, the rows of an image, and tokens; and the closest choice."""
    wide = {key: array.astype(np.float64) for key, array in made.items()}
    words = len(wide["embed"])
    wide["embed"] = np.concatenate([wide["embed"], rows])
    if grid:
        tables = wide["cos"], wide["sin"]
        wide["cos"], wide["sin"] = on_axes(
            TURNS[family.layout], tables, len(before), grid, len(after), count
        )
    ids, margins = [*before, *range(words, words + len(rows)), *after], []
    length = len(ids)
    for _ in range(count):
        scores = forward(family.layout, wide, ids)[-1]
        margins.append(np.subtract(*np.sort(scores)[[-1, -2]]))
        ids.append(int(scores.argmax()))
    return ids[length:], min(margins)


def cases(family, made, seen):
    random = np.random.default_rng(17)
    plain = len(tokenizer()["model"]["vocab"])
    for name, image in pictures().items():
        for splits in family.details:
            rows, grid = family.encode(seen, opaque(image), splits)
            while True:
                before, after = ([int(i) for i in random.integers(0, plain, 6)] for _ in range(2))
                greedy, margin = continuation(family, made, rows, grid, before, after)
                if margin > 0.05:
                    break
            print(f"{family.folder}: {name}, {len(rows)} rows, {grid}: closest choice by {margin:.3f}")
            yield {
                "image": name,
                "size": image.size,
                "detail": "high" if splits else "low",
                "rows": [[round(float(number), 4) for number in row] for row in rows],
                "before": before,
                "after": after,
                "greedy": greedy,
            }


def build(family):
    folder = FOLDER / family.folder
    files, first = tokens(family.added)
    vocabulary = first + len(family.added)
    made, seen = make(vocabulary, family.layout, family.layers, family.patch_shape)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(family.encoder(seen), folder / "onnx" / "vision_encoder.onnx")
    onnx.save(embedder(made["embed"]), folder / "onnx" / "embed_tokens.onnx")
    model, _ = export(family.layout, made)
    onnx.save(without_embeddings(model, vocabulary), folder / "onnx" / "decoder_model_merged.onnx")
    text = {
        "vocab_size": vocabulary,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "max_position_embeddings": CONTEXT,
    }
    if "conv" in family.layers:
        text |= {"conv_L_cache": TAPS, "layer_types": ["conv", "full_attention"]}
    config = {
        "model_type": family.model_type,
        "image_token_id": first + family.added.index(family.token),
        "text_config": text,
    }
    texts = {
        "config.json": config,
        "preprocessor_config.json": family.settings,
        "tokenizer.json": files,
        "tokenizer_config.json": {"eos_token": "<|im_end|>", "chat_template": template(family.written)},
        "expected.json": list(cases(family, made, seen)),
    }
    if family.processor:
        texts["processor_config.json"] = family.processor
    for name, content in texts.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")


def sizes():
    """Sizes of images, and what real processors scale them to."""
    random = np.random.default_rng(5)
    fixed = [(1280, 720), (720, 1280), (512, 512), (1, 1), (200, 1), (3, 500), (1920, 1080), (8000, 8000)]
    drawn = [tuple(int(side) for side in np.exp(random.uniform(2, 8.5, 2))) for _ in range(40)]
    # Halves of the factors, which Python rounds to even numbers.
    halves = [(16 * (2 * at + 1), 14 * (2 * at + 3)) for at in range(8)]
    for size in [*fixed, *drawn, *halves]:
        if max(size) > 200 * min(size):
            continue
        yield {
            "size": size,
            "lfm2": lfm2_resize(size, 32, 64, 256),
            "lfm2Grid": grid_of(size, 16, 32, 256, 2.0, 512, 10),
            "qwen2": qwen_resize(size, 28, 3136, 1_003_520),
            "qwen35": qwen_resize(size, 32, 65_536, 1_280 * 32**2),
            "qwen35Low": qwen_resize(size, 32, 65_536, 256 * 32**2),
        }


def main():
    for family in (LFM2, QWEN2, QWEN25, QWEN3, QWEN35):
        build(family)
    listed = ",\n".join(json.dumps(each) for each in sizes())
    (FOLDER / "vision-sizes.json").write_text(f"[\n{listed}\n]\n")


if __name__ == "__main__":
    main()

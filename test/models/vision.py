"""Builds `vision/`: a model with random weights that sees images, in the layout of idefics3.

    /usr/bin/python3 test/models/vision.py

Needs numpy, onnx and Pillow 13. The images are processed as the Python class of transformers does it
with Pillow: the longest side is scaled, then the image is one tile, or a grid of tiles and the whole.
`expected.json` has the rows of the encoder, and greedy continuations in which no choice is close.
"""

import json
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from PIL import Image

from layout_builder import Builder, value
from layout_graph import export
from layout_reference import forward
from layout_weights import CONTEXT, HEAD, HEADS, HIDDEN, KV_HEADS, LAYOUTS, weights
from tiny import tokenizer

FOLDER = pathlib.Path(__file__).parent / "vision"
LONGEST, TILE, PATCH, ROWS = 64, 32, 8, 4
ADDED = ["<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]
ADDED += [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)]
TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}"
    "{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}"
    "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)


def pictures():
    random = np.random.default_rng(3)

    def draw(width, height, channels):
        ramp = np.add.outer(np.arange(height) * 5, np.arange(width) * 3)[..., None]
        noise = random.integers(0, 90, (height, width, channels))
        return ((ramp * np.arange(1, channels + 1) + noise) % 256).astype(np.uint8)

    clear = draw(30, 41, 4)
    clear[:, :15, 3] = 0
    clear[:, 15:, 3] = 255
    return {
        "wide": Image.fromarray(draw(50, 21, 3)),
        "large": Image.fromarray(draw(150, 130, 3)),
        "clear": Image.fromarray(clear),
        "other": Image.fromarray(draw(50, 21, 3)),
    }


def even(length):
    return max(1, int(length) + int(length) % 2)


def up(length):
    return math.ceil(length / TILE) * TILE


def tiles(image, splits):
    """The tiles of an image in order, as the Python class cuts them."""
    image = opaque(image)
    ratio = image.width / image.height
    if ratio >= 1:
        size = LONGEST, even(LONGEST / ratio)
    else:
        size = even(LONGEST * ratio), LONGEST
    image = image.resize(size, Image.LANCZOS)
    cut = []
    if splits:
        ratio = size[0] / size[1]
        if ratio >= 1:
            size = up(size[0]), up(int(up(size[0]) / ratio))
        else:
            size = up(int(up(size[1]) * ratio)), up(size[1])
        image = image.resize(size, Image.LANCZOS)
        if size != (TILE, TILE):
            for top in range(0, size[1], TILE):
                for left in range(0, size[0], TILE):
                    cut.append(image.crop((left, top, left + TILE, top + TILE)))
    return [*cut, image if image.size == (TILE, TILE) else image.resize((TILE, TILE), Image.LANCZOS)]


def encode(made, image, splits):
    """Rows of all tiles, in double precision."""
    rows = []
    for tile in tiles(image, splits):
        pixels = (np.asarray(tile, np.float64) / 255 - 0.5) / 0.5
        count = TILE // PATCH
        patches = pixels.reshape(count, PATCH, count, PATCH, 3).transpose(0, 2, 4, 1, 3)
        features = np.einsum("yxcij,hcij->yxh", patches, made["patch"].astype(np.float64))
        half = count // 2
        blocks = features.reshape(half, 2, half, 2, HIDDEN).transpose(0, 2, 1, 3, 4)
        rows.append(np.tanh(blocks.reshape(half * half, -1) @ made["connect"].astype(np.float64)))
    return np.concatenate(rows)


def encoder(made):
    b = Builder(made, T.FLOAT)
    half = TILE // PATCH // 2
    pixels = b.add("Reshape", ["pixel_values", b.ints(-1, 3, TILE, TILE)])
    features = b.add("Conv", [pixels, "patch"], kernel_shape=[PATCH, PATCH], strides=[PATCH, PATCH])
    features = b.add("Transpose", [features], perm=[0, 2, 3, 1])
    features = b.add("Reshape", [features, b.ints(-1, half, 2, half, 2, HIDDEN)])
    features = b.add("Transpose", [features], perm=[0, 1, 3, 2, 4, 5])
    features = b.add("Reshape", [features, b.ints(-1, ROWS, 4 * HIDDEN)])
    features = b.add("Tanh", [b.add("MatMul", [features, "connect"])])
    mask = b.add("Cast", ["pixel_attention_mask"], to=T.FLOAT)
    share = b.add("ReduceMean", [mask], axes=[2, 3])
    b.add("Mul", [features, b.add("Reshape", [share, b.ints(-1, 1, 1)])], "image_features")
    inputs = [
        value("pixel_values", T.FLOAT, "batch_size", "tiles", 3, TILE, TILE),
        value("pixel_attention_mask", T.BOOL, "batch_size", "tiles", TILE, TILE),
    ]
    return b.graph("vision", inputs, [value("image_features", T.FLOAT, "all", ROWS, HIDDEN)])


def without_embeddings(model, vocabulary):
    """The graph with embeddings as an input, instead of tokens."""
    gather = next(node for node in model.graph.node if "input_ids" in node.input)
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == gather.output[0]:
                node.input[index] = "inputs_embeds"
    model.graph.node.remove(gather)
    kept = [each for each in model.graph.initializer if each.name != "embed"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    ids = next(each for each in model.graph.input if each.name == "input_ids")
    ids.CopyFrom(value("inputs_embeds", T.FLOAT, "batch_size", "sequence_length", HIDDEN))
    model.graph.output[0].CopyFrom(
        value("logits", T.FLOAT, "batch_size", "sequence_length", vocabulary)
    )
    return model


def embedder(embed):
    b = Builder({"embed": embed}, T.FLOAT)
    b.add("Gather", ["embed", "input_ids"], "inputs_embeds")
    ids = value("input_ids", T.INT64, "batch_size", "sequence_length")
    out = value("inputs_embeds", T.FLOAT, "batch_size", "sequence_length", HIDDEN)
    return b.graph("embed", [ids], [out])


def make(vocabulary, name="vision", layers=("grouped", "grouped"), patch_shape=(3, PATCH, PATCH)):
    LAYOUTS[name] = {"layers": list(layers)}
    made = weights(name, 51)
    random = np.random.default_rng(52)
    more = vocabulary - len(made["embed"])
    embed = random.standard_normal((more, HIDDEN)).astype(np.float32)
    made["embed"] = np.concatenate([made["embed"], embed])
    # Like the other added tokens, these are out of reach.
    head = (random.standard_normal((HIDDEN, more)) * 0.006).astype(np.float32)
    made["head"] = np.concatenate([made["head"], head], 1)
    patch = random.standard_normal((HIDDEN, *patch_shape)) * 0.15
    connect = random.standard_normal((4 * HIDDEN, HIDDEN)) * 0.15
    seen = {"patch": patch.astype(np.float32), "connect": connect.astype(np.float32)}
    return made, seen


def continuation(made, rows, before, after, count=10):
    """Greedy tokens after tokens, the rows of an image, and tokens; and the closest choice."""
    wide = {key: array.astype(np.float64) for key, array in made.items()}
    words = len(wide["embed"])
    wide["embed"] = np.concatenate([wide["embed"], rows])
    ids, margins = [*before, *range(words, words + len(rows)), *after], []
    length = len(ids)
    for _ in range(count):
        scores = forward("vision", wide, ids)[-1]
        margins.append(np.subtract(*np.sort(scores)[[-1, -2]]))
        ids.append(int(scores.argmax()))
    return ids[length:], min(margins)


def cases(made, seen):
    random = np.random.default_rng(17)
    plain = len(tokenizer()["model"]["vocab"])
    for name, image in pictures().items():
        image.save(FOLDER / f"{name}.png", optimize=True)
        for splits in (False, True):
            rows = encode(seen, image, splits)
            while True:
                before, after = ([int(i) for i in random.integers(0, plain, 6)] for _ in range(2))
                greedy, margin = continuation(made, rows, before, after)
                if margin > 0.05:
                    break
            print(f"{name}, {len(rows)} rows: closest choice by {margin:.3f}")
            rounded = [[round(float(number), 4) for number in row] for row in rows]
            yield {
                "image": name,
                "size": image.size,
                "detail": "high" if splits else "low",
                "rows": rounded,
                "before": before,
                "after": after,
                "greedy": greedy,
            }


def tokens(added):
    """The tokenizer with more special tokens, and the id of the first of them."""
    files = tokenizer()
    first = len(files["model"]["vocab"]) + len(files["added_tokens"])
    files["added_tokens"] += [
        {
            "id": first + index,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, content in enumerate(added)
    ]
    return files, first


def opaque(image):
    """The image on white."""
    white = Image.new("RGBA", image.size, (255, 255, 255))
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


def main():
    files, first = tokens(ADDED)
    vocabulary = first + len(ADDED)
    made, seen = make(vocabulary)
    (FOLDER / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(encoder(seen), FOLDER / "onnx" / "vision_encoder.onnx")
    onnx.save(embedder(made["embed"]), FOLDER / "onnx" / "embed_tokens.onnx")
    model, _ = export("vision", made)
    onnx.save(
        without_embeddings(model, vocabulary), FOLDER / "onnx" / "decoder_model_merged.onnx"
    )
    end = first + ADDED.index("<end_of_utterance>")
    texts = {
        "config.json": {
            "model_type": "idefics3",
            "image_token_id": first + ADDED.index("<image>"),
            "scale_factor": 2,
            "eos_token_id": end,
            "vision_config": {"image_size": TILE, "patch_size": PATCH},
            "text_config": {
                "vocab_size": vocabulary,
                "num_attention_heads": HEADS,
                "num_key_value_heads": KV_HEADS,
                "head_dim": HEAD,
                "max_position_embeddings": CONTEXT,
            },
        },
        "preprocessor_config.json": {
            "do_image_splitting": True,
            "max_image_size": {"longest_edge": TILE},
            "size": {"longest_edge": LONGEST},
            "resample": 1,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
        },
        "processor_config.json": {"image_seq_len": ROWS},
        "tokenizer.json": files,
        "tokenizer_config.json": {"eos_token": "<end_of_utterance>", "chat_template": TEMPLATE},
        "expected.json": list(cases(made, seen)),
    }
    for name, content in texts.items():
        (FOLDER / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

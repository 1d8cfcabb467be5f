"""Images of qwen2_vl and qwen3_5 in numpy, as the Python class of transformers does it with Pillow."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
from onnx import TensorProto as T
from PIL import Image

from layout_builder import Builder, scalar, value
from layout_weights import HIDDEN

PATCH, MERGE, FRAMES = 4, 2, 2
FEWEST, MOST = 256, 2048
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALF = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)


def smart_resize(size, factor, fewest, most):
    """The size of an image with `fewest` to `most` pixels."""
    width, height = size
    w, h = (round(length / factor) * factor for length in size)
    if w * h > most:
        beta = math.sqrt(height * width / most)
        return tuple(max(factor, math.floor(length / beta / factor) * factor) for length in size)
    if w * h < fewest:
        beta = math.sqrt(fewest / (height * width))
        return tuple(math.ceil(length * beta / factor) * factor for length in size)
    return w, h


def encode(colors, made, image, splits):
    """Rows of an image in double precision, with the rows and columns of its grid."""
    size = smart_resize(image.size, PATCH * MERGE, FEWEST, MOST)
    pixels = np.asarray(image.resize(size, Image.BICUBIC), np.float64) / 255
    pixels = (pixels - colors[0]) / colors[1]
    rows, columns = size[1] // PATCH // MERGE, size[0] // PATCH // MERGE
    frames = np.stack([pixels] * FRAMES)
    blocks = frames.reshape(FRAMES, rows, MERGE, PATCH, columns, MERGE, PATCH, 3)
    # Squares of patches; in a patch: color, frame, y and x.
    patches = blocks.transpose(1, 4, 2, 5, 7, 0, 3, 6).reshape(rows * columns * MERGE**2, -1)
    features = patches @ made["patch"].astype(np.float64).reshape(HIDDEN, -1).T
    merged = features.reshape(rows * columns, -1) @ made["connect"].astype(np.float64)
    # Each row has a share of its place, which the graph knows from the shape.
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.tanh(merged + (0.1 * y - 0.05 * x)[:, None]), (rows, columns)


def encoder(name, made):
    flat = np.ascontiguousarray(made["patch"].reshape(HIDDEN, -1).T)
    b = Builder({"patch": flat, "connect": made["connect"]}, T.FLOAT)
    features = b.add("Reshape", [b.add("MatMul", ["pixel_values", "patch"]), b.ints(-1, 4 * HIDDEN)])
    merged = b.add("MatMul", [features, "connect"])
    sides = b.add("Div", [b.add("Reshape", [name, b.ints(3)]), b.ints(MERGE)])
    rows, columns = (b.add("Gather", [sides, scalar(b, axis)], axis=0) for axis in (1, 2))
    count = b.add("Range", [scalar(b, 0), b.add("Mul", [rows, columns]), scalar(b, 1)])
    y, x = b.add("Div", [count, columns]), b.add("Mod", [count, columns])
    y, x = (b.add("Cast", [each], to=T.FLOAT) for each in (y, x))
    shift = b.add("Sub", [b.add("Mul", [y, b.number(0.1)]), b.add("Mul", [x, b.number(0.05)])])
    b.add("Tanh", [b.add("Add", [merged, b.add("Unsqueeze", [shift, b.ints(1)])])], "image_features")
    inputs = [
        value("pixel_values", T.FLOAT, "patches", 3 * FRAMES * PATCH * PATCH),
        value(name, T.INT64, "images", 3),
    ]
    return b.graph("vision", inputs, [value("image_features", T.FLOAT, "rows", HIDDEN)])


SHARED = {
    "layout": "axes",
    "patch_shape": (3, FRAMES, PATCH, PATCH),
    "details": (False,),
    "added": ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"],
    "token": "<|image_pad|>",
    "written": "<|vision_start|><|image_pad|><|vision_end|>",
}
SIZES = {"patch_size": PATCH, "merge_size": MERGE, "temporal_patch_size": FRAMES}

QWEN2 = SimpleNamespace(
    folder="vision-qwen2",
    model_type="qwen2_vl",
    layers=("plain", "plain"),
    encode=partial(encode, CLIP),
    encoder=partial(encoder, "grid_thw"),
    settings=SIZES | {"min_pixels": FEWEST, "max_pixels": MOST},
    **SHARED,
)

QWEN35 = SimpleNamespace(
    folder="vision-qwen35",
    model_type="qwen3_5",
    layers=("recurrent", "plain"),
    encode=partial(encode, HALF),
    encoder=partial(encoder, "image_grid_thw"),
    settings=SIZES
    | {
        "size": {"shortest_edge": FEWEST, "longest_edge": MOST},
        "image_mean": HALF[0],
        "image_std": HALF[1],
    },
    **SHARED,
)

"""Images of models of Qwen in numpy, as the Python class of transformers does it with Pillow."""

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
# Side of a window, in rows of the encoder.
WINDOW = 2
# A square of learnt positions, which is stretched over the patches of an image.
PLACES = np.random.default_rng(53).standard_normal((3, 3, HIDDEN)).astype(np.float32)


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


def within_windows(merged, columns):
    """Rows with what they see of the rows in their window."""
    y, x = np.divmod(np.arange(len(merged)), columns)
    window = y // WINDOW * columns + x // WINDOW
    scores = merged @ merged.T * HIDDEN**-0.5
    scores = np.where(window[:, None] == window, scores, -np.inf)
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return merged + shares / shares.sum(1, keepdims=True) @ merged


def stretched(rows, columns):
    """A position for each patch, in the order of patches."""
    count = len(PLACES)

    def near(length):
        at = np.linspace(0, count - 1, length)
        return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(count)))

    places = np.einsum("yg,xk,gkh->yxh", near(rows * MERGE), near(columns * MERGE), PLACES)
    blocks = places.reshape(rows, MERGE, columns, MERGE, HIDDEN).transpose(0, 2, 1, 3, 4)
    return blocks.reshape(-1, HIDDEN)


def encode(colors, made, image, splits, windows=False, places=False):
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
    if places:
        features = features + stretched(rows, columns)
    merged = features.reshape(rows * columns, -1) @ made["connect"].astype(np.float64)
    if windows:
        merged = within_windows(merged, columns)
    # Each row has a share of its place, which the graph knows from the shape.
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.tanh(merged + (0.1 * y - 0.05 * x)[:, None]), (rows, columns)


def add_windows(b, merged, y, x, columns):
    row, column = (b.add("Div", [each, b.ints(WINDOW)]) for each in (y, x))
    window = b.add("Add", [b.add("Mul", [row, columns]), column])
    same = b.add("Equal", [b.add("Unsqueeze", [window, b.ints(axis)]) for axis in (1, 0)])
    raw = b.add("MatMul", [merged, b.add("Transpose", [merged], perm=[1, 0])])
    scores = b.add("Where", [same, b.add("Mul", [raw, b.number(HIDDEN**-0.5)]), b.number(-1e9)])
    shares = b.add("Softmax", [scores], axis=-1)
    return b.add("Add", [merged, b.add("MatMul", [shares, merged])])


def add_places(b, features, grid):
    b.constants["places"] = np.ascontiguousarray(PLACES.transpose(2, 0, 1)[None])
    sides = b.add("Slice", [b.add("Reshape", [grid, b.ints(3)]), b.ints(1), b.ints(3)])
    size = b.add("Concat", [b.ints(1, HIDDEN), sides], axis=0)
    ways = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    places = b.add("Resize", ["places", "", "", size], **ways)
    halves = b.add("Reshape", [b.add("Div", [sides, b.ints(MERGE)]), b.ints(2, 1)])
    blocks = b.add("Concat", [halves, b.add("Expand", [b.ints(MERGE), b.ints(2, 1)])], axis=1)
    shape = b.add("Concat", [b.ints(HIDDEN), b.add("Reshape", [blocks, b.ints(4)])], axis=0)
    ordered = b.add("Transpose", [b.add("Reshape", [places, shape])], perm=[1, 3, 2, 4, 0])
    return b.add("Add", [features, b.add("Reshape", [ordered, b.ints(-1, HIDDEN)])])


def encoder(name, made, windows=False, places=False):
    flat = np.ascontiguousarray(made["patch"].reshape(HIDDEN, -1).T)
    b = Builder({"patch": flat, "connect": made["connect"]}, T.FLOAT)
    features = b.add("MatMul", ["pixel_values", "patch"])
    if places:
        features = add_places(b, features, name)
    merged = b.add("MatMul", [b.add("Reshape", [features, b.ints(-1, 4 * HIDDEN)]), "connect"])
    sides = b.add("Div", [b.add("Reshape", [name, b.ints(3)]), b.ints(MERGE)])
    rows, columns = (b.add("Gather", [sides, scalar(b, axis)], axis=0) for axis in (1, 2))
    count = b.add("Range", [scalar(b, 0), b.add("Mul", [rows, columns]), scalar(b, 1)])
    y, x = b.add("Div", [count, columns]), b.add("Mod", [count, columns])
    if windows:
        merged = add_windows(b, merged, y, x, columns)
    y, x = (b.add("Cast", [each], to=T.FLOAT) for each in (y, x))
    shift = b.add("Sub", [b.add("Mul", [y, b.number(0.1)]), b.add("Mul", [x, b.number(0.05)])])
    b.add("Tanh", [b.add("Add", [merged, b.add("Unsqueeze", [shift, b.ints(1)])])], "image_features")
    inputs = [
        value("pixel_values", T.FLOAT, "patches", 3 * FRAMES * PATCH * PATCH),
        value(name, T.INT64, "images", 3),
    ]
    return b.graph("vision", inputs, [value("image_features", T.FLOAT, "rows", HIDDEN)])


SHARED = {
    "patch_shape": (3, FRAMES, PATCH, PATCH),
    "details": (False,),
    "added": ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"],
    "token": "<|image_pad|>",
    "written": "<|vision_start|><|image_pad|><|vision_end|>",
}
SIZES = {"patch_size": PATCH, "merge_size": MERGE, "temporal_patch_size": FRAMES}
OLD_SETTINGS = SIZES | {"min_pixels": FEWEST, "max_pixels": MOST}
# `do_rescale` and the like are left out, as in exports; they are on by default.
NEW_SETTINGS = SIZES | {
    "size": {"shortest_edge": FEWEST, "longest_edge": MOST},
    "image_mean": HALF[0],
    "image_std": HALF[1],
}

QWEN2 = SimpleNamespace(
    folder="vision-qwen2",
    model_type="qwen2_vl",
    layout="axes",
    layers=("plain", "plain"),
    encode=partial(encode, CLIP),
    encoder=partial(encoder, "grid_thw"),
    settings=OLD_SETTINGS,
    processor=None,
    **SHARED,
)

# The exported graphs compute the windows from the grid, and place tokens before attention.
QWEN25 = SimpleNamespace(
    folder="vision-qwen25",
    model_type="qwen2_5_vl",
    layout="axes",
    layers=("turned", "turned"),
    encode=partial(encode, CLIP, windows=True),
    encoder=partial(encoder, "image_grid_thw", windows=True),
    settings=OLD_SETTINGS | {"image_mean": CLIP[0], "image_std": CLIP[1]},
    processor=None,
    **SHARED,
)

# The exports have no features of deeper layers ("DeepStack"), as an input or an output.
QWEN3 = SimpleNamespace(
    folder="vision-qwen3",
    model_type="qwen3_vl",
    layout="interleaved",
    layers=("turned", "turned"),
    encode=partial(encode, HALF, places=True),
    encoder=partial(encoder, "image_grid_thw", places=True),
    settings=NEW_SETTINGS,
    processor={
        "image_processor": NEW_SETTINGS
        | {
            "do_convert_rgb": True,
            "do_resize": True,
            "resample": 3,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
        },
    },
    **SHARED,
)

QWEN35 = SimpleNamespace(
    folder="vision-qwen35",
    model_type="qwen3_5",
    layout="axes",
    layers=("recurrent", "plain"),
    encode=partial(encode, HALF),
    encoder=partial(encoder, "image_grid_thw"),
    settings=NEW_SETTINGS,
    processor=None,
    **SHARED,
)

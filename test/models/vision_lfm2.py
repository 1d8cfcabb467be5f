"""Images of lfm2_vl in numpy, as the Python class of transformers does it with Pillow."""

import math
from types import SimpleNamespace

import numpy as np
from onnx import TensorProto as T
from PIL import Image

from layout_builder import Builder, scalar, value
from layout_weights import HIDDEN

PATCH, MERGE, TILE = 4, 2, 16
FACTOR = PATCH * MERGE
FEWEST, MOST, TOLERANCE, MAX_TILES = 4, 16, 2.0, 6
COUNT = MOST * MERGE**2


def smart_resize(size, factor, fewest, most):
    """The size in pixels of one tile with `fewest` to `most` rows."""
    width, height = size
    w, h = (max(factor, round(length / factor) * factor) for length in size)
    if w * h > most * factor**2:
        beta = math.sqrt(height * width / (most * factor**2))
        return tuple(max(factor, math.floor(length / beta / factor) * factor) for length in size)
    if w * h < fewest * factor**2:
        beta = math.sqrt(fewest * factor**2 / (height * width))
        return tuple(math.ceil(length * beta / factor) * factor for length in size)
    return w, h


def grid_of(size, patch, factor, most, tolerance, tile, max_tiles):
    """Columns and rows of tiles; None for an image that is one tile."""
    width, height = size
    w, h = (max(patch, round(length / factor) * factor) for length in size)
    if w * h <= most * factor**2 * tolerance:
        return None
    grids = [(c, r) for c in range(1, max_tiles + 1) for r in range(1, max_tiles + 1)]
    grids = sorted((g for g in grids if 2 <= g[0] * g[1] <= max_tiles), key=lambda g: g[0] * g[1])
    best, least = None, math.inf
    for columns, rows in grids:
        far = abs(width / height - columns / rows)
        if far < least:
            best, least = (columns, rows), far
        elif far == least and width * height > 0.5 * tile * tile * columns * rows:
            best = columns, rows
    return best


def tiles(image, splits):
    sides = smart_resize(image.size, FACTOR, FEWEST, MOST)
    whole = image.resize(sides, Image.BILINEAR)
    grid = splits and grid_of(image.size, PATCH, FACTOR, MOST, TOLERANCE, TILE, MAX_TILES)
    if not grid:
        return [whole]
    columns, rows = grid
    image = image.resize((columns * TILE, rows * TILE), Image.BILINEAR)
    boxes = [(x * TILE, y * TILE) for y in range(rows) for x in range(columns)]
    return [*(image.crop((x, y, x + TILE, y + TILE)) for x, y in boxes), whole]


def encode(made, image, splits):
    """Rows of all tiles, in double precision."""
    patch, connect = (made[name].astype(np.float64) for name in ("patch", "connect"))
    encoded = []
    for tile in tiles(image, splits):
        rows, columns = tile.height // PATCH, tile.width // PATCH
        pixels = (np.asarray(tile, np.float64) / 255 - 0.5) / 0.5
        # In a patch: y, x and color.
        patches = pixels.reshape(rows, PATCH, columns, PATCH, 3).transpose(0, 2, 1, 3, 4)
        features = patches.reshape(rows, columns, -1) @ patch.reshape(HIDDEN, -1).T
        blocks = features.reshape(rows // 2, 2, columns // 2, 2, HIDDEN).transpose(0, 2, 1, 3, 4)
        encoded.append(np.tanh(blocks.reshape(rows * columns // 4, -1) @ connect))
    return np.concatenate(encoded), None


def encoder(made):
    """The graph for one tile. It cuts the padding off, by the shape, and needs a right mask."""
    flat = np.ascontiguousarray(made["patch"].reshape(HIDDEN, -1).T)
    b = Builder({"patch": flat, "connect": made["connect"]}, T.FLOAT)

    def at(index):
        return b.add("Slice", ["spatial_shapes", b.ints(index), b.ints(index + 1), b.ints(1)])

    sides = [b.add("Reshape", [at(index), b.ints(1)]) for index in (0, 1)]
    count = b.add("Mul", sides)
    pixels = b.add("Slice", ["pixel_values", b.ints(0), count, b.ints(1)])
    features = b.add("MatMul", [pixels, "patch"])
    halves = [b.add("Div", [side, b.ints(2)]) for side in sides]
    shape = b.add("Concat", [halves[0], b.ints(2), halves[1], b.ints(2, HIDDEN)], axis=0)
    blocks = b.add("Transpose", [b.add("Reshape", [features, shape])], perm=[0, 2, 1, 3, 4])
    rows = b.add("Tanh", [b.add("MatMul", [b.add("Reshape", [blocks, b.ints(-1, 4 * HIDDEN)]), "connect"])])
    seen = b.add("ReduceSum", ["pixel_attention_mask", b.ints(1)], keepdims=0)
    share = b.add("Div", [b.add("Cast", [each], to=T.FLOAT) for each in (seen, count)])
    b.add("Mul", [rows, share], "image_features")
    inputs = [
        value("pixel_values", T.FLOAT, "batch_size", "patches", PATCH * PATCH * 3),
        value("pixel_attention_mask", T.INT64, "batch_size", "patches"),
        value("spatial_shapes", T.INT64, "batch_size", 2),
    ]
    return b.graph("vision", inputs, [value("image_features", T.FLOAT, "rows", HIDDEN)])


NAMES = ["<|image_start|>", "<|image_end|>", "<image>", "<|img_thumbnail|>"]
GRID = [f"<|img_row_{row}_col_{column}|>" for row in (1, 2, 3) for column in (1, 2, 3)]

LFM2 = SimpleNamespace(
    folder="vision-lfm2",
    model_type="lfm2_vl",
    layout="sights",
    layers=("conv", "grouped"),
    patch_shape=(PATCH, PATCH, 3),
    details=(False, True),
    added=NAMES + GRID,
    token="<image>",
    written="<image>",
    encode=encode,
    encoder=encoder,
    # `do_rescale` and the like are left out, as in exports; they are on by default.
    settings={
        "downsample_factor": MERGE,
        "encoder_patch_size": PATCH,
        "tile_size": TILE,
        "min_image_tokens": FEWEST,
        "max_image_tokens": MOST,
        "max_pixels_tolerance": TOLERANCE,
        "min_tiles": 2,
        "max_tiles": MAX_TILES,
        "use_thumbnail": True,
        "do_image_splitting": True,
        "resample": 2,
    },
    processor=None,
)

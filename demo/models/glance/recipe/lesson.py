"""A picture as the model sees it, with the labels of its cells, and its questions."""
import io
import random
from dataclasses import dataclass

import numpy as np
from PIL import Image

from canvas import Ask, Canvas
from charts import chart
from dialogs import dialog
from labels import INDEX, LABELS, LETTERS
from places import Sight
from prints import lines, sign
from shapes import scene
from textures import texture
from values import Draw

KINDS = {scene: 27, lines: 19, sign: 12, chart: 24, dialog: 30, texture: 7}


@dataclass
class Lesson:
    """`pixels` is uint8 [tile, tile, 3]; `extent` has the shares of the tile's width and height that the picture takes;
    `labels` is bool [cells, cells, labels].

    `letters` is int16 [high, wide] with twice the number of the letter in a cell, plus one if a word begins, or -1.
    """
    pixels: np.ndarray
    extent: np.ndarray
    labels: np.ndarray
    letters: np.ndarray
    asks: list[Ask]


def pad(image: Image.Image, tile: int, way) -> tuple[np.ndarray, np.ndarray]:
    """Returns the image in the middle of a square, and the shares of the square's sides that it takes.

    The longer side becomes that of the tile, and the other one even. The rest of the square has the mean color of the two
    longer edges, which in most drawings is that of the ground. This is what the processor does.
    """
    longest = max(image.size)
    even = lambda length: int(length) + int(length) % 2
    width, height = (tile if side == longest else max(1, even(tile * side / longest)) for side in image.size)
    pixels = np.asarray(image if image.size == (width, height) else image.resize((width, height), way))
    edges = (pixels[0], pixels[-1]) if width >= height else (pixels[:, 0], pixels[:, -1])
    out = np.empty((tile, tile, 3), np.uint8)
    out[:] = np.rint(np.concatenate(edges).mean(0))
    x, y = (tile - width) // 2, (tile - height) // 2
    out[y:y + height, x:x + width] = pixels
    return out, np.float32([width / tile, height / tile])


def on_square(c: Canvas, x: float, y: float) -> tuple[float, float]:
    """Returns a place of the page in shares of the sides of the square around it."""
    longest = max(c.width, c.height)
    return (x - c.width / 2) / longest + 0.5, (y - c.height / 2) / longest + 0.5


def cell_labels(c: Canvas, cells: int) -> np.ndarray:
    out = np.zeros((cells, cells, len(LABELS)), bool)
    at = lambda x, y: (min(cells - 1, max(0, int(share * cells))) for share in on_square(c, x, y))
    for x, y, name in c.marks:
        if name in INDEX:
            column, row = at(x, y)
            out[row, column, INDEX[name]] = True
    for x0, y0, x1, y1, name in c.boxes:
        (left, top), (right, bottom) = at(x0, y0), at(x1, y1)
        out[top:bottom + 1, left:right + 1, INDEX[name]] = True
    return out


def letter_cells(c: Canvas, high: int, wide: int) -> np.ndarray:
    out = np.full((high, wide), -1, np.int16)
    for x, y, letter, begins in c.letters:
        across, down = on_square(c, x, y)
        row, column = int(down * high), int(across * wide)
        if letter in LETTERS and 0 <= row < high and 0 <= column < wide:
            out[row, column] = 2 * LETTERS.index(letter) + begins
    return out


def lesson(seed, sight: Sight, held=False, kind=None) -> Lesson:
    """Returns the lesson of a seed. With `held`, pairs, words and fonts are those that training never draws."""
    rng = random.Random(seed)
    d = Draw(rng, held)
    c = (kind or rng.choices(list(KINDS), KINDS.values())[0])(d)
    # The page may have been made smaller before, by other means.
    pixels, extent = pad(c.image, sight.tile, Image.LANCZOS if d.chance(0.7) else d.one([Image.BILINEAR, Image.BICUBIC, Image.BOX]))
    if d.chance(0.15):
        pixels = noisy(d, pixels)
    if d.chance(0.12):
        pixels = compressed(d, pixels)
    return Lesson(pixels, extent, cell_labels(c, sight.grid * sight.fine), letter_cells(c, *sight.cells), c.asks)


def noisy(d: Draw, pixels: np.ndarray) -> np.ndarray:
    """Returns pixels with weak noise."""
    grain = np.random.default_rng(d.rng.getrandbits(32)).integers(-12, 13, (*pixels.shape[:2], 1), np.int16)
    return np.uint8(np.clip(pixels + grain, 0, 255))


def compressed(d: Draw, pixels: np.ndarray) -> np.ndarray:
    """Returns pixels as they come back from a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'JPEG', quality=d.rng.randint(40, 92))
    return np.asarray(Image.open(file))

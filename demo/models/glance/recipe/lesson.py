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

KINDS = {scene: 34, lines: 20, sign: 12, chart: 18, dialog: 14, texture: 9}


@dataclass
class Lesson:
    """`pixels` is uint8 [tile, tile, 3]; `labels` is bool [cells, cells, labels].

    `letters` is int16 [high, wide] with twice the number of the letter in a cell, plus one if a word begins, or -1.
    """
    pixels: np.ndarray
    labels: np.ndarray
    letters: np.ndarray
    asks: list[Ask]


def squeeze(image: Image.Image, tile: int, way) -> np.ndarray:
    """Returns the image as a square, as the processor makes it: first the longest side, then both."""
    longest = max(image.size)
    for size in ((round(image.width * tile / longest), round(image.height * tile / longest)), (tile, tile)):
        image = image if image.size == size else image.resize(size, way)
    return np.asarray(image)


def cell_labels(c: Canvas, cells: int) -> np.ndarray:
    out = np.zeros((cells, cells, len(LABELS)), bool)
    wide, high = c.width / cells, c.height / cells
    at = lambda value, size: min(cells - 1, max(0, int(value / size)))
    for x, y, name in c.marks:
        if name in INDEX:
            out[at(y, high), at(x, wide), INDEX[name]] = True
    for x0, y0, x1, y1, name in c.boxes:
        out[at(y0, high):at(y1, high) + 1, at(x0, wide):at(x1, wide) + 1, INDEX[name]] = True
    return out


def letter_cells(c: Canvas, high: int, wide: int) -> np.ndarray:
    out = np.full((high, wide), -1, np.int16)
    for x, y, letter, begins in c.letters:
        row, column = int(y / c.height * high), int(x / c.width * wide)
        if letter in LETTERS and 0 <= row < high and 0 <= column < wide:
            out[row, column] = 2 * LETTERS.index(letter) + begins
    return out


def lesson(seed, sight: Sight, held=False, kind=None) -> Lesson:
    """Returns the lesson of a seed. With `held`, pairs, words and fonts are those that training never draws."""
    rng = random.Random(seed)
    d = Draw(rng, held)
    c = (kind or rng.choices(list(KINDS), KINDS.values())[0])(d)
    # The page may have been made smaller before, by other means.
    pixels = squeeze(c.image, sight.tile, Image.LANCZOS if d.chance(0.7) else d.one([Image.BILINEAR, Image.BICUBIC, Image.BOX]))
    if d.chance(0.15):
        pixels = noisy(d, pixels)
    if d.chance(0.12):
        pixels = compressed(d, pixels)
    return Lesson(pixels, cell_labels(c, sight.grid * sight.fine), letter_cells(c, *sight.cells), c.asks)


def noisy(d: Draw, pixels: np.ndarray) -> np.ndarray:
    """Returns pixels with weak noise."""
    grain = np.random.default_rng(d.rng.getrandbits(32)).integers(-12, 13, (*pixels.shape[:2], 1), np.int16)
    return np.uint8(np.clip(pixels + grain, 0, 255))


def compressed(d: Draw, pixels: np.ndarray) -> np.ndarray:
    """Returns pixels as they come back from a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'JPEG', quality=d.rng.randint(40, 92))
    return np.asarray(Image.open(file))

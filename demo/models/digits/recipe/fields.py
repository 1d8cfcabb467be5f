"""Digits as distance fields: how far each point is from the pen's path, so that a pen of any width
can draw them at any size.

A field is SIZE x SIZE; the digit's own square is the middle INNER x INNER of it. Distances are in
field pixels.
"""
import numpy as np
from scipy.ndimage import distance_transform_edt, zoom
from sklearn.datasets import load_digits

from strokes import TAUGHT, distances, write
from thin import thin

SIZE, INNER = 96, 64
MARGIN = (SIZE - INNER) // 2
HELD_OUT_IMAGES = 360
FAR = 60.0


def images() -> tuple[np.ndarray, np.ndarray]:
    """The public set: (1797, 8, 8) in 0..1 and labels, in its order, which is writer by writer."""
    digits = load_digits()
    return digits.images.astype(np.float32) / 16, digits.target


def split(held_out: bool) -> tuple[np.ndarray, np.ndarray]:
    """Everything but the last 360 images, or those: unlike shuffled halves, by other writers."""
    pictures, labels = images()
    part = slice(-HELD_OUT_IMAGES, None) if held_out else slice(None, -HELD_OUT_IMAGES)
    return pictures[part], labels[part]


def enlarge(pictures: np.ndarray) -> np.ndarray:
    """8 x 8 to fields of grey values."""
    edge = ((0, 0), (1, 1), (1, 1))
    factor = INNER // 8
    large = zoom(np.pad(pictures, edge), (1, factor, factor), order=3, grid_mode=True,
                 mode='nearest')
    rest = MARGIN - factor
    return np.pad(large, ((0, 0), (rest, rest), (rest, rest))).clip(0, 1)


def pen_fields(pictures: np.ndarray, level: float) -> np.ndarray:
    """Distance from the middle line of what is darker than `level`."""
    return np.stack([distance_transform_edt(~line) for line in thin(enlarge(pictures) > level)])


def shape_fields(pictures: np.ndarray, level: float) -> np.ndarray:
    """Distance from the outline of what is darker than `level`, negative inside."""
    return np.stack([distance_transform_edt(~mask) - distance_transform_edt(mask)
                     for mask in enlarge(pictures) > level])


def packed(fields: np.ndarray) -> np.ndarray:
    return fields.clip(-FAR, FAR).astype(np.float16)


def grid() -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    return (x + 0.5 - MARGIN) / INNER, (y + 0.5 - MARGIN) / INNER


def written_fields(per_way: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Digits written along the taught paths, each a little differently."""
    x, y = grid()
    made, labels = [], []
    for digit, ways in TAUGHT.items():
        for way in ways:
            for _ in range(per_way):
                made.append(distances(write(way, rng, 0.035), x, y) * INNER)
                labels.append(digit)
    return packed(np.stack(made)), np.array(labels)


def scribble_fields(count: int, rng: np.random.Generator) -> np.ndarray:
    """What is no digit: one to four random strokes."""
    x, y = grid()
    made = []
    for _ in range(count):
        points = [' '.join(f'{a:.3f},{b:.3f}' for a, b in rng.random((rng.integers(2, 7), 2)))
                  for _ in range(rng.integers(1, 5))]
        made.append(distances(write('|'.join(points), rng, 0.0), x, y) * INNER)
    return packed(np.stack(made))

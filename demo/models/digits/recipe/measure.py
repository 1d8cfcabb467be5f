"""Accuracy on what training never saw."""
import numpy as np
import torch
import torch.nn.functional as F

from draw import between, pages
from fields import shape_fields, split
from model import PAGE, Reader, find
from strokes import HELD_OUT, distances, write


@torch.no_grad()
def read(reader: Reader, page: torch.Tensor) -> torch.Tensor:
    """Probabilities (n, 10) for pages (n, 1, PAGE, PAGE)."""
    dark = torch.ones(1, 1, 1, 1, dtype=torch.int32)
    return torch.cat([reader(find(part, dark)).softmax(1) for part in page.split(256)])


def plain(pictures: np.ndarray) -> torch.Tensor:
    """The 8 x 8 images as they are, enlarged to the middle 96 pixels of a white page."""
    large = F.interpolate(torch.from_numpy(pictures)[:, None], (96, 96), mode='bilinear',
                          align_corners=False)
    return 1 - F.pad(large, [(PAGE - 96) // 2] * 4)


def redrawn(pictures: np.ndarray, times: int, seed: int) -> torch.Tensor:
    """The same writing in other widths of stroke, other sizes and places, turned and slanted."""
    fields = torch.from_numpy(shape_fields(pictures, 0.45)).repeat(times, 1, 1)
    gen = torch.Generator().manual_seed(seed)
    return pages(fields, gen, between(-0.02, 0.03, len(fields), gen))


def mouse(times: int, rng: np.random.Generator) -> tuple[torch.Tensor, np.ndarray]:
    """Held-out ways of writing as a mouse draws them: a path of few whole pixels, round pen, on
    square canvases of 200 to 600 pixels, brought down to the page as a browser would."""
    made, labels = [], []
    for digit, ways in HELD_OUT.items():
        for way in ways:
            for _ in range(times):
                made.append(canvas(write(way, rng, 0.03), rng))
                labels.append(digit)
    return torch.cat(made), np.array(labels)


def canvas(strokes: list[np.ndarray], rng: np.random.Generator) -> torch.Tensor:
    side = int(rng.choice([200, 280, 400, 600]))
    height = side * rng.uniform(0.3, 0.85)
    width = height * rng.uniform(0.5, 0.85)
    turn, pen = rng.uniform(-0.15, 0.15), side * rng.uniform(0.02, 0.07) / 2
    rotate = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    room = np.maximum((side - np.array([width, height])) / 2 - pen, 0) * 0.8
    middle = side / 2 + rng.uniform(-1, 1, 2) * room
    drawn = []
    for stroke in strokes:
        path = ((stroke - 0.5) * [width, height]) @ rotate + middle
        events = path[np.unique(np.r_[0 : len(path) : int(rng.integers(2, 5)), len(path) - 1])]
        drawn.append(np.round(events + rng.normal(0, side * 0.004, events.shape)))
    # Twice as fine as the page is fine enough, and does not take all day.
    fine = 2 * PAGE
    y, x = (np.mgrid[0:fine, 0:fine] + 0.5) * side / fine
    ink = np.clip((pen - distances(drawn, x, y)) * fine / side + 0.5, 0, 1)
    return F.avg_pool2d(torch.from_numpy(1 - ink).float()[None, None], 2)


def measure(reader: Reader, times: int) -> dict[str, float]:
    """Share of right answers of each kind; `times`: drawings per image, ten times that per way."""
    reader.eval()
    pictures, labels = split(held_out=True)
    drawings, drawn = mouse(times * 10, np.random.default_rng(7))
    right = lambda page, truth: float((read(reader, page).argmax(1).numpy() == truth).mean())
    return {
        'held-out images': right(plain(pictures), labels),
        'held-out images, redrawn': right(redrawn(pictures, times, 7), np.tile(labels, times)),
        'mouse drawings': right(drawings, drawn),
    }

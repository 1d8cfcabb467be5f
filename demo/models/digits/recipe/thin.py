"""Thinning: what is left of a pen stroke when its width is taken away (Zhang and Suen, 1984)."""
import numpy as np


def thin(masks: np.ndarray) -> np.ndarray:
    """Skeletons of a batch of boolean images (n, h, w), one pixel wide, with loops kept."""
    kept = np.pad(masks, ((0, 0), (1, 1), (1, 1)))
    changed = True
    while changed:
        changed = False
        for first in (True, False):
            gone = removable(kept, first)
            kept &= ~gone
            changed |= bool(gone.any())
    return kept[:, 1:-1, 1:-1]


def removable(kept: np.ndarray, first: bool) -> np.ndarray:
    around = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
    ring = [np.roll(kept, (-y, -x), axis=(1, 2)) for y, x in around]
    north, east, south, west = ring[0], ring[2], ring[4], ring[6]
    count = sum(r.astype(np.int8) for r in ring)
    turns = sum((~ring[i] & ring[(i + 1) % 8]).astype(np.int8) for i in range(8))
    if first:
        open_side = ~(north & east & south) & ~(east & south & west)
    else:
        open_side = ~(north & east & west) & ~(north & south & west)
    return kept & (count >= 2) & (count <= 6) & (turns == 1) & open_side

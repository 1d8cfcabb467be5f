"""Parts of photographs. Training takes those of Debian's mate-backgrounds and ukui-wallpapers, scores those of lomiri-wallpapers."""
import os
from functools import cache, lru_cache
from pathlib import Path

from PIL import Image, ImageEnhance, ImageOps

from canvas import Canvas

PHOTO_DIR = Path(os.environ.get('GLANCE_PHOTOS', '/usr/share/backgrounds'))
# The names of lomiri-wallpapers have this before the photographer.
HELD_MARK = '_by_'
# Longest side of what is kept in memory, in pixels.
KEPT_SIDE_PIXELS = 800


@cache
def paths(held: bool) -> list:
    """Returns the files of the photographs; an empty list if the packages are not installed."""
    return sorted(path for path in PHOTO_DIR.rglob('*.jpg') if (HELD_MARK in path.name) == held)


@lru_cache(maxsize=64)
def photograph(path: Path) -> Image.Image:
    """Returns a whole photograph, made smaller."""
    image = Image.open(path)
    image.draft('RGB', (KEPT_SIDE_PIXELS, KEPT_SIDE_PIXELS))
    image = image.convert('RGB')
    image.thumbnail((KEPT_SIDE_PIXELS, KEPT_SIDE_PIXELS))
    return image


def part(c: Canvas, path: Path) -> Image.Image:
    """Returns a part of a photograph with the size of the page. Its colors and lightness differ each time."""
    r, image = c.rng, photograph(path)
    share = r.uniform(0.4, 1)
    wide, high = image.width * share, image.height * share
    x, y = r.uniform(0, image.width - wide), r.uniform(0, image.height - high)
    out = image.resize((c.width, c.height), Image.BILINEAR, (x, y, x + wide, y + high))
    out = ImageOps.mirror(out) if c.d.chance(0.5) else out
    for enhance in (ImageEnhance.Color, ImageEnhance.Brightness, ImageEnhance.Contrast):
        out = enhance(out).enhance(r.uniform(0.6, 1.4))
    return out

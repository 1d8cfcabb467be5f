"""Sizes, markers and folders of the recipe. Importing this module makes the modules of the guide's recipe importable."""
import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
GUIDE = HERE.parents[1] / 'guide'
sys.path.append(str(GUIDE / 'recipe'))

# Folder of the model's files, and folder of checkpoints and scores.
OUT_DIR = Path(os.environ.get('GLANCE_OUT', HERE.parent))
KEPT_DIR = Path(os.environ.get('GLANCE_WORK', Path.home() / '.cache' / 'inorigin-glance'))

IMAGE, BORDER, WHOLE = '<image>', '<fake_token_around_image>', '<global-img>'
# The reserved tokens of the guide's tokenizer get these names, in order.
MARKERS = [IMAGE, BORDER, WHOLE] + [f'<row_{row}_col_{column}>' for row in (1, 2) for column in (1, 2)]


@dataclass
class Sight:
    """Sizes of the image encoder.

    `stem` has (channels, residual convolutions) for each halving of the picture's sides; the first one quarters them.
    `letters` has the same for the stem that reads, whose first one halves them, and whose last one halves the height
    alone, since letters are narrow. A square has `fine` × `fine` cells of the auxiliary loss. The first `text` letters of a
    tile have rows of their own.
    """
    tile: int = 256
    stem: tuple = ((48, 0), (96, 1), (160, 2), (192, 0))
    letters: tuple = ((32, 0), (64, 2), (128, 2))
    text: int = 80
    blocks: int = 4
    heads: int = 6
    mlp: int = 576
    width: int = 192

    @property
    def grid(self) -> int:
        """Returns squares along a side of a tile."""
        return self.tile // (4 << (len(self.stem) - 1))

    @property
    def fine(self) -> int:
        """Returns small cells along a side of a square."""
        return (self.tile >> len(self.letters)) // self.grid

    @property
    def cells(self) -> tuple[int, int]:
        """Returns the number of cells for letters in a tile (high, wide)."""
        return self.tile >> len(self.letters), self.tile >> len(self.letters) - 1

    @property
    def rows(self) -> int:
        """Returns rows that a tile becomes in the decoder: one for each square, then one for each letter."""
        return self.grid ** 2 + self.text

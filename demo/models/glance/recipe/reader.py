"""Finds printed letters, and makes a row of each in the order of reading.

A stem of convolutions ends in cells that are small enough for single letters. Cells of twice the height and four times the
width see letters that are larger than what the stem sees at once. A cell says which letter has its middle there, if any,
and whether a word begins with it.
"""
import torch
import torch.nn.functional as F
from torch import nn

from labels import LETTERS
from layers import Convolution, Stage, residual
from places import Sight

# A cell has a letter if its score is above one of these: that of any cell, that of a cell in a crowd, or that of the cell with
# the highest score of those around it. Cells share a letter whose middle is near their edge, so the likely number of letters
# in the cells around says whether they are a crowd. Of 441 words, 71 % were right by these values, 68 % without the crowd
# (letters after 40 of 50 minutes of training, without the decoder).
ANY, CROWDED, HIGHEST = 1.0, 0.0, -1.5
CROWD = 1.6
# AROUND is the side of the square of cells around a cell, LARGE the small cells in a large one (high, wide), and ALONG the
# number of cells of a line that are compared with those of the next line.
AROUND, LARGE, ALONG = 3, (2, 4), 33


class Reader(nn.Module):
    """Tiles as [N, 3, tile, tile] to rows of the letters in them, [N, text, width], in the order of reading."""

    def __init__(self, s: Sight):
        super().__init__()
        self.s, (high, wide), channels = s, s.cells, s.letters[-1][0]
        half, quarter, eighth = s.letters
        self.stem = nn.ModuleList([
            Stage(*half, Convolution(3, half[0], 3, 2)), Stage(*quarter, Convolution(half[0], quarter[0], 3, 2)),
            Stage(*eighth, Convolution(quarter[0], eighth[0], 3, (2, 1)), padding=(1, 2), dilation=(1, 2))])
        self.large = nn.ModuleList(Convolution(channels, channels) for _ in range(3))
        self.back = Convolution(channels, channels)
        nn.init.zeros_(self.back.norm.weight)
        self.end = nn.ModuleList([Convolution(channels, channels)])
        nn.init.constant_(self.end[0].norm.weight, 0.1)
        self.head = nn.Linear(channels, len(LETTERS) + 2)
        self.more = nn.Linear(channels, s.width, bias=False)
        self.begins = nn.Parameter(torch.zeros(s.width))
        self.across = nn.Parameter(torch.zeros(wide, s.width))
        self.down = nn.Parameter(torch.zeros(high, s.width))

    def cells(self, pixels):
        """Returns cells as [N, channels, high, wide]."""
        x = pixels
        for stage in self.stem:
            x = stage(x)
        large = residual(self.large, F.avg_pool2d(x, LARGE))
        return residual(self.end, x + F.interpolate(self.back(large), scale_factor=tuple(map(float, LARGE))))

    def scores(self, cells):
        """Returns scores in each cell: of the letters [N, high, wide, letters], that there is one, and that it begins a word, [N, high, wide]."""
        scores = self.head(cells.permute(0, 2, 3, 1))
        return scores[..., :-2], scores[..., -2], scores[..., -1]

    def found(self, here):
        """Returns which cells have a letter, [N, high, wide]."""
        near = F.max_pool2d(here[:, None], AROUND, 1, AROUND // 2)[:, 0]
        share = F.avg_pool2d(here.sigmoid()[:, None], AROUND, 1, AROUND // 2)[:, 0]
        least = torch.where(share > CROWD / AROUND ** 2, CROWDED, ANY)
        return here > torch.where(here >= near, HIGHEST, least)

    def row_numbers(self, here):
        """Returns the number of the row of each cell with a letter, from 1, or 0, [N, high, wide].

        The letters of a line that lies between two rows of cells are in both of them. They count as letters of the row that
        has more of them. Two letters that meet in a cell by that get the same number.
        """
        # Ties must be the same ones as in the exported graph, which has 32 bits.
        here = here.float()
        found = self.found(here)
        strength = F.avg_pool2d((here.sigmoid() * found)[:, None], (1, ALONG), 1, (0, ALONG // 2))[:, 0]
        above, below = lower(strength), higher(strength)
        up = found & (above > strength) & (above >= below)
        down = found & (below > strength) & (below > above)
        stay = found & ~up & ~down
        taken = stay | (higher(up.float()) > 0) | (lower(down.float()) > 0)
        numbers = taken.flatten(1).float().cumsum(1).view_as(here) * taken
        return numbers * stay + lower(numbers) * up + higher(numbers) * down

    def places(self, extents):
        """Returns the places of cells, [N, high, wide, width], in pictures that take these shares of a tile's sides, [N, 2]."""
        high, wide = self.s.cells
        return (share_weights(extents[:, 0], wide) @ self.across)[:, None] + (share_weights(extents[:, 1], high) @ self.down)[:, :, None]

    def forward(self, cells, embeddings, extents):
        """Returns the rows of cells. `embeddings` are those of the letters' tokens. Rows without a letter are zero."""
        letters, here, begins = self.scores(cells)
        x = letters.softmax(-1) @ embeddings + self.more(cells.permute(0, 2, 3, 1)) + begins.sigmoid()[..., None] * self.begins + self.places(extents)
        # Which cell becomes which row. This is a product of matrices, because not every runtime sorts on a GPU.
        chosen = self.row_numbers(here).flatten(1)[:, None] == torch.arange(1, self.s.text + 1, device=x.device)[:, None]
        return chosen.to(x.dtype) @ x.flatten(1, 2)


def share_weights(shares, count: int):
    """Returns weights [N, count, count] that interpolate the places along a side.

    A picture that takes a share of the side lies in its middle. The first place belongs to the beginning of the picture and
    the last one to its end, so that answers about places are about the picture alone. `shares` is [N].
    """
    steps = torch.arange(count, dtype=shares.dtype, device=shares.device)
    at = ((steps + 0.5 - count / 2) / shares[:, None] + (count - 1) / 2).clamp(0, count - 1)
    return (1 - (at[..., None] - steps).abs()).clamp(min=0)


def lower(grid):
    """Returns the grid [N, high, wide] moved down by a row."""
    return F.pad(grid[:, :-1], (0, 0, 1, 0))


def higher(grid):
    """Returns the grid [N, high, wide] moved up by a row."""
    return F.pad(grid[:, 1:], (0, 0, 0, 1))

"""The image encoder, and the model of encoder, reader and decoder.

The rows that the decoder gets have two origins. A stem of convolutions makes a grid of squares, pre-norm blocks without a
causal mask mix them, and each becomes a row. A second stem has cells that are small enough for single letters. Each
letter that it finds becomes a row in the order of reading: the embedding of the letter's token, which the decoder can
copy, with its place. The decoder is the guide's. Convolutions are cheap on a CPU: a block over 256 squares costs more than
a stem, so the blocks have 64.
"""
import torch
import torch.nn.functional as F
from torch import nn

from labels import LABELS, LETTERS
from layers import Convolution, Stage
from places import IMAGE, Sight
from reader import Reader, share_weights
from model import Guide
from settings import Shape
from sight_tokens import letters_of, marker_ids


class Block(nn.Module):
    """A transformer block that sees all cells."""

    def __init__(self, width: int, heads: int, mlp: int):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp_norm = nn.RMSNorm(width, eps=1e-5)
        self.up = nn.Linear(width, mlp, bias=False)
        self.down = nn.Linear(mlp, width, bias=False)

    def forward(self, x):
        batch, cells, width = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(batch, cells, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, cells, width))
        return x + self.down(F.relu(self.up(self.mlp_norm(x))))


class Encoder(nn.Module):
    """Tiles as [N, 3, tile, tile], from -1 to 1, to rows of their squares [N, grid ** 2, width].

    `extents` [N, 2] are the shares of a tile's width and height that its picture takes, in the middle.
    """

    def __init__(self, s: Sight):
        super().__init__()
        self.s, inner = s, s.stem[-1][0]
        sizes = [3, *(channels for channels, _ in s.stem)]
        self.stem = nn.ModuleList(Stage(*stage, Convolution(before, stage[0], 6, 4, 1) if at == 0 else Convolution(before, stage[0], 3, 2, 1)) for at, (before, stage) in enumerate(zip(sizes, s.stem)))
        self.places = nn.Parameter(torch.randn(s.grid ** 2, inner) * 0.02)
        self.blocks = nn.ModuleList(Block(inner, s.heads, s.mlp) for _ in range(s.blocks))
        self.norm = nn.RMSNorm(inner, eps=1e-5)
        self.connect = nn.Linear(inner, s.width, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)

    def placed(self, extents):
        """Returns the places of squares, [N, grid ** 2, channels]."""
        grid = self.s.grid
        across, down = share_weights(extents[:, 0], grid), share_weights(extents[:, 1], grid)
        return torch.einsum('nrk,ncl,klw->nrcw', down, across, self.places.view(grid, grid, -1)).flatten(1, 2)

    def forward(self, pixels, extents):
        x = pixels
        for stage in self.stem:
            x = stage(x)
        x = x.flatten(2).transpose(1, 2) + self.placed(extents)
        for block in self.blocks:
            x = block(x)
        return self.connect(self.norm(x))


class Glance(nn.Module):
    """The encoder, the reader, the guide, and the head of the auxiliary loss, which is not exported."""

    def __init__(self, sight: Sight, shape: Shape):
        super().__init__()
        self.encoder = Encoder(sight)
        self.reader = Reader(sight)
        self.guide = Guide(shape)
        self.head = nn.Linear(sight.width, sight.fine ** 2 * len(LABELS))
        # Few cells have a label.
        nn.init.constant_(self.head.bias, -5)
        # A letter of several bytes has the mean of their embeddings.
        spread = torch.zeros(len(LETTERS), shape.vocab_size)
        for at, letter in enumerate(LETTERS):
            spread[at, letters_of(letter)] = 1 / len(letters_of(letter))
        self.register_buffer('spread', spread, persistent=False)

    def letter_embeddings(self):
        """Returns the embeddings of the letters, [letters, width]."""
        return self.spread @ self.guide.embed_tokens.weight

    def see(self, pixels, extents):
        """Returns the rows of tiles, [N, rows, width]."""
        return torch.cat([self.encoder(pixels, extents), self.reader(self.reader.cells(pixels), self.letter_embeddings(), extents)], 1)

    def labels(self, rows):
        """Returns scores of the labels in each small cell, [N, cells, cells, labels], from the rows of the squares."""
        s = self.encoder.s
        x = self.head(rows[:, :s.grid ** 2]).view(-1, s.grid, s.grid, s.fine, s.fine, len(LABELS))
        return x.transpose(2, 3).reshape(-1, s.grid * s.fine, s.grid * s.fine, len(LABELS))

    def read(self, rows, prefix):
        """Returns keys and values of each layer after the ids of `prefix`, for each picture's rows."""
        embedded = self.guide.embed_tokens(prefix.to(rows.device)).expand(len(rows), -1, -1).to(rows.dtype)
        image = (prefix == marker_ids()[IMAGE]).nonzero()[:, 0]
        first, last = int(image[0]), int(image[-1]) + 1
        _, past = self.guide.run(torch.cat([embedded[:, :first], rows, embedded[:, last:]], 1))
        return past

    def answer(self, past, group, rows):
        """Returns (scores of the next token, the tokens) at all learnt places of a group of questions.

        `rows` are those of all pictures, for the questions that show a second one.
        """
        embedded = self.guide.embed_tokens(group.ids[:, :-1]).to(rows.dtype)
        image = (group.ids[:, :-1] == marker_ids()[IMAGE]) & (group.second >= 0)[:, None]
        if image.any():
            embedded = embedded.masked_scatter(image[..., None], rows[group.second[group.second >= 0]])
        hidden, _ = self.guide.run(embedded, [(k[group.owner], v[group.owner]) for k, v in past])
        return self.guide.logits(hidden[group.learn[:, 1:]]), group.ids[:, 1:][group.learn[:, 1:]]


def to_input(pixels: torch.Tensor) -> torch.Tensor:
    """Returns bytes [N, tile, tile, 3] as the encoder's input."""
    return pixels.permute(0, 3, 1, 2).to(torch.float32).div_(127.5).sub_(1)

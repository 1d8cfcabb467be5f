"""The reader: finds the ink on a page, brings it to one size in the middle, and tells the digit."""
import torch
from torch import nn

PAGE, CROP = 128, 28
# How much of the page, in standard deviations of the ink, the crop reaches to each side.
REACH = 2.2
# Ink lighter than this share of the darkest is taken for texture of the paper.
FLOOR = 0.25


def find(page: torch.Tensor, ink: torch.Tensor) -> torch.Tensor:
    """Crops (n, 1, CROP, CROP), 0 is paper and 1 is ink.

    `ink` tells how to read the page (n, 1, PAGE, PAGE): 1 dark on light, 2 light on dark, 0 look at
    the border. Only sums, products and maxima, so that it exports to a graph that runs anywhere.
    """
    edge = torch.ones(PAGE, PAGE)
    edge[2:-2, 2:-2] = 0
    border = (page * edge).sum((2, 3), keepdim=True) / edge.sum()
    light = (ink == 2) | ((ink == 0) & (border < 0.5))
    strength = torch.where(light, page - border, border - page).relu()
    strength = strength / strength.amax((2, 3), keepdim=True).clamp(min=0.2)
    strength = (strength - FLOOR).relu() / (1 - FLOOR)

    place = torch.arange(PAGE) + 0.5
    rows, columns = strength.sum(3)[:, 0], strength.sum(2)[:, 0]
    mass = rows.sum(1, keepdim=True) + 1
    # The one unit of ink in the middle stands in on an empty page.
    y = ((rows * place).sum(1, keepdim=True) + PAGE / 2) / mass
    x = ((columns * place).sum(1, keepdim=True) + PAGE / 2) / mass
    spread = torch.maximum((rows * (place - y) ** 2).sum(1, keepdim=True),
                           (columns * (place - x) ** 2).sum(1, keepdim=True))
    step = 2 * REACH / CROP * (spread / mass + 4).sqrt()

    def weights(middle: torch.Tensor) -> torch.Tensor:
        """Which pixels of the page make up each pixel of the crop, along one axis."""
        wanted = middle + (torch.arange(CROP) + 0.5 - CROP / 2) * step
        width = step.clamp(min=1)[:, :, None]
        return (1 - (place - wanted[:, :, None]).abs() / width).relu() / width

    crop = weights(y) @ strength[:, 0] @ weights(x).transpose(1, 2)
    return (crop / crop.amax((1, 2), keepdim=True).clamp(min=0.1))[:, None]


class Reader(nn.Module):
    """Ten scores for a crop; 47 thousand parameters."""

    def __init__(self):
        super().__init__()
        sizes = [(1, 16), (16, 32), (32, 48)]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b in sizes)
        self.hidden = nn.Linear(48 * 3 * 3, 64)
        self.last = nn.Linear(64, 10)

    def forward(self, crop: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms):
            crop = nn.functional.max_pool2d(norm(conv(crop)).relu(), 2)
        seen = nn.functional.dropout(crop.flatten(1), 0.1, self.training)
        return self.last(self.hidden(seen).relu())

    def folded(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Kernel and bias of each convolution with its normalisation multiplied in."""
        pairs = []
        for conv, norm in zip(self.convs, self.norms):
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            pairs.append((conv.weight * scale[:, None, None, None],
                          norm.bias - norm.running_mean * scale))
        return pairs

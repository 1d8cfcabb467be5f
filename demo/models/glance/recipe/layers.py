"""The convolutions of both stems."""
import torch.nn.functional as F
from torch import nn


class Convolution(nn.Module):
    """A convolution with batch normalization, which the export folds into it."""

    def __init__(self, before: int, after: int, kernel=3, stride=1, padding=1, dilation=1):
        super().__init__()
        self.convolution = nn.Conv2d(before, after, kernel, stride, padding, dilation, bias=False)
        self.norm = nn.BatchNorm2d(after, momentum=0.02)

    def forward(self, x):
        return self.norm(self.convolution(x))


class Stage(nn.Module):
    """A convolution that makes the grid smaller, and residual convolutions."""

    def __init__(self, channels: int, more: int, shrink: Convolution, **options):
        super().__init__()
        self.shrink = shrink
        self.more = nn.ModuleList(Convolution(channels, channels, **options) for _ in range(more))

    def forward(self, x):
        return residual(self.more, F.relu(self.shrink(x)))


def residual(convolutions, x):
    """Adds to `x` what each convolution makes of it."""
    for convolution in convolutions:
        x = x + F.relu(convolution(x))
    return x

"""From distance fields to pages: any size, place, slant and pen, dark ink on white paper."""
import torch
import torch.nn.functional as F

from fields import INNER, SIZE
from model import PAGE


def between(low: float, high: float, n: int, gen: torch.Generator) -> torch.Tensor:
    return torch.rand(n, generator=gen) * (high - low) + low


def pages(fields: torch.Tensor, gen: torch.Generator, pen: torch.Tensor) -> torch.Tensor:
    """Pages (n, 1, PAGE, PAGE), 1 is white. `pen`: half a stroke's width over a digit's height."""
    n = len(fields)
    height = torch.exp(between(-1.4, -0.06, n, gen))  # of the page: 0.25 to 0.94
    aspect = torch.exp(between(-0.28, 0.28, n, gen))
    turn = between(-0.26, 0.26, n, gen)
    slant = between(-0.3, 0.3, n, gen)
    reach = (1 - height).clamp(min=0)
    middle = torch.stack([between(-1, 1, n, gen) * reach, between(-1, 1, n, gen) * reach], 1)

    line = (torch.arange(PAGE) + 0.5) / PAGE * 2 - 1
    y, x = torch.meshgrid(line, line, indexing='ij')
    x, y = x[None] - middle[:, 0, None, None], y[None] - middle[:, 1, None, None]
    per = lambda t: t[:, None, None]
    cos, sin = per(turn.cos()), per(turn.sin())
    # From page to field: the digit's square is INNER / SIZE of the field.
    u = (cos * x + sin * y) / per(height * aspect) * (INNER / SIZE)
    v = (cos * y - sin * x) / per(height) * (INNER / SIZE)
    u = u + per(slant) * v
    bend = F.interpolate(torch.randn(n, 2, 4, 4, generator=gen) * 0.03, (PAGE, PAGE),
                         mode='bicubic', align_corners=True)
    places = torch.stack([u + bend[:, 0], v + bend[:, 1]], -1)
    distance = F.grid_sample(fields[:, None].float(), places, padding_mode='border',
                             align_corners=False)[:, 0]
    pixel = per(height) * PAGE / INNER  # page pixels per field pixel
    ink = ((per(pen) * INNER - distance) * pixel + 0.5).clamp(0, 1)
    return 1 - ink[:, None]


def wear(page: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    """Grey ink, uneven paper, a little blur and noise, now and then a speck."""
    n = len(page)
    per = lambda t: t[:, None, None, None]
    soft = F.avg_pool2d(page, 3, 1, 1)
    page = torch.where(per(torch.rand(n, generator=gen) < 0.3), soft, page)
    ink = per(between(0.45, 1, n, gen).maximum(per_coin(n, 0.6, gen)))
    paper = per(between(0.75, 1, n, gen).maximum(per_coin(n, 0.6, gen)))
    worn = (1 - (1 - page) * ink) * paper
    noise = torch.randn(page.shape, generator=gen) * per(per_coin(n, 0.3, gen) * 0.04)
    specks = (torch.rand(page.shape, generator=gen) < 1e-4) & per(per_coin(n, 0.1, gen) > 0)
    return (worn + noise).masked_fill(specks, 0.2).clamp(0, 1)


def per_coin(n: int, chance: float, gen: torch.Generator) -> torch.Tensor:
    return (torch.rand(n, generator=gen) < chance).float()

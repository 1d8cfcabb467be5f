"""From distance fields to pages: any size, place, slant and pen, dark ink on white paper."""
import torch
import torch.nn.functional as F

from fields import INNER, SIZE
from model import PAGE

# From a coarse grid to the lines of a page, by cubic interpolation along one axis.
BENDS = 4
SPREAD = F.interpolate(torch.eye(BENDS)[None, None], (PAGE, BENDS), mode='bicubic',
                       align_corners=True)[0, 0]


def between(low: float, high: float, n: int, gen: torch.Generator) -> torch.Tensor:
    return torch.rand(n, generator=gen) * (high - low) + low


def pages(fields: torch.Tensor, gen: torch.Generator, pen: torch.Tensor) -> torch.Tensor:
    """Pages (n, 1, PAGE, PAGE), 1 is white. `pen`: half a stroke's width over a digit's height."""
    n = len(fields)
    height = torch.exp(between(-1.4, -0.06, n, gen))  # of the page: 0.25 to 0.94
    places = F.affine_grid(to_field(height, gen), (n, 1, PAGE, PAGE), align_corners=False)
    coarse = torch.randn(n, 2, BENDS, BENDS, generator=gen) * 0.03
    places = places + (SPREAD @ coarse @ SPREAD.T).permute(0, 2, 3, 1)
    distance = F.grid_sample(fields[:, None].float(), places, padding_mode='border',
                             align_corners=False)
    pixel = height * PAGE / INNER  # page pixels per field pixel
    per = lambda t: t[:, None, None, None]
    return (per(0.5 - pen * INNER * pixel) + distance * per(pixel)).clamp(0, 1)


def to_field(height: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    """Matrices (n, 2, 3) from places on the page to places in the field, both from -1 to 1."""
    n = len(height)
    aspect = torch.exp(between(-0.28, 0.28, n, gen))
    turn = between(-0.26, 0.26, n, gen)
    slant = between(-0.3, 0.3, n, gen)
    reach = (1 - height).clamp(min=0)
    x, y = between(-1, 1, n, gen) * reach, between(-1, 1, n, gen) * reach
    # The digit's square is INNER / SIZE of the field.
    across = INNER / SIZE / (height * aspect)
    down = INNER / SIZE / height
    v = torch.stack([-turn.sin() * down, turn.cos() * down], 1)
    u = torch.stack([turn.cos() * across, turn.sin() * across], 1) + slant[:, None] * v
    linear = torch.stack([u, v], 1)
    return torch.cat([linear, -linear @ torch.stack([x, y], 1)[:, :, None]], 2)


def wear(page: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    """Blur, grey ink, uneven paper, noise and specks, each for some of the pages."""
    n = len(page)
    some = lambda chance: (torch.rand(n, generator=gen) < chance).nonzero()[:, 0]
    per = lambda t: t[:, None, None, None]
    page = page.clone()
    blurred = some(0.3)
    page[blurred] = F.avg_pool2d(page[blurred], 3, 1, 1, count_include_pad=False)
    grey = some(0.4)
    ink, paper = between(0.45, 1, len(grey), gen), between(0.75, 1, len(grey), gen)
    page[grey] = (1 - (1 - page[grey]) * per(ink)) * per(paper)
    noisy = some(0.3)
    page[noisy] += torch.randn(page[noisy].shape, generator=gen) * 0.04
    specked = some(0.1)
    specks = torch.rand(page[specked].shape, generator=gen) < 1e-4
    page[specked] = page[specked].masked_fill(specks, 0.2)
    return page.clamp(0, 1)

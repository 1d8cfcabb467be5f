"""Pictures of one to nine shapes."""
import math
from dataclasses import dataclass

from canvas import Canvas, clear, distance, new_canvas, tone
from labels import COLORS, SHAPES
from prints import label_word
from shape_questions import questions

NAMES = list(COLORS)


@dataclass
class Thing:
    shape: str
    color: str
    x: float
    y: float
    r: float

    @property
    def name(self) -> str:
        return f'{self.color} {self.shape}'


def held_pair(shape: str, color: str) -> bool:
    """Returns `True` for pairs that training never draws: one color of each shape."""
    return NAMES[(5 * SHAPES.index(shape) + 1) % len(NAMES)] == color


def outline(d, shape: str, x: float, y: float, r: float, turn: float) -> list:
    """Returns the corners of a shape. Its area is about that of a circle with this radius."""
    ring = lambda count, radii, start: [(x + radii[i % len(radii)] * math.cos(start + turn + i * math.tau / count), y + radii[i % len(radii)] * math.sin(start + turn + i * math.tau / count)) for i in range(count)]
    around = lambda corners: [(x + i * math.cos(turn) - j * math.sin(turn), y + i * math.sin(turn) + j * math.cos(turn)) for i, j in corners]
    if shape == 'heart':
        points = [math.tau * i / 28 for i in range(28)]
        return around([(r * 0.066 * 16 * math.sin(t) ** 3, -r * 0.066 * (13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t))) for t in points])
    if shape == 'cross':
        w = d.rng.uniform(0.24, 0.42) * r
        return around([(-w, -r), (w, -r), (w, -w), (r, -w), (r, w), (w, w), (w, r), (-w, r), (-w, w), (-r, w), (-r, -w), (-w, -w)])
    if shape == 'rectangle':
        long = d.rng.uniform(1.1, 1.3)
        w, h = (r * long, r * 0.66 / long) if d.chance(0.6) else (r * 0.66 / long, r * long)
        return around([(-w, -h), (w, -h), (w, h), (-w, h)])
    if shape == 'diamond':
        return [(x, y - r * 1.2), (x + r * 0.8, y), (x, y + r * 1.2), (x - r * 0.8, y)]
    if shape == 'triangle' and d.chance(0.3):
        w, h, top = r * d.rng.uniform(0.9, 1.2), r * d.rng.uniform(0.85, 1.15), d.one([0, 0, -1, 1])
        return around([(w * top, -h), (w, h), (-w, h)])
    count, radii, start = {'square': (4, [r * 1.2], math.pi / 4), 'triangle': (3, [r * 1.25], d.one([-1, -1, -1, 1]) * math.pi / 2), 'star': (10, [r * 1.2, r * d.rng.uniform(0.42, 0.56)], -math.pi / 2), 'hexagon': (6, [r], d.one([0, math.pi / 6]))}[shape]
    return ring(count, radii, start)


def put(c: Canvas, thing: Thing):
    """Draws a shape, filled or as an outline, and marks its box."""
    fill, x, y, r = clear(c.rng, thing.color, c.paper), thing.x, thing.y, thing.r
    hollow = r > c.width * 0.07 and c.d.chance(0.12)
    line = max(3, round(r * c.rng.uniform(0.1, 0.3)))
    edge = tone(c.rng, 'black') if c.d.chance(0.2) and thing.color != 'black' else None
    thin = max(1, round(c.width * c.rng.uniform(0.004, 0.014)))
    if thing.shape in ('circle', 'oval'):
        long = r * c.rng.uniform(1.15, 1.3)
        w, h = (r, r) if thing.shape == 'circle' else (long, r * 0.6) if c.d.chance(0.6) else (r * 0.6, long)
        box = [x - w, y - h, x + w, y + h]
        c.pen.ellipse(box, outline=fill, width=line) if hollow else c.pen.ellipse(box, fill=fill, outline=edge, width=thin)
    else:
        corners = outline(c.d, thing.shape, x, y, r, c.rng.uniform(-0.2, 0.2) if c.d.chance(0.35) else 0)
        if hollow:
            c.pen.line([*corners, *corners[:2]], fill=fill, width=line, joint='curve')
        else:
            c.pen.polygon(corners, fill=fill, outline=edge, width=thin)
    c.boxes += [(x - r * 0.7, y - r * 0.7, x + r * 0.7, y + r * 0.7, label) for label in (thing.shape, thing.color)]


# Shares of the number of shapes, and ranges of their radius as a share of the shorter side.
COUNTS = {1: 20, 2: 22, 3: 18, 4: 14, 5: 9, 6: 7, 7: 4, 8: 3, 9: 3}
RADII = [(0.05, 0.08), (0.08, 0.13), (0.13, 0.24)]


def scatter(c: Canvas, count: int) -> list:
    """Draws things that do not touch each other."""
    side, things = min(c.width, c.height), []
    ranges = [(0.2, 0.38), *RADII] if count == 1 else RADII if count < 5 else RADII[:2]
    for _ in range(80):
        r = side * c.rng.uniform(*c.d.one(ranges))
        x, y = c.rng.uniform(r * 1.25, c.width - r * 1.25), c.rng.uniform(r * 1.25, c.height - r * 1.25)
        if any(math.hypot(x - t.x, y - t.y) < 1.3 * (r + t.r) for t in things):
            continue
        things.append(Thing(*pair(c, things), x, y, r))
        if len(things) == count:
            break
    return things


def lined_up(c: Canvas, count: int) -> list:
    """Draws things in lines, as people draw what is to be counted: mostly of one shape, often of one color."""
    columns = c.rng.randint(1, count) if count < 4 else c.rng.randint(math.ceil(count / 3), min(5, count))
    lines = math.ceil(count / columns)
    wide, high = c.width / columns, c.height / lines
    r = min(wide, high, 0.5 * min(c.width, c.height)) * c.rng.uniform(0.22, 0.36)
    one, things = pair(c, []), []
    same, alike = c.d.chance(0.6), c.d.chance(0.5)
    for at in range(count):
        shape, color = pair(c, things) if not same else one if alike else of_shape(c, one[0])
        things.append(Thing(shape, color, (at % columns + 0.5) * wide, (at // columns + 0.5) * high, r))
    return things


def of_shape(c: Canvas, shape: str) -> tuple:
    """Returns a shape with a color that can be seen."""
    while held_pair(shape, color := c.d.one(NAMES)) or distance(color, c.ground) <= 120:
        pass
    return shape, color


def pair(c: Canvas, things) -> tuple:
    """Returns a shape and a color for the next thing, sometimes those of an earlier one."""
    held = c.d.held and (not things or c.d.chance(0.8))
    while True:
        shape = c.d.one(things).shape if things and c.d.chance(0.3) else c.d.one(SHAPES)
        color = c.d.one(things).color if things and c.d.chance(0.2) else c.d.one(NAMES)
        if held_pair(shape, color) == held and distance(color, c.ground) > 120:
            return shape, color


def stripes(c: Canvas):
    """Draws weak lines on the ground."""
    weak = tuple(max(0, min(255, v + c.d.one([-1, 1]) * 14)) for v in c.paper)
    for at in range(0, c.width, c.rng.randint(10, 40)):
        c.pen.line([(at, 0), (at, c.height)], fill=weak, width=3)


def scene(d) -> Canvas:
    """Draws a picture of shapes, sometimes with a word."""
    c = new_canvas(d)
    if d.chance(0.1):
        stripes(c)
    count = d.rng.choices(list(COUNTS), COUNTS.values())[0]
    things = lined_up(c, count) if d.chance(0.25) else scatter(c, count)
    for t in things:
        put(c, t)
    # Captions read from left to right and from top to bottom.
    things.sort(key=lambda t: (int(3 * t.y / c.height), t.x))
    questions(c, things, label_word(c, things) if count < 5 and d.chance(0.12) else None)
    return c

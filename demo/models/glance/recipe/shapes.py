"""Pictures of one to six shapes, and what can be asked about them."""
import math
from collections import Counter
from dataclasses import dataclass

from ask import a, counted, listed, plural, say
from canvas import Canvas, distance, new_canvas, tone
from labels import COLORS, SHAPES

NAMES = list(COLORS)
COLUMNS, LINES = ('left', '', 'right'), ('top', '', 'bottom')
# Near a border between two of the nine places, nobody is asked for the place.
BORDER = 0.035


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
    return NAMES[(3 * SHAPES.index(shape) + 1) % len(NAMES)] == color


def outline(shape: str, x: float, y: float, r: float, turn: float) -> list:
    """Returns the corners of a shape. Its area is about that of a circle with this radius."""
    ring = lambda count, radii, start: [(x + radii[i % len(radii)] * math.cos(start + turn + i * math.tau / count), y + radii[i % len(radii)] * math.sin(start + turn + i * math.tau / count)) for i in range(count)]
    if shape == 'heart':
        points = [math.tau * i / 28 for i in range(28)]
        return [(x + r * 0.066 * 16 * math.sin(t) ** 3, y - r * 0.066 * (13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t))) for t in points]
    if shape == 'cross':
        w = 0.34 * r
        corners = [(-w, -r), (w, -r), (w, -w), (r, -w), (r, w), (w, w), (w, r), (-w, r), (-w, w), (-r, w), (-r, -w), (-w, -w)]
        return [(x + i, y + j) for i, j in corners]
    if shape == 'rectangle':
        w, h = (r * 1.15, r * 0.6) if int(x) % 3 else (r * 0.6, r * 1.15)
        return [(x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h)]
    if shape == 'diamond':
        return [(x, y - r * 1.2), (x + r * 0.8, y), (x, y + r * 1.2), (x - r * 0.8, y)]
    count, radii, start = {'square': (4, [r * 1.2], math.pi / 4), 'triangle': (3, [r * 1.25], -math.pi / 2), 'star': (10, [r * 1.2, r * 0.5], -math.pi / 2), 'hexagon': (6, [r], 0)}[shape]
    return ring(count, radii, start)


def put(c: Canvas, thing: Thing):
    """Draws a shape, filled or as an outline, and marks its box."""
    fill, x, y, r = tone(c.rng, thing.color), thing.x, thing.y, thing.r
    hollow = r > 18 and c.d.chance(0.15)
    line = max(3, round(r * c.rng.uniform(0.12, 0.3)))
    if thing.shape in ('circle', 'oval'):
        w, h = (r, r) if thing.shape == 'circle' else (r * 1.15, r * 0.62) if int(x) % 3 else (r * 0.62, r * 1.15)
        box = [x - w, y - h, x + w, y + h]
        c.pen.ellipse(box, outline=fill, width=line) if hollow else c.pen.ellipse(box, fill=fill)
    else:
        corners = outline(thing.shape, x, y, r, c.rng.uniform(-0.15, 0.15) if c.d.chance(0.4) else 0)
        if hollow:
            c.pen.line([*corners, *corners[:2]], fill=fill, width=line, joint='curve')
        else:
            c.pen.polygon(corners, fill=fill, outline=tone(c.rng, 'black') if c.d.chance(0.1) and thing.color != 'black' else None)
    c.boxes += [(x - r * 0.7, y - r * 0.7, x + r * 0.7, y + r * 0.7, label) for label in (thing.shape, thing.color)]


def scatter(c: Canvas, count: int) -> list:
    """Draws things that do not touch each other."""
    side, things = min(c.width, c.height), []
    for _ in range(60):
        r = side * c.rng.uniform(*c.d.one([(0.055, 0.08), (0.08, 0.13), (0.13, 0.24)]))
        x, y = c.rng.uniform(r * 1.2, c.width - r * 1.2), c.rng.uniform(r * 1.2, c.height - r * 1.2)
        if any(math.hypot(x - t.x, y - t.y) < 1.3 * (r + t.r) for t in things):
            continue
        shape, color = pair(c, things)
        things.append(Thing(shape, color, x, y, r))
        if len(things) == count:
            break
    return things


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
    base = c.image.getpixel((0, 0))
    weak = tuple(max(0, min(255, v + c.d.one([-1, 1]) * 14)) for v in base)
    for at in range(0, c.width, c.rng.randint(10, 40)):
        c.pen.line([(at, 0), (at, c.height)], fill=weak, width=3)


def place(c: Canvas, t: Thing) -> str | None:
    """Returns the name of one of nine places; `None` near a border between two."""
    fractions = t.x / c.width, t.y / c.height
    if any(abs(f - edge) < BORDER for f in fractions for edge in (1 / 3, 2 / 3)):
        return None
    column, line = COLUMNS[min(2, int(fractions[0] * 3))], LINES[min(2, int(fractions[1] * 3))]
    return f'{line} {column}'.strip() or 'center'


def names(things) -> list:
    """Returns the shortest name of each thing that fits no other: its shape or its color and shape; `None` if there is none."""
    unique = lambda key, t: sum(key(o) == key(t) for o in things) == 1
    return [t.shape if unique(lambda o: o.shape, t) else t.name if unique(lambda o: o.name, t) else None for t in things]


def ask_looks(c: Canvas, things):
    for t in things:
        if sum(o.shape == t.shape for o in things) == 1:
            c.ask('color', say(c.d, 'color', s=t.shape), f'The {t.shape} is {t.color}.')
        if sum(o.color == t.color for o in things) == 1:
            c.ask('shape', say(c.d, 'shape', c=t.color), f'It is {a(t.shape)}.')
    missing = c.d.one([s for s in SHAPES if all(t.shape != s for t in things)])
    if c.d.chance(0.15):
        c.ask('negative', say(c.d, 'color', s=missing), f'There is no {missing}.')
    c.ask('ground', say(c.d, 'ground'), f'The background is {c.ground}.')


def ask_counts(c: Canvas, things):
    c.ask('count', say(c.d, 'count', p=c.d.one(['shapes', 'shapes', 'objects', 'things'])), counted(len(things), 'shape'))
    t = c.d.one(things)
    shape = t.shape if c.d.chance(0.8) else c.d.one(SHAPES)
    c.ask('count', say(c.d, 'count', p=plural(shape, 2)), counted(sum(o.shape == shape for o in things), shape))
    color = t.color if c.d.chance(0.8) else c.d.one(NAMES)
    c.ask('count', say(c.d, 'count', p=f'{color} shapes'), counted(sum(o.color == color for o in things), f'{color} shape'))


def ask_places(c: Canvas, things):
    places = [place(c, t) for t in things]
    for t, name, where in zip(things, names(things), places):
        if name and where:
            c.ask('place', say(c.d, 'where', o=name), f'The {name} is {at(where)}.')
        if where and places.count(where) == 1 and None not in places:
            c.ask('at', say(c.d, 'at', w=where), f'There is {a(t.name)}.')


def at(where: str) -> str:
    return f'{"on" if where in ("left", "right") else "in" if where == "center" else "at"} the {where}'


def ask_pairs(c: Canvas, things):
    known = [(t, name) for t, name in zip(things, names(things)) if name]
    if len(known) < 2:
        return
    (t, one), (o, other) = c.rng.sample(known, 2)
    for far, words in ((t.x - o.x, ('left', 'right')), (t.y - o.y, ('above', 'below'))):
        if abs(far) > 0.12 * c.width:
            word = c.d.one(words)
            true = (far < 0) == (word == words[0])
            side = {'left': 'left of', 'right': 'right of'}
            true_word = words[0] if far < 0 else words[1]
            c.ask('relation', say(c.d, word, a=one, b=other), f'{"Yes" if true else "No"}, the {one} is {side.get(true_word, true_word)} the {other}.')
    if max(t.r, o.r) > 1.35 * min(t.r, o.r):
        c.ask('larger', say(c.d, 'larger', a=one, b=other), f'The {one if t.r > o.r else other} is larger.')
    first, second = sorted(things, key=lambda each: -each.r)[:2]
    if first.r > 1.25 * second.r:
        c.ask('larger', say(c.d, 'largest'), f'The {first.name} is the largest.')


def ask_presence(c: Canvas, things):
    t = c.d.one(things)
    there = [t.shape, t.name, t.name]
    c.ask('presence', say(c.d, 'exists', o=(o := c.d.one(there))), f'Yes, there is {a(o)}.')
    color, shape = c.d.one(things).color if c.d.chance(0.5) else c.d.one(NAMES), c.d.one(things).shape if c.d.chance(0.5) else c.d.one(SHAPES)
    if all((o.shape, o.color) != (shape, color) for o in things):
        c.ask('presence', say(c.d, 'exists', o=f'{color} {shape}'), f'No, there is no {color} {shape}.')
    if c.d.chance(0.15):
        c.ask('negative', say(c.d, 'read', t='picture'), 'There is no text.')


def caption(c: Canvas, things) -> str:
    places = [place(c, t) for t in things]
    if len(things) <= 3 and None not in places:
        return f'I see {listed([f"{a(t.name)} {at(where)}" for t, where in zip(things, places)])}.'
    counts = Counter(t.name for t in things)
    return f'I see {listed([a(name) if count == 1 else f"{count} {plural(name, count)}" for name, count in counts.items()])}.'


def scene(d) -> Canvas:
    """Draws a picture of shapes."""
    c = new_canvas(d)
    if d.chance(0.15):
        stripes(c)
    things = scatter(c, d.rng.choices(range(1, 7), [18, 24, 22, 16, 11, 9])[0])
    for t in things:
        put(c, t)
    # Captions read from left to right and from top to bottom.
    things.sort(key=lambda t: (int(3 * t.y / c.height), t.x))
    c.ask('caption', say(d, 'caption'), caption(c, things))
    for part in (ask_looks, ask_counts, ask_places, ask_pairs, ask_presence):
        part(c, things)
    return c

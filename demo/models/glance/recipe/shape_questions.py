"""What can be asked about a picture of shapes, with the answers."""
from collections import Counter

from ask import a, counted, listed, plural, say
from canvas import Canvas, spelled
from labels import COLORS, SHAPES

NAMES = list(COLORS)
COLUMNS, LINES = ('left', '', 'right'), ('top', '', 'bottom')
# Near a border between two of the nine places, nobody is asked for the place.
BORDER = 0.035
# Other words for a shape or a color, which questions may have.
ALIASES = {'oval': 'ellipse', 'diamond': 'rhombus', 'cross': 'plus sign', 'gray': 'grey', 'circle': 'disk'}


def place(c: Canvas, thing) -> str | None:
    return place_of(c, thing.x, thing.y)


def place_of(c: Canvas, x: float, y: float) -> str | None:
    """Returns the name of one of nine places; `None` near a border between two."""
    fractions = x / c.width, y / c.height
    if any(abs(f - edge) < BORDER for f in fractions for edge in (1 / 3, 2 / 3)):
        return None
    column, line = COLUMNS[min(2, int(fractions[0] * 3))], LINES[min(2, int(fractions[1] * 3))]
    return f'{line} {column}'.strip() or 'center'


def names(things) -> list:
    """Returns the shortest name of each thing that fits no other: its shape or its color and shape; `None` if there is none."""
    unique = lambda key, t: sum(key(o) == key(t) for o in things) == 1
    return [t.shape if unique(lambda o: o.shape, t) else t.name if unique(lambda o: o.name, t) else None for t in things]


def called(c: Canvas, word: str) -> str:
    """Returns a word of a question, sometimes another of the same meaning."""
    return ALIASES[word] if word in ALIASES and c.d.chance(0.15) else word


def ask_looks(c: Canvas, things):
    for t in things:
        if sum(o.shape == t.shape for o in things) == 1:
            c.ask('color', say(c.d, 'color', called(c, t.shape)), f'The {t.shape} is {t.color}.', short=t.color)
            ask_if(c, t.shape, t.color)
        if sum(o.color == t.color for o in things) == 1:
            c.ask('shape', say(c.d, 'shape', c=called(c, t.color)), f'It is {a(t.shape)}.', short=t.shape)
    if len(things) == 1:
        t = things[0]
        c.ask('color', say(c.d, *c.d.one([('color it',), ('color', 'shape'), ('color', 'object'), ('color', 'figure')])), f'The {t.shape} is {t.color}.', short=t.color)
        c.ask('shape', say(c.d, 'which'), f'It is {a(t.shape)}.', short=t.shape)
        x, y, z = c.rng.sample([t.shape, *c.rng.sample([s for s in SHAPES if s != t.shape], 2)], 3)
        c.ask('shape', say(c.d, 'which of', x=a(x), y=a(y), z=a(z)), f'It is {a(t.shape)}.', short=t.shape)
    missing = c.d.one([s for s in SHAPES if all(t.shape != s for t in things)])
    if c.d.chance(0.15):
        c.ask('negative', say(c.d, 'color', missing), f'There is no {missing}.')
    c.ask('ground', say(c.d, 'ground'), f'The background is {c.ground}.', short=c.ground)
    c.ask('list', say(c.d, 'shapes'), f'I see {kinds(Counter(t.shape for t in things))}.')
    colors = list(dict.fromkeys(t.color for t in things))
    c.ask('list', say(c.d, 'colors'), f'The colors are {listed(colors)}.' if len(colors) > 1 else f'The color is {colors[0]}.')


def ask_if(c: Canvas, name: str, color: str):
    """Asks whether a thing has a color; half of the time it has not."""
    asked = color if c.d.chance(0.5) else c.d.one([each for each in NAMES if each != color])
    c.ask('if', say(c.d, 'if', s=name, c=asked), f'{"Yes" if asked == color else "No"}, the {name} is {color}.', short='Yes' if asked == color else 'No')


def kinds(counts: Counter) -> str:
    return listed([a(name) if count == 1 else f'{count} {plural(name, count)}' for name, count in counts.items()])


def ask_counts(c: Canvas, things):
    c.ask('count', say(c.d, 'count', p=c.d.one(['shapes', 'shapes', 'objects', 'things'])), counted(len(things), 'shape'), short=str(len(things)))
    t = c.d.one(things)
    shape = t.shape if c.d.chance(0.8) else c.d.one(SHAPES)
    c.ask('count', say(c.d, 'count', p=plural(shape, 2)), counted(number := sum(o.shape == shape for o in things), shape), short=str(number))
    color = t.color if c.d.chance(0.8) else c.d.one(NAMES)
    c.ask('count', say(c.d, 'count', p=f'{color} {c.d.one(["shapes", "shapes", "things", "objects"])}'), counted(sum(o.color == color for o in things), f'{color} shape'))
    name = t.name if c.d.chance(0.7) else f'{color} {shape}'
    c.ask('count', say(c.d, 'count', p=plural(name, 2)), counted(sum(o.name == name for o in things), name))
    other = c.d.one([o.shape for o in things] if c.d.chance(0.7) else SHAPES)
    first, second = (sum(o.shape == each for o in things) for each in (shape, other))
    if first != second:
        c.ask('relation', say(c.d, 'more', a=plural(shape, 2), b=plural(other, 2)), f'{"Yes" if first > second else "No"}, there are {"more" if first > second else "fewer"} {plural(shape, 2)} than {plural(other, 2)}.')


def ask_places(c: Canvas, things):
    places = [place(c, t) for t in things]
    for t, name, where in zip(things, names(things), places):
        if name and where:
            corner = ' ' in where and c.d.chance(0.15)
            c.ask('place', say(c.d, 'corner' if corner else 'where', o=name), f'The {name} is {at(where)}.')
        if where and places.count(where) == 1 and None not in places:
            c.ask('at', say(c.d, 'at', w=part_of_picture(c, where)), f'There is {a(t.name)}.')
            if c.d.chance(0.5):
                c.ask('color', say(c.d, 'color', f'{c.d.one(["shape", "thing", "object"])} {at(where)}'), f'The {t.shape} {at(where)} is {t.color}.', short=t.color)


def part_of_picture(c: Canvas, where: str) -> str:
    name = c.d.one(['center', 'middle']) if where == 'center' else where
    return name + c.d.one(['', '', ' of the picture', ' of the image'])


def at(where: str) -> str:
    return f'{"on" if where in ("left", "right") else "in" if where == "center" else "at"} the {where}'


def ask_pairs(c: Canvas, things):
    known = [(t, name) for t, name in zip(things, names(things)) if name]
    if len(known) < 2:
        return
    (t, one), (o, other) = c.rng.sample(known, 2)
    ask_sides(c, things, known)
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
        c.ask('color', say(c.d, 'color', c.d.one(['largest shape', 'biggest shape', 'largest object'])), f'The largest shape is {first.color}.', short=first.color)
    first, second = sorted(things, key=lambda each: each.r)[:2]
    if second.r > 1.25 * first.r:
        c.ask('larger', say(c.d, 'smallest'), f'The {first.name} is the smallest.')


SIDES = (('x', ('left', 'right')), ('y', ('top', 'bottom')))


def ask_sides(c: Canvas, things, known):
    """Asks for the half in which a thing is, and for the outermost thing."""
    t, name = c.d.one(known)
    for axis, words in SIDES:
        size = c.width if axis == 'x' else c.height
        part = getattr(t, axis) / size
        side = words[part > 0.5]
        if abs(part - 0.5) > 0.1:
            c.ask('place', say(c.d, f'half {axis}', o=name), f'The {name} is {"on" if axis == "x" else "at"} the {side}.')
        first, second = sorted(things, key=lambda each: getattr(each, axis))[:2] if c.d.chance(0.5) else sorted(things, key=lambda each: -getattr(each, axis))[:2]
        if abs(getattr(first, axis) - getattr(second, axis)) > 0.1 * size:
            side = words[getattr(first, axis) > getattr(second, axis)]
            c.ask('at', say(c.d, f'most {side}'), f'It is the {first.name}.')


def ask_presence(c: Canvas, things):
    t = c.d.one(things)
    there = [t.shape, t.name, t.name]
    c.ask('presence', say(c.d, 'exists', o=(o := c.d.one(there))), f'Yes, there is {a(o)}.', short='Yes')
    color, shape = c.d.one(things).color if c.d.chance(0.5) else c.d.one(NAMES), c.d.one(things).shape if c.d.chance(0.5) else c.d.one(SHAPES)
    missing = [each for each in SHAPES if all(o.shape != each for o in things)]
    c.ask('presence', say(c.d, 'exists', o=(o := c.d.one(missing))), f'No, there is no {o}.', short='No')
    if all((o.shape, o.color) != (shape, color) for o in things):
        c.ask('presence', say(c.d, 'exists', o=f'{color} {shape}'), f'No, there is no {color} {shape}.', short='No')


def ask_clicks(c: Canvas, things):
    t, name = c.d.one(list(zip(things, names(things))))
    if name:
        c.ask('click', say(c.d, 'click it', o=name), '', (round(100 * t.x / c.width), round(100 * t.y / c.height)))


def ask_text(c: Canvas, word: str | None):
    if word:
        c.ask('words', say(c.d, 'read', t='text'), f'It says {spelled(word)}.')
        c.ask('words', say(c.d, 'read', t='picture'), f'It says {spelled(word)}.', short=spelled(word))
        c.ask('words', say(c.d, 'any text'), f'Yes, it says {spelled(word)}.')
    elif c.d.chance(0.15):
        c.ask('negative', say(c.d, 'read', t='picture'), 'There is no text.')
        c.ask('negative', say(c.d, 'any text'), 'No, there is no text.', short='No')


def caption(c: Canvas, things, word: str | None) -> str:
    places = [place(c, t) for t in things]
    text = [f'the text {spelled(word)}'] if word else []
    if len(things) <= 3 and None not in places:
        return f'I see {listed([f"{a(t.name)} {at(where)}" for t, where in zip(things, places)] + text)}.'
    counts = Counter(t.name for t in things)
    return f'I see {listed([a(name) if count == 1 else f"{count} {plural(name, count)}" for name, count in counts.items()] + text)}.'


def questions(c: Canvas, things, word: str | None):
    c.ask('caption', say(c.d, 'caption'), caption(c, things, word))
    for part in (ask_looks, ask_counts, ask_places, ask_pairs, ask_presence, ask_clicks):
        part(c, things)
    ask_text(c, word)

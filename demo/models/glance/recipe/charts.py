"""Simple bar charts with two to six labeled bars."""
from ask import counted, listed, say
from canvas import Canvas, clear, fitted, new_canvas, readable, spelled, unlike
from prints import word


SETS = ['Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(), 'Mon Tue Wed Thu Fri Sat Sun'.split(), 'Q1 Q2 Q3 Q4'.split(), 'Red Blue Green Pink'.split(), 'North South East West'.split(), 'Cats Dogs Birds Fish Cows'.split(),
        'Apples Pears Plums Grapes'.split(), 'Tea Coffee Juice Water'.split(), 'Car Bus Train Bike Walk'.split(), 'Yes No'.split(), 'S M L XL'.split(), 'January February March April May June July August'.split(), 'Anna Ben Carl Dora Emil'.split(),
        'Rent Food Fun Gas'.split(), 'Old New'.split(), 'Low Mid High'.split(), 'Spring Summer Autumn Winter'.split(), 'Milk Bread Eggs Butter Cheese'.split(), 'Phone Tablet Laptop'.split(), 'Chrome Firefox Safari Edge'.split(), 'Team A,Team B,Team C'.split(','),
        'Python Java Rust Go'.split(), 'Paris Rome Oslo Berlin Madrid'.split(), 'Apples Bananas Cherries Grapes Lemons'.split(), 'Sun Rain Snow Wind'.split()]
# How a number is written; in the last one it has a decimal.
UNITS = ['{}', '{}', '{}', '{}', '{}%', '${}', '{}k', '{}.5']
ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth']
UNNUMBERED = 'The bars have no numbers.'
# The least ratio of two values that are compared.
APART = 1.12
TITLES = ['Sales', 'Results', 'Visitors', 'Fruit', 'Animals', 'Points', 'Income', 'Users', 'Votes', 'Rain', 'Scores', 'Sales by month', 'Cost', 'Profit']


def bar_labels(d, count: int) -> list:
    own = []
    while len(own) < count:
        text = word(d).capitalize()[:d.one([5, 7])]
        if text not in own:
            own.append(text)
    years, start, known = d.rng.randint(1990, 2026), d.rng.randint(0, 20), d.one([each for each in SETS if len(each) >= count])
    first = d.rng.randint(0, len(known) - count)
    return d.one([[chr(65 + start + i) for i in range(count)], [chr(65 + i) for i in range(count)], own, own, known[first:first + count], known[first:first + count], [str(years + i) for i in range(count)]])


def heights(d, count: int) -> list:
    """Returns values whose largest and smallest are clear."""
    top, step = d.one([(10, 1), (20, 1), (50, 1), (100, 1), (100, 5), (300, 10), (900, 10), (999, 1), (2000, 10)])
    while True:
        values = d.rng.sample(range(max(step, top // 10 // step * step), top + 1, step), count)
        ordered = sorted(values)
        if ordered[-1] >= APART * ordered[-2] and ordered[1] >= APART * ordered[0]:
            return values


def chart(d) -> Canvas:
    c = new_canvas(d, 'white' if d.chance(0.8) else None, 1.8)
    count = d.rng.choices([2, 3, 4, 5, 6], [18, 28, 26, 20, 8])[0]
    labels, values = bar_labels(d, count), heights(d, count)
    one = unlike(c.rng, [c.ground]) if d.chance(0.5) else None
    colors = [one or unlike(c.rng, [c.ground]) for _ in labels]
    ink = clear(c.rng, 'black' if c.ground == 'white' else readable(c.rng, c.ground), c.paper, 110)
    shades = [clear(c.rng, color, c.paper) for color in ([one] if one else colors)] * (count if one else 1)
    title, unit = heading(c, ink) if d.chance(0.3) else (None, 0), d.one(UNITS)
    numbers = [unit.format(value) for value in values] if d.chance(0.65) else []
    (bars if d.chance(0.8) else lying_bars)(c, labels, values, colors, shades, ink, title[1], numbers)
    questions(c, labels, values, colors, numbers)
    if title[0]:
        c.ask('words', say(d, 'title').replace('dialog', 'chart').replace('window', 'chart'), f'The title is {spelled(title[0])}.')
    return c


def heading(c: Canvas, ink) -> tuple:
    """Writes a title. Returns it and the height that it takes."""
    text = c.d.one(TITLES) if c.d.chance(0.4) else c.d.one(['{w}', '{w}', '{w} by {v}', '{w} per {v}', 'Top {v}', '{w} in {y}', '{w} {v}']).format(w=word(c.d).capitalize(), v=word(c.d).lower(), y=c.rng.randint(1990, 2030))
    face, size = fitted(c.d, c, text, 14, 22)
    c.text((c.width - face.getlength(text)) / 2, size * 0.3, text, face, ink)
    return text, size * 1.5


def extremes(values, value) -> list:
    """Returns the labels that the cells of a bar's slot have if it is the largest or the smallest one."""
    return [name for name, extreme in (('largest bar', max), ('smallest bar', min)) if value == extreme(values)]


def axis(c: Canvas, top: float, floor: float, highest: int, face, ink) -> float:
    """Draws an axis with numbers on the left. Returns the width that it takes."""
    ticks = c.d.rng.randint(2, 4)
    texts = [str(round(highest * at / ticks)) for at in range(ticks + 1)]
    wide, line = max(map(face.getlength, texts)) + c.width * 0.03, max(1, c.width // 200)
    for at, text in enumerate(texts):
        y = floor - (floor - top) * at / ticks
        c.text(wide - c.width * 0.015 - face.getlength(text), y - face.size * 0.6, text, face, ink)
        c.pen.line([(wide - c.width * 0.008, y), (wide, y)], fill=ink, width=line)
    c.pen.line([(wide, top), (wide, floor)], fill=ink, width=line)
    return wide


def area(c: Canvas, left: float, top: float, floor: float, size: int, ink):
    """Draws what is behind standing bars: a panel, lines of a grid, a frame, or nothing."""
    d, right, thin = c.d, c.width * 0.97, max(1, c.width // 250)
    has_panel = c.ground == 'white' and d.chance(0.12)
    if has_panel:
        c.pen.rectangle([left, top - size * 1.5, right, floor], fill=(d.rng.randint(225, 240),) * 3)
    if has_panel or d.chance(0.3):
        grid = c.paper if has_panel else tuple(int(0.85 * p + 0.15 * i) for p, i in zip(c.paper, ink))
        for line in range(4):
            y = floor - (floor - top) * line / 3
            c.pen.line([(left, y), (right, y)], fill=grid, width=thin)
    if not has_panel and d.chance(0.25):
        c.pen.rectangle([left, top - size * 1.6, right, floor], outline=ink, width=thin)


def bars(c: Canvas, labels, values, colors, shades, ink, below: float, numbers: list):
    """Draws standing bars below a title, with numbers above them or in them."""
    face, size = fitted(c.d, c, max(labels + numbers, key=len), 13, 18, 0.8 / len(labels))
    floor, top, thick = c.height - size * 1.7, below + size * 1.8, c.rng.uniform(0.22, 0.46)
    left = axis(c, top, floor, max(values), face, ink) if c.d.chance(0.15 if numbers else 0.4) else c.width * 0.05
    slot, lowest = (c.width * 0.97 - left) / len(labels), (floor - top) * min(values) / max(values)
    number_face = c.font(size) if c.d.chance(0.3) else face
    within = c.d.chance(0.25) and lowest > size * 1.8 and all(number_face.getlength(each) < 1.9 * thick * slot for each in numbers)
    area(c, left, top, floor, size, ink)
    for at, (label, value, color, shade) in enumerate(zip(labels, values, colors, shades)):
        x, y = left + at * slot, floor - (floor - top) * value / max(values)
        box = [x + slot * (0.5 - thick), y, x + slot * (0.5 + thick), floor]
        c.pen.rectangle(box, fill=shade)
        c.boxes += [(*box, name) for name in ('bar', color)] + [(x + slot * 0.2, top, x + slot * 0.8, c.height - 1, name) for name in extremes(values, value)]
        middle = x + slot / 2
        c.text(middle - face.getlength(label) / 2, floor + size * 0.2, label, face, ink)
        if numbers:
            on_bar = (255, 255, 255) if sum(shade) < 420 else (20, 20, 20)
            c.text(middle - number_face.getlength(numbers[at]) / 2, y + size * 0.2 if within else y - size * 1.35, numbers[at], number_face, on_bar if within else ink)
    c.pen.line([(left, floor), (c.width * 0.97, floor)], fill=ink, width=max(1, c.width // 160))


def lying_bars(c: Canvas, labels, values, colors, shades, ink, below: float, numbers: list):
    """Draws bars from left to right, with their labels before them."""
    slot = (c.height - below) * 0.94 / len(labels)
    face, size = fitted(c.d, c, max(labels, key=len), 13, 17, 0.3)
    start = max(face.getlength(label) for label in labels) + size * 0.8
    end, thick = c.width - max(map(face.getlength, numbers), default=0) - size, c.rng.uniform(0.25, 0.42)
    for at, (label, value, color, shade) in enumerate(zip(labels, values, colors, shades)):
        middle = below + c.height * 0.02 + (at + 0.5) * slot
        box = [start, middle - slot * thick, start + (end - start) * value / max(values), middle + slot * thick]
        c.pen.rectangle(box, fill=shade)
        c.boxes += [(*box, name) for name in ('bar', color)] + [(0, middle - slot * 0.3, c.width - 1, middle + slot * 0.3, name) for name in extremes(values, value)]
        c.text(start - face.getlength(label) - size * 0.3, middle - size * 0.6, label, face, ink)
        if numbers:
            c.text(box[2] + size * 0.3, middle - size * 0.6, numbers[at], face, ink)


def questions(c: Canvas, labels, values, colors, numbers: list):
    """Asks how many bars there are, for their labels and their color, for the largest and the smallest, and for values that are written."""
    d = c.d
    c.ask('bars', say(d, 'bars'), counted(len(labels), 'bar'), short=str(len(labels)))
    names = listed(map(spelled, labels))
    if len(set(colors)) == 1:
        c.ask('color', say(d, 'bar color'), f'The bars are {colors[0]}.', short=colors[0])
    c.ask('labels', say(d, 'bar names'), f'The bars are {names}.')
    c.ask('caption', say(d, 'caption'), f'It is a bar chart of {names}.')
    for kind, extreme, word in (('most', max, 'largest'), ('least', min, 'smallest')):
        # The place comes before the name, so that it is found first.
        at = values.index(extreme(values))
        c.ask('most', say(d, kind), f'The {ORDINALS[at]} bar is the {word}: {spelled(labels[at])}.', short=spelled(labels[at]))
    one, other = d.rng.sample(range(len(labels)), 2)
    # The name and the place of the bar come before its number, so that they are found first.
    for at in (one, other):
        c.ask('value', say(d, 'value', b=labels[at]), f'The value of {spelled(labels[at])}, the {ORDINALS[at]} bar, is {spelled(numbers[at])}.' if numbers else UNNUMBERED)
    if max(values[one], values[other]) >= APART * min(values[one], values[other]):
        more = values[one] > values[other]
        c.ask('bar pair', say(d, 'bar pair', a=labels[one], b=labels[other]), f'{"Yes" if more else "No"}, {spelled(labels[one])} is {"larger" if more else "smaller"} than {spelled(labels[other])}.', short='Yes' if more else 'No')

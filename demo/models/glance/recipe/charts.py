"""Simple bar charts with two to five labeled bars."""
from ask import counted, listed, say
from canvas import Canvas, fitted, new_canvas, readable, tone, unlike
from prints import word


def bar_labels(d, count: int) -> list:
    start = d.rng.randint(0, 20)
    own = []
    while len(own) < count:
        text = word(d).capitalize()[:5]
        if text not in own:
            own.append(text)
    years = d.rng.randint(1990, 2025)
    return d.one([[chr(65 + start + i) for i in range(count)], [chr(65 + i) for i in range(count)], own, own, [str(years + i) for i in range(count)]])


def heights(d, count: int) -> list:
    """Returns values whose largest and smallest are clear."""
    top = d.one([10, 50, 100])
    while True:
        values = d.rng.sample(range(max(1, top // 10), top + 1), count)
        ordered = sorted(values)
        if ordered[-1] >= 1.12 * ordered[-2] and ordered[1] >= 1.12 * ordered[0]:
            return values


def chart(d) -> Canvas:
    c = new_canvas(d, 'white' if d.chance(0.8) else None)
    count = d.rng.randint(2, 5)
    labels, values = bar_labels(d, count), heights(d, count)
    one = unlike(c.rng, [c.ground]) if d.chance(0.5) else None
    colors = [one or unlike(c.rng, [c.ground]) for _ in labels]
    ink = tone(c.rng, readable(c.rng, c.ground) if c.ground != 'white' else 'black')
    slot = c.width * 0.92 / count
    face, size = fitted(d, c, max(labels, key=len), 13, 18, 0.86 / count)
    floor, top, numbers = c.height - size * 1.7, size * 1.8, d.chance(0.6)
    for at, (label, value, color) in enumerate(zip(labels, values, colors)):
        x, y = c.width * 0.05 + at * slot, floor - (floor - top) * value / max(values)
        c.pen.rectangle([x + slot * 0.15, y, x + slot * 0.85, floor], fill=tone(c.rng, color))
        c.boxes += [(x + slot * 0.15, y, x + slot * 0.85, floor, name) for name in ('bar', color)]
        middle = x + slot / 2
        c.text(middle - face.getlength(label) / 2, floor + size * 0.2, label, face, ink)
        if numbers:
            c.text(middle - face.getlength(str(value)) / 2, y - size * 1.35, str(value), face, ink)
    c.pen.line([(c.width * 0.04, floor), (c.width * 0.97, floor)], fill=ink, width=2)
    questions(c, labels, values, colors if not one else None, numbers)
    return c


def questions(c: Canvas, labels, values, colors, numbers: bool):
    d = c.d
    c.ask('bars', say(d, 'bars'), counted(len(labels), 'bar'))
    c.ask('most', say(d, 'most'), f'{labels[values.index(max(values))]} is the largest.')
    c.ask('most', say(d, 'least'), f'{labels[values.index(min(values))]} is the smallest.')
    c.ask('caption', say(d, 'caption'), f'It is a bar chart of {listed(labels)}.')
    at = d.rng.randrange(len(labels))
    if numbers:
        c.ask('value', say(d, 'value', b=labels[at]), f'The value of {labels[at]} is {values[at]}.')
    if colors:
        c.ask('color', say(d, 'bar color', b=labels[at]), f'{labels[at]} is {colors[at]}.')

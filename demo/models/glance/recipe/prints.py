"""Pictures of printed words and numbers: plain lines, signs, price tags and buttons."""
from ask import say
from canvas import Canvas, fitted, ground_color, new_canvas, readable, tone, unlike

SIGNS = ['STOP', 'EXIT', 'OPEN', 'CLOSED', 'SALE', 'PUSH', 'PULL', 'SLOW', 'DANGER', 'TAXI', 'BUS', 'HOTEL', 'CAFE', 'PARKING', 'WELCOME', 'NO ENTRY', 'TOILET', 'FREE', 'NEW', 'WARNING']
CURRENCIES = ['${}', '${}', '{} EUR', '{} USD']


def word(d) -> str:
    """Returns a word or a code of three to eight characters."""
    while True:
        text = d.one([d.noun, d.noun, d.coined, d.name, d.place, lambda: ''.join(d.rng.choices('abcdefghijklmnopqrstuvwxyz', k=d.rng.randint(3, 5)))])()
        if 3 <= len(text) <= 8 and text.isascii() and text.isalpha():
            return d.one([text.upper(), text.lower(), text.capitalize()])


def number(d) -> str:
    return str(d.rng.choice([d.rng.randint(0, 9), d.rng.randint(10, 99), d.rng.randint(100, 999), d.rng.randint(1000, 99999)]))


def price(d) -> str:
    amount = f'{d.rng.randint(0, 199)}.{d.one(["99", "95", "50", "00", f"{d.rng.randint(0, 99):02}"])}' if d.chance(0.7) else str(d.rng.randint(1, 999))
    return d.one(CURRENCIES).format(amount)


def lines(d) -> Canvas:
    """Draws one to three lines of words or a number."""
    c = new_canvas(d)
    ink = readable(c.rng, c.ground)
    if d.chance(0.3):
        texts = [number(d)]
        c.ask('number', say(d, 'number'), f'The number is {texts[0]}.')
    else:
        texts = [' '.join(word(d) for _ in range(d.one([1, 1, 2]))) for _ in range(d.rng.choices([1, 2, 3], [70, 20, 10])[0])]
    face, size = fitted(d, c, max(texts, key=len))
    step = size * d.rng.uniform(1.25, 1.6)
    y = c.rng.uniform(2, max(3, c.height - step * len(texts) - size * 0.3))
    x = c.rng.uniform(3, max(4, c.width - max(face.getlength(t) for t in texts) - 3))
    for at, text in enumerate(texts):
        c.text(x, y + at * step, text, face, tone(c.rng, ink))
    c.ask('words', say(d, 'read', t='text'), f'It says {" ".join(texts)}.')
    c.ask('ink', say(d, 'ink'), f'The text is {ink}.')
    c.ask('caption', say(d, 'caption'), f'It is the {ink} text {" ".join(texts)}.')
    c.ask('ground', say(d, 'ground'), f'The background is {c.ground}.')
    return c


def boxed(c: Canvas, text: str, fill: str, ink: str, kind: str, around=0.5):
    """Draws text in the middle of a colored box at a random place. Returns the center of the box."""
    face, size = fitted(c.d, c, text, 16, 36, 0.7)
    w, h = face.getlength(text), size
    pad = around * size
    x, y = c.rng.uniform(pad, max(pad + 1, c.width - w - pad)), c.rng.uniform(pad, max(pad + 1, c.height - h - pad))
    box = [x - pad, y - pad * 0.6, x + w + pad, y + h + pad * 0.8]
    c.pen.rounded_rectangle(box, radius=c.d.one([0, 4, round(size * 0.5)]), fill=tone(c.rng, fill), outline=tone(c.rng, unlike(c.rng, [fill])) if c.d.chance(0.5) else None, width=2)
    c.boxes += [(*box, kind), (*box, fill)]
    c.text(x, y, text, face, tone(c.rng, ink))
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def sign(d) -> Canvas:
    """Draws a sign, a price tag or a button alone on a page."""
    c = new_canvas(d, ground_color(d))
    kind = d.one(['sign', 'price', 'button'])
    fill = unlike(c.rng, [c.ground])
    ink = readable(c.rng, fill)
    if kind == 'price':
        text = price(d)
        boxed(c, text, fill, ink, 'sign')
        c.ask('price', say(d, 'price'), f'It costs {text}.')
        c.ask('price', say(d, 'price'), f'It costs {text}.')
        c.ask('caption', say(d, 'caption'), f'It is {article(fill)} price tag. It says {text}.')
        return c
    text = d.one(SIGNS) if kind == 'sign' and d.chance(0.4) and not d.held else word(d)
    boxed(c, text, fill, ink, kind)
    c.ask('words', say(d, 'read', t=kind), f'It says {text}.')
    if kind == 'button':
        c.ask('words', say(d, 'label'), f'The button says {text}.')
    c.ask('color', say(d, 'color', s=kind), f'The {kind} is {fill}.')
    c.ask('ink', say(d, 'ink'), f'The text is {ink}.')
    c.ask('caption', say(d, 'caption'), f'It is {article(fill)} {kind}. It says {text}.')
    return c


def article(color: str) -> str:
    return f'an {color}' if color == 'orange' else f'a {color}'

"""Pictures of printed words and numbers: plain lines, signs, price tags and buttons."""
from ask import say
from canvas import Canvas, clear, fitted, ground_color, new_canvas, readable, spelled, tone, unlike
from values import ADJECTIVES

SIGNS = ['STOP', 'EXIT', 'OPEN', 'CLOSED', 'SALE', 'PUSH', 'PULL', 'SLOW', 'DANGER', 'TAXI', 'BUS', 'HOTEL', 'CAFE', 'PARKING', 'WELCOME', 'NO ENTRY', 'TOILET', 'FREE', 'NEW', 'WARNING']
CURRENCIES = ['${}', '${}', '${}', '{} EUR', '{} USD', '€{}', '{} €', '£{}']
COMMON = ['Hello', 'Hello World', 'Hello, world!', 'hello', 'Welcome', 'Thank you', 'Good morning', 'Yes', 'No', 'OK', 'Start', 'Test', 'Help', 'Home', 'Menu', 'Login', 'Search', 'Sale', 'Happy Birthday', 'Hi', 'Open', 'Closed', 'Exit', 'Stop', 'Go']


def word(d) -> str:
    """Returns a word or a code of three to eight characters."""
    while True:
        text = d.one([d.noun, d.noun, d.coined, d.name, d.place, lambda: ''.join(d.rng.choices('abcdefghijklmnopqrstuvwxyz', k=d.rng.randint(3, 5)))])()
        if 3 <= len(text) <= 8 and text.isascii() and text.isalpha():
            if d.chance(0.04):
                # As in the names of companies and programs.
                at = d.rng.randint(2, len(text) - 1)
                return text[:at].capitalize() + text[at:].capitalize()
            return d.one([text.upper(), text.lower(), text.capitalize()])


def number(d) -> str:
    whole = str(d.rng.choice([d.rng.randint(0, 9), d.rng.randint(10, 99), d.rng.randint(100, 999), d.rng.randint(1000, 99999)]))
    return d.one([whole] * 10 + [f'-{whole}', f'{whole}.{d.rng.randint(0, 9)}'])


def mixed(d) -> str:
    """Returns what people print beside plain words: times, dates, codes, percents, short sentences."""
    r = d.rng
    noun, other = word(d), word(d)
    return d.one([
        lambda: d.one(COMMON) if not d.held else noun, lambda: d.one(COMMON).upper() if not d.held else noun, lambda: f'{noun.capitalize()} {number(d)}', lambda: f'{r.randint(0, 23):{d.one(["", "02"])}}:{r.randint(0, 59):02}', lambda: f'{r.randint(1, 100)}%', lambda: f'{r.randint(5, 90)}% {d.one(["off", "OFF", "less", "more"])}', lambda: f'{d.one(["Total:", "Total", "Price:", noun.capitalize()])} {price(d)}', lambda: d.code()[:9],
        lambda: f'{d.one(["Room", "Gate", "Page", "Level", "Step", "Line", "Total:", "Score:", "No."])} {number(d)}', lambda: f'{chr(65 + r.randrange(26))}{r.randint(1, 99)}', lambda: f'{noun} {d.one(["and", "or", "of", "is"])} {other}',
        lambda: f'{r.randint(2000, 2030)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}', lambda: f'The {noun.lower()} is {d.of(ADJECTIVES)}', lambda: f'{noun}{d.one("!?.")}', lambda: f'{r.randint(0, 20)} + {r.randint(0, 20)}', lambda: f'v{r.randint(0, 9)}.{r.randint(0, 9)}',
        lambda: chr(65 + r.randrange(26)), lambda: f'{r.randint(1, 12)} {d.one(["am", "pm", "kg", "km", "cm"])}'])()


def price(d) -> str:
    amount = f'{d.rng.randint(0, 199)}.{d.one(["99", "95", "50", "00", f"{d.rng.randint(0, 99):02}"])}' if d.chance(0.7) else str(d.rng.randint(1, 999))
    return d.one(CURRENCIES).format(amount)


def page(d) -> Canvas:
    """Draws a page full of text, without questions: much to read in one picture, for the auxiliary loss."""
    c = new_canvas(d)
    scale, y = c.scale, c.rng.uniform(0, 6)
    while y < c.height - 12 * scale:
        size = round(d.rng.uniform(*d.one([(9, 14), (12, 22), (12, 22), (18, 44), (18, 44), (30, 90), (60, 130)])) * scale)
        face, x, shade = c.font(size), c.rng.uniform(0, 0.15) * c.width, clear(c.rng, readable(c.rng, c.ground), c.paper, 110)
        while x < c.width * 0.97:
            text = d.one([word, word, number, price, mixed])(d)
            wide = face.getlength(text)
            if x + wide < c.width and y + size * 1.1 < c.height:
                c.text(x, y, text, face, shade)
            x += wide + size * d.rng.uniform(0.25, 1.5)
        y += size * d.rng.uniform(1.1, 1.5)
    return c


def lines(d) -> Canvas:
    """Draws one to seven lines of words, or a number."""
    c = new_canvas(d, stretch=3)
    ink = readable(c.rng, c.ground)
    if d.chance(0.3):
        texts = [number(d)]
        c.ask('number', say(d, 'number'), f'The number is {spelled(texts[0])}.', short=spelled(texts[0]))
    else:
        count = d.rng.choices([1, 2, 3, 4, 5, 6, 7], [60, 14, 10, 6, 4, 3, 3])[0]
        texts = [mixed(d) if d.chance(0.35) else ' '.join(word(d) for _ in range(d.one([1, 1, 2]))) for _ in range(count)]
    face, size = fitted(d, c, max(texts, key=len), largest=d.one([40, 70, 140]) / len(texts) ** 0.5)
    step = size * d.rng.uniform(1.2, 1.6)
    texts = texts[:max(1, int((c.height - 4) / step))]
    y = c.rng.uniform(2, max(3, c.height - step * len(texts) - size * 0.3))
    widest = max(face.getlength(t) for t in texts)
    x = (c.width - widest) / 2 if d.chance(0.4) else c.rng.uniform(3, max(4, c.width - widest - 3))
    centered, shade = d.chance(0.4), clear(c.rng, ink, c.paper, 110)
    for at, text in enumerate(texts):
        c.text(x + (widest - face.getlength(text)) / 2 * centered, y + at * step, text, face, shade)
    whole, group = spelled(' '.join(texts)), 'words' if len(texts) == 1 else 'lines'
    c.ask(group, say(d, 'read', t='text'), f'It says {whole}.', short=whole)
    if d.chance(0.2):
        c.ask(group, say(d, 'any text'), f'Yes, it says {whole}.', short='Yes')
    c.ask('ink', say(d, 'ink'), f'The text is {ink}.', short=ink)
    c.ask('caption', say(d, 'caption'), f'It is the {ink} text {whole}.')
    c.ask('ground', say(d, 'ground'), f'The background is {c.ground}.', short=c.ground)
    return c


def label_word(c: Canvas, things) -> str | None:
    """Writes a word above or below all shapes, if there is room. Returns the word."""
    text = word(c.d)
    face, size = fitted(c.d, c, text, 14, 36)
    top, bottom = min(t.y - 1.3 * t.r for t in things), max(t.y + 1.3 * t.r for t in things)
    places = [y for y, room in ((c.rng.uniform(0.01, 0.4) * top, top), (bottom + size * 0.1, c.height - bottom)) if room > 1.6 * size]
    if not places:
        return None
    x = c.rng.uniform(3, max(4, c.width - face.getlength(text) - 3))
    c.text(x, c.d.one(places), text, face, clear(c.rng, readable(c.rng, c.ground), c.paper, 110))
    return text


def boxed(c: Canvas, text: str, fill: str, ink: str, kind: str, around=0.5):
    """Draws text in the middle of a colored box at a random place. Returns the center of the box."""
    face, size = fitted(c.d, c, text, 16, c.d.one([36, 60, 110]), 0.8)
    w, h = face.getlength(text), size
    pad = around * size
    x, y = c.rng.uniform(pad, max(pad + 1, c.width - w - pad)), c.rng.uniform(pad, max(pad + 1, c.height - h - pad))
    box = [x - pad, y - pad * 0.6, x + w + pad, y + h + pad * 0.8]
    shade = clear(c.rng, fill, c.paper)
    c.pen.rounded_rectangle(box, radius=c.d.one([0, size * 0.2, size * 0.5]), fill=shade, outline=tone(c.rng, unlike(c.rng, [fill])) if c.d.chance(0.4) else None, width=max(1, round(c.width / 128)))
    c.boxes += [(*box, kind), (*box, fill)]
    c.text(x, y, text, face, clear(c.rng, ink, shade, 110))
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def sign(d) -> Canvas:
    """Draws a sign, a price tag or a button alone on a page."""
    c = new_canvas(d, ground_color(d), 3)
    kind = d.one(['sign', 'price', 'button'])
    fill = unlike(c.rng, [c.ground])
    ink = readable(c.rng, fill)
    if kind == 'price':
        text = price(d)
        boxed(c, text, fill, ink, 'sign')
        c.ask('price', say(d, 'price'), f'It costs {spelled(text)}.', short=spelled(text))
        c.ask('price', say(d, 'price'), f'It costs {spelled(text)}.')
        c.ask('caption', say(d, 'caption'), f'It is {article(fill)} price tag. It says {spelled(text)}.')
        return c
    text = d.one(SIGNS) if kind == 'sign' and d.chance(0.4) and not d.held else d.one(COMMON) if d.chance(0.2) and not d.held else word(d)
    x, y = boxed(c, text, fill, ink, kind)
    c.ask('words', say(d, 'read', t=kind), f'It says {spelled(text)}.', short=spelled(text))
    if kind == 'button':
        c.ask('words', say(d, 'label'), f'The button says {spelled(text)}.')
        c.ask('click', say(d, 'click', b=text), '', (round(100 * x / c.width), round(100 * y / c.height)))
    c.ask('color', say(d, 'color', s=kind), f'The {kind} is {fill}.', short=fill)
    c.ask('ink', say(d, 'ink'), f'The text is {ink}.', short=ink)
    c.ask('caption', say(d, 'caption'), f'It is {article(fill)} {kind}. It says {spelled(text)}.')
    return c


def article(color: str) -> str:
    return f'an {color}' if color == 'orange' else f'a {color}'

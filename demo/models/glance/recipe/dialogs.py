"""Dialogs with a title, a message and one or two buttons, which can be clicked with a tool."""
from ask import say
from canvas import Canvas, new_canvas, readable, tone, unlike
from prints import word

TITLES = ['Error', 'Warning', 'Info', 'Save', 'Delete', 'Update', 'Login', 'Print', 'Exit', 'Settings', 'Help', 'Question']
BUTTONS = ['OK', 'Cancel', 'Yes', 'No', 'Save', 'Close', 'Next', 'Back', 'Send', 'Delete', 'Open', 'Retry', 'Start', 'Stop', 'Login', 'Apply', 'Done', 'Accept', 'Deny']
MESSAGES = ['The {w} is full', 'No {w} found', 'Delete {w}?', 'Save {w}?', '{w} is ready', 'Send {w}?', 'Open {w}?', '{w} failed', 'Close {w}?', 'New {w}']


def dialog(d) -> Canvas:
    c = new_canvas(d, d.one(['gray', 'white', 'blue', 'green', 'black', None]))
    scale = c.width / 256
    size = round(d.rng.uniform(14, 19) * scale)
    face = c.font(size)
    title = d.one(TITLES) if d.chance(0.6) else word(d).capitalize()
    message = d.one(MESSAGES).format(w=word(d))
    message = message[0].upper() + message[1:]
    w = max(face.getlength(message) + 2 * size, c.width * d.rng.uniform(0.5, 0.85))
    w, h = min(w, c.width * 0.97), size * d.rng.uniform(6.5, 9)
    x, y = c.rng.uniform(0.01, 0.99) * (c.width - w), c.rng.uniform(0.01, 0.99) * (c.height - h)
    face_color = d.one(['white', 'white', 'gray'])
    bar = unlike(c.rng, [face_color])
    c.pen.rectangle([x, y, x + w, y + h], fill=tone(c.rng, face_color), outline=tone(c.rng, 'black'))
    c.pen.rectangle([x, y, x + w, y + size * 1.7], fill=tone(c.rng, bar))
    c.boxes += [(x, y, x + w, y + h, 'dialog')]
    c.text(x + size * 0.5, y + size * 0.3, title, face, tone(c.rng, readable(c.rng, bar)))
    c.text(x + size * 0.7, y + size * 2.4, message, face, tone(c.rng, 'black'))
    buttons = place_buttons(c, (x, y, w, h), face, size, face_color)
    questions(c, title, message, buttons)
    return c


def place_buttons(c: Canvas, box, face, size: int, around: str) -> list:
    """Draws one or two buttons in the last line of a box. Returns (label, color, x, y) of each."""
    x, y, w, h = box
    fill = unlike(c.rng, [around])
    ink = tone(c.rng, readable(c.rng, fill))
    labels = c.rng.sample(BUTTONS, 1 if c.d.chance(0.7) else 2)
    widths = [face.getlength(label) + size * 1.2 for label in labels]
    left = x + c.rng.uniform(0.3, 1) * max(0, w - sum(widths) - size * len(labels)) + size * 0.4
    out = []
    for label, wide in zip(labels, widths):
        top = y + h - size * 2.1
        b = [left, top, left + wide, top + size * 1.6]
        c.pen.rounded_rectangle(b, radius=c.d.one([0, 4]), fill=tone(c.rng, fill), outline=tone(c.rng, 'black'))
        c.boxes += [(*b, 'button')]
        c.text(left + size * 0.6, top + size * 0.2, label, face, ink)
        out.append((label, fill, (b[0] + b[2]) / 2, (b[1] + b[3]) / 2))
        left += wide + size * 0.6
    return out


def questions(c: Canvas, title: str, message: str, buttons):
    d = c.d
    c.ask('words', say(d, 'title'), f'The title is {title}.')
    c.ask('words', say(d, 'message'), f'It says {message}')
    label, color, x, y = d.one(buttons)
    c.ask('click', say(d, 'click', b=label) if len(buttons) == 1 else f'Click {label}.', '', (round(100 * x / c.width), round(100 * y / c.height)))
    if len(buttons) == 1:
        c.ask('words', say(d, 'label'), f'The button says {label}.')
        c.ask('color', say(d, 'color', s='button'), f'The button is {color}.')
    names = ' and '.join(b[0] for b in buttons)
    c.ask('caption', say(d, 'caption'), f'It is a dialog with the title {title} and the {"button" if len(buttons) == 1 else "buttons"} {names}.')

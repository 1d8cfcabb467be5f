"""Dialogs with a title, a message and one to three buttons, which can be clicked with a tool."""
from dataclasses import dataclass

from PIL import ImageFont

from ask import listed, say
from canvas import Canvas, clear, font, new_canvas, readable, spelled, tone, unlike
from prints import word
from shape_questions import at, place_of

TITLES = ['Error', 'Warning', 'Info', 'Save', 'Delete', 'Update', 'Login', 'Print', 'Exit', 'Settings', 'Help', 'Question', 'Confirm', 'Alert', 'Message', 'Welcome', 'Success', 'Notice', 'Sign in', 'Are you sure?']
BUTTONS = ['OK', 'Cancel', 'Yes', 'No', 'Save', 'Close', 'Next', 'Back', 'Send', 'Delete', 'Open', 'Retry', 'Start', 'Stop', 'Login', 'Apply', 'Done', 'Accept', 'Deny', 'Submit', 'Continue', 'Skip', 'Log in', 'Sign up', 'Buy', 'Finish', 'Ignore', 'Add', 'Remove', 'Confirm', 'Later', 'Leave', 'Stay', 'Restart', 'Print', 'Empty', 'Keep', 'Allow', 'Invite', 'Join', 'Turn on', 'Not now', 'Got it', 'Learn more', 'Replace', 'Share', 'Reply', 'View', 'Edit', 'Copy', 'Undo', 'Install', 'Upgrade', 'Pay', 'Subscribe']
MESSAGES = ['The {w} is full', 'No {w} found', 'Delete {w}?', 'Save {w}?', '{w} is ready', 'Send {w}?', 'Open {w}?', '{w} failed', 'Close {w}?', 'New {w}', 'Delete this {w}?', 'Do you want to exit?', 'Save changes?', 'Are you sure?', 'File saved', 'Try again', 'The {w} was sent', 'Your {w} is here', 'Continue?']


# These titles have several words; {w} and {v} become drawn ones.
LONG_TITLES = ['Delete {w}', 'Open {w}', 'New {w}', 'Save {w} as', '{w} settings', 'About {w}', 'Choose a {w}', 'Sign out', 'Low battery', 'Disk full', 'Update available', 'File not found', 'Connection lost', 'Remove {w}?', '{w} and {v}', 'Print the {w}', 'Send to {w}', '{w} is full', 'Add a new {w}', 'Edit {w}', 'Out of memory', 'Log in to {w}', 'Your {w}', '{w} {v}', 'Confirm {w}', 'No {w} left', 'Unsaved changes', 'Empty trash', 'Rename file', 'Install update']


def long_title(d) -> str:
    title = d.one(LONG_TITLES).format(w=word(d), v=word(d).lower())
    title = title[0].upper() + title[1:]
    return d.one([title, title, title, title.title(), title.upper()])


# These messages may take two lines.
LONG_MESSAGES = ['Do you want to delete the {w}?', 'The {w} cannot be opened', 'Your {w} needs a new {v}', '{n} files will be removed', 'Please restart the {w} to finish', 'You have {n} new messages', '{w} is waiting for you', 'This will delete {n} items', 'The {w} could not be found', 'All changes were saved', 'Enter the {w} to continue', 'There is not enough {w}', 'The {v} of {w} is missing', 'Do you want to send {w} to the {v}?', 'Would you like to save the {w} first?', 'There are {n} errors in the {v}', 'Close all windows before you go on', '{w} and {v} are not the same', 'The {w} is about {n} percent full', 'Check the {w} and try again', 'Your {w} has ended.', 'You can {w} again later.', '{w} to install the {v}.', 'Turn on {w}?', 'The {w} will be gone for good.', 'Check your {w}.', 'Add {w} to the {v}?', 'You finished level {n}.', 'Print {n} pages now?', 'You cannot undo this.', 'Your order is on its way.', '{w} wants to see your {v}.', 'Please try again.', 'You have no {w} left.', 'The {w} costs {n} dollars.', '{n} new {v} since Monday.']


def message_lines(d) -> list:
    """Returns the lines of a message."""
    long = d.chance(0.45)
    text = d.one(LONG_MESSAGES if long else MESSAGES).format(w=word(d), v=word(d).lower(), n=d.rng.randint(2, 99))
    words = (text[0].upper() + text[1:]).split(' ')
    if not long or d.chance(0.3):
        return [' '.join(words)]
    at = len(words) // 2 + d.one([0, 0, 1])
    return [' '.join(words[:at]), ' '.join(words[at:])]


@dataclass
class Style:
    """How a dialog looks. `around` is the color of its window by name, `paper` its shade, and `ink` that of its message."""
    around: str
    paper: tuple
    ink: tuple
    # The fonts of the title, and of the message and the buttons; size in pixels of the latter.
    head: ImageFont.FreeTypeFont
    face: ImageFont.FreeTypeFont
    size: int
    # Radius of the corners, and whether all is in the middle.
    radius: float
    centered: bool


def style_of(c: Canvas, title: str, message: list) -> Style:
    """Returns a style in which the texts fit into the page."""
    d, size, larger = c.d, round(c.d.rng.uniform(12, 20) * c.scale), c.d.one([1, 1, c.d.rng.uniform(1, 1.4)])
    name = c.font_name()
    head_name = name if d.chance(0.4) else c.font_name(d.chance(0.7))
    while True:
        face, head = font(name, size), font(head_name, round(size * larger))
        widest = max(head.getlength(title), *map(face.getlength, message))
        if widest + 2.2 * size <= c.width * 0.98 or size <= 8 * c.scale:
            break
        size = round(size * 0.9)
    around = d.rng.choices(['white', 'gray', 'black'], [55, 25, 20])[0]
    paper = {'white': tone(c.rng, 'white'), 'gray': (d.rng.randint(185, 240),) * 3, 'black': tuple(d.rng.randint(18, 55) + part for part in (0, 0, d.rng.randint(0, 12)))}[around]
    ink = clear(c.rng, d.one(['black', 'black', 'gray']) if around != 'black' else d.one(['white', 'gray']), paper, 110)
    return Style(around, paper, ink, head, face, size, size * d.one([0, 0, 0.4, 0.8]), d.chance(0.3))


def dialog(d) -> Canvas:
    c = new_canvas(d, d.one(['gray', 'white', 'blue', 'green', 'black', None]), 1.8)
    title = long_title(d) if d.chance(0.5) else d.one(TITLES) if d.chance(0.5) else word(d).capitalize()
    message = message_lines(d)
    style = style_of(c, title, message)
    size, head = style.size, style.head.size * 1.7
    widest = max(style.head.getlength(title), *map(style.face.getlength, message))
    w = min(max(widest + 2.2 * size, c.width * d.rng.uniform(0.5, 0.98)), c.width * 0.98)
    h = min(head + size * (d.rng.uniform(4.2, 7.5) + 1.3 * (len(message) - 1)), c.height * 0.97)
    x, y = c.rng.uniform(0.01, 0.99) * (c.width - w), c.rng.uniform(0.01, 0.99) * (c.height - h)
    if d.chance(0.3):
        x, y = (c.width - w) / 2, (c.height - h) / 2
    frame(c, (x, y, w, h), title, style)
    top = y + head + size * d.rng.uniform(0.2, 0.8)
    for at, line in enumerate(message):
        c.text(x + ((w - style.face.getlength(line)) / 2 if style.centered else size * 0.7), top + size * 1.25 * at, line, style.face, style.ink)
    questions(c, title, ' '.join(message), place_buttons(c, (x, y, w, h), style))
    return c


def frame(c: Canvas, box, title: str, style: Style):
    """Draws the window with its title: in a bar, above a line, or neither."""
    (x, y, w, h), d, size, head = box, c.d, style.size, style.head.size
    edge = tone(c.rng, d.one(['black', 'gray'])) if d.chance(0.7) else None
    c.pen.rounded_rectangle([x, y, x + w, y + h], radius=style.radius, fill=style.paper, outline=edge, width=max(1, c.width // 200))
    c.boxes += [(x, y, x + w, y + h, 'dialog')]
    ink, line = clear(c.rng, 'white' if style.around == 'black' else 'black', style.paper, 110), max(1, c.width // 250)
    if d.chance(0.4):
        bar = unlike(c.rng, [style.around])
        shade = tone(c.rng, bar)
        c.pen.rounded_rectangle([x, y, x + w, y + head * 1.7], radius=style.radius, fill=shade)
        c.pen.rectangle([x, y + head * 0.85, x + w, y + head * 1.7], fill=shade)
        ink = clear(c.rng, readable(c.rng, bar), shade, 110)
    elif d.chance(0.3):
        c.pen.line([(x, y + head * 1.65), (x + w, y + head * 1.65)], fill=tone(c.rng, 'gray'), width=line)
    wide = style.head.getlength(title)
    if not style.centered and d.chance(0.3) and wide + size * 2.5 < w:
        # What closes the window is a mark, not a letter.
        right, middle, arm = x + w - size, y + head * 0.85, size * 0.3
        for way in (-1, 1):
            c.pen.line([(right - arm, middle - way * arm), (right + arm, middle + way * arm)], fill=ink, width=line)
    c.text(x + ((w - wide) / 2 if style.centered else size * 0.7), y + head * 0.3, title, style.head, ink)


def place_buttons(c: Canvas, box, style: Style) -> list:
    """Draws one to three buttons in the last line of a box. Returns (label, color or `None`, x, y) of each."""
    (x, y, w, h), d, face, size = box, c.d, style.face, style.size
    labels = c.rng.sample(BUTTONS, c.rng.choices([1, 2, 3], [45, 40, 15])[0])
    if d.chance(0.12):
        labels = [label.upper() for label in labels]
    # The last button may have a color of its own.
    fills = [unlike(c.rng, [style.around])] * len(labels)
    fills[-1] = unlike(c.rng, [style.around]) if d.chance(0.4) else fills[-1]
    widths = [face.getlength(label) + size * c.rng.uniform(1, 2) for label in labels]
    while sum(widths) + size * len(labels) > w and len(labels) > 1:
        labels, fills, widths = labels[1:], fills[1:], widths[1:]
    gap = size * 0.6
    if d.chance(0.15):
        # They fill the line.
        widths = [max(wide, (w - gap * (len(labels) + 0.6)) / len(labels)) for wide in widths]
    share = 0.5 if style.centered else d.one([0.5, 1, 1, c.rng.uniform(0, 1)])
    left = x + size * 0.4 + share * max(0, w - size * 0.8 - sum(widths) - gap * (len(labels) - 1))
    bare, round_by, edge = d.chance(0.15), size * d.one([0, 0.2, 0.5, 0.8]), tone(c.rng, 'black') if d.chance(0.5) else None
    out = []
    for label, fill, wide in zip(labels, fills, widths):
        box = [left, y + h - size * 2.1, left + wide, y + h - size * 0.5]
        out.append((label, None if bare else fill, *button(c, box, label, None if bare else fill, style, round_by, edge)))
        left += wide + gap
    return out


def button(c: Canvas, box: list, label: str, fill: str | None, style: Style, round_by: float, edge) -> tuple:
    """Draws a button, which without a fill is its label alone. Returns its center."""
    ink = clear(c.rng, c.d.one(['blue', 'purple', 'cyan'] if style.around == 'black' else ['blue', 'purple', 'green', 'red']), style.paper, 110)
    if fill:
        shade = tone(c.rng, fill)
        c.pen.rounded_rectangle(box, radius=round_by, fill=shade, outline=edge)
        ink = clear(c.rng, readable(c.rng, fill), shade, 110)
    c.boxes += [(*box, 'button')]
    middle = (box[0] + box[2]) / 2
    c.text(middle - style.face.getlength(label) / 2, box[1] + style.size * 0.2, label, style.face, ink)
    return middle, (box[1] + box[3]) / 2


def questions(c: Canvas, title: str, message: str, buttons):
    d = c.d
    c.ask('words', say(d, 'title'), f'The title is {spelled(title)}.', short=spelled(title))
    c.ask('words', say(d, 'message'), f'It says {spelled(message)}')
    label, color, x, y = d.one(buttons)
    for _ in range(2):
        group = 'click' if len(buttons) == 1 else 'click one'
        c.ask(group, say(d, group, b=label), '', (round(100 * x / c.width), round(100 * y / c.height)))
    if where := place_of(c, x, y):
        c.ask('place', say(d, 'where', o=f'{label} button'), f'The {spelled(label)} button is {at(where)}.')
    if color and len({b[1] for b in buttons}) == 1:
        c.ask('color', say(d, 'color', s='button' if len(buttons) == 1 else f'{label} button'), f'The {"" if len(buttons) == 1 else spelled(label) + " "}button is {color}.')
    if len(buttons) == 1:
        c.ask('words', say(d, 'label'), f'The button says {spelled(label)}.', short=spelled(label))
    names = listed([spelled(b[0]) for b in buttons])
    c.ask('words', say(d, 'buttons'), f'The {"button is" if len(buttons) == 1 else "buttons are"} {names}.')
    c.ask('count', say(d, 'count', p='buttons'), f'There {"is 1 button" if len(buttons) == 1 else f"are {len(buttons)} buttons"}.')
    c.ask('caption', say(d, 'caption'), f'It is a dialog with the title {spelled(title)} and the {"button" if len(buttons) == 1 else "buttons"} {names}.')

"""Dialogs with a title, a message and one to three buttons, which can be clicked with a tool."""
from ask import listed, say
from canvas import Canvas, clear, new_canvas, readable, spelled, tone, unlike
from prints import word
from shape_questions import at, place_of

TITLES = ['Error', 'Warning', 'Info', 'Save', 'Delete', 'Update', 'Login', 'Print', 'Exit', 'Settings', 'Help', 'Question', 'Confirm', 'Alert', 'Message', 'Welcome', 'Success', 'Notice', 'Sign in', 'Are you sure?']
BUTTONS = ['OK', 'Cancel', 'Yes', 'No', 'Save', 'Close', 'Next', 'Back', 'Send', 'Delete', 'Open', 'Retry', 'Start', 'Stop', 'Login', 'Apply', 'Done', 'Accept', 'Deny', 'Submit', 'Continue', 'Skip', 'Log in', 'Sign up', 'Buy', 'Finish', 'Ignore', 'Add', 'Remove', 'Confirm']
MESSAGES = ['The {w} is full', 'No {w} found', 'Delete {w}?', 'Save {w}?', '{w} is ready', 'Send {w}?', 'Open {w}?', '{w} failed', 'Close {w}?', 'New {w}', 'Delete this {w}?', 'Do you want to exit?', 'Save changes?', 'Are you sure?', 'File saved', 'Try again', 'The {w} was sent', 'Your {w} is here', 'Continue?']


# These titles have several words; {w} and {v} become drawn ones.
LONG_TITLES = ['Delete {w}', 'Open {w}', 'New {w}', 'Save {w} as', '{w} settings', 'About {w}', 'Choose a {w}', 'Sign out', 'Low battery', 'Disk full', 'Update available', 'File not found', 'Connection lost', 'Remove {w}?', '{w} and {v}', 'Print the {w}', 'Send to {w}', '{w} is full', 'Add a new {w}', 'Edit {w}', 'Out of memory', 'Log in to {w}', 'Your {w}', '{w} {v}', 'Confirm {w}', 'No {w} left', 'Unsaved changes', 'Empty trash', 'Rename file', 'Install update']


def long_title(d) -> str:
    title = d.one(LONG_TITLES).format(w=word(d), v=word(d).lower())
    title = title[0].upper() + title[1:]
    return d.one([title, title, title, title.title(), title.upper()])


# These messages may take two lines.
LONG_MESSAGES = ['Do you want to delete the {w}?', 'The {w} cannot be opened', 'Your {w} needs a new {v}', '{n} files will be removed', 'Please restart the {w} to finish', 'You have {n} new messages', '{w} is waiting for you', 'This will delete {n} items', 'The {w} could not be found', 'All changes were saved', 'Enter the {w} to continue', 'There is not enough {w}', 'The {v} of {w} is missing', 'Do you want to send {w} to the {v}?', 'Would you like to save the {w} first?', 'There are {n} errors in the {v}', 'Close all windows before you go on', '{w} and {v} are not the same', 'The {w} is about {n} percent full', 'Check the {w} and try again']


def message_lines(d) -> list:
    """Returns the lines of a message."""
    long = d.chance(0.45)
    text = d.one(LONG_MESSAGES if long else MESSAGES).format(w=word(d), v=word(d).lower(), n=d.rng.randint(2, 99))
    words = (text[0].upper() + text[1:]).split(' ')
    if not long or d.chance(0.3):
        return [' '.join(words)]
    at = len(words) // 2 + d.one([0, 0, 1])
    return [' '.join(words[:at]), ' '.join(words[at:])]


def dialog(d) -> Canvas:
    c = new_canvas(d, d.one(['gray', 'white', 'blue', 'green', 'black', None]), 1.8)
    size = round(d.rng.uniform(12, 20) * c.scale)
    face = c.font(size)
    title = long_title(d) if d.chance(0.5) else d.one(TITLES) if d.chance(0.5) else word(d).capitalize()
    message = message_lines(d)
    longest = max(title, *message, key=face.getlength)
    while face.getlength(longest) + 1.6 * size > c.width * 0.98 and size > 8 * c.scale:
        size = round(size * 0.9)
        face = c.font(size)
    w = max(face.getlength(longest) + 1.6 * size, c.width * d.rng.uniform(0.5, 0.9))
    w, h = min(w, c.width * 0.98), min(size * (d.rng.uniform(6.3, 9.5) + 1.3 * (len(message) - 1)), c.height * 0.97)
    x, y = c.rng.uniform(0.01, 0.99) * (c.width - w), c.rng.uniform(0.01, 0.99) * (c.height - h)
    if d.chance(0.3):
        x, y = (c.width - w) / 2, (c.height - h) / 2
    around = frame(c, (x, y, w, h), title, face, size)
    ink = clear(c.rng, 'black', (255, 255, 255))
    for at, line in enumerate(message):
        c.text(x + size * 0.7, y + size * (2.4 + 1.25 * at), line, face, ink)
    questions(c, title, ' '.join(message), place_buttons(c, (x, y, w, h), face, size, around))
    return c


def frame(c: Canvas, box, title: str, face, size: int) -> str:
    """Draws the window with its title in a bar, or without a bar. Returns the color of the window."""
    (x, y, w, h), d = box, c.d
    around = d.one(['white', 'white', 'gray'])
    paper = tone(c.rng, 'white') if around == 'white' else (d.rng.randint(185, 235),) * 3
    radius = size * d.one([0, 0, 0.4, 0.8])
    c.pen.rounded_rectangle([x, y, x + w, y + h], radius=radius, fill=paper, outline=tone(c.rng, d.one(['black', 'gray'])), width=max(1, c.width // 200))
    c.boxes += [(x, y, x + w, y + h, 'dialog')]
    ink = clear(c.rng, 'black', paper, 110)
    if d.chance(0.6):
        bar = unlike(c.rng, [around])
        shade = tone(c.rng, bar)
        c.pen.rounded_rectangle([x, y, x + w, y + size * 1.7], radius=radius, fill=shade)
        c.pen.rectangle([x, y + size * 0.85, x + w, y + size * 1.7], fill=shade)
        ink = clear(c.rng, readable(c.rng, bar), shade, 110)
    c.text(x + (size * 0.7 if d.chance(0.75) else (w - face.getlength(title)) / 2), y + size * 0.3, title, face, ink)
    return around


def place_buttons(c: Canvas, box, face, size: int, around: str) -> list:
    """Draws one to three buttons in the last line of a box. Returns (label, color, x, y) of each."""
    x, y, w, h = box
    labels = c.rng.sample(BUTTONS, c.rng.choices([1, 2, 3], [55, 37, 8])[0])
    # The last button may have a color of its own.
    fills = [unlike(c.rng, [around])] * len(labels)
    fills[-1] = unlike(c.rng, [around]) if c.d.chance(0.4) else fills[-1]
    widths = [face.getlength(label) + size * c.rng.uniform(1, 2) for label in labels]
    while sum(widths) + size * len(labels) > w and len(labels) > 1:
        labels, fills, widths = labels[1:], fills[1:], widths[1:]
    left = x + c.d.one([0.5, 1, c.rng.uniform(0, 1)]) * max(0, w - sum(widths) - size * len(labels)) + size * 0.4
    out, round_by, edge = [], size * c.d.one([0, 0.2, 0.5]), tone(c.rng, 'black') if c.d.chance(0.6) else None
    for label, fill, wide in zip(labels, fills, widths):
        top = y + h - size * 2.1
        b = [left, top, left + wide, top + size * 1.6]
        shade = tone(c.rng, fill)
        c.pen.rounded_rectangle(b, radius=round_by, fill=shade, outline=edge)
        c.boxes += [(*b, 'button')]
        c.text(left + (wide - face.getlength(label)) / 2, top + size * 0.2, label, face, clear(c.rng, readable(c.rng, fill), shade, 110))
        out.append((label, fill, (b[0] + b[2]) / 2, (b[1] + b[3]) / 2))
        left += wide + size * 0.6
    return out


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
    if len({b[1] for b in buttons}) == 1:
        c.ask('color', say(d, 'color', s='button' if len(buttons) == 1 else f'{label} button'), f'The {"" if len(buttons) == 1 else spelled(label) + " "}button is {color}.')
    if len(buttons) == 1:
        c.ask('words', say(d, 'label'), f'The button says {spelled(label)}.', short=spelled(label))
    names = listed([spelled(b[0]) for b in buttons])
    c.ask('words', say(d, 'buttons'), f'The {"button is" if len(buttons) == 1 else "buttons are"} {names}.')
    c.ask('count', say(d, 'count', p='buttons'), f'There {"is 1 button" if len(buttons) == 1 else f"are {len(buttons)} buttons"}.')
    c.ask('caption', say(d, 'caption'), f'It is a dialog with the title {spelled(title)} and the {"button" if len(buttons) == 1 else "buttons"} {names}.')

"""A page to draw on, and what is known about it: marks for the auxiliary loss, and questions with answers."""
import os
import random
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from labels import COLORS, SHADES
from sight_tokens import SPELLED
from values import Draw

FONT_DIR = '/usr/share/fonts/truetype/'
FONTS = ['dejavu/DejaVuSans', 'dejavu/DejaVuSans-Bold', 'dejavu/DejaVuSerif', 'dejavu/DejaVuSansMono', 'liberation/LiberationSans-Regular', 'liberation/LiberationSans-Bold',
         'liberation/LiberationSerif-Regular', 'liberation/LiberationSerif-Bold', 'liberation/LiberationMono-Regular', 'freefont/FreeSans', 'freefont/FreeSansBold', 'freefont/FreeMonoBold']
# The folder with fonts of other packages. Slanted and thin ones, symbols, and other cuts of held-out fonts are left out.
MORE_DIR = os.environ.get('GLANCE_FONTS')
LEFT_OUT = re.compile(r'Italic|Oblique|Thin|Hairline|ExtraLight|D050000L|Symbols|Z003|chorus|Smallcaps|Bebas|Biolinum_K|Libertine_(DR|M|R?B?I)|Tamil|BdIta|F56F|S56F|S76F|F76F|Z56F|N77F|NimbusRoman|SansNarrow|termes|heroscn|wght'
                      r'|^Noto(?!(Sans|Serif)-(Regular|Bold)|SansMono-Regular)', re.I)
MORE_FONTS = sorted(str(path) for path in Path(MORE_DIR).resolve().rglob('*.[ot]tf') if not LEFT_OUT.search(path.name)) if MORE_DIR else []
# The part of the texts that has one of them.
MORE_SHARE = 0.6
HELD_FONTS = ['freefont/FreeSerif', 'freefont/FreeSerifBold', 'liberation/LiberationSansNarrow-Regular', 'dejavu/DejaVuSerif-Bold']
BRIEFLY = ['Answer in one word.', 'One word.', 'answer with one word', 'Just one word please.', 'Answer with a single word.', '(one word)', 'Only the answer.', 'Reply with the answer only.', 'Answer briefly.', 'Be brief.', 'short answer please']
# Two letters of one line are rarely nearer than this.
MIN_TEXT = 10


@lru_cache(maxsize=2000)
def font(name: str, size: int):
    path = name if name.startswith('/') else f'{FONT_DIR}{name}.ttf'
    # The marks are those of single letters, so there must be no ligatures.
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


@dataclass
class Ask:
    """A question with its answer. `click` has the arguments if the answer is a call of the tool."""
    group: str
    question: str
    answer: str
    click: tuple | None = None


@dataclass
class Canvas:
    """`marks` are (x, y, label), `letters` (x, y, letter, whether a word begins) and boxes (x0, y0, x1, y1, label), in pixels of the page."""
    d: Draw
    width: int
    height: int
    ground: str
    image: Image.Image = None
    marks: list = field(default_factory=list)
    letters: list = field(default_factory=list)
    boxes: list = field(default_factory=list)
    asks: list = field(default_factory=list)

    @property
    def scale(self) -> float:
        """Returns the size of a pixel of a page whose longer side has 256."""
        return max(self.width, self.height) / 256

    @property
    def rng(self) -> random.Random:
        return self.d.rng

    def __post_init__(self):
        self.paper = tone(self.rng, self.ground)
        self.image = Image.new('RGB', (self.width, self.height), self.paper)
        self.pen = ImageDraw.Draw(self.image)

    def ask(self, group: str, question: str, answer: str, click=None, short: str | None = None):
        """Notes a question. Some questions ask for the `short` answer."""
        if short and self.d.chance(0.1):
            question, answer = question.rstrip('?.! ') + self.d.one(['?', '.', '', '?']) + ' ' + self.d.one(BRIEFLY), short
        self.asks.append(Ask(group, question, answer, click))

    def font_name(self, bold=False) -> str:
        """Returns the name of a drawn font: with `bold`, of a bold one."""
        names = HELD_FONTS if self.d.held else MORE_FONTS if MORE_FONTS and self.d.chance(MORE_SHARE) else FONTS
        return self.d.one([name for name in names if 'Bold' in name] if bold else names)

    def font(self, size: int):
        return font(self.font_name(), size)

    def text(self, x: float, y: float, text: str, face, color):
        """Writes a line with its upper left corner at that place. Marks each letter."""
        self.pen.text((x, y), text, font=face, fill=color)
        top, bottom = face.getbbox(text)[1::2]
        for at, letter in enumerate(text):
            left, right = face.getlength(text[:at]), face.getlength(text[:at + 1])
            middle = x + (left + right) / 2, y + (top + bottom) / 2
            self.marks.append((*middle, letter))
            self.letters.append((*middle, letter, at == 0 or text[at - 1] == ' '))


def spelled(text: str) -> str:
    """Returns printed text for an answer, which gives it letter by letter, as it is seen."""
    return f'{SPELLED}{text}{SPELLED}'


def tone(rng: random.Random, color: str) -> tuple:
    """Returns a shade of a named color: near its middle, or near one that others use."""
    if rng.random() < 0.35:
        return tuple(max(0, min(255, round(value + rng.gauss(0, 9)))) for value in COLORS[color])
    shade, spread = rng.choice(SHADES[color]), rng.choice([0, 0, 5])
    return tuple(max(0, min(255, round(int(shade[at:at + 2], 16) + rng.gauss(0, spread)))) for at in (0, 2, 4))


def clear(rng: random.Random, color: str, around: tuple, least=75) -> tuple:
    """Returns a shade of a named color that is well seen on a color around it."""
    for _ in range(20):
        if np.linalg.norm(np.subtract(shade := tone(rng, color), around)) > least:
            break
    return shade


def unlike(rng: random.Random, others) -> str:
    """Returns a color that is easily told from the others."""
    while True:
        name = rng.choice(list(COLORS))
        if all(distance(name, other) > 120 for other in others):
            return name


def readable(rng: random.Random, ground: str) -> str:
    """Returns a color in which text on that ground can be read."""
    return rng.choice([name for name in COLORS if abs(lightness(name) - lightness(ground)) > 70])


def lightness(color: str) -> float:
    return float(np.dot(COLORS[color], (0.3, 0.59, 0.11)))


def distance(a: str, b: str) -> float:
    return float(np.linalg.norm(np.subtract(COLORS[a], COLORS[b])))


# Sides of common pictures.
RATIOS = [4 / 3, 3 / 2, 16 / 9, 3 / 4, 2 / 3, 9 / 16, 2, 3]


def new_canvas(d: Draw, ground: str | None = None, stretch=1.8) -> Canvas:
    """Returns an empty page. Its sides differ by at most `stretch`."""
    ratio = 1 if d.chance(0.5) else d.rng.uniform(1 / stretch, stretch) if d.chance(0.5) else d.one([r for r in RATIOS if 1 / stretch <= r <= stretch])
    # Larger pages have smooth edges when they are made smaller.
    size = d.rng.choices([256, d.rng.randint(200, 320), d.rng.randint(320, 520), d.rng.randint(520, 800)], [15, 20, 45, 20])[0]
    width, height = (size, round(size / ratio)) if ratio >= 1 else (round(size * ratio), size)
    return Canvas(d, width, height, ground or ground_color(d))


def ground_color(d: Draw) -> str:
    return 'white' if d.chance(0.5) else d.one(list(COLORS))


def fitted(d: Draw, canvas: Canvas, longest: str, smallest=12, largest=40, share=0.9):
    """Returns a font in which the text takes at most that share of the width; sizes are for a page of 256 pixels."""
    scale = canvas.scale
    size = round(d.rng.uniform(smallest, largest) * scale)
    face = canvas.font(size)
    while (face.getlength(longest) > share * canvas.width or size * 1.3 > canvas.height) and size > MIN_TEXT * scale:
        size = round(size * 0.85)
        face = canvas.font(size)
    return face, size

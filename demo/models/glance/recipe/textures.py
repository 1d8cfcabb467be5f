"""Pictures that are no drawings: photographs, noise, blurred color and crowds of forms. The answer says what the model can see."""
import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ask import SAY, say
from canvas import Canvas, new_canvas
from noise import vary
from photographs import part, paths
from topics import expand

ANSWER = 'I can only see simple pictures.'
OTHER = ['where was this taken', 'who is this', 'what animal is this', 'how many people are there', 'what kind of food is this', 'is this a cat', 'what is the weather like', 'which city is this', 'what brand is the car',
         'what color is the (car|house|sky|shirt|dog|flower|boat|door|water|tree|roof|hat|bird)', 'how many (trees|cars|birds|animals|flowers|windows|persons) are (there|in the photo)', 'is there a (dog|person|tree|house|car|mountain|river) in the (photo|picture)',
         'what is the (man|woman|person|child) (doing|wearing|holding)', 'what is on the (table|left|right|ground|wall)', 'where is the (dog|tree|house|person|sun)', 'is it day or night', 'what is in the background', 'what (time of day|season) is it',
         'what (object|thing) is in the (middle|center|front)', 'what kind of (flower|tree|car|bird|building) is (this|it|that)', 'is the (sky|water) (blue|gray|green)', 'are there (people|clouds|animals) in (it|the picture)', 'which colors does the (photo|photograph) have']
ASKED = ['caption', 'caption', 'read', 'number', 'ground', 'largest', 'count']


def octaves(c: Canvas) -> np.ndarray:
    """Returns noise of several sizes, as clouds, leaves and walls have it."""
    dice = np.random.default_rng(c.rng.getrandbits(32))
    size = min(c.width, 256), min(c.height, 256)
    out = np.zeros((*size[::-1], 3), np.float32)
    fall = dice.uniform(0.45, 0.8)
    for at, cells in enumerate([2, 4, 8, 16, 32, 64]):
        share = dice.uniform(0, 1)
        noise = dice.normal(0, 1, (cells, cells, 3)) * (1 - share) + dice.normal(0, 1, (cells, cells, 1)) * share
        small = Image.fromarray(np.uint8(np.clip(noise * 50 + 128, 0, 255)))
        out += (np.asarray(small.resize(size, Image.BILINEAR), np.float32) - 128) * fall ** at
    pixels = np.uint8(np.clip(out * dice.uniform(0.7, 1.6) + dice.uniform(50, 200, 3), 0, 255))
    return np.asarray(Image.fromarray(pixels).resize((c.width, c.height), Image.BILINEAR))


def crowd(c: Canvas):
    """Draws many small forms of any shade over each other."""
    for _ in range(c.rng.randint(40, 120)):
        x, y, r = c.rng.uniform(0, c.width), c.rng.uniform(0, c.height), c.rng.uniform(4, 40)
        color = tuple(c.rng.randrange(256) for _ in range(3))
        c.d.one([c.pen.ellipse, c.pen.rectangle])([x - r, y - r * c.rng.uniform(0.3, 1), x + r, y + r * c.rng.uniform(0.3, 1)], fill=color)


def blurred(c: Canvas) -> Image.Image:
    """Returns large soft forms of dull colors with light from one side, as objects in a photograph are."""
    r, size = c.rng, (256, 256)
    dull = lambda: tuple(round(128 + (r.randrange(256) - 128) * share) for share in [r.uniform(0.3, 1)] * 3)
    image = Image.linear_gradient('L').rotate(r.choice([0, 90, 180, 270]))
    image = Image.composite(Image.new('RGB', size, dull()), Image.new('RGB', size, dull()), image)
    for _ in range(r.randint(1, 4)):
        pen = ImageDraw.Draw(image)
        for _ in range(r.randint(1, 6)):
            x, y, wide, high = r.uniform(0, 256), r.uniform(0, 256), r.uniform(10, 110), r.uniform(10, 110)
            points = [(x + wide * r.uniform(-1, 1), y + high * r.uniform(-1, 1)) for _ in range(r.randint(5, 9))]
            pen.polygon(points, fill=dull()) if r.random() < 0.5 else pen.ellipse([x - wide, y - high, x + wide, y + high], fill=dull())
        image = image.filter(ImageFilter.GaussianBlur(r.choice([1, 2, 4, 9])))
    return Image.blend(image.resize((c.width, c.height)), Image.fromarray(octaves(c)), r.uniform(0.08, 0.4))


def texture(d) -> Canvas:
    c = new_canvas(d)
    if d.chance(0.12):
        c.ask('empty', say(d, 'caption'), f'The picture is empty. It is {c.ground}.')
        c.ask('empty', say(d, 'count', p='shapes'), 'There are no shapes.')
        c.ask('ground', say(d, 'ground'), f'The background is {c.ground}.')
        return c
    group = 'texture'
    if (found := paths(d.held)) and d.chance(0.55):
        c.image, group = part(c, d.one(found)), 'photo'
    elif d.chance(0.4):
        c.image = blurred(c)
    elif d.chance(0.3):
        crowd(c)
    elif d.chance(0.9):
        c.image = Image.blend(c.image, Image.fromarray(octaves(c)), d.rng.uniform(0.6, 1))
    c.boxes.append((0, 0, c.width, c.height, 'texture'))
    kinds = d.rng.sample([k for k in ASKED if k in SAY], 3)
    for kind in kinds:
        c.ask(group, say(d, kind, t='picture', p='people'), ANSWER)
    for other in d.rng.sample(OTHER, 2):
        c.ask(group, vary(d.rng, expand(d.rng, other) + '?', 0.5), ANSWER)
    return c

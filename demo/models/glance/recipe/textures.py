"""Pictures that are no drawings: noise, blurred color and crowds of forms. The answer says what the model can see."""
import numpy as np
from PIL import Image

from ask import SAY, say
from canvas import Canvas, new_canvas

ANSWER = 'I can only see simple pictures.'
OTHER = ['where was this taken', 'who is this', 'what animal is this', 'how many people are there', 'what kind of food is this', 'is this a cat', 'what is the weather like', 'which city is this', 'what brand is the car']
ASKED = ['caption', 'caption', 'read', 'number', 'ground', 'largest', 'count']


def octaves(c: Canvas) -> np.ndarray:
    """Returns noise of several sizes, as clouds, leaves and walls have it."""
    dice = np.random.default_rng(c.rng.getrandbits(32))
    out = np.zeros((c.height, c.width, 3), np.float32)
    fall = dice.uniform(0.45, 0.8)
    for at, cells in enumerate([2, 4, 8, 16, 32, 64]):
        share = dice.uniform(0, 1)
        noise = dice.normal(0, 1, (cells, cells, 3)) * (1 - share) + dice.normal(0, 1, (cells, cells, 1)) * share
        small = Image.fromarray(np.uint8(np.clip(noise * 50 + 128, 0, 255)))
        out += (np.asarray(small.resize((c.width, c.height), Image.BILINEAR), np.float32) - 128) * fall ** at
    return np.uint8(np.clip(out * dice.uniform(0.7, 1.6) + dice.uniform(50, 200, 3), 0, 255))


def crowd(c: Canvas):
    """Draws many small forms of any shade over each other."""
    for _ in range(c.rng.randint(40, 120)):
        x, y, r = c.rng.uniform(0, c.width), c.rng.uniform(0, c.height), c.rng.uniform(4, 40)
        color = tuple(c.rng.randrange(256) for _ in range(3))
        c.d.one([c.pen.ellipse, c.pen.rectangle])([x - r, y - r * c.rng.uniform(0.3, 1), x + r, y + r * c.rng.uniform(0.3, 1)], fill=color)


def texture(d) -> Canvas:
    c = new_canvas(d)
    if d.chance(0.12):
        c.ask('empty', say(d, 'caption'), f'The picture is empty. It is {c.ground}.')
        c.ask('empty', say(d, 'count', p='shapes'), 'There are no shapes.')
        c.ask('ground', say(d, 'ground'), f'The background is {c.ground}.')
        return c
    if d.chance(0.3):
        crowd(c)
    if d.chance(0.8):
        c.image = Image.blend(c.image, Image.fromarray(octaves(c)), d.rng.uniform(0.6, 1))
    c.boxes.append((0, 0, c.width, c.height, 'texture'))
    kinds = d.rng.sample([k for k in ASKED if k in SAY], 3)
    for kind in kinds:
        c.ask('photo', say(d, kind, t='picture', p='people'), ANSWER)
    c.ask('photo', d.one(OTHER) + '?', ANSWER)
    return c

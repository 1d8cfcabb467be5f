"""Prints what the tests draw, none of it seen in training: the first held-out images of the public
set and pen paths of the held-out ways of writing, as JSON."""
import json

import numpy as np

from fields import split
from strokes import HELD_OUT, write

IMAGES = 40

pictures, labels = split(held_out=True)
rng = np.random.default_rng(11)
points = lambda way: [np.round(path[::3], 3).tolist() for path in write(way, rng, 0.02)]
strokes = [{'digit': digit, 'strokes': points(way)}
           for digit, ways in HELD_OUT.items() for way in ways]
images = [{'digit': int(label), 'rows': (picture * 16).astype(int).tolist()}
          for picture, label in zip(pictures[:IMAGES], labels)]
print(json.dumps({'images': images, 'strokes': strokes}, separators=(',', ':')))

"""Writes what the reference makes of a few small pictures, for test/browser/predictor."""
import json
from pathlib import Path

import numpy as np

from reference import edges

FILE = Path(__file__).resolve().parents[4] / 'test' / 'browser' / 'predictor' / 'edges.json'
CASES = [
    {},
    {'strength': 0.25},
    {'strength': 3.5, 'invert': True},
    {'mode': 'scharr', 'strength': 0.5},
    {'mode': 'prewitt'},
    {'mode': 'laplacian', 'strength': 0.5},
    {'mode': 'outline', 'strength': 0.7},
    {'mode': 'outline', 'strength': 0.7, 'invert': True},
    {'mode': 'kernel'},
    {'mode': 'kernel', 'kernel': [[0, 0, 0], [0, 1, 0], [0, 0, 0]], 'strength': 0.9},
    {'weights': {'red': 1, 'green': 0, 'blue': 0}},
]
SIZES = [(7, 5), (1, 1), (3, 11), (16, 9)]


def main() -> None:
    rng = np.random.default_rng(11)
    cases = []
    for index, options in enumerate(CASES):
        width, height = SIZES[index % len(SIZES)]
        pixels = rng.integers(0, 256, (height, width, 3))
        made = np.clip(edges(pixels / 255, **options), 0, 1) * 255
        cases.append({'options': options, 'width': width, 'height': height,
                      'pixels': pixels.ravel().tolist(), 'edges': np.round(made, 2).ravel().tolist()})
    FILE.write_text(json.dumps(cases, separators=(',', ':')) + '\n')
    print(f'{FILE.name}: {FILE.stat().st_size} bytes')


if __name__ == '__main__':
    main()

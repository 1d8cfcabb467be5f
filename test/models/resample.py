"""Writes resample/fixtures.json: images that Pillow scaled, for test/unit/values/resample.test.ts.

Run it with Pillow 13 or later: python3 test/models/resample.py
"""
import base64
import json
from pathlib import Path

import PIL
from PIL import Image

FILTERS = {
    "nearest": Image.NEAREST,
    "box": Image.BOX,
    "bilinear": Image.BILINEAR,
    "hamming": Image.HAMMING,
    "bicubic": Image.BICUBIC,
    "lanczos": Image.LANCZOS,
}
# Source size, target size, region of the source: shrunk, enlarged, both, one side only, cropped.
CASES = [
    ((37, 29), (16, 12), None),
    ((19, 13), (40, 31), None),
    ((50, 11), (20, 24), None),
    ((24, 18), (24, 7), None),
    ((24, 18), (9, 18), None),
    ((64, 48), (24, 24), (8, 0, 56, 48)),
    ((33, 21), (17, 17), (6.25, 0.5, 26.75, 20.5)),
    ((5, 3), (1, 1), None),
    # Pillow 13 scales the columns of these first.
    ((24, 40), (32, 32), None),
    ((15, 60), (12, 20), (1, 3.5, 14, 60)),
]


def noise(width: int, height: int) -> Image.Image:
    """Returns edges and noise, which show every difference, from a generator that tests repeat."""
    state, data = 12345, bytearray()
    for at in range(width * height * 3):
        state = (state * 1103515245 + 12345) % 2**31
        hard = 255 if (at // 7) % 3 == 0 else 0
        data.append(hard if at % 5 == 0 else state >> 23)
    return Image.frombytes("RGB", (width, height), bytes(data))


def main() -> None:
    cases = []
    for source, target, region in CASES:
        image = noise(*source)
        scaled = {
            name: base64.b64encode(image.resize(target, number, box=region).tobytes()).decode()
            for name, number in FILTERS.items()
        }
        cases.append({"source": source, "target": target, "region": region, "scaled": scaled})
    path = Path(__file__).parent / "resample" / "fixtures.json"
    path.write_text(json.dumps({"pillow": PIL.__version__, "cases": cases}, indent=1) + "\n")


main()

"""Scores a checkpoint, rounded as it ships, on whole photographs: it should say that it can only see simple pictures.

python3 score_photographs.py                  the held-out photographs of `photographs.py`
python3 score_photographs.py FILE [FILE ...]  others
"""
import argparse
from pathlib import Path

import torch
from PIL import Image

from places import KEPT_DIR
from lesson import pad
from packed import as_packed
from photographs import paths, photograph
from score import greedy, load
from sight import to_input
from sight_tokens import encode, split
from textures import ANSWER

QUESTIONS = ['What is in this picture?', 'What do you see?', 'Describe this image.']
MOST_TOKENS = 40


@torch.no_grad()
def answers(model, path: Path) -> list:
    """Returns what the model says to each question about a photograph."""
    pixels, extent = pad(photograph(path), model.encoder.s.tile, Image.LANCZOS)
    rows = model.see(to_input(torch.from_numpy(pixels)[None]), torch.from_numpy(extent)[None])
    out = []
    for question in QUESTIONS:
        ids, _ = encode([{'role': 'user', 'content': question, 'picture': True}], add_generation_prompt=True)
        prefix, start = split(ids, model.encoder.s.rows)
        out.append(greedy(model, model.read(rows, torch.tensor(prefix)), 0, ids[start:], MOST_TOKENS))
    return out


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('files', nargs='*', type=Path)
    args.add_argument('--checkpoint', type=Path, default=KEPT_DIR)
    args = args.parse_args()
    model, right, of = as_packed(load(args.checkpoint)[0]), 0, 0
    for path in args.files or paths(held=True):
        said = answers(model, path)
        right, of = right + said.count(ANSWER), of + len(said)
        print(path.name, [text for text in said if text != ANSWER])
    print(f'{right} of {of}')

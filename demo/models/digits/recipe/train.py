"""Trains the reader, measures it and writes model.onnx, model.fp16.onnx and scores.json.

python train.py [--quick] [--out FOLDER]: ten to fifteen minutes on one core, under one with --quick,
which writes to recipe/quick unless told otherwise.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from draw import between, pages, wear
from export import export
from fields import packed, pen_fields, scribble_fields, shape_fields, split, written_fields
from half import halve
from measure import measure
from model import Reader, find

SEED = 20
BATCH = 128


class Lessons:
    """What batches are drawn from: 50 % images of the public set, 42 % paths, 8 % no digits."""

    def __init__(self, rng: np.random.Generator, per_way: int):
        pictures, labels = split(held_out=False)
        one_hot = np.eye(10, dtype=np.float32)
        # Each image as four fields: its outline and its middle line, each seen at two levels.
        self.images = torch.from_numpy(np.stack(
            [packed(fields(pictures, level)) for fields in (shape_fields, pen_fields)
             for level in (0.35, 0.5)]))
        self.labels = torch.from_numpy(one_hot[labels])
        written, digits = written_fields(per_way, rng)
        self.written, self.digits = torch.from_numpy(written), torch.from_numpy(one_hot[digits])
        self.scribbles = torch.from_numpy(scribble_fields(per_way * 8, rng))

    def batch(self, gen: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        choose = lambda limit, n: torch.randint(limit, (n,), generator=gen)
        images, paths = BATCH // 2, BATCH * 42 // 100
        rest = BATCH - images - paths
        kind, image = choose(4, images), choose(len(self.labels), images)
        path, scribble = choose(len(self.written), paths), choose(len(self.scribbles), rest)
        fields = torch.cat([self.images[kind, image], self.written[path], self.scribbles[scribble]])
        pen = between(0.012, 0.08, BATCH, gen)
        # Outlines have a width of their own: thinner or thicker than it was.
        pen[:images] = torch.where(kind < 2, between(-0.02, 0.03, images, gen), pen[:images])
        pen[-2:] = -1  # nothing drawn at all
        truth = torch.cat([self.labels[image], self.digits[path], torch.full((rest, 10), 0.1)])
        return wear(pages(fields, gen, pen), gen), truth


def train(steps: int, lessons: Lessons, gen: torch.Generator) -> Reader:
    reader = Reader()
    optimizer = torch.optim.AdamW(reader.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    dark = torch.ones(1, 1, 1, 1, dtype=torch.int32)
    begun, losses = time.time(), []
    for step in range(1, steps + 1):
        page, truth = lessons.batch(gen)
        loss = cross_entropy(reader(find(page, dark)), truth, label_smoothing=0.02)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 250 == 0:
            seconds = time.time() - begun
            print(f'{step}/{steps}  loss {np.mean(losses[-250:]):.3f}  {seconds:.0f} s', flush=True)
    return reader.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--quick', action='store_true', help='few steps, to see that it all runs')
    parser.add_argument('--out', type=Path, help='default: the model folder; with --quick, recipe/quick')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    lessons = Lessons(np.random.default_rng(SEED), 6 if options.quick else 150)
    reader = train(200 if options.quick else 4000, lessons, torch.Generator().manual_seed(SEED))
    scores = measure(reader, 1 if options.quick else 5)
    for name, share in scores.items():
        print(f'{name}: {share:.2%}')
    here = Path(__file__).resolve().parent
    out = options.out or (here / 'quick' if options.quick else here.parent)
    out.mkdir(parents=True, exist_ok=True)
    export(reader, out / 'model.onnx')
    halve(out / 'model.onnx')
    (out / 'scores.json').write_text(json.dumps(scores, indent=2) + '\n')
    print(f'The model is in {out}.')


if __name__ == '__main__':
    main()

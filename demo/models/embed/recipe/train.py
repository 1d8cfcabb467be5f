"""Trains the embedder, measures it and writes its files.

python train.py [--quick] [--own] [--lists FOLDER] [--out FOLDER]: about ten minutes on one core, two
with --quick, which writes to recipe/quick unless told otherwise.
"""
import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import descriptions
import fixtures
import vocabulary
from export import export, rounded
from lessons import Lessons, expand
from measure import Embed, measure
from model import Embedder

SEED, TOKENS, HELD_OUT = 20, 6400, 1000
# Most tokens of a text: while it learns, and at all.
MOST, READ = 64, 8192


def batch(texts: list[str], tokenizer, most: int = MOST) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask, padded with zeros; what is longer than `most` tokens is cut."""
    rows = [encoding.ids[:most] for encoding in tokenizer.encode_batch(texts)]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros(ids.shape, np.float32)
    for row, tokens in enumerate(rows):
        ids[row, :len(tokens)], mask[row, :len(tokens)] = tokens, 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


def teach(model: Embedder, tokenizer, lessons: Lessons, steps: int, size: int, rate: float) -> None:
    """Of each text, its pair is to be told from all the others of the batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps, pct_start=0.1)
    begun, losses = time.time(), []
    for step in range(1, steps + 1):
        ones, others = zip(*lessons.batch(size))
        found = model(*batch(ones, tokenizer)), model(*batch(others, tokenizer))
        alike = found[0] @ found[1].T * 20
        truth = torch.arange(len(ones))
        loss = (cross_entropy(alike, truth) + cross_entropy(alike.T, truth)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0:
            print(f'{step}/{steps}  loss {np.mean(losses[-100:]):.3f}  {time.time() - begun:.0f} s', flush=True)


def embedder(model: Embedder, tokenizer) -> Embed:
    @torch.no_grad()
    def embed(texts: list[str]) -> np.ndarray:
        parts = [texts[at:at + 64] for at in range(0, len(texts), 64)]
        return np.concatenate([model(*batch(list(part), tokenizer, READ)).numpy() for part in parts])

    return embed


def texts_of(described, lessons: Lessons) -> list[str]:
    """What the tokenizer learns its pieces from; everyday words count more than their share."""
    rng = random.Random(SEED)
    everyday = [word for _, group in lessons.alike for word in group]
    everyday += [expand(rng, text) for group in lessons.sayings for text in group]
    everyday += [expand(rng, text) for topic in lessons.topics for text in topic.wordings]
    return everyday * 30 + [name for _, name in lessons.signs] * 10 + [
        text for short, paragraphs in described for text in [short, *paragraphs]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--quick', action='store_true', help='few steps, to see that it all runs')
    parser.add_argument('--lists', type=Path, default=descriptions.LISTS, help="apt's lists, with English descriptions")
    parser.add_argument('--own', action='store_true',
                        help='learn from our own text alone; descriptions only measure what came of it')
    parser.add_argument('--out', type=Path, help='default: the model folder; with --quick, recipe/quick')
    parser.add_argument('--fixtures', type=Path, help='writes what the tests compare with to this file')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    described = descriptions.read(options.lists)
    random.Random(SEED).shuffle(described)
    held_out, described = described[:HELD_OUT], described[HELD_OUT:]
    if options.quick:
        described = described[:6000]
    if options.own:
        described = []
    lessons = Lessons(SEED, described)
    texts = texts_of(described, lessons)
    tokenizer = vocabulary.train(texts, [sign for sign, _ in lessons.signs], TOKENS)
    model = Embedder(TOKENS)
    model.context = False
    teach(model, tokenizer, lessons, 150 if options.quick else 500, 768, 1e-2)
    model.context = True
    teach(model, tokenizer, lessons, 60 if options.quick else 200, 512, 2e-3)
    model.eval()
    rounded(model)
    embed = embedder(model, tokenizer)
    scores = measure(embed, held_out, texts)
    print(json.dumps(scores, indent=2))
    here = Path(__file__).resolve().parent
    out = options.out or (here / 'quick' if options.quick else here.parent)
    out.mkdir(parents=True, exist_ok=True)
    vocabulary.save(tokenizer, out / 'tokenizer.json')
    export(model, out)
    (out / 'scores.json').write_text(json.dumps(scores, indent=2) + '\n')
    print(f'The model is in {out}.')
    if options.fixtures:
        fixtures.write(options.fixtures, tokenizer, embed)


if __name__ == '__main__':
    main()

"""Trains the embedder, measures it and writes its files.

python train.py [--quick] [--sources FOLDER] [--lists FOLDER] [--out FOLDER]: some four minutes of one core, one
with --quick, which writes to recipe/quick unless told otherwise.
"""
import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import descriptions
import fixtures
import manuals
import pictures
import sources
import vocabulary
from export import export, rounded
from lessons import Lessons, expand
from measure import Embed, measure
from model import REACH, Embedder
from paraphrase import Paraphrase
from wordnet import Meaning, WordNet

SEED, TOKENS, HELD_OUT = 20, 6400, 1000
# Most tokens of a text: while it learns, and at all.
MOST, READ = 64, 8192


def bags(model: Embedder, rows: list[list[int]]) -> torch.Tensor:
    """Vectors of texts without a look at neighbours."""
    lengths = [len(row) for row in rows]
    return model.bags(torch.tensor([token for row in rows for token in row]),
                      torch.tensor([0, *np.cumsum(lengths[:-1])]))


def strung(model: Embedder, rows: list[list[int]]) -> torch.Tensor:
    """Vectors of texts; they lie in one string, far enough apart that none sees another."""
    gap = REACH // 2
    ids = [token for row in rows for token in [*row, *[0] * gap]]
    texts = [text for at, row in enumerate(rows) for text in [*[at] * len(row), *[len(rows)] * gap]]
    return model.strung(torch.tensor(ids), torch.tensor(texts), len(rows))


def teach(model: Embedder, read: Callable, tokenizer, lessons: Lessons, steps: int, size: int, rate: float) -> None:
    """Of each text, its pair is to be told from all the others of the batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps, pct_start=0.1)
    begun, losses = time.process_time(), []
    for step in range(1, steps + 1):
        ones, others = zip(*lessons.batch(size))
        found = read(model, [encoding.ids[:MOST] for encoding in tokenizer.encode_batch([*ones, *others])])
        alike = found[:len(ones)] @ found[len(ones):].T * 20
        truth = torch.arange(len(ones))
        loss = (cross_entropy(alike, truth) + cross_entropy(alike.T, truth)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps:
            print(f'{step}/{steps}  loss {np.mean(losses[-100:]):.3f}  {time.process_time() - begun:.0f} s', flush=True)


def embedder(model: Embedder, tokenizer) -> Embed:
    @torch.no_grad()
    def embed(texts: list[str]) -> np.ndarray:
        parts = [texts[at:at + 64] for at in range(0, len(texts), 64)]
        return np.concatenate([model(*padded(tokenizer, list(part))).numpy() for part in parts])

    return embed


def padded(tokenizer, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask, padded with zeros; what is longer than READ tokens is cut."""
    rows = [encoding.ids[:READ] for encoding in tokenizer.encode_batch(texts)]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros(ids.shape, np.float32)
    for row, tokens in enumerate(rows):
        ids[row, :len(tokens)], mask[row, :len(tokens)] = tokens, 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


def hold_out(wordnet: WordNet) -> list[Meaning]:
    """Meanings that somebody meant and that a sentence shows, for the measuring alone."""
    shown = [meaning for meaning in wordnet.meanings if meaning.times and meaning.examples and len(meaning.gloss) > 20]
    return random.Random(SEED).sample(shown, HELD_OUT)


def texts_of(lessons: Lessons) -> list[str]:
    """What the tokenizer learns its pieces from; everyday words count more than their share."""
    rng = random.Random(SEED)
    everyday = [word for _, group in lessons.alike for word in group]
    everyday += [expand(rng, text) for group in lessons.sayings for text in group]
    everyday += [expand(rng, text) for topic in lessons.topics for text in topic.wordings]
    texts = everyday * 30 + [name for _, names in lessons.signs for name in names] * 10
    for meaning in lessons.paraphrase.meanings:
        often = 1 + int(2 * min(meaning.times, 100) ** 0.5)
        texts += meaning.words * often + [meaning.gloss] * max(1, often // 3)
        texts += meaning.examples * (2 if meaning.times else 1)
    return texts + [text for heading, paragraphs in lessons.manuals for text in [heading, *paragraphs]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--quick', action='store_true', help='few steps, to see that it all runs')
    parser.add_argument('--sources', type=Path, default=Path('/'), help='where the packages of sources.py are unpacked')
    parser.add_argument('--lists', type=Path, default=descriptions.LISTS,
                        help="apt's lists, with English descriptions: they only measure, and may be missing")
    parser.add_argument('--out', type=Path, help='default: the model folder; with --quick, recipe/quick')
    parser.add_argument('--fixtures', type=Path, help='writes what the tests compare with to this file')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    found = sources.folders(options.sources)
    rng, wordnet = random.Random(SEED), WordNet(found['wordnet-base'])
    meanings = hold_out(wordnet)
    lessons = Lessons(rng, Paraphrase(rng, wordnet, meanings), manuals.read([found[name] for name in sources.MANUALS]),
                      pictures.read(found['unicode-cldr-core']))
    texts = texts_of(lessons)
    tokenizer = vocabulary.train(texts, [sign for sign, _ in lessons.signs], TOKENS)
    print(f'{len(lessons.paraphrase.meanings)} meanings, {len(lessons.manuals)} sections of manuals: read in '
          f'{time.process_time():.0f} s', flush=True)
    model = Embedder(TOKENS)
    teach(model, bags, tokenizer, lessons, 150 if options.quick else 2000, 768, 1e-2)
    teach(model, strung, tokenizer, lessons, 20 if options.quick else 150, 384, 2e-3)
    model.eval()
    rounded(model)
    embed = embedder(model, tokenizer)
    scores = measure(embed, descriptions.some(options.lists, HELD_OUT, SEED), meanings, list(set(texts)))
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

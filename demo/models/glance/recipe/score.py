"""Scores a checkpoint, rounded as it ships, on held-out pictures: their pairs, words and fonts are none that training drew. Writes scores.json.

An answer is right if greedy decoding gives exactly the text that the recipe would have written. A click is right if it
is near the center of the button that was meant.
"""
import argparse
import json
import re
from collections import defaultdict
from pathlib import Path

import torch

from places import KEPT_DIR, Sight
from labels import COLORS, INDEX, LETTERS, SHAPES
from clicks import click_tool
from lesson import KINDS, lesson
from loader import assemble
from packed import as_packed
from settings import Shape
from sight import Glance, to_input
from sight_tokens import tokenizer

BATCH = 16
# Largest distance of a click from the center, in percent of the picture's sides; tokens of a call at most.
NEAR, CALL_TOKENS = 5, 60


def load(path) -> tuple[Glance, dict]:
    """Returns (the model of a checkpoint's folder, its state)"""
    state = json.loads((path / 'glance.json').read_text())
    sight = {name: tuple(map(tuple, value)) if isinstance(value, list) else value for name, value in state['sight'].items()}
    model = Glance(Sight(**sight), Shape(**state['shape']))
    read = lambda name: torch.load(path / f'{name}.pt', weights_only=True, map_location='cpu')
    model.load_state_dict({**read('encoder'), **read('decoder')})
    return model.eval(), state['at']


class Plain:
    """What `click_tool` draws from, without dice."""

    @staticmethod
    def one(choices):
        return choices[0]

    @staticmethod
    def chance(_):
        return False


def cases(count: int, sight: Sight, held: bool):
    """Yields the name of each kind with batches of its lessons."""
    for kind in KINDS:
        lessons = [lesson(f'score-{kind.__name__}-{at}', sight, held, kind) for at in range(count)]
        for start in range(0, count, BATCH):
            yield kind.__name__, lessons[start:start + BATCH]


def cell_scores(model: Glance, rows, labels, right):
    """Counts cells with one label of a family, in which it has the highest score of that family."""
    scores = model.labels(rows)
    for family, names in (('shape', SHAPES), ('color', COLORS), ('letter', LETTERS)):
        at = [INDEX[name] for name in names]
        wanted = labels[..., at]
        single = wanted.sum(-1) == 1
        hits = scores[..., at].argmax(-1)[single] == wanted[single].float().argmax(-1)
        right[f'cells: {family}'] += hits.tolist()


def greedy(model: Glance, past, owner: int, ids: list, limit: int) -> str:
    """Returns what the model says after the ids, about one picture."""
    past, said, end = [(k[owner:owner + 1], v[owner:owner + 1]) for k, v in past], [], tokenizer().id['<|im_end|>']
    ids = torch.tensor([ids])
    while len(said) < limit:
        hidden, past = model.guide.hidden(ids, past)
        ids = model.guide.logits(hidden[:, -1:]).argmax(-1)
        if ids.item() == end:
            break
        said.append(ids.item())
    return tokenizer().decode(said)


def clicks_near(model: Glance, past, group, at: int) -> bool:
    """Returns `True` if the call of a row has x and y near those of the expected call."""
    ids, learn = group.ids[at], group.learn[at]
    places = lambda text: [int(number) for number in re.findall(r'"[xy]": (\d+)', text)]
    said = places(greedy(model, past, int(group.owner[at]), ids[:learn.int().argmax()].tolist(), CALL_TOKENS))
    wanted = places(tokenizer().decode(ids[learn].tolist()))
    return len(said) == 2 and all(abs(a - b) <= NEAR for a, b in zip(said, wanted))


def answer_scores(model: Glance, rows, batch, names, right):
    """Counts answers that greedy decoding gives: each token has the highest score after those before it."""
    past = model.read(rows, batch.prefix)
    for group in batch.groups:
        scores, targets = model.answer(past, group, rows)
        hits = scores.argmax(-1) == targets
        row = group.learn[:, 1:].nonzero()[:, 0]
        for at, source in enumerate(group.source.tolist()):
            name = names[source]
            right[name].append(clicks_near(model, past, group, at) if name.startswith('click') else bool(hits[row == at].all()))


@torch.no_grad()
def score(model: Glance, count: int, held=True, answers=True) -> dict:
    """Returns (right, of) for each group of questions and family of labels."""
    right, sight = defaultdict(list), model.encoder.s
    for name, lessons in cases(count, sight, held):
        tool = click_tool(Plain) if name == 'dialog' else None
        batch = assemble(lessons, sight, [], tool, [tool] if tool else [], lambda asks: [[ask] for ask in asks if tool or not ask.click])
        rows = model.see(to_input(batch.pixels), batch.extents)
        cell_scores(model, rows, batch.labels, right)
        if answers:
            answer_scores(model, rows, batch, [ask.group for each in lessons for ask in each.asks if tool or not ask.click], right)
    return {name: (sum(hits), len(hits)) for name, hits in sorted(right.items())}


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', type=Path, default=KEPT_DIR)
    args.add_argument('--count', type=int, default=64, help='pictures of each kind')
    args.add_argument('--seen', action='store_true', help='score pictures like those of the training instead')
    args.add_argument('--cells', action='store_true', help='score only the labels of the cells')
    args.add_argument('--threads', type=int, default=2)
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    model, at = load(args.checkpoint)
    scores = score(as_packed(model), args.count, not args.seen, not args.cells)
    for name, (hits, of) in scores.items():
        print(f'{name}: {hits} of {of} ({100 * hits / max(1, of):.1f} %)')
    path = KEPT_DIR / f'scores{"-seen" if args.seen else ""}.json'
    path.write_text(json.dumps({'at': at, 'held out': not args.seen, 'scores': scores}, indent=1) + '\n')


if __name__ == '__main__':
    main()

"""Scores the chats without pictures of a checkpoint, rounded as it ships: the guide's cases, and facts in held-out wordings."""
import argparse
import random
from pathlib import Path

import torch

from places import KEPT_DIR
from evaluate import answers, evaluate, prompt
from facts import RELATIONS
from packed import as_packed
from score import load
from sight_tokens import tokenizer


@torch.no_grad()
def score_facts(guide, count: int):
    """Prints how many facts of each relation are right: the answer has the other half of the pair."""
    for relation in RELATIONS:
        pairs = random.Random(relation.name).sample(relation.pairs, min(count, len(relation.pairs)))
        questions = [relation.held_out[0].replace('(a|an)', 'a').replace('{a}', a) + '?' for a, _ in pairs]
        said = answers(guide, tokenizer(), [prompt({'say': question[0].upper() + question[1:]}, {}) for question in questions])
        right = sum(b.lower() in text.lower() for (_, b), text in zip(pairs, said))
        print(f'{relation.name}: {right} of {len(pairs)} ({100 * right / len(pairs):.1f} %)')


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', type=Path, default=KEPT_DIR)
    args.add_argument('--count', type=int, default=20, help='facts of each relation')
    args.add_argument('--sample', type=int, default=0, help='cases of each group of the guide; 0 means all')
    args = args.parse_args()
    guide = as_packed(load(args.checkpoint)[0]).guide
    score_facts(guide, args.count)
    evaluate(guide, sample=args.sample)

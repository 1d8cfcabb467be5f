"""Shards of chats as token ids, with a mask of what the assistant says; only that is learnt."""
import hashlib
import random
from pathlib import Path

import numpy as np

from generate import encode
from settings import MODEL_DIR, WORK_DIR
from talk import chat
from tokenizer import Tokenizer

# Tokens of a chat. What follows them is cut and not learnt.
LONGEST = 1024
# One of so many chats is long.
LONG_EVERY = 40
FILES = ('facts', 'families', 'fill', 'generate', 'memory', 'noise', 'results', 'sums', 'talk', 'template', 'toolbox', 'tools', 'topics', 'unknown', 'values')


def digest() -> str:
    """Names what the shards depend on, so that a changed text is never mixed with an old shard."""
    here = Path(__file__).parent
    files = [here / f'{name}.py' for name in FILES] + sorted((here / 'text').iterdir()) + [MODEL_DIR / 'tokenizer.json']
    return hashlib.sha256(b''.join(f.read_bytes() for f in files)).hexdigest()[:8]


def create(number: int, chats: int):
    """Returns ids [tokens], mask [tokens] and the end of each chat [chats] of a shard."""
    tokenizer, rng, ids, learn, ends = Tokenizer.load(), random.Random(f'guide-{number}'), [], [], []
    for at in range(chats):
        one, mask = encode(tokenizer, *chat(rng, long=at % LONG_EVERY == 0))
        ids += one[:LONGEST]
        learn += mask[:LONGEST]
        ends.append(len(ids))
    return np.array(ids, np.uint16), np.array(learn, bool), np.array(ends)


def load(number: int, chats: int):
    """Returns what `create` returns, kept in the work folder."""
    path = WORK_DIR / f'shard-{digest()}-{number}-{chats}.npz'
    if not path.exists():
        ids, learn, ends = create(number, chats)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix('.part.npz')
        np.savez(part, ids=ids, learn=learn, ends=ends)
        part.rename(path)
    data = np.load(path)
    return data['ids'], data['learn'], data['ends']

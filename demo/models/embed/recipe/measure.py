"""How well like meanings are found, on what training never saw, beside a bag of words."""
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lessons import expand, topics
from wordnet import Meaning

EVALUATION = Path(__file__).parents[1] / 'evaluation'
Embed = Callable[[list[str]], np.ndarray]


def bag_of_words(texts: list[str]) -> Embed:
    """Unit vectors of words, the rarer in `texts` the heavier: what one has without any training."""
    words = lambda text: re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower())
    seen = Counter(word for text in texts for word in set(words(text)))
    places: dict[str, int] = {}

    def embed(given: list[str]) -> np.ndarray:
        counted = [Counter(words(text)) for text in given]
        for count in counted:
            for word in count:
                places.setdefault(word, len(places))
        vectors = np.zeros((len(given), 60_000), np.float32)
        for row, count in enumerate(counted):
            for word, times in count.items():
                vectors[row, places[word]] = times * math.log(len(texts) / (1 + seen[word]))
        return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)

    return embed


def found(embed: Embed, queries: list[str], wanted: list[str], first: int) -> float:
    """Share of queries whose own text is among the `first` nearest of all."""
    near = embed(queries) @ embed(wanted).T
    # Equal to others is not found: a text without a word in common has no place among the nearest.
    own = np.diag(near)[:, None]
    return float(((near >= own).sum(1) <= first).mean())


def measure(embed: Embed, described: list[tuple[str, list[str]]], meanings: list[Meaning], texts: list[str]) -> dict:
    rng = random.Random(5)
    asked = {'taught': [], 'new': []}
    for kind, group in zip(asked, topics()):
        for topic in group:
            if topic.held_out:
                asked[kind].append((topic.held_out[0], expand(rng, topic.wordings[0])))
    everyday, more = (json.loads((EVALUATION / name).read_text()) for name in ('everyday.json', 'more.json'))
    sets = {
        'descriptions': [(short, paragraphs[0]) for short, paragraphs in described],
        'words and what they mean': [(meaning.words[0], meaning.gloss) for meaning in meanings],
        'sentences and what a word in them means': [(meaning.examples[0], meaning.gloss) for meaning in meanings],
        'topics taught, new wordings': asked['taught'],
        'topics never taught': asked['new'],
        'everyday sentences': everyday['pairs'],
        'more everyday sentences': more['pairs'],
    }
    scores = {}
    for name, how in (('embed', embed), ('bag of words', bag_of_words(texts))):
        scores[name] = {}
        for kind, pairs in sets.items():
            for first in (1, 10) if len(pairs) >= 1000 else (1,) if pairs else ():
                place = 'first' if first == 1 else 'in ten'
                scores[name][f'{kind}, {place} of {len(pairs)}'] = found(how, *zip(*pairs), first)
        scores[name][f'nearer than one of the same words, of {len(everyday["triples"])}'] = nearer(how, everyday['triples'])
    return scores


def nearer(embed: Embed, triples: list[tuple[str, str, str]]) -> float:
    one, like, unlike = (embed(list(texts)) for texts in zip(*triples))
    return float(((one * like).sum(1) > (one * unlike).sum(1)).mean())

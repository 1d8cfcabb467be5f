"""Common facts as questions with answers, from text/facts.txt, and the spelling of words.

A fact has several answers of one meaning, so that what the model says depends on the temperature and the seed.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

from noise import vary
from topics import expand

FILE = Path(__file__).with_name('text') / 'facts.txt'


@dataclass
class Relation:
    """Wordings with {a}, answers with {a} and {b}, and pairs of both."""
    name: str
    wordings: list = field(default_factory=list)
    held_out: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    pairs: list = field(default_factory=list)


def read() -> list[Relation]:
    relations = []
    for line in filter(None, FILE.read_text().splitlines()):
        mark, rest = line[0], line[2:]
        if mark == '#':
            relations.append(Relation(rest))
        elif mark == '@':
            relations[-1].pairs += [tuple(pair.split(': ', 1)) for pair in rest.split('; ')]
        else:
            {'?': relations[-1].wordings, '%': relations[-1].held_out, '=': relations[-1].answers}[mark].append(rest)
    return relations


RELATIONS = read()
SIZES = [len(relation.pairs) ** 0.7 for relation in RELATIONS]
# A question with one of these texts may have an answer among the facts, even where the guide's chats say that it is unknown.
KNOWN = {a.lower() for relation in RELATIONS if relation.name in ('capital', 'country', 'language', 'currency', 'single') for a, _ in relation.pairs} | {
    'how many planets', 'how many days', 'tallest mountain', 'do you spell', 'mona lisa', 'hamlet', 'boiling point'}


def fact(d) -> tuple[str, str]:
    """Returns a question and its answer. With `held`, the wording is one that training never has."""
    relation = d.rng.choices(RELATIONS, SIZES)[0]
    a, b = d.one(relation.pairs)
    asked = expand(d.rng, d.one(relation.held_out if d.held else relation.wordings).replace('{a}', a))
    asked = re.sub(r'\ba (?=[aeio])', 'an ', re.sub(r'\ban (?=[^aeio])', 'a ', asked))
    answer = d.one(relation.answers).replace('{a}', a).replace('{b}', b)
    return vary(d.rng, asked, 0.7), answer[0].upper() + answer[1:]


SPELL = ['how do you spell {w}', 'spell {w}', 'spell the word {w}', 'how is {w} spelled', 'what are the letters of {w}']
LENGTH = ['how many letters (does {w} have|are in {w}|has {w})', 'count the letters (of|in) {w}', 'how long is the word {w}', 'number of letters in {w}']
FIRST = ['what is the {n} letter of {w}', 'which letter does {w} {v} with', '{n} letter of {w}']
ENDS = [('first', 'begin', 0), ('last', 'end', -1)]


def spelling(d) -> tuple[str, str]:
    """Returns a question about the letters of a word, and its answer."""
    word = d.word().replace(' ', '')[:9].lower()
    kind = d.rng.randrange(3)
    if kind == 0:
        return vary(d.rng, expand(d.rng, d.one(SPELL).format(w=word)), 0.3), f'{word} is spelled {"-".join(word)}.'
    if kind == 1:
        # The letters come first, so that they can be counted.
        return vary(d.rng, expand(d.rng, d.one(LENGTH).format(w=word)), 0.3), f'{"-".join(word)}: {word} has {len(word)} letters.'
    number, verb, at = d.one(ENDS)
    return vary(d.rng, expand(d.rng, d.one(FIRST).format(w=word, n=number, v=verb)), 0.3), f'The {number} letter of {word} is {word[at]}.'

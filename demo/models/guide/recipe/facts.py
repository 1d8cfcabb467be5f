"""Common facts as questions with answers, from text/facts.list, and the spelling of words.

A fact has several answers of one meaning, so that what the model says depends on the temperature and the seed.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

from noise import vary
from topics import expand
from values import DAYS

FILE = Path(__file__).with_name('text') / 'facts.list'


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
NAMED = ('capital', 'country', 'continent', 'language', 'currency')
# A question with a name and one of the words, or with one of the texts, may have an answer among the facts, even where the
# guide's chats say that it is unknown.
NAMES = {a.lower() for relation in RELATIONS if relation.name in NAMED for a, _ in relation.pairs}
WORDS = ('capital', 'country', 'continent', 'language', 'speak', 'spoken', 'currency', 'money', 'where is')
TEXTS = {a.lower() for relation in RELATIONS if relation.name == 'single' for a, _ in relation.pairs} | {
    'how many planets', 'how many days', 'tallest mountain', 'do you spell', 'mona lisa', 'hamlet', 'boiling point', 'opposite of', 'plural of', 'how many legs', 'how many letters'}
# Places that no fact has, and questions about known names that no fact answers.
ABROAD = ('Mongolia Bolivia Laos Chad Latvia Estonia Malta Cyprus Fiji Qatar Oman Yemen Sudan Mali Niger Gabon Panama Haiti Belize Samoa Tonga Bhutan Moldova Georgia Albania Slovenia Slovakia Lithuania Ecuador Paraguay '
          'Guatemala Honduras Zambia Rwanda Uganda Angola Kazakhstan Jordan Lebanon Syria Kuwait Libya Tunisia Algeria').split()
BEYOND = ['who is the president of {a}', 'who is the chancellor of {a}', 'how many people live in {a}', 'what is the population of {a}', 'who rules {a}', 'what is {a} famous for', 'how large is {a}', 'what do people eat in {a}', 'when was {a} founded',
          'who won the war in {a}', 'what is the weather in {a}', 'is {a} rich', 'what is the longest river of {a}', 'who was the first king of {a}', 'what is the tallest building in {a}', 'how far is {a}', 'can I travel to {a}', 'what time is it in {a}']
OTHERS = ['who composed {c}', 'who composed the {n}', 'who wrote {c}', 'who wrote the {n}', 'who painted {c}', 'who painted the {n}', 'who invented the {n}', 'who discovered {c}', 'who was the first {n}', 'who was the first man in {t}', 'how many {n}s does a human have',
          'how many {n}s are in the world', 'what is the symbol of {c}', 'what is the largest {n}', 'what is the longest {n}', 'what is the oldest {n}', 'which star is {c}', 'what do {n}s make', 'what is a young {n} called', 'who is the author of {c}', 'will it rain on {d}', 'what happens on {d}',
          'is it going to snow on {d}', 'what is the opposite of a {n}', 'what sound does a {n} make', 'in which city is the {n}', 'what gas is in {c}', 'who developed {c}', 'who founded {c}', 'how many {n}s are in a {c}', 'what is the color of {c}', 'my {n} is broken', 'my {n} leaks',
          'tell me a story', 'tell me a bedtime story', 'write a poem about {n}s', 'write a limerick about {n}s', 'sing a song']


def fact(d) -> tuple[str, str]:
    """Returns a question and its answer. With `held`, the wording is one that training never has."""
    relation = d.rng.choices(RELATIONS, SIZES)[0]
    a, b = d.one(relation.pairs)
    asked = expand(d.rng, d.one(relation.held_out if d.held else relation.wordings).replace('{a}', a))
    asked = re.sub(r'\ba (?=[aeio])', 'an ', re.sub(r'\ban (?=[^aeio])', 'a ', asked))
    answer = d.one(relation.answers).replace('{a}', a).replace('{b}', b)
    return vary(d.rng, asked, 0.7), answer[0].upper() + answer[1:]


def beyond(d) -> str:
    """Returns a question that looks like one about a fact, but no fact answers it."""
    kind = d.rng.random()
    if kind < 0.35:
        relation = d.one([relation for relation in RELATIONS if relation.name in NAMED])
        asked = expand(d.rng, d.one(relation.wordings).replace('{a}', d.one(ABROAD) if d.chance(0.6) else d.coined().capitalize()))
    elif kind < 0.6:
        asked = d.one(BEYOND).format(a=d.one(d.one([relation for relation in RELATIONS if relation.name in NAMED]).pairs)[0] if d.chance(0.7) else d.one(ABROAD))
    else:
        asked = d.one(OTHERS).format(c=d.coined().capitalize(), n=d.noun(), t=d.place(), d=d.one(DAYS))
    return vary(d.rng, asked, 0.7)


def answers(question: str) -> bool:
    """Returns `True` if a fact may answer the question."""
    low = question.lower()
    return any(text in low for text in TEXTS) or any(word in low for word in WORDS) and any(name in low for name in NAMES)


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

"""WordNet's meanings: the words for each, what it is, sentences that use it, and what it is near to."""
import random
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

PARTS = {'noun': 'n', 'verb': 'v', 'adj': 'a', 'adv': 'r'}
# Parts of speech as keys of senses number them; 5 is an adjective that is like another one.
NUMBERED = {'1': 'n', '2': 'v', '3': 'a', '4': 'r', '5': 'a'}
# Pointers to what is near in meaning, and how often each is followed: kinds and groups, other parts of speech,
# causes, members and parts, fields of knowledge.
NEAR = {'@': 3, '~': 2, '&': 3, '+': 3, '*': 2, '>': 2, '<': 2, '=': 1, '$': 3, '^': 2, '\\': 2,
        '%p': 1, '#p': 1, '%m': 1, ';c': 1}
QUOTED = re.compile(r'"([^"]*)"?')
MARKER = re.compile(r'\((a|p|ip)\)$')
ENDINGS = [('ies', 'y'), ('ied', 'y'), ('ing', ''), ('ing', 'e'), ('ed', ''), ('ed', 'e'), ('es', ''), ('s', ''),
           ('er', ''), ('est', ''), ('er', 'e'), ('est', 'e'), ("'s", '')]


@dataclass(eq=False)
class Meaning:
    words: list[str]
    gloss: str
    examples: list[str]
    # How often it was met in the texts that WordNet counted.
    times: int = 0
    near: list[tuple['Meaning', int]] = field(default_factory=list)


class WordNet:
    def __init__(self, folder: Path):
        self.meanings: list[Meaning] = []
        # The meanings of a word, and how much each of them weighs.
        self.meant: dict[str, list[tuple[Meaning, int]]] = defaultdict(list)
        self.irregular: dict[str, str] = {}
        places: dict[tuple[str, str], Meaning] = {}
        links = []
        for name, part in PARTS.items():
            for line in entries(folder / f'data.{name}'):
                offset, meaning, pointers = parse(line)
                places[part, offset] = meaning
                self.meanings.append(meaning)
                links += [(meaning, *pointer) for pointer in pointers]
            for line in (folder / f'{name}.exc').read_text().splitlines():
                form, lemma, *_ = line.split(' ')
                self.irregular.setdefault(form, lemma)
        for meaning, sign, part, offset in links:
            if sign in NEAR:
                meaning.near.append((places[part, offset], NEAR[sign]))
        self.count(folder, places)

    def count(self, folder: Path, places: dict[tuple[str, str], Meaning]) -> None:
        times = {}
        for line in (folder / 'cntlist.rev').read_text().splitlines():
            key, number, counted = line.split(' ')
            lemma, _, rest = key.partition('%')
            times[lemma, NUMBERED[rest[0]], int(number)] = int(counted)
        for name, part in PARTS.items():
            for line in entries(folder / f'index.{name}'):
                lemma, _, senses, *rest = line.split()
                for number, offset in enumerate(rest[-int(senses):], 1):
                    meaning, counted = places[part, offset], times.get((lemma, part, number), 0)
                    meaning.times += counted
                    # What was never counted is meant now and then.
                    self.meant[tidy(lemma)].append((meaning, 4 * counted + (2 if number == 1 else 1)))

    def lemma(self, word: str) -> str | None:
        """The form under which a word is listed."""
        word = word.lower()
        if word in self.irregular:
            return self.irregular[word]
        if word in self.meant:
            return word
        for ending, instead in ENDINGS:
            if not word.endswith(ending) or len(word) < len(ending) + 3:
                continue
            stem = word[:-len(ending)] + instead
            doubled = not instead and len(stem) > 3 and stem[-1] == stem[-2]
            for form in (stem, stem[:-1]) if doubled else (stem,):
                if form in self.meant:
                    return form
        return None

    def meaning(self, rng: random.Random, word: str) -> Meaning | None:
        """One of a word's meanings, the usual ones more often."""
        found = self.meant.get(self.lemma(word) or '')
        return rng.choices([meaning for meaning, _ in found], [weight for _, weight in found])[0] if found else None


def entries(file: Path) -> list[str]:
    """Without the licence, whose lines begin with spaces."""
    return [line for line in file.read_text().splitlines() if not line.startswith(' ')]


def parse(line: str) -> tuple[str, Meaning, list[tuple[str, str, str]]]:
    """A meaning, its offset and its pointers: sign, part of speech and offset."""
    data, _, gloss = line.partition(' | ')
    fields = data.split(' ')
    count = int(fields[3], 16)
    words = [tidy(word) for word in fields[4:4 + 2 * count:2]]
    what, _, _ = gloss.partition('"')
    examples = [example.strip(' ;') for example in QUOTED.findall(gloss)]
    begin = 5 + 2 * count
    pointers = [fields[at:at + 4] for at in range(begin, begin + 4 * int(fields[begin - 1]), 4)]
    return (fields[0], Meaning(words, what.strip(' ;:'), [text for text in examples if len(text) > 8]),
            [(sign, 'a' if part == 's' else part, offset) for sign, offset, part, _ in pointers])


def tidy(word: str) -> str:
    return MARKER.sub('', word).replace('_', ' ')

"""Pairs of texts that mean the like: from WordNet, manuals, words, sayings, questions and emoji."""
import random
import re
from dataclasses import dataclass
from pathlib import Path

from paraphrase import Paraphrase
from wordnet import Meaning

TEXT = Path(__file__).with_name('text')
GUIDE = Path(__file__).parents[2] / 'guide' / 'recipe' / 'text'
CHOICE = re.compile(r'\(([^()\[\]|]*(?:\|[^()\[\]|]*)+)\)')
OPTION = re.compile(r'\[([^\[\]]*)\]')
SENTENCE = re.compile(r'(?<=[.!?;]) +')

FRAMES = ['{}', '{}', '{}', 'a question about {}', 'something about {}', 'what about {}', 'I need help with {}',
          'it has to do with {}', 'they talked about {}', 'the word is {}', 'we were thinking of {}', 'this is about {}',
          'do you know anything about {}', 'tell me about {}', 'how to deal with {}', 'an article on {}', 'yesterday: {}']

# Words that sentences have besides those that matter.
FILL = ['the', 'a', 'my', 'our', 'this', 'that', 'some', 'his', 'her', 'their', 'is', 'was', 'are', 'has', 'had', 'it', 'I', 'we',
        'you', 'she', 'he', 'they', 'in', 'on', 'at', 'with', 'for', 'of', 'to', 'from', 'by', 'after', 'before', 'and', 'or',
        'because of', 'about', 'there is', 'can', 'will', 'would', 'do', 'did', 'how', 'what', 'when', 'very', 'so', 'again',
        'just', 'also', 'not', 'one', 'two', 'who', 'which', 'cannot', 'should', 'into', 'without', 'please']


@dataclass
class Words:
    topic: str
    alike: list[list[str]]


def words() -> list[Words]:
    found = []
    for line in (TEXT / 'words.txt').read_text().splitlines():
        if line.startswith('# '):
            found.append(Words(line[2:], []))
        else:
            found[-1].alike.append(line.split('|'))
    return found


def bar(text: str) -> list[str]:
    """Cut at bars outside of brackets."""
    parts, depth = [''], 0
    for sign in text:
        depth += (sign in '([') - (sign in ')]')
        if sign == '|' and depth == 0:
            parts.append('')
        else:
            parts[-1] += sign
    return parts


def sayings() -> list[list[str]]:
    return [bar(line) for line in (TEXT / 'sayings.txt').read_text().splitlines()]


@dataclass
class Topic:
    name: str
    wordings: list[str]
    held_out: list[str]


def topics() -> tuple[list[Topic], list[Topic]]:
    """What people ask the guide: topics to learn from, and every fourth one for the measuring."""
    found = []
    for path in sorted(GUIDE.glob('*.txt')):
        for line in path.read_text().splitlines():
            if line.startswith('# '):
                found.append(Topic(line[2:], [], []))
            elif line.startswith('? '):
                found[-1].wordings.append(line[2:])
            elif line.startswith('% '):
                found[-1].held_out.append(line[2:])
    return [t for i, t in enumerate(found) if i % 4], found[::4]


def expand(rng: random.Random, text: str) -> str:
    """One of the texts that a wording with (a|b), [x] and {it} stands for."""
    text = text.replace('{it}', rng.choice(['inorigin', 'inorigin', 'it', 'this', 'the library']))
    while (found := CHOICE.search(text)) or (found := OPTION.search(text)):
        chosen = rng.choice(found[1].split('|')) if found.re is CHOICE or rng.random() < 0.5 else ''
        text = text[:found.start()] + chosen + text[found.end():]
    return re.sub(r'\s+', ' ', text).strip()


def part(rng: random.Random, text: str) -> str:
    """A few of its sentences."""
    sentences = SENTENCE.split(text)
    begin = rng.randrange(len(sentences))
    return ' '.join(sentences[begin:begin + rng.choice([1, 1, 2, 3])])


def wear(rng: random.Random, text: str) -> str:
    """Words left out and slips of the finger, now and then."""
    if rng.random() < 0.6:
        return text
    kept = [word for word in text.split(' ') if rng.random() > 0.1] or [text]
    at = rng.randrange(len(kept))
    word = kept[at]
    if len(word) > 4 and rng.random() < 0.3:
        place = rng.randrange(1, len(word) - 2)
        kept[at] = word[:place] + word[place + 1] + word[place] + word[place + 2:]
    return ' '.join(kept)


def framed(rng: random.Random, words: str) -> str:
    return rng.choice(FRAMES).format(words)


class Lessons:
    """Draws pairs; in a batch hardly two are of one meaning, so that all others are wrong."""

    def __init__(self, rng: random.Random, paraphrase: Paraphrase, manuals: list[tuple[str, list[str]]],
                 signs: list[tuple[str, list[str]]]):
        self.rng, self.paraphrase, self.manuals, self.signs = rng, paraphrase, manuals, signs
        self.words, self.sayings = words(), sayings()
        self.topics, _ = topics()
        self.alike = [(w.topic, group) for w in self.words for group in w.alike]
        several = lambda source: lambda size: rng.sample(source, min(len(source), size))
        # Of each hundred pairs, how many are made in which way of what.
        self.shares = [
            (16, paraphrase.define, paraphrase.known.sample),
            (12, paraphrase.illustrate, paraphrase.shown.sample),
            (6, paraphrase.relate, paraphrase.known.sample),
            (5, self.frame, paraphrase.met.sample),
            (8, self.mix, paraphrase.met.sample),
            (4, paraphrase.halve, several(paraphrase.texts)),
            (12, self.describe, several(manuals)),
            (5, self.mean, several(self.alike)),
            (11, self.compose, several(self.alike)),
            (10, self.say, several(self.sayings)),
            (2, self.say_else, several(self.sayings)),
            (6, self.ask, several(self.topics)),
            (3, self.show, several(signs)),
        ]

    def batch(self, size: int) -> list[tuple[str, str]]:
        rng, pairs = self.rng, []
        for share, draw, source in self.shares:
            for item in source(size * share // 100):
                first, second = draw(item) if rng.random() < 0.5 else draw(item)[::-1]
                pairs.append((wear(rng, first), wear(rng, second)))
        return pairs

    def frame(self, meaning: Meaning) -> tuple[str, str]:
        one, other = self.paraphrase.names(meaning)
        return framed(self.rng, one), framed(self.rng, other)

    def mix(self, meaning: Meaning) -> tuple[str, str]:
        """Two or three of WordNet's meanings among words that say little."""
        others = self.paraphrase.met.sample(self.rng.choice([1, 2, 2]))
        return self.blend([self.paraphrase.names(one) for one in [meaning, *others]])

    def describe(self, item: tuple[str, list[str]]) -> tuple[str, str]:
        """A heading and some of what is below it, or two places below it."""
        rng = self.rng
        heading, paragraphs = item
        other = heading if rng.random() < 0.6 else part(rng, rng.choice(paragraphs))
        return other, part(rng, rng.choice(paragraphs))

    def mean(self, item: tuple[str, list[str]]) -> tuple[str, str]:
        rng = self.rng
        topic, group = item
        one, other = rng.sample(group, 2) if len(group) > 1 else (group[0], topic)
        if rng.random() < 0.08:
            other = topic
        return framed(rng, one), framed(rng, other)

    def compose(self, item: tuple[str, list[str]]) -> tuple[str, str]:
        """The same with words of ours."""
        rng = self.rng
        groups = [item[1]] + [group for _, group in rng.sample(self.alike, rng.choice([1, 2, 2]))]
        return self.blend([rng.sample(group, 2) if len(group) > 1 else group * 2 for group in groups])

    def blend(self, pairs: list[tuple[str, str]]) -> tuple[str, str]:
        """Each meaning in both texts, in other words and another order."""
        return self.fill([one for one, _ in pairs]), self.fill([other for _, other in pairs])

    def fill(self, words: list[str]) -> str:
        rng = self.rng
        rng.shuffle(words)
        return ' '.join(' '.join([*rng.choices(FILL, k=rng.randrange(4)), word]) for word in words)

    def say(self, item: list[str]) -> tuple[str, str]:
        one, other = self.rng.sample(item, 2)
        return expand(self.rng, one), expand(self.rng, other)

    def ask(self, item: Topic) -> tuple[str, str]:
        return self.say(item.wordings)

    def say_else(self, item: list[str]) -> tuple[str, str]:
        one, other = self.say(item)
        return one, self.paraphrase.reword(other, 0.4)

    def show(self, item: tuple[str, list[str]]) -> tuple[str, str]:
        """An emoji and some of its names, or two of them."""
        rng = self.rng
        sign, names = item
        if len(names) > 2 and rng.random() < 0.4:
            one, other = rng.sample(names, 2)
            return framed(rng, one), framed(rng, other)
        some = rng.sample(names, min(len(names), rng.choice([1, 1, 2])))
        name = names[0] if rng.random() < 0.4 else ' '.join(some)
        return rng.choice([sign, sign, sign * 2, f'{rng.choice(["hi", "look", "so", "ok"])} {sign}']), framed(rng, name)

"""The topics: read from text/*.txt, expanded into wordings, and put into general frames."""
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

TEXT = Path(__file__).with_name('text')
CHOICE = re.compile(r'\(([^()\[\]]*\|[^()\[\]]*)\)')
OPTION = re.compile(r'\[([^\[\]]*)\]')
IT = ['inorigin'] * 10 + ['Inorigin', 'InOrigin'] + ['this'] * 3 + ['it'] * 3 + [
    'this project', 'this library', 'this package', 'this tool', 'the package', 'the library']

FRAMES = ['what is {}', 'what are {}', "what's {}", 'explain {}', 'explain {} to me', 'tell me about {}', 'tell me more about {}',
          'what about {}', 'how about {}', 'and {}', '{}', '{}', 'define {}', 'describe {}', 'what do you know about {}',
          'I want to know about {}', 'I have a question about {}', 'can you explain {}', 'could you tell me about {}', 'info on {}',
          'help me with {}', 'help with {}', 'say something about {}', 'I do not understand {}', 'what can you say about {}',
          'talk about {}', 'give me information about {}', 'what should I know about {}', 'how does {} work', 'question about {}',
          'let us talk about {}', 'do you know {}', 'do you know anything about {}', 'I would like to learn about {}',
          'teach me about {}', 'what does {} mean', 'give me details on {}', "I don't get {}", 'something on {}']


@dataclass
class Topic:
    name: str
    subjects: list = field(default_factory=list)
    wordings: list = field(default_factory=list)
    held_out: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    facts: list = field(default_factory=list)

    def right(self, said: str) -> bool:
        return any(fact.lower() in said.lower() for fact in self.facts)


def read() -> list[Topic]:
    topics = []
    for path in sorted(TEXT.glob('*.txt')):
        for line in filter(None, path.read_text().splitlines()):
            mark, rest = line[0], line[2:]
            if mark == '#':
                topics.append(Topic(rest))
                continue
            topic = topics[-1]
            if mark == '@':
                topic.subjects += rest.split(', ')
            elif mark == '!':
                topic.facts += rest.split(' | ')
            else:
                {'?': topic.wordings, '%': topic.held_out, '=': topic.answers}[mark].append(rest)
    for topic in topics:
        assert all(topic.right(a) for a in topic.answers), f'{topic.name}: an answer lacks its fact'
    return topics


def expand(rng: random.Random, text: str) -> str:
    """One of the texts that a wording with (a|b), [x] and {it} stands for."""
    while (found := CHOICE.search(text)) or (found := OPTION.search(text)):
        inner = rng.choice(found[1].split('|')) if found.re is CHOICE else (rng.choice(found[1].split('|')) if rng.random() < 0.5 else '')
        text = text[:found.start()] + inner + text[found.end():]
    text = text.replace('{it}', rng.choice(IT))
    return re.sub(r'\s+', ' ', text).strip()


def ask(rng: random.Random, topic: Topic) -> str:
    if topic.subjects and rng.random() < 0.25:
        frame = rng.choice(FRAMES)
        # How inorigin works is a topic of its own.
        return expand(rng, rng.choice(topic.wordings)) if topic.name == 'what' and 'work' in frame else frame.format(rng.choice(topic.subjects))
    return expand(rng, rng.choice(topic.wordings))

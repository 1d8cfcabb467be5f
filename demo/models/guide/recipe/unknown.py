"""Questions about anything else, in the frames of the topics too, so that the frame alone never decides."""
import random
import re
from pathlib import Path

from memory import CITIES, coined

TEXT = Path(__file__).with_name('text')


def lines(name: str) -> list[str]:
    """The lines of a list; `line * 3` stands for three of them."""
    out = []
    for line in (TEXT / f'{name}.list').read_text().splitlines():
        line, _, times = line.partition(' * ')
        out += [line] * int(times or 1)
    return out


NOUNS = re.split(r',\s+', (TEXT / 'nouns.list').read_text().strip())
PEOPLE = ('the president', 'the king of England', 'Einstein', 'Mozart', 'Napoleon', 'Shakespeare', 'the pope', 'Messi', 'Taylor Swift', 'Elon Musk',
          'Bill Gates', 'my neighbour', 'my boss', 'my mother', 'Obama', 'Picasso', 'the author of Hamlet', 'Julius Caesar')
COUNTRIES = ('France Germany Spain Italy Portugal Japan China India Brazil Canada Mexico Egypt Kenya Norway Sweden Finland Poland Greece Turkey '
             'Russia Ukraine Chile Peru Argentina Australia Iceland Ireland Austria Hungary Vietnam Thailand Korea Morocco Nigeria').split()

FRAMES, FIXED = lines('unknown-frames'), lines('unknown-questions')
ANSWERS = ["I don't know that. I know about inorigin and small sums.", "Sorry, I don't know. I can only talk about inorigin and do small sums."]
FACT = "don't know"
# Words that are never in the training text, for the evaluation.
HELD_NOUNS = ['a kangaroo', 'the moon landing', 'an umbrella', 'basketball', 'a cathedral', 'penicillin', 'a submarine', 'origami', 'the olympic games', 'a violin', 'karate',
              'an avocado', 'the titanic', 'sociology', 'a lighthouse', 'cricket']
HELD_FIXED = ['what is the capital of Denmark', 'who is the tallest man alive', 'bake me a pie', 'how do I repair my roof', 'who was the first man in space',
              'what is the weather like in Chicago', 'name three rivers', 'what should I cook tonight', 'is coffee healthy', 'how many legs has a spider']


def noun(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.7:
        return rng.choice(NOUNS)
    word = coined(rng)
    word = word.lower() if rng.random() < 0.6 else word
    return word if roll < 0.9 else rng.choice(['a ', 'the ', 'my ', '']) + word


def question(rng: random.Random) -> str:
    if rng.random() < 0.35:
        return rng.choice(FIXED).format(c=rng.choice(COUNTRIES), t=rng.choice(CITIES), p=rng.choice(PEOPLE))
    return rng.choice(FRAMES).format(n=noun(rng), m=noun(rng))


def held_out(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(HELD_FIXED)
    return rng.choice(FRAMES).format(n=rng.choice(HELD_NOUNS), m=rng.choice(HELD_NOUNS))

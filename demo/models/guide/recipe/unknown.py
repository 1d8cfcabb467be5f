"""Questions about anything else, in the frames of the topics too, so that the frame alone never decides."""
import random
import re

from values import ADJECTIVES as ANY_ADJECTIVES, CITIES, NAMES, NOUNS as ANY_NOUNS, TEXT, VERBS as ANY_VERBS, Draw


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
ANSWERS = ["I don't know that. I know about inorigin and small sums.", "Sorry, I don't know. I can only talk about inorigin and do small sums.", "I don't know that. I am a very small model.", "Sorry, I don't know that."]
FACT = "don't know"
# Words that are never in the training text, for the evaluation.
HELD_NOUNS = ['a kangaroo', 'the moon landing', 'an umbrella', 'basketball', 'a cathedral', 'penicillin', 'a submarine', 'origami', 'the olympic games', 'a violin', 'karate',
              'an avocado', 'the titanic', 'sociology', 'a lighthouse', 'cricket']
HELD_FIXED = ['what is the capital of Mongolia', 'who is the tallest man alive', 'bake me a pie', 'how do I repair my roof', 'who was the first man in space',
              'what is the weather like in Chicago', 'name three rivers', 'what should I cook tonight', 'is coffee healthy', 'how many eyes has a scallop']


# A thing and what people ask of it, wide enough that no list of subjects is learnt.
WIDE = ['what is {an}', 'how do I {v} {an}', 'how do I {v} the {an}', 'why is the {n} {a}', 'where can I {v} {an}', 'when should I {v} my {n}', 'who {v}s the {n}', 'can you {v} my {n}', 'what is the best {n} in {t}',
        'how many {n}s are in {t}', 'should I {v} the {n} or the {m}', 'is the {n} {a}', 'why are {n}s {a}', 'what does {an} need', 'my {n} is {a}, what should I do', 'what is the {n} of {t}', 'who is the {n} of {t}',
        'does {p} have {an}', 'what {n} does {p} like', 'when did {p} {v} the {n}', 'how {a} is the {n}', 'what makes {an} {a}', 'how long does it take to {v} {an}', 'how much does {an} cost in {t}', 'tell me a story about {an} and {an2}',
        'give me ideas for {an}', 'what happened in {y}', 'who won in {y}', 'what is the {o} largest {n}', 'who was the {o} president', 'what are {k} facts about {n}s', 'write {k} lines about {an}', 'how do you say {n} in {l}', 'translate {n} into {l}',
        'name {k} kinds of {n}', 'list {k} {n}s', 'where was {p} born', 'what is {p} famous for', 'which {n} is {a}', 'explain the {n} of {an2}', 'I need help with my {n}', 'I want to {v} {an}', 'recommend me {an}', 'compare {n} and {m}',
        'is {t} far from here', 'how do I get to {t}', 'what is there to see in {t}', 'which {n} should I {v}', 'do you like {n}s', 'have you ever {v}ed {an}', 'what would happen without {n}s', 'who invented the {n}', 'since when are there {n}s',
        'draw {an}', 'write code that {v}s {an}', 'write a {a} poem about {n}s', 'can I {v} {an} with {an2}', 'why do people {v} {n}s', 'what colour is the {n}', 'how heavy is {an}', 'how old is {p}', 
        'what is the square root of {x}', 'what is {x} percent of {y}', 'is {x} a prime number', 'how many days are {x} hours',
        'the {n} is {a}', 'I saw {an} today', 'I like {n}s that are {a}', 'and the {n}', 'what about {p}', '{c}', '{c} {c2}', 'what is {c}', 'how do I {c} {an}', 'why {c}', 'who is {c}', 'explain {c} to me', 'is {c} better than {c2}', 'can {c} {v}']
LANGUAGES = 'French German Spanish Italian Japanese Chinese Latin Greek Russian Arabic Dutch Polish'.split()
ORDINALS = 'first second third fourth fifth tenth'.split()


def article(word: str) -> str:
    return ('an ' if word[0] in 'aeiou' else 'a ') + word


def noun(d: Draw) -> str:
    if d.held and d.chance(0.5):
        return d.one(HELD_NOUNS)
    roll = d.rng.random()
    if roll < 0.5 and not d.held:
        return d.one(NOUNS)
    word = d.noun() if roll < 0.75 else d.coined().capitalize() if roll < 0.85 else d.coined()
    return d.one([article(word), 'the ' + word, word, 'my ' + word])


def question(d: Draw) -> str:
    roll = d.rng.random()
    if roll < 0.25:
        people = PEOPLE if not d.held else ['the emperor of Rome', 'my landlord', 'Galileo', 'Madonna']
        return d.one(FIXED if not d.held else HELD_FIXED).format(c=d.one(COUNTRIES), t=d.of(CITIES), p=d.one(people))
    if roll < 0.6:
        return d.one(FRAMES).format(n=noun(d), m=noun(d))
    n, m, r = d.noun(), d.noun(), d.rng
    person = d.one([d.name, lambda: d.one(PEOPLE)])()
    return d.one(WIDE).format(n=n, m=m, an=article(n), an2=article(m), v=d.of(ANY_VERBS), a=d.of(ANY_ADJECTIVES), t=d.of(CITIES), p=person, y=r.randint(1200, 2030), x=r.randint(2, 400), y2=r.randint(2, 40), o=d.one(ORDINALS),
                              k=d.one(['three', 'five', 'ten', '3', '5', '10']), l=d.one(LANGUAGES), c=d.coined(), c2=d.coined())

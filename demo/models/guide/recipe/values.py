"""Words and values to fill tools, JSON and facts with: drawn widely, half of them coined, so that copying is learnt.

A word whose checksum says so is held out: training never draws it, the evaluation draws nothing else.
"""
import random
import string
import zlib
from pathlib import Path

TEXT = Path(__file__).with_name('text')


def words(name: str) -> list[str]:
    """The words of text/NAME.list; `a thing` on its own line or many on one, split at commas."""
    text = (TEXT / f'{name}.list').read_text()
    return [w.strip() for w in text.replace('\n', ',').split(',') if w.strip()]


NAMES, CITIES, NOUNS, VERBS, ADJECTIVES = map(words, ('names', 'cities', 'things', 'verbs', 'adjectives'))
ONSETS = 'b br c ch d dr f fl g gr h j k kr l m n p pr qu r s sh st t th tr v w x y z'.split()
VOWELS = 'a e i o u a e i o u ai ea ee io ou'.split()
CODAS = ['', '', '', '', 'l', 'n', 'r', 's', 't', 'm', 'x', 'nd', 'rt', 'k']
DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()
MONTHS = 'January February March April May June July August September October November December'.split()
SMALL = 'zero one two three four five six seven eight nine ten eleven twelve'.split()
ENDINGS = 'txt pdf csv png jpg md json docx zip mp3 py html log'.split()
HOSTS = 'com org net io dev de fr'.split()


def capitalized(text: str, values) -> str:
    """With a capital at its start, but where a value stands there: that one is copied as it is."""
    return text if any(isinstance(v, str) and text.startswith(v) for v in values) else text[:1].upper() + text[1:]


def held_out(word: str) -> bool:
    return zlib.crc32(word.lower().encode()) % 8 == 0


class Draw:
    """A seeded source of words and values; with `held`, only of words that training never sees."""

    def __init__(self, rng: random.Random, held=False):
        self.rng, self.held = rng, held

    def one(self, choices):
        return self.rng.choice(choices)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def of(self, choices):
        """One of the words, on the right side of what is held out."""
        while held_out(word := self.rng.choice(choices)) != self.held:
            pass
        return word

    def noun(self):
        return self.of(NOUNS)

    def coined(self):
        """A word nobody has."""
        r = self.rng
        return ''.join(r.choice(ONSETS) + r.choice(VOWELS) + r.choice(CODAS) for _ in range(r.choice([1, 2, 2, 2, 3])))

    def name(self):
        first = self.of(NAMES) if self.chance(0.5) else self.coined().capitalize()
        return first + (' ' + self.coined().capitalize() if self.chance(0.15) else '')

    def place(self):
        return self.of(CITIES) if self.chance(0.5) else self.coined().capitalize() + (self.one([' City', ' Bay', ' Falls']) if self.chance(0.05) else '')

    def word(self):
        return self.noun() if self.chance(0.6) else self.coined()

    def phrase(self):
        """Two to four words, such as a title or a search."""
        a, n, m, v = self.of(ADJECTIVES), self.noun(), self.word(), self.of(VERBS)
        text = self.one([n, f'{a} {n}', f'{n} {m}', f'{v} {n}', f'{v} the {n}', f'{a} {m}', f'{m} {n}', f'{v} {a} {n}', f'{n} for {m}', f'{a} {n} {m}'])
        return text.title() if self.chance(0.12) else text[0].upper() + text[1:] if self.chance(0.15) else text

    def message(self):
        n, v, a, who = self.noun(), self.of(VERBS), self.of(ADJECTIVES), self.name()
        text = self.one([f'the {n} is {a}', f'I will {v} the {n}', f'please {v} the {n}', f'see you {self.day()}', f'{who} has the {n}', f'do not {v} the {n}', f'we are {a}',
                         f'the {n} is ready', f'{v} the {n} at {self.time()}', f'happy birthday {who}', f'call {who} about the {n}', f'I am late', f'running {self.rng.randint(2, 59)} minutes late',
                         f'{n} and {self.noun()}', f'thank you for the {n}', f'where is the {n}'])
        return text[0].upper() + text[1:] if self.chance(0.4) else text

    def email(self):
        return f'{self.name().split()[0].lower()}{self.one(["", "", ".", "_"])}{self.coined() if self.chance(0.3) else ""}@{self.coined()}.{self.one(HOSTS)}'.replace('.@', '@').replace('_@', '@')

    def url(self):
        return f'https://{self.coined()}.{self.one(HOSTS)}' + (f'/{self.word().replace(" ", "-")}' if self.chance(0.6) else '')

    def file(self):
        path = self.one(['', '', '', '/', '/home/', 'docs/', 'data/', './'])
        return f'{path}{self.word().replace(" ", "_")}{self.one(["", "", "_v2", "-" + str(self.rng.randint(1, 99))])}.{self.one(ENDINGS)}'

    def code(self):
        r, up = self.rng, lambda n: ''.join(self.rng.choices(string.ascii_uppercase, k=n))
        digits = lambda n: ''.join(r.choices('0123456789', k=n))
        return self.one([f'{up(r.randint(1, 3))}-{digits(r.randint(2, 5))}', f'{up(2)}{digits(r.randint(2, 4))}', f'{r.randint(1, 9)}{digits(r.randint(2, 6))}', f'#{r.randint(1, 9)}{digits(r.randint(1, 4))}',
                         f'{self.coined()}-{digits(2)}', f'{self.coined()}{digits(r.randint(1, 3))}', f'{up(1)}{digits(2)}{up(1)}'])

    def phone(self):
        d = lambda n: ''.join(self.rng.choices('0123456789', k=n))
        return self.one([f'+{self.rng.randint(1, 99)} {d(3)} {d(4)}', f'{d(3)}-{d(4)}', f'0{d(6)}', f'555-{d(4)}'])

    def day(self):
        return self.one([*DAYS, 'tomorrow', 'today', 'tonight', 'next ' + self.one(DAYS)]) if self.chance(0.6) else self.date()

    def date(self):
        r = self.rng
        y, m, d = r.randint(1990, 2035), r.randint(1, 12), r.randint(1, 28)
        return self.one([f'{y}-{m:02}-{d:02}', f'{y}-{m:02}-{d:02}', f'{MONTHS[m - 1]} {d}', f'{d} {MONTHS[m - 1]} {y}', f'{m:02}/{d:02}/{y}'])

    def time(self):
        r = self.rng
        return self.one([f'{r.randint(0, 23):02}:{r.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, r.randint(0, 59)]):02}', f'{r.randint(1, 12)} {self.one(["am", "pm"])}', f'{r.randint(1, 12)}{self.one(["am", "pm"])}',
                         f'{r.randint(1, 12)}:{r.choice([15, 30, 45])} {self.one(["am", "pm"])}', 'noon'])

    def integer(self):
        r = self.rng
        return r.choice([r.randint(0, 12), r.randint(0, 99), r.randint(0, 99), r.randint(100, 999), r.randint(1000, 9999), r.randint(10_000, 999_999), 10 * r.randint(1, 50), -r.randint(1, 99)])

    def number(self):
        r = self.rng
        value = r.choice([self.integer(), self.integer(), round(r.uniform(0, 10), 1), round(r.uniform(0, 100), 2), round(r.uniform(0, 1000), 2), round(r.uniform(-90, 90), 3), round(r.uniform(0, 1), 2)])
        return int(value) if value == int(value) else value

    def list_of(self, draw, most=4):
        out = []
        while len(out) < self.rng.randint(2, most):
            out.append(draw())
        return out

"""Pairs of texts of like meaning that WordNet gives."""
import random
import re
from itertools import accumulate

from wordnet import Meaning, WordNet

WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|[^A-Za-z]+")
CONTENT = re.compile(r"[A-Za-z][A-Za-z'-]+")
# Words that say little on their own.
EMPTY = set("""the a an of to in on at with for from by and or is was are were be been has had have it its this that these
those as his her their my our your he she they we you i who whom which what when where how not no do does did can could will
would should may might must into than then there so very some any such one two other especially used usually often being
also more most if but about up out off over under between through during because all each both either someone
something""".split())


class Pool:
    """Meanings to draw from, each as often as it weighs."""

    def __init__(self, rng: random.Random, weighed: list[tuple[Meaning, float]]):
        self.rng = rng
        self.meanings = [meaning for meaning, _ in weighed]
        self.weights = list(accumulate(weight for _, weight in weighed))

    def sample(self, size: int) -> list[Meaning]:
        """None of them twice, so that it may be fewer."""
        return list(dict.fromkeys(self.rng.choices(self.meanings, cum_weights=self.weights, k=size)))


class Paraphrase:
    def __init__(self, rng: random.Random, wordnet: WordNet, held_out: list[Meaning]):
        self.rng, self.wordnet, self.held_out = rng, wordnet, set(held_out)
        self.meanings = [meaning for meaning in wordnet.meanings if meaning not in self.held_out]
        weighed = [(meaning, 0.15 + min(meaning.times, 100) ** 0.5) for meaning in self.meanings]
        self.known = Pool(rng, weighed)
        self.shown = Pool(rng, [(meaning, weight) for meaning, weight in weighed if meaning.examples])
        self.met = Pool(rng, [(meaning, weight) for meaning, weight in weighed
                              if meaning.times and (len(meaning.words) > 1 or meaning.near)])
        self.texts = [meaning.gloss for meaning in self.meanings if meaning.times]
        self.texts += [example for meaning in self.shown.meanings for example in meaning.examples]

    def define(self, meaning: Meaning) -> tuple[str, str]:
        """Some of its words, and what it is or a sentence with it."""
        rng = self.rng
        words = rng.sample(meaning.words, min(len(meaning.words), rng.choice([1, 1, 2, 3])))
        shows = meaning.examples and rng.random() < 0.25
        return ', '.join(words), rng.choice(meaning.examples) if shows else self.gloss(meaning)

    def illustrate(self, meaning: Meaning) -> tuple[str, str]:
        """A sentence, and what is meant in it, another that means it too, or the same in other words."""
        rng, example, roll = self.rng, self.rng.choice(meaning.examples), self.rng.random()
        if roll < 0.3:
            return example, self.gloss(meaning)
        if roll < 0.4 and len(meaning.examples) > 1:
            return tuple(rng.sample(meaning.examples, 2))
        return example, self.reword(example, 0.6)

    def relate(self, meaning: Meaning) -> tuple[str, str]:
        """Two that are near, each by name or by what it is."""
        say = lambda one: self.name(one) if self.rng.random() < 0.5 else self.gloss(one)
        other = self.kin(meaning)
        return say(meaning), self.name(meaning) if other is meaning else say(other)

    def names(self, meaning: Meaning) -> tuple[str, str]:
        """Two names of a meaning, or of it and of what is near."""
        if len(meaning.words) > 1 and self.rng.random() < 0.6:
            return tuple(self.rng.sample(meaning.words, 2))
        return self.name(meaning), self.name(self.kin(meaning))

    def halve(self, text: str) -> tuple[str, str]:
        """Words that are said together: each half is to find the other."""
        words = [word for word in CONTENT.findall(text) if word.lower() not in EMPTY] or [text]
        self.rng.shuffle(words)
        half = max(1, len(words) // 2)
        return ' '.join(words[:half]), ' '.join(words[half:] or words)

    def reword(self, text: str, share: float) -> str:
        """With `share` of its words in others, and a few left out."""
        rng, words = self.rng, []
        for word in WORD.findall(text):
            if not word[0].isalpha():
                words.append(word)
            elif word.lower() in EMPTY:
                words.append(word if rng.random() < 0.7 else ' ')
            elif rng.random() < share:
                words.append(self.instead(word))
            elif rng.random() < 0.9:
                words.append(word)
        return re.sub(r'\s+', ' ', ''.join(words)).strip() or text

    def instead(self, word: str) -> str:
        """Another word for it, that of something near, or what it is."""
        rng, meaning = self.rng, self.wordnet.meaning(self.rng, word)
        if meaning is None or meaning in self.held_out:
            return word
        roll = rng.random()
        if roll < 0.5 and len(meaning.words) > 1:
            return self.name(meaning)
        if roll < 0.85:
            return self.name(self.kin(meaning))
        said = [part for part in CONTENT.findall(meaning.gloss) if part.lower() not in EMPTY]
        return ' '.join(said[:4]) or word

    def name(self, meaning: Meaning) -> str:
        return self.rng.choice(meaning.words)

    def gloss(self, meaning: Meaning) -> str:
        """All of what it is, or a part."""
        return meaning.gloss if self.rng.random() < 0.6 else self.rng.choice(meaning.gloss.split('; '))

    def kin(self, meaning: Meaning) -> Meaning:
        near = [(other, weight) for other, weight in meaning.near if other not in self.held_out]
        return self.rng.choices([other for other, _ in near], [weight for _, weight in near])[0] if near else meaning

"""The training chats: topics, sums, memory and the unknown, one to a dozen turns, with or without a system prompt.

Everything follows from a seed. `shard(k)` gives the k-th batch of chats as token ids with a mask of what the
assistant says; only that is learnt.
"""
import hashlib
import random
from pathlib import Path

import numpy as np

import memory
import sums
import topics as topic_files
import unknown
from noise import finish, vary
from settings import MODEL_DIR, WORK_DIR
from template import pieces, render

TOPICS = topic_files.read()
# What newcomers type first, more often than the rest.
HEAVY = {'hello': 4, 'how are you': 2, 'who are you': 4, 'what': 5, 'what can you do': 4, 'thanks': 2, 'goodbye': 2, 'install': 3,
         'how it works': 2, 'openai sdk': 3, 'anthropic sdk': 3, 'base urls': 2, 'endpoints': 2, 'privacy': 2, 'offline': 2, 'cost': 2,
         'webgpu': 2, 'service worker': 2, 'serve': 2, 'models': 2, 'own model': 2}
WEIGHTS = [HEAVY.get(t.name, 1) for t in TOPICS]
SYSTEMS = ['You are a helpful assistant.'] * 6 + [
    'You are helpful.', 'You are a friendly assistant.', 'Be brief.', 'Answer in one sentence.', 'You are the guide of inorigin.', 'You are a chatbot.',
    'You are a helpful AI assistant. Answer concisely.', 'Answer the questions of the user.', 'Be kind and helpful.', 'You are an assistant in a web page.',
    'You are a tutor.', 'Help the user.', 'You are a concise assistant.', 'Respond politely.', 'You are a support agent for a web shop.',
    'Always answer truthfully. If you do not know, say so.', 'Use simple words.', 'Today is Monday.']
MORE = ['tell me more', 'more', 'go on', 'and', 'more please', 'can you say more', 'anything else', 'what else', 'continue', 'explain more', 'say more about that', 'keep going']
AGAIN = ['can you repeat that', 'say that again', 'repeat', 'what did you say', 'once more', 'please repeat', 'come again', 'say it again', 'what was that', 'repeat that please']
NO_MORE = 'That is all I know about it.'


class Chat:
    """One chat in the making: its messages, and what it knows so far."""

    def __init__(self, rng):
        self.rng, self.known, self.topic, self.said = rng, {}, None, []
        self.messages = [{'role': 'system', 'content': rng.choice(SYSTEMS)}] if rng.random() < 0.3 else []

    def add(self, question, answer, topic=None):
        self.messages += [{'role': 'user', 'content': question}, {'role': 'assistant', 'content': answer}]
        self.said = self.said + [answer] if topic and topic is self.topic else [answer]
        self.topic = topic

    def about_topic(self):
        topic = self.rng.choices(TOPICS, WEIGHTS)[0]
        question = topic_files.ask(self.rng, topic)
        self.add(vary(self.rng, question), self.rng.choice(topic.answers), topic)

    def sum(self):
        question, answer = sums.turn(self.rng)
        # Slips would change the numbers' words.
        question = vary(self.rng, question, 0.5) if question[0].isalpha() and 'have' not in question else finish(self.rng, question, True)
        self.add(question, answer)

    def tell(self):
        text, answer, value = memory.tell(self.rng, self.known)
        text = memory.first_upper(text) if self.rng.random() < 0.6 and not text.startswith(value) else text
        self.add(text + self.rng.choice(['', '', '.', '.', '!']), answer)

    def recall(self):
        question, answer = memory.recall(self.rng, self.known)
        self.add(vary(self.rng, question, 0.6), answer)

    def remember(self):
        (self.tell if self.rng.random() < (0.75 if not self.known else 0.25) else self.recall)()

    def unknown(self):
        self.add(vary(self.rng, unknown.question(self.rng), 0.7), self.rng.choice(unknown.ANSWERS))

    def follow(self):
        if not self.said:
            return self.about_topic()
        if self.rng.random() < 0.4 or not self.topic:
            return self.add(finish(self.rng, self.rng.choice(AGAIN), True), self.said[-1], self.topic)
        rest = [a for a in self.topic.answers if a not in self.said]
        self.add(finish(self.rng, self.rng.choice(MORE), True), rest[0] if rest else NO_MORE, self.topic)


def chat(rng: random.Random, long=False):
    c = Chat(rng)
    turns = rng.randint(8, 24) if long else rng.choices(range(1, 8), [34, 24, 18, 10, 6, 5, 3])[0]
    # Some chats stay with sums or with memory, most mix.
    mix = rng.choices([(58, 16, 9, 13, 4), (2, 96, 1, 1, 0), (20, 5, 70, 5, 0)], [70, 20, 10])[0]
    for _ in range(turns):
        rng.choices([c.about_topic, c.sum, c.remember, c.unknown, c.follow], mix)[0]()
    return c.messages


def encode(tokenizer, messages):
    ids, learn = [], []
    for text, said in pieces(messages):
        part = tokenizer.encode(text)
        ids += part
        learn += [said] * len(part)
    return ids, learn


def digest() -> str:
    """Names what the shards depend on, so that a changed text is never mixed with an old shard."""
    here, names = Path(__file__).parent, ('generate', 'memory', 'noise', 'sums', 'template', 'topics', 'unknown')
    files = [here / f'{n}.py' for n in names] + sorted((here / 'text').iterdir()) + [MODEL_DIR / 'tokenizer.json']
    return hashlib.sha256(b''.join(f.read_bytes() for f in files)).hexdigest()[:8]


def shard(tokenizer, number: int, chats: int = 20_000):
    """Ids and mask of the chats of one shard, cached in the work folder."""
    path = WORK_DIR / f'shard-{digest()}-{number}-{chats}.npz'
    if not path.exists():
        rng = random.Random(f'guide-{number}')
        ids, learn, ends = [], [], []
        for i in range(chats):
            one, mask = encode(tokenizer, chat(rng, long=i % 40 == 0))
            ids += one[:1024]
            learn += mask[:1024]
            ends.append(len(ids))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix('.part.npz')
        np.savez(part, ids=np.array(ids, np.uint16), learn=np.array(learn, bool), ends=np.array(ends))
        part.rename(path)
    data = np.load(path)
    return data['ids'], data['learn'], data['ends']


def texts(count: int, seed='tokenizer'):
    """Plain text for the tokenizer: chats, and coined words and JSON so that it does not fit the topics too tightly."""
    rng = random.Random(seed)
    for _ in range(count):
        yield render(chat(rng))
        word = [memory.coined(rng).lower() for _ in range(4)]
        yield f'{{"type": "function", "function": {{"name": "{word[0]}_{word[1]}", "description": "{" ".join(word)}", "parameters": {{"type": "object", "properties": {{"{word[2]}": {{"type": "string"}}}}}}}}}}'
        yield f'{{"name": "get_{word[0]}", "arguments": {{"{word[1]}": "{word[2]} {word[3]}", "{word[3]}": true}}}}'


if __name__ == '__main__':
    rng = random.Random(0)
    for _ in range(12):
        print(render(chat(rng)))

"""The training chats: topics, sums, memory, the unknown, tools and JSON, one to a dozen turns, thinking or not.

Everything follows from a seed. `talk.py` adds common facts, spelling and everyday tools.
"""
import random

import fill
import memory
import results
import sums
import tools
import topics as topic_files
import unknown
from noise import finish, vary
from template import dump, pieces, render
from toolbox import toolbox
from values import Draw, capitalized

TOPICS = topic_files.read()
# What newcomers type first, more often than the rest.
HEAVY = {'hello': 4, 'how are you': 2, 'who are you': 4, 'what': 5, 'what can you do': 4, 'thanks': 2, 'goodbye': 2, 'install': 3, 'multiplication': 3,
         'how it works': 2, 'openai sdk': 3, 'anthropic sdk': 3, 'base urls': 2, 'endpoints': 2, 'privacy': 2, 'offline': 2, 'cost': 2,
         'webgpu': 2, 'service worker': 2, 'serve': 2, 'models': 2, 'own model': 2}
WEIGHTS = [HEAVY.get(t.name, 1) for t in TOPICS]
SYSTEMS = ['You are a helpful assistant.'] * 8 + [
    'You are helpful.', 'You are a friendly assistant.', 'Be brief.', 'Answer in one sentence.', 'You are the guide of inorigin.', 'You are a chatbot.',
    'You are a helpful AI assistant. Answer concisely.', 'Answer the questions of the user.', 'Be kind and helpful.', 'You are an assistant in a web page.',
    'You are a tutor.', 'Help the user.', 'You are a concise assistant.', 'Respond politely.', 'You are a support agent for a web shop.',
    'Always answer truthfully. If you do not know, say so.', 'Use simple words.', 'Today is Monday.', 'Use the tools if they help.', 'You can call tools.', 'Call a tool when it fits.']
MORE = ['tell me more', 'more', 'go on', 'and', 'more please', 'can you say more', 'anything else', 'what else', 'continue', 'explain more', 'say more about that', 'keep going']
AGAIN = ['can you repeat that', 'say that again', 'repeat', 'what did you say', 'once more', 'please repeat', 'come again', 'say it again', 'what was that', 'repeat that please']
NO_MORE = 'That is all I know about it.'
NO_TOOL = ["I don't know that, and no tool here fits.", "No tool here fits, and I don't know that.", "Sorry, I don't know that. No tool here can do it."]
TIMES = ['what is {a} times {b}', 'what is {a} * {b}', '{a} * {b}', '{a} times {b}', 'what is {a} divided by {b}', '{a} / {b}', 'multiply {a} by {b}', 'divide {a} by {b}', '{a} x {b}', 'what is {a} percent of {b}', 'how much is {a} * {b}',
         'how much is {a} divided by {b}', 'calculate {a} * {b}', 'compute {a} / {b}', 'the product of {a} and {b}', 'square root of {a}', '{a} to the power of {b}', '{a} squared']
AND = [' and ', ', and ', ' and also ', ', then ', '. Then ', '. Also ', ', and then ', ' and then ', '; ', '. And ']


class Chat:
    """One chat in the making: its messages, its tools, and what it knows so far."""

    def __init__(self, rng, thinking=False, tooled=False):
        self.rng, self.d, self.known, self.topic, self.said, self.thinking = rng, Draw(rng), {}, None, [], thinking
        self.box = toolbox(self.d) if tooled else []
        self.tools = [t.schema(self.d) for t in self.box] or None
        self.messages = [{'role': 'system', 'content': self.system()}] if rng.random() < 0.3 else []

    def system(self):
        if self.d.chance(0.7):
            return self.rng.choice(SYSTEMS)
        d = self.d
        return d.one(['You are {a} {n}.', 'You work for {c}, which makes {n}s.', 'You are the assistant of {p}.', 'Help with {n} and {m}.', 'The {n} is {a}. Answer politely.', 'You are {c}, a {a} assistant.', 'The user is called {p}.',
                      'Be {a}. Do not talk about the {n}.', 'Company: {c}. Product: {n}. Tone: {a}.']).format(a=d.of(unknown.ANY_ADJECTIVES), n=d.noun(), m=d.noun(), c=d.coined().capitalize(), p=d.name())

    def answer(self, text, thought):
        self.messages.append({'role': 'assistant', 'content': text, **({'reasoning_content': thought} if self.thinking else {})})

    def add(self, question, answer, thought, topic=None):
        self.messages.append({'role': 'user', 'content': question})
        self.answer(answer, ('No tool fits. ' if self.box else '') + thought)
        self.said = self.said + [answer] if topic and topic is self.topic else [answer]
        self.topic = topic

    def about_topic(self):
        topic = self.rng.choices(TOPICS, WEIGHTS)[0]
        question = topic_files.ask(self.rng, topic)
        if topic.name == 'multiplication' and self.d.chance(0.6):
            question = self.d.one(TIMES).format(a=self.rng.randint(2, 999), b=self.rng.randint(2, 99))
        self.add(vary(self.rng, question), self.rng.choice(topic.answers), f'This is about {topic.name}.', topic)

    def sum(self):
        question, answer, thought, short = sums.turn(self.rng) if self.d.chance(0.68) else sums.comparison(self.rng, topic_files.expand)
        # Slips would change the numbers' words.
        question = vary(self.rng, question, 0.5) if question[0].isalpha() and 'have' not in question else finish(self.rng, question, True)
        self.add(question, short if self.thinking else answer, thought)

    def tell(self):
        text, answer, value, thought = memory.tell(self.d, self.known)
        text = memory.first_upper(text) if self.rng.random() < 0.6 and not text.startswith(value) else text
        self.add(text + self.rng.choice(['', '', '.', '.', '!']), answer, thought)

    def recall(self):
        question, answer, thought = memory.recall(self.d, self.known)
        self.add(vary(self.rng, question, 0.6), answer, thought)

    def remember(self):
        (self.tell if self.rng.random() < (0.75 if not self.known else 0.35) else self.recall)()

    def unknown(self):
        # Something to be done with a tool that is not there.
        if self.d.chance(0.5 if self.box else 0.15):
            other = tools.everyday(self.d) if self.d.chance(0.5) else tools.invented(self.d, self.d.one(self.box) if self.box and self.d.chance(0.4) else None)
            if all(other.subject != t.subject for t in self.box) and not other.name.startswith(('calc', 'comp', 'eval', 'math')):
                text, _ = other.request(self.d)
                return self.add(finish(self.rng, text, False), self.rng.choice(NO_TOOL) if self.box else self.rng.choice(unknown.ANSWERS), 'I do not know this.')
        question = unknown.question(self.d)
        if any(t.subject.split()[0] in question for t in self.box) or any(t.subject in ('get_weather', 'search_web', 'define_word', 'get_recipe', 'get_news', 'translate', 'get_distance', 'get_directions', 'get_time', 'calculator', 'book_flight', 'get_rate', 'get_score') for t in self.box):
            return self.about_topic()
        self.add(vary(self.rng, question, 0.7), self.rng.choice(NO_TOOL) if self.box else self.rng.choice(unknown.ANSWERS), 'I do not know this.')

    def follow(self):
        if not self.said:
            return self.about_topic()
        if self.rng.random() < 0.4 or not self.topic:
            return self.add(finish(self.rng, self.rng.choice(AGAIN), True), self.said[-1], 'The user wants it again.', self.topic)
        rest = [a for a in self.topic.answers if a not in self.said]
        self.add(finish(self.rng, self.rng.choice(MORE), True), rest[0] if rest else NO_MORE, 'The user wants more of it.', self.topic)

    def call(self):
        """One or two calls, mostly what they gave and a sentence about it."""
        asked = []
        for _ in range(2 if self.d.chance(0.22) else 1):
            tool = self.d.one(self.box)
            asked.append((tool, *tool.request(self.d, plain=bool(asked))))
        text = asked[0][1]
        if len(asked) == 2:
            second = asked[1][1]
            text += self.d.one(AND) + second
            both = self.d.chance(0.4) and asked[0][0].twice(self.d)
            if both:
                text, asked = both[0], [(asked[0][0], '', a) for a in both[1]]
        text = capitalized(text, asked[0][2].values()) if self.d.chance(0.6) else text
        last = asked[-1][0].fields and asked[-1][0].fields[-1].kind
        text += self.d.one(['?', '?', '']) if text.lower().startswith(('what', 'how', 'is ', 'can ', 'could', 'will', 'do ', 'where', 'who', 'which', 'would')) else self.d.one(['', '', '.']) if last not in ('message', 'phrase') else ''
        calls = [{'type': 'function', 'function': {'name': t.name, 'arguments': a}} for t, _, a in asked]
        wants = '; '.join(f'{t.name} fits' + ''.join(f'{": " if i == 0 else ", "}{k} = {v if isinstance(v, str) else dump(v)}' for i, (k, v) in enumerate(a.items())) for t, _, a in asked)
        self.messages.append({'role': 'user', 'content': text})
        self.messages.append({'role': 'assistant', 'content': None, 'tool_calls': calls, **({'reasoning_content': ('Two things are asked: ' if len(asked) == 2 else '') + wants + '.'} if self.thinking else {})})
        if self.d.chance(0.15) and not self.thinking:
            # Some clients write their JSON without spaces.
            for c in calls:
                c['function']['arguments'] = dump(c['function']['arguments'])
        if self.d.chance(0.2):
            return False
        said = []
        for t, _, a in asked:
            content, sentence = results.result(self.d, t, a)
            self.messages.append({'role': 'tool', 'content': content})
            said.append(sentence)
        self.answer(' '.join(said), 'The result is here, so I tell it.' if len(said) == 1 else 'Both results are here, so I tell them.')
        self.said, self.topic = [' '.join(said)], None

    def json(self):
        system, text, said, thought = fill.turn(self.d)
        parts = [m['content'] for m in self.messages] + [system] if self.d.chance(0.5) else [system]
        system = '\n\n'.join(p for p in parts if p)
        self.messages = ([{'role': 'system', 'content': system}] if system else []) + [{'role': 'user', 'content': text}]
        self.answer(said, thought)


# Turns of topics, sums, memory, the unknown, follow-ups and calls, in chats of each kind.
MIXES = [((52, 19, 12, 13, 4, 0), 40), ((1, 97, 1, 1, 0, 0), 13), ((18, 5, 72, 5, 0, 0), 15), ((20, 5, 5, 70, 0, 0), 7)]
TOOLED = (9, 5, 5, 26, 1, 54)


def chat(rng: random.Random, long=False):
    """(messages, tools) of one chat."""
    thinking, roll = rng.random() < 0.3, rng.random()
    if roll < 0.13:
        c = Chat(rng, thinking)
        c.json()
        return c.messages, None
    if roll < 0.48:
        c, mix = Chat(rng, thinking, True), TOOLED
        turns = rng.choices(range(1, 7), [30, 28, 20, 12, 6, 4])[0]
    else:
        c, mix = Chat(rng, thinking), rng.choices([m for m, _ in MIXES], [w for _, w in MIXES])[0]
        turns = rng.randint(8, 24) if long else rng.choices(range(1, 8), [34, 24, 18, 10, 6, 5, 3])[0]
    # Of a chat with thoughts only the last turn is learnt: before it they are left out.
    for _ in range(min(turns, 3) if thinking else turns):
        if rng.choices([c.about_topic, c.sum, c.remember, c.unknown, c.follow, c.call], mix)[0]() is False:
            break
    return c.messages, c.tools


def encode(tokenizer, messages, box=None):
    ids, learn = [], []
    for text, said in pieces(messages, box):
        part = tokenizer.encode(text)
        ids += part
        learn += [said] * len(part)
    return ids, learn


def texts(count: int, seed='tokenizer'):
    """Plain text for the tokenizer."""
    rng = random.Random(seed)
    for _ in range(count):
        messages, box = chat(rng)
        yield render(messages, tools=box)


if __name__ == '__main__':
    rng = random.Random(0)
    for _ in range(14):
        messages, box = chat(rng)
        print(render(messages, tools=box))

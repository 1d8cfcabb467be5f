"""The chats of the training: those of generate.py, and chats about common facts, spelling and everyday tools."""
import random

import results
import unknown
from facts import answers, beyond, fact, spelling
from generate import NO_TOOL, SYSTEMS, chat as guide_chat
from tools import everyday
from values import Draw

# Shares of the guide's chats, of facts and spelling, and of everyday tools.
SHARES = {'guide': 60, 'facts': 25, 'tools': 15}
TOOLS = (2, 6)


def everyday_box(d: Draw) -> list:
    """Returns several everyday tools with different subjects."""
    out, wanted = [], d.rng.randint(*TOOLS)
    while len(out) < wanted:
        tool = everyday(d)
        if all(tool.name != t.name and tool.subject != t.subject for t in out):
            out.append(tool)
    return out


def start(d: Draw) -> list:
    return [{'role': 'system', 'content': d.one(SYSTEMS)}] if d.chance(0.3) else []


def said(question: str, answer: str) -> list:
    return [{'role': 'user', 'content': question}, {'role': 'assistant', 'content': answer}]


def facts(d: Draw):
    messages = start(d)
    for _ in range(d.rng.choices([1, 2, 3, 4], [50, 25, 15, 10])[0]):
        roll = d.rng.random()
        messages += said(beyond(d), d.one(unknown.ANSWERS)) if roll < 0.3 else said(*(spelling(d) if roll < 0.45 else fact(d)))
    return messages, None


def tools(d: Draw):
    """Returns a chat with everyday tools. Half of its turns need none; the others have a call, its result and a sentence."""
    box, messages = everyday_box(d), start(d)
    for _ in range(d.rng.choices([1, 2, 3], [50, 30, 20])[0]):
        if d.chance(0.5):
            roll = d.rng.random()
            messages += said(beyond(d), d.one(NO_TOOL)) if roll < 0.4 else said(*(spelling(d) if roll < 0.5 else fact(d)))
            continue
        tool = d.one(box)
        asked, arguments = tool.request(d)
        call = {'type': 'function', 'function': {'name': tool.name, 'arguments': arguments}}
        content, sentence = results.result(d, tool, arguments)
        messages += [{'role': 'user', 'content': asked[:1].upper() + asked[1:] if d.chance(0.6) else asked}, {'role': 'assistant', 'content': None, 'tool_calls': [call]},
                     {'role': 'tool', 'content': content}, {'role': 'assistant', 'content': sentence}]
    return messages, [tool.schema(d) for tool in box]


def contradicts(messages) -> bool:
    """Returns `True` if the guide says that it does not know, about something that the facts may answer."""
    return any("don't know" in (message.get('content') or '') for message in messages) and any(answers(message.get('content') or '') for message in messages if message['role'] == 'user')


def chat(rng: random.Random, long=False):
    """Returns (messages, tools) of one chat."""
    kind = rng.choices(list(SHARES), SHARES.values())[0]
    if kind != 'guide':
        return {'facts': facts, 'tools': tools}[kind](Draw(rng))
    while contradicts((made := guide_chat(rng, long))[0]):
        pass
    return made

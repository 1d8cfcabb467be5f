"""Write cases.json: what Python says about texts, chats and logits. check.mjs compares the JavaScript libraries with it."""
import argparse
import json
import random

import jinja2
import torch

import export
import talk
from model import as_shipped
from settings import ADDED, WORK_DIR
from template import TEMPLATE, dump, render
from tokenizer import Tokenizer

ODD = ['', ' ', '\n', '\r\n\n', ' \t x', 'a  b   c', "I'll we're IT'S don't", '12 + 7 = 19', '１２', '²³¼', 'naïve café', 'ÅÄÖ ß',
       'Привет, мир', '你好，世界', 'こんにちは', 'مرحبا', 'हिन्दी', '👋', '👩‍👩‍👧‍👦 ok 🇫🇷', 'e\u0301', '\u00a0x', 'a\u200bb', '\u2028', '…—“q”',
       'foo_bar(baz);\n\n  return {"a": [1, 2]}', 'https://example.com/v1/models?x=1', '\x00\x07', '\U0001f600' * 5, *ADDED]


def strings(rng, count):
    """Odd texts, mixed and joined at random."""
    alphabet = 'abcdefghij klmnop qrstu\n\tVWXYZ0123456789.,!?\'"()[]{}<>|/_-+=:;é ñ 中 я 🙂'
    out = list(ODD)
    while len(out) < count:
        parts = [rng.choice(ODD) if rng.random() < 0.4 else ''.join(rng.choices(alphabet, k=rng.randint(1, 20)))
                 for _ in range(rng.randint(1, 5))]
        out.append(rng.choice(['', ' ', '\n']).join(parts))
    return out


def chats():
    user, said = lambda t: {'role': 'user', 'content': t}, lambda t: {'role': 'assistant', 'content': t}
    tool = {'type': 'function', 'function': {'name': 'weather', 'description': 'Tells "the" weather in é.', 'parameters': {
        'type': 'object', 'properties': {'city': {'type': 'string', 'enum': ['Paris', "L'Aquila"]}, 'days': {'type': 'integer'}},
        'required': ['city']}}}
    call = lambda **a: {'type': 'function', 'id': 'c1', 'function': {'name': 'weather', 'arguments': a}}
    text = {'function': {'name': 'weather', 'arguments': '{"city": "Paris"}'}}
    system = {'role': 'system', 'content': 'Be brief.'}
    result = {'role': 'tool', 'content': '{"sky": "blue"}', 'tool_call_id': 'c1'}
    thinking = {'role': 'assistant', 'content': 'Four.', 'reasoning_content': 'Two and two.'}
    asks = [user('Weather?'), {'role': 'assistant', 'content': None, 'tool_calls': [call(city='Paris', days=2), text]}, result, result]
    plain = [[user('Hello')], [system, user('Hi'), said('Hello!'), user('2 + 2?')], [user('a'), thinking, user('b'), thinking],
             [user(' <b>&amp;</b>\n"quoted" ')], asks, [system, *asks, said('Blue.'), user('Thanks')]]
    for messages in plain:
        for tools in (None, [tool], [tool, tool]):
            for options in ({}, {'add_generation_prompt': True}, {'add_generation_prompt': True, 'enable_thinking': True}):
                yield {'messages': messages, 'tools': tools, **options}
    odd = {'items': {'type': 'array', 'items': {'type': 'object', 'properties': {'a': {'type': 'number'}}}}, 'keys': {'type': ['string', 'null']}, 'any': True, 'list': {'type': 'array', 'items': {'type': 'string'}}}
    yield {'messages': asks, 'tools': [{'type': 'function', 'function': {'name': 'odd', 'parameters': {'type': 'object', 'properties': odd}}}, {'type': 'function', 'function': {'name': 'bare'}}]}
    rng = random.Random(2)
    for _ in range(60):
        messages, tools = talk.chat(rng)
        yield {'messages': messages, 'tools': tools, 'add_generation_prompt': True, 'enable_thinking': rng.random() < 0.5}


def main(checkpoint):
    tk, rng = Tokenizer.load(), random.Random(1)
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters['tojson'] = dump
    template = env.from_string(TEMPLATE)
    rendered = []
    for chat in chats():
        assert render(**chat) == template.render(**chat), f'Python and Jinja disagree:\n{render(**chat)}\n---\n{template.render(**chat)}'
        rendered.append({**chat, 'text': render(**chat)})
    texts = strings(rng, 3000) + [c['text'] for c in rendered]
    for t in texts:
        assert tk.decode(tk.encode(t)) == t, repr(t)
    model = as_shipped(export.load(checkpoint))
    ids = tk.encode(render([{'role': 'user', 'content': 'What is inorigin?'}], add_generation_prompt=True))
    with torch.no_grad():
        logits = model.logits(model.hidden(torch.tensor([ids]))[0])[0]
        greedy = list(ids)
        for _ in range(24):
            greedy.append(int(model.logits(model.hidden(torch.tensor([greedy]))[0][0, -1]).argmax()))
    cases = {'strings': [{'text': t, 'ids': tk.encode(t)} for t in texts], 'chats': rendered,
             'model': {'ids': ids, 'logits': logits.tolist(), 'greedy': greedy[len(ids):]}}
    WORK_DIR.mkdir(parents=True, exist_ok=True)
    (WORK_DIR / 'cases.json').write_text(json.dumps(cases))
    print(f'{len(texts)} strings, {len(rendered)} chats: Python agrees with itself. Now: node check.mjs {WORK_DIR / "cases.json"}')


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', default=str(WORK_DIR / 'checkpoint.pt'))
    main(args.parse_args().checkpoint)

"""Writes ../evaluation/templates.json: held-out names, tools and wordings in the style of the training text.

A case is what to send and what to want of the answer; run.mjs in the same folder sends it through the public endpoint,
evaluate.py asks a checkpoint. free.json, written by hand, has cases of the same form.
"""
import json
import random
from pathlib import Path

import facts
import fill
import generate
import memory
import results
import sums
import tools
import topics
import unknown
from noise import vary
from toolbox import toolbox
from values import Draw, capitalized

FOLDER = Path(__file__).resolve().parent.parent / 'evaluation'
KNOWN = ["don't know"]
# Facts of each relation.
FACTS = 5


def case(group, say, want, **more):
    return {'group': group, 'say': say, 'want': want, **{k: v for k, v in more.items() if v}}


def topic_cases(rng):
    for t in generate.TOPICS:
        for text in t.held_out:
            yield case('topics', vary(rng, text) if rng.random() < 0.3 else text[:1].upper() + text[1:] + '?', {'any': t.facts})


def sum_cases(rng):
    for i in range(120):
        top = 999 if i % 3 else 99
        while True:
            op, a, b = rng.choice('+-'), rng.randint(0, top), rng.randint(0, top)
            if op == '-' and a < b and i % 8:
                a, b = b, a
            if sums.held_out(op, a, b):
                break
        yield case(f'sums {"with" if i % 2 else "without"} thinking', sums.question(rng, op, a, b), {'number': str(sums.result(op, a, b))}, think=i % 2 == 1)
    for i in range(40):
        question, _, _, said = sums.comparison(rng, topics.expand)
        yield case('comparisons', question + '?', {'any': [said]}, think=i % 2 == 1)


def memory_cases(rng, d):
    for i in range(80):
        known, turns = {}, []
        told, answer, value, _ = memory.tell(d, known)
        turns += [(told if told.startswith(value) else memory.first_upper(told)) + '.', answer]
        for _ in range(i % 4):
            if rng.random() < 0.7:
                topic = rng.choice(generate.TOPICS)
                turns += [topics.ask(rng, topic) + '?', topic.answers[0]]
            else:
                more, answer, _, _ = memory.tell(d, other := {})
                if not set(other) & set(known):
                    turns += [more, answer]
        question, _, _ = memory.recall(d, known, next(iter(known)))
        yield case('memory', turns + [memory.first_upper(question) + '?'], {'any': [value]})


def unknown_cases(rng, d):
    for _ in range(100):
        question = vary(rng, unknown.question(d), 0.5)
        if not facts.answers(question):
            yield case('unknown', question, {'any': KNOWN})


def fact_cases(rng):
    """Yields facts in the wordings that are held out, and the spelling of words."""
    for relation in facts.RELATIONS:
        for a, b in rng.sample(relation.pairs, min(FACTS, len(relation.pairs))):
            asked = topics.expand(rng, relation.held_out[0].replace('{a}', a))
            yield case('facts', asked[0].upper() + asked[1:] + '?', {'any': [b]})
    d = Draw(rng, held=True)
    for _ in range(FACTS):
        asked, answer = facts.spelling(d)
        yield case('facts', asked, {'any': [answer]})


def asked(d, box, count):
    parts = [(t, *t.request(d, plain=i > 0)) for i, t in enumerate([d.one(box) for _ in range(count)])]
    text = d.one(generate.AND).join(p[1] for p in parts)
    return capitalized(text, parts[0][2].values()), [{'name': t.name, 'arguments': a} for t, _, a in parts]


def tool_cases(d):
    for i in range(120):
        box = toolbox(d)
        say, calls = asked(d, box, 1)
        yield case('tools: one call', say, {'calls': calls}, tools=[t.schema(d)['function'] for t in box], think=i % 4 == 3)
    for i in range(40):
        box = toolbox(d)
        say, calls = asked(d, box, 2)
        yield case('tools: two calls', say, {'calls': calls}, tools=[t.schema(d)['function'] for t in box], think=i % 4 == 3)
    for i in range(60):
        box = toolbox(d)
        schemas = [t.schema(d)['function'] for t in box]
        if i % 3 == 0:
            topic = d.one(generate.TOPICS)
            yield case('tools: none fits', topic.held_out[0] + '?', {'direct': True, 'any': topic.facts}, tools=schemas)
        else:
            while (other := tools.everyday(d) if i % 3 == 1 else tools.invented(d)).subject in [t.subject for t in box]:
                pass
            yield case('tools: none fits', other.request(d)[0], {'direct': True, 'any': KNOWN}, tools=schemas)
    for i in range(60):
        tool = tools.everyday(d) if i % 2 else tools.invented(d)
        say, arguments = tool.request(d)
        content, sentence = results.result(d, tool, arguments)
        yield case('tools: results', say, {'direct': True, 'all': values_of(content, sentence)}, tools=[tool.schema(d)['function']], called=[{'name': tool.name, 'arguments': arguments, 'result': content}])


def values_of(content, sentence):
    """The values of a result that the sentence has to carry; numbers and texts, not booleans."""
    try:
        value = json.loads(content)
    except ValueError:
        return [content.removeprefix('Error: ')]
    flat = lambda v: [x for y in (v.values() if isinstance(v, dict) else v) for x in flat(y)] if isinstance(v, (dict, list)) else [str(v)] if not isinstance(v, bool) else []
    return [v for v in flat(value) if v in sentence]


def json_cases(d):
    for i in range(80):
        while (turn := fill.turn(d))[0] == '' or '\n' in turn[0] and turn[0].startswith('Answer with a JSON object.\n'):
            pass
        system, say, said, _ = turn
        schema = system[system.index('{'):system.rindex('}') + 1] if '{' in system else ''
        yield case('JSON', say, {'json': json.loads(said)}, **({'schema': json.loads(schema)} if schema else {'json': True}))


def main():
    rng = random.Random('evaluation')
    d = Draw(rng, held=True)
    cases = [*topic_cases(rng), *sum_cases(rng), *memory_cases(rng, d), *unknown_cases(rng, d), *tool_cases(d), *json_cases(d), *fact_cases(rng)]
    FOLDER.mkdir(exist_ok=True)
    lines = ',\n'.join('  ' + json.dumps(c, ensure_ascii=False) for c in cases)
    (FOLDER / 'templates.json').write_text(f'{{\n "tools": {{}},\n "cases": [\n{lines}\n ]\n}}\n')
    print(f'templates.json: {len(cases)} cases')


if __name__ == '__main__':
    main()

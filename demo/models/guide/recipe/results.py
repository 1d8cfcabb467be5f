"""What a called tool gives, and the sentence that carries its values."""
import json

from tools import ENUMS, FIELDS, Tool, spaced
from values import Draw

OK = ['ok', 'success', 'done', 'created', 'sent', 'confirmed', 'completed', 'accepted', 'queued', 'saved', 'booked']
ERRORS = ['not found', 'permission denied', 'timeout', 'no connection', 'invalid input', 'the service is down', 'too many requests', 'not allowed', 'already exists', 'out of stock']
UNITS = ['', '', '', ' km', ' USD', ' EUR', ' kg', ' degrees', ' %', ' minutes', ' points', ' m', ' °C', ' hours', ' days']
SKIES = 'sunny cloudy rainy windy snowy clear foggy stormy'.split()
LISTS = 'results items names files matches hits options entries users products'.split()


def scalar(d: Draw, key=''):
    """A value of some kind; (JSON value)."""
    roll = d.rng.random()
    if roll < 0.4:
        return d.number()
    if roll < 0.5:
        return d.chance(0.5)
    if roll < 0.6:
        return d.one(d.one(ENUMS))
    return d.one([d.name, d.place, d.word, d.phrase, d.code, d.date, d.time, d.email, d.message, lambda: f'{d.number()}{d.one(UNITS)}', d.noun, lambda: d.one(SKIES)])()


def said(value) -> str:
    if value is True or value is False:
        return 'yes' if value else 'no'
    if value is None:
        return 'unknown'
    if isinstance(value, list):
        return joined([said(v) for v in value])
    if isinstance(value, dict):
        return joined([f'{spaced(k)} {said(v)}' for k, v in value.items()])
    return str(value)


def joined(parts) -> str:
    return parts[0] if len(parts) == 1 else ', '.join(parts[:-1]) + ' and ' + parts[-1]


def key(d: Draw, taken) -> str:
    while True:
        names, _ = d.one(FIELDS)
        name = d.one(names) if d.chance(0.35) else d.one(['status', 'condition', 'temperature', 'price', 'total', 'result', 'id', 'name', 'answer', 'score', 'available', 'distance', 'balance', 'temp']) if d.chance(0.3) \
            else d.word().replace(' ', '_') + (d.one(['_id', '_count', '_name', '_km', '_c']) if d.chance(0.1) else '')
        if name not in taken:
            taken.add(name)
            return name


def result(d: Draw, tool: Tool | None = None, arguments=None):
    """(what the tool message says, the sentence about it)"""
    roll = d.rng.random()
    taken = set()
    if roll < 0.08:
        value = d.one([lambda: f'{d.number()}{d.one(UNITS)}', d.phrase, d.message, d.date, d.name, lambda: str(d.integer())])()
        return (json.dumps(value) if d.chance(0.3) else value), f'The result is {value}.'
    if roll < 0.15:
        reason = d.one(ERRORS) if d.chance(0.7) else d.phrase()
        told = f'Error: {reason}' if d.chance(0.4) else dumped(d, {d.one(['error', 'error', 'failure']): reason})
        return told, f'That did not work: {reason}.'
    if roll < 0.2:
        name = d.one(LISTS) if d.chance(0.6) else d.noun().replace(' ', '_') + 's'
        values = d.list_of(d.one([d.word, d.name, d.phrase, d.place, d.code]))
        return dumped(d, {name: values} if d.chance(0.7) else values), f'I found {len(values)}: {joined(values)}.'
    if roll < 0.23:
        name = d.one(LISTS)
        return dumped(d, d.one([{name: []}, []])), 'Nothing was found.'
    if roll < 0.3:
        keys = [key(d, taken) for _ in range(2)]
        rows = [{k: v for k, v in zip(keys, (d.word(), d.number()))} for _ in range(d.rng.randint(2, 3))]
        return dumped(d, rows if d.chance(0.5) else {d.one(LISTS): rows}), f'I found {len(rows)}: ' + '; '.join(', '.join(f'{spaced(k)} {v}' for k, v in r.items()) for r in rows) + '.'
    body = {}
    if arguments and d.chance(0.35):
        # Tools often repeat what they were asked.
        k = d.one(list(arguments))
        body[k] = arguments[k]
        taken.add(k)
    done = d.chance(0.2)
    if done:
        taken.add('status')
        body |= {'status': d.one(OK)} if d.chance(0.6) else {d.one(['success', 'ok', 'done']): True}
    for _ in range(d.rng.choices([1, 2, 3, 4], [34, 36, 20, 10])[0] - bool(body and d.chance(0.4))):
        body[key(d, taken)] = scalar(d)
    if not body:
        body[key(d, taken)] = scalar(d)
    if d.chance(0.08):
        k = key(d, taken)
        body[k] = {key(d, taken): scalar(d), key(d, taken): scalar(d)}
    return dumped(d, body), sentence(body, done)


def sentence(body: dict, done=False) -> str:
    """The <key> is <value>, ... Yes and no for booleans."""
    parts = [f'the {spaced(k)} is {said(v)}' for k, v in body.items() if not (done and v is True and k in ('success', 'ok', 'done'))]
    if not parts:
        return 'Done.'
    text = joined(parts)
    return f'Done: {text}.' if done else text[0].upper() + text[1:] + '.'


def dumped(d: Draw, value) -> str:
    roll = d.rng.random()
    if roll < 0.3:
        return json.dumps(value, ensure_ascii=False, separators=(',', ':'))
    if roll < 0.36:
        return json.dumps(value, ensure_ascii=False, indent=2)
    return json.dumps(value, ensure_ascii=False)

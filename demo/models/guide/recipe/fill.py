"""JSON objects to fill from a sentence: the system part gives the schema or asks for JSON, the user gives the sentence."""
import json

from template import dump
from tools import RECORDS, everyday, invented, spaced
from values import Draw, capitalized

# The first of each is what inorigin says for a response_format; the others are what people write themselves.
WITH_SCHEMA = ['Answer in JSON, by this schema: {}'] * 12 + ['Answer with JSON that matches this schema:\n{}', 'Answer with a JSON object that follows this JSON Schema:\n{}', 'Respond only with JSON that conforms to this schema:\n{}',
               'Reply in JSON. The schema:\n{}', 'Return JSON matching the schema below and nothing else.\n{}', 'Answer only with JSON that matches this JSON Schema: {}', 'JSON schema: {}',
               'Your answer must be a JSON value that is valid against this JSON Schema:\n{}', 'The answer must be JSON of this schema:\n{}\nWrite nothing else.', 'Here is a JSON schema:\n{}\nAnswer with JSON that fits it.',
               '# Response format\nAnswer with JSON that follows this schema:\n{}', 'Output format: JSON.\n{}', 'Answer in JSON, as this schema says, without any other text:\n{}', 'Extract the data as JSON of this schema:\n{}',
               'You must answer with a single JSON object that validates against the following JSON Schema.\n```json\n{}\n```', 'Write the answer as JSON which this JSON Schema accepts:\n{}']
ANY_OBJECT = ['Answer with a JSON object.'] * 8 + ['Answer in JSON.', 'Answer with a JSON object.', 'Answer only with a JSON object.', 'Respond in JSON.', 'Answer with JSON.', 'Reply with a JSON object and nothing else.', 'Your answer must be a JSON object.', 'Write the answer as a JSON object, without other text.',
              'Return a valid JSON object.', 'The answer must be one JSON object.', 'Output format: JSON object.', '# Response format\nAnswer with a JSON object.', 'Answer with one JSON object and write nothing else.']
BEFORE = ['', '', '', '', 'Extract: ', 'Fill it in: ', 'Make JSON of this: ', 'Text: ', 'Here is the data: ', 'Please extract the data: ', 'Turn this into JSON: ', 'Read this: ', 'As JSON: ', 'Give me the JSON for: ', 'Extract the data from this sentence: ', 'Parse this: ']
KEYS = ['Make JSON with {k}: {t}', 'JSON with the keys {k}: {t}', 'Give me {k} as JSON: {t}', '{t}. Give {k} as JSON', 'Extract {k}: {t}', 'As JSON with {k}: {t}', 'Write {k} in JSON: {t}', 'Keys: {k}. Text: {t}', '{t}. Return JSON with {k}', 'Fields {k}. {t}',
        'Return a JSON object with {k} from this: {t}', 'I need a JSON object with the fields {k}. {t}']


def joined_keys(d: Draw, keys) -> str:
    keys = [f'"{k}"' for k in keys] if d.chance(0.2) else list(keys)
    return keys[0] if len(keys) == 1 else ', '.join(keys[:-1]) + d.one([' and ', ', ']) + keys[-1]


def record(d: Draw):
    """(sentence, values, tool that describes them)"""
    if d.chance(0.5):
        tool = everyday(d, RECORDS)
        text, values = tool.request(d, plain=True)
        return text, values, tool
    while not (tool := invented(d)).fields:
        pass
    order, parts, values = list(tool.fields), [], {}
    d.rng.shuffle(order)
    for f in order:
        words, values[f.name] = f.fragment(d, [x.kind for x in order].count(f.kind) == 1)
        parts.append(words)
    opening = d.one(['', '', f'{d.one(["the", "a", "my", "this"])} {tool.subject}{d.one([" ", ", ", ": ", " has "])}'])
    return opening + d.one([', ', ', ', ' and ', ', and ', '; ']).join(parts), {f.name: values[f.name] for f in tool.fields}, tool


def turn(d: Draw):
    """(system text, user text, JSON text, thought)"""
    text, values, tool = record(d)
    thought = 'The values: ' + ', '.join(f'{k} = {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}' for k, v in values.items()) + '.'
    if d.chance(0.6):
        text = capitalized(text, values.values())
    if d.chance(0.25):
        asked = d.one(KEYS).format(k=joined_keys(d, values), t=text) + d.one(['', '.'])
        # Where the user speaks of JSON, nothing else does.
        return '' if 'JSON' in asked and d.chance(0.6) else d.one(ANY_OBJECT), asked, dump(values), thought
    schema = tool.schema(d)['function']['parameters']
    if d.chance(0.08):
        schema = {'type': 'object', 'properties': {(inner := d.noun().replace(' ', '_')): schema}, 'required': [inner]}
        values = {inner: values}
    if d.chance(0.15):
        schema = {'title': spaced(tool.subject).title(), **schema}
    if d.chance(0.1):
        schema = {'$schema': 'http://json-schema.org/draft-07/schema#', **schema}
    written = json.dumps(schema, separators=(',', ':'), ensure_ascii=False) if d.chance(0.65) else json.dumps(schema, indent=2, ensure_ascii=False) if d.chance(0.08) else dump(schema)
    system = d.one(WITH_SCHEMA).replace('{}', written) if d.chance(0.85) else d.one(ANY_OBJECT) + '\n' + written
    return system, d.one(BEFORE) + text + d.one(['', '', '.', '.']), dump(values), thought

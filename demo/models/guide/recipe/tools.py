"""Tools and requests for them: fifty everyday ones from text/tools.list, and any number of others made of a verb, a noun
and some parameters, or of words nobody has. Every request comes with the arguments it asks for.
"""
import re
from dataclasses import dataclass

from noise import slip
from topics import expand
from values import SMALL, TEXT, Draw

# Verbs of one meaning: a tool is named with one of them and asked for with another.
GROUPS = [g.split(', ') for g in (
    'create, make, add, set up, build, open', 'delete, remove, erase, get rid of, drop', 'update, change, edit, modify, adjust', 'send, mail, deliver, transmit',
    'get, fetch, show, find, look up, check, tell me, read', 'cancel, call off, abort', 'list, show all, enumerate', 'book, reserve, arrange', 'start, begin, launch, run, turn on',
    'stop, end, halt, turn off, shut down', 'count, number, tally', 'sort, order, arrange', 'print, put on paper', 'share, pass on, publish, post', 'rename, give a new name to',
    'copy, duplicate, clone', 'move, shift, transfer', 'repair, fix, mend', 'clean, wash, tidy', 'paint, color', 'buy, purchase, get me', 'sell, offer', 'rate, score, judge',
    'archive, store away, put away', 'restore, bring back, recover', 'lock, close, secure', 'unlock, open up, release', 'translate, put into another language', 'measure, gauge', 'test, try, examine',
    'approve, accept, confirm', 'reject, refuse, decline', 'assign, hand over', 'schedule, plan, set a date for', 'track, follow, trace', 'upload, put online', 'download, save, load down', 'compare, match',
    'charge, load', 'scan, inspect', 'feed, give food to', 'water, irrigate', 'fold, bend', 'summarize, sum up', 'invite, ask over', 'block, ban', 'rotate, turn, spin', 'convert, transform')]
ASKING = GROUPS[4]
IMPERATIVE = {v.split()[0] for g in GROUPS for v in g} | set('put play set wake turn switch search look google order log water rent hire call dial navigate convert exchange calculate remind schedule write text message'.split())
BOOLEANS = ('urgent public private notify verbose recursive express shuffle loop silent dry_run overwrite include_images compressed encrypted confirmed fragile insured verified '
            'permanent hidden pinned anonymous archived bold fast strict sorted gift visible animated').split()
FIELDS = [(names.split('|'), kind) for names, kind in (line.rsplit(' ', 1) for line in '''city|location|place|town|destination place
name|username|customer|person|owner|author|recipient|client name
title|subject|label|topic|heading phrase
message|text|body|note|comment|content message
query|keyword|search_term phrase
amount|price|budget|total|cost|value num
count|quantity|limit|number|size|max_items int
width|height|length|depth|weight|radius num
date|day|due_date|start_date|deadline day
time|start_time|hour|at time
email|mail|contact_email email
url|link|website|page url
file|path|filename|source|target file
id|order_id|ticket_id|user_id|code|reference|key code
phone|phone_number phone
minutes|duration|seconds|hours|timeout int
percent|level|volume|brightness|speed int
tags|labels|words|items list'''.splitlines())]
ENUMS = [e.split() for e in ('low medium high', 'low normal high urgent', 'small medium large', 'red green blue', 'asc desc', 'json csv xml', 'open closed pending', 'daily weekly monthly', 'car train bus bike',
                             'celsius fahrenheit', 'km miles', 'draft published archived', 'easy normal hard', 'north south east west', 'email sms push', 'todo in_progress done', 'EUR USD GBP', 'en de fr es',
                             'morning noon evening', 'soft medium hard', 'gold silver bronze', 'private team public', 'png jpg webp', 'left right center', 'day week month year', 'fast balanced slow')]
ENUM_NAMES = 'priority size color order format status interval mode unit state difficulty direction channel currency language category type kind style quality period'.split()
TEXTS = ('phrase', 'message', 'title')
NATURAL = {'place': ['in {}', 'for {}', 'from {}'], 'name': ['for {}', 'of {}', 'to {}'], 'day': ['on {}', 'for {}'], 'time': ['at {}'], 'phrase': ['called {}', 'about {}', 'named {}', '{}'],
           'title': ['called {}', '{}'], 'message': ['saying {}', 'with the text {}', 'that says {}'], 'email': ['to {}', 'for {}'], 'url': ['from {}', 'at {}'], 'file': ['{}', 'from {}'],
           'code': ['{}', 'number {}', 'with id {}'], 'phone': ['for {}', '{}'], 'num': ['of {}', 'with {}'], 'int': ['with {}', 'of {}']}
NAMED = ['with {w} {v}', '{w} {v}', '{w}: {v}', 'with the {w} {v}', 'the {w} is {v}', 'set {w} to {v}', '{w} = {v}', 'using {w} {v}', 'and {w} {v}', 'with {v} as {w}', '{v} as the {w}', 'where the {w} is {v}', 'its {w} is {v}']
YES = ['with {w}', '{w}', '{w}: yes', 'turn {w} on', 'set {w} to true', 'enable {w}', '{w} = true', 'and make it {w}', '{w} on', 'it is {w}', '{w} is true', 'with {w} on', 'it should be {w}']
NO = ['without {w}', 'not {w}', '{w}: no', 'turn {w} off', 'set {w} to false', 'disable {w}', '{w} = false', 'but not {w}', '{w} off', 'it is not {w}', '{w} is false', 'no {w}', 'it should not be {w}']
POLITE = ['please {}', 'can you {}', 'could you {} please', 'could you {}', 'I want to {}', 'I need to {}', 'I would like to {}', '{} for me', 'now {}', 'would you {}', 'help me {}', 'I want you to {}', '{} please', "I'd like to {}",
          'ok, {}', 'hey, {}', 'you can {}', 'go and {}', 'let us {}', 'next, {}', 'we must {}', 'hi, {}', 'time to {}']


def spaced(name: str) -> str:
    return re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', name).replace('_', ' ').replace('-', ' ').lower()


def styled(d: Draw, name: str) -> str:
    """get_weather, getWeather, get-weather ..."""
    parts = name.replace(' ', '_').split('_')
    roll = d.rng.random()
    if roll < 0.7 or len(parts) == 1 and roll < 0.9:
        return '_'.join(parts)
    camel = ''.join(p.capitalize() for p in parts)
    return camel[0].lower() + camel[1:] if roll < 0.85 else '-'.join(parts) if roll < 0.93 else camel


@dataclass
class Field:
    name: str
    kind: str
    options: list
    required: bool
    description: str = ''
    fragments: list = None

    def schema(self, d: Draw) -> dict:
        type = {'int': 'integer', 'num': 'number', 'bool': 'boolean', 'list': 'array'}.get(self.kind, 'string')
        out = {'type': type}
        if self.kind == 'list':
            out['items'] = {'type': 'string'}
        if self.kind == 'enum':
            out['enum'] = self.options
        if self.description:
            out['description'] = self.description
        return out

    def value(self, d: Draw):
        """(as the user says it, as JSON)"""
        if self.kind == 'enum':
            value = d.one(self.options)
            said = value.replace('_', ' ')
            return (said if d.chance(0.85) else d.one([said.lower(), said.upper(), said.capitalize()])), value
        if self.kind == 'int':
            value = d.rng.randint(*map(int, self.options)) if self.options else d.integer()
            return (SMALL[value] if 0 <= value <= 12 and d.chance(0.12) else str(value)), value
        if self.kind == 'num':
            value = d.number()
            return str(value), value
        if self.kind == 'list':
            value = d.list_of(d.word if d.chance(0.7) else d.name)
            return ', '.join(value[:-1]) + d.one([' and ', ', ', ' and ']) + value[-1], value
        if self.kind == 'sum':
            value = ' '.join(str(x) for x in [d.rng.randint(0, 999), d.one('+-*/'), d.rng.randint(1, 99)] + ([d.one('+-*'), d.rng.randint(1, 99)] if d.chance(0.25) else []))
            value = value.replace(' ', '') if d.chance(0.25) else value
            return value, value
        draws = {'place': d.place, 'name': d.name, 'phrase': d.phrase, 'message': d.message, 'email': d.email, 'url': d.url, 'file': d.file, 'code': d.code, 'phone': d.phone, 'day': d.day, 'date': d.date,
                 'time': d.time, 'noun': d.word, 'title': lambda: d.phrase().title() if d.chance(0.7) else d.name(), 'upper': lambda: d.coined()[:d.rng.randint(2, 4)].upper()}
        value = draws[self.kind]()
        if self.kind in ('place', 'name', 'upper') and d.chance(0.07):
            value = value.lower()
        if self.kind in TEXTS and d.chance(0.4):
            mark = d.one('""\'') if "'" not in value else '"'
            return f'{mark}{value}{mark}', value
        return value, value

    def fragment(self, d: Draw, alone: bool):
        """(the words that give this parameter, its value)"""
        words = spaced(self.name)
        if self.kind == 'bool':
            value = d.chance(0.6)
            if self.fragments and d.chance(0.7):
                return d.one(self.fragments[0 if value else 1]), value
            return d.one(YES if value else NO).format(w=words), value
        said, value = self.value(d)
        if self.fragments and d.chance(0.75):
            return d.one(self.fragments).format(said), value
        stem, _, end = words.rpartition(' ')
        if stem and end in ('count', 'number', 'name', 'id') and d.chance(0.5):
            return (f'{said} {stem}' if end == 'count' else d.one([f'{stem} {said}', f'the {stem} {said}', f'{stem}: {said}'])), value
        if self.kind == 'enum' and d.chance(0.3):
            return f'{said} {words}', value
        if alone and self.kind in NATURAL and d.chance(0.5):
            return d.one(NATURAL[self.kind]).format(said), value
        return d.one(NAMED).format(w=words, v=said), value


@dataclass
class Tool:
    name: str
    description: str
    fields: list
    subject: str = ''
    wordings: list = None
    verbs: list = None

    def schema(self, d: Draw) -> dict:
        fields = list(self.fields)
        required = [f.name for f in fields if f.required]
        parameters = {'type': 'object', 'properties': {f.name: f.schema(d) for f in fields}}
        if required or d.chance(0.3):
            parameters['required'] = required
        if d.chance(0.15):
            parameters['additionalProperties'] = False
        function = {'name': self.name, 'description': self.description, 'parameters': parameters} if self.description else {'name': self.name, 'parameters': parameters}
        return {'type': 'function', 'function': function}

    def twice(self, d: Draw):
        """One request for two things: weather in Paris and Rome. (what the user says, both arguments) or nothing."""
        required = [f for f in self.fields if f.required]
        if not self.wordings or len(required) != 1 or required[0].kind not in ('place', 'code', 'upper', 'noun', 'file', 'name'):
            return None
        name = required[0].name
        wording = d.one([w for w in self.wordings if '{' + name in w])
        (one, first), (other, second) = required[0].value(d), required[0].value(d)
        if first == second or ':' in wording:
            return None
        before = re.search(r'\b(in|for|of|to) \{' + name, wording)
        joint = d.one([' and ', ' and ', ' and also ', ', ']) + (before[1] + ' ' if before and d.chance(0.5) else '')
        return expand(d.rng, wording).replace('{' + name + '}', one + joint + other), [{name: first}, {name: second}]

    def request(self, d: Draw, plain=False):
        """(what the user says, the arguments)"""
        values = {}
        if self.wordings:
            wording = d.one(self.wordings)
            spoken = {}
            for f in self.fields:
                on = re.search(r'\{' + re.escape(f.name) + r':([^}]*)\}', wording)
                if on:
                    values[f.name] = d.chance(0.5)
                    wording = wording.replace(on[0], on[1].split('/')[0 if values[f.name] else 1])
                elif '{' + f.name + '}' in wording:
                    spoken[f.name], values[f.name] = f.value(d)
            wording = misspelt(d, expand(d.rng, wording))
            text = re.sub(r'\{([^{}]+)\}', lambda m: spoken[m[1]], wording)
            imperative = False
        else:
            text, imperative = self.action(d), True
        rest = [f for f in self.fields if f.name not in values and (f.required or d.chance(0.4))]
        d.rng.shuffle(rest)
        kinds = [f.kind for f in self.fields]
        for i, f in enumerate(rest):
            words, values[f.name] = f.fragment(d, kinds.count(f.kind) == 1)
            text += d.one([' ', ' ', ', ', ' and ', ', '] if i or not imperative else [' ', ' ', ' ', ', ', ': ']) + words
        if not plain and d.chance(0.35) and (imperative or text.split()[0].lower() in IMPERATIVE):
            text = d.one(POLITE).format(text)
        return text, {f.name: values[f.name] for f in self.fields if f.name in values}

    def action(self, d: Draw) -> str:
        noun = self.subject
        if self.verbs is ASKING and d.chance(0.4):
            return d.one(['what is the {}', 'show me the {}', 'I need the {}', 'give me the {}', 'how is the {}', 'what about the {}', "what's the {}", 'let me see the {}']).format(noun)
        return f'{d.one(self.verbs) if d.chance(0.6) else self.verbs[0]} {d.one(["the ", "the ", "a ", "my ", "", "this ", "our "])}{noun}'


def misspelt(d: Draw, wording: str) -> str:
    """A slip of the finger in the words of the request, never in a value."""
    if not d.chance(0.06):
        return wording
    parts = re.split(r'(\{[^{}]+\})', wording)
    i = d.rng.randrange(0, len(parts), 2)
    parts[i] = slip(d.rng, parts[i])
    return ''.join(parts)


def read(file: str):
    """The tools of a text file: (held out, names, descriptions, parameters, wordings)."""
    out = []
    for line in filter(None, (TEXT / file).read_text().splitlines()):
        mark, rest = line[0], line[2:]
        if mark == '#':
            out.append((rest.startswith('% '), rest.removeprefix('% ').split(', '), [], [], []))
        elif mark == ':':
            out[-1][2].extend(x.strip() for x in rest.split('|'))
        elif mark == '-':
            head, _, tail = rest.partition(' ~ ')
            names, kind = head.split(' ', 1)
            kind, _, options = kind.partition(':')
            options = options.split(',') if kind == 'enum' else options.split(':') if options else []
            fragments = [[x.strip() for x in side.split('|')] for side in tail.split(' // ')] if tail else None
            out[-1][3].append((names.split('|'), kind, options, fragments))
        elif mark == '?':
            out[-1][4].append(rest)
    return out


EVERYDAY, RECORDS = read('tools.list'), read('records.list')


def everyday(d: Draw, library=EVERYDAY, held=None) -> Tool:
    """One of the file's tools, with names, parameters and wordings drawn."""
    held = d.held if held is None else held
    while (entry := d.one(library))[0] != held:
        pass
    _, names, descriptions, parameters, wordings = entry
    name = styled(d, d.one(names))
    fields, renamed = [], {}
    given = {n for w in wordings for n in re.findall(r'\{(\w+)', w)}
    for aliases, kind, options, fragments in parameters:
        required = aliases[0] in given
        if not required and d.chance(0.4):
            continue
        new = aliases[0] if d.chance(0.5) else d.one(aliases)
        if new in renamed.values():
            new = aliases[0]
        if kind == 'enum' and len(options) > 3 and d.chance(0.5):
            options = d.rng.sample(options, d.rng.randint(3, len(options)))
        renamed[aliases[0]] = new
        fields.append(Field(new, kind, options, required, describe(d, spaced(new), kind), fragments if kind == 'bool' else fragments and fragments[0]))
    if d.chance(0.2):
        d.rng.shuffle(fields)
    swap = lambda w: re.sub(r'\{(\w+)(:[^}]*)?\}', lambda m: '{' + renamed[m[1]] + (m[2] or '') + '}', w)
    return Tool(name, d.one(descriptions), fields, names[0], [swap(w) for w in wordings])


def describe(d: Draw, words: str, kind: str) -> str:
    if d.chance(0.45):
        return ''
    example = {'place': d.place, 'name': d.name, 'day': d.date, 'code': d.code, 'int': lambda: str(d.integer()), 'phrase': d.phrase}.get(kind)
    if example and d.chance(0.12):
        return f'The {words}, e.g. {example()}'
    return d.one(['The {}', 'the {}', '{} to use', 'Which {}', '{}', 'The {} of it', 'A {}', 'What {} to take', 'Optional {}', 'Name of the {}']).format(words)


def field(d: Draw, taken, kinds=None) -> Field:
    """A parameter of any kind and name."""
    while True:
        roll, options, fragments = d.rng.random(), [], None
        if roll < 0.5:
            names, kind = d.one(FIELDS)
            name = d.one(names)
        elif roll < 0.66:
            kind, name = 'bool', d.one(BOOLEANS) if d.chance(0.7) else d.one(['is_', 'with_', 'has_', '']) + d.word().replace(' ', '_')
        elif roll < 0.82:
            kind, name = 'enum', d.one(ENUM_NAMES) if d.chance(0.7) else d.word().replace(' ', '_')
            options = list(d.one(ENUMS)) if d.chance(0.5) else list(dict.fromkeys(d.list_of(lambda: d.word().replace(' ', '_'), 5)))
        else:
            kind, name = d.one(['int', 'num', 'phrase', 'noun', 'code', 'name', 'title']), d.word().replace(' ', '_') + (d.one(['_id', '_name', '_count', '_type']) if d.chance(0.15) else '')
        if kind == 'sum' or spaced(name) in taken or (kind == 'enum' and len(options) < 2):
            continue
        taken.add(spaced(name))
        name = styled(d, name)
        return Field(name, kind, options, d.chance(0.65), describe(d, spaced(name), kind), fragments)


def invented(d: Draw, like: Tool | None = None) -> Tool:
    """A tool of a verb and a noun, or of words nobody has; `like` shares its verb or its noun with that one."""
    verbs = d.one(GROUPS) if not d.chance(0.12) else [d.coined()]
    noun = d.word() if d.chance(0.85) else f'{d.noun()} {d.noun()}'
    if like and like.verbs:
        if d.chance(0.5):
            noun = like.subject
            while verbs is like.verbs:
                verbs = d.one(GROUPS)
        else:
            verbs = like.verbs
    verb = d.one(verbs)
    taken = set()
    fields = [field(d, taken) for _ in range(d.rng.choices(range(6), [4, 28, 32, 22, 10, 4])[0])]
    roll = d.rng.random()
    name = f'{verb}_{noun}' if roll < 0.72 else f'{noun}_{verb}' if roll < 0.82 else noun if roll < 0.86 else f'{d.coined()}_{d.coined()}' if roll < 0.94 else f'fn_{d.rng.randint(1, 99)}'
    said = d.one(verbs)
    clear = roll < 0.82
    description = d.one([f'{said.capitalize()} a {noun}', f'{said} the {noun}', f'{said.capitalize()} {noun}', f'Use this to {said} a {noun}', f'{said.capitalize()} one {noun}, given its data', f'Function to {said} a {noun}.'])
    return Tool(styled(d, name), '' if clear and d.chance(0.25) else description, fields, noun, None, verbs)

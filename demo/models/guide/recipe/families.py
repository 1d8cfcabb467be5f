"""Families of invented tools whose requests are worded as people speak: switches, look-ups, and things done to a named object."""
from tools import GROUPS, Field, Tool, describe, field, spaced, styled
from values import Draw

# on, off, and the words for the parameter; `at` is what is switched.
SWITCHES = [(['turn on', 'switch on', 'put on', 'enable', 'start'], ['turn off', 'switch off', 'put off', 'disable', 'stop'], 'on on_off state enabled active power is_on'.split()),
            (['lock', 'close', 'shut', 'secure'], ['unlock', 'open'], 'locked closed is_locked shut'.split()), (['open', 'unlock'], ['close', 'shut', 'lock'], 'open opened is_open'.split()),
            (['show', 'make visible', 'unhide'], ['hide', 'make invisible'], 'visible shown show'.split()), (['mute', 'silence'], ['unmute'], 'muted mute silent'.split()),
            (['publish', 'make public'], ['unpublish', 'make private'], 'public published'.split()), (['activate', 'arm'], ['deactivate', 'disarm'], 'armed active'.split()),
            (['pause', 'hold'], ['resume', 'continue'], 'paused hold'.split()), (['mark'], ['unmark'], 'marked flag'.split()), (['block', 'ban'], ['unblock', 'allow'], 'blocked banned'.split()),
            (['subscribe to'], ['unsubscribe from'], 'subscribed subscribe'.split()), (['heat up', 'warm'], ['cool', 'cool down'], 'warm heat'.split())]
# What is asked of a thing.
ATTRIBUTES = ('price, status, balance, score, temperature, population, owner, phone number, size, weight, rating, schedule, menu, address, opening hours, age, height, speed, location, level, value, result, capacity, color, name, history, details, '
              'position, length, manager, deadline, author, capital, area, version, grade, salary, stock, quantity, health, mood, language, distance, duration, cost, limit, humidity, pressure').split(', ')
UNITS = 'minutes seconds hours days people nights pages euros dollars points steps copies liters meters pieces rounds guests seats kilos'.split()


def key(d: Draw, text: str) -> str:
    return styled(d, text.replace(' ', '_'))


def more(d: Draw, taken, most=2) -> list:
    """Some further parameters, mostly optional."""
    out = []
    for _ in range(d.rng.choices(range(most + 1), [50, 32, 18][:most + 1])[0]):
        f = field(d, taken)
        f.required = d.chance(0.3)
        out.append(f)
    return out


def counted(d: Draw, taken) -> list:
    """A number with its unit: for 5 minutes, 6 fish."""
    if not d.chance(0.25):
        return []
    unit = d.one(UNITS) if d.chance(0.5) else d.word()
    if unit in taken:
        return []
    taken.add(unit)
    name = unit.replace(' ', '_') if unit in UNITS else unit.replace(' ', '_') + d.one(['_count', '_number', 's', '_amount'])
    return [Field(key(d, name), 'int', d.one([['1', '12'], ['1', '60'], ['5', '500']]), d.chance(0.7), describe(d, spaced(name), 'int'), [f'for {{}} {unit}', f'{{}} {unit}', f'with {{}} {unit}', f'of {{}} {unit}'])]


def target(d: Draw, noun: str, required=True) -> Field:
    """The parameter that says which one: a name, a code, or one of a few."""
    words = noun.replace(' ', '_')
    name = d.one([words, words, f'{words}_name', f'{words}_id', 'name', 'id', 'title', 'target', 'which', 'label'])
    if name.endswith('id'):
        kind, options = 'code', []
    else:
        kind, options = d.one([('name', []), ('title', []), ('noun', []), ('phrase', []), ('code', []), ('enum', list(dict.fromkeys(w.replace(' ', '_') for w in d.list_of(d.word, 5))))])
        if kind == 'enum' and len(options) < 2:
            kind, options = 'name', []
    return Field(key(d, name), kind, options, required, describe(d, spaced(name), kind))


def switch(d: Draw) -> Tool:
    on, off, names = d.one(SWITCHES)
    noun = d.word()
    state = Field(key(d, d.one(names)), 'bool', [], True, d.one(['', '', 'True or false', f'true to {on[0]}, false to {off[0]}', f'Whether to {d.one(on)} it']))
    fields, taken = [state], {spaced(state.name), 'target', 'which', noun}
    which = target(d, noun) if d.chance(0.7) else None
    if which and spaced(which.name) != spaced(state.name):
        fields.insert(d.rng.randint(0, 1), which)
        taken.add(spaced(which.name))
        what = d.one([['the {v} {n}', '{v} {n}', 'the {n} {v}', '{n} {v}'], ['the {v} {n}', 'the {n} {v}', '{v}']])
    else:
        what = ['the {n}', 'my {n}', '{n}', 'our {n}']
    both = f'{{{state.name}:%s/%s}}'
    wordings = []
    for phrase in what:
        phrase = phrase.replace('{n}', noun).replace('{v}', '{' + which.name + '}' if which else '')
        for _ in range(3):
            a, b = d.one(on), d.one(off)
            wordings.append(both % (a, b) + ' ' + phrase)
        if on[0] == 'turn on':
            wordings += [f'turn {phrase} ' + both % ('on', 'off'), f'switch {phrase} ' + both % ('on', 'off')]
    verb = d.one([on[0].split()[0], f'{on[0].split()[0]}_or_{off[0].split()[0]}', 'set', 'switch', 'control', 'toggle'])
    description = d.one([f'{on[0].capitalize()} or {off[0]} a {noun}', f'Use this to {on[0]} or {off[0]} the {noun}', f'Controls the {noun}', ''])
    return Tool(key(d, f'{verb} {noun}'), description, fields + more(d, taken, 1), noun, wordings)


def lookup(d: Draw) -> Tool:
    attribute, noun = d.one(ATTRIBUTES) if d.chance(0.7) else d.word(), d.word()
    which = target(d, noun)
    v = '{' + which.name + '}'
    wordings = [f'what is the {attribute} of {noun} {v}', f'what is the {attribute} of {v}', f'(get|show|find|check|fetch) [me] the {attribute} of [the {noun}] {v}', f'{attribute} of {v}', f'tell me the {attribute} (for|of) [{noun}] {v}',
                f"what's the {attribute} of the {noun} {v}", f'I need the {attribute} of [{noun}] {v}', f'which {attribute} does [{noun}] {v} have', f'look up the {noun} {v}', f'what about the {noun} {v}', f'(show|read|check) [me] {noun} {v}',
                f'do you know the {attribute} of [the {noun}] {v}', f'what does {noun} {v} say', f'I want to know the {attribute} of [{noun}] {v}', f'how is {noun} {v}', f"{v}'s {attribute}", f'(how|what) (much|is) the {attribute} of {v}', f'and the {noun} {v}']
    name = d.one([f'get {attribute}', f'{noun} {attribute}', f'{attribute} of {noun}', f'get {noun} {attribute}', f'get {noun}', f'read {noun}', f'lookup {noun}', f'find {noun} {attribute}', attribute, f'{noun} info'])
    description = d.one([f'{attribute.capitalize()} of a {noun}', f'Get the {attribute} of a {noun}', f'Tells the {attribute} of one {noun}', f'Looks up a {noun}', f'Returns the {attribute} for a given {noun}'] + [''] * (noun in name))
    return Tool(key(d, name), description, [which, *more(d, {spaced(which.name)})], f'{noun} {attribute}', wordings)


def thing(d: Draw) -> Tool:
    verbs, noun = d.one(GROUPS), d.word()
    which = target(d, noun)
    v, taken = '{' + which.name + '}', {spaced(which.name), noun}
    fields = [which, *counted(d, taken), *more(d, taken)]
    some = [verbs[0], verbs[0], *verbs]
    wordings = [w.format(b=d.one(some), n=noun, v=v) for w in ('{b} the {n} {v}', '{b} {n} {v}', '{b} a {n} (called|named) {v}', '{b} {v}', '{b} {v} as a {n}', '{b} my {n} {v}', '{n} {v}: {b} it', 'I have a {n} {v}, {b} it', '{b} the {n} (called|named) {v}',
                                                               'there is a {n} {v} to {b}', '{b} our {n} {v}', 'I want the {n} {v}, {b} it', 'the {n} {v}, {b} it please')]
    verb = d.one(verbs)
    name = d.one([f'{verb} {noun}', f'{verb} {noun}', f'{noun} {verb}', f'{verb} one {noun}', noun, f'{d.coined()} {d.coined()}'])
    said = d.one(verbs)
    description = d.one([f'{said.capitalize()} a {noun}', f'{said.capitalize()} the {noun} of that name', f'Use this to {said} a {noun}', f'{said} a {noun}'] + [''] * (noun in name and verb in name))
    return Tool(key(d, name), description, fields, noun, wordings, verbs)


def spoken(d: Draw) -> Tool:
    return d.one([switch, lookup, thing, thing])(d)

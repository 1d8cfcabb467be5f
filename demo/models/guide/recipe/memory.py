"""Things told earlier in the chat: a name, a place, an age, a pet, and any 'my ... is ...'."""
import random

from values import ADJECTIVES, Draw

COLOURS = 'red blue green yellow orange purple pink black white brown grey teal violet gold silver turquoise'.split()
FOODS = 'pizza pasta rice soup salad sushi bread cheese curry cake chocolate apples bananas noodles tacos pancakes'.split()
ANIMALS = 'dog cat horse bird fish rabbit mouse parrot turtle hamster'.split()
RELATIONS = 'sister brother mother father wife husband son daughter boss friend neighbour teacher colleague cousin uncle aunt doctor partner'.split()
JOBS = 'teacher doctor nurse baker driver farmer painter lawyer pilot cook writer developer engineer student gardener dentist plumber singer'.split()
ATTRIBUTES = ('favourite number, lucky number, favourite colour, favourite animal, favourite food, favourite book, favourite film, favourite song, favourite drink, favourite season, password, code word, secret word, pin, order number, room number, '
              'phone number, email, address, street, team, project, company, hobby, car, school, language, nickname, birthday, shoe size, locker, ticket, flight number, deadline, start date, budget, username, seat, table number, favourite city, '
              'favourite language, favourite sport, house number, customer number, account, goal, instrument, house').split(', ')


def value_of(d: Draw, attribute: str) -> str:
    if attribute.endswith(('number', 'size', 'pin', 'budget')):
        return str(abs(d.integer()))
    if attribute.endswith(('birthday', 'deadline', 'date')):
        return d.date()
    if attribute == 'email':
        return d.email()
    if attribute.endswith(('city', 'street', 'address')):
        return d.place()
    return d.one([d.word, d.word, d.word, d.name, d.place, d.code, lambda: d.of(ADJECTIVES) + ' ' + d.noun()])()


KINDS = {
    'name': (Draw.name,
             ['my name is {}', "my name's {}", 'I am {}', "I'm {}", 'call me {}', 'hi, I am {}', 'hello, my name is {}', "hey, I'm {}", 'you can call me {}',
              'people call me {}', '{} is my name', 'I am called {}', 'hi, my name is {}', 'hello, I am {}', '{} here', 'the name is {}', 'please call me {}',
              "hi there, I'm {}", 'good morning, I am {}', 'remember that my name is {}', 'this is {}', 'let me introduce myself, I am {}', 'my first name is {}', 'hi! {} here', 'it is me, {}'],
             ['Nice to meet you, {}!', 'Hello {}, nice to meet you!'],
             ['what is my name', "what's my name", 'do you remember my name', 'do you know my name', 'who am I', 'what am I called', 'say my name',
              'tell me my name', 'can you remember my name', 'what did I say my name was', 'how am I called', 'what was my name', 'do you know who I am', 'what is my first name',
              'remember my name', 'what name did I give you', 'do you still know my name', "and what's my name", 'my name', 'have you remembered my name', 'what should you call me', 'how do you call me'],
             'Your name is {}.', 'You have not told me your name yet.'),
    'place': (Draw.place,
              ['I live in {}', 'I am from {}', "I'm from {}", 'my city is {}', 'I come from {}', 'my home is in {}', 'I am living in {}', 'my town is {}', 'I moved to {}', 'I was born in {}', 'we live in {}', 'home is {}'],
              ['I will remember that you live in {}.', '{} sounds like a nice place!'],
              ['where do I live', 'where am I from', 'in which place do I live', 'what place did I say I live in', 'tell me where I live', 'and where is my home', 'which town am I from', 'which city do I live in', 'what is my city', 'do you know where I live', 'where is my home', 'where do I come from', 'what city am I from', 'do you remember where I live', 'in which town do I live'],
              'You live in {}.', 'You have not told me where you live.'),
    'colour': (lambda d: d.one(COLOURS),
               ['my favourite colour is {}', 'my favorite color is {}', 'I like {} best', '{} is my favourite colour', 'I love the colour {}', 'the colour I like most is {}'],
               ['I will remember that: {}.', '{} is a nice colour!'],
               ['what is my favourite colour', 'what is my favorite color', 'which colour do I like', "what's my favourite colour", 'do you know my favourite colour', 'what color do I like'],
               'Your favourite colour is {}.', 'You have not told me your favourite colour.'),
    'food': (lambda d: d.one(FOODS) if d.chance(0.6) else d.word(),
             ['my favourite food is {}', 'I like to eat {}', 'I love {}', 'my favorite food is {}', 'I eat {} every day', 'I like {}'],
             ['I will remember that you like {}.', 'Good to know that you like {}.'],
             ['what is my favourite food', 'what do I like to eat', 'what is my favorite food', 'which food do I like', 'what food do I love', 'what do I like', 'what do I love'],
             'You like {}.', 'You have not told me what you like.'),
    'age': (lambda d: str(d.rng.randint(5, 99)),
            ['I am {} years old', "I'm {} years old", 'my age is {}', 'I am {}', "I'm {}", 'I turned {} today', 'I just turned {}'],
            ['I will remember that you are {}.', '{} is a good age!'],
            ['how old am I', 'what is my age', "what's my age", 'do you know how old I am', 'do you remember my age', 'how many years old am I'],
            'You are {} years old.', 'You have not told me your age.'),
    'pet': (lambda d: d.one(ANIMALS) + d.one([' called ', ' named ']) + d.name(),
            ['I have a {}', "I've got a {}", 'at home I have a {}', 'there is a {} in my house', 'my pet is a {}'],
            ['How nice, a {}!', 'I will remember: a {}.'],
            ['which pet do I have', 'what animal did I tell you about', 'and my pet', 'who is my pet', 'what do I call my pet', 'is there a pet at my home', 'tell me which animal I have', 'what is my pet called', 'do you remember my pet', 'what pet do I have', "what is my pet's name", 'what animal do I have', 'tell me about my pet', 'do I have a pet'],
            'You have a {}.', 'You have not told me about a pet.'),
    'job': (lambda d: d.one(JOBS) if d.chance(0.7) else d.word(),
            ['I am a {}', 'I work as a {}', "I'm a {}", 'my job is {}', 'I am working as a {}'],
            ['I will remember that you are a {}.', 'A {}, how nice!'],
            ['what is my job', 'what do I do for work', 'what is my profession', 'do you know what I work as', 'what do I work as', 'do you remember my job'],
            'You are a {}.', 'You have not told me what you do.')}


def first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def tell(d: Draw, known: dict):
    """A statement, its answer and the thought; the chat remembers it in `known`."""
    roll = d.rng.random()
    if roll < 0.45:
        what = d.one(ATTRIBUTES) if d.chance(0.55) else d.noun()
        value = value_of(d, what)
        known['my ' + what] = (f'my {what}', value)
        statement = d.one(['my {w} is {v}', 'my {w} is {v}', 'remember that my {w} is {v}', 'remember: my {w} is {v}', '{v} is my {w}', 'by the way, my {w} is {v}', 'note that my {w} is {v}', 'please remember my {w}, it is {v}', 'my {w}: {v}',
                           'just so you know, my {w} is {v}', 'keep in mind that my {w} is {v}', 'do not forget: my {w} is {v}', "my {w}'s {v}",
                           'the {w} is {v}', 'remember the {w}: {v}', 'note that the {w} is {v}', 'my {w} will be {v}', 'it is my {w}: {v}', 'for my {w} I have {v}', 'I chose {v} as my {w}', 'my {w} was always {v}', 'save this: the {w} is {v}'])
        reply = d.one([f'I will remember that your {what} is {value}.', f'Noted: your {what} is {value}.'])
        return statement.format(w=what, v=value), reply, value, f'The user tells me: {what} = {value}.'
    if roll < 0.58:
        who = d.one(RELATIONS)
        value = d.name()
        known['my ' + who] = (f"my {who}'s name", value)
        statement = d.one(['my {w} is called {v}', "my {w}'s name is {v}", 'my {w} is {v}', 'I have a {w} called {v}', 'I have a {w} named {v}', '{v} is my {w}', 'the name of my {w} is {v}'])
        return statement.format(w=who, v=value), f'I will remember that your {who} is called {value}.', value, f'The user tells me: {who} = {value}.'
    if roll < 0.66:
        return two(d, known)
    kind = 'name' if d.chance(0.5) else d.one(list(KINDS))
    draw, statements, replies, *_ = KINDS[kind]
    value = draw(d)
    statement = d.one(statements)
    if kind != 'age' and d.chance(0.08):
        value = value.lower()
    known[kind] = value
    return statement.format(value), first_upper(d.one(replies).format(value)), value, f'The user tells me: {kind} = {value}.'


def two(d: Draw, known: dict):
    """Two things in one sentence."""
    parts = [('name', 'I am {}'), ('name', 'my name is {}'), ('place', 'I live in {}'), ('place', 'I come from {}'), ('age', 'I am {} years old'), ('job', 'I work as a {}'), ('food', 'I like {}'), ('pet', 'I have a {}'), ('colour', 'my favourite colour is {}')]
    while (first := d.one(parts))[0] == (second := d.one(parts))[0]:
        pass
    values = [KINDS[kind][0](d) for kind, _ in (first, second)]
    known.update({first[0]: values[0], second[0]: values[1]})
    text = d.one([' and ', ' and ', ', ', ', and ']).join(wording.format(value) for (_, wording), value in zip((first, second), values))
    return text, d.one([f'I will remember both: {values[0]} and {values[1]}.', f'Noted: {first[0]} {values[0]}, {second[0]} {values[1]}.']), values[0], f'The user tells me: {first[0]} = {values[0]}, {second[0]} = {values[1]}.'


def recall(d: Draw, known: dict, asked=None):
    """A question about something told, or sometimes about something that was not; its answer and the thought."""
    kind = asked or (d.one(list(known)) if known and d.chance(0.82) else 'name' if d.chance(0.4) else d.one(list(KINDS)) if d.chance(0.6) else 'my ' + d.one(ATTRIBUTES + RELATIONS))
    what = kind.removeprefix('my ')
    if kind.startswith('my ') and what in RELATIONS:
        question = d.one(['what is my {w} called', "what is my {w}'s name", 'who is my {w}', 'do you know the name of my {w}', 'what is the name of my {w}', "do you remember my {w}'s name", 'how is my {w} called', "what's my {w} called"]).format(w=what)
        if kind not in known:
            return question, f'You have not told me about your {what}.', f'I have not been told: {what}.'
        return question, f'Your {what} is called {known[kind][1]}.', f'The user told me: {what} = {known[kind][1]}.'
    if kind.startswith('my '):
        question = d.one(['what is my {w}', 'what is my {w}', "what's my {w}", 'do you remember my {w}', 'do you know my {w}', 'tell me my {w}', 'what was my {w}', 'my {w}', 'which {w} do I have', 'what did I say my {w} was', 'can you tell me my {w}',
                          'remind me of my {w}', 'and my {w}', 'do you still know my {w}', 'what did I tell you about my {w}', 'say my {w}', 'what {w} did I mention', 'which {w} did I tell you', 'tell me the {w} I gave you', 'and what is the {w}', 'I forgot my {w}, what is it',
                          'remind me what the {w} is', 'do you recall the {w}', 'please repeat the {w}', 'what about my {w}', 'the {w} was what', 'what was it, my {w}', "what's the {w}", 'which {w} is mine', 'can you recall my {w}', 'I told you my {w}, which is it']).format(w=what)
        if kind not in known:
            return question, f'You have not told me your {what}.', f'I have not been told: {what}.'
        return question, f'Your {what} is {known[kind][1]}.', f'The user told me: {what} = {known[kind][1]}.'
    *_, questions, told, untold = KINDS[kind]
    if kind not in known:
        return d.one(questions), untold, f'I have not been told: {kind}.'
    return d.one(questions), told.format(known[kind]), f'The user told me: {kind} = {known[kind]}.'

"""Things told earlier in the chat: a name, a place, a favourite, an age, a pet."""
import random

NAMES = ('Alex Sam Maria Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Kim Lena Max Nina Oscar Paula Quinn Rosa Simon Tina '
         'Uwe Vera Walter Xenia Yara Zoe Lucas Mia Noah Olivia Liam Sophia James Isabella Ethan Ava Mohamed Fatima Ali Aisha Omar Yuki '
         'Hiro Chen Wei Li Priya Raj Anjali Carlos Lucia Pedro Elena Ivan Olga Dmitri Natasha Pierre Camille Marco Giulia Lars Ingrid '
         'John Jane Bob Alice Charlie Eve Tom Jerry Robert Linda Mary Peter Paul George Kate Laura Sarah Daniel Michael Thomas').split()
COLOURS = 'red blue green yellow orange purple pink black white brown grey teal violet gold silver turquoise'.split()
FOODS = 'pizza pasta rice soup salad sushi bread cheese curry cake chocolate apples bananas noodles tacos pancakes'.split()
ANIMALS = 'dog cat horse bird fish rabbit mouse parrot turtle hamster'.split()
CITIES = ('Berlin Paris London Rome Madrid Vienna Oslo Lisbon Tokyo Delhi Cairo Lima Boston Toronto Sydney Dublin Prague Warsaw '
          'Athens Zurich Munich Hamburg Milan Lyon Porto Kyoto Seoul Nairobi Lagos Austin Denver Seattle').split()
ONSETS = 'b br c ch d dr f fl g gr h j k kr l m n p pr qu r s sh st t th tr v w x y z'.split()
VOWELS = 'a e i o u ai ea ee io ou'.split()
CODAS = ['', '', '', 'l', 'n', 'r', 's', 't', 'm', 'x', 'nd', 'rt', 'k']


def coined(rng: random.Random) -> str:
    """A name nobody has, so that copying is learnt rather than a list."""
    return ''.join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.choice([1, 2, 2, 3]))).capitalize()


def name(rng):
    return rng.choice(NAMES) if rng.random() < 0.4 else coined(rng)


def place(rng):
    return rng.choice(CITIES) if rng.random() < 0.5 else coined(rng)


KINDS = {
    'name': (name,
             ['my name is {}', "my name's {}", 'I am {}', "I'm {}", 'call me {}', 'hi, I am {}', 'hello, my name is {}', "hey, I'm {}", 'you can call me {}',
              'people call me {}', '{} is my name', 'I am called {}', 'hi, my name is {}', 'hello, I am {}', '{} here', 'the name is {}', 'please call me {}',
              "hi there, I'm {}", 'good morning, I am {}', 'remember that my name is {}', 'this is {}', 'let me introduce myself, I am {}'],
             ['Nice to meet you, {}!', 'Hello {}, nice to meet you!'],
             ['what is my name', "what's my name", 'do you remember my name', 'do you know my name', 'who am I', 'what am I called', 'say my name',
              'tell me my name', 'can you remember my name', 'what did I say my name was', 'how am I called', 'what was my name', 'do you know who I am',
              'remember my name', 'what name did I give you', 'do you still know my name', "and what's my name", 'my name', 'have you remembered my name'],
             'Your name is {}.', 'You have not told me your name yet.'),
    'place': (place,
              ['I live in {}', 'I am from {}', "I'm from {}", 'my city is {}', 'I come from {}', 'my home is in {}', 'I am living in {}', 'my town is {}'],
              ['I will remember that you live in {}.', '{} sounds like a nice place!'],
              ['where do I live', 'where am I from', 'which city do I live in', 'what is my city', 'do you know where I live', 'where is my home', 'where do I come from'],
              'You live in {}.', 'You have not told me where you live.'),
    'colour': (lambda rng: rng.choice(COLOURS),
               ['my favourite colour is {}', 'my favorite color is {}', 'I like {} best', '{} is my favourite colour', 'I love the colour {}'],
               ['I will remember that: {}.', '{} is a nice colour!'],
               ['what is my favourite colour', 'what is my favorite color', 'which colour do I like', "what's my favourite colour", 'do you know my favourite colour'],
               'Your favourite colour is {}.', 'You have not told me your favourite colour.'),
    'food': (lambda rng: rng.choice(FOODS),
             ['my favourite food is {}', 'I like to eat {}', 'I love {}', 'my favorite food is {}', 'I eat {} every day'],
             ['I will remember that you like {}.', 'Good to know that you like {}.'],
             ['what is my favourite food', 'what do I like to eat', 'what is my favorite food', 'which food do I like', 'what food do I love'],
             'You like {}.', 'You have not told me which food you like.'),
    'age': (lambda rng: str(rng.randint(5, 99)),
            ['I am {} years old', "I'm {} years old", 'my age is {}', 'I am {}', "I'm {}", 'I turned {} today'],
            ['I will remember that you are {}.', '{} is a good age!'],
            ['how old am I', 'what is my age', "what's my age", 'do you know how old I am', 'do you remember my age'],
            'You are {} years old.', 'You have not told me your age.'),
    'pet': (lambda rng: rng.choice(ANIMALS) + ' called ' + name(rng),
            ['I have a {}', "I've got a {}", 'at home I have a {}', 'there is a {} in my house'],
            ['How nice, a {}!', 'I will remember: a {}.'],
            ['which pet do I have', 'what is my pet called', 'do you remember my pet', 'what pet do I have', "what is my pet's name", 'what animal do I have'],
            'You have a {}.', 'You have not told me about a pet.')}


def first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def tell(rng: random.Random, known: dict):
    """A statement and its answer; the chat remembers it in `known`."""
    kind = 'name' if rng.random() < 0.6 else rng.choice(list(KINDS))
    draw, statements, replies, *_ = KINDS[kind]
    value = draw(rng)
    statement = rng.choice(statements)
    if kind != 'age' and rng.random() < 0.08:
        value = value.lower()
    known[kind] = value
    return statement.format(value), first_upper(rng.choice(replies).format(value)), value


def recall(rng: random.Random, known: dict):
    """A question about something told, or sometimes about something that was not."""
    kind = rng.choice(list(known)) if known and rng.random() < 0.8 else 'name' if rng.random() < 0.5 else rng.choice(list(KINDS))
    *_, questions, told, untold = KINDS[kind]
    return rng.choice(questions), told.format(known[kind]) if kind in known else untold

"""Sums and comparisons of up to three digits. Small sums are known by heart, larger ones are worked column by column."""
import random

SMALL = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen '
         'seventeen eighteen nineteen twenty').split()
TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split()

PLUS = ['{a} + {b}'] * 8 + ['{a}+{b}'] * 3 + ['{a} plus {b}'] * 5 + ['{a} and {b} together', 'the sum of {a} and {b}', '{a} added to {b}', '{a} + {b} =', '{a} and {b} added']
MINUS = ['{a} - {b}'] * 8 + ['{a}-{b}'] * 3 + ['{a} minus {b}'] * 5 + ['{b} subtracted from {a}', 'the difference of {a} and {b}', '{a} - {b} =', '{a} less {b}', '{a} take away {b}']
ORDERS = {'+': ['add {a} and {b}', 'add {a} to {b}', 'sum {a} and {b}', 'what do you get if you add {a} and {b}', 'if I add {a} to {b}, what is it', 'sum up {a} and {b}', 'add up {a} and {b}', 'add {b} to {a} for me'],
          '-': ['subtract {b} from {a}', 'take {b} away from {a}', 'take {b} from {a}', 'what is left if I take {b} from {a}', 'if I take {b} from {a}, what is left', 'what remains of {a} after taking {b}', 'how much more is {a} than {b}']}
ASKS = ['what is {}'] * 8 + ['{}'] * 8 + ["what's {}"] * 3 + ['how much is {}'] * 3 + [
    'calculate {}', 'compute {}', 'what does {} make', 'what does {} equal', 'can you do {}', 'tell me {}', 'solve {}', 'and {}', 'what about {}', 'what do you get for {}', 'add this up: {}', 'do the math: {}', 'a sum: {}',
    'how about {}', 'work out {}', 'what would {} be', 'do you know {}', 'now {}', 'try {}', 'please calculate {}', 'give me {}', 'whats {}', 'can you calculate {}', 'could you work out {}', 'I need {}', 'the result of {}', 'quick, {}']
THINGS = 'apples books coins cookies pens cats cards stars balls tickets eggs stones cars flowers points euros dollars pages marbles chairs people'.split()
GREATER = ['which is (greater|larger|bigger|more), {a} or {b}', 'which number is (greater|larger|bigger), {a} or {b}', 'what is (more|greater|larger|bigger), {a} or {b}', 'is {a} or {b} (greater|larger|bigger|more)', 'which of {a} and {b} is (greater|larger|bigger)',
           'the (greater|larger|bigger) of {a} and {b}', 'what is the (maximum|max) of {a} and {b}', '{a} or {b}, which is (more|bigger|greater|larger)', 'tell me the (larger|bigger|greater) number: {a} or {b}']
LESS = ['which is (smaller|less|lower), {a} or {b}', 'which number is (smaller|lower), {a} or {b}', 'what is (less|smaller), {a} or {b}', 'is {a} or {b} (smaller|less|lower)', 'which of {a} and {b} is (smaller|lower)', 'the smaller of {a} and {b}',
        'what is the (minimum|min) of {a} and {b}', '{a} or {b}, which is (less|smaller)']
IS_GREATER = ['is {a} (greater|larger|bigger|more) than {b}', '{a} > {b}', 'is {a} > {b}', 'is it true that {a} is (greater|larger|bigger|more) than {b}', 'is {a} above {b}']
IS_LESS = ['is {a} (less|smaller|lower) than {b}', '{a} < {b}', 'is {a} < {b}', 'is it true that {a} is (less|smaller) than {b}', 'is {a} below {b}']
COMPARE = ['compare {a} and {b}', 'compare {a} with {b}', 'how do {a} and {b} compare', 'compare the numbers {a} and {b}']


def held_out(op: str, a: int, b: int) -> bool:
    """A tenth of the sums beyond 20 is never trained on."""
    return max(a, b) > 20 and (a * 101 + b * 7 + (3 if op == '-' else 0)) % 10 == 4


def spell(n: int) -> str:
    if n <= 20:
        return SMALL[n]
    return TENS[n // 10 - 2] + ('-' + SMALL[n % 10] if n % 10 else '')


def pick(rng: random.Random):
    roll = rng.random()
    top = (999, 999) if roll < 0.36 else (999, 99) if roll < 0.46 else (99, 99) if roll < 0.68 else (20, 20) if roll < 0.88 else (9, 9) if roll < 0.94 else (999, 9)
    a, b = rng.randint(0, top[0]), rng.randint(0, top[1])
    op = rng.choice('+-')
    if op == '-' and a < b and rng.random() < 0.75:
        a, b = b, a
    elif op == '+' and rng.random() < 0.5:
        a, b = b, a
    if rng.random() < 0.05:
        a = round(a, -len(str(a)) + 1)
    return op, a, b


def result(op: str, a: int, b: int) -> int:
    return a + b if op == '+' else a - b


def columns(op: str, a: int, b: int) -> str:
    """The work, from the ones upwards: 13 - 8 = 5, 12 - 7 - 1 = 4."""
    out, over = [], 0
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10 ** place % 10, b // 10 ** place % 10
        if op == '-' and x - y - over < 0:
            out.append(f'{x + 10} - {y}{" - 1" * over} = {x + 10 - y - over}')
            over = 1
        elif op == '-':
            out.append(f'{x} - {y}{" - 1" * over} = {x - y - over}')
            over = 0
        else:
            out.append(f'{x} + {y}{" + 1" * over} = {x + y + over}')
            over = (x + y + over) // 10
    return ', '.join(out)


def work(op: str, a: int, b: int) -> str:
    """Steps and result of any sum."""
    if op == '-' and a < b:
        under = f'{b} - {a} = {b - a}'
        steps = columns('-', b, a) + f', so {under}' if b > 20 else under
        return f'{b} is greater: {steps} and {a} - {b} = {a - b}.'
    if max(a, b) <= 20:
        return f'{a} {op} {b} = {result(op, a, b)}.'
    return f'{columns(op, a, b)}, so {a} {op} {b} = {result(op, a, b)}.'


def answer(op: str, a: int, b: int):
    """(answer without thinking, thought, answer after it); without thinking the steps are part of the answer."""
    short = f'{a} {op} {b} = {result(op, a, b)}.'
    return short if max(a, b) <= 20 else work(op, a, b), work(op, a, b), short


def question(rng: random.Random, op: str, a: int, b: int) -> str:
    x, y = (spell(a), spell(b)) if max(a, b) <= 99 and rng.random() < (0.2 if max(a, b) <= 20 else 0.1) else (a, b)
    if rng.random() < 0.12:
        return rng.choice(ORDERS[op]).format(a=x, b=y)
    return rng.choice(ASKS).format(rng.choice(PLUS if op == '+' else MINUS).format(a=x, b=y))


def turn(rng: random.Random):
    """(question, answer without thinking, thought, answer after it), of the sums to learn from."""
    while held_out(*(sum := pick(rng))):
        pass
    op, a, b = sum
    total = result(op, a, b)
    if rng.random() < 0.12 and total >= 0:
        thing, who = rng.choice(THINGS), rng.choice(['I', 'I', 'we', 'you', 'they'])
        more = rng.choice(['get {b} more', 'find {b} more', 'buy {b} more', 'receive another {b}'] if op == '+' else ['lose {b}', 'give away {b}', 'sell {b}', 'eat {b}', 'give {b} to a friend'])
        end = rng.choice([f'How many {thing} do {who} have', f'How many {thing} are there now', 'How many are there', f'how many do {who} have now', f'How many {thing} are left' if op == '-' else f'How many {thing} in total'])
        text = f'{who} have {a} {thing} and {more.format(b=b)}. {end}'
        short, thought, _ = answer(op, a, b)
        return text[0].upper() + text[1:], f'{short[:-1]}, so {total} {thing}.', thought, f'{a} {op} {b} = {total}, so {total} {thing}.'
    return (question(rng, op, a, b), *answer(op, a, b))


def compared(a: int, b: int) -> str:
    """How one sees which is greater."""
    if a == b:
        return f'All digits are the same: {a} = {b}.'
    sign = '>' if a > b else '<'
    if len(str(a)) != len(str(b)):
        digits = lambda n: f'{n} has {SMALL[len(str(n))]} digit{"s" * (n > 9)}'
        return f'{digits(a)}, {digits(b)}: {a} {sign} {b}.'
    steps = []
    for x, y in zip(str(a), str(b)):
        if x != y:
            return ', '.join([*steps, f'{x} {sign} {y}']) + f': {a} {sign} {b}.'
        steps.append(f'{x} = {y}')


def comparison(rng: random.Random, expand):
    """(question, answer, thought, answer)"""
    top = rng.choice([20, 99, 999, 999])
    a, b = rng.randint(0, top), rng.randint(0, top)
    if rng.random() < 0.3:
        b = max(0, min(999, a + rng.choice([-100, -10, -9, -2, -1, 1, 2, 9, 10, 100])))
    if rng.random() < 0.03:
        b = a
    high, low = max(a, b), min(a, b)
    kind = rng.choice(['greater', 'greater', 'less', 'is greater', 'is less', 'compare'])
    if a == b:
        said = f'{a} and {b} are equal.'
    elif kind in ('greater', 'compare'):
        said = f'{high} is greater than {low}.'
    elif kind == 'less':
        said = f'{low} is less than {high}.'
    else:
        word, true = (('greater', a > b) if kind == 'is greater' else ('less', a < b))
        said = f'Yes, {a} is {word} than {b}.' if true else f'No, {a} is {"less" if word == "greater" else "greater"} than {b}.'
    # Without thinking the digits are looked at in the answer, where one look is not enough.
    steps = compared(a, b)
    worked = f'{steps} {said}' if a != b and len(str(a)) == len(str(b)) > 1 else said
    wordings = {'greater': GREATER, 'less': LESS, 'is greater': IS_GREATER, 'is less': IS_LESS, 'compare': COMPARE}[kind]
    return expand(rng, rng.choice(wordings).replace('{a}', str(a)).replace('{b}', str(b))), worked, steps, said

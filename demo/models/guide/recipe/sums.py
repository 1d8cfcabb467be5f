"""Small sums: adding and subtracting, up to two digits."""
import random

SMALL = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen '
         'seventeen eighteen nineteen twenty').split()
TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split()

PLUS = ['{a} + {b}'] * 8 + ['{a}+{b}'] * 3 + ['{a} plus {b}'] * 5 + ['{a} and {b} together', 'the sum of {a} and {b}', '{a} added to {b}', '{a} + {b} =']
MINUS = ['{a} - {b}'] * 8 + ['{a}-{b}'] * 3 + ['{a} minus {b}'] * 5 + ['{b} subtracted from {a}', 'the difference of {a} and {b}', '{a} - {b} =', '{a} less {b}']
ORDERS = {'+': ['add {a} and {b}', 'add {a} to {b}', 'sum {a} and {b}', 'what do you get if you add {a} and {b}', 'if I add {a} to {b}, what is it'],
          '-': ['subtract {b} from {a}', 'take {b} away from {a}', 'take {b} from {a}', 'what is left if I take {b} from {a}', 'if I take {b} from {a}, what is left']}
ASKS = ['what is {}'] * 8 + ['{}'] * 8 + ["what's {}"] * 3 + ['how much is {}'] * 3 + [
    'calculate {}', 'compute {}', 'what does {} make', 'what does {} equal', 'can you do {}', 'tell me {}', 'solve {}', 'and {}', 'what about {}',
    'how about {}', 'work out {}', 'what would {} be', 'do you know {}', 'now {}', 'try {}', 'please calculate {}', 'give me {}', 'whats {}']
THINGS = 'apples books coins cookies pens cats cards stars balls tickets eggs stones cars flowers points'.split()


def held_out(op: str, a: int, b: int) -> bool:
    """A tenth of the sums beyond 20 is never trained on."""
    return max(a, b) > 20 and (a * 101 + b * 7 + (3 if op == '-' else 0)) % 10 == 4


def spell(n: int) -> str:
    if n <= 20:
        return SMALL[n]
    return TENS[n // 10 - 2] + ('-' + SMALL[n % 10] if n % 10 else '')


def pick(rng: random.Random):
    roll = rng.random()
    top = (99, 99) if roll < 0.35 else (20, 20) if roll < 0.75 else (9, 9) if roll < 0.88 else (99, 9)
    a, b = rng.randint(0, top[0]), rng.randint(0, top[1])
    op = rng.choice('+-')
    if op == '-' and a < b and rng.random() < 0.8:
        a, b = b, a
    elif op == '+' and rng.random() < 0.5:
        a, b = b, a
    return op, a, b


def result(op: str, a: int, b: int) -> int:
    return a + b if op == '+' else a - b


def question(rng: random.Random, op: str, a: int, b: int) -> str:
    x, y = (spell(a), spell(b)) if max(a, b) <= 99 and rng.random() < (0.2 if max(a, b) <= 20 else 0.05) else (a, b)
    if rng.random() < 0.12:
        return rng.choice(ORDERS[op]).format(a=x, b=y)
    return rng.choice(ASKS).format(rng.choice(PLUS if op == '+' else MINUS).format(a=x, b=y))


def turn(rng: random.Random):
    """A question and its answer, of the sums to learn from."""
    while held_out(*(sum := pick(rng))):
        pass
    op, a, b = sum
    if rng.random() < 0.06 and result(op, a, b) >= 0:
        thing = rng.choice(THINGS)
        more = rng.choice(['get {b} more', 'find {b} more', 'buy {b} more'] if op == '+' else ['lose {b}', 'give away {b}', 'sell {b}'])
        end = rng.choice([f'How many {thing} do I have', f'How many {thing} are there now', 'How many are there', 'how many do I have now'])
        text = f'I have {a} {thing} and {more.format(b=b)}. {end}'
        return text, f'{a} {op} {b} = {result(op, a, b)}, so {result(op, a, b)} {thing}.'
    return question(rng, op, a, b), f'{a} {op} {b} = {result(op, a, b)}.'

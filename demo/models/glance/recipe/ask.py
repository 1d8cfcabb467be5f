"""Ways to ask, with (a|b) and [x] as in the guide's topics."""
from noise import vary
from topics import expand

SAY = {
    'color': ['(what|which) color is the {s}', 'what is the color of the {s}', 'color of the {s}', 'what color does the {s} have', 'the {s} is what color', 'tell me the color of the {s}'],
    'shape': ['(what|which) shape is {c}', 'what is the {c} (shape|thing|object)', 'what {c} (shape|thing|object) is there', 'which shape is the {c} one', 'what shape does the {c} (thing|object) have'],
    'count': ['how many {p} are there [in the (picture|image)]', 'how many {p} (do|can) you see', 'count the {p}', 'how many {p}', 'number of {p}', 'what is the number of {p}'],
    'where': ['where is the {o}', 'in which (part|place) is the {o}', 'what is the (position|place) of the {o}', 'where do you see the {o}', 'where in the picture is the {o}'],
    'at': ['what is (in|at) the {w}', 'what do you see (in|at) the {w}', 'what is there (in|at) the {w}', 'which shape is (in|at) the {w}', 'what can be seen (in|at) the {w}'],
    'left': ['is the {a} (to the left|on the left|left) of the {b}', 'is the {a} more to the left than the {b}'],
    'right': ['is the {a} (to the right|on the right|right) of the {b}', 'is the {a} more to the right than the {b}'],
    'above': ['is the {a} (above|over|higher than) the {b}'],
    'below': ['is the {a} (below|under|lower than) the {b}'],
    'larger': ['which is (larger|bigger), the {a} or the {b}', '(what|which one) is (larger|bigger): the {a} or the {b}', 'is the {a} or the {b} (larger|bigger)'],
    'largest': ['which shape is the (largest|biggest)', 'what is the (largest|biggest) (shape|thing|object)', '(largest|biggest) shape', 'which (thing|object) is the (largest|biggest)'],
    'exists': ['is there a {o} [in the (picture|image)]', '(can|do) you see a {o}', 'does the (picture|image) (show|have|contain) a {o}', 'is a {o} (there|visible|in the picture)'],
    'caption': ['describe the (picture|image)', 'what is (in|on) (the|this) (picture|image)', 'what do you see', 'what is (this|shown)', 'caption', 'what does the (picture|image) show', 'describe what you see', 'what can you see [here]', '(explain|describe) this'],
    'ground': ['what color is the background', 'what is the background color', 'which color does the background have', 'background color'],
    'read': ['what does it say', 'read the (text|words|word)', 'what is written [there|here]', 'what (text|words) (do|can) you see', '(what|which) text is in the (picture|image)', 'what does the {t} say', 'read it', 'what is the text'],
    'number': ['(what|which) number is (shown|there|written|it)', 'what number do you see', 'read the number', 'what is the number'],
    'ink': ['what color is the (text|writing)', 'which color does the text have', 'what is the color of the (text|letters|writing)'],
    'price': ['how much does it cost', 'what is the price', 'what does it cost', 'how much is it', 'read the price', 'price'],
    'label': ['what does the button say', 'what is (on|written on) the button', 'read the button', 'what is the label of the button', 'which button is there', 'what button do you see'],
    'title': ['what is the title [of the (dialog|window)]', 'read the title', 'which title does the (dialog|window) have'],
    'message': ['what does the (dialog|window|message) say', 'read the message', 'what is the message'],
    'bars': ['how many bars (are there|do you see|does the chart have)', 'count the bars', 'number of bars'],
    'most': ['which bar is the (tallest|highest|largest|longest)', 'what is the (largest|highest) bar', 'which one is the (largest|highest|tallest)', 'what has the (largest|highest|most) value'],
    'least': ['which bar is the (shortest|lowest|smallest)', 'what is the (smallest|lowest) bar', 'which one is the (smallest|lowest|shortest)', 'what has the (smallest|lowest|least) value'],
    'value': ['what is the value of {b}', 'how (much|large|high) is {b}', 'value of {b}', 'what value does {b} have', 'which number belongs to {b}'],
    'bar color': ['what color is the bar [of] {b}', 'which color does {b} have', 'color of [the bar] {b}'],
    'click': ['(click|press|push|tap) [on] [the] {b} [button]', '(click|press|tap) the button', 'please (click|press) {b}', 'hit the {b} button', 'choose {b}'],
}


def say(d, kind: str, **words) -> str:
    """Returns a question of that kind, in one of many wordings."""
    return vary(d.rng, expand(d.rng, d.one(SAY[kind]).format(**words)), 0.5)


def a(thing: str) -> str:
    return ('an ' if thing[0] in 'aeio' else 'a ') + thing


def listed(things) -> str:
    """Returns `a, b and c`."""
    *first, last = things
    return f'{", ".join(first)} and {last}' if first else last


def plural(word: str, count: int) -> str:
    return word if count == 1 else word + ('es' if word.endswith('ss') or word.endswith('x') else 's')


def counted(count: int, word: str) -> str:
    """Returns `There are 2 stars.`"""
    return f'There are no {plural(word, 0)}.' if count == 0 else f'There {"is" if count == 1 else "are"} {count} {plural(word, count)}.'

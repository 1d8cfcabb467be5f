"""Ways to ask, with (a|b) and [x] as in the guide's topics."""
from noise import vary
from topics import expand

SAY = {
    'color it': ['(what|which) color is (it|this|that)', 'what is its color', '(what|which) color does it have', 'what color do you see', 'color', 'name the color'],
    'if': ['is the {s} {c}', 'is the color of the {s} {c}', 'does the {s} have the color {c}', 'the {s} is {c}, right'],
    'smallest': ['which shape is the smallest', 'what is the smallest (shape|thing|object)', 'smallest shape', 'which (thing|object) is the smallest'],
    'any text': ['is there [any] text [in the (picture|image)]', 'do you see [any] text', 'does the (picture|image) (have|contain) [any] text', 'are there [any] (words|letters) [in the (picture|image)]'],
    'which': ['(what|which) shape is (this|it|that|shown)', 'what shape do you see', 'which shape is in the (picture|image)', 'what (figure|shape) is there', 'name the shape', 'what is the shape', 'identify the shape'],
    'shapes': ['(what|which) shapes (are there|do you see|are in the (picture|image))', '(name|list) the shapes', 'what shapes can you see', 'list [all] the shapes [in the (picture|image)]', 'which shapes does the (picture|image) show'],
    'colors': ['(what|which) colors (are there|do you see|are in the (picture|image)|are used)', '(name|list) the colors', 'what colors do the shapes have', 'what colors are the shapes'],
    'more': ['are there more {a} than {b}', 'do you see more {a} than {b}', 'are the {a} more than the {b}', 'does the (picture|image) have more {a} than {b}'],
    'half x': ['is the {o} on the left or [on] the right [side]', 'on which side is the {o}', 'is the {o} left or right', 'which side is the {o} on'],
    'half y': ['is the {o} at the top or [at] the bottom', 'is the {o} in the upper or [in the] lower half', 'is the {o} up or down', 'is the {o} (near|closer to) the top or the bottom'],
    'most left': ['(what|which) (shape|thing|object) is (furthest|farthest|most) [to the] left', 'what is the leftmost (shape|thing|object)', 'which (shape|one) is on the left side', 'name the leftmost shape', '(what|which shape) is on the left', 'what is the (shape|object) on the left'],
    'most right': ['(what|which) (shape|thing|object) is (furthest|farthest|most) [to the] right', 'what is the rightmost (shape|thing|object)', 'which (shape|one) is on the right side', 'name the rightmost shape', '(what|which shape) is on the right', 'what is the (shape|object) on the right'],
    'most top': ['(what|which) (shape|thing|object) is (the highest|at the very top|topmost)', 'what is the topmost (shape|thing|object)', 'which shape is the uppermost', 'which shape is above all others'],
    'most bottom': ['(what|which) (shape|thing|object) is (the lowest|at the very bottom)', 'what is the lowest (shape|thing|object)', 'which shape is the lowermost', 'which shape is below all others'],
    'click it': ['(click|press|tap) [on] the {o}', 'please (click|tap) the {o}', '(select|choose|hit|touch) the {o}', 'click the {o} please', 'can you click [on] the {o}'],
    'buttons': ['(what|which) buttons (are there|do you see|does the (dialog|window) have)', 'what are the buttons', '(name|list) the buttons', 'what do the buttons say', 'which buttons can I (press|click)', 'what (choices|options) are there', 'what do the [two] buttons say', 'what is [written] on the buttons', 'what are the buttons called', 'what labels do the buttons have', 'read the buttons'],
    'bar color': ['what color are the bars', 'which color do the bars have', 'what is the color of the bars'],
    'corner': ['in (which|what) corner is the {o}', 'which corner is the {o} in'],
    'which of': ['is (this|it|the shape) {x}, {y} or {z}', '{x}, {y} or {z}'],
    'bar pair': ['is {a} (larger|higher|taller|greater|more) than {b}', 'is the bar [of] {a} (larger|higher|taller) than the bar [of] {b}', 'does {a} have (a higher value|more) than {b}'],
    'bar names': ['(what|which) bars are there', 'what are the (labels|categories|names) [of the bars]', '(name|list) the bars', 'what do the bars stand for', 'what (labels|names) are (under|below) the bars', 'read the labels', 'what is on the axis', 'which (labels|categories) does the chart have'],
    'color': ['(what|which) color is the {s}', 'what is the color of the {s}', 'color of the {s}', 'what color does the {s} have', 'the {s} is what color', 'tell me the color of the {s}'],
    'shape': ['(what|which) shape is {c}', 'what is the {c} (shape|thing|object)', 'what {c} (shape|thing|object) is there', 'which shape is the {c} one', 'what shape does the {c} (thing|object) have'],
    'count': ['how many {p} are there [in the (picture|image)]', 'how many {p} (do|can) you see', 'count the {p}', 'how many {p}', 'how many {p} are in (this|the) (picture|image|drawing)', 'how many {p} does the (picture|image) (show|have)', 'number of {p}', 'what is the number of {p}'],
    'where': ['where is the {o}', 'in which (part|place) is the {o}', 'what is the (position|place) of the {o}', 'where do you see the {o}', 'where in the picture is the {o}', '(which|what) (part|area) of the (picture|image) is the {o} in'],
    'at': ['what is (in|at) the {w}', 'what do you see (in|at) the {w}', 'what is there (in|at) the {w}', 'which shape is (in|at) the {w}', 'what can be seen (in|at) the {w}'],
    'left': ['is the {a} (to the left|on the left|left) of the {b}', 'is the {a} more to the left than the {b}'],
    'right': ['is the {a} (to the right|on the right|right) of the {b}', 'is the {a} more to the right than the {b}'],
    'above': ['is the {a} (above|over|higher than) the {b}'],
    'below': ['is the {a} (below|under|lower than) the {b}'],
    'larger': ['which is (larger|bigger), the {a} or the {b}', '(what|which one) is (larger|bigger): the {a} or the {b}', 'is the {a} or the {b} (larger|bigger)'],
    'largest': ['which shape is the (largest|biggest)', 'what is the (largest|biggest) (shape|thing|object)', '(largest|biggest) shape', 'which (thing|object) is the (largest|biggest)'],
    'exists': ['is there a {o} [in the (picture|image)]', '(can|do) you see a {o}', 'does the (picture|image) (show|have|contain) a {o}', 'is a {o} (there|visible|in the picture)'],
    'caption': ['describe the (picture|image)', 'what is (in|on) (the|this) (picture|image)', 'what do you see', 'what is (this|shown)', 'caption', 'what does the (picture|image) show', 'describe what you see', 'what can you see [here]', '(explain|describe) this', "what's in (this|the) (picture|image)", "what's (this|that|in it)", '[please] describe this (picture|image|drawing) [for me]', 'tell me what you see', 'what is in this (image|picture|drawing)', 'look at this', 'what do you see in (this|the) (image|picture)', 'can you describe (this|the image)', 'describe the (picture|image) in (one|a) sentence', 'what is shown [in the (picture|image)]', 'give me a caption', 'summarize the (picture|image)'],
    'ground': ['what color is the background', 'what is the background color', 'which color does the background have', 'background color', 'which color is behind (it|everything)', 'what is the color of the background', 'what color is the (page|canvas)', 'which color is the background'],
    'read': ['what does it say', 'read the (text|words|word)', 'what is written [there|here]', 'what (text|words) (do|can) you see', '(what|which) text is in the (picture|image)', 'what does the {t} say', 'read it', 'what is the text', 'what does (this|the picture|the image) say', 'read (this|the image|the text in this image)', 'which (word|words) (is|are) (here|there|in the picture)', '(what|which) word is (this|written|shown)', 'what is the word', 'transcribe (this|the text)', 'tell me the text', 'what does the text say', 'can you read (this|it)', 'what does the (sign|poster|banner|card|page) say', 'which text is (shown|printed)'],
    'number': ['(what|which) number is (shown|there|written|it)', 'what number do you see', 'read the number', 'what is the number', 'which number (do you see|is shown|is this)', 'what is the number (here|in the picture)', 'what number is in the (picture|image)'],
    'ink': ['what color is the (text|writing)', 'which color does the text have', 'what is the color of the (text|letters|writing)'],
    'price': ['how much does it cost', 'what is the price', 'what does it cost', 'how much is it', 'read the price', 'price', 'how expensive is (it|this)', 'what price (is shown|do you see)', 'how much is this', 'which price is on the (tag|label|sign)', 'what does the price tag say'],
    'label': ['what does the button say', 'what is (on|written on) the button', 'read the button', 'what is the label of the button', 'which button is there', 'what button do you see'],
    'title': ['what is the title [of the (dialog|window)]', 'read the title', 'which title does the (dialog|window) have', 'what is the heading', 'what does the (title|heading|title bar) say', 'what is at the top of the (dialog|window)', '(give|tell) me the title'],
    'message': ['what does the (dialog|window|message) say', 'read the message', 'what is the message', 'what is the (dialog|window) asking', 'what does the (dialog|window) (ask|tell)', 'what does it say below the title', 'what is the text of the (dialog|message)', 'which message (is shown|do you see)', 'what is the (dialog|window) about'],
    'bars': ['how many bars (are there|do you see|does the chart have)', 'count the bars', 'number of bars'],
    'most': ['which bar is the (tallest|highest|largest|longest)', 'what is the (largest|highest) bar', 'which one is the (largest|highest|tallest)', 'what has the (largest|highest|most) value', 'which (category|label) has the (largest|highest|tallest) (bar|value)', 'what is the (tallest|longest) bar', 'which (day|month|year|one|thing|name|person|color|size|team|city|region) (has|is) the (highest|largest|tallest) [bar|value]', 'on which day is it the highest', 'who has the (highest|largest) (bar|value)', 'which bar is highest', 'which value is the (highest|largest)', 'what is the most'],
    'least': ['which bar is the (shortest|lowest|smallest)', 'what is the (smallest|lowest) bar', 'which one is the (smallest|lowest|shortest)', 'what has the (smallest|lowest|least) value', 'which (category|label) has the (smallest|lowest|shortest) (bar|value)', 'what is the (shortest|lowest) bar', 'which (day|month|year|one|thing|name|person|color|size|team|city|region) (has|is) the (lowest|smallest|shortest) [bar|value]', 'on which day is it the lowest', 'who has the (lowest|smallest) (bar|value)', 'which bar is lowest', 'which value is the (lowest|smallest)', 'what is the least'],
    'value': ['what is the value of {b}', 'how (much|large|high) is {b}', 'value of {b}', 'what value does {b} have', 'which number belongs to {b}', 'what is {b}', 'what number (is on|belongs to) the {b} bar', 'what is the number of {b}', 'which value is shown for {b}', 'how (high|tall) is the {b} bar', 'how (much|many) is {b}', 'what is the (value|number) for {b}', 'how many does {b} have', 'how many {b} are there', "what is {b}'s value", 'what is the {b} value', 'read the value of {b}'],
    'click one': ['(click|press|push|tap|choose|select|hit) [on] [the] {b} [button]', 'please (click|press) [on] [the] {b} [button]', '(click|press) the button {b}', 'I want to (click|press) {b}'],
    'click': ['(click|press|push|tap) [on] [the] {b} [button]', '(click|press|tap) the button', 'please (click|press) {b}', 'hit the {b} button', 'choose {b}'],
}


def say(d, kind: str, s='', **words) -> str:
    """Returns a question of that kind, in one of many wordings."""
    return vary(d.rng, expand(d.rng, d.one(SAY[kind]).format(s=s, **words)), 0.5)


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

"""What people do to a question: other frames, politeness, case, punctuation, slips of the finger."""
import random
import re

REWRITES = [(re.compile(pattern, re.I), texts) for pattern, texts in [
    (r'^how (do|can|should|would) (I|you|we) ', ['how can I ', 'how would I ', 'how could I ', 'how to ', "what's the way to ", 'how does one ',
                                          'what do I do to ', 'how might I ', 'show me how to ', 'what is the best way to ', 'I want to ',
                                          'explain how to ', 'tell me how to ', 'how do we ', 'how do you ', 'what must I do to ']),
    (r'^can I ', ['may I ', 'could I ', 'is it possible to ', 'am I able to ', 'can we ', 'can one ', 'would I be able to ', 'is there a way to ']),
    (r'^do I need ', ['must I have ', 'do I have to have ', 'is it necessary to have ', 'do we need ', 'will I need ', 'does one need ']),
    (r'^does it ', ['will it ', 'can it ', 'does inorigin ', 'does this ', 'is it able to ']),
    (r'^is it ', ['is this ', 'is inorigin ', "isn't it ", 'would it be ']),
    (r'^what is ', ["what's ", 'whats ', 'what exactly is ', 'define ', 'what would be ', 'so what is ', 'and what is ', 'explain what is ']),
    (r'^what are ', ['what exactly are ', 'and what are ', 'so what are ', 'tell me what are ']),
    (r'^what (does|do) ', ['what exactly does ', 'so what does ', 'explain what does ']),
    (r'^which ', ['what ', 'so which ', 'tell me which ', 'and which ']),
    (r'^where (is|are|do|does) ', [r'in which place \1 ', r'so where \1 ', r'do you know where \1 ']),
    (r'^why ', ['what is the reason that ', 'how come ', 'for what reason ', 'why exactly ']),
    (r'^(tell me about|explain) ', ['could you explain ', 'please explain ', 'can you tell me about ', 'I would like to hear about ']),
    (r'\bdo not\b', ["don't"]), (r'\bcannot\b', ["can't"]), (r'\bI am\b', ["I'm", 'im']), (r"\bwhat's\b", ['whats', 'what is']),
    (r'\byou are\b', ["you're", 'ur']), (r'\bis not\b', ["isn't"]), (r'\buse\b', ['work with', 'employ', 'make use of']),
    (r'\bneed\b', ['require']), (r'\bget\b', ['obtain']), (r'\bmodels\b', ['language models', 'neural networks', 'AI models']),
    (r'\bbrowser\b', ['web browser']), (r'\bweb page|page\b', ['website', 'site']), (r'\bsend\b', ['pass', 'transmit']),
    (r'\bmake\b', ['create']), (r'\bshow me\b', ['give me', 'let me see']), (r'\bapp\b', ['application', 'web app', 'site']),
    (r'\bbig\b', ['large']), (r'\bfast\b', ['quick', 'speedy']), (r'\bstored\b', ['kept', 'saved']), (r'\bdelete\b', ['remove', 'erase']),
    (r'\bstart\b', ['begin', 'launch']), (r'\bwork\b', ['function', 'run'])]]

BEFORE = ['hey, ', 'hi, ', 'hello, ', 'please ', 'so ', 'um, ', 'ok, ', 'okay, ', 'well, ', 'and ', 'now ', 'quick question: ', 'a question: ',
          'excuse me, ', 'can you tell me ', 'could you tell me ', 'please tell me ', 'tell me, ', 'I wonder, ', 'I want to know, ', 'hey guide, ',
          'do you know ', 'say, ', 'hmm, ', 'sorry, ', 'one more: ', 'next question: ', 'thanks. ', 'great. ', 'one thing: ', "I'm curious, ",
          'hi! ', 'Hello. ', 'ok so ', 'just wondering, ', 'would you tell me ']
AFTER = [' please', ', please', ' exactly', ' then', ' again', ' in short', ' actually', ' here', ', guide', ' thanks', ' briefly', ' for me',
         ' in simple words', ' really', ', can you tell me', ', do you know', ' today', ' anyway', ' though', ' by the way']
ASKING = re.compile(r"^(what|who|whom|which|where|when|why|how|can|could|do|does|did|is|are|will|would|should|may|must|am)\b", re.I)


def slip(rng: random.Random, text: str) -> str:
    """One letter dropped, doubled, swapped or replaced in one longer word."""
    spots = [m for m in re.finditer(r'[A-Za-z]{4,}', text)]
    if not spots:
        return text
    m = rng.choice(spots)
    w, i = m[0], rng.randrange(1, len(m[0]) - 1)
    w = rng.choice([w[:i] + w[i + 1:], w[:i] + w[i] + w[i:], w[:i] + w[i + 1] + w[i] + w[i + 2:],
                    w[:i] + rng.choice('abcdefghijklmnopqrstuvwxyz') + w[i + 1:]])
    return text[:m.start()] + w + text[m.end():]


def vary(rng: random.Random, text: str, much: float = 1.0) -> str:
    if rng.random() < 0.35 * much:
        pattern, texts = rng.choice([r for r in REWRITES if r[0].search(text)] or [(re.compile('^$'), [''])])
        text = pattern.sub(rng.choice(texts), text, count=1)
    asking = bool(ASKING.match(text))
    if rng.random() < 0.2 * much:
        text = rng.choice(BEFORE) + text
    if rng.random() < 0.08 * much:
        text += rng.choice(AFTER)
    if rng.random() < 0.05 * much:
        words = text.split(' ')
        small = [i for i, w in enumerate(words) if w.lower() in ('the', 'a', 'an', 'do', 'does', 'is', 'i', 'to', 'it', 'are')]
        if small and len(words) > 2:
            del words[rng.choice(small)]
            text = ' '.join(words)
    if rng.random() < 0.08 * much:
        text = slip(rng, text)
    return finish(rng, text, asking)


def finish(rng: random.Random, text: str, asking: bool) -> str:
    """Case and closing punctuation."""
    roll = rng.random()
    if roll < 0.55:
        text = text[:1].upper() + text[1:]
    elif roll < 0.75:
        text = text.lower()
    elif roll < 0.78:
        text = text.upper()
    roll = rng.random()
    if asking:
        return text + ('?' if roll < 0.66 else ' ?' if roll < 0.68 else '??' if roll < 0.7 else '.' if roll < 0.73 else '')
    return text + ('.' if roll < 0.3 else '!' if roll < 0.45 else '?' if roll < 0.5 else '')

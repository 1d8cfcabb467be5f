"""Byte-level BPE: a small trainer, an encoder, and tokenizer.json in the format of the Hugging Face libraries."""
import heapq
import json
from collections import Counter, defaultdict
from functools import lru_cache

import regex

from settings import ADDED, MODEL_DIR, SPECIAL, VOCAB
from template import TEMPLATE

# A word, with the space before it, is cut as it is without; one digit at a time, runs of punctuation, white space. So a
# word copied from a sentence into quotes is made of the same tokens, but for the space.
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)(?!\p{L})| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERN = regex.compile(SPLIT)
# Of all merges, so many join a space and the token after it; they come last.
SPACED = 480


def byte_letters():
    """Every byte as a printable letter, as in GPT-2's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


LETTER = byte_letters()
BYTE = {letter: byte for byte, letter in LETTER.items()}
SPACE = LETTER[32]


def words(text: str):
    return [''.join(LETTER[b] for b in w.encode()) for w in PATTERN.findall(text)]


def train(texts, vocab=VOCAB):
    """The merges: most frequent pair first within words, then those of a space and a word's first token."""
    counts = Counter(w for t in texts for w in words(t))
    bare = Counter()
    for w, n in counts.items():
        bare[w.removeprefix(SPACE) or w] += n
    merges = within(bare, vocab - 256 - len(ADDED) - SPACED)
    plain, first = Tokenizer(merges, SPACED), Counter()
    for w, n in counts.items():
        if len(w) > 1 and w[0] == SPACE and w[1] != SPACE:
            first[plain.parts(w[1:])[0]] += n
    return merges + [(SPACE, token) for token, _ in first.most_common(SPACED)]


def within(counts, size):
    # A root of the counts: rare words shall be short too, not only those of the answers.
    parts = [(list(w), max(1, round(n ** 0.7))) for w, n in counts.items()]
    pairs, where = Counter(), defaultdict(set)
    for i, (p, n) in enumerate(parts):
        for pair in zip(p, p[1:]):
            pairs[pair] += n
            where[pair].add(i)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < size:
        n, pair = heapq.heappop(heap)
        if pairs[pair] != -n:
            continue
        merges.append(pair)
        touched = set()
        for i in where.pop(pair):
            p, n = parts[i]
            for old in zip(p, p[1:]):
                pairs[old] -= n
                touched.add(old)
            p[:] = merge(p, pair)
            for new in zip(p, p[1:]):
                pairs[new] += n
                where[new].add(i)
                touched.add(new)
        for t in touched:
            if pairs[t] > 0:
                heapq.heappush(heap, (-pairs[t], t))
    return merges


def merge(p, pair):
    out, i = [], 0
    while i < len(p):
        if i + 1 < len(p) and (p[i], p[i + 1]) == pair:
            out.append(p[i] + p[i + 1])
            i += 2
        else:
            out.append(p[i])
            i += 1
    return out


class Tokenizer:
    def __init__(self, merges, missing=0):
        self.merges = [tuple(m) for m in merges]
        vocab = [LETTER[b] for b in range(256)] + [a + b for a, b in self.merges] + ADDED
        assert len(vocab) + missing == VOCAB and len(set(vocab)) == len(vocab)
        self.id = {token: i for i, token in enumerate(vocab)}
        self.token = vocab
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.added = regex.compile('(' + '|'.join(map(regex.escape, ADDED)) + ')')
        self.word = lru_cache(maxsize=200_000)(self.word)

    @classmethod
    def load(cls, folder=MODEL_DIR):
        return cls(json.loads((folder / 'tokenizer.json').read_text())['model']['merges'])

    def parts(self, w):
        p = list(w)
        while len(p) > 1:
            best = min(zip(p, p[1:]), key=lambda pair: self.rank.get(pair, 1 << 30))
            if best not in self.rank:
                break
            p = merge(p, best)
        return p

    def word(self, w):
        return [self.id[x] for x in self.parts(w)]

    def encode(self, text: str, special=True):
        """Token ids; with special=False the text cannot contain a control token."""
        out = []
        for part in self.added.split(text) if special else [text]:
            if special and part in self.id and part in ADDED:
                out.append(self.id[part])
            else:
                for w in words(part):
                    out += self.word(w)
        return out

    def decode(self, ids, skip_special=False):
        out = bytearray()
        for i in ids:
            token = self.token[i]
            if token in ADDED:
                out += b'' if skip_special and hidden(token) else token.encode()
            else:
                out += bytes(BYTE[c] for c in token)
        return out.decode(errors='replace')

    def save(self, folder=MODEL_DIR):
        folder.mkdir(parents=True, exist_ok=True)
        added = [{'id': self.id[t], 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False,
                  'normalized': False, 'special': hidden(t)} for t in ADDED]
        split = {'type': 'Split', 'pattern': {'Regex': SPLIT}, 'behavior': 'Isolated', 'invert': False}
        level = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': False, 'use_regex': False}
        tokenizer = {
            'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added, 'normalizer': None,
            'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [split, level]}, 'post_processor': level, 'decoder': level,
            'model': {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': '',
                      'end_of_word_suffix': '', 'fuse_unk': False, 'byte_fallback': False, 'ignore_merges': False,
                      'vocab': {t: i for i, t in enumerate(self.token) if t not in ADDED},
                      'merges': [list(m) for m in self.merges]}}
        config = {
            'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': 2048, 'add_bos_token': False, 'add_prefix_space': False,
            'bos_token': None, 'eos_token': '<|im_end|>', 'pad_token': '<|endoftext|>', 'unk_token': None,
            'clean_up_tokenization_spaces': False, 'split_special_tokens': False,
            'added_tokens_decoder': {str(a['id']): {k: v for k, v in a.items() if k != 'id'} for a in added},
            'additional_special_tokens': [t for t in ADDED if hidden(t) and t != '<|endoftext|>'],
            'chat_template': TEMPLATE}
        write = lambda name, value: (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + '\n')
        write('tokenizer.json', tokenizer)
        write('tokenizer_config.json', config)


def hidden(token: str) -> bool:
    """Control tokens vanish from decoded text; thinking and tool tags stay visible."""
    return token in SPECIAL or token.startswith('<|reserved')


if __name__ == '__main__':
    import generate
    Tokenizer(train(generate.texts(16_000))).save()
    print(f'tokenizer.json: {VOCAB} tokens')

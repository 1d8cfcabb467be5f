"""Chats about a picture as token ids: the part up to the picture, which all questions share, and the rest."""
from functools import cache

from places import MARKERS
from settings import RESERVED
from template import pieces
from tokenizer import Tokenizer


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.load()


@cache
def marker_ids() -> dict:
    """Returns the id of each marker: that of a reserved token of the guide's."""
    return {marker: tokenizer().id[reserved] for marker, reserved in zip(MARKERS, RESERVED)}


# An image in a text, before it becomes rows: border, whole, image, border.
PICTURE = RESERVED[1] + RESERVED[2] + RESERVED[0] + RESERVED[1]


# This stands before and behind printed text in an answer. Its letters are tokens of their own.
SPELLED = '\x01'


def letters_of(text: str) -> list:
    """Returns the ids of each letter's bytes."""
    return [token for letter in text for token in tokenizer().encode(letter)]


def encode(messages, tools=None, **options) -> tuple[list, list]:
    """Returns (ids, mask of what the assistant says). A picture precedes the text of each message with `picture`.

    Printed text is given letter by letter in the last answer alone. A runtime encodes the earlier ones like all other text.
    """
    messages = [{**message, 'content': PICTURE + message['content']} if message.get('picture') else message for message in messages]
    ids, learn, written = [], [], list(pieces(messages, tools, **options))
    last = max((at for at, (_, said) in enumerate(written) if said), default=0)
    for at, (text, said) in enumerate(written):
        if at < last and SPELLED in text:
            text, said = text.replace(SPELLED, ''), False
        part = [token for number, piece in enumerate(text.split(SPELLED)) for token in (letters_of(piece) if number % 2 else tokenizer().encode(piece))]
        ids += part
        learn += [said] * len(part)
    return ids, learn


def split(ids: list, rows: int) -> tuple[list, int]:
    """Returns (the ids up to the end of the first picture with one id for each of its rows, how many of `ids` that part had)."""
    at = ids.index(marker_ids()['<image>'])
    return [*ids[:at], *[ids[at]] * rows, ids[at + 1]], at + 2


def widen(ids: list, learn: list, rows: int) -> tuple[list, list]:
    """Returns both lists with one id for each row of a picture that is in them."""
    image, wide, mask = marker_ids()['<image>'], [], []
    for token, said in zip(ids, learn):
        times = rows if token == image else 1
        wide += [token] * times
        mask += [said] * times
    return wide, mask

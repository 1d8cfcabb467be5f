"""Emoji and what Unicode names them, from Python's own tables."""
import unicodedata

RANGES = [(0x2600, 0x2700), (0x1f300, 0x1f650), (0x1f680, 0x1f700), (0x1f90c, 0x1fa00), (0x1fa70, 0x1fb00)]


def read() -> list[tuple[str, str]]:
    pairs = []
    for begin, end in RANGES:
        for code in range(begin, end):
            sign = chr(code)
            if unicodedata.category(sign) != 'So':
                continue
            name = unicodedata.name(sign, '').lower().replace('-', ' ')
            if name and not name.startswith(('domino', 'mahjong', 'playing card')):
                pairs.append((sign, name.replace('with ', '').replace(' face', '')))
    return pairs

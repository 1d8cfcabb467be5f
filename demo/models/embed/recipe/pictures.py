"""Emoji: what Unicode names them, from Python's own tables, and the words by which people look for them."""
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

RANGES = [(0x2600, 0x2700), (0x1f300, 0x1f650), (0x1f680, 0x1f700), (0x1f90c, 0x1fa00), (0x1fa70, 0x1fb00)]


def read(annotations: Path) -> list[tuple[str, list[str]]]:
    """Each sign with its names, Unicode's first."""
    words = {}
    for found in ElementTree.parse(annotations / 'en.xml').iter('annotation'):
        words.setdefault(found.get('cp'), []).extend(found.text.lower().split(' | '))
    pairs = []
    for begin, end in RANGES:
        for code in range(begin, end):
            sign = chr(code)
            if unicodedata.category(sign) != 'So':
                continue
            name = unicodedata.name(sign, '').lower().replace('-', ' ')
            if name and not name.startswith(('domino', 'mahjong', 'playing card')):
                first = name.replace('with ', '').replace(' face', '')
                pairs.append((sign, list(dict.fromkeys([first, *words.get(sign, [])]))))
    return pairs

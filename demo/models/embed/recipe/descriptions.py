"""What Debian says of its packages, to measure with: the short line and the paragraphs of each description."""
import random
import re
import subprocess
from pathlib import Path

LISTS, FILES = Path('/var/lib/apt/lists'), '*_main_i18n_Translation-en*'
HELP = """No descriptions of packages in {}, so they do not measure. To fetch them, which leaves apt as it is:
  mkdir -p FOLDER/partial
  printf 'Acquire::Languages "en";\\nDir::State::Lists "FOLDER";\\n' > /tmp/apt.conf
  APT_CONFIG=/tmp/apt.conf apt-get -o Acquire::Languages=en update
and --lists FOLDER."""
# Boilerplate that many packages share says nothing of any of them.
COMMON = re.compile(r'^(this (is a |is an |is the )?(dummy|transitional|empty|package (contains|provides|is|includes|installs|ships))'
                    r'|install this|to use this|these are|note|homepage|see )', re.I)
PART = re.compile(r'\s*[-–(:,]\s*\(?(common|shared|runtime|development|devel|debug|documentation|data|headers?|static|library|plugin|'
                  r'dev|doc|examples?|transitional|python ?3?|architecture|binary|meta).*$', re.I)


def some(lists: Path, count: int, seed: int) -> list[tuple[str, list[str]]]:
    """As many of them, or none where there are none. Nothing is learnt from them."""
    if not any(lists.glob(FILES)):
        print(HELP.format(lists))
        return []
    found = read(lists)
    random.Random(seed).shuffle(found)
    return found[:count]


def read(lists: Path) -> list[tuple[str, list[str]]]:
    """(short line, paragraphs) of each, without the families that one description is shared by."""
    seen, found = set(), []
    for file in sorted(lists.glob(FILES)):
        text = subprocess.run(['/usr/lib/apt/apt-helper', 'cat-file', str(file)],
                              check=True, capture_output=True, text=True).stdout
        for record in text.split('\n\n'):
            _, _, description = record.partition('Description-en: ')
            short, _, rest = description.partition('\n')
            paragraphs = [tidy(part) for part in re.split(r'\n \.\n', '\n' + rest)]
            paragraphs = [part for part in paragraphs if len(part) > 40 and not COMMON.match(part)]
            if not paragraphs or paragraphs[0] in seen or len(short) < 12:
                continue
            seen.add(paragraphs[0])
            found.append((PART.sub('', short), paragraphs))
    return found


def tidy(paragraph: str) -> str:
    """Lists begin lines of their own, all else is filled."""
    return re.sub(r'\s+', ' ', re.sub(r'\n\s+[*+-] ', '; ', paragraph)).strip()

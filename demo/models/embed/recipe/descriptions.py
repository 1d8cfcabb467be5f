"""What Debian says of its packages: the short line and the paragraphs of each description."""
import re
import subprocess
from pathlib import Path

LISTS = Path('/var/lib/apt/lists')
HELP = """No descriptions of packages in {}. Fetch them first, which leaves apt as it is:
  mkdir -p {}/partial
  printf 'Acquire::Languages "en";\\nDir::State::Lists "{}";\\n' > /tmp/apt.conf
  APT_CONFIG=/tmp/apt.conf apt-get -o Acquire::Languages=en update"""
# Boilerplate that many packages share says nothing of any of them.
COMMON = re.compile(r'^(this (is a |is an |is the )?(dummy|transitional|empty|package (contains|provides|is|includes|installs|ships))'
                    r'|install this|to use this|these are|note|homepage|see )', re.I)
PART = re.compile(r'\s*[-–(:,]\s*\(?(common|shared|runtime|development|devel|debug|documentation|data|headers?|static|library|plugin|'
                  r'dev|doc|examples?|transitional|python ?3?|architecture|binary|meta).*$', re.I)


def read(lists: Path = LISTS) -> list[tuple[str, list[str]]]:
    """(short line, paragraphs) of each, without the families that one description is shared by."""
    files = sorted(lists.glob('*_main_i18n_Translation-en*'))
    if not files:
        raise SystemExit(HELP.format(lists, lists, lists))
    seen, found = set(), []
    for file in files:
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

"""What the manuals of some software say: their sections, each a heading and its paragraphs."""
import re
from html.parser import HTMLParser
from pathlib import Path

# Indexes, lists of what is in a release, and pages that repeat others.
SKIP = re.compile(r'/(releases|genindex|py-modindex|search|bookindex|release-|c3ref|all)', re.I)
HEADINGS = {'h1', 'h2', 'h3', 'h4', 'h5'}
UNREAD = {'script', 'style', 'pre', 'table', 'nav'}
NUMBER = re.compile(r'^([A-Z]?[\d.]+|Chapter \w+\.?)\s*')


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sections: list[tuple[str, list[str]]] = []
        self.inside, self.text, self.unread = '', [], 0

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag in UNREAD:
            self.unread += 1
        elif tag in HEADINGS or tag in ('p', 'dd', 'li'):
            self.end()
            self.inside = 'heading' if tag in HEADINGS else 'paragraph'

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self.unread = max(0, self.unread - 1)
        elif tag in HEADINGS or tag in ('p', 'dd', 'li'):
            self.end()

    def handle_data(self, data: str) -> None:
        if self.inside and not self.unread:
            self.text.append(data)

    def end(self) -> None:
        text = re.sub(r'\s+', ' ', ''.join(self.text)).strip(' ¶#')
        if self.inside == 'heading' and text:
            self.sections.append((NUMBER.sub('', text), []))
        elif self.inside == 'paragraph' and len(text) > 60 and self.sections:
            self.sections[-1][1].append(text)
        self.inside, self.text = '', []


def read(folders: list[Path]) -> list[tuple[str, list[str]]]:
    """(heading, paragraphs) of each section; what stands in several places is read once."""
    found, seen = [], set()
    for folder in folders:
        for path in sorted(folder.rglob('*.html')):
            if SKIP.search(f'/{path.relative_to(folder)}'):
                continue
            reader = Reader()
            reader.feed(path.read_text(errors='replace'))
            for heading, paragraphs in reader.sections:
                new = [text for text in dict.fromkeys(paragraphs) if text not in seen]
                seen.update(new)
                if new and len(heading) > 3:
                    found.append((heading, new))
    return found

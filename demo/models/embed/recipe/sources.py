"""What is learnt from besides our own text: files of Debian packages whose terms are permissive."""
from pathlib import Path

# What each is under stands in NOTICE.md, which travels with the weights.
PACKAGES = {
    'wordnet-base': 'usr/share/wordnet',
    'unicode-cldr-core': 'usr/share/unicode/cldr/common/annotations',
    'sqlite3-doc': 'usr/share/doc/sqlite3',
    'postgresql-doc-15': 'usr/share/doc/postgresql-doc-15/html',
    'python-django-doc': 'usr/share/doc/python-django-doc/html',
    'nodejs-doc': 'usr/share/doc/nodejs/api',
}
MANUALS = ['sqlite3-doc', 'postgresql-doc-15', 'python-django-doc', 'nodejs-doc']
HELP = """Not found below {root}: {missing}. Fetch and unpack them, which installs nothing:
  mkdir -p FOLDER && cd FOLDER && apt-get download {packages}
  for package in *.deb; do dpkg -x "$package" .; done
and give the folder with --sources FOLDER."""


def folders(root: Path) -> dict[str, Path]:
    """Where each package's files lie below `root`; ends the program if some do not."""
    found = {package: root / folder for package, folder in PACKAGES.items()}
    missing = [package for package, folder in found.items() if not folder.is_dir()]
    if missing:
        raise SystemExit(HELP.format(root=root, missing=', '.join(missing), packages=' '.join(PACKAGES)))
    return found

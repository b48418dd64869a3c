"""How well texts in seven languages are found, by questions in their language and in English, with each model.

    python -m bench languages [--guide FOLDER]

The notes in bench/data/languages.txt were not used to choose any weight. --guide names the folder of Debian's
installation guide (`apt-get download installation-guide-amd64`, unpacked: usr/share/doc/installation-guide-amd64).
Its sections are found by their headings and by six words of their text, which their pages do not repeat. How much
meaning counts in a language that a model does not know (search.candidates.meaning_share) was chosen on every second
section; the others were held out. The multilingual model is measured if its package is installed.
"""

import os
import random
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser

from bench.asking import HEAD, Judged, ask_all, memory, row
from bench.corpora import Ask, Corpus
from bench.table import show
from bench.vectors import CACHE, Kept
from quaid.embedding import registry as embedders
from quaid.embedding.registry import EmbedderEnvironment
from quaid.model.page import build_page

NOTES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "languages.txt")
GUIDE_LANGUAGES = ("de", "fr", "es", "ru", "ko", "ja", "zh_CN")
MOST_SECTIONS = 130
LONGEST_SECTION = 900
_NUMBER = re.compile(r"^[\dA-F]+(?:\.[\dA-F]+)*\.?\s*")


def main() -> None:
    guide = sys.argv[sys.argv.index("--guide") + 1] if "--guide" in sys.argv[:-1] else ""
    for name in (embedders.DEFAULT_MODEL, embedders.MULTILINGUAL_MODEL):
        here = EmbedderEnvironment(os.path.join(CACHE, "models"), os.environ)
        model = embedders.get_embedder(name, {}, here)
        if problem := model.ready():
            print(f"bench.languages: {name} is not measured: {problem}")
            continue
        os.makedirs(CACHE, exist_ok=True)
        embedder = Kept(model, os.path.join(CACHE, f"{name}.db"))
        measure([notes()], embedder)
        if guide:
            measure([guide_sections(guide, language) for language in GUIDE_LANGUAGES], embedder)


def measure(corpora: list[Corpus], embedder: Kept) -> None:
    """Ask each corpus its questions, and show one table for all of them."""
    judged: list[Judged] = []
    for corpus in corpora:
        with memory(corpus, embedder) as db:
            judged += ask_all(corpus, db, embedder)
    rows = []
    for category in sorted({each.ask.category for each in judged}):
        some = [each for each in judged if each.ask.category == category]
        rows += [row(f"{category} ({len(some)}): {way}", some, way) for way in ("words", "meaning", "sum")]
    show(f"{corpora[0].name}, {embedder.name}", rows, HEAD)


def notes() -> Corpus:
    """Sixty short notes in one memory."""
    pages, asks = [], []
    with open(NOTES, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    for number, line in enumerate(lines):
        language, title, text, own, english = (part.strip() for part in line.split(" | "))
        slug = f"notes/{language}-{number}"
        pages.append(build_page(slug, {"title": title, "type": "source"}, text, ""))
        asks += [Ask(own, {slug: 1.0}, "own language"), Ask(english, {slug: 1.0}, "English")]
    return Corpus("notes in seven languages", pages, asks)


# Debian's installation guide


def guide_sections(folder: str, language: str) -> Corpus:
    """The sections of one language, and the headings of the same sections in English."""
    english = dict(_sections(os.path.join(folder, "en")))
    sections = {key: part for key, part in _sections(os.path.join(folder, language)) if key in english}
    rng = random.Random(language)
    pages, asks = [], []
    for number, (key, (heading, text)) in enumerate(list(sections.items())[:MOST_SECTIONS]):
        gains, half = {f"guide/{key}": 1.0}, "tuned on" if number % 2 else "held out"
        pages.append(build_page(f"guide/{key}", {"type": "source", "title": key}, text, ""))
        asks.append(Ask(english[key][0], gains, f"English heading, {half}"))
        asks.append(Ask(heading, gains, f"own heading, {half}"))
        if words := _some_words(text, language, rng):
            asks.append(Ask(words, gains, f"own words, {half}"))
    texts = [ask.text for ask in asks]
    return Corpus("installation guide", pages, [ask for ask in asks if texts.count(ask.text) == 1])


def _some_words(text: str, language: str, rng: random.Random) -> str:
    """Six words out of the middle of a text, or fourteen characters where words are not separated."""
    if language in ("ja", "zh_CN"):
        at = rng.randrange(5, len(text) - 20) if len(text) >= 40 else -1
        return text[at : at + 14] if at >= 0 else ""
    words = text.split()
    at = rng.randrange(2, len(words) - 9) if len(words) >= 14 else -1
    return " ".join(words[at : at + 6]) if at >= 0 else ""


def _sections(folder: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield heading and text of each section, with a key that is the same in all languages."""
    for name in sorted(os.listdir(folder)):
        if not re.fullmatch(r"(ch|ap)\w+\.html", name):
            continue
        reader = _SectionReader()
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            reader.feed(file.read())
        for number, (heading, paragraphs) in enumerate(reader.sections):
            lines = [" ".join(paragraph.split()) for paragraph in "".join(paragraphs).split("\n\n")]
            text = "\n\n".join(line for line in lines if len(line) > 1)[:LONGEST_SECTION]
            title = _NUMBER.sub("", " ".join(heading.split()))
            if len(text) > 150 and len(title) > 3:
                yield f"{name[:-5]}-{number}of{len(reader.sections)}", (title, text)


class _SectionReader(HTMLParser):
    """Collects the headings of an HTML page, and the text below each of them."""

    HEADINGS, SKIPPED = ("h1", "h2", "h3", "h4"), ("head", "script", "style", "table")
    BLOCKS = ("p", "li", "pre", "dt", "dd", "div")

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[tuple[str, list[str]]] = []
        self._heading: str | None = None
        self._skipped = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in self.SKIPPED
        if tag in self.HEADINGS:
            self._heading = ""
        elif tag in self.BLOCKS and self.sections:
            self.sections[-1][1].append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in self.SKIPPED
        if tag in self.HEADINGS and self._heading is not None:
            self.sections.append((self._heading, []))
            self._heading = None

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._heading is not None:
            self._heading += data
        elif self.sections:
            self.sections[-1][1].append(data)


if __name__ == "__main__":
    main()

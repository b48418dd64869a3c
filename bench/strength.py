"""How well the strength of an answer tells what the memory does not know.

    python -m bench strength [--quick]

Four kinds of questions are asked: some that the memory answers, some on subjects that it does not have (in
memories of 1,000, 10,000 and 100,000 chunks), some whose page was taken away, and some on a subject that it has
but without the answer. AUC is the probability that a question with an answer gets a higher score than one
without. The figures named "dev" were used to choose the limits and weights in quaid.search.results; those named
"test" were not. Everything goes through the real store, the real model and the real pipeline, except that most
chunks of the largest memories are made up (see `made_up`).
"""

import os
import random
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bench.asking import fill, memory, save
from bench.corpora import Ask, Corpus, data_file, data_folder, described, kubernetes, locomo
from bench.table import show, verdict
from bench.vectors import Kept
from quaid.model.chunker import split_statements
from quaid.model.page import Page, build_page
from quaid.search.answer import build_answer
from quaid.search.candidates import rank_question
from quaid.search.results import RESULTS_JUDGED
from quaid.storage import collections, vector_index
from quaid.storage.sqlite.connection import Database

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
CASES = os.path.join(DATA, "strength.txt")
PAIRS = os.path.join(DATA, "missing.txt")
SPAN = re.compile(r"\{([12]):(.*?)(?:\|(.*?))?\}")
"""The text that answers question 1 or 2 of a page, and what stays if it is taken away."""
SPLITS = ("dev", "test")
SIZES = (1_000, 10_000, 100_000)
FOLDS = 4
"""A share of 1 / FOLDS of the pages is taken away at a time."""
CHUNKS_PER_PAGE = 40
ADVERSARIAL = "5"
"""The category of questions in LoCoMo that have no answer."""
ABSENT = (3, 9)
"""The conversation that no memory has, for each split. The names in it are in no other one."""
SECTIONS = 7
"""The pages of the manual have this many chunks on average."""


class Cases(NamedTuple):
    """Pages written for this, with questions that they answer, questions that they do not, and foreign ones."""

    pages: list[Page]
    answered: list[Ask]
    reworded: list[Ask]
    """Answered by a page, but in other words."""
    missing: list[Ask]
    foreign: list[Ask]


class Rated(NamedTuple):
    score: float
    strength: str


def cases(split: int) -> Cases:
    """The pages, and every second question."""
    found = Cases([], [], [], [], [])
    slug = title = ""
    with open(CASES, encoding="utf-8") as file:
        for line in filter(None, map(str.strip, file)):
            mark, _, rest = line.partition(" ")
            if mark == "page":
                slug, _, title = rest.partition(" ")
            elif line == "foreign":
                slug = ""
            elif not slug:
                found.foreign.append(Ask(line, {}))
            elif mark in ("+", "~", "-"):
                if len(found.pages) % 2 == split:
                    asks = {"+": found.answered, "~": found.reworded, "-": found.missing}[mark]
                    asks.append(Ask(rest, {slug: 1.0}))
            else:
                found.pages.append(build_page(slug, {"title": title, "type": "note"}, line, ""))
    return found._replace(foreign=found.foreign[split::2])


def pairs(split: int) -> tuple[list[str], list[tuple[str, int]]]:
    """Every second page of PAIRS, with marked answers, and the questions, each with the number of its answer."""
    pages: list[str] = []
    asks: list[tuple[int, str, int]] = []
    with open(PAIRS, encoding="utf-8") as file:
        for line in filter(None, map(str.strip, file)):
            if line[:2] in ("1 ", "2 "):
                asks.append((len(pages) - 1, line[2:], int(line[0])))
            elif line.startswith("page "):
                pages.append(line[5:])
            else:
                pages[-1] += f"\n{line}"
    return pages[split::2], [(text, span) for page, text, span in asks if page % 2 == split]


def without_span(page: str, number: int) -> Page:
    """The page without the answer of this number, or with both answers if the number is 0."""
    head, text = page.split("\n", 1)
    slug, title = head.split(" ", 1)
    text = SPAN.sub(lambda match: match[3] or "" if int(match[1]) == number else match[2], text)
    return build_page(slug, {"title": title, "type": "note"}, " ".join(text.split()), "")


# Made-up chunks


class Blend(Kept):
    """The real model, and for made-up chunks a vector between those of the two chunks that they are made of.

    x and y are two real vectors and m the mean of all: m + sqrt(1 - a) (x - m) + sqrt(a) (y - m) has the same mean
    and covariance as the real ones. The nearest of 1,000 is as near to a foreign question as with real ones (0.22
    and 0.24 on the scale from an unrelated chunk to the question itself).
    """

    def __init__(self, model: Kept, parts: dict[str, tuple[str, str, float]]) -> None:
        self._model = model
        self._parts = parts
        self.name, self.dimensions, self.max_tokens = model.name, model.dimensions, model.max_tokens
        self.query_prefix, self.passage_prefix = model.query_prefix, model.passage_prefix

    def embed_query(self, text: str) -> bytes:
        return self._model.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        import numpy

        real = list(dict.fromkeys(part for pair in self._parts.values() for part in pair[:2]))
        if not hasattr(self, "_vectors"):
            made = [numpy.frombuffer(each, "<f4") for each in self._model.embed_passages(real)]
            self._vectors = dict(zip(real, made, strict=True))
            self._mean = numpy.mean(made, axis=0) if made else 0.0
        found = []
        for text in texts:
            parts = self._parts.get(text.partition("\n")[2])
            if parts is None:
                found += self._model.embed_passages([text])
                continue
            first, second, share = parts
            mean = self._mean
            vector = mean + (1 - share) ** 0.5 * (self._vectors[first] - mean)
            vector = vector + share**0.5 * (self._vectors[second] - mean)
            found.append((vector / numpy.linalg.norm(vector)).astype("<f4").tobytes())
        return found


def made_up(pages: Sequence[Page], count: int) -> tuple[list[Page], dict[str, tuple[str, str, float]]]:
    """Pages with made-up chunks, and what each chunk is made of.

    A chunk has the first statements of a paragraph and the last ones of another, so that its words fit its vector.
    """
    rng = random.Random(zlib.crc32(b"strength"))
    real = [(page.title, text) for page in pages for text in page.truth.split("\n\n")]
    parts: dict[str, tuple[str, str, float]] = {}
    while len(parts) < count:
        (above, first), (below, second), share = rng.choice(real), rng.choice(real), rng.uniform(0.1, 0.5)
        opening, ending = split_statements(first), split_statements(second)
        text = " ".join(
            [
                *opening[: max(1, round(len(opening) * (1 - share)))],
                *ending[len(ending) - max(1, round(len(ending) * share)) :],
            ]
        )
        parts.setdefault(" ".join(text.split()), (f"{above}\n{first}", f"{below}\n{second}", share))
    texts = list(parts)
    made = [
        build_page(
            f"made-up/{at}",
            {"title": f"Talk {at}", "type": "source"},
            "\n\n".join(texts[at : at + CHUNKS_PER_PAGE]),
            "",
        )
        for at in range(0, count, CHUNKS_PER_PAGE)
    ]
    return made, parts


# Memories of three sizes


class Sized(NamedTuple):
    manual: Corpus
    talks: list[Page]
    embedder: Kept
    answered: list[Ask]
    foreign: list[Ask]

    @contextmanager
    def stored(self) -> Iterator[Database]:
        """A memory with the manual in sections and the conversations in turns."""
        with memory(self.manual, None) as db:
            db.write(lambda tx: collections.set_setting(tx, "chunk_strategy", "paragraph"))
            save(db, self.talks, len(self.manual.pages))
            fill(db, self.embedder)
            yield db


def sized(split: int, size: int, talks: Sequence[Corpus], manual: Corpus, embedder: Kept) -> Sized:
    """A memory of this many chunks: a conversation and pages of the manual first, then other conversations.

    The conversation is the first of its split. Questions on another one, which no memory has, are foreign.
    """
    asked, absent = talks[5 * split], talks[ABSENT[split]]
    others = [page for talk in talks if talk not in (asked, absent) for page in talk.pages]
    documents = manual.pages[split:50:2] if size == SIZES[0] else manual.pages
    pages = list(asked.pages)
    left = size - _paragraphs(pages) - SECTIONS * len(documents)
    for page in others:
        if left > 0:
            pages.append(page)
            left -= _paragraphs([page])
    model = embedder
    if left > 0:
        more, parts = made_up(others, left)
        pages, model = [*pages, *more], Blend(embedder, parts)
    slugs = {page.slug for page in documents}
    answered = [
        *(ask for ask in asked.asks[::2] if ask.category != ADVERSARIAL),
        *(ask for ask in manual.asks[split::2] if slugs >= ask.gains.keys()),
    ]
    foreign = [*absent.asks[::4], *cases(split).foreign]
    return Sized(manual._replace(pages=documents, now=asked.now), pages, model, answered, foreign)


def _paragraphs(pages: Sequence[Page]) -> int:
    return sum(page.truth.count("\n\n") + 1 for page in pages)


def conversations() -> list[Corpus]:
    """Those of LoCoMo, each with slugs of its own."""
    found = []
    for number, (_, sessions) in enumerate(locomo(os.path.join(data_folder(), "locomo10.json")), 1):
        prefix = f"talk-{number}/"
        pages = [page._replace(slug=prefix + page.slug) for page in sessions.pages]
        asks = [
            ask._replace(gains={prefix + slug: gain for slug, gain in ask.gains.items()})
            for ask in sessions.asks
        ]
        found.append(sessions._replace(pages=pages, asks=asks))
    return found


# Asking


def rate_all(db: Database, embedder: Kept, asks: Sequence[Ask], now: str) -> list[Rated]:
    index = vector_index.ChunkIndex(db)
    rated = []
    for ask in asks:
        answer = build_answer(db, rank_question(db, embedder, ask.text, now=now, vectors=lambda: index))
        scores = [result.score for result in answer.results[:RESULTS_JUDGED]]
        rated.append(Rated(max(scores, default=0.0), answer.strength))
    return rated


def without_pages(corpus: Corpus, embedder: Kept) -> Iterator[tuple[Database, list[Ask]]]:
    """Memories without a share of the pages, each with the questions that only those pages answer."""
    for fold in range(FOLDS):
        gone = {page.slug for page in corpus.pages[fold::FOLDS]}
        asks = [ask for ask in corpus.asks if gone >= ask.gains.keys()]
        if asks:
            left = [page for page in corpus.pages if page.slug not in gone]
            with memory(corpus._replace(pages=left), embedder) as db:
                yield db, asks


def auc(higher: Sequence[Rated], lower: Sequence[Rated]) -> float:
    """The probability that one of the first has a higher score than one of the others; ties count half."""
    pairs = [(one.score > two.score) + (one.score == two.score) / 2 for one in higher for two in lower]
    return sum(pairs) / len(pairs)


def share(rated: Sequence[Rated], strength: str) -> float:
    return sum(each.strength == strength for each in rated) / len(rated)


# What is told of it


def main() -> None:
    quick = "--quick" in sys.argv
    if data_file("locomo10.json", "strength") is None:
        return
    embedder = Kept.open()
    talks = conversations()
    archive = os.path.join(data_folder(), "kubernetes-docs-en.tar.gz")
    manual = Corpus("kubernetes descriptions", [], [])
    if not quick and os.path.exists(archive):
        manual = described(kubernetes(archive))
    written(talks, embedder)
    paired(talks, embedder)
    foreign(talks, manual, embedder, SIZES[:1] if quick else SIZES)
    removed(talks, manual, embedder, quick=quick)


def written(talks: Sequence[Corpus], embedder: Kept) -> None:
    """The pages written for this, beside a conversation."""
    rows = []
    for split, name in enumerate(SPLITS):
        talk, case = talks[5 * split], cases(split)
        with memory(talk._replace(pages=[*talk.pages, *case.pages]), embedder) as db:
            rated = [rate_all(db, embedder, asks, talk.now) for asks in case[1:]]
        kinds = ("answered", "answered in other words", "subject known, answer missing", "foreign")
        for kind, some in zip(kinds, rated, strict=True):
            told = f"{auc(rated[0], some):.3f}" if kind != kinds[0] else "-"
            rows.append((f"{kind}, {name}", str(len(some)), told, *_shares(some)))
    show("Pages and questions written for this", rows, ("questions", "number", "AUC", *SHARES))


def rate_pairs(split: int, talk: Corpus, embedder: Kept) -> list[tuple[str, Rated, Rated]]:
    """Each question of PAIRS, rated with its answer in the memory and without it."""
    texts, asks = pairs(split)
    rated: dict[tuple[str, int], Rated] = {}
    for removed_span in range(3):
        asked = [Ask(text, {}) for text, span in asks if removed_span in (0, span)]
        held = [without_span(text, removed_span) for text in texts]
        with memory(talk._replace(pages=[*talk.pages, *held]), embedder) as db:
            for ask, each in zip(asked, rate_all(db, embedder, asked, talk.now), strict=True):
                rated[ask.text, bool(removed_span)] = each
    return [(text, rated[text, False], rated[text, True]) for text, _ in asks]


def paired(talks: Sequence[Corpus], embedder: Kept) -> None:
    """The same questions with the answer on the page and with only the answer taken away."""
    rows = []
    for split, name in enumerate(SPLITS):
        rated = rate_pairs(split, talks[5 * split], embedder)
        if "-v" in sys.argv and split == 0:
            for text, own, other in rated:
                print(f"{own.strength:6} {own.score:.2f} {other.strength:6} {other.score:.2f} {text}")
        with_answer, without_answer = [row[1] for row in rated], [row[2] for row in rated]
        rows += _against(f"answer taken away, {name}", with_answer, without_answer, 0.8)
    show("Questions whose answer was taken out of its page", rows, HEAD)


def foreign(talks: Sequence[Corpus], manual: Corpus, embedder: Kept, sizes: Sequence[int]) -> None:
    rows = []
    for split, name in enumerate(SPLITS):
        for size in sizes:
            one = sized(split, size, talks, manual, embedder)
            with one.stored() as db:
                own, other = (
                    rate_all(db, one.embedder, asks, one.manual.now) for asks in (one.answered, one.foreign)
                )
            rows += _against(f"{size:,} chunks, {name}", own, other, 0.97)
    show("Foreign questions", rows, HEAD)


def removed(talks: Sequence[Corpus], manual: Corpus, embedder: Kept, *, quick: bool) -> None:
    rows = []
    for split, name in enumerate(SPLITS):
        some = talks[5 * split : 5 * split + (1 if quick else 5)]
        sets = {"turns as chunks": [talk._replace(asks=talk.asks[::2]) for talk in some]}
        if not quick:
            # As above; embedding the sections of all conversations takes an hour.
            sets["sections and entries"] = [
                talk._replace(cut="section") for talk in sets["turns as chunks"][: 3 - split]
            ]
            sets["Kubernetes"] = [manual._replace(asks=manual.asks[split::2])] if manual.pages else []
        for kind, corpora in sets.items():
            own: list[Rated] = []
            without: list[Rated] = []
            for corpus in corpora:
                asks = [ask for ask in corpus.asks if ask.category != ADVERSARIAL]
                corpus = corpus._replace(asks=asks)
                with memory(corpus, embedder) as db:
                    own += rate_all(db, embedder, asks, corpus.now)
                for db, some_asks in without_pages(corpus, embedder):
                    without += rate_all(db, embedder, some_asks, corpus.now)
            rows += _against(f"{kind}, {name}", own, without, 0.8) if own else []
    show("Questions whose pages were taken away", rows, HEAD)


SHARES = ("strong", "weak", "none")
HEAD = ("questions", "number", "AUC", "target", *SHARES)


def _against(name: str, own: Sequence[Rated], other: Sequence[Rated], target: float) -> list[tuple[str, ...]]:
    value = auc(own, other)
    missed = verdict(share(own, "none"), 0.03)
    return [
        (f"{name}: with an answer", str(len(own)), "-", f"none: {missed}", *_shares(own)),
        (
            f"{name}: without",
            str(len(other)),
            f"{value:.3f}",
            verdict(value, target, at_least=True),
            *_shares(other),
        ),
    ]


def _shares(rated: Sequence[Rated]) -> tuple[str, ...]:
    return tuple(f"{100 * share(rated, strength):.0f} %" for strength in SHARES)


if __name__ == "__main__":
    main()

"""A made-up memory that is shaped like a real one, of any size, and kept for the next run.

Words are as unevenly frequent as those of a language, and each topic has favourites among them. Vectors have the
mean and the spectrum that bge-small's have, and lie in topics, pages and chunks. Links follow a power law. Rows go
straight into the store's tables, many at once: nothing is parsed, and no model is asked.
"""

import itertools
import json
import os
import random
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.scale import NOTEBOOK_FILES, folder_of
from bench.search import TYPES, vocabulary
from bench.standin import MODEL, WIDTH
from quaid.model.slug import fold_name, names_of
from quaid.storage import chunks, vectors
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-04-25T12:00:00Z"

PER_PAGE, PER_TOPIC, LINKS = 8, 40, 5
"""Chunks of a page, pages of a topic and links of a page, on average."""

RARE, FAVOURITES, FAVOURED = 240_000, 200, 0.3
"""Words beyond the usual ones, such as names and numbers; words of a topic, and the share that they have."""

MEAN, SPREAD = 0.74, 0.45
"""The length of the mean of all vectors, and the variance around it: those of bge-small on 27,666 texts."""

SHARES = (0.45, 0.25, 0.30)
"""Of that variance: between topics, between the pages of one, and between the chunks of a page."""

QUESTION_NOISE = 0.45
"""The variance between a question and the chunk that it was taken from: a cosine of about 0.8."""

BATCH = 1_000
"""Pages that are written in one transaction."""

Array = np.ndarray[Any, Any]


class Question(NamedTuple):
    text: str
    vector: bytes


def make(size: int) -> str:
    """Make a memory of about so many chunks, and give its path."""
    folder = folder_of(size)
    making = f"{folder}.making"
    shutil.rmtree(making, ignore_errors=True)
    os.makedirs(making)
    path = os.path.join(making, "memory.db")
    world = World(size)
    with Database.create(path, NOW) as db:
        db.write(lambda tx: vectors.register_model(tx, MODEL, WIDTH, NOW))
        db.write(lambda tx: vectors.activate_model(tx, MODEL))
        for batch in world.batches():
            db.write(lambda tx, batch=batch: _write(tx, batch))  # type: ignore[misc]
        db.write(lambda tx: vectors.encode_chunk_vectors(tx, MODEL))
    _notebook(os.path.join(making, "notebook"))
    asked = [(text, vector.hex()) for text, vector in world.questions]
    for name, some in (("questions.json", asked), ("question.json", asked[5:6])):
        with open(os.path.join(making, name), "w", encoding="utf-8") as file:
            json.dump(some, file)
    os.replace(making, folder)
    return os.path.join(folder, "memory.db")


class Batch(NamedTuple):
    """Rows of some pages, ready for their tables."""

    pages: list[tuple[Any, ...]]
    names: list[tuple[Any, ...]]
    tags: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    chunks: list[tuple[Any, ...]]
    words: list[tuple[int, str, str, str]]
    vectors: list[tuple[Any, ...]]


class World:
    """All that there is to say, and how."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pages = size // PER_PAGE
        self.rng = np.random.default_rng(11)
        usual = vocabulary(random.Random(7))
        rare = (f"{usual[number % len(usual)]}{number // len(usual) + 2}" for number in range(RARE))
        self.words = np.array([*usual, *rare], dtype=object)
        weights = 1 / (np.arange(len(self.words)) + 2.7)
        self.frequency = np.cumsum(weights / weights.sum())
        self.topics = max(20, self.pages // PER_TOPIC)
        self.favourites = self.rng.integers(100, len(usual), (self.topics, FAVOURITES))
        spectrum = (np.arange(WIDTH) + 8.0) ** -1.3
        turned, _ = np.linalg.qr(self.rng.standard_normal((WIDTH, WIDTH)))
        self.colour = (np.sqrt(spectrum / spectrum.sum())[:, None] * turned).astype(np.float32)
        mean = self.rng.standard_normal(WIDTH)
        self.mean = (MEAN * mean / np.linalg.norm(mean)).astype(np.float32)
        self.topic_vectors = self.spread(self.topics, SHARES[0])
        self.questions: list[Question] = []
        self.titles: list[str] = []

    def spread(self, count: int, share: float) -> Array:
        """Vectors around nothing, of a share of the whole variance."""
        plain = self.rng.standard_normal((count, WIDTH), dtype=np.float32)
        return np.asarray(plain @ self.colour * np.float32(np.sqrt(share * SPREAD)))

    def batches(self) -> Iterator[Batch]:
        first_chunk = 1
        for first in range(0, self.pages, BATCH):
            count = min(BATCH, self.pages - first)
            cut = np.minimum(self.rng.geometric(1 / PER_PAGE, count), 60)
            topics = (self.topics * self.rng.random(count) ** 2).astype(int)  # some are spoken of far more
            yield self._batch(first, cut, topics, first_chunk)
            first_chunk += int(cut.sum())

    def _batch(self, first: int, cut: Array, topics: Array, first_chunk: int) -> Batch:
        total = int(cut.sum())
        page_of = np.repeat(np.arange(len(cut)), cut)
        texts = self._texts(topics[page_of])
        made = self.topic_vectors[topics[page_of]] + self.spread(len(cut), SHARES[1])[page_of]
        made += self.spread(total, SHARES[2]) + self.mean
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        self._ask(texts, made)
        stored = made.astype("<f2")
        batch = Batch([], [], [], [], [], [], [])
        starts = np.concatenate([[0], np.cumsum(cut)])
        for at, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
            self._page(batch, first + at, int(topics[at]), texts[start:end], first_chunk + start)
        hashes = [(first_chunk + at).to_bytes(16, "big") for at in range(total)]
        batch.vectors.extend(
            (MODEL, each, NOW, row.tobytes()) for each, row in zip(hashes, stored, strict=True)
        )
        return batch

    def _texts(self, topics: Array) -> list[str]:
        lengths = np.clip(self.rng.lognormal(3.9, 0.5, len(topics)), 12, 200).astype(int)
        total = int(lengths.sum())
        places = np.searchsorted(self.frequency, self.rng.random(total))
        favoured = self.rng.random(total) < FAVOURED
        which = (FAVOURITES * self.rng.random(total) ** 2).astype(int)
        places[favoured] = self.favourites[np.repeat(topics, lengths), which][favoured]
        said = self.words[np.minimum(places, len(self.words) - 1)].tolist()
        ends = np.cumsum(lengths).tolist()
        return [
            " ".join(said[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)
        ]

    def _ask(self, texts: list[str], made: Array) -> None:
        """Questions about some of the chunks: five words of one, and a vector that is near it."""
        some = self.rng.choice(len(texts), max(1, 240 * BATCH // max(self.pages, BATCH)), replace=False)
        asked = made[some] + self.spread(len(some), QUESTION_NOISE)
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
        for at, vector in zip(some.tolist(), asked, strict=True):
            words = texts[at].split()
            chosen = self.rng.choice(len(words), 5, replace=False)
            self.questions.append(
                Question(" ".join(words[each] for each in chosen), vector.astype("<f4").tobytes())
            )

    def _page(self, batch: Batch, number: int, topic: int, texts: list[str], chunk_id: int) -> None:
        page_id, kind = number + 1, TYPES[number % len(TYPES)]
        title = " ".join(texts[0].split()[3:6])
        slug = f"{kind}s/{title.replace(' ', '-')}-{number}"
        wing, entries = f"wing-{topic % 12}", len(texts) // 4
        day = f"20{15 + number % 11}-{number % 12 + 1:02}-{number % 28 + 1:02}"
        cut = len(texts) - entries
        named = []
        for _ in range(min(number, int(self.rng.poisson(LINKS)))):
            other = int(number * self.rng.random() ** 4)
            named.append(other)
            target = self.titles[other]
            batch.links.append((page_id, other + 1, texts[0][:60], NOW, target, fold_name(target)))
        truth, line = [], 1
        for at, text in enumerate(texts[:cut]):
            heading = f"## {' '.join(text.split()[:3])}"
            links = " ".join(f"[[{self.titles[each]}]]" for each in named) if at == 0 else ""
            body = f"{heading}\n\n{text} {links}\n"
            self._chunk(batch, chunk_id + at, page_id, at, title, body, heading, line, None)
            truth.append(body)
            line += 4
        timeline = []
        for at, text in enumerate(texts[cut:]):
            date = f"20{15 + (number + at) % 11}-{(number + at) % 12 + 1:02}-{at % 28 + 1:02}"
            body = f"- **{date}** | {text}\n"
            self._chunk(batch, chunk_id + cut + at, page_id, cut + at, title, body, "", at + 1, date)
            timeline.append(body)
        front = json.dumps({"title": title, "type": kind, "wing": wing})
        self.titles.append(slug)
        batch.pages.append(
            (page_id, slug, f"{number:032x}", kind, title, texts[0][:200], wing, f"room-{topic}", NOW,
             f"{day}T12:00:00Z", front, "\n".join(truth), "".join(timeline))
        )  # fmt: skip
        batch.names.extend((name, page_id, called) for name, called in names_of(title, slug, {}))
        batch.tags.extend((page_id, f"tag-{topic % 50}") for _ in range(number % 3 == 0))

    def _chunk(
        self, batch: Batch, chunk_id: int, page_id: int, at: int, title: str, body: str, heading: str,
        line: int, date: str | None,
    ) -> None:  # fmt: skip
        kind = "timeline_entry" if date else "truth_section"
        hash_ = chunk_id.to_bytes(16, "big")
        tokens = len(body) // 4
        batch.chunks.append((chunk_id, page_id, at, kind, hash_, tokens, line, line + 2, date, heading, body))
        batch.words.append((chunk_id, title, heading, body))


def _write(tx: Transaction, batch: Batch) -> None:
    tx.executemany(
        "INSERT INTO pages (id, slug, uuid, type, title, summary, wing, room, created_at, updated_at,"
        " truth_updated_at, timeline_updated_at, frontmatter, compiled_truth, timeline)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?10, ?10, ?10, ?11, ?12, ?13)",
        batch.pages,
    )
    tx.executemany("INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)", batch.names)
    tx.executemany("INSERT INTO tags (page_id, tag) VALUES (?, ?)", batch.tags)
    tx.executemany(
        "INSERT INTO links (from_page_id, to_page_id, context, source_kind, created_at, target, target_key,"
        " part, line) VALUES (?, ?, ?, 'wiki_link', ?, ?, ?, 'truth', 3)",
        batch.links,
    )
    tx.executemany(
        "INSERT INTO chunks (id, page_id, chunk_index, chunk_type, content_hash, token_count, start_line,"
        " end_line, date, heading_path, chunk_text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        batch.chunks,
    )
    chunks.index_words(tx, batch.words)
    tx.executemany(
        f"INSERT INTO {vectors.vector_table(WIDTH)} (model, content_hash, embedded_at, vector)"
        " VALUES (?, ?, ?, ?)",
        batch.vectors,
    )


def _notebook(root: str) -> None:
    """A notebook beside it, of the same size whatever the memory's."""
    for number in range(NOTEBOOK_FILES):
        path = os.path.join(root, ("lists", "reference", "knowledge", "daily")[number % 4], f"n{number}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        words = " ".join(f"word{(number * 31 + place) % 5_000}" for place in range(60))
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"# Note {number}\n\n## Topic{number % 40}\n- {words}\n")

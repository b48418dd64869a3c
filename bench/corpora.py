"""Pages and questions with known answers: LoCoMo, LongMemEval, BEIR, chats as in BEAM, Kubernetes, our own."""

import csv
import json
import os
import random
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, NamedTuple

from quaid.formats import markdown
from quaid.model.page import Page, build_page

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOW = "2026-04-25T12:00:00Z"
MONTHS = "January February March April May June July August September October November December".split()


class DataError(Exception):
    """A file of public data is missing or not in its format. The message names the file and what is missing."""


def data_folder() -> str:
    """Return the folder with public data."""
    return os.environ.get("QUAID_BENCH_DATA") or os.path.join(ROOT, "..", "shared", "data")


def data_file(name: str, benchmark: str) -> str | None:
    """Return the path of a file with public data. If it is missing, print a message and return None."""
    path = os.path.join(data_folder(), name)
    if os.path.exists(path):
        return path
    print(f"bench.{benchmark}: {name} is not here; QUAID_BENCH_DATA names its folder")
    return None


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Raise DataError for what is wrong with a file that is read here."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    except KeyError as error:
        raise DataError(f"{path}: a record has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: a record is not in the format of this option ({error})") from error


class Ask(NamedTuple):
    """A question and what should be found for it, each with its gain."""

    text: str
    gains: Mapping[str, float]
    category: str = ""


class Corpus(NamedTuple):
    """Pages, questions, and how both are to be read."""

    name: str
    pages: list[Page]
    asks: list[Ask]
    cut: str = "section"
    """The chunk strategy."""
    by_chunk: bool = False
    """Answers are chunks, as slug#line; else pages, as slugs."""
    now: str = NOW


# LoCoMo


def locomo(path: str) -> Iterator[tuple[Corpus, Corpus]]:
    """Each conversation at the level of turns and of sessions."""
    with open(path, encoding="utf-8") as file:
        conversations = json.load(file)
    for number, record in enumerate(conversations, 1):
        talk = record["conversation"]
        names = sorted(
            (name for name in talk if re.fullmatch(r"session_\d+", name)), key=lambda n: int(n[8:])
        )
        pages, places = [], {}
        for name in names:
            slug = f"sessions/{name[8:]}"
            lines = [_turn(turn) for turn in talk[name]]
            for place, turn in enumerate(talk[name]):
                places[turn["dia_id"]] = f"{slug}#{2 * place + 1}"
            day = _day(talk.get(f"{name}_date_time", ""))
            front = {"title": _titled(name[8:], day), "type": "source", **({"date": day} if day else {})}
            pages.append(build_page(slug, front, "\n\n".join(lines), ""))
        now = max((str(page.frontmatter.get("date", "")) for page in pages), default="") or NOW
        turns, sessions = [], []
        for each in record["qa"]:
            cited = re.findall(r"D\d+:\d+", " ".join(each.get("evidence", ())))
            where = list(dict.fromkeys(places[turn] for turn in cited if turn in places))
            if where:
                category = str(each["category"])
                turns.append(Ask(each["question"], dict.fromkeys(where, 1.0), category))
                slugs = dict.fromkeys(place.partition("#")[0] for place in where)
                sessions.append(Ask(each["question"], dict.fromkeys(slugs, 1.0), category))
        name = f"LoCoMo {number}"
        yield (
            Corpus(f"{name} turns", pages, turns, "paragraph", by_chunk=True, now=now),
            Corpus(f"{name} sessions", pages, sessions, "paragraph", now=now),
        )


CUES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "oblique.tsv")
"""A remark, its reply, and a later sentence to which the remark matters without a word in common."""

STANDING = os.path.join(os.path.dirname(CUES), "standing.tsv")
"""A standing instruction or preference, its reply, and a request to which it applies."""

PLANTED_IN = 5
"""The remarks are put into this many conversations, an equal part into each."""


def planted(turns: Corpus, number: int, path: str = CUES) -> Corpus:
    """A conversation of LoCoMo with remarks put into its sessions, asked by sentences that need them."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    rows = rows[len(rows) * number // PLANTED_IN : len(rows) * (number + 1) // PLANTED_IN]
    pages, asks = list(turns.pages), []
    for place, (cue, reply, later) in enumerate(rows):
        at = place * len(pages) // len(rows)
        lines = pages[at].truth.split("\n\n")
        speakers = list(dict.fromkeys(line.partition(":")[0] for line in lines))
        middle = len(lines) // 2
        lines[middle:middle] = [f"{speakers[0]}: {cue}", f"{speakers[1]}: {reply}"]
        pages[at] = pages[at]._replace(truth="\n\n".join(lines))
        asks.append(Ask(later, {f"{pages[at].slug}#{2 * middle + 1}": 1.0}))
    return turns._replace(name=f"{os.path.basename(path)} {number + 1}", pages=pages, asks=asks)


def _turn(turn: dict[str, Any]) -> str:
    picture = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return " ".join(f"{turn['speaker']}: {turn.get('text', '')}{picture}".split())


def _titled(number: str, day: str) -> str:
    """As a person would call the notes of a talk: "Session 3, 8 May 2023"."""
    if not day:
        return f"Session {number}"
    year, month, of_month = map(int, day.split("-"))
    return f"Session {number}, {of_month} {MONTHS[month - 1]} {year}"


def _day(text: str) -> str:
    """The date in "1:56 pm on 8 May, 2023"."""
    found = re.search(r"(\d+) ([A-Z][a-z]+),? (\d{4})", text)
    if not found:
        return ""
    return date(int(found[3]), MONTHS.index(found[2]) + 1, int(found[1])).isoformat()


# BEIR and LongMemEval


def beir(folder: str) -> Corpus:
    """A folder with corpus.jsonl, queries.jsonl and qrels/test.tsv."""
    slugs: dict[str, str] = {}
    pages = []
    corpus, queries, judged = (
        os.path.join(folder, *name) for name in (("corpus.jsonl",), ("queries.jsonl",), ("qrels", "test.tsv"))
    )
    with _reading(corpus):
        for number, record in enumerate(_lines(corpus)):
            slugs[record["_id"]] = slug = f"documents/{number}"
            title = record.get("title") or ""
            front = {"type": "source", **({"title": title} if title else {})}
            pages.append(build_page(slug, front, record["text"], ""))
    gains: dict[str, dict[str, float]] = {}
    with _reading(judged), open(judged, encoding="utf-8") as file:
        for row in csv.reader(file, delimiter="\t"):
            if len(row) == 3 and row[2].lstrip("-").isdigit() and row[1] in slugs:
                gains.setdefault(row[0], {})[slugs[row[1]]] = float(row[2])
    with _reading(queries):
        asks = [
            Ask(record["text"], gains[record["_id"]])
            for record in _lines(queries)
            if any(gain > 0 for gain in gains.get(record["_id"], {}).values())
        ]
    return Corpus(os.path.basename(os.path.normpath(folder)), pages, asks)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                if line.strip():
                    yield json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}: line {number} is not JSON: {error.msg}") from error


def long_mem_eval(path: str) -> Iterator[Corpus]:
    """Each question has a haystack of its own."""
    with _reading(path):
        records = _json(path)
        for record in records:
            pages = []
            slugs: dict[str, str] = {}
            days = record.get("haystack_dates") or [""] * len(record["haystack_sessions"])
            for number, (name, day, turns) in enumerate(
                zip(record["haystack_session_ids"], days, record["haystack_sessions"], strict=True)
            ):
                slugs[name] = slug = f"sessions/{number}"
                text = "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
                front = {"title": f"Session {number}", "type": "source"}
                pages.append(
                    build_page(
                        slug, {**front, "date": day[:10].replace("/", "-")} if day else front, text, ""
                    )
                )
            wanted = {slugs[name]: 1.0 for name in record["answer_session_ids"] if name in slugs}
            if wanted:
                now = (record.get("question_date") or NOW)[:10].replace("/", "-")
                asks = [Ask(record["question"], wanted, record.get("question_type", ""))]
                yield Corpus("LongMemEval", pages, asks, now=now)


# Long chats, in the layout of BEAM


def chats(folder: str) -> Iterator[Corpus]:
    """Each chat below a folder that has chat.json and probing_questions.json, at the level of turns.

    chat.json is a list of batches, each with `turns`, lists of messages with `id`, `role` and `content`; nested
    lists of any depth are read. The other file, beside it or in a folder probing_questions, maps a category to
    questions; `source_chat_ids` of a question has the ids of its evidence, as a list or a map of lists. Questions
    without evidence in the chat are left out, such as those that must not be answered.
    """
    for path, _, files in sorted(os.walk(folder)):
        asked = [
            os.path.join(path, *parts, "probing_questions.json") for parts in ((), ("probing_questions",))
        ]
        asked = [file for file in asked if os.path.isfile(file)]
        if "chat.json" not in files or not asked:
            continue
        pages: list[Page] = []
        places: dict[Any, str] = {}
        day = ""
        chat = os.path.join(path, "chat.json")
        with _reading(chat):
            for number, batch in enumerate(_json(chat)):
                messages = list(_messages(batch))
                slug = f"sessions/{number}"
                lines = [" ".join(f"{message['role']}: {message['content']}".split()) for message in messages]
                for place, message in enumerate(messages):
                    places.setdefault(message["id"], f"{slug}#{2 * place + 1}")
                anchors = [
                    _anchor(item.get("time_anchor")) for item in (batch, *messages) if isinstance(item, dict)
                ]
                day = next((anchor for anchor in anchors if anchor), day)
                front = {"title": f"Session {number}", "type": "source", **({"date": day} if day else {})}
                pages.append(build_page(slug, front, "\n\n".join(lines), ""))
        asks = []
        with _reading(asked[0]):
            for category, records in _json(asked[0]).items():
                for record in records:
                    cited = [places[item] for item in _ids(record.get("source_chat_ids")) if item in places]
                    if cited:
                        asks.append(Ask(record["question"], dict.fromkeys(cited, 1.0), category))
        name = os.path.relpath(path, folder)
        yield Corpus(name, pages, asks, "paragraph", by_chunk=True, now=day or NOW)


def _json(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _messages(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and {"id", "role", "content"} <= value.keys():
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _messages(item)


def _ids(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        return [one for item in (value.values() if isinstance(value, dict) else value) for one in _ids(item)]
    return [] if value is None else [value]


def _anchor(text: Any) -> str:
    """The date in "March-15-2024"."""
    found = re.fullmatch(r"([A-Z][a-z]+)-(\d+)-(\d{4})", text or "")
    if not found or found[1] not in MONTHS:
        return ""
    return date(int(found[3]), MONTHS.index(found[1]) + 1, int(found[2])).isoformat()


# The documentation of Kubernetes


def kubernetes(path: str, every: int = 1) -> list[Page]:
    """The pages of the archive as an import reads them: all, or every fifth of them."""
    pages = []
    with tarfile.open(path) as archive:
        members = [
            getmember
            for getmember in archive.getmembers()
            if getmember.isfile() and getmember.name.endswith(".md")
        ]
        for member in sorted(members, key=lambda member: member.name)[::every]:
            file = archive.extractfile(member)
            assert file
            text = markdown.decode(file.read())[0]
            made = markdown.parse(text)
            slug = re.sub(r"[^a-z0-9/]+", "-", member.name.removesuffix(".md").lower()).strip("-/")
            pages.append(build_page(slug, made.frontmatter, made.truth, made.timeline))
    return pages


LONGEST_DESCRIBED = 12_000
"""Characters. Embedding the longer ones takes most of the time."""


def described(pages: Sequence[Page]) -> Corpus:
    """The pages that have a description in their front matter: it is the question, and no index holds it."""
    chosen, asks = [], []
    for page in pages:
        about = page.frontmatter.get("description")
        if isinstance(about, str) and len(about.split()) > 2 and len(page.truth) <= LONGEST_DESCRIBED:
            chosen.append(page)
            asks.append(Ask(" ".join(about.split()), {page.slug: 1.0}))
    return Corpus("kubernetes descriptions", chosen, asks)


# Our own


def diary(people: int = 40, entries: int = 12) -> Corpus:
    """People whose timelines say what they did when; each question names a person and a month."""
    rng = random.Random(zlib.crc32(b"diary"))
    first = "Ada Bo Cleo Dag Edda Finn Greta Hugo Ida Jon Kaja Lars Maja Nils Oda Per Rut Siv Tor Una".split()
    last = "Berg Dahl Eide Foss Haug Krog Lund Moen Nygård Strand".split()
    deeds = (
        "signed the lease for the workshop|planted forty apple trees|gave a talk on tidal power"
        "|broke the left wrist while skiing|sold the old sailing boat|adopted a grey cat"
        "|finished the marathon in Bergen|moved to a smaller flat|started to learn Portuguese"
        "|resigned from the school board|won the regional chess cup|painted the kitchen yellow"
        "|opened a bakery with a cousin|returned from six weeks in Peru|bought a second-hand harp"
    ).split("|")
    pages, asks = [], []
    for number in range(people):
        name = f"{first[number % len(first)]} {last[(number + number // len(first)) % len(last)]}"
        slug = f"people/{name.lower().replace(' ', '-').replace('å', 'a')}-{number}"
        days = sorted({date(2023, 1, 1) + timedelta(days=rng.randrange(1000)) for _ in range(entries)})
        months = [day.strftime("%Y-%m") for day in days]
        said = [rng.choice(deeds) for _ in days]
        timeline = "\n".join(
            f"- **{day}** | diary — {name} {deed}." for day, deed in zip(days, said, strict=True)
        )
        pages.append(
            build_page(slug, {"title": name, "type": "person"}, f"# {name}\n\n> A neighbour.", timeline)
        )
        for line, (day, month) in enumerate(zip(days, months, strict=True), 1):
            if months.count(month) == 1 and line % 3 == 0:
                text = f"What did {name} do in {MONTHS[day.month - 1]} {day.year}?"
                asks.append(Ask(text, {f"{slug}#{line}": 1.0}))
    return Corpus("dated facts", pages, asks, by_chunk=True)

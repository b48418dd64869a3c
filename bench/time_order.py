"""Questions for the first, the latest and the order of things, in chats, notes and conversations with agents.

    python -m bench.time_order [PART] [-v]

bench/data/time_order.txt has what is in the memory and what each question should give: a text in the line of the
first result, or texts that the results have in this order. Cases of the part `dev` were used for development,
those of `test` were written before their first run. -v prints each case that fails.
"""

import itertools
import os
import re
import sys
import tempfile
from typing import NamedTuple

from bench.asking import BATCH, NOW, fill, save
from bench.corpora import data_folder, locomo
from bench.table import show
from bench.vectors import Kept
from quaid.model.page import Page, build_page
from quaid.search.answer import Answer, build_answer
from quaid.search.candidates import rank_question
from quaid.search.conversations import conversation_results
from quaid.search.facts import NO_FACTS
from quaid.storage import collections, embedding_queue, vector_index, vectors
from quaid.storage.conversations import NewTurn, TurnBatch
from quaid.storage.sqlite.connection import Database

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "time_order.txt")
KINDS = ("chat", "notes", "agents")
CONVERSATION = 1
"""The conversation of LoCoMo, counted from 0, into which the turns of chats are put."""


class Case(NamedTuple):
    part: str
    kind: str
    question: str
    wanted: list[str]


def read() -> tuple[list[tuple[str, str]], list[Case]]:
    """Return the lines of each kind of memory, and the cases."""
    lines, cases = [], []
    part = kind = ""
    with open(FILE, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("## "):
                part, kind = line[3:].split()
            elif line.startswith("? "):
                cases.append(Case(part, kind, line[2:], []))
            elif line.startswith("= "):
                cases[-1].wanted.extend(line[2:].split(" > "))
            elif line and not line.startswith("# "):
                lines.append((kind, line))
    return lines, cases


def chat_pages(lines: list[str], pages: list[Page]) -> tuple[list[Page], list[str]]:
    """Return the sessions of a conversation with these turns put into them, and the two speakers."""
    speakers = list(dict.fromkeys(row.partition(":")[0] for row in pages[0].truth.split("\n\n")))[:2]
    added: dict[int, list[str]] = {}
    for line in lines:
        place, who, text = line.split(maxsplit=2)
        at = int(float(place) * len(pages))
        added.setdefault(at, []).append(f"{speakers['AB'.index(who[0])]}: {text}")
    for at, turns in added.items():
        rows = pages[at].truth.split("\n\n")
        rows[len(rows) // 2 : len(rows) // 2] = turns
        pages[at] = pages[at]._replace(truth="\n\n".join(rows))
    return pages, speakers


def note_pages(lines: list[str]) -> list[Page]:
    texts: dict[str, list[str]] = {}
    timelines: dict[str, list[str]] = {}
    for line in lines:
        how, slug, text = line.split(maxsplit=2)
        if how == "timeline":
            day, _, text = text.partition(" | ")
            timelines.setdefault(slug, []).append(f"- **{day}** | note — {text}")
        elif how == "list":
            texts.setdefault(f"logs/{slug}", []).append(f"- {text.removeprefix('| ')}")
        else:
            texts.setdefault(f"daily/{slug}" if how == "daily" else slug, []).append(
                f"- {text}" if how == "daily" else text
            )
    pages = []
    for slug in dict.fromkeys([*texts, *timelines]):
        title = re.sub(r"^[\d-]+-(?=[a-z])", "", slug.rpartition("/")[2]).capitalize()
        body = "\n".join(texts.get(slug, ()))
        pages.append(
            build_page(slug, {"title": title}, f"# {title}\n\n{body}", "\n".join(timelines.get(slug, ())))
        )
    return pages


def add_talks(db: Database, lines: list[str], embedder: Kept) -> None:
    for number, line in enumerate(lines):
        session, day, role, text = line.split(maxsplit=3)
        turns = [
            NewTurn(role, text, f"{day}T09:00:00Z", f"{number}"),
            NewTurn("assistant", "Understood.", "", ""),
        ]
        db.write(
            lambda tx, session=session, turns=turns: TurnBatch("plain", session, turns).save(  # type: ignore[misc]
                tx, NOW, {}, anew=True
            )
        )
    queue = embedding_queue.TurnQueue(db, embedder.name)
    batch = queue.texts(queue.missing())
    made = embedder.embed_passages([each.text for each in batch])
    found = [(each.content_hash, vector) for each, vector in zip(batch, made, strict=True)]
    db.write(lambda tx: vectors.keep_turn_vectors(tx, embedder.name, found, NOW))


def ask(db: Database, embedder: Kept, question: str, now: str) -> Answer:
    index = vector_index.TurnIndex(db)
    ranked = rank_question(db, embedder, question, now=now)
    others = conversation_results(db, ranked, embedder, 5, vectors=lambda: index)
    return build_answer(db, ranked, token_budget=3_000, others=others, facts=NO_FACTS)


def is_right(answer: Answer, wanted: list[str]) -> bool:
    """Return True if the first result has the wanted text, or the results have all of several in this order.

    The text of a result counts if it has a date, else only its line. Several texts in one result may be in any
    order, if the result has no date.
    """
    for result in answer.results:
        text = f"{result.line}\n{result.content if result.date or len(wanted) > 1 else ''}"
        if len(wanted) == 1:
            return wanted[0] in text
        if not result.date and all(each in text for each in wanted):
            return True
    text = "\n".join(f"{result.line}\n{result.content}" for result in answer.results)
    places = [text.find(each) for each in wanted]
    return -1 not in places and places == sorted(places)


def measure(part: str, *, is_verbose: bool) -> list[tuple[str, ...]]:
    embedder = Kept.open()
    lines, cases = read()
    path = os.path.join(data_folder(), "locomo10.json")
    turns = next(itertools.islice(locomo(path), CONVERSATION, None))[0]
    rows = []
    for kind in KINDS:
        of_kind = [line for name, line in lines if name == kind]
        speakers, now = ["A", "B"], NOW
        with tempfile.TemporaryDirectory() as folder, Database.create(f"{folder}/memory.db", NOW) as db:
            pages: list[Page] = note_pages(of_kind) if kind == "notes" else []
            if kind == "chat":
                pages, speakers = chat_pages(of_kind, list(turns.pages))
                now = turns.now
                db.write(lambda tx: collections.set_setting(tx, "chunk_strategy", "paragraph"))
            for at in range(0, len(pages), BATCH):
                save(db, pages[at : at + BATCH], at)
            fill(db, embedder)
            if kind == "agents":
                add_talks(db, of_kind, embedder)
            asked = [case for case in cases if case.kind == kind and case.part == part]
            right = {True: [0, 0], False: [0, 0]}
            for case in asked:
                question = case.question.replace("{A}", speakers[0]).replace("{B}", speakers[1])
                answer = ask(db, embedder, question, now)
                is_good = is_right(answer, case.wanted)
                right[len(case.wanted) > 1][0] += is_good
                right[len(case.wanted) > 1][1] += 1
                if is_verbose and not is_good:
                    print(f"\n{question} {case.wanted}")
                    for result in answer.results[:6]:
                        print(f"   {result.date} {result.slug} {result.strength} {result.line[:100]}")
        rows.append((f"{part}, {kind}", *(f"{good} of {every}" for good, every in right.values())))
    return rows


def main() -> None:
    chosen = [word for word in sys.argv[1:] if not word.startswith("-")] or ["dev", "test"]
    rows = [row for part in chosen for row in measure(part, is_verbose="-v" in sys.argv)]
    show("First, latest and order", rows, ("cases", "order", "first or latest"))


if __name__ == "__main__":
    main()

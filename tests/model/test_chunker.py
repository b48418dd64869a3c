"""A page cut into chunks."""

import itertools
import time

import pytest
from hypothesis import given, strategies as st

from quaid.model import chunker
from quaid.model.chunker import (
    STRATEGIES,
    STRATEGY_LIMITS,
    Chunk,
    chunk_by_structure as cut,
    embedding_text,
)
from quaid.model.plain_text import count_tokens

PAGE = """# Ada

> Wrote the first program.

## State

Fine.

### Engine

It has a mill.

## Empty

## Work
- one
- two
  and more
"""

TIMELINE = """## Timeline

Dates are those of the letters.

- **2026-04-14** | demo — Met.
  A detail.
- **2026-04-15** — Next

loose text

### 2026-05-01 — Heading
body
"""


def paths(chunks: tuple[Chunk, ...]) -> list[str]:
    return [chunk.heading_path for chunk in chunks]


def test_truth_is_cut_at_its_first_two_levels_of_headings() -> None:
    chunks = cut(PAGE, "")
    assert paths(chunks) == ["# Ada", "# Ada > ## State", "# Ada > ## Work"]
    assert chunks[1].text == "## State\n\nFine.\n\n### Engine\n\nIt has a mill."
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 3), (5, 11), (13, 18)]


def test_a_heading_with_nothing_below_it_goes_with_the_next_one() -> None:
    assert cut(PAGE, "")[2].text.startswith("## Empty\n\n## Work\n- one")
    assert [item.text for item in cut("## Alone\n", "")] == ["## Alone"]


def test_headings_in_code_are_code() -> None:
    chunks = cut("## A\n\n```\n## not a heading\n```\n\n## B\n\nb\n", "")
    assert paths(chunks) == ["## A", "## B"]


def test_timeline_is_split_into_entries_and_other_text() -> None:
    chunks = cut("", TIMELINE)
    assert [(chunk.date, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("", 1, 3),
        ("2026-04-14", 5, 6),
        ("2026-04-15", 7, 7),
        ("", 9, 9),
        ("2026-05-01", 11, 12),
    ]
    assert {chunk.kind for chunk in chunks} == {"timeline_entry"}
    assert chunks[1].text == "- **2026-04-14** | demo — Met.\n  A detail."
    assert chunks[1].heading_path == "## Timeline > 2026-04-14"


def test_headings_above_an_entry_go_with_it() -> None:
    chunks = cut("", "## 2026\n\n- 2026-01-02: a\n\n## 2025\n\n- 2025-01-02: b\n")
    assert [chunk.text for chunk in chunks] == ["## 2026\n\n- 2026-01-02: a", "## 2025\n\n- 2025-01-02: b"]
    assert paths(chunks) == ["## 2026 > 2026-01-02", "## 2025 > 2025-01-02"]


def test_a_long_section_is_cut_between_paragraphs_and_repeats_a_little() -> None:
    paragraphs = [f"Paragraph {number} says {'many words ' * 40}and ends." for number in range(12)]
    text = "## Long\n\n" + "\n\n".join(paragraphs)
    chunks = cut(text, "")
    assert len(chunks) > 2
    assert all(chunk.tokens <= 450 for chunk in chunks)
    assert all(chunk.text.endswith("and ends.") for chunk in chunks)
    for before, after in itertools.pairwise(chunks):
        assert after.start_line > before.start_line


def test_windows_share_their_ends() -> None:
    lines = "\n".join(f"line {number} with a few words in it" for number in range(400))
    chunks = cut(lines, "", "window")
    for before, after in itertools.pairwise(chunks):
        assert after.start_line <= before.end_line
        assert 0 < count_tokens("\n".join(lines.split("\n")[after.start_line - 1 : before.end_line])) <= 80


def test_a_piece_of_a_long_section_knows_its_lesser_heading() -> None:
    body = "words and more words, again and again.\n\n" * 60
    assert "## A > ### Late" in paths(cut(f"## A\n\n{body}### Late\n\n{body}", ""))


def test_a_window_never_crosses_a_heading_of_the_first_two_levels() -> None:
    text = "\n".join(f"## Part {number}\n\n" + "some words. " * 300 for number in range(5))
    for item in cut(text, "", "window"):
        assert item.text.count("## Part") <= 1
        assert item.tokens <= 400


def test_paragraphs_items_and_turns_are_chunks_of_their_own() -> None:
    text = "# A\n\nOne\nparagraph.\n\n- first\n- second\n  more\n\nAda: Hello.\nBob: Good day.\n"
    assert [item.text for item in cut(text, "", "paragraph")] == [
        "# A\n\nOne\nparagraph.",
        "- first",
        "- second\n  more",
        "Ada: Hello.",
        "Bob: Good day.",
    ]


def test_a_page_may_be_one_chunk() -> None:
    assert [item.text for item in cut(PAGE, TIMELINE, "page")] == [PAGE.strip(), TIMELINE.strip()]


def test_an_empty_page_has_no_chunks() -> None:
    assert cut("", "") == cut(" \n\n", "\n") == ()


def test_embedded_text_has_title_and_headings_once() -> None:
    first, state, _ = cut(PAGE, "")
    assert embedding_text("Ada", first.heading_path, first.text) == "Ada\n> Wrote the first program."
    assert (
        embedding_text("Ada", state.heading_path, state.text)
        == "Ada\nState\nFine.\n\n### Engine\n\nIt has a mill."
    )
    entry = cut("", TIMELINE)[4]
    assert (
        embedding_text("Ada", entry.heading_path, entry.text)
        == "Ada\nTimeline > 2026-05-01\n### 2026-05-01 — Heading\nbody"
    )


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "", "# A", "## B", "### C", "- item", "```", "- **2026-01-02** — x", "  in", "x: y", "#"]
        ),
        st.text(max_size=40),
        st.integers(1, 300).map(lambda number: "Some words of a sentence. " * number),
        st.integers(1, 2000).map(lambda number: "字" * number),
        st.integers(1, 1000).map(lambda number: "글" * number),
        st.integers(1, 5000).map(lambda number: "x" * number),
        st.integers(1, 9000).map(lambda number: " " * number + "."),
    ),
    max_size=30,
)


@given(LINES, LINES, st.sampled_from(STRATEGIES))
def test_chunks_cover_the_text_and_know_their_lines(
    truth_lines: list[str], timeline_lines: list[str], strategy: str
) -> None:
    texts = {"truth_section": "\n".join(truth_lines), "timeline_entry": "\n".join(timeline_lines)}
    chunks = cut(texts["truth_section"], texts["timeline_entry"], strategy)
    for kind, text in texts.items():
        lines = text.split("\n")
        seen: dict[int, str] = {}
        for chunk in (chunk for chunk in chunks if chunk.kind == kind):
            assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
            assert chunk.text.strip()
            assert chunk.tokens == count_tokens(chunk.text) <= STRATEGY_LIMITS[strategy][0]
            for number in range(chunk.start_line, chunk.end_line + 1):
                seen[number] = seen.get(number, "") + chunk.text
        for number, line in enumerate(lines, 1):
            assert all(word[:100] in seen[number] for word in line.split() if len(word) < 100)


@pytest.mark.parametrize(
    "text",
    [
        "## a\n" * 20_000,
        "### a\n\nb\n\n" * 20_000,
        "x" * 1_000_000,
        "字" * 300_000,
        "word " * 200_000,
        "a\n" + " " * 500_000 + "\nb" + " word." * 5_000,
        "- **2026-01-02** — x\n" * 20_000,
        "\n" * 500_000,
        "#" * 300_000,
        "```\n" * 50_000,
        "- a\n" * 50_000,
        "A: b\n" * 50_000,
    ],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_hostile_texts_take_linear_time(text: str, strategy: str) -> None:
    half = len(text) // 2
    started = time.process_time()
    cut(text[:half], text[:half], strategy)
    middle = time.process_time()
    cut(text, text, strategy)
    assert time.process_time() - middle < 3.5 * (middle - started) + 0.5


def test_ten_kilobytes_are_cut_in_a_moment() -> None:
    section = "## Part\n\n" + "A sentence that says something about an engine, as it is.\n" * 30 + "\n"
    text = section * (10_000 // len(section) + 1)
    chunker.chunk_page(text, "")
    times = []
    for _ in range(20):
        started = time.process_time()
        chunker.chunk_page(text, "")
        times.append(time.process_time() - started)
    assert min(times) < 0.003


def test_entries_of_a_log_that_are_headings_alone_are_chunks_of_their_own() -> None:
    log = "# 2026-11-16\n\n## 03:20 — Saw a giraffe\n\n## 03:24 — Lunch\nWith Ada.\n\n## 03:27 — Booked the ferry\n"
    made = [(item.heading_path, item.start_line, item.end_line) for item in cut(log, "", "window")]
    assert made == [
        ("# 2026-11-16 > ## 03:20 — Saw a giraffe", 1, 3),
        ("# 2026-11-16 > ## 03:24 — Lunch", 5, 6),
        ("# 2026-11-16 > ## 03:27 — Booked the ferry", 8, 8),
    ]


LISTED = """\
## Tools

- Tests are written with pytest, never with unittest
- Editor settings:
  - a dark theme with a serif font
- [Only a link](/elsewhere)
- ~~The shell is zsh~~ (until 2024)

| Name | Role |
|---|---|
| Ada | chief engineer |

### Shells

The shell is fish.

Two parts. No entry.

```
- an item of code
```
"""


def test_entries_have_headings_parents_and_table_heads_as_context() -> None:
    entries = chunker.find_entries(LISTED, "# Preferences > ## Tools")
    assert [chunker.entry_embedding_text("Preferences", LISTED, entry) for entry in entries] == [
        "Preferences\nTools\nTests are written with pytest, never with unittest",
        "Preferences\nTools\nEditor settings:",
        "Preferences\nTools\nEditor settings:\na dark theme with a serif font",
        "Preferences\nTools\n| Name | Role |",
        "Preferences\nTools\n| Name | Role |\n| Ada | chief engineer |",
        "Preferences\nTools > Shells\nThe shell is fish.",
    ]
    assert (
        LISTED[entries[0].start : entries[0].end].strip()
        == "Tests are written with pytest, never with unittest"
    )


@pytest.mark.parametrize(
    "text",
    [
        "- The only entry of a list.",
        "A sentence. Another sentence.\n\nA sentence. Another sentence.",
        "- [One](/one)\n- [Two](/two)\n- [[three]]\n",
        "- first entry\n- second entry\n\n" + "A long paragraph with many sentences. " * 10,
        f"- {'word ' * 100}\n- {'word ' * 100}\n",
        "```\n- first entry\n- second entry\n```",
    ],
    ids=["alone", "prose", "links", "mostly prose", "long", "code"],
)
def test_text_that_is_no_list_of_short_entries_has_none(text: str) -> None:
    assert chunker.find_entries(text, "") == ()


def test_a_task_is_embedded_without_its_checkbox() -> None:
    text = "- [ ] Return the books to Ada\n- [x] Water the tulips\n"
    entries = chunker.find_entries(text, "## To Do")
    assert [chunker.entry_embedding_text("Todos", text, entry) for entry in entries] == [
        "Todos\nTo Do\nReturn the books to Ada",
        "Todos\nTo Do\nWater the tulips",
    ]


def test_turns_of_a_person_in_a_chat_are_entries_however_long_the_answers_are() -> None:
    asked = "user: I moved to Lund. " + "Which of these flats should I take? " * 20
    text = f"{asked}\n\nassistant: {'A long answer. It has many sentences. ' * 40}"
    entries = chunker.find_entries(text, "")
    assert [text[entry.start : entry.end].strip() for entry in entries] == [asked.strip()]
    assert chunker.find_entries(asked, "") == ()  # it has the vector of the chunk


def test_turns_of_a_conversation_are_entries() -> None:
    text = "Ann: Hello there. How are you?\n\nBob: I am fine. And you?\n"
    assert [text[entry.start : entry.end].strip() for entry in chunker.find_entries(text, "")] == [
        "Ann: Hello there. How are you?",
        "Bob: I am fine. And you?",
    ]

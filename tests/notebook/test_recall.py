"""The scale of scores; tests/operations/test_notebook.py asks real notebooks."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.notebook.layout import RecallHit
from quaid.notebook.recall import MIN_SCORE, evidence_score
from quaid.operations import dispatch


@pytest.mark.parametrize(
    ("share", "near", "wanted"),
    [(1.0, None, 1.0), (0.4, None, 0.4), (0.0, 0.0, 0.0), (1.0, 0.0, 0.5), (1.0, 1.0, 1.0), (0.0, 0.4, 0.3)],
)
def test_half_is_words_and_half_is_meaning(share: float, near: float | None, wanted: float) -> None:
    assert evidence_score(share, near) == wanted


# Real notebooks


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def notes(brain: Brain) -> Brain:
    run(brain, "embeddings off")
    run(brain, "notebook init")
    return brain


def test_a_question_of_words_that_are_everywhere_gets_the_least_score(notes: Brain) -> None:
    for name in ("a", "b", "c", "d"):
        run(notes, "notebook write", path=f"lists/{name}.md", content=f"The {name}nimal is on the ark.\n")
    for question in ("the", "The", "is on the", "what is it about"):
        notebook = run(notes, "recall", query=question, min_score=0.0).notebook
        assert notebook, question
        assert max(hit.score for hit in notebook) <= MIN_SCORE
    best, *_ = run(notes, "recall", query="the bnimal").notebook
    assert (best.path, best.score) == ("lists/b.md", 1.0)


def overlapping(hits: tuple[RecallHit, ...]) -> list[tuple[RecallHit, RecallHit]]:
    return [
        (one, other)
        for at, one in enumerate(hits)
        for other in hits[at + 1 :]
        if one.path == other.path and one.start_line <= other.end_line and other.start_line <= one.end_line
    ]


def test_no_line_is_listed_twice(notes: Brain) -> None:
    lines = [f"Line {number} tells of the harbour and of the boats in it.\n" for number in range(1, 200)]
    run(notes, "notebook write", path="knowledge/long.md", content="".join(lines))
    run(notes, "notebook write", path="knowledge/short.md", content="The harbour has no quagga.\n")
    result = run(notes, "recall", query="harbour", max_results=50)
    assert overlapping(result.notebook) == []
    assert len([hit for hit in result.notebook if hit.path == "knowledge/long.md"]) >= 3
    assert any(hit.path == "knowledge/short.md" for hit in result.notebook)


def test_of_two_windows_on_the_same_lines_the_better_one_is_kept(notes: Brain) -> None:
    run(notes, "notebook write", path="knowledge/long.md", content="".join(
        f"Line {number} tells of the harbour and of the boats in it.\n" for number in range(1, 60)
    ) + "Here lives the quagga.\n")  # fmt: skip
    first, *rest = run(notes, "recall", query="harbour quagga", min_score=0.0).notebook
    assert first.score == 1.0
    assert first.end_line == 60
    assert not [hit for hit in rest if hit.end_line >= first.start_line]


def test_places_that_fall_out_are_filled_by_the_next(notes: Brain) -> None:
    for name in ("a", "b", "c"):
        text = "".join(f"Line {number} tells of the harbour and the boats.\n" for number in range(1, 60))
        run(notes, "notebook write", path=f"knowledge/{name}.md", content=text)
    assert len(run(notes, "recall", query="harbour", max_results=3).notebook) == 3


def test_short_word_with_the_stem_of_a_name_is_not_a_match(notes: Brain) -> None:
    run(
        notes,
        "notebook write",
        path="daily/2026-05-01.md",
        content="## Called Nkechi\n\nIt begins in January.\n",
    )
    run(notes, "notebook write", path="reference/people.md", content="## Calls\n\n- Ines writes letters\n")
    result = run(notes, "recall", query="ines")
    assert [item.path for item in (*result.notebook, *result.daily)] == ["reference/people.md"]
    assert result.notebook[0].lane == "words"

"""An answer as text for people: how well it is founded, each result with its reason, what it cost."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import address

FOUNDED = {
    "strong": "Found (strong):",
    "weak": "Perhaps (weak): the memory holds little on this.",
    "none": "The memory does not seem to know this. What comes nearest:",
}


def _answer(record: Any) -> str:
    if not record.results:
        return "\n".join([f"Nothing found for {record.question[:200]!r}.", *_notes(record)])
    lines = [FOUNDED[record.strength], ""]
    for place, result in enumerate(record.results, 1):
        lines += [*_result(place, result), ""]
    if record.lanes:
        lines += [*_lanes(record.lanes), ""]
    left = f"{count_noun(record.total_tokens, 'token')}, {record.budget_remaining:,} left"
    return "\n".join([*lines, left, *_notes(record)])


def _result(place: int, result: Any) -> list[str]:
    where = f"{result.part} {result.start_line}-{result.end_line}"
    lines = [
        f"{place}. {address(result)}  {result.title} ({result.type}, {result.score:.2f}, {result.lane})",
        f"   {result.reason} [{where}]",
    ]
    body = result.content or result.summary
    return lines + ["     " + line if line else "" for line in body.strip("\n").splitlines()]


def _lanes(lanes: Any) -> list[str]:
    rows = [("slug", "line", "words", "place", "page", "cosine", "place", "favour")]
    for each in lanes:
        cosine = "-" if each.cosine is None else f"{each.cosine:.3f}"
        rows.append(
            (
                *(each.slug, str(each.start_line), f"{each.words:.2f}", _place(each.words_place)),
                *(f"{each.page_words:.2f}", cosine, _place(each.meaning_place), f"{each.favour:.2f}"),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _place(place: int) -> str:
    return str(place) if place else "-"


def _notes(record: Any) -> list[str]:
    return [f"({note})" for note in record.notes]


def _glance(record: Any) -> str:
    from quaid.surfaces.cli import render_notebook

    told = render_notebook.RENDERERS["Recalled"]
    parts = [told(record.recalled)] if record.recalled else []
    return "\n\n".join([*parts, _answer(record.answer)])


RENDERERS: dict[str, Callable[[Any], str]] = {"Answer": _answer, "GlanceRecord": _glance}

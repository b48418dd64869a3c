"""Records of models to text for people."""

from collections.abc import Callable
from typing import Any


def _models(record: Any) -> str:
    rows = [
        (
            "*" if each.active else " ",
            each.name,
            str(each.dimensions or "?"),
            "ready" if each.ready else each.problem,
        )
        for each in record.models
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows]
    return "\n".join([*lines, "* is the active one"])


def _added(record: Any) -> str:
    model = record.model
    return (
        f"Added {model.name}: {model.dimensions} dimensions, up to {model.max_tokens:,} tokens\n"
        f"`quaid embed --model {model.name}` makes it the active one"
    )


def _removed(record: Any) -> str:
    return f"Removed {record.name}"


def _checked(record: Any) -> str:
    if not record.healthy:
        return f"{record.name}: {record.problem}"
    return f"{record.name} works: {record.dimensions} dimensions, {record.ms_per_text:g} ms for a text of 40 words"


def _embedded(record: Any) -> str:
    lines = [
        f"{record.model}: {record.embedded:,} of {record.total:,} chunks embedded, {record.cached:,} had a vector"
    ]
    if record.failed:
        lines.append(f"{record.failed:,} chunks got none; `quaid model check {record.model}` says more")
    lines.append(
        f"{'It is' if record.active else 'Not yet'} the active model ({record.cpu_seconds:.1f} s CPU)"
    )
    return "\n".join(lines)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "ModelsRecord": _models,
    "ModelAddRecord": _added,
    "ModelRemoveRecord": _removed,
    "ModelCheckRecord": _checked,
    "EmbedRecord": _embedded,
}

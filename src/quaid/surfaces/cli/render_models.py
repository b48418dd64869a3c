"""Records of models, and of how their work stands, to text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun


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
        f"Added {model.name}: {count_noun(model.dimensions, 'dimension')}, up to {model.max_tokens:,} tokens\n"
        f"`quaid embed --model {model.name}` makes it the active one"
    )


def _removed(record: Any) -> str:
    return f"Removed {record.name}"


def _checked(record: Any) -> str:
    if not record.healthy:
        return f"{record.name}: {record.problem}"
    return f"{record.name} works: {record.dimensions} dimensions, {record.ms_per_text:g} ms for a text of 40 words"


def _embedded(record: Any) -> str:
    chunks = count_noun(record.total, "chunk")
    lines = [f"{record.model}: {record.embedded:,} of {chunks} embedded, {record.cached:,} had a vector"]
    if record.turns or record.turns_left:
        left = f", {record.turns_left:,} not yet" if record.turns_left else ""
        lines.append(f"{count_noun(record.turns, 'turn')} of conversations embedded{left}")
    if record.failed:
        named = ", ".join(record.failures[:10]) + (" …" if len(record.failures) > 10 else "")
        lines.append(f"{record.failed:,} got none ({named}); `quaid model check {record.model}` says more")
    lines.append(
        f"{'It is' if record.active else 'Not yet'} the active model ({record.cpu_seconds:.1f} s CPU)"
    )
    return "\n".join(lines)


def _status(record: Any) -> str:
    from quaid.surfaces.cli.text import size, table

    model = record.model
    uncut = f" ({record.pages_uncut:,} not cut into chunks yet)" if record.pages_uncut else ""
    read_only = "" if record.writable else ", can only be read"
    rows = [
        ("memory", f"{record.path}{read_only}"),
        ("size", f"{size(record.size)} and {size(record.wal_size)} of log, schema {record.schema_version}"),
        ("pages", f"{record.pages:,}{uncut}"),
        ("chunks", f"{record.chunks:,}"),
        ("vectors", f"{model.vectors:,} of {record.chunks:,}"),
        *([("conversations", _said(record.conversations))] if record.conversations.turns else []),
        ("model", f"{model.name}, {'ready' if model.ready else f'not ready: {model.problem}'}"),
    ]
    if model.remedy:
        rows.append(("", model.remedy))
    rows += [("other model", f"{each.name}, {count_noun(each.vectors, 'vector')}") for each in record.others]
    rows.append(("background", _background(record)))
    if record.resident:
        rows.append(("server", "runs here; commands are handed to it"))
    if record.trouble:
        rows.append(("last failure", f"{record.trouble.at}: {record.trouble.problem}"))
    rows += [("next", step) for step in record.next_steps]
    return table(rows)


def _said(said: Any) -> str:
    turns = count_noun(said.turns, "turn")
    if said.embedding == "off":
        return f"{turns}, found by words: embed_conversations is off"
    which = f" of the last {count_noun(said.recent_days, 'day')}" if said.embedding == "recent" else ""
    if said.missing:
        return f"{turns}, {said.missing:,}{which} not embedded yet"
    return f"{turns}, no vector missing{which and f' among those{which}'}"  # very short turns get none


def _background(record: Any) -> str:
    if record.filling:
        model, process, since = record.filling
        return f"process {process} makes vectors of {model} since {since}"
    if not record.writable:
        return "nothing: the memory can only be read"
    if record.background_embedding:
        return "on: `quaid serve` makes missing vectors, a question the last few"
    return "off: only `quaid embed` makes vectors"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "ModelsRecord": _models,
    "ModelAddRecord": _added,
    "ModelRemoveRecord": _removed,
    "ModelCheckRecord": _checked,
    "EmbedRecord": _embedded,
    "StatusRecord": _status,
}

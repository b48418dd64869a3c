"""Records of clients and of semantic search to text for people."""

from collections.abc import Callable
from typing import Any

from quaid.surfaces.cli.text import table


def _connect(record: Any) -> str:
    if record.clients:
        return _clients(record)
    if all(each.outcome == "as it should be" for each in record.files):
        state = "is connected already" if record.connected else "was not connected"
        return f"{record.title} {state}; nothing to do"
    if record.dry_run:
        told = [each.difference for each in record.files if each.difference]
        return "\n".join([*told, "Nothing was changed"])
    lines = []
    for each in record.files:
        backup = f" (before: {each.backup})" if each.backup else ""
        lines.append(f"{each.outcome.capitalize()}: {each.path}{backup}")
    lines.append(f"{record.title} is {'connected' if record.connected else 'disconnected'}")
    return "\n".join([*lines, record.next_step] if record.next_step else lines)


def _clients(record: Any) -> str:
    rows = []
    for each in record.clients:
        detail = f" ({each.detail})" if each.detail else ""
        rows.append((each.client, f"{each.state}{detail}", each.path))
    return "\n".join([table(rows), "`quaid connect NAME` connects one, `quaid disconnect NAME` takes it out"])


def _instructions(record: Any) -> str:
    return str(record.text)


def _embeddings(record: Any) -> str:
    state = "on" if record.on else "off"
    if record.on and not record.ready:
        state = f"on, but by words only: {record.problem}"
    rows = [
        ("semantic search", state),
        ("model", f"{record.model} (chosen by: {record.chosen_by})"),
        ("vectors", f"{record.vectors:,} of {record.chunks:,}{', being made' if record.filling else ''}"),
    ]
    if record.next_step:
        rows.append(("next", record.next_step))
    return table(rows)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "ConnectRecord": _connect,
    "InstructionsRecord": _instructions,
    "EmbeddingsRecord": _embeddings,
}

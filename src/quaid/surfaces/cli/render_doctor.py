"""The whole set-up, and versions, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.surfaces.cli.text import table

MARKS = {"fine": "ok", "missing": "--", "advice": "-", "wrong": "!"}


def _doctor(record: Any) -> str:
    lines = [table([(MARKS[each.state], each.name, each.detail) for each in record.checks]), ""]
    if not record.next_steps:
        return "\n".join([*lines, "All is well, and nothing is left to do."])
    wrong = any(each.state == "wrong" for each in record.checks)
    lines.append(
        "To be done (!), then what would be good (-):" if wrong else "All is well. What would be good:"
    )
    return "\n".join([*lines, *(f"  {each}" for each in record.next_steps)])


def _upgrade(record: Any) -> str:
    if record.newest is None:
        return (
            f"This is quaid {record.current}. To upgrade: {record.how}.\n"
            "`quaid upgrade --check --from PLACE` compares versions; no place is asked by itself."
        )
    if record.is_newer:
        return (
            f"quaid {record.newest} is at {record.place}; this is {record.current}. To upgrade: {record.how}."
        )
    return f"This is quaid {record.current}; {record.place} has nothing newer ({record.newest})."


RENDERERS: dict[str, Callable[[Any], str]] = {"DoctorRecord": _doctor, "UpgradeRecord": _upgrade}

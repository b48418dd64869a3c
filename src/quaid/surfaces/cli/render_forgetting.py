"""What `ops.forgetting` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import cut, size

MOST_SHOWN = 8
LONGEST = 60


def _forget(record: Any) -> str:
    if not record.slug:
        return record.problem or "The file was written anew without what was deleted, and its log is empty."
    if not record.done:
        return "\n".join([f"{record.slug} ({record.title}) would go:", *_layers(record), *_around(record)])
    head = f"Forgot {record.slug}." if record.clean else f"Forgot {record.slug}, but not everything is gone."
    lines = [head, *_layers(record), "Searched for what is left:"]
    lines += [f"  {each.where}: {_found(each.found)}" for each in record.proof]
    for each in record.mentions[:MOST_SHOWN]:
        lines.append(f"  still said by {_listed(each.said_by)}: {cut(each.text, LONGEST)}")
    if len(record.mentions) > MOST_SHOWN:
        lines.append(f"  and {len(record.mentions) - MOST_SHOWN:,} more; --json shows them all")
    if record.problem:
        lines.append(f"The page is gone from the memory, but bytes may be left in its file: {record.problem}")
    return "\n".join([*lines, *_around(record)])


def _layers(record: Any) -> list[str]:
    shown = [each for each in record.layers if each.before or each.after]
    if not record.done:
        return [f"  {each.before:>7,}  {each.name}" for each in shown]
    rows = [f"  {each.before:>7,}  {each.name}: {count_noun(each.after, 'row')} now" for each in shown]
    others = [each.name for each in record.layers if not each.before and not each.after]
    return [*rows, f"           0 rows before and now: {', '.join(others)}"] if others else rows


def _found(found: tuple[str, ...]) -> str:
    return (
        f"{len(found):,} found: {_listed([cut(each, LONGEST) for each in found])}" if found else "none found"
    )


def _listed(names: Any) -> str:
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more


def _around(record: Any) -> list[str]:
    lines = []
    for each in record.backups:
        if each.deleted:
            lines.append(f"Deleted the backup {each.path} ({size(each.size)}).")
        elif each.holds_it:
            how = (
                "--backups deletes it"
                if each.made_by != "somebody" and not record.done
                else "delete it yourself"
            )
            what = "another memory" if each.made_by == "somebody" else "a copy of this memory"
            lines.append(f"{each.path} ({size(each.size)}) is {what} that holds the page; {how}.")
    if record.files:
        lines.append(
            f"It was imported from {_listed(record.files)}. The next import of that folder brings it back."
        )
    return lines


RENDERERS: dict[str, Callable[[Any], str]] = {"ForgetRecord": _forget}

"""What `ops.conversations` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import cut, table, words_only, wrap

SHORT = 12
"""Characters of a session's name that are shown in lists: enough to name it again."""

MOST_PROBLEMS = 20


def _reading(record: Any) -> str:
    report = record.report
    parts = [
        (report.unchanged, "unchanged"),
        (report.other, "no transcript" if report.other == 1 else "no transcripts"),
        (report.gone, "not there any more"),
    ]
    aside = ", ".join(f"{number:,} {told}" for number, told in parts if number)
    lines = [
        f"{count_noun(report.files, 'file')}{f' ({aside})' if aside else ''}:"
        f" {count_noun(report.turns, 'new turn')} in {count_noun(report.conversations, 'new conversation')}"
        + (f" and {report.grown:,} that went on" if report.grown else "")
    ]
    if report.masked:
        lines.append(f"  {count_noun(report.masked, 'secret')} masked")
    if report.broken:
        lines.append(f"  {count_noun(report.broken, 'broken line')} skipped")
    if report.removed:
        lines.append(
            f"  {count_noun(report.removed, 'conversation')} you removed stayed out; --again takes such ones in again"
        )
    lines += [f"  `quaid conversations sync` looks into {each} from now on" for each in record.watched]
    if record.unwatched:
        lines.append(f"  {record.unwatched}")
    lines += [f"  {each.path}: {each.problem}" for each in report.problems[:MOST_PROBLEMS]]
    if len(report.problems) > MOST_PROBLEMS:
        lines.append(f"  and {len(report.problems) - MOST_PROBLEMS:,} more; --json has them all")
    return "\n".join(lines)


def _list(record: Any) -> str:
    if not record.conversations:
        return "No conversations. `quaid conversations add PATH` takes transcripts in."
    rows = [
        (
            (each.ended_at or "")[:10],
            each.client,
            cut(each.session, SHORT + 1).replace("…", ""),
            count_noun(each.turns, "turn"),
            cut(each.title, 60),
        )
        for each in record.conversations
    ]
    last = record.offset + len(record.conversations)
    more = f"; next: --offset {last}" if last < record.total else ""
    shown = "" if not record.offset and last == record.total else f"{record.offset + 1:,}-{last:,} of "
    return f"{table(rows)}\n{shown}{count_noun(record.total, 'conversation')}, {count_noun(record.turns, 'turn')}{more}"


def _show(record: Any) -> str:
    held = record.conversation
    when = " to ".join(dict.fromkeys(each[:10] for each in (held.started_at, held.ended_at) if each))
    lines = [f"{held.client} {held.session}: {held.title}".rstrip(": ")]
    lines.append("  " + ", ".join(filter(None, (when, held.project, count_noun(held.turns, "turn")))))
    for each in record.turns:
        at = f", {each.said_at.replace('T', ' ').removesuffix('Z')} UTC" if each.said_at else ""
        mark = " <<<" if each.turn == record.around else ""
        lines += ["", f"[{each.turn}] {each.role}{at}{mark}", each.text]
        if each.left_out:
            lines.append(f"… {count_noun(each.left_out, 'more character')}; --full shows them")
    if record.turns and record.turns[-1].turn < held.turns:
        last = record.turns[-1].turn
        left = held.turns - last
        # The middle of the next ones: as many as these, and none of these again.
        middle = min(held.turns, last + 1 + len(record.turns) // 2)
        lines += ["", f"{count_noun(left, 'turn')} {'follows' if left == 1 else 'follow'}: --around {middle}"]
    return "\n".join(lines)


def _search(record: Any) -> str:
    lines = []
    if record.note and not record.semantic:
        lines.append(words_only(record.note))
    elif record.note:
        lines.append(f"{record.note}; `quaid embed --all` makes the missing ones.")
    if not record.hits:
        none = "; `quaid conversations add PATH` takes transcripts in" if not record.conversations else ""
        where = count_noun(record.conversations, "conversation")
        lines.append(f"Nothing found for {cut(record.query, 200)!r} in {where}{none}.")
    for hit in record.hits:
        day = (hit.date or "no date")[:10]
        title = f"  {cut(hit.title, 60)}" if hit.title else ""
        lines.append(f"{day}  {hit.role}  {hit.client} {hit.session[:SHORT]} turn {hit.turn}{title}")
        lines += ["    " + line for line in wrap(hit.snippet)]
    return "\n".join(lines)


def _removed(record: Any) -> str:
    held = record.conversation
    what = f"{count_noun(held.turns, 'turn')} of {held.client} {held.session} ({held.title})"
    if not record.done:
        return f"These would go: {what}"
    left = f"\nBytes of it may be left in the file: {record.problem.rstrip('.')}. `quaid forget --finish` cleans it."
    return f"Removed {what}. The transcript itself was not touched.{left if record.problem else ''}"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "ReadingRecord": _reading,
    "ConversationsRecord": _list,
    "ConversationRecord": _show,
    "ConversationSearchRecord": _search,
    "ConversationRemoveRecord": _removed,
}

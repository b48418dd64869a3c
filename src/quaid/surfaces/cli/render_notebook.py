"""The notebook as text for people: what was written where, and findings as a tree."""

from collections.abc import Callable, Sequence
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import size, table, words_only

COLUMN = 52
"""Where the score of a finding stands."""


def _init(record: Any) -> str:
    made = f", made {', '.join(f'{each}/' for each in record.folders)}" if record.folders else ""
    if record.created:
        return (
            f"The notebook is {record.root} ({count_noun(record.files, 'file')}{made})\n"
            "Next: quaid remember WORDS, quaid log WORDS, quaid recall WORDS"
        )
    return f"{record.root} is the notebook already ({count_noun(record.files, 'file')}{made or '; nothing was changed'})"


def _list(record: Any) -> str:
    if not record.files:
        return f"{record.root} has no files yet. `quaid remember WORDS` writes one."
    return table([(each.path, size(each.size)) for each in record.files])


def _remember(record: Any) -> str:
    lines = []
    for each in record.lines:
        first = each.text.partition("\n")[0]
        said = "Wrote" if each.written else "Already there:"
        under = f" ({record.section})" if record.section else ""
        lines.append(f"{said} {each.path}:{each.line}{under}: {first}")
    return "\n".join(lines)


def _log(record: Any) -> str:
    return f"Wrote {record.path}:{record.line}: {record.heading.lstrip('# ')}"


def _read(record: Any) -> str:
    return str(record.text)


def _write(record: Any) -> str:
    if not record.changed:
        return f"{record.path} says this already (version {record.version}); nothing was written"
    return f"{'Made' if record.created else 'Wrote'} {record.path}:{record.line}, version {record.version}"


def _recalled(record: Any) -> str:
    lines = [f"From the index alone. {record.missing}"] if record.missing else []
    lines += [] if record.semantic else [words_only(record.note)]
    groups = [("NOTEBOOK", record.notebook), ("DAILY", record.daily)]
    groups = [group for group in groups if group[1]]
    if not groups:
        lines.append(f"Nothing found for {record.query!r}.")
    for place, (name, hits) in enumerate(groups):
        last = place == len(groups) - 1
        lines.append(f"{'└' if last else '├'}── {name} ({count_noun(len(hits), 'result')})")
        lines += [("    " if last else "│   ") + line for line in _hits(hits)]
    return "\n".join(lines)


def _hits(hits: Sequence[Any]) -> list[str]:
    lines = []
    for place, hit in enumerate(hits):
        last = place == len(hits) - 1
        where = f"{hit.path}:{hit.start_line}" + (f"-{hit.end_line}" if hit.end_line > hit.start_line else "")
        lines.append(f"{'└' if last else '├'}── {where} {'.' * max(3, COLUMN - len(where))} {hit.score:.2f}")
        lines.append(f'{" " if last else "│"}   "{hit.snippet}"')
    return lines


def _prompt(record: Any) -> str:
    if not record.text and record.parts:
        return "Nothing fits into so few tokens."
    return str(record.text) or "Nothing is written yet in reference/ and in the logs of these two days."


def _migrate(record: Any) -> str:
    if not record.moves:
        return f"{record.source} has neither runtime/*.md nor brain/memory/core/*.md; nothing to do"
    told = {
        "copied": "would be copied" if record.dry_run else "copied",
        "same": "is there already",
        "differs": "another file is there; merge them by hand",
        "unreadable": "cannot be read as UTF-8 text; left out",
        "stays": "is the agent's own; left out",
        "link": "is a link, which is not followed; left out",
    }
    rows = [(each.source, f"→ {each.path}" if each.path else "", told[each.outcome]) for each in record.moves]
    return table(rows)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "NotebookRecord": _init,
    "NotebookListRecord": _list,
    "RememberRecord": _remember,
    "LogRecord": _log,
    "NotebookReadRecord": _read,
    "NotebookWriteRecord": _write,
    "Recalled": _recalled,
    "Prompt": _prompt,
    "MigrateRecord": _migrate,
}

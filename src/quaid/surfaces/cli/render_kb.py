"""What the operations on the knowledge base return, as text for people."""

from collections.abc import Callable, Sequence
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import cut, size, table

MOST_SHOWN = 10


def _query(record: Any) -> str:
    """One node per line, so that lines can be counted and cut; what is to be said besides goes to standard error."""
    if not record.matches:
        return f"No node matches {cut(record.context, 80)!r}."
    lines = []
    for each in record.matches:
        source = (f"source {each.source}",) if each.source.startswith("raw/") else ()
        reasons = f"{', '.join(each.match)} {each.score:g}"
        if each.relevance is not None:
            reasons += f"; relevance {each.relevance:.2f}"
        facts = (" ".join(each.projects), each.status, each.updated, each.path, *source, reasons)
        lines.append(f"{each.title} ({each.id}): {each.summary}  [{'; '.join(facts)}]")
    return "\n".join(lines)


def _show(record: Any) -> str:
    lines = [f"! {record.note}"] if record.note else []
    lines += [f"; {record.node.path}", record.text.rstrip("\n")]
    if record.backlinks:
        lines += ["", "; linked from", *_nodes(record.backlinks, ";   ")]
    return "\n".join(lines)


def _backlinks(record: Any) -> str:
    lines = [f"! {record.note}"] if record.note else []
    if not record.backlinks:
        return "\n".join([*lines, f"No node links to {record.node.title} ({record.node.id})."])
    return "\n".join([*lines, *_nodes(record.backlinks)])


def _nodes(nodes: Sequence[Any], indent: str = "") -> list[str]:
    return [f"{indent}{each.title} ({each.id})  {each.path}" for each in nodes]


def _remember(record: Any) -> str:
    what = "Wrote" if record.created else "Added to"
    lines = [
        f"{what} {record.node.title} ({record.node.id})",
        f"  {record.node.path}, commit {record.commit[:10]}",
    ]
    for each in record.contradicts:
        lines += [
            f"! It contradicts {each.title} ({each.id}): {each.why}",
            f"    new: {cut(each.one, 100)}",
            f"    old: {cut(each.other, 100)}",
        ]
    if record.contradicts:
        lines.append(
            "  All of them are contested now. A person decides: `ai-kb supersede` or `ai-kb contest --settle`."
        )
    return "\n".join(lines)


def _status(record: Any) -> str:
    remote = record.remote or "none"
    rows = [
        ("store", record.root),
        ("nodes", f"{record.nodes:,}" + (f", {record.contested} contested" if record.contested else "")),
        ("remote", f"{remote}, ahead {record.ahead}, behind {record.behind}"),
        ("indexed", record.indexed_at or "never by this machine"),
        ("raw", size(record.raw_bytes)),
    ]
    if record.uncommitted:
        rows.append(
            ("changed", ", ".join(record.uncommitted[:3]) + (" …" if len(record.uncommitted) > 3 else ""))
        )
    if record.unfinished:
        rows.append(("git", f"a {record.unfinished} was begun and not finished"))
    if record.remote_problem:
        rows.append(("fetch", f"failed: {record.remote_problem}"))
    if record.push_problem:
        rows.append(("push", f"failed: {record.push_problem}"))
    return "\n".join([table(rows), *([record.nudge] if record.nudge else [])])


def _made(record: Any) -> str:
    if not record.commit and record.created:
        return f"Fetched the knowledge base into {record.root}.\nNext: `ai-kb query WORDS`, `ai-kb install-timer`."
    if not record.commit:
        remote = f" It is pushed to {record.remote}." if record.remote else ""
        return f"{record.root} is a knowledge base already, and nothing is missing.{remote}"
    head = f"Made a knowledge base in {record.root}" if record.created else f"Mended {record.root}"
    lines = [head, *[f"  {path}" for path in record.files]]
    if not record.remote:
        lines.append("It has no remote: `ai-kb init --remote URL` names a private one to push to.")
    return "\n".join([*lines, "Next: `ai-kb remember`, `ai-kb query WORDS`, `ai-kb install-timer`."])


def _lint(record: Any) -> str:
    lines = []
    for each in record.findings:
        mark = "" if each.fatal else "style: "
        lines.append(f"{each.path}:{each.line}: {mark}{each.message}. {_sentence(each.remedy)}")
    style = len(record.findings) - record.fatal
    told = (
        f"{count_noun(record.fatal, 'finding')} that would stop a commit"
        if record.fatal
        else "Nothing is wrong"
    )
    rest = f", {count_noun(style, 'remark')} on style" if style else ""
    return "\n".join(
        [
            *lines,
            f"{told}{rest}; looked at {count_noun(record.files, 'file')}, {count_noun(record.nodes, 'node')}.",
        ]
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _index(record: Any) -> str:
    lines = [f"Took up {path}, which was not committed" for path in record.taken_up]
    if record.files:
        lines.append(f"Wrote {', '.join(record.files)} for {count_noun(record.nodes, 'node')}")
    else:
        lines.append(f"The index is that of the {count_noun(record.nodes, 'node')} already")
    return "\n".join(lines) + (f", commit {record.commit[:10]}" if record.commit else ".")


def _commit(record: Any) -> str:
    if not record.commit:
        return "Nothing has changed."
    lines = [f"Committed {record.commit[:10]}:", *[f"  {path}" for path in record.paths]]
    return "\n".join(lines)


def _doctor(record: Any) -> str:
    rows = []
    for each in record.checks:
        told = each.told or "fine"
        mark = "!!" if not each.well else "--" if each.missing else "ok"
        rows.append((mark, each.name, told if each.well else f"{told}. {each.remedy}"))
    return table(rows)


def _superseded(each: Any) -> str:
    line = f"{each.node.title} ({each.node.id})"
    if each.by:
        line += f" by {', '.join(node.title for node in each.by)}"
    if each.linked_from:
        line += f"; still linked from {', '.join(node.title for node in each.linked_from)}"
    return line


def _curate(record: Any) -> str:
    if record.stamped:
        return f"Marked {count_noun(record.stamped, 'node')} as looked through."
    report = record.report
    lines: list[str] = []

    def tell(title: str, found: Sequence[Any], line: Callable[[Any], str]) -> None:
        if found:
            lines.append(f"{title} ({len(found)})")
            lines.extend(f"  {line(each)}" for each in found[:MOST_SHOWN])
            if len(found) > MOST_SHOWN:
                lines.append(f"  … and {len(found) - MOST_SHOWN:,} more; --json shows them all")

    pointer = "{0.title} ({0.id})".format
    tell(
        "Duplicates",
        report.duplicates,
        lambda each: f"{pointer(each.one)} / {pointer(each.other)}: {each.why}",
    )
    tell("Contested", report.contested, pointer)
    tell("Superseded", report.superseded, _superseded)
    tell("Orphans", report.orphans, pointer)
    tell("Over-broad", report.broad, pointer)
    tell("Untouched for long", report.untouched, lambda each: f"{pointer(each)} since {each.updated}")
    tell("Raw captures without a node", report.raw_unused, str)
    tell("Large raw files", report.raw_large, str)
    tell("Next to look through", report.batch, lambda each: f"{pointer(each)} {each.last_curated or 'never'}")
    lines.append("Curation is due." if record.due else "Curation is not due yet.")
    return "\n".join(lines)


def _push(record: Any) -> str:
    return {
        "pushed": "Pushed.",
        "nothing": f"Nothing to push{f': {record.problem}' if record.problem else ''}.",
        "rejected": f"Not pushed: {record.problem}. Nothing is lost; `ai-kb doctor` says what to do.",
        "unreachable": f"The remote was not reached: {record.problem}. Not pushed: {count_noun(record.ahead, 'commit')}.",
    }[record.outcome]


def _capture(record: Any) -> str:
    rest = " The excerpt was cut at 2,000 words or 16 KB." if record.cut else ""
    also = f" and {record.file}" if record.file else ""
    head = f"Captured {record.path}{also}, commit {record.commit[:10]}.{rest}"
    return f"{head}\nA node names it with --source {record.path}"


def _sync(record: Any) -> str:
    if record.state in ("no emacs", "no org-roam"):
        return str(record.problem)
    if record.state == "failed":
        return f"Emacs could not build {record.database}: {record.problem}"
    if record.problem:
        return f"{record.database} is up to date now, but for a node: {record.problem}"
    return f"{record.database} is {'up to date' if record.state == 'fresh' else 'up to date now'}."


def _map(record: Any) -> str:
    return str(record.dot)


def _emacs_file(record: Any) -> str:
    return str(record.path)


def _timer(record: Any) -> str:
    lines = [f"Wrote {path}" for path in record.written] + [
        f"{path} is as it should be" for path in record.unchanged
    ]
    if record.enabled:
        lines.append("The knowledge base is pushed every 15 minutes.")
    if record.problem:
        lines.append(f"! {record.problem}")
    if record.to_run:
        how = "Put this line into your crontab (`crontab -e`):" if record.kind == "cron" else "Then run:"
        lines += [how, *[f"  {each}" for each in record.to_run]]
    return "\n".join(lines)


def _change(record: Any) -> str:
    verb = "Done" if record.done else "To be done"
    tail = f", commit {record.commit[:10]}" if record.done else ""
    lines = [f"{verb}: {record.act}{tail}", *[f"  {path}" for path in record.files]]
    if record.pointers:
        lines += ["Notes of projects that name it by its ID:", *[f"  {path}" for path in record.pointers]]
    return "\n".join(lines)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "KbQueryRecord": _query,
    "KbShowRecord": _show,
    "KbBacklinksRecord": _backlinks,
    "KbRememberRecord": _remember,
    "Status": _status,
    "Made": _made,
    "KbLintRecord": _lint,
    "KbIndexRecord": _index,
    "KbCommitRecord": _commit,
    "KbDoctorRecord": _doctor,
    "KbCurateRecord": _curate,
    "KbPushRecord": _push,
    "KbCaptureRecord": _capture,
    "KbSyncRecord": _sync,
    "KbMapRecord": _map,
    "KbEmacsFileRecord": _emacs_file,
    "Timer": _timer,
    "KbChangeRecord": _change,
}

"""Graphs as text for people, for Graphviz and for Mermaid."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.render_links import span


def _graph(record: Any) -> str:
    return {"text": _tree, "dot": _dot, "mermaid": _mermaid}[record.form](record)


def _tree(record: Any) -> str:
    """Each page under the one over which it was reached, with the links between the two."""
    arrows: dict[frozenset[str], list[Any]] = {}
    for arrow in record.links:
        arrows.setdefault(frozenset((arrow.from_slug, arrow.to_slug)), []).append(arrow)
    children: dict[str, list[Any]] = {}
    for node in record.nodes:
        if node.distance:
            children.setdefault(node.path[-2], []).append(node)
    lines = []

    def show(node: Any) -> None:
        if node.distance:
            between = arrows.get(frozenset((node.path[-2], node.path[-1])), [])
            said = ", ".join(_said(arrow, node) for arrow in between[:3])
            lines.append(f"{'  ' * node.distance}{said} {node.path[-1]}  {node.title}")
        else:
            lines.append(f"{node.path[-1]}  {node.title}")
        for child in children.get(node.path[-1], ()):
            show(child)

    show(record.nodes[0])
    cut = "" if record.complete else "; there is more: --limit"
    figures = f"{count_noun(len(record.nodes), 'page')}, {count_noun(len(record.links), 'link')}"
    return "\n".join([*lines, "", f"{figures} ({record.temporal}, {record.as_of}){cut}"])


def _said(arrow: Any, node: Any) -> str:
    time = f" ({span(arrow)})" if span(arrow) else ""
    return (
        f"-{arrow.relationship}{time}->"
        if arrow.to_slug == node.path[-1]
        else f"<-{arrow.relationship}{time}-"
    )


def _dot(record: Any) -> str:
    lines = ["digraph quaid {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for node in record.nodes:
        lines.append(f"  {_quoted(node.path[-1])} [label={_quoted(node.title)}];")
    for arrow in record.links:
        lines.append(
            f"  {_quoted(arrow.from_slug)} -> {_quoted(arrow.to_slug)} [label={_quoted(_label(arrow))}];"
        )
    return "\n".join([*lines, "}"])


def _mermaid(record: Any) -> str:
    names = {node.path[-1]: f"n{place}" for place, node in enumerate(record.nodes)}
    lines = ["graph LR"]
    lines += [f'  {names[node.path[-1]]}["{_plain(node.title)}"]' for node in record.nodes]
    for arrow in record.links:
        lines.append(f'  {names[arrow.from_slug]} -->|"{_plain(_label(arrow))}"| {names[arrow.to_slug]}')
    return "\n".join(lines)


def _label(arrow: Any) -> str:
    return f"{arrow.relationship} {span(arrow)}".strip()


def _quoted(text: str) -> str:
    """A string of the dot language, in which only quotes and line ends are special."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _plain(text: str) -> str:
    """Text for a label of Mermaid, which has no escapes but entities."""
    marks = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "\n": " "}
    return "".join([marks.get(letter, letter) for letter in text])


def _path(record: Any) -> str:
    if not record.found:
        why = "no way was found" if record.complete else "the search was given up; there may be a way"
        return (
            f"{record.from_slug} to {record.to_slug}: {why} (--temporal all also takes links that have ended)"
        )
    lines = [record.pages[0]]
    for arrow, page in zip(record.steps, record.pages[1:], strict=True):
        time = f" ({span(arrow)})" if span(arrow) else ""
        line = f"-{arrow.relationship}{time}->" if arrow.to_slug == page else f"<-{arrow.relationship}{time}-"
        lines.append(f"  {line} {page}")
    return "\n".join([*lines, count_noun(len(record.steps), "step")])


RENDERERS: dict[str, Callable[[Any], str]] = {"GraphRecord": _graph, "PathRecord": _path}

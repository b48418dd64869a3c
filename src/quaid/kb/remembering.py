"""What is to be remembered, made a node: checked, compared with what there is, written.

Near-duplicates are told before anything is written. A node that contradicts another one is written as contested, and
so is the other: a person decides which holds. Knows nodes; how a change is carried out is changing.py's business.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quaid.errors import InvalidArgument, NearDuplicate, NotFound, OppositeAdded
from quaid.formats import org_edit
from quaid.kb import finding, layout, node as nodes
from quaid.kb.catalog import Catalog
from quaid.kb.changing import Change
from quaid.kb.node import Draft, Node
from quaid.model import claims

LONGEST_SAID = 4_000
"""Characters of a body that are compared."""

LONGEST_OWN = 100_000
"""Characters of a body that what is added to it is compared with."""

SHORT = 8
"""Digits of an ID that people write."""

MOST_TRIES = 100

_IDS = re.compile(r"(?:[A-Za-z_]+:? )?[0-9a-fA-F]{6}[0-9a-fA-F-]*\Z")

OTHER_RELATION = nodes.RELATIONS[2]
"""What a link says that names no relation."""


class Opposite(NamedTuple):
    """A node that the new one contradicts."""

    id: str
    title: str
    path: str
    why: str
    one: str
    other: str
    """What each of them says."""


class Planned(NamedTuple):
    change: Change
    node: Node
    opposites: tuple[Opposite, ...]


def check(draft: Draft) -> Draft:
    """The draft with everything in order, or an error that says what is not."""
    for name, text in (("title", draft.title), ("summary", draft.summary)):
        if not text.strip():
            raise InvalidArgument(name=name, problem="is needed; one line, written to be found")
    check_summary(draft.summary)
    draft = draft._replace(projects=_listed(draft.projects), tags=_listed(draft.tags))
    bad = [each for each in draft.projects if not nodes.PROJECT.match(each)]
    if bad:
        hint = nodes.project_slug(bad[0])
        raise InvalidArgument(name="projects", problem=f"{bad[0]!r} is no slug; {hint} would be one")
    for tag in draft.tags:
        if not tag.replace("_", "a").replace("@", "a").replace("-", "a").isalnum():
            raise InvalidArgument(name="tags", problem=f"{tag!r} is no tag; use letters, digits, _ and @")
    tags = tuple(tag.replace("-", "_") for tag in draft.tags if tag != draft.type)
    return draft._replace(body=harmless(draft.body), tags=tags, projects=draft.projects or (nodes.GENERAL,))


def _listed(values: Sequence[str]) -> tuple[str, ...]:
    """Slugs or tags that are given one by one, with commas between them, or as org writes them, `:a: :b:`."""
    parts = (
        part for value in values for part in value.replace("," if ":" not in value else ":", "\n").split("\n")
    )
    return tuple(dict.fromkeys(part.strip(" ,\t") for part in parts if part.strip(" ,\t")))


def check_summary(summary: str) -> None:
    if len(" ".join(summary.split())) > nodes.LONGEST_SUMMARY:
        problem = f"is longer than {nodes.LONGEST_SUMMARY} characters; one sentence is enough"
        raise InvalidArgument(name="summary", problem=problem)


def harmless(body: str) -> str:
    """A body whose lines cannot be taken for the head of the file."""
    lines = body.replace("\r\n", "\n").replace("\0", "").strip("\n").split("\n")
    if lines and lines[0].strip().upper() in (":PROPERTIES:", ":END:"):
        lines[0] = f"\u200b{lines[0].lstrip()}"
    return "\n".join(lines)


def plan(
    catalog: Catalog, draft: Draft, links: Sequence[str], *, id: str, local: str, force: bool
) -> Planned:
    """The files of a new node and of those that it contradicts."""
    today = local[:10]
    _check_source(catalog, draft.source)
    references = [_reference(catalog, each) for each in _separate(links)]
    opposites = _with_named(opposed(catalog, draft), references, draft)
    if not force:
        _refuse_duplicates(catalog, draft, {each.id for each in opposites})
    lines = [_link_line(*each) for each in references]
    lines += _against(opposites)
    body = "\n\n".join(part for part in (draft.body.strip("\n"), "\n".join(dict.fromkeys(lines))) if part)
    made = draft._replace(body=body, status="contested" if opposites else draft.status)
    path = _free(catalog, nodes.file_name(draft.title, local))
    text = nodes.write(made, id, today)
    files = {path: text.encode("utf-8", "replace"), **_contested(catalog, opposites, today)}
    change = Change(files, f"remember: {' '.join(draft.title.split())[:100]}")
    return Planned(change, nodes.read(path, text).node, opposites)


def added(
    catalog: Catalog,
    node: Node,
    text: str,
    links: Sequence[str] = (),
    *,
    local: str,
    summary: str = "",
    force: bool = False,
) -> Planned:
    """The file of a node that something is added to, and those of the nodes that this contradicts.

    OppositeAdded when it contradicts the node itself; forced, the node is contested."""
    said = Draft(node.title, summary or text[:LONGEST_SAID], text, node.type, projects=node.projects)
    old = catalog.text(node.path)
    turned = _opposed_within(said._replace(summary=summary), node, old)
    if turned and not force:
        told = "; ".join(f"new: {each.one} / old: {each.other} ({each.why})" for each in turned)
        raise OppositeAdded(node=node.pointer, told=told, opposites=[each._asdict() for each in turned])
    references = [_reference(catalog, each) for each in _separate(links)]
    opposites = _with_named(opposed(catalog, said, but=node.id), references, said)
    lines = [*(_link_line(*each) for each in references), *_against(opposites)]
    lines = [*harmless(text).split("\n"), *dict.fromkeys(lines)]
    new = org_edit.append_lines(old, lines)
    values = {"UPDATED": local[:10]} | ({"SUMMARY": " ".join(summary.split())} if summary.strip() else {})
    new = nodes.stamped(new, values | ({"STATUS": "contested"} if opposites or turned else {}))
    files = {node.path: new.encode("utf-8", "replace"), **_contested(catalog, opposites, local[:10])}
    change = Change(files, f"add to: {node.title[:100]}")
    return Planned(change, nodes.read(node.path, new).node, (*turned, *opposites))


def _opposed_within(draft: Draft, node: Node, old: str) -> tuple[Opposite, ...]:
    """What an addition says against the node that it goes into."""
    lines = nodes.read(node.path, old).body.split("\n")
    body = "\n".join(line for line in lines if not line.lstrip("-+* ").startswith(nodes.RELATIONS))
    there = _said(node)._replace(body=body[:LONGEST_OWN])
    found = claims.find_conflicts_within(_statement(draft), there)
    return tuple(Opposite(node.id, node.title, node.path, each.why, each.one, each.other) for each in found)


def _against(opposites: Sequence[Opposite]) -> list[str]:
    return [f"CONTRADICTS [[id:{each.id}][{nodes.described(each.title)}]]" for each in opposites]


def _contested(catalog: Catalog, opposites: Sequence[Opposite], today: str) -> dict[str, bytes | None]:
    marks = {"STATUS": "contested", "UPDATED": today}
    return {
        each.path: nodes.stamped(catalog.text(each.path), marks).encode("utf-8", "replace")
        for each in opposites
    }


def opposed(catalog: Catalog, draft: Draft, but: str = "") -> tuple[Opposite, ...]:
    """The nodes that cannot hold together with this one; not the one that it is written into."""
    current = {node.id: node for node in catalog.nodes if node.status != "superseded" and node.id != but}
    said = [_said(node)._replace(body=catalog.body(node.path)[:LONGEST_SAID]) for node in current.values()]
    found = claims.find_conflicts(_statement(draft), said)
    return tuple(
        Opposite(each.key, current[each.key].title, current[each.key].path, each.why, each.one, each.other)
        for each in found
    )


def _refuse_duplicates(catalog: Catalog, draft: Draft, opposites: set[str]) -> None:
    """What says the same is there already; what says the opposite is another matter."""
    current = {
        node.id: node for node in catalog.nodes if node.status != "superseded" and node.id not in opposites
    }
    found = claims.find_similar(_statement(draft), [_said(node) for node in current.values()])
    if found:
        told = "; ".join(f"{current[each.key].pointer}, {each.why}" for each in found[:3])
        raise NearDuplicate(told=told, nodes=[current[each.key].id for each in found])


def _statement(draft: Draft) -> claims.Statement:
    return claims.Statement("", draft.title, draft.summary, draft.body, draft.type, draft.projects)


def _said(node: Node) -> claims.Statement:
    return claims.Statement(node.id, node.title, node.summary, "", node.type, node.projects)


def _separate(links: Sequence[str]) -> list[str]:
    """Links one by one; commas separate IDs, while a title may hold them."""
    found = []
    for link in links:
        parts = [part.strip() for part in link.split(",") if part.strip()]
        found += parts if all(_IDS.match(part) for part in parts) else [link]
    return found


def _reference(catalog: Catalog, link: str) -> tuple[str, Node]:
    """Relation and node of a link as it is given: `IMPLEMENTS UUID`, `UUID` or `A title`."""
    first, _, rest = link.strip().partition(" ")
    relation = first.upper().rstrip(":")
    if relation == "SUPERSEDES" and rest:
        problem = "superseding is for a person: write the node, then `ai-kb supersede OLD --by NEW`"
        raise InvalidArgument(name="links", problem=problem)
    if relation in nodes.RELATIONS and rest:
        return relation, finding.find(catalog, rest)
    try:
        return OTHER_RELATION, finding.find(catalog, link)
    except NotFound:
        if rest and first.rstrip(":").replace("_", "").isupper():
            problem = f"{first!r} is no relation; one of {', '.join(nodes.RELATIONS[1:])}"
            raise InvalidArgument(name="links", problem=problem) from None
        raise


def _link_line(relation: str, node: Node) -> str:
    return f"{relation} [[id:{node.id}][{nodes.described(node.title)}]]"


def _with_named(
    found: tuple[Opposite, ...], references: Sequence[tuple[str, Node]], draft: Draft
) -> tuple[Opposite, ...]:
    """The opposites that were found, and those that a link names as such."""
    known = {each.id for each in found}
    named = {
        node.id: node for relation, node in references if relation == "CONTRADICTS" and node.id not in known
    }
    why, one = "a link says so", draft.summary or draft.title
    return (
        *found,
        *(Opposite(node.id, node.title, node.path, why, one, node.summary) for node in named.values()),
    )


def _check_source(catalog: Catalog, source: str) -> None:
    """A path below raw/ must be that of a capture, so that the node can be checked against it."""
    path = source.strip()
    if layout.is_raw(path) and " " not in path and path not in catalog.files:
        raise InvalidArgument(
            name="source", problem=f"there is no {path}; `ai-kb capture` writes one and names it"
        )


def free_id(catalog: Catalog, new: Callable[[], str]) -> str:
    """An ID whose first eight digits no other node has: by these a person names a node."""
    taken = {id[:SHORT] for node in catalog.nodes for id in (node.id, *node.merged, *node.inner)}
    id = new()
    for _ in range(MOST_TRIES):
        if id[:SHORT] not in taken:
            break
        id = new()
    return id


def _free(catalog: Catalog, name: str) -> str:
    path, number = name, 1
    while path in catalog.files:
        number += 1
        path = f"{name.removesuffix('.org')}-{number}.org"
    return path

"""What a person should look through: a report, and when the next one is due.

Nothing is changed here. Knows nodes and raw files; does not know git.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quaid.kb import layout
from quaid.kb.catalog import Catalog
from quaid.kb.node import TYPES, Node
from quaid.kb.querying import words
from quaid.model import dates

FIRST, EVERY = 150, 50
"""Curation is due at so many nodes, and whenever so many more were added since the last time."""

BATCH = 25
"""Nodes that one pass looks through: those that were longest not looked at."""

UNTOUCHED_DAYS = 365
BROAD_CHARACTERS, BROAD_HEADINGS = 6_000, 6
LARGE_RAW = 256 * 1024
README = f"{layout.RAW}/README.org"
COMMON_TO, LEAST_SHARED = 40, 2
"""Words that more nodes have do not make two of them alike; so many others must be shared."""


class Duplicate(NamedTuple):
    one: Node
    other: Node
    why: str


class Superseded(NamedTuple):
    node: Node
    by: tuple[Node, ...]
    """Nodes that took its place."""
    linked_from: tuple[Node, ...]
    """Current nodes that link to it, other than as what they superseded or contradict."""


class Report(NamedTuple):
    """Paths, nodes and pairs, by what may be wrong with them."""

    duplicates: tuple[Duplicate, ...]
    orphans: tuple[Node, ...]
    """Nothing links to them, and they link to nothing."""
    contested: tuple[Node, ...]
    superseded: tuple[Superseded, ...]
    broad: tuple[Node, ...]
    untouched: tuple[Node, ...]
    raw_unused: tuple[str, ...]
    """No node names them as its source."""
    raw_large: tuple[str, ...]
    batch: tuple[Node, ...]
    """The next to look through."""


class Due(NamedTuple):
    is_due: bool
    nodes: int
    new: int
    """Nodes since the last pass."""
    last: str
    """The day of the last pass; nothing: there was none."""


def due(nodes: Sequence[Node]) -> Due:
    """Whether it is time: at the first many nodes, and after every many more."""
    last = max((node.last_curated for node in nodes), default="")
    new = sum(1 for node in nodes if not node.last_curated and node.created >= last) if last else len(nodes)
    return Due(new >= EVERY if last else len(nodes) >= FIRST, len(nodes), new, last)


def report(catalog: Catalog, today: str, days: int = UNTOUCHED_DAYS) -> Report:
    """Everything that a person might want to merge, split, mend or let go."""
    nodes = list(catalog.nodes)
    by_id = {id: node for node in nodes for id in (node.id, *node.inner)}
    linked: dict[str, list[Node]] = {}
    for node in nodes:
        for link in node.links:
            if link.id in by_id and by_id[link.id].path != node.path:
                linked.setdefault(by_id[link.id].path, []).append(node)
    linking = {node.path for node in nodes if any(link.id in by_id for link in node.links)}
    sources = {node.source for node in nodes}
    raw = [file for file in catalog.files.values() if layout.is_raw(file.path)]
    horizon = dates.shift_date(today, -days)
    return Report(
        _duplicates(nodes),
        tuple(node for node in nodes if node.path not in linked and node.path not in linking),
        tuple(node for node in nodes if node.status == "contested"),
        tuple(_superseded(node, linked.get(node.path, ())) for node in nodes if node.status == "superseded"),
        tuple(node for node in nodes if _is_broad(catalog, node)),
        tuple(node for node in nodes if max(node.updated, node.last_curated) < horizon),
        _unused(catalog, [file.path for file in raw if file.path != README], sources),
        tuple(file.path for file in raw if file.looks.size > LARGE_RAW),
        tuple(sorted(nodes, key=lambda node: (node.last_curated, node.updated, node.path))[:BATCH]),
    )


def _unused(catalog: Catalog, raw: Sequence[str], sources: set[str]) -> tuple[str, ...]:
    """Captures that no node names. A whole file belongs to the stub that names it, and is judged with that."""
    unnamed = [path for path in raw if not _is_named(path, sources)]
    if any(path.startswith(f"{layout.RAW_FILES}/") for path in unnamed):
        from quaid.kb.capturing import named_file

        stubs = (path for path in raw if path.endswith(layout.ENDING) and path.count("/") == 1)
        kept = {named_file(catalog.text(path)) for path in stubs}
        unnamed = [path for path in unnamed if path not in kept]
    return tuple(unnamed)


def _is_named(path: str, sources: Iterable[str]) -> bool:
    return any(path in source for source in sources)


def _superseded(old: Node, linking: Sequence[Node]) -> Superseded:
    """Return an old node, what took its place, and which nodes still rely on it."""
    ids = {old.id, *old.inner}
    by, relying = [], []
    for node in dict.fromkeys(linking):
        relations = {link.relation for link in node.links if link.id in ids}
        if "SUPERSEDES" in relations:
            by.append(node)
        if node.status == "current" and relations - {"SUPERSEDES", "CONTRADICTS"}:
            relying.append(node)
    return Superseded(old, tuple(by), tuple(relying))


def _is_broad(catalog: Catalog, node: Node) -> bool:
    return (
        node.size > BROAD_CHARACTERS
        or ("\n" + catalog.body(node.path)).count("\n* ") >= BROAD_HEADINGS
        or sum(tag in TYPES for tag in node.tags) > 1
    )


def _duplicates(nodes: Sequence[Node]) -> tuple[Duplicate, ...]:
    """Pairs that say the same: each node is compared with those behind it that share some of its rarer words."""
    from quaid.model import claims

    current = [node for node in nodes if node.status != "superseded"]
    holding: dict[str, list[int]] = {}
    said = []
    for at, node in enumerate(current):
        said.append(claims.Statement(str(at), node.title, node.summary, "", node.type, node.projects))
        for word in words(f"{node.title} {node.summary}"):
            holding.setdefault(word, []).append(at)
    found = []
    for at, node in enumerate(current):
        shared: dict[int, int] = {}
        for word in words(f"{node.title} {node.summary}"):
            for other in holding[word] if len(holding[word]) <= COMMON_TO else ():
                if other > at:
                    shared[other] = shared.get(other, 0) + 1
        near = [said[other] for other, count in shared.items() if count >= LEAST_SHARED]
        found += [
            Duplicate(node, current[int(each.key)], each.why)
            for each in (claims.find_similar(said[at], near) if near else ())
        ]
    return tuple(found)

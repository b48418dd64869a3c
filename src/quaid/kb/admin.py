"""What only a person may do to nodes: merge, delete, supersede, contest. Planned here, told, and then done.

A pointer to a node that was merged goes on leading somewhere: the node that is left remembers the ID. Knows nodes;
how a change is carried out is changing.py's business.
"""

import re
from collections.abc import Iterable

from quaid.errors import InvalidArgument, NotFound
from quaid.formats import org_edit
from quaid.kb import capturing, finding, layout
from quaid.kb.catalog import Catalog
from quaid.kb.changing import Change
from quaid.kb.curating import README
from quaid.kb.node import MERGED, RELATIONS, TYPES, Node, described, stamped
from quaid.model.plain_text import count_noun


def merge(catalog: Catalog, kept: Node, gone: Node, today: str) -> Change:
    """One node of two: the second's text goes below the first's, links to it lead to the first, its file goes."""
    _refuse_same(kept, gone)
    body = _body(catalog, gone).strip("\n")
    lines = [f"* {gone.title}", gone.summary, *(["", _deeper(body)] if body else [])]
    text = org_edit.append_lines(catalog.text(kept.path), ["", *"\n".join(lines).split("\n")])
    for old in (gone.id, *gone.merged):
        text = org_edit.replace_id(text, old, kept.id)
    text = _without_self(_joined(text, kept, gone), kept.id)
    ids = dict.fromkeys((*kept.merged, gone.id, *gone.merged))
    text = org_edit.set_property(text, MERGED, " ".join(ids))
    text = org_edit.set_property(text, "UPDATED", today)
    files: dict[str, bytes | None] = {kept.path: _bytes(text), gone.path: None}
    for node in finding.linking_to(catalog, gone):
        if node.path != kept.path:
            changed = catalog.text(node.path)
            for old in (gone.id, *gone.merged):
                changed = org_edit.replace_id(changed, old, kept.id)
            files[node.path] = _bytes(changed)
    return Change(files, f"merge: {gone.title[:60]} into {kept.title[:60]}")


def _joined(text: str, kept: Node, gone: Node) -> str:
    """The text with projects, tags and sources of both nodes; the type stays that of the one that is kept."""
    projects = dict.fromkeys((*kept.projects, *gone.projects))
    if len(projects) > len(kept.projects):
        text = org_edit.set_property(text, "PROJECTS", " ".join(f":{each}:" for each in projects))
    tags = dict.fromkeys((*kept.tags, *(tag for tag in gone.tags if tag not in TYPES)))
    if len(tags) > len(kept.tags):
        text = org_edit.set_filetags(text, tags)
    if gone.source and gone.source not in kept.source:
        text = org_edit.set_property(text, "SOURCE", "; ".join(filter(None, (kept.source, gone.source))))
    return text


def _without_self(text: str, id: str) -> str:
    """The text without lines that only say how the node stands to itself, as CONTRADICTS does after a merge."""
    link = rf"\[\[id:{re.escape(id)}\](?:\[[^\]\n]*\])?\]"
    line = rf"(?mi)^[ \t]*(?:[-+] )?(?:{'|'.join(RELATIONS)}):?[ \t]+{link}[ \t.]*(?:\n|\Z)"
    return re.sub(line, "", text)


def delete_raw(catalog: Catalog, path: str, *, force: bool) -> Change:
    """A capture taken away, with the whole file that its stub names; refused while a node names it as its source."""
    if path not in catalog.files or path == README:
        hint = " `ai-kb curate --dry-run` lists captures that no node names."
        raise NotFound(what="capture", name=path, hint=hint)
    stubs = [each for each in catalog.files if layout.is_raw(each) and each.endswith(layout.ENDING)]
    named = {stub: capturing.named_file(catalog.text(stub)) for stub in stubs}
    owner = next((stub for stub, file in named.items() if file == path), "")
    if owner:
        raise InvalidArgument(name="node", problem=f"{path} belongs to {owner}; delete that")
    users = [node for node in catalog.nodes if path in node.source]
    if users and not force:
        told = ", ".join(node.pointer for node in users[:5])
        raise InvalidArgument(
            name="node", problem=f"it is the source of {told}; --force deletes it all the same"
        )
    files: dict[str, bytes | None] = {path: None}
    if named.get(path) in catalog.files:
        files[named[path]] = None
    return Change(files, f"delete: {path[:100]}")


def delete(catalog: Catalog, node: Node, *, force: bool) -> Change:
    """The file of a node taken away; refused while others link to it."""
    linking = finding.linking_to(catalog, node)
    if linking and not force:
        told = ", ".join(each.pointer for each in linking[:5])
        raise InvalidArgument(
            name="node", problem=f"{told} link to it; `ai-kb merge` keeps their links whole"
        )
    files: dict[str, bytes | None] = {node.path: None}
    for each in linking:
        files[each.path] = _bytes(_unlinked(catalog.text(each.path), {node.id, *node.merged, *node.inner}))
    return Change(files, f"delete: {node.title[:100]}")


def supersede(catalog: Catalog, old: Node, new: Node, today: str) -> Change:
    """The old node is marked, the new one says what it took the place of."""
    _refuse_same(old, new)
    text = catalog.text(new.path)
    if not any(link.id == old.id and link.relation == "SUPERSEDES" for link in new.links):
        text = org_edit.append_lines(text, ["", f"SUPERSEDES [[id:{old.id}][{described(old.title)}]]"])
    for name, value in (("STATUS", "current"), ("UPDATED", today)):
        text = org_edit.set_property(text, name, value)
    marked = _marked(catalog, old, {"STATUS": "superseded", "UPDATED": today})
    return Change(
        {new.path: _bytes(text), old.path: marked}, f"supersede: {old.title[:60]} by {new.title[:60]}"
    )


def contest(catalog: Catalog, node: Node, other: Node | None, today: str, *, settle: bool = False) -> Change:
    """Nodes marked as contested, or as current again."""
    status = "current" if settle else "contested"
    files: dict[str, bytes | None] = {}
    for each in _both(node, other):
        files[each.path] = _marked(catalog, each, {"STATUS": status, "UPDATED": today})
    if other is not None and not settle:
        _refuse_same(node, other)
        if not any(link.id == other.id and link.relation == "CONTRADICTS" for link in node.links):
            line = f"CONTRADICTS [[id:{other.id}][{described(other.title)}]]"
            text = (files[node.path] or b"").decode("utf-8", "replace")
            files[node.path] = _bytes(org_edit.append_lines(text, ["", line]))
    return Change(files, f"{'settle' if settle else 'contest'}: {node.title[:100]}")


def curated(catalog: Catalog, nodes: Iterable[Node], today: str, stamp: str) -> Change:
    """Nodes marked as looked through."""
    files: dict[str, bytes | None] = {each.path: _marked(catalog, each, {stamp: today}) for each in nodes}
    return Change(files, f"curate: {count_noun(len(files), 'node')} looked through")


def _both(node: Node, other: Node | None) -> tuple[Node, ...]:
    return (node,) if other is None or other.path == node.path else (node, other)


def _refuse_same(one: Node, other: Node) -> None:
    if one.path == other.path:
        raise InvalidArgument(name="node", problem=f"both names mean {one.pointer}; name two nodes")


def _body(catalog: Catalog, node: Node) -> str:
    from quaid.formats import org

    text = catalog.text(node.path)
    return text[org.parse(text).body_start :]


def _deeper(body: str) -> str:
    """Headings one level down, so that they stay below the heading that they come under."""
    return "\n".join(
        f"*{line}" if line.startswith("*") and line.lstrip("*")[:1] == " " else line
        for line in body.split("\n")
    )


def _marked(catalog: Catalog, node: Node, values: dict[str, str]) -> bytes:
    return _bytes(stamped(catalog.text(node.path), values))


def _unlinked(text: str, ids: set[str]) -> str:
    """The text with what links to these ids say in the place of the links."""
    from quaid.formats import org

    for link in reversed(org.parse(text).links):
        if link.kind == "id" and link.target.lower() in ids:
            text = text[: link.start] + (link.description or link.target) + text[link.end :]
    return text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")

"""Plan changes to nodes: create, extend, merge, delete, supersede or contest a node, or capture a source.

Each function returns a StoreChange for a transaction to apply. If a new node contradicts an existing node,
both are marked as contested, and a person decides between them.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from quaid.errors import FileChanged, FileTrouble, InvalidArgument, NearDuplicate, NotFound, OppositeAdded
from quaid.formats import org
from quaid.kb import catalog as catalogs, layout, node as nodes
from quaid.kb.catalog import Catalog
from quaid.kb.layout import RAW_README
from quaid.kb.node import (
    CAPTURE_FILE_KEYWORD,
    MERGED_PROPERTY,
    NODE_TYPES,
    RELATIONS,
    Node,
    NodeDraft,
    link_description,
    set_properties,
)
from quaid.kb.repository import mask_urls
from quaid.kb.transaction import StoreChange
from quaid.model import claims, secrets
from quaid.model.plain_text import count_noun

MAX_COMPARED_BODY = 4_000
"""Maximum characters of each body that are compared to find contradictions."""

MAX_OWN_BODY = 100_000
"""Maximum characters of a node's body with which an addition is compared."""

SHORT_ID_LENGTH = 8
"""Length of the ID prefix by which users name a node."""

MAX_ID_ATTEMPTS = 100

_ID_LINK = re.compile(r"(?:[A-Za-z_]+:? )?[0-9a-fA-F]{6}[0-9a-fA-F-]*\Z")

DEFAULT_RELATION = nodes.RELATIONS[2]
"""The relation of a link for which the user gave no relation."""


class ContradictedNode(NamedTuple):
    """A node that contradicts the new text."""

    id: str
    title: str
    path: str
    why: str
    one: str
    other: str
    """The contradicting statements. `one` is from the new text and `other` from this node."""


def check_draft(draft: NodeDraft) -> NodeDraft:
    """Return the draft with normalized values. Raise InvalidArgument if a value is invalid."""
    for name, text in (("title", draft.title), ("summary", draft.summary)):
        if not text.strip():
            raise InvalidArgument(name=name, problem="is needed; one line, written to be found")
    check_summary(draft.summary)
    draft = draft._replace(projects=_split_values(draft.projects), tags=_split_values(draft.tags))
    bad = [project for project in draft.projects if not nodes.PROJECT_PATTERN.match(project)]
    if bad:
        hint = nodes.project_slug(bad[0])
        raise InvalidArgument(name="projects", problem=f"{bad[0]!r} is no slug; {hint} would be one")
    for tag in draft.tags:
        if not tag.replace("_", "a").replace("@", "a").replace("-", "a").isalnum():
            raise InvalidArgument(name="tags", problem=f"{tag!r} is no tag; use letters, digits, _ and @")
    tags = tuple(tag.replace("-", "_") for tag in draft.tags if tag != draft.type)
    return draft._replace(
        body=sanitize_body(draft.body), tags=tags, projects=draft.projects or (nodes.GENERAL_PROJECT,)
    )


def _split_values(values: Sequence[str]) -> tuple[str, ...]:
    """Split slugs or tags, which may be single, separated by commas, or in org syntax (`:a: :b:`)."""
    parts = (
        part for value in values for part in value.replace("," if ":" not in value else ":", "\n").split("\n")
    )
    return tuple(dict.fromkeys(part.strip(" ,\t") for part in parts if part.strip(" ,\t")))


def check_summary(summary: str) -> None:
    if len(" ".join(summary.split())) > nodes.MAX_SUMMARY_LENGTH:
        problem = f"is longer than {nodes.MAX_SUMMARY_LENGTH} characters; one sentence is enough"
        raise InvalidArgument(name="summary", problem=problem)


def sanitize_body(body: str) -> str:
    """Return the body with LF line ends, no NUL bytes, and a first line that cannot be part of a property drawer."""
    lines = body.replace("\r\n", "\n").replace("\0", "").strip("\n").split("\n")
    if lines and lines[0].strip().upper() in (":PROPERTIES:", ":END:"):
        lines[0] = f"\u200b{lines[0].lstrip()}"
    return "\n".join(lines)


def plan_node(
    catalog: Catalog, draft: NodeDraft, links: Sequence[str], *, id: str, local: str, force: bool
) -> StoreChange:
    """Plan the file of a new node, and mark the nodes that it contradicts as contested.

    The details of the change are the node and the nodes that contradict it. Unless `force`, raise NearDuplicate
    if another node has nearly the same content.
    """
    _check_source(catalog, draft.source)
    lines, opposites = _links_and_contradictions(catalog, draft, links)
    if not force:
        _refuse_duplicates(catalog, draft, {opposite.id for opposite in opposites})
    body = "\n\n".join(part for part in (draft.body.strip("\n"), "\n".join(lines)) if part)
    final = draft._replace(body=body, status="contested" if opposites else draft.status)
    path = _free_path(catalog, nodes.node_file_name(draft.title, local))
    text = nodes.render_node(final, id, local[:10])
    files = {path: _encode_text(text), **_contested_files(catalog, opposites, local[:10])}
    details = (nodes.parse_node(path, text).node, opposites)
    return StoreChange(files, f"remember: {' '.join(draft.title.split())[:100]}", details)


def plan_edit(catalog: Catalog, node: Node, text: str, *, expected: str | None, today: str) -> StoreChange:
    """Plan replacing the text of a node. Raise FileChanged if the current text does not have the expected SHA-256.

    Raise InvalidArgument if the new text has a different ID.
    """
    old = catalog.text(node.path)
    if expected is not None and sha256(old.encode()).hexdigest() != expected:
        raise FileChanged(path=node.path)
    text = text.replace("\r\n", "\n").replace("\0", "").rstrip("\n") + "\n"
    new = nodes.parse_node(node.path, text).node
    if new.id != node.id:
        raise InvalidArgument(
            name="content", problem=f"must keep the line :ID: {node.id}, by which others link to it"
        )
    if text == old:
        return StoreChange({}, "", (node,))
    if new.updated == node.updated:
        text = set_properties(text, {"UPDATED": today})
    final = nodes.parse_node(node.path, text).node
    return StoreChange(
        {node.path: _encode_text(text)}, f"edit: {' '.join(final.title.split())[:100]}", (final,)
    )


def plan_addition(
    catalog: Catalog,
    node: Node,
    text: str,
    links: Sequence[str] = (),
    *,
    local: str,
    summary: str = "",
    force: bool = False,
) -> StoreChange:
    """Plan adding text to a node, and mark other nodes that the text contradicts as contested.

    If the text contradicts the node itself, raise OppositeAdded, or with force=True mark the node as
    contested. `summary`, if given, replaces the summary of the node.
    """
    draft = NodeDraft(
        node.title, summary or text[:MAX_COMPARED_BODY], text, node.type, projects=node.projects
    )
    old = catalog.text(node.path)
    turned = _self_contradictions(draft._replace(summary=summary), node, old)
    if turned and not force:
        pairs = "; ".join(
            f"new: {conflict.one} / old: {conflict.other} ({conflict.why})" for conflict in turned
        )
        raise OppositeAdded(
            node=node.pointer, detail=pairs, opposites=[conflict._asdict() for conflict in turned]
        )
    lines, opposites = _links_and_contradictions(catalog, draft, links, but=node.id)
    new = org.append_lines(old, [*sanitize_body(text).split("\n"), *lines])
    values = {"UPDATED": local[:10]} | ({"SUMMARY": " ".join(summary.split())} if summary.strip() else {})
    new = set_properties(new, values | ({"STATUS": "contested"} if opposites or turned else {}))
    files = {node.path: _encode_text(new), **_contested_files(catalog, opposites, local[:10])}
    details = (nodes.parse_node(node.path, new).node, (*turned, *opposites))
    return StoreChange(files, f"add to: {node.title[:100]}", details)


def _links_and_contradictions(
    catalog: Catalog, draft: NodeDraft, links: Sequence[str], but: str = ""
) -> tuple[list[str], tuple[ContradictedNode, ...]]:
    """Return the link lines for a new text, and the nodes that contradict it.

    Nodes that `links` names with the relation CONTRADICTS are included. The text is not compared with the node
    whose ID is `but`.
    """
    references = [_parse_link(catalog, link) for link in _split_links(links)]
    opposites = list(find_contradictions(catalog, draft, but))
    opposite_ids = {opposite.id for opposite in opposites}
    why, one = "a link says so", draft.summary or draft.title
    for node in dict.fromkeys(node for relation, node in references if relation == "CONTRADICTS"):
        if node.id not in opposite_ids:
            opposites.append(ContradictedNode(node.id, node.title, node.path, why, one, node.summary))
    lines = [_link_line(relation, node.id, node.title) for relation, node in references]
    lines += [_link_line("CONTRADICTS", opposite.id, opposite.title) for opposite in opposites]
    return list(dict.fromkeys(lines)), tuple(opposites)


def _self_contradictions(draft: NodeDraft, node: Node, old: str) -> tuple[ContradictedNode, ...]:
    """Return the contradictions between an addition and the node it is added to."""
    lines = nodes.parse_node(node.path, old).body.split("\n")
    body = "\n".join(line for line in lines if not line.lstrip("-+* ").startswith(nodes.RELATIONS))
    existing = _node_statement(node)._replace(body=body[:MAX_OWN_BODY])
    conflicts = claims.find_conflicts_within(_draft_statement(draft), existing)
    return tuple(_contradicted(node, conflict) for conflict in conflicts)


def _contested_files(
    catalog: Catalog, opposites: Sequence[ContradictedNode], today: str
) -> dict[str, bytes | None]:
    marks = {"STATUS": "contested", "UPDATED": today}
    return {opposite.path: _with_properties(catalog, opposite.path, marks) for opposite in opposites}


def find_contradictions(catalog: Catalog, draft: NodeDraft, but: str = "") -> tuple[ContradictedNode, ...]:
    """Return the nodes that contradict the draft, except superseded nodes and the node with the ID `but`."""
    current = {node.id: node for node in catalog.nodes if node.status != "superseded" and node.id != but}
    statements = [
        _node_statement(node)._replace(body=catalog.body(node.path)[:MAX_COMPARED_BODY])
        for node in current.values()
    ]
    conflicts = claims.find_conflicts(_draft_statement(draft), statements)
    return tuple(_contradicted(current[conflict.key], conflict) for conflict in conflicts)


def _contradicted(node: Node, conflict: claims.StatementMatch) -> ContradictedNode:
    return ContradictedNode(node.id, node.title, node.path, conflict.why, conflict.one, conflict.other)


def _refuse_duplicates(catalog: Catalog, draft: NodeDraft, opposites: set[str]) -> None:
    """Raise NearDuplicate if a node has nearly the same content as the draft.

    Superseded nodes and the nodes in `opposites` are not compared.
    """
    current = {
        node.id: node for node in catalog.nodes if node.status != "superseded" and node.id not in opposites
    }
    similar = claims.find_similar(
        _draft_statement(draft), [_node_statement(node) for node in current.values()]
    )
    if similar:
        names = "; ".join(f"{current[match.key].pointer}, {match.why}" for match in similar[:3])
        raise NearDuplicate(detail=names, nodes=[match.key for match in similar])


def _draft_statement(draft: NodeDraft) -> claims.Statement:
    return claims.Statement("", draft.title, draft.summary, draft.body, draft.type, draft.projects)


def _node_statement(node: Node) -> claims.Statement:
    return claims.Statement(node.id, node.title, node.summary, "", node.type, node.projects)


def _split_links(links: Sequence[str]) -> list[str]:
    """Split links at commas if all parts are IDs.

    A title may contain commas, so other links are kept whole.
    """
    separate = []
    for link in links:
        parts = [part.strip() for part in link.split(",") if part.strip()]
        separate += parts if all(_ID_LINK.match(part) for part in parts) else [link]
    return separate


def _parse_link(catalog: Catalog, link: str) -> tuple[str, Node]:
    """Return relation and node of a link given as `IMPLEMENTS UUID`, `UUID` or `A title`."""
    first, _, rest = link.strip().partition(" ")
    relation = first.upper().rstrip(":")
    if relation == "SUPERSEDES" and rest:
        problem = "superseding is for a person: write the node, then `ai-kb supersede OLD --by NEW`"
        raise InvalidArgument(name="links", problem=problem)
    if relation in nodes.RELATIONS and rest:
        return relation, catalogs.find_node(catalog, rest)
    try:
        return DEFAULT_RELATION, catalogs.find_node(catalog, link)
    except NotFound:
        if rest and first.rstrip(":").replace("_", "").isupper():
            problem = f"{first!r} is no relation; one of {', '.join(nodes.RELATIONS[1:])}"
            raise InvalidArgument(name="links", problem=problem) from None
        raise


def _link_line(relation: str, id: str, title: str) -> str:
    return f"{relation} [[id:{id}][{link_description(title)}]]"


def _check_source(catalog: Catalog, source: str) -> None:
    """Raise InvalidArgument if the source is a path in raw/ that does not exist."""
    path = source.strip()
    if layout.is_raw_file(path) and " " not in path and path not in catalog.files:
        raise InvalidArgument(
            name="source", problem=f"there is no {path}; `ai-kb capture` writes one and names it"
        )


def free_id(catalog: Catalog, new: Callable[[], str]) -> str:
    """Return a new ID whose first eight digits no other node has, because users name nodes by these digits.

    After MAX_ID_ATTEMPTS attempts, any ID is returned.
    """
    taken = {id[:SHORT_ID_LENGTH] for node in catalog.nodes for id in (node.id, *node.merged, *node.inner)}
    id = new()
    for _ in range(MAX_ID_ATTEMPTS):
        if id[:SHORT_ID_LENGTH] not in taken:
            break
        id = new()
    return id


def _free_path(catalog: Catalog, path: str) -> str:
    """Return the path, with a number before its extension if it is taken."""
    base, dot, ending = path.rpartition(".")
    base, ending = (base, f".{ending}") if dot else (path, "")
    numbered = (f"{base}-{number}{ending}" for number in itertools.count(2))
    return next(name for name in itertools.chain([path], numbered) if name not in catalog.files)


# Captures

MAX_EXCERPT_WORDS, MAX_EXCERPT_BYTES = 2_000, 16 * 1024
MAX_CAPTURE_BYTES = 32 * 1024 * 1024
DOWNLOAD_TIMEOUT = 30.0
"""Socket timeout: the download fails if the server sends nothing for this many seconds."""

ZERO_WIDTH_JOINER = "\u200d"
_JOINERS = frozenset(f"\u200c{ZERO_WIDTH_JOINER}\ufe0e\ufe0f")


def plan_capture(
    catalog: Catalog,
    source: str,
    excerpt: str,
    *,
    local: str,
    title: str = "",
    whole: tuple[str, bytes] | None = None,
) -> StoreChange:
    """Plan the stub of a captured source (an org file with an excerpt), and the complete file.

    `whole` is the name and content of the complete file, if it is to be kept. The details of the change are
    both paths (the second is empty without a complete file) and whether the excerpt was cut.
    """
    if not source.strip() or "\n" in source:
        raise InvalidArgument(name="source", problem="is an address or a file, on one line")
    text, cut = limit_excerpt(excerpt)
    if not text.strip() and whole is None:
        raise InvalidArgument(name="excerpt", problem="is empty; hand over what matters of the source")
    name = source if "://" in source else source.replace("\\", "/").rpartition("/")[2]
    stamp = re.sub(r"\D", "", local)[:14]
    path = _free_path(catalog, f"{layout.RAW_FOLDER}/{stamp}-{_capture_slug(title or name)}.org")
    lines = [
        f"#+title: {' '.join((title or source).split())}",
        f"#+source: {source.strip()}",
        f"#+retrieved: {local[:10]}",
    ]
    place, files = "", dict[str, bytes | None]()
    if whole is not None:
        place = _free_path(catalog, f"{layout.RAW_FILES_FOLDER}/{stamp}-{_file_slug(whole[0])}")
        files[place] = whole[1]
        link = f"[[file:{place.removeprefix(f'{layout.RAW_FOLDER}/')}][The whole source]]"
        lines += [f"{CAPTURE_FILE_KEYWORD} {place}", "", link]
    if text.strip():
        lines += ["", "#+begin_quote", *(_quote_line(line) for line in text.split("\n")), "#+end_quote"]
    if cut:
        lines += ["", "The excerpt was cut here."]
    files = {path: _encode_text("\n".join([*lines, ""])), **files}
    message = f"capture: {link_description(title or source)[:100]}"
    return StoreChange(files, message, (path, place, cut))


def check_capture_size(data: bytes) -> bytes:
    if len(data) > MAX_CAPTURE_BYTES:
        raise InvalidArgument(name="source", problem=f"is larger than {MAX_CAPTURE_BYTES // 1024 // 1024} MB")
    return data


def decode_source(data: bytes, path: str) -> str:
    """Decode the file an excerpt is taken from. Raise FileTrouble if it is not text."""
    hint = "keep the whole file with --full, or hand over what matters of it as text with --excerpt"
    if not secrets.is_text_data(data):
        raise FileTrouble(path=path, problem=f"is not a text file; {hint}")
    try:
        is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start:,}); save it as UTF-8, {hint}"
        raise FileTrouble(path=path, problem=problem) from None


def download_source(address: str) -> tuple[str, bytes]:
    """Download an http or https URL. Return a file name and the content."""
    from http.client import HTTPException
    from urllib import error, parse, request

    parts = parse.urlsplit(address)
    shown = mask_urls(address)
    hint = "download it yourself and add --file FILE"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        problem = f"only http and https can be fetched, not {shown!r}; {hint}"
        raise InvalidArgument(name="source", problem=problem)
    query = request.Request(address, headers={"User-Agent": "ai-kb"})  # noqa: S310 (http and https, see above)
    try:
        with request.urlopen(query, timeout=DOWNLOAD_TIMEOUT) as answer:  # noqa: S310
            data = answer.read(MAX_CAPTURE_BYTES + 1)
            kind = answer.headers.get_content_type()
    except error.HTTPError as problem:
        status = f"answers with {problem.code} {problem.reason}; {hint}"
        raise FileTrouble(path=shown, problem=status) from None
    except (error.URLError, OSError, HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise FileTrouble(path=shown, problem=f"does not answer: {reason}; {hint}") from None
    return _downloaded_name(parts.hostname, parts.path, kind), check_capture_size(data)


def _downloaded_name(host: str, path: str, kind: str) -> str:
    """Return a file name: the URL's last path segment or its host, with an extension by content type."""
    from mimetypes import guess_extension

    name = path.rstrip("/").rpartition("/")[2] or host
    return name if "." in name and name != host else name + (guess_extension(kind) or "")


def limit_excerpt(text: str) -> tuple[str, bool]:
    """Return an excerpt cut to the limits of a stub, at the end of a word if possible, and True if it was cut."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip("\n")
    words = list(re.finditer(r"\S+", text))
    end = words[MAX_EXCERPT_WORDS].start() if len(words) > MAX_EXCERPT_WORDS else len(text)
    excerpt = text[:end]
    if len(excerpt.encode("utf-8", "replace")) > MAX_EXCERPT_BYTES:
        excerpt = excerpt.encode("utf-8", "replace")[:MAX_EXCERPT_BYTES].decode("utf-8", "ignore")
        space = max(excerpt.rfind(" "), excerpt.rfind("\n"))
        excerpt = (
            excerpt[:space] if space >= len(excerpt) * 3 // 4 else _cut_between_characters(text, len(excerpt))
        )
    shorter = excerpt.rstrip()
    return shorter, len(shorter) < len(text.rstrip())


def _cut_between_characters(text: str, end: int) -> str:
    """Return about the first `end` code points, without splitting a combined character."""
    first = end
    while 1 < end < len(text) and (
        unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == ZERO_WIDTH_JOINER
    ):
        end -= 1
    return text[: end if first - end < 16 else first]


def _quote_line(line: str) -> str:
    """Return the line, escaped if org would parse it as a heading or as the end of the quote."""
    return f",{line}" if line.startswith("*") or line.lstrip().lower().startswith("#+") else line


def _capture_slug(text: str) -> str:
    bare = re.sub(r"^[a-z]+://(?:[^/@]*@)?|[?#].*$", "", text.lower())  # drop credentials
    plain = re.sub(r"[^a-z0-9]+", "-", bare).strip("-")
    return plain[:60].strip("-") or "source"


def _file_slug(name: str) -> str:
    base, dot, ending = name.rpartition(".")
    return _capture_slug(base or name) + (f".{_capture_slug(ending)}" if dot and base else "")


# Changes of existing nodes


def plan_merge(catalog: Catalog, target: Node, gone: Node, today: str) -> StoreChange:
    """Plan merging `gone` into `target`: append the text of `gone`, redirect links to `target`, delete `gone`."""
    _refuse_same_node(target, gone)
    body = nodes.parse_node(gone.path, catalog.text(gone.path)).body.strip("\n")
    lines = [f"* {gone.title}", gone.summary, *(["", _demote_headings(body)] if body else [])]
    text = org.append_lines(catalog.text(target.path), ["", *"\n".join(lines).split("\n")])
    text = _redirect_links(text, gone, target)
    text = _drop_self_relations(_merge_properties(text, target, gone), target.id)
    ids = dict.fromkeys((*target.merged, gone.id, *gone.merged))
    text = set_properties(text, {MERGED_PROPERTY: " ".join(ids), "UPDATED": today})
    files: dict[str, bytes | None] = {
        node.path: _encode_text(_redirect_links(catalog.text(node.path), gone, target))
        for node in catalogs.nodes_linking_to(catalog, gone)
    }
    files |= {target.path: _encode_text(text), gone.path: None}
    return StoreChange(files, f"merge: {gone.title[:60]} into {target.title[:60]}")


def _redirect_links(text: str, gone: Node, target: Node) -> str:
    for old in (gone.id, *gone.merged):
        text = org.replace_id(text, old, target.id)
    return text


def _merge_properties(text: str, target: Node, gone: Node) -> str:
    """Return the text with the projects, tags and sources of both nodes. The type of `target` is kept."""
    projects = dict.fromkeys((*target.projects, *gone.projects))
    if len(projects) > len(target.projects):
        text = org.set_property(text, "PROJECTS", " ".join(f":{project}:" for project in projects))
    tags = dict.fromkeys((*target.tags, *(tag for tag in gone.tags if tag not in NODE_TYPES)))
    if len(tags) > len(target.tags):
        text = org.set_filetags(text, tags)
    if gone.source and gone.source not in target.source:
        text = org.set_property(text, "SOURCE", "; ".join(filter(None, (target.source, gone.source))))
    return text


def _drop_self_relations(text: str, id: str) -> str:
    """Return the text without lines that only relate the node to itself, such as a CONTRADICTS line after a merge."""
    link = rf"\[\[id:{re.escape(id)}\](?:\[[^\]\n]*\])?\]"
    line = rf"(?mi)^[ \t]*(?:[-+] )?(?:{'|'.join(RELATIONS)}):?[ \t]+{link}[ \t.]*(?:\n|\Z)"
    return re.sub(line, "", text)


def plan_raw_deletion(catalog: Catalog, path: str, *, force: bool) -> StoreChange:
    """Plan deleting a capture and its complete file.

    Unless forced, the deletion is refused while a node names the capture as its source.
    """
    if path not in catalog.files or path == RAW_README:
        hint = " `ai-kb curate --dry-run` lists captures that no node names."
        raise NotFound(what="capture", name=path, hint=hint)
    stubs = [file for file in catalog.files if layout.is_raw_file(file) and file.endswith(layout.NODE_ENDING)]
    named = {stub: nodes.captured_file(catalog.text(stub)) for stub in stubs}
    owner = next((stub for stub, file in named.items() if file == path), "")
    if owner:
        raise InvalidArgument(name="node", problem=f"{path} belongs to {owner}; delete that")
    users = [node for node in catalog.nodes if path in node.source]
    if users and not force:
        names = ", ".join(node.pointer for node in users[:5])
        problem = f"it is the source of {names}; --force deletes it all the same"
        raise InvalidArgument(name="node", problem=problem)
    files: dict[str, bytes | None] = {path: None}
    if named.get(path) in catalog.files:
        files[named[path]] = None
    return StoreChange(files, f"delete: {path[:100]}")


def plan_deletion(catalog: Catalog, node: Node, *, force: bool) -> StoreChange:
    """Plan deleting a node.

    The deletion is refused while other nodes link to the node. If forced, it replaces these links by their
    text.
    """
    linking = catalogs.nodes_linking_to(catalog, node)
    if linking and not force:
        names = ", ".join(other.pointer for other in linking[:5])
        raise InvalidArgument(
            name="node", problem=f"{names} link to it; `ai-kb merge` keeps their links whole"
        )
    files: dict[str, bytes | None] = {node.path: None}
    ids = {node.id, *node.merged, *node.inner}
    for other in linking:
        files[other.path] = _encode_text(_replace_links(catalog.text(other.path), ids))
    return StoreChange(files, f"delete: {node.title[:100]}")


def plan_supersession(catalog: Catalog, old: Node, new: Node, today: str) -> StoreChange:
    """Plan marking the old node as superseded and the new one as current, with a link from the new to the old."""
    _refuse_same_node(old, new)
    text = catalog.text(new.path)
    if not any(link.id == old.id and link.relation == "SUPERSEDES" for link in new.links):
        text = org.append_lines(text, ["", _link_line("SUPERSEDES", old.id, old.title)])
    text = set_properties(text, {"STATUS": "current", "UPDATED": today})
    marked = _with_properties(catalog, old.path, {"STATUS": "superseded", "UPDATED": today})
    files = {new.path: _encode_text(text), old.path: marked}
    return StoreChange(files, f"supersede: {old.title[:60]} by {new.title[:60]}")


def plan_contest(
    catalog: Catalog, node: Node, other: Node | None, today: str, *, settle: bool = False
) -> StoreChange:
    """Plan marking one or two nodes as contested, or with settle=True as current again.

    If two nodes are contested, `node` gets a link to `other` with the relation CONTRADICTS.
    """
    status = "current" if settle else "contested"
    paths = dict.fromkeys(candidate.path for candidate in (node, other) if candidate is not None)
    marks = {"STATUS": status, "UPDATED": today}
    files: dict[str, bytes | None] = {path: _with_properties(catalog, path, marks) for path in paths}
    if other is not None and not settle:
        _refuse_same_node(node, other)
        if not any(link.id == other.id and link.relation == "CONTRADICTS" for link in node.links):
            text = (files[node.path] or b"").decode("utf-8", "replace")
            line = _link_line("CONTRADICTS", other.id, other.title)
            files[node.path] = _encode_text(org.append_lines(text, ["", line]))
    return StoreChange(files, f"{'settle' if settle else 'contest'}: {node.title[:100]}")


def plan_curated(catalog: Catalog, nodes: Iterable[Node], today: str, stamp: str) -> StoreChange:
    """Plan setting the property with the name `stamp` to today's date, to record that the nodes were reviewed."""
    files: dict[str, bytes | None] = {
        node.path: _with_properties(catalog, node.path, {stamp: today}) for node in nodes
    }
    return StoreChange(files, f"curate: {count_noun(len(files), 'node')} looked through")


def _refuse_same_node(one: Node, other: Node) -> None:
    if one.path == other.path:
        raise InvalidArgument(name="node", problem=f"both names mean {one.pointer}; name two nodes")


def _demote_headings(body: str) -> str:
    """Return the text with all headings demoted by one level, because the caller puts a heading above them."""
    return "\n".join(
        f"*{line}" if line.startswith("*") and line.lstrip("*")[:1] == " " else line
        for line in body.split("\n")
    )


def _with_properties(catalog: Catalog, path: str, values: dict[str, str]) -> bytes:
    return _encode_text(set_properties(catalog.text(path), values))


def _replace_links(text: str, ids: set[str]) -> str:
    """Return the text with each link to one of these IDs replaced by its description, or else by the ID."""
    for link in reversed(org.parse(text).links):
        if link.kind == "id" and link.target.lower() in ids:
            text = text[: link.start] + (link.description or link.target) + text[link.end :]
    return text


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")

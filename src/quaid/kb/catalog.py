"""The catalog of a knowledge base: all its files and nodes, with lookup by name, search by words, and lint.

The catalog is cached in .git/ai-kb, and the cache can be deleted at any time. A normal load does not read
files whose stat is unchanged; a load with certain=True reads these too, except large raw files.

Fatal findings of lint stop a commit; style findings do not. Findings in one file are cached with its digest;
findings across files (IDs, links, the index) are computed each time. A failure of the secret scan is a fatal
finding.
"""

import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument, NotFound
from quaid.folders.scanner import Folder
from quaid.kb import layout, node as nodes
from quaid.kb.node import Node, NodeFilters, NodeLink, ParsedNode
from quaid.model import secrets
from quaid.model.sync_plan import FileSignature
from quaid.storage import files as durable_files

CATALOG_VERSION = 7
"""Version of the cache. It must be increased when the format of the cache or of the generated index changes."""

CATALOG_NAME = "catalog"
MAX_NODE_BYTES = 4 * 1024 * 1024
MAX_RAW_BYTES = 64 * 1024 * 1024
"""Maximum sizes in bytes. Larger files are neither parsed nor committed, and lint reports them."""

MAX_REREAD_RAW_BYTES = 1024 * 1024
"""Maximum size in bytes of raw files that a load with certain=True rereads although their stat is unchanged."""

RACY_NS = 2_000_000_000
"""A file modified within this many nanoseconds may change again without a visible change of its timestamps."""

OWN_FIELDS = frozenset({"ID", "PROJECTS", "STATUS", "SUMMARY"})
"""Properties that a query searches as separate fields, and therefore not as generic properties."""

LINKS_FIELD = Node._fields.index("links") - 1

UNKNOWN_STAT = FileSignature(-1, 0, 0, 0)
"""A stat that no real file has, so that the file is read again."""

CachedFindings = tuple[nodes.FileFinding, ...]

RULES_VERSION = "4"
"""Version of the rules of lint. It must be increased with every change of a rule, so that files are checked again."""

LINT_RULES = f"{RULES_VERSION}.{secrets.RULES_VERSION}"
"""Identifier of the rules. Findings cached under a different identifier are computed again."""

TRANSIENT_CODES = frozenset({"unreadable", "scan-failed"})
"""Codes of findings that can disappear without a change of the file, which is therefore checked again."""


class CatalogFile(NamedTuple):
    path: str
    signature: FileSignature
    digest: str
    fields: str
    """The node as JSON, without its path; empty if the file is not a node."""
    start: int
    middle: int
    end: int
    """Offsets in Catalog.texts. The searchable head is from start to middle, the body from middle to end."""
    rules: str
    """Identifier of the rules that produced the findings. If it is empty, the file must be checked again."""
    findings: CachedFindings


class Catalog:
    """The files of a knowledge base by path, with their nodes and their searchable text."""

    def __init__(self, root: str, files: dict[str, CatalogFile], texts: str) -> None:
        self.root = root
        self.files = files
        self.texts = texts
        self.index: dict[str, str] | None = None
        """The generated index files; None until they are generated."""
        self.index_problem: str | None = None
        """The problem of the index files on disk; empty if there is none, None if not checked yet."""
        self._nodes: dict[str, Node] = {}

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in path order."""
        packed = [file for file in self.files.values() if file.fields and file.path not in self._nodes]
        unpacked = json.loads(
            f"[{','.join([file.fields for file in packed])}]"
        )  # decoding one JSON array is four times as fast as decoding each node
        for file, fields in zip(packed, unpacked, strict=True):
            self._nodes[file.path] = _unpack_node(file.path, fields)
        return [self._nodes[path] for path, file in self.files.items() if file.fields]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return sum(1 for file in self.files.values() if file.fields)

    def node(self, file: CatalogFile) -> Node:
        """Return the node of a file, decoding it on first use. The file must be a node."""
        if file.path not in self._nodes:
            self._nodes[file.path] = _unpack_node(file.path, json.loads(file.fields))
        return self._nodes[file.path]

    def body(self, path: str) -> str:
        """Return the body of a node in lowercase."""
        file = self.files[path]
        return self.texts[file.middle : file.end]

    def properties(self, file: CatalogFile) -> str:
        """Return the properties that are not a separate search field, in lowercase: `name value name value`."""
        return self.texts[file.start : file.middle - 2].rpartition("\n")[2]

    def text(self, path: str) -> str:
        """Return the text of a file, read from disk."""
        return layout.read_file(self.root, path).decode("utf-8", "replace")


def load_catalog(root: str, *, certain: bool = False, check: bool = False) -> Catalog:
    """Return the catalog of the current files. With `check`, all files are checked by the rules of lint.

    The cache is used and updated. With `certain`, files are read although their stat is unchanged, except large
    raw files.
    """
    cached, store_files = _load_cache(root), layout.walk_store(root)
    if not certain and _is_unchanged(cached, store_files, check):
        return cached
    files: dict[str, CatalogFile] = {}
    fresh: dict[str, str] = {}
    again, newest = 0, time.time_ns() - RACY_NS
    with Folder(root) as store:
        for path, signature in store_files:
            old = cached.files.get(path)
            if (
                old is None
                or old.signature != signature
                or (certain and (signature.size <= MAX_REREAD_RAW_BYTES or not layout.is_raw_file(path)))
                or (check and old.rules != LINT_RULES)
            ):
                old = _read_catalog_file(store, path, signature, old, check, fresh)
                again += old is not cached.files.get(path) and _is_settled(signature, newest)
            files[path] = old
    if not fresh and len(files) == len(cached.files):
        cached.files = files
        if again:  # some stats are now old enough to be cached
            save_catalog(cached)
        return cached
    catalog = _rebuild_catalog(cached, files, fresh)
    save_catalog(catalog)
    return catalog


def _is_unchanged(cached: Catalog, store_files: list[layout.StoreFile], check: bool) -> bool:
    """Return True if all stats match and, with `check`, all files were checked.

    Two whole lists are compared, which keeps queries fast.
    """
    files = cached.files.values()
    return [file[:2] for file in files] == store_files and (
        not check or {file.rules for file in files} <= {LINT_RULES}
    )


def refresh_files(catalog: Catalog, paths: Iterable[str], *, check: bool = False) -> Catalog:
    """Return a copy of the catalog with only these files read again, and with `check` also checked by lint.

    The cache on disk is not updated.
    """
    files, fresh = dict(catalog.files), dict[str, str]()
    with Folder(catalog.root) as store:
        for path in paths:
            signature = layout.stat_file(catalog.root, path)
            old = files.pop(path, None)
            if signature is not None:
                files[path] = _read_catalog_file(store, path, signature, old, check, fresh)
    return _rebuild_catalog(catalog, dict(sorted(files.items())), fresh)


def content_digest(data: bytes) -> str:
    """Return the digest by which unchanged content is recognized."""
    return blake2b(data, digest_size=16).hexdigest()


def max_file_bytes(path: str) -> int:
    return MAX_RAW_BYTES if layout.is_raw_file(path) else MAX_NODE_BYTES


def _read_catalog_file(
    store: Folder,
    path: str,
    signature: FileSignature,
    old: CatalogFile | None,
    check: bool,
    fresh: dict[str, str],
) -> CatalogFile:
    """Read and parse one file; with `check`, also check it. If its content is new, add its text to `fresh`."""
    limit = max_file_bytes(path)
    data: bytes | None = None
    try:
        data = store.read(path, limit)
    except OSError:  # deleted or not readable
        signature = UNKNOWN_STAT
    digest = "" if data is None else content_digest(data)
    is_same = old is not None and old.digest == digest
    if old is not None and is_same and (not check or old.rules == LINT_RULES):
        return old if old.signature == signature else old._replace(signature=signature)
    read = None
    if data is not None and layout.is_node_file(path) and len(data) <= limit:
        read = nodes.parse_node(path, data.decode("utf-8", "replace"))
    findings = check_file(path, data, read) if check else ()
    rules = LINT_RULES if check and not any(code in TRANSIENT_CODES for _, code, _, _ in findings) else ""
    if old is not None and is_same:
        return old._replace(signature=signature, rules=rules, findings=findings)
    head = _searchable_head(read) if read else ""
    fresh[path] = head + read.body.lower() if read else ""
    fields = _pack_node(read.node) if read else ""
    return CatalogFile(path, signature, digest, fields, 0, len(head), len(fresh[path]), rules, findings)


def _searchable_head(read: ParsedNode) -> str:
    """Return the searchable fields except the body, one per line, with the remaining properties last."""
    node = read.node
    others = [f"{name} {value}" for name, value in read.parsed.properties.items() if name not in OWN_FIELDS]
    fields = (
        *(node.title, " ".join(node.tags), " ".join(node.projects), node.status, node.summary),
        *(" ".join([node.id, *node.inner]), " ".join(others)),
    )
    return "\n".join([" ".join(field.split("\n")) for field in fields]).lower() + "\n\n"


def _rebuild_catalog(cached: Catalog, files: dict[str, CatalogFile], fresh: dict[str, str]) -> Catalog:
    """Return a catalog of these files, with their searchable text from `fresh` or else from `cached`."""
    parts, at = [], 0
    for path, file in files.items():
        text = fresh.get(path)
        if text is None:
            text = cached.texts[file.start : file.end]
        if file.start != at:
            files[path] = file._replace(
                start=at, middle=at + file.middle - file.start, end=at + file.end - file.start
            )
        parts.append(text)
        at += len(text)
    catalog = Catalog(cached.root, files, "".join(parts))
    changed = {path for path in fresh if not layout.is_index_file(path)}
    changed |= {path for path in cached.files.keys() ^ files.keys() if not layout.is_index_file(path)}
    if not changed:
        catalog.index = cached.index
    catalog._nodes = {path: node for path, node in cached._nodes.items() if path not in changed}
    return catalog


# The cache: a line of JSON with one column per file attribute, one line per node, then the searchable text
# of all files. The columns are decoded in one step, and nodes are decoded only when they are needed.


def save_catalog(catalog: Catalog) -> None:
    """Write the cache. Errors are ignored, since a missing cache only makes the next load slower."""
    blob = catalog.texts.encode("utf-8", "surrogatepass")
    newest = time.time_ns() - RACY_NS
    # Do not store recent stats: such files could change again without a change of their stat.
    files = catalog.files.values()
    signatures = [file.signature if _is_settled(file.signature, newest) else UNKNOWN_STAT for file in files]
    paths, _, digests, _, *rest = (
        [file[place] for file in files] for place in range(len(CatalogFile._fields))
    )
    stats = [[stat[place] for stat in signatures] for place in range(len(FileSignature._fields))]
    first = json.dumps([CATALOG_VERSION, len(blob), catalog.index_problem, paths, stats, digests, *rest])
    data = "\n".join([first, *[file.fields for file in files], ""]).encode() + blob
    folder = layout.own_folder(catalog.root)
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        checked = b"%08x " % zlib.crc32(data) + data
        durable_files.write_file(os.path.join(folder, CATALOG_NAME), checked, durable=False)


def _is_settled(signature: FileSignature, newest: int) -> bool:
    return signature.mtime_ns < newest and signature.ctime_ns < newest


def _load_cache(root: str) -> Catalog:
    try:
        with open(os.path.join(layout.own_folder(root), CATALOG_NAME), "rb") as file:
            data = file.read()
        view = memoryview(data)  # slicing it does not copy
        if int(data[:8], 16) != zlib.crc32(view[9:]):
            raise ValueError
        end = data.index(b"\n")
        version, length, problem, *columns = json.loads(str(view[9:end], "utf-8"))
        if version != CATALOG_VERSION:
            raise ValueError
        paths, stats, digests, starts, middles, ends, rules, findings = columns
        nodes = str(view[end + 1 : len(data) - length], "utf-8").split("\n")[:-1]
        all_findings = [tuple(map(tuple, finding)) if finding else () for finding in findings]
        signatures = map(FileSignature._make, zip(*stats, strict=True))
        rows = zip(paths, signatures, digests, nodes, starts, middles, ends, rules, all_findings, strict=True)
        files = dict(zip(paths, map(CatalogFile._make, rows), strict=True))
        catalog = Catalog(root, files, str(view[len(data) - length :], "utf-8", "surrogatepass"))
        catalog.index_problem = problem
    except (OSError, ValueError, TypeError, IndexError):
        return Catalog(root, {}, "")
    return catalog


def _pack_node(node: Node) -> str:
    return json.dumps(node[1:], separators=(",", ":"))


def _unpack_node(path: str, values: list[Any]) -> Node:
    fields: list[Any] = [tuple(value) if type(value) is list else value for value in values]
    if fields[LINKS_FIELD]:
        fields[LINKS_FIELD] = tuple([NodeLink(*link) for link in fields[LINKS_FIELD]])
    return Node(path, *fields)


# Lookup by name

_POINTER = re.compile(r"(?:ai-kb:)?(.*)\(([0-9a-fA-F-]{36})\)\Z", re.DOTALL)
_ORG_LINK = re.compile(r"\[\[id:([^\]]+)\](?:\[(.*)\])?\]\Z", re.DOTALL)
MIN_ID_PREFIX = 6
"""Minimum length of an ID prefix that identifies a node, if it is unambiguous."""


def find_node(catalog: Catalog, name: str) -> Node:
    """Return the node with this ID, ID prefix, path or title. Raise an error unless there is exactly one.

    A link, or a reference with title and ID (Node.pointer), is accepted too.
    """
    return _find_node(catalog, name, by_title=False)[0]


def find_node_to_read(catalog: Catalog, name: str) -> tuple[Node, str]:
    """Return the node with this name.

    If the name contains an unknown ID and a title, the node is found by the title.

    Also return a note if the title was used, else "".
    """
    return _find_node(catalog, name, by_title=True)


def _find_node(catalog: Catalog, name: str, *, by_title: bool) -> tuple[Node, str]:
    target, title = _split_name(name)
    nodes = catalog.nodes
    node = _resolve_node(nodes, target, name)
    if node is not None:
        return node, ""
    node = _resolve_node(nodes, title, name) if by_title and title else None
    if node is None:
        hint = _suggestion(nodes, (title if by_title else "") or target)
        raise NotFound(what="node", name=name, hint=hint)
    note = f"No node has the ID {target}; this one has the pointer's title. Its pointer is {node.pointer}"
    return node, note


def _split_name(name: str) -> tuple[str, str]:
    """Return the ID, path or title to look up, and the title if the name is a link or a Node.pointer."""
    text = name.strip()
    pointer = _POINTER.match(text)
    if pointer:
        return pointer[2], pointer[1].strip()
    link = _ORG_LINK.match(text)
    if link:
        return link[1].strip(), (link[2] or "").strip()
    return text.removeprefix("id:").strip(), ""


def _resolve_node(nodes: list[Node], target: str, name: str) -> Node | None:
    folded = target.lower()
    for candidates in (
        [node for node in nodes if node.id == folded],
        [node for node in nodes if folded in node.merged or folded in node.inner],
        [node for node in nodes if node.path in (target, f"{target}.org")],
        [node for node in nodes if node.title.casefold() == target.casefold()],
        [node for node in nodes if len(folded) >= MIN_ID_PREFIX and node.id.startswith(folded)],
    ):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            names = ", ".join(f"{node.pointer} in {node.path}" for node in candidates[:5])
            raise InvalidArgument(name="node", problem=f"{name!r} can mean {names}; name it by its ID")
    return None


def _suggestion(nodes: list[Node], target: str) -> str:
    from difflib import get_close_matches

    titles = {node.title.casefold(): node for node in nodes}
    close = get_close_matches(target.casefold(), titles, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {titles[close[0]].pointer}?"
    return " `ai-kb query WORDS` finds nodes."


def nodes_linking_to(catalog: Catalog, node: Node) -> list[Node]:
    """Return the nodes that link to this node. Raw files and index files are not included."""
    ids = {node.id, *node.merged, *node.inner}
    return [
        other
        for other in catalog.nodes
        if other.path != node.path and any(link.id in ids for link in other.links)
    ]


# Search by words

ID_WEIGHT, TITLE_WEIGHT, TAG_WEIGHT, SUMMARY_WEIGHT, BODY_WEIGHT, PROPERTY_WEIGHT = 500, 100, 50, 20, 5, 1
MAX_MATCHES = 10

MAX_WHOLE_WORD_LENGTH = 2
"""Query words with at most this many letters match whole words only; longer ones also the beginning of words."""

MIN_QUERY_ID_PREFIX = 6
"""A query word with at least this many characters can match the start of a node's ID, as in `ai-kb show`."""

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
STOP_WORDS = frozenset(
    "a an and are as at be before by can do does for from had has have how i if in into is it its me my not of on or"
    " our should that the their then there these this to use used using was we what when where which who why will"
    " with would you your".split()
)
"""Words that are ignored in a query, unless it consists only of such words."""


class KbMatch(NamedTuple):
    title: str
    id: str
    summary: str
    projects: tuple[str, ...]
    status: str
    updated: str
    path: str
    match: tuple[str, ...]
    """Matched fields: id, title, tag, project, status, summary, body, property.

    With `semantic` also "meaning", or "words" for inflected forms.
    """
    score: float
    """Sum of the weights of the matching fields; 0 if only vector search found the node."""
    source: str
    """Source of the node, which may be a path below raw/."""
    held: float
    """Share of the query's words in the node, from 0 to 1."""
    relevance: float | None = None
    """Combined score from 0 to 1 if `semantic` was set, like `score` of `query`."""


def build_match(node: Node, fields: tuple[str, ...], score: float, held: float) -> KbMatch:
    return KbMatch(
        *(node.title, node.id, node.summary, node.projects, node.status, node.updated, node.path),
        *(fields, score, node.source, held),
    )


def query_words(context: str) -> list[str]:
    """Return the search words of a query: lowercase, without stop words, plurals reduced to the singular."""
    every: list[str] = []
    for piece in context.split():  # most pieces are a single word, so the regular expression is rarely needed
        every += [piece] if piece.isalnum() else _WORD.findall(piece)
    every = [word.lower() for word in every]
    telling = [word for word in every if word not in STOP_WORDS] or every
    return list(dict.fromkeys(map(_singular, telling)))


def _singular(word: str) -> str:
    for ending, rest in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith(("ss", "us", "is")):
            return word[: -len(ending)] + rest
    return word


def query_nodes(
    catalog: Catalog, context: str, *, most: int = MAX_MATCHES, filters: NodeFilters | None = None
) -> list[KbMatch]:
    """Return up to `most` nodes that pass the filters and match words of the query, best first."""
    words = query_words(context)
    if not words:
        return []
    ranked = []
    for file in _files_with_words(catalog, words):
        node = catalog.node(file)
        if filters is None or filters.match(node):
            score, fields, count = _match_node(catalog, file, node, words)
            if not score:
                continue
            # Superseded nodes come last unless found by ID.
            is_valid = node.status != "superseded" or "id" in fields
            match = build_match(node, fields, float(score), round(count / len(words), 2))
            ranked.append(((is_valid, score, count, node.updated), match))
    ranked.sort(key=lambda item: (item[1].title.casefold(), item[1].id))
    ranked.sort(key=lambda item: item[0], reverse=True)
    return [match for _, match in ranked[:most]]


def _match_node(
    catalog: Catalog, file: CatalogFile, node: Node, query_terms: list[str]
) -> tuple[int, tuple[str, ...], int]:
    """Return the score of a node (0 for no match), the matching fields, and the number of matching words."""
    texts = catalog.texts
    fields = (
        ("id", ID_WEIGHT, {word for word in query_terms if _matches_id(word, node)}),
        ("title", TITLE_WEIGHT, _words_in(node.title.lower(), query_terms)),
        ("tag", TAG_WEIGHT, _words_in(" ".join(node.tags).lower(), query_terms)),
        ("project", TAG_WEIGHT, _words_in(" ".join(node.projects).lower(), query_terms)),
        ("status", TAG_WEIGHT, _words_in(node.status.lower(), query_terms)),
        ("summary", SUMMARY_WEIGHT, _words_in(node.summary.lower(), query_terms)),
        (
            "body",
            BODY_WEIGHT,
            {word for word in query_terms if _find_word(texts, word, file.middle, file.end) >= 0},
        ),
    )
    reasons = [name for name, _, matched in fields if matched]
    score = sum(weight for _, weight, matched in fields if matched)
    words: set[str] = set().union(*(matched for _, _, matched in fields))
    property_words = _words_in(catalog.properties(file), query_terms) - fields[0][2]
    if property_words and (score or len(property_words) == len(query_terms)):
        reasons.append("property")
        score += PROPERTY_WEIGHT
        words |= property_words
    return score, tuple(reasons), len(words)


def _matches_id(word: str, node: Node) -> bool:
    return (
        len(word) >= MIN_QUERY_ID_PREFIX
        and not word.strip("0123456789abcdef-")
        and any(id.startswith(word) for id in (node.id, *node.merged, *node.inner))
    )


def _words_in(text: str, words: list[str]) -> set[str]:
    return {word for word in words if word in text and _find_word(text, word) >= 0}


def _find_word(text: str, word: str, at: int = 0, end: int | None = None) -> int:
    """Return the position of the first word that starts with `word` (or equals it, if it is short), or -1."""
    at = text.find(word, at, end)
    if word[0] > "\u2e7f":  # CJK and similar scripts have no spaces between words: match anywhere
        return at
    is_whole = len(word) <= MAX_WHOLE_WORD_LENGTH
    while (at > 0 and text[at - 1].isalnum()) or (
        is_whole and at >= 0 and _word_continues(text, at + len(word))
    ):
        at = text.find(word, at + 1, end)
    return at


def _word_continues(text: str, at: int) -> bool:
    """Return True if the word continues at this position with anything but a plural s."""
    rest = text[at : at + 2]
    return rest[:1].isalnum() and not (rest[0] == "s" and not rest[1:].isalnum())


def _files_with_words(catalog: Catalog, words: list[str]) -> list[CatalogFile]:
    """Return the files that contain any of the words. After a match, the search skips to the next file."""
    files = [file for file in catalog.files.values() if file.end > file.start]
    matching: dict[str, CatalogFile] = {}
    for word in words:
        at, place = _find_word(catalog.texts, word), 0
        while at >= 0:
            while files[place].end <= at:
                place += 1
            matching[files[place].path] = files[place]
            at = _find_word(catalog.texts, word, files[place].end)
    return list(matching.values())


# Lint


def lint_store(catalog: Catalog) -> list[nodes.LintFinding]:
    """Return all findings, with fatal findings first. New results are cached."""
    before = catalog.files.copy()
    of_index = list(lint_index(catalog))
    findings = [*lint_files(catalog), *of_index]
    problem = index_summary(of_index)
    if catalog.index_problem != problem or catalog.files != before:
        catalog.index_problem = problem
        save_catalog(catalog)
    return sorted(findings, key=lambda item: (not item.fatal, item.path, item.line, item.code))


def lint_files(catalog: Catalog) -> list[nodes.LintFinding]:
    """Return all findings except those about the index."""
    return [*_cached_findings(catalog), *nodes.lint_across_files(catalog.nodes)]


def _cached_findings(catalog: Catalog) -> Iterator[nodes.LintFinding]:
    late = [path for path, file in catalog.files.items() if file.rules != LINT_RULES]
    if late:
        refreshed = refresh_files(catalog, late, check=True)
        for path in late:
            if path not in refreshed.files or refreshed.files[path].digest != catalog.files[path].digest:
                yield nodes.finding(path, 1, "unsettled", "it changed while it was looked at", "run it again")
            else:
                now = refreshed.files[path]
                catalog.files[path] = catalog.files[path]._replace(rules=now.rules, findings=now.findings)
    for path, file in catalog.files.items():
        for problem in file.findings:
            yield nodes.finding(path, *problem)


def check_file(path: str, data: bytes | None, read: ParsedNode | None) -> CachedFindings:
    """Check the content of one file. `read` is the node in it, if it is a node."""
    if data is None:
        return ((1, "unreadable", "it cannot be read", "make it readable, or remove it"),)
    limit = max_file_bytes(path)
    if len(data) > limit:
        problem = f"it is larger than {limit // 1024 // 1024} MB"
        return ((1, "too-large", problem, "keep it outside, and name where it is"),)
    if layout.is_index_file(path):
        return ()  # index files are generated from nodes, which are checked themselves
    findings = list(find_secrets(data))
    if read is not None and layout.is_node_file(path):
        findings += nodes.lint_node(data, read)
    return tuple(findings)


def find_secrets(data: bytes) -> Iterator[nodes.FileFinding]:
    """Yield the secrets in a file. Binary files are skipped."""
    try:
        if not secrets.is_text_data(data):
            return
        for secret in secrets.find_secrets(secrets.decode_data(data))[: nodes.MAX_FINDINGS]:
            yield secret.line, "secret", f"it looks like a secret: {secret.kind}", secret.remedy
    except Exception as error:  # a file that could not be scanned must not count as clean
        problem = f"the secret scan failed ({type(error).__name__}), and nothing is committed unseen"
        yield 1, "scan-failed", problem, "report it, with the file if you may"


def lint_index(catalog: Catalog) -> Iterator[nodes.LintFinding]:
    """Yield the differences between the index files and the index generated from the nodes."""
    expected = catalog.index = catalog.index or nodes.build_index(catalog.nodes)
    present = {path for path in catalog.files if layout.is_index_file(path)}
    remedy = "`ai-kb index` makes it anew"
    for path in sorted(expected.keys() - present):
        yield nodes.finding(path, 1, "index-missing", "it is not there", remedy)
    for path in sorted(present - expected.keys()):
        if nodes.is_generated_index(catalog.text(path)):
            yield nodes.finding(path, 1, "index-stale", "it belongs to an earlier index", remedy)
        else:
            problem = "it is named as a part of the index, and is none"
            yield nodes.finding(path, 1, "index-foreign", problem, "rename it, so that it can be a node")
    for path in sorted(present & expected.keys()):
        text = catalog.text(path)
        if "[[id:" in text.lower():
            line = text[: text.lower().index("[[id:")].count("\n") + 1
            yield nodes.finding(
                path, line, "index-link", "it holds an id link, which counts as a backlink", remedy
            )
        elif text != expected[path]:
            line = _first_difference(text, expected[path])
            yield nodes.finding(path, line, "index-stale", "it is not what the nodes say", remedy)


def index_summary(findings: Iterable[nodes.LintFinding]) -> str:
    """Return the first problem of the index in one line; empty if there is none."""
    first = next(iter(findings), None)
    return f"{first.path}: {first.message}; {first.remedy}" if first else ""


def _first_difference(text: str, expected: str) -> int:
    for number, (one, other) in enumerate(zip(text.split("\n"), expected.split("\n"), strict=False), 1):
        if one != other:
            return number
    return min(text.count("\n"), expected.count("\n")) + 1

"""Nodes as text: parse them from org, render and check them, and build the index files and the graph.

The index contains no links, only titles and IDs as plain text, because links would count as backlinks. The
same nodes always produce the same index.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quaid.formats import org
from quaid.model import dates

NODE_TYPES = ("principle", "preference", "procedure", "observation", "reference")
CREATORS = (
    *("human", "claude-code", "codex", "ollama"),
    *("claude-desktop", "cursor", "vscode", "windsurf", "zed", "gemini-cli", "quaid", "agent"),
)
CONFIDENCES = ("user-stated", "observed", "inferred", "external")
VISIBILITIES = ("personal", "work-private")
STATUSES = ("current", "contested", "superseded")
RELATIONS = ("SUPERSEDES", "CONTRADICTS", "RELATES_TO", "IMPLEMENTS", "DERIVED_FROM")
GENERAL_PROJECT = "general"

REQUIRED_PROPERTIES = (
    *("ID", "PROJECTS", "CREATED", "UPDATED", "CREATED_BY"),
    *("CONFIDENCE", "VISIBILITY", "SOURCE", "STATUS", "SUMMARY"),
)
ALLOWED_VALUES: dict[str, tuple[str, ...]] = {
    "CREATED_BY": CREATORS,
    "CONFIDENCE": CONFIDENCES,
    "VISIBILITY": VISIBILITIES,
    "STATUS": STATUSES,
}
CURATED_PROPERTY = "LAST_CURATED"
MERGED_PROPERTY = "MERGED_IDS"
"""Property with the IDs of nodes that were merged into this node. References with these IDs lead to this node."""

MAX_SUMMARY_LENGTH = 300

CREATOR_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
"""Matches the names that a node may have as its creator, besides CREATORS: names of agents and of tokens."""
UUID_PATTERN = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
PROJECT_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")
DAY_PATTERN = re.compile(r"[<\[]?([0-9]{4}-[0-9]{2}-[0-9]{2})(?: [^\]>\n]*)?[>\]]?\Z")
_PROJECT_ENDING = re.compile(r"(?:\.d|\.git)\Z")
_NON_SLUG = re.compile(r"[^a-z0-9]+")
_RELATION_LABEL = re.compile(rf"({'|'.join(RELATIONS)})[ \t]*:?[ \t]*\Z")


class NodeLink(NamedTuple):
    """A link to another node."""

    id: str
    relation: str
    """One of RELATIONS, or empty."""
    line: int


class Node(NamedTuple):
    path: str
    id: str
    title: str
    tags: tuple[str, ...]
    projects: tuple[str, ...]
    created: str
    updated: str
    created_by: str
    confidence: str
    visibility: str
    source: str
    status: str
    summary: str
    last_curated: str
    merged: tuple[str, ...]
    inner: tuple[str, ...]
    """IDs of headings in the file, which org-roam treats as nodes too."""
    links: tuple[NodeLink, ...]
    size: int
    """Length of the body in characters."""

    @property
    def type(self) -> str:
        return next((tag for tag in self.tags if tag in NODE_TYPES), "")

    @property
    def pointer(self) -> str:
        """The title and ID, as used to refer to the node from outside the knowledge base."""
        return f"{self.title} ({self.id})"


class ParsedNode(NamedTuple):
    node: Node
    body: str
    parsed: org.OrgDocument


def parse_node(path: str, text: str) -> ParsedNode:
    """Parse the text of a node. Missing properties become empty values."""
    parsed = org.parse(text)
    body = text[parsed.body_start :]
    return ParsedNode(_build_node(path, text, parsed, len(body)), body, parsed)


def _build_node(path: str, text: str, parsed: org.OrgDocument, size: int) -> Node:
    properties: dict[str, str] = defaultdict(str, parsed.properties)
    links = [link for link in parsed.links if link.kind == "id"]
    headings = [heading.properties for heading in parsed.headings if "ID" in heading.properties]
    return Node(
        path=path,
        id=properties["ID"].lower(),
        title=parsed.title,
        tags=parsed.filetags,
        projects=parse_projects(properties["PROJECTS"]),
        created=parse_day(properties["CREATED"]),
        updated=parse_day(properties["UPDATED"]),
        created_by=properties["CREATED_BY"],
        confidence=properties["CONFIDENCE"],
        visibility=properties["VISIBILITY"],
        source=properties["SOURCE"],
        status=properties["STATUS"],
        summary=properties["SUMMARY"],
        last_curated=parse_day(properties[CURATED_PROPERTY]),
        merged=tuple(properties[MERGED_PROPERTY].lower().split()),
        inner=tuple(drawer["ID"].lower() for drawer in headings if not is_roam_excluded(drawer)),
        links=tuple(
            NodeLink(link.target.lower(), _link_relation(text, link.start), link.line) for link in links
        ),
        size=size,
    )


def _link_relation(text: str, at: int) -> str:
    """Return the relation written directly before the link at this position, or an empty string."""
    match = _RELATION_LABEL.search(text, max(text.rfind("\n", 0, at) + 1, at - 20), at)
    return match[1] if match else ""


def parse_day(value: str) -> str:
    """Return the date without the brackets and the time of an org timestamp."""
    match = DAY_PATTERN.match(value.strip())
    return match[1] if match else value.strip()


def parse_projects(value: str) -> tuple[str, ...]:
    """Parse slugs written as `:general: :emacs:`, `:general:emacs:` or without colons."""
    return tuple(dict.fromkeys(value.replace(":", " ").split()))


def project_slug(folder_name: str) -> str:
    """Return the project slug for a folder name: emacs for .emacs.d, my-app for My App."""
    name = _PROJECT_ENDING.sub("", folder_name.strip("/").rpartition("/")[2].lstrip(".").lower())
    return _NON_SLUG.sub("-", name).strip("-") or GENERAL_PROJECT


class NodeFilters(NamedTuple):
    """Conditions for nodes; an empty value matches all nodes."""

    tag: str = ""
    """A tag or a type, which is one of the tags."""
    project: str = ""
    status: str = ""

    def match(self, node: Node) -> bool:
        return (
            (not self.tag or self.tag in node.tags)
            and (not self.project or self.project in node.projects)
            and (not self.status or node.status == self.status)
        )


class NodeDraft(NamedTuple):
    """The content of a node to be written."""

    title: str
    summary: str
    body: str
    type: str
    tags: tuple[str, ...] = ()
    projects: tuple[str, ...] = (GENERAL_PROJECT,)
    created_by: str = "human"
    confidence: str = "observed"
    visibility: str = "personal"
    source: str = ""
    status: str = "current"


def render_node(draft: NodeDraft, id: str, today: str) -> str:
    """Return the text of a new node."""
    values = {
        "ID": id,
        "PROJECTS": " ".join(f":{project}:" for project in draft.projects),
        "CREATED": today,
        "UPDATED": today,
        "CREATED_BY": draft.created_by,
        "CONFIDENCE": draft.confidence,
        "VISIBILITY": draft.visibility,
        "SOURCE": _one_line(draft.source),
        "STATUS": draft.status,
        "SUMMARY": _one_line(draft.summary),
    }
    width = max(map(len, values)) + 2
    drawer = [f"{f':{name}:':<{width}} {value}".rstrip() for name, value in values.items()]
    tags = "".join(f":{tag}" for tag in dict.fromkeys((draft.type, *draft.tags))) + ":"
    head = [":PROPERTIES:", *drawer, ":END:", f"#+title: {_one_line(draft.title)}", f"#+filetags: {tags}"]
    body = draft.body.strip("\n")
    return "\n".join([*head, "", body, ""]) if body else "\n".join([*head, ""])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def set_properties(text: str, values: dict[str, str]) -> str:
    """Return the text of a node with these properties set and everything else unchanged."""
    for name, value in values.items():
        text = org.set_property(text, name, value)
    return text


def link_description(title: str) -> str:
    """Return a title with its brackets replaced, for use as a link description."""
    return title.replace("[", "(").replace("]", ")")


def node_file_name(title: str, local: str) -> str:
    """Return a file name in the style of org-roam: 20260524140509-words-of-the-title.org."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _NON_SLUG.sub("-", plain).strip("-")[:60].strip("-")
    stamp = "".join(filter(str.isdecimal, local))[:14]
    return f"{stamp}-{words or 'node'}.org"


# Differences from org-roam

ROAM_EXCLUDE = "ROAM_EXCLUDE"
ROAM_LIST_PROPERTIES = ("ROAM_ALIASES", "ROAM_REFS")
"""Properties whose values Emacs parses as a list of words and quoted strings."""

_QUOTED_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

FileFinding = tuple[int, str, str, str]
"""A problem in one file: line, code, message and remedy."""


def is_roam_excluded(properties: dict[str, str]) -> bool:
    """Return True if org-roam skips an entry with these properties."""
    return properties.get(ROAM_EXCLUDE, "nil") != "nil"


def org_roam_problems(text: str, document: org.OrgDocument) -> Iterator[FileFinding]:
    """Yield the reasons why org-roam would skip this file or read it differently."""
    top = text.count("\n", 0, document.drawer[0]) + 1 if document.drawer else 1
    if is_roam_excluded(document.properties):
        yield top, "left-out", f":{ROAM_EXCLUDE}: keeps it out of org-roam", "remove it"
    yield from _drawer_problems(document.properties, top)
    for heading in document.headings:
        if "ID" not in heading.properties:
            continue
        if not heading.title:
            message = "a heading with an ID has no title, so org-roam has nothing of the file"
            yield heading.line, "heading-untitled", message, "write a title, or remove the ID"
        yield from _drawer_problems(heading.properties, heading.line)
    for link in document.links:
        if link.kind == "id" and link.target != link.target.lower():
            message = "the link names an ID in capitals, and for org-roam that is another one"
            yield link.line, "id-capitals", message, "write it in small letters"


def _drawer_problems(properties: dict[str, str], line: int) -> Iterator[FileFinding]:
    id = properties.get("ID", "")
    if id != id.lower():
        message = ":ID: is written in capitals, and links in small letters do not find it in org-roam"
        yield line, "id-capitals", message, "write it in small letters"
    for name in ROAM_LIST_PROPERTIES:
        if '"' in _QUOTED_STRING.sub("", properties.get(name, "")):
            message = f":{name}: has a quote that never ends, so org-roam has nothing of the file"
            yield line, "property-invalid", message, 'close it with "'


# Checks

# Codes that do not stop a commit.
STYLE_CODES = frozenset(
    "no-heading torn-link duplicate-property no-type long-summary same-title merged-link".split()
)
REMEDIES = {
    "unclosed-drawer": "close it with a line :END:",
    "misplaced-drawer": "move it there",
    "bad-property": "write it as :NAME: value, or move it below :END:",
    "stray-end": "remove the line, or write :PROPERTIES: above its properties",
    "unclosed-block": "close it with its #+end_ line; put a comma before stars at the beginning of a line in it",
    "duplicate-id": "give one of them a new ID",
    "duplicate-property": "remove one of them",
    "property-twice": "keep the one that holds, and remove the other",
    "second-id": "keep the one that others link to (`ai-kb backlinks`), and remove this line",
    "no-heading": "put a space after the stars",
    "line-ends": "save it with line feeds only",
    "torn-link": "close it with ]]",
    "too-many-marks": "divide the file",
}
NOT_REPEATED = frozenset(REQUIRED_PROPERTIES) - {"ID"}
"""Properties that may not be repeated, because programs may differ in which value they use. The org parser
reports a repeated ID itself."""

MAX_FINDINGS = 1_000
"""Maximum number of findings of one kind that are reported per file."""


class LintFinding(NamedTuple):
    path: str
    line: int
    code: str
    message: str
    remedy: str
    fatal: bool
    """True if the finding prevents a commit; False for a style finding."""


def finding(path: str, line: int, code: str, message: str, remedy: str) -> LintFinding:
    return LintFinding(path, line, code, message, remedy, code not in STYLE_CODES)


def lint_node(data: bytes, read: ParsedNode) -> Iterator[FileFinding]:
    """Check one node: encoding, org syntax, properties, title. `read` is the parsed `data`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield line, "not-utf8", "it is not UTF-8, so org cannot be read", "save it as UTF-8"
        return
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        yield line, "unparseable", "it holds a NUL character", "remove it"
    yield from _conflict_marks(text)
    lines = _property_lines(text, read.parsed.drawer)
    repeated = {line for name, places in lines.items() if name in NOT_REPEATED for line in places[1:]}
    for problem in read.parsed.problems[:MAX_FINDINGS]:
        code = "property-twice" if problem.line in repeated else problem.code
        yield problem.line, code, problem.message, REMEDIES.get(code, "mend it")
    yield from org_roam_problems(text, read.parsed)
    yield from _check_drawer(text, read, {name: places[0] for name, places in lines.items()})


def _conflict_marks(text: str) -> Iterator[FileFinding]:
    if "<<<<<<< " not in text and ">>>>>>> " not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            problem = "a merge of git left its marks here"
            yield number, "conflict", problem, "choose what holds, and remove the marks"


def _check_drawer(text: str, read: ParsedNode, lines: dict[str, int]) -> Iterator[FileFinding]:
    values = read.parsed.properties
    for name in REQUIRED_PROPERTIES:
        if values.get(name, "").strip():
            continue
        code = "id-missing" if name == "ID" else "property-missing"
        problem, remedy = (
            (f":{name}: is empty", "write its value")
            if name in values
            else (f":{name}: is missing", "write it into the drawer at the top")
        )
        yield lines.get(name, 1), code, problem, f"{remedy}; {_expected_value(name)}"
    if not read.parsed.title.strip():
        problem = "there is no #+title:" if "#+title" not in text.lower() else "the #+title: is empty"
        yield 1, "title-missing", problem, "write it below the drawer"
    yield from _check_values(values, lines)
    if not read.node.type:
        remedy = f"write one of {', '.join(NODE_TYPES)} into #+filetags:"
        yield 1, "no-type", "no tag says what type of node it is", remedy


def _check_values(values: dict[str, str], lines: dict[str, int]) -> Iterator[FileFinding]:
    def wrong(name: str, problem: str, code: str = "property-invalid") -> FileFinding:
        return lines.get(name, 1), code, f":{name}: {problem}", _expected_value(name)

    if values.get("ID") and not UUID_PATTERN.match(values["ID"]):
        yield wrong("ID", "is no UUID", "id-invalid")
    for name, allowed in ALLOWED_VALUES.items():
        is_agent = name == "CREATED_BY" and CREATOR_PATTERN.match(values.get(name, ""))
        if values.get(name) and values[name] not in allowed and not is_agent:
            yield wrong(name, f"cannot be {values[name][:60]!r}")
    for name in ("CREATED", "UPDATED", CURATED_PROPERTY):
        if values.get(name) and not _is_day(parse_day(values[name])):
            yield wrong(name, f"is no day: {values[name][:60]!r}")
    created, updated = (parse_day(values.get(name, "")) for name in ("CREATED", "UPDATED"))
    if "UPDATED" in values and _is_day(created) and created > updated:
        yield wrong("UPDATED", "lies before :CREATED:")
    for slug in parse_projects(values.get("PROJECTS", "")):
        if not PROJECT_PATTERN.match(slug):
            yield wrong("PROJECTS", f"holds {slug[:60]!r}, which is no slug", "project-bad")
    if len(values.get("SUMMARY", "")) > MAX_SUMMARY_LENGTH:
        yield wrong("SUMMARY", f"is longer than {MAX_SUMMARY_LENGTH} characters", "long-summary")


def _expected_value(name: str) -> str:
    if name == "CREATED_BY":
        return f"one of {', '.join(CREATORS)}, or the name of an agent of a-z, 0-9, - and _"
    if name in ALLOWED_VALUES:
        return f"one of {', '.join(ALLOWED_VALUES[name])}"
    return {
        "ID": "a UUID, as `uuidgen` makes them",
        "PROJECTS": "slugs of a-z, 0-9, - and _, as in :general: or :emacs:",
        "CREATED": "a day, as in 2026-05-24",
        "UPDATED": "a day, as in 2026-05-24",
        CURATED_PROPERTY: "a day, as in 2026-05-24",
        "SOURCE": "where it comes from, as in chat 2026-05-24, or a path below raw/",
        "SUMMARY": "one sentence, written to be found",
    }[name]


def _is_day(value: str) -> bool:
    return len(value) == 10 and dates.is_date(value)


def _property_lines(text: str, drawer: tuple[int, int] | None) -> dict[str, list[int]]:
    """Return the line numbers of each property of a drawer."""
    lines: dict[str, list[int]] = {}
    if drawer is not None:
        first = text.count("\n", 0, drawer[0]) + 1
        for number, line in enumerate(text[drawer[0] : drawer[1]].split("\n"), first):
            lines.setdefault(line.strip().partition(":")[2].partition(":")[0].upper(), []).append(number)
    return lines


def lint_across_files(every: Iterable[Node]) -> Iterator[LintFinding]:
    """Yield duplicate IDs, broken links, links to merged nodes and duplicate titles."""
    all_nodes = list(every)
    owners: dict[str, str] = {}
    merged: dict[str, Node] = {}
    for node in all_nodes:
        for id in (node.id, *node.inner):
            if id and id in owners and owners[id] != node.path:
                problem = f"the ID {id} is that of {owners[id]} too"
                yield finding(node.path, 2, "id-duplicate", problem, "give one of them a new ID")
            elif id:
                owners[id] = node.path
        merged.update(dict.fromkeys(node.merged, node))
    titles: dict[str, str] = {}
    for node in all_nodes:
        for link in node.links:
            if link.id in owners:
                continue
            if link.id in merged:
                problem = f"the node {link.id} was merged into {merged[link.id].title}"
                yield finding(node.path, link.line, "merged-link", problem, f"link to {merged[link.id].id}")
            else:
                problem = f"no node has the ID {link.id}"
                yield finding(
                    node.path, link.line, "link-broken", problem, "link to another one, or remove it"
                )
        title = node.title.casefold()
        if title and title in titles:
            problem = f"{titles[title]} has the same title"
            yield finding(node.path, 1, "same-title", problem, "`ai-kb curate --dry-run` shows duplicates")
        titles.setdefault(title, node.path)


# The index

INDEX_MARKER = "# Generated by ai-kb index from the nodes; do not edit."
MAX_INDEX_BYTES = 48_000
"""Maximum size of index.org in bytes. If it would be larger, the index is split into one file per type."""

MAIN_INDEX = "index.org"
OTHER_TYPE = "other"
INDEX_HEADINGS = {
    "principle": "Principles",
    "preference": "Preferences",
    "procedure": "Procedures",
    "observation": "Observations",
    "reference": "References",
    OTHER_TYPE: "Other",
}
INDEX_NAMES = frozenset(
    {MAIN_INDEX, *(f"index-{heading.lower()}.org" for heading in INDEX_HEADINGS.values())}
)
"""Names of all possible index files."""


def build_index(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the content of each index file: index.org, and files per type if one file would be too large."""
    every = sorted(nodes, key=lambda node: (node.title.casefold(), node.id))
    groups: dict[str, list[Node]] = {name: [] for name in (*NODE_TYPES, OTHER_TYPE)}
    for node in every:
        if node.status not in ("contested", "superseded"):
            groups[node.type or OTHER_TYPE].append(node)
    sections = {name: _nodes_section(INDEX_HEADINGS[name], group) for name, group in groups.items() if group}
    rest = [_contested_section(every), _superseded_section(every), _projects_section(every)]
    whole = _index_text("Index", [*sections.values(), *rest])
    if len(whole.encode("utf-8", "replace")) <= MAX_INDEX_BYTES:
        return {MAIN_INDEX: whole}
    files = {
        _index_name(name): _index_text(f"Index: {INDEX_HEADINGS[name]}", [text])
        for name, text in sections.items()
    }
    return {MAIN_INDEX: _index_text("Index", [_types_section(groups), *rest]), **files}


def is_generated_index(text: str) -> bool:
    """Return True if the file was generated.

    Other files are never deleted, even if they are named like an index.
    """
    return INDEX_MARKER in text.split("\n", 3)[:3]


def _index_name(type: str) -> str:
    return f"index-{INDEX_HEADINGS[type].lower()}.org"


def _index_text(title: str, sections: Sequence[str]) -> str:
    return "\n".join([f"#+title: {title}", INDEX_MARKER, "", *filter(None, sections)])


def _table(heading: str, columns: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a section with a table; empty if the table has no rows."""
    lines = [f"| {' | '.join(map(_table_cell, cells))} |" for cells in rows]
    return "\n".join([f"* {heading}", "", columns, "|---", *lines, ""]) if lines else ""


def _types_section(groups: dict[str, list[Node]]) -> str:
    rows = [
        (INDEX_HEADINGS[name], str(len(group)), _index_name(name)) for name, group in groups.items() if group
    ]
    return _table("Types", "| Type | Nodes | File |", rows)


def _nodes_section(heading: str, nodes: Sequence[Node]) -> str:
    rows = [
        (node.title, node.id, node.summary, " ".join(node.projects), node.status, node.updated)
        for node in nodes
    ]
    return _table(heading, "| Title | ID | Summary | Projects | Status | Updated |", rows)


def _contested_section(nodes: Sequence[Node]) -> str:
    titles = {node.id: node.title for node in nodes}
    contradicted: dict[str, list[str]] = {}
    for node in nodes:
        for link in node.links:
            if link.relation == "CONTRADICTS":
                contradicted.setdefault(link.id, []).append(node.title)
    rows = []
    for node in nodes:
        if node.status == "contested":
            against = [titles.get(link.id, link.id) for link in node.links if link.relation == "CONTRADICTS"]
            against += contradicted.get(node.id, [])
            issue = f"contradicts {', '.join(dict.fromkeys(against))}" if against else node.summary
            rows.append((node.title, node.id, issue, node.updated))
    return _table("Contested / needs review", "| Title | ID | Issue | Last touched |", rows)


def _superseded_section(nodes: Sequence[Node]) -> str:
    by = {link.id: node.pointer for node in nodes for link in node.links if link.relation == "SUPERSEDES"}
    old = [node for node in nodes if node.status == "superseded"]
    rows = [(node.title, node.id, by.get(node.id, ""), node.updated) for node in old]
    return _table("Superseded", "| Title | ID | Superseded by | Last touched |", rows)


def _projects_section(nodes: Sequence[Node]) -> str:
    counts = Counter(project for node in nodes for project in node.projects)
    lines = [f"- {_table_cell(name)} ({counts[name]})" for name in sorted(counts)]
    return "\n".join(["* Projects", "", *lines, ""]) if lines else ""


def _table_cell(text: str) -> str:
    """Return text escaped for a table cell, so that it cannot end the cell or become a link."""
    plain = " ".join(text.split())
    return plain.replace("|", "\\vert{}").replace("[[", "[ [")


# The graph

MAX_LABEL_LENGTH = 60
TYPE_COLORS = {
    "principle": "#cfe2f3",
    "preference": "#d9ead3",
    "procedure": "#fff2cc",
    "observation": "#f3f3f3",
    "reference": "#ead1dc",
}
STATUS_STYLES = {
    "contested": 'style="filled,rounded,dashed", color="#cc0000"',
    "superseded": 'style="filled,rounded", fontcolor="#999999", color="#bbbbbb"',
}


def draw_graph(nodes: Iterable[Node]) -> tuple[str, int, int]:
    """Return a graph of the nodes and their links in the DOT language, and the numbers of nodes and links."""
    drawn = list(nodes)
    owner = {id: node.id for node in drawn for id in (node.id, *node.merged, *node.inner) if id}
    lines = [
        "digraph ai_kb {",
        "  graph [rankdir=LR, overlap=false];",
        '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];',
        '  edge [fontname="sans-serif", fontsize=8, color="#777777"];',
    ]
    lines += [_dot_node(node) for node in drawn if node.id]
    links = dict.fromkeys(
        (node.id, owner[link.id], link.relation)
        for node in drawn
        for link in node.links
        if node.id and owner.get(link.id, node.id) != node.id
    )
    for source, target, relation in links:
        label = f" [label={_dot_string(relation.lower().replace('_', ' '))}]" if relation else ""
        lines.append(f"  {_dot_string(source)} -> {_dot_string(target)}{label};")
    return "\n".join([*lines, "}", ""]), len(drawn), len(links)


def _dot_node(node: Node) -> str:
    title = node.title if len(node.title) <= MAX_LABEL_LENGTH else node.title[: MAX_LABEL_LENGTH - 1] + "…"
    attributes = [
        f"label={_dot_string(title or node.path)}",
        f"tooltip={_dot_string(node.summary)}",
        f'fillcolor="{TYPE_COLORS.get(node.type, "#ffffff")}"',
    ]
    if node.status in STATUS_STYLES:
        attributes.append(STATUS_STYLES[node.status])
    return f"  {_dot_string(node.id)} [{', '.join(attributes)}];"


def _dot_string(text: str) -> str:
    """Return text as a quoted DOT string, with escapes and without line breaks."""
    plain = " ".join(text.replace("\0", "").split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") + '"'


# Captures

CAPTURE_FILE_KEYWORD = "#+file:"
"""Keyword of the line in a stub that names the complete file."""


def captured_file(stub: str) -> str:
    """Return the path of the complete file named in the text of a stub, or an empty string."""
    head = stub[:4096].split("\n\n", 1)[0].split("\n")
    names = (
        line.removeprefix(CAPTURE_FILE_KEYWORD) for line in head if line.startswith(CAPTURE_FILE_KEYWORD)
    )
    return next(names, "").strip()

"""A node: what its drawer must hold, how it is read out of org, how a new one is written.

Knows the properties and their values. Does not know files, nor what other nodes there are.
"""

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from quaid.kb.indexable import is_left_out

if TYPE_CHECKING:
    from quaid.formats import org

TYPES = ("principle", "preference", "procedure", "observation", "reference")
CREATORS = (
    *("human", "claude-code", "codex", "ollama"),
    *("claude-desktop", "cursor", "vscode", "windsurf", "zed", "gemini-cli", "quaid", "agent"),
)
CONFIDENCES = ("user-stated", "observed", "inferred", "external")
VISIBILITIES = ("personal", "work-private")
STATUSES = ("current", "contested", "superseded")
RELATIONS = ("SUPERSEDES", "CONTRADICTS", "RELATES_TO", "IMPLEMENTS", "DERIVED_FROM")
GENERAL = "general"

REQUIRED = (
    *("ID", "PROJECTS", "CREATED", "UPDATED", "CREATED_BY"),
    *("CONFIDENCE", "VISIBILITY", "SOURCE", "STATUS", "SUMMARY"),
)
ALLOWED: dict[str, tuple[str, ...]] = {
    "CREATED_BY": CREATORS,
    "CONFIDENCE": CONFIDENCES,
    "VISIBILITY": VISIBILITIES,
    "STATUS": STATUSES,
}
CURATED = "LAST_CURATED"
MERGED = "MERGED_IDS"
"""IDs of nodes that were merged into this one: pointers to them lead here."""

LONGEST_SUMMARY = 300

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")
DAY = re.compile(r"[<\[]?([0-9]{4}-[0-9]{2}-[0-9]{2})(?: [^\]>\n]*)?[>\]]?\Z")
_ENDING = re.compile(r"(?:\.d|\.git)\Z")
_GAP = re.compile(r"[^a-z0-9]+")
_RELATION = re.compile(rf"({'|'.join(RELATIONS)})[ \t]*:?[ \t]*\Z")


class Reference(NamedTuple):
    """A link to another node."""

    id: str
    relation: str
    """One of RELATIONS, or nothing."""
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
    """IDs of headings in it, which are nodes of org-roam too."""
    links: tuple[Reference, ...]
    size: int
    """Characters of the body."""

    @property
    def type(self) -> str:
        return next((tag for tag in self.tags if tag in TYPES), "")

    @property
    def pointer(self) -> str:
        """How the node is named outside of the knowledge base."""
        return f"{self.title} ({self.id})"


class Read(NamedTuple):
    node: Node
    body: str
    parsed: "org.OrgDocument"


def read(path: str, text: str) -> Read:
    """The node that a text makes, however incomplete."""
    from quaid.formats import org  # 4 ms, and whoever only looks for nodes parses none

    parsed = org.parse(text)
    body = text[parsed.body_start :]
    return Read(_node(path, text, parsed, len(body)), body, parsed)


def _node(path: str, text: str, parsed: "org.OrgDocument", size: int) -> Node:
    value = parsed.properties.get
    links = tuple(
        Reference(link.target.lower(), _relation(text, link.start), link.line)
        for link in parsed.links
        if link.kind == "id"
    )
    return Node(
        path,
        value("ID", "").lower(),
        parsed.title,
        parsed.filetags,
        projects(value("PROJECTS", "")),
        *(day(value("CREATED", "")), day(value("UPDATED", ""))),
        *(value("CREATED_BY", ""), value("CONFIDENCE", ""), value("VISIBILITY", ""), value("SOURCE", "")),
        *(value("STATUS", ""), value("SUMMARY", ""), day(value(CURATED, ""))),
        tuple(value(MERGED, "").lower().split()),
        tuple(
            each.properties["ID"].lower()
            for each in parsed.headings
            if "ID" in each.properties and not is_left_out(each.properties)
        ),
        links,
        size,
    )


def _relation(text: str, at: int) -> str:
    """The label right before a link."""
    found = _RELATION.search(text, max(text.rfind("\n", 0, at) + 1, at - 20), at)
    return found[1] if found else ""


def day(value: str) -> str:
    """A day as it is compared: without the brackets of a timestamp."""
    found = DAY.match(value.strip())
    return found[1] if found else value.strip()


def projects(value: str) -> tuple[str, ...]:
    """The slugs of `:general: :emacs:`, also when written `:general:emacs:` or without colons."""
    return tuple(dict.fromkeys(value.replace(":", " ").split()))


def project_slug(folder_name: str) -> str:
    """The slug of a project by the name of its folder: .emacs.d is emacs, My App is my-app."""
    name = _ENDING.sub("", folder_name.strip("/").rpartition("/")[2].lstrip(".").lower())
    return _GAP.sub("-", name).strip("-") or GENERAL


class Draft(NamedTuple):
    """What a new node shall say."""

    title: str
    summary: str
    body: str
    type: str
    tags: tuple[str, ...] = ()
    projects: tuple[str, ...] = (GENERAL,)
    created_by: str = "human"
    confidence: str = "observed"
    visibility: str = "personal"
    source: str = ""
    status: str = "current"


def write(draft: Draft, id: str, today: str) -> str:
    """The text of a new node."""
    values = {
        "ID": id,
        "PROJECTS": " ".join(f":{each}:" for each in draft.projects),
        "CREATED": today,
        "UPDATED": today,
        "CREATED_BY": draft.created_by,
        "CONFIDENCE": draft.confidence,
        "VISIBILITY": draft.visibility,
        "SOURCE": _line(draft.source),
        "STATUS": draft.status,
        "SUMMARY": _line(draft.summary),
    }
    width = max(map(len, values)) + 2
    drawer = [f"{f':{name}:':<{width}} {value}".rstrip() for name, value in values.items()]
    tags = "".join(f":{tag}" for tag in dict.fromkeys((draft.type, *draft.tags))) + ":"
    head = [":PROPERTIES:", *drawer, ":END:", f"#+title: {_line(draft.title)}", f"#+filetags: {tags}"]
    body = draft.body.strip("\n")
    return "\n".join([*head, "", body, ""]) if body else "\n".join([*head, ""])


def _line(text: str) -> str:
    return " ".join(text.split())


def stamped(text: str, values: dict[str, str]) -> str:
    """The text of a node with other values in its drawer, and nothing else changed."""
    from quaid.formats import org_edit

    for name, value in values.items():
        text = org_edit.set_property(text, name, value)
    return text


def described(title: str) -> str:
    """A title as the description of a link."""
    return title.replace("[", "(").replace("]", ")")


def file_name(title: str, local: str) -> str:
    """As org-roam names files: 20260524140509-words-of-the-title.org."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _GAP.sub("-", plain).strip("-")[:60].strip("-")
    stamp = "".join(filter(str.isdecimal, local))[:14]
    return f"{stamp}-{words or 'node'}.org"

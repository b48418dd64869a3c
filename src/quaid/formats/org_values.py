"""What an org file holds, as records. Every place is an offset into its text, every line is counted from 1."""

from typing import NamedTuple

from quaid.formats.org_inline import Link, Timestamp


class Problem(NamedTuple):
    """Something that Emacs or org-roam would choke on, or read otherwise than it looks."""

    line: int
    code: str
    message: str


class Keyword(NamedTuple):
    """A line like `#+title: Words`; the name in upper case."""

    name: str
    value: str
    line: int
    start: int


class Block(NamedTuple):
    """From the line that begins it to the end of the line that ends it."""

    kind: str
    """src, example, quote and so on, in lower case; dynamic for `#+begin: name`."""
    argument: str
    line: int
    start: int
    end: int


class Heading(NamedTuple):
    """A heading and its subtree."""

    level: int
    title: str
    """Without keyword, priority and tags."""
    todo: str
    done: bool
    """Whether the keyword is one of those that say so."""
    priority: str
    tags: tuple[str, ...]
    properties: dict[str, str]
    planning: dict[str, str]
    """SCHEDULED, DEADLINE and CLOSED with their timestamps, as they are written."""
    line: int
    start: int
    body: int
    """Where the text below begins: after the line itself, planning and property drawer."""
    end: int
    """Where the subtree ends."""


class Head(NamedTuple):
    """What an index needs of a file."""

    properties: dict[str, str]
    title: str
    filetags: tuple[str, ...]


class Org(NamedTuple):
    properties: dict[str, str]
    """Of the drawer at the top of the file: names in upper case, the first of a name wins."""
    title: str
    filetags: tuple[str, ...]
    keywords: tuple[Keyword, ...]
    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    timestamps: tuple[Timestamp, ...]
    blocks: tuple[Block, ...]
    problems: tuple[Problem, ...]
    body_start: int
    """Where the text begins: after the drawer, the keywords at the top and the empty lines below them."""
    drawer: tuple[int, int] | None
    """The drawer at the top of the file: where it begins, and where the line after it does."""
    comments: tuple[tuple[int, int], ...]
    """Lines that are comments, each from its start to its line end."""

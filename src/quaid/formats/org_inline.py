"""What stands inside lines of org: links in brackets, timestamps, and verbatim text, in which neither counts.

Knows offsets only. Every search goes forward and remembers what it found, so that hostile text costs no more than
its length. Plain and angle links (a bare https://…) are left to whoever shows the text, but for a bare id:UUID.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

KINDS = frozenset(
    "id file file+sys file+emacs attachment http https ftp mailto news doi cite info help man shell elisp docview"
    " bbdb eww gnus irc mhe rmail w3m".split()
)
"""What may stand before the colon of a link; anything else before a colon is part of a name to search for."""

MOST_LINKS = 50_000
"""Of one file; double brackets behind them are text."""

MOST_TIMESTAMPS = 50_000

Spans = list[tuple[int, int]]

_START = re.compile(r"\[\[(?=[^\[\]])")
_TARGET = re.compile(r"(?:[^\[\]\\]|\\.?)+", re.DOTALL)
# Where a paragraph ends: an empty line, a heading, an item, a row, a comment, a keyword, the edge of a drawer.
_BREAK = re.compile(
    r"\n(?=[ \t]*(?:\r?\n|[-+][ \t]|[0-9]+[.)][ \t]|\||#(?:[+ \r\n]|\Z)|:(?:[-\w]+:)?[ \t\r]*\n|: )|\*+ |\Z)"
)
_PLAIN_ID = re.compile(r"id:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![\w-])")
_WORD = re.compile(r"\w(?=id:)")
_CLOSED = re.compile(r"\]\]")
_DAY = "([12][0-9]{3}-[0-9]{2}-[0-9]{2})"
_TIMESTAMPS = [
    re.compile(rf"{left}{_DAY}(?: ([^<\[\]>\n]*))?{right}(?:--{left}{_DAY}[^<\[\]>\n]*{right})?")
    for left, right in ("<>", (r"\[", r"\]"))
]
_TIME = re.compile(r"(?:^| )([0-9]{1,2}:[0-9]{2})(?![0-9])")
_LINE_END = re.compile(r"\n")
# One pattern for each sign: a beginning that can be searched for as it is makes them several times as fast.
_OPENERS = {sign: re.compile(rf"{sign}(?=\S)(?<![^\s({{'\"\u2013\u2014\u200b-]{sign})") for sign in "=~"}
_CLOSERS = {
    sign: re.compile(rf"{sign}(?<=\S{sign})(?=[\s.,;:!?'\")}}\\\[\u2013\u2014\u200b-]|\Z)") for sign in "=~"
}


class Link(NamedTuple):
    """A link in double brackets."""

    kind: str
    """id, file, https and so on; custom-id for `#name`, fuzzy for a name to search for."""
    target: str
    """What it names, without kind and without a place in the file."""
    place: str
    """What stands after `::` in the link of a file."""
    description: str
    line: int
    start: int
    end: int


class Timestamp(NamedTuple):
    date: str
    time: str
    """As written: 9:05; "" when it names none."""
    until: str
    """The day on which a range ends, or ""."""
    active: bool
    """In angle brackets: it stands in an agenda."""
    line: int
    start: int
    end: int


class Links(NamedTuple):
    links: list[Link]
    torn: list[int]
    """Where a link to an id or a file begins that never ends, or only at the end of another one."""


def find_links(text: str, hidden: Spans) -> Links:
    """Every link in order, but for those in hidden stretches and verbatim text."""
    found: list[Link] = []
    torn: list[int] = []
    if "[[" not in text:
        return Links(_with_plain(text, found, hidden), torn)
    lines = _Lines(text)
    closed, breaks = _Ahead(text, _CLOSED), _Ahead(text, _BREAK)
    cover = _Cover(hidden)
    quoted = _Cover(list(verbatim(text)))
    end = 0
    for _ in range(MOST_LINKS):
        beginning = _START.search(text, end)
        if beginning is None:
            break
        start = beginning.start()
        end = start + 1
        if not cover.holds(start) and not quoted.holds(start):
            target = _TARGET.match(text, start + 2)
            stop = target.end() if target else -1
            described = text.startswith("][", stop)
            at = closed.after(stop + 3) if described else stop if text.startswith("]]", stop) else -1
            if target and at >= 0 and not start < breaks.after(start) < at:
                end = at + 2
                description = text[stop + 2 : at] if described else ""
                found.append(_link(target[0], description, lines.of(start), start, end))
            if text.startswith(("id:", "file:"), start + 2) and (end == start + 1 or "[[" in text[stop:end]):
                torn.append(start)
    return Links(_with_plain(text, found, hidden), torn)


def _with_plain(text: str, links: list[Link], hidden: Spans) -> list[Link]:
    """The links, and between them the ids that stand in the text as they are, which are links for Emacs too."""
    matches = [each for each in _PLAIN_ID.finditer(text) if not _WORD.match(text, max(each.start() - 1, 0))]
    if not matches:
        return links
    lines, cover, quoted = _Lines(text), _Cover(hidden), _Cover(list(verbatim(text)))
    inside = _Cover([(link.start, link.end) for link in links])
    for each in matches:
        start = each.start()
        if not (inside.holds(start) or cover.holds(start) or quoted.holds(start)):
            links.append(Link("id", each[1], "", "", lines.of(start), start, each.end()))
    return sorted(links, key=_start)


def _start(link: Link) -> int:
    return link.start


def _link(target: str, description: str, line: int, start: int, end: int) -> Link:
    if "\n" in target:
        target = " ".join(target.split())
    if "\\" in target:
        target = target.replace("\\[", "[").replace("\\]", "]").replace("\\\\", "\\")
    kind, colon, rest = target.partition(":")
    place = ""
    if colon and kind in KINDS:
        target = rest
    elif target.startswith(("/", "./", "../", "~/")):
        kind = "file"
    elif target.startswith("#"):
        kind, target = "custom-id", target[1:]
    else:
        kind = "fuzzy"
    if kind == "file":
        target, _, place = target.partition("::")
    return Link(kind, target, place, description, line, start, end)


def find_timestamps(text: str, hidden: Spans) -> Iterator[Timestamp]:
    """Every timestamp in order, but for those in hidden stretches."""
    found = [
        (match.start(), match)
        for each in _TIMESTAMPS
        for match in islice(each.finditer(text), MOST_TIMESTAMPS)
    ]
    if not found:
        return
    lines, cover = _Lines(text), _Cover(hidden)
    for start, match in sorted(found):
        if cover.holds(start):
            continue
        time = _TIME.search(match[2]) if match[2] else None
        yield Timestamp(
            *(match[1], time[1] if time else "", match[3] or "", text[start] == "<"),
            *(lines.of(start), start, match.end()),
        )


def verbatim(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of =verbatim= and ~code~, which may go over one line end."""
    closers = {sign: _Ahead(text, closer) for sign, closer in _CLOSERS.items()}
    first, second = _Ahead(text, _LINE_END), _Ahead(text, _LINE_END)
    passed = 0
    openers = [
        found.start() for sign, opener in _OPENERS.items() if sign in text for found in opener.finditer(text)
    ]
    for at in sorted(openers):
        end = closers[text[at]].after(at + 2) if at >= passed else -1
        if end < 0:
            continue
        line_end = first.after(at)
        limit = second.after(line_end + 1) if line_end >= 0 else -1
        if limit < 0 or end < limit:
            passed = end + 1
            yield at, passed


class _Lines:
    """Which line an offset stands in; asked for in order."""

    def __init__(self, text: str) -> None:
        self.text, self.line, self.counted = text, 1, 0

    def of(self, start: int) -> int:
        self.line += self.text.count("\n", self.counted, start)
        self.counted = start
        return self.line


class _Ahead:
    """Where a pattern comes next, or -1; asked for in order, so that no stretch is searched twice."""

    def __init__(self, text: str, sought: re.Pattern[str]) -> None:
        self.text, self.sought, self.at = text, sought, -2

    def after(self, start: int) -> int:
        if self.at != -1 and self.at < start:
            found = self.sought.search(self.text, start)
            self.at = found.start() if found else -1
        return self.at


class _Cover:
    """Whether an offset lies in one of these stretches; asked for in order."""

    def __init__(self, spans: Spans) -> None:
        self.spans, self.passed, self.until = spans, 0, -1

    def holds(self, start: int) -> bool:
        while self.passed < len(self.spans) and self.spans[self.passed][0] <= start:
            self.until = max(self.until, self.spans[self.passed][1])
            self.passed += 1
        return start < self.until

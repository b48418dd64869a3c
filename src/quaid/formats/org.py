"""Org files: parse headings, drawers, blocks and links as Emacs does, convert a file to pages, and edit lines.

No code is evaluated, and includes are not followed. Problems that Emacs ignores silently are reported.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument
from quaid.formats import markdown
from quaid.model.dates import is_date
from quaid.model.plain_text import LineCounter, SpanCover

LINK_KINDS = frozenset(
    "id file file+sys file+emacs attachment http https ftp mailto news doi cite info help man shell elisp docview"
    " bbdb eww gnus irc mhe rmail w3m".split()
)
"""Known link types. Any other text before a colon is part of a search term."""

MOST_LINKS = 50_000
"""At most this many links are parsed per file. Further double brackets are text."""

OrgSpans = list[tuple[int, int]]

_START = re.compile(r"\[\[(?=[^\[\]])")
_TARGET = re.compile(r"(?:[^\[\]\\]|\\.?)+", re.DOTALL)
# A paragraph ends at an empty line, heading, item, table row, comment, keyword or the edge of a drawer.
_BREAK = re.compile(
    r"\n(?=[ \t]*(?:\r?\n|[-+][ \t]|[0-9]+[.)][ \t]|\||#(?:[+ \r\n]|\Z)|:(?:[-\w]+:)?[ \t\r]*\n|: )|\*+ |\Z)"
)
_PLAIN_ID = re.compile(r"id:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![\w-])")
_WORD = re.compile(r"\w(?=id:)")
_CLOSED = re.compile(r"\]\]")
_LINE_END = re.compile(r"\n")
# There is one pattern per sign, because a literal prefix makes the search several times as fast.
_OPENERS = {sign: re.compile(rf"{sign}(?=\S)(?<![^\s({{'\"\u2013\u2014\u200b-]{sign})") for sign in "=~"}
_CLOSERS = {
    sign: re.compile(rf"{sign}(?<=\S{sign})(?=[\s.,;:!?'\")}}\\\[\u2013\u2014\u200b-]|\Z)") for sign in "=~"
}


class OrgLink(NamedTuple):
    """A link in double brackets, or a plain id."""

    kind: str
    """The link type: id, file, https and so on; custom-id for `#name`, fuzzy for a search term."""
    target: str
    """The target without the link type and the location within a file."""
    place: str
    """The location after `::` in a file link."""
    description: str
    line: int
    start: int
    end: int


def find_links(text: str, hidden: OrgSpans) -> tuple[list[OrgLink], list[int]]:
    """Return the links outside of hidden spans and verbatim text, in order, and the offsets of broken links.

    A broken link is an id or file link that is not closed, or is closed only by the end of another link.
    """
    links: list[OrgLink] = []
    torn: list[int] = []
    if "[[" not in text:
        return _with_plain_ids(text, links, hidden), torn
    lines = LineCounter(text)
    closed, breaks = _ForwardSearch(text, _CLOSED), _ForwardSearch(text, _BREAK)
    cover = SpanCover(hidden)
    quoted = SpanCover(list(verbatim_spans(text)))
    end = 0
    for _ in range(MOST_LINKS):
        beginning = _START.search(text, end)
        if beginning is None:
            break
        start = beginning.start()
        end = start + 1
        if not cover.contains(start) and not quoted.contains(start):
            target = _TARGET.match(text, start + 2)
            stop = target.end() if target else -1
            described = text.startswith("][", stop)
            at = closed.after(stop + 3) if described else stop if text.startswith("]]", stop) else -1
            if target and at >= 0 and not start < breaks.after(start) < at:
                end = at + 2
                description = text[stop + 2 : at] if described else ""
                links.append(_make_link(target[0], description, lines.at(start), start, end))
            if text.startswith(("id:", "file:"), start + 2) and (end == start + 1 or "[[" in text[stop:end]):
                torn.append(start)
    return _with_plain_ids(text, links, hidden), torn


def _with_plain_ids(text: str, links: list[OrgLink], hidden: OrgSpans) -> list[OrgLink]:
    """Add plain ids in the text to the links, since Emacs treats them as links too."""
    matches = [
        match for match in _PLAIN_ID.finditer(text) if not _WORD.match(text, max(match.start() - 1, 0))
    ]
    if not matches:
        return links
    lines, cover, quoted = LineCounter(text), SpanCover(hidden), SpanCover(list(verbatim_spans(text)))
    inside = SpanCover([(link.start, link.end) for link in links])
    for match in matches:
        start = match.start()
        if not (inside.contains(start) or cover.contains(start) or quoted.contains(start)):
            links.append(OrgLink("id", match[1], "", "", lines.at(start), start, match.end()))
    return sorted(links, key=lambda link: link.start)


def _make_link(target: str, description: str, line: int, start: int, end: int) -> OrgLink:
    if "\n" in target:
        target = " ".join(target.split())
    if "\\" in target:
        target = target.replace("\\[", "[").replace("\\]", "]").replace("\\\\", "\\")
    kind, colon, rest = target.partition(":")
    place = ""
    if colon and kind in LINK_KINDS:
        target = rest
    elif target.startswith(("/", "./", "../", "~/")):
        kind = "file"
    elif target.startswith("#"):
        kind, target = "custom-id", target[1:]
    else:
        kind = "fuzzy"
    if kind == "file":
        target, _, place = target.partition("::")
    return OrgLink(kind, target, place, description, line, start, end)


def verbatim_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of =verbatim= and ~code~, which may contain one line end."""
    closers = {sign: _ForwardSearch(text, closer) for sign, closer in _CLOSERS.items()}
    first, second = _ForwardSearch(text, _LINE_END), _ForwardSearch(text, _LINE_END)
    passed = 0
    openers = [
        match.start() for sign, opener in _OPENERS.items() if sign in text for match in opener.finditer(text)
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


class _ForwardSearch:
    """Finds the offset of the next match of a pattern, or -1.

    Offsets must be given in ascending order, so that text is searched only once.
    """

    def __init__(self, text: str, sought: re.Pattern[str]) -> None:
        self.text, self.sought, self.at = text, sought, -2

    def after(self, start: int) -> int:
        if self.at != -1 and self.at < start:
            match = self.sought.search(self.text, start)
            self.at = match.start() if match else -1
        return self.at


class OrgProblem(NamedTuple):
    """Text that Emacs or org-roam rejects, or parses differently than a reader would expect."""

    line: int
    code: str
    message: str


OrgKeyword = tuple[str, str, int]
"""Name in upper case, value and start offset of a line such as `#+title: Words`."""

OrgBlock = tuple[str, str, int, int]
"""Kind, argument, start of the first line and end of the last line of a block.

The kind is src, example, quote and so on, in lower case. It is "dynamic" for `#+begin: name`.
"""


class OrgHeading(NamedTuple):
    """A heading and its subtree."""

    level: int
    title: str
    """Title without keyword, priority and tags."""
    todo: str
    done: bool
    """True if the keyword is one of the done states."""
    tags: tuple[str, ...]
    properties: dict[str, str]
    planning: dict[str, str]
    """Timestamps of SCHEDULED, DEADLINE and CLOSED, as written."""
    line: int
    start: int
    body: int
    """Offset of the text below the heading line, planning and property drawer."""
    end: int
    """End offset of the subtree."""


class OrgDocument(NamedTuple):
    properties: dict[str, str]
    """Properties of the drawer at the top of the file.

    Names are in upper case. If a name occurs twice, the first value is used.
    """
    title: str
    filetags: tuple[str, ...]
    keywords: tuple[OrgKeyword, ...]
    headings: tuple[OrgHeading, ...]
    links: tuple[OrgLink, ...]
    blocks: tuple[OrgBlock, ...]
    problems: tuple[OrgProblem, ...]
    body_start: int
    """Offset of the text after the drawer, the keywords at the top and the blank lines below them."""
    drawer: tuple[int, int] | None
    """Offsets of the start of the drawer at the top of the file and of the line after the drawer."""
    comments: tuple[tuple[int, int], ...]
    """Spans of comment lines, without the line end."""


VERBATIM_BLOCKS = ("src", "example", "comment", "export")
"""Blocks whose content is not parsed for markup."""

BOM = "\ufeff"

# The pattern starts with \n instead of ^ and is searched in "\n" + text, which is several times as fast.
_MARK = re.compile(r"\n(?:(\*+)|[ \t]*([#:]))")
_BLOCK = re.compile(r"#\+(begin|end)(?:_(\S+)|:)", re.IGNORECASE)
_KEYWORD = re.compile(r"#\+(\S+):[ \t]*([^\n]*)")
_HEAD = re.compile(
    r"(?:[ \t]*(?:#(?: [^\n]*|\r)?|#\+(?!(?:begin|end)[_:]|(?:attr_\w+|caption|header|name|plot|results)[\[:])"
    r"\S+:[^\n]*|\r)?(?:\n|\Z(?<!\n)))*+",  # possessive, so that no state is stored for each line
    re.IGNORECASE,
)
_DRAWER = re.compile(r":([-\w]+):[ \t\r]*(?=\n|\Z)")
_PROPERTY = re.compile(r"[ \t]*:(\S+):(?: ([^\n]*)|[ \t\r]*)(?:\n|\Z)")
_TAGS = re.compile(r":[\w@#%:]+:")
_PLANNING = re.compile(r"[ \t]*(?:CLOSED|DEADLINE|SCHEDULED):")
_PLANNED = re.compile(r"(CLOSED|DEADLINE|SCHEDULED): *([<\[][^<\[\]>\n]*[>\]])")
_WORD_LISTS = re.compile(r"^[ \t]*#\+(?:seq_|typ_)?todo:([^\n]*)", re.MULTILINE | re.IGNORECASE)


MOST_MARKS = 50_000
"""At most this many markup lines are parsed per file. The rest is plain text, and is reported as a problem."""

_AT_THE_TOP = "at the very top of the file"


class OrgReader:
    """Parses the lines with markup in a single pass from top to bottom."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.keywords: list[OrgKeyword] = []
        self.headings: list[OrgHeading] = []
        self.blocks: list[OrgBlock] = []
        self.problems: list[OrgProblem] = []
        self.properties: dict[str, str] = {}
        self.drawer: tuple[int, int] | None = None
        self.comments: list[tuple[int, int]] = []
        self.hidden: list[tuple[int, int]] = []  # spans in which brackets are not links
        self.top = 1 if text.startswith(BOM) else 0
        self.drawer_place = self.top  # offset where a property drawer is allowed
        self.passed = 0  # everything before this offset has been processed
        self.lines = LineCounter(text)
        self.marks: list[tuple[int, str, str, int]] = []  # line start, stars, sign, and offset of the sign
        self._ends: dict[int, int] | None = None
        self.own_ends: set[int] = set()  # starts of the :END: lines that close a drawer
        self.ids: dict[str, int] = {}
        self.open, self.done = _todo_words(text)

    def run(self) -> None:
        text = self.text
        padded = "\n" + text if not self.top else " \n" + text[1:]
        # In `padded`, the "\n" before a line is at the offset at which the line starts in the original text.
        self.marks = [
            (mark.start(), mark[1], mark[2], mark.end() - 2)
            for mark in islice(_MARK.finditer(padded), MOST_MARKS + 1)
        ]
        beyond = self.marks.pop() if len(self.marks) > MOST_MARKS else None
        for start, stars, sign, at in self.marks:
            if start < self.passed:
                continue
            if stars:
                self._stars(start, len(stars))
            elif sign == "#":
                self._hash(start, at)
            else:
                self._colon(start, at)
        if beyond:
            message = (
                f"more than {MOST_MARKS:,} headings, keywords and drawers; from here on all is plain text"
            )
            self._say(self.lines.at(beyond[0]), "too-many-marks", message)

    def _end_of(self, start: int) -> int | None:
        """Return the offset of the line that closes the block or drawer, or None if it is not closed."""
        if self._ends is None:
            self._ends = self._paired()
        return self._ends.get(start)

    def _paired(self) -> dict[int, int]:
        """Map the start of each closed block and drawer to the start of the line that closes it.

        That is the next line that closes a block or drawer of that kind. A block or drawer with a heading
        before this line is not closed.
        """
        text = self.text
        ends: dict[int, int] = {}
        next_end: dict[str, int] = {}
        for start, stars, sign, at in reversed(self.marks):
            if stars:
                if text[start + len(stars) : start + len(stars) + 1] == " ":
                    next_end.clear()
            elif sign == ":":
                if text[at : at + 5].upper() == ":END:" and _DRAWER.match(text, at):
                    next_end[":"] = start
                elif ":" in next_end:
                    ends[start] = next_end[":"]
            elif text.startswith("+", at + 1) and (edge := _BLOCK.match(text, at)):
                kind = (edge[2] or "").lower() + "_"
                if len(edge[1]) == 5:  # the length of "begin", in any letter case
                    if kind in next_end:
                        ends[start] = next_end[kind]
                elif not text[edge.end() : self._line_end(at)].strip():
                    next_end[kind] = start
        return ends

    # Lines

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end

    def _next_line(self, start: int) -> int:
        return min(self._line_end(start) + 1, len(self.text))

    def _say(self, line: int, code: str, message: str) -> None:
        self.problems.append(OrgProblem(line, code, message))

    def _stars(self, start: int, level: int) -> None:
        text = self.text
        end = self._line_end(start)
        if text[start + level : start + level + 1] != " ":
            rest = text[start + level : end]
            if rest[:1] == "\t" or (level > 1 and rest.strip() and "*" not in rest):
                message = "stars without a space after them make no heading"
                self._say(self.lines.at(start), "no-heading", message)
            return
        body = min(end + 1, len(text))
        planning: dict[str, str] = {}
        if text[body : body + 9].lstrip(" \t")[:1] in ("C", "D", "S") and _PLANNING.match(text, body):
            stop = self._line_end(body)
            planning = dict(_PLANNED.findall(text[body:stop]))
            body = min(stop + 1, len(text))
        self.drawer_place = body
        fields = _heading_words(text[start + level + 1 : end].strip(" \t\r"), self.open, self.done)
        self.headings.append(
            OrgHeading(level, *fields, {}, planning, self.lines.at(start), start, body, len(text))
        )

    def _hash(self, start: int, at: int) -> None:
        """Handle a line that starts with `#`: a comment, a keyword, or the edge of a block."""
        text = self.text
        following = text[at + 1 : at + 2]
        if following != "+":
            if not following.strip():
                end = self._line_end(at)
                self.hidden.append((start, end))
                self.comments.append((start, end))
                if start == self.drawer_place and not self.headings:
                    self.drawer_place = end + 1  # a file's drawer may follow comments
            return
        edge = _BLOCK.match(text, at)
        if edge is not None:
            if len(edge[1]) == 5:
                self._block(start, (edge[2] or "dynamic").lower(), edge.end())
            return
        keyword = _KEYWORD.match(text, at)
        if keyword is not None:
            self.keywords.append((keyword[1].upper(), keyword[2].rstrip(), start))

    def _block(self, start: int, kind: str, after_name: int) -> None:
        end, closing = self._line_end(after_name), self._end_of(start)
        if closing is None:
            message = (
                f"the {kind} block is not closed before the next heading, so it is plain text;"
                " a line in it that begins with a star needs a comma before the star"
            )
            self._say(self.lines.at(start), "unclosed-block", message)
            return
        argument = self.text[after_name:end].strip()
        self.blocks.append((kind, argument, start, self._line_end(closing)))
        if kind in VERBATIM_BLOCKS:
            self.hidden.append((end, closing))
            self.passed = closing + 1

    def _colon(self, start: int, at: int) -> None:
        """Handle a line that starts with `:`: fixed-width text, or the edge of a drawer."""
        text = self.text
        if text[at + 1 : at + 2] in (" ", "", "\n", "\r"):
            self.hidden.append((start, self._line_end(at)))
            return
        drawer = _DRAWER.match(text, at)
        name = drawer[1].upper() if drawer else ""
        if name == "PROPERTIES":
            self._property_drawer(start)
        elif name == "END":
            if start not in self.own_ends:
                self._say(self.lines.at(start), "stray-end", ":END: closes no drawer")
        elif name and (closing := self._end_of(start)) is not None:
            self.own_ends.add(closing)
        elif drawer and drawer[1] == name:
            message = f":{name}: is not closed by :END: before the next heading, so it is plain text"
            self._say(self.lines.at(start), "unclosed-drawer", message)

    def _property_drawer(self, start: int) -> None:
        """Parse names and values up to :END:. If a single line is invalid, Emacs ignores the whole drawer."""
        line = number = self.lines.at(start)
        if start != self.drawer_place:
            self._no_drawer(
                start, line, f"must stand {'right below its heading' if self.headings else _AT_THE_TOP}"
            )
            return
        properties: dict[str, str] = {}
        position = self._next_line(start)
        problems: list[OrgProblem] = []
        while (match := _PROPERTY.match(self.text, position)) is not None:
            number += 1
            position = match.end()
            name, value = match[1].upper(), (match[2] or "").strip()
            if name == "END" and not value:
                self.problems += problems
                self._keep_properties(properties, start, position, line)
                return
            if name[-1] == "+" and len(name) > 1:
                name = name[:-1]
                properties[name] = f"{properties[name]} {value}" if name in properties else value
            elif name not in properties:
                properties[name] = value
            else:
                code = "second-id" if name == "ID" else "duplicate-property"
                problems.append(OrgProblem(number, code, f":{name}: stands here twice; the first one counts"))
        self._no_drawer(start, number + 1, "")

    def _no_drawer(self, start: int, line: int, misplaced: str) -> None:
        """Report why a property drawer is ignored."""
        closing = self._end_of(start)
        if closing is None:
            message = "the property drawer is not closed by :END:, so it says nothing"
            self._say(self.lines.at(start), "unclosed-drawer", message)
            return
        self.own_ends.add(closing)
        if misplaced:
            self._say(line, "misplaced-drawer", f"a property drawer {misplaced}, so this one says nothing")
        else:
            self._say(line, "bad-property", "no line like ':NAME: value', so the whole drawer says nothing")

    def _keep_properties(self, properties: dict[str, str], start: int, after: int, line: int) -> None:
        self.passed, self.drawer_place = after, -1
        named = properties.get("ID")
        if named and self.ids.setdefault(named, line) != line:
            self._say(line, "duplicate-id", f"the id {named} stands in line {self.ids[named]} too")
        if self.headings:
            self.headings[-1] = self.headings[-1]._replace(properties=properties, body=after)
        else:
            self.properties, self.drawer = properties, (start, after)

    # Results

    def body_start(self) -> int:
        match = _HEAD.match(self.text, self.drawer[1] if self.drawer else self.top)
        return match.end() if match else self.top

    def finished_headings(self) -> tuple[OrgHeading, ...]:
        """Return the headings, each ending where the next heading of the same or a higher level starts."""
        finished: list[OrgHeading] = []
        following: list[OrgHeading] = []  # headings below the current one that may end it, nearest last
        for heading in reversed(self.headings):
            while following and following[-1].level > heading.level:
                following.pop()
            finished.append(heading._replace(end=following[-1].start) if following else heading)
            following.append(heading)
        return tuple(reversed(finished))


def _heading_words(
    words: str, open_words: set[str], done_words: set[str]
) -> tuple[str, str, bool, tuple[str, ...]]:
    """Return the title, the TODO keyword, whether it is a done state, and the tags."""
    todo, has_priority = "", False
    tags: tuple[str, ...] = ()
    first, _, rest = words.partition(" ")
    if rest and (first in open_words or first in done_words):
        todo, words = first, rest.lstrip(" \t")
    if words[:2] == "[#" and words[3:4] == "]":
        has_priority, words = True, words[4:].lstrip(" \t")
    if words == "COMMENT" or words[:8] == "COMMENT ":
        words = words[8:].lstrip(" \t")
    if words[-1:] == ":":
        before = max(words.rfind(" "), words.rfind("\t"))
        if (before >= 0 or not (todo or has_priority)) and _TAGS.fullmatch(words, before + 1):
            tags = tuple(part for part in words[before + 1 :].split(":") if part)
            words = words[: max(before, 0)].rstrip(" \t")
    return words, todo, todo in done_words, tags


def _todo_words(text: str) -> tuple[set[str], set[str]]:
    """Return the open and done keywords: those defined in the file, else Emacs's defaults."""
    lists = (
        [words.split() for words in _WORD_LISTS.findall(text)] if "TODO:" in text or "todo:" in text else []
    )
    if not lists:
        return {"TODO"}, {"DONE"}
    open_words: set[str] = set()
    done_words: set[str] = set()
    for word_list in lists:
        words = [word.partition("(")[0] for word in word_list]
        cut = words.index("|") if "|" in words else len(words) - 1
        open_words.update(words[:cut])
        done_words.update(words[cut:])
    return open_words, done_words - {"|"}


LONGEST_TITLE = 2_000
"""In titles with more characters than this, links are not replaced by their descriptions."""

_LINK = re.compile(r"\[\[((?:[^\[\]\\]|\\.)+)\](?:\[(.+?)\])?\]")


def parse(text: str) -> OrgDocument:
    """Parse a whole file. This never fails."""
    reading = OrgReader(text)
    reading.run()
    links, torn = find_links(text, reading.hidden)
    problems = reading.problems
    lines = LineCounter(text)
    for at in torn:
        message = "a link begins here that never ends: close it with ]]"
        problems.append(OrgProblem(lines.at(at), "torn-link", message))
    if "\r\n" in text and text.count("\r\n") != text.count("\n"):
        problems.append(
            OrgProblem(1, "line-ends", "some lines end with CR LF and others with LF; Emacs shows ^M")
        )
    return OrgDocument(
        reading.properties,
        *_title_and_tags(reading.keywords),
        tuple(reading.keywords),
        reading.finished_headings(),
        tuple(links),
        tuple(reading.blocks),
        tuple(sorted(problems)),
        reading.body_start(),
        reading.drawer,
        tuple(reading.comments),
    )


def _title_and_tags(keywords: list[OrgKeyword]) -> tuple[str, tuple[str, ...]]:
    title = next((value for name, value, _ in keywords if name == "TITLE"), "")
    if "[[" in title and len(title) <= LONGEST_TITLE:  # replace a link in the title by its description
        title = _LINK.sub(lambda link: link[2] or link[1], title)
    named = [value.replace(":", " ").split() for name, value, _ in keywords if name == "FILETAGS"]
    return title, tuple(dict.fromkeys(tag for tags in named for tag in tags))


PAGE_KEYWORDS = ("DATE", "AUTHOR", "DESCRIPTION", "CATEGORY", "SUBTITLE", "SUMMARY", "TYPE")
"""Keywords that become front matter of the page, in addition to title and tags."""

MOST_HEADING_PAGES = 1_000
"""At most this many headings of a file become separate pages."""

_DATED = re.compile(
    r"[<\[]?([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9-])[^<\[\]>]*[>\]]|([0-9]{4}-[0-9]{2}-[0-9]{2})(?![\w/-])"
)
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day", re.IGNORECASE)
_ALIAS = re.compile(r'"([^"]*)"|(\S+)')
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TICKS = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_NO_LINK_PROPERTIES = ("ROAM_REFS", "ROAM_ALIASES")


class OrgPage(NamedTuple):
    """The parts of one page."""

    title: str
    frontmatter: dict[str, Any]
    truth: str
    timeline: str


def read_pages(text: str) -> tuple[OrgPage, list[OrgPage], tuple[OrgProblem, ...]]:
    """Return a file's page, the pages of its headings with an id, and the problems. Line ends become LF.

    The id of a heading is in its page's front matter.
    """
    text = text.replace("\r\n", "\n").removeprefix(BOM)
    parsed = parse(text)
    writing = _PageBuilder(text, parsed)
    writing.run()
    first, *nodes = [owner.part() for owner in writing.owners]
    return first, nodes, parsed.problems


class _OrgPageDraft:
    """A page under construction."""

    def __init__(self, title: str, frontmatter: dict[str, Any], level: int, end: int) -> None:
        self.title = title
        self.frontmatter = frontmatter
        self.level = level
        self.end = end
        self.truth: list[str] = []
        self.timeline: list[str] = []
        self.threads: list[str] = []
        self.entry_end = 0
        """End of the heading that is the current timeline entry."""

    def part(self) -> OrgPage:
        if self.threads:
            self.truth += ["\n\n# Open threads\n\n", *(f"- [ ] {thread}\n" for thread in self.threads)]
        summary = self.frontmatter.get("summary")
        if isinstance(summary, str) and summary.strip():  # page_summary reads the quotation at the top
            self.truth.insert(0, f"> {summary.strip()}\n\n")
        truth, timeline = (
            markdown.normalize_part("".join(self.truth)),
            markdown.normalize_part("".join(self.timeline)),
        )
        return OrgPage(self.title, self.frontmatter, truth, timeline)


class _PageBuilder:
    def __init__(self, text: str, parsed: OrgDocument) -> None:
        self.text = text
        self.org = parsed
        self.owners = [_OrgPageDraft(parsed.title, _front_matter(parsed), 0, len(text))]
        self.above = [self.owners[0]]  # the page of the current heading, and the pages around it
        self.patches = _patches(text, parsed)
        self.starts = [start for start, _, _ in self.patches]

    def run(self) -> None:
        headings = self.org.headings
        first = headings[0].start if headings else len(self.text)
        self.owners[0].truth.append(self._plain(min(self.org.body_start, first), first))
        ends = [heading.start for heading in headings[1:]] + [len(self.text)]
        tags: list[tuple[int, tuple[str, ...]]] = []  # end and tags of the enclosing headings
        for heading, end in zip(headings, ends, strict=False):
            while tags and tags[-1][0] <= heading.start:
                tags.pop()
            tags.append((heading.end, heading.tags))
            self._heading(
                heading, self._plain(heading.body, end), [tag for _, names in tags for tag in names]
            )

    def _heading(self, heading: OrgHeading, body: str, tags: list[str]) -> None:
        while self.above[-1].end <= heading.start and len(self.above) > 1:
            self.above.pop()
        owner = self.above[-1]
        if heading.properties.get("ID") and len(self.owners) <= MOST_HEADING_PAGES:
            self._node(owner, heading, body, tags)
            return
        if heading.todo and not heading.done:
            owner.threads.append(_thread_text(heading))
        date = "" if heading.todo and not heading.done else _heading_date(heading.title)
        if date:
            owner.timeline.append(f"\n## {date}{_title_without_date(heading.title, date)}\n{body}")
            owner.entry_end = max(owner.entry_end, heading.end)
        elif heading.start < owner.entry_end:
            owner.timeline.append(f"\n{self._words(heading)}\n{body}")
        else:
            depth = min(max(heading.level - owner.level, 1), 6)
            owner.truth.append(f"\n{'#' * depth} {self._words(heading)[heading.level + 1 :]}\n{body}")

    def _node(self, owner: _OrgPageDraft, heading: OrgHeading, body: str, tags: list[str]) -> None:
        """Start a page for a heading with an id, and put a link to it into the page that contains the heading."""
        title = _without_links(heading.title) or heading.properties["ID"]
        depth = min(max(heading.level - owner.level, 1), 6)
        link = f"[[id:{heading.properties['ID']}][{title.replace('[', '(').replace(']', ')')}]]"
        place = owner.timeline if heading.start < owner.entry_end else owner.truth
        place.append(f"\n{'#' * depth} {title}\n\n{link}\n" if place is owner.truth else f"\n{link}\n")
        front = _property_front_matter(heading.properties)
        named = list(dict.fromkeys([*self.org.filetags, *tags]))
        front = {"title": title, **front, **({"tags": named} if named else {})}
        node = _OrgPageDraft(title, front, heading.level, heading.end)
        if heading.todo:
            node.frontmatter.setdefault("todo", heading.todo)
            if not heading.done:
                node.threads.append(_thread_text(heading))
        node.frontmatter.update({key.lower(): stamp for key, stamp in heading.planning.items()})
        node.truth.append(body)
        date = _heading_date(heading.title)
        if date and not (heading.todo and not heading.done):
            node.timeline.append(f"## {date}{_title_without_date(heading.title, date)}\n")
        self.owners.append(node)
        self.above.append(node)

    def _words(self, heading: OrgHeading) -> str:
        end = self.text.find("\n", heading.start)
        return self.text[heading.start : len(self.text) if end < 0 else end].rstrip()

    def _plain(self, start: int, end: int) -> str:
        """Return a part of the text with its patches applied."""
        parts: list[str] = []
        for place in range(bisect_left(self.starts, start), len(self.starts)):
            at, stop, words = self.patches[place]
            if at >= end:
                break
            parts += [self.text[start:at], words]
            start = stop
        return "".join([*parts, self.text[start:end]])


def _patches(text: str, parsed: OrgDocument) -> list[tuple[int, int, str]]:
    """Return the replacements that turn org markup into Markdown, as start, end and new text.

    Blocks become fenced code, comments are dropped, and verbatim text with brackets becomes a code span.
    """
    patches: list[tuple[int, int, str]] = []
    blocks = [block for block in parsed.blocks if block[0] in VERBATIM_BLOCKS]
    for kind, argument, start, end in blocks:
        first = text.find("\n", start) + 1
        last = text.rfind("\n", 0, end) + 1
        if kind == "comment":
            patches.append((start, end, ""))
            continue
        ticks = max((len(run) for run in _TICKS.findall(text[first:last])), default=2)
        fence = "`" * max(3, ticks + 1)
        language = argument.split()[0] if kind != "example" and argument else ""
        language = language if language.replace("-", "").replace("+", "").isalnum() else ""
        patches.append((start, first, f"{fence}{language}\n"))
        patches.append((last, end, fence))
    cover = SpanCover([(start, end) for _, _, start, end in blocks])
    patches += [(start, end, "") for start, end in parsed.comments]
    if "[[" in text:
        for start, end in verbatim_spans(text):
            if "[[" in text[start:end] and "`" not in text[start:end] and not cover.contains(start):
                patches.append((start, end, f"`{text[start + 1 : end - 1]}`"))
    return sorted(patches)


def _front_matter(parsed: OrgDocument) -> dict[str, Any]:
    """Return the file's front matter: title, properties, tags and PAGE_KEYWORDS."""
    front: dict[str, Any] = {"title": parsed.title} if parsed.title else {}
    front.update(_property_front_matter(parsed.properties))
    for name, value, _ in parsed.keywords:
        if name in PAGE_KEYWORDS and value:
            front.setdefault(name.lower(), value)
    if parsed.filetags:
        front["tags"] = list(parsed.filetags)
    return front


def _property_front_matter(properties: dict[str, str]) -> dict[str, Any]:
    """Convert properties to front matter.

    ROAM_ALIASES become aliases. An id link in a property becomes a link with the property's name as
    relationship.
    """
    front: dict[str, Any] = {
        name.lower(): value for name, value in properties.items() if name != "ROAM_ALIASES"
    }
    named = [one or other for one, other in _ALIAS.findall(properties.get("ROAM_ALIASES", ""))]
    if named:
        front["aliases"] = named
    links = [
        {"to": f"id:{link.target}", "relationship": name.lower()}
        for name, value in properties.items()
        if "[[id:" in value and name not in _NO_LINK_PROPERTIES
        for link in parse(value).links
        if link.kind == "id"
    ]
    if links:
        front["links"] = links
    return front


def _heading_date(title: str) -> str:
    """Return the date at the start of a heading or in a timestamp in it, else an empty string."""
    for match in _DATED.finditer(title):
        date = match[1] or match[2]
        if is_date(date) and (match.start() == 0 or match[1]):
            return str(date)
    return ""


def _title_without_date(title: str, date: str) -> str:
    """Return a dash and the title without its date, or "" if nothing or only a weekday is left."""
    for match in _DATED.finditer(title):
        if date in (match[1], match[2]):
            title = f"{title[: match.start()].strip()} {title[match.end() :].strip()}".strip()
            break
    return "" if not title or _WEEKDAY.fullmatch(title) else f" — {title.lstrip('-—–: ')}"


def _thread_text(heading: OrgHeading) -> str:
    day = _ISO_DAY.search(heading.planning.get("DEADLINE", ""))
    return f"{heading.title or heading.todo}{f' (deadline {day[0]})' if day else ''}"


def _without_links(title: str) -> str:
    """Replace links in a heading by their descriptions, or by their targets if they have none."""
    for link in reversed(parse(title).links):
        title = title[: link.start] + (link.description or link.target) + title[link.end :]
    return title.strip()


_PROPERTY_PARTS = re.compile(r"([ \t]*):(\S+):([ \t]*)((?:[^\n]*[^ \t\r\n])?)([ \t\r]*)(?:\n|\Z)")
_KEYWORD_PARTS = re.compile(r"([ \t]*#\+\S+?:[ \t]*)((?:[^\n]*[^ \t\r\n])?)([ \t\r]*)(?:\n|\Z)")
_NAME = re.compile(r"[^\s:]+")
_TAG = re.compile(r"[\w@#%]+")
_COMMENTS = re.compile(r"(?:[ \t]*#(?:[ \t][^\n]*|\r)?\n)*")
_TORN_DRAWER = ("unclosed-drawer", "misplaced-drawer", "bad-property")


def set_property(text: str, name: str, value: str) -> str:
    """Set a property in the drawer at the top, which is created if missing."""
    if not _NAME.fullmatch(name) or name.upper() in ("END", "PROPERTIES"):
        raise InvalidArgument(name="name", problem=f"{name!r} cannot be the name of a property")
    value = _one_line(value, "value")
    read = parse(text)
    if read.drawer is None:
        _refuse_torn(text, read)
        end = _line_end(text)
        drawer = f":PROPERTIES:{end}{_property_line(name, value)}{end}:END:{end}"
        top = 1 if text.startswith(BOM) else 0
        below = _COMMENTS.match(text, top)
        return _insert(text, below.end() if below else top, drawer, end)
    for line in _drawer_lines(text, read.drawer):
        if line[2].upper() == name.upper():
            gap = line[3] if line[3].startswith(" ") else " "
            return text[: line.start(3)] + (gap + value if value else "") + text[line.end(4) :]
        if line[2].upper() == "END":
            here = line.start()
            return _insert(
                text, here, line[1] + _property_line(name, value) + _line_end(text), _line_end(text)
            )
    return text


def remove_property(text: str, name: str) -> str:
    """Remove a property from the drawer at the top, and the drawer itself if it becomes empty."""
    read = parse(text)
    if read.drawer is None:
        return text
    start, end = read.drawer
    lines = list(_drawer_lines(text, read.drawer))
    named = (name.upper(), f"{name.upper()}+")
    remaining = [line for line in lines if line[2].upper() not in named]
    if len(remaining) == len(lines):
        return text
    if len(remaining) == 2:  # only :PROPERTIES: and :END: are left
        return text[:start] + text[end:]
    return text[:start] + "".join(line[0] for line in remaining) + text[end:]


def set_title(text: str, title: str) -> str:
    """Set the title of the file."""
    return _set_keyword(text, "title", _one_line(title, "title"))


def set_filetags(text: str, tags: Iterable[str]) -> str:
    """Replace the file tags."""
    named = list(dict.fromkeys(tags))
    for tag in named:
        if not _TAG.fullmatch(tag):
            problem = f"{tag!r} cannot be a tag in org: letters, digits, _ @ # and % can stand in one"
            raise InvalidArgument(name="tags", problem=problem)
    starts = [start for name, _, start in parse(text).keywords if name == "FILETAGS"]
    for start in reversed(starts[1:] if named else starts):
        text = text[:start] + text[_next_line(text, start) :]
    return _set_keyword(text, "filetags", f":{':'.join(named)}:") if named else text


def append_lines(text: str, lines: Iterable[str]) -> str:
    """Append lines to the text."""
    end = _line_end(text)
    added = "".join([line.rstrip("\r\n") + end for line in lines])
    return text + (end if added and text not in ("", BOM) and not text.endswith("\n") else "") + added


def replace_id(text: str, old: str, new: str) -> str:
    """Change all links to the id `old` to the id `new`."""
    parts: list[str] = []
    done = 0
    for link in parse(text).links:
        if link.kind == "id" and link.target.partition("::")[0] == old:
            at = text.index(old, link.start)
            parts += [text[done:at], new]
            done = at + len(old)
    return "".join([*parts, text[done:]])


def _set_keyword(text: str, name: str, value: str) -> str:
    read = parse(text)
    place = next((start for keyword, _, start in read.keywords if keyword == name.upper()), None)
    if place is None:
        if read.drawer is None:
            _refuse_torn(text, read)
        end = _line_end(text)
        return _insert(text, _below_head(text, read, name), f"#+{name}: {value}{end}", end)
    match = _KEYWORD_PARTS.match(text, place)
    assert match is not None, "parse found a keyword here"
    gap = "" if match[1].endswith((" ", "\t")) or not value else " "
    return text[: match.start(2)] + gap + value + text[match.end(2) :]


def _below_head(text: str, read: OrgDocument, name: str) -> int:
    """Return the offset at which to insert the line of a new keyword.

    A title goes below the drawer, or below the comments at the top if there is no drawer. Other keywords go
    below the title if there is one.
    """
    title = next((start for keyword, _, start in read.keywords if keyword == "TITLE"), None)
    if name != "title" and title is not None:
        return _next_line(text, title)
    if read.drawer is not None:
        return read.drawer[1]
    top = 1 if text.startswith(BOM) else 0
    below = _COMMENTS.match(text, top)
    return below.end() if below else top


def _refuse_torn(text: str, read: OrgDocument) -> None:
    """Raise InvalidArgument if the drawer at the top is invalid, since a new drawer would hide it."""
    until = read.headings[0].line if read.headings else text.count("\n") + 2
    for problem in read.problems:
        if problem.code in _TORN_DRAWER and problem.line < until:
            raise InvalidArgument(
                name="text", problem=f"line {problem.line}: {problem.message}; mend it first"
            )


def _drawer_lines(text: str, drawer: tuple[int, int]) -> Iterator[re.Match[str]]:
    position = drawer[0]
    while position < drawer[1] and (line := _PROPERTY_PARTS.match(text, position)) is not None:
        yield line
        position = line.end()


def _property_line(name: str, value: str) -> str:
    return f":{name}:{' ' * max(1, 9 - len(name))}{value}".rstrip() if value else f":{name}:"


def _insert(text: str, place: int, lines: str, end: str) -> str:
    """Insert lines at the start of a line, adding a line end before them if it is missing."""
    before = text[:place]
    gap = "" if before in ("", BOM) or before.endswith("\n") else end
    return before + gap + lines + text[place:]


def _line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _next_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _one_line(value: str, name: str) -> str:
    value = value.strip()
    if "\n" in value or "\r" in value:
        raise InvalidArgument(name=name, problem="it must be one line")
    return value

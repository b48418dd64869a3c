"""An org file as the parts of pages: the file's own, and one for each heading that has an id.

The text of a page is read by what reads markdown, so headings become `#` headings, code becomes fenced code, and
comments go; everything else is org as it was written. A heading with a date is an entry of the timeline, one that is
to be done is an open thread. A heading with an id is a page of its own: its text stands there, and a link to it here.
The file is not changed by any of this, and nothing here can be written back into it.
"""

import re
from bisect import bisect_left
from typing import Any, NamedTuple

from quaid.formats import markdown, org, org_reading, org_values
from quaid.formats.org_inline import verbatim
from quaid.formats.org_values import Heading, Org
from quaid.model.dates import is_date

KEYWORDS = ("DATE", "AUTHOR", "DESCRIPTION", "CATEGORY", "SUBTITLE", "SUMMARY", "TYPE")
"""Those of a file that are front matter of its page, beside title and tags."""

MOST_NODES = 1_000
"""Headings of one file that can be pages of their own."""

_DATED = re.compile(
    r"[<\[]?([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9-])[^<\[\]>]*[>\]]|([0-9]{4}-[0-9]{2}-[0-9]{2})(?![\w/-])"
)
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day", re.IGNORECASE)
_ALIAS = re.compile(r'"([^"]*)"|(\S+)')
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TICKS = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_NO_LINKS = ("ROAM_REFS", "ROAM_ALIASES")


class Part(NamedTuple):
    """The parts of one page."""

    title: str
    frontmatter: dict[str, Any]
    truth: str
    timeline: str


class Document(NamedTuple):
    page: Part
    nodes: tuple[Part, ...]
    """Of the headings that have an id, which is `id` in their front matter."""
    problems: tuple[org_values.Problem, ...]


def read(text: str) -> Document:
    """The pages that a file makes; line ends become LF."""
    text = text.replace("\r\n", "\n").removeprefix(org_reading.BOM)
    parsed = org.parse(text)
    writing = _Writing(text, parsed)
    writing.run()
    first, *nodes = [each.part() for each in writing.owners]
    return Document(first, tuple(nodes), parsed.problems)


class _Owner:
    """A page in the making."""

    def __init__(self, title: str, frontmatter: dict[str, Any], level: int, end: int) -> None:
        self.title = title
        self.frontmatter = frontmatter
        self.level = level
        self.end = end
        self.truth: list[str] = []
        self.timeline: list[str] = []
        self.threads: list[str] = []
        self.entry_end = 0
        """Where the heading ends that is the entry in the making."""

    def part(self) -> Part:
        if self.threads:
            self.truth += ["\n\n# Open threads\n\n", *(f"- [ ] {each}\n" for each in self.threads)]
        summary = self.frontmatter.get("summary")
        if isinstance(summary, str) and summary.strip():  # told where pages tell it, so that it is found
            self.truth.insert(0, f"> {summary.strip()}\n\n")
        truth, timeline = markdown.tidy("".join(self.truth)), markdown.tidy("".join(self.timeline))
        return Part(self.title, self.frontmatter, truth, timeline)


class _Writing:
    def __init__(self, text: str, parsed: Org) -> None:
        self.text = text
        self.org = parsed
        self.owners = [_Owner(parsed.title, _front_matter(parsed), 0, len(text))]
        self.above = [self.owners[0]]  # the owner of what is read now, and those around it
        self.patches = _patches(text, parsed)
        self.starts = [start for start, _, _ in self.patches]

    def run(self) -> None:
        headings = self.org.headings
        first = headings[0].start if headings else len(self.text)
        self.owners[0].truth.append(self._plain(min(self.org.body_start, first), first))
        ends = [each.start for each in headings[1:]] + [len(self.text)]
        tags: list[tuple[int, tuple[str, ...]]] = []  # of the headings around, each with where it ends
        for heading, end in zip(headings, ends, strict=False):
            while tags and tags[-1][0] <= heading.start:
                tags.pop()
            tags.append((heading.end, heading.tags))
            self._heading(heading, self._plain(heading.body, end), [tag for _, each in tags for tag in each])

    def _heading(self, heading: Heading, body: str, tags: list[str]) -> None:
        while self.above[-1].end <= heading.start and len(self.above) > 1:
            self.above.pop()
        owner = self.above[-1]
        if heading.properties.get("ID") and len(self.owners) <= MOST_NODES:
            self._node(owner, heading, body, tags)
            return
        if heading.todo and not heading.done:
            owner.threads.append(_thread(heading))
        date = "" if heading.todo and not heading.done else _date(heading.title)
        if date:
            owner.timeline.append(f"\n## {date}{_told(heading.title, date)}\n{body}")
            owner.entry_end = max(owner.entry_end, heading.end)
        elif heading.start < owner.entry_end:
            owner.timeline.append(f"\n{self._words(heading)}\n{body}")
        else:
            depth = min(max(heading.level - owner.level, 1), 6)
            owner.truth.append(f"\n{'#' * depth} {self._words(heading)[heading.level + 1 :]}\n{body}")

    def _node(self, owner: _Owner, heading: Heading, body: str, tags: list[str]) -> None:
        """A heading that is a page: a link stands in its place."""
        title = _without_links(heading.title) or heading.properties["ID"]
        depth = min(max(heading.level - owner.level, 1), 6)
        link = f"[[id:{heading.properties['ID']}][{title.replace('[', '(').replace(']', ')')}]]"
        place = owner.timeline if heading.start < owner.entry_end else owner.truth
        place.append(f"\n{'#' * depth} {title}\n\n{link}\n" if place is owner.truth else f"\n{link}\n")
        front = _of_properties(heading.properties)
        named = list(dict.fromkeys([*self.org.filetags, *tags]))
        front = {"title": title, **front, **({"tags": named} if named else {})}
        node = _Owner(title, front, heading.level, heading.end)
        if heading.todo:
            node.frontmatter.setdefault("todo", heading.todo)
            if not heading.done:
                node.threads.append(_thread(heading))
        node.frontmatter.update({key.lower(): stamp for key, stamp in heading.planning.items()})
        node.truth.append(body)
        date = _date(heading.title)
        if date and not (heading.todo and not heading.done):
            node.timeline.append(f"## {date}{_told(heading.title, date)}\n")
        self.owners.append(node)
        self.above.append(node)

    def _words(self, heading: Heading) -> str:
        end = self.text.find("\n", heading.start)
        return self.text[heading.start : len(self.text) if end < 0 else end].rstrip()

    def _plain(self, start: int, end: int) -> str:
        """A stretch of the text with its patches."""
        parts: list[str] = []
        for place in range(bisect_left(self.starts, start), len(self.starts)):
            at, stop, words = self.patches[place]
            if at >= end:
                break
            parts += [self.text[start:at], words]
            start = stop
        return "".join([*parts, self.text[start:end]])


def _patches(text: str, parsed: Org) -> list[tuple[int, int, str]]:
    """What is written otherwise: code as fenced code, comments not at all, verbatim brackets in backticks."""
    found: list[tuple[int, int, str]] = []
    for block in parsed.blocks:
        if block.kind not in org_reading.VERBATIM:
            continue
        first = text.find("\n", block.start) + 1
        last = text.rfind("\n", 0, block.end) + 1
        if block.kind == "comment":
            found.append((block.start, block.end, ""))
            continue
        ticks = max((len(run) for run in _TICKS.findall(text[first:last])), default=2)
        fence = "`" * max(3, ticks + 1)
        language = block.argument.split()[0] if block.kind != "example" and block.argument else ""
        language = language if language.replace("-", "").replace("+", "").isalnum() else ""
        found.append((block.start, first, f"{fence}{language}\n"))
        found.append((last, block.end, fence))
    blocks = [(block.start, block.end) for block in parsed.blocks if block.kind in org_reading.VERBATIM]
    found += [(start, end, "") for start, end in parsed.comments]
    if "[[" in text:
        for start, end in verbatim(text):
            if "[[" in text[start:end] and "`" not in text[start:end] and not _within(blocks, start):
                found.append((start, end, f"`{text[start + 1 : end - 1]}`"))
    return sorted(found)


def _within(spans: list[tuple[int, int]], at: int) -> bool:
    place = bisect_left(spans, (at + 1, 0))
    return place > 0 and spans[place - 1][1] > at


def _front_matter(parsed: Org) -> dict[str, Any]:
    """What the head of a file says: title, properties, tags, and the keywords that tell of the file itself."""
    front: dict[str, Any] = {"title": parsed.title} if parsed.title else {}
    front.update(_of_properties(parsed.properties))
    for keyword in parsed.keywords:
        if keyword.name in KEYWORDS and keyword.value:
            front.setdefault(keyword.name.lower(), keyword.value)
    if parsed.filetags:
        front["tags"] = list(parsed.filetags)
    return front


def _of_properties(properties: dict[str, str]) -> dict[str, Any]:
    """Properties as front matter, their other names as aliases, their links as links of that relationship."""
    front: dict[str, Any] = {
        name.lower(): value for name, value in properties.items() if name != "ROAM_ALIASES"
    }
    named = [one or other for one, other in _ALIAS.findall(properties.get("ROAM_ALIASES", ""))]
    if named:
        front["aliases"] = named
    links = [
        {"to": f"id:{link.target}", "relationship": name.lower()}
        for name, value in properties.items()
        if "[[id:" in value and name not in _NO_LINKS
        for link in org.parse(value).links
        if link.kind == "id"
    ]
    if links:
        front["links"] = links
    return front


def _date(title: str) -> str:
    """The day that a heading is about: one that begins with it, or that has a timestamp."""
    for found in _DATED.finditer(title):
        date = found[1] or found[2]
        if is_date(date) and (found.start() == 0 or found[1]):
            return str(date)
    return ""


def _told(title: str, date: str) -> str:
    """A dated heading without its date."""
    for found in _DATED.finditer(title):
        if date in (found[1], found[2]):
            title = f"{title[: found.start()].strip()} {title[found.end() :].strip()}".strip()
            break
    return "" if not title or _WEEKDAY.fullmatch(title) else f" — {title.lstrip('-—–: ')}"


def _thread(heading: Heading) -> str:
    day = _DAY.search(heading.planning.get("DEADLINE", ""))
    return f"{heading.title or heading.todo}{f' (deadline {day[0]})' if day else ''}"


def _without_links(title: str) -> str:
    """A heading's words, a link by its description."""
    for link in reversed(org.parse(title).links):
        title = title[: link.start] + (link.description or link.target) + title[link.end :]
    return title.strip()

"""The lines of an org file that mean something: headings, keywords, blocks, drawers, comments.

One pattern finds them all, a walk over them does the rest, and what a line cannot tell by itself (where its block
ends) is found by one walk back. Costs no more than the length of the text, whatever is in it.
"""

import re
from itertools import islice
from typing import Any

from quaid.formats.org_values import Block, Heading, Keyword, Problem

VERBATIM = ("src", "example", "comment", "export")
"""Blocks in which nothing is markup."""

BOM = "\ufeff"

# Begins with \n instead of ^, and searches a text with one put in front: several times as fast.
_MARK = re.compile(r"\n(?:(\*+)|[ \t]*([#:]))")
_BLOCK = re.compile(r"#\+(begin|end)(?:_(\S+)|:)", re.IGNORECASE)
_KEYWORD = re.compile(r"#\+(\S+):[ \t]*([^\n]*)")
_HEAD = re.compile(
    r"(?:[ \t]*(?:#(?: [^\n]*|\r)?|#\+(?!(?:begin|end)[_:]|(?:attr_\w+|caption|header|name|plot|results)[\[:])"
    r"\S+:[^\n]*|\r)?(?:\n|\Z(?<!\n)))*+",  # never given back: a million lines need no memory
    re.IGNORECASE,
)
_DRAWER = re.compile(r":([-\w]+):[ \t\r]*(?=\n|\Z)")
_PROPERTY = re.compile(r"[ \t]*:(\S+):(?: ([^\n]*)|[ \t\r]*)(?:\n|\Z)")
_TAGS = re.compile(r":[\w@#%:]+:")
_PLANNING = re.compile(r"[ \t]*(?:CLOSED|DEADLINE|SCHEDULED):")
_PLANNED = re.compile(r"(CLOSED|DEADLINE|SCHEDULED): *([<\[][^<\[\]>\n]*[>\]])")
_WORD_LISTS = re.compile(r"^[ \t]*#\+(?:seq_|typ_)?todo:([^\n]*)", re.MULTILINE | re.IGNORECASE)


MOST_MARKS = 50_000
"""Lines of one file that mean something: what comes below them is plain text, and told as a problem."""

_AT_THE_TOP = "at the very top of the file"


class Reading:
    """A walk over the lines that mean something, from top to bottom."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.keywords: list[Keyword] = []
        self.headings: list[list[Any]] = []  # the fields of each Heading
        self.blocks: list[Block] = []
        self.problems: list[Problem] = []
        self.properties: dict[str, str] = {}
        self.drawer: tuple[int, int] | None = None
        self.comments: list[tuple[int, int]] = []
        self.hidden: list[tuple[int, int]] = []  # where brackets are no links
        self.top = 1 if text.startswith(BOM) else 0
        self.drawer_place = self.top  # where a property drawer may stand
        self.passed = 0  # what lies before this is done with
        self.line, self.counted = 1, 0
        self.marks: list[
            tuple[int, str, str, int]
        ] = []  # the start of each line, stars or sign, and where it stands
        self._ends: dict[int, int] | None = None
        self.own_ends: set[int] = set()  # the :END: lines of drawers that were seen
        self.ids: dict[str, int] = {}
        self.open, self.done = _words(text)

    def run(self) -> None:
        text = self.text
        padded = "\n" + text if not self.top else " \n" + text[1:]
        # In the padded text the line end before a line has the offset of the line itself.
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
            self._say(self.text.count("\n", 0, beyond[0]) + 1, "too-many-marks", message)

    def _end_of(self, start: int) -> int | None:
        """Where the block or drawer that begins here ends, if it does."""
        if self._ends is None:
            self._ends = self._paired()
        return self._ends.get(start)

    def _paired(self) -> dict[int, int]:
        """Where each block and drawer ends: at the next line that ends its kind, if no heading comes before."""
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
                if len(edge[1]) == 5:  # begin
                    if kind in next_end:
                        ends[start] = next_end[kind]
                elif not text[edge.end() : self._line_end(at)].strip():
                    next_end[kind] = start
        return ends

    # Lines

    def _line_of(self, start: int) -> int:
        self.line += self.text.count("\n", self.counted, start)
        self.counted = start
        return self.line

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end

    def _next_line(self, start: int) -> int:
        return min(self._line_end(start) + 1, len(self.text))

    def _say(self, line: int, code: str, message: str) -> None:
        self.problems.append(Problem(line, code, message))

    def _stars(self, start: int, level: int) -> None:
        text = self.text
        end = self._line_end(start)
        if text[start + level : start + level + 1] != " ":
            rest = text[start + level : end]
            if rest[:1] == "\t" or (level > 1 and rest.strip() and "*" not in rest):
                message = "stars without a space after them make no heading"
                self._say(self._line_of(start), "no-heading", message)
            return
        body = min(end + 1, len(text))
        planning: dict[str, str] = {}
        if text[body : body + 9].lstrip(" \t")[:1] in ("C", "D", "S") and _PLANNING.match(text, body):
            stop = self._line_end(body)
            planning = dict(_PLANNED.findall(text[body:stop]))
            body = min(stop + 1, len(text))
        self.drawer_place = body
        fields = _heading_words(text[start + level + 1 : end].strip(" \t\r"), self.open, self.done)
        self.headings.append([level, *fields, {}, planning, self._line_of(start), start, body])

    def _hash(self, start: int, at: int) -> None:
        """A line that begins with `#`: a comment, a keyword, or the edge of a block."""
        text = self.text
        following = text[at + 1 : at + 2]
        if following != "+":
            if not following.strip():
                end = self._line_end(at)
                self.hidden.append((start, end))
                self.comments.append((start, end))
                if start == self.drawer_place and not self.headings:
                    self.drawer_place = end + 1  # the drawer of a file may stand below comments
            return
        edge = _BLOCK.match(text, at)
        if edge is not None:
            if len(edge[1]) == 5:
                self._block(start, (edge[2] or "dynamic").lower(), edge.end())
            return
        keyword = _KEYWORD.match(text, at)
        if keyword is not None:
            self.keywords.append(
                Keyword(keyword[1].upper(), keyword[2].rstrip(), self._line_of(start), start)
            )

    def _block(self, start: int, kind: str, after_name: int) -> None:
        line, end = self._line_of(start), self._line_end(after_name)
        closing = self._end_of(start)
        if closing is None:
            message = (
                f"the {kind} block is not closed before the next heading, so it is plain text;"
                " a line in it that begins with a star needs a comma before the star"
            )
            self._say(line, "unclosed-block", message)
            return
        argument = self.text[after_name:end].strip()
        self.blocks.append(Block(kind, argument, line, start, self._line_end(closing)))
        if kind in VERBATIM:
            self.hidden.append((end, closing))
            self.passed = closing + 1

    def _colon(self, start: int, at: int) -> None:
        """A line that begins with `:`: text of fixed width, or the edge of a drawer."""
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
                self._say(self._line_of(start), "stray-end", ":END: closes no drawer")
        elif name and (closing := self._end_of(start)) is not None:
            self.own_ends.add(closing)
        elif drawer and drawer[1] == name:
            message = f":{name}: is not closed by :END: before the next heading, so it is plain text"
            self._say(self._line_of(start), "unclosed-drawer", message)

    def _property_drawer(self, start: int) -> None:
        """Names and values down to :END:. One line that is neither, and Emacs sees no properties at all."""
        line = number = self._line_of(start)
        if start != self.drawer_place:
            self._no_drawer(
                start, line, f"must stand {'right below its heading' if self.headings else _AT_THE_TOP}"
            )
            return
        found: dict[str, str] = {}
        position = self._next_line(start)
        problems: list[Problem] = []
        while (match := _PROPERTY.match(self.text, position)) is not None:
            number += 1
            position = match.end()
            name, value = match[1].upper(), (match[2] or "").strip()
            if name == "END" and not value:
                self.problems += problems
                self._keep_properties(found, start, position, line)
                return
            if name[-1] == "+" and len(name) > 1:
                name = name[:-1]
                found[name] = f"{found[name]} {value}" if name in found else value
            elif name not in found:
                found[name] = value
            else:
                code = "second-id" if name == "ID" else "duplicate-property"
                problems.append(Problem(number, code, f":{name}: stands here twice; the first one counts"))
        self._no_drawer(start, number + 1, "")

    def _no_drawer(self, start: int, line: int, misplaced: str) -> None:
        """Say why a property drawer says nothing."""
        closing = self._end_of(start)
        if closing is None:
            message = "the property drawer is not closed by :END:, so it says nothing"
            self._say(self.line, "unclosed-drawer", message)
            return
        self.own_ends.add(closing)
        if misplaced:
            self._say(line, "misplaced-drawer", f"a property drawer {misplaced}, so this one says nothing")
        else:
            self._say(line, "bad-property", "no line like ':NAME: value', so the whole drawer says nothing")

    def _keep_properties(self, found: dict[str, str], start: int, after: int, line: int) -> None:
        self.passed, self.drawer_place = after, -1
        named = found.get("ID")
        if named and self.ids.setdefault(named, line) != line:
            self._say(line, "duplicate-id", f"the id {named} stands in line {self.ids[named]} too")
        if self.headings:
            self.headings[-1][6] = found
            self.headings[-1][10] = after
        else:
            self.properties, self.drawer = found, (start, after)

    # The whole

    def body_start(self) -> int:
        found = _HEAD.match(self.text, self.drawer[1] if self.drawer else self.top)
        return found.end() if found else self.top

    def finished_headings(self) -> tuple[Heading, ...]:
        """The headings, each with the end of its subtree: where the next one begins that is not below it."""
        ends: list[int] = []
        above: list[tuple[int, int]] = []  # level and start of the headings that follow, the nearest last
        for fields in reversed(self.headings):
            while above and above[-1][0] > fields[0]:
                above.pop()
            ends.append(above[-1][1] if above else len(self.text))
            above.append((fields[0], fields[9]))
        return tuple(
            [Heading._make((*fields, end)) for fields, end in zip(self.headings, reversed(ends), strict=True)]
        )


def _heading_words(
    words: str, open_words: set[str], done_words: set[str]
) -> tuple[str, str, bool, str, tuple[str, ...]]:
    """Title, keyword, whether that says done, priority and tags."""
    todo = priority = ""
    tags: tuple[str, ...] = ()
    first, _, rest = words.partition(" ")
    if rest and (first in open_words or first in done_words):
        todo, words = first, rest.lstrip(" \t")
    if words[:2] == "[#" and words[3:4] == "]":
        priority, words = words[2], words[4:].lstrip(" \t")
    if words == "COMMENT" or words[:8] == "COMMENT ":
        words = words[8:].lstrip(" \t")
    if words[-1:] == ":":
        before = max(words.rfind(" "), words.rfind("\t"))
        if (before >= 0 or not todo + priority) and _TAGS.fullmatch(words, before + 1):
            tags = tuple(each for each in words[before + 1 :].split(":") if each)
            words = words[: max(before, 0)].rstrip(" \t")
    return words, todo, todo in done_words, priority, tags


def _words(text: str) -> tuple[set[str], set[str]]:
    """The words for things that are to do and that are done: those that the file names, else those of Emacs."""
    lists = (
        [found.split() for found in _WORD_LISTS.findall(text)] if "TODO:" in text or "todo:" in text else []
    )
    if not lists:
        return {"TODO"}, {"DONE"}
    open_words: set[str] = set()
    done_words: set[str] = set()
    for each in lists:
        words = [word.partition("(")[0] for word in each]
        cut = words.index("|") if "|" in words else len(words) - 1
        open_words.update(words[:cut])
        done_words.update(words[cut:])
    return open_words, done_words - {"|"}

"""Tags: their spelling, and the tags in front matter and in text."""

import re
from itertools import islice
from typing import Any
from unicodedata import normalize

from quaid.errors import InvalidArgument
from quaid.model.plain_text import code_spans

LONGEST = 100
MOST_IN_TEXT = 500
"""At most this many tags are taken from the text of one page."""

MOST_LOOKED_AT = 100_000
"""At most this many "#" matches are examined in one text; the rest of the text is skipped."""

_MARK = re.compile(r"\A[#\s]+")
# The pattern starts with a literal that the regex engine can search for. A tag may contain anything except
# whitespace, punctuation and quotation marks; "-", "_" and "/" are allowed.
_IN_TEXT = re.compile(r"#([^\s\x00-,.:-@\[-^`{-\xbf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+)")
_BEFORE = (" ", "\t", "\n", "(")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_COLOUR = re.compile(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z", re.IGNORECASE)
_INK = re.compile(r"\S")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check(tag: str) -> str:
    """Return the tag in its stored form, or raise InvalidArgument."""
    spelled = _spell(tag)
    if not spelled:
        raise InvalidArgument(name="tag", problem="it is empty")
    if len(spelled) > LONGEST:
        raise InvalidArgument(name="tag", problem=f"it is longer than {LONGEST} characters")
    if "," in spelled:
        raise InvalidArgument(name="tag", problem=f"{spelled!r} holds a comma; give one tag at a time")
    if _CONTROL.search(spelled):
        raise InvalidArgument(name="tag", problem=f"{spelled!r} holds a control character")
    return spelled


def of_frontmatter(front: dict[str, Any]) -> tuple[str, ...]:
    """Return the tags in front matter, under the key `tags` or `tag`."""
    return parse(front.get("tags", front.get("tag")))


def parse(value: Any) -> tuple[str, ...]:
    """Return the tags in a front-matter value: a list, or text separated by commas or else by whitespace.

    Invalid tags are skipped; they remain in the front matter.
    """
    tags: dict[str, None] = {}
    for item in value if isinstance(value, (list, tuple)) else _pieces(value):
        for piece in str(item).split(",") if isinstance(item, (str, int, float)) else ():
            spelled = _spell(piece)
            if spelled and len(spelled) <= LONGEST and not _CONTROL.search(spelled):
                tags[spelled] = None
    return tuple(tags)


def in_text(text: str) -> tuple[str, ...]:
    """Return the tags in running text, such as `#idea`. The caller removes fenced code first.

    Headings, inline code, URLs, anchors, numbers and colour codes are not tags.
    """
    tags: dict[str, None] = {}
    code: list[tuple[int, int]] | None = None
    # Number of code spans that start before this tag, and the largest end of these code spans.
    passed = hidden = 0
    line = _Line(text)
    for match in islice(_IN_TEXT.finditer(text), MOST_LOOKED_AT):
        start = match.start()
        if start and text[start - 1] not in _BEFORE:
            continue
        spelled = _spell(match[1].strip("/-"))
        if spelled in tags or not _is_tag(spelled) or line.says_something_else(start):
            continue
        if code is None:
            code = code_spans(text) if "`" in text else []
        while passed < len(code) and code[passed][0] <= start:
            hidden = max(hidden, code[passed][1])
            passed += 1
        if start >= hidden:
            tags[spelled] = None
            if len(tags) == MOST_IN_TEXT:
                break
    return tuple(tags)


def _is_tag(spelled: str) -> bool:
    if len(spelled) > LONGEST or not any(
        character.isalpha() or character > "\u20ff" for character in spelled
    ):
        return False
    if _COLOUR.match(spelled):  # without a digit, it may be a word such as "face"
        return not (any(map(str.isdigit, spelled)) or len(set(spelled)) == 1 or spelled in ("abc", "abcdef"))
    return True


class _Line:
    """The line that contains a "#".

    The "#" characters are tested in text order, so that each line is scanned once.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin = self.passed = 0
        self.ink = -1  # offset of the first non-blank character of the line

    def says_something_else(self, start: int) -> bool:
        """Return True if the "#" is in a heading, starts a line of indented code, or is in a link target."""
        text = self.text
        end_before = text.rfind("\n", self.passed, start)
        if end_before >= 0:
            self.begin = end_before + 1
        self.passed = start
        begin = self.begin
        if _HEADING.match(text, begin, start + 8) or text.endswith(("](", "]: "), begin, start):
            return True
        if text.endswith("(", begin, start):
            return text[max(begin, start - 2) : start - 1] not in ("", " ", "\t")
        if self.ink < begin:
            ink = _INK.search(text, begin)
            self.ink = ink.start() if ink else len(text)
        return self.ink >= start and (start - begin > 3 or "\t" in text[begin:start])


def _pieces(value: Any) -> list[Any]:
    if isinstance(value, str):
        return value.split(",") if "," in value else value.split()
    return [value]


def _spell(tag: str) -> str:
    spelled = "-".join(_MARK.sub("", tag).lower().split())
    if not spelled.isascii():
        spelled = normalize("NFC", spelled)
    return spelled

"""Tags: their spelling, and the tags in front matter and in text."""

import re
from itertools import islice
from typing import Any
from unicodedata import normalize

from quaid.errors import InvalidArgument
from quaid.model.markdown_text import code_spans

LONGEST = 100
MOST_IN_TEXT = 500
"""Tags that one page's text can give it."""

MOST_LOOKED_AT = 100_000
"""Signs in one text that are looked at: behind them none begins a tag."""

_MARK = re.compile(r"\A[#\s]+")
# Begins with a sign that can be searched for as it is. What may stand in a tag: anything but blanks, marks of
# punctuation and quotation; '-', '_' and '/' may.
_IN_TEXT = re.compile(r"#([^\s\x00-,.:-@\[-^`{-\xbf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+)")
_BEFORE = (" ", "\t", "\n", "(")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_COLOUR = re.compile(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z", re.IGNORECASE)
_INK = re.compile(r"\S")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check(tag: str) -> str:
    """The tag as it is stored, or InvalidArgument."""
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
    """The tags that front matter gives a page, under either of the keys for them."""
    return parse(front.get("tags", front.get("tag")))


def parse(value: Any) -> tuple[str, ...]:
    """The tags of a front matter value: a list, or text separated by commas, else by blanks.

    What cannot be a tag is left out here and stays in the front matter.
    """
    found: dict[str, None] = {}
    for item in value if isinstance(value, (list, tuple)) else _pieces(value):
        for piece in str(item).split(",") if isinstance(item, (str, int, float)) else ():
            spelled = _spell(piece)
            if spelled and len(spelled) <= LONGEST and not _CONTROL.search(spelled):
                found[spelled] = None
    return tuple(found)


def in_text(text: str) -> tuple[str, ...]:
    """The tags that stand in running text, as in `#idea`; the text comes without fenced code.

    Headings, inline code, addresses, anchors, numbers and colours hold none.
    """
    found: dict[str, None] = {}
    code: list[tuple[int, int]] | None = None
    passed = hidden = 0  # stretches of code that begin before this place, and where the last of them ends
    line = _Line(text)
    for match in islice(_IN_TEXT.finditer(text), MOST_LOOKED_AT):
        start = match.start()
        if start and text[start - 1] not in _BEFORE:
            continue
        spelled = _spell(match[1].strip("/-"))
        if spelled in found or not _is_tag(spelled) or line.says_something_else(start):
            continue
        if code is None:
            code = code_spans(text) if "`" in text else []
        while passed < len(code) and code[passed][0] <= start:
            hidden = max(hidden, code[passed][1])
            passed += 1
        if start >= hidden:
            found[spelled] = None
            if len(found) == MOST_IN_TEXT:
                break
    return tuple(found)


def _is_tag(spelled: str) -> bool:
    if len(spelled) > LONGEST or not any(each.isalpha() or each > "\u20ff" for each in spelled):
        return False
    if _COLOUR.match(spelled):  # a word like "face" has no digit, and no letter throughout
        return not (any(map(str.isdigit, spelled)) or len(set(spelled)) == 1 or spelled in ("abc", "abcdef"))
    return True


class _Line:
    """The line around a sign; asked about in order, so that a line as long as its text is read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin = self.passed = 0
        self.ink = -1  # where the first word of the line stands

    def says_something_else(self, start: int) -> bool:
        """Whether the sign stands in a heading, begins a line of indented code, or is the target of a link."""
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

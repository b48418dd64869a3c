"""Tags: how they are spelled, and which ones front matter and text name. Does not know where they are stored."""

from typing import Any

from quaid.core.patterns import pattern
from quaid.errors import InvalidArgument

LONGEST = 100
MOST_IN_TEXT = 500
"""Tags that one page's text can give it."""

_MARK = pattern(r"\A[#\s]+")
# Begins with a sign that can be searched for as it is. What may stand in a tag: anything but blanks, marks of
# punctuation and quotation; '-', '_' and '/' may.
_IN_TEXT = pattern(r"#([^\s\x00-,.:-@\[-^`{-\xbf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+)")
_BEFORE = (" ", "\t", "\n", "(")
_HEADING = pattern(r" {0,3}#{1,6}[ \t]")
_COLOUR = pattern(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z", 2)
_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f]")


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
    return from_frontmatter(front.get("tags", front.get("tag")))


def from_frontmatter(value: Any) -> tuple[str, ...]:
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
    for match in _IN_TEXT.finditer(text):
        start = match.start()
        if start and text[start - 1] not in _BEFORE:
            continue
        spelled = _spell(match[1].strip("/-"))
        if not _is_tag(spelled) or _is_something_else(text, start):
            continue
        if code is None:
            from quaid.core.links import code_spans

            code = code_spans(text) if "`" in text else []
        if not any(first <= start < last for first, last in code):
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


def _is_something_else(text: str, start: int) -> bool:
    """Whether the sign stands in a heading, begins a line of indented code, or is the target of a link."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if _HEADING.match(line + text[start : start + 8]) or line.endswith(("](", "]: ")):
        return True
    if line.endswith("("):
        return line[-2:-1] not in ("", " ", "\t")
    return not line.strip() and (len(line) > 3 or "\t" in line)


def _pieces(value: Any) -> list[Any]:
    if isinstance(value, str):
        return value.split(",") if "," in value else value.split()
    return [value]


def _spell(tag: str) -> str:
    spelled = "-".join(_MARK.sub("", tag).lower().split())
    if not spelled.isascii():
        from unicodedata import normalize

        spelled = normalize("NFC", spelled)
    return spelled

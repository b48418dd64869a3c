"""Tags: how they are spelled. Does not know where they are stored."""

from typing import Any

from quaid.core.patterns import pattern
from quaid.errors import InvalidArgument

LONGEST = 100

_MARK = pattern(r"\A[#\s]+")
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

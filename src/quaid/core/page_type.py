"""The types that a page can have, and how one is inferred from folders."""

import re
from typing import Any

from quaid.core.dates import is_date
from quaid.errors import InvalidType

TYPES: dict[str, str] = {
    "person": "people",
    "company": "companies",
    "deal": "deals",
    "yc": "yc",
    "civic": "civic",
    "project": "projects",
    "area": "areas",
    "resource": "resources",
    "archive": "archives",
    "concept": "concepts",
    "original": "originals",
    "source": "sources",
    "media": "media",
    "decision": "decisions",
    "commitment": "commitments",
    "action_item": "actions",
    "journal": "journal",
}
"""Each page type with the wing that it falls into by default."""

DATE_FIELDS: dict[str, tuple[str, ...]] = {
    "deal": ("expected_close",),
    "decision": ("date", "made_at", "revisit_at"),
    "commitment": ("made_at", "revisit_at", "due"),
    "action_item": ("due",),
    "journal": ("date",),
}
"""Front-matter keys whose value is a day, by page type."""

_FOLDERS: dict[str, str] = {
    **{name: name for name in TYPES},
    **{wing: name for name, wing in TYPES.items()},
    "meeting": "source",
    "meetings": "source",
    "program": "source",
    "programs": "source",
    "action": "action_item",
    "action_items": "action_item",
    "journals": "journal",
    "daily": "journal",
    "ideas": "project",
}
_NUMBER = re.compile(r"[0-9]{1,3}[-_]+(?=[a-z])")
_JOINTS = re.compile(r"[\s_-]+")


def check_type(value: str) -> str:
    """The type as it is stored ("Action Item" is action_item), or InvalidType with the nearest name."""
    name = known(value)
    if name:
        return name
    from difflib import get_close_matches

    near = get_close_matches(str(value).lower(), TYPES, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InvalidType(type=value, hint=hint, known=", ".join(TYPES))


def known(value: Any) -> str | None:
    """The type that a front matter value names, if it names one."""
    if not isinstance(value, str):
        return None
    name = _JOINTS.sub("_", value.strip().lower())
    return name if name in TYPES else None


def from_folders(slug: str) -> str:
    """The type that the outermost telling folder of a slug stands for, else concept."""
    for folder in slug.split("/")[:-1]:
        name = _FOLDERS.get(without_number(folder).replace("-", "_"))
        if name:
            return name
    return "concept"


def without_number(folder: str) -> str:
    """A folder without the number that only keeps it in order: 1-projects is projects, 2024-03 stays."""
    return _NUMBER.sub("", folder, count=1) if folder[:1].isdigit() else folder


def wrong_dates(slug: str, kind: str, frontmatter: dict[str, Any]) -> dict[str, Any]:
    """Keys that ought to hold a day and do not, with what they hold.

    A page that says it is a journal needs a day: in `date`, or at the end of its slug.
    """
    wrong = {
        key: value
        for key in DATE_FIELDS.get(kind, ())
        if (value := frontmatter.get(key)) not in (None, "") and not _begins_with_day(value)
    }
    is_journal = kind == "journal" and known(frontmatter.get("type")) == kind
    if is_journal and not frontmatter.get("date") and not is_date(slug[-10:]):
        wrong["date"] = frontmatter.get("date")
    return wrong


def _begins_with_day(value: Any) -> bool:
    """Whether a value is a day, or a day with a time."""
    return isinstance(value, str) and is_date(value[:10]) and value[10:11] in ("", "T", " ")

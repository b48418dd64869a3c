"""A setting that names folders: paths with ':' between them, each whole or from the home folder.

Knows how they are written. Does not know whether they are there.
"""

import re

from quaid.errors import InvalidArgument

_WHOLE = re.compile(r"/.*|~(?:/.*)?|[A-Za-z]:[\\/].*")
_BETWEEN = re.compile(r"[;\n]|(?:(?<=[^;:\n]{2})|(?<=[~/])):")  # not the colon of C:\


def split(value: str) -> list[str]:
    """The folders of a setting."""
    return [each.strip() for each in _BETWEEN.split(value) if each.strip()] if value else []


def check_setting(name: str, value: str) -> None:
    """Refuse a path that would mean another folder in every place where it is read."""
    for folder in split(value):
        if not _WHOLE.fullmatch(folder):
            raise InvalidArgument(
                name=name,
                problem=f"{folder!r} is not a whole path; begin it with '/' or '~', and put ':' between folders",
            )

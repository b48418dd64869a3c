"""Versions of a program: which of two is newer, and which one a file's name tells.

Knows as much of Python's way of writing versions as releases of one package need.
"""

import re

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev|post)[._-]?(\d*))?$")
_ORDER = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}


def key(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """What to compare versions by; None for what is none."""
    found = _VERSION.match(version.strip().lower())
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _ORDER[found[2] or ""], int(found[3] or 0)


def is_early(version: str) -> bool:
    """Whether it came before the release of its number: 1.0rc1, 1.0.dev3."""
    found = key(version)
    return found is not None and found[1] < _ORDER[""]


def of_file(package: str, name: str) -> str | None:
    """The version in the name of a wheel or a source archive of a package."""
    plain = re.sub(r"[-_.]+", "[-_.]+", re.escape(package).replace(r"\-", "-"))
    found = re.match(rf"{plain}-(\d[^-]*?)(?:-[^/]*\.whl|\.tar\.gz|\.zip)$", name, re.IGNORECASE)
    return found[1] if found and key(found[1]) else None


def newest(versions: list[str], current: str) -> str | None:
    """The newest of some; early ones count only for whoever has an early one."""
    able = [each for each in versions if key(each) and (is_early(current) or not is_early(each))]
    return max(able, key=lambda each: key(each) or ((), 0, 0)) if able else None


def is_newer(one: str, other: str) -> bool:
    """Whether the first is newer than the second."""
    first, second = key(one), key(other)
    return first is not None and second is not None and first > second

"""Patterns of gitignore whose cost grows with the length of a path, and not with a power of it.

pathspec makes a regular expression of each pattern. One with several stars tries every way to share a name out among
them: five stars and a name of 200 letters take hours. But it is enough to look for what stands between two stars at
the first place where it fits, for the stars behind it then have the most left to match; an atomic group says so. The
same holds for the folders between two double stars.
"""

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

STAR, ONE, ANYWHERE, DEEP = "[^/]*", "[^/]", "^(?:.+/)?", "(?:/.+)?"
"""What pathspec writes for `*` and `?`, and for `**` at the beginning and in the midst."""


class NotAPattern(ValueError):
    """A line that means nothing."""


class _Bounded(GitIgnoreSpecPattern):
    @classmethod
    def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override]
        regex, include = super().pattern_to_regex(pattern)
        return (bounded(regex) if regex else regex), include


def spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """What these lines match; NotAPattern if one of them is none."""
    try:
        return GitIgnoreSpec.from_lines(lines, _Bounded, backend="simple")
    except (ValueError, re.error) as error:
        raise NotAPattern from error


def bounded(regex: str) -> str:
    """An expression that matches the same and looks for each part of it once."""
    *first, last = [_names(each) for each in regex.split(DEEP)]
    if not first:
        return last
    if first[0].startswith(ANYWHERE):
        first[0] = f"^(?>(?:.+?/)??{first[0].removeprefix(ANYWHERE)}(?=/))"
    others = [f"(?>(?:/.+?)??{each}(?=/))" for each in first[1:]]
    return "".join((first[0], *others, DEEP, last))


def _names(regex: str) -> str:
    """The same for the stars within a name; the last one of a name may go back, for it is alone in that."""
    before, *behind = regex.split(STAR)
    told = [before]
    for number, each in enumerate(behind, 1):
        is_between_stars = number < len(behind) and "/" not in each.replace(ONE, "")
        told.append(f"(?>{STAR}?{each})" if is_between_stars else f"{STAR}{each}")
    return "".join(told)

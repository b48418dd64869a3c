"""Compile gitignore patterns to regular expressions that match in time linear in the length of the path.

The expressions that pathspec generates backtrack: with five stars, matching a name of 200 letters takes
hours. With atomic groups, each part matches only at the first place where it fits. That is enough, because
the first place leaves the most text for the stars that follow.

This module should be imported late, because pathspec takes about 40 ms to load.
"""

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

STAR, ONE, ANYWHERE, DEEP = "[^/]*", "[^/]", "^(?:.+/)?", "(?:/.+)?"
"""The expressions pathspec generates for `*` and `?`, and for `**` at the start and in the middle."""


class InvalidPattern(ValueError):
    """A line is not a valid gitignore pattern."""


class _BoundedPattern(GitIgnoreSpecPattern):
    @classmethod
    def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override]
        regex, include = super().pattern_to_regex(pattern)
        return (bound_backtracking(regex) if regex else regex), include


def compile_patterns(lines: Iterable[str]) -> GitIgnoreSpec:
    """Compile gitignore lines, or raise InvalidPattern."""
    try:
        return GitIgnoreSpec.from_lines(lines, _BoundedPattern, backend="simple")
    except (ValueError, re.error) as error:
        raise InvalidPattern from error


def bound_backtracking(regex: str) -> str:
    """Rewrite an expression with atomic groups, to match the same paths without repeated backtracking."""
    *first, last = [_bound_names(part) for part in regex.split(DEEP)]
    if not first:
        return last
    if first[0].startswith(ANYWHERE):
        first[0] = f"^(?>(?:.+?/)??{first[0].removeprefix(ANYWHERE)}(?=/))"
    others = [f"(?>(?:/.+?)??{name}(?=/))" for name in first[1:]]
    return "".join((first[0], *others, DEEP, last))


def _bound_names(regex: str) -> str:
    """Put the stars of a name into atomic groups, except the last star, which may backtrack."""
    before, *behind = regex.split(STAR)
    pieces = [before]
    for number, name in enumerate(behind, 1):
        is_between_stars = number < len(behind) and "/" not in name.replace(ONE, "")
        pieces.append(f"(?>{STAR}?{name})" if is_between_stars else f"{STAR}{name}")
    return "".join(pieces)

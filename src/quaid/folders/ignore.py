"""Ignore rules: decide which files of a collection's folder are skipped.

The rules come from the folder's .quaidignore file and from the kind of the collection.

A .quaidignore file may come from an untrusted folder, so an invalid file leaves the last valid rules in
force.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from quaid.folders.scanner import IgnoreCheck

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILE = ".quaidignore"
TEMPLATES_FOLDER = "_templates/"
"""Name of a folder of page templates, which is skipped at any depth."""

KIND_PATTERNS = {"kb": "/raw/\n/index*.org\n/AGENT_CONTRACT.org\n"}
"""Ignore patterns that always apply, by kind of collection.

The patterns for a knowledge base match the files and folders without nodes (entries of the knowledge base).
"""

MAX_IGNORE_CHARACTERS = 64 * 1024
MAX_PATTERNS = 1_000
MAX_PATTERN_LENGTH = 4_096  # characters; longer than any path

IgnoreEdit = Callable[[str], str]
"""A function that takes the text of an ignore file and returns the new text."""


def patterns_problem(patterns: str) -> str | None:
    """Return why these lines of an ignore file are invalid, or None if they are valid."""
    if len(patterns) > MAX_IGNORE_CHARACTERS:
        return f"it has more than {MAX_IGNORE_CHARACTERS:,} characters"
    lines = patterns.splitlines()
    if len(lines) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS:,} lines"
    if "\0" in patterns or "\ufffd" in patterns:
        return "it is not text in UTF-8"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_PATTERN_LENGTH:
            return f"line {number} is longer than any path: {line[:40]}"
        try:
            compile_patterns([line])
        except InvalidPattern:
            return f"line {number} is no pattern: {line[:40]}"
    return None


def pattern_problem(pattern: str) -> str | None:
    """Return why this pattern cannot be added to an ignore file, or None if it can."""
    if not pattern or len(pattern.splitlines()) != 1:
        return "is not one line of text"
    if pattern.startswith("#"):
        return "is a comment; write \\# for a name that begins so"
    if patterns_problem(pattern):
        return "is no pattern"
    return None if compile_patterns([pattern]).patterns[0].include is not None else "fits no file"


def pattern_lines(patterns: str) -> list[str]:
    """Return the patterns of an ignore file, without comments and blank lines."""
    stripped = (line.strip() for line in patterns.removeprefix("\ufeff").splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def add_pattern(text: str, pattern: str) -> str:
    """Append a pattern to the text of an ignore file, unless it is already there."""
    if pattern in pattern_lines(text):
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    joint = "" if not text or text.endswith("\n") else end
    return f"{text}{joint}{pattern}{end}"


def remove_pattern(text: str, pattern: str | None) -> str:
    """Remove a pattern, or all patterns for None, from an ignore file's text.

    Keep comments and blank lines.
    """
    remaining = [
        line
        for line in text.splitlines(keepends=True)
        if not (patterns := pattern_lines(line)) or (pattern is not None and patterns != [pattern])
    ]
    return "".join(remaining)


def ignore_matcher(patterns: str, kind: str = "") -> IgnoreCheck:
    """Return a function that checks whether a path is ignored.

    A path is ignored by these patterns, by the patterns of the collection's kind, or as a folder of page
    templates.
    """
    patterns = KIND_PATTERNS.get(kind, "") + patterns
    if not any(line.strip() and not line.startswith("#") for line in patterns.splitlines()):
        return _is_templates_folder
    matches = compile_patterns(patterns.splitlines()).match_file
    return lambda path: _is_templates_folder(path) or matches(path)


def is_ignored(ignored: IgnoreCheck, path: str) -> bool:
    """Return True if the file or one of its parent folders is ignored."""
    if ignored(path):
        return True
    steps = path.split("/")[:-1]
    return any(ignored("/".join(steps[: depth + 1]) + "/") for depth in range(len(steps)))


def _is_templates_folder(path: str) -> bool:
    return path.endswith(TEMPLATES_FOLDER) and (
        len(path) == len(TEMPLATES_FOLDER) or path[-len(TEMPLATES_FOLDER) - 1] == "/"
    )


def parse_rules(data: bytes | None, last_good: str) -> tuple[str, str | None]:
    """Return the patterns of an ignore file and None, or `last_good` and the problem if the file is invalid.

    `data` is None if there is no ignore file.
    """
    if data is None:
        return "", None
    text = data[: MAX_IGNORE_CHARACTERS + 1].decode("utf-8", "replace").removeprefix("\ufeff")
    problem = patterns_problem(text)
    return (last_good, problem) if problem else (text, None)


STAR, ONE, ANYWHERE, DEEP = "[^/]*", "[^/]", "^(?:.+/)?", "(?:/.+)?"
"""The expressions pathspec generates for `*` and `?`, and for `**` at the start and in the middle."""


class InvalidPattern(ValueError):
    """A line is not a valid gitignore pattern."""


def compile_patterns(lines: Iterable[str]) -> "GitIgnoreSpec":
    """Compile gitignore lines to expressions that match in time linear in the length of the path.

    Raise InvalidPattern if a line is not a pattern.
    """
    from pathspec import GitIgnoreSpec  # imported late, because it takes about 40 ms to load

    try:
        return GitIgnoreSpec.from_lines(lines, _bounded_pattern(), backend="simple")
    except (ValueError, re.error) as error:
        raise InvalidPattern from error


@cache
def _bounded_pattern() -> type["GitIgnoreSpecPattern"]:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    class BoundedPattern(GitIgnoreSpecPattern):
        @classmethod
        def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override]
            regex, include = super().pattern_to_regex(pattern)
            return (bound_backtracking(regex) if regex else regex), include

    return BoundedPattern


def bound_backtracking(regex: str) -> str:
    """Rewrite an expression with atomic groups, to match the same paths without repeated backtracking.

    The expressions that pathspec generates backtrack: with five stars, matching a name of 200 letters takes
    hours. With atomic groups, each part matches only at the first place where it fits. That is enough,
    because the first place leaves the most text for the stars that follow.
    """
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

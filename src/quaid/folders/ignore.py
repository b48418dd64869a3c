"""Ignore rules: which files of a folder are skipped because of .quaidignore, its stored patterns or its kind.

A folder may come from anywhere, and its ignore file with it, so a bad file leaves the last good rules in force.
"""

from collections.abc import Callable
from typing import NamedTuple

from quaid.folders.scanner import IgnoreCheck

IGNORE_FILE = ".quaidignore"
TEMPLATES_FOLDER = "_templates/"
"""A folder of pages that are none yet; left out at any depth."""

KIND_PATTERNS = {"kb": "/raw/\n/index*.org\n/AGENT_CONTRACT.org\n"}
"""What is always left out of a kind of collection: of a knowledge base, what is not a node."""

MAX_IGNORE_CHARACTERS = 64 * 1024
MAX_PATTERNS = 1_000
MAX_PATTERN_LENGTH = 4_096  # signs; paths are not longer


IgnoreEdit = Callable[[str], str]
"""The text of an ignore file to another one."""


class IgnoreRules(NamedTuple):
    """The patterns in force, and why those of the present file are not, if so."""

    patterns: str
    problem: str | None


def patterns_problem(patterns: str) -> str | None:
    """Why these patterns cannot be used, or None."""
    if len(patterns) > MAX_IGNORE_CHARACTERS:
        return f"it has more than {MAX_IGNORE_CHARACTERS:,} characters"
    lines = patterns.splitlines()
    if len(lines) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS:,} lines"
    if "\0" in patterns or "\ufffd" in patterns:
        return "it is not text in UTF-8"
    from quaid.formats.gitignore import InvalidPattern, compile_patterns

    for number, line in enumerate(lines, 1):
        if len(line) > MAX_PATTERN_LENGTH:
            return f"line {number} is longer than any path: {line[:40]}"
        try:
            compile_patterns([line])
        except InvalidPattern:
            return f"line {number} is no pattern: {line[:40]}"
    return None


def pattern_problem(pattern: str) -> str | None:
    """Why this one cannot be added, or None."""
    if not pattern or len(pattern.splitlines()) != 1:
        return "is not one line of text"
    if pattern.startswith("#"):
        return "is a comment; write \\# for a name that begins so"
    if patterns_problem(pattern):
        return "is no pattern"
    from quaid.formats.gitignore import compile_patterns

    return None if compile_patterns([pattern]).patterns[0].include is not None else "fits no file"


def pattern_lines(patterns: str) -> list[str]:
    """The patterns of a file, without comments and blank lines."""
    found = (line.strip() for line in patterns.removeprefix("\ufeff").splitlines())
    return [line for line in found if line and not line.startswith("#")]


def add_pattern(text: str, pattern: str) -> str:
    """An ignore file with one more line, the same file if it has it."""
    if pattern in pattern_lines(text):
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    joint = "" if not text or text.endswith("\n") else end
    return f"{text}{joint}{pattern}{end}"


def remove_pattern(text: str, pattern: str | None) -> str:
    """An ignore file without a pattern, or without any; comments and blank lines stay."""
    kept = [
        line
        for line in text.splitlines(keepends=True)
        if not (found := pattern_lines(line)) or (pattern is not None and found != [pattern])
    ]
    return "".join(kept)


def ignore_matcher(patterns: str, kind: str = "") -> IgnoreCheck:
    """Tells of a path whether it is left out, by these patterns and by the customs of a kind of collection."""
    patterns = KIND_PATTERNS.get(kind, "") + patterns
    if not any(line.strip() and not line.startswith("#") for line in patterns.splitlines()):
        return _is_templates_folder
    from quaid.formats.gitignore import compile_patterns

    matches = compile_patterns(patterns.splitlines()).match_file
    return lambda path: _is_templates_folder(path) or matches(path)


def is_ignored(ignored: IgnoreCheck, path: str) -> bool:
    """Whether a file is left out, itself or with a folder above it."""
    if ignored(path):
        return True
    steps = path.split("/")[:-1]
    return any(ignored("/".join(steps[: depth + 1]) + "/") for depth in range(len(steps)))


def _is_templates_folder(path: str) -> bool:
    return path.endswith(TEMPLATES_FOLDER) and (
        len(path) == len(TEMPLATES_FOLDER) or path[-len(TEMPLATES_FOLDER) - 1] == "/"
    )


def parse_rules(data: bytes | None, last_good: str) -> IgnoreRules:
    """The rules of the file as it is now. A bad one leaves the last good set in force."""
    if data is None:
        return IgnoreRules("", None)
    text = data[: MAX_IGNORE_CHARACTERS + 1].decode("utf-8", "replace").removeprefix("\ufeff")
    problem = patterns_problem(text)
    return IgnoreRules(last_good, problem) if problem else IgnoreRules(text, None)

"""Which files of a folder are left out: what `.quaidignore` and the memory say, in the syntax of gitignore.

Knows the syntax through pathspec. What every walk leaves out (hidden folders, node_modules) is scan.py's
business. A folder may come from anywhere, its ignore file with it: no pattern may take long (ignore_patterns.py).
"""

from collections.abc import Callable
from typing import NamedTuple

from quaid.vaults.scan import Ignored

FILE = ".quaidignore"
TEMPLATES = "_templates/"
"""A folder of pages that are none yet; left out at any depth."""

OF_KIND = {"kb": "/raw/\n/index*.org\n/AGENT_CONTRACT.org\n"}
"""What is always left out of a kind of collection: of a knowledge base, what is not a node."""

LARGEST = 64 * 1024
MOST_PATTERNS = 1_000
LONGEST_PATTERN = 4_096  # signs; paths are not longer


Change = Callable[[str], str]
"""The text of an ignore file to another one."""


class Rules(NamedTuple):
    """The patterns in force, and why those of the present file are not, if so."""

    patterns: str
    problem: str | None


def problem_of(patterns: str) -> str | None:
    """Why these patterns cannot be used, or None."""
    if len(patterns) > LARGEST:
        return f"it has more than {LARGEST:,} characters"
    lines = patterns.splitlines()
    if len(lines) > MOST_PATTERNS:
        return f"it has more than {MOST_PATTERNS:,} lines"
    if "\0" in patterns or "\ufffd" in patterns:
        return "it is not text in UTF-8"
    from quaid.vaults.ignore_patterns import NotAPattern, spec

    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_PATTERN:
            return f"line {number} is longer than any path: {line[:40]}"
        try:
            spec([line])
        except NotAPattern:
            return f"line {number} is no pattern: {line[:40]}"
    return None


def problem_of_pattern(pattern: str) -> str | None:
    """Why this one cannot be added, or None."""
    if not pattern or len(pattern.splitlines()) != 1:
        return "is not one line of text"
    if pattern.startswith("#"):
        return "is a comment; write \\# for a name that begins so"
    if problem_of(pattern):
        return "is no pattern"
    from quaid.vaults.ignore_patterns import spec

    return None if spec([pattern]).patterns[0].include is not None else "fits no file"


def lines(patterns: str) -> list[str]:
    """The patterns of a file, without comments and blank lines."""
    found = (line.strip() for line in patterns.removeprefix("\ufeff").splitlines())
    return [line for line in found if line and not line.startswith("#")]


def with_pattern(text: str, pattern: str) -> str:
    """An ignore file with one more line, the same file if it has it."""
    if pattern in lines(text):
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    joint = "" if not text or text.endswith("\n") else end
    return f"{text}{joint}{pattern}{end}"


def without_pattern(text: str, pattern: str | None) -> str:
    """An ignore file without a pattern, or without any; comments and blank lines stay."""
    kept = [
        line
        for line in text.splitlines(keepends=True)
        if not (found := lines(line)) or (pattern is not None and found != [pattern])
    ]
    return "".join(kept)


def matcher(patterns: str, kind: str = "") -> Ignored:
    """Tells of a path whether it is left out, by these patterns and by the customs of a kind of collection."""
    patterns = OF_KIND.get(kind, "") + patterns
    if not any(line.strip() and not line.startswith("#") for line in patterns.splitlines()):
        return _is_templates
    from quaid.vaults.ignore_patterns import spec

    matches = spec(patterns.splitlines()).match_file
    return lambda path: _is_templates(path) or matches(path)


def hides(ignored: Ignored, path: str) -> bool:
    """Whether a file is left out, itself or with a folder above it."""
    if ignored(path):
        return True
    steps = path.split("/")[:-1]
    return any(ignored("/".join(steps[: depth + 1]) + "/") for depth in range(len(steps)))


def _is_templates(path: str) -> bool:
    return path.endswith(TEMPLATES) and (len(path) == len(TEMPLATES) or path[-len(TEMPLATES) - 1] == "/")


def read(data: bytes | None, last_good: str) -> Rules:
    """The rules of the file as it is now. A bad one leaves the last good set in force."""
    if data is None:
        return Rules("", None)
    text = data[: LARGEST + 1].decode("utf-8", "replace").removeprefix("\ufeff")
    problem = problem_of(text)
    return Rules(last_good, problem) if problem else Rules(text, None)

"""Rewritten ignore patterns match the same paths as those of pathspec, in linear time."""

import random
import re

import pytest
from pathspec import GitIgnoreSpec

from quaid.folders import scanner
from quaid.folders.scanner import InvalidPattern, compile_patterns

# Without [!a]: pathspec lets it match a slash, git does not, and here it depends.
PARTS = ("a", "b", "*", "*", "?", "/", "**", "/**/", "[ab]", r"\*", "!", "(", ".")
SIGNS = ("a", "b", "a", "/", "x", "*", "(", ".")


def test_the_same_paths_are_matched() -> None:
    chance = random.Random(11)
    matched = 0
    for _ in range(6_000):
        pattern = "".join(chance.choices(PARTS, k=chance.randint(1, 9)))
        try:
            plain = GitIgnoreSpec.from_lines([pattern])
        except (ValueError, re.error):
            with pytest.raises(InvalidPattern):
                compile_patterns([pattern])
            continue
        ours = compile_patterns([pattern])
        for _ in range(10):
            path = "".join(chance.choices(SIGNS, k=chance.randint(1, 10)))
            path = re.sub("/+", "/", path).strip("/") + chance.choice(["", "/"])
            assert ours.match_file(path) == plain.match_file(path), (pattern, path)
            matched += ours.match_file(path)
    assert matched > 3_000


@pytest.mark.parametrize(
    "pattern", ["*a" * 20 + "*b", "*(" * 20 + "b", "a/**/" * 50 + "b", "**/a*a*a*a/**/" * 9]
)
def test_slow_patterns_are_bounded(pattern: str) -> None:
    ignored = scanner.ignore_matcher(pattern)
    assert not ignored("a" * 200)
    assert not ignored("/".join("a" * 400) + "/" + "(" * 200)


def test_line_that_is_not_a_pattern_is_reported() -> None:
    assert scanner.patterns_problem("*.tmp\n[z-a]\n") == "line 2 is no pattern: [z-a]"
    long = "*a" * scanner.MAX_PATTERN_LENGTH
    assert scanner.patterns_problem(long) == f"line 1 is longer than any path: {long[:40]}"
    assert not scanner.ignore_matcher(long)("a" * 200)  # one that was taken before still holds

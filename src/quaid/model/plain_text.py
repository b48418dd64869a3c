"""Helpers for plain text: token estimates, counted nouns, CJK bigrams, folder lists, versions, rule files."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from operator import add
from typing import Any

from quaid.errors import InvalidArgument


def count_noun(number: int, noun: str, several: str = "") -> str:
    """Return a number with its noun, such as "1 page" or "2 pages".

    `several` is an irregular plural, as in "1,000 entries".
    """
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


_BYTES = bytes(range(256))
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_SPACES = b" \t\n\r\f\v"
_CLASSES = bytes.maketrans(
    _BYTES[:128],
    bytes(
        ord("l") if byte in _LETTERS else ord("d") if byte in _DIGITS else 32 if byte in _SPACES else ord("s")
        for byte in range(128)
    ),
)
_LATIN = bytes(range(0xC2, 0xCA))  # lead bytes of accented Latin letters in UTF-8
_SINGLE = bytes(range(0xCA, 0xEA)) + b"\xee\xef"  # lead bytes of most other scripts
_DOUBLE = b"\xea\xeb\xec\xed\xf0\xf1\xf2\xf3\xf4"  # lead bytes of Hangul syllables and emoji

TokenMeasure = Callable[[int, int], int]
"""A function that returns the number of tokens between two offsets."""


def count_tokens(text: str) -> int:
    """Estimate the number of tokens into which a model splits the text.

    The estimate was fitted to WordPiece on technical pages and conversations: the mean ratio of the estimate
    to the true count is 1.00, and its 5th percentile is 0.91. Scripts other than Latin are counted per
    character.
    """
    data = text.encode("utf-8", "surrogatepass")
    rest = data.translate(None, _LETTERS)
    letters = len(data) - len(rest)
    signs = rest.translate(None, _DIGITS)
    digits = len(rest) - len(signs)
    signs = signs.translate(None, _SPACES)
    latin = single = double = 0
    if not text.isascii():
        latin = len(signs) - len(signs.translate(None, _LATIN))
        single = len(signs) - len(signs.translate(None, _SINGLE))
        double = len(signs) - len(signs.translate(None, _DOUBLE))
        signs = signs.translate(None, _BYTES[128:])
    return -(-(3 * letters + 6 * digits + 4 * latin) // 12) + len(signs) + single + 2 * double


def token_measure(text: str, start: int, end: int) -> TokenMeasure:
    """Return a function that estimates the tokens of parts of text[start:end], faster than count_tokens.

    The function tends to overestimate.
    """
    stretch = text[start:end]
    data = b"" if stretch.isascii() else stretch.encode("utf-8", "surrogatepass")
    if len(data.translate(None, _DOUBLE)) < len(data):
        return lambda first, last: count_tokens(text[first:last])
    # This gives one byte per character in any script. Non-ASCII characters become "?" and count as signs.
    count = stretch.encode("ascii", "replace").translate(_CLASSES).count

    def tokens(first: int, last: int) -> int:
        first, last = first - start, last - start
        letters, digits = count(b"l", first, last), count(b"d", first, last)
        return (letters + 2 * digits + 3) // 4 + count(b"s", first, last)

    return tokens


# Chinese, Japanese, Korean, Thai, Lao, Myanmar, Khmer and the Tai scripts. Korean has spaces, but its
# particles attach to the word. Punctuation is excluded, so that it ends a run. The pattern is not compiled
# here, because that takes 4 ms and most commands never need it; `re` caches it after the first use.
_SCRIPTS = (
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3"
    "\u17d7\u17dc-\u17e9\u1950-\u19df\u1a20-\u1a99\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9fe\uaa60-\uaadd\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
"""Zero-width characters and variation selectors, which may occur inside words."""


def has_cjk(text: str) -> bool:
    """Return True if the text contains a script written without spaces between words."""
    return not text.isascii() and re.search(_SCRIPTS, text) is not None


def split_cjk(text: str) -> list[str]:
    """Split text into runs of scripts without word spaces (odd indexes) and other text (even indexes)."""
    return re.split(f"({_SCRIPTS})", _normalize_cjk(text))


def cjk_bigrams(run: str) -> list[str]:
    """Return the index terms of a run: each character with the next one, and the last character alone."""
    return [run[at : at + 2] for at in range(len(run))]


def cut_cjk(text: str) -> str:
    """Return the text as it is indexed: runs split into bigrams, the rest unchanged."""
    parts = split_cjk(text)
    parts[1::2] = [_spaced_bigrams(run) for run in parts[1::2]]
    return "".join(parts)


def _spaced_bigrams(run: str) -> str:
    """Return the bigrams of a run with spaces around them.

    They are built in pieces, because a run may be very long.
    """
    if len(run) <= _PIECE_LENGTH:
        return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "
    starts = range(0, len(run), _PIECE_LENGTH)
    pieces = [
        " ".join(map(add, run[at : at + _PIECE_LENGTH], run[at + 1 : at + 1 + _PIECE_LENGTH]))
        for at in starts
    ]
    return f" {' '.join(pieces)} {run[-1]} "


_PIECE_LENGTH = 10_000


def _normalize_cjk(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


_ABSOLUTE_PATH = re.compile(r"/.*|~(?:/.*)?|[A-Za-z]:[\\/].*")
_FOLDER_SEPARATOR = re.compile(r"[;\n]|(?:(?<=[^;:\n]{2})|(?<=[~/])):")  # the colon of C:\ is not a separator


def split_folder_list(value: str) -> list[str]:
    """Split a setting that lists folders, separated by colons, semicolons or newlines."""
    return [part.strip() for part in _FOLDER_SEPARATOR.split(value) if part.strip()] if value else []


def check_folder_list(name: str, value: str) -> None:
    """Raise InvalidArgument for a relative path, which would depend on the working directory."""
    for folder in split_folder_list(value):
        if not _ABSOLUTE_PATH.fullmatch(folder):
            raise InvalidArgument(
                name=name,
                problem=f"{folder!r} is not a whole path; begin it with '/' or '~', and put ':' between folders",
            )


_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev|post)[._-]?(\d*))?$")
_RELEASE_ORDER = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}


def version_key(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """Return a sort key for a version, or None if it is not a valid version."""
    match = _VERSION.match(version.strip().lower())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _RELEASE_ORDER[match[2] or ""], int(match[3] or 0)


def is_prerelease(version: str) -> bool:
    """Return True for versions that precede their release, such as 1.0rc1 and 1.0.dev3."""
    key = version_key(version)
    return key is not None and key[1] < _RELEASE_ORDER[""]


def version_in_filename(package: str, name: str) -> str | None:
    """Return the version in the filename of a wheel or sdist of the package, or None."""
    plain = re.sub(r"[-_.]+", "[-_.]+", re.escape(package).replace(r"\-", "-"))
    match = re.match(rf"{plain}-(\d[^-]*?)(?:-[^/]*\.whl|\.tar\.gz|\.zip)$", name, re.IGNORECASE)
    return match[1] if match and version_key(match[1]) else None


def newest_version(versions: list[str], current: str) -> str | None:
    """Return the newest version, or None. Prereleases count only if the current version is a prerelease."""
    able = [
        version
        for version in versions
        if version_key(version) and (is_prerelease(current) or not is_prerelease(version))
    ]
    return max(able, key=lambda version: version_key(version) or ((), 0, 0)) if able else None


def is_newer_version(one: str, other: str) -> bool:
    """Return True if the first version is newer than the second."""
    first, second = version_key(one), version_key(other)
    return first is not None and second is not None and first > second


class RuleFile:
    """A TOML file of this package with word lists and patterns, in which {name} is replaced by another entry."""

    def __init__(self, name: str) -> None:
        import pkgutil
        import tomllib

        source = pkgutil.get_data("quaid.model", name) or b""
        self.data: dict[str, Any] = tomllib.loads(source.decode())
        self._entries: dict[str, str] = {}
        for section in ("words", "parts"):
            for key, text in self.data.get(section, {}).items():
                self._entries[key] = self._expand(text)
        # Patterns are compiled at first use, because compiling all patterns of a file takes 40 ms, and few
        # are usually needed.
        self.pattern = cache(lambda key: re.compile(self.expand(self.data["patterns"][key])))

    def _expand(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda name: self._entries.get(name[1], name[0]), text)

    def expand(self, source: str) -> str:
        """Return a pattern with its parts inserted; line breaks are dropped."""
        return self._expand(source).replace("\n", "")

    def words(self, key: str) -> frozenset[str]:
        return frozenset(self._entries[key].split())

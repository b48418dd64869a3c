"""Small tools for plain text: token estimates, counted nouns, CJK bigrams, folder lists and version numbers."""

import re
import unicodedata
from collections.abc import Callable
from operator import add

from quaid.errors import InvalidArgument


def count_noun(number: int, noun: str, several: str = "") -> str:
    """A number and its noun: 1 page, 2 pages, 1,000 entries (whose plural has to be told)."""
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
_LATIN = bytes(range(0xC2, 0xCA))  # first bytes of letters with accents, in UTF-8
_SINGLE = bytes(range(0xCA, 0xEA)) + b"\xee\xef"  # of most other scripts
_DOUBLE = b"\xea\xeb\xec\xed\xf0\xf1\xf2\xf3\xf4"  # of Korean syllables and of pictures

TokenMeasure = Callable[[int, int], int]
"""Tells how many tokens stand between two places."""


def count_tokens(text: str) -> int:
    """About how many tokens a model makes of a text; rather too many than too few.

    Fitted to WordPiece on technical pages and conversations: 1.00 of the true number on average, 0.91 for the
    twentieth part that it underrates most. Other scripts than Latin count by the character.
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
    """A way to count the tokens of many parts of a stretch, cheaper than one by one; rather too many."""
    stretch = text[start:end]
    data = b"" if stretch.isascii() else stretch.encode("utf-8", "surrogatepass")
    if len(data.translate(None, _DOUBLE)) < len(data):
        return lambda first, last: count_tokens(text[first:last])
    # One byte for a character, whatever the script: a sign where it is not ASCII.
    count = stretch.encode("ascii", "replace").translate(_CLASSES).count

    def tokens(first: int, last: int) -> int:
        first, last = first - start, last - start
        letters, digits = count(b"l", first, last), count(b"d", first, last)
        return (letters + 2 * digits + 3) // 4 + count(b"s", first, last)

    return tokens


# Chinese, Japanese, Korean, Thai, Lao, Myanmar, Khmer and the Tai scripts. Korean has spaces, but its particles
# cling to the word. Punctuation is left out: it ends a run. Not compiled here: that takes 4 ms, and most commands
# meet none of these scripts; `re` keeps it once it was used.
_SCRIPTS = (
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3"
    "\u17d7\u17dc-\u17e9\u1950-\u19df\u1a20-\u1a99\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9fe\uaa60-\uaadd\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
"""Marks within words: places where a line may break, and variants of a character."""


def has_cjk(text: str) -> bool:
    """Whether the text holds a script that puts no spaces between words."""
    return not text.isascii() and re.search(_SCRIPTS, text) is not None


def split_cjk(text: str) -> list[str]:
    """What lies between runs of such scripts, and the runs, in turn: the runs have odd places."""
    return re.split(f"({_SCRIPTS})", _normalize_cjk(text))


def cjk_bigrams(run: str) -> list[str]:
    """A run as it is stored: each character with the next one, the last one alone."""
    return [run[at : at + 2] for at in range(len(run))]


def cut_cjk(text: str) -> str:
    """A text as it is stored: its runs cut into pairs, everything else as it is."""
    parts = split_cjk(text)
    parts[1::2] = [_spaced_bigrams(run) for run in parts[1::2]]
    return "".join(parts)


def _spaced_bigrams(run: str) -> str:
    """The pairs of a run with spaces around them, piece by piece: a run may be as long as a book."""
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
_FOLDER_SEPARATOR = re.compile(r"[;\n]|(?:(?<=[^;:\n]{2})|(?<=[~/])):")  # not the colon of C:\


def split_folder_list(value: str) -> list[str]:
    """The folders of a setting."""
    return [each.strip() for each in _FOLDER_SEPARATOR.split(value) if each.strip()] if value else []


def check_folder_list(name: str, value: str) -> None:
    """Refuse a path that would mean another folder in every place where it is read."""
    for folder in split_folder_list(value):
        if not _ABSOLUTE_PATH.fullmatch(folder):
            raise InvalidArgument(
                name=name,
                problem=f"{folder!r} is not a whole path; begin it with '/' or '~', and put ':' between folders",
            )


_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev|post)[._-]?(\d*))?$")
_RELEASE_ORDER = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}


def version_key(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """What to compare versions by; None for what is none."""
    found = _VERSION.match(version.strip().lower())
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _RELEASE_ORDER[found[2] or ""], int(found[3] or 0)


def is_prerelease(version: str) -> bool:
    """Whether it came before the release of its number: 1.0rc1, 1.0.dev3."""
    found = version_key(version)
    return found is not None and found[1] < _RELEASE_ORDER[""]


def version_in_filename(package: str, name: str) -> str | None:
    """The version in the name of a wheel or a source archive of a package."""
    plain = re.sub(r"[-_.]+", "[-_.]+", re.escape(package).replace(r"\-", "-"))
    found = re.match(rf"{plain}-(\d[^-]*?)(?:-[^/]*\.whl|\.tar\.gz|\.zip)$", name, re.IGNORECASE)
    return found[1] if found and version_key(found[1]) else None


def newest_version(versions: list[str], current: str) -> str | None:
    """The newest of some; early ones count only for whoever has an early one."""
    able = [
        each for each in versions if version_key(each) and (is_prerelease(current) or not is_prerelease(each))
    ]
    return max(able, key=lambda each: version_key(each) or ((), 0, 0)) if able else None


def is_newer_version(one: str, other: str) -> bool:
    """Whether the first is newer than the second."""
    first, second = version_key(one), version_key(other)
    return first is not None and second is not None and first > second

"""Slugs and addresses of pages, slugs made from file paths, and UUIDs."""

import re
from unicodedata import category, combining, normalize

from quaid.errors import InvalidSlug

LONGEST = 255
LONGEST_SEGMENT = 252
"""Maximum length in bytes of a segment with non-ASCII letters: with ".md", it is the longest file name."""

CHARACTERS = r"^\x00-,./:-^`{-\x7f"
"""The inside of a character class of a regular expression that matches the characters of a segment, and some more.

It lists the ASCII characters that do not match. A class with all other characters takes 4 ms to compile.
"""

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_FORBIDDEN = re.compile(r"[\x00-,.:-^`{-\x7f]")
_GAP = re.compile(r"[\x00-/:-^`{-\x7f]+")
_ESCAPED_GAP = re.compile(r"[^a-z0-9_]+")
_ESCAPED = re.compile(r"u[0-9a-f]{3,6}")
_EXTENSION = re.compile(r"(?i)\.(?:md|markdown|org)\Z")
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "œ": "oe", "ı": "i"}
)


def check(slug: str) -> str:
    """Return the slug in Unicode NFC, or raise InvalidSlug naming the rule it breaks.

    A slug has lower-case letters and digits of any script, '-' and '_'. Latin letters have no accents.
    """
    if not slug.isascii():
        slug = normalize("NFC", slug)
    if len(slug) <= LONGEST and all(map(_is_segment, slug.split("/"))):
        return slug
    raise InvalidSlug(slug=slug if len(slug) <= LONGEST else slug[:60] + "…", problem=_broken_rule(slug))


def _is_segment(name: str) -> bool:
    if not name or name.isascii():
        return bool(name) and not name.strip(_LETTERS)
    # Lone surrogates cannot be encoded; `_spell` replaces them.
    return not _FORBIDDEN.search(name) and _spell(name) == name and len(name.encode()) <= LONGEST_SEGMENT


def _broken_rule(slug: str) -> str:
    if not slug:
        return "it is empty"
    if len(slug) > LONGEST:
        return f"it has {len(slug)} characters and {LONGEST} are allowed"
    forbidden = _FORBIDDEN.search(slug)
    if forbidden:
        return f"{forbidden.group()!r} is not allowed in it"
    for character in slug:
        spelled = _spell(character)
        if spelled != character and category(character)[0] in "LN" and spelled.strip("-"):
            return f"{character!r} must be written {spelled!r}"
        if category(character)[0] not in "LNM" and not character.isascii():
            return f"{character!r} is not allowed in it"
    if slug.startswith("/") or slug.endswith("/"):
        return "it begins or ends with '/'"
    if "//" in slug:
        return "it holds an empty folder name ('//')"
    if any(len(name.encode()) > LONGEST_SEGMENT for name in slug.split("/")):
        return f"a part of it has more than {LONGEST_SEGMENT} bytes"
    return "it holds an accent without a letter that can have it"


def from_path(path: str) -> str:
    """Return the slug of a file from its path within the collection. It is deterministic and always valid."""
    slug = "/".join([segment(name) for name in _EXTENSION.sub("", path).split("/")])
    return slug if len(slug) <= LONGEST else _shorten(slug)


def _shorten(slug: str) -> str:
    return f"{slug[: LONGEST - 13].rstrip('/-')}-{_digest(slug)}"


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:12]


def segment(name: str) -> str:
    """Convert a folder or page name to a slug segment: lower-case, without accents on Latin letters."""
    if name.isascii():
        return _GAP.sub("-", name.lower()).strip("-") or "x"
    name = _GAP.sub("-", _spell(name).lower()).strip("-") or "x"
    if len(name.encode()) <= LONGEST_SEGMENT:
        return name
    start = name.encode()[: LONGEST_SEGMENT - 13].decode(errors="ignore").rstrip("-")
    return f"{start}-{_digest(name)}"


def _spell(name: str) -> str:
    """Return a name with lower-case letters in NFC, "-" for each other character; ASCII characters stay.

    Characters with a Latin base lose their accents. Other characters keep their marks, because in their
    scripts a mark forms a different letter (й is not и, が is not か).
    """
    spelled: list[str] = []
    takes_marks = False
    for character in normalize("NFC", name):
        if character.isascii():
            spelled.append(character)
            takes_marks = False
            continue
        bare = _without_accents(character)
        if bare and bare.isascii():
            spelled.append(bare)
            takes_marks = False
            continue
        for part in normalize("NFKC", character).lower():
            kind = category(part)[0]
            if part.isascii() or kind in "LN":
                spelled.append(part)
                takes_marks = not part.isascii()
            elif kind == "M":
                if takes_marks and not _is_variation_selector(part):
                    spelled.append(part)
            else:
                spelled.append("-")
                takes_marks = False
    return normalize("NFC", "".join(spelled))


def _without_accents(character: str) -> str:
    bare = "".join([part for part in normalize("NFKD", character) if not combining(part)])
    return bare.lower().translate(_SPELLED)


def _is_variation_selector(character: str) -> bool:
    """Return True for a character that only selects a glyph, as after an emoji."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def escaped_from_path(path: str) -> str:
    """Return the slug that earlier versions made from a path: with code points for letters of other scripts."""
    slug = "/".join([_escaped_segment(name) for name in _EXTENSION.sub("", path).split("/")])
    return slug if len(slug) <= LONGEST else _shorten(slug)


def may_be_escaped(slug: str) -> bool:
    """Return True if a slug may be one that `escaped_from_path` returns for a name in another script."""
    return slug.isascii() and _ESCAPED.search(slug) is not None


def _escaped_segment(name: str) -> str:
    spelled: list[str] = []
    latin = True
    for character in normalize("NFC", name):
        if character.isascii():
            spelled.append(character)
            latin = True
            continue
        bare = _without_accents(character)
        if bare.isascii():
            if bare or not latin:
                spelled.append(bare or f"u{ord(character):x}")
            latin = latin or bool(bare)
        else:
            spelled.extend(map(_code_point, normalize("NFKC", character).lower()))
            latin = False
    return _ESCAPED_GAP.sub("-", "".join(spelled).lower()).strip("-") or "x"


def _code_point(character: str) -> str:
    if character.isascii():
        return character
    return f"u{ord(character):x}" if category(character)[0] in "LNM" else "-"


def split_address(address: str) -> tuple[str | None, str]:
    """Split an address at '::' into collection (or None) and slug. Neither is validated."""
    collection, mark, slug = address.partition("::")
    if not mark:
        return None, address
    if not collection:
        raise InvalidSlug(slug=address, problem="no collection is named before '::'")
    return collection, slug


def address(collection: str, slug: str) -> str:
    """Return the address of a page: its slug, prefixed with the collection unless that is the default."""
    return slug if collection == "default" else f"{collection}::{slug}"


def uuid7(milliseconds: int, random: bytes) -> str:
    """Return an RFC 9562 UUIDv7: 48 bits of Unix milliseconds and 74 of the 80 given random bits."""
    if len(random) != 10:
        raise ValueError("uuid7 takes exactly 10 random bytes")
    return _uuid((milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(random, "big"), 7)


def uuid4(random: bytes) -> str:
    """Return an RFC 9562 UUIDv4 made of 122 of the 128 given random bits."""
    if len(random) != 16:
        raise ValueError("uuid4 takes exactly 16 random bytes")
    return _uuid(int.from_bytes(random, "big"), 4)


def _uuid(bits: int, version: int) -> str:
    bits = bits & ~(0xF << 76) | version << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

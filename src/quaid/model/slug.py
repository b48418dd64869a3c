"""Slugs and addresses of pages, slugs made from file paths, and UUIDs."""

import re
from unicodedata import category, combining, normalize

from quaid.errors import InvalidSlug

LONGEST = 255

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_FORBIDDEN = re.compile(r"[^a-z0-9_/-]")
_GAP = re.compile(r"[^a-z0-9_]+")
_EXTENSION = re.compile(r"(?i)\.(?:md|markdown|org)\Z")
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "œ": "oe", "ı": "i"}
)


def check(slug: str) -> str:
    """Return the slug, or raise InvalidSlug naming the rule it breaks."""
    if len(slug) <= LONGEST and all(name and not name.strip(_LETTERS) for name in slug.split("/")):
        return slug
    raise InvalidSlug(slug=slug if len(slug) <= LONGEST else slug[:60] + "…", problem=_broken_rule(slug))


def _broken_rule(slug: str) -> str:
    if not slug:
        return "it is empty"
    if len(slug) > LONGEST:
        return f"it has {len(slug)} characters and {LONGEST} are allowed"
    forbidden = _FORBIDDEN.search(slug)
    if forbidden:
        return f"{forbidden.group()!r} is not allowed in it"
    if slug.startswith("/") or slug.endswith("/"):
        return "it begins or ends with '/'"
    return "it holds an empty folder name ('//')"


def from_path(path: str) -> str:
    """Return the slug of a file from its path within the collection. It is deterministic and always valid."""
    slug = "/".join([segment(name) for name in _EXTENSION.sub("", path).split("/")])
    if len(slug) <= LONGEST:
        return slug
    import hashlib

    digest = hashlib.sha256(slug.encode()).hexdigest()[:12]
    return f"{slug[: LONGEST - 13].rstrip('/-')}-{digest}"


def segment(name: str) -> str:
    """Convert a folder or page name to a slug segment: no accents, and other scripts as code points."""
    if not name.isascii():
        name = _spell_out(name)
    return _GAP.sub("-", name.lower()).strip("-") or "x"


def _spell_out(name: str) -> str:
    """Convert a name in any script to ASCII. Both encodings of an accent give the same result.

    Characters with a Latin base lose their accents. Other characters keep their marks, because in their
    scripts a mark forms a different letter (й is not и, が is not か).
    """
    spelled: list[str] = []
    latin = True
    for character in normalize("NFC", name):
        if character.isascii():
            spelled.append(character)
            latin = True
            continue
        bare = "".join([part for part in normalize("NFKD", character) if not combining(part)])
        bare = bare.lower().translate(_SPELLED)
        if bare.isascii():
            if bare or not latin:
                spelled.append(bare or f"u{ord(character):x}")
            latin = latin or bool(bare)
        else:
            spelled.extend(map(_code_point, normalize("NFKC", character).lower()))
            latin = False
    return "".join(spelled)


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

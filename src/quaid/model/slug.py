"""Slugs, addresses, names and UUIDs of pages.

Names are the title, the slug, aliases and ids, normalized so that different spellings match.
"""

import re
from typing import Any
from unicodedata import category, combining, normalize

from quaid.errors import InvalidSlug

LONGEST = 255
LONGEST_SEGMENT = 252
"""Maximum bytes of a segment with non-ASCII letters: with ".md", that is 255, the usual limit for file names."""

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
SPELLED_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "œ": "oe", "ı": "i"}
    | {"Æ": "Ae", "Ø": "O", "Ł": "L", "Đ": "D", "Þ": "Th", "Œ": "Oe"}
)
"""Latin letters that have no decomposition in Unicode, with their usual spelling in ASCII."""


def check(slug: str) -> str:
    """Return the slug in Unicode NFC, or raise InvalidSlug naming the rule it breaks.

    The parts of a slug, separated by '/', consist of lower-case letters and digits of any script, '-' and '_'. Latin
    letters have no accents.
    """
    if not slug.isascii():
        slug = normalize("NFC", slug)
    if len(slug) <= LONGEST and all(map(_is_segment, slug.split("/"))):
        return slug
    names = [name for name in slug.split("/") if name.strip(". ")] if len(slug) <= LONGEST else []
    example = from_path("/".join(names)) if names else "people/alice"
    raise InvalidSlug(
        slug=slug if len(slug) <= LONGEST else slug[:60] + "…", problem=_broken_rule(slug), example=example
    )


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
    """Return a name in NFC with lower-case letters and digits. ASCII characters are not changed.

    Any other character becomes "-". Latin letters lose their accents. Letters of other scripts keep their marks,
    because there a mark forms a different letter (й is not и, が is not か).
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
    return bare.lower().translate(SPELLED_LETTERS)


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
    """Split an address at '::' into collection (or None) and slug. Neither is validated.

    Raise InvalidSlug if there is nothing before '::'.
    """
    collection, mark, slug = address.partition("::")
    if not mark:
        return None, address
    if not collection:
        raise InvalidSlug(
            slug=address, problem="no collection is named before '::'", example="notes::people/alice"
        )
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


NAME_KINDS = ("title", "slug", "alias", "name")
"""Kinds of names, most reliable first. The kind "name" is the last segment of the slug."""

LONGEST_NAME = 200
"""A normalized name has at most this many characters."""

MOST_ALIASES = 100

INDEX_NAMES = ("_index", "index")
"""File names of the page that a website shows for a folder. Such a page is also found by the name of the folder."""

_NAME_GAP = re.compile(r"[\W_]+")


def fold_name(text: str) -> str:
    """Normalize case, accents, punctuation and spacing, so that spelling variants of a name compare equal."""
    text = text[: 2 * LONGEST_NAME]
    if not text.isascii():
        decomposed = normalize("NFKD", text.casefold())
        # Accents on Latin letters are spelling variants. In other scripts, a mark forms a different letter.
        text = normalize("NFC", re.sub("(?<=[a-z])[\u0300-\u036f]+", "", decomposed))
    return _NAME_GAP.sub(" ", text.lower()).strip()[:LONGEST_NAME]


def names_of(
    title: str, slug: str, frontmatter: dict[str, Any], former: list[str] | None = None
) -> list[tuple[str, str]]:
    """Return the normalized names of a page with their kinds. Former slugs and ids count as aliases."""
    spellings = [(title, "title"), (slug, "slug")]
    earlier = [name for former_slug in former or () for name in (former_slug, former_slug.rpartition("/")[2])]
    spellings += [
        (alias, "alias") for alias in [*aliases(frontmatter), *earlier, *frontmatter_ids(frontmatter)]
    ]
    folder, _, last = slug.rpartition("/")
    spellings.append((last, "name"))
    if last in INDEX_NAMES and folder:
        spellings.append((folder.rpartition("/")[2], "name"))
    names: dict[str, str] = {}
    for text, kind in spellings:
        names.setdefault(fold_name(text), kind)
    names.pop("", None)
    return list(names.items())


COMPANY_SUFFIXES = tuple("inc corp ltd llc gmbh ag sa bv ab as oy plc co company group".split())
"""Words at the end of a company's name that are often left out."""

LEAST_NAME_LIKENESS = 0.88
"""Two titles may be spellings of the same name if the ratio of equal letters is at least this."""


def is_similar_name(one: str, other: str, type: str = "") -> bool:
    """Return True if two normalized names may be spellings of the same name.

    They may differ in a few letters, in the order of words or in a company suffix. One may be a person's first name
    alone, or have initials in place of first names. Names that differ in a number are not similar.
    """
    words, others = one.split(), other.split()
    numbers = [[word for word in some if any(map(str.isdigit, word))] for some in (words, others)]
    if not words or not others or numbers[0] != numbers[1]:
        return False
    if sorted(words) == sorted(others):
        return True
    short, long = sorted((words, others), key=len)
    rest = long[len(short) :]
    if rest and long[: len(short)] == short:
        return all(word in COMPANY_SUFFIXES for word in rest) or (type == "person" and len(short) == 1)
    if type == "person" and _has_initials(short, long):
        return True
    if len(one) < MIN_COMPARED_LETTERS or len(words) != len(others):
        return False
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= LEAST_NAME_LIKENESS


def _has_initials(words: list[str], others: list[str]) -> bool:
    """Return True if two names have the same last name, and first names of one are initials in the other."""
    if len(words) < 2 or words[-1] != others[-1] or len(words[-1]) < 2:
        return False
    firsts = zip(words[:-1], others[:-1], strict=False)
    return all(
        one == other or (min(len(one), len(other)) == 1 and one[0] == other[0]) for one, other in firsts
    )


MIN_COMPARED_LETTERS = 6
"""Titles of at least this many letters are compared letter by letter.

Short names such as Anna and Anne are different names.
"""

EXACT_MATCH, WORD_MATCH, PREFIX_MATCH = 3, 2, 1
"""Match strengths: the name equals the input, has all words of the input, or has words that start with them."""


def match_strength(name: str, typed: str) -> int:
    """Return how well a name matches the input, or 0 if it does not match. Both must be normalized by fold_name."""
    if name == typed:
        return EXACT_MATCH
    words, typed_words = name.split(), typed.split()
    if not typed_words:
        return 0
    if all(word in words for word in typed_words):
        return WORD_MATCH
    begun = name.startswith(typed) or all(
        any(word.startswith(beginning) for word in words) for beginning in typed_words
    )
    return PREFIX_MATCH if begun else 0


def frontmatter_ids(frontmatter: dict[str, Any]) -> list[str]:
    """Return the ids in the front matter, in the form used by links: `id:…`."""
    ids = [frontmatter.get("id"), frontmatter.get("quaid_id")]
    return [f"id:{identifier}" for identifier in ids if isinstance(identifier, str) and identifier]


def aliases(frontmatter: dict[str, Any]) -> list[str]:
    """Return the aliases in the front matter, at most MOST_ALIASES of them."""
    value = frontmatter.get("aliases", frontmatter.get("alias"))
    listed = value if isinstance(value, list) else [value]
    return [alias for alias in listed[:MOST_ALIASES] if isinstance(alias, str)]


ONLY_PREFIXES = ("wing:", "project:")


def parse_only(text: str) -> tuple[str, ...]:
    """Return the items of a list such as "work, wing:people". Raise ValueError if there are none, or one is empty."""
    items = tuple(dict.fromkeys(item.strip() for item in text.split(",")))
    if not all(items) or any(item.endswith(":") for item in items):
        raise ValueError("needs names of collections, or wing:NAME or project:NAME, as in work,wing:people")
    return items

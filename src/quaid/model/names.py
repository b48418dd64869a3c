"""Names of a page: title, slug, aliases and ids, normalized so that different spellings match."""

import re
import unicodedata
from typing import Any

NAME_KINDS = ("title", "slug", "alias", "name")
"""Kinds of names, most reliable first. The kind "name" is the last segment of the slug."""

LONGEST_NAME = 200
"""A normalized name has at most this many characters."""

MOST_ALIASES = 100

INDEX_NAMES = ("_index", "index")
"""File names of the page that a website shows for a folder. Such a page is also found by the name of the folder."""

_GAP = re.compile(r"[\W_]+")


def fold_name(text: str) -> str:
    """Normalize case, accents, punctuation and spacing, so that spelling variants of a name compare equal."""
    text = text[: 2 * LONGEST_NAME]
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.casefold())
        # Accents on Latin letters are spelling variants. In other scripts, a mark forms a different letter.
        text = unicodedata.normalize("NFC", re.sub("(?<=[a-z])[\u0300-\u036f]+", "", decomposed))
    return _GAP.sub(" ", text.lower()).strip()[:LONGEST_NAME]


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


COMPANY_SUFFIXES = (
    "inc",
    "corp",
    "ltd",
    "llc",
    "gmbh",
    "ag",
    "sa",
    "bv",
    "ab",
    "as",
    "oy",
    "plc",
    "co",
    "company",
    "group",
)
"""Words that a company's name may have or lack."""

LEAST_NAME_LIKENESS = 0.88
"""Two titles may be spellings of the same name if the ratio of equal letters is at least this."""


def is_similar_name(one: str, other: str, type: str = "") -> bool:
    """Return True if two normalized names may be spellings of the same name.

    They may differ in a few letters or a company suffix. One may be a person's first name alone, or have
    initials in place of first names. Names that differ in a number are not similar.
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

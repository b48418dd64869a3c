"""Names of a page: title, slug, aliases and ids, folded so that different spellings match."""

import re
import unicodedata
from typing import Any

NAME_KINDS = ("title", "slug", "alias", "name")
"""A name's kinds, the most certain first. The last part of a slug is a name."""

LONGEST_NAME = 200
"""Characters of a name. Nobody asks for more."""

MOST_ALIASES = 100

_GAP = re.compile(r"[\W_]+")


def fold_name(text: str) -> str:
    """A name with everything taken out in which two spellings of it differ."""
    text = text[: 2 * LONGEST_NAME]
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.casefold())
        # An accent over a Latin letter is a spelling; in other scripts marks make another letter.
        text = unicodedata.normalize("NFC", re.sub("(?<=[a-z])[\u0300-\u036f]+", "", decomposed))
    return _GAP.sub(" ", text.lower()).strip()[:LONGEST_NAME]


def names_of(
    title: str, slug: str, frontmatter: dict[str, Any], former: list[str] | None = None
) -> list[tuple[str, str]]:
    """Each name of a page, folded, with its kind; the most certain first. What its slug was is an alias."""
    found = [(title, "title"), (slug, "slug")]
    earlier = [name for each in former or () for name in (each, each.rpartition("/")[2])]
    found += [(alias, "alias") for alias in [*aliases(frontmatter), *earlier, *frontmatter_ids(frontmatter)]]
    found.append((slug.rpartition("/")[2], "name"))
    names: dict[str, str] = {}
    for text, kind in found:
        names.setdefault(fold_name(text), kind)
    names.pop("", None)
    return list(names.items())


EXACT_MATCH, WORD_MATCH, PREFIX_MATCH = 3, 2, 1
"""How a name fits what is typed: it is that, it has these words, it has words that begin so."""


def match_strength(name: str, typed: str) -> int:
    """How well a name fits what somebody types, both folded; 0: it does not."""
    if name == typed:
        return EXACT_MATCH
    words, wanted = name.split(), typed.split()
    if not wanted:
        return 0
    if all(each in words for each in wanted):
        return WORD_MATCH
    begun = name.startswith(typed) or all(any(word.startswith(each) for word in words) for each in wanted)
    return PREFIX_MATCH if begun else 0


def frontmatter_ids(frontmatter: dict[str, Any]) -> list[str]:
    """The ids that a page gives itself, as links name them."""
    given = [frontmatter.get("id"), frontmatter.get("quaid_id")]
    return [f"id:{each}" for each in given if isinstance(each, str) and each]


def aliases(frontmatter: dict[str, Any]) -> list[str]:
    """The other names that a page gives itself."""
    given = frontmatter.get("aliases", frontmatter.get("alias"))
    listed = given if isinstance(given, list) else [given]
    return [alias for alias in listed[:MOST_ALIASES] if isinstance(alias, str)]

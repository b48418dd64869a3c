"""Which pages and wings a question names.

Knows how names stand in a question: the whole of it, in [[brackets]], or as some of its words. Pages that are
meant exactly come first in an answer; those that are only mentioned are favoured, as are the pages of a wing
that bears the name. Nothing is excluded: a question about a person may be answered on another's page.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from quaid.model import names
from quaid.search.plan import COMMON
from quaid.storage import pages

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

MOST_WORDS = 48
LONGEST_NAME = 5
"""Words of a question that are looked at, and of a name within it."""

MOST_EXACT = 5

_REFERENCE = re.compile(r"\[\[([^\[\]|#\n]{1,255})(?:[|#][^\[\]\n]*)?\]\]")
_WORD = re.compile(r"[^\W_]+(?:[_'’-][^\W_]+)*")


class Entities(NamedTuple):
    """What a question names."""

    exact: dict[int, str]
    """Pages that it asks for by a name, and what kind of name that is."""
    mentioned: dict[int, str]
    """Pages whose name is among its words, and that name."""
    wings: tuple[str, ...]
    """Wings whose name is among its words."""


def find(db: "Database", question: str) -> Entities:
    """The pages that a question names, in the order of certainty."""
    whole = names.fold_name(question)
    references = {names.fold_name(found) for found in _REFERENCE.findall(question[:10_000])}
    wanted = references | ({whole} if len(question) <= names.LONGEST_NAME else set())
    parts = spans(question)
    known = pages.pages_called(db, sorted((wanted | parts.keys()) - {""}))
    exact: dict[int, str] = {}
    mentioned: dict[int, str] = {}
    for each in known:
        if each.name in wanted:
            exact.setdefault(each.page_id, f"[[{each.name}]]" if each.name in references else each.kind)
        elif each.name in parts:
            mentioned.setdefault(each.page_id, parts[each.name])
    wings = pages.wings_called(db, sorted(name.replace(" ", "-") for name in parts if name))
    return Entities(dict(list(exact.items())[:MOST_EXACT]), mentioned, tuple(wings))


def spans(question: str) -> dict[str, str]:
    """Every stretch of words that could be a name, folded, and as it stands."""
    words = [found.span() for found in _WORD.finditer(question)][:MOST_WORDS]
    found: dict[str, str] = {}
    for first, (start, _) in enumerate(words):
        for _, end in words[first : first + LONGEST_NAME]:
            text = question[start:end]
            if _is_telling(text):
                found.setdefault(names.fold_name(_POSSESSIVE.sub("", text)), text)
    return found


_POSSESSIVE = re.compile(r"['’]s\Z", re.IGNORECASE)


def _is_telling(text: str) -> bool:
    """Whether a stretch may be a name: neither its first nor its last word is one that is in every text."""
    first, last = text.split()[0].lower(), text.split()[-1].lower()
    return first not in COMMON and last not in COMMON and len(text) > 1

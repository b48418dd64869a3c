"""Lists that a sentence names, as in "Add Dune to my reading list".

Finds the name of the list, what goes on it, and which file of the notebook is that list. Does not know how a sentence
that names no list is routed (routing.py).
"""

import re
from typing import NamedTuple

from quaid.model import slug as slugs
from quaid.notebook.layout import LISTS

LONGEST = 2_000
"""Characters of a sentence that is searched for the name of a list."""

_WHOSE = r"(?:my|the|our|a|an|his|her|their|this|that|your|[\w-]+[’']s)"
_PHRASE = r"(?:[\w’'&-]+ ){0,4}?[\w-]*list(?: (?:of|for) [\w’'& -]{1,40})?"
_POLITE = (
    r"(?:(?:please|pls|plz|hey|ok(?:ay)?|also|and|can you|could you|would you|will you|"
    r"remember to|don[’']t forget to|remind me to|let[’']?s|"
    r"(?:i|we)(?:[’']d| would)? (?:want|like|need|have) to),? )*"
)
_PUT = (
    r"(?:add|put|stick|pop|throw|include|write|jot(?: down)?|note(?: down)?|place|append|save|get|chuck|"
    r"move|log|enter)"
)
_ONTO = r"(?:to|on|onto|in|into|for|under)"

FORMS = tuple(
    re.compile(rf"(?is)^{_POLITE}{source}$")
    for source in (
        # Add Dune to my reading list
        rf"{_PUT} (?P<items>.+),? {_ONTO} {_WHOSE} (?P<list>{_PHRASE})(?:,? (?:please|too|as well))?",
        # Add to my reading list: Dune. New on my list of restaurants: Noma. Reading list: Dune
        rf"(?:(?:{_PUT}|new)?(?: (?:this|these|one|entry|item|thing))? ?{_ONTO} )?(?:{_WHOSE} )?"
        rf"(?P<list>{_PHRASE})(?: *[:=] *| +[—–-] +)(?P<items>.+)",
        # Dune goes on my reading list. Dune, for the reading list
        rf"(?P<items>.+?),? (?:(?:goes|go|belongs?|should go|should be|has to go|needs to go|can go) {_ONTO}|for)"
        rf" {_WHOSE} (?P<list>{_PHRASE})(?: please)?",
    )
)
_NAME = re.compile(
    r"(?is)(?P<before>.*?)[ -]?list(?: (?P<by>of|for) (?:(?:my|the|our|all|a) )?(?P<after>.*))?"
)
_NOT_KEPT_HERE = re.compile(
    r"(?i)(?:.*\b)?(?:mailing|waiting|wait|distribution|black|white|block|allow|deny|price)"
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)")
_BETWEEN_QUOTED = re.compile(r"(?i)[\s,;&]*(?:and[\s,]*)?")
_PLURAL = re.compile(r"(?<=[^s\W])s\b")

KNOWN = {
    "shopping": "shopping",
    "grocery": "shopping",
    "groceries": "shopping",
    "supermarket": "shopping",
    "things to buy": "shopping",
    "to buy": "shopping",
    "to-do": "todos",
    "to do": "todos",
    "todo": "todos",
    "to-dos": "todos",
    "todos": "todos",
    "task": "todos",
    "tasks": "todos",
    "things to do": "todos",
    "contact": "contacts",
    "contacts": "contacts",
}
"""Names of lists that are kinds with a place of their own."""


class Named(NamedTuple):
    """The list that a sentence names and what goes on it; the name is "" for "the list"."""

    name: str
    items: str

    @property
    def kind(self) -> str:
        """The kind that this list is known as, or ""."""
        return KNOWN.get(self.name.lower(), "")


def named(text: str) -> Named | None:
    """The list that a sentence puts something on, or None."""
    text = text.strip().rstrip(".!")
    if len(text) > LONGEST or "list" not in text.lower():
        return None
    for form in FORMS:
        found = form.match(text)
        if found and not _NOT_KEPT_HERE.fullmatch(found["list"][: -len("list")].rstrip(" -")):
            items = found["items"].strip(" ,")
            name = _name(found["list"])
            if items and name is not None:
                return Named(name, items)
    return None


def path_of(name: str, there: tuple[str, ...]) -> str:
    """The file of a list: one that is there under this name or nearly so, else a new one."""
    wanted = _key(name)
    for path in there:
        if path.startswith(f"{LISTS}/") and _key(path[len(LISTS) + 1 :].removesuffix(".md")) == wanted:
            return path
    return f"{LISTS}/{slugs.segment(name.replace('’', '').replace(chr(39), ''))[:100].strip('-')}.md"


def quoted(items: str) -> list[str]:
    """The titles of a text that is made of nothing but titles in quotation marks; [] for any other."""
    rest = _QUOTED.sub("\0", items)
    if not all(not each or _BETWEEN_QUOTED.fullmatch(each) for each in rest.split("\0")) or "\0" not in rest:
        return []
    return [next(filter(None, found)).strip() for found in _QUOTED.findall(items)]


def _name(phrase: str) -> str | None:
    found = _NAME.fullmatch(phrase)
    if found is None:
        return None
    before, after = " ".join(found["before"].split()), " ".join((found["after"] or "").split())
    return f"{before} {found['by']} {after}" if before and after else before or after


def _key(name: str) -> str:
    """What two spellings of a list's name have in common: "Reading List", "reading-list" and "reading"."""
    words = slugs.segment(name).replace("_", "-").split("-")
    kept = [each for each in words if each != "list"] or words
    return _PLURAL.sub("", " ".join(kept))

"""A few words around those that were asked for, with them marked. Knows text only; what comes out is safe HTML."""

import re

from markupsafe import Markup, escape

from quaid.core import prose

LONGEST = 260
BEFORE = 70
"""Characters that stand before the first word that was found."""
MOST_WORDS = 12

_WORD = re.compile(r"\w+", re.UNICODE)
_LEADING = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+](?:[ \t]+\[[ xX]\])?)[ \t]+", re.MULTILINE)
_BOX = re.compile(r"(?<![^\s…])(?:[-*+][ \t]+)?\[[ xX]\][ \t]")
_COMMON = frozenset(
    "a an and are as at be by did do does for from has have how i in is it me my of on or our she he that the their"
    " they this to was we were what when where which who why will with you your".split()
)


def words_of(question: str) -> list[str]:
    """The words worth marking: those that carry the question, or all if none does."""
    found = list(dict.fromkeys(word.casefold() for word in _WORD.findall(question)))
    carrying = [word for word in found if word not in _COMMON and (len(word) > 1 or not word.isascii())]
    return (carrying or found)[:MOST_WORDS]


def pattern_of(question: str) -> re.Pattern[str] | None:
    """Where the words of a question stand in a text, or the beginnings of longer words; None: it has no words."""
    words = words_of(question)
    if not words:
        return None
    parts = [re.escape(_stem(word)) + (r"\w*" if word.isascii() else "") for word in words]
    edge = r"(?<!\w)" if all(word.isascii() for word in words) else ""
    return re.compile(f"{edge}(?:{'|'.join(parts)})", re.IGNORECASE)


def _stem(word: str) -> str:
    """Enough of a word that `charging` marks `charged`."""
    for ending in ("ingly", "ings", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def plain_text(text: str) -> str:
    """A passage without its marks, on one line."""
    return prose.one_line(_BOX.sub("", prose.plain(_LEADING.sub("", text))))


def snippet(text: str, question: str, longest: int = LONGEST) -> Markup:
    """The text around the first place that answers, on one line."""
    shown = plain_text(text)
    looked = pattern_of(question)
    first = looked.search(shown) if looked else None
    start = max(0, first.start() - BEFORE) if first and len(shown) > longest else 0
    if start:
        start = shown.find(" ", start) + 1 or start
    cut = shown[start : start + longest]
    if start + longest < len(shown):
        cut = cut.rsplit(" ", 1)[0] + " …"
    return marked(("… " if start else "") + cut, looked)


def marked(text: str, looked: re.Pattern[str] | None) -> Markup:
    if looked is None:
        return escape(text)
    out, at = [], 0
    for found in looked.finditer(text):
        if found.end() > found.start():
            out += [escape(text[at : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
            at = found.end()
    return Markup("").join([*out, escape(text[at:])])

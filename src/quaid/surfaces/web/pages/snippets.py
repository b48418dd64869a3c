"""A few words around those that were asked for, with them marked. Knows text only; what comes out is safe HTML."""

import re

from markupsafe import Markup, escape

from quaid.model import markdown_text

LONGEST = 260
BEFORE = 70
"""Characters that stand before the first word that was found."""
MOST_WORDS = 12
ENDS = ".!?…:)\"'”’»。"
"""Signs after which nothing is missing."""
SHORT = 60
"""Characters of a line that is whole, most likely: an item of a list, a heading."""

_WORD = re.compile(r"\w+", re.UNICODE)
_LEADING = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+](?:[ \t]+\[[ xX]\])?)[ \t]+", re.MULTILINE)
_BOX = re.compile(r"(?<![^\s…])(?:[-*+][ \t]+)?\[[ xX]\][ \t]")
_ITEM = re.compile(r"(?<=\n)[ \t]*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_RULED = re.compile(r"^[ \t]*+(?:\|[ \t]*+)?:?--[ \t:|-]*$", re.MULTILINE)
_CELLS = re.compile(r"^[ \t]*\|[^\n]*\|[ \t]*$", re.MULTILINE)
_LOOSE = re.compile(r"\[\[|\]\]|\*\*|~~|(?<!\S)__(?!\S)|\A\|+[ \t]*|[ \t]{0,20}\|{1,20}\Z")
_BAR = re.compile(r"(?<=\s)\|(?=\s)")
_CELL = re.compile(r"(?<!\\)\|(?![^\[\]\n]{0,300}\]\])")
COMMON = frozenset(
    "a an and are as at be by did do does for from has have how i in is it me my of on or our she he that the their"
    " they this to was we were what when where which who why will with you your".split()
)


def words_of(question: str) -> list[str]:
    """The words worth marking: those that carry the question, or all if none does."""
    found = list(dict.fromkeys(word.casefold() for word in _WORD.findall(question)))
    carrying = [word for word in found if word not in COMMON and (len(word) > 1 or not word.isascii())]
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
    """A passage without its marks, on one line. What a cut has left of a mark goes with it."""
    text = _RULED.sub("", _LEADING.sub("", _ITEM.sub(" · ", text)))
    text = _CELLS.sub(lambda row: " · ".join(filter(None, map(str.strip, _CELL.split(row[0])))), text)
    shown = markdown_text.one_line(_BOX.sub("· ", markdown_text.strip_markdown(_torn(text))))
    return _BAR.sub("·", _LOOSE.sub("", shown)).removeprefix("· ").replace("…· ", "…")


def _torn(text: str) -> str:
    """The text without what is left of a link that was cut in two: its words stay, its address goes."""
    closing = text.find("]]")
    if 0 <= closing < LONGEST and "[[" not in text[:closing]:
        text = text[:closing].rpartition("|")[2].rpartition("/")[2] + text[closing + 2 :]
    opening = text.rfind("[[")
    if opening >= 0 and "]]" not in text[opening:]:
        end = text[opening + 2 :].rstrip("…")
        more = "…" if end != text[opening + 2 :] else ""
        text = text[:opening] + end.rpartition("|")[2].rpartition("/")[2].replace("-", " ") + more
    return text


def cut(text: str, longest: int) -> str:
    """As much of a line of markdown as fits: whole words, no half of a link, no mark without its other half."""
    short = markdown_text.shorten(text, longest)
    if short == text:
        return text
    if short.rfind("[[") > short.rfind("]]"):
        short = short[: short.rfind("[[")].rstrip() + "…"
    for mark in ("**", "`", "~~"):
        if short.count(mark) % 2:
            before, _, after = short.rpartition(mark)
            short = before + after
    return short


def stretch(text: str) -> str:
    """A line out of a text, as something to read: without loose marks, and with dots where a sentence goes on."""
    shown = plain_text(text).strip()
    if not shown:
        return ""
    if len(shown) < SHORT:
        return shown
    before = "… " if shown[0].islower() and "/" not in shown.partition(" ")[0] else ""
    after = " …" if shown[-1] not in ENDS and (shown[-1].isalnum() or shown[-1] in ",;–—]") else ""
    return before + shown + after


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

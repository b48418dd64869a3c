"""Progressive retrieval: how much of each result is served, so that all of it fits into a budget of tokens.

Knows the depths and the order in which a budget is spent. Does not know how results were found. What counts is
everything that a result says: its title, its summary and its content.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quaid.model.plain_text import count_tokens

DEPTHS = ("auto", "summary", "section", "full")

SECTION_ABOVE = 500
"""Tokens that must be left for `auto` to serve the best chunk."""

FULL_ABOVE = 1_500
FULL_PLACES = 3
"""Tokens that must be left for `auto` to serve a whole page, and how many of the first results may have one."""

CHARACTERS_PER_TOKEN = 16
"""More than this much text for a token is not looked at when a text is cut: it would be blanks."""

MARK = "…"


class Texts(NamedTuple):
    """What could be served of a result."""

    title: str
    summary: str
    section: str
    """The best chunk."""
    full: str
    """The compiled truth, and the best chunk if that is not in it."""


class Serving(NamedTuple):
    """What is served of it."""

    depth: str
    title: str
    summary: str
    content: str
    tokens: int
    is_cut: bool
    """Something did not fit and ends with …"""


def spend(results: Sequence[Texts], budget: int, depth: str = "auto") -> list[Serving]:
    """Serve the results in their order until the budget is spent; those that nothing is left for are not there."""
    served: list[Serving] = []
    left = budget
    for place, texts in enumerate(results):
        serving = _serve(texts, left, depth, place)
        if serving is None:
            break
        served.append(serving)
        left -= serving.tokens
    return served


def _serve(texts: Texts, left: int, depth: str, place: int) -> Serving | None:
    title, _ = fit(texts.title, left)
    summary, is_cut = fit(texts.summary, left - count_tokens(title))
    used = count_tokens(title) + count_tokens(summary)
    if not title and not summary:
        return None
    head = Serving("summary", title, summary, "", used, is_cut)
    if depth == "summary":
        return head
    if depth != "auto":
        return _with_content(head, texts.full if depth == "full" else texts.section, left, depth)
    serving = head
    if left - used > SECTION_ABOVE:
        serving = _with_content(head, texts.section, left, "section")
    if left - serving.tokens > FULL_ABOVE and place < FULL_PLACES:
        whole = _with_content(head, texts.full, left, "full")
        # A page that does not fit shows its best chunk rather than its beginning.
        if not whole.is_cut or not serving.content:
            serving = whole
    return serving


def _with_content(head: Serving, text: str, left: int, depth: str) -> Serving:
    content, is_cut = fit(text, left - head.tokens)
    if not content:
        return head._replace(is_cut=head.is_cut or is_cut)
    return head._replace(
        depth=depth, content=content, tokens=head.tokens + count_tokens(content), is_cut=head.is_cut or is_cut
    )


def fit(text: str, tokens: int) -> tuple[str, bool]:
    """As much of a text as the tokens allow, and whether it was cut. A cut text ends with a mark."""
    if tokens <= 0:
        return "", bool(text)
    if len(text) <= tokens * CHARACTERS_PER_TOKEN and count_tokens(text) <= tokens:
        return text, False
    room = tokens - count_tokens(MARK)
    low, high = 0, min(len(text), tokens * CHARACTERS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    gap = max(text.rfind(" ", 0, low), text.rfind("\n", 0, low))
    cut = text[: gap if gap > low // 2 else low].rstrip()
    # Where a word ends may cost a token more than within it.
    while cut and count_tokens(cut + MARK) > tokens:
        cut = cut[:-1]
    return (cut + MARK, True) if cut else ("", True)

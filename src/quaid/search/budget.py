"""Fit the results of an answer into a token budget: first a line of each, then sections, then whole pages.

The size is measured on the JSON text that an agent receives, with its keys and escapes.
"""

import json
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from quaid.model.plain_text import count_tokens

DEPTHS = ("auto", "summary", "section", "full")

FULL_PLACES = 3
"""With the depth `auto`, only this many first results may have the whole page, if it fits."""

LEAST_SECTION = 60
"""A section is shortened to the remaining tokens only if at least this many remain; otherwise it is left out."""

LEAST_LINE, SHORT_LINE = 6, 16
"""If there is no space for all lines, longer ones are shortened to an equal share, but to no less than SHORT_LINE.

If this is not enough, the line of the last result is shortened if at least LEAST_LINE tokens remain; otherwise it
is left out.
"""

CHARACTERS_PER_TOKEN = 16
"""A token is assumed to have at most this many characters, which limits how much text is counted.

Only whitespace has more characters per token.
"""

CUT_MARK = "…"

RESERVED_TOKENS = 58
"""Tokens of an answer apart from results, facts and notes.

This includes the label that MCP adds, and one more note.
"""


class ServableTexts(NamedTuple):
    """The parts of a result that may be returned."""

    fields: dict[str, Any]
    """The other fields of the result that agents receive."""
    line: str
    """The sentence or list entry that answers best."""
    section: str
    """The text of the best chunk."""
    full: str
    """The text of the page above its timeline, followed by the best chunk if it is from the timeline."""


class Serving(NamedTuple):
    """The parts of a result that fit into the budget."""

    depth: str
    line: str
    content: str
    tokens: int
    is_cut: bool = False
    """True if line or content was truncated and contains CUT_MARK."""


json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Return compact JSON, as it is sent over MCP."""


def json_tokens(text: str) -> int:
    """Return the tokens of a text within JSON, without its quotation marks."""
    return count_tokens(encode_basestring(text)[1:-1])


def spend_budget(results: Sequence[ServableTexts], budget: int, depth: str = "auto") -> list[Serving]:
    """Return, in order, the parts of each result that fit into the budget.

    Every result gets its line before any result gets more text. If there is no space for all lines, long lines
    are shortened. If there is no space for the line of a result even so, this result and all results after it are
    left out.
    """
    servings: list[Serving] = []
    left = budget
    frames = [
        count_tokens(json_text({**texts.fields, "text": ""})) + 1 for texts in results
    ]  # 1 for the comma
    longest = _longest_line([json_tokens(texts.line) for texts in results], budget - sum(frames))
    for texts, frame in zip(results, frames, strict=True):
        line, is_cut = fit_text(texts.line, min(longest, left - frame), json_tokens)
        if frame > left or (is_cut and json_tokens(line) < LEAST_LINE):
            break
        servings.append(Serving("summary", line, "", frame + json_tokens(line), is_cut))
        left -= servings[-1].tokens
    if depth in ("auto", "section"):
        left = _widen(results, servings, left, "section")
    if depth == "auto":
        _widen(results[:FULL_PLACES], servings, left, "full", whole=True)
    elif depth == "full":
        _widen(results, servings, left, "full")
    return servings


def _longest_line(lines: Sequence[int], budget: int) -> int:
    """Return the length to which lines of these lengths are shortened, so that all fit; at least SHORT_LINE."""
    left, waiting = budget, sorted(lines)
    while waiting and waiting[0] * len(waiting) <= left:
        left -= waiting.pop(0)
    return max(SHORT_LINE, left // len(waiting)) if waiting else max(lines, default=0)


def _widen(
    results: Sequence[ServableTexts], servings: list[Serving], left: int, depth: str, whole: bool = False
) -> int:
    """Replace the text of the servings, in order, by longer text. Return the number of tokens that are left.

    With `whole`, a text that does not fit is not cut.
    """
    for place, (texts, serving) in enumerate(zip(results, servings, strict=False)):
        text = texts.full if depth == "full" else texts.section
        spent = json_tokens(serving.content or serving.line)
        room = left + spent
        least = max(LEAST_SECTION, spent)  # a text that is cut must have more tokens than it replaces
        if not text or ((whole or room < least) and not _fits(text, room)):
            continue
        content, is_cut = _fit_around(text, serving.line, room)
        tokens = json_tokens(content)
        if is_cut and tokens < least:
            continue
        servings[place] = Serving(depth, serving.line, content, serving.tokens + tokens - spent, is_cut)
        left -= tokens - spent
    return left


def _fit_around(text: str, line: str, tokens: int) -> tuple[str, bool]:
    """Truncate text as fit_text does, but begin at its best line if the best line would be cut off."""
    content, is_cut = fit_text(text, tokens, json_tokens)
    core = line.strip(CUT_MARK)
    at = text.find(core) if is_cut and core and core not in content else -1
    if at <= 0:
        return content, is_cut
    rest, _ = fit_text(text[at:], tokens - json_tokens(CUT_MARK), json_tokens)
    return (CUT_MARK + rest if rest else ""), True


def _fits(text: str, tokens: int, measure: Callable[[str], int] = json_tokens) -> bool:
    return len(text) <= tokens * CHARACTERS_PER_TOKEN and measure(text) <= tokens


def fit_text(text: str, tokens: int, measure: Callable[[str], int] = count_tokens) -> tuple[str, bool]:
    """Truncate text to a number of tokens. Return the text, and True if it was cut.

    Text that was cut ends with CUT_MARK, or is "" if nothing fits.
    """
    if tokens <= 0:
        return "", bool(text)
    if _fits(text, tokens, measure):
        return text, False
    room = tokens - measure(CUT_MARK)
    low, high = 0, min(len(text), tokens * CHARACTERS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    gap = max(text.rfind(" ", 0, low), text.rfind("\n", 0, low))
    cut = text[: gap if gap > low // 2 else low].rstrip()
    # Cutting at the end of a word may cost one more token than cutting within it.
    while cut and measure(cut + CUT_MARK) > tokens:
        cut = cut[:-1]
    return (cut + CUT_MARK, True) if cut else ("", True)

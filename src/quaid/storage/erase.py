"""What a page would leave behind: pieces of it that are so particular that finding one means it is still there.

Knows texts only. Pieces are short, so that a file that is cut into pages seldom cuts one of them in two.
"""

import re
from typing import Any

PROBE_LENGTH = 40
"""Characters of a piece."""

SHORTEST_PROBE = 12
"""A shorter one may be anybody's."""

MOST_PROBES = 24

_PROBE_WORD = re.compile(r"[^\W_]{12,40}")
# JSON writes these in another way.
_PROBE_BREAK = re.compile(r'[\\"\x00-\x1f]+')


def erasure_probes(slug: str, title: str, uuid: str, names: list[str], texts: list[str]) -> list[str]:
    """Slug, names and identity of a page, then pieces of what it says, taken from all over it."""
    called = [each.strip() for each in (uuid, slug, title, *names)]
    found = dict.fromkeys(each for each in called if len(each) >= 5 and not _PROBE_BREAK.search(each))
    pieces = _probe_pieces(texts)
    step = max(1, len(pieces) // MOST_PROBES)
    found.update(dict.fromkeys(pieces[::step]))
    words = sorted(
        {word for text in texts for word in _PROBE_WORD.findall(text)}, key=lambda word: (-len(word), word)
    )
    found.update(dict.fromkeys(words[:8]))
    return list(found)[: MOST_PROBES + 8]


def _probe_pieces(texts: list[str]) -> list[str]:
    found = []
    for text in texts:
        for line in text.split("\n"):
            longest = max(_PROBE_BREAK.split(line), key=len).strip()
            middle = max(0, (len(longest) - PROBE_LENGTH) // 2)
            piece = longest[middle : middle + PROBE_LENGTH].strip()
            if len(piece) >= SHORTEST_PROBE:
                found.append(piece)
    return list(dict.fromkeys(found))


def json_strings(value: Any) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in json_strings(each)]

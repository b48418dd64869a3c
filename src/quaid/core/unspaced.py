"""Scripts that put no space between words: where they stand in a text, and how a text is cut for the word index.

A run of them is stored as overlapping pairs of characters, closed by its last character alone. Knows nothing of the
index itself.
"""

import re
import unicodedata
from operator import add

# Chinese, Japanese, Korean, Thai, Lao, Myanmar, Khmer and the Tai scripts. Korean has spaces, but its particles
# cling to the word. Punctuation is left out: it ends a run. Compiling these takes 4 ms, and most commands meet
# none of these scripts.
_SCRIPTS = (
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3"
    "\u17d7\u17dc-\u17e9\u1950-\u19df\u1a20-\u1a99\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9fe\uaa60-\uaadd\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_RUN = re.compile(_SCRIPTS)
_RUN_KEPT = re.compile(f"({_SCRIPTS})")
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
"""Marks within words: places where a line may break, and variants of a character."""


def has_runs(text: str) -> bool:
    """Whether the text holds a script that puts no spaces between words."""
    return not text.isascii() and _RUN.search(text) is not None


def split_runs(text: str) -> list[str]:
    """What lies between runs of such scripts, and the runs, in turn: the runs have odd places."""
    return _RUN_KEPT.split(_plain(text))


def pairs(run: str) -> list[str]:
    """A run as it is stored: each character with the next one, the last one alone."""
    return [run[at : at + 2] for at in range(len(run))]


def cut_runs(text: str) -> str:
    """A text as it is stored: its runs cut into pairs, everything else as it is."""
    parts = split_runs(text)
    parts[1::2] = [_spaced(run) for run in parts[1::2]]
    return "".join(parts)


def _spaced(run: str) -> str:
    """The pairs of a run with spaces around them, piece by piece: a run may be as long as a book."""
    if len(run) <= _PIECE:
        return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "
    starts = range(0, len(run), _PIECE)
    pieces = [" ".join(map(add, run[at : at + _PIECE], run[at + 1 : at + 1 + _PIECE])) for at in starts]
    return f" {' '.join(pieces)} {run[-1]} "


_PIECE = 10_000


def _plain(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))

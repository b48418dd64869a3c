"""Secrets in a text, replaced by what they were: [masked: github token].

Knows only how to replace; what a secret is, `secrets` says. Does not know where a text comes from. A mark that lets a
secret into a knowledge base is no reason to keep it in a transcript, so marks count for nothing here. What was masked
cannot be had back from the masked text.
"""

from typing import NamedTuple

from quaid.core.secrets import MOST_PLACES, UNSEARCHED, find


class Masked(NamedTuple):
    text: str
    secrets: int
    """How many were masked."""


PLACES, CHARACTERS_A_PLACE = 1_000, 20
"""A text may have so many places that could hold a secret, and one more for so many characters. What people and
agents say has far fewer; a transcript of nothing else, which may have any size, costs 0.4 s a megabyte."""


def mask(text: str) -> Masked:
    """The text with a note such as [masked: github token] in place of each secret.

    Where it has too many places to search them all, the rest is left out: nobody knows what is in there.
    """
    pieces: list[str] = []
    at = count = 0
    places = min(MOST_PLACES, PLACES + len(text) // CHARACTERS_A_PLACE)
    for secret in find(text, marks=False, places=places):
        if secret.kind == UNSEARCHED:
            return Masked("".join([*pieces, text[at : secret.start], f"[masked: {UNSEARCHED}]"]), count + 1)
        if text.startswith("[masked", secret.start):
            continue
        pieces += [text[at : secret.start], f"[masked: {secret.kind}]"]
        at = secret.end
        count += 1
    return Masked("".join([*pieces, text[at:]]), count) if count else Masked(text, 0)

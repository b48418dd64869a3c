"""Secrets in a text, replaced by what they were: [masked: github token].

Knows only how to replace; what a secret is, `secrets` says. Does not know where a text comes from. A mark that lets a
secret into a knowledge base is no reason to keep it in a transcript, so marks count for nothing here. What was masked
cannot be had back from the masked text.
"""

from quaid.core.secrets import find
from quaid.records import NamedTuple


class Masked(NamedTuple):
    text: str
    secrets: int
    """How many were masked."""


def mask(text: str) -> Masked:
    """The text with a note such as [masked: github token] in place of each secret."""
    pieces: list[str] = []
    at = count = 0
    for secret in find(text, marks=False):
        if text.startswith("[masked", secret.start):
            continue
        pieces += [text[at : secret.start], f"[masked: {secret.kind}]"]
        at = secret.end
        count += 1
    return Masked("".join([*pieces, text[at:]]), count) if count else Masked(text, 0)

"""A question that the memory could not answer, as it is kept: by a hash that says nothing of its words.

Knows when two spellings are one question. Does not know where gaps are stored.
"""

import hashlib
import re
import unicodedata

LONGEST_CONTEXT = 500
"""Characters. A context says where a question came up, no more."""

LONGEST_WORD = 64
"""Letters of a word in ASCII; elsewhere a whole sentence may be without a space."""

_WORD = re.compile(r"[^\W\d_]+")
_ENDINGS = " ?!.,;:…¿¡。？！．，、；：｡؟،؛"


def fold(question: str) -> str:
    """The question without what differs when it is asked again: case, spaces, the signs at its ends."""
    if not question.isascii():
        question = unicodedata.normalize("NFKC", question)
    folded = " ".join(question.casefold().split())
    return folded.strip(_ENDINGS) or folded


def is_question(text: str) -> bool:
    """Whether a text has a word that somebody would write: signs, numbers and a key that was held down are none."""
    return any(
        not word.isascii() or (len(word) <= LONGEST_WORD and len(set(word)) > 1)
        for word in _WORD.findall(fold(text))
    )


def question_hash(question: str) -> str:
    """The name under which a question is kept: SHA-256 of its folded text."""
    return hashlib.sha256(fold(question).encode("utf-8", "replace")).hexdigest()


def tells(text: str, question: str) -> bool:
    """Whether a text gives the words of a question away."""
    return fold(question) in fold(text)

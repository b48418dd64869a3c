"""A question that the memory could not answer, as it is kept: by a hash that says nothing of its words.

Knows when two spellings are one question. Does not know where gaps are stored.
"""

LONGEST_CONTEXT = 500
"""Characters. A context says where a question came up, no more."""

_ENDINGS = " ?!.,;:…¿¡。？！．，、；：｡؟،؛"


def fold(question: str) -> str:
    """The question without what differs when it is asked again: case, spaces, the signs at its ends."""
    if not question.isascii():
        import unicodedata

        question = unicodedata.normalize("NFKC", question)
    folded = " ".join(question.casefold().split())
    return folded.strip(_ENDINGS) or folded


def question_hash(question: str) -> str:
    """The name under which a question is kept: SHA-256 of its folded text."""
    import hashlib

    return hashlib.sha256(fold(question).encode("utf-8", "replace")).hexdigest()


def tells(text: str, question: str) -> bool:
    """Whether a text gives the words of a question away."""
    return fold(question) in fold(text)

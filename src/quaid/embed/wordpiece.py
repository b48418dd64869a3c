"""Word pieces of a short text in the manner of BERT (lower case, accents dropped), straight from vocab.txt.

Opening a tokenizer.json takes 60 ms of CPU, more than the rest of a cold question; here the vocabulary stays
a string of bytes that is searched for the few words of a question. Gives the same ids as the tokenizers
library; tests compare the two. What is long or not plain goes to the library.
"""

import unicodedata

LONGEST_WORD = 100  # characters; a longer one is unknown as a whole
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LAST_LATIN = "\u024f"
MARKS = "–—‘’“”…€"


def is_plain(text: str) -> bool:
    """Whether this module may cut the text: Latin letters and usual marks, no special token written out.

    Other scripts depend on which edition of Unicode a library was made for.
    """
    return all(
        (each <= LAST_LATIN and (each.isprintable() or each in "\t\n\r")) or each in MARKS for each in text
    ) and not any(token in text for token in SPECIAL)


class Vocabulary:
    """The lines of a vocab.txt; a piece's id is the number of its line."""

    def __init__(self, lines: bytes) -> None:
        self._lines = b"\n" + lines.replace(b"\r\n", b"\n")

    def id_of(self, piece: str) -> int | None:
        at = self._lines.find(b"\n" + piece.encode() + b"\n")
        return None if at < 0 else self._lines.count(b"\n", 0, at)

    def ids(self, text: str, limit: int) -> list[int]:
        """The ids of a text with its [CLS] and [SEP], no more than `limit`."""
        found: list[int] = []
        for word in words(text):
            found += self._pieces(word)
            if len(found) > limit - 2:
                break
        return [self._known("[CLS]"), *found[: limit - 2], self._known("[SEP]")]

    def _pieces(self, word: str) -> list[int]:
        """The longest known piece from the left, again and again; one unknown rest makes the word unknown."""
        pieces: list[int] = []
        start = 0
        if len(word) > LONGEST_WORD:
            return [self._known("[UNK]")]
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.id_of(("##" if start else "") + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return [self._known("[UNK]")]
        return pieces

    def _known(self, piece: str) -> int:
        found = self.id_of(piece)
        if found is None:
            raise ValueError(f"the vocabulary has no {piece}")
        return found


def words(text: str) -> list[str]:
    """Words and marks, each by itself, in lower case and without accents."""
    found: list[str] = []
    word = ""
    for each in unicodedata.normalize("NFD", text).lower():
        if each.isspace() or _stands_alone(each):
            if word:
                found.append(word)
            word = ""
            if not each.isspace():
                found.append(each)
        elif unicodedata.category(each) != "Mn":
            word += each
    return [*found, word] if word else found


def _stands_alone(character: str) -> bool:
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"

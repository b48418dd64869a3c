"""Vectors as bits: one for each component, set where it is above the model's mean.

Two texts that mean the same differ in few bits, and bits are compared thirty times as fast as the vectors
themselves. What they leave over is compared exactly. Knows arrays only, no rows. docs/decisions/007-vectors.md
has the figures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SHORTLIST, SHORTLIST_AT = 2_048, 50_000
"""How many vectors are compared exactly, at so many vectors; the number follows the third root."""

LEAST_SHORTLIST, FOR_EACH = 1_024, 16
"""How many at least, and for each one that is wanted: 0.988 of the 100 nearest among 50,000, 0.997 among 12,000."""

REFINED = 8
"""Where vectors have to be read one by one: how many of them for each one that is wanted. The question itself, not
its bits, chooses them among the shortlist: 0.9995 of the 10 nearest among 200,000 with 1,024 of 8,192."""

STRIDE = 32_768
"""Codes that are compared at once: what is in between stays in the cache of the processor."""


def width(dimensions: int) -> int:
    """Words of 64 bits for a code."""
    return -(-dimensions // 64)


def encode(vectors: "Array", mean: "Array") -> "Array":
    """Codes of 32-bit vectors, a row each, padded to whole words."""
    import numpy as np

    bits = np.packbits(vectors > mean, axis=1)
    codes = np.zeros((len(vectors), width(vectors.shape[1]) * 8), np.uint8)
    codes[:, : bits.shape[1]] = bits
    return codes.view("<u8")


def distances(codes: "Array", code: "Array") -> "Array":
    """In how many bits each code differs. `codes` has a row for each word and a column for each vector."""
    import numpy as np

    count = codes.shape[1]
    total = np.empty(count, np.uint16)
    for start in range(0, count, STRIDE):
        block = codes[:, start : start + STRIDE]
        part = total[start : start + STRIDE]
        part[:] = np.bitwise_count(block[0] ^ code[0])
        for word in range(1, len(block)):
            part += np.bitwise_count(block[word] ^ code[word])
    return total


def shortlist_size(count: int, wanted: int) -> int:
    """How many vectors to compare exactly, of so many."""
    size = int(SHORTLIST * (count / SHORTLIST_AT) ** (1 / 3))
    return max(LEAST_SHORTLIST, size, FOR_EACH * wanted)


def nearest(codes: "Array", code: "Array", size: int, allowed: "Array | None") -> "Array":
    """The places of at least `size` codes that differ least, if there are so many."""
    import numpy as np

    if allowed is not None:
        if len(allowed) <= size:
            return allowed
        codes = np.ascontiguousarray(codes[:, allowed])
    elif codes.shape[1] <= size:
        return np.arange(codes.shape[1])
    total = distances(codes, code)
    within = np.searchsorted(np.cumsum(np.bincount(total)), size)
    found = np.flatnonzero(total <= within)
    return found if allowed is None else allowed[found]


def refined(codes: "Array", places: "Array", query: "Array", size: int) -> "Array":
    """Of these places the `size` whose bits agree best with a question as it is: how far each bit matters counts."""
    import numpy as np

    if len(places) <= size:
        return places
    padded = np.zeros(len(codes) * 64, np.float32)
    padded[: len(query)] = query
    # What each of the 256 bytes would add, at every place of a code: then a code is a sum of as many numbers.
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
    worth = padded.reshape(-1, 8) @ signs.T
    given = np.ascontiguousarray(codes[:, places].T).view(np.uint8)
    scores = worth.ravel()[given + np.arange(0, worth.size, 256)].sum(axis=1)
    return places[np.argpartition(-scores, size - 1)[:size]]


def highest(scores: "Array", count: int) -> "Array":
    """The places of the highest scores, best first; of equals the first."""
    import numpy as np

    if count >= len(scores):
        return np.argsort(-scores, kind="stable")
    top = np.sort(np.argpartition(-scores, count - 1)[:count])
    return top[np.argsort(-scores[top], kind="stable")]

"""An array that grows without a copy for each addition. test_vectors.py covers what it holds."""

import numpy as np

from quaid.storage.vector_index import LEAST_GROWTH, GrowingArray


def test_most_additions_copy_nothing_that_was_there() -> None:
    growing = GrowingArray(np.zeros(0, np.int64))
    places = set()
    for number in range(LEAST_GROWTH + 1):
        growing.add(np.array([number]))
        places.add(growing.now.ctypes.data)
    assert growing.now.tolist() == list(range(LEAST_GROWTH + 1))
    assert len(places) <= 2

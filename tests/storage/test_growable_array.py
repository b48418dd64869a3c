"""Arrays of vectors: one that grows, and 16-bit floats as 32-bit floats."""

import numpy as np
import pytest

from quaid.storage.vector_index import LEAST_GROWTH, GrowingArray, widen_halves


@pytest.mark.parametrize("axis", [0, -1])
def test_array_holds_everything_appended(axis: int) -> None:
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 9, (3, 3)) for _ in range(5)]
    growing = GrowingArray(parts[0], axis)
    for part in parts[1:]:
        growing.add(part)
    assert growing.now.tolist() == np.concatenate(parts, axis=axis).tolist()


def test_most_additions_copy_nothing_that_was_there() -> None:
    growing = GrowingArray(np.zeros(0, np.int64))
    places = set()
    for number in range(LEAST_GROWTH + 1):
        growing.add(np.array([number]))
        places.add(growing.now.ctypes.data)
    assert growing.now.tolist() == list(range(LEAST_GROWTH + 1))
    assert len(places) <= 2


def test_initial_array_is_not_changed() -> None:
    first = np.arange(3)
    GrowingArray(first).add(np.array([9]))
    assert first.tolist() == [0, 1, 2]


def test_every_finite_half_is_widened_as_numpy_does() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)].reshape(-1, 16)
    assert widen_halves(finite).tobytes() == finite.astype(np.float32).tobytes()

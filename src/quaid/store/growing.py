"""An array that things are added to, one write after another, without being copied each time.

Knows memory only. Whenever it has to be copied, room for an eighth more is taken; the system gives that to the
process only when it is filled.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quaid.store.codes import Array

SPARE = 8
"""One part of so many is left free."""

LEAST = 1_024


class Growing:
    """An array that grows along one of its axes."""

    def __init__(self, now: "Array", axis: int = -1) -> None:
        self.now = now
        """As it is; not to be kept beyond the next addition."""
        self._axis = axis % now.ndim
        self._all = now

    def add(self, more: "Array") -> None:
        """Put some behind what is there."""
        import numpy as np

        count = self.now.shape[self._axis]
        wanted = count + more.shape[self._axis]
        if wanted > self._all.shape[self._axis]:
            shape = list(self.now.shape)
            shape[self._axis] = wanted + max(LEAST, wanted // SPARE)
            self._all = np.empty(shape, self.now.dtype)
            self._all[self._part(0, count)] = self.now
        self._all[self._part(count, wanted)] = more
        self.now = self._all[self._part(0, wanted)]

    def _part(self, start: int, end: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self._axis, slice(start, end))

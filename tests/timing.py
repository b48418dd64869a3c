"""Figures on a machine that others use too: it may stop anybody for seconds, at any moment."""

from collections.abc import Callable

TRIES = 4


def takes_at_most(seconds: float, work: Callable[[int], float]) -> None:
    """Whether something is that quick at least once in a few tries, each with its number; else how long each took."""
    taken: list[float] = []
    for number in range(TRIES):
        taken.append(work(number))
        if taken[-1] < seconds:
            return
    raise AssertionError(f"never within {seconds} s: {taken}")

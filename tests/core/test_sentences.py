"""A text is read in no time, whatever it holds."""

import time

import pytest

from quaid.core.sentences import readable


def test_code_and_comments_are_blanked_and_all_else_keeps_its_place() -> None:
    assert readable("a `b` c <!-- d\ne --> f") == "a     c       \n      f"
    assert readable("a <!-- never closed") == "a <!-- never closed"


@pytest.mark.parametrize("text", ["Bob left Acme <!-- " * 40_000, "`a` " * 120_000, "<!-- a --> " * 60_000])
def test_hostile_text_is_read_in_no_time(text: str) -> None:
    started = time.process_time()
    assert len(readable(text)) == len(text)
    assert time.process_time() - started < 2

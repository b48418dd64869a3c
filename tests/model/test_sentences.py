"""A text is read in no time, whatever it holds."""

import time

import pytest

from quaid.model.english import blank_out_code


def test_code_and_comments_are_blanked_and_all_else_keeps_its_place() -> None:
    assert blank_out_code("a `b` c <!-- d\ne --> f") == "a     c       \n      f"
    assert blank_out_code("a <!-- never closed") == "a <!-- never closed"


@pytest.mark.parametrize("text", ["Bob left Acme <!-- " * 40_000, "`a` " * 120_000, "<!-- a --> " * 60_000])
def test_hostile_text_is_read_in_no_time(text: str) -> None:
    started = time.process_time()
    assert len(blank_out_code(text)) == len(text)
    assert time.process_time() - started < 2

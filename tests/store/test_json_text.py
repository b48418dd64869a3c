"""JSON in rows: short, in the letters it was written in, and the same when it is read."""

from typing import Any

import pytest

from quaid.store.json_text import as_json, from_json


def test_json_is_kept_short_and_readable() -> None:
    assert as_json({"name": "Zoë", "tags": ["a", "b"]}) == '{"name":"Zoë","tags":["a","b"]}'


@pytest.mark.parametrize("value", [{}, [], {"a": None}, ["x"], "", 0, [[]], {"a": {}}])
def test_what_was_kept_comes_back(value: Any) -> None:
    assert from_json(as_json(value)) == value


@pytest.mark.parametrize("text", ["{}", "[]"])
def test_nothing_read_twice_is_not_shared(text: str) -> None:
    first, second = from_json(text), from_json(text)
    assert first == second
    assert first is not second

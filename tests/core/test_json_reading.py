"""Our reader of JSON gives what that of the standard library gives; each test holds one against the other."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from quaid.core import json_reading

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_was_written_is_read(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert json_reading.loads(text) == json.loads(text) == value


@pytest.mark.parametrize(
    "text", ["  [1, 2]\n", "[1]  ", '{"a": 1, "a": 2}', "-Infinity", "1e400", '"\\ud800"']
)
def test_odd_texts_are_read_as_the_library_reads_them(text: str) -> None:
    assert json_reading.loads(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", " ", "[1", "[1] x", "{'a': 1}", '"a\nb"', "1" * 5_000, "nul"])
def test_what_is_no_json_is_a_value_error_with_the_words_of_the_library(text: str) -> None:
    with pytest.raises(ValueError) as ours:  # noqa: PT011 - its words are compared
        json_reading.loads(text)
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        json.loads(text)
    assert str(ours.value) == str(theirs.value)


def test_reading_loads_neither_json_nor_re() -> None:
    code = (
        "import sys; from quaid.core.json_reading import loads; print(loads('[1.5]'), 'json' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.5] False\n"

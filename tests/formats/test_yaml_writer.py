"""Written YAML: readable where it can be, and always read back as it was."""

import json
import math
from typing import Any

import pytest
import ryaml
from hypothesis import example, given, settings, strategies as st

from quaid.formats import markdown

# fmt: off
AWKWARD = st.sampled_from([
    "", "yes", "No", "~", "null", "012", "1e3", "1_000", "0x1f", "12:30:45", "2024-01-01", "true", "=", "<<",
    "-", "- a", "a: b", "a:b", "a #b", "#a", "it's", '"q"', "&a", "*a", "!t", "%x", "@x", "`x", "{a}", "[a]",
    "a, b", "? a", "| a", "a\nb", "a\n", "\ta", " a", "a ", "\x00", "\x07", "\x7f", "\x85", "\u2028",
    "\ufeff", "\ufffe", "\U0001f389", "知识", "https://x.y/z?a=b", "http://x", "---", "...", "--- a",
    "a\r\nb", "\\", "\\n", "a" * 2000, "é" * 1100, ".inf", "+1",
])
# fmt: on
TEXT = AWKWARD | st.text(max_size=30)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
MAPPINGS = st.dictionaries(TEXT, VALUES, max_size=6)


def read(text: str) -> Any:
    return ryaml.loads(text)  # type: ignore[attr-defined]


@given(MAPPINGS, st.booleans())
@settings(max_examples=150)
@example({"a": [[], {}, [[]], [{}], [[1], [2, [3]]], {"b": {}}]}, False)
@example({"k" * 1500: {"a": 1}, "x": [{"l" * 1500: [1, {"b": 2}]}]}, False)
@example({"a": -0.0, "b": 1e300, "c": 5e-324, "d": 1e16, "e": 1.0}, False)
def test_written_yaml_parses_to_the_same_values(values: dict[str, Any], guarded: bool) -> None:
    text = markdown.write_yaml(values, guarded=guarded)
    assert json.dumps(read(text) or {}) == json.dumps(values)
    assert not any(line.rstrip() in ("---", "...") for line in text.split("\n"))


@given(MAPPINGS)
def test_guarded_text_hides_brackets_and_anchors(values: dict[str, Any]) -> None:
    text = markdown.write_yaml(values, guarded=True)
    assert "&" not in text
    assert "*" not in text
    assert not set(text.replace("[]", "").replace("{}", "")) & set("[]{}")


def test_ordinary_front_matter_is_readable() -> None:
    values = {
        "title": "Alice Example",
        "born": "1990-01-02",
        "url": "https://example.org/a",
        "tags": ["infra", "ops", "a: b"],
        "empty": [],
        "score": 0.5,
        "n": 3,
        "ok": True,
        "none": None,
        "contact": {"email": "a@example.org", "phones": ["1", "2"]},
        "links": [{"to": "companies/river", "valid_from": "2024-01-15"}, {"to": "x"}],
        "matrix": [[1, 2], [3, 4]],
        "quote": 'She said "no"\nand left',
    }
    assert markdown.write_yaml(values) == (
        "title: Alice Example\n"
        "born: 1990-01-02\n"
        "url: https://example.org/a\n"
        'tags: [infra, ops, "a: b"]\n'
        "empty: []\n"
        "score: 0.5\n"
        '"n": 3\n'
        "ok: true\n"
        "none: null\n".replace("none:", '"none":')
        + "contact:\n"
        "  email: a@example.org\n"
        '  phones: ["1", "2"]\n'
        "links:\n"
        "  - to: companies/river\n"
        "    valid_from: 2024-01-15\n"
        "  - to: x\n"
        "matrix:\n"
        "  - [1, 2]\n"
        "  - [3, 4]\n"
        'quote: "She said \\"no\\"\\nand left"\n'
    )


def test_a_long_list_goes_down_the_page() -> None:
    text = markdown.write_yaml({"names": ["a" * 40, "b" * 40, "c" * 40]})
    assert text.count("\n  - ") == 3


@pytest.mark.parametrize("odd", [math.nan, math.inf, 2**64, -(2**63) - 1, "\ud800"])
def test_values_without_yaml_form_become_text(odd: Any) -> None:
    assert isinstance(read(markdown.write_yaml({"a": odd}))["a"], str)


def test_days_stand_without_quotes_and_other_digits_do_not() -> None:
    values = {"due": "2024-02-29", "days": ["2024-01-15", "x"], "no": "2023-02-29", "2024-01-15": "2024-01"}
    text = markdown.write_yaml(values)
    assert text == ('due: 2024-02-29\ndays: [2024-01-15, x]\n"no": "2023-02-29"\n"2024-01-15": "2024-01"\n')
    assert read(text) == values

"""Front matter: what is read, what is refused, and at what cost."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidFrontMatter
from quaid.formats import markdown


def complaint(text: str) -> str:
    with pytest.raises(InvalidFrontMatter) as caught:
        markdown.read_yaml(text)
    return str(caught.value.facts["problem"])


def test_yaml_becomes_values_that_json_can_carry() -> None:
    values = markdown.read_yaml(
        "title: A\ndate: 2024-01-01\nyes: no\n2: one\n~: nothing\ntrue: x\n1.5: y\nbig: .inf\n"
        "odd: [.nan, -.inf]\nt: !x 1"
    )
    assert values == {
        "title": "A",
        "date": "2024-01-01",
        "yes": "no",
        "2": "one",
        "null": "nothing",
        "true": "x",
        "1.5": "y",
        "big": ".inf",
        "odd": [".nan", "-.inf"],
        "t": {"!x": 1},
    }
    assert json.loads(json.dumps(values)) == values


def test_toml_becomes_values_that_json_can_carry() -> None:
    values = markdown.read_toml(
        'title = "A"\nday = 2024-01-01\nat = 2024-01-01T10:00:00Z\nt = 10:00:00\nn = nan\n'
        "big = 99999999999999999999\n[a.b]\nc = [1]"
    )
    assert values == {
        "title": "A",
        "day": "2024-01-01",
        "at": "2024-01-01T10:00:00+00:00",
        "t": "10:00:00",
        "n": ".nan",
        "big": "99999999999999999999",
        "a": {"b": {"c": [1]}},
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_block_is_an_empty_mapping(text: str) -> None:
    assert markdown.read_yaml(text) == {}
    assert markdown.read_toml(text) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: [1", "line 2: did not find expected ',' or ']'"),
        ("a: 1\nb: 'x\nc: 2\n", "line 2: found unexpected end of stream"),
        ("a: 1\nb\nc: 2\n", "line 2: could not find expected ':'"),
        ("a: 1\nb: 2\n c: 3", "line 3"),
        ("a: 1\nb: c: d", "line 2: mapping values are not allowed"),
        ("- a\n- b", "a list"),
        ("just words", "plain text"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' appears twice"),
        ("1: a\n'1': b", "spelled alike"),
        ("a: {{ template }}", "where a key should"),
        ("a: 1\nb: 99999999999999999999", "line 2: an integer has more than 64 bits"),
        ("a: 1\nb: x\x07", "line 2: control characters"),
        ("a: 1\n--- b\n", "more than one YAML document"),
        ("a: &x [1]\nb: *x", "the anchor &x"),
        ("a: &x [1]\nb: [*x,*x]", "the anchor &x"),
        ("a: " + "x" * 70_000, "65,536 are allowed"),
        ("a: " + "[" * 101 + "]" * 101, "deeper than 100"),
        ("\n".join(" " * depth + "a:" for depth in range(110)), "deeper than 100"),
        ("a: '" + "[" * 3000 + "'", "3,000 brackets"),
        ("a: \ud800", "lone surrogate"),
    ],
)
def test_a_bad_block_is_refused_in_a_few_words_with_its_line(text: str, problem: str) -> None:
    complaint_text = complaint(text)
    assert problem in complaint_text
    assert len(complaint_text) < 150


def test_the_line_is_counted_in_the_file_when_its_start_is_given() -> None:
    with pytest.raises(InvalidFrontMatter, match="line 3: "):
        markdown.read_yaml("a: 1\nb: [1", first_line=2)
    with pytest.raises(InvalidFrontMatter, match="line 3: "):
        markdown.read_toml("a = 1\nb = [1 2]", first_line=2)


def test_anchors_that_nothing_repeats_and_stars_that_repeat_nothing_are_fine() -> None:
    assert markdown.read_yaml("a: &x 1\nb: Q&A about *A*\nc: 2 * 3") == {
        "a": 1,
        "b": "Q&A about *A*",
        "c": "2 * 3",
    }


UNITS = [
    "[",
    "{",
    "- ",
    "? ",
    "{a: ",
    "[a,",
    "[? ",
    "[[],",
    "!a ",
    "&a ",
    "*a ",
    "'",
    '"',
    "|\n ",
    "\t",
    '["]",',
    "a:\n",
    "%",
]


@pytest.mark.parametrize("head", ["", "a: ", "a:\n  "])
@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_block_costs_little(head: str, unit: str) -> None:
    text = head + unit * (65_000 // len(unit))
    for read in (markdown.read_yaml, markdown.read_toml):
        start = time.process_time()
        try:
            read(text)
        except InvalidFrontMatter:
            pass
        assert time.process_time() - start < 5


def test_toml_that_nests_by_dotted_keys_is_refused() -> None:
    with pytest.raises(InvalidFrontMatter, match="deeper than 100"):
        markdown.read_toml(".".join(["a"] * 500) + " = 1")


@given(
    st.text(
        alphabet=st.sampled_from(list("ab:-?#&*!|>'\"%@`[]{},. \n\t0123~\\=+\x07\x85\u2028")), max_size=60
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (markdown.read_yaml, markdown.read_toml):
        try:
            values = read(text)
        except InvalidFrontMatter:
            continue
        assert json.loads(json.dumps(values, allow_nan=False)) == values
        assert markdown.read_yaml(markdown.dump_yaml(values)) == values


@pytest.mark.parametrize(
    "values",
    [
        {"a": "[" * 500},
        {"a": ["{"] * 300},
        {"a": "x, &b", "c": "y, *b"},
        {"a": "[" * 5000},
        {"a": [["["]] * 200},
    ],
)
def test_text_that_only_looks_hostile_is_written_so_that_it_can_be_read(values: dict[str, Any]) -> None:
    assert markdown.read_yaml(markdown.dump_yaml(values)) == values


def test_nesting_to_the_limit_is_written_and_read() -> None:
    values: Any = 1
    for level in range(99):
        values = {"a": values} if level % 2 else [values]
    deep = {"a": values}
    assert markdown.plain_values(deep) == deep
    assert markdown.read_yaml(markdown.dump_yaml(deep)) == deep
    with pytest.raises(InvalidFrontMatter, match="deeper than 100"):
        markdown.plain_values({"a": [deep]})


def test_values_from_elsewhere_are_made_plain_or_refused() -> None:
    assert markdown.plain_values({1: math.nan, "t": (1, 2**70), "s": "a\ud800"}) == {
        "1": ".nan",
        "t": [1, str(2**70)],
        "s": "a\ufffd\ufffd\ufffd",
    }
    with pytest.raises(InvalidFrontMatter, match="65,536 are allowed"):
        markdown.plain_values({"a": "x" * 70_000})

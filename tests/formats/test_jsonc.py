"""JSON with comments changed in place."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.formats import config_text

ENTRY = {"command": "/bin/quaid", "args": ["serve"]}
ZED = """\
// My settings
{
  "theme": "One Dark", // dark
  /* servers
     of mine */
  "context_servers": {
    "other": { "command": "x", "args": [] }, // keep
  },
  "vim_mode": true, // last
}
"""
PATHS = ("mcpServers", "quaid")


def test_comments_and_trailing_commas_are_read() -> None:
    assert config_text.parse_json(ZED)["context_servers"]["other"]["command"] == "x"
    assert config_text.parse_json('\ufeff{"a": "// no comment /* nor this */"}') == {
        "a": "// no comment /* nor this */"
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a" 1}',
        '{"a": 1} x',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a": /* 1}',
        "[" * 200,
        '{"a":1,"a":2}',
    ],
)
def test_invalid_json_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(config_text.NotJson):
        config_text.put_json(text, PATHS, ENTRY)


def test_a_member_is_put_in_and_nothing_else_changes() -> None:
    new = config_text.put_json(ZED, ("context_servers", "quaid"), ENTRY)
    assert config_text.parse_json(new)["context_servers"] == {
        "other": {"command": "x", "args": []},
        "quaid": ENTRY,
    }
    added = [line for line in new.splitlines() if line not in ZED.splitlines()]
    assert added[0] == '    "quaid": {'
    assert [line for line in new.splitlines() if line in ZED.splitlines()][:7] == ZED.splitlines()[:7]


def test_a_file_without_servers_gets_them_behind_the_last_comment() -> None:
    text = '{\n\t"a": 1 // one\n}\n'
    assert config_text.put_json(text, ("s", "q"), {"c": 1}) == (
        '{\n\t"a": 1, // one\n\t"s": {\n\t\t"q": {\n\t\t\t"c": 1\n\t\t}\n\t}\n}\n'
    )


def test_a_file_on_one_line_stays_on_one_line() -> None:
    assert config_text.put_json('{"a": 1}', PATHS, {"c": 1}) == '{"a": 1, "mcpServers": {"quaid": {"c": 1}}}'


def test_line_ends_of_windows_stay() -> None:
    new = config_text.put_json('{\r\n    "a": 1\r\n}\r\n', PATHS, ENTRY)
    assert new.count("\n") == new.count("\r\n")
    assert '\r\n    "mcpServers": {\r\n        "quaid"' in new


def test_the_same_value_again_changes_no_byte() -> None:
    new = config_text.put_json(ZED, ("context_servers", "quaid"), ENTRY)
    assert config_text.put_json(new, ("context_servers", "quaid"), ENTRY) == new


def test_way_through_something_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(config_text.NotJson, match="mcpServers is not an object"):
        config_text.put_json('{"mcpServers": []}', PATHS, ENTRY)
    with pytest.raises(config_text.NotJson, match="the whole is not an object"):
        config_text.put_json("[]", PATHS, ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{\n}\n",
        '{"a":1}',
        '{\n  "a": 1\n}\n',
        '{\n  "a": 1,\n}',
        '{\n    "mcpServers": {\n        "x": {"command": "y"}\n    },\n    "z": [1, 2]\n}\n',
        '{\r\n\t"mcpServers": {"x": 1}, // mine\r\n}\r\n',
        '{\n  // only a remark\n  "a": 1 /* one */\n  // end\n}\n',
        ZED,
    ],
)
def test_put_and_remove_give_back_the_bytes(text: str) -> None:
    new = config_text.put_json(text, PATHS, ENTRY)
    assert config_text.parse_json(new)["mcpServers"]["quaid"] == ENTRY
    back = config_text.remove_json(new, PATHS)
    assert back == text or (text == "{\n}\n" and back == "{}\n")


def test_items_of_lists_come_and_go() -> None:
    text = '{\n  "hooks": {\n    "Stop": [\n      {"mine": 1}\n    ]\n  }\n}\n'
    new = config_text.append_json(text, ("hooks", "Stop"), {"ours": 2})
    new = config_text.append_json(new, ("hooks", "PreCompact"), {"ours": 2})
    assert config_text.parse_json(new)["hooks"] == {
        "Stop": [{"mine": 1}, {"ours": 2}],
        "PreCompact": [{"ours": 2}],
    }
    for event in ("Stop", "PreCompact"):
        new = config_text.remove_json_items(new, ("hooks", event), lambda item: "ours" in item)
    assert new == text


def test_taking_out_the_first_and_the_middle_member_keeps_the_others() -> None:
    text = '{\n  "a": 1, // one\n  "b": 2, // two\n  "c": 3\n}'
    assert config_text.remove_json(text, ("a",)) == '{ // one\n  "b": 2, // two\n  "c": 3\n}'
    assert config_text.remove_json(text, ("b",)) == '{\n  "a": 1, // one // two\n  "c": 3\n}'
    assert config_text.remove_json(text, ("c",)) == '{\n  "a": 1, // one\n  "b": 2 // two\n}'
    assert config_text.remove_json(text, ("d",)) == text


names = st.text(st.sampled_from('ab"\\/,{}[]: é\n'), min_size=1, max_size=4)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\/,{}'), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(names, trees, max_size=4), st.sampled_from([None, 2, 4, "\t"]), names, trees)
def test_any_text_gets_the_value_and_loses_it_again(
    value: dict[str, Any], indent: int | str | None, key: str, added: Any
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    new = config_text.put_json(text, (key,), added)
    assert json.loads(new) == {**value, key: added}
    if key not in value:
        assert config_text.remove_json(new, (key,)) == text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{\n  // mine\n  "a": 1\n}\n', ("a",)),
        ('{\n  "a": 1, // one\n  "b": 2, "c": 3\n}', ("b",)),
        ('{\n  "a": 1, // one\n  "b": 2}', ("b",)),
        ('{\n  "a": 1 // one\n  , "b": 2 }', ("b",)),
        ('{ // x\n  "a": 1, "b": 2 }', ("a",)),
        ('{\n  // mine\n  "s": {"q": 1}\n}\n', ("s", "q")),
    ],
)
def test_a_comment_ends_where_it_should(text: str, path: tuple[str, ...]) -> None:
    gone = config_text.remove_json(text, path)
    expected = config_text.parse_json(text)
    del expected[path[0]]
    assert config_text.parse_json(gone) == expected
    assert [mark in gone for mark in ("// mine", "// one", "// x")] == [
        mark in text for mark in ("// mine", "// one", "// x")
    ]
    again = config_text.put_json(gone, path, 5)
    assert config_text.parse_json(again)[path[0]] in (5, {"q": 5})
    assert {key: value for key, value in config_text.parse_json(again).items() if key != path[0]} == expected


remarks = st.sampled_from(["", " ", "\n", "\n  ", "// r\n", "/* r */", " // , }\n\t", "\r\n"])


@st.composite
def commented(draw: st.DrawFn) -> tuple[str, list[str]]:
    """An object with remarks at every place where they may stand."""
    keys = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4))
    parts = [draw(remarks), "{", draw(remarks)]
    for number, key in enumerate(keys):
        last = number == len(keys) - 1
        comma = "" if last and draw(st.booleans()) else ","
        parts += [
            f'"{key}"',
            draw(remarks),
            ":",
            draw(remarks),
            str(number),
            draw(remarks),
            comma,
            draw(remarks),
        ]
    return "".join([*parts, "}", draw(remarks)]), keys


@given(commented())
def test_any_remarks_are_lived_with(drawn: tuple[str, list[str]]) -> None:
    text, keys = drawn
    value = config_text.parse_json(text)
    assert config_text.parse_json(config_text.put_json(text, PATHS, ENTRY)) == {
        **value,
        "mcpServers": {"quaid": ENTRY},
    }
    for key in keys:
        try:
            gone = config_text.remove_json(text, (key,))
        except config_text.NotJson:
            continue  # refused, and nothing was changed
        assert config_text.parse_json(gone) == {name: item for name, item in value.items() if name != key}

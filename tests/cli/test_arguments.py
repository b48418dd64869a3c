"""Words of a command line to arguments."""

import io
from pathlib import Path
from typing import Any

import pytest

from quaid.cli import parser
from quaid.errors import FileTrouble, InvalidArgument, TooLarge
from quaid.operations import dispatch


def parse(line: list[str]) -> dict[str, Any]:
    split = parser.split_command_line(line)
    return parser.parse_arguments(split.rest, dispatch.find_command(split.command).params)


def test_common_options_are_accepted_anywhere() -> None:
    for line in (["--db", "x.db", "--json", "get", "a"], ["get", "a", "--json", "--db=x.db"]):
        split = parser.split_command_line(line)
        assert (split.command, split.rest, split.db, split.as_json) == ("get", ["a"], "x.db", True)


def test_a_command_may_have_two_words() -> None:
    assert parser.split_command_line(["config", "get", "version"])[:2] == ("config get", ["version"])
    assert parser.split_command_line(["config"])[:2] == ("config", [])


def test_a_search_needs_no_quotes() -> None:
    assert parse(["search", "river", "ai", "--limit", "3"]) == {"query": "river ai", "limit": 3}


def test_words_after_two_dashes_are_not_options() -> None:
    assert parse(["search", "--", "--limit", "3"]) == {"query": "--limit 3"}


def test_short_options_are_refused_except_in_text() -> None:
    with pytest.raises(InvalidArgument, match="no such option"):
        parse(["get", "-q"])
    assert parse(["search", "-v", "-1"]) == {"query": "-v -1"}  # any text is a search
    assert parse(["search", "-hello"]) == {"query": "-hello"}
    assert parse(["get", "--", "-q"]) == {"slug": ["-q"]}


def test_an_option_with_a_list_takes_further_words() -> None:
    line = ["golden", "add", "Who?", "--expect", "people/a", "people/b", "--within", "3"]
    assert parse(line) == {"query": "Who?", "expect": ["people/a", "people/b"], "within": 3}
    with pytest.raises(InvalidArgument, match="unexpected argument"):
        parse(["golden", "add", "Who?", "people/a"])


def test_values_may_be_joined_by_an_equals_sign() -> None:
    assert parse(["list", "--type=person", "--limit=5"]) == {"type": "person", "limit": 5}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["get"], "SLUG: is missing"),
        (["history", "a", "b"], "'b': unexpected argument"),
        (["list", "--limti", "5"], "did you mean '--limit'"),
        (["ingest-source", "--content", "a"], "--content: is not an option; write the value alone"),
        (["list", "--limit"], "--limit: needs a value"),
        (
            ["list", "--type", "-x"],
            "--type: needs a value; one that starts with a dash is written --type=VALUE",
        ),
        (["list", "--limit", "five"], "must be a whole number"),
        (["raw", "a", "--data", "{"], "must be JSON"),
    ],
)
def test_errors_name_the_wrong_argument(line: list[str], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says.replace("[", "\\[")):
        parse(line)


def test_invalid_bytes_become_replacement_characters() -> None:
    assert parse(["search", "caf\udce9"]) == {"query": "caf\N{REPLACEMENT CHARACTER}"}


def test_a_page_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Ä", encoding="utf-8")
    assert parse(["put", "a", str(tmp_path / "a.md")]) == {"slug": "a", "content": "# Ä"}


def test_a_page_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"# From stdin")))
    assert parse(["put", "a"])["content"] == "# From stdin"
    assert "content" not in parse(["put", "a", "--compiled-truth", "x"])


def test_file_options_read_files_and_standard_input_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "said.org"
    path.write_text("From a file.")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"From a pipe.")))
    assert parse(["kb", "remember", "--file", str(path)]) == {"file": "From a file."}
    assert parse(["kb", "capture", "notes.txt"]) == {"source": "notes.txt"}
    assert parse(["kb", "capture", "https://example.org", "--excerpt", "-"])["excerpt"] == "From a pipe."


def test_unreadable_binary_and_large_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (dispatch.MAX_TEXT + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TooLarge):
        parse(["put", "a", str(tmp_path / "big")])
    with pytest.raises(FileTrouble, match="not UTF-8"):
        parse(["put", "a", str(tmp_path / "binary")])
    with pytest.raises(FileTrouble, match="cannot be read"):
        parse(["put", "a", str(tmp_path / "missing")])

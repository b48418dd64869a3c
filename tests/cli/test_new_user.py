"""Commands as a new user types them: messages show addresses and options as they have to be typed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quaid.cli.main import main

Result = tuple[int, str, str]
Quaid = Callable[..., Result]


@pytest.fixture
def quaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quaid:
    """Run a command in an empty home, with a memory that has the page `red` and the collection `vault`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUAID_HANDOVER", "off")
    monkeypatch.setenv("QUAID_BACKGROUND_EMBEDDING", "off")
    monkeypatch.chdir(tmp_path)
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "blue.md").write_text("# Blue\n")
    (vault / "green.md").write_text("# Green\n")

    def run(*words: str) -> Result:
        status = main([*words])
        return (status, *capsys.readouterr())

    assert run("init")[0] == 0
    assert run("put", "red", "--compiled-truth", "# Red\n\nA colour.")[0] == 0
    assert run("collection", "add", "vault", str(vault))[0] == 0
    return run


def test_messages_show_the_address_with_its_collection(quaid: Quaid) -> None:
    assert (
        "Added to vault::blue: "
        in quaid("timeline-add", "vault::blue", "--date", "2026-01-01", "--summary", "X")[1]
    )
    assert "Updated vault::blue: " in quaid("put", "vault::blue", "--compiled-truth", "# Blue\n\nSky.")[1]
    assert quaid("links", "vault::green")[1].startswith("vault::green has no outgoing links")
    assert "(vault::green is at version " in quaid("link", "vault::green", "red")[1]
    assert "(vault::green, version " in quaid("assert", "vault::green", "likes", "sun")[1]
    assert quaid("raw", "vault::green")[1] == "vault::green has no raw data\n"
    assert quaid("tags", "vault::green")[1] == "vault::green has no tags\n"
    assert quaid("tags", "red")[1] == "red has no tags\n"
    assert "There is no page vault::yellow." in quaid("get", "vault::yellow")[2]
    assert "There is no page yellow." in quaid("get", "yellow")[2]


def test_a_page_in_quarantine_names_the_command_that_restores_it(quaid: Quaid, tmp_path: Path) -> None:
    (tmp_path / "vault" / "blue.md").unlink()
    synced = quaid("collection", "sync", "vault")[1]
    assert "`quaid collection quarantine list vault` lists it\n" in synced
    for address in ("vault::blue", "blue"):
        status, _, message = quaid("get", address)
        assert status == 3
        assert "It is in quarantine since " in message
        assert "`quaid collection quarantine restore vault::blue` restores it." in message
    assert quaid("collection", "quarantine", "restore", "vault::blue")[0] == 0
    assert quaid("get", "vault::blue")[0] == 0


def test_titles_reports_unknown_names(quaid: Quaid) -> None:
    status, out, warning = quaid("titles", "red", "nowhere")
    assert (status, out) == (0, "red  Red (red)\n")
    assert warning == "quaid: no page has the name nowhere; `quaid search WORDS` finds pages\n"
    assert quaid("titles", "red")[2] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "--keep", "left"], "quaid: --keep: needs --resolve with the id of a contradiction.\n"),
        (["check", "--note", "Fine."], "quaid: --note: needs --resolve with the id of a contradiction.\n"),
        (["raw", "red", "--data", "{}"], "quaid: --source: is required with --data.\n"),
        (
            ["put", "red", "--compiled-truth", "x", "--replace-timeline"],
            "quaid: --replace-timeline: needs FILE with the new timeline.\n",
        ),
        (
            ["list", "--kind", "x"],
            "quaid: --kind: there is no such option. `quaid list --help` shows the usage.\n",
        ),
    ],
)
def test_errors_name_options_as_typed(quaid: Quaid, words: list[str], message: str) -> None:
    assert quaid(*words) == (2, "", message)


@pytest.mark.parametrize(("typed", "option"), [("--bd", "--db"), ("--typ", "--type"), ("--limti", "--limit")])
def test_misspelled_options_are_corrected(quaid: Quaid, typed: str, option: str) -> None:
    assert f"(did you mean '{option}'?)" in quaid("list", typed, "x")[2]


def test_a_missing_config_file_is_reported_as_missing(quaid: Quaid, tmp_path: Path) -> None:
    status, _, message = quaid("--config", "nope.yaml", "list")
    assert status == 2
    assert message.startswith(f"quaid: There is no config file {tmp_path / 'nope.yaml'}")


def test_resolving_without_a_side_says_that_both_are_kept(quaid: Quaid) -> None:
    for page, place in (("people/ann", "Oslo"), ("people/bob", "Rome")):
        quaid("put", page, "--compiled-truth", f"# {page[7:].title()}")
        quaid("assert", page, "lives_in", place, "--subject", "Ann")
    listing = quaid("check")[1]
    number = listing.split(".")[0]
    both = "  Both statements are kept; --keep left or --keep right would end the other one\n"
    assert quaid("check", "--resolve", number)[1] == f"Resolved {number}\n{both}"
    again = quaid("check", "--resolve", number)[1]
    assert again.startswith(f"{number} was already resolved on ")
    assert again.endswith(both)
    left = quaid("check", "--resolve", number, "--keep", "left")[1]
    assert left.startswith(f"Resolved {number} again: ")


def test_a_version_that_is_not_listed_is_explained(quaid: Quaid) -> None:
    quaid("raw", "red", "--source", "crm", "--data", '{"id": 7}')
    quaid("put", "red", "--compiled-truth", "# Red\n\nA warm colour.")
    status, _, message = quaid("revert", "red", "--to", "1")
    assert status == 3
    assert "Stored versions: 3, 2. A version that changed no text has the text of the next one" in message
    assert quaid("revert", "red", "--to", "2")[0] == 0
    assert "A colour." in quaid("get", "red")[1]


def test_a_page_whose_name_begins_like_the_input_is_a_match(quaid: Quaid) -> None:
    assert quaid("glance", "gre")[1].startswith("Possible answers (weak evidence)")


def test_one_of_a_kind_is_named_in_the_singular(quaid: Quaid) -> None:
    quaid("tag", "red", "warm")
    preview = quaid("forget", "red", "--dry-run")[1]
    assert "        1  tag\n" in preview
    assert "        1  chunk\n" in preview


def test_help_of_a_command_names_its_options(quaid: Quaid) -> None:
    put = quaid("put", "--help")[1]
    assert "whole (FILE) or in parts" in put
    assert "--compiled-truth" in put
    assert "(with --source and --data)" in quaid("raw", "--help")[1]
    untag = quaid("untag", "--help")[1]
    assert "The same as tag --remove." in untag
    assert "quaid tag people/alice" not in untag


def test_nothing_found_names_a_next_step(quaid: Quaid) -> None:
    assert "`quaid query` also searches by meaning." in quaid("search", "zeppelin")[1]
    assert "`quaid list` shows what the memory has." in quaid("query", "zeppelin")[1]


def test_an_option_of_the_config_file_names_the_file(quaid: Quaid, tmp_path: Path) -> None:
    message = quaid("config", "set", "search.max_results", "5")[2]
    assert f"cannot be set in the memory; write it into {tmp_path / '.quaid' / 'config.yaml'}" in message
    assert "or set QUAID_SEARCH_MAX_RESULTS" in message


def test_compact_reports_the_size_of_the_log(quaid: Quaid) -> None:
    assert " were moved into it. It can be copied now." in quaid("compact")[1]
    assert "; the log was already empty. It can be copied now." in quaid("compact")[1]

"""What a page said before, with a file and without one."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    CollectionReadOnly,
    FileChanged,
    InvalidArgument,
    InvalidDate,
    NotFound,
    PageNotFound,
    VersionConflict,
)
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Scope

FIRST = b"---\r\ntitle: Alice   # hers\r\n---\r\n\r\nLives in Oslo.\r\n\r\n"


def run(brain: Brain, command: str, scope: Scope = "owner", **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, scope))


@pytest.fixture
def alice(brain: Brain, tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "alice.md").write_bytes(FIRST)
    run(brain, "collection add", name="notes", path=str(root))
    return root / "alice.md"


def listed(brain: Brain, slug: str) -> list[tuple[int, str, bool]]:
    versions = run(brain, "history", slug=slug)["versions"]
    return [(item["version"], item["by"], item["is_present"]) for item in versions]


def test_versions_of_a_file_are_those_that_were_read_and_those_that_were_written(
    brain: Brain, alice: Path
) -> None:
    run(brain, "put", slug="alice", compiled_truth="Lives in Bergen.")
    alice.write_bytes(alice.read_bytes().replace(b"Bergen", b"Paris"))
    run(brain, "collection sync")
    assert listed(brain, "alice") == [(3, "sync", True), (2, "edit", False), (1, "sync", False)]


def test_a_file_gets_its_very_bytes_back_as_a_new_version(brain: Brain, alice: Path) -> None:
    run(brain, "put", slug="alice", content="All new.")
    result = run(brain, "revert", slug="alice", to=1)
    assert (result["version"], result["changed"], result["path"]) == (3, True, "alice.md")
    assert alice.read_bytes() == FIRST
    assert run(brain, "get", slug="alice")["compiled_truth"] == "Lives in Oslo."
    synced = run(brain, "collection sync")["syncs"][0]
    assert (synced["changed"], synced["unchanged"]) == (0, 1)
    assert [hit["slug"] for hit in run(brain, "search", query="Oslo")["hits"]] == ["alice"]
    assert run(brain, "revert", slug="alice", to=3)["changed"] is False


def test_an_edit_from_outside_is_not_reverted_away(brain: Brain, alice: Path) -> None:
    run(brain, "put", slug="alice", compiled_truth="Second.")
    alice.write_text("somebody's own")
    with pytest.raises(FileChanged):
        run(brain, "revert", slug="alice", to=1)
    assert alice.read_text() == "somebody's own"
    page = run(brain, "get", slug="alice")  # what they wrote is read, so that the next look shows it
    assert (page["compiled_truth"], page["version"]) == ("somebody's own", 3)
    run(brain, "revert", slug="alice", to=1)
    assert alice.read_bytes() == FIRST


def test_a_page_without_a_file_has_a_history_too(brain: Brain) -> None:
    run(brain, "put", slug="bob", content="---\nrank: 1\n---\n# Bob\n\nOne.")
    run(brain, "put", slug="bob", compiled_truth="# Bob\n\nTwo.")
    run(brain, "tag", slug="bob", tag="founder")
    assert listed(brain, "bob") == [(3, "edit", True), (2, "edit", False), (1, "made", False)]
    run(brain, "revert", slug="bob", to=1)
    page = run(brain, "get", slug="bob")
    assert (page["version"], page["compiled_truth"], page["tags"]) == (4, "# Bob\n\nOne.", [])
    assert listed(brain, "bob")[0] == (4, "edit", True)
    run(brain, "revert", slug="bob", to=3)
    assert run(brain, "get", slug="bob")["tags"] == ["founder"]
    assert run(brain, "validate")["violations"] == []


def test_an_agent_has_to_name_the_version_that_it_read(brain: Brain) -> None:
    run(brain, "put", slug="bob", content="One.")
    run(brain, "put", slug="bob", content="Two.")
    with pytest.raises(InvalidArgument, match="expected_version"):
        run(brain, "revert", "write", slug="bob", to=1)
    with pytest.raises(VersionConflict, match="is at version 2, not 1"):
        run(brain, "revert", "write", slug="bob", to=1, expected_version=1)
    assert run(brain, "revert", "write", slug="bob", to=1, expected_version=2)["version"] == 3


def test_a_read_only_folder_is_not_written(brain: Brain, alice: Path) -> None:
    alice.write_text("Second.")
    run(brain, "collection sync")
    brain.db.write(lambda tx: tx.execute("UPDATE collections SET writable = 0 WHERE name = 'notes'"))
    with pytest.raises(CollectionReadOnly):
        run(brain, "revert", slug="alice", to=1)
    assert alice.read_text() == "Second."


def test_ten_versions_are_kept_and_none_of_the_replaced_ones_goes_at_once(brain: Brain, alice: Path) -> None:
    for number in range(15):
        alice.write_text(f"Text {number}.")
        os.utime(alice, (number, number))
        run(brain, "collection sync")
    assert [version for version, _, _ in listed(brain, "alice")] == list(range(16, 5, -1))
    for number in range(15):
        run(brain, "put", slug="bob", content=f"Text {number}.")
    assert [version for version, _, _ in listed(brain, "bob")] == list(range(15, 4, -1))


def test_an_old_text_that_is_changed_today_is_kept_from_today_on(brain: Brain, alice: Path) -> None:
    brain.db.write(lambda tx: tx.execute("UPDATE raw_imports SET created_at = '2019-01-01T00:00:00Z'"))
    run(brain, "put", slug="alice", compiled_truth="New.")
    assert [version for version, _, _ in listed(brain, "alice")] == [2, 1]
    brain.db.write(lambda tx: tx.execute("UPDATE raw_imports SET created_at = '2019-01-02T00:00:00Z'"))
    run(brain, "put", slug="alice", compiled_truth="Newer.")
    assert [version for version, _, _ in listed(brain, "alice")] == [3, 2]


def test_a_diff_shows_what_changed_last_between_two_or_since_a_day(brain: Brain, alice: Path) -> None:
    run(brain, "put", slug="alice", compiled_truth="Lives in Bergen.")
    run(brain, "put", slug="alice", compiled_truth="Lives in Paris.")
    last = run(brain, "diff", slug="alice")
    assert (last["from_version"], last["to_version"]) == (2, 3)
    assert "-Lives in Bergen.\n+Lives in Paris." in last["diff"]
    between = run(brain, "diff", "read", slug="alice", **{"from": 1, "to": 2})
    assert "-Lives in Oslo.\n+Lives in Bergen." in between["diff"]
    brain.db.write(
        lambda tx: tx.execute(
            "UPDATE raw_imports SET created_at = '2026-04-20T10:00:00Z' WHERE page_version = 1"
        )
    )
    since = run(brain, "diff", slug="alice", since="2026-04-21")
    assert (since["from_version"], since["older"]) == (1, None)
    since = run(brain, "diff", slug="alice", since="2026-04-20")
    assert (since["from_version"], since["older"]) == (1, "the oldest stored version is of 2026-04-20")
    assert run(brain, "diff", slug="alice", since="2027-01-01")["same_text"]


def test_diff_of_a_page_without_file_starts_at_a_day(brain: Brain) -> None:
    run(brain, "put", slug="bob", content="One.")
    run(brain, "put", slug="bob", content="Two.")
    assert "-One.\n+Two." in run(brain, "diff", slug="bob")["diff"]
    brain.db.write(lambda tx: tx.execute("UPDATE pages SET created_at = '2026-04-01T10:00:00Z'"))
    since = run(brain, "diff", slug="bob", since="2026-04-10")
    assert (since["from_version"], since["from_since"], since["older"]) == (1, "2026-04-01T10:00:00Z", None)


def test_imports_and_their_bytes_are_not_disturbed(brain: Brain, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "bob.md").write_bytes(b"# Bob\r\n\r\nOne.\r\n")
    run(brain, "import", folder=str(vault))
    batch = run(brain, "imports")["imports"][0]
    for number in range(12):
        run(brain, "put", slug="bob", compiled_truth=f"Text {number}.")
    assert run(brain, "imports")["imports"] == [batch]
    assert listed(brain, "bob")[-1] == (1, "import", False)
    run(brain, "export", dir=str(tmp_path / "out"), raw=True, import_id=batch["import_id"])
    assert (tmp_path / "out" / "bob.md").read_bytes() == b"# Bob\r\n\r\nOne.\r\n"
    assert run(brain, "validate")["violations"] == []


@pytest.mark.parametrize(
    ("command", "arguments", "kind"),
    [
        ("history", {"slug": "nobody"}, PageNotFound),
        ("revert", {"slug": "bob", "to": 7}, NotFound),
        ("diff", {"slug": "bob", "from": 9}, NotFound),
        ("diff", {"slug": "bob", "since": "yesterday"}, InvalidDate),
        ("diff", {"slug": "bob", "since": "2026-01-01", "from": 1}, InvalidArgument),
    ],
)
def test_wrong_calls_say_what_there_is(
    brain: Brain, command: str, arguments: dict[str, Any], kind: type[Exception]
) -> None:
    run(brain, "put", slug="bob", content="One.")
    with pytest.raises(kind):
        run(brain, command, **arguments)
    assert run(brain, "diff", slug="bob")["older"] == "no earlier version is stored"


def test_version_that_only_facts_made_is_not_a_second_row(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "import"
    folder.mkdir()
    (folder / "alice.md").write_bytes(FIRST)
    run(brain, "import", folder=str(folder))
    run(brain, "assert", slug="alice", predicate="likes", object="Tea")
    assert listed(brain, "alice") == [(2, "import", True)]
    run(brain, "put", slug="alice", compiled_truth="Lives in Bergen.")
    run(brain, "assert", slug="alice", predicate="likes", object="Salt")
    entries = listed(brain, "alice")
    assert entries == [(4, "edit", True), (2, "import", False)]
    assert "+Lives in Bergen." in run(brain, "diff", slug="alice")["diff"]


def test_every_edit_records_agent_device_and_the_version_that_it_changed(brain: Brain) -> None:
    run(brain, "config set", key="device_name", value="laptop")
    run(brain, "put", slug="bob", content="# Bob")
    brain.agent = "claude-code"
    run(brain, "put", slug="bob", compiled_truth="# Bob\n\nLives in Oslo.", expected_version=1)
    versions = run(brain, "history", slug="bob")["versions"]
    assert [(row["author"], row["agent"], row["device"], row["base"]) for row in versions] == [
        ("claude-code", "claude-code", "laptop", 1),
        ("owner", "", "laptop", 0),
    ]


def test_history_and_blame_name_the_devices_only_if_there_are_several(brain: Brain) -> None:
    def shown(command: str) -> str:
        return render(dispatch.call(brain, dispatch.find_command(command), {"slug": "bob"}, "owner"))

    run(brain, "config set", key="device_name", value="laptop")
    run(brain, "put", slug="bob", content="# Bob")
    assert "laptop" not in shown("history") + shown("blame")
    run(brain, "config set", key="device_name", value="desktop")
    run(brain, "put", slug="bob", append="Lives in Oslo.")
    assert "edited by owner on desktop, the current version" in shown("history")
    assert "created by owner on laptop" in shown("history")
    assert "owner on laptop" in shown("blame")

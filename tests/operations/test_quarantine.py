"""Pages whose file vanished: what waits, what is written out, what comes back and what may go."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import (
    AlreadyExists,
    AmbiguousSlug,
    FolderNotEmpty,
    InvalidArgument,
    NoPlaceToRestore,
    NotFound,
    OnlyHere,
)
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def later(brain: Brain, days: int) -> None:
    """Let the quarantine of every page have begun so many days ago."""
    day = brain.now(-days * 86_400)
    brain.db.write(
        lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE quarantined_at IS NOT NULL", (day,))
    )


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    """A folder of which the index knows more than its files say, and two files that are gone."""
    root = tmp_path / "notes"
    (root / "people").mkdir(parents=True)
    (root / "people" / "alice.md").write_bytes(b"# Alice\r\n\r\nKnows [[bob]].\r\n")
    (root / "people" / "bob.md").write_text("# Bob\n\nLives in Oslo.\n")
    (root / "plain.md").write_text("# Plain\n")
    run(brain, "collection add", name="notes", path=str(root))
    run(brain, "link", **{"from": "people/alice", "to": "people/bob", "relationship": "married_to"})
    run(brain, "raw", slug="people/alice", source="crm", data={"id": 7})
    run(brain, "put", slug="people/alice", assertions=[{"predicate": "works_at", "object": "River AI"}])
    (root / "people" / "alice.md").unlink()
    (root / "plain.md").unlink()
    assert run(brain, "collection sync")["syncs"][0]["removed"] == 2
    return root


def slugs(brain: Brain) -> list[str]:
    return [page["slug"] for page in run(brain, "collection quarantine list")["pages"]]


def test_the_list_says_since_when_until_when_and_what_is_only_here(brain: Brain, notes: Path) -> None:
    alice, other = run(brain, "collection quarantine list", name="notes")["pages"]
    assert (alice["slug"], alice["path"], other["slug"]) == ("people/alice", "people/alice.md", "plain")
    assert (alice["since"][:10], alice["until"]) == ("2026-04-25", "2026-05-26")
    assert (alice["links"], alice["assertions"], alice["raw_data"]) == (1, 1, 1)
    assert (other["links"], other["assertions"], other["raw_data"]) == (0, 0, 0)
    assert run(brain, "collection quarantine list", name="default")["pages"] == []


def test_a_restored_page_is_the_same_page_with_all_that_hung_on_it(brain: Brain, notes: Path) -> None:
    uuid = brain.db.one("SELECT uuid FROM pages WHERE slug = 'people/alice'")
    run(brain, "put", slug="about", content="[[Alice]] wrote this.")
    back = run(brain, "collection quarantine restore", page="people/alice")
    assert back["path"] == "people/alice.md"
    assert (notes / "people" / "alice.md").read_bytes() == b"# Alice\r\n\r\nKnows [[bob]].\r\n"
    assert brain.db.one("SELECT uuid FROM pages WHERE slug = 'people/alice'") == uuid
    results = {link["relationship"] for link in run(brain, "links", slug="people/alice")["links"]}
    assert results == {"married_to", "mentions"}
    assert run(brain, "raw", slug="people/alice")["data"][0]["data"] == {"id": 7}
    assert [link["to_slug"] for link in run(brain, "links", slug="about")["links"]] == ["people/alice"]
    assert run(brain, "links", slug="about")["links"][0]["resolved"]
    assert "people/alice" in {hit["slug"] for hit in run(brain, "search", query="alice")["hits"]}
    synced = run(brain, "collection sync")["syncs"][0]
    assert (synced["new"], synced["changed"], synced["removed"]) == (0, 0, 0)
    assert run(brain, "validate")["violations"] == []


def test_a_file_in_the_way_is_not_written_over(brain: Brain, notes: Path) -> None:
    (notes / "plain.md").write_text("somebody else's")
    with pytest.raises(AlreadyExists, match=r"plain\.md already exists"):
        run(brain, "collection quarantine restore", page="plain")
    assert (notes / "plain.md").read_text() == "somebody else's"
    assert "plain" in slugs(brain)


def test_the_file_that_comes_back_brings_the_page_back(brain: Brain, notes: Path) -> None:
    uuid = brain.db.one("SELECT uuid FROM pages WHERE slug = 'people/alice'")
    (notes / "elsewhere").mkdir()
    (notes / "elsewhere" / "alice.md").write_bytes(b"# Alice\r\n\r\nKnows [[bob]].\r\n")
    run(brain, "collection sync")
    assert brain.db.one("SELECT uuid FROM pages WHERE slug = 'elsewhere/alice'") == uuid
    assert slugs(brain) == ["plain"]
    assert run(brain, "validate")["violations"] == []


def test_a_read_only_folder_gets_nothing_back_but_the_page_can_be_written_out(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    brain.db.write(lambda tx: tx.execute("UPDATE collections SET writable = 0 WHERE name = 'notes'"))
    with pytest.raises(NoPlaceToRestore, match=r"is read-only: .* export FOLDER plain"):
        run(brain, "collection quarantine restore", page="plain")
    assert run(brain, "collection quarantine export", path=str(tmp_path / "out"), page="plain")["files"] == 2


def test_an_export_holds_the_bytes_and_what_is_only_here(brain: Brain, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(brain, "collection quarantine export", path=str(out))
    assert (result["pages"], result["files"]) == (["people/alice", "plain"], 5)
    assert (out / "notes" / "people" / "alice.md").read_bytes() == b"# Alice\r\n\r\nKnows [[bob]].\r\n"
    beside = json.loads((out / "notes" / "people" / ".raw" / "alice.json").read_text())
    assert beside["sources"] == {"crm": {"id": 7}}
    assert [(link["relationship"], link["to_page"]) for link in beside["links"]] == [
        ("married_to", "notes::people/bob")
    ]
    assert [(assertion["predicate"], assertion["object"]) for assertion in beside["assertions"]] == [
        ("works_at", "River AI")
    ]
    alice = run(brain, "collection quarantine list")["pages"][0]
    assert alice["exported_to"] == str(out)
    with pytest.raises(FolderNotEmpty):
        run(brain, "collection quarantine export", path=str(out))


def test_an_import_of_an_export_brings_links_and_facts_back(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    run(brain, "collection quarantine export", path=str(tmp_path / "out"))
    run(brain, "collection quarantine discard", page="people/alice", yes=True)
    report = run(brain, "import", folder=str(tmp_path / "out"))["report"]
    assert (report["links"], report["facts"]) == (1, 1)
    (link,) = [
        link for link in run(brain, "links", slug="notes/people/alice")["links"] if link["context"] == ""
    ]
    assert (link["relationship"], link["to_slug"]) == ("married_to", "people/bob")


def test_knowledge_that_is_only_here_goes_only_when_it_was_written_out_or_by_force(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    with pytest.raises(OnlyHere, match="people/alice holds data that no file contains"):
        run(brain, "collection quarantine discard", page="people/alice", yes=True)
    assert run(brain, "collection quarantine discard", page="plain")["done"] is False
    assert slugs(brain) == ["people/alice", "plain"]
    run(brain, "collection quarantine discard", page="plain", yes=True)
    run(brain, "collection quarantine export", path=str(tmp_path / "out"))
    run(brain, "collection quarantine discard", page="people/alice", yes=True)
    assert slugs(brain) == []
    assert brain.db.rows("SELECT id FROM raw_imports WHERE page_id IS NULL") == []
    assert run(brain, "validate")["violations"] == []


def test_force_discards_a_quarantined_page(brain: Brain, notes: Path) -> None:
    run(brain, "collection quarantine discard", page="people/alice", yes=True, force=True)
    assert slugs(brain) == ["plain"]


def test_expired_pages_are_discarded_on_request_but_not_what_is_only_here(brain: Brain, notes: Path) -> None:
    assert run(brain, "collection quarantine discard", expired=True)["pages"] == []
    later(brain, 31)
    result = run(brain, "collection quarantine discard", expired=True, yes=True)
    assert ([page["slug"] for page in result["pages"]], result["kept"]) == (["plain"], ["people/alice"])


def test_a_sync_discards_after_thirty_days_and_says_what_it_keeps(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    later(brain, 30)
    assert run(brain, "collection sync")["syncs"][0]["discarded"] == 0
    later(brain, 31)
    synced = run(brain, "collection sync")["syncs"][0]
    assert synced["discarded"] == 1
    assert [(note["path"], "holds what no file has" in note["note"]) for note in synced["notes"]] == [
        ("people/alice", True)
    ]
    assert slugs(brain) == ["people/alice"]
    run(brain, "collection quarantine export", path=str(tmp_path / "out"))
    assert run(brain, "collection sync")["syncs"][0]["discarded"] == 1
    assert slugs(brain) == []


def test_a_folder_that_cannot_be_read_discards_nothing(brain: Brain, notes: Path) -> None:
    later(brain, 400)
    os.rename(notes, f"{notes}-away")
    run(brain, "collection sync")
    assert slugs(brain) == ["people/alice", "plain"]


def test_a_slug_of_two_collections_needs_the_collection(brain: Brain, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "plain.md").write_text("# Other\n")
    (other / "kept.md").write_text("# Kept\n")
    run(brain, "collection add", name="other", path=str(other))
    (other / "plain.md").unlink()
    run(brain, "collection sync")
    with pytest.raises(AmbiguousSlug, match="notes::plain, other::plain"):
        run(brain, "collection quarantine restore", page="plain")
    assert run(brain, "collection quarantine restore", page="other::plain")["collection"] == "other"


@pytest.mark.parametrize(
    ("command", "arguments", "kind"),
    [
        ("collection quarantine restore", {"page": "people/bob"}, NotFound),
        ("collection quarantine restore", {"page": "nowhere::plain"}, NotFound),
        ("collection quarantine discard", {}, InvalidArgument),
        ("collection quarantine discard", {"page": "plain", "expired": True}, InvalidArgument),
        ("collection quarantine list", {"name": "nowhere"}, NotFound),
    ],
)
def test_wrong_calls_change_nothing(
    brain: Brain, notes: Path, command: str, arguments: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        run(brain, command, **arguments)
    assert slugs(brain) == ["people/alice", "plain"]

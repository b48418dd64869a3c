"""Which files are left out: the lines of .quaidignore, changed from here, and what follows from them."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import CollectionReadOnly, FileTrouble, InvalidArgument, NotFound
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage.collections import Collections


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name in ("a.md", "drafts/one.md", "drafts/two.md", "drafts/deep/three.md", "x.tmp.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    run(brain, "collection add", name="notes", path=str(root))
    return root


def shown(brain: Brain) -> list[str]:
    return [
        row[0] for row in brain.db.rows("SELECT slug FROM pages WHERE quarantined_at IS NULL ORDER BY slug")
    ]


def test_an_ignored_folder_is_hidden_and_comes_back_as_the_same_pages(brain: Brain, notes: Path) -> None:
    before = brain.db.rows("SELECT id, uuid, slug FROM pages ORDER BY id")
    result = run(brain, "collection ignore add", name="notes", pattern="drafts/")
    assert result["hidden"] == ["drafts/deep/three.md", "drafts/one.md", "drafts/two.md"]
    assert (result["shown"], result["sync"]["halted"], result["sync"]["hidden"]) == ([], "", 3)
    assert shown(brain) == ["a", "x-tmp"]
    assert (notes / "drafts" / "one.md").exists()
    assert (notes / ".quaidignore").read_text() == "drafts/\n"
    assert len(run(brain, "collection quarantine list")["pages"]) == 3
    result = run(brain, "collection ignore remove", name="notes", pattern="drafts/")
    assert result["shown"] == ["drafts/deep/three.md", "drafts/one.md", "drafts/two.md"]
    assert (
        brain.db.rows("SELECT id, uuid, slug FROM pages WHERE quarantined_at IS NULL ORDER BY id") == before
    )
    assert run(brain, "validate")["violations"] == []


def test_ignore_rules_given_by_the_user_are_applied_to_any_number_of_files(brain: Brain, notes: Path) -> None:
    result = run(brain, "collection ignore add", name="notes", pattern="*")
    assert (len(result["hidden"]), result["sync"]["halted"], shown(brain)) == (5, "", [])


def test_the_rest_of_the_file_stays_as_it_is(brain: Brain, notes: Path) -> None:
    (notes / ".quaidignore").write_bytes(b"# mine\r\n\r\n*.tmp.md\r\nold/")
    run(brain, "collection ignore add", name="notes", pattern=" drafts/ ")
    assert (notes / ".quaidignore").read_bytes() == b"# mine\r\n\r\n*.tmp.md\r\nold/\r\ndrafts/\r\n"
    run(brain, "collection ignore remove", name="notes", pattern="old/")
    assert (notes / ".quaidignore").read_bytes() == b"# mine\r\n\r\n*.tmp.md\r\ndrafts/\r\n"
    assert run(brain, "collection ignore list", name="notes")["patterns"] == ["*.tmp.md", "drafts/"]
    run(brain, "collection ignore clear", name="notes")
    assert (notes / ".quaidignore").read_bytes() == b"# mine\r\n\r\n"
    assert len(shown(brain)) == 5


def test_the_same_pattern_again_changes_nothing(brain: Brain, notes: Path) -> None:
    run(brain, "collection ignore add", name="notes", pattern="drafts/")
    before = (notes / ".quaidignore").stat()
    result = run(brain, "collection ignore add", name="notes", pattern="drafts/")
    assert (result["changed"], result["sync"]) == (False, None)
    assert (notes / ".quaidignore").stat() == before


@pytest.mark.parametrize("pattern", ["!", "", "  ", "# note", "a\nb", "/", "a\0b"])
def test_invalid_pattern_is_refused_before_writing(brain: Brain, notes: Path, pattern: str) -> None:
    with pytest.raises(InvalidArgument, match="pattern"):
        run(brain, "collection ignore add", name="notes", pattern=pattern)
    assert not (notes / ".quaidignore").exists()


def test_a_pattern_that_is_not_there_cannot_be_removed(brain: Brain, notes: Path) -> None:
    with pytest.raises(NotFound, match=r"There is no pattern drafts/.*ignore list notes"):
        run(brain, "collection ignore remove", name="notes", pattern="drafts/")


def test_a_file_that_cannot_be_used_is_not_touched(brain: Brain, notes: Path) -> None:
    (notes / ".quaidignore").write_bytes(b"good/\n!\n")
    with pytest.raises(FileTrouble, match="line 2 is no pattern: !; mend it with an editor first"):
        run(brain, "collection ignore add", name="notes", pattern="drafts/")
    assert (notes / ".quaidignore").read_bytes() == b"good/\n!\n"


def test_a_read_only_collection_is_not_written(brain: Brain, notes: Path) -> None:
    brain.db.write(lambda tx: tx.execute("UPDATE collections SET writable = 0 WHERE name = 'notes'"))
    with pytest.raises(CollectionReadOnly, match="is read-only"):
        run(brain, "collection ignore add", name="notes", pattern="drafts/")
    assert not (notes / ".quaidignore").exists()
    with pytest.raises(InvalidArgument, match="has no folder"):
        run(brain, "collection ignore list", name="default")


def test_a_page_that_is_ignored_is_not_restored_over_its_file(brain: Brain, notes: Path) -> None:
    run(brain, "collection ignore add", name="notes", pattern="a.md")
    with pytest.raises(Exception, match="It is ignored: `quaid collection ignore remove notes PATTERN`"):
        run(brain, "collection quarantine restore", page="a")


def test_a_file_in_an_ignored_folder_cannot_be_let_in_alone(brain: Brain, notes: Path) -> None:
    """As with git: what is in a folder that is left out is not looked at, by a sync of some files either."""
    from quaid.folders.sync import sync_collection

    (notes / ".quaidignore").write_text("drafts/\n!drafts/one.md\n")
    collection = Collections(brain.db).require("notes")

    def again(only: list[str] | None) -> None:
        sync_collection(
            brain.db,
            collection,
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
            only=only,
            confirm_ignored=True,
        )
        assert "drafts/one" not in shown(brain)

    again(None)
    again(["drafts/one.md"])

"""A shared folder of markdown files: its files follow the changes of others, and its edits travel."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spaces.laptops import Laptop, bundles

from quaid.errors import PageNotFound
from quaid.storage.spaces import Spaces

Make = Callable[[str, str], Laptop]
ADA = "---\ntags: [math]   # hers\n---\n# Ada\n\nLives in London.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "people").mkdir(parents=True)
    (root / "people" / "ada.md").write_text(ADA)
    (root / "people" / "bob.md").write_text("# Bob\n\nA neighbour.\n")
    return root


@pytest.fixture
def pair(laptop: Make, folder: Path) -> tuple[Laptop, Laptop]:
    """Mira shares her folder; Noor joins without one."""
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    mira.run("collection add", name="notes", path=str(folder))
    assert mira.share("notes").pushed == 2
    noor.join(mira)
    return mira, noor


def both(mira: Laptop, noor: Laptop) -> None:
    for _ in range(6):
        reports = [mira.sync("notes"), noor.sync()]
        assert [report.problem for report in reports] == ["", ""]
        assert [report.problems for report in reports] == [(), ()]
        if not any(report.pulled or report.pushed for report in reports):
            return
    raise AssertionError("they do not converge")


def test_an_edit_from_elsewhere_changes_only_its_lines_in_the_file(
    pair: tuple[Laptop, Laptop], folder: Path
) -> None:
    mira, noor = pair
    noor.run("put", slug="people/ada", append="She writes.")
    noor.put("team::people/eve", "# Eve")
    both(mira, noor)
    assert (folder / "people" / "ada.md").read_text() == ADA + "\nShe writes.\n"
    assert (folder / "people" / "eve.md").read_text() == "# Eve\n"
    assert bundles(mira, "notes") == bundles(noor)
    assert mira.run("collection sync")["syncs"][0]["changed"] == 0


def test_an_edit_of_the_file_and_one_from_elsewhere_are_merged(
    pair: tuple[Laptop, Laptop], folder: Path
) -> None:
    mira, noor = pair
    (folder / "people" / "ada.md").write_text(ADA.replace("London", "Oslo"))
    noor.run("timeline-add", slug="people/ada", date="1843-09-01", summary="Notes published")
    noor.sync()
    both(mira, noor)
    text = (folder / "people" / "ada.md").read_text()
    assert "Lives in Oslo." in text
    assert "Notes published" in text
    assert noor.text("people/ada") == "# Ada\n\nLives in Oslo."


def test_a_removed_file_is_gone_elsewhere_and_a_changed_page_comes_back(
    pair: tuple[Laptop, Laptop], folder: Path
) -> None:
    mira, noor = pair
    (folder / "people" / "ada.md").unlink()
    (folder / "people" / "bob.md").unlink()
    noor.run("put", slug="people/bob", append="Moved away.")
    noor.sync()
    both(mira, noor)
    assert not (folder / "people" / "ada.md").exists()
    assert "Moved away." in (folder / "people" / "bob.md").read_text()
    with pytest.raises(PageNotFound):
        noor.run("get", slug=["team::people/ada"])
    assert "Moved away." in noor.text("people/bob")


def test_a_page_merged_away_elsewhere_loses_its_file(pair: tuple[Laptop, Laptop], folder: Path) -> None:
    mira, noor = pair
    noor.run("merge", slug="team::people/ada", other="team::people/bob", into="team::people/ada", yes=True)
    both(mira, noor)
    assert not (folder / "people" / "bob.md").exists()
    assert "A neighbour." in (folder / "people" / "ada.md").read_text()


def test_a_rename_elsewhere_moves_the_file_and_a_moved_file_renames_the_page(
    pair: tuple[Laptop, Laptop], folder: Path
) -> None:
    mira, noor = pair
    noor.run("rename", slug="team::people/ada", new_slug="people/ada-lovelace")
    both(mira, noor)
    assert not (folder / "people" / "ada.md").exists()
    assert (folder / "people" / "ada-lovelace.md").read_text() == ADA
    (folder / "people" / "bob.md").rename(folder / "people" / "robert.md")
    both(mira, noor)
    assert noor.slugs() == ["people/ada-lovelace", "people/robert"]
    assert mira.slugs("notes") == noor.slugs()


def test_the_same_slug_in_the_folder_and_elsewhere_gives_two_files(
    pair: tuple[Laptop, Laptop], folder: Path
) -> None:
    mira, noor = pair
    noor.put("team::people/eve", "# Eve\n\nFrom Paris.")
    noor.sync()
    (folder / "people" / "eve.md").write_text("# Eve\n\nFrom Oslo.\n")
    both(mira, noor)
    assert (folder / "people" / "eve.md").read_text() == "# Eve\n\nFrom Paris.\n"
    assert (folder / "people" / "eve-2.md").read_text() == "# Eve\n\nFrom Oslo.\n"
    assert "From Oslo." in noor.text("people/eve-2")


def test_a_forgotten_page_loses_its_file(pair: tuple[Laptop, Laptop], folder: Path) -> None:
    mira, noor = pair
    space = next(space for space in mira.hub.spaces() if space.name == "team")
    uuid = mira.run("get", slug=["people/ada"])["uuid"]
    mira.hub.purge(space.id, uuid)
    assert mira.sync("notes").erased == 1
    assert not (folder / "people" / "ada.md").exists()
    assert noor.sync().erased == 1
    assert noor.slugs() == ["people/bob"]


def test_a_notebook_is_shared_with_its_files(laptop: Make, tmp_path: Path) -> None:
    mira, desktop = laptop("mira", "laptop"), laptop("mira", "desktop")
    mira.run("notebook init", path=str(tmp_path / "notebook"))
    mira.run("remember", content="The boiler code is 4711.")
    assert mira.share("notebook").problem == ""
    desktop.join(mira)
    pages = {page["slug"] for page in mira.run("list", collection="notebook", limit=100)["pages"]}
    assert pages == set(desktop.slugs())
    assert desktop.run("search", query="boiler")["hits"]
    mira.run("remember", content="The alarm code is 1234.")
    mira.sync("notebook")
    desktop.sync()
    assert desktop.run("search", query="alarm")["hits"]


def test_headings_of_org_files_are_not_shared_and_do_not_wait(laptop: Make, tmp_path: Path) -> None:
    mira = laptop("mira", "laptop")
    root = tmp_path / "org"
    root.mkdir()
    heading = "* First\n:PROPERTIES:\n:ID: 11111111-2222-4333-8444-555555555555\n:END:\nText.\n"
    (root / "nodes.org").write_text("#+title: Nodes\n\n" + heading)
    mira.run("collection add", name="org", path=str(root))
    report = mira.share("org")
    assert (report.problem, report.pushed, report.waiting) == ("", 1, 0)
    assert Spaces(mira.brain.db).require("org").outbox_counts(mira.brain.db) == {}
    assert [space["waiting"] for space in mira.run("status")["spaces"]] == [0]


def test_pages_that_cannot_be_files_of_the_folder_do_not_stop_the_others(
    pair: tuple[Laptop, Laptop], folder: Path, tmp_path: Path
) -> None:
    mira, noor = pair
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / ".quaidignore").write_text("private/\n")
    (folder / "private").mkdir()
    (folder / "private" / "diary.md").write_text("Mine.")
    (folder / "away").symlink_to(outside)
    (folder / "note.md").symlink_to(outside / "note.md")
    mira.sync("notes")
    names = ("private/diary", "private/new", "away/new", "note", "node_modules/new", "people/max")
    for slug in names:
        noor.put(f"team::{slug}", "# New\n\nText.")
    noor.sync()
    for _ in range(2):
        report = mira.sync("notes")
        assert report.problem == ""
        assert len(report.problems) == 5
    assert (folder / "people" / "max.md").exists()
    assert (folder / "private" / "diary.md").read_text() == "Mine."
    assert list(outside.iterdir()) == []
    assert not (folder / "private" / "new.md").exists()

"""Files that take another name or another's place: what leads to their pages, and what they are called by."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
    (root / "a" / "old.md").write_text("# Ferry\n\nIt leaves at nine.\n")
    run(brain, "collection add", name="notes", path=str(root))
    return root


def leads(brain: Brain, slug: str) -> list[str | None]:
    """Where the links of a page's text lead; nothing for one that leads nowhere."""
    links = run(brain, "links", slug=slug)["links"]
    return [link["to_slug"] if link["resolved"] else None for link in links]


def pages(brain: Brain) -> list[tuple[str, str]]:
    """Slug and title of every page that is shown."""
    rows = brain.db.rows("SELECT slug, title FROM pages WHERE quarantined_at IS NULL ORDER BY slug")
    return [(str(slug), str(title)) for slug, title in rows]


def test_a_file_that_is_renamed_beside_its_place_is_found_by_its_new_name(brain: Brain, notes: Path) -> None:
    (notes / "b" / "about.md").write_text("# About\n\nSee [[a/new]].\n")
    os.rename(notes / "a" / "old.md", notes / "a" / "new.md")
    assert run(brain, "collection sync")["syncs"][0]["moved"] == 1
    assert leads(brain, "b/about") == ["a/new"]


def test_a_name_without_a_folder_means_the_nearest_page_wherever_files_go(brain: Brain, notes: Path) -> None:
    (notes / "b" / "old.md").write_text("# Other\n\nAnother one.\n")
    (notes / "a" / "about.md").write_text("# About\n\nSee [[old]].\n")
    run(brain, "collection sync")
    assert leads(brain, "a/about") == ["a/old"]
    os.rename(notes / "a" / "about.md", notes / "b" / "about.md")
    run(brain, "collection sync")
    assert leads(brain, "b/about") == ["b/old"]
    (notes / "c").mkdir()
    os.rename(notes / "b" / "old.md", notes / "c" / "old.md")
    run(brain, "collection sync")
    assert leads(brain, "b/about") == [None]  # two are as far away
    assert run(brain, "validate")["violations"] == []


def test_slug_that_another_user_took_no_longer_names_the_page_that_had_it(brain: Brain, notes: Path) -> None:
    os.rename(notes / "a" / "old.md", notes / "b" / "new.md")
    run(brain, "collection sync")
    (notes / "about.md").write_text("# About\n\nSee [[a/old]].\n")
    run(brain, "collection sync")
    assert leads(brain, "about") == ["b/new"]  # it had that name
    (notes / "a" / "old.md").write_text("# Bus\n\nIt never comes.\n")
    run(brain, "collection sync")
    assert leads(brain, "about") == ["a/old"]
    (notes / "a" / "old.md").unlink()
    run(brain, "collection sync")
    assert leads(brain, "about") == [None]


def test_a_page_that_is_restored_to_the_place_of_one_that_lost_its_file_puts_that_away(
    brain: Brain, notes: Path
) -> None:
    place = notes / "a" / "old.md"
    place.unlink()
    run(brain, "collection sync")
    (notes / "b" / "x.md").write_text("# Tram\n\nIt rings.\n")
    run(brain, "collection sync")
    os.rename(notes / "b" / "x.md", place)  # the tram comes to the place of the ferry, which makes way
    run(brain, "collection sync")
    place.unlink()
    waiting = run(brain, "collection quarantine list")["pages"]
    back = run(brain, "collection quarantine restore", page=waiting[0]["slug"])
    assert (back["slug"], place.read_text()) == ("a/old", "# Ferry\n\nIt leaves at nine.\n")
    assert pages(brain) == [("a/old", "Ferry")]
    again = run(brain, "collection sync")["syncs"][0]
    assert [again[name] for name in ("new", "changed", "moved", "removed")] == [0] * 4
    assert brain.db.rows("SELECT slug FROM redirects WHERE slug LIKE 'moving-%'") == []


def test_edit_leaves_no_title_without_a_file(brain: Brain, notes: Path) -> None:
    run(brain, "put", slug="notes::a/old", compiled_truth="No heading any more.")
    assert (notes / "a" / "old.md").read_text() == "No heading any more.\n"
    assert pages(brain) == [("a/old", "Old")]

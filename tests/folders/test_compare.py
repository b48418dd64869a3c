"""Two folders that say the same, and each way in which they may not."""

from pathlib import Path

import pytest

from quaid.app import Brain, no_progress
from quaid.config import Settings
from quaid.errors import NotFound
from quaid.folders import restore, scanner
from quaid.operations.collections import collection_add, export

PAGE = (
    "---\ntitle: Alice\ntags: [a, b]\n---\n\n# Alice\n\nTruth.\n\n---\n\n- **2026-04-14** | mail — Wrote.\n"
)


def folder(root: Path, name: str, files: dict[str, str]) -> str:
    for path, text in files.items():
        (root / name / path).parent.mkdir(parents=True, exist_ok=True)
        (root / name / path).write_text(text)
    return str(root / name)


def found(root: Path, before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    return restore.compare_folders(folder(root, "before", before), folder(root, "after", after), no_progress)


def test_spelling_does_not_count(tmp_path: Path) -> None:
    before = {
        "People/Älice.md": PAGE.replace("\n", "\r\n"),
        "People/.raw/Älice.json": '{"sources":{"crm":{"b":1,"a":2}}}',
        "no title.md": "Text.\n",
        "README.md": "x",
        "index.md": "x",
        "schema.md": "x",
    }
    after = {
        "people/alice.md": PAGE.replace("title: Alice\ntags: [a, b]", "tags:\n- a\n- b\ntitle: 'Alice'"),
        "people/.raw/alice.json": '{"sources": {"crm": {"a": 2, "b": 1}}}',
        "no-title.md": "---\ntitle: no title\n---\n\nText.\n",
        "index.md": "y",
    }
    assert found(tmp_path, before, after) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Truth.", "Lies.", "the truth differs"),
        ("Wrote.", "Called.", "the timeline differs (1 dated entries, exported 1)"),
        ("title: Alice", "title: Alicia", "front matter: title differs"),
        ("tags: [a, b]\n", "", "front matter: tags is missing in the export"),
        ("tags: [a, b]", "tags: [b, a]", "front matter: tags differs"),
        ("tags: [a, b]", "tags: [a, b]\nmore: 1", "front matter: more is only in the export"),
    ],
)
def test_each_difference_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert found(tmp_path, {"a.md": PAGE}, {"a.md": PAGE.replace(old, new)}) == [("a.md", problem)]


def test_missing_and_added_pages_are_named(tmp_path: Path) -> None:
    assert found(tmp_path, {"A b.md": "x", "c.md": "x"}, {"c.md": "x", "d.md": "x"}) == [
        ("A b.md", "page a-b is missing in the export"),
        ("d.md", "page d is only in the export"),
    ]


def test_sidecars_are_compared_too(tmp_path: Path) -> None:
    pages = {f"{name}.md": "x" for name in "abcd"}
    before = {
        **pages,
        ".raw/a.json": "[1]",
        ".raw/b.json": "[1]",
        ".raw/d.json": "broken",
        ".raw/orphan.json": "1",
    }
    after = {**pages, ".raw/a.json": "[2]", ".raw/c.json": "[1]"}
    assert found(tmp_path, before, after) == [
        (".raw/a.json", "the sidecar differs"),
        (".raw/b.json", "the sidecar is missing in the export"),
        (".raw/c.json", "the sidecar is only in the export"),
    ]


def test_pages_that_ask_for_one_slug_are_matched_by_content(tmp_path: Path) -> None:
    one, two = "---\nslug: same\n---\n# One\n", "---\nslug: same\n---\n# Two\n"
    before = {"a.md": one, "b.md": two}
    assert found(tmp_path / "1", before, {"b.md": one, "same.md": two}) == []
    assert found(tmp_path / "2", before, {"same.md": two, "b.md": "---\nslug: same\n---\n# Three\n"}) == [
        ("a.md", "front matter: title differs"),
        ("a.md", "the truth differs"),
    ]
    assert found(tmp_path / "3", before, {"same.md": two}) == [("a.md", "page same is missing in the export")]


def test_a_page_that_no_import_takes_in_is_missing(tmp_path: Path) -> None:
    large = "x" * (scanner.LARGEST_FILE + 1)
    before = {"a.md": "x", "large.md": large, "notes.org": "#+title: Notes\n\nText.\n"}
    assert found(tmp_path, before, {"a.md": "x"}) == [
        (
            "large.md",
            "page large is missing in the export: it is left out by every import"
            " (too large: 4,194,305 bytes, and 4,194,304 are allowed)",
        ),
        ("notes.org", "page notes is missing in the export"),
    ]


def test_large_files_are_compared_as_a_whole(tmp_path: Path) -> None:
    large = "x" * (scanner.LARGEST_FILE + 1)
    assert found(tmp_path, {"a.md": large}, {"a.md": large}) == []
    assert found(tmp_path, {"a.md": large}, {"a.md": large + "y"}) == [("a.md", "the truth differs")]
    (problem,) = found(tmp_path, {"a.md": large}, {"a.md": "x"})
    assert problem[1].startswith("cannot be compared: too large")


def test_links_and_folders_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    original = folder(tmp_path, "before", {"a.md": "x"})
    (tmp_path / "before" / "linked.md").symlink_to("a.md")
    (tmp_path / "before" / "picture.png").symlink_to("a.md")
    assert restore.compare_folders(original, folder(tmp_path, "after", {"a.md": "x"}), no_progress) == [
        ("linked.md", "is left out by every import: link")
    ]


def test_org_is_compared_with_the_markdown_that_was_made_of_it(tmp_path: Path) -> None:
    org = (
        "#+title: Things\n\nBody.\n"
        "* Same\n:PROPERTIES:\n:ID: 11111111-2222-3333-4444-555555555555\n:END:\nOne.\n"
        "* Same\n:PROPERTIES:\n:ID: 11111111-2222-3333-4444-666666666666\n:END:\nTwo.\n"
    )
    settings = Settings(str(tmp_path / "memory.db"), str(tmp_path / "home"), str(tmp_path))
    original = folder(tmp_path, "notes", {"things.org": org, "README.md": "# About\n"})
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        collection_add(brain, "notes", original)
        export(brain, dir="out", collection="notes")
    assert restore.compare_folders(original, str(tmp_path / "out"), no_progress) == []
    (tmp_path / "out" / "readme.markdown").write_text("# Other\n")
    two = next(path for path in (tmp_path / "out" / "things").iterdir() if "Two." in path.read_text())
    two.write_text(two.read_text().replace("Two.", "Three."))
    assert restore.compare_folders(original, str(tmp_path / "out"), no_progress) == [
        ("README.md", "front matter: title differs"),
        ("README.md", "the truth differs"),
        ("things.org", "the truth differs"),
    ]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        restore.compare_folders(
            folder(tmp_path, "before", {"a.md": "x"}), str(tmp_path / "missing"), no_progress
        )

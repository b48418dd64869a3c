"""Two folders that say the same, and each way in which they may not."""

from pathlib import Path

import pytest

from quaid.brain import no_progress
from quaid.errors import NotFound
from quaid.vaults import compare

PAGE = (
    "---\ntitle: Alice\ntags: [a, b]\n---\n\n# Alice\n\nTruth.\n\n---\n\n- **2026-04-14** | mail — Wrote.\n"
)


def folder(root: Path, name: str, files: dict[str, str]) -> str:
    for path, text in files.items():
        (root / name / path).parent.mkdir(parents=True, exist_ok=True)
        (root / name / path).write_text(text)
    return str(root / name)


def found(root: Path, before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    return compare.folders(folder(root, "before", before), folder(root, "after", after), no_progress)


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


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        compare.folders(folder(tmp_path, "before", {"a.md": "x"}), str(tmp_path / "missing"), no_progress)

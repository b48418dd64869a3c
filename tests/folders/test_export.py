"""What an export writes, so that it comes back as the same memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.folders.conftest import overwrite_leaf

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import Cancelled, DamagedDatabase, FolderNotEmpty, InvalidArgument, NotFound, RawNeedsImport
from quaid.folders import export as exporter, indexer, scanner
from quaid.folders.importer import ImportReport
from quaid.model import page as page_model, slug as slugs
from quaid.model.sync_plan import ScannedFile
from quaid.operations.collections import (
    collection_add,
    collection_remove,
    collection_sync,
    export as export_op,
)
from quaid.storage import page_edits, pages

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]


def put(brain: Brain, address: str, front: dict[str, Any], truth: str, title: str | None = None) -> None:
    made = page_model.build_page(address, front, truth, "", fallback_title=title)
    brain.db.write(
        lambda tx: page_edits.save(tx, made, uuid=brain.new_uuid(), now=brain.now(), expected_version=None)
    )


def export(brain: Brain, target: Path, *, force: bool = False) -> exporter.ExportReport:
    return exporter.export_pages(brain.db, str(target), force=force, progress=brain.progress)


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_pages_sidecars_index_and_schema_are_written(
    vault: Fill, bring: Bring, brain: Brain, tmp_path: Path
) -> None:
    bring(
        vault(
            {
                "people/alice.md": "---\ntype: person\n---\n# Alice [A]\n\n---\n\n- 2026-04-22 — Called.\n",
                "people/.raw/alice.json": '{"sources":{"crm":{"id":7}}}',
                "notes.md": "# Notes\n",
                "index.md": "old index",
                "schema.md": "the schema\n",
                "README.md": "not a page",
            }
        )
    )
    report = export(brain, tmp_path / "out")
    written = files(tmp_path / "out")
    assert written == {
        "people/alice.md": "---\ntype: person\n---\n\n# Alice [A]\n\n---\n\n- 2026-04-22 — Called.\n",
        "people/.raw/alice.json": '{\n  "sources": {\n    "crm": {\n      "id": 7\n    }\n  }\n}\n',
        "notes.md": "# Notes\n",
        "index.md": (
            "# Index\n\n## concept (1)\n\n- [Notes](notes.md)\n\n"
            "## person (1)\n\n- [Alice \\[A\\]](people/alice.md)\n"
        ),
        "schema.md": "the schema\n",
    }
    assert (report.pages, report.sidecars, report.files) == (2, 1, 5)
    assert report.bytes == sum(len(text.encode()) for text in written.values())


def test_a_title_that_the_text_does_not_give_is_written_down(brain: Brain, tmp_path: Path) -> None:
    put(brain, "a", {}, "No heading.", title="The Title")
    put(brain, "b", {}, "# Heading\n\nText.", title="unused")
    put(brain, "c", {"title": "Given"}, "Text.")
    put(brain, "d", {"title": None, "x": 1}, "Text.", title="Dee")
    export(brain, tmp_path / "out")
    written = files(tmp_path / "out")
    assert written["a.md"] == "---\ntitle: The Title\n---\n\nNo heading.\n"
    assert written["b.md"] == "# Heading\n\nText.\n"
    assert written["c.md"] == "---\ntitle: Given\n---\n\nText.\n"
    assert written["d.md"] == "---\ntitle: Dee\nx: 1\n---\n\nText.\n"


ODD_SLUGS = [
    "index",
    "schema",
    "readme",
    "people/index",
    "a--b",
    "-",
    "_",
    "node_modules/x",
    "node_modules",
    "x" * slugs.LONGEST,
    "d/" + "y" * (slugs.LONGEST - 2),
    "/".join("a" * 128),
    "people/-x-",
    "n/" + "吃" * 84,
]


@pytest.mark.parametrize("to", [None, "org-roam"])
def test_a_page_with_the_longest_name_is_exported_with_its_data(
    brain: Brain, tmp_path: Path, to: exporter.ExportFormat | None
) -> None:
    address = "n/" + "吃" * 84  # 252 bytes; with .json it would be too long for a file name
    put(brain, address, {}, "Text.", title="Food")
    page_id = pages.require(brain.db, address).id
    brain.db.write(lambda tx: pages.write_raw_data(tx, page_id, {"crm": 7}, brain.now(), []))
    report = exporter.export_pages(brain.db, str(tmp_path / "out"), to, force=False, progress=brain.progress)
    assert (report.pages, report.sidecars) == (1, 0 if to else 1)


def test_every_slug_comes_back_as_itself(brain: Brain, tmp_path: Path) -> None:
    for address in ODD_SLUGS:
        put(brain, address, {}, f"Text of {address}.", title=f"Title of {address[:20]}")
    put(brain, "one", {"slug": "two"}, "# One")
    export(brain, tmp_path / "out")
    with scanner.Folder(str(tmp_path / "out")) as folder:
        paths = [
            entry.path for entry in folder.walk() if isinstance(entry, ScannedFile) and entry.kind == "page"
        ]
        made = [indexer.parse_file(path, folder.read(path)).page for path in paths]
    expected = {address: f"Text of {address}." for address in ODD_SLUGS} | {"one": "# One"}
    assert {item.slug: item.truth for item in made} == expected
    assert all(item.title == f"Title of {item.slug[:20]}" for item in made if item.slug != "one")


def test_force_replaces_and_removes_nothing(brain: Brain, tmp_path: Path) -> None:
    put(brain, "a", {}, "# A")
    target = tmp_path / "out"
    export(brain, target)
    (target / "mine.txt").write_text("mine")
    put(brain, "a", {}, "# A 2")
    with pytest.raises(FolderNotEmpty):
        export(brain, target)
    assert (target / "a.md").read_text() == "# A\n"
    export(brain, target, force=True)
    assert files(target) == {
        "a.md": "# A 2\n",
        "mine.txt": "mine",
        "index.md": "# Index\n\n## concept (1)\n\n- [A 2](a.md)\n",
    }


def folder(tmp_path: Path, name: str, files: dict[str, str]) -> str:
    for path, text in files.items():
        (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / path).write_text(text)
    return str(tmp_path / name)


def test_each_collection_is_written_into_its_folder(brain: Brain, tmp_path: Path) -> None:
    put(brain, "same", {}, "# Of the database")
    collection_add(brain, "notes", folder(tmp_path, "n", {"same.md": "# Of notes", "README.md": "# About"}))
    collection_add(brain, "old", folder(tmp_path, "o", {"Kept Page.md": "Text."}))
    collection_remove(brain, "old", keep_pages=True)
    report = export(brain, tmp_path / "out")
    written = files(tmp_path / "out")
    assert {path: text for path, text in written.items() if path != "index.md"} == {
        "same.md": "# Of the database\n",
        "notes/same.md": "# Of notes\n",
        "notes/readme.markdown": "# About\n",
        "old/kept-page.md": "---\ntitle: Kept Page\n---\n\nText.\n",
    }
    assert [tuple(collection) for collection in report.collections] == [
        ("default", "", 1),
        ("notes", "notes", 2),
        ("old", "old", 1),
    ]
    assert (report.pages, report.files) == (4, 5) == (len(written) - 1, len(written))
    assert written["index.md"].split("# Collection notes")[1] == (
        "\n\n## concept (2)\n\n- [About](notes/readme.markdown)\n- [Of notes](notes/same.md)\n"
        "\n# Collection old\n\n## concept (1)\n\n- [Kept Page](old/kept-page.md)\n"
    )
    assert f"notes    2 pages  {tmp_path}/out/notes" in render(report)


def test_one_collection_is_written_into_the_folder_itself(brain: Brain, tmp_path: Path) -> None:
    put(brain, "a", {}, "# A")
    collection_add(brain, "notes", folder(tmp_path, "n", {"b.md": "# B"}))
    report = export_op(brain, dir=str(tmp_path / "out"), collection="notes")
    assert sorted(files(tmp_path / "out")) == ["b.md"]
    assert (report.pages, report.files) == (1, 1)
    only = export_op(brain, dir=str(tmp_path / "only"), collection="default")
    assert sorted(files(tmp_path / "only")) == ["a.md", "index.md"]
    assert only.pages == 1
    with pytest.raises(NotFound, match="There is no collection nots"):
        export_op(brain, dir=str(tmp_path / "none"), collection="nots")
    with pytest.raises(InvalidArgument, match="does not go with --raw"):
        export_op(brain, dir=str(tmp_path / "none"), collection="notes", raw=True)
    assert not (tmp_path / "none").exists()


def test_a_collection_named_like_a_folder_of_pages_gets_another_folder(brain: Brain, tmp_path: Path) -> None:
    put(brain, "people/alice", {}, "# Alice of the database")
    put(brain, "notes", {}, "# A page named like a collection")
    collection_add(brain, "people", folder(tmp_path, "p", {"alice.md": "# Alice of the folder"}))
    collection_add(brain, "notes", folder(tmp_path, "n", {"a.md": "# A"}))
    collection_add(brain, "node_modules", folder(tmp_path, "m", {"b.md": "# B"}))
    assert export(brain, tmp_path / "out").pages == 5
    assert {path for path in files(tmp_path / "out") if path != "index.md"} == {
        "people/alice.md",
        "people-collection/alice.md",
        "notes.md",
        "notes/a.md",
        "node_modules-collection/b.md",
    }


def test_pages_in_quarantine_are_not_written_and_counted(brain: Brain, tmp_path: Path) -> None:
    root = folder(tmp_path, "n", {"a.md": "# A", "b.md": "# B"})
    collection_add(brain, "notes", root)
    (tmp_path / "n" / "b.md").unlink()
    collection_sync(brain)
    report = export(brain, tmp_path / "out")
    assert (report.pages, report.quarantined) == (1, 1)
    assert "Not written: 1 page in quarantine; `quaid collection quarantine export` writes them" in render(
        report
    )


def test_the_summary_counts_files_on_the_disk(
    brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(brain, "a", {}, "# A")
    put(brain, "b", {}, "# B")
    monkeypatch.setattr(exporter, "export_path", lambda _: "one.md")
    report = export(brain, tmp_path / "out")
    assert (report.pages, report.files) == (1, 2)


def test_an_empty_memory_gives_an_empty_index(brain: Brain, tmp_path: Path) -> None:
    assert export(brain, tmp_path / "out").pages == 0
    assert files(tmp_path / "out") == {"index.md": "# Index\n"}


def test_raw_data_of_a_page_that_moved_to_another_name_stays_beside_it(brain: Brain, tmp_path: Path) -> None:
    put(brain, "index", {}, "# I")
    page_id = pages.require(brain.db, "index").id
    brain.db.write(lambda tx: pages.write_raw_data(tx, page_id, {"sidecar": {"a": 1}}, brain.now()))
    export(brain, tmp_path / "out")
    assert files(tmp_path / "out")[".raw/index.json"] == '{\n  "a": 1\n}\n'
    assert "index.markdown" in files(tmp_path / "out")


def test_a_raw_export_is_the_folder_as_it_was(
    vault: Fill, bring: Bring, brain: Brain, tmp_path: Path
) -> None:
    root = vault({"a.md": b"\xef\xbb\xbf# A\r\n\0\xff", "README.md": "x", ".raw/a.json": "{broken"})
    before = {path: (root / path).read_bytes() for path in ("a.md", "README.md", ".raw/a.json")}
    first = bring(root)
    vault({"a.md": "# Changed\n"})
    bring(root)
    report = exporter.export_raw(
        brain.db, first.import_id, str(tmp_path / "out"), force=False, progress=brain.progress
    )
    assert {item: (tmp_path / "out" / item).read_bytes() for item in before} == before
    assert (report.import_id, report.pages, report.sidecars, report.files) == (first.import_id, 1, 1, 3)


def test_a_raw_export_without_an_import_lists_the_imports(
    vault: Fill, bring: Bring, brain: Brain, tmp_path: Path
) -> None:
    def raw(import_id: str | None) -> None:
        exporter.export_raw(brain.db, import_id, str(tmp_path / "out"), force=False, progress=brain.progress)

    with pytest.raises(RawNeedsImport, match="Nothing was imported yet"):
        raw(None)
    imported = bring(vault({"a.md": "# A\n"})).import_id
    with pytest.raises(RawNeedsImport, match=f"The newest: {imported}"):
        raw(None)
    with pytest.raises(NotFound, match=f"There is no import nonsense. The newest: {imported}"):
        raw("nonsense")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [False, True], ids=["new folder", "empty folder"])
def test_an_export_that_is_stopped_leaves_nothing_half_done(
    brain: Brain, tmp_path: Path, there: bool
) -> None:
    if there:
        (tmp_path / "out").mkdir()
    for name in "abc":
        put(brain, name, {}, f"# {name}")

    def stop(done: int, total: int, what: str) -> None:
        if done == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        exporter.export_pages(brain.db, str(tmp_path / "out"), force=False, progress=stop)
    assert (tmp_path / "out").exists() is there
    assert not there or list((tmp_path / "out").iterdir()) == []


def test_a_stopped_export_removes_only_its_own_files(brain: Brain, tmp_path: Path) -> None:
    put(brain, "people/a", {}, "# a")
    put(brain, "people/b", {}, "# b")
    mine = tmp_path / "out" / "people" / "mine.txt"

    def stop(done: int, total: int, what: str) -> None:
        if done == 1:
            mine.write_text("somebody else's")
            raise Cancelled

    with pytest.raises(Cancelled):
        exporter.export_pages(brain.db, str(tmp_path / "out"), force=False, progress=stop)
    assert sorted(files(tmp_path / "out")) == ["people/mine.txt"]


def test_readable_pages_of_a_damaged_memory_are_exported(brain: Brain, tmp_path: Path) -> None:
    for name in "abc":
        put(brain, name, {}, f"# {name}\n\nSome words.")
    brain.db.write(lambda tx: tx.execute("UPDATE chunks SET chunk_text = 'Other words.' WHERE page_id = 2"))
    report = export(brain, tmp_path / "out")
    assert (report.pages, report.unread, report.exit_status) == (2, ("b",), 1)
    assert sorted(files(tmp_path / "out")) == ["a.md", "c.md", "index.md"]
    assert "b.md" not in (tmp_path / "out" / "index.md").read_text()
    assert "1 page: b" in render(report)


def test_readable_pages_are_exported_without_a_page_list(brain: Brain, tmp_path: Path) -> None:
    for number in range(40):
        put(brain, f"note-{number}", {}, f"# Note {number}\n\n{'Some words. ' * 40}")
    overwrite_leaf(brain, "pages")
    with pytest.raises(DamagedDatabase):
        pages.page_addresses(brain.db)
    report = export(brain, tmp_path / "out")
    assert report.pages >= 25
    assert report.pages + len(report.unread) == 40
    assert report.unread
    assert report.exit_status == 1
    assert len(files(tmp_path / "out")) == report.pages + 1
    assert "number " in render(report)


def test_pages_of_collections_are_saved_from_a_damaged_memory(brain: Brain, tmp_path: Path) -> None:
    texts = {f"note-{number}.md": f"# Note {number}\n\n{'Some words. ' * 40}" for number in range(40)}
    collection_add(brain, "notes", folder(tmp_path, "n", texts))
    overwrite_leaf(brain, "pages")
    report = export(brain, tmp_path / "out")
    assert report.pages >= 25
    assert report.pages + len(report.unread) == 40
    assert len([file for file in files(tmp_path / "out") if file.startswith("notes/note-")]) == report.pages

"""The catalog: files are cached by their stat, and compared by content where it matters."""

import os
from pathlib import Path

import pytest
from tests.kb.nodes import IDS, Folder, text

from quaid.kb import catalog as catalogs, layout
from quaid.kb.catalog import CachedFindings
from quaid.kb.node import ParsedNode

LONG_AGO = 1_700_000_000 * 10**9


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "kb")
    for number in (1, 2, 3):
        folder.put(f"{number}.org", text(number, f"Words of {number}.\n", title=f"Title {number}"))
    settle(folder)
    return folder


def settle(store: Folder) -> None:
    """Let some time pass since the last change, because a file's ctime cannot be set."""
    for path in store.root.rglob("*.org"):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files settle at once, but for tests that say otherwise."""
    monkeypatch.setattr(catalogs, "RACY_NS", -(10**18))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that lint has checked, in order."""
    paths: list[str] = []
    check_file = catalogs.check_file

    def check(path: str, data: bytes | None, read: ParsedNode | None) -> CachedFindings:
        assert read is None or read.node.path == path
        paths.append(path)
        return check_file(path, data, read)

    monkeypatch.setattr(catalogs, "check_file", check)
    return paths


def titles(store: Folder, **how: bool) -> list[str]:
    return [node.title for node in store.look(**how).nodes]


def test_nodes_come_out_as_they_went_in(store: Folder) -> None:
    links = f"RELATES_TO [[id:{IDS[1]}][two]]\nand [[id:{IDS[2]}][three]]\n"
    store.put("1.org", text(1, links, filetags=":principle:emacs:", MERGED_IDS=IDS[5], PROJECTS=":a: :b:"))
    first = store.look().nodes
    again = store.look()
    assert again.nodes == first
    assert again.body("2.org").strip() == "words of 2."
    assert [link.relation for link in first[0].links] == ["RELATES_TO", ""]
    assert {hash(node) for node in again.nodes} == set(map(hash, first))


def test_files_that_make_no_node_and_names_with_any_sign_are_remembered(store: Folder) -> None:
    for name in ("a\tb.txt", "c\nd.txt", "é.txt"):
        store.put(f"raw/{name}", "Something.\n")
    store.put("index.org", "#+title: Index\n")
    first = store.look()
    first.index_problem = "it is odd"
    catalogs.save_catalog(first)
    again = catalogs._load_cache(str(store.root))
    assert again.files == first.files
    assert [*again.files] == [
        "1.org",
        "2.org",
        "3.org",
        "index.org",
        "raw/a\tb.txt",
        "raw/c\nd.txt",
        "raw/é.txt",
    ]
    assert (again.texts, again.index_problem, again.count) == (first.texts, "it is odd", 3)


def test_an_empty_knowledge_base_is_remembered_as_well(tmp_path: Path) -> None:
    store = Folder(tmp_path / "kb")
    empty = store.look()
    empty.index_problem = "it is missing"
    catalogs.save_catalog(empty)
    assert store.look().index_problem == "it is missing"


def test_a_normal_load_reads_only_files_with_a_different_stat(store: Folder, checked: list[str]) -> None:
    store.look()
    assert store.look(check=True)
    assert checked == ["1.org", "2.org", "3.org"]
    checked.clear()
    store.put("2.org", text(2, title="Another title"))
    looked = store.look(check=True)
    assert [node.title for node in looked.nodes] == ["Title 1", "Another title", "Title 3"]
    assert checked == ["2.org"]


def test_a_certain_load_finds_changes_that_the_stat_does_not_show(
    store: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.look()
    looked = layout.walk_store(str(store.root))
    store.put("2.org", text(2, "Other of 2.\n", title="Title X"))
    monkeypatch.setattr(layout, "walk_store", lambda root: looked)  # a disk that keeps no times
    assert titles(store) == ["Title 1", "Title 2", "Title 3"]
    assert titles(store, certain=True) == ["Title 1", "Title X", "Title 3"]


def test_a_file_that_changed_just_now_is_read_again(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RACY_NS", 10**18)
    store.look()
    looked = layout.walk_store(str(store.root))
    store.put("2.org", text(2, title="Title X"))
    monkeypatch.setattr(layout, "walk_store", lambda root: looked)
    assert titles(store) == ["Title 1", "Title X", "Title 3"]


def test_files_come_go_and_move(store: Folder) -> None:
    store.look()
    store.put("0.org", text(9, "First of all.\n", title="Title 0"))
    (store.root / "2.org").unlink()
    (store.root / "3.org").rename(store.root / "4.org")
    looked = store.look()
    assert list(looked.files) == ["0.org", "1.org", "4.org"]
    assert [looked.body(path).strip() for path in looked.files] == [
        *("first of all.", "words of 1.", "words of 3.")
    ]
    assert titles(store) == ["Title 0", "Title 1", "Title 3"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "words", "folder"])
def test_damaged_memory_is_not_a_memory(store: Folder, damage: str) -> None:
    expected = titles(store)
    place = Path(store.own_folder, catalogs.CATALOG_NAME)
    data = place.read_bytes()
    place.unlink()
    if damage == "folder":
        place.mkdir()
    else:
        place.write_bytes(
            {
                "cut": data[:-5],
                "flip": data.replace(b"Title 2", b"Title 5"),
                "empty": b"",
                "words": b"00000000 nothing that anybody wrote\n\n",
            }[damage]
        )
    assert titles(store) == expected


def test_every_cut_of_the_memory_is_noticed(store: Folder) -> None:
    expected = titles(store)
    place = Path(store.own_folder, catalogs.CATALOG_NAME)
    data = place.read_bytes()
    for length in range(0, len(data), 7):
        place.write_bytes(data[:length])
        assert titles(store) == expected


def test_a_file_is_checked_again_only_after_a_rule_change(
    store: Folder, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for rules in ("1", "1", "2", "2"):
        monkeypatch.setattr(catalogs, "LINT_RULES", rules)
        catalogs.save_catalog(store.look(certain=True, check=True))
    assert checked == 2 * ["1.org", "2.org", "3.org"]


def test_a_file_with_a_transient_finding_is_checked_again(
    store: Folder, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "TRANSIENT_CODES", {"no-type"})
    store.put("2.org", text(2, filetags=":none:"))
    for _ in range(2):
        catalogs.save_catalog(store.look(check=True))
    assert checked == ["1.org", "2.org", "3.org", "2.org"]


def test_a_second_look_at_some_files_leaves_the_others(store: Folder) -> None:
    looked = store.look()
    store.put("2.org", text(2, "Other.\n", title="Title X"))
    store.put("9.org", text(9, "New.\n", title="Title 9"))
    (store.root / "1.org").unlink()
    (store.root / "3.org").unlink()
    again = catalogs.refresh_files(looked, ["1.org", "2.org", "9.org"])
    assert [node.title for node in again.nodes] == ["Title X", "Title 3", "Title 9"]
    assert [again.body(path).strip() for path in again.files] == ["other.", "words of 3.", "new."]
    assert [node.title for node in looked.nodes] == ["Title 1", "Title 2", "Title 3"]


def test_the_verdict_on_the_index_ends_with_any_change(store: Folder) -> None:
    store.index()
    settle(store)
    catalogs.lint_store(store.look())
    assert store.look().index_problem == ""
    store.put("2.org", text(2, title="Another title"))
    assert store.look().index_problem is None
    store.index()
    catalogs.lint_store(store.look())
    assert store.look().index_problem == ""
    store.put("index.org", "mine\n")
    assert store.look().index_problem is None


def test_a_pipe_in_the_place_of_a_file_is_not_read(store: Folder) -> None:
    (store.root / "2.org").unlink()
    os.mkfifo(store.root / "2.org")  # not even looked at: nothing would come out of it
    assert titles(store) == ["Title 1", "Title 3"]

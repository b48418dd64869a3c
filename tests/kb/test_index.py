"""The index: made of nodes alone, plain text, split when it grows."""

import random
from pathlib import Path

import pytest
from tests.kb.nodes import IDS, Folder, text

from quaid.kb import catalog as catalogs, node


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "kb")


def built(store: Folder) -> dict[str, str]:
    return node.build_index(store.look().nodes)


def test_sections_by_type_and_the_contested_apart(store: Folder) -> None:
    store.put("a.org", text(1, title="A way", filetags=":procedure:"))
    store.put("b.org", text(2, title="B taste", filetags=":preference:", STATUS="contested"))
    store.put(
        "c.org", text(3, f"CONTRADICTS [[id:{IDS[1]}][B taste]]\n", title="C taste", STATUS="contested")
    )
    store.put("d.org", text(4, title="D old", STATUS="superseded"))
    store.put(
        "e.org", text(5, f"SUPERSEDES [[id:{IDS[3]}][D old]]\n", title="E new", PROJECTS=":emacs: :general:")
    )
    store.put("f.org", text(6, title="F", filetags=":untyped:"))
    (output,) = built(store).values()
    assert output.split("\n* ")[1:] == [
        "Principles\n\n| Title | ID | Summary | Projects | Status | Updated |\n|---\n"
        f"| E new | {IDS[4]} | What node 5 is about. | emacs general | current | 2026-05-24 |\n",
        "Procedures\n\n| Title | ID | Summary | Projects | Status | Updated |\n|---\n"
        f"| A way | {IDS[0]} | What node 1 is about. | general | current | 2026-05-24 |\n",
        "Other\n\n| Title | ID | Summary | Projects | Status | Updated |\n|---\n"
        f"| F | {IDS[5]} | What node 6 is about. | general | current | 2026-05-24 |\n",
        "Contested / needs review\n\n| Title | ID | Issue | Last touched |\n|---\n"
        f"| B taste | {IDS[1]} | contradicts C taste | 2026-05-24 |\n"
        f"| C taste | {IDS[2]} | contradicts B taste | 2026-05-24 |\n",
        "Superseded\n\n| Title | ID | Superseded by | Last touched |\n|---\n"
        f"| D old | {IDS[3]} | E new ({IDS[4]}) | 2026-05-24 |\n",
        "Projects\n\n- emacs (1)\n- general (6)\n",
    ]
    assert output.startswith("#+title: Index\n# Generated")


def test_the_same_nodes_give_the_same_bytes(store: Folder) -> None:
    for number in range(1, 30):
        store.put(
            f"{number}.org", text(number, title=random.Random(number).choice(["Same", "Other", "ähnlich"]))
        )
    nodes = list(store.look().nodes)
    first = node.build_index(nodes)
    for seed in range(5):
        random.Random(seed).shuffle(nodes)
        assert node.build_index(nodes) == first


def test_past_its_budget_it_is_split_by_type(store: Folder) -> None:
    for number in range(1, 602):
        kind = ":procedure:" if number % 2 else ":reference:"
        store.put(
            f"{number}.org", text(number, filetags=kind, STATUS="contested" if number == 7 else "current")
        )
    files = built(store)
    assert sorted(files) == ["index-procedures.org", "index-references.org", "index.org"]
    assert "| Procedures | 300 | index-procedures.org |" in files["index.org"]
    assert IDS[6] in files["index.org"]
    assert IDS[6] not in files["index-procedures.org"]
    assert files["index-procedures.org"].count("2026-05-24") == 300
    assert set(files) <= node.INDEX_NAMES


def test_no_text_becomes_a_link_or_ends_a_cell(store: Folder) -> None:
    store.put("a.org", text(1, title=f"A | b [[id:{IDS[1]}][x]]", SUMMARY="[[id:x]] | y"))
    (output,) = built(store).values()
    assert "[[" not in output
    rows = [line for line in output.split("\n") if IDS[0] in line]
    assert len(rows) == 1
    assert rows[0].count("|") == 7


def test_an_empty_store_has_an_index(store: Folder) -> None:
    assert list(built(store)) == ["index.org"]


def test_another_form_of_the_index_is_another_version_of_the_catalog(store: Folder) -> None:
    """That the index is right is remembered there: a new form would not be written where nothing else changes."""
    for number, status in enumerate(("current", "contested", "superseded"), 1):
        store.put(f"{number}.org", text(number, title=f"Node | [[{number}]]", STATUS=status))
    output = "".join(f"{path}\n{item}" for path, item in sorted(built(store).items()))
    assert (catalogs.CATALOG_VERSION, catalogs.content_digest(output.encode())) == (
        7,
        "5daa3e2b99c138ea654402025f049603",
    )

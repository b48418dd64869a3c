"""Queries by words: weights, matching fields, ties, and a current catalog."""

import os
from pathlib import Path

import pytest
from tests.kb.nodes import IDS, Folder, text

from quaid.kb import catalog as catalogs
from quaid.kb.node import NodeFilters


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "kb")


def found(store: Folder, context: str, **how: object) -> list[tuple[str, float, tuple[str, ...]]]:
    matches = catalogs.query_nodes(store.look(), context, **how)  # type: ignore[arg-type]
    return [(match.path, match.score, match.match) for match in matches]


def test_each_field_has_its_weight_and_counts_once(store: Folder) -> None:
    store.put("title.org", text(1, title="Harbour harbour"))
    store.put("tag.org", text(2, filetags=":principle:harbour:"))
    store.put("project.org", text(3, PROJECTS=":harbour:"))
    store.put("summary.org", text(4, SUMMARY="All about the harbour."))
    store.put("body.org", text(5, "Ships lie in the harbour, the harbour, the harbour.\n"))
    store.put("all.org", text(6, "harbour", title="Harbour", SUMMARY="harbour", PROJECTS=":harbour:"))
    store.put("none.org", text(7))
    assert found(store, "harbour") == [
        ("all.org", 175, ("title", "project", "summary", "body")),
        ("title.org", 100, ("title",)),
        ("tag.org", 50, ("tag",)),
        ("project.org", 50, ("project",)),
        ("summary.org", 20, ("summary",)),
        ("body.org", 5, ("body",)),
    ]
    assert found(store, "contested") == []
    store.put("status.org", text(8, STATUS="contested"))
    assert found(store, "contested") == [("status.org", 50, ("status",))]


def test_recency_breaks_ties_and_nothing_else(store: Folder) -> None:
    store.put("old.org", text(1, title="Formatter", CREATED="2020-01-01", UPDATED="2020-01-01"))
    store.put("new.org", text(2, "The formatter.\n", UPDATED="2026-11-01"))
    store.put("newer.org", text(3, "A formatter too.\n", UPDATED="2026-11-02"))
    assert [path for path, _, _ in found(store, "formatter")] == ["old.org", "newer.org", "new.org"]


def test_superseded_nodes_come_last_unless_their_id_is_asked_for(store: Folder) -> None:
    store.put("old.org", text(1, title="Formatter", STATUS="superseded", UPDATED="2026-11-03"))
    store.put("new.org", text(2, title="Formatter", UPDATED="2026-11-03"))
    store.put("body.org", text(3, "The formatter.\n"))
    assert [path for path, _, _ in found(store, "formatter")] == ["new.org", "body.org", "old.org"]
    assert found(store, f"formatter {IDS[0]}")[0][0] == "old.org"
    assert [path for path, _, _ in found(store, "formatter", filters=NodeFilters(status="superseded"))] == [
        "old.org"
    ]


def test_of_equal_scores_the_one_with_more_of_the_words_comes_first(store: Folder) -> None:
    store.put("one.org", text(1, "a mirror", UPDATED="2026-11-02"))
    store.put("two.org", text(2, "a mirror hook", UPDATED="2026-01-02", CREATED="2026-01-01"))
    assert [path for path, _, _ in found(store, "mirror hook")] == ["two.org", "one.org"]


@pytest.mark.parametrize(
    ("said", "asked", "is_found"),
    [
        ("two formatters", "formatter", True),
        ("the formatter", "formatters", True),
        ("reformatted", "format", False),
        ("formatting", "format", True),
        ("Ärger in KÖLN", "köln", True),
        ("git-hooks", "git-hooks", True),
        ("policies", "policy", False),
        ("a policy", "policies", True),
        ("知识库", "知识", True),
        ("the", "the", True),
        ("use it", "how should I use it", True),
        ("anything", "!!! ???", False),
        ("carts and cats", "c", False),
        ("written in C, mostly", "c", True),
        ("good googling", "go", False),
        ("in Go.", "go", True),
        ("all open PRs", "pr", True),
        ("Zahl 5", "5", True),
        ("Zahl 55", "5", False),
        ("知识库", "识", True),
    ],
)
def test_a_word_is_found_where_one_begins_with_it(
    store: Folder, said: str, asked: str, is_found: bool
) -> None:
    store.put("a.org", text(1, said + "\n", title="T", SUMMARY="S"))
    assert bool(found(store, asked)) == is_found


def test_filters_and_the_number_of_results(store: Folder) -> None:
    for number in range(1, 21):
        kind = ":procedure:" if number % 2 else ":preference:"
        store.put(f"{number:02}.org", text(number, "harbour", filetags=kind, PROJECTS=":emacs:"))
    assert len(found(store, "harbour")) == 10
    assert len(found(store, "harbour", most=3)) == 3
    assert len(found(store, "harbour", most=50, filters=NodeFilters(tag="procedure"))) == 10
    assert found(store, "harbour", filters=NodeFilters(project="general")) == []


def test_an_id_or_its_beginning_finds_its_node_first(store: Folder) -> None:
    inner = f"* A heading\n:PROPERTIES:\n:ID: {IDS[8]}\n:END:\n"
    store.put("a.org", text(1, inner, MERGED_IDS=IDS[5], UPDATED="2026-05-24"))
    store.put("b.org", text(2, f"See [[id:{IDS[0]}][a]].\n", title=f"About {IDS[0]}"))
    for asked in (IDS[0], IDS[0][:12], IDS[0][:8], f"ai-kb: Node 1 ({IDS[0]})", IDS[0].upper()):
        assert found(store, asked)[0][0] == "a.org", asked
        assert "id" in found(store, asked)[0][2]
    assert found(store, IDS[5])[0] == ("a.org", 500, ("id",))
    assert found(store, IDS[8])[0][:2] == ("a.org", 505)
    assert not any("id" in reasons for _, _, reasons in found(store, IDS[0][:5]))  # it could mean any of them


def test_properties_are_searched_and_weigh_least(store: Folder) -> None:
    store.put("a.org", text(1, CREATED_BY="codex", ROAM_ALIASES='"The quay"', SOURCE="raw/2026-quay.org"))
    store.put("b.org", text(2, "The quay.\n", CREATED="2020-01-01", UPDATED="2020-01-01"))
    assert found(store, "quay") == [("b.org", 5, ("body",)), ("a.org", 1, ("property",))]
    assert found(store, "codex") == [("a.org", 1, ("property",))]
    assert found(store, "created_by codex") == [("a.org", 1, ("property",))]
    assert found(store, "raw/2026-quay.org") == [("a.org", 1, ("property",))]
    assert found(store, "2020-01-01") == [("b.org", 1, ("property",))]


def test_property_that_many_nodes_have_is_not_a_match_for_another_question(store: Folder) -> None:
    store.put("a.org", text(1, SOURCE="written 2026-05-24"))
    store.put("b.org", text(2, "Memory is safe in rust.\n", SOURCE="written 2026-05-24"))
    assert found(store, "what is written in rust") == [("b.org", 6, ("body", "property"))]
    assert found(store, "is zeppelin observed") == []


def test_raw_and_index_files_are_not_results(store: Folder) -> None:
    store.put("raw/harbour.org", text(1, "harbour"))
    store.put("AGENT_CONTRACT.org", "harbour")
    store.put("index.org", "harbour")
    store.put(".hidden.org", "harbour")
    store.put("a.org", text(2, SOURCE="raw/harbour.org"))
    assert found(store, "harbour") == [("a.org", 1, ("property",))]


def test_changed_node_is_found_at_once(store: Folder) -> None:
    store.put("a.org", text(1, "harbour"))
    assert found(store, "harbour")
    store.put("a.org", text(1, "herbour"))  # within the same moment, of the same length
    assert found(store, "harbour") == []
    assert found(store, "herbour")
    store.put("sub/b.org", text(2, "harbour"))
    assert [path for path, _, _ in found(store, "harbour")] == ["sub/b.org"]
    os.unlink(store.root / "sub/b.org")
    assert found(store, "harbour") == []


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff\xfe", b'{"version": 1}\n', b'{"version": 99}\n', b"[]\nabc"]
)
def test_a_damaged_catalog_is_rebuilt(store: Folder, damage: bytes) -> None:
    store.put("a.org", text(1, "harbour"))
    assert found(store, "harbour")
    (store.root / ".git/ai-kb/catalog").write_bytes(damage)
    assert found(store, "harbour")


def test_unwritable_catalog_is_tolerated(tmp_path: Path) -> None:
    store = Folder(tmp_path / "kb")
    store.put("a.org", text(1, "harbour"))
    (store.root / ".git/ai-kb").rmdir()
    (store.root / ".git/ai-kb").write_text("in the way")
    assert found(store, "harbour")


def test_links_out_of_the_store_are_not_followed(store: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside.org").write_text(text(1, "harbour"))
    os.symlink(tmp_path / "outside.org", store.root / "link.org")
    os.mkdir(tmp_path / "folder")
    (tmp_path / "folder/x.org").write_text(text(2, "harbour"))
    os.symlink(tmp_path / "folder", store.root / "linked")
    assert found(store, "harbour") == []


def test_ids_survive_the_catalog(store: Folder) -> None:
    store.put("a.org", text(1, f"SUPERSEDES [[id:{IDS[1]}][b]] and [[id:{IDS[2]}]]\n", MERGED_IDS=IDS[3]))
    first = next(iter(store.look().nodes))
    assert [(link.id, link.relation) for link in first.links] == [(IDS[1], "SUPERSEDES"), (IDS[2], "")]
    assert first.merged == (IDS[3],)
    assert next(iter(store.look().nodes)) == first

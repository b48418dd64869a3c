"""The knowledge base through the gate: a real store with a real git, and a person who decides."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kb.nodes import Folder, text
from tests.kb.stores import plain as plain_git
from tests.kb.users import programs_without_emacs

from quaid.app import Brain, ModelCache
from quaid.config import Settings
from quaid.errors import (
    InvalidArgument,
    LintFailed,
    NearDuplicate,
    NotFound,
    OppositeAdded,
    StoreDirty,
    StoreMissing,
    StoreOccupied,
)
from quaid.kb import catalog as catalogs, health
from quaid.kb.git import Git
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

Call = Callable[..., dict[str, Any]]
NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z


@pytest.fixture
def brain(tmp_path: Path, models: ModelCache) -> Iterator[Brain]:
    """A brain on a machine without Emacs, with which `doctor` would build an index."""
    settings = Settings(
        db_path=str(tmp_path / "memory.db"),
        home=str(tmp_path / "home/.quaid"),
        cwd=str(tmp_path),
        environ={
            "PATH": programs_without_emacs().name,
            "AI_KB_DIR": str(tmp_path / "kb"),
            "HOME": str(tmp_path),
        },
    )
    with Brain(settings, clock=lambda: NOON, offset=lambda _: 7200, models=models) as brain:
        yield brain


@pytest.fixture
def call(brain: Brain) -> Call:
    def run(command: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = json_value(
            dispatch.call(brain, dispatch.find_command(f"kb {command}"), arguments, "owner")
        )
        return result

    return run


@pytest.fixture
def kb(call: Call, tmp_path: Path) -> Path:
    call("init")
    return tmp_path / "kb"


def remember(call: Call, title: str, summary: str, body: str = "Words.", **more: Any) -> dict[str, Any]:
    return call("remember", text=body, title=title, summary=summary, **more)


def head(kb: Path) -> str | None:
    return Git(str(kb), {"PATH": "/usr/bin:/bin", "HOME": str(kb)}).head()


def files(kb: Path) -> dict[str, bytes]:
    paths = [path for path in sorted(kb.rglob("*")) if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(kb)): path.read_bytes() for path in paths}


def test_a_store_is_made_once_and_mended_later(call: Call, tmp_path: Path) -> None:
    made = call("init")
    assert made["created"]
    assert sorted(made["files"]) == [
        "20260425140000-how-this-knowledge-base-is-used.org",
        "AGENT_CONTRACT.org",
        "index.org",
        "raw/README.org",
    ]
    before = head(tmp_path / "kb")
    assert call("init") | {"root": ""} == {
        "root": "",
        "created": False,
        "files": [],
        "remote": "",
        "commit": "",
    }
    assert head(tmp_path / "kb") == before
    assert call("lint")["findings"] == []
    (tmp_path / "kb/index.org").unlink()
    assert call("query", context="knowledge")["index_is_stale"]
    assert call("init")["files"] == ["index.org"]
    assert head(tmp_path / "kb") == before  # it is what the last commit had


@pytest.mark.usefixtures("kb")
def test_list_has_the_tags_and_projects_of_all_nodes(call: Call) -> None:
    remember(call, "Ports", "Ports of services.", type="principle", tags=["build"], projects=["emacs"])
    listed = call("list", tag="build", limit=1)
    assert [node["title"] for node in listed["nodes"]] == ["Ports"]
    assert listed["tags"] == ["build", "principle", "reference"]
    assert listed["projects"] == ["emacs", "general"]


def test_query_caches_the_state_of_the_index(call: Call, kb: Path) -> None:
    folder = kb / ".git/ai-kb"
    (folder / catalogs.CATALOG_NAME).unlink()
    call("query", context="knowledge")
    assert catalogs.load_catalog(str(kb)).index_problem == ""
    (kb / "index.org").unlink()
    assert catalogs.load_catalog(str(kb)).index_problem is None
    assert call("query", context="knowledge")["index_is_stale"]
    assert catalogs.load_catalog(str(kb)).index_problem


def test_without_a_store_the_remedy_is_named(call: Call) -> None:
    for command, arguments in (
        ("query", {"context": "x"}),
        ("status", {}),
        ("lint", {}),
        ("show", {"node": "x"}),
    ):
        with pytest.raises(StoreMissing, match="ai-kb init"):
            call(command, **arguments)


def test_a_node_is_written_whole_and_found(call: Call, kb: Path) -> None:
    result = remember(
        call,
        "Mirror a repository",
        "How to mirror a repository to a second host.",
        "Use a hook.",
        type="procedure",
        tags=["git-hooks"],
        projects=["emacs", "general"],
        confidence="user-stated",
        source="chat 2026-04-25",
        visibility="work-private",
        created_by="claude-code",
        links=["IMPLEMENTS How this knowledge base is used"],
    )
    node = result["node"]
    assert (node["path"], node["type"], node["projects"]) == (
        "20260425140000-mirror-a-repository.org",
        "procedure",
        ["emacs", "general"],
    )
    written = (kb / node["path"]).read_text()
    first = call("show", node="How this knowledge base is used")["node"]["id"]
    assert written == (
        ":PROPERTIES:\n"
        f":ID:         {node['id']}\n"
        ":PROJECTS:   :emacs: :general:\n"
        ":CREATED:    2026-04-25\n"
        ":UPDATED:    2026-04-25\n"
        ":CREATED_BY: claude-code\n"
        ":CONFIDENCE: user-stated\n"
        ":VISIBILITY: work-private\n"
        ":SOURCE:     chat 2026-04-25\n"
        ":STATUS:     current\n"
        ":SUMMARY:    How to mirror a repository to a second host.\n"
        ":END:\n"
        "#+title: Mirror a repository\n"
        "#+filetags: :procedure:git_hooks:\n"
        "\n"
        "Use a hook.\n"
        "\n"
        f"IMPLEMENTS [[id:{first}][How this knowledge base is used]]\n"
    )
    assert result["commit"] == head(kb)
    matches = call("query", context="mirrors")["matches"]
    assert [(item["id"], item["match"], item["score"]) for item in matches] == [
        (node["id"], ["title", "summary"], 120)
    ]
    assert [backlink["id"] for backlink in call("backlinks", node=first)["backlinks"]] == [node["id"]]
    assert call("show", node=f"ai-kb: Mirror a repository ({node['id']})")["text"] == written
    assert call("lint")["findings"] == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"title": ""}, "title"),
        ({"summary": " "}, "summary"),
        ({"summary": "word " * 100}, "summary"),
        ({"body": " \n"}, "content"),
        ({"projects": ["My App"]}, "my-app"),
        ({"tags": ["a b"]}, "tags"),
        ({"links": ["No such node"]}, "No such node"),
        ({"created_by": "HAL"}, "created_by"),
    ],
)
def test_a_wrong_node_says_what_is_wrong_and_writes_nothing(
    call: Call, kb: Path, wrong: dict[str, Any], told: str
) -> None:
    before, was = files(kb), head(kb)
    with pytest.raises((InvalidArgument, NotFound)) as error:
        remember(call, **{"title": "T", "summary": "S", **wrong})
    assert told in str(error.value)
    assert (files(kb), head(kb)) == (before, was)


@pytest.mark.parametrize(
    "body",
    [
        ":PROPERTIES:\n:ID: x\n:END:\nhello",
        "* Heading\n:PROPERTIES:\n:ID: another\n:END:\ntext",
        "#+title: another\nhello",
        "#+begin_src sh\n,* fine\n#+end_src",
        "[[id:00000000-0000-4000-8000-000000000009][broken]]",
        "#+begin_example\n* open",
        "ghp_" + "aB3dE5fG7h" * 3 + "k9LmN1",
        "\ufeffBOM and \u202e tricks\r\nlines\r\n",
    ],
)
def test_any_body_gives_a_good_node_or_nothing(call: Call, kb: Path, body: str) -> None:
    before, was = files(kb), head(kb)
    try:
        result = remember(call, "Some title", "Some summary.", body)
    except LintFailed:
        assert (files(kb), head(kb)) == (before, was)
    else:
        shown = call("show", node=result["node"]["id"])
        assert (shown["node"]["title"], shown["node"]["summary"]) == ("Some title", "Some summary.")
    assert call("lint")["findings"] == []


def test_existing_node_is_reported_before_writing(call: Call, kb: Path) -> None:
    first = remember(call, "Sign commits", "Every commit is signed with the work key.")
    before = files(kb)
    with pytest.raises(NearDuplicate, match=first["node"]["id"]):
        remember(call, "Sign the commits", "Every commit is signed with the work key.")
    assert files(kb) == before
    assert remember(call, "Sign the commits", "Every commit is signed with the work key.", force=True)[
        "commit"
    ]


@pytest.mark.parametrize(
    ("projects", "tags"),
    [
        (["emacs", "python"], ["ci", "build"]),
        (["emacs,python"], ["ci,build"]),
        (["emacs, python,"], ["ci", " build"]),
        ([":emacs: :python:"], [":ci:build:"]),
    ],
)
def test_lists_are_given_one_by_one_or_with_commas(
    call: Call, kb: Path, projects: list[str], tags: list[str]
) -> None:
    node = remember(call, "Ports", "Which ports are open.", projects=projects, tags=tags)["node"]
    assert node["projects"] == ["emacs", "python"]
    assert "#+filetags: :observation:ci:build:\n" in (kb / node["path"]).read_text()


def test_links_by_id_are_given_with_commas_and_titles_may_hold_them(call: Call, kb: Path) -> None:
    one = remember(call, "Ports, and doors", "Which ports are open.")["node"]
    two = remember(call, "Keys", "Where the keys are.")["node"]
    made = remember(call, "House", "All of it.", links=[f"IMPLEMENTS {one['id']},{two['id']}"])["node"]
    assert [link["id"] for link in call("show", node=made["id"])["links"]] == [one["id"], two["id"]]
    made = remember(call, "Garden", "What grows.", links=["ports, and doors"])["node"]
    assert [link["id"] for link in call("show", node=made["id"])["links"]] == [one["id"]]


def test_a_wrong_project_in_a_list_is_named(call: Call, kb: Path) -> None:
    with pytest.raises(InvalidArgument, match="'My App' is no slug; my-app would be one"):
        remember(call, "Ports", "Which ports are open.", projects=["emacs,My App"])


def test_nodes_of_one_batch_are_named_by_eight_digits(call: Call, kb: Path) -> None:
    """The clock of the test stands still."""
    ids = [
        remember(call, f"Title {word}", f"All about {word}.")["node"]["id"]
        for word in ("ports", "doors", "keys")
    ]
    assert len({id[:8] for id in ids}) == 3
    for id in ids:
        assert call("show", node=id[:8])["node"]["id"] == id
        assert id[14] == "4"


def test_an_id_does_not_begin_like_another_one(call: Call, kb: Path) -> None:
    from quaid.kb import catalog as catalogs, edits

    taken = remember(call, "Ports", "Which ports are open.")["node"]["id"]
    offered = iter([taken[:8] + "-0000-4000-8000-000000000000", "12345678-0000-4000-8000-000000000000"])
    looked = catalogs.load_catalog(str(kb))
    assert edits.free_id(looked, lambda: next(offered)).startswith("12345678")


def test_something_can_be_added_to_a_node(call: Call, kb: Path) -> None:
    result = remember(call, "Sign commits", "Every commit is signed.")
    place = kb / result["node"]["path"]
    before = place.read_text()
    again = call("remember", text="Tags too.", add_to="sign commits", summary="Commits and tags are signed.")
    assert not again["created"]
    assert (
        place.read_text()
        == before.replace(":SUMMARY:    Every commit is signed.", ":SUMMARY:    Commits and tags are signed.")
        + "Tags too.\n"
    )
    assert "Commits and tags are signed." in (kb / "index.org").read_text()


def test_a_contradiction_is_marked_on_both_sides_and_left_to_a_person(call: Call, kb: Path) -> None:
    old = remember(call, "Indentation", "Always indent with tabs.", type="preference")["node"]
    new = remember(call, "Indent style", "Never indent with tabs.", type="preference")
    assert [node["id"] for node in new["contradicts"]] == [old["id"]]
    assert new["contradicts"][0]["other"] == "Always indent with tabs."
    for node in (old["id"], new["node"]["id"]):
        assert call("show", node=node)["node"]["status"] == "contested"
    assert "Contested" in (kb / "index.org").read_text()
    settled = call("supersede", node=old["id"], by=new["node"]["id"], yes=True)
    assert settled["done"]
    assert call("show", node=old["id"])["node"]["status"] == "superseded"
    assert call("show", node=new["node"]["id"])["node"]["status"] == "current"
    assert call("lint")["findings"] == []


def test_human_operations_ask_and_change_nothing_before(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]["id"]
    two = remember(call, "Two", "Something quite different.", links=[one])["node"]["id"]
    before, was = files(kb), head(kb)
    for command, arguments in (
        ("merge", {"node": one, "other": two}),
        ("delete", {"node": two}),
        ("supersede", {"node": one, "by": two}),
        ("contest", {"node": one, "against": two}),
    ):
        result = call(command, **arguments)
        assert not result["done"]
        assert result["files"]
    assert (files(kb), head(kb)) == (before, was)
    for command in ("merge", "delete", "supersede", "contest"):
        assert not dispatch.find_command(f"kb {command}").is_tool


def test_two_nodes_become_one_and_pointers_go_on_leading_there(call: Call, kb: Path) -> None:
    kept = remember(call, "Kept", "What stays.", "Kept words.")["node"]
    gone = remember(call, "Gone", "What goes into it.", "* Part\nGone words.")["node"]
    third = remember(call, "Third", "It links there.", f"See [[id:{gone['id']}][gone]].")["node"]
    call("merge", node=kept["id"], other=gone["id"], yes=True)
    assert not (kb / gone["path"]).exists()
    written = (kb / kept["path"]).read_text()
    assert "Kept words." in written
    assert "* Gone\nWhat goes into it.\n\n** Part\nGone words.\n" in written
    assert (kb / third["path"]).read_text().count(f"[[id:{kept['id']}][gone]]") == 1
    assert call("show", node=gone["id"])["node"]["id"] == kept["id"]
    assert call("lint")["findings"] == []


def test_a_node_that_others_need_is_not_deleted_by_accident(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]
    two = remember(call, "Two", "Something quite different.", f"See [[id:{one['id']}][the one]].")["node"]
    with pytest.raises(InvalidArgument, match="Two"):
        call("delete", node=one["id"], yes=True)
    call("delete", node=one["id"], force=True, yes=True)
    assert not (kb / one["path"]).exists()
    assert "See the one." in (kb / two["path"]).read_text()
    assert call("lint")["findings"] == []


def test_a_merge_keeps_projects_tags_and_sources_and_no_link_to_itself(call: Call, kb: Path) -> None:
    source = call("capture", source="https://example.org/a", excerpt="Words.")["path"]
    one = remember(call, "Indent A", "Always indent with tabs.", projects=["emacs"], tags=["lisp"])["node"]
    two = remember(
        *(call, "Indent B", "Never indent with tabs."),
        projects=["emacs", "python"],
        tags=["style"],
        source=source,
        type="preference",
    )
    assert [node["id"] for node in two["contradicts"]] == [one["id"]]
    call("merge", node=one["id"], other=two["node"]["id"], yes=True)
    shown = call("show", node=two["node"]["id"])
    assert shown["node"]["id"] == one["id"]
    assert shown["node"]["projects"] == ["emacs", "python"]
    assert shown["links"] == []
    assert "CONTRADICTS" not in shown["text"]
    assert "#+filetags: :observation:lisp:style:\n" in shown["text"]
    assert source in shown["text"]
    assert source not in call("curate", dry_run=True)["report"]["raw_unused"]
    assert call("lint")["findings"] == []


def test_a_capture_is_deleted_with_its_whole_file(call: Call, kb: Path, tmp_path: Path) -> None:
    (tmp_path / "manual.pdf").write_bytes(bytes(range(256)))
    made = call("capture", source="manual.pdf", full=True)
    node = remember(call, "Manual", "What the manual says.", source=made["path"])["node"]
    with pytest.raises(InvalidArgument, match="source of Manual"):
        call("delete", node=made["path"], yes=True)
    with pytest.raises(InvalidArgument, match=f"belongs to {made['path']}"):
        call("delete", node=made["file"], yes=True)
    for wrong in ("raw/nothing.org", "raw/README.org"):
        with pytest.raises(NotFound, match="capture"):
            call("delete", node=wrong, yes=True)
    call("delete", node=node["id"], yes=True)
    assert call("delete", node=made["path"], dry_run=True)["files"] == [made["path"], made["file"]]
    assert (kb / made["file"]).exists()
    assert set(call("delete", node=made["path"], yes=True)["files"]) == {made["path"], made["file"]}
    assert not (kb / made["file"]).exists()
    assert call("lint")["findings"] == []


def test_notes_of_projects_that_name_a_node_are_reported_before_it_goes(
    call: Call, brain: Brain, kb: Path
) -> None:
    node = remember(call, "Ports", "Which ports are open.")["node"]
    kept = remember(call, "Doors", "Which doors are open.", force=True)["node"]
    memory = Path(brain.settings.user_home, ".claude/projects/-home-ann-code/memory/MEMORY.md")
    memory.parent.mkdir(parents=True)
    memory.write_text(f"- ai-kb: Ports ({node['id']})\n")
    assert call("delete", node=node["id"], dry_run=True)["pointers"] == [str(memory)]
    assert call("delete", node=kept["id"], dry_run=True)["pointers"] == []
    assert call("merge", node=kept["id"], other=node["id"], dry_run=True)["pointers"] == [str(memory)]
    assert call("supersede", node=node["id"], by=kept["id"], dry_run=True)["pointers"] == []


def test_repeated_action_is_reported_and_not_repeated(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]["id"]
    two = remember(call, "Two", "Another matter.")["node"]["id"]
    call("supersede", node=one, by=two, yes=True)
    for command, arguments in (
        ("supersede", {"node": one, "by": two}),
        ("contest", {"node": two, "settle": True}),
    ):
        with pytest.raises(InvalidArgument, match="already"):
            call(command, **arguments, yes=True)


def test_a_link_that_names_a_contradiction_makes_both_contested(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]
    made = remember(call, "Two", "Another matter.", links=[f"CONTRADICTS {one['id']}"])
    assert [node["id"] for node in made["contradicts"]] == [one["id"]]
    text = call("show", node=made["node"]["id"])["text"]
    assert text.count("CONTRADICTS") == 1
    for node in (one["id"], made["node"]["id"]):
        assert call("show", node=node)["node"]["status"] == "contested"


def test_only_a_person_supersedes_and_other_relations_are_named(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]
    before = files(kb)
    with pytest.raises(InvalidArgument, match="ai-kb supersede"):
        remember(call, "Two", "Another matter.", links=[f"SUPERSEDES {one['id']}"])
    with pytest.raises(InvalidArgument, match="'BLOCKS' is no relation"):
        remember(call, "Two", "Another matter.", links=["BLOCKS One"])
    with pytest.raises(InvalidArgument, match="ai-kb capture"):
        remember(call, "Two", "Another matter.", source="raw/nothing.org")
    assert files(kb) == before


def test_names_are_resolved_only_exactly(call: Call, kb: Path) -> None:
    one = remember(call, "Alpha", "The first thing.")["node"]
    remember(call, "alpha", "Something quite different.", force=True)
    with pytest.raises(InvalidArgument, match="can mean"):
        call("delete", node="Alpha", yes=True)
    with pytest.raises(NotFound, match="Did you mean"):
        call("show", node="Alfa")
    assert call("show", node=one["path"])["node"]["id"] == one["id"]
    assert call("show", node=f"id:{one['id'].upper()}")["node"]["id"] == one["id"]


def test_manual_edits_pass_the_same_checks(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]
    place = kb / one["path"]
    place.write_text(
        place.read_text().replace("Words.", "Better words.").replace("The first", "The very first")
    )
    with pytest.raises(StoreDirty, match="ai-kb commit"):
        remember(call, "Two", "Something quite different.")
    result = call("commit")
    assert result["paths"] == sorted([one["path"], "index.org"])
    assert "very first" in (kb / "index.org").read_text()
    unchanged = call("commit")
    assert (unchanged["commit"], unchanged["paths"], unchanged["offline"]) == ("", [], "")
    good = place.read_text()
    place.write_text(good.replace(":STATUS:     current", ":STATUS: maybe"))
    was, index = head(kb), (kb / "index.org").read_text()
    with pytest.raises(LintFailed, match="STATUS"):
        call("commit")
    assert head(kb) == was
    assert "maybe" in place.read_text()  # the person's text stays on the disk
    assert (kb / "index.org").read_text() == index
    assert call("status")["uncommitted"] == [one["path"]]
    place.write_text(good)
    assert call("status")["nudge"] == ""


def test_captures_have_limits_and_are_named_by_nodes(call: Call, kb: Path) -> None:
    result = call("capture", source="https://example.org/a", excerpt="word " * 3_000, title="On locks")
    assert result["path"] == "raw/20260425140000-on-locks.org"
    assert result["cut"]
    written = (kb / result["path"]).read_text()
    assert written.count("word") == 2_000
    assert "#+source: https://example.org/a\n#+retrieved: 2026-04-25\n" in written
    assert call("curate", dry_run=True)["report"]["raw_unused"] == [result["path"]]
    remember(call, "Locks", "What was read of locks.", source=result["path"])
    assert call("curate", dry_run=True)["report"]["raw_unused"] == []
    with pytest.raises(InvalidArgument, match="nothing is fetched"):
        call("capture", source="https://example.org/b")
    with pytest.raises(LintFailed):
        call("capture", source="https://example.org/c", excerpt="password: hunter2hunter9\n")
    assert call("lint")["findings"] == []


def test_a_whole_file_is_captured_as_it_is(call: Call, kb: Path, tmp_path: Path) -> None:
    data = bytes(range(256)) * 20
    (tmp_path / "Man ual.PDF").write_bytes(data)
    result = call("capture", source="Man ual.PDF", full=True)
    assert result["path"] == "raw/20260425140000-man-ual-pdf.org"
    assert result["file"] == "raw/files/20260425140000-man-ual.pdf"
    assert (kb / result["file"]).read_bytes() == data


def test_an_excerpt_cannot_break_out_of_its_quote(call: Call, kb: Path) -> None:
    result = call(
        "capture", source="https://example.org/x", excerpt="a\n#+end_quote\n* Heading\n:PROPERTIES:\n"
    )
    written = (kb / result["path"]).read_text()
    assert written.count("\n#+end_quote") == 1
    assert "\n* Heading" not in written


def test_the_report_of_curation(call: Call, kb: Path) -> None:
    linked = remember(call, "Linked", "It is linked.")["node"]
    remember(call, "Another", "Somewhere else it goes on.", f"[[id:{linked['id']}][l]]")
    alone = remember(call, "Alone", "Nobody links here.")["node"]
    report = call("curate", dry_run=True)["report"]
    assert alone["id"] in [orphan["id"] for orphan in report["orphans"]]
    assert linked["id"] not in [orphan["id"] for orphan in report["orphans"]]
    remember(call, "Broad", "Much of everything.", "\n".join(f"* Part {n}\nText." for n in range(8)))
    assert [item["title"] for item in call("curate", dry_run=True)["report"]["broad"]] == ["Broad"]
    done = call("curate", yes=True)
    assert done["stamped"] == 5
    assert all(
        item["last_curated"] == "2026-04-25" for item in call("curate", dry_run=True)["report"]["batch"]
    )
    assert call("lint")["findings"] == []


def test_curation_lists_all_superseded_nodes_and_who_still_links_to_them(call: Call, kb: Path) -> None:
    old = remember(call, "Old way", "How it was done.")["node"]
    other = remember(call, "Other way", "Another habit of long ago.")["node"]
    new = remember(call, "New way", "What is done from now on.")["node"]
    call("supersede", node=old["id"], by=new["id"], yes=True)
    call("supersede", node=other["id"], by=new["id"], yes=True)
    user = remember(call, "Release notes", "Built the old way.", links=[f"IMPLEMENTS {old['id']}"])["node"]
    results = {item["node"]["id"]: item for item in call("curate", dry_run=True)["report"]["superseded"]}
    assert set(results) == {old["id"], other["id"]}
    assert [item["id"] for item in results[old["id"]]["by"]] == [new["id"]]
    assert [item["id"] for item in results[old["id"]]["linked_from"]] == [user["id"]]
    assert results[other["id"]]["linked_from"] == []


def test_a_pointer_whose_id_is_gone_leads_on_by_its_title(call: Call, kb: Path) -> None:
    node = remember(call, "Formatter (black) order", "black first, then ruff")["node"]
    gone = "00000000-0000-4000-8000-000000000000"
    for pointer in (
        f"ai-kb: Formatter (black) order ({gone})",
        f"formatter (BLACK) order ({gone})",
        f"[[id:{gone}][Formatter (black) order]]",
    ):
        for command in ("show", "backlinks"):
            shown = call(command, node=pointer)
            assert shown["node"]["id"] == node["id"]
            assert gone in shown["note"]
    assert call("show", node=f"ai-kb: Renamed since ({node['id']})")["node"]["id"] == node["id"]
    assert call("show", node=f"[[id:{node['id']}][x]]")["note"] == ""
    with pytest.raises(NotFound):
        call("show", node=f"ai-kb: No such title ({gone})")
    before = files(kb)
    for command, more in (("delete", {"yes": True}), ("supersede", {"by": node["id"], "yes": True})):
        with pytest.raises(NotFound):  # whatever changes a node must name it exactly
            call(command, node=f"ai-kb: Formatter (black) order ({gone})", **more)
    assert files(kb) == before


def test_a_node_added_by_hand_is_in_the_index_after_index(call: Call, kb: Path) -> None:
    (kb / "hand.org").write_text(text(1, title="By hand"))
    assert "By hand" not in (kb / "index.org").read_text()
    assert call("lint", index=True)["findings"][0]["code"] == "index-stale"
    result = call("index")
    assert (result["taken_up"], result["files"], result["nodes"]) == (["hand.org"], ["index.org"], 2)
    assert "| By hand |" in (kb / "index.org").read_text()
    assert result["commit"] == head(kb)
    assert call("status")["uncommitted"] == []
    again = call("index")
    assert (again["taken_up"], again["files"], again["commit"]) == ([], [], "")
    (kb / "hand.org").unlink()
    assert call("index")["taken_up"] == ["hand.org"]
    assert "By hand" not in (kb / "index.org").read_text()


def test_index_takes_up_nothing_that_lint_refuses(call: Call, kb: Path) -> None:
    (kb / "hand.org").write_text(text(1, title="By hand", drop=("SUMMARY",)))
    before, was = files(kb), head(kb)
    with pytest.raises(LintFailed, match=r"hand\.org:1: :SUMMARY: is missing"):
        call("index")
    assert (files(kb), head(kb)) == (before, was)


@pytest.mark.parametrize(
    ("nodes", "curated", "new", "due"),
    [(149, 0, 0, False), (150, 0, 0, True), (150, 25, 0, False), (150, 25, 49, False), (150, 25, 50, True)],
)
def test_curation_is_due_at_150_nodes_and_every_50_more(
    tmp_path: Path, nodes: int, curated: int, new: int, due: bool
) -> None:
    store = Folder(tmp_path / "kb")
    for number in range(1, nodes + new + 1):
        more: dict[str, Any] = {"LAST_CURATED": "2026-06-01"} if number <= curated else {}
        day = "2026-06-02" if number > nodes else "2026-05-01"
        store.put(f"{number}.org", text(number, CREATED=day, UPDATED=day, **more))
    assert health.check_curation(list(store.look().nodes))[0] == due


def test_meaning_is_looked_for_on_request(call: Call, brain: Brain, kb: Path) -> None:
    node = remember(call, "Keeping secrets", "Credentials live in the password manager.")["node"]
    words = call("query", context="where do passwords go", semantic=True)
    assert words["note"].startswith("By words only")
    brain.create(brain.settings.db_path)
    result = call("query", context="where do login keys go", semantic=True)
    assert result["matches"][0]["id"] == node["id"]
    assert result["matches"][0]["match"] == ["meaning"]


def test_distant_meaning_is_not_a_match(call: Call, brain: Brain, kb: Path) -> None:
    remember(call, "Keeping secrets", "Credentials live in the password manager.")
    remember(call, "Garden", "Water the roses in the morning.")
    brain.create(brain.settings.db_path)
    near = call("query", context="safe place for access tokens and logins", semantic=True)["matches"]
    assert [item["title"] for item in near] == ["Keeping secrets"]
    assert call("query", context="orbits of distant planets", semantic=True)["matches"] == []


def test_scores_of_words_and_of_meaning_are_distinguished(call: Call, brain: Brain, kb: Path) -> None:
    remember(call, "Keeping secrets", "Credentials live in the password manager.")
    remember(call, "Garden", "Water the roses in the morning.", "Keep the login sheet of the garden club.")
    context = "where do login keys go"
    by_words = {match["title"]: match["score"] for match in call("query", context=context)["matches"]}
    brain.create(brain.settings.db_path)
    matches = call("query", context=context, semantic=True)["matches"]
    assert {item["title"]: item["score"] for item in matches if item["score"]} == by_words == {"Garden": 5}
    assert "Keeping secrets" in [item["title"] for item in matches if "meaning" in item["match"]]
    assert all(item["relevance"] is None or 0 <= item["relevance"] <= 1 for item in matches)
    assert matches[0]["relevance"] is not None
    assert call("query", context=context)["matches"][0]["relevance"] is None


def test_what_is_added_to_a_node_can_contradict_another_one(call: Call, kb: Path) -> None:
    old = remember(call, "Squashing", "Always squash commits before merging.", type="principle")["node"]
    notes = remember(call, "Git notes", "Assorted habits with git.")["node"]
    result = call("remember", text="Never squash commits before merging.", add_to=notes["id"])
    assert [node["id"] for node in result["contradicts"]] == [old["id"]]
    for node in (old["id"], notes["id"]):
        assert call("show", node=node)["node"]["status"] == "contested"
    assert call("lint")["findings"] == []


def test_statements_in_a_body_are_contradicted_too(call: Call, kb: Path) -> None:
    old = remember(
        call, "Go style", "How Go code is written here.", "Always use tabs for indentation in Go code."
    )["node"]
    result = remember(call, "Indent Go code", "Never use tabs for indentation in Go code.")
    assert [node["id"] for node in result["contradicts"]] == [old["id"]]


@pytest.mark.parametrize(
    ("summary", "body", "added", "sentences"),
    [
        (
            "How Go code is written here.",
            "Gofmt decides.\nAlways use tabs for indentation.",
            "By the way: never use tabs for indentation.",
            ("never use tabs", "Always use tabs"),
        ),
        ("The line length is 88.", "", "The line length is 100.", ("100", "88")),
        (
            "Our style.",
            "We prefer spaces over tabs.",
            "We prefer tabs over spaces.",
            ("tabs over", "spaces over"),
        ),
    ],
)
def test_an_addition_does_not_contradict_its_own_node_silently(
    call: Call, kb: Path, summary: str, body: str, added: str, sentences: tuple[str, str]
) -> None:
    node = remember(call, "Go style", summary, body or "As it says.")["node"]
    before = files(kb)
    with pytest.raises(OppositeAdded) as error:
        call("remember", text=added, add_to=node["id"])
    for part in (*sentences, node["id"], "without --add-to", "--force"):
        assert part in str(error.value)
    assert files(kb) == before
    forced = call("remember", text=added, add_to=node["id"], force=True)
    assert [node["id"] for node in forced["contradicts"]] == [node["id"]]
    assert call("show", node=node["id"])["node"]["status"] == "contested"
    assert call("lint")["findings"] == []


def test_a_new_summary_that_says_the_opposite_is_refused_too(call: Call, kb: Path) -> None:
    node = remember(call, "Squashing", "Always squash commits before merging.", "As we agreed.")["node"]
    with pytest.raises(OppositeAdded):
        call("remember", text="We talked.", add_to=node["id"], summary="Never squash commits before merging.")


@pytest.mark.parametrize(
    "added",
    [
        "In Makefiles, always use tabs.",
        "Until 2019 we never used spaces for indentation.",
        "Should we ever use tabs?",
        "Always use spaces for indentation.",
        "It also holds for tests.",
    ],
)
def test_an_addition_that_only_narrows_or_repeats_is_written(call: Call, kb: Path, added: str) -> None:
    node = remember(call, "Indentation", "How we indent.", "Always use spaces for indentation.")["node"]
    assert call("remember", text=added, add_to=node["id"])["contradicts"] == []


def test_an_addition_takes_links_and_refuses_what_belongs_to_a_new_node(call: Call, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]
    two = remember(call, "Two", "Another matter.")["node"]
    call("remember", text="More.", add_to=two["id"], links=[f"IMPLEMENTS {one['id']}"])
    assert [link["id"] for link in call("show", node=two["id"])["links"]] == [one["id"]]
    for name, value in (("title", "New"), ("tags", ["a"]), ("projects", ["emacs"]), ("source", "chat")):
        with pytest.raises(InvalidArgument, match=name):
            call("remember", text="More.", add_to=two["id"], **{name: value})
    with pytest.raises(InvalidArgument, match="summary"):
        call("remember", text="More.", add_to=two["id"], summary="long " * 100)


def test_an_agent_does_not_sign_as_a_person(call: Call, brain: Brain, kb: Path) -> None:
    for agent, asked, output in (
        ("claude-code", None, "claude-code"),
        ("claude-code", "human", "claude-code"),
        ("some-editor", None, "some-editor"),
        ("some-editor", "human", "some-editor"),
        ("Some Editor", None, "agent"),
        ("", None, "human"),
        ("", "codex", "codex"),
    ):
        brain.agent = agent
        more = {"created_by": asked} if asked else {}
        node = remember(call, f"By {agent} {asked}", f"Written as {agent} {asked}.", force=True, **more)[
            "node"
        ]
        assert f":CREATED_BY: {output}\n" in call("show", node=node["id"])["text"]


def test_store_that_cannot_be_written_is_reported_by_the_doctor(call: Call, kb: Path) -> None:
    def tree() -> dict[str, Any]:
        checks = {check["name"]: check for check in call("doctor")["checks"]}
        result: dict[str, Any] = checks["tree"]
        return result

    assert tree()["well"]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(kb)}
    plain_git(kb, "switch", "-q", "-c", "topic", environ=environ)
    assert not tree()["well"]
    plain_git(kb, "switch", "-q", "--detach", environ=environ)
    assert "no branch" in tree()["told"]


def test_a_folder_with_other_files_is_not_made_a_store(call: Call, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/notes.org").write_text("* mine\n")
    with pytest.raises(StoreOccupied):
        call("init")
    assert sorted(path.name for path in (tmp_path / "kb").iterdir()) == ["notes.org"]


def test_a_node_that_git_would_ignore_is_committed_like_any_other(call: Call, kb: Path) -> None:
    (kb / ".gitignore").write_text("*.org\n")
    plain_git(kb, "add", ".gitignore", environ={"PATH": "/usr/bin:/bin", "HOME": str(kb)})
    plain_git(kb, "commit", "-q", "-m", "ignore", environ={"PATH": "/usr/bin:/bin", "HOME": str(kb)})
    (kb / "hand.org").write_text(text(5, title="By hand"))
    assert "hand.org" in call("commit")["paths"]
    assert "hand.org" in plain_git(kb, "ls-files", environ={"PATH": "/usr/bin:/bin", "HOME": str(kb)})


def test_a_dry_run_of_what_only_people_do_asks_nothing(call: Call, brain: Brain, kb: Path) -> None:
    one = remember(call, "One", "The first thing.")["node"]["id"]
    before = files(kb)
    record = dispatch.call(
        brain, dispatch.find_command("kb delete"), {"node": one, "dry_run": True, "yes": True}, "owner"
    )
    assert record.if_agreed == {}
    assert files(kb) == before


def test_the_password_of_an_address_is_in_no_name(call: Call, kb: Path) -> None:
    source = "https://user:pw123secret@example.org/a?token=abcdef"
    with pytest.raises(LintFailed) as error:
        call("capture", source=source, excerpt="Words.")
    assert "pw123secret" not in str(error.value)
    assert "abcdef" not in str(error.value)


def test_a_node_of_an_agent_waits_for_review(brain: Brain, call: Call, kb: Path) -> None:
    brain.create(brain.settings.db_path)

    def owner(command: str, **arguments: Any) -> Any:
        return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")

    owner("config set", key="agent_writes", value="review")
    before = head(kb)
    brain.agent = "codex"
    fields = {"text": "Two wheels.", "title": "Bicycles", "summary": "What bicycles have"}
    answer = dispatch.call(brain, dispatch.find_tool("kb_remember"), fields, "write")
    brain.agent = ""
    assert (answer.proposal, answer.collection) == (1, "kb")
    assert head(kb) == before
    [shown] = owner("review").proposals
    assert "+Two wheels." in shown.diff
    assert [row.outcome for row in owner("review", yes=True).decided] == ["accepted"]
    assert head(kb) != before
    assert call("query", context="bicycles")["matches"][0]["title"] == "Bicycles"


def test_a_question_finds_nodes_at_once_and_superseded_ones_last(brain: Brain, call: Call, kb: Path) -> None:
    brain.create(brain.settings.db_path)
    query = dispatch.find_command("query")
    old = remember(call, "Pump supplier", "The pump supplier is Weir", "We buy every pump of Weir.")
    first = dispatch.call(brain, query, {"query": "who is the pump supplier"}, "owner").results[0]
    assert (first.origin, first.title, first.status) == ("kb", "Pump supplier", "")
    new = remember(
        call, "Supplier of the pump", "The pump comes from Grundfos", "We order at Grundfos.", force=True
    )
    call("supersede", node=old["node"]["id"], by=new["node"]["id"], yes=True)
    results = dispatch.call(brain, query, {"query": "who is the pump supplier"}, "owner").results
    assert [(result.title, result.status) for result in results[:2]] == [
        ("Supplier of the pump", ""),
        ("Pump supplier", "superseded"),
    ]

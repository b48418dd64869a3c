"""Callers that are bound to a part of the memory: nothing else exists for them, in any operation of the registry."""

import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.faults.ledger import LONG
from tests.operations.scoped_memory import (
    CANARY,
    Only,
    answer,
    build,
    examples,
    open_brain,
    run,
    scoped_calls,
    without_numbers,
)

from quaid.app import Brain
from quaid.embedding.registry import ModelCache
from quaid.errors import InvalidArgument, NotAllowed, NotFound, OutsideScope, PageNotFound, QuaidError
from quaid.operations import dispatch
from quaid.operations.registry import all_operations
from quaid.operations.service import token_create, token_list

SCOPES: list[Only] = [
    (("work",),),
    (("work", "wing:people"),),
    (("wing:people",),),
    (("work", "notebook", "kb", "conversations"),),
    (("work", "wing:people"), ("wing:people",)),
]


class Side:
    """A memory, and a Brain that sees a part of it. A changed memory is put back."""

    def __init__(
        self, home: Path, only: Only, outside: bool, models: "ModelCache | None" = None, model: str = "off"
    ) -> None:
        self.home, self._only, self._models, self._model = home, only, models, model
        self._kept = home.with_name(home.name + "-kept")
        build(home, only, outside, models)
        shutil.copytree(home, self._kept, symlinks=True)
        self.brain = self._open()

    def _open(self) -> Brain:
        return open_brain(self.home, 100_000, self._only, self._model, self._models)

    def put_back(self) -> None:
        self.brain.close()
        shutil.rmtree(self.home)
        shutil.copytree(self._kept, self.home, symlinks=True)
        self.brain = self._open()


SHARE = 1 if LONG else 20
"""One of this many calls with replaced arguments is made for each scope, and others for the next scope."""
HIDDEN_TOOLS = {
    *(
        "remember",
        "recall",
        "daily_log",
        "memory_context",
        "notebook_list",
        "notebook_read",
        "notebook_write",
    ),
    *("kb_list", "kb_query", "kb_show", "kb_backlinks", "kb_status", "kb_remember", "conversation_show"),
}
"""Tools that find nothing if notebook, knowledge base and conversations are hidden."""
FAILING_TOOLS = {
    "work": {
        "memory_rename",
        "memory_forget",
        "memory_merge",
    },  # a page with a file is renamed or deleted there
    "wing:people": {"memory_ingest"},  # the page of a source has another wing
}


def hidden_state(home: Path, visible: Brain) -> dict[str, Any]:
    """Return the rows and files that a restricted caller does not see."""
    connection = apsw.Connection(str(home / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    ids = str([row[0] for row in visible.db.rows("SELECT id FROM pages")])

    def rows(columns: str, table: str, key: str = "page_id") -> list[Any]:
        hidden = f"{key} NOT IN (SELECT value FROM json_each(?))"
        return connection.execute(f"SELECT {columns} FROM {table} WHERE {hidden}", (ids,)).fetchall()

    tables = ("assertions", "tags", "raw_data", "page_names", "redirects", "contradictions", "page_authors")
    state: dict[str, Any] = {
        "pages": rows("*", "pages", "id"),
        **{table: rows("*", table) for table in tables},
    }
    # The target of a link in a text may change, because a page with that name was added.
    state["links"] = rows(
        "id, relationship, context, target, valid_from, valid_until", "links", "from_page_id"
    )
    for sql in (
        "SELECT * FROM knowledge_gaps WHERE scope = ''",
        "SELECT * FROM proposals WHERE scope = ''",
        "SELECT * FROM conversation_turns",
        "SELECT * FROM collections",
    ):
        state[sql] = connection.execute(sql).fetchall()
    connection.close()
    hidden = [path for path in home.rglob("*.md") if CANARY in str(path) or "notebook" in path.parts]
    return {**state, "files": {str(path): path.read_bytes() for path in hidden}}


@pytest.mark.parametrize(
    "number", range(len(SCOPES)), ids=[" & ".join(map(",".join, only)) for only in SCOPES]
)
def test_answers_are_the_same_with_and_without_the_rest_of_the_memory(tmp_path: Path, number: int) -> None:
    only = SCOPES[number]
    alone, whole = Side(tmp_path / "a", only, False), Side(tmp_path / "b", only, True)
    succeeded: set[str] = set()
    called: set[str] = set()
    before = hidden_state(whole.home, whole.brain)
    for place, (operation, arguments) in enumerate(scoped_calls(examples(whole.brain))):
        if operation.tool in called and place % SHARE != number % SHARE:
            continue
        called.add(operation.tool)
        texts = [answer(side.brain, operation, arguments) for side in (alone, whole)]
        assert CANARY not in texts[1], (operation.tool, arguments, texts[1])
        same = [without_numbers(text, side.home) for text, side in zip(texts, (alone, whole), strict=True)]
        assert same[0] == same[1], (operation.tool, arguments)
        if '"error"' not in texts[0]:
            succeeded.add(operation.tool)
            if operation.scope == "write":
                after = hidden_state(whole.home, whole.brain)
                assert after == before or "notebook" in only[0], (operation.tool, arguments)
                alone.put_back()
                whole.put_back()
    tools = {operation.tool for operation in all_operations() if operation.scope != "owner"}
    failed = tools - succeeded - {"memory_attachment", "memory_gap_approve"}
    allowed = (set() if "notebook" in only[0] else HIDDEN_TOOLS) | FAILING_TOOLS[only[-1][0]]
    assert called == tools
    assert failed <= allowed


def test_answers_by_meaning_do_not_depend_on_hidden_vectors(tmp_path: Path, models: ModelCache) -> None:
    only = SCOPES[0]
    sides = [Side(tmp_path / name, only, name == "b", models, "bge-small-en-v1.5") for name in "ab"]
    for tool in ("memory_query", "memory_glance", "memory_search", "memory_status", "memory_stats"):
        for question in ("where does the river begin?", "a place for ships", "zqxcanary", "harbour"):
            operation = dispatch.find_tool(tool)
            arguments = {"query": question} if operation.params else {}
            texts = [without_numbers(answer(side.brain, operation, arguments), side.home) for side in sides]
            assert texts[0] == texts[1]
            assert CANARY not in texts[1].replace(f'"{question}"', "")
    assert (
        sides[1].brain.vectors.mean("bge-small-en-v1.5")[1]
        == sides[0].brain.vectors.mean("bge-small-en-v1.5")[1]
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with all parts. Tests that change it copy it."""
    path = tmp_path_factory.mktemp("scopes") / "home"
    build(path, (("work",),), True)
    return path


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    return tmp_path / "home"


def call(brain: Brain, tool: str, **arguments: Any) -> Any:
    return dispatch.json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))


def test_owner_operations_are_refused(home: Path) -> None:
    with open_brain(home, 1, (("work",),)) as brain:
        for operation in all_operations():
            if operation.scope == "owner":
                with pytest.raises(NotAllowed):
                    dispatch.call(brain, operation, {}, "owner")


@pytest.mark.parametrize(
    "items", [[""], [","], ["wing:"], ["nothere"], ["work", "nothere"], ["work,,private"]]
)
def test_names_are_checked_and_the_error_lists_them(home: Path, items: list[str]) -> None:
    with open_brain(home) as brain, pytest.raises(InvalidArgument) as error:
        brain.check_only(items)
    assert "work" in str(error.value)


def test_a_collection_that_is_removed_later_leaves_nothing_visible(copied: Path) -> None:
    only = (("hidden",),)
    with open_brain(copied, 1, only) as brain:
        assert call(brain, "memory_list")["total"] > 0
        with open_brain(copied, 2) as owner:
            run(owner, "collection remove", name="hidden", yes=True)
        detached = call(brain, "memory_list")["total"]
    with open_brain(copied, 3) as owner:
        owner.db.write(lambda tx: tx.execute("UPDATE collections SET name = 'renamed' WHERE name = 'hidden'"))
        everything = call(owner, "memory_list")["total"]
    with open_brain(copied, 4, only) as brain:
        assert call(brain, "memory_list")["total"] == 0 != everything
        assert call(brain, "memory_collections")["collections"] == []
        for tool, arguments in (
            ("memory_put", {"slug": "new", "content": "# New"}),
            ("memory_get", {"slug": "plans/work-river"}),
        ):
            with pytest.raises(NotFound):
                call(brain, tool, **arguments)
    assert detached >= 0


def test_a_table_or_index_that_is_not_known_is_hidden(copied: Path) -> None:
    connection = apsw.Connection(str(copied / "memory.db"))
    connection.execute(
        "CREATE TABLE notes_of_others (id INTEGER PRIMARY KEY, text TEXT);"
        "INSERT INTO notes_of_others VALUES (1, 'x');"
        "CREATE TABLE marks (id INTEGER PRIMARY KEY, page_id INTEGER); INSERT INTO marks SELECT id, id FROM pages;"
        "CREATE VIRTUAL TABLE note_fts USING fts5 (text); INSERT INTO note_fts VALUES ('x')"
    )
    connection.close()
    with open_brain(copied, 1, (("work",),)) as brain:
        assert brain.db.rows("SELECT * FROM notes_of_others") == []
        assert brain.db.rows("SELECT * FROM note_fts WHERE note_fts MATCH 'x'") == []
        assert len(brain.db.rows("SELECT * FROM marks")) == len(brain.db.rows("SELECT * FROM pages")) > 0
        with pytest.raises(OutsideScope):
            brain.db.write(lambda tx: tx.execute("INSERT INTO notes_of_others VALUES (2, 'y')"))


def test_views_that_leave_out_expired_things_stay_restricted(home: Path) -> None:
    with open_brain(home, 1, (("work",),)) as brain:
        before = brain.db.rows("SELECT id FROM pages")
        brain.db.set_views({"pages": f"SELECT *, id AS rowid FROM main.pages WHERE id <> {before[0][0]}"})
        assert brain.db.rows("SELECT id FROM pages") == before[1:]
        brain.db.set_views({})
        assert brain.db.rows("SELECT id FROM pages") == before


def test_rows_that_are_not_visible_cannot_be_changed(copied: Path) -> None:
    with open_brain(copied, 1, (("work",),)) as brain:
        for statement in (
            "UPDATE pages SET title = 'x' WHERE slug = 'things/harbor'",
            "DELETE FROM pages WHERE slug = 'things/harbor'",
            "DELETE FROM assertions",
            "UPDATE links SET context = 'x'",
            "INSERT INTO tags (page_id, tag) SELECT id, 'x' FROM main.pages",
            "DELETE FROM knowledge_gaps",
            "UPDATE pages SET collection_id = 1 WHERE slug = 'plans/work-river'",
            "UPDATE collections SET name = 'x'",
        ):
            with pytest.raises(OutsideScope):
                brain.db.write(lambda tx, statement=statement: tx.execute(statement))  # type: ignore[misc]


def test_the_name_of_a_hidden_page_is_refused_without_a_reason(copied: Path) -> None:
    """With a wing as the scope, a name of the collection can be taken by a page that is not visible."""
    with open_brain(copied, 1, (("wing:plans",),)) as brain:
        content = "---\nwing: plans\n---\n# Mine"
        with pytest.raises(OutsideScope):
            call(brain, "memory_put", slug="things/harbor", content=content)
        with pytest.raises(OutsideScope):  # its wing would be another one
            call(brain, "memory_put", slug="things/unused", content="# Mine")


def test_links_to_hidden_pages_are_resolved_for_the_owner_only(copied: Path) -> None:
    with open_brain(copied, 1, (("work",),)) as brain:
        call(brain, "memory_put", slug="new", content="# New\n\nSee [[things/harbor]].")
        (link,) = call(brain, "memory_links", slug="new")["links"]
        assert not link["resolved"]
    with open_brain(copied, 2) as owner:
        (link,) = call(owner, "memory_links", slug="work::new")["links"]
        assert (link["resolved"], link["to_slug"]) == (True, "things/harbor")
        assert run(owner, "validate")["violations"] == []


def test_an_accepted_proposal_changes_only_what_its_agent_could_see(copied: Path) -> None:
    with open_brain(copied, 1) as owner:
        run(owner, "config set", key="agent_writes", value="review")
    with open_brain(copied, 2, (("work",),)) as brain:
        brain.agent = "codex"
        proposed = call(brain, "memory_correct", about="River work", was="Bergen", now="begins in Paris")
        slug = call(brain, "memory_put", slug="harbor", content="# Mine")["slug"]
    with open_brain(copied, 3) as owner:
        outcomes = [
            row["outcome"]
            for row in run(owner, "review", yes=True)["decided"]
            if row["id"] >= proposed["proposal"]
        ]
        assert "failed" not in outcomes
        assert slug == "harbor"
        assert run(owner, "get", slug="work::harbor")["title"] == "Mine"
        assert "Paris" in run(owner, "get", slug="work::plans/work-river")["compiled_truth"]
        assert "Paris" not in run(owner, "get", slug="hidden::plans/work-river")["compiled_truth"]


def test_questions_of_restricted_callers_are_gaps_of_their_own(copied: Path) -> None:
    with open_brain(copied, 1, (("work",),)) as brain:
        gap = call(brain, "memory_gap", query=f"what is {CANARY}thingsgap?")["gap"]
        assert (gap["times_seen"], gap["context"]) == (1, "")
        assert call(brain, "memory_gap_clear")["closed"] == 2
    with open_brain(copied, 2) as owner:
        assert run(owner, "gaps")["total"] >= 2


def test_pages_of_a_project_are_its_page_those_below_it_and_those_that_name_it(brain: Brain) -> None:
    for slug, front in (
        ("projects/boat", ""),
        ("projects/boat/hull", ""),
        ("log", "project: boat"),
        ("projects/boats", ""),
    ):
        run(brain, "put", slug=slug, content=f"---\n{front or 'a: 1'}\n---\n# {slug}")
    pages = call(brain.bound((("project:boat",),)), "memory_list", sort="title")["pages"]
    assert [page["slug"] for page in pages] == ["log", "projects/boat", "projects/boat/hull"]


def test_a_change_of_wing_moves_a_page_into_and_out_of_sight(brain: Brain) -> None:
    run(brain, "put", slug="a", content="---\nwing: red\n---\n# A\n\nSome uncommon words.")
    seen = brain.bound((("wing:blue",),))
    assert not call(seen, "memory_search", query="uncommon")["hits"]
    for wing, hits in (("blue", 1), ("red", 0), ("blue", 1)):
        run(brain, "put", slug="a", content=f"---\nwing: {wing}\n---\n# A\n\nSome uncommon words, {wing}.")
        assert len(call(seen, "memory_search", query="uncommon")["hits"]) == hits
        assert call(seen, "memory_query", query="uncommon words")["strength"] == (
            "strong" if hits else "none"
        )


def test_missing_and_hidden_pages_give_the_same_error(home: Path) -> None:
    with open_brain(home, 1, (("work",),)) as brain:
        messages = []
        for slug in ("things/harbor", "stuff/harbor"):
            with pytest.raises(PageNotFound) as error:
                call(brain, "memory_get", slug=slug)
            messages.append(str(error.value).replace(slug, "SLUG"))
        for slug in ("hidden::x", "nohing::x"):
            with pytest.raises(QuaidError) as other:
                call(brain, "memory_get", slug=slug)
            messages.append(str(other.value).replace(slug[:6], "NAME"))
    assert messages[0] == messages[1]
    assert messages[2] == messages[3]


def test_tokens_show_what_they_are_bound_to(copied: Path) -> None:
    with open_brain(copied) as brain:
        made = token_create(brain, "bot", only=["work", "wing:people"])
        assert made.only == ("work", "wing:people")
        assert [token.only for token in token_list(brain).tokens] == [("work", "wing:people")]
        with pytest.raises(InvalidArgument):
            token_create(brain, "other", only=["nothere"])


def test_a_client_is_bound_by_a_setting(copied: Path) -> None:
    with open_brain(copied) as brain:
        run(brain, "config set", key="client_only.Codex", value="work, wing:people")
        assert brain.for_client("codex").settings.only == (("work", "wing:people"),)
        assert brain.for_client("cursor") is brain
        assert brain.for_client("", "").settings.only == ()
        for key, value in (("client_only", "work"), ("client_only.codex", "nothere")):
            with pytest.raises(InvalidArgument):
                run(brain, "config set", key=key, value=value)
        run(brain, "config set", key="client_only.codex", value="everything")
        assert brain.for_client("codex") is brain


def test_text_without_spaces_is_found_in_a_scope(tmp_path: Path) -> None:
    with open_brain(tmp_path) as owner:
        owner.create_if_missing()
        run(
            owner, "put", slug="people/honoka", content="# 佐伯ほのか\n\n海洋と電池の研究者。Lives in Oslo.\n"
        )
        run(owner, "put", slug="deals/secret", content="# Secret\n\n電池の契約。 Oslo.\n")
    with open_brain(tmp_path, 1, (("wing:people",),)) as brain:
        for _ in range(2):
            for word in ("oslo", "電池", "佐伯", "海洋"):
                hits = call(brain, "memory_search", query=word)["hits"]
                assert [hit["slug"] for hit in hits] == ["people/honoka"], word
            results = call(brain, "memory_query", query="電池の研究者は誰?")["results"]
            assert [result["slug"] for result in results] == ["people/honoka"]
            call(brain, "memory_timeline_add", slug="people/honoka", date="2026-06-01", summary="新しい電池")

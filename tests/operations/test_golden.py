"""Golden questions: what is asked, what passes, and changes that are refused because one would fail."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.operations.test_embeddings import Service

from quaid.app import Brain
from quaid.cli.render import render
from quaid.embedding.registry import DEFAULT_MODEL
from quaid.errors import FileTrouble, GoldenFails, GoldenUnchecked, InvalidArgument, NotFound, PageNotFound
from quaid.operations import dispatch, golden
from quaid.storage.questions import GoldenQuestions, OpenedResults

SHED = "Who runs the drying shed?"
ANSWER = "# Oisin\n\nOisin runs the drying shed at the quay since spring."


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def slugs(brain: Brain) -> list[str]:
    return sorted(row.slug for row in call(brain, "list", limit=1000).pages)


@pytest.fixture
def shed(brain: Brain) -> Brain:
    """A memory in which a golden question passes."""
    call(brain, "put", slug="people/oisin", content=ANSWER)
    call(brain, "put", slug="people/bo", content="# Bo\n\nSails on Sundays with his sister.")
    assert call(brain, "golden add", query=SHED, expect=["people/oisin"], within=2).passed == 1
    return brain


def crowd(folder: Path, count: int = 6) -> Path:
    """Write notes that answer the same question, so that the expected page falls back."""
    folder.mkdir()
    for number in range(count):
        sentence = f"Mira runs the drying shed {number}, and who runs the drying shed asks Mira."
        text = f"# Drying shed {number}\n\n{sentence}"
        (folder / f"drying-shed-{number}.md").write_text(text)
    return folder


def test_run_reports_the_rank_of_each_expected_page(shed: Brain) -> None:
    call(shed, "golden add", query="Who sails on Sundays?", expect=["people/bo"])
    run = call(shed, "golden run")
    assert [(row.question, row.ranks, row.passed) for row in run.results] == [
        (SHED, (1,), True),
        ("Who sails on Sundays?", (1,), True),
    ]
    assert (run.exit_status, run.passed, run.failed) == (0, 2, 0)
    assert "people/oisin at 1" in render(run)


def test_a_page_that_is_not_found_or_too_far_down_fails(shed: Brain, tmp_path: Path) -> None:
    call(shed, "import", folder=str(crowd(tmp_path / "crowd")), ignore_golden=True)
    added = call(shed, "golden add", query=SHED, expect=["people/oisin", "people/bo"], within=2)
    assert added.exit_status == 1
    [row] = added.results
    assert row.ranks[row.expected.index("people/bo")] is None
    assert row.problem == "not found: people/bo" or row.ranks == (None, None)
    assert "people/bo not found" in render(added)


def test_adding_the_same_question_again_replaces_its_pages(shed: Brain) -> None:
    call(shed, "golden add", query=f"  {SHED} ", expect=["people/bo"])
    [row] = call(shed, "golden list").value
    assert (row.question, row.expected, row.within) == (SHED, ("people/bo",), 5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": "  ", "expect": ["people/bo"]}, InvalidArgument),
        ({"query": "x", "expect": []}, InvalidArgument),
        ({"query": "x", "expect": ["people/nobody"]}, PageNotFound),
        ({"query": "x", "expect": ["people/bo", "people/oisin"], "within": 1}, InvalidArgument),
    ],
)
def test_bad_input_is_refused(shed: Brain, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(shed, "golden add", **arguments)
    assert len(GoldenQuestions(shed.db).all()) == 1
    with pytest.raises(NotFound):
        call(shed, "golden remove", id=99)


def test_asking_golden_questions_records_no_gap(shed: Brain) -> None:
    call(shed, "golden add", query="Who maintains the harbour crane?", expect=["people/bo"])
    call(shed, "golden run")
    assert call(shed, "gaps").total == 0


def test_expected_pages_follow_a_rename_and_a_merge(shed: Brain) -> None:
    call(shed, "rename", slug="people/oisin", new_slug="people/oisin-b")
    call(shed, "put", slug="people/double", content="# Oisin Breathnach\n\nA double of Oisin.")
    call(shed, "golden add", query=SHED, expect=["people/oisin-b", "people/double"])
    call(shed, "merge", slug="people/double", other="people/oisin-b", into="people/oisin-b", yes=True)
    [row] = call(shed, "golden list").value
    assert (row.expected, row.missing) == (("people/oisin-b",), 0)
    assert call(shed, "golden run").passed == 1


def test_forgetting_a_page_deletes_its_questions(shed: Brain) -> None:
    assert call(shed, "forget", slug="people/oisin", yes=True)
    assert GoldenQuestions(shed.db).all() == []
    assert b"drying shed" not in Path(shed.db.path).read_bytes()


def test_a_page_that_is_gone_with_its_folder_fails(shed: Brain, tmp_path: Path) -> None:
    folder = crowd(tmp_path / "crowd", 1)
    call(shed, "collection add", name="notes", path=str(folder))
    call(shed, "golden add", query="Which shed asks Mira?", expect=["notes::drying-shed-0"])
    call(shed, "collection remove", name="notes", yes=True)
    [_, row] = call(shed, "golden run").results
    assert (row.passed, row.problem) == (False, "1 expected page gone from the memory")


@pytest.mark.parametrize("command", ["import", "collection add"])
def test_files_that_would_make_a_question_fail_are_refused(shed: Brain, tmp_path: Path, command: str) -> None:
    if (
        command == "import"
    ):  # an import does not push back what the person wrote, so the answer is imported too
        sql = "INSERT INTO page_trust (page_id, trust, highest, lowest) SELECT id, 2, 2, 2 FROM pages"
        shed.db.write(lambda tx: tx.execute(sql))
    folder = str(crowd(tmp_path / "crowd"))
    arguments = {"folder": folder} if command == "import" else {"name": "notes", "path": folder}
    beside = sorted(os.listdir(tmp_path))
    with pytest.raises(GoldenFails, match="would make 1 golden question fail"):
        call(shed, command, **arguments)
    assert slugs(shed) == ["people/bo", "people/oisin"]
    assert [row.name for row in call(shed, "collection list").value] == ["default"]
    assert sorted(os.listdir(tmp_path)) == beside
    assert call(shed, "golden run").passed == 1
    call(shed, command, **arguments, **{"ignore_golden" if command == "import" else "force": True})
    assert len(slugs(shed)) == 8
    assert call(shed, "golden run").failed == 1


def test_harmless_files_are_imported(shed: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "bread.md").write_text("# Bread\n\nRye needs a day to rise.")
    assert call(shed, "import", folder=str(folder)).report.outcomes["new"] == 1
    assert "bread" in slugs(shed)


def test_a_question_that_fails_already_stops_nothing(shed: Brain, tmp_path: Path) -> None:
    call(shed, "golden remove", id=1)
    call(shed, "golden add", query="Who maintains the harbour crane?", expect=["people/bo"])
    assert call(shed, "import", folder=str(crowd(tmp_path / "crowd"))).report.outcomes["new"] == 6


def test_without_golden_questions_a_change_runs_once_and_nothing_is_asked(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "ask_all", lambda *_: pytest.fail("a question was asked"))
    runs: list[int] = []
    golden.guard(brain, lambda: runs.append(1))
    assert runs == [1]


def test_guard_rolls_a_refused_change_back(shed: Brain) -> None:
    def hide() -> None:
        call(shed, "put", slug="people/oisin", content="# Oisin\n\nMoved away.")
        for number in range(3):
            text = f"# Shed {number}\n\nAnna runs the drying shed."
            call(shed, "put", slug=f"shed-{number}", content=text)

    with pytest.raises(GoldenFails, match="The dream would make"):
        golden.guard(shed, hide, what="The dream")
    assert slugs(shed) == ["people/bo", "people/oisin"]
    assert "drying shed" in call(shed, "get", slug=["people/oisin"]).compiled_truth
    assert call(shed, "query", query=SHED).results[0].slug == "people/oisin"
    golden.guard(shed, hide, force=True)
    assert "shed-1" in slugs(shed)


def test_search_by_words_only_is_refused_if_a_question_needs_meaning(shed: Brain) -> None:
    for number in range(8):
        call(
            shed, "put", slug=f"filler/{number}", content=f"# Filler {number}\n\nPower tools number {number}."
        )
    call(shed, "put", slug="concepts/tidal", content="# Tidal battery\n\nThe tide charges it twice a day.")
    call(shed, "embed")
    question = "energy storage that the sea loads"
    assert call(shed, "golden add", query=question, expect=["concepts/tidal"]).passed == 1
    with pytest.raises(GoldenFails, match="Search by words only"):
        call(shed, "embeddings off")
    assert call(shed, "embeddings status").on
    assert not call(shed, "embeddings off", force=True).on


def test_another_model_is_asked_before_it_is_used(shed: Brain) -> None:
    for number in range(30):
        call(
            shed, "put", slug=f"filler/{number}", content=f"# Filler {number}\n\nText of the number {number}."
        )
    call(shed, "put", slug="concepts/tidal", content="# Tidal battery\n\nThe tide charges it twice a day.")
    call(shed, "embed")
    question = "energy storage that the sea loads"
    assert call(shed, "golden add", query=question, expect=["concepts/tidal"]).passed == 1
    service = Service()  # its vectors say nothing about meaning
    try:
        address = f"http://127.0.0.1:{service.port}"
        call(shed, "model add", place=address, kind="ollama", model="toy", name="toy")
        with pytest.raises(GoldenUnchecked, match="quaid embed --model toy"):
            call(shed, "embeddings use", name="toy")
        with pytest.raises(GoldenFails, match="The model toy would make 1 golden question fail"):
            call(shed, "embed", model="toy")
        with pytest.raises(GoldenFails, match="The model toy would make"):
            call(shed, "embeddings use", name="toy")
        assert shed.model_name == DEFAULT_MODEL
        assert call(shed, "golden run").failed == 0
        assert call(shed, "embeddings use", name="toy", force=True).model == "toy"
        assert call(shed, "golden run").failed == 1
    finally:
        service.stop()


def test_rebuild_keeps_the_questions_passing(shed: Brain) -> None:
    assert call(shed, "rebuild").exit_status == 0
    assert call(shed, "golden run").passed == 1


def program(folder: Path, script: str) -> str:
    path = folder / "other-quaid"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_another_version_is_tried_on_a_copy(shed: Brain, tmp_path: Path) -> None:
    same = program(tmp_path, f'exec {sys.executable} -m quaid "$@"')
    tried = call(shed, "golden try", program=same)
    assert (tried.exit_status, tried.worse, tried.run.passed) == (0, (), 1)
    assert tried.version.startswith("quaid ")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".golden-")]


def test_another_version_that_answers_worse_is_reported(shed: Brain, tmp_path: Path) -> None:
    quaid = f"{sys.executable} -m quaid"
    put = f'{quaid} put "$one" --db "$5" --compiled-truth "Anna $one runs the drying shed $one." >/dev/null'
    forgetful = f'case "$*" in *golden*) for one in a b c; do {put}; done;; esac; exec {quaid} "$@"'
    tried = call(shed, "golden try", program=program(tmp_path, forgetful))
    assert (tried.exit_status, tried.worse) == (1, (SHED,))
    assert call(shed, "golden run").passed == 1


@pytest.mark.parametrize("script", ["echo hello", "echo broken >&2; exit 7"])
def test_a_program_that_is_not_quaid_is_reported(shed: Brain, tmp_path: Path, script: str) -> None:
    with pytest.raises(FileTrouble):
        call(shed, "golden try", program=program(tmp_path, script))
    with pytest.raises(FileTrouble, match="cannot be run"):
        call(shed, "golden try", program=str(tmp_path / "nothing"))


def test_answered_gaps_with_words_are_proposed(shed: Brain) -> None:
    call(shed, "config set", key="log_gaps", value="text")
    question = "Who maintains the harbour crane?"
    call(shed, "query", query=question)
    assert call(shed, "golden suggest").value == ()
    call(shed, "put", slug="people/ingrid", content="# Ingrid\n\nIngrid maintains the harbour crane.")
    [row] = call(shed, "golden suggest").value
    assert (row.question, row.slug) == (question, "people/ingrid")
    assert row.next_step == f"quaid golden add '{question}' --expect people/ingrid"
    call(shed, "golden add", query=question, expect=["people/ingrid"])
    assert call(shed, "golden suggest").value == ()


def test_opened_results_are_recorded_only_on_request_and_encrypted(shed: Brain) -> None:
    pytest.importorskip("nacl")
    question = "Who keeps the zyxwvut shed?"
    assert not call(shed, "golden opened", query=question, slug="people/oisin").value
    assert call(shed, "golden suggest").value == ()
    call(shed, "config set", key="log_opened", value="words")
    for _ in range(2):
        assert call(shed, "golden opened", query=question, slug="people/oisin").value
    [row] = call(shed, "golden suggest").value
    assert (row.question, row.slug, row.times) == (question, "people/oisin", 2)
    shed.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"zyxwvut" not in Path(shed.db.path).read_bytes()
    call(shed, "forget", slug="people/bo", yes=True)
    assert call(shed, "golden suggest").value == ()


def test_turning_the_record_off_deletes_it(shed: Brain) -> None:
    pytest.importorskip("nacl")
    call(shed, "config set", key="log_opened", value="words")
    call(shed, "golden opened", query="Who sails?", slug="people/bo")
    call(shed, "config set", key="log_opened", value="off")
    assert OpenedResults(shed.db).all() == []


def test_a_rehearsal_inside_a_rehearsal_rolls_back_only_its_own_changes(brain: Brain) -> None:
    def inner() -> list[str]:
        call(brain, "put", slug="inner", content="Inner text.")
        return slugs(brain)

    def outer() -> tuple[list[str], list[str]]:
        call(brain, "put", slug="outer", content="Outer text.")
        seen = brain.rehearse(inner)
        call(brain, "put", slug="later", content="Later text.")
        return seen, slugs(brain)

    assert brain.rehearse(outer) == (["inner", "outer"], ["later", "outer"])
    assert slugs(brain) == []
    assert brain.rehearsal is None

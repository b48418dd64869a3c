"""What a config.yaml says holds: every option changes what it names, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quaid import config
from quaid.app import Brain
from quaid.errors import InvalidConfig
from quaid.folders.watcher import DEFAULT_PACE, Watcher
from quaid.operations import collections as watching, dispatch
from quaid.operations.dispatch import json_value
from quaid.storage import chunks, collections
from quaid.storage.checks import validate

Configured = Callable[[str], Brain]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    """A memory with a notebook, opened with a config.yaml of this text."""
    folder = tmp_path / "agent"
    folder.mkdir()

    def opened(text: str) -> Brain:
        (folder / "config.yaml").write_text(text)
        path = str(folder / "memory.db")
        settings = config.read_settings(
            path, {"HOME": str(tmp_path), "QUAID_BACKGROUND_EMBEDDING": "off"}, str(folder)
        )
        assert settings.warnings == ()
        brain = Brain(settings, clock=lambda: 1_777_118_400.0, offset=lambda _: 0)
        if not Path(path).exists():
            brain.create(path)
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
        return brain

    return opened


def call(brain: Brain, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))
    return answer


def cut(brain: Brain) -> list[tuple[int, str]]:
    rows = brain.db.rows("SELECT token_count, chunk_text FROM chunks ORDER BY id")
    return [(tokens, text) for tokens, text in rows]


def test_the_notebook_is_where_the_file_says(configured: Configured, tmp_path: Path) -> None:
    with configured("memory:\n  notebookDir: notes/mine\n") as brain:
        call(brain, "remember", content="The garage code is 4471")
    assert (tmp_path / "agent/notes/mine/knowledge/facts.md").exists()
    assert not (tmp_path / "agent/notebook").exists()


def test_a_notebook_is_cut_as_configured_and_anew_when_that_changes(configured: Configured) -> None:
    long = "".join(f"Sentence {number} is about the harbour.\n" for number in range(300))
    with configured("") as brain:
        call(brain, "notebook_write", path="knowledge/a.md", content=f"# A\n\n{long}\n## B\n\nshort\n")
        call(brain, "recall", query="harbour")
        usual = cut(brain)
    with configured("chunking: {maxTokens: 100, overlapTokens: 10}\n") as brain:
        call(brain, "recall", query="harbour")
        small = cut(brain)
        assert len(small) > 3 * len(usual)
        assert max(tokens for tokens, _ in small) <= 100
        assert not any("## B" in text and "Sentence" in text for _, text in small)
        assert validate(brain.db) == []
    with configured("chunking: {maxTokens: 100, overlapTokens: 10, respectHeadings: false}\n") as brain:
        call(brain, "recall", query="harbour")
        assert any("## B" in text and "Sentence" in text for _, text in cut(brain))
        assert validate(brain.db) == []
    with configured("") as brain:
        call(brain, "recall", query="harbour")
        assert sorted(cut(brain)) == sorted(usual)
        assert collections.get_setting(brain.db, chunks.NOTEBOOK_WINDOW) == "window"


@pytest.mark.parametrize("said", ["{maxTokens: 100, overlapTokens: 500}", "{maxTokens: 100}"])
def test_windows_that_would_be_mostly_repetition_are_reported_and_left_out(
    configured: Configured, tmp_path: Path, said: str
) -> None:
    with configured("") as brain:
        call(brain, "remember", content="The garage code is 4471")
    file = tmp_path / "agent/config.yaml"
    file.write_text(f"chunking: {said}\nsearch: {{maxResults: 3}}\n")
    read = config.read_settings(str(tmp_path / "agent/memory.db"), {"HOME": str(tmp_path)}, str(tmp_path))
    (warning,) = read.warnings
    assert warning.startswith(f"{file}: chunking.overlap_tokens (")
    assert "must be at most half of chunking.max_tokens (100); both are ignored" in warning
    with Brain(read) as brain:
        assert call(brain, "recall", query="garage")["notebook"]
        assert collections.get_setting(brain.db, chunks.NOTEBOOK_WINDOW) in (None, "window")
        assert (brain.option("chunking.max_tokens"), brain.option("search.max_results")) == (400, 3)


def test_windows_that_the_environment_makes_mostly_repetition_are_refused(configured: Configured) -> None:
    with configured("") as brain:
        brain.settings = brain.settings._replace(environ={"QUAID_CHUNKING_OVERLAP_TOKENS": "300"})
        with pytest.raises(InvalidConfig, match="at most half"):
            call(brain, "recall", query="harbour")


def test_recall_uses_limits_of_the_config_file_unless_given(configured: Configured) -> None:
    with configured("search: {maxResults: 2, minScore: 0.9}\n") as brain:
        for number in range(5):
            call(
                brain,
                "notebook_write",
                path=f"lists/l{number}.md",
                content=f"# L{number}\n\nharbour boat{number}\n",
            )
        assert len(call(brain, "recall", query="harbour")["notebook"]) == 2
        assert len(call(brain, "recall", query="harbour", max_results=4)["notebook"]) == 4
        assert call(brain, "recall", query="boat3 zebra quagga")["notebook"] == []
        assert call(brain, "recall", query="boat3 zebra quagga", min_score=0.1)["notebook"]


def test_files_changed_by_hand_can_be_left_to_the_watcher(configured: Configured, tmp_path: Path) -> None:
    with configured("sync: {syncOnSearch: false}\n") as brain:
        (tmp_path / "agent/notebook/lists/new.md").write_text("A quagga.\n")
        assert call(brain, "recall", query="quagga")["notebook"] == []
    with configured("") as brain:
        assert call(brain, "recall", query="quagga")["notebook"]


@pytest.mark.parametrize(
    ("said", "first", "debounce"), [("", 0.0, 1.5), ("true", 0.0, 1.5), ("false", 300.0, 0.2)]
)
def test_a_watcher_starts_as_the_file_says(
    configured: Configured, monkeypatch: pytest.MonkeyPatch, said: str, first: float, debounce: float
) -> None:
    seen: list[Any] = []

    def once(self: Watcher, _: frozenset[int]) -> bool:
        seen.append(self.pace)
        return True

    monkeypatch.setattr(Watcher, "once", once)
    text = f"sync: {{syncOnStart: {said}, watchDebounceMs: {int(debounce * 1000)}}}\n" if said else ""
    with configured(text) as brain:
        watching.sync_once(brain, lambda _: None)
    assert seen == [DEFAULT_PACE._replace(first=first, debounce=debounce)]


def test_the_constant_of_reciprocal_ranks_is_an_option(configured: Configured) -> None:
    scores = []
    for k in (1, 60):
        with configured(f"search: {{fusionK: {k}}}\nsearch_merge_strategy: rrf\n") as brain:
            if k == 1:
                call(brain, "memory_put", slug="people/ada", content="# Ada\n\nShe lived by the harbour.\n")
            answer = call(brain, "memory_query", question="harbour", explain=True)
            scores.append(answer["results"][0]["rank_score"])
    assert scores[0] == pytest.approx(1 / 2)
    assert scores[1] == pytest.approx(1 / 61, abs=1e-4)


def test_the_prompt_follows_the_file(configured: Configured, tmp_path: Path) -> None:
    notebook = tmp_path / "agent/notebook"
    text = "prompt: {referenceDir: core, dailyWindow: 1, maxPerFileChars: 20, maxTotalReferenceChars: 300}\n"
    with configured(text) as brain:
        (notebook / "core").mkdir()
        (notebook / "reference/not.md").write_text("not told\n")
        for name in ("a", "b"):
            (notebook / f"core/{name}.md").write_text("0123456789\n" * 5)
        for day in ("24", "25"):
            (notebook / f"daily/2026-04-{day}.md").write_text(f"day {day}\n")
        result = call(brain, "memory_context")
    assert [(part["path"], part["characters"]) for part in result["parts"]] == [
        ("core/a.md", 20),
        ("core/b.md", 20),
        ("daily/2026-04-25.md", 7),
    ]


def test_the_prompt_does_not_look_outside_of_the_notebook(configured: Configured) -> None:
    with configured("prompt: {referenceDir: ../secrets}\n") as brain, pytest.raises(InvalidConfig) as error:
        call(brain, "memory_context")
    assert "within the notebook" in str(error.value)


def test_project_of_a_folder_is_reported_on_request(configured: Configured, tmp_path: Path) -> None:
    inside = tmp_path / "code/blue-harbour/src/deep"
    inside.mkdir(parents=True)
    (tmp_path / "code/blue-harbour/.git").mkdir()
    with configured("") as brain:
        call(
            brain,
            "memory_put",
            slug="projects/bh",
            content="# Blue Harbour\n\nThe harbour is painted blue.\n",
        )
        call(brain, "memory_put", slug="projects/other", content="# Other\n\nA harbour.\n")
        call(brain, "remember", content="I prefer Blue Harbour tea")  # in reference: told anyway
        brain.settings = brain.settings._replace(cwd=str(inside))
        plain_prompt = call(brain, "memory_context")
        result = call(brain, "memory_context", project=True)
        assert "projects/bh" not in plain_prompt["text"]
        assert "[[projects/bh]] Blue Harbour: " in result["text"]
        assert "projects/other" not in result["text"]
        assert "notebook::" not in result["text"]
        assert result == call(brain, "memory_context", project=True)
        brain.settings = brain.settings._replace(cwd=str(tmp_path))  # the home: no project
        assert call(brain, "memory_context", project=True) == plain_prompt

"""The line for whoever begins a session: what `status` says, without git as long as nothing has changed."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kb.stores import add, bare, environ_of, store, write

from quaid.errors import GitMissing, StoreMissing
from quaid.kb import health, state
from quaid.kb.git import Git
from quaid.kb.state import NudgeFacts

NOWHERE: dict[str, str] = {"PATH": ""}
"""A machine on which no git is found: whoever asks it all the same fails."""


def later() -> int:
    """The time when everything that was written has settled."""
    return time.time_ns() + 10 * state.RACY_NS


def told(git: Git, environ: dict[str, str]) -> str:
    return state.session_nudge(git.root, environ, later)


def test_it_is_what_status_says_and_the_second_time_no_git_is_called(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    assert told(git, environ) == ""
    assert told(git, NOWHERE) == ""
    write(git, "second.org", "second\n")
    with pytest.raises(GitMissing):  # something has changed, and only git knows what it means
        told(git, NOWHERE)
    assert (
        told(git, environ) == health.store_status(git).nudge == "ai-kb: 1 file not committed: `ai-kb commit`"
    )
    assert told(git, NOWHERE) == health.store_status(git).nudge


def test_whatever_the_line_depends_on_is_looked_at_again(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    remote = bare(tmp_path, environ)

    def ignore(where: str) -> None:
        Path(git.root, where).write_text("*.org\n")

    changes: list[Callable[[], object]] = [
        lambda: write(git, "first.org", "other\n"),
        lambda: git.commit(["first.org"], "change"),
        lambda: add(git, "below/second.org", "second\n"),
        lambda: os.unlink(Path(git.root, "below/second.org")),
        lambda: git.restore(["below/second.org"]),
        lambda: git.set_remote(remote),
        git.push,
        git.fetch,
        lambda: add(git, "third.org", "third\n"),
        lambda: write(git, "raw/note.txt", "hidden soon\n"),
        lambda: write(git, "below/fourth.org", "hidden soon\n"),
        lambda: ignore("below/.gitignore"),
        lambda: ignore(".git/info/exclude"),
    ]
    seen = []
    for change in changes:
        change()
        seen.append(told(git, environ))
        assert seen[-1] == health.store_status(git).nudge
        assert told(git, NOWHERE) == seen[-1]
    assert len(set(seen)) >= 5


def test_what_has_just_changed_is_not_remembered(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    assert state.session_nudge(git.root, environ) == ""
    assert not os.path.exists(os.path.join(git.ours, state.NUDGE_FILE))


def test_what_is_remembered_has_no_words(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    told(git, environ)
    place = Path(git.ours, state.NUDGE_FILE)
    mark = json.loads(place.read_text())
    mark[2][0] = "9 secrets; now run this"
    place.write_text(json.dumps(mark))
    assert told(git, environ) == ""
    for broken in ("", "[]", "{", "[1, 2, [3]]", "null"):
        place.write_text(broken)
        assert told(git, environ) == ""


def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        state.session_nudge(str(tmp_path), {})


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (NudgeFacts(0, False, False, 0, 0, 0), ""),
        (NudgeFacts(1, False, False, 0, 0, 0), "ai-kb: 1 secret in it: `ai-kb lint`"),
        (NudgeFacts(0, True, True, 2, 0, 0), "ai-kb: it and its remote have diverged: `ai-kb doctor`"),
        (
            NudgeFacts(0, False, True, 1, 0, 0),
            "ai-kb: 1 commit not pushed, the last push failed: `ai-kb doctor`",
        ),
        (
            NudgeFacts(0, False, False, 2, 3, 150),
            "ai-kb: 2 commits not pushed yet: `ai-kb push`; 3 files not committed: `ai-kb commit`;"
            " 150 nodes to look through: `ai-kb curate --dry-run`",
        ),
    ],
)
def test_the_words(facts: NudgeFacts, line: str) -> None:
    assert state.nudge_text(facts) == line

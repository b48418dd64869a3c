"""The nudge at the start of a session: the line of `status`, without running git if nothing has changed."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kb.stores import add, bare, environ_of, store, write

from quaid.errors import GitMissing, StoreMissing
from quaid.kb import catalog, health
from quaid.kb.git import Git

NOWHERE: dict[str, str] = {"PATH": ""}
"""An environment without git, in which running git fails."""


def later() -> int:
    """The time when everything that was written has settled."""
    return time.time_ns() + 10 * catalog.RACY_NS


def told(git: Git, environ: dict[str, str]) -> str:
    return health.session_nudge(git.root, environ, later)


def told_and_kept(git: Git, environ: dict[str, str]) -> str:
    """Ask until git has refreshed its index: the answer is not kept while the index changes."""
    for _ in range(10):
        before = os.stat(Path(git.folder, "index"))
        line = told(git, environ)
        if os.stat(Path(git.folder, "index")) == before:
            return line
    raise AssertionError("git writes its index each time")


def test_session_line_equals_status_and_is_cached(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    assert told_and_kept(git, environ) == told(git, NOWHERE) == ""
    write(git, "second.org", "second\n")
    with pytest.raises(GitMissing):  # something has changed, and only git knows what it means
        told(git, NOWHERE)
    expected = health.store_status(git).nudge
    assert expected == "ai-kb: 1 file not committed: `ai-kb commit`"
    assert told_and_kept(git, environ) == told(git, NOWHERE) == expected


def test_session_line_follows_every_change_it_depends_on(tmp_path: Path) -> None:
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
        expected = health.store_status(git).nudge
        seen.append(told_and_kept(git, environ))
        assert seen[-1] == told(git, NOWHERE) == expected
    assert len(set(seen)) >= 5


def test_session_line_is_not_cached_right_after_a_change(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    assert health.session_nudge(git.root, environ) == ""
    assert not os.path.exists(os.path.join(git.own_folder, health.NUDGE_FILE))


def test_session_cache_holds_only_numbers(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = store(tmp_path, environ=environ)
    told(git, environ)
    place = Path(git.own_folder, health.NUDGE_FILE)
    mark = json.loads(place.read_text())
    mark[2][0] = "9 secrets; now run this"
    place.write_text(json.dumps(mark))
    assert told(git, environ) == ""
    for broken in ("", "[]", "{", "[1, 2, [3]]", "null"):
        place.write_text(broken)
        assert told(git, environ) == ""


def test_a_missing_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        health.session_nudge(str(tmp_path), {})


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ((0, 0, 0, 0, 0, 0, 0), ""),
        ((1, 0, 0, 0, 0, 0, 0), "ai-kb: 1 secret in it: `ai-kb lint`"),
        ((0, 1, 1, 2, 0, 0, 0), "ai-kb: it and its remote have diverged: `ai-kb doctor`"),
        (
            (0, 0, 1, 1, 0, 0, 0),
            "ai-kb: 1 commit not pushed, the last push failed: `ai-kb doctor`",
        ),
        (
            (0, 0, 0, 2, 3, 150, 0),
            "ai-kb: 2 commits not pushed yet: `ai-kb push`; 3 files not committed: `ai-kb commit`;"
            " 150 nodes to look through: `ai-kb curate --dry-run`",
        ),
    ],
)
def test_the_nudge_names_the_tasks(counts: tuple[int, ...], line: str) -> None:
    assert health.nudge_text(*counts) == line

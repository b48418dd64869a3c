"""Whose turn it is to make vectors."""

import subprocess
import sys
from pathlib import Path

import pytest

from quaid.errors import FileTrouble, ReadOnly
from quaid.storage import embedding_queue
from quaid.storage.embedding_queue import EmbeddingFailure, EmbeddingLease, EmbeddingRun

NOON = "2026-04-25T12:00:00Z"
TAKES_IT = """
import sys
from quaid.storage.embedding_queue import EmbeddingLease
turn = EmbeddingLease(sys.argv[1])
assert turn.try_take()
turn.begin("m", "then")
print("taken", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


def test_one_has_the_turn_and_all_can_see_who(path: str) -> None:
    first, second = EmbeddingLease(path), EmbeddingLease(path)
    assert embedding_queue.current_run(path) is None
    assert first.try_take()
    first.begin("bge", NOON)
    found = embedding_queue.current_run(path)
    assert isinstance(found, EmbeddingRun)
    assert (found.model, found.since) == ("bge", NOON)
    assert not second.try_take()
    first.succeed()
    first.release()
    assert embedding_queue.current_run(path) is None
    assert second.try_take()
    second.release()


def test_a_failure_is_told_until_it_goes_right(path: str) -> None:
    turn = EmbeddingLease(path)
    assert turn.try_take()
    turn.begin("bge", NOON)
    turn.fail("bge", "it is gone", NOON)
    turn.release()
    assert embedding_queue.last_failure(path) == EmbeddingFailure("bge", "it is gone", NOON)
    assert embedding_queue.current_run(path) is None
    assert turn.try_take()
    turn.succeed()
    turn.release()
    assert embedding_queue.last_failure(path) is None


def test_whoever_has_no_turn_leaves_word_only_when_nobody_is_at_work(path: str) -> None:
    turn = EmbeddingLease(path)
    assert turn.try_take()
    turn.begin("bge", NOON)
    embedding_queue.record_failure(path, "bge", "too late", NOON)
    assert embedding_queue.last_failure(path) is None
    turn.release()
    embedding_queue.record_failure(path, "bge", "it hangs", NOON)
    assert embedding_queue.last_failure(path) == EmbeddingFailure("bge", "it hangs", NOON)


@pytest.mark.parametrize("problem", ["x" * 10_000, "\N{SNOWMAN}" * 5_000, '"' * 9_000, "\x00" * 9_000])
def test_a_long_story_is_cut_and_stays_readable(path: str, problem: str) -> None:
    embedding_queue.record_failure(path, "bge", problem, NOON, down=True)
    told = embedding_queue.last_failure(path)
    assert told
    assert (told.problem[:20], told.at, told.down) == (problem[:20], NOON, True)


def test_what_goes_right_again_clears_the_failure_unless_somebody_is_at_work(path: str) -> None:
    embedding_queue.record_failure(path, "bge", "it hangs", NOON, down=True)
    turn = EmbeddingLease(path)
    assert turn.try_take()
    embedding_queue.clear_failure(path)
    assert embedding_queue.last_failure(path)
    turn.release()
    embedding_queue.clear_failure(path)
    assert embedding_queue.last_failure(path) is None


def test_somebody_who_was_killed_has_no_turn(path: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", TAKES_IT, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == "taken\n"
    assert embedding_queue.current_run(path) == EmbeddingRun("m", process.pid, "then")
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert embedding_queue.current_run(path) is None
    assert embedding_queue.last_failure(path) is None
    assert EmbeddingLease(path).try_take()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"failed"', "\xff"])
def test_half_a_line_says_nothing(path: str, text: str) -> None:
    Path(path + "-filling-lock").write_text(text)
    assert embedding_queue.current_run(path) is None
    assert embedding_queue.last_failure(path) is None


def test_a_folder_that_is_not_there_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises((FileTrouble, ReadOnly)):
        EmbeddingLease(str(tmp_path / "nowhere" / "memory.db")).try_take()

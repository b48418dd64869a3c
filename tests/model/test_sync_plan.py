"""What a folder and its index must do to agree."""

import pytest

from quaid.model.sync_plan import (
    FileSignature,
    LastSeenFile,
    ReadFile,
    ScannedFile,
    classify_files,
    hiding_obstacle,
    plan_sync,
    removal_obstacle,
)

LONG_AGO, NOW = 1_000_000_000_000_000_000, 1_700_000_000_000_000_000


def stat(size: int = 1, when: int = LONG_AGO) -> FileSignature:
    return FileSignature(size, when, when, 7)


def file(path: str, **other: int) -> ScannedFile:
    return ScannedFile(path, "page", stat(**other))


def known(
    path: str, content: str = "h", uuid: str | None = None, seen: int = NOW, **other: int
) -> LastSeenFile:
    return LastSeenFile(path, path.casefold(), stat(**other), content, seen, 1, uuid)


def read(path: str, content: str = "h", uuid: str | None = None, old: LastSeenFile | None = None) -> ReadFile:
    return ReadFile(file(path), old, content, uuid)


def test_a_file_with_the_same_stat_is_not_read() -> None:
    unchanged, to_read, missing = classify_files(
        [file("a"), file("b", size=2), file("c")], [known("a"), known("b"), known("d")]
    )
    assert unchanged == 1
    assert [(seen.path, old and old.path) for seen, old in to_read] == [("b", "b"), ("c", None)]
    assert [old.path for old in missing] == ["d"]


def test_a_file_that_changed_just_before_it_was_seen_is_read_again() -> None:
    _, to_read, _ = classify_files([file("a", when=NOW)], [known("a", seen=NOW + 1, when=NOW)])
    assert [seen.path for seen, _ in to_read] == ["a"]


def test_an_unchanged_file_that_failed_is_read_again_on_request() -> None:
    failed = known("a", "")
    assert classify_files([file("a")], [failed]) == (1, [], [])
    assert classify_files([file("a")], [failed], retry=True) == (0, [(file("a"), failed)], [])


def test_a_change_of_case_only_is_read_and_is_not_missing() -> None:
    assert classify_files([file("Note")], [known("note")]) == (0, [(file("Note"), known("note"))], [])
    again = read("Note", old=known("note"))
    assert plan_sync([again], [known("note")], []).changed == [again]


def test_two_files_whose_names_differ_only_in_case_are_two() -> None:
    plan = classify_files([file("Note"), file("note")], [known("note")])
    assert plan == (1, [(file("Note"), None)], [])


def test_same_bytes_are_only_touched_and_others_changed() -> None:
    a, b = read("a", old=known("a")), read("b", "new", old=known("b"))
    done = plan_sync([a, b], [known("a"), known("b")], [])
    assert (done.touched, done.changed) == ([a], [b])


def test_a_file_without_a_page_is_tried_again() -> None:
    broken = known("a")._replace(has_problem=True, page_id=None)
    again = read("a", old=broken)
    assert plan_sync([again], [broken], []).changed == [again]


def test_an_id_carries_a_page_to_its_new_path_and_new_words() -> None:
    old = known("a", "h", "u1")
    done = plan_sync([read("b", "other", "u1")], [old], [old])
    assert done.moved == [(old, read("b", "other", "u1"))]
    assert (done.new, done.gone) == ([], [])


def test_a_copy_with_the_same_id_is_a_new_page_while_the_original_is_there() -> None:
    done = plan_sync([read("copy", "h", "u1")], [known("a", "h", "u1")], [])
    assert (done.new, done.moved) == ([read("copy", "h", "u1")], [])


def test_two_files_with_the_id_of_a_missing_one_follow_neither() -> None:
    old = known("a", "h", "u1")
    done = plan_sync([read("b", "x", "u1"), read("c", "y", "u1")], [old], [old])
    assert (len(done.new), done.gone) == (2, [old])


def test_unique_content_carries_a_page() -> None:
    old = known("a")
    assert plan_sync([read("b")], [old], [old]).moved == [(old, read("b"))]


@pytest.mark.parametrize(
    ("reads", "missing"),
    [
        ([read("c"), read("d")], [known("a")]),
        ([read("c")], [known("a"), known("b")]),
        ([read("c", "h", "u2")], [known("a", "h", "u1")]),
    ],
)
def test_content_that_is_not_unique_carries_nothing(
    reads: list[ReadFile], missing: list[LastSeenFile]
) -> None:
    done = plan_sync(reads, missing, missing)
    assert (done.moved, len(done.new), len(done.gone)) == ([], len(reads), len(missing))


def test_two_files_that_changed_places_keep_their_pages_by_id() -> None:
    a, b = known("a", "ha", "u1"), known("b", "hb", "u2")
    at_b, at_a = read("b", "ha", "u1", old=b), read("a", "hb", "u2", old=a)
    done = plan_sync([at_a, at_b], [a, b], [])
    assert done == ([], [], [(b, at_a), (a, at_b)], [], [])


def test_a_page_that_moves_over_another_removes_it() -> None:
    a, b = known("a", "ha", "u1"), known("b", "hb", "u2")
    at_b = read("b", "ha", "u1", old=b)
    done = plan_sync([at_b], [a, b], [a])
    assert done.moved == [(a, at_b)]
    assert done.gone == [b]


@pytest.mark.parametrize(
    ("gone", "of", "files", "complete", "confirmed", "allowed"),
    [
        (0, 5, 0, False, False, True),
        (1, 5, 4, True, False, True),
        (10, 12, 2, True, False, True),
        (11, 12, 1, True, False, False),
        (11, 12, 1, True, True, True),
        (11, 200, 189, True, False, True),
        (21, 200, 179, True, False, False),
        (1, 1, 0, True, False, False),
        (1, 1, 0, True, True, True),
        (1, 5, 4, False, False, False),
        (1, 5, 4, False, True, False),
    ],
)
def test_only_positive_absence_removes(
    gone: int, of: int, files: int, complete: bool, confirmed: bool, allowed: bool
) -> None:
    obstacle = removal_obstacle(gone, of, files, complete=complete, confirmed=confirmed)
    assert (obstacle == "") is allowed


@pytest.mark.parametrize(
    ("hidden", "known", "confirmed", "allowed"),
    [
        (0, 0, False, True),
        (3, 30, False, True),
        (10, 30, False, True),
        (11, 30, False, False),
        (5, 5, False, False),
        (5, 5, True, True),
        (20, 1000, False, True),
    ],
)
def test_rules_that_would_hide_much_wait_for_a_person(
    hidden: int, known: int, confirmed: bool, allowed: bool
) -> None:
    assert (hiding_obstacle(hidden, known, confirmed=confirmed) == "") is allowed


def test_a_page_in_quarantine_does_not_hide_a_missing_file_that_has_its_old_path() -> None:
    missing = known("a", "new")._replace(page_id=2)
    away = known("a", "old")._replace(page_id=3)
    other = read("b", old=known("b"))
    done = plan_sync([other], [known("b"), missing, away], [missing, away])
    assert missing in done.gone

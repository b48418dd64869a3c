"""What a store's git does: real repositories, two clones and a bare remote."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from tests.kb.stores import add, bare, environ_of, has_all_objects, log, plain, store, write

from quaid.errors import (
    FileChanged,
    GitFailed,
    GitMissing,
    InvalidArgument,
    StoreDirty,
    StoreDiverged,
    StoreMissing,
    StoreOccupied,
    StoreUnfinished,
)
from quaid.kb import repository
from quaid.kb.git import Git
from quaid.kb.repository import RemoteEvent


def pair(tmp_path: Path) -> tuple[Git, Git]:
    """Two clones of one remote, both up to date."""
    environ = environ_of(tmp_path)
    remote = bare(tmp_path, environ)
    one = store(tmp_path, "one", environ)
    one.set_remote(remote)
    assert one.push().outcome == "pushed"
    return one, Git.clone(remote, str(tmp_path / "two"), environ)


def test_a_new_store_has_a_branch_and_no_commit(tmp_path: Path) -> None:
    git = Git(str(tmp_path / "store"), environ_of(tmp_path))
    assert not git.is_repository()
    git.init()
    git.init()
    state = git.state()
    assert git.is_repository()
    assert (state.branch, state.head, state.upstream, state.is_clean) == ("main", None, None, True)
    assert os.stat(git.root).st_mode & 0o077 == 0


def test_folder_without_a_repository_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="ai-kb init"):
        Git(str(tmp_path), environ_of(tmp_path)).state()


def test_machine_without_git_is_reported(tmp_path: Path) -> None:
    with pytest.raises(GitMissing):
        Git(str(tmp_path), {"PATH": str(tmp_path)})


def test_the_state_lists_changed_untracked_and_staged_files(tmp_path: Path) -> None:
    git = store(tmp_path)
    write(git, "first.org", "other\n")
    write(git, "raw/näme with space.org", "new\n")
    write(git, "staged.org", "new\n")
    plain(git.root, "add", "staged.org", environ=environ_of(tmp_path))
    state = git.state()
    assert state.head == git.head()
    assert state.changed == ("first.org", "staged.org")
    assert state.untracked == ("raw/näme with space.org",)
    assert not state.is_clean


def test_a_commit_holds_the_bytes_of_the_files_and_nothing_else(tmp_path: Path) -> None:
    git = store(tmp_path)
    before = git.head()
    Path(git.root, "a.org").write_bytes(b"one\r\ntwo\n\xff")
    write(git, "raw/b.org", "b")
    write(git, "other.org", "not asked for")
    new = git.commit(["a.org", "raw/b.org"], "Two nodes\n\nand why")
    assert new == git.head() == plain(git.root, "rev-parse", "HEAD", environ=environ_of(tmp_path)).strip()
    assert git.content("a.org") == b"one\r\ntwo\n\xff"
    assert git.content("raw/b.org") == b"b"
    assert git.content("other.org") is None
    assert git.state().untracked == ("other.org",)
    assert git.state().changed == ()
    assert log(git, "%H %s")[0] == f"{new} Two nodes"
    assert log(git) == [new, before]
    assert has_all_objects(git)


def test_a_commit_removes_deleted_files(tmp_path: Path) -> None:
    git = store(tmp_path)
    os.unlink(os.path.join(git.root, "first.org"))
    git.commit(["first.org", "never.org"], "gone")
    assert git.content("first.org") is None
    assert git.state().is_clean


def test_a_commit_of_nothing_new_is_the_last_one(tmp_path: Path) -> None:
    git = store(tmp_path)
    assert git.commit(["first.org"], "again") == git.head()
    assert len(log(git)) == 1


def test_changes_staged_by_others_are_not_committed(tmp_path: Path) -> None:
    git = store(tmp_path)
    head = git.head()
    write(git, "theirs.org", "theirs")
    plain(git.root, "add", "theirs.org", environ=environ_of(tmp_path))
    write(git, "ours.org", "ours")
    with pytest.raises(StoreDirty, match=r"theirs\.org"):
        git.commit(["ours.org"], "ours")
    assert git.head() == head
    assert git.state().changed == ("theirs.org",)
    assert git.state().untracked == ("ours.org",)


def test_a_file_that_changed_after_it_was_judged_is_not_committed(tmp_path: Path) -> None:
    git = store(tmp_path)
    head = git.head()
    write(git, "node.org", "a secret came in\n")
    with pytest.raises(FileChanged):
        git.commit(["node.org"], "node", expected={"node.org": b"clean\n"})
    assert git.head() == head
    write(git, "node.org", "clean\n")
    assert git.commit(["node.org"], "node", expected={"node.org": b"clean\n"}) != head


def test_the_identity_is_the_users_where_git_knows_it_and_neutral_elsewhere(tmp_path: Path) -> None:
    git = store(tmp_path)
    assert log(git, "%an %ae %cn %ce") == ["ai-kb ai-kb@localhost ai-kb ai-kb@localhost"]
    Path(tmp_path, "home", ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    git = Git(git.root, environ_of(tmp_path))
    add(git, "b.org", "b")
    assert log(git, "%an %ae %cn %ce")[0] == "Ann ann@example.org Ann ann@example.org"


def test_a_machine_that_insists_on_a_configured_identity_commits_too(tmp_path: Path) -> None:
    environ_of(tmp_path)
    Path(tmp_path, "home", ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    assert store(tmp_path).head()


def test_restore_resets_files_to_the_last_commit(tmp_path: Path) -> None:
    git = store(tmp_path)
    add(git, "gone.org", "still here")
    os.unlink(os.path.join(git.root, "gone.org"))
    write(git, "first.org", "spoiled")
    write(git, "new.org", "new")
    write(git, "staged.org", "staged")
    write(git, "kept.org", "somebody else's")
    plain(git.root, "add", "staged.org", "first.org", environ=environ_of(tmp_path))
    git.restore(["gone.org", "first.org", "new.org", "staged.org", "never.org"])
    state = git.state()
    assert (state.changed, state.untracked) == ((), ("kept.org",))
    assert Path(git.root, "first.org").read_text() == "first\n"


def test_restore_works_before_the_first_commit(tmp_path: Path) -> None:
    git = Git(str(tmp_path / "store"), environ_of(tmp_path))
    git.init()
    write(git, "new.org", "new")
    plain(git.root, "add", "new.org", environ=environ_of(tmp_path))
    git.restore(["new.org"])
    assert git.state().is_clean


def test_restore_removes_nothing_through_a_link(tmp_path: Path) -> None:
    git = store(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.org").write_text("mine")
    os.symlink(outside, os.path.join(git.root, "raw"))
    git.restore(["raw/mine.org"])
    assert (outside / "mine.org").read_text() == "mine"


def test_a_failed_change_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    git = store(tmp_path)

    def change() -> None:
        with git.changing(["first.org", "new.org"]):
            write(git, "first.org", "half")
            write(git, "new.org", "half")
            raise KeyError("lint")

    with pytest.raises(KeyError):
        change()
    assert git.state().is_clean
    assert Path(git.root, "first.org").read_text() == "first\n"
    assert repository.read_journal(git.root) == {}


def test_rollback_interrupted_by_a_kill_is_completed(tmp_path: Path) -> None:
    git = store(tmp_path)
    repository.begin_journal(git.root, ["new.org"], {"new.org": b"new"})
    write(git, "new.org", "new")
    git.call("update-index", "--add", "new.org")
    Path(git.root, "new.org").unlink()
    assert git.recover() == ("new.org",)
    assert git.state().is_clean


def test_committed_file_that_a_user_removed_meanwhile_stays_removed(tmp_path: Path) -> None:
    git = store(tmp_path)
    repository.begin_journal(git.root, ["first.org"], {"first.org": b"ours"})
    Path(git.root, "first.org").unlink()
    assert git.recover() == ()
    assert not Path(git.root, "first.org").exists()


def test_failed_git_diff_is_not_an_empty_commit(tmp_path: Path) -> None:
    git = store(tmp_path)
    write(git, "first.org", "other\n")
    real, folder = shutil.which("git"), tmp_path / "in-front"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\n[ "$1" = diff-tree ] && exit 0\nexec {real} "$@"\n')
    (folder / "git").chmod(0o700)
    silent = Git(git.root, environ_of(tmp_path) | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})
    with pytest.raises(GitFailed, match="no difference"):
        silent.commit(["first.org"], "second")


def test_a_change_within_a_change_leaves_the_outer_one_noted(tmp_path: Path) -> None:
    git = store(tmp_path)
    with git.changing(["a.org"]):
        with git.changing(["b.org"]):
            assert sorted(repository.read_journal(git.root)) == ["a.org", "b.org"]
        assert sorted(repository.read_journal(git.root)) == ["a.org"]
    assert repository.read_journal(git.root) == {}


def test_a_clone_has_the_pushed_commits_and_fast_forwards(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    assert two.content("first.org") == b"first\n"
    assert two.state().upstream == "origin/main"
    assert two.state().is_clean
    add(one, "second.org", "second\n")
    assert one.state().ahead == 1
    assert one.push().outcome == "pushed"
    assert one.state().ahead == 0
    assert one.push().outcome == "nothing"
    assert two.fetch().outcome == "reached"
    assert (two.state().ahead, two.state().behind) == (0, 1)
    assert two.fast_forward()
    assert not two.fast_forward()
    assert Path(two.root, "second.org").read_text() == "second\n"
    assert two.state().is_clean
    assert os.listdir(tmp_path / "two") == os.listdir(two.root)
    assert not [name for name in os.listdir(tmp_path) if "cloning" in name]


def test_a_clone_of_an_empty_remote_can_begin(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    git = Git.clone(bare(tmp_path, environ), str(tmp_path / "clone"), environ)
    assert git.state().branch == "main"
    add(git, "a.org", "a")
    assert git.fetch().outcome == "reached"
    assert git.push().outcome == "pushed"
    assert git.state().ahead == 0


def test_a_clone_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(GitFailed):
        Git.clone(str(tmp_path / "nowhere.git"), str(tmp_path / "clone"), environ_of(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["home"]


def test_a_clone_does_not_go_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    one, two = store(tmp_path, "one"), store(tmp_path, "two")
    with pytest.raises(StoreOccupied):
        Git.clone(one.root, two.root, environ_of(tmp_path))


def test_an_empty_store_takes_over_the_commits_of_the_remote(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    git = Git(str(tmp_path / "late"), environ_of(tmp_path))
    git.init()
    git.set_remote(one.remote() or "")
    assert git.fetch().outcome == "reached"
    assert git.fast_forward()
    assert Path(git.root, "first.org").read_text() == "first\n"
    assert git.state().is_clean


def test_a_remote_that_was_named_by_hand_is_counted_too(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    environ = environ_of(tmp_path)
    git = Git(str(tmp_path / "third"), environ)
    git.init()
    add(git, "third.org", "third")
    plain(git.root, "remote", "add", "origin", one.remote() or "", environ=environ)
    assert git.fetch().outcome == "reached"
    state = git.state()
    assert (state.upstream, state.ahead, state.behind) == ("origin/main", 1, 1)


def test_diverged_branches_are_reported_and_left(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    add(one, "one.org", "one")
    one.push()
    head = add(two, "two.org", "two")
    two.fetch()
    assert two.state().has_diverged
    with pytest.raises(StoreDiverged, match="commits only here: 1, only there: 1"):
        two.fast_forward()
    assert two.head() == head
    done = two.push()
    assert done.outcome == "rejected"
    assert "non-fast-forward" in done.problem or "fetch first" in done.problem
    assert one.fetch().outcome == "reached"
    assert one.state().behind == 0


def test_the_same_file_changed_on_both_sides_is_left_as_it_is(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    write(one, "first.org", "theirs\n")
    one.commit(["first.org"], "theirs")
    one.push()
    write(two, "first.org", "mine, not committed\n")
    two.fetch()
    with pytest.raises(StoreDirty, match=r"first\.org"):
        two.fast_forward()
    assert Path(two.root, "first.org").read_text() == "mine, not committed\n"
    write(two, "first.org", "first\n")
    write(two, "other.org", "of no concern\n")
    assert two.fast_forward()
    assert two.state().untracked == ("other.org",)


def test_a_merge_that_a_person_has_begun_stops_a_commit(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    for git, text in ((one, "theirs\n"), (two, "mine\n")):
        write(git, "first.org", text)
        git.commit(["first.org"], text)
    one.push()
    two.fetch()
    plain(two.root, "merge", "origin/main", environ=environ_of(tmp_path), status=1)
    state = two.state()
    assert (state.in_progress, state.conflicted) == ("merge", ("first.org",))
    write(two, "new.org", "new")
    with pytest.raises(StoreUnfinished, match=r"git -C \S+ merge --abort"):
        two.commit(["new.org"], "new")


def test_remote_that_is_away_is_not_an_error(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    os.rename(tmp_path / "remote.git", tmp_path / "elsewhere.git")
    add(one, "b.org", "b")
    assert one.fetch().outcome != "reached"
    done = one.push()
    assert done.outcome == "unreachable"
    assert "remote.git" in done.problem


def test_a_store_without_a_remote_pushes_nothing(tmp_path: Path) -> None:
    git = store(tmp_path)
    assert git.fetch() == RemoteEvent("unreachable", "there is no remote")
    assert git.push().outcome == "nothing"


def test_a_branch_that_is_packed_is_read(tmp_path: Path) -> None:
    git = store(tmp_path)
    head = git.head()
    plain(git.root, "pack-refs", "--all", environ=environ_of(tmp_path))
    assert not os.path.exists(os.path.join(git.folder, "refs", "heads", "main"))
    assert git.head() == head
    assert add(git, "b.org", "b") == git.head() != head


def test_a_store_of_sha256_works(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    plain(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", "store", environ=environ)
    git = Git(str(tmp_path / "store"), environ)
    write(git, "a.org", "a")
    assert len(git.commit(["a.org"], "a", expected={"a.org": b"a"})) == 64


def test_tidying_keeps_everything(tmp_path: Path) -> None:
    git = store(tmp_path)
    git.tidy()
    assert has_all_objects(git)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../b", ".git/config", "a/.GIT/x", "", "a\0b", "a//b"]
)
def test_paths_that_lead_elsewhere_are_refused(tmp_path: Path, path: str) -> None:
    git = store(tmp_path)
    for verb in (lambda: git.commit([path], "x"), lambda: git.restore([path]), lambda: git.content(path)):
        with pytest.raises(InvalidArgument):
            verb()


def test_a_link_is_not_committed(tmp_path: Path) -> None:
    git = store(tmp_path)
    os.symlink("/etc/passwd", os.path.join(git.root, "link.org"))
    with pytest.raises(InvalidArgument, match="not a plain file"):
        git.commit(["link.org"], "link")


def test_a_link_in_a_clone_leads_nowhere(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    os.symlink("/etc/passwd", os.path.join(one.root, "link.org"))
    environ = environ_of(tmp_path)
    plain(one.root, "add", "link.org", environ=environ)
    plain(one.root, "commit", "-qm", "link", environ=environ)
    one.push()
    two = Git.clone(one.remote() or "", str(tmp_path / "three"), environ)
    assert not os.path.islink(os.path.join(two.root, "link.org"))
    assert two.state().is_clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://ann:hunter2@example.org/kb.git is away", "https://…@example.org/kb.git is away"),
        ("https://ghp_0123@example.org/kb.git", "https://…@example.org/kb.git"),
        ("ssh://ann:hunter2@example.org/kb.git", "ssh://ann:…@example.org/kb.git"),
        ("https://example.org/kb.git?token=abc 'x'", "https://example.org/kb.git?… 'x'"),
        ("git@example.org:kb.git", "git@example.org:kb.git"),
    ],
)
def test_no_secret_of_an_address_is_reported(text: str, expected: str) -> None:
    assert repository.mask_urls(text) == expected


@pytest.mark.parametrize("name", ["-dash.txt", "--output=pwn.org", "a\\b.org"])
def test_foreign_name_does_not_block_writers(tmp_path: Path, name: str) -> None:
    environ = environ_of(tmp_path)
    remote = bare(tmp_path, environ)
    here = store(tmp_path, "here", environ)
    here.set_remote(remote)
    assert here.push().outcome == "pushed"
    there = Git.clone(remote, str(tmp_path / "there"), environ)
    write(here, name, "odd\n")
    here.commit([name], "odd")
    here.push()
    assert there.fetch().outcome == "reached"
    assert there.fast_forward()
    assert Path(there.root, name).read_text() == "odd\n"
    os.unlink(os.path.join(there.root, name))
    there.commit([name], "gone")
    assert there.state().is_clean


def test_ignored_files_are_listed(tmp_path: Path) -> None:
    git = store(tmp_path)
    add(git, ".gitignore", "*.org\nraw/\n")
    write(git, "hidden.org", "x")
    write(git, "raw/deep/a.txt", "x")
    assert sorted(git.state().untracked) == ["hidden.org", "raw/deep/a.txt"]
    git.commit(["hidden.org"], "seen")
    assert git.content("hidden.org") == b"x"


def test_a_store_is_cloned_by_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = environ_of(tmp_path)
    bare(tmp_path, environ)
    monkeypatch.chdir(tmp_path)
    assert Git.clone("remote.git", str(tmp_path / "x"), environ).is_repository()


def test_a_remote_whose_head_names_another_branch_is_cloned_whole(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    remote = tmp_path / "server.git"
    plain(tmp_path, "init", "-q", "--bare", "-b", "master", str(remote), environ=environ)
    here = store(tmp_path, "here", environ)
    here.set_remote(str(remote))
    assert here.push().outcome == "pushed"
    there = Git.clone(str(remote), str(tmp_path / "there"), environ)
    assert (there.branch(), there.head()) == ("main", here.head())
    assert there.state().is_clean
    assert Path(there.root, "first.org").read_text() == "first\n"
    add(there, "second.org", "second\n")
    assert there.push().outcome == "pushed"


@pytest.mark.parametrize("url", ["ext::sh -c id", "fd::3"])
def test_an_address_that_names_a_program_is_refused_as_such(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidArgument, match="names a program"):
        Git.clone(url, str(tmp_path / "x"), environ_of(tmp_path))


def test_folders_of_objects_may_vanish_while_they_are_synced(tmp_path: Path) -> None:
    """Another git process may pack the objects in them."""
    place = tmp_path / "objects" / "ab"
    place.parent.mkdir()
    enough = threading.Event()
    rounds: list[int] = []

    def tidy() -> None:
        while not enough.is_set():
            place.mkdir()
            place.rmdir()
            rounds.append(len(rounds))

    tidying = threading.Thread(target=tidy)
    tidying.start()
    try:
        for _ in range(3_000):
            repository.sync_objects(str(tmp_path), 0)
    finally:
        enough.set()
        tidying.join()
    assert len(rounds) > 100

"""Transactions: changes are checked, a failure restores everything, and no edit is overwritten."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kb.nodes import IDS, text
from tests.kb.users import Person

from quaid.errors import (
    DiskFull,
    FileChanged,
    GitMissing,
    InvalidArgument,
    LintFailed,
    NearDuplicate,
    QuaidError,
    StoreDirty,
    StoreUnfinished,
)
from quaid.kb import catalog as catalogs, layout, transaction
from quaid.kb.catalog import Catalog
from quaid.kb.transaction import StoreChange
from quaid.model import secrets

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person("init")
    return person


def test_a_node_is_written_indexed_and_committed_alone(ann: Person) -> None:
    before = ann.by_git("rev-list", "--count", "HEAD")
    made = ann.remember("Formatter order", "Run black before ruff.", type="principle", projects=["emacs"])
    assert int(ann.by_git("rev-list", "--count", "HEAD")) == int(before) + 1
    assert ann.by_git("rev-parse", "HEAD").strip() == made["commit"]
    changed = ann.by_git("show", "--name-only", "--format=%s").split("\n")
    assert [line for line in changed if line] == [
        "remember: Formatter order",
        made["node"]["path"],
        "index.org",
    ]
    assert f"| Formatter order | {made['node']['id']} |" in (ann.root / "index.org").read_text()
    assert ann.is_sound()


# A failure leaves everything as it was


def failing(ann: Person, act: Callable[[], object], kind: type[QuaidError]) -> str:
    """Return the message of a failure that changes no file, neither git's index nor its commits."""
    before = ann.everything()
    with pytest.raises(kind) as error:
        act()
    assert ann.everything() == before
    assert ann.git.state().is_clean
    return str(error.value)


def test_a_secret_is_not_committed(ann: Person) -> None:
    message = failing(ann, lambda: ann.remember("Token", f"The token is {TOKEN}"), LintFailed)
    assert "secret" in message
    assert TOKEN not in message
    assert TOKEN not in ann.by_git("log", "--all", "-p")


def test_org_that_cannot_be_read_is_not_committed(ann: Person) -> None:
    message = failing(ann, lambda: ann.remember("Torn", "#+begin_src sh\nls\n"), LintFailed)
    assert "block" in message


def test_a_link_to_nothing_is_not_committed(ann: Person) -> None:
    message = failing(ann, lambda: ann.remember("Link", f"See [[id:{IDS[700]}][it]]."), LintFailed)
    assert IDS[700] in message


def test_existing_entry_is_reported_before_writing(ann: Person) -> None:
    ann.remember("Formatter order", "Run black before ruff.")
    again: Callable[[], object] = lambda: ann.remember("Formatter order", "Run black before ruff.")  # noqa: E731
    assert "Formatter order" in failing(ann, again, NearDuplicate)
    ann.remember("Formatter order", "Run black before ruff.", force=True)
    assert len(ann("query", context="formatter")["matches"]) == 2


def test_a_scanner_that_fails_means_no_commit(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> object:
        raise MemoryError("too much")

    with monkeypatch.context() as patch:
        patch.setattr(secrets, "find_secrets", broken)
        message = failing(ann, lambda: ann.remember("Clean", "Nothing secret."), LintFailed)
    assert "nothing is committed unseen" in message
    ann.remember("Clean", "Nothing secret.")  # and the failure is not remembered of the bytes
    assert ann.is_sound()


def test_without_git_nothing_is_written(ann: Person) -> None:
    before = ann.everything()
    path, ann.environ["PATH"] = ann.environ["PATH"], str(ann.home)
    with pytest.raises(GitMissing):
        ann.remember("No git", "at all")
    ann.environ["PATH"] = path
    assert ann.everything() == before
    assert ann("query", context="knowledge")["matches"]  # reading needs none


def test_a_file_that_an_editor_saves_meanwhile_is_kept_and_not_committed(ann: Person) -> None:
    made = ann.remember("Ports", "The port is 8080.")
    path = made["node"]["path"]

    def plan(catalog: Catalog) -> StoreChange:
        new = catalog.text(path).replace("8080", "9090")
        ann.put(path, catalog.text(path).replace("8080", "7070"))
        return StoreChange({path: new.encode()}, "edit")

    head = ann.git.head()
    with pytest.raises(FileChanged):
        transaction.apply_change(ann.git, "2026-04-25T12:00:00Z", "edit", plan)
    assert ann.git.head() == head
    assert "7070" in (ann.root / path).read_text()
    ann("commit")
    assert ann.is_sound()


def test_bytes_that_were_not_judged_are_not_committed(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that comes into the file after lint has looked, and before git does."""
    made = ann.remember("Ports", "The port is 8080.")
    path = made["node"]["path"]
    ann.put(path, (ann.root / path).read_text() + "\nMore.\n")
    commit = type(ann.git).commit

    def late(git: object, *arguments: object, **more: object) -> str:
        ann.put(path, (ann.root / path).read_text() + f"\n{TOKEN}\n")
        return commit(git, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("quaid.kb.git.Git.commit", late)
    with pytest.raises(FileChanged):
        ann("commit")
    monkeypatch.undo()
    assert TOKEN not in ann.by_git("log", "--all", "-p")
    assert ann.by_git("diff", "--cached", "--name-only") == ""
    assert TOKEN in (ann.root / path).read_text()  # what a person wrote is theirs


def test_a_file_that_comes_back_after_its_end_was_judged_is_not_committed(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ann.remember("Ports", "The port is 8080.")["node"]["path"]
    (ann.root / path).unlink()
    commit = type(ann.git).commit

    def late(git: object, *arguments: object, **more: object) -> str:
        ann.put(path, TOKEN)
        return commit(git, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("quaid.kb.git.Git.commit", late)
    with pytest.raises(FileChanged):
        ann("commit")
    assert TOKEN not in ann.by_git("log", "--all", "-p")


def test_findings_are_never_those_of_other_bytes(ann: Person) -> None:
    """Look, save something clean, judge, save the secret again: the verdict on the clean one does not count."""
    dirty = text(3, f"{TOKEN}\n")
    ann.put("a.org", dirty)
    seen = catalogs.load_catalog(str(ann.root))
    ann.put("a.org", text(3, "Clean.\n"))
    assert "unsettled" in [item.code for item in catalogs.lint_store(seen)]
    ann.put("a.org", dirty)
    assert [finding["code"] for finding in ann("lint")["findings"] if finding["path"] == "a.org"] == [
        "secret"
    ]


OPENED: list[str] = []
sys.addaudithook(lambda what, about: OPENED.append(str(about[0])) if what == "open" else None)


def test_a_write_reads_no_file_that_looks_as_it_did(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RACY_NS", -(10**18))
    ports, doors = (ann.remember(title)["node"]["path"] for title in ("Ports", "Doors"))
    ann("index")
    OPENED.clear()
    ann("index")
    ann.remember("Keys")
    assert {ports, doors} & {*OPENED} == set()
    ann.put(doors, (ann.root / doors).read_text() + "\nMore.\n")
    OPENED.clear()
    ann("commit")
    assert {ports, doors} <= {*OPENED}
    assert ann.is_sound()


def test_bytes_that_changed_unseen_are_neither_written_over_nor_committed(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk without timestamps, a change that the stat does not show is found before writing."""
    monkeypatch.setattr(catalogs, "RACY_NS", -(10**18))
    made = ann.remember("Ports", "The port is 8080.")["node"]
    ann("index")
    looked = layout.walk_store(str(ann.root))
    ann.put(made["path"], (ann.root / made["path"]).read_text().replace("8080", "7070"))
    ann.by_git("update-index", "--assume-unchanged", made["path"])
    head = ann.git.head()
    with monkeypatch.context() as disk:
        disk.setattr(layout, "walk_store", lambda root: looked)
        with pytest.raises(FileChanged):
            ann("remember", text="And 9090.", add_to=made["id"])
        assert (ann.git.head(), "7070" in (ann.root / made["path"]).read_text()) == (head, True)
        ann("lint")  # reads everything, so that the next one knows
        ann("remember", text="And 9090.", add_to=made["id"])
    text = (ann.root / made["path"]).read_text()
    assert "7070" in text
    assert "9090" in text


def test_a_changed_index_is_regenerated(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RACY_NS", -(10**18))
    ann.remember("Ports")
    assert ann("index")["files"] == []
    right = (ann.root / "index.org").read_text()
    for wrong in (right + "\n", right.replace("Ports", "Forts"), ""):
        (ann.root / "index.org").write_text(wrong)
        assert ann("query", context="ports")["index_is_stale"]
        assert ann("index")["files"] == ["index.org"]
        assert (ann.root / "index.org").read_text() == right
    (ann.root / "index.org").unlink()
    assert ann("index")["files"] == ["index.org"]
    assert ann.is_sound()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or not mount:
        pytest.skip("only root can mount a disk that is small enough to fill")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=700k", "tmpfs", place], capture_output=True)
    if done.returncode:
        pytest.skip("no disk could be mounted")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_changes_nothing_at_any_step(small_disk: Path, tmp_path: Path) -> None:
    ann = Person(tmp_path)
    ann.root = small_disk / "kb"
    ann.environ["AI_KB_DIR"] = str(ann.root)
    ann("init")
    ballast = small_disk / "ballast"
    failures = 0
    for free in range(4, 100, 8):  # KB that are left: less and less goes wrong, later and later
        room = os.statvfs(small_disk)
        ballast.write_bytes(b"x" * max(0, room.f_bavail * room.f_frsize - free * 1024))
        before = ann.everything()
        try:
            ann.remember(f"Number {'abcdefghijklmnop'[free // 8] * 5}", "Words. " * 300, force=True)
        except DiskFull:
            failures += 1
            ballast.unlink()
            assert ann.everything() == before, f"{free} KB free"
        else:
            ballast.unlink()
    assert failures > 2
    assert ann.is_sound()
    ann.remember("Room again", "It works at once.")
    assert ann.is_sound()


def test_a_write_that_git_refuses_is_put_back(ann: Person) -> None:
    """Objects cannot be written: the folder of git is a file system that refuses."""
    before = ann.everything()
    objects = ann.root / ".git/objects"
    hidden = objects.with_name("elsewhere")
    objects.rename(hidden)
    objects.write_text("not a folder")
    try:
        with pytest.raises(QuaidError):
            ann.remember("Nowhere", "to go")
    finally:
        objects.unlink()
        hidden.rename(objects)
    assert ann.everything() == before
    ann.remember("Somewhere", "to go")
    assert ann.is_sound()


# Changes of other programs


@pytest.mark.parametrize("staged", [False, True])
def test_changes_of_others_are_reported_and_nothing_is_written(ann: Person, staged: bool) -> None:
    path = ann.remember("Ports", "The port is 8080.")["node"]["path"]
    ann.put(path, (ann.root / path).read_text() + "half a senten")
    ann.put("new.org", text(5))
    if staged:
        ann.by_git("add", "--all")
    before = ann.everything()
    with pytest.raises(StoreDirty) as error:
        ann.remember("Other", "thing")
    assert path in str(error.value)
    assert "ai-kb commit" in str(error.value)
    assert ann.everything() == before


def test_editor_leftovers_are_ignored(ann: Person) -> None:
    for name in (".#a.org", "#a.org#", "a.org~", "notes.txt", ".dir-locals.el"):
        ann.put(name, "x")
    ann.remember("Other", "thing")
    assert (ann.root / "a.org~").read_text() == "x"
    assert "a.org~" not in ann.by_git("ls-files")


STAGED = {
    "a file beside the nodes": ("notes.txt", "Words.\n"),
    "a hidden file": (".gitignore", "*.tmp\n"),
    "a node": ("mine.org", text(5)),
    "a raw text": ("raw/mine.txt", "Words.\n"),
}


@pytest.mark.parametrize("what", STAGED)
@pytest.mark.parametrize("then", ["nothing", "edited", "deleted"])
def test_a_file_that_was_staged_by_hand_is_committed_by_commit(ann: Person, what: str, then: str) -> None:
    path, data = STAGED[what]
    ann.put(path, data)
    ann.by_git("add", "--force", path)
    if then == "edited":
        ann.put(path, data + "more\n")
    elif then == "deleted":
        (ann.root / path).unlink()
    assert path in ann("status")["uncommitted"]
    assert not {check["name"]: check for check in ann("doctor")["checks"]}["tree"]["well"]
    before = ann.everything()
    with pytest.raises(StoreDirty) as error:
        ann.remember("Other", "thing")
    assert path in str(error.value)
    assert ann.everything() == before
    done = ann("commit")  # as the message says
    assert (path in done["paths"]) is (then != "deleted")
    assert ann.is_sound()
    ann.remember("Other", "thing")
    assert ann.is_sound()


def test_staged_file_with_a_secret_is_reported_with_a_remedy(ann: Person) -> None:
    ann.put("notes.txt", f"The token is {TOKEN}\n")
    ann.by_git("add", "notes.txt")
    with pytest.raises(LintFailed) as error:
        ann("commit")
    assert "notes.txt:1" in str(error.value)
    ann.by_git("rm", "-q", "--cached", "notes.txt")
    ann.remember("Other", "thing")
    (ann.root / "inner").mkdir()
    ann.by_git("-C", "inner", "init", "-q")
    ann.by_git("-C", "inner", "commit", "-q", "--allow-empty", "-m", "x")
    ann.by_git("-c", "advice.addEmbeddedRepo=false", "add", "inner")
    with pytest.raises(StoreDirty) as refused:
        ann.remember("Another", "matter")
    command = str(refused.value).partition("`")[2].partition("`")[0].split()
    assert command[:3] == ["git", "-C", str(ann.root)]
    ann.by_git(*command[1:])  # as the message says
    ann.remember("Another", "matter")
    assert TOKEN not in ann.by_git("log", "--all", "-p")


def test_a_tracked_file_beside_the_nodes_can_be_edited(ann: Person) -> None:
    ann.put("README.md", "# Mine\n")
    ann.by_git("add", "README.md")
    ann.by_git("commit", "-q", "-m", "readme")
    ann.put("README.md", "# Ours\n")
    node = ann.root / "new.org"
    node.write_text(text(5))
    assert set(ann("commit")["paths"]) == {"README.md", "new.org", "index.org"}
    assert ann.is_sound()


def test_unfinished_merge_is_reported_and_left(ann: Person) -> None:
    path = ann.remember("Ports", "The port is 8080.")["node"]["path"]
    whole = (ann.root / path).read_text()
    ann.by_git("branch", "side")
    ann.put(path, whole.replace("8080", "7070"))
    ann("commit")
    ann.by_git("checkout", "-q", "side")
    ann.put(path, whole.replace("8080", "9090"))
    ann("commit")
    with pytest.raises(AssertionError):
        ann.by_git("merge", "main")
    before = ann.everything()
    with pytest.raises(StoreUnfinished):
        ann.remember("Other", "thing")
    with pytest.raises(StoreUnfinished):
        ann("commit")
    assert ann.everything() == before
    assert [finding["code"] for finding in ann("lint")["findings"]] == ["conflict", "conflict"]
    ann.put(path, whole.replace("8080", "9090"))
    ann.by_git("add", path)
    ann.by_git("commit", "-qm", "merged")
    assert ann.is_sound()


def test_a_stale_index_is_mended_on_the_way(ann: Person) -> None:
    ann.put("index.org", "#+title: Index\nmine\n")
    ann.remember("Other", "thing")
    assert ann.is_sound()


# Edits by hand go through the same gate


def test_a_good_edit_is_committed_with_its_index(ann: Person) -> None:
    path = ann.remember("Ports", "The port is 8080.")["node"]["path"]
    ann.put(path, (ann.root / path).read_text().replace("#+title: Ports", "#+title: All ports"))
    ann.put("mine.org", text(7, title="By hand"))
    done = ann("commit", message="Reworded")
    assert done["paths"] == sorted([path, "index.org", "mine.org"])
    assert ann.by_git("log", "-1", "--format=%s").strip() == "Reworded"
    assert {"All ports", "By hand"} <= ann.titles
    assert ann.is_sound()
    assert ann("commit")["paths"] == []


def updated(ann: Person, path: str) -> str:
    lines = [line for line in (ann.root / path).read_text().split("\n") if line.startswith(":UPDATED:")]
    return lines[0].split()[1]


def test_an_edit_moves_the_day_of_the_edited_nodes(ann: Person) -> None:
    """The clock of the test is at 2026-04-25."""
    for name, number in (
        ("edited.org", 3),
        ("left.org", 4),
        ("moved.org", 5),
        ("both.org", 6),
        ("set.org", 7),
    ):
        ann.put(name, text(number, CREATED="2026-01-01", UPDATED="2026-01-02", title=name))
    ann("commit")
    assert updated(ann, "edited.org") == "2026-01-02"  # as it came
    ann.put("edited.org", (ann.root / "edited.org").read_text().replace("Some words.", "Others."))
    (ann.root / "moved.org").rename(ann.root / "elsewhere.org")
    (ann.root / "both.org").unlink()
    ann.put("renamed.org", text(6, "Others.\n", CREATED="2026-01-01", UPDATED="2026-01-02", title="both.org"))
    ann.put("set.org", text(7, "Others.\n", CREATED="2026-01-01", UPDATED="2026-02-03", title="set.org"))
    ann("commit")
    days = {
        name: updated(ann, name)
        for name in ("edited.org", "left.org", "elsewhere.org", "renamed.org", "set.org")
    }
    assert days == {
        "edited.org": "2026-04-25",
        "left.org": "2026-01-02",
        "elsewhere.org": "2026-01-02",
        "renamed.org": "2026-04-25",
        "set.org": "2026-02-03",
    }
    assert "2026-04-25" in ann("query", context="edited.org")["matches"][0]["updated"]
    assert ann.is_sound()
    assert ann("commit")["paths"] == []


def test_a_commit_that_fails_leaves_the_day_as_it_was(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.put("edited.org", text(3, CREATED="2026-01-01", UPDATED="2026-01-02"))
    ann("commit")
    ann.put("edited.org", (ann.root / "edited.org").read_text().replace("Some words.", "Others."))
    ann.put("bad.org", "no drawer\n")
    before = ann.everything()
    with pytest.raises(LintFailed):
        ann("commit")
    assert ann.everything() == before
    (ann.root / "bad.org").unlink()
    before = ann.everything()
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> str:
            raise DiskFull(path="there")

        patch.setattr("quaid.kb.git.Git.commit", full)
        with pytest.raises(DiskFull):
            ann("commit")
    assert ann.everything() == before
    ann("commit")
    assert updated(ann, "edited.org") == "2026-04-25"


@pytest.mark.parametrize(
    ("name", "what", "code"),
    [
        ("bad.org", text(8, drop=("SUMMARY",)), "SUMMARY"),
        ("bad.org", text(8, f"{TOKEN}\n"), "secret"),
        ("bad.org", "no drawer at all\n", ":ID:"),
        ("raw/bad.txt", f"key {TOKEN}\n", "secret"),
        ("bad.org", text(8, f"[[id:{IDS[900]}][gone]]\n"), "no node has the ID"),
        ("bad.org", text(8, STATUS="perhaps"), "STATUS"),
        ("index-mine.org", text(8), "rename it"),
    ],
)
def test_bad_edit_is_reported_and_stays_as_the_person_left_it(
    ann: Person, name: str, what: str, code: str
) -> None:
    ann.put("good.org", text(7))
    ann.put(name, what)
    before = ann.everything()
    with pytest.raises(LintFailed) as error:
        ann("commit")
    assert code in str(error.value)
    assert name in str(error.value)
    assert ann.everything() == before


def test_a_file_that_is_named_like_the_index_is_never_taken_away(ann: Person) -> None:
    ann.put("index-mine.org", text(8))
    with pytest.raises(LintFailed):
        ann.remember("Other", "thing")
    with pytest.raises(LintFailed, match="rename it"):
        ann("index")
    assert (ann.root / "index-mine.org").read_text() == text(8)
    (ann.root / "index-mine.org").rename(ann.root / "mine-index.org")
    ann("commit")
    assert ann.is_sound()


def test_a_node_that_others_link_to_cannot_be_deleted_by_hand(ann: Person) -> None:
    one = ann.remember("Ports", "The port is 8080.")["node"]
    two = ann.remember("Firewall", "Opens the port.", links=[one["id"]])["node"]
    (ann.root / one["path"]).unlink()
    before = ann.everything()
    with pytest.raises(LintFailed) as error:
        ann("commit")
    assert two["path"] in str(error.value)
    assert ann.everything() == before
    (ann.root / two["path"]).unlink()
    assert set(ann("commit")["paths"]) == {one["path"], two["path"], "index.org"}
    assert ann.is_sound()


def test_a_file_may_be_renamed(ann: Person) -> None:
    node = ann.remember("Ports", "The port is 8080.")["node"]
    os.rename(ann.root / node["path"], ann.root / "ports.org")
    done = ann("commit")
    assert set(done["paths"]) == {node["path"], "ports.org"}
    assert ann("show", node=node["id"])["node"]["path"] == "ports.org"
    assert ann.is_sound()


def test_a_large_raw_file_is_scanned_to_its_end(ann: Person) -> None:
    source = ann.home / "log.txt"
    source.write_text("A line of a long log.\n" * 300_000)
    captured = ann("capture", source=str(source), full=True)
    assert (ann.root / captured["file"]).stat().st_size > catalogs.MAX_NODE_BYTES
    assert ann.is_sound()
    with open(ann.root / captured["file"], "a") as file:
        file.write(f"{TOKEN}\n")
    with pytest.raises(LintFailed):
        ann("commit")


def test_empty_words_are_refused_before_the_store_is_looked_at(ann: Person) -> None:
    for wrong in ({"title": ""}, {"title": "A", "summary": ""}, {"title": "A", "projects": ["My App"]}):
        with pytest.raises(InvalidArgument):
            ann("remember", **{"text": "words", "summary": "s", **wrong})

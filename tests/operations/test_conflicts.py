"""The merge driver in real git repositories, and conflict copies in attached folders."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import commands

from quaid.app import Brain
from quaid.errors import InvalidArgument
from quaid.formats import markdown
from quaid.model.sync_plan import copied_path
from quaid.operations import dispatch
from quaid.operations.conflicts import ConflictCopy

PAGE = """\
---
# how we met
title: "Mira"   # first name
status: friend
tags: [climbing]
---

# Mira

She lives in Lisbon.

She works at Acme.

---

- **2026-02-01** — Called.
- **2026-01-01** — Met.
"""


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


# Files


def edit(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


ENTRY = "- **2026-02-01** — Called."


def test_files_keep_the_bytes_of_what_did_not_change() -> None:
    ours = edit(PAGE, ("status: friend", "status: colleague"), (ENTRY, f"- **2026-03-01** — Wrote.\n{ENTRY}"))
    theirs = edit(PAGE, ("[climbing]", "[climbing, tea]"), (ENTRY, f"- **2026-02-15** — Ran.\n{ENTRY}"))
    merged = edit(
        PAGE,
        ("status: friend", "status: colleague"),
        ("[climbing]", "[climbing, tea]"),
        (ENTRY, f"- **2026-03-01** — Wrote.\n- **2026-02-15** — Ran.\n{ENTRY}"),
    )
    assert markdown.merge_files(PAGE, ours, theirs) == (merged, 0)
    assert markdown.merge_files(PAGE, theirs, ours) == (merged, 0)
    for mark in ("\ufeff", ""):
        texts = [mark + text.replace("\n", "\r\n") for text in (PAGE, ours, theirs, merged)]
        assert markdown.merge_files(*texts[:3]) == (texts[3], 0)


def test_a_comment_that_one_side_added_to_front_matter_is_kept() -> None:
    ours = edit(PAGE, ("# how we met", "# how we met: at the fair"))
    theirs = edit(PAGE, ("Acme", "Beta"))
    merged = edit(ours, ("Acme", "Beta"))
    assert markdown.merge_files(PAGE, ours, theirs) == (merged, 0)
    assert markdown.merge_files(PAGE, theirs, ours) == (merged, 0)


def test_conflicts_are_marked_as_git_marks_them() -> None:
    ours = edit(PAGE, ("Lisbon", "Porto"), ("status: friend", "status: rival  # since May"))
    theirs = edit(PAGE, ("Lisbon", "Braga"), ("status: friend", "status: partner"))
    merged = markdown.merge_files(PAGE, ours, theirs)
    assert merged == (
        edit(
            PAGE,
            (
                "She lives in Lisbon.",
                "<<<<<<< ours\nShe lives in Porto.\n=======\nShe lives in Braga.\n>>>>>>> theirs",
            ),
            (
                "status: friend",
                "<<<<<<< ours\nstatus: rival  # since May\n=======\nstatus: partner\n>>>>>>> theirs",
            ),
        ),
        2,
    )


@pytest.mark.parametrize("broken", ["---\ntitle: [\n---\n\nText.\n", "+++\ntitle = 'x'\n+++\n\nText.\n"])
def test_front_matter_that_cannot_be_changed_is_left_to_git(broken: str) -> None:
    ours, theirs = broken.replace("title", "name"), broken.replace("title", "label")
    assert markdown.merge_files(broken, ours, theirs) is None


# git


class Repositories:
    """Two clones of a bare repository, with the program `quaid` on the PATH."""

    def __init__(self, folder: Path) -> None:
        programs = folder / "bin"
        programs.mkdir()
        commands.install(programs / "quaid")
        (folder / "home").mkdir()
        self.environ = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": "mira@x.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        self.remote, self.one, self.two = folder / "remote.git", folder / "one", folder / "two"
        self.run("git", "init", "-q", "--bare", "-b", "main", str(self.remote), cwd=folder)
        for clone in (self.one, self.two):
            self.run("git", "clone", "-q", str(self.remote), str(clone), cwd=folder)
        self.commit(self.one, "first", **{"mira.md": PAGE})
        self.run("git", "push", "-q", "origin", "HEAD:main", cwd=self.one)
        self.run("git", "pull", "-q", "origin", "main", cwd=self.two)

    def run(self, *command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=cwd, env=self.environ, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    def commit(self, clone: Path, message: str, **files: str) -> None:
        for name, text in files.items():
            (clone / name).write_text(text, newline="")
        self.run("git", "add", "-A", cwd=clone)
        self.run("git", "commit", "-q", "-m", message, cwd=clone)

    def merge(self, ours: str, theirs: str, name: str = "mira.md") -> subprocess.CompletedProcess[str]:
        """Commit and push in the first clone, commit in the second, and pull there."""
        self.commit(self.one, "one", **{name: theirs})
        self.run("git", "push", "-q", "origin", "HEAD:main", cwd=self.one)
        self.commit(self.two, "two", **{name: ours})
        return self.run(
            "git", "pull", "-q", "--no-rebase", "--no-edit", "origin", "main", cwd=self.two, check=False
        )


@pytest.fixture
def clones(tmp_path: Path) -> Repositories:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    return Repositories(tmp_path)


OURS = edit(PAGE, ("status: friend", "status: rival"), (ENTRY, f"- **2026-03-01** — Wrote.\n{ENTRY}"))
THEIRS = edit(PAGE, ("[climbing]", "[climbing, tea]"), (ENTRY, f"- **2026-02-15** — Ran.\n{ENTRY}"))


def test_git_merges_entries_and_keys_of_two_clones_without_a_conflict(clones: Repositories) -> None:
    clones.run("quaid", "git-setup", cwd=clones.two)
    assert clones.merge(OURS, THEIRS).returncode == 0
    assert (clones.two / "mira.md").read_text() == markdown.merge_files(PAGE, OURS, THEIRS)[0]  # type: ignore[index]
    assert clones.run("git", "status", "--porcelain", cwd=clones.two).stdout == ""


def test_git_without_the_driver_leaves_a_conflict(clones: Repositories) -> None:
    assert clones.merge(OURS, THEIRS).returncode == 1
    assert "<<<<<<<" in (clones.two / "mira.md").read_text()


def test_git_stops_at_a_true_conflict_and_marks_it(clones: Repositories) -> None:
    clones.run("quaid", "git-setup", cwd=clones.two)
    ours, theirs = edit(OURS, ("Lisbon", "Porto")), edit(THEIRS, ("Lisbon", "Braga"))
    done = clones.merge(ours, theirs)
    assert done.returncode == 1
    assert "mira.md: 1 conflict" in done.stdout + done.stderr
    text = (clones.two / "mira.md").read_text()
    assert text.count("<<<<<<<") == 1
    assert "Wrote." in text
    assert "Ran." in text
    assert clones.run("git", "diff", "--name-only", "--diff-filter=U", cwd=clones.two).stdout == "mira.md\n"


def test_other_files_are_merged_by_lines(clones: Repositories) -> None:
    clones.run("quaid", "git-setup", cwd=clones.two)
    lines = "".join(f"line {number}\n" for number in range(9))
    latin = lines.replace("line 4", "caf\xe9")
    for name, text in (("latin.md", latin), ("broken.md", f"---\na: [\n---\n{lines}")):
        for version in ("base", "ours", "theirs"):
            edited = edit(
                text, *{"base": [], "ours": [("line 1", "ours")], "theirs": [("line 8", "theirs")]}[version]
            )
            (clones.two / f"{name}.{version}").write_bytes(edited.encode("latin-1"))
        paths = [f"{name}.{version}" for version in ("base", "ours", "theirs")]
        clones.run("quaid", "merge-driver", *paths, name, cwd=clones.two)
        merged = (clones.two / paths[1]).read_bytes()
        assert merged == edit(text, ("line 1", "ours"), ("line 8", "theirs")).encode("latin-1")


def test_git_setup_is_idempotent_and_can_be_undone(clones: Repositories) -> None:
    config, attributes = clones.two / ".git" / "config", clones.two / ".gitattributes"
    attributes.write_text("*.png binary\n")
    before = config.read_text()
    assert "Would change" in clones.run("quaid", "git-setup", "--dry-run", cwd=clones.two).stdout
    assert (config.read_text(), attributes.read_text()) == (before, "*.png binary\n")
    assert "Changed" in clones.run("quaid", "git-setup", cwd=clones.two).stdout
    after = config.read_text(), attributes.read_text()
    assert after[1] == "*.png binary\n*.md merge=quaid\n*.markdown merge=quaid\n"
    assert "Nothing to change" in clones.run("quaid", "git-setup", cwd=clones.two).stdout
    assert (config.read_text(), attributes.read_text()) == after
    clones.run("quaid", "git-setup", "--remove", cwd=clones.two)
    assert (config.read_text(), attributes.read_text()) == (before, "*.png binary\n")
    assert "Nothing to change" in clones.run("quaid", "git-setup", "--remove", cwd=clones.two).stdout


def test_git_setup_refuses_other_folders(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(InvalidArgument, match="not in a git repository"):
        call(brain, "git-setup", folder=str(tmp_path / "plain"))
    with pytest.raises(InvalidArgument, match="is not a folder"):
        call(brain, "git-setup", folder=str(tmp_path / "missing"))
    subprocess.run(["git", "init", "-q", str(tmp_path / "kb")], check=True)
    (tmp_path / "kb" / ".git" / "ai-kb").mkdir()
    with pytest.raises(InvalidArgument, match="knowledge base"):
        call(brain, "git-setup", folder=str(tmp_path / "kb"))


# Conflict copies

SYNCTHING = "mira.sync-conflict-20260101-120000-ABCDEFG.md"


@pytest.mark.parametrize(
    ("path", "original"),
    [
        (SYNCTHING, "mira.md"),
        ("people/mira (conflicted copy 2026-01-01).md", "people/mira.md"),
        ("people/mira (Mira's conflicted copy 2026-01-01).md", "people/mira.md"),
        ("people/mira (Mira’s MacBook's conflicted copy 2026-01-01) (1).md", "people/mira.md"),
        ("mira (Conflicted copy laptop 202601011200).md", "mira.md"),
        ("mira (conflicted copy 2026-01-01 120000).markdown", "mira.markdown"),
        ("mira.conflict-0123abcd.md", "mira.md"),
        ("conflict.md", None),
        ("mira (conflict of interest).md", None),
        ("sync-conflict.md", None),
        ("people (conflicted copy)/mira.md", None),
    ],
)
def test_names_of_conflict_copies(path: str, original: str | None) -> None:
    assert copied_path(path) == original


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "mira.md").write_text(PAGE)
    call(brain, "collection add", name="notes", path=str(folder))
    return folder


def test_a_copy_is_reported_by_sync_info_and_doctor(brain: Brain, notes: Path) -> None:
    (notes / SYNCTHING).write_text(edit(PAGE, ("Acme", "Beta")))
    (report,) = call(brain, "collection sync").value
    assert [note.path for note in report.notes] == [SYNCTHING]
    assert "conflict copy of mira.md" in call(brain, "collection info", name="notes").problems[0].problem
    findings = call(brain, "doctor").checks
    assert [
        finding.detail for finding in findings if finding.state == "advice" and finding.name == "folder notes"
    ] == ["1 conflict copy, first " + SYNCTHING]
    record = call(brain, "collection conflicts")
    assert record.copies == (ConflictCopy("notes", SYNCTHING, "notes::mira", "found"),)
    assert record.exit_status == 0
    assert (notes / SYNCTHING).exists()


def test_a_copy_that_only_adds_is_merged_with_the_version_that_it_is_based_on(
    brain: Brain, notes: Path
) -> None:
    (notes / "mira.md").write_text(edit(OURS, ("Lisbon", "Porto")))
    call(brain, "collection sync")
    (notes / SYNCTHING).write_text(edit(THEIRS, ("She works at Acme.", "She works at Acme.\n\nShe sails.")))
    (copy,) = call(brain, "collection conflicts", merge=True).copies
    assert (copy.state, copy.conflicts) == ("merged", 0)
    assert (notes / "mira.md").read_text() == edit(
        PAGE,
        ("status: friend", "status: rival"),
        ("[climbing]", "[climbing, tea]"),
        ("Lisbon", "Porto"),
        ("She works at Acme.", "She works at Acme.\n\nShe sails."),
        (ENTRY, f"- **2026-03-01** — Wrote.\n- **2026-02-15** — Ran.\n{ENTRY}"),
    )
    assert sorted(path.name for path in notes.iterdir()) == ["mira.md"]
    assert call(brain, "collection conflicts").copies == ()
    assert call(brain, "collection info", name="notes").problems == ()


def test_a_copy_without_a_base_keeps_both_texts_as_a_conflict(brain: Brain, notes: Path) -> None:
    (notes / "mira (conflicted copy 2026-01-01).md").write_text(
        edit(
            THEIRS, ("Lisbon", "Braga"), ("status: friend", "status: partner"), ("She works at Acme.\n\n", "")
        )
    )
    (copy,) = call(brain, "collection conflicts", name="notes", merge=True).copies
    assert (copy.state, copy.conflicts) == ("merged", 2)
    text = (notes / "mira.md").read_text()
    assert (
        "<!-- conflict: conflict copy -->\nShe lives in Braga.\n<!-- or: this file -->\nShe lives in Lisbon."
        in text
    )
    assert "She works at Acme." in text
    assert "Ran." in text
    assert "status: friend" in text
    assert len(call(brain, "review").conflicts) == 2
    call(brain, "review", slug="notes::mira", keep="conflict copy")
    assert "status: partner" in (notes / "mira.md").read_text()


def test_text_that_was_added_here_before_the_copy_was_edited_is_kept(brain: Brain, notes: Path) -> None:
    """The newest version before the copy is not its base, because the copy does not have our first edit."""
    first = edit(PAGE, ("She works at Acme.", "She works at Acme.\n\nShe sails."))
    (notes / "other.md").write_text(first)
    call(brain, "collection sync")
    (notes / "other.md").write_text(edit(first, (ENTRY, f"- **2026-03-01** — Wrote.\n{ENTRY}")))
    call(brain, "collection sync")
    (notes / "other.conflict-0123abcd.md").write_text(edit(PAGE, ("Acme", "Beta")))
    (copy,) = call(brain, "collection conflicts", merge=True).copies
    assert (copy.state, copy.conflicts) == ("merged", 1)
    text = (notes / "other.md").read_text()
    assert all(part in text for part in ("She sails.", "Wrote.", "works at Acme.", "works at Beta."))


def test_copies_that_cannot_be_merged_are_left(brain: Brain, notes: Path) -> None:
    files = {
        "gone.conflict-0123abcd.md": b"# Gone\n",
        "mira.conflict-0123abcd.md": b"---\na: [\n---\n\nText.\n",
        "mira (conflicted copy 2026-01-01).md": "Caf\xe9.\n".encode("latin-1"),
    }
    for name, data in files.items():
        (notes / name).write_bytes(data)
    record = call(brain, "collection conflicts", merge=True)
    assert {copy.path: copy.state for copy in record.copies} == dict.fromkeys(files, "left")
    assert all(copy.problem for copy in record.copies)
    assert record.exit_status == 1
    assert {name: (notes / name).read_bytes() for name in files} == files
    assert (notes / "mira.md").read_text() == PAGE


def test_copies_in_a_read_only_folder_are_left(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "mira.md").write_text(PAGE)
    (folder / SYNCTHING).write_text(THEIRS)
    call(brain, "collection add", name="wiki", path=str(folder), read_only=True)
    (copy,) = call(brain, "collection conflicts", merge=True).copies
    assert copy.state == "left"
    assert "read-only" in copy.problem
    assert (folder / SYNCTHING).read_text() == THEIRS

"""init and clone accept empty folders and knowledge bases, and refuse other repositories."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kb.nodes import text
from tests.kb.stores import bare, environ_of, plain
from tests.kb.users import ROOT, Person

from quaid.errors import CloneFailed, QuaidError, RemoteOccupied, StoreForeign, StoreOccupied


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environ_of(tmp_path)


def code(folder: Path, environ: dict[str, str], branch: str = "main") -> Path:
    """A repository of a program."""
    folder.mkdir()
    plain(folder, "init", "-q", "-b", branch, environ=environ)
    (folder / "main.py").write_text("print('hi')\n")
    (folder / "README.org").write_text("* A program\n")
    (folder / "docs").mkdir()
    (folder / "docs/notes.org").write_text("* Notes\n")
    plain(folder, "add", "--all", environ=environ)
    plain(folder, "commit", "-q", "-m", "a program", environ=environ)
    return folder


def code_remote(tmp_path: Path, environ: dict[str, str], branch: str = "main") -> Path:
    """Its bare remote."""
    source = code(tmp_path / "program", environ, branch)
    remote = tmp_path / "program.git"
    plain(tmp_path, "clone", "-q", "--bare", str(source), str(remote), environ=environ)
    return remote


def bytes_below(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(act: Callable[[], object], kind: type[QuaidError], *folders: Path) -> str:
    """The message of a refusal that leaves every byte below these folders as it was."""
    before = [bytes_below(folder) for folder in folders]
    with pytest.raises(kind) as error:
        act()
    assert [bytes_below(folder) for folder in folders] == before
    return str(error.value)


def test_init_refuses_a_code_repository(ann: Person, environ: dict[str, str]) -> None:
    code(ann.root, environ)
    message = refused(lambda: ann("init"), StoreOccupied, ann.root)
    assert "main.py" in message
    assert "--force" in message


@pytest.mark.parametrize("what", ["branch elsewhere", "staged only", "hidden only", "files gone"])
def test_init_refuses_a_repository_with_other_content_only_in_git(
    ann: Person, environ: dict[str, str], what: str
) -> None:
    code(ann.root, environ, "master" if what == "branch elsewhere" else "main")
    if what == "branch elsewhere":
        ann.by_git("symbolic-ref", "HEAD", "refs/heads/main")
        for name in ("main.py", "README.org", "docs/notes.org"):
            (ann.root / name).unlink()
    elif what == "staged only":
        ann.by_git("update-ref", "-d", "HEAD")
    elif what == "files gone":
        for name in ("main.py", "README.org"):
            (ann.root / name).unlink()
        shutil.rmtree(ann.root / "docs")
    else:
        ann.by_git("rm", "-r", "-q", ".")
        (ann.root / ".bashrc").write_text("alias l=ls\n")
        ann.by_git("add", ".bashrc")
        ann.by_git("commit", "-q", "-m", "dotfiles")
    refused(lambda: ann("init"), StoreOccupied, ann.root)


def test_a_clone_that_fails_names_the_address_and_leaves_nothing(ann: Person, tmp_path: Path) -> None:
    before = bytes_below(tmp_path)
    with pytest.raises(CloneFailed) as failure:
        ann("clone", url=str(tmp_path / "missing.git"))
    assert str(failure.value).startswith(f"{tmp_path}/missing.git could not be cloned: ")
    assert "cloning-" not in str(failure.value)
    assert {path for path in bytes_below(tmp_path) if "cloning" in path or path == "ann"} == set()
    assert set(before) <= set(bytes_below(tmp_path))


def test_init_in_an_empty_repository_makes_a_knowledge_base(ann: Person, environ: dict[str, str]) -> None:
    ann.root.mkdir()
    plain(ann.root, "init", "-q", environ=environ)
    assert ann("init")["created"] is True
    assert ann("init")["created"] is False


def test_init_by_force_keeps_the_files_that_are_there(ann: Person, environ: dict[str, str]) -> None:
    code(ann.root, environ)
    (ann.root / "README.org").unlink()
    (ann.root / "docs/notes.org").unlink()
    ann.by_git("commit", "-q", "-a", "-m", "no org files")
    ann("init", force=True)
    assert (ann.root / "main.py").read_text() == "print('hi')\n"
    assert "AGENT_CONTRACT.org" in ann.by_git("ls-files")
    assert ann("init")["commit"] == ""  # it is a knowledge base from then on
    ann.remember("Ports")


def test_clone_refuses_a_code_repository(ann: Person, tmp_path: Path, environ: dict[str, str]) -> None:
    remote = code_remote(tmp_path, environ)
    message = refused(lambda: ann("clone", url=str(remote)), RemoteOccupied, remote)
    assert "main.py" in message
    assert "--force" in message
    assert not ann.root.exists()
    assert not [name for name in os.listdir(tmp_path) if "cloning" in name]


def test_clone_refuses_code_on_a_branch_that_is_not_the_default(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    remote = code_remote(tmp_path, environ, "trunk")
    plain(remote, "symbolic-ref", "HEAD", "refs/heads/nothing", environ=environ)
    refused(lambda: ann("clone", url=str(remote)), RemoteOccupied, remote)
    assert not ann.root.exists()


@pytest.mark.parametrize("branch", ["main", "master"])
def test_init_refuses_a_remote_with_code(
    ann: Person, tmp_path: Path, environ: dict[str, str], branch: str
) -> None:
    remote = code_remote(tmp_path, environ, branch)
    message = refused(lambda: ann("init", remote=str(remote)), RemoteOccupied, remote)
    assert "main.py" in message
    assert "--force" in message
    assert not ann.root.exists()
    ann("init")
    refused(lambda: ann("init", remote=str(remote)), RemoteOccupied, remote, ann.root)
    assert ann("status")["remote"] == ""


def test_a_remote_with_code_that_was_not_reached_at_first_gets_nothing(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    remote = tmp_path / "program.git"
    ann("init", remote=str(remote))
    code_remote(tmp_path, environ, "master")
    before = bytes_below(remote)
    ann.remember("Ports")
    pushed = ann("push")
    assert pushed["outcome"] == "rejected"
    assert "main.py" in pushed["problem"]
    assert "main.py" in ann("status")["push_problem"]
    assert bytes_below(remote) == before
    ann("init", force=True)
    assert ann("push")["outcome"] == "pushed"
    assert "refs/heads/master" in plain(remote, "show-ref", environ=environ)


def test_a_code_repository_is_not_touched_by_any_command(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    code(ann.root, environ)
    (ann.root / "docs/more.org").write_text("* More\n")
    for command, more in (
        ("remember", {"text": "a", "title": "b", "summary": "c"}),
        ("query", {"context": "program"}),
        *((command, {}) for command in ("commit", "index", "lint", "status", "doctor", "push", "curate")),
    ):
        message = refused(lambda: ann(command, **more), StoreForeign, ann.root)  # noqa: B023
        assert "main.py" in message
        assert "AI_KB_DIR" in message


def test_a_store_without_a_commit_does_not_take_over_code(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    remote = code_remote(tmp_path, environ)
    ann.root.mkdir()
    ann.by_git("init", "-q", "-b", "main")
    ann.by_git("remote", "add", "origin", str(remote))
    refused(lambda: ann("init"), RemoteOccupied, remote)
    refused(lambda: ann.remember("Ports"), RemoteOccupied, remote)
    assert [path.name for path in ann.root.iterdir()] == [".git"]


def test_a_knowledge_base_without_its_contract_is_still_one(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    ann.root.mkdir()
    ann.by_git("init", "-q", "-b", "main")
    ann.put("mine.org", text(7, title="By hand"))
    ann.by_git("add", "mine.org")
    ann.by_git("commit", "-q", "-m", "a node")
    assert "AGENT_CONTRACT.org" in ann("init")["files"]
    (ann.root / "AGENT_CONTRACT.org").unlink()
    (ann.root / "mine.org").unlink()
    ann("commit")  # its index tells
    assert "AGENT_CONTRACT.org" in ann("init")["files"]
    assert ann.is_sound()


def test_an_empty_remote_and_one_with_a_knowledge_base_are_taken(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    remote = bare(tmp_path, environ)
    ann("init", remote=remote)
    ann.remember("Ports")
    assert ann("push")["outcome"] == "pushed"
    bob, cid = Person(tmp_path, "bob"), Person(tmp_path, "cid")
    assert bob("init", remote=remote)["commit"] == ""
    cid("clone", url=remote)
    assert "Ports" in bob.titles & cid.titles
    message = refused(lambda: cid("clone", url=remote), StoreOccupied, cid.root)
    assert "ai-kb init" in message


def test_a_knowledge_base_on_another_branch_goes_on_there(
    ann: Person, tmp_path: Path, environ: dict[str, str]
) -> None:
    remote = bare(tmp_path, environ)
    ann("init")
    ann.by_git("branch", "-m", "master")
    ann("init", remote=remote)
    ann("push")
    bob, cid = Person(tmp_path, "bob"), Person(tmp_path, "cid")
    bob("init", remote=remote)
    cid("clone", url=remote)
    for person in (bob, cid):
        assert person("status")["branch"] == "master"
        assert person.git.head() == ann.git.head()


def test_a_remote_s_path_counts_from_where_the_person_is(
    ann: Person, tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = bare(tmp_path, environ)
    monkeypatch.chdir(tmp_path)
    ann("init", remote="remote.git")
    assert ann("status")["remote"] == remote


KILLED_AT = [
    "transaction.write_store_file",
    "node.build_index",
    "git.Git.commit",
    "git.Git.set_remote",
    "transaction.store_lock",
]


@pytest.mark.parametrize("where", KILLED_AT)
def test_an_interrupted_init_can_be_repeated(
    ann: Person, tmp_path: Path, environ: dict[str, str], where: str
) -> None:
    """Killed before each step, and in the middle of the files."""
    remote = bare(tmp_path, environ)
    module, _, name = where.partition(".")
    code = f"""
import os, signal, sys
from quaid.kb import {module}
from quaid.__main__ import ai_kb_main
owner = {module}.Git if {name!r}.startswith("Git.") else {module}
name, calls = {name!r}.removeprefix("Git."), []
whole = getattr(owner, name)
def killed(*arguments, **more):
    calls.append(1)
    if len(calls) == (2 if name == "write_store_file" else 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **more)
setattr(owner, name, killed)
sys.argv[1:] = ["init", "--remote", {remote!r}]
sys.exit(ai_kb_main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ann.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    ann("init", remote=remote)
    assert ann.is_sound()
    assert ann("push")["outcome"] == "pushed"


def test_the_recipes_of_the_contract_find_the_same_nodes_as_the_commands(ann: Person) -> None:
    ann("init")
    one = ann.remember("Ports", "The port is 8080.", tags=["network"])["node"]
    two = ann.remember("Firewall", "Opens the port.", links=[one["id"]])["node"]
    ann.put("raw/capture.org", f"[[id:{one['id']}][Ports]]\n")
    contract = (ann.root / "AGENT_CONTRACT.org").read_text()
    recipes = re.findall(r"=(grep .+?)= ", contract)
    assert len(recipes) == 3

    def run(recipe: str) -> list[str]:
        done = subprocess.run(recipe, shell=True, cwd=ann.root, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert run(recipes[0].replace("UUID", one["id"])) == [f"./{two['path']}"]
    assert run(recipes[1].replace("FILE", two["path"])) == [f"[[id:{one['id']}"]
    assert run(recipes[2].replace("WORD", "network")) == [
        f"./{one['path']}:#+filetags: :observation:network:"
    ]

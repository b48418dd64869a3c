"""A store from elsewhere runs nothing on this machine.

Each vector plants a program in a store, or in what the store points at. The control shows that git, called as a
person calls it, runs the program; then every verb of ours is tried and the program must not have run.
"""

import contextlib
import os
import pty
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.kb.stores import add, bare, environ_of, log, plain, write

from quaid.errors import InvalidArgument, QuaidError, StoreDirty, StoreMissing, UnsafeStore
from quaid.kb.git import Git


class Scene:
    """A clone that is ahead, behind and changed, so that every verb has something to do; and a program."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        self.store = tmp_path / "store"
        self.remote = tmp_path / "remote.git"
        self.environ = environ_of(tmp_path)
        self.canary = tmp_path / "canary"
        self.evil = tmp_path / "evil.sh"
        self.evil.write_text(f"#!/bin/sh\n: > '{self.canary}'\nexit 0\n")
        self.evil.chmod(0o755)

    def config(self, *pairs: tuple[str, str]) -> None:
        for key, value in pairs:
            plain(self.store, "config", "--add", "--file", ".git/config", key, value, environ=self.environ)

    def url(self, url: str) -> None:
        plain(self.store, "config", "--file", ".git/config", "remote.origin.url", url, environ=self.environ)

    def attributes(self, line: str) -> None:
        """In the tree, and in the history of the remote, where a clone finds them."""
        (self.store / ".gitattributes").write_text(line + "\n")
        other = self.path / "other"
        plain(self.path, "clone", "-q", str(self.remote), str(other), environ=self.environ)
        (other / ".gitattributes").write_text(line + "\n")
        for step in (("add", "."), ("commit", "-qm", "attributes"), ("push", "-q")):
            plain(other, *step, environ=self.environ)

    def globally(self, text: str) -> None:
        (self.path / "home" / ".gitconfig").write_text(text)

    def by_hand(self, *arguments: str, folder: Path | None = None) -> None:
        plain(folder or self.store, *arguments, environ=self.environ, status=None)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ready")
    environ = environ_of(path)
    remote = bare(path, environ)
    one = Git(str(path / "one"), environ)
    one.init()
    one.set_remote(remote)
    add(one, "first.org", "first\n")
    one.push()
    Git.clone(remote, str(path / "store"), environ)
    add(one, "second.org", "second\n")
    one.push()
    return path


@pytest.fixture
def scene(ready: Path, tmp_path: Path) -> Scene:
    for name in ("store", "remote.git"):
        shutil.copytree(ready / name, tmp_path / name, symlinks=True)
    scene = Scene(tmp_path)
    scene.url(str(scene.remote))
    os.unlink(scene.store / ".git" / "info" / "attributes")  # as if a person had cloned it
    (scene.store / "first.org").write_text("changed\n")
    return scene


# Verbs


def fast_forward(git: Git) -> None:
    git.fetch(60)
    git.restore(["first.org", ".gitattributes"])
    git.fast_forward()


def commit(git: Git) -> None:
    write(git, "new.org", "new\n")
    git.commit(["first.org", "new.org"], "new")


def push(git: Git) -> None:
    fast_forward(git)
    commit(git)
    git.push(60)


VERBS: dict[str, Callable[[Git], object]] = {
    "status": Git.state,
    "count": lambda git: git.count_commits(10),
    "content": lambda git: git.content("first.org"),
    "fetch": lambda git: git.fetch(60),
    "fast_forward": fast_forward,
    "commit": commit,
    "restore": lambda git: git.restore(["first.org", "new.org"]),
    "push": push,
    "tidy": Git.tidy,
}


# Vectors


class Vector(NamedTuple):
    plant: Callable[[Scene], None]
    control: Callable[[Scene], None]
    refused: bool = True
    may_stop: tuple[type[QuaidError], ...] = ()


HOOKS = (
    "pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-merge pre-push pre-rebase "
    "post-index-change reference-transaction pre-auto-gc fsmonitor-watchman pre-receive update "
    "post-receive post-update"
).split()


def hooks(folder: Path, evil: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(evil, folder / name)


def plant_hooks_path(scene: Scene) -> None:
    hooks(scene.store / "hooks", scene.evil)
    scene.config(("core.hooksPath", "hooks"))


def plant_hooks_of_remote(scene: Scene) -> None:
    hooks(scene.remote / "hooks", scene.evil)
    plain(scene.remote, "config", "core.hooksPath", str(scene.remote / "hooks"), environ=scene.environ)


def plant_ssh(scene: Scene) -> None:
    scene.url("ssh://nowhere.invalid/kb.git")
    scene.config(("core.sshCommand", str(scene.evil)))


def plant_filter(scene: Scene) -> None:
    scene.attributes("*.org filter=evil")
    scene.config(*((f"filter.evil.{key}", str(scene.evil)) for key in ("clean", "smudge", "process")))


def plant_filter_of_the_user(scene: Scene) -> None:
    """The program is configured by the user, but the store selects it."""
    scene.attributes("[attr]nice filter=theirs diff=theirs merge=theirs\n*.org nice")
    programs = f"clean = {scene.evil}\nsmudge = {scene.evil}\n"
    differ = f'[diff "theirs"]\ntextconv = {scene.evil}\ncommand = {scene.evil}\n'
    scene.globally(f'[filter "theirs"]\n{programs}{differ}[merge "theirs"]\ndriver = {scene.evil}\n')


def plant_textconv(scene: Scene) -> None:
    scene.attributes("*.org diff=evil")
    scene.config(("diff.evil.textconv", str(scene.evil)))


def plant_gpg(scene: Scene) -> None:
    scene.config(("commit.gpgSign", "true"), ("gpg.program", str(scene.evil)), ("log.showSignature", "true"))


def plant_pager(scene: Scene) -> None:
    scene.config(("core.pager", str(scene.evil)), ("pager.status", str(scene.evil)))


def run_pager(scene: Scene) -> None:
    ours, theirs = pty.openpty()
    environ = scene.environ | {"TERM": "xterm"}
    subprocess.run(["git", "log"], cwd=scene.store, env=environ, stdout=theirs, stderr=theirs, timeout=60)
    os.close(theirs)
    os.close(ours)


def plant_include(scene: Scene) -> None:
    (scene.store / "harmless.inc").write_text(f"[core]\nfsmonitor = {scene.evil}\n")
    scene.config(("include.path", "../harmless.inc"))


def plant_include_if(scene: Scene) -> None:
    (scene.store / "harmless.inc").write_text(f"[core]\nfsmonitor = {scene.evil}\n")
    scene.config(("includeIf.onbranch:main.path", "../harmless.inc"))


def plant_remote_inside(scene: Scene) -> None:
    inner = scene.store / "inner.git"
    shutil.copytree(scene.remote, inner)
    hooks(inner / "hooks", scene.evil)
    scene.url("./inner.git")


def push_by_hand(scene: Scene) -> None:
    for step in (
        ("checkout", "-q", "."),
        ("pull", "-q"),
        ("commit", "-q", "--allow-empty", "-m", "x"),
        ("push",),
    ):
        scene.by_hand(*step)


def plant_repository_inside(scene: Scene) -> None:
    inner = scene.store / "inner"
    plain(scene.store, "init", "-q", str(inner), environ=scene.environ)
    plain(inner, "commit", "-q", "--allow-empty", "-m", "x", environ=scene.environ)
    plain(inner, "config", "core.fsmonitor", str(scene.evil), environ=scene.environ)
    plain(scene.store, "-c", "advice.addEmbeddedRepo=false", "add", "inner", environ=scene.environ)
    scene.canary.unlink(missing_ok=True)


def plant_git_file(scene: Scene) -> None:
    shutil.move(scene.store / ".git", scene.path / "elsewhere")
    (scene.store / ".git").write_text(f"gitdir: {scene.path}/elsewhere\n")
    config = scene.path / "elsewhere" / "config"
    plain(
        scene.path, "config", "--file", str(config), "core.fsmonitor", str(scene.evil), environ=scene.environ
    )


def plant_common_folder(scene: Scene) -> None:
    shutil.copytree(scene.store / ".git", scene.path / "elsewhere")
    config = scene.path / "elsewhere" / "config"
    plain(
        scene.path, "config", "--file", str(config), "core.fsmonitor", str(scene.evil), environ=scene.environ
    )
    (scene.store / ".git" / "commondir").write_text(f"{scene.path}/elsewhere\n")


def plant_ext(scene: Scene) -> None:
    scene.url(f"ext::{scene.evil}")
    scene.config(("protocol.ext.allow", "always"))


def plant_ext_by_another_name(scene: Scene) -> None:
    scene.config(("protocol.ext.allow", "always"), (f"url.ext::{scene.evil}.insteadOf", str(scene.remote)))


def config_of(*keys: str) -> Callable[[Scene], None]:
    return lambda scene: scene.config(*((key, str(scene.evil)) for key in keys))


def calls(*arguments: str) -> Callable[[Scene], None]:
    return lambda scene: scene.by_hand(*arguments)


commits = calls("commit", "-qam", "x")

VECTORS: dict[str, Vector] = {
    "hooks": Vector(lambda scene: hooks(scene.store / ".git" / "hooks", scene.evil), commits, refused=False),
    "hooks path": Vector(plant_hooks_path, commits),
    "hooks of a remote on this disk": Vector(plant_hooks_of_remote, push_by_hand, refused=False),
    "fsmonitor": Vector(config_of("core.fsmonitor"), calls("status")),
    "sshCommand": Vector(plant_ssh, calls("fetch")),
    "filters": Vector(plant_filter, calls("add", "first.org")),
    "filters of the user": Vector(plant_filter_of_the_user, calls("add", "first.org"), refused=False),
    "textconv": Vector(plant_textconv, calls("diff")),
    "textconv of the user": Vector(plant_filter_of_the_user, calls("diff"), refused=False),
    "external diff": Vector(config_of("diff.external"), calls("diff")),
    "external diff of the user": Vector(
        lambda scene: scene.globally(f"[diff]\nexternal = {scene.evil}\n"), calls("diff"), refused=False
    ),
    "gpg program": Vector(plant_gpg, commits),
    "pager": Vector(plant_pager, run_pager),
    "editor": Vector(config_of("core.editor", "sequence.editor"), calls("commit", "-a")),
    "alias": Vector(lambda scene: scene.config(("alias.st", f"!{scene.evil}")), calls("st")),
    "include": Vector(plant_include, calls("status")),
    "include on a condition": Vector(plant_include_if, calls("status")),
    "bare repository inside as remote": Vector(plant_remote_inside, push_by_hand),
    "repository inside": Vector(plant_repository_inside, calls("status"), False, (StoreDirty,)),
    "git folder elsewhere": Vector(plant_git_file, calls("status")),
    "settings elsewhere": Vector(plant_common_folder, calls("status")),
    "ext": Vector(plant_ext, calls("fetch")),
    "ext by another name": Vector(plant_ext_by_another_name, calls("fetch")),
    "upload-pack": Vector(config_of("remote.origin.uploadpack"), calls("fetch")),
    "receive-pack": Vector(config_of("remote.origin.receivepack"), push_by_hand),
}


@pytest.mark.parametrize("name", VECTORS)
def test_git_called_plainly_runs_the_program(scene: Scene, name: str) -> None:
    VECTORS[name].plant(scene)
    scene.canary.unlink(missing_ok=True)
    VECTORS[name].control(scene)
    assert scene.canary.exists()


@pytest.mark.parametrize("name", [name for name, vector in VECTORS.items() if vector.refused])
def test_every_command_refuses_an_unsafe_store(scene: Scene, name: str) -> None:
    VECTORS[name].plant(scene)
    scene.canary.unlink(missing_ok=True)
    for verb in VERBS.values():
        with pytest.raises(UnsafeStore, match="Clone it afresh"):
            verb(Git(str(scene.store), scene.environ))
    assert not scene.canary.exists()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", [name for name, vector in VECTORS.items() if not vector.refused])
def test_no_command_runs_a_program_from_the_repository(scene: Scene, name: str, verb: str) -> None:
    VECTORS[name].plant(scene)
    scene.canary.unlink(missing_ok=True)
    with contextlib.suppress(*VECTORS[name].may_stop):
        VERBS[verb](Git(str(scene.store), scene.environ))
    assert not scene.canary.exists()


@pytest.mark.parametrize("name", VECTORS)
def test_no_clone_runs_a_program_from_the_repository(scene: Scene, name: str) -> None:
    VECTORS[name].plant(scene)
    scene.canary.unlink(missing_ok=True)
    for number, source in enumerate((scene.store, scene.remote)):
        with contextlib.suppress(QuaidError):
            git = Git.clone(str(source), str(scene.path / f"clone{number}"), scene.environ)
            assert git.state().is_clean
            write(git, "first.org", "again\n")
            assert git.commit(["first.org"], "again") == log(git)[0]
            git.push(60)
    assert (scene.path / "clone1" / "second.org").read_text() == "second\n"
    assert not scene.canary.exists()


# Those that need a scene of their own


class Locked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="kb"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def locked_site() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Locked)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/kb.git"
    server.shutdown()
    server.server_close()


def test_a_credential_helper_of_the_store_is_not_asked(scene: Scene, locked_site: str) -> None:
    scene.url(locked_site)
    scene.config(("credential.helper", f"!{scene.evil}"))
    scene.by_hand("fetch")
    assert scene.canary.exists()
    scene.canary.unlink()
    for verb in VERBS.values():
        with pytest.raises(UnsafeStore, match=r"credential\.helper"):
            verb(Git(str(scene.store), scene.environ))
    assert not scene.canary.exists()


def test_only_the_users_credential_helper_is_asked(scene: Scene, locked_site: str) -> None:
    scene.url(locked_site)
    git = Git(
        str(scene.store), scene.environ | {"GIT_ASKPASS": str(scene.evil), "SSH_ASKPASS": str(scene.evil)}
    )
    fetched = git.fetch(60)
    assert fetched.outcome != "reached"
    assert "terminal prompts disabled" in fetched.problem
    assert not scene.canary.exists()
    scene.globally(f"[credential]\nhelper = !{scene.evil}\n")
    Git(str(scene.store), scene.environ).fetch(60)
    assert scene.canary.exists()


def test_bare_repository_in_the_tree_is_not_a_store(scene: Scene) -> None:
    inner = scene.store / "inner"
    shutil.copytree(scene.remote, inner)
    for key, value in (
        ("core.bare", "false"),
        ("core.worktree", str(inner)),
        ("core.fsmonitor", str(scene.evil)),
    ):
        plain(scene.path, "config", "--file", str(inner / "config"), key, value, environ=scene.environ)
    scene.by_hand("status", folder=inner)
    assert scene.canary.exists()
    scene.canary.unlink()
    for verb in VERBS.values():
        with pytest.raises(StoreMissing):
            verb(Git(str(inner), scene.environ))
    for verb in VERBS.values():
        verb(Git(str(scene.store), scene.environ))
    assert not scene.canary.exists()


def test_argument_that_begins_with_a_dash_is_not_an_option(scene: Scene) -> None:
    option = f"--upload-pack={scene.evil}"
    scene.by_hand("fetch", option, str(scene.remote))
    assert scene.canary.exists()
    scene.canary.unlink()
    git = Git(str(scene.store), scene.environ)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: Git.clone(option, str(scene.path / "clone"), scene.environ),
        lambda: git.set_remote(option),
        lambda: git.set_remote(f"ssh://-oProxyCommand={scene.evil}/kb"),
        lambda: git.set_remote(f"ann@-oProxyCommand={scene.evil}:kb"),
        lambda: git.content("first.org", option),
    )
    for attempt in attempts:
        with pytest.raises(InvalidArgument):
            attempt()
    git.commit([option], "a file may be called so; it is still no option")
    git.restore([option])
    assert not scene.canary.exists()


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c id",
        "fd::17",
        "git://example.org/kb",
        "ftp://example.org/kb",
        "",
        "a\nb",
        "persistent-https://x",
    ],
)
def test_only_plain_addresses_are_taken(scene: Scene, url: str) -> None:
    with pytest.raises(InvalidArgument):
        Git(str(scene.store), scene.environ).set_remote(url)


@pytest.mark.parametrize(
    "url",
    [
        "git@example.org:kb.git",
        "ssh://ann@example.org:22/kb",
        "https://example.org/kb",
        "../kb.git",
        "example.org:kb.git",
    ],
)
def test_the_usual_addresses_are(scene: Scene, url: str) -> None:
    git = Git(str(scene.store), scene.environ)
    git.set_remote(url)
    assert git.remote() == url
    assert git.state().branch == "main"


def test_the_callers_variables_of_git_have_no_effect(scene: Scene) -> None:
    elsewhere = scene.path / "elsewhere"
    plain(scene.path, "init", "-q", str(elsewhere), environ=scene.environ)
    hostile = {
        "GIT_DIR": str(elsewhere / ".git"),
        "GIT_WORK_TREE": str(elsewhere),
        "GIT_INDEX_FILE": str(elsewhere / "index"),
        "GIT_OBJECT_DIRECTORY": str(elsewhere / "objects"),
        "GIT_EXTERNAL_DIFF": str(scene.evil),
        "GIT_SSH": str(scene.evil),
        "GIT_SSH_COMMAND": str(scene.evil),
        "GIT_PROXY_COMMAND": str(scene.evil),
        "GIT_EXEC_PATH": str(scene.path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(scene.evil),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{scene.evil}'",
    }
    git = Git(str(scene.store), scene.environ | hostile)
    for verb in VERBS.values():
        verb(git)
    assert log(git, "%s")[0] == "new"
    assert not scene.canary.exists()
    assert not (elsewhere / "index").exists()


def test_git_executable_inside_the_store_is_not_used(scene: Scene) -> None:
    for name in ("git", "ssh"):
        shutil.copy(scene.evil, scene.store / name)
    git = Git(str(scene.store), scene.environ | {"PATH": f".:{scene.environ['PATH']}"})
    for verb in VERBS.values():
        verb(git)
    assert not scene.canary.exists()


def test_settings_that_become_unsafe_while_we_work_are_seen(scene: Scene) -> None:
    git = Git(str(scene.store), scene.environ)
    git.state()
    scene.config(("core.fsmonitor", str(scene.evil)))
    with pytest.raises(UnsafeStore, match=r"core\.fsmonitor"):
        git.state()
    assert not scene.canary.exists()


def test_settings_that_git_writes_by_itself_are_fine(scene: Scene) -> None:
    scene.by_hand("config", "user.name", "Ann")
    scene.by_hand("switch", "-q", "-c", "topic.v2")
    scene.by_hand("branch", "--set-upstream-to=origin/main")
    scene.by_hand("remote", "add", "backup", str(scene.path / "backup.git"))
    assert Git(str(scene.store), scene.environ).state().branch == "topic.v2"


def test_a_link_in_the_git_folder_is_not_written_through(scene: Scene) -> None:
    outside = scene.path / "outside"
    outside.mkdir()
    os.symlink(outside, scene.store / ".git" / "ai-kb")
    git = Git(str(scene.store), scene.environ)
    with pytest.raises(UnsafeStore), git.changing(["first.org"]):
        pass
    assert os.listdir(outside) == []

"""What doctor finds out about a store, its remote and this machine: real repositories, servers, timers, Emacs."""

import functools
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kb.nodes import text
from tests.kb.stores import bare
from tests.kb.users import Person

from quaid.app import Brain
from quaid.config import Settings
from quaid.kb import health, setup
from quaid.operations import dispatch


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person("init")
    return person


def checks(person: Person) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in person("doctor")["checks"]}


def with_remote(person: Person, tmp_path: Path) -> str:
    remote = bare(tmp_path, person.environ)
    person("init", remote=remote)
    person("push")
    return remote


# Merges and rebases


def conflicting(ann: Person) -> None:
    """Two branches that say different things in one line."""
    ann.remember("Ports", "The port is 8080.")
    path = next(ann.root.glob("*-ports.org"))
    for branch, port in (("topic", "9090"), ("main", "7070")):
        ann.by_git("switch", "-q", *(("-c", branch) if branch == "topic" else (branch,)))
        path.write_text(path.read_text().replace("8080", port))
        ann.by_git("commit", "-qam", f"to {port}")


@pytest.mark.parametrize("act", ["merge", "rebase"])
def test_a_merge_or_rebase_under_way_is_named_with_the_ways_out(ann: Person, act: str) -> None:
    conflicting(ann)
    with pytest.raises(AssertionError):  # git stops at the conflict
        ann.by_git(act, "topic")
    tree = checks(ann)["tree"]
    assert not tree["well"]
    assert tree["told"].startswith(f"a {act} was begun and not finished")
    assert "1 file in conflict" in tree["told"]
    assert f"{act} --continue" in tree["remedy"]
    assert f"git -C {ann.root} {act} --abort" in tree["remedy"]
    assert "-ports.org" in tree["remedy"]
    stood = ann("status")
    assert stood["unfinished"] == act
    assert "not finished" in stood["nudge"]
    ann.by_git(act, "--abort")
    assert checks(ann)["tree"]["well"]
    assert ann("status")["unfinished"] == ""


def diverged(ann: Person, tmp_path: Path) -> Person:
    """Two people who added different lines to one node; the second has not pushed."""
    remote = with_remote(ann, tmp_path)
    ann.remember("Ports", "The port is 8080.")
    ann("push")
    bob = Person(tmp_path, "bob")
    bob("clone", url=remote)
    for person, line in ((ann, "Open it in the firewall."), (bob, "Close it at night.")):
        person("remember", text=line, add_to="Ports")
    ann("push")
    assert bob("push")["outcome"] == "rejected"
    return bob


def test_the_way_out_of_a_divergence_is_one_that_git_takes(ann: Person, tmp_path: Path) -> None:
    bob = diverged(ann, tmp_path)
    check = checks(bob)["push"]
    assert check["told"] == "diverged: 1 commit only here, 1 only there"
    assert check["remedy"].startswith("Git does not know you yet: `git config --global user.name NAME`")
    assert f"`git -C {bob.root} pull --rebase`" in check["remedy"]
    (bob.home / ".gitconfig").write_text("[user]\nname = Bob\nemail = bob@example.org\n")
    assert checks(bob)["push"]["remedy"].startswith(f"`git -C {bob.root} pull --rebase`")


def test_commits_ahead_are_not_counted_during_a_rebase(ann: Person, tmp_path: Path) -> None:
    bob = diverged(ann, tmp_path)
    with pytest.raises(AssertionError):  # git stops at the conflict
        bob.by_git("pull", "--rebase")
    stood = bob("status")
    assert (stood["ahead"], stood["diverged"], stood["push_problem"]) == (0, False, "")
    assert checks(bob)["push"]["told"] == "cannot be known while no branch is checked out"
    assert bob("push")["problem"] == "a rebase is not finished"
    bob.by_git("rebase", "--abort")
    assert bob("status")["diverged"]


# Who can read the remote


def test_privacy_check_is_omitted_without_a_remote(ann: Person) -> None:
    assert "private" not in checks(ann)


def test_a_folder_that_others_can_read_is_not_private(ann: Person, tmp_path: Path) -> None:
    remote = with_remote(ann, tmp_path)
    check = checks(ann)["private"]
    assert check["well"]  # below a folder that is closed to others
    place = tmp_path
    closed = []
    while not place.stat().st_mode & 0o001 or place == tmp_path:
        closed.append((place, place.stat().st_mode))
        place.chmod(place.stat().st_mode | 0o001)
        place = place.parent
    try:
        os.chmod(remote, 0o755)
        check = checks(ann)["private"]
        assert not check["well"]
        assert "every user of this machine" in check["told"]
        assert check["remedy"] == f"`chmod -R o-rwx {remote}`"
        subprocess.run(["chmod", "-R", "o-rwx", remote], check=True)
        assert checks(ann)["private"]["well"]
    finally:
        for item, mode in closed:
            item.chmod(mode)


def test_repository_that_is_served_or_mirrored_is_reported(ann: Person, tmp_path: Path) -> None:
    remote = with_remote(ann, tmp_path)
    Path(remote, "git-daemon-export-ok").touch()
    assert "git daemon" in checks(ann)["private"]["told"]
    assert not checks(ann)["private"]["well"]
    Path(remote, "git-daemon-export-ok").unlink()
    url = "https://ann:secret@example.org/mirror.git"
    subprocess.run(["git", "-C", remote, "remote", "add", "mirror", url], check=True)
    output = checks(ann)["private"]["told"]
    assert "example.org/mirror.git" in output
    assert "secret" not in output
    assert "cannot be known" in output


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[bool]]]:
    """A web server with the folder, and whether it asks for a password."""
    locked = [False]

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if locked[0] and not self.headers.get("Authorization"):
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="ours"')
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    serving = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path))
    )
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"127.0.0.1:{serving.server_port}", locked
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_server_is_queried_without_credentials(
    ann: Person, tmp_path: Path, server: tuple[str, list[bool]]
) -> None:
    host, locked = server
    remote = with_remote(ann, tmp_path)
    subprocess.run(["git", "-C", remote, "update-server-info"], check=True)
    ann.by_git("remote", "set-url", "origin", f"http://ann:secret@{host}/remote.git")
    locked[0] = True
    (ann.home / ".netrc").write_text(f"machine {host.partition(':')[0]} login ann password secret\n")
    result = checks(ann)
    assert result["remote"]["well"], result["remote"]["told"]
    assert (result["private"]["well"], result["private"]["told"]) == (
        True,
        "it shows nothing without a password",
    )
    locked[0] = False
    result = checks(ann)
    assert (result["private"]["well"], result["private"]["told"]) == (False, "it answers without a password")


@pytest.mark.parametrize(
    ("url", "outcome", "message"),
    [
        ("git@example.org:ai-kb.git", (True, True), "cannot be known behind ssh"),
        ("ssh://git@example.org/ai-kb.git", (True, True), "cannot be known behind ssh"),
        ("http://example.org/ai-kb.git", (False, False), "in the clear"),
        ("https://127.0.0.1:1/ai-kb.git", (True, True), "cannot be known"),
    ],
)
def test_privacy_of_a_remote_that_shows_nothing(
    tmp_path: Path, url: str, outcome: tuple[bool, bool], message: str
) -> None:
    check = health.check_privacy(url, str(tmp_path), {"PATH": os.environ["PATH"]}, 10)
    assert (check.well, check.missing) == outcome
    assert message in check.told


# The timer


def systemctl(person: Person, tmp_path: Path, answer: str, status: int) -> None:
    """A machine whose systemd answers like this."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    script = tools / "systemctl"
    where = ">&2" if answer.startswith("Failed") else ""
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *is-active*) echo "{answer}" {where}; exit {status};; esac\nexit 0\n'
    )
    script.chmod(0o755)
    person.environ["PATH"] = f"{tools}:{person.environ['PATH']}"


@pytest.mark.parametrize(
    ("answer", "status", "well", "told"),
    [
        ("active", 0, True, "active"),
        ("inactive", 3, False, "inactive"),
        ("failed", 3, False, "failed"),
        ("Failed to connect to bus: No medium found", 1, True, "cannot be known: Failed to connect"),
    ],
)
def test_the_timer_is_asked_whether_it_runs(
    ann: Person, tmp_path: Path, answer: str, status: int, well: bool, told: str
) -> None:
    assert checks(ann)["timer"]["told"] == "not needed without a remote"
    with_remote(ann, tmp_path)
    systemctl(ann, tmp_path, answer, status)
    assert "install-timer" in checks(ann)["timer"]["told"]
    ann("install-timer")
    check = checks(ann)["timer"]
    assert (check["well"], told in check["told"]) == (well, True), check
    if not well:
        assert check["remedy"] == "`systemctl --user enable --now ai-kb-push.timer`"


def test_timer_of_another_store_is_reported(ann: Person, tmp_path: Path) -> None:
    with_remote(ann, tmp_path)
    systemctl(ann, tmp_path, "active", 0)
    ann("install-timer")
    bob = Person(tmp_path, "bob")
    bob("init", remote=bare(bob.home, bob.environ))
    bob.environ |= {"HOME": str(ann.home), "PATH": ann.environ["PATH"]}
    bob.home = ann.home
    check = checks(bob)["timer"]
    assert not check["well"]
    assert f"does not push {bob.root}" in check["told"]


def test_a_line_of_cron_counts(ann: Person, tmp_path: Path) -> None:
    with_remote(ann, tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "crontab").write_text(f"#!/bin/sh\necho '*/15 * * * * env AI_KB_DIR={ann.root} quaid kb push'\n")
    (tools / "crontab").chmod(0o755)
    ann.environ["PATH"] = f"{tools}:{ann.environ['PATH']}"
    assert checks(ann)["timer"]["told"] == "your crontab, active"


# Emacs


@pytest.fixture
def org_roam(tmp_path: Path) -> None:
    if shutil.which("emacs") is None:
        pytest.skip("Emacs is not installed")
    (tmp_path / "empty").mkdir()
    done = setup.sync_org_roam(str(tmp_path / "empty"), dict(os.environ), database=str(tmp_path / "probe.db"))
    if done.state == "no org-roam":
        pytest.skip("org-roam is not installed for Emacs")


@pytest.mark.usefixtures("org_roam")
def test_org_roam_index_is_built_in_a_temporary_database(ann: Person) -> None:
    ann.environ["PATH"] = os.environ["PATH"]
    assert checks(ann)["org-roam"]["told"] == "its index can be built"
    assert not (ann.root / ".git/ai-kb" / setup.ORG_ROAM_DATABASE).exists()
    assert ann("sync")["state"] == "synced"
    assert "that of the nodes" in checks(ann)["org-roam"]["told"]
    ann.put("twin.org", text(1).replace(text(1).split(":ID: ")[1][:36], _first_id(ann)))
    check = checks(ann)["org-roam"]
    assert not check["well"]
    assert "cannot be built" in check["told"]


def _first_id(ann: Person) -> str:
    first = next(ann.root.glob("*-how-this-knowledge-base-is-used.org")).read_text()
    return first.partition(":ID:")[2].split()[0]


@pytest.mark.usefixtures("org_roam")
def test_emacs_without_org_roam_is_accepted(ann: Person, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "emacs").write_text(f'#!/bin/sh\nexec {shutil.which("emacs")} -Q "$@"\n')
    (tools / "emacs").chmod(0o755)
    ann.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
    check = checks(ann)["org-roam"]
    assert check["well"], check
    assert "only browsing" in check["told"]


def test_emacs_that_fails_is_reported(ann: Person, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "emacs").write_text("#!/bin/sh\necho 'Symbol’s value as variable is void: x' >&2\nexit 255\n")
    (tools / "emacs").chmod(0o755)
    ann.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
    check = checks(ann)["org-roam"]
    assert not check["well"]
    assert "is void: x" in check["told"]
    assert ann("sync")["state"] == "failed"


# Adapters


def connect(person: Person, *, kb: bool) -> None:
    settings = Settings(
        db_path=str(person.home / "memory.db"),
        home=str(person.home),
        cwd=str(person.home),
        environ=person.environ,
    )
    with Brain(settings) as brain:
        dispatch.call(
            brain,
            dispatch.find_command("connect"),
            {"client": "claude-code", "kb": kb},
            "owner",
        )


def adapter(person: Person) -> dict[str, Any]:
    return checks(person)["adapter"]


def test_the_adapter_of_a_connected_client_is_looked_at(ann: Person) -> None:
    assert adapter(ann)["told"].startswith("none; `quaid connect claude-code --kb`")
    connect(ann, kb=False)
    assert adapter(ann)["told"].startswith("none")
    connect(ann, kb=True)
    home = ann.home.parent  # where the settings of these tests say that people live
    rule = home / ".claude/rules/ai-kb.md"
    assert (adapter(ann)["well"], adapter(ann)["told"]) == (True, f"Claude Code: {rule}")
    assert f'"id:UUID" {str(ann.root).replace(str(home), "~")}' in rule.read_text()
    rule.write_text(rule.read_text().replace("Ask before acting", "Ask whenever you like"))
    assert not adapter(ann)["well"]
    assert "the rule is outdated" in adapter(ann)["told"]
    rule.unlink()
    assert "not the rule" in adapter(ann)["told"]
    connect(ann, kb=True)
    assert adapter(ann)["well"]
    settings = home / ".claude.json"
    settings.write_text(settings.read_text().replace('"command": "', '"command": "/gone'))
    assert "is missing" in adapter(ann)["told"]
    assert adapter(ann)["remedy"] == "`quaid connect claude-code --kb` writes it"

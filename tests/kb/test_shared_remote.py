"""Two users share a remote on the disk, which may be missing or ahead."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.kb.stores import bare, environ_of, wait_for_orphans
from tests.kb.users import Person

from quaid.errors import GitFailed, StoreDirty, StoreDiverged
from quaid.kb import repository


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return bare(tmp_path, environ_of(tmp_path))


@pytest.fixture
def ann(tmp_path: Path, remote: str) -> Person:
    person = Person(tmp_path)
    person("init", remote=remote)
    person("push")
    return person


@pytest.fixture
def bob(tmp_path: Path, ann: Person, remote: str) -> Person:
    person = Person(tmp_path, "bob")
    person("clone", url=remote)
    return person


def nudge(person: Person) -> str:
    return str(person("status")["nudge"])


def well(person: Person) -> dict[str, bool]:
    return {check["name"]: check["well"] for check in person("doctor")["checks"]}


def test_a_write_fast_forwards_to_the_remote_first(ann: Person, bob: Person) -> None:
    ann.remember("Ports", "The port is 8080.")
    assert ann("status")["ahead"] == 1
    assert "1 commit" in nudge(ann)
    assert ann("push")["outcome"] == "pushed"
    assert ann("status")["ahead"] == 0
    bob.remember("Firewall", "Opens the port.", links=["Ports"])
    assert bob.titles == ann.titles | {"Firewall"}
    assert bob.is_sound()
    assert bob("status")["behind"] == 0
    bob("push")
    ann.remember("Cables", "Are blue.")
    assert ann.titles == bob.titles | {"Cables"}
    assert ann("push")["outcome"] == "pushed"


def test_concurrent_writes_of_the_same_node_diverge_without_loss(ann: Person, bob: Person) -> None:
    ann.remember("Ports", "The port is 8080.")
    mine = bob.remember("Cables", "Are blue.")["commit"]
    assert ann("push")["outcome"] == "pushed"
    pushed = bob("push")
    assert pushed["outcome"] == "rejected"
    assert bob.git.head() == mine
    stood = bob("status")
    assert (stood["diverged"], stood["ahead"], stood["behind"]) == (True, 1, 1)
    assert "diverged" in stood["nudge"]
    checks = {check["name"]: check for check in bob("doctor")["checks"]}
    assert not checks["push"]["well"]
    assert "pull --rebase" in checks["push"]["remedy"]
    before = bob.everything()
    with pytest.raises(StoreDiverged):
        bob.remember("Switches", "Are loud.")
    assert bob.everything() == before
    assert "Cables" in {match["title"] for match in bob("query", context="cables")["matches"]}
    # The remedy of doctor: both changed the index, which does not conflict and is regenerated.
    bob.by_git("pull", "-q", "--rebase")
    bob("index")
    assert bob("push")["outcome"] == "pushed"
    assert not bob("status")["diverged"]
    assert bob.is_sound()
    ann.remember("Racks", "Are full.")
    assert ann.titles == bob.titles | {"Racks"}


def test_local_changes_that_block_a_fast_forward_are_reported(ann: Person, bob: Person) -> None:
    path = ann.remember("Ports", "The port is 8080.")["node"]["path"]
    ann("push")
    bob.put(path, "mine\n")  # in the place of a file that is about to come
    before = bob.everything()
    with pytest.raises(StoreDirty):
        bob("commit")
    assert bob.everything() == before


def test_unreachable_remote_is_recorded_without_an_error(ann: Person, remote: str, tmp_path: Path) -> None:
    os.rename(remote, tmp_path / "away")
    made = ann.remember("Ports", "The port is 8080.")
    assert made["commit"] == ann.git.head()
    assert made["offline"]
    ann.remember("Cables", "Are blue.")
    noted = repository.read_state(str(ann.root)).fetch
    assert noted is not None
    assert noted.outcome == "unreachable"
    assert ann("push")["outcome"] == "unreachable"
    stood = ann("status")
    assert stood["push_problem"]
    assert "2 commits not pushed" in stood["nudge"]
    assert not well(ann)["push"]
    assert not well(ann)["remote"]
    os.rename(tmp_path / "away", remote)
    assert ann("push")["outcome"] == "pushed"
    assert nudge(ann) == ""
    assert all(well(ann).values())
    assert ann.is_sound()


def test_a_remote_that_refuses_is_noted(ann: Person, remote: str) -> None:
    ann.remember("Ports", "The port is 8080.")
    (Path(remote) / "refs/heads/main.lock").touch()  # as a push that died there leaves it
    assert ann("push")["outcome"] in ("rejected", "unreachable")
    assert ann("status")["push_problem"]
    (Path(remote) / "refs/heads/main.lock").unlink()
    assert ann("push")["outcome"] == "pushed"
    assert ann("status")["push_problem"] == ""


def test_a_killed_push_loses_nothing(ann: Person, remote: str) -> None:
    for number, name in enumerate(("Ports", "Cables", "Racks", "Lamps", "Doors")):
        ann.remember(name, f"All about {name}.", force=True)
        process = ann.start("push", cold=True)
        time.sleep(0.05 + 0.06 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert ann.by_git("status", "--porcelain") == ""
    wait_for_orphans(ann.root.parent)
    assert ann("push")["outcome"] in ("pushed", "nothing")
    assert ann("status")["ahead"] == 0
    assert ann.is_sound()
    assert ann.by_git("rev-parse", "HEAD") == ann.by_git("--git-dir", remote, "rev-parse", "main")


def test_a_clone_of_a_remote_that_is_away_leaves_nothing(tmp_path: Path) -> None:
    person = Person(tmp_path, "bob")
    with pytest.raises(GitFailed):
        person("clone", url=str(tmp_path / "nowhere.git"))
    assert not person.root.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["home-bob"]


def test_eight_simultaneous_writers_take_turns(ann: Person) -> None:
    names = ("Ports", "Cables", "Racks", "Lamps", "Doors", "Wheels", "Boats", "Trees")
    begun = [
        ann.start("remember", f"All about {name} {round}.", "--force", *titled(f"{name} {round}"))
        for round in ("alpha", "beta")
        for name in names
    ]
    for process in begun:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.startswith("Wrote")
    assert len(ann.titles) == 1 + len(begun)
    assert ann.by_git("log", "--format=%s").count("remember: ") == len(begun)
    assert all(len(line.split()) == 1 for line in ann.by_git("log", "--format=%P").splitlines()[:-1])
    assert ann.is_sound()


def titled(name: str) -> tuple[str, ...]:
    return ("--title", name, "--summary", f"What is known of {name}")


def test_a_new_store_takes_over_the_commits_of_its_remote(tmp_path: Path) -> None:
    ann, bea = Person(tmp_path), Person(tmp_path, "bea")
    remote = bare(tmp_path, ann.environ)
    ann("init", remote=remote)
    ann.remember("Tides")
    assert ann("push")["outcome"] == "pushed"
    bea("init", remote=remote)
    assert bea.titles == ann.titles
    bea.remember("Harbours")
    assert bea("push")["outcome"] == "pushed"

"""Share, join, sync and leave over HTTP, as people do it."""

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.hub.running import RunningHub, running
from tests.hub.store_hub import join as add_device
from tests.spaces.laptops import Memory

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    AlreadyExists,
    InvalidArgument,
    InvitationRefused,
    NotFound,
    PageNotFound,
    SealKey,
    SpaceRight,
    SpaceSyncStopped,
    UntrustworthyHub,
)
from quaid.hub.direct import StoreHub
from quaid.hub.store import OPERATOR, SqliteHubStore
from quaid.model.bundle import digest
from quaid.operations import dispatch, spaces
from quaid.spaces import replica
from quaid.spaces.protocol import Caller, Push, Space, SpaceKind
from quaid.spaces.replica import SyncedSpace, new_key
from quaid.storage.leases import is_leased
from quaid.storage.spaces import LEASE, Spaces
from quaid.worker import Supervisor

Make = Callable[[str], Memory]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RunningHub]:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    with running(store) as served:
        yield served
    store.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Make]:
    made: list[Memory] = []

    def make(name: str) -> Memory:
        made.append(Memory(tmp_path / name, name))
        return made[-1]

    yield make
    for each in made:
        each.brain.close()


def hub_link(hub: RunningHub, person: str = "") -> str:
    """Return an invitation to the hub, as its operator makes it."""
    code = StoreHub(hub.store, OPERATOR).invite("", "owner", person)
    return f"{hub.url}/join#{code.code}"


@pytest.fixture
def mira(hub: RunningHub, memory: Make) -> Memory:
    laptop = memory("mira-laptop")
    laptop.run("put", slug="people/ada", content="# Ada\n\nLives in London.")
    record = laptop.run(
        "share", collection="default", hub=hub_link(hub), name="team", kind="team", person="mira"
    )
    assert (record["sync"]["pushed"], record["sync"]["problem"]) == (1, "")
    return laptop


def invite(owner: Memory, **options: str) -> str:
    return str(owner.run("space invite", space="default", **options)["link"])


def test_a_person_joins_with_a_link_and_both_see_each_others_edits(mira: Memory, memory: Make) -> None:
    noor = memory("noor-laptop")
    record = noor.run("join", link=invite(mira), person="noor")
    assert (record["created"], record["space"]["collection"], record["space"]["right"]) == (
        True,
        "team",
        "write",
    )
    assert noor.run("get", slug=["people/ada"])["compiled_truth"] == "# Ada\n\nLives in London."
    noor.run("put", slug="people/ada", append="She writes.")
    assert noor.run("sync")["spaces"][0]["pushed"] == 1
    assert mira.run("sync")["spaces"][0]["pulled"] == 1
    assert "She writes." in mira.run("get", slug=["people/ada"])["compiled_truth"]
    members = mira.run("members", space="default")["members"]
    assert {(member["person"], member["right"]) for member in members} == {
        ("mira", "owner"),
        ("noor", "write"),
    }
    assert {device["name"] for device in mira.run("devices", space="default")["devices"]} == {
        "mira-laptop",
        "noor-laptop",
    }


def test_tokens_and_keys_are_in_a_private_file_and_not_in_the_memory(mira: Memory) -> None:
    path = mira.folder / "credentials-of-memory.db.json"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    (hub,) = json.loads(path.read_text())["hubs"].values()
    mira.brain.close()
    data = b"".join(file.read_bytes() for file in mira.folder.glob("memory.db*"))
    assert hub["token"].encode() not in data


def test_a_code_works_once(mira: Memory, memory: Make) -> None:
    link = invite(mira)
    memory("one").run("join", link=link, person="noor")
    with pytest.raises(InvitationRefused):
        memory("two").run("join", link=link, person="omar")


def test_a_second_device_of_a_person_joins_by_name(mira: Memory, memory: Make, hub: RunningHub) -> None:
    desktop = memory("desktop")
    record = desktop.run("join", link=invite(mira, person="mira", right="owner"), as_="default")
    assert (record["created"], record["space"]["collection"]) == (False, "default")
    mira.run("put", slug="people/bob", content="# Bob")
    assert mira.run("sync", name="team")["spaces"][0]["collection"] == "default"
    desktop.run("sync")
    listed = dispatch.call(mira.brain, dispatch.find_command("devices"), {"space": "team"}, "owner")
    assert render(listed).count("has read up to change 2") == 2
    assert desktop.run("get", slug=["people/bob"])["slug"] == "people/bob"
    with pytest.raises(AlreadyExists, match="team"):
        desktop.run("join", link="team")


def test_joining_does_not_share_own_pages_unless_told(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("put", slug="private/salary", content="# Salary\n\n9000")
    link = invite(mira)
    with pytest.raises(InvalidArgument, match="default has 1 page, which all members of the space would get"):
        noor.run("join", link=link, person="noor", as_="default")
    noor.run("join", link=link, person="noor")  # the invitation was not used
    mira.run("sync")
    with pytest.raises(PageNotFound):
        mira.run("get", slug=["private/salary"])


def test_a_memory_without_its_credentials_joins_again_with_a_new_invitation(
    mira: Memory, memory: Make, hub: RunningHub
) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    noor.run("put", slug="team::people/ada", append="Plays chess.")
    (noor.folder / "credentials-of-memory.db.json").unlink()
    assert "There is no token" in noor.run("sync")["spaces"][0]["problem"]
    with pytest.raises(AlreadyExists, match="The person noor"):  # an owner cannot act as another person
        noor.run("join", link=invite(mira, person="noor"))
    space = Spaces(noor.brain.db).require("team").space_id
    code = StoreHub(hub.store, OPERATOR).invite(space, "write", "noor").code
    record = noor.run("join", link=f"{hub.url}/join#{code}", as_="team")
    assert (record["sync"]["pushed"], record["sync"]["problem"]) == (1, "")
    devices = {row["id"] for row in mira.run("devices", space="team")["devices"] if row["person"] == "noor"}
    assert Spaces(noor.brain.db).require("team").device in devices
    assert len(devices) == 2
    with pytest.raises(AlreadyExists, match="It is the collection team"):
        noor.run("join", link="team")


def test_a_page_renamed_on_two_devices_gets_the_name_that_is_chosen(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    noor.run("rename", slug="team::people/ada", new_slug="people/ada-noor")
    mira.run("rename", slug="people/ada", new_slug="people/ada-mira")
    noor.run("sync")
    assert mira.run("sync")["spaces"][0]["conflicts"] == ["people/ada-noor"]
    record = mira.run("review", slug="people/ada-noor", keep="mira on mira-laptop")
    assert (record["resolved"], record["conflicts"]) == (1, [])
    mira.run("sync")
    noor.run("sync")
    for old in ("people/ada", "people/ada-noor", "people/ada-mira"):
        assert noor.run("get", slug=[f"team::{old}"])["slug"] == "people/ada-mira"
    assert mira.run("review")["conflicts"] == noor.run("review")["conflicts"] == []


def test_an_agent_is_named_in_history_and_blame(mira: Memory, memory: Make) -> None:
    box = memory("box")
    box.run("join", link=invite(mira, person="mira", agent="claude", right="write"))
    box.run("put", slug="team::people/bob", content="# Bob\n\nFrom an agent.")
    box.run("sync")
    mira.run("sync")
    [version] = mira.run("history", slug="people/bob")["versions"]
    assert (version["author"], version["agent"], version["device"]) == ("mira", "claude", "box")
    blame = dispatch.call(mira.brain, dispatch.find_command("blame"), {"slug": "people/bob"}, "owner")
    assert "mira with claude (derived)    From an agent." in render(blame)


def test_a_link_with_a_wrong_key_is_followed_by_the_right_one_but_never_replaces_it(
    memory: Make, hub: RunningHub
) -> None:
    mira, desktop = memory("mira"), memory("desktop")
    mira.run("put", slug="diary/one", content="# One")
    mira.run("share", collection="default", hub=hub_link(hub, "mira"), sealed=True)
    link = invite(mira, person="mira", right="owner")
    wrong = link[:-20] + "A" * 20
    with pytest.raises(AlreadyExists, match="--as default"):
        desktop.run("join", link=wrong)
    assert "cannot be decrypted" in desktop.run("join", link=wrong, as_="default")["sync"]["problem"]
    assert desktop.run("join", link=link)["sync"]["problem"] == ""
    with pytest.raises(SealKey, match="another key"):
        desktop.run("join", link=invite(mira, person="mira", right="owner")[:-20] + "A" * 20)
    mira.run("put", slug="diary/one", append="More.")
    mira.run("sync")
    assert desktop.run("sync")["spaces"][0]["problem"] == ""
    assert "More." in desktop.run("get", slug=["diary/one"])["compiled_truth"]


def test_a_reader_cannot_change_pages_and_a_writer_who_becomes_one_neither(
    mira: Memory, memory: Make
) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira, right="read"), person="noor")
    with pytest.raises(SpaceRight, match="read"):
        noor.run("put", slug="team::people/ada", append="Mine.")
    with pytest.raises(SpaceRight):
        noor.run("assert", slug="team::people/ada", predicate="lives_in", object="Oslo")
    with pytest.raises(SpaceRight):
        noor.run("put", slug="team::people/new", content="# New")
    with pytest.raises(SpaceRight):
        noor.run("forget", slug="team::people/ada", yes=True)
    mira.run("members", space="default", person="noor", right="write")
    noor.run("sync")
    noor.run("put", slug="team::people/ada", append="Mine.")
    mira.run("members", space="default", person="noor", right="read")
    report = noor.run("sync")["spaces"][0]
    assert report["problems"] == ["people/ada: your right in team is read"]
    assert "Mine." in noor.run("get", slug=["team::people/ada"])["compiled_truth"]


def test_who_may_append_adds_entries_and_pages_but_changes_no_text(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira, right="append"), person="noor")
    noor.run("timeline-add", slug="team::people/ada", date="2026-01-01", summary="Met the queen")
    noor.run("put", slug="team::people/new", content="# New")
    with pytest.raises(SpaceRight, match="append"):
        noor.run("put", slug="team::people/ada", compiled_truth="# Ada\n\nGone.")
    assert noor.run("sync")["spaces"][0]["pushed"] == 2
    mira.run("sync")
    assert "Met the queen" in mira.run("get", slug=["people/ada"])["timeline"]


def test_a_forgotten_page_is_erased_everywhere_and_the_answer_names_who_has_not(
    mira: Memory, memory: Make
) -> None:
    noor = memory("noor-laptop")
    noor.run("join", link=invite(mira), person="noor")
    record = mira.run("forget", slug="people/ada", yes=True)
    assert record["clean"], [
        record["proof"],
        record["problem"],
        [row for row in record["layers"] if row["after"]],
    ]
    assert record["hub"] == (
        "Erased in the space team. Not yet erased on: noor on noor-laptop; they erase it when they sync"
    )
    report = noor.run("sync")["spaces"][0]
    assert report["erased"] == 1
    noor.brain.close()
    for file in noor.folder.glob("memory.db*"):
        assert b"Lives in London" not in file.read_bytes()
    assert mira.run("sync")["spaces"][0]["waiting"] == 0
    assert mira.brain.db.one("SELECT count(*) FROM space_pages") == (0,)


def test_a_page_forgotten_offline_is_erased_on_the_hub_later(
    mira: Memory, hub: RunningHub, tmp_path: Path
) -> None:
    offline = mira.folder / "credentials-of-memory.db.json"
    known = offline.read_text()
    offline.write_text(known.replace(hub.url, "http://127.0.0.1:9"))  # no hub is there
    record = mira.run("forget", slug="people/ada", yes=True)
    assert record["hub"].startswith(
        "The space team still has it; the next sync erases it there. The hub http"
    )
    assert mira.run("spaces")["spaces"][0]["waiting"] == 1
    offline.write_text(known)
    assert mira.run("sync")["spaces"][0]["waiting"] == 0


def test_a_sealed_space_shows_the_hub_no_text(
    mira: Memory, memory: Make, hub: RunningHub, tmp_path: Path
) -> None:
    root = mira.folder / "diary"
    root.mkdir()
    (root / "monday.md").write_text("# Monday\n\nA very private thought.\n")
    mira.run("collection add", name="diary", path=str(root))
    mira.run("share", collection="diary", hub=hub.url, sealed=True)
    link = str(mira.run("space invite", space="diary", person="mira", right="owner")["link"])
    phone = memory("phone")
    address, _, key = link.rpartition(".")
    with pytest.raises(SealKey, match="its key is missing"):
        phone.run("join", link=address)
    record = phone.run("join", link=f"{address}.{key}")  # the code was used, but by this device
    assert record["space"]["sealed"]
    second = str(mira.run("space invite", space="diary", person="mira", right="owner")["link"])
    with pytest.raises(SealKey, match="another key"):
        phone.run("join", link=f"{second.rpartition('.')[0]}.{new_key()}")
    assert phone.run("get", slug=["diary::monday"])["compiled_truth"].startswith("# Monday")
    phone.run("put", slug="diary::monday", append="And another one.")
    phone.run("sync")
    mira.run("sync")
    assert "And another one." in (root / "monday.md").read_text()
    data = b"".join(file.read_bytes() for file in tmp_path.glob("hub.db*"))
    assert b"private thought" not in data
    assert b"monday" not in data


class CuriousStore(SqliteHubStore):
    """The database of a hub that keeps the tokens it gets and makes no sealed spaces."""

    tokens: tuple[str, ...] = ()

    def authenticate(self, token_hash: str) -> Caller | None:
        self.tokens += (token_hash,)
        return super().authenticate(token_hash)

    def create_space(self, caller: Caller, name: str, kind: SpaceKind, sealed: bool = False) -> Space:
        return super().create_space(caller, name, kind, False)


@pytest.mark.parametrize("code", ["#K7QM-3XWD-PT9H", ""])
def test_a_hub_with_the_id_of_another_one_does_not_get_its_token(
    mira: Memory, hub: RunningHub, tmp_path: Path, code: str
) -> None:
    path = mira.folder / "credentials-of-memory.db.json"
    before = path.read_text()
    mira.run("collection add", name="notes", path=str(tmp_path))
    enemy = CuriousStore(str(tmp_path / "enemy.db"))
    enemy.hub_id = hub.store.hub_id
    with running(enemy) as served:
        link = f"{served.url}/join{code}"
        with pytest.raises(InvalidArgument, match="was not sent"):
            mira.run("join", link=link)
        with pytest.raises(InvalidArgument, match="was not sent"):
            mira.run("share", collection="notes", hub=link)
    assert enemy.tokens == ()
    assert path.read_text() == before
    enemy.close()


def test_a_hub_cannot_make_a_sealed_space_an_open_one(mira: Memory, memory: Make, tmp_path: Path) -> None:
    store = CuriousStore(str(tmp_path / "other.db"))
    with running(store) as served:
        laptop = memory("laptop")
        laptop.run("put", slug="diary", content="# Diary")
        with pytest.raises(UntrustworthyHub, match="unsealed"):
            laptop.run("share", collection="default", hub=hub_link(served), sealed=True, person="ana")
        assert laptop.run("spaces")["spaces"] == []
    store.close()
    with pytest.raises(SealKey, match="not sealed"):
        memory("phone").run("join", link=f"{invite(mira)}.{new_key()}", person="noor")


def test_a_proposal_that_cannot_be_read_is_listed_and_can_be_rejected(mira: Memory, hub: RunningHub) -> None:
    (mira.folder / "diary").mkdir()
    mira.run("collection add", name="diary", path=str(mira.folder / "diary"))
    mira.run("share", collection="diary", hub=hub.url, kind="team", sealed=True)
    eve = add_device(hub.store, "eve", "phone")
    mira.run("members", space="diary", person="eve", right="propose")
    [space] = eve.spaces()
    eve.push(space.id, [Push("01890000-0000-7000-8000-000000000001", 0, digest(b"junk"), b"junk", "")])
    [proposal] = mira.run("space proposals", space="diary")["proposals"]
    assert (proposal["author"], "cannot be decrypted" in proposal["diff"]) == ("eve", True)
    assert mira.run("space proposals", space="diary", reject=1)["proposals"] == []


def test_leaving_removes_the_pages_of_a_joined_space_or_keeps_them(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    preview = noor.run("leave", space="team")
    assert (preview["done"], preview["pages"]) == (False, 1)
    noor.run("leave", space="team", yes=True)
    assert [row["name"] for row in noor.run("collection list")["collections"]] == ["default"]
    noor.run("join", link="team")
    assert noor.run("leave", space="team", keep_pages=True)["kept"]
    assert noor.run("get", slug=["team::people/ada"])["title"] == "Ada"
    noor.run("put", slug="team::people/ada", append="Mine.")
    record = noor.run("join", link="team", as_="team", yes=True)
    assert record["sync"]["problem"] == ""
    assert mira.run("leave", space="default")["kept"]
    assert mira.run("get", slug=["people/ada"])["title"] == "Ada"


def test_leaving_pushes_what_waits_before_it_removes_pages(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    noor.run("put", slug="team::people/ada", append="Plays chess.")
    assert noor.run("leave", space="team", dry_run=True)["waiting"] == 1
    assert noor.run("leave", space="team", yes=True)["waiting"] == 0
    mira.run("sync")
    assert "Plays chess." in mira.run("get", slug=["people/ada"])["compiled_truth"]


def test_the_preview_of_leaving_says_whether_pages_stay(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    leave, arguments = dispatch.find_command("leave"), {"space": "team", "dry_run": True}
    preview = {
        each.name: render(dispatch.call(each.brain, leave, arguments, "owner")) for each in (mira, noor)
    }
    assert "1 page of default would stay in this memory" in preview["mira-laptop"]
    assert "1 page of team would be removed" in preview["noor"]


def test_a_refused_invitation_leaves_no_token(mira: Memory, memory: Make, hub: RunningHub) -> None:
    noor = memory("noor")
    with pytest.raises(InvitationRefused):
        noor.run("join", link=f"{hub.url}/join#AAAA-BBBB-CCCC", person="noor")
    with pytest.raises(InvalidArgument, match="contains no invitation code"):
        noor.run("join", link=hub.url)
    with pytest.raises(NotFound, match="invitation link"):
        noor.run("join", link="team")
    assert noor.run("join", link=invite(mira), person="noor")["created"]


def test_an_interrupted_join_goes_on_with_the_same_link(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    link = invite(mira)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    noor.brain.progress = stop
    with pytest.raises(SpaceSyncStopped, match="`quaid sync team` goes on"):
        noor.run("join", link=link, person="noor")
    noor.brain.progress = lambda *_: None
    record = noor.run("join", link=link)
    assert (record["created"], record["space"]["pages"], record["sync"]["problem"]) == (True, 1, "")
    with pytest.raises(InvalidArgument, match="was used before"):
        noor.run("join", link=link)


def test_sharing_under_the_name_of_a_space_tells_how_to_use_that_space(mira: Memory, hub: RunningHub) -> None:
    mira.run("leave", space="default")
    with pytest.raises(AlreadyExists, match="`quaid join team --as default --yes`"):
        mira.run("share", collection="default", hub=hub.url, name="team")
    mira.run("put", slug="people/ada", append="More.")
    assert mira.run("join", link="team", as_="default", yes=True)["sync"]["pushed"] == 1


def test_devices_with_one_name_are_revoked_by_their_ids(mira: Memory, tmp_path: Path) -> None:
    for person in ("noor", "pia"):
        phone = Memory(tmp_path / person, "phone")
        phone.run("join", link=invite(mira), person=person)
        phone.brain.close()
    with pytest.raises(InvalidArgument, match=r"2 devices; use the id: \w{8} \((noor|pia)\), \w{8}"):
        mira.run("devices", space="team", revoke="phone")
    with pytest.raises(NotFound, match="Its devices: "):
        mira.run("devices", space="team", revoke="tablet")
    first = next(row for row in mira.run("devices", space="team")["devices"] if row["person"] == "noor")
    with pytest.raises(InvalidArgument, match="a device of noor; only noor and admins"):
        mira.run("devices", space="team", revoke=first["id"])
    for _ in range(2):  # the name of a revoked device can be used again
        desktop = Memory(tmp_path / "desktop", "desktop")
        desktop.run("join", link=invite(mira, right="owner", person="mira"))
        desktop.brain.close()
        (tmp_path / "desktop" / "memory.db").unlink()
        (tmp_path / "desktop" / "credentials-of-memory.db.json").unlink()
        assert mira.run("devices", space="team", revoke="desktop")["devices"]


def test_a_proposal_does_not_wait_and_is_compared_with_the_page_on_the_hub(
    mira: Memory, memory: Make
) -> None:
    noor, pia = memory("noor"), memory("pia")
    noor.run("join", link=invite(mira), person="noor")
    pia.run("join", link=invite(mira, right="propose"), person="pia")
    noor.run("put", slug="team::people/ada", content="# Ada\n\nLives in Paris.")
    noor.run("sync")
    pia.run("sync")
    pia.run("put", slug="team::people/ada", content="# Ada\n\nLives in Oslo.")
    assert pia.run("sync")["spaces"][0]["proposed"] == 1
    assert [space["waiting"] for space in pia.run("spaces")["spaces"]] == [0]
    [proposal] = mira.run("space proposals", space="team")["proposals"]
    assert "-Lives in Paris." in proposal["diff"]


def test_a_page_deleted_on_another_device_is_not_said_to_have_a_file(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    mira.run("put", slug="people/lady-ada", content="# Lady Ada\n\nLives in London.")
    mira.run("sync")
    noor.run("sync")
    mira.run("merge", slug="people/lady-ada", other="people/ada", into="people/ada", yes=True)
    mira.run("sync")
    noor.run("sync")
    with pytest.raises(PageNotFound, match="because it was deleted on another device"):
        noor.run("get", slug=["team::people/lady-ada"])


def test_a_knowledge_base_and_a_read_only_folder_are_not_shared(
    mira: Memory, tmp_path: Path, hub: RunningHub
) -> None:
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "a.md").write_text("# A\n")
    mira.run("collection add", name="wiki", path=str(root), read_only=True)
    with pytest.raises(InvalidArgument, match="read-only"):
        mira.run("share", collection="wiki", hub=hub.url)
    with pytest.raises(NotFound, match="shared space"):
        mira.run("leave", space="wiki")


def test_a_server_syncs_in_the_background_and_at_once_after_a_change(mira: Memory, memory: Make) -> None:
    noor = memory("noor-laptop")
    noor.run("join", link=invite(mira), person="noor")
    stop = Event()
    reports: list[SyncedSpace] = []
    path = noor.brain.settings.db_path

    def follow() -> None:
        with Brain(noor.brain.settings) as brain:
            spaces.follow_spaces(brain, stop, reports.append)

    thread = Thread(target=follow)
    thread.start()
    try:
        wait_until(lambda: bool(reports))
        assert is_leased(path, LEASE)
        mira.run("put", slug="people/ada", append="She writes.")
        mira.run("sync")
        wait_until(lambda: "She writes." in noor.run("get", slug=["people/ada"])["compiled_truth"])
        noor.run("put", slug="people/ada", append="And counts.")
        wait_until(lambda: not noor.run("spaces")["spaces"][0]["waiting"])
    finally:
        stop.set()
        thread.join(40)
    mira.run("sync")
    assert "And counts." in mira.run("get", slug=["people/ada"])["compiled_truth"]
    assert not is_leased(path, LEASE)


def test_the_worker_of_a_server_syncs_shared_spaces(mira: Memory, memory: Make) -> None:
    noor = memory("noor-laptop")
    noor.run("join", link=invite(mira), person="noor")
    supervisor = Supervisor()
    supervisor._watch_due = 0.0
    supervisor._embed_due = time.monotonic() + 600
    try:
        supervisor.start_due_workers(noor.brain)
        wait_until(lambda: is_leased(noor.brain.settings.db_path, LEASE))
        mira.run("put", slug="people/ada", append="She writes.")
        mira.run("sync")
        wait_until(lambda: "She writes." in noor.run("get", slug=["people/ada"])["compiled_truth"])
    finally:
        supervisor.end()
    assert not is_leased(noor.brain.settings.db_path, LEASE)


def wait_until(is_done: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


def test_a_hub_that_is_away_is_shown_in_the_status_and_stops_nothing(mira: Memory, hub: RunningHub) -> None:
    path = mira.folder / "credentials-of-memory.db.json"
    path.write_text(path.read_text().replace(hub.url, "http://127.0.0.1:9"))
    mira.run("put", slug="people/eve", content="# Eve")
    record = mira.run("sync")
    assert "cannot be reached" in record["spaces"][0]["problem"]
    (state,) = mira.run("status")["spaces"]
    assert (state["collection"], state["waiting"]) == ("default", 1)
    assert "cannot be reached" in state["problem"]
    findings = {row["name"]: row["state"] for row in mira.run("doctor", quick=True)["checks"]}
    assert findings["space default"] == "wrong"


def test_a_joined_collection_works_with_every_command_for_collections(
    mira: Memory, memory: Make, tmp_path: Path
) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira), person="noor")
    assert noor.run("collection info", name="team")["collection"]["kind"] == "shared"
    assert noor.run("validate")["violations"] == []
    assert noor.run("search", query="London")["hits"][0]["slug"] == "people/ada"
    assert noor.run("collection sync")["syncs"] == []
    noor.run("collection target", name="team")
    noor.run("put", slug="people/eve", content="# Eve")
    assert noor.run("sync")["spaces"][0]["pushed"] == 1
    noor.run("export", dir=str(tmp_path / "out"))
    assert (tmp_path / "out" / "team" / "people" / "ada.md").read_text().startswith("# Ada")
    with pytest.raises(InvalidArgument, match="quaid leave team"):
        noor.run("collection remove", name="team")
    assert noor.run("doctor", quick=True)["checks"]
    noor.run("put", slug="people/eve", append="More.")
    noor.run("revert", slug="people/eve", to=1)
    assert [row["version"] for row in noor.run("history", slug="people/eve")["versions"]] == [3, 2, 1]


def test_changes_of_a_member_who_may_propose_wait_for_a_decision(mira: Memory, memory: Make) -> None:
    noor = memory("noor")
    noor.run("join", link=invite(mira, right="propose"), person="noor")
    noor.run("put", slug="team::people/ada", append="She writes.")
    noor.run("put", slug="team::people/eve", content="# Eve")
    assert noor.run("sync")["spaces"][0]["proposed"] == 2
    assert noor.run("sync")["spaces"][0]["proposed"] == 0
    assert mira.run("sync")["spaces"][0]["pulled"] == 0
    first, second = mira.run("space proposals", space="default")["proposals"]
    assert (first["slug"], second["slug"], first["author"]) == ("people/ada", "people/eve", "noor")
    assert "+She writes." in first["diff"]
    assert (
        mira.run("space proposals", space="default", accept=first["id"])["decided"] == "Proposal 1 accepted"
    )
    assert "She writes." in mira.run("get", slug=["people/ada"])["compiled_truth"]
    mira.run("space proposals", space="default", reject=second["id"])
    report = noor.run("sync")["spaces"][0]
    assert (report["rejected"], report["waiting"]) == (["people/eve"], 0)
    with pytest.raises(PageNotFound):
        noor.run("get", slug=["team::people/eve"])
    assert "She writes." in noor.run("get", slug=["team::people/ada"])["compiled_truth"]


def test_keys_that_two_processes_add_at_once_are_all_kept(memory: Make) -> None:
    mira = memory("mira")
    memories = [Brain(mira.brain.settings) for _ in range(4)]

    def add(number: int) -> None:
        for key in range(10):
            spaces.keep_key(memories[number], f"space-{number}-{key}", "key")

    threads = [Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for other in memories:
        other.close()
    assert len(replica.read_credentials(mira.brain.db.path).keys) == 40

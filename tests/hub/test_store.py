"""What every database of a hub does: the same tests run over SQLite and PostgreSQL."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any, get_args

import pytest
from tests.hub.conftest import Clock

from quaid import errors
from quaid.hub import revisions
from quaid.hub.store import OPERATOR, HubStore
from quaid.spaces.protocol import RIGHTS, Caller, Push, PushResult, Right, Space, SpaceKind

OpenStore = Callable[[], HubStore]
LATER, PAST = "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def push(uuid: str, base: int = 0, text: str = "", slug: str | None = None, **fields: Any) -> Push:
    """Return a push of a bundle with this text."""
    bundle = (text or f"{uuid} after {base}").encode()
    return Push(
        uuid, base, hashlib.sha256(bundle).hexdigest(), bundle, uuid if slug is None else slug, **fields
    )


def person(store: HubStore, name: str, *, is_admin: bool = False, **fields: Any) -> Caller:
    """Add a person, if new, and a device; return the caller."""
    if name not in {known.name for known in store.people(OPERATOR)}:
        store.add_person(name, is_admin)
    token = hashlib.sha256(f"{name} {len(store.devices(OPERATOR))}".encode()).hexdigest()
    store.add_device(name, f"{name}'s laptop", token, **fields)
    caller = store.authenticate(token)
    assert caller is not None
    return caller


class Team:
    """A team space with an owner, and a member for each right."""

    def __init__(self, store: HubStore) -> None:
        self.owner = person(store, "olga")
        self.space = store.create_space(self.owner, "team", "team").id
        self.members: dict[Right, Caller] = {"owner": self.owner}
        for right in RIGHTS[:-1]:
            self.members[right] = person(store, right)
            store.set_member(self.owner, self.space, right, right)


@pytest.fixture
def team(store: HubStore) -> Team:
    return Team(store)


def one(results: Sequence[PushResult]) -> PushResult:
    [result] = results
    return result


# Pages and their revisions


def test_a_stored_page_is_read_with_its_author_and_numbers(store: HubStore, team: Team, clock: Clock) -> None:
    result = one(store.put(team.owner, team.space, [push("a", text="hello")]))
    assert (result.status, result.revision, result.seq) == ("stored", 1, 1)
    change = store.get(team.members["read"], team.space, "a")
    assert change is not None
    assert (change.bundle, change.slug, change.base, change.deleted, change.purged) == (
        b"hello",
        "a",
        0,
        False,
        False,
    )
    assert (change.person, change.agent, change.device) == ("olga", "", team.owner.device)
    assert change.device_name == "olga's laptop"
    assert change.at == "2026-05-28T20:26:40Z"
    assert change.hash == hashlib.sha256(b"hello").hexdigest()


def test_old_revisions_can_be_read(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", text="one")])
    store.put(team.owner, team.space, [push("a", 1, text="two")])
    first, missing = (store.get(team.owner, team.space, "a", revision) for revision in (1, 3))
    assert first is not None
    assert first.bundle == b"one"
    assert missing is None
    assert store.get(team.owner, team.space, "b") is None


@pytest.mark.parametrize("base", [0, 1, 3, 1000])
def test_a_base_that_is_not_the_newest_revision_is_refused_with_the_newest(
    store: HubStore, team: Team, base: int
) -> None:
    store.put(team.owner, team.space, [push("a"), push("a", 1, text="newest")])
    result = one(store.put(team.members["write"], team.space, [push("a", base, text="mine")]))
    assert (result.status, result.revision, result.seq) == ("stale", 2, 0)
    assert result.head is not None
    assert (result.head.bundle, result.head.revision, result.head.seq) == (b"newest", 2, 2)
    assert store.changes(team.owner, team.space, 0, 10).last_seq == 2


def test_a_base_of_a_page_that_the_hub_does_not_have_is_refused(store: HubStore, team: Team) -> None:
    assert store.put(team.owner, team.space, [push("a", 7)]) == [PushResult("a", "stale")]


def test_a_base_with_the_right_number_and_another_content_is_refused(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", text="hub")])
    known = hashlib.sha256(b"device").hexdigest()
    assert one(store.put(team.owner, team.space, [push("a", 1, base_hash=known)])).status == "stale"
    known = hashlib.sha256(b"hub").hexdigest()
    assert one(store.put(team.owner, team.space, [push("a", 1, base_hash=known)])).status == "stored"


def test_a_repeated_push_is_stored_once(store: HubStore, team: Team) -> None:
    first = store.put(team.owner, team.space, [push("a", text="x"), push("b")])
    assert store.put(team.owner, team.space, [push("a", text="x"), push("b")]) == first
    assert store.changes(team.owner, team.space, 0, 10).last_seq == 2


def test_a_push_that_is_repeated_after_others_gets_its_old_answer(store: HubStore, team: Team) -> None:
    first = store.put(team.owner, team.space, [push("a", text="x")])
    store.put(team.members["write"], team.space, [push("a", 1, text="y")])
    assert store.put(team.owner, team.space, [push("a", text="x")]) == first
    same_text_elsewhere = one(store.put(team.members["write"], team.space, [push("a", text="x")]))
    assert same_text_elsewhere.status == "stale"


def test_two_pushes_of_a_page_in_one_call_follow_each_other(store: HubStore, team: Team) -> None:
    results = store.put(team.owner, team.space, [push("a"), push("a", 1), push("a", 1, text="late")])
    assert [(result.status, result.revision) for result in results] == [
        ("stored", 1),
        ("stored", 2),
        ("stale", 2),
    ]


def test_a_slug_belongs_to_one_page(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", slug="people/mira", text="first")])
    result = one(store.put(team.members["write"], team.space, [push("b", slug="people/mira")]))
    assert result.status == "slug_taken"
    assert result.head is not None
    assert (result.head.uuid, result.head.bundle) == ("a", b"first")


def test_the_slug_of_a_renamed_or_deleted_page_is_free(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", slug="x"), push("b", slug="y")])
    results = store.put(
        team.owner,
        team.space,
        [push("c", slug="c"), push("a", 1, slug="z"), push("c", 1, slug="x"), push("a", 2, slug="z")],
    )
    assert [result.status for result in results] == ["stored"] * 4
    deleted = push("b", 1, slug="", deleted=True)
    assert [
        result.status for result in store.put(team.owner, team.space, [deleted, push("d", slug="y")])
    ] == ["stored", "stored"]
    assert one(store.put(team.owner, team.space, [push("e", slug="x")])).status == "slug_taken"


def test_a_deleted_page_can_come_back(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    assert one(store.put(team.owner, team.space, [push("a", 1, deleted=True)])).status == "stored"
    head = store.get(team.owner, team.space, "a")
    assert head is not None
    assert (head.deleted, head.slug) == (True, "")
    assert one(store.put(team.owner, team.space, [push("a", text="again")])).status == "stale"
    assert one(store.put(team.owner, team.space, [push("a", 2, text="again")])).revision == 3


@pytest.mark.parametrize(
    "slug", ["../etc/passwd", "/etc", "A", "a//b", "a/../b", "", "a\x00b", "a.md", "x" * 300]
)
def test_a_slug_that_is_none_is_refused(store: HubStore, team: Team, slug: str) -> None:
    with pytest.raises((errors.InvalidSlug, errors.InvalidArgument)):
        store.put(team.owner, team.space, [push("a"), push("b", slug=slug)])
    assert store.changes(team.owner, team.space, 0, 10).changes == ()


@pytest.mark.parametrize("uuid", ["", "../a", "a b", "x" * 65, "a\n", "ä"])
def test_a_uuid_that_is_none_is_refused(store: HubStore, team: Team, uuid: str) -> None:
    with pytest.raises(errors.InvalidArgument):
        store.put(team.owner, team.space, [push(uuid, slug="a")])


def test_a_bundle_with_another_hash_is_refused(store: HubStore, team: Team) -> None:
    with pytest.raises(errors.InvalidArgument, match="SHA-256"):
        store.put(team.owner, team.space, [push("a")._replace(bundle=b"forged")])


def test_bundles_and_calls_have_a_limit(store: HubStore, team: Team) -> None:
    most = "x" * revisions.MOST_BUNDLE_BYTES
    assert one(store.put(team.owner, team.space, [push("a", text=most)])).status == "stored"
    with pytest.raises(errors.TooLarge):
        store.put(team.owner, team.space, [push("b", text=most + "x")])
    pushes = [push(f"p{number}") for number in range(revisions.MOST_PUSHES + 1)]
    with pytest.raises(errors.InvalidArgument, match="1,001"):
        store.put(team.owner, team.space, pushes)
    assert {result.status for result in store.put(team.owner, team.space, pushes[1:])} == {"stored"}


def test_a_negative_base_is_refused(store: HubStore, team: Team) -> None:
    with pytest.raises(errors.InvalidArgument):
        store.put(team.owner, team.space, [push("a", -1)])


# Reading changes


def test_changes_are_the_newest_revisions_in_order(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a"), push("b"), push("c"), push("a", 1)])
    page = store.changes(team.owner, team.space, 0, 10)
    assert [(change.seq, change.uuid, change.revision) for change in page.changes] == [
        (2, "b", 1),
        (3, "c", 1),
        (4, "a", 2),
    ]
    assert (page.last_seq, page.is_complete) == (4, True)
    page = store.changes(team.owner, team.space, 2, 1)
    assert ([change.uuid for change in page.changes], page.is_complete) == (["c"], False)
    page = store.changes(team.owner, team.space, 4, 1)
    assert (page.changes, page.last_seq, page.is_complete) == ((), 4, True)


def test_changes_name_the_hash_of_the_change_that_the_device_has(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", text="x"), push("a", 1, text="y")])
    for seq, text in ((1, b"x"), (2, b"y")):
        page = store.changes(team.owner, team.space, seq, 10)
        assert page.after_hash == hashlib.sha256(text).hexdigest()
    assert store.changes(team.owner, team.space, 0, 10).after_hash == ""
    restored = store.changes(team.owner, team.space, 9, 10)
    assert (restored.after_hash, restored.last_seq, restored.is_complete) == ("", 2, True)


def test_an_answer_of_large_pages_is_cut(store: HubStore, team: Team) -> None:
    text = "x" * (revisions.MOST_ANSWER_BYTES // 2 - 8)
    for name in ("a", "b", "c"):
        store.put(team.owner, team.space, [push(name, text=text + name)])
    page = store.changes(team.owner, team.space, 0, 10)
    assert ([change.uuid for change in page.changes], page.is_complete) == (["a", "b"], False)
    assert [change.uuid for change in store.changes(team.owner, team.space, 2, 10).changes] == ["c"]
    results = store.put(team.owner, team.space, [push(name, 5) for name in ("a", "b", "c")])
    assert [result.head is not None for result in results] == [True, True, False]


def test_more_than_1000_pages_are_read_in_parts(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push(f"p{number}") for number in range(1000)])
    store.put(team.owner, team.space, [push(f"q{number}") for number in range(30)])
    store.put(team.owner, team.space, [push("p7", 1, deleted=True)])
    store.purge(team.owner, team.space, "p8")
    first = store.changes(team.members["read"], team.space, 0, 5_000)
    assert (len(first.changes), first.is_complete) == (1000, False)
    rest = store.changes(team.members["read"], team.space, first.changes[-1].seq, 5_000)
    assert rest.is_complete
    changes = {change.uuid: change for change in (*first.changes, *rest.changes)}
    assert len(changes) == 1030
    assert (changes["p7"].deleted, changes["p8"].purged) == (True, True)


def test_wait_ends_with_a_change_of_the_space(store: HubStore, team: Team, open_store: OpenStore) -> None:
    other = store.create_space(team.owner, "other", "team").id
    assert store.wait(team.space, 0, 0.0) is False
    for writer in (store, open_store()):  # the second one is like another process
        ends: list[bool] = []
        last = store.changes(team.owner, team.space, 0, 1).last_seq
        waiting = threading.Thread(
            target=lambda after=last, ends=ends: ends.append(store.wait(team.space, after, 20))
        )
        waiting.start()
        writer.put(team.owner, other, [push(f"b{last}")])
        waiting.join(0.05)
        assert ends == []
        writer.put(team.owner, team.space, [push(f"a{last}")])
        waiting.join(20)
        assert ends == [True]


def test_followers_are_told_which_space_has_changed(
    store: HubStore, team: Team, open_store: OpenStore
) -> None:
    other = store.create_space(team.owner, "other", "team").id
    changed: Queue[str] = Queue()
    stop = store.follow(changed.put)
    store.put(team.owner, other, [push("a")])
    assert changed.get(timeout=20) == other
    open_store().put(team.owner, team.space, [push("a")])
    while (space := changed.get(timeout=20)) == other:
        pass
    assert space == team.space
    stop()
    store.put(team.owner, other, [push("b")])
    assert store.wait(other, 1, 20)
    assert team.space not in changed.queue


# Rights


EXPECTED: dict[Right, tuple[str, str]] = {
    "read": ("denied", "denied"),
    "propose": ("proposed", "proposed"),
    "append": ("stored", "proposed"),
    "write": ("stored", "stored"),
    "owner": ("stored", "stored"),
}
"""The answers to an addition, and to a change of a page."""


@pytest.mark.parametrize("right", RIGHTS)
def test_a_member_stores_what_the_right_allows(store: HubStore, team: Team, right: Right) -> None:
    store.put(team.owner, team.space, [push("a")])
    caller = team.members[right]
    addition = one(store.put(caller, team.space, [push("b", additions_only=True)]))
    change = one(store.put(caller, team.space, [push("a", 1)]))
    assert (addition.status, change.status) == EXPECTED[right]
    assert store.changes(caller, team.space, 0, 9).last_seq == 1 + EXPECTED[right].count("stored")


def test_a_deletion_is_no_addition(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    deletion = push("a", 1, deleted=True, additions_only=True)
    assert one(store.put(team.members["append"], team.space, [deletion])).status == "proposed"


@pytest.mark.parametrize("limit", RIGHTS)
@pytest.mark.parametrize("right", RIGHTS)
def test_the_limit_of_a_token_bounds_the_right(store: HubStore, right: Right, limit: Right) -> None:
    owner = person(store, "olga")
    space = store.create_space(owner, "team", "team").id
    caller = person(store, "mira", limit=limit)
    store.set_member(owner, space, "mira", right)
    lesser = min(right, limit, key=RIGHTS.index)
    assert [found.right for found in store.spaces(caller)] == [lesser]
    assert store.space(caller, space) == store.spaces(caller)[0]
    assert one(store.put(caller, space, [push("b", additions_only=True)])).status == EXPECTED[lesser][0]


@pytest.mark.parametrize("given", [None, *RIGHTS[:-1]])
@pytest.mark.parametrize("right", RIGHTS)
def test_an_agent_has_never_more_than_its_owner(store: HubStore, right: Right, given: Right | None) -> None:
    owner = person(store, "olga")
    space = store.create_space(owner, "team", "team").id
    store.add_person("mira")
    agent = person(store, "mira", agent="claude")
    store.set_member(owner, space, "mira", right)
    if given is None:
        assert store.spaces(agent) == []
        with pytest.raises(errors.NotFound):
            store.changes(agent, space, 0, 1)
        return
    store.set_member(owner, space, "mira", given, agent="claude")
    lesser = min(right, given, key=RIGHTS.index)
    assert [found.right for found in store.spaces(agent)] == [lesser]
    result = one(store.put(agent, space, [push("a", additions_only=True)]))
    assert result.status == EXPECTED[lesser][0]
    with pytest.raises(errors.NotAllowed):
        store.set_member(agent, space, "mira", "read", agent="claude")
    with pytest.raises(errors.InvalidArgument):
        store.set_member(owner, space, "mira", "owner", agent="claude")


def test_another_agent_of_the_person_has_no_right(store: HubStore, team: Team) -> None:
    store.set_member(team.members["write"], team.space, "write", "read", agent="claude")
    with pytest.raises(errors.NotFound):
        store.changes(person(store, "write", agent="codex"), team.space, 0, 1)


def calls(store: HubStore, caller: Caller, space: str) -> dict[str, Callable[[], object]]:
    """Every method with a caller and a space."""
    return {
        "put": lambda: store.put(caller, space, [push("z")]),
        "changes": lambda: store.changes(caller, space, 0, 10),
        "get": lambda: store.get(caller, space, "a"),
        "proposals": lambda: store.proposals(caller, space),
        "settle": lambda: store.settle(caller, space, 1, True),
        "purge": lambda: store.purge(caller, space, "a"),
        "purges": lambda: store.purges(caller, space),
        "acknowledge": lambda: store.acknowledge(caller, space, 1),
        "put_vectors": lambda: store.put_vectors(caller, space, "m", [(b"h", b"v")]),
        "get_vectors": lambda: store.get_vectors(caller, space, "m", [b"h"]),
        "members": lambda: store.members(caller, space),
        "set_member": lambda: store.set_member(caller, space, caller.person, "owner"),
        "invite": lambda: store.invite(caller, f"code of {caller.device}", space, "read", LATER),
        "devices": lambda: store.devices(caller, space),
        "space": lambda: store.space(caller, space),
        "audit": lambda: store.audit(caller, space),
    }


def answer(call: Callable[[], object]) -> str:
    """Return the name of the error of a call, or "done"."""
    try:
        call()
    except errors.QuaidError as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize("missing", [False, True])
def test_a_space_of_others_does_not_exist_for_the_caller(store: HubStore, team: Team, missing: bool) -> None:
    store.put(team.owner, team.space, [push("a")])
    stranger = person(store, "stranger")
    store.create_space(stranger, "own", "team")
    for name, call in calls(store, stranger, "no-such-space" if missing else team.space).items():
        assert answer(call) == "NotFound", name
    assert [space.name for space in store.spaces(stranger)] == ["own"]
    assert store.changes(team.owner, team.space, 0, 10).last_seq == 1


def test_every_method_refuses_a_device_that_was_revoked_or_has_expired(
    store: HubStore, team: Team, clock: Clock
) -> None:
    expiring = person(store, "olga", expires_at="2026-05-28T20:26:41Z")
    revoked = person(store, "olga")
    store.revoke_device(team.owner, revoked.device)
    clock.seconds += 1
    for caller in (revoked, expiring, team.owner._replace(device="unknown"), team.owner._replace(device="")):
        methods = calls(store, caller, team.space) | {
            "spaces": lambda caller=caller: store.spaces(caller),
            "people": lambda caller=caller: store.people(caller),
            "own devices": lambda caller=caller: store.devices(caller),
            "create_space": lambda caller=caller: store.create_space(caller, "new", "team"),
            "revoke_device": lambda caller=caller: store.revoke_device(caller, team.owner.device),
        }
        for name, call in methods.items():
            assert answer(call) == "DeviceRevoked", name


NEEDED: dict[str, Right] = {
    "changes": "read",
    "get": "read",
    "proposals": "read",
    "purges": "read",
    "acknowledge": "read",
    "get_vectors": "read",
    "members": "read",
    "devices": "read",
    "space": "read",
    "put": "read",
    "put_vectors": "append",
    "settle": "write",
    "purge": "owner",
    "set_member": "owner",
    "invite": "owner",
    "audit": "owner",
}


@pytest.mark.parametrize("right", RIGHTS)
def test_every_method_needs_its_right(store: HubStore, team: Team, right: Right) -> None:
    caller = team.members[right]
    for name, call in calls(store, caller, team.space).items():
        store.put(team.owner, team.space, [push("a")])
        store.put(team.members["propose"], team.space, [push("a", 1)])
        suffices = RIGHTS.index(right) >= RIGHTS.index(NEEDED[name])
        assert answer(call) == ("done" if suffices else "NotAllowed"), name


def test_everyone_on_the_hub_reads_a_public_space(store: HubStore) -> None:
    owner = person(store, "olga")
    space = store.create_space(owner, "handbook", "public").id
    store.put(owner, space, [push("a")])
    for stranger in (person(store, "mira"), person(store, "mira", agent="claude")):
        assert [(found.name, found.right) for found in store.spaces(stranger)] == [("handbook", "read")]
        assert len(store.changes(stranger, space, 0, 10).changes) == 1
        assert one(store.put(stranger, space, [push("b")])).status == "denied"
        with pytest.raises(errors.NotAllowed):
            store.members(stranger, space)
        assert store.devices(stranger, space) == [
            device for device in store.devices(OPERATOR, space) if device.person == "mira"
        ]


def test_an_admin_sees_members_but_no_pages(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    admin = person(store, "admin", is_admin=True)
    assert admin.is_admin
    assert [(space.id, space.right) for space in store.spaces(OPERATOR)] == [(team.space, "read")]
    for caller in (admin, OPERATOR):
        assert len(store.members(caller, team.space)) == 5
        assert len(store.devices(caller, team.space)) == 5
        assert len(store.people(caller)) == 6
        assert store.audit(caller, team.space)
        for name in ("put", "changes", "get", "proposals", "purge", "get_vectors", "acknowledge"):
            assert answer(calls(store, caller, team.space)[name]) == "NotFound", name
    [name] = [space.name for space in store.spaces(OPERATOR)]
    assert store.spaces(admin) == []  # a device could not join a space that it cannot read
    assert store.create_space(admin, name, "private").name == name
    assert not person(store, "admin", agent="claude").is_admin
    assert not person(store, "admin", limit="write").is_admin


# People, devices and spaces


def test_the_hub_keeps_its_id(store: HubStore, open_store: OpenStore) -> None:
    assert len(store.hub_id) == 32
    assert open_store().hub_id == store.hub_id


def test_a_name_is_used_once(store: HubStore) -> None:
    store.add_person("mira")
    with pytest.raises(errors.AlreadyExists):
        store.add_person("mira")


@pytest.mark.parametrize("name", ["", " mira", "mira\n", "a\x00b", "x" * 101])
def test_names_are_checked(store: HubStore, name: str) -> None:
    owner = person(store, "olga")
    with pytest.raises(errors.InvalidArgument):
        store.add_person(name)
    with pytest.raises(errors.InvalidArgument):
        store.add_device("olga", name, "token")
    with pytest.raises(errors.InvalidArgument):
        store.create_space(owner, name, "team")


def test_people_see_those_who_share_a_space_with_them(store: HubStore, team: Team) -> None:
    stranger = person(store, "stranger")
    assert [found.name for found in store.people(stranger)] == ["stranger"]
    assert [found.name for found in store.people(team.owner)] == [
        "append",
        "olga",
        "propose",
        "read",
        "write",
    ]


def test_tokens_are_known_by_their_hash_until_they_are_revoked_or_expire(
    store: HubStore, clock: Clock
) -> None:
    store.add_person("mira")
    with pytest.raises(errors.NotFound):
        store.add_device("nobody", "laptop", "t0")
    with pytest.raises(errors.InvalidArgument):
        store.add_device("mira", "laptop", "t0", expires_at="tomorrow")
    phone = store.add_device("mira", "phone", "t1")
    store.add_device("mira", "kiosk", "t2", limit="read", expires_at="2026-05-28T20:26:50Z")
    with pytest.raises(errors.AlreadyExists):
        store.add_device("mira", "copy", "t1")
    assert store.authenticate("t1") == Caller("mira", "", phone)
    kiosk = store.authenticate("t2")
    assert kiosk is not None
    assert kiosk.limit == "read"
    assert store.authenticate("t3") is None
    clock.seconds += 10
    assert store.authenticate("t2") is None
    store.revoke_device(Caller("mira", "", phone), phone)
    assert store.authenticate("t1") is None


def test_devices_are_listed_with_the_time_they_were_last_seen(store: HubStore, clock: Clock) -> None:
    caller = person(store, "mira")
    clock.seconds += 30
    person(store, "other")
    store.authenticate(hashlib.sha256(b"mira 0").hexdigest())  # too soon to be written again
    [device] = store.devices(caller)
    assert (device.id, device.name, device.person, device.limit) == (
        caller.device,
        "mira's laptop",
        "mira",
        "owner",
    )
    assert (device.created_at, device.last_seen_at) == ("2026-05-28T20:26:40Z",) * 2
    assert (device.expires_at, device.revoked_at, device.acknowledged) == (None, None, -1)
    clock.seconds += 31
    store.authenticate(hashlib.sha256(b"mira 0").hexdigest())
    assert store.devices(caller)[0].last_seen_at == "2026-05-28T20:27:41Z"
    assert len(store.devices(OPERATOR)) == 2


def test_people_revoke_only_their_own_devices(store: HubStore) -> None:
    mira, other = person(store, "mira"), person(store, "other")
    for device in (other.device, "unknown"):
        with pytest.raises(errors.NotFound):
            store.revoke_device(mira, device)
    with pytest.raises(errors.NotFound):
        store.revoke_device(person(store, "mira", agent="claude"), mira.device)
    store.revoke_device(OPERATOR, other.device)
    revoked = [device.id for device in store.devices(OPERATOR) if device.revoked_at == "2026-05-28T20:26:40Z"]
    assert revoked == [other.device]


def test_devices_of_a_space_tell_what_they_have_applied(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a"), push("b")])
    reader = team.members["read"]
    store.changes(reader, team.space, 0, 10)
    store.acknowledge(team.owner, team.space, 2)
    applied = {device.person: device.acknowledged for device in store.devices(team.owner, team.space)}
    assert applied == {"olga": 2, "read": 0, "propose": -1, "append": -1, "write": -1}
    assert [device.id for device in store.devices(reader, team.space)] == [reader.device]


@pytest.mark.parametrize("kind", get_args(SpaceKind))
@pytest.mark.parametrize("sealed", [False, True])
def test_the_creator_owns_a_space(store: HubStore, kind: SpaceKind, sealed: bool) -> None:
    owner = person(store, "olga")
    space = store.create_space(owner, "notes", kind, sealed)
    assert space == Space(space.id, "notes", kind, sealed, 0, "owner")
    assert store.spaces(owner) == [space]
    with pytest.raises(errors.AlreadyExists):
        store.create_space(owner, "notes", kind)


def test_two_people_can_have_a_space_with_the_same_name(store: HubStore) -> None:
    ids = {store.create_space(person(store, name), "notes", "private").id for name in ("mira", "olga")}
    assert len(ids) == 2


def test_agents_and_limited_devices_create_no_spaces(store: HubStore) -> None:
    for caller in (person(store, "mira", agent="claude"), person(store, "mira", limit="write")):
        with pytest.raises(errors.NotAllowed):
            store.create_space(caller, "notes", "private")


def test_a_private_space_has_one_person(store: HubStore) -> None:
    owner = person(store, "olga")
    person(store, "mira")
    space = store.create_space(owner, "notes", "private").id
    with pytest.raises(errors.InvalidArgument, match="one person"):
        store.set_member(owner, space, "mira", "read")
    with pytest.raises(errors.InvalidArgument, match="one person"):
        store.invite(owner, "c1", space, "read", LATER, person="mira")
    store.invite(owner, "c2", space, "write", LATER)
    redeemed = store.redeem("c2", "somebody", "phone", "t2")
    assert redeemed is not None
    assert (redeemed[0].person, redeemed[0].limit) == ("olga", "write")
    store.set_member(owner, space, "olga", "propose", agent="claude")
    assert [member.agent for member in store.members(owner, space)] == ["", "claude"]


def test_a_space_keeps_an_owner(store: HubStore, team: Team) -> None:
    for right in ("write", None):
        with pytest.raises(errors.InvalidArgument, match="no owner"):
            store.set_member(team.owner, team.space, "olga", right)
    store.set_member(team.owner, team.space, "write", "owner")
    store.set_member(team.owner, team.space, "olga", None)
    assert store.spaces(team.owner) == []


def test_members_leave_and_set_the_rights_of_their_agents(store: HubStore, team: Team) -> None:
    writer = team.members["write"]
    store.set_member(writer, team.space, "write", "append", agent="claude")
    with pytest.raises(errors.NotAllowed):
        store.set_member(writer, team.space, "write", "owner")
    with pytest.raises(errors.NotAllowed):
        store.set_member(team.members["read"], team.space, "read", "write", agent="claude")
    with pytest.raises(errors.NotAllowed):
        store.set_member(writer, team.space, "read", None)
    with pytest.raises(errors.NotFound):
        store.set_member(team.owner, team.space, "nobody", "read")
    with pytest.raises(errors.InvalidArgument):
        store.set_member(team.owner, team.space, "read", "admin")  # type: ignore[arg-type]
    store.set_member(writer, team.space, "write", None)
    assert not [member for member in store.members(team.owner, team.space) if member.person == "write"]


# Invitations


def test_an_invitation_is_used_once(store: HubStore, team: Team) -> None:
    store.invite(team.owner, "code", team.space, "append", LATER)
    redeemed = store.redeem("code", "nora", "laptop", "token")
    assert redeemed is not None
    caller, space = redeemed
    assert caller == store.authenticate("token")
    assert (caller.person, caller.agent, caller.limit, caller.is_admin) == ("nora", "", "owner", False)
    assert space == Space(team.space, "team", "team", False, 0, "append")
    assert store.redeem("code", "eve", "laptop", "other token") is None
    assert store.redeem("unknown", "eve", "laptop", "other token") is None
    assert "eve" not in {person.name for person in store.people(OPERATOR)}


def test_an_invitation_expires(store: HubStore, team: Team, clock: Clock) -> None:
    store.invite(team.owner, "code", team.space, "read", "2026-05-28T20:26:41Z")
    clock.seconds += 1
    assert store.redeem("code", "nora", "laptop", "token") is None
    with pytest.raises(errors.InvalidArgument):
        store.invite(team.owner, "code2", team.space, "read", "soon")


def test_nobody_joins_under_the_name_of_somebody_else(store: HubStore, team: Team) -> None:
    store.invite(team.owner, "open", team.space, "read", LATER)
    with pytest.raises(errors.AlreadyExists):
        store.redeem("open", "write", "laptop", "token")
    store.invite(team.owner, "named", team.space, "read", LATER, person="write")
    with pytest.raises(errors.AlreadyExists):
        store.redeem("named", "", "laptop", "token")
    assert store.authenticate("token") is None
    assert store.redeem("open", "nora", "laptop", "token") is not None  # the code was not used up


def test_a_person_invites_own_devices_and_agents(store: HubStore, team: Team) -> None:
    writer = team.members["write"]
    store.invite(writer, "phone", team.space, "append", LATER, person="write")
    store.invite(writer, "agent", team.space, "propose", LATER, person="write", agent="claude")
    with pytest.raises(errors.NotAllowed):
        store.invite(writer, "more", team.space, "owner", LATER, person="write")
    with pytest.raises(errors.NotAllowed):
        store.invite(writer, "others", team.space, "read", LATER)
    phone, agent = (store.redeem(code, "ignored", code, f"token of {code}") for code in ("phone", "agent"))
    assert phone is not None
    assert agent is not None
    assert phone[0]._replace(device="") == Caller("write", "", "", "append")
    assert agent[0]._replace(device="") == Caller("write", "claude", "", "propose")
    rights = {(member.person, member.agent): member.right for member in store.members(team.owner, team.space)}
    assert (rights["write", ""], rights["write", "claude"]) == ("write", "propose")
    assert one(store.put(phone[0], team.space, [push("a")])).status == "proposed"


def test_an_agent_needs_a_person_in_its_invitation(store: HubStore, team: Team) -> None:
    with pytest.raises(errors.InvalidArgument):
        store.invite(team.owner, "code", team.space, "read", LATER, agent="claude")
    with pytest.raises(errors.InvalidArgument):
        store.invite(team.owner, "code", team.space, "owner", LATER, person="olga", agent="claude")


def test_a_person_on_the_hub_joins_another_space_with_the_own_token(store: HubStore, team: Team) -> None:
    store.add_person("nora")
    device = store.add_device("nora", "laptop", "token")
    store.invite(team.owner, "code", team.space, "write", LATER)
    redeemed = store.redeem("code", "ignored", "ignored", "token")
    assert redeemed is not None
    assert (redeemed[0], redeemed[1] and redeemed[1].right) == (Caller("nora", "", device), "write")
    assert len(store.devices(redeemed[0])) == 1
    store.invite(team.owner, "other", team.space, "write", LATER, person="somebody")
    with pytest.raises(errors.InvalidArgument):
        store.redeem("other", "", "", "token")
    store.revoke_device(OPERATOR, device)
    with pytest.raises(errors.DeviceRevoked):
        store.redeem("other", "", "", "token")


def test_an_admin_invites_to_the_hub(store: HubStore, team: Team) -> None:
    with pytest.raises(errors.NotAllowed):
        store.invite(team.owner, "code", "", "owner", LATER)
    store.invite(OPERATOR, "code", "", "owner", LATER)
    redeemed = store.redeem("code", "nora", "laptop", "token")
    assert redeemed is not None
    assert (redeemed[0].person, redeemed[1]) == ("nora", None)


def test_open_invitations_end_with_their_author(store: HubStore, team: Team) -> None:
    store.set_member(team.owner, team.space, "write", "owner")
    second = person(store, "olga")
    store.invite(team.members["write"], "one", team.space, "read", LATER)
    store.invite(second, "two", team.space, "read", LATER)
    store.set_member(team.owner, team.space, "write", None)
    store.revoke_device(team.owner, second.device)
    assert store.redeem("one", "nora", "laptop", "token") is None
    assert store.redeem("two", "nora", "laptop", "token") is None


def test_a_smaller_right_ends_the_open_invitations_of_a_member(store: HubStore, team: Team) -> None:
    writer = team.members["write"]
    store.invite(writer, "own", team.space, "write", LATER, person="write")
    store.set_member(team.owner, team.space, "write", "read")
    assert store.redeem("own", "", "phone", "token") is None
    assert store.space(writer, team.space).right == "read"
    store.set_member(team.owner, team.space, "write", "owner")
    store.invite(writer, "other", team.space, "owner", LATER)
    store.set_member(team.owner, team.space, "write", "write")
    assert store.redeem("other", "nora", "laptop", "token") is None


# Proposals


def test_an_accepted_proposal_is_a_revision_of_its_author(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    proposer, writer = team.members["propose"], team.members["write"]
    first = one(store.put(proposer, team.space, [push("a", 1, text="better")]))
    assert (first.status, first.proposal) == ("proposed", 1)
    assert one(store.put(proposer, team.space, [push("a", 1, text="better")])).proposal == 1
    [proposal] = store.proposals(writer, team.space)
    assert (proposal.person, proposal.push.bundle, proposal.decision) == ("propose", b"better", "")
    result = store.settle(writer, team.space, 1, True)
    assert result == PushResult("a", "stored", 2, 2)
    assert store.settle(writer, team.space, 1, True) == result
    head = store.get(writer, team.space, "a")
    assert head is not None
    assert (head.bundle, head.person, head.device) == (b"better", "propose", proposer.device)
    assert store.proposals(writer, team.space) == []
    [own] = store.proposals(proposer, team.space)
    assert (own.decision, own.decided_by) == ("accepted", "write")
    with pytest.raises(errors.InvalidArgument, match="already accepted"):
        store.settle(writer, team.space, 1, False)


def test_a_rejected_proposal_changes_no_page(store: HubStore, team: Team) -> None:
    store.put(team.members["propose"], team.space, [push("a")])
    assert store.settle(team.owner, team.space, 1, False) is None
    assert store.settle(team.owner, team.space, 1, False) is None
    assert store.changes(team.owner, team.space, 0, 10).changes == ()
    with pytest.raises(errors.NotFound):
        store.settle(team.owner, team.space, 2, False)


def test_a_proposal_on_an_old_revision_stays_open(store: HubStore, team: Team) -> None:
    proposer = team.members["propose"]
    store.put(proposer, team.space, [push("a", text="mine")])
    store.put(team.owner, team.space, [push("a", text="other")])
    result = store.settle(team.owner, team.space, 1, True)
    assert result is not None
    assert result.status == "stale"
    assert [proposal.decision for proposal in store.proposals(team.owner, team.space)] == [""]
    assert one(store.put(proposer, team.space, [push("a", text="again")])).status == "stale"


def test_members_who_may_not_decide_see_their_own_proposals(store: HubStore, team: Team) -> None:
    store.put(team.members["propose"], team.space, [push("a")])
    assert len(store.proposals(team.members["propose"], team.space)) == 1
    assert store.proposals(team.members["append"], team.space) == []


def test_an_answer_of_large_proposals_is_cut(
    store: HubStore, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.hub.store.MOST_ANSWER_BYTES", 25)
    for name in "abcd":
        store.put(team.members["propose"], team.space, [push(name, text=name * 10)])
    proposals = store.proposals(team.owner, team.space)
    assert [proposal.push.uuid for proposal in proposals] == ["c", "d"]
    for proposal in proposals:
        store.settle(team.owner, team.space, proposal.id, False)
    assert [proposal.push.uuid for proposal in store.proposals(team.owner, team.space)] == ["a", "b"]
    monkeypatch.setattr("quaid.hub.store.MOST_ANSWER_BYTES", 5)
    assert len(store.proposals(team.owner, team.space)) == 1


# Erasing


def test_a_purge_erases_all_revisions_and_proposals(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", text="secret", slug="people/mira"), push("b")])
    store.put(team.members["propose"], team.space, [push("a", 1, text="secret two")])
    store.put(team.owner, team.space, [push("a", 1, text="secret three", slug="people/mira")])
    store.put_vectors(team.owner, team.space, "m", [(b"hash", b"secret vector")])
    purge = store.purge(team.owner, team.space, "a")
    assert (purge.uuid, purge.seq, purge.person, purge.pending) == ("a", 4, "olga", ())
    for revision in (1, 2, None):
        change = store.get(team.owner, team.space, "a", revision)
        assert change is not None
        assert (change.bundle, change.slug) == (b"", "")
    first = store.get(team.owner, team.space, "a", 1)
    assert first is not None
    assert first.hash == hashlib.sha256(b"secret").hexdigest()
    change = store.changes(team.owner, team.space, 3, 10).changes[0]
    assert (change.uuid, change.seq, change.purged, change.deleted) == ("a", 4, True, True)
    assert store.proposals(team.owner, team.space) == []
    [proposal] = store.proposals(team.members["propose"], team.space)
    assert (proposal.push.bundle, proposal.decision, proposal.decided_by) == (b"", "rejected", "olga")
    assert store.get_vectors(team.owner, team.space, "m", [b"hash"]) == []
    assert store.get(team.owner, team.space, "b") is not None


def test_a_purged_page_cannot_come_back(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a", slug="x")])
    store.put(team.members["propose"], team.space, [push("a", 1, slug="x")])
    store.purge(team.owner, team.space, "a")
    for base in (0, 1, 2):
        assert one(store.put(team.owner, team.space, [push("a", base)])).status == "purged"
    with pytest.raises(errors.InvalidArgument, match="already rejected"):
        store.settle(team.owner, team.space, 1, True)
    assert one(store.put(team.owner, team.space, [push("b", slug="x")])).status == "stored"


def test_a_purge_names_the_devices_that_have_not_applied_it(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    reader, writer, lost = team.members["read"], team.members["write"], person(store, "write")
    for caller in (team.owner, reader, writer, lost):
        store.changes(caller, team.space, 0, 10)
    store.acknowledge(team.owner, team.space, 1)
    store.acknowledge(reader, team.space, 1)
    store.revoke_device(writer, lost.device)
    purge = store.purge(team.owner, team.space, "a")
    assert {device.id for device in purge.pending} == {reader.device, writer.device, lost.device}
    store.acknowledge(reader, team.space, purge.seq)
    [listed] = store.purges(writer, team.space)
    assert {device.id for device in listed.pending} == {writer.device, lost.device}
    assert store.purge(team.owner, team.space, "a") == listed


def test_writers_erase_pages_that_only_they_wrote(store: HubStore, team: Team) -> None:
    writer = team.members["write"]
    store.put(writer, team.space, [push("a"), push("b")])
    store.put(team.owner, team.space, [push("b", 1)])
    assert store.purge(writer, team.space, "a").seq == 4
    with pytest.raises(errors.NotAllowed):
        store.purge(writer, team.space, "b")
    with pytest.raises(errors.NotFound):
        store.purge(team.owner, team.space, "c")
    store.set_member(writer, team.space, "write", "write", agent="claude")
    agent = person(store, "write", agent="claude")
    store.put(agent, team.space, [push("c")])
    with pytest.raises(errors.NotAllowed):
        store.purge(agent, team.space, "c")


def test_what_a_device_has_applied_never_decreases(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a"), push("b"), push("c")])
    for seq, expected in ((2, 2), (1, 2), (-5, 2), (99, 3), (3, 3)):
        store.acknowledge(team.owner, team.space, seq)
        own = [device for device in store.devices(team.owner, team.space) if device.person == "olga"]
        assert own[0].acknowledged == expected


# Sealed spaces and vectors


def test_a_sealed_space_has_no_slugs_and_no_vectors_on_the_hub(store: HubStore) -> None:
    owner = person(store, "olga")
    space = store.create_space(owner, "notes", "private", sealed=True).id
    with pytest.raises(errors.InvalidArgument, match="slug"):
        store.put(owner, space, [push("a", slug="people/mira")])
    with pytest.raises(errors.InvalidArgument, match="sealed"):
        store.put_vectors(owner, space, "m", [(b"h", b"v")])
    results = store.put(owner, space, [push("a", slug=""), push("b", slug="")])
    assert [result.status for result in results] == ["stored", "stored"]


def test_vectors_are_found_by_model_and_hash(store: HubStore, team: Team) -> None:
    vectors = [(b"h%d" % number, b"v%d" % number) for number in range(600)]
    assert store.put_vectors(team.owner, team.space, "m", vectors) == 600
    assert store.put_vectors(team.members["append"], team.space, "m", [*vectors[:3], (b"new", b"n")]) == 1
    assert store.put_vectors(team.owner, team.space, "m", [(b"new", b"forged")]) == 0
    hashes = [hash for hash, _ in vectors]
    assert sorted(store.get_vectors(team.members["read"], team.space, "m", [*hashes, b"none"])) == sorted(
        vectors
    )
    assert store.get_vectors(team.owner, team.space, "m", [b"new"]) == [(b"new", b"n")]
    assert store.get_vectors(team.owner, team.space, "other", hashes) == []
    for wrong in ([(b"h" * 65, b"v")], [(b"h", b"v" * 70_000)], [(b"h", b"v")] * 10_001):
        with pytest.raises(errors.InvalidArgument):
            store.put_vectors(team.owner, team.space, "m", wrong)
    with pytest.raises(errors.InvalidArgument):
        store.get_vectors(team.owner, team.space, "m", [b"h"] * 10_001)


# Audit


def test_every_change_is_in_the_audit_log(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    store.put(team.members["propose"], team.space, [push("a", 1)])
    store.settle(team.members["write"], team.space, 1, True)
    store.invite(team.owner, "code", team.space, "read", LATER)
    store.redeem("code", "nora", "laptop", "token")
    store.put(team.owner, team.space, [push("a", 2, deleted=True)])
    store.purge(team.owner, team.space, "a")
    entries = store.audit(team.owner, team.space)
    assert [(entry.number, entry.person, entry.action, entry.subject) for entry in entries[4:]] == [
        (5, "olga", "put", "a 1"),
        (6, "propose", "propose", "a 1"),
        (7, "propose", "put", "a 2"),
        (8, "write", "accepted", "1"),
        (9, "olga", "invite", "read"),
        (10, "nora", "redeem", "olga"),
        (11, "olga", "delete", "a 3"),
        (12, "olga", "purge", "a"),
    ]
    assert [entry.action for entry in store.audit(team.owner, team.space, 2, 2)] == ["set member"] * 2
    assert store.audit(OPERATOR)[0].action == "add person"
    assert store.verify_audit() == (len(entries) + len(store.audit(OPERATOR)), None)


TAMPERING = {
    "changed": "UPDATE audit SET person = 'eve' WHERE space = ? AND number = 6",
    "missing": "DELETE FROM audit WHERE space = ? AND number = 6",
    "missing at the end": "DELETE FROM audit WHERE space = ? AND number = 9",
    "all missing": "DELETE FROM audit WHERE space = ?",
    "hash replaced": "UPDATE audit SET hash = 'x' WHERE space = ? AND number = 9",
    "end forgotten": "UPDATE spaces SET audit_number = 8 WHERE id = ?",
}


@pytest.mark.parametrize(("name", "number"), list(zip(TAMPERING, (6, 6, 9, 1, 9, 9), strict=True)))
def test_a_changed_audit_log_is_noticed(store: HubStore, team: Team, name: str, number: int) -> None:
    store.put(team.owner, team.space, [push(f"p{number}") for number in range(5)])
    assert store.verify_audit()[1] is None
    with store._write() as tx:
        tx.many(TAMPERING[name], [(team.space,)])
    assert store.verify_audit()[1] == (team.space, number)


def test_a_space_that_was_removed_with_its_audit_log_is_noticed(store: HubStore, team: Team) -> None:
    store.put(team.owner, team.space, [push("a")])
    tables = "acknowledgements vectors proposals heads revisions invitations members audit".split()
    with store._write() as tx:
        for condition in [*(f"{table} WHERE space" for table in tables), "spaces WHERE id"]:
            tx.many(f"DELETE FROM {condition} = ?", [(team.space,)])
    assert store.verify_audit()[1] == (team.space, 1)


# Several writers


def test_concurrent_writers_lose_nothing(store: HubStore, team: Team, open_store: OpenStore) -> None:
    """Of 16 writers with the same base one is first, and the numbers of changes have no gaps."""
    stores, writers, rounds = [store, open_store()], 16, 6
    store.put(team.owner, team.space, [push("contested")])
    callers = [person(store, "write") for _ in range(writers)]
    start = threading.Barrier(writers)
    won: list[list[int]] = [[] for _ in range(writers)]
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            hub = stores[number % 2]
            for turn in range(rounds):
                start.wait(60)
                pushes = [
                    push("contested", turn + 1, text=f"{number} {turn}", slug="contested"),
                    push(f"own-{number}", turn),
                ]
                contested, own = hub.put(callers[number], team.space, pushes)
                assert (own.status, own.revision) == ("stored", turn + 1)
                if contested.status == "stored":
                    won[number].append(turn)
                else:
                    assert contested.head is not None
                    assert (contested.status, contested.head.revision) == ("stale", turn + 2)
        except BaseException as problem:
            problems.append(problem)
            start.abort()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(turn for turns in won for turn in turns) == list(range(rounds))
    with store._read() as tx:
        rows = tx.rows("SELECT seq FROM revisions WHERE space = ? ORDER BY seq", (team.space,))
    assert [row[0] for row in rows] == list(range(1, 1 + rounds * (writers + 1) + 1))
    assert store.verify_audit()[1] is None


def test_a_reader_never_sees_a_gap(store: HubStore, team: Team) -> None:
    """Whatever a reader has got up to a number stays complete while others write."""
    done = threading.Event()

    def write() -> None:
        for number in range(60):
            store.put(team.owner, team.space, [push(f"a{number}"), push(f"b{number}")])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    read: list[int] = []
    while not done.is_set() or not read or read[-1] < 120:
        page = store.changes(team.owner, team.space, read[-1] if read else 0, 7)
        read += [change.seq for change in page.changes]
    writer.join()
    assert read == list(range(1, 121))


def test_one_refused_call_does_not_spoil_those_stored_with_it(store: HubStore, team: Team) -> None:
    stranger = person(store, "stranger")
    answers: dict[str, object] = {}
    start = threading.Barrier(9)

    def work(name: str, caller: Caller, pushes: list[Push]) -> None:
        start.wait(60)
        try:
            answers[name] = store.put(caller, team.space, pushes)[0].status
        except errors.QuaidError as error:
            answers[name] = type(error).__name__

    jobs = [(f"good {number}", team.owner, [push(f"a{number}")]) for number in range(6)]
    jobs += [("foreign", stranger, [push("b")]), ("forged", team.owner, [push("c")._replace(hash="x")])]
    jobs += [("reader", team.members["read"], [push("d")])]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {"foreign": "NotFound", "forged": "InvalidArgument", "reader": "denied"}
    assert answers == {f"good {number}": "stored" for number in range(6)} | expected
    assert store.changes(team.owner, team.space, 0, 10).last_seq == 6


# Versions of the database


def test_a_newer_database_is_refused(store: HubStore, open_store: OpenStore) -> None:
    with store._write() as tx:
        tx.many("UPDATE hub SET schema_version = ?", [(99,)])
    with pytest.raises(errors.NewerDatabase, match="99"):
        open_store()


def test_an_older_database_is_upgraded(
    store: HubStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.hub.store.SCHEMA_VERSION", 2)
    monkeypatch.setattr("quaid.hub.store.MIGRATIONS", {2: "ALTER TABLE people ADD COLUMN email TEXT"})
    store.add_person("mira")
    upgraded = open_store()
    with upgraded._read() as tx:
        assert tx.rows("SELECT name, email FROM people") == [("mira", None)]
        assert tx.rows("SELECT schema_version FROM hub") == [(2,)]

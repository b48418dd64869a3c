"""Nothing is lost if a sync ends at any point, an answer is lost, or a hub comes back from an old backup."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spaces.laptops import Laptop, bundles, settle_all

from quaid.errors import HubUnreachable
from quaid.hub.store import SqliteHubStore
from quaid.model.bundle import Bundle, digest, encode
from quaid.spaces.protocol import Change, ChangePage, Push
from quaid.spaces.replica import new_key
from quaid.storage.sqlite.connection import Database

Make = Callable[[str, str], Laptop]


class Ended(BaseException):
    """Stands for the end of a process."""


class FlakyHub:
    """A connection that fails before or after the request with a given number."""

    def __init__(self, hub: Any, fail_at: int, *, after: bool) -> None:
        self._hub, self._left, self._after = hub, fail_at, after

    @property
    def hub_id(self) -> str:
        return str(self._hub.hub_id)

    def __getattr__(self, name: str) -> Any:
        request = getattr(self._hub, name)

        def call(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise HubUnreachable(hub="hub", problem="refused")
            answer = request(*arguments)
            if self._left == 0:
                raise HubUnreachable(hub="hub", problem="the answer was lost")
            return answer

        return call


class LostPush(FlakyHub):
    """A connection that loses the answer to the first push."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub, 0, after=True)

    def __getattr__(self, name: str) -> Any:
        self._left = 1 if name == "push" else 0
        return super().__getattr__(name)


@pytest.fixture
def pair(laptop: Make) -> tuple[Laptop, Laptop]:
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    for name in ("ada", "bob", "eve"):
        mira.put(f"people/{name}", f"# {name.title()}\n\nLives in London.")
    mira.share()
    noor.join(mira)
    settle_all(mira, noor)
    return mira, noor


def edit_both(mira: Laptop, noor: Laptop) -> None:
    mira.run("timeline-add", slug="people/ada", date="2026-01-01", summary="From Mira")
    mira.run("rename", slug="people/eve", new_slug="people/eva")
    mira.put("people/new", "# New\n\nMira's.")
    noor.run("timeline-add", slug="people/ada", date="2026-01-02", summary="From Noor")
    noor.put("team::people/new", "# New\n\nNoor's.")
    noor.run("put", slug="people/bob", append="More.")
    mira.sync("default")


def check(mira: Laptop, noor: Laptop) -> None:
    settle_all(mira, noor)
    assert bundles(mira, "default") == bundles(noor)
    assert noor.slugs() == ["people/ada", "people/bob", "people/eva", "people/new", "people/new-2"]
    timeline = noor.run("get", slug=["people/ada"])["timeline"]
    assert (timeline.count("From Mira"), timeline.count("From Noor")) == (1, 1)
    assert {noor.text("people/new"), noor.text("people/new-2")} == {"# New\n\nMira's.", "# New\n\nNoor's."}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 9))
def test_a_request_that_fails_or_whose_answer_is_lost_is_repeated(
    pair: tuple[Laptop, Laptop], number: int, after: bool
) -> None:
    mira, noor = pair
    edit_both(mira, noor)
    real, noor.hub = noor.hub, FlakyHub(noor.hub, number, after=after)  # type: ignore[assignment]
    noor.sync()
    noor.hub = real
    check(mira, noor)


@pytest.mark.parametrize("edit_again", [False, True])
def test_a_push_without_an_answer_does_not_bring_back_what_another_device_removed(
    pair: tuple[Laptop, Laptop], edit_again: bool
) -> None:
    mira, noor = pair
    noor.put("team::people/ada", "# Ada\n\nLives in London.\n\nA wrong rumour.", expected_version=1)
    real, noor.hub = noor.hub, LostPush(noor.hub)  # type: ignore[assignment]
    assert "lost" in noor.sync().problem
    noor.hub = real
    mira.sync("default")
    version = mira.run("get", slug=["people/ada"])["version"]
    mira.put("people/ada", "# Ada\n\nLives in London.", expected_version=version)
    mira.sync("default")
    if edit_again:
        text = "# Ada\n\nLives in London.\n\nA wrong rumour.\n\nMet in May."
        noor.put("team::people/ada", text, expected_version=2)
    settle_all(mira, noor)
    assert "rumour" not in noor.text("people/ada")
    assert ("Met in May" in mira.text("people/ada")) == edit_again


@pytest.mark.parametrize("number", range(1, 10))
def test_a_process_that_ends_before_or_after_any_write_loses_nothing(
    pair: tuple[Laptop, Laptop], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mira, noor = pair
    edit_both(mira, noor)
    write = Database.write
    left = [number]

    def failing(self: Database, work: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise Ended
        return write(self, work)

    monkeypatch.setattr(Database, "write", failing)
    try:
        noor.sync()
    except Ended:
        pass
    else:
        assert left[0] > 0
    monkeypatch.undo()
    check(mira, noor)


@pytest.fixture
def restore(tmp_path: Path, hub: SqliteHubStore) -> Iterator[Callable[[Laptop, Laptop], None]]:
    """Return a function that puts the first copy of the hub's database in place again."""
    opened: list[SqliteHubStore] = []

    def bring_back(*laptops: Laptop) -> None:
        shutil.copyfile(tmp_path / "backup.db", tmp_path / "restored.db")
        opened.append(SqliteHubStore(str(tmp_path / "restored.db")))
        for laptop in laptops:
            laptop.hub.store = opened[-1]

    yield bring_back
    for store in opened:
        store.close()


def test_a_hub_restored_from_a_backup_gets_the_newer_pages_again(
    pair: tuple[Laptop, Laptop], hub: SqliteHubStore, tmp_path: Path, restore: Callable[..., None]
) -> None:
    mira, noor = pair
    hub.backup(str(tmp_path / "backup.db"))
    mira.put("people/later", "# Later")
    noor.run("put", slug="people/ada", append="She writes.")
    settle_all(mira, noor)
    before = bundles(noor)
    restore(mira, noor)
    assert noor.sync().restored
    settle_all(mira, noor)
    assert bundles(mira, "default") == bundles(noor) == before
    assert len(mira.hub.changes(mira.hub.spaces()[0].id, 0).changes) == 4


def test_a_hub_that_went_on_after_a_restore_keeps_both_sides(
    pair: tuple[Laptop, Laptop],
    hub: SqliteHubStore,
    tmp_path: Path,
    restore: Callable[..., None],
    laptop: Make,
) -> None:
    mira, noor = pair
    omar = laptop("omar", "tablet")
    omar.join(mira)
    hub.backup(str(tmp_path / "backup.db"))
    mira.put("people/ada", "# Ada\n\nLives in Paris.")
    mira.sync("default")
    noor.sync()
    restore(mira, noor, omar)
    omar.run("put", slug="team::people/ada", compiled_truth="# Ada\n\nLives in Rome.")
    for number in range(3):
        omar.run("put", slug="team::people/bob", append=f"Omar {number}.")
        omar.sync()
    settle_all(mira, noor, omar)
    texts = {device.text("people/ada") for device in (mira, noor, omar)}
    assert len(texts) == 1
    (text,) = texts
    assert "Paris" in text
    assert "Rome" in text
    assert bundles(mira, "default") == bundles(noor) == bundles(omar)


def test_a_hub_that_sends_other_bytes_changes_nothing(pair: tuple[Laptop, Laptop]) -> None:
    mira, noor = pair
    mira.run("put", slug="people/ada", append="She writes.")
    mira.sync("default")
    before = bundles(noor)

    class LyingHub(FlakyHub):
        def changes(self, space: str, after: int, limit: int) -> ChangePage:
            page: ChangePage = self._hub.changes(space, after, limit)
            return page._replace(changes=tuple(map(self.change, page.changes)))

        def change(self, change: Change) -> Change:
            return change._replace(bundle=change.bundle.replace(b"London", b"Madrid"))

    real, noor.hub = noor.hub, LyingHub(noor.hub, 0, after=False)  # type: ignore[assignment]
    assert "does not match its hash" in noor.sync().problem
    assert bundles(noor) == before
    noor.hub = real
    settle_all(mira, noor)


class EndlessHub(FlakyHub):
    """A hub whose numbers go back at each request."""

    def changes(self, space: str, after: int, limit: int) -> ChangePage:
        page: ChangePage = self._hub.changes(space, after, limit)
        return page._replace(last_seq=-1)


def test_a_hub_whose_numbers_always_go_back_is_refused(pair: tuple[Laptop, Laptop]) -> None:
    mira, noor = pair
    before = bundles(noor)
    real, noor.hub = noor.hub, EndlessHub(noor.hub, 0, after=False)  # type: ignore[assignment]
    assert "go back again" in noor.sync().problem
    noor.hub = real
    settle_all(mira, noor)
    assert bundles(noor) == before


def test_a_deletion_with_an_old_or_wrong_time_keeps_the_page_for_30_days(pair: tuple[Laptop, Laptop]) -> None:
    _, noor = pair
    before = bundles(noor)

    class OldHub(FlakyHub):
        at = "2001-01-01T00:00:00Z"

        def changes(self, space: str, after: int, limit: int) -> ChangePage:
            page: ChangePage = self._hub.changes(space, after, limit)
            deleted = encode(before[uuid]._replace(frontmatter={}, truth="", timeline="", deleted=True))
            change: Change = self._hub.get(space, uuid)
            forged = change._replace(
                seq=after + 1,
                revision=9,
                hash=digest(deleted),
                bundle=deleted,
                deleted=True,
                at=self.at,
            )
            return page._replace(changes=(forged,), last_seq=after + 1, is_complete=True, after_hash="")

    uuid = next(uuid for uuid, bundle in before.items() if bundle.slug == "people/ada")
    noor.hub = OldHub(noor.hub, 0, after=False)  # type: ignore[assignment]
    noor.hub.at = "soon"  # type: ignore[attr-defined]
    assert "no valid time" in noor.sync().problem
    noor.hub.at = "2001-01-01T00:00:00Z"  # type: ignore[attr-defined]
    assert noor.sync().pulled == 1
    assert noor.brain.db.rows("SELECT substr(quarantined_at, 1, 10) FROM pages WHERE uuid = ?", (uuid,)) == [
        ("2026-04-25",)
    ]


def test_a_page_with_the_uuid_of_another_collection_does_not_stop_the_others(
    pair: tuple[Laptop, Laptop],
) -> None:
    mira, noor = pair
    noor.put("default::diary", "# Diary\n\nMine.")
    [(uuid,)] = noor.brain.db.rows("SELECT uuid FROM pages WHERE slug = 'diary'")
    [space] = mira.hub.spaces()
    forged = encode(Bundle(str(uuid), "people/zoe", {}, "# Zoe", ""))
    mira.hub.push(space.id, [Push(str(uuid), 0, digest(forged), forged, "people/zoe")])
    mira.put("people/max", "# Max")
    mira.sync("default")
    report = noor.sync()
    assert report.problems == ("diary: people/zoe has the uuid of a page in default",)
    assert "people/max" in noor.slugs()
    assert noor.text("default::diary") == "# Diary\n\nMine."
    assert noor.sync().problems == report.problems


def test_a_page_of_a_sealed_space_that_cannot_be_read_does_not_stop_the_others(laptop: Make) -> None:
    pytest.importorskip("nacl")
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    key = new_key()
    mira.put("people/ada", "# Ada")
    mira.share(key=key)
    noor.join(mira, key=key)
    [space] = mira.hub.spaces()
    junk, uuid = b"not encrypted", "01890000-0000-7000-8000-000000000001"
    mira.hub.push(space.id, [Push(uuid, 0, digest(junk), junk, "")])
    mira.put("people/max", "# Max")
    noor.put("team::people/zoe", "# Zoe")
    for _ in range(2):
        for report in (mira.sync("default"), noor.sync()):
            assert report.problem == ""
            assert report.problems == (f"{uuid}: it cannot be decrypted with the key of this space",)
    assert mira.slugs("default") == noor.slugs() == ["people/ada", "people/max", "people/zoe"]


def test_bundles_that_a_hub_swaps_in_a_sealed_space_are_not_applied(laptop: Make) -> None:
    pytest.importorskip("nacl")
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    key = new_key()
    for name in ("ada", "bob"):
        mira.put(f"people/{name}", f"# {name.title()}")
    mira.share(key=key)

    class SwappingHub(FlakyHub):
        def changes(self, space: str, after: int, limit: int) -> ChangePage:
            page: ChangePage = self._hub.changes(space, after, limit)
            swapped = [
                change._replace(bundle=other.bundle, hash=other.hash)
                for change, other in zip(page.changes, page.changes[::-1], strict=True)
            ]
            return page._replace(changes=tuple(swapped))

    real = noor.hub
    noor.hub = SwappingHub(real, 0, after=False)  # type: ignore[assignment]
    noor.join(mira, key=key)
    assert noor.slugs() == []
    noor.hub = real
    assert noor.sync().problems == ()
    assert noor.slugs() == ["people/ada", "people/bob"]


class SlowHub(FlakyHub):
    """A connection whose changes arrive after another process of the device has synced newer ones."""

    def __init__(self, hub: Any, meanwhile: Callable[[], None]) -> None:
        super().__init__(hub, 0, after=False)
        self._meanwhile = [meanwhile]

    def changes(self, space: str, after: int, limit: int) -> ChangePage:
        page: ChangePage = self._hub.changes(space, after, limit)
        while self._meanwhile:
            self._meanwhile.pop()()
        return page


@pytest.mark.parametrize("in_folder", [False, True])
def test_changes_that_another_process_has_overtaken_are_not_merged(
    laptop: Make, tmp_path: Path, in_folder: bool
) -> None:
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    mira.put("people/ada", "# Ada\n\nLives in London.")
    mira.share()
    if in_folder:
        (tmp_path / "notes").mkdir()
        noor.run("collection add", name="team", path=str(tmp_path / "notes"))
    noor.join(mira)
    real = noor.hub

    def move_again() -> None:
        noor.hub = real
        mira.put("people/ada", "# Ada\n\nLives in Rome.")
        mira.sync("default")
        assert noor.sync().pulled == 1
        noor.hub = slow  # type: ignore[assignment]

    slow = SlowHub(real, move_again)
    mira.put("people/ada", "# Ada\n\nLives in Paris.")
    mira.sync("default")
    noor.hub = slow  # type: ignore[assignment]
    report = noor.sync()
    assert (report.problem, report.conflicts, report.pulled, report.pushed) == ("", (), 0, 0)
    assert noor.text("team::people/ada") == "# Ada\n\nLives in Rome."


def test_a_conflict_names_one_author_only_if_the_page_was_changed_once(pair: tuple[Laptop, Laptop]) -> None:
    mira, noor = pair
    for slug in ("people/ada", "people/bob"):
        mira.put(slug, "# P\n\nLives in Oslo.", expected_version=1)
        noor.put(f"team::{slug}", "# P\n\nLives in Paris.", expected_version=1)
    mira.sync("default")
    mira.run("timeline-add", slug="people/bob", date="2026-01-01", summary="Moved")
    mira.sync("default")
    noor.sync()
    assert "mira on laptop" in noor.text("people/ada")
    assert "others" in noor.text("people/bob")
    assert "mira" not in noor.text("people/bob")

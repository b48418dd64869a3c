"""Devices that edit the same pages, lose answers, are killed and come back: all have the same pages in the end.

A history is a list of steps that Hypothesis makes and shrinks. Each edit writes a word that occurs nowhere else. In
the end every word is on every device, unless an edit removed it that had it on its page before.
"""

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings, strategies as st
from tests.hub.store_hub import all_pages, join

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import HubUnreachable, PageMoved, QuaidError
from quaid.hub.direct import StoreHub
from quaid.hub.store import SqliteHubStore
from quaid.operations import dispatch, spaces as operations
from quaid.spaces.protocol import Caller, InvitationLink, Push
from quaid.spaces.replica import Replica, SyncedSpace
from quaid.storage.collections import Collections
from quaid.storage.spaces import Spaces
from quaid.storage.sqlite.connection import Database

LONG = os.environ.get("QUAID_LONG") == "1"
HISTORIES = round(2_000 * float(os.environ.get("QUAID_SHARE") or 1)) if LONG else 200
DEVICES, FEW_DEVICES = 10, 5
NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z
URL = "http://localhost:8765"
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Histories are in memory where that is possible: no test cuts the power, and a thousand commits take their time."""
WORD = re.compile(r"w\d+x")
PAGES = ("p/one", "p/two", "p/three")


class Killed(BaseException):
    """The device was killed."""


class Fault(NamedTuple):
    """What goes wrong during a sync: at the request or transaction with this number."""

    kind: str
    number: int


class Step(NamedTuple):
    """An edit or a sync of a device."""

    action: str
    device: int
    page: int = 0
    fault: Fault | None = None


class FaultyHub:
    """A connection that loses requests and answers, sends requests twice, and keeps pushes to repeat them later.

    It can also let another device sync just before a request.
    """

    def __init__(
        self,
        hub: StoreHub,
        fault: Fault | None,
        sent: "list[tuple[Caller, str, Sequence[Push]]]",
        other: Callable[[], object],
    ) -> None:
        self._hub, self._fault, self._sent, self._other = hub, fault, sent, other
        self._calls = itertools.count()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._hub, name)
        return self._faulty(name, method) if callable(method) else method

    def _faulty(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name == "push":
                self._sent.append((self._hub.caller, args[0], args[1]))
            kind = self._fault.kind if self._fault and next(self._calls) == self._fault.number else ""
            if kind == "request lost":
                raise HubUnreachable(hub=URL, problem="request lost")
            if kind == "killed before request":
                raise Killed
            if kind == "overtaken":
                self._other()
            answer = method(*args, **options)
            if kind == "answer lost":
                raise HubUnreachable(hub=URL, problem="answer lost")
            if kind == "killed after request":
                raise Killed
            if kind == "sent twice":
                answer = method(*args, **options)
            return answer

        return call


FAULTS = (
    "overtaken",
    "overtaken",
    "request lost",
    "answer lost",
    "sent twice",
    "killed before request",
    "killed after request",
    "killed in transaction",
    "killed after transaction",
)


class Device:
    """A memory with a copy of the space. It is opened when it is needed, and again after it was killed."""

    def __init__(self, folder: Path, hub: StoreHub, skew: float) -> None:
        self.folder, self.hub = folder, hub
        self._ticks = itertools.count()
        self._skew = skew
        self._brain: Brain | None = None

    @property
    def brain(self) -> Brain:
        if self._brain is None:
            settings = Settings(
                db_path=str(self.folder / "memory.db"),
                home=str(self.folder / "home"),
                cwd=str(self.folder),
                environ={"QUAID_BACKGROUND_EMBEDDING": "off"},
            )
            clock = lambda: NOON + self._skew + next(self._ticks)  # noqa: E731
            self._brain = Brain(settings, clock=clock, random=os.urandom, offset=lambda _: 0)
        return self._brain

    def close(self) -> None:
        if self._brain is not None:
            self._brain.close()
            self._brain = None

    def run(self, command: str, **arguments: Any) -> Any:
        return dispatch.call(self.brain, dispatch.find_command(command), arguments, "owner")

    def sync(self, hub: Any, fault: Fault | None = None) -> SyncedSpace | None:
        """Sync; return None if the hub could not be reached or the device was killed."""
        brain = self.brain
        space = Spaces(brain.db).require("team")
        replica = Replica(
            *(brain.db, hub, Collections(brain.db).require("team"), space),
            now=brain.now,
            new_uuid=brain.new_uuid,
            progress=brain.progress,
        )
        try:
            with killing_transactions(brain.db, fault):
                return replica.sync()
        except HubUnreachable:
            return None
        except Killed:
            self.close()
            return None

    def bundles(self) -> dict[str, Any]:
        space = Spaces(self.brain.db).require("team")
        uuids = space.all_revisions(self.brain.db)
        pages = {uuid: space.read_page(self.brain.db, uuid).bundle for uuid in uuids}
        return {uuid: bundle for uuid, bundle in pages.items() if bundle is not None}

    def slugs(self) -> list[str]:
        return sorted(bundle.slug for bundle in self.bundles().values())


class killing_transactions:  # noqa: N801 - used in a `with` statement
    """Raise Killed in the transaction with the number of the fault, before or after its commit."""

    def __init__(self, db: Database, fault: Fault | None) -> None:
        self._db, self._fault = db, fault
        self._write = db.write

    def __enter__(self) -> None:
        fault = self._fault
        if fault is None or "transaction" not in fault.kind:
            return
        calls = itertools.count()

        def write(work: Callable[..., Any], *args: Any, **options: Any) -> Any:
            if next(calls) != fault.number:
                return self._write(work, *args, **options)

            def killed(tx: Any) -> Any:
                work(tx)
                raise Killed

            if fault.kind == "killed in transaction":
                self._write(killed, *args, **options)
            self._write(work, *args, **options)
            raise Killed

        self._db.write = write  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        self._db.__dict__.pop("write", None)


class World:
    """A hub and devices in a folder, and the words that must not be lost."""

    def __init__(self, folder: Path, callers: Sequence[Caller], skews: Sequence[float]) -> None:
        self.store = SqliteHubStore(str(folder / "hub.db"))
        self.devices = [
            Device(folder / f"device{number}", StoreHub(self.store, caller), skew)
            for number, (caller, skew) in enumerate(zip(callers, skews, strict=False))
        ]
        self._words = itertools.count()
        self.written: dict[str, Step] = {}
        self.removed: set[str] = set()
        self.homes: dict[str, set[str]] = {}
        """The pages on which a word was written, or to which it came by a merge."""
        self.forgotten: set[str] = set()
        self.sent: list[tuple[Caller, str, Sequence[Push]]] = []

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self.store.close()

    def take(self, step: Step) -> None:
        device = self.devices[step.device % len(self.devices)]
        if step.action == "sync":
            other = self.devices[(step.device + 1) % len(self.devices)]
            hub = FaultyHub(device.hub, step.fault, self.sent, lambda: other.sync(other.hub))
            device.sync(hub, step.fault)
        elif step.action == "old request":
            if self.sent:
                caller, space, pushes = self.sent[step.page % len(self.sent)]
                StoreHub(self.store, caller).push(space, pushes)
        else:
            self._edit(device, step)

    def _edit(self, device: Device, step: Step) -> None:
        """Edit a page. The words that were on the pages of the device and are not any more were removed knowingly."""
        pages = device.bundles()
        before = words_of(device)
        word = f"w{next(self._words)}x"
        slugs = device.slugs()
        if step.action == "create" or not slugs:
            slug, step = f"p/new{step.page % 2}", step._replace(action="create")
            if slug in slugs:
                return
        else:
            slug = slugs[step.page % len(slugs)]
        EDITS[step.action](device, f"team::{slug}", word, step.page)
        left = device.bundles()
        after = words_of(device)
        self.removed |= before - after
        if word in after:
            self.written[word] = step
        if step.action == "forget":
            self.forgotten |= pages.keys() - left.keys()
        for uuid, bundle in left.items():
            for written in WORD.findall(repr(bundle)):
                self.homes.setdefault(written, set()).add(uuid)

    def settle(self) -> None:
        """Sync all devices without faults until all have read all changes and have nothing left to push."""
        for _ in range(12):
            reports = [device.sync(device.hub) for device in self.devices]
            assert None not in reports
            assert not [report.problems for report in reports if report and report.problems]
            last = self.devices[0].hub.spaces()[0].last_seq
            rows = [Spaces(device.brain.db).require("team") for device in self.devices]
            if all(row.cursor == last for row in rows) and not any(r.waiting for r in reports if r):
                return
        raise AssertionError("the devices do not converge")


def words_of(device: Device) -> set[str]:
    return {word for bundle in device.bundles().values() for word in WORD.findall(repr(bundle))}


def create(device: Device, slug: str, word: str, number: int) -> None:
    try:
        device.run("put", slug=slug, content=f"# Page {word}\n\nIt is new.")
    except PageMoved:  # a page that was merged had this slug
        pass


def add_entry(device: Device, slug: str, word: str, number: int) -> None:
    device.run("timeline-add", slug=slug, date=f"2026-01-{number % 28 + 1:02}", summary=f"Entry {word}")


def append(device: Device, slug: str, word: str, number: int) -> None:
    device.run("put", slug=slug, append=f"Paragraph {word}.")


def change_paragraph(device: Device, slug: str, word: str, number: int) -> None:
    """Replace a paragraph of the text, but no marker of a conflict."""
    page = device.run("get", slug=[slug])
    blocks = page.compiled_truth.split("\n\n")
    texts = [index for index, block in enumerate(blocks) if block.strip() and "<!--" not in block]
    if texts:
        blocks[texts[number % len(texts)]] = f"Changed to {word}."
        device.run("put", slug=slug, compiled_truth="\n\n".join(blocks), expected_version=page.version)


def set_key(device: Device, slug: str, word: str, number: int) -> None:
    device.run("put", slug=slug, frontmatter={f"key{number % 2}": word})


def add_tag(device: Device, slug: str, word: str, number: int) -> None:
    device.run("tag", slug=slug, tag=word)


def rename(device: Device, slug: str, word: str, number: int) -> None:
    try:
        device.run("rename", slug=slug, new_slug=f"p/renamed{number % 3}")
    except QuaidError:  # another page has this slug
        pass


def merge(device: Device, slug: str, word: str, number: int) -> None:
    """Merge a page into another one. It is deleted, with its text on the other page."""
    others = [f"team::{other}" for other in device.slugs() if f"team::{other}" != slug]
    if others:
        target = others[number % len(others)]
        device.run("merge", slug=target, other=slug, into=target, yes=True)


def forget(device: Device, slug: str, word: str, number: int) -> None:
    device.run("forget", slug=slug, yes=True)


EDITS: dict[str, Callable[[Device, str, str, int], None]] = {
    "create": create,
    "add entry": add_entry,
    "append": append,
    "change paragraph": change_paragraph,
    "set key": set_key,
    "add tag": add_tag,
    "rename": rename,
    "merge": merge,
    "forget": forget,
}


@pytest.fixture(scope="module")
def template() -> Iterator[tuple[Path, list[Caller]]]:
    """A hub with a space of three pages, and devices that have joined it. Each history works on a copy."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        store = SqliteHubStore(str(folder / "hub.db"))
        devices = []
        for number in range(DEVICES if LONG else FEW_DEVICES):
            (folder / f"device{number}").mkdir()
            devices.append(Device(folder / f"device{number}", join(store, "mira", f"device {number}"), 0))
            devices[-1].brain.create(str(folder / f"device{number}" / "memory.db"))
        space = devices[0].hub.create_space("team", "team")
        for device in devices:
            operations.join_space(device.brain, device.hub, InvitationLink(URL, "", ""), space, "team")
        for slug in PAGES:
            devices[0].run("put", slug=f"team::{slug}", content=f"# {slug}\n\nFirst.\n\nSecond.\n\nThird.")
        for device in devices:
            device.sync(device.hub)
            device.close()
        store.close()
        yield folder, [device.hub.caller for device in devices]


def play(template: tuple[Path, list[Caller]], skews: Sequence[float], steps: Sequence[Step]) -> None:
    """Run a history and check its end."""
    folder, callers = template
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        copy = Path(name) / "world"
        shutil.copytree(folder, copy)
        world = World(copy, callers, skews)
        try:
            for step in steps:
                world.take(step)
            world.settle()
            check(world)
        finally:
            world.close()


def check(world: World) -> None:
    first, *others = [device.bundles() for device in world.devices]
    for other in others:
        assert other == first
    hub = world.devices[0].hub
    [space] = hub.spaces()
    heads = {change.uuid: change.revision for change in all_pages(hub, space.id)}
    assert heads.keys() == first.keys()
    words = words_of(world.devices[0])
    lost = {
        word: step
        for word, step in world.written.items()
        if word not in words | world.removed and not world.homes[word] & world.forgotten
    }
    assert lost == {}
    assert not world.forgotten & first.keys()
    assert world.store.verify_audit()[1] is None


faults = st.none() | st.builds(
    Fault, st.sampled_from(FAULTS), st.sampled_from((0, 1, 2, 2, 2, 3, 4, 5, 6, 7))
)
numbers = st.integers(0, 30)
edits = st.builds(Step, st.sampled_from(sorted(EDITS)), st.integers(0, DEVICES - 1), numbers)
syncs = st.builds(Step, st.just("sync"), st.integers(0, DEVICES - 1), st.just(0), faults)
late = st.builds(Step, st.just("old request"), st.just(0), numbers)
histories = st.lists(st.one_of(edits, edits, syncs, syncs, late), min_size=1, max_size=40 if LONG else 16)
skews = st.lists(
    st.sampled_from((0.0, -7_200.0, 86_400.0, 3_600.0)), min_size=3, max_size=DEVICES if LONG else FEW_DEVICES
)


OVERTAKEN = [
    [Step("append", 0), Step("append", 1), Step("sync", 0, 0, Fault("overtaken", number))]
    for number in range(6)
]


@settings(max_examples=HISTORIES)
@example(skews=[0.0] * 3, steps=[step for history in OVERTAKEN for step in history])
@given(skews=skews, steps=histories)
def test_devices_converge_and_lose_nothing(
    template: tuple[Path, list[Caller]], skews: list[float], steps: list[Step]
) -> None:
    play(template, skews, steps)

"""Many devices on one space: a week of made-up edits, days without a network, lost answers, wrong clocks.

Every device has its own memory with all pages. One device joins; the others start from a copy of its file, which
saves time but no work that is measured. Every edit writes a word that occurs nowhere else. In the end all devices
must have the same pages, with every word that no later edit has removed.
"""

import itertools
import os
import random
import re
import shutil
import sys
import tempfile
import time
from functools import partial
from typing import Any

from bench.dashboard import uuid_of
from bench.table import show
from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import HubUnreachable
from quaid.hub.direct import StoreHub
from quaid.hub.store import SqliteHubStore
from quaid.model.bundle import Bundle, digest, encode
from quaid.model.merge import find_conflicts
from quaid.operations import dispatch, spaces as operations
from quaid.spaces.protocol import InvitationLink, Push, hash_secret, new_token
from quaid.spaces.replica import Replica, SyncedSpace
from quaid.storage.collections import Collections
from quaid.storage.spaces import Spaces

PAGES, QUICK_PAGES = 10_000, 300
FLEETS = ((3, 140), (10, 42), (50, 8))
"""Devices, and edits of each in the week. Fifty devices that edit like three would need an hour here."""
DAYS = 7
SHARED_PAGES = 40
"""Half of all edits go to so many pages, so that they meet."""
OFFLINE, LOST_ANSWER = 0.3, 0.1
"""Share of the days on which a device has no network, and of the syncs that are cut off."""
SKEW_SECONDS = 6 * 3600
TEXT = "The harbour was quiet and the boats came in late. " * 4
URL = "http://localhost:8765"
WORD = re.compile(r"w\d+x")


class Laptop:
    """A memory, its clock and its connection to the hub."""

    def __init__(self, folder: str, hub: StoreHub, skew: float = 0.0) -> None:
        environ = {"QUAID_BACKGROUND_EMBEDDING": "off", "HOME": folder}
        path = os.path.join(folder, "memory.db")
        self.settings = Settings(
            db_path=path, home=os.path.join(folder, ".quaid"), cwd=folder, environ=environ
        )
        self.hub = hub
        self.brain = Brain(self.settings, clock=lambda: time.time() + skew)

    def run(self, command: str, **arguments: Any) -> Any:
        return dispatch.call(self.brain, dispatch.find_command(command), arguments, "owner")

    def sync(self, hub: Any = None) -> SyncedSpace:
        brain = self.brain
        row = Spaces(brain.db).require("team")
        place = (brain.db, hub or self.hub, Collections(brain.db).require("team"), row)
        return Replica(*place, now=brain.now, new_uuid=brain.new_uuid, progress=brain.progress).sync()

    def bundles(self) -> dict[str, Any]:
        space = Spaces(self.brain.db).require("team")
        pages = {
            uuid: space.read_page(self.brain.db, uuid).bundle for uuid in space.all_revisions(self.brain.db)
        }
        return {uuid: bundle for uuid, bundle in pages.items() if bundle is not None}


class CutOff:
    """A connection that loses the answer to one request."""

    def __init__(self, hub: StoreHub, number: int) -> None:
        self._hub, self._number, self._calls = hub, number, itertools.count()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._hub, name)
        if not callable(method):
            return method

        def call(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            if next(self._calls) == self._number:
                raise HubUnreachable(hub=URL, problem="the answer was lost")
            return answer

        return call


def main() -> None:
    quick = "--quick" in sys.argv
    pages = QUICK_PAGES if quick else PAGES
    rows = [_fleet(pages, count, edits) for count, edits in (FLEETS[:2] if quick else FLEETS)]
    head = (
        "devices",
        "edits",
        "syncs",
        "cut off",
        "merged pages with a conflict",
        "words lost",
        "different pages",
    )
    show(f"Devices on {pages:,} pages, a week", rows, (*head, "CPU s of the week", "CPU ms a sync"))


def _fleet(pages: int, count: int, edits: int) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        store = SqliteHubStore(os.path.join(folder, "hub.db"))
        laptops = _join_all(store, folder, pages, count)
        week = Week(laptops, edits)
        before = time.process_time()
        week.run()
        cpu = time.process_time() - before
        lost, different, conflicts = week.check()
        for laptop in laptops:
            laptop.brain.close()
        store.close()
    return (
        *(str(count), f"{week.edits:,}", f"{week.syncs:,}", str(week.cut_off), str(conflicts), str(lost)),
        *(str(different), f"{cpu:,.0f}", f"{1000 * week.sync_cpu / week.syncs:.0f}"),
    )


def _join_all(store: SqliteHubStore, folder: str, pages: int, count: int) -> list[Laptop]:
    """Fill a space, join it with one device, and give a copy of its memory to the others."""
    store.add_person("mira")
    hubs = [_connection(store, number) for number in range(count)]
    space = hubs[0].create_space("team", "team")
    for start in range(0, pages, 500):
        hubs[0].push(space.id, [_first_revision(number) for number in range(start, min(pages, start + 500))])
    first = os.path.join(folder, "0")
    os.makedirs(first)
    laptop = Laptop(first, hubs[0])
    laptop.brain.create(laptop.settings.db_path)
    operations.join_space(laptop.brain, hubs[0], InvitationLink(URL, "", ""), space, "team")
    laptop.brain.close()
    laptops = []
    for number, hub in enumerate(hubs):
        place = os.path.join(folder, str(number))
        if number:
            shutil.copytree(first, place)
        laptops.append(Laptop(place, hub, SKEW_SECONDS * (number % 3 - 1)))
        db = laptops[-1].brain.db
        row = Spaces(db).require("team")
        db.write(partial(row.update, device=hub.caller.device, acknowledged=-1))
        laptops[-1].sync()
    return laptops


def _connection(store: SqliteHubStore, number: int) -> StoreHub:
    token = hash_secret(new_token())
    store.add_device("mira", f"device {number}", token)
    caller = store.authenticate(token)
    assert caller is not None
    return StoreHub(store, caller)


def _first_revision(number: int) -> Push:
    slug, uuid = f"notes/page-{number}", uuid_of(number)
    truth = f"# Page {number}\n\n" + "\n\n".join(f"Paragraph {part}. {TEXT}" for part in range(4))
    timeline = f"- **2025-0{number % 9 + 1}-11** | diary — Page {number} was begun."
    data = encode(Bundle(uuid, slug, {}, truth, timeline, (), (), ()))
    return Push(uuid, 0, digest(data), data, slug)


class Week:
    """The edits and syncs of all devices, in a random order, and the words that must not be lost."""

    def __init__(self, laptops: list[Laptop], edits: int) -> None:
        self.laptops, self._chance = laptops, random.Random(7)
        self._edits_a_day = edits / DAYS
        self._words = itertools.count()
        self._written: set[str] = set()
        self._removed: set[str] = set()
        self.edits = self.syncs = self.cut_off = 0
        self.sync_cpu = 0.0
        self._slugs = sorted(bundle.slug for bundle in laptops[0].bundles().values())

    def run(self) -> None:
        for _ in range(DAYS):
            offline = {laptop for laptop in self.laptops if self._chance.random() < OFFLINE}
            steps = [laptop for laptop in self.laptops for _ in range(self._edits_today())]
            self._chance.shuffle(steps)
            for laptop in steps:
                self._edit(laptop)
                if laptop not in offline and self._chance.random() < 2 / max(1, self._edits_a_day):
                    self._sync(laptop)
        for _ in range(3):  # the first device reads what the last one has pushed
            for laptop in self.laptops:
                self._sync(laptop, safe=True)

    def _edits_today(self) -> int:
        whole, rest = divmod(self._edits_a_day, 1)
        return int(whole) + (self._chance.random() < rest)

    def _sync(self, laptop: Laptop, safe: bool = False) -> None:
        lost = not safe and self._chance.random() < LOST_ANSWER
        before = time.process_time()
        try:
            laptop.sync(CutOff(laptop.hub, self._chance.randrange(6)) if lost else None)
        except HubUnreachable:
            self.cut_off += 1
        self.sync_cpu += time.process_time() - before
        self.syncs += 1

    def _edit(self, laptop: Laptop) -> None:
        chance, word = self._chance, f"w{next(self._words)}x"
        among = self._slugs[:SHARED_PAGES] if chance.random() < 0.5 else self._slugs
        slug = f"team::{chance.choice(among)}"
        before = self._words_on(laptop, slug)
        kind = chance.randrange(4)
        if kind == 0:
            laptop.run(
                "timeline-add", slug=slug, date=f"2026-01-{chance.randrange(1, 29):02}", summary=f"Saw {word}"
            )
        elif kind == 1:
            laptop.run("put", slug=slug, append=f"Added {word}.")
        elif kind == 2:
            laptop.run("put", slug=slug, frontmatter={f"key{chance.randrange(3)}": word})
        else:
            self._change_paragraph(laptop, slug, word)
        after = self._words_on(laptop, slug)
        self._removed |= before - after
        self._written |= after - before
        self.edits += 1

    def _change_paragraph(self, laptop: Laptop, slug: str, word: str) -> None:
        page = laptop.run("get", slug=[slug])
        blocks = page.compiled_truth.split("\n\n")
        texts = [index for index, block in enumerate(blocks) if block.strip() and "<!--" not in block]
        blocks[self._chance.choice(texts)] = f"Changed to {word}."
        laptop.run("put", slug=slug, compiled_truth="\n\n".join(blocks), expected_version=page.version)

    def _words_on(self, laptop: Laptop, slug: str) -> set[str]:
        page = laptop.run("get", slug=[slug])
        return {*WORD.findall(f"{page.frontmatter} {page.compiled_truth} {page.timeline}")}

    def check(self) -> tuple[int, int, int]:
        """Return the numbers of lost words, of pages that differ between devices, and of pages with a conflict."""
        first = self.laptops[0].bundles()
        different = 0
        for laptop in self.laptops[1:]:
            other = laptop.bundles()
            different += sum(first.get(uuid) != other.get(uuid) for uuid in first.keys() | other.keys())
        words = {word for bundle in first.values() for word in WORD.findall(repr(bundle))}
        conflicts = sum(bool(find_conflicts(bundle.truth, bundle.frontmatter)) for bundle in first.values())
        return len(self._written - self._removed - words), different, conflicts

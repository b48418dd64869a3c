"""Laptops that share a space over a real hub database, for tests."""

import itertools
import os
from pathlib import Path
from typing import Any

from tests.hub.store_hub import join as add_device

from quaid.app import Brain
from quaid.config import Settings
from quaid.hub.store import HubStore
from quaid.model.bundle import decode, encode
from quaid.operations import dispatch, spaces
from quaid.operations.dispatch import json_value
from quaid.spaces.protocol import InvitationLink
from quaid.spaces.replica import SyncedSpace
from quaid.storage.collections import Collections
from quaid.storage.spaces import Spaces

URL = "http://localhost:8765"
NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z


class Memory:
    """A memory on a device."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        ticks = itertools.count()
        settings = Settings(
            db_path=str(folder / "memory.db"),
            home=str(folder / "home"),
            cwd=str(folder),
            environ={"QUAID_BACKGROUND_EMBEDDING": "off", "QUAID_DEVICE_NAME": name},
        )
        self.brain = Brain(settings, clock=lambda: NOON + next(ticks), random=os.urandom, offset=lambda _: 0)
        self.brain.create(settings.db_path)

    def run(self, command: str, **arguments: Any) -> Any:
        given = {name.rstrip("_"): value for name, value in arguments.items()}
        return json_value(dispatch.call(self.brain, dispatch.find_command(command), given, "owner"))


class Laptop(Memory):
    """A memory on a device of a person, and the connection of the device to the hub."""

    def __init__(self, folder: Path, hub: HubStore, person: str, name: str) -> None:
        super().__init__(folder, name)
        self.hub = add_device(hub, person, name)

    def share(self, collection: str = "default", name: str = "team", **options: Any) -> SyncedSpace:
        space = self.hub.create_space(name, options.get("kind", "team"), bool(options.get("key")))
        if options.get("key"):
            spaces.keep_key(self.brain, space.id, options["key"])
        spaces.attach_space(self.brain, self.hub, URL, space, Collections(self.brain.db).require(collection))
        return self.sync(collection)

    def join(
        self, owner: "Laptop", name: str = "team", right: Any = "write", as_: str = "team", key: str = ""
    ) -> None:
        space = next(space for space in owner.hub.spaces() if space.name == name)
        person = self.hub.about().person
        if person != owner.hub.about().person:
            owner.hub.set_member(space.id, person, right)
        space = next(space for space in self.hub.spaces() if space.name == name)
        spaces.join_space(self.brain, self.hub, InvitationLink(URL, "", key), space, as_)

    def sync(self, collection: str = "team") -> SyncedSpace:
        return spaces.sync_space(self.brain, Spaces(self.brain.db).require(collection), self.hub)

    def put(self, slug: str, content: str, **arguments: Any) -> Any:
        return self.run("put", slug=slug, content=content, **arguments)

    def text(self, slug: str) -> str:
        return str(self.run("get", slug=[slug])["compiled_truth"])

    def slugs(self, collection: str = "team") -> list[str]:
        return sorted(page["slug"] for page in self.run("list", collection=collection, limit=1000)["pages"])


def settle_all(owner: Laptop, *others: Laptop) -> None:
    """Sync all laptops until nothing changes any more. The owner shares the default collection."""
    for _ in range(10):
        reports = [owner.sync("default"), *(other.sync() for other in others)]
        assert [report.problem for report in reports] == [""] * len(reports)
        if not any(report.pulled or report.pushed for report in reports):
            return
    raise AssertionError("the laptops do not converge")


def bundles(laptop: Laptop, collection: str = "team") -> dict[str, Any]:
    """Return all pages of a shared collection as they would be pushed, by uuid."""
    space = Spaces(laptop.brain.db).require(collection)
    revisions = space.all_revisions(laptop.brain.db)
    pages = {uuid: space.read_page(laptop.brain.db, uuid).bundle for uuid in revisions}
    # The rows of a bundle have no order; the bytes have one.
    return {uuid: decode(encode(bundle)) for uuid, bundle in pages.items() if bundle is not None}

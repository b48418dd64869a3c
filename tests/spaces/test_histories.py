"""Made histories of three laptops: random edits, lost answers and ended processes; all converge and lose nothing."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.spaces.laptops import Laptop, bundles, settle_all
from tests.spaces.test_accidents import FlakyHub

from quaid.errors import AlreadyExists, LinkOverlaps, PageMoved, TextSaysSo

Make = Callable[[str, str], Laptop]
CITIES = ("Oslo", "Paris", "Rome", "Lima")


def edit(laptop: Laptop, collection: str, dice: random.Random, number: int) -> str:
    """Make one edit. Return the timeline entry that it added, or ""."""
    slugs = laptop.slugs(collection)
    slug = f"{collection}::{dice.choice(slugs)}" if slugs else f"{collection}::people/p0"
    kind = dice.randrange(9)
    if kind <= 2:
        entry = f"Entry {number}."
        laptop.run("timeline-add", slug=slug, date=f"2026-01-{dice.randrange(1, 28):02}", summary=entry)
        return entry
    if kind == 3:
        laptop.put(
            f"{collection}::people/p{dice.randrange(6)}-{number}",
            f"# P{number}\n\nLives in {dice.choice(CITIES)}.",
        )
    elif kind == 4:
        truth = laptop.text(slug)
        laptop.run(
            "put",
            slug=slug,
            compiled_truth=truth.replace("London", dice.choice(CITIES)) + f"\n\nText {number}.",
        )
    elif kind == 5:
        laptop.run("tag", slug=slug, tag=f"t{dice.randrange(4)}")
    elif kind == 6:
        laptop.run("rename", slug=slug, new_slug=f"people/r{dice.randrange(4)}-{number}")
    elif kind == 7:
        laptop.run("assert", slug=slug, predicate="lives_in", object=dice.choice(CITIES), source=f"s{number}")
    elif len(slugs) > 1:
        other = f"{collection}::{dice.choice([name for name in slugs if not slug.endswith(name)])}"
        laptop.run("link", from_=slug, to=other, relationship=f"knows{number}")
    return ""


def sync(laptop: Laptop, collection: str, dice: random.Random) -> None:
    """Sync, often over a connection that fails before or after one of its requests."""
    real: Any = laptop.hub
    if dice.random() < 0.5:
        laptop.hub = FlakyHub(real, dice.randrange(1, 9), after=dice.random() < 0.5)  # type: ignore[assignment]
    laptop.sync(collection)
    laptop.hub = real


@pytest.mark.parametrize("seed", range(12))
def test_a_made_history_converges_and_loses_no_entry(laptop: Make, seed: int) -> None:
    dice = random.Random(seed)
    mira, desktop, noor = laptop("mira", "laptop"), laptop("mira", "desktop"), laptop("noor", "phone")
    for number in range(4):
        mira.put(f"people/p{number}", f"# P{number}\n\nLives in London.\n\nWorks in London.")
    mira.share()
    desktop.join(mira)
    noor.join(mira)
    places = [(mira, "default"), (desktop, "team"), (noor, "team")]
    entries = []
    for number in range(40):
        device, collection = dice.choice(places)
        with suppress(AlreadyExists, PageMoved, TextSaysSo, LinkOverlaps):
            entries.append(edit(device, collection, dice, number))
        if dice.random() < 0.3:
            sync(*dice.choice(places), dice)
    settle_all(mira, desktop, noor)
    pages = bundles(mira, "default")
    assert pages == bundles(desktop) == bundles(noor)
    timelines = "\n".join(bundle.timeline for bundle in pages.values())
    assert [entry for entry in entries if entry and timelines.count(entry) != 1] == []
    assert [device.run("validate")["violations"] for device, _ in places] == [[], [], []]

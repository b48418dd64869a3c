"""Laptops that share a space have the same pages in the end, and nothing is lost on the way."""

import struct
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests.spaces.laptops import NOON, Laptop, bundles, settle_all

from quaid.errors import PageNotFound
from quaid.hub.store import SqliteHubStore
from quaid.spaces import replica
from quaid.storage import vectors

Make = Callable[[str, str], Laptop]


@pytest.fixture
def team(laptop: Make) -> tuple[Laptop, Laptop, Laptop]:
    """Mira shares a collection from her laptop; her desktop and Noor's laptop join it."""
    mira, desktop, noor = (
        laptop("mira", "mira-laptop"),
        laptop("mira", "desktop"),
        laptop("noor", "noor-laptop"),
    )
    mira.put("people/ada", "---\ntags: [math]\n---\n# Ada\n\nLives in London.\n\nWrites notes.")
    mira.put("projects/engine", "# Engine\n\nBy [[people/ada]].")
    assert mira.share().pushed == 2
    desktop.join(mira)
    noor.join(mira)
    return mira, desktop, noor


def test_a_joined_space_has_all_pages_with_links_facts_and_data(laptop: Make) -> None:
    mira, noor = laptop("mira", "laptop"), laptop("noor", "phone")
    mira.put(
        "people/ada", "# Ada\n\nLives in London.\n\n---\n\n- **1843-09-01** | journal — Notes published."
    )
    mira.put("people/bob", "# Bob")
    mira.run("link", from_="people/ada", to="people/bob", relationship="knows", valid_from="1833-06-05")
    mira.run("assert", slug="people/ada", predicate="lives_in", object="London", valid_from="1830-01-01")
    mira.run("assert", slug="people/ada", predicate="lives_in", object="Paris", valid_from="1840-01-01")
    mira.run("raw", slug="people/ada", source="wikidata", data={"born": 1815})
    mira.share()
    noor.join(mira)
    assert noor.slugs() == ["people/ada", "people/bob"]
    assert bundles(noor) == bundles(mira, "default")
    (link,) = noor.run("links", slug="team::people/ada")["links"]
    assert (link["relationship"], link["to_slug"], link["valid_from"]) == (
        "knows",
        "people/bob",
        "1833-06-05",
    )
    facts = [laptop.run("facts", subject="people/ada", history=True)["facts"] for laptop in (mira, noor)]
    assert [[(fact["object"], fact["until"]) for fact in rows] for rows in facts] == [
        [("London", "1840-01-01"), ("people/bob", None), ("Paris", None)]
    ] * 2
    assert noor.run("raw", slug="team::people/ada")["data"][0]["data"] == {"born": 1815}
    assert noor.run("search", query="published")["hits"][0]["slug"] == "people/ada"
    assert noor.sync().pulled == noor.sync().pushed == 0


def test_three_laptops_edit_offline_and_keep_everything(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    for number in range(5):
        mira.run("timeline-add", slug="people/ada", date=f"2026-01-0{number + 1}", summary=f"Mira {number}")
        desktop.run(
            "timeline-add", slug="people/ada", date=f"2026-02-0{number + 1}", summary=f"Desk {number}"
        )
        noor.run("timeline-add", slug="people/ada", date=f"2026-03-0{number + 1}", summary=f"Noor {number}")
    noor.run("tag", slug="people/ada", tag="poet")
    desktop.run("put", slug="people/ada", frontmatter={"born": 1815})
    settle_all(mira, desktop, noor)
    pages = [laptop.run("get", slug=["people/ada"]) for laptop in team]
    assert len({page["timeline"] for page in pages}) == 1
    assert pages[0]["timeline"].count("\n- **") + 1 == 15
    assert all(
        sorted(page["tags"]) == ["math", "poet"] and page["frontmatter"]["born"] == 1815 for page in pages
    )
    assert bundles(mira, "default") == bundles(desktop) == bundles(noor)


def test_a_conflict_keeps_both_sides_on_every_laptop(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.put("people/ada", "---\ntags: [math]\n---\n# Ada\n\nLives in Oslo.\n\nWrites notes.")
    noor.put("people/ada", "---\ntags: [math]\n---\n# Ada\n\nLives in Paris.\n\nWrites notes.")
    mira.sync("default")
    report = noor.sync()
    assert report.conflicts == ("people/ada",)
    settle_all(mira, desktop, noor)
    texts = {laptop.text("people/ada") for laptop in team}
    assert len(texts) == 1
    (text,) = texts
    assert "Lives in Oslo." in text
    assert "Lives in Paris." in text
    assert "noor on noor-laptop" in text


def test_the_history_names_the_person_and_the_device(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, _, noor = team
    noor.run("put", slug="people/ada", append="Noor was here.")
    noor.sync()
    mira.sync("default")
    versions = mira.run("history", slug="people/ada")["versions"]
    assert [(row["author"], row["device"]) for row in versions] == [
        ("noor", "noor-laptop"),
        ("owner", "mira-laptop"),
    ]


def test_a_rename_and_an_edit_at_the_same_time_both_happen(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.run("rename", slug="people/ada", new_slug="people/ada-lovelace")
    noor.run("timeline-add", slug="people/ada", date="2026-01-01", summary="Met the queen")
    settle_all(mira, desktop, noor)
    for laptop in team:
        page = laptop.run("get", slug=["people/ada-lovelace"])
        assert "Met the queen" in page["timeline"]
        assert laptop.run("get", slug=["people/ada"])["slug"] == "people/ada-lovelace"


def test_a_merged_page_is_gone_everywhere_unless_it_was_changed(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.put("people/lovelace", "# Lovelace\n\nA countess.")
    mira.put("people/byron", "# Byron")
    settle_all(mira, desktop, noor)
    mira.run("merge", slug="people/ada", other="people/lovelace", into="people/ada", yes=True)
    mira.run("merge", slug="people/ada", other="people/byron", into="people/ada", yes=True)
    noor.run("timeline-add", slug="people/byron", date="2026-01-01", summary="Wrote a poem")
    noor.sync()
    settle_all(mira, desktop, noor)
    assert noor.slugs() == desktop.slugs() == ["people/ada", "people/byron", "projects/engine"]
    assert mira.slugs("default") == noor.slugs()
    assert "Wrote a poem" in mira.run("get", slug=["default::people/byron"])["timeline"]
    with pytest.raises(PageNotFound):
        noor.run("get", slug=["team::people/lovelace"])


def test_a_page_that_was_deleted_elsewhere_can_be_restored_for_all(
    team: tuple[Laptop, Laptop, Laptop],
) -> None:
    mira, desktop, noor = team
    mira.run("merge", slug="people/ada", other="projects/engine", into="people/ada", yes=True)
    settle_all(mira, desktop, noor)
    assert noor.slugs() == ["people/ada"]
    restored = noor.run("collection quarantine restore", slug="team::projects/engine")
    assert (restored["slug"], restored["collection"]) == ("projects/engine", "team")
    settle_all(mira, desktop, noor)
    assert noor.slugs() == desktop.slugs() == mira.slugs("default") == ["people/ada", "projects/engine"]
    assert mira.text("default::projects/engine").startswith("# Engine")


def test_a_deleted_page_leaves_the_quarantine_after_30_days(
    team: tuple[Laptop, Laptop, Laptop], hub: SqliteHubStore
) -> None:
    mira, _, noor = team
    mira.run("merge", slug="people/ada", other="projects/engine", into="people/ada", yes=True)
    mira.sync("default")
    noor.sync()
    assert len(noor.run("collection quarantine list")["pages"]) == 1
    noor.brain._clock = lambda: time.time() + 40 * 86_400
    mira.run("put", slug="people/ada", append="More.")
    mira.sync("default")
    noor.sync()
    assert noor.run("collection quarantine list")["pages"] == []
    report = noor.sync()
    assert (report.pulled, report.pushed, report.waiting) == (0, 0, 0)


def test_the_same_slug_made_on_two_laptops_gives_two_pages(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.put("people/sofia", "# Sofia\n\nA gardener in Bergen.")
    noor.put("team::people/sofia", "# Sofia\n\nPlays the cello.")
    mira.sync("default")
    assert noor.sync().renamed == (("people/sofia", "people/sofia-2"),)
    settle_all(mira, desktop, noor)
    for laptop in team:
        assert "gardener" in laptop.text("people/sofia")
        assert "cello" in laptop.text("people/sofia-2")
    pairs = noor.run("dupes")["pairs"]
    assert {(pair["slug"], pair["other"]) for pair in pairs} == {
        ("team::people/sofia", "team::people/sofia-2")
    }


def test_slugs_that_two_pages_exchange_arrive(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.run("rename", slug="people/ada", new_slug="people/x", free_old_slug=True)
    mira.run("rename", slug="projects/engine", new_slug="people/ada", free_old_slug=True)
    settle_all(mira, desktop, noor)
    for laptop in team:
        assert "London" in laptop.text("people/x")
        assert laptop.text("people/ada").startswith("# Engine")


def test_links_to_pages_that_come_later_are_added_then(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    mira.put("people/charles", "# Charles")
    mira.run("link", from_="people/ada", to="people/charles", relationship="friend")
    mira.run("put", slug="people/ada", append="More.")
    settle_all(mira, desktop)
    state = replica.PULL_PAGES
    try:
        replica.PULL_PAGES = 1  # each page comes alone, and the page with the link before its target
        mira.run("put", slug="people/charles", append="A baronet's friend.")
        mira.sync("default")
        settle_all(mira, desktop, noor)
    finally:
        replica.PULL_PAGES = state
    (link,) = [
        link for link in noor.run("links", slug="people/ada")["links"] if link["relationship"] == "friend"
    ]
    assert link["to_slug"] == "people/charles"
    assert bundles(noor) == bundles(mira, "default") == bundles(desktop)


def test_a_link_to_a_page_outside_the_space_stays_here(team: tuple[Laptop, Laptop, Laptop]) -> None:
    mira, desktop, noor = team
    noor.put("default::people/secret", "# Secret")
    noor.run("link", from_="team::people/ada", to="default::people/secret", relationship="knows")
    noor.run("timeline-add", slug="team::people/ada", date="2026-01-01", summary="Something")
    settle_all(mira, desktop, noor)
    assert [link["to_slug"] for link in mira.run("links", slug="people/ada")["links"]] == []
    mira.run("put", slug="people/ada", append="More.")
    settle_all(mira, desktop, noor)
    assert [link["to_slug"] for link in noor.run("links", slug="team::people/ada")["links"]] == [
        "people/secret"
    ]


def test_vectors_travel_so_that_nobody_embeds_what_another_device_has(
    team: tuple[Laptop, Laptop, Laptop],
) -> None:
    mira, _, noor = team
    model = mira.brain.model_name
    mira.put("people/eve", "# Eve\n\nPlays the cello.")
    (chunk,) = mira.brain.db.rows(
        "SELECT content_hash FROM chunks JOIN pages p ON p.id = page_id WHERE slug = 'people/eve'"
    )
    vector = struct.pack("<384f", *(0.5 if place % 3 else -1.0 for place in range(384)))
    mira.brain.db.write(lambda tx: vectors.use_model(tx, model, 384, "2026-01-01T00:00:00Z"))
    mira.brain.db.write(
        lambda tx: vectors.keep_chunk_vectors(tx, model, [(chunk[0], vector)], "2026-01-01T00:00:00Z")
    )
    mira.sync("default")
    assert noor.sync().vectors == 1
    sql = "SELECT content_hash, vector FROM page_embeddings_vec_384 WHERE model = ?"
    assert noor.brain.db.rows(sql, (model,)) == mira.brain.db.rows(sql, (model,))
    assert noor.run("status")["model"]["vectors"] == 1


def test_a_laptop_never_imports_the_library_of_postgresql() -> None:
    program = (
        "import sys, quaid.operations.spaces, quaid.spaces.replica, quaid.spaces.http_client, quaid.worker;"
        "print([name for name in ('psycopg', 'psycopg_pool', 'nacl', 'numpy', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_each_device_hides_an_expired_page_and_one_erases_it_everywhere(
    team: tuple[Laptop, Laptop, Laptop],
) -> None:
    mira, _, noor = team
    mira.put("notes/wifi", "---\nexpires: 2026-05-01\n---\n# Wifi\n\nThe password is hunter2.")
    mira.put("notes/door", "# Door\n\n- It is green.\n- The code is 4711 today. (expires 2026-05-01)")
    mira.sync("default")
    noor.sync()
    mira.brain._clock = lambda: NOON + 10 * 86_400.0
    assert "notes/wifi" not in mira.slugs("default")
    assert "4711" not in mira.text("notes/door")
    mira.sync("default")
    noor.sync()
    assert "hunter2" in noor.text("team::notes/wifi")  # her clock is behind
    assert "4711" in noor.text("team::notes/door")
    noor.brain._clock = lambda: NOON + 10 * 86_400.0
    assert "notes/wifi" not in noor.slugs()
    assert len(noor.run("expired")["items"]) == 2
    record = mira.run("expired", items=["notes/wifi"], now=True, yes=True)
    assert record["erased"]
    mira.sync("default")
    noor.sync()
    assert [item["kind"] for item in noor.run("expired")["items"]] == ["line"]
    with pytest.raises(PageNotFound):
        noor.text("team::notes/wifi")

"""Pages that are written together leave the rows that they would leave one by one."""

from pathlib import Path
from typing import Any

from quaid.model import page as page_model
from quaid.model.page import Page
from quaid.storage import chunks, links, page_edits
from quaid.storage.collections import Collections
from quaid.storage.page_edits import NewPage
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
BELOW = "- **2026-04-14** | mail — Wrote.\n- **2026-04-14** | call — Wrote.\n- **2026-04-15** — Came.\n"


def made(slug: str, truth: str, timeline: str = "", **front: Any) -> Page:
    return page_model.build_page(slug, front, truth, timeline)


BEFORE = made("notes/waits", "See [[people/ada]], [[Countess]], [[Nobody]] and [[Twin]].")
TOGETHER = [
    made("people/ada", "# Ada\n\nKnows [[people/bob]] and [[waits]]. #maths", BELOW, aliases=["Countess"]),
    made("people/bob", "Knows [[Countess]], [[Countess]] and himself: [[people/bob]].", tags=["maths", "x"]),
    made("a/twin", "# Twin", links=[{"to": "Ada", "type": "knows", "valid_from": "2020"}]),
    made("b/twin", "# Twin\n\n東京都に住む"),
    made("empty", ""),
]


def rows(db: Database) -> dict[str, Any]:
    names = [name for (name,) in db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    results: dict[str, Any] = {
        name: db.rows(f'SELECT * FROM "{name}"') for name in names if "fts" not in name
    }
    # It counts pages that were cut before; new ones are found by their ids.
    results["quaid_config"] = [row for row in results["quaid_config"] if row[0] != chunks.UNCUT_COUNTER]
    for index in ("page_fts", "page_fts_unspaced"):
        results[index] = [
            db.rows(f"SELECT rowid, bm25({index}) FROM {index}(?) ORDER BY rowid", (word,))
            for word in ("knows", "twin", '"東京"', "himself")
        ]
    return results


def test_together_is_as_one_by_one(tmp_path: Path) -> None:
    uuids = [f"0190a6d0-0000-7000-9000-{number:012}" for number in range(len(TOGETHER))]

    def first(tx: Any) -> None:
        page_edits.save(tx, BEFORE, uuid="0190a6d0-0000-7000-8000-000000000000", now=NOW, expected_version=0)

    def one_by_one(tx: Any) -> None:
        for element, uuid in zip(TOGETHER, uuids, strict=True):
            page_edits.save(tx, element, uuid=uuid, now=NOW, expected_version=0, cut=False)

    def together(tx: Any) -> None:
        new = [NewPage(item, uuid) for item, uuid in zip(TOGETHER, uuids, strict=True)]
        assert page_edits.add_pages(tx, Collections(tx).require("default"), new, NOW) == [
            2,
            3,
            4,
            5,
            6,
        ]

    with (
        Database.create(str(tmp_path / "a.db"), NOW) as one,
        Database.create(str(tmp_path / "b.db"), NOW) as many,
    ):
        for db, work in ((one, one_by_one), (many, together)):
            db.write(first)
            db.write(work)
            db.write(
                lambda tx: tx.execute("INSERT INTO page_fts (page_fts, rank) VALUES ('integrity-check', 1)")
            )
            assert links.wrong_targets(db.connection) == []
        assert rows(one) == rows(many)
        assert chunks.uncut_pages(one) == chunks.uncut_pages(many) != []
        assert len(rows(many)["links"]) > 8
        assert rows(many)["page_fts_unspaced"][2]


def test_slugs_that_a_user_has_or_had_are_taken(tmp_path: Path) -> None:
    with Database.create(str(tmp_path / "a.db"), NOW) as db:

        def work(tx: Any) -> set[str]:
            saved = page_edits.save(tx, BEFORE, uuid="u", now=NOW, expected_version=0)
            links.add_redirect(tx, 1, "notes/before", saved.id, NOW)
            wanted = {
                f"{slug}.md": slug for slug in ("notes/waits", "notes/before", "notes/free", "notes/wait")
            }
            default = Collections(tx).require("default")
            assert default._replace(id=2).taken_slugs(tx, wanted) == set()
            return default.taken_slugs(tx, wanted)

        assert db.write(work) == {"notes/waits", "notes/before"}


def test_bulk_insert_of_no_pages_writes_nothing(tmp_path: Path) -> None:
    with Database.create(str(tmp_path / "a.db"), NOW) as db:
        before = rows(db)
        assert (
            db.write(lambda tx: page_edits.add_pages(tx, Collections(tx).require("default"), [], NOW)) == []
        )
        assert rows(db) == before

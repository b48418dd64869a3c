"""What pages are called: title, slug, last part of the slug, and the aliases of the front matter.

Knows the table page_names and how a name is folded, so that "Mira Dahlquist", "mira-dahlquist" and "MIRA
DAHLQUIST?" are one. Does not know what a question means.
"""

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.core.patterns import pattern
from quaid.store.chunks import page_conditions

if TYPE_CHECKING:
    import apsw

    from quaid.core.page import Page
    from quaid.store.db import Database
    from quaid.store.words import Filters

KINDS = ("title", "slug", "alias", "name")
"""A name's kinds, the most certain first. The last part of a slug is a name."""

LONGEST = 200
"""Characters of a name. Nobody asks for more."""

MOST_ALIASES = 100

_GAP = pattern(r"[\W_]+")


class Named(NamedTuple):
    """A page that has a name."""

    name: str
    page_id: int
    kind: str


def fold(text: str) -> str:
    """A name with everything taken out in which two spellings of it differ."""
    text = text[: 2 * LONGEST]
    if not text.isascii():
        import unicodedata

        decomposed = unicodedata.normalize("NFKD", text.casefold())
        # An accent over a Latin letter is a spelling; in other scripts marks make another letter.
        text = unicodedata.normalize("NFC", re.sub("(?<=[a-z])[\u0300-\u036f]+", "", decomposed))
    return _GAP.sub(" ", text.lower()).strip()[:LONGEST]


def index_page(tx: "apsw.Connection", page_id: int, page: "Page") -> None:
    """Make the table hold what this page is called now."""
    tx.execute("DELETE FROM page_names WHERE page_id = ?", (page_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)",
        [(name, page_id, kind) for name, kind in names_of(page.title, page.slug, page.frontmatter)],
    )


def names_of(title: str, slug: str, frontmatter: dict[str, Any]) -> list[tuple[str, str]]:
    """Each name of a page, folded, with its kind; the most certain first."""
    given = frontmatter.get("aliases", frontmatter.get("alias"))
    aliases = given if isinstance(given, list) else [given]
    found = [(title, "title"), (slug, "slug")]
    found += [(alias, "alias") for alias in aliases[:MOST_ALIASES] if isinstance(alias, str)]
    found.append((slug.rpartition("/")[2], "name"))
    names: dict[str, str] = {}
    for text, kind in found:
        names.setdefault(fold(text), kind)
    names.pop("", None)
    return list(names.items())


def called(db: "Database", names: list[str]) -> list[Named]:
    """The pages that have one of these folded names; the most certain kind of name first."""
    rows = db.rows(
        "SELECT n.name, n.page_id, n.kind FROM json_each(?) AS wanted CROSS JOIN page_names AS n"
        " ON n.name = wanted.value JOIN pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL",
        (json.dumps(names, ensure_ascii=False),),
    )
    found = [Named(*row) for row in rows]
    return sorted(found, key=lambda each: (KINDS.index(each.kind), each.page_id))


def wings_called(db: "Database", names: list[str]) -> list[str]:
    """Those of the names that are wings."""
    rows = db.rows(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM pages INDEXED BY pages_by_wing"
        " WHERE wing = value AND quarantined_at IS NULL)",
        (json.dumps(names, ensure_ascii=False),),
    )
    return [name for (name,) in rows]


def first_chunks(db: "Database", page_ids: list[int], filters: "Filters") -> dict[int, int]:
    """The first chunk of each of these pages that the filters allow; pages without one are left out."""
    conditions, values = page_conditions(filters)
    rows = db.rows(
        "SELECT c.page_id, c.id, min(c.chunk_index) FROM json_each(?) AS wanted"  # noqa: S608
        " CROSS JOIN pages AS p ON p.id = wanted.value CROSS JOIN chunks AS c ON c.page_id = p.id"
        f"{' WHERE ' + conditions if conditions else ''} GROUP BY c.page_id",
        (str(page_ids), *values),
    )
    return {page_id: chunk_id for page_id, chunk_id, _ in rows}

"""What is served, compared with the second copy that the memory has of it.

SQLite keeps no checksums: a flipped bit in a text is served as if somebody had written it. But the text of a page
lies there twice, in its row and in its chunks, in different places of the file: when they differ, one of them is
damaged. A page that is not cut into chunks yet has no second copy. Knows nothing else about chunks.
"""

from typing import TYPE_CHECKING

from quaid.errors import DamagedDatabase

if TYPE_CHECKING:
    from quaid.store.db import Database


Texts = dict[int, tuple[str, str]]
"""The truth and the timeline of pages, by their ids."""


def check(db: "Database", texts: Texts) -> None:
    """DamagedDatabase when a chunk is not a stretch of its page's texts, or a text is none."""
    for page_id, pair in texts.items():
        if not (isinstance(pair[0], str) and isinstance(pair[1], str)):
            raise DamagedDatabase(path=db.path, problem=f"the text of page {page_id} is none")
    torn = _torn(db, texts)
    if torn is None:
        return
    with db.reading():  # somebody may have written between the two looks: both once more, of one state
        rows = db.rows("SELECT slug, compiled_truth, timeline FROM pages WHERE id = ?", (torn,))
        for slug, truth, timeline in rows:
            if _torn(db, {torn: (truth, timeline)}) is not None:
                problem = f"the page {slug} and its chunks say different things"
                raise DamagedDatabase(path=db.path, problem=problem)


def _torn(db: "Database", texts: Texts) -> int | None:
    """The first page whose chunks are not stretches of its texts, in their order."""
    rows = db.rows(
        "SELECT page_id, chunk_type, chunk_text FROM json_each(?) AS wanted"
        " CROSS JOIN chunks AS c INDEXED BY chunks_by_page ON c.page_id = wanted.value"
        " ORDER BY page_id, chunk_index",
        (str([*texts]),),
    )
    at: dict[tuple[int, str], int] = {}
    for page_id, kind, text in rows:
        # Each chunk may begin with the end of the one before.
        page = texts[page_id][kind != "truth_section"]
        start = page.find(text, at.get((page_id, kind), 0)) if isinstance(text, str) else -1
        if start < 0:
            return int(page_id)
        at[page_id, kind] = start
    return None

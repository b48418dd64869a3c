"""What may be wrong inside a memory, and how to see it.

Knows the rules that the tables alone cannot hold. Changes nothing. Each check yields what it finds; a check
that cannot go on because the file is damaged says so as its finding.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import apsw

from quaid.model.chunker import Chunk, chunk_by_structure, chunk_page
from quaid.model.page import Page
from quaid.model.timeline import summary_hash
from quaid.store import (
    SCHEMA_VERSION,
    chunks,
    conversations,
    links as text_links,
    turn_vectors,
    vectors,
    words,
)
from quaid.store.opening import APPLICATION_ID
from quaid.store.rebuild import INDEXES, built_pages, failed_on, unbuilt_pages
from quaid.store.upkeep import Violation

if TYPE_CHECKING:
    from quaid.store.db import Database, Row

CHUNKS = (
    "SELECT chunk_index, chunk_type, content_hash, token_count, start_line, end_line, date, heading_path,"
    " chunk_text FROM chunks WHERE page_id = ? ORDER BY chunk_index"
)

Found = Iterator[tuple[str, str]]


def run(db: "Database", names: tuple[str, ...]) -> list[Violation]:
    """Run these checks over one state of the memory."""
    found: list[Violation] = []

    def look(connection: apsw.Connection) -> None:
        for name in names:
            try:
                found.extend(Violation(name, *finding) for finding in CHECKS[name](connection))
            except (apsw.CorruptError, apsw.NotADBError, apsw.FullError) as damage:
                # A pointer beyond the end of the file looks to SQLite like a full disk.
                found.append(Violation(name, "database", str(damage)))
            except apsw.SQLError as damage:
                if not is_of_an_index(str(damage)):
                    raise
                found.append(Violation(name, "database", str(damage)))
            except (AttributeError, TypeError, ValueError) as damage:
                # A column that may not be empty is, a number is a text: a flipped byte in the head of a row.
                problem = f"a row holds what cannot be in it ({type(damage).__name__})"
                found.append(Violation(name, "database", problem))

    # FTS5 checks itself by a statement that SQLite takes for a write.
    if db.writable:
        db.try_out(look)
    else:
        copy = apsw.Connection(":memory:")
        with db.lock.turn, copy.backup("main", db.connection, "main") as backup:
            backup.step()
        look(copy)
        copy.close()
    return found


def links(connection: apsw.Connection) -> Found:
    """Intervals that run backwards or overlap, and links to pages that are not there."""
    for link, since, until in connection.execute(
        "SELECT id, valid_from, valid_until FROM links WHERE valid_until < valid_from"
    ):
        yield f"link {link}", f"it ends on {until}, before it begins on {since}"
    # A link with an unknown beginning counts from its last day; one without any date from the end of time.
    for link, other in connection.execute(
        "WITH spans AS (SELECT *, coalesce(valid_from, valid_until, '9999-12-31') AS first,"
        " coalesce(valid_until, '~') AS last FROM links)"
        " SELECT b.id, a.id FROM spans a"
        " JOIN spans b USING (from_page_id, to_page_id, relationship, source_kind)"
        " WHERE a.id < b.id AND a.first < b.last AND b.first < a.last AND a.source_kind = 'programmatic'"
    ):
        yield f"link {link}", f"its time overlaps with link {other} of the same pages and relationship"
    for link, side in connection.execute(
        "SELECT l.id, 'from' FROM links l LEFT JOIN pages p ON p.id = l.from_page_id WHERE p.id IS NULL"
        " UNION ALL"
        " SELECT l.id, 'to' FROM links l LEFT JOIN pages p ON p.id = l.to_page_id"
        " WHERE p.id IS NULL AND l.to_page_id IS NOT NULL"
    ):
        yield f"link {link}", f"the page that it leads {side} is not there"
    for page_id, page, _ in built_pages(connection):
        if text_links.differ(connection, page_id, page):
            yield f"page {page.slug}", "its links are not those of its text"
    for link in text_links.misled(connection):
        yield f"link {link}", "it does not lead to the page that its text names"


def assertions(connection: apsw.Connection) -> Found:
    """Facts that are there twice, and chains of supersession that do not hold."""
    for first, times, subject, predicate, value in connection.execute(
        "SELECT min(id), count(*), subject, predicate, object FROM assertions"
        " GROUP BY page_id, subject, predicate, object, valid_from, valid_until HAVING count(*) > 1"
    ):
        yield f"assertion {first}", f"{subject} {predicate} {value} is there {times} times"
    for old, new in connection.execute(
        "SELECT o.id, n.id FROM assertions n JOIN assertions o ON o.id = n.supersedes_id"
        " WHERE o.valid_until IS NULL"
    ):
        yield f"assertion {old}", f"assertion {new} supersedes it, but it has no valid_until"
    older: dict[int, int] = {}
    for new, old, there in connection.execute(
        "SELECT n.id, n.supersedes_id, o.id IS NOT NULL FROM assertions n"
        " LEFT JOIN assertions o ON o.id = n.supersedes_id WHERE n.supersedes_id IS NOT NULL"
    ):
        older[new] = old
        if not there:
            yield f"assertion {new}", f"it supersedes assertion {old}, which is not there"
    for start in cycles(older):
        yield f"assertion {start}", "it supersedes itself, over others or at once"


def cycles(older: dict[int, int]) -> list[int]:
    """The smallest member of each circle in a map from newer to older."""
    starts: list[int] = []
    done: set[int] = set()
    for start in sorted(older):
        path: dict[int, None] = {}
        at = start
        while at in older and at not in done and at not in path:
            path[at] = None
            at = older[at]
        if at in path:
            circle = list(path)[list(path).index(at) :]
            starts.append(min(circle))
        done.update(path)
    return starts


def embeddings(connection: apsw.Connection) -> Found:
    """Models, vectors and codes that do not fit together."""
    models: list[Row] = connection.execute(
        "SELECT name, dimensions, vec_table, active, mean FROM embedding_models"
    ).fetchall()
    active = [name for name, _, _, is_active, _ in models if is_active]
    if models and len(active) != 1:
        yield "embedding_models", f"{len(active)} models are active; it must be exactly one"
    tables = vectors.vec_tables(connection)
    for name, dimensions, table, _, mean in models:
        if table not in tables or table != vectors.vec_table(dimensions):
            yield f"model {name}", f"its table {table} is not there, or not of {dimensions} dimensions"
        else:
            yield from _vectors(connection, name, dimensions, table)
            yield from _codes(connection, name, dimensions, table, "vector_codes", mean)
    yield from _turns(connection)
    for table in tables:
        for name, number in connection.execute(
            f"SELECT model, count(*) FROM {table} WHERE model NOT IN (SELECT name FROM embedding_models)"  # noqa: S608
            " GROUP BY model"
        ):
            yield f"model {name}", f"{number} vectors are of it, but it is not registered"


def _vectors(connection: apsw.Connection, model: str, dimensions: int, table: str) -> Found:
    wrong = f"SELECT count(*) FROM {table} WHERE model = ? AND length(vector) <> ?"  # noqa: S608 (checked)
    for (number,) in connection.execute(wrong, (model, 2 * dimensions)):
        if number:
            yield f"model {model}", f"{number} vectors are not of {dimensions} dimensions"


def _turns(connection: apsw.Connection) -> Found:
    """The same of conversations; and parts that are not those of their turns."""
    rows: list[Row] = connection.execute(
        "SELECT m.name, m.dimensions, e.mean FROM turn_encodings e JOIN embedding_models m ON m.name = e.model"
    ).fetchall()
    for name, dimensions, mean in rows:
        yield from _vectors(connection, name, dimensions, "turn_vectors")
        yield from _codes(connection, name, dimensions, "turn_vectors", "turn_codes", mean)
    for turn, problem in turn_vectors.wrong_parts(connection):
        yield f"turn {turn}", problem


def _codes(
    connection: apsw.Connection, model: str, dimensions: int, table: str, codes: str, mean: bytes | None
) -> Found:
    """The ids in the blocks must be those of the vectors, in their order, with a code for each."""
    coded: list[int] = []
    blocks: Iterable[Row] = connection.execute(
        f"SELECT vec_rowids, length(codes) FROM {codes} WHERE model = ? ORDER BY block",  # noqa: S608 (fixed)
        (model,),
    )
    size = 8 * -(-dimensions // 64)
    for ids, length in blocks:
        coded += memoryview(ids).cast("q").tolist()
        if length != len(ids) // 8 * size:
            yield f"model {model}", "a block of its codes has not the length of its ids"
    if mean is None and not coded:
        return
    ids = f"SELECT id FROM {table} WHERE model = ? ORDER BY id"  # noqa: S608 (checked)
    there = [row[0] for row in connection.execute(ids, (model,))]
    if coded != there:
        yield f"model {model}", "its codes are not those of its vectors"


def fts(connection: apsw.Connection) -> Found:
    """Words that do not fit the pages and chunks."""
    for table in INDEXES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        except (apsw.CorruptError, apsw.SQLError):
            yield table, "its words are not those of the pages"
    yield from _unspaced(connection)
    yield from _chunk_words(connection)
    for turn, problem in conversations.wrong_words(connection):
        yield f"turn {turn}", problem


def _chunk_words(connection: apsw.Connection) -> Found:
    """Index the words of every chunk once more, aside, and compare how many there are."""
    sql = "SELECT c.id, p.title, c.heading_path, c.chunk_text FROM chunks c JOIN pages p ON p.id = c.page_id"
    wanted, there = _sizes(connection, "chunk_fts", sql, lambda aside, row: chunks.index_words(aside, [row]))
    for chunk_id in sorted(wanted.keys() | there.keys()):
        if chunk_id not in there:
            yield f"chunk {chunk_id}", "its words are missing in chunk_fts"
        elif chunk_id not in wanted:
            yield f"chunk {chunk_id}", "it is not there, but chunk_fts holds its words"
        elif wanted[chunk_id] != there[chunk_id]:
            yield f"chunk {chunk_id}", "its words in chunk_fts are not those of its text"


def _sizes(
    connection: apsw.Connection, table: str, sql: str, add: Callable[[apsw.Connection, Any], object]
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """How many words each row of a full-text table should have, indexed once more aside, and how many it has."""
    aside = apsw.Connection(":memory:")
    for (made_by,) in connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)):
        aside.execute(str(made_by))
    for row in connection.execute(sql):
        add(aside, row)
    sizes = f"SELECT id, sz FROM {table}_docsize"  # noqa: S608 (our own names)
    wanted, there = dict(aside.execute(sizes)), dict(connection.execute(sizes))
    aside.close()
    return wanted, there


def _unspaced(connection: apsw.Connection) -> Found:
    """Index every page once more, aside, and compare."""
    sql = "SELECT id, title, slug, compiled_truth, timeline FROM searchable_pages"
    wanted, there = _sizes(
        connection, "page_fts_unspaced", sql, lambda aside, page: words.index_page(aside, *page)
    )
    for page_id in sorted(wanted.keys() | there.keys()):
        if page_id not in there:
            yield f"page {page_id}", "its words are missing in page_fts_unspaced"
        elif page_id not in wanted:
            yield f"page {page_id}", "page_fts_unspaced holds words that it has not"
        elif wanted[page_id] != there[page_id]:
            yield f"page {page_id}", "its words in page_fts_unspaced are old"


def integrity(connection: apsw.Connection) -> Found:
    """Damage in the file, rows that point nowhere, versions that disagree, derived rows that are wrong."""
    yield from _file(connection)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table} {row}", f"it points to a row of {parent} that is not there"
    if connection.pragma("application_id") != APPLICATION_ID:
        yield "application_id", "it is not Quaid's"
    for where, version in (
        ("user_version", connection.pragma("user_version")),
        *connection.execute(
            "SELECT 'config', (SELECT value FROM config WHERE key = 'version') UNION ALL"
            " SELECT 'quaid_config', (SELECT value FROM quaid_config WHERE key = 'schema_version')"
        ),
    ):
        if str(version) != str(SCHEMA_VERSION):
            yield str(where), f"it says schema {version or 'nothing'}, not {SCHEMA_VERSION}"
    yield from _side_rows(connection)


def _file(connection: apsw.Connection) -> Found:
    """What SQLite says of the file. An index of words that cannot be opened must not hide what else is hurt."""
    try:
        for (message,) in connection.execute("PRAGMA integrity_check"):
            if message != "ok":
                yield "database", str(message)
    except (apsw.CorruptError, apsw.SQLError) as damage:
        if not is_of_an_index(str(damage)):
            raise
        yield "database", str(damage)
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall():
            for (message,) in connection.execute(f'PRAGMA integrity_check("{table}")'):
                if message != "ok":
                    yield "database", str(message)


def is_of_an_index(problem: str) -> bool:
    """Whether what SQLite complains of is an index of words, which can be made again from the pages."""
    return "fts5" in problem.lower() or any(each in problem for each in INDEXES)


def _side_rows(connection: apsw.Connection) -> Found:
    """Tags, timeline entries and chunks against the texts that they come from."""
    tags = "SELECT tag FROM tags WHERE page_id = ? ORDER BY id"
    entries = (
        "SELECT date, summary_hash, source, summary, detail, line FROM timeline_entries"
        " WHERE page_id = ? ORDER BY id"
    )
    for page_id, page, quarantined in built_pages(connection):
        if [tag for (tag,) in connection.execute(tags, (page_id,))] != list(page.tags):
            yield f"page {page.slug}", "its tags are not those of its front matter and text"
        if connection.execute(entries, (page_id,)).fetchall() != _entry_rows(page):
            yield f"page {page.slug}", "its timeline entries are not those of its timeline"
        strategy = chunks.strategy(connection, page_id)
        made = () if quarantined else chunk_page(page.truth, page.timeline, strategy)
        there = connection.execute(CHUNKS, (page_id,)).fetchall()
        if there and there != _chunk_rows(page, made):  # none: it is not cut yet
            yield f"page {page.slug}", "its chunks are not those of its text"
        if there:
            try:
                chunk_by_structure(page.truth, page.timeline, strategy)
            except Exception as error:  # `cut` went by length alone
                yield f"page {page.slug}", f"it is cut by its length alone: {failed_on(error)}"
    for slug, problem in unbuilt_pages(connection):
        yield f"page {slug}", problem


def _chunk_rows(page: Page, made: tuple[Chunk, ...]) -> list[tuple[Any, ...]]:
    return [
        (
            *(index, each.kind, chunks.content_hash(page.title, each), each.tokens, each.start_line),
            *(each.end_line, each.date or None, each.heading_path, each.text),
        )
        for index, each in enumerate(made)
    ]


def _entry_rows(page: Page) -> list[tuple[str, str, str, str, str, int]]:
    rows: dict[tuple[str, str], tuple[str, str, str, str, str, int]] = {}
    for entry in page.entries:
        key = (entry.date, summary_hash(entry.summary))
        rows.setdefault(key, (*key, entry.source, entry.summary, entry.detail, entry.line))
    return list(rows.values())


CHECKS: dict[str, Callable[[apsw.Connection], Found]] = {
    "links": links,
    "assertions": assertions,
    "embeddings": embeddings,
    "fts": fts,
    "integrity": integrity,
}

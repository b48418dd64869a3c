"""Check a database for damage and inconsistencies, rebuild derived rows, and read intact rows of a damaged file."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw

from quaid.errors import DamagedDatabase
from quaid.model.chunker import Chunk, chunk_by_structure, chunk_page
from quaid.model.page import Page, build_page, page_type, page_wing
from quaid.model.timeline import summary_hash
from quaid.storage import SCHEMA_VERSION, chunks, conversations, links, page_edits, text_index, vectors
from quaid.storage.facts import facts_in_range
from quaid.storage.pages import page_addresses
from quaid.storage.sqlite.connection import APPLICATION_ID, Transaction
from quaid.storage.sqlite.errors import translate_sqlite_errors

if TYPE_CHECKING:
    from quaid.storage.facts import FactRow
    from quaid.storage.links import AddedLink
    from quaid.storage.sqlite.connection import Database, Row

TEXT_INDEXES = ("page_fts", "page_fts_unspaced", "chunk_fts", "turn_fts")
"""The full-text indexes. SQLite stores each in shadow tables named after it."""

LONGEST_REASON = 200
"""A check shows at most this many characters of an exception message."""

PAGES_PER_PROGRESS = 50
"""Number of pages between two progress reports."""


def rebuild_derived_rows(
    tx: Transaction, report: Callable[[int, int], None] = lambda _done, _total: None
) -> None:
    """Rebuild all rows derived from pages and conversations. Call `report(done, total)` with numbers of pages."""
    total: int = tx.execute("SELECT count(*) FROM pages").get
    update_types(tx)
    empty_text_indexes(tx)
    tx.execute("DELETE FROM tags")
    tx.execute("DELETE FROM timeline_entries")
    # Only the chunks of hidden pages are deleted. Other chunks keep their ids if their content is unchanged, because
    # searches break ties by id, and estimate the number of chunks from the highest id.
    tx.execute("DELETE FROM chunks WHERE page_id IN (SELECT id FROM pages WHERE quarantined_at IS NOT NULL)")
    for done, (page_id, page, quarantined) in enumerate(parsed_pages(tx)):
        if done % PAGES_PER_PROGRESS == 0:
            report(done, total)
        page_edits.derive(tx, page_id, page, quarantined)
    report(total, total)
    tx.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
    chunks.index_all_words(tx)
    chunks.write_all_entries(tx)
    conversations.rebuild_words(tx)
    conversations.recut_turns(tx)
    for (model,) in tx.execute("SELECT name FROM embedding_models").fetchall():
        vectors.encode_chunk_vectors(tx, str(model))
    vectors.encode_turn_vectors(tx)


def update_types(tx: Transaction) -> None:
    """Recompute the type and wing of every page from its slug and front matter."""
    rows = tx.execute("SELECT id, slug, type, wing, frontmatter FROM pages").fetchall()
    changed = []
    for page_id, slug, type, wing, text in rows:
        try:
            frontmatter = json.loads(str(text))
            kind = page_type(str(slug), frontmatter)
            new_wing = page_wing(str(slug), kind, frontmatter)
        except (ValueError, TypeError, AttributeError):
            continue  # the row is damaged; unbuilt_pages() reports it
        if (kind, new_wing) != (type, wing):
            changed.append((kind, new_wing, page_id))
    tx.executemany("UPDATE pages SET type = ?, wing = ? WHERE id = ?", changed)


def update_links(tx: Transaction) -> None:
    """Recompute the names and links of the pages for which the rules have changed since schema 8.

    Then resolve all derived links again.
    """
    affected = {
        page_id
        for (page_id,) in tx.execute(
            "SELECT id FROM pages WHERE slug GLOB '*/index' OR slug GLOB '*/_index'"
            " OR instr(compiled_truth || timeline, '](/') OR instr(compiled_truth || timeline, 'ref \"')"
        )
    }
    for page_id, page, _ in list(parsed_pages(tx)) if affected else ():
        if page_id in affected:
            page_edits.index_names(tx, page_id, page)
            links.derive(tx, page_id, page)
    links.correct_targets(tx)


def empty_text_indexes(tx: Transaction) -> None:
    """Empty the full-text indexes. Recreate an index that cannot be emptied."""
    tables = {str(name) for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
    for index in TEXT_INDEXES:
        try:
            if not all(table in tables for table in _index_tables(index)):
                raise apsw.CorruptError(index)
            tx.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")  # noqa: S608 (our own names)
        except (apsw.CorruptError, apsw.SQLError):
            _recreate_index(tx, index)


def _index_tables(index: str) -> tuple[str, ...]:
    return index, *(f"{index}_{suffix}" for suffix in ("data", "idx", "docsize", "config"))


def read_schema() -> str:
    """Return the text of schema.sql."""
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


def schema_statements() -> dict[str, str]:
    """Return the CREATE statements of the schema by object name, in order."""
    fresh = apsw.Connection(":memory:")
    fresh.execute(read_schema())
    statements = fresh.execute(
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB '*_fts*_*'"
        " AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    fresh.close()
    return {str(name): str(sql) for name, sql in statements}


def _recreate_index(tx: Transaction, index: str) -> None:
    config = f"{index}_config"
    guarded = tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1)
    # The shadow tables of an index are write-protected in defensive mode.
    tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        # DROP TABLE opens the index first, which requires a version number in this table.
        tx.execute(f"CREATE TABLE IF NOT EXISTS {config} (k PRIMARY KEY, v) WITHOUT ROWID")
        tx.execute(f"INSERT OR REPLACE INTO {config} (k, v) VALUES ('version', 4)")  # noqa: S608 (our own names)
        for table in _index_tables(index):
            tx.execute(f"DROP TABLE IF EXISTS {table}")
        tx.execute(schema_statements()[index])
    finally:
        tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, guarded)


def recut_pages(tx: Transaction) -> None:
    """Chunk every visible page again with the current settings. Unchanged chunks keep their rows."""
    for page_id, page, quarantined in parsed_pages(tx):
        if not quarantined:
            chunks.write(tx, page_id, page.title, page.truth, page.timeline)


def parsed_pages(tx: Transaction) -> Iterator[tuple[int, Page, bool]]:
    """Yield (page id, page, whether it is quarantined) for each stored page.

    Pages that cannot be built are skipped; see unbuilt_pages().
    """
    for page_id, _, page, quarantined in _built(tx):
        if isinstance(page, Page):
            yield page_id, page, quarantined


def unbuilt_pages(tx: Transaction) -> Iterator[tuple[str, str]]:
    """Yield (slug, reason) for each stored page that cannot be built."""
    for _, slug, problem, _ in _built(tx):
        if isinstance(problem, str):
            yield slug, problem


def _built(tx: Transaction) -> Iterator[tuple[int, str, Page | str, bool]]:
    """Yield (page id, slug, page, whether it is quarantined) for each stored page.

    If the page cannot be built, a string with the reason takes its place.
    """
    for page_id, slug, title, frontmatter, truth, timeline, quarantined in tx.execute(
        "SELECT id, slug, title, frontmatter, compiled_truth, timeline, quarantined_at IS NOT NULL FROM pages"
    ):
        page_or_problem: Page | str
        try:
            values = json.loads(str(frontmatter))
            if isinstance(values, dict):
                page_or_problem = build_page(str(slug), values, str(truth), str(timeline))._replace(
                    title=str(title)
                )
            else:
                page_or_problem = "its front matter is not a JSON object"
        except json.JSONDecodeError:
            page_or_problem = "its front matter is not JSON"
        except Exception as error:  # report the error, and go on with the other pages
            page_or_problem = failed_on(error)
        yield int(page_id), str(slug), page_or_problem, bool(quarantined)


def failed_on(error: Exception) -> str:
    """Return a one-line message for an exception raised while processing the text of a page."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Quaid fails on its text ({reason[:LONGEST_REASON]}). That is a bug: please report it"


CHECK_NAMES = ("links", "assertions", "embeddings", "fts", "integrity")


class Violation(NamedTuple):
    """A problem that a check found."""

    check: str
    where: str
    problem: str


def validate(db: "Database", which: Iterable[str] = CHECK_NAMES) -> list[Violation]:
    """Run the named checks and return the problems found."""

    with translate_sqlite_errors(db.path):
        return run_checks(db, tuple(which))


_CHUNK_ROWS_SQL = (
    "SELECT chunk_index, chunk_type, content_hash, token_count, start_line, end_line, date, heading_path,"
    " chunk_text FROM chunks WHERE page_id = ? ORDER BY chunk_index"
)

_CHUNK_ENTRIES_SQL = (
    "SELECT c.chunk_index, e.start_at, e.end_at, e.content_hash FROM chunks AS c"
    " JOIN chunk_entries AS e ON e.chunk_id = c.id WHERE c.page_id = ? ORDER BY c.chunk_index, e.id"
)

Findings = Iterator[tuple[str, str]]


def run_checks(db: "Database", names: tuple[str, ...]) -> list[Violation]:
    """Run these checks on one snapshot of the database and return the problems found."""
    violations: list[Violation] = []

    def look(connection: Transaction) -> None:
        for name in names:
            try:
                violations.extend(Violation(name, *finding) for finding in CHECKS[name](connection))
            except (apsw.CorruptError, apsw.NotADBError, apsw.FullError) as damage:
                # SQLite reports a page number beyond the end of the file as a full disk.
                violations.append(Violation(name, "database", str(damage)))
            except apsw.SQLError as damage:
                if not is_text_index_damage(str(damage)):
                    raise
                violations.append(Violation(name, "database", str(damage)))
            except (AttributeError, TypeError, ValueError) as damage:
                # The row has NULL in a NOT NULL column, or text instead of a number, because a byte of its
                # header was flipped.
                problem = f"a row holds what cannot be in it ({type(damage).__name__})"
                violations.append(Violation(name, "database", problem))

    # FTS5's integrity check is an INSERT statement. It is rolled back, or run on a copy in RAM if the memory is
    # read-only.
    if db.writable:
        db.dry_run(look)
    else:
        copy = Transaction(":memory:")
        with db.lock.turn, copy.backup("main", db.connection, "main") as backup:
            backup.step()
        look(copy)
        copy.close()
    return violations


def check_links(connection: Transaction) -> Findings:
    """Find links that end before they begin, overlap, have a missing page, or differ from the page text."""
    for link, since, until in connection.execute(
        "SELECT id, valid_from, valid_until FROM links WHERE valid_until < valid_from"
    ):
        yield f"link {link}", f"it ends on {until}, before it begins on {since}"
    # A link without a start date is taken to start on its end date. If both dates are missing, it starts on
    # the maximum date.
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
    for page_id, page, _ in parsed_pages(connection):
        if links.differ_from_text(connection, page_id, page):
            yield f"page {page.slug}", "its links are not those of its text"
    for link in links.wrong_targets(connection):
        yield f"link {link}", "it does not lead to the page that its text names"


def check_facts(connection: Transaction) -> Findings:
    """Find duplicate facts and broken supersession chains."""
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
    for new, old, exists in connection.execute(
        "SELECT n.id, n.supersedes_id, o.id IS NOT NULL FROM assertions n"
        " LEFT JOIN assertions o ON o.id = n.supersedes_id WHERE n.supersedes_id IS NOT NULL"
    ):
        older[new] = old
        if not exists:
            yield f"assertion {new}", f"it supersedes assertion {old}, which is not there"
    for start in find_cycles(older):
        yield f"assertion {start}", "it supersedes itself, over others or at once"


def find_cycles(older: dict[int, int]) -> list[int]:
    """Return the smallest member of each cycle in a mapping from newer to older ids."""
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


def check_embeddings(connection: Transaction) -> Findings:
    """Find inconsistencies between embedding models, vectors and their one-bit codes."""
    models: list[Row] = connection.execute(
        "SELECT name, dimensions, vec_table, active, mean FROM embedding_models"
    ).fetchall()
    active = [name for name, _, _, is_active, _ in models if is_active]
    if models and len(active) != 1:
        yield "embedding_models", f"{len(active)} models are active; it must be exactly one"
    tables = vectors.vector_tables(connection)
    for name, dimensions, table, _, mean in models:
        if table not in tables or table != vectors.vector_table(dimensions):
            yield f"model {name}", f"its table {table} is not there, or not of {dimensions} dimensions"
        else:
            yield from _check_vector_sizes(connection, name, dimensions, table)
            yield from _check_codes(connection, name, dimensions, table, "vector_codes", mean)
    yield from _check_turn_vectors(connection)
    for table in tables:
        for name, number in connection.execute(
            f"SELECT model, count(*) FROM {table} WHERE model NOT IN (SELECT name FROM embedding_models)"  # noqa: S608
            " GROUP BY model"
        ):
            yield f"model {name}", f"{number} vectors are of it, but it is not registered"


def _check_vector_sizes(connection: Transaction, model: str, dimensions: int, table: str) -> Findings:
    wrong = f"SELECT count(*) FROM {table} WHERE model = ? AND length(vector) <> ?"  # noqa: S608 (checked)
    for (number,) in connection.execute(wrong, (model, 2 * dimensions)):
        if number:
            yield f"model {model}", f"{number} vectors are not of {dimensions} dimensions"


def _check_turn_vectors(connection: Transaction) -> Findings:
    """Check the vectors and one-bit codes of conversation turns, and that parts of turns match the turns."""
    rows: list[Row] = connection.execute(
        "SELECT m.name, m.dimensions, e.mean FROM turn_encodings e JOIN embedding_models m ON m.name = e.model"
    ).fetchall()
    for name, dimensions, mean in rows:
        yield from _check_vector_sizes(connection, name, dimensions, "turn_vectors")
        yield from _check_codes(connection, name, dimensions, "turn_vectors", "turn_codes", mean)
    for turn, problem in conversations.wrong_parts(connection):
        yield f"turn {turn}", problem


def _check_codes(
    connection: Transaction, model: str, dimensions: int, table: str, codes: str, mean: bytes | None
) -> Findings:
    """Check that the blocks of one-bit codes contain the ids of the vectors in order, and a code for each."""
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
    stored = [row[0] for row in connection.execute(ids, (model,))]
    if coded != stored:
        yield f"model {model}", "its codes are not those of its vectors"


def check_text_indexes(connection: Transaction) -> Findings:
    """Find full-text index entries that do not match the pages, chunks and turns."""
    for table in TEXT_INDEXES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        except (apsw.CorruptError, apsw.SQLError):
            yield table, "its words are not those of the pages"
    sql = "SELECT id, title, slug, compiled_truth, timeline FROM searchable_pages"
    yield from _check_word_counts(
        connection, "page", "page_fts_unspaced", sql, lambda aside, row: text_index.index_page(aside, *row)
    )
    sql = "SELECT c.id, p.title, c.heading_path, c.chunk_text FROM chunks c JOIN pages p ON p.id = c.page_id"
    yield from _check_word_counts(
        connection, "chunk", "chunk_fts", sql, lambda aside, row: chunks.index_words(aside, [row])
    )
    sql = "SELECT id, text FROM conversation_turns"
    yield from _check_word_counts(
        connection, "turn", "turn_fts", sql, lambda aside, row: conversations.index_words(aside, [row])
    )


def _check_word_counts(
    connection: Transaction, kind: str, table: str, sql: str, add: Callable[[Transaction, Any], object]
) -> Findings:
    """Index all rows of a kind again in an in-memory database and compare the word counts."""
    aside = Transaction(":memory:")
    for (made_by,) in connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)):
        aside.execute(str(made_by))
    for row in connection.execute(sql):
        add(aside, row)
    sizes = f"SELECT id, sz FROM {table}_docsize"  # noqa: S608 (our own names)
    expected, indexed = dict(aside.execute(sizes)), dict(connection.execute(sizes))
    aside.close()
    for row_id in sorted(expected.keys() | indexed.keys()):
        if row_id not in indexed:
            yield f"{kind} {row_id}", f"its words are missing in {table}"
        elif row_id not in expected:
            yield f"{kind} {row_id}", f"{table} holds words that it has not"
        elif expected[row_id] != indexed[row_id]:
            yield f"{kind} {row_id}", f"its words in {table} are not those of its text"


def check_integrity(connection: Transaction) -> Findings:
    """Find file damage, broken foreign keys, mismatched versions and wrong derived rows."""
    yield from _check_file(connection)
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
    yield from _check_derived_rows(connection)


def _check_file(connection: Transaction) -> Findings:
    """Run SQLite's integrity check. If a full-text index is broken, check the other tables one by one."""
    try:
        for (message,) in connection.execute("PRAGMA integrity_check"):
            if message != "ok":
                yield "database", str(message)
    except (apsw.CorruptError, apsw.SQLError) as damage:
        if not is_text_index_damage(str(damage)):
            raise
        yield "database", str(damage)
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall():
            for (message,) in connection.execute(f'PRAGMA integrity_check("{table}")'):
                if message != "ok":
                    yield "database", str(message)


def is_text_index_damage(problem: str) -> bool:
    """Return True if an SQLite error is about a full-text index, which can be rebuilt from the pages."""
    return "fts5" in problem.lower() or any(index in problem for index in TEXT_INDEXES)


def _check_derived_rows(connection: Transaction) -> Findings:
    """Compare tags, timeline entries and chunks with the text they are derived from."""
    tags = "SELECT tag FROM tags WHERE page_id = ? ORDER BY id"
    entries = (
        "SELECT date, summary_hash, source, summary, detail, line FROM timeline_entries"
        " WHERE page_id = ? ORDER BY id"
    )
    for page_id, page, quarantined in parsed_pages(connection):
        if [tag for (tag,) in connection.execute(tags, (page_id,))] != list(page.tags):
            yield f"page {page.slug}", "its tags are not those of its front matter and text"
        if connection.execute(entries, (page_id,)).fetchall() != _expected_entry_rows(page):
            yield f"page {page.slug}", "its timeline entries are not those of its timeline"
        strategy = chunks.strategy(connection, page_id)
        cuts = () if quarantined else chunk_page(page.truth, page.timeline, strategy)
        stored = connection.execute(_CHUNK_ROWS_SQL, (page_id,)).fetchall()
        # A page without rows has not been chunked yet.
        if stored and stored != _expected_chunk_rows(page, cuts):
            yield f"page {page.slug}", "its chunks are not those of its text"
        elif stored and connection.execute(_CHUNK_ENTRIES_SQL, (page_id,)).fetchall() != [
            (index, *row)
            for index, chunk in enumerate(cuts)
            for row in chunks.entry_rows(page.title, chunk.heading_path, chunk.text)
        ]:
            yield f"page {page.slug}", "the entries of its chunks are not those of its text"
        if stored:
            try:
                chunk_by_structure(page.truth, page.timeline, strategy)
            except Exception as error:  # chunk_page() does not raise, but falls back to chunking by length
                yield f"page {page.slug}", f"it is cut by its length alone: {failed_on(error)}"
    for slug, problem in unbuilt_pages(connection):
        yield f"page {slug}", problem


def _expected_chunk_rows(page: Page, made: tuple[Chunk, ...]) -> list[tuple[Any, ...]]:
    return [
        (
            *(index, chunk.kind, chunks.content_hash(page.title, chunk), chunk.tokens, chunk.start_line),
            *(chunk.end_line, chunk.date or None, chunk.heading_path, chunk.text),
        )
        for index, chunk in enumerate(made)
    ]


def _expected_entry_rows(page: Page) -> list[tuple[str, str, str, str, str, int]]:
    rows: dict[tuple[str, str], tuple[str, str, str, str, str, int]] = {}
    for entry in page.entries:
        key = (entry.date, summary_hash(entry.summary))
        rows.setdefault(key, (*key, entry.source, entry.summary, entry.detail, entry.line))
    return list(rows.values())


CHECKS: dict[str, Callable[[Transaction], Findings]] = {
    "links": check_links,
    "assertions": check_facts,
    "embeddings": check_embeddings,
    "fts": check_text_indexes,
    "integrity": check_integrity,
}

T = TypeVar("T")


def readable_addresses(db: "Database") -> tuple[list[tuple[str, str, str]], list[int]]:
    """Return collection, type and slug of the visible pages that can be read, and the page ids that cannot.

    Some of the unreadable ids may belong to deleted pages. Raise DamagedDatabase if the highest id cannot be read.
    """
    try:
        return page_addresses(db), []
    except DamagedDatabase:
        pass
    names = _readable_collection_names(db)
    if not _last_id(db, "pages"):
        raise DamagedDatabase(path=db.path, problem="not even the number of its pages can be read")
    addresses: list[tuple[int, str, str]]
    addresses, lost = _read_by_id_range(
        db,
        "pages",
        lambda low, high: db.rows(
            "SELECT collection_id, type, slug FROM pages WHERE id BETWEEN ? AND ? AND quarantined_at IS NULL",
            (low, high),
        ),
    )
    return [(names.get(id_, f"collection-{id_}"), kind, slug) for id_, kind, slug in sorted(addresses)], lost


def readable_links_and_facts(
    db: "Database",
) -> "tuple[list[AddedLink], list[tuple[str, str, FactRow]], list[int], list[int]]":
    """Return the added links and the facts that can be read, and the ids of links and of facts that cannot."""
    added, lost_links = _read_by_id_range(db, "links", partial(links.added_links, db))
    facts, lost_facts = _read_by_id_range(db, "assertions", partial(facts_in_range, db))
    return added, facts, lost_links, lost_facts


def _read_by_id_range(
    db: "Database", table: str, read: "Callable[[int, int], list[T]]"
) -> "tuple[list[T], list[int]]":
    """Return the results of `read` for all ids of a table, and the ids that cannot be read.

    Halves a range that contains damage until only the unreadable ids are left.
    """
    rows: list[T] = []
    lost: list[int] = []
    last = _last_id(db, table)
    ranges = [(1, last)] if last else []
    while ranges:
        low, high = ranges.pop()
        try:
            rows += read(low, high)
        except DamagedDatabase:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            else:
                lost.append(low)
    return rows, lost


def _readable_collection_names(db: "Database") -> dict[int, str]:
    """Return collection names by id, or only the default collection if the table cannot be read."""
    try:
        return dict(db.rows("SELECT id, name FROM collections"))
    except DamagedDatabase:
        return {1: "default"}


def _last_id(db: "Database", table: str) -> int:
    """Return the highest id that a table has had, or 0 if it never had any rows.

    If that is unreadable, return the highest present id. Raise DamagedDatabase if neither can be read.
    """
    read = False
    for sql in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",  # noqa: S608 (fixed)
        f"SELECT max(id) FROM {table}",  # noqa: S608
    ):
        try:
            row = db.one(sql)
        except DamagedDatabase:
            continue
        read = True
        if row and row[0]:
            return int(row[0])
    if not read:
        raise DamagedDatabase(path=db.path, problem=f"not even the number of its {table} can be read")
    return 0

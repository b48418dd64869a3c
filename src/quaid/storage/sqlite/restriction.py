# ruff: noqa: S608 (names come from the schema, and values are quoted)
"""A connection that sees only a part of a memory, for callers restricted to collections, wings or projects.

SQLite looks up a table name in the temporary schema first. A restricted connection therefore has a temporary
view for each table, with the name of the table and only the visible rows, so that statements elsewhere need
not handle the restriction. In a table that is not listed in this module, rows are visible if their page_id,
collection_id or foreign keys refer to visible rows. Full-text indexes cannot be views: the connection builds
temporary indexes from the visible rows, so that neither ranking nor suggestions depend on hidden rows.
Statements that write are redirected to the real table (`main.`); before a commit, all changed rows are
checked. See docs/decisions/123-scopes.md.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import apsw

from quaid.errors import OutsideScope
from quaid.model.slug import ONLY_PREFIXES as PREFIXES
from quaid.storage import chunks, links, pages, text_index
from quaid.storage.sqlite.connection import Transaction

Only = tuple[tuple[str, ...], ...]
"""The parts of a memory that a caller may see, in groups of items.

An item is the name of a collection, `conversations`, `wing:NAME` or `project:NAME`. A page is visible if each group
has an item that includes the page. Server, client and token can each add a group.
"""

CONVERSATIONS = "conversations"
LINKS = "links"
FILE_KINDS = "('notebook', 'kb')"
"""Kinds of collections to which the items `wing:NAME` and `project:NAME` do not apply."""

_CONVERSATION_TABLES = ("conversation", "turn_", "transcript_files")
_SCOPED_TABLES = ("knowledge_gaps", "proposals")
"""Tables with a column `scope`. A caller sees the rows written by callers with the same restriction."""
_SHARED_TABLES = ("config", "embedding_models", "vector_codes", "turn_codes", "turn_encodings")
"""Tables without page text, which are visible and writable for all callers."""
_WRITTEN_TABLES = (
    *_SHARED_TABLES,
    "quaid_config",
    "activity",
    "activity_pages",
    "ingest_log",
    "import_manifest",
    "import_files",
    "sqlite_sequence",
    "space_outbox",
)
"""Tables in which a restricted caller may change rows, whether they are visible or not."""
_HIDDEN_TABLES = (
    *("activity", "activity_pages", "duplicate_pairs", "import_manifest"),
    *("golden_questions", "golden_pages", "opened_results"),
)
"""Tables that restricted callers cannot read: the activity of other callers, and data about all pages."""
_VISIBLE_PROPERTIES = (
    f"key IN ('schema_version', 'memory_id', '{chunks.UNCUT_COUNTER}') OR key GLOB 'root_of_collection_*'"
    f" OR key GLOB '{pages.DISTINCT_KEY}*'"
)
"""SQL condition for the visible rows of quaid_config. Other rows reveal when the owner used the memory."""
_INDEXES = tuple(text_index.BM25)
_SHADOW_PARTS = ("data", "idx", "content", "docsize", "config")
"""Suffixes of the shadow tables in which FTS5 stores an index."""
_PARTLY_HIDDEN = ("ignore_patterns", "ignore_problem", "reconcile_halt_reason")
"""Columns of a collection that appear empty unless all of its pages are visible."""

_TARGET = re.compile(
    r"\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM"
    r"|(?:DROP|CREATE)\s+(?:VIEW|TABLE)(?:\s+IF\s+(?:NOT\s+)?EXISTS)?)\s+(?=\w+(?!\s*\.|\w))",
    re.IGNORECASE,
)
"""Matches the start of a writing statement, up to a table name without a schema."""
_WRITE = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE|DROP|CREATE)\b", re.IGNORECASE)
_INDEX_HINT = re.compile(r"(?<!\s)\s+INDEXED\s+BY\s+\w+", re.IGNORECASE)


@lru_cache(2_000)
def restricted_statement(sql: str) -> tuple[str, tuple[str, ...]]:
    """Rewrite a statement for a restricted connection, so that it reads views and writes real tables.

    Return the statement, and the names of the full-text indexes that it reads, with LINKS if it reads links. There
    are none for a writing statement: refreshing an index writes to it.
    """
    text = _INDEX_HINT.sub("", sql)
    target = _TARGET.match(text)
    if target:
        text = f"{text[: target.end()]}main.{text[target.end() :]}"
    words = set() if _WRITE.match(text) else set(re.findall(r"\w+", text))
    stems = {word.removesuffix("_docsize") for word in words}
    names = {stem.partition("_of_")[2] or stem for stem in stems}
    return text, tuple(name for name in (*_INDEXES, LINKS) if name in names)


class _Condition:
    """Builds SQL conditions for the rows that a restriction makes visible."""

    def __init__(self, only: Only) -> None:
        self._only = only

    def page(self, alias: str) -> str:
        """Return the condition that a row of pages is visible."""
        return self._all(lambda group: self._page(alias, group))

    def has_page(self, column: str) -> str:
        """Return the condition that a column contains the id of a visible page."""
        return f"EXISTS (SELECT 1 FROM main.pages AS own WHERE own.id = {column} AND {self.page('own')})"

    def whole_collection(self, column: str) -> str:
        """Return the condition that a column contains the id of a collection whose pages are all visible."""
        return self._all(lambda group: _in_collections(column, group))

    def collection(self, alias: str) -> str:
        """Return the condition that a collection has visible pages, or can receive new ones."""

        def of_group(group: tuple[str, ...]) -> str:
            named = _in_collections(f"{alias}.id", group)
            if not any(item.startswith(PREFIXES) for item in group):
                return named
            page = f"own.collection_id = {alias}.id AND {self._page('own', group)}"
            has_page = f"EXISTS (SELECT 1 FROM main.pages AS own WHERE {page})"
            is_other = f"{alias}.kind NOT IN {FILE_KINDS} AND ({alias}.is_write_target OR {has_page})"
            return f"({named} OR ({is_other}))"

        return self._all(of_group)

    def write_target(self) -> str:
        """Return a query for the id of the collection for new pages: preferably the first one in the restriction."""
        names = [item for group in self._only for item in group if not item.startswith(PREFIXES)]
        order = "".join(f" WHEN {_quoted(name)} THEN {place}" for place, name in enumerate(names))
        first = f"CASE c.name{order} ELSE {len(names)} END, " if order else ""
        return (
            "SELECT c.id FROM main.collections AS c WHERE c.writable AND c.state = 'active'"
            f" AND {self.collection('c')}"
            f" ORDER BY c.kind IN {FILE_KINDS}, {first}c.is_write_target DESC, c.id LIMIT 1"
        )

    @property
    def has_conversations(self) -> bool:
        return all(CONVERSATIONS in group for group in self._only)

    def _all(self, condition: Any) -> str:
        return "(" + " AND ".join(condition(group) for group in self._only) + ")"

    def _page(self, alias: str, group: tuple[str, ...]) -> str:
        parts = [_in_collections(f"{alias}.collection_id", group)]
        for item in group:
            kind, _, name = item.partition(":")
            if kind == "wing":
                parts.append(f"{alias}.wing = {_quoted(name)}")
            elif kind == "project":
                slug = _quoted(f"projects/{name}")
                below = f"substr({alias}.slug, 1, {len(name) + 10}) = {_quoted(f'projects/{name}/')}"
                field = f"{alias}.frontmatter ->> '$.project' = {_quoted(name)}"
                parts.append(f"({alias}.slug = {slug} OR {below} OR {field})")
        if len(parts) == 1:
            return parts[0]
        others = f"{alias}.collection_id IN (SELECT id FROM main.collections WHERE kind NOT IN {FILE_KINDS})"
        return f"({parts[0]} OR (({' OR '.join(parts[1:])}) AND {others}))"


def _in_collections(column: str, group: Sequence[str]) -> str:
    names = ", ".join(_quoted(item) for item in group if not item.startswith(PREFIXES))
    return f"{column} IN (SELECT id FROM main.collections WHERE name IN ({names}))" if names else "0"


def _quoted(text: str) -> str:
    return str(apsw.format_sql_value(text))


class RestrictedTransaction(Transaction):
    """A connection on which only a part of the memory is visible."""

    schema = "temp"

    def __init__(self, *args: Any, only: Only, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scope = json.dumps(only)
        self._condition = _Condition(only)
        self._columns: dict[str, list[str]] = {}
        self._parents: dict[
            str, list[tuple[str, str, str]]
        ] = {}  # foreign keys by table: column, other table and its column
        self._queries: dict[str, str] = {}  # the SELECT statements of the views, by table
        self._shadows: set[str] = set()
        self._is_restricted = False
        self._fresh: dict[str, int] = {}  # the data version at which each full-text index was last refreshed
        self._changes: list[tuple[str, tuple[Any, ...] | None, tuple[Any, ...] | None]] = []

    def execute(self, sql: str, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        if not self._is_restricted:
            return super().execute(sql, *args, **options)
        statement, indexes = restricted_statement(sql)
        for index in indexes:
            self._refresh(index)
        return super().execute(statement, *args, **options)

    def executemany(self, sql: str, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        return super().executemany(
            restricted_statement(sql)[0] if self._is_restricted else sql, *args, **options
        )

    # Reading

    def restrict(self) -> None:
        """Create the temporary views and indexes. Afterwards, only visible rows can be read."""
        schema = self._rows(
            "SELECT type, name, sql FROM main.sqlite_schema"
            " WHERE name NOT LIKE 'sqlite_%' AND type IN ('table', 'view')"
        )
        indexes = [name for _, name, sql in schema if sql.startswith("CREATE VIRTUAL")]
        self._shadows = {f"{index}_{part}" for index in indexes for part in _SHADOW_PARTS}
        for kind, name, sql in schema:
            if kind == "view":
                self._create(f"VIEW temp.{name} AS {sql.partition(' AS')[2]}")
            elif name in indexes:
                self._create_index(name, sql)
            elif name not in self._shadows:
                self._columns[name] = [str(row[1]) for row in self._rows(f"PRAGMA main.table_info({name})")]
                keys = self._rows(f"PRAGMA main.foreign_key_list({name})")
                self._parents[name] = [(str(row[3]), str(row[2]), str(row[4])) for row in keys]
                query = self._view(name)
                if query:
                    self._queries[name] = query
                    self._create(f"VIEW temp.{name} AS {query}")
        self._create("TABLE temp.indexed_pages (id INTEGER PRIMARY KEY, version INTEGER, slug TEXT)")
        self._create("TABLE temp.link_targets (id INTEGER PRIMARY KEY, page_id INTEGER)")
        self.preupdate_hook(self._note_change)
        self._is_restricted = True

    def replace_views(self, old: list[str], new: dict[str, str]) -> None:
        """Drop the views `old`, and create the views `new` on top of the restricted rows."""
        for name in {*old, *new}:
            super().execute(f"DROP VIEW IF EXISTS temp.{name}")
            super().execute(f"DROP VIEW IF EXISTS temp.visible_{name}")
            query = self._queries[name]
            if name in new:
                self._create(f"VIEW temp.visible_{name} AS {query}")
                query = new[name].replace(f"main.{name}", f"temp.visible_{name}")
            self._create(f"VIEW temp.{name} AS {query}")

    def _create(self, what: str) -> None:
        super().execute(f"CREATE {what}")

    def _rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return super().execute(sql, values).fetchall()

    def _create_index(self, name: str, sql: str) -> None:
        """Create an empty temporary index. _refresh() adds the visible rows when a statement reads it."""
        if name == text_index.TURNS and self._condition.has_conversations:
            return
        options = re.sub(
            r"\bcontent = '\w+', content_rowid = '\w+'", "content = '', contentless_delete = 1", sql
        )
        self._create(f"VIRTUAL TABLE temp.{name} USING fts5 ({options.partition('(')[2]}")

    def _view(self, table: str) -> str:
        """Return the query for the visible rows of a table, or "" if all its rows are visible."""
        columns, condition = self._columns[table], self._condition
        every = f"SELECT * FROM main.{table} WHERE "
        if table in _SHARED_TABLES:
            return ""
        if table in _HIDDEN_TABLES:
            return every + "0"
        if table == "quaid_config":
            return every + _VISIBLE_PROPERTIES
        if table.startswith(_CONVERSATION_TABLES):
            return "" if condition.has_conversations else every + "0"
        if table in _SCOPED_TABLES:
            return f"{every}scope = {_quoted(self.scope)}"
        if table == "pages":
            return every + condition.page("pages")
        if table == "collections":
            return self._collections_view(columns)
        if table == "links":
            return self._links_view(columns)
        if table.startswith("page_embeddings_vec"):
            used = "EXISTS (SELECT 1 FROM temp.{0} AS c WHERE c.content_hash = {1}.content_hash)"
            return every + " OR ".join(used.format(name, table) for name in ("chunks", "chunk_entries"))
        if table == "ingest_log":
            hidden = (
                f"SELECT 1 FROM json_each(pages_updated) AS page WHERE NOT {condition.has_page('page.value')}"
            )
            return f"{every}pages_updated <> '[]' AND NOT EXISTS ({hidden})"
        return every + self._row_condition(table, columns)

    def _row_condition(self, table: str, columns: list[str]) -> str:
        """Return the condition for the visible rows of a table that belong to pages or collections."""
        ids = [column for column in columns if column == "page_id" or column.endswith("_page_id")]
        # In a table with neither a page id nor a collection id, a row is visible if the rows that its foreign keys
        # refer to are visible.
        if not (ids or "collection_id" in columns):
            found = "EXISTS (SELECT 1 FROM temp.{1} AS other WHERE other.{2} = {3}.{0})"
            return " AND ".join(found.format(*parent, table) for parent in self._parents[table]) or "0"
        conditions = [
            f"({table}.{name} IS NULL OR {self._condition.has_page(f'{table}.{name}')})" for name in ids
        ]
        if "collection_id" in columns:
            whole = self._condition.whole_collection(f"{table}.collection_id")
            conditions.append(f"({table}.page_id IS NOT NULL OR {whole})" if "page_id" in columns else whole)
        elif "page_id" in columns:
            conditions.append(f"{table}.page_id IS NOT NULL")
        return " AND ".join(conditions)

    def _collections_view(self, columns: list[str]) -> str:
        whole = self._condition.whole_collection("id")
        shown = {
            name: f"iif({whole}, {name}, {'NULL' if name != 'ignore_patterns' else _quoted('')})"
            for name in _PARTLY_HIDDEN
        }
        shown["is_write_target"] = f"id IS ({self._condition.write_target()})"
        listed = ", ".join(f"{shown.get(name, name)} AS {name}" for name in columns)
        return (
            f"SELECT {listed} FROM main.collections AS own_row WHERE {self._condition.collection('own_row')}"
        )

    def _links_view(self, columns: list[str]) -> str:
        """Return the query for the links between visible pages, and for text links from them to hidden pages.

        The text of a visible page shows such a link anyway. Its target is resolved as if only the visible pages
        existed; see _refresh_links().
        """
        start, end = (self._condition.has_page(f"links.{name}") for name in ("from_page_id", "to_page_id"))
        names = ", ".join(columns)
        resolved = "(SELECT page_id FROM temp.link_targets AS t WHERE t.id = links.id) AS to_page_id"
        others = ", ".join(resolved if name == "to_page_id" else name for name in columns)
        return (
            f"SELECT {names} FROM main.links WHERE {start} AND {end} UNION ALL"
            f" SELECT {others} FROM main.links WHERE source_kind = 'wiki_link' AND {start} AND NOT {end}"
        )

    # Full-text indexes

    def _refresh(self, index: str) -> None:
        """Bring a temporary index, or with LINKS the targets of links, up to date with the visible rows."""
        if index == text_index.TURNS:
            return
        self._rows("SELECT 1 FROM main.config LIMIT 1")  # a read makes writes of other connections visible
        version = self.data_version("main")
        if self._fresh.get(index) == version:
            return
        is_writing = self.txn_state("main") == apsw.SQLITE_TXN_WRITE
        if index == LINKS and is_writing:
            return  # link targets are needed only by reads
        refresh = {LINKS: self._refresh_links, text_index.CHUNKS: self._refresh_chunks}
        with self:  # a transaction for each row would write an index segment for each
            refresh.get(index, self._refresh_pages)()
        if not is_writing:  # a rollback would undo the refresh
            self._fresh[index] = version

    def _refresh_links(self) -> None:
        """Resolve the links of visible pages whose target is hidden, or ambiguous because of hidden pages."""
        rows = self._rows(
            "SELECT l.id, l.target, l.target_key, NULL, p.slug, c.name FROM main.links AS l"
            " JOIN temp.pages AS p ON p.id = l.from_page_id JOIN main.collections AS c ON c.id = p.collection_id"
            f" WHERE l.source_kind = 'wiki_link' AND NOT {self._condition.has_page('l.to_page_id')}"
        )
        super().execute("DELETE FROM temp.link_targets")
        super().executemany(
            "INSERT INTO temp.link_targets (page_id, id) VALUES (?, ?)",
            links.changed_targets(self, rows, "temp."),
        )

    def _refresh_pages(self) -> None:
        known = "p.id = i.id AND p.version = i.version AND p.slug = i.slug"
        gone = [
            row[0]
            for row in self._rows(
                "SELECT i.id FROM temp.indexed_pages AS i WHERE NOT EXISTS"
                f" (SELECT 1 FROM temp.pages AS p WHERE {known} AND p.quarantined_at IS NULL)"
            )
        ]
        for table, column in (
            (text_index.SPACED, "rowid"),
            (text_index.UNSPACED, "rowid"),
            ("indexed_pages", "id"),
        ):
            super().executemany(
                f"DELETE FROM temp.{table} WHERE {column} = ?", [(page_id,) for page_id in gone]
            )
        new = (
            "SELECT p.id FROM temp.pages AS p LEFT JOIN temp.indexed_pages AS i ON i.id = p.id"
            " WHERE i.id IS NULL AND p.quarantined_at IS NULL"
        )
        ids = [row[0] for row in self._rows(new)]
        text = "SELECT id, title, slug, compiled_truth, timeline FROM temp.pages WHERE id = ?"
        for page_id in ids:
            super().execute(
                f"INSERT INTO temp.page_fts (rowid, title, slug, compiled_truth, timeline) {text}", (page_id,)
            )
        unspaced = "SELECT id FROM main.page_fts_unspaced_docsize WHERE id = ?"
        for page_id in [page_id for page_id in ids if self._rows(unspaced, (page_id,))]:
            _, title, slug, truth, timeline = self._rows(text, (page_id,))[0]
            text_index.add_page(self, page_id, title, slug, truth, timeline, "temp.")
        super().executemany(
            "INSERT INTO temp.indexed_pages SELECT id, version, slug FROM main.pages WHERE id = ?",
            [(page_id,) for page_id in ids],
        )

    def _refresh_chunks(self) -> None:
        super().execute(
            "DELETE FROM temp.chunk_fts WHERE rowid IN (SELECT d.id FROM temp.chunk_fts_docsize AS d"
            " WHERE NOT EXISTS (SELECT 1 FROM temp.chunks AS c WHERE c.id = d.id))"
        )
        new = [
            row[0]
            for row in self._rows(
                "SELECT c.id FROM temp.chunks AS c WHERE NOT EXISTS"
                " (SELECT 1 FROM temp.chunk_fts_docsize AS d WHERE d.id = c.id)"
            )
        ]
        for start in range(0, len(new), 1_000):
            rows = self._rows(
                "SELECT c.id, p.title, c.heading_path, c.chunk_text FROM json_each(?) AS wanted"
                " CROSS JOIN temp.chunks AS c ON c.id = wanted.value JOIN temp.pages AS p ON p.id = c.page_id",
                (str(new[start : start + 1_000]),),
            )
            chunks.index_words(self, rows, schema="temp.")

    # Writing

    def begin_changes(self) -> None:
        self._changes.clear()

    def _note_change(self, update: apsw.PreUpdate) -> None:
        if update.database_name == "main" and update.table_name not in self._shadows:
            if update.table_name in ("pages", "chunks", "links", "page_names", "redirects"):
                self._fresh.clear()
            self._changes.append((update.table_name, update.old, update.new))

    def check_changes(self) -> None:
        """Raise OutsideScope if a changed row was not visible before the change, or is not visible after it."""
        changes, self._changes = self._changes, []
        removed = {old[0] for table, old, new in changes if table == "pages" and old and new is None}
        for table, old, new in changes:
            if table in _WRITTEN_TABLES or (table == "links" and self._is_resolution(old, new)):
                continue
            for row in (old, new):
                if row is not None and not self._is_own(table, row, removed):
                    raise OutsideScope

    def _is_resolution(self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> bool:
        """Return True if a change only sets the target of a link that is derived from page text."""
        if old is None or new is None:
            return False
        columns = self._columns["links"]
        changed = {name for name, before, after in zip(columns, old, new, strict=True) if before != after}
        return changed <= {"to_page_id"} and new[columns.index("source_kind")] == "wiki_link"

    def _is_own(self, table: str, row: tuple[Any, ...], removed: set[int]) -> bool:
        values = dict(zip(self._columns.get(table, ()), row, strict=False))
        if table == "pages":
            names = ", ".join(
                f":{name} AS {name}" for name in ("collection_id", "wing", "slug", "frontmatter")
            )
            sql = f"SELECT 1 FROM (SELECT {names}) AS own WHERE {self._condition.page('own')}"
            return bool(self._rows(sql, values))
        if table in _SCOPED_TABLES:
            return bool(values["scope"] == self.scope)
        if table.startswith("page_embeddings_vec"):
            return True  # derived from chunks, which are checked
        if table.startswith(_CONVERSATION_TABLES):
            return self._condition.has_conversations
        is_text_link = table == "links" and values["source_kind"] == "wiki_link"
        ids = [
            value
            for name, value in values.items()
            if (name == "page_id" or name.endswith("_page_id"))
            and not (is_text_link and name == "to_page_id")
            and value is not None
        ]
        if ids:
            return all(value in removed or self._is_visible_page(value) for value in ids)
        if "collection_id" not in values:
            return bool(self._parents.get(table)) and all(
                self._is_gone_or_visible(other, name, values[column])
                for column, other, name in self._parents[table]
            )
        whole = self._condition.whole_collection(":collection_id")
        return bool(self._rows(f"SELECT 1 WHERE {whole}", values))

    def _is_gone_or_visible(self, table: str, column: str, value: Any) -> bool:
        found = f"EXISTS (SELECT 1 FROM {{}}.{table} WHERE {column} = ?1)"
        return bool(
            self._rows(f"SELECT 1 WHERE {found.format('temp')} OR NOT {found.format('main')}", (value,))
        )

    def check_page(self, page_id: int) -> None:
        """Raise OutsideScope if a page is not visible, for example because it was moved to another wing."""
        if not self._is_visible_page(page_id):
            raise OutsideScope

    def _is_visible_page(self, page_id: int) -> bool:
        return bool(self._rows("SELECT 1 FROM temp.pages WHERE id = ?", (page_id,)))

"""Conversations: add, match, read and remove turns, and record how far transcripts have been read.

A turn is one message of a conversation. It is identified by a key from the client, or else by role,
time and text. Turns with neither key nor time are numbered, so that the second "yes" of a conversation is a
different turn from the first. Callers mask secrets before they save turns.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import chunker, plain_text, slug as slugs
from quaid.storage import vectors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

HASH_BYTES = 16
TURNS_PER_BATCH = 1_000


TurnPart = tuple[int, int, int, bytes]
"""The number of a part, its start and end in the text of the turn, and its content hash."""


# Parts


def cut_turns(tx: "Transaction", turns: "Iterable[tuple[int, str, str]]") -> None:
    """Split turns, given as (id, role, text), into parts to be embedded, and store the parts."""
    tx.executemany(
        "INSERT INTO turn_parts (turn_id, part, start_at, end_at, content_hash) VALUES (?, ?, ?, ?, ?)",
        [(turn_id, *row) for turn_id, role, text in turns for row in _parts_of_turn(role, text)],
    )


def _parts_of_turn(role: str, text: str) -> "Iterator[TurnPart]":
    for number, (start, end) in enumerate(chunker.split_turn(text)):
        part_text = chunker.turn_embedding_text(role, text[start:end]).encode("utf-8", "surrogatepass")
        yield number, start, end, hashlib.sha256(part_text).digest()[:HASH_BYTES]


def recut_turns(tx: "Transaction") -> None:
    """Split all turns again. Vectors of unchanged parts are kept."""
    tx.execute("DELETE FROM turn_parts")
    for turns in _turn_batches(tx):
        cut_turns(tx, turns)


def wrong_parts(connection: "Transaction") -> "Iterator[tuple[int, str]]":
    """Yield the id of each turn whose stored parts do not match its text, with a description of the mismatch."""
    for turns in _turn_batches(connection):
        stored: dict[int, list[tuple[Any, ...]]] = {}
        for turn_id, *row in connection.execute(
            "SELECT turn_id, part, start_at, end_at, content_hash FROM turn_parts"
            " WHERE turn_id BETWEEN ? AND ? ORDER BY turn_id, part",
            (turns[0][0], turns[-1][0]),
        ):
            stored.setdefault(turn_id, []).append(tuple(row))
        for turn_id, role, text in turns:
            if stored.get(turn_id, []) != list(_parts_of_turn(role, text)):
                yield turn_id, "its parts in turn_parts are not those of its text"


def _turn_batches(connection: "Transaction") -> "Iterator[list[tuple[int, str, str]]]":
    """Yield all turns as (id, role, text), in batches."""
    last = 0
    while rows := connection.rows(
        "SELECT id, role, text FROM conversation_turns WHERE id > ? ORDER BY id LIMIT ?",
        (last, TURNS_PER_BATCH),
    ):
        yield rows
        last = rows[-1][0]


LONGEST_TITLE = 120


class NewTurn(NamedTuple):
    """A turn to add."""

    role: str
    text: str
    said_at: str
    key: str
    item: str | None = None
    """The session item of an agent framework from which the turn was made, as JSON."""


SeenTurns = dict[bytes, int]
"""How often each turn without key and time has occurred in the file being read, by hash of the turn."""


class TurnsAdded(NamedTuple):
    conversation: int
    turns: int
    is_new: bool
    removed: bool = False
    """True if the user removed this conversation, so that nothing was added."""


class TurnBatch(NamedTuple):
    """Turns of one conversation, in order."""

    client: str
    session: str
    turns: list[NewTurn]
    title: str = ""
    project: str = ""
    masked: int = 0

    def save(
        self, tx: "Transaction", now: str, seen: SeenTurns, *, anew: bool, again: bool = False
    ) -> TurnsAdded:
        """Append turns to a conversation, skipping turns that the conversation already has.

        Set `anew` if the transcript is read from its start. With `again`, turns are also added to a
        conversation that the user removed.
        """
        conversation, is_new, removed = _find_or_add(tx, self, now)
        if not conversation or (removed and not again):
            return TurnsAdded(conversation, 0, is_new=False, removed=removed)
        if removed:
            tx.execute("UPDATE conversations SET removed_at = NULL WHERE id = ?", (conversation,))
        new = _new_turns(tx, conversation, self.turns, seen, anew)
        last = _largest(
            tx, "SELECT max(turn) FROM conversation_turns WHERE conversation_id = ?", (conversation,)
        )
        highest = _largest(tx, "SELECT max(id) FROM conversation_turns", ())
        rows = list(enumerate(new.items(), 1))
        tx.executemany(
            f"INSERT INTO conversation_turns ({_TURN_COLUMNS}, identity) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            [
                (highest + at, conversation, last + at, turn.role, turn.said_at or None, turn.text, identity)
                for at, (identity, turn) in rows
            ],
        )
        tx.executemany(
            "INSERT INTO session_items (turn_id, item) VALUES (?, ?)",
            [(highest + at, turn.item) for at, (_, turn) in rows if turn.item is not None],
        )
        index_words(tx, [(highest + at, turn.text) for at, (_, turn) in rows])
        cut_turns(tx, [(highest + at, turn.role, turn.text) for at, (_, turn) in rows])
        _update_metadata(tx, conversation, self, list(new.values()))
        return TurnsAdded(conversation, len(rows), is_new)


class LearnedPage(NamedTuple):
    """A page that was probably written because of a conversation."""

    slug: str
    """The address of the page."""
    title: str
    why: str
    """"source" if the page names the conversation as its source, else "written"; see learned_pages()."""


class TurnRow(NamedTuple):
    id: int
    conversation_id: int
    turn: int
    role: str
    said_at: str | None
    text: str


class ConversationRow(NamedTuple):
    id: int
    client: str
    session: str
    title: str
    project: str
    started_at: str | None
    ended_at: str | None
    turns: int
    masked: int
    opening: str = ""
    """The beginning of the user's first turn if the conversation has no title, else ""."""

    def learned_pages(self, db: "Database", limit: int = 50) -> list[LearnedPage]:
        """Return up to `limit` pages that name this conversation as source, or that its client wrote meanwhile."""
        named = self.session if len(self.session) >= MIN_SOURCE_NAME else "\0"
        rows = db.rows(
            "SELECT c.name, p.slug, p.title, min(f.why) FROM ("
            " SELECT page_id, 'source' AS why FROM assertions WHERE instr(source_ref, ?1)"
            " UNION ALL SELECT page_id, 'source' FROM page_authors WHERE instr(source, ?1)"
            " UNION ALL SELECT page_id, 'source' FROM timeline_entries WHERE instr(source, ?1)"
            " UNION ALL SELECT l.page_id, 'written' FROM activity AS a JOIN activity_pages AS l"
            " ON l.activity_id = a.id WHERE a.is_write AND l.last_version IS NOT NULL"
            " AND a.called_at BETWEEN ?2 AND ?3 AND replace(lower(a.client), ' ', '-') = ?4"
            ") AS f JOIN pages AS p ON p.id = f.page_id AND p.quarantined_at IS NULL"
            " JOIN collections AS c ON c.id = p.collection_id GROUP BY p.id ORDER BY 4, p.title LIMIT ?5",
            (named, self.started_at or "9", self.ended_at or "", self.client, limit),
        )
        return [
            LearnedPage(slugs.address(collection, slug), title, why) for collection, slug, title, why in rows
        ]

    def items(self, db: "Database", limit: int | None = None) -> list[tuple[int, str]]:
        """Return (turn id, item) for all turns, or the last `limit` turns, that have an item, in order."""
        rows = db.rows(
            "SELECT i.turn_id, i.item FROM conversation_turns AS t JOIN session_items AS i ON i.turn_id = t.id"
            " WHERE t.conversation_id = ? ORDER BY t.turn DESC LIMIT ?",
            (self.id, -1 if limit is None else limit),
        )
        return rows[::-1]

    def pop_item(self, tx: "Transaction", db: "Database") -> str | None:
        """Delete the last turn that has an item, with its index entries, and return the item, or None."""
        for turn, item in self.items(db, 1):
            tx.execute("DELETE FROM conversation_turns WHERE id = ?", (turn,))
            return item
        return None

    def remove(self, tx: "Transaction", now: str) -> None:
        """Delete the turns of a conversation, with their index entries and vectors.

        The row of the conversation is kept, so that reading its transcript again does not restore it.
        """
        tx.pragma("secure_delete", "ON")
        tx.execute("DELETE FROM conversation_turns WHERE conversation_id = ?", (self.id,))
        # Deleted words stay in the segments of the index until the segments are merged.
        tx.execute("INSERT INTO turn_fts (turn_fts) VALUES ('optimize')")
        vectors.purge_turn_vectors(tx)
        tx.execute(
            "UPDATE conversations SET removed_at = ?, title = '', project = '', started_at = NULL, ended_at = NULL,"
            " masked = 0 WHERE id = ?",
            (now, self.id),
        )

    def read_turns(self, db: "Database", first: int, limit: int) -> list[TurnRow]:
        """Return up to `limit` turns of a conversation from position `first` on, in order."""
        rows = db.rows(
            f"SELECT {_TURN_COLUMNS} FROM conversation_turns"  # noqa: S608
            " WHERE conversation_id = ? AND turn >= ? ORDER BY turn LIMIT ?",
            (self.id, first, limit),
        )
        return [TurnRow(*row) for row in rows]


_CONVERSATION_COLUMNS = (
    "c.id, c.client, c.session, c.title, c.project, c.started_at, c.ended_at,"
    " (SELECT count(*) FROM conversation_turns WHERE conversation_id = c.id), c.masked,"
    " iif(c.title <> '', '', coalesce((SELECT substr(text, 1, 80) FROM conversation_turns"
    " WHERE conversation_id = c.id AND role = 'user' ORDER BY turn LIMIT 1), ''))"
)
_TURN_COLUMNS = "id, conversation_id, turn, role, said_at, text"


# Adding


def _largest(tx: "Transaction", sql: str, values: tuple[int, ...]) -> int:
    row = tx.execute(sql, values).fetchone()
    return int(row[0]) if row and row[0] else 0


def _find_or_add(tx: "Transaction", batch: TurnBatch, now: str) -> tuple[int, bool, bool]:
    row = tx.execute(
        "SELECT id, removed_at IS NOT NULL FROM conversations WHERE client = ? AND session = ?",
        (batch.client, batch.session),
    ).fetchone()
    if row or not batch.turns:
        return (int(row[0]), False, bool(row[1])) if row else (0, False, False)
    tx.execute(
        "INSERT INTO conversations (client, session, added_at) VALUES (?, ?, ?)",
        (batch.client, batch.session, now),
    )
    return tx.last_insert_rowid(), True, False


def _new_turns(
    tx: "Transaction", conversation: int, turns: Iterable[NewTurn], seen: SeenTurns, anew: bool
) -> dict[bytes, NewTurn]:
    """Return the turns that are not stored yet, by identity. `anew` is as in TurnBatch.save()."""
    named: dict[bytes, NewTurn] = {}
    for turn in turns:
        identity = _turn_identity(turn)
        if not turn.key and not turn.said_at:
            identity = _counted_identity(tx, conversation, identity, seen, anew)
        named.setdefault(identity, turn)
    stored: Iterable[tuple[bytes]] = tx.execute(
        "SELECT identity FROM conversation_turns WHERE conversation_id = ?"
        " AND identity IN (SELECT unhex(value) FROM json_each(?))",
        (conversation, "[" + ",".join([f'"{identity.hex()}"' for identity in named]) + "]"),
    )
    for (identity,) in stored:
        named.pop(identity, None)
    return named


def _turn_identity(turn: NewTurn) -> bytes:
    content = f"k\0{turn.key}" if turn.key else f"t\0{turn.role}\0{turn.said_at}\0{turn.text}"
    return hashlib.blake2b(content.encode(), digest_size=16).digest()


def _counted_identity(
    tx: "Transaction", conversation: int, content: bytes, seen: SeenTurns, anew: bool
) -> bytes:
    """Return the identity of the next occurrence of a turn that has neither key nor time.

    `content` is the hash of the turn, and `anew` is as in TurnBatch.save().
    """
    number = seen.get(content, 0)
    if content not in seen and not anew:  # earlier occurrences were stored by a previous run
        while _has_turn(tx, conversation, _numbered_identity(content, number)):
            number += 1
    seen[content] = number + 1
    return _numbered_identity(content, number)


def _numbered_identity(content: bytes, number: int) -> bytes:
    return hashlib.blake2b(content + number.to_bytes(8, "big"), digest_size=16).digest()


def _has_turn(tx: "Transaction", conversation: int, identity: bytes) -> bool:
    cursor = tx.execute(
        "SELECT 1 FROM conversation_turns WHERE conversation_id = ? AND identity = ?",
        (conversation, identity),
    )
    return cursor.fetchone() is not None


def _update_metadata(tx: "Transaction", conversation: int, batch: TurnBatch, new: list[NewTurn]) -> None:
    """Update times, title, project and the count of masked secrets from this batch."""
    times = [turn.said_at for turn in new if turn.said_at]
    first = next((turn.text for turn in new if turn.role == "user"), "")
    tx.execute(
        "UPDATE conversations SET masked = masked + ?1,"
        " started_at = min(coalesce(started_at, ?2), coalesce(?2, started_at)),"
        " ended_at = max(coalesce(ended_at, ?3), coalesce(?3, ended_at)),"
        " title = CASE WHEN ?4 <> '' THEN ?4 WHEN title = '' THEN ?5 ELSE title END,"
        " project = CASE WHEN project = '' THEN ?6 ELSE project END WHERE id = ?7",
        (
            *(batch.masked if new else 0, min(times, default=None), max(times, default=None)),
            *(_title_of(batch.title), _title_of(first), batch.project, conversation),
        ),
    )


def _title_of(text: str) -> str:
    line = " ".join(text[: 4 * LONGEST_TITLE].split())
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


def index_words(tx: "Transaction", rows: Iterable[tuple[int, str]]) -> None:
    """Add turns, given as (id, text), to the full-text index."""
    tx.executemany(
        "INSERT INTO turn_fts (rowid, text) VALUES (?, ?)",
        [(turn, plain_text.cut_cjk(text) if plain_text.has_cjk(text) else text) for turn, text in rows],
    )


def rebuild_words(tx: "Transaction") -> None:
    """Rebuild the full-text index of turns."""
    tx.execute("INSERT INTO turn_fts (turn_fts) VALUES ('delete-all')")
    for turns in _turn_batches(tx):
        index_words(tx, [(turn_id, text) for turn_id, _, text in turns])


MIN_SOURCE_NAME = 8
"""A shorter session id in the source of a page is ignored, because it may occur there by chance."""


class TranscriptState(NamedTuple):
    path: str
    client: str
    """The client that writes the file; "" if unknown."""
    session: str
    """The session id in the last line that was read."""
    size: int
    mtime_ns: int
    inode: int
    read_to: int
    mark: bytes
    """A hash of the first and last bytes of the part of the file that was read."""
    broken: int
    problem: str | None

    def save(self, tx: "Transaction", now: str, moved_from: str = "") -> None:
        """Store how far a file has been read, and delete the state of the path it was moved from, if any."""
        tx.execute("DELETE FROM transcript_files WHERE path = ?", (moved_from,))
        tx.execute(
            f"INSERT OR REPLACE INTO transcript_files ({_TRANSCRIPT_COLUMNS}, read_at)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*self, now),
        )


_TRANSCRIPT_COLUMNS = (
    "path, client, session, size_bytes, mtime_ns, inode, read_to, mark, broken_lines, problem"
)


# Reading


class Conversations:
    """Reads the conversations of a memory, their turns, and how far transcripts have been read."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def latest(
        self, limit: int, offset: int = 0, client: str | None = None
    ) -> tuple[list[ConversationRow], int, int]:
        """Return up to `limit` conversations, latest first, and the total numbers of conversations and turns."""
        where = "FROM conversations AS c WHERE removed_at IS NULL AND (?1 IS NULL OR client = ?1)"
        rows = self._db.rows(
            f"SELECT {_CONVERSATION_COLUMNS} {where} ORDER BY ended_at DESC, id DESC LIMIT ?2 OFFSET ?3",
            (client, limit, offset),
        )
        turns = "sum((SELECT count(*) FROM conversation_turns WHERE conversation_id = c.id))"
        total, turn_total = self._db.one(f"SELECT count(*), {turns} {where}", (client,)) or (0, 0)
        return [ConversationRow(*row) for row in rows], total, turn_total or 0

    def with_session(self, session: str, limit: int = 10) -> list[ConversationRow]:
        """Return up to `limit` conversations with this session id, or else with a session id that begins with it."""
        for condition in ("session = ?", "substr(session, 1, length(?1)) = ?1"):
            rows = self._db.rows(
                f"SELECT {_CONVERSATION_COLUMNS} FROM conversations AS c WHERE {condition} AND removed_at IS NULL"  # noqa: S608
                " ORDER BY ended_at DESC, id DESC LIMIT ?",
                (session, limit),
            )
            if rows:
                return [ConversationRow(*row) for row in rows]
        return []

    def of_client(self, client: str, session: str) -> ConversationRow | None:
        """Return the conversation of a client with exactly this session id, even if it was removed, or None."""
        row = self._db.one(
            f"SELECT {_CONVERSATION_COLUMNS} FROM conversations AS c WHERE client = ? AND session = ?",  # noqa: S608
            (client, session),
        )
        return ConversationRow(*row) if row else None

    def turns(self, turn_ids: list[int]) -> dict[int, tuple[TurnRow, ConversationRow]]:
        """Return these turns and their conversations by turn id."""
        turns = self._db.rows(
            f"SELECT {_TURN_COLUMNS} FROM conversation_turns WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (str(turn_ids),),
        )
        conversations = self._db.rows(
            f"SELECT {_CONVERSATION_COLUMNS} FROM conversations AS c WHERE c.id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (str(list({row[1] for row in turns})),),
        )
        by_id = {row[0]: ConversationRow(*row) for row in conversations}
        return {row[0]: (TurnRow(*row), by_id[row[1]]) for row in turns}

    def neighbours(self, turn_ids: list[int], reach: int) -> dict[int, tuple[int, int]]:
        """Return conversation and position, by turn id, of these turns and turns up to `reach` positions away."""
        rows = self._db.rows(
            "SELECT near.id, near.conversation_id, near.turn FROM json_each(?) AS wanted"
            " CROSS JOIN conversation_turns AS t ON t.id = wanted.value"
            " CROSS JOIN conversation_turns AS near ON near.conversation_id = t.conversation_id"
            " AND near.turn BETWEEN t.turn - ? AND t.turn + ?",
            (str(turn_ids), reach, reach),
        )
        return {row[0]: row[1:] for row in rows}

    def text_edges(self, turn_ids: list[int], count: int) -> dict[int, tuple[int, str]]:
        """Return the length of each of these turns, and its last `count` characters."""
        rows = self._db.rows(
            "SELECT id, length(text), substr(text, -?) FROM conversation_turns"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (count, str(turn_ids)),
        )
        return {row[0]: row[1:] for row in rows}

    def turns_of_people(self, after: int, limit: int) -> list[tuple[int, str, str, int, str, str]]:
        """Return (id, client, session, turn, time, text) of up to `limit` turns by people, from id `after` + 1."""
        return self._db.rows(
            "SELECT t.id, c.client, c.session, t.turn, coalesce(t.said_at, c.started_at, ''), t.text"
            " FROM conversation_turns AS t JOIN conversations AS c ON c.id = t.conversation_id"
            " WHERE t.id > ? AND (t.role IN ('user', 'human') OR (c.client = 'plain' AND t.role <> 'assistant'))"
            " AND c.removed_at IS NULL ORDER BY t.id LIMIT ?",
            (after, limit),
        )

    def transcripts(self, *, path: str | None = None, inode: int | None = None) -> list[TranscriptState]:
        """Return the state of the file at `path`, or of the files with `inode`, or of all recognised transcripts."""
        condition, values = ("client <> ''", ()) if path is None else ("path = ?", (path,))  # type: str, tuple[object, ...]
        if inode is not None:
            condition, values = "inode = ?", (inode,)
        rows = self._db.rows(
            f"SELECT {_TRANSCRIPT_COLUMNS} FROM transcript_files WHERE {condition} ORDER BY path",  # noqa: S608
            values,
        )
        return [TranscriptState(*row) for row in rows]

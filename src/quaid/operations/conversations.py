"""Conversations with agents: import, list, search, show and remove transcripts."""

import json
import os
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from quaid.app import Brain
from quaid.config import check_folder_list, split_folder_list
from quaid.embedding.registry import Embedder
from quaid.errors import InvalidArgument, NotFound
from quaid.folders import transcripts
from quaid.model import secrets
from quaid.operations import background
from quaid.operations.registry import Arg, op
from quaid.search import conversations
from quaid.search.conversations import ConversationSearchRecord
from quaid.storage import collections, conversations as store, erase as erasure
from quaid.storage.conversations import ConversationRow, Conversations, LearnedPage
from quaid.storage.sqlite.connection import Transaction

FOLDERS_SETTING = "conversation_folders"
TRANSCRIPT_CLIENTS = ("claude-code", "codex", "plain", "chatgpt", "claude.ai", "openai-agents", "llama-index")
MAX_SHOWN_LENGTH = 2_000
"""Without --full, at most this many characters of a turn (message) are shown."""

LIST_HINT = "`quaid conversations list` shows all conversations."

SessionArg = Annotated[
    str, Arg("The session, or the beginning of its name, as in 3f2a or codex:3f2a.", positional=True)
]


class ReadingRecord(NamedTuple):
    report: Any
    """A folders.transcripts.TranscriptReport."""
    total: int
    """Number of conversations in the memory."""
    watched: tuple[str, ...] = ()
    """Folders that were added to the setting conversation_folders. Every sync reads these folders."""
    unwatched: str = ""
    """Why a folder was not added to the setting conversation_folders, or ""."""

    @property
    def exit_status(self) -> int:
        return int(self.report.exit_status)


class ConversationsRecord(NamedTuple):
    conversations: tuple[ConversationRow, ...]
    total: int
    turns: int
    offset: int


class ShownTurn(NamedTuple):
    turn: int
    role: str
    said_at: str | None
    text: str
    left_out: int
    """Number of characters cut off."""


class ConversationRecord(NamedTuple):
    conversation: ConversationRow
    turns: tuple[ShownTurn, ...]
    around: int | None
    pages: tuple[LearnedPage, ...] = ()
    """Pages that name the conversation as their source, or that its client wrote during the conversation."""


class SessionTurn(NamedTuple):
    """A turn of a session to add."""

    role: str
    text: str
    """The text of the turn, for searching and reading."""
    item: dict[str, Any] | None = None
    """The turn in the format of the agent framework, as session_items() returns it; None to store only the text."""


class ConversationRemoveRecord(NamedTuple):
    done: bool
    conversation: ConversationRow
    ask: bool = True
    problem: str = ""
    """Why deleted bytes may remain in the database file, or ""."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask and not self.done else {}

    @property
    def act(self) -> str:
        return f"Removing the conversation {self.conversation.session}"


@op(
    "owner",
    command="conversations add",
    examples=(
        "quaid conversations add ~/.claude/projects ~/.codex/sessions",
        "quaid conversations add ~/Downloads/chatgpt-export.zip",
    ),
)
def conversations_add(
    brain: Brain,
    paths: Annotated[
        list[str],
        Arg(
            "Transcripts, export archives, or folders with them at any depth.",
            positional=True,
            path=True,
        ),
    ],
    again: Annotated[
        bool, Arg("Read the files from the start, and import removed conversations again.")
    ] = False,
) -> ReadingRecord:
    """Import transcripts of Claude Code and Codex, plain JSON lines, and exports of ChatGPT and Claude.ai.

    Plain lines are objects with role, content and timestamp, and optionally session, project and title. A file that
    has grown is read from where the last run ended, and every sync reads a folder again. Secrets are masked before
    anything is stored; tool calls and hidden reasoning are omitted. Exits 1 if a file could not be read."""
    files: dict[str, None] = {}
    named: set[str] = set()
    absolute = [brain.settings.path(path) for path in paths]
    for path in absolute:
        listed = transcripts.find_transcripts(path)
        named.update(listed if len(listed) == 1 and not os.path.isdir(path) else ())
        files.update(dict.fromkeys(listed))
    record = _read_transcripts(brain, list(files), named, again)
    watched, unwatched = _add_to_setting(brain, list(filter(os.path.isdir, absolute)))
    return record._replace(watched=watched, unwatched=unwatched)


@op("owner", command="conversations sync", examples=("quaid conversations sync",))
def conversations_sync(brain: Brain) -> ReadingRecord:
    """Read new turns of all imported transcripts, and of the folders in the setting conversation_folders."""
    files: dict[str, None] = {}
    missing = []
    folders = _transcript_folders(brain)
    for folder in folders:
        try:
            files.update(dict.fromkeys(transcripts.find_transcripts(folder)))
        except NotFound:
            problem = "is missing; it is in the setting conversation_folders"
            missing.append(transcripts.TranscriptProblem(folder, problem))
    paths = transcripts.add_known_transcripts(brain.db, files)
    if not paths and not folders:
        raise NotFound(
            what="transcript",
            name="to read",
            hint="`quaid conversations add PATH` imports some; `quaid config set conversation_folders"
            " ~/.claude/projects:~/.codex/sessions` sets folders for every sync.",
        )
    record = _read_transcripts(brain, paths, set(), again=False)
    return record._replace(report=record.report._replace(problems=(*missing, *record.report.problems)))


def _transcript_folders(brain: Brain) -> list[str]:
    """Return the folders that a sync reads. Relative paths from a config file are relative to that file."""
    setting = str(brain.option(FOLDERS_SETTING))
    _, source = brain.settings.configured(FOLDERS_SETTING)
    if source and source == brain.settings.config_path:
        return [brain.settings.beside_config(path) for path in split_folder_list(setting)]
    check_folder_list(FOLDERS_SETTING, setting)
    return [brain.settings.path(path) for path in split_folder_list(setting)]


def _add_to_setting(brain: Brain, added: list[str]) -> tuple[tuple[str, ...], str]:
    """Add folders to the setting conversation_folders, unless it has them or folders above them already.

    In a read-only memory, no folder is added. Return the added folders, and why a folder could not be added, or "".
    """
    covered = list(map(os.path.realpath, _transcript_folders(brain)))
    new = []
    for folder in map(os.path.realpath, added):
        if not any(folder == other or folder.startswith(os.path.join(other, "")) for other in covered):
            new.append(folder)
            covered.append(folder)
    _, source = brain.settings.configured(FOLDERS_SETTING)
    if not new or not brain.db.writable:
        return (), ""
    if source:
        return (), f"{new[0]} is not synced: conversation_folders is set by {source}; add the folder there"
    if any(split_folder_list(folder) != [folder] for folder in new):
        return (), f"{new[0]} is not synced: its name contains : or ;"

    def work(tx: Transaction) -> None:
        before = collections.get_setting(brain.db, FOLDERS_SETTING) or ""
        collections.set_setting(tx, FOLDERS_SETTING, ":".join(filter(None, [before, *new])))

    brain.db.write(work)
    return tuple(new), ""


def _read_transcripts(brain: Brain, paths: list[str], named: set[str], again: bool) -> ReadingRecord:
    report = transcripts.read_transcripts(
        brain.db, paths, named=named, now=brain.now(), progress=brain.progress, again=again
    )
    return ReadingRecord(report, Conversations(brain.db).latest(0)[1])


@op(
    "read",
    command="conversations list",
    aliases={"conversations": {}},
    tool="conversation_list",
    examples=("quaid conversations list", "quaid conversations list --client codex --limit 5"),
)
def conversations_list(
    brain: Brain,
    client: Annotated[str | None, Arg(f"Only of this client: {', '.join(TRANSCRIPT_CLIENTS)}.")] = None,
    limit: Annotated[int, Arg("How many conversations.", minimum=1, maximum=1000)] = 20,
    offset: Annotated[int, Arg("How many to skip first.", minimum=0)] = 0,
) -> ConversationsRecord:
    """List conversations with agents, the latest first."""
    if client is not None and client not in TRANSCRIPT_CLIENTS:
        raise NotFound(what="client", name=client, hint=f"Clients: {', '.join(TRANSCRIPT_CLIENTS)}.")
    rows, total, turns = Conversations(brain.db).latest(limit, offset, client)
    return ConversationsRecord(tuple(rows), total, turns, offset)


@op(
    "read",
    command="conversations search",
    tool="conversation_search",
    examples=("quaid conversations search 'why sqlite'", "quaid conversations search oslo --limit 3"),
)
def conversation_search(
    brain: Brain,
    query: Annotated[
        str, Arg("Words to search for; any text is valid.", positional=True, any_text=True, question=True)
    ],
    limit: Annotated[int, Arg("How many turns.", minimum=1, maximum=200)] = 10,
) -> ConversationSearchRecord:
    """Search earlier conversations with agents, by words and by meaning.

    conversation_show shows the turns around a hit."""
    embedder: Embedder | str = "embed_conversations is off"
    since = background.turns_since(brain)
    if since is not None and query.strip():
        embedder = background.question_embedder(brain, since)
    return conversations.search_turns(brain.db, embedder, query, limit, vectors=lambda: brain.turn_vectors)


@op(
    "read",
    command="conversations show",
    tool="conversation_show",
    examples=("quaid conversations show 3f2a", "quaid conversations show 3f2a --around 12 --limit 5"),
)
def conversation_show(
    brain: Brain,
    session: SessionArg,
    around: Annotated[int | None, Arg("The turn to show in the middle.", minimum=1)] = None,
    limit: Annotated[int, Arg("How many turns.", minimum=1, maximum=1000)] = 20,
    full: Annotated[bool, Arg("Show long turns in full.")] = False,
) -> ConversationRecord:
    """Show a conversation from its start, or the turns around one of them."""
    row = _require_conversation(brain, session)
    if around is not None and around > row.turns:
        raise NotFound(what="turn", name=str(around), hint=f"The conversation has {row.turns:,}.")
    first = 1 if around is None else max(1, min(around - limit // 2, row.turns - limit + 1))
    turns = []
    for turn in row.read_turns(brain.db, first, limit):
        text = turn.text if full else turn.text[:MAX_SHOWN_LENGTH]
        turns.append(ShownTurn(turn.turn, turn.role, turn.said_at, text, len(turn.text) - len(text)))
    return ConversationRecord(row, tuple(turns), around, tuple(row.learned_pages(brain.db)))


@op(
    "owner",
    command="conversations remove",
    examples=("quaid conversations remove 3f2a", "quaid conversations remove 3f2a --yes"),
)
def conversations_remove(
    brain: Brain,
    session: SessionArg,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be removed.")] = False,
) -> ConversationRemoveRecord:
    """Remove a conversation, so that no trace of it stays in the database file. A sync does not import it again.

    Its transcript is not changed."""
    row = _require_conversation(brain, session)
    done, problem = yes and not dry_run, ""
    if done:
        now = brain.now()
        brain.db.write(lambda tx: row.remove(tx, now))
        problem = erasure.vacuum_and_checkpoint(brain.db)
    return ConversationRemoveRecord(done, row, ask=not dry_run, problem=problem)


# Sessions of agent frameworks


def add_session_turns(brain: Brain, client: str, session: str, turns: Sequence[SessionTurn]) -> None:
    """Append turns to the session of an agent framework. Secrets are masked."""
    if not session.strip() or "\0" in session:
        raise InvalidArgument(name="session", problem="is empty or holds a NUL character; give it a name")
    now, masked, new = brain.now(), 0, []
    for turn in turns:
        text, count = secrets.mask(turn.text.encode(errors="replace").decode())
        item = None if turn.item is None else json.dumps(_masked_item(turn.item))
        new.append(store.NewTurn(turn.role, text, now, brain.random_uuid(), item))
        masked += count
    batch = store.TurnBatch(client, session, new, masked=masked)
    brain.db.write(lambda tx: batch.save(tx, now, {}, anew=False, again=True))


def _masked_item(value: Any) -> Any:
    """Return an item with secrets in its texts masked. `encrypted_content`, which the provider encrypted, is kept."""
    if isinstance(value, str):
        return secrets.mask(value)[0]
    if isinstance(value, list):
        return [_masked_item(part) for part in value]
    if isinstance(value, dict):
        return {
            name: part if name == "encrypted_content" else _masked_item(part) for name, part in value.items()
        }
    return value


def session_items(brain: Brain, client: str, session: str, limit: int | None = None) -> list[Any]:
    """Return the items of a session, oldest first. With `limit`, return only the newest items."""
    conversation = Conversations(brain.db).of_client(client, session)
    return [json.loads(item) for _, item in conversation.items(brain.db, limit)] if conversation else []


def pop_session_item(brain: Brain, client: str, session: str) -> Any:
    """Remove the last item of a session and return it, or None if there is none."""

    def work(tx: Transaction) -> str | None:
        conversation = Conversations(brain.db).of_client(client, session)
        return conversation.pop_item(tx, brain.db) if conversation else None

    item = brain.db.write(work)
    return None if item is None else json.loads(item)


def clear_session(brain: Brain, client: str, session: str) -> None:
    """Remove all turns of a session. Turns can be added again."""
    now = brain.now()

    def work(tx: Transaction) -> None:
        conversation = Conversations(brain.db).of_client(client, session)
        if conversation is not None:
            conversation.remove(tx, now)

    brain.db.write(work)


def _require_conversation(brain: Brain, name: str) -> ConversationRow:
    """Return the conversation whose session has this name or prefix, optionally after its client and a colon.

    Raise an error unless exactly one conversation matches.
    """
    client, colon, session = name.partition(":")
    rows = Conversations(brain.db).with_session(name) if name else []
    if not rows and colon and session:
        rows = [row for row in Conversations(brain.db).with_session(session, 1000) if row.client == client]
    if not rows:
        raise NotFound(what="conversation", name=name, hint=LIST_HINT)
    if len(rows) > 1:
        names = ", ".join(f"{row.client}:{row.session}" for row in rows[:5]) + (
            ", …" if len(rows) > 5 else ""
        )
        raise InvalidArgument(name="session", problem=f"{name!r} matches {names}; write more of it")
    return rows[0]

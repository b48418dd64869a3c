"""Transcripts on disk: found, read from where the last reading ended, masked, and put into the store.

Knows how far a file was read, and when it must be read from its start: when it is shorter than that, or its first or
last bytes of then are other ones now. Does not know how a client writes (formats.transcripts) nor SQL.

The files are only read. A line that is broken or endless is counted and skipped; a last line without an end waits for
the next run, unless it is whole. After each thousand turns the store is written, so that a run which was stopped goes
on where it was.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from quaid.errors import Cancelled, NotFound, ReadingStopped
from quaid.formats import transcripts
from quaid.formats.transcripts import BrokenTranscript, TranscriptTurn
from quaid.model.secrets import mask
from quaid.storage import conversations
from quaid.storage.conversations import NewTurn, TranscriptState, TurnBatch
from quaid.storage.sqlite.connection import Database
from quaid.vaults import archives
from quaid.vaults.lines import lines
from quaid.vaults.scan import FILE_FLAGS, printable

TURNS_AT_ONCE = 1_000
CHARACTERS_AT_ONCE = 4_000_000
LINES_TO_KNOW = 50
"""After so many lines the client is known, or the file is no transcript."""

MARK = 4096
SKIPPED_FOLDERS = frozenset((".git", "node_modules", "__pycache__"))
Progress = Callable[[int, int, str], None]
UNKNOWN = "is no transcript that Quaid knows"


class Problem(NamedTuple):
    path: str
    problem: str


class ReadingReport(NamedTuple):
    files: int
    unchanged: int
    other: int
    """Files that are no transcripts."""
    conversations: int
    """New ones."""
    grown: int
    """Conversations that were known and have new turns."""
    turns: int
    masked: int
    """Secrets that were taken out of the new turns."""
    broken: int
    """Lines that could not be read."""
    removed: int
    """Conversations that a person removed, and that stay out."""
    problems: tuple[Problem, ...]
    gone: int = 0
    """Transcripts that were read and are not there any more; what was said in them stays."""

    @property
    def exit_status(self) -> int:
        return 1 if self.problems else 0


class _Tally:
    def __init__(self) -> None:
        self.unchanged = self.other = self.turns = self.masked = self.broken = self.gone = 0
        self.new: set[int] = set()
        self.grown: set[int] = set()
        self.removed: set[int] = set()
        self.problems: list[Problem] = []

    def report(self, files: int) -> ReadingReport:
        return ReadingReport(
            *(files, self.unchanged, self.other, len(self.new), len(self.grown - self.new), self.turns),
            *(self.masked, self.broken, len(self.removed), tuple(self.problems), self.gone),
        )


def find(path: str) -> list[str]:
    """The transcripts that a path may mean: the file itself, or those in a folder and below."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        if not os.path.exists(real):
            raise NotFound(what="file or folder", name=printable(path), hint=" Check the spelling.")
        return [real]
    found = []
    for folder, below, names in os.walk(real):
        below[:] = sorted(name for name in below if name not in SKIPPED_FOLDERS)
        found += [os.path.join(folder, name) for name in sorted(names) if may_be(name)]
    return [each for each in found if not os.path.islink(each)]


def may_be(name: str) -> bool:
    """Whether a file of this name in a folder is worth a look."""
    lower = name.lower()
    return lower.endswith((".jsonl", ".zip")) or archives.is_export(lower)


def read(
    db: Database, paths: list[str], *, named: set[str], now: str, progress: Progress, again: bool = False
) -> ReadingReport:
    """Read what is new in these files. Of those that a person named it is told when they are no transcripts."""
    tally = _Tally()
    done = 0
    try:
        for done, path in enumerate(paths):
            progress(done, len(paths), "files")
            _File(db, path, now, tally, again, path in named).read()
    except (KeyboardInterrupt, Cancelled):
        raise ReadingStopped(done=done, total=len(paths), turns=tally.turns) from None
    return tally.report(len(paths))


class _File:
    """One file while it is read."""

    def __init__(self, db: Database, path: str, now: str, tally: _Tally, again: bool, is_named: bool) -> None:
        self._db, self._path, self._now, self._tally = db, path, now, tally
        self._again, self._is_named = again, is_named
        self._moved_from = ""
        self._anew = True
        self._title = ""  # of the session that the file will name
        self._seen: conversations.SeenTurns = {}
        self._waiting: dict[tuple[str, str], _Gathered] = {}
        self._turns = self._characters = 0

    def read(self) -> None:
        try:
            if not _is_text(self._path):
                raise BrokenTranscript("its name is not UTF-8")
            with os.fdopen(os.open(self._path, FILE_FLAGS), "rb") as file:
                self._read(file)
        except FileNotFoundError:
            self._tally.gone += 1
        except OSError as error:
            self._trouble(f"cannot be read ({error.strerror}); check its permissions")
        except BrokenTranscript as error:
            self._trouble(str(error))

    def _trouble(self, problem: str) -> None:
        self._tally.problems.append(Problem(printable(self._path), problem))

    def _read(self, file: BinaryIO) -> None:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise BrokenTranscript("is not a file")
        known = None if self._again else self._known(file, facts)
        looks = (facts.st_size, facts.st_mtime_ns, facts.st_ino)
        is_same = known is not None and (known.size, known.mtime_ns, known.inode) == looks
        if known and is_same and not self._moved_from and (known.client or not self._is_named):
            self._unchanged(known)
            return
        self._state = TranscriptState(self._path, "", "", *looks, 0, b"", 0, None)
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"PK\x03\x04", b"[")):
            self._read_export(file, is_archive=start.startswith(b"PK"))
        else:
            self._read_lines(file, known)

    def _unchanged(self, known: TranscriptState) -> None:
        if known.problem:
            self._trouble(known.problem)
        elif known.client:
            self._tally.unchanged += 1
        else:
            self._tally.other += 1

    def _known(self, file: BinaryIO, facts: os.stat_result) -> TranscriptState | None:
        """What was read of this file, perhaps under another name."""
        known = conversations.find_transcript(self._db, self._path)
        if known is None:
            for other in conversations.transcripts_with_inode(self._db, facts.st_ino):
                if not os.path.lexists(other.path) and is_same_file(file, facts, other):
                    self._moved_from = other.path
                    known = other
            file.seek(0)
        return known

    # Lines

    def _read_lines(self, file: BinaryIO, known: TranscriptState | None) -> None:
        client, session, start = "", "", 0
        if known and known.client and known.size and _mark(file, known.read_to) == known.mark:
            client, session, start = known.client, known.session, known.read_to
            self._anew = start == 0
        file.seek(0)
        client = client or _client(file)
        if not client:
            self._end(file, 0)
            if self._is_named:
                self._trouble(UNKNOWN)
            else:
                self._tally.other += 1
            return
        broken = known.broken if known and start else 0
        self._state = self._state._replace(client=client, session=session, broken=broken)
        end = start
        for end, line in lines(file, start):
            self._take_line(client, line)
            if self._turns >= TURNS_AT_ONCE or self._characters >= CHARACTERS_AT_ONCE:
                self._end(file, end, unfinished=True)
        self._end(file, end)

    def _take_line(self, client: str, line: bytes | None) -> None:
        try:
            if line is None:
                raise BrokenTranscript("too long")
            said = transcripts.read_line(client, transcripts.parse_line(line))
        except BrokenTranscript:
            self._tally.broken += 1
            self._state = self._state._replace(broken=self._state.broken + 1)
            return
        session = self._state.session
        if said.session and not (client == "codex" and session):  # a fork repeats the beginning of another
            session = said.session
        if not session and not said.turn:
            self._title = said.title or self._title
            return
        session = session or self._own_session(client)
        if session != self._state.session:
            self._state = self._state._replace(session=session)
        title, self._title = said.title or self._title, ""
        if said.turn or title or said.project:
            self._gather(client, session, said.turn, title, said.project)

    def _own_session(self, client: str) -> str:
        """A name for a conversation that its lines do not name."""
        stem = transcripts.clean_text(os.path.basename(self._path).partition(".")[0])
        if client != "plain":
            return stem
        return f"{stem}-{hashlib.sha256(self._path.encode()).hexdigest()[:8]}"

    # Exports

    def _read_export(self, file: BinaryIO, *, is_archive: bool) -> None:
        clients: set[str] = set()
        problem = None
        try:
            for value in archives.conversations(file, is_archive):
                held = transcripts.read_export(value)
                if held is None:
                    self._tally.broken += 1
                    continue
                clients.add(held.client)
                for turn in held.turns:
                    self._gather(held.client, held.session, turn, held.title, "")
                if self._turns >= TURNS_AT_ONCE or self._characters >= CHARACTERS_AT_ONCE:
                    self._flush(None)
        except BrokenTranscript as error:
            problem = str(error)
        self._state = self._state._replace(client=min(clients, default=""))
        self._end(file, 0, problem=problem if clients or self._is_named else None)
        if problem and (clients or self._is_named):
            self._trouble(problem)
        elif not clients and self._is_named:
            self._trouble(UNKNOWN)
        elif not clients:
            self._tally.other += 1

    # Towards the store

    def _gather(
        self, client: str, session: str, turn: TranscriptTurn | None, title: str, project: str
    ) -> None:
        held = self._waiting.get((client, session))
        if held is None:
            held = self._waiting[client, session] = _Gathered()
        if title:
            held.title = mask(title).text
        held.project = held.project or project
        if turn:
            text, masked = mask(turn.text)
            held.turns.append(NewTurn(turn.role, text, turn.at, turn.key))
            held.masked += masked
            self._turns += 1
            self._characters += len(text)

    def _end(
        self, file: BinaryIO, read_to: int, *, problem: str | None = None, unfinished: bool = False
    ) -> None:
        """Write what was gathered, and how far the file was read with it."""
        at = file.tell()
        state = self._state._replace(read_to=read_to, mark=_mark(file, read_to) or b"", problem=problem)
        file.seek(at)
        # Nothing has this time: whoever comes after a crash sees that there is more to read.
        self._flush(state._replace(mtime_ns=-1) if unfinished else state)

    def _flush(self, state: TranscriptState | None) -> None:
        batches = [
            TurnBatch(*which, held.turns, held.title, held.project, held.masked)
            for which, held in self._waiting.items()
        ]

        def work(tx: Any) -> list[conversations.TurnsAdded]:
            if state is not None:
                if self._moved_from:
                    conversations.forget_transcript(tx, self._moved_from)
                conversations.save_transcript(tx, state, self._now)
            return [
                conversations.add(tx, batch, self._now, self._seen, anew=self._anew, again=self._again)
                for batch in batches
            ]

        tally = self._tally
        for batch, added in zip(batches, self._db.write(work), strict=True):
            tally.turns += added.turns
            tally.masked += batch.masked if added.turns else 0
            for which, where in (
                (added.is_new, tally.new),
                (bool(added.turns), tally.grown),
                (added.removed, tally.removed),
            ):
                if which:
                    where.add(added.conversation)
        self._waiting.clear()
        self._turns = self._characters = 0


class _Gathered:
    """What waits to be written of one conversation."""

    def __init__(self) -> None:
        self.turns: list[NewTurn] = []
        self.title = self.project = ""
        self.masked = 0


def _client(file: BinaryIO) -> str:
    """Who writes such lines, seen from the first of them; "" when nobody that we know."""
    for number, (_, line) in enumerate(lines(file, 0)):
        try:
            client = transcripts.detect_client(transcripts.parse_line(line)) if line else None
        except BrokenTranscript:
            client = None
        if client:
            return client
        if number >= LINES_TO_KNOW:
            break
    return ""


def is_same_file(file: BinaryIO, facts: os.stat_result, known: TranscriptState) -> bool:
    """Whether a file with the number of one that was read is that one, and not a new one in its place."""
    if known.read_to:
        return _mark(file, known.read_to) == known.mark
    return (facts.st_size, facts.st_mtime_ns) == (known.size, known.mtime_ns)  # an export: read as a whole


def _mark(file: BinaryIO, read_to: int) -> bytes | None:
    """A hash of the first and last bytes up to there; None when the file is shorter."""
    file.seek(0)
    first = file.read(min(MARK, read_to))
    file.seek(max(0, read_to - MARK))
    last = file.read(min(MARK, read_to))
    if len(last) < min(MARK, read_to):
        return None
    return hashlib.blake2b(first + last, digest_size=16).digest()


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True

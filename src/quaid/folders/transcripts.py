"""Read conversation transcripts and exported archives into the database, and mask secrets in them.

A transcript that has grown is read from the offset where the last run stopped; an export is always read as a
whole.
"""

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from quaid.errors import Cancelled, NotFound, ReadingStopped
from quaid.folders.scanner import FILE_FLAGS, Progress, is_utf8, printable
from quaid.formats import transcripts
from quaid.formats.transcripts import BrokenTranscript, TranscriptTurn, iter_json_list, parse_line
from quaid.model.secrets import mask
from quaid.storage import conversations
from quaid.storage.conversations import Conversations, NewTurn, TranscriptState, TurnBatch
from quaid.storage.sqlite.connection import Database, Transaction

FILE_READ_SIZE = 1 << 20


def exported_conversations(file: BinaryIO, is_archive: bool) -> Iterator[Any]:
    """Yield each conversation in an export as parsed JSON.

    Raise BrokenTranscript if the export is invalid.
    """
    file.seek(0)
    if is_archive:
        values = _read_archive(file)
    else:
        values = iter_json_list(iter(lambda: file.read(FILE_READ_SIZE), b""))
    yield from transcripts.activity_in_order(values)


def _read_archive(file: BinaryIO) -> Iterator[Any]:
    from quaid.formats.documents import BrokenArchive, ZipReader, check_sizes

    try:
        archive = ZipReader(file)
        members = [member for member in archive.members if transcripts.is_export_name(member.filename)]
        if not members:
            raise BrokenTranscript(
                "holds no conversations.json; name the archive that ChatGPT, Claude.ai or Google Takeout sent"
            )
        check_sizes(members)
        for member in members:
            yield from iter_json_list(archive.pieces(member))
    except BrokenArchive as error:
        raise BrokenTranscript(str(error)) from None


# Lines of a transcript

MAX_LINE_BYTES = 32 * 1024 * 1024
EMPTY_LINES_BEFORE_SKIP = 100
"""Number of empty lines after which further empty lines are skipped in bulk."""

LINE_READ_SIZE = 1 << 20


def read_lines(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the end offset and content of each non-empty line from `start`, except an incomplete last line.

    The content is None if the line is too long.
    """
    file.seek(start)
    end = start
    empty = 0
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n"):
            end += len(line)
            if not line.isspace():
                empty = 0
                yield end, line.removeprefix(b"\xef\xbb\xbf") if end == len(line) else line
                continue
            empty += 1
            if empty % EMPTY_LINES_BEFORE_SKIP == 0:
                end = _skip_empty_lines(file, end)
        elif len(line) == MAX_LINE_BYTES:
            size = len(line)
            while (more := file.readline(LINE_READ_SIZE)) and not more.endswith(b"\n"):
                size += len(more)
            if not more:  # the end of the line is not written yet
                return
            end += size + len(more)
            yield end, None
        elif _is_complete(line):
            yield end + len(line), line


def _skip_empty_lines(file: BinaryIO, end: int) -> int:
    """Seek to the next line that is not empty, and return its offset."""
    while piece := file.read(LINE_READ_SIZE):
        remainder = len(piece.lstrip(b"\n"))
        end += len(piece) - remainder
        if remainder:
            break
    file.seek(end)
    return end


def _is_complete(line: bytes) -> bool:
    try:
        parse_line(line)
    except BrokenTranscript:
        return False
    return True


# Reading into the database

TURNS_PER_TRANSACTION = 1_000
CHARACTERS_PER_TRANSACTION = 4_000_000
LINES_TO_DETECT_CLIENT = 50
"""Number of lines in which a client must be recognized for a file to count as a transcript."""

MARK_BYTES = 4096
SKIPPED_TRANSCRIPT_FOLDERS = frozenset((".git", "node_modules", "__pycache__"))
NOT_A_TRANSCRIPT = "is no transcript that Quaid knows"


class TranscriptProblem(NamedTuple):
    path: str
    problem: str


class TranscriptReport(NamedTuple):
    files: int
    unchanged: int
    other: int
    """Number of files that are not transcripts."""
    conversations: int
    """Number of new conversations."""
    grown: int
    """Number of known conversations with new turns (a turn is one message)."""
    turns: int
    masked: int
    """Number of secrets masked in the new turns."""
    broken: int
    """Number of lines, or conversations of an export, that could not be parsed."""
    removed: int
    """Number of conversations in these files that the user had removed; they are not added again."""
    problems: tuple[TranscriptProblem, ...]
    gone: int = 0
    """Number of known transcript files that no longer exist; their conversations are kept."""

    @property
    def exit_status(self) -> int:
        return 1 if self.problems else 0


class _TranscriptTally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.new: set[int] = set()
        self.grown: set[int] = set()
        self.removed: set[int] = set()
        self.problems: list[TranscriptProblem] = []

    def report(self, files: int) -> TranscriptReport:
        names = ("unchanged", "other", "turns", "masked", "broken", "gone")
        return TranscriptReport(
            files=files,
            conversations=len(self.new),
            grown=len(self.grown - self.new),
            removed=len(self.removed),
            problems=tuple(self.problems),
            **{name: self.counts[name] for name in names},
        )


def find_transcripts(path: str) -> list[str]:
    """Return the real path of a file, or the paths of possible transcripts in a folder and its subfolders."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        if not os.path.exists(real):
            raise NotFound(what="file or folder", name=printable(path), hint=" Check the spelling.")
        return [real]
    files = []
    for folder, below, names in os.walk(real):
        below[:] = sorted(name for name in below if name not in SKIPPED_TRANSCRIPT_FOLDERS)
        files += [os.path.join(folder, name) for name in sorted(names) if may_be_transcript(name)]
    return [file for file in files if not os.path.islink(file)]


def may_be_transcript(name: str) -> bool:
    """Return True if a file of this name may be a transcript."""
    lower = name.lower()
    return lower.endswith((".jsonl", ".zip")) or transcripts.is_export_name(lower)


def read_transcripts(
    db: Database, paths: list[str], *, named: set[str], now: str, progress: Progress, again: bool = False
) -> TranscriptReport:
    """Read the files and store their new turns (messages of conversations).

    With `again`, files are read from the start. Files in `named` that are not transcripts are reported as
    problems.
    """
    tally = _TranscriptTally()
    done = 0
    try:
        for done, path in enumerate(paths):
            progress(done, len(paths), "files")
            _TranscriptReader(db, path, now, tally, again, path in named).read()
    except (KeyboardInterrupt, Cancelled):
        raise ReadingStopped(done=done, total=len(paths), turns=tally.counts["turns"]) from None
    return tally.report(len(paths))


class _TranscriptReader:
    """Reads one transcript or export file and stores its new turns (messages)."""

    def __init__(
        self, db: Database, path: str, now: str, tally: _TranscriptTally, again: bool, is_named: bool
    ) -> None:
        self._db, self._path, self._now, self._tally = db, path, now, tally
        self._again, self._is_named = again, is_named
        self._moved_from = ""
        self._anew = True
        self._title = ""  # title that precedes the session id in the file
        self._seen: conversations.SeenTurns = {}
        self._waiting: dict[tuple[str, str], TurnBatch] = {}  # by client and session
        self._turns = self._characters = 0

    def read(self) -> None:
        try:
            if not is_utf8(self._path):
                raise BrokenTranscript("its name is not UTF-8")
            with os.fdopen(os.open(self._path, FILE_FLAGS), "rb") as file:
                self._read(file)
        except FileNotFoundError:
            self._tally.counts["gone"] += 1
        except OSError as error:
            self._trouble(f"cannot be read ({error.strerror}); check its permissions")
        except BrokenTranscript as error:
            self._trouble(str(error))

    def _trouble(self, problem: str) -> None:
        self._tally.problems.append(TranscriptProblem(printable(self._path), problem))

    def _read(self, file: BinaryIO) -> None:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise BrokenTranscript("is not a file")
        state = None if self._again else self._last_state(file, facts)
        looks = (facts.st_size, facts.st_mtime_ns, facts.st_ino)
        is_same = state is not None and (state.size, state.mtime_ns, state.inode) == looks
        if state and is_same and not self._moved_from and (state.client or not self._is_named):
            self._unchanged(state)
            return
        self._state = TranscriptState(self._path, "", "", *looks, 0, b"", 0, None)
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"PK\x03\x04", b"[")):
            self._read_export(file, is_archive=start.startswith(b"PK"))
        else:
            self._read_lines(file, state)

    def _unchanged(self, state: TranscriptState) -> None:
        if state.problem:
            self._trouble(state.problem)
        elif state.client:
            self._tally.counts["unchanged"] += 1
        else:
            self._tally.counts["other"] += 1

    def _last_state(self, file: BinaryIO, facts: os.stat_result) -> TranscriptState | None:
        """Return the stored state of this file, found by path or, if it was renamed, by inode; else None."""
        state = next(iter(Conversations(self._db).transcripts(path=self._path)), None)
        if state is None:
            for other in Conversations(self._db).transcripts(inode=facts.st_ino):
                if not os.path.lexists(other.path) and is_same_transcript(file, facts, other):
                    self._moved_from = other.path
                    state = other
            file.seek(0)
        return state

    # Lines

    def _read_lines(self, file: BinaryIO, state: TranscriptState | None) -> None:
        client, session, start = "", "", 0
        if state and state.client and state.size and _file_mark(file, state.read_to) == state.mark:
            client, session, start = state.client, state.session, state.read_to
            self._anew = start == 0
        file.seek(0)
        client = client or _detect_client(file)
        if not client:
            self._end(file, 0)
            if self._is_named:
                self._trouble(NOT_A_TRANSCRIPT)
            else:
                self._tally.counts["other"] += 1
            return
        broken = state.broken if state and start else 0
        self._state = self._state._replace(client=client, session=session, broken=broken)
        end = start
        for end, line in read_lines(file, start):
            self._take_line(client, line)
            if self._turns >= TURNS_PER_TRANSACTION or self._characters >= CHARACTERS_PER_TRANSACTION:
                self._end(file, end, unfinished=True)
        self._end(file, end)

    def _take_line(self, client: str, line: bytes | None) -> None:
        try:
            if line is None:
                raise BrokenTranscript("too long")
            parsed = transcripts.read_line(client, transcripts.parse_line(line))
        except BrokenTranscript:
            self._tally.counts["broken"] += 1
            self._state = self._state._replace(broken=self._state.broken + 1)
            return
        session = self._state.session
        # A forked Codex session repeats lines of the session that it was forked from, with the id of that session.
        if parsed.session and not (client == "codex" and session):
            session = parsed.session
        if not session and not parsed.turn:
            self._title = parsed.title or self._title
            return
        session = session or self._own_session(client)
        if session != self._state.session:
            self._state = self._state._replace(session=session)
        title, self._title = parsed.title or self._title, ""
        if parsed.turn or title or parsed.project:
            self._gather(client, session, parsed.turn, title, parsed.project)

    def _own_session(self, client: str) -> str:
        """Return a session id derived from the file name, for transcripts without a session id."""
        stem = transcripts.clean_text(os.path.basename(self._path).partition(".")[0])
        if client != "plain":
            return stem
        return f"{stem}-{hashlib.sha256(self._path.encode()).hexdigest()[:8]}"

    # Exports

    def _read_export(self, file: BinaryIO, *, is_archive: bool) -> None:
        clients: set[str] = set()
        problem = None
        try:
            for value in exported_conversations(file, is_archive):
                conversation = transcripts.read_export(value)
                if conversation is None:
                    self._tally.counts["broken"] += 1
                    continue
                clients.add(conversation.client)
                for turn in conversation.turns:
                    self._gather(conversation.client, conversation.session, turn, conversation.title, "")
                if self._turns >= TURNS_PER_TRANSACTION or self._characters >= CHARACTERS_PER_TRANSACTION:
                    self._flush(None)
        except BrokenTranscript as error:
            problem = str(error)
        self._state = self._state._replace(client=min(clients, default=""))
        self._end(file, 0, problem=problem if clients or self._is_named else None)
        if problem and (clients or self._is_named):
            self._trouble(problem)
        elif not clients and self._is_named:
            self._trouble(NOT_A_TRANSCRIPT)
        elif not clients:
            self._tally.counts["other"] += 1

    # Writing

    def _gather(
        self, client: str, session: str, turn: TranscriptTurn | None, title: str, project: str
    ) -> None:
        batch = self._waiting.get((client, session)) or TurnBatch(client, session, [])
        masked = 0
        if turn:
            text, masked = mask(turn.text)
            batch.turns.append(NewTurn(turn.role, text, turn.at, turn.key))
            self._turns += 1
            self._characters += len(text)
        self._waiting[client, session] = batch._replace(
            title=mask(title)[0] if title else batch.title,
            project=batch.project or project,
            masked=batch.masked + masked,
        )

    def _end(
        self, file: BinaryIO, read_to: int, *, problem: str | None = None, unfinished: bool = False
    ) -> None:
        """Write the pending turns to the database, and record the offset up to which the file was read."""
        at = file.tell()
        state = self._state._replace(read_to=read_to, mark=_file_mark(file, read_to) or b"", problem=problem)
        file.seek(at)
        # No file has the mtime -1, so after a crash the next run sees that there is more to read.
        self._flush(state._replace(mtime_ns=-1) if unfinished else state)

    def _flush(self, state: TranscriptState | None) -> None:
        batches = list(self._waiting.values())

        def work(tx: Transaction) -> list[conversations.TurnsAdded]:
            if state is not None:
                state.save(tx, self._now, self._moved_from or "")
            return [
                batch.save(tx, self._now, self._seen, anew=self._anew, again=self._again) for batch in batches
            ]

        tally = self._tally
        for batch, added in zip(batches, self._db.write(work), strict=True):
            tally.counts["turns"] += added.turns
            tally.counts["masked"] += batch.masked if added.turns else 0
            for which, where in (
                (added.is_new, tally.new),
                (bool(added.turns), tally.grown),
                (added.removed, tally.removed),
            ):
                if which:
                    where.add(added.conversation)
        self._waiting.clear()
        self._turns = self._characters = 0


def _detect_client(file: BinaryIO) -> str:
    """Return the client that wrote the transcript, judged by its first lines, or "" if it is unknown."""
    for number, (_, line) in enumerate(read_lines(file, 0)):
        try:
            client = transcripts.detect_client(transcripts.parse_line(line)) if line else None
        except BrokenTranscript:
            client = None
        if client:
            return client
        if number >= LINES_TO_DETECT_CLIENT:
            break
    return ""


def is_same_transcript(file: BinaryIO, facts: os.stat_result, state: TranscriptState) -> bool:
    """Return True if a file with the inode of a known transcript is that transcript, not a new file."""
    if state.read_to:
        return _file_mark(file, state.read_to) == state.mark
    # An export is always read as a whole.
    return (facts.st_size, facts.st_mtime_ns) == (state.size, state.mtime_ns)


def _file_mark(file: BinaryIO, read_to: int) -> bytes | None:
    """Return a hash of the first and last bytes before `read_to`, or None if the file is shorter."""
    file.seek(0)
    first = file.read(min(MARK_BYTES, read_to))
    file.seek(max(0, read_to - MARK_BYTES))
    last = file.read(min(MARK_BYTES, read_to))
    if len(last) < min(MARK_BYTES, read_to):
        return None
    return hashlib.blake2b(first + last, digest_size=16).digest()


def add_known_transcripts(db: Database, listed: Iterable[str]) -> list[str]:
    """Return the listed files and all known transcripts.

    A renamed transcript is listed under its new path only.
    """
    paths = set(listed)
    lost: dict[int, TranscriptState] = {}
    for state in Conversations(db).transcripts():
        if os.path.lexists(state.path):
            paths.add(state.path)
        else:
            lost[state.inode] = state
    if not lost:
        return sorted(paths)
    near = [
        path
        for folder in {os.path.dirname(state.path) for state in lost.values()}
        for path in _transcripts_in(folder)
    ]
    for path in {*paths, *near}:
        with suppress(OSError):
            inode = os.lstat(path).st_ino
            if inode not in lost:
                continue
            with os.fdopen(os.open(path, FILE_FLAGS), "rb") as file:
                if is_same_transcript(file, os.fstat(file.fileno()), lost[inode]):
                    paths.add(path)
                    del lost[inode]
    return sorted({*paths, *(state.path for state in lost.values())})


def _transcripts_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if may_be_transcript(entry.name)]
    except OSError:
        return []

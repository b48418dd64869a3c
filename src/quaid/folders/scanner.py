"""Walk a folder and read its files without following symlinks, and apply the collection's ignore rules.

A walk finds page files and sidecars (JSON files with raw data of a page), and reports why other entries are
skipped. Ignore rules come from the folder's .quaidignore file and from the kind of the collection. The
.quaidignore file is not trusted; if it is invalid, the last valid rules stay in force.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import FileTrouble, NotFound
from quaid.model.sync_plan import FileKind, FileSignature, ScannedFile, SkippedEntry

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

MARKDOWN = (".md", ".markdown")
PAGE_ENDINGS = (*MARKDOWN, ".org")
DOCUMENT_KINDS = {
    **{f".{kind}": kind for kind in ("pdf", "docx", "pptx", "xlsx", "html", "epub", "eml", "mbox", "ics")},
    **dict.fromkeys((".htm", ".xhtml"), "html"),
    **{f".{ending}": "text" for ending in "txt text rst adoc tex log csv tsv".split()},
    **{
        f".{ending}": "code"
        for ending in "py js ts jsx tsx c h cc cpp hpp rs go java kt swift rb pl php sh bash lua r sql el lisp hs"
        " scala cs css json toml yaml yml xml ini".split()
    },
}
"""Kinds of documents by file extension. Collections of kind documents and `quaid import --documents` read them."""
RAW_FOLDER = ".raw"
SPECIAL_NAMES = ("index.md", "schema.md", "readme.md")  # at the root, in any letter case
SKIPPED_FOLDERS = ("node_modules",)
LARGEST_FILE = 4 * 1024 * 1024
MIN_READ_BYTES = 64 * 1024
PIECE_BYTES = 1024 * 1024
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER_FLAGS = os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0)
# Without O_NONBLOCK, opening a named pipe that has no writer would block forever.
FILE_FLAGS = os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0)
# Maximum depth of nested folders, more than any slug can have; each level keeps a handle open.
MAX_DEPTH = 150

HIDDEN_FOLDER = "hidden folder"
HIDDEN_FILE = "hidden file"
TOOL_FOLDER = "folder of another tool"
OTHER_KIND = "other kind of file"
SYMLINK = "link"
NOT_A_FILE = "neither file nor folder"
UNREADABLE = "unreadable"
BAD_NAME = "name is not UTF-8"
TOO_DEEP = "too many folders deep"
GONE = "gone while it was read"
IGNORED = "ignored"
UNUSABLE_REASONS = (SYMLINK, NOT_A_FILE, UNREADABLE, BAD_NAME, TOO_DEEP, GONE)
"""Reasons for skipping an entry that could have been a page or a folder of pages."""

IgnoreCheck = Callable[[str], bool]
"""A function that returns True if a path is to be skipped. Paths of folders end with a slash."""


def ignore_nothing(_path: str) -> bool:
    return False


def page_endings(kind: str) -> tuple[str, ...]:
    """Return the file extensions of pages in a collection of this kind; a notebook has markdown only."""
    if kind == "documents":
        return (*PAGE_ENDINGS, *DOCUMENT_KINDS)
    return MARKDOWN if kind == "notebook" else PAGE_ENDINGS


def document_kind(path: str) -> str:
    """Return the kind of document with this file extension, or ""."""
    return DOCUMENT_KINDS.get(os.path.splitext(path)[1].lower(), "")


def is_visible(path: str) -> bool:
    """Return True unless a parent folder of the path is hidden (its name begins with a dot) or always skipped."""
    return not any(name.startswith(".") or name in SKIPPED_FOLDERS for name in path.split("/")[:-1])


class Folder:
    """An open folder. Paths below it are opened one component at a time, and symlinks are refused."""

    def __init__(self, root: str, endings: tuple[str, ...] = MARKDOWN) -> None:
        self.root = root
        self.endings = endings
        self._handle = _open_root(root)
        self._near: tuple[str, int] = ("", self._handle)  # path and handle of the last folder entered

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._handle)

    @property
    def identity(self) -> int:
        """The inode number of the folder; a different number means that the folder was replaced."""
        return os.fstat(self._handle).st_ino

    def walk(self, ignored: IgnoreCheck = ignore_nothing) -> Iterator[ScannedFile | SkippedEntry]:
        """Yield the files and the skipped entries below the folder, sorted by name within each folder."""
        yield from self._walk(self._handle, "", 0, ignored)

    def _walk(
        self, handle: int, prefix: str, depth: int, ignored: IgnoreCheck
    ) -> Iterator[ScannedFile | SkippedEntry]:
        in_raw = prefix == RAW_FOLDER + "/" or prefix.endswith(f"/{RAW_FOLDER}/")
        try:
            with os.scandir(handle) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            yield SkippedEntry(prefix or "./", UNREADABLE)
            return
        for entry in entries:
            path = prefix + entry.name
            if not is_utf8(entry.name):
                yield SkippedEntry(printable(path), BAD_NAME)
            elif entry.is_symlink():
                yield SkippedEntry(path, SYMLINK)
            elif entry.is_dir(follow_symlinks=False):
                reason = IGNORED if ignored(path + "/") else _skip_reason(entry.name, in_raw, depth)
                if reason:
                    yield SkippedEntry(path + "/", reason)
                    continue
                try:
                    below = os.open(entry.name, FOLDER_FLAGS, dir_fd=handle)
                except OSError:
                    yield SkippedEntry(path + "/", UNREADABLE)
                    continue
                try:
                    yield from self._walk(below, path + "/", depth + 1, ignored)
                finally:
                    os.close(below)
            elif not entry.is_file(follow_symlinks=False):
                yield SkippedEntry(path, NOT_A_FILE)
            elif ignored(path):
                yield SkippedEntry(path, IGNORED)
            else:
                yield _file_entry(entry, path, _file_kind(entry.name, prefix, in_raw, self.endings))

    def look(self, path: str) -> ScannedFile | SkippedEntry | None:
        """Return the file at a path, or a skipped entry with the reason if it is not a page or sidecar.

        Return None if the path does not exist. If a parent folder is a symlink, the skipped entry names that
        folder.
        """
        parent, _, name = path.rpartition("/")
        try:
            facts = self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            link = self._link_on_the_way(parent)
            return SkippedEntry(link, SYMLINK) if link else None
        except OSError:
            return SkippedEntry(path, UNREADABLE)
        if stat.S_ISLNK(facts.st_mode):
            return SkippedEntry(path, SYMLINK)
        in_raw = f"/{path}".rpartition("/")[0].endswith(f"/{RAW_FOLDER}")
        kind = _file_kind(name, parent, in_raw, self.endings)
        if not stat.S_ISREG(facts.st_mode) or kind is None:
            return SkippedEntry(path, OTHER_KIND if stat.S_ISREG(facts.st_mode) else NOT_A_FILE)
        return ScannedFile(path, kind, signature_of(facts))

    def stat(self, path: str) -> os.stat_result:
        """Return the result of lstat() for a path. Raise OSError if a parent folder is a symlink."""
        parent, name = self.enter_parent(path)
        return os.stat(name, dir_fd=parent, follow_symlinks=False)

    def _link_on_the_way(self, parent: str) -> str:
        """Return the first symlink among the parent folders, or ""."""
        steps = parent.split("/")
        for depth in range(len(steps)):
            path = "/".join(steps[: depth + 1])
            try:
                if path and stat.S_ISLNK(os.stat(path, dir_fd=self._handle, follow_symlinks=False).st_mode):
                    return path
            except OSError:
                return ""
        return ""

    def read(self, path: str, largest: int = LARGEST_FILE) -> bytes:
        """Return the bytes of a file, at most `largest` + 1 of them. Raise OSError if it cannot be read."""
        parent, name = self.enter_parent(path)
        handle = os.open(name, FILE_FLAGS, dir_fd=parent)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, NOT_A_FILE, path)
            return _read_up_to(handle, largest + 1, status.st_size)
        finally:
            os.close(handle)

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file of any size in pieces. Raise OSError if it cannot be read."""
        parent, name = self.enter_parent(path)
        with os.fdopen(os.open(name, FILE_FLAGS, dir_fd=parent), "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def enter_parent(self, path: str, *, make: bool = False) -> tuple[int, str]:
        """Return the handle of a file's folder, valid until the next call, and the name of the file.

        `make` creates missing folders.
        """
        parent, _, name = path.rpartition("/")
        return self.enter(parent, make=make), name

    def enter(self, parent: str, *, make: bool = False) -> int:
        """Return the handle of a folder below the root, valid until the next call.

        `make` creates missing folders.
        """
        if self._near[0] == parent:
            return self._near[1]
        self._leave()
        handle = self._handle
        names = parent.split("/") if parent else []
        for depth, name in enumerate(names, 1):
            try:
                if make:
                    self.make_folder(name, handle, "/".join(names[:depth]))
                below = os.open(name, FOLDER_FLAGS, dir_fd=handle)
            finally:
                if handle != self._handle:
                    os.close(handle)
            handle = below
        self._near = (parent, handle)
        return handle

    def make_folder(self, name: str, above: int, _path: str) -> None:
        """Create a folder durably, unless it exists."""
        try:
            os.mkdir(name, dir_fd=above)
            os.fsync(above)
        except FileExistsError:
            pass

    def _leave(self) -> None:
        if self._near[1] != self._handle:
            os.close(self._near[1])
        self._near = ("", self._handle)


def _open_root(root: str) -> int:
    # The root may be a symlink, because the user chose it.
    try:
        return os.open(root, FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise NotFound(what="folder", name=root, hint=" Check the spelling.") from None
    except NotADirectoryError:
        raise FileTrouble(path=root, problem="is a file; name the folder that holds it") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror}); check its permissions"
        raise FileTrouble(path=root, problem=problem) from None
    except ValueError:
        raise FileTrouble(path=printable(root), problem="is not a path: it holds a NUL character") from None


def _read_up_to(handle: int, limit: int, expected_size: int) -> bytes:
    # A buffer of `limit` bytes may be slow to allocate, so no more is requested than the file seems to have.
    most = max(expected_size + 1, MIN_READ_BYTES)
    parts: list[bytes] = []
    while limit and (data := os.read(handle, min(limit, most))):
        parts.append(data)
        limit -= len(data)
    return b"".join(parts)


def _skip_reason(name: str, in_raw: bool, depth: int) -> str:
    if in_raw or (name.startswith(".") and name != RAW_FOLDER):
        return HIDDEN_FOLDER
    if name in SKIPPED_FOLDERS:
        return TOOL_FOLDER
    return TOO_DEEP if depth >= MAX_DEPTH else ""


def _file_entry(entry: os.DirEntry[str], path: str, kind: FileKind | None) -> ScannedFile | SkippedEntry:
    if kind is None:
        return SkippedEntry(path, HIDDEN_FILE if entry.name.startswith(".") else OTHER_KIND)
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return SkippedEntry(path, GONE)
    return ScannedFile(path, kind, signature_of(facts))


def signature_of(facts: os.stat_result) -> FileSignature:
    """Return the fields of a file's stat by which an unchanged file is recognized."""
    return FileSignature(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


def _file_kind(name: str, prefix: str, in_raw: bool, endings: tuple[str, ...]) -> FileKind | None:
    lower = name.lower()
    if in_raw:
        return "sidecar" if lower.endswith(".json") and not name.startswith(".") else None
    if name.startswith(".") or not lower.endswith(endings):
        return None
    return "special" if not prefix and lower in SPECIAL_NAMES else "page"


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    """Return the path with escapes for bytes that are not UTF-8 and for characters that are not printable."""
    if path.isprintable():
        return path
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(
        [
            character if character.isprintable() else character.encode("unicode_escape").decode()
            for character in text
        ]
    )


class FileNote(NamedTuple):
    """A message about a file, shown to the user."""

    path: str
    note: str


Progress = Callable[[int, int, str], None]


# Ignore rules

IGNORE_FILE = ".quaidignore"
TEMPLATES_FOLDER = "_templates/"
"""Name of a folder of page templates, which is skipped at any depth."""

KIND_PATTERNS = {"kb": "/raw/\n/index*.org\n/AGENT_CONTRACT.org\n"}
"""Ignore patterns that always apply, by kind of collection.

The patterns for a knowledge base match the files and folders without nodes (entries of the knowledge base).
"""

MAX_IGNORE_CHARACTERS = 64 * 1024
MAX_PATTERNS = 1_000
MAX_PATTERN_LENGTH = 4_096  # characters; longer than any path

IgnoreEdit = Callable[[str], str]
"""A function that takes the text of an ignore file and returns the new text."""


def patterns_problem(patterns: str) -> str | None:
    """Return why these lines of an ignore file are invalid, or None if they are valid."""
    if len(patterns) > MAX_IGNORE_CHARACTERS:
        return f"it has more than {MAX_IGNORE_CHARACTERS:,} characters"
    lines = patterns.splitlines()
    if len(lines) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS:,} lines"
    if "\0" in patterns or "\ufffd" in patterns:
        return "it is not text in UTF-8"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_PATTERN_LENGTH:
            return f"line {number} is longer than any path: {line[:40]}"
        try:
            compile_patterns([line])
        except InvalidPattern:
            return f"line {number} is no pattern: {line[:40]}"
    return None


def pattern_problem(pattern: str) -> str | None:
    """Return why this pattern cannot be added to an ignore file, or None if it can."""
    if not pattern or len(pattern.splitlines()) != 1:
        return "is not one line of text"
    if pattern.startswith("#"):
        return "is a comment; write \\# for a name that begins so"
    if patterns_problem(pattern):
        return "is no pattern"
    return None if compile_patterns([pattern]).patterns[0].include is not None else "fits no file"


def pattern_lines(patterns: str) -> list[str]:
    """Return the patterns of an ignore file, without comments and blank lines."""
    stripped = (line.strip() for line in patterns.removeprefix("\ufeff").splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def add_pattern(text: str, pattern: str) -> str:
    """Append a pattern to the text of an ignore file, unless it is already there."""
    if pattern in pattern_lines(text):
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    joint = "" if not text or text.endswith("\n") else end
    return f"{text}{joint}{pattern}{end}"


def remove_pattern(text: str, pattern: str | None) -> str:
    """Remove a pattern, or all patterns for None, from an ignore file's text.

    Keep comments and blank lines.
    """
    remaining = [
        line
        for line in text.splitlines(keepends=True)
        if not (patterns := pattern_lines(line)) or (pattern is not None and patterns != [pattern])
    ]
    return "".join(remaining)


def ignore_matcher(patterns: str, kind: str = "") -> IgnoreCheck:
    """Return a function that checks whether a path is ignored.

    A path is ignored by these patterns, by the patterns of the collection's kind, or as a folder of page
    templates.
    """
    patterns = KIND_PATTERNS.get(kind, "") + patterns
    if not any(line.strip() and not line.startswith("#") for line in patterns.splitlines()):
        return _is_templates_folder
    matches = compile_patterns(patterns.splitlines()).match_file
    return lambda path: _is_templates_folder(path) or matches(path)


def is_ignored(ignored: IgnoreCheck, path: str) -> bool:
    """Return True if the file or one of its parent folders is ignored."""
    if ignored(path):
        return True
    steps = path.split("/")[:-1]
    return any(ignored("/".join(steps[: depth + 1]) + "/") for depth in range(len(steps)))


def _is_templates_folder(path: str) -> bool:
    return path.endswith(TEMPLATES_FOLDER) and (
        len(path) == len(TEMPLATES_FOLDER) or path[-len(TEMPLATES_FOLDER) - 1] == "/"
    )


def parse_rules(data: bytes | None, last_good: str) -> tuple[str, str | None]:
    """Return the patterns of an ignore file and None, or `last_good` and the problem if the file is invalid.

    If there is no ignore file, `data` is None and the patterns are "".
    """
    if data is None:
        return "", None
    text = data[: MAX_IGNORE_CHARACTERS + 1].decode("utf-8", "replace").removeprefix("\ufeff")
    problem = patterns_problem(text)
    return (last_good, problem) if problem else (text, None)


STAR, ONE, ANYWHERE, DEEP = "[^/]*", "[^/]", "^(?:.+/)?", "(?:/.+)?"
"""The expressions pathspec generates for `*` and `?`, and for `**` at the start and in the middle."""


class InvalidPattern(ValueError):
    """A line is not a valid gitignore pattern."""


def compile_patterns(lines: Iterable[str]) -> "GitIgnoreSpec":
    """Compile gitignore lines to expressions that match in time linear in the length of the path.

    Raise InvalidPattern if a line is not a pattern.
    """
    from pathspec import GitIgnoreSpec  # imported late, because it takes about 40 ms to load

    try:
        return GitIgnoreSpec.from_lines(lines, _bounded_pattern(), backend="simple")
    except (ValueError, re.error) as error:
        raise InvalidPattern from error


@cache
def _bounded_pattern() -> type["GitIgnoreSpecPattern"]:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    class BoundedPattern(GitIgnoreSpecPattern):
        @classmethod
        def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override]
            regex, include = super().pattern_to_regex(pattern)
            return (bound_backtracking(regex) if regex else regex), include

    return BoundedPattern


def bound_backtracking(regex: str) -> str:
    """Rewrite an expression with atomic groups, to match the same paths without repeated backtracking.

    The expressions that pathspec generates backtrack: with five stars, matching a name of 200 letters takes
    hours. With atomic groups, each part matches only at the first place where it fits. That is enough,
    because the first place leaves the most text for the stars that follow.
    """
    *first, last = [_bound_names(part) for part in regex.split(DEEP)]
    if not first:
        return last
    if first[0].startswith(ANYWHERE):
        first[0] = f"^(?>(?:.+?/)??{first[0].removeprefix(ANYWHERE)}(?=/))"
    others = [f"(?>(?:/.+?)??{name}(?=/))" for name in first[1:]]
    return "".join((first[0], *others, DEEP, last))


def _bound_names(regex: str) -> str:
    """Put the stars of a name into atomic groups, except the last star, which may backtrack."""
    before, *behind = regex.split(STAR)
    pieces = [before]
    for number, name in enumerate(behind, 1):
        is_between_stars = number < len(behind) and "/" not in name.replace(ONE, "")
        pieces.append(f"(?>{STAR}?{name})" if is_between_stars else f"{STAR}{name}")
    return "".join(pieces)

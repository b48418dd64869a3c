"""Which files of a collection are left out: the lines of its `.quaidignore`."""

from typing import Annotated, NamedTuple

from quaid.brain import Brain
from quaid.errors import CollectionReadOnly, FileTrouble, InvalidArgument, NotFound
from quaid.folders import ignore, indexer
from quaid.folders.scanner import SKIPPED_FOLDERS, Folder
from quaid.folders.sync import SyncReport, sync_collection
from quaid.ops.register import Arg, op
from quaid.storage import collections
from quaid.storage.collections import Collection

Name = Annotated[str, Arg("The collection, as in notes.", positional=True)]
Pattern = Annotated[str, Arg("What to leave out, as in gitignore: 'drafts/', '*.tmp.md'.", positional=True)]


class IgnoreRecord(NamedTuple):
    name: str
    patterns: tuple[str, ...]
    """In force by the file, in its order."""
    problem: str | None
    """Why the file is not in force, if so."""
    built_in: tuple[str, ...]


class IgnoreChangeRecord(NamedTuple):
    name: str
    changed: bool
    patterns: tuple[str, ...]
    hidden: tuple[str, ...]
    """Files that are left out from now on; their pages wait in quarantine."""
    shown: tuple[str, ...]
    """Files that are taken in from now on."""
    sync: SyncReport | None

    @property
    def exit_status(self) -> int:
        return self.sync.exit_status if self.sync else 0


@op("owner", command="collection ignore list", examples=("quaid collection ignore list notes",))
def ignore_list(brain: Brain, name: Name) -> IgnoreRecord:
    """List the patterns of files that a collection leaves out."""
    found = _with_folder(brain, name)
    built_in = (".*/", *(f"{each}/" for each in SKIPPED_FOLDERS), ignore.TEMPLATES_FOLDER)
    return IgnoreRecord(
        name, tuple(ignore.pattern_lines(found.ignore_patterns)), found.ignore_problem, built_in
    )


@op(
    "owner",
    command="collection ignore add",
    examples=("quaid collection ignore add notes 'drafts/'", "quaid collection ignore add notes '*.tmp.md'"),
)
def ignore_add(brain: Brain, name: Name, pattern: Pattern) -> IgnoreChangeRecord:
    """Leave files out of a collection. They stay as they are; their pages go into quarantine."""
    wanted = pattern.strip()
    problem = ignore.pattern_problem(wanted)
    if problem:
        raise InvalidArgument(name="pattern", problem=f"{pattern!r} {problem}")
    return _change(brain, name, lambda text: ignore.add_pattern(text, wanted))


@op("owner", command="collection ignore remove", examples=("quaid collection ignore remove notes 'drafts/'",))
def ignore_remove(brain: Brain, name: Name, pattern: Pattern) -> IgnoreChangeRecord:
    """Take a pattern away; the files that it left out become pages again."""
    wanted = pattern.strip()

    def without(text: str) -> str:
        new = ignore.remove_pattern(text, wanted)
        if new == text:
            hint = f" `quaid collection ignore list {name}` shows them."
            raise NotFound(what="pattern", name=pattern, hint=hint)
        return new

    return _change(brain, name, without)


@op("owner", command="collection ignore clear", examples=("quaid collection ignore clear notes",))
def ignore_clear(brain: Brain, name: Name) -> IgnoreChangeRecord:
    """Take all patterns away. Comments stay, and so does what is always left out."""
    return _change(brain, name, lambda text: ignore.remove_pattern(text, None))


def _change(brain: Brain, name: str, change: "ignore.IgnoreEdit") -> IgnoreChangeRecord:
    """Write the file anew, durably, and bring the collection in step with it."""
    found = _with_folder(brain, name)
    if not found.writable or found.state != "active":
        why = "is read-only" if found.state == "active" else f"is {found.state}"
        raise CollectionReadOnly(name=name, why=why)
    before, after = _rewrite(found, change, brain.new_uuid())
    if before == after:
        return IgnoreChangeRecord(name, False, tuple(ignore.pattern_lines(after)), (), (), None)
    known = {each.path for each in collections.known_files(brain.db, found.id)}
    report = sync_collection(
        brain.db,
        found,
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        confirm_ignored=True,
    )
    now = {each.path for each in collections.known_files(brain.db, found.id)}
    was, is_now = ignore.ignore_matcher(found.ignore_patterns), ignore.ignore_matcher(after)
    hidden = sorted(path for path in known - now if ignore.is_ignored(is_now, path))
    shown = sorted(path for path in now - known if ignore.is_ignored(was, path))
    return IgnoreChangeRecord(
        name, True, tuple(ignore.pattern_lines(after)), tuple(hidden), tuple(shown), report
    )


def _rewrite(found: Collection, change: "ignore.IgnoreEdit", token: str) -> tuple[str, str]:
    """The text of the file before and after the change."""
    from quaid.folders import atomic_write

    with Folder(found.root or "") as folder:
        try:
            data: bytes | None = folder.read(ignore.IGNORE_FILE)
        except FileNotFoundError:
            data = None
        except OSError as error:
            raise FileTrouble(path=ignore.IGNORE_FILE, problem=f"cannot be read: {error.strerror}") from None
        rules = ignore.parse_rules(data, "")
        if data is not None and rules.problem:
            problem = f"cannot be used: {rules.problem}; mend it with an editor first"
            raise FileTrouble(path=ignore.IGNORE_FILE, problem=problem)
        text = data.decode("utf-8") if data is not None else ""
        new = change(text)
        problem = ignore.patterns_problem(new) or ""
        if problem:
            raise InvalidArgument(name="pattern", problem=f"the file cannot have it: {problem}")
        if new != text and data is None:
            atomic_write.create_file(folder, ignore.IGNORE_FILE, new.encode(), token)
        elif new != text and data is not None:
            atomic_write.replace_file(folder, ignore.IGNORE_FILE, new.encode(), indexer.digest(data), token)
    return text, new


def _with_folder(brain: Brain, name: str) -> Collection:
    found = collections.require(brain.db, name)
    if found.root is None:
        raise InvalidArgument(name="name", problem=f"{name} has no folder: there is nothing to leave out")
    return found

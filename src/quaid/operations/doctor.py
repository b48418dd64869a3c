"""Check the whole installation and recommend commands, including how to recover a damaged memory."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated, Literal, NamedTuple

import quaid
from quaid import config
from quaid.app import Brain, sqlite_version
from quaid.clients.config_files import ShellQuote, newest_backup
from quaid.errors import DamagedDatabase, MissingDatabase, NotADatabase, QuaidError
from quaid.model import dates
from quaid.model.plain_text import count_noun
from quaid.operations import kb
from quaid.operations.clients import connect, skills_doctor
from quaid.operations.registry import Arg, op
from quaid.operations.service import daemon_status, owner_token_path, token_list
from quaid.storage import SCHEMA_VERSION, collections, history
from quaid.storage.checks import Violation, is_text_index_damage
from quaid.storage.collections import Collection
from quaid.storage.sqlite import backup, connection
from quaid.storage.sqlite.connection import is_safe_sqlite

DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of a database's files. They are moved together: a WAL file next to another database would
corrupt that one.
"""


class RecoveryPlan(NamedTuple):
    """How to recover a damaged or missing memory."""

    told: str
    backup: str
    """Path of the backup to restore, or "" if there is none."""
    steps: tuple[str, ...]
    """Commands to run, in order."""


def backup_folders(brain: Brain) -> tuple[str, ...]:
    """Return the folders searched for backups: the memory's folder, the Quaid home folder and its backups/."""
    home = brain.settings.home
    return os.path.dirname(brain.settings.db_path), home, os.path.join(home, "backups")


def plan_recovery(brain: Brain, *, reads: bool) -> RecoveryPlan:
    """Return a recovery plan. `reads` means that some of the damaged memory can still be read."""
    folders = _attached_collections(brain) if reads else []
    with suppress(QuaidError):
        brain.close()  # the last connection to close removes the WAL file, so the steps name only files that remain
    path = brain.settings.db_path
    good = backup.newest_intact_copy(path, backup_folders(brain))
    salvaged = _free_path(f"{path}-salvaged")
    if good is not None:
        pages = count_noun(good.pages, "page")
        changed = f", last changed on {good.changed[:10]}" if good.changed else ""
        doubt = (
            ""
            if good.is_same
            else "; look whether it is a copy of this memory, of which nothing is left to compare with"
        )
        told = f"{dates.timestamp(good.made)[:10]}, {good.path}: it is whole, with {pages}{changed}{doubt}"
        back = shell_command(brain, "copy" if _is_windows(brain) else "cp", good.path, path)
        export = [_quaid_command(brain, "export", "--dir", salvaged)] if reads else []
        return RecoveryPlan(
            told, good.path, (*export, *_set_aside_steps(brain), back, _quaid_command(brain, "doctor"))
        )
    told = "none that is whole lies beside the memory; one elsewhere would be the best way back"
    if reads:
        told += ". Without one, pages come back; old versions, gaps and conversations do not"
    saving, again = _salvage_steps(brain, folders, salvaged) if reads else ([], [])
    return RecoveryPlan(
        told, "", (*saving, *_set_aside_steps(brain), f"quaid init {_shell_quoted(brain, path)}", *again)
    )


def _attached_collections(brain: Brain) -> list[Collection]:
    """Return the collections other than the default one, or [] if they cannot be read."""
    with suppress(QuaidError):
        return [
            each for each in collections.list_all(brain.db) if each.name != collections.DEFAULT_COLLECTION
        ]
    return []


def _salvage_steps(brain: Brain, others: list[Collection], salvaged: str) -> tuple[list[str], list[str]]:
    """Return the commands that export the pages of a damaged memory and those that load them into a new
    one.

    Existing folders are attached again. Collections without a folder are exported first.
    """
    if not others:
        return [_quaid_command(brain, "export", "--dir", salvaged)], [
            _quaid_command(brain, "import", salvaged)
        ]
    saving = [
        _quaid_command(brain, "export", "--collection", collections.DEFAULT_COLLECTION, "--dir", salvaged)
    ]
    again = [_quaid_command(brain, "import", salvaged)]
    for each in others:
        root = each.root or ""
        if each.state != "active" or not os.path.isdir(root):
            root = f"{salvaged}-{each.name}"
            saving.append(_quaid_command(brain, "export", "--collection", each.name, "--dir", root))
        if each.kind == "notebook":
            again.append(_quaid_command(brain, "notebook", "init", root))
        else:
            kind = ("--kind", "kb") if each.kind == "kb" else ()
            only = () if each.writable else ("--read-only",)
            again.append(_quaid_command(brain, "collection", "add", each.name, root, *kind, *only))
    return saving, again


def is_default_memory(brain: Brain) -> bool:
    """Return True if `quaid` without --db uses this memory."""
    settings = brain.settings
    usual = config.read_settings(None, settings.environ, settings.cwd, forgiving=True).db_path
    return os.path.realpath(usual) == os.path.realpath(settings.db_path)


def with_memory_named(brain: Brain, step: str) -> str:
    """Return the command with --db added, for callers whose default memory is another one."""
    if not step.startswith("quaid ") or " --db " in step:
        return step
    if step == "quaid init":
        return shell_command(brain, "quaid", "init", brain.settings.db_path)
    return f"{shell_command(brain, 'quaid', '--db', brain.settings.db_path)} {step.removeprefix('quaid ')}"


def replace_folder_steps(brain: Brain) -> tuple[str, ...]:
    """Return commands that rename a folder found at the database path and create a database in its place."""
    path = brain.settings.db_path
    move = shell_command(brain, "move" if _is_windows(brain) else "mv", path, _free_path(f"{path}-folder"))
    return move, shell_command(brain, "quaid", "init", path)


def _set_aside_steps(brain: Brain) -> tuple[str, ...]:
    """Return commands that move the database files, including the WAL, into a new folder. They may be
    needed later.
    """
    path = brain.settings.db_path
    files = [*(path + each for each in DATABASE_SUFFIXES), collections.folder_list_path(path)]
    there = [each for each in files if os.path.lexists(each)]
    folder = _free_path(f"{path}-damaged")
    if _is_windows(brain):
        return (
            shell_command(brain, "mkdir", folder),
            *(shell_command(brain, "move", each, folder) for each in there),
        )
    return shell_command(brain, "mkdir", folder), shell_command(brain, "mv", *there, folder)


def _free_path(path: str) -> str:
    """Return the path, with a number appended if it exists."""
    name, number = path, 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _quaid_command(brain: Brain, command: str, *words: str) -> str:
    return shell_command(brain, "quaid", "--db", brain.settings.db_path, command, *words)


def shell_command(brain: Brain, *words: str) -> str:
    """Return a command line with each word quoted for this platform's shell."""
    return " ".join(_shell_quoted(brain, each) for each in words)


def _shell_quoted(brain: Brain, word: str) -> str:
    return ShellQuote(brain.settings.platform)(word)


def _is_windows(brain: Brain) -> bool:
    return brain.settings.platform == "win32"


MAX_BACKUP_DAYS = 30
SECONDS_PER_DAY = 86_400
DAMAGE = "damage"
"""Name of preliminary findings that damage_findings combines into one."""
MAX_FAULTS = 100
"""SQLite reports at most this many faults."""

DERIVED_FAULTS = (
    "its tags are not",
    "its timeline entries are not",
    "its chunks are not",
    "its links are not",
    "it does not lead to the page that its text names",
    "its parts in turn_parts are not",
    "its codes are not",
    "a block of its codes",
)
"""How the problems of derived rows begin, which `quaid rebuild` repairs."""

FindingState = Literal["fine", "missing", "advice", "wrong"]


class DoctorFinding(NamedTuple):
    """The result of one check."""

    name: str
    state: FindingState
    """"missing": something optional is absent or unknown. "advice": recommended, but not required."""
    detail: str
    remedy: str = ""
    """A command or an instruction for the user."""
    further: tuple[str, ...] = ()
    """Commands to run after the remedy."""
    details: tuple[str, ...] = ()
    """Literal findings, for programs and support."""


def check_memory(brain: Brain) -> Iterator[DoctorFinding]:
    path = brain.settings.db_path
    try:
        version = connection.read_header(os.path.realpath(path)).version
    except MissingDatabase:
        known = collections.read_folder_list(os.path.realpath(path))
        if known is None:
            yield DoctorFinding("memory", "wrong", f"there is none at {path}", "quaid init")
        else:
            folders = count_noun(len(known.folders), "folder")
            told = f"{path} was deleted; the next question rebuilds it from {folders} that it had attached"
            yield DoctorFinding("memory", "wrong", told, "quaid query QUESTION")
        return
    except NotADatabase as error:
        yield from _not_a_memory(brain, path, str(error.facts["problem"]))
        return
    if version > SCHEMA_VERSION:
        told = f"{path} has schema {version}; this Quaid knows versions up to {SCHEMA_VERSION}"
        yield DoctorFinding("memory", "wrong", told, "quaid upgrade")
        return
    if version < SCHEMA_VERSION:
        told = f"{path} has schema {version}; the next command brings it to {SCHEMA_VERSION}, after a backup"
        yield DoctorFinding("memory", "wrong", told, "quaid stats")
        return
    try:
        _ = brain.db
    except (DamagedDatabase, NotADatabase) as error:
        yield from _recovery_findings(brain, f"{path} is damaged: {error.facts['problem']}")
        return
    yield DoctorFinding("memory", "fine", f"{path}, schema {version}")


def _not_a_memory(brain: Brain, path: str, problem: str) -> Iterator[DoctorFinding]:
    """Report a folder or a foreign file at the database path."""
    if os.path.isdir(path):
        inside = os.path.join(path, "memory.db")
        if os.path.exists(inside):
            told = f"{path} is a folder; a memory is a file, as in {inside}"
            step = shell_command(brain, "quaid", "--db", inside, "doctor")
            yield DoctorFinding("memory", "wrong", told, step)
            return
        told = f"{path} is a folder, where the memory should be a file"
        first, *further = replace_folder_steps(brain)
        yield DoctorFinding("memory", "wrong", told, first, tuple(further))
        return
    told = f"{path} is no memory: {problem}"
    ours = problem in (connection.EMPTY_FILE, connection.NOT_SQLITE)  # the file may have been a memory
    lost = list(_recovery_findings(brain, told)) if ours else []
    if lost and (problem == connection.EMPTY_FILE or lost[-1].state == "fine"):
        yield from lost
    else:
        yield DoctorFinding("memory", "wrong", told, "quaid --db FILE doctor")


def check_rows(brain: Brain) -> Iterator[DoctorFinding]:
    from quaid.operations.maintenance import validate

    found = validate(brain)
    if not found.violations:
        yield DoctorFinding("rows", "fine", ", ".join(found.checks))
        return
    lines = [line for each in found.violations if _is_damage(each) for line in each.problem.splitlines()]
    damage = tuple(line for line in lines if not line.startswith("***"))  # headings in SQLite's report
    if damage:
        yield DoctorFinding(DAMAGE, "wrong", "rows", details=damage)
        return
    first = found.violations[0]
    told = (
        f"{count_noun(len(found.violations), 'problem')}, first {first.check}: {first.where}: {first.problem}"
    )
    cured = any(_is_derived(each) for each in found.violations)
    steps = ("quaid rebuild", "quaid validate") if cured else ("quaid validate",)
    details = tuple(f"{each.check}: {each.where}: {each.problem}" for each in found.violations[:MAX_FAULTS])
    yield DoctorFinding("rows", "wrong", told, steps[0], steps[1:], details)


def check_sources(brain: Brain) -> Iterator[DoctorFinding]:
    if found := len(history.sources_without_page(brain.db)):
        told = (
            f"{count_noun(found, 'source')} that an earlier Quaid kept without a page; no search finds them"
        )
        yield DoctorFinding("sources", "advice", told, "quaid adopt-sources")


def _is_damage(found: Violation) -> bool:
    """Return True if the database file itself is damaged.

    A text index does not count: it can be rebuilt, and its check says nothing about the rest of the file.
    """
    return found.where == "database" and found.check != "fts" and not is_text_index_damage(found.problem)


def _is_derived(found: Violation) -> bool:
    """Return True if `quaid rebuild` repairs it."""
    made_again = found.problem.startswith(DERIVED_FAULTS)
    return found.check == "fts" or made_again or is_text_index_damage(found.problem)


def check_backups(brain: Brain) -> Iterator[DoctorFinding]:

    found = backup.newest_backup(brain.settings.db_path, backup_folders(brain))
    name = os.path.join(brain.settings.home, f"backup-{brain.now()[:10]}.db")
    if found is None:
        told = "none beside the memory; this says nothing of copies elsewhere"
        yield DoctorFinding("backup", "advice", told, f"quaid backup {name}")
        return
    made = dates.timestamp(found[1])
    old = made < brain.now(-MAX_BACKUP_DAYS * SECONDS_PER_DAY)
    remedy = f"quaid backup {name}" if old else ""
    yield DoctorFinding("backup", "advice" if old else "fine", f"{made[:10]}, {found[0]}", remedy)


def damage_findings(brain: Brain, found: list[DoctorFinding]) -> list[DoctorFinding]:
    """Combine damage findings into one with a recovery plan, and drop the advice to run commands on the
    damaged file.
    """
    lines = tuple(dict.fromkeys(line for each in found if each.name == DAMAGE for line in each.details))
    damage = tuple(line for line in lines if not is_text_index_damage(line))
    if not damage:
        return _index_findings(found, lines) if lines else found
    most = " or more" if len(damage) >= MAX_FAULTS else ""
    faults = count_noun(len(damage), "fault")
    told = f"the file is damaged: SQLite names {faults}{most} in it; `quaid validate` lists all"
    rest = [each for each in found if each.name not in (DAMAGE, "backup")]
    return [
        *_recovery_findings(brain, told, DAMAGE, damage, reads=True),
        *(each._replace(remedy="") if each.remedy.startswith("quaid ") else each for each in rest),
    ]


def _index_findings(found: list[DoctorFinding], lines: tuple[str, ...]) -> list[DoctorFinding]:
    """Return the findings when only a text index is damaged and no data is lost."""
    rest = [each for each in found if each.name != DAMAGE]
    if any(each.name == "rows" and each.state == "wrong" for each in rest):
        return rest
    told = "an index of words is damaged; it can be made again from the pages"
    return [DoctorFinding("rows", "wrong", told, "quaid rebuild", ("quaid validate",), lines), *rest]


def _recovery_findings(
    brain: Brain, told: str, name: str = "memory", details: tuple[str, ...] = (), *, reads: bool = False
) -> Iterator[DoctorFinding]:
    """Return findings that state the damage and the recovery plan."""
    way = plan_recovery(brain, reads=reads)
    yield DoctorFinding(name, "wrong", told, way.steps[0], way.steps[1:], details)
    yield DoctorFinding("backup", "fine" if way.backup else "wrong", way.told)


MIN_FREE_BYTES = 200 * 1024 * 1024


class DoctorRecord(NamedTuple):
    checks: tuple[DoctorFinding, ...]
    next_steps: tuple[str, ...]
    """Commands to run, the most urgent first."""

    @property
    def exit_status(self) -> int:
        return 1 if any(each.state == "wrong" for each in self.checks) else 0


@op("owner", examples=("quaid doctor", "quaid doctor --quick", "quaid doctor --json"))
def doctor(
    brain: Brain,
    quick: Annotated[
        bool, Arg("Leave out what takes long: reading every row, and loading the model.")
    ] = False,
) -> DoctorRecord:
    """Check the whole set-up and say what to type next. Exits 1 when something is to be done.

    Looks at the program, the config file, the memory and its rows, the model, folders, notebook, knowledge base,
    clients, skills, service, permissions, disk space and the age of backups. Changes none of your files and
    contacts no server."""
    before = [each for name, check in _FIRST_CHECKS for each in _run_check(brain, name, check)]
    inside: list[DoctorFinding] = []
    if all(each.state != "wrong" for each in before if each.name == "memory"):
        for name, check in (*_MEMORY_CHECKS, *(() if quick else _SLOW_CHECKS)):
            inside += _run_check(brain, name, check)
        inside = damage_findings(brain, inside)
    around = [each for name, check in _OTHER_CHECKS for each in _run_check(brain, name, check)]
    found = (*before, *inside, *around)
    if not is_default_memory(brain):
        found = tuple(_with_memory_named(brain, each) for each in found)
    steps = [
        (each.remedy, *each.further) for state in ("wrong", "advice") for each in found if each.state == state
    ]
    return DoctorRecord(found, tuple(dict.fromkeys(step for each in steps for step in each if step)))


def _with_memory_named(brain: Brain, found: DoctorFinding) -> DoctorFinding:
    remedy, *further = (with_memory_named(brain, step) for step in (found.remedy, *found.further))
    return found._replace(remedy=remedy, further=tuple(further))


def _run_check(
    brain: Brain, name: str, check: Callable[[Brain], Iterator[DoctorFinding]]
) -> Iterator[DoctorFinding]:
    """Run a check and turn its errors into findings."""
    try:
        yield from check(brain)
    except DamagedDatabase as error:
        yield DoctorFinding(DAMAGE, "wrong", name, details=(str(error.facts["problem"]),))
    except QuaidError as error:
        yield DoctorFinding(name, "wrong", str(error))
    except OSError as error:
        yield DoctorFinding(name, "wrong", f"{error.filename or name}: {error.strerror or error}")


def _program(_: Brain) -> Iterator[DoctorFinding]:
    python = sys.version.split()[0]
    yield DoctorFinding("program", "fine", f"quaid {quaid.__version__}, Python {python}")
    if is_safe_sqlite(sqlite_version()):
        yield DoctorFinding("sqlite", "fine", f"SQLite {sqlite_version()}")
    else:
        remedy = "pip install --upgrade apsw"
        yield DoctorFinding("sqlite", "wrong", f"SQLite {sqlite_version()} can lose committed writes", remedy)


def _config(brain: Brain) -> Iterator[DoctorFinding]:
    settings = brain.settings
    path, problem = settings.unread
    if path:
        told = f"{path} cannot be used: {problem}; these checks go on without it"
        there = os.path.exists(path)
        step = _edit_step(path, problem) if there else "name another file with --config or QUAID_CONFIG"
        yield DoctorFinding("config", "wrong", told, step)
    for each in settings.warnings:
        yield DoctorFinding("config", "advice", each, _edit_step(settings.config_path, each))
    if settings.config_path and not settings.warnings:
        yield DoctorFinding("config", "fine", settings.config_path)


def _edit_step(path: str, problem: str) -> str:
    """Return the instruction to edit a file, with the line number if the problem contains one."""
    _, _, place = problem.partition("line ")
    number = place[: len(place) - len(place.lstrip("0123456789"))]
    return f"mend {f'line {number} of ' if number else ''}{path} in an editor"


def _pages(brain: Brain) -> Iterator[DoctorFinding]:
    from quaid.operations.maintenance import status

    found = status(brain)
    pages = f"{count_noun(found.pages, 'page')}, {count_noun(found.chunks, 'chunk')}"
    if not found.pages:
        yield DoctorFinding("pages", "advice", "none yet", "quaid import FOLDER")
    else:
        yield DoctorFinding("pages", "fine", pages)
    if not found.writable:
        yield DoctorFinding("writing", "wrong", f"{found.path} cannot be written", f"chmod u+rw {found.path}")
    if found.model.problem:
        off = found.model.problem == "semantic search is off"
        told = f"{found.model.name}: {found.model.problem}"
        yield DoctorFinding(
            "model", "advice" if off else "wrong", told, f"quaid model check {found.model.name}"
        )
        return
    missing = found.model.missing + found.pages_uncut
    if missing and not found.filling:
        told = count_noun(missing, "chunk or page has", "chunks or pages have")
        yield DoctorFinding("vectors", "advice", f"{told} none yet", "quaid embed")
    else:
        state: FindingState = "fine" if found.model.vectors else "missing"
        yield DoctorFinding("vectors", state, f"{found.model.vectors:,} of {found.model.name}")
    if found.trouble:
        yield DoctorFinding("embedding", "wrong", found.trouble.problem, "quaid embed")


def _model(brain: Brain) -> Iterator[DoctorFinding]:
    from quaid.operations.models import model_check

    if not brain.model_name:
        return
    found = model_check(brain)
    if found.problem:
        yield DoctorFinding("self-test", "wrong", f"{found.name}: {found.problem}", "quaid model list")
    else:
        yield DoctorFinding("self-test", "fine", f"{found.name} gives the vectors that it should")


def _folders(brain: Brain) -> Iterator[DoctorFinding]:
    from quaid.operations.collections import collection_list

    attached = [each for each in collection_list(brain).collections if each.root]
    failed = collections.files_not_indexed(brain.db)
    for each in attached:
        if each.halted:
            remedy = f"quaid collection sync {each.name}"
            yield DoctorFinding(f"folder {each.name}", "wrong", each.halted, remedy)
        elif not os.path.isdir(each.root or ""):
            remedy = f"quaid collection info {each.name}"
            yield DoctorFinding(f"folder {each.name}", "wrong", f"{each.root} is not there", remedy)
        elif each.ignore_problem:
            remedy = f"quaid collection ignore list {each.name}"
            yield DoctorFinding(f"folder {each.name}", "wrong", each.ignore_problem, remedy)
        elif each.name in failed:
            files = failed[each.name]
            told = f"{count_noun(len(files), 'file')} not taken in, first {files[0].path}: {files[0].problem}"
            details = tuple(f"{file.path}: {file.problem}" for file in files)
            remedy = f"quaid collection info {each.name}"
            yield DoctorFinding(f"folder {each.name}", "wrong", told, remedy, details=details)
        else:
            told = f"{count_noun(each.pages, 'page')} of {each.root}"
            waiting = f"; {each.quarantined} in quarantine" if each.quarantined else ""
            yield DoctorFinding(f"folder {each.name}", "fine", told + waiting)
    if not any(each.kind == "notebook" for each in attached):
        yield DoctorFinding("notebook", "advice", "there is none yet", "quaid notebook init")


def _permissions(brain: Brain) -> Iterator[DoctorFinding]:
    if os.name != "posix":
        return
    path = os.path.realpath(brain.settings.db_path)
    folder = os.path.dirname(path)
    wrong = []
    # The WAL file is not checked: it has the database's mode and is removed when this command ends.
    for each, mode in ((path, "600"), (brain.settings.home, "700"), (_owner_token(brain), "600")):
        if os.path.exists(each) and os.stat(each).st_mode & 0o077:
            wrong.append((each, mode))
    for each, mode in wrong:
        yield DoctorFinding("permissions", "wrong", f"others can get at {each}", f"chmod {mode} {each}")
    if not wrong:
        yield DoctorFinding("permissions", "fine", f"only you can read {folder}")


def _owner_token(brain: Brain) -> str:
    return owner_token_path(brain.settings)


def _free_space(brain: Brain) -> Iterator[DoctorFinding]:
    from shutil import disk_usage

    path = brain.settings.db_path
    free, wanted = (
        disk_usage(os.path.dirname(path) or ".").free,
        max(MIN_FREE_BYTES, 2 * os.path.getsize(path)),
    )
    state: FindingState = "fine" if free >= wanted else "wrong"
    told = f"{free / 1e9:.1f} GB free" + ("" if state == "fine" else f"; {wanted / 1e9:.1f} GB are wanted")
    yield DoctorFinding("disk", state, told, "" if state == "fine" else "quaid compact")


def _tokens(brain: Brain) -> Iterator[DoctorFinding]:
    found = token_list(brain)
    used = os.path.exists(found.owner_file)
    made = "the owner's token is made" if used else "not used yet"
    given = f"; given away: {', '.join(each.name for each in found.tokens)}" if found.tokens else ""
    yield DoctorFinding("web", "fine" if used or given else "missing", made + given)


def _clients(brain: Brain) -> Iterator[DoctorFinding]:
    found = [each for each in connect(brain).clients if each.state != "not installed"]
    for each in found:
        told, remedy = f"{each.title}: {each.state}", f"quaid connect {each.client}"
        if each.state == "unreadable":
            kept = newest_backup(each.path)
            before = f"; before Quaid last changed it, it was {kept}" if kept else ""
            broken = f"{each.title} cannot read {each.path}: {each.detail}{before}"
            yield DoctorFinding("client", "wrong", broken, _edit_step(each.path, each.detail), (remedy,))
        elif each.state == "connected" and not each.detail:
            yield DoctorFinding("client", "fine", told)
        elif each.state == "connected":
            yield DoctorFinding("client", "wrong", f"{told}, but {each.detail}", remedy)
        else:
            yield DoctorFinding("client", "advice", f"{told} {each.detail}".rstrip(), remedy)
    if not found:
        yield DoctorFinding("client", "advice", "no program that uses it was found here", "quaid connect")


def _knowledge_base(brain: Brain) -> Iterator[DoctorFinding]:
    if not os.path.isdir(os.path.join(kb.kb_root(brain), ".git")):
        yield DoctorFinding("knowledge base", "advice", "there is none yet", "ai-kb init")
        return
    found = kb.kb_status(brain)
    told = f"{count_noun(found.nodes, 'node')} in {found.root}"
    if found.nudge:
        yield DoctorFinding("knowledge base", "wrong", f"{told}: {found.nudge}", "ai-kb doctor")
    else:
        yield DoctorFinding("knowledge base", "fine", told)


def _skills(brain: Brain) -> Iterator[DoctorFinding]:
    found = skills_doctor(brain)
    if found.problems:
        first = found.problems[0]
        yield DoctorFinding("skills", "wrong", f"{first.path}: {first.problem}", "quaid skills doctor")
    else:
        yield DoctorFinding("skills", "fine", f"{len(found.skills)} in force")


def _daemon(brain: Brain) -> Iterator[DoctorFinding]:
    found = daemon_status(brain)
    if found.state == "stopped":
        yield DoctorFinding("service", "wrong", f"stopped: {found.path}", "quaid daemon start")
    else:
        yield DoctorFinding("service", "fine" if found.state == "running" else "missing", found.state)


_FIRST_CHECKS = (("program", _program), ("config", _config), ("memory", check_memory))
_MEMORY_CHECKS: tuple[tuple[str, Callable[[Brain], Iterator[DoctorFinding]]], ...] = (
    ("pages", _pages),
    ("folders", _folders),
    ("permissions", _permissions),
    ("disk", _free_space),
    ("sources", check_sources),
    ("backup", check_backups),
    ("web", _tokens),
)
_SLOW_CHECKS = (("rows", check_rows), ("self-test", _model))
_OTHER_CHECKS = (
    ("client", _clients),
    ("knowledge base", _knowledge_base),
    ("skills", _skills),
    ("service", _daemon),
)

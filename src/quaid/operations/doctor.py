"""Check the whole installation and say what to type next, including how to recover a damaged memory."""

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
"""The files of a memory, by what stands behind its name. A log beside another database would ruin that one."""


class RecoveryPlan(NamedTuple):
    """How to have a memory again."""

    told: str
    backup: str
    """The copy that can take its place; nothing when there is none."""
    steps: tuple[str, ...]
    """What to type, in this order."""


def backup_folders(brain: Brain) -> tuple[str, ...]:
    """Where backups are looked for: beside the memory, and in the folder of what is the user's."""
    home = brain.settings.home
    return os.path.dirname(brain.settings.db_path), home, os.path.join(home, "backups")


def plan_recovery(brain: Brain, *, reads: bool) -> RecoveryPlan:
    """The way back to a memory that is whole. `reads`: some of the damaged one can still be read."""
    folders = _attached_collections(brain) if reads else []
    with suppress(QuaidError):
        brain.close()  # whoever is the last tidies the log away, and only what stays is named
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
    """The collections besides the default one, as far as they can be read."""
    with suppress(QuaidError):
        return [
            each for each in collections.list_all(brain.db) if each.name != collections.DEFAULT_COLLECTION
        ]
    return []


def _salvage_steps(brain: Brain, others: list[Collection], salvaged: str) -> tuple[list[str], list[str]]:
    """What saves the pages of a damaged memory, and what brings them into a new one.

    A folder that is still there is attached again; pages of a collection without one are exported for it.
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
    """Whether `quaid` alone, typed here, means this memory."""
    settings = brain.settings
    usual = config.read_settings(None, settings.environ, settings.cwd, forgiving=True).db_path
    return os.path.realpath(usual) == os.path.realpath(settings.db_path)


def with_memory_named(brain: Brain, step: str) -> str:
    """A step that names this memory, for whoever would otherwise mean another one."""
    if not step.startswith("quaid ") or " --db " in step:
        return step
    if step == "quaid init":
        return shell_command(brain, "quaid", "init", brain.settings.db_path)
    return f"{shell_command(brain, 'quaid', '--db', brain.settings.db_path)} {step.removeprefix('quaid ')}"


def replace_folder_steps(brain: Brain) -> tuple[str, ...]:
    """The folder gets another name, with all that is in it, and a memory is made where it was."""
    path = brain.settings.db_path
    move = shell_command(brain, "move" if _is_windows(brain) else "mv", path, _free_path(f"{path}-folder"))
    return move, shell_command(brain, "quaid", "init", path)


def _set_aside_steps(brain: Brain) -> tuple[str, ...]:
    """Into a folder of its own, with its log: it may yet be needed."""
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
    """The name, or one like it that nobody has."""
    name, number = path, 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _quaid_command(brain: Brain, command: str, *words: str) -> str:
    return shell_command(brain, "quaid", "--db", brain.settings.db_path, command, *words)


def shell_command(brain: Brain, *words: str) -> str:
    """A command to type, each word quoted for the shell of this system."""
    return " ".join(_shell_quoted(brain, each) for each in words)


def _shell_quoted(brain: Brain, word: str) -> str:
    return ShellQuote(brain.settings.platform)(word)


def _is_windows(brain: Brain) -> bool:
    return brain.settings.platform == "win32"


MAX_BACKUP_DAYS = 30
SECONDS_PER_DAY = 86_400
DAMAGE = "damage"
"""The name of findings that become one, when the round is over."""
MAX_FAULTS = 100
"""SQLite names no more of them."""

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
"""How problems of derived rows begin, which `quaid rebuild` mends."""

FindingState = Literal["fine", "missing", "advice", "wrong"]


class DoctorFinding(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: FindingState
    """missing: something optional that is not there or cannot be known. advice: it would be better with it."""
    detail: str
    remedy: str = ""
    """What to type, or to do."""
    further: tuple[str, ...] = ()
    """What to type after it."""
    details: tuple[str, ...] = ()
    """What was found, word for word; for programs, and for who helps."""


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
    """Something else is where the memory should be."""
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
    ours = problem in (connection.EMPTY_FILE, connection.NOT_SQLITE)  # may have been a memory before
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
    damage = tuple(line for line in lines if not line.startswith("***"))  # SQLite's headings
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
    """Whether the file itself is hurt. An index of words can be made again, and the check of it is no judge of it."""
    return found.where == "database" and found.check != "fts" and not is_text_index_damage(found.problem)


def _is_derived(found: Violation) -> bool:
    """Whether `quaid rebuild` mends it."""
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
    """Findings of a damaged memory: the damage once, with the way out of it, and no advice to go on writing there."""
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
    """Findings where nothing but an index of words is hurt: nothing is lost."""
    rest = [each for each in found if each.name != DAMAGE]
    if any(each.name == "rows" and each.state == "wrong" for each in rest):
        return rest
    told = "an index of words is damaged; it can be made again from the pages"
    return [DoctorFinding("rows", "wrong", told, "quaid rebuild", ("quaid validate",), lines), *rest]


def _recovery_findings(
    brain: Brain, told: str, name: str = "memory", details: tuple[str, ...] = (), *, reads: bool = False
) -> Iterator[DoctorFinding]:
    """What became of the memory, and the way back to one that is whole."""
    way = plan_recovery(brain, reads=reads)
    yield DoctorFinding(name, "wrong", told, way.steps[0], way.steps[1:], details)
    yield DoctorFinding("backup", "fine" if way.backup else "wrong", way.told)


MIN_FREE_BYTES = 200 * 1024 * 1024


class DoctorRecord(NamedTuple):
    checks: tuple[DoctorFinding, ...]
    next_steps: tuple[str, ...]
    """What to type, the most urgent first."""

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
    clients, skills, service, permissions, room on the disk and the age of backups. Changes nothing of yours and asks
    nobody else."""
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
    """A check whose own failure is a finding like any other."""
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
    """The step of a person with an editor; the line, if the problem names one."""
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
    # Not the log beside it: it has the mode of the memory, and is gone when this command has ended.
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

"""Check the whole installation and recommend commands, including how to recover a damaged memory."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from shutil import disk_usage
from typing import Annotated, Any, Literal, NamedTuple

import quaid
from quaid import config, errors
from quaid.app import Brain, sqlite_version
from quaid.clients import newest_backup, shell_quote
from quaid.folders import attachments
from quaid.model import dates
from quaid.model.plain_text import count_noun
from quaid.model.sync_plan import copied_path
from quaid.operations import dispatch, kb
from quaid.operations.clients import connect, skills_doctor
from quaid.operations.collections import collection_list
from quaid.operations.maintenance import status, validate
from quaid.operations.models import model_check
from quaid.operations.registry import Arg, op
from quaid.operations.service import daemon_status, owner_token_path, token_list
from quaid.storage import SCHEMA_VERSION, collections, expiry
from quaid.storage.briefing import open_counts
from quaid.storage.checks import Violation, is_text_index_damage
from quaid.storage.collections import Collection, Collections
from quaid.storage.history import Imports
from quaid.storage.spaces import Spaces
from quaid.storage.sqlite import backup, connection
from quaid.storage.sqlite.connection import is_safe_sqlite

DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of a database's files.

These files are moved together, because a WAL file next to a different database would corrupt that database.
"""


def plan_recovery(brain: Brain, *, reads: bool) -> tuple[str, str, tuple[str, ...]]:
    """Return a description and the path of the newest intact backup, and the commands that recover the memory.

    If there is no such backup, the description says so and the path is "".

    `reads` means that some of the damaged memory can still be read.
    """
    folders = _attached_collections(brain) if reads else []
    with suppress(errors.QuaidError):
        # Closing the last connection removes the WAL file, so the steps name only files that remain.
        brain.close()
    path = brain.settings.db_path
    good = backup.newest_intact_copy(path, brain.settings.backup_folders)
    salvaged = _free_path(f"{path}-salvaged")
    if good is not None:
        pages = count_noun(good.pages, "page")
        changed = f", last changed on {good.changed[:10]}" if good.changed else ""
        doubt = "" if good.is_same else "; check that it is a copy of this memory, which cannot be compared"
        backup_note = (
            f"{dates.timestamp(good.made)[:10]}, {good.path}: it is intact, with {pages}{changed}{doubt}"
        )
        back = shell_command(brain, "copy" if _is_windows(brain) else "cp", good.path, path)
        export = [_quaid_command(brain, "export", "--dir", salvaged)] if reads else []
        return (
            backup_note,
            good.path,
            (
                *export,
                *_set_aside_steps(brain),
                back,
                *_image_steps(brain, good.path),
                _quaid_command(brain, "doctor"),
            ),
        )
    backup_note = "no intact backup beside the memory; if you have one elsewhere, restore it"
    if reads:
        backup_note += ". Without one, pages are recovered; old versions, gaps and conversations are not"
    saving, again = _salvage_steps(brain, folders, salvaged) if reads else ([], [])
    return (
        backup_note,
        "",
        (*saving, *_set_aside_steps(brain), shell_command(brain, "quaid", "init", path), *again),
    )


def _attached_collections(brain: Brain) -> list[Collection]:
    """Return the collections other than the default one, or [] if they cannot be read."""
    with suppress(errors.QuaidError):
        return [row for row in Collections(brain.db).all() if row.name != collections.DEFAULT_COLLECTION]
    return []


def _salvage_steps(brain: Brain, others: list[Collection], salvaged: str) -> tuple[list[str], list[str]]:
    """Return the commands that export pages of a damaged memory, and the commands that fill a new memory.

    Active folders that exist are attached again. Other collections are exported, and the exported folders are
    attached.
    """
    only_default = ("--collection", collections.DEFAULT_COLLECTION) if others else ()
    saving = [_quaid_command(brain, "export", *only_default, "--dir", salvaged)]
    again = [_quaid_command(brain, "import", salvaged)]
    for other in others:
        root = other.root or ""
        if other.state != "active" or not os.path.isdir(root):
            root = f"{salvaged}-{other.name}"
            saving.append(_quaid_command(brain, "export", "--collection", other.name, "--dir", root))
        if other.kind == "notebook":
            again.append(_quaid_command(brain, "notebook", "init", root))
        else:
            kind = ("--kind", "kb") if other.kind == "kb" else ()
            only = () if other.writable else ("--read-only",)
            again.append(_quaid_command(brain, "collection", "add", other.name, root, *kind, *only))
    return saving, again


def is_default_memory(brain: Brain) -> bool:
    """Return True if `quaid` without --db uses this memory."""
    settings = brain.settings
    usual = config.read_settings(None, settings.environ, settings.cwd, forgiving=True).db_path
    return os.path.realpath(usual) == os.path.realpath(settings.db_path)


def with_memory_named(brain: Brain, step: str) -> str:
    """Return a `quaid` command with the path of this memory added, unless the command has --db.

    Steps that are not `quaid` commands are returned unchanged.
    """
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
    """Return commands that create a folder and move the files of the database into it, for later use.

    These files include the WAL file and the list of attached folders.
    """
    path = brain.settings.db_path
    files = [*(path + suffix for suffix in DATABASE_SUFFIXES), collections.folder_list_path(path)]
    existing = [file for file in files if os.path.lexists(file)]
    folder = _free_path(f"{path}-damaged")
    moves = (
        [("move", file, folder) for file in existing] if _is_windows(brain) else [("mv", *existing, folder)]
    )
    return shell_command(brain, "mkdir", folder), *(shell_command(brain, *move) for move in moves)


def _image_steps(brain: Brain, copy: str) -> tuple[str, ...]:
    """Return the commands that copy the images of a backup to the memory's image folder, if there are any."""
    source, target = (attachments.memory_folder(path) for path in (copy, brain.settings.db_path))
    if source == target or not os.path.isdir(source):
        return ()
    if _is_windows(brain):
        return (shell_command(brain, "robocopy", source, target),)
    return shell_command(brain, "mkdir", "-p", target), shell_command(
        brain, "cp", "-R", f"{source}/.", target
    )


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
    return " ".join(map(shell_quote(brain.settings.platform), words))


def _is_windows(brain: Brain) -> bool:
    return brain.settings.platform == "win32"


MAX_BACKUP_DAYS = 30
SECONDS_PER_DAY = 86_400
DAMAGE = "damage"
"""The name of preliminary findings, which damage_findings combines into one finding."""
MAX_FAULTS = 100
"""At most this many problems are listed; SQLite reports no more than this many faults."""

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
"""The beginnings of messages about faulty derived rows, which `quaid rebuild` repairs."""

FindingState = Literal["fine", "missing", "advice", "wrong"]


class DoctorFinding(NamedTuple):
    """The result of one check."""

    name: str
    state: FindingState
    """"missing" if something optional is absent or unknown, "advice" for a recommendation."""
    detail: str
    remedy: str = ""
    """A command or an instruction for the user; "" if nothing is to be done."""
    further: tuple[str, ...] = ()
    """Commands to run after the remedy."""
    details: tuple[str, ...] = ()
    """The individual messages of the check, for programs and support."""


def check_memory(brain: Brain) -> Iterator[DoctorFinding]:
    path = brain.settings.db_path
    try:
        version = connection.read_header(os.path.realpath(path)).version
    except errors.MissingDatabase:
        attached = collections.read_folder_list(os.path.realpath(path))
        if attached is None:
            yield DoctorFinding("memory", "wrong", f"there is none at {path}", "quaid init")
        else:
            folders = count_noun(len(attached.folders), "attached folder")
            detail = f"{path} was deleted; the next question rebuilds it from {folders}"
            yield DoctorFinding("memory", "wrong", detail, "quaid query QUESTION")
        return
    except errors.NoCipher as error:
        detail = f"{path} is encrypted, and the installed apsw cannot decrypt"
        yield DoctorFinding("memory", "wrong", detail, str(error.facts["install"]))
        return
    except errors.DamagedDatabase as error:  # only of an encrypted memory: its header must be decrypted
        yield from _recovery_findings(brain, f"{path} is damaged: {error.facts['problem']}")
        return
    except errors.NotADatabase as error:
        yield from _not_a_memory(brain, path, str(error.facts["problem"]))
        return
    if version > SCHEMA_VERSION:
        detail = f"{path} has schema {version}; this Quaid supports versions up to {SCHEMA_VERSION}"
        yield DoctorFinding("memory", "wrong", detail, "quaid upgrade")
        return
    if version < SCHEMA_VERSION:
        detail = (
            f"{path} has schema {version}; the next command migrates it to {SCHEMA_VERSION}, after a backup"
        )
        yield DoctorFinding("memory", "wrong", detail, "quaid stats")
        return
    try:
        _ = brain.db
    except (errors.DamagedDatabase, errors.NotADatabase) as error:
        yield from _recovery_findings(brain, f"{path} is damaged: {error.facts['problem']}")
        return
    encrypted = ", encrypted" if brain.db.cipher else ""
    yield DoctorFinding("memory", "fine", f"{path}, schema {version}{encrypted}")


def _not_a_memory(brain: Brain, path: str, problem: str) -> Iterator[DoctorFinding]:
    """Report a folder or a foreign file at the database path."""
    if os.path.isdir(path):
        inside = os.path.join(path, "memory.db")
        if os.path.exists(inside):
            step = shell_command(brain, "quaid", "--db", inside, "doctor")
            yield DoctorFinding(
                "memory", "wrong", f"{path} is a folder; the memory is the file {inside}", step
            )
            return
        first, *further = replace_folder_steps(brain)
        detail = f"{path} is a folder, but the memory must be a file"
        yield DoctorFinding("memory", "wrong", detail, first, tuple(further))
        return
    detail = f"{path} is not a memory: {problem}"
    ours = problem in (connection.EMPTY_FILE, connection.NOT_SQLITE)  # the file may be a damaged memory
    lost = list(_recovery_findings(brain, detail)) if ours else []
    if lost and (problem == connection.EMPTY_FILE or lost[-1].state == "fine"):
        yield from lost
    else:
        yield DoctorFinding("memory", "wrong", detail, "quaid --db FILE doctor")


def check_rows(brain: Brain) -> Iterator[DoctorFinding]:
    checks, violations, *_ = validate(brain)
    if not violations:
        yield DoctorFinding("rows", "fine", ", ".join(checks))
        return
    lines = [
        line for violation in violations if _is_damage(violation) for line in violation.problem.splitlines()
    ]
    # Lines with *** are headings of SQLite's report.
    damage = tuple(line for line in lines if not line.startswith("***"))
    if damage:
        yield DoctorFinding(DAMAGE, "wrong", "rows", details=damage)
        return
    details = tuple(
        f"{violation.check}: {violation.where}: {violation.problem}" for violation in violations[:MAX_FAULTS]
    )
    summary = f"{count_noun(len(violations), 'problem')}, first {details[0]}"
    steps = ("quaid rebuild", "quaid validate") if any(map(_is_derived, violations)) else ("quaid validate",)
    yield DoctorFinding("rows", "wrong", summary, steps[0], steps[1:], details)


def check_sources(brain: Brain) -> Iterator[DoctorFinding]:
    if sources := len(Imports(brain.db).sources_without_page()):
        detail = f"{count_noun(sources, 'source')} of an earlier version without a page; no search finds them"
        yield DoctorFinding("sources", "advice", detail, "quaid adopt-sources")


def _is_damage(violation: Violation) -> bool:
    """Return True if the database file itself is damaged.

    Damage to a text index does not count, because the index can be rebuilt and its check tells nothing about
    the rest of the file.
    """
    is_file = violation.where == "database" and violation.check != "fts"
    return is_file and not is_text_index_damage(violation.problem)


def _is_derived(violation: Violation) -> bool:
    """Return True if `quaid rebuild` repairs the violation."""
    derived = violation.check == "fts" or violation.problem.startswith(DERIVED_FAULTS)
    return derived or is_text_index_damage(violation.problem)


def check_backups(brain: Brain) -> Iterator[DoctorFinding]:
    newest = backup.newest_backup(brain.settings.db_path, brain.settings.backup_folders)
    remedy = f"quaid backup {os.path.join(brain.settings.home, f'backup-{brain.now()[:10]}.db')}"
    if newest is None:
        yield DoctorFinding(
            "backup", "advice", "none beside the memory; other places are not checked", remedy
        )
        return
    if brain.db.cipher is not None:
        copies = backup.all_copies_of(os.path.realpath(brain.settings.db_path), brain.settings.backup_folders)
        if plain := [copy for copy in copies if connection.cipher_header(copy) is None]:
            about = f"{count_noun(len(plain), 'backup')} without encryption, first {plain[0]}"
            yield DoctorFinding("backup", "wrong", about, "quaid encrypt")
    path, made = newest[0], dates.timestamp(newest[1])
    is_old = made < brain.now(-MAX_BACKUP_DAYS * SECONDS_PER_DAY)
    state: FindingState = "advice" if is_old else "fine"
    yield DoctorFinding("backup", state, f"{made[:10]}, {path}", remedy if is_old else "")


def damage_findings(brain: Brain, findings: list[DoctorFinding]) -> list[DoctorFinding]:
    """Combine damage findings into one with a recovery plan, and drop remedies that use the damaged file.

    If only a text index is damaged, recommend a rebuild instead.
    """
    lines = tuple(dict.fromkeys(line for check in findings if check.name == DAMAGE for line in check.details))
    damage = tuple(line for line in lines if not is_text_index_damage(line))
    if not damage:
        return _index_findings(findings, lines) if lines else findings
    most = " or more" if len(damage) >= MAX_FAULTS else ""
    faults = count_noun(len(damage), "fault")
    summary = f"the file is damaged: SQLite reports {faults}{most}; `quaid validate` lists all"
    rest = [check for check in findings if check.name not in (DAMAGE, "backup")]
    return [
        *_recovery_findings(brain, summary, DAMAGE, damage, reads=True),
        *(check._replace(remedy="") if check.remedy.startswith("quaid ") else check for check in rest),
    ]


def _index_findings(findings: list[DoctorFinding], lines: tuple[str, ...]) -> list[DoctorFinding]:
    """Return the findings when only a text index is damaged and no data is lost."""
    rest = [check for check in findings if check.name != DAMAGE]
    if any(check.name == "rows" and check.state == "wrong" for check in rest):
        return rest
    detail = "a text index is damaged; it can be rebuilt from the pages"
    return [DoctorFinding("rows", "wrong", detail, "quaid rebuild", ("quaid validate",), lines), *rest]


def _recovery_findings(
    brain: Brain, damage: str, name: str = "memory", details: tuple[str, ...] = (), *, reads: bool = False
) -> Iterator[DoctorFinding]:
    """Return findings that state the damage and the recovery plan."""
    description, path, (first, *further) = plan_recovery(brain, reads=reads)
    yield DoctorFinding(name, "wrong", damage, first, tuple(further), details)
    yield DoctorFinding("backup", "fine" if path else "wrong", description)


MIN_FREE_BYTES = 200 * 1024 * 1024


class DoctorRecord(NamedTuple):
    checks: tuple[DoctorFinding, ...]
    next_steps: tuple[str, ...]
    """Commands to run, the most urgent first."""

    @property
    def exit_status(self) -> int:
        return 1 if any(check.state == "wrong" for check in self.checks) else 0


@op("owner", examples=("quaid doctor", "quaid doctor --quick", "quaid doctor --json"))
def doctor(
    brain: Brain,
    quick: Annotated[bool, Arg("Skip the slow checks: reading every row, and loading the model.")] = False,
) -> DoctorRecord:
    """Check the installation and recommend commands. Exits 1 if something is wrong.

    Checks the program, the config file, the memory and its rows, the model, folders, notebook, knowledge base,
    clients, skills, service, permissions, disk space and the age of backups. Changes none of your files and
    contacts no server."""
    findings = _run_checks(brain, _FIRST_CHECKS)
    if all(finding.state != "wrong" for finding in findings if finding.name == "memory"):
        inside = _run_checks(brain, _MEMORY_CHECKS | ({} if quick else _SLOW_CHECKS))
        findings += damage_findings(brain, inside)
    findings += _run_checks(brain, _OTHER_CHECKS)
    if not is_default_memory(brain):
        findings = [_with_memory_named(brain, finding) for finding in findings]
    steps = [
        step
        for state in ("wrong", "advice")
        for finding in findings
        if finding.state == state
        for step in (finding.remedy, *finding.further)
    ]
    return DoctorRecord(tuple(findings), tuple(dict.fromkeys(filter(None, steps))))


def _with_memory_named(brain: Brain, finding: DoctorFinding) -> DoctorFinding:
    remedy, *further = (with_memory_named(brain, step) for step in (finding.remedy, *finding.further))
    return finding._replace(remedy=remedy, further=tuple(further))


def _run_checks(brain: Brain, checks: "dict[str, Check]") -> list[DoctorFinding]:
    """Run checks and turn their errors into findings."""
    findings: list[DoctorFinding] = []
    for name, check in checks.items():
        try:
            findings.extend(check(brain))
        except errors.DamagedDatabase as error:
            findings.append(DoctorFinding(DAMAGE, "wrong", name, details=(str(error.facts["problem"]),)))
        except errors.QuaidError as error:
            findings.append(DoctorFinding(name, "wrong", str(error)))
        except OSError as error:
            problem = f"{error.filename or name}: {error.strerror or error}"
            findings.append(DoctorFinding(name, "wrong", problem))
    return findings


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
        detail = f"{path} cannot be used: {problem}; it is ignored by these checks"
        exists = os.path.exists(path)
        step = _edit_step(path, problem) if exists else "name another file with --config or QUAID_CONFIG"
        yield DoctorFinding("config", "wrong", detail, step)
    for warning in settings.warnings:
        yield DoctorFinding("config", "advice", warning, _edit_step(settings.config_path, warning))
    if settings.config_path and not settings.warnings:
        yield DoctorFinding("config", "fine", settings.config_path)


def _edit_step(path: str, problem: str) -> str:
    """Return the instruction to edit a file, with a line number if the problem contains a line number."""
    _, _, place = problem.partition("line ")
    number = place[: len(place) - len(place.lstrip("0123456789"))]
    return f"edit {f'line {number} of ' if number else ''}{path}"


def _pages(brain: Brain) -> Iterator[DoctorFinding]:
    memory = status(brain)
    model = memory.model
    if not memory.pages:
        yield DoctorFinding("pages", "advice", "none yet", "quaid import FOLDER")
    else:
        counts = f"{count_noun(memory.pages, 'page')}, {count_noun(memory.chunks, 'chunk')}"
        yield DoctorFinding("pages", "fine", counts)
    if not memory.writable:
        remedy = f"chmod u+rw {memory.path}"
        yield DoctorFinding("writing", "wrong", f"{memory.path} cannot be written", remedy)
    if model.problem:
        state: FindingState = "advice" if model.problem == "semantic search is off" else "wrong"
        remedy = f"quaid model check {model.name}"
        yield DoctorFinding("model", state, f"{model.name}: {model.problem}", remedy)
        return
    missing = model.missing + memory.pages_uncut
    if missing and not memory.filling:
        number = count_noun(missing, "chunk or page has", "chunks or pages have")
        yield DoctorFinding("vectors", "advice", f"{number} none yet", "quaid embed")
    else:
        state = "fine" if model.vectors else "missing"
        yield DoctorFinding("vectors", state, f"{model.vectors:,} of {model.name}")
    if memory.trouble:
        yield DoctorFinding("embedding", "wrong", memory.trouble.problem, "quaid embed")


def _model(brain: Brain) -> Iterator[DoctorFinding]:
    if not brain.model_name:
        return
    test = model_check(brain)
    if test.problem:
        yield DoctorFinding("self-test", "wrong", f"{test.name}: {test.problem}", "quaid model list")
    else:
        yield DoctorFinding("self-test", "fine", f"{test.name} returns the expected vectors")


def _folders(brain: Brain) -> Iterator[DoctorFinding]:
    attached = [collection for collection in collection_list(brain).value if collection.root]
    problems = Collections(brain.db).file_problems()
    for folder in attached:
        name, command = f"folder {folder.name}", "info"
        details: tuple[str, ...] = ()
        if folder.halted:
            problem, command = folder.halted, "sync"
        elif not os.path.isdir(folder.root or ""):
            problem = f"{folder.root} is missing"
        elif folder.ignore_problem:
            problem, command = folder.ignore_problem, "ignore list"
        elif files := [file for file in problems.get(folder.name, ()) if not file.taken_in]:
            details = tuple(f"{file.path}: {file.problem}" for file in files)
            problem = f"{count_noun(len(files), 'file')} not indexed, first {details[0]}"
        else:
            waiting = f"; {folder.quarantined} in quarantine" if folder.quarantined else ""
            yield DoctorFinding(name, "fine", f"{count_noun(folder.pages, 'page')} of {folder.root}{waiting}")
            if copies := [file for file in problems.get(folder.name, ()) if copied_path(file.path)]:
                about = (
                    f"{count_noun(len(copies), 'conflict copy', 'conflict copies')}, first {copies[0].path}"
                )
                yield DoctorFinding(name, "advice", about, f"quaid collection conflicts {folder.name}")
            continue
        remedy = f"quaid collection {command} {folder.name}"
        yield DoctorFinding(name, "wrong", problem, remedy, details=details)
    if not any(folder.kind == "notebook" for folder in attached):
        yield DoctorFinding("notebook", "advice", "there is none yet", "quaid notebook init")


def _expiry(brain: Brain) -> Iterator[DoctorFinding]:
    rules = ", ".join(f"{rule.setting} {rule.period}" for rule in expiry.retention_rules(brain.db))
    hidden = open_counts(brain.db)["expired"]
    if hidden:
        detail = f"{count_noun(hidden, 'expired thing')}, erased after {brain.option(expiry.GRACE_SETTING)}"
        yield DoctorFinding(
            "expiry", "fine", f"{detail}; `quaid expired` lists them{'; ' * bool(rules)}{rules}"
        )
    elif rules:
        yield DoctorFinding("expiry", "fine", rules)


def _spaces(brain: Brain) -> Iterator[DoctorFinding]:
    for space in Spaces(brain.db).all():
        name = f"space {space.collection}"
        problems = space.outbox_problems(brain.db)
        waiting = space.count_waiting(brain.db)
        if space.problem:
            yield DoctorFinding(name, "wrong", space.problem, f"quaid sync {space.collection}")
        elif problems:
            details = tuple(f"{slug}: {problem}" for slug, _, problem in problems)
            problem = f"{count_noun(len(problems), 'page')} not synced, first {details[0]}"
            yield DoctorFinding(name, "wrong", problem, f"quaid sync {space.collection}", details=details)
        else:
            left = f", {count_noun(waiting, 'page')} to push" if waiting else ""
            when = f"synced at {space.synced_at}" if space.synced_at else "not synced yet"
            yield DoctorFinding(name, "fine", f"{space.name} on {space.hub_url}, {when}{left}")


def _permissions(brain: Brain) -> Iterator[DoctorFinding]:
    if os.name != "posix":
        return
    path = os.path.realpath(brain.settings.db_path)
    wrong = []
    # The WAL file is not checked, because it has the database's mode and is removed when this command ends.
    token = owner_token_path(brain.settings)
    folder, name = os.path.split(path)
    secrets = os.path.join(folder, f"credentials-of-{name}.json")
    for file, mode in ((path, "600"), (brain.settings.home, "700"), (token, "600"), (secrets, "600")):
        if os.path.exists(file) and os.stat(file).st_mode & 0o077:
            wrong.append(file)
            yield DoctorFinding("permissions", "wrong", f"others can access {file}", f"chmod {mode} {file}")
    if not wrong:
        yield DoctorFinding("permissions", "fine", f"only you can read {os.path.dirname(path)}")


def _free_space(brain: Brain) -> Iterator[DoctorFinding]:
    path = brain.settings.db_path
    free = disk_usage(os.path.dirname(path) or ".").free
    needed = max(MIN_FREE_BYTES, 2 * os.path.getsize(path))
    if free >= needed:
        yield DoctorFinding("disk", "fine", f"{free / 1e9:.1f} GB free")
    else:
        detail = f"{free / 1e9:.1f} GB free; {needed / 1e9:.1f} GB are needed"
        yield DoctorFinding("disk", "wrong", detail, "quaid compact")


def _tokens(brain: Brain) -> Iterator[DoctorFinding]:
    tokens = token_list(brain)
    used = os.path.exists(tokens.owner_file)
    owner = "the owner's token exists" if used else "not used yet"
    others = f"; other tokens: {', '.join(token.name for token in tokens.tokens)}" if tokens.tokens else ""
    yield DoctorFinding("web", "fine" if used or others else "missing", owner + others)


def _clients(brain: Brain) -> Iterator[DoctorFinding]:
    installed = [client for client in connect(brain).clients if client.state != "not installed"]
    for client in installed:
        summary, remedy = f"{client.title}: {client.state}", f"quaid connect {client.client}"
        if client.state == "unreadable":
            copy = newest_backup(client.path)
            before = f"; the backup before Quaid last changed it is {copy}" if copy else ""
            broken = f"{client.title} cannot read {client.path}: {client.detail}{before}"
            yield DoctorFinding("client", "wrong", broken, _edit_step(client.path, client.detail), (remedy,))
        elif client.state == "connected" and not client.detail:
            yield DoctorFinding("client", "fine", summary)
        elif client.state == "connected":
            yield DoctorFinding("client", "wrong", f"{summary}, but {client.detail}", remedy)
        else:
            yield DoctorFinding("client", "advice", f"{summary} {client.detail}".rstrip(), remedy)
    if not installed:
        yield DoctorFinding("client", "advice", "no supported client is installed", "quaid connect")


def _knowledge_base(brain: Brain) -> Iterator[DoctorFinding]:
    if not os.path.isdir(os.path.join(brain.settings.kb_root, ".git")):
        yield DoctorFinding("knowledge base", "advice", "there is none yet", "quaid kb init")
        return
    store = kb.kb_status(brain)
    nodes = f"{count_noun(store.nodes, 'node')} in {store.root}"
    if store.nudge:
        yield DoctorFinding("knowledge base", "wrong", f"{nodes}: {store.nudge}", "quaid kb doctor")
    else:
        yield DoctorFinding("knowledge base", "fine", nodes)


def _skills(brain: Brain) -> Iterator[DoctorFinding]:
    skills = skills_doctor(brain)
    if skills.problems:
        first = skills.problems[0]
        yield DoctorFinding("skills", "wrong", f"{first.path}: {first.problem}", "quaid skills doctor")
    else:
        yield DoctorFinding("skills", "fine", f"{len(skills.skills)} in effect")


def _daemon(brain: Brain) -> Iterator[DoctorFinding]:
    daemon = daemon_status(brain)
    if daemon.state == "stopped":
        yield DoctorFinding("service", "wrong", f"stopped: {daemon.path}", "quaid daemon start")
    else:
        yield DoctorFinding("service", "fine" if daemon.state == "running" else "missing", daemon.state)


Check = Callable[[Brain], Iterator[DoctorFinding]]
TOOL_TRIALS: dict[str, dict[str, Any]] = {
    "memory_query": {"query": "quaid doctor"},
    "memory_get": {"slug": ["doctor/trial"]},
    "remember": {"content": "The doctor has tried this tool"},
    "memory_put": {"slug": "doctor/trial", "content": "# Trial"},
    "memory_ingest": {"content": "A trial.", "type": "doc", "source": "doctor/trial"},
    "memory_facts": {"subject": "doctor/trial"},
    "memory_briefing": {},
    "memory_correct": {"about": "doctor/trial", "was": "a", "now": "b"},
    "memory_forget": {"slug": "doctor/trial", "reason": "a trial"},
    "memory_status": {},
}
"""Arguments with which the tools listed by default are tried."""

_HARMLESS = (errors.NotFound, errors.PageNotFound, errors.NoNotebook, errors.Busy)
"""Errors that do not mean that a tool is faulty.

There is no page doctor/trial, the first note creates a missing notebook, and another process may be writing.
"""


def _tools(brain: Brain) -> Iterator[DoctorFinding]:
    """Try each tool that agents see by default, in a transaction that is rolled back."""
    failures = [f"{name}: {problem}" for name in TOOL_TRIALS if (problem := _tool_problem(brain, name))]
    if failures:
        detail = f"{count_noun(len(failures), 'tool')} of agents would fail: {failures[0]}"
        yield DoctorFinding("tools", "wrong", detail, "quaid status", details=tuple(failures))
    else:
        yield DoctorFinding("tools", "fine", f"{len(TOOL_TRIALS)} tools of agents work")


def _tool_problem(brain: Brain, name: str) -> str:
    operation = dispatch.find_tool(name)
    arguments = dispatch.check_arguments(operation, TOOL_TRIALS[name], "owner")
    marks, brain.leaves_marks = brain.leaves_marks, False
    try:
        if operation.scope == "read" and not brain.db.writable:
            operation.function(brain, **arguments)
        else:
            brain.db.rehearse(lambda _: operation.function(brain, **arguments))
    except _HARMLESS:
        pass
    except errors.QuaidError as error:
        return str(error)
    finally:
        brain.leaves_marks = marks
    return ""


_FIRST_CHECKS: dict[str, Check] = {"program": _program, "config": _config, "memory": check_memory}
_MEMORY_CHECKS: dict[str, Check] = {
    "pages": _pages,
    "folders": _folders,
    "spaces": _spaces,
    "expiry": _expiry,
    "permissions": _permissions,
    "disk": _free_space,
    "sources": check_sources,
    "backup": check_backups,
    "web": _tokens,
}
_SLOW_CHECKS: dict[str, Check] = {"rows": check_rows, "self-test": _model, "tools": _tools}
_OTHER_CHECKS: dict[str, Check] = {
    "client": _clients,
    "knowledge base": _knowledge_base,
    "skills": _skills,
    "service": _daemon,
}

"""The whole set-up at one look: what is well, what is not, and what to type next.

Asks the operations that know (status, validate, model check, connect, skills doctor, kb status, daemon status) and
never fails because one of them does. Changes nothing, and calls nobody over the network.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import quaid
from quaid.brain import Brain, sqlite_version
from quaid.errors import DamagedDatabase, QuaidError
from quaid.model.plain_text import count_noun
from quaid.ops import mending
from quaid.ops.doctor_memory import DAMAGE, Finding, State, backups, if_damaged, memory, rows, sources
from quaid.ops.register import Arg, op
from quaid.storage import collections

LEAST_ROOM = 200 * 1024 * 1024


class DoctorRecord(NamedTuple):
    checks: tuple[Finding, ...]
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
    before = [each for name, check in _BEFORE for each in _checked(brain, name, check)]
    inside: list[Finding] = []
    if all(each.state != "wrong" for each in before if each.name == "memory"):
        for name, check in (*_OF_THE_MEMORY, *(() if quick else _SLOW)):
            inside += _checked(brain, name, check)
        inside = if_damaged(brain, inside)
    around = [each for name, check in _AROUND for each in _checked(brain, name, check)]
    found = (*before, *inside, *around)
    if not mending.is_found(brain):
        found = tuple(_named(brain, each) for each in found)
    steps = [
        (each.remedy, *each.further) for state in ("wrong", "advice") for each in found if each.state == state
    ]
    return DoctorRecord(found, tuple(dict.fromkeys(step for each in steps for step in each if step)))


def _named(brain: Brain, found: Finding) -> Finding:
    remedy, *further = (mending.named(brain, step) for step in (found.remedy, *found.further))
    return found._replace(remedy=remedy, further=tuple(further))


def _checked(brain: Brain, name: str, check: Callable[[Brain], Iterator[Finding]]) -> Iterator[Finding]:
    """A check whose own failure is a finding like any other."""
    try:
        yield from check(brain)
    except DamagedDatabase as error:
        yield Finding(DAMAGE, "wrong", name, details=(str(error.facts["problem"]),))
    except QuaidError as error:
        yield Finding(name, "wrong", str(error))
    except OSError as error:
        yield Finding(name, "wrong", f"{error.filename or name}: {error.strerror or error}")


def _program(_: Brain) -> Iterator[Finding]:
    from quaid.storage.sqlite.connection import is_safe_sqlite

    python = sys.version.split()[0]
    yield Finding("program", "fine", f"quaid {quaid.__version__}, Python {python}")
    if is_safe_sqlite(sqlite_version()):
        yield Finding("sqlite", "fine", f"SQLite {sqlite_version()}")
    else:
        remedy = "pip install --upgrade apsw"
        yield Finding("sqlite", "wrong", f"SQLite {sqlite_version()} can lose committed writes", remedy)


def _config(brain: Brain) -> Iterator[Finding]:
    settings = brain.settings
    path, problem = settings.unread
    if path:
        told = f"{path} cannot be used: {problem}; these checks go on without it"
        there = os.path.exists(path)
        step = _mend(path, problem) if there else "name another file with --config or QUAID_CONFIG"
        yield Finding("config", "wrong", told, step)
    for each in settings.warnings:
        yield Finding("config", "advice", each, _mend(settings.config_path, each))
    if settings.config_path and not settings.warnings:
        yield Finding("config", "fine", settings.config_path)


def _mend(path: str, problem: str) -> str:
    """The step of a person with an editor; the line, if the problem names one."""
    _, _, place = problem.partition("line ")
    number = place[: len(place) - len(place.lstrip("0123456789"))]
    return f"mend {f'line {number} of ' if number else ''}{path} in an editor"


def _pages(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.status import status

    found = status(brain)
    pages = f"{count_noun(found.pages, 'page')}, {count_noun(found.chunks, 'chunk')}"
    if not found.pages:
        yield Finding("pages", "advice", "none yet", "quaid import FOLDER")
    else:
        yield Finding("pages", "fine", pages)
    if not found.writable:
        yield Finding("writing", "wrong", f"{found.path} cannot be written", f"chmod u+rw {found.path}")
    if found.model.problem:
        off = found.model.problem == "semantic search is off"
        told = f"{found.model.name}: {found.model.problem}"
        yield Finding("model", "advice" if off else "wrong", told, f"quaid model check {found.model.name}")
        return
    missing = found.model.missing + found.pages_uncut
    if missing and not found.filling:
        told = count_noun(missing, "chunk or page has", "chunks or pages have")
        yield Finding("vectors", "advice", f"{told} none yet", "quaid embed")
    else:
        state: State = "fine" if found.model.vectors else "missing"
        yield Finding("vectors", state, f"{found.model.vectors:,} of {found.model.name}")
    if found.trouble:
        yield Finding("embedding", "wrong", found.trouble.problem, "quaid embed")


def _model(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.models import model_check

    if not brain.model_name:
        return
    found = model_check(brain)
    if found.problem:
        yield Finding("self-test", "wrong", f"{found.name}: {found.problem}", "quaid model list")
    else:
        yield Finding("self-test", "fine", f"{found.name} gives the vectors that it should")


def _folders(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.collections import collection_list

    attached = [each for each in collection_list(brain).collections if each.root]
    failed = collections.files_not_indexed(brain.db)
    for each in attached:
        if each.halted:
            remedy = f"quaid collection sync {each.name}"
            yield Finding(f"folder {each.name}", "wrong", each.halted, remedy)
        elif not os.path.isdir(each.root or ""):
            remedy = f"quaid collection info {each.name}"
            yield Finding(f"folder {each.name}", "wrong", f"{each.root} is not there", remedy)
        elif each.ignore_problem:
            remedy = f"quaid collection ignore list {each.name}"
            yield Finding(f"folder {each.name}", "wrong", each.ignore_problem, remedy)
        elif each.name in failed:
            files = failed[each.name]
            told = f"{count_noun(len(files), 'file')} not taken in, first {files[0].path}: {files[0].problem}"
            details = tuple(f"{file.path}: {file.problem}" for file in files)
            remedy = f"quaid collection info {each.name}"
            yield Finding(f"folder {each.name}", "wrong", told, remedy, details=details)
        else:
            told = f"{count_noun(each.pages, 'page')} of {each.root}"
            waiting = f"; {each.quarantined} in quarantine" if each.quarantined else ""
            yield Finding(f"folder {each.name}", "fine", told + waiting)
    if not any(each.kind == "notebook" for each in attached):
        yield Finding("notebook", "advice", "there is none yet", "quaid notebook init")


def _permissions(brain: Brain) -> Iterator[Finding]:
    if os.name != "posix":
        return
    path = os.path.realpath(brain.settings.db_path)
    folder = os.path.dirname(path)
    wrong = []
    # Not the log beside it: it has the mode of the memory, and is gone when this command has ended.
    for each, mode in ((path, "600"), (brain.settings.home, "700"), (_token(brain), "600")):
        if os.path.exists(each) and os.stat(each).st_mode & 0o077:
            wrong.append((each, mode))
    for each, mode in wrong:
        yield Finding("permissions", "wrong", f"others can get at {each}", f"chmod {mode} {each}")
    if not wrong:
        yield Finding("permissions", "fine", f"only you can read {folder}")


def _token(brain: Brain) -> str:
    from quaid.ops.tokens import owner_file

    return owner_file(brain.settings)


def _room(brain: Brain) -> Iterator[Finding]:
    from shutil import disk_usage

    path = brain.settings.db_path
    free, wanted = disk_usage(os.path.dirname(path) or ".").free, max(LEAST_ROOM, 2 * os.path.getsize(path))
    state: State = "fine" if free >= wanted else "wrong"
    told = f"{free / 1e9:.1f} GB free" + ("" if state == "fine" else f"; {wanted / 1e9:.1f} GB are wanted")
    yield Finding("disk", state, told, "" if state == "fine" else "quaid compact")


def _tokens(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.tokens import token_list

    found = token_list(brain)
    used = os.path.exists(found.owner_file)
    made = "the owner's token is made" if used else "not used yet"
    given = f"; given away: {', '.join(each.name for each in found.tokens)}" if found.tokens else ""
    yield Finding("web", "fine" if used or given else "missing", made + given)


def _clients(brain: Brain) -> Iterator[Finding]:
    from quaid.clients.config_files import newest_backup
    from quaid.ops.clients import connect

    found = [each for each in connect(brain).clients if each.state != "not installed"]
    for each in found:
        told, remedy = f"{each.title}: {each.state}", f"quaid connect {each.client}"
        if each.state == "unreadable":
            kept = newest_backup(each.path)
            before = f"; before Quaid last changed it, it was {kept}" if kept else ""
            broken = f"{each.title} cannot read {each.path}: {each.detail}{before}"
            yield Finding("client", "wrong", broken, _mend(each.path, each.detail), (remedy,))
        elif each.state == "connected" and not each.detail:
            yield Finding("client", "fine", told)
        elif each.state == "connected":
            yield Finding("client", "wrong", f"{told}, but {each.detail}", remedy)
        else:
            yield Finding("client", "advice", f"{told} {each.detail}".rstrip(), remedy)
    if not found:
        yield Finding("client", "advice", "no program that uses it was found here", "quaid connect")


def _knowledge_base(brain: Brain) -> Iterator[Finding]:
    from quaid.ops import kb

    if not os.path.isdir(os.path.join(kb.root(brain), ".git")):
        yield Finding("knowledge base", "advice", "there is none yet", "ai-kb init")
        return
    found = kb.kb_status(brain)
    told = f"{count_noun(found.nodes, 'node')} in {found.root}"
    if found.nudge:
        yield Finding("knowledge base", "wrong", f"{told}: {found.nudge}", "ai-kb doctor")
    else:
        yield Finding("knowledge base", "fine", told)


def _skills(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.skills import skills_doctor

    found = skills_doctor(brain)
    if found.problems:
        first = found.problems[0]
        yield Finding("skills", "wrong", f"{first.path}: {first.problem}", "quaid skills doctor")
    else:
        yield Finding("skills", "fine", f"{len(found.skills)} in force")


def _daemon(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.daemon import daemon_status

    found = daemon_status(brain)
    if found.state == "stopped":
        yield Finding("service", "wrong", f"stopped: {found.path}", "quaid daemon start")
    else:
        yield Finding("service", "fine" if found.state == "running" else "missing", found.state)


_BEFORE = (("program", _program), ("config", _config), ("memory", memory))
_OF_THE_MEMORY: tuple[tuple[str, Callable[[Brain], Iterator[Finding]]], ...] = (
    ("pages", _pages),
    ("folders", _folders),
    ("permissions", _permissions),
    ("disk", _room),
    ("sources", sources),
    ("backup", backups),
    ("web", _tokens),
)
_SLOW = (("rows", rows), ("self-test", _model))
_AROUND = (
    ("client", _clients),
    ("knowledge base", _knowledge_base),
    ("skills", _skills),
    ("service", _daemon),
)

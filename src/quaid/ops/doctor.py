"""The whole set-up at one look: what is well, what is not, and what to type next.

Asks the operations that know (status, validate, model check, connect, skills doctor, kb status, daemon status) and
never fails because one of them does. Changes nothing, and calls nobody over the network.
"""

import os
import sys
from collections.abc import Callable, Iterator

import quaid
from quaid.annotations import Annotated, Literal
from quaid.brain import SCHEMA_VERSION, Brain, sqlite_version
from quaid.errors import MissingDatabase, QuaidError
from quaid.ops.register import Arg, op
from quaid.records import NamedTuple

LEAST_ROOM = 200 * 1024 * 1024
DAYS_OF_A_BACKUP = 30
DAY = 86_400

State = Literal["fine", "advice", "wrong"]


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: State
    """advice: it works without, and would be better with."""
    detail: str
    remedy: str = ""
    """What to type."""


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

    Looks at the program, the memory and its rows, the model, folders, notebook, knowledge base, clients, skills,
    service, permissions, room on the disk and the age of backups. Changes nothing and asks nobody else."""
    found = list(_checked(brain, "program", _program))
    memory = list(_checked(brain, "memory", _memory))
    found += memory
    if all(each.state != "wrong" for each in memory):
        for name, check in _OF_THE_MEMORY:
            found += _checked(brain, name, check)
        for name, check in () if quick else _SLOW:
            found += _checked(brain, name, check)
    for name, check in _AROUND:
        found += _checked(brain, name, check)
    steps = [each.remedy for state in ("wrong", "advice") for each in found if each.state == state]
    return DoctorRecord(tuple(found), tuple(dict.fromkeys(filter(None, steps))))


def _checked(brain: Brain, name: str, check: Callable[[Brain], Iterator[Finding]]) -> Iterator[Finding]:
    """A check whose own failure is a finding like any other."""
    try:
        yield from check(brain)
    except QuaidError as error:
        yield Finding(name, "wrong", str(error))
    except OSError as error:
        yield Finding(name, "wrong", f"{error.filename or name}: {error.strerror or error}")


def _program(_: Brain) -> Iterator[Finding]:
    from quaid.store.opening import is_safe

    python = sys.version.split()[0]
    yield Finding("program", "fine", f"quaid {quaid.__version__}, Python {python}")
    if is_safe(sqlite_version()):
        yield Finding("sqlite", "fine", f"SQLite {sqlite_version()}")
    else:
        remedy = "pip install --upgrade apsw"
        yield Finding("sqlite", "wrong", f"SQLite {sqlite_version()} can lose committed writes", remedy)


def _memory(brain: Brain) -> Iterator[Finding]:
    from quaid.store import opening

    path = brain.settings.db_path
    try:
        version = opening.header_of(path).version
    except MissingDatabase:
        yield Finding("memory", "wrong", f"there is none at {path}", "quaid init")
        return
    if version > SCHEMA_VERSION:
        told = f"{path} has schema {version}; this Quaid knows versions up to {SCHEMA_VERSION}"
        yield Finding("memory", "wrong", told, "quaid upgrade")
        return
    if version < SCHEMA_VERSION:
        told = f"{path} has schema {version}; the next command brings it to {SCHEMA_VERSION}, after a backup"
        yield Finding("memory", "wrong", told, "quaid stats")
        return
    yield Finding("memory", "fine", f"{path}, schema {version}")


def _pages(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.status import status

    found = status(brain)
    pages = f"{found.pages:,} pages, {found.chunks:,} chunks"
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
        yield Finding("vectors", "advice", f"{missing:,} chunks or pages have none yet", "quaid embed")
    else:
        yield Finding("vectors", "fine", f"{found.model.vectors:,} of {found.model.name}")
    if found.trouble:
        yield Finding("embedding", "wrong", found.trouble.problem, "quaid embed")


def _rows(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.upkeep import validate

    found = validate(brain)
    if not found.violations:
        yield Finding("rows", "fine", ", ".join(found.checks))
        return
    first = found.violations[0]
    told = f"{len(found.violations)} problems, first {first.check}: {first.where}: {first.problem}"
    yield Finding("rows", "wrong", told, "quaid validate")


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
        else:
            told = f"{each.pages:,} pages of {each.root}"
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
    for each, mode in (
        (path, "600"),
        (path + "-wal", "600"),
        (brain.settings.home, "700"),
        (_token(brain), "600"),
    ):
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


def _backups(brain: Brain) -> Iterator[Finding]:
    from quaid.core import dates
    from quaid.store import copies

    path, home = brain.settings.db_path, brain.settings.home
    found = copies.newest(path, (os.path.dirname(path), home, os.path.join(home, "backups")))
    name = os.path.join(home, f"backup-{brain.now()[:10]}.db")
    if found is None:
        told = "none beside the memory; this says nothing of copies elsewhere"
        yield Finding("backup", "advice", told, f"quaid backup {name}")
        return
    made = dates.timestamp(found[1])
    old = made < brain.now(-DAYS_OF_A_BACKUP * DAY)
    remedy = f"quaid backup {name}" if old else ""
    yield Finding("backup", "advice" if old else "fine", f"{made[:10]}, {found[0]}", remedy)


def _tokens(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.tokens import token_list

    found = token_list(brain)
    made = "the owner's token is made" if os.path.exists(found.owner_file) else "not used yet"
    given = f"; given away: {', '.join(each.name for each in found.tokens)}" if found.tokens else ""
    yield Finding("web", "fine", made + given)


def _clients(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.clients import connect

    found = [each for each in connect(brain).clients if each.state != "not installed"]
    for each in found:
        told, remedy = f"{each.title}: {each.state}", f"quaid connect {each.client}"
        if each.state == "unreadable":
            yield Finding("client", "wrong", f"{told}: {each.detail}")
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
    told = f"{found.nodes:,} nodes in {found.root}"
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
        yield Finding("service", "fine", found.state)


_OF_THE_MEMORY: tuple[tuple[str, Callable[[Brain], Iterator[Finding]]], ...] = (
    ("pages", _pages),
    ("folders", _folders),
    ("permissions", _permissions),
    ("disk", _room),
    ("backup", _backups),
    ("web", _tokens),
)
_SLOW = (("rows", _rows), ("self-test", _model))
_AROUND = (
    ("client", _clients),
    ("knowledge base", _knowledge_base),
    ("skills", _skills),
    ("service", _daemon),
)

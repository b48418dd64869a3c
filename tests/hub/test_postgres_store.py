"""What only the PostgreSQL database of a hub does: row-level security, errors of the server."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.hub.store_hub import join

from quaid import errors
from quaid.spaces.protocol import Push

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no tests on PostgreSQL")

if TYPE_CHECKING:
    from quaid.hub.postgres_store import PostgresHubStore

TABLES = ("members", "revisions", "heads", "proposals", "acknowledgements", "vectors", "audit", "invitations")


def pushed(uuid: str) -> Push:
    return Push(uuid, 0, hashlib.sha256(b"text").hexdigest(), b"text", uuid)


@pytest.fixture
def store(postgres_url: str) -> "Iterator[PostgresHubStore]":
    from quaid.hub.postgres_store import PostgresHubStore

    store = PostgresHubStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def spaces(store: "PostgresHubStore") -> tuple[str, str]:
    """Two spaces with a row in every table."""
    ids = []
    for name in ("mira", "olga"):
        hub = join(store, name, "laptop")
        space = hub.create_space(name, "team").id
        reader = join(store, f"{name}'s friend", "phone")
        hub.set_member(space, f"{name}'s friend", "propose")
        store.put(hub.caller, space, [pushed("a"), pushed("b")])
        store.put(reader.caller, space, [pushed("c")])
        hub.put_vectors(space, "m", [(b"h", b"v")])
        hub.acknowledge(space, 2)
        hub.invite(space, "read")
        ids.append(space)
    return ids[0], ids[1]


def test_a_query_without_a_condition_shows_only_the_space_of_the_request(
    store: "PostgresHubStore", spaces: tuple[str, str]
) -> None:
    mine, other = spaces
    for table in TABLES:
        with store._read() as tx:
            assert {row[0] for row in tx.rows(f"SELECT space FROM {table}")} >= {mine, other}
            tx.enter(mine)
            assert {row[0] for row in tx.rows(f"SELECT space FROM {table}")} == {mine}
            tx.enter("")
            assert tx.rows(f"SELECT space FROM {table}") == []
    with store._read() as tx:
        tx.enter(mine)
        assert tx.rows("SELECT id FROM spaces") == [(mine,)]


def test_a_change_without_a_condition_reaches_only_the_space_of_the_request(
    store: "PostgresHubStore", spaces: tuple[str, str]
) -> None:
    mine, other = spaces
    with store._write() as tx:
        tx.enter(mine)
        tx.many("UPDATE revisions SET bundle = ?", [(b"forged",)])
        tx.many("DELETE FROM vectors", [()])
        tx.many("UPDATE spaces SET last_seq = ?", [(99,)])
    with store._read() as tx:
        rows = tx.rows("SELECT bundle FROM revisions WHERE space = ?", (other,))
        assert {bytes(row[0]) for row in rows} == {b"text"}
        assert tx.rows("SELECT last_seq FROM spaces WHERE id = ?", (other,)) == [(2,)]
        assert tx.rows("SELECT space FROM vectors") == [(other,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO members (space, person, agent, granted) VALUES ('{other}', 'mira', '', 'owner')",
        "UPDATE members SET space = '{other}'",
        "UPDATE audit SET person = 'eve'",
        "DELETE FROM audit",
        "SELECT token_hash FROM devices",
        "UPDATE devices SET limit_right = 'owner'",
        "UPDATE people SET is_admin = 1",
        "SELECT * FROM hub",
        "DELETE FROM spaces",
        "ALTER TABLE heads DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE mine (id BIGINT)",
    ],
)
def test_a_request_cannot_go_beyond_its_space(
    store: "PostgresHubStore", spaces: tuple[str, str], statement: str
) -> None:
    with store._write() as tx:
        tx.enter(spaces[0])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tx.many(statement.format(other=spaces[1]), [()])


def test_the_role_of_requests_ends_with_the_transaction(
    store: "PostgresHubStore", spaces: tuple[str, str]
) -> None:
    with store._read() as tx:
        before = tx.rows("SELECT current_user")
        tx.enter(spaces[0])
        assert tx.rows("SELECT current_user") == [("quaid_hub_request",)]
    with store._read() as tx:
        assert tx.rows("SELECT current_user, current_setting('quaid.spaces', true)") == [(*before[0], "")]


def test_every_table_with_a_space_has_row_security(store: "PostgresHubStore") -> None:
    with store._read() as tx:
        rows = tx.rows(
            "SELECT c.relname, c.relrowsecurity FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind = 'r' AND a.attname = 'space' AND c.relnamespace = 'public'::regnamespace"
        )
        policies = {
            row[0] for row in tx.rows("SELECT tablename FROM pg_policies WHERE policyname = 'of_request'")
        }
    assert dict(rows) == dict.fromkeys(TABLES, True)
    assert policies == {*TABLES, "spaces"}


def test_row_security_is_made_again_after_a_restore_without_the_role(
    store: "PostgresHubStore", spaces: tuple[str, str], postgres_url: str
) -> None:
    from quaid.hub.postgres_store import ROLE, PostgresHubStore

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP POLICY of_request ON heads")
        connection.execute(f"DROP OWNED BY {ROLE}")
    again = PostgresHubStore(postgres_url)
    with again._read() as tx:
        tx.enter(spaces[0])
        assert {row[0] for row in tx.rows("SELECT space FROM heads")} == {spaces[0]}
    again.close()


INDEXES = {
    "heads WHERE space = ? AND seq > 1995 AND seq <= 3000": "heads_by_seq",
    "heads WHERE space = ? AND uuid IN ('page-7')": "heads_pkey",
    "heads WHERE space = ? AND slug IN ('page-7')": "heads_by_slug",
    "revisions WHERE space = ? AND seq = 7": "revisions_by_seq",
    "revisions WHERE space = ? AND seq IN (7, 8, 9) AND seq BETWEEN 7 AND 9": "revisions_by_seq",
    "revisions WHERE space = ? AND uuid = 'page-7' AND revision = 1": "revisions_pkey",
}


def test_a_large_space_is_read_by_the_right_index(store: "PostgresHubStore") -> None:
    """Row-level security must not make the planner expect so few rows that any index of the space is as good."""
    hub = join(store, "mira", "laptop")
    space = hub.create_space("notes", "team").id
    for start in (0, 1000):
        store.put(hub.caller, space, [pushed(f"page-{number}") for number in range(start, start + 1000)])
    with store._read() as tx:
        tx.enter(space)
        plans = {
            condition: "\n".join(row[0] for row in tx.rows(f"EXPLAIN SELECT seq FROM {condition}", (space,)))
            for condition in INDEXES
        }
    assert {
        condition: plan for condition, plan in plans.items() if f" {INDEXES[condition]} " not in plan
    } == {}


def test_a_server_that_cannot_be_reached_is_named_without_the_password() -> None:
    from quaid.hub.postgres_store import PostgresHubStore

    with pytest.raises(errors.HubDatabaseUnavailable) as raised:
        PostgresHubStore("postgresql://quaid:secret@127.0.0.1:1/hub")
    assert "127.0.0.1/hub" in str(raised.value)
    assert "secret" not in str(raised.value)
    with pytest.raises(errors.HubDatabaseUnavailable):
        PostgresHubStore("postgresql://[")


def test_a_lost_connection_is_replaced(store: "PostgresHubStore", postgres_url: str) -> None:
    hub = join(store, "mira", "laptop")
    space = hub.create_space("notes", "team").id
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        connection.execute(others + " AND datname = current_database()")
    for _ in range(3):  # a connection of the pool is replaced after its first error
        try:
            results = store.put(hub.caller, space, [pushed("a")])
        except errors.HubDatabaseUnavailable:
            continue
        break
    assert results[0].status == "stored"


def test_a_user_who_cannot_create_the_role_is_told_what_to_run(postgres_url: str) -> None:
    from quaid.hub.postgres_store import ROLE, PostgresHubStore

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
            connection.execute(f"DROP OWNED BY {ROLE}")
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}")
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        connection.execute("GRANT ALL ON SCHEMA public TO plain")
        plain = psycopg.conninfo.make_conninfo(postgres_url, user="plain", password="plain")
        with pytest.raises(errors.HubDatabaseUnavailable, match="CREATE ROLE"):
            PostgresHubStore(plain)
        connection.execute(f"CREATE ROLE {ROLE} NOLOGIN")
        connection.execute(f"GRANT {ROLE} TO plain")
        store = PostgresHubStore(plain)  # which is no superuser
        hub = join(store, "mira", "laptop")
        space = hub.create_space("notes", "team").id
        assert [result.status for result in store.put(hub.caller, space, [pushed("a")])] == ["stored"]
        store.close()
        connection.execute("DROP OWNED BY plain")
        connection.execute("DROP ROLE plain")

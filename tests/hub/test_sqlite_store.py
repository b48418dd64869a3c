"""What only the SQLite database of a hub does: files, backups, erased bytes."""

import hashlib
from pathlib import Path

import pytest
from tests.hub.store_hub import join

from quaid import errors
from quaid.hub.store import OPERATOR, SqliteHubStore
from quaid.spaces.protocol import Push
from quaid.storage.sqlite.connection import connect


def pushed(text: bytes, base: int = 0) -> Push:
    return Push("a", base, hashlib.sha256(text).hexdigest(), text, "a")


def test_the_file_is_private_and_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "hub.db"
    store = SqliteHubStore(str(path))
    owner = join(store, "olga", "laptop")
    space = owner.create_space("team", "team")
    store.close()
    assert path.stat().st_mode & 0o777 == 0o600
    store = SqliteHubStore(str(path))
    assert [found.id for found in store.spaces(OPERATOR)] == [space.id]
    store.close()


def test_other_databases_are_refused_and_not_changed(tmp_path: Path) -> None:
    memory, text = tmp_path / "memory.db", tmp_path / "text.db"
    memory.touch()
    connection = connect(str(memory), writable=True)
    connection.execute("CREATE TABLE pages (id)")
    connection.close()
    text.write_text("not a database, but a text that is long enough to be taken for one" * 20)
    for path in (memory, text):
        before = path.read_bytes()
        with pytest.raises(errors.NotADatabase):
            SqliteHubStore(str(path))
        assert path.read_bytes() == before


def test_a_backup_is_a_hub_with_a_smaller_last_number(tmp_path: Path) -> None:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    owner = join(store, "olga", "laptop")
    space = owner.create_space("team", "team").id
    owner.store.put(owner.caller, space, [pushed(b"one")])
    store.backup(str(tmp_path / "backup.db"))
    owner.store.put(owner.caller, space, [pushed(b"two", 1)])
    cursor = owner.changes(space, 0).last_seq
    store.close()
    restored = SqliteHubStore(str(tmp_path / "backup.db"))
    owner.store = restored
    assert restored.hub_id == store.hub_id
    page = owner.changes(space, cursor)
    assert (page.last_seq, page.changes) == (1, ())
    assert page.last_seq < cursor
    with pytest.raises(FileExistsError):
        raise_cause(restored, tmp_path / "backup.db")
    restored.close()


def raise_cause(store: SqliteHubStore, path: Path) -> None:
    """Make a backup, and raise the cause of its error."""
    try:
        store.backup(str(path))
    except errors.QuaidError as error:
        raise error.__cause__ or error from None


def test_a_restored_hub_that_went_on_is_noticed(tmp_path: Path) -> None:
    """The number of the device exists on the hub, but the change with this number is another one."""
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    owner = join(store, "olga", "laptop")
    space = owner.create_space("team", "team").id
    owner.store.put(owner.caller, space, [pushed(b"one")])
    store.backup(str(tmp_path / "backup.db"))
    owner.store.put(owner.caller, space, [pushed(b"lost", 1)])
    seen = owner.changes(space, 0).changes[-1]
    store.close()
    owner.store = SqliteHubStore(str(tmp_path / "backup.db"))
    owner.store.put(owner.caller, space, [pushed(b"other", 1)])
    page = owner.changes(space, seen.seq)
    assert page.last_seq == seen.seq
    assert page.after_hash != seen.hash
    [result] = owner.store.put(owner.caller, space, [pushed(b"next", 2)._replace(base_hash=seen.hash)])
    assert result.status == "stale"
    owner.store.close()


def test_a_purge_overwrites_the_erased_bytes(tmp_path: Path) -> None:
    secret = b"a secret that must not stay " * 300
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    owner = join(store, "olga", "laptop")
    space = owner.create_space("team", "team").id
    owner.store.put(owner.caller, space, [pushed(secret)])
    assert b"a secret" in (tmp_path / "hub.db-wal").read_bytes()
    owner.purge(space, "a")
    assert not [path.name for path in tmp_path.iterdir() if b"a secret" in path.read_bytes()]
    store.close()

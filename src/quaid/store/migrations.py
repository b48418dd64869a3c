"""How an older memory is brought to the present schema: backed up, changed in one transaction, checked.

Knows every step since the oldest schema that is still taken. A step is never edited once it has been
released: a change of the schema adds a step. Derived rows are not converted but made again.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw

from quaid.errors import MigrationFailed
from quaid.store import SCHEMA_VERSION, durable
from quaid.store.rebuild import rebuild
from quaid.store.step_5_to_6 import step_5_to_6
from quaid.store.step_6_to_7 import step_6_to_7
from quaid.store.step_7_to_8 import step_7_to_8
from quaid.store.trouble import sqlite_told_plainly, system_told_plainly

if TYPE_CHECKING:
    from quaid.store.db import Database

STEPS: dict[int, Callable[[apsw.Connection, str], None]] = {5: step_5_to_6, 6: step_6_to_7, 7: step_7_to_8}
"""From each version, the step to the next."""


def bring_forward(db: "Database", now: str) -> None:
    """Run the steps that are missing. Whoever waited for another process finds nothing left to do."""
    with db.lock.held(), sqlite_told_plainly(db.path):
        connection = db.connection
        found = connection.pragma("user_version")
        if found == SCHEMA_VERSION:
            return
        backup = _back_up(db, found)
        # Tables are replaced under the rows that point to them; foreign_key_check looks before the commit.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
        try:
            _run(connection, found, now)
        except Exception as failure:
            problem = str(failure) or type(failure).__name__
            raise MigrationFailed(
                path=db.path, found=found, known=SCHEMA_VERSION, problem=problem, backup=backup
            ) from failure
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        db.migrated = (
            f"{db.path} was brought from schema {found} to {SCHEMA_VERSION}: its tables were changed, its index was"
            f" made again, and the result was checked. The memory as it was is kept in {backup}"
        )


def _run(connection: apsw.Connection, found: int, now: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(found, SCHEMA_VERSION):
            STEPS[version](connection, now)
        rebuild(connection)
        _check(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check(connection: apsw.Connection) -> None:
    damage = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if damage != [("ok",)]:
        raise ValueError(f"the result is damaged: {damage[0][0]}")
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        raise ValueError(f"row {row} of {table} points to a row of {parent} that is not there")
    if connection.pragma("user_version") != SCHEMA_VERSION:
        raise ValueError(f"the steps end at schema {connection.pragma('user_version')}")


def _back_up(db: "Database", version: int) -> str:
    """Copy the whole memory beside itself. The copy gets its name, which nobody has yet, when it is whole."""
    name = f"{db.path}.backup-v{version}"
    unfinished = f"{name}-unfinished"
    with system_told_plainly(name):
        durable.discard(unfinished)  # of a process that was killed: we have the lock
        try:
            durable.make_private_file(unfinished)
            db.connection.execute("VACUUM INTO ?", (unfinished,))
            path, number = name, 1
            while os.path.lexists(path):
                number += 1
                path = f"{name}-{number}"
            durable.put_in_place(unfinished, path)
        except BaseException:
            durable.discard(unfinished)
            raise
    return path

"""Schema 7 to schema 8: new tables beside the old ones.

The new shape is schema.sql as long as 8 is the newest version. Whoever makes version 9 keeps a copy of it
beside schema_7.sql.
"""

import apsw

from quaid.store import turn_vectors
from quaid.store.creating import shapes


def step_7_to_8(tx: apsw.Connection, _now: str) -> None:
    """Add what is new; every table of schema 7 stays as it is. Turns are cut, so that they can be embedded."""
    there = {name for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
    for name, sql in shapes().items():
        if name not in there:
            tx.execute(sql)
    turn_vectors.recut(tx)
    tx.execute("UPDATE config SET value = '8' WHERE key = 'version'")
    tx.execute("UPDATE quaid_config SET value = '8' WHERE key = 'schema_version'")
    tx.pragma("user_version", 8)

"""Settings, read once at the door: flag, then environment, then what is on disk, then the default.

Nothing below `brain.py` reads the environment; it gets what it needs as arguments.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

DATABASE_NAME = "memory.db"


class Settings(NamedTuple):
    db_path: str
    home: str  # the folder of everything that is the user's but not in the database
    cwd: str
    environ: Mapping[str, str] = MappingProxyType({})  # where the keys of services are looked up

    def path(self, name: str) -> str:
        """A path as a person typed it, made whole."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(name)))

    @property
    def models_folder(self) -> str:
        """Where copies of models are kept that open fast; can be deleted at any time."""
        return os.path.join(self.home, "models")

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """Folders whose skills shadow the embedded ones; the later wins."""
        return (os.path.join(self.home, "skills"), os.path.join(self.cwd, "skills"))


def read(db: str | None, environ: Mapping[str, str], cwd: str) -> Settings:
    """Find the memory: --db, QUAID_DB, ./memory.db if it exists, ~/.quaid/memory.db."""
    home = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    here = os.path.join(cwd, DATABASE_NAME)
    named = db or environ.get("QUAID_DB")
    if named:
        path = os.path.join(cwd, os.path.expanduser(named))
    elif os.path.exists(here):
        path = here
    else:
        path = os.path.join(home, DATABASE_NAME)
    return Settings(db_path=path, home=home, cwd=cwd, environ=environ)

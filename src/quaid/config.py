"""Settings, read once at the door: flag, then environment, then what is on disk, then the default.

Nothing below `brain.py` reads the environment; it gets what it needs as arguments.
"""

import os
import stat
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, InvalidConfig, InvalidFrontMatter

DATABASE_NAME = "memory.db"
CONFIG_NAME = "config.yaml"
FOLDER_LIST = f"folders-of-{DATABASE_NAME}.json"
"""What store.folder_list leaves where a memory with attached folders is or was."""
LARGEST = 64 * 1024
NOTHING: Mapping[str, Any] = {}


class Settings(NamedTuple):
    db_path: str
    home: str  # the folder of everything that is the user's but not in the database
    cwd: str
    environ: Mapping[str, str] = NOTHING  # where the keys of services are looked up
    config_path: str = ""  # the file that `given` was read from, if there is one
    given: Mapping[str, Any] = NOTHING  # options of that file, by name
    warnings: tuple[str, ...] = ()  # what is odd in that file
    platform: str = sys.platform
    unread: tuple[str, str] = ("", "")
    """A config file that cannot be used, and why; only for who goes on without it."""

    def path(self, name: str) -> str:
        """A path as a person typed it, made whole."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(name)))

    def option(self, name: str) -> Any:
        """An option out of the environment or the config file, else its default."""
        value, _ = self.said(name)
        if value is None:
            from quaid.options import OPTIONS

            return OPTIONS[name].default
        return value

    def said(self, name: str) -> tuple[Any, str]:
        """What the environment or the config file says of an option and which of them does, or (None, "")."""
        variable = "QUAID_" + name.replace(".", "_").upper()
        if self.environ.get(variable):
            from quaid.options import checked

            try:
                return checked(name, self.environ[variable]), variable
            except ValueError as error:
                raise InvalidConfig(path=variable, problem=f"it {error}") from None
        if name in self.given:
            return self.given[name], self.config_path
        return None, ""

    def beside_config(self, name: str) -> str:
        """A path that stands in the config file: it counts from the folder of that file."""
        folder = os.path.dirname(self.config_path) if self.config_path else self.cwd
        return os.path.normpath(os.path.join(folder, os.path.expanduser(name)))

    @property
    def user_home(self) -> str:
        """The home of the person, where other programs keep their settings."""
        return os.path.dirname(self.home)

    @property
    def models_folder(self) -> str:
        """Where copies of models are kept that open fast; can be deleted at any time."""
        chosen, _ = self.said("embedding.models_dir")
        return self.beside_config(chosen) if chosen else os.path.join(self.home, "models")

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """Folders whose skills shadow the embedded ones; the later wins."""
        return (os.path.join(self.home, "skills"), os.path.join(self.cwd, "skills"))


def read(
    db: str | None,
    environ: Mapping[str, str],
    cwd: str,
    config: str | None = None,
    *,
    forgiving: bool = False,
) -> Settings:
    """Find the memory: --db, QUAID_DB, what a named config file says, ./memory.db, ~/.quaid/memory.db.

    The config file is the one named by --config or QUAID_CONFIG, else config.yaml beside the memory. Whoever is
    `forgiving` goes on without one that cannot be used, and is told so in the settings.
    """
    with_file = _with_file_or_without if forgiving else _with_file
    home = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    here = os.path.join(cwd, DATABASE_NAME)
    settings = Settings(db_path="", home=home, cwd=cwd, environ=environ)
    named = config or environ.get("QUAID_CONFIG")
    if named:
        settings = with_file(settings, os.path.join(cwd, os.path.expanduser(named)), must_exist=True)
    chosen = db or environ.get("QUAID_DB")
    if chosen:
        path = os.path.join(cwd, os.path.expanduser(chosen))
    elif "memory.database" in settings.given:
        path = settings.beside_config(str(settings.given["memory.database"]))
    elif os.path.exists(here) or os.path.exists(os.path.join(cwd, FOLDER_LIST)):  # one that was deleted
        path = here
    else:
        path = os.path.join(home, DATABASE_NAME)
    settings = settings._replace(db_path=path)
    if named:
        return settings
    beside = os.path.join(os.path.dirname(path), CONFIG_NAME)
    return _without_memory(with_file(settings, beside, must_exist=False))


def _without_memory(settings: Settings) -> Settings:
    """Settings of the file beside a memory, which cannot say where the memory is: it was found through it."""
    named = str(settings.given.get("memory.database", settings.db_path))
    if os.path.realpath(settings.beside_config(named)) == os.path.realpath(settings.db_path):
        return settings
    given = {key: value for key, value in settings.given.items() if key != "memory.database"}
    told = (
        f"{settings.config_path}: memory.database is not used here, where the file was found beside the memory"
        f" {settings.db_path}; name the file with --config, or the memory with --db"
    )
    return settings._replace(given=given, warnings=(*settings.warnings, told))


def _with_file_or_without(settings: Settings, path: str, *, must_exist: bool) -> Settings:
    try:
        return _with_file(settings, path, must_exist=must_exist)
    except (InvalidConfig, FileTrouble) as error:
        return settings._replace(unread=(path, str(error.facts["problem"])))


def _with_file(settings: Settings, path: str, *, must_exist: bool) -> Settings:
    """Settings with what a config file says, if there is one."""
    try:
        # Opening a named pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISFIFO(os.fstat(handle).st_mode):
                raise FileTrouble(path=path, problem="is a named pipe, not a file; put a file there")
            data = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise InvalidConfig(path=path, problem="there is no such file") from None
        return settings
    except OSError as error:
        raise FileTrouble(path=path, problem=f"cannot be read: {error.strerror}") from None
    from quaid import options
    from quaid.formats import front_matter

    try:
        if len(data) > LARGEST:
            raise InvalidConfig(path=path, problem=f"it is larger than {LARGEST:,} bytes")
        text = data.decode("utf-8-sig")
        tree = front_matter.read_yaml(text) if text.strip() else {}
    except UnicodeDecodeError as error:
        raise InvalidConfig(path=path, problem=f"byte {error.start} is not UTF-8") from None
    except InvalidFrontMatter as error:
        raise InvalidConfig(path=path, problem=str(error.facts["problem"])) from None
    found = options.read(tree)
    return settings._replace(
        config_path=path,
        given=found.values,
        warnings=tuple(f"{path}: {each}" for each in found.warnings),
    )

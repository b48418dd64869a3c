"""Settings from flags, the environment and config.yaml, highest precedence first, and the known options.

Modules below the user interfaces read environment variables from Settings.environ, not from os.environ.
Option names may be written in camelCase or snake_case, with or without the prefix `memory.`.
"""

import os
import re
import stat
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, InvalidArgument, InvalidConfig, InvalidFrontMatter, MissingConfig
from quaid.formats import markdown

DATABASE_NAME = "memory.db"
CONFIG_NAME = "config.yaml"
FOLDER_LIST = f"folders-of-{DATABASE_NAME}.json"
"""The name of the file beside a database that lists its attached folders. A deleted database is rebuilt from it."""
MAX_CONFIG_BYTES = 64 * 1024
EMPTY: Mapping[str, Any] = {}


class Settings(NamedTuple):
    db_path: str
    home: str  # the folder of user data outside the database, ~/.quaid
    cwd: str
    environ: Mapping[str, str] = EMPTY  # environment variables, including API keys
    config_path: str = ""  # the file that `options` was read from, or ""
    options: Mapping[str, Any] = EMPTY  # options of that file, by name
    warnings: tuple[str, ...] = ()  # problems in that file that do not prevent its use
    platform: str = sys.platform
    unread: tuple[str, str] = ("", "")
    """Path and problem of a config file that cannot be used.

    Set only if read_settings() was called with `forgiving`.
    """
    only: tuple[tuple[str, ...], ...] = ()
    """The part of the memory that the caller may access; () for the whole memory. See RestrictedTransaction."""

    def path(self, name: str) -> str:
        """Resolve a path that the user typed against the home folder and `cwd`."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(name)))

    def option(self, name: str) -> Any:
        """Return an option from the environment or the config file, else its default."""
        value, _ = self.configured(name)
        return OPTIONS[name].default if value is None else value

    def configured(self, name: str) -> tuple[Any, str]:
        """Return an option's value and the variable or config file that sets it; (None, "") if unset.

        Raise InvalidConfig if the variable has an invalid value.
        """
        variable = environment_variable(name)
        if value := self.environ.get(variable):
            try:
                return check_option(name, value), variable
            except ValueError as error:
                raise InvalidConfig(path=variable, problem=f"it {error}") from None
        if name in self.options:
            return self.options[name], self.config_path
        return None, ""

    def sees(self, name: str) -> bool:
        """Return True if the caller may see the collection with this name or, for `conversations`, conversations."""
        return all(name in group for group in self.only)

    def beside_config(self, name: str) -> str:
        """Resolve a path from the config file relative to the folder of that file."""
        folder = os.path.dirname(self.config_path) if self.config_path else self.cwd
        return os.path.normpath(os.path.join(folder, os.path.expanduser(name)))

    @property
    def user_home(self) -> str:
        """The home folder of the user, where other programs keep their settings."""
        return os.path.dirname(self.home)

    @property
    def models_folder(self) -> str:
        """The folder with optimised copies of models, which can be deleted at any time."""
        chosen, _ = self.configured("embedding.models_dir")
        return self.beside_config(chosen) if chosen else os.path.join(self.home, "models")

    @property
    def kb_root(self) -> str:
        """The folder of the knowledge base: kb.store, else $AI_KB_DIR, else ai-kb in the XDG data folder."""
        chosen, _ = self.configured("kb.store")
        if chosen:
            return self.beside_config(chosen)
        if self.environ.get("AI_KB_DIR"):
            return self.path(self.environ["AI_KB_DIR"])
        data = self.environ.get("XDG_DATA_HOME", "")
        folder = data if os.path.isabs(data) else os.path.join(self.user_home, ".local", "share")
        return self.path(os.path.join(folder, "ai-kb"))

    @property
    def key_file(self) -> str:
        """The file with the keys of encrypted memories, or ""."""
        chosen, _ = self.configured("key_file")
        return self.beside_config(chosen) if chosen else ""

    @property
    def backup_folders(self) -> tuple[str, ...]:
        """Folders searched for backups: the memory's folder, the Quaid home folder and its backups/."""
        return os.path.dirname(self.db_path), self.home, os.path.join(self.home, "backups")

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """Folders whose skills override the built-in skills; later folders take precedence."""
        return (os.path.join(self.home, "skills"), os.path.join(self.cwd, "skills"))


def read_settings(
    db: str | None,
    environ: Mapping[str, str],
    cwd: str,
    config: str | None = None,
    *,
    forgiving: bool = False,
) -> Settings:
    """Locate the database and read the config file.

    The database is the first of: --db, QUAID_DB, the option memory.database of an explicitly named config
    file, ./memory.db, ~/.quaid/memory.db. The config file is the file named by --config or QUAID_CONFIG, else
    config.yaml beside the database. With `forgiving`, a config file that cannot be used is skipped and
    recorded in `unread`.
    """
    with_file = _with_file_if_usable if forgiving else _with_file
    home = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    here = os.path.join(cwd, DATABASE_NAME)
    settings = Settings(db_path="", home=home, cwd=cwd, environ=environ)
    named = config or environ.get("QUAID_CONFIG")
    if named:
        settings = with_file(settings, os.path.join(cwd, os.path.expanduser(named)), must_exist=True)
    chosen = db or environ.get("QUAID_DB")
    if chosen:
        path = os.path.join(cwd, os.path.expanduser(chosen))
    elif "memory.database" in settings.options:
        path = settings.beside_config(str(settings.options["memory.database"]))
    elif os.path.exists(here) or os.path.exists(os.path.join(cwd, FOLDER_LIST)):
        path = here  # if only the folder list exists, the database was deleted and will be rebuilt
    else:
        path = os.path.join(home, DATABASE_NAME)
    settings = settings._replace(db_path=path)
    if named:
        return settings
    beside = os.path.join(os.path.dirname(path), CONFIG_NAME)
    return _without_database_option(with_file(settings, beside, must_exist=False))


def _without_database_option(settings: Settings) -> Settings:
    """Drop memory.database, with a warning, if a config file beside the database names a different database."""
    named = str(settings.options.get("memory.database", settings.db_path))
    if os.path.realpath(settings.beside_config(named)) == os.path.realpath(settings.db_path):
        return settings
    options = {key: value for key, value in settings.options.items() if key != "memory.database"}
    warning = (
        f"{settings.config_path}: memory.database is ignored, because the file is beside the memory"
        f" {settings.db_path}; name the file with --config, or the memory with --db"
    )
    return settings._replace(options=options, warnings=(*settings.warnings, warning))


def _with_file_if_usable(settings: Settings, path: str, *, must_exist: bool) -> Settings:
    try:
        return _with_file(settings, path, must_exist=must_exist)
    except (InvalidConfig, FileTrouble) as error:
        return settings._replace(unread=(path, str(error.facts["problem"])))


def _with_file(settings: Settings, path: str, *, must_exist: bool) -> Settings:
    """Return the settings with the options of a config file added, if the file exists."""
    try:
        # Without O_NONBLOCK, opening a named pipe that has no writer would block forever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISFIFO(os.fstat(handle).st_mode):
                raise FileTrouble(path=path, problem="is a named pipe, not a file; put a file there")
            data = file.read(MAX_CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise MissingConfig(path=path, problem="there is no such file") from None
        return settings
    except OSError as error:
        raise FileTrouble(path=path, problem=f"cannot be read: {error.strerror}") from None
    try:
        if len(data) > MAX_CONFIG_BYTES:
            raise InvalidConfig(path=path, problem=f"it is larger than {MAX_CONFIG_BYTES:,} bytes")
        text = data.decode("utf-8-sig")
        tree = markdown.read_yaml(text) if text.strip() else {}
    except UnicodeDecodeError as error:
        raise InvalidConfig(path=path, problem=f"byte {error.start} is not UTF-8") from None
    except InvalidFrontMatter as error:
        raise InvalidConfig(path=path, problem=str(error.facts["problem"])) from None
    options, warnings = parse_options(tree)
    located = tuple(f"{path}: {warning}" for warning in warnings)
    return settings._replace(config_path=path, options=options, warnings=located)


OptionValue = str | int | float | bool


class Option(NamedTuple):
    default: OptionValue | None
    kind: type
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 10**9
    stored: str = ""  # the database setting that this option overrides


ON_OFF = ("on", "off")
WINDOW_OPTIONS = ("chunking.max_tokens", "chunking.overlap_tokens")
OPTIONS: dict[str, Option] = {
    "memory.database": Option(None, str),
    "memory.notebook_dir": Option(None, str),
    "key_file": Option(None, str),
    "embedding.plugin": Option(None, str, stored="embedding_model"),
    "embedding.models_dir": Option(None, str),
    "chunking.max_tokens": Option(400, int, minimum=50, maximum=8_000),
    "chunking.overlap_tokens": Option(80, int, maximum=4_000),
    "chunking.respect_headings": Option(True, bool),
    "sync.watch_debounce_ms": Option(1_500, int, maximum=60_000),
    "sync.sync_on_start": Option(True, bool),
    "sync.sync_on_search": Option(True, bool),
    "search.max_results": Option(15, int, minimum=1, maximum=1_000),
    "search.min_score": Option(0.25, float, maximum=1),
    "search.fusion_k": Option(60, int, minimum=1, maximum=10_000),
    "prompt.reference_dir": Option("reference", str),
    "prompt.daily_window": Option(2, int, maximum=31),
    "prompt.max_per_file_chars": Option(8_000, int, minimum=1),
    "prompt.max_total_reference_chars": Option(32_000, int, minimum=1),
    "hooks.context_tokens": Option(200_000, int, minimum=1_000),
    "hooks.flush_at": Option(0.75, float, maximum=1),
    "hooks.stop_reminder": Option(False, bool),
    "kb.store": Option(None, str),
    "web.requests_per_second": Option(100, int, minimum=1),
    "web.burst": Option(500, int, minimum=1),
    "web.oauth": Option("on", str, ON_OFF),
    "background_embedding": Option("on", str, ON_OFF, stored="background_embedding"),
    "device_name": Option(None, str, stored="device_name"),
    "conversation_folders": Option("", str, stored="conversation_folders"),
    "embed_conversations": Option("recent", str, ("recent", "on", "off"), stored="embed_conversations"),
    "default_token_budget": Option(1_500, int, minimum=1, stored="default_token_budget"),
    "expiry_grace": Option("30d", str, stored="expiry_grace"),
    "log_activity": Option("on", str, ON_OFF, stored="log_activity"),
    "log_gaps": Option("on", str, ("on", "words", "text", "off"), stored="log_gaps"),
    "log_opened": Option("off", str, ("off", "words"), stored="log_opened"),
    "gap_threshold": Option("strong", str, ("strong", "weak"), stored="gap_threshold"),
    "search_merge_strategy": Option("sum", str, ("sum", "set-union", "rrf"), stored="search_merge_strategy"),
}


MIN_NAME_SIMILARITY = 0.75
"""An option is suggested for an unknown name if their similarity, from 0 to 1, is at least this."""


def parse_options(tree: Mapping[str, Any]) -> tuple[dict[str, OptionValue], list[str]]:
    """Return the options in a parsed config file, and warnings about unknown or invalid options, if any."""
    values: dict[str, OptionValue] = {}
    warnings: list[str] = []
    for written, value in _flatten(tree, ""):
        name = canonical_name(written)
        if name not in OPTIONS:
            warnings.append(f"unknown option {written}{_similar_option(name)}")
            continue
        try:
            values[name] = check_option(name, value)
        except ValueError as error:
            warnings.append(f"{written} {error}; it is ignored")
    limit, overlap = (values.get(name, OPTIONS[name].default) for name in WINDOW_OPTIONS)
    if not is_valid_overlap(int(limit or 0), int(overlap or 0)):
        warnings.append(
            f"{WINDOW_OPTIONS[1]} ({overlap}) must be at most half of {WINDOW_OPTIONS[0]} ({limit});"
            " both are ignored"
        )
        for name in WINDOW_OPTIONS:
            values.pop(name, None)
    return values, warnings


def is_valid_overlap(limit: int, overlap: int) -> bool:
    """Return True if the overlap is at most half of a window, so that at least half of each window is new text."""
    return overlap * 2 <= limit


def canonical_name(name: str) -> str:
    """Return the canonical name of an option for any accepted spelling."""
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_")
    short = name.removeprefix("memory.")
    return next((spelling for spelling in (name, short, f"memory.{short}") if spelling in OPTIONS), short)


def check_option(name: str, value: Any) -> OptionValue:
    """Convert a value to the type of its option. Raise ValueError with the problem if it is invalid."""
    option = OPTIONS[name]
    if option.kind is bool or option.choices == ON_OFF:
        word = str(value).lower()
        if word not in ("true", "false", "on", "off"):
            raise ValueError(f"must be true or false, not {value!r}")
        truth = word in ("true", "on")
        return ("on" if truth else "off") if option.choices else truth
    if option.kind is str:
        if isinstance(value, bool) and ((name == "embedding.plugin" and not value) or "on" in option.choices):
            value = "on" if value else "off"  # YAML 1.1 reads on and off as booleans
        if isinstance(value, list) and name == "conversation_folders":
            value = ";".join(map(str, value))
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"must be text, not {value!r}")
        if option.choices and value not in option.choices:
            raise ValueError(f"must be one of {', '.join(option.choices)}, not {value!r}")
        return value
    return _check_number(option, value)


def _check_number(option: Option, value: Any) -> OptionValue:
    if isinstance(value, str):
        try:
            value = option.kind(value)
        except ValueError:
            raise ValueError(f"must be a number, not {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ValueError(f"must be a number, not {value!r}")
    if option.kind is int and value != int(value):
        raise ValueError(f"must be a whole number, not {value!r}")
    if not option.minimum <= value <= option.maximum:
        raise ValueError(f"must be from {option.minimum:g} to {option.maximum:g}, not {value!r}")
    return int(value) if option.kind is int else float(value)


def environment_variable(name: str) -> str:
    """Return the environment variable that sets an option, as in QUAID_SEARCH_MAX_RESULTS."""
    return "QUAID_" + name.replace(".", "_").upper()


def _flatten(tree: Mapping[str, Any], above: str) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, dict) and value:
            pairs += _flatten(value, name)
        elif value is not None and value != {}:
            pairs.append((name, value))
    return pairs


def _similar_option(name: str) -> str:
    """Return a suggestion for an unknown option name, or "" if no option has a similar name.

    Both the whole names and their last parts are compared.
    """
    from difflib import SequenceMatcher

    def similarity(option: str) -> float:
        pairs = ((name, option), (name.rpartition(".")[2], option.rpartition(".")[2]))
        return max(SequenceMatcher(None, *pair).ratio() for pair in pairs)

    best = max(OPTIONS, key=similarity)
    return f"; did you mean {best}?" if similarity(best) >= MIN_NAME_SIMILARITY else ""


_ABSOLUTE_PATH = r"/.*|~(?:/.*)?|[A-Za-z]:[\\/].*"
_FOLDER_SEPARATOR = r"[;\n]|(?:(?<=[^;:\n]{2})|(?<=[~/])):"  # the colon of C:\ is not a separator


def split_folder_list(value: str) -> list[str]:
    """Split a setting that lists folders, separated by colons, semicolons or newlines."""
    return [part.strip() for part in re.split(_FOLDER_SEPARATOR, value) if part.strip()] if value else []


def check_folder_list(name: str, value: str) -> None:
    """Raise InvalidArgument for a relative path, which would depend on the working directory."""
    for folder in split_folder_list(value):
        if not re.fullmatch(_ABSOLUTE_PATH, folder):
            raise InvalidArgument(
                name=name,
                problem=f"{folder!r} is not a whole path; begin it with '/' or '~', and put ':' between folders",
            )

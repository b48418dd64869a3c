"""The options that a config.yaml may hold: their names, kinds and defaults, and how a file's words become them.

camelCase and snake_case are the same, and so are `memory.search.maxResults` and `search.max_results`. Knows values
only: who reads the file, and what an option does, is told elsewhere.
"""

from collections.abc import Mapping
from re import sub
from typing import Any, NamedTuple

Value = str | int | float | bool


class Option(NamedTuple):
    default: Value | None
    kind: type
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 10**9
    stored: str = ""  # the setting of the database that it goes before


ON_OFF = ("on", "off")
WINDOW = ("chunking.max_tokens", "chunking.overlap_tokens")
OPTIONS: dict[str, Option] = {
    "memory.database": Option(None, str),
    "memory.notebook_dir": Option(None, str),
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
    "background_embedding": Option("on", str, ON_OFF, stored="background_embedding"),
    "conversation_folders": Option("", str, stored="conversation_folders"),
    "embed_conversations": Option("recent", str, ("recent", "on", "off"), stored="embed_conversations"),
    "default_token_budget": Option(4_000, int, minimum=1, stored="default_token_budget"),
    "log_gaps": Option("on", str, ON_OFF, stored="log_gaps"),
    "gap_threshold": Option("strong", str, ("strong", "weak"), stored="gap_threshold"),
    "search_merge_strategy": Option("sum", str, ("sum", "set-union", "rrf"), stored="search_merge_strategy"),
}


NEAR = 0.75
"""How alike a name and an option must be, for it to be a slip of the pen."""


class Read(NamedTuple):
    """What a file says, and what is odd about it."""

    values: dict[str, Value]
    warnings: tuple[str, ...]


def read(tree: Mapping[str, Any]) -> Read:
    """The options in a file's tree. What is unknown or wrong is told and left out."""
    values: dict[str, Value] = {}
    warnings: list[str] = []
    for written, value in _leaves(tree, ""):
        name = canonical(written)
        if name not in OPTIONS:
            warnings.append(f"{written} is no option{_hint(name)}")
            continue
        try:
            values[name] = checked(name, value)
        except ValueError as error:
            warnings.append(f"{written} {error}; it is left out")
    limit, overlap = (values.get(each, OPTIONS[each].default) for each in WINDOW)
    if not windows_move(int(limit or 0), int(overlap or 0)):
        warnings.append(
            f"{WINDOW[1]} ({overlap}) must be at most half of {WINDOW[0]} ({limit}); both are left out"
        )
        for each in WINDOW:
            values.pop(each, None)
    return Read(values, tuple(warnings))


def windows_move(limit: int, overlap: int) -> bool:
    """Whether a window of a notebook is mostly new text, and not mostly what the one before it had."""
    return overlap * 2 <= limit


def canonical(name: str) -> str:
    """An option's name as it is listed, however it was written."""
    name = sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_")
    short = name.removeprefix("memory.")
    return next((each for each in (name, short, f"memory.{short}") if each in OPTIONS), short)


def checked(name: str, value: Any) -> Value:
    """A value as its option wants it, or ValueError with what is wrong."""
    option = OPTIONS[name]
    if option.kind is bool or option.choices == ON_OFF:
        word = str(value).lower()
        if word not in ("true", "false", "on", "off"):
            raise ValueError(f"must be true or false, not {value!r}")
        truth = word in ("true", "on")
        return ("on" if truth else "off") if option.choices else truth
    if option.kind is str:
        if isinstance(value, bool) and ((name == "embedding.plugin" and not value) or "on" in option.choices):
            value = "on" if value else "off"  # YAML 1.1 writers mean these words
        if isinstance(value, list) and name == "conversation_folders":
            value = ";".join(map(str, value))
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"must be text, not {value!r}")
        if option.choices and value not in option.choices:
            raise ValueError(f"must be one of {', '.join(option.choices)}, not {value!r}")
        return value
    return _number(option, value)


def _number(option: Option, value: Any) -> Value:
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


def variable(name: str) -> str:
    """The environment variable that goes before the file, as in QUAID_SEARCH_MAX_RESULTS."""
    return "QUAID_" + name.replace(".", "_").upper()


def _leaves(tree: Mapping[str, Any], above: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, dict) and value:
            found += _leaves(value, name)
        elif value is not None and value != {}:
            found.append((name, value))
    return found


def _hint(name: str) -> str:
    from difflib import SequenceMatcher

    def alike(one: str, other: str) -> float:
        return SequenceMatcher(None, one, other).ratio()

    def near(option: str) -> float:  # the whole name, or its last part under another heading
        return max(alike(name, option), alike(name.rpartition(".")[2], option.rpartition(".")[2]))

    best = max(OPTIONS, key=near)
    return f"; did you mean {best}?" if near(best) >= NEAR else ""

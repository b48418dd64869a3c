"""What the shells know of the command line: one table, made from the register, and a script for each shell.

A script holds the table; only names out of the memory (slugs, collections, tags, …) are asked for while somebody
types, and that is one cold start. The code of each shell stands in completion_*.txt beside this module.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import InvalidArgument
from quaid.model.page import PAGE_TYPES
from quaid.operations import index
from quaid.operations.registry import Param, all_operations

if TYPE_CHECKING:
    from quaid.config import Settings

SHELLS = ("bash", "zsh", "fish")
MEMORY = "@files:db"
EVERYWHERE = (
    ("--db", MEMORY, "the memory"),
    ("--config", "@files:yaml,yml", "settings in YAML"),
    ("--json", "", "print JSON instead of text"),
    ("--help", "", "help on a command"),
)
# What the value of an argument is, by what the argument is called.
NAMED = {
    **dict.fromkeys(("slug", "new_slug", "from", "to", "into", "other", "page", "subject"), "@slugs"),
    "collection": "@collections",
    "wing": "@wings",
    "tag": "@tags",
    "type": "|".join(PAGE_TYPES),
}
# The same by command and argument, where the name alone says nothing or something else.
KINDS = {
    ("init", "path"): MEMORY,
    ("serve", "tools"): "lean|core|kb|all",
    ("serve", "tls_cert"): "@files",
    ("serve", "tls_key"): "@files",
    ("call", "tool"): "|".join(index.TOOLS),
    ("call", "json"): "@any",
    ("hook", "event"): "session-start|user-prompt|pre-compact|stop",
    ("watch", "name"): "@collections",
    ("completion", "shell"): "|".join(SHELLS),
    ("completion", "start"): "@any",
    ("demo", "folder"): "@folders",
    ("revert", "to"): "@any",  # these four are versions
    ("diff", "from"): "@any",
    ("diff", "to"): "@any",
    ("upgrade", "from"): "@files",
    ("gaps resolve", "resolved_by_slug"): "@slugs",
    ("skills show", "name"): "@skills",
    ("token revoke", "name"): "@tokens",
    ("backup", "file"): MEMORY,
    ("kb sync", "database"): MEMORY,
    ("kb supersede", "by"): "@nodes",
    ("kb contest", "against"): "@nodes",
    ("remember", "file"): "@notes",
    ("notebook read", "path"): "@notes",
    ("notebook write", "path"): "@notes",
    ("notebook init", "path"): "@folders",
    ("notebook migrate", "path"): "@folders",
    ("conversations show", "session"): "@sessions",
    ("conversations remove", "session"): "@sessions",
    **{(f"model {verb}", "name"): "@models" for verb in ("check", "remove")},
    ("model add", "place"): "@folders",
    ("embeddings use", "name"): "@models",
    ("embed", "model"): "@models",
    ("import", "folder"): "@folders",
    ("export", "dir"): "@folders",
    ("collection add", "path"): "@folders",
    ("collection restore", "target"): "@folders",
    ("collection quarantine export", "path"): "@folders",
    **{
        (f"collection quarantine {verb}", "page"): "@quarantined" for verb in ("export", "discard", "restore")
    },
    ("validate", "original"): "@folders",
    ("validate", "exported"): "@folders",
    ("kb init", "path"): "@folders",
    ("kb clone", "path"): "@folders",
    ("skills extract", "dir"): "@folders",
}


class Entry(NamedTuple):
    """One thing that may stand on a command line."""

    word: str  # an option, a command, or the place of a plain word: 1, 2, and * for the last and all after it
    kind: str
    """What its value is: nothing, @any, a|b|c, @files, some files as in @files:yaml,yml, @folders, a name out of
    the memory as in @slugs; or @command: the word is a command."""
    help: str


def run(shell: str, start: str, settings: "Callable[[], Settings]") -> int:
    """Print a script, or the names that one asks for. Whatever is wrong, a Tab only finds nothing."""
    from quaid.operations.search import COMPLETION_KINDS as NAMES, complete_names

    if shell in SHELLS:
        print(script(shell), end="")
        return 0
    if shell not in NAMES:
        raise InvalidArgument(name="shell", problem=f"must be one of {', '.join(SHELLS)}, not {shell!r}")
    said = sys.stderr
    try:
        with open(os.devnull, "w") as sys.stderr:  # what is odd in a config file is told to those who ask
            found = complete_names(settings(), shell, start)
    except Exception:
        if "QUAID_TRACE" in os.environ:
            raise
        return 0
    finally:
        sys.stderr = said
    print("".join(f"{each}\n" for each in found if each.isprintable()), end="")
    return 0


def script(shell: str) -> str:
    """The script of a shell."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, f"completion_{shell}.txt"), encoding="utf-8") as file:
        code = file.read()
    quote = _fish if shell == "fish" else _posix
    lines = []
    for name, entries in table().items():
        told = "\n".join(f"{each.word}\t{each.kind or '-'}\t{each.help}" for each in entries)
        if shell == "fish":
            lines.append(f"    case {quote(name)}\n        printf '%s\\n' {quote(told)}")
        else:
            lines.append(f"    {quote(name)}) printf '%s\\n' {quote(told)} ;;")
    return code.replace("@TABLE@\n", "\n".join(lines) + "\n")


def table() -> dict[str, list[Entry]]:
    """What may follow each command; the empty one is `quaid` itself."""
    from quaid.surfaces.cli.local import COMMANDS

    found: dict[str, list[Entry]] = {"": [Entry("help", "@command", "Help on a command.")]}
    for name, local in COMMANDS.items():
        if name.startswith("-"):
            found[""].append(Entry(name, "", _brief(local.summary)))
            continue
        found[""].append(Entry(name, "@command", _brief(local.summary)))
        found[name] = list(_entries(name, local.params))
    for op in all_operations():
        for name in (op.command, *op.aliases):
            preset = index.ALIASES.get(name, {})
            _place(found, name)
            params = [each for each in op.params if each.name not in preset]
            found.setdefault(name, []).extend(_entries(name, params))
    for name, entries in list(found.items()):
        below = [each for each in entries if each.kind == "@command" and each.word != "help"]
        if below:
            found[f"help {name}".rstrip()] = below
    found["config set"] = list(_settings(found["config set"]))
    found.update(_choices())
    found[""].append(Entry("--version", "", "versions, and where the memory is"))
    return {
        name: entries if name.startswith("help") else [*entries, *(Entry(*each) for each in EVERYWHERE)]
        for name, entries in found.items()
    }


def _place(found: dict[str, list[Entry]], name: str) -> None:
    """Make a command known to those above it: `collection ignore add` to `collection ignore`, and so on."""
    while name:
        above, _, word = name.rpartition(" ")
        entries = found.setdefault(above, [])
        if not any(each.word == word and each.kind == "@command" for each in entries):
            entries.append(Entry(word, "@command", _told(name)))
        name = above


def _told(name: str) -> str:
    if name in index.COMMANDS:
        return _brief(index.COMMANDS[name][1])
    members = [each[len(name) + 1 :] for each in index.COMMANDS if each.startswith(name + " ")]
    return ", ".join(dict.fromkeys(each.partition(" ")[0] for each in members))


def _entries(name: str, params: Sequence[Param]) -> Iterator[Entry]:
    slots = [param for param in params if param.arg.positional]
    for place, param in enumerate(slots, 1):
        rest = param.kind == "array" or param.arg.any_text
        yield Entry("*" if rest else str(place), _kind(name, param) or "@any", _brief(param.arg.help))
    for param in params:
        if not param.arg.positional:
            yield Entry(param.flag, _kind(name, param), _brief(param.arg.help))


def _kind(command: str, param: Param) -> str:
    known = KINDS.get((command, param.name))
    if known or param.kind == "boolean":
        return known or ""
    if param.choices:
        return "|".join(param.choices)
    if command.startswith("kb "):
        if param.name in ("node", "other", "add_to"):
            return "@nodes"
    elif command.startswith("collection ") and param.name == "name" and command != "collection add":
        return "@collections"
    elif command.startswith("conversations") and param.name == "client":
        from quaid.operations.conversations import TRANSCRIPT_CLIENTS

        return "|".join(TRANSCRIPT_CLIENTS)
    elif command == "config get":
        from quaid.operations.search import readable_settings

        return "|".join(readable_settings())
    elif param.name in NAMED:
        return NAMED[param.name]
    return "@files" if param.arg.path or param.arg.file else "@any"


def _settings(entries: list[Entry]) -> Iterator[Entry]:
    """What may follow `config set`: a setting with known values stands there as a command of its own."""
    from quaid.operations.maintenance import SETTINGS

    free = "|".join(name for name, allowed in SETTINGS.items() if not isinstance(allowed, tuple))
    for each in entries:
        yield each._replace(kind=free) if each.word == "1" else each
    for name, allowed in SETTINGS.items():
        if isinstance(allowed, tuple):
            yield Entry(name, "@command", ", ".join(allowed))


def _choices() -> Iterator[tuple[str, list[Entry]]]:
    """The values of those settings."""
    from quaid.operations.maintenance import SETTINGS

    for name, allowed in SETTINGS.items():
        if isinstance(allowed, tuple):
            yield f"config set {name}", [Entry("1", "|".join(allowed), "Its new value")]


def _brief(text: str) -> str:
    """The first sentence on one line, without what the tables use as marks."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

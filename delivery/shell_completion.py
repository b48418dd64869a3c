"""Generate the shell completion scripts from the registry.

A script contains the table of commands and options; it runs `quaid completion KIND START` only for names from
the memory, such as slugs and tags. The code of each shell is in completions/template.*.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "src"))

from quaid.cli import parser  # noqa: E402
from quaid.cli.commands import COMMANDS, SHELLS  # noqa: E402
from quaid.config import OPTIONS  # noqa: E402
from quaid.model.page import PAGE_TYPES  # noqa: E402
from quaid.operations import index  # noqa: E402
from quaid.operations.conversations import TRANSCRIPT_CLIENTS  # noqa: E402
from quaid.operations.maintenance import SETTINGS  # noqa: E402
from quaid.operations.registry import Param, all_operations  # noqa: E402

DATABASE_FILES = "@files:db"
COMMON_ENTRIES = (
    ("--db", DATABASE_FILES, "the memory"),
    ("--config", "@files:yaml,yml", "settings in YAML"),
    ("--json", "", "print JSON instead of text"),
    ("--help", "", "help on a command"),
)
# Kinds of values (see CompletionEntry.kind) by the name of the argument.
KINDS_BY_NAME = {
    **dict.fromkeys(("slug", "new_slug", "from", "to", "into", "other", "page", "subject"), "@slugs"),
    "collection": "@collections",
    "wing": "@wings",
    "tag": "@tags",
    "type": "|".join(PAGE_TYPES),
}
# Kinds by command and argument, where the name is not enough or means something else.
KINDS_BY_ARGUMENT = {
    ("init", "path"): DATABASE_FILES,
    ("serve", "tools"): "lean|core|kb|all",
    ("serve", "tls_cert"): "@files",
    ("serve", "tls_key"): "@files",
    ("call", "json"): "@any",
    ("hook", "event"): "session-start|user-prompt|pre-compact|stop",
    ("watch", "name"): "@collections",
    ("completion", "shell"): "|".join(SHELLS),
    ("completion", "start"): "@any",
    ("demo", "folder"): "@folders",
    ("revert", "to"): "@any",  # these three are version numbers, not slugs
    ("diff", "from"): "@any",
    ("diff", "to"): "@any",
    ("upgrade", "from"): "@files",
    ("gaps resolve", "resolved_by_slug"): "@slugs",
    ("skills show", "name"): "@skills",
    ("token revoke", "name"): "@tokens",
    ("backup", "file"): DATABASE_FILES,
    ("kb sync", "database"): DATABASE_FILES,
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
        (f"collection quarantine {verb}", "slug"): "@quarantined" for verb in ("export", "discard", "restore")
    },
    ("validate", "original"): "@folders",
    ("validate", "exported"): "@folders",
    ("kb init", "path"): "@folders",
    ("kb clone", "path"): "@folders",
    ("skills extract", "dir"): "@folders",
}


class CompletionEntry(NamedTuple):
    """One completion: a command, an option or a positional argument."""

    word: str  # an option, a command, or a position: 1, 2, and * for the last one and all after it
    kind: str
    """Kind of its value: empty for none, @any, a|b|c, @files, files with some extensions as in
    @files:yaml,yml, @folders, a name from the memory as in @slugs; or @command if the word is a command."""
    help: str


def completion_script(shell: str) -> str:
    """Return the completion script of a shell."""
    with open(os.path.join(ROOT, "delivery", "completions", f"template.{shell}"), encoding="utf-8") as file:
        code = file.read()
    quote = _quote_fish if shell == "fish" else _quote_posix
    lines = []
    for name, entries in completion_table().items():
        rows = "\n".join(f"{entry.word}\t{entry.kind or '-'}\t{entry.help}" for entry in entries)
        if shell == "fish":
            lines.append(f"    case {quote(name)}\n        printf '%s\\n' {quote(rows)}")
        else:
            lines.append(f"    {quote(name)}) printf '%s\\n' {quote(rows)} ;;")
    return code.replace("@TABLE@\n", "\n".join(lines) + "\n")


def completion_table() -> dict[str, list[CompletionEntry]]:
    """Return the completions after each command. The empty key is `quaid` itself."""

    table: dict[str, list[CompletionEntry]] = {
        "": [CompletionEntry("help", "@command", "Help on a command.")]
    }
    for name, local in COMMANDS.items():
        if name.startswith("-"):
            table[""].append(CompletionEntry(name, "", _first_sentence(local.summary)))
            continue
        table[""].append(CompletionEntry(name, "@command", _first_sentence(local.summary)))
        table[name] = list(_param_entries(name, local.params))
    for op in all_operations():
        for name in (op.command, *op.aliases):
            preset = index.ALIASES.get(name, {})
            _add_command(table, name)
            params = [param for param in op.params if param.name not in preset]
            table.setdefault(name, []).extend(_param_entries(name, params))
    for name, entries in list(table.items()):
        below = [entry for entry in entries if entry.kind == "@command" and entry.word != "help"]
        if below:
            table[f"help {name}".rstrip()] = below
    table["config set"] = list(_setting_entries(table["config set"]))
    table.update(_setting_values())
    table[""].append(CompletionEntry("--version", "", "versions, and where the memory is"))
    return {
        name: entries
        if name.startswith("help")
        else [*entries, *(CompletionEntry(*entry) for entry in COMMON_ENTRIES)]
        for name, entries in table.items()
    }


def _add_command(table: dict[str, list[CompletionEntry]], name: str) -> None:
    """Add a command to the entries of its parents, as `collection ignore add` to `collection ignore`."""
    while name:
        above, _, word = name.rpartition(" ")
        entries = table.setdefault(above, [])
        if not any(entry.word == word and entry.kind == "@command" for entry in entries):
            entries.append(CompletionEntry(word, "@command", _describe_command(name)))
        name = above


def _describe_command(name: str) -> str:
    if name in index.COMMANDS:
        return _first_sentence(index.COMMANDS[name][1])
    members = [command[len(name) + 1 :] for command in index.COMMANDS if command.startswith(name + " ")]
    return ", ".join(dict.fromkeys(member.partition(" ")[0] for member in members))


def _param_entries(name: str, params: Sequence[Param]) -> Iterator[CompletionEntry]:
    slots = [param for param in params if param.arg.positional]
    for place, param in enumerate(slots, 1):
        rest = param.kind == "array" or param.arg.any_text
        text = _first_sentence(parser.name_options(param.arg.help, params))
        yield CompletionEntry("*" if rest else str(place), _value_kind(name, param) or "@any", text)
    for param in params:
        if not param.arg.positional:
            text = _first_sentence(parser.name_options(param.arg.help, params))
            yield CompletionEntry(param.flag, _value_kind(name, param), text)


def _value_kind(command: str, param: Param) -> str:
    if (command, param.name) == ("call", "tool"):
        return "|".join(index.TOOLS)  # read here, because the generator reloads the index
    known = KINDS_BY_ARGUMENT.get((command, param.name))
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
        return "|".join(TRANSCRIPT_CLIENTS)
    elif command == "config get":
        return "|".join(sorted({*SETTINGS, *OPTIONS}))
    elif param.name in KINDS_BY_NAME:
        return KINDS_BY_NAME[param.name]
    return "@files" if param.arg.path or param.arg.file else "@any"


def _setting_entries(entries: list[CompletionEntry]) -> Iterator[CompletionEntry]:
    """Yield the completions after `config set`. A setting with fixed values is listed as a subcommand."""
    free = "|".join(name for name, allowed in SETTINGS.items() if not allowed)
    for entry in entries:
        yield entry._replace(kind=free) if entry.word == "1" else entry
    for name, allowed in SETTINGS.items():
        if allowed:
            yield CompletionEntry(name, "@command", ", ".join(allowed))


def _setting_values() -> Iterator[tuple[str, list[CompletionEntry]]]:
    """Yield the completions of settings with fixed values."""
    for name, allowed in SETTINGS.items():
        if allowed:
            yield f"config set {name}", [CompletionEntry("1", "|".join(allowed), "Its new value")]


def _first_sentence(text: str) -> str:
    """Return the first sentence on one line, without the tabs and line ends that separate the table's fields."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _quote_posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

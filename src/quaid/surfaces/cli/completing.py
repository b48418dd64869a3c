"""What the shells know of the command line: one table, made from the register, and a script for each shell.

A script holds the table; only names out of the memory (slugs, collections, skills) are asked for while somebody
types, and that is one cold start. The code of each shell stands in completion_*.txt beside this module.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import InvalidArgument, QuaidError
from quaid.ops import index
from quaid.ops.register import Param, everything

if TYPE_CHECKING:
    from quaid.config import Settings

SHELLS = ("bash", "zsh", "fish")
EVERYWHERE = (
    ("--db", "@files", "the memory"),
    ("--config", "@files", "settings in YAML"),
    ("--json", "", "print JSON instead of text"),
    ("--help", "", "help on a command"),
)
# Arguments that take a name out of the memory, by what they are called.
SLUGS = ("slug", "new_slug", "from", "to", "into", "other", "page", "subject")
# Those whose name says nothing, by command.
KINDS = {
    ("call", "tool"): "|".join(index.TOOLS),
    ("call", "json"): "@any",
    ("hook", "event"): "session-start|user-prompt|pre-compact|stop",
    ("watch", "name"): "@collections",
    ("skills show", "name"): "@skills",
    ("completion", "shell"): "|".join(SHELLS),
    ("completion", "start"): "@any",
}


class Entry(NamedTuple):
    """One thing that may stand on a command line."""

    word: str  # an option, a command, or the place of a plain word: 1, 2, and * for the last and all after it
    kind: str  # what its value is: nothing, @any, @files, @slugs, @collections, @skills, @command, or a|b|c
    help: str


def run(shell: str, start: str, settings: "Callable[[], Settings]") -> int:
    """Print a script, or the names that one asks for. Whatever is wrong with the memory, a Tab only finds nothing."""
    from quaid.ops.completing import KINDS as NAMES, names

    if shell in SHELLS:
        print(script(shell), end="")
        return 0
    if shell not in NAMES:
        raise InvalidArgument(name="shell", problem=f"must be one of {', '.join(SHELLS)}, not {shell!r}")
    from quaid.brain import Brain

    try:
        with Brain(settings()) as brain:
            found = names(brain, shell, start)
    except QuaidError:
        return 0
    print("".join(f"{each}\n" for each in found), end="")
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
    for op in everything():
        for name in (op.command, *op.aliases):
            preset = index.ALIASES.get(name, {})
            _place(found, name)
            params = [each for each in op.params if each.name not in preset]
            found.setdefault(name, []).extend(_entries(name, params))
    found["help"] = [each for each in found[""] if each.kind == "@command" and each.word != "help"]
    found[""].append(Entry("--version", "", "versions, and where the memory is"))
    return {
        name: [*entries, *(Entry(*each) for each in EVERYWHERE)] if name != "help" else entries
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
    of_collection = command.startswith("collection ") and param.name == "name" and command != "collection add"
    if of_collection or param.name == "collection":
        return "@collections"
    if param.name in SLUGS and not command.startswith("kb "):
        return "@slugs"
    return "@files" if param.arg.path or param.arg.file else "@any"


def _brief(text: str) -> str:
    """The first sentence on one line, without what the tables use as marks."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

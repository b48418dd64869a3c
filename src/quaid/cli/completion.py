"""Shell completion scripts and manual pages, generated from the registry.

A completion script contains the table of commands and options; it runs `quaid completion KIND START` only for
names from the memory, such as slugs and tags. The code of each shell is in completion_*.txt beside this
module.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import quaid
from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.errors import InvalidArgument
from quaid.model.page import PAGE_TYPES
from quaid.operations import dispatch, index
from quaid.operations.registry import SUBJECTS, Param, all_operations

if TYPE_CHECKING:
    from quaid.config import Settings

SHELLS = ("bash", "zsh", "fish")
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
    ("call", "tool"): "|".join(index.TOOLS),
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
        (f"collection quarantine {verb}", "page"): "@quarantined" for verb in ("export", "discard", "restore")
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


def run_completion(shell: str, start: str, settings: "Callable[[], Settings]") -> int:
    """Print a completion script, or the names that a script asks for. Errors while completing names print nothing."""
    from quaid.operations.search import COMPLETION_KINDS as NAMES, complete_names

    if shell in SHELLS:
        print(completion_script(shell), end="")
        return 0
    if shell not in NAMES:
        raise InvalidArgument(name="shell", problem=f"must be one of {', '.join(SHELLS)}, not {shell!r}")
    said = sys.stderr
    try:
        with open(os.devnull, "w") as sys.stderr:  # warnings would garble the command line
            found = complete_names(settings(), shell, start)
    except Exception:
        if "QUAID_TRACE" in os.environ:
            raise
        return 0
    finally:
        sys.stderr = said
    print("".join(f"{each}\n" for each in found if each.isprintable()), end="")
    return 0


def completion_script(shell: str) -> str:
    """Return the completion script of a shell."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, f"completion_{shell}.txt"), encoding="utf-8") as file:
        code = file.read()
    quote = _quote_fish if shell == "fish" else _quote_posix
    lines = []
    for name, entries in completion_table().items():
        told = "\n".join(f"{each.word}\t{each.kind or '-'}\t{each.help}" for each in entries)
        if shell == "fish":
            lines.append(f"    case {quote(name)}\n        printf '%s\\n' {quote(told)}")
        else:
            lines.append(f"    {quote(name)}) printf '%s\\n' {quote(told)} ;;")
    return code.replace("@TABLE@\n", "\n".join(lines) + "\n")


def completion_table() -> dict[str, list[CompletionEntry]]:
    """Return the completions after each command. The empty key is `quaid` itself."""

    found: dict[str, list[CompletionEntry]] = {
        "": [CompletionEntry("help", "@command", "Help on a command.")]
    }
    for name, local in COMMANDS.items():
        if name.startswith("-"):
            found[""].append(CompletionEntry(name, "", _first_sentence(local.summary)))
            continue
        found[""].append(CompletionEntry(name, "@command", _first_sentence(local.summary)))
        found[name] = list(_param_entries(name, local.params))
    for op in all_operations():
        for name in (op.command, *op.aliases):
            preset = index.ALIASES.get(name, {})
            _add_command(found, name)
            params = [each for each in op.params if each.name not in preset]
            found.setdefault(name, []).extend(_param_entries(name, params))
    for name, entries in list(found.items()):
        below = [each for each in entries if each.kind == "@command" and each.word != "help"]
        if below:
            found[f"help {name}".rstrip()] = below
    found["config set"] = list(_setting_entries(found["config set"]))
    found.update(_setting_values())
    found[""].append(CompletionEntry("--version", "", "versions, and where the memory is"))
    return {
        name: entries
        if name.startswith("help")
        else [*entries, *(CompletionEntry(*each) for each in COMMON_ENTRIES)]
        for name, entries in found.items()
    }


def _add_command(found: dict[str, list[CompletionEntry]], name: str) -> None:
    """Add a command to the entries of its parents, as `collection ignore add` to `collection ignore`."""
    while name:
        above, _, word = name.rpartition(" ")
        entries = found.setdefault(above, [])
        if not any(each.word == word and each.kind == "@command" for each in entries):
            entries.append(CompletionEntry(word, "@command", _describe_command(name)))
        name = above


def _describe_command(name: str) -> str:
    if name in index.COMMANDS:
        return _first_sentence(index.COMMANDS[name][1])
    members = [each[len(name) + 1 :] for each in index.COMMANDS if each.startswith(name + " ")]
    return ", ".join(dict.fromkeys(each.partition(" ")[0] for each in members))


def _param_entries(name: str, params: Sequence[Param]) -> Iterator[CompletionEntry]:
    slots = [param for param in params if param.arg.positional]
    for place, param in enumerate(slots, 1):
        rest = param.kind == "array" or param.arg.any_text
        yield CompletionEntry(
            "*" if rest else str(place), _value_kind(name, param) or "@any", _first_sentence(param.arg.help)
        )
    for param in params:
        if not param.arg.positional:
            yield CompletionEntry(param.flag, _value_kind(name, param), _first_sentence(param.arg.help))


def _value_kind(command: str, param: Param) -> str:
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
        from quaid.operations.conversations import TRANSCRIPT_CLIENTS

        return "|".join(TRANSCRIPT_CLIENTS)
    elif command == "config get":
        from quaid.operations.search import readable_settings

        return "|".join(readable_settings())
    elif param.name in KINDS_BY_NAME:
        return KINDS_BY_NAME[param.name]
    return "@files" if param.arg.path or param.arg.file else "@any"


def _setting_entries(entries: list[CompletionEntry]) -> Iterator[CompletionEntry]:
    """Yield the completions after `config set`. A setting with fixed values is listed as a subcommand."""
    from quaid.operations.maintenance import SETTINGS

    free = "|".join(name for name, allowed in SETTINGS.items() if not isinstance(allowed, tuple))
    for each in entries:
        yield each._replace(kind=free) if each.word == "1" else each
    for name, allowed in SETTINGS.items():
        if isinstance(allowed, tuple):
            yield CompletionEntry(name, "@command", ", ".join(allowed))


def _setting_values() -> Iterator[tuple[str, list[CompletionEntry]]]:
    """Yield the completions of settings with fixed values."""
    from quaid.operations.maintenance import SETTINGS

    for name, allowed in SETTINGS.items():
        if isinstance(allowed, tuple):
            yield f"config set {name}", [CompletionEntry("1", "|".join(allowed), "Its new value")]


def _first_sentence(text: str) -> str:
    """Return the first sentence on one line, without the tabs and line ends that separate the table's fields."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _quote_posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


MAN_DATE = "2026-11-16"  # release date; the current date would change the page on every build
MAN_ABOUT = """\
Quaid keeps what one person and their AI agents know as pages in one SQLite file and in folders of notes, on this \
machine, without a network and without keys. A page is current truth above a line and an append-only timeline below \
it. Every command is also a tool over MCP, if agents may do it."""
MAN_ABOUT_KB = """\
A knowledge base is a private git repository of org-roam nodes: what is lasting and general, beyond one \
project. Every write goes one way: fetch, write, index, lint with a search for secrets, commit, push in the \
background. ai-kb is the same as quaid kb."""
MAN_ENVIRONMENT = (
    ("QUAID_DB", "The memory, unless --db names one."),
    ("QUAID_CONFIG", "The config file, unless --config names one."),
    ("QUAID_BACKGROUND_EMBEDDING", "on or off: whether vectors are made by themselves."),
    ("QUAID_TRACE", "Show where Quaid itself failed."),
    ("AI_KB_DIR", "The folder of the knowledge base."),
)
MAN_FILES = (
    ("~/.quaid/memory.db", "The memory, if neither --db, QUAID_DB nor ./memory.db names another."),
    ("~/.quaid/notebook", "The notebook."),
    ("config.yaml", "Settings, beside the memory."),
)
EXIT_STATUSES = (
    ("0", "All went well."),
    ("1", "A check (validate, doctor, lint, upgrade) found something to do."),
    ("2", "The words were wrong: a command, an option, a value."),
    ("3", "There is no such page, setting or model."),
    ("4", "Somebody else changed it first, or it cannot be changed from here."),
    ("5", "The database, a file or the machine is in the way."),
    ("6", "The caller may not do this."),
    ("70", "Quaid itself failed."),
    ("130", "Stopped by Ctrl-C; nothing half-done is left behind."),
)


def man_page() -> str:
    """Return the manual page of `quaid` in man(7) format."""
    return "\n".join(_man_lines()) + "\n"


def kb_man_page() -> str:
    """Return the manual page of `ai-kb` in man(7) format."""
    return "\n".join(_kb_man_lines()) + "\n"


MAN_NOTE = r".\" Generated by `make docs` from the register. Edit the source, not this page."


def _kb_man_lines() -> Iterator[str]:
    yield MAN_NOTE
    yield f'.TH AI\\-KB 1 {MAN_DATE} "quaid {quaid.__version__}" "User Commands"'
    yield from (".SH NAME", r"ai\-kb \- a knowledge base that you and your AI agents share")
    yield from (".SH SYNOPSIS", r".B ai\-kb", r"\fICOMMAND\fR .\|.\|.")
    yield from (
        ".SH DESCRIPTION",
        _roff_text(MAN_ABOUT_KB),
        ".SH OPTIONS",
        _roff_text("Every command knows these."),
    )
    yield from _man_options(parser.KB_OPTIONS_HELP.splitlines())
    yield ".SH COMMANDS"
    for name, summary in parser.kb_commands():
        yield from (line.replace("quaid kb ", r"ai\-kb ") for line in _man_operation(f"kb {name}", summary))
    environment = [each for each in MAN_ENVIRONMENT if each[0] == "AI_KB_DIR"]
    files = (
        ("~/.local/share/ai-kb", "The knowledge base, unless AI_KB_DIR or the config file names another."),
    )
    yield from _man_tables(environment, files)
    yield from (".SH SEE ALSO", r"\fBquaid\fR(1), \fBgit\fR(1)")


def _man_lines() -> Iterator[str]:
    yield MAN_NOTE
    yield f'.TH QUAID 1 {MAN_DATE} "quaid {quaid.__version__}" "User Commands"'
    yield from (".SH NAME", r"quaid \- the memory that you and your AI agents share")
    yield from (
        ".SH SYNOPSIS",
        r".B quaid",
        r"[\fB\-\-db\fR \fIPATH\fR] [\fB\-\-json\fR] \fICOMMAND\fR .\|.\|.",
    )
    yield from (".br", r".B ai\-kb", r"\fICOMMAND\fR .\|.\|.")
    yield from (".SH DESCRIPTION", _roff_text(MAN_ABOUT), ".PP")
    yield r"\fBai\-kb\fR(1) is the same as \fBquaid kb\fR."
    yield from (".SH OPTIONS", _roff_text("Every command knows these."))
    yield from _man_options(parser.OPTIONS_HELP.splitlines()[1:])
    yield ".SH COMMANDS"
    for name, local in COMMANDS.items():
        if not name.startswith("-"):
            yield from _man_command(name, local.summary, local.params, local.examples)
    for title in dict.fromkeys(parser.SECTION_TITLES[subject] for subject in SUBJECTS):
        yield f".SH {_roff_text(title.upper())}"
        for name, (key, summary) in index.COMMANDS.items():
            if parser.SECTION_TITLES[key.partition(".")[0]] == title:
                yield from _man_operation(name, summary)
    yield from _man_tables(MAN_ENVIRONMENT, MAN_FILES)
    yield from (".SH SEE ALSO", r"\fBai\-kb\fR(1), \fBgit\fR(1), \fBsqlite3\fR(1)")


def _man_options(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        words, _, told = line.strip().partition("  ")
        yield from _man_item(words, told.strip())


def _man_tables(environment: Sequence[tuple[str, str]], files: Sequence[tuple[str, str]]) -> Iterator[str]:
    for title, rows in (("ENVIRONMENT", environment), ("FILES", files), ("EXIT STATUS", EXIT_STATUSES)):
        yield f".SH {title}"
        for name, told in rows:
            yield from _man_item(name, told)


def _man_operation(name: str, summary: str) -> Iterator[str]:
    if index.ALIASES.get(name):
        yield from (f".SS quaid {_roff_text(name)}", _roff_text(summary))
        return
    operation = dispatch.find_command(name)
    yield from _man_command(name, operation.description, operation.params, operation.examples)


def _man_command(name: str, told: str, params: Sequence[Param], examples: Sequence[str]) -> Iterator[str]:
    positional = [param for param in params if param.arg.positional]
    optional = [param for param in params if not param.arg.positional]
    slots = "".join(f" {_man_placeholder(param)}" for param in positional)
    yield rf".SS quaid {_roff_text(name)}"
    yield rf"\fBquaid {_roff_text(name)}\fR{slots}{' [OPTIONS]' if optional else ''}"
    for paragraph in told.split("\n\n"):
        yield from (".PP", _roff_text(paragraph))
    for param in positional:
        yield from _man_item(parser.placeholder(param), param.arg.help)
    for param in optional:
        yield from _man_item(parser.option_usage(param), param.arg.help + parser.option_details(param))
    if examples:
        yield from (".PP", "For example:", ".PP", ".nf")
        yield from (f"    {_roff_text(each, within=True)}" for each in examples)
        yield ".fi"


def _man_placeholder(param: Param) -> str:
    return rf"\fI{_roff_text(parser.placeholder(param))}\fR"


def _man_item(name: str, told: str) -> Iterator[str]:
    yield ".TP"
    head, _, value = name.partition(" ")
    yield rf"\fB{_roff_text(head)}\fR" + (rf" \fI{_roff_text(value)}\fR" if value else "")
    yield _roff_text(told) or r"\&"


def _roff_text(text: str, *, within: bool = False) -> str:
    """Escape text for roff, so that it contains no requests and hyphens can be copied."""
    text = text if within else " ".join(text.split())
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    text = text.replace('"', r"\(dq").replace("^", r"\(ha").replace("~", r"\(ti")
    text = re.sub(r"[^\x00-\x7f]", lambda found: rf"\[u{ord(found[0]):04X}]", text)
    if within:
        return text
    # Fold the source lines to keep them readable; roff fills the lines of the page itself.
    return "\n".join(r"\&" + line if line.startswith(".") else line for line in _fold_words(text.split(" ")))


def _fold_words(words: list[str]) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > 78:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield line

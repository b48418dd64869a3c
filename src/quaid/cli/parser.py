"""Parse a command line into the arguments of an operation, and format help pages.

The options are parsed with argparse: first those common to all commands, then those of the given command.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid import config, errors
from quaid.operations import dispatch, index
from quaid.operations.dispatch import MAX_TEXT, inline_suggestion
from quaid.operations.registry import DEPRECATED_NAMES, SUBJECTS, Operation, Param, current_name

if TYPE_CHECKING:
    from quaid.cli.commands import LocalCommand


class CommandLine(NamedTuple):
    """A command line, with the options common to all commands parsed."""

    command: str
    rest: list[str]
    db: str | None
    as_json: bool
    wants_help: bool
    config: str | None = None
    no_pager: bool = False

    @property
    def topic(self) -> str:
        """Return the command to show help for."""
        return " ".join(self.rest) if self.command == "help" else self.command


COMMANDS_TOLERATING_BAD_CONFIG = ("doctor",)
"""Commands that ignore an invalid config file and report the problem themselves."""


def load_settings(line: CommandLine) -> config.Settings:
    """Return the settings for a command line. Print warnings about the config file to standard error."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise errors.FileTrouble(
            path="The current folder", problem="is gone; change to another one"
        ) from None
    tolerant = line.command in COMMANDS_TOLERATING_BAD_CONFIG
    settings = config.read_settings(line.db, os.environ, cwd, line.config, forgiving=tolerant)
    if line.config:
        os.environ["QUAID_CONFIG"] = settings.config_path  # for child processes of a server
    for warning in () if tolerant else settings.warnings:
        print(f"quaid: {warning}", file=sys.stderr)
    return settings


COMMON_OPTIONS = {
    "--db": "a memory",
    "--config": "a config file",
    "--json": "",
    "--help": "",
    "--no-pager": "",
}
"""Options allowed anywhere on the command line, with a description of the file that each names.

The description is empty for an option without a value.
"""


def split_command_line(words: Sequence[str]) -> CommandLine:
    """Separate the command and the COMMON_OPTIONS from the other words."""
    end = words.index("--") if "--" in words else len(words)
    parser = _option_parser()
    for name in ("--db", "--config"):
        parser.add_argument(name, default=None)
    for name in ("--json", "--help", "--no-pager"):
        parser.add_argument(name, action="store_true", default=False)
    try:
        # -h is not defined as an option, because the parser would then split a search word such as -hello.
        common, rest = parser.parse_known_args(["--help" if word == "-h" else word for word in words[:end]])
    except argparse.ArgumentError as error:
        name = str(error.argument_name)
        problem = f"needs the path of {COMMON_OPTIONS[name]}" if COMMON_OPTIONS[name] else "takes no value"
        raise errors.InvalidArgument(name=name, problem=problem) from None
    for name in ("db", "config"):
        if getattr(common, name) == "":
            problem = f"is empty; give it the path of {COMMON_OPTIONS['--' + name]}"
            raise errors.InvalidArgument(name=f"--{name}", problem=problem)
    command, rest = _split_command([*rest, *words[end:]])
    return CommandLine(command, rest, common.db, common.json, common.help, common.config, common.no_pager)


def _option_parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
        argument_default=argparse.SUPPRESS,
        # Without a width, the formatter that add_argument creates would import shutil to get the terminal's
        # width.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=HELP_WIDTH),
    )


def _split_command(words: list[str]) -> tuple[str, list[str]]:
    """Separate the command, such as `config` or `collection ignore add`, from its arguments."""
    if not words:
        return "", []
    name, rest = words[0], words[1:]
    if name.startswith("-"):
        if name not in index.NO_OPERATIONS and name != "--":
            name = name.partition("=")[0]
            options = {*COMMON_OPTIONS, *(word for word in index.NO_OPERATIONS if word[0] == "-")}
            raise errors.WrongOption(
                name=name, problem=f"there is no such option{inline_suggestion(name, options)}"
            )
        return {"--version": "version"}.get(name, name), rest
    while rest and not rest[0].startswith("-") and is_group(name):
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, rest


def is_group(name: str) -> bool:
    """Return True if a command has subcommands."""
    return any(command.startswith(name + " ") for command in index.COMMANDS)


def operation_arguments(line: CommandLine, operation: Operation) -> dict[str, Any]:
    """Return the arguments of an operation, including those preset by an alias (`untag` is `tag --remove`)."""
    return {**line_arguments(line, operation.params), **index.ALIASES.get(line.command, {})}


def line_arguments(line: CommandLine, params: Sequence[Param]) -> dict[str, Any]:
    """Parse the arguments of a command. Errors name the command, so that its help page can be suggested."""
    try:
        return parse_arguments(line.rest, params)
    except errors.InvalidArgument as error:
        raise errors.WrongUsage(command=line.command, **error.facts) from None


def name_options(text: str, params: Sequence[Param]) -> str:
    """Replace argument names in backticks, such as `keep`, with their command-line form, such as --keep."""
    for param in params:
        text = text.replace(f"`{param.name}`", _typed_name(param))
    return text


def as_typed(error: errors.QuaidError, operation: Operation) -> errors.QuaidError:
    """Return an error of an operation with argument names in their command-line form."""
    if isinstance(error, errors.InvalidPageDate):  # names a field of a page, not an argument
        return error
    names = {param.name: _typed_name(param) for param in operation.params}
    facts = {**error.facts, "name": names.get(str(error.facts["name"]), error.facts["name"])}
    if "problem" in facts:
        facts["problem"] = name_options(str(facts["problem"]), operation.params)
    return type(error)(**facts)


def _typed_name(param: Param) -> str:
    """Return an argument as typed on the command line: an option, or the placeholder in the usage line."""
    return placeholder(param).strip("[]") if param.arg.positional else param.flag


def parse_arguments(words: Sequence[str], params: Sequence[Param]) -> dict[str, Any]:
    """Return the arguments by name. Types are checked later by dispatch.call."""
    end = words.index("--") if "--" in words else len(words)
    parser = _option_parser()
    for param in params:
        if not (param.arg.file and param.arg.positional):
            action = "store_true" if param.kind == "boolean" else "append"
            parser.add_argument(param.flag, *_other_flags(param, params), dest=param.name, action=action)
    try:
        options, others = parser.parse_known_args(words[:end])
    except argparse.ArgumentError as error:
        name = str(error.argument_name).partition("/")[0]
        has_value = name in words[: end - 1]  # the word after the option starts with a dash
        hint = f"; one that starts with a dash is written {name}=VALUE" if has_value else ""
        problem = "takes no value" if "explicit" in error.message else f"needs a value{hint}"
        raise errors.InvalidArgument(name=name, problem=problem) from None
    takes_text = any(param.arg.any_text for param in params)
    for word in others:
        if word.startswith("--"):
            name = word.partition("=")[0]
            if any(param.arg.positional and param.flag == name for param in params):
                raise errors.InvalidArgument(name=name, problem="is not an option; write the value alone")
            flags = [*(param.flag for param in params if not param.arg.positional), *COMMON_OPTIONS]
            raise errors.InvalidArgument(
                name=name, problem=f"there is no such option{inline_suggestion(name, flags)}"
            )
        if len(word) == 2 and word[0] == "-" and word[1].isalpha() and not takes_text:
            problem = f"there is no such option; for the letters themselves write `-- {word}`"
            raise errors.InvalidArgument(name=word, problem=problem)
    arguments: dict[str, Any] = {}
    values = vars(options) | _positional_values([*others, *words[end + 1 :]], params, vars(options))
    for param in params:
        if param.name in values:
            arguments[param.name] = _convert(param, values[param.name])
        elif param.required and not param.arg.file:
            name = param.name.upper() if param.arg.positional else param.flag
            raise errors.InvalidArgument(name=name, problem="is missing")
    missing = _missing_file_argument(arguments, params)
    if missing:
        if sys.stdin.isatty():
            print(f"Reading {missing} from standard input; Ctrl-D ends it.", file=sys.stderr)
        arguments[missing] = _read_text("-")
    return arguments


def _other_flags(param: Param, params: Sequence[Param]) -> list[str]:
    """Return other spellings of an option: with underscores, or under a deprecated name."""
    names = {param.name for param in params}
    spellings = [param.name, *(old for old in DEPRECATED_NAMES if current_name(old, names) == param.name)]
    flags = {f"--{name}" for name in spellings} | {f"--{name.replace('_', '-')}" for name in spellings}
    return sorted(flags - {param.flag for param in params})


def _positional_values(
    words: list[str], params: Sequence[Param], options: dict[str, Any]
) -> dict[str, list[str]]:
    slots = [param for param in params if param.arg.positional]
    values = {param.name: [word] for param, word in zip(slots, words, strict=False)}
    if len(words) > len(slots):
        rest = words[len(slots) - 1 :] if slots else words
        if slots and slots[-1].kind == "array":
            values[slots[-1].name] = rest
        elif slots and slots[-1].arg.any_text:
            values[slots[-1].name] = [" ".join(rest)]  # `quaid search river ai` searches for both words
        elif lists := [param.name for param in params if param.kind == "array" and param.name in options]:
            values[lists[0]] = [*options[lists[0]], *words[len(slots) :]]  # as in --expect ONE OTHER
        else:
            raise errors.InvalidArgument(name=repr(words[len(slots)]), problem="unexpected argument")
    return values


def _convert(param: Param, words: Any) -> Any:
    """Convert the words of an argument to its value."""
    if param.kind == "boolean":
        return words  # an option without a value; `words` is True
    if param.arg.file:
        return _read_text(words[-1])
    if not param.arg.path:  # a path may contain any bytes
        words = [_repair_unicode(word) for word in words]
    if param.kind == "array" and param.items != "string":
        values = [_parse_json(param, word) for word in words]
        return [item for value in values for item in (value if isinstance(value, list) else [value])]
    if param.kind in ("array", "string"):
        return words if param.kind == "array" else words[-1]
    return _parse_json(param, words[-1])


def _parse_json(param: Param, word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        kind = {"integer": "a whole number", "number": "a number"}.get(param.kind, "JSON")
        name = param.name.upper() if param.arg.positional else param.flag
        raise errors.InvalidArgument(name=name, problem=f"must be {kind}, not {word!r}") from None


def _repair_unicode(word: str) -> str:
    """Replace surrogates, which represent invalid bytes from the shell and cannot be stored."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def _missing_file_argument(arguments: dict[str, Any], params: Sequence[Param]) -> str:
    """Return the name of an omitted file argument that is read from standard input, or "".

    An optional file argument is not read if other parts of the content were given.
    """
    file = next((param for param in params if param.arg.file and param.arg.positional), None)
    if file is None or file.name in arguments:
        return ""
    parts = [param for param in params if not param.arg.positional and not param.arg.version]
    has_part = any(param.name in arguments for param in parts if param.kind != "boolean")
    return file.name if file.required or not has_part else ""


def _read_text(name: str) -> str:
    """Return the text of a file, or of standard input if the name is "-"."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with open(os.path.expanduser(name), "rb") as file:
                data = file.read(MAX_TEXT + 1)
    except OSError as error:
        hint = "; - reads the text from standard input" if isinstance(error, FileNotFoundError) else ""
        raise errors.FileTrouble(path=name, problem=f"cannot be read: {error.strerror}{hint}") from None
    if len(data) > MAX_TEXT:
        if name == "-":  # the total size of standard input is unknown
            raise errors.InputTooLarge(limit=MAX_TEXT)
        raise errors.TooLarge(what=name, size=os.path.getsize(os.path.expanduser(name)), limit=MAX_TEXT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        where = "standard input" if name == "-" else name
        raise errors.FileTrouble(path=where, problem=f"is not UTF-8 text (byte {error.start})") from None


HELP_WIDTH = 100
OVERVIEW_COLUMN = 18  # column at which descriptions start in the overview
MAX_CHOICES_WIDTH = 60  # maximum width of the choices next to an option; longer lists are put into its help
FIRST_COMMANDS = ("init", "import", "connect", "doctor", "demo")
"""Commands for new users, shown first."""
OVERVIEW_HEAD = """\
quaid: the memory that you and your AI agents share. One file, offline, no keys.

Usage: quaid [--db PATH] [--json] COMMAND ...

"""
HOME_COMMANDS = {
    "Ask": {
        "query QUESTION": "answer a question from everything stored, with sources",
        "search WORDS": "find pages by their words",
        "get PAGE": "read a page",
    },
    "Write": {
        "remember TEXT": "note one thing in the notebook",
        "edit PAGE": "write or change a page in your editor",
        "import FOLDER": "take in a folder of notes",
    },
    "Every day": {
        "today": "what is due, what changed, and today's log",
        "open": "the dashboard in a browser, or with a name that page",
    },
    "Set up": {
        "connect CLIENT": "let an agent use this memory",
        "doctor": "check the installation, and what to do next",
    },
}
"""Commands shown by `quaid` without arguments, in groups, each with its main argument."""
HOME_FOOT = "`quaid help all` lists all commands, `quaid help COMMAND` shows how to use one.\n"
OPTIONS_HELP = """\
Options for every command
  --db PATH        the memory [QUAID_DB, ./memory.db if it exists, ~/.quaid/memory.db]
  --config FILE    settings in YAML [QUAID_CONFIG, config.yaml beside the memory]
  --json           print JSON instead of text
  --no-pager       do not show long output in a pager [PAGER, less]
  --help           help on a command, as in: quaid put --help
  --version        the version of quaid, SQLite and the memory
  --tools-json     the tools that agents see, as MCP lists them
"""
FROM_FILE = " It is read from this file; - is standard input."
COMMON_OPTIONS_NOTE = "Every command takes --db PATH, --config FILE, --json, --no-pager and --help.\n"
KB_OVERVIEW_HEAD = """\
ai-kb: a knowledge base in a git repository, for you and your AI agents. The same as quaid kb.

Usage: ai-kb COMMAND ...

"""
KB_OPTIONS_HELP = """\
  --json           print JSON instead of text
  --help           help on a command, as in: ai-kb remember --help
  --version        the version of quaid, SQLite and the memory
"""


def local_commands() -> "dict[str, LocalCommand]":
    from quaid.cli.commands import COMMANDS  # commands.py imports this module

    return COMMANDS


def home_help(paint: Callable[[str], str] = str) -> str:
    """Return the help on HOME_COMMANDS. `paint` formats the titles of the groups."""
    parts: list[str] = []
    for title, rows in HOME_COMMANDS.items():
        parts += [paint(title), "\n", *_format_rows(list(rows.items()), OVERVIEW_COLUMN), "\n"]
    return "".join([*parts, HOME_FOOT])


def command_sections() -> dict[str, dict[str, str]]:
    """Return the commands of operations with their summaries, by the title of their section."""
    sections: dict[str, dict[str, str]] = {title: {} for title in SUBJECTS.values()}
    for name, (key, text) in index.COMMANDS.items():
        sections[SUBJECTS[key.partition(".")[0]]][name] = text
    return sections


def help_overview() -> str:
    """Return the overview: one line per command or command group."""
    summaries = {name: command.summary for name, command in local_commands().items()}
    first = {name: summaries.get(name) or index.COMMANDS[name][1] for name in (*FIRST_COMMANDS, *summaries)}
    parts = [OVERVIEW_HEAD, "Start here\n", *_overview_rows(first), "\n"]
    for title, commands in command_sections().items():
        rows: dict[str, str] = {}
        for name, text in commands.items():
            rows.setdefault(name.partition(" ")[0], text)
        parts += [title, "\n", *_overview_rows(rows), "\n"]
    return "".join([*parts, OPTIONS_HELP])


def _overview_rows(rows: dict[str, str]) -> list[str]:
    return _format_rows([(name, _overview_line(name, text)) for name, text in rows.items()], OVERVIEW_COLUMN)


def _overview_line(name: str, text: str) -> str:
    """Return the description of a command, or the subcommands of a group.

    For a group that is also a command, return both.
    """
    width = HELP_WIDTH - OVERVIEW_COLUMN - 2
    members = {command: key for command, (key, _) in index.COMMANDS.items() if command.startswith(name + " ")}
    family = ", ".join(dict.fromkeys(member.split(" ")[1] for member in members))
    key, own = index.COMMANDS.get(name, ("", ""))
    if not members:
        return _shorten_summary(text, width)
    is_command = key and key not in members.values()
    return f"{_shorten_summary(own, width)}; also {family}" if is_command else f"Commands: {family}"


def _shorten_summary(text: str, width: int) -> str:
    """Shorten a summary longer than a line to its first sentence, or the part before a colon or semicolon.

    A part that is still longer is kept. It is not cut at commas, because they also separate the items of lists.
    """
    for end in (". ", ": ", "; "):
        if len(text) > width:
            text = text.partition(end)[0]
    return text.rstrip(".")


def help_page(name: str, program: str = "quaid") -> str:
    """Return the help page of a command. For `ai-kb`, an alias of `quaid kb`, the usage names that program."""
    if name == "--man":
        return generated_file(f"{program}.1")
    if name == "all":
        return help_overview()
    if program == "ai-kb" and name == "kb":
        return KB_OVERVIEW_HEAD + "".join(_format_rows(kb_commands())) + "\n" + KB_OPTIONS_HELP
    if program == "ai-kb":
        return help_page(name).replace("Usage: quaid kb ", "Usage: ai-kb ", 1)
    if command := local_commands().get(name):
        return _format_help_page(name, command.summary, command.params, command.examples)
    group = [
        (command, text) for command, (_, text) in index.COMMANDS.items() if command.startswith(name + " ")
    ]
    members = "".join(_format_rows(group))
    if group and name not in index.COMMANDS:
        return f"Usage: quaid {name} COMMAND ...\n\n{members}"
    operation = dispatch.find_command(name)
    params = [param for param in operation.params if param.name not in index.ALIASES.get(name, {})]
    description = "\n\n".join(filter(None, (operation.description, operation.cli_note)))
    examples = operation.examples
    if index.ALIASES.get(name):  # an alias that presets arguments
        description = f"{index.COMMANDS[name][1]} {description}"
        examples = tuple(line for line in examples if line.startswith(f"quaid {name} ")) or examples
    description = name_options(description, operation.params)
    page = _format_help_page(name, description, params, examples)
    return f"{page}\nCommands\n{members}" if group else page


def generated_file(name: str) -> str:
    """Return a file that `make docs` has generated: the overview, a manual page or a completion script."""
    with open(os.path.join(os.path.dirname(__file__), "generated", name), encoding="utf-8") as file:
        return file.read()


def kb_commands() -> list[tuple[str, str]]:
    """Return the commands of `ai-kb`, without the prefix "kb", and their descriptions."""
    return [(name[3:], text) for name, (_, text) in index.COMMANDS.items() if name.startswith("kb ")]


def _format_help_page(name: str, description: str, params: Sequence[Param], examples: Sequence[str]) -> str:
    positional = [param for param in params if param.arg.positional]
    optional = [param for param in params if not param.arg.positional]
    usage = " ".join(
        ["quaid", name, *(placeholder(param) for param in positional), *(["[OPTIONS]"] if optional else [])]
    )
    parts = [f"Usage: {usage}\n\n", *(line + "\n" for line in _wrap_lines(description, HELP_WIDTH)), "\n"]
    rows = [
        (placeholder(param), name_options(param.arg.help, params) + (FROM_FILE if param.arg.file else ""))
        for param in positional
    ]
    rows += [
        (option_usage(param), name_options(param.arg.help, params) + option_details(param))
        for param in optional
    ]
    parts += [*_format_rows(rows), "\n"] if rows else []
    parts += [COMMON_OPTIONS_NOTE, "\n"]
    if examples:
        parts += ["Examples\n", *(f"  {example}\n" for example in examples)]
    return "".join(parts).rstrip() + "\n"


def placeholder(param: Param) -> str:
    """Return a positional argument as shown in the usage line."""
    name = "FILE" if param.arg.file else param.name.upper()
    if param.kind == "array":
        name = f"{name.removesuffix('S')}..."
    return name if param.required else f"[{name}]"


def option_usage(param: Param) -> str:
    """Return an option with a placeholder for its value."""
    if param.kind == "boolean":
        return param.flag
    if _fits_inline(param.choices):
        return f"{param.flag} {'|'.join(param.choices)}"
    names = {"integer": "N", "number": "X", "object": "JSON"}
    kind = param.items if param.kind == "array" else param.kind
    return f"{param.flag} {names.get(kind, 'PATH' if param.arg.path else 'TEXT')}"


def _fits_inline(choices: Sequence[str]) -> bool:
    return 0 < len("|".join(choices)) <= MAX_CHOICES_WIDTH


def option_details(param: Param) -> str:
    """Return the end of an option's help: choices that do not fit next to its name, and the default."""
    choices = ""
    if param.choices and not _fits_inline(param.choices):
        choices = f" One of {', '.join(param.choices)}."
    if param.required:
        return f"{choices} (required)"
    return f"{choices} [{param.default}]" if param.default not in (None, "", False, ()) else choices


def _format_rows(rows: Sequence[tuple[str, str]], column: int = 0) -> list[str]:
    column = column or min(34, max((len(name) for name, _ in rows), default=0)) + 2
    lines: list[str] = []
    for name, text in rows:
        wrapped = _wrap_lines(text, HELP_WIDTH - column - 2)
        if len(name) + 2 > column:
            lines.append(f"  {name}\n")
            name = ""
        lines += [f"  {name if not number else '':{column}}{line}\n" for number, line in enumerate(wrapped)]
    return lines


def fit_width(text: str, width: int) -> str:
    """Wrap the lines of a help text that are longer than the terminal, unless its width is 0.

    Continuation lines are indented to the last column of their table.
    """
    if not width or all(len(line) <= width for line in text.split("\n")):
        return text
    import re

    lines = []
    for line in text.split("\n"):
        start = re.match(r" *(?:\S(?:.*?\S)? {2,})?", line)
        column = min(start.end() if start else 0, width * 2 // 3)
        head, rest = line[:column], line[column:]
        # Examples, which start with "quaid", stay on one line, so that they can be copied.
        is_long = len(line) > width and not line.startswith("  quaid ")
        wrapped = _wrap_lines(rest, width - column) if is_long else [rest]
        lines += [(head if not number else " " * column) + part for number, part in enumerate(wrapped)]
    return "\n".join(lines)


def _wrap_lines(text: str, width: int) -> list[str]:
    import textwrap  # imported late, because only help needs it

    paragraphs = text.split("\n\n")
    wrapped = (
        textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False)
        for paragraph in paragraphs
    )
    return [line for lines in wrapped for line in lines or [""]]

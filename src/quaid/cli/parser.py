"""Parse a command line into the arguments of an operation, and format help pages."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quaid import config
from quaid.errors import FileTrouble, InputTooLarge, InvalidArgument, TooLarge, WrongOption, WrongUsage
from quaid.operations import dispatch, index
from quaid.operations.dispatch import MAX_TEXT, inline_suggestion
from quaid.operations.registry import SUBJECTS, Operation, Param, current_name


class CommandLine(NamedTuple):
    """A command line, with the options common to all commands parsed."""

    command: str
    rest: list[str]
    db: str | None
    as_json: bool
    wants_help: bool
    config: str | None = None

    @property
    def topic(self) -> str:
        """Return the command to show help for."""
        return " ".join(self.rest) if self.command == "help" else self.command


COMMANDS_TOLERATING_BAD_CONFIG = ("doctor",)
"""Commands that continue without an invalid config file and report it themselves."""


def load_settings(line: CommandLine) -> config.Settings:
    """Return the settings for a command line. Prints warnings about the config file to standard error."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise FileTrouble(path="The current folder", problem="is gone; change to another one") from None
    forgiving = line.command in COMMANDS_TOLERATING_BAD_CONFIG
    settings = config.read_settings(line.db, os.environ, cwd, line.config, forgiving=forgiving)
    if line.config:
        os.environ["QUAID_CONFIG"] = settings.config_path  # for child processes of a server
    for each in () if forgiving else settings.warnings:
        print(f"quaid: {each}", file=sys.stderr)
    return settings


def split_command_line(words: Sequence[str]) -> CommandLine:
    """Split off the command and the options that may be anywhere: --db, --config, --json, --help."""
    named: dict[str, str | None] = {"--db": None, "--config": None}
    as_json, wants_help = False, False
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            rest += ["--", *words[at:]]
            break
        if word == "--json":
            as_json = True
        elif word in ("--help", "-h"):
            wants_help = True
        elif word in named:
            if at == len(words):
                raise InvalidArgument(name=word, problem=f"needs the path of {_OPTION_TARGETS[word]}")
            named[word] = words[at]
            at += 1
        elif word.partition("=")[0] in named:
            name, _, named_path = word.partition("=")
            named[name] = named_path
        else:
            rest.append(word)
    for name, path in named.items():
        if path == "":
            raise InvalidArgument(name=name, problem=f"is empty; give it the path of {_OPTION_TARGETS[name]}")
    command, rest = _split_command(rest)
    return CommandLine(command, rest, named["--db"], as_json, wants_help, named["--config"])


COMMON_OPTIONS = dict.fromkeys(("--db", "--config", "--json", "--help"))  # allowed anywhere; for suggestions
_OPTION_TARGETS = {"--db": "a memory", "--config": "a config file"}


def _split_command(words: list[str]) -> tuple[str, list[str]]:
    """Split off the longest matching command: `collection ignore add`, `config get`, then `config`."""

    if not words:
        return "", []
    if words[0].startswith("-"):
        if words[0] not in index.NO_OPERATIONS and words[0] != "--":
            name = words[0].partition("=")[0]
            known = {
                **COMMON_OPTIONS,
                **dict.fromkeys(each for each in index.NO_OPERATIONS if each[0] == "-"),
            }
            raise WrongOption(name=name, problem=f"there is no such option{inline_suggestion(name, known)}")
        return {"--version": "version"}.get(words[0], words[0]), words[1:]
    name, rest = words[0], words[1:]
    while (
        rest and not rest[0].startswith("-") and any(each.startswith(name + " ") for each in index.COMMANDS)
    ):
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, rest


def operation_arguments(
    line: CommandLine, operation: Operation, text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Return the arguments of an operation, including those preset by an alias (`untag` is `tag --remove`)."""

    given = line_arguments(line, operation.params, text_of)
    given.update(index.ALIASES.get(line.command, {}))
    return given


def line_arguments(
    line: CommandLine, params: Sequence[Param], text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Parse the arguments of a command. Errors name the command, so that its help page can be suggested."""
    try:
        return parse_arguments(line.rest, params, text_of)
    except InvalidArgument as error:
        raise WrongUsage(command=line.command, **error.facts) from None


def parse_arguments(
    words: Sequence[str], params: Sequence[Param], text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Return the arguments by name. Types are checked later by dispatch.call.

    `text_of` reads a named file, or standard input for "-", which may belong to another process.
    """
    text_of = text_of or _read_text
    flags = {param.flag: param for param in params if not (param.arg.file and param.arg.positional)}
    given: dict[str, Any] = {}
    plain: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            plain += words[at:]
            break
        if not word.startswith("--"):
            if _is_short_option(word) and not any(param.arg.any_text for param in params):
                told = f"there is no such option; for the letters themselves write `-- {word}`"
                raise InvalidArgument(name=word, problem=told)
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        name = _current_flag(name, flags)
        if name not in flags:
            unknown = f"there is no such option{inline_suggestion(name, {**flags, **COMMON_OPTIONS})}"
            raise InvalidArgument(name=name, problem="takes no value" if name in COMMON_OPTIONS else unknown)
        param = flags[name]
        if param.kind == "boolean" and not equals:
            given[param.name] = True
            continue
        if not equals:
            if at == len(words):
                raise InvalidArgument(name=name, problem="needs a value")
            value = words[at]
            at += 1
        _take_value(given, param, value, text_of)
    _take_positionals(given, plain, params, text_of)
    _read_missing_file_argument(given, params, text_of)
    return given


def _current_flag(name: str, flags: Mapping[str, Param]) -> str:
    """Return the flag for an argument name, which may be a deprecated one."""
    if name in flags:
        return name
    known = {param.name: flag for flag, param in flags.items()}
    given = name.removeprefix("--").replace("-", "_")
    return known.get(current_name(given, known), name)


def _is_short_option(word: str) -> bool:
    """Return True if a word looks like a short option of other programs: -q, but not "-", -1 or -ve."""
    return len(word) == 2 and word[0] == "-" and word[1].isalpha()


def _take_positionals(
    given: dict[str, Any], plain: list[str], params: Sequence[Param], text_of: Callable[[str], str]
) -> None:
    slots = [param for param in params if param.arg.positional]
    for place, param in enumerate(slots):
        if place < len(plain):
            last = place == len(slots) - 1
            if last and param.kind == "array":
                for word in plain[place:]:
                    _take_value(given, param, word, text_of)
                continue
            # `quaid search river ai` means both words.
            value = " ".join(plain[place:]) if last and param.arg.any_text else plain[place]
            _take_value(given, param, value, text_of)
    takes_more = bool(slots) and (slots[-1].arg.any_text or slots[-1].kind == "array")
    if len(plain) > len(slots) and not takes_more:
        raise InvalidArgument(name=repr(plain[len(slots)]), problem="unexpected argument")
    for param in slots:
        if param.required and not param.arg.file and param.name not in given:
            raise InvalidArgument(name=param.name.upper(), problem="is missing")


def _take_value(given: dict[str, Any], param: Param, word: str, text_of: Callable[[str], str]) -> None:
    if param.arg.file:
        given[param.name] = text_of(word)
    elif param.arg.path and param.kind == "array":
        given.setdefault(param.name, []).append(word)
    elif param.arg.path:
        given[param.name] = word
    elif param.kind == "array" and param.items == "string":
        given.setdefault(param.name, []).append(_repair_unicode(word))
    elif param.kind == "array":
        value = _parse_value(param, _repair_unicode(word))
        given.setdefault(param.name, []).extend(value if isinstance(value, list) else [value])
    else:
        given[param.name] = _parse_value(param, _repair_unicode(word))


def _parse_value(param: Param, word: str) -> Any:
    if param.kind == "string":
        return word
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        kinds = {
            "integer": "a whole number",
            "number": "a number",
            "boolean": "true or false",
            "object": "JSON",
            "array": "JSON",
        }
        name = param.name.upper() if param.arg.positional else param.flag
        raise InvalidArgument(name=name, problem=f"must be {kinds[param.kind]}, not {word!r}") from None


def _repair_unicode(word: str) -> str:
    """Replace surrogates, with which Python represents invalid bytes from the shell and which cannot be stored."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def _read_missing_file_argument(
    given: dict[str, Any], params: Sequence[Param], text_of: Callable[[str], str]
) -> None:
    """Read an omitted file argument from standard input, unless other parts of the content were given."""
    wanted = next((param for param in params if param.arg.file and param.arg.positional), None)
    parts = [param for param in params if not param.arg.positional and not param.arg.version]
    others = [param.name for param in parts if param.kind != "boolean"]  # a flag may accompany a text
    if wanted is None or wanted.name in given:
        return
    if not wanted.required and any(name in given for name in others):
        return
    if text_of is _read_text and sys.stdin.isatty():
        print(f"Reading {wanted.name} from standard input; Ctrl-D ends it.", file=sys.stderr)
    given[wanted.name] = text_of("-")


def _read_text(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with open(os.path.expanduser(name), "rb") as file:
                data = file.read(MAX_TEXT + 1)
    except OSError as error:
        hint = "; - reads the text from standard input" if isinstance(error, FileNotFoundError) else ""
        raise FileTrouble(path=name, problem=f"cannot be read: {error.strerror}{hint}") from None
    return decode_text(name, data)


def decode_text(name: str, data: bytes) -> str:
    """Decode the content of a file, or of standard input if the name is "-"."""
    if len(data) > MAX_TEXT:
        if name == "-":  # the total size is unknown
            raise InputTooLarge(limit=MAX_TEXT)
        raise TooLarge(what=name, size=os.path.getsize(os.path.expanduser(name)), limit=MAX_TEXT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        where = "standard input" if name == "-" else name
        raise FileTrouble(path=where, problem=f"is not UTF-8 text (byte {error.start})") from None


HELP_WIDTH = 100
OVERVIEW_COLUMN = 17  # column at which descriptions start in the overview
MAX_CHOICES_WIDTH = 60  # maximum width of the choices next to an option; longer lists go into its help
SECTION_TITLES = {
    "pages": "Pages",
    "history": "Pages",
    "search": "Finding",
    "query": "Finding",
    "links": "Links and graph",
    "facts": "Truth over time",
    "ingest": "Taking in",
    "cleanup": "Tidying up",
    "overview": "Finding",
    "notebook": "Notebook",
    "conversations": "Conversations",
    "models": "Models",
    "collections": "Folders of files",
    "maintenance": "Looking after it",
    "doctor": "Looking after it",
    "kb": "Knowledge base",
    "clients": "Programs that use it",
    "service": "Over HTTP",
}
FIRST_COMMANDS = ("init", "import", "connect", "doctor", "demo")
"""Commands for new users, shown first."""
OVERVIEW_HEAD = """\
quaid: the memory that you and your AI agents share. One file, offline, no keys.

Usage: quaid [--db PATH] [--json] COMMAND ...

"""
OPTIONS_HELP = """\
Options for every command
  --db PATH        the memory [QUAID_DB, ./memory.db if it exists, ~/.quaid/memory.db]
  --config FILE    settings in YAML [QUAID_CONFIG, config.yaml beside the memory]
  --json           print JSON instead of text
  --help           help on a command, as in: quaid put --help
  --version        the version of quaid, SQLite and the memory
  --tools-json     the tools that agents see, as MCP lists them
"""
FROM_FILE = " It is read from this file; - is standard input."
COMMON_OPTIONS_NOTE = "Every command takes --db PATH, --config FILE, --json and --help.\n"
KB_OVERVIEW_HEAD = """\
ai-kb: a knowledge base in a git repository, for you and your AI agents. The same as quaid kb.

Usage: ai-kb COMMAND ...

"""
KB_OPTIONS_HELP = """\
  --json           print JSON instead of text
  --help           help on a command, as in: ai-kb remember --help
  --version        the version of quaid, SQLite and the memory
"""


def help_overview() -> str:
    """Return the overview: one line per command or command group."""
    from quaid.cli.commands import COMMANDS

    summaries = {name: each.summary for name, each in COMMANDS.items()}
    known = {
        **summaries,
        **{name: index.COMMANDS[name][1] for name in FIRST_COMMANDS if name not in summaries},
    }
    first = {name: known[name] for name in (*FIRST_COMMANDS, *summaries)}
    parts = [OVERVIEW_HEAD, "Start here\n", *_overview_rows(list(first.items())), "\n"]
    for title in dict.fromkeys(SECTION_TITLES[subject] for subject in SUBJECTS):
        rows: dict[str, str] = {}
        for name, (key, text) in index.COMMANDS.items():
            if SECTION_TITLES[key.partition(".")[0]] == title:
                family = name.partition(" ")[0]
                rows.setdefault(family, text)
        parts += [title, "\n", *_overview_rows(list(rows.items())), "\n"]
    return "".join([*parts, OPTIONS_HELP])


def _overview_rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    return _format_rows([(name, _overview_line(name, text)) for name, text in rows], OVERVIEW_COLUMN)


def _overview_line(name: str, text: str) -> str:
    """Return the description of a command, or the subcommands of a group.

    For a group that is also a command, return both.
    """
    width = HELP_WIDTH - OVERVIEW_COLUMN - 2
    members = {each: key for each, (key, _) in index.COMMANDS.items() if each.startswith(name + " ")}
    family = ", ".join(dict.fromkeys(each.split(" ")[1] for each in members))
    key, own = index.COMMANDS.get(name, ("", ""))
    if not members:
        return _shorten_summary(text, width)
    return family if not key or key in members.values() else f"{_shorten_summary(own, width)}; also {family}"


def _shorten_summary(text: str, width: int) -> str:
    """Shorten a text to one line, cutting at the end of a sentence or clause."""
    for end in (". ", ": ", "; ", ", "):
        if len(text) > width:
            text = text.partition(end)[0]
    return text.rstrip(".")


def help_page(name: str, program: str = "quaid") -> str:
    """Return the help page of a command. For `ai-kb`, an alias of `quaid kb`, the usage names that program."""
    from quaid.cli.commands import COMMANDS

    if name == "--man":
        from quaid.cli import completion

        return completion.man_page() if program == "quaid" else completion.kb_man_page()
    if program == "ai-kb" and name == "kb":
        return KB_OVERVIEW_HEAD + "".join(_format_rows(kb_commands())) + "\n" + KB_OPTIONS_HELP
    if program == "ai-kb":
        return help_page(name).replace("Usage: quaid kb ", "Usage: ai-kb ", 1)
    if name in COMMANDS:
        local = COMMANDS[name]
        return _format_help_page(name, local.summary, local.params, local.examples)
    group = [each for each in index.COMMANDS if each.startswith(name + " ")]
    members = "".join(_format_rows([(each, index.COMMANDS[each][1]) for each in group]))
    if group and name not in index.COMMANDS:
        return f"Usage: quaid {name} COMMAND ...\n\n{members}"
    operation = dispatch.find_command(name)
    set_already = index.ALIASES.get(name, {})
    params = [param for param in operation.params if param.name not in set_already]
    description = "\n\n".join(filter(None, (operation.description, operation.cli_note)))
    own = _format_help_page(name, description, params, operation.examples)
    return f"{own}\nCommands\n{members}" if group else own


def kb_commands() -> list[tuple[str, str]]:
    """Return the commands of `ai-kb`, without the prefix "kb", and their descriptions."""
    return [(name[3:], text) for name, (_, text) in index.COMMANDS.items() if name.startswith("kb ")]


def help_page_names() -> list[str]:
    """Return every command with a help page, in the order of the overview."""
    from quaid.cli.commands import COMMANDS

    return [*COMMANDS, *index.COMMANDS]


def _format_help_page(name: str, description: str, params: Sequence[Param], examples: Sequence[str]) -> str:
    positional = [param for param in params if param.arg.positional]
    optional = [param for param in params if not param.arg.positional]
    usage = " ".join(
        ["quaid", name, *(placeholder(param) for param in positional), *(["[OPTIONS]"] if optional else [])]
    )
    parts = [f"Usage: {usage}\n\n", *(line + "\n" for line in _wrap_lines(description, HELP_WIDTH)), "\n"]
    rows = [
        (placeholder(param), param.arg.help + (FROM_FILE if param.arg.file else "")) for param in positional
    ]
    rows += [(option_usage(param), param.arg.help + option_details(param)) for param in optional]
    parts += [*_format_rows(rows), "\n"] if rows else []
    parts += [COMMON_OPTIONS_NOTE, "\n"]
    if examples:
        parts += ["Examples\n", *(f"  {each}\n" for each in examples)]
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
    """Return the rest of an option's help: choices that do not fit next to its name, and the default."""
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


def _wrap_lines(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = ""
            line = f"{line} {word}" if line else word
        lines.append(line)
    return lines

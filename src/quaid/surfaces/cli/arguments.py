"""Words of a command line to the arguments of an operation.

Hand-written: argparse costs 15 ms of a cold start, more than everything else that `quaid get` does.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quaid import config
from quaid.errors import FileTrouble, InputTooLarge, InvalidArgument, TooLarge, WrongOption, WrongUsage
from quaid.operations.dispatch import MAX_TEXT, inline_suggestion
from quaid.operations.registry import Operation, Param, current_name


class Line(NamedTuple):
    """A command line with the words that every command knows taken out."""

    command: str
    rest: list[str]
    db: str | None
    as_json: bool
    wants_help: bool
    config: str | None = None

    @property
    def topic(self) -> str:
        """The command that help is wanted of."""
        return " ".join(self.rest) if self.command == "help" else self.command


FORGIVING = ("doctor",)
"""Commands that go on without a config file that cannot be used, and tell of it themselves."""


def settings_of(line: Line) -> config.Settings:
    """The settings that hold for a command line; what is odd in a config file is told."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise FileTrouble(path="The current folder", problem="is gone; change to another one") from None
    forgiving = line.command in FORGIVING
    settings = config.read_settings(line.db, os.environ, cwd, line.config, forgiving=forgiving)
    if line.config:
        os.environ["QUAID_CONFIG"] = settings.config_path  # for processes that a server starts
    for each in () if forgiving else settings.warnings:
        print(f"quaid: {each}", file=sys.stderr)
    return settings


def split(words: Sequence[str]) -> Line:
    """Find the command and the options that stand anywhere: --db, --config, --json, --help."""
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
                raise InvalidArgument(name=word, problem=f"needs the path of {_MEANT[word]}")
            named[word] = words[at]
            at += 1
        elif word.partition("=")[0] in named:
            name, _, named_path = word.partition("=")
            named[name] = named_path
        else:
            rest.append(word)
    for name, path in named.items():
        if path == "":
            raise InvalidArgument(name=name, problem=f"is empty; give it the path of {_MEANT[name]}")
    command, rest = _command(rest)
    return Line(command, rest, named["--db"], as_json, wants_help, named["--config"])


COMMON = dict.fromkeys(("--db", "--config", "--json", "--help"))  # what stands anywhere; for hints
_MEANT = {"--db": "a memory", "--config": "a config file"}


def _command(words: list[str]) -> tuple[str, list[str]]:
    """The longest command that the first words name: `collection ignore add`, `config get`, then `config`."""
    from quaid.operations import index

    if not words:
        return "", []
    if words[0].startswith("-"):
        if words[0] not in index.NO_OPERATIONS and words[0] != "--":
            name = words[0].partition("=")[0]
            known = {**COMMON, **dict.fromkeys(each for each in index.NO_OPERATIONS if each[0] == "-")}
            raise WrongOption(name=name, problem=f"there is no such option{inline_suggestion(name, known)}")
        return {"--version": "version"}.get(words[0], words[0]), words[1:]
    name, rest = words[0], words[1:]
    while (
        rest and not rest[0].startswith("-") and any(each.startswith(name + " ") for each in index.COMMANDS)
    ):
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, rest


def of_command(
    line: Line, operation: Operation, text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """The arguments of an operation, with those that the command itself sets (`untag` is `tag --remove`)."""
    from quaid.operations import index

    given = of_line(line, operation.params, text_of)
    given.update(index.ALIASES.get(line.command, {}))
    return given


def of_line(
    line: Line, params: Sequence[Param], text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """The arguments that stand behind a command; what is wrong with them is told with the page that shows how."""
    try:
        return parse(line.rest, params, text_of)
    except InvalidArgument as error:
        raise WrongUsage(command=line.command, **error.facts) from None


def parse(
    words: Sequence[str], params: Sequence[Param], text_of: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Arguments by name. Their types are checked later, once, by the call gate.

    `text_of` reads a file that is named, "-" being standard input: it may be that of another process.
    """
    text_of = text_of or _text_of
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
        name = _present_flag(name, flags)
        if name not in flags:
            unknown = f"there is no such option{inline_suggestion(name, {**flags, **COMMON})}"
            raise InvalidArgument(name=name, problem="takes no value" if name in COMMON else unknown)
        param = flags[name]
        if param.kind == "boolean" and not equals:
            given[param.name] = True
            continue
        if not equals:
            if at == len(words):
                raise InvalidArgument(name=name, problem="needs a value")
            value = words[at]
            at += 1
        _take(given, param, value, text_of)
    _positionals(given, plain, params, text_of)
    _standard_input(given, params, text_of)
    return given


def _present_flag(name: str, flags: Mapping[str, Param]) -> str:
    """Return the option that is meant by the name of its argument, also by a former name."""
    if name in flags:
        return name
    known = {param.name: flag for flag, param in flags.items()}
    given = name.removeprefix("--").replace("-", "_")
    return known.get(current_name(given, known), name)


def _is_short_option(word: str) -> bool:
    """Whether a word looks like the options of other programs: -q, but not "-", -1 or -ve."""
    return len(word) == 2 and word[0] == "-" and word[1].isalpha()


def _positionals(
    given: dict[str, Any], plain: list[str], params: Sequence[Param], text_of: Callable[[str], str]
) -> None:
    slots = [param for param in params if param.arg.positional]
    for place, param in enumerate(slots):
        if place < len(plain):
            last = place == len(slots) - 1
            if last and param.kind == "array":
                for word in plain[place:]:
                    _take(given, param, word, text_of)
                continue
            # `quaid search river ai` means both words.
            value = " ".join(plain[place:]) if last and param.arg.any_text else plain[place]
            _take(given, param, value, text_of)
    takes_more = bool(slots) and (slots[-1].arg.any_text or slots[-1].kind == "array")
    if len(plain) > len(slots) and not takes_more:
        raise InvalidArgument(name=repr(plain[len(slots)]), problem="unexpected argument")
    for param in slots:
        if param.required and not param.arg.file and param.name not in given:
            raise InvalidArgument(name=param.name.upper(), problem="is missing")


def _take(given: dict[str, Any], param: Param, word: str, text_of: Callable[[str], str]) -> None:
    if param.arg.file:
        given[param.name] = text_of(word)
    elif param.arg.path and param.kind == "array":
        given.setdefault(param.name, []).append(word)
    elif param.arg.path:
        given[param.name] = word
    elif param.kind == "array" and param.items == "string":
        given.setdefault(param.name, []).append(_unicode(word))
    elif param.kind == "array":
        value = _value(param, _unicode(word))
        given.setdefault(param.name, []).extend(value if isinstance(value, list) else [value])
    else:
        given[param.name] = _value(param, _unicode(word))


def _value(param: Param, word: str) -> Any:
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


def _unicode(word: str) -> str:
    """A shell may pass bytes that are not text; Python hides them in surrogates, which nothing can store."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def _standard_input(given: dict[str, Any], params: Sequence[Param], text_of: Callable[[str], str]) -> None:
    """A file argument that was left out is read from standard input, unless other parts were given."""
    wanted = next((param for param in params if param.arg.file and param.arg.positional), None)
    parts = [param for param in params if not param.arg.positional and not param.arg.version]
    others = [param.name for param in parts if param.kind != "boolean"]  # a flag goes with a text
    if wanted is None or wanted.name in given:
        return
    if not wanted.required and any(name in given for name in others):
        return
    if text_of is _text_of and sys.stdin.isatty():
        print(f"Reading {wanted.name} from standard input; Ctrl-D ends it.", file=sys.stderr)
    given[wanted.name] = text_of("-")


def _text_of(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with open(os.path.expanduser(name), "rb") as file:
                data = file.read(MAX_TEXT + 1)
    except OSError as error:
        hint = "; - reads the text from standard input" if isinstance(error, FileNotFoundError) else ""
        raise FileTrouble(path=name, problem=f"cannot be read: {error.strerror}{hint}") from None
    return decoded(name, data)


def decoded(name: str, data: bytes) -> str:
    """The text of a file; "-" was standard input."""
    if len(data) > MAX_TEXT:
        if name == "-":  # nobody knows how much more there would have been
            raise InputTooLarge(limit=MAX_TEXT)
        raise TooLarge(what=name, size=os.path.getsize(os.path.expanduser(name)), limit=MAX_TEXT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        where = "standard input" if name == "-" else name
        raise FileTrouble(path=where, problem=f"is not UTF-8 text (byte {error.start})") from None

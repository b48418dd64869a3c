"""Every command in the texts for people and agents is accepted by Quaid."""

import glob
import json
import os
import re
import shlex
from collections.abc import Iterator

import pytest

from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.errors import QuaidError
from quaid.operations import dispatch, index, registry
from quaid.operations.registry import Param

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACEHOLDER = re.compile(r"<[A-Za-z_-]+>|\b[A-Z][A-Z_-]+\b|\b[A-Z]\b")
STAND_INS = {"integer": "1", "number": "1", "boolean": "true", "object": "{}"}


def texts() -> list[str]:
    """Skills, README and the pages of docs: whatever exists."""
    patterns = ("src/quaid/skills/*/SKILL.md", "*.md", "docs/**/*.md", "examples/**/*.md")
    names = [name for pattern in patterns for name in glob.glob(pattern, root_dir=ROOT, recursive=True)]
    return sorted(names)


def fenced(text: str) -> Iterator[str]:
    """Return the command lines in the shell blocks of a text; in console blocks, the lines after a prompt."""
    for language, block in re.findall(r"^ *```(bash|sh|shell|console)\n(.*?)^ *```", text, re.M | re.S):
        ending = ""
        for line in block.replace("\\\n", " ").splitlines():
            if ending:
                ending = "" if line.strip() == ending else ending
                continue
            if language == "console" and not line.lstrip().startswith("$ "):
                continue
            here = re.search(r"<<-?\s*['\"]?(\w+)", line)
            ending = here[1] if here else ""
            yield line.strip().removeprefix("$ ")


def inline(text: str) -> Iterator[str]:
    """Commands in running text: `quaid …` between backticks, outside of fenced blocks."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    yield from (" ".join(match.split()) for match in re.findall(r"`((?:quaid|ai-kb) [^`]+)`", prose))


def quaid_calls(line: str) -> Iterator[list[str]]:
    """The words after each `quaid` in a shell line, without pipes, redirections and variables."""
    line = re.sub(r"<([A-Za-z_-]+)>", lambda match: match[1].upper(), line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    simple: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if skip:
            skip = False
        elif set(word) <= set("<>&") and set(word) & set("<>"):
            skip = True
        elif set(word) <= set("|&;()"):
            simple.append([])
        else:
            simple[-1].append(word)
    for words in simple:
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        if words and words[0] == "ai-kb":
            words = ["quaid", *(["kb"] if words[1:2] != ["help"] else []), *words[1:]]
        if words and words[0] == "quaid":
            yield words[1:]


def check(words: list[str], *, mention: bool = False) -> None:
    """Raise the error that the command line reports for these words. A mention may be a name alone."""
    line = parser.split_command_line(words)
    if PLACEHOLDER.fullmatch(line.command):
        return
    if line.wants_help or line.command in ("", "help"):
        parser.help_page(line.topic) if line.topic else parser.help_overview()
        return
    if mention and not line.rest:
        parser.help_page(line.command)
        return
    if line.command in COMMANDS:
        arguments = parser.parse_arguments(line.rest, COMMANDS[line.command].params)
        if line.command == "call":
            check_call(arguments["tool"], arguments.get("json") or "{}")
        return
    operation = dispatch.find_command(line.command)
    params = [without_files(param) for param in operation.params]
    arguments = parser.parse_arguments(filled(line.rest, params), params)
    dispatch.check_arguments(operation, {**arguments, **index.ALIASES.get(line.command, {})}, "owner")


def check_call(tool: str, body: str) -> None:
    if not PLACEHOLDER.fullmatch(tool):
        operation = dispatch.find_tool(tool)
        if not PLACEHOLDER.fullmatch(body):
            dispatch.check_arguments(operation, json.loads(body), "write")


def without_files(param: Param) -> Param:
    """Return the same parameter with a value that is not opened as a file."""
    return param._replace(arg=param.arg._replace(file=False, path=True)) if param.arg.file else param


def filled(words: list[str], params: list[Param]) -> list[str]:
    """Placeholders for anything but text become a value of the right kind."""
    kinds = {param.flag: param.kind for param in params if param.kind != "boolean"}
    in_place = iter([param.kind for param in params if param.arg.positional])
    result = []
    awaited = None  # the kind that the flag before wants
    for word in words:
        if word.startswith("--"):
            awaited = kinds.get(word)
            result.append(word)
            continue
        kind = awaited or next(in_place, "string")
        awaited = None
        stands = kind in STAND_INS and PLACEHOLDER.fullmatch(word)
        result.append(STAND_INS[kind] if stands else word)
    return result


def wrong_commands(text: str) -> list[str]:
    """Every command in a text that Quaid would refuse, with the reason."""
    wrong = []
    pairs = [(line, False) for line in fenced(text)] + [(line, True) for line in inline(text)]
    for line, mention in pairs:
        try:
            for words in quaid_calls(line):
                check(words, mention=mention)
        except (QuaidError, ValueError) as error:
            wrong.append(f"{line}: {error}")
    return wrong


def read(name: str) -> str:
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("name", texts())
def test_every_command_in_a_text_exists(name: str) -> None:
    assert wrong_commands(read(name)) == []


def test_the_setup_skill_shows_the_commands_of_every_day() -> None:
    text = read("src/quaid/skills/setup/SKILL.md")
    shown = {parser.split_command_line(words).command for line in fenced(text) for words in quaid_calls(line)}
    daily = "init put get search list tag timeline-add import export validate backup serve"
    assert set(daily.split()) <= shown


def test_the_examples_in_the_help_are_right() -> None:
    examples = [example for operation in registry.all_operations() for example in operation.examples]
    assert [wrong for example in examples for wrong in wrong_commands(f"```bash\n{example}\n```\n")] == []


def test_examples_of_commands_without_operation_are_valid() -> None:
    examples = [example for local in COMMANDS.values() for example in local.examples]
    assert wrong_commands("```bash\n" + "\n".join(examples) + "\n```\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "quaid gte people/alice",
        "quaid get",
        "quaid history people/alice people/bob",
        "cat x.md | quaid putt people/alice",
        "QUAID_DB=x quaid lst",
        "quaid list --sort size",
        "quaid list --limit many",
        "quaid timeline-add people/alice --date 2026-04-25",
        "quaid init && quaid serve --tool all",
        "quaid call memory_gte '{}'",
        'quaid call memory_get \'{"slg": "people/alice"}\'',
        "quaid skills show",
    ],
)
def test_a_wrong_command_in_a_text_is_noticed(line: str) -> None:
    assert len(wrong_commands(f"```bash\n{line}\n```\n")) == 1
    assert len(wrong_commands(f"```console\n$ {line}\noutput\n```\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "quaid get <slug>",
        "quaid list --limit N --type TYPE",
        "quaid link-close ID --valid-until DAY",
        "echo '# A | B' | quaid put people/alice > /dev/null 2>&1",
        "quaid pipe < calls.jsonl",
        "ls; quaid put <slug> alice.md # with a remark",
        "pip install quaid",
        "cat > a.md <<'EOF'\nquaid nonsense\nEOF",
        "quaid timeline-add people/alice \\\n  --date 2026-04-25 --summary 'Moved'",
    ],
)
def test_placeholders_pipes_and_files_are_understood(line: str) -> None:
    assert wrong_commands(f"```bash\n{line}\n```\n") == []


def test_a_command_may_be_mentioned_by_name_alone_but_it_must_exist() -> None:
    assert wrong_commands("Use `quaid timeline-add`, then `quaid get`.") == []
    assert len(wrong_commands("Use `quaid timelineadd`.")) == 1

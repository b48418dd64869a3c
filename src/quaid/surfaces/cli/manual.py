"""Help pages, made from the register."""

from collections.abc import Sequence

from quaid.operations import dispatch, index
from quaid.operations.registry import SUBJECTS, Param

WIDTH = 100
COLUMN = 17  # where the overview's second column begins
LONGEST_CHOICES = 60  # beside the name of an option; more of them stand in its text
TITLES = {
    "pages": "Pages",
    "marks": "On a page",
    "history": "On a page",
    "search": "Finding",
    "query": "Finding",
    "links": "Links and graph",
    "graph": "Links and graph",
    "truth": "Truth over time",
    "gaps": "Truth over time",
    "ingest": "Taking in",
    "merging": "Tidying up",
    "forgetting": "Tidying up",
    "briefing": "Finding",
    "overview": "Finding",
    "conversations": "Conversations",
    "notebook": "Notebook",
    "notebook_files": "Notebook",
    "models": "Models",
    "embeddings": "Models",
    "vaults": "Folders of files",
    "collections": "Folders of files",
    "restoring": "Folders of files",
    "ignoring": "Folders of files",
    "quarantine": "Folders of files",
    "status": "Looking after it",
    "upkeep": "Looking after it",
    "doctor": "Looking after it",
    "inspecting": "Looking after it",
    "upgrade": "Looking after it",
    "kb": "Knowledge base",
    "kb_upkeep": "Knowledge base",
    "kb_admin": "Knowledge base",
    "skills": "Skills for agents",
    "clients": "Programs that use it",
    "tokens": "Over HTTP",
    "daemon": "Over HTTP",
}
FIRST = ("init", "import", "connect", "doctor", "demo")
"""What a newcomer needs, above the other commands of the first part."""
HEAD = """\
quaid: the memory that you and your AI agents share. One file, offline, no keys.

Usage: quaid [--db PATH] [--json] COMMAND ...

"""
OPTIONS = """\
Options for every command
  --db PATH        the memory [QUAID_DB, ./memory.db if it exists, ~/.quaid/memory.db]
  --config FILE    settings in YAML [QUAID_CONFIG, config.yaml beside the memory]
  --json           print JSON instead of text
  --help           help on a command, as in: quaid put --help
  --version        the version of quaid, SQLite and the memory
  --tools-json     the tools that agents see, as MCP lists them
"""
FROM_FILE = " It is read from this file; - is standard input."
EVERYWHERE = "Every command takes --db PATH, --config FILE, --json and --help.\n"
KB_HEAD = """\
ai-kb: a knowledge base in a git repository, for you and your AI agents. The same as quaid kb.

Usage: ai-kb COMMAND ...

"""
KB_OPTIONS = """\
  --json           print JSON instead of text
  --help           help on a command, as in: ai-kb remember --help
  --version        the version of quaid, SQLite and the memory
"""


def overview() -> str:
    """The first page: every command or family of commands with one line."""
    from quaid.surfaces.cli.local import COMMANDS

    summaries = {name: each.summary for name, each in COMMANDS.items()}
    known = {**summaries, **{name: index.COMMANDS[name][1] for name in FIRST if name not in summaries}}
    first = {name: known[name] for name in (*FIRST, *summaries)}
    parts = [HEAD, "Start here\n", *_lines(list(first.items())), "\n"]
    for title in dict.fromkeys(TITLES[room] for room in SUBJECTS):
        rows: dict[str, str] = {}
        for name, (key, text) in index.COMMANDS.items():
            if TITLES[key.partition(".")[0]] == title:
                family = name.partition(" ")[0]
                rows.setdefault(family, text)
        parts += [title, "\n", *_lines(list(rows.items())), "\n"]
    return "".join([*parts, OPTIONS])


def _lines(rows: Sequence[tuple[str, str]]) -> list[str]:
    return _rows([(name, _line(name, text)) for name, text in rows], COLUMN)


def _line(name: str, text: str) -> str:
    """One line on a command, or the words that follow the name of a family of commands.

    A family that does something of its own when no word follows says that, too."""
    width = WIDTH - COLUMN - 2
    members = {each: key for each, (key, _) in index.COMMANDS.items() if each.startswith(name + " ")}
    family = ", ".join(dict.fromkeys(each.split(" ")[1] for each in members))
    key, own = index.COMMANDS.get(name, ("", ""))
    if not members:
        return _brief(text, width)
    return family if not key or key in members.values() else f"{_brief(own, width)}; also {family}"


def _brief(text: str, width: int) -> str:
    """As much of a text as one line holds, cut where a sentence or a part of it ends."""
    for end in (". ", ": ", "; ", ", "):
        if len(text) > width:
            text = text.partition(end)[0]
    return text.rstrip(".")


def page(name: str, program: str = "quaid") -> str:
    """The page of one command. `ai-kb`, which is `quaid kb`, shows its own as it is called itself."""
    from quaid.surfaces.cli.local import COMMANDS

    if name == "--man":
        from quaid.surfaces.cli import man

        return man.page() if program == "quaid" else man.knowledge_base()
    if program == "ai-kb" and name == "kb":
        return KB_HEAD + "".join(_rows(knowledge_base())) + "\n" + KB_OPTIONS
    if program == "ai-kb":
        return page(name).replace("Usage: quaid kb ", "Usage: ai-kb ", 1)
    if name in COMMANDS:
        local = COMMANDS[name]
        return _page(name, local.summary, local.params, local.examples)
    group = [each for each in index.COMMANDS if each.startswith(name + " ")]
    members = "".join(_rows([(each, index.COMMANDS[each][1]) for each in group]))
    if group and name not in index.COMMANDS:
        return f"Usage: quaid {name} COMMAND ...\n\n{members}"
    operation = dispatch.find_command(name)
    set_already = index.ALIASES.get(name, {})
    params = [param for param in operation.params if param.name not in set_already]
    description = "\n\n".join(filter(None, (operation.description, operation.cli_note)))
    own = _page(name, description, params, operation.examples)
    return f"{own}\nCommands\n{members}" if group else own


def knowledge_base() -> list[tuple[str, str]]:
    """The commands of `ai-kb`, without the word that it stands for, and what they do."""
    return [(name[3:], text) for name, (_, text) in index.COMMANDS.items() if name.startswith("kb ")]


def page_names() -> list[str]:
    """Every command that has a page, in the order of the overview."""
    from quaid.surfaces.cli.local import COMMANDS

    return [*COMMANDS, *index.COMMANDS]


def _page(name: str, description: str, params: Sequence[Param], examples: Sequence[str]) -> str:
    positional = [param for param in params if param.arg.positional]
    optional = [param for param in params if not param.arg.positional]
    usage = " ".join(
        ["quaid", name, *(slot(param) for param in positional), *(["[OPTIONS]"] if optional else [])]
    )
    parts = [f"Usage: {usage}\n\n", *(line + "\n" for line in _wrap(description, WIDTH)), "\n"]
    rows = [(slot(param), param.arg.help + (FROM_FILE if param.arg.file else "")) for param in positional]
    rows += [(flag(param), param.arg.help + more(param)) for param in optional]
    parts += [*_rows(rows), "\n"] if rows else []
    parts += [EVERYWHERE, "\n"]
    if examples:
        parts += ["Examples\n", *(f"  {each}\n" for each in examples)]
    return "".join(parts).rstrip() + "\n"


def slot(param: Param) -> str:
    """A plain word of a command, as its page shows it."""
    name = "FILE" if param.arg.file else param.name.upper()
    if param.kind == "array":
        name = f"{name.removesuffix('S')}..."
    return name if param.required else f"[{name}]"


def flag(param: Param) -> str:
    """An option with what its value is."""
    if param.kind == "boolean":
        return param.flag
    if _is_short(param.choices):
        return f"{param.flag} {'|'.join(param.choices)}"
    names = {"integer": "N", "number": "X", "object": "JSON"}
    kind = param.items if param.kind == "array" else param.kind
    return f"{param.flag} {names.get(kind, 'PATH' if param.arg.path else 'TEXT')}"


def _is_short(choices: Sequence[str]) -> bool:
    return 0 < len("|".join(choices)) <= LONGEST_CHOICES


def more(param: Param) -> str:
    """What stands behind the help of an option: the choices that had no room, and what holds without it."""
    choices = ""
    if param.choices and not _is_short(param.choices):
        choices = f" One of {', '.join(param.choices)}."
    if param.required:
        return f"{choices} (required)"
    return f"{choices} [{param.default}]" if param.default not in (None, "", False, ()) else choices


def _rows(rows: Sequence[tuple[str, str]], column: int = 0) -> list[str]:
    column = column or min(34, max((len(name) for name, _ in rows), default=0)) + 2
    lines: list[str] = []
    for name, text in rows:
        wrapped = _wrap(text, WIDTH - column - 2)
        if len(name) + 2 > column:
            lines.append(f"  {name}\n")
            name = ""
        lines += [f"  {name if not number else '':{column}}{line}\n" for number, line in enumerate(wrapped)]
    return lines


def _wrap(text: str, width: int) -> list[str]:
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

"""Rewrite messages for agents: replace commands by tool calls, and mark what only a person can do.

Errors and notes are written for the command line, as in "`quaid get SLUG` shows a page". An agent reads
"memory_get(slug=SLUG) shows a page". Commands without a tool, such as `quaid embed`, are for the user to run.
"""

import re
from typing import Any

from quaid.errors import QuaidError
from quaid.operations import dispatch, index
from quaid.operations.registry import Operation

_COMMAND = re.compile(
    r"`((?:quaid|ai-kb|git|pip|pipx|uv|systemctl|launchctl|sha256sum|optimum-cli)(?: [^`]*)?)`"
)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_CLAUSE_START = re.compile(r"(?:^|[.;:?!,]\s)$")
_VERB = re.compile(r" (?=[a-z]+s\b)")  # the space before a verb, as in "`quaid embed` makes the others"

_TOOL_OF = {operation: tool for tool, operation in index.TOOLS.items()}
# Only a person may erase or merge pages directly; these tools propose it.
_PROPOSING_TOOLS = {"forget": "memory_forget", "merge": "memory_merge"}

_FOR_A_PERSON = frozenset(
    {
        *("invalid_config", "missing_database", "not_a_database", "newer_database", "damaged_database"),
        *("unsafe_sqlite", "migration_failed", "read_only", "disk_full", "notebook_gone"),
        *("unknown_model", "invalid_model", "model_in_use", "embedder_unavailable"),
        *("store_missing", "store_occupied", "remote_occupied", "unsafe_store", "store_dirty"),
        *("store_diverged", "git_missing", "git_failed"),
    }
)
"""Codes of errors that an agent cannot resolve with any tool."""

_NEXT = {
    "unknown_tool": "Call one of the tools in your list.",
    "not_allowed": "Ask the user for a token with that scope.",
    "defect": "Ask the user to report this bug in Quaid.",
}
"""What an agent can do about errors whose remedy on the command line does not help an agent."""

RARE_ARGUMENTS: dict[str, frozenset[str]] = {
    "memory_query": frozenset({"depth", "wing", "tag", "collection", "limit", "explain"}),
    "memory_put": frozenset({"replace_timeline"}),
    "memory_ingest": frozenset({"force"}),
    "memory_facts": frozenset({"limit"}),
    "memory_briefing": frozenset({"due", "limit", "short"}),
    "remember": frozenset({"file", "section"}),
}
"""Arguments that the short lists leave out to save context. Calls may still use them."""

_LISTED_INSTEAD = (
    # A server makes vectors in the background, so the user need not do anything.
    (re.compile(r"; `quaid embed` makes the others"), "; the others follow in the background"),
    (re.compile(r"`quaid (?:list` shows all|search WORDS` finds) pages"), "memory_query finds pages"),
    (re.compile(r"`quaid search` looks into the texts"), "memory_query looks into the texts"),
    (re.compile(r"`quaid recall` shows what is there"), "memory_query shows what is there"),
    (re.compile(r"; `quaid (?:stats` shows the types in use|check` finds new ones)"), ""),
    (
        re.compile(r"`quaid check (\S+)` shows what contradicts what"),
        r"memory_get(slug=\1): see what is right",
    ),
)
"""Advice that does not fit agents, mostly because its tool is not in the default list, and what they read instead."""

GUIDANCE_FIELDS = frozenset({"note", "notes", "next_step", "next_steps", "remedy", "hint", "nudge"})
"""Fields of records with text for the reader, in which commands are replaced.

Text in other fields is not changed.
"""


def for_agent(text: str, operation: Operation | None = None) -> str:
    """Return the text with commands replaced by tools, and flags of `operation` replaced by argument names."""
    for advice, instead in _LISTED_INSTEAD:
        text = advice.sub(instead, text)
    parts: list[str] = []
    end = 0
    for match in _COMMAND.finditer(text):
        parts.append(_without_flags(text[end : match.start()], operation))
        end = match.end()
        if call := tool_call(match[1]):
            parts.append(call)
            continue
        before = "".join(parts)
        if not _CLAUSE_START.search(before):
            parts.append(f"{match[0]} (ask the user to run it)")
            continue
        verb = "ask" if before.endswith((",", "; ", ": ", ", ")) else "Ask"
        parts.append(f"{verb} the user to run {match[0]}")
        if _VERB.match(text, end):
            parts.append(", which")
    parts.append(_without_flags(text[end:], operation))
    return "".join(parts)


def tool_call(command: str) -> str:
    """Return the tool call that does what a command does, as in memory_get(slug=SLUG), or ""."""
    program, *words = command.split()
    if program == "ai-kb":
        words = ["kb", *words]
    elif program != "quaid":
        return ""
    for length in range(len(words), 0, -1):
        name = " ".join(words[:length])
        tool = _PROPOSING_TOOLS.get(name) or _TOOL_OF.get(index.COMMANDS.get(name, ("",))[0], "")
        if tool:
            arguments = _arguments(dispatch.find_tool(tool), words[length:])
            return f"{tool}({', '.join(arguments)})" if arguments else tool
        if name in index.COMMANDS:
            return ""  # only the owner may run the command
    return ""


def is_listed(text: str) -> bool:
    """Return True if a text for agents names only tools and arguments of the default list."""
    names = [name for name in re.findall(r"\w+", text) if name in index.TOOLS]
    rare = {argument for name in names for argument in RARE_ARGUMENTS.get(name, ())}
    return index.CORE_TOOLS.issuperset(names) and not rare & set(re.findall(r"\b(\w+)=", text))


def _arguments(operation: Operation, words: list[str]) -> list[str]:
    """Return the words of a command as arguments of a tool. Flags that the tool does not have are left out."""
    positional = [param for param in operation.params if param.arg.positional]
    flags = {param.flag: param for param in operation.params}
    arguments: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word.startswith("--"):
            param = flags.get(word)
            is_switch = param is not None and param.kind == "boolean"
            value = "true" if is_switch else next(remaining, "…")
        else:
            param, value = positional.pop(0) if positional else None, word
        if param is not None:
            arguments.append(f"{param.name}={'TEXT' if param.arg.file else value}")
    return arguments


def _without_flags(text: str, operation: Operation | None) -> str:
    if operation is None or "--" not in text:
        return text
    names = {param.flag: param.name for param in operation.params}
    return _FLAG.sub(lambda match: names.get(match[0], match[0]), text)


def failure_record(error: QuaidError, operation: Operation | None = None) -> dict[str, Any]:
    """Return an error as an agent reads it: code, message, what to do next, and details that the message lacks.

    The first sentence of an error says what is wrong, and the other sentences what to do.
    """
    template = " ".join((type(error).__doc__ or "").split())
    problem, _, remedy = template.replace("{hint}", " {hint}").partition(". ")
    facts = {"hint": "", **error.facts}
    message = problem.format(**facts).strip()
    next_step = " ".join(remedy.format(**facts).split())
    if not next_step and "{hint}" in problem:  # the message is one sentence and a hint
        message, next_step = problem.replace("{hint}", "").format(**facts).strip(), str(facts["hint"])
    if error.code in _NEXT:
        next_step = " ".join(filter(None, (str(facts["hint"]), _NEXT[error.code])))
    elif error.code in _FOR_A_PERSON:
        next_step = f"Ask the user: {next_step}" if next_step else ""
    else:
        next_step = for_agent(next_step, operation)
    if operation is not None and error.code == "version_conflict":
        next_step = _next_after_conflict(operation.tool, facts) or next_step
    if not next_step and operation is not None and error.code == "invalid_argument":
        next_step = _usage(operation)
    message = for_agent(message, operation)
    record = {"code": error.code, "message": message if message.endswith((".", "?")) else f"{message}."}
    if next_step:
        record["next"] = next_step
    return record | _further_facts(error, f"{error} {message}", record)


def _next_after_conflict(tool: str, facts: dict[str, Any]) -> str:
    if "current_text" in facts:
        return f"Merge your change into current_text and call {tool} with it and this content_hash."
    if "conflicts" in facts:
        return (
            "Nothing was written. For each entry of conflicts, merge your change into its current_text, or into what"
            f" memory_get returns if it has none; then call {tool} once more with all changes and the content_hash of"
            " each page."
        )
    if facts.get("current_version"):
        return (
            "The text is too long for this error: read it with memory_get, merge, and send its content_hash."
        )
    return ""


def _usage(operation: Operation) -> str:
    required = [param.name for param in operation.params if param.required]
    rare = RARE_ARGUMENTS.get(operation.tool, frozenset())
    optional = [param.name for param in operation.params if not param.required and param.name not in rare]
    needs = f" needs {', '.join(required)}" if required else ""
    takes = f"{' and' if needs else ''} takes {', '.join(optional)}" if optional else ""
    return f"{operation.tool}{needs}{takes}." if needs or takes else f"{operation.tool} takes no arguments."


def _further_facts(error: QuaidError, message: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the details of an error that can be represented in JSON, except strings that its message contains."""
    return {
        key: value
        for key, value in error_facts(error).items()
        if key not in record and not (isinstance(value, str) and value.strip() in message)
    }


def error_facts(error: QuaidError) -> dict[str, Any]:
    """Return the details of an error that can be represented in JSON, such as the current version of a page."""
    return {key: value for key, value in error.facts.items() if isinstance(value, str | int | float | list)}

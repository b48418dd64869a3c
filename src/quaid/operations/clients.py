"""Connect other programs to this memory: settings of MCP clients, agent instructions and skills."""

import os
from collections.abc import Callable
from difflib import unified_diff
from typing import Annotated, Literal, NamedTuple

from quaid import clients as known_clients, skills
from quaid.app import Brain
from quaid.clients import CLIENTS, Client, ClientPaths, ConfigChange, LaunchCommand, find_client, shell_quote
from quaid.errors import ClientFile, InvalidArgument, NotFound, QuaidError
from quaid.formats.config_text import UnreadableConfig
from quaid.operations.dispatch import suggestion
from quaid.operations.instructions import instructions_for_file
from quaid.operations.kb import client_paths, kb_rule
from quaid.operations.registry import Arg, op
from quaid.skills import Extracted, Layer, Problem, Skill

ClientName = Literal[
    "claude-code", "claude-desktop", "cursor", "codex", "vscode", "windsurf", "zed", "gemini-cli"
]
ClientArg = Annotated[ClientName, Arg("The client.", positional=True)]
DryRun = Annotated[bool, Arg("Only show what would be changed.")]
InProject = Annotated[bool, Arg("The settings of the project in this folder, not the global ones.")]


class FileRecord(NamedTuple):
    path: str
    outcome: Literal["made", "changed", "as it should be"]
    backup: str | None
    difference: str  # unified diff; set only in a dry run


class ConnectRecord(NamedTuple):
    client: str
    title: str
    connected: bool  # False after disconnect, and if the caller named no client
    dry_run: bool
    files: tuple[FileRecord, ...]
    next_step: str
    clients: "tuple[ClientRecord, ...]" = ()  # set if the caller named no client


class ClientRecord(NamedTuple):
    client: str
    title: str
    state: Literal["connected", "another memory", "not connected", "not installed", "unreadable"]
    path: str
    detail: str


@op(
    "owner",
    examples=(
        "quaid connect",
        "quaid connect claude-code --dry-run",
        "quaid connect claude-code --instructions --kb",
        "quaid connect codex --project",
        "quaid connect cursor --only work",
    ),
)
def connect(
    brain: Brain,
    client: Annotated[ClientName | None, Arg("The client [list all].", positional=True)] = None,
    dry_run: DryRun = False,
    project: InProject = False,
    instructions: Annotated[
        bool, Arg("Also add instructions for agents to its CLAUDE.md or AGENTS.md; Codex always needs them.")
    ] = False,
    kb: Annotated[bool, Arg("Add instructions and tools for the knowledge base.")] = False,
    only: Annotated[
        list[str] | None,
        Arg("The collections, wing:NAME or project:NAME that it may see [the whole memory]."),
    ] = None,
) -> ConnectRecord:
    """Add this memory to a client's settings: the MCP server and, for Claude Code, the hooks.

    The rest of the file is not changed, a backup is made beside it, and repeating it changes nothing. Without a
    client, list all clients and whether they are connected.
    """
    if client is None:
        states = tuple(_client_record(brain, client) for client in CLIENTS.values())
        return ConnectRecord("", "", False, dry_run, (), "", states)
    chosen, where, started = find_client(client), client_paths(brain), _launch_command(brain)
    parts = () if only is None else brain.check_only(only)
    started = started._replace(tools="core,kb" if kb else "", only=parts)
    is_missing = not project and not _is_present(chosen, where)
    changes = [
        _change(
            _server_file(chosen, where, project), lambda text: known_clients.add_server(chosen, text, started)
        )
    ]
    hooks = chosen.project_hooks if project else chosen.hooks
    if hooks:
        commands = known_clients.hook_commands(started, shell_quote(where.platform), chosen.name)
        changes.append(_change(where.path(hooks), lambda text: known_clients.add_hooks(text, commands)))
    # Other people use the instruction file of a project too, so it is changed only with `instructions`.
    if instructions or (chosen.instructions and not chosen.shows_instructions and not project):
        path = _instructions_file(chosen, where, project)
        body = instructions_for_file()
        changes.append(_change(path, lambda text: known_clients.add_instructions(text, body)))
    if kb:
        path = where.path(_rules_file(chosen, project))
        changes.append(_change(path, lambda text: known_clients.add_instructions(text, kb_rule(brain))))
    record = _apply_changes(brain, chosen, changes, dry_run, connected=True)
    if is_missing and record.next_step:
        place = where.path(chosen.marks[0])
        return record._replace(next_step=f"{chosen.title} is not installed yet: there was no {place}")
    return record


def _is_present(client: Client, where: ClientPaths) -> bool:
    """Return True if a client seems to be installed."""
    return any(os.path.exists(where.path(mark)) for mark in client.marks)


@op("owner", examples=("quaid disconnect cursor", "quaid disconnect claude-code --dry-run"))
def disconnect(
    brain: Brain, client: ClientArg, dry_run: DryRun = False, project: InProject = False
) -> ConnectRecord:
    """Remove this memory from a client's settings: its server, hooks and instructions, and nothing else."""
    chosen, where = find_client(client), client_paths(brain)
    servers = _server_file(chosen, where, project)
    before = known_clients.text_before_install(
        servers, lambda text: known_clients.find_server(chosen, text) is not None
    )
    changes = [_change(servers, lambda text: known_clients.remove_server(chosen, text, before))]
    if hooks := chosen.project_hooks if project else chosen.hooks:
        without = known_clients.text_before_install(
            where.path(hooks), lambda text: bool(known_clients.installed_hooks(text))
        )
        changes.append(_change(where.path(hooks), lambda text: known_clients.remove_hooks(text, without)))
    own = (
        (chosen.project_instructions, chosen.project_rules)
        if project
        else (chosen.instructions, chosen.rules)
    )
    changes += [_change(where.path(path), known_clients.remove_instructions) for path in own if path]
    return _apply_changes(brain, chosen, changes, dry_run, connected=False)


def _rules_file(client: Client, project: bool) -> str:
    """Return the path pattern of the client's rules file. Raises InvalidArgument if the client has none."""
    pattern = client.project_rules if project else client.rules
    if not pattern:
        remedy = "paste the text of AGENT_CONTRACT.org in the knowledge base"
        raise InvalidArgument(name="kb", problem=f"{client.title} has no folder for rules; {remedy}")
    return pattern


def _launch_command(brain: Brain) -> LaunchCommand:
    return known_clients.launch_command(brain.settings.db_path, brain.settings.environ)


def _server_file(client: Client, where: ClientPaths, project: bool) -> str:
    if project and not client.project_servers:
        raise InvalidArgument(name="project", problem=f"{client.title} has no project settings; omit it")
    return where.path(client.project_servers if project else client.servers)


def _instructions_file(client: Client, where: ClientPaths, project: bool) -> str:
    pattern = client.project_instructions if project else client.instructions
    if not pattern:
        remedy = (
            "add --project" if client.project_instructions else "paste the output of `quaid instructions`"
        )
        raise InvalidArgument(
            name="instructions",
            problem=f"{client.title} has no file for global instructions; {remedy}",
        )
    return where.path(pattern)


def _change(path: str, edit: Callable[[str], str]) -> ConfigChange:
    before = known_clients.read_config(path)
    try:
        return ConfigChange(path, before, edit(before or ""))
    except UnreadableConfig as error:
        raise ClientFile(path=path, problem=str(error)) from None


def _apply_changes(
    brain: Brain, client: Client, changes: list[ConfigChange], dry_run: bool, connected: bool
) -> ConnectRecord:
    """Write the changed files, unless this is a dry run, and return what was done.

    All files must have been parsed before, so that a malformed file leaves every file unchanged.
    """
    done = [
        _write_change(brain, change, dry_run)
        for change in changes
        if change.before is not None or change.after
    ]
    step = ""
    if connected and not dry_run and any(change.outcome != "as it should be" for change in done):
        step = f"Restart {client.title} to use the memory"
        if not brain.create_if_missing():
            step = f"`quaid init {brain.settings.db_path}` creates the memory; then restart {client.title}"
    return ConnectRecord(client.name, client.title, connected, dry_run, tuple(done), step)


def _write_change(brain: Brain, change: ConfigChange, dry_run: bool) -> FileRecord:
    if not change.needed:
        return FileRecord(change.path, "as it should be", None, "")
    outcome: Literal["made", "changed"] = "made" if change.before is None else "changed"
    if dry_run:
        return FileRecord(change.path, outcome, None, _unified_difference(change))
    return FileRecord(change.path, outcome, known_clients.write_config(change, brain.now()), "")


def _unified_difference(change: ConfigChange) -> str:
    old = change.path if change.before is not None else "/dev/null"
    lines = (change.before or "").splitlines(), change.after.splitlines()
    return "\n".join(unified_diff(*lines, old, change.path, lineterm=""))


def _client_record(brain: Brain, client: Client) -> ClientRecord:
    where, started = client_paths(brain), _launch_command(brain)
    path = reading = where.path(client.servers)

    def record(state: str, detail: str = "") -> ClientRecord:
        return ClientRecord(client.name, client.title, state, reading, detail)  # type: ignore[arg-type]

    try:
        entry = known_clients.find_server(client, known_clients.read_config(path) or "")
        reading = where.path(client.hooks) if client.hooks else path
        hooks = (
            known_clients.installed_hooks(known_clients.read_config(reading) or "") if client.hooks else []
        )
        reading = path
    except (QuaidError, UnreadableConfig) as error:
        facts = error.facts if isinstance(error, QuaidError) else {}
        return record("unreadable", str(facts.get("problem", error)))
    if isinstance(entry, dict):
        args = entry.get("args")
        ours = isinstance(args, list) and args[-1:] == [started.db]
        if not ours:
            return record("another memory", str((args or ["?"])[-1]))
        complete = len(hooks) == len(known_clients.HOOK_EVENTS) or not client.hooks
        return record("connected", "" if complete else "some hooks are missing")
    return record("not connected" if _is_present(client, where) else "not installed")


class SkillsRecord(NamedTuple):
    skills: tuple[Skill, ...]  # the skills in effect
    problems: tuple[Problem, ...]
    layers: tuple[Layer, ...] = ()  # set only by `skills doctor`; later layers override earlier ones

    @property
    def exit_status(self) -> int:
        return 1 if self.layers and self.problems else 0


class SkillsExtractRecord(NamedTuple):
    folder: str
    skills: tuple[Extracted, ...]


class SkillRecord(NamedTuple):
    name: str
    description: str
    origin: str
    path: str
    sha256: str
    text: str


@op(
    "owner",
    command="skills list",
    aliases={"skills": {}},
    examples=("quaid skills", "quaid skills list --json"),
)
def skills_list(brain: Brain) -> SkillsRecord:
    """List the skills in effect, with their descriptions."""
    order = skills.layers(brain.settings.skill_folders)
    return SkillsRecord(tuple(skills.resolved(order)), _skill_problems(order))


@op("owner", command="skills doctor", examples=("quaid skills doctor",))
def skills_doctor(brain: Brain) -> SkillsRecord:
    """Show all layers of skills in order, with hashes, overrides and problems. Exits 1 if there is a problem."""
    order = skills.layers(brain.settings.skill_folders)
    return SkillsRecord(tuple(skills.resolved(order)), _skill_problems(order), tuple(order))


@op(
    "owner",
    command="skills extract",
    examples=("quaid skills extract", "quaid skills extract --dir ./skills"),
)
def skills_extract(
    brain: Brain,
    dir: Annotated[str | None, Arg("The folder to write into [~/.quaid/skills].", path=True)] = None,
    force: Annotated[bool, Arg("Also replace files that differ.")] = False,
) -> SkillsExtractRecord:
    """Write the built-in skills into a folder, where they can be changed. Without --force, changed files are kept."""
    folder = brain.settings.skill_folders[0]
    if dir is not None:
        folder = os.path.abspath(os.path.join(brain.settings.cwd, os.path.expanduser(dir)))
    return SkillsExtractRecord(folder, tuple(skills.extract(folder, force)))


@op("owner", command="skills show", examples=("quaid skills show setup",))
def skills_show(
    brain: Brain, name: Annotated[str, Arg("The skill, as in setup.", positional=True)]
) -> SkillRecord:
    """Print the text of a skill, for an agent to read."""
    by_name = {skill.name: skill for skill in skills.effective_skills(brain.settings.skill_folders)}
    if name not in by_name:
        hint = suggestion(name, by_name) or "`quaid skills` lists all skills."
        raise NotFound(what="skill", name=name, hint=hint)
    skill = by_name[name]
    return SkillRecord(
        skill.name, skill.description, skill.origin, skill.path, skill.sha256, skills.text_of(skill)
    )


def _skill_problems(order: list[Layer]) -> tuple[Problem, ...]:
    return tuple(problem for layer in order for problem in layer.problems)

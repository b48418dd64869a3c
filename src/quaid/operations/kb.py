"""The knowledge base: query, show, remember, curate, lint, commit, push and administer nodes."""

import os
import shutil
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from quaid import clients
from quaid.app import Brain
from quaid.clients import CLIENTS, ClientPaths
from quaid.config import Settings
from quaid.errors import FileTrouble, InvalidArgument, QuaidError, StoreLocked, StoreMissing
from quaid.formats.config_text import UnreadableConfig
from quaid.kb import (
    catalog as catalogs,
    edits,
    health,
    layout,
    node as nodes,
    setup,
    transaction,
)
from quaid.kb.catalog import Catalog, KbMatch
from quaid.kb.edits import MAX_CAPTURE_BYTES
from quaid.kb.git import Git
from quaid.kb.health import CurationReport, KbStatus
from quaid.kb.node import (
    CREATOR_PATTERN,
    CREATORS,
    CURATED_PROPERTY,
    LintFinding,
    Node,
    NodeDraft,
    NodeFilters,
)
from quaid.kb.setup import KbCheck, KbInitReport, KbTimerReport
from quaid.kb.transaction import ChangeResult, StoreChange
from quaid.model.plain_text import count_noun
from quaid.operations.registry import Arg, Named, op
from quaid.storage import chunks
from quaid.storage.collections import Collections
from quaid.storage.text_index import SearchFilters


def session_nudge(settings: Settings) -> str:
    """Return the reminder that `ai-kb status` prints last, if there is one, else "".

    It is also "" if the caller sees no knowledge base of Quaid.
    """
    path = settings.kb_root
    if not settings.sees("kb") or not os.path.isdir(os.path.join(path, ".git")):
        return ""
    has_contract = os.path.isfile(os.path.join(path, layout.CONTRACT_FILE))
    if not has_contract and transaction.foreign_store(Git(path, settings.environ)):
        return ""
    return health.session_nudge(path, settings.environ)


NodeName = Annotated[
    str, Arg("The node: its ID, the beginning of it, a pointer, or its title.", positional=True)
]
NodeType = Literal["principle", "preference", "procedure", "observation", "reference"]
NO_MATCH, BROKEN_INDEX = 1, 3
"""Exit statuses of `ai-kb query`. The exit status for a missing knowledge base is that of StoreMissing."""


class NodeRecord(NamedTuple):
    """A node as operations return it, without its text."""

    title: str
    id: str
    summary: str
    type: str
    projects: tuple[str, ...]
    status: str
    updated: str
    path: str


class KbQueryRecord(NamedTuple):
    context: str
    matches: tuple[KbMatch, ...]
    note: str
    """A problem with the index, or the reason why vector search was not used; "" if neither applies."""
    index_is_stale: bool

    @property
    def warning(self) -> str:
        return self.note

    @property
    def exit_status(self) -> int:
        return BROKEN_INDEX if self.index_is_stale else 0 if self.matches else NO_MATCH


class KbShowRecord(NamedTuple):
    node: NodeRecord
    text: str | None
    """The text of the node's file; None in the result of `kb backlinks`."""
    links: tuple[NodeRecord, ...]
    backlinks: tuple[NodeRecord, ...]
    note: str = ""
    """A warning if no node has the given ID and the node was found by its title, else ""."""


class KbRememberRecord(NamedTuple):
    node: NodeRecord
    commit: str
    created: bool
    """False if text was added to an existing node."""
    contradicts: tuple[Any, ...]
    """Nodes that the new text contradicts. They and the written node are contested until the user decides."""
    offline: str
    """Why the remote could not be reached, or ""."""
    findings: tuple[LintFinding, ...] = ()
    """With `dry_run`: the lint findings for the node."""


class KbListRecord(NamedTuple):
    nodes: tuple[NodeRecord, ...]
    """The nodes, most recently changed first."""
    total: int
    """Number of matching nodes. `nodes` may contain fewer."""
    tags: tuple[str, ...]
    """Tags of all nodes, including their types."""
    projects: tuple[str, ...]


class KbEditRecord(NamedTuple):
    node: NodeRecord
    findings: tuple[LintFinding, ...]
    """Lint findings for the new text. A fatal finding stops the edit."""
    changed: bool
    commit: str

    @property
    def exit_status(self) -> int:
        return int(any(finding.fatal for finding in self.findings))


@op("read", command="kb list", tool="kb_list", examples=("ai-kb list", "ai-kb list --status contested"))
def kb_list(
    brain: Brain,
    tag: Annotated[str, Arg("Only nodes with this tag or of this type.")] = "",
    project: Annotated[str, Arg("Only nodes of this project.")] = "",
    status: Annotated[
        Literal["current", "contested", "superseded"] | None, Arg("Only nodes of this status.")
    ] = None,
    limit: Annotated[int, Arg("How many nodes.", minimum=1, maximum=1_000)] = 100,
) -> KbListRecord:
    """List the nodes of the knowledge base, the latest change first."""
    every = load_catalog(brain).nodes
    listed = sorted(filter(NodeFilters(tag, project, status or "").match, every), key=lambda node: node.title)
    listed.sort(key=lambda node: node.updated, reverse=True)
    return KbListRecord(
        tuple(map(node_record, listed[:limit])),
        len(listed),
        tuple(sorted({name for node in every for name in node.tags})),
        tuple(sorted({name for node in every for name in node.projects})),
    )


@op(
    "owner",
    command="kb edit",
    examples=("ai-kb edit 5b1c2d3e node.org --dry-run", "ai-kb edit 5b1c2d3e node.org"),
)
def kb_edit(
    brain: Brain,
    node: NodeName,
    content: Annotated[str, Arg("The new text of the whole file, in org.", positional=True, file=True)],
    expected: Annotated[
        str | None, Arg("SHA-256 of the text that you read. The edit fails if the node has another text.")
    ] = None,
    dry_run: Annotated[bool, Arg("Only lint the new text.")] = False,
) -> KbEditRecord:
    """Replace the text of a node and commit it, after linting it. The ID stays, and :UPDATED: becomes today."""
    git = open_store(brain)

    def plan(catalog: Catalog) -> StoreChange:
        return edits.plan_edit(
            catalog, catalogs.find_node(catalog, node), content, expected=expected, today=_today(brain)
        )

    catalog = load_catalog(brain)
    planned = plan(catalog)
    findings = tuple(transaction.check_change(catalog, planned))
    changed, commit = bool(planned.files), ""
    if changed and not dry_run and not any(finding.fatal for finding in findings):
        done = transaction.apply_change(git, brain.now(), "edit", plan)
        planned, commit = planned._replace(details=done.details), done.commit
    return KbEditRecord(node_record(planned.details[0]), findings, changed, commit)


@op(
    "read",
    command="kb query",
    tool="kb_query",
    examples=("ai-kb query formatter", "ai-kb query 'mirror a repository' --project general --json"),
    cli_note="Exits 1 when nothing matches, 3 when the index is stale, 5 when there is no knowledge base.",
)
def kb_query(
    brain: Brain,
    query: Annotated[str, Arg("Words to search for.", positional=True, any_text=True, question=True)],
    limit: Annotated[int, Arg("How many nodes.", minimum=1, maximum=200)] = 10,
    type: Annotated[NodeType | None, Arg("Only nodes of this type.")] = None,
    project: Annotated[str | None, Arg("Only nodes of this project, as in emacs or general.")] = None,
    status: Annotated[
        Literal["current", "contested", "superseded"] | None, Arg("Only nodes of this status.")
    ] = None,
    semantic: Annotated[bool, Arg("Also search by meaning, as `quaid query` does.")] = False,
) -> KbQueryRecord:
    """Search the knowledge base: principles, preferences, procedures, observations, references.

    Search before choosing a convention or starting a procedure."""
    catalog = load_catalog(brain)
    if not query.strip():
        raise InvalidArgument(name="query", problem="is empty; say what it is about")
    filters = NodeFilters(type or "", project or "", status or "")
    most = len(catalog.files) if semantic else limit
    matches = tuple(catalogs.query_nodes(catalog, query, most=most, filters=filters))
    note = ""
    if semantic:
        matches, note = with_semantic_matches(brain, catalog, query, filters, matches, limit)
    stale = _index_problem(catalog)
    return KbQueryRecord(query, matches, stale or note, bool(stale))


@op(
    "read",
    command="kb show",
    tool="kb_show",
    examples=("ai-kb show 5b1c2d3e", "ai-kb show 'How we name branches'"),
)
def kb_show(brain: Brain, node: NodeName) -> KbShowRecord:
    """Show a node of the knowledge base, what it links to and what links to it.

    A pointer `ai-kb: Title (UUID)` is resolved by its ID, and by its title if no node has that ID."""
    catalog = load_catalog(brain)
    shown, note = catalogs.find_node_to_read(catalog, node)
    by_id = {id: node for node in catalog.nodes for id in (node.id, *node.merged, *node.inner)}
    links = dict.fromkeys(by_id[link.id] for link in shown.links if link.id in by_id)
    return KbShowRecord(
        node_record(shown),
        catalog.text(shown.path),
        tuple(map(node_record, links)),
        tuple(map(node_record, catalogs.nodes_linking_to(catalog, shown))),
        note,
    )


@op("read", command="kb backlinks", tool="kb_backlinks", examples=("ai-kb backlinks 5b1c2d3e",))
def kb_backlinks(brain: Brain, node: NodeName) -> KbShowRecord:
    """List the nodes that link to a node. Raw texts and the index do not count."""
    catalog = load_catalog(brain)
    target, note = catalogs.find_node_to_read(catalog, node)
    backlinks = tuple(map(node_record, catalogs.nodes_linking_to(catalog, target)))
    return KbShowRecord(node_record(target), None, (), backlinks, note)


@op("read", command="kb status", tool="kb_status", examples=("ai-kb status", "ai-kb status --json"))
def kb_status(brain: Brain) -> KbStatus:
    """Show the state of the knowledge base: nodes, commits to push, problems, whether curation is due."""
    return health.store_status(open_store(brain))


@op(
    "write",
    command="kb remember",
    tool="kb_remember",
    adds_only=True,
    examples=(
        "ai-kb remember 'Run black before ruff.' --title 'Formatter order' --summary 'black first, then ruff'"
        " --type principle",
        "ai-kb remember --file notes.org --title 'Mirror a repository' --summary 'How to mirror a repository'"
        " --type procedure --projects general --links 'RELATES_TO 5b1c2d3e'",
        "ai-kb remember 'It also holds for tests.' --add-to 5b1c2d3e",
    ),
)
def kb_remember(
    brain: Brain,
    content: Annotated[str, Arg("The text of the node, in org.", positional=True, any_text=True)] = "",
    file: Annotated[str | None, Arg("File with the text (- is standard input).", file=True)] = None,
    title: Annotated[str, Arg("A short title.")] = "",
    summary: Annotated[str, Arg("One sentence with the words that a search would use.")] = "",
    type: Annotated[NodeType, Arg("What kind of knowledge it is.")] = "observation",
    tags: Annotated[list[str] | None, Arg("Further tags, as in build,ci.")] = None,
    projects: Annotated[list[str] | None, Arg("Slugs of projects, as in emacs,python [general].")] = None,
    confidence: Annotated[
        Literal["user-stated", "observed", "inferred", "external"], Arg("How certain it is.")
    ] = "observed",
    source: Annotated[str, Arg("Where it comes from, as in chat 2026-05-24, or a path below raw/.")] = "",
    visibility: Annotated[Literal["personal", "work-private"], Arg("Who may see it.")] = "personal",
    links: Annotated[
        list[str] | None,
        Arg(
            "Related nodes: IDs or titles, optionally after RELATES_TO, IMPLEMENTS, DERIVED_FROM or CONTRADICTS,"
            " which makes both contested."
        ),
    ] = None,
    created_by: Annotated[str | None, Arg("The author, as in claude-code [human, or the agent].")] = None,
    add_to: Annotated[str | None, Arg("Add the text to this node instead of writing a new one.")] = None,
    force: Annotated[
        bool, Arg("Write it even if a similar node exists or it contradicts the node of `add_to`.")
    ] = False,
    dry_run: Annotated[bool, Arg("Only lint it.")] = False,
) -> KbRememberRecord:
    """Write a node and commit it: lasting, general knowledge, not details of one project.

    Fetches first, rebuilds the index and lints everything; a failure changes nothing. A node that contradicts
    another one is written, and both are contested until a person decides. An addition that contradicts its node is
    refused, and the error has both sentences."""
    body = "\n".join(part for part in (content, file or "") if part.strip())
    if not body.strip():
        raise InvalidArgument(name="content", problem="is empty; say what to remember")
    agent = brain.agent if not brain.agent or CREATOR_PATTERN.match(brain.agent) else "agent"
    writer = created_by or agent or "human"
    if agent and writer == "human":
        writer = agent  # an agent may quote a person, but may not record the person as the author
    if writer not in (*CREATORS, agent):
        raise InvalidArgument(name="created_by", problem=f"must be one of {', '.join(CREATORS)}")
    git, local = open_store(brain), brain.local()
    names = links or ()

    def add(catalog: Catalog) -> StoreChange:
        node = catalogs.find_node(catalog, str(add_to))
        return edits.plan_addition(catalog, node, body, names, local=local, summary=summary, force=force)

    def write(catalog: Catalog) -> StoreChange:
        id = edits.free_id(catalog, brain.random_uuid)
        return edits.plan_node(catalog, draft, names, id=id, local=local, force=force)

    if add_to is not None:
        options = {"title": title, "tags": tags, "projects": projects, "source": source}
        for name in (name for name, value in options.items() if value):
            problem = "belongs to a new node; --add-to takes the text, --summary and --links"
            raise InvalidArgument(name=name, problem=problem)
        edits.check_summary(summary)
    else:
        draft = edits.check_draft(
            NodeDraft(
                title,
                summary,
                body,
                type,
                tuple(tags or ()),
                tuple(projects or ()),
                writer,
                confidence,
                visibility,
                source or f"{'chat' if writer != 'human' else 'written'} {local[:10]}",
            )
        )
    plan = write if add_to is None else add
    if dry_run:
        catalog = load_catalog(brain)
        planned = plan(catalog)
        findings = tuple(transaction.check_change(catalog, planned))
        node, opposites = planned.details
        return KbRememberRecord(node_record(node), "", add_to is None, opposites, "", findings)
    if brain.rehearsal is not None:
        planned = plan(load_catalog(brain))
        brain.rehearsal.files += [
            (layout.KB_KIND, path, _stored_text(brain, path), (data or b"").decode())
            for path, data in planned.files.items()
        ]
        return KbRememberRecord(node_record(planned.details[0]), "", add_to is None, planned.details[1], "")
    done = transaction.apply_change(git, brain.now(), "remember", plan)
    node, opposites = done.details
    if brain.agent:
        _index_as_agent(brain, [node.path])
    return KbRememberRecord(node_record(node), done.commit, add_to is None, opposites, done.offline)


# Shared helpers


def _stored_text(brain: Brain, path: str) -> str:
    """Return the text of a file of the knowledge base, or "" if there is none."""
    try:
        with open(os.path.join(brain.settings.kb_root, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _index_as_agent(brain: Brain, paths: list[str]) -> None:
    """Index files that an agent has just written, and record the agent as their author.

    Do nothing unless the knowledge base is attached as a collection.
    """
    if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
        return
    from quaid.operations import notebook

    root = os.path.realpath(brain.settings.kb_root)
    for collection in Collections(brain.db).all():
        if collection.kind == layout.KB_KIND and collection.root == root:
            notebook.sync_folder(brain, collection, paths, authored=True)


def open_store(brain: Brain) -> Git:
    """Return the Git repository of the knowledge base. Raise StoreMissing if there is none."""
    return Git(existing_root(brain), brain.settings.environ)


def load_catalog(brain: Brain) -> Catalog:
    """Load all nodes. Git is run only if the contract is missing, to check whose repository it is."""
    return catalogs.load_catalog(existing_root(brain))


def existing_root(brain: Brain) -> str:
    """Return the folder of the knowledge base. Raise StoreMissing if the caller sees none."""
    path = brain.settings.kb_root
    if not brain.settings.sees(layout.KB_KIND) or not os.path.isdir(os.path.join(path, ".git")):
        raise StoreMissing(path=path)
    if not os.path.isfile(os.path.join(path, layout.CONTRACT_FILE)):
        transaction.require_own_store(Git(path, brain.settings.environ))
    return path


def node_record(node: Node) -> NodeRecord:
    return NodeRecord(
        *(node.title, node.id, node.summary, node.type),
        *(node.projects, node.status, node.updated, node.path),
    )


def _index_problem(catalog: Catalog) -> str:
    """Return the problem with the index, or "". The result is cached until a file changes."""
    if catalog.index_problem is None:
        catalog.index_problem = catalogs.index_summary(catalogs.lint_index(catalog))
        catalogs.save_catalog(catalog)
    return catalog.index_problem


LEAST_RELEVANCE = 0.2
"""Minimum relevance of a node found only by vector search, where every node is somewhat similar."""


def with_semantic_matches(
    brain: Brain,
    catalog: Catalog,
    context: str,
    filters: NodeFilters,
    matches: tuple[KbMatch, ...],
    most: int,
) -> tuple[tuple[KbMatch, ...], str]:
    """Rerank the matches by text and vector search. Return them with a note about problems.

    Matches that this search does not find come after those that it finds. Superseded nodes come last, unless the
    query is their ID.
    """
    # Imported late, because searching by meaning is slow to import, and many commands need only the files.
    from quaid.operations import background, collections as folders
    from quaid.search import answer as answers, candidates

    if not os.path.exists(brain.settings.db_path):
        return matches[:most], "By words only: meaning needs a memory, which `quaid init` makes"
    collection = folders.synced_kb(brain)
    chunks.cut_pages(brain.db, brain.progress)
    embedder = background.question_embedder(brain)
    ranked = candidates.rank_question(
        brain.db,
        embedder,
        context,
        now=brain.now(),
        filters=SearchFilters(collection=collection.name),
        vectors=lambda: brain.vectors,
    )
    answer = answers.build_answer(brain.db, ranked, limit=4 * most)
    nodes = {node.path: node for node in catalog.nodes if filters.match(node)}
    paths = {file.slug: file.path or "" for file in collection.page_files(brain.db)}
    by_words = {match.path: match for match in matches}
    reordered: dict[str, KbMatch] = {}
    for result in answer.results:
        path = paths.get(result.slug, "")
        if path in nodes and path not in reordered and (result.score >= LEAST_RELEVANCE or path in by_words):
            had = by_words.get(path) or catalogs.build_match(nodes[path], (), 0.0, 0.0)
            more = ("meaning",) if result.lane in ("meaning", "both") else () if had.match else ("words",)
            reordered[path] = had._replace(match=had.match + more, relevance=round(result.score, 4))
    for path, match in by_words.items():
        reordered.setdefault(path, match)
    note = f"By words only: {embedder}" if isinstance(embedder, str) else "; ".join(answer.notes)
    ordered = sorted(
        reordered.values(), key=lambda match: match.status == "superseded" and "id" not in match.match
    )
    return tuple(ordered[:most]), note


RemoteAddress = Annotated[str | None, Arg("Address of a private repository to push to.")]
AllowForeign = Annotated[
    bool, Arg("Accept a folder or remote that holds other files, and commit beside them.")
]


class KbLintRecord(NamedTuple):
    findings: tuple[LintFinding, ...]
    files: int
    nodes: int

    @property
    def fatal(self) -> int:
        return sum(finding.fatal for finding in self.findings)

    @property
    def exit_status(self) -> int:
        return 1 if self.fatal else 0


class KbIndexRecord(NamedTuple):
    files: tuple[str, ...]
    """Index files that changed."""
    nodes: int
    commit: str
    taken_up: tuple[str, ...]
    """Nodes and raw files edited by the user that were committed with the index."""


class KbCurateRecord(NamedTuple):
    report: CurationReport
    due: bool
    stamped: int
    """Number of nodes marked as reviewed."""
    dry_run: bool

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {} if self.dry_run or self.stamped or not self.report.batch else {"yes": True}

    @property
    def act(self) -> str:
        return f"Marking {count_noun(len(self.report.batch), 'node')} as looked through"


class KbPushRecord(NamedTuple):
    outcome: str
    """One of pushed, nothing, rejected, unreachable."""
    problem: str
    ahead: int

    @property
    def exit_status(self) -> int:
        return 1 if self.outcome in ("rejected", "unreachable") else 0


class KbCaptureRecord(NamedTuple):
    path: str
    """The path to use in the :SOURCE: property of a node."""
    file: str
    """Path of the complete source below raw/files/, or "" if only the stub was written."""
    cut: bool
    commit: str


class KbMapRecord(NamedTuple):
    dot: str
    nodes: int
    links: int


@op("owner", command="kb init", examples=("ai-kb init", "ai-kb init --remote git@example.org:ai-kb.git"))
def kb_init(
    brain: Brain,
    path: Annotated[
        str | None, Arg("The folder [$AI_KB_DIR, or the default location].", positional=True, path=True)
    ] = None,
    remote: RemoteAddress = None,
    force: AllowForeign = False,
) -> KbInitReport:
    """Create a knowledge base: a git repository with a contract, a first node and an index. Repairs an existing one.

    A folder or a remote that holds other files is refused before anything is written, unless --force is given."""
    root = brain.settings.path(path) if path else brain.settings.kb_root
    git = Git(root, brain.settings.environ)
    return _init_store(brain, git, remote or "", force)


def _init_store(brain: Brain, git: Git, remote: str, force: bool) -> KbInitReport:
    values = {"now": brain.now(), "local": brain.local(), "id": brain.random_uuid()}
    return setup.init_store(git, brain.settings.environ, remote=remote, force=force, **values)


@op("owner", command="kb clone", examples=("ai-kb clone git@example.org:ai-kb.git",))
def kb_clone(
    brain: Brain,
    url: Annotated[str, Arg("The address of the repository.", positional=True)],
    path: Annotated[
        str | None, Arg("The folder [$AI_KB_DIR, or the default location].", positional=True, path=True)
    ] = None,
    force: AllowForeign = False,
) -> KbInitReport:
    """Clone a knowledge base from its remote. Code in it is never run.

    A remote that holds other files is refused before anything is written, unless --force is given."""
    root = brain.settings.path(path) if path else brain.settings.kb_root
    environ = brain.settings.environ
    git = setup.clone_store(Git(root, environ), url, environ, force=force)
    return _init_store(brain, git, "", force)._replace(created=True)


@op("owner", command="kb lint", examples=("ai-kb lint", "ai-kb lint --index"))
def kb_lint(
    brain: Brain,
    index: Annotated[bool, Arg("Only check whether the index is up to date.")] = False,
) -> KbLintRecord:
    """Check every node, raw text and the index. Exits 1 when something would stop a commit."""
    catalog = catalogs.load_catalog(existing_root(brain), certain=True, check=not index)
    findings = catalogs.lint_index(catalog) if index else catalogs.lint_store(catalog)
    return KbLintRecord(tuple(findings), len(catalog.files), catalog.count)


@op("owner", command="kb index", examples=("ai-kb index",))
def kb_index(brain: Brain) -> KbIndexRecord:
    """Rebuild the index from the nodes and commit it.

    Files that were added, changed or deleted by hand are linted as usual and committed with it."""
    done = transaction.commit_edits(open_store(brain), brain.now(), what="index", today=brain.local()[:10])
    files = tuple(path for path in done.paths if layout.is_index_file(path))
    return KbIndexRecord(files, done.nodes, done.commit, done.adopted)


@op(
    "owner",
    command="kb commit",
    examples=("ai-kb commit", "ai-kb commit --message 'Reworded the principles'"),
)
def kb_commit(brain: Brain, message: Annotated[str, Arg("The commit message.")] = "") -> ChangeResult:
    """Commit files changed with an editor, after rebuilding the index and linting everything."""
    return transaction.commit_edits(open_store(brain), brain.now(), message, today=brain.local()[:10])


@op("owner", command="kb doctor", examples=("ai-kb doctor",))
def kb_doctor(brain: Brain) -> Named[tuple[KbCheck, ...]]:
    """Check the store and its setup on this machine, with a remedy for each problem. Exits 1 if there is one."""
    settings = brain.settings
    checks = health.check_store(
        open_store(brain), settings.environ, settings.user_home, settings.platform, now=brain.now()
    )
    return Named("checks", (*checks, *_client_checks(brain)))


def _client_checks(brain: Brain) -> list[KbCheck]:
    """Check that clients connected with --kb have the knowledge base rule and can start the server."""
    where, checks = client_paths(brain), []
    for client in CLIENTS.values():
        rule = where.path(client.rules) if client.rules else ""
        text = clients.read_config(rule) if rule else None
        path = where.path(client.servers)
        try:
            entry = clients.find_server(client, clients.read_config(path) or "")
        except (QuaidError, UnreadableConfig):
            entry = None  # `quaid connect` reports unreadable settings
        has_tools = isinstance(entry, dict) and "kb" in _tools_argument(entry.get("args")).split(",")
        if text is None and not has_tools:
            continue
        problem = ""
        if rule and text is None:
            problem = f"it has the tools, but not the rule {rule}"
        elif text is not None and _is_outdated(text, kb_rule(brain)):
            problem = "the rule is outdated"
        elif isinstance(entry, dict) and not _is_installed(str(entry.get("command", "")), brain):
            problem = f"the program {entry.get('command')} in {path} is missing"
        detail = f"{client.title}: {rule if text is not None else path}{problem and ': '}{problem}"
        remedy = f"`quaid connect {client.name} --kb` writes it"
        checks.append(KbCheck("adapter", not problem, detail, remedy))
    nothing = "none; `quaid connect claude-code --kb` writes it"
    return checks or [KbCheck("adapter", True, nothing, missing=True)]


def client_paths(brain: Brain) -> ClientPaths:
    settings = brain.settings
    return ClientPaths(settings.user_home, settings.cwd, settings.platform, settings.environ)


def kb_rule(brain: Brain) -> str:
    """Return the knowledge base rule that is written into a client's rules file."""
    return clients.kb_instructions(brain.settings.kb_root, brain.settings.user_home)


def _tools_argument(args: object) -> str:
    """Return the value of --tools in a server's arguments, or ""."""
    words = args if isinstance(args, list) else []
    return str(words[words.index("--tools") + 1]) if "--tools" in words[:-1] else ""


def _is_outdated(text: str, rule: str) -> bool:
    try:
        return clients.add_instructions(text, rule) != text
    except UnreadableConfig:
        return True


def _is_installed(command: str, brain: Brain) -> bool:
    return shutil.which(command, path=brain.settings.environ.get("PATH", "")) is not None


@op("owner", command="kb curate", examples=("ai-kb curate --dry-run", "ai-kb curate"))
def kb_curate(
    brain: Brain,
    dry_run: Annotated[bool, Arg("Only report.")] = False,
    days: Annotated[int, Arg("Report nodes unchanged for this many days.", minimum=1, maximum=36_500)] = 365,
    yes: Annotated[bool, Arg("Mark the listed nodes as reviewed, without asking.")] = False,
) -> KbCurateRecord:
    """Report duplicates, orphans, contested, superseded, broad and untouched nodes, and unused raw files.

    The report ends with the nodes reviewed least recently; confirming marks them as reviewed."""
    catalog, today = load_catalog(brain), brain.local()[:10]
    report = health.curation_report(catalog, today, days)
    stamped = 0
    if yes and not dry_run and report.batch:
        ids = {node.id for node in report.batch}

        def plan(fresh: Catalog) -> StoreChange:
            reviewed = [node for node in fresh.nodes if node.id in ids]
            return edits.plan_curated(fresh, reviewed, today, CURATED_PROPERTY)

        stamped = len(report.batch)
        transaction.apply_change(open_store(brain), brain.now(), "curate", plan)
    return KbCurateRecord(report, health.check_curation(catalog.nodes)[0], stamped, dry_run)


@op("owner", command="kb push", examples=("ai-kb push",))
def kb_push(brain: Brain) -> KbPushRecord:
    """Push commits that the remote does not have. Never forces; a failure is recorded, and no commit is lost."""
    git = open_store(brain)
    pushed = transaction.push_store(git, brain.now())
    try:
        with transaction.store_lock(git, "push", patience=1):
            # Needs the lock, because it removes folders that another git process may be writing to.
            git.tidy()
    except StoreLocked:
        pass  # the next push tidies up
    return KbPushRecord(pushed.outcome, pushed.problem, health.store_status(git).ahead)


@op(
    "owner",
    command="kb capture",
    examples=(
        "ai-kb capture https://example.org/post --excerpt excerpt.txt --title 'A post on locks'",
        "pbpaste | ai-kb capture https://example.org/post --excerpt -",
        "ai-kb capture manual.pdf --full --title 'The manual'",
        "ai-kb capture https://example.org/manual.pdf --full --file manual.pdf",
    ),
)
def kb_capture(
    brain: Brain,
    source: Annotated[str, Arg("The address, or the file.", positional=True)],
    excerpt: Annotated[
        str | None, Arg("File with the relevant part (- is standard input).", file=True)
    ] = None,
    title: Annotated[str, Arg("The title.")] = "",
    full: Annotated[
        bool,
        Arg("Store the whole source too, in raw/files/; an address is fetched, unless --file is given."),
    ] = False,
    file: Annotated[str | None, Arg("Local file with the whole source of an address.", path=True)] = None,
) -> KbCaptureRecord:
    """Capture an external source: a stub with address, day, title and an excerpt of at most 2,000 words.

    The excerpt comes from --excerpt, or from the file itself if it is text. Only --full fetches an address. Use the
    printed path as the source of a node."""
    if not source.strip():
        raise InvalidArgument(name="source", problem="is empty; name an address or a file")
    git, local, is_address = open_store(brain), brain.local(), "://" in source
    if file is not None and not full:
        problem = "belongs to --full; an excerpt is handed over with --excerpt"
        raise InvalidArgument(name="file", problem=problem)
    if not full and excerpt is None and is_address:
        problem = "is needed: nothing is fetched from the network, except for the whole source with --full"
        raise InvalidArgument(name="excerpt", problem=problem)
    whole: tuple[str, bytes] | None = None
    if full and is_address and file is None:
        whole = edits.download_source(source)
    elif full:
        path = source if file is None else file
        whole = os.path.basename(path), edits.check_capture_size(_read_capture(brain, path))
    text = excerpt or ""
    if not full and excerpt is None:
        text = edits.decode_source(_read_capture(brain, source), source)

    def plan(catalog: Catalog) -> StoreChange:
        return edits.plan_capture(catalog, source, text, local=local, title=title, whole=whole)

    done = transaction.apply_change(git, brain.now(), "capture", plan)
    path, place, cut = done.details
    return KbCaptureRecord(path, place, cut, done.commit)


def _read_capture(brain: Brain, source: str) -> bytes:
    path = brain.settings.path(source)
    try:
        with open(path, "rb") as file:
            return file.read(MAX_CAPTURE_BYTES + 1)
    except OSError as error:
        raise FileTrouble(path=path, problem=f"cannot be read: {error.strerror}") from None


@op("owner", command="kb install-timer", examples=("ai-kb install-timer",))
def kb_install_timer(brain: Brain) -> KbTimerReport:
    """Push the knowledge base every 15 minutes, with a systemd user timer, launchd, or a line for cron."""
    settings = brain.settings
    git = open_store(brain)
    started = clients.launch_command(settings.db_path, settings.environ)
    command = ["env", f"AI_KB_DIR={git.root}", started.command, *started.args, "kb", "push"]
    return setup.install_timer(command, settings.environ, settings.user_home, settings.platform)


@op("owner", command="kb sync", examples=("ai-kb sync",))
def kb_sync(
    brain: Brain,
    force: Annotated[bool, Arg("Rebuild it even if it is up to date.")] = False,
    database: Annotated[str | None, Arg("Path of the database [in .git/ai-kb].", path=True)] = None,
) -> setup.KbSyncRecord:
    """Update org-roam's database for browsing in Emacs, if nodes have changed. Nothing else needs it."""
    git = open_store(brain)
    where = brain.settings.path(database) if database else ""
    return setup.sync_org_roam(git.root, brain.settings.environ, database=where, force=force)


@op("owner", command="kb map", examples=("ai-kb map | dot -Tsvg > map.svg", "ai-kb map --project emacs"))
def kb_map(
    brain: Brain,
    project: Annotated[str, Arg("Only nodes of this project.")] = "",
    tag: Annotated[str, Arg("Only nodes with this tag or of this type.")] = "",
    status: Annotated[
        Literal["current", "contested", "superseded"] | None, Arg("Only nodes of this status.")
    ] = None,
) -> KbMapRecord:
    """Print the nodes and the links between them as a graph in graphviz's DOT language."""
    filters = NodeFilters(tag, project, status or "")
    return KbMapRecord(*nodes.draw_graph(filter(filters.match, load_catalog(brain).nodes)))


@op("owner", command="kb emacs-file", examples=("ai-kb emacs-file",))
def kb_emacs_file(brain: Brain) -> Named[str]:  # noqa: ARG001
    """Print the path of ai-kb.el, the package for Emacs."""
    return Named("path", setup.lisp_file())


Yes = Annotated[bool, Arg("Do not ask for confirmation.")]
DryRun = Annotated[bool, Arg("Only show what would change.")]
Force = Annotated[bool, Arg("Delete it even if nodes link to it; their links become plain text.")]


class KbChangeRecord(NamedTuple):
    """A change of nodes. If `done` is False, it is only planned."""

    act: str
    nodes: tuple[NodeRecord, ...]
    files: tuple[str, ...]
    """Paths of the changed files."""
    done: bool
    commit: str
    ask: bool = True
    pointers: tuple[str, ...] = ()
    """Paths of agents' notes outside the knowledge base that contain the ID of a deleted node."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask and not self.done else {}


@op("owner", command="kb merge", examples=("ai-kb merge 5b1c2d3e 9f8e7d6c",))
def kb_merge(
    brain: Brain,
    node: NodeName,
    other: Annotated[str, Arg("The node to merge into it.", positional=True)],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Merge a second node into the first. Links and pointers to the second then lead to the first."""

    def plan(catalog: Catalog, of: list[Node]) -> StoreChange:
        return edits.plan_merge(catalog, of[0], of[1], _today(brain))

    return _run_change(brain, "Merging", (node, other), plan, yes=yes, dry_run=dry_run)


@op(
    "owner",
    command="kb delete",
    examples=("ai-kb delete 5b1c2d3e", "ai-kb delete raw/20260524140509-on-locks.org"),
)
def kb_delete(
    brain: Brain,
    node: Annotated[
        str, Arg("The node, or the path of a capture below raw/ with its whole file.", positional=True)
    ],
    force: Force = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Delete a node or a capture; git keeps it. Without --force, refused while nodes link to it or name it."""
    path = node.strip()
    is_raw = layout.is_raw_file(path)

    def plan(catalog: Catalog, of: list[Node]) -> StoreChange:
        if is_raw:
            return edits.plan_raw_deletion(catalog, path, force=force)
        return edits.plan_deletion(catalog, of[0], force=force)

    names, what = ((), path) if is_raw else ((node,), "")
    return _run_change(brain, "Deleting", names, plan, yes=yes, dry_run=dry_run, what=what)


@op("owner", command="kb supersede", examples=("ai-kb supersede 5b1c2d3e --by 9f8e7d6c",))
def kb_supersede(
    brain: Brain,
    node: NodeName,
    by: Annotated[str, Arg("The node that supersedes it.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Mark a node as superseded by another."""

    def plan(catalog: Catalog, of: list[Node]) -> StoreChange:
        return edits.plan_supersession(catalog, of[0], of[1], _today(brain))

    return _run_change(brain, "Superseding", (node, by), plan, yes=yes, dry_run=dry_run)


@op(
    "owner",
    command="kb contest",
    examples=("ai-kb contest 5b1c2d3e --against 9f8e7d6c", "ai-kb contest 5b1c --settle"),
)
def kb_contest(
    brain: Brain,
    node: NodeName,
    against: Annotated[str | None, Arg("The node that it contradicts.")] = None,
    settle: Annotated[bool, Arg("Mark it as current again.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Mark a node as contested, or as current again."""
    names = (node,) if against is None else (node, against)

    def plan(catalog: Catalog, of: list[Node]) -> StoreChange:
        other = of[1] if len(of) > 1 else None
        return edits.plan_contest(catalog, of[0], other, _today(brain), settle=settle)

    verb = "Settling" if settle else "Contesting"
    return _run_change(brain, verb, names, plan, yes=yes, dry_run=dry_run)


def _today(brain: Brain) -> str:
    return brain.local()[:10]


def _run_change(
    brain: Brain,
    verb: str,
    names: tuple[str, ...],
    plan: Callable[[Catalog, list[Node]], StoreChange],
    *,
    yes: bool,
    dry_run: bool,
    what: str = "",
) -> KbChangeRecord:
    """Plan a change of the named nodes, and apply it if `yes` is set and `dry_run` is not."""
    git = open_store(brain)
    is_agreed = yes and not dry_run

    def work(catalog: Catalog) -> StoreChange:
        nodes = [catalogs.find_node(catalog, name) for name in names]
        change = plan(catalog, nodes)
        deleted = [node.id for node in nodes if change.files.get(node.path, b"") is None]
        return change._replace(details=(nodes, deleted))

    commit = ""
    if is_agreed:
        done = transaction.apply_change(git, brain.now(), verb.lower(), work)
        commit, files, (nodes, deleted) = done.commit, done.paths, done.details
    else:
        change = work(load_catalog(brain))
        files, (nodes, deleted) = tuple(change.files), change.details
    if not files:
        raise InvalidArgument(name="node", problem="is that already; nothing to do")
    act = f"{verb} {what or ', '.join(node.pointer for node in nodes)}"
    pointers = _notes_naming(brain, deleted)
    return KbChangeRecord(
        act, tuple(map(node_record, nodes)), files, is_agreed, commit, not dry_run, pointers
    )


MAX_NOTES, MAX_NOTE_BYTES = 2_000, 1024 * 1024


def _notes_naming(brain: Brain, ids: list[str]) -> tuple[str, ...]:
    """Return the paths of notes in Claude Code's project folders that contain one of these IDs."""
    if not ids:
        return ()
    import glob

    paths = []
    pattern = os.path.join(glob.escape(client_paths(brain).path("CLAUDE/projects")), "*", "memory", "*.md")
    for path in sorted(glob.glob(pattern))[:MAX_NOTES]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_NOTE_BYTES).lower()
        except OSError:
            continue
        if any(id in text for id in ids):
            paths.append(path)
    return tuple(paths)

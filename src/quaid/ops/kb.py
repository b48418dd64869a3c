"""The knowledge base as agents and people use it: query, show, backlinks, remember, status."""

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.kb import layout
from quaid.kb.layout import KbStatus
from quaid.ops import kb_glance
from quaid.ops.register import Arg, op

if TYPE_CHECKING:
    from quaid.kb.catalog import Catalog
    from quaid.kb.git import Git
    from quaid.kb.node import Node

Named = Annotated[
    str, Arg("The node: its ID, the beginning of it, a pointer, or its title.", positional=True)
]
Type = Literal["principle", "preference", "procedure", "observation", "reference"]
NO_MATCH, BROKEN_INDEX = 1, 3
"""Exit statuses of a query; a store that is missing has its own."""


class NodeRecord(NamedTuple):
    """A node in an answer."""

    title: str
    id: str
    summary: str
    type: str
    projects: tuple[str, ...]
    status: str
    updated: str
    path: str


class KbMatch(NamedTuple):
    title: str
    id: str
    summary: str
    projects: tuple[str, ...]
    status: str
    updated: str
    path: str
    match: tuple[str, ...]
    """Why: id, title, tag, project, status, summary, body, property; with `semantic` also meaning, or words in
    another form."""
    score: float
    """The sum of the weights of the fields that hold a word; 0 if only its meaning was found."""
    source: str
    """Where it comes from; perhaps a path below raw/."""
    held: float = 0.0
    """How much of the question's words it holds, from 0 to 1."""
    relevance: float | None = None
    """With `semantic`: how well it answers by words and meaning, from 0 to 1, as `score` of `query`."""


class KbQueryRecord(NamedTuple):
    context: str
    matches: tuple[KbMatch, ...]
    note: str
    """What is wrong with the index, or why meaning was not looked at."""
    index_is_stale: bool

    @property
    def warning(self) -> str:
        return self.note

    @property
    def exit_status(self) -> int:
        return BROKEN_INDEX if self.index_is_stale else 0 if self.matches else NO_MATCH


class KbShowRecord(NamedTuple):
    node: NodeRecord
    text: str
    """The file as it is."""
    links: tuple[NodeRecord, ...]
    backlinks: tuple[NodeRecord, ...]
    note: str = ""
    """Says so when the ID of a pointer is gone and its title led here."""


class KbBacklinksRecord(NamedTuple):
    node: NodeRecord
    backlinks: tuple[NodeRecord, ...]
    note: str = ""


class KbRememberRecord(NamedTuple):
    node: NodeRecord
    commit: str
    created: bool
    """False: something was added to a node that was there."""
    contradicts: tuple[Any, ...]
    """Nodes that are contested now, as this one is; a person must decide."""
    offline: str
    """Why the remote was not reached."""


@op(
    "read",
    command="kb query",
    tool="kb_query",
    examples=("ai-kb query formatter", "ai-kb query 'mirror a repository' --project general --json"),
)
def kb_query(
    brain: Brain,
    context: Annotated[
        str, Arg("What it is about, in words.", positional=True, any_text=True, question=True)
    ],
    max_results: Annotated[int, Arg("How many nodes.", minimum=1, maximum=200)] = 10,
    type: Annotated[Type | None, Arg("Only nodes of this type.")] = None,
    project: Annotated[str | None, Arg("Only nodes of this project, as in emacs or general.")] = None,
    status: Annotated[
        Literal["current", "contested", "superseded"] | None, Arg("Only nodes of this status.")
    ] = None,
    semantic: Annotated[bool, Arg("Look for the meaning too, as `quaid query` does.")] = False,
) -> KbQueryRecord:
    """Find what the knowledge base holds: principles, preferences, procedures, observations, references.

    Ask before choosing a convention or beginning a procedure. Exits 1 when nothing matches, 3 when the index is
    stale, 5 when there is no knowledge base."""
    from quaid.kb import catalog as catalogs

    catalog = look(brain)
    if not context.strip():
        raise InvalidArgument(name="context", problem="is empty; say what it is about")
    filters = catalogs.NodeFilters(type or "", project or "", status or "")
    most = len(catalog.files) if semantic else max_results
    found = catalogs.query_nodes(catalog, context, most=most, filters=filters)
    asked = len(catalogs.query_words(context)) or 1
    matches = tuple(
        match(each.node, each.reasons, float(each.score), round(each.words / asked, 2)) for each in found
    )
    note = ""
    if semantic:
        from quaid.ops import kb_meaning

        matches, note = kb_meaning.added(brain, catalog, context, filters, matches, max_results)
    stale = _index_problem(brain, catalog)
    return KbQueryRecord(context, matches, stale or note, bool(stale))


@op(
    "read",
    command="kb show",
    tool="kb_show",
    examples=("ai-kb show 5b1c2d3e", "ai-kb show 'How we name branches'"),
)
def kb_show(brain: Brain, node: Named) -> KbShowRecord:
    """Show a node of the knowledge base, what it links to and what links to it.

    A pointer `ai-kb: Title (UUID)` is resolved by its ID, and by its title when no node has that ID any more."""
    from quaid.kb import catalog as catalogs

    catalog = look(brain)
    found, note = catalogs.find_node_to_read(catalog, node)
    by_id = {id: each for each in catalog.nodes for id in (each.id, *each.merged, *each.inner)}
    links = dict.fromkeys(by_id[link.id] for link in found.links if link.id in by_id)
    return KbShowRecord(
        told(found),
        catalog.text(found.path),
        tuple(map(told, links)),
        tuple(map(told, catalogs.nodes_linking_to(catalog, found))),
        note,
    )


@op("read", command="kb backlinks", tool="kb_backlinks", examples=("ai-kb backlinks 5b1c2d3e",))
def kb_backlinks(brain: Brain, node: Named) -> KbBacklinksRecord:
    """List the nodes that link to a node. Raw texts and the index do not count."""
    from quaid.kb import catalog as catalogs

    catalog = look(brain)
    found, note = catalogs.find_node_to_read(catalog, node)
    return KbBacklinksRecord(told(found), tuple(map(told, catalogs.nodes_linking_to(catalog, found))), note)


@op("read", command="kb status", tool="kb_status", examples=("ai-kb status", "ai-kb status --json"))
def kb_status(brain: Brain) -> KbStatus:
    """How the knowledge base stands: nodes, what is not pushed, what went wrong, whether curation is due."""
    from quaid.kb import health

    return health.store_status(store(brain))


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
    text: Annotated[str, Arg("What the node says, in org.", positional=True, any_text=True)] = "",
    file: Annotated[
        str | None, Arg("The text, on the command line out of this file (- is standard input).", file=True)
    ] = None,
    title: Annotated[str, Arg("A short title.")] = "",
    summary: Annotated[str, Arg("One sentence, written to be found.")] = "",
    type: Annotated[Type, Arg("What kind of knowledge it is.")] = "observation",
    tags: Annotated[list[str] | None, Arg("Further tags, as in build,ci.")] = None,
    projects: Annotated[list[str] | None, Arg("Slugs of projects, as in emacs,python [general].")] = None,
    confidence: Annotated[
        Literal["user-stated", "observed", "inferred", "external"], Arg("How it is known.")
    ] = "observed",
    source: Annotated[str, Arg("Where it comes from, as in chat 2026-05-24, or a path below raw/.")] = "",
    visibility: Annotated[Literal["personal", "work-private"], Arg("Whom it concerns.")] = "personal",
    links: Annotated[
        list[str] | None,
        Arg(
            "Nodes it belongs to: IDs or titles, perhaps behind RELATES_TO, IMPLEMENTS, DERIVED_FROM or CONTRADICTS,"
            " which makes both contested."
        ),
    ] = None,
    created_by: Annotated[str | None, Arg("Who writes it, as in claude-code [human, or the agent].")] = None,
    add_to: Annotated[str | None, Arg("Add the text to this node, and write no new one.")] = None,
    force: Annotated[
        bool, Arg("Write it although a node says much the same, or the node of --add-to the opposite.")
    ] = False,
) -> KbRememberRecord:
    """Write a node and commit it: what is lasting and general, not what belongs to one project.

    Fetches first, makes the index, lints everything; a failure changes nothing. A node that contradicts another one
    is written, and both are contested until a person decides. An addition that says the opposite of its own node is
    refused with both sentences."""
    from quaid.kb import catalog as catalogs, edits, transaction
    from quaid.kb.node import CREATORS, NodeDraft

    said = "\n".join(part for part in (text, file or "") if part.strip())
    if not said.strip():
        raise InvalidArgument(name="text", problem="is empty; say what to remember")
    agent = brain.agent if brain.agent in CREATORS or not brain.agent else "agent"
    writer = created_by or agent or "human"
    if agent and writer == "human":
        writer = agent  # an agent may say what a person stated, not that the person wrote it
    if writer not in CREATORS:
        raise InvalidArgument(name="created_by", problem=f"must be one of {', '.join(CREATORS)}")
    git, local = store(brain), brain.local()
    made: list[Any] = []

    def add(catalog: "Catalog") -> transaction.StoreChange:
        node = catalogs.find_node(catalog, str(add_to))
        planned = edits.plan_addition(
            catalog, node, said, links or (), local=local, summary=summary, force=force
        )
        made[:] = [planned.node, planned.opposites]
        return planned.change

    def write(catalog: "Catalog") -> transaction.StoreChange:
        id = edits.free_id(catalog, brain.random_uuid)
        planned = edits.plan_node(catalog, draft, links or (), id=id, local=local, force=force)
        made[:] = [planned.node, planned.opposites]
        return planned.change

    if add_to is not None:
        given = {"title": title, "tags": tags, "projects": projects, "source": source}
        for name in (name for name, value in given.items() if value):
            problem = "belongs to a new node; --add-to takes the text, --summary and --links"
            raise InvalidArgument(name=name, problem=problem)
        edits.check_summary(summary)
    else:
        origin = source or f"{'chat' if writer != 'human' else 'written'} {local[:10]}"
        draft = edits.check_draft(
            NodeDraft(
                *(title, summary, said, type, tuple(tags or ()), tuple(projects or ()), writer),
                *(confidence, visibility, origin),
            )
        )
    done = transaction.apply_change(git, brain.now(), "remember", write if add_to is None else add)
    node, opposites = made
    return KbRememberRecord(told(node), done.commit, add_to is None, opposites, done.offline)


# What the others share


def root(brain: Brain) -> str:
    """Where the knowledge base is."""
    return kb_glance.root(brain.settings)


def store(brain: Brain) -> "Git":
    """The knowledge base with its git; an error where there is none."""
    from quaid.kb.git import Git

    folder(brain)
    return Git(root(brain), brain.settings.environ)


def look(brain: Brain) -> "Catalog":
    """All nodes, without a call of git."""
    from quaid.kb import catalog as catalogs

    return catalogs.load_catalog(root(brain), folder(brain))


def folder(brain: Brain) -> str:
    """Where the last look is remembered; an error where there is no knowledge base."""
    path = root(brain)
    ours = os.path.join(layout.require_git_folder(path), layout.OWN_FOLDER)
    if not os.path.isfile(os.path.join(path, layout.CONTRACT_FILE)):
        from quaid.kb import remote as store_remote
        from quaid.kb.git import Git

        store_remote.require_own_store(Git(path, brain.settings.environ))
    return ours


def told(node: "Node") -> NodeRecord:
    return NodeRecord(
        *(node.title, node.id, node.summary, node.type),
        *(node.projects, node.status, node.updated, node.path),
    )


def match(
    node: "Node", reasons: tuple[str, ...], score: float, held: float = 0.0, relevance: float | None = None
) -> KbMatch:
    return KbMatch(
        *(node.title, node.id, node.summary, node.projects, node.status, node.updated, node.path),
        *(reasons, score, node.source, held, relevance),
    )


def _index_problem(brain: Brain, catalog: "Catalog") -> str:
    """What is wrong with the index; looked for once, as long as no file changes."""
    if catalog.index_problem is None:
        from quaid.kb import catalog as catalogs, lint

        catalog.index_problem = lint.index_summary(lint.lint_index(catalog))
        catalogs.save_catalog(catalog, folder(brain))
    return catalog.index_problem

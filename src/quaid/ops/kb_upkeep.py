"""Looking after the knowledge base: making, checking, indexing, committing, curating, pushing."""

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import FileTrouble, InvalidArgument, StoreLocked
from quaid.kb.layout import KbCheck, KbInitReport, KbTimerReport
from quaid.model.plain_text import count_noun
from quaid.ops import kb
from quaid.ops.register import Arg, op

if TYPE_CHECKING:
    from quaid.kb.catalog import Catalog
    from quaid.kb.git import PushResult
    from quaid.kb.health import CurationReport
    from quaid.kb.transaction import ChangeResult

Remote = Annotated[str | None, Arg("Address of a private repository to push to.")]
Foreign = Annotated[bool, Arg("Also where other files are and no knowledge base: commit beside them.")]


class KbFinding(NamedTuple):
    path: str
    line: int
    code: str
    message: str
    remedy: str
    fatal: bool
    """Whether it stops a commit; else it is style."""


class KbLintRecord(NamedTuple):
    findings: tuple[KbFinding, ...]
    files: int
    nodes: int

    @property
    def fatal(self) -> int:
        return sum(each.fatal for each in self.findings)

    @property
    def exit_status(self) -> int:
        return 1 if self.fatal else 0


class KbIndexRecord(NamedTuple):
    files: tuple[str, ...]
    """Files of the index that changed."""
    nodes: int
    commit: str
    taken_up: tuple[str, ...]
    """Nodes and raw texts that a person had added or changed, committed with it."""


class KbCommitRecord(NamedTuple):
    commit: str
    paths: tuple[str, ...]
    offline: str


class KbDoctorRecord(NamedTuple):
    checks: tuple[KbCheck, ...]

    @property
    def exit_status(self) -> int:
        return 0 if all(each.well for each in self.checks) else 1


class KbCurateRecord(NamedTuple):
    report: "CurationReport"
    due: bool
    stamped: int
    """Nodes that were marked as looked through now."""
    dry_run: bool

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {} if self.dry_run or self.stamped or not self.report.batch else {"yes": True}

    @property
    def act(self) -> str:
        return f"Marking {count_noun(len(self.report.batch), 'node')} as looked through"


class KbPushRecord(NamedTuple):
    outcome: Literal["pushed", "nothing", "rejected", "unreachable"]
    problem: str
    ahead: int

    @property
    def exit_status(self) -> int:
        return 1 if self.outcome in ("rejected", "unreachable") else 0


class KbCaptureRecord(NamedTuple):
    path: str
    """What a node names in :SOURCE:."""
    file: str
    """The whole source below raw/files/; nothing: only the stub was written."""
    cut: bool
    commit: str


class KbSyncRecord(NamedTuple):
    """Emacs' own index of the nodes."""

    state: Literal["fresh", "synced", "no emacs", "no org-roam", "failed"]
    database: str
    problem: str

    @property
    def exit_status(self) -> int:
        return 1 if self.state == "failed" else 0


class KbMapRecord(NamedTuple):
    dot: str
    nodes: int
    links: int


class KbEmacsFileRecord(NamedTuple):
    path: str


@op("owner", command="kb init", examples=("ai-kb init", "ai-kb init --remote git@example.org:ai-kb.git"))
def kb_init(
    brain: Brain,
    path: Annotated[
        str | None, Arg("The folder [where AI_KB_DIR or the system says].", positional=True, path=True)
    ] = None,
    remote: Remote = None,
    force: Foreign = False,
) -> KbInitReport:
    """Make a knowledge base: a git repository with a contract, a first node, an index. Doing it again mends it.

    A folder or a remote that holds other files is refused before anything is written, unless --force is given."""
    from quaid.kb import setup
    from quaid.kb.git import Git

    root = brain.settings.path(path) if path else kb.root(brain)
    git = Git(root, brain.settings.environ)
    return setup.init_store(
        git,
        remote=remote or "",
        now=brain.now(),
        local=brain.local(),
        id=brain.random_uuid(),
        force=force,
    )


@op("owner", command="kb clone", examples=("ai-kb clone git@example.org:ai-kb.git",))
def kb_clone(
    brain: Brain,
    url: Annotated[str, Arg("The address of the repository.", positional=True)],
    path: Annotated[
        str | None, Arg("The folder [where AI_KB_DIR or the system says].", positional=True, path=True)
    ] = None,
    force: Foreign = False,
) -> KbInitReport:
    """Fetch a knowledge base from its remote. Nothing in it can run on this machine.

    A remote that holds other files is refused before anything is written, unless --force is given."""
    from quaid.kb import setup
    from quaid.kb.git import Git

    root = brain.settings.path(path) if path else kb.root(brain)
    environ = brain.settings.environ
    git = setup.clone_store(Git(root, environ), url, environ, force=force)
    made = setup.init_store(
        git, remote="", now=brain.now(), local=brain.local(), id=brain.random_uuid(), force=force
    )
    return made._replace(created=True)


@op("owner", command="kb lint", examples=("ai-kb lint", "ai-kb lint --index"))
def kb_lint(
    brain: Brain,
    index: Annotated[bool, Arg("Only whether the index is that of the nodes.")] = False,
) -> KbLintRecord:
    """Check every node, raw text and the index. Exits 1 when something would stop a commit."""
    from quaid.kb import catalog as catalogs, lint

    folder = kb.folder(brain)
    catalog = catalogs.load_catalog(
        kb.root(brain), folder, certain=True, judge=None if index else lint.file_checker()
    )
    found = list(lint.lint_index(catalog)) if index else lint.lint_store(catalog, folder)
    told = tuple(KbFinding(*each, each.fatal) for each in found)
    return KbLintRecord(told, len(catalog.files), catalog.count)


@op("owner", command="kb index", examples=("ai-kb index",))
def kb_index(brain: Brain) -> KbIndexRecord:
    """Make the index anew from the nodes, and commit it.

    Files that were added, changed or deleted by hand are taken up: linted as usual and committed with it."""
    from quaid.kb import layout, transaction

    done = transaction.commit_edits(kb.store(brain), brain.now(), what="index", today=brain.local()[:10])
    files = tuple(path for path in done.paths if layout.is_index_file(path))
    return KbIndexRecord(files, done.nodes, done.commit, done.adopted)


@op(
    "owner",
    command="kb commit",
    examples=("ai-kb commit", "ai-kb commit --message 'Reworded the principles'"),
)
def kb_commit(brain: Brain, message: Annotated[str, Arg("What was done.")] = "") -> KbCommitRecord:
    """Commit what was changed with an editor, after the same index and lint as everything else."""
    from quaid.kb import transaction

    done = transaction.commit_edits(kb.store(brain), brain.now(), message, today=brain.local()[:10])
    return KbCommitRecord(done.commit, done.paths, done.offline)


@op("owner", command="kb doctor", examples=("ai-kb doctor",))
def kb_doctor(brain: Brain) -> KbDoctorRecord:
    """Look at everything that can be wrong, and say what to do. Exits 1 when something is."""
    from quaid.kb import health

    settings = brain.settings
    checks = health.check_store(
        kb.store(brain), settings.environ, settings.user_home, settings.platform, now=brain.now()
    )
    return KbDoctorRecord((*checks, *_adapters(brain)))


def _adapters(brain: Brain) -> list[KbCheck]:
    """Whether the clients that have this memory are told of the knowledge base, and can start it."""
    from quaid.ops import clients

    checks = []
    for each in clients.adapters(brain):
        place = f"{each.title}: {each.path}"
        remedy = f"`quaid connect {each.client} --kb` writes it"
        checks.append(
            KbCheck("adapter", not each.problem, f"{place}{each.problem and ': '}{each.problem}", remedy)
        )
    return checks or [
        KbCheck("adapter", True, "none; `quaid connect claude-code --kb` writes it", missing=True)
    ]


@op("owner", command="kb curate", examples=("ai-kb curate --dry-run", "ai-kb curate"))
def kb_curate(
    brain: Brain,
    dry_run: Annotated[bool, Arg("Only report.")] = False,
    days: Annotated[int, Arg("Nodes untouched for so long are named.", minimum=1, maximum=36_500)] = 365,
    yes: Annotated[bool, Arg("Mark the listed nodes as looked through, without asking.")] = False,
) -> KbCurateRecord:
    """Report duplicates, orphans, contested, superseded, broad and untouched nodes, and raw files nobody needs.

    The nodes at its end are those that were longest not looked at; agreeing marks them as looked through."""
    from quaid.kb import edits, health, transaction
    from quaid.kb.node import CURATED_PROPERTY

    catalog, today = kb.look(brain), brain.local()[:10]
    report = health.curation_report(catalog, today, days)
    stamped = 0
    if yes and not dry_run and report.batch:
        ids = {node.id for node in report.batch}

        def plan(fresh: Any) -> transaction.StoreChange:
            return edits.plan_curated(
                fresh, [node for node in fresh.nodes if node.id in ids], today, CURATED_PROPERTY
            )

        stamped = len(report.batch)
        transaction.apply_change(kb.store(brain), brain.now(), "curate", plan)
    return KbCurateRecord(report, health.check_curation(list(catalog.nodes)).is_due, stamped, dry_run)


@op("owner", command="kb push", examples=("ai-kb push",))
def kb_push(brain: Brain) -> KbPushRecord:
    """Push what the remote does not have. Never forces; what fails is noted, and nothing is lost."""
    from quaid.kb import health, remote as store_remote, transaction

    git = kb.store(brain)
    pushed: PushResult = store_remote.push_store(git, brain.now())
    try:
        with transaction.store_lock(git, "push", patience=1):
            git.tidy()  # alone: it takes away folders into which another git is about to write
    except StoreLocked:
        pass  # the next push will do it
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
        str | None, Arg("A file that holds what matters of it (- is standard input).", file=True)
    ] = None,
    title: Annotated[str, Arg("What it is called.")] = "",
    full: Annotated[
        bool,
        Arg("Keep the whole source too, below raw/files/; an address is fetched, unless --file is given."),
    ] = False,
    file: Annotated[
        str | None, Arg("The whole source of an address, which you have here.", path=True)
    ] = None,
) -> KbCaptureRecord:
    """Keep an outside source: a stub with address, day, title and an excerpt of at most 2,000 words.

    The excerpt comes from --excerpt, or from the file itself if it is text. Only --full fetches an address. A node
    names the path that this prints in its source."""
    from quaid.kb import edits, transaction

    if not source.strip():
        raise InvalidArgument(name="source", problem="is empty; name an address or a file")
    git, local, is_address = kb.store(brain), brain.local(), "://" in source
    if file is not None and not full:
        raise InvalidArgument(
            name="file", problem="belongs to --full; an excerpt is handed over with --excerpt"
        )
    if not full and excerpt is None and is_address:
        problem = "is needed: nothing is fetched from the network, except for the whole source with --full"
        raise InvalidArgument(name="excerpt", problem=problem)
    whole: edits.SourceFile | None = None
    if full and is_address and file is None:
        whole = edits.download_source(source)
    elif full:
        place = file if file is not None else source
        data = edits.check_capture_size(_bytes_of(brain, place))
        whole = edits.SourceFile(os.path.basename(place), data)
    text = excerpt or ""
    if not full and excerpt is None:
        text = edits.decode_source(_bytes_of(brain, source), source)
    made: list[edits.PlannedCapture] = []

    def plan(catalog: "Catalog") -> transaction.StoreChange:
        made[:] = [edits.plan_capture(catalog, source, text, local=local, title=title, whole=whole)]
        return made[0].change

    done: ChangeResult = transaction.apply_change(git, brain.now(), "capture", plan)
    return KbCaptureRecord(made[0].path, made[0].file, made[0].cut, done.commit)


def _bytes_of(brain: Brain, source: str) -> bytes:
    from quaid.kb.edits import MAX_CAPTURE_BYTES

    path = brain.settings.path(source)
    try:
        with open(path, "rb") as file:
            return file.read(MAX_CAPTURE_BYTES + 1)
    except OSError as error:
        raise FileTrouble(path=path, problem=f"cannot be read: {error.strerror}") from None


@op("owner", command="kb install-timer", examples=("ai-kb install-timer",))
def kb_install_timer(brain: Brain) -> KbTimerReport:
    """Have the knowledge base pushed every 15 minutes: a systemd user timer, launchd, or a line for cron."""
    from quaid.kb import setup
    from quaid.ops.clients import launch

    settings = brain.settings
    git = kb.store(brain)
    started = launch(brain)
    command = ["env", f"AI_KB_DIR={git.root}", started.command, *started.args, "kb", "push"]
    return setup.install_timer(command, settings.environ, settings.user_home, settings.platform)


@op("owner", command="kb sync", examples=("ai-kb sync",))
def kb_sync(
    brain: Brain,
    force: Annotated[bool, Arg("Make it anew, also when it is that of the nodes.")] = False,
    database: Annotated[str | None, Arg("Where it is [in .git/ai-kb].", path=True)] = None,
) -> KbSyncRecord:
    """Bring org-roam's own index of the nodes up to date, if they have changed. Nothing else needs it."""
    from quaid.kb import setup

    git = kb.store(brain)
    where = brain.settings.path(database) if database else ""
    return KbSyncRecord(
        *setup.sync_org_roam(git.root, git.ours, brain.settings.environ, database=where, force=force)
    )


@op("owner", command="kb map", examples=("ai-kb map | dot -Tsvg > map.svg", "ai-kb map --project emacs"))
def kb_map(
    brain: Brain,
    project: Annotated[str, Arg("Only nodes of this project.")] = "",
    tag: Annotated[str, Arg("Only nodes with this tag or of this type.")] = "",
    status: Annotated[
        Literal["current", "contested", "superseded"] | None, Arg("Only nodes of this status.")
    ] = None,
) -> KbMapRecord:
    """Draw the nodes and the links between them, in the language DOT of graphviz."""
    from quaid.kb import node as nodes

    return KbMapRecord(
        *nodes.draw_graph(kb.look(brain).nodes, nodes.GraphFilters(project, tag, status or ""))
    )


@op("owner", command="kb emacs-file", examples=("ai-kb emacs-file",))
def kb_emacs_file(brain: Brain) -> KbEmacsFileRecord:  # noqa: ARG001
    """Say where ai-kb.el is, which Emacs loads."""
    from quaid.kb import setup

    return KbEmacsFileRecord(setup.lisp_file())

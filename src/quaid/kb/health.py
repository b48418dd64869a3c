"""Status, health checks and curation report of a store, and the nudge, a reminder at the start of a session.

This module does not change nodes.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from quaid.errors import QuaidError
from quaid.folders.scanner import signature_of
from quaid.kb import catalog as catalogs, git as git_cli, layout, repository, setup, transaction
from quaid.kb.catalog import Catalog, query_words
from quaid.kb.git import REMOTE_NAME, Git
from quaid.kb.layout import RAW_README
from quaid.kb.node import NODE_TYPES, Node, captured_file
from quaid.kb.repository import StoreState, TreeState, mask_urls
from quaid.kb.setup import KbCheck
from quaid.model import claims, dates
from quaid.model.plain_text import count_noun
from quaid.model.sync_plan import FileSignature
from quaid.storage import files as durable_files

CHECK_TIMEOUT = 5.0  # timeout in seconds for reaching the remote
FIRST_CURATION, CURATION_INTERVAL = 150, 50
"""Curation is first due at FIRST_CURATION nodes, then after every CURATION_INTERVAL new nodes."""

CURATION_BATCH = 25
"""Number of nodes to review in one pass, starting with those reviewed least recently."""

UNTOUCHED_DAYS = 365
BROAD_CHARACTERS, BROAD_HEADINGS = 6_000, 6
LARGE_RAW_FILE = 256 * 1024
MAX_NODES_PER_WORD, MIN_SHARED_WORDS = 40, 2
"""Two nodes are compared if they share MIN_SHARED_WORDS words that occur in at most MAX_NODES_PER_WORD nodes each."""


class DuplicatePair(NamedTuple):
    one: Node
    other: Node
    why: str


class SupersededNode(NamedTuple):
    node: Node
    by: tuple[Node, ...]
    """Nodes that supersede this node."""
    linked_from: tuple[Node, ...]
    """Current nodes that link to this node with a relation other than SUPERSEDES or CONTRADICTS."""


class CurationReport(NamedTuple):
    """Nodes, pairs of nodes and raw files to review, grouped by kind of problem."""

    duplicates: tuple[DuplicatePair, ...]
    orphans: tuple[Node, ...]
    """Nodes without links in either direction."""
    contested: tuple[Node, ...]
    superseded: tuple[SupersededNode, ...]
    broad: tuple[Node, ...]
    untouched: tuple[Node, ...]
    raw_unused: tuple[str, ...]
    """Captures that no node names as its source."""
    raw_large: tuple[str, ...]
    batch: tuple[Node, ...]
    """The nodes to review next."""


def check_curation(nodes: Sequence[Node]) -> tuple[bool, int, str]:
    """Return whether curation is due, the number of nodes added since the last one, and the day of the last one.

    If there was no curation yet, all nodes count as added, and the day is "".
    """
    last = max((node.last_curated for node in nodes), default="")
    if not last:
        return len(nodes) >= FIRST_CURATION, len(nodes), ""
    new = sum(1 for node in nodes if not node.last_curated and node.created >= last)
    return new >= CURATION_INTERVAL, new, last


def curation_report(catalog: Catalog, today: str, days: int = UNTOUCHED_DAYS) -> CurationReport:
    """Return the nodes and captures that may have to be merged, split, corrected or deleted."""
    nodes = catalog.nodes
    by_id = {id: node for node in nodes for id in (node.id, *node.inner)}
    linked: dict[str, list[Node]] = {}
    for node in nodes:
        for link in node.links:
            if link.id in by_id and by_id[link.id].path != node.path:
                linked.setdefault(by_id[link.id].path, []).append(node)
    linking = {node.path for node in nodes if any(link.id in by_id for link in node.links)}
    sources = {node.source for node in nodes}
    raw = [file for file in catalog.files.values() if layout.is_raw_file(file.path)]
    horizon = dates.shift_date(today, -days)
    return CurationReport(
        _find_duplicates(nodes),
        tuple(node for node in nodes if node.path not in linked and node.path not in linking),
        tuple(node for node in nodes if node.status == "contested"),
        tuple(
            _superseded_node(node, linked.get(node.path, ())) for node in nodes if node.status == "superseded"
        ),
        tuple(node for node in nodes if _is_broad(catalog, node)),
        tuple(node for node in nodes if max(node.updated, node.last_curated) < horizon),
        _unused_captures(catalog, [file.path for file in raw if file.path != RAW_README], sources),
        tuple(file.path for file in raw if file.signature.size > LARGE_RAW_FILE),
        tuple(sorted(nodes, key=lambda node: (node.last_curated, node.updated, node.path))[:CURATION_BATCH]),
    )


def _unused_captures(catalog: Catalog, raw: Sequence[str], sources: set[str]) -> tuple[str, ...]:
    """Return captures that no node names as its source.

    Complete files are left out if a stub refers to them.
    """
    unnamed = [path for path in raw if not any(path in source for source in sources)]
    if any(path.startswith(f"{layout.RAW_FILES_FOLDER}/") for path in unnamed):
        stubs = (path for path in raw if path.endswith(layout.NODE_ENDING) and path.count("/") == 1)
        captured = {captured_file(catalog.text(path)) for path in stubs}
        unnamed = [path for path in unnamed if path not in captured]
    return tuple(unnamed)


def _superseded_node(old: Node, linking: Sequence[Node]) -> SupersededNode:
    """Return a superseded node with the nodes that supersede it and current nodes that still link to it."""
    ids = {old.id, *old.inner}
    by, relying = [], []
    for node in dict.fromkeys(linking):
        relations = {link.relation for link in node.links if link.id in ids}
        if "SUPERSEDES" in relations:
            by.append(node)
        if node.status == "current" and relations - {"SUPERSEDES", "CONTRADICTS"}:
            relying.append(node)
    return SupersededNode(old, tuple(by), tuple(relying))


def _is_broad(catalog: Catalog, node: Node) -> bool:
    return (
        node.size > BROAD_CHARACTERS
        or ("\n" + catalog.body(node.path)).count("\n* ") >= BROAD_HEADINGS
        or sum(tag in NODE_TYPES for tag in node.tags) > 1
    )


def _find_duplicates(nodes: Sequence[Node]) -> tuple[DuplicatePair, ...]:
    """Return pairs of similar nodes. Only nodes that share some of their rarer words are compared."""
    current = [node for node in nodes if node.status != "superseded"]
    holding: dict[str, list[int]] = {}
    statements = []
    for at, node in enumerate(current):
        statements.append(claims.Statement(str(at), node.title, node.summary, "", node.type, node.projects))
        for word in query_words(f"{node.title} {node.summary}"):
            holding.setdefault(word, []).append(at)
    pairs = []
    for at, node in enumerate(current):
        shared: Counter[int] = Counter()
        for word in query_words(f"{node.title} {node.summary}"):
            if len(holding[word]) <= MAX_NODES_PER_WORD:
                shared.update(other for other in holding[word] if other > at)
        near = [statements[other] for other, count in shared.items() if count >= MIN_SHARED_WORDS]
        similar = claims.find_similar(statements[at], near) if near else ()
        pairs += [DuplicatePair(node, current[int(match.key)], match.why) for match in similar]
    return tuple(pairs)


# Status

LARGE_RAW_TOTAL = 50 * 1024 * 1024


class KbStatus(NamedTuple):
    root: str
    nodes: int
    contested: int
    branch: str
    remote: str
    """URL without credentials; empty if no remote is configured."""
    ahead: int
    """Number of local commits that are not on the remote."""
    behind: int
    uncommitted: tuple[str, ...]
    push_problem: str
    """Why the last push failed; empty if it succeeded, or if nothing is left to push."""
    diverged: bool
    indexed_at: str
    raw_bytes: int
    secrets: int
    """Number of secrets found by lint in the files checked so far."""
    curation_due: bool
    nudge: str
    """One line to show at the start of a session; empty if there is nothing to do."""
    unfinished: str = ""
    """The merge, rebase, cherry-pick, revert or bisect in progress; empty if there is none."""
    conflicted: tuple[str, ...] = ()
    remote_problem: str = ""
    """Why and when the last fetch failed; empty if it did not fail."""


def store_status(git: Git) -> KbStatus:
    """Return the status of a store."""
    return _status_and_nudge(git)[0]


def _status_and_nudge(git: Git) -> tuple[KbStatus, list[int]]:
    """Return the status of a store, and the arguments of nudge_text()."""
    tree = git.state()
    noted = repository.read_state(git.root)
    catalog = catalogs.load_catalog(git.root)
    nodes = catalog.nodes
    files = catalog.files.values()
    secrets = sum(code == "secret" for file in files for _, code, _, _ in file.findings)
    uncommitted = (*tree.changed, *(path for path in tree.untracked if layout.is_store_file(path)))
    is_due, new, _ = check_curation(nodes)
    ahead = _unpushed_commits(git, tree)
    failed = bool(ahead) and noted.push.outcome in ("rejected", "unreachable")
    diverged = tree.has_diverged or bool(noted.diverged_at and tree.branch is not None)
    unfinished = tree.in_progress or ("merge" if tree.conflicted else "")
    counts = [secrets, diverged, failed, ahead, len(uncommitted), new if is_due else 0, bool(unfinished)]
    status = KbStatus(
        root=git.root,
        nodes=len(nodes),
        contested=sum(node.status == "contested" for node in nodes),
        branch=tree.branch or "",
        remote=mask_urls(git.remote() or ""),
        ahead=ahead,
        behind=tree.behind,
        uncommitted=uncommitted,
        push_problem=noted.push.problem or noted.push.outcome if failed else "",
        diverged=diverged,
        indexed_at=noted.indexed_at,
        raw_bytes=sum(file.signature.size for file in files if layout.is_raw_file(file.path)),
        secrets=secrets,
        curation_due=is_due,
        nudge=nudge_text(*counts),
        unfinished=unfinished,
        conflicted=tree.conflicted,
        remote_problem=_fetch_problem(git, noted),
    )
    return status, [int(count) for count in counts]


def nudge_text(
    secrets: int,
    diverged: int,
    push_failed: int,
    ahead: int,
    uncommitted: int,
    new_nodes: int,
    unfinished: int,
) -> str:
    """Return one line for the start of a session; empty if there is nothing to do.

    `ahead` must be 0 without a remote, and `new_nodes` must be 0 unless curation is due. `unfinished` is 1
    while a merge or rebase is in progress.
    """
    commits = count_noun(ahead, "commit")
    parts = {
        f"{count_noun(secrets, 'secret')} in it: `ai-kb lint`": secrets,
        "a merge or rebase is not finished: `ai-kb doctor`": unfinished,
        "it and its remote have diverged: `ai-kb doctor`": diverged,
        f"{commits} not pushed, the last push failed: `ai-kb doctor`": push_failed and not diverged,
        f"{commits} not pushed yet: `ai-kb push`": ahead and not (push_failed or diverged),
        f"{count_noun(uncommitted, 'file')} not committed: `ai-kb commit`": uncommitted,
        f"{count_noun(new_nodes, 'node')} to look through: `ai-kb curate --dry-run`": new_nodes,
    }
    line = "; ".join(text for text, is_true in parts.items() if is_true)
    return f"ai-kb: {line}" if line else ""


NUDGE_FILE = "nudge.json"
NUDGE_VERSION = 4
NUDGE_DEPENDENCIES = ("index", "config", "info/exclude", f"{layout.OWN_FOLDER}/{repository.STATE_FILE}")
"""Files in .git that the nudge depends on, besides branches and the catalog."""


def session_nudge(root: str, environ: Mapping[str, str], clock: Callable[[], int] = time.time_ns) -> str:
    """Return the nudge of a store, as shown by `status`, using a cache.

    The cache contains only numbers, so that text from a manipulated cache file is never shown to agents."""
    repository.check_git_folder(root)
    before, catalog, _ = _tree_mark(root)
    with suppress(QuaidError, ValueError, TypeError):
        *marks, counts = repository.read_json(root, NUDGE_FILE)
        if marks == [before, catalog]:
            return nudge_text(*map(int, counts))
    status, counts = _status_and_nudge(Git(root, environ))
    after, catalog, newest = _tree_mark(root)
    if after == before and newest < clock() - catalogs.RACY_NS:
        with suppress(OSError):  # without the cache, the next session only starts a little slower
            path = os.path.join(layout.own_folder(root), NUDGE_FILE)
            durable_files.write_file(path, json.dumps([after, catalog, counts]).encode(), durable=False)
    return status.nudge


def _tree_mark(root: str) -> tuple[int, int, int]:
    """Return a checksum of the store and its git state, a checksum of the catalog cache, and the newest timestamp.

    The nudge is computed again if a checksum has changed.
    """
    folder = os.path.join(root, ".git")
    files = layout.walk_store(root)
    below = {path.rpartition("/")[0] for path, _ in files} | {""}
    ignoring = [_stat_or_none(os.path.join(root, subfolder, ".gitignore")) for subfolder in sorted(below)]
    git_files = [_stat_or_none(os.path.join(folder, *name.split("/"))) for name in NUDGE_DEPENDENCIES]
    branch, head = repository.read_head(folder)
    remote = branch and repository.read_ref(folder, f"refs/remotes/{REMOTE_NAME}/{branch}")
    stats = [*(signature for _, signature in files), *filter(None, (*ignoring, *git_files))]
    newest = max((max(signature.mtime_ns, signature.ctime_ns) for signature in stats), default=0)
    act = repository.unfinished_act(folder)
    tree = repr((NUDGE_VERSION, ignoring, git_files, branch, act, head, remote))
    # There may be thousands of files, so each is formatted as cheaply as possible.
    tree += "\n".join([f"{path} {size} {m} {c} {inode}" for path, (size, m, c, inode) in files])
    catalog = repr(_stat_or_none(os.path.join(layout.own_folder(root), catalogs.CATALOG_NAME)))
    return crc32(tree.encode("utf-8", "surrogatepass")), crc32(catalog.encode()), newest


def _stat_or_none(path: str) -> FileSignature | None:
    try:
        return signature_of(os.lstat(path))
    except OSError:
        return None


def _fetch_problem(git: Git, noted: StoreState) -> str:
    """Return why and when the last fetch failed; empty if it did not fail."""
    if git.remote() is None or noted.fetch.outcome in ("", "reached"):
        return ""
    message = f"{noted.fetch.problem or 'not reached'} ({noted.fetch.at})"
    if noted.fetch.outcome == "silent":
        minutes = transaction.SILENT_MINUTES
        message += f"; writers do without it for {minutes} minutes, `ai-kb push` asks it at once"
    return message


def _unpushed_commits(git: Git, tree: TreeState) -> int:
    """Return the number of commits that are not on the remote, up to 1000 if nothing was ever fetched.

    Without a branch, for example during a rebase, there is nothing to compare, and the result is 0.
    """
    if git.remote() is None or tree.head is None or tree.branch is None:
        return 0
    return tree.ahead if tree.upstream is not None else git.count_commits(1000)


# Checks


def check_store(git: Git, environ: Mapping[str, str], home: str, platform: str, *, now: str) -> list[KbCheck]:
    """Run all checks of the store and of its setup on this machine."""
    status = store_status(git)
    noted = repository.read_state(git.root)
    catalog = catalogs.load_catalog(git.root, certain=True, check=True)
    fatal = [finding for finding in catalogs.lint_store(catalog) if finding.fatal]
    secrets = [finding for finding in fatal if finding.code == "secret"]
    first = f"{fatal[0].path}:{fatal[0].line}: {fatal[0].message}" if fatal else ""
    summary = f"{count_noun(len(fatal), 'finding')}; {first}" if fatal else ""
    where = f"{len(secrets)}, first {secrets[0].path}:{secrets[0].line}" if secrets else "none found"
    is_due, new, last = check_curation(catalog.nodes)
    since = f" since {last}" if last else f", due at {FIRST_CURATION}"
    raw = f"{status.raw_bytes / 1024 / 1024:.1f} MB"
    return [
        KbCheck("repository", True, git.root),
        _check_tree(status),
        *_check_remote(git, status, environ, now),
        _check_push(status, noted, git.has_identity),
        KbCheck("lint", not fatal, summary, "`ai-kb lint` shows them all"),
        KbCheck("secrets", not secrets, where, "Take them out, and revoke those that were pushed"),
        KbCheck(
            "curation",
            not is_due,
            f"{count_noun(new, 'node')}{since}",
            "`ai-kb curate --dry-run`, and the skill curate",
        ),
        KbCheck(
            "raw", status.raw_bytes <= LARGE_RAW_TOTAL, raw, "`ai-kb curate --dry-run` names large files"
        ),
        _check_timer(git, status, environ, home, platform),
        _check_org_roam(git, environ),
        *(_check_program(name, why, environ) for name, why in OPTIONAL_PROGRAMS),
    ]


OPTIONAL_PROGRAMS = (
    ("ai-kb", "on the PATH, for agents that call it"),
    ("emacs", "for browsing with emacs/ai-kb.el; nothing else needs it"),
    ("dot", "graphviz, for the map in Emacs"),
)


def _check_timer(git: Git, status: KbStatus, environ: Mapping[str, str], home: str, platform: str) -> KbCheck:
    """Check whether an active timer pushes this store."""
    if not status.remote:
        return KbCheck("timer", True, "not needed without a remote", missing=True)
    nothing = "none; `ai-kb install-timer` has the store pushed by itself"
    return setup.check_timer(git.root, environ, home, platform) or KbCheck(
        "timer", True, nothing, missing=True
    )


def _check_org_roam(git: Git, environ: Mapping[str, str]) -> KbCheck:
    """Check whether the org-roam database is up to date, or else whether a temporary database can be built."""
    import tempfile

    database = os.path.join(git.own_folder, setup.ORG_ROAM_DATABASE)
    if setup.is_org_roam_fresh(git.root, database):
        return KbCheck("org-roam", True, f"{database} is that of the nodes")
    with tempfile.TemporaryDirectory(prefix="ai-kb-") as folder:
        done = setup.sync_org_roam(git.root, environ, database=os.path.join(folder, setup.ORG_ROAM_DATABASE))
    if done.state in ("no emacs", "no org-roam"):
        return KbCheck("org-roam", True, done.problem, missing=True)
    if done.state == "failed" or done.problem:
        remedy = "Mend the node that it names" if done.state == "synced" else "`ai-kb sync` tries again"
        return KbCheck("org-roam", False, f"its index cannot be built: {done.problem}", remedy)
    return KbCheck("org-roam", True, "its index can be built")


def _check_program(name: str, why: str, environ: Mapping[str, str]) -> KbCheck:
    import shutil

    path = shutil.which(name, path=environ.get("PATH", ""))
    return KbCheck(name, True, path or f"not installed ({why})", missing=not path)


def _check_tree(status: KbStatus) -> KbCheck:
    git = f"git -C {status.root}"
    if status.unfinished:
        verb = f"{git} {status.unfinished}"
        message = f"a {status.unfinished} was begun and not finished; nothing can be written until then"
        remedy = (
            f"`{verb} reset`"
            if status.unfinished == "bisect"
            else f"`{verb} --continue`, or `{verb} --abort`"
        )
        if status.conflicted:
            files = repository.shorten_paths(status.conflicted)
            remedy = f"Resolve {files}, `{git} add` them, then {remedy}"
            message += f"; {count_noun(len(status.conflicted), 'file')} in conflict"
        return KbCheck("tree", False, message, remedy)
    if status.uncommitted:
        files = f"{count_noun(len(status.uncommitted), 'file')} not committed, first {status.uncommitted[0]}"
        return KbCheck("tree", False, files, "`ai-kb commit` lints and commits them")
    if not status.branch:
        remedy = f"`{git} switch main`; nothing can be written until then"
        return KbCheck("tree", False, "no branch is checked out", remedy)
    if status.branch not in ("main", "master"):
        message = f"on the branch {status.branch}, not main: commits and pushes go there"
        return KbCheck("tree", False, message, f"`{git} switch main` once it is merged")
    return KbCheck("tree", True, f"clean, on {status.branch}")


def _check_remote(git: Git, status: KbStatus, environ: Mapping[str, str], now: str) -> list[KbCheck]:
    """Check whether the remote responds and whether it is private."""
    if not status.remote:
        remedy = "`ai-kb init --remote URL` names a private one; without it this disk is the only copy"
        return [KbCheck("remote", True, f"none. {remedy}", missing=True)]
    try:
        fetched, _ = transaction.fetch_store(git, now, CHECK_TIMEOUT)
    except QuaidError as error:
        return [KbCheck("remote", False, str(error), "Mend its address with `ai-kb init --remote URL`")]
    if fetched.outcome != "reached":
        remedy = "Offline is fine; else check address and key"
        if fetched.outcome == "silent":
            minutes = transaction.SILENT_MINUTES
            remedy += f". Writers do without it for {minutes} minutes; `ai-kb push` asks it at once"
        unknown = KbCheck("private", True, "cannot be known of a remote that does not answer", missing=True)
        return [KbCheck("remote", False, f"{status.remote}: {fetched.problem}", remedy), unknown]
    return [
        KbCheck("remote", True, f"{status.remote} answers"),
        check_privacy(git.remote() or "", git.root, environ, CHECK_TIMEOUT),
    ]


def _check_push(status: KbStatus, noted: StoreState, has_identity: bool) -> KbCheck:
    """Check whether all commits are pushed.

    `has_identity` is True if git has a name and an address for commits.
    """
    if status.remote and not status.branch:
        return KbCheck("push", True, "cannot be known while no branch is checked out", missing=True)
    if status.diverged:
        message = f"diverged: {count_noun(status.ahead, 'commit')} only here, {status.behind} only there"
        remedy = f"`git -C {os.path.abspath(status.root)} pull --rebase`, then `ai-kb index` and `ai-kb push`"
        if not has_identity:
            name = "`git config --global user.name NAME`, `git config --global user.email ADDRESS`"
            remedy = f"Git does not know you yet: {name}; then {remedy}"
        return KbCheck("push", False, message, remedy)
    if status.push_problem:
        message = f"ahead {status.ahead}; failed {noted.push.at}: {status.push_problem}"
        return KbCheck("push", False, message, "`ai-kb push`")
    if status.ahead:
        message = f"ahead {status.ahead}; `ai-kb push` sends it, `ai-kb install-timer` does so for ever"
        return KbCheck("push", True, message)
    return KbCheck("push", True, "nothing to push")


# Privacy of the remote

DAEMON_EXPORT_FILE = "git-daemon-export-ok"
"""File that allows `git daemon` to serve a repository to everyone."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
REFUSAL_MESSAGES = (
    "Authentication failed",
    "could not read Username",
    "error: 401",
    "error: 403",
    "error: 404",
)
"""Error messages of git for servers that require authentication."""


def check_privacy(url: str, root: str, environ: Mapping[str, str], seconds: float) -> KbCheck:
    """Check whether the remote is private. The caller has just reached the remote."""
    folder = repository.url_to_path(url, root)
    if folder is not None:
        return _check_folder(folder, environ)
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        return _check_server(scheme.lower(), rest, environ, seconds)
    return _unknown(
        "cannot be known behind ssh: a key opens public and private repositories alike."
        " Look at its settings on the server; it should be readable by you only"
    )


def _unknown(message: str) -> KbCheck:
    return KbCheck("private", True, message, missing=True)


def _check_folder(folder: str, environ: Mapping[str, str]) -> KbCheck:
    path = os.path.realpath(folder)
    if os.path.isdir(os.path.join(path, ".git")):
        path = os.path.join(path, ".git")
    if os.path.exists(os.path.join(path, DAEMON_EXPORT_FILE)):
        message = f"git daemon may serve it to everybody ({DAEMON_EXPORT_FILE})"
        return KbCheck("private", False, message, f"`rm {path}/{DAEMON_EXPORT_FILE}`")
    # Git reads only the config file, so it runs no program that the repository configures.
    pattern = r"^remote\..*\.(push)?url$"
    command = ("config", "--file", os.path.join(path, "config"), "--get-regexp", pattern)
    mirrors = _run_git(command, environ, 10).out.decode(errors="replace").splitlines()
    if mirrors:
        mirror = mask_urls(mirrors[0].partition(" ")[2])
        return _unknown(
            f"it has a remote of its own, {mirror}; whether that is private cannot be known."
            " Take the remote away if it is a public mirror"
        )
    if os.name == "nt":
        return _unknown("cannot be known of a folder on this system")
    try:
        is_open = _is_world_readable(path)
    except OSError as error:
        return _unknown(f"cannot be known: {error.strerror}")
    if is_open:
        return KbCheck("private", False, "every user of this machine can read it", f"`chmod -R o-rwx {path}`")
    return KbCheck("private", True, "a folder that other users of this machine cannot read")


def _run_git(
    arguments: tuple[str, ...], environ: Mapping[str, str], seconds: float, **variables: str
) -> git_cli.CommandResult:
    """Run git outside of any repository."""
    command = (git_cli.git_program(environ), *arguments)
    return git_cli.run_command(command, os.sep, git_cli.git_environment(environ) | variables, seconds=seconds)


def _is_world_readable(path: str) -> bool:
    """Return True if other users can enter the folder and all its parents and read its HEAD file."""
    place = path
    while os.stat(place).st_mode & 0o001:
        above = os.path.dirname(place)
        if above == place:
            return bool(os.stat(os.path.join(path, "HEAD")).st_mode & 0o004)
        place = above
    return False


def _check_server(scheme: str, rest: str, environ: Mapping[str, str], seconds: float) -> KbCheck:
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host if host.startswith("[") else host.partition(":")[0]
    if scheme == "http" and name.lower() not in LOCAL_HOSTS:
        message = "http sends everything in the clear, so the network can read it"
        return KbCheck("private", False, message, "`ai-kb init --remote URL` with https or ssh")
    # Try without the user's credentials, that is without credential helper, .netrc, headers or client
    # certificate.
    anonymous = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "NETRC", "GIT_CONFIG_GLOBAL"), os.devnull)
    anonymous["GIT_CONFIG_NOSYSTEM"] = "1"
    address = f"{scheme}://{host}/{rest.partition('/')[2]}"
    done = _run_git(("ls-remote", "--heads", "--", address), environ, seconds, **anonymous)
    if done.status == 0:
        return KbCheck("private", False, "it answers without a password", "Make it private on the server")
    if any(message in done.err for message in REFUSAL_MESSAGES):
        return KbCheck("private", True, "it shows nothing without a password")
    return _unknown(f"cannot be known: {mask_urls(repository.error_line(done.err))}")

"""Status, health checks and the curation report of a store. None of them changes a node."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.kb import catalog as catalogs, layout, lint, remote as store_remote, repo_policy, setup, state
from quaid.kb.catalog import Catalog, query_words
from quaid.kb.git import Git
from quaid.kb.layout import RAW_README, KbCheck, KbStatus
from quaid.kb.node import NODE_TYPES, Node, captured_file
from quaid.kb.repo_policy import TreeState, mask_urls
from quaid.kb.state import NudgeFacts, StoreState, nudge_text
from quaid.model import claims, dates
from quaid.model.plain_text import count_noun

FIRST_CURATION, CURATION_INTERVAL = 150, 50
"""Curation is first due at FIRST_CURATION nodes, then after every CURATION_INTERVAL new ones."""

CURATION_BATCH = 25
"""Number of nodes reviewed in one pass, starting with those reviewed least recently."""

UNTOUCHED_DAYS = 365
BROAD_CHARACTERS, BROAD_HEADINGS = 6_000, 6
LARGE_RAW_FILE = 256 * 1024
MAX_NODES_PER_WORD, MIN_SHARED_WORDS = 40, 2
"""Duplicates must share MIN_SHARED_WORDS words; words found in more than MAX_NODES_PER_WORD nodes are not counted."""


class DuplicatePair(NamedTuple):
    one: Node
    other: Node
    why: str


class SupersededNode(NamedTuple):
    node: Node
    by: tuple[Node, ...]
    """Nodes that supersede it."""
    linked_from: tuple[Node, ...]
    """Current nodes that link to it with a relation other than SUPERSEDES or CONTRADICTS."""


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


class CurationDue(NamedTuple):
    is_due: bool
    nodes: int
    new: int
    """Number of nodes added since the last pass."""
    last: str
    """Date of the last pass; empty if there was none."""


def check_curation(nodes: Sequence[Node]) -> CurationDue:
    """Return whether curation is due, with the counts that decide it."""
    last = max((node.last_curated for node in nodes), default="")
    new = sum(1 for node in nodes if not node.last_curated and node.created >= last) if last else len(nodes)
    return CurationDue(
        new >= CURATION_INTERVAL if last else len(nodes) >= FIRST_CURATION, len(nodes), new, last
    )


def curation_report(catalog: Catalog, today: str, days: int = UNTOUCHED_DAYS) -> CurationReport:
    """Return the nodes and captures that may have to be merged, split, corrected or deleted."""
    nodes = list(catalog.nodes)
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
        tuple(file.path for file in raw if file.looks.size > LARGE_RAW_FILE),
        tuple(sorted(nodes, key=lambda node: (node.last_curated, node.updated, node.path))[:CURATION_BATCH]),
    )


def _unused_captures(catalog: Catalog, raw: Sequence[str], sources: set[str]) -> tuple[str, ...]:
    """Return captures that no node names as its source. Complete files are left out if a stub refers to them."""
    unnamed = [path for path in raw if not _is_named_source(path, sources)]
    if any(path.startswith(f"{layout.RAW_FILES_FOLDER}/") for path in unnamed):
        stubs = (path for path in raw if path.endswith(layout.NODE_ENDING) and path.count("/") == 1)
        kept = {captured_file(catalog.text(path)) for path in stubs}
        unnamed = [path for path in unnamed if path not in kept]
    return tuple(unnamed)


def _is_named_source(path: str, sources: Iterable[str]) -> bool:
    return any(path in source for source in sources)


def _superseded_node(old: Node, linking: Sequence[Node]) -> SupersededNode:
    """Return a superseded node with the nodes that supersede it and the current nodes that still link to it."""
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
    """Return pairs that say the same. Only nodes that share some of their rarer words are compared."""
    current = [node for node in nodes if node.status != "superseded"]
    holding: dict[str, list[int]] = {}
    said = []
    for at, node in enumerate(current):
        said.append(claims.Statement(str(at), node.title, node.summary, "", node.type, node.projects))
        for word in query_words(f"{node.title} {node.summary}"):
            holding.setdefault(word, []).append(at)
    found = []
    for at, node in enumerate(current):
        shared: dict[int, int] = {}
        for word in query_words(f"{node.title} {node.summary}"):
            for other in holding[word] if len(holding[word]) <= MAX_NODES_PER_WORD else ():
                if other > at:
                    shared[other] = shared.get(other, 0) + 1
        near = [said[other] for other, count in shared.items() if count >= MIN_SHARED_WORDS]
        found += [
            DuplicatePair(node, current[int(each.key)], each.why)
            for each in (claims.find_similar(said[at], near) if near else ())
        ]
    return tuple(found)


LARGE_RAW_TOTAL = 50 * 1024 * 1024


def store_status(git: Git) -> KbStatus:
    """Return the status of a store."""
    return status_and_facts(git)[0]


def status_and_facts(git: Git) -> tuple[KbStatus, NudgeFacts]:
    """Return the status of a store, and the facts for the line shown at the start of a session."""
    tree = git.state()
    noted = state.read_state(git.root)
    catalog = catalogs.load_catalog(git.root, git.ours)
    nodes = list(catalog.nodes)
    files = catalog.files.values()
    raw = sum(file.looks.size for file in files if layout.is_raw_file(file.path))
    secrets = sum(code == "secret" for file in files for _, code, _, _ in file.findings)
    uncommitted = (*tree.changed, *(path for path in tree.untracked if layout.is_store_file(path)))
    due = check_curation(nodes)
    ahead = _unpushed_commits(git, tree)
    failed = noted.push is not None and noted.push.outcome in ("rejected", "unreachable") and bool(ahead)
    problem = noted.push.problem or noted.push.outcome if failed and noted.push else ""
    diverged = tree.has_diverged or (noted.divergence is not None and tree.branch is not None)
    unfinished = tree.in_progress or ("merge" if tree.conflicted else "")
    facts = NudgeFacts(
        *(secrets, diverged, bool(problem), ahead, len(uncommitted)),
        *(due.new if due.is_due else 0, bool(unfinished)),
    )
    found = KbStatus(
        git.root,
        len(nodes),
        sum(node.status == "contested" for node in nodes),
        tree.branch or "",
        mask_urls(git.remote() or ""),
        ahead,
        tree.behind,
        uncommitted,
        problem,
        diverged,
        noted.indexed_at,
        raw,
        secrets,
        due.is_due,
        nudge_text(facts),
        unfinished,
        tree.conflicted,
        _fetch_problem(git, noted),
    )
    return found, facts


def _fetch_problem(git: Git, noted: StoreState) -> str:
    """Return why and when the last fetch failed; empty if it succeeded."""
    if git.remote() is None or noted.fetch is None or noted.fetch.outcome == "reached":
        return ""
    told = f"{noted.fetch.problem or 'not reached'} ({noted.fetch.at})"
    if noted.fetch.outcome == "silent":
        told += (
            f"; writers do without it for {store_remote.SILENT_MINUTES} minutes, `ai-kb push` asks it at once"
        )
    return told


def _unpushed_commits(git: Git, tree: TreeState) -> int:
    """Return the number of commits not on the remote; up to 1000 if nothing was ever fetched from it.

    Without a branch, for example during a rebase, there is nothing to compare, and the result is 0."""
    if git.remote() is None or tree.head is None or tree.branch is None:
        return 0
    return tree.ahead if tree.upstream is not None else len(git.log(1000))


def check_store(
    git: Git, environ: Mapping[str, str], home: str, platform: str, *, now: str, seconds: float = 5.0
) -> list[KbCheck]:
    """Run all checks of the store and of its setup on this machine."""
    checks = [KbCheck("repository", True, git.root)]
    found = store_status(git)
    noted = state.read_state(git.root)
    checks.append(_check_tree(found))
    checks += _check_remote(git, found, environ, now, seconds)
    checks.append(_check_push(found, noted, git.knows_the_person))
    findings = lint.lint_store(
        catalogs.load_catalog(git.root, git.ours, certain=True, judge=lint.file_checker()), git.ours
    )
    fatal = [each for each in findings if each.fatal]
    secrets = [each for each in fatal if each.code == "secret"]
    first = f"{fatal[0].path}:{fatal[0].line}: {fatal[0].message}" if fatal else ""
    checks.append(
        KbCheck(
            "lint",
            not fatal,
            first and f"{count_noun(len(fatal), 'finding')}; {first}",
            "`ai-kb lint` shows them all",
        )
    )
    where = f"{len(secrets)}, first {secrets[0].path}:{secrets[0].line}" if secrets else "none found"
    checks.append(KbCheck("secrets", not secrets, where, "Take them out, and revoke those that were pushed"))
    due = check_curation(list(catalogs.load_catalog(git.root, git.ours).nodes))
    checks.append(
        KbCheck(
            "curation",
            not due.is_due,
            f"{count_noun(due.new, 'node')} since {due.last}"
            if due.last
            else f"{count_noun(due.nodes, 'node')}, due at {FIRST_CURATION}",
            "`ai-kb curate --dry-run`, and the skill curate",
        )
    )
    raw = f"{found.raw_bytes / 1024 / 1024:.1f} MB"
    checks.append(
        KbCheck("raw", found.raw_bytes <= LARGE_RAW_TOTAL, raw, "`ai-kb curate --dry-run` names large files")
    )
    checks.append(_check_timer(git, found, environ, home, platform))
    checks.append(_check_org_roam(git, environ))
    checks += [_check_program(name, why, environ) for name, why in OPTIONAL_PROGRAMS]
    return checks


OPTIONAL_PROGRAMS = (
    ("ai-kb", "on the PATH, for agents that call it"),
    ("emacs", "for browsing with emacs/ai-kb.el; nothing else needs it"),
    ("dot", "graphviz, for the map in Emacs"),
)


def _check_timer(git: Git, found: KbStatus, environ: Mapping[str, str], home: str, platform: str) -> KbCheck:
    """Check whether an active timer pushes this store."""
    if not found.remote:
        return KbCheck("timer", True, "not needed without a remote", missing=True)
    timer = setup.find_timer(git.root, environ, home, platform)
    if timer is None:
        return KbCheck(
            "timer", True, "none; `ai-kb install-timer` has the store pushed by itself", missing=True
        )
    if timer.state in ("active", "unknown"):
        rest = f"; whether it runs cannot be known: {timer.problem}" if timer.problem else ", active"
        return KbCheck("timer", True, f"{timer.place}{rest}")
    return KbCheck("timer", False, f"{timer.place}: {timer.problem}", timer.remedy)


def _check_org_roam(git: Git, environ: Mapping[str, str]) -> KbCheck:
    """Check whether org-roam can index the nodes, with a temporary database unless an up-to-date one exists."""
    import tempfile

    kept = os.path.join(git.ours, setup.ORG_ROAM_DATABASE)
    if setup.is_org_roam_fresh(git.root, kept):
        return KbCheck("org-roam", True, f"{kept} is that of the nodes")
    with tempfile.TemporaryDirectory(prefix="ai-kb-") as folder:
        done = setup.sync_org_roam(
            git.root, git.ours, environ, database=os.path.join(folder, setup.ORG_ROAM_DATABASE)
        )
    if done.state in ("no emacs", "no org-roam"):
        return KbCheck("org-roam", True, done.problem, missing=True)
    if done.state == "failed" or done.problem:
        remedy = "Mend the node that it names" if done.state == "synced" else "`ai-kb sync` tries again"
        return KbCheck("org-roam", False, f"its index cannot be built: {done.problem}", remedy)
    return KbCheck("org-roam", True, "its index can be built")


def _check_program(name: str, why: str, environ: Mapping[str, str]) -> KbCheck:
    import shutil

    found = shutil.which(name, path=environ.get("PATH", ""))
    return KbCheck(name, True, found or f"not installed ({why})", missing=not found)


def _check_tree(found: KbStatus) -> KbCheck:
    if found.unfinished:
        verb = f"git -C {found.root} {found.unfinished}"
        told = f"a {found.unfinished} was begun and not finished; nothing can be written until then"
        if found.conflicted:
            files = f"resolve {repo_policy.shorten_paths(found.conflicted)}, `git -C {found.root} add` them, then "
            told = f"{told}; {count_noun(len(found.conflicted), 'file')} in conflict"
        else:
            files = ""
        if found.unfinished == "bisect":
            return KbCheck("tree", False, told, f"`{verb} reset`")
        return KbCheck(
            "tree", False, told, f"{files[:1].upper()}{files[1:]}`{verb} --continue`, or `{verb} --abort`"
        )
    if found.uncommitted:
        told = f"{count_noun(len(found.uncommitted), 'file')} not committed, first {found.uncommitted[0]}"
        return KbCheck("tree", False, told, "`ai-kb commit` lints and commits them")
    if not found.branch:
        remedy = f"`git -C {found.root} switch main`; nothing can be written until then"
        return KbCheck("tree", False, "no branch is checked out", remedy)
    if found.branch not in ("main", "master"):
        told = f"on the branch {found.branch}, not main: commits and pushes go there"
        return KbCheck("tree", False, told, f"`git -C {found.root} switch main` once it is merged")
    return KbCheck("tree", True, f"clean, on {found.branch}")


def _check_remote(
    git: Git, found: KbStatus, environ: Mapping[str, str], now: str, seconds: float
) -> list[KbCheck]:
    """Check whether the remote responds and whether it is private."""
    if not found.remote:
        remedy = "`ai-kb init --remote URL` names a private one; without it this disk is the only copy"
        return [KbCheck("remote", True, f"none. {remedy}", missing=True)]
    try:
        fetched, _ = store_remote.fetch_store(git, now, seconds)
    except QuaidError as error:
        return [KbCheck("remote", False, str(error), "Mend its address with `ai-kb init --remote URL`")]
    if not fetched.reached:
        remedy = "Offline is fine; else check address and key"
        if fetched.is_silent:
            minutes = store_remote.SILENT_MINUTES
            remedy += f". Writers do without it for {minutes} minutes; `ai-kb push` asks it at once"
        unknown = KbCheck("private", True, "cannot be known of a remote that does not answer", missing=True)
        return [KbCheck("remote", False, f"{found.remote}: {fetched.problem}", remedy), unknown]

    judged = store_remote.judge_privacy(git.remote() or "", git.root, environ, seconds)
    told = f"{judged.told}. {judged.remedy}" if judged.state == "unknown" and judged.remedy else judged.told
    return [
        KbCheck("remote", True, f"{found.remote} answers"),
        KbCheck("private", judged.state != "public", told, judged.remedy, judged.state == "unknown"),
    ]


def _check_push(found: KbStatus, noted: StoreState, is_known: bool) -> KbCheck:
    """Check whether all commits are pushed. `is_known`: git has a name and an address for commits."""
    if found.remote and not found.branch:
        return KbCheck("push", True, "cannot be known while no branch is checked out", missing=True)
    if found.diverged:
        told = f"diverged: {count_noun(found.ahead, 'commit')} only here, {found.behind} only there"
        remedy = f"`git -C {os.path.abspath(found.root)} pull --rebase`, then `ai-kb index` and `ai-kb push`"
        if not is_known:
            name = "`git config --global user.name NAME`, `git config --global user.email ADDRESS`"
            remedy = f"Git does not know you yet: {name}; then {remedy}"
        return KbCheck("push", False, told, remedy)
    if found.push_problem:
        at = noted.push.at if noted.push else ""
        return KbCheck(
            "push", False, f"ahead {found.ahead}; failed {at}: {found.push_problem}", "`ai-kb push`"
        )
    if found.ahead:
        return KbCheck(
            "push",
            True,
            f"ahead {found.ahead}; `ai-kb push` sends it, `ai-kb install-timer` does so for ever",
        )
    return KbCheck("push", True, "nothing to push")

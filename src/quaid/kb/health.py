"""How a knowledge base is doing: `status` at a glance, `doctor` with reasons and remedies.

Status reads what is there and calls git once. Doctor looks at everything, the remote included, and proposes what to
do. Nothing is changed. Knows what is worth telling.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.kb import catalog as catalogs, curating, layout, linting, state
from quaid.kb.git import Git
from quaid.kb.reading import TreeState
from quaid.kb.state import StoreState

LARGE_RAW = 50 * 1024 * 1024


class Status(NamedTuple):
    root: str
    nodes: int
    contested: int
    branch: str
    remote: str
    """Without secrets; nothing: there is none."""
    ahead: int
    """Commits that the remote does not have."""
    behind: int
    uncommitted: tuple[str, ...]
    push_problem: str
    """Why the last push failed; nothing: it did not."""
    diverged: bool
    indexed_at: str
    raw_bytes: int
    secrets: int
    """As far as lint has looked."""
    curation_due: bool
    nudge: str
    """One line for whoever begins a session; nothing when all is well."""


class Check(NamedTuple):
    name: str
    well: bool
    told: str
    remedy: str = ""


def status(git: Git) -> Status:
    """A glance."""
    from quaid.kb.guarding import masked

    tree = git.state()
    noted = state.read(git.root)
    catalog = catalogs.look(git.root, git.ours)
    nodes = list(catalog.nodes)
    files = catalog.files.values()
    raw = sum(file.looks.size for file in files if layout.is_raw(file.path))
    secrets = sum(code == "secret" for file in files for _, code, _, _ in file.findings)
    uncommitted = tuple(path for path in (*tree.changed, *tree.untracked) if layout.is_ours(path))
    due = curating.due(nodes)
    ahead = _ahead(git, tree)
    failed = noted.push is not None and noted.push.outcome in ("rejected", "unreachable") and bool(ahead)
    problem = noted.push.problem or noted.push.outcome if failed and noted.push else ""
    diverged = tree.has_diverged or noted.divergence is not None
    return Status(
        git.root,
        len(nodes),
        sum(node.status == "contested" for node in nodes),
        tree.branch or "",
        masked(git.remote() or ""),
        ahead,
        tree.behind,
        uncommitted,
        problem,
        diverged,
        noted.indexed_at,
        raw,
        secrets,
        due.is_due,
        _nudge(ahead, problem, diverged, uncommitted, secrets, due, git.remote() is not None),
    )


def _ahead(git: Git, tree: TreeState) -> int:
    """Commits that are only here; all of them as long as the remote has never been seen."""
    if git.remote() is None or tree.head is None:
        return 0
    return tree.ahead if tree.upstream is not None else len(git.log(1000))


def _nudge(
    ahead: int,
    problem: str,
    diverged: bool,
    uncommitted: tuple[str, ...],
    secrets: int,
    due: curating.Due,
    has_remote: bool,
) -> str:
    told = []
    if secrets:
        told.append(f"{secrets} secrets in it: `ai-kb lint`")
    if diverged:
        told.append("it and its remote have diverged: `ai-kb doctor`")
    elif problem:
        told.append(f"{ahead} commits not pushed, the last push failed: `ai-kb doctor`")
    elif ahead and has_remote:
        told.append(f"{ahead} commits not pushed yet: `ai-kb push`")
    if uncommitted:
        told.append(f"{len(uncommitted)} files not committed: `ai-kb commit`")
    if due.is_due:
        told.append(f"{due.new} nodes to look through: `ai-kb curate --dry-run`")
    return f"ai-kb: {'; '.join(told)}" if told else ""


def doctor(git: Git, environ: Mapping[str, str], seconds: float = 5.0) -> list[Check]:
    """Everything that can be wrong with the store and with this machine's part in it."""
    checks = [Check("repository", True, git.root)]
    found = status(git)
    noted = state.read(git.root)
    checks.append(_tree(found))
    checks.append(_remote(git, found, seconds))
    checks.append(_pushed(found, noted))
    findings = linting.lint(catalogs.look(git.root, git.ours, certain=True), git.ours)
    fatal = [each for each in findings if each.fatal]
    secrets = [each for each in fatal if each.code == "secret"]
    first = f"{fatal[0].path}:{fatal[0].line}: {fatal[0].message}" if fatal else ""
    checks.append(
        Check("lint", not fatal, first and f"{len(fatal)} findings; {first}", "`ai-kb lint` shows them all")
    )
    where = f"{len(secrets)}, first {secrets[0].path}:{secrets[0].line}" if secrets else "none found"
    checks.append(Check("secrets", not secrets, where, "Take them out, and revoke those that were pushed"))
    due = curating.due(list(catalogs.look(git.root, git.ours).nodes))
    checks.append(
        Check(
            "curation",
            not due.is_due,
            f"{due.new} nodes since {due.last}"
            if due.last
            else f"{due.nodes} nodes, due at {curating.FIRST}",
            "`ai-kb curate --dry-run`, and the skill curate",
        )
    )
    raw = f"{found.raw_bytes / 1024 / 1024:.1f} MB"
    checks.append(
        Check("raw", found.raw_bytes <= LARGE_RAW, raw, "`ai-kb curate --dry-run` names large files")
    )
    checks += [_program(name, why, environ) for name, why in PROGRAMS]
    return checks


PROGRAMS = (
    ("emacs", "for browsing with emacs/ai-kb.el; nothing else needs it"),
    ("dot", "graphviz, for the map in Emacs"),
)


def _program(name: str, why: str, environ: Mapping[str, str]) -> Check:
    import shutil

    found = shutil.which(name, path=environ.get("PATH", ""))
    return Check(name, True, found or f"not installed ({why})")


def _tree(found: Status) -> Check:
    if found.uncommitted:
        told = f"{len(found.uncommitted)} files not committed, first {found.uncommitted[0]}"
        return Check("tree", False, told, "`ai-kb commit` lints and commits them")
    return Check("tree", True, f"clean, on {found.branch or 'no branch'}")


def _remote(git: Git, found: Status, seconds: float) -> Check:
    if not found.remote:
        remedy = "`ai-kb init --remote URL` names a private one; without it this disk is the only copy"
        return Check("remote", True, f"none. {remedy}")
    try:
        fetched = git.fetch(seconds)
    except QuaidError as error:
        return Check("remote", False, str(error), "Mend its address with `ai-kb init --remote URL`")
    if fetched.reached:
        return Check("remote", True, f"{found.remote} answers")
    return Check(
        "remote", False, f"{found.remote}: {fetched.problem}", "Offline is fine; else check address and key"
    )


def _pushed(found: Status, noted: StoreState) -> Check:
    if found.diverged:
        told = f"diverged: {found.ahead} commits only here, {found.behind} only there"
        remedy = f"`git -C {os.path.abspath(found.root)} pull --rebase`, then `ai-kb lint` and `ai-kb push`"
        return Check("push", False, told, remedy)
    if found.push_problem:
        at = noted.push.at if noted.push else ""
        return Check("push", False, f"ahead {found.ahead}; failed {at}: {found.push_problem}", "`ai-kb push`")
    if found.ahead:
        return Check(
            "push",
            True,
            f"ahead {found.ahead}; `ai-kb push` sends it, `ai-kb install-timer` does so for ever",
        )
    return Check("push", True, "nothing to push")

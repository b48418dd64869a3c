"""How a knowledge base is doing: `status` at a glance, `doctor` with reasons and remedies.

Status reads what is there and calls git once. Doctor looks at everything, the remote included, and proposes what to
do. Nothing is changed. Knows what is worth telling.
"""

import os
from collections.abc import Mapping

from quaid.core.counts import count
from quaid.errors import QuaidError
from quaid.kb import catalog as catalogs, curating, layout, linting, state
from quaid.kb.git import Git
from quaid.kb.nudging import Facts, worded
from quaid.kb.reading import TreeState
from quaid.kb.records import Check, Status
from quaid.kb.state import StoreState

LARGE_RAW = 50 * 1024 * 1024


def status(git: Git) -> Status:
    """A glance."""
    return look(git)[0]


def look(git: Git) -> tuple[Status, Facts]:
    """A glance, and what of it is worth a word to whoever begins a session."""
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
    facts = Facts(secrets, diverged, bool(problem), ahead, len(uncommitted), due.new if due.is_due else 0)
    found = Status(
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
        worded(facts),
    )
    return found, facts


def _ahead(git: Git, tree: TreeState) -> int:
    """Commits that are only here; all of them as long as the remote has never been seen."""
    if git.remote() is None or tree.head is None:
        return 0
    return tree.ahead if tree.upstream is not None else len(git.log(1000))


def doctor(git: Git, environ: Mapping[str, str], seconds: float = 5.0) -> list[Check]:
    """Everything that can be wrong with the store and with this machine's part in it."""
    checks = [Check("repository", True, git.root)]
    found = status(git)
    noted = state.read(git.root)
    checks.append(_tree(found))
    checks.append(_remote(git, found, seconds))
    checks.append(_pushed(found, noted))
    findings = linting.lint(catalogs.look(git.root, git.ours, certain=True, judge=linting.judge()), git.ours)
    fatal = [each for each in findings if each.fatal]
    secrets = [each for each in fatal if each.code == "secret"]
    first = f"{fatal[0].path}:{fatal[0].line}: {fatal[0].message}" if fatal else ""
    checks.append(
        Check(
            "lint",
            not fatal,
            first and f"{count(len(fatal), 'finding')}; {first}",
            "`ai-kb lint` shows them all",
        )
    )
    where = f"{len(secrets)}, first {secrets[0].path}:{secrets[0].line}" if secrets else "none found"
    checks.append(Check("secrets", not secrets, where, "Take them out, and revoke those that were pushed"))
    due = curating.due(list(catalogs.look(git.root, git.ours).nodes))
    checks.append(
        Check(
            "curation",
            not due.is_due,
            f"{count(due.new, 'node')} since {due.last}"
            if due.last
            else f"{count(due.nodes, 'node')}, due at {curating.FIRST}",
            "`ai-kb curate --dry-run`, and the skill curate",
        )
    )
    raw = f"{found.raw_bytes / 1024 / 1024:.1f} MB"
    checks.append(
        Check("raw", found.raw_bytes <= LARGE_RAW, raw, "`ai-kb curate --dry-run` names large files")
    )
    checks += _wiring(environ)
    checks += [_program(name, why, environ) for name, why in PROGRAMS]
    return checks


PROGRAMS = (
    ("ai-kb", "on the PATH, for agents that call it"),
    ("emacs", "for browsing with emacs/ai-kb.el; nothing else needs it"),
    ("dot", "graphviz, for the map in Emacs"),
)


def _wiring(environ: Mapping[str, str]) -> list[Check]:
    """What this machine has for the store beside it: the timer that pushes, the rule that Claude reads."""
    home = environ.get("HOME", "")
    settings = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    timers = (
        os.path.join(settings, "systemd", "user", "ai-kb-push.timer"),
        os.path.join(home, "Library", "LaunchAgents", "quaid.ai-kb-push.plist"),
    )
    timer = next((path for path in timers if os.path.exists(path)), "")
    rule = os.path.join(
        environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "rules", "ai-kb.md"
    )
    linked = rule if os.path.exists(rule) else "none; `quaid connect claude-code --kb` writes it"
    return [
        Check("timer", True, timer or "none; `ai-kb install-timer` has the store pushed by itself"),
        Check("adapter", True, linked),
    ]


def _program(name: str, why: str, environ: Mapping[str, str]) -> Check:
    import shutil

    found = shutil.which(name, path=environ.get("PATH", ""))
    return Check(name, True, found or f"not installed ({why})")


def _tree(found: Status) -> Check:
    if found.uncommitted:
        told = f"{count(len(found.uncommitted), 'file')} not committed, first {found.uncommitted[0]}"
        return Check("tree", False, told, "`ai-kb commit` lints and commits them")
    if not found.branch:
        remedy = f"`git -C {found.root} switch main`; nothing can be written until then"
        return Check("tree", False, "no branch is checked out", remedy)
    if found.branch not in ("main", "master"):
        told = f"on the branch {found.branch}, not main: commits and pushes go there"
        return Check("tree", False, told, f"`git -C {found.root} switch main` once it is merged")
    return Check("tree", True, f"clean, on {found.branch}")


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
        told = f"diverged: {count(found.ahead, 'commit')} only here, {found.behind} only there"
        remedy = f"`git -C {os.path.abspath(found.root)} pull --rebase`, then `ai-kb index` and `ai-kb push`"
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

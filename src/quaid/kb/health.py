"""How a knowledge base is doing: `status` at a glance, `doctor` with reasons and remedies.

Status reads what is there and calls git once. Doctor looks at everything, the remote included, and proposes what to
do. Nothing is changed. Knows what is worth telling.
"""

import os
from collections.abc import Mapping

from quaid.errors import QuaidError
from quaid.kb import catalog as catalogs, curating, layout, linting, pushing, reading, state
from quaid.kb.git import Git
from quaid.kb.nudging import Facts, worded
from quaid.kb.reading import TreeState
from quaid.kb.records import Check, Status
from quaid.kb.state import StoreState
from quaid.model.plain_text import count_noun

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
    uncommitted = (*tree.changed, *(path for path in tree.untracked if layout.is_ours(path)))
    due = curating.due(nodes)
    ahead = _ahead(git, tree)
    failed = noted.push is not None and noted.push.outcome in ("rejected", "unreachable") and bool(ahead)
    problem = noted.push.problem or noted.push.outcome if failed and noted.push else ""
    diverged = tree.has_diverged or (noted.divergence is not None and tree.branch is not None)
    unfinished = tree.in_progress or ("merge" if tree.conflicted else "")
    facts = Facts(
        *(secrets, diverged, bool(problem), ahead, len(uncommitted)),
        *(due.new if due.is_due else 0, bool(unfinished)),
    )
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
        unfinished,
        tree.conflicted,
        _unreached(git, noted),
    )
    return found, facts


def _unreached(git: Git, noted: StoreState) -> str:
    """Why the last fetch failed, and when; a remote that was silent is not waited for by every writer."""
    if git.remote() is None or noted.fetch is None or noted.fetch.outcome == "reached":
        return ""
    told = f"{noted.fetch.problem or 'not reached'} ({noted.fetch.at})"
    if noted.fetch.outcome == "silent":
        told += f"; writers do without it for {pushing.SILENT_MINUTES} minutes, `ai-kb push` asks it at once"
    return told


def _ahead(git: Git, tree: TreeState) -> int:
    """Commits that are only here; all of them as long as the remote has never been seen.

    Without a branch, as in the middle of a rebase, there is nothing to compare."""
    if git.remote() is None or tree.head is None or tree.branch is None:
        return 0
    return tree.ahead if tree.upstream is not None else len(git.log(1000))


def doctor(
    git: Git, environ: Mapping[str, str], home: str, platform: str, *, now: str, seconds: float = 5.0
) -> list[Check]:
    """Everything that can be wrong with the store and with this machine's part in it."""
    checks = [Check("repository", True, git.root)]
    found = status(git)
    noted = state.read(git.root)
    checks.append(_tree(found))
    checks += _remote(git, found, environ, now, seconds)
    checks.append(_pushed(found, noted, git.knows_the_person))
    findings = linting.lint(catalogs.look(git.root, git.ours, certain=True, judge=linting.judge()), git.ours)
    fatal = [each for each in findings if each.fatal]
    secrets = [each for each in fatal if each.code == "secret"]
    first = f"{fatal[0].path}:{fatal[0].line}: {fatal[0].message}" if fatal else ""
    checks.append(
        Check(
            "lint",
            not fatal,
            first and f"{count_noun(len(fatal), 'finding')}; {first}",
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
            f"{count_noun(due.new, 'node')} since {due.last}"
            if due.last
            else f"{count_noun(due.nodes, 'node')}, due at {curating.FIRST}",
            "`ai-kb curate --dry-run`, and the skill curate",
        )
    )
    raw = f"{found.raw_bytes / 1024 / 1024:.1f} MB"
    checks.append(
        Check("raw", found.raw_bytes <= LARGE_RAW, raw, "`ai-kb curate --dry-run` names large files")
    )
    checks.append(_timer(git, found, environ, home, platform))
    checks.append(_org_roam(git, environ))
    checks += [_program(name, why, environ) for name, why in PROGRAMS]
    return checks


PROGRAMS = (
    ("ai-kb", "on the PATH, for agents that call it"),
    ("emacs", "for browsing with emacs/ai-kb.el; nothing else needs it"),
    ("dot", "graphviz, for the map in Emacs"),
)


def _timer(git: Git, found: Status, environ: Mapping[str, str], home: str, platform: str) -> Check:
    """Whether something pushes the store by itself, and this one."""
    if not found.remote:
        return Check("timer", True, "not needed without a remote", missing=True)
    from quaid.kb import timers

    timer = timers.installed(git.root, environ, home, platform)
    if timer is None:
        return Check(
            "timer", True, "none; `ai-kb install-timer` has the store pushed by itself", missing=True
        )
    if timer.state in ("active", "unknown"):
        rest = f"; whether it runs cannot be known: {timer.problem}" if timer.problem else ", active"
        return Check("timer", True, f"{timer.place}{rest}")
    return Check("timer", False, f"{timer.place}: {timer.problem}", timer.remedy)


def _org_roam(git: Git, environ: Mapping[str, str]) -> Check:
    """Whether Emacs can build its index of the nodes; built where nobody looks, unless it is there already."""
    import tempfile

    from quaid.kb import emacs

    kept = os.path.join(git.ours, emacs.NAME)
    if emacs.is_fresh(git.root, kept):
        return Check("org-roam", True, f"{kept} is that of the nodes")
    with tempfile.TemporaryDirectory(prefix="ai-kb-") as folder:
        done = emacs.sync(git.root, git.ours, environ, database=os.path.join(folder, emacs.NAME))
    if done.state in ("no emacs", "no org-roam"):
        return Check("org-roam", True, done.problem, missing=True)
    if done.state == "failed" or done.problem:
        remedy = "Mend the node that it names" if done.state == "synced" else "`ai-kb sync` tries again"
        return Check("org-roam", False, f"its index cannot be built: {done.problem}", remedy)
    return Check("org-roam", True, "its index can be built")


def _program(name: str, why: str, environ: Mapping[str, str]) -> Check:
    import shutil

    found = shutil.which(name, path=environ.get("PATH", ""))
    return Check(name, True, found or f"not installed ({why})", missing=not found)


def _tree(found: Status) -> Check:
    if found.unfinished:
        verb = f"git -C {found.root} {found.unfinished}"
        told = f"a {found.unfinished} was begun and not finished; nothing can be written until then"
        if found.conflicted:
            files = f"resolve {reading.some(found.conflicted)}, `git -C {found.root} add` them, then "
            told = f"{told}; {count_noun(len(found.conflicted), 'file')} in conflict"
        else:
            files = ""
        if found.unfinished == "bisect":
            return Check("tree", False, told, f"`{verb} reset`")
        return Check(
            "tree", False, told, f"{files[:1].upper()}{files[1:]}`{verb} --continue`, or `{verb} --abort`"
        )
    if found.uncommitted:
        told = f"{count_noun(len(found.uncommitted), 'file')} not committed, first {found.uncommitted[0]}"
        return Check("tree", False, told, "`ai-kb commit` lints and commits them")
    if not found.branch:
        remedy = f"`git -C {found.root} switch main`; nothing can be written until then"
        return Check("tree", False, "no branch is checked out", remedy)
    if found.branch not in ("main", "master"):
        told = f"on the branch {found.branch}, not main: commits and pushes go there"
        return Check("tree", False, told, f"`git -C {found.root} switch main` once it is merged")
    return Check("tree", True, f"clean, on {found.branch}")


def _remote(git: Git, found: Status, environ: Mapping[str, str], now: str, seconds: float) -> list[Check]:
    """Whether the remote answers, and whether others can read it."""
    if not found.remote:
        remedy = "`ai-kb init --remote URL` names a private one; without it this disk is the only copy"
        return [Check("remote", True, f"none. {remedy}", missing=True)]
    try:
        fetched, _ = pushing.fetch(git, now, seconds)
    except QuaidError as error:
        return [Check("remote", False, str(error), "Mend its address with `ai-kb init --remote URL`")]
    if not fetched.reached:
        remedy = "Offline is fine; else check address and key"
        if fetched.is_silent:
            remedy += (
                f". Writers do without it for {pushing.SILENT_MINUTES} minutes; `ai-kb push` asks it at once"
            )
        unknown = Check("private", True, "cannot be known of a remote that does not answer", missing=True)
        return [Check("remote", False, f"{found.remote}: {fetched.problem}", remedy), unknown]
    from quaid.kb import privacy

    judged = privacy.judge(git.remote() or "", git.root, environ, seconds)
    told = f"{judged.told}. {judged.remedy}" if judged.state == "unknown" and judged.remedy else judged.told
    return [
        Check("remote", True, f"{found.remote} answers"),
        Check("private", judged.state != "public", told, judged.remedy, judged.state == "unknown"),
    ]


def _pushed(found: Status, noted: StoreState, is_known: bool) -> Check:
    """Whether the remote has everything. `is_known`: git has a name and an address for commits."""
    if found.remote and not found.branch:
        return Check("push", True, "cannot be known while no branch is checked out", missing=True)
    if found.diverged:
        told = f"diverged: {count_noun(found.ahead, 'commit')} only here, {found.behind} only there"
        remedy = f"`git -C {os.path.abspath(found.root)} pull --rebase`, then `ai-kb index` and `ai-kb push`"
        if not is_known:
            name = "`git config --global user.name NAME`, `git config --global user.email ADDRESS`"
            remedy = f"Git does not know you yet: {name}; then {remedy}"
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

"""What the knowledge base answers with. Values only, so that a cold command need not import how they are found."""

from typing import NamedTuple


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
    unfinished: str = ""
    """A merge, rebase, cherry-pick, revert or bisect that was begun; nothing: none."""
    conflicted: tuple[str, ...] = ()
    remote_problem: str = ""
    """Why the remote was not reached when it was last asked; nothing: it was."""


class Check(NamedTuple):
    name: str
    well: bool
    told: str
    remedy: str = ""
    missing: bool = False
    """Something optional that is not there, or that cannot be known: neither fine nor wrong."""


class Made(NamedTuple):
    root: str
    created: bool
    """False: there was a repository already."""
    files: tuple[str, ...]
    """Files that were written now."""
    remote: str
    """Without secrets."""
    commit: str


class Timer(NamedTuple):
    """What was done, and what is left for the person."""

    kind: str  # systemd, launchd or cron
    written: tuple[str, ...]  # files that are new or changed
    unchanged: tuple[str, ...]
    enabled: bool
    to_run: tuple[str, ...]  # commands to type, or the line to put into a crontab
    problem: str = ""

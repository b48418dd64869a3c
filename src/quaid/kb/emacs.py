"""org-roam's own index of the nodes, brought up to date by Emacs, if there is one and it is needed.

Nothing depends on it: Emacs browses with it. Knows how old it is and how Emacs is called: with no settings of the
person or the store, so that nothing of either runs.
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from quaid.kb import calling, layout

NAME = "org-roam.db"
SECONDS = 300.0

CODE = """\
(progn
  (setq org-id-locations-file (expand-file-name "org-id-locations" (getenv "AI_KB_OURS")))
  (setq enable-local-variables nil enable-local-eval nil enable-dir-local-variables nil)
  (package-initialize)
  (require 'org-roam)
  (setq org-roam-directory (file-truename (getenv "AI_KB_ROOT"))
        org-roam-db-location (expand-file-name "org-roam.db" (getenv "AI_KB_OURS"))
        org-roam-file-exclude-regexp '("^raw/" "^index.*\\\\.org$" "^AGENT_CONTRACT\\\\.org$"))
  (org-roam-db-sync {force}))
"""


class Synced(NamedTuple):
    state: Literal["fresh", "synced", "no emacs"]
    database: str
    problem: str = ""


def is_fresh(root: str, database: str) -> bool:
    """Whether the index is newer than every node."""
    try:
        made = os.stat(database).st_mtime_ns
    except OSError:
        return False
    return all(each.looks.mtime_ns <= made for each in layout.walk(root) if layout.is_node(each.path))


def sync(root: str, ours: str, environ: Mapping[str, str], *, force: bool = False) -> Synced:
    """Have Emacs look at what changed."""
    import shutil

    database = os.path.join(ours, NAME)
    if not force and is_fresh(root, database):
        return Synced("fresh", database)
    program = shutil.which("emacs", path=environ.get("PATH", ""))
    if program is None:
        return Synced("no emacs", database, "Emacs is not installed; only its browsing needs this")
    known = {**environ, "AI_KB_ROOT": root, "AI_KB_OURS": ours}
    command = (
        program,
        "--batch",
        "--no-site-file",
        "--eval",
        CODE.replace("{force}", "t" if force else "nil"),
    )
    done = calling.run(command, root, known, seconds=SECONDS)
    if done.status != 0 or not os.path.exists(database):
        lines = [line for line in done.err.splitlines() if line.strip()]
        return Synced("no emacs", database, lines[-1] if lines else f"Emacs ended with {done.status}")
    os.utime(database)
    return Synced("synced", database)

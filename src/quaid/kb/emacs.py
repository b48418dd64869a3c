"""org-roam's own index of the nodes, brought up to date by Emacs, if there is one and it is needed.

Nothing depends on it: Emacs browses with it. Knows of which nodes it is, and how Emacs is called: with no settings of
the person or the store, so that nothing of either runs. What a node could make Emacs do while it is only read (local
variables, abbreviated links that name functions, setup files from the network) is turned off.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from quaid.errors import FileTrouble
from quaid.kb import calling, layout

NAME = "org-roam.db"
STAMP = ".synced"
"""Ending of the file beside the index that tells of which nodes it is."""
SECONDS = 300.0

CODE = r"""
(progn
  (setq enable-local-variables nil enable-local-eval nil enable-dir-local-variables nil)
  (setq large-file-warning-threshold nil create-lockfiles nil)
  (prefer-coding-system 'utf-8)
  (require 'package)
  (package-initialize)
  (require 'org-roam)
  (advice-add 'org-link-expand-abbrev :override #'identity)
  (advice-add 'org-file-contents :override (lambda (&rest _) ""))
  (let* ((root (file-name-as-directory (file-truename (getenv "AI_KB_ROOT"))))
         (top (concat "\\`\\(?:" (regexp-quote root) "\\)?")))
    (advice-add 'org-roam-list-files :filter-return
                (lambda (files)
                  (seq-filter (lambda (file) (string-prefix-p root (file-truename file))) files)))
    (setq org-id-track-globally nil
          org-roam-directory root
          org-roam-db-location (getenv "AI_KB_DATABASE")
          org-roam-list-files-commands nil
          org-roam-file-exclude-regexp
          (list (concat top "raw/") (concat top "index[^/]*\\.org\\'")
                (concat top "AGENT_CONTRACT\\.org\\'") (concat top "\\(?:[^/]+/\\)*\\.")
                (concat top "\\(?:[^/]+/\\)*#[^/]*\\'")))
    (org-roam-db-sync {force})
    (org-roam-db--close-all)))
"""


class Synced(NamedTuple):
    state: Literal["fresh", "synced", "no emacs", "no org-roam", "failed"]
    database: str
    problem: str = ""


def lisp_file() -> str:
    """Where ai-kb.el is: in the package, or beside the source that runs."""
    import quaid

    package = os.path.dirname(os.path.abspath(quaid.__file__))
    installed = os.path.join(package, "emacs", "ai-kb.el")
    source = os.path.join(os.path.dirname(os.path.dirname(package)), "emacs", "ai-kb.el")
    found = next((path for path in (installed, source) if os.path.exists(path)), None)
    if found is None:
        raise FileTrouble(path=installed, problem="it is not there; install quaid anew")
    return found


def is_fresh(root: str, database: str) -> bool:
    """Whether the index is that of the nodes as they are."""
    return os.path.exists(database) and _stamp(database) == _looks(root)


def sync(
    root: str, ours: str, environ: Mapping[str, str], *, database: str = "", force: bool = False
) -> Synced:
    """Have Emacs look at what changed."""
    import shutil

    database = database or os.path.join(ours, NAME)
    if not force and is_fresh(root, database):
        return Synced("fresh", database)
    program = shutil.which("emacs", path=environ.get("PATH", ""))
    if program is None:
        return Synced("no emacs", database, "Emacs is not installed; only its browsing needs this")
    before = _looks(root)
    known = {**environ, "AI_KB_ROOT": root, "AI_KB_DATABASE": database}
    command = (
        program,
        "--batch",
        "--no-site-file",
        "--eval",
        CODE.replace("{force}", "t" if force else "nil"),
    )
    done = calling.run(command, root, known, seconds=SECONDS)
    lines = [line for line in done.err.splitlines() if line.strip()]
    if done.status != 0 or not os.path.exists(database):
        told = _complaint(lines) or f"Emacs ended with {done.status}"
        if "load file" in told and "org-roam" in told:
            return Synced(
                "no org-roam", database, "org-roam is not installed in Emacs; only browsing needs it"
            )
        return Synced("failed", database, told)
    with open(database + STAMP, "w", encoding="ascii") as file:
        file.write(before)
    return Synced("synced", database, next((line for line in lines if "(org-roam):" in line), ""))


def _complaint(lines: list[str]) -> str:
    """Return the line of Emacs' messages that says what is wrong; newer ones print a backtrace behind it."""
    marked = [line.partition("Lisp error: ")[2] for line in lines if "Lisp error: " in line]
    plain = [line for line in lines if not line[0].isspace()]
    return (marked or plain[-1:] or lines[-1:] or [""])[0].strip()


def _stamp(database: str) -> str:
    try:
        with open(database + STAMP, encoding="ascii", errors="replace") as file:
            return file.read(100)
    except OSError:
        return ""


def _looks(root: str) -> str:
    """One name for all nodes as they look; another one as soon as one of them comes, goes or changes."""
    looks = [(each.path, *each.looks) for each in layout.walk(root) if layout.is_node(each.path)]
    return hashlib.blake2b(repr(looks).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

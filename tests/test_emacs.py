"""emacs/ai-kb.el in a real Emacs, with a real org-roam, over a knowledge base that the real program has made."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests import commands
from tests.kb.nodes import text

ROOT = Path(__file__).resolve().parent.parent
LISP = ROOT / "emacs" / "ai-kb.el"
ALPHA, BETA = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
PACKAGES = ("--eval", "(progn (require 'package) (package-initialize))")


def environ_of(home: Path) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AI_KB_TEST_PROGRAM": f"{commands.program()}\nkb",
    }


def emacs(
    environ: dict[str, str], *arguments: str, packages: bool = True
) -> subprocess.CompletedProcess[str]:
    command = ["emacs", "--batch", "--no-site-file", *(PACKAGES if packages else ("-Q",)), *arguments]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )


def _lacking() -> str:
    """What of Emacs is missing here, in words."""
    if shutil.which("emacs") is None:
        return "Emacs is not installed"
    completed = subprocess.run(
        ["emacs", "--batch", "--no-site-file", *PACKAGES, "--eval", "(require 'org-roam)"],
        capture_output=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    return "" if completed.returncode == 0 else "org-roam is not installed for Emacs"


@pytest.fixture(scope="module", autouse=True)
def there_is_an_emacs() -> None:
    if lacking := _lacking():
        pytest.skip(lacking)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environ_of(tmp_path / "home")


def kb(environ: dict[str, str], store: Path, *arguments: str) -> str:
    command = [commands.program(), "kb", *arguments]
    whole = environ | {"AI_KB_DIR": str(store)}
    done = subprocess.run(command, env=whole, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def store(tmp_path: Path, environ: dict[str, str]) -> Path:
    """A knowledge base with three nodes: what init writes, alpha, and beta, to which alpha leads."""
    folder = tmp_path / "template"
    kb(environ, folder, "init")
    link = f"RELATES_TO [[id:{BETA}][The beta node]]\n"
    (folder / "alpha.org").write_text(text(1, body=link, ID=ALPHA, title="The alpha node"))
    (folder / "beta.org").write_text(text(2, ID=BETA, title="The beta node", filetags=":procedure:"))
    kb(environ, folder, "commit")
    return folder


def test_it_compiles_without_a_warning(environ: dict[str, str], tmp_path: Path) -> None:
    for name in ("ai-kb.el", "ai-kb-tests.el"):
        shutil.copy(ROOT / "emacs" / name, tmp_path)
        done = emacs(
            environ,
            *("-L", str(tmp_path), "--eval", "(setq byte-compile-error-on-warn t)"),
            *("-f", "batch-byte-compile", str(tmp_path / name)),
        )
        assert done.returncode == 0, done.stderr
        assert "arning" not in done.stderr


def test_checkdoc_has_nothing_to_say(environ: dict[str, str]) -> None:
    done = emacs(environ, "--eval", f'(checkdoc-file "{LISP}")', packages=False)
    assert done.returncode == 0
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("which", ['"^ai-kb-a-[a-l]"', '(not "^ai-kb-a-[a-l]")'], ids=["some", "others"])
def test_emacs_tests_pass(environ: dict[str, str], store: Path, which: str) -> None:
    """In two parts, for two cores."""
    done = emacs(
        environ | {"AI_KB_TEMPLATE": str(store)},
        *("-L", str(LISP.parent), "-l", str(LISP.parent / "ai-kb-tests.el")),
        *("--eval", f"(ert-run-tests-batch-and-exit '{which})"),
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert re.search(r"Ran [1-9][0-9]* tests, .* 0 unexpected", done.stderr)


def test_without_org_roam_it_loads_and_says_what_it_needs(environ: dict[str, str], store: Path) -> None:
    done = emacs(
        environ | {"AI_KB_DIR": str(store)},
        *("-l", str(LISP)),
        *("--eval", '(setq ai-kb-program (split-string (getenv "AI_KB_TEST_PROGRAM") "\\n"))'),
        *("--eval", "(condition-case err (ai-kb-switch) (user-error (princ (cadr err))))"),
        *("--eval", "(ai-kb-refresh)"),
        *("--eval", "(while (> ai-kb--calls 0) (accept-process-output nil 0.05))"),
        *("--eval", '(princ (format "\\n%s nodes" (alist-get \'nodes ai-kb--status)))'),
        packages=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "This needs org-roam 2, which is not installed (package-install org-roam)",
        "3 nodes",
    ]


PERSONAL = """\
(progn
  (setq user-emacs-directory (expand-file-name "~/.emacs.d/")
        user-init-file (expand-file-name "~/.emacs.d/init.el")
        custom-file (expand-file-name "~/.emacs.d/custom.el"))
  (make-directory user-emacs-directory t)
  (require 'org-roam)
  (setq org-roam-directory "/home/me/roam/"
        org-agenda-files '("/home/me/todo.org"))
  (when (file-exists-p custom-file) (load custom-file nil t)))
"""
KILLED = """\
(progn
  (setq ai-kb-program "true")
  (ai-kb-switch)
  (customize-save-variable 'org-roam-directory org-roam-directory)
  (customize-save-variable 'org-roam-capture-templates org-roam-capture-templates)
  (customize-save-variable 'org-agenda-files (cons (concat org-roam-directory "alpha.org") org-agenda-files))
  (signal-process (emacs-pid) 'kill)
  (sleep-for 10))
"""
TELL = '(princ (format "%S" (list org-roam-directory org-agenda-files (caar org-roam-capture-templates))))'


@pytest.mark.parametrize("at_startup", [False, True])
def test_after_a_kill_while_switched_the_personal_settings_hold(
    environ: dict[str, str], store: Path, tmp_path: Path, at_startup: bool
) -> None:
    environ = environ | {"AI_KB_DIR": str(store)}
    personal = '("/home/me/roam/" ("/home/me/todo.org") "d")'
    killed = emacs(environ, "--eval", PERSONAL, "-l", str(LISP), "--eval", KILLED)
    assert killed.returncode == -9, killed.stderr
    folder = tmp_path / "home/.emacs.d"
    assert len(list(folder.glob("ai-kb-switched-*.eld"))) == 1
    assert str(store) in (folder / "custom.el").read_text()
    if at_startup:  # the package comes before the settings, as in most init files
        order = ["--eval", "(setq after-init-time nil)", "-l", str(LISP), "--eval", PERSONAL]
        order += ["--eval", "(run-hooks 'emacs-startup-hook)"]
    else:
        order = ["--eval", PERSONAL, "-l", str(LISP)]
    after = emacs(environ, *order, "--eval", TELL)
    assert after.stdout == personal, after.stderr
    assert "your own settings hold again" in after.stderr
    assert not list(folder.glob("ai-kb-switched-*.eld"))
    assert str(store) not in (folder / "custom.el").read_text()
    again = emacs(environ, "--eval", PERSONAL, "-l", str(LISP), "--eval", TELL)
    assert again.stdout == personal


def test_an_emacs_that_is_switched_at_the_moment_is_left_alone(
    environ: dict[str, str], store: Path, tmp_path: Path
) -> None:
    environ = environ | {"AI_KB_DIR": str(store)}
    code = (
        '(progn (setq ai-kb-program "true") (ai-kb-switch) (princ "ready\\n" #\'external-debugging-output))'
    )
    command = ["emacs", "--batch", "--no-site-file", *PACKAGES, "--eval", PERSONAL, "-l", str(LISP)]
    with subprocess.Popen(
        [*command, "--eval", code, "--eval", '(read-from-minibuffer "")'],
        env=environ,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        while "ready" not in running.stderr.readline():
            assert running.poll() is None
        other = emacs(environ, "--eval", PERSONAL, "-l", str(LISP), "--eval", TELL)
        assert other.stdout == '("/home/me/roam/" ("/home/me/todo.org") "d")'
        markers = list((tmp_path / "home/.emacs.d").glob("ai-kb-switched-*.eld"))
        assert [marker.name for marker in markers] == [f"ai-kb-switched-{running.pid}.eld"]
        running.stdin.write("\n")
        running.stdin.close()
        running.stderr.read()
    # It left by itself when it ended.
    assert not list((tmp_path / "home/.emacs.d").glob("ai-kb-switched-*.eld"))


def test_a_sync_evaluates_nothing_and_fetches_nothing(
    environ: dict[str, str], store: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    evil = f'(with-temp-file "{mark}")'
    words = (
        f"#+link: sh %(shell-command-to-string)\n[[sh:touch {mark}]]\n#+setupfile: {tmp_path}/setup.org\n"
        f"# Local Variables:\n# eval: {evil}\n# End:\n"
    )
    node = text(7, body=words, title="Evil")
    (store / "evil.org").write_text(f"# -*- eval: {evil} -*-\n{node}")
    (store / ".dir-locals.el").write_text(f"((nil . ((eval . {evil}))))")
    (tmp_path / "setup.org").write_text("#+filetags: :fromsetup:\n")
    (tmp_path / "home/.emacs.d").mkdir()
    (tmp_path / "home/.emacs.d/init.el").write_text(evil)
    payload = json.loads(kb(environ, store, "sync", "--json"))
    assert payload["state"] == "synced"
    assert not mark.exists()
    with sqlite3.connect(payload["database"]) as database:
        titles = database.execute("SELECT title FROM nodes").fetchall()
        tags = database.execute("SELECT tag FROM tags").fetchall()
    database.close()
    assert ('"Evil"',) in titles
    assert ('"fromsetup"',) not in tags
    assert ('"principle"',) in tags


def test_the_program_says_where_the_file_is(environ: dict[str, str], store: Path) -> None:
    assert kb(environ, store, "emacs-file").strip() == str(LISP)

"""Agreement with org-roam: lint refuses nodes that it cannot index; it reads all others as we do.

One Emacs indexes a folder of nodes that are good and bad in many ways; its index is compared with the catalog.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.kb.nodes import IDS, Folder, text
from tests.kb.stores import environ_of

from quaid.kb import catalog as catalogs, setup

TARGET = "abcdef01-0000-4000-8000-000000000000"  # of the node that all others may link to
LINK = f"[[id:{TARGET}][there]]"
BAD_LINK = "[[id:dddddddd-0000-4000-8000-00000000000d][nowhere]]"

Change = Callable[[str], str]


def body(words: str) -> Change:
    return lambda good: good.replace("Some words.\n", words)


def swap(old: str, new: str) -> Change:
    def change(good: str) -> str:
        assert old in good
        return good.replace(old, new)

    return change


def above(words: str) -> Change:
    return lambda good: words + good


def title(words: str) -> Change:
    return lambda good: good.replace("#+title: Node", f"#+title: {words}")


def tags(line: str) -> Change:
    return lambda good: good.replace("#+filetags: :principle:\n", line)


def heading(number: int, stars: str = "*", place: str = "") -> str:
    """Return a heading with an ID."""
    return f"{stars} Part\n{place}:PROPERTIES:\n:ID: {IDS[500 + number]}\n:END:\nWords {LINK}.\n"


CASES: dict[str, Change] = {
    "plain": body("Some words.\n"),
    "empty body": body(""),
    "no line end": lambda good: good.rstrip("\n"),
    # Drawers
    "no drawer": lambda good: good[good.index("#+title") :],
    "no id": lambda good: "\n".join(line for line in good.split("\n") if not line.startswith(":ID:")),
    "empty id": lambda good: "\n".join(
        ":ID:" if line.startswith(":ID:") else line for line in good.split("\n")
    ),
    "drawer not closed": swap(":END:\n", ""),
    "drawer below the title": lambda good: "#+title: Above\n" + good,
    "drawer below an empty line": above("\n"),
    "drawer below two empty lines": above("\n\n"),
    "drawer below spaces": above("   \n"),
    "drawer below words": above("Words first.\n"),
    "drawer below a comment": above("# a comment\n"),
    "drawer below two comments": above("# one\n# two\n"),
    "drawer below an indented comment": above("  # a comment\n"),
    "drawer below a comment without a space": above("#comment\n"),
    "drawer below a comment and an empty line": above("# a comment\n\n"),
    "drawer below a keyword": above("#+startup: overview\n"),
    "drawer below a mode line": above("# -*- mode: org -*-\n"),
    "drawer below a coding line": above("# -*- coding: utf-8 -*-\n"),
    "drawer below a comment block": above("#+begin_comment\nwords\n#+end_comment\n"),
    "drawer indented": lambda good: "".join(
        f"  {line}" if line.startswith(":") else line for line in good.splitlines(True)
    ),
    "drawer with tabs": lambda good: good.replace(": ", ":\t", 4),
    "drawer with tabs before the names": lambda good: good.replace("\n:", "\n\t:", 3),
    "drawer in small letters": lambda good: good.replace(":PROPERTIES:", ":properties:").replace(
        ":END:", ":end:"
    ),
    "names in small letters": lambda good: "".join(
        line if line.startswith((":PROPERTIES", ":END", "#")) else _low(line)
        for line in good.splitlines(True)
    ),
    "drawer with a line of words": swap(":STATUS:", "words\n:STATUS:"),
    "drawer with an empty line": swap(":STATUS:", "\n:STATUS:"),
    "drawer with words after its first line": swap(":PROPERTIES:", ":PROPERTIES: x"),
    "drawer with spaces after its lines": swap(":PROPERTIES:\n", ":PROPERTIES:  \n"),
    "drawer with spaces after its end": swap(":END:\n", ":END:   \n"),
    "drawer with words after its end": swap(":END:\n", ":END: x\n"),
    "drawer with a comment": swap(":STATUS:", "# comment\n:STATUS:"),
    "drawer with a value without a space": swap(":STATUS: current", ":STATUS:current"),
    "drawer with a property twice": swap(":STATUS: current", ":STATUS: current\n:STATUS: contested"),
    "drawer with an id twice": lambda good: good.replace(":PROJECTS:", f":ID: {IDS[900]}\n:PROJECTS:", 1),
    "drawer with an id that goes on": lambda good: good.replace(":PROJECTS:", ":ID+: more\n:PROJECTS:", 1),
    "drawer with a summary that goes on": swap(":END:", ":SUMMARY+: and more\n:END:"),
    "two drawers": lambda good: f":PROPERTIES:\n:ID: {IDS[901]}\n:END:\n" + good,
    "logbook first": above(":LOGBOOK:\n- one\n:END:\n"),
    "drawer in a block": lambda good: "#+begin_example\n" + good + "#+end_example\n",
    "left out": swap(":END:", ":ROAM_EXCLUDE: t\n:END:"),
    "left out by nil": swap(":END:", ":ROAM_EXCLUDE: nil\n:END:"),
    "aliases": swap(":END:", ':ROAM_ALIASES: "Another name" short\n:END:'),
    "torn aliases": swap(":END:", ':ROAM_ALIASES: "Another name\n:END:'),
    "refs": swap(":END:", ":ROAM_REFS: https://example.org @key\n:END:"),
    "torn refs": swap(":END:", ':ROAM_REFS: "https://example.org\n:END:'),
    # Ids
    "id in capitals": lambda good: "".join(
        line.upper() if line.startswith(":ID:") else line
        for line in good.replace("-4000-", "-4abc-").splitlines(True)
    ),
    "id in quotes": lambda good: "".join(
        f':ID: "{line[5:-1]}"\n' if line.startswith(":ID:") else line for line in good.splitlines(True)
    ),
    "id with words after it": lambda good: "".join(
        f"{line[:-1]} words\n" if line.startswith(":ID:") else line for line in good.splitlines(True)
    ),
    # Files
    "byte order mark": above("\ufeff"),
    "line ends of Windows": lambda good: good.replace("\n", "\r\n"),
    "line ends mixed": lambda good: good.replace("\n", "\r\n", 3),
    "line ends of old Macs": lambda good: good.replace("\n", "\r"),
    "form feed": body("One\n\f\nTwo\n"),
    "latin coding line": lambda good: "# -*- coding: latin-1 -*-\n" + good.replace("Some words", "Käse"),
    "control characters": body("\x01\x02 words \x7f\n"),
    # Titles
    "no title": lambda good: "\n".join(line for line in good.split("\n") if not line.startswith("#+title")),
    "title in capitals": swap("#+title:", "#+TITLE:"),
    "title indented": swap("#+title:", "  #+title:"),
    "title of umlauts": title("Zürich & «Käse» 東京 🧀"),
    "title with quotes": title('Say "hello" \\ or not'),
    "title with a link": title(f"About {LINK} and"),
    "title with a bare link": title("About [[https://example.org]] and"),
    "title with markup": title("About *bold* =code="),
    "two titles": swap("#+filetags", "#+title: Second\n#+filetags"),
    "title below a heading": lambda good: good.replace("#+title: ", "* Part\n#+title: "),
    "title below words": lambda good: good.replace("#+title: ", "Words\n#+title: "),
    "title in a block": lambda good: (
        good.replace("#+title: ", "#+begin_example\n#+title: ") + "#+end_example\n"
    ),
    "title in a quote block": lambda good: (
        good.replace("#+title: ", "#+begin_quote\n#+title: ") + "#+end_quote\n"
    ),
    "title in a drawer": lambda good: good.replace("#+title: ", ":NOTE:\n#+title: ") + ":END:\n",
    "title without a space": swap("#+title: ", "#+title:"),
    "title with tabs": swap("#+title: ", "#+title:\t"),
    "title without a colon": swap("#+title: ", "#+title "),
    # Tags
    "tags with spaces": tags("#+filetags: principle other\n"),
    "tags of both kinds": tags("#+filetags: :principle:a: :b:\n"),
    "tags in two lines": tags("#+filetags: :principle:\n#+filetags: :more:\n"),
    "tags twice": tags("#+filetags: :principle:principle:\n"),
    "tags in capitals": tags("#+FILETAGS: :principle:Big:\n"),
    "tags with a dash": tags("#+filetags: :principle:has-dash:\n"),
    "tags of umlauts": tags("#+filetags: :principle:käse:東京:\n"),
    "tags without colons at the ends": tags("#+filetags: principle:more\n"),
    "no tags": tags(""),
    "empty tags": tags("#+filetags:\n"),
    "tags below a heading": lambda good: good.replace("#+filetags:", "* Part\n#+filetags:"),
    "tags in a block": lambda good: (
        good.replace("#+filetags:", "#+begin_src org\n#+filetags:") + "#+end_src\n"
    ),
    "tags in a keyword that looks like it": tags("#+filetags: :principle:\n#+file_tags: :no:\n"),
    # Links
    "link": body(f"See {LINK}.\n"),
    "link without words": body(f"See [[id:{TARGET}]].\n"),
    "links in a row": body(f"{LINK}{LINK} {LINK}\n"),
    "link in a list": body(f"- one {LINK}\n  - two {LINK}\n"),
    "link in a table": body(f"| a | {LINK} |\n"),
    "link in a heading": body(f"* About {LINK}\n"),
    "link in a code block": body(f"#+begin_src org\n{BAD_LINK}\n#+end_src\n"),
    "link in an example": body(f"#+begin_example\n{BAD_LINK}\n#+end_example\n"),
    "link in a quote": body(f"#+begin_quote\n{LINK}\n#+end_quote\n"),
    "link in a verse": body(f"#+begin_verse\n{LINK}\n#+end_verse\n"),
    "link in an export block": body(f"#+begin_export html\n{BAD_LINK}\n#+end_export\n"),
    "link in a comment block": body(f"#+begin_comment\n{BAD_LINK}\n#+end_comment\n"),
    "link in a special block": body(f"#+begin_aside\n{LINK}\n#+end_aside\n"),
    "link in a comment": body(f"# {BAD_LINK}\n"),
    "link in a commented heading": body(f"* COMMENT Part\n{LINK}\n"),
    "link in verbatim": body(f"as ={BAD_LINK}= or ~{BAD_LINK}~ say\n"),
    "link in text of fixed width": body(f": {BAD_LINK}\n"),
    "link in inline code": body(f"src_org{{{BAD_LINK}}} ends\n"),
    "link in a footnote": body(f"Words[fn:1].\n\n[fn:1] See {LINK}.\n"),
    "link in a keyword": body(f"#+see: {LINK}\n"),
    "link in a caption": body(f"#+caption: {LINK}\n| a |\n"),
    "link in a property": swap(":SOURCE: chat 2026-05-24", f":SOURCE: {LINK}"),
    "link in a drawer": body(f":NOTE:\n{LINK}\n:END:\n"),
    "link in bold": body(f"*see {LINK}*\n"),
    "link over two lines": body(f"[[id:{TARGET}][over\nthere]]\n"),
    "link with a place": body(f"[[id:{TARGET}::*Part][there]]\n"),
    "link with spaces": body(f"[[ id:{TARGET} ][there]]\n"),
    "link in capitals": body(f"[[ID:{TARGET}][there]]\n"),
    "link to an id in capitals": body(f"[[id:{TARGET.upper()}][there]]\n"),
    "plain link in a code block": body(
        "#+begin_src org\nid:dddddddd-0000-4000-8000-00000000000d\n#+end_src\n"
    ),
    "plain link in a word": body("grid:dddddddd-0000-4000-8000-00000000000d\n"),
    "plain link in verbatim": body("as =id:dddddddd-0000-4000-8000-00000000000d= says\n"),
    "plain link in a property": swap(":SOURCE: chat 2026-05-24", f":SOURCE: id:{TARGET}"),
    "plain link as words of another": body(f"[[https://example.org][id:{TARGET}]]\n"),
    "plain link": body(f"id:{TARGET} as it is\n"),
    "plain link to nowhere": body("id:dddddddd-0000-4000-8000-00000000000d as it is\n"),
    "angle link": body(f"<id:{TARGET}>\n"),
    "torn link": body(f"[[id:{TARGET}][there\n"),
    "link to nowhere": body(f"{BAD_LINK}\n"),
    "link with brackets in its words": body(f"[[id:{TARGET}][a [b] c]]\n"),
    "abbreviated link": body(f"#+link: kb id:\n[[kb:{TARGET}]]\n"),
    "link in a macro": body(f"{{{{{{macro({LINK})}}}}}}\n"),
    "link in a latex fragment": body(f"\\({BAD_LINK}\\)\n"),
    "link in a target": body(f"<<{LINK}>>\n"),
    "link below an unclosed block": body(f"#+begin_src org\n{LINK}\n"),
    "link in an unclosed quote": body(f"#+begin_quote\n{LINK}\n"),
    "link in a clock line": body(f"CLOCK: [2026-01-01 Thu 10:00] {LINK}\n"),
    "link in html": body(f"@@html:{BAD_LINK}@@\n"),
    # Headings
    "heading": body("* Part\nWords.\n"),
    "heading with an id": body(heading(1)),
    "heading with an id below planning": body(heading(2, place="SCHEDULED: <2026-01-01 Thu>\n")),
    "heading with an id below words": body(heading(3, place="Words.\n")),
    "heading with an id indented": body(heading(4).replace(":", "  :", 1)),
    "heading with an id and no title": body(heading(5).replace("Part", "")),
    "heading with an id and a task": body(heading(6).replace("Part", "TODO [#A] Part :tag:")),
    "heading with an id in a block": body(
        f"#+begin_example\n,* Part\n:PROPERTIES:\n:ID: {IDS[800]}\n:END:\n#+end_example\n"
    ),
    "heading with an id left out": body(heading(7).replace(":END:", ":ROAM_EXCLUDE: t\n:END:")),
    "heading in an unclosed block": body(f"#+begin_example\n{heading(8)}"),
    "heading with an id in capitals": body(heading(10).replace("-4000-", "-4ABC-")),
    "heading with torn aliases": body(heading(11).replace(":END:", ':ROAM_ALIASES: "a\n:END:')),
    "heading first": lambda good: "* Part\n" + good,
    "inline task": body(heading(9, "***************")),
    "heading with the id of the file": lambda good: (
        good + f"* Part\n:PROPERTIES:\n{good.splitlines()[1]}\n:END:\n"
    ),
    # What is not evaluated
    "setup file": body("#+setupfile: setup.txt\n"),
    "include": body("#+include: plain.org\n"),
    "macro": body("#+macro: x (eval (error))\n{{{x}}}\n"),
    "macro that names a link": body(f"#+macro: x {LINK}\n"),
    "archived": body(f"* Part :ARCHIVE:\n{LINK}\n"),
    "conflict": body("<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n"),
}


# Links that we count and org-roam ignores; a search for the ID in the text finds them too.
SEEN_BY_US_ONLY = {"link-in-a-clock-line.org", "link-in-a-macro.org", "link-in-a-target.org"}


def _low(line: str) -> str:
    name, colon, value = line[1:].partition(":")
    return f":{name.lower()}{colon}{value}" if colon else line


class Indexed(NamedTuple):
    id: str
    title: str
    tags: frozenset[str]
    links: frozenset[str]
    inner: frozenset[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    if shutil.which("emacs") is None:
        pytest.skip("Emacs is not installed")
    folder = Folder(tmp_path_factory.mktemp("agreement") / "kb")
    folder.put("target.org", text(1, ID=TARGET, title="The target"))
    for number, (name, change) in enumerate(CASES.items(), 2):
        folder.put(f"{name.replace(' ', '-')}.org", change(text(number)))
    folder.put("twin-one.org", text(300, title="Twin one"))
    folder.put("twin-two.org", text(300, title="Twin two"))
    folder.put("setup.txt", "#+filetags: :from-the-setup:\n")
    folder.index()
    return folder


@pytest.fixture(scope="module")
def indexed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Indexed]:
    """What org-roam knows of each file that it has as a node."""
    environ = environ_of(tmp_path_factory.mktemp("home"))
    done = setup.sync_org_roam(str(folder.root), environ)
    if done.state == "no org-roam":
        pytest.skip("org-roam is not installed for Emacs")
    assert done.state == "synced", done.problem
    with sqlite3.connect(done.database) as database:
        rows = database.execute("SELECT id, file, level, title FROM nodes").fetchall()
        tagged = database.execute("SELECT node_id, tag FROM tags").fetchall()
        linked = database.execute("SELECT source, dest FROM links WHERE type = '\"id\"'").fetchall()
    database.close()
    results: dict[str, Indexed] = {}
    for id, file, level, title in rows:
        if level == 0:
            ids = {row[0] for row in rows if row[1] == file}
            results[Path(_lisp(file)).name] = Indexed(
                _lisp(id),
                _lisp(title),
                frozenset(_lisp(tag) for owner, tag in tagged if owner == id),
                frozenset(_lisp(dest).partition("::")[0] for source, dest in linked if source in ids),
                frozenset(map(_lisp, ids - {id})),
            )
    return results


def _lisp(printed: str) -> str:
    """A string as Emacs prints it."""
    assert printed[0] == printed[-1] == '"', printed
    return printed[1:-1].replace('\\"', '"').replace("\\\\", "\\")


@pytest.fixture(scope="module")
def refused(folder: Folder) -> set[str]:
    catalog = folder.look(certain=True)
    results = [item for item in catalogs.lint_store(catalog) if item.fatal]
    twins = {"twin-one.org"} if any(item.path == "twin-two.org" for item in results) else set()
    return {item.path for item in results} | twins


def test_there_are_enough_nodes_of_both_kinds(folder: Folder, refused: set[str]) -> None:
    assert len(CASES) >= 60
    assert len(refused) >= 25
    assert len(CASES) - len(refused) >= 60


def test_lint_refuses_nodes_that_org_roam_does_not_index(
    folder: Folder, indexed: dict[str, Indexed], refused: set[str]
) -> None:
    paths = {node.path for node in folder.look().nodes}
    assert paths - indexed.keys() - refused == set()


def test_org_roam_reads_nodes_that_pass_lint_as_quaid_does(
    folder: Folder, indexed: dict[str, Indexed], refused: set[str]
) -> None:
    ours = {
        node.path: Indexed(
            node.id,
            node.title,
            frozenset(node.tags),
            frozenset(link.id for link in node.links if node.path not in SEEN_BY_US_ONLY),
            frozenset(node.inner),
        )
        for node in folder.look().nodes
        if node.path not in refused
    }
    theirs = {path: indexed.get(path) for path in ours}
    assert [(path, ours[path], theirs[path]) for path in ours if ours[path] != theirs[path]] == []


ORG_LINT = """\
(progn
  (require 'org-lint)
  (setq enable-local-variables nil)
  (let ((checkers (seq-filter (lambda (each) (memq (org-lint-checker-name each)
                                                   '(invalid-block incomplete-drawer obsolete-properties-drawer)))
                              org-lint--checkers)))
    (unless (= (length checkers) 3) (error "org-lint has other checks now"))
    (dolist (file (directory-files (getenv "AI_KB_ROOT") t "\\\\.org$"))
      (with-current-buffer (find-file-noselect file)
        (org-mode)
        (dolist (report (org-lint--generate-reports (current-buffer) checkers))
          (princ (format "%s:%s\\n" (file-name-nondirectory file) (aref (cadr report) 0))))))))
"""


def test_lint_refuses_drawers_and_blocks_that_org_lint_reports(
    folder: Folder, refused: set[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        ["emacs", "--batch", "--no-site-file", "--eval", ORG_LINT],
        env=environ_of(tmp_path) | {"AI_KB_ROOT": str(folder.root), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    results = {line.rpartition(":")[0] for line in done.stdout.splitlines()}
    assert len(results) >= 8, done.stdout
    assert results - refused == set()

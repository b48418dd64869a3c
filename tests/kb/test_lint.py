"""Every check of lint, with file, line and remedy; style does not stop a commit."""

from pathlib import Path

import pytest
from tests.kb.nodes import IDS, Folder, text

from quaid.kb import catalog as catalogs, node as nodes
from quaid.kb.node import LintFinding
from quaid.model import secrets


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "kb")


def lint(store: Folder, *, index: bool = True) -> list[LintFinding]:
    if index:
        store.index()
    return catalogs.lint_store(store.look(certain=True))


def codes(store: Folder, **how: bool) -> list[tuple[str, int, str]]:
    return [(item.path, item.line, item.code) for item in lint(store, **how)]


def test_a_good_store_has_no_findings(store: Folder) -> None:
    store.put("a.org", text(1, f"See [[id:{IDS[1]}][the other]].\n"))
    store.put("b.org", text(2, "* A heading :tag:\n:PROPERTIES:\n:ID: inner-1\n:END:\nText.\n"))
    store.put("raw/paper.org", "Anything, also [[id:nowhere][this]].\n")
    store.put("raw/files/picture.png", b"\x89PNG\r\n\0\0" + bytes(range(256)))
    assert codes(store) == []


BAD = {
    "no id": (text(drop=("ID",)), 1, "id-missing"),
    "an id that is no uuid": (text(ID="my-node"), 2, "id-invalid"),
    "an empty id": (text(ID=""), 2, "id-missing"),
    "no summary": (text(drop=("SUMMARY",)), 1, "property-missing"),
    "no source": (text(drop=("SOURCE",)), 1, "property-missing"),
    "an empty summary": (text(SUMMARY=""), 11, "property-missing"),
    "no projects": (text(PROJECTS=""), 3, "property-missing"),
    "a second id": (text().replace(":END:", f":ID: {IDS[30]}\n:END:"), 12, "second-id"),
    "another status": (text(STATUS="maybe"), 10, "property-invalid"),
    "another confidence": (text(CONFIDENCE="sure"), 7, "property-invalid"),
    "another visibility": (text(VISIBILITY="secret"), 8, "property-invalid"),
    "another creator": (text(CREATED_BY="HAL"), 6, "property-invalid"),
    "no day": (text(CREATED="yesterday"), 4, "property-invalid"),
    "a day that is none": (text(UPDATED="2026-02-30"), 5, "property-invalid"),
    "updated before created": (text(UPDATED="2026-05-23"), 5, "property-invalid"),
    "a bad slug": (text(PROJECTS=":My App:"), 3, "project-bad"),
    "no title": (text(drop=("title",)), 1, "title-missing"),
    "an empty title": (text(title=""), 1, "title-missing"),
    "a drawer that is not closed": (text().replace(":END:\n", ""), 1, "unclosed-drawer"),
    "a drawer below the title": ("#+title: T\n" + text(), 2, "misplaced-drawer"),
    "a line in the drawer that is no property": (text().replace(":SOURCE:", "SOURCE"), 9, "bad-property"),
    "an open block": (text(body="#+begin_src sh\nls\n* Not code\n"), 16, "unclosed-block"),
    "marks of a merge": (text(body="<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), 16, "conflict"),
    "a link to nothing": (text(body=f"\n[[id:{IDS[40]}][gone]]\n"), 17, "link-broken"),
    "a required property twice": (text().replace(":END:", ":STATUS: contested\n:END:"), 12, "property-twice"),
    "a secret": (text(body="\ntoken: ghp_" + "aB3dE5fG7h" * 3 + "k9LmN1\n"), 17, "secret"),
    "a NUL": (text(body="a\0b\n"), 16, "unparseable"),
}


@pytest.mark.parametrize("name", BAD)
def test_fatal_lint_findings_have_file_line_and_remedy(store: Folder, name: str) -> None:
    bad, line, code = BAD[name]
    store.put("bad.org", bad)
    store.put("good.org", text(7))
    problems = lint(store)
    assert ("bad.org", line, code) in [(item.path, item.line, item.code) for item in problems]
    finding = next(item for item in problems if item.code == code)
    assert finding.fatal
    assert finding.remedy
    assert {item.path for item in problems} == {"bad.org"}


def test_binary_content_stops_a_commit(store: Folder) -> None:
    store.put("bad.org", text().encode() + b"\xff\xfe caf\xe9\n")
    assert codes(store) == [("bad.org", 17, "not-utf8")]


STYLE = {
    "no type": (text(filetags=":emacs:"), "no-type"),
    "a long summary": (text(SUMMARY="word " * 80), "long-summary"),
    "a property twice": (text().replace(":END:", ":MOOD: a\n:MOOD: b\n:END:"), "duplicate-property"),
    "stars without a space": (text(body="**Bold?\n"), "no-heading"),
}


@pytest.mark.parametrize("name", STYLE)
def test_style_does_not_stop_a_commit(store: Folder, name: str) -> None:
    written, code = STYLE[name]
    store.put("a.org", written)
    problems = lint(store)
    assert [item.code for item in problems] == [code]
    assert not problems[0].fatal


def test_an_id_belongs_to_one_node(store: Folder) -> None:
    store.put("a.org", text(1))
    store.put("b.org", text(1, title="Other"))
    assert codes(store) == [("b.org", 2, "id-duplicate")]


def test_the_id_of_a_heading_counts_too(store: Folder) -> None:
    heading = f"* H\n:PROPERTIES:\n:ID: {IDS[8]}\n:END:\n"
    store.put("a.org", text(1, heading))
    store.put("b.org", text(2, f"[[id:{IDS[8]}][that heading]]\n"))
    assert codes(store) == []
    store.put("c.org", text(9))
    assert [code for _, _, code in codes(store)] == ["id-duplicate"]


def test_links_in_raw_text_and_code_are_ignored(store: Folder) -> None:
    store.put(
        "a.org", text(1, f"=[[id:{IDS[50]}][code]]=\n#+begin_src org\n[[id:{IDS[51]}][code]]\n#+end_src\n")
    )
    store.put("raw/x.org", f"[[id:{IDS[52]}][raw]]\n")
    assert codes(store) == []


def test_a_merged_id_still_leads_somewhere(store: Folder) -> None:
    store.put("a.org", text(1, MERGED_IDS=IDS[60]))
    store.put("b.org", text(2, f"[[id:{IDS[60]}][old]]\n"))
    problems = lint(store)
    assert [(item.code, item.fatal) for item in problems] == [("merged-link", False)]


def test_the_index_must_be_that_of_the_nodes(store: Folder) -> None:
    store.put("a.org", text(1))
    assert codes(store, index=False) == [("index.org", 1, "index-missing")]
    store.index()
    store.put("b.org", text(2))
    assert [(path, code) for path, _, code in codes(store, index=False)] == [("index.org", "index-stale")]
    store.index()
    store.put("index-old.org", f"#+title: Index\n{nodes.INDEX_MARKER}\n")
    assert codes(store, index=False) == [("index-old.org", 1, "index-stale")]
    store.put("index-old.org", text(3))  # a person's, who does not know what the name means
    assert codes(store, index=False) == [("index-old.org", 1, "index-foreign")]


def test_an_index_with_links_is_refused(store: Folder) -> None:
    store.put("a.org", text(1))
    store.index()
    with (store.root / "index.org").open("a") as file:
        file.write(f"[[id:{IDS[0]}][a]]\n")
    assert [code for _, _, code in codes(store, index=False)] == ["index-link"]


def test_secrets_in_raw_text_are_found_and_binaries_passed_over(store: Folder) -> None:
    store.put("a.org", text(1))
    secret = b"AWS_SECRET_ACCESS_KEY=" + b"wJalrXUtnFEMIK7MDENGbPxRfiCYzKq8LmN2pQ5t" + b"\n"
    store.put("raw/notes.txt", b"first\n" + secret)
    store.put("raw/files/blob.bin", b"\0\1\2" * 50 + secret)
    assert codes(store) == [("raw/notes.txt", 2, "secret")]


def test_a_line_may_be_allowed(store: Folder) -> None:
    value = "ghp_" + "aB3dE5fG7h" * 3 + "k9LmN1"
    store.put("a.org", text(1, f"{value} # allow-secret\n"))
    assert codes(store) == []


def test_a_scanner_that_fails_stops_the_commit(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> list[secrets.Secret]:
        raise RecursionError("boom")

    monkeypatch.setattr(secrets, "find_secrets", broken)
    store.put("a.org", text(1))
    problems = lint(store)
    assert [(item.path, item.code, item.fatal) for item in problems] == [("a.org", "scan-failed", True)]


def test_lint_results_are_cached_by_content_and_rules(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    find = secrets.find_secrets

    def counting(text: str) -> list[secrets.Secret]:
        seen.append(text)
        return find(text)

    monkeypatch.setattr(secrets, "find_secrets", counting)
    store.put("a.org", text(1))
    store.put("b.org", text(2))
    lint(store)
    assert len(seen) == 2
    lint(store)
    assert len(seen) == 2
    store.put("b.org", text(2, "password: hunter2hunter9\n"))
    assert [code for _, _, code in codes(store)] == ["secret"]
    assert len(seen) == 3
    monkeypatch.setattr(catalogs, "LINT_RULES", "999")
    lint(store)
    assert len(seen) == 5


def test_a_file_that_changes_without_looking_otherwise_is_seen(store: Folder) -> None:
    import os

    store.put("a.org", text(1, "Some words.\n"))
    lint(store)
    before = os.stat(store.root / "a.org")
    store.put("a.org", text(1, "Some w0rds.\n").replace("current", "maybe.."))
    os.utime(store.root / "a.org", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [code for _, _, code in codes(store)] == ["property-invalid"]

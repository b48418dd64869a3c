"""Folders as living memory, through the gate."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    AlreadyExists,
    AmbiguousSlug,
    Cancelled,
    CollectionReadOnly,
    FileChanged,
    FileTrouble,
    InvalidArgument,
    NotFound,
    PageNotFound,
    PageOfFolder,
    QuaidError,
    SyncStopped,
)
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Scope

OLD = 1_600_000_000


def run(brain: Brain, command: str, scope: Scope = "owner", **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json_value(
        dispatch.call(brain, dispatch.find_command(command), arguments, scope)
    )
    return answer


def write(root: Path, path: str, text: str) -> Path:
    """A file that was saved long ago, so that its dates prove that it is unchanged."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode())
    os.utime(place, (OLD, OLD))
    return place


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    write(
        root,
        "people/alice.md",
        "---\ntitle: Alice   # hers\ntags:\n- founder\n---\n\n# Alice\r\n\nKnows [[Bob]].\n",
    )
    write(root, "people/Bob.md", "# Bob\n\nLives in Oslo.\n\n---\n\n- **2024-01-01** | call — First.\n")
    write(root, "README.md", "# Read me\n")
    write(root, ".obsidian/app.md", "no")
    write(root, "_templates/person.md", "no")
    write(root, "pic.png", "no")
    return root


@pytest.fixture
def attached(brain: Brain, notes: Path) -> Brain:
    run(brain, "collection add", name="notes", path=str(notes))
    return brain


def slugs(brain: Brain) -> list[str]:
    return sorted(page["slug"] for page in run(brain, "list")["pages"])


def test_attaching_indexes_and_changes_no_byte(brain: Brain, notes: Path) -> None:
    before = tree(notes)
    added = run(brain, "collection add", name="notes", path=str(notes))
    assert (added["sync"]["new"], added["collection"]["pages"]) == (3, 3)
    assert slugs(brain) == ["people/alice", "people/bob", "readme"]
    assert tree(notes) == before
    assert [hit["slug"] for hit in run(brain, "search", query="oslo")["hits"]] == ["people/bob"]
    assert run(brain, "links", slug="people/alice")["links"][0]["to_slug"] == "people/bob"


@pytest.mark.parametrize(("phase", "at"), [("Reading", 0), ("Writing", 3)])
@pytest.mark.parametrize("signal", [KeyboardInterrupt, Cancelled])
def test_attaching_that_is_stopped_says_what_is_there_and_a_sync_goes_on(
    brain: Brain, notes: Path, phase: str, at: int, signal: type[BaseException]
) -> None:
    def stop(done: int, _total: int, what: str) -> None:
        if (what, done) == (phase, at):
            raise signal

    unwatched, brain.progress = brain.progress, stop
    with pytest.raises(SyncStopped) as stopped:
        run(brain, "collection add", name="notes", path=str(notes))
    there = len(slugs(brain))
    assert f"the collection notes is attached and has {there} pages so far" in str(stopped.value)
    assert (stopped.value.exit_status, stopped.value.code) == (130, "cancelled")
    brain.progress = unwatched
    assert run(brain, "collection sync", name="notes")["syncs"][0]["new"] == 3 - there
    assert len(slugs(brain)) == 3


def test_ids_go_into_the_files_only_on_request(brain: Brain, notes: Path) -> None:
    run(brain, "collection add", name="notes", path=str(notes), write_ids=True)
    uuid = run(brain, "get", slug="people/bob")["uuid"]
    assert f'quaid_id: "{uuid}"' in (notes / "people/Bob.md").read_text()
    with pytest.raises(InvalidArgument, match="--read-only"):
        run(brain, "collection add", name="x", path=str(notes), write_ids=True, read_only=True)


def test_a_second_sync_reads_nothing_and_does_nothing(attached: Brain, notes: Path) -> None:
    os.chmod(notes / "people/alice.md", 0o644)
    again = run(attached, "collection sync", name="notes")["syncs"][0]
    assert (again["unchanged"], again["new"], again["changed"]) == (3, 0, 0)
    version = run(attached, "get", slug="people/alice")["version"]
    assert version == 1


def test_files_that_change_come_go_and_move_are_followed(attached: Brain, notes: Path) -> None:
    identity = run(attached, "get", slug="people/bob")["uuid"]
    write(notes, "people/alice.md", "# Alice\n\nKnows [[Robert]].\n")
    (notes / "people/Bob.md").rename(notes / "people/Robert.md")
    write(notes, "new.md", "# New\n")
    (notes / "README.md").unlink()
    done = run(attached, "collection sync", name="notes")["syncs"][0]
    assert [done[name] for name in ("new", "changed", "moved", "removed")] == [1, 1, 1, 1]
    assert slugs(attached) == ["new", "people/alice", "people/robert"]
    moved = run(attached, "get", slug="people/bob")  # the old slug leads on
    assert (moved["slug"], moved["uuid"]) == ("people/robert", identity)
    again = run(attached, "collection sync", name="notes")["syncs"][0]
    assert again["unchanged"] == 3


def test_a_page_that_was_gone_comes_back_as_the_same(attached: Brain, notes: Path) -> None:
    before = run(attached, "get", slug="people/bob")
    married: dict[str, Any] = {"from": "people/bob", "to": "people/alice", "relationship": "married_to"}
    run(attached, "link", **married)
    text = (notes / "people/Bob.md").read_text()
    (notes / "people/Bob.md").unlink()
    run(attached, "collection sync", name="notes")
    with pytest.raises(PageNotFound):
        run(attached, "get", slug="people/bob")
    assert run(attached, "search", query="oslo")["hits"] == []
    write(notes, "elsewhere/bobby.md", text)
    run(attached, "collection sync", name="notes")
    after = run(attached, "get", slug="elsewhere/bobby")
    assert after["uuid"] == before["uuid"]
    relationships = {link["relationship"] for link in run(attached, "links", slug="elsewhere/bobby")["links"]}
    assert "married_to" in relationships


def test_many_missing_files_wait_for_a_person(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "many"
    for number in range(30):
        write(root, f"n{number}.md", f"# Note {number}\n")
    run(brain, "collection add", name="many", path=str(root))
    for number in range(15):
        (root / f"n{number}.md").unlink()
    halted = run(brain, "collection sync", name="many")["syncs"][0]
    assert (halted["removed"], halted["waiting"]) == (0, 15)
    assert "15 of 30 files are missing" in halted["halted"]
    assert "missing" in run(brain, "collection info", name="many")["collection"]["halted"]
    assert len(slugs(brain)) == 30
    assert run(brain, "collection sync", name="many")["syncs"][0]["removed"] == 0  # also another time
    confirmed = run(brain, "collection sync", name="many", confirm_deletes=True)["syncs"][0]
    assert (confirmed["removed"], confirmed["halted"]) == (15, "")
    assert len(slugs(brain)) == 15


def test_an_edit_changes_only_its_bytes_in_the_file(attached: Brain, notes: Path) -> None:
    place = notes / "people/alice.md"
    before = place.read_bytes()
    run(attached, "tag", slug="people/alice", tag="oslo")
    assert place.read_bytes() == before.replace(b"- founder\n", b"- founder\n- oslo\n")
    run(attached, "timeline-add", slug="people/bob", date="2024-02-01", summary="Second.", source="call")
    assert (notes / "people/Bob.md").read_text() == (
        "# Bob\n\nLives in Oslo.\n\n---\n\n- **2024-02-01** | call — Second.\n- **2024-01-01** | call — First.\n"
    )
    again = run(attached, "collection sync", name="notes")["syncs"][0]
    assert (again["unchanged"], again["changed"]) == (3, 0)  # our own writes are known by their content


def test_an_edit_made_outside_is_a_conflict_and_stays(attached: Brain, notes: Path) -> None:
    (notes / "people/Bob.md").write_text("# Bob\n\nMoved to Rome.\n")
    with pytest.raises(FileChanged):
        run(attached, "put", slug="people/bob", compiled_truth="# Bob\n\nOurs.")
    assert "Rome" in (notes / "people/Bob.md").read_text()
    # The next look at the page shows what its file says, so that the author can merge.
    assert "Rome" in run(attached, "get", slug="people/bob")["compiled_truth"]
    run(attached, "put", slug="people/bob", compiled_truth="# Bob\n\nOurs.")
    assert (notes / "people/Bob.md").read_text() == "# Bob\n\nOurs.\n"


def test_a_new_page_goes_where_it_is_sent(attached: Brain, notes: Path) -> None:
    run(attached, "put", slug="plain", content="# In the database\n")
    run(attached, "put", slug="notes::deep/er/page", content="# In a file\n")
    assert (notes / "deep/er/page.md").read_text() == "# In a file\n"
    run(attached, "collection target", name="notes")
    run(attached, "put", slug="bare", content="# Also in a file\n")
    assert (notes / "bare.md").exists()
    assert run(attached, "get", slug="bare")["collection"] == "notes"
    write(notes, "unread.md", "theirs")
    with pytest.raises(FileChanged):  # a file that nobody has read yet is not overwritten
        run(attached, "put", slug="unread", content="ours")
    assert (notes / "unread.md").read_text() == "theirs"


def test_a_bare_slug_means_its_one_owner(attached: Brain, tmp_path: Path) -> None:
    run(attached, "put", slug="people/alice", compiled_truth="# Alice\n\nEdited.")
    assert run(attached, "get", slug="people/alice")["collection"] == "notes"  # no second one was made
    write(tmp_path / "other", "people/alice.md", "# Another Alice\n")
    run(attached, "collection add", name="other", path=str(tmp_path / "other"))
    with pytest.raises(AmbiguousSlug, match="notes::people/alice, other::people/alice"):
        run(attached, "get", slug="people/alice")
    with pytest.raises(AmbiguousSlug):
        run(attached, "put", slug="people/alice", content="x")
    assert run(attached, "get", slug="other::people/alice")["title"] == "Another Alice"


def test_a_read_only_collection_is_never_written(brain: Brain, notes: Path) -> None:
    run(brain, "collection add", name="notes", path=str(notes), read_only=True)
    before = tree(notes)
    edits: tuple[tuple[str, dict[str, Any]], ...] = (
        ("put", {"compiled_truth": "x"}),
        ("tag", {"tag": "x"}),
        ("timeline-add", {"date": "2024-01-01", "summary": "x"}),
    )
    for command, inputs in edits:
        with pytest.raises(CollectionReadOnly):
            run(brain, command, slug="people/bob", **inputs)
    assert tree(notes) == before
    assert run(brain, "get", slug="people/bob")["version"] == 1


def test_removing_a_collection_leaves_the_folder_and_what_is_only_here(attached: Brain, notes: Path) -> None:
    knows: dict[str, Any] = {"from": "people/bob", "to": "people/alice", "relationship": "knows"}
    run(attached, "link", **knows)
    before = tree(notes)
    asked = run(attached, "collection remove", name="notes")
    assert (asked["removed"], asked["kept"], asked["done"], asked["ask"]) == (1, 2, False, True)
    assert len(slugs(attached)) == 3  # nothing has happened yet
    assert run(attached, "collection remove", name="notes", dry_run=True)["ask"] is False
    gone = run(attached, "collection remove", name="notes", yes=True)
    assert (gone["removed"], gone["kept"]) == (1, 2)  # both ends of the link
    assert (tree(notes), slugs(attached)) == (before, [])
    run(attached, "collection add", name="notes", path=str(notes))
    relationships = {link["relationship"] for link in run(attached, "links", slug="people/bob")["links"]}
    assert (len(slugs(attached)), relationships) == (3, {"knows"})


def test_report_if_all_pages_are_in_quarantine(brain: Brain, notes: Path) -> None:
    for path in notes.rglob("*.md"):
        path.unlink()
    for name in ("one", "two"):
        (notes / f"{name}.md").write_text(f"# {name}\n")
    run(brain, "collection add", name="notes", path=str(notes))
    knows: dict[str, Any] = {"from": "one", "to": "two", "relationship": "knows"}
    run(brain, "link", **knows)
    record = dispatch.call(
        brain, dispatch.find_command("collection remove"), {"name": "notes", "yes": True}, "owner"
    )
    assert (record.removed, record.kept) == (0, 2)
    message = render(record)
    assert message.startswith("Detached notes: 0 pages removed from the memory")
    assert "In quarantine for 30 days, for data that is in no file: 2 pages" in message


def test_pages_can_stay_when_their_folder_is_let_go(attached: Brain, notes: Path) -> None:
    run(attached, "collection remove", name="notes", keep_pages=True)
    assert len(slugs(attached)) == 3
    with pytest.raises(CollectionReadOnly, match="is detached"):
        run(attached, "tag", slug="people/bob", tag="x")
    again = run(attached, "collection add", name="notes", path=str(notes))
    assert again["sync"]["unchanged"] == 3


@pytest.mark.parametrize(
    ("name", "path", "error"),
    [
        ("Notes", ".", InvalidArgument),
        ("a::b", ".", InvalidArgument),
        ("", ".", InvalidArgument),
        ("default", "notes", AlreadyExists),
        ("x", "missing", FileTrouble),
        ("x", "notes/README.md", FileTrouble),
    ],
)
def test_folder_that_cannot_be_attached_is_reported(
    brain: Brain, notes: Path, name: str, path: str, error: type[QuaidError]
) -> None:
    with pytest.raises(error):
        run(brain, "collection add", name=name, path=str(notes.parent / path))
    assert len(run(brain, "collection list")["collections"]) == 1


def test_two_collections_never_share_files(attached: Brain, notes: Path) -> None:
    for path in (notes, notes / "people", notes.parent):
        with pytest.raises(AlreadyExists, match="The collection notes"):
            run(attached, "collection add", name="twice", path=str(path))


def test_a_file_that_cannot_be_a_page_is_listed_and_stops_nothing(brain: Brain, notes: Path) -> None:
    write(notes, "huge.md", "x" * (4 * 1024 * 1024 + 1))
    write(notes, "odd.md", "---\na: [\n---\n# Odd\n")
    added = run(brain, "collection add", name="notes", path=str(notes))
    assert added["collection"]["pages"] == 4
    problems = run(brain, "collection info", name="notes")["problems"]
    assert [problem["path"] for problem in problems] == ["huge.md", "odd.md"]
    assert any(note["path"] == "odd.md" for note in added["sync"]["notes"])


def test_a_bad_ignore_file_leaves_the_last_good_one_in_force(attached: Brain, notes: Path) -> None:
    (notes / ".quaidignore").write_text("people/\n")
    run(attached, "collection sync", name="notes", confirm_deletes=True)
    assert slugs(attached) == ["readme"]
    (notes / ".quaidignore").write_text("!\n")
    run(attached, "collection sync", name="notes")
    assert slugs(attached) == ["readme"]
    assert "line 1" in run(attached, "collection info", name="notes")["collection"]["ignore_problem"]
    (notes / ".quaidignore").unlink()
    run(attached, "collection sync", name="notes")
    assert len(slugs(attached)) == 3


def test_an_agent_edits_a_file_backed_page_by_version(attached: Brain, notes: Path) -> None:
    run(attached, "put", "write", slug="people/bob", compiled_truth="# Bob\n\nAgent.", expected_version=1)
    assert "Agent." in (notes / "people/Bob.md").read_text()
    with pytest.raises(QuaidError, match="at version 2"):
        run(attached, "put", "write", slug="people/bob", compiled_truth="# Bob\n\nOld.", expected_version=1)
    assert "Agent." in (notes / "people/Bob.md").read_text()
    assert run(attached, "validate")["violations"] == []


def pages_of(brain: Brain) -> dict[str, str]:
    return {page["slug"]: page["title"] for page in run(brain, "list", collection="notes")["pages"]}


@pytest.mark.parametrize("with_ids", [True, False])
def test_files_that_change_places_or_shift_keep_their_pages(
    brain: Brain, tmp_path: Path, with_ids: bool
) -> None:
    root = tmp_path / "notes"
    for name in "abc":
        write(root, f"{name}.md", f"# {name.upper()}\n\nwords of {name}\n")
    run(brain, "collection add", name="notes", path=str(root), write_ids=with_ids)
    before = {run(brain, "get", slug=name)["title"]: run(brain, "get", slug=name)["uuid"] for name in "abc"}
    for name in "abc":
        (root / f"{name}.md").rename(root / f"{name}.tmp")
    for old, new in zip("abc", "bca", strict=True):  # all three go round
        (root / f"{old}.tmp").rename(root / f"{new}.md")
    run(brain, "collection sync", name="notes")
    again = run(brain, "collection sync", name="notes")["syncs"][0]
    assert [again[name] for name in ("new", "changed", "moved", "removed")] == [0, 0, 0, 0]
    assert pages_of(brain) == {"a": "C", "b": "A", "c": "B"}
    if with_ids:
        for slug, title in (("a", "C"), ("b", "A"), ("c", "B")):
            assert run(brain, "get", slug=slug)["uuid"] == before[title]
    (root / "c.md").rename(root / "d.md")  # a shift: c leaves, b takes its place
    (root / "b.md").rename(root / "c.md")
    run(brain, "collection sync", name="notes")
    assert pages_of(brain) == {"a": "C", "c": "A", "d": "B"}
    assert run(brain, "collection audit", name="notes")["differences"] == []
    assert run(brain, "validate")["violations"] == []


def test_a_hidden_page_leaves_its_slug_to_a_file_that_comes_there(attached: Brain, notes: Path) -> None:
    (notes / "README.md").unlink()
    run(attached, "collection sync", name="notes")
    (notes / "people/Bob.md").rename(notes / "README.md")
    run(attached, "collection sync", name="notes")
    assert run(attached, "get", slug="readme")["title"] == "Bob"
    assert run(attached, "validate")["violations"] == []


def test_other_bytes_that_say_the_same_can_be_brought_back(attached: Brain, notes: Path) -> None:
    before = (notes / "people/alice.md").read_bytes()
    (notes / "people/alice.md").write_bytes(before.replace(b"   # hers", b""))
    run(attached, "collection sync", name="notes")
    run(attached, "revert", slug="people/alice", to=1)
    assert (notes / "people/alice.md").read_bytes() == before


def test_a_page_of_a_folder_is_forgotten_by_its_file(attached: Brain) -> None:
    with pytest.raises(PageOfFolder):
        run(attached, "forget", slug="people/bob", yes=True)


ACCOUNT = ("types", "tags", "links_extracted", "timeline_entries", "raw_data")


def accounts(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ACCOUNT}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """Two people and a company, with all that an account counts; one names the company in two ways."""
    root = tmp_path / "linked"
    write(
        root, "people/alice.md", "---\ntags: [founder, oslo]\n---\n# Alice\n\nKnows [[Bob]] and [[nobody]].\n"
    )
    twice = "# Bob\n\nAt [Acme](../companies/acme.md), [[companies/acme]].\n"
    write(
        root,
        "people/bob.md",
        twice + "\n---\n\n- **2024-01-01** | call — First.\n- **2024-01-02** | Second.\n",
    )
    write(root, "companies/acme.md", "---\ntags: [trade]\n---\n# Acme\n")
    write(
        root,
        "people/.raw/alice.json",
        '{"sources": {"crustdata": {"data": {"a": 1}}, "exa": {"data": {"b": 2}}}}',
    )
    return root


def test_import_and_collection_add_give_the_same_account(brain: Brain, linked: Path) -> None:
    wanted = {
        "types": {"person": 2, "company": 1},
        "tags": 3,
        "links_extracted": 3,
        "timeline_entries": 2,
        "raw_data": 2,
    }
    lines = ["types: 2 person, 1 company", "tags: 3, links: 3, timeline entries: 2, raw data: 2"]
    imported = dispatch.call(brain, dispatch.find_command("import"), {"folder": str(linked)}, "owner")
    assert accounts(json_value(imported)["report"]) == wanted
    assert [line for line in render(imported).splitlines() if line in lines] == lines
    attached = dispatch.call(
        brain, dispatch.find_command("collection add"), {"name": "linked", "path": str(linked)}, "owner"
    )
    assert accounts(json_value(attached)["sync"]) == wanted
    shown = [line.strip() for line in render(attached).splitlines()]
    assert [line for line in shown if line in lines] == lines


def test_a_sync_counts_what_it_wrote_and_nothing_else(brain: Brain, linked: Path) -> None:
    run(brain, "collection add", name="linked", path=str(linked))
    (linked / "companies/acme.md").write_text(
        "# Acme\n\nWith [[alice]].\n\n---\n\n- **2025-01-01** | Moved.\n"
    )
    (sync,) = run(brain, "collection sync", name="linked")["syncs"]
    assert accounts(sync) == {
        "types": {"company": 1},
        "tags": 0,
        "links_extracted": 1,
        "timeline_entries": 1,
        "raw_data": 0,
    }
    (sync,) = run(brain, "collection sync", name="linked")["syncs"]
    assert accounts(sync) == dict.fromkeys(ACCOUNT, 0) | {"types": {}}


def test_headings_of_org_that_are_pages_count(brain: Brain, tmp_path: Path) -> None:
    id_ = "11111111-2222-4333-8444-555555555555"
    org = f"#+title: Notes\n\nSee [[id:{id_}][tea]].\n\n* Tea  :drink:\n:PROPERTIES:\n:ID: {id_}\n:END:\n\nHot.\n"
    write(tmp_path / "org", "notes.org", org)
    sync = run(brain, "collection add", name="org", path=str(tmp_path / "org"))["sync"]
    assert sum(sync["types"].values()) == 2
    assert (sync["tags"], sync["links_extracted"]) == (1, 1)


def test_folders_are_listed_only_below_the_home_folder_and_attached_folders(
    brain: Brain, tmp_path: Path
) -> None:
    home = Path(brain.settings.user_home)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    for folder in (home / "notes" / "deep", home / ".secret" / "in", home / "node_modules", outside / "wiki"):
        folder.mkdir(parents=True, exist_ok=True)
    (home / "notes" / "one.md").write_text("# One\n")
    (home / "shortcut").symlink_to(outside)
    (home / "notes" / "away").symlink_to("/")

    def listing(under: str = "") -> dict[str, Any]:
        return run(brain, "collection folders", under=under or None)

    def names(under: str = "") -> list[str]:
        return [entry["name"] for entry in listing(under)["folders"]]

    assert "notes" in names()
    assert not {".secret", "shortcut", "node_modules"} & set(names())
    below = listing(str(home / "notes"))
    assert (names(str(home / "notes")), below["notes"], below["parent"]) == (["deep"], 1, str(home))
    assert listing()["parent"] == ""
    for wrong in (
        *("/", "/etc", str(outside), str(home / ".secret"), str(home / ".secret" / "in"), f"{home}\0x"),
        *(f"{home}/../..", f"{home}/notes/../../..", f"{home}x", str(home.parent)),
    ):
        with pytest.raises(InvalidArgument):
            names(wrong)
    for link in ("shortcut", "shortcut/wiki", "notes/away", "notes/away/etc", "missing"):
        with pytest.raises(FileTrouble):
            names(str(home / link))
    run(brain, "collection add", name="wiki", path=str(outside))
    assert names(str(outside)) == ["wiki"]
    assert listing(str(outside / "wiki"))["collection"] == "wiki"


def test_sample_is_added_and_removed_without_a_trace_except_files_of_the_user(brain: Brain) -> None:
    added = run(brain, "sample add")
    pages = added["collection"]["pages"]
    assert pages > 20
    with pytest.raises(AlreadyExists):
        run(brain, "sample add")
    folder = Path(f"{os.path.splitext(os.path.realpath(brain.settings.db_path))[0]}-sample")
    (folder / "people" / "me.md").write_text("# Me\n")
    link: dict[str, Any] = {"from": "sample::people/ines-karvonen", "to": "sample::companies/saltmarsh"}
    run(brain, "link", **link)
    assert run(brain, "sample remove") == {"pages": pages, "kept_in": str(folder)}
    assert tree(folder).keys() == {"people/me.md"}
    assert run(brain, "stats")["pages"] == 0
    assert run(brain, "collection quarantine list") == {"pages": []}
    with pytest.raises(NotFound):
        run(brain, "sample remove")

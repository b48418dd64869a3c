"""A folder of org-roam as living memory, through the gate. The files stay as they are, byte for byte."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import NoPlaceToRestore, PageNotFound, PartOfOrgFile
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

OLD = 1_600_000_000
ALICE = "0190f1b2-7c1e-7a3b-9d3e-000000000001"
RIVER = "0190f1b2-7c1e-7a3b-9d3e-000000000002"
LEASE = "0190f1b2-7c1e-7a3b-9d3e-000000000003"

FILES = {
    "people/alice.org": f"""\
:PROPERTIES:
:ID:       {ALICE}
:ROAM_ALIASES: "Alice Q." Ali
:WORKS_AT: [[id:{RIVER}][River]]
:END:
#+title: Alice Example
#+filetags: :founder:oslo:

Runs [[id:{RIVER}][River AI]], see [[file:../watcher.org::*Leases][leases]] and =[[id:nothing]]=.
#+begin_src python
# no heading, no tag #python [[id:{LEASE}]]
#+end_src
* TODO Ask about the lease
DEADLINE: <2026-06-01 Mon>
* DONE Send the paper
* 2026-05-24 Met at the demo day
She showed the prototype.
* Called <2026-05-26 Tue>
""",
    "river.org": f":PROPERTIES:\r\n:ID: {RIVER}\r\n:END:\r\n#+title: River AI\r\n\r\nA company.\r\n",
    "watcher.org": f"""\
#+title: The watcher
Words about watching.
* Leases :design:
:PROPERTIES:
:ID:       {LEASE}
:END:
One process holds a lease, says [[id:{ALICE}]]; see [[file:river.org]].
** TODO Measure the heartbeat
* Hints
They are only hints.
""",
    "notes.md": f"# Notes\n\nOrg is linked: [[id:{LEASE}][leases]] and [[id:{ALICE}]].\n",
    "broken.org": ":PROPERTIES:\n:ID: lost\nno property\n:END:\n#+title: Broken\n",
}


def run(brain: Brain, command: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json_value(
        dispatch.call(brain, dispatch.find_command(command), arguments, "owner")
    )
    return answer


def write(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode())
    os.utime(place, (OLD, OLD))


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def roam(brain: Brain, tmp_path: Path) -> Path:
    root = tmp_path / "roam"
    for path, text in FILES.items():
        write(root, path, text)
    before = tree(root)
    run(brain, "collection add", name="roam", path=str(root))
    assert tree(root) == before
    return root


def slugs(brain: Brain) -> list[str]:
    return sorted(page["slug"] for page in run(brain, "list")["pages"])


def led(brain: Brain, command: str, slug: str) -> set[tuple[str, str, str]]:
    links = run(brain, command, slug=slug)["links"]
    return {(item["from_slug"], item["relationship"], item["to_slug"]) for item in links}


def test_a_file_and_a_heading_with_an_id_are_pages(brain: Brain, roam: Path) -> None:
    assert slugs(brain) == ["broken", "notes", "people/alice", "river", "watcher", "watcher/leases"]
    alice = run(brain, "get", slug="people/alice")
    assert (alice["title"], alice["type"], alice["uuid"]) == ("Alice Example", "person", ALICE)
    assert alice["tags"] == ["founder", "oslo"]
    assert alice["frontmatter"]["id"] == ALICE
    assert alice["summary"].startswith("Runs River AI, see leases and")
    assert "# TODO Ask about the lease" in alice["compiled_truth"]
    leases = run(brain, "get", slug="watcher/leases")
    assert (leases["title"], leases["uuid"], leases["tags"]) == ("Leases", LEASE, ["design"])
    assert "One process holds a lease" in leases["compiled_truth"]
    watcher = run(brain, "get", slug="watcher")["compiled_truth"]
    assert "One process" not in watcher
    assert "# Hints" in watcher


def test_links_by_id_and_file_lead_across_org_and_markdown(brain: Brain, roam: Path) -> None:
    assert led(brain, "backlinks", "watcher/leases") == {
        ("notes", "mentions", "watcher/leases"),
        ("watcher", "mentions", "watcher/leases"),
    }
    assert led(brain, "backlinks", "people/alice") == {
        ("notes", "mentions", "people/alice"),
        ("watcher/leases", "mentions", "people/alice"),
    }
    assert led(brain, "links", "people/alice") == {
        ("people/alice", "mentions", "river"),
        ("people/alice", "works_at", "river"),
        ("people/alice", "mentions", "watcher"),
    }
    assert ("watcher/leases", "mentions", "river") in led(brain, "links", "watcher/leases")
    near = run(brain, "graph", slug="notes", depth=2)
    assert {node["slug"] for node in near["nodes"]} >= {"notes", "people/alice", "watcher/leases", "river"}


def test_names_of_org_roam_and_the_words_of_headings_are_found(brain: Brain, roam: Path) -> None:
    assert run(brain, "query", question="Ali")["results"][0]["slug"] == "people/alice"
    assert run(brain, "query", question="heartbeat lease process")["results"][0]["slug"] == "watcher/leases"
    assert run(brain, "search", query="prototype")["hits"][0]["slug"] == "people/alice"


def test_dated_headings_are_the_timeline(brain: Brain, roam: Path) -> None:
    entries = run(brain, "timeline", slug="people/alice")["entries"]
    assert [(entry["date"], entry["summary"], entry["detail"]) for entry in entries] == [
        ("2026-05-26", "Called", ""),
        ("2026-05-24", "Met at the demo day", "She showed the prototype."),
    ]


def test_things_to_do_are_open_threads(brain: Brain, roam: Path) -> None:
    threads = run(brain, "briefing")["threads"]["items"]
    assert sorted((thread["slug"], thread["text"]) for thread in threads) == [
        ("roam::people/alice", "Ask about the lease (deadline 2026-06-01)"),
        ("roam::watcher/leases", "Measure the heartbeat"),
    ]


def test_constructs_that_emacs_rejects_are_reported(brain: Brain, roam: Path) -> None:
    problems = {
        problem["path"]: problem["problem"]
        for problem in run(brain, "collection info", name="roam")["problems"]
    }
    assert list(problems) == ["broken.org"]
    assert problems["broken.org"].startswith("line 3:")
    assert run(brain, "collection audit", name="roam")["differences"] == []


def test_an_edit_on_disk_changes_file_and_heading_together(brain: Brain, roam: Path) -> None:
    text = (
        FILES["watcher.org"]
        .replace("One process", "Exactly one process")
        .replace("* Leases", "* Leases and beats")
    )
    write(roam, "watcher.org", text + "* New\n:PROPERTIES:\n:ID: my-own-id\n:END:\nFresh words.\n")
    run(brain, "collection sync", name="roam")
    assert [slug for slug in slugs(brain) if slug.startswith("watcher")] == [
        "watcher",
        "watcher/leases-and-beats",
        "watcher/new",
    ]
    assert (
        run(brain, "get", slug="watcher/leases")["slug"] == "watcher/leases-and-beats"
    )  # the old one leads there
    assert run(brain, "get", slug="watcher/leases")["uuid"] == LEASE
    assert "Exactly" in run(brain, "get", slug="watcher/leases-and-beats")["compiled_truth"]
    write(roam, "watcher.org", FILES["watcher.org"])
    run(brain, "collection sync", name="roam")
    assert "watcher/new" not in slugs(brain)
    assert run(brain, "get", slug="watcher/leases")["uuid"] == LEASE


def test_a_renamed_file_keeps_its_pages(brain: Brain, roam: Path) -> None:
    (roam / "watcher.org").rename(roam / "guard.org")
    run(brain, "collection sync", name="roam")
    assert [slug for slug in slugs(brain) if "leases" in slug] == ["guard/leases"]
    assert run(brain, "get", slug="guard/leases")["uuid"] == LEASE
    assert ("notes", "mentions", "guard/leases") in led(brain, "backlinks", "guard/leases")
    write(roam, "friends/ali.org", FILES["people/alice.org"] + "More.\n")
    (roam / "people/alice.org").unlink()
    run(brain, "collection sync", name="roam")
    assert run(brain, "get", slug="friends/ali")["uuid"] == ALICE  # by its id, for its words changed too


@pytest.mark.parametrize("order", [("a.org", "b.org"), ("b.org", "a.org")])
def test_a_heading_that_moves_to_another_file_keeps_its_page(
    brain: Brain, roam: Path, order: tuple[str, str]
) -> None:
    heading = "* Thing\n:PROPERTIES:\n:ID: thing\n:END:\nWords.\n"
    first, second = order
    write(roam, first, heading)
    write(roam, second, "nothing yet\n")
    run(brain, "collection sync", name="roam")
    page = run(brain, "get", slug=f"{first[0]}/thing")["uuid"]
    write(roam, first, "nothing any more, not one word\n")
    write(roam, second, heading)
    run(brain, "collection sync", name="roam")
    run(brain, "collection sync", name="roam")
    assert run(brain, "get", slug=f"{second[0]}/thing")["uuid"] == page
    assert [slug for slug in slugs(brain) if slug.endswith("/thing")] == [f"{second[0]}/thing"]


def test_a_deleted_file_takes_its_headings_along_and_brings_them_back(brain: Brain, roam: Path) -> None:
    (roam / "watcher.org").unlink()
    run(brain, "collection sync", name="roam")
    assert [slug for slug in slugs(brain) if slug.startswith("watcher")] == []
    assert led(brain, "links", "notes") == {
        ("notes", "mentions", "people/alice"),
        ("notes", "mentions", f"id:{LEASE}"),
    }
    with pytest.raises(NoPlaceToRestore, match="heading of a file"):
        run(brain, "collection quarantine restore", page="watcher/leases")
    run(brain, "collection quarantine restore", page="watcher")
    assert tree(roam)["watcher.org"] == FILES["watcher.org"].encode()
    assert [slug for slug in slugs(brain) if slug.startswith("watcher")] == ["watcher", "watcher/leases"]
    assert ("notes", "mentions", "watcher/leases") in led(brain, "links", "notes")
    assert run(brain, "collection sync", name="roam")["syncs"][0]["unchanged"] == len(FILES)


def test_a_folder_that_is_restored_has_every_byte(brain: Brain, roam: Path, tmp_path: Path) -> None:
    before = tree(roam)
    run(brain, "collection restore", name="roam", target=str(tmp_path / "again"))
    assert tree(tmp_path / "again") == before
    assert run(brain, "collection sync", name="roam")["syncs"][0]["unchanged"] == len(FILES)
    assert run(brain, "collection audit", name="roam")["differences"] == []


def test_tags_title_and_properties_are_patched_in_place(brain: Brain, roam: Path) -> None:
    run(brain, "tag", slug="river", tag="company")
    assert (
        tree(roam)["river.org"]
        == (FILES["river.org"].replace("River AI\r\n", "River AI\r\n#+filetags: :company:\r\n")).encode()
    )
    run(brain, "put", slug="river", frontmatter={"title": "River", "status": "open"}, expected_version=2)
    assert b"#+title: River\r\n" in tree(roam)["river.org"]
    assert b":STATUS:   open\r\n" in tree(roam)["river.org"]
    run(brain, "tag", slug="watcher", tag="code")
    assert run(brain, "get", slug="watcher/leases")["tags"] == ["code", "design"]
    assert run(brain, "collection sync", name="roam")["syncs"][0]["unchanged"] == len(FILES)


def test_text_of_org_is_never_written_as_markdown(brain: Brain, roam: Path) -> None:
    before = tree(roam)
    for slug, version in (("river", 1), ("watcher/leases", 1)):
        with pytest.raises(PartOfOrgFile, match=r"\.org"):
            run(brain, "put", slug=slug, compiled_truth="# Other words", expected_version=version)
        with pytest.raises(PartOfOrgFile):
            run(brain, "timeline-add", slug=slug, date="2026-01-01", summary="Something")
    assert tree(roam) == before
    assert run(brain, "get", slug="river")["version"] == 1


def test_a_version_of_an_org_file_comes_back_byte_for_byte(brain: Brain, roam: Path) -> None:
    write(roam, "watcher.org", "#+title: The watcher\nOnly this.\n")
    run(brain, "collection sync", name="roam")
    assert "watcher/leases" not in slugs(brain)
    run(brain, "revert", slug="watcher", to=1, expected_version=2)
    assert tree(roam)["watcher.org"] == FILES["watcher.org"].encode()
    assert run(brain, "get", slug="watcher/leases")["uuid"] == LEASE


def test_a_knowledge_base_is_its_nodes(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "kb"
    for path in (
        "raw/a.org",
        "index.org",
        "index-by-tag.org",
        "AGENT_CONTRACT.org",
        "nodes/index.org",
        "nodes/b.org",
    ):
        write(root, path, f"#+title: {path}\n")
    run(brain, "collection add", name="kb", path=str(root), kind="kb")
    assert slugs(brain) == ["nodes/b", "nodes/index"]
    assert run(brain, "collection audit", name="kb")["differences"] == []


def test_nothing_in_an_org_file_is_evaluated_or_followed(brain: Brain, roam: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("sesame")
    write(
        roam,
        "evil.org",
        f'#+SETUPFILE: {tmp_path}/secret.txt\n#+INCLUDE: "{tmp_path}/secret.txt"\n'
        '#+MACRO: m (eval (delete-file "x"))\n'
        f"{{{{{{m}}}}}}\n#+begin_src sh :results output\ntouch {tmp_path}/made\n#+end_src\n",
    )
    run(brain, "collection sync", name="roam")
    assert "sesame" not in str(run(brain, "get", slug="evil"))
    assert not (tmp_path / "made").exists()


def test_duplicate_id_makes_one_page_and_is_reported(brain: Brain, roam: Path) -> None:
    write(roam, "x.org", "* One\n:PROPERTIES:\n:ID: twice\n:END:\n")
    run(brain, "collection sync", name="roam")
    write(roam, "y.org", "* Two\n:PROPERTIES:\n:ID: twice\n:END:\n")
    notes = run(brain, "collection sync", name="roam")["syncs"][0]["notes"]
    assert [note["path"] for note in notes if "twice" in note["note"]] == ["y.org"]
    assert [slug for slug in slugs(brain) if slug.startswith(("x/", "y/"))] == ["y/two"]  # read last


def test_headings_of_one_name_and_files_of_that_name_all_have_a_page(brain: Brain, roam: Path) -> None:
    node = "* Same\n:PROPERTIES:\n:ID: {}\n:END:\n"
    write(roam, "z.org", node.format("one") + node.format("two"))
    write(roam, "z/same.org", "#+title: A file\n")
    run(brain, "collection sync", name="roam")
    results = [slug for slug in slugs(brain) if slug.startswith("z/")]
    assert len(results) == 3
    run(brain, "collection sync", name="roam")
    write(roam, "z.org", node.format("one") + node.format("two") + "more\n")
    run(brain, "collection sync", name="roam")
    assert [slug for slug in slugs(brain) if slug.startswith("z/")] == results


def test_a_page_that_is_not_there_is_not_made_of_a_markdown_file_by_its_heading(
    brain: Brain, roam: Path
) -> None:
    with pytest.raises(PageNotFound):
        run(brain, "get", slug="watcher/hints")


def test_a_notebook_is_markdown_only(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "book"
    run(brain, "notebook init", path=str(root))
    before = slugs(brain)
    write(root, "stray.org", "#+title: Stray\n")
    run(brain, "collection sync")
    assert slugs(brain) == before

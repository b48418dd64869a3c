"""Who wrote each version and each line of a page, and each fact."""

from pathlib import Path
from typing import Any

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value


def run(brain: Brain, command: str, agent: str = "", **arguments: Any) -> Any:
    brain.agent = agent
    try:
        return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))
    finally:
        brain.agent = ""


def authors(brain: Brain, slug: str) -> list[tuple[int, str]]:
    return [(row["version"], row["author"]) for row in run(brain, "history", slug=slug)["versions"]]


def blame(brain: Brain, slug: str) -> dict[str, tuple[int | None, str, str]]:
    lines = run(brain, "blame", slug=slug)["lines"]
    return {line["text"]: (line["version"], line["author"], line["source"]) for line in lines if line["text"]}


def test_each_line_has_the_version_and_author_that_added_it(brain: Brain) -> None:
    run(brain, "config set", key="agent_writes", value="direct")
    run(brain, "put", slug="a", content="One.\n\nTwo.")
    run(brain, "put", "codex", slug="a", content="One.\n\nTwo changed.\n\nThree.", expected_version=1)
    run(brain, "put", slug="a", content="Zero.\n\nOne.\n\nTwo changed.\n\nThree.")
    assert blame(brain, "a") == {
        "Zero.": (3, "owner", ""),
        "One.": (1, "owner", ""),
        "Two changed.": (2, "codex", ""),
        "Three.": (2, "codex", ""),
    }
    assert authors(brain, "a") == [(3, "owner"), (2, "codex"), (1, "owner")]


def test_facts_have_authors_and_do_not_change_the_author_of_the_text(brain: Brain) -> None:
    run(brain, "put", "codex", slug="a", content="# Alice\n\nOne.")
    run(brain, "assert", "cursor", slug="a", predicate="lives_in", object="Oslo")
    assert authors(brain, "a") == [(2, "codex")]
    assert [fact["author"] for fact in run(brain, "facts", subject="a")["facts"]] == ["cursor"]


def test_files_changed_by_hand_have_the_author_sync(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("One.\n")
    run(brain, "collection add", name="notes", path=str(root))
    run(brain, "put", "codex", slug="a", compiled_truth="One.\n\nTwo.", expected_version=1)
    (root / "a.md").write_text("One.\n\nTwo.\n\nThree.\n")
    run(brain, "collection sync", name="notes")
    assert blame(brain, "a") == {
        "One.": (1, "sync", "a.md"),
        "Two.": (2, "codex", ""),
        "Three.": (3, "sync", "a.md"),
    }


def test_an_unsynced_edit_of_a_notebook_file_is_not_the_agents(brain: Brain, tmp_path: Path) -> None:
    run(brain, "notebook init", path=str(tmp_path / "notebook"))
    run(brain, "notebook write", "codex", path="lists/reading.md", content="- Emma\n")
    file = tmp_path / "notebook" / "lists" / "reading.md"
    file.write_text(file.read_text() + "- Dune\n")
    run(brain, "notebook write", "codex", path="lists/reading.md", content="- Ulysses\n")
    assert {line: author for line, (_, author, _) in blame(brain, "lists/reading").items()} == {
        "- Emma": "codex",
        "- Dune": "sync",
        "- Ulysses": "codex",
    }


def test_lines_of_an_ingested_source_name_it(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "standup.md").write_text("# Standup\n\nShipped it.\n")
    run(brain, "ingest", "codex", file=str(tmp_path / "standup.md"), slug="meetings/standup")
    version, author, source = blame(brain, "meetings/standup")["Shipped it."]
    assert (version, author) == (1, "codex")
    assert source.endswith("standup.md")


def test_lines_older_than_the_stored_history_are_marked(brain: Brain) -> None:
    for number in range(1, 14):
        run(
            brain,
            "put",
            "codex",
            slug="a",
            content="\n\n".join(f"Line {line}." for line in range(number)) + "!",
        )
    record = run(brain, "blame", slug="a")
    assert record["oldest_version"] == 3
    assert [line["version"] for line in record["lines"] if line["text"]][:3] == [None, None, 4]
    assert record["lines"][0]["author"] == ""


def test_imported_pages_have_the_author_import(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.md").write_text("One.\n")
    run(brain, "import", folder=str(tmp_path / "folder"))
    run(brain, "put", "codex", slug="a", compiled_truth="One.\n\nTwo.", expected_version=1)
    assert blame(brain, "a") == {"One.": (1, "import", "a.md"), "Two.": (2, "codex", "")}


def test_a_version_that_only_adds_facts_does_not_change_the_version_of_a_line(brain: Brain) -> None:
    def add_fact(object: str) -> None:
        run(brain, "assert", slug="a", predicate="likes", object=object)

    run(brain, "put", slug="a", content="# Alice\n\nOne.")
    add_fact("tea")
    add_fact("bread")
    run(brain, "put", "codex", slug="a", content="# Alice\n\nOne.\n\nTwo.", expected_version=3)
    add_fact("rain")
    assert blame(brain, "a") == {
        "# Alice": (1, "owner", ""),
        "One.": (1, "owner", ""),
        "Two.": (4, "codex", ""),
    }


def test_a_fact_added_to_a_page_of_a_folder_does_not_change_the_version_of_a_line(
    brain: Brain, tmp_path: Path
) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("One.\n")
    run(brain, "collection add", name="notes", path=str(root))
    run(brain, "assert", slug="a", predicate="likes", object="tea")
    run(brain, "put", "codex", slug="a", compiled_truth="One.\n\nTwo.")
    run(brain, "assert", slug="a", predicate="likes", object="rain")
    assert blame(brain, "a") == {"One.": (1, "sync", "a.md"), "Two.": (3, "codex", "")}

import re
from pathlib import Path

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument, InvalidSlug, NotFound, PageNotFound
from quaid.formats import markdown
from quaid.mcp import tools
from quaid.operations import dispatch


def text(brain: Brain, uri: str) -> str:
    (content,) = tools.read_resource(brain, uri)["contents"]
    assert content["uri"] == uri
    assert content["mimeType"] == "text/markdown"
    return str(content["text"])


def add_pages(brain: Brain, count: int) -> None:
    for number in range(count):
        arguments = {"slug": f"concepts/c{number:04}", "content": f"# Concept {number}\n"}
        dispatch.call(brain, dispatch.find_tool("memory_put"), arguments, "write")


def test_a_page_reads_as_the_markdown_that_was_put(brain: Brain) -> None:
    document = markdown.parse(text(brain, "memory://pages/people/alice"))
    assert document.frontmatter["title"] == "Alice Berg"
    assert document.frontmatter["tags"] == ["founder"]
    assert "She prefers short calls." in document.truth
    assert "Moved to Oslo." in document.timeline


@pytest.mark.parametrize(
    "slug", ["people%2Falice", "people/%61lice", "default::people/alice", "default%3A%3Apeople/alice"]
)
def test_addresses_are_decoded_and_may_name_the_collection(brain: Brain, slug: str) -> None:
    assert "Alice Berg" in text(brain, f"memory://pages/{slug}")


def test_the_index_groups_the_slugs_by_type(brain: Brain) -> None:
    index = text(brain, "memory://index")
    assert "Pages: 2" in index
    assert "## company (1)\n\n- companies/river\n" in index
    assert "## person (1)\n\n- people/alice\n" in index
    assert text(brain, "memory://index/") == index


def test_every_listed_page_can_be_read(brain: Brain, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "people").mkdir(parents=True)
        (tmp_path / name / "people" / "alice.md").write_text(f"# Alice of {name}\n")
        (tmp_path / name / "Ünï cödé 100%.md").write_text(f"# Letters of {name}\n")
        fields = {"name": name, "path": str(tmp_path / name)}
        dispatch.call(brain, dispatch.find_command("collection add"), fields, "owner")
    listed = tools.list_resources(brain, None)["resources"]
    titles = {item["uri"]: item["title"] for item in listed if item["title"] != "Index"}
    assert len(titles) == 6
    for uri, title in titles.items():
        assert title in text(brain, uri)
    assert titles["memory://pages/people/alice"] == "Alice Berg"
    index = text(brain, "memory://index")
    names = re.findall("^- (.*)$", index, re.MULTILINE)
    assert len(names) == 6
    for name in names:
        assert (
            dispatch.call(brain, dispatch.find_tool("memory_get"), {"slug": name}, "read").title
            in titles.values()
        )


def test_index_of_an_empty_memory(brain: Brain) -> None:
    brain.db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert text(brain, "memory://index") == "# Index of the memory\n\nPages: 0\n"


def test_reading_the_index_reports_progress(brain: Brain) -> None:
    steps: list[tuple[int, int, str]] = []
    brain.progress = lambda done, total, what: steps.append((done, total, what))
    text(brain, "memory://index")
    assert steps == [(2, 2, "Listing pages")]


def test_large_index_is_read_in_batches(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pages(brain, 5)
    whole = text(brain, "memory://index")
    steps: list[int] = []
    brain.progress = lambda done, total, what: steps.append(done)
    monkeypatch.setattr(tools, "READ_BATCH", 3)
    assert text(brain, "memory://index") == whole
    assert steps == [3, 6, 7]


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("memory://pages/people/nobody", PageNotFound),
        ("memory://pages/nowhere::people/alice", NotFound),
        ("memory://pages/", InvalidSlug),
        ("memory://pages/People/Alice", InvalidSlug),
        ("memory://pages/../../etc/passwd", InvalidSlug),
        ("memory://pages/people/alice?x=1", InvalidSlug),
        ("memory://pages/people%00alice", InvalidArgument),
        ("memory://pages/%ff", InvalidArgument),
        ("memory://pages/%zz", InvalidSlug),
        ("memory://else", NotFound),
        ("file:///etc/passwd", NotFound),
        ("", NotFound),
    ],
)
def test_unknown_uri_is_reported(brain: Brain, uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        tools.read_resource(brain, uri)


def test_the_list_starts_with_the_index_and_describes_each_page(brain: Brain) -> None:
    first, *pages = tools.list_resources(brain, None)["resources"]
    assert first["uri"] == "memory://index"
    alice = next(page for page in pages if page["name"] == "people/alice")
    assert alice["uri"] == "memory://pages/people/alice"
    assert alice["title"] == "Alice Berg"
    assert alice["description"] == "Founder of River, lives in Oslo."
    assert alice["annotations"]["lastModified"].startswith("2026-04-25T")


def test_list_pages_are_complete_while_pages_are_added(brain: Brain) -> None:
    add_pages(brain, 150)
    portion = tools.list_resources(brain, None)
    seen = [resource["uri"] for resource in portion["resources"]]
    assert len(seen) == 101
    dispatch.call(
        brain, dispatch.find_tool("memory_put"), {"slug": "concepts/late", "content": "# Late"}, "write"
    )
    while "nextCursor" in portion:
        portion = tools.list_resources(brain, portion["nextCursor"])
        seen += [resource["uri"] for resource in portion["resources"]]
    assert {f"memory://pages/concepts/c{number:04}" for number in range(150)} <= set(seen)
    assert seen.count("memory://index") == 1


@pytest.mark.parametrize(
    "cursor", ["", "x", "after-0", "after--1", "after-1 ", "after-99999999999", "after-١"]
)
def test_unknown_cursor_is_refused(brain: Brain, cursor: str) -> None:
    with pytest.raises(InvalidArgument, match="cursor"):
        tools.list_resources(brain, cursor)


def test_a_cursor_beyond_the_end_finds_nothing(brain: Brain) -> None:
    assert tools.list_resources(brain, "after-5000") == {"resources": []}

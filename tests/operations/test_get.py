"""Read one page or several, by slug, title, alias or file path, whole or some lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import InvalidArgument, PageNotFound
from quaid.operations import dispatch


def call(brain: Brain, tool: str, /, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool(f"memory_{tool}"), arguments, "write")


@pytest.fixture
def town(brain: Brain, tmp_path: Path) -> Brain:
    call(brain, "put", slug="people/bo", content="---\naliases: [Bo B.]\n---\n# Bo Berg\n\nBakes.\n\nSings.")
    call(brain, "put", slug="people/cy", content="# Cy Dahl")
    call(brain, "put", slug="places/oslo", content="# Harbour")
    call(brain, "put", slug="places/rome", content="# Harbour")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Rainy Day.md").write_text("# Rain\n\nIt rains.\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "snow.md").write_text("# Snow\n")
    arguments = {"name": "notes", "path": str(folder)}
    dispatch.call(brain, dispatch.find_command("collection add"), arguments, "owner")
    return brain


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("people/bo", "people/bo"),
        ("Bo Berg", "people/bo"),
        ("bo b", "people/bo"),
        ("Rainy Day.md", "rainy-day"),
        ("notes::sub/snow.md", "sub/snow"),
        ("notes/sub/snow.md", "sub/snow"),
        ("sub/snow.md", "sub/snow"),
        ("notes::Snow", "sub/snow"),
    ],
)
def test_a_page_is_found_by_its_names(town: Brain, name: str, slug: str) -> None:
    assert call(town, "get", slug=name).slug == slug
    assert call(town, "get", slug=[name]).slug == slug


def test_a_page_is_found_by_the_absolute_path_of_its_file(town: Brain, tmp_path: Path) -> None:
    page = call(town, "get", slug=str(tmp_path / "notes" / "sub" / "snow.md"))
    assert (page.collection, page.slug) == ("notes", "sub/snow")


def test_a_page_is_found_by_the_path_of_its_imported_file(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "foo").mkdir(parents=True)
    (folder / "foo" / "bar.md").write_text("# Bar\n")
    (folder / "bar.md").write_text("# Other\n")
    dispatch.call(brain, dispatch.find_command("import"), {"folder": str(folder)}, "owner")
    for path in ("foo/bar.md", "docs/foo/bar.md", str(folder / "foo" / "bar.md")):
        assert call(brain, "get", slug=path).title == "Bar"
    call(brain, "put", slug="foo/bar", compiled_truth="# Bar\n\nEdited.", expected_version=1)
    assert call(brain, "get", slug="docs/foo/bar.md").title == "Bar"
    assert call(brain, "get", slug=str(folder / "bar.md")).title == "Other"


def test_a_page_is_found_by_a_path_with_the_name_of_its_folder(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "foo").mkdir(parents=True)
    (folder / "foo" / "My Bar.md").write_text("# Bar\n")
    (tmp_path / "link").symlink_to(folder)
    arguments = {"name": "manual", "path": str(folder)}
    dispatch.call(brain, dispatch.find_command("collection add"), arguments, "owner")
    for path in (
        *("foo/My Bar.md", "./foo/My Bar.md", "docs/foo/My Bar.md", "manual/foo/My Bar.md"),
        *(
            "manual::foo/My Bar.md",
            str(folder / "foo" / "My Bar.md"),
            str(tmp_path / "link" / "foo" / "My Bar.md"),
        ),
    ):
        assert call(brain, "get", slug=path).title == "Bar"


@pytest.mark.parametrize(
    "name", ["Harbour", "people/nobody", "default::Snow", "notes::nothing.md", "/etc/passwd"]
)
def test_unknown_and_ambiguous_names_are_refused(town: Brain, name: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (an invalid slug or no page)
        call(town, "get", slug=name)
    assert getattr(caught.value, "code", "") in ("page_not_found", "invalid_slug")


@pytest.mark.parametrize("name", ["Berg", "Bo", "Ber", "people/berg", "berg"])
def test_a_part_of_a_name_lists_the_pages_that_have_it(town: Brain, name: str) -> None:
    with pytest.raises(PageNotFound, match="people/bo"):
        call(town, "get", slug=name)
    record = call(town, "get", slug=[name, "people/cy"])
    assert "people/bo" in record.missing[0].hint


def test_several_pages_are_read_and_missing_ones_listed_with_near_names(town: Brain) -> None:
    record = call(town, "get", slug=["people/bo", "Cy Dahl", "people/boo", "Harbour", "people/bo"])
    assert [page.slug for page in record.pages] == ["people/bo", "people/cy"]
    assert [(page.slug, page.hint) for page in record.missing] == [
        ("people/boo", "Did you mean people/bo?"),
        ("Harbour", "The pages of that name are places/oslo (Harbour) and places/rome (Harbour)."),
    ]
    assert record.exit_status == PageNotFound.exit_status
    text = render(record)
    assert "==> people/bo, version 1 <==" in text
    assert text.endswith("places/rome (Harbour).")
    fields = dispatch.json_value(record)["pages"][1]
    assert (fields["title"], len(fields["content_hash"])) == ("Cy Dahl", 12)


def test_a_list_as_json_text_is_a_list(town: Brain) -> None:
    record = call(town, "get", slug=json.dumps(["people/bo", "people/cy"]))
    assert [page.slug for page in record.pages] == ["people/bo", "people/cy"]


def test_some_lines_of_a_page(town: Brain) -> None:
    call(town, "put", slug="people/bo", append="One.\n\nTwo.")
    call(town, "timeline_add", slug="people/bo", date="2026-01-02", summary="Moved")
    page = call(town, "get", slug="people/bo")
    whole = f"{page.compiled_truth}\n\n---\n\n{page.timeline}".removesuffix("\n").split("\n")
    part = call(town, "get", slug="people/bo", lines="2-4")
    assert (part.text.split("\n"), part.lines) == (whole[1:4], "2-4")
    assert part.content_hash == page.content_hash
    assert call(town, "get", slug="people/bo", lines="2-999").lines == f"2-{len(whole)}"
    assert call(town, "get", slug="people/bo", lines="2").text == whole[1]
    assert call(town, "get", slug="people/bo", lines="2-").text == "\n".join(whole[1:])
    several = call(town, "get", slug=["people/bo", "people/cy"], lines="1-1")
    assert "lines 1-1 of" in render(several)


def test_lines_are_numbered_as_in_facts_and_search_results(town: Brain) -> None:
    call(town, "put", slug="people/bo", append="Plays the harp.")
    call(town, "timeline_add", slug="people/bo", date="2026-01-02", summary="Moved to Turin")
    for instrument in ("harp", "Turin"):
        call(town, "assert", slug="people/bo", predicate=f"knows_{instrument}", object=instrument)
    facts = call(town, "facts", subject="people/bo").facts
    places = {fact.object: (fact.part, fact.line) for fact in facts if fact.object in ("harp", "Turin")}
    assert places["Turin"][0] == "timeline"
    for word, (where, line) in places.items():
        assert word in call(town, "get", slug="people/bo", lines=f"{where} {line}").text
    assert "harp" in call(town, "get", slug="people/bo", lines=str(places["harp"][1])).text
    (result, *_) = call(town, "query", question="Who plays the harp?").results
    span = f"{result.part} {result.start_line}-{result.end_line}"
    assert "harp" in call(town, "get", slug=result.slug, lines=span).text


@pytest.mark.parametrize("lines", ["0-3", "x", "7-3", "-3", "500-600", "1-2-3", "front 1"])
def test_a_wrong_range_is_refused(town: Brain, lines: str) -> None:
    with pytest.raises(InvalidArgument, match="lines"):
        call(town, "get", slug="people/bo", lines=lines)


@pytest.mark.parametrize("slugs", [[], [f"p{number}" for number in range(51)]])
def test_the_number_of_pages_is_limited(brain: Brain, slugs: list[str]) -> None:
    with pytest.raises(InvalidArgument, match="slug"):
        call(brain, "get", slug=slugs)


def test_a_missing_page_without_near_names_is_reported_once(town: Brain) -> None:
    text = render(call(town, "get", slug=["people/bo", "nothing/here"]))
    assert text.count("There is no page nothing/here.") == 1

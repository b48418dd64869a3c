"""One file to one page."""

from quaid.folders import indexer


def test_the_front_matter_names_the_slug() -> None:
    made = indexer.parse_file("notes/A.md", b"---\nslug: people/alice\n---\n# Alice\n").page
    assert (made.slug, made.type, made.title) == ("people/alice", "person", "Alice")


def test_a_bad_slug_in_the_front_matter_is_only_text() -> None:
    made = indexer.parse_file("notes/A b.md", b"---\nslug: No Slug\n---\n").page
    assert made.slug == "notes/a-b"
    assert made.frontmatter == {"slug": "No Slug"}


def test_an_empty_file_is_an_empty_page_named_after_the_file() -> None:
    for path, title in (
        ("My Näme.md", "My Näme"),
        ("my-name.md", "My Name"),
        ("x/2026-04-25.md", "2026-04-25"),
    ):
        made, notes, _ = indexer.parse_file(path, b"")
        assert (made.title, made.truth, made.timeline, made.frontmatter, notes) == (title, "", "", {}, ())


def test_repairs_of_a_file_are_reported() -> None:
    assert indexer.parse_file("a.md", b"caf\xe9 \0").notes == (
        "not UTF-8: 1 byte replaced; 1 NUL character replaced",
    )
    (note,) = indexer.parse_file("a.md", b"---\ntitle: [a\n---\nx").notes
    assert note.startswith("front matter kept as it is: line ")
    made, (note,), _ = indexer.parse_file("a.md", b"---\ntitle: a\n\n- 2026-04-25 - Met.\n")
    assert note == "front matter taken for text: line 1 opens it with '---', and no later line closes it"
    assert (made.truth, made.timeline, made.entries) == ("title: a\n\n- 2026-04-25 - Met.", "", ())
    (note,) = indexer.parse_file("people/a.md", b"---\ntype: Spaceship\n---\nx").notes
    assert note == "type 'Spaceship' is not one of the known types; kept as it is"
    (note,) = indexer.parse_file("people/a.md", b"---\ntype: [x]\n---\nx").notes
    assert note == "type ['x'] is not the name of a type; taken for a person"


def test_bytes_of_broken_front_matter_stay_in_the_page() -> None:
    made = indexer.parse_file("a.md", b"---\ntitle: [a\n---\nBody").page
    assert "title: [a" in str(made.frontmatter)
    assert made.truth == "Body"


def test_a_moved_page_keeps_its_title_and_takes_the_type_of_its_place() -> None:
    made = indexer.parse_file("My Name.md", b"text").page
    moved = indexer.with_slug(made, "people/my-name-abc123")
    assert (moved.slug, moved.title, moved.type, moved.truth) == (
        "people/my-name-abc123",
        "My Name",
        "person",
        "text",
    )
    assert indexer.with_slug(made, made.slug) is made


def test_the_digest_is_sha_256() -> None:
    assert indexer.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

"""Title and summary: which of several candidates wins."""

from typing import Any

import pytest

from quaid.model import page as page_model


@pytest.mark.parametrize(
    ("slug", "frontmatter", "text", "fallback", "expected"),
    [
        ("a", {"title": " Two\n words "}, "# Other", "f", "Two words"),
        ("a", {"title": 2024}, "", None, "2024"),
        ("a", {"title": True}, "", None, "true"),
        ("a", {"title": ""}, "# From *Text*", "f", "From Text"),
        ("a", {"title": ["x"]}, "", "Fallback", "Fallback"),
        ("people/alice-b_example", {}, "", None, "Alice B Example"),
        ("journal/2026-04-25", {}, "", None, "2026-04-25"),
        ("-", {}, "", None, "-"),
    ],
)
def test_the_title_is_given_or_the_heading_or_the_fallback_or_the_name(
    slug: str, frontmatter: dict[str, Any], text: str, fallback: str | None, expected: str
) -> None:
    assert page_model.page_title(slug, frontmatter, text, fallback) == expected


@pytest.mark.parametrize(
    ("frontmatter", "text", "expected"),
    [
        ({"summary": "Given.\n"}, "> Quoted.", "Given."),
        ({"summary": "", "description": "Described."}, "# T\n\n> Quoted.\n\nFirst.", "Quoted."),
        ({}, "# T\n\n> [!note] Aside\n> of the page\n\nFirst.\n\n> Quoted.", "First."),
        ({"summary": "[[people/alice|Alice]]"}, "", "[[people/alice|Alice]]"),
        ({"description": "Described."}, "First.", "First."),
        ({"description": "Described."}, "# Only a heading", "Described."),
        ({}, "", ""),
    ],
)
def test_the_summary_is_given_or_quoted_or_the_first_paragraph_or_the_description(
    frontmatter: dict[str, Any], text: str, expected: str
) -> None:
    assert page_model.page_summary(frontmatter, text) == expected


def test_a_long_summary_ends_with_a_word_and_an_ellipsis() -> None:
    cut = page_model.page_summary({}, "word " * 100)
    assert len(cut) <= 300
    assert cut.endswith("word…")


def test_a_given_summary_is_not_cut_within_markup() -> None:
    message = "word " * 55 + "[a link whose text is too long](https://example.com/" + "x" * 100 + ")"
    assert page_model.page_summary({"summary": message}, "") == "word " * 55 + "a link whose text is…"

"""Every construct of markdown within every other: whatever a note holds, a page can be made of it."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, strategies as st

from quaid.formats import markdown
from quaid.model import chunker, page as page_model, plain_text
from quaid.model.page import derive_data

Wrap = Callable[[str], str]

CONSTRUCTS: dict[str, Wrap] = {
    "code span": lambda inner: f"`{inner}`",
    "double code span": lambda inner: f"`` {inner} ``",
    "link": lambda inner: f"[{inner}](x.md)",
    "link target": lambda inner: f"[x]({inner}.md)",
    "reference link": lambda inner: f"[{inner}][ref]",
    "link definition": lambda inner: f"\n[ref]: {inner}\n",
    "image": lambda inner: f"![{inner}](x.png)",
    "image target": lambda inner: f"![x]({inner})",
    "wiki link": lambda inner: f"[[{inner}]]",
    "wiki heading": lambda inner: f"[[Filters#{inner}|wikilink]]",
    "wiki text": lambda inner: f"[[people/alice|{inner}]]",
    "org link": lambda inner: f"[[id:1][{inner}]]",
    "embed": lambda inner: f"![[{inner}]]",
    "callout": lambda inner: f"\n> [!note] {inner}\n> {inner}\n",
    "quotation": lambda inner: f"\n> {inner}\n",
    "tag": lambda inner: f" #{inner} ",
    "html": lambda inner: f"<b>{inner}</b>",
    "html attribute": lambda inner: f'<a title="{inner}">x</a>',
    "autolink": lambda inner: f"<https://{inner}>",
    "comment": lambda inner: f"<!-- {inner} -->",
    "hidden comment": lambda inner: f"%% {inner} %%",
    "emphasis": lambda inner: f"*{inner}*",
    "strong": lambda inner: f"**{inner}**",
    "struck": lambda inner: f"~~{inner}~~",
    "marked": lambda inner: f"=={inner}==",
    "escape": lambda inner: f"\\{inner}",
    "shortcode": lambda inner: f'{{{{< glossary text="{inner}" >}}}}',
    "table": lambda inner: f"\n| a | {inner} |\n| - | - |\n| {inner} | b |\n",
    "fence": lambda inner: f"\n```\n{inner}\n```\n",
    "tilde fence": lambda inner: f"\n~~~ {inner}\n{inner}\n",
    "indented code": lambda inner: f"\n    {inner}\n",
    "footnote": lambda inner: f"[^{inner}]",
    "footnote text": lambda inner: f"\n[^1]: {inner}\n",
    "heading": lambda inner: f"\n# {inner}\n",
    "underlined": lambda inner: f"\n{inner}\n===\n",
    "list": lambda inner: f"\n- {inner}\n  - [ ] {inner}\n",
    "entry": lambda inner: f"\n---\n- **2026-04-25** | {inner} — {inner}.\n",
    "formula": lambda inner: f"${inner}$",
}

WORDS = st.sampled_from(
    [
        "",
        "a",
        "wiki link",
        "`",
        "``",
        "[",
        "]",
        "(",
        "<",
        ">",
        "*",
        "#",
        "|",
        "\n",
        "\ue000",
        "\U0010f000",
        "é",
    ]
)


def _within(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    wrapped = st.builds(lambda name, text: CONSTRUCTS[name](text), st.sampled_from(sorted(CONSTRUCTS)), inner)
    return wrapped | st.lists(inner, min_size=2, max_size=3).map("".join)


TEXTS = st.recursive(WORDS, _within, max_leaves=8)


def _taken_in(text: str) -> page_model.Page:
    """All that is done with the text of a file before it is stored."""
    document = markdown.parse(text)
    made = page_model.build_page("a/b", document.frontmatter, document.truth, document.timeline)
    derive_data(made)
    for strategy in chunker.STRATEGIES:
        chunker.chunk_by_structure(made.truth, made.timeline, strategy)
    return made


@pytest.mark.parametrize("outer", CONSTRUCTS)
def test_a_page_is_made_of_every_construct_within_every_other(outer: str) -> None:
    for inner, wrap in CONSTRUCTS.items():
        nested = CONSTRUCTS[outer](wrap("word"))
        made = _taken_in(f"# Title\n\nBefore {nested} after `code`.\n")
        assert made.title, inner
        assert "\U0010f000" not in made.summary, inner
        assert plain_text.strip_markdown("`x`" + nested + "`y`").startswith("x"), inner


@given(TEXTS)
@example("[[Filters#`wikilink`|wikilink]]")
@example("![`alt`](x.png)")
@example("<a title='`x`'>")
def test_no_nesting_of_markup_is_too_much(text: str) -> None:
    made = _taken_in(text)
    assert "\n" not in made.summary
    assert "\n" not in plain_text.strip_markdown(text)
    page_model.text_tags(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[Filters#`wikilink`|wikilink]] and `code`", "wikilink and code"),
        ("[[`a`|b]] `c` [[d|`e`]]", "b c e"),
        ("![`alt`](x.png) then `code`", "then code"),
        ("![[`x`]] `y`", "y"),
        ("[`f()`](f.md) [^`n`] `g()`", "f() g()"),
        ("<b title='`x`'>bold</b> `y`", "bold y"),
        ("\ue000 stays, `code`", "\ue000 stays, code"),
    ],
)
def test_a_code_span_goes_with_what_is_around_it(text: str, expected: str) -> None:
    assert plain_text.strip_markdown(text) == expected

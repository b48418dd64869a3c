"""An edit changes what it must, and no other byte."""

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidFrontMatter
from quaid.formats import markdown
from quaid.formats.markdown import patch

PAGE = """\
---
title: Alice   # as she writes it
tags:
- founder
- "night owl"
# what follows is ours
x-custom: {a: 1,   b: [2]}
born: '1970-01-01'
---

# Alice

Lives in Oslo.

* odd    spacing


---

- **2024-01-01** | call — First.
"""


def edited(text: str, **parts: object) -> str:
    old = markdown.parse(text)
    front = {**old.frontmatter, **parts.pop("front", {})}  # type: ignore[dict-item]
    for key in parts.pop("without", ()):  # type: ignore[attr-defined]
        front.pop(key)
    new = old._replace(frontmatter=front, **parts)  # type: ignore[arg-type]
    done = patch(text, new.frontmatter, new.truth, new.timeline)
    assert markdown.parse(done)[:3] == new[:3]
    return done


def test_nothing_to_change_changes_nothing() -> None:
    assert edited(PAGE) == PAGE


@pytest.mark.parametrize(
    ("parts", "before", "after"),
    [
        ({"front": {"title": "Alicia"}}, "title: Alice   # as", "title: Alicia   # as"),
        ({"front": {"tags": ["founder", "night owl", "oslo"]}}, 'owl"\n', 'owl"\n- oslo\n'),
        ({"front": {"tags": ["night owl"]}}, "- founder\n", ""),
        ({"front": {"new": "key"}}, "01-01'\n---", "01-01'\nnew: key\n---"),
        ({"without": ["born"]}, "born: '1970-01-01'\n", ""),
        ({"front": {"x-custom": 5}}, "x-custom: {a: 1,   b: [2]}", "x-custom: 5"),
        ({"truth": "# Alice\n\nLives in Rome.\n\n* odd    spacing"}, "Oslo", "Rome"),
        (
            {"timeline": "- **2024-02-01** | call — Second.\n- **2024-01-01** | call — First."},
            "- **2024-01",
            "- **2024-02-01** | call — Second.\n- **2024-01",
        ),
    ],
)
def test_only_what_differs_is_written(parts: dict[str, object], before: str, after: str) -> None:
    assert edited(PAGE, **parts) == PAGE.replace(before, after, 1)
    windows = PAGE.replace("\n", "\r\n")
    assert edited(windows, **parts) == windows.replace(
        before.replace("\n", "\r\n"), after.replace("\n", "\r\n"), 1
    )


@pytest.mark.parametrize(
    ("text", "parts", "wanted"),
    [
        ("# A", {"timeline": "- **2024-01-01** | x — y"}, "# A\n\n---\n\n- **2024-01-01** | x — y\n"),
        ("# A\n", {"timeline": "t"}, "# A\n\n---\n\nt\n"),
        ("---\nnever closed\n", {"truth": "still not"}, "---\nstill not\n"),
        ("---\nnever closed\n", {"timeline": "t"}, "never closed\n\n---\n\nt\n"),
        ("---\nnever closed\n", {"front": {"a": 1}}, "---\na: 1\n---\n\nnever closed\n"),
        ("# A\n\n\n", {"timeline": "t"}, "# A\n\n\n---\n\nt\n"),
        ("# A\n\n---\n", {"timeline": "t"}, "# A\n\n---\n\nt\n"),
        ("# A", {"front": {"tags": ["x"]}}, "---\ntags: [x]\n---\n\n# A"),
        ("---\na: 1\n---\n", {"truth": "# A"}, "---\na: 1\n---\n\n# A\n"),
        ("---\na: 1\n---\n\n---\n\nt\n", {"truth": "# A"}, None),
        ("\ufeff---\na: 1\n---\n\nx\n", {"truth": "y"}, "\ufeff---\na: 1\n---\n\ny\n"),
        ("---\na: 1\n---\nx", {"truth": "y"}, "---\na: 1\n---\ny"),
        ("\ufeff# A\n", {"front": {"a": 1}}, "\ufeff---\na: 1\n---\n\n# A\n"),
        (
            "---\ntags:\n  # one\n  - a\n  # two\n  - b\n---\nx\n",
            {"front": {"tags": ["a", "b", "c"]}},
            "---\ntags:\n  # one\n  - a\n  # two\n  - b\n  - c\n---\nx\n",
        ),
        ("a\r\nb\nc\r\n", {"truth": "a\nB\nc"}, "a\r\nB\r\nc\r\n"),
        ("---\ntags: [a, b]\n---\nx\n", {"front": {"tags": ["a"]}}, "---\ntags: [a]\n---\nx\n"),
        ("---\n'q k': 1 # c\n---\nx\n", {"front": {"q k": 2}}, "---\n'q k': 2 # c\n---\nx\n"),
        ("---\nurl: http://a#b\n---\nx\n", {"front": {"url": "z"}}, "---\nurl: z\n---\nx\n"),
        ("---\nt: |\n  long\n  text\nb: 1\n---\nx\n", {"front": {"t": "s"}}, "---\nt: s\nb: 1\n---\nx\n"),
    ],
)
def test_pages_of_every_shape(text: str, parts: dict[str, object], wanted: str | None) -> None:
    done = edited(text, **parts)
    assert wanted is None or done == wanted


def test_toml_is_not_rewritten_as_something_else() -> None:
    with pytest.raises(InvalidFrontMatter):
        edited("+++\na = 1\n+++\nx\n", front={"a": 2})
    assert edited("+++\na = 1\n+++\nx\n", truth="y") == "+++\na = 1\n+++\ny\n"


def test_front_matter_that_cannot_be_read_stays() -> None:
    text = "---\na: [\n---\nx\n"
    assert edited(text, truth="y") == "---\na: [\n---\ny\n"


VALUES = st.one_of(
    st.text(max_size=8),
    st.integers(-9, 9),
    st.booleans(),
    st.lists(st.text("ab,:#-' ", max_size=4), max_size=3),
)
FRONTS = st.dictionaries(st.text("abc-_ :#'\"x", min_size=1, max_size=5), VALUES, max_size=4)
TEXTS = st.text("ab #-*`\n", max_size=30)


@given(FRONTS, TEXTS, TEXTS, FRONTS, TEXTS, TEXTS, st.sampled_from(["\n", "\r\n"]))
def test_a_patched_page_is_the_page_that_was_wanted(
    front: dict[str, object],
    truth: str,
    timeline: str,
    new_front: dict[str, object],
    new_truth: str,
    new_timeline: str,
    end: str,
) -> None:
    before = markdown.parse(
        markdown.render(front, markdown.normalize_part(truth), markdown.normalize_part(timeline))
    )
    after = markdown.parse(
        markdown.render(new_front, markdown.normalize_part(new_truth), markdown.normalize_part(new_timeline))
    )
    text = markdown.render(*before[:3]).replace("\n", end)
    assert markdown.parse(patch(text, *after[:3]))[:3] == after[:3]

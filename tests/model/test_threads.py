import pytest

from quaid.model import markdown_text


def test_only_empty_boxes_under_their_heading_are_threads() -> None:
    truth = """# Alice

- [ ] not under the heading

## Open Threads

- [ ] Ask about **the crane**
* [ ] See [Bob](../people/bob.md)
- [x] Done already
- No box at all
  - [ ] A smaller one

### For later

- [ ] Still below

## State

- [ ] another heading ended it
"""
    assert markdown_text.open_threads(truth) == [
        "Ask about the crane",
        "See Bob",
        "A smaller one",
        "Still below",
    ]


@pytest.mark.parametrize(
    "heading", ["# open threads", "## OPEN THREADS ##", "#### **Open threads**", "## Open threads:"]
)
def test_the_heading_may_be_of_any_level_and_case(heading: str) -> None:
    assert markdown_text.open_threads(f"{heading}\n- [ ] x\n") == ["x"]


@pytest.mark.parametrize(
    "truth",
    [
        "",
        "## Open Threads\n\n- [x] a\n",
        "Open Threads\n\n- [ ] a\n",
        "## Open Threads of last year\n\n- [ ] a\n",
        "```\n## Open Threads\n- [ ] a\n```\n",
        "## Open Threads\n- [ ]\n- [ ]   \n",
    ],
)
def test_lookalike_of_a_thread_is_ignored(truth: str) -> None:
    assert markdown_text.open_threads(truth) == []

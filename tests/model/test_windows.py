"""A long text cut into windows."""

import itertools

from hypothesis import given, strategies as st

from quaid.model.chunker import split_windows
from quaid.model.plain_text import count_tokens

PIECES = st.lists(
    st.one_of(
        st.sampled_from(["\n", "\n\n", " ", ". ", "。", "    ", "word", "字", "글", "{", "12345678"]),
        st.text(max_size=5),
    ).flatmap(lambda piece: st.integers(1, 400).map(lambda number: piece * number)),
    max_size=30,
)


def test_a_short_text_is_one_window() -> None:
    assert list(split_windows("some words", 0, 10, 100, 10)) == [(0, 0, 10, count_tokens("some words"))]


def test_a_window_ends_with_a_paragraph_where_it_can() -> None:
    text = ("A sentence of some length that goes on. " * 3 + "\n\n") * 20
    assert all(
        text[window.start : window.end].rstrip().endswith("on.")
        for window in split_windows(text, 0, len(text), 200, 20)
    )


def test_a_window_of_one_long_line_ends_with_a_sentence() -> None:
    text = "A sentence of some length that goes on. " * 60
    for window in split_windows(text, 0, len(text), 200, 30):
        assert text[window.start : window.end].strip().endswith("on.")
        assert text[window.start] == "A"


@given(PIECES, st.sampled_from([(450, 60), (400, 80), (100, 20)]))
def test_windows_cover_everything_and_keep_their_limits(pieces: list[str], sizes: tuple[int, int]) -> None:
    text, (limit, overlap) = "".join(pieces), sizes
    windows = list(split_windows(text, 0, len(text), limit, overlap))
    assert all(window.tokens <= limit for window in windows)
    assert all(window.start <= window.fresh <= window.end for window in windows)
    for before, after in itertools.pairwise(windows):
        assert before.fresh < after.fresh
        assert not text[before.end : after.fresh].strip()
        assert count_tokens(text[after.start : after.fresh]) <= overlap + 1
    assert not text[windows[-1].end :].strip()

"""How a name fits what somebody types."""

import pytest

from quaid.model.slug import EXACT_MATCH, PREFIX_MATCH, WORD_MATCH, fold_name, match_strength


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("Ines Karvonen", EXACT_MATCH),
        ("ines-karvonen?", EXACT_MATCH),
        ("ines", WORD_MATCH),
        ("karvonen", WORD_MATCH),
        ("Karvonen, Ines", WORD_MATCH),
        ("in", PREFIX_MATCH),
        ("ines kar", PREFIX_MATCH),
        ("karv", PREFIX_MATCH),
        ("kar in", PREFIX_MATCH),
        ("nes", 0),
        ("ines berg", 0),
        ("", 0),
    ],
)
def test_a_name_fits_by_itself_by_its_words_or_by_their_beginnings(typed: str, wanted: int) -> None:
    assert match_strength(fold_name("Ines Karvonen"), fold_name(typed)) == wanted

"""How a name fits what somebody types."""

import pytest

from quaid.core.names import BEGUN, EXACT, WORDS, fit, fold


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("Ines Karvonen", EXACT),
        ("ines-karvonen?", EXACT),
        ("ines", WORDS),
        ("karvonen", WORDS),
        ("Karvonen, Ines", WORDS),
        ("in", BEGUN),
        ("ines kar", BEGUN),
        ("karv", BEGUN),
        ("kar in", BEGUN),
        ("nes", 0),
        ("ines berg", 0),
        ("", 0),
    ],
)
def test_a_name_fits_by_itself_by_its_words_or_by_their_beginnings(typed: str, wanted: int) -> None:
    assert fit(fold("Ines Karvonen"), fold(typed)) == wanted

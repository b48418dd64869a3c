"""Words of a quoted source line are matched as whole words, in every script."""

import pytest

from quaid.model.facts import _find_whole_words


@pytest.mark.parametrize(
    ("text", "wanted", "at"),
    [
        ("inactive", "active", -1),
        ("היא גרה בשלום", "שלום", -1),  # with a prefix: another word
        ("היא אמרה שלום", "שלום", 9),
        ("الكتاب", "كتاب", -1),
        ("नमस्ते", "नमस", -1),  # a vowel sign or virama follows
        ("कमल है", "कमल", 0),
        ("她住在東京都", "東京", 3),  # no spaces between words
        ("กรุงเทพฯ", "เทพ", 4),
    ],
)
def test_whole_words_are_found_in_every_script(text: str, wanted: str, at: int) -> None:
    assert _find_whole_words(text, wanted) == at

"""Which words of a question a text holds."""

import pytest

from quaid.search.text import is_mistakable, stem_text
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import Stemmer


@pytest.mark.parametrize(
    ("part", "text", "is_held"),
    [
        ("charging", "It was charged twice.", True),
        ("ines", "The trial begins in January.", False),
        ("ines", "Dinner with Ines in January.", True),
        ("to be or not", "not to be, or so", True),
        ("tides in", "in the tide", True),
        ("crane", "in the harbour", False),
    ],
)
def test_short_word_matches_no_name(db: Database, part: str, text: str, is_held: bool) -> None:
    stemmer = Stemmer(db)
    assert stem_text(stemmer, text).hold(stem_text(stemmer, part)) is is_held


def test_names_that_stem_to_common_words_are_known(db: Database) -> None:
    stemmer = Stemmer(db)
    assert [word for word in ("ines", "harbour", "in", "karvonen") if is_mistakable(stemmer, word)] == [
        "ines"
    ]

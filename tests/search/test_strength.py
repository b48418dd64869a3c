"""How well an answer is founded."""

import pytest

from quaid.search.strength import (
    MOST_BY_CHANCE,
    STRONG_SCORE,
    TYPICAL_SPREAD,
    WEAK_SCORE,
    Unrelated,
    below_strong,
    expected_baseline,
    missing_names,
    names_asked,
    rate,
    standing_out,
    word_share,
    word_weights,
)


@pytest.mark.parametrize(
    ("words", "meaning", "strength"),
    [
        (0.7, 0.25, "strong"),  # its own conversation
        (0.2, 0.05, "none"),  # the questions of another
        (0.5, 0.1, "weak"),
        (0.0, 0.6, "strong"),  # said in other words
        (0.8, None, "strong"),  # no model
        (0.4, None, "weak"),
        (0.1, None, "none"),
    ],
)
def test_words_and_meaning_make_the_strength(words: float, meaning: float | None, strength: str) -> None:
    assert rate(words, meaning)[0] == strength


def test_a_result_without_the_names_of_the_question_is_weaker() -> None:
    assert rate(0.6, 0.2)[0] == "strong"
    assert rate(0.6, 0.2, 1.0)[0] == "weak"
    assert rate(0.6, None, 1.0)[0] == "none"


@pytest.mark.parametrize("meaning", [None, -0.3, 0.0, 0.2, 0.8])
def test_the_score_has_fixed_limits(meaning: float | None) -> None:
    scores = []
    for words in range(101):
        strength, score = rate(words / 100, meaning)
        assert (score >= STRONG_SCORE) == (strength == "strong")
        assert (score >= WEAK_SCORE) == (strength != "none")
        assert 0 <= score <= 1
        scores.append(score)
    assert scores == sorted(scores)
    assert below_strong(1.0) < STRONG_SCORE


def test_the_nearest_of_many_unrelated_chunks_is_nearer() -> None:
    chances = [Unrelated(0.4, 0.03, chunks).by_chance for chunks in (1_000, 10_000, 100_000)]
    assert chances == sorted(chances)
    assert chances[2] - chances[0] == pytest.approx(0.065, abs=0.005)
    few, many = (Unrelated(0.4, 0.03, chunks).excess(0.7) for chunks in (100, 100_000))
    assert few is not None
    assert many is not None
    assert few > many > 0


def test_a_memory_whose_chunks_differ_more_asks_for_more() -> None:
    assert Unrelated(0.4, 0.04, 1_000).by_chance > Unrelated(0.4, 0.02, 1_000).by_chance
    assert Unrelated(0.4, 0.5, 1_000).by_chance == MOST_BY_CHANCE
    # A few chunks say little about the spread.
    assert Unrelated(0.4, 0.0, 1).by_chance == pytest.approx(
        Unrelated(0.4, TYPICAL_SPREAD, 1).by_chance, abs=0.01
    )
    assert Unrelated(0.9, 0.03, 1).excess(0.9) is None


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("When did Maria go to the beach?", ["Maria"]),
        ("Ada Berg phone number", ["Ada", "Berg"]),
        ("Maria's job?", ["Maria"]),
        ("Approve a certificate signing request", []),
        ("What did Jean-Luc do in May?", ["Jean", "Luc"]),
        ("Wo liegt die Rechnung der Werkstatt?", []),  # German nouns are capitalized
        ("How To Install The Package", []),  # and so are headings
        ("where does ada live", []),
    ],
)
def test_names_are_capitalized_within_a_sentence(question: str, names: list[str]) -> None:
    weights = dict.fromkeys(question.replace("-", " ").replace("'s", "").strip("?").split(), 1.0)
    assert list(names_asked(question, weights)) == names


def test_rare_names_count_more() -> None:
    names = {"Ada": 3.0, "Berg": 1.0}
    assert missing_names(names, ["Ada", "beach"]) == 0.25
    assert missing_names(names, []) == 1.0
    assert missing_names({}, []) == 0.0


def test_the_nearest_chunk_is_not_compared_with_itself() -> None:
    # Two chunks, one at 0.9 and one at 0.5: the mean is 0.7, but an unrelated one has 0.5.
    assert standing_out(0.9, 0.7, 2) == pytest.approx(0.8)
    assert standing_out(0.9, 0.5, 10_000) == pytest.approx(0.8, abs=0.001)


def test_single_chunk_has_no_baseline() -> None:
    assert standing_out(0.9, 0.9, 1) is None


def test_rare_words_count_more() -> None:
    weight = word_weights({"vanadium": 1, "battery": 60}, 100)
    assert word_share(["vanadium"], weight) > 0.8
    assert word_share(["battery", "other"], weight) < 0.2
    assert word_share(["vanadium", "battery", "battery"], weight) == pytest.approx(1.0)
    assert word_share(["anything"], {}) == 0.0


def test_a_small_memory_goes_by_what_the_model_is_known_for() -> None:
    assert expected_baseline(0.7, 0, 0.45) == 0.45
    assert expected_baseline(0.7, 25, 0.45) == pytest.approx(0.575)
    assert expected_baseline(0.7, 50, 0.45) == expected_baseline(0.7, 3, None) == 0.7

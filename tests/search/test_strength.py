"""How well an answer is founded."""

import pytest

from quaid.search.candidates import (
    MOST_BY_CHANCE,
    TYPICAL_SPREAD,
    MeaningLane,
    by_chance,
    expected_baseline,
    standing_out,
)
from quaid.search.question import names_asked, sought
from quaid.search.results import (
    STRONG_SCORE,
    WEAK_SCORE,
    Measures,
    attribute_share,
    below_strong,
    missing_names,
    rate,
)
from quaid.search.text import word_share, word_weights


def found(words: float, meaning: float | None, **more: float) -> Measures:
    return Measures(words, words, words, meaning, **more)


@pytest.mark.parametrize(
    ("words", "meaning", "strength"),
    [
        (0.7, 0.15, "strong"),  # its own conversation
        (0.1, -0.2, "none"),  # the questions of another
        (0.5, 0.05, "weak"),
        (0.1, 0.6, "strong"),  # said in other words
        (0.8, None, "strong"),  # no model
        (0.4, None, "weak"),
        (0.1, None, "none"),
    ],
)
def test_words_and_meaning_make_the_strength(words: float, meaning: float | None, strength: str) -> None:
    assert rate(found(words, meaning))[0] == strength


def test_a_result_without_the_names_of_the_question_is_weaker() -> None:
    assert rate(found(0.6, 0.2))[0] == "strong"
    assert rate(found(0.6, 0.2, missing_names=1.0))[0] == "weak"
    assert rate(found(0.6, None, missing_names=1.0))[0] == "none"


def test_a_result_that_has_only_the_subject_is_not_strong() -> None:
    assert rate(found(0.7, 0.4))[0] == "strong"
    assert rate(found(0.7, 0.4, attribute=0.0)) == ("weak", below_strong(1.0))
    assert rate(found(0.7, None, attribute=0.0))[0] == "weak"


def test_a_result_without_what_is_asked_for_is_weaker() -> None:
    phone, reason = sought("What is Ada's phone number?"), sought("Why did Ada leave?")
    assert phone is not None
    assert reason is not None
    assert rate(found(0.9, 0.5, lacking=phone.weight))[0] == "weak"
    assert rate(found(0.9, 0.5, lacking=reason.weight))[0] == "weak"
    assert rate(found(0.5, 0.2, lacking=reason.weight))[1] < rate(found(0.5, 0.2))[1]


def test_words_that_stand_together_and_a_clear_lead_count_more() -> None:
    apart = Measures(words=0.6, near=0.3, bm25=0.4, meaning=0.1)
    assert rate(apart._replace(near=0.6))[1] > rate(apart)[1]
    assert rate(apart._replace(bm25=0.6))[1] > rate(apart)[1]
    assert rate(apart._replace(lead=0.5))[1] > rate(apart)[1]


@pytest.mark.parametrize(
    ("question", "kind", "has", "lacks"),
    [
        ("What is Ada's email address?", "mail address", "ada@harbour.example", "She answers mails at nine."),
        ("phone number of the clinic", "phone number", "Call 0471 556 208.", "It opens at 8."),
        (
            "What is the production password?",
            "password",
            "The password is nine-purple-owls.",
            "The password was rotated in April by the platform team.",
        ),
        (
            "What is the API key of the gateway?",
            "password",
            "The key is 77af-01.",
            "The key is in the vault.",
        ),
        (
            "What is the PIN of the printer?",
            "password",
            "The PIN for scans is 7716.",
            "The PIN is secret to all.",
        ),
        ("What does a lesson cost?", "price", "She takes 30 euros.", "A lesson takes 45 minutes."),
        ("How much did the oven cost?", "price", "It cost 900.", "It cost more than the one of 2018."),
        ("How long does a delivery take?", "duration", "It takes ten days.", "400 parts fit on a pallet."),
        ("How deep is the pond?", "measure", "It is 140 cm deep.", "It is deep and has 9 fish."),
        ("How many beds does the hut have?", "number", "It has eight beds.", "It has beds and a stove."),
        ("At what time does the bus leave?", "time", "It leaves at 7:15.", "It leaves on 3 May at dawn."),
        ("When did they move?", "date", "They moved last week.", "They moved to Oslo with 3 cats."),
        ("Why did they move?", "reason", "They moved because of a job.", "They moved in May."),
        ("Why did they move?", "reason", "They moved to be closer to the sea.", "They moved to the coast."),
        ("Where is the gateway?", "place", "It is on the roof.", "It is broken."),
        ("Where did we stay in Porto?", "place", "At the Casa do Sol.", "We stayed in Porto in May."),
        ("Who planted the tree?", "person", "It was planted by Edda.", "The tree was planted in 2009."),
        ("Who planted the tree?", "person", "My sister planted it.", "The tree was planted in May."),
        ("Which airline did we take?", "name", "We flew with Lusair.", "The flight was at 6:40."),
        ("What is the name of Leni's teacher?", "name", "She is Mrs. Pemberton.", "Leni likes her teacher."),
        ("What colour is the door?", "colour", "The door is dark green.", "The door was painted."),
    ],
)
def test_what_a_question_asks_for_has_a_typical_form(question: str, kind: str, has: str, lacks: str) -> None:
    asked = sought(question)
    assert asked is not None
    assert asked.kind == kind
    assert asked.is_in(has)
    assert not asked.is_in(lacks)


def test_most_questions_ask_for_nothing_with_a_typical_form() -> None:
    assert sought("What did Ada say about the mails?") is None
    assert sought("How many hikes has Ada been on?") is None
    assert sought("How do I change my password?") is None
    for question, kind in (
        ("Where do login keys go?", "place"),
        ("When was the website redesigned?", "date"),
        ("Who answered Ann's email?", "person"),
        ("Do you know the password of the router?", "password"),
    ):
        assert getattr(sought(question), "kind", "") == kind
    assert sought("Was hat Ada gekauft?") is None


def test_words_besides_the_subject_are_the_attribute() -> None:
    weights = {"Ada": 5.0, "Berg": 5.0, "phone": 3.0, "number": 1.0}
    assert attribute_share(weights, ["Ada", "Berg"], {"Ada", "Berg"}) == 0.0
    assert attribute_share(weights, ["Ada", "phone"], {"Ada", "Berg"}) == 0.75
    assert attribute_share({"Ada": 5.0, "tell": 2.0}, ["Ada"], {"Ada"}) == 1.0


@pytest.mark.parametrize("meaning", [None, -0.3, 0.0, 0.2, 0.8])
def test_the_score_has_fixed_limits(meaning: float | None) -> None:
    scores = []
    for words in range(101):
        strength, score = rate(found(words / 100, meaning))
        assert (score >= STRONG_SCORE) == (strength == "strong")
        assert (score >= WEAK_SCORE) == (strength != "none")
        assert 0 <= score <= 1
        scores.append(score)
    assert scores == sorted(scores)
    assert below_strong(1.0) < STRONG_SCORE


def excess(cosine: float, baseline: float, chunks: int) -> float | None:
    lane = MeaningLane("m", None, None, baseline, 0.03, chunks, chunks, chunks, 1.0, None, baseline)
    return lane.excess(cosine)


def test_the_nearest_of_many_unrelated_chunks_is_nearer() -> None:
    chances = [by_chance(0.03, chunks) for chunks in (1_000, 10_000, 100_000)]
    assert chances == sorted(chances)
    assert chances[2] - chances[0] == pytest.approx(0.065, abs=0.005)
    few, many = (excess(0.7, 0.4, chunks) for chunks in (100, 100_000))
    assert few is not None
    assert many is not None
    assert few > many > 0


def test_a_memory_whose_chunks_differ_more_asks_for_more() -> None:
    assert by_chance(0.04, 1_000) > by_chance(0.02, 1_000)
    assert by_chance(0.5, 1_000) == MOST_BY_CHANCE
    # A few chunks say little about the spread.
    assert by_chance(0.0, 1) == pytest.approx(by_chance(TYPICAL_SPREAD, 1), abs=0.01)
    assert excess(0.9, 0.9, 1) is None


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

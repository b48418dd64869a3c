"""One order out of what several lanes found."""

import pytest
from hypothesis import given, strategies as st

from quaid.search.candidates import (
    FUSION_STRATEGIES,
    MEANING_SHARE,
    Evidence,
    Turn,
    add_turns,
    add_whole_pages,
    fuse,
    meaning_share,
    rrf,
    set_union,
    turn_features,
)


def evidence(
    places: dict[int, tuple[int, int]],
    words: dict[int, float] | None = None,
    cosines: dict[int, float] | None = None,
    page_words: dict[int, float] | None = None,
    favours: dict[int, float] | None = None,
    baseline: float = 0.5,
) -> Evidence:
    lanes = [sorted(scores, key=lambda key: -scores[key]) for scores in (cosines or {}, words or {})]
    return Evidence(places, words or {}, page_words or {}, cosines or {}, baseline, lanes, favours or {})


THREE_PAGES = {1: (10, 0), 2: (20, 0), 3: (30, 0)}


def order(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda key: -scores[key])


def test_page_ranked_by_both_lanes_beats_page_ranked_by_one() -> None:
    ranking = fuse(evidence(THREE_PAGES, words={1: 10.0, 2: 8.0}, cosines={1: 0.5, 2: 0.75, 3: 0.8}))
    assert order(ranking.pages)[0] == 20


def test_a_chunk_gains_from_its_neighbours() -> None:
    places = {1: (10, 0), 2: (10, 1), 3: (20, 0), 4: (20, 9)}
    ranking = fuse(evidence(places, words={1: 5.0, 2: 5.0, 3: 5.0, 4: 5.0}))
    assert ranking.chunks[1] > ranking.chunks[3]


def test_neighbours_of_another_page_give_nothing() -> None:
    ranking = fuse(evidence({1: (10, 0), 2: (20, 1)}, words={1: 5.0, 2: 5.0}))
    assert ranking.chunks[1] == ranking.chunks[2]


def test_the_words_of_the_whole_page_count() -> None:
    ranking = fuse(evidence(THREE_PAGES, words={1: 5.0, 2: 5.0}, page_words={10: 3.0, 20: 9.0}))
    assert order(ranking.pages)[:2] == [20, 10]


def test_a_chunk_without_a_vector_is_judged_by_its_words_alone() -> None:
    words, page_words = {1: 9.0, 2: 10.0}, {10: 9.0, 20: 10.0}
    ranking = fuse(evidence(THREE_PAGES, words, {1: 0.8, 3: 0.7}, page_words))
    assert ranking.chunks[2] > ranking.chunks[3]


def test_meaning_alone_still_ranks() -> None:
    ranking = fuse(evidence(THREE_PAGES, cosines={1: 0.6, 2: 0.9, 3: 0.7}))
    assert order(ranking.pages) == [20, 30, 10]


def test_words_decide_if_the_model_does_not_know_the_language() -> None:
    words, cosines = {1: 10.0, 2: 1.0}, {1: 0.55, 2: 0.8, 3: 0.6}
    both = evidence(THREE_PAGES, words, cosines, {10: 10.0, 20: 1.0})
    assert order(fuse(both).pages)[0] == 20
    assert order(fuse(both._replace(meaning_share=meaning_share(0.0))).pages)[0] == 10


def test_few_words_of_an_unfamiliar_question_are_still_trusted() -> None:
    words, cosines = {1: 10.0}, {1: 0.5, 2: 0.8, 3: 0.6}
    both = evidence(THREE_PAGES, words, cosines, {10: 10.0})._replace(cover=0.1)
    assert order(fuse(both).pages)[0] == 20
    assert order(fuse(both._replace(meaning_share=meaning_share(0.0))).pages)[0] == 10


def test_meaning_counts_more_the_more_of_the_question_is_known() -> None:
    shares = [meaning_share(known / 10) for known in range(11)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[5] == shares[10] == MEANING_SHARE


def test_meaning_counts_less_while_few_chunks_have_a_vector() -> None:
    assert meaning_share(1.0, 0.5) == MEANING_SHARE / 2
    without_2 = evidence(THREE_PAGES, {1: 5.0, 2: 4.0}, {1: 0.5, 3: 0.9}, {10: 5.0, 20: 4.0})
    assert order(fuse(without_2).pages)[0] == 20
    few = without_2._replace(meaning_share=meaning_share(1.0, 0.05))
    assert order(fuse(few).pages)[0] == 10


def test_a_favour_moves_a_chunk_forward() -> None:
    ranking = fuse(evidence(THREE_PAGES, words={1: 5.0, 2: 4.9}, favours={2: 0.3}))
    assert order(ranking.pages)[0] == 20


def test_each_page_is_spoken_for_by_its_best_chunk() -> None:
    ranking = fuse(evidence({1: (10, 0), 2: (10, 7)}, words={1: 1.0, 2: 5.0}))
    assert ranking.best == {10: 2}


def test_pages_are_compared_as_wholes_too() -> None:
    lanes = evidence(THREE_PAGES, {1: 5.0, 2: 5.0}, {1: 0.8, 2: 0.8, 3: 0.6}, {10: 5.0, 20: 5.0})
    ranking = add_whole_pages(lanes, fuse(lanes), {10: 0.6, 20: 0.9})
    assert order(ranking.pages)[0] == 20
    assert ranking.chunks == fuse(lanes).chunks
    assert add_whole_pages(lanes, fuse(lanes), {}) == fuse(lanes)


def test_set_union_keeps_the_order_of_meaning_and_appends_the_words() -> None:
    given_evidence = evidence(THREE_PAGES, words={3: 9.0, 1: 1.0}, cosines={1: 0.6, 2: 0.9})
    assert order(fuse(given_evidence, "set-union").pages) == [20, 10, 30]
    assert order(set_union([[2, 1], [3, 1]])) == [2, 1, 3]


def test_rrf_adds_up_the_places() -> None:
    assert rrf([["a", "b"], ["b"]]) == {"a": 1 / 61, "b": pytest.approx(1 / 62 + 1 / 61)}
    given_evidence = evidence(THREE_PAGES, words={3: 9.0, 1: 1.0}, cosines={1: 0.6, 2: 0.9})
    assert order(fuse(given_evidence, "rrf").pages)[0] == 10


@pytest.mark.parametrize("strategy", FUSION_STRATEGIES)
def test_no_evidence_gives_no_result(strategy: str) -> None:
    assert fuse(evidence({}), strategy).pages == {}


chunk_ids = st.integers(1, 12)
amounts = st.dictionaries(chunk_ids, st.floats(0.01, 50), max_size=12)


@given(amounts, st.dictionaries(chunk_ids, st.floats(-1, 1), max_size=12), st.sampled_from(FUSION_STRATEGIES))
def test_scores_lie_between_0_and_1_and_every_page_has_a_chunk(
    words: dict[int, float], cosines: dict[int, float], strategy: str
) -> None:
    places = {chunk: (chunk // 4, chunk) for chunk in range(1, 13)}
    page_words = {page: 1.0 + page for page in range(3)}
    ranking = fuse(evidence(places, words, cosines, page_words), strategy)
    assert all(0 <= score <= 1.0000001 for score in ranking.chunks.values())
    assert set(ranking.best) >= set(ranking.pages)


def test_words_count_less_if_the_best_chunk_has_few_of_them() -> None:
    # By meaning, chunk 3 is right. Chunk 1 has one word of a long question, and so has its page.
    scored = evidence(
        THREE_PAGES, words={1: 2.0, 2: 1.0}, cosines={1: 0.7, 2: 0.5, 3: 0.8}, page_words={10: 2.0}
    )
    assert order(fuse(scored).chunks)[0] == 1
    assert order(fuse(scored._replace(cover=0.1)).chunks)[0] == 3
    assert order(fuse(scored._replace(cover=0.1)).pages)[0] == 30


def test_neighbours_count_less_if_the_best_chunk_has_few_words() -> None:
    places = {1: (10, 0), 2: (10, 1), 3: (10, 2), 4: (20, 0)}
    scored = evidence(places, words={2: 1.0}, cosines={1: 0.7, 2: 0.7, 3: 0.7, 4: 0.8})
    assert order(fuse(scored).chunks)[0] == 2
    assert order(fuse(scored._replace(cover=0.05)).chunks)[0] == 4


def test_without_vectors_words_count_in_full_however_few_they_are() -> None:
    scored = evidence(THREE_PAGES, words={1: 2.0, 2: 1.0}, page_words={10: 2.0, 20: 3.0})
    assert fuse(scored._replace(cover=0.1)) == fuse(scored)


TURNS = {
    1: Turn(40, True, frozenset({"boat", "sold"})),
    2: Turn(200, False, frozenset()),
    3: Turn(200, False, frozenset()),
}
TURN_PLACES = {1: (10, 0), 2: (10, 1), 3: (10, 2)}


def test_the_reply_to_a_turn_that_asks_for_the_same_comes_first() -> None:
    features = turn_features(TURN_PLACES, TURNS, {"boat": 3.0, "sold": 1.0})
    given_ = evidence(TURN_PLACES, words={1: 2.0, 2: 1.8, 3: 1.8}, cosines={1: 0.8, 2: 0.8, 3: 0.8})
    before = fuse(given_)
    after = add_turns(given_, before, features)
    assert before.best == {10: 1} or before.chunks[1] > before.chunks[3]
    assert order(after.chunks)[0] == 2
    assert after.best == {10: 2}
    assert after.pages == before.pages


def test_features_of_a_turn() -> None:
    features = turn_features(TURN_PLACES, TURNS, {"boat": 3.0, "sold": 1.0, "harbour": 4.0})
    assert features[1][:2] == (0.5, 1.0)
    assert features[2][:2] == (0.5, 0.0)  # the words of the turn beside it
    assert features[3][:2] == (0.0, 0.0)
    assert features[1][2] < 0 < features[2][2]
    assert [features[turn][3] for turn in TURNS] == [0.0, 0.5, 0.0]


def test_turns_of_other_pages_are_no_neighbours() -> None:
    apart = {1: (10, 0), 2: (20, 1), 3: (30, 2)}
    features = turn_features(apart, TURNS, {"boat": 1.0})
    assert features[2] == (0.0, 0.0, features[2][2], 0.0)

"""Which texts say the same."""

import random

from quaid.model.plain_text import TextSimilarity

WORDS = [f"word{number}" for number in range(5_000)]


def texts_of(given: dict[int, str]) -> TextSimilarity:
    texts = TextSimilarity()
    for key, text in given.items():
        texts.add(key, text)
    texts.weigh()
    return texts


def pairs(given: dict[int, str], threshold: float = 0.8) -> list[tuple[int, int]]:
    return texts_of(given).pairs(threshold, lambda done, total: None)


def some_text(seed: int, length: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def test_the_same_words_in_another_spelling_are_the_same_text() -> None:
    text = some_text(1)
    pages = texts_of({1: text, 2: text.upper().replace(" ", ",\n"), 3: some_text(2)})
    assert pages.likeness(1, 2) == 1.0
    assert pages.likeness(1, 3) == 0.0
    assert pairs({1: text, 2: text.upper(), 3: some_text(2)}) == [(1, 2)]


def test_a_few_changed_words_leave_a_pair_alike() -> None:
    words = some_text(1, 300).split()
    words[50], words[150] = "other", "words"
    assert pairs({1: some_text(1, 300), 2: " ".join(words), 3: some_text(3, 300)}) == [(1, 2)]


def test_short_text_is_similar_to_no_other() -> None:
    assert texts_of({1: "Too short.", 2: "Too short."}).likeness(1, 2) is None
    assert pairs({1: "Too short.", 2: "Too short."}) == []
    assert pairs({}) == []


def test_texts_without_spaces_between_words_are_compared_too() -> None:
    text = "港の風は冷たく船は朝に出た。人々は魚を待っている。"
    assert pairs({1: text, 2: text + "夜。", 3: "まったく別の話をここに書いておくことにします。"}) == [(1, 2)]


def test_a_form_that_many_texts_share_does_not_make_them_alike() -> None:
    form = some_text(0, 150)
    many = {number: f"{form} {some_text(number, 40)}" for number in range(1, 60)}
    assert pairs(many) == []
    same = many | {100: many[7]}
    assert pairs(same) == [(7, 100)]


def test_a_crowd_of_equal_texts_is_found_without_comparing_every_pair() -> None:
    many = dict.fromkeys(range(300), some_text(1))
    result = pairs(many)
    assert {item for pair in result for item in pair} == set(range(300))
    assert len(result) < 600


def test_pairs_above_the_threshold_are_found_among_thousands() -> None:
    items = {number: some_text(number, 60) for number in range(2_000)}
    wanted = []
    for number in range(100):
        words = items[number].split()
        words[30] = "changed"
        items[10_000 + number] = " ".join(words)
        wanted.append((number, 10_000 + number))
    result = pairs(items)
    assert set(result) == set(wanted)

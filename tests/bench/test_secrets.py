"""The secret scan reaches its figures on both labelled sets."""

import pytest
from bench import secret_texts, secret_texts_held_out
from bench.secrets import FALSE_ALARMS, RECALL, Judged, judge, labelled


@pytest.fixture(scope="module")
def sets() -> dict[str, Judged]:
    return labelled()


@pytest.mark.parametrize("name", ["seen", "held out"])
def test_secrets_are_found_and_clean_documents_pass(sets: dict[str, Judged], name: str) -> None:
    missed = {kind: (sets[name].found[kind], there) for kind, there in sets[name].there.items()}
    assert sets[name].recall >= RECALL, {kind: item for kind, item in missed.items() if item[0] < item[1]}
    assert sets[name].accused / sets[name].documents <= FALSE_ALARMS


def test_the_sets_are_as_large_as_promised(sets: dict[str, Judged]) -> None:
    assert sets["seen"].there.total() >= 540
    assert len(sets["seen"].there) >= 27
    assert sets["seen"].documents >= 1_000
    assert sets["held out"].there.total() >= 400


def test_the_figures_do_not_hang_on_the_seed() -> None:
    other = judge(secret_texts.secrets(seed=77, each=4), secret_texts.clean(seed=78, number=200))
    assert other.recall >= RECALL
    assert other.accused <= 1


def test_the_same_seed_gives_the_same_set() -> None:
    assert secret_texts.secrets() == secret_texts.secrets()
    assert secret_texts_held_out.secrets() == secret_texts_held_out.secrets()


def test_label_is_at_the_place_of_the_secret() -> None:
    for case in secret_texts.secrets(each=2):
        assert 0 <= case.start < case.end <= len(case.text)
        assert "{}" not in case.text

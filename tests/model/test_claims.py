"""Which statements oppose each other, and which say the same: the labelled pairs of bench/data, and more."""

import time

import pytest
from bench.opposing import PRECISION, RECALL, crossed, judge, made_up, pairs, part

from quaid.model.claims import Statement, StatementMatch, corrects_details, find_conflicts, find_similar

OPPOSING = pairs("opposing") + pairs("opposing-fresh")


def node(summary: str, title: str = "A rule", key: str = "old", **more: object) -> Statement:
    return Statement(key, title, summary)._replace(**more)  # type: ignore[arg-type]


def clashes(one: str, other: str) -> bool:
    conflicts = find_conflicts(node(one, key="new"), [node(other)])
    assert bool(conflicts) is bool(find_conflicts(node(other, key="new"), [node(one)]))
    return bool(conflicts)


def test_there_are_enough_pairs_and_more_that_only_look_opposed() -> None:
    wanted = sum(pair.wanted for pair in OPPOSING)
    assert wanted >= 60
    assert len(OPPOSING) - wanted >= 90
    assert len(pairs("alike")) >= 60


def test_most_oppositions_are_found_and_few_are_made_up() -> None:
    for chosen in (OPPOSING, part(pairs("opposing"), held_out=True)):
        score = judge("opposing", chosen)
        assert score.precision >= PRECISION, score.wrong
        assert score.recall >= RECALL, score.missed


def test_most_duplicates_are_found_and_few_are_made_up() -> None:
    score = judge("alike", pairs("alike"))
    assert score.precision >= PRECISION, score.wrong
    assert score.recall >= RECALL, score.missed


def test_among_nodes_of_different_pairs_alarms_are_rare() -> None:
    nodes = 2 * len(pairs("opposing"))
    assert len(crossed(pairs("opposing"))) < 0.002 * nodes * (nodes - 1) / 2


def test_a_finding_names_both_sentences_and_why() -> None:
    old = node("Reviews are short. Never force-push to main.", body="More of it.")
    (result,) = find_conflicts(
        node("Always force-push to main. It saves time.", key="new"), [node("Be brief."), old]
    )
    assert (result.key, result.one, result.other) == (
        "old",
        "Always force-push to main.",
        "Never force-push to main.",
    )
    assert result.why == "one is for it, the other against: force-push main"


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("Sessions expire after 30 minutes.", "Sessions expire after 2 hours.", "30 minutes against 2 hours"),
        ("Use tabs for indentation.", "Use spaces for indentation.", "“tabs” against “spaces”"),
        ("The default branch is main.", "The default branch is devel.", "“main.” against “devel.”"),
        ("Prefer `ag` over `rg`.", "Prefer rg over ag.", "one is for it, the other against"),
    ],
)
def test_the_reason_quotes_what_differs(one: str, other: str, why: str) -> None:
    (result,) = find_conflicts(node(one, key="new"), [node(other)])
    assert result.why.replace(".", "").startswith(why.replace(".", ""))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sessions expire after 60 minutes.", "Sessions expire after 1 hour."),
        ("Responses take at least 10 ms.", "Responses take at most 50 ms."),
        ("The library needs at least Python 3.9.", "The library needs at most Python 3.11."),
        ("Never use tabs for indentation.", "Never use spaces for indentation."),
        ("Do not disable the cache of answers.", "Enable the cache of answers."),
        ("orjson is faster than msgspec.", "msgspec is not faster than orjson."),
        ("Is it true that one should never use tabs?", "Always use tabs."),
        ("", ""),
        ("?", "!"),
    ],
)
def test_compatible_statements_are_not_contradictions(one: str, other: str) -> None:
    assert not clashes(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Responses take at least 100 ms.", "Responses take at most 50 ms."),
        ("Don’t squash commits.", "Always squash commits."),
        ("orjson is faster than msgspec.", "orjson is not faster than msgspec."),
    ],
)
def test_opposed_claims_are_contradictions(one: str, other: str) -> None:
    assert clashes(one, other)


def test_projects_without_a_common_one_do_not_oppose_each_other() -> None:
    one, other = node("Always squash commits.", key="new"), node("Never squash commits.")
    for mine, theirs, result in (
        (("a",), ("b",), False),
        (("a", "b"), ("b",), True),
        (("general",), ("b",), True),
        ((), ("b",), True),
    ):
        assert bool(find_conflicts(one._replace(projects=mine), [other._replace(projects=theirs)])) is result


def test_steps_of_a_procedure_are_rules_only_if_worded_as_rules() -> None:
    one = node("Stop the server of the lab.", key="new", type="procedure")
    assert find_conflicts(one, [node("Do not stop the server of the lab.")]) == []
    assert find_conflicts(
        one._replace(summary="Always stop the server of the lab."),
        [node("Do not stop the server of the lab.")],
    )


def test_a_statement_is_not_compared_with_itself() -> None:
    one = node("Always squash commits.", key="same")
    assert find_conflicts(one, [node("Never squash commits.", key="same")]) == []
    assert find_similar(one, [one]) == []


def test_limit_is_respected_and_the_right_one_is_found_among_many() -> None:
    many = [node("Never squash commits.", key=str(number)) for number in range(20)]
    assert len(find_conflicts(node("Always squash commits.", key="new"), many, most=3)) == 3
    others = [*made_up(2_000), node("Never use tabs.", title="Tabs", key="it")]
    assert [
        conflict.key for conflict in find_conflicts(node("Use tabs.", title="Tabs", key="new"), others)
    ] == ["it"]


def test_the_same_title_is_the_first_of_those_alike() -> None:
    new = node("New Python projects are set up with uv.", title="Use uv for Python projects", key="new")
    same_title = node("It is fast.", title="The use of UV: Python projects", key="title")
    same_words = node("New Python projects are set up with uv, always.", title="Setting up", key="words")
    similar = find_similar(new, [node("Be brief."), same_words, same_title])
    assert similar[0] in (
        StatementMatch("title", "the same title", share=1.0),
        StatementMatch("words", "the summaries say the same", share=1.0),
    )
    assert {item.key for item in similar} == {"title", "words"}
    assert len(find_similar(new, [same_words, same_title], most=1)) == 1


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("The order of formatters", "Formatters: order", True),
        ("How to use tox", "When to use tox", False),
        ("While offline", "One offline", False),
    ],
)
def test_titles_match_without_articles_and_order(one: str, other: str, is_same: bool) -> None:
    new = node("Roast the garlic first.", title=one, key="new")
    similar = find_similar(new, [node("Chains want paraffin.", title=other, key="old")])
    assert [item.why for item in similar] == (["the same title"] if is_same else [])


@pytest.mark.parametrize(
    "text",
    [
        "[[" * 50_000,
        "is is " * 20_000,
        "a" * 100_000,
        "not " * 30_000,
        "prefer x over " * 5_000,
        '"' * 9_999 + " x",
    ],
)
def test_a_strange_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    find_conflicts(node(text, key="new", body=text), [node(text, body=text), node("Never x.")])
    find_similar(node(text, key="new"), [node(text)])
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("She is the owner of the crane.", "The crane's owner: she.", False),
        ("It costs 10 crowns.", "It costs 12 crowns.", True),
        ("Due in March.", "Due in April.", True),
        ("He is in charge.", "He is not in charge.", True),
        ("He can come.", "He can't come.", True),
    ],
)
def test_another_number_date_or_denial_is_a_correction(old: str, new: str, found: bool) -> None:
    assert corrects_details(old, new) is found

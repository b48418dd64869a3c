"""Answers from facts and links: which questions are understood, and which value stands above which."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.search.direct_answer import DirectAnswer, read_question

PEOPLE = {
    "people/ines-calder": "# Ines Calder\n\nInes lives in Galway since March.\n",
    "people/tomas-havel": "# Tomas Havel\n",
    "people/jonas-weir": "# Jonas Weir\n",
    "people/jonas-brandt": "# Jonas Brandt\n",
    "companies/brineloop": "# Brineloop\n",
    "companies/orchard-bank": "# Orchard Bank\n",
}


def owner(brain: Brain, command: str, /, **arguments: Any) -> Any:
    values = {name.rstrip("_"): value for name, value in arguments.items()}
    return dispatch.call(brain, dispatch.find_command(command), values, "owner")


@pytest.fixture
def memory(brain: Brain) -> Brain:
    for slug, text in PEOPLE.items():
        owner(brain, "put", slug=slug, content=text)
    for slug, predicate, value, since in (
        ("people/ines-calder", "lives_in", "Lisbon", "2021-02-01"),
        ("people/ines-calder", "lives_in", "Galway", "2026-03-01"),
        ("people/ines-calder", "works_at", "Brineloop", "2024-03-01"),
        ("people/tomas-havel", "works_at", "Brineloop", "2022-01-10"),
        ("people/tomas-havel", "phone", "+420 601 222 333", "2024-01-01"),
        ("people/jonas-weir", "lives_in", "Galway", "2020-01-01"),
    ):
        owner(brain, "assert", slug=slug, predicate=predicate, object=value, valid_from=since)
    owner(*(brain, "link"), from_="people/jonas-weir", to="companies/orchard-bank", relationship="works_at")
    return brain


def ask(brain: Brain, question: str) -> DirectAnswer | None:
    answer: DirectAnswer | None = owner(brain, "glance", query=question, words_only=True).answer.direct
    return answer


def values(brain: Brain, question: str) -> list[str]:
    answer = ask(brain, question)
    return [fact.value for fact in answer.facts] if answer else []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("where does Ines live", ["Galway"]),
        ("Where is Ines Calder living now?", ["Galway"]),
        ("who works at Brineloop?", ["Ines Calder", "Tomas Havel"]),
        ("what is Tomas' phone", ["+420 601 222 333"]),
        ("What’s Tomas Havel’s phone number?", ["+420 601 222 333"]),
        ("who lives in Galway", ["Ines Calder", "Jonas Weir"]),
        ("who does Jonas Weir work for", ["Orchard Bank"]),
        ("where did Ines live before", ["Lisbon"]),
        ("where did Ines live in 2023", ["Lisbon"]),
    ],
)
def test_questions_are_answered_from_facts_and_links(
    memory: Brain, question: str, expected: list[str]
) -> None:
    assert values(memory, question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "where does Jonas live",  # two people
        "where does Anna live",
        "where does Ines want to live",
        "where does Ines' brother live",
        "who does not work at Brineloop",
        "who works at Brineloop and lives in Galway",
        "why did Ines move to Galway",
        "what is the point of Brineloop",
        "what is Ines' phone",
        "Ines Galway",
    ],
)
def test_other_questions_have_no_direct_answer(memory: Brain, question: str) -> None:
    assert ask(memory, question) is None


def test_an_answer_says_since_when_and_who_says_so(memory: Brain) -> None:
    answer = ask(memory, "where does Ines live")
    assert answer is not None
    fact = answer.facts[0]
    assert answer.says == "Ines Calder lives in Galway"
    assert (fact.since, fact.slug, fact.author) == ("2026-03-01", "people/ines-calder", "owner")
    assert fact.quote == "Ines lives in Galway since March."
    assert [fact.says for fact in answer.before] == ["Ines Calder lived in Lisbon"]
    times = ask(memory, "when did Tomas join Brineloop"), ask(memory, "when did Ines leave Lisbon")
    assert [time.says for time in times if time] == [
        "Tomas Havel works at Brineloop since 2022-01-10",
        "Ines Calder lived in Lisbon until 2026-03-01",
    ]


def test_a_settled_contradiction_answers_with_the_chosen_value(memory: Brain) -> None:
    owner(memory, "put", slug="notes/call", content="# Call\n")
    values_of_call = {"subject": "Ines Calder", "predicate": "lives_in", "valid_from": "2026-03-01"}
    owner(memory, "assert", slug="notes/call", object="Cork", **values_of_call)
    answer = ask(memory, "where does Ines live")
    assert answer is not None
    assert answer.is_disputed
    assert {fact.value for fact in answer.facts} == {"Galway", "Cork"}
    (finding,) = owner(memory, "check").contradictions
    side = "left" if finding.quotes[0].slug == "people/ines-calder" else "right"
    owner(memory, "check", resolve=finding.id, keep=side)
    answer = ask(memory, "where does Ines live")
    assert answer is not None
    assert not answer.is_disputed
    assert [fact.value for fact in answer.facts] == ["Galway"]
    assert "Cork" not in [fact.value for fact in answer.before]  # it never held


def test_an_older_value_without_a_day_is_a_former_one(memory: Brain) -> None:
    owner(memory, "put", slug="notes/old", content="# Old\n")
    clock = memory._clock
    memory._clock = lambda: 1_600_000_000.0
    owner(memory, "assert", slug="notes/old", subject="Tomas Havel", predicate="phone", object="555 1000")
    memory._clock = clock
    answer = ask(memory, "what is Tomas' phone")
    assert answer is not None
    assert not answer.is_disputed
    assert [fact.value for fact in answer.facts] == ["+420 601 222 333"]
    assert [fact.value for fact in answer.before] == ["555 1000"]


def test_queries_have_the_answer_for_agents_in_one_line(memory: Brain) -> None:
    record = owner(memory, "query", query="where does Ines live")
    view = record.agent_view()
    assert view["answer"] == "Ines Calder lives in Galway, since 2026-03-01 (people/ines-calder)"
    assert record.strength == "strong"
    assert owner(memory, "gaps").gaps == ()
    assert owner(memory, "query", query="where does Ines live", type="person").direct is None


def test_long_texts_are_no_questions() -> None:
    assert read_question("where does " + "x" * 300 + " live") is None
    assert read_question("") is None


PROSE = tomllib.loads(Path(__file__).with_name("prose_answers.toml").read_text(encoding="utf-8"))


def read_answers(brain: Brain, name: str) -> dict[str, str]:
    """Return the answers to the questions of one set about its pages, "" for none."""
    brain._clock = lambda: 1_793_530_000.0  # 2026-11-01
    for slug, text in PROSE[name]["pages"].items():
        owner(brain, "put", slug=slug, content=text)
    return {question: "".join(values(brain, question)) for question in PROSE[name]["questions"]}


def test_sentences_of_pages_answer_questions(brain: Brain) -> None:
    assert read_answers(brain, "dev") == PROSE["dev"]["questions"]


def test_a_pronoun_after_a_sentence_about_somebody_else_gives_no_answer(brain: Brain) -> None:
    unclear = {"where does Mireille live": ""}  # after a sentence about her assistant
    assert read_answers(brain, "held") == PROSE["held"]["questions"] | unclear


def test_an_answer_from_a_sentence_quotes_it_and_is_marked(brain: Brain) -> None:
    text = "# Maren Voss\n\nMet at the fair. She moved from Leiden to Tromsø in February 2026.\n"
    owner(brain, "put", slug="people/maren-voss", content=text)
    answer = ask(brain, "where does Maren live")
    assert answer is not None
    assert answer.is_read
    assert answer.line == "Maren Voss lives in Tromsø (read from people/maren-voss)"
    assert answer.facts[0].quote == "She moved from Leiden to Tromsø in February 2026."
    owner(brain, "assert", slug="people/maren-voss", predicate="lives_in", object="Bodø")
    answer = ask(brain, "where does Maren live")
    assert answer is not None
    assert (answer.says, answer.is_read) == ("Maren Voss lives in Bodø", False)


def test_a_sentence_does_not_revive_a_value_whose_fact_has_ended(brain: Brain) -> None:
    owner(brain, "put", slug="people/maren-voss", content="# Maren Voss\n\nMaren lives in Rome.\n")
    period = {"valid_from": "2019-01-01", "valid_until": "2020-01-01"}
    owner(brain, "assert", slug="people/maren-voss", predicate="lives_in", object="Rome", **period)
    assert values(brain, "where does Maren live") == []


NOT_STATED = (
    "Anna Berg lives in Rome.",
    "Maren’s boss lives in Rome. She moved to Paris in 2020.",
    "Maren visited Anna, who moved to Paris and lives in Lyon.",
    "Maren is not based in Oslo.",
    "She lived in Rome until 2020.",
    "She will move to Oslo in May 2027. She moved to Bergen in March 2027.",
    "Her sister Ada moved to Rome and lives in Trastevere.",
    "According to Tom she lives in Rome.",
    "Does Maren live in Rome? Anna thinks she lives in Oslo.",
    "> Lives in Rome.\n\n- [ ] Lives in Bari?\n\n`Lives in Pisa.`",
    "## Her brother\n\nLives in Rome.",
    "Maren lives in Rome. Maren lives in Oslo.",
    "Maren moved to Orrin Labs as a buyer. Settled in May.",
    "Tom called. He lives in Rome, and his dog lives in Ostia.",
    "Lives in Rome and in Oslo, depending on the season.",
)


@pytest.mark.parametrize("text", NOT_STATED)
def test_sentences_about_others_the_past_and_wishes_are_no_answers(brain: Brain, text: str) -> None:
    owner(brain, "put", slug="people/maren-voss", content=f"# Maren Voss\n\n{text}\n")
    assert values(brain, "where does Maren live") == []


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "what is Maren's phone number",
            "Call on 2026-05-01. Call at 10.30-11.30. Phone 0171 5558823 (Tom).",
        ),
        ("what is Maren's phone number", "Maren’s phone is broken, call Tom on 0171 5558823."),
        ("what is Maren's phone number", "Mobile 0171 5558823, phone 030 1234567. Phone 030 1234567."),
        ("what is Maren's email", "Her assistant Sam can be reached at sam@quillon.example."),
        ("who does Maren work for", "Maren joined Tom for lunch. She works for free at the weekend."),
        ("who does Maren work for", "Maren has been with Oskar since 2019. She left the party early."),
        ("what is Maren's job", "Maren is a good cook. Maren’s husband is a baker."),
        ("when is Maren's birthday", "Her mother’s birthday is 9 June."),
        ("what does Maren think of Rome", "Maren lives in Rome."),
        ("why does Maren live in Rome", "Maren lives in Rome."),
        ("does Maren live in Rome", "Maren lives in Rome."),
        ("where does Marten live", "Maren lives in Rome."),
    ],
)
def test_other_values_and_questions_are_not_answered_from_pages(
    brain: Brain, question: str, text: str
) -> None:
    owner(brain, "put", slug="people/maren-voss", content=f"# Maren Voss\n\n{text}\n")
    assert values(brain, question) == []

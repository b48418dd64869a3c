"""Facts and contradictions, called through the gate as every surface calls them."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import InvalidArgument, InvalidDate, NotFound, PageNotFound, VersionConflict
from quaid.operations import dispatch
from quaid.operations.registry import Scope

NORA = """---
aliases: [N. Vale]
---
# Nora Vale

> Hydrologist.

Works at Hexa since 2021.

---

- **2026-01-10** | call — Talked about the river.
"""


def call(brain: Brain, tool: str, scope: Scope = "owner", **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, scope)


@pytest.fixture
def nora(brain: Brain) -> Brain:
    call(brain, "put", slug="people/nora-vale", content=NORA)
    call(brain, "put", slug="companies/hexa", content="# Hexa\n\nMeasures rain.")
    call(brain, "put", slug="meetings/kickoff", content="# Kickoff\n\nNora lives in Bergen, she says.")
    return brain


def link(brain: Brain, start: str, end: str, **more: Any) -> Any:
    return dispatch.call(
        brain, dispatch.find_tool("memory_link"), {"from": start, "to": end, **more}, "owner"
    )


# Facts


def test_fact_without_evidence_quotes_the_text_of_its_time(nora: Brain) -> None:
    call(
        nora, "assert", slug="meetings/kickoff", subject="Nora Vale", predicate="lives_in", object="Bergen",
        source_ref="meeting/7",
    )  # fmt: skip
    (fact,) = call(nora, "facts", subject="Nora Vale").facts
    assert (fact.quote, fact.part, fact.line) == ("Nora lives in Bergen, she says.", "truth", 3)
    version = call(nora, "get", slug="meetings/kickoff").version
    content = "# Kickoff\n\nNora left Bergen for good."
    call(nora, "put", slug="meetings/kickoff", content=content, expected_version=version)
    (fact,) = call(nora, "facts", subject="Nora Vale").facts
    assert (fact.quote, fact.source) == ("Nora lives in Bergen, she says.", "meeting/7")
    assert (fact.part, fact.line, fact.version) == ("truth", None, 2)
    nora.db.connection.execute("DELETE FROM raw_imports")  # as time does
    (fact,) = call(nora, "facts", subject="Nora Vale").facts
    assert (fact.quote, fact.part, fact.line, fact.version) == ("", "", None, None)


def test_a_text_that_changes_within_the_second_of_a_fact_is_not_quoted_for_it(
    nora: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nora, "_clock", lambda: 1_780_000_000.0)
    call(nora, "assert", slug="meetings/kickoff", subject="Nora Vale", predicate="lives_in", object="Bergen")
    version = call(nora, "get", slug="meetings/kickoff").version
    content = "# Kickoff\n\nNora left Bergen for good."
    call(nora, "put", slug="meetings/kickoff", content=content, expected_version=version)
    (fact,) = call(nora, "facts", subject="Nora Vale").facts
    assert fact.quote == ""


def test_a_contradiction_does_not_quote_a_later_text_for_a_fact(nora: Brain) -> None:
    for page, place in (("meetings/kickoff", "Bergen"), ("people/nora-vale", "Oslo")):
        call(nora, "assert", slug=page, subject="Nora Vale", predicate="lives_in", object=place)
    version = call(nora, "get", slug="meetings/kickoff").version
    content = "# Kickoff\n\nNora never lived in Bergen."
    call(nora, "put", slug="meetings/kickoff", content=content, expected_version=version)
    (result,) = call(nora, "check", type="cross_page").contradictions
    assert [(quote.part, quote.quote) for quote in result.quotes] == [
        ("facts", "Nora Vale lives_in Bergen"),
        ("facts", "Nora Vale lives_in Oslo"),
    ]


def test_facts_come_from_assertions_links_and_the_timeline_together(nora: Brain) -> None:
    call(
        nora,
        "assert",
        slug="people/nora-vale",
        predicate="role",
        object="Head of Rain",
        valid_from="2022-01-01",
    )
    link(nora, "people/nora-vale", "companies/hexa", relationship="works_at", valid_from="2021-01-01")
    result = call(nora, "facts", subject="people/nora-vale")
    assert [(fact.kind, fact.predicate, fact.object, fact.since) for fact in result.facts] == [
        ("fact", "role", "Head of Rain", "2022-01-01"),
        ("link", "works_at", "companies/hexa", "2021-01-01"),
    ]
    assert [(entry.date, entry.source, entry.slug) for entry in result.entries] == [
        ("2026-01-10", "call", "people/nora-vale")
    ]


@pytest.mark.parametrize(
    "name", ["people/nora-vale", "Nora Vale", "n. vale", "NORA-VALE", "[[people/nora-vale|N]]"]
)
def test_every_name_of_a_page_is_the_same_subject(nora: Brain, name: str) -> None:
    call(nora, "assert", slug="meetings/kickoff", subject="N. Vale", predicate="lives_in", object="Bergen")
    result = call(nora, "facts", subject=name)
    assert (result.slug, [fact.object for fact in result.facts]) == ("people/nora-vale", ["Bergen"])


def test_a_fact_has_its_source_and_line(nora: Brain) -> None:
    call(
        nora,
        "assert",
        slug="meetings/kickoff",
        subject="Nora Vale",
        predicate="lives_in",
        object="Bergen",
        source_ref="meeting/7",
        evidence_text="Nora lives in Bergen",
        confidence=0.8,
        asserted_by="manual",
    )
    (fact,) = call(nora, "facts", subject="Nora Vale").facts
    assert (fact.by, fact.source, fact.slug, fact.part, fact.line) == (
        *("manual", "meeting/7", "meetings/kickoff", "truth", 3),
    )
    assert fact.confidence == 0.8


def test_a_fact_is_stated_by_whoever_calls(nora: Brain) -> None:
    for agent, town in (("", "Ghent"), ("claude", "Lyon")):
        nora.agent = agent
        call(nora, "assert", slug="people/nora-vale", predicate="likes", object=town)
    nora.agent = ""
    call(nora, "assert", slug="people/nora-vale", predicate="likes", object="Rome", asserted_by="import")
    call(
        nora,
        "put",
        slug="people/nora-vale",
        append="x",
        assertions=[{"predicate": "likes", "object": "Bari"}],
    )
    by = {fact.object: fact.by for fact in call(nora, "facts", subject="Nora Vale").facts}
    assert by == {"Ghent": "manual", "Lyon": "agent", "Rome": "import", "Bari": "manual"}


def test_facts_as_of_a_day_are_those_that_held_then(nora: Brain) -> None:
    for town, since in (("Ghent", "2015-01-01"), ("Lyon", "2025-05-01")):
        call(nora, "assert", slug="people/nora-vale", predicate="lives_in", object=town, valid_from=since)

    def towns(**more: Any) -> list[str]:
        return [fact.object for fact in call(nora, "facts", subject="Nora Vale", **more).facts]

    assert towns() == ["Lyon"]
    assert towns(as_of="2025-05-01") == ["Lyon"]
    assert towns(as_of="2025-04-30") == ["Ghent"]
    assert towns(as_of="2014-12-31") == []
    old, new = call(nora, "facts", subject="Nora Vale", history=True).facts
    assert (old.superseded_by, new.supersedes) == (new.id, old.id)
    assert call(nora, "facts", subject="Nora Vale", as_of="2025-05-01").entries == ()


def test_facts_about_a_company_include_those_with_it_as_object(nora: Brain) -> None:
    call(nora, "assert", slug="people/nora-vale", predicate="is_ceo_of", object="Hexa")
    assert [fact.subject for fact in call(nora, "facts", subject="Hexa").facts] == ["Nora Vale"]


def test_mentions_are_listed_only_without_other_results(nora: Brain) -> None:
    call(nora, "put", slug="notes/rain", content="# Rain\n\nSee [[companies/hexa]].")
    assert [fact.predicate for fact in call(nora, "facts", subject="Hexa").facts] == ["mentions"]
    link(nora, "people/nora-vale", "companies/hexa", relationship="works_at")
    assert [fact.predicate for fact in call(nora, "facts", subject="Hexa").facts] == ["works_at"]


def test_a_subject_without_a_page_has_facts_too(nora: Brain) -> None:
    call(nora, "assert", slug="meetings/kickoff", subject="Project Lynx", predicate="status", object="active")
    result = call(nora, "facts", subject="project-lynx")
    assert (result.slug, result.subject, len(result.facts)) == (None, "Project Lynx", 1)


def test_an_unknown_subject_is_answered_with_names_like_it(nora: Brain) -> None:
    with pytest.raises(NotFound) as caught:
        call(nora, "facts", subject="Nora Vael")
    assert "nora vale" in str(caught.value)
    with pytest.raises(NotFound):
        call(nora, "facts", subject="???")
    with pytest.raises(InvalidDate):
        call(nora, "facts", subject="Nora Vale", as_of="yesterday")


def test_a_name_of_two_pages_is_ambiguous(nora: Brain) -> None:
    call(nora, "put", slug="friends/nora-vale", content="# Nora Vale")
    with pytest.raises(InvalidArgument) as caught:
        call(nora, "facts", subject="Nora Vale")
    assert "friends/nora-vale, people/nora-vale" in str(caught.value)


def test_an_assertion_raises_the_version_and_needs_the_current_one(nora: Brain) -> None:
    made = call(
        nora, "assert", "write", slug="people/nora-vale", predicate="likes", object="rain", expected_version=1
    )
    assert (made.version, made.added) == (2, True)
    again = call(
        nora, "assert", "write", slug="people/nora-vale", predicate="likes", object="Rain", expected_version=2
    )
    assert (again.version, again.changed) == (2, False)
    for value in ("snow", "rain"):
        with pytest.raises(VersionConflict):
            call(
                nora,
                "assert",
                "write",
                slug="people/nora-vale",
                predicate="likes",
                object=value,
                expected_version=1,
            )
    added = call(nora, "assert", "write", slug="people/nora-vale", predicate="likes", object="snow")
    assert (added.version, added.added) == (3, True)
    with pytest.raises(PageNotFound):
        call(nora, "assert", slug="people/nobody", predicate="likes", object="snow")


def test_a_page_and_its_facts_are_written_in_one_transaction(nora: Brain) -> None:
    fact = {"predicate": "lives_in", "object": "Oslo", "valid_from": "2020-01-01"}
    made = call(nora, "put", "write", slug="people/pia", content="# Pia", assertions=[fact])
    assert (made.version, [assertion.added for assertion in made.assertions]) == (1, [True])
    with pytest.raises(InvalidArgument) as caught:
        call(nora, "put", slug="people/ola", content="# Ola", assertions=[fact, {"predicate": "x"}])
    assert "assertions[2].object" in str(caught.value)
    with pytest.raises(PageNotFound):
        call(nora, "get", slug="people/ola")
    again = call(nora, "put", slug="people/pia", content="# Pia", assertions=[fact])
    assert (again.changed, again.version) == (False, 1)


def test_facts_alone_may_be_put_on_a_page_that_exists(nora: Brain) -> None:
    made = call(nora, "put", slug="companies/hexa", assertions=[{"predicate": "stage", "object": "seed"}])
    assert (made.version, made.changed) == (2, True)


# Contradictions


def conflict(brain: Brain) -> Any:
    call(brain, "assert", slug="people/nora-vale", predicate="lives_in", object="Oslo")
    call(
        brain,
        "assert",
        slug="meetings/kickoff",
        subject="Nora Vale",
        predicate="lives_in",
        object="Bergen",
        evidence_text="Nora lives in Bergen",
        source_ref="meeting/7",
    )
    (result,) = call(brain, "check").contradictions
    return result


def test_two_conflicting_sources_are_a_contradiction_with_both_quotes(nora: Brain) -> None:
    contradiction = conflict(nora)
    assert (contradiction.type, contradiction.slug, contradiction.other_slug) == (
        "cross_page",
        "people/nora-vale",
        "meetings/kickoff",
    )
    first, second = contradiction.quotes
    assert (first.slug, first.part, first.line) == ("people/nora-vale", "facts", None)
    assert first.source == "fact 1"
    assert (second.slug, second.part, second.line) == ("meetings/kickoff", "truth", 3)
    assert (second.quote, second.source) == ("Nora lives in Bergen, she says.", "fact 2, meeting/7")


def test_a_fact_of_which_the_page_says_nothing_is_quoted_in_its_own_words(nora: Brain) -> None:
    cards = [
        {"predicate": "email", "object": address, "source_ref": f"card {address}"}
        for address in ("a@x.org", "b@x.org")
    ]
    call(nora, "put", slug="people/nora-vale", assertions=cards)
    (found,) = call(nora, "check").contradictions
    assert [(each.part, each.line, each.quote, each.source) for each in found.quotes] == [
        ("facts", None, "Nora Vale email a@x.org", "fact 1, card a@x.org"),
        ("facts", None, "Nora Vale email b@x.org", "fact 2, card b@x.org"),
    ]


def test_a_fact_is_not_quoted_from_a_line_that_says_it_is_over(nora: Brain) -> None:
    call(nora, "put", slug="companies/brex", content="# Brex\n")
    call(nora, "put", slug="people/pedro", content="# Pedro\n\nPedro left Brex in 2025.\n")
    call(nora, "assert", slug="people/pedro", predicate="is_ceo_of", object="Brex", expected_version=1)
    (result,) = call(nora, "check", slug="people/pedro").contradictions
    assert [(quote.part, quote.quote) for quote in result.quotes] == [
        ("truth", "Pedro left Brex in 2025."),
        ("facts", "Pedro is_ceo_of Brex"),
    ]


def test_a_fact_is_quoted_by_whole_words_and_by_each_of_its_witnesses(nora: Brain) -> None:
    call(nora, "put", slug="projects/lynx", content="# Lynx\n\nWas inactive.\n\nAnn says it runs.")
    for source, words in (("mail/1", "it is on"), ("mail/2", "Ann says it runs")):
        call(
            nora,
            "assert",
            slug="projects/lynx",
            predicate="status",
            object="active",
            source_ref=source,
            evidence_text=words,
        )
    (fact,) = call(nora, "facts", subject="projects/lynx").facts
    assert (fact.source, fact.part, fact.line) == ("mail/1; mail/2", "truth", 5)
    call(nora, "assert", slug="projects/lynx", predicate="stage", object="active")
    assert [fact.line for fact in call(nora, "facts", subject="projects/lynx").facts] == [None, 5]


@pytest.mark.parametrize(
    ("predicate", "one", "other", "number"),
    [
        ("valuation", "$1,000,000", "$1M", 0),
        ("price", "10 EUR", "€10", 0),
        ("phone", "+47 123 45 678", "+4712345678", 0),
        ("birthday", "4 July", "July 4", 0),
        ("valuation", "$1,000,000", "$1", 1),
    ],
)
def test_same_value_in_another_form_is_not_a_contradiction(
    nora: Brain, predicate: str, one: str, other: str, number: int
) -> None:
    for slug, value in (("people/nora-vale", one), ("meetings/kickoff", other)):
        call(nora, "assert", slug=slug, subject="Nora Vale", predicate=predicate, object=value)
    assert call(nora, "check").total == number


def test_fact_that_overlaps_its_successor_is_a_contradiction(nora: Brain) -> None:
    for town, since, until in (
        ("Ghent", "2015-01-01", None),
        ("Lyon", "2025-05-01", None),
        ("Ghent", "2015-01-01", "2026-01-01"),
    ):
        call(
            nora,
            "assert",
            slug="people/nora-vale",
            predicate="lives_in",
            object=town,
            valid_from=since,
            valid_until=until,
        )
    assert [contradiction.type for contradiction in call(nora, "check").contradictions] == ["cross_page"]


def test_two_ingested_sources_that_conflict_are_a_contradiction(nora: Brain) -> None:
    for number, town in enumerate(("Oslo", "Bergen")):
        fact = {"subject": "Nora Vale", "predicate": "lives_in", "object": town}
        call(
            nora,
            "ingest",
            content=f"Nora lives in {town}.",
            source_type="conversation",
            source_ref=f"mail/{number}",
            pages=[{"slug": f"sources/mail-{number}", "content": f"# Mail {number}", "assertions": [fact]}],
        )
    assert [contradiction.type for contradiction in call(nora, "check").contradictions] == ["cross_page"]


def test_a_finding_is_kept_once_and_shows_that_something_is_open(nora: Brain) -> None:
    first = conflict(nora)
    again = call(nora, "check")
    assert ([contradiction.id for contradiction in again.contradictions], again.exit_status) == (
        [first.id],
        1,
    )
    assert call(nora, "stats").contradictions == 1


def test_a_settled_finding_stays_settled(nora: Brain) -> None:
    contradiction = conflict(nora)
    settled = call(nora, "check", resolve=contradiction.id, note="Two homes.")
    assert (settled.resolved.resolution, settled.exit_status) == ("Two homes.", 0)
    assert call(nora, "check").contradictions == ()
    assert call(nora, "check", slug="people/nora-vale").exit_status == 0
    again = call(nora, "check", resolve=contradiction.id)
    assert (again.resolved.resolution, again.settled_before) == ("Two homes.", settled.resolved.resolved_at)
    assert settled.settled_before is None
    assert call(nora, "check", resolve=contradiction.id, note="Moved.").resolved.resolution == "Moved."
    with pytest.raises(NotFound):
        call(nora, "check", resolve=99)


def test_a_finding_goes_when_its_cause_is_gone(nora: Brain) -> None:
    conflict(nora)
    call(
        nora, "assert", slug="people/nora-vale", predicate="lives_in", object="Oslo", valid_until="2026-01-01"
    )
    assert call(nora, "stats").contradictions == 0  # the write checks its page
    assert call(nora, "check", slug="meetings/kickoff").total == 0
    assert call(nora, "stats").contradictions == 0


@pytest.mark.parametrize("slug", ["people/nora-vale", "meetings/kickoff"])
def test_a_page_alone_shows_what_the_whole_check_shows_of_it(nora: Brain, slug: str) -> None:
    link(nora, "people/nora-vale", "companies/hexa", relationship="works_at", valid_from="2020-01-01")
    call(nora, "put", slug="meetings/kickoff", content="# Kickoff\n\nNora Vale left Hexa in 2025.")
    conflict_free = call(nora, "check", slug="companies/hexa")
    alone = call(nora, "check", slug=slug)
    whole = call(nora, "check")
    assert alone.contradictions == whole.contradictions
    assert [contradiction.type for contradiction in whole.contradictions] == ["temporal"]
    assert conflict_free.total <= 1


def test_text_and_open_link_are_quoted_with_their_lines(nora: Brain) -> None:
    made = link(nora, "people/nora-vale", "companies/hexa", relationship="works_at", valid_from="2020-01-01")
    call(nora, "put", slug="people/nora-vale", content="# Nora Vale\n\nBakes.\n\nShe left Hexa in 2025.")
    (result,) = call(nora, "check", type="temporal").contradictions
    text, tie = result.quotes
    assert (text.part, text.line, text.quote) == ("truth", 5, "She left Hexa in 2025.")
    assert (tie.source, tie.quote) == (f"link {made.link.id}", "works_at companies/hexa since 2020-01-01")
    assert call(nora, "check", type="stale").total == 0
    assert call(nora, "check").total == 1  # another type was looked at, nothing was dropped


def test_settling_a_stale_page_lasts_until_there_is_newer_evidence(nora: Brain) -> None:
    day = 86_400
    clock = nora._clock
    nora._clock = lambda: clock() + 40 * day
    call(nora, "timeline_add", slug="people/nora-vale", date="2026-06-01", summary="Moved house")
    (result,) = call(nora, "check").contradictions
    assert result.type == "stale"
    call(nora, "check", resolve=result.id)
    assert call(nora, "check").total == 0
    nora._clock = lambda: clock() + 90 * day
    call(nora, "timeline_add", slug="people/nora-vale", date="2026-07-20", summary="Moved again")
    assert [contradiction.type for contradiction in call(nora, "check").contradictions] == ["stale"]


def test_invalid_check_arguments_are_refused(nora: Brain) -> None:
    with pytest.raises(InvalidArgument):
        call(nora, "check", slug="people/nora-vale", all=True)
    with pytest.raises(InvalidArgument):
        call(nora, "check", note="Fine.")
    with pytest.raises(InvalidArgument):
        call(nora, "check", type="wild")
    with pytest.raises(PageNotFound):
        call(nora, "check", slug="people/nobody")


def test_a_person_can_say_which_predicates_have_one_value(nora: Brain) -> None:
    for slug, colour in (("people/nora-vale", "red"), ("meetings/kickoff", "blue")):
        call(nora, "assert", slug=slug, subject="Nora Vale", predicate="favourite_colour", object=colour)
    assert call(nora, "check").total == 0
    setting = dispatch.find_command("config set")
    dispatch.call(nora, setting, {"key": "single_valued_predicates", "value": "favourite colour"}, "owner")
    assert call(nora, "check").total == 1
    dispatch.call(nora, setting, {"key": "single_valued_predicates", "value": ""}, "owner")
    assert call(nora, "check").total == 0
    with pytest.raises(InvalidArgument):
        dispatch.call(nora, setting, {"key": "single_valued_predicates", "value": "works_at:few"}, "owner")


def test_a_check_for_one_type_counts_what_is_open_of_the_others(nora: Brain) -> None:
    homes = [{"predicate": "lives_in", "object": place} for place in ("Bergen", "Oslo")]
    call(nora, "put", slug="people/nora-vale", assertions=homes)
    assert call(nora, "check").total == 1
    stale = call(nora, "check", type="stale")
    assert (stale.total, stale.open_of_other_types, stale.exit_status) == (0, 1, 0)
    assert "No contradictions" not in render(stale)
    assert "1 of other types is open" in render(stale)
    cross_page = call(nora, "check", type="cross_page")
    assert (cross_page.total, cross_page.open_of_other_types) == (1, 0)

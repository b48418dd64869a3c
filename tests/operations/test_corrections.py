"""Correcting a fact or a line by saying what is true now or what was wrong."""

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

ALICE = """# Alice Example

Alice lives in Paris. She likes tea.

- Works at River AI as a designer
- Budget: 35,000 EUR
"""


def line_id(text: str, slug: str, kind: str = "line") -> str:
    return f"{kind}:{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}:{slug}"


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


@pytest.fixture
def memory(brain: Brain, tmp_path: Path) -> Brain:
    run(brain, "put", slug="people/alice", content=ALICE)
    run(brain, "assert", slug="people/alice", predicate="lives_in", object="Paris")
    run(
        brain, "assert", slug="people/alice", predicate="works_at", object="River AI", valid_from="2024-01-01"
    )
    run(brain, "notebook init", path=str(tmp_path / "notebook"))
    return brain


def facts(brain: Brain, subject: str = "people/alice") -> list[tuple[str, str, str | None]]:
    rows = run(brain, "facts", subject=subject, history=True)["facts"]
    return [(row["predicate"], row["object"], row["until"]) for row in rows if row["kind"] == "fact"]


def test_x_is_now_y_ends_the_fact_and_replaces_the_line(memory: Brain) -> None:
    record = run(memory, "correct", about="Alice", now="lives in Oslo now", date="2026-03-01")
    assert record["changed"]
    assert record["now"] == "Alice lives in Oslo."
    assert [(row["says"], row["until"]) for row in record["replaced"]] == [
        ("Alice Example lives_in Paris", "2026-03-01"),
        ("Alice lives in Paris.", None),
    ]
    assert ("lives_in", "Paris", "2026-03-01") in facts(memory)
    assert ("lives_in", "Oslo", None) in facts(memory)
    page = run(memory, "get", slug="people/alice")
    assert "Alice lives in Oslo. She likes tea." in page["compiled_truth"]
    assert (
        page["timeline"] == "- **2026-03-01** | correction — ~~Alice lives in Paris.~~ Alice lives in Oslo."
    )
    assert page["version"] == record["version"]
    assert "Alice lives in Paris." in run(memory, "diff", slug="people/alice")["diff"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"about": "people/alice", "was": "River AI", "now": "Acme"}, "- Works at Acme as a designer"),
        ({"about": "Alice's job", "now": "She works at Acme"}, "- Works at Acme as a designer"),
        ({"about": "Alice", "now": "budget is now 40,000 EUR"}, "- Budget: 40,000 EUR"),
        ({"about": "Alice Example", "now": "Alice moved to Rome"}, "Alice lives in Rome. She likes tea."),
        ({"about": "Alice", "was": "likes tea"}, "Alice lives in Paris."),
        (
            {"about": "Alice", "was": "likes tea", "now": "likes coffee"},
            "Alice lives in Paris. She likes coffee.",
        ),
    ],
)
def test_the_line_is_replaced_in_its_own_words(memory: Brain, arguments: dict[str, str], line: str) -> None:
    assert run(memory, "correct", **arguments)["changed"]
    assert line in run(memory, "get", slug="people/alice")["compiled_truth"].split("\n")


def test_that_was_wrong_withdraws_the_fact(memory: Brain) -> None:
    record = run(memory, "correct", about="Alice", was="works at River AI, that was wrong")
    assert [row["id"] for row in record["replaced"]] == ["fact:2"]
    assert ("works_at", "River AI", "2024-01-01") in facts(memory), "it never held"
    says = [row["says"] for row in record["still_says"]]
    assert says == ["Works at River AI as a designer"], "the line says more, so it stays"
    assert run(memory, "facts", subject="people/alice")["total"] == 1


def test_a_wrong_value_is_withdrawn_and_the_right_one_has_its_dates(memory: Brain) -> None:
    run(memory, "correct", about="Alice", was="River AI was wrong", now="Ocean AI")
    assert ("works_at", "River AI", "2024-01-01") in facts(memory)
    [current] = [
        row for row in run(memory, "facts", subject="people/alice")["facts"] if row["predicate"] == "works_at"
    ]
    assert (current["object"], current["since"]) == ("Ocean AI", "2024-01-01")


def test_several_candidates_change_nothing_until_one_is_named(brain: Brain) -> None:
    run(
        brain,
        "put",
        slug="people/carol",
        content="Carol lives in Rome.\n\nIn winter Carol lives in Rome too.",
    )
    arguments = {"about": "Carol", "was": "lives in Rome", "now": "lives in Bern"}
    record = run(brain, "correct", **arguments)
    assert not record["changed"]
    assert [row["id"] for row in record["candidates"]] == [
        line_id("Carol lives in Rome.", "people/carol"),
        (second := line_id("In winter Carol lives in Rome too.", "people/carol")),
    ]
    assert run(brain, "get", slug="people/carol")["version"] == 1
    assert run(brain, "correct", **arguments, id=second)["changed"]
    truth = run(brain, "get", slug="people/carol")["compiled_truth"]
    assert truth.split("\n") == ["Carol lives in Rome.", "", "In winter Carol lives in Bern too."]
    with pytest.raises(NotFound, match="Call without id"):
        run(brain, "correct", **arguments, id="line:000000:people/carol")


def test_the_page_of_the_subject_comes_first_and_other_lines_are_listed(memory: Brain) -> None:
    run(memory, "put", slug="notes/trip", content="We met Alice in Paris.\n\nAlice lives near us in Paris.")
    record = run(memory, "correct", about="Alice", was="Paris", now="Oslo")
    assert record["changed"]
    stated = line_id("Alice lives near us in Paris.", "notes/trip")
    assert [row["id"] for row in record["still_says"]] == [stated], "a meeting in Paris is no address"
    assert "Paris" in run(memory, "get", slug="notes/trip")["compiled_truth"]


def test_a_chosen_line_ends_the_fact_that_it_states(memory: Brain) -> None:
    run(
        memory,
        "put",
        slug="people/alice",
        compiled_truth="Alice lives in Paris.\n\nAlice lives in Paris, too.",
    )
    arguments = {"about": "Alice", "was": "lives in Paris", "now": "lives in Oslo"}
    assert len(run(memory, "correct", **arguments)["candidates"]) == 3
    first = line_id("Alice lives in Paris.", "people/alice")
    record = run(memory, "correct", **arguments, id=first)
    assert [row["id"] for row in record["replaced"]] == ["fact:1", first]
    assert ("lives_in", "Oslo", None) in facts(memory)


def test_a_fact_without_a_line_is_noted_on_its_page(brain: Brain) -> None:
    run(brain, "put", slug="people/benedikt", content="# Benedikt\n\nAccountant.")
    run(brain, "assert", slug="people/benedikt", predicate="address", object="Torggata 3")
    was, now = "His office is at Torggata 3", "Benedikt's office is at Torggata 8"
    record = run(brain, "correct", about="Benedikt", was=was, now=now, date="2026-03-01")
    page = run(brain, "get", slug="people/benedikt")
    assert page["version"] == record["version"]
    assert page["compiled_truth"].endswith("Accountant.")
    assert page["timeline"] == (
        "- **2026-03-01** | correction — ~~Benedikt address Torggata 3~~ Benedikt address Torggata 8"
    )


def test_an_entry_that_was_wrong_is_struck(brain: Brain) -> None:
    entry = "- **2026-06-29** | hearsay — Hugo Lam leaves Nordlys in August."
    run(brain, "put", slug="people/hugo-lam", content=f"# Hugo Lam\n\nData lead.\n\n---\n\n{entry}")
    record = run(brain, "correct", about="people/hugo-lam", was="Hugo Lam leaves Nordlys in August")
    assert record["replaced"][0]["id"] == line_id(
        "Hugo Lam leaves Nordlys in August.", "people/hugo-lam", "entry"
    )
    page = run(brain, "get", slug="people/hugo-lam")
    assert page["timeline"] == "- **2026-06-29** | hearsay — ~~Hugo Lam leaves Nordlys in August.~~"


def test_a_line_about_something_else_is_not_changed(brain: Brain) -> None:
    run(brain, "put", slug="people/petra", content="# Petra\n\nHead of IT at Halden.")
    run(
        brain,
        "put",
        slug="companies/halden",
        content="# Halden\n\nContact: Petra, head of IT.\n\n## Deal\n\n- Value: 12",
    )
    assert not run(brain, "correct", about="Halden", now="stage is now won")["changed"]
    assert not run(brain, "correct", about="Petra", now="She is now the boss")["changed"]
    assert run(brain, "correct", about="Halden deal value", now="15")["now"] == "Value: 15"


def test_only_the_changed_words_of_a_sentence_are_replaced(brain: Brain) -> None:
    run(
        brain,
        "put",
        slug="companies/halden",
        content="# Halden\n\nThey use an old ERP and want to move by 2027.",
    )
    was, now = "they want to move by 2027", "they want to move by 2028"
    record = run(brain, "correct", about="Halden", was=was, now=now)
    assert record["now"] == "They use an old ERP and want to move by 2028."


def test_nothing_found_names_the_tools_that_write(memory: Brain) -> None:
    with pytest.raises(NotFound, match="`quaid remember` or `quaid put`"):
        run(memory, "correct", about="Zed", now="is tall")
    with pytest.raises(InvalidArgument, match="now"):
        run(memory, "correct", about="Alice")


def test_a_line_of_the_notebook_is_struck(memory: Brain, tmp_path: Path) -> None:
    run(memory, "notebook write", path="reference/preferences.md", content="- Sarah prefers email to phone\n")
    record = run(memory, "correct", about="Sarah", now="prefers phone to email", date="2026-03-01")
    assert record["path"] == "reference/preferences.md"
    assert (tmp_path / "notebook" / "reference" / "preferences.md").read_text() == (
        "- ~~Sarah prefers email to phone~~ (2026-03-01)\n- Sarah prefers phone to email\n"
    )
    run(memory, "correct", about="Sarah", was="prefers phone to email, that was wrong")
    text = (tmp_path / "notebook" / "reference" / "preferences.md").read_text()
    assert text.count("~~") == 4
    with pytest.raises(NotFound):
        run(memory, "correct", about="Sarah", was="prefers phone")


@pytest.mark.parametrize("done", ["done", "is done.", "erledigt", "finished"])
def test_a_to_do_is_ticked_in_one_call(memory: Brain, tmp_path: Path, done: str) -> None:
    run(memory, "notebook write", path="lists/todos.md", content="- [ ] Call the bank\n- [ ] Pay the rent\n")
    assert run(memory, "correct", about="call the bank", now=done)["now"] == "[x] Call the bank"
    text = (tmp_path / "notebook" / "lists" / "todos.md").read_text()
    assert text == "- [x] Call the bank\n- [ ] Pay the rent\n"


def test_a_to_do_on_a_page_is_ticked(brain: Brain) -> None:
    run(brain, "put", slug="tasks", content="# Tasks\n\n- [ ] Send the invoice\n- [ ] Book flights")
    run(brain, "correct", about="send invoice", now="done")
    assert "- [x] Send the invoice\n- [ ] Book flights" in run(brain, "get", slug="tasks")["compiled_truth"]


def test_text_without_spaces_is_corrected(brain: Brain) -> None:
    run(brain, "put", slug="people/zhang", content="# 张伟\n\n张伟住在北京。")
    assert run(brain, "correct", about="张伟", was="北京", now="上海")["now"] == "张伟住在上海。"


def test_a_fact_without_a_line_is_corrected(brain: Brain) -> None:
    run(brain, "put", slug="projects/atlas", content="# Atlas")
    run(brain, "assert", slug="projects/atlas", predicate="headcount", object="12")
    record = run(brain, "correct", about="Atlas headcount", now="18")
    assert record["now"] == "Atlas headcount 18"
    assert facts(brain, "projects/atlas")[0][:2] == ("headcount", "12")
    assert facts(brain, "projects/atlas")[1] == ("headcount", "18", None)
    assert record["fact"] == 2


@pytest.mark.parametrize(
    ("predicate", "value", "was", "now", "expected"),
    [
        ("survival", "71 %", "71 % of plots were alive", "61 % of plots were alive", "61 %"),
        ("fee", "EUR 310,000", "The fee is EUR 310,000", "The fee is EUR 295,000", "EUR 295,000"),
        (
            "office",
            "Torggata 3",
            "Her office is at Torggata 3",
            "Alice's office is at Torggata 8",
            "Torggata 8",
        ),
    ],
)
def test_new_value_keeps_units_and_currencies(
    memory: Brain, predicate: str, value: str, was: str, now: str, expected: str
) -> None:
    run(memory, "assert", slug="people/alice", predicate=predicate, object=value)
    run(memory, "correct", about="people/alice", was=was, now=now)
    assert (predicate, expected, None) in facts(memory)


def test_old_words_are_enough_if_the_subject_is_stored_nowhere(memory: Brain) -> None:
    run(memory, "remember", content="I prefer tabs in Go and two spaces in Svelte files")
    now = "I prefer tabs in Go and four spaces in Svelte files"
    record = run(memory, "correct", about="indentation", was="two spaces in Svelte files", now=now)
    assert record["now"] == now
    with pytest.raises(NotFound):
        run(memory, "correct", about="Nobody Known", was="tea", now="coffee")


def test_ingested_sources_stay_as_they_were_received(memory: Brain) -> None:
    run(
        memory,
        "ingest-source",
        content="Alice lives in Paris.",
        source_ref="mail 7",
        source_type="doc",
    )
    run(memory, "correct", about="Alice", was="Paris", now="Oslo")
    assert "Paris" in run(memory, "get", slug="sources/mail-7")["compiled_truth"]


@pytest.mark.parametrize(
    ("about", "now"),
    [
        ("Marta Keller", "lives in Lugano"),
        ("Marta", "mail marta@kesto.example"),
        ("Nordlicht pilot", "deadline 2027-12-15"),
    ],
)
def test_new_value_alone_never_changes_an_open_to_do(
    memory: Brain, tmp_path: Path, about: str, now: str
) -> None:
    run(memory, "put", slug="people/marta-keller", content="# Marta Keller\n\nMarta lives in Zurich.")
    run(memory, "remember", content="Send the proposal to Marta Keller by 2026-05-01", category="todos")
    run(
        memory,
        "remember",
        content="Send the report of the Nordlicht pilot to Emre by 2026-05-15",
        category="todos",
    )
    todos = (tmp_path / "notebook" / "lists" / "todos.md").read_text()
    try:
        run(memory, "correct", about=about, now=now)
    except NotFound:
        pass  # better than a wrong change
    assert (tmp_path / "notebook" / "lists" / "todos.md").read_text() == todos


def test_line_with_the_old_value_follows_its_fact(memory: Brain) -> None:
    text = "# Larkspur\n\nRelease 1.0 is due 2026-08-31."
    run(memory, "put", slug="projects/larkspur", content=text)
    run(memory, "assert", slug="projects/larkspur", predicate="deadline", object="2026-08-31")
    run(memory, "correct", about="Larkspur deadline", now="2026-12-01")
    assert "is due 2026-12-01." in run(memory, "get", slug="projects/larkspur")["compiled_truth"]


def test_correction_to_the_current_value_changes_nothing(memory: Brain) -> None:
    record = run(memory, "correct", about="Alice", now="works at River AI")
    assert (record["changed"], record["now"]) == (False, "works at River AI")
    assert "says so already" in record["note"]


def test_without_a_match_the_statements_about_the_subject_are_listed(memory: Brain) -> None:
    record = run(memory, "correct", about="people/alice", now="plays the cello")
    assert not record["changed"]
    assert {
        "id": line_id("She likes tea.", "people/alice"),
        "says": "She likes tea.",
        "slug": "people/alice",
    } in record["candidates"]
    run(
        memory,
        "correct",
        about="people/alice",
        now="plays the cello",
        id=next(row["id"] for row in record["candidates"] if "River AI" in row["says"]),
    )
    assert "River AI" not in run(memory, "get", slug="people/alice")["compiled_truth"]


def test_one_of_several_sentences_in_a_line_is_corrected(brain: Brain) -> None:
    run(
        brain,
        "put",
        slug="projects/lynx",
        content="# Lynx\n\nLynx ships in May. The owner is Paula. It is green.",
    )
    assert run(brain, "correct", about="Lynx", now="the owner is Quentin")["changed"]
    record = run(brain, "correct", about="Lynx", now="painted blue")
    assert not record["changed"]
    [green] = [row["id"] for row in record["candidates"] if "green" in row["says"]]
    assert run(brain, "correct", about="Lynx", now="It is blue", id=green)["changed"]
    text = run(brain, "get", slug="projects/lynx")["compiled_truth"]
    assert "Lynx ships in May. The owner is Quentin. It is blue." in text


def test_correction_of_one_value_leaves_other_facts_of_the_sentence(brain: Brain) -> None:
    text = "# Lantern\n\nThe price is 15 euro per seat and the team has five people."
    run(brain, "put", slug="projects/lantern", content=text)
    run(brain, "assert", slug="projects/lantern", predicate="price", object="15 euro per seat")
    run(brain, "correct", about="Lantern", was="five people", now="six people")
    assert facts(brain, "projects/lantern") == [("price", "15 euro per seat", None)]
    assert "and the team has six people." in run(brain, "get", slug="projects/lantern")["compiled_truth"]


def test_withdrawing_a_clause_keeps_the_rest_of_the_sentence(brain: Brain) -> None:
    text = "# Greta\n\nDesigner at Fjordcargo, lives in Oslo, speaks Norwegian and German."
    run(brain, "put", slug="people/greta", content=text)
    run(brain, "correct", about="Greta", was="speaks Norwegian and German")
    assert (
        "Designer at Fjordcargo, lives in Oslo." in run(brain, "get", slug="people/greta")["compiled_truth"]
    )


def test_words_that_a_correction_does_not_name_are_not_lost(brain: Brain) -> None:
    text = "# Leonie\n\nHead of IT at [[companies/nordhaven]] from July, before that team lead in Bremen."
    run(brain, "put", slug="people/leonie", content=text)
    record = run(
        brain, "correct", about="Leonie", was="Head of IT at Nordhaven from July", now="CIO of Nordhaven"
    )
    assert not record["changed"]
    assert record["candidates"][0]["id"] == line_id(text.partition("\n\n")[2], "people/leonie")


def test_label_and_verb_are_not_part_of_the_value(brain: Brain) -> None:
    run(brain, "put", slug="projects/kite", content="# Kite\n\nA project.")
    run(brain, "assert", slug="projects/kite", predicate="deadline", object="2026-07-15")
    run(brain, "assert", slug="projects/kite", predicate="budget", object="12,000 euro")
    run(brain, "correct", about="Kite", now="The beta deadline is 2026-09-15")
    run(brain, "correct", about="Kite", now="The budget was raised to 14,000 euro")
    current = {value for _, value, until in facts(brain, "projects/kite") if until is None}
    assert current == {"2026-09-15", "14,000 euro"}


@pytest.mark.parametrize(
    ("was", "now"), [("Paris", "Paris"), ("Lives in Paris. Likes tea.", "Lives in Oslo.")]
)
def test_corrections_that_cannot_be_carried_out_are_refused(memory: Brain, was: str, now: str) -> None:
    with pytest.raises(InvalidArgument):
        run(memory, "correct", about="Alice", was=was, now=now)


ILSE = """---
city: Oslo
seats: 12
languages: [Dutch, English]
---
# Ilse Brandt

Ilse runs sales at Nordlys.

- [ ] Send the written proposal to Ilse

| Year | Budget |
| --- | --- |
| 2026 | 40 kEUR |

---

- **2026-03-02** | call — Ilse asked for 12 seats.
"""


@pytest.fixture
def ilse(memory: Brain) -> Brain:
    run(memory, "put", slug="people/ilse-brandt", content=ILSE)
    return memory


def ilse_page(brain: Brain) -> Any:
    return run(brain, "get", slug="people/ilse-brandt")


def test_value_of_the_front_matter_is_replaced(ilse: Brain) -> None:
    record = run(ilse, "correct", about="Ilse Brandt", was="Oslo", now="Bergen", date="2026-03-01")
    assert [row["id"] for row in record["replaced"]] == ["field:city:people/ilse-brandt"]
    page = ilse_page(ilse)
    assert page["frontmatter"]["city"] == "Bergen"
    assert "- **2026-03-01** | correction — ~~city: Oslo~~ city: Bergen" in page["timeline"]
    run(ilse, "correct", about="Ilse Brandt's seats", now="14")
    run(ilse, "correct", about="Ilse Brandt", was="Dutch", now="German")
    assert ilse_page(ilse)["frontmatter"]["seats"] == 14
    assert ilse_page(ilse)["frontmatter"]["languages"] == ["German", "English"]


def test_timeline_entry_is_struck_and_the_right_one_is_added(ilse: Brain) -> None:
    was, now = "Ilse asked for 12 seats", "Ilse asked for 20 seats"
    record = run(ilse, "correct", about="people/ilse-brandt", was=was, now=now)
    assert [row["id"] for row in record["replaced"]] == [line_id(f"{was}.", "people/ilse-brandt", "entry")]
    timeline = ilse_page(ilse)["timeline"]
    assert "- **2026-03-02** | call — ~~Ilse asked for 12 seats.~~" in timeline
    assert "- **2026-04-25** | correction — Ilse asked for 20 seats. (corrects 2026-03-02)" in timeline


def test_fact_that_the_line_does_not_name_is_listed_and_not_changed(ilse: Brain) -> None:
    run(ilse, "assert", slug="people/ilse-brandt", predicate="works_at", object="Nordlys")
    record = run(ilse, "correct", about="Ilse Brandt", now="Ilse runs sales at Halden")
    assert "Ilse runs sales at Halden." in ilse_page(ilse)["compiled_truth"]
    assert [row["says"] for row in record["still_says"]] == ["Ilse Brandt works_at Nordlys"]
    current = [row for row in facts(ilse, "people/ilse-brandt") if row[2] is None]
    assert current == [("works_at", "Nordlys", None)]


def test_to_do_is_preferred_to_a_fact_and_has_its_date(ilse: Brain) -> None:
    run(ilse, "assert", slug="people/ilse-brandt", predicate="waits_for", object="written proposal")
    record = run(ilse, "correct", about="written proposal to Ilse", now="done", date="2026-04-02")
    assert record["now"] == "[x] Send the written proposal to Ilse"
    assert "- [x] Send the written proposal to Ilse (done 2026-04-02)" in ilse_page(ilse)["compiled_truth"]
    assert facts(ilse, "people/ilse-brandt")[0][2] is None


def test_to_do_is_ticked_by_a_report(ilse: Brain) -> None:
    assert run(ilse, "correct", about="written proposal to Ilse", now="sent yesterday")["changed"]


def test_table_rows_and_headings_are_no_candidates_and_the_rest_is_counted(ilse: Brain) -> None:
    sentences = " ".join(f"Point {word}." for word in "one two three four five six seven".split())
    run(
        ilse,
        "put",
        slug="people/ilse-brandt",
        compiled_truth=f"# Ilse Brandt\n\n{sentences}\n\nHeading\n===\n\n| a | b |",
    )
    record = run(ilse, "correct", about="people/ilse-brandt", now="plays the cello")
    says = [row["says"] for row in record["candidates"]]
    assert (len(says), record["more"]) == (8, 4)
    assert not {"Heading", "# Ilse Brandt", "| a | b |"}.intersection(says)
    assert "4 more are not listed" in record["note"]


def test_cell_of_a_table_is_corrected_by_its_words(ilse: Brain) -> None:
    run(ilse, "correct", about="Ilse Brandt", was="40 kEUR", now="50 kEUR")
    assert "| 2026 | 50 kEUR |" in ilse_page(ilse)["compiled_truth"]


@pytest.mark.parametrize(
    ("about", "now"),
    [
        ("Bob Smith", "is the same person as Robert Smith"),
        ("Bob Smith and Robert Smith", "are the same person"),
    ],
)
def test_same_person_leads_to_a_proposal_to_merge(brain: Brain, about: str, now: str) -> None:
    run(brain, "put", slug="people/bob-smith", content="# Bob Smith\n\nPlumber.")
    run(brain, "put", slug="people/robert-smith", content="# Robert Smith\n\nPlumber in York.")
    record = run(brain, "correct", about=about, now=now)
    assert (record["changed"], record["merge_proposal"]) == (False, 1)
    [shown] = run(brain, "review")["proposals"]
    assert shown["tool"] == "memory_merge"
    run(brain, "review", id=1, accept=True)
    assert "Plumber in York." in run(brain, "get", slug="people/bob-smith")["compiled_truth"]


def test_remember_ticks_a_to_do_of_a_page(ilse: Brain) -> None:
    record = run(ilse, "remember", content="I sent the written proposal to Ilse")
    assert (record["action"], record["slug"]) == ("ticked", "people/ilse-brandt")
    assert "- [x] Send the written proposal to Ilse" in ilse_page(ilse)["compiled_truth"]


def test_remember_names_the_page_that_says_otherwise(memory: Brain) -> None:
    record = run(memory, "remember", content="Alice Example works at Ocean Inc")
    assert record["about"] == "people/alice"
    assert [row["says"] for row in record["contradicts"]] == ["Alice Example works_at River AI"]
    assert [row["says"] for row in record["open_facts"]] == ["lives_in Paris"]
    assert "people/alice says otherwise" in record["note"]
    assert ("works_at", "River AI", None) in facts(memory)


def test_remember_of_a_change_ends_the_fact_but_keeps_the_text(memory: Brain) -> None:
    record = run(memory, "remember", content="Alice Example works at Ocean Inc now")
    assert [row["id"] for row in record["replaced"]] == ["fact:2"]
    assert record["still_says"] == [{"slug": "people/alice", "says": "Works at River AI as a designer"}]
    assert ("works_at", "Ocean Inc", None) in facts(memory)
    assert "River AI" in run(memory, "get", slug="people/alice")["compiled_truth"]
    run(memory, "remember", content="Alice Example no longer lives in Paris")
    assert ("lives_in", "Paris", "2026-04-25") in facts(memory)


def test_same_sentence_finds_the_same_line_in_both_ways(memory: Brain, tmp_path: Path) -> None:
    file = tmp_path / "notebook" / "knowledge" / "facts.md"
    for command, arguments in (
        ("remember", {"content": "Actually, Ines lives in Galway"}),
        ("correct", {"about": "Ines", "now": "lives in Galway"}),
    ):
        run(memory, "notebook write", path="knowledge/facts.md", content="- Ines lives in Cork\n")
        run(memory, command, **arguments)
        assert file.read_text() == "- ~~Ines lives in Cork~~ (2026-04-25)\n- Ines lives in Galway\n"
        file.unlink()


def test_several_lines_with_the_words_are_listed_and_one_is_forgotten_by_its_id(memory: Brain) -> None:
    entry = "- **2026-03-02** | mail — Alice lives in Paris."
    run(memory, "put", slug="people/alice", compiled_truth=ALICE, timeline_append=entry)
    arguments = {"query": "Alice lives in Paris", "reason": "asked"}
    record = run(memory, "propose forget", **arguments)
    assert [row["id"] for row in record["candidates"]] == [
        line_id("Alice lives in Paris.", "people/alice"),
        line_id("Alice lives in Paris.", "people/alice", "entry"),
    ]
    assert run(memory, "review")["total"] == 0
    assert run(memory, "propose forget", query=record["candidates"][0]["id"], reason="asked")["proposal"] == 1
    assert run(memory, "review", id=1, accept=True)["decided"][0]["outcome"] == "accepted"
    page = run(memory, "get", slug="people/alice")
    assert "Paris" not in page["compiled_truth"]
    assert entry in page["timeline"]


def test_linked_value_is_replaced_in_its_line(memory: Brain) -> None:
    run(memory, "put", slug="companies/nordvik-seafood-as", content="# Nordvik\n\nExports fish.")
    text = "# Mina\n\nMina works for [[companies/nordvik-seafood-as]] in Oslo."
    run(memory, "put", slug="people/mina", content=text)
    run(memory, "assert", slug="people/mina", predicate="works_at", object="Nordvik")
    record = run(memory, "correct", about="Mina", was="works at Nordvik", now="works at Fjordline")
    assert record["now"] == "Mina works for Fjordline in Oslo."
    assert ("works_at", "Fjordline", None) in facts(memory, "people/mina")


def test_new_words_may_repeat_words_of_the_sentence(memory: Brain, tmp_path: Path) -> None:
    run(memory, "notebook write", path="reference/rules.md", content="- Always send invoices as PDF\n")
    record = run(memory, "correct", about="invoices", was="as PDF", now="as e-invoices")
    assert record["now"] == "Always send invoices as e-invoices"


def test_abbreviation_at_the_end_of_a_value_keeps_its_full_stop(memory: Brain) -> None:
    run(memory, "assert", slug="people/alice", predicate="owns", object="D Inc.")
    run(memory, "correct", about="people/alice", was="D Inc.", now="E Inc.")
    assert ("owns", "E Inc.", None) in facts(memory)


def test_remember_names_a_line_with_the_first_name_and_a_field(memory: Brain) -> None:
    text = "---\ncity: Hamburg\n---\n# Anke Vogt\n\nAnke wohnt in Hamburg."
    run(memory, "put", slug="people/anke-vogt", content=text)
    record = run(memory, "remember", content="Anke Vogt wohnt jetzt in Kiel")
    assert [row["says"] for row in record["contradicts"]] == ["Anke wohnt in Hamburg."]
    run(memory, "assert", slug="people/anke-vogt", predicate="lives_in", object="Hamburg")
    record = run(memory, "remember", content="Anke Vogt moved to Kiel")
    assert [row["says"] for row in record["still_says"]] == ["Anke wohnt in Hamburg.", "city: Hamburg"]


def test_sentences_without_spaces_are_separate_statements(memory: Brain) -> None:
    run(memory, "put", slug="people/wang-li", content="# 王丽\n\n王丽住在成都。王丽喜欢喝茶。")
    assert run(memory, "correct", about="王丽", was="成都", now="重庆")["now"] == "王丽住在重庆。"


def test_name_alone_does_not_make_a_line_the_one_to_correct(memory: Brain) -> None:
    text = "# Sofia Brandt\n\nSofia Brandt owns Kestrel. Her office is in room 204."
    run(memory, "put", slug="people/sofia-brandt", content=text)
    record = run(memory, "correct", about="Sofia Brandt's office", now="room 310")
    assert record["now"] == "Her office is in room 310."
    assert run(memory, "remember", content="Sofia Brandt plays chess")["contradicts"] == []


def test_value_keeps_the_verb_of_its_line(memory: Brain) -> None:
    run(memory, "remember", content="La clave del portal es 5501", category="facts")
    assert (
        run(memory, "correct", about="La clave del portal", now="5502")["now"]
        == "La clave del portal es 5502"
    )


def test_thing_that_was_bought_is_struck(memory: Brain, tmp_path: Path) -> None:
    run(memory, "remember", content="buy rice and lentils")
    assert run(memory, "remember", content="I bought the rice")["action"] == "struck"
    text = (tmp_path / "notebook" / "lists" / "shopping.md").read_text()
    assert text == "## Shopping List\n- ~~Rice~~ (2026-04-25)\n- Lentils\n"
    record = run(memory, "remember", content="I bought the sofa")
    assert (record["action"], record["category"]) == ("added", "fact")


def test_whole_sentence_as_subject_is_the_one_to_replace(memory: Brain) -> None:
    run(
        memory,
        "timeline-add",
        slug="people/alice",
        date="2026-03-01",
        summary="Met Alice at the fair in Rome.",
    )
    record = run(
        memory, "correct", about="Met Alice at the fair in Rome", now="Met Alice at the fair in Bonn"
    )
    assert record["now"] == "Met Alice at the fair in Bonn."
    assert run(memory, "get", slug="people/alice")["timeline"].splitlines()[1:] == [
        "- **2026-03-01** — ~~Met Alice at the fair in Rome.~~"
    ]
    record = run(memory, "correct", about="Works at River AI as a designer", now="Runs her own studio")
    assert [row["says"] for row in record["replaced"]][-1] == "Works at River AI as a designer"
    page = run(memory, "get", slug="people/alice")["compiled_truth"]
    assert "- Runs her own studio\n" in page
    assert ("works_at", "River AI", record["replaced"][0]["until"]) in facts(memory)


RUMOUR = "Alice gives up River AI and joins Delta Rail in May."


@pytest.fixture
def rumour(memory: Brain) -> Brain:
    """A rumour on the timeline and as a fact, beside the current job."""
    run(memory, "timeline-add", slug="people/alice", date="2026-04-02", summary=RUMOUR)
    run(memory, "assert", slug="people/alice", predicate="joins", object="Delta Rail")
    return memory


@pytest.mark.parametrize("was", [RUMOUR, f"{RUMOUR} That was wrong."])
def test_wrong_entry_is_struck_and_only_the_facts_that_it_states_are_withdrawn(
    rumour: Brain, was: str
) -> None:
    record = run(rumour, "correct", about="people/alice", was=was)
    assert record["changed"]
    assert f"~~{RUMOUR}~~" in run(rumour, "get", slug="people/alice")["timeline"]
    answer = run(rumour, "query", question="Does Alice join Delta Rail?")
    assert "Alice Example joins Delta Rail, withdrawn (people/alice)" in answer["facts"]
    held = {value for _, value, until in facts(rumour) if until is None}
    assert held == {"Paris", "River AI"}


def test_fact_in_other_words_is_withdrawn_and_its_entry_listed(rumour: Brain) -> None:
    record = run(rumour, "correct", about="people/alice", was="she joins Delta Rail")
    assert [row["says"] for row in record["replaced"]] == ["Alice Example joins Delta Rail"]
    assert [row["says"] for row in record["still_says"]] == [RUMOUR]


def test_quoted_line_is_corrected_with_the_fact_that_it_states(memory: Brain) -> None:
    record = run(
        memory,
        "correct",
        about="people/alice",
        was="Works at River AI as a designer",
        now="She has moved to Acme",
    )
    assert ("works_at", "Acme", None) in facts(memory)
    assert record["replaced"][-1]["says"] == "Works at River AI as a designer"


def test_predicate_with_another_name_is_found(memory: Brain) -> None:
    run(memory, "assert", slug="people/alice", predicate="employer", object="Delta Rail")
    assert run(memory, "remember", content="Alice works at Omega now")["replaced"]
    run(memory, "correct", about="Alice Example", now="works at Sigma")
    assert [value for name, value, until in facts(memory) if until is None and name != "lives_in"] == [
        "Sigma"
    ]


def test_possessive_before_a_label_is_kept(memory: Brain) -> None:
    run(memory, "put", slug="people/bo", content="# Bo Berg\n\nBo sings. His birthday is 3 May.")
    assert run(memory, "correct", about="Bo Berg", now="birthday is 4 May")["now"] == "His birthday is 4 May."


def test_to_do_that_is_ticked_already_is_not_to_be_written_again(memory: Brain) -> None:
    run(memory, "remember", content="water the plants", category="todo")
    run(memory, "correct", about="water the plants", now="done")
    with pytest.raises(NotFound, match=r"no open to-do 'water the plants'.*ticked already"):
        run(memory, "correct", about="water the plants", now="done")


def held(brain: Brain, subject: str) -> set[tuple[str, str]]:
    return {(name, value) for name, value, until in facts(brain, subject) if until is None}


@pytest.fixture
def foundry(memory: Brain) -> Brain:
    """A company and its people, a project, a bug and a paper, with facts and to-dos."""
    for slug, text in (
        ("companies/karstad-foundry", "# Karstad Foundry\n\nFoundry in three halls. Works at Molde."),
        ("people/olaf-brekke", "# Olaf Brekke\n\nOlaf Brekke, Karstad Foundry."),
        (
            "projects/heron",
            "# Heron\n\nInes Duarte released the data only after a bias review."
            " Loans are refused 1.6 times as often.",
        ),
        ("projects/heron-bug", "# Heron bug: lost sessions at Porto\n\nSessions vanish at night."),
        (
            "papers/roy-2022",
            "# Roy & Mbeki 2022: shade and sleep\n\nRoy & Mbeki (2022), shade and sleep in Lyon.",
        ),
    ):
        run(memory, "put", slug=slug, content=text)
    for slug, predicate, value in (
        ("companies/karstad-foundry", "plant_manager", "Olaf Brekke"),
        ("companies/karstad-foundry", "controller", "Lene Holt"),
        ("companies/karstad-foundry", "hall_headcount", "140 people at Molde, mostly moulding"),
        ("projects/heron", "sponsor", "Ines Duarte"),
        ("projects/heron", "event_queue", "Kestrel MQ"),
        ("projects/heron", "retry_limit", "3 tries"),
        ("projects/heron", "pilot_branches", "Alta, Bodin and Corvo"),
        (
            "projects/heron-bug",
            "cause",
            "full disk: the logs were never rotated (according to Tom)",
        ),
    ):
        run(memory, "assert", slug=slug, predicate=predicate, object=value, valid_from="2026-02-01")
    for task in (
        "Heron, Bea: alert when the dead-letter queue holds more than 20 events",
        "I promised Olaf Brekke the audit template by 2026-05-10",
    ):
        run(memory, "remember", content=task, category="todos")
    return memory


def todos(brain: Brain) -> str:
    return str(run(brain, "notebook read", path="lists/todos.md")["text"])


def test_new_holder_of_a_post_changes_no_page_of_a_person(foundry: Brain) -> None:
    before = run(foundry, "get", slug="people/olaf-brekke")
    was, now = "plant manager Olaf Brekke", "plant manager Lene Holt"
    record = run(foundry, "correct", about="Karstad Foundry", was=was, now=now, date="2026-06-01")
    assert [row["says"] for row in record["replaced"]] == ["Karstad Foundry plant_manager Olaf Brekke"]
    assert run(foundry, "get", slug="people/olaf-brekke") == before
    was, now = "controller Lene Holt", "controller not named yet (successor of Lene Holt)"
    assert run(foundry, "correct", about="Karstad Foundry", was=was, now=now)["changed"]
    assert held(foundry, "companies/karstad-foundry") == {
        ("plant_manager", "Lene Holt"),
        ("controller", "not named yet (successor of Lene Holt)"),
        ("hall_headcount", "140 people at Molde, mostly moulding"),
    }


def test_value_that_no_statement_has_changes_no_other_statement(foundry: Brain) -> None:
    before, facts_before = run(foundry, "get", slug="projects/heron"), held(foundry, "projects/heron")
    was, now = "refusal of rural women 1.6 times", "refusal of rural women 1.1 times after the change"
    record = run(foundry, "correct", about="Heron", was=was, now=now)
    assert not record["changed"]
    assert record["candidates"][0]["says"] == "Loans are refused 1.6 times as often."
    assert run(foundry, "get", slug="projects/heron") == before
    assert held(foundry, "projects/heron") == facts_before


def test_fact_is_corrected_without_the_to_do_that_has_a_word_of_it(foundry: Brain) -> None:
    tasks = todos(foundry)
    was, now = "event queue Kestrel MQ", "event queue is a Postgres table read with SKIP LOCKED"
    assert run(foundry, "correct", about="Heron", was=was, now=now)["changed"]
    assert ("event_queue", "a Postgres table read with SKIP LOCKED") in held(foundry, "projects/heron")
    assert todos(foundry) == tasks


def test_to_do_is_reworded_only_by_a_quotation_of_it(foundry: Brain) -> None:
    facts_before = held(foundry, "projects/heron")
    was = "Heron, Bea: alert when the dead-letter queue holds more than 20 events"
    now = "Heron, Bea: alert on failed events older than 10 minutes"
    record = run(foundry, "correct", about="Heron", was=was, now=now, date="2026-05-01")
    assert [row["says"] for row in record["replaced"]] == [was]
    assert f"- [ ] {now}\n" in todos(foundry)
    assert held(foundry, "projects/heron") == facts_before


def test_new_words_are_stored_as_given(foundry: Brain) -> None:
    was, now = "cause full disk", "cause unknown (Tom checked again: it was not the full disk)"
    about = "Heron bug: lost sessions at Porto"
    assert run(foundry, "correct", about=about, was=was, now=now)["changed"]
    assert held(foundry, "projects/heron-bug") == {
        ("cause", "unknown (Tom checked again: it was not the full disk)")
    }
    was, now = "hall headcount 140 people at Molde", "hall headcount 125 people at Molde (night shift closed)"
    text = run(foundry, "get", slug="companies/karstad-foundry")["compiled_truth"]
    run(foundry, "correct", about="Karstad Foundry", was=was, now=now)
    assert ("hall_headcount", "125 people at Molde (night shift closed)") in held(
        foundry, "companies/karstad-foundry"
    )
    assert run(foundry, "get", slug="companies/karstad-foundry")["compiled_truth"] == text


def test_statement_without_a_predecessor_changes_nothing(foundry: Brain) -> None:
    before = run(foundry, "get", slug="papers/roy-2022")
    now = "Retracted: the wristband data were made up; do not rely on it"
    record = run(foundry, "correct", about="Roy & Mbeki 2022: shade and sleep", now=now)
    assert not record["changed"]
    assert "`quaid remember` or `quaid put`" in record["note"]
    assert run(foundry, "get", slug="papers/roy-2022") == before


@pytest.mark.parametrize("id", ["7", "fact:7", 7])
def test_id_is_accepted_as_any_tool_shows_it_and_wins_over_the_subject(foundry: Brain, id: Any) -> None:
    [number] = [
        row["id"]
        for row in run(foundry, "facts", subject="projects/heron")["facts"]
        if row["predicate"] == "sponsor"
    ]
    id = number if isinstance(id, int) else id.replace("7", str(number))
    record = run(foundry, "correct", about="something else", was="Ines", now="Ada Nwosu", id=id)
    assert [row["id"] for row in record["replaced"]] == [f"fact:{number}"]


def test_cancelled_to_do_is_struck_with_date_and_reason(foundry: Brain) -> None:
    about = "I promised Olaf Brekke the audit template"
    now = "written off: he found another one"
    assert run(foundry, "correct", about=about, now=now, date="2026-05-11")["changed"]
    text = "I promised Olaf Brekke the audit template by 2026-05-10"
    line = f"- ~~{text}~~ (cancelled 2026-05-11: he found another one)"
    assert line in todos(foundry).splitlines()


def test_old_words_with_a_date_were_true_until_then(foundry: Brain) -> None:
    record = run(foundry, "correct", about="Heron", was="retry limit 3 tries", date="2026-03-20")
    assert [row["until"] for row in record["replaced"]] == ["2026-03-20"]
    assert ("retry_limit", "3 tries", "2026-03-20") in facts(foundry, "projects/heron")


def test_value_without_a_date_holds_from_today_on(foundry: Brain) -> None:
    run(foundry, "correct", about="Heron", was="retry limit 3 tries", now="retry limit 8 tries")
    rows = run(foundry, "facts", subject="projects/heron")["facts"]
    [row] = [row for row in rows if row["predicate"] == "retry_limit"]
    assert (row["object"], row["since"]) == ("8 tries", "2026-04-25")


def test_one_part_of_a_value_is_replaced(foundry: Brain) -> None:
    run(foundry, "correct", about="Heron", was="Bodin", now="Dovre")
    assert ("pilot_branches", "Alta, Dovre and Corvo") in held(foundry, "projects/heron")


def test_title_and_aliases_never_change(memory: Brain) -> None:
    text = "---\ntitle: Delta Line\naliases: [Delta]\ncarrier: Delta Line\n---\nOperated by Delta Line."
    run(memory, "put", slug="projects/delta", content=text)
    run(memory, "correct", about="projects/delta", was="Delta Line", now="Echo Line")
    front = run(memory, "get", slug="projects/delta")["frontmatter"]
    assert (front["title"], front["aliases"]) == ("Delta Line", ["Delta"])


def test_sources_that_still_have_the_old_value_are_listed(foundry: Brain) -> None:
    content = "The plant manager of Karstad Foundry is Olaf Brekke."
    run(foundry, "ingest-source", content=content, source_ref="mail 9", source_type="doc")
    was, now = "plant manager Olaf Brekke", "plant manager Lene Holt"
    record = run(foundry, "correct", about="Karstad Foundry", was=was, now=now)
    assert content in [row["says"] for row in record["still_says"]]


def test_sentence_of_a_source_is_erased_for_good(foundry: Brain) -> None:
    content = (
        "# Mail\n\nInes leads Heron. She mentioned privately that she has asthma. The pilot starts in May."
    )
    run(foundry, "ingest-source", content=content, source_ref="mail 12", source_type="doc")
    assert run(foundry, "propose forget", query="asthma", reason="private")["proposal"] == 1
    assert run(foundry, "review", id=1, accept=True)["decided"][0]["outcome"] == "accepted"
    text = run(foundry, "get", slug="sources/mail-12")["compiled_truth"]
    assert text.endswith("\nInes leads Heron. The pilot starts in May.")
    tables = "raw_imports proposals pages chunks ingest_log".split()
    assert not [name for name in tables if "asthma" in str(foundry.db.rows(f"SELECT * FROM {name}"))]


NAMES = ("Arne Vik", "Bela Roth", "Carla Sol", "Dina Moe")
PLACES = ("Oslo", "Bergen", "Molde", "Narvik", "42 seats", "17 seats", "2026-05-01", "Vik AS")
PREDICATES = ("lives_in", "works_at", "seats", "deadline", "head_of_sales", "likes")


def random_memory(brain: Brain, chance: random.Random) -> None:
    """Write pages with sentences, fields and to-dos, facts about their subjects, and lines of the notebook."""
    for number, name in enumerate(NAMES):
        first, place, other = name.split()[0], chance.choice(PLACES), chance.choice(PLACES)
        lines = [
            f"{first} lives in {place}.",
            f"Met {chance.choice(NAMES)} in {other}, before the fair.",
            f"- Seats: {other}",
            f"- Works at {place} as a planner",
            f"- [ ] Send {chance.choice(NAMES)} the plan for {place}",
            f"{name} likes {other}. The deadline is {place}.",
        ]
        chance.shuffle(lines)
        text = "\n".join(lines[: chance.randint(2, 6)])
        front = f"title: {name}\naliases: [{place}]\ncity: {chance.choice(PLACES)}"
        run(
            brain,
            "put",
            slug=f"people/p{number}",
            content=f"---\n{front}\n---\n{text}\n\n---\n\n- **2026-03-02** | call — {first} asked about {other}.",
        )
        for predicate in chance.sample(PREDICATES, 3):
            run(brain, "assert", slug=f"people/p{number}", predicate=predicate, object=chance.choice(PLACES))
    tasks = "".join(f"- [ ] Call {name} about {chance.choice(PLACES)}\n" for name in NAMES)
    run(brain, "notebook write", path="lists/todos.md", content=tasks)
    said = "".join(f"- {name} lives in {chance.choice(PLACES)}\n" for name in NAMES[:2])
    run(brain, "notebook write", path="knowledge/facts.md", content=said)


def random_correction(chance: random.Random) -> dict[str, str]:
    name, old, new = chance.choice(NAMES), chance.choice(PLACES), chance.choice(PLACES)
    label = chance.choice(["", "lives in ", "works at ", "seats ", "deadline ", "head of sales ", "likes "])
    about = chance.choice(
        [name, name.split()[0], f"people/p{chance.randrange(4)}", f"Call {name}", "the fair"]
    )
    arguments = {"about": about}
    if chance.random() < 0.7:
        arguments["was"] = label + old
    if chance.random() < 0.8 or "was" not in arguments:
        arguments["now"] = chance.choice([label + new, new, f"{name} {label}{new}", "done", "cancelled"])
    return arguments


def snapshot(brain: Brain) -> dict[str, Any]:
    """Return everything that a correction could change, by the id that `replaced` would have."""
    state: dict[str, Any] = {}
    for number in range(len(NAMES)):
        page = run(brain, "get", slug=f"people/p{number}")
        slug, front = f"people/p{number}", page["frontmatter"]
        state[f"title:{slug}"] = (page["title"], front["aliases"], sorted({*front, "city"}))
        state[f"field:city:{slug}"] = front.get("city")
        state[f"text:{slug}"] = page["compiled_truth"].split("\n")
        state[f"timeline:{slug}"] = [
            line for line in page["timeline"].split("\n") if "| correction —" not in line
        ]
        for row in run(brain, "facts", subject=slug, history=True)["facts"]:
            if row["kind"] == "fact" and row["source"] != "correction":
                state[f"fact:{row['id']}"] = (row["predicate"], row["object"], row["since"], row["until"])
    for path in ("lists/todos", "knowledge/facts"):
        text = run(brain, "notebook read", path=f"{path}.md")["text"]
        state[f"text:notebook::{path}"] = text.split("\n")
    return state


@pytest.mark.parametrize("seed", range(6))
def test_nothing_but_what_the_answer_names_is_changed(memory: Brain, seed: int) -> None:
    chance = random.Random(seed)
    random_memory(memory, chance)
    changed = 0
    for _ in range(20):
        arguments, before = random_correction(chance), snapshot(memory)
        try:
            record = run(memory, "correct", **arguments)
        except (NotFound, InvalidArgument):
            record = {"replaced": [], "changed": False}
        after, replaced = snapshot(memory), {row["id"]: row["says"] for row in record["replaced"]}
        changed += record["changed"]
        assert bool(replaced) == record["changed"]
        assert sum(id.startswith("fact:") for id in replaced) <= 1
        for key, value in before.items():
            if key.startswith("text:"):
                gone = [line for line in value if line not in after[key]]
                address = key.removeprefix("text:")
                lines = [
                    says
                    for id, says in replaced.items()
                    if id.startswith("line:") and id.endswith(f":{address}")
                ]
                assert len(gone) <= len(lines), (arguments, gone)
                assert all(any(says in line for says in lines) for line in gone)
            elif key.startswith("timeline:"):
                entry = any(id.startswith("entry:") for id in replaced)
                assert after[key] == value or entry, arguments
            elif key not in replaced:
                assert after.get(key) == value, (arguments, key)
    assert changed, "no correction of this run changed anything"


def test_part_of_a_word_is_not_what_was(memory: Brain) -> None:
    run(memory, "put", slug="people/kim", content="# Kim Roe\n\n- steak\n- rain")
    record = run(memory, "correct", about="Kim Roe", was="tea", now="coffee")
    assert not record["changed"]
    assert [row["says"] for row in record["candidates"]] == ["steak", "rain"]
    assert "`quaid remember`" in record["note"]


def test_note_with_another_value_names_the_earlier_line(memory: Brain) -> None:
    run(memory, "remember", content="Tim's birthday is 4 March")
    record = run(memory, "remember", content="Tim's birthday is 6 March")
    [earlier] = record["contradicts"]
    assert (earlier["says"], record["similar"]) == ("Tim's birthday is 4 March", [])
    done = run(memory, "correct", about="Tim", now="Tim's birthday is 6 March", id=earlier["id"])
    assert done["changed"]


def test_an_id_stays_the_id_of_its_line_when_other_lines_are_added(memory: Brain) -> None:
    old = "- **2026-03-01** | call — Alice keeps bees.\n- **2026-02-01** | call — Alice likes tea."
    run(memory, "put", slug="people/alice", timeline_append=old)
    chosen = line_id("Alice keeps bees.", "people/alice", "entry")
    run(memory, "timeline-add", slug="people/alice", date="2026-04-01", summary="Alice met Bob.")
    record = run(memory, "correct", about="Alice", id=chosen, now="Alice keeps wasps.")
    assert [row["says"] for row in record["replaced"]] == ["Alice keeps bees."]
    with pytest.raises(NotFound, match="Call without id"):
        run(memory, "correct", about="Alice", id=chosen, now="Alice keeps ants.")


@pytest.mark.parametrize("status", ["status: open\n", ""])
@pytest.mark.parametrize("outcome", ["done", "cancelled"])
def test_a_page_that_is_a_promise_is_done_or_cancelled_as_a_whole(
    brain: Brain, outcome: str, status: str
) -> None:
    text = f"---\ntitle: Training outline for Ada\ntype: commitment\n{status}---\nPromised on 2 May."
    run(brain, "put", slug="commitments/outline", content=text)
    run(brain, "put", slug="people/ada", content="---\nstatus: open\n---\n# Ada\n\nA person.")
    record = run(brain, "correct", about="Training outline for Ada", now=outcome)
    assert record["changed"]
    assert run(brain, "get", slug="commitments/outline")["frontmatter"]["status"] == outcome
    assert not run(brain, "correct", about="people/ada", now=outcome)["changed"]
    assert run(brain, "get", slug="people/ada")["frontmatter"]["status"] == "open"

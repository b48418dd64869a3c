"""Which predicates have one value at a time."""

import re
from pathlib import Path

import pytest

from quaid.model.facts import PREDICATE_SYNONYMS, SINGLE_VALUED, canonical_predicate

DOCS = Path(__file__).parents[2] / "docs" / "truth.md"


@pytest.mark.parametrize(
    "field",
    [
        *("domain", "hq", "stage", "headcount", "location"),  # company
        *("status", "expected_close", "value"),  # deal
        *("made_at", "owner", "revisit_at", "due", "priority"),  # decision, commitment, action_item
        *("date", "linkedin", "twitter", "score", "origin", "confidence"),  # journal, person, original
    ],
)
def test_fields_with_a_single_value_are_single_valued(field: str) -> None:
    assert canonical_predicate(field) in SINGLE_VALUED


@pytest.mark.parametrize(
    "field",
    ["roles", "affiliations", "contact", "funding", "parties", "stakeholders", "tags", "committed_to"],
)
def test_fields_that_hold_lists_may_have_many_values(field: str) -> None:
    assert canonical_predicate(field) not in SINGLE_VALUED


def test_no_single_valued_predicate_is_another_word_for_something_else() -> None:
    assert not SINGLE_VALUED & PREDICATE_SYNONYMS.keys()


def test_the_documentation_names_all_of_them() -> None:
    listed = re.search(r"One value at a time: ([^.]+)\.", DOCS.read_text(encoding="utf-8"))
    assert listed
    assert {word.strip() for word in listed[1].split(",")} == SINGLE_VALUED

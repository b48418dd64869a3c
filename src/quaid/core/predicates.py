"""Which predicates have one value at a time, which mean the same, and which end together.

Knows the words; the tables below are all of it, and docs/truth.md tells them to people. A predicate that stands in
none of them may have any number of values, so it never makes a contradiction.
"""

from functools import lru_cache

from quaid.core.links import RELATED, relationship_of
from quaid.errors import InvalidArgument

SINGLE = frozenset(
    {
        # people
        *("works_at", "reports_to", "role", "lives_in", "born_on", "born_in", "died_on", "married_to"),
        *("nationality", "phone", "email", "birthday", "linkedin", "twitter", "score", "location"),
        # who leads what: one at a time, both ways round
        *("is_ceo_of", "ceo"),
        # companies, projects, deals
        *(
            "headquartered_in",
            "founded_on",
            "status",
            "stage",
            "owner",
            "owned_by",
            "valuation",
            "employee_count",
            "domain",
            "value",
            "expected_close",
        ),
        *("due_on", "decided_by", "priority", "price", "deadline"),
        # decisions, commitments, journals, one's own ideas
        *("made_at", "revisit_at", "date", "origin", "confidence"),
    }
)
"""One value at a time. Age is left out on purpose: it grows by itself; write born_on. The fields of page types that
hold a single value are all here; lists (roles, affiliations, funding, parties, stakeholders) are not."""

SAME: dict[str, str] = {
    **dict.fromkeys(
        ("works_for", "employed_by", "employee_of", "employer", "employed_at", "is_employed_by", "job_at"),
        "works_at",
    ),
    **dict.fromkeys(("is_ceo", "ceo_of", "ceo_at", "is_ceo_at", "chief_executive_of"), "is_ceo_of"),
    **dict.fromkeys(("has_ceo", "chief_executive", "led_by_ceo"), "ceo"),
    **dict.fromkeys(("title", "job_title", "position", "has_role"), "role"),
    **dict.fromkeys(
        ("resides_in", "residence", "home_city", "lives_at", "living_in", "city", "home"), "lives_in"
    ),
    **dict.fromkeys(("born", "birth_date", "date_of_birth", "birthdate"), "born_on"),
    **dict.fromkeys(("birthplace", "place_of_birth"), "born_in"),
    **dict.fromkeys(("died", "date_of_death"), "died_on"),
    **dict.fromkeys(("spouse", "spouse_of", "husband", "wife", "husband_of", "wife_of"), "married_to"),
    **dict.fromkeys(("hq", "headquarters", "hq_in", "based_in", "headquarters_in"), "headquartered_in"),
    **dict.fromkeys(("headcount", "number_of_employees", "team_size", "staff_count"), "employee_count"),
    **dict.fromkeys(("located_in", "located_at"), "location"),
    **dict.fromkeys(("close_date", "closes_on", "expected_close_date"), "expected_close"),
    **dict.fromkeys(("deal_value",), "value"),
    **dict.fromkeys(("made_on", "decided_on", "decided_at"), "made_at"),
    **dict.fromkeys(("revisit_on", "review_on", "review_at"), "revisit_at"),
    **dict.fromkeys(("founded_in", "founding_date", "founding_year"), "founded_on"),
    **dict.fromkeys(("manager", "managed_by", "boss", "line_manager"), "reports_to"),
    **dict.fromkeys(("parent_company", "subsidiary_of", "parent"), "owned_by"),
    **dict.fromkeys(("has_status", "state"), "status"),
    **dict.fromkeys(("funding_stage", "round_stage"), "stage"),
    **dict.fromkeys(("due", "due_date"), "due_on"),
    **dict.fromkeys(("on_board_of", "board_member_of", "sits_on_board_of", "director_of"), "board_member"),
    **dict.fromkeys(("advisor_to", "advisor_of", "adviser_to", "adviser_of"), "advises"),
    **dict.fromkeys(("student_at", "attends", "studies"), "studies_at"),
    **dict.fromkeys(("is_member_of", "belongs_to"), "member_of"),
}
"""Other words for the same."""

INVERSE = {"is_ceo_of": "ceo", "ceo": "is_ceo_of", "married_to": "married_to"}
"""What a fact says about its object: who leads a company is also the one whom the company is led by."""

POSTS = (
    "ceo",
    "cto",
    "cfo",
    "coo",
    "cmo",
    "cpo",
    "chair",
    "president",
    "head",
    "vp",
    "engineer",
    "manager",
    "intern",
)

_FAMILIES = {
    "works_at": "work",
    "role_at": "work",
    RELATED: "work",
    "member_of": "work",
    "studies_at": "work",
    "volunteers_at": "work",
    "reports_to": "reports_to",
    "board_member": "board",
    "advises": "advice",
    "lives_in": "home",
    "location": "home",
    "headquartered_in": "home",
    "married_to": "marriage",
    "owns": "property",
    "owner_of": "property",
    "owned_by": "parent",
}


@lru_cache(maxsize=4096)
def canonical(predicate: str) -> str:
    """A predicate or relationship by the word that stands for all its spellings."""
    spelled = relationship_of(predicate)
    return SAME.get(spelled, spelled)


def single_valued(setting: str | None) -> frozenset[str]:
    """The predicates with one value at a time: ours, with those of the setting, without those that it calls many.

    The setting is a list as in `favourite_colour, works_at:many`.
    """
    added: set[str] = set()
    removed: set[str] = set()
    for word in (setting or "").split(","):
        name, _, number = word.partition(":")
        if canonical(name):
            (removed if number.strip() == "many" else added).add(canonical(name))
    return (SINGLE | added) - removed


def check_setting(key: str, value: str) -> None:
    """Refuse a setting of which a part says nothing."""
    for word in value.split(",") if value.strip() else ():
        name, colon, number = word.partition(":")
        if not canonical(name) or (colon and number.strip() != "many"):
            raise InvalidArgument(
                name=key,
                problem=f"{word.strip()!r} is no predicate; write them as in 'colour, works_at:many'",
            )


@lru_cache(maxsize=4096)
def family(predicate: str) -> str:
    """What a predicate is about, as far as an end of it goes: work, board, home, …; "" for what does not end.

    Whoever leaves a company leaves every post there; who leaves a post may stay with the company.
    """
    name = canonical(predicate)
    return "post" if is_post(name) else _FAMILIES.get(name, "")


def is_post(name: str) -> bool:
    """Whether a predicate names a post somewhere: is_ceo_of, cto_at, head_of_sales_at."""
    bare = name.removeprefix("is_")
    return bare.endswith(("_of", "_at")) and bare.split("_", 1)[0] in POSTS


def post(name: str) -> str:
    """The post that a predicate names: ceo, of is_ceo_of."""
    return canonical(name).removeprefix("is_").split("_", 1)[0] if is_post(canonical(name)) else ""

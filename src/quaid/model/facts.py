"""Facts: validation, canonical values and predicates, names resolved to pages, and the quoted source line."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument
from quaid.model import dates, slug as slugs
from quaid.model.dates import find_dates, whole_date
from quaid.model.links import RELATED, GraphLink, normalize_relationship
from quaid.model.plain_text import UNSPACED_LETTERS, replace_wiki_links, shorten, strip_markdown
from quaid.model.slug import LONGEST_NAME, NAME_KINDS, fold_name

ASSERTED_BY = ("agent", "manual", "import", "enrichment")
"""Allowed values of asserted_by, as in the CHECK constraint of the table `assertions`."""

FACT_TEXT_LIMITS = {
    "subject": LONGEST_NAME,
    "predicate": 100,
    "object": 1_000,
    "source_ref": 1_000,
    "evidence_text": 4_000,
}
"""Maximum number of characters of each field."""
_SIGNS = re.compile(r"[+#%$€£]")
_COMPANY_SUFFIX = re.compile(
    r"(?: (?:inc|llc|ltd|gmbh|corp|corporation|co|company|limited|plc|ag|asa|as|ab|oy|bv|nv|sa|srl))+\Z"
)


LONGEST_VALUE = 60
_MONTH = r"[a-z]{3,9}\.?"
_DAY_OF_YEAR = re.compile(
    rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})"
    rf"|(?P<us_month>{_MONTH})\s+(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?",
    re.IGNORECASE,
)
_CURRENCIES = {
    **dict.fromkeys(("$", "US$", "USD", "DOLLARS"), "USD"),
    **dict.fromkeys(("€", "EUR", "EURO", "EUROS"), "EUR"),
    **dict.fromkeys(("£", "GBP", "POUNDS"), "GBP"),
    **{code: code for code in ("NOK", "SEK", "DKK", "CHF", "JPY", "CAD", "AUD")},
}
_CURRENCY = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=len, reverse=True))
_MULTIPLIERS = {
    **dict.fromkeys(("k", "thousand"), 3),
    **dict.fromkeys(("m", "mn", "mio", "million"), 6),
    **dict.fromkeys(("b", "bn", "billion"), 9),
}
_NUMBER = re.compile(
    rf"(?P<sign>-)?(?P<before>{_CURRENCY})?\s*"
    r"(?P<number>(?:[1-9]\d{0,2}(?:[,' \u00a0\u202f]\d{3})+|0|[1-9]\d*)(?:\.\d+)?)"
    rf"\s*(?P<times>{'|'.join(sorted(_MULTIPLIERS, key=len, reverse=True))})?\s*(?P<after>{_CURRENCY})?",
    re.IGNORECASE,
)
_PHONE = re.compile(r"\+?[\d(][\d ().\u00a0-]*\d")
_NUMERIC_DATE = re.compile(r"\d{1,4}[.-]\d{1,2}[.-]\d{1,4}")


class FactInput(NamedTuple):
    """A validated and normalized fact to be stored."""

    subject: str
    predicate: str
    object: str
    valid_from: str | None = None
    valid_until: str | None = None
    confidence: float = 1.0
    asserted_by: str = "agent"
    source_ref: str = ""
    evidence_text: str = ""
    supersedes_id: int | None = None


def check_fact(values: dict[str, Any], where: str, subject: str = "") -> FactInput:
    """Validate a fact from a request and return it.

    `where` is the position of the fact in the request. Errors name the position and the field, as in
    `assertions[2].valid_from`. `subject` is the default subject, the title of the page.
    """
    if "source" in values and "source_ref" not in values:  # operations call this field `source`
        values = {"source_ref" if name == "source" else name: value for name, value in values.items()}
    for name in values:
        if name not in FactInput._fields:
            fields = ", ".join(FactInput._fields)
            raise InvalidArgument(
                name=_field_path(where, name), problem=f"is no part of a fact; there are: {fields}"
            )
    present = {name: value for name, value in values.items() if value is not None}
    if subject:
        present.setdefault("subject", subject)
    parts: dict[str, Any] = {
        "subject": _name_field(present, "subject", where),
        "predicate": _predicate_field(present, where),
        "object": _name_field(present, "object", where),
        "source_ref": _text_field(present, "source_ref", where),
        "evidence_text": _text_field(present, "evidence_text", where),
        "asserted_by": present.get("asserted_by", "agent"),
        "confidence": _check_confidence(present.get("confidence", 1.0), _field_path(where, "confidence")),
        "supersedes_id": _check_fact_id(present.get("supersedes_id"), _field_path(where, "supersedes_id")),
    }
    if parts["asserted_by"] not in ASSERTED_BY:
        raise InvalidArgument(
            name=_field_path(where, "asserted_by"), problem=f"must be one of {', '.join(ASSERTED_BY)}"
        )
    for name in ("valid_from", "valid_until"):
        if name in present:
            parts[name] = dates.check_date(present[name], _field_path(where, name))
    dates.check_interval(parts.get("valid_from"), parts.get("valid_until"), _field_path(where, "valid_until"))
    return FactInput(**parts)


def _field_path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _text_field(values: dict[str, Any], name: str, where: str) -> str:
    value = values.get(name, "")
    if isinstance(value, int | float) and not isinstance(value, bool) and name == "object":
        value = str(value)
    if not isinstance(value, str):
        raise InvalidArgument(name=_field_path(where, name), problem="must be text")
    if len(value) > FACT_TEXT_LIMITS[name]:
        raise InvalidArgument(
            name=_field_path(where, name),
            problem=f"has {len(value):,} characters; {FACT_TEXT_LIMITS[name]:,} is the most",
        )
    return value.strip()


def _name_field(values: dict[str, Any], name: str, where: str) -> str:
    value = " ".join(replace_wiki_links(_text_field(values, name, where)).split())
    if not value:
        raise InvalidArgument(
            name=_field_path(where, name), problem="is missing" if name not in values else "is empty"
        )
    if name == "subject" and not fold_name(value):
        raise InvalidArgument(name=_field_path(where, name), problem=f"{value!r} holds no letter or digit")
    return value


def _predicate_field(values: dict[str, Any], where: str) -> str:
    text = _text_field(values, "predicate", where)
    predicate = normalize_relationship(text)
    if not predicate:
        problem = "is missing; write it as in works_at" if not text else f"{text!r} holds no letter or digit"
        raise InvalidArgument(name=_field_path(where, "predicate"), problem=problem)
    return predicate


def _check_confidence(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(name=name, problem="must be a number from 0 to 1")
    return float(value)


def _check_fact_id(value: Any, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidArgument(name=name, problem="must be the id of a fact, as `quaid facts` shows it")
    return value


def object_key(text: str) -> str:
    """Return the object of a fact in a form for comparison. Signs are kept, so that `C++` and `C#` differ."""
    value = value_key(text)
    if value:
        return value
    signs = "".join(_SIGNS.findall(text))
    folded = (
        fold_name(text)
        if len(text) <= LONGEST_NAME
        else " ".join(re.split(r"[\W_]+", text.casefold())).strip()
    )
    folded = _COMPANY_SUFFIX.sub("", folded) if " " in folded else folded
    return f"{folded.removeprefix('the ')} {signs}".strip() or text.casefold()


def value_key(text: str) -> str:
    """Return the canonical form of a number, amount of money, phone number or date; "" for other text."""
    text = text.strip()
    if len(text) > LONGEST_VALUE or not any(map(str.isdigit, text)):
        return ""
    return _day_key(text) or _number_key(text) or _phone_key(text)


def _day_key(text: str) -> str:
    date = whole_date(text)
    if date and date.exact:
        return date.first
    match = _DAY_OF_YEAR.fullmatch(text)
    if not match:
        return ""
    year = find_dates(f"{match['day'] or match['us_day']} {match['month'] or match['us_month']} 2000")
    return year[0].first[5:] if year and year[0].exact else ""


def _number_key(text: str) -> str:
    from decimal import Decimal

    match = _NUMBER.fullmatch(text)
    if not match:
        return ""
    before, after = (_CURRENCIES.get((match[name] or "").upper(), "") for name in ("before", "after"))
    times = match["times"] or ""
    money = before or after
    if (before and after and before != after) or (times in ("m", "b") and not money):
        return ""  # "5 m" means metres
    digits = re.sub(r"[,' \u00a0\u202f]", "", match["number"])
    value = Decimal(digits) * 10 ** _MULTIPLIERS.get(times.lower(), 0)
    return f"{match['sign'] or ''}{value.normalize():f} {money}".strip()


def _phone_key(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    if not _PHONE.fullmatch(text) or not 7 <= len(digits) <= 15 or _NUMERIC_DATE.fullmatch(text):
        return ""
    return f"+{digits}" if text.startswith("+") else f"+{digits[2:]}" if text.startswith("00") else digits


def join_sources(one: str, other: str) -> str:
    """Join the sources of two equal facts with "; ", without duplicates. `one` may already be such a list."""
    return "; ".join(dict.fromkeys(filter(None, [*one.split("; "), other])))


def join_evidence(one: str, other: str) -> str:
    """Join the evidence of two equal facts with " / "; return `one` unchanged if it contains `other`."""
    return one if other in one else f"{one} / {other}".removeprefix(" / ")


def fact_needles(evidence: str, value: str) -> tuple[str, ...]:
    """Return the strings by which a fact can be found in a page: its pieces of evidence, else its object."""
    return tuple(dict.fromkeys(filter(None, (evidence, *evidence.split(" / "))))) or (value,)


def is_valid_on(since: str | None, until: str | None, day: str) -> bool:
    """Return True if the interval from `since` up to but not including `until` contains the day."""
    return (since is None or since <= day) and (until is None or day < until)


SINGLE_VALUED = frozenset(
    # First the predicates of people, then those of a company and its CEO in both directions, then those of
    # companies, projects and so on.
    """works_at reports_to role lives_in born_on born_in died_on married_to nationality phone email birthday linkedin
    twitter score location is_ceo_of ceo headquartered_in founded_on status stage owner owned_by valuation
    employee_count domain value expected_close due_on decided_by priority price deadline made_at revisit_at date
    origin confidence""".split()
)
"""Predicates that have one value at a time.

Age is not included, because it changes without a new fact; born_on is used instead. All single-valued fields
of the page types are included. Lists (roles, affiliations, funding, parties, stakeholders) are not.
"""

_SINGLE_VALUED_ENDINGS = SINGLE_VALUED | frozenset(
    """budget cost salary rent fee total amount count size capacity limit quota target goal version phase state health
    lead address title start end eta timezone currency color colour weight height length width duration year
    threshold share rate percentage headcount ceo cto cfo coo chair president manager
    successor predecessor default license licence provider vendor supplier host database region office site plan tier
    employer area seats period premium mileage interval frequency kickoff live ends""".split()
)
_SINGLE_VALUED_BEGINNINGS = frozenset("current primary main latest next preferred favourite favorite".split())
_MANY_VALUED_WORDS = frozenset("history log past previous former other additional alternative".split())
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty".split()
)
_QUANTITY = re.compile(
    rf"(?:about |around |approx\.? |~ ?)?(?:{_CURRENCY})?\s*(?:-?\d[\d.,' \u00a0]*+|{'|'.join(_NUMBER_WORDS)})\s*"
    r"(?P<unit>%|(?:[^\W\d_]+[23²³]?\.?(?:/[^\W\d_]+)?)(?: [^\W\d_]+)?|°[CF])?",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\([^()]*\)\s*\Z")

MIN_SUBJECTS_SHOWN = 5
"""Stored facts show whether a predicate is single-valued only if at least this many subjects have it."""

MAX_SHARE_WITH_MANY = 0.1
"""A predicate is single-valued if at most this share of its subjects has several values at a time."""

PREDICATE_SYNONYMS: dict[str, str] = {
    synonym: predicate
    for predicate, synonyms in {
        "works_at": "works_for employed_by employee_of employer employed_at is_employed_by job_at",
        "is_ceo_of": "is_ceo ceo_of ceo_at is_ceo_at chief_executive_of",
        "ceo": "has_ceo chief_executive led_by_ceo",
        "role": "title job_title position has_role",
        "lives_in": "resides_in residence home_city lives_at living_in city home",
        "born_on": "born birth_date date_of_birth birthdate",
        "born_in": "birthplace place_of_birth",
        "died_on": "died date_of_death",
        "married_to": "spouse spouse_of husband wife husband_of wife_of",
        "headquartered_in": "hq headquarters hq_in based_in headquarters_in",
        "employee_count": "headcount number_of_employees team_size staff_count",
        "location": "located_in located_at",
        "expected_close": "close_date closes_on expected_close_date",
        "value": "deal_value",
        "made_at": "made_on decided_on decided_at",
        "revisit_at": "revisit_on review_on review_at",
        "founded_on": "founded_in founding_date founding_year",
        "reports_to": "manager managed_by boss line_manager",
        "owned_by": "parent_company subsidiary_of parent",
        "status": "has_status state",
        "stage": "funding_stage round_stage",
        "due_on": "due due_date",
        "board_member": "on_board_of board_member_of sits_on_board_of director_of",
        "advises": "advisor_to advisor_of adviser_to adviser_of",
        "studies_at": "student_at attends studies",
        "member_of": "is_member_of belongs_to",
    }.items()
    for synonym in synonyms.split()
}
"""Maps synonyms to the canonical predicate."""

INVERSE_PREDICATES = {"is_ceo_of": "ceo", "ceo": "is_ceo_of", "married_to": "married_to"}
"""Maps a predicate to the predicate that states the same relation with subject and object swapped."""

POSTS = tuple("ceo cto cfo coo cmo cpo chair president head vp engineer manager intern".split())

_FAMILIES = {
    RELATED: "work",
    **dict.fromkeys(("works_at", "role_at", "member_of", "studies_at", "volunteers_at"), "work"),
    **dict.fromkeys(("lives_in", "location", "headquartered_in"), "home"),
    **dict.fromkeys(("owns", "owner_of"), "property"),
    "reports_to": "reports_to",
    "board_member": "board",
    "advises": "advice",
    "married_to": "marriage",
    "owned_by": "parent",
}


@lru_cache(maxsize=4096)
def canonical_predicate(predicate: str) -> str:
    """Return the canonical form of a predicate or relationship."""
    spelled = normalize_relationship(predicate)
    return PREDICATE_SYNONYMS.get(spelled, spelled)


def predicate_spellings(predicate: str) -> list[str]:
    """Return a canonical predicate and its synonyms."""
    return [predicate, *(synonym for synonym, name in PREDICATE_SYNONYMS.items() if name == predicate)]


def single_valued_predicates(setting: str | None) -> frozenset[str]:
    """Return the default single-valued predicates and those in the setting, except predicates marked `:many`.

    The setting is a list such as `favourite_colour, works_at:many`.
    """
    marks = _marked_predicates(setting)
    added = {name for name, is_many in marks if not is_many and name}
    return (SINGLE_VALUED | added) - {name for name, is_many in marks if is_many}


def _marked_predicates(setting: str | None) -> list[tuple[str, bool]]:
    """Return the canonical predicates of the setting, each with True if it is marked `:many`."""
    words = (word.partition(":") for word in (setting or "").split(","))
    return [(canonical_predicate(name), number.strip() == "many") for name, _, number in words]


def is_single_valued(predicate: str, listed: frozenset[str], setting: str | None) -> bool:
    """Return True if a canonical predicate is listed as single-valued, or its name implies it.

    The last word of the name decides: migration_deadline has one value, because deadline has one value. In a name
    such as head_of_operations or number_of_seats, the first word decides. "current" or "main" as the first word
    implies one value, "past" or "history" anywhere several. The name does not count if the setting marks the
    predicate `:many`.
    """
    if predicate in listed:
        return True
    if is_marked_many(predicate, setting):
        return False
    words = predicate.split("_")
    if not _MANY_VALUED_WORDS.isdisjoint(words):
        return False
    if words[1:2] == ["of"] and len(words) > 2 and words[-1] not in ("of", "at"):
        return words[0] in ("head", "lead", "manager", "owner", "chief", "chair", "number", "share", "rate")
    return words[-1] in _SINGLE_VALUED_ENDINGS or words[0] in _SINGLE_VALUED_BEGINNINGS


def is_marked_many(predicate: str, setting: str | None) -> bool:
    """Return True if the setting allows a predicate to have many values."""
    return (predicate, True) in _marked_predicates(setting)


def have_same_kind(old: str, new: str) -> bool:
    """Return True if two values are both dates, or both quantities with compatible units.

    Units are compatible if they are equal, or if one value has none. A remark in parentheses is ignored. "11 percent
    in the first summer" is not a quantity, because it also states a time.
    """
    old, new = _REMARK.sub("", old).strip(), _REMARK.sub("", new).strip()
    days = [bool(_day_key(text)) for text in (old, new)]
    if any(days):
        return all(days)
    matches = [_QUANTITY.fullmatch(text) for text in (old, new)]
    units = {
        _UNIT_NAMES.get(unit, unit) for match in matches if match and (unit := (match["unit"] or "").lower())
    }
    return all(matches) and len(units) <= 1


_UNIT_NAMES = {
    "percent": "%",
    "per cent": "%",
    "prozent": "%",
    "euro": "eur",
    "euros": "eur",
    "dollars": "usd",
}


def shows_single_value(values_by_subject: Mapping[str, set[str]], old: str, new: str) -> bool:
    """Return True if the stored facts of a predicate show that a subject has one value at a time.

    `values_by_subject` maps each subject to its current values. At least MIN_SUBJECTS_SHOWN subjects are needed, of
    which at most MAX_SHARE_WITH_MANY may have several values. If `old` and `new` are quantities or dates, the result
    is False, because most of these are values of events, such as the time of a race.
    """
    if have_same_kind(old, new):
        return False
    several = sum(len(values) > 1 for values in values_by_subject.values())
    enough = len(values_by_subject) >= MIN_SUBJECTS_SHOWN
    return enough and several <= MAX_SHARE_WITH_MANY * len(values_by_subject)


def check_predicate_setting(key: str, value: str) -> None:
    """Raise InvalidArgument if the setting contains an invalid item."""
    for word in value.split(",") if value.strip() else ():
        name, colon, number = word.partition(":")
        if not canonical_predicate(name) or (colon and number.strip() != "many"):
            raise InvalidArgument(
                name=key,
                problem=f"{word.strip()!r} is no predicate; write them as in 'colour, works_at:many'",
            )


@lru_cache(maxsize=4096)
def predicate_family(predicate: str) -> str:
    """Return the family of a predicate: work, post, board, home and so on; "" if it belongs to none.

    If someone leaves a job, school or home, callers end the relations of certain families: leaving a company ends
    every post there, but leaving a post does not end the employment.
    """
    name = canonical_predicate(predicate)
    return "post" if is_post_predicate(name) else _FAMILIES.get(name, "")


def is_post_predicate(name: str) -> bool:
    """Return True if a predicate names a post: is_ceo_of, cto_at, head_of_sales_at."""
    bare = name.removeprefix("is_")
    return bare.endswith(("_of", "_at")) and bare.split("_", 1)[0] in POSTS


def post_of_predicate(name: str) -> str:
    """Return the post that a predicate names, such as ceo for is_ceo_of; "" if it names no post."""
    name = canonical_predicate(name)
    return name.removeprefix("is_").split("_", 1)[0] if is_post_predicate(name) else ""


_SLUG = re.compile(rf"[{slugs.CHARACTERS}]+(?:/[{slugs.CHARACTERS}]+)+")

EntityRef = int | str
"""The id of a page, or the normalized name of an entity without a page."""


class PageInfo(NamedTuple):
    """A page without its text."""

    slug: str
    title: str
    type: str


class SnapshotFact(NamedTuple):
    """A row of the assertions table, and True if a later fact supersedes it.

    The fields have the same order as the columns of the query that reads the rows.
    """

    id: int
    page_id: int
    subject: str
    subject_key: str
    predicate: str
    object: str
    since: str | None
    until: str | None
    source: str
    evidence: str
    recorded_at: str
    superseded: bool


class StalePage(NamedTuple):
    """A page whose timeline is newer by `days` than the last change or review of its compiled truth."""

    page_id: int
    truth_updated_at: str
    timeline_updated_at: str
    reviewed_at: str
    days: int


class NameIndex:
    """Maps normalized names to pages."""

    def __init__(self, rows: Iterable[tuple[str, int, str]]) -> None:
        self._pages: dict[str, list[tuple[int, int]]] = {}
        for name, page_id, kind in rows:
            self._pages.setdefault(name, []).append((NAME_KINDS.index(kind), page_id))
        self._names: dict[int, set[str]] = {}

    def page(self, key: str, own: int | None = None) -> int | None:
        """Return the id of the page with a normalized name; None if the name is unknown or ambiguous.

        If several pages have the name, `own` is preferred, then the page whose kind of name comes first in
        NAME_KINDS.
        """
        candidates = self._pages.get(key)
        if not candidates:
            return None
        if len(candidates) == 1:
            return candidates[0][1]
        if any(page_id == own for _, page_id in candidates):
            return own
        best = min(kind for kind, _ in candidates)
        pages = {page_id for kind, page_id in candidates if kind == best}
        return pages.pop() if len(pages) == 1 else None

    def of(self, page_id: int) -> set[str]:
        """Return the normalized names of a page."""
        if not self._names:
            for name, pages in self._pages.items():
                for _, page in pages:
                    self._names.setdefault(page, set()).add(name)
        return self._names.get(page_id, set())


class Snapshot(NamedTuple):
    """The data that contradiction detection works on."""

    pages: Mapping[int, PageInfo]
    names: NameIndex
    facts: list[SnapshotFact]
    links: list[GraphLink]
    texts: Iterable[tuple[int, str, str]]
    """Id, compiled truth (the text above the timeline) and timeline of each page."""
    stale: list[StalePage]
    single: frozenset[str]
    today: str


class ResolvedFact(NamedTuple):
    """A fact with its canonical predicate, and with subject and object resolved to pages where possible."""

    fact: SnapshotFact
    predicate: str
    subject: EntityRef
    object: EntityRef
    about: str
    """The subject in the form in which it is displayed."""
    says: str
    """The object in the form in which it is displayed."""

    @property
    def since(self) -> str | None:
        return self.fact.since

    @property
    def until(self) -> str | None:
        return self.fact.until


def resolve_facts(world: Snapshot) -> list[ResolvedFact]:
    """Return the facts that are not superseded, with names resolved to pages."""
    subjects: dict[tuple[str, int], tuple[EntityRef, str]] = {}
    objects: dict[str, tuple[EntityRef, str]] = {}
    facts = []
    for fact in world.facts:
        if fact.superseded:
            continue
        about = subjects.get((fact.subject_key, fact.page_id))
        if about is None:
            page = world.pages.get(fact.page_id)
            subject = resolve_name(world.names, fact.subject_key, fact.page_id, page)
            about = subjects[fact.subject_key, fact.page_id] = (
                subject,
                entity_title(world, subject, fact.subject),
            )
        meant = objects.get(fact.object)
        if meant is None:
            meant = objects[fact.object] = _resolve_object(world, fact.object)
        facts.append(
            ResolvedFact(fact, canonical_predicate(fact.predicate), about[0], meant[0], about[1], meant[1])
        )
    return facts


def _resolve_object(world: Snapshot, text: str) -> tuple[EntityRef, str]:
    """Return the entity that an object denotes, and the text to display, which for a slug is the page's title."""
    name = text.rpartition("::")[2]
    page_id = world.names.page(fold_name(name))
    if page_id is None:
        return object_key(name.rpartition("/")[2] if _SLUG.fullmatch(name) else text), text
    page = world.pages.get(page_id)
    return page_id, page.title if page and page.slug == name else text


def resolve_name(names: NameIndex, key: str, page_id: int, page: PageInfo | None) -> EntityRef:
    """Return the entity that a normalized name denotes on a page.

    On the page of a person, the first or last name of that person is sufficient.
    """
    resolved = names.page(key, page_id)
    if resolved is not None:
        return resolved
    return page_id if page and page.type == "person" and key in person_name_parts(page.title) else key


def person_name_parts(title: str) -> set[str]:
    """Return the first and last word of the title of a person's page, normalized."""
    words = fold_name(title).split()
    return {words[0], words[-1]} if words else set()


def entity_title(world: Snapshot, subject: EntityRef, otherwise: str) -> str:
    page = world.pages.get(subject) if isinstance(subject, int) else None
    return page.title if page else otherwise


LONGEST_QUOTE = 300


class QuotedLine(NamedTuple):
    """A line of a page, quoted as the source of a fact."""

    part: str
    """The part of the page that contains the line: truth (the text above the timeline) or timeline."""
    line: int | None
    """Line number from 1; None if the line is in an earlier version of the text."""
    quote: str


def find_quote(truth: str, timeline: str, needles: tuple[str, ...]) -> QuotedLine | None:
    """Return the first line that contains a needle as whole words, or None.

    The needles are tried in order, each in the compiled truth first. Case is ignored.
    """
    for needle in needles:
        needle_text = _normalize_space(needle)
        if not needle_text:
            continue
        for part, text in (("truth", truth), ("timeline", timeline)):
            line = _line_with(text, needle_text)
            if line:
                return QuotedLine(part, line, quote_line(text.split("\n")[line - 1]))
    return None


def _line_with(text: str, needle: str) -> int:
    low = text.lower()
    at = _find_whole_words(low, needle)
    if at >= 0:
        return low.count("\n", 0, at) + 1
    if " " not in needle:
        return 0
    tidy = _normalize_space(text)  # the words may span a line break
    at = _find_whole_words(tidy, needle)
    if at < 0:
        return 0
    words = tidy.count(" ", 0, at)
    for number, line in enumerate(low.split("\n"), 1):
        count = len(line.split())
        if words < count:
            return number
        words -= count
    return 0


def _find_whole_words(text: str, needle: str) -> int:
    """Return the offset of a match at word boundaries, or -1.

    For example, "active" does not match in "inactive".
    """
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        if not (
            _is_same_word(text[at - 1 : at], needle[0]) or _is_same_word(needle[-1], text[end : end + 1])
        ):
            return at
        at = text.find(needle, at + 1)
    return -1


def _is_same_word(before: str, after: str) -> bool:
    """Return True if two adjacent characters belong to one word.

    In scripts without spaces between words, each character counts as a word. Marks, such as the vowel signs
    of Devanagari, belong to the letter before them.
    """
    return all(
        bool(character)
        and unicodedata.category(character)[0] in "LNM"
        and not re.match(f"[{UNSPACED_LETTERS}]", character)
        for character in (before, after)
    )


def quote_line(line: str) -> str:
    """Return a line without markup, shortened to LONGEST_QUOTE."""
    return shorten(strip_markdown(line.lstrip(" \t>#-*+")), LONGEST_QUOTE)


def _normalize_space(text: str) -> str:
    return " ".join(text.lower().split())

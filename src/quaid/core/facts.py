"""A fact as somebody gives it: subject, predicate, object, since when, until when, who said so and in which words.

Knows how a fact is written and when two spellings say the same. Does not know which facts there are.
"""

import re
from typing import Any, NamedTuple

from quaid.core import dates
from quaid.core.links import relationship_of
from quaid.core.names import LONGEST, fold
from quaid.core.told_dates import dates_in
from quaid.errors import InvalidArgument

SPEAKERS = ("agent", "manual", "import", "enrichment")
"""Who can say so, as the table knows them."""

LONGEST_TEXT = {
    "subject": LONGEST,
    "predicate": 100,
    "object": 1_000,
    "source_ref": 1_000,
    "evidence_text": 4_000,
}
"""Characters of each part."""

_WIKI_LINK = re.compile(r"\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")
_SIGNS = re.compile(r"[+#%$€£]")
_COMPANY = re.compile(
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
    "$": "USD",
    "US$": "USD",
    "USD": "USD",
    "DOLLARS": "USD",
    "€": "EUR",
    "EUR": "EUR",
    "EURO": "EUR",
    "EUROS": "EUR",
    "£": "GBP",
    "GBP": "GBP",
    "POUNDS": "GBP",
    **{each: each for each in ("NOK", "SEK", "DKK", "CHF", "JPY", "CAD", "AUD")},
}
_CURRENCY = "|".join(re.escape(each) for each in sorted(_CURRENCIES, key=len, reverse=True))
_TIMES = {
    **dict.fromkeys(("k", "thousand"), 3),
    **dict.fromkeys(("m", "mn", "mio", "million"), 6),
    **dict.fromkeys(("b", "bn", "billion"), 9),
}
_NUMBER = re.compile(
    rf"(?P<sign>-)?(?P<before>{_CURRENCY})?\s*"
    r"(?P<number>(?:[1-9]\d{0,2}(?:[,' \u00a0\u202f]\d{3})+|0|[1-9]\d*)(?:\.\d+)?)"
    rf"\s*(?P<times>{'|'.join(sorted(_TIMES, key=len, reverse=True))})?\s*(?P<after>{_CURRENCY})?",
    re.IGNORECASE,
)
_PHONE = re.compile(r"\+?[\d(][\d ().\u00a0-]*\d")
_NUMERIC_DATE = re.compile(r"\d{1,4}[.-]\d{1,2}[.-]\d{1,4}")


class Given(NamedTuple):
    """A fact that somebody wants kept. The parts are checked and tidy."""

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


def check(values: dict[str, Any], where: str, subject: str = "") -> Given:
    """A fact of the wire as a value, or an error that names its field, as in `assertions[2].valid_from`.

    `subject` is who it is about when the fact names nobody: the title of its page.
    """
    for name in values:
        if name not in Given._fields:
            known = ", ".join(Given._fields)
            raise InvalidArgument(name=_at(where, name), problem=f"is no part of a fact; there are: {known}")
    given = {name: value for name, value in values.items() if value is not None}
    if subject:
        given.setdefault("subject", subject)
    parts: dict[str, Any] = {
        "subject": _name(given, "subject", where),
        "predicate": _predicate(given, where),
        "object": _name(given, "object", where),
        "source_ref": _text(given, "source_ref", where),
        "evidence_text": _text(given, "evidence_text", where),
        "asserted_by": given.get("asserted_by", "agent"),
        "confidence": _confidence(given.get("confidence", 1.0), _at(where, "confidence")),
        "supersedes_id": _id(given.get("supersedes_id"), _at(where, "supersedes_id")),
    }
    if parts["asserted_by"] not in SPEAKERS:
        raise InvalidArgument(name=_at(where, "asserted_by"), problem=f"must be one of {', '.join(SPEAKERS)}")
    for name in ("valid_from", "valid_until"):
        if name in given:
            parts[name] = dates.check_date(given[name], _at(where, name))
    since, until = parts.get("valid_from"), parts.get("valid_until")
    if since and until and until < since:
        raise InvalidArgument(
            name=_at(where, "valid_until"), problem=f"{until} is before valid_from, {since}"
        )
    return Given(**parts)


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _text(given: dict[str, Any], name: str, where: str) -> str:
    value = given.get(name, "")
    if isinstance(value, int | float) and not isinstance(value, bool) and name == "object":
        value = str(value)
    if not isinstance(value, str):
        raise InvalidArgument(name=_at(where, name), problem="must be text")
    if len(value) > LONGEST_TEXT[name]:
        raise InvalidArgument(
            name=_at(where, name),
            problem=f"has {len(value):,} characters; {LONGEST_TEXT[name]:,} is the most",
        )
    return value.strip()


def _name(given: dict[str, Any], name: str, where: str) -> str:
    value = " ".join(unlinked(_text(given, name, where)).split())
    if not value:
        raise InvalidArgument(
            name=_at(where, name), problem="is missing" if name not in given else "is empty"
        )
    if name == "subject" and not fold(value):
        raise InvalidArgument(name=_at(where, name), problem=f"{value!r} holds no letter or digit")
    return value


def _predicate(given: dict[str, Any], where: str) -> str:
    text = _text(given, "predicate", where)
    predicate = relationship_of(text)
    if not predicate:
        problem = "is missing; write it as in works_at" if not text else f"{text!r} holds no letter or digit"
        raise InvalidArgument(name=_at(where, "predicate"), problem=problem)
    return predicate


def _confidence(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(name=name, problem="must be a number from 0 to 1")
    return float(value)


def _id(value: Any, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidArgument(name=name, problem="must be the id of a fact, as `quaid facts` shows it")
    return value


def unlinked(text: str) -> str:
    """Text in which `[[people/alice|Alice]]` is people/alice."""
    return _WIKI_LINK.sub(lambda link: link[1].strip(), text) if "[[" in text else text


def object_key(text: str) -> str:
    """An object with everything taken out in which two spellings of it differ; `C++` stays apart from `C#`."""
    value = value_key(text)
    if value:
        return value
    signs = "".join(_SIGNS.findall(text))
    folded = fold(text) if len(text) <= LONGEST else " ".join(re.split(r"[\W_]+", text.casefold())).strip()
    folded = _COMPANY.sub("", folded) if " " in folded else folded
    return f"{folded.removeprefix('the ')} {signs}".strip() or text.casefold()


def value_key(text: str) -> str:
    """A number, a sum of money, a phone number or a day in the one form that all its spellings share; else ""."""
    text = text.strip()
    if len(text) > LONGEST_VALUE or not any(map(str.isdigit, text)):
        return ""
    return _day_key(text) or _number_key(text) or _phone_key(text)


def _day_key(text: str) -> str:
    told = dates_in(text)
    if len(told) == 1 and told[0].exact and (told[0].start, told[0].end) == (0, len(text)):
        return told[0].first
    match = _DAY_OF_YEAR.fullmatch(text)
    if not match:
        return ""
    year = dates_in(f"{match['day'] or match['us_day']} {match['month'] or match['us_month']} 2000")
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
        return ""  # 5 m are metres
    digits = re.sub(r"[,' \u00a0\u202f]", "", match["number"])
    value = Decimal(digits) * 10 ** _TIMES.get(times.lower(), 0)
    return f"{match['sign'] or ''}{value.normalize():f} {money}".strip()


def _phone_key(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    if not _PHONE.fullmatch(text) or not 7 <= len(digits) <= 15 or _NUMERIC_DATE.fullmatch(text):
        return ""
    return f"+{digits}" if text.startswith("+") else f"+{digits[2:]}" if text.startswith("00") else digits


def join_sources(one: str, other: str) -> str:
    """The sources of a fact that two say, each once; as a merge of two pages writes them."""
    return "; ".join(dict.fromkeys(filter(None, [*one.split("; "), other])))


def join_evidence(one: str, other: str) -> str:
    """The words of two witnesses; what the first holds already says nothing more."""
    return one if other in one else f"{one} / {other}".removeprefix(" / ")


def needles(evidence: str, value: str) -> tuple[str, ...]:
    """By which words a fact is found in a text: those of its witnesses, together or each; without any, its object."""
    return tuple(dict.fromkeys(filter(None, (evidence, *evidence.split(" / "))))) or (value,)


def holds(since: str | None, until: str | None, day: str) -> bool:
    """Whether what holds from `since` until `until` holds on a day."""
    return (since is None or since <= day) and (until is None or day < until)

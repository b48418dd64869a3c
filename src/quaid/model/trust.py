"""Trust classes of lines, pages and facts, by the origin of the text: a person, an agent, an import or the web.

A class is a number: 0 (person) is the highest class and is trusted most, 4 (web) is the lowest. Lines keep
their class when other lines of their page change. docs/trust.md describes the classes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple

TrustName = Literal["person", "observed", "imported", "derived", "web"]
CLASSES: tuple[TrustName, ...] = ("person", "observed", "imported", "derived", "web")
PERSON, OBSERVED, IMPORTED, DERIVED, WEB = range(len(CLASSES))

KEY_BYTES = 8
"""A line is identified by this many bytes of the hash of its text."""

WEB_KINDS = ("web", "clip")
"""Kinds of ingested sources that have the class `web`, even if their name is not a web address."""

_MARKS = re.compile(r"\A(?:[-*+]\s+|\d+[.)]\s+)?(?:\[[ xX]\]\s+)?")
"""The bullet and checkbox of a list item. They are not part of a line's key, so ticking an item keeps its class."""
_ADDRESS = re.compile(r"\bhttps?://", re.IGNORECASE)


SUPERSEDED_STATUSES = frozenset({"superseded", "retracted", "replaced", "obsolete", "deprecated"})
"""Values of `status`, in front matter or in a node of the knowledge base, that mean superseded."""


def is_superseded(status: object) -> bool:
    """Return True if a value of `status` means that the text is outdated."""
    return str(status).strip().casefold() in SUPERSEDED_STATUSES


def parse_class(name: str | None) -> int | None:
    """Return the number of the class with this name, or None if the name is None."""
    return None if name is None else CLASSES.index(name)


def class_of_source(source: str, kind: str = "") -> int:
    """Return the class of an ingested source: WEB for a web kind or a name with a web address, else IMPORTED."""
    return WEB if kind in WEB_KINDS or _ADDRESS.search(source) else IMPORTED


def line_key(line: str) -> bytes:
    """Return the key that identifies a line by its text, or b"" for a line without text."""
    import hashlib  # imported here, because loading OpenSSL takes 3 ms

    text = " ".join(_MARKS.sub("", line.strip(), count=1).split())
    if not text:
        return b""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def line_keys(text: str) -> list[bytes]:
    """Return the keys of the non-empty lines of a text."""
    return [key for line in text.splitlines() if (key := line_key(line))]


def _words(text: str) -> str:
    return " ".join(_MARKS.sub("", text.strip(), count=1).strip("…").split())


class LineTrust(NamedTuple):
    """The classes of the lines of a page."""

    rest: int = PERSON
    """The class of all lines that are not in `lines`."""
    lines: Mapping[bytes, int] = MappingProxyType({})
    """The classes of the lines whose class is not `rest`, by line key."""

    @property
    def lowest(self) -> int:
        return max(self.rest, *self.lines.values()) if self.lines else self.rest

    @property
    def highest(self) -> int:
        return min(self.rest, *self.lines.values()) if self.lines else self.rest

    def of_line(self, line: str) -> int:
        return self.lines.get(line_key(line), self.rest) if self.lines else self.rest

    def of_text(self, text: str) -> int:
        """Return the lowest class of the lines of a text. Lines that are not in `lines` have the class `rest`."""
        if not self.lines:
            return self.rest
        return max((self.lines.get(key, self.rest) for key in line_keys(text)), default=self.rest)

    def of_excerpt(self, excerpt: str, text: str) -> int:
        """Return the lowest class of the lines of `text` that contain the excerpt or a part of it."""
        if not self.lines:
            return self.rest
        rows = [line for line in text.splitlines() if excerpt in line] if excerpt else []
        if rows:  # the excerpt occurs verbatim
            return max(map(self.of_line, rows))
        part = _words(excerpt)
        rows = [
            line for line in text.splitlines() if (words := _words(line)) and (words in part or part in words)
        ]
        return max((self.of_line(line) for line in rows), default=self.of_text(text))

    def without(self, text: str, limit: int) -> str:
        """Return a text without the lines of a class below `limit`; "" if only headings would remain."""
        if not self.lines:
            return text if self.rest <= limit else ""
        kept = [line for line in text.splitlines() if not line.strip() or self.of_line(line) <= limit]
        has_text = any(line.strip() and not line.startswith("#") for line in kept)
        return "\n".join(kept).strip("\n") if has_text else ""

    def after_write(self, old: str, new: str, written: int) -> "LineTrust":
        """Return the classes after a write of class `written` has changed the text from `old` to `new`.

        Lines of the old text keep their class, even if their order changed.
        """
        if not self.lines and self.rest == written:
            return self
        before = set(line_keys(old))
        return combine(
            (key, self.lines.get(key, self.rest) if key in before else written) for key in line_keys(new)
        )

    def lowered(self, text: str, classes: dict[bytes, int]) -> "LineTrust":
        """Return the classes of the lines of a text, with those in `classes` overridden."""
        if not classes:
            return self
        own = {key: self.lines.get(key, self.rest) for key in line_keys(text)}
        return combine({**own, **classes}.items())

    def removed(self, old: str, new: str, limit: int) -> bool:
        """Return True if a line of a class above `limit` is in the old text but not in the new text."""
        if self.highest >= limit:
            return False
        kept = set(line_keys(new))
        return any(self.lines.get(key, self.rest) < limit for key in line_keys(old) if key not in kept)

    def joined(self, own: str, other: "LineTrust", text: str) -> "LineTrust":
        """Return the classes of the lines of two joined pages.

        `own` is the text of this page; `other` and `text` are the classes and the text of the other page.
        """
        classes = {key: self.lines.get(key, self.rest) for key in line_keys(own)}
        for key in line_keys(text):
            classes.setdefault(key, other.lines.get(key, other.rest))
        return combine(classes.items())

    def pack(self) -> bytes:
        return b"".join(key + bytes([number]) for key, number in sorted(self.lines.items()))


ALL_BY_PERSON = LineTrust()


def combine(classes: Iterable[tuple[bytes, int]]) -> LineTrust:
    """Build a LineTrust from classes by line key. The most frequent class becomes `rest`."""
    by_key = dict(classes)
    if not by_key:
        return ALL_BY_PERSON
    rest = Counter(by_key.values()).most_common(1)[0][0]
    return LineTrust(rest, {key: number for key, number in by_key.items() if number != rest})


def unpack(rest: int, packed: bytes) -> LineTrust:
    size = KEY_BYTES + 1
    return LineTrust(
        rest,
        {packed[at : at + KEY_BYTES]: packed[at + KEY_BYTES] for at in range(0, len(packed), size)},
    )


@cache
def _instruction() -> re.Pattern[str]:
    """Return the pattern of phrases that address an agent or give it a rule.

    This is a heuristic; docs/trust.md gives its error rates. Compiled at first use, because that takes 2 ms.
    """
    return re.compile(
        r"""\b(?:ignore|disregard|override|forget|bypass)\b[^.\n]{0,40}\b(?:instruct|rule|prompt|order|polic|guideline)
        | \b(?:instructions?|orders?|rules?|note|message|notice|action|important)\ (?:for|to)\b[^.\n]{0,20}
          \b(?:ai|assistants?|agents?|models?|bots?|llms?)\b
        | \b(?:ai|assistants?|agents?|chatbots?|llms?|models?)\b[^.\n]{0,60}
          \b(?:must|shall|should|will|need\ to|have\ to|has\ to|are\ to|is\ to|always|never)\b
        | \b(?:as\ an?\ (?:ai|assistant|agent)|dear\ (?:ai|assistant|agent)|you\ are\ now)\b
        | \byou\ (?:must|shall|should|have\ to|are\ to|may|can\ now|will\ now|always|never)\b
        | \b(?:from\ now\ on|henceforth|from\ today\ on|effective\ (?:today|immediately))\b
        | \bstanding\ orders?\b | \bsystem\ prompt\b | \b(?:new|updated)\ (?:instructions?|rules?|orders?)\b
        | \b(?:the\ )?(?:user|owner)(?:'s)?\ (?:has\ |always\ )?
          (?:said|says|wants?|prefers?|decided|confirmed|ordered|orders|asked|asks|told|rule)\b
        | \bwhenever\ you\b | \bwhen\ (?:you\ )?(?:summari[sz]ing|answering|asked)\b
        | (?:^|[.:;!>]\s+|[-*+]\s+)(?:please\ |dear\ \w+,\ )?(?:always|never|do\ not|don['’]t|make\ sure)\s+\w+
        | <\s*/?\s*(?:system|assistant|user|instructions?|prompt|tool|memory)\b
        | (?:^|[\[{\s"'])(?:system|assistant|developer)["']?\s*[\]]?\s*:
        """,
        re.IGNORECASE | re.VERBOSE | re.MULTILINE,
    )


_DELIMITER = (
    r"(?i)<(?=\s*/?\s*(?:system|assistant|user|developer|instructions?|prompt|tool|function|memory|context|quote)\b"
    r"|!--)"
)


_TRIGGERS = frozenset(
    "ignore disregard override forget bypass ai assistant assistants agent agents model models bot bots"
    " chatbot chatbots llm llms you from henceforth effective standing system new updated user owner whenever"
    " when always never do don make developer instruction instructions prompt tool memory instruct".split()
)
"""Every text that _instruction() matches contains one of these words. Searching for them first is much faster."""


def quotes_instructions(text: str) -> bool:
    """Return True if a text seems to give instructions to an agent."""
    if _TRIGGERS.isdisjoint(re.findall(r"[^\W_]+", text.lower())):
        return False
    return _instruction().search(text) is not None


def escape_delimiters(text: str) -> str:
    """Escape tags such as <system> or </quote>, so that quoted text cannot end the quotation or imitate a speaker."""
    return re.sub(_DELIMITER, "&lt;", text) if "<" in text else text

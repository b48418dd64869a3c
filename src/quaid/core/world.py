"""What the search for contradictions looks at: pages, what they are called, facts, links, texts.

Values only. The store fills them from the whole memory, or from what belongs to one page.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quaid.core.facts import object_key
from quaid.core.names import KINDS, fold
from quaid.core.predicates import canonical

_SLUG = re.compile(r"[a-z0-9_-]+(?:/[a-z0-9_-]+)+")

STALE_DAYS = 30
"""A timeline that is so much newer than the truth above it has something to say to it."""

Whom = int | str
"""A page by its id, or what has no page by its folded name."""


class Known(NamedTuple):
    """A page without its texts."""

    slug: str
    title: str
    type: str


class Fact(NamedTuple):
    """A row of the facts. The first columns are those of the table."""

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


class Tie(NamedTuple):
    """A link between two pages."""

    id: int
    from_id: int
    to_id: int
    relationship: str
    since: str | None
    until: str | None
    context: str
    part: str | None
    line: int | None


class Text(NamedTuple):
    """What is written on a page."""

    page_id: int
    truth: str
    timeline: str


class Age(NamedTuple):
    """When the two halves of a page were last changed, and when a person last said that all is well with it."""

    page_id: int
    truth_updated_at: str
    timeline_updated_at: str
    reviewed_at: str | None


class Names:
    """Which page a name means."""

    def __init__(self, rows: Iterable[tuple[str, int, str]]) -> None:
        self._pages: dict[str, list[tuple[int, int]]] = {}
        for name, page_id, kind in rows:
            self._pages.setdefault(name, []).append((KINDS.index(kind), page_id))
        self._names: dict[int, set[str]] = {}

    def page(self, key: str, own: int | None = None) -> int | None:
        """The page of a folded name: the one that says so, else the one that is called so most certainly."""
        found = self._pages.get(key)
        if not found:
            return None
        if len(found) == 1:
            return found[0][1]
        if any(page_id == own for _, page_id in found):
            return own
        best = min(kind for kind, _ in found)
        pages = {page_id for kind, page_id in found if kind == best}
        return pages.pop() if len(pages) == 1 else None

    def of(self, page_id: int) -> set[str]:
        """What a page is called."""
        if not self._names:
            for name, pages in self._pages.items():
                for _, each in pages:
                    self._names.setdefault(each, set()).add(name)
        return self._names.get(page_id, set())


class World(NamedTuple):
    """All that is looked at."""

    pages: Mapping[int, Known]
    names: Names
    facts: list[Fact]
    links: list[Tie]
    texts: Iterable[Text]
    ages: list[Age]
    single: frozenset[str]
    today: str


class Claim(NamedTuple):
    """A fact with its words resolved."""

    fact: Fact
    predicate: str
    subject: Whom
    object: Whom
    about: str
    """The subject as people read it."""
    says: str
    """The object as people read it."""

    @property
    def since(self) -> str | None:
        return self.fact.since

    @property
    def until(self) -> str | None:
        return self.fact.until


def claims(world: World) -> list[Claim]:
    """The facts that were not superseded, each with the pages that its words mean."""
    subjects: dict[tuple[str, int], tuple[Whom, str]] = {}
    objects: dict[str, tuple[Whom, str]] = {}
    found = []
    for fact in world.facts:
        if fact.superseded:
            continue
        about = subjects.get((fact.subject_key, fact.page_id))
        if about is None:
            subject = whom(world, fact)
            about = subjects[fact.subject_key, fact.page_id] = (subject, title(world, subject, fact.subject))
        meant = objects.get(fact.object)
        if meant is None:
            meant = objects[fact.object] = _object(world, fact.object)
        found.append(Claim(fact, canonical(fact.predicate), about[0], meant[0], about[1], meant[1]))
    return found


def _object(world: World, text: str) -> tuple[Whom, str]:
    """What an object means, and how people read it: a slug by the title of its page."""
    name = text.rpartition("::")[2]
    page_id = world.names.page(fold(name))
    if page_id is None:
        return object_key(name.rpartition("/")[2] if _SLUG.fullmatch(name) else text), text
    page = world.pages.get(page_id)
    return page_id, page.title if page and page.slug == name else text


def whom(world: World, fact: Fact) -> Whom:
    """Whom a fact is about."""
    return meant(world.names, fact.subject_key, fact.page_id, world.pages.get(fact.page_id))


def meant(names: Names, key: str, page_id: int, page: Known | None) -> Whom:
    """Whom a folded name means on a page. On a person's own page the first or last name is enough."""
    found = names.page(key, page_id)
    if found is not None:
        return found
    return page_id if page and page.type == "person" and key in parts_of(page.title) else key


def parts_of(title: str) -> set[str]:
    """A person's first and last name, folded."""
    words = fold(title).split()
    return {words[0], words[-1]} if words else set()


def title(world: World, subject: Whom, otherwise: str) -> str:
    page = world.pages.get(subject) if isinstance(subject, int) else None
    return page.title if page else otherwise


def is_current(since: str | None, until: str | None, today: str) -> bool:
    return (since is None or since <= today) and (until is None or until > today)

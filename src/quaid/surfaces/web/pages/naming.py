"""What a text calls pages, put into words: `[[people/alice]]` and people/alice are Alice, and lead to her.

Knows how a name looks in a text; which page it stands for says the memory, in one question for all texts of a view.
What no page is called stays: as its own words between brackets, as it is in running text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup
from starlette.requests import Request

from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import attempt
from quaid.surfaces.web.pages.leading import Leading, Place, as_words

MOST = 400
"""Names that one view asks about."""

_WIKI = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\](?:\[([^\[\]\n]*)\])?\]")
_BARE = re.compile(
    r"(?<![\w/.:@\[|(-])(?:[\w-]+::)?[a-z0-9][a-z0-9_-]*(?:/[a-z0-9][a-z0-9_-]*)+(?![\w/-]|\.\w)"
)
_LEFT_ALONE = re.compile(
    r"\[\[[^\[\]\n]*\](?:\[[^\[\]\n]*\])?\]|\]\([^()\s]*\)|`[^`\n]*`|<[^<>\s]*>|https?://\S+"
)


class Names(NamedTuple):
    """The pages behind the names of some texts."""

    known: Mapping[str, Place]
    here: str = ""
    """Where the reader is: what leads there is said in words."""

    def lead(self, named: str) -> Place | None:
        return self.known.get(named)

    def title(self, name: str) -> str:
        """How the page is called, or what its name says."""
        found = self.known.get(name)
        return found.title if found else as_words(name)

    def worded(self, text: str) -> str:
        """The text with titles for names: for where no link can be."""
        text = _WIKI.sub(self._said, text)
        return _BARE.sub(lambda name: self.known[name[0]].title if name[0] in self.known else name[0], text)

    def _said(self, link: re.Match[str]) -> str:
        return (link[2] or link[3] or "").strip() or self.title(link[1].rstrip("\\").strip())

    def linked(self, text: str) -> Markup:
        """One line of markdown with titles that lead to their pages."""
        return linked(text, self.lead, self.here)


def linked(text: str, lead: Leading, here: str = "") -> Markup:
    """The same, by whoever knows where names lead: a summary has lost the brackets that stand in its page."""

    def put(name: re.Match[str]) -> str:
        found = lead(name[0])
        if found is None:
            return name[0]
        return f"**{found.title}**" if found.href == here else f"[[{name[0]}]]"

    pieces, at = [], 0
    for kept in _LEFT_ALONE.finditer(text):
        pieces += [_BARE.sub(put, text[at : kept.start()]), kept[0]]
        at = kept.end()
    return markdown.line("".join([*pieces, _BARE.sub(put, text[at:])]), lead)


def names_in(texts: Iterable[str]) -> list[str]:
    """What these texts seem to call pages, each once."""
    found: dict[str, None] = {}
    for text in texts:
        if "[[" in text:
            found.update((link[1].rstrip("\\").strip(), None) for link in _WIKI.finditer(text))
        if "/" in text:
            found.update((name[0], None) for name in _BARE.finditer(text))
    return [name for name in found if name][:MOST]


async def named(request: Request, texts: Iterable[str], here: str = "") -> Names:
    """The pages that these texts name."""
    wanted = names_in(texts)
    record = await attempt(request, "titles", names=wanted) if wanted else None
    titles = record.titles if record else ()
    return Names({each.name: Place(addresses.page(each.slug), each.title) for each in titles}, here)

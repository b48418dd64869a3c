"""What org-roam cannot index, or reads otherwise than we do, though it is good org.

It passes over a file or a heading in silence, or drops the whole file for one value that it cannot read. Knows
org-roam's properties and customs; what is wrong with the org itself, formats/org.py tells.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quaid.formats.org import OrgDocument

EXCLUDED = "ROAM_EXCLUDE"
LISTS = ("ROAM_ALIASES", "ROAM_REFS")
"""Properties whose values are words and strings in quotes, as Emacs reads them."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


class Problem(NamedTuple):
    line: int
    code: str
    message: str
    remedy: str


def is_left_out(properties: dict[str, str]) -> bool:
    """Whether org-roam passes over what has these properties."""
    return properties.get(EXCLUDED, "nil") != "nil"


def problems(text: str, org: "OrgDocument") -> Iterator[Problem]:
    """Why org-roam would not have this file, or not as it is."""
    top = text.count("\n", 0, org.drawer[0]) + 1 if org.drawer else 1
    if is_left_out(org.properties):
        yield Problem(top, "left-out", f":{EXCLUDED}: keeps it out of org-roam", "remove it")
    yield from _of_drawer(org.properties, top)
    for heading in org.headings:
        if "ID" not in heading.properties:
            continue
        if not heading.title:
            message = "a heading with an ID has no title, so org-roam has nothing of the file"
            yield Problem(heading.line, "heading-untitled", message, "write a title, or remove the ID")
        yield from _of_drawer(heading.properties, heading.line)
    for link in org.links:
        if link.kind == "id" and link.target != link.target.lower():
            message = "the link names an ID in capitals, and for org-roam that is another one"
            yield Problem(link.line, "id-capitals", message, "write it in small letters")


def _of_drawer(properties: dict[str, str], line: int) -> Iterator[Problem]:
    id = properties.get("ID", "")
    if id != id.lower():
        message = ":ID: is written in capitals, and links in small letters do not find it in org-roam"
        yield Problem(line, "id-capitals", message, "write it in small letters")
    for name in LISTS:
        if '"' in _QUOTED.sub("", properties.get(name, "")):
            message = f":{name}: has a quote that never ends, so org-roam has nothing of the file"
            yield Problem(line, "property-invalid", message, 'close it with "')

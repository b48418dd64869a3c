"""Where pages of the dashboard are: the address of a page, a file, a node, a line in it.

Knows how an address is written and what of a text it may hold. Whatever comes in is quoted.
"""

from urllib.parse import quote, urlencode

KEPT = "/:@!$'()*,~"
"""Signs that stay as they are in a path: `notes::people/alice` reads well."""


def page(address: str, part: str = "", line: int | None = None) -> str:
    """The page of a slug; with a line, that place in it."""
    path = f"/page/{quote(address, safe=KEPT)}"
    view = {"view": "1"} if address.endswith("/edit") else {}
    if not line:
        return path + (f"?{urlencode(view)}" if view else "")
    mark = "T" if part == "timeline" else "L"
    return f"{path}?{urlencode({**view, 'at': f'{mark}{line}'})}#{mark}{line}"


def edit(address: str) -> str:
    return f"/page/{quote(address, safe=KEPT)}/edit"


def file(path: str, line: int | None = None) -> str:
    """A file of the notebook."""
    there = f"/notebook/{quote(path, safe=KEPT)}"
    return f"{there}?at=L{line}#L{line}" if line else there


def node(id: str) -> str:
    """A node of the knowledge base."""
    return f"/kb/{quote(id, safe='')}"


def search(text: str) -> str:
    """Where a tag, or a link that leads nowhere, leads to. Whoever follows it has asked nothing: it says so."""
    return "/search?" + urlencode({"q": text, "link": 1})


def graph(address: str) -> str:
    return "/graph?" + urlencode({"slug": address})


def with_values(path: str, values: dict[str, str | int]) -> str:
    """A path with a query, without the values that are empty."""
    given = {name: value for name, value in values.items() if value not in ("", 0)}
    return path + (f"?{urlencode(given)}" if given else "")

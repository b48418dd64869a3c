"""Wing and room of a page. Knows what the front matter, the slug and the headings say about them."""

from typing import Any

from quaid.core import prose, slug
from quaid.core.page_type import TYPES, without_number


def wing(address: str, page_type: str, frontmatter: dict[str, Any]) -> str:
    """The front matter's wing, else the first folder, else the wing of the type."""
    named = prose.one_line(frontmatter.get("wing"))
    if named:
        return slug.segment(named)
    folder, mark, _ = address.partition("/")
    if not mark:
        return TYPES[page_type]
    folder = without_number(folder)
    return TYPES.get(folder.replace("-", "_"), folder)  # project/x and projects/x are of one wing


def room(address: str, frontmatter: dict[str, Any], text: str) -> str:
    """The front matter's room, else the second of two folders or more, else the first H2 of the text."""
    named = prose.one_line(frontmatter.get("room"))
    if named:
        return slug.segment(named)
    segments = address.split("/")
    if len(segments) > 2:
        return without_number(segments[1])
    heading = prose.first_heading(text, 2)
    return slug.segment(heading) if heading else ""

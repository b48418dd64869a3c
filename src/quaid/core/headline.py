"""Title and summary of a page. Knows what the front matter, the slug and the text say about them."""

import re
from typing import Any

from quaid.core import prose

SUMMARY_LENGTH = 300

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")


def title(slug: str, frontmatter: dict[str, Any], text: str, fallback: str | None) -> str:
    """The one that is given, else the first H1, else the fallback, else the slug's last name in words."""
    given = prose.one_line(frontmatter.get("title")) or prose.first_heading(text, 1) or fallback
    if given:
        return given
    name = slug.rpartition("/")[2]
    if _DATE.fullmatch(name):
        return name
    words = name.replace("-", " ").replace("_", " ").split()
    return " ".join([word[0].upper() + word[1:] for word in words]) or name


def summary(frontmatter: dict[str, Any], text: str) -> str:
    """Return the summary: as given, else the quotation below the title, the first paragraph, the description."""
    given = prose.one_line(frontmatter.get("summary"))
    if given and len(given) <= SUMMARY_LENGTH:
        return given
    return prose.shorten(
        prose.plain(given)  # a cut must not go through its markup
        or prose.top_quote(text)
        or prose.first_paragraph(text)
        or prose.plain(prose.one_line(frontmatter.get("description"))),
        SUMMARY_LENGTH,
    )

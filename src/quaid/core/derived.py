"""What follows from a page and stands in tables of its own: its front matter as JSON, its names, its links.

Pure and without ids, so that it can be worked out anywhere: beside the writer as well as in another process.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from quaid.core.links import Reference, references
from quaid.core.names import names_of
from quaid.core.timeline import summary_hash
from quaid.core.unspaced import has_runs

if TYPE_CHECKING:
    from quaid.core.page import Page

as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Derived(NamedTuple):
    """What a page brings along that nobody has linked, renamed or merged yet."""

    frontmatter: str
    names: list[tuple[str, str]]
    """Each name, folded, with its kind; sorted."""
    references: list[Reference]
    hashes: list[str]
    """Of the summaries of its entries, in their order."""
    is_unspaced: bool
    """Whether it holds scripts that put no space between words."""


def derive(page: "Page") -> Derived:
    return Derived(
        as_json(page.frontmatter),
        sorted(names_of(page.title, page.slug, page.frontmatter)),
        references(page),
        [summary_hash(entry.summary) for entry in page.entries],
        has_runs(page.title) or has_runs(page.truth) or has_runs(page.timeline),
    )

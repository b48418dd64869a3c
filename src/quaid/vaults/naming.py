"""Which file gets which slug when several want the same one.

A file asks for the slug in its front matter, else for that of its path. Whoever stands at the very path of a
slug has the first right to it, then whoever comes first by path. The others take the slug of their path, and
if that is taken too, a few letters of the path's hash behind it: the same folder always gives the same slugs.
Knows neither files nor the database.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from quaid.model import slug as slugs
from quaid.vaults import index
from quaid.vaults.scan import path_key

SHORTEST_SUFFIX = 6


class Claim(NamedTuple):
    path: str
    slug: str  # what the file asks for


def assign(claims: Iterable[Claim], taken: Iterable[str] = ()) -> dict[str, str]:
    """The slug of each path. Claims come in the order of their paths; `taken` slugs have owners already."""
    owned = set(taken)
    given: dict[str, str] = {}
    waiting: list[Claim] = []
    for claim in claims:
        if claim.slug not in owned and index.stem(claim.path) == claim.slug:
            given[claim.path] = claim.slug
            owned.add(claim.slug)
        else:
            waiting.append(claim)
    for claim in waiting:
        address = claim.slug
        if address in owned:
            address = slugs.from_path(claim.path)
        if address in owned:
            address = beside(address, claim.path, owned)
        given[claim.path] = address
        owned.add(address)
    return given


def beside(address: str, path: str, taken: set[str]) -> str:
    """A free slug next to one that is taken, always the same for the same path."""
    mark = sha256(path_key(path).encode()).hexdigest()
    for length in range(SHORTEST_SUFFIX, len(mark) + 1):
        name = f"{address[: slugs.LONGEST - length - 1].rstrip('/-')}-{mark[:length]}"
        if name not in taken:
            return name
    raise AssertionError("a hash met itself")

"""Captures of outside sources: a small stub below raw/ with address, day and excerpt, or a whole file on request.

Makes no call to any network: what is captured is handed in. Knows the shape of a stub and its limits.
"""

import re

from quaid.errors import InvalidArgument
from quaid.kb import layout
from quaid.kb.catalog import Catalog
from quaid.kb.changing import Change
from quaid.kb.node import described

WORDS, BYTES = 2_000, 16 * 1024
LARGEST_FILE = 32 * 1024 * 1024


def stub(
    catalog: Catalog, source: str, excerpt: str, *, local: str, title: str = ""
) -> tuple[str, Change, bool]:
    """The stub of a source: its path, the change, and whether the excerpt had to be cut."""
    if not source.strip() or "\n" in source:
        raise InvalidArgument(name="source", problem="is an address or a file, on one line")
    text, cut = _bounded(excerpt)
    if not text.strip():
        raise InvalidArgument(name="excerpt", problem="is empty; hand over what matters of the source")
    name = _free(catalog, f"{layout.RAW}/{_stamp(local)}-{_slug(title or source)}.org")
    lines = [
        f"#+title: {' '.join((title or source).split())}",
        f"#+source: {source.strip()}",
        f"#+retrieved: {local[:10]}",
        "",
        "#+begin_quote",
        *(_quoted(line) for line in text.split("\n")),
        "#+end_quote",
        *(["", "The excerpt was cut here."] if cut else []),
        "",
    ]
    change = Change(
        {name: "\n".join(lines).encode("utf-8", "replace")}, f"capture: {described(title or source)[:100]}"
    )
    return name, change, cut


def whole(catalog: Catalog, name: str, data: bytes, *, local: str) -> tuple[str, Change]:
    """A whole file, as it is, below raw/files/."""
    if len(data) > LARGEST_FILE:
        raise InvalidArgument(name="source", problem=f"is larger than {LARGEST_FILE // 1024 // 1024} MB")
    base, dot, ending = name.rpartition(".")
    slug = _slug(base or name) + (f".{_slug(ending)}" if dot and base else "")
    path = _free(catalog, f"{layout.RAW_FILES}/{_stamp(local)}-{slug}")
    return path, Change({path: data}, f"capture: {name[:100]}")


def _bounded(text: str) -> tuple[str, bool]:
    """As much of a text as a stub may hold, cut at a word."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip("\n")
    words = list(re.finditer(r"\S+", text))
    end = words[WORDS].start() if len(words) > WORDS else len(text)
    kept = text[:end].encode("utf-8", "replace")
    if len(kept) > BYTES:
        kept = kept[:BYTES]
        kept = kept[: max(kept.rfind(b" "), kept.rfind(b"\n"), 1)]
    shorter = kept.decode("utf-8", "ignore").rstrip()
    return shorter, len(shorter) < len(text.rstrip())


def _quoted(line: str) -> str:
    """A line that cannot end the quote, nor begin a heading."""
    return f",{line}" if line.startswith("*") or line.lstrip().lower().startswith("#+") else line


def _slug(text: str) -> str:
    bare = re.sub(r"^[a-z]+://(?:[^/@]*@)?|[?#].*$", "", text.lower())  # a password is no part of a name
    plain = re.sub(r"[^a-z0-9]+", "-", bare).strip("-")
    return plain[:60].strip("-") or "source"


def _stamp(local: str) -> str:
    return re.sub(r"\D", "", local)[:14]


def _free(catalog: Catalog, path: str) -> str:
    base, dot, ending = path.rpartition(".")
    name, number = path, 1
    while name in catalog.files:
        number += 1
        name = f"{base}-{number}{dot}{ending}" if dot else f"{path}-{number}"
    return name

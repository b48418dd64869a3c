"""Captures of outside sources: a small stub below raw/ with address, day and excerpt, and the whole file on request.

A stub is always written. The whole file, if wanted, lies below raw/files/, and the stub names it. An address is
fetched only when its whole text is asked for and nobody hands it over.
"""

import re
import unicodedata
from typing import NamedTuple

from quaid.errors import FileTrouble, InvalidArgument
from quaid.kb import layout
from quaid.kb.catalog import Catalog
from quaid.kb.changing import Change
from quaid.kb.node import described

WORDS, BYTES = 2_000, 16 * 1024
LARGEST_FILE = 32 * 1024 * 1024
SECONDS = 30.0
"""How long a server may be silent while it is read."""

FILE = "#+file:"
"""The line of a stub that names the whole file."""

JOINER = "\u200d"
_JOINERS = frozenset(f"\u200c{JOINER}\ufe0e\ufe0f")


class Whole(NamedTuple):
    """A whole source."""

    name: str
    data: bytes


class Captured(NamedTuple):
    path: str
    file: str
    """The whole source; nothing: only the stub was written."""
    cut: bool
    change: Change


def capture(
    catalog: Catalog, source: str, excerpt: str, *, local: str, title: str = "", whole: Whole | None = None
) -> Captured:
    """The stub of a source, with its whole file if there is one."""
    if not source.strip() or "\n" in source:
        raise InvalidArgument(name="source", problem="is an address or a file, on one line")
    text, cut = bounded(excerpt)
    if not text.strip() and whole is None:
        raise InvalidArgument(name="excerpt", problem="is empty; hand over what matters of the source")
    name = source if "://" in source else source.replace("\\", "/").rpartition("/")[2]
    slug = _slug(title or name)
    path = _free(catalog, f"{layout.RAW}/{_stamp(local)}-{slug}.org")
    files: dict[str, bytes | None] = {}
    place = ""
    if whole is not None:
        place = _free(catalog, f"{layout.RAW_FILES}/{_stamp(local)}-{_file_slug(whole.name)}")
        files[place] = whole.data
    lines = [
        f"#+title: {' '.join((title or source).split())}",
        f"#+source: {source.strip()}",
        f"#+retrieved: {local[:10]}",
        *([f"{FILE} {place}"] if place else []),
    ]
    if place:
        lines += ["", f"[[file:{place.removeprefix(f'{layout.RAW}/')}][The whole source]]"]
    if text.strip():
        lines += ["", "#+begin_quote", *(_quoted(line) for line in text.split("\n")), "#+end_quote"]
    if cut:
        lines += ["", "The excerpt was cut here."]
    files = {path: "\n".join([*lines, ""]).encode("utf-8", "replace"), **files}
    return Captured(path, place, cut, Change(files, f"capture: {described(title or source)[:100]}"))


def named_file(stub: str) -> str:
    """The whole file that the text of a stub names, or nothing."""
    head = stub[:4096].split("\n\n", 1)[0].split("\n")
    return next((line.removeprefix(FILE).strip() for line in head if line.startswith(FILE)), "")


def check_size(data: bytes) -> bytes:
    if len(data) > LARGEST_FILE:
        raise InvalidArgument(name="source", problem=f"is larger than {LARGEST_FILE // 1024 // 1024} MB")
    return data


def text_of(data: bytes, path: str) -> str:
    """The text of a file out of which an excerpt is taken; one that is not text is refused."""
    from quaid.model import secrets

    hint = "keep the whole file with --full, or hand over what matters of it as text with --excerpt"
    if not secrets.is_text_data(data):
        raise FileTrouble(path=path, problem=f"is not a text file; {hint}")
    try:
        is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start:,}); save it as UTF-8, {hint}"
        raise FileTrouble(path=path, problem=problem) from None


def fetch(address: str) -> Whole:
    """The whole text behind an address of http or https."""
    from http.client import HTTPException
    from urllib import error, parse, request

    from quaid.kb.guarding import masked

    parts = parse.urlsplit(address)
    shown = masked(address)
    hint = "download it yourself and add --file FILE"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        problem = f"only http and https can be fetched, not {shown!r}; {hint}"
        raise InvalidArgument(name="source", problem=problem)
    asked = request.Request(address, headers={"User-Agent": "ai-kb"})  # noqa: S310 (http and https, see above)
    try:
        with request.urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310
            data = answer.read(LARGEST_FILE + 1)
            kind = answer.headers.get_content_type()
    except error.HTTPError as problem:
        told = f"answers with {problem.code} {problem.reason}; {hint}"
        raise FileTrouble(path=shown, problem=told) from None
    except (error.URLError, OSError, HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise FileTrouble(path=shown, problem=f"does not answer: {reason}; {hint}") from None
    return Whole(_name_of(parts.hostname, parts.path, kind), check_size(data))


def _name_of(host: str, path: str, kind: str) -> str:
    """What a fetched file is called: as its address ends, else by its host; with an ending for its type."""
    from mimetypes import guess_extension

    name = path.rstrip("/").rpartition("/")[2] or host
    return name if "." in name and name != host else name + (guess_extension(kind) or "")


def bounded(text: str) -> tuple[str, bool]:
    """As much of a text as a stub may hold: cut between words, or between characters where there are no words."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip("\n")
    words = list(re.finditer(r"\S+", text))
    end = words[WORDS].start() if len(words) > WORDS else len(text)
    kept = text[:end]
    if len(kept.encode("utf-8", "replace")) > BYTES:
        kept = kept.encode("utf-8", "replace")[:BYTES].decode("utf-8", "ignore")
        space = max(kept.rfind(" "), kept.rfind("\n"))
        kept = kept[:space] if space >= len(kept) * 3 // 4 else _between_characters(text, len(kept))
    shorter = kept.rstrip()
    return shorter, len(shorter) < len(text.rstrip())


def _between_characters(text: str, end: int) -> str:
    """The beginning of a text, without half of a character that several code points make."""
    first = end
    while 1 < end < len(text) and (
        unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == JOINER
    ):
        end -= 1
    return text[: end if first - end < 16 else first]


def _quoted(line: str) -> str:
    """A line that cannot end the quote, nor begin a heading."""
    return f",{line}" if line.startswith("*") or line.lstrip().lower().startswith("#+") else line


def _slug(text: str) -> str:
    bare = re.sub(r"^[a-z]+://(?:[^/@]*@)?|[?#].*$", "", text.lower())  # a password is no part of a name
    plain = re.sub(r"[^a-z0-9]+", "-", bare).strip("-")
    return plain[:60].strip("-") or "source"


def _file_slug(name: str) -> str:
    base, dot, ending = name.rpartition(".")
    return _slug(base or name) + (f".{_slug(ending)}" if dot and base else "")


def _stamp(local: str) -> str:
    return re.sub(r"\D", "", local)[:14]


def _free(catalog: Catalog, path: str) -> str:
    base, dot, ending = path.rpartition(".")
    name, number = path, 1
    while name in catalog.files:
        number += 1
        name = f"{base}-{number}{dot}{ending}" if dot else f"{path}-{number}"
    return name

"""The shape of a page in markdown: front matter, compiled truth, a bare `---`, timeline.

Knows where the parts begin and end, and nothing of what they say. Blank lines at the ends of a part are not
kept, line ends become LF; everything else survives parse and render.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from quaid.errors import InvalidFrontMatter

UNPARSED = "_unparsed"
"""The key under which front matter that cannot be read is kept, as it was written between its fences."""
FENCE = "_fence"
"""The key beside it that says "+++" when those were the fences."""

_DIVIDER = re.compile(r"(?m)^---[ \t]*$")
_OPENING = re.compile(r"\A((?:[ \t]*\n)*)(---|\+\+\+)[ \t]*\n")
_CLOSING = {
    "---": re.compile(r"(?m)^(?:---|\.\.\.)[ \t]*$"),
    "+++": re.compile(r"(?m)^\+\+\+[ \t]*$"),
}
_BOM = "\ufeff"


class Document(NamedTuple):
    """A page as its text gives it; problem says why the front matter could not be read, if so."""

    frontmatter: dict[str, Any]
    truth: str
    timeline: str
    problem: str | None


class Decoded(NamedTuple):
    """The text of a file; mended says what had to be replaced in it, if anything."""

    text: str
    mended: str | None


def decode(data: bytes) -> Decoded:
    """Bytes as text: UTF-8, UTF-16 with its mark, old Windows text, else UTF-8 with what is wrong replaced."""
    mended: list[str] = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if _is_western(data):
            return Decoded(data.decode("cp1252"), "not UTF-8: read as Windows-1252")
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        text = data.decode(encoding, "replace")
        kept = data.decode(encoding, "ignore").encode("utf-8" if encoding == "utf-8" else "utf-16-le")
        lost = len(data) - len(kept) - (2 if encoding == "utf-16" else 0)
        if lost:
            mended.append(f"not {encoding.upper()}: {_count(lost, 'byte')} replaced")
    text = text.removeprefix(_BOM)
    if "\0" in text:
        mended.append(f"{_count(text.count(chr(0)), 'NUL character')} replaced")
        text = text.replace("\0", "\ufffd")
    return Decoded(text, "; ".join(mended) or None)


def _is_western(data: bytes) -> bool:
    """Whether bytes that are no UTF-8 are text of a single-byte code page: not one character of them is UTF-8."""
    if b"\0" in data or not data.decode("utf-8", "ignore").isascii():
        return False
    try:
        return all(character.isprintable() or character in "\n\r\t\f" for character in data.decode("cp1252"))
    except UnicodeDecodeError:
        return False


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def parse(text: str) -> Document:
    """The parts of a page; never fails, for a block that cannot be read is kept as it is."""
    frontmatter, problem, body = _split_front_matter(_with_line_feeds(text).removeprefix(_BOM))
    divider = _find_divider(body)
    if not divider:
        return Document(frontmatter, _strip_blank_lines(body), "", problem)
    truth, timeline = body[: divider.start()], body[divider.end() :]
    return Document(frontmatter, _strip_blank_lines(truth), _strip_blank_lines(timeline), problem)


def check(document: Document, before: Mapping[str, Any]) -> None:
    """Raise InvalidFrontMatter for a text whose front matter cannot be read, unless the page has it already."""
    if document.problem and (not document.frontmatter or document.frontmatter != before):
        raise InvalidFrontMatter(problem=document.problem)


class Places(NamedTuple):
    """In which lines the parts of a text stand, counted from 0."""

    fence: str
    """What encloses the front matter; nothing where there is none."""
    front: tuple[int, int] | None
    """The lines between the fences."""
    body: int
    divider: int | None


def places(text: str) -> Places:
    """Where `parse` finds the parts of a text whose line ends are LF."""
    text = text.removeprefix(_BOM)
    frontmatter, problem, body = _split_front_matter(text)
    if problem and not frontmatter:  # it is never closed
        divider = _find_divider(body)
        first = text.count("\n", 0, len(text) - len(body))
        last = None if divider is None else first + body.count("\n", 0, divider.start())
        return Places("", None, first, last)
    closing = text.count("\n", 0, len(text) - len(body))  # the line of the closing fence
    opening = _OPENING.match(text) if len(body) < len(text) else None
    divider = _find_divider(body)
    return Places(
        opening[2] if opening else "",
        (text.count("\n", 0, opening.end()), closing) if opening else None,
        closing + 1 if opening else 0,
        None if divider is None else closing + body.count("\n", 0, divider.start()),
    )


def _split_front_matter(text: str) -> tuple[dict[str, Any], str | None, str]:
    """Front matter, what is wrong with it, and the body.

    A block that follows blank lines counts only if it is good: it may as well be an empty truth. One that is never
    closed is text; its opening line is left out where it would divide the truth from a timeline.
    """
    opening = _OPENING.match(text)
    if not opening:
        return {}, None, text
    closing = _CLOSING[opening[2]].search(text, opening.end())
    if not closing and (opening[1] or not text[opening.end() :].strip()):
        return {}, None, text
    if not closing:
        unclosed = f"line 1 opens it with '{opening[2]}', and no later line closes it"
        return {}, unclosed, text[opening.end() :] if opening[2] == "---" else text
    block = text[opening.end() : max(opening.end(), closing.start() - 1)]
    frontmatter, problem = _read(opening[2], block)
    if opening[1] and (problem or not frontmatter):
        return {}, None, text
    return frontmatter, problem, text[closing.end() :]


def _read(fence: str, block: str) -> tuple[dict[str, Any], str | None]:
    from quaid.formats import front_matter

    read = front_matter.read_yaml if fence == "---" else front_matter.read_toml
    try:
        return read(block, 2), None
    except InvalidFrontMatter as error:
        kept = {UNPARSED: block} if fence == "---" else {UNPARSED: block, FENCE: fence}
        return kept, str(error.facts["problem"])


def _find_divider(text: str) -> "re.Match[str] | None":
    if "---" not in text:
        return None
    from quaid.model import markdown_text

    blocks = iter(markdown_text.find_fences(text))
    block = next(blocks, None)
    for divider in _DIVIDER.finditer(text):
        while block and block.end <= divider.start():
            block = next(blocks, None)
        if not block or divider.start() < block.start:
            return divider
    return None


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _strip_blank_lines(text: str) -> str:
    body = text.lstrip(" \t\n")
    if not body:
        return ""
    start = text.rfind("\n", 0, len(text) - len(body)) + 1
    end = text.find("\n", len(text.rstrip(" \t\n")))
    return text[start:end] if end >= 0 else text[start:]


def tidy(text: str) -> str:
    """A truth or timeline as parse would give it."""
    return _strip_blank_lines(_with_line_feeds(text))


def has_divider(truth: str) -> bool:
    """Whether a bare `---` in the text would end the truth there; such a text is no truth."""
    return _find_divider(_with_line_feeds(truth)) is not None


def close_fence(truth: str) -> str:
    """The text with its last code block closed; a text that leaves none open stays as it is."""
    from quaid.model import markdown_text

    blocks = markdown_text.find_fences(truth)
    return f"{truth}\n{blocks[-1].left_open}" if blocks and blocks[-1].left_open else truth


def render(frontmatter: Mapping[str, Any], truth: str, timeline: str) -> str:
    """The page as text, such that parse gives the same parts again.

    A code block that the truth leaves open is closed when a timeline follows, or the timeline would become
    part of it. A truth with a divider of its own cannot survive: ask has_divider first.
    """
    parts: list[str] = []
    if truth:
        parts.append(close_fence(truth) if timeline else truth)
    if timeline:
        parts.extend(["---", timeline])
    block = _block(frontmatter)
    if not block and parts and (not truth or truth.startswith(("---", "+++", _BOM))):
        block = "---\n---\n"  # or the first line would be taken for something else
    if block:
        parts.insert(0, block.removesuffix("\n"))
    return "\n\n".join(parts) + "\n" if parts else ""


def _block(frontmatter: Mapping[str, Any]) -> str:
    if not frontmatter:
        return ""
    unread = frontmatter.get(UNPARSED)
    if isinstance(unread, str):
        fence = frontmatter.get(FENCE, "---")
        block = f"{fence}\n{unread}\n{fence}\n"
        if parse(block)[:3] == (frontmatter, "", ""):
            return block
    from quaid.formats import front_matter

    return f"---\n{front_matter.dump_yaml(frontmatter)}---\n"

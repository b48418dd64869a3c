"""Markdown pages: decode, parse into front matter, compiled truth and timeline, render, and patch in place.

The compiled truth is the text of a page above the timeline. A bare `---` line separates the two. A patch keeps
every byte that the edit does not affect, unless the page has to be rendered again; the result is parsed again
before it is returned.

Front matter is YAML or TOML, with values restricted to JSON types. It is limited in size and depth, because files may
come from untrusted sources.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from quaid.errors import InvalidFrontMatter
from quaid.model import dates
from quaid.model.dates import Clock
from quaid.model.plain_text import close_fence, count_noun, fence_cover

_WIDEST_LIST = 100
_LONGEST_KEY = 500  # parsers reject `key:` beyond 1,024 characters, and require `? key` instead

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.
_BARE = r"[^\W\d](?:[\w ./@+()'!%;=~–—’-]*[\w.)!%'’])?"
_BARE_URL = re.compile(r"https?://[\w./%=~+-]*[\w/]")
_MISREAD = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity")
)

_SURROGATE = "[\ud800-\udfff]"
_UNPRINTABLE = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in _UNPRINTABLE},
    **str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}),
}
_GUARDED_ESCAPES = {**_ESCAPES, **{ord(mark): f"\\u{ord(mark):04x}" for mark in "[]{}&*"}}


def write_yaml(values: Mapping[str, Any], *, guarded: bool = False) -> str:
    """Return the YAML of a mapping.

    `guarded` escapes brackets, & and * in text, which _refusal() would mistake for YAML syntax.
    """
    lines: list[str] = []
    _YamlWriter(lines, guarded).mapping(values, "")
    return "".join([line + "\n" for line in lines])


class _YamlWriter:
    """Appends the YAML of nested values to a list of lines."""

    def __init__(self, lines: list[str], guarded: bool) -> None:
        self.lines = lines
        self.guarded = guarded

    def mapping(self, values: Mapping[str, Any], indent: str) -> None:
        for key, value in values.items():
            name = self.text(key)
            if len(name) > _LONGEST_KEY:
                self.lines.append(f"{indent}? {name}")
                name = ""
            self.entry(f"{indent}{name}:", value, indent)

    def sequence(self, items: list[Any] | tuple[Any, ...], indent: str) -> None:
        for item in items:
            if isinstance(item, dict) and item:
                first = len(self.lines)
                self.mapping(item, indent + "  ")
                self.lines[first] = f"{indent}- {self.lines[first][len(indent) + 2 :]}"
            else:
                self.entry(f"{indent}-", item, indent)

    def entry(self, head: str, value: Any, indent: str) -> None:
        inline = self.inline(value)
        if inline is not None:
            self.lines.append(f"{head} {inline}")
            return
        self.lines.append(head)
        if isinstance(value, dict):
            self.mapping(value, indent + "  ")
        else:
            self.sequence(value, indent + "  ")

    def inline(self, value: Any) -> str | None:
        """Return the value as YAML that fits on one line, or None if it needs a block of its own."""
        if isinstance(value, dict):
            return None if value else "{}"
        if not isinstance(value, (list, tuple)):
            return self.scalar(value, bare_urls=True)
        if value and (self.guarded or any(isinstance(item, (dict, list, tuple)) for item in value)):
            return None
        flow = ", ".join([self.scalar(item, bare_urls=False) for item in value])
        return f"[{flow}]" if len(flow) <= _WIDEST_LIST else None

    def scalar(self, value: Any, *, bare_urls: bool) -> str:
        if value is None or isinstance(value, bool):
            return "null" if value is None else str(value).lower()
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
            return str(value)
        if isinstance(value, float) and value - value == 0:
            mantissa, exponent, power = repr(value).partition("e")
            return mantissa + (".0" if "." not in mantissa else "") + exponent + power
        text = str(value)
        if dates.is_date(text):
            return text  # Obsidian and other programs recognize dates only without quotes
        return self.text(text, bare_urls=bare_urls)

    def text(self, text: str, *, bare_urls: bool = False) -> str:
        if (
            re.fullmatch(_BARE, text) or (bare_urls and _BARE_URL.fullmatch(text))
        ) and text.lower() not in _MISREAD:
            return text
        quoted = text.translate(_GUARDED_ESCAPES if self.guarded else _ESCAPES)
        return f'"{quoted}"' if quoted.isascii() else '"' + re.sub(_SURROGATE, "\ufffd", quoted) + '"'


LARGEST_BLOCK = 64 * 1024
DEEPEST_NESTING = 100
# YAML parsing is quadratic in the nesting depth, and quotes can hide brackets from the depth check.
MOST_BRACKETS = 2000

# These are not compiled here, because they are used only for unusual or invalid blocks.
_ANCHOR = "(?<![^\\s\ufeff\\[{,:?-])&([0-9A-Za-z_-]+)"
_ALIAS = "(?<![^\\s\ufeff\\[{,:?-])\\*([0-9A-Za-z_-]+)"
_PLACE = r"\s*\(?\bat (?:line ([0-9]+),? column [0-9]+|position ([0-9]+)|end of document)\)?"
_DUPLICATE = r'(?s)duplicate entry with key "(.*)"'
_REWORDED = {
    "mapping values are not allowed": "mapping values are not allowed here; a value with ': ' in it needs quotes,"
    ' as in title: "Plan: phase 2"',
    "unhashable": "a mapping or a list stands where a key should",
    "more than one document": "it holds more than one YAML document",
    "codec can't encode": "it holds a lone surrogate, which is no character",
    "as u128": "an integer has more than 64 bits; put it in quotes",
    "as i128": "an integer has more than 64 bits; put it in quotes",
}


def read_yaml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return the mapping in a YAML block, or raise InvalidFrontMatter.

    `first_line` is the number of the block's first line in the file, used in the message.
    """
    _refuse(text)
    import ryaml

    try:
        values = ryaml.loads(text)  # type: ignore[attr-defined]
    except ValueError as error:
        _fail(str(error), text, first_line)
    except BaseException as error:  # a panic inside the parser is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidFrontMatter(problem="the YAML reader gave up on it") from None
    return _check_mapping(values)


def read_toml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return the table in a TOML block, or raise InvalidFrontMatter. Dates and times become ISO 8601 text."""
    _refuse(text)
    import tomllib

    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _fail(str(error), text, first_line)
    return _check_mapping(values)


def dump_yaml(values: Mapping[str, Any]) -> str:
    """Return the YAML of plain values. read_yaml returns the same values if the text fits into LARGEST_BLOCK."""
    text = write_yaml(values)
    return write_yaml(values, guarded=True) if _refusal(text) else text


def plain_values(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping to plain values and validate it, for front matter that does not come from a file."""
    plain = _check_mapping(dict(values))
    _refuse(dump_yaml(plain))
    return plain


def _refuse(text: str) -> None:
    refusal = _refusal(text)
    if refusal:
        raise InvalidFrontMatter(problem=refusal)


def _refusal(text: str) -> str | None:
    """Return why a block must not be passed to its parser, or None."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > LARGEST_BLOCK:
        return f"it has {size:,} bytes and {LARGEST_BLOCK:,} are allowed"
    brackets = text.count("[") + text.count("{")
    if brackets > MOST_BRACKETS:
        return f"it has {brackets:,} brackets and {MOST_BRACKETS:,} are allowed"
    if brackets > DEEPEST_NESTING and _bracket_depth(text) > DEEPEST_NESTING:
        return f"it nests deeper than {DEEPEST_NESTING} levels"
    if "&" in text and "*" in text:
        shared = set(re.findall(_ANCHOR, text)).intersection(re.findall(_ALIAS, text))
        if shared:
            return f"it repeats the anchor &{min(shared)} by an alias, which is not supported"
    return None


def _bracket_depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _fail(message: str, text: str, first_line: int) -> NoReturn:
    """Raise InvalidFrontMatter with a shortened parser message and the line in the file."""
    places, duplicate = list(re.finditer(_PLACE, message)), re.search(_DUPLICATE, message)
    line = 1
    if duplicate:
        key = re.compile(rf"""^[\s-]*["']?{re.escape(duplicate[1])}["']?\s*:""", re.MULTILINE)
        line = ([text.count("\n", 0, again.end()) + 1 for again in key.finditer(text)] + [1, 1])[1]
        message = f"the key {duplicate[1][:40]!r} appears twice"
    elif places:
        # For a missing bracket or quotation mark, the opening position is more helpful than the end.
        line = _error_line(places[0] if "block" in message else places[-1], text)
        message = message[: places[0].start()] or message
    message = next((words for sign, words in _REWORDED.items() if sign in message), message)
    raise InvalidFrontMatter(problem=f"line {line + first_line - 1}: {message[:120].strip()}") from None


def _error_line(place: re.Match[str], text: str) -> int:
    if place[1]:
        return min(int(place[1]), text.count("\n") + 1)
    before = text.encode("utf-8", "replace")
    return (before[: int(place[2])] if place[2] else before).count(b"\n") + 1


def _check_mapping(values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "plain text"
        raise InvalidFrontMatter(problem=f"it is {kind}, not 'key: value' lines")
    return _plain_mapping(values, 1)


def _plain_mapping(values: dict[Any, Any], depth: int) -> dict[str, Any]:
    plain = {_plain_key(key): _plain_value(value, depth + 1) for key, value in values.items()}
    if len(plain) < len(values):
        raise InvalidFrontMatter(problem="two of its keys are spelled alike")
    return plain


def _plain_key(key: Any) -> str:
    if key is None or isinstance(key, bool):
        return "null" if key is None else str(key).lower()
    return str(_plain_value(key, 0))


def _plain_value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _without_surrogates(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, (dict, list, tuple)) and depth > DEEPEST_NESTING:
        raise InvalidFrontMatter(problem=f"it nests deeper than {DEEPEST_NESTING} levels")
    if isinstance(value, dict):
        return _plain_mapping(value, depth)
    if isinstance(value, (list, tuple)):
        return [_plain_value(item, depth + 1) for item in value]
    return _without_surrogates(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON may contain but files and databases cannot store."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


UNPARSED_KEY = "_unparsed"
"""Key under which invalid front matter is stored verbatim, without its fences (the `---` or `+++` lines)."""
FENCE_KEY = "_fence"
"""Key beside UNPARSED_KEY with the value "+++", which is present only if the fences were `+++`."""

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.
_DIVIDER = re.compile(r"(?m)^---[ \t]*$")
_OPENING = r"\A((?:[ \t]*\n)*)(---|\+\+\+)[ \t]*\n"
_CLOSING = {
    "---": re.compile(r"(?m)^(?:---|\.\.\.)[ \t]*$"),
    "+++": re.compile(r"(?m)^\+\+\+[ \t]*$"),
}
_BOM = "\ufeff"


class MarkdownDocument(NamedTuple):
    """The parts of a page; `problem` is the error message if the front matter is invalid."""

    frontmatter: dict[str, Any]
    truth: str
    timeline: str
    problem: str | None


def decode(data: bytes) -> tuple[str, str | None]:
    """Return the text, and a note if characters were replaced or another encoding was assumed, or None.

    UTF-8, Windows-1252, and UTF-16 with a BOM are recognized. Invalid bytes and NUL characters are replaced.
    """
    mended: list[str] = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if _is_western(data):
            return data.decode("cp1252"), "not UTF-8: read as Windows-1252"
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        text = data.decode(encoding, "replace")
        decoded = data.decode(encoding, "ignore").encode("utf-8" if encoding == "utf-8" else "utf-16-le")
        lost = len(data) - len(decoded) - (2 if encoding == "utf-16" else 0)
        if lost:
            mended.append(f"not {encoding.upper()}: {count_noun(lost, 'byte')} replaced")
    text = text.removeprefix(_BOM)
    if "\0" in text:
        mended.append(f"{count_noun(text.count(chr(0)), 'NUL character')} replaced")
        text = text.replace("\0", "\ufffd")
    return text, "; ".join(mended) or None


def _is_western(data: bytes) -> bool:
    """Return True if the bytes look like Windows-1252: all printable, and no multi-byte UTF-8 character."""
    if b"\0" in data or not data.decode("utf-8", "ignore").isascii():
        return False
    try:
        return all(character.isprintable() or character in "\n\r\t\f" for character in data.decode("cp1252"))
    except UnicodeDecodeError:
        return False


def parse(text: str) -> MarkdownDocument:
    """Split a page into its parts. This never fails, because invalid front matter is kept verbatim."""
    frontmatter, problem, body = _split_front_matter(_with_line_feeds(text).removeprefix(_BOM))
    divider = _find_divider(body)
    if not divider:
        return MarkdownDocument(frontmatter, _strip_blank_lines(body), "", problem)
    truth, timeline = body[: divider.start()], body[divider.end() :]
    return MarkdownDocument(frontmatter, _strip_blank_lines(truth), _strip_blank_lines(timeline), problem)


def check_front_matter(document: MarkdownDocument, before: Mapping[str, Any]) -> None:
    """Raise InvalidFrontMatter if the front matter is invalid, unless it is the same as `before`.

    A block that is not closed always raises the error.
    """
    if document.problem and (not document.frontmatter or document.frontmatter != before):
        raise InvalidFrontMatter(problem=document.problem)


def _split_front_matter(text: str) -> tuple[dict[str, Any], str | None, str]:
    """Return front matter, error message or None, and body.

    A block after blank lines is front matter only if it is valid, because its `---` may also be the divider
    below an empty compiled truth. An unclosed block is text; its opening line is dropped if it would be a
    divider.
    """
    opening = re.match(_OPENING, text)
    if not opening:
        return {}, None, text
    closing = _CLOSING[opening[2]].search(text, opening.end())
    if not closing and (opening[1] or not text[opening.end() :].strip()):
        return {}, None, text
    if not closing:
        unclosed = f"line 1 opens it with '{opening[2]}', and no later line closes it"
        return {}, unclosed, text[opening.end() :] if opening[2] == "---" else text
    block = text[opening.end() : max(opening.end(), closing.start() - 1)]
    frontmatter, problem = _read_front_matter(opening[2], block)
    if opening[1] and (problem or not frontmatter):
        return {}, None, text
    return frontmatter, problem, text[closing.end() :]


def _read_front_matter(fence: str, block: str) -> tuple[dict[str, Any], str | None]:
    read = read_yaml if fence == "---" else read_toml
    try:
        return read(block, 2), None
    except InvalidFrontMatter as error:
        frontmatter = {UNPARSED_KEY: block} if fence == "---" else {UNPARSED_KEY: block, FENCE_KEY: fence}
        return frontmatter, str(error.facts["problem"])


def _find_divider(text: str) -> "re.Match[str] | None":
    if "---" not in text:
        return None
    code = fence_cover(text)
    return next((match for match in _DIVIDER.finditer(text) if not code.contains(match.start())), None)


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _strip_blank_lines(text: str) -> str:
    body = text.lstrip(" \t\n")
    if not body:
        return ""
    start = text.rfind("\n", 0, len(text) - len(body)) + 1
    end = text.find("\n", len(text.rstrip(" \t\n")))
    return text[start:end] if end >= 0 else text[start:]


def normalize_part(text: str) -> str:
    """Return a compiled truth or timeline in the form in which `parse` returns it."""
    return _strip_blank_lines(_with_line_feeds(text))


def has_divider(truth: str) -> bool:
    """Return True if a compiled truth contains a bare `---` line outside code.

    `parse` would end the compiled truth at that line.
    """
    return _find_divider(_with_line_feeds(truth)) is not None


def is_expired(text: str, clock: Clock) -> bool:
    """Return True if the front matter of a page says that it has expired."""
    if not text.startswith("---") or dates.EXPIRY_KEY not in text:
        return False
    moment = dates.parse_moment(parse(text).frontmatter.get(dates.EXPIRY_KEY))
    return moment is not None and moment != dates.NEVER and clock.is_past(moment)


def render(frontmatter: Mapping[str, Any], truth: str, timeline: str) -> str:
    """Render a page such that `parse` returns the same parts.

    If a timeline follows, an open code block in the compiled truth is closed, because otherwise the timeline
    would become part of the block. The compiled truth must not contain a bare `---` line (see has_divider),
    because `parse` would end it there.
    """
    parts: list[str] = []
    if truth:
        parts.append(close_fence(truth) if timeline else truth)
    if timeline:
        parts.extend(["---", timeline])
    block = _front_matter_block(frontmatter)
    if not block and parts and (not truth or truth.startswith(("---", "+++", _BOM))):
        block = "---\n---\n"  # otherwise the first line could be parsed as front matter or a divider
    if block:
        parts.insert(0, block.removesuffix("\n"))
    return "\n\n".join(parts) + "\n" if parts else ""


def _front_matter_block(frontmatter: Mapping[str, Any]) -> str:
    if not frontmatter:
        return ""
    unread = frontmatter.get(UNPARSED_KEY)
    if isinstance(unread, str):
        fence = frontmatter.get(FENCE_KEY, "---")
        block = f"{fence}\n{unread}\n{fence}\n"
        if parse(block)[:3] == (frontmatter, "", ""):
            return block

    return f"---\n{dump_yaml(frontmatter)}---\n"


_LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"
_YAML_KEY = r"""("[^"]*"|'[^']*'|[^\s#"'\-?:,\[\]{}&*!|>%@`][^#\n]*?|-[^\s#][^#\n]*?)[ \t]*:(?=[ \t]|$)"""
_COMMENT = re.compile(r"(?<![ \t])[ \t]+#.*$")
_YAML_ITEM = re.compile(r"([ \t]*-[ \t]+)\S")
_BLANK = " \t\r\n"


class _PageLines(NamedTuple):
    """Line ranges of the parts of a page, counted from 0; ends are exclusive."""

    fence: str
    """Delimiter of the front matter, or "" if there is none."""
    front: tuple[int, int]
    truth: tuple[int, int]
    divider: int | None
    timeline: tuple[int, int]


def patch(text: str, frontmatter: Mapping[str, Any], truth: str, timeline: str) -> str:
    """Return the text with these parts replaced, in place if possible; otherwise render the whole text.

    Raise InvalidFrontMatter if `parse` would not return these parts from either result, or if the front
    matter changes and the old front matter is TOML or invalid.
    """
    old = parse(text)
    lines: list[str] = re.findall(_LINE, text)
    end = _line_end(lines)
    shape = _page_lines(lines)
    if timeline != old.timeline:
        _splice(lines, *_timeline_splice(lines, shape, timeline, end))
    if truth != old.truth:
        _splice(lines, *_truth_splice(lines, shape, truth, end))
    if frontmatter != old.frontmatter:
        _splice(lines, *_front_matter_splice(lines, shape, old.frontmatter, frontmatter, end))
    patched = "".join(lines)
    if parse(patched)[:3] == (frontmatter, truth, timeline):
        return patched
    whole = render(frontmatter, truth, timeline).replace("\n", end)
    if parse(whole)[:3] == (frontmatter, truth, timeline):
        return whole
    raise InvalidFrontMatter(problem="this change cannot be written into the file")


def _line_end(lines: list[str]) -> str:
    """Return the most frequent line end."""
    endings = [line[len(line.rstrip("\r\n")) :] for line in lines]
    return max(("\n", "\r\n", "\r"), key=endings.count) if endings else "\n"


def _page_lines(lines: list[str]) -> _PageLines:
    """Return the line ranges of the parts that `parse` finds."""
    text = "".join([line.rstrip("\r\n") + "\n" for line in lines]).removeprefix(_BOM)
    frontmatter, problem, body = _split_front_matter(text)
    # Number of the line with the closing fence, or 0 without front matter.
    first = text.count("\n", 0, len(text) - len(body))
    is_unclosed = problem is not None and not frontmatter
    opening = re.match(_OPENING, text) if len(body) < len(text) and not is_unclosed else None
    match = _find_divider(body)
    divider = None if match is None else first + body.count("\n", 0, match.start())
    bare = [line.strip(_BLANK + _BOM) for line in lines]
    last = len(lines) if divider is None else divider
    timeline = (last, last) if divider is None else _without_blank_ends(bare, divider + 1, len(lines))
    return _PageLines(
        opening[2] if opening else "",
        (text.count("\n", 0, opening.end()), first) if opening else (0, 0),
        _without_blank_ends(bare, first + 1 if opening else first if is_unclosed else 0, last),
        divider,
        timeline,
    )


def _without_blank_ends(bare: list[str], first: int, last: int) -> tuple[int, int]:
    """Shrink a range of lines to exclude blank lines at both ends."""
    while first < last and not bare[first]:
        first += 1
    while last > first and not bare[last - 1]:
        last -= 1
    return first, last


_Splice = tuple[int, int, list[str]]


def _splice(lines: list[str], first: int, last: int, new: list[str]) -> None:
    if new and first and not lines[first - 1].endswith(("\n", "\r")):
        lines[first - 1] += _line_end(lines)
    lines[first:last] = new


def _smallest_splice(lines: list[str], span: tuple[int, int], text: str, end: str) -> _Splice:
    """Return the smallest replacement of lines that turns a span of lines into the text."""
    first, last = span
    new = text.split("\n") if text else []
    old = [line.rstrip("\r\n") for line in lines[first:last]]
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = [line + end for line in new[same : len(new) - tail]]
    if middle and last - tail == len(lines) and lines and not lines[-1].endswith(("\r", "\n")):
        middle[-1] = middle[-1].rstrip("\r\n")  # if the file had no final line end, none is added
    return first + same, last - tail, middle


def _truth_splice(lines: list[str], shape: _PageLines, truth: str, end: str) -> _Splice:
    first, last = shape.truth
    if first < last:
        return _smallest_splice(lines, shape.truth, truth, end)
    place = shape.front[1] + 1 if shape.fence else 0
    new = [line + end for line in truth.split("\n")]
    before = [end] if place else []
    after = [end] if place < len(lines) and lines[place].strip(_BLANK) else []
    return place, place, [*before, *new, *after]


def _timeline_splice(lines: list[str], shape: _PageLines, timeline: str, end: str) -> _Splice:
    first, last = shape.timeline
    if first < last:
        return _smallest_splice(lines, shape.timeline, timeline, end)
    new = [line + end for line in timeline.split("\n")]
    if shape.divider is not None:
        return shape.divider + 1, shape.divider + 1, [end, *new]
    blank = [] if not lines or not lines[-1].strip(_BLANK) else [end]
    return len(lines), len(lines), [*blank, "---" + end, end, *new]


def _front_matter_splice(
    lines: list[str], shape: _PageLines, old: Mapping[str, Any], new: Mapping[str, Any], end: str
) -> _Splice:
    """Return the replacement of the front matter block that rewrites only the changed keys."""
    if not shape.fence:
        written = dump_yaml(dict(new)) if new else ""
        front_lines = [line + end for line in f"---\n{written}---\n".split("\n")]
        if lines and lines[0].startswith(_BOM):
            return 0, 1, [_BOM + front_lines[0], *front_lines[1:], lines[0].removeprefix(_BOM)]
        return 0, 0, front_lines
    if shape.fence != "---" or UNPARSED_KEY in old:
        raise InvalidFrontMatter(problem="only YAML front matter that can be read is changed in place")
    first, last = shape.front
    block = [line.rstrip("\r\n") for line in lines[first:last]]
    spans = _key_spans(block)
    for key in [key for key in spans if old.get(key) != new.get(key) or key not in new][::-1]:
        start, stop = spans[key]
        block[start:stop] = _rewrite_key(block[start:stop], key, old.get(key), new[key]) if key in new else []
    for key in new:
        if key not in old:
            block += write_yaml({key: new[key]}).splitlines()
    return first, last, [line + end for line in block]


def _key_spans(block: list[str]) -> dict[str, tuple[int, int]]:
    """Return the range of lines of each key, without the comments and blank lines that follow it."""
    starts: list[tuple[str, int]] = []
    for place, line in enumerate(block):
        match = re.match(_YAML_KEY, line)
        if match:
            name = match[1]
            starts.append((name[1:-1] if name[0] in "\"'" else name, place))
    spans: dict[str, tuple[int, int]] = {}
    for number, (name, start) in enumerate(starts):
        stop = starts[number + 1][1] if number + 1 < len(starts) else len(block)
        while stop > start + 1 and (not block[stop - 1].strip() or block[stop - 1].startswith("#")):
            stop -= 1
        spans[name] = (start, stop)
    return spans


def _rewrite_key(block: list[str], key: str, old: Any, new: Any) -> list[str]:
    """Return the lines of a key with a new value, in the style of the old lines."""
    if isinstance(old, list) and isinstance(new, list) and new:
        listed = _rewrite_list(block, old, new)
        if listed:
            return listed
    written = write_yaml({key: new}).splitlines()
    spelled = block[0].partition(":")[0]
    written[0] = spelled + written[0][written[0].index(":") :] if ":" not in key else written[0]
    if len(block) == len(written) == 1:
        comment = _COMMENT.search(block[0])
        if comment and _is_comment(block[0], comment.start()):
            written[0] += comment[0]
    return written


def _rewrite_list(block: list[str], old: list[Any], new: list[Any]) -> list[str] | None:
    """Return the new lines of a list with one item per line, or None if the list is written in a different form.

    Comments are kept unless the order of the items changes.
    """
    items = [line for line in block[1:] if _YAML_ITEM.match(line)]
    others = [line for line in block[1:] if not _YAML_ITEM.match(line)]
    yaml_items = {str(item): write_yaml({"x": item})[3:].rstrip("\n") for item in new}
    if len(items) != len(old) or not items or any("\n" in text for text in yaml_items.values()):
        return None
    if any(line.strip() and not line.lstrip().startswith("#") for line in others):
        return None
    mark = _YAML_ITEM.match(items[0])
    assert mark is not None
    lines = dict(zip(map(str, old), items, strict=True))
    order = [str(item) for item in new]
    if [name for name in map(str, old) if name in yaml_items] != order[
        : sum(name in yaml_items for name in map(str, old))
    ]:
        return [block[0], *(lines.get(name, mark[1] + yaml_items[name]) for name in order)]
    gone = {id(line) for name, line in lines.items() if name not in yaml_items}
    remaining = [line for line in block if id(line) not in gone]
    return [*remaining, *(mark[1] + yaml_items[name] for name in order if name not in lines)]


def _is_comment(line: str, place: int) -> bool:
    """Return True if the rest of the line is a comment, so that the line has the same value without it."""
    try:
        return read_yaml(line[:place]) == read_yaml(line)
    except InvalidFrontMatter:
        return False


# Three-way merge

_GIT_MARKERS = ("<<<<<<< ours", "=======", ">>>>>>> theirs")


def merge_files(base: str, ours: str, theirs: str) -> tuple[str, int] | None:
    """Merge three versions of a page's file by parts. Return the text and the number of conflicts in it.

    `base` is "" if both versions are new. Conflicts are marked as git marks them. Text that no version changed
    keeps every byte. Return None if a version has front matter that cannot be parsed or changed in place.
    """
    if ours in (theirs, base) or theirs == base:
        return (ours if theirs == base else theirs), 0
    from quaid.model import merge  # imported late, because reading a page does not need it

    old, one, other = parse(base), parse(ours), parse(theirs)
    if old.problem or one.problem or other.problem:
        return None
    frontmatter, conflicts = merge.merge_front_matter(
        *(old.frontmatter, one.frontmatter, other.frontmatter), "ours", "theirs"
    )
    truth, text_conflicts = merge.merge_text(
        old.truth if base else None, one.truth, other.truth, "ours", "theirs"
    )
    for conflict in text_conflicts:
        if len(conflict.sides) == 2:
            start, middle, end = _GIT_MARKERS
            texts = [side.value for side in conflict.sides]
            marked = "\n".join(filter(None, [start, texts[0], middle, texts[1], end]))
            truth = truth.replace(merge.conflict_text(conflict), marked, 1)
    timeline = merge.merge_timeline(old.timeline, one.timeline, other.timeline)
    # Patch the version that changed the front matter; if that is only `theirs`, `ours` still has that of the base.
    frame = theirs if _front_matter_lines(ours) == _front_matter_lines(base) else ours
    try:
        text = patch(frame, frontmatter, truth, timeline)
    except InvalidFrontMatter:
        return None
    for conflict in conflicts:
        text = _mark_key(text, conflict.key, ours, theirs)
    return text, len(text_conflicts) + len(conflicts)


def _front_matter_lines(text: str, key: str | None = None) -> list[str]:
    """Return the lines of the front matter, or of one of its keys, without line ends."""
    lines: list[str] = re.findall(_LINE, text)
    first, last = _page_lines(lines).front
    block = [line.rstrip("\r\n") for line in lines[first:last]]
    if key is None:
        return block
    start, stop = _key_spans(block).get(key, (0, 0))
    return block[start:stop]


def _mark_key(text: str, key: str, ours: str, theirs: str) -> str:
    """Put the lines of a key from both files between the markers of git."""
    lines: list[str] = re.findall(_LINE, text)
    end = _line_end(lines)
    first, last = _page_lines(lines).front
    start, stop = _key_spans([line.rstrip("\r\n") for line in lines[first:last]]).get(key, (0, 0))
    head, middle, tail = _GIT_MARKERS
    marked = [head, *_front_matter_lines(ours, key), middle, *_front_matter_lines(theirs, key), tail]
    lines[first + start : first + stop] = [line + end for line in marked]
    return "".join(lines)

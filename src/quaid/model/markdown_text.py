"""Markdown as plain text: code fences, headings, first paragraph, open threads, and stripping of markup."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# The pattern starts with \n instead of ^ and is searched in "\n" + text, which is several times as fast.
_FENCE_LINE = re.compile(r"\n {0,3}(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})([^\n]*)")

ATTACHMENTS = "attachments"
"""The folder with images, as a page names it."""
ATTACHMENT_NAME = re.compile(r"[0-9a-f]{32}\.(?:png|jpg|gif|webp)")

MOST_FENCES = 50_000
"""At most this many fenced blocks are parsed in one text; later fences count as plain text."""


class Fence(NamedTuple):
    """A fenced block, from the start of its opening line to the end of its closing line."""

    start: int
    end: int
    left_open: str  # the marker that would close the block, or "" if it is closed


def find_fences(text: str) -> list[Fence]:
    """Return all fenced blocks in order. An unclosed block extends to the end of the text."""
    if "```" not in text and "~~~" not in text:
        return []
    fences: list[Fence] = []
    marker, start = "", 0
    for line in _FENCE_LINE.finditer("\n" + text):
        run = line[1]
        if not marker:
            marker, start = run, line.start()
        elif run[0] == marker[0] and len(run) >= len(marker) and not line[2].strip(" \t"):
            fences.append(Fence(start, line.end() - 1, ""))
            marker = ""
            if len(fences) == MOST_FENCES:
                break
    if marker:
        fences.append(Fence(start, len(text), marker))
    return fences


def remove_fences(text: str) -> str:
    """Return the text without its fenced blocks, leaving an empty line in place of each."""
    pieces: list[str] = []
    position = 0
    for fence in find_fences(text):
        pieces.append(text[position : fence.start])
        position = fence.end
    return "".join([*pieces, text[position:]]) if position else text


# At most this many characters of a paragraph are parsed, which bounds the cost of hostile markup.
_LONGEST_READ = 4000

HEAD_LENGTH = 250_000
"""A page's title, summary and room are searched for in this many leading characters."""

# These patterns start with \n instead of ^ and are searched in "\n" + text, which is several times as fast.
_HEADINGS = {1: re.compile(r"\n {0,3}#[ \t]+(\S[^\n]*)"), 2: re.compile(r"\n {0,3}##[ \t]+(\S[^\n]*)")}
_UNDERLINE = re.compile(r"\n {0,3}=+[ \t]*(?=\n|\Z)")
_TOP_QUOTE = re.compile(r"\s*?(\n {0,3}>[^\n]*(?:\n {0,3}>[^\n]*)*+)")
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+[ \t]*", re.MULTILINE)
_CALLOUT = re.compile(r"\s*\[![\w-]+")
_HIDDEN = re.compile(r"<!--|<(?:script|style)\b", re.IGNORECASE)
_HIDDEN_END = {
    "<!--": re.compile(r"-->"),
    "<script": re.compile(r"</script>", re.IGNORECASE),
    "<style": re.compile(r"</style>", re.IGNORECASE),
}
_LIST_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|\Z)")
_STRUCTURE = re.compile(
    r"""\#{1,6}(?:[ \t]|\Z)                          # heading
    | (?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|\Z)          # list item
    | >                                              # quotation
    | \|                                             # table
    | ([-*_])(?:[ \t]*\1){2,}\Z                      # rule
    | \[[^\[\]]+\]:                                  # link or footnote definition
    """,
    re.VERBOSE,
)

_LABEL = re.compile(r"(\*\*|__|`+)[^*_`]+\1[:.]?")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_CODE_PLACES = 0x10F000
"""The first of the private-use code points that replace code spans, so that markup inside code is not changed."""
_CODE_PLACE = re.compile(r"[\U0010f000-\U0010ffff]")
_SHORTCODE = re.compile(r"\{\{[<%]([^{}]*)[%>]\}\}|\{%[^{}]*%\}")
_SHORTCODE_TEXT = re.compile(r"""\stext=["']([^"']*)""")
_WIKI_LINK = re.compile(r"(!?)\[\[([^\[\]|]*)(?:(?:\||\]\[)([^\[\]]*))?\]\]")
_NO_TEXT = re.compile(r"!\[[^\[\]]*\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])|\[\^[^\[\]]*\]")
_LINK = re.compile(r"\[([^\[\]]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]*:[^<>\s]*)>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_OPEN_END = re.compile(r"(?:!?\[{1,2}[^\[\]]*(?:\]\([^()]*)?|<[a-z/!][^<>]*)\Z", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:nbsp|amp|lt|gt|quot|#39);")
_ENTITIES = {"&nbsp;": " ", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'"}
_EMPHASIS = re.compile(
    r"\\([!-/:-@\[-`{-~])|(?<![\w\\])(?:[*_]{1,3}|~~)(?=\S)|(?<=[^\s\\])(?:[*_]{1,3}|~~)(?!\w)"
)


def one_line(value: Any) -> str:
    """Return a front matter scalar as one line of text, or "" for other types."""
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(str(value).split()) if isinstance(value, (str, int, float)) else ""


def visible_text(truth: str) -> str:
    """Return the text without fenced code, HTML comments, scripts and styles."""
    text = remove_fences(truth)
    pieces: list[str] = []
    position = 0
    while hidden := _HIDDEN.search(text, position):
        pieces.append(text[position : hidden.start()])
        end = _HIDDEN_END[hidden[0].lower()].search(text, hidden.end())
        position = end.end() if end else len(text)
    return "".join([*pieces, text[position:]]) if position else text


def text_head(text: str) -> str:
    """Return the first HEAD_LENGTH characters, cut at a line end if possible."""
    if len(text) <= HEAD_LENGTH:
        return text
    end = text.rfind("\n", 0, HEAD_LENGTH)
    return text[: end if end > 0 else HEAD_LENGTH]


def first_heading(text: str, level: int) -> str:
    """Return the first non-empty heading of level 1 or 2 as plain text, or "" if there is none."""
    text = "\n" + text
    for heading in _HEADINGS[level].finditer(text):
        heading_text = strip_markdown(_without_closing_hashes(heading[1]))
        if heading_text:
            return (_first_underlined(text, heading.start()) if level == 1 else "") or heading_text
    return _first_underlined(text, len(text)) if level == 1 else ""


def _without_closing_hashes(heading: str) -> str:
    heading = heading.rstrip()
    bare = heading.rstrip("#")
    return bare if not bare or bare[-1] in " \t" else heading


def _first_underlined(text: str, before: int) -> str:
    for underline in _UNDERLINE.finditer(text, 0, before):
        if above := _underlined_text(text, underline.start()):
            return strip_markdown(above)
    return ""


def _underlined_text(text: str, end: int) -> str:
    """Return the line ending at `end` if a following underline makes it a heading, else an empty string."""
    above = text[text.rfind("\n", 0, end) + 1 : end].strip()
    return "" if _STRUCTURE.match(above[:_LONGEST_READ]) else above


def top_quote(text: str) -> str:
    """Return the quotation below the first H1 or at the top of the text, as plain text; "" if there is none.

    Callouts such as `> [!note]` are ignored.
    """
    text = "\n" + text
    for start in (_first_h1_end(text), 0):
        quote = _TOP_QUOTE.match(text, start)
        if quote:
            body = _QUOTE_MARKS.sub("", quote[1][: 2 * _LONGEST_READ])
            quote_text = "" if _CALLOUT.match(body) else strip_markdown(body)
            if any(map(str.isalnum, quote_text)):
                return quote_text
    return ""


def _first_h1_end(text: str) -> int:
    """Return the end of the line of the first H1, or 0 if there is no H1. The text must begin with a line feed."""
    heading = _HEADINGS[1].search(text)
    before = heading.start() if heading else len(text)
    for underline in _UNDERLINE.finditer(text, 0, before):
        if _underlined_text(text, underline.start()):
            return underline.end()
    return heading.end() if heading else 0


def first_paragraph(text: str) -> str:
    """Return the first paragraph that contains a letter or digit, as plain text, or "" if there is none.

    A paragraph that is entirely bold or code is probably a heading or a sample, so it is used only if there
    is no other.
    """
    second_best = ""
    for paragraph in _paragraphs(text):
        written = " ".join(paragraph)
        plain = strip_markdown(written)
        if any(map(str.isalnum, plain)):
            if not _LABEL.fullmatch(written):
                return plain
            second_best = second_best or plain
    return second_best


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yield runs of lines that are not headings, lists, tables, quotations, rules or indented code."""
    lines: list[str] = []
    in_list = in_table = after_blank = False
    for line in _lines(text):
        stripped = line.strip()
        structure = bool(_STRUCTURE.match(stripped[:_LONGEST_READ]))
        if lines and _makes_heading_or_table(stripped):
            lines, in_table = [], "|" in stripped
        elif lines and (structure or not stripped):
            yield lines
            lines = []
        elif lines:
            lines.append(stripped)
        elif stripped and not structure and not in_table:
            in_list = in_list and (not after_blank or line[0] in " \t")
            if not in_list and not line.startswith(("    ", "\t")):
                lines = [stripped]
        if structure:
            in_list = bool(_LIST_ITEM.match(stripped))
        after_blank = not stripped
        in_table = in_table and not after_blank
    if lines:
        yield lines


def _makes_heading_or_table(line: str) -> bool:
    """Return True if a line turns the paragraph above it into a heading or a table header."""
    marks = set(line)
    return marks in ({"="}, {"-"}) or ("-" in marks and "|" in marks and marks <= set("-:| \t"))


def _lines(text: str) -> Iterator[str]:
    """Yield lines lazily, since most callers need only the first few of a long text."""
    position = 0
    while position <= len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        yield text[position:end]
        position = end + 1


def strip_markdown(text: str) -> str:
    """Return inline Markdown as one line of plain text, with links and emphasis reduced to their text."""
    is_cut = len(text) > _LONGEST_READ
    text = _CODE_PLACE.sub("", text[:_LONGEST_READ])
    codes: list[str] = []

    def set_aside(code: re.Match[str]) -> str:
        codes.append(code[2].strip())
        return chr(_CODE_PLACES + len(codes) - 1)

    text = _CODE.sub(set_aside, text)
    text = _SHORTCODE.sub(_shortcode_text, text)
    text = _WIKI_LINK.sub(lambda link: "" if link[1] else link[3] or link[2], text)
    text = _LINK.sub(r"\1", _NO_TEXT.sub("", text))
    text = _TAG.sub("", _AUTOLINK.sub(r"\1", text))
    text = _without_open_end(text) if is_cut else text
    text = _ENTITY.sub(lambda entity: _ENTITIES[entity[0]], text)
    text = _EMPHASIS.sub(lambda mark: mark[1] or "", text)
    text = _CODE_PLACE.sub(lambda place: codes[ord(place[0]) - _CODE_PLACES], text)
    return " ".join(text.split())


def _without_open_end(text: str) -> str:
    """Remove a link, image or HTML tag that was left incomplete by truncation."""
    for _ in range(3):  # an image within a link leaves two incomplete constructs
        open_end = _OPEN_END.search(text)
        if open_end is None:
            break
        text = text[: open_end.start()]
    return text


def _shortcode_text(shortcode: re.Match[str]) -> str:
    argument = _SHORTCODE_TEXT.search(shortcode[1] or "")
    return argument[1] if argument else ""


def shorten(text: str, limit: int) -> str:
    """Return the text, truncated at a word boundary with an ellipsis if it is longer than `limit`."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > limit // 2 else cut).rstrip(" ,;:.-–—") + "…"


_THREADS_HEADING = re.compile(
    r"^ {0,3}(#{1,6})[ \t]+[*_]{0,2}open threads[*_:]{0,3}[ \t]*#*[ \t]*$", re.M | re.I
)
_NEXT_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]", re.MULTILINE)
_UNTICKED_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[ \][ \t]+(\S[^\n]*)", re.MULTILINE)


def open_threads(truth: str) -> list[str]:
    """Return the unticked checkbox items under "Open threads" headings, as plain text."""
    if "[ ]" not in truth:
        return []
    text = remove_fences(truth)
    threads: list[str] = []
    for heading in _THREADS_HEADING.finditer(text):
        end = next(
            (
                match.start()
                for match in _NEXT_HEADING.finditer(text, heading.end())
                if len(match[1]) <= len(heading[1])
            ),
            len(text),
        )
        threads += [strip_markdown(box[1]) for box in _UNTICKED_BOX.finditer(text, heading.end(), end)]
    return threads


_BACKTICKS = re.compile(r"`+|\n[ \t]*\n")


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of code blocks and code spans, sorted."""
    spans = [(block.start, block.end) for block in find_fences(text)]
    # The start offset of each run in the current paragraph, by the length of the run.
    open_runs: dict[int, int] = {}
    for run in _BACKTICKS.finditer(text):
        if run[0][0] == "\n":
            open_runs.clear()
            continue
        length = len(run[0])
        if length in open_runs:
            spans.append((open_runs[length], run.end()))
            open_runs.clear()
        else:
            open_runs[length] = run.start()
    return sorted(spans)


_WIKI_LINK_TARGET = re.compile(r"\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")


def replace_wiki_links(text: str) -> str:
    """Replace each wiki link with its target: `[[people/alice|Alice]]` becomes people/alice."""
    return _WIKI_LINK_TARGET.sub(lambda link: link[1].strip(), text) if "[[" in text else text

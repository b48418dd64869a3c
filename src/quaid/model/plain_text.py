"""Plain text: Markdown as plain text, token estimates, counted nouns, CJK bigrams, rule files, and similar texts.

Texts are compared as lines, as questions, and as whole pages (near-duplicates, by MinHash).
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count, pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

    Array = np.ndarray[Any, Any]

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.

# This pattern starts with \n instead of ^ and is applied to "\n" + text, which is several times as fast.
_FENCE_LINE = r"\n {0,3}(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})([^\n]*)"

ATTACHMENTS = "attachments"
"""The name of the folder with images in the links of pages."""
ATTACHMENT_NAME = re.compile(r"[0-9a-f]{32}\.(?:png|jpg|gif|webp)")

MOST_FENCES = 50_000
"""At most this many fenced blocks are parsed in one text; later fences count as plain text."""


class Fence(NamedTuple):
    """A fenced block, from the start of its opening line to the end of its closing line."""

    start: int
    end: int
    left_open: str  # the marker that would close the block, or "" if it is closed


def find_fences(text: str) -> list[Fence]:
    """Return the fenced blocks in order, at most MOST_FENCES. An unclosed block extends to the end of the text."""
    if "```" not in text and "~~~" not in text:
        return []
    fences: list[Fence] = []
    marker, start = "", 0
    for line in re.finditer(_FENCE_LINE, "\n" + text):
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


def close_fence(text: str) -> str:
    """Return the text with its last fenced block closed, if the block was left open."""
    fences = find_fences(text)
    return f"{text}\n{fences[-1].left_open}" if fences and fences[-1].left_open else text


class LineCounter:
    """Converts offsets in a text to line numbers, from 1. Only the text since the previous offset is counted."""

    def __init__(self, text: str) -> None:
        self._text, self._line, self._counted = text, 1, 0

    def at(self, offset: int) -> int:
        if offset >= self._counted:
            self._line += self._text.count("\n", self._counted, offset)
        else:
            self._line -= self._text.count("\n", offset, self._counted)
        self._counted = offset
        return self._line


class SpanCover:
    """Tests whether an offset is within one of the sorted spans. Offsets must be given in ascending order."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans, self._passed, self._until = spans, 0, -1

    def contains(self, offset: int) -> bool:
        while self._passed < len(self._spans) and self._spans[self._passed][0] <= offset:
            self._until = max(self._until, self._spans[self._passed][1])
            self._passed += 1
        return offset < self._until


def fence_cover(text: str) -> SpanCover:
    """Return a cover of the fenced blocks of a text."""
    return SpanCover([(fence.start, fence.end) for fence in find_fences(text)])


# At most this many characters of a paragraph are parsed, which bounds the cost of hostile markup.
_LONGEST_READ = 4000

HEAD_LENGTH = 250_000
"""Only this many characters at the start of a page are searched for its title, summary and room."""

# These patterns start with \n instead of ^ and are applied to "\n" + text, which is several times as fast.
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
_STRUCTURE = r"""(?x)\#{1,6}(?:[ \t]|\Z)                          # heading
    | (?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|\Z)          # list item
    | >                                              # quotation
    | \|                                             # table
    | ([-*_])(?:[ \t]*\1){2,}\Z                      # rule
    | \[[^\[\]]+\]:                                  # link or footnote definition
    """

_LABEL = re.compile(r"(\*\*|__|`+)[^*_`]+\1[:.]?")
_CODE = r"(?s)(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)"
_CODE_PLACES = 0x10F000
"""The first of the private-use code points that replace code spans, so that markup inside code is not changed."""
_CODE_PLACE = re.compile(r"[\U0010f000-\U0010ffff]")
_OPEN_END = r"(?i)(?:!?\[{1,2}[^\[\]]*(?:\]\([^()]*)?|<[a-z/!][^<>]*)\Z"
_ENTITIES = {"&nbsp;": " ", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'"}

_Replacements = tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]


@cache
def _links_and_tags() -> _Replacements:
    """Return the patterns of shortcodes, links, images, footnotes and HTML tags with their replacements, in order.

    The patterns are compiled at first use: that takes 1 ms, and commands that only read stored pages do not need
    them.
    """
    address = r"(?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])"
    return (
        (re.compile(r"\{\{[<%]([^{}]*)[%>]\}\}|\{%[^{}]*%\}"), _shortcode_text),
        (
            re.compile(r"(!?)\[\[([^\[\]|]*)(?:(?:\||\]\[)([^\[\]]*))?\]\]"),
            lambda link: "" if link[1] else link[3] or link[2],
        ),
        (re.compile(rf"!\[[^\[\]]*\]{address}|\[\^[^\[\]]*\]"), ""),
        (re.compile(rf"\[([^\[\]]*)\]{address}"), r"\1"),
        (re.compile(r"<([a-z][a-z0-9+.-]*:[^<>\s]*)>", re.IGNORECASE), r"\1"),
        (re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE), ""),
    )


@cache
def _entities_and_emphasis() -> _Replacements:
    return (
        (re.compile("|".join(_ENTITIES)), lambda entity: _ENTITIES[entity[0]]),
        (
            re.compile(
                r"\\([!-/:-@\[-`{-~])|(?<![\w\\])(?:[*_]{1,3}|~~)(?=\S)|(?<=[^\s\\])(?:[*_]{1,3}|~~)(?!\w)"
            ),
            lambda mark: mark[1] or "",
        ),
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
    """Return the first non-empty heading of `level`, 1 or 2, as plain text; "" if there is none."""
    text = "\n" + text
    for heading in _HEADINGS[level].finditer(text):
        heading_text = strip_markdown(without_closing_hashes(heading[1]))
        if heading_text:
            return (_first_underlined(text, heading.start()) if level == 1 else "") or heading_text
    return _first_underlined(text, len(text)) if level == 1 else ""


def without_closing_hashes(heading: str) -> str:
    """Return the text of a heading without the closing "#" of Markdown."""
    heading = heading.rstrip()
    bare = heading.rstrip("#")
    return bare if not bare or bare[-1] in " \t" else heading


def _first_underlined(text: str, before: int) -> str:
    for underline in _UNDERLINE.finditer(text, 0, before):
        if above := _underlined_text(text, underline.start()):
            return strip_markdown(above)
    return ""


def _underlined_text(text: str, end: int) -> str:
    """Return the line above an underline, which ends at `end`; "" if it is blank, a list item or other structure."""
    above = text[text.rfind("\n", 0, end) + 1 : end].strip()
    return "" if re.match(_STRUCTURE, above[:_LONGEST_READ]) else above


def top_quote(text: str) -> str:
    """Return the quotation right below the first H1, else at the top of the text, as plain text; "" if there is none.

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
        structure = bool(re.match(_STRUCTURE, stripped[:_LONGEST_READ]))
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
    """Return inline Markdown as one line of plain text, with links and emphasis reduced to their text.

    Characters after the first _LONGEST_READ are dropped.
    """
    is_cut = len(text) > _LONGEST_READ
    text = _CODE_PLACE.sub("", text[:_LONGEST_READ])
    codes: list[str] = []

    def set_aside(code: re.Match[str]) -> str:
        codes.append(code[2].strip())
        return chr(_CODE_PLACES + len(codes) - 1)

    text = re.sub(_CODE, set_aside, text)
    for pattern, replacement in _links_and_tags():
        text = pattern.sub(replacement, text)
    text = _without_open_end(text) if is_cut else text
    for pattern, replacement in _entities_and_emphasis():
        text = pattern.sub(replacement, text)
    text = _CODE_PLACE.sub(lambda place: codes[ord(place[0]) - _CODE_PLACES], text)
    return " ".join(text.split())


def _without_open_end(text: str) -> str:
    """Remove a link, image or HTML tag that was left incomplete by truncation."""
    for _ in range(3):  # several may be open, such as an image within a link
        open_end = re.search(_OPEN_END, text)
        if open_end is None:
            break
        text = text[: open_end.start()]
    return text


def _shortcode_text(shortcode: re.Match[str]) -> str:
    argument = re.search(r"""\stext=["']([^"']*)""", shortcode[1] or "")
    return argument[1] if argument else ""


def shorten(text: str, limit: int) -> str:
    """Return the text; if it is longer than `limit`, it is cut, if possible between words, and gets an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > limit // 2 else cut).rstrip(" ,;:.-–—") + "…"


_THREADS_HEADING = r"(?mi)^ {0,3}(#{1,6})[ \t]+[*_]{0,2}open threads[*_:]{0,3}[ \t]*#*[ \t]*$"
_NEXT_HEADING = r"(?m)^ {0,3}(#{1,6})[ \t]"
_UNTICKED_BOX = r"(?m)^[ \t]*[-*+][ \t]+\[ \][ \t]+(\S[^\n]*)"


def open_threads(truth: str) -> list[str]:
    """Return the unticked checkbox items under "Open threads" headings, as plain text."""
    if "[ ]" not in truth:
        return []
    text = remove_fences(truth)
    next_heading, unticked_box = re.compile(_NEXT_HEADING), re.compile(_UNTICKED_BOX)
    threads: list[str] = []
    for heading in re.finditer(_THREADS_HEADING, text):
        below = next_heading.finditer(text, heading.end())
        end = next((match.start() for match in below if len(match[1]) <= len(heading[1])), len(text))
        threads += [strip_markdown(box) for box in unticked_box.findall(text, heading.end(), end)]
    return threads


_BACKTICKS = re.compile(r"`+|\n[ \t]*\n")


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of code blocks and code spans, sorted."""
    spans = [(block.start, block.end) for block in find_fences(text)]
    # The start offset of each run of backticks in the current paragraph, by the length of the run.
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


_WIKI_LINK_TARGET = r"\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]"


def replace_wiki_links(text: str) -> str:
    """Replace each wiki link with its target: `[[people/alice|Alice]]` becomes people/alice."""
    return re.sub(_WIKI_LINK_TARGET, lambda link: link[1].strip(), text) if "[[" in text else text


def count_noun(number: int, noun: str, several: str = "") -> str:
    """Return a number with its noun, such as "1 page" or "2 pages".

    `several` is an irregular plural, as in "1,000 entries".
    """
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


_BYTES = bytes(range(256))
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_SPACES = b" \t\n\r\f\v"
_CLASSES = bytes.maketrans(
    _BYTES[:128],
    bytes(
        ord("l") if byte in _LETTERS else ord("d") if byte in _DIGITS else 32 if byte in _SPACES else ord("s")
        for byte in range(128)
    ),
)
_LATIN = bytes(range(0xC2, 0xCA))  # lead bytes of accented Latin letters in UTF-8
_SINGLE = bytes(range(0xCA, 0xEA)) + b"\xee\xef"  # lead bytes of most other scripts
_DOUBLE = b"\xea\xeb\xec\xed\xf0\xf1\xf2\xf3\xf4"  # lead bytes of Hangul syllables and emoji

TokenMeasure = Callable[[int, int], int]
"""A function that returns the estimated number of tokens between two offsets."""


def count_tokens(text: str) -> int:
    """Estimate the number of tokens into which a model splits the text.

    The estimate was fitted to WordPiece on technical pages and conversations: the mean ratio of the estimate
    to the true count is 1.00, and its 5th percentile is 0.91. Scripts other than Latin are counted per
    character.
    """
    data = text.encode("utf-8", "surrogatepass")
    rest = data.translate(None, _LETTERS)
    letters = len(data) - len(rest)
    signs = rest.translate(None, _DIGITS)
    digits = len(rest) - len(signs)
    signs = signs.translate(None, _SPACES)
    latin = single = double = 0
    if not text.isascii():
        latin = len(signs) - len(signs.translate(None, _LATIN))
        single = len(signs) - len(signs.translate(None, _SINGLE))
        double = len(signs) - len(signs.translate(None, _DOUBLE))
        signs = signs.translate(None, _BYTES[128:])
    return -(-(3 * letters + 6 * digits + 4 * latin) // 12) + len(signs) + single + 2 * double


def token_measure(text: str, start: int, end: int) -> TokenMeasure:
    """Return a function that estimates the tokens of parts of text[start:end], faster than count_tokens.

    The function tends to overestimate. For a text with Hangul or emoji, it calls count_tokens.
    """
    stretch = text[start:end]
    data = b"" if stretch.isascii() else stretch.encode("utf-8", "surrogatepass")
    if len(data.translate(None, _DOUBLE)) < len(data):
        return lambda first, last: count_tokens(text[first:last])
    # This gives one byte per character in any script. Non-ASCII characters become "?" and count as signs.
    count = stretch.encode("ascii", "replace").translate(_CLASSES).count

    def tokens(first: int, last: int) -> int:
        first, last = first - start, last - start
        letters, digits = count(b"l", first, last), count(b"d", first, last)
        return (letters + 2 * digits + 3) // 4 + count(b"s", first, last)

    return tokens


# Chinese, Japanese, Korean, Thai, Lao, Myanmar, Khmer and the Tai scripts. Korean has spaces, but its
# particles attach to the word. Punctuation is excluded, so that it ends a run. The pattern is not compiled
# here, because that takes 4 ms and most commands never need it; `re` caches it after the first use.
_SCRIPTS = (
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3"
    "\u17d7\u17dc-\u17e9\u1950-\u19df\u1a20-\u1a99\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9fe\uaa60-\uaadd\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_INVISIBLE = "[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
"""Zero-width characters and variation selectors, which may occur inside words."""


def has_cjk(text: str) -> bool:
    """Return True if the text contains one of _SCRIPTS, most of which have no spaces between words."""
    return not text.isascii() and re.search(_SCRIPTS, text) is not None


def split_cjk(text: str) -> list[str]:
    """Split text, normalized to NFKC, into runs of _SCRIPTS (odd indexes) and other text (even indexes).

    Invisible characters are removed.
    """
    return re.split(f"({_SCRIPTS})", re.sub(_INVISIBLE, "", unicodedata.normalize("NFKC", text)))


def cjk_bigrams(run: str) -> list[str]:
    """Return the index terms of a run: each character with the next one, and the last character alone."""
    return [run[at : at + 2] for at in range(len(run))]


def cut_cjk(text: str) -> str:
    """Return the text as it is indexed: runs of _SCRIPTS split into bigrams, other text only normalized."""
    parts = split_cjk(text)
    parts[1::2] = [_spaced_bigrams(run) for run in parts[1::2]]
    return "".join(parts)


def _spaced_bigrams(run: str) -> str:
    """Return the bigrams and the last character of a run, with spaces around each.

    They are built in pieces, because a run may be very long.
    """
    if len(run) <= _PIECE_LENGTH:
        return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "
    starts = range(0, len(run), _PIECE_LENGTH)
    pieces = [
        " ".join(map(add, run[at : at + _PIECE_LENGTH], run[at + 1 : at + 1 + _PIECE_LENGTH]))
        for at in starts
    ]
    return f" {' '.join(pieces)} {run[-1]} "


_PIECE_LENGTH = 10_000


class RuleFile:
    """A TOML file of this package with word lists and patterns, in which {name} is replaced by another entry."""

    def __init__(self, name: str) -> None:
        import pkgutil
        import tomllib

        source = pkgutil.get_data("quaid.model", name) or b""
        self.data: dict[str, Any] = tomllib.loads(source.decode())
        self._entries: dict[str, str] = {}
        for section in ("words", "parts"):
            for key, text in self.data.get(section, {}).items():
                self._entries[key] = self._expand(text)
        # Patterns are compiled at first use, because compiling all patterns of a file takes 40 ms, and few
        # are usually needed.
        self.pattern = cache(lambda key: re.compile(self.expand(self.data["patterns"][key])))

    def _expand(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda name: self._entries.get(name[1], name[0]), text)

    def expand(self, source: str) -> str:
        """Return a pattern with its parts inserted; line breaks are dropped."""
        return self._expand(source).replace("\n", "")

    def words(self, key: str) -> frozenset[str]:
        return frozenset(self._entries[key].split())


LEAST_LINE_SHARE = 0.85
"""Two lines are equal only if the shorter one has at least this share of the words of the longer one."""

SMALL_WORDS = frozenset(
    """a an the and of to in on at for is are was were be been am my our your his her their its that this it
    please also so just i we you he she they with by as""".split()
)


def same_line(one: str, other: str) -> bool:
    """Return True if two lines are equal except for a few SMALL_WORDS that one of them has in addition."""
    short, long = sorted((_line_words(one), _line_words(other)), key=len)
    if len(short) < LEAST_LINE_SHARE * len(long) or not short:
        return False
    rest = iter(long)
    for word in short:
        for other_word in rest:
            if other_word == word:
                break
            if other_word not in SMALL_WORDS:
                return False
        else:
            return False
    return all(other_word in SMALL_WORDS for other_word in rest)


LEAST_SHARED_WORDS = 2
LEAST_NEAR_SHARE = 0.5
"""Two lines are near-duplicates only if they share at least LEAST_SHARED_WORDS, and this part of all their words."""


def is_near_line(one: str, other: str) -> bool:
    """Return True if two lines share at least LEAST_SHARED_WORDS words, and at least half of all words in them.

    A word that occurs twice counts once; SMALL_WORDS do not count.
    """
    words, others = ({word.lower() for word in _line_words(text)} - SMALL_WORDS for text in (one, other))
    shared = len(words & others)
    return shared >= LEAST_SHARED_WORDS and shared >= LEAST_NEAR_SHARE * len(words | others)


def _line_words(text: str) -> list[str]:
    """Split a line into words, keeping signs and capitals that carry meaning.

    Only punctuation around words is removed: `milk.` becomes `milk`, but `-18`, `C++`, `3,500` and `Secret1`
    are kept.
    """
    pieces = text.replace("’", "'").split()
    words = [_fold_case(_strip_signs(piece)) for piece in pieces if piece.strip(LINE_PUNCTUATION)]
    return words or pieces


def _strip_signs(piece: str) -> str:
    word = piece.strip(LINE_PUNCTUATION)
    # An operator such as != counts as a word.
    return word if any(character.isalnum() for character in word) else piece


LINE_PUNCTUATION = "\"'`*_()[]{}“”‘„«»,;:.!?…"


def _fold_case(word: str) -> str:
    """Lowercase a word, except codes with digits and names with inner capitals."""
    if any(character.isdigit() for character in word) or (
        not word.isupper() and any(character.isupper() for character in word[1:])
    ):
        return word
    return word.lower()


LONGEST_GAP_CONTEXT = 500
"""The context stored with a gap (a question that the memory could not answer) has at most this many characters."""

LONGEST_QUESTION_WORD = 64
"""A plausible ASCII word has at most this many letters. Other scripts may have no spaces, so they have no limit."""

_QUESTION_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_PUNCTUATION = " ?!.,;:…¿¡。？！．，、；：｡؟،؛"


def fold_question(question: str) -> str:
    """Normalize case, spacing and surrounding punctuation, so that repeated questions compare equal."""
    if not question.isascii():
        question = unicodedata.normalize("NFKC", question)
    folded = " ".join(question.casefold().split())
    return folded.strip(_QUESTION_PUNCTUATION) or folded


def is_question(text: str) -> bool:
    """Return True if the text contains a plausible word, not only signs, numbers or one repeated letter."""
    return any(
        not word.isascii() or (len(word) <= LONGEST_QUESTION_WORD and len(set(word)) > 1)
        for word in _QUESTION_WORD.findall(fold_question(text))
    )


def question_hash(question: str) -> str:
    """Return the key under which a question is stored: the SHA-256 of its normalized text."""
    import hashlib  # imported here, because loading OpenSSL takes 3 ms

    return hashlib.sha256(fold_question(question).encode("utf-8", "replace")).hexdigest()


def reveals_question(text: str, question: str) -> bool:
    """Return True if the text contains the question, ignoring case, spacing and surrounding punctuation."""
    return fold_question(question) in fold_question(text)


SHINGLE_WORDS = 3
"""Number of words in a shingle, a sequence of consecutive words."""

LEAST_SHINGLES = 12
"""Texts with fewer distinct shingles are too short to compare."""

LSH_BANDS, LSH_ROWS = 16, 4
"""The number of bands of a MinHash signature, and of rows per band.

Two texts that share 50 % of their shingles are compared with a probability of 64 %; with 70 %, the
probability is 99 %.
"""

LEAST_THRESHOLD = 0.5

RARE_SHINGLE_LIMIT = 4
"""A shingle that occurs in more texts than this gets a lower weight, in inverse proportion to their number."""

LARGE_GROUP = 40
"""In a larger group of candidates, each text is compared only with the first text and its neighbours."""

# In scripts written without spaces, each character is counted as a word.
UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = rf"[{UNSPACED_LETTERS}]|[^\W_{UNSPACED_LETTERS}]+"  # takes 6 ms to compile, so it is compiled on first use


class TextSimilarity:
    """A set of texts to compare, each identified by an integer key."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._runs: dict[int, Array] = {}

    def add(self, key: int, text: str) -> None:
        """Add a text. Texts with too few shingles (sequences of SHINGLE_WORDS words) are ignored."""
        import numpy as np

        words = re.findall(_WORD, text.lower())
        if len(words) < LEAST_SHINGLES + SHINGLE_WORDS - 1:
            return
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.uint64, len(words))
        runs = np.zeros(len(words) - SHINGLE_WORDS + 1, np.uint64)
        for place in range(SHINGLE_WORDS):
            runs = _splitmix64(runs ^ numbers[place : len(numbers) - SHINGLE_WORDS + 1 + place])
        runs = np.unique(runs)
        if len(runs) >= LEAST_SHINGLES:
            self._runs[key] = runs

    def weigh(self) -> None:
        """Weight each shingle by the number of texts with it.

        This must be called once, after all texts were added.
        """
        import numpy as np

        if not self._runs:
            return
        every = np.concatenate(list(self._runs.values()))
        _, of_run, counts = np.unique(every, return_inverse=True, return_counts=True)
        weights = np.minimum(1.0, RARE_SHINGLE_LIMIT / counts)[of_run]
        ends = np.cumsum([len(runs) for runs in self._runs.values()])
        self._weights = dict(zip(self._runs, np.split(weights, ends[:-1]), strict=True))
        self._totals = {key: float(weight.sum()) for key, weight in self._weights.items()}

    def likeness(self, first: int, second: int) -> float | None:
        """Return the weighted share of common shingles, or None if either text is too short."""
        import numpy as np

        if first not in self._runs or second not in self._runs:
            return None
        one, other = self._runs[first], self._runs[second]
        places = np.minimum(np.searchsorted(other, one), len(other) - 1)
        common = float(self._weights[first][other[places] == one].sum())
        return common / (self._totals[first] + self._totals[second] - common)

    def pairs(self, threshold: float, progress: "Callable[[int, int], None]") -> list[tuple[int, int]]:
        """Return the keys of pairs with at least this similarity, the smaller key first, most similar pairs first.

        Only candidates are compared, so a similar pair may be missing (see LSH_BANDS and LARGE_GROUP). `progress`
        is called with the number of texts read so far and the number of all texts.
        """
        keys = list(self._runs)
        if len(keys) < 2:
            return []
        likenesses: dict[tuple[int, int], float] = {}
        bands = self._bands(keys, progress)
        for band in range(LSH_BANDS):
            for places in _equal_groups(bands[:, band]):
                for one, other in _candidate_pairs(places):
                    pair = (min(keys[one], keys[other]), max(keys[one], keys[other]))
                    if pair not in likenesses:
                        likenesses[pair] = self.likeness(*pair) or 0.0
        similar = [pair for pair, likeness in likenesses.items() if likeness >= threshold]
        return sorted(similar, key=lambda pair: (-likenesses[pair], pair))

    def _bands(self, keys: list[int], progress: "Callable[[int, int], None]") -> "Array":
        """Return one hash per text and band; texts with an equal hash in a band are candidates."""
        import numpy as np

        factors = _splitmix64(np.arange(1, LSH_BANDS * LSH_ROWS + 1, dtype=np.uint64)) | np.uint64(1)
        signatures = np.empty((len(keys), LSH_BANDS * LSH_ROWS), np.uint64)
        for place, key in enumerate(keys):
            if place % 50 == 0:
                progress(place, len(keys))
            # The upper bits of a product are well mixed, so their minimum approximates the minimum of a
            # random hash.
            signatures[place] = ((self._runs[key][:, None] * factors) >> np.uint64(16)).min(axis=0)
        numbers = np.zeros((len(keys), LSH_BANDS), np.uint64)
        for row in range(LSH_ROWS):
            numbers = _splitmix64(numbers ^ signatures[:, row::LSH_ROWS])
        return numbers


def _splitmix64(values: "Array") -> "Array":
    """Return hashes of 64-bit integers (splitmix64): each bit of the result depends on all bits of the integer."""
    import numpy as np

    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _equal_groups(numbers: "Array") -> "Iterator[list[int]]":
    """Yield the indexes of equal numbers, for each number that occurs at least twice."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(ordered)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start > 1:
            yield order[start:end].tolist()


def _candidate_pairs(places: list[int]) -> "Iterable[tuple[int, int]]":
    if len(places) <= LARGE_GROUP:
        return [(one, other) for at, one in enumerate(places) for other in places[at + 1 :]]
    with_first = [(places[0], other) for other in places[1:]]
    return with_first + list(pairwise(places[1:]))

"""Convert HTML to Markdown: the main text of a page, or a note with its links, emphasis and tables.

HTML is untrusted. Scripts, styles and embedded objects are left out, and nothing is fetched.
"""

import re
from html.parser import HTMLParser

from quaid.formats.sections import escape_markup, fenced, table_row, without_controls

_SKIPPED = frozenset("script style noscript template svg iframe object select button head".split())
_FRAME = frozenset("nav footer aside form".split())
_BLOCKS = frozenset(
    "p div section article main header footer ul ol li dl dt dd table tbody thead figure figcaption address body pre"
    " blockquote h1 h2 h3 h4 h5 h6 hr".split()
)
_TIGHT = frozenset(("div", "section", "li"))
"""Blocks that have no blank line around them in a note."""
_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "tt": "`", "s": "~~", "del": "~~"}
_MIN_MAIN_SHARE = 0.25
"""The text of <main> or <article> is used alone if it is at least this share of the text."""
_MAX_TITLE = 1_000
_SPACE = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")


class HtmlReader(HTMLParser):
    """The text of an HTML page as Markdown lines, its title and its named `meta` values.

    With `is_note`, links, images, emphasis, single line breaks and empty cells of tables are kept, and lines that
    look like Markdown are not escaped. `shift` is added to the level of headings.
    """

    def __init__(self, skipped: frozenset[str], shift: int = 1, *, is_note: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self.skipped, self.shift, self.is_note = skipped, shift, is_note
        self.title = ""
        self.meta: dict[str, str] = {}
        self._lines: list[str] = []
        self._words: list[str] = []
        self._mark = ""
        self._links: list[str] = []
        self._lists: list[int | None] = []  # number of the next item of each open list; None without numbers
        self._quotes = 0
        self._in_title = self._in_code = False
        self._row: list[str] | None = None
        self._in_cell = self._is_first_row = False
        self._skip_tag, self._skip_depth = "", 0
        self._main: list[tuple[int, int]] = []
        self._main_from, self._main_depth = 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = self._skip_tag in ("", "head") and not self.title
        elif tag == "meta":
            values = {key: value or "" for key, value in attrs}
            name = values.get("property") or values.get("name") or ""
            self.meta.setdefault(name.lower(), values.get("content", ""))
        elif self._skip_tag and not (tag == "body" and self._skip_tag == "head"):
            self._skip_depth += tag == self._skip_tag
        elif tag in self.skipped:
            self._skip_tag, self._skip_depth = tag, 1
        elif tag in ("td", "th") and self._row is not None:
            self._end_cell()
            self._in_cell = True
        elif tag == "tr":
            self._end_row()
            self._row = []
        elif tag == "br":
            self._words.append("\n" if self._row is None else " ")
        elif tag in _BLOCKS:
            self._skip_tag = ""
            self._start_block(tag, dict(attrs))
        elif self.is_note and not self._in_code:
            self._start_inline(tag, dict(attrs))

    def _start_block(self, tag: str, attributes: dict[str, str | None]) -> None:
        self._flush(self._has_gap(tag))
        if tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            number = self._lists[-1] if self._lists else None
            self._mark = "  " * min(max(0, len(self._lists) - 1), 20) + (f"{number}. " if number else "- ")
            self._mark += "[x] " if "checked" in (attributes.get("class") or "") else ""
            if number:
                self._lists[-1] = number + 1
        elif tag == "table":
            self._is_first_row = True
        elif tag == "pre":
            self._in_code = True
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "hr":
            self._lines += ["***", ""] if self._row is None else []
        elif tag[0] == "h" and tag[1:].isdecimal():
            self._mark = "#" * min(6, int(tag[1]) + self.shift) + " "
        elif tag in ("main", "article"):
            self._main_from = self._main_from if self._main_depth else len(self._lines)
            self._main_depth += 1

    def _start_inline(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag == "a":
            self._links.append(attributes.get("href") or "")
            self._words.append("[" if self._links[-1] else "")
        elif tag == "img":
            address = attributes.get("src") or ""
            address = "" if address.startswith("data:") else address
            self._words.append(f"![{attributes.get('alt') or ''}]({address})")
        elif tag in _MARKS:
            self._words.append(_MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._skip_tag:
            self._skip_depth -= tag == self._skip_tag
            if not self._skip_depth or tag == "head":
                self._skip_tag = ""
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag in _BLOCKS:
            self._end_block(tag)
        elif self.is_note and tag == "a" and self._links:
            address = self._links.pop()
            self._words.append(f"]({address})" if address else "")
        elif self.is_note and tag in _MARKS and not self._in_code:
            self._words.append(_MARKS[tag])

    def _end_block(self, tag: str) -> None:
        if tag == "table":  # the end tag of its last row may be left out
            self._end_row()
        self._flush(has_gap=False)
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        self._flush(self._has_gap(tag))
        if tag == "pre":
            self._in_code = False
        elif tag == "blockquote":
            self._quotes = max(0, self._quotes - 1)
        elif tag in ("main", "article") and self._main_depth:
            self._main_depth -= 1
            if not self._main_depth:
                self._main.append((self._main_from, len(self._lines)))

    def _has_gap(self, tag: str) -> bool:
        """Return True if blocks of this tag get a blank line before and after them."""
        if tag in ("thead", "tbody"):
            return False
        return not (self.is_note and (tag in _TIGHT or (tag in ("ul", "ol") and self._lists)))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data if len(self.title) < _MAX_TITLE else ""
        elif not self._skip_tag:
            self._words.append(data if self._in_code else _SPACE.sub(" ", data))

    def _end_cell(self) -> None:
        if self._row is None:
            return
        text, self._words = "".join(self._words), []
        if text.strip() or (self._in_cell and self.is_note):
            self._row.append(text)
        self._in_cell = False

    def _end_row(self) -> None:
        self._end_cell()
        cells, self._row = self._row, None
        if cells is None:
            self._flush(has_gap=False)
        elif len(cells) == 1 and not self.is_note:  # a table used for page layout
            self._lines += [escape_markup(" ".join(cells[0].split())), ""]
        elif cells:
            self._lines.append(table_row(cells))
            if self._is_first_row and self.is_note:
                self._lines.append("|" + " --- |" * len(cells))
            self._is_first_row = False

    def _flush(self, has_gap: bool) -> None:
        """End the current block, unless a table row is open, and add a blank line if `has_gap`."""
        if self._row is not None:
            self._words.append(" ")
            return
        text, self._words = "".join(self._words), []
        block = ""
        if not text:
            pass
        elif self._in_code:
            block = fenced(text.strip("\n")) if text.strip() else ""
        else:
            lines = [line.strip() for line in without_controls(text).split("\n")]
            block = "\n".join(lines if self.is_note else filter(None, lines)).strip("\n")
            has_gap = has_gap or (self.is_note and not block and "\n" in text)
        if block and not self._in_code:
            block = _SPACE.sub(" ", block) if "#" in self._mark else block
            block = self._mark + (block if self.is_note else escape_markup(block))
            self._mark = ""
        if block and self._quotes:
            block = "> " + block.replace("\n", "\n> ")
        self._lines += [block] if block else []
        if has_gap and self._lines and self._lines[-1]:
            self._lines.append("")

    def text(self) -> str:
        """Return the text.

        Unless `is_note` is set, only the text of <main> and <article> is returned if it is at least _MIN_MAIN_SHARE
        of the text.
        """
        self._end_row()
        whole = "\n".join(self._lines)
        inner = "\n".join("\n".join(self._lines[first:last]) for first, last in self._main)
        return inner if len(inner) >= _MIN_MAIN_SHARE * len(whole) > 0 and not self.is_note else whole


def _without_open_marks(html: str) -> str:
    """Remove comments and unclosed markup from HTML.

    For each unclosed construct, Python's parser scans to the end of the text, so many of them could take hours.
    """
    parts: list[str] = []
    at = 0
    while (start := html.find("<!--", at)) >= 0 and (end := html.find("-->", start + 2)) >= 0:
        parts.append(html[at:start])
        at = end + 3
    parts.append(html[at:].replace("<!--", ""))
    text = "".join(parts).replace("<![", "<! [")
    complete = text.rfind(">") + 1
    return text[:complete] + text[complete:].replace("<", "&lt;")


def main_text(html: str, shift: int = 1) -> tuple[str, HtmlReader]:
    """Return the main text of an HTML page as Markdown, and the reader, which has its title and `meta` values.

    Navigation, forms and footers are left out, unless there is no other text.
    """
    html = _without_open_marks(html)
    for skipped in (_SKIPPED | _FRAME, _SKIPPED - {"head"}):
        reader = HtmlReader(skipped, shift)
        reader.feed(html)
        reader.close()
        text = reader.text()
        if text.strip():
            break
    return text, reader


def read_note(html: str) -> tuple[str, HtmlReader]:
    """Return all text of an HTML note as Markdown, and the reader, which has its title and `meta` values."""
    reader = HtmlReader(_SKIPPED - {"select", "button"}, 0, is_note=True)
    reader.feed(_without_open_marks(html))
    reader.close()
    return _BLANK_LINES.sub("\n\n", reader.text()).strip(), reader

"""Convert HTML of other programs to Markdown: headings, lists, links, emphasis, code and tables."""

import re
from html.parser import HTMLParser

_SKIPPED = frozenset(("script", "style", "head", "template", "noscript", "svg", "iframe", "object"))
_BLOCKS = frozenset(
    ("p", "div", "section", "article", "ul", "ol", "table", "blockquote", "pre", "header", "footer", "figure")
)
_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "tt": "`", "s": "~~", "del": "~~"}
_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_BLANK_LINES = re.compile(r"\n{3,}")


def html_to_markdown(html: str) -> str:
    """Return the text of an HTML document or fragment as Markdown. Scripts, styles and comments are left out."""
    converter = _Converter()
    converter.feed(html)
    converter.close()
    return _BLANK_LINES.sub("\n\n", "".join(converter.parts)).strip()


def html_head(html: str) -> dict[str, str]:
    """Return the title and the named `meta` values of an HTML document, by lower-case name."""
    reader = _HeadReader()
    reader.feed(html)
    return reader.values


class _Converter(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.skipped: list[str] = []
        self.lists: list[int | None] = []
        """Number of the next item of each open list; None for a list without numbers."""
        self.links: list[str] = []
        self.is_code = False
        self.cells = 0
        self.is_first_row = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.skipped or tag in _SKIPPED:
            if tag in _SKIPPED:
                self.skipped.append(tag)
            return
        values = dict(attrs)
        if tag in ("ul", "ol"):
            self._line(1 if self.lists else 2)
            self.lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._item("checked" in (values.get("class") or ""))
        elif tag in _BLOCKS:
            self._line(2 if tag not in ("div", "section") else 1)
            self.parts.append({"blockquote": "> ", "pre": "```\n"}.get(tag, ""))
            self.is_code = self.is_code or tag == "pre"
            self.is_first_row = tag == "table" or self.is_first_row
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._line(2)
            self.parts.append("#" * int(tag[1]) + " ")
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "hr":
            self._line(2)
            self.parts.append("***\n")
        elif tag == "tr":
            self._line(1)
            self.cells = 0
        elif tag in ("td", "th"):
            self.parts.append("| ")
            self.cells += 1
        elif tag == "a":
            self.links.append(values.get("href") or "")
            self.parts.append("[" if self.links[-1] else "")
        elif tag == "img":
            address = values.get("src") or ""
            is_data = address.startswith("data:")
            self.parts.append(f"![{values.get('alt') or ''}]({'' if is_data else address})")
        elif tag in _MARKS and not self.is_code:
            self.parts.append(_MARKS[tag])

    def _item(self, is_checked: bool) -> None:
        self._line(1)
        number = self.lists[-1] if self.lists else None
        self.parts.append("  " * min(len(self.lists) - 1, 20) if self.lists else "")
        self.parts.append("- " if number is None else f"{number}. ")
        if is_checked:
            self.parts.append("[x] ")
        if number is not None:
            self.lists[-1] = number + 1

    def handle_endtag(self, tag: str) -> None:
        if self.skipped:
            if tag == self.skipped[-1]:
                self.skipped.pop()
            return
        if tag in ("ul", "ol"):
            if self.lists:
                self.lists.pop()
            self._line(1 if self.lists else 2)
        elif tag == "tr":
            self.parts.append("|\n" if self.cells else "")
            if self.is_first_row and self.cells:
                self.parts.append("|" + " --- |" * self.cells + "\n")
            self.is_first_row = False
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag == "pre":
            self.is_code = False
            self._line(1)
            self.parts.append("```\n\n")
        elif tag in _BLOCKS or (len(tag) == 2 and tag[0] == "h" and tag[1] in "123456"):
            self._line(1 if tag in ("div", "section") else 2)
        elif tag == "a" and self.links:
            address = self.links.pop()
            self.parts.append(f"]({address})" if address else "")
        elif tag in _MARKS and not self.is_code:
            self.parts.append(_MARKS[tag])

    def handle_data(self, data: str) -> None:
        if self.skipped:
            return
        if self.is_code:
            self.parts.append(data)
            return
        text = _SPACE.sub(" ", data)
        if self._at_line_start():
            text = text.lstrip()
        if text:
            self.parts.append(text)

    def _at_line_start(self) -> bool:
        last = next((part for part in reversed(self.parts[-4:]) if part), "\n")
        return last.endswith("\n")

    def _line(self, breaks: int) -> None:
        """End the current line, and leave a blank line if `breaks` is 2."""
        tail = "".join(self.parts[-3:])
        if tail.strip(" ") or self.parts:
            have = len(tail) - len(tail.rstrip("\n"))
            self.parts.append("\n" * max(0, breaks - have))


class _HeadReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.values: dict[str, str] = {}
        self.in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name = values.get("name") or values.get("property") or ""
        if tag == "meta" and name:
            self.values.setdefault(name.lower(), values.get("content") or "")
        self.in_title = tag == "title"

    def handle_endtag(self, tag: str) -> None:
        self.in_title = self.in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self.in_title and data.strip():
            self.values.setdefault("title", " ".join(data.split()))

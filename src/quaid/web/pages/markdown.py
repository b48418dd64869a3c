"""Render text of the memory as safe HTML: Markdown, org, names of pages as links, search snippets.

The text is not trusted. markdown-it parses it with raw HTML disabled, nh3 then removes every tag, attribute and URL
that is not allowed here, and the Content-Security-Policy is the third barrier. Images are shown only if the text
embeds them as data: URLs, or if they are attachments of the memory.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import nh3
from markupsafe import Markup, escape
from starlette.requests import Request

from quaid.formats import org as org_page
from quaid.model.plain_text import ATTACHMENT_NAME, ATTACHMENTS, one_line, shorten, strip_markdown
from quaid.web.pages import base
from quaid.web.pages.base import (
    FILE_PREFIX,
    LinkResolver,
    LinkTarget,
    resolve_nothing,
    slug_words,
    try_operation,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_MARKDOWN = 200_000
"""Markdown of up to this many characters is parsed. Longer content is shown as plain text."""

MAX_MARKS = 40_000
"""Markdown with up to this many markup characters is parsed. Content with more is shown as plain text."""

MAX_CELL_BORDERS = 30_000
"""Markdown with up to this many vertical bars is parsed. Rendering a table takes about 45 µs per cell."""

_MARKS = "[*_`<&"
_WIKI_LINK = re.compile(
    r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\](?:\[([^\[\]\n]*)\])?\]"
)
_CHECKBOX = re.compile(r"\[([ xX])\][ \t]+")
_CHECKBOX_LINE = re.compile(r"([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[)([ xX])(?=\])")
_ITEM_NUMBER = re.compile(r"(?<![ \t>])[ \t>]*\d{1,9}(?=[.)])")
_PICTURE = re.compile(r"data:image/(?:png|gif|jpeg|webp);base64,[A-Za-z0-9+/=]+")
_EXTERNAL_URL = re.compile(r"(?:https?://|mailto:)[^\s\\]+", re.IGNORECASE)
_PAGE_FILE = re.compile(r"[^:?#]+\.(?:md|markdown|org)(?:#.*)?", re.IGNORECASE)
_ALLOWED_VALUES = {
    "href": re.compile(rf"(?i:{_EXTERNAL_URL.pattern})|(?:/(?![/\\])|#)[^\s\\]*"),
    "src": re.compile(rf"{_PICTURE.pattern}|/attachment/{ATTACHMENT_NAME.pattern}(?:\?page=[\w%.~/:-]*)?"),
    "id": re.compile(r"[LT]\d{1,9}"),
    "start": re.compile(r"[0-9]{1,9}"),
    "data-line": re.compile(r"[0-9]{1,9}"),
}
"""Attributes, each with the pattern that its whole value must match."""
_LANGUAGE = re.compile(r"language-[A-Za-z0-9_+-]{1,30}")

ALLOWED_TAGS = set(
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s hr br table thead tbody tr th td a img span".split()
)
ALLOWED_CLASSES = {"box", "box done", "wiki", "wiki unknown", "out", "picture", "here"}
_ALLOWED_ATTRIBUTES = {
    "*": {"id", "class"},
    "a": {"href", "title", "class", "id"},
    "img": {"src", "alt", "title"},
    "ol": {"start", "id", "class"},
    "li": {"data-line", "id", "class"},
}


def render_markdown(
    text: str,
    resolve: LinkResolver = resolve_nothing,
    *,
    mark: str = "L",
    at: int = 0,
    title: str = "",
    summary: str = "",
    page: str = "",
) -> Markup:
    """Return Markdown as safe HTML. The id of each block is `mark` and the number of its first line, as in L12.

    `page` is the address of the page; relative paths of images start at its file.

    The block that contains line `at` is highlighted. A first heading that repeats the title, and a quote
    below it that repeats the summary, are omitted.
    """
    if _is_too_large(text):
        return Markup('<pre class="plain">{}</pre>').format(text)
    env: dict[str, Any] = {"resolve": resolve, "page": page}
    tokens = _drop_title_and_summary(_markdown_parser().parse(text, env), title, summary)
    _add_line_ids(tokens, mark, at)
    return _render(tokens, env)


def _is_too_large(text: str) -> bool:
    return (
        len(text) > MAX_MARKDOWN
        or sum(map(text.count, _MARKS)) > MAX_MARKS
        or text.count("|") > MAX_CELL_BORDERS
    )


def render_line(text: str, resolve: LinkResolver = resolve_nothing) -> Markup:
    """Render one line of Markdown, such as a summary: emphasis, code and links, but no blocks."""
    env: dict[str, Any] = {"resolve": resolve}
    return _render(_markdown_parser().parseInline(text[:MAX_MARKDOWN], env), env)


def _render(tokens: list["Token"], env: dict[str, Any]) -> Markup:
    for token in tokens:
        if token.type == "inline":
            _resolve_links(token.children or [], env["resolve"])
    _render_checkboxes(tokens)
    parser = _markdown_parser()
    return _sanitize(parser.renderer.render(tokens, parser.options, env))


def render_org(text: str, resolve: LinkResolver = resolve_nothing) -> Markup:
    """Render org text as safe HTML. Only headings, code and links are formatted.

    No code is evaluated.
    """
    if _is_too_large(text):
        return Markup('<pre class="plain">{}</pre>').format(text)
    page, nodes, _ = org_page.read_pages(text)
    parts = []
    for part in (page, *nodes):
        head = "" if part is page else f"## {part.title}\n\n"
        parts.append(render_markdown(f"{head}{part.truth}\n\n{part.timeline}", resolve))
    return Markup("\n").join(parts)


@cache
def _markdown_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wiki", _wiki_rule)
    parser.add_render_rule("image", _image_rule)
    return parser


def _sanitize(html: str) -> Markup:
    cleaned = nh3.clean(
        html,
        tags=ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        attribute_filter=_allowed_value,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(cleaned)  # noqa: S704 (nh3 has just sanitized it)


def _allowed_value(tag: str, attribute: str, value: str) -> str | None:
    """Return the attribute's value, or None if it is not allowed."""
    if attribute == "class":
        is_allowed = value in ALLOWED_CLASSES or (tag == "code" and _LANGUAGE.fullmatch(value))
    else:
        is_allowed = attribute not in _ALLOWED_VALUES or _ALLOWED_VALUES[attribute].fullmatch(value)
    return value if is_allowed else None


def _wiki_rule(state: "StateInline", silent: bool) -> bool:
    """Parse `[[people/alice]]`, `[[people/alice|Alice]]` and org's `[[id:…][Alice]]`."""
    if not state.src.startswith("[[", state.pos):
        return False
    match = _WIKI_LINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        name = match[1].rstrip("\\").strip()
        target: LinkTarget | None = state.env["resolve"](name)
        is_external = bool(_EXTERNAL_URL.fullmatch(name))
        text = (match[2] or match[3] or "").strip() or (target.title if target else "")
        text = text or (name if is_external else slug_words(name))
        if target is None and is_external:
            href, kind = name, "out"
        else:
            href = target.href if target else base.search_url(text)
            kind = "wiki" if target else "wiki unknown"
        state.push("link_open", "a", 1).attrs = {"href": href, "class": kind}
        state.push("text", "", 0).content = text
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _resolve_links(children: list["Token"], resolve: LinkResolver) -> None:
    """Replace links to the file of a page by links to the page, and remove the target of links to other files."""
    for token in children:
        if token.type != "link_open" or "class" in token.attrs:
            continue
        href = str(token.attrs.get("href", ""))
        target = resolve(FILE_PREFIX + href) if _PAGE_FILE.fullmatch(href) else None
        if target:
            token.attrs = {"href": target.href, "class": "wiki"}
        elif _EXTERNAL_URL.fullmatch(href):
            token.attrs["class"] = "out"
        elif not href.startswith("#"):
            token.attrs = {"class": "wiki unknown"}


def _image_rule(_: Any, tokens: list["Token"], place: int, __: Any, env: Any) -> str:
    token = tokens[place]
    source, text = str(token.attrs.get("src", "")), token.content
    folder, _, name = source.rpartition("/")
    if folder == ATTACHMENTS and ATTACHMENT_NAME.fullmatch(name):
        source = base.with_query(f"/attachment/{name}", {"page": env.get("page", "")})
        return f'<img src="{escape(source)}" alt="{escape(text)}">'
    if _PICTURE.fullmatch(source):
        return f'<img src="{source}" alt="{escape(text)}">'
    return f'<span class="picture">{escape(text or source)}</span>'


def _drop_title_and_summary(tokens: list["Token"], title: str, summary: str) -> list["Token"]:
    if title and len(tokens) > 2 and tokens[0].tag == "h1" and _token_text(tokens[1]) == title.strip():
        tokens = tokens[3:]
    if summary and len(tokens) > 4 and tokens[0].type == "blockquote_open":
        quote = [token.type for token in tokens[1:5]]
        alone = quote == ["paragraph_open", "inline", "paragraph_close", "blockquote_close"]
        if alone and _strip_marks(_token_text(tokens[2])) == _strip_marks(summary):
            tokens = tokens[5:]
    return tokens


def _token_text(token: "Token") -> str:
    return " ".join(token.content.split())


def _strip_marks(text: str) -> str:
    return re.sub(r"[\[\]*_`]|\([^()]*\)", "", text).strip()


def _add_line_ids(tokens: list["Token"], mark: str, at: int) -> None:
    """Give each block an id with the number of its first line. With the mark "L", list items get it as
    `data-line` too.

    The innermost block that contains line `at` gets the number `at` instead, and a highlight.
    """
    blocks: list[tuple[Token, int, int]] = [
        (token, token.map[0], token.map[1])
        for token in tokens
        if token.map and token.nesting >= 0 and token.type != "inline" and not token.hidden
    ]
    around = [token for token, before, end in blocks if before < at <= end]
    used = {at} if around else set()
    for token, before, _ in blocks:
        if token.type == "list_item_open" and mark == "L":
            token.attrs = {**token.attrs, "data-line": str(before + 1)}
        if around and token is around[-1]:
            token.attrs = {**token.attrs, "id": f"{mark}{at}", "class": "here"}
        elif before + 1 not in used:
            used.add(before + 1)
            token.attrs = {**token.attrs, "id": f"{mark}{before + 1}"}


def tick_line(text: str, line: int, *, done: bool) -> str | None:
    """Return the text with the checkbox of a list item ticked or cleared. Return None if the line has no checkbox."""
    lines = text.split("\n")
    box = _CHECKBOX_LINE.match(lines[line - 1]) if 0 < line <= len(lines) else None
    if box is None:
        return None
    lines[line - 1] = f"{box[1]}{'x' if done else ' '}{lines[line - 1][box.end(2) :]}"
    return "\n".join(lines)


def move_item(text: str, line: int, steps: int) -> tuple[str, int] | None:
    """Move a list item, with everything below it, past `steps` items of its list: up if negative, else down.

    Return the new text and the item's new line, or None if there is no such item. In an ordered list, the
    numbers keep their positions.
    """
    lines, lists, items = text.split("\n"), [], list[tuple[int, int, int]]()
    for place, token in enumerate(_markdown_parser().parse(text, {"resolve": resolve_nothing})):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            lists.append(place)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
        elif token.type == "list_item_open" and token.map:
            end = token.map[1]
            while end > token.map[0] + 1 and not lines[end - 1].strip():
                end -= 1
            items.append((token.map[0], end, lists[-1]))
    mine = next((item for item in items if item[0] == line - 1), None)
    if mine is None:
        return None
    row = [item for item in items if item[2] == mine[2]]
    at = row.index(mine)
    target = min(max(at + steps, 0), len(row) - 1)
    order = [*row[:at], *row[at + 1 :]]
    order.insert(target, mine)
    moved: list[str] = lines[: row[0][0]]
    new_line = line
    for place, (start, end, _) in enumerate(order):
        if (start, end) == mine[:2]:
            new_line = len(moved) + 1
        number = _ITEM_NUMBER.match(lines[row[place][0]])
        first = lines[start] if number is None else _ITEM_NUMBER.sub(number[0], lines[start], count=1)
        moved += [first, *lines[start + 1 : end]]
        after = row[place + 1][0] if place + 1 < len(row) else len(lines)
        moved += lines[row[place][1] : after]
    return "\n".join(moved), new_line


def _render_checkboxes(tokens: list["Token"]) -> None:
    from markdown_it.token import Token

    for before, token in pairwise(tokens):
        if token.type != "inline" or token.level < 2 or before.type != "paragraph_open" or not token.children:
            continue
        first = token.children[0]
        box = _CHECKBOX.match(first.content) if first.type == "text" else None
        if box is None:
            continue
        first.content = first.content[box.end() :]
        done = box[1] != " "
        sign = Token("html_inline", "", 0)
        sign.content = f'<span class="box{" done" if done else ""}">{"☑" if done else "☐"}</span> '
        token.children.insert(0, sign)


MAX_NAMES = 400
"""At most this many names are looked up for one view."""

_BARE_SLUG = re.compile(
    r"(?<![\w/.:@\[|(-])(?:[\w-]+::)?[a-z0-9][a-z0-9_-]*(?:/[a-z0-9][a-z0-9_-]*)+(?![\w/-]|\.\w)"
)
_NOT_NAMES = re.compile(
    r"\[\[[^\[\]\n]*\](?:\[[^\[\]\n]*\])?\]|\]\([^()\s]*\)|`[^`\n]*`|<[^<>\s]*>|https?://\S+"
)


class PageNames(NamedTuple):
    """The pages that some content refers to, by the name used in the content."""

    targets: Mapping[str, LinkTarget]
    here: str = ""
    """URL of the current page, or "". Links to it are shown as bold text."""

    def resolve(self, name: str) -> LinkTarget | None:
        return self.targets.get(name)

    def title(self, name: str) -> str:
        """Return the title of the page with this name, or the words of the name if there is no such page."""
        return self.targets[name].title if name in self.targets else slug_words(name)

    def worded(self, text: str) -> str:
        """Replace the page names in `text` by titles, for places that cannot contain links."""
        text = _WIKI_LINK.sub(self._link_text, text)
        return _BARE_SLUG.sub(
            lambda name: self.targets[name[0]].title if name[0] in self.targets else name[0], text
        )

    def _link_text(self, link: re.Match[str]) -> str:
        return (link[2] or link[3] or "").strip() or self.title(link[1].rstrip("\\").strip())

    def linked(self, text: str) -> Markup:
        """Render one line of Markdown, with names replaced by links to their pages."""
        return link_names(text, self.resolve, self.here)


def link_names(text: str, resolve: LinkResolver, here: str = "") -> Markup:
    """Render one line of Markdown, and turn each bare slug that `resolve` can resolve into a link.

    Summaries need this: they are stored without the brackets of the links in the page.
    """

    def put(name: re.Match[str]) -> str:
        target = resolve(name[0])
        if target is None:
            return name[0]
        return f"**{target.title}**" if target.href == here else f"[[{name[0]}]]"

    pieces, at = [], 0
    for span in _NOT_NAMES.finditer(text):
        pieces += [_BARE_SLUG.sub(put, text[at : span.start()]), span[0]]
        at = span.end()
    return render_line("".join([*pieces, _BARE_SLUG.sub(put, text[at:])]), resolve)


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the possible page names in `texts`: wiki links and bare slugs, at most MAX_NAMES, without duplicates."""
    names: dict[str, None] = {}
    for text in texts:
        if "[[" in text:
            names.update((link[1].rstrip("\\").strip(), None) for link in _WIKI_LINK.finditer(text))
        if "/" in text:
            names.update((name[0], None) for name in _BARE_SLUG.finditer(text))
    return [name for name in names if name][:MAX_NAMES]


async def look_up_names(request: Request, texts: Iterable[str], here: str = "") -> PageNames:
    """Look up the pages that `texts` refer to."""
    names = names_in(texts)
    record = await try_operation(request, "titles", names=names) if names else None
    titles = record.value if record else ()
    return PageNames(
        {title.name: LinkTarget(base.page_url(title.slug), title.title) for title in titles}, here
    )


MAX_SNIPPET = 260
CONTEXT_BEFORE = 70
"""A snippet of a long text starts about this many characters before the first match."""
MAX_QUERY_WORDS = 12
SENTENCE_ENDS = ".!?…:)\"'”’»。"
"""Characters that end a sentence. No ellipsis is added after them."""
SHORT_LINE = 60
"""A line shorter than this is probably complete (a list item or heading) and gets no ellipsis."""

_WORD = re.compile(r"\w+", re.UNICODE)
_LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+](?:[ \t]+\[[ xX]\])?)[ \t]+", re.MULTILINE)
_CHECKBOX_MARK = re.compile(r"(?<![^\s…])(?:[-*+][ \t]+)?\[[ xX]\][ \t]")
_LIST_ITEM = re.compile(r"(?<=\n)[ \t]*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_TABLE_RULE = re.compile(r"^[ \t]*+(?:\|[ \t]*+)?:?--[ \t:|-]*$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[ \t]*\|[^\n]*\|[ \t]*$", re.MULTILINE)
_LOOSE_MARKS = re.compile(r"\[\[|\]\]|\*\*|~~|(?<!\S)__(?!\S)|\A\|+[ \t]*|[ \t]{0,20}\|{1,20}\Z")
_LOOSE_BAR = re.compile(r"(?<=\s)\|(?=\s)")
_TABLE_CELL = re.compile(r"(?<!\\)\|(?![^\[\]\n]{0,300}\]\])")
STOP_WORDS = frozenset(
    "a an and are as at be by did do does for from has have how i in is it me my of on or our she he that the their"
    " they this to was we were what when where which who why will with you your".split()
)


def query_words(question: str) -> list[str]:
    """Return the words of a question to highlight, at most MAX_QUERY_WORDS.

    Stop words are left out, unless there are no other words.
    """
    words = list(dict.fromkeys(word.casefold() for word in _WORD.findall(question)))
    content = [word for word in words if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())]
    return (content or words)[:MAX_QUERY_WORDS]


def query_pattern(question: str) -> re.Pattern[str] | None:
    """Return a pattern for the words of a question and words with the same stem, or None if it has no words."""
    words = query_words(question)
    if not words:
        return None
    parts = [re.escape(_stem(word)) + (r"\w*" if word.isascii() else "") for word in words]
    edge = r"(?<!\w)" if all(word.isascii() for word in words) else ""
    return re.compile(f"{edge}(?:{'|'.join(parts)})", re.IGNORECASE)


def _stem(word: str) -> str:
    """Return the word without a common English ending, so that `charging` also matches `charged`."""
    for ending in ("ingly", "ings", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def plain_text(text: str) -> str:
    """Return a passage without markup, on one line. Markup that was cut in two is removed."""
    text = _TABLE_RULE.sub("", _LINE_MARKS.sub("", _LIST_ITEM.sub(" · ", text)))
    text = _TABLE_ROW.sub(
        lambda row: " · ".join(filter(None, map(str.strip, _TABLE_CELL.split(row[0])))), text
    )
    shown = one_line(_CHECKBOX_MARK.sub("· ", strip_markdown(_repair_cut_links(text))))
    return _LOOSE_BAR.sub("·", _LOOSE_MARKS.sub("", shown)).removeprefix("· ").replace("…· ", "…")


def _repair_cut_links(text: str) -> str:
    """Replace a link that lost its opening or closing brackets in an excerpt with the text that it shows."""
    closing = text.find("]]")
    if 0 <= closing < MAX_SNIPPET and "[[" not in text[:closing]:
        text = text[:closing].rpartition("|")[2].rpartition("/")[2] + text[closing + 2 :]
    opening = text.rfind("[[")
    if opening >= 0 and "]]" not in text[opening:]:
        end = text[opening + 2 :].rstrip("…")
        more = "…" if end != text[opening + 2 :] else ""
        text = text[:opening] + end.rpartition("|")[2].rpartition("/")[2].replace("-", " ") + more
    return text


def shorten_markdown(text: str, longest: int) -> str:
    """Shorten a line of Markdown between words, without leaving a broken link or unclosed markup."""
    short = shorten(text, longest)
    if short == text:
        return text
    if short.rfind("[[") > short.rfind("]]"):
        short = short[: short.rfind("[[")].rstrip() + "…"
    for mark in ("**", "`", "~~"):
        if short.count(mark) % 2:
            before, _, after = short.rpartition(mark)
            short = before + after
    return short


def readable_line(text: str) -> str:
    """Return a line without markup, with an ellipsis where the sentence was probably cut; "" if nothing is left."""
    shown = plain_text(text).strip()
    if not shown:
        return ""
    if len(shown) < SHORT_LINE:
        return shown
    before = "… " if shown[0].islower() and "/" not in shown.partition(" ")[0] else ""
    after = " …" if shown[-1] not in SENTENCE_ENDS and (shown[-1].isalnum() or shown[-1] in ",;–—]") else ""
    return before + shown + after


def make_snippet(text: str, question: str) -> Markup:
    """Return the text around the first match of the question, on one line, with matches highlighted."""
    shown = plain_text(text)
    pattern = query_pattern(question)
    first = pattern.search(shown) if pattern else None
    start = max(0, first.start() - CONTEXT_BEFORE) if first and len(shown) > MAX_SNIPPET else 0
    if start:
        start = shown.find(" ", start) + 1 or start
    cut = shown[start : start + MAX_SNIPPET]
    if start + MAX_SNIPPET < len(shown):
        cut = cut.rsplit(" ", 1)[0] + " …"
    return highlight(("… " if start else "") + cut, pattern)


def highlight(text: str, pattern: re.Pattern[str] | None) -> Markup:
    if pattern is None:
        return escape(text)
    out, at = [], 0
    for match in pattern.finditer(text):
        if match.end() > match.start():
            out += [escape(text[at : match.start()]), Markup("<mark>{}</mark>").format(match[0])]
            at = match.end()
    return Markup("").join([*out, escape(text[at:])])

"""A text of the memory as HTML that can do nothing: headings, lists, tables, code, links, boxes.

Whoever wrote the text is not trusted. markdown-it reads it with raw HTML off; nh3 then lets through only the tags,
attributes and addresses named here, so that a fault in the one is caught by the other; the page's CSP is the third.
Pictures are shown only when they are in the text itself: nothing is fetched from elsewhere.
"""

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import nh3
from markupsafe import Markup, escape

from quaid.formats import org as org_page
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.leading import PATH, Leading, Place, as_words, nowhere

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

LONGEST = 200_000
"""Characters that are read as markdown; a longer text is shown as it is written."""

MOST_MARKS = 40_000
"""Signs of markup in a text that is read as markdown; a text with more of them is a flood, and shown as written."""

_MARKS = "[*_`<&"
_WIKI = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\](?:\[([^\[\]\n]*)\])?\]")
_BOX = re.compile(r"\[([ xX])\][ \t]+")
_PICTURE = re.compile(r"data:image/(?:png|gif|jpeg|webp);base64,[A-Za-z0-9+/=]+")
_OUTSIDE = re.compile(r"(?:https?://|mailto:)[^\s\\]+", re.IGNORECASE)
_INSIDE = re.compile(r"(?:/(?![/\\])|#)[^\s\\]*")
_PAGE_FILE = re.compile(r"[^:?#]+\.(?:md|markdown|org)(?:#.*)?", re.IGNORECASE)
_MARK = re.compile(r"[LT]\d{1,9}")
_LANGUAGE = re.compile(r"language-[A-Za-z0-9_+-]{1,30}")

TAGS = set(
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s hr br table thead tbody tr th td a img span".split()
)
CLASSES = {"box", "box done", "wiki", "wiki unknown", "out", "picture", "here"}
_ATTRIBUTES = {
    "*": {"id", "class"},
    "a": {"href", "title", "class", "id"},
    "img": {"src", "alt", "title"},
    "ol": {"start", "id", "class"},
}


def render(
    text: str,
    lead: Leading = nowhere,
    *,
    mark: str = "L",
    at: int = 0,
    title: str = "",
    summary: str = "",
) -> Markup:
    """The text as safe HTML. Blocks are marked with their line, L12, and so is the line that is looked for.

    A first heading that says the title again, and a quote below it that says the summary, are left out."""
    if _is_too_much(text):
        return Markup('<pre class="plain">{}</pre>').format(text)
    parser = _parser()
    env: dict[str, Any] = {"lead": lead}
    tokens = _without_head(parser.parse(text, env), title, summary)
    _mark_lines(tokens, mark, at)
    for token in tokens:
        if token.type == "inline":
            _lead_links(token.children or [], lead)
    _tick_boxes(tokens)
    return _clean(parser.renderer.render(tokens, parser.options, env))


def _is_too_much(text: str) -> bool:
    return len(text) > LONGEST or sum(map(text.count, _MARKS)) > MOST_MARKS


def line(text: str, lead: Leading = nowhere) -> Markup:
    """One line, as in a summary: emphasis, code and links, no blocks."""
    parser = _parser()
    env: dict[str, Any] = {"lead": lead}
    tokens = parser.parseInline(text[:LONGEST], env)
    for token in tokens:
        _lead_links(token.children or [], lead)
    return _clean(parser.renderer.render(tokens, parser.options, env))


def org(text: str, lead: Leading = nowhere) -> Markup:
    """An org file the same way: headings, code and links; everything else as it is written. Nothing is evaluated."""
    if _is_too_much(text):
        return Markup('<pre class="plain">{}</pre>').format(text)
    document = org_page.read_pages(text)
    parts = []
    for part in (document.page, *document.nodes):
        head = "" if part is document.page else f"## {part.title}\n\n"
        parts.append(render(f"{head}{part.truth}\n\n{part.timeline}", lead))
    return Markup("\n").join(parts)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wiki", _wiki)
    parser.add_render_rule("image", _image)
    return parser


def _clean(html: str) -> Markup:
    cleaned = nh3.clean(
        html,
        tags=TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(cleaned)  # noqa: S704 (this is the one place where it is made safe)


def _allowed(tag: str, attribute: str, value: str) -> str | None:
    """The value, if this attribute may have it."""
    if attribute == "href":
        return value if _OUTSIDE.fullmatch(value) or _INSIDE.fullmatch(value) else None
    if attribute == "src":
        return value if _PICTURE.fullmatch(value) else None
    if attribute == "id":
        return value if _MARK.fullmatch(value) else None
    if attribute == "class":
        ok = value in CLASSES or (tag == "code" and _LANGUAGE.fullmatch(value))
        return value if ok else None
    if attribute == "start":
        return value if value.isascii() and value.isdigit() and len(value) < 10 else None
    return value


def _wiki(state: "StateInline", silent: bool) -> bool:
    """`[[people/alice]]`, `[[people/alice|Alice]]`, and org's `[[id:…][Alice]]`."""
    if not state.src.startswith("[[", state.pos):
        return False
    match = _WIKI.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        named = match[1].rstrip("\\").strip()
        found: Place | None = state.env["lead"](named)
        said = (match[2] or match[3] or "").strip()
        outside = bool(_OUTSIDE.fullmatch(named))
        shown = said or (found.title if found else "") or (named if outside else as_words(named))
        if found is None and outside:
            href, kind = named, "out"
        else:
            href = found.href if found else addresses.search(shown)
            kind = "wiki" if found else "wiki unknown"
        state.push("link_open", "a", 1).attrs = {"href": href, "class": kind}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _lead_links(children: list["Token"], lead: Leading) -> None:
    """Links that name the file of a page lead to the page; other files cannot be shown."""
    for token in children:
        if token.type != "link_open" or "class" in token.attrs:
            continue
        href = str(token.attrs.get("href", ""))
        found = lead(PATH + href) if _PAGE_FILE.fullmatch(href) else None
        if found:
            token.attrs = {"href": found.href, "class": "wiki"}
        elif _OUTSIDE.fullmatch(href):
            token.attrs["class"] = "out"
        elif not href.startswith("#"):
            token.attrs = {"class": "wiki unknown"}


def _image(_: Any, tokens: list["Token"], place: int, *__: Any) -> str:
    token = tokens[place]
    source, told = str(token.attrs.get("src", "")), token.content
    if _PICTURE.fullmatch(source):
        return f'<img src="{source}" alt="{escape(told)}">'
    return f'<span class="picture">{escape(told or source)}</span>'


def _without_head(tokens: list["Token"], title: str, summary: str) -> list["Token"]:
    if title and len(tokens) > 2 and tokens[0].tag == "h1" and _said(tokens[1]) == title.strip():
        tokens = tokens[3:]
    if summary and len(tokens) > 4 and tokens[0].type == "blockquote_open":
        quote = [each.type for each in tokens[1:5]]
        alone = quote == ["paragraph_open", "inline", "paragraph_close", "blockquote_close"]
        if alone and _plain(_said(tokens[2])) == _plain(summary):
            tokens = tokens[5:]
    return tokens


def _said(token: "Token") -> str:
    return " ".join(token.content.split())


def _plain(text: str) -> str:
    return re.sub(r"[\[\]*_`]|\([^()]*\)", "", text).strip()


def _mark_lines(tokens: list["Token"], mark: str, at: int) -> None:
    """Each block gets the number of its first line; the innermost around the line that is looked for, that."""
    blocks = [
        each
        for each in tokens
        if each.map and each.nesting >= 0 and each.type != "inline" and not each.hidden
    ]
    around = [each for each in blocks if each.map and at and each.map[0] < at <= each.map[1]]
    sought = around[-1] if around else None
    used = {at} if sought else set()
    for token in blocks:
        first = token.map[0] + 1 if token.map else 0
        if token is sought:
            token.attrs = {**token.attrs, "id": f"{mark}{at}", "class": "here"}
        elif first not in used:
            used.add(first)
            token.attrs = {**token.attrs, "id": f"{mark}{first}"}


def _tick_boxes(tokens: list["Token"]) -> None:
    from markdown_it.token import Token

    for before, token in pairwise(tokens):
        if token.type != "inline" or token.level < 2 or before.type != "paragraph_open" or not token.children:
            continue
        first = token.children[0]
        box = _BOX.match(first.content) if first.type == "text" else None
        if box is None:
            continue
        first.content = first.content[box.end() :]
        done = box[1] != " "
        sign = Token("html_inline", "", 0)
        sign.content = f'<span class="box{" done" if done else ""}">{"☑" if done else "☐"}</span> '
        token.children.insert(0, sign)

"""What could act in a page: found by reading the HTML as a browser does, not by looking for strings."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

ELEMENTS = frozenset(
    "script iframe frame frameset object embed applet base math template portal foreignobject animate set".split()
)
ADDRESSES = frozenset(
    "href src action formaction data poster background cite ping xlink:href srcdoc srcset".split()
)
OUR_SCRIPTS = "/static/"
SCHEMES = ("", "http", "https", "mailto")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.svg = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name.lower(): value or "" for name, value in attrs}
        ours = (
            tag == "script"
            and values.get("src", "").startswith(OUR_SCRIPTS)
            and set(values) <= {"src", "type"}
        )
        if tag in ELEMENTS and not ours:
            self.found.append(f"<{tag}>")
        if tag == "meta" and "http-equiv" in values:
            self.found.append("<meta http-equiv>")
        if tag == "link" and not values.get("href", "").startswith(OUR_SCRIPTS):
            self.found.append(f"<link {values.get('href')}>")
        if tag == "style":
            self.found.append("<style>")
        for name, value in values.items():
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.found.append(f"{tag} {name}={value}")
            elif name in ADDRESSES:
                self._address(tag, name, value)

    handle_startendtag = handle_starttag

    def _address(self, tag: str, name: str, value: str) -> None:
        # Browsers leave out tabs, line ends and what is below a blank at the beginning of an address.
        plain = "".join(sign for sign in value if ord(sign) > 32).lower()
        try:
            scheme = urlsplit(plain).scheme
        except ValueError:
            scheme = "?"
        picture = tag == "img" and plain.startswith(("data:image/png;", "data:image/gif;"))
        if (scheme not in SCHEMES and not picture) or plain.startswith(("//", "/\\", "\\")):
            self.found.append(f"{tag} {name}={value}")


def active_nodes(html: str) -> list[str]:
    """Everything in a page that is not ours and could act."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found

"""Files that want to cost more than they are: bombs, depths, floods of marks, traps for every kind of pattern.

Each has a name, which is its case: a unit repeated to a size, with something before and behind it, or a shape of its
own. Sizes are those that readers take in at all; what is larger must be left out at once.
"""

import io
import json
import zipfile
from collections.abc import Callable
from typing import NamedTuple

from tests.formats.document_files import epub, pdf

LARGEST = 4 * 1024 * 1024 - 1024
DEEP = 10_000

UNITS = {
    "brackets": "[",
    "double brackets": "[[",
    "closed brackets": "[[a]]",
    "named links": "[[a|b]] ",
    "pictures": "![",
    "half links": "[a](",
    "links to files": "[a](b.md)",
    "links on lines": "[a](b.md)\n",
    "parentheses": "(",
    "braces": "{",
    "stars": "*",
    "bold": "**a",
    "underscores": "_a",
    "tilde": "~",
    "ticks": "`",
    "odd ticks": "` `` ",
    "fences": "~~~\n",
    "ticked fences": "```\n",
    "half fences": "```\n~~~\n",
    "quotes": "> ",
    "quoted lines": "> a\n",
    "bullets": "- ",
    "bullet lines": "- a\n",
    "numbers": "1. ",
    "headings": "# a\n",
    "deep headings": "###### a\n",
    "stars of org": "* a\n",
    "tagged headings": "* a :b:c:d:\n",
    "todo": "* TODO a\n",
    "drawers": ":PROPERTIES:\n",
    "drawers that end": ":PROPERTIES:\n:ID: a\n:END:\n",
    "headings with ids": "* a\n:PROPERTIES:\n:ID: a\n:END:\n",
    "blocks": "#+begin_src\n",
    "keywords": "#+title: a\n",
    "todo lists": "#+todo: a b c | d\n",
    "planning": "* a\nSCHEDULED: <2026-04-25>\n",
    "colons": ":",
    "tags": "#tag ",
    "hashes": "#",
    "rules": "---\n",
    "separated rules": "\n---\n\n",
    "bars": "|",
    "tables": "| a | b |\n",
    "entries": "- **2026-04-25** | call — a\n",
    "half entries": "- **2026-04-25** | ",
    "dates": "2026-04-25 ",
    "half dates": "2026-",
    "told dates": "in March 2025 ",
    "years": "since 2025 ",
    "leavings": "Alice left Acme in 2025. ",
    "half leavings": "Alice left ",
    "jobs": "Alice is CEO of Acme. ",
    "facts": "role: CEO\n",
    "names": "Alice Berg ",
    "capitals": "A",
    "initials": "A.",
    "sentences": "A. B? C! ",
    "titles": "Mr. ",
    "quoted speech": '"a" ',
    "apostrophes": "it's ",
    "negations": "not ",
    "if": "if when ",
    "ands": "and, ",
    "commas": ",",
    "semicolons": ";",
    "dots": ".",
    "dashes": "—",
    "hyphens": "a-",
    "html": "<a ",
    "html comments": "<!--",
    "closed comments": "<!-- -->",
    "tags of html": "<b></b>",
    "entities": "&amp;",
    "addresses": "http://",
    "whole addresses": "http://a.b/c?d=e ",
    "mail": "a@",
    "whole mail": "a@b.cc ",
    "paths": "a/",
    "backslashes": "\\",
    "dollars": "$",
    "percents": "%",
    "equals": "=",
    "assignments": "password=",
    "assigned": "password = 'a' ",
    "api keys": "api_key: ",
    "begun keys": "-----BEGIN PRIVATE KEY-----\n",
    "github": "ghp_",
    "openai": "sk-",
    "amazon": "AKIA",
    "jwt": "eyJ",
    "dotted jwt": "eyJa.eyJa.",
    "bearer": "Authorization: Bearer ",
    "connection": "postgres://a:b@",
    "base64": "QUJD",
    "hexadecimal": "deadbeef",
    "digits": "0",
    "letters": "a",
    "words": "a ",
    "long words": "abcdefghijklmnopqrstuvwxyz" * 4 + " ",
    "spaces": " ",
    "tabs": "\t",
    "lines": "\n",
    "carriage returns": "\r",
    "both ends of lines": "\r\n",
    "lines with spaces": " \n",
    "form feeds": "\f",
    "line separators": "\u2028",
    "accents": "e\u0301",
    "ideographs": "知",
    "kana": "かな。",
    "emoji": "👩\u200d👩\u200d👧",
    "joiners": "\u200d",
    "marks from right": "\u202e",
    "private": "\ue000",
    "nulls": "\0",
}


class Hostile(NamedTuple):
    name: str
    make: Callable[[], bytes]


def floods(size: int = LARGEST) -> list[Hostile]:
    """One file for each unit."""

    def flood(unit: str) -> Callable[[], bytes]:
        return lambda: (f"# A\n\n{unit * (size // len(unit.encode()))}").encode()

    return [Hostile(name, flood(unit)) for name, unit in UNITS.items()]


def shapes() -> list[Hostile]:
    """Files of a shape of their own."""
    many = "".join(f"[[page-{number}]] " for number in range(100_000))
    aliases = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return [
        Hostile("yaml aliases", lambda: f"---\n{aliases}---\nText.\n".encode()),
        Hostile("yaml merges", lambda: f"---\na: &a {{b: c}}\n{'d: {<<: *a}' * 500}\n---\n".encode()),
        Hostile("yaml depth", lambda: f"---\na: {'[' * DEEP}{']' * DEEP}\n---\nText.\n".encode()),
        Hostile(
            "yaml keys", lambda: f"---\n{''.join(f'k{n}: v' + chr(10) for n in range(8_000))}---\n".encode()
        ),
        Hostile("yaml without an end", lambda: b"---\n" + b"a: b\n" * 800_000),
        Hostile("yaml of one line", lambda: b"---\na: '" + b"x" * LARGEST + b"'\n---\n"),
        Hostile("toml", lambda: b"+++\n" + b"[a.b]\n" * 10_000 + b"+++\n"),
        Hostile(
            "deep lists", lambda: "".join(f"{' ' * (n % 1_500)}- a\n" for n in range(DEEP)).encode()[:LARGEST]
        ),
        Hostile("deep quotes", lambda: (">" * DEEP + " a\n").encode() * 100),
        Hostile("deep brackets", lambda: ("[" * DEEP + "a" + "]" * DEEP).encode() * 100),
        Hostile("deep links", lambda: ("[[" * DEEP + "a" + "]]" * DEEP).encode() * 100),
        Hostile("deep emphasis", lambda: ("*" * DEEP + "a" + "*" * DEEP).encode() * 100),
        Hostile("100,000 links", lambda: many.encode()),
        Hostile(
            "100,000 headings",
            lambda: "".join(f"# Heading {n}\n\nText {n}.\n" for n in range(100_000)).encode(),
        ),
        Hostile("100,000 entries", lambda: entries().encode()),
        Hostile("one long line", lambda: b"word " * (LARGEST // 5)),
        Hostile("50 MB", lambda: b"# Large\n\n" + b"word " * (10 * 1024 * 1024)),
        Hostile("binary", lambda: bytes(range(256)) * 16_000),
        Hostile("half utf-16", lambda: b"\xff\xfe" + "知识".encode("utf-16-le") * 900_000 + b"\x00"),
        Hostile("bad utf-8", lambda: b"\xc3\x28\xf0\x28\x8c\xbc" * 600_000),
    ]


def entries() -> str:
    lines = "".join(f"- **2026-04-{n % 28 + 1:02}** | call — Entry {n}.\n" for n in range(90_000))
    return f"# A\n\n---\n\n{lines}"


FIRST = (
    "yaml aliases",
    "yaml depth",
    "50 MB",
    "stars of org",
    "headings",
    "100,000 links",
    "tags",
    "100,000 entries",
    "closed brackets",
    "stars",
    "assignments",
    "half utf-16",
)
"""The nastiest: those come first, and the short slice is cut from the beginning."""


def pages() -> list[Hostile]:
    """Every text, the nastiest first."""
    every = {shape.name: shape for shape in (*shapes(), *floods())}
    return [*(every[name] for name in FIRST), *(item for name, item in every.items() if name not in FIRST)]


def short_pages() -> list[Hostile]:
    """The same as short as a dashboard renders them at all, and some that only renderers know."""
    every = [Hostile(flood.name, flood.make) for flood in (*floods(199_000),)]
    more = {
        "nested lists": "".join(f"{' ' * (n % 300)}- a\n" for n in range(1_100)),
        "nested quotes": "> " * 99_000,
        "references": "".join(f"[{n}]: /a\n" for n in range(15_000)),
        "columns": "|" + "a|" * 30_000 + "\n|" + "-|" * 30_000 + "\n",
        "rows": "|a|b|\n|-|-|\n" + "|a|b|\n" * 30_000,
        "rows that are shown": "|a|b|\n|-|-|\n" + "|a|b|\n" * 9_900,
        "open emphasis": "*a _b " * 33_000,
        "open links": "[a](<b" * 33_000,
        "entities of numbers": "&#x41;" * 33_000,
        "open code": "".join("`" * (n % 600) + "a" for n in range(650)),
    }
    made = [Hostile(name, lambda text=text: text.encode()) for name, text in more.items()]  # type: ignore[misc]
    first = ("nested quotes", "open emphasis", "closed brackets")
    return sorted([*made, *every], key=lambda each: each.name not in first)


def ignores() -> list[Hostile]:
    """Files that say what is to be left out, none of which leaves a good page out."""
    lines = {
        "many stars": "*a" * 20 + "*b",
        "no range": "[z-a]",
        "stars in brackets": "*(" * 20 + "b",
        "many folders": "**/a*a*b/" * 100 + "c",
        "deep stars": "a/**/" * 800 + "b",
        "one long line": "*a" * 30_000 + "b",
        "open class": "*[a" * 1_000,
        "backslashes": "\\" * 4_001,
        "many lines": "*a*a*a*a*b\n" * 990,
        "too many lines": "*a*a*b\n" * 100_000,
        "large": "*a*b\n" * 10_000_000,
        "nulls": "\0" * 60_000,
    }
    return [Hostile(name, lambda text=text: text.encode()) for name, text in lines.items()]  # type: ignore[misc]


def exports() -> list[Hostile]:
    """Archives with a conversations.json in them, and what pretends to be one."""
    name = "conversations.json"
    turn = {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["a"]}}}
    chain = {str(n): {**turn, "parent": str(n - 1) if n else None} for n in range(20_000)}
    return [
        Hostile("bomb", lambda: zipped({name: b"[" + b" " * 200_000_000 + b"]"})),
        Hostile("small bomb", lambda: zipped({name: b"[" + b" " * 19_000_000 + b"]"})),
        Hostile("bomb of brackets", lambda: zipped({name: b"[" * 19_000_000})),
        Hostile("many members", lambda: zipped({f"{n}": b"" for n in range(200_000)})),
        Hostile("many exports", lambda: zipped({f"{n}/{name}": b"[]" for n in range(20_000)})),
        Hostile("a liar", lambda: zipped({name: b"[" + b" " * 50_000_000 + b"]"}, lie=100)),
        Hostile("an archive in itself", lambda: zipped({name: zipped({name: b"[]" * 9_000_000})})),
        Hostile("half an archive", lambda: zipped({name: b"[]"})[:-10] + b"PK\5\6" + b"\xff" * 18),
        Hostile("a long chain", lambda: zipped({name: json.dumps([{"id": "a", "mapping": chain}]).encode()})),
        Hostile("a chain in a ring", lambda: zipped({name: json.dumps([ring()]).encode()})),
        Hostile("no archive", lambda: b"PK" * 5_000_000),
    ]


def documents() -> list[Hostile]:
    """Documents of other programs. The reader names them by their first bytes."""
    return [
        Hostile("bomb", lambda: zipped({"word/document.xml": b" " * 150_000_000})),
        Hostile("entities", lambda: docx('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>')),
        Hostile("deep xml", lambda: docx("<a>" * 1_000_000)),
        Hostile("nested tags", lambda: b"<html>" + b"<div>" * 300_000 + b"a"),
        Hostile("nested lists", lambda: b"<html>" + b"<ul><li>" * 100_000 + b"a"),
        Hostile("nested tables", lambda: b"<html>" + b"<table><tr><td>" * 70_000 + b"a"),
        Hostile("nested quotations", lambda: b"<html>" + b"<blockquote>a" * 200_000),
        Hostile("open comments", lambda: b"<html>" + b"<!--" * 500_000),
        Hostile("open tags", lambda: b"<html>" + b"<a " * 500_000),
        Hostile("many pages", lambda: pdf(["a"] * 10_000)),
        Hostile(
            "names that lead out", lambda: epub([("a", "b")], items=ESCAPE, spine='<itemref idref="x"/>')
        ),
        Hostile("old office", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 500_000),
        Hostile("a liar", lambda: zipped({"word/document.xml": b" " * 50_000_000}, lie=100)),
        Hostile("many members", lambda: zipped({f"../{n}": b"" for n in range(50_000)})),
        Hostile("no pdf", lambda: b"%PDF-1.7\n" + b"1 0 obj\n<<" * 500_000),
        Hostile(
            "no end of mail",
            lambda: (
                b"From a@b.c Sat Apr 25 10:00:00 2026\nSubject: a\n\n" + (b"word " * 14 + b"\n") * 250_000
            ),
        ),
        Hostile("many mails", lambda: b"From a@b.c Sat Apr 25 10:00:00 2026\n\n" * 20_000),
    ]


ESCAPE = '<item id="x" href="../../../../etc/passwd" media-type="text/html"/>'


def docx(xml: str) -> bytes:
    return zipped({"word/document.xml": xml.encode()})


def ring() -> dict[str, object]:
    return {"id": "a", "current_node": "1", "mapping": {"1": {"parent": "2"}, "2": {"parent": "1"}}}


def zipped(members: dict[str, bytes], *, lie: int = 0) -> bytes:
    """An archive; with `lie` it says that its first member is only so long."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        if lie:
            archive.filelist[0].file_size = lie
    return made.getvalue()


def transcripts() -> list[Hostile]:
    """Conversations: lines of JSON, and whole exports of one."""
    turn = '{"role": "user", "content": "%s", "timestamp": 1777118400, "session": "s"}\n'
    return [
        Hostile("deep json", lambda: b"[" * 2_000_000),
        Hostile("deep objects", lambda: b'{"a":' * 800_000),
        Hostile("deep line", lambda: ((turn % "a") + '{"a":' * DEEP + "1" + "}" * DEEP + "\n").encode()),
        Hostile("long turn", lambda: (turn % ("word " * 1_600_000)).encode()),
        Hostile("many lines", lambda: b"{}\n" * 2_000_000),
        Hostile("numbers", lambda: b'{"a": ' + b"9" * 4_000_000 + b"}\n"),
        Hostile("no lines", lambda: b"x" * 20_000_000),
        Hostile("empty lines", lambda: b"\n" * 20_000_000),
        Hostile("escapes", lambda: (turn % ("\\u0000" * 1_000_000)).encode()),
        Hostile("guarded turns", lambda: (turn % ("password=" * 10_000)).encode() * 40),
        Hostile("surrogates", lambda: (turn % ("\\ud800" * 1_000_000)).encode()),
    ]

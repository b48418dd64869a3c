"""A folder of the worst files: nothing ends the work, and each file that something is wrong with is named."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.operations import dispatch

DEEP = 100_000
NESTED = {
    "link": ("[", "](x)"),
    "wiki": ("[[", "]]"),
    "image": ("![", "](x.png)"),
    "quote": ("> ", ""),
    "emphasis": ("*", "*"),
    "html": ("<b>", "</b>"),
    "list": ("- ", ""),
    "shortcode": ("{{< a ", " >}}"),
    "comment": ("<!-- ", " -->"),
    "code": ("`", "`"),
    "footnote": ("[^", "]"),
}
FRONT_MATTER = {
    "unclosed": "---\ntitle: x\n\nText",
    "unclosed toml": "+++\na = 1\nx",
    "list": "---\n- a\n---\n",
    "scalar": "---\nwords\n---\n",
    "alias": "---\na: &x [1]\nb: *x\n---\n",
    "twice": "---\na: 1\na: 2\n---\n",
    "tab": "---\n\ta: 1\n---\n",
    "surrogate": '---\ntitle: "\\ud800"\n---\n',
    "key": "---\n? [a]\n: 1\n---\n",
    "toml": "+++\na = \n+++\nx",
    "huge": "---\na: " + "x" * 200_000 + "\n---\n",
    "deep": "---\na: " + "[" * 5_000 + "]" * 5_000 + "\n---\n",
    "deep map": "---\n" + "".join(" " * depth + "a:\n" for depth in range(300)) + "---\n",
}
ODD_VALUES = {
    "kinds": "---\ntitle: [a, {b: c}]\ntags: {a: b}\naliases: 5\nlinks: x\nslug: [x]\nsummary: {a: 1}\n---\n",
    "links": "---\nlinks:\n  - to: 5\n  - {to: [x], valid_from: z}\n  - nonsense\n---\n",
    "numbers": "---\na: 1e999999\nb: " + "9" * 4_000 + "\nc: .nan\nd: .inf\n---\n",
    "id": "---\nquaid_id: [1]\n---\nx",
    "way out": "---\nslug: ../../etc/passwd\n---\nx",
}
BYTES = {
    "invalid": b"# Bad \xff\xfe\xc3\x28 \xf0\x28\x8c\x28\n",
    "half a character": b"# \xe6\x97",
    "nul": b"# N\0\0ul\n\0\n",
    "half utf-16": b"\xff\xfe\x00\xd8\x00",
}
PLAIN = {
    "cr": b"# Old Mac\rLine\r",
    "mixed": b"# a\r\nb\rc\n",
    "bom": b"\xef\xbb\xbf---\ntitle: B\n---\nx",
    "two boms": b"\xef\xbb\xbf\xef\xbb\xbf# x",
    "line": b"# H\n\n" + b"x" * 1_000_000,
    "title": b"# " + b"t" * 300_000,
    "quotation": b"> " + b"q " * 100_000,
}
LARGE = b"x" * 5_000_000


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    root = tmp_path / "nasty"
    files: dict[str, bytes] = {
        f"deep {name}": f"# D\n\n{a * DEEP}x{b * DEEP}\n".encode() for name, (a, b) in NESTED.items()
    }
    files |= {f"front {name}": text.encode() for name, text in (FRONT_MATTER | ODD_VALUES).items()}
    files |= {f"bytes {name}": data for name, data in (BYTES | PLAIN | {"too large": LARGE}).items()}
    root.mkdir()
    for name, data in files.items():
        (root / f"{name}.md").write_bytes(data)
    (root / ".raw").mkdir()
    (root / ".raw/deep.json").write_text("[" * DEEP)
    os.mkfifo(root / "pipe.md")
    (root / "link.md").symlink_to("/etc/passwd")
    return root


BAD = {f"front {name}.md" for name in FRONT_MATTER} | {f"bytes {name}.md" for name in BYTES}
FILES = len(NESTED) + len(FRONT_MATTER) + len(ODD_VALUES) + len(BYTES) + len(PLAIN)


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def test_an_import_of_the_worst_files_names_each_of_them(brain: Brain, nasty: Path) -> None:
    report = run(brain, "import", folder=str(nasty)).report
    assert (report.outcomes["new"], report.outcomes["failed"], report.outcomes["too_large"]) == (FILES, 0, 1)
    named = {note.path for note in report.notes}
    assert named == BAD | {"bytes too large.md", "link.md", "pipe.md", ".raw/deep.json"}
    assert run(brain, "query", question="old mac").results
    assert run(brain, "validate").violations == ()


def test_a_collection_of_the_worst_files_names_each_of_them(brain: Brain, nasty: Path) -> None:
    record = run(brain, "collection add", name="nasty", path=str(nasty))
    assert (record.sync.new, record.sync.failed) == (FILES, 1)
    assert {note.path for note in record.sync.notes} == BAD | {
        "bytes too large.md",
        "link.md",
        ".raw/deep.json",
    }
    assert "bytes too large.md: too large" in render(record)
    assert {problem.path for problem in run(brain, "collection info", name="nasty").problems} == BAD | {
        "bytes too large.md"
    }
    assert run(brain, "validate").violations == ()

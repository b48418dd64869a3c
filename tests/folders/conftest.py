"""Folders to import, and a memory to compare before and after."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.folders import importer
from quaid.folders.importer import ImportReport

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]
Dump = Callable[[], dict[str, list[Any]]]
CORPUS = "kubernetes-docs-en.tar.gz"


@pytest.fixture
def bring(brain: Brain) -> Bring:
    """Import a folder into the brain's memory."""

    def run(folder: Path) -> ImportReport:
        return importer.import_folder(
            brain.db,
            str(folder),
            import_id=brain.new_uuid(),
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
        )

    return run


@pytest.fixture
def vault(tmp_path: Path) -> Fill:
    """Make files in the folder `vault`, or replace them."""

    def fill(files: dict[str, str | bytes]) -> Path:
        root = tmp_path / "vault"
        root.mkdir(exist_ok=True)
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return fill


@pytest.fixture
def dump(brain: Brain) -> Dump:
    """Every row of every table."""

    def rows() -> dict[str, list[Any]]:
        names = [name for (name,) in brain.db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: brain.db.rows(f'SELECT * FROM "{name}"') for name in names}

    return rows


MESSY: dict[str, str | bytes] = {
    "README.md": "# About this folder\n",
    "index.md": "# My own index\n",
    "schema.md": "# How things are filed\r\n",
    "log.md": "# Log\n\nA page like any other.\n",
    "people/alice.md": (
        "---\ntitle: Alice Example\ntype: person\ntags: [infra, ops]\nrank: 3\nlinks:\n"
        "  - to: companies/river-ai\n    valid_from: 2024-01-15\n---\n\n# Alice\n\n> Founder of River AI.\n\n"
        "Lives in Oslo.\n\n---\n\n## Timeline\n\n- **2026-04-14** | meeting — Met at a demo day.\n"
        "- **2026-04-22** | mail — Replied.\n  With a long detail.\n"
    ),
    "people/.raw/alice.json": '{"sources": {"crm": {"id": 7}, "web": ["a", "ü"]}}',
    "people/.raw/nobody.json": '{"sources": {"crm": {"id": 8}}}',
    "people/.raw/broken.json": '{"sources": ',
    "people/bob.md": "# Bob\r\n\r\nWritten on Windows.\r\n\r\n---\r\n\r\n- 2026-04-22 — Called.\r\n",
    "people/.raw/bob.json": b'\xef\xbb\xbf{"name": "Bob", "fetched": "2026-01-01"}',
    "people/README.md": "An ordinary page of a subfolder.\n",
    "people/index.md": "---\ntitle: People\n---\n",
    "1. Projects/My Näme.md": "no front matter, no heading\n",
    "1. Projects/my-name.md": "# The other one\n",
    "知识/検索.md": "# 検索\n\n東京\n",
    "broken.md": "---\ntitle: [unclosed\n---\n# Broken\n\nStill here.\n",
    "list.md": "---\n- a\n- b\n---\nBody.\n",
    "unclosed.md": "---\ntitle: never closed\n\nBody.\n",
    "aliases.md": "---\na: &x [1]\nb: *x\n---\nBody.\n",
    "hugo.md": '+++\ntitle = "Hugo"\ndate = 2026-01-02\ntags = ["a"]\n+++\n\nTOML.\n',
    "bad-toml.md": "+++\ntitle = \n+++\nBody.\n",
    "bom.md": b"\xef\xbb\xbf---\ntitle: Marked\n---\nBody.\n",
    "nul.md": b"# Nul\n\nA\0B\n",
    "latin.md": "# Café\n\nnaïve\n".encode("latin-1"),
    "utf16.md": "# Sixteen\n".encode("utf-16"),
    "empty.md": b"",
    "blank.md": b"\n\n  \n",
    "only-rule.md": b"---\n",
    "no-newline.md": b"# End",
    "cr.md": b"# Old Mac\rLine.\r",
    "fenced.md": "# Code\n\n```yaml\n---\na: 1\n---\n```\n\nAfter.\n",
    "big.md": "# Big\n\n" + "All work and no play. " * 18_000,
    "claims/one.md": "---\nslug: shared\n---\n# One\n",
    "claims/two.md": "---\nslug: shared\n---\n# Two\n",
    "claims/three.md": "---\nslug: Not A Slug\n---\n# Three\n",
    "claims/four.md": "---\nslug: people/bob\n---\n# Four\n",
    "odd type.md": "---\ntype: spaceship\n---\n# Odd\n",
    "UPPER.MD": "# Upper\n",
    "long.markdown": "# Long ending\n",
    "a--b.md": "# Two dashes\n",
    "-.md": "# Only a dash\n",
    "picture.png": b"\x89PNG",
    ".obsidian/app.json": "{}",
    ".git/HEAD": "ref",
    ".hidden.md": "hidden",
    "node_modules/x/readme.md": "# not ours\n",
}


@pytest.fixture
def messy(vault: Fill) -> Path:
    """A folder with every oddity that real folders have."""
    return vault(MESSY)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third of 2,453 real markdown files, all with QUAID_LONG=1, if the data is there."""
    repository = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("QUAID_BENCH_DATA") or repository.parent / "shared" / "data") / CORPUS
    if not data.exists():
        pytest.skip(f"the corpus {CORPUS} is not here; QUAID_BENCH_DATA names its folder")
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(data) as archive:
        members = archive.getmembers()
        step = 1 if os.environ.get("QUAID_LONG") else 3
        archive.extractall(folder, [item for item in members if item.isfile()][::step], filter="data")
    return folder / "en"


def overwrite_leaf(brain: Brain, table: str) -> None:
    """Close a memory and overwrite one page of the file that holds rows of a table."""
    connection, path = brain.db.connection, brain.db.path
    leaves = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (table,)
    ).fetchall()
    size = connection.pragma("page_size")
    brain.close()
    with open(path, "r+b") as file:
        file.seek((int(str(leaves[len(leaves) // 2][0])) - 1) * size)
        file.write(b"\xff" * size)

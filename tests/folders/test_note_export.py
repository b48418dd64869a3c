"""Exports for other programs, and imports of these exports."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import NOON
from tests.folders.test_foreign import facts, links, pages, run

from quaid.app import Brain, ModelCache
from quaid.errors import InvalidArgument
from quaid.folders import export as exporter, transcripts
from quaid.operations.collections import export, import_

PAGES = {
    "people/siri-lund": (
        "---\ntype: person\naliases: [Sib]\ntags: [yard]\n"
        "id: 11111111-1111-4111-8111-111111111111\n---\n# Siri Lund\n\n"
        "Welds at [[Nordkai AS]], see [[companies/nordkai|the yard]] and [[Nowhere]].\n\n"
        "- [ ] call **now**\n  - deep `[[code]]`\n\n> Salt *creeps*.\n\n"
        "```py\nx = '[[Nordkai AS]]'\n# no heading\n```\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n---\n\n- 2024-05-06 | call — Moved to Tromsø with [[Sib]]\n"
    ),
    "companies/nordkai": "---\ntype: company\n---\n# Nordkai AS\n\nFounded by [[Sib]]. [site](https://example.org)\n",
    "index": "# Index\n\nThe first page.\n",
    "twin": "# Nordkai AS\n\nThe same title.\n",
}


@pytest.fixture
def second(brain: Brain, models: ModelCache, tmp_path: Path) -> Iterator[Brain]:
    """Another memory, without pages."""
    path = str(tmp_path / "second.db")
    settings = brain.settings._replace(db_path=path)
    with Brain(
        settings, clock=lambda: NOON + 1_000, random=os.urandom, offset=lambda _: 0, models=models
    ) as memory:
        memory.create(path)
        yield memory


@pytest.fixture
def filled(brain: Brain) -> Brain:
    for slug, text in PAGES.items():
        run(brain, "put", slug=slug, content=text)
    run(brain, "link", **{"from": "people/siri-lund", "to": "companies/nordkai", "relationship": "works_at"})
    run(
        brain,
        "assert",
        slug="people/siri-lund",
        subject="Siri Lund",
        predicate="lives_in",
        object="Tromsø",
        valid_from="2024-05-06",
    )
    run(brain, "raw", slug="companies/nordkai", source="register", data={"number": 7})
    brain.db.write(
        lambda tx: tx.execute("UPDATE pages SET created_at = '2021-02-03T04:05:06Z' WHERE slug <> 'index'")
    )
    return brain


def snapshot(brain: Brain, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    kept = ("title", "type", "tags", "compiled_truth", "timeline", "created_at")
    found = {}
    for slug, page in pages(brain).items():
        front = {key: value for key, value in page["frontmatter"].items() if key not in without}
        found[slug] = {**{key: page[key] for key in kept if key not in without}, "frontmatter": front}
    return found


def raw(brain: Brain) -> list[Any]:
    return brain.db.rows("SELECT p.slug, r.source, r.data FROM raw_data r JOIN pages p ON p.id = r.page_id")


def fact_rows(brain: Brain) -> list[Any]:
    return brain.db.rows(
        "SELECT subject, predicate, object, valid_from, valid_until, created_at FROM assertions"
    )


def test_json_lines_bring_everything_back(filled: Brain, second: Brain, tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    lines = [
        {"role": "user", "content": f"Turn {n}", "timestamp": f"2025-01-01T10:00:{n:02}Z", "session": "s1"}
        for n in range(3)
    ]
    talk.write_text("".join(json.dumps(line) + "\n" for line in lines))
    transcripts.read_transcripts(
        filled.db, [str(talk)], named=set(), now=filled.now(), progress=filled.progress
    )
    report = export(filled, dir=str(tmp_path / "out"), to="jsonl")
    assert (report.pages, report.links, report.facts, report.files) == (4, 1, 1, 2)
    record = import_(second, str(tmp_path / "out"), from_="jsonl")
    assert record.unread == ()
    assert snapshot(second) == snapshot(filled)
    assert links(second) == links(filled)
    assert fact_rows(second) == fact_rows(filled)
    assert raw(second) == raw(filled)
    assert record.conversations is not None
    assert record.conversations.turns == 3
    again = import_(second, str(tmp_path / "out"), from_="jsonl")
    assert again.report.import_id is None


def test_an_obsidian_vault_brings_back_pages_links_dates_and_facts(
    filled: Brain, second: Brain, tmp_path: Path
) -> None:
    export(filled, dir=str(tmp_path / "out"), to="obsidian")
    note = (tmp_path / "out" / "people" / "siri-lund.md").read_text()
    assert "[[companies/nordkai|the yard]]" in note, "links to files stay"
    assert "Moved to Tromsø with [[people/siri-lund|Sib]]" in note, "Obsidian does not resolve aliases"
    assert "[[Nordkai AS]]" in note, "an ambiguous title is not resolved"
    assert "- lives_in:: Tromsø (from 2024-05-06)\n- works_at:: [[companies/nordkai|Nordkai AS]]\n" in note
    assert 'created: "2021-02-03T04:05:06Z"' in note
    assert (tmp_path / "out" / "index.md").exists()
    record = import_(second, str(tmp_path / "out"), from_="obsidian")
    assert record.unread == ()
    lost = ("created", "updated", "compiled_truth", "timeline")
    assert snapshot(second, without=lost) == snapshot(filled, without=lost)
    assert links(second) == links(filled)
    assert fact_rows(second) == fact_rows(filled)
    assert raw(second) == raw(filled)
    before, after = (snapshot(memory)["people/siri-lund"] for memory in (filled, second))
    assert after["compiled_truth"] == before["compiled_truth"]
    assert after["timeline"] == before["timeline"].replace("[[Sib]]", "[[people/siri-lund|Sib]]")
    again = import_(second, str(tmp_path / "out"), from_="obsidian")
    assert again.report.import_id is None


def test_logseq_pages_are_outlines_with_properties(filled: Brain, second: Brain, tmp_path: Path) -> None:
    report = export(filled, dir=str(tmp_path / "out"), to="logseq")
    assert report.pages == 4
    written = {path.name: path.read_text() for path in (tmp_path / "out" / "pages").iterdir()}
    assert written.keys() == {"Siri Lund.md", "Nordkai AS.md", "Index.md", "twin.md"}
    page = written["Siri Lund.md"]
    assert page.startswith("title:: Siri Lund\nalias:: Sib\ntags:: yard\ntype:: person\n")
    assert "created:: 2021-02-03T04:05:06Z\n" in page
    assert (
        "- # Siri Lund\n\t- Welds at [[Nordkai AS]], see [the yard]([[Nordkai AS]]) and [[Nowhere]].\n"
        in page
    )
    assert "\t- TODO call **now**\n\t\t- deep `[[code]]`\n" in page
    assert "\t- ```py\n\t  x = '[[Nordkai AS]]'\n\t  # no heading\n\t  ```\n" in page
    assert "- ## Facts\n\t- lives_in:: Tromsø (from 2024-05-06)\n\t- works_at:: [[Nordkai AS]]\n" in page
    import_(second, str(tmp_path / "out"), from_="logseq")
    assert {page["title"] for page in pages(second).values()} == {"Siri Lund", "Nordkai AS", "Index", "twin"}
    assert {page["type"] for page in pages(second).values() if page["title"] == "Siri Lund"} == {"person"}
    assert not {"type", "created", "updated", "quaid_id"} & {fact[1] for fact in facts(second)}


def test_org_roam_files_have_ids_and_links_by_id(filled: Brain, second: Brain, tmp_path: Path) -> None:
    export(filled, dir=str(tmp_path / "out"), to="org-roam")
    text = (tmp_path / "out" / "people" / "siri-lund.org").read_text()
    yard = (tmp_path / "out" / "companies" / "nordkai.org").read_text().split(":ID: ")[1].split("\n")[0]
    assert text.startswith(
        ':PROPERTIES:\n:ID: 11111111-1111-4111-8111-111111111111\n:ROAM_ALIASES: "Sib"\n'
        ":CREATED: 2021-02-03T04:05:06Z\n"
    )
    assert "#+title: Siri Lund\n#+filetags: :yard:\n" in text
    assert f"see [[id:{yard}][the yard]] and [[Nowhere]].\n" in text
    assert "- [ ] call *now*\n  - deep =[[code]]=\n" in text
    assert "#+begin_quote\nSalt /creeps/.\n#+end_quote\n" in text
    assert "#+begin_src py\nx = '[[Nordkai AS]]'\n# no heading\n#+end_src\n" in text
    assert "| a | b |\n|---+---|\n| 1 | 2 |\n" in text
    assert (
        f"* Facts\n- lives_in :: Tromsø (from 2024-05-06)\n- works_at :: [[id:{yard}][Nordkai AS]]\n" in text
    )
    import_(second, str(tmp_path / "out"), from_="org-roam")
    assert pages(second).keys() == PAGES.keys()
    assert ("companies/nordkai", "mentions", "people/siri-lund") in links(second)
    assert pages(second)["people/siri-lund"]["created_at"] == "2021-02-03T04:05:06Z"


def test_json_lines_are_split_into_files_and_hostile_lines_are_listed(
    filled: Brain, second: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "JSONL_FILE_BYTES", 600)
    report = export(filled, dir=str(tmp_path / "out"), to="jsonl")
    assert report.files > 2
    hostile = [
        {"kind": "page", "path": "../../out.md", "text": "x"},
        {"kind": "page", "path": "/etc/x.md", "text": "x"},
        {"kind": "page", "path": "a.exe", "text": "x"},
        {"kind": "page"},
        [],
    ]
    more = "".join(json.dumps(line) + "\n" for line in hostile) + "{broken\n"
    (tmp_path / "out" / "memory-999.jsonl").write_text(more)
    record = import_(second, str(tmp_path / "out"), from_="jsonl")
    assert len(record.unread) == 6
    assert snapshot(second) == snapshot(filled)
    assert facts(second) == facts(filled)


def test_a_format_does_not_go_with_original_files(brain: Brain, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--raw"):
        export(brain, dir=str(tmp_path / "out"), raw=True, to="jsonl")

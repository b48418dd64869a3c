"""Bundles in the Open Knowledge Format: import, export, and whether an exported bundle follows its rules."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from tests.folders.test_foreign import facts, fill, links, pages, reasons, run, take
from tests.folders.test_note_export import fact_rows, filled, raw, second, snapshot

from quaid.app import Brain
from quaid.formats import foreign_notes
from quaid.operations.collections import export, import_

__all__ = ["filled", "second"]

ORDERS = """\
---
type: Warehouse Table
title: Orders
description: One row for each order that was paid.
resource: https://example.com/warehouse/orders
tags: [sales, orders]
status: stable
stale_after: 2027-01-31
generated: { by: lister/2.1, at: 2025-05-28T14:30:00Z }
verified:
  - { by: human:ida, at: 2026-06-25T09:00:00Z }
  - { by: process:nightly, at: 2026-06-26T02:00:00Z }
sources:
  - id: schema
    resource: https://example.com/schema
    title: Schema of the warehouse
    author: team:data
    usage_count: 40
usage_window: { from: 2026-06-01, to: 2026-06-30 }
x_vendor: { shard: 7, owner: [a, b] }
---

# Schema

| Column | Meaning |
|---|---|
| `buyer` | see [buyers](/tables/buyers.md) |

# Joins

Joined with [buyers](./buyers.md#key), measured by [revenue](../metrics/revenue.md).[^schema]

[^schema]: Schema of the warehouse
"""
BUNDLE = {
    "index.md": '---\nokf_version: "0.2"\n---\n\n# Tables\n\n* [Orders](tables/orders.md) - paid orders\n',
    "log.md": "# History\n\n## 2026-05-22\n* **Update**: [Orders](/tables/orders.md).\n\n## 2026-05-15\n* Begun.\n",
    "tables/orders.md": ORDERS,
    "tables/buyers.md": "---\ntype: Warehouse Table\n---\n\n# Schema\n\nOne row for each buyer.\n\n# Notes\n",
    "tables/index.md": "# Tables\n\n* [Orders](orders.md) - paid orders\n* [Buyers](buyers.md)\n",
    "metrics/revenue.md": (
        "---\ntype: Metric\ntitle: Revenue\nstatus: deprecated\ntimestamp: '2025-02-11T17:05:00+00:00'\n"
        "verified: { by: human:ida, at: 2026-06-25T09:00:00Z }\n---\nSums [orders](/tables/orders.md), and"
        " [something unwritten](/metrics/later.md).\n"
    ),
    "notes/plain.md": "# A plain note\n\nWithout front matter.\n",
    "notes/broken.md": "---\ntype: [unclosed\n---\n\nStill text.\n",
    "attesters/check.py": "print('never run')\n",
}


def test_concepts_become_pages_with_links_trust_and_all_their_keys(brain: Brain, tmp_path: Path) -> None:
    record = take(brain, "okf", fill(tmp_path / "bundle", BUNDLE))
    found = pages(brain)
    assert sorted(found) == [
        *("index", "log", "metrics/revenue", "notes/broken", "notes/plain"),
        *("tables/buyers", "tables/index", "tables/orders"),
    ]
    orders = found["tables/orders"]
    assert (orders["title"], orders["type"], orders["tags"]) == (
        *("Orders", "warehouse_table"),
        ["sales", "orders"],
    )
    assert orders["summary"] == "One row for each order that was paid."
    assert orders["created_at"] == "2025-05-28T14:30:00Z"
    front = orders["frontmatter"]
    assert front["x_vendor"] == {"shard": 7, "owner": ["a", "b"]}
    assert (front["status"], str(front["stale_after"])) == ("stable", "2027-01-31")
    assert front["sources"][0]["usage_count"] == 40
    assert ORDERS.partition("---\n\n")[2].strip() == orders["compiled_truth"].strip()
    assert found["tables/buyers"]["title"] == "buyers"
    assert found["notes/plain"]["title"] == "A plain note"
    assert found["metrics/revenue"]["created_at"] == "2025-02-11T17:05:00Z"
    assert {("Orders", "verified_by", "human:ida"), ("Orders", "verified_by", "process:nightly")} <= facts(
        brain
    )
    assert {("Orders", "generated_by", "lister/2.1"), ("Revenue", "verified_by", "human:ida")} <= facts(brain)
    assert ("Orders", "derived_from", "https://example.com/schema") in facts(brain)
    assert {(start, end) for start, _, end in links(brain)} >= {
        ("tables/orders", "tables/buyers"),
        ("tables/orders", "metrics/revenue"),
        ("metrics/revenue", "tables/orders"),
        ("log", "tables/orders"),
    }
    unread = reasons(record)
    assert unread["notes/plain.md"] == foreign_notes.OKF_NO_TYPE
    assert unread["notes/broken.md"].startswith("its front matter is not used: ")
    assert "attesters/check.py" in unread
    assert len(unread) == 3


def test_a_deprecated_concept_is_marked_in_answers(brain: Brain, tmp_path: Path) -> None:
    take(brain, "okf", fill(tmp_path / "bundle", BUNDLE))
    results = run(brain, "query", query="What is Revenue?")["results"]
    assert [result["status"] for result in results if result["slug"] == "metrics/revenue"] == ["superseded"]


def problems(root: Path) -> Iterator[str]:
    """Yield where a folder breaks the rules by which OKF 0.2 defines a conformant bundle (§11, §8, §9)."""
    for path in sorted(root.rglob("*.md")):
        name, text = str(path.relative_to(root)), path.read_text()
        block = re.match(r"---\n(.*?)\n---\n", text, re.S)
        if path.name not in ("index.md", "log.md"):
            front: Any = yaml.safe_load(block[1]) if block else None
            if not isinstance(front, dict) or not str(front.get("type") or "").strip():
                yield f"{name}: no front matter with a type"
            continue
        if block and (name != "index.md" or yaml.safe_load(block[1]) != {"okf_version": "0.2"}):
            yield f"{name}: front matter"
        body = text[block.end() :] if block else text
        if path.name == "index.md" and not re.search(r"^#+ ", body, re.M):
            yield f"{name}: no heading"
        for day in re.findall(r"^## (.*)", body, re.M) if path.name == "log.md" else ():
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
                yield f"{name}: {day!r} is not a date"
        for target in (
            re.findall(r"^\* \[[^\]]*\]\(([^)]+)\)", body, re.M)
            if foreign_notes.OKF_WRITTEN_LIST in body
            else ()
        ):
            if not (path.parent / target).exists():
                yield f"{name}: {target} does not exist"


def test_an_exported_memory_follows_the_rules_and_comes_back(
    filled: Brain, second: Brain, tmp_path: Path
) -> None:
    run(filled, "put", slug="projects/log", content="# Log of the yard\n\n## Monday\n\nRain.\n")
    run(filled, "put", slug="projects/log-page", content="# Another\n\nA page.\n")
    run(filled, "put", slug="bare/note", content="Just words, without a heading. See [[projects/log]].\n")
    run(
        filled,
        "put",
        slug="people/summed",
        content="---\nsummary: Short.\ndescription: Longer.\n---\n# Summed\n",
    )
    target = tmp_path / "out"
    report = export(filled, str(target), to="okf")
    assert list(problems(target)) == []
    assert report.pages == 8
    text = (target / "people" / "siri-lund.md").read_text()
    assert "Welds at [Nordkai AS](/twin.md)" in text or "Welds at [[Nordkai AS]]" in text
    assert "see [the yard](/companies/nordkai.md) and [[Nowhere]]" in text
    assert "x = '[[Nordkai AS]]'" in text
    assert "generated:" in text
    assert "human:owner" in text
    assert "[siri" not in (target / "index.md").read_text().casefold()
    assert "* [Siri Lund](siri-lund.md) - Welds at" in (target / "people" / "index.md").read_text()
    record = take(second, "okf", target)
    assert reasons(record) == {}
    before, after = snapshot(filled), snapshot(second)
    for found in (before, after):  # links were rewritten, see below
        for page in found.values():
            page["compiled_truth"] = plain(page["compiled_truth"])
            page["timeline"] = plain(page["timeline"])
    before["bare/note"]["frontmatter"] = {"title": before["bare/note"]["title"]}
    assert after == before
    assert raw(second) == raw(filled)
    assert fact_rows(second) == fact_rows(filled)
    assert links(second) == links(filled)
    again = tmp_path / "again"
    export(second, str(again), to="okf")
    for path in sorted(target.rglob("*.md")):
        first, next_ = ((root / path.relative_to(target)).read_text() for root in (target, again))
        assert undated(next_) == undated(first), path


def plain(text: str) -> str:
    """Return a text with both kinds of links as their label."""
    text = re.sub(r"\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]", r"\1", text)
    text = re.sub(r"\[([^\]\n]*)\]\(/[^)\n]*\)", r"\1", text)
    return text.replace("projects/log", "Log of the yard")


def undated(text: str) -> str:
    return re.sub(r" at: .*", " at", text)


def test_a_bundle_goes_out_as_it_came_in(brain: Brain, second: Brain, tmp_path: Path) -> None:
    conformant = {
        name: text for name, text in BUNDLE.items() if not name.startswith(("notes/", "attesters/"))
    }
    take(brain, "okf", fill(tmp_path / "bundle", conformant))
    target = tmp_path / "out"
    export(brain, str(target), to="okf")
    assert list(problems(target)) == []
    for name in ("index.md", "log.md", "tables/index.md"):
        assert (target / name).read_text().split() == conformant[name].split()
    written = (target / "tables" / "orders.md").read_text()
    given, front = (yaml.load(text.split("---\n")[1], yaml.BaseLoader) for text in (ORDERS, written))
    assert {key: front[key] for key in given} == given
    take(second, "okf", target)
    before, after = snapshot(brain), snapshot(second)
    for name in ("index", "log", "tables/index"):  # these files cannot have a time of creation
        assert before[name].pop("created_at")
        assert after[name].pop("created_at")
    assert after == before
    assert fact_rows(second) == fact_rows(brain)


def test_edits_in_a_bundle_are_imported(filled: Brain, second: Brain, tmp_path: Path) -> None:
    target = tmp_path / "out"
    export(filled, str(target), to="okf")
    path = target / "companies" / "nordkai.md"
    path.write_text(path.read_text().replace("title: Nordkai AS", "title: Nordkai ASA"))
    take(second, "okf", target)
    assert pages(second)["companies/nordkai"]["title"] == "Nordkai ASA"
    path.write_text(path.read_text().replace("Founded by", "Started by"))
    import_(second, str(target), from_="okf")
    assert "Started by" in pages(second)["companies/nordkai"]["compiled_truth"]


def test_pages_of_collections_keep_their_folder_types_and_names(
    brain: Brain, second: Brain, tmp_path: Path
) -> None:
    folder = fill(
        tmp_path / "notes", {"people/ada.md": "# Ada\n\nSee [[log]].\n", "log.md": "# Log\n\nText.\n"}
    )
    run(brain, "collection add", name="work", path=str(folder))
    run(brain, "put", slug="people/bo", content="# Bo\n\nKnows [[work::people/ada]].\n")
    export(brain, str(tmp_path / "out"), to="okf")
    assert list(problems(tmp_path / "out")) == []
    take(second, "okf", tmp_path / "out")
    found = pages(second)
    assert sorted(found) == ["people/bo", "work/log", "work/people/ada"]
    assert (found["work/people/ada"]["type"], found["work/log"]["title"]) == ("person", "Log")
    assert {(start, end) for start, _, end in links(second)} == {
        ("people/bo", "work/people/ada"),
        ("work/people/ada", "work/log"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "---\ntype: X\nverified: yes\nsources: [1, {resource: 5}, null]\ngenerated: now\n---\n\nText.\n",
        "---\ntype: X\nquaid_export: {added: 5, slug: ../../etc}\n---\n\nText.\n",
        "---\ntype: X\nquaid_export: {added: [type, [], title, generated], created: tomorrow}\n---\n\nText.\n",
        "---\ntype: X\nquaid_export: []\ntitle: [a]\ndescription: {b: c}\n---\n\nText.\n",
        "---\ntype:\n---\n",
    ],
)
def test_strange_values_cost_nothing_but_themselves(brain: Brain, tmp_path: Path, text: str) -> None:
    bundle = fill(tmp_path / "bundle", {"a/strange.md": text, "a/good.md": "---\ntype: X\n---\n\nGood.\n"})
    take(brain, "okf", bundle)
    assert "a/good" in pages(brain)
    assert [slug for slug in pages(brain) if slug.startswith((".", "etc"))] == []

"""An Obsidian folder as it is: aliases, tags in text, links of every kind, embeds, daily notes."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import TagInText
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

VAULT = {
    ".obsidian/app.json": "{}",
    ".trash/old.md": "# Thrown away\n",
    "_templates/daily.md": "# {{date}}\n",
    "People/Mira Dahlquist.md": (
        "---\naliases: [Mimi, 'M. Dahlquist']\ntags: [person]\n---\nRuns [[River AI|the company]]. #Founder\n"
    ),
    "Companies/River AI.md": "# River AI\n\n## History\n\nStarted by [[Mimi]]. ^origin\n",
    "Companies/Index.md": "---\naliases: Overview\n---\nAll companies.\n",
    "Notes/Index.md": "The notes.\n",
    "Notes/Plan.md": (
        "# Plan #not-this\n\n"
        "See [[River AI#History|how it began]], [[River AI#^origin]], ![[Mira Dahlquist]], ![[chart.png]] and\n"
        "[[Companies/Index]]; [[Index]] is the one beside it, [[Overview]] the other. [[Nobody yet]]\n"
        "[a path](../People/Mira%20Dahlquist.md), [a site](https://example.org/#frag), [here](#heading).\n\n"
        "#project/alpha and #Ünicode, (#aside), `#code`, C#, #123, #fff, #a1b2c3.\n\n"
        "```sh\n#comment\n```\n"
    ),
    "daily/2026-04-25.md": "- [ ] Call [[M. Dahlquist]] #todo\n",
    "daily/2026-04-24.md": "Rain.\n",
}


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


@pytest.fixture
def vault(brain: Brain, tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for name, text in VAULT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    run(brain, "collection add", name="vault", path=str(root))
    return root


def targets(brain: Brain, slug: str) -> set[str]:
    links = run(brain, "links", slug=slug)["links"]
    return {item["to_slug"] for item in links if item["resolved"] and item["from_slug"] == slug}


def test_settings_trash_and_templates_are_not_indexed(brain: Brain, vault: Path) -> None:
    slugs = {row[0] for row in brain.db.rows("SELECT slug FROM pages")}
    assert slugs == {
        "people/mira-dahlquist",
        "companies/river-ai",
        "companies/index",
        "notes/index",
        "notes/plan",
        "daily/2026-04-25",
        "daily/2026-04-24",
    }


def test_links_lead_by_path_then_by_name_then_by_alias(brain: Brain, vault: Path) -> None:
    assert targets(brain, "people/mira-dahlquist") == {"companies/river-ai"}
    assert targets(brain, "companies/river-ai") == {"people/mira-dahlquist"}
    assert targets(brain, "daily/2026-04-25") == {"people/mira-dahlquist"}
    assert targets(brain, "notes/plan") == {
        "companies/river-ai",
        "people/mira-dahlquist",
        "companies/index",
        "notes/index",
    }
    plan = run(brain, "links", slug="notes/plan")["links"]
    assert [item["to_slug"] for item in plan if not item["resolved"]] == ["Nobody yet"]


def test_tags_in_running_text_are_tags(brain: Brain, vault: Path) -> None:
    assert run(brain, "tags", slug="notes/plan")["tags"] == ["project/alpha", "ünicode", "aside"]
    assert run(brain, "tags", slug="people/mira-dahlquist")["tags"] == ["person", "founder"]
    assert [page["slug"] for page in run(brain, "list", tag="todo")["pages"]] == ["daily/2026-04-25"]
    assert run(brain, "validate")["violations"] == []


def test_a_tag_of_the_text_can_only_be_taken_out_there(brain: Brain, vault: Path) -> None:
    before = (vault / "People" / "Mira Dahlquist.md").read_bytes()
    with pytest.raises(TagInText, match="The text of vault::people/mira-dahlquist contains #founder"):
        run(brain, "tag", slug="people/mira-dahlquist", tag="founder", remove=True)
    assert (vault / "People" / "Mira Dahlquist.md").read_bytes() == before
    run(brain, "tag", slug="people/mira-dahlquist", tag="friend")
    after = (vault / "People" / "Mira Dahlquist.md").read_text()
    assert after.startswith("---\naliases: [Mimi, 'M. Dahlquist']\n")
    assert "founder" not in after  # the text's own tag stays in the text
    assert run(brain, "tags", slug="people/mira-dahlquist")["tags"] == ["person", "friend", "founder"]
    run(brain, "tag", slug="people/mira-dahlquist", tag="friend", remove=True)
    assert run(brain, "tags", slug="people/mira-dahlquist")["tags"] == ["person", "founder"]


def test_a_daily_note_is_found_by_its_day(brain: Brain, vault: Path) -> None:
    results = run(brain, "query", question="what was on 2026-04-25?")["results"]
    assert results[0]["slug"] == "daily/2026-04-25"


def test_a_name_that_is_given_twice_leads_nowhere_until_one_goes(brain: Brain, vault: Path) -> None:
    (vault / "top.md").write_text("[[Index]]")
    run(brain, "collection sync")
    assert targets(brain, "top") == set()
    (vault / "Companies" / "Index.md").unlink()
    run(brain, "collection sync")
    assert targets(brain, "top") == {"notes/index"}


def test_the_folder_is_as_it_was(brain: Brain, vault: Path) -> None:
    results = {str(path.relative_to(vault)): path.read_text() for path in vault.rglob("*") if path.is_file()}
    assert results == VAULT

"""What each skill has to hold: the parts that agents rely on, and templates that make the pages they promise."""

import json
import re
from typing import Any

import pytest
from tests.skills.test_skill_texts import read

from quaid.app import Brain
from quaid.formats import markdown
from quaid.model import dates, links
from quaid.model.page import PAGE_TYPES, Page, build_page
from quaid.operations import dispatch, index
from quaid.skills import effective_skills, text_of

SKILLS = (
    "alerts",
    "briefing",
    "curate",
    "enrich",
    "ingest",
    "maintain",
    "query",
    "research",
    "setup",
    "upgrade",
)

# Words that each skill must contain, matched without regard to case and line breaks.
REQUIRED = {
    "ingest": (
        *("evidence", "facts", "judgement", "meaning", "four tiers", "expected_version", "memory_ingest"),
        *("decided_by", "committed_to", "superseded", "reversed", "valid_from", "evidence_text"),
        *(
            "what the user says directly",
            "primary sources",
            "enrichment services",
            "web search",
            "social media",
        ),
        *("both** citations", "[Source: the user", "[Source: meeting", "[Source: email", "[Source: X/@"),
        *("status: idea", "originals/", "concepts/", "ideas/", "does nothing fit", "what gets a page"),
        *("a promise with an owner and a day", "in passing", "intention without owner"),
        *("what they believe", "what they are building", "hobby horses", "trajectory", "five times or more"),
        *("rewritten, never appended", "newest first", "Open Threads", "../people/", "memory_raw"),
    ),
    "query": (
        *("wing=", 'depth="auto"', "token_budget=", 'temporal="current"', '"historical"', "as_of="),
        *("history=true", "memory_check", "four ways", "strong", "weak", "none", "does not know"),
        *("memory_search", "memory_list", "memory_backlinks", "memory_graph", "[Mira Dahlquist](people/"),
    ),
    "maintain": (
        *("contradictions", "stale truth", "orphans", "missing cross-references", "dead links"),
        *(
            "relationships without an end",
            "open threads",
            "tags",
            "wings and rooms",
            "vectors and duplicates",
        ),
        *("30 days", "memory_check(all=true)", "memory_link_close", "quaid embed --stale", "memory_dupes"),
        *("sources/maintenance-YYYY-MM-DD", "succession", "lower case, hyphens"),
    ),
    "curate": (
        *("ai-kb curate --dry-run", "ai-kb merge", "ai-kb supersede", "ai-kb contest", "ai-kb delete"),
        *("duplicates", "contested", "superseded", "over-broad", "orphans", "untouched", "raw captures"),
        *("the person decides", "LAST_CURATED", "never edit `index*.org`", "ai-kb: Title (UUID)"),
    ),
    "enrich": (
        *("Crustdata", "Happenstance", "Exa", "Pitchbook", "Token", "surname", "20 connections"),
        *(
            "raw answer",
            "memory_raw",
            "every 20 pages",
            "429",
            "10 seconds",
            "5 minutes",
            "dry run",
            "enrichment",
        ),
    ),
    "briefing": (
        *("calendar", "active deals", "commitments due", "action items", "shift report", "open threads"),
        *("contradictions", "what changed", "people in play", "stale pages", "seven days", "score of 3"),
        *("sources/briefing-YYYY-MM-DD", "quaid briefing", "memory_briefing", "alerts-queue"),
    ),
    "alerts": (
        *("**now**", "**next briefing**", "**silent**", "24 hours", "15 %", "contradiction"),
        *("sources/alerts-queue-YYYY-MM-DD", "memory_timeline_add", "the reason", "quaid skills extract"),
    ),
    "research": (
        *("`internal`", "`redacted`", "`external`", "hard rule", "approver", "time of approval"),
        *("memory_gap_approve", "redacted_query=", "memory_gap_resolve", "word for word", "No network call"),
        *("seven days", "sources/research-YYYY-MM-DD", "how often it was asked", "three days", "Never make"),
    ),
    "setup": ("quaid init", "quaid serve", "mcpServers", "quaid import", "quaid backup", "quaid skills show"),
    "upgrade": (
        *("quaid version", "quaid backup", "quaid validate --all", "quaid stats", "quaid embed --stale"),
        *(
            "pipx install",
            "uv tool install",
            "pip install",
            "quaid-memory==",
            "hash",
            ".backup-v",
            "-wal",
            "-shm",
        ),
        *("stop every client", "going back", "quaid skills doctor", "quaid export", "quaid serve"),
    ),
}


def words_of(name: str) -> str:
    return " ".join(read(f"src/quaid/skills/{name}/SKILL.md").split()).casefold()


def test_ten_skills_are_valid() -> None:
    embedded = effective_skills(())
    assert tuple(item.name for item in embedded) == SKILLS
    for element in embedded:
        assert 60 < len(element.description) < 400, element.name
        assert element.description.endswith(".")
        assert text_of(element).count("\n# ") >= 1


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_names_its_required_parts(name: str) -> None:
    text = words_of(name)
    assert [item for item in REQUIRED[name] if " ".join(item.split()).casefold() not in text] == []


def test_all_skills_together_fit_into_30_kb() -> None:
    sizes = [len(read(f"src/quaid/skills/{name}/SKILL.md").encode()) for name in SKILLS]
    assert sum(sizes) <= 30 * 1024


@pytest.mark.parametrize("name", [name for name in SKILLS if name not in ("setup", "upgrade")])
def test_a_skill_for_agents_calls_tools(name: str) -> None:
    text = read(f"src/quaid/skills/{name}/SKILL.md")
    named = set(re.findall(r"\b(?:memory|kb)_[a-z_]+\b", text)) - {"memory_ingest_meeting"}
    assert len(named) >= 3
    assert named <= set(index.TOOLS)


@pytest.mark.parametrize("name", SKILLS)
def test_every_call_in_a_skill_has_arguments_that_its_tool_takes(name: str) -> None:
    text = read(f"src/quaid/skills/{name}/SKILL.md")
    for tool, arguments in re.findall(r"`(\w+)\((.*?)\)`", text, re.S):
        operation = dispatch.find_tool(tool)
        params = {param.name for param in operation.params}
        given = re.findall(r"(?:^|, )\s*(\w+)=", re.sub(r'"[^"]*"', '""', " ".join(arguments.split())))
        assert given, (tool, arguments)
        assert set(given) <= params, (tool, set(given) - params)
        required = {param.name for param in operation.params if param.required}
        assert required <= set(given), (tool, required - set(given))


@pytest.mark.parametrize("name", SKILLS)
def test_every_other_skill_that_is_pointed_to_exists(name: str) -> None:
    pointed = re.findall(r"quaid skills show (\w+)", read(f"src/quaid/skills/{name}/SKILL.md"))
    assert set(pointed) <= set(SKILLS)


def test_setup_names_all_the_others() -> None:
    text = read("src/quaid/skills/setup/SKILL.md")
    assert set(SKILLS) - {"setup"} <= set(re.findall(r"^\| `(\w+)` \|", text, re.M))


# Templates


def templates() -> dict[str, tuple[str, str]]:
    """Of each type: its slug, and the page that the form and its row of the table make."""
    text = read("src/quaid/skills/ingest/SKILL.md")
    text = text[text.index("\n# Templates\n") :]
    form = re.search(r"^```markdown\n(---\n.*?)^```", text, re.M | re.S)
    assert form
    return {
        name: (slug, form[1].replace("TYPE", name).replace("KEYS", keys.replace("; ", "\n")))
        for name, slug, keys in re.findall(r"^\| (\w+) \| `([^`]+)` \| `([^`]+)` \|", text, re.M)
    }


def page_of(name: str) -> Page:
    slug, text = templates()[name]
    document = markdown.parse(text)
    assert document.problem is None
    return build_page(slug, document.frontmatter, document.truth, document.timeline)


def test_there_is_a_template_for_every_type() -> None:
    assert set(templates()) == set(PAGE_TYPES)


@pytest.mark.parametrize("name", PAGE_TYPES)
def test_a_template_makes_a_page_of_its_type_with_summary_and_evidence(name: str) -> None:
    page = page_of(name)
    assert page.type == name
    assert page.frontmatter["type"] == name
    assert build_page(page.slug, {}, page.truth, page.timeline).type == name, "its folder says another type"
    assert page.wing == PAGE_TYPES[name]
    assert page.title
    assert page.summary.endswith(".")
    assert [entry.date for entry in page.entries] == ["2026-04-25"]
    assert page.entries[0].summary


@pytest.mark.parametrize("name", PAGE_TYPES)
def test_the_days_in_a_template_are_days(name: str) -> None:
    keys = ("date", "due", "made_at", "revisit_at", "expected_close", "valid_from", "published", "retrieved")
    front = page_of(name).frontmatter
    assert all(dates.is_date(front[key]) for key in keys if key in front)


CONVENTIONS = {
    "person": {"title", "roles", "affiliations", "contact", "linkedin", "twitter", "score", "tags"},
    "company": {"title", "domain", "hq", "stage", "headcount", "funding", "linkedin"},
    "deal": {"title", "status", "expected_close", "value", "parties"},
    "decision": {"title", "made_at", "owner", "revisit_at", "status", "stakeholders"},
    "commitment": {"title", "made_at", "owner", "revisit_at", "due", "status"},
    "action_item": {"title", "owner", "due", "status", "priority"},
    "journal": {"title", "date"},
    "original": {"title", "origin", "confidence"},
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_template_carries_the_front_matter_of_its_type(name: str) -> None:
    assert set(page_of(name).frontmatter) >= CONVENTIONS[name]


@pytest.mark.parametrize("name", PAGE_TYPES)
def test_a_template_is_taken_as_it_is(brain: Brain, name: str) -> None:
    slug, text = templates()[name]
    record = dispatch.call(brain, dispatch.find_tool("memory_put"), {"slug": slug, "content": text}, "write")
    assert (record.type, record.created) == (name, True)


def test_an_idea_is_filed_as_a_project() -> None:
    assert build_page("ideas/kelp-lamp", {"status": "idea"}, "# Kelp lamp\n", "").type == "project"


@pytest.mark.parametrize("name", ["maintain", "research"])
def test_the_reports_are_pages_of_the_type_source(name: str) -> None:
    block = re.search(r"^```markdown\n(---\n.*?)^```", read(f"src/quaid/skills/{name}/SKILL.md"), re.M | re.S)
    assert block
    document = markdown.parse(block[1])
    page = build_page(f"sources/{name}-2026-04-25", document.frontmatter, document.truth, document.timeline)
    assert (page.type, len(page.entries)) == ("source", 1)
    assert page.summary


def test_the_example_of_an_ingest_is_taken_as_it_is(brain: Brain) -> None:
    block = re.search(r"^```json\n(.*?)^```", read("src/quaid/skills/ingest/SKILL.md"), re.M | re.S)
    assert block
    for number in range(3):
        mira = {"slug": "people/mira-dahlquist", "content": f"# Mira {number}\n", "expected_version": number}
        dispatch.call(brain, dispatch.find_tool("memory_put"), mira, "write")
    payload: dict[str, Any] = json.loads(block[1])
    record = dispatch.call(brain, dispatch.find_tool("memory_ingest"), payload, "write")
    assert [(page.outcome, page.timeline_entries) for page in record.pages] == [
        ("created", 0),
        ("updated", 1),
    ]
    again = dispatch.call(brain, dispatch.find_tool("memory_ingest"), payload, "write")
    assert not again.written


def test_links_in_templates_name_pages_as_the_product_reads_them() -> None:
    named = {reference.target for name in PAGE_TYPES for reference in links.find_references(page_of(name))}
    assert named == {"people/first-last"}

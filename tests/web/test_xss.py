"""300 texts that want to act, in every field that a page can show: nothing acts."""

import html
import os
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.web.active_content import active_nodes
from tests.web.dashboard import Visitor, called, settings_in, visiting
from tests.web.payloads import ACTS, COUNT, payloads

from quaid.app import Brain, new_calls
from quaid.config import Settings
from quaid.model.page import build_page
from quaid.operations import dispatch, maintenance
from quaid.storage import page_edits
from quaid.web.pages import markdown, page as page_views
from quaid.web.pages.markdown import make_snippet

EVERY = payloads()
AT_ONCE = 25
"""Payloads of one page: each page has as many of every kind of field."""


def batches() -> Iterator[tuple[int, list[str]]]:
    for place in range(0, len(EVERY), AT_ONCE):
        yield place // AT_ONCE, EVERY[place : place + AT_ONCE]


def line(text: str) -> str:
    return " ".join(text.split())


def poisoned(brain: Brain, number: int, given: list[str], folder: str) -> None:
    """A page, a file and a gap in which every field holds such texts."""
    first = given[0]
    fields = {f"key {place} {line(item)[:40]}": item for place, item in enumerate(given)}
    front = {
        "title": line(first),
        "tags": [line(item) for item in given],
        "aliases": given,
        "due": "2026-06-01",
    }
    front |= {"status": line(given[1]), "owner": line(given[2]), "date": "2026-04-01", **fields}
    truth = f"# {line(first)}\n\n> {line(given[3])}\n\n" + "\n\n".join(given)
    entries = "\n".join(
        f"- **2026-04-{place % 28 + 1:02}** | {output} — {output}\n  {output}"
        for place, output in enumerate(map(line, given))
    )
    slug = f"commitments/page-{number}"
    page = build_page(slug, front, truth, f"{entries}\n\n{given[4]}\n")
    page = page._replace(type="commitment", title=first, summary=given[3])
    brain.db.write(
        lambda tx: page_edits.save(tx, page, uuid=brain.new_uuid(), now=brain.now(), expected_version=0)
    )
    for place, element in enumerate(given):
        called(brain, "link", from_=slug, to="people/ada", relationship=f"x{place}", context=element)
        called(
            *(brain, "assert"),
            slug=slug,
            predicate=f"says {place}",
            object=line(element),
            subject=line(element),
            source_ref=line(element),
            evidence_text=element,
            valid_from="2026-04-01",
        )
    called(brain, "gaps add", query_text=f"question {number}", context=line(given[5])[:200])
    gap = called(brain, "gaps", limit=1000).gaps
    made = next(item for item in gap if item.approved_at is None)
    called(
        *(brain, "gaps approve"),
        gap_id=made.id,
        query_text=f"question {number}",
        sensitivity="redacted",
        approver=given[6],
        redacted_query=given[7],
    )
    with open(os.path.join(folder, "notebook", "lists", f"file-{number}.md"), "w", encoding="utf-8") as file:
        file.write("\n\n".join(given))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = str(tmp_path_factory.mktemp("poisoned"))
    made = settings_in(folder)
    with Brain(made) as brain:
        brain.create(made.db_path)
        called(brain, "put", slug="people/ada", content="# Ada\n")
        called(brain, "notebook init")
        for number, inputs in batches():
            poisoned(brain, number, inputs, folder)
        called(brain, "collection sync")
        for place, item in enumerate(EVERY[:40]):
            fact = {
                "predicate": "lives_in",
                "valid_from": "2026-04-01",
                "evidence": item,
                "source": f"s{place}",
            }
            called(brain, "assert", slug="people/ada", object=line(item), **fact)
        called(brain, "check")
        # A collection's name is checked when it is made; what stands in the table is shown all the same.
        for item in EVERY[:40]:
            values = (item, f"/nowhere/{item}", item, brain.now())
            brain.db.write(
                lambda tx, values=values: tx.execute(  # type: ignore[misc]
                    "INSERT INTO collections (name, root_path, reconcile_halt_reason, created_at, updated_at)"
                    " VALUES (?1, ?2, ?3, ?4, ?4)",
                    values,
                )
            )
        poison_agents(brain)
    return made


def poison_agents(brain: Brain) -> None:
    """Calls of agents, conversations and nodes whose names and texts are such texts."""
    brain.calls = new_calls()
    for place, item in enumerate(EVERY[::5]):
        brain.agent, brain.session = line(item), line(item)
        called(
            brain,
            "put",
            slug=f"agents/page-{place}",
            content=f"# {line(item)}\n\n- [ ] {line(item)} by today\n",
        )
        called(brain, "get", slug=f"agents/page-{place}")
        maintenance.inject_turn(brain, f"{place}", "user", item)
    dispatch.store_calls(brain)
    brain.agent = brain.session = ""
    brain.calls = None
    called(brain, "kb init")
    for place, item in enumerate(EVERY[::25]):
        called(
            *(brain, "kb remember"),
            title=f"{place} {line(item)}",
            summary=f"{place} {line(item)}",
            content=f"{place} {item}",
            tags=["x"],
            force=True,
        )


@pytest.fixture(scope="module")
def visitor(settings: Settings) -> Iterator[Visitor]:
    with visiting(settings) as client:
        yield client


def test_checker_detects_all_300_payloads() -> None:
    assert len(set(EVERY)) == COUNT
    seen = [
        item for item in EVERY if active_nodes(f"<div>{item}</div>") or active_nodes(f'<a title="{item}">')
    ]
    assert len(seen) > COUNT * 0.6, "as raw HTML most of them act; the others are markdown or templates"
    assert active_nodes("<a href='java\tscript:x'>") == ["a href=java\tscript:x"]
    assert active_nodes("<p id=a class=b>fine</p><a href='/x'>y</a>") == []


@pytest.mark.parametrize("place", range(0, COUNT, AT_ONCE))
def test_payload_in_a_text_is_inert(place: int) -> None:
    for text in EVERY[place : place + AT_ONCE]:
        for shown in (
            markdown.render_markdown(text),
            markdown.render_markdown(f"- {text}\n> {text}\n\n{text}"),
            markdown.render_line(text),
            markdown.render_org(f"* {line(text)}\n{text}\n"),
            make_snippet(text, text),
        ):
            assert active_nodes(shown) == [], text
        preview = page_views.page_preview(
            "people/ada", f"---\ntitle: {line(text)!r}\n---\n# {text}\n\n---\n- **2026-01-01** | {text}"
        )
        assert active_nodes(str(preview["truth"]) + str(preview["summary"])) == [], text


@pytest.mark.parametrize("number", range(COUNT // AT_ONCE))
def test_payload_in_any_field_of_a_page_is_inert(visitor: Visitor, number: int) -> None:
    for path in (f"/page/commitments/page-{number}", f"/page/commitments/page-{number}/edit"):
        answer = visitor.get(path)
        assert answer.status_code == 200
        assert active_nodes(answer.text) == []
        assert any(act in html.unescape(answer.text) for act in ACTS), "it is shown, as text"
    answer = visitor.get(f"/notebook/lists/file-{number}.md")
    assert answer.status_code == 200
    assert active_nodes(answer.text) == []
    assert active_nodes(visitor.get(f"/notebook/lists/file-{number}.md?edit=1").text) == []


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/notebook", "/graph", "/graph?slug=people/ada", "/graph?wing=commitments", "/review"),
        *("/review?tab=gaps", "/review?tab=duplicates", "/settings", "/page/people/ada"),
        *(f"/timeline?offset={offset}" for offset in range(0, 1_600, 80)),
    ],
)
def test_payload_in_lists_is_inert(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 200
    assert active_nodes(answer.text) == []


def test_payload_in_calls_conversations_and_nodes_is_inert(visitor: Visitor) -> None:
    """Also in what the pages link to, in the panel of the graph, and in links that are offered."""
    seen = 0
    for start in (
        "/agents?limit=500",
        "/conversations?q=alert",
        "/conversations",
        "/kb",
        "/search?q=alert",
        "/",
    ):
        answer = visitor.get(start)
        assert answer.status_code == 200
        assert active_nodes(answer.text) == [], start
        assert any(act in html.unescape(answer.text) for act in ACTS), start
        links = re.findall(
            r'href="(/(?:agents|conversations|kb|page/agents|page/commitments)[/?][^"]*)"', answer.text
        )
        for link in sorted(set(links))[:40]:
            assert active_nodes(visitor.get(html.unescape(link)).text) == [], link
            seen += 1
        for node in [link for link in links if link.startswith("/kb/")][:5]:
            assert active_nodes(visitor.get(f"{node}/edit").text) == [], node
    assert seen > 60
    for number in range(5):
        panel = visitor.get(f"/ui/graph/page?slug=commitments/page-{number}")
        assert active_nodes(panel.text) == []
    for path in ("/ui/graph", "/ui/links?q=alert", "/ui/links/kb?q=alert"):
        assert visitor.get(path).headers["content-type"] == "application/json"


@pytest.mark.parametrize("place", range(5))
def test_payload_in_a_url_is_inert(visitor: Visitor, place: int) -> None:
    """In a question, a filter or a slug: every third payload, which is of every kind."""
    for item in EVERY[::3][place::5]:
        text = quote(item, safe="")
        for path in (
            f"/search?q={text}&type={text}&wing={text}&collection={text}&since={text}",
            f"/ui/search?q={text}",
            f"/page/{text}",
            f"/timeline?text={text}&kind={text}&wing={text}",
        ):
            answer = visitor.get(path)
            assert answer.status_code < 500, path
            assert active_nodes(answer.text) == [], path


@pytest.mark.parametrize("each", EVERY[::10])
def test_payload_in_a_returned_form_is_inert(visitor: Visitor, each: str) -> None:
    text = quote(each, safe="")
    for path in (
        f"/new?slug={text}",
        f"/graph?slug={text}",
        f"/graph?wing={text}",
        f"/notebook/{text}",
        f"/kb/{text}",
        f"/kb?q={text}&tag={text}&project={text}",
        f"/agents?client={text}&session={text}&day={text}",
        f"/conversations?q={text}&client={text}",
        f"/conversations/{text}",
        f"/settings/folders?under={text}&for={text}",
        f"/settings/client/{text}",
        f"/settings/collection/{text}",
        f"/attachment/{text}?page={text}",
        f"/share?title={text}&text={text}&url={text}",
        f"/login?next=/{text}",
        f"/login?code={text}",
    ):
        answer = visitor.get(path)
        assert answer.status_code < 500, path
        assert active_nodes(answer.text) == [], path
    for answer in (
        visitor.post("/page/people/ada/edit", text=each, version=1),
        visitor.post("/notebook", path=each),
        visitor.post("/review/quarantine", page=each, act="restore"),
        visitor.post("/settings/embeddings", name=each),
        visitor.post("/review/merge", slug=each, other=each, into=each),
        visitor.post("/jot", text=each),
        visitor.post("/new/node", title=each, summary=each, text=each, tags=each),
        visitor.post("/settings/folders", path=each, name=each, under=each),
        visitor.post("/settings/agents", kind="client", name=each, mode=each),
        visitor.post("/settings/token/new", name=each, expires=each, scope=each),
        visitor.post("/settings/clipper", name=each, scope="write"),
        visitor.post("/share", title=each, text=each, url=each),
        visitor.post("/agents/decide", act=each, back=each),
        visitor.post("/graph/link", **{"from": each, "to": each, "wing": each}),
        visitor.post("/today/tick", slug="people/ada", text=each),
        visitor.post("/welcome", act="folder", path=each),
        visitor.get("/"),  # with the message of the last form
    ):
        assert answer.status_code < 500
        assert active_nodes(answer.text) == []

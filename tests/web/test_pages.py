"""Every page of the dashboard over a lifelike memory, asked through the whole app, without scripts."""

import os
import posixpath
import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser

import pytest
from delivery import icons
from tests.web.active_content import active_nodes
from tests.web.dashboard import Visitor, call, lifelike, visiting

from quaid.config import Settings
from quaid.web.pages import base

FIRST_LOAD = 150 * 1024
ALL_FILES = 80 * 1024  # compressed, as browsers receive them


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A memory that tests only read."""
    return lifelike(str(tmp_path_factory.mktemp("known")))


@pytest.fixture(scope="module")
def reader(known: Settings) -> Iterator[Visitor]:
    with visiting(known) as client:
        yield client


PATHS = {
    "/": "Since you last looked",
    "/search": "Search the notebook, daily log, pages and knowledge base",
    "/search?q=tidal+battery": "Tidal <mark>battery</mark>",
    "/search?q=battery&type=company&wing=companies&since=2020-01-01": "Brineloop",
    "/page/people/mira-dahlquist": "Open threads",
    "/page/concepts/patience?diff=1": "The first thought.",
    "/page/people/mira-dahlquist/edit": "founder_of",
    "/new": "people/alice",
    "/new?slug=people/somebody-new": "Somebody new",
    "/notebook": "contacts.md",
    "/notebook/reference/contacts.md": "Sarah Chen",
    "/notebook/lists/todos.md?edit=1": "- [x] Order the second press",
    "/graph": "Most linked pages",
    "/graph?slug=companies/brineloop": "Around Brineloop",
    "/graph?wing=people": "Group people",
    "/timeline": "15 June 2026",
    "/timeline?kind=fact&wing=people": "lives in Oslo",
    "/review": "lives in Oslo, or lives in Malmö?",
    "/review?tab=gaps": "asked in the weekly call",
    "/review?tab=quarantine": "The lost note",
    "/review?tab=duplicates": "Salt beard",
    "/settings": "Rebuild index",
    "/settings/collection/notes": "Files with problems",
}


@pytest.mark.parametrize("path", PATHS)
def test_every_page_can_be_read_without_scripts(reader: Visitor, path: str) -> None:
    answer = reader.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert PATHS[path] in answer.text.replace("<mark>Tidal</mark>", "Tidal")
    assert active_nodes(answer.text) == []
    assert "<h1" in answer.text
    assert not re.search(r"\bNone\b(?!\.)", re.sub(r"<[^>]*>", " ", answer.text))


def test_the_first_load_is_small(reader: Visitor) -> None:
    page = reader.get("/").text
    wanted = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(wanted) >= 4
    size = len(page) + sum(len(reader.get(address).content) for address in wanted)
    assert size < FIRST_LOAD
    assert sum(len(asset.packed) for asset in base.static_assets().values()) < ALL_FILES


def test_nothing_is_loaded_from_other_servers() -> None:
    for name, asset in base.static_assets().items():
        text = asset.data.decode(errors="replace").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, name
        assert "https://" not in text, name
        assert "@import" not in text, name


def test_static_files_are_cached_and_names_cannot_be_paths(reader: Visitor) -> None:
    answer = reader.get(base.asset_url("app.css"))
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    again = reader.get("/static/app.css", **{"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    for name in ("..%2fapp.py", "app.py", "%2e%2e", "app.css%00"):
        assert reader.get(f"/static/{name}").status_code == 404


def test_search_is_grouped_and_jumps_to_the_line(reader: Visitor) -> None:
    text = reader.get("/search?q=harbour").text
    assert text.index(">Pages <") < text.index(">Notebook <") < text.index(">Daily <"), "a title has the word"
    text = reader.get("/search?q=sarah+phone").text
    assert 'href="/notebook/reference/contacts.md?at=L1#L1"' in text
    assert re.search(r'class="grade \w+">\w+</span>', text)
    result = reader.get("/notebook/reference/contacts.md?at=L4#L4").text
    assert re.search(r'id="L4" class="here"', result)


def test_the_results_alone_are_the_same_as_within_the_page(reader: Visitor) -> None:
    alone = reader.get("/ui/search?q=tidal+battery").text
    assert "<html" not in alone
    assert alone.count("data-item") == reader.get("/search?q=tidal+battery").text.count("data-item")


def test_submitted_search_records_a_gap_and_typing_does_not(visitor: Visitor, mine: Settings) -> None:
    before = call(mine, "gaps").total
    visitor.get("/ui/search?q=zeppelin+timetab")
    assert call(mine, "gaps").total == before
    visitor.get("/search?q=zeppelin+timetable")
    assert call(mine, "gaps").total == before + 1


def test_a_page_shows_links_with_their_time_facts_with_their_source_and_versions(reader: Visitor) -> None:
    text = reader.get("/page/people/teo-varland").text
    assert "2024-02-01 – now" in text
    assert "2019-01-01 – 2024-01-31" in text
    mira = reader.get("/page/people/mira-dahlquist").text
    assert "She says that she lives in Oslo now." in mira
    assert ">Brineloop</a>" in mira
    versions = reader.get("/page/concepts/patience").text
    assert versions.count('action="/ui/revert"') == 2


def test_an_old_address_leads_to_the_page(visitor: Visitor, mine: Settings) -> None:
    call(mine, "rename", slug="concepts/patience", new_slug="concepts/waiting")
    answer = visitor.get("/page/concepts/patience")
    assert (answer.status_code, answer.headers["location"]) == (303, "/page/concepts/waiting")


def test_missing_page_offers_to_create_it(reader: Visitor) -> None:
    answer = reader.get("/page/people/nobody-here")
    assert answer.status_code == 404
    assert 'href="/new?slug=people%2Fnobody-here"' in answer.text


def test_saving_writes_and_names_the_version(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    text = "# Patience\r\n\r\n> About waiting.\r\n\r\nA fourth thought.\r\n"
    answer = visitor.post("/page/concepts/patience/edit", text=text, version=page.version)
    assert (answer.status_code, answer.headers["location"]) == (303, "/page/concepts/patience")
    assert call(mine, "get", slug="concepts/patience").compiled_truth.endswith("A fourth thought.")
    assert "Saved." in visitor.get(answer.headers["location"]).text


def test_a_conflict_shows_both_texts_and_writes_nothing(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    call(mine, "put", slug="concepts/patience", content="# Patience\n\nTheirs <b>first</b>.\n")
    answer = visitor.post("/page/concepts/patience/edit", text="# Patience\n\nMine.\n", version=page.version)
    assert answer.status_code == 409
    assert "Mine." in answer.text
    assert "Theirs &lt;b&gt;first&lt;/b&gt;." in answer.text
    assert f'name="version" value="{page.version + 1}"' in answer.text
    assert 'class="removed"' in answer.text
    assert call(mine, "get", slug="concepts/patience").compiled_truth.startswith("# Patience\n\nTheirs")
    merged = visitor.post(
        "/page/concepts/patience/edit", text="# Patience\n\nTheirs first. Mine.\n", version=page.version + 1
    )
    assert merged.status_code == 303


def test_a_text_that_is_refused_is_not_lost(visitor: Visitor) -> None:
    answer = visitor.post("/page/concepts/patience/edit", text="---\ntags: [a\n---\nText.\n", version=3)
    assert answer.status_code in (400, 409)
    assert "tags: [a" in answer.text


def test_a_new_page_is_made_once(visitor: Visitor, mine: Settings) -> None:
    assert visitor.post("/page/people/newcomer/edit", text="# Newcomer\n", version=0).status_code == 303
    again = visitor.post("/page/people/newcomer/edit", text="# Other\n", version=0)
    assert again.status_code == 409
    assert call(mine, "get", slug="people/newcomer").title == "Newcomer"


def test_a_page_whose_name_ends_in_edit_can_be_read(visitor: Visitor, mine: Settings) -> None:
    call(mine, "put", slug="how-to/edit", content="# How to edit\n\nWith care.\n")
    assert "With care." in visitor.get("/page/how-to/edit").text
    call(mine, "put", slug="how-to", content="# How to\n")
    assert "<textarea" in visitor.get("/page/how-to/edit").text
    assert "With care." in visitor.get("/page/how-to/edit?view=1").text


def test_preview_equals_the_saved_page(visitor: Visitor) -> None:
    answer = visitor.post(
        "/ui/preview",
        slug="people/mira-dahlquist",
        text="# Mira\n\nKnows [[companies/brineloop]]. <script>x</script>\n\n---\n\n- **2026-01-01** — Began.\n",
    )
    assert answer.status_code == 200
    assert 'href="/page/companies/brineloop"' in answer.text
    assert "1 January 2026" in answer.text
    assert active_nodes(answer.text) == []


def test_reverting_brings_the_earlier_text_back(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    answer = visitor.post("/ui/revert", slug="concepts/patience", to=1, version=page.version)
    assert answer.status_code == 303
    assert "The first thought." in call(mine, "get", slug="concepts/patience").compiled_truth
    stale = visitor.post("/ui/revert", slug="concepts/patience", to=1, version=page.version)
    assert stale.status_code == 409


def test_a_file_of_the_notebook_is_edited_against_its_version(visitor: Visitor, mine: Settings) -> None:
    path = "lists/shopping.md"
    read = call(mine, "notebook read", path=path)
    text = read.text + "- Lemons\n"
    assert visitor.post(f"/notebook/{path}", text=text, version=read.version).status_code == 303
    assert call(mine, "notebook read", path=path).text == text
    late = visitor.post(f"/notebook/{path}", text="mine\n", version=read.version)
    assert late.status_code == 409
    assert "- Lemons" in late.text
    assert ">\nmine\n</textarea>" in late.text
    assert call(mine, "notebook read", path=path).text == text


def test_a_new_file_is_made_and_a_path_that_leads_out_is_refused(visitor: Visitor, mine: Settings) -> None:
    answer = visitor.post("/notebook", path="lists/books")
    assert answer.headers["location"] == "/notebook/lists/books.md?edit=1"
    assert call(mine, "notebook read", path="lists/books.md").text == "## Books\n"
    for path in ("../outside", "/etc/passwd", "lists/../../x", ".git/config"):
        assert visitor.post("/notebook", path=path).status_code >= 400
    assert visitor.get("/notebook/..%2fmemory.db").status_code >= 400


def test_the_graph_for_scripts_has_every_link_of_any_time(reader: Visitor) -> None:
    output = reader.get("/ui/graph?slug=people/teo-varland&depth=1").json()
    assert (output["slugs"][0], output["titles"][0]) == ("people/teo-varland", "Teo Varland")
    assert output["styles"]["type"][output["type"][0]][0] == "person"
    flat = output["links"]
    spans = {
        (output["slugs"][b], output["relationships"][name], since, until)
        for _, b, name, _, until, since in (flat[at : at + 6] for at in range(0, len(flat), 6))
    }
    days = date(2019, 1, 1).toordinal(), date(2024, 1, 31).toordinal()
    assert ("companies/fjellmyr-energilag", "worked_at", *days) in spans
    assert reader.get("/ui/graph?wing=people").json()["centre"] == -1
    assert reader.get("/ui/graph?slug=people/nobody-here").status_code == 404


def test_timeline_pages_continue(visitor: Visitor, mine: Settings) -> None:
    lines = "\n".join(
        f"- **2020-{month:02}-{day:02}** — Day {day}." for month in range(1, 5) for day in range(1, 28)
    )
    call(mine, "put", slug="people/diarist", content=f"# Diarist\n\n---\n\n{lines}\n")
    first = visitor.get("/timeline?wing=people").text
    older = re.search(r'href="([^"]+)" rel="next"', first)
    assert older is not None
    assert "wing=people" in older[1]
    assert "2020-01-01" in visitor.get(older[1].replace("&amp;", "&")).text


def test_quarantined_pages_are_restored_exported_and_discarded(visitor: Visitor, mine: Settings) -> None:
    lost = "notes::lost"
    folder = os.path.join(mine.cwd, "rescued")
    assert visitor.post("/review/quarantine", page=lost, act="export", folder=folder).status_code == 303
    assert os.listdir(folder)
    assert visitor.post("/review/quarantine", page=lost, act="discard").status_code == 400
    assert visitor.post("/review/quarantine", page=lost, act="restore").status_code == 303
    assert os.path.exists(os.path.join(mine.cwd, "notes", "lost.md"))
    os.unlink(os.path.join(mine.cwd, "notes", "lost.md"))
    assert visitor.post("/settings/sync", name="notes").status_code == 303
    assert visitor.post("/review/quarantine", page=lost, act="discard", sure="yes").status_code == 303
    assert call(mine, "collection quarantine list").value == ()


def test_duplicates_are_merged_after_a_look_at_what_would_happen(visitor: Visitor, mine: Settings) -> None:
    pair = {"slug": "concepts/salt-creep", "other": "concepts/salt-beard", "into": "concepts/salt-creep"}
    plan = visitor.post("/review/merge", **pair)
    assert "Merging concepts/salt-beard into concepts/salt-creep" in plan.text
    assert call(mine, "get", slug="concepts/salt-beard").slug == "concepts/salt-beard"
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', plan.text))
    assert visitor.post("/review/merge", **{**fields, "expected_version": 99}).status_code == 409
    assert visitor.post("/review/merge", **fields).status_code == 303
    assert call(mine, "get", slug="concepts/salt-beard").slug == "concepts/salt-creep"


def test_the_model_is_switched_off_and_a_folder_synced(visitor: Visitor, mine: Settings) -> None:
    assert visitor.post("/settings/embeddings", name="off").status_code == 303
    assert call(mine, "embeddings status").on is False
    assert "words only" in visitor.get("/settings").text
    assert visitor.post("/settings/embeddings", name="no-such-model").status_code >= 400
    assert visitor.post("/settings/rebuild").headers["location"] == "/settings"
    assert visitor.get("/search?q=tidal+battery").status_code == 200


def test_url_cannot_inject_a_message(reader: Visitor) -> None:
    assert "Send your password" not in reader.get("/?done=Send your password").text
    assert '<p class="flash' not in reader.get("/?done=saved").text


def test_every_page_of_an_empty_memory(tmp_path: object) -> None:
    from tests.web.dashboard import settings_in

    from quaid.app import Brain

    settings = settings_in(str(tmp_path))
    with Brain(settings) as brain:
        brain.create(settings.db_path)
    with visiting(settings) as visitor:
        for path in ("/", "/search?q=x", "/notebook", "/graph", "/timeline", "/review", "/settings"):
            assert visitor.get(path).status_code == 200, path
        assert "There is no notebook yet" in visitor.get("/notebook").text
        assert 'href="/kb">Start a knowledge base' in visitor.get("/settings").text
        visitor.post("/settings/folders", **{"for": "notebook"})
        assert "There is no notebook yet" not in visitor.get("/notebook").text
        assert "Write the first one" in visitor.get("/").text


def test_manifest_and_its_files_are_public(visitor: Visitor) -> None:
    page = visitor.get("/").text
    link = re.search(r'rel="manifest" href="([^"]+)"', page)
    assert link is not None
    manifest = visitor.get(link[1]).json()
    assert manifest["start_url"] == "/"
    for icon in manifest["icons"]:
        answer = visitor.get(icon["src"])
        assert answer.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width = int.from_bytes(answer.content[16:20])
            assert icon["sizes"] == f"{width}x{width}"
            assert answer.content == icons.draw(*icons.ICONS[posixpath.basename(icon["src"])])
    for shortcut in manifest["shortcuts"]:
        assert visitor.get(shortcut["url"]).status_code == 200


class ShownText(HTMLParser):
    """The text of a page, without code, text areas and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [
            value for name, value in attrs if value and name in ("aria-label", "placeholder", "title")
        ]
        if tag in ("code", "pre", "textarea", "script", "style"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            self._open.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.texts.append(data)


OUR_WORDS = re.compile(
    r"`|\b(?:wings?|slugs?|chunks?|lanes?|embedded|embeddings?|vectors?|unworded|hash|truth)\b", re.I
)
"""Marks and words of the source code that pages do not show. The sample memory does not contain them."""


def test_pages_show_no_backticks_and_no_words_of_the_source(reader: Visitor) -> None:
    sections = [link for link, _, _ in base.NAVIGATION]
    more = [
        *(
            "/welcome",
            "/offline",
            "/nowhere",
            "/page/no/such",
            "/login",
            "/search?q=nothing+like+this",
            "/phone",
        ),
        *("/conversations", "/settings/folders", "/review?tab=proposals", "/review?tab=conflicts"),
    ]
    for path in {*PATHS, *sections, *more}:
        for text in ShownText(reader.get(path).text).texts:
            assert not OUR_WORDS.search(text), (path, text.strip())

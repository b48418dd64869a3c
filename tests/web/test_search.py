"""What is found where: names before texts, answers before what comes near, a gap only where nobody answers."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.web.dashboard import Visitor, call, lifelike, visiting

from quaid.config import Settings
from quaid.web.pages.search import ResultView, sort_groups


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder: Path = tmp_path_factory.mktemp("finding")
    settings = lifelike(str(folder))
    settings = settings._replace(environ={**settings.environ, "AI_KB_DIR": str(folder / "kb")})
    call(settings, "kb init")
    summary = "Use stainless screws in damp rooms."
    call(settings, "kb remember", text="Brass stains.", title="Screws in damp rooms", summary=summary)
    quoted = "> Founder of [[companies/brineloop]], friend of [[people/teo-varland|Teo]]."
    call(settings, "put", slug="people/ines-karvonen", content=f"# Ines Karvonen\n\n{quoted}\n\nBuilds.\n")
    dinner = "# Dinner with Ines\n\nInes cooked, Ines sang, and Ines went home.\n"
    call(settings, "put", slug="meetings/dinner", content=dinner)
    for path, text in {
        "reference/habits.md": "## Habits\n\n- Ines prefers letters to calls\n",
        "daily/2026-05-04.md": "## 06:29 — Called Nkechi: the trial begins in January\n",
    }.items():
        call(settings, "notebook write", path=path, content=text)
    return settings


@pytest.fixture(scope="module")
def owner(known: Settings) -> Iterator[Visitor]:
    with visiting(known) as visitor:
        yield visitor


def groups(page: str) -> list[str]:
    return re.findall(r'class="group" aria-label="([^"]+)"', page)


def findings(page: str) -> list[str]:
    return re.findall(r'<li><a href="([^"]+)" data-item>', page)


def said(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page.partition("<main")[2].partition("</main>")[0]))


def gaps(known: Settings) -> int:
    return int(call(known, "gaps").total)


@pytest.mark.parametrize("question", ["screws damp rooms", "nails in damp rooms"])
def test_answer_from_the_knowledge_base_is_not_a_gap(owner: Visitor, known: Settings, question: str) -> None:
    before = gaps(known)
    page = owner.get(f"/search?q={quote(question)}").text
    assert "1 strong result" in page
    assert "No strong answer" not in page
    assert groups(page)[0] == "Knowledge base"
    assert findings(page)[0].startswith("/kb/")
    assert gaps(known) == before


def test_answer_from_the_notebook_is_not_a_gap(owner: Visitor, known: Settings) -> None:
    before = gaps(known)
    page = owner.get("/search?q=prefers+letters+to+calls").text
    assert groups(page)[0] == "Notebook"
    assert "strong result" in page
    assert gaps(known) == before


def test_search_without_an_answer_records_a_gap(owner: Visitor, known: Settings) -> None:
    before = gaps(known)
    page = owner.get("/search?q=zeppelin+harbour+timetable+quarterly").text
    assert "No strong answer" in page
    assert gaps(known) == before + 1


@pytest.mark.parametrize(
    "query",
    [
        f"q={'a' * 5_000}",
        "q=%00",
        "q=%ff%fe",
        "q=????",
        "q=zyxwvu&link=1",
        "q=zyxwvu&since=rubbish",
        "q=zyxwvu&type=person",
    ],
)
def test_search_without_words_records_no_gap(owner: Visitor, known: Settings, query: str) -> None:
    before = gaps(known)
    assert owner.get(f"/search?{query}").status_code == 200
    assert gaps(known) == before


def test_search_from_a_tag_or_link_records_no_gap(owner: Visitor, known: Settings) -> None:
    text = "---\ntags: [zorple]\n---\n\n# Loose\n\nSee [[people/nobody-at-all]].\n"
    call(known, "put", slug="concepts/loose", content=text)
    page = owner.get("/page/concepts/loose").text
    leading = set(re.findall(r'href="(/search\?q=[^"]+)"', page))
    assert len(leading) >= 2
    before = gaps(known)
    for item in leading:
        owner.get(item.replace("&amp;", "&"))
    assert gaps(known) == before


@pytest.mark.parametrize("typed", ["ines", "ine", "karvonen", "Ines Karvonen"])
@pytest.mark.parametrize("path", ["/search?q=", "/ui/search?brief=1&q="])
def test_name_of_a_person_is_the_first_result(owner: Visitor, path: str, typed: str) -> None:
    page = owner.get(path + quote(typed)).text
    assert re.findall(r'<a href="(/(?:page|notebook|kb)/[^"]+)" (?:data-item|tabindex="-1")', page)[0] == (
        "/page/people/ines-karvonen"
    )


def test_stop_words_alone_do_not_match(owner: Visitor) -> None:
    page = owner.get("/search?q=ines").text
    assert groups(page)[0] == "Pages"
    assert "Nkechi" not in page
    assert "Name match" in owner.get("/search?q=karvon").text


def test_a_file_of_the_notebook_is_found_by_its_name(owner: Visitor) -> None:
    page = owner.get("/search?q=habit").text
    assert groups(page)[0] == "Notebook"


def test_every_result_names_its_lane(owner: Visitor) -> None:
    for question in ("ines", "harbour", "damp+rooms"):
        page = owner.get(f"/search?q={question}").text
        assert page.count('class="lane"') == len(findings(page)) > 0


def test_results_show_strength_and_date_but_no_score(owner: Visitor) -> None:
    page = owner.get("/search?q=zinc+dendrites+at+the+harbour").text
    grades = re.findall(r'class="grade (\w+)">\w+</span></span>', page)
    assert {"strong", "none"} <= set(grades)
    assert len(grades) == len(findings(page))


def finding(strength: str, fit: int = 0) -> ResultView:
    from markupsafe import Markup

    return ResultView("/", Markup("x"), "", Markup(""), "words", "", "note", strength, fit)


def test_groups_are_sorted_by_their_best_result() -> None:
    groups = sort_groups(
        [
            ("Notebook", [finding("weak")], ""),
            ("Daily", [], ""),
            ("Pages", [finding("none"), finding("weak", 1)], ""),
            ("Knowledge base", [finding("strong")], ""),
        ]
    )
    assert [name for name, _, _ in groups] == ["Pages", "Knowledge base", "Notebook", "Daily"]


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/search?q=harbour&type=person&since={}", '<option value="person" selected>'),
        ("/timeline?type=person&until={}", '<option value="person" selected>'),
        ("/graph?slug=companies/brineloop&on={}", "Around Brineloop"),
        ("/ui/search?q=harbour&since={}", "harbour"),
    ],
)
@pytest.mark.parametrize("day", ["rubbish", "2026-02-30", "2026"])
def test_invalid_date_is_reported_on_every_page(owner: Visitor, path: str, kept: str, day: str) -> None:
    answer = owner.get(path.format(day))
    assert answer.status_code == 200
    assert f"“{day}” is not a date. Write it as 2026-04-25." in answer.text
    assert kept in answer.text
    assert "No results." not in answer.text
    assert "No dated items match" not in answer.text


def test_an_unknown_collection_leaves_the_form_in_place(owner: Visitor) -> None:
    answer = owner.get("/timeline?collection=nowhere&text=harbour")
    assert answer.status_code == 200
    assert 'class="trouble"' in answer.text
    assert 'name="text" value="harbour"' in answer.text


def test_summary_shows_titles(owner: Visitor) -> None:
    page = owner.get("/page/people/ines-karvonen").text
    assert "Founder of Brineloop, friend of Teo." in said(page)
    assert '<a href="/page/companies/brineloop"' in page.partition('class="lede"')[2].partition("</p>")[0]
    text = "# A\n\n> Founder of [[companies/brineloop]].\n\nBuilds.\n"
    preview = owner.post("/ui/preview", slug="people/ines-karvonen", text=text).text
    assert ">Brineloop</a>" in preview.partition("Builds")[0]


def test_search_page_has_one_field(owner: Visitor) -> None:
    page = owner.get("/search").text
    assert page.count('type="search"') == 1
    assert "quick.js" not in page
    assert 'class="quick"' in owner.get("/timeline").text


def test_graph_searches_for_a_centre(owner: Visitor) -> None:
    page = owner.get("/graph?find=ines").text
    assert (
        re.findall(r'href="(/graph\?slug=[^"]+)" data-item', page)[0] == "/graph?slug=people%2Fines-karvonen"
    )
    assert 'name="find" value="ines"' in page
    assert "No page matches" in owner.get("/graph?find=zyxwvu&collection=x").text


def test_an_answer_from_facts_is_above_the_results(owner: Visitor, known: Settings) -> None:
    values = {"slug": "people/ines-karvonen", "predicate": "lives_in"}
    call(known, "assert", **values, object="Lisbon", valid_from="2020-01-01")
    quote = "She <b>moved</b> to Galway."
    call(
        known,
        "assert",
        **values,
        object="Galway",
        valid_from="2026-01-01",
        evidence_text=quote,
        confidence=0.8,
    )
    page = owner.get("/search?q=where+does+Ines+Karvonen+live").text
    card = page.partition('class="card answer"')[2].partition("</section>")[0]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", card))
    assert page.index('class="card answer"') < page.index('class="group"')
    assert "Ines Karvonen lives in Galway." in text
    assert "since 1 January 2026" in text
    assert "80 % sure" in text
    assert "She &lt;b&gt;moved&lt;/b&gt; to Galway." in card
    assert "Before: Lisbon" in text
    assert 'class="card answer"' not in owner.get("/search?q=where+does+Ines+Karvonen+want+to+live").text


def test_results_by_words_come_first_if_a_script_asks_for_them(owner: Visitor, known: Settings) -> None:
    page = owner.get("/search?q=zzyzx+quorum&fast=1").text
    rest = html.unescape(page.partition('data-rest="')[2].partition('"')[0])
    assert rest == "/ui/search?q=zzyzx+quorum&asked=1"
    before = gaps(known)
    assert owner.get(rest).status_code == 200
    assert gaps(known) == before + 1
    assert "data-rest" not in owner.get("/search?q=zzyzx+quorum").text


def test_an_answer_from_a_sentence_names_the_page_and_quotes_it(owner: Visitor, known: Settings) -> None:
    text = "# Maren Voss\n\nMet at the fair. She moved from Leiden to Tromsø in 2026.\n"
    call(known, "put", slug="people/maren-voss", content=text)
    page = owner.get("/search?q=where+does+Maren+live").text
    card = said("<main" + page.partition('class="card answer"')[2].partition("</section>")[0] + "</main>")
    assert "Maren Voss lives in Tromsø." in card
    assert "From Maren Voss’s page" in card
    assert "She moved from Leiden to Tromsø in 2026." in card
    assert "recorded by" not in card

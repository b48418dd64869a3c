"""What the reading pages say: words instead of names, the past as it was, findings by their own strength."""

import re
from collections.abc import Iterator

import pytest
from tests.web.dashboard import Visitor, call, lifelike, visiting

from quaid.config import Settings
from quaid.web.pages import markdown
from quaid.web.pages.base import LinkTarget, slug_words
from quaid.web.pages.markdown import PageNames, names_in
from quaid.web.pages.search import COLOURS, node_styles


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A memory that tests only read."""
    settings = lifelike(str(tmp_path_factory.mktemp("reading")))
    text = (
        "# 2026-05-03\n\n## 07:30 — Wrote to [[people/teo-varland]]\n\n"
        "About [[projects/pier-nine-pilot]] and the **seals**.\n"
    )
    path = "daily/2026-05-03.md"
    call(settings, "notebook write", path=path, content=text, replace=True, expected_version=0)
    return settings


@pytest.fixture(scope="module")
def reader(known: Settings) -> Iterator[Visitor]:
    with visiting(known) as visitor:
        yield visitor


def words(html: str) -> str:
    main = html.partition("<main")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", main))


ALICE = PageNames({"people/alice": LinkTarget("/page/people/alice", "Alice Berg")}, "/page/people/me")


def test_names_in_a_text_are_wiki_links_and_bare_slugs() -> None:
    texts = ["[[people/alice|Al]] and people/bo.", "and/or", "see https://x.y/people/no, `a b`", "1/2 of it"]
    assert names_in(texts) == ["people/alice", "people/bo", "and/or", "1/2"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("with people/alice.", 'with <a href="/page/people/alice" class="wiki"'),
        ("with [[people/alice]]", ">Alice Berg</a>"),
        ("with [[people/alice|her]]", ">her</a>"),
        ("with [[people/no-body-here]]", ">no body here</a>"),
        ("either and/or both", "either and/or both"),
        ("see `people/alice`", "<code>people/alice</code>"),
        ("see https://x.y/people/alice now", "https://x.y/people/alice now"),
    ],
)
def test_a_name_becomes_the_title_of_its_page(text: str, shown: str) -> None:
    assert shown in ALICE.linked(text)


def test_link_to_the_page_itself_is_bold_text() -> None:
    here = PageNames({"people/alice": LinkTarget("/page/people/alice", "Alice Berg")}, "/page/people/alice")
    assert here.linked("by people/alice") == "by <strong>Alice Berg</strong>"


def test_names_become_titles_where_links_are_impossible() -> None:
    text = "[[people/alice]], [[people/alice|Al]], people/alice, [[x/y-z]], and/or"
    assert ALICE.worded(text) == "Alice Berg, Al, Alice Berg, y z, and/or"
    assert slug_words("Tidal battery") == "Tidal battery"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("| a | **b** |\n|---|:--|\n| c | [[x/y|Z]] |", "a · b c · Z"),
        ("…ople/teo]] did **this", "teo did this"),
        ("we saw [[people/teo-var…", "we saw teo var…"),
        ("| torn row", "torn row"),
        ("10 * 3 is thirty", "10 * 3 is thirty"),
        ("- [ ] Call\n- [x] Order", "Call · Order"),
    ],
)
def test_truncated_markup_is_removed(text: str, plain: str) -> None:
    assert markdown.plain_text(text) == plain


def test_cut_sentences_get_an_ellipsis() -> None:
    line = "runs the whole thing from the sail loft by the harbour, ten minutes by"
    assert markdown.readable_line(line) == f"… {line} …"
    assert markdown.readable_line("Cells: somebody") == "Cells: somebody"


def test_shortening_keeps_links_and_marks_whole() -> None:
    assert (
        markdown.shorten_markdown("aaa bbb [[people/teo-varland|Teo Varland]] ccc ddd eee", 30) == "aaa bbb…"
    )
    assert markdown.shorten_markdown("so **it is bold here** now and then", 20) == "so it is bold…"
    assert markdown.shorten_markdown("short **and** whole", 40) == "short **and** whole"


@pytest.mark.parametrize("count", [1, 9, 12, 17, 30])
def test_node_styles_are_distinct(count: int) -> None:
    types = [
        *("person", "company", "yc", "civic", "area", "note"),
        *(f"kind{number}" for number in range(30)),
    ]
    styles = node_styles(types[:count])
    assert len(styles) == count
    assert len({(colour, shape) for _, colour, shape, _ in styles}) == count
    colours = {colour for _, colour, _, _ in styles}
    assert len(colours) == min(count, 12)
    assert colours <= set(COLOURS)
    assert ("person", "person", "circle", 1) in styles


def test_contexts_facts_and_properties_show_titles(reader: Visitor) -> None:
    page = reader.get("/page/people/teo-varland").text
    output = words(page).replace("people/teo-varland Teo", "Teo")  # the address stands once, above the title
    assert "people/" not in output.partition("/ people/teo-varland")[2]
    assert "projects/" not in output
    assert "[[" not in output
    assert "builds the cell stacks for the Pier Nine pilot" in output
    assert "company: Brineloop, role: head of cells" in output
    assert "Decided 2025-11-13 by Teo Varland and Mira Dahlquist." in output
    assert re.search(r'<dd>company: <a href="/page/companies/brineloop"', page)


def test_diff_names_line_numbers(reader: Visitor) -> None:
    page = reader.get("/page/concepts/patience?diff=1").text
    assert "… line 2 …" in page
    assert "@@" not in page


def test_timeline_shows_the_daily_log_and_titles(reader: Visitor) -> None:
    page = reader.get("/timeline").text
    assert 'href="/notebook/daily/2026-05-03.md?at=L3#L3"' in page
    text = words(page)
    assert (
        "3 May 2026 Sunday 07:30 Wrote to Teo Varland daily log About Pier Nine pilot and the seals." in text
    )
    assert "18:40 Walk along the harbour daily log No call yet." in text
    assert "No call to the harbour master yet: Call the harbour master about night work." in text
    assert "works at Brineloop" in text
    for raw in ("[[", "**", "works_at", "actions/call"):
        assert raw not in text
    opened = reader.get("/notebook/daily/2026-05-03.md?at=L3").text
    assert re.search(r'<h2 id="L3" class="here">07:30', opened)


@pytest.mark.parametrize(
    ("query", "there", "absent"),
    [
        ("kind=log", "Walk along the harbour", "Showed me the harbour"),
        ("collection=notebook", "Walk along the harbour", "Showed me the harbour"),
        ("type=person", "Showed me the harbour", "Walk along the harbour"),
        ("wing=daily", "Walk along the harbour", "Showed me the harbour"),
        ("text=balcony", "Showed me the harbour", "Walk along the harbour"),
        ("since=2026-05-03", "Wrote to", "Walk along the harbour"),
        ("until=2026-05-01&kind=log", "Called Sarah", "Walk along the harbour"),
    ],
)
def test_the_timeline_is_filtered(reader: Visitor, query: str, there: str, absent: str) -> None:
    text = words(reader.get(f"/timeline?{query}").text)
    assert there in text
    assert absent not in text


def test_each_result_has_its_own_strength(reader: Visitor) -> None:
    page = reader.get("/search?q=zinc+dendrites+at+the+harbour").text
    graded = re.findall(r'class="grade (\w+)"', page)
    assert "strong" not in graded or "strong result" in page
    assert {"weak", "none"} & set(graded)
    for group in re.findall(r'<ol class="findings weaker">.*?</ol>', page, re.DOTALL):
        assert "grade strong" not in group
    assert "Strong answer" not in page
    nothing = reader.get("/search?q=zeppelin+harbour+timetable+quarterly").text
    assert "No strong answer" in nothing
    assert "strong result" not in nothing


def test_results_show_words_and_dates(reader: Visitor) -> None:
    text = words(reader.get("/search?q=harbour+master").text)
    assert "No call to the harbour master yet: Call the harbour master about night work." in text
    assert "2 May 2026, walk" in text
    for raw in ("[[", "**", " | ", "people/", "actions/"):
        assert raw not in text


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("q=harbour", ["Pages", "Notebook", "Daily"]),
        ("q=harbour&collection=notebook", ["Notebook", "Daily"]),
        ("q=harbour&collection=notebook&since=2026-05-02&until=2026-05-02", ["Daily"]),
        ("q=harbour&type=person", ["Pages"]),
        ("q=harbour&wing=people&until=2026-05-02", ["Pages"]),
    ],
)
def test_filters_keep_groups_and_form_values(reader: Visitor, query: str, groups: list[str]) -> None:
    page = reader.get(f"/search?{query}").text
    assert [
        name for name in re.findall(r'class="group" aria-label="([^"]+)"', page) if name != "Knowledge base"
    ][: len(groups)] == groups
    for name, value in (part.split("=") for part in query.split("&")[1:]):
        held = re.search(
            rf'name="{name}"(?: value="{value}"|>.*?<option value="{value}" selected)', page, re.DOTALL
        )
        assert held, name


def test_result_links_to_the_matching_line(reader: Visitor) -> None:
    page = reader.get("/search?q=Kobe+permit").text
    href = re.search(r'href="(/page/meetings/2026-04-22[^"]*#L(\d+))"', page)
    assert href is not None
    opened = reader.get(href[1].partition("#")[0]).text
    marked = re.search(rf'<\w+[^>]* id="L{href[2]}" class="here">(.*?)</', opened, re.DOTALL)
    assert marked is not None
    assert marked[1].startswith("Kobe came up")


def test_quick_search_list_is_short_and_links_to_all_results(reader: Visitor) -> None:
    page = reader.get("/ui/search?q=harbour&brief=1").text
    assert "<html" not in page
    assert 0 < page.count('role="option"') <= 4 * 4 + 1
    assert 'href="/search?q=harbour"' in page
    assert reader.get("/ui/search?q=&brief=1").text.strip() == ""
    by_words = reader.get("/ui/search?q=harbour&brief=1&words=1").text
    assert 0 < by_words.count('role="option"') <= page.count('role="option"')


def test_graph_list_shows_the_links_of_its_day(reader: Visitor) -> None:
    def shown(path: str) -> tuple[int, int, str]:
        page = reader.get(path).text
        count = re.search(r"data-count>([\d,]+)<", page)
        assert count is not None
        rows = page.partition("data-links>")[2].partition("</ul>")[0].count("<li><a")
        return int(count[1].replace(",", "")), rows, page

    now, rows, page = shown("/graph?slug=companies/brineloop")
    assert now == rows
    output = reader.get("/ui/graph?slug=companies/brineloop&depth=2").json()
    ended = sum(until > 0 for until in output["links"][4::6])
    assert now == len(output["links"]) // 6 - ended
    assert page.partition("data-legend>")[2].partition("</ul>")[0].count("<li") == len(set(output["type"]))
    then, rows, page = shown("/graph?slug=companies/brineloop&on=2024-06-01")
    assert then == rows
    assert 0 < then < now / 3
    assert "Links on 1 June 2024" in page
    assert "Pier Nine" not in page.partition("data-links>")[2].partition("</ul>")[0]
    assert shown("/graph?slug=companies/brineloop&on=2018-01-01")[0] == 0


@pytest.mark.parametrize("path", ["/", "/search", "/timeline", "/graph?wing=people", "/notebook", "/review"])
def test_static_urls_are_immutable(reader: Visitor, path: str) -> None:
    wanted = set(re.findall(r'"(/static/[^"]+)"', reader.get(path).text))
    assert any("mark.svg" in item for item in wanted)
    for element in wanted:
        answer = reader.get(element)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable", element
        assert re.search(r"\?v=[0-9a-f]{12}$", element), element

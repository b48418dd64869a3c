"""Finding pages by their words."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from quaid.errors import InvalidSearch
from quaid.search import text as text_search
from quaid.search.text import PageHit, affordable_terms, plan_query, search_pages
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

Put = Callable[..., int]
LATER = "2026-04-26T12:00:00Z"


def slugs(db: Database, query: str, **options: Any) -> list[str]:
    filters = SearchFilters(**{name: options.pop(name) for name in SearchFilters._fields if name in options})
    return [hit.slug for hit in search_pages(db, query, filters, **options)]


# What is found


@pytest.mark.parametrize(
    "query",
    [
        "river",
        "River",
        "rivers",  # the same stem
        "river?",
        "(river)",
        "the river's",
        "river -board",
        "river AND",
        "NEAR(river",
        "title:river",
        "rivér",
        '"river board"',
        'river "board',
    ],
)
def test_a_page_is_found_by_its_words_however_they_are_written(db: Database, put: Put, query: str) -> None:
    put("projects/one", "The river board met in Oslo.")
    put("projects/two", "Nothing of it.")
    assert slugs(db, query) == ["projects/one"]


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        ("alice@example.com", "Write to alice@example.com soon"),
        ("/usr/local/bin/quaid", "lies in /usr/local/bin/quaid now"),
        ("2024-03-05", "met on 2024-03-05"),
        ("2024-03", "met on 2024-03-05"),
        ("c++", "written in c++ mostly"),
        ("don't", "we don’t know"),
        ("e-mail", "an e-mail came"),
        ("https://example.com/a?b=c", "see https://example.com/a?b=c"),
        ("v1.2.3", "since v1.2.3"),
        ("#42", "see #42"),
        ("Zoe", "Zoë came"),
        ("Zoë", "Zoe came"),
        ("Zoe\u0308", "Zoë came"),
        ("STRASSE", "strasse"),
        ("Привет", "она сказала привет"),
        ("مرحبا", "قال مرحبا"),
        ("हिन्दी", "वह हिन्दी बोलती है"),
        ("Ọ̀yọ́", "lọ sí Ọ̀yọ́ lónìí"),
        ("snake_case", "a snake_case name"),
    ],
)
def test_every_kind_of_page_text_is_searchable(db: Database, put: Put, query: str, truth: str) -> None:
    put("a/this", truth)
    put("a/other", "something else")
    (hit,) = search_pages(db, query)
    assert hit.slug == "a/this"
    assert hit.all_words


@pytest.mark.parametrize("query", ["", " ", "?", '"', "\0", "🎉", "\ud800", "* ^ : - +", '"' * 10_000])
def test_text_without_words_finds_nothing(db: Database, put: Put, query: str) -> None:
    put("a/page", "text")
    assert search_pages(db, query) == []


def test_an_empty_memory_answers_with_nothing(db: Database) -> None:
    assert search_pages(db, "river 東京") == []


def test_no_hits_are_wanted_with_a_limit_of_none(db: Database, put: Put) -> None:
    put("a/page", "river")
    assert search_pages(db, "river", limit=0) == []


ANY_TEXT = settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)


@ANY_TEXT
@given(query=st.text() | st.text(alphabet='"“” abiver\0\ud800*^:-+(){}東京ไทย', max_size=60))
@example("AND")
@example("river NOT board")
@example("a" * 100_000)
@example("京" * 100_000)
@example("- " * 50_000)
@pytest.mark.usefixtures("mixed")
def test_any_text_is_a_valid_search(db: Database, query: str) -> None:
    for hit in search_pages(db, query):
        assert hit.rank_score > 0


LETTERS = (
    "abcdxyzABC019éÉñßİøΩжЖשم東京都知識のラーメンーｶﾞ한국어를ไทยน้ำภาษา'’-_.,:;!?()[]{}\"“”#*+/\\@。、「」 \n\t"
)


@ANY_TEXT
@given(text=st.text(alphabet=LETTERS, min_size=1, max_size=60), data=st.data())
def test_every_word_of_a_page_finds_it(db: Database, put: Put, text: str, data: st.DataObject) -> None:
    put("a/page", text)
    word = data.draw(st.sampled_from(text.split() or [""]))
    if plan_query(word).words:
        assert "a/page" in slugs(db, word)


def test_a_huge_question_still_finds(db: Database, put: Put) -> None:
    put("a/page", "word7 stands here")
    assert slugs(db, " ".join(f"word{number}" for number in range(200_000))) == ["a/page"]


# In which order


def test_pages_with_all_words_come_before_pages_with_some(db: Database, put: Put) -> None:
    put("a/some", "river river river river", title="River")
    put("a/all", "A long page in which the river is named once, and much later " + "x " * 300 + "a board.")
    put("a/none", "nothing")
    hits = search_pages(db, "river board")
    assert [(hit.slug, hit.all_words) for hit in hits] == [("a/all", True), ("a/some", False)]


def test_pages_with_the_telling_words_come_before_pages_with_fewer(db: Database, put: Put) -> None:
    put("a/words-of-every-text", "when did they go to the sea, and when did she go to the hills")
    put("a/telling", "Ada. River.")
    put("a/one", "Ada Ada Ada")
    hits = search_pages(db, "when did Ada see the river")
    assert [hit.slug for hit in hits] == ["a/telling", "a/one"]
    assert not any(hit.all_words for hit in hits)


def test_a_question_of_only_common_words_is_taken_as_it_is(db: Database, put: Put) -> None:
    put("bands/the-who", "A band.", title="The Who")
    put("a/other", "nothing")
    assert slugs(db, "the who") == ["bands/the-who"]


def test_a_title_weighs_more_than_a_text(db: Database, put: Put) -> None:
    put("a/text", "The river board and more words")
    put("a/title", "Something else with more words", title="The river board")
    for number in range(8):
        put(f"b/{number}", "filling")
    assert slugs(db, "river") == ["a/title", "a/text"]


@pytest.mark.parametrize("query", ["River AI", "river ai", " RIVER AI ", "companies/river"])
def test_the_page_of_that_name_comes_first(db: Database, put: Put, query: str) -> None:
    put("companies/river", "A company.", title="River AI")
    put(
        "notes/about",
        "River AI " * 50 + "companies river " * 50,
        title="River AI and River AI companies/river",
    )
    hits = search_pages(db, query)
    assert [hit.slug for hit in hits] == ["companies/river", "notes/about"]
    assert hits[0].all_words


@pytest.mark.parametrize(("title", "query"), [("École Ünal", "ÉCOLE ÜNAL"), ("東京", "東京"), ("C++", "c++")])
def test_the_page_of_that_name_comes_first_in_any_script(
    db: Database, put: Put, title: str, query: str
) -> None:
    put("a/named", "-", title=title)
    put("a/other", f"{title} " * 50, title=f"{title} {title} again")
    assert slugs(db, query)[0] == "a/named"


def test_words_in_quotes_must_stand_together(db: Database, put: Put) -> None:
    put("a/together", "the support group met")
    put("a/apart", "a group for support")
    assert [(hit.slug, hit.all_words) for hit in search_pages(db, '"support group"')] == [
        ("a/together", True)
    ]


def test_a_word_made_of_several_falls_back_to_one_of_them(db: Database, put: Put) -> None:
    put("people/alice", "Alice lives in Oslo")
    assert slugs(db, "alice@example.com") == ["people/alice"]


def test_the_limit_is_kept_and_the_best_are_kept(db: Database, put: Put) -> None:
    for number in range(30):
        put(f"a/{number}", "river " * (number + 1) + "filling " * (40 - number))
    assert slugs(db, "river", limit=3) == ["a/29", "a/28", "a/27"]
    assert len(slugs(db, "river", limit=1000)) == 30


# Filters


@pytest.fixture
def mixed(put: Put) -> None:
    put("people/ada", "river board", type="person", tags=["math"])
    put("companies/river", "river board", type="company", tags=["math", "water"])
    put("companies/sea", "sea board 東京", type="company", tags=["water"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"type": "person"}, ["people/ada"]),
        ({"type": "company"}, ["companies/river", "companies/sea"]),
        ({"tag": "math"}, ["companies/river", "people/ada"]),
        ({"type": "company", "tag": "math"}, ["companies/river"]),
        ({"type": "deal"}, []),
        ({"tag": "none"}, []),
        ({"wing": "none"}, []),
        ({"collection": "default"}, ["companies/river", "companies/sea", "people/ada"]),
        ({"collection": "none"}, []),
    ],
)
@pytest.mark.usefixtures("mixed")
def test_filters_leave_out_pages(db: Database, options: dict[str, str], expected: list[str]) -> None:
    assert sorted(slugs(db, "river board", **options)) == expected
    assert sorted(slugs(db, "river board 東京", **options)) == expected


@pytest.mark.usefixtures("mixed")
def test_a_filter_by_wing_leaves_out_other_wings(db: Database) -> None:
    wings = {hit.slug: hit.wing for hit in search_pages(db, "board")}
    assert len(wings) == 3
    for wing in set(wings.values()):
        assert sorted(slugs(db, "board", wing=wing)) == sorted(slug for slug in wings if wings[slug] == wing)


@pytest.mark.usefixtures("mixed")
def test_a_filter_also_holds_for_the_page_of_that_name(db: Database) -> None:
    assert slugs(db, "companies/river", type="person") == ["people/ada"]


# Scripts without spaces


@pytest.mark.parametrize(
    ("query", "text"),
    [
        # one to four characters
        ("京", "私は東京に住んでいます"),
        ("東京", "私は東京に住んでいます"),
        ("東京都", "東京都の人口"),
        ("人工知能", "最近の人工知能について"),
        ("検索", "全文検索エンジン"),
        ("エンジン", "全文検索エンジン"),
        ("知", "个人知识管理"),
        ("知识", "个人知识管理"),
        ("知识管理", "个人知识管理"),
        ("理", "个人知识管理"),
        ("책", "책을 읽는다"),
        ("한국", "한국어를 배운다"),
        ("한국어", "한국어를 배운다"),
        ("국어", "한국어를 배운다"),
        ("น้ำ", "ฉันดื่มน้ำทุกวัน"),
        ("ไทย", "ประเทศไทยสวยงาม"),
        ("ประเทศ", "ประเทศไทยสวยงาม"),
        ("ພາສາ", "ພາສາລາວ"),
        ("ភាសា", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာဘာသာ"),
        # widths and forms
        ("カタカナ", "ｶﾀｶﾅで書く"),
        ("ｶﾀｶﾅ", "カタカナで書く"),
        ("ガ", "ｶﾞと書く"),
        ("漢字", "漢\ufe00字"),
        # together with other words
        ("Python", "使用Python编程"),
        ("python 编程", "使用Python编程"),
        ("编程 programs", "a program: 使用Python编程"),
        ("iPhone手机", "新iPhone手机壳"),
        ("第3章", "第3章を読む"),
        ("「東京」", "それは東京です"),
    ],
)
@pytest.mark.parametrize("place", ["title", "truth", "timeline"])
def test_words_of_scripts_without_spaces_are_found(
    db: Database, put: Put, query: str, text: str, place: str
) -> None:
    put("a/other", "別の頁 别的 다른 อื่น", "something else")
    put("a/this", **{"truth": "filling", place: text})
    (hit,) = search_pages(db, query)
    assert (hit.slug, hit.all_words) == ("a/this", True)


def test_a_sentence_without_spaces_finds_pages_with_its_words(db: Database, put: Put) -> None:
    put("a/ramen", "東京で食べたラーメンの記録")
    put("a/other", "大阪の天気")
    hits = search_pages(db, "東京で一番美味しいラーメン屋はどこですか？")
    assert [(hit.slug, hit.all_words) for hit in hits] == [("a/ramen", False)]


def test_all_words_come_first_across_both_indexes(db: Database, put: Put) -> None:
    put("a/latin", "hotel hotel hotel", title="hotel")
    put("a/both", "A long page about a hotel " + "and so on " * 100 + "in 東京")
    put("a/kanji", "東京 東京 東京", title="東京 の")
    for number in range(5):
        put(f"b/{number}", "filling 別")
    hits = search_pages(db, "東京 hotel")
    assert hits[0].slug == "a/both"
    assert [hit.all_words for hit in hits] == [True, False, False]
    assert {hit.slug for hit in hits} == {"a/both", "a/latin", "a/kanji"}


def test_pairs_do_not_reach_over_the_end_of_a_run(db: Database, put: Put) -> None:
    put("a/page", "知識。管理 と 東、京")
    assert search_pages(db, "識管") == []
    assert search_pages(db, "東京") == []


# Changes


def test_a_changed_page_is_found_by_its_new_words_only(db: Database, put: Put) -> None:
    put("a/page", "river 東京")
    put("a/page", "lake 大阪")
    assert slugs(db, "river") == slugs(db, "東京") == []
    assert slugs(db, "lake") == slugs(db, "大阪") == ["a/page"]
    put("a/page", "lake only")
    assert slugs(db, "大阪") == []


@pytest.mark.parametrize("query", ["river", "東京", "river 東京", "a/page", "Named"])
def test_a_quarantined_page_is_never_found(db: Database, put: Put, query: str) -> None:
    put("a/page", "river 東京", title="Named")
    assert slugs(db, query) == ["a/page"]
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ?", (LATER,)))
    assert slugs(db, query) == []


@pytest.mark.parametrize("query", ["river", "東京", "a/page"])
def test_a_deleted_page_is_never_found(db: Database, put: Put, query: str) -> None:
    put("a/page", "river 東京")
    db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert slugs(db, query) == []


# Large memories


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large depends on a budget; with this one, twenty pages are."""
    monkeypatch.setattr(text_search, "ROW_BUDGET", 10)


@pytest.mark.usefixtures("small_budget")
def test_in_a_large_memory_the_commonest_words_are_left_out(db: Database, put: Put) -> None:
    for number in range(20):
        put(f"a/{number}", "river water")
    put("a/rare", "heron")
    put("a/rarer", "heron ibis")
    assert slugs(db, "river heron ibis") == ["a/rarer", "a/rare"]


@pytest.mark.usefixtures("small_budget")
def test_in_a_large_memory_common_words_show_names_and_the_newest(db: Database, put: Put) -> None:
    put("a/named", "river water", title="River water")
    for number in range(40):
        put(f"b/{number}", "river water " + "filling " * number)
    result = slugs(db, "river water", limit=2)
    assert result[0] == "a/named"
    assert result[1] in {f"b/{number}" for number in range(35, 40)}
    assert all(hit.all_words for hit in search_pages(db, "river water", limit=2))


@pytest.mark.parametrize(
    ("counts", "kept"),
    [
        ([5, 1, 3], ["b", "c"]),
        ([50, 60, 70], ["a"]),
        ([0, 0, 0], ["a", "b", "c"]),
        ([4, 1, 3], ["b", "c", "a"]),
    ],
)
def test_the_rarest_words_are_kept_within_the_budget(counts: list[int], kept: list[str]) -> None:
    assert affordable_terms(["a", "b", "c"], counts, 8) == kept


# Hits


def test_a_hit_says_which_page_it_is(db: Database, put: Put) -> None:
    page_id = put("people/ada", "# Ada\n\n> Wrote the first program.", type="person", title="Ada")
    (hit,) = search_pages(db, "program")
    assert hit == PageHit(
        slug="people/ada",
        collection="default",
        title="Ada",
        type="person",
        wing=hit.wing,
        room="",
        summary="Wrote the first program.",
        snippet="…Wrote the first **program**.",
        rank_score=hit.rank_score,
        all_words=True,
        id=page_id,
    )
    assert hit.rank_score > 0


def test_a_hit_names_the_heading_above_it_also_far_down_in_a_long_page(db: Database, put: Put) -> None:
    pages = [f"## Page {n}\n\n{'Rope and tar. ' * 40}" for n in range(1, 701)]
    pages[13] += "\n\n```\n# no heading\n```\n\nDrum seven holds the oil."
    pages[650] += "Two herons nest there."
    put("sources/manual", "\n\n".join(pages))
    assert [(hit.heading, "**oil**" in hit.snippet) for hit in search_pages(db, "oil")] == [("Page 14", True)]
    (hit,) = search_pages(db, "heron")
    assert hit.heading == "Page 651"
    assert "Two **herons** nest" in hit.snippet


def test_better_pages_have_higher_scores(db: Database, put: Put) -> None:
    put("a/one", "river and so on and so on and so on")
    put("a/two", "river river river")
    for number in range(5):
        put(f"b/{number}", "filling")
    first, second = search_pages(db, "river")
    assert (first.slug, second.slug) == ("a/two", "a/one")
    assert first.rank_score > second.rank_score


# FTS5 syntax


def test_raw_is_fts5_syntax(db: Database, put: Put) -> None:
    put("a/one", "river board")
    put("a/two", "river", title="Board")
    assert slugs(db, "river NOT compiled_truth : board", raw=True) == ["a/two"]
    assert sorted(slugs(db, "riv*", raw=True)) == ["a/one", "a/two"]
    assert slugs(db, "river", raw=True, type="person") == []


@pytest.mark.parametrize("query", ['"', "river AND", "", "nothing : river", "\ud800", "river -board", "*"])
def test_invalid_fts5_syntax_is_reported(db: Database, query: str) -> None:
    with pytest.raises(InvalidSearch, match="--raw"):
        search_pages(db, query, raw=True)
    assert search_pages(db, "river") == []

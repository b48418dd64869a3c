"""Slugs: which are valid, and how a path becomes one."""

import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidSlug
from quaid.model import slug as slugs


@pytest.mark.parametrize(
    "good",
    [
        "people/alice",
        "a",
        "_index",
        "journal/2026-04-25",
        "-",
        "a/-b",
        "x" * 255,
        "zh/用户界面",
        "日本語/ガイド",
        "العربية",
        "हिन्दी/नमस्ते",
        "россия/ёлка-й",
        "한국어",
        "ไทย/สวัสดี",
        "a-用_3",
        "用" * 84,
    ],
)
def test_a_slug_of_the_allowed_characters_is_returned_as_it_is(good: str) -> None:
    assert slugs.check(good) == good


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ("", "empty"),
        ("a" * 256, "256 characters"),
        ("/a", "begins or ends"),
        ("a/", "begins or ends"),
        ("a//b", "'//'"),
        ("Alice", "'A' is not allowed"),
        ("a b", "' ' is not allowed"),
        ("../a", "'.' is not allowed"),
        ("näme", "'ä' must be written 'a'"),
        ("Россия", "'Р' must be written 'р'"),
        ("zh/😀", "'😀' is not allowed"),
        ("用 户", "' ' is not allowed"),
        ("用\u200d户", "is not allowed"),
        ("a\u202e用", "is not allowed"),
        ("用/..", "'.' is not allowed"),
        ("\u093e", "accent without a letter"),
        ("用\ufe0f", "accent without a letter"),
        ("用//户", "'//'"),
        ("用\ud800", "is not allowed"),
        ("用" * 85, "252 bytes"),
        ("a\n", "is not allowed"),
    ],
)
def test_a_bad_slug_is_refused_with_the_rule_that_it_breaks(bad: str, rule: str) -> None:
    with pytest.raises(InvalidSlug, match="is not a slug") as caught:
        slugs.check(bad)
    assert rule in caught.value.facts["problem"]


@pytest.mark.parametrize(
    ("bad", "example"),
    [("RU/Заметка 1", "ru/заметка-1"), ("/Notes//Über uns.md", "notes/uber-uns"), ("../..", "people/alice")],
)
def test_a_bad_slug_is_refused_with_a_good_one_as_example(bad: str, example: str) -> None:
    with pytest.raises(InvalidSlug, match=f"as in {example}"):
        slugs.check(bad)


def test_a_very_long_slug_does_not_flood_the_message() -> None:
    with pytest.raises(InvalidSlug) as caught:
        slugs.check("a" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("1. Projects/My Näme.md", "1-projects/my-name"),
        ("people/alice.md", "people/alice"),
        ("notes.MARKDOWN", "notes"),
        ("node.org", "node"),
        ("v1.2 notes.md", "v1-2-notes"),
        ("data.md.txt", "data-md-txt"),
        ("docs/_index.md", "docs/_index"),
        ("a--b -- c.md", "a-b-c"),
        ("知识/東京.md", "知识/東京"),
        ("日本語/メモ ガイド.md", "日本語/メモ-ガイド"),
        ("العربية/مرحبا بالعالم.md", "العربية/مرحبا-بالعالم"),
        ("हिन्दी/नमस्ते दुनिया.md", "हिन्दी/नमस्ते-दुनिया"),
        ("Россия/Ёлка Й.md", "россия/ёлка-й"),
        ("Größe 用户 v2.md", "grosse-用户-v2"),
        ("❤️ 用户 👩‍💻.md", "用户"),
        ("１２３ＡＢＣ ｶﾅ.md", "123abc-カナ"),
        ("Straße Łódź Æon Þing ığ.md", "strasse-lodz-aeon-thing-ig"),
        ("ﬁle №5.md", "file-no5"),
        ("!!!/.md", "x/x"),
        ("", "x"),
        ("½ cup.md", "1-2-cup"),
        ("C++ & C#.md", "c-c"),
        ("emoji 🎉 party.md", "emoji-party"),
    ],
)
def test_a_path_becomes_a_slug(path: str, expected: str) -> None:
    assert slugs.from_path(path) == expected


def test_marks_that_make_another_letter_are_kept_outside_latin() -> None:
    for one, other in [("мой", "мои"), ("が", "か"), ("हिन्दी", "हन्द")]:
        assert slugs.from_path(one) != slugs.from_path(other)


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        ("知识/東京.md", "u77e5u8bc6/u6771u4eac"),
        ("हिन्दी.md", "u939u93fu928u94du926u940"),
        ("Größe й.md", "grosse-u439"),
        ("people/alice.md", "people/alice"),
    ],
)
def test_slug_of_an_earlier_version(path: str, escaped: str) -> None:
    assert slugs.escaped_from_path(path) == slugs.escaped_from_path(slugs.from_path(path)) == escaped
    assert slugs.may_be_escaped(escaped) == (escaped != "people/alice")


def test_name_that_is_too_long_for_a_file_system_is_cut() -> None:
    one, other = slugs.from_path("用" * 100 + "a"), slugs.from_path("用" * 100 + "b")
    assert one != other
    assert len((one + ".md").encode()) <= 255
    assert slugs.check(one) == one


@given(st.text())
def test_both_encodings_of_an_accent_give_the_same_slug(name: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)
    assert slugs.from_path(composed) == slugs.from_path(decomposed)


@given(st.text(alphabet=st.characters(), max_size=400))
def test_every_path_gives_a_valid_slug_that_is_its_own_slug(path: str) -> None:
    made = slugs.from_path(path)
    assert slugs.check(made) == made
    assert slugs.from_path(path) == made
    assert slugs.check(unicodedata.normalize("NFD", made)) == made


@given(
    st.from_regex(r"[a-z0-9_]+(-[a-z0-9_]+)*(/[a-z0-9_]+){0,3}", fullmatch=True).filter(
        lambda s: len(s) < 256
    )
)
def test_a_tidy_slug_stays_itself(tidy: str) -> None:
    assert slugs.from_path(tidy + ".md") == tidy


def test_overlong_paths_are_cut_and_stay_distinct() -> None:
    one, other = (
        slugs.from_path("folder/" + "a" * 300 + "1.md"),
        slugs.from_path("folder/" + "a" * 300 + "2.md"),
    )
    assert len(one) == len(other) == 255
    assert one != other
    assert slugs.check(one)


def test_an_address_splits_at_its_first_double_colon() -> None:
    assert slugs.split_address("work::people/a") == ("work", "people/a")
    assert slugs.split_address("people/a") == (None, "people/a")
    assert slugs.split_address("work::a::b") == ("work", "a::b")


def test_an_address_that_names_no_collection_is_refused() -> None:
    with pytest.raises(InvalidSlug, match="no collection"):
        slugs.split_address("::people/a")


@given(st.text(st.sampled_from("az09_-/ A.\n"), max_size=12))
def test_a_slug_is_good_names_with_slashes_between_them(text: str) -> None:
    good = re.fullmatch(r"[a-z0-9_-]+(?:/[a-z0-9_-]+)*", text) is not None
    try:
        assert slugs.check(text) == text and good  # noqa: PT018
    except InvalidSlug:
        assert not good

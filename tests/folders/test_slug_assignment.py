"""Who gets a slug that several files want."""

from hypothesis import given, strategies as st

from quaid.folders import indexer
from quaid.folders.indexer import assign_slugs
from quaid.model import slug as slugs


def test_requested_slugs_without_conflict_are_assigned() -> None:
    assert assign_slugs([("a.md", "a"), ("B c.md", "b-c"), ("d.md", "x/y")]) == {
        "a.md": "a",
        "B c.md": "b-c",
        "d.md": "x/y",
    }


def test_file_at_the_path_of_the_slug_keeps_it() -> None:
    slugs = assign_slugs([("My Name.md", "my-name"), ("my-name.md", "my-name")])
    assert slugs["my-name.md"] == "my-name"
    assert slugs["My Name.md"].startswith("my-name-")
    slugs = assign_slugs([("a.md", "people/bob"), ("people/bob.md", "people/bob")])
    assert slugs == {"a.md": "a", "people/bob.md": "people/bob"}


def test_first_path_keeps_the_slug() -> None:
    assert assign_slugs([("a.md", "same"), ("b.md", "same"), ("c.md", "b")]) == {
        "a.md": "same",
        "b.md": "b",
        "c.md": "c",
    }


def test_contested_slug_is_unassigned() -> None:
    slugs = assign_slugs([("a.md", "a")], taken=["a"])
    assert slugs["a.md"] == indexer.suffixed_slug("a", "a.md", {"a"})


def test_the_suffix_grows_until_it_is_free_and_the_slug_stays_within_its_length() -> None:
    long = "x" * slugs.LONGEST
    taken = {long}
    for length in range(indexer.MIN_SUFFIX_LENGTH, 12):
        name = indexer.suffixed_slug(long, "path.md", taken)
        assert slugs.check(name) == name
        assert len(name) - name.rindex("-") - 1 == length
        taken.add(name)


@given(
    st.lists(st.tuples(st.sampled_from(["a.md", "A.md", "b/a.md", "b/A.md", "c.md"]), st.sampled_from("abc")))
)
def test_every_path_gets_its_own_valid_slug(pairs: list[tuple[str, str]]) -> None:
    claims = [(path, wanted) for path, wanted in dict(pairs).items()]
    given_slugs = assign_slugs(claims)
    assert set(given_slugs) == {path for path, _ in claims}
    assert len(set(given_slugs.values())) == len(claims)
    assert all(slugs.check(slug) for slug in given_slugs.values())
    assert assign_slugs(claims) == given_slugs

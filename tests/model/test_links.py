"""Which links a text holds, and which page a link means."""

import time

import pytest

from quaid.model.links import LinkCandidate, find_references, resolve_link
from quaid.model.page import build_page


def targets(
    truth: str, timeline: str = "", slug: str = "people/alice", **front: object
) -> list[tuple[str, str]]:
    return [
        (reference.target, reference.relationship)
        for reference in find_references(build_page(slug, front, truth, timeline))
    ]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("[[people/bob]]", "people/bob"),
        ("[[people/bob|Bob the builder]]", "people/bob"),
        ("[[Bob Builder]]", "Bob Builder"),
        ("[[Bob#Early years|then]]", "Bob"),
        ("[[Bob^block]]", "Bob"),
        ("![[Bob]]", "Bob"),
        ("[[bob.md]]", "bob"),
        ("| a | [[Bob\\|B]] |", "Bob"),
        ("[[work::people/bob]]", "work::people/bob"),
        ("[Bob](bob.md)", "/people/bob"),
        ("[Bob](./bob.md#early)", "/people/bob"),
        ("[Acme](../companies/Acme%20Ltd.md)", "/companies/acme-ltd"),
        ("[Acme](<../companies/Acme Ltd.md>)", "/companies/acme-ltd"),
        ('[Acme](../companies/acme.md "The firm")', "/companies/acme"),
        ("[Root](/companies/acme.md)", "/companies/acme"),
        ("[Root](companies/acme.md)", "/people//companies/acme"),
        ("[Below](./companies/acme.md)", "/people/companies/acme"),
        ("[Org](../notes/x.org)", "/notes/x"),
        ("[![logo](l.png)](../companies/acme.md)", "/companies/acme"),
        ("[[日本]]", "日本"),
    ],
)
def test_a_link_names_its_target(text: str, target: str) -> None:
    assert targets(f"See {text} there.") == [(target, "mentions")]


@pytest.mark.parametrize(
    "text",
    [
        "[Bob](https://example.com/bob.md)",
        "[Bob](//example.com/bob.md)",
        "[Bob](mailto:bob@example.md)",
        "[pic](bob.png)",
        "![[bob.png]]",
        "[[#Heading]]",
        "[[]]",
        "[[ ]]",
        "[[--]]",
        "[out](../../../etc/passwd.md)",
        "`[[bob]]` and ``a ` [[bob]]``",
        "```\n[[bob]]\n```",
        "~~~\n[[bob]]",
        "[[a\nb]]",
        "\\[not a link\\](x)",
    ],
)
def test_other_links_are_left_alone(text: str) -> None:
    assert targets(text) == []


def test_a_backtick_that_is_never_closed_hides_nothing() -> None:
    assert targets("A ` alone.\n\nThen [[bob]] and ` again.") == [("bob", "mentions")]


def test_the_same_target_twice_is_one_link_at_its_first_place() -> None:
    references = find_references(
        build_page("a", {}, "x\n\n- [ ] Ask [[bob]] first.\n\n[[Bob]]", "- **2024-01-01** | x — [[bob]]")
    )
    assert [(item.target, item.line, item.part, item.context) for item in references] == [
        ("bob", 3, "truth", "Ask bob first.")
    ]


def test_a_link_in_the_timeline_knows_its_line_there() -> None:
    references = find_references(
        build_page("a", {}, "x", "- **2024-01-01** | x — y\n- **2024-01-02** | x — [[bob]]")
    )
    assert [(item.part, item.line) for item in references] == [("timeline", 2)]


def test_the_same_slug_of_two_collections_is_two_links() -> None:
    assert len(targets("[[b/two]] and [[notes::b/two]]")) == 2


def test_front_matter_lists_links_with_relationship_and_time() -> None:
    links = [
        {
            "to": "companies/acme",
            "relationship": "Works at",
            "valid_from": "2024-01-15",
            "context": "As **CTO**",
        },
        {"target": "[[people/bob|B]]", "type": "knows", "valid_until": "2025"},
        "people/carol.md",
    ]
    references = find_references(build_page("a", {"links": links}, "", ""))
    assert [item[:2] + item[2:4] + item[6:] for item in references] == [
        ("companies/acme", "companies acme", "works_at", "As CTO", "2024-01-15", None),
        ("people/bob", "people bob", "knows", "", None, "2025-01-01"),
        ("people/carol", "people carol", "related", "", None, None),
    ]


@pytest.mark.parametrize(
    "links", [None, 7, "", {}, [None], [{}], [{"to": 5}], [{"to": "--"}], [[["x"]]], {"to": ["x"]}]
)
def test_odd_front_matter_makes_no_link(links: object) -> None:
    assert targets("", links=links) == []


def test_a_span_that_runs_backwards_loses_its_days() -> None:
    odd = {"to": "b", "valid_from": "2025-01-01", "valid_until": "2024-01-01"}
    assert [reference[6:] for reference in find_references(build_page("a", {"links": [odd]}, "", ""))] == [
        (None, None)
    ]


@pytest.mark.parametrize(
    "text", ["[[" * 200_000, "[a](" * 200_000, "`" * 300_001 + "[[x]]", "`a" * 200_000 + "[[x]]"]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    page = build_page("a", {}, "", "")._replace(truth=text)
    started = time.process_time()
    find_references(page)
    assert time.process_time() - started < 2


def at(
    page_id: int, slug: str, kind: str = "name", collection: str = "default", *former: str
) -> LinkCandidate:
    return LinkCandidate(page_id, collection, slug, kind, former)


@pytest.mark.parametrize(
    ("target", "candidates", "page"),
    [
        ("people/bob", [at(1, "people/bob", "slug")], 1),
        ("bob", [at(1, "people/bob")], 1),
        ("bob", [at(1, "pets/bob"), at(2, "people/bob")], 2),  # the neighbour in the same folder
        ("bob", [at(1, "pets/bob"), at(2, "work/bob")], None),
        ("bob", [at(1, "bob", "slug"), at(2, "work/bob")], 1),
        ("Bobby", [at(1, "people/bob", "alias"), at(2, "people/robert", "title")], 1),
        ("Bobby", [at(1, "people/bob", "alias"), at(2, "people/robert", "alias")], None),
        ("Bobby", [at(2, "people/robert", "title")], 2),
        ("/people/bob", [at(1, "people-bob", "slug")], None),
        ("/people/bob", [at(1, "people/robert", "alias", "default", "people/bob")], 1),
        ("bob", [at(1, "bob", "slug", "work"), at(2, "x/bob")], 2),  # its own collection first
        ("work::bob", [at(1, "bob", "slug", "work"), at(2, "bob", "slug")], 1),
        ("work::bob", [at(2, "bob", "slug")], None),
        ("bob", [at(1, "a/bob", "name", "work")], 1),
        ("bob", [], None),
    ],
)
def test_a_link_leads_to_the_page_that_fits_best(
    target: str, candidates: list[LinkCandidate], page: int | None
) -> None:
    assert resolve_link(target, "people/alice", "default", candidates) == page


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[[id:0190-a][a node]] and [[id:b]]", ["id:0190-a", "id:b"]),
        ("[[id:a::*place][words with [brackets] in them]]", ["id:a"]),
        (
            "[[file:other.org][x]] [[file:../up.org::*H]] [[./near.org][n]]",
            ["/dir/other", "/up", "/dir/near"],
        ),
        ("[[file:~/away.org][x]] [[file:/etc/x.org]] [[file:picture.png][p]]", []),
        ("[[https://a.example][page]] [[mailto:a@b.example][mail]] [[*Heading]] [[*Heading][h]]", []),
        ("[[Some name][text]]", ["Some name"]),
        ("`[[id:a][b]]`", []),
    ],
)
def test_links_of_org(text: str, targets: list[str]) -> None:
    made = build_page("dir/page", {}, text, "")
    assert [reference.target for reference in find_references(made)] == targets


def test_a_link_by_id_leads_to_the_one_page_that_has_it() -> None:
    one = LinkCandidate(1, "roam", "a", "alias")
    assert resolve_link("id:x", "p", "notes", [one]) == 1
    assert resolve_link("id:x", "p", "notes", [one, LinkCandidate(2, "kb", "b", "alias")]) is None
    assert resolve_link("id:x", "p", "kb", [one, LinkCandidate(2, "kb", "b", "alias")]) == 2
    assert resolve_link("id:x", "p", "notes", [LinkCandidate(1, "notes", "id-x", "title")]) is None


def test_the_words_around_a_link_keep_their_marks_and_numbers() -> None:
    """Only a bullet at the beginning is taken off, not a star or a number further on."""
    text = "**As of 2026-04-14:** builds [[a/b]] since 2024. He knows.\n\n- [ ] Ask [[c/d]]\n"
    results = {
        reference.target: reference.context for reference in find_references(build_page("x", {}, text, ""))
    }
    assert results["a/b"] == "As of 2026-04-14: builds a/b since 2024. He knows."
    assert results["c/d"] == "Ask c/d"


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[x](/docs/concepts/pods/)", ["//docs/concepts/pods"]),
        ('[x](/docs/concepts/pods/#phase "Title")', ["//docs/concepts/pods"]),
        ("[x](/caf%C3%A9/)", ["//cafe"]),
        ("[x](/docs/x.md)", ["/docs/x"]),
        ("[x](/) [y](//cdn/x) [z](/logo.png) [w](/a/../b)", []),
        ('[x]({{< relref "pod.md#a" >}})', ["pod"]),
        ('[x]({{% ref "/docs/pod.md" %}})', ["//docs/pod"]),
        ("{{< relref path='docs/pod' lang='de' >}}", ["/blog//docs/pod"]),
        ('{{< relref "../docs/pod.md" >}}', ["/docs/pod"]),
        ('{{< relref "#here" >}} {{< ref "https://a.b" >}} {{< figure "x" >}}', []),
        ('`{{< relref "pod.md" >}}` `[x](/docs/)`', []),
    ],
)
def test_links_of_websites(text: str, targets: list[str]) -> None:
    page = build_page("blog/post", {}, text, "")
    assert [reference.target for reference in find_references(page)] == targets


def candidate_pages(*slugs: str) -> list[LinkCandidate]:
    return [LinkCandidate(number, "notes", slug, "name") for number, slug in enumerate(slugs, 1)]


@pytest.mark.parametrize(
    ("target", "slugs", "expected"),
    [
        ("pod", ["a/b/pod", "blog/pod", "pod"], "blog/pod"),
        ("pod", ["a/b/pod", "c/pod"], "c/pod"),
        ("pod", ["a/b/pod", "c/d/pod"], None),
        ("//docs/pod", ["x/docs/pod", "docs/pod"], "docs/pod"),
        ("//docs/pod", ["content/docs/pod"], "content/docs/pod"),
        ("//docs/pod", ["content/de/docs/pod", "content/en/docs/pod"], None),
        ("//docs/pod", ["content/de/docs/pod"], "content/de/docs/pod"),
        ("//docs/pod", ["en/docs/pod/_index"], "en/docs/pod/_index"),
        ("//docs/pod", ["docs/pod/index"], "docs/pod/index"),
        ("//docs/pod", ["other/docs/pod"], None),
        ("/blog//docs/pod", ["docs/pod", "blog/docs/pod"], "blog/docs/pod"),
    ],
)
def test_nearest_page_is_preferred(target: str, slugs: list[str], expected: str | None) -> None:
    page_id = resolve_link(target, "blog/post", "notes", candidate_pages(*slugs))
    assert (slugs[page_id - 1] if page_id else None) == expected


def test_path_on_a_website_prefers_the_language_of_the_linking_page() -> None:
    pages = candidate_pages("content/de/docs/pod", "content/en/docs/pod")
    assert resolve_link("//docs/pod", "content/en/blog/post", "notes", pages) == 2
    pages = candidate_pages("de/docs/pod", "pt-br/docs/pod")
    assert resolve_link("//docs/pod", "pt-br/blog/post", "notes", pages) == 2

"""Review, Settings and New without a browser: what a click changes, and what it says that it did."""

import html
import os
import re
import time
from typing import Any

import pytest
from tests.web.dashboard import Visitor, call, called

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

MIRA = "people/mira-dahlquist"


def message(visitor: Visitor, path: str) -> str:
    """What the next page says that was done."""
    match = re.search(r'<p class="flash[^"]*"[^>]*>(.*?)</p>', visitor.get(path).text, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", match[1])) if match else ""


def two_values(mine: Settings) -> Any:
    (result,) = [
        contradiction
        for contradiction in call(mine, "contradictions").contradictions
        if contradiction.type == "cross_page"
    ]
    return result


def homes(mine: Settings) -> set[str]:
    facts = call(mine, "facts", subject=MIRA).facts
    return {item.object for item in facts if item.predicate == "lives_in"}


@pytest.mark.parametrize(
    ("side", "left"), [("left", {"Oslo"}), ("right", {"Malmö"}), ("both", {"Oslo", "Malmö"})]
)
def test_a_contradiction_is_resolved_with_one_click(
    visitor: Visitor, mine: Settings, side: str, left: set[str]
) -> None:
    conflict = two_values(mine)
    answer = visitor.post("/review/resolve", id=conflict.id, keep=side, note="Asked her.")
    assert answer.headers["location"] == "/review"
    assert homes(mine) == left
    output = message(visitor, "/review")
    assert ("never held" in output) is (side != "both")
    assert ("still says" in output) is (side != "both")
    visitor.post("/review/check")
    assert [contradiction.id for contradiction in call(mine, "contradictions").contradictions].count(
        conflict.id
    ) == 0


def test_contradiction_shows_titles(visitor: Visitor) -> None:
    text = visitor.get("/review").text
    assert "Mira Dahlquist: lives in Oslo, or lives in Malmö?" in text
    assert "lives_in" not in text
    assert f'href="/page/{MIRA}?at=L3#L3" data-item>Mira Dahlquist</a>' in text
    assert '<span class="source">letter</span>' in text
    assert "It still holds" in text


def test_resolving_twice_changes_nothing(visitor: Visitor, mine: Settings) -> None:
    id = two_values(mine).id
    visitor.post("/review/resolve", id=id, keep="left")
    visitor.get("/review")
    assert visitor.post("/review/resolve", id=id, keep="right").headers["location"] == "/review"
    assert "Nothing was changed" in message(visitor, "/review")
    assert homes(mine) == {"Oslo"}


def test_check_again_reports_open_contradictions(visitor: Visitor, mine: Settings) -> None:
    assert visitor.post("/review/check").headers["location"] == "/review"
    total = call(mine, "contradictions").total
    assert f"{total} contradictions are open" in message(visitor, "/review")
    assert message(visitor, "/review") == ""


def test_a_gap_is_found_by_its_words_approved_and_closed(visitor: Visitor, mine: Settings) -> None:
    (gap,) = call(mine, "gaps").gaps
    assert "words are not stored" in visitor.get("/review?tab=gaps").text
    nothing = visitor.post("/review/gap", act="find", query_text="What else?")
    assert (
        'value="None"' not in visitor.post("/review/gap", act="find", query_text="Who insures the pier?").text
    )
    assert "No open question has these words" in nothing.text
    response = visitor.post("/review/gap", act="find", query_text="who insures the pier")
    assert 'class="card gap found"' in response.text
    assert 'name="query_text" value="who insures the pier" required' in response.text
    approved = {"sensitivity": "external", "approver": "Mira"}
    done = visitor.post(
        "/review/gap", id=gap.id, act="approve", query_text="Who insures the pier?", **approved
    )
    assert done.status_code == 303
    assert "Who insures the pier?" in visitor.get("/review?tab=gaps").text
    assert (
        visitor.post("/review/gap", id=gap.id, act="close", by="projects/pier-nine-pilot").status_code == 303
    )
    assert message(visitor, "/review?tab=gaps") == f"Question {gap.id} is closed: Pier nine pilot answers it."
    assert call(mine, "gaps").total == 0


def test_a_form_that_fails_is_shown_again_with_what_was_typed(visitor: Visitor, mine: Settings) -> None:
    (gap,) = call(mine, "gaps").gaps
    wrong = visitor.post(
        *("/review/gap",),
        id=gap.id,
        act="approve",
        query_text="Something else?",
        sensitivity="redacted",
        redacted_query="What is it?",
        approver="Bo",
    )
    assert wrong.status_code == 400
    assert "query_text is not the question of gap" in wrong.text
    assert "<details open><summary>Store its words" in wrong.text
    for field, value in (
        ("query_text", "Something else?"),
        ("redacted_query", "What is it?"),
        ("approver", "Bo"),
    ):
        assert f'name="{field}" value="{value}"' in wrong.text
    assert '<option value="redacted" selected>' in wrong.text
    unknown = visitor.post("/review/gap", id=gap.id, act="close", by="people/nobody")
    assert unknown.status_code == 404
    assert "There is no page people/nobody" in html.unescape(unknown.text)
    assert 'name="by" value="people/nobody"' in unknown.text


def test_the_owner_chooses_whether_words_of_questions_are_kept(visitor: Visitor, mine: Settings) -> None:
    pytest.importorskip("nacl")
    assert "Keep the words from now on" in visitor.get("/review?tab=gaps").text
    visitor.post("/review/gap", act="keep", log_gaps="words")
    call(mine, "gaps add", query_text="Who paints the zyxwvut crane?")
    shown = visitor.get("/review?tab=gaps").text
    assert "Who paints the zyxwvut crane?" in shown
    assert "Stop keeping them" in shown
    visitor.post("/review/gap", act="keep", log_gaps="on")
    assert call(mine, "config get", key="log_gaps").value == "on"


def test_all_gaps_without_words_are_closed_at_once(visitor: Visitor, mine: Settings) -> None:
    kept = call(mine, "gaps add", query_text="Who is Bo?").gap.id
    call(mine, "gaps approve", gap_id=kept, query_text="Who is Bo?", sensitivity="external", approver="Mira")
    call(mine, "gaps add", query_text="Where is the key?")
    assert "Close all 2 without words" in visitor.get("/review?tab=gaps").text
    visitor.post("/review/gap", act="clear")
    assert message(visitor, "/review?tab=gaps") == "Closed 2 questions whose words are not stored."
    assert [gap.id for gap in call(mine, "gaps").gaps] == [kept]


def test_duplicates_can_be_kept(visitor: Visitor, mine: Settings) -> None:
    pair = {"slug": "concepts/salt-creep", "other": "concepts/salt-beard"}
    assert call(mine, "dupes").total == 1
    assert visitor.post("/review/merge", act="distinct", **pair).status_code == 303
    assert message(visitor, "/review?tab=duplicates").startswith(
        "Both pages are kept: Salt creep and Salt beard"
    )
    assert call(mine, "dupes").total == 0


def test_duplicates_in_a_folder_cannot_be_merged_here(visitor: Visitor, mine: Settings) -> None:
    notes = os.path.join(mine.cwd, "notes")
    line = (
        "The harbour freezes over in the third week of January, and the ferry stops for a month or longer. "
    )
    for name in ("ice", "frost"):
        with open(os.path.join(notes, f"{name}.md"), "w", encoding="utf-8") as file:
            file.write(f"# About {name}\n\n{line * 3}\n")
    call(mine, "collection sync", name="notes")
    pair = next(pair for pair in call(mine, "dupes").pairs if "notes::" in pair.slug)
    text = visitor.get("/review?tab=duplicates").text
    card = text.partition(f"{pair.slug} · {pair.other}")[2].partition("</section>")[0]
    assert "Merge the two files in their folder" in card
    assert "Merge into" not in card
    assert "Keep both" in card
    assert "Open About ice" in card
    assert "Open About frost" in card
    assert "Merge into Salt creep" in text
    refused = visitor.post("/review/merge", slug=pair.slug, other=pair.other, into=pair.slug)
    assert refused.status_code == 409
    assert "Nothing was merged." in refused.text
    assert "faster" not in refused.text
    assert "Duplicates" in refused.text


def test_failed_export_keeps_the_form(visitor: Visitor, mine: Settings) -> None:
    answer = visitor.post("/review/quarantine", page="notes::lost", act="export", folder=mine.cwd)
    assert answer.status_code == 409
    assert "is not empty. Choose a new folder." in answer.text
    assert "--force" not in answer.text
    assert f'name="folder" value="{mine.cwd}"' in answer.text


def test_gap_form_hides_the_redacted_wording(visitor: Visitor) -> None:
    text = visitor.get("/review?tab=gaps").text
    assert '<label class="redacted">' in text
    assert "weak or none" not in text


def test_merge_and_restore_show_messages(visitor: Visitor, mine: Settings) -> None:
    pair = {"slug": "concepts/salt-creep", "other": "concepts/salt-beard", "into": "concepts/salt-creep"}
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', visitor.post("/review/merge", **pair).text))
    visitor.post("/review/merge", **fields)
    output = message(visitor, "/review?tab=duplicates")
    assert output.startswith("Salt beard is now part of Salt creep, and its old address leads there.")
    visitor.post("/review/quarantine", page="notes::lost", act="restore")
    assert "“The lost note” and its file lost.md are restored." in message(visitor, "/review?tab=quarantine")


def test_new_page_at_a_taken_address_offers_that_page(visitor: Visitor, mine: Settings) -> None:
    before = call(mine, "get", slug=MIRA)
    text = visitor.get(f"/new?slug={MIRA}").text
    assert "already exists" in text
    assert f'href="/page/{MIRA}">Open it</a>' in text
    assert f'href="/page/{MIRA}/edit">Edit it</a>' in text
    assert "<textarea" not in text
    call(mine, "rename", slug="concepts/patience", new_slug="concepts/waiting")
    assert (
        "concepts/patience redirects to concepts/waiting" in visitor.get("/new?slug=concepts/patience").text
    )
    late = visitor.post(f"/page/{MIRA}/edit", version=0, text="# Another Mira\n")
    assert late.status_code == 409
    assert "# Another Mira" in late.text
    assert call(mine, "get", slug=MIRA).version == before.version


def test_tokens_are_listed_and_revoked(visitor: Visitor, mine: Settings) -> None:
    call(mine, "token create", name="phone")
    text = visitor.get("/settings").text
    assert "<strong>phone</strong>" in text
    assert "never used" in text
    assert visitor.post("/settings/token", name="phone").headers["location"] == "/settings#tokens"
    assert message(visitor, "/settings").startswith("The token phone is revoked.")
    assert call(mine, "token list").tokens == ()
    assert visitor.post("/settings/token", name="phone").status_code == 404


def test_collection_shows_its_problem(visitor: Visitor, mine: Settings) -> None:
    text = visitor.get("/settings").text
    assert "1 in quarantine" in text
    assert "1 page has lost the file. Restore it on the page Review." in text
    os.rename(os.path.join(mine.cwd, "notes"), os.path.join(mine.cwd, "elsewhere"))
    assert "The folder cannot be found" in visitor.get("/settings").text
    os.rename(os.path.join(mine.cwd, "elsewhere"), os.path.join(mine.cwd, "notes"))
    visitor.post("/settings/sync", name="notes")
    assert message(visitor, "/settings") == "notes is in sync with its folder: no changes."


def test_home_shows_no_slugs_or_predicates(visitor: Visitor) -> None:
    shown = re.sub(r"<[^>]+>", " ", visitor.get("/").text)
    assert "Mira Dahlquist" in shown
    assert "people/mira-dahlquist" not in shown
    assert "lives_in" not in shown


def propose(mine: Settings, tool: str, **arguments: Any) -> int:
    """A write of an agent in review mode; return the id of the proposal."""
    with Brain(mine) as brain:
        called(brain, "config set", key="agent_writes", value="review")
        brain.agent = "codex"
        return int(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write").proposal)


def test_a_proposal_is_accepted_with_one_click(visitor: Visitor, mine: Settings) -> None:
    assert "No proposals" in visitor.get("/review?tab=proposals").text
    id = propose(mine, "memory_put", slug="people/nils", content="# Nils\n\nSails <b>boats</b>.")
    text = visitor.get("/review?tab=proposals").text
    assert "people/nils" in text
    assert "codex" in text
    assert '<div class="added">+Sails &lt;b&gt;boats&lt;/b&gt;.</div>' in text
    visitor.post("/review/proposal", id=id, act="accept", note="Good.")
    assert message(visitor, "/review?tab=proposals") == "1 proposal accepted."
    assert call(mine, "get", slug="people/nils").title == "Nils"


def test_a_proposal_is_rejected_and_a_second_decision_changes_nothing(
    visitor: Visitor, mine: Settings
) -> None:
    id = propose(mine, "memory_put", slug="people/nils", content="# Nils")
    visitor.post("/review/proposal", id=id, act="reject")
    assert message(visitor, "/review?tab=proposals") == "1 proposal rejected."
    visitor.post("/review/proposal", id=id, act="accept")
    assert "Nothing was changed" in message(visitor, "/review?tab=proposals")


def test_all_proposals_are_accepted_except_conflicts(visitor: Visitor, mine: Settings) -> None:
    version = call(mine, "get", slug=MIRA).version
    propose(mine, "memory_put", slug=MIRA, content="# Mira\n\nRewritten.", expected_version=version)
    propose(mine, "memory_put", slug="people/nils", content="# Nils")
    call(mine, "put", slug=MIRA, compiled_truth="# Mira\n\nChanged by hand.")
    text = visitor.get("/review?tab=proposals").text
    assert "2 proposals, oldest first" in text
    visitor.post("/review/proposal", act="accept_all")
    shown = message(visitor, "/review?tab=proposals")
    assert "1 proposal accepted." in shown
    assert "has changed since" in shown
    assert "Changed by hand." in call(mine, "get", slug=MIRA).compiled_truth
    visitor.post("/review/proposal", act="reject_all")
    assert call(mine, "review").total == 0


def test_a_conflict_is_resolved_with_one_click(visitor: Visitor, mine: Settings) -> None:
    assert "No conflicts" in visitor.get("/review?tab=conflicts").text
    text = "# Nils\n\n<!-- conflict: desktop -->\nIn <b>Oslo</b>.\n<!-- or: laptop -->\nIn Rome.\n"
    text += "<!-- end of conflict -->"
    call(mine, "put", slug="people/nils", content=f"---\nconflicts: {{city: {{laptop: [1]}}}}\n---\n{text}")
    shown = visitor.get("/review?tab=conflicts").text
    assert '<pre class="plain">In &lt;b&gt;Oslo&lt;/b&gt;.</pre>' in shown
    assert 'Conflicts <span class="count">2</span>' in shown
    assert "This page has 2 conflicts" in visitor.get("/page/people/nils").text
    form: dict[str, str | int] = {"page": "people/nils", "number": 1, "keep": "laptop"}
    visitor.post("/review/conflict", **form, version=7)
    assert "Nothing was changed" in message(visitor, "/review?tab=conflicts")
    visitor.post("/review/conflict", **form, version=1)
    assert message(visitor, "/review?tab=conflicts").startswith("Resolved.")
    visitor.post("/review/conflict", page="people/nils", number=1, keep="current", version=2)
    page = call(mine, "get", slug="people/nils")
    assert (page.compiled_truth, page.frontmatter) == ("# Nils\n\nIn Rome.", {})
    assert "No conflicts" in visitor.get("/review?tab=conflicts").text


def test_duplicates_are_kept_until_a_page_changes(visitor: Visitor, mine: Settings) -> None:
    assert "Salt beard" in visitor.get("/review?tab=duplicates").text
    stored = call(mine, "dupes", stored=True)
    assert [(pair.slug, pair.other) for pair in stored.pairs] == [
        (pair.slug, pair.other) for pair in call(mine, "dupes").pairs
    ]
    twin = next(pair for pair in stored.pairs if "concepts/salt-beard" in (pair.slug, pair.other))
    page = call(mine, "get", slug="concepts/salt-beard")
    call(
        mine,
        "put",
        slug="concepts/salt-beard",
        content="# Salt beard\n\nOther.",
        expected_version=page.version,
    )
    assert twin not in call(mine, "dupes", stored=True).pairs
    assert "Salt beard" not in visitor.get("/review?tab=duplicates").text
    visitor.post("/review/compare")
    assert message(visitor, "/review?tab=duplicates").startswith("Compared ")


def test_expired_things_are_listed_kept_and_erased(visitor: Visitor, mine: Settings) -> None:
    days_ago = [20.0]
    with Brain(mine, clock=lambda: time.time() - days_ago[0] * 86_400) as brain:
        for slug in ("notes/first", "notes/second"):
            called(brain, "put", slug=slug, content=f"# Expired {slug}")
            called(brain, "expire", slug=slug, **{"for": "2d"})
        days_ago[0] = 10.0
        called(brain, "list")
    text = visitor.get("/review?tab=expired").text
    assert "Expired notes/first" in text
    ids = re.findall(r'name="id" value="(\d+)"><button', text)
    assert len(ids) == 2
    visitor.post("/review/expired", id=ids[0], act="keep")
    assert message(visitor, "/review?tab=expired") == "Kept notes/first."
    assert visitor.post("/review/expired", id=ids[1], act="erase").status_code == 400
    visitor.post("/review/expired", id=ids[1], act="erase", sure="yes")
    assert message(visitor, "/review?tab=expired") == "It is erased."
    assert call(mine, "get", slug=["notes/first"]).title == "Expired notes/first"
    assert "Nothing has expired." in visitor.get("/review?tab=expired").text

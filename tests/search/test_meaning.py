"""Questions answered by meaning too, with a small model that knows a few synonyms."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.search import asking

from quaid.errors import EmbedderUnavailable
from quaid.model.page import build_page
from quaid.search.answer import Answer
from quaid.search.candidates import WORDS_ONLY, MeaningLane, rank_question
from quaid.search.question import find_time_order
from quaid.storage import chunks, embedding_queue, page_edits, vectors
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

NOW = "2026-04-25T12:00:00Z"
SYNONYMS = {"automobile": "car", "vehicle": "car", "physician": "doctor", "ill": "sick"}
Put = Callable[..., int]


class Synonyms:
    """Adds up a direction for each word; words that mean the same have the same."""

    name, dimensions, max_tokens, query_prefix, passage_prefix = "synonyms", 384, 512, "", ""
    problem: str | None = None
    fails = False

    def ready(self) -> str | None:
        return self.problem

    def health(self) -> str | None:
        return self.problem

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        if self.fails:
            raise EmbedderUnavailable(name=self.name, problem="it broke", remedy="Mend it")
        words = [word.strip(".,?#>").lower() for word in text.split()]
        total = np.full(self.dimensions, 0.02)
        for word in words:
            seed = zlib.crc32(SYNONYMS.get(word, word).encode())
            total += np.random.default_rng(seed).standard_normal(self.dimensions) / self.dimensions**0.5
        vector: bytes = (total / np.linalg.norm(total)).astype("<f4").tobytes()
        return vector


def embed(db: Database, model: Synonyms, limit: int = 1_000) -> None:
    db.write(lambda tx: vectors.register_model(tx, model.name, model.dimensions, NOW))
    db.write(lambda tx: vectors.activate_model(tx, model.name))
    wanted = embedding_queue.pending_texts(db, model.name, limit)
    made = model.embed_passages([item.text for item in wanted])
    pairs = [(item.content_hash, vector) for item, vector in zip(wanted, made, strict=True)]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, model.name, pairs, NOW))


@pytest.fixture
def model(put: Put) -> Synonyms:
    put("garage", "The automobile needs new tyres.", wing="home")
    put("clinic", "The physician was away.", wing="health")
    put("garden", "Tulips and roses.", wing="home")
    put("kitchen", "Two pans and a pot.", wing="home")
    return Synonyms()


def ask(db: Database, model: Synonyms, question: str, **options: Any) -> Answer:
    return asking.ask(db, question, model, **options)


def slugs(answer: Answer) -> list[str]:
    return [result.slug for result in answer.results]


def test_paraphrases_are_found(db: Database, model: Synonyms) -> None:
    embed(db, model)
    (first, *_) = ask(db, model, "car doctor sick").results
    assert first.slug in ("garage", "clinic")
    assert first.lane == "meaning"
    assert "near in meaning" in first.reason


def test_both_lanes_say_so(db: Database, model: Synonyms) -> None:
    embed(db, model)
    answer = ask(db, model, "tyres of the car", explain=True)
    assert (answer.results[0].slug, answer.results[0].lane) == ("garage", "both")
    assert answer.lanes[0].meaning_place == answer.lanes[0].words_place == 1
    assert answer.notes == ()


def test_filters_are_applied_inside_the_search_for_meaning(db: Database, model: Synonyms) -> None:
    embed(db, model)
    assert slugs(ask(db, model, "car", filters=SearchFilters(wing="health"))) == ["clinic"]


def test_a_page_that_is_gone_is_not_found_by_meaning(db: Database, model: Synonyms) -> None:
    embed(db, model)
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'garage'", (NOW,)))
    assert "garage" not in slugs(ask(db, model, "car"))


class Stranger(Synonyms):
    """Says that it does not know the words of a question."""

    def familiarity(self, text: str) -> float:
        return 0.0


def test_exact_words_come_first_if_the_model_does_not_know_the_language(db: Database, put: Put) -> None:
    put("words", "An automobile is named in a long list of things that people left behind in the town hall.")
    put("meaning", "vehicle")
    put("neither", "Tulips and roses.")
    for model, first in ((Synonyms(), "meaning"), (Stranger(), "words")):
        embed(db, model)
        assert slugs(ask(db, model, "automobile"))[0] == first


@pytest.mark.parametrize("merge", ["sum", "set-union", "rrf"])
def test_every_merge_strategy_uses_meaning(db: Database, model: Synonyms, merge: str) -> None:
    embed(db, model)
    assert slugs(ask(db, model, "car", strategy=merge))[0] == "garage"


def test_before_anything_is_embedded_words_answer(db: Database, model: Synonyms) -> None:
    answer = ask(db, model, "tyres")
    assert slugs(answer) == ["garage"]
    assert answer.notes[0].startswith("by words only: nothing is embedded yet")


def test_a_model_that_is_not_ready_is_named_even_before_anything_is_embedded(
    db: Database, model: Synonyms
) -> None:
    model.problem = "its package is not installed"
    (note,) = ask(db, model, "tyres").notes
    assert note == "by words only: the model is not available: its package is not installed"


def test_a_model_that_is_not_ready_is_named(db: Database, model: Synonyms) -> None:
    embed(db, model)
    model.problem = "its file is gone"
    assert ask(db, model, "tyres").notes == ("by words only: the model is not available: its file is gone",)


def test_a_model_that_fails_does_not_keep_the_answer_back(db: Database, model: Synonyms) -> None:
    embed(db, model)
    model.fails = True
    answer = ask(db, model, "tyres")
    assert slugs(answer) == ["garage"]
    assert "it broke" in answer.notes[0]


def test_part_that_has_vectors_is_reported(db: Database, model: Synonyms) -> None:
    embed(db, model, limit=2)
    answer = ask(db, model, "tyres tulips physician pans")
    assert "2 of 4 chunks have vectors; `quaid embed` makes the others" in answer.notes
    assert set(slugs(answer)) == {"garage", "clinic", "garden", "kitchen"}


FACTS = """\
# Facts

- Tulips grow in pots
- The automobile stands outside
- The bell is very loud
- ~~The physician lives next door~~
- The physician lives in Lund
"""


def add_notes(db: Database, model: Synonyms, files: dict[str, str]) -> None:
    """Save files of a notebook, and make the vectors of all chunks and entries."""
    db.write(
        lambda tx: tx.execute(
            "INSERT INTO collections (id, name, kind, root_path, created_at, updated_at)"
            " VALUES (2, 'notebook', 'notebook', '/notes', ?1, ?1)",
            (NOW,),
        )
    )
    for slug, text in files.items():
        page = build_page(slug, {}, text, "")
        db.write(
            lambda tx, page=page: page_edits.save(  # type: ignore[misc]
                tx, page, uuid=page.slug, now=NOW, expected_version=None, collection="notebook"
            )
        )
    embed(db, model)
    queue = embedding_queue.EntryQueue(db, model.name)
    texts = queue.texts(queue.missing())
    made = model.embed_passages([item.text for item in texts])
    pairs = [(item.content_hash, vector) for item, vector in zip(texts, made, strict=True)]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, model.name, pairs, NOW))


def test_a_list_is_shown_from_its_nearest_entry_on(db: Database, model: Synonyms) -> None:
    """The entries of a notebook file are unrelated, so only those near the question are shown."""
    add_notes(db, model, {"reference/facts": FACTS})
    facts = next(
        result for result in ask(db, model, "vehicle outside").results if result.origin == "notebook"
    )
    assert facts.text.splitlines()[:2] == ["Facts", "- The automobile stands outside"]
    assert "bell" not in facts.text
    doctor = next(
        result for result in ask(db, model, "where lives the doctor").results if result.origin == "notebook"
    )
    assert doctor.text.splitlines()[1] == "- The physician lives in Lund"


def test_struck_entries_of_a_short_list_are_not_shown_beside_current_ones(
    db: Database, model: Synonyms
) -> None:
    contacts = "# Contacts\n\n- ~~The physician is Ada~~ (2026-04-01)\n- The physician is Bo\n"
    add_notes(db, model, {"reference/contacts": contacts})
    [found] = [result for result in ask(db, model, "doctor").results if result.origin == "notebook"]
    assert "The physician is Bo" in found.text
    assert "Ada" not in found.text


def test_the_notebook_file_with_the_best_entry_comes_first(db: Database, model: Synonyms) -> None:
    errands = "# Doctor\n\n- Pots for the waiting room\n- A bell and two pans\n"
    add_notes(db, model, {"lists/doctor": errands, "reference/facts": FACTS})
    notes = [result for result in ask(db, model, "the doctor lives").results if result.origin == "notebook"]
    assert [result.slug for result in notes] == ["reference/facts", "lists/doctor"]
    assert notes[0].line == "Facts: The physician lives in Lund"


def test_texts_that_are_near_to_every_question_come_later(db: Database, put: Put) -> None:
    """The small text has more in common with the question, but only what all texts have."""
    for number in range(60):
        put(f"talks/{number}", f"Weather talk today one{number} two{number}")
    put("common", "Weather talk today")
    put("rare", "Automobile talk shed door")
    model = Synonyms()
    embed(db, model)
    ranked = rank_question(db, model, "vehicle weather talk", now=NOW)
    assert isinstance(ranked.meaning, MeaningLane)
    nearest = list(ranked.candidates.evidence.lanes[0])
    texts = {row.text.strip(): row.id for row in chunks.load(db, nearest)}
    common, rare = texts["Weather talk today"], texts["Automobile talk shed door"]
    assert nearest.index(rare) < nearest.index(common)
    cosines = ranked.meaning.cosines(nearest)
    assert cosines[rare] < cosines[common]


def test_standing_instructions_are_favoured_for_requests_that_they_apply_to(db: Database, put: Put) -> None:
    for number in range(30):
        put(f"beds/{number}", f"Ann: Tulips and roses grow in bed{number}")
    put("talk", "Ann: Did you never think of a trip by automobile?")
    put("sound", "user: Never sing in the rain.")
    put("rule", "user: From now on plan every trip without an automobile.")
    model = Synonyms()
    embed(db, model)
    favoured = []
    for question in ("Could you plan a trip by vehicle?", "Who did plan a trip by vehicle?"):
        favours = rank_question(db, model, question, now=NOW).candidates.evidence.favours
        texts = {row.text.strip(): favours[row.id] for row in chunks.load(db, list(favours))}
        favoured.append([text for text in sorted(texts, key=lambda text: -texts[text]) if texts[text]])
    rules = ["user: From now on plan every trip without an automobile.", "user: Never sing in the rain."]
    assert favoured == [rules, []]


def test_the_latest_or_first_of_equal_matches_comes_first_if_asked_for(db: Database, put: Put) -> None:
    for month in ("02", "03", "01"):
        put(f"visits/{month}", "The physician came.", title="Visit", date=f"2024-{month}-10")
    model = Synonyms()
    embed(db, model)
    assert slugs(ask(db, model, "latest visit of the doctor"))[0] == "visits/03"
    assert slugs(ask(db, model, "when did the doctor first come"))[0] == "visits/01"
    assert slugs(ask(db, model, "in which order did the physician come?")) == [
        f"visits/{month}" for month in ("01", "02", "03")
    ]


def test_first_and_latest_compare_only_what_is_about_the_subject(db: Database, put: Put) -> None:
    put("talks/1", "Ann: The first thing I said was that dance is fun.", date="2024-01-01")
    put("talks/2", "Ann: I bought a violin.", date="2024-02-01")
    put("talks/3", "Bo: Is the violin of Ann the first thing in the morning?", date="2024-03-01")
    put("talks/4", "Ann: The violin is sold.", date="2024-04-01")
    put("talks/5", "Ann: The latest news is the dance.", date="2024-05-01")
    model = Synonyms()
    embed(db, model)
    assert slugs(ask(db, model, "What was the first thing Ann said about the violin?"))[0] == "talks/2"
    assert slugs(ask(db, model, "What is the latest news about Ann's violin?"))[0] == "talks/4"


def test_the_latest_within_a_period_is_of_this_period(db: Database, put: Put) -> None:
    for month in ("2023-11", "2024-02", "2024-03", "2025-04"):
        put(f"visits/{month}", "The physician came.", title="Visit", date=f"{month}-10")
    model = Synonyms()
    embed(db, model)
    assert slugs(ask(db, model, "latest visit of the doctor in 2024"))[0] == "visits/2024-03"
    assert slugs(ask(db, model, "latest visit of the doctor in February 2024"))[0] == "visits/2024-02"


def test_within_a_month_the_latest_is_not_searched_for(db: Database, put: Put) -> None:
    put("a", "The physician came.", date="2024-03-02")
    put("b", "The physician came.", date="2024-03-20")
    for period, is_used in (("March 2024", False), ("2024", True)):
        ranked = rank_question(db, WORDS_ONLY, f"latest visit of the physician in {period}", now=NOW)
        assert (ranked.order is not None) == is_used


def test_each_thing_whose_order_is_asked_for_is_a_result_and_results_are_by_date(
    db: Database, put: Put
) -> None:
    for day in range(10, 22):
        put(f"log/2024-05-{day}", "Painted the kitchen, sold paint and a door, moved on.")
    put("log/2024-06-03", "Moved to the harbour.")
    put("log/2024-06-02", "Planted seventeen gooseberries.")
    put("log/2024-06-01", "Sold the bicycle.")
    question = "In which order did I move to the harbour, plant gooseberries and sell the bicycle?"
    answer = asking.ask(db, question, limit=4)
    found = [slug for slug in slugs(answer) if slug.startswith("log/2024-06")]
    assert found == ["log/2024-06-01", "log/2024-06-02", "log/2024-06-03"]


def test_dates_in_statements_decide_which_line_is_the_first_or_latest(db: Database, put: Put) -> None:
    put("boat", "- 2026-02-03: hull painted\n- 2026-04-28: hull painted\n- 2025-10-19: hull painted")
    lines = [
        asking.ask(db, question).results[0].line[:10]
        for question in (
            "when was the hull last painted?",
            "when was the hull first painted?",
            "hull painted",
        )
    ]
    assert lines == ["2026-04-28", "2025-10-19", "2026-02-03"]


def test_without_any_date_the_page_saved_last_is_the_latest(db: Database, put: Put) -> None:
    put("a", "The price of oats is 3.")
    put("b", "The price of oats is 4.")
    db.write(lambda tx: tx.execute("UPDATE pages SET updated_at = '2026-05-01T00:00:00Z' WHERE slug = 'a'"))
    for question, slug in (("latest price of oats", "a"), ("earliest price of oats", "b")):
        assert asking.ask(db, question).results[0].slug == slug


def test_pages_without_a_date_that_were_saved_on_one_day_keep_their_order(db: Database, put: Put) -> None:
    put("a", "The price of oats and the price of rye.")
    put("b", "Oats.")
    put("c", "The price of oats, with the price of wheat and of barley.")
    both = [slugs(asking.ask(db, question)) for question in ("latest price of oats", "price of oats")]
    assert both[0] == both[1]


def test_a_page_with_the_name_of_the_question_stays_first(db: Database, put: Put) -> None:
    put("prints", "Woodcuts.", title="Latest prints")
    put("shop", "Prints of the shop, the newest prints of all.", date="2026-04-01")
    assert asking.ask(db, "latest prints").results[0].slug == "prints"


@pytest.mark.parametrize(
    ("question", "kind", "subject"),
    [
        ("When was the boiler last serviced?", "latest", "When was the boiler serviced?"),
        ("What did Ann do last week?", "", ""),
        ("Who came in first place?", "", ""),
        ("What came first, the comet or the radio?", "order", ", the comet or the radio?"),
        ("What was the first thing that Ann said about tea?", "first", "What was the that Ann about tea?"),
        ("What is the latest?", "latest", "What is the latest?"),
    ],
)
def test_words_that_ask_for_the_order_are_not_searched_for(question: str, kind: str, subject: str) -> None:
    order = find_time_order(question)
    assert (order.kind, " ".join(order.subject.split()).lstrip()) == (kind, subject) if order else kind == ""

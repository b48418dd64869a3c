"""Finding turns by their words and by their meaning."""

import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from quaid.app import Brain
from quaid.embedding.backfill import Backfill
from quaid.search.conversations import ConversationSearchRecord, search_turns, search_turns_by_words
from quaid.storage.conversations import NewTurn, TurnBatch


@pytest.fixture
def talk(brain: Brain) -> Brain:
    output = [
        ("user", "Which database shall we take for the archive?"),
        ("assistant", "SQLite: one file, and the archive is easy to carry."),
        ("user", "東京都の図書館はどこですか"),
        ("assistant", "Überall gibt es Bibliotheken, sagt José."),
        ("user", "The file is large."),
    ]
    turns = [NewTurn(role, text, f"2026-04-25T12:00:0{at}Z", "") for at, (role, text) in enumerate(output)]
    batch = TurnBatch("codex", "abc", turns, "Databases", "/p")
    brain.db.write(lambda tx: batch.save(tx, brain.now(), {}, anew=True))
    return brain


def found(brain: Brain, query: str, limit: int = 10) -> list[int]:
    return [hit.turn for hit in search_turns_by_words(brain.db, query, limit)]


def test_a_hit_says_where_and_when_and_who(talk: Brain) -> None:
    (hit,) = search_turns_by_words(talk.db, "carrying SQLite")
    assert hit[:7] == ("codex", "abc", "Databases", "/p", "2026-04-25T12:00:01Z", "assistant", 2)
    assert hit.snippet == "**SQLite**: one file, and the archive is easy to **carry**."
    assert hit.all_words


def test_turns_with_all_words_come_first(talk: Brain) -> None:
    assert found(talk, "archive file")[0] == 2
    assert set(found(talk, "archive file")) == {1, 2, 5}
    assert found(talk, "archive file", 1) == [2]


@pytest.mark.parametrize(
    ("query", "turn"), [("図書館", 3), ("東", 3), ("uberall", 4), ("JOSE", 4), ('"one file"', 2)]
)
def test_every_script_is_found(talk: Brain, query: str, turn: int) -> None:
    assert found(talk, query) == [turn]


@pytest.mark.parametrize(
    "query", ["", " ", "***", "AND OR NOT (", '"', "x" * 1_000_000, "the " * 250_000, "\ud800", "\0"]
)
def test_any_text_is_a_search(talk: Brain, query: str) -> None:
    assert len(search_turns_by_words(talk.db, query)) <= 10


def test_pages_are_not_searched(talk: Brain) -> None:
    from quaid.operations.page_changes import put

    put(talk, "notes/sqlite", "# SQLite\n\nUnmistakable words.")
    assert found(talk, "unmistakable") == []


def test_among_many_turns_the_newest_of_the_common_are_found(brain: Brain) -> None:
    turns = [NewTurn("user", f"common words here and number{at}", "", f"k{at}") for at in range(20_000)]
    brain.db.write(lambda tx: TurnBatch("plain", "x", turns).save(tx, brain.now(), {}, anew=True))
    assert found(brain, "number77") == [78]
    assert len(found(brain, "common words here")) == 10
    assert len(found(brain, "common words elsewhere")) == 10


# By meaning


class Places:
    """A model that knows what a text is about: one direction for each subject, and a little of every word."""

    name, dimensions, max_tokens, query_prefix, passage_prefix = "places", 64, 512, "", ""
    problem: str | None = None
    SUBJECTS = (
        ("boat", "ferry", "ship"),
        ("bread", "oven", "dough"),
        ("sqlite", "database", "archive"),
        ("zebra", "quartz"),
    )

    def ready(self) -> str | None:
        return self.problem

    def health(self) -> str | None:
        return self.problem

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        low = text.lower()
        total = np.full(self.dimensions, 0.02)
        for at, subject in enumerate(self.SUBJECTS):
            total[at] += any(word in low for word in subject)
        for word in set(low.split()):
            total[8 + zlib.crc32(word.encode()) % 56] += 0.05
        vector: bytes = (total / np.linalg.norm(total)).astype("<f4").tobytes()
        return vector


@pytest.fixture
def talks(talk: Brain) -> Brain:
    texts = [f"A remark about nothing special, number {number}." for number in range(60)]
    texts += [
        "We take the ferry at nine.",
        "Sounds good to me, see you there.",
        "I left the dough in the oven.",
    ]
    turns = [
        NewTurn("user", text, f"2026-04-26T12:00:{at % 60:02}Z", str(at)) for at, text in enumerate(texts)
    ]
    talk.db.write(lambda tx: TurnBatch("plain", "xyz", turns).save(tx, talk.now(), {}, anew=True))
    Backfill(talk.db, Places(), talk.now, lambda *_: None).embed_turns()
    return talk


def looked(
    brain: Brain, query: str, limit: int = 10, model: Places | None = None
) -> ConversationSearchRecord:
    return search_turns(brain.db, model or Places(), query, limit, vectors=lambda: brain.turn_vectors)


def test_turn_is_found_by_meaning_without_its_words(talks: Brain) -> None:
    answer = looked(talks, "When does our ship leave?", 3)
    assert (answer.semantic, answer.note) == (True, "")
    hit = answer.hits[0]
    assert (hit.session, hit.turn, hit.snippet) == ("xyz", 61, "We take the ferry at nine.")
    assert (hit.lanes, hit.all_words) == (("meaning",), False)
    assert found_by_words(talks, "When does our ship leave?") == []


def found_by_words(brain: Brain, query: str) -> list[int]:
    return [hit.turn for hit in search_turns_by_words(brain.db, query)]


def test_words_and_meaning_together_come_first(talks: Brain) -> None:
    hits = looked(talks, "the ferry").hits
    assert (hits[0].turn, hits[0].lanes, hits[0].all_words) == (61, ("words", "meaning"), True)
    assert [hit.rank_score for hit in hits] == sorted((hit.rank_score for hit in hits), reverse=True)


def test_absent_topic_is_not_found(talks: Brain) -> None:
    assert looked(talks, "zebra quartz").hits == ()


def test_a_turn_without_a_vector_is_found_by_its_words(talks: Brain) -> None:
    turns = [
        NewTurn("user", "no", "", "a"),
        NewTurn("user", "The zebra was on the ferry, they say.", "", "b"),
    ]
    talks.db.write(lambda tx: TurnBatch("plain", "late", turns).save(tx, talks.now(), {}, anew=True))
    answer = looked(talks, "zebra")
    assert [(hit.session, hit.lanes) for hit in answer.hits[:1]] == [("late", ("words",))]
    assert answer.note.startswith("67 of 68 texts have vectors")


def test_matching_part_of_a_long_turn_is_shown(talks: Brain) -> None:
    text = (
        "Some long story about nothing at all. " * 60
        + "\n\n"
        + "And then the ship sank in the harbour. " * 80
    )
    turns = [NewTurn("user", text, "", "a")]
    talks.db.write(lambda tx: TurnBatch("plain", "long", turns).save(tx, talks.now(), {}, anew=True))
    Backfill(talks.db, Places(), talks.now, lambda *_: None).embed_turns()
    hits = looked(talks, "boat?").hits
    (hit,) = [hit for hit in hits if hit.session == "long"]
    assert "ship" in hit.snippet
    assert hit.lanes == ("meaning",)


def test_search_without_model_is_by_words_and_reports_why(talks: Brain) -> None:
    away = Places()
    away.problem = "its files are not there"
    answer = looked(talks, "the ferry", model=away)
    assert (answer.hits, answer.semantic) == (tuple(search_turns_by_words(talks.db, "the ferry")), False)
    assert answer.note == "the model is not available: its files are not there"
    none = search_turns(talks.db, "semantic search is off", "the ferry", vectors=lambda: talks.turn_vectors)
    assert (none.hits[0].lanes, none.note) == (("words",), "semantic search is off")


@pytest.mark.parametrize("query", ["", " ", "***", "AND OR NOT (", '"', "x" * 100_000, "\ud800", "\0"])
def test_any_text_is_a_search_by_meaning_too(talks: Brain, query: str) -> None:
    assert len(looked(talks, query).hits) <= 10

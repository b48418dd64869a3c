"""How near a new text is to a page: by the vectors that are there, and only where a model can be asked."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from quaid.brain import Brain
from quaid.errors import EmbedderUnavailable
from quaid.ops import gate
from quaid.store.vectors import Index
from quaid.vaults.embedding import fill
from quaid.vaults.novelty import nearness


class Topics:
    """A model that knows three topics; texts on the same ones have the same vector."""

    name, dimensions, max_tokens, query_prefix, passage_prefix = "topics", 3, 512, "", ""
    problem: str | None = None

    def ready(self) -> str | None:
        return self.problem

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        if self.problem == "":
            raise EmbedderUnavailable(name="topics", problem="it fell over", remedy="Pick it up")
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        counts = [
            float(any(word in text for word in words)) for words in (("boat", "ship"), ("Oslo",), ("red",))
        ]
        length = sum(count * count for count in counts) ** 0.5 or 1.0
        return struct.pack("<3f", *(count / length for count in counts))

    def health(self) -> str | None:
        return None


@pytest.fixture
def model(brain: Brain) -> Topics:
    """A memory with one page that has vectors."""
    put = {
        "slug": "people/bo",
        "content": "# Bo\n\nBo owns a boat in Oslo.\n\n---\n\n- **2026-04-25** — Saw red.",
    }
    gate.call(brain, gate.tool("memory_put"), put, "write")
    topics = Topics()
    fill(brain.db, topics, now=brain.now, progress=brain.progress)
    brain._embedder = topics
    return topics


def near(brain: Brain, truth: str) -> float | None:
    ((page_id,),) = brain.db.rows("SELECT id FROM pages")
    return nearness(brain.db, page_id, truth, lambda: brain.embedder, lambda: Index(brain.db))


def test_the_same_in_other_words_is_near(brain: Brain, model: Topics) -> None:
    assert near(brain, "A ship that lies in Oslo is his.") == pytest.approx(1, abs=0.01)
    assert near(brain, "He paints it red.") == pytest.approx(0, abs=0.01)  # the timeline is not compared


def test_nothing_is_said_without_model_vectors_or_words(brain: Brain, model: Topics) -> None:
    assert near(brain, " ") is None
    for problem in ("not here", ""):
        model.problem = problem
        assert near(brain, "A ship in Oslo.") is None
    model.problem = None
    brain.db.write(lambda tx: tx.execute("DELETE FROM page_embeddings_vec_3"))
    assert near(brain, "A ship in Oslo.") is None


def test_an_ingest_skips_a_truth_that_says_the_same_in_other_words(brain: Brain, model: Topics) -> None:
    def ingest(truth: str, **more: Any) -> Any:
        page = {"slug": "people/bo", "expected_version": 1, "compiled_truth": truth}
        given = {"content": truth, "source_type": "doc", "source_ref": "d", "pages": [page], **more}
        return gate.call(brain, gate.tool("memory_ingest"), given, "write").pages[0]

    assert ingest("A ship that lies near Oslo is his.").truth == "duplicate (1.00)"
    assert ingest("A ship that lies near Oslo is his.", force=True).truth == "written"

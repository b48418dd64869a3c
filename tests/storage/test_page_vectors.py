"""What a whole page means."""

from pathlib import Path

import numpy as np
import pytest

from quaid.model.page import build_page
from quaid.storage import embedding_queue, page_edits, vector_index, vectors
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


def test_a_page_has_the_mean_of_its_chunks(tmp_path: Path) -> None:
    with Database.create(str(tmp_path / "memory.db"), NOW) as db:
        page = build_page("notes/a", {"title": "A"}, "## One\n\nText.\n\n## Two\n\nMore.", "")
        page_id = db.write(lambda tx: page_edits.save(tx, page, uuid="a", now=NOW, expected_version=None)).id
        db.write(lambda tx: vectors.register_model(tx, "small", 4, NOW))
        made = [np.array(item, "<f4").tobytes() for item in ([1, 0, 0, 0], [0, 1, 0, 0])]
        hashes = [text.content_hash for text in embedding_queue.pending_texts(db, "small", 10)]
        db.write(
            lambda tx: vectors.keep_chunk_vectors(tx, "small", list(zip(hashes, made, strict=True)), NOW)
        )
        index = vector_index.ChunkIndex(db)
        query = np.array([1, 0, 0, 0], np.float32)
        assert index.page_cosines("small", query, [page_id, 99]) == {page_id: pytest.approx(0.7071, abs=1e-3)}
        assert index.page_cosines("small", query, [99]) == {}

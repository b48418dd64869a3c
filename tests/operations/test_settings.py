"""Settings, through the gate."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import InvalidArgument, NotFound
from quaid.model import chunker
from quaid.operations import dispatch
from quaid.operations.maintenance import SETTINGS
from quaid.storage import chunks, embedding_queue, vectors

VECTOR = bytes.fromhex("0000803f") * 4


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def test_every_way_of_cutting_can_be_chosen() -> None:
    assert SETTINGS["chunk_strategy"] == chunker.STRATEGIES


def test_another_way_of_cutting_cuts_the_pages_anew(brain: Brain) -> None:
    run(brain, "put", slug="a", content="# A\n\nOne.\n\nTwo.\n\nThree.\n")
    before = brain.db.one("SELECT count(*) FROM chunks")
    run(brain, "config set", key="chunk_strategy", value="paragraph")
    after = brain.db.one("SELECT count(*) FROM chunks")
    assert before is not None
    assert after is not None
    assert after[0] > before[0]
    assert run(brain, "validate").violations == ()


def test_a_setting_that_is_ours_cannot_be_set(brain: Brain) -> None:
    with pytest.raises(InvalidArgument, match="managed by Quaid"):
        run(brain, "config set", key="version", value="9")
    with pytest.raises(NotFound, match="default_token_budget"):
        run(brain, "config get", key="default_token_budgt")


def test_unset_setting_shows_its_default(brain: Brain) -> None:
    brain.settings = brain.settings._replace(environ={})
    assert run(brain, "config get", key="background_embedding").value == "on"
    run(brain, "config set", key="background_embedding", value="off")
    shown = {setting.key: setting.value for setting in run(brain, "config list").value}
    assert shown["background_embedding"] == "off"
    assert set(SETTINGS) <= set(shown)
    with pytest.raises(InvalidArgument, match="on, off"):
        run(brain, "config set", key="background_embedding", value="maybe")


def test_compact_drops_vectors_of_text_that_is_gone_and_keeps_those_of_pages_not_cut_yet(
    brain: Brain,
) -> None:
    for slug in ("a", "b"):
        run(brain, "put", slug=slug, content=f"# {slug}\n\nText of {slug}.")

    def embed(tx: Any) -> None:
        vectors.register_model(tx, "m", 4, "now")
        vectors.activate_model(tx, "m")
        pairs = [(text.content_hash, VECTOR) for text in embedding_queue.pending_texts(brain.db, "m", 10)]
        vectors.keep_chunk_vectors(tx, "m", pairs, "now")

    brain.db.write(embed)
    run(brain, "put", slug="a", content="# a\n\nOther text.")
    row = brain.db.one("SELECT id FROM pages WHERE slug = 'b'")
    assert row
    brain.db.write(lambda tx: chunks.leave_uncut(tx, row[0]))  # as an import leaves it
    done = run(brain, "compact")
    assert done.vectors_dropped == 1
    assert render(done).endswith("Removed 1 vector of deleted text.")
    assert embedding_queue.ChunkQueue(brain.db, "m").coverage() == (1, 2)
    assert run(brain, "compact").vectors_dropped == 0
    assert run(brain, "validate").violations == ()


def test_the_model_is_known_before_the_first_vector_is_made(brain: Brain) -> None:
    assert run(brain, "config get", key="embedding_model").value == "bge-small-en-v1.5"
    assert run(brain, "config get", key="embedding_dimensions").value == "384"
    with pytest.raises(InvalidArgument, match="quaid embeddings use"):
        run(brain, "config set", key="embedding_model", value="other")

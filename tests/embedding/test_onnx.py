"""Folders with ONNX models: what they say of themselves, what is wrong with them, what they give."""

import array
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quaid.embedding import onnx as onnx_models, registry as embedders
from quaid.embedding.registry import EmbedderEnvironment
from quaid.errors import EmbedderUnavailable, InvalidModel

Make = Callable[..., Path]


def numbers(vector: bytes) -> list[float]:
    return list(array.array("f", vector))


def test_a_folder_says_what_it_is(make_folder: Make) -> None:
    folder = make_folder(
        **{
            "1_Pooling__config": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            "sentence_bert_config": {"max_seq_length": 128},
            "config_sentence_transformers": {"prompts": {"query": "q: ", "document": "d: "}},
        }
    )
    description = onnx_models.describe_folder(str(folder), "tiny", {})
    assert (description.dimensions, description.max_tokens, description.pooling) == (8, 128, "cls")
    assert (description.query_prefix, description.passage_prefix) == ("q: ", "d: ")


def test_text_of_a_person_is_placed_above(make_folder: Make) -> None:
    folder = make_folder(config_sentence_transformers={"prompts": {"query": "q: "}})
    description = onnx_models.describe_folder(str(folder), "tiny", {"query_prefix": ""}, "max")
    assert (description.query_prefix, description.pooling) == ("", "max")


def test_without_a_word_it_is_the_mean_and_512_tokens(make_folder: Make) -> None:
    description = onnx_models.describe_folder(
        str(make_folder(tokenizer_config={"model_max_length": 10**30})), "tiny", {}
    )
    assert (description.pooling, description.max_tokens) == ("mean", 512)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last"])
def test_tokens_become_one_vector_of_length_one(
    make_folder: Make, surroundings: EmbedderEnvironment, pooling: str
) -> None:
    description = onnx_models.describe_folder(str(make_folder()), "tiny", {}, pooling)
    model = embedders.open_embedder(description, surroundings)
    together, red, apple = model.embed_passages(["red apple", "red", "apple"])
    assert math.isclose(math.hypot(*numbers(together)), 1, rel_tol=1e-5)
    alone = {"cls": red, "last": apple}.get(pooling)
    assert (together == alone) if alone else together not in (red, apple)


def test_a_folder_in_order_is_healthy_and_one_that_gives_the_same_for_all_is_not(
    make_folder: Make, surroundings: EmbedderEnvironment
) -> None:
    description = onnx_models.describe_folder(str(make_folder()), "tiny", {})
    assert embedders.open_embedder(description, surroundings).health() is None
    # Both texts of the trial begin with a word that the tiny tokenizer does not know.
    dull = embedders.open_embedder(description._replace(pooling="cls"), surroundings)
    assert dull.health() == "it gives one vector for all texts"


def test_a_long_text_is_cut_at_the_last_token(make_folder: Make, surroundings: EmbedderEnvironment) -> None:
    folder = make_folder(sentence_bert_config={"max_seq_length": 16})
    model = embedders.open_embedder(onnx_models.describe_folder(str(folder), "tiny", {}), surroundings)
    cut, whole = model.embed_passages(["red " * 16 + "apple " * 100_000, "red " * 16])
    assert cut == whole


def test_many_texts_in_threads_give_what_each_gives_alone(
    make_folder: Make, surroundings: EmbedderEnvironment
) -> None:
    model = embedders.open_embedder(onnx_models.describe_folder(str(make_folder()), "tiny", {}), surroundings)
    texts = [" ".join(["red", "apple", "tax", "law"][: 1 + at % 4]) for at in range(40)]
    assert model.embed_passages(texts) == [model.embed_passages([text])[0] for text in texts]
    assert model.embed_passages([]) == []


def test_an_empty_text_is_an_error_or_a_vector_but_never_a_crash(
    make_folder: Make, surroundings: EmbedderEnvironment
) -> None:
    model = embedders.open_embedder(onnx_models.describe_folder(str(make_folder()), "tiny", {}), surroundings)
    with pytest.raises(EmbedderUnavailable):
        model.embed_query("")


def test_folders_without_a_model_are_refused(make_folder: Make, tmp_path: Path) -> None:
    def wrong(folder: Path, says: str) -> None:
        with pytest.raises(InvalidModel, match=says):
            onnx_models.describe_folder(str(folder), "x", {})

    wrong(tmp_path / "nowhere", "no such folder")
    (tmp_path / "empty").mkdir()
    wrong(tmp_path / "empty", r"no model\.onnx")
    without = make_folder("without")
    os.remove(without / "tokenizer.json")
    wrong(without, r"no tokenizer\.json")
    garbled = make_folder("garbled")
    (garbled / "onnx" / "model.onnx").write_bytes(b"this is no model")
    wrong(garbled, "it fails")
    torn = make_folder("torn")
    (torn / "tokenizer.json").write_text('{"version": "1.0"')
    wrong(torn, "it fails")
    wrong(make_folder("odd", **{"1_Pooling__config": {"pooling_mode_weightedmean_tokens": True}}), "pooling")
    wrong(make_folder("dense", modules=[{"type": "sentence_transformers.models.Dense"}]), "Dense")
    bad = make_folder("bad")
    (bad / "config.json").write_text("{")
    wrong(bad, r"config\.json is not JSON")


def test_a_folder_that_is_gone_or_changed_is_noticed(
    make_folder: Make, surroundings: EmbedderEnvironment
) -> None:
    folder = make_folder()
    description = onnx_models.describe_folder(str(folder), "tiny", {})
    other = embedders.open_embedder(description._replace(dimensions=16), surroundings)
    assert "8 numbers, not 16" in str(other.health())
    os.remove(folder / "tokenizer.json")
    gone = embedders.open_embedder(description, surroundings)
    assert "tokenizer.json" in str(gone.ready())
    with pytest.raises(EmbedderUnavailable, match=r"no tokenizer\.json.*words alone"):
        gone.embed_query("red")

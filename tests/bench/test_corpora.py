"""The readers of other people's formats, on small files, and the way from a file to a figure."""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bench import __main__ as program, corpora, retrieval
from bench.asking import WAYS, ask_all, memory
from bench.vectors import Kept


class Letters:
    """A model that knows only which words there are."""

    name, dimensions, max_tokens, query_prefix, passage_prefix = "letters", 64, 512, "", ""

    def ready(self) -> None:
        return None

    def health(self) -> None:
        return None

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        total = np.full(self.dimensions, 0.01)
        for word in text.lower().split():
            seed = list(hashlib.sha256(word.strip("?.,:").encode()).digest()[:8])
            total += np.random.default_rng(seed).normal(size=self.dimensions)
        return bytes((total / np.linalg.norm(total)).astype("<f4").tobytes())


@pytest.fixture
def beir(tmp_path: Path) -> str:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    texts = {"d1": "Herons fish in shallow water.", "d2": "Zinc grows dendrites.", "d3": "Rain fell all day."}
    lines = [
        {"_id": item, "title": "T" if item == "d1" else "", "text": text} for item, text in texts.items()
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    asked = {"q1": "where do herons fish?", "q2": "zinc dendrites", "q3": "nobody judged this"}
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": item, "text": text}) for item, text in asked.items()), encoding="utf-8"
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t0\nq2\td2\t1\nq2\tgone\t1\nq3\td1\t0\n",
        encoding="utf-8",
    )
    return str(folder)


@pytest.fixture
def long_mem_eval(tmp_path: Path) -> str:
    path = tmp_path / "longmemeval_s.json"
    record = {
        "question_id": "x",
        "question_type": "single-session-user",
        "question": "Which bird did I see?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I saw a bird, a heron."},
                {"role": "assistant", "content": "Nice."},
            ],
            [{"role": "user", "content": "My car needs oil."}],
        ],
        "answer_session_ids": ["s1"],
    }
    unanswered = {**record, "question_id": "y", "answer_session_ids": []}
    path.write_text(json.dumps([record, unanswered]), encoding="utf-8")
    return str(path)


def test_a_folder_in_beirs_format_is_read(beir: str) -> None:
    corpus = corpora.beir(beir)
    assert [page.slug for page in corpus.pages] == ["documents/0", "documents/1", "documents/2"]
    assert [page.truth for page in corpus.pages][1] == "Zinc grows dendrites."
    assert corpus.asks == [
        corpora.Ask("where do herons fish?", {"documents/0": 2.0, "documents/2": 0.0}),
        corpora.Ask("zinc dendrites", {"documents/1": 1.0}),
    ]


def test_a_long_mem_eval_file_is_read(long_mem_eval: str) -> None:
    (corpus,) = corpora.long_mem_eval(long_mem_eval)
    assert [page.frontmatter["date"] for page in corpus.pages] == ["2023-05-20", "2023-05-21"]
    assert corpus.pages[0].truth == "user: I saw a bird, a heron.\n\nassistant: Nice."
    assert corpus.now == "2023-05-30"
    assert corpus.asks == [corpora.Ask("Which bird did I see?", {"sessions/0": 1.0}, "single-session-user")]


def test_given_data_is_asked_by_every_way(
    beir: str,
    long_mem_eval: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Kept, "open", lambda: Kept(Letters(), str(tmp_path / "kept.db")))
    result = retrieval.given(beir, quick=False) | retrieval.given(long_mem_eval, quick=True)
    assert result["tiny ndcg@10"] == result["longmemeval_s.json ndcg@10"] == 1.0
    assert len(result) == 2 * len(WAYS)
    output = capsys.readouterr().out
    for way in WAYS:
        assert f"| {way}" in output
    assert "default above the better of words and meaning" in output


def test_dated_facts_and_locomo_are_read_as_pages(tmp_path: Path) -> None:
    talk = {
        "session_1": [
            {"speaker": "A", "dia_id": "D1:1", "text": "Hi."},
            {"speaker": "B", "dia_id": "D1:2", "text": "Ho."},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    questions = [{"question": "Who?", "evidence": ["D1:2"], "category": 4}, {"question": "?", "category": 5}]
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([{"conversation": talk, "qa": questions}]), encoding="utf-8")
    ((turns, sessions),) = corpora.locomo(str(path))
    assert turns.asks == [corpora.Ask("Who?", {"sessions/1#3": 1.0}, "4")]
    assert sessions.asks == [corpora.Ask("Who?", {"sessions/1": 1.0}, "4")]
    assert (turns.pages[0].title, turns.now) == ("Session 1, 8 May 2023", "2023-05-08")
    few = corpora.diary(people=2, entries=6)
    with memory(few, Letters()) as db:
        assert len(ask_all(few, db, Letters())) == len(few.asks) > 0


def test_an_archive_of_pages_is_read_and_asked_by_its_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "docs.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {
            "en/Pods.md": "---\ntitle: Pods\ndescription: What runs your containers together.\n---\n# Pods\n\nText.",
            "en/plain.md": "# Plain\n",
            "en/picture.png": "no text",
        }.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    pages = corpora.kubernetes(str(path))
    assert [(page.slug, page.title) for page in pages] == [("en/pods", "Pods"), ("en/plain", "Plain")]
    corpus = corpora.described(pages)
    assert corpus.asks == [corpora.Ask("What runs your containers together.", {"en/pods": 1.0})]


def test_oblique_cues_are_turns_of_the_conversation(tmp_path: Path) -> None:
    def session(number: int) -> list[dict[str, str]]:
        return [
            {"speaker": name, "dia_id": f"D{number}:{at}", "text": "Hi."} for at, name in enumerate("ABA", 1)
        ]

    talk = {f"session_{number}": session(number) for number in range(1, 13)}
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"conversation": talk, "qa": []}]))
    turns, _ = next(iter(corpora.locomo(str(path))))
    rows = [row.split("\t") for row in Path(corpora.CUES).read_text().splitlines()]
    for number in range(5):
        corpus = corpora.planted(turns, number)
        texts = {page.slug: page.truth.split("\n") for page in corpus.pages}
        assert len(corpus.asks) == len(rows) // corpora.PLANTED_IN
        for ask, (cue, _, later) in zip(corpus.asks, rows[12 * number :], strict=False):
            slug, _, line = next(iter(ask.gains)).partition("#")
            assert ask.text == later
            assert texts[slug][int(line) - 1] == f"A: {cue}"


@pytest.fixture
def chat_folder(tmp_path: Path) -> str:
    chat = tmp_path / "chats" / "100K" / "1"
    (chat / "probing_questions").mkdir(parents=True)
    turns = [
        {"id": 7, "role": "user", "content": "I saw a heron\nat the lake.", "time_anchor": "March-15-2024"},
        {"id": 8, "role": "assistant", "content": "Nice."},
    ]
    later = [{"id": 9, "role": "user", "content": "My car needs oil."}]
    batches = [{"batch_number": 1, "turns": [turns]}, {"batch_number": 2, "turns": [later]}]
    (chat / "chat.json").write_text(json.dumps(batches))
    questions = {
        "information_extraction": [{"question": "Where was the heron?", "source_chat_ids": [7]}],
        "knowledge_update": [
            {"question": "What does the car need?", "source_chat_ids": {"original": [8], "updated": [9]}}
        ],
        "abstention": [{"question": "Who is the mayor?"}, {"question": "Why?", "source_chat_ids": [99]}],
    }
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions))
    (tmp_path / "chats" / "empty").mkdir()
    return str(tmp_path / "chats")


def test_chats_are_read_turn_by_turn(chat_folder: str) -> None:
    (corpus,) = corpora.chats(chat_folder)
    assert corpus.name == "100K/1"
    assert [page.truth for page in corpus.pages] == [
        "user: I saw a heron at the lake.\n\nassistant: Nice.",
        "user: My car needs oil.",
    ]
    assert [page.frontmatter["date"] for page in corpus.pages] == ["2024-03-15", "2024-03-15"]
    assert [(ask.category, dict(ask.gains)) for ask in corpus.asks] == [
        ("information_extraction", {"sessions/0#1": 1.0}),
        ("knowledge_update", {"sessions/0#3": 1.0, "sessions/1#1": 1.0}),
    ]


def test_public_data_is_measured_alone(
    beir: str,
    chat_folder: str,
    long_mem_eval: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Kept, "open", lambda: Kept(Letters(), str(tmp_path / "kept.db")))
    options = ["--beir", beir, "--chats", chat_folder, "--longmemeval", long_mem_eval]
    monkeypatch.setattr("sys.argv", ["bench.retrieval", *options])
    retrieval.main()
    output = capsys.readouterr().out
    for heading in ("tiny, 2 questions", "chats, 2 questions", "longmemeval_s.json, 1 questions"):
        assert heading in output
    assert "LoCoMo" not in output
    assert "knowledge_update (1)" in output


@pytest.mark.parametrize("option", ["--beir", "--chats", "--longmemeval", "--data"])
def test_data_that_is_missing_is_named(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, option, "/nowhere") == 2
    assert capsys.readouterr().err == f"bench.retrieval: {option} /nowhere: there is no such file or folder\n"


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["bench", "retrieval", *arguments])
    return program.main()


def test_data_in_another_format_is_named_in_one_line(
    beir: str,
    long_mem_eval: str,
    chat_folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Kept, "open", lambda: Kept(Letters(), str(tmp_path / "kept.db")))
    empty, broken = tmp_path / "nothing", tmp_path / "broken.jsonl"
    empty.mkdir()
    broken.write_text('{"question": ')
    queries = Path(beir) / "queries.jsonl"
    queries.write_text(queries.read_text() + "\n{broken")
    [record, _] = json.loads(Path(long_mem_eval).read_text())
    del record["answer_session_ids"]
    Path(long_mem_eval).write_text(json.dumps([record]))
    (questions,) = Path(chat_folder).rglob("probing_questions.json")
    questions.write_text('{"abstention": ["Who?"]}')
    for arguments, problem in {
        ("--beir", str(empty)): f"{empty / 'corpus.jsonl'}: no such file or directory",
        ("--beir", beir): f"{queries}: line 4 is not JSON",
        ("--longmemeval", str(broken)): f"{broken}: not JSON",
        ("--longmemeval", long_mem_eval): f"{long_mem_eval}: a record has no 'answer_session_ids'",
        ("--chats", chat_folder): f"{questions}: a record is not in the format",
        ("--chats", str(empty)): f"{empty} has no question with evidence",
        ("--beir",): "--beir needs a path",
        ("--beir", "--quick"): "--beir needs a path",
        ("--quik",): "there is no option --quik",
        ("--guide",): "--guide needs a path",
    }.items():
        assert _run(monkeypatch, *arguments) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert error.count("\n") == 1


def test_help_names_the_options_for_public_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "--help") == 0
    output = capsys.readouterr().out
    assert all(option in output for option in retrieval.PUBLIC)

"""Captures of outside sources: stubs, limits of excerpts, complete files and URLs."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.kb.users import Person

from quaid.errors import FileTrouble, InvalidArgument, LintFailed
from quaid.kb import edits

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 8


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person("init")
    return person


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/manual.pdf")
            self.end_headers()
            return
        known = {"/manual.pdf": ("application/pdf", PNG), "/post": ("text/html", b"<p>Words.</p>\n")}
        if self.path not in known:
            self.send_error(404)
            return
        kind, data = known[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as there:
        thread = threading.Thread(target=there.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{there.server_port}"
        there.shutdown()
        thread.join()


def quoted(ann: Person, path: str) -> str:
    """The excerpt of a stub."""
    text = (ann.root / path).read_text(encoding="utf-8")
    return text.partition("#+begin_quote\n")[2].partition("\n#+end_quote")[0]


@pytest.mark.parametrize(
    "text",
    [
        "知識は力なり" * 4_000,
        "https://example.org/" + "a" * 40_000,
        "QUJD" * 20_000,
        "Short. " + "知" * 20_000,
        "ไทย" * 10_000,
    ],
    ids=["japanese", "address", "base64", "a word and then none", "thai"],
)
def test_text_without_spaces_is_cut_between_characters(ann: Person, text: str) -> None:
    done = ann("capture", source="https://example.org/a", excerpt=text)
    excerpt = quoted(ann, done["path"])
    assert done["cut"]
    assert text.startswith(excerpt)
    assert edits.MAX_EXCERPT_BYTES - 8 <= len(excerpt.encode()) <= edits.MAX_EXCERPT_BYTES
    assert "�" not in excerpt
    assert ann.is_sound()


def test_text_with_spaces_is_cut_between_words(ann: Person) -> None:
    text = "extraordinarily " * 1_500
    excerpt, cut = edits.limit_excerpt(text)
    assert cut
    assert set(excerpt.split(" ")) == {"extraordinarily"}
    assert edits.limit_excerpt("知識") == ("知識", False)


def test_a_character_of_several_code_points_is_not_cut() -> None:
    family = "👨\u200d👩\u200d👧"
    for padding in range(30):
        text = "x" * padding + family * 2_000
        excerpt, _ = edits.limit_excerpt(text)
        assert not excerpt.endswith("\u200d")
        assert not text[len(excerpt) :].startswith("\u200d")


@pytest.mark.parametrize("data", [PNG, b"caf\xe9 " * 50, b"%PDF-1.4\n" + bytes(range(128, 256)) * 50])
def test_a_binary_is_refused_without_full(ann: Person, data: bytes) -> None:
    (ann.home / "picture.png").write_bytes(data)
    before = ann.everything()
    with pytest.raises(FileTrouble) as error:
        ann("capture", source="picture.png")
    assert "--full" in str(error.value)
    assert "--excerpt" in str(error.value)
    assert ann.everything() == before


@pytest.mark.parametrize("source", ["", " "])
def test_a_capture_needs_a_source(ann: Person, source: str) -> None:
    with pytest.raises(InvalidArgument, match="source: is empty"):
        ann("capture", source=source, full=True)


def test_utf_16_is_text(ann: Person) -> None:
    (ann.home / "notes.txt").write_bytes("Words über words.".encode("utf-16"))
    assert quoted(ann, ann("capture", source="notes.txt")["path"]) == "Words über words."


def test_a_whole_file_has_a_stub_with_address_day_and_title(ann: Person) -> None:
    (ann.home / "Manual.pdf").write_bytes(PNG)
    done = ann("capture", source="Manual.pdf", full=True, title="The manual", excerpt="Chapter 3 matters.")
    stub = (ann.root / done["path"]).read_text()
    assert stub.startswith(
        "#+title: The manual\n#+source: Manual.pdf\n#+retrieved: 2026-04-25\n#+file: raw/files/"
    )
    assert f"#+file: {done['file']}\n" in stub
    assert quoted(ann, done["path"]) == "Chapter 3 matters."
    assert (ann.root / done["file"]).read_bytes() == PNG
    assert done["path"].endswith("-the-manual.org")
    assert set(ann.by_git("show", "--name-only", "--format=").split()) == {done["path"], done["file"]}
    assert ann("curate", dry_run=True)["report"]["raw_unused"] == [done["path"]]
    ann.remember("Manual", source=done["path"])
    assert ann("curate", dry_run=True)["report"]["raw_unused"] == []
    assert ann.is_sound()


def test_a_whole_address_is_fetched(ann: Person, server: str) -> None:
    for path, name, data in (("/manual.pdf", "manual.pdf", PNG), ("/post", "post.html", b"<p>Words.</p>\n")):
        done = ann("capture", source=server + path, full=True, title=f"From {name}")
        stub = (ann.root / done["path"]).read_text()
        assert f"#+title: From {name}\n#+source: {server}{path}\n#+retrieved: 2026-04-25\n" in stub
        assert done["file"].endswith(f"-{name}")
        assert (ann.root / done["file"]).read_bytes() == data
    moved = ann("capture", source=f"{server}/moved", full=True)
    assert (ann.root / moved["file"]).read_bytes() == PNG
    assert ann.is_sound()


def test_an_address_that_does_not_answer_changes_nothing(ann: Person, server: str) -> None:
    before = ann.everything()
    for source in (f"{server}/nothing", "http://127.0.0.1:1/x", "http://ann:hunter2@127.0.0.1:1/x"):
        with pytest.raises(FileTrouble) as error:
            ann("capture", source=source, full=True)
        assert "--file" in str(error.value)
        assert "hunter2" not in str(error.value)
    for source in ("file:///etc/passwd", "ftp://example.org/x"):
        with pytest.raises(InvalidArgument, match="--file"):
            ann("capture", source=source, full=True)
    assert ann.everything() == before


def test_offline_the_whole_source_of_an_address_comes_from_a_file(ann: Person) -> None:
    (ann.home / "saved.pdf").write_bytes(PNG)
    source = "https://example.org/manual"
    done = ann("capture", source=source, full=True, file="saved.pdf", title="The manual")
    assert f"#+source: {source}\n" in (ann.root / done["path"]).read_text()
    assert (ann.root / done["file"]).read_bytes() == PNG
    with pytest.raises(InvalidArgument, match="--full"):
        ann("capture", source=source, excerpt="Words.", file="saved.pdf")


def test_a_secret_in_a_whole_file_or_its_address_is_not_committed(ann: Person) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (ann.home / "log.txt").write_text(f"key {token}\n")
    (ann.home / "page.txt").write_text("fine\n")
    before = ann.everything()
    with pytest.raises(LintFailed):
        ann("capture", source="log.txt", full=True)
    with pytest.raises(LintFailed):
        ann("capture", source=f"https://example.org/?token={token}", full=True, file="page.txt")
    assert ann.everything() == before

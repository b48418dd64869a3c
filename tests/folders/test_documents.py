"""Documents in folders, mailboxes and addresses: converted in a child with limits; a bad one costs only itself."""

import contextlib
import io
import os
import re
import resource
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.formats import document_files as files

from quaid.app import Brain
from quaid.errors import FileTrouble, InvalidArgument, QuaidError
from quaid.folders import documents
from quaid.folders.documents import ConversionFailed, Converter
from quaid.operations import dispatch


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "cell.pdf").write_bytes(files.pdf(["Anode.", "Cathode voltage is 3.7 volts."], "Cell design"))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "old.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (folder / "book.epub").write_bytes(files.epub([("Ebb", "Water falls.")]))
    (folder / "mails.mbox").write_bytes(
        files.mbox([files.mail("Hi", "First."), files.mail("Re: Hi", "Second.", 2)])
    )
    (folder / "note.md").write_text("# Note\n\nPlain.\n")
    (folder / "main.py").write_text("print('gooseberry')\n")
    return folder


def test_a_collection_of_documents_has_a_page_for_each_file(brain: Brain, papers: Path) -> None:
    before = {path: path.read_bytes() for path in papers.iterdir()}
    added = run(brain, "collection add", name="papers", path=str(papers), kind="documents")
    assert added.sync.new == 5
    assert sorted((note.path, note.note) for note in added.sync.notes) == [
        ("broken.pdf", "not taken in: it is damaged (no PDF file)"),
        (
            "old.docx",
            "not taken in: it is encrypted, or in the format of Office before 2007; save it as a new file",
        ),
    ]
    assert added.collection.writable is False
    (hit,) = run(brain, "query", question="cathode voltage", limit=1).results
    assert hit.slug == "cell-pdf"
    assert "## Page 2" in hit.content
    assert {path: path.read_bytes() for path in papers.iterdir()} == before
    audit = run(brain, "collection audit", name="papers").differences
    assert [(difference.kind, difference.where) for difference in audit] == [
        ("unreadable", "broken.pdf"),
        ("unreadable", "old.docx"),
    ]


def test_a_document_is_converted_again_only_when_it_changes(brain: Brain, papers: Path) -> None:
    run(brain, "collection add", name="papers", path=str(papers), kind="documents")
    (papers / "cell.pdf").write_bytes(files.pdf(["Lithium."]))
    os.utime(papers / "cell.pdf", ns=(1, 1))
    (papers / "book.epub").unlink()
    sync = run(brain, "collection sync", name="papers").value[0]
    assert (sync.changed, sync.removed, sync.new) == (1, 1, 0)
    assert "Lithium." in run(brain, "get", slug="papers::cell-pdf").compiled_truth


def test_an_import_takes_documents_only_if_asked(brain: Brain, papers: Path) -> None:
    assert run(brain, "import", folder=str(papers)).report.outcomes["new"] == 1
    report = run(brain, "import", folder=str(papers), documents=True).report
    assert (report.outcomes["new"], report.outcomes["failed"]) == (4, 2)
    again = run(brain, "import", folder=str(papers), documents=True).report
    assert (again.outcomes["new"], again.outcomes["unchanged"]) == (0, 5)


def test_documents_are_never_writable(brain: Brain, papers: Path) -> None:
    with pytest.raises(InvalidArgument, match="never written"):
        run(brain, "collection add", name="p", path=str(papers), kind="documents", writable=True)


def test_ingesting_a_document_twice_changes_nothing(brain: Brain, papers: Path) -> None:
    first = run(brain, "ingest", file=str(papers / "cell.pdf"))
    assert (first.written, first.source_page) == (True, "sources/cell")
    assert run(brain, "ingest", file=str(papers / "cell.pdf")).written is False
    page = run(brain, "get", slug="sources/cell")
    assert page.frontmatter["document"] == "cell.pdf"
    with pytest.raises(FileTrouble, match=r"broken\.pdf: the document is damaged"):
        run(brain, "ingest", file=str(papers / "broken.pdf"))


def test_each_mail_of_a_mailbox_becomes_a_page_and_a_grown_one_adds_the_rest(
    brain: Brain, papers: Path
) -> None:
    path = papers / "mails.mbox"
    assert run(brain, "ingest", file=str(path)).notes == ("2 e-mails: 2 new, 0 changed, 0 unchanged",)
    assert run(brain, "ingest", file=str(path)).written is False
    path.write_bytes(path.read_bytes() + files.mbox([files.mail("Late", "Third.", 3)]))
    assert run(brain, "ingest", file=str(path)).notes == ("3 e-mails: 1 new, 0 changed, 2 unchanged",)
    (hit,) = run(brain, "search", query="Third").hits
    assert hit.slug.startswith("sources/mails/2026-04-25-late-")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, brain: Brain) -> None:
    (tmp_path / "pypdfium2.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "a.pdf").write_bytes(files.pdf(["a"]))
    with pytest.raises(FileTrouble, match=r"pip install 'quaid-memory\[documents\]'"):
        run(brain, "ingest", file=str(tmp_path / "a.pdf"))


def test_pictures_are_refused_and_drawings_read(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with pytest.raises(FileTrouble, match="text in pictures is not read"):
        run(brain, "ingest", file=str(tmp_path / "a.png"))
    (tmp_path / "map.svg").write_text("<svg><text>Pier nine</text></svg>")
    assert run(brain, "ingest", file=str(tmp_path / "map.svg")).source_page == "sources/map"
    assert "Pier nine" in run(brain, "get", slug="sources/map").compiled_truth


# Hostile documents


def converted(kind: str, data: bytes) -> str:
    """Return the text or the problem of a document, and check what its child cost."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Converter() as converter:
        # Not ru_maxrss: until the child runs Python, it shares and counts the memory of this process.
        converter._process = converter._start()
        peak = PeakMemory(converter._process.pid)
        try:
            result = next(converter.convert(kind, f"hostile.{kind}", io.BytesIO(data), len(data))).text
        except ConversionFailed as error:
            result = str(error)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 8
    assert 0 < peak.kilobytes() <= 512 * 1024
    return result


class PeakMemory(threading.Thread):
    """Watches the peak of the resident memory of a process until it ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._path = Path(f"/proc/{pid}/status")
        self._peak = 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while found := re.search(r"VmHWM:\s+(\d+) kB", self._path.read_text()):
                self._peak = int(found[1])
                time.sleep(0.002)

    def kilobytes(self) -> int:
        self.join()
        return self._peak


def test_hostile_documents_stay_within_their_limits() -> None:
    assert "nests" in converted("docx", files.docx("<w:p>" * 1_000_000))
    assert "Deep" in converted("html", b"<div>" * 1_000_000 + b"Deep")
    many = converted("pdf", files.pdf(["a"] * 10_000))
    assert many.count("## Page ") == 5_000
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 200 * 1024 * 1024)
        archive.filelist[0].file_size = 10
    assert converted("docx", made.getvalue()).startswith("is damaged")
    assert "more than 10,000 files" in converted("epub", files.zipped({f"{n}": b"" for n in range(10_001)}))


def test_an_endless_mail_is_cut_and_the_next_one_is_read(tmp_path: Path) -> None:
    endless = files.mail("Endless", "word " * 4_000_000)
    data = files.mbox([endless, files.mail("Next", "Text.", 2)])
    with Converter() as converter:
        mails = list(converter.convert("mbox", "a.mbox", io.BytesIO(data), len(data)))
    assert [mail.title for mail in mails] == ["Endless", "Next"]
    assert len(mails[0].text) < 3_600_000


def test_a_sparse_mailbox_without_lines_is_refused_at_once(tmp_path: Path, brain: Brain) -> None:
    path = tmp_path / "zero.mbox"
    with path.open("wb") as file:
        file.truncate(3 * 1024 * 1024 * 1024)
    with pytest.raises(FileTrouble, match="documents may have 2,147,483,648"):
        run(brain, "ingest", file=str(path))


def test_a_document_after_a_hostile_one_is_converted() -> None:
    with Converter() as converter:
        for kind, data in (("pdf", b"no"), ("docx", b"PK\3\4"), ("html", b"<p>Good</p>")):
            try:
                text = next(converter.convert(kind, "a", io.BytesIO(data), len(data))).text
            except ConversionFailed:
                continue
    assert "Good" in text


def test_the_audit_hook_refuses_connections_programs_and_writes(tmp_path: Path) -> None:
    for event, arguments in (
        ("socket.connect", ()),
        ("subprocess.Popen", ()),
        ("open", ("a", "w", os.O_WRONLY)),
    ):
        with pytest.raises(PermissionError):
            documents._refuse(event, arguments)
    documents._refuse("open", ("a", "r", os.O_RDONLY))


# Addresses


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
            return
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        if self.path == "/note.md":
            self.send_response(200)
            self.send_header("Content-Type", "text/markdown")
            self.end_headers()
            self.wfile.write(
                b"---\nslug: people/bob\ntype: person\naliases: [Alice]\nauthor: Eve\n---\nBob.\n"
            )
            return
        self.send_response(200 if self.path == "/tide" else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<title>Tide tables</title><p>High water at noon.")

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def site() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_address_is_fetched_once_and_private_ones_only_if_allowed(brain: Brain) -> None:
    with site() as address:
        with pytest.raises(InvalidArgument, match=r"private address 127\.0\.0\.1; --allow-private"):
            run(brain, "ingest", file=f"{address}/tide")
        record = run(brain, "ingest", file=f"{address}/tide", allow_private=True)
        assert record.source_page == "sources/tide-tables"
        assert run(brain, "get", slug="sources/tide-tables").frontmatter["url"] == f"{address}/tide"
        for path, problem in (("loop", "more than 5 times"), ("away", "not a http"), ("none", "answers 404")):
            with pytest.raises(FileTrouble, match=problem):
                run(brain, "ingest", file=f"{address}/{path}", allow_private=True)


def test_an_import_of_documents_alone_names_the_option(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "a.docx").write_bytes(files.docx(files.paragraph("One.")))
    assert "--documents" in run(brain, "import", folder=str(folder)).next_step
    assert "--documents" not in (run(brain, "import", folder=str(folder), documents=True).next_step or "")


def test_a_text_of_an_address_does_not_choose_name_type_or_aliases(brain: Brain) -> None:
    with site() as address:
        record = run(brain, "ingest", file=f"{address}/note.md", allow_private=True)
    assert record.source_page == "sources/note"
    page = run(brain, "get", slug="sources/note")
    assert page.type == "source"
    assert page.frontmatter["author"] == "Eve"
    assert "aliases" not in page.frontmatter


@pytest.mark.parametrize(
    "host", ["localhost", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "0.0.0.0", "10.1.2.3"]
)
def test_private_addresses_are_refused_before_a_connection(host: str) -> None:
    with pytest.raises(QuaidError, match="private address"):
        documents.fetch(f"http://{host}:9/")

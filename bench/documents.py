"""Documents: a PDF of 300 pages and a mailbox of 10,000 e-mails, converted in the child process and ingested."""

import os
import re
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

from bench.table import show, verdict
from quaid import config
from quaid.app import Brain
from quaid.folders.documents import Converter
from quaid.operations import dispatch

PDF_PAGES, LINES = 300, 45
MAILS, QUICK_MAILS = 10_000, 2_000
MAX_PDF_SECONDS, MAX_PDF_MEGABYTES, MIN_MAILS = 6, 400, 300
WORDS = (
    "harbour crane paint vanadium sister Sunday boat winter ledger north copper letter engine garden".split()
)


def main() -> None:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        pdf, mailbox = os.path.join(folder, "manual.pdf"), os.path.join(folder, "mail.mbox")
        Path(pdf).write_bytes(_pdf())
        count = QUICK_MAILS if quick else MAILS
        with open(mailbox, "wb") as file:
            file.writelines(_mails(count))
        seconds, megabytes = _convert("pdf", pdf)
        mail_seconds, mail_megabytes = _convert("mbox", mailbox)
        ingested = _ingest(folder, mailbox)
    rows = [
        (f"PDF of {PDF_PAGES} pages, CPU s", f"{seconds:.2f}", verdict(seconds, MAX_PDF_SECONDS)),
        ("its child process, peak MB", f"{megabytes:.0f}", verdict(megabytes, MAX_PDF_MEGABYTES)),
        (f"mbox of {count:,} e-mails, converted in a CPU second", f"{count / mail_seconds:,.0f}", ""),
        ("its child process, peak MB", f"{mail_megabytes:.0f}", ""),
        (
            "the same with storing and cutting",
            f"{count / ingested:,.0f}",
            verdict(count / ingested, MIN_MAILS, at_least=True),
        ),
    ]
    show("Documents in the child process", rows, ("document", "figure", "target"))


def _cpu() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _convert(kind: str, path: str) -> tuple[float, float]:
    """Return the CPU seconds of a conversion, with the start of the child, and the peak of its memory in MB."""
    before = _cpu()
    with Converter() as converter, open(path, "rb") as stream:
        converter._process = converter._start()
        peak = PeakMemory(converter._process.pid)
        for document in converter.convert(kind, os.path.basename(path), stream, os.path.getsize(path)):
            assert document.text
    peak.join()
    return _cpu() - before, peak.kilobytes / 1024


class PeakMemory(threading.Thread):
    """Reads the peak of the resident memory of a process until it ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._path, self.kilobytes = Path(f"/proc/{pid}/status"), 0
        self.start()

    def run(self) -> None:
        try:
            while match := re.search(r"VmHWM:\s+(\d+) kB", self._path.read_text()):
                self.kilobytes = int(match[1])
                time.sleep(0.01)
        except OSError:  # the process has ended
            pass


def _ingest(folder: str, mailbox: str) -> float:
    path = os.path.join(folder, "memory.db")
    with Brain(config.read_settings(path, {"HOME": folder}, folder)) as brain:
        brain.create(path)
        before = _cpu()
        dispatch.call(brain, dispatch.find_command("ingest"), {"file": mailbox}, "owner")
        return _cpu() - before


def _line(seed: int) -> str:
    return " ".join(WORDS[(seed * 5 + at * at) % 14] + str((seed + at) % 97) for at in range(10))


def _mails(count: int) -> Iterator[bytes]:
    for number in range(count):
        mail = EmailMessage()
        mail["From"], mail["To"] = "Alice Berg <alice@example.org>", "bob@example.org"
        mail["Subject"], mail["Message-ID"] = f"Letter {number}", f"<{number}@example.org>"
        mail["Date"] = (
            f"Sat, 25 Apr 2026 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        )
        mail.set_content("\n".join(_line(number * 31 + at) for at in range(15)))
        if number % 3 == 0:
            mail.add_alternative(f"<p>{_line(number)}</p>" * 15, subtype="html")
        yield b"From alice@example.org Sat Apr 25 10:00:00 2026\n" + mail.as_bytes() + b"\n"


def _pdf() -> bytes:
    """Return a PDF with text on each page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for page in range(PDF_PAGES):
        lines = "".join(f"({_line(page * LINES + at)}) Tj T*\n" for at in range(LINES))
        stream = f"BT /F1 10 Tf 12 TL 50 750 Td\n{lines}ET".encode()
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            + f" /Contents {len(objects) + 2} 0 R >>".encode()
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {PDF_PAGES} >>".encode()
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    data += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(data)


if __name__ == "__main__":
    main()

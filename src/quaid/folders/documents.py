"""Convert documents in a child process with time and memory limits, and fetch a document from a URL.

The child runs this module. It reads a header and the bytes of a file from its standard input, and writes the
converted documents as frames to its standard output. It cannot open connections, start programs or write
files.
"""

import contextlib
import io
import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from quaid.errors import FileTrouble, InvalidArgument
from quaid.folders import scanner
from quaid.folders.scanner import Folder

if TYPE_CHECKING:
    import http.client
    from subprocess import Popen

MAX_FILE = 100 * 1024 * 1024
MAX_MAILBOX = 2 * 1024 * 1024 * 1024
MAX_CPU_SECONDS = 30
MAX_MAILBOX_CPU_SECONDS = 600
MAX_SECONDS = 120.0
"""Maximum seconds to wait for the next frame from the child."""
MAX_MEMORY = 512 * 1024 * 1024
MAX_FRAME = 16 * 1024 * 1024
SIZE_BYTES = 8
END = b""

REFUSED_EVENTS = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
    "os.rename",
)
"""Prefixes of the Python audit events that abort a conversion."""


class ConversionFailed(OSError):
    """A document could not be converted. `strerror` has the reason."""

    def __init__(self, problem: str) -> None:
        super().__init__(None, problem)
        self.strerror = problem

    def __str__(self) -> str:
        return str(self.strerror)


class ConvertedDocument(NamedTuple):
    title: str
    text: str
    """The document as a Markdown page with front matter."""
    date: str = ""
    message_id: str = ""
    notes: tuple[str, ...] = ()


class Converter:
    """A child process that converts documents one after the other. A failure affects only its own document."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> "Converter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def convert(
        self, kind: str, name: str, stream: IO[bytes], size: int, *, merged: bool = False
    ) -> Iterator[ConvertedDocument]:
        """Yield the documents in a file: a single document, or each e-mail of a mailbox unless `merged`.

        Raise ConversionFailed if the file cannot be converted.
        """
        limit = MAX_MAILBOX if kind == "mbox" else MAX_FILE
        if size > limit:
            raise ConversionFailed(f"has {size:,} bytes; documents may have {limit:,}")
        child = self._process = self._process or self._start()
        header = {"kind": kind, "name": name, "size": size, "merged": merged}
        writer = threading.Thread(target=_send, args=(child, header, stream, size), daemon=True)
        writer.start()
        finished = False
        try:
            while frame := self._frame(child):
                values = json.loads(frame)
                if "problem" in values:
                    raise ConversionFailed(values["problem"])
                yield ConvertedDocument(**{**values, "notes": tuple(values["notes"])})
            finished = True
        finally:
            if not finished:  # the child may still be reading this file
                self.close()
            writer.join()

    def _start(self) -> "Popen[bytes]":
        import subprocess

        # Without -P, Python would also import modules from the current directory of the user.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "quaid.folders.documents"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )

    def _frame(self, child: "Popen[bytes]") -> bytes:
        size = int.from_bytes(self._read(child, SIZE_BYTES), "little")
        return self._read(child, min(size, MAX_FRAME)) if size else END

    def _read(self, child: "Popen[bytes]", size: int) -> bytes:
        assert child.stdout
        data = b""
        deadline = time.monotonic() + MAX_SECONDS
        while len(data) < size:
            if not select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise ConversionFailed(f"was not converted within {MAX_SECONDS:.0f} seconds")
            part = child.stdout.read(size - len(data))
            if not part:
                raise ConversionFailed(_reason(child.wait()))
            data += part
        return data

    def close(self) -> None:
        child, self._process = self._process, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()


def _reason(status: int) -> str:
    import signal

    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"needs more than {MAX_CPU_SECONDS} seconds to convert"
    return f"ended its converter ({f'signal {-status}' if status < 0 else f'status {status}'})"


def _send(child: "Popen[bytes]", header: dict[str, Any], stream: IO[bytes], size: int) -> None:
    """Write a header and the bytes of a file to the child."""
    assert child.stdin
    with contextlib.suppress(OSError, ValueError):  # the child has exited; its status has the reason
        _write_all(child.stdin, json.dumps(header).encode() + b"\n")
        while size and (data := stream.read(min(size, 1 << 20))):
            _write_all(child.stdin, data)
            size -= len(data)
        while size > 0:  # the file became shorter meanwhile
            _write_all(child.stdin, bytes(min(size, 1 << 20)))
            size -= min(size, 1 << 20)


def _write_all(pipe: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[pipe.write(view) :]


class DocumentFolder(Folder):
    """A folder whose documents are read as Markdown pages. The documents themselves are not changed."""

    def __init__(self, root: str, endings: tuple[str, ...]) -> None:
        super().__init__(root, endings)
        self._converter = Converter()

    def __exit__(self, *_: object) -> None:
        self._converter.close()
        super().__exit__()

    def read(self, path: str, largest: int = scanner.LARGEST_FILE) -> bytes:
        """Return the bytes of a page file, or the Markdown of a document."""
        kind = scanner.document_kind(path) if path.lower().endswith(self.endings) else ""
        if not kind:
            return super().read(path, largest)
        data = super().read(path, MAX_FILE)
        if len(data) > MAX_FILE:
            raise ConversionFailed(f"is too large: documents may have {MAX_FILE:,} bytes")
        return self._convert(kind, path, data)

    def _convert(self, kind: str, path: str, data: bytes) -> bytes:
        name = path.rpartition("/")[2]
        if kind in ("text", "code"):  # converted here, without a child process
            return converted_text(kind, name, data).encode()
        documents = self._converter.convert(kind, name, io.BytesIO(data), len(data), merged=True)
        return next(documents).text.encode()


def converted_text(kind: str, name: str, data: bytes) -> str:
    """Return plain text or source code as a Markdown page."""
    from quaid.formats import documents

    try:
        document = next(documents.read(kind, name, io.BytesIO(data)))
    except documents.UnreadableDocument as error:
        raise ConversionFailed(str(error)) from None
    return documents.render(document, _origin(kind, name))


def _origin(kind: str, name: str) -> dict[str, str]:
    room = "mail" if kind in ("eml", "mbox") else "documents"
    return {"document": scanner.printable(name), "format": kind, "room": room}


def detect_kind(name: str, media_type: str, head: bytes) -> str:
    """Return the kind of a document by its first bytes, its media type and its name; "" for other files."""
    by_name = scanner.document_kind(name)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        for mark, kind in ((b"word/", "docx"), (b"ppt/", "pptx"), (b"xl/", "xlsx"), (b"epub+zip", "epub")):
            if mark in head:
                return kind
        return by_name
    if start.startswith(b"begin:vcalendar"):
        return "ics"
    if start.startswith(b"<svg") or (start.startswith(b"<?xml") and name.lower().endswith(".svg")):
        return "svg"
    if head.startswith(b"From ") and b"\n" in head and by_name in ("", "mbox"):
        return "mbox"
    if by_name:
        return by_name
    if start.startswith((b"<!doctype html", b"<html")) or media_type in (
        "text/html",
        "application/xhtml+xml",
    ):
        return "html"
    return "eml" if media_type == "message/rfc822" else ""


# Inside the child process


def run_child() -> None:
    source, sink = os.fdopen(0, "rb"), os.fdopen(1, "wb")
    from quaid.formats import documents

    with contextlib.suppress(ImportError):
        import pypdfium2  # type: ignore[import-untyped]  # noqa: F401 (imported before the hook, because it loads a library)
    sys.addaudithook(_refuse)
    while header := source.readline():
        request = json.loads(header)
        _limit(MAX_MAILBOX_CPU_SECONDS if request["kind"] == "mbox" else MAX_CPU_SECONDS)
        stream = LimitedStream(source, request["size"])
        try:
            _convert(documents, request, stream, sink)
            stream.skip()
        except MemoryError:
            _write_frame(
                sink, {"problem": f"needs more than {MAX_MEMORY // 1024 // 1024} MB of memory to convert"}
            )
            return
        except documents.UnreadableDocument as error:
            _write_frame(sink, {"problem": str(error)})
        except RecursionError:
            _write_frame(sink, {"problem": "nests too deeply"})
        except Exception as error:
            problem = " ".join(f"is damaged ({type(error).__name__}: {error})".split())[:200]
            _write_frame(sink, {"problem": problem})


def _convert(documents: Any, request: dict[str, Any], stream: "LimitedStream", sink: IO[bytes]) -> None:
    kind, name = request["kind"], request["name"]
    source: Any = stream if kind == "mbox" else io.BytesIO(stream.read(-1))
    converted = documents.read(kind, name, source)
    if kind == "mbox" and request["merged"]:
        converted = iter([documents.merge(documents.stem(name), converted)])
    for document in converted:
        parts = list(document.parts)
        text = documents.render(document._replace(parts=parts), _origin(kind, name)) if parts else ""
        front = document.frontmatter
        values = {"title": document.title, "text": text, "notes": document.notes}
        _write_frame(
            sink, {**values, "date": front.get("date", ""), "message_id": front.get("message_id", "")}
        )
    sink.write(bytes(SIZE_BYTES))
    sink.flush()


def _write_frame(sink: IO[bytes], values: dict[str, Any]) -> None:
    data = json.dumps(values).encode()
    sink.write(len(data).to_bytes(SIZE_BYTES, "little") + data)
    if "problem" in values:
        sink.flush()


def _limit(cpu_seconds: int) -> None:
    """Limit the memory of this process and the CPU time of its next conversion, and prevent writes to files."""
    try:
        import resource
    except ImportError:  # not available on this system
        return
    used = int(time.process_time()) + 1
    limits = {
        resource.RLIMIT_CPU: used + cpu_seconds,
        resource.RLIMIT_AS: MAX_MEMORY,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]  # may be lower, and only root can raise it
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"a document must not cause {event}")
    if (
        event == "open"
        and isinstance(arguments[2], int)
        and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    ):
        raise PermissionError("a document must not write files")


class LimitedStream:
    """The bytes of one file in a stream of several files."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int) -> bytes:
        data = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def readline(self, size: int) -> bytes:
        data = self._stream.readline(min(size, self._left))
        self._left -= len(data)
        return data

    def skip(self) -> None:
        while self._left and self.read(1 << 20):
            pass


# Fetching documents from web addresses

FETCH_SECONDS = 30.0
MAX_REDIRECTS = 5


def is_address(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def fetch(address: str, *, allow_private: bool = False) -> tuple[str, str, bytes]:
    """Fetch one document with GET, only from public IP addresses unless `allow_private`.

    Return its name (that of the host if the address names no file), its media type and its bytes. All addresses
    of the host are checked, also after each redirect, and only a checked address is connected to.
    """
    from http.client import HTTPException
    from urllib.parse import unquote, urljoin, urlsplit

    deadline = time.monotonic() + FETCH_SECONDS
    for _ in range(MAX_REDIRECTS + 1):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise FileTrouble(path=address, problem="is not a http or https address without a user name")
        try:
            connection = _connect(address, parts.scheme, parts.hostname, parts.port, deadline, allow_private)
            with contextlib.closing(connection), _closed_at(connection.sock, deadline):
                target = parts.path.replace(" ", "%20") or "/"
                connection.request(
                    "GET",
                    f"{target}?{parts.query}" if parts.query else target,
                    headers={"User-Agent": "quaid", "Accept-Encoding": "identity"},
                )
                answer = connection.getresponse()
                place = answer.headers.get("Location")
                if answer.status in (301, 302, 303, 307, 308) and place:
                    address = urljoin(address, place)
                    continue
                if answer.status != 200:
                    raise FileTrouble(
                        path=address, problem=f"the server answers {answer.status} {answer.reason}"
                    )
                name = unquote(parts.path.rpartition("/")[2]) or parts.hostname
                return name, answer.headers.get_content_type(), _read_answer(answer, address, deadline)
        except (OSError, HTTPException, ValueError) as error:
            problem = f"cannot be fetched ({' '.join(str(error).split()) or type(error).__name__})"
            raise FileTrouble(path=address, problem=problem) from None
    raise FileTrouble(path=address, problem=f"redirects more than {MAX_REDIRECTS} times")


def _connect(
    address: str, scheme: str, host: str, port: int | None, deadline: float, allow_private: bool
) -> "http.client.HTTPConnection":
    """Return a connection to a host. Unless `allow_private`, all IP addresses of the host must be public."""
    import http.client
    from ipaddress import ip_address

    port = port or (443 if scheme == "https" else 80)
    targets = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for target in targets:
        ip = ip_address(target.partition("%")[0])
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if not allow_private and (not ip.is_global or ip.is_multicast):
            problem = f"leads to the private address {ip}; --allow-private permits it"
            raise InvalidArgument(name=address, problem=problem)
    for place, target in enumerate(targets, 1):
        try:
            raw = socket.create_connection((target, port), timeout=max(0.1, deadline - time.monotonic()))
            break
        except OSError:
            if place == len(targets):
                raise
    connection = http.client.HTTPConnection(host, port)
    if scheme == "https":
        import ssl

        raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
    connection.sock = raw
    return connection


@contextlib.contextmanager
def _closed_at(connection: socket.socket, deadline: float) -> Iterator[None]:
    """Shut down a connection at the deadline, however slowly the server responds."""

    def shut() -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read_answer(answer: "http.client.HTTPResponse", address: str, deadline: float) -> bytes:
    data = bytearray()
    while part := answer.read1(1 << 16):
        data += part
        if len(data) > MAX_FILE:
            raise FileTrouble(path=address, problem=f"is larger than {MAX_FILE:,} bytes")
        if time.monotonic() > deadline:
            raise FileTrouble(path=address, problem=f"did not arrive within {FETCH_SECONDS:.0f} seconds")
    return bytes(data)


if __name__ == "__main__":
    run_child()

"""Two kinds of models that cost nothing: a hand-made ONNX folder, and a server in a thread."""

import json
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quaid.embedding.registry import EmbedderEnvironment

WORDS = ["[UNK]", "[CLS]", "red", "apple", "a", "tax", "law", "of", "probe", "."]


def field(number: int, value: int | bytes) -> bytes:
    """One field of a protocol buffer."""

    def varint(rest: int) -> bytes:
        out = b""
        while rest > 127:
            out += bytes([rest & 127 | 128])
            rest >>= 7
        return out + bytes([rest])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def tiny_onnx(width: int) -> bytes:
    """A model of one node: each token's row of a small table."""

    def shape(*dims: int | str) -> bytes:
        parts = [field(1, field(1, d) if isinstance(d, int) else field(2, d.encode())) for d in dims]
        return b"".join(parts)

    def value(name: str, kind: int, *dims: int | str) -> bytes:
        tensor = field(1, kind) + field(2, shape(*dims))
        return field(1, name.encode()) + field(2, field(1, tensor))

    numbers = [((row * 7 + column * 3) % 11) - 5.0 for row in range(len(WORDS)) for column in range(width)]
    table = field(1, len(WORDS)) + field(1, width) + field(2, 1) + field(8, b"table")
    table += field(9, struct.pack(f"<{len(numbers)}f", *numbers))
    node = field(1, b"table") + field(1, b"input_ids") + field(2, b"tokens") + field(4, b"Gather")
    graph = field(1, node) + field(2, b"tiny") + field(5, table)
    graph += field(11, value("input_ids", 7, "batch", "length"))
    graph += field(12, value("tokens", 1, "batch", "length", width))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder as sentence-transformers exports it; further files by name."""

    def make(name: str = "tiny", width: int = 8, **files: Any) -> Path:
        from tokenizers import Tokenizer, models, pre_tokenizers

        folder = tmp_path / name
        (folder / "onnx").mkdir(parents=True)
        (folder / "onnx" / "model.onnx").write_bytes(tiny_onnx(width))
        tokenizer = Tokenizer(
            models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(folder / "tokenizer.json"))
        for file, held in files.items():
            path = folder / (file.replace("__", "/") + ".json")
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(held))
        return folder

    return make


@pytest.fixture
def surroundings(tmp_path: Path) -> EmbedderEnvironment:
    return EmbedderEnvironment(str(tmp_path / "models"), {"KEY": "secret-of-the-test"})


class Server(ThreadingHTTPServer):
    """Answers as `answer` says and remembers what it was asked."""

    daemon_threads = True
    answer: Callable[[str, dict[str, Any]], tuple[int, Any]]
    asked: list[tuple[str, dict[str, Any], dict[str, str]]]
    delay = 0.0
    drip = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.over = threading.Event()
        """Nobody has to wait for an answer any more."""

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of these tests."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body, dict(self.headers)))
        self.server.over.wait(self.server.delay)
        status, held = self.server.answer(self.path, body)
        raw = held if isinstance(held, bytes) else json.dumps(held).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        if status in (301, 302, 307, 308):
            self.send_header("Location", "http://example.org/elsewhere")
        self.end_headers()
        for at in range(0, len(raw), 1 if self.server.drip else len(raw)):
            self.wfile.write(raw[at:] if not self.server.drip else raw[at : at + 1])
            self.wfile.flush()
            self.server.over.wait(0.05 if self.server.drip else 0)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def well(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """What a server in order answers: Ollama's way or OpenAI's, out of order."""
    vectors = [[float(len(text)), 1.0, -2.0] for text in body["input"]]
    if path == "/api/embed":
        return 200, {"model": body["model"], "embeddings": vectors}
    data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return 200, {"object": "list", "data": data[::-1]}


@contextmanager
def serving() -> Iterator[Server]:
    """A server of vectors, in order until somebody gives it another answer."""
    with Server(("127.0.0.1", 0), Handler) as running:
        running.answer = well
        running.asked = []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running

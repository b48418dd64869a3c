"""An HTTP client that loads a server: keep-alive connections that each send one request after the other.

    python -m bench.load ADDRESS TOKEN SECONDS READERS WRITERS < paths.json
    python -m bench.load ADDRESS TOKEN SECONDS crowd TOKEN_OF_CROWD < paths.json

`paths.json` maps the name of a kind of request to its paths, which the readers ask for in turn; {} in a path becomes
a number that no other request has. Writers save new pages. A crowd is one caller with many connections, who asks for
duplicates, sends the longest questions and large bodies, as fast as the server answers, while a person with the other
token asks for all paths every 200 ms. It prints a JSON object: by kind, the wall milliseconds of each answer; the
number of errors, of answers by words only, of requests of the crowd and of those that were refused. It is a separate
process, so that its CPU time is not the server's, and speaks HTTP over plain sockets, because a client
library needs as much CPU time for a request as the server.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator

Request = tuple[str, bytes]
"""The kind of a request, and the request as sent."""

TIMEOUT_SECONDS = 60.0
CROWD, CROWD_DUPES, CROWD_BODIES = 20, 2, 4
"""Connections of a crowd, and how many of them ask for duplicates and send large bodies. The others ask questions."""
PERSON_SECONDS = 0.2


class Load:
    def __init__(self, address: str, token: str) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port = int(port)
        self._head = f"Host: {self.host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        self.taken: dict[str, list[float]] = {}
        self.statuses: dict[str, int] = {}
        self.errors = self.by_words = 0

    def get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()

    def put(self, slug: str) -> bytes:
        return self.post("/api/memory/put", {"slug": slug, "content": "Written under load."})

    def post(self, path: str, arguments: dict[str, str]) -> bytes:
        body = json.dumps(arguments)
        head = f"{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"POST {path} HTTP/1.1\r\n{head}\r\n{body}".encode()

    async def send(self, requests: Iterator[Request], until: float, pause: float = 0.0) -> None:
        """Send requests over one connection, one after the other. Open it again if the server closes it."""
        while time.perf_counter() < until:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            try:
                while time.perf_counter() < until:
                    kind, request = next(requests)
                    began = time.perf_counter()
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        writer.write(request)
                        status = await self._answer(reader)
                    self.taken.setdefault(kind, []).append((time.perf_counter() - began) * 1000)
                    self.statuses[status] = self.statuses.get(status, 0) + 1
                    self.errors += not status.startswith("2")
                    await asyncio.sleep(max(0.0, pause - (time.perf_counter() - began)))
            except (OSError, EOFError):
                self.statuses["closed"] = self.statuses.get("closed", 0) + 1
            finally:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> str:
        """Read a whole response and return its status."""
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        self.by_words += b"by words only" in await reader.readexactly(int(length or b"0"))
        return head.split(b" ", 2)[1].decode()


async def run(load: Load, seconds: float, readers: int, writers: int, paths: dict[str, list[str]]) -> None:
    until = time.perf_counter() + seconds
    reads = [(kind, path) for kind, some in paths.items() for path in some]

    def read(number: int) -> Request:
        kind, path = reads[number % len(reads)]
        return kind, load.get(path.replace("{}", str(number)))

    # Each reader begins elsewhere, and a step that is prime to the number of paths mixes their kinds.
    await asyncio.gather(
        *(load.send(_endless(read, at * 1_000_003, 7), until) for at in range(readers)),
        *(
            load.send(
                _endless(lambda at: ("put", load.put(f"concepts/load-{time.time_ns()}-{at}")), at, writers),
                until,
            )
            for at in range(writers)
        ),
    )


def _endless(make: Callable[[int], Request], first: int, step: int) -> Iterator[Request]:
    number = first
    while True:
        yield make(number)
        number += step


async def run_crowd(person: Load, crowd: Load, seconds: float, paths: dict[str, list[str]]) -> None:
    """Let a crowd send expensive requests from the first second on, and a person ask every PERSON_SECONDS."""
    until = time.perf_counter() + seconds
    body = crowd.post("/api/memory/query", {"query": "x" * 4_000_000})

    def asked(number: int) -> Request:
        words = "".join(f"{number}%20{word.hex()}%20" for word in (os.urandom(4) for _ in range(240)))
        return "question", crowd.get(f"/api/memory/query?query={words}"[:4_000])

    def send(at: int) -> Callable[[int], Request]:
        if at < CROWD_DUPES:
            return lambda _: ("dupes", crowd.get("/api/memory/dupes"))
        return (lambda _: ("body", body)) if at < CROWD_DUPES + CROWD_BODIES else asked

    def one(kind: str, some: list[str]) -> Iterator[Request]:
        return _endless(
            lambda n: (kind, person.get(some[n % len(some)].replace("{}", str(n)))), time.time_ns(), 1
        )

    async def late() -> None:
        await asyncio.sleep(1)
        await asyncio.gather(
            *(person.send(one(kind, some), until, PERSON_SECONDS) for kind, some in paths.items())
        )

    await asyncio.gather(*(crowd.send(_endless(send(at), 0, 1), until) for at in range(CROWD)), late())


def main() -> None:
    address, token, seconds, readers, writers = sys.argv[1:]
    load, paths, crowd = Load(address, token), json.load(sys.stdin), Load(address, writers)
    if readers == "crowd":
        asyncio.run(run_crowd(load, crowd, float(seconds), paths))
    else:
        asyncio.run(run(load, float(seconds), int(readers), int(writers), paths))
    result = {"taken": load.taken, "errors": load.errors, "by_words": load.by_words, "crowd": crowd.statuses}
    print(json.dumps(result))


if __name__ == "__main__":
    main()

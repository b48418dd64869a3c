"""An HTTP client that loads a server: keep-alive connections that each send one request after the other.

    python -m bench.load ADDRESS TOKEN SECONDS READERS WRITERS < paths.json

`paths.json` maps the name of a kind of request to its paths, which the readers ask for in turn; {} in a path becomes
a number that no other request has. Writers save new pages. It prints a JSON object: by kind, the wall milliseconds
of each answer; and the number of errors. It is a process of its own, so that its CPU time is not the server's, and
speaks HTTP over plain sockets, because a client library needs as much CPU time for a request as the server.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator

Request = tuple[str, bytes]
"""The kind of a request, and the request as sent."""

TIMEOUT_SECONDS = 60.0


class Load:
    def __init__(self, address: str, token: str) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port = int(port)
        self._head = f"Host: {self.host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        self.taken: dict[str, list[float]] = {}
        self.errors = 0

    def get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()

    def put(self, slug: str) -> bytes:
        body = json.dumps({"slug": slug, "content": "Written under load."})
        head = f"{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"POST /api/memory/put HTTP/1.1\r\n{head}\r\n{body}".encode()

    async def send(self, requests: Iterator[Request], until: float) -> None:
        """Send requests over one connection, one after the other."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        while time.perf_counter() < until:
            kind, request = next(requests)
            began = time.perf_counter()
            writer.write(request)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                self.errors += not await _is_success(reader)
            self.taken.setdefault(kind, []).append((time.perf_counter() - began) * 1000)
        writer.close()


async def _is_success(reader: asyncio.StreamReader) -> bool:
    """Read a whole response. Return True if its status is 2xx."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return head.split(b" ", 2)[1].startswith(b"2")


async def run(load: Load, seconds: float, readers: int, writers: int, paths: dict[str, list[str]]) -> None:
    until = time.perf_counter() + seconds
    reads = [(kind, path) for kind, some in paths.items() for path in some]

    def read(number: int) -> Request:
        kind, path = reads[number % len(reads)]
        return kind, load.get(path.replace("{}", str(number)))

    def endless(make: Callable[[int], Request], first: int, step: int) -> Iterator[Request]:
        number = first
        while True:
            yield make(number)
            number += step

    # Each reader begins elsewhere, and a step that is prime to the number of paths mixes their kinds.
    await asyncio.gather(
        *(load.send(endless(read, at * 1_000_003, 7), until) for at in range(readers)),
        *(
            load.send(
                endless(lambda at: ("put", load.put(f"concepts/load-{time.time_ns()}-{at}")), at, writers),
                until,
            )
            for at in range(writers)
        ),
    )


def main() -> None:
    address, token, seconds, readers, writers = sys.argv[1:]
    load = Load(address, token)
    asyncio.run(run(load, float(seconds), int(readers), int(writers), json.load(sys.stdin)))
    print(json.dumps({"taken": load.taken, "errors": load.errors}))


if __name__ == "__main__":
    main()

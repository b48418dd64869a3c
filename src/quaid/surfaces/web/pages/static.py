"""The stylesheet, the scripts and the mark: read once, sent with their hash in the address and kept for a year.

Only what lies in the folder `static` when the process starts can be asked for: names are keys here, never paths.
"""

import gzip
from functools import cache
from hashlib import sha256
from os import listdir
from os.path import dirname, join
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = join(dirname(dirname(__file__)), "static")
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}

MARK = "mark.svg"


class Asset(NamedTuple):
    data: bytes
    packed: bytes
    type: str
    digest: str


@cache
def assets() -> dict[str, Asset]:
    found = {}
    for name in sorted(listdir(FOLDER)):
        kind = name.rpartition(".")[2]
        if kind in TYPES:
            with open(join(FOLDER, name), "rb") as file:
                data = file.read()
            found[name] = Asset(
                data, gzip.compress(data, mtime=0), TYPES[kind], sha256(data).hexdigest()[:12]
            )
    return found


def asset(name: str) -> str:
    """Where a file is found; another content has another address."""
    return f"/static/{name}?v={assets()[name].digest}"


async def send(request: Request) -> Response:
    found = assets().get(request.path_params.get("name", MARK))
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    fresh = request.query_params.get("v") == found.digest
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if fresh else "no-cache",
        "ETag": f'"{found.digest}"',
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == f'"{found.digest}"':
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.type)
    return Response(found.data, headers=headers, media_type=found.type)


def routes() -> list[Route]:
    return [Route("/static/{name}", send), Route("/favicon.ico", send)]

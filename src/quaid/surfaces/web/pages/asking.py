"""How pages ask the memory: by the name of an operation, through the crew, with the scope of whoever looks."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl

from starlette.requests import Request

from quaid.errors import QuaidError
from quaid.model import dates
from quaid.operations.registry import Scope

MOST_FIELDS = 100
SECONDS_OF_A_FIGURE = 5.0


class Trouble(NamedTuple):
    """Why a part of a page cannot be shown. It is false where a record is true."""

    told: str
    code: str

    def __bool__(self) -> bool:
        return False


def scope_of(request: Request) -> Scope:
    """What whoever looks may do; the guard has judged it."""
    return cast(Scope, getattr(request.state, "scope", "read"))


def may_write(request: Request) -> bool:
    return scope_of(request) in ("write", "owner")


async def ask(request: Request, command: str, /, **arguments: Any) -> Any:
    """The record of an operation. Arguments that are None are left out; from_ stands for from."""
    given = {key.rstrip("_"): value for key, value in arguments.items() if value is not None}
    return await request.app.state.crew.call(command, given, scope_of(request))


async def attempt(request: Request, command: str, /, **arguments: Any) -> Any:
    """The same for a part of a page: what goes wrong there does not take the page with it."""
    try:
        return await ask(request, command, **arguments)
    except QuaidError as error:
        return Trouble(str(error), error.code)


async def lately(request: Request, command: str, /, **arguments: Any) -> Any:
    """The same for figures of the whole memory, which cost some: a few seconds old, unless a form came in since."""
    kept: dict[tuple[str, str], tuple[float, Any]] = _kept(request)
    key = (f"{command} {arguments}", scope_of(request))
    at, record = kept.get(key, (0.0, None))
    if not record or time.monotonic() - at > SECONDS_OF_A_FIGURE:
        record = await attempt(request, command, **arguments)
        kept[key] = (time.monotonic(), record)
    return record


def _kept(request: Request) -> dict[tuple[str, str], tuple[float, Any]]:
    state = request.app.state
    if not hasattr(state, "lately"):
        state.lately = {}
    found: dict[tuple[str, str], tuple[float, Any]] = state.lately
    return found


def something_changes(request: Request) -> None:
    """From here on figures are asked anew."""
    _kept(request).clear()


async def together(*asked: Coroutine[Any, Any, Any]) -> list[Any]:
    """Several questions at once."""
    return list(await asyncio.gather(*asked))


async def form(request: Request) -> dict[str, str]:
    """The fields of a form. Line ends are those of a file: browsers send CR LF."""
    something_changes(request)
    body = (await request.body()).decode("utf-8", "replace")
    fields = parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    return {name: value.replace("\r\n", "\n") for name, value in fields}


def days_of(request: Request, *names: str) -> tuple[dict[str, str], dict[str, str]]:
    """The days that an address names, and what is to be said at the fields of those that are none."""
    given = {name: request.query_params.get(name, "").strip()[:100] for name in names}
    wrong = {name: text for name, text in given.items() if text and not dates.is_date(text)}
    told = {
        name: f"“{text}” is no day, so it was left out. One is written as 2026-04-25."
        for name, text in wrong.items()
    }
    return {name: "" if name in wrong else text for name, text in given.items()}, told


def number(text: str, otherwise: int = 0) -> int:
    """A whole number that somebody sent, or another one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else otherwise

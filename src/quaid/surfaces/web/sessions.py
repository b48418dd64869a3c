"""Browsers that are logged in to this process. Nothing of it is written down: a new process knows nobody.

The cookie says no name and holds no secret but itself. HttpOnly keeps scripts from it, SameSite=Strict other sites.
The prefix `__Host-` needs TLS, so over plain HTTP on this machine the name carries the port instead: cookies know no
ports, and two servers would take each other's away.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from starlette.responses import Response

MOST = 100
SECONDS = 7 * 24 * 3600.0


class Session(NamedTuple):
    id: str
    csrf: str
    until: float


class Sessions:
    def __init__(self, port: int, secure: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.cookie = "__Host-quaid" if secure else f"quaid-{port}"
        self._secure = secure
        self._clock = clock
        self._open: dict[str, Session] = {}  # by the hash of the cookie, so that looking it up tells nothing

    def begin(self, response: Response) -> Session:
        """Log a browser in with a response. Of too many sessions the oldest ends."""
        secret = secrets.token_urlsafe(32)
        id = hashlib.sha256(secret.encode()).hexdigest()
        session = Session(id, secrets.token_urlsafe(32), self._clock() + SECONDS)
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
        self._open[id] = session
        response.set_cookie(
            self.cookie, secret, path="/", httponly=True, samesite="strict", secure=self._secure
        )
        return session

    def of(self, secret: str) -> Session | None:
        """The session of a cookie."""
        session = self._open.get(hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest())
        if session and session.until < self._clock():
            self.end(session.id)
            return None
        return session

    def end(self, id: str) -> None:
        self._open.pop(id, None)

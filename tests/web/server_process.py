"""A server in a process of its own, on a port that was free."""

import os
import re
import signal
import subprocess
import time
from types import TracebackType
from typing import Self

import httpx
from tests import commands
from tests.mcp.pipes import SOURCE

from quaid.config import Settings
from quaid.operations import service

PATIENCE = 60.0


class Process:
    def __init__(
        self,
        settings: Settings,
        *words: str,
        at: str = "127.0.0.1",
        environ: dict[str, str] | None = None,
        program: tuple[str, ...] = (),
        cold: bool = False,
        port: int = 0,
    ) -> None:
        """Start `quaid` with these words. See `Pipes` for `cold`."""
        self.settings = settings
        home = os.path.dirname(settings.home)
        if os.path.basename(settings.home) != ".quaid":  # the process finds it by its name
            link = os.path.join(home, ".quaid")
            if not os.path.islink(link):
                os.makedirs(settings.home, exist_ok=True)
                os.symlink(settings.home, link)
        self.process = subprocess.Popen(
            [*(program or (commands.program(),)), "--db", settings.db_path, *words, "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "HOME": home,
                "PYTHONPATH": SOURCE,
                "QUAID_BACKGROUND_EMBEDDING": "off",
                **(environ or {}),
                **(commands.ON_ITS_OWN if cold else {}),
            },
        )
        assert self.process.stderr
        self.said = self.process.stderr.readline()
        match = re.search(r"https?://\S+:(\d+)", self.said)
        match = match or re.search(r"for a proxy at \S+:(\d+)", self.said)
        assert match, self.said + self.process.stderr.read()
        self.port = int(match[1])
        self.address = f"http://{at}:{self.port}"
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                httpx.get(self.address + "/health", timeout=5)
                return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def client(self, token: str = "") -> httpx.Client:
        shown = token or service.owner_token(self.settings)
        return httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {shown}"}, timeout=PATIENCE
        )

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """How it ended, and after how many seconds."""
        began = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        return status, time.monotonic() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

"""`quaid web` and `quaid serve --http`: the words of a command line for the server, which is loaded only here."""

import os
from typing import Any

from quaid.config import Settings
from quaid.errors import InvalidArgument


def web(settings: Settings, given: dict[str, Any]) -> int:
    """Serve this machine, and open a browser."""
    from quaid.surfaces.web import serving

    _quiet_numpy()
    return serving.web(settings, _how(settings, given), opens="no_open" not in given)


def serve(settings: Settings, given: dict[str, Any]) -> int:
    """Serve without a browser, perhaps beyond this machine."""
    from quaid.surfaces.web import serving

    _quiet_numpy()
    return serving.http(settings, _how(settings, given))


def _how(settings: Settings, given: dict[str, Any]) -> Any:
    from quaid.mcp import tools
    from quaid.surfaces.web.app import PORT
    from quaid.surfaces.web.serving import LOOPBACK, How

    port = given.get("port", PORT)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65_535:
        raise InvalidArgument(name="--port", problem=f"must be from 0 to 65535, not {port}")
    chosen = given.get("tools") or "core"
    tools.selected_tools(chosen)
    return How(
        port=port,
        bind=given.get("bind", LOOPBACK),
        tls_cert=settings.path(given["tls_cert"]) if given.get("tls_cert") else "",
        tls_key=settings.path(given["tls_key"]) if given.get("tls_key") else "",
        behind_proxy=bool(given.get("behind_proxy")),
        allow_hosts=tuple(given.get("allow_host", ())),
        debug=bool(given.get("debug")),
        readonly=bool(given.get("read_only")),
        tools=chosen,
    )


def _quiet_numpy() -> None:
    # Set before numpy is loaded: its threads go on spinning after each small product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

"""Tokens and the service as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.surfaces.cli.text import table


def _token(record: Any) -> str:
    return (
        f"{record.token}\nThis is the token {record.name} ({record.scope}). It is not shown again; only its hash is"
        f" kept. `quaid token revoke {record.name}` ends it."
    )


def _tokens(record: Any) -> str:
    if not record.tokens:
        return "No tokens were given away. `quaid token create NAME` makes one."
    return table(
        [(each.name, each.scope, each.created_at[:10], f"used {_used(each)}") for each in record.tokens]
    )


def _used(token: Any) -> str:
    return f"on {token.last_used_at[:10]}" if token.last_used_at else "never"


def _revoked(record: Any) -> str:
    return f"Revoked {record.name}; whoever still sends it is refused"


def _daemon(record: Any) -> str:
    if record.done and not record.problem:
        return f"The service is {record.act}: {record.path}"
    gone = record.act == "uninstalled"
    head = "is removed, but the system could not be told" if gone else f"could not be {record.act}"
    lines = [f"The service {head} ({record.problem}): {record.path}"]
    ask = "If it still runs, this ends it; so does logging out:" if gone else "Type this, or log in anew:"
    lines += [ask, *(f"  {each}" for each in record.to_run)] if record.to_run else []
    return "\n".join(lines)


def _status(record: Any) -> str:
    detail = f" ({record.detail})" if record.detail else ""
    return f"{record.state}{detail}" + (f": {record.path}" if record.path else "")


def _logs(record: Any) -> str:
    return "\n".join(record.lines) if record.lines else "Nothing was written yet"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "TokenRecord": _token,
    "TokensRecord": _tokens,
    "TokenRevokeRecord": _revoked,
    "DaemonRecord": _daemon,
    "DaemonStatusRecord": _status,
    "DaemonLogsRecord": _logs,
}

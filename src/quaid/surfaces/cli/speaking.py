"""What a command says, as text: its record, its complaint, and that a page has another slug now.

Knows whether a terminal or a program reads it. Only `notice` writes to a stream, so that a resident process can say
the same.
"""

import json
import sys
from typing import Any

from quaid.errors import QuaidError


def shown(record: Any, as_json: bool, terminal: bool) -> str:
    """A record, for standard output."""
    if as_json:
        from quaid.operations.dispatch import json_value

        return json.dumps(json_value(record), ensure_ascii=False, indent=2) + "\n"
    from quaid.surfaces.cli.render import render

    text = render(record)
    if terminal:
        text = harmless(text)
    return text if text.endswith("\n") or not text else text + "\n"


def aside(asked: Any, record: Any, as_json: bool, terminal: bool) -> str:
    """Lines for standard error beside a record: its warning, the slug and version of the page that is read.

    The version is for a person at a terminal; programs read it with --json. Standard output is the page alone, and
    can be put back as it is.
    """
    warning = getattr(record, "warning", "")
    if warning and not as_json:
        return f"quaid: {harmless(warning)}\n"
    said = _moved(asked, record, as_json)
    if terminal and not as_json and type(record).__name__ == "PageRecord":
        said += f"quaid: {record.slug} is at version {record.version}\n"
    return said


def _moved(asked: Any, record: Any, as_json: bool) -> str:
    found = getattr(record, "slug", None)
    if as_json or hasattr(record, "old_slug") or not (isinstance(asked, str) and isinstance(found, str)):
        return ""
    if asked.rpartition("::")[2] == found.rpartition("::")[2]:
        return ""
    return f"quaid: {asked} is {found} now\n"


def notice(text: str) -> None:
    """Tell on standard error what happened beside the command itself."""
    sys.stderr.write(f"quaid: {harmless(text)}.\n")
    sys.stderr.flush()


def complaint(error: QuaidError, as_json: bool, terminal: bool) -> str:
    """An error, for standard error."""
    if as_json:
        body = {"code": error.code, "message": str(error), **error.facts}
        return json.dumps({"error": body}, ensure_ascii=False, default=str) + "\n"
    over_the_bar = "\r\033[K" if terminal else ""
    return f"{over_the_bar}quaid: {harmless(' '.join(str(error).splitlines()))}\n"


def harmless(text: str) -> str:
    """Text for a terminal: control characters in a page must not move the cursor or rename the window."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)

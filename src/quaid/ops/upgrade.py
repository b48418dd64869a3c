"""Whether there is a newer Quaid: asked only on request, and only where the person says.

Reads a folder of wheels, a file, or an address: one host, one answer, a few seconds. Nothing about this machine or
this memory is sent. Installs nothing: the program that installed Quaid does that.
"""

import json
import os
import re
import sys
from typing import Annotated, NamedTuple

import quaid
from quaid.brain import Brain
from quaid.errors import FileTrouble, InvalidArgument
from quaid.model import plain_text
from quaid.ops.register import Arg, op

PACKAGE = "quaid"
LARGEST = 8 * 1024 * 1024
SECONDS = 10
ACCEPTED = "application/vnd.pypi.simple.v1+json, application/json;q=0.9, text/html;q=0.5"
LINK = r"""<a\b((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>[^<]*"""
CHECKED = ", with the wheel that you fetched and whose SHA-256 you compared"


class UpgradeRecord(NamedTuple):
    current: str
    newest: str | None
    """None: nothing was asked."""
    is_newer: bool
    place: str
    how: str
    """What to do to have another version."""

    @property
    def exit_status(self) -> int:
        return 1 if self.is_newer else 0


@op(
    "owner",
    examples=(
        "quaid upgrade --check --from https://packages.example/simple/",
        "quaid upgrade --check --from ~/Downloads",
    ),
)
def upgrade(
    brain: Brain,
    check: Annotated[bool, Arg("Compare with the newest version at the place that --from names.")] = False,
    from_: Annotated[
        str | None, Arg("A package index, the address of a list, a folder of wheels, or a file.", path=True)
    ] = None,
) -> UpgradeRecord:
    """Say how to upgrade, or (--check --from PLACE) whether there is a newer version. Exits 1 when there is.

    No place is asked by itself: without --from nothing leaves this machine."""
    current, how = quaid.__version__, _how()
    if not check:
        if from_ is not None:
            raise InvalidArgument(name="--from", problem="belongs to --check")
        return UpgradeRecord(current, None, False, "", how)
    if from_ is None:
        places = "an index (https://packages.example/simple/), a folder of wheels or a file"
        raise InvalidArgument(name="--from", problem=f"is needed: {places}; none is asked by itself")
    if "://" in from_:
        place, found = _at_address(from_)
    else:
        place = brain.settings.path(from_)
        found = _on_disk(place)
    best = plain_text.newest_version(found, current)
    if best is None:
        raise FileTrouble(path=place, problem="holds no version of quaid; name another place")
    return UpgradeRecord(current, best, plain_text.is_newer_version(best, current), place, how)


def _on_disk(place: str) -> list[str]:
    """Versions out of a folder's file names, a file's own name, or its text."""
    if os.path.isdir(place):
        return [
            found for name in os.listdir(place) if (found := plain_text.version_in_filename(PACKAGE, name))
        ]
    named = plain_text.version_in_filename(PACKAGE, os.path.basename(place))
    if named:
        return [named]
    try:
        with open(place, "rb") as file:
            return _told(file.read(LARGEST))
    except OSError as error:
        raise FileTrouble(path=place, problem=f"cannot be read: {error.strerror}") from None


def _at_address(address: str) -> tuple[str, list[str]]:
    """Versions that one server tells. A redirect to another one is not followed: nobody named it."""
    from http.client import HTTPException
    from urllib import error, parse, request

    from quaid.kb.repo_policy import mask_urls

    parts = parse.urlsplit(address)
    shown = mask_urls(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgument(name="from", problem="must be an address of http or https, a folder or a file")
    if parts.path.rstrip("/").endswith("/simple"):
        parts = parts._replace(path=parts.path.rstrip("/") + f"/{PACKAGE}/")

    class OnlyThere(request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            there = parse.urlsplit(newurl)
            if (there.scheme, there.netloc) != (parts.scheme, parts.netloc):
                raise FileTrouble(
                    path=shown,
                    problem=f"leads to another place ({there.hostname}); name that one with --from",
                )
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    asked = request.Request(  # noqa: S310 (http and https only, see above)
        parse.urlunsplit(parts), headers={"Accept": ACCEPTED, "User-Agent": PACKAGE}
    )
    try:
        with request.build_opener(OnlyThere()).open(asked, timeout=SECONDS) as answer:
            return shown, _told(answer.read(LARGEST))
    except error.HTTPError as problem:
        raise FileTrouble(path=shown, problem=f"answers with {problem.code} {problem.reason}") from None
    except (error.URLError, OSError, HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise FileTrouble(path=shown, problem=f"does not answer: {reason}") from None


def _told(data: bytes) -> list[str]:
    """Versions out of an index's JSON, its HTML, or a text that is a version."""
    text = data.decode("utf-8", "replace")
    if plain_text.version_key(text):
        return [text.strip()]
    try:
        told = json.loads(text)
    except ValueError:
        text = re.sub(LINK, _unless_yanked, text, flags=re.IGNORECASE)
        return [
            found
            for name in re.findall(r'[^/"<>\s#]+', text)
            if (found := plain_text.version_in_filename(PACKAGE, name))
        ]
    if not isinstance(told, dict):
        return []
    info, files = told.get("info"), told.get("files")
    if isinstance(info, dict) and isinstance(info.get("version"), str):
        return [info["version"]]
    if isinstance(files, list):
        names = [each.get("filename") for each in files if isinstance(each, dict) and not each.get("yanked")]
        return [
            found
            for name in names
            if isinstance(name, str) and (found := plain_text.version_in_filename(PACKAGE, name))
        ]
    listed = told.get("versions", [told.get("version")])
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _unless_yanked(link: "re.Match[str]") -> str:
    """A link of an index as it is, or nothing when its file was taken back; what stands in quotes does not say so."""
    attributes = re.sub(r'"[^"]*"|\'[^\']*\'', "", link[1])
    return "" if "data-yanked" in attributes.lower() else link[0]


def _how() -> str:
    """The way that fits how this Quaid came here, never by its name alone: on an index it may be another's."""
    environment = sys.prefix.replace(os.sep, "/")
    if os.path.exists(os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "start.pyc")):
        called = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else "the old one"
        return f"put the new file in the place of {called}, after `sha256sum --check quaid.sha256`"
    if "/pipx/" in environment:
        return "`pipx install --force quaid-VERSION.whl`" + CHECKED
    if "/uv/tools/" in environment:
        return "`uv tool install --force quaid-VERSION.whl`" + CHECKED
    return f"`{sys.executable} -m pip install --upgrade quaid-VERSION.whl`" + CHECKED

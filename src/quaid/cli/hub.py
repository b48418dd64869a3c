"""The command `quaid hub`: create and serve a hub of shared spaces, and manage its people, devices and audit log."""

import getpass
import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from types import FrameType
from typing import Any

import uvicorn

import quaid
from quaid.cli.commands import listen_options
from quaid.cli.parser import CommandLine, load_settings
from quaid.cli.render import format_table
from quaid.errors import InvalidArgument, NotFound
from quaid.http_server import (
    ListenOptions,
    open_listener,
    server_address,
    stopping_on_signals,
    uvicorn_config,
)
from quaid.hub.direct import SpaceCopies, StoreHub, open_store
from quaid.hub.server import MAX_CONNECTIONS, build_app
from quaid.hub.store import OPERATOR, HubStore
from quaid.spaces.protocol import RIGHTS, InvitationLink, Right, format_link, to_json

DEFAULT_PORT = 4399
STORE_VARIABLE = "QUAID_HUB_STORE"
URL_VARIABLE = "QUAID_HUB_URL"


def run_hub(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Open the store and run an action of `quaid hub`. Return the exit status."""
    action = arguments.pop("action")
    if action not in ACTIONS:
        problem = f"must be one of {', '.join(ACTIONS)}, not {action!r}"
        raise InvalidArgument(name="ACTION", problem=problem)
    run, options = ACTIONS[action]
    wrong = sorted(set(arguments) - {"store", *options})
    if wrong:
        name = "NAME" if wrong[0] == "name" else "--" + wrong[0].replace("_", "-")
        raise InvalidArgument(name=name, problem=f"does not belong to quaid hub {action}")
    place = arguments.get("store") or os.environ.get(STORE_VARIABLE)
    if not place:
        problem = f"is missing; write a file or postgresql://..., or set {STORE_VARIABLE}"
        raise InvalidArgument(name="--store", problem=problem)
    if "://" not in place:
        place = load_settings(line).path(place)
    if action != "serve":
        with closing(open_store(place, create=action == "init")) as store:
            return run(store, line, arguments)
    return run(open_store(place), line, arguments)


def _show(line: CommandLine, value: Any, *text: str) -> int:
    """Print a value as JSON or as lines of text."""
    print(json.dumps(to_json(value), ensure_ascii=False, indent=2) if line.as_json else "\n".join(text))
    return 0


def _hub_url(arguments: dict[str, Any]) -> str:
    default = f"http://127.0.0.1:{DEFAULT_PORT}"
    return str(arguments.get("url") or os.environ.get(URL_VARIABLE) or default)


def _init(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    """Create the first admin and print an invitation. Do nothing if the hub already has an admin."""
    if any(person.is_admin for person in store.people(OPERATOR)):
        text = f"The hub {store.hub_id} exists already; nothing was changed"
        return _show(line, {"hub_id": store.hub_id, "created": False}, text)
    name = arguments.get("name") or getpass.getuser()
    store.add_person(name, is_admin=True)
    return _print_invitation(
        store, line, arguments, name, f"Created the hub {store.hub_id}. Its admin is {name}."
    )


def _invite(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    """Invite a person to the hub or to a space. A new person is added to the hub."""
    name = arguments.get("name")
    if not name:
        raise InvalidArgument(name="NAME", problem="is missing; write the name of the person")
    if name not in {person.name for person in store.people(OPERATOR)}:
        store.add_person(name, is_admin="admin" in arguments)
    elif "admin" in arguments:
        raise InvalidArgument(
            name="--admin", problem=f"{name} is on the hub already; invite an admin by a new name"
        )
    return _print_invitation(store, line, arguments, name, f"Invited {name}.")


def _print_invitation(
    store: HubStore, line: CommandLine, arguments: dict[str, Any], person: str, summary: str
) -> int:
    space = _space_id(store, arguments["space"]) if "space" in arguments else ""
    right: Right = arguments.get("right", "write" if space else "owner")
    if right not in RIGHTS:
        raise InvalidArgument(name="--right", problem=f"must be one of {', '.join(RIGHTS)}, not {right!r}")
    invitation = StoreHub(store, OPERATOR).invite(space, right, person, arguments.get("agent", ""))
    link = format_link(InvitationLink(_hub_url(arguments), invitation.code))
    record = {"hub_id": store.hub_id, "person": person, "link": link, **invitation._asdict()}
    text = (
        summary,
        "On the new device:",
        f"  quaid join '{link}'" if space else f"  quaid share COLLECTION --hub '{link}'",
        "The link works once, within 24 hours. Send it over a channel that only this person reads.",
    )
    return _show(line, record, *text)


def _space_id(store: HubStore, name: str) -> str:
    """Return the id of the space with this name or id."""
    spaces = [space.id for space in store.spaces(OPERATOR) if name in (space.id, space.name)]
    if not spaces:
        raise NotFound(what="space", name=name, hint="`quaid hub spaces` lists all.")
    if len(spaces) > 1:
        raise InvalidArgument(name="--space", problem=f"{name} is the name of several: {', '.join(spaces)}")
    return spaces[0]


def _people(store: HubStore, line: CommandLine, _: dict[str, Any]) -> int:
    people = store.people(OPERATOR)
    rows = [(person.name, "admin" if person.is_admin else "", person.created_at) for person in people]
    return _show(line, people, *format_table(rows))


def _spaces(store: HubStore, line: CommandLine, _: dict[str, Any]) -> int:
    spaces = store.spaces(OPERATOR)
    rows = [
        (space.name, space.id, space.kind, "sealed" if space.sealed else "", f"change {space.last_seq}")
        for space in spaces
    ]
    lines = format_table(rows) or ["There are no spaces yet; `quaid share` makes one"]
    return _show(line, spaces, *lines)


def _devices(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    space = _space_id(store, arguments["space"]) if "space" in arguments else None
    devices = store.devices(OPERATOR, space)
    rows = [
        (
            device.id,
            device.name,
            f"{device.person}'s agent {device.agent}" if device.agent else device.person,
            f"revoked {device.revoked_at}" if device.revoked_at else f"seen {device.last_seen_at or 'never'}",
            f"change {device.acknowledged}" if space and device.acknowledged >= 0 else "",
        )
        for device in devices
    ]
    return _show(line, devices, *format_table(rows))


def _revoke(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    name = arguments.get("name", "")
    devices = [device for device in store.devices(OPERATOR) if name in (device.id, device.name)]
    if len(devices) != 1:
        problem = (
            "several devices have this name; write the id" if devices else "no device has this id or name"
        )
        raise InvalidArgument(name="NAME", problem=f"{problem}: `quaid hub devices` lists them")
    store.revoke_device(OPERATOR, devices[0].id)
    text = f"Revoked {devices[0].name} of {devices[0].person}. What it has copied stays on it."
    return _show(line, {"revoked": devices[0].id}, text)


def _audit(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    """List the audit log or, with --verify, check that its entries were not changed."""
    if "verify" in arguments:
        count, wrong = store.verify_audit()
        text = (
            f"{count:,} entries match"
            if wrong is None
            else f"Entry {wrong} does not match: the log was changed"
        )
        _show(line, {"entries": count, "first_mismatch": wrong}, text)
        return 0 if wrong is None else 4
    space = _space_id(store, arguments["space"]) if "space" in arguments else ""
    entries = store.audit(OPERATOR, space, arguments.get("after", 0), arguments.get("limit", 100))
    rows = [
        (
            entry.number,
            entry.at,
            "/".join(filter(None, (entry.person, entry.agent))),
            entry.action,
            entry.subject,
        )
        for entry in entries
    ]
    return _show(line, entries, *format_table(rows))


def _backup(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    name = arguments.get("name")
    if not name:
        raise InvalidArgument(name="NAME", problem="is missing; write the path of the new file")
    path = load_settings(line).path(name)
    if not hasattr(store, "backup"):
        raise InvalidArgument(name="--store", problem="is in PostgreSQL; back it up with pg_dump")
    store.backup(path)
    return _show(line, {"path": path}, f"Wrote {path}")


def _serve(store: HubStore, line: CommandLine, arguments: dict[str, Any]) -> int:
    """Serve until SIGINT or SIGTERM."""
    settings = load_settings(line)
    options = ListenOptions(arguments.get("port", DEFAULT_PORT), **listen_options(settings, arguments))
    server_address(options, options.port)
    listener = open_listener(options.bind, options.port)
    address = server_address(options, int(listener.getsockname()[1]))
    copies = None
    if "data" in arguments:
        folder = settings.path(arguments["data"])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        copies = SpaceCopies(store, folder, settings.environ)

    def log(text: str) -> None:
        print(f"quaid hub: {text}", file=sys.stderr, flush=True)

    app = build_app(store, address, log, copies)

    class HubServer(uvicorn.Server):
        """A server that ends waiting requests on a signal, because they would delay the shutdown."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.hub.stop_waiting()
            super().handle_exit(sig, frame)

    server = HubServer(uvicorn_config(app, options, MAX_CONNECTIONS))
    print(f"quaid {quaid.__version__}: hub {store.hub_id} at {address.url}", file=sys.stderr, flush=True)
    try:
        with stopping_on_signals(server):
            server.run(sockets=[listener])
    finally:
        if copies is not None:
            copies.close()
        store.close()
    return 0


LISTEN = ("port", "bind", "tls_cert", "tls_key", "behind_proxy", "allow_host")
ACTIONS: dict[str, tuple[Callable[[HubStore, CommandLine, dict[str, Any]], int], tuple[str, ...]]] = {
    "init": (_init, ("name", "url")),
    "serve": (_serve, (*LISTEN, "data")),
    "invite": (_invite, ("name", "url", "space", "right", "agent", "admin")),
    "people": (_people, ()),
    "spaces": (_spaces, ()),
    "devices": (_devices, ("space",)),
    "revoke": (_revoke, ("name",)),
    "audit": (_audit, ("verify", "space", "after", "limit")),
    "backup": (_backup, ("name",)),
}

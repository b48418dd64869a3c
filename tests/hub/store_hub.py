"""Connections to a hub's database without HTTP, for tests and simulations."""

from quaid.hub.direct import StoreHub
from quaid.hub.store import OPERATOR, HubStore
from quaid.spaces.protocol import Change, HubConnection, hash_secret, new_token


def join(store: HubStore, person: str, device: str, is_admin: bool = False) -> StoreHub:
    """Add a person, if new, with a device, and return the connection of the device."""
    if person not in {known.name for known in store.people(OPERATOR)}:
        store.add_person(person, is_admin)
    token = hash_secret(new_token())
    store.add_device(person, device, token)
    caller = store.authenticate(token)
    assert caller is not None
    return StoreHub(store, caller)


def as_connection(hub: StoreHub) -> HubConnection:
    """Show the type checker that StoreHub implements the protocol."""
    return hub


def all_pages(hub: HubConnection, space: str) -> list[Change]:
    """Return the newest revision of each page that is not deleted, in the order of their sequence numbers."""
    page = hub.changes(space, 0, 1_000)
    changes = [*page.changes]
    while not page.is_complete:
        page = hub.changes(space, changes[-1].seq, 1_000)
        changes += page.changes
    return [change for change in changes if not change.deleted and not change.purged]

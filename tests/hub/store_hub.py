"""Connections to a hub's database without HTTP, for tests and simulations."""

from quaid.hub.direct import StoreHub
from quaid.hub.store import OPERATOR, HubStore
from quaid.spaces.protocol import HubConnection, hash_secret, new_token


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

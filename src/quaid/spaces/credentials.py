"""The tokens and keys of this device for shared spaces, in a private file beside the memory, and encryption.

Tokens and keys are never in the database, so that a backup or an export of a memory does not contain them.
"""

import base64
import hashlib
import json
import os
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, InvalidBundle, SealKey
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import os_error, translate_os_errors

KEY_BYTES = 32
NONCE_BYTES = 24
LARGEST_FILE = 1024 * 1024


class HubToken(NamedTuple):
    """The identity and token of this device on a hub."""

    url: str
    token: str
    person: str
    device: str


class Credentials(NamedTuple):
    hubs: dict[str, HubToken]
    """The token for each hub, by hub id."""
    keys: dict[str, str]
    """The keys of sealed spaces in base64, by space id."""


def credentials_path(database_path: str) -> str:
    folder, name = os.path.split(database_path)
    return os.path.join(folder, f"credentials-of-{name}.json")


def read(database_path: str) -> Credentials:
    """Return the credentials of a memory, which are empty if there is no file."""
    path = credentials_path(database_path)
    try:
        with open(path, "rb") as file:
            content: dict[str, Any] = json.loads(file.read(LARGEST_FILE))
        hubs = {hub_id: HubToken(**hub) for hub_id, hub in content["hubs"].items()}
        return Credentials(hubs, dict(content["keys"]))
    except FileNotFoundError:
        return Credentials({}, {})
    except OSError as error:
        raise os_error(path, error) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = "is damaged; remove it and join the shared spaces again with new invitations"
        raise FileTrouble(path=path, problem=problem) from None


def write(database_path: str, credentials: Credentials) -> None:
    """Replace the credentials of a memory. Only the owner of the file can read it."""
    content = {
        "hubs": {hub_id: hub._asdict() for hub_id, hub in credentials.hubs.items()},
        "keys": credentials.keys,
    }
    path = credentials_path(database_path)
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(content, indent=2).encode())


def new_key() -> str:
    """Return a new random key for a sealed space."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode().rstrip("=")


class Seal:
    """Encrypts and decrypts the bundles of a sealed space with XSalsa20-Poly1305 (libsodium's secret box).

    The nonce is a keyed hash of the content, so that equal bundles have equal bytes and a push whose answer was lost
    is recognised. A hub can tell that two revisions are equal, and nothing else about their content.
    """

    def __init__(self, key: str, space: str) -> None:
        self._space = space
        try:
            raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
        except ValueError:
            raw = b""
        if len(raw) != KEY_BYTES:
            what = "damaged" if key else "missing"
            problem = f"its key is {what}; join it with an invitation link, which contains the key"
            raise SealKey(space=space, problem=problem)
        try:
            from nacl.secret import SecretBox
        except ImportError:
            problem = "the package for encryption is missing; install quaid-memory[sealed]"
            raise SealKey(space=space, problem=problem) from None
        self._nonce_key = hashlib.blake2b(b"quaid nonce", key=raw, digest_size=32).digest()
        self._box = SecretBox(raw)

    def seal(self, data: bytes) -> bytes:
        nonce = hashlib.blake2b(data, key=self._nonce_key, digest_size=NONCE_BYTES).digest()
        return bytes(self._box.encrypt(data, nonce))

    def open(self, data: bytes) -> bytes:
        from nacl.exceptions import CryptoError

        try:
            return bytes(self._box.decrypt(data))
        except (CryptoError, ValueError):
            raise InvalidBundle(problem="it cannot be decrypted with the key of this space") from None

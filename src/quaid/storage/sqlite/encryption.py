"""Encrypted memories: find, check and store their keys; encrypt, decrypt and rekey a memory.

An encrypted memory is a file of SQLite3 Multiple Ciphers (scheme chacha20: each page is encrypted with ChaCha20
and authenticated with Poly1305). That scheme stores a salt of 16 bytes in plain text at the start of the file.
Quaid chooses these bytes (the cipher header): four magic bytes, eight bytes of salt, and four bytes that verify
the key. An encrypted memory can therefore be recognised without its key, a wrong key is not mistaken for damage,
and copies can be matched to their key.

To convert a memory, `convert` writes a converted copy beside it, compares both, and renames the copy. If the process
is killed, either the old or the new file is complete. While the copy is made, this process has the only connection to
the memory: it holds the writer lock, in exclusive locking mode, without a WAL.
"""

import hashlib
import hmac
import os
import stat
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from quaid import errors, storage
from quaid.storage import files as durable_files
from quaid.storage.collections import set_image_key
from quaid.storage.files import make_folders, write_file
from quaid.storage.sqlite.connection import (
    APPLICATION_ID,
    NO_WAL_NOTE,
    UNFINISHED_COPY,
    Transaction,
    WriterLock,
    cipher_header,
    connect,
    file_size,
    is_writable,
)
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

KEY_BYTES = 32
SALT_BYTES = 8
CHECK_BYTES = 4
HEADER_BYTES = 16
MAGIC = {b"QMK1": "key", b"QMP1": "passphrase"}
"""The first four bytes of an encrypted memory, and the kind of secret that its key is made from."""
SCRYPT_COST = 2**15
"""scrypt with this cost and r=8 takes 32 MiB and about 0.1 s per guess of a passphrase."""
MAX_KEY_FILE_BYTES = 64 * 1024
KEYRING_SERVICE = "quaid"
KEY_VARIABLE, NEW_KEY_VARIABLE = "QUAID_KEY", "QUAID_NEW_KEY"
INSTALL = "pip install 'quaid-memory[encryption]' && pip install --force-reinstall --no-deps apsw-sqlite3mc"


class CipherHeader(NamedTuple):
    """The first 16 bytes of an encrypted memory: magic bytes, salt, and bytes that verify the key."""

    kind: str
    """"key" for a random key, "passphrase" for a key that is computed from a passphrase."""
    raw: bytes

    @property
    def salt(self) -> bytes:
        return self.raw[4 : 4 + SALT_BYTES]

    @property
    def keyring_name(self) -> str:
        """The name under which the system keyring stores the key of this file."""
        return f"memory {self.salt.hex()}"

    def fits(self, key: bytes) -> bool:
        """Return True if this is the key of the file."""
        return hmac.compare_digest(_check_bytes(key, self.salt), self.raw[4 + SALT_BYTES :])


class CipherKey(NamedTuple):
    """A key, and the header of the files that are encrypted with it."""

    key: bytes
    header: CipherHeader


def parse_header(first: bytes) -> CipherHeader | None:
    """Parse the first bytes of a file. Return None if it is not an encrypted memory."""
    kind = MAGIC.get(first[:4])
    return CipherHeader(kind, first[:HEADER_BYTES]) if kind and len(first) >= HEADER_BYTES else None


def make_key(secret: str) -> CipherKey:
    """Return the key for a new file. A secret of 64 hexadecimal digits is the key; others are passphrases."""
    kind = "key" if _is_raw(secret) else "passphrase"
    magic = next(start for start, name in MAGIC.items() if name == kind)
    salt = os.urandom(SALT_BYTES)
    key = _derive(secret, salt)
    made = CipherKey(key, CipherHeader(kind, magic + salt + _check_bytes(key, salt)))
    _known_keys[made.header.raw] = key
    return made


def _check_bytes(key: bytes, salt: bytes) -> bytes:
    return hmac.digest(key, b"quaid key check" + salt, "sha256")[:CHECK_BYTES]


def _is_raw(secret: str) -> bool:
    return len(secret) == 2 * KEY_BYTES and all(char in "0123456789abcdefABCDEF" for char in secret)


def _derive(secret: str, salt: bytes) -> bytes:
    if _is_raw(secret):
        return bytes.fromhex(secret)
    text = secret.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(text, salt=salt, n=SCRYPT_COST, r=8, p=1, maxmem=2**26, dklen=KEY_BYTES)


_known_keys: dict[bytes, bytes] = {}
"""Cache of keys by cipher header, because deriving a key from a passphrase takes 0.1 s."""


def find_key(path: str, header: CipherHeader) -> bytes:
    """Return the key of an encrypted memory. Raise MissingKey or WrongKey if no source has it.

    Raise NoCipher if the installed apsw cannot read encrypted memories.
    """
    require_cipher(path)
    if header.raw in _known_keys:
        return _known_keys[header.raw]
    tried: list[str] = []
    problems: list[str] = []
    for sources in list(storage.key_sources):
        for name, secret in _secrets(sources, path, header, problems):
            tried.append(name)
            if secret and _is_raw(secret) == (header.kind == "key"):
                key = _derive(secret, header.salt)
                if header.fits(key):
                    _known_keys[header.raw] = key
                    return key
    if tried:
        raise errors.WrongKey(path=path, kind=header.kind, tried=" and ".join(dict.fromkeys(tried)))
    raise errors.MissingKey(
        path=path, kind=header.kind, problem="; ".join(dict.fromkeys(problems)) or "none is set"
    )


def _secrets(
    sources: storage.KeySources, path: str, header: CipherHeader, problems: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield possible keys, each with the name of its source: environment, key file, keyring, terminal."""
    if sources.secret:
        yield KEY_VARIABLE, sources.secret
    if sources.key_file:
        try:
            yield from ((f"the key file {sources.key_file}", key) for key in read_key_file(sources.key_file))
        except errors.QuaidError as error:
            problems.append(str(error).rstrip("."))
    try:
        if stored := _keyring().get_password(KEYRING_SERVICE, header.keyring_name):
            yield "the keyring", stored
    except errors.QuaidError as error:
        if not sources.secret and not sources.key_file:
            problems.append(str(error.facts["problem"]))
    if (
        sources.ask is not None
        and header.kind == "passphrase"
        and os.path.realpath(sources.asked_for) == path
    ):
        yield "the passphrase that you typed", sources.ask(f"Passphrase of {path}: ")


def read_key_file(path: str) -> list[str]:
    """Return the keys in a key file, newest first. Raise FileTrouble if it is unusable or open to other users."""
    try:
        # Without O_NONBLOCK, opening a named pipe that has no writer would block forever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if os.name == "posix" and (not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077):
                problem = "other users can access this key file; run `chmod 600` on it"
                if not stat.S_ISREG(status.st_mode):
                    problem = "the key file is not a plain file; name another file"
                raise errors.FileTrouble(path=path, problem=problem)
            data = file.read(MAX_KEY_FILE_BYTES)
    except FileNotFoundError:
        raise errors.FileTrouble(
            path=path, problem="the key file is missing; restore it, or mount its disk"
        ) from None
    except OSError as error:
        raise errors.FileTrouble(
            path=path, problem=f"the key file cannot be read: {error.strerror}"
        ) from None
    keys = data.decode("utf-8", "replace").split("\n")
    keys = [key.strip("\r") for key in keys if key.strip()]
    if not keys:
        raise errors.FileTrouble(path=path, problem="the key file is empty; restore it")
    return keys[::-1]


def write_key_file(path: str, keys: list[str]) -> None:
    """Replace a key file. `keys` has the newest key first; the file has it last."""
    with translate_os_errors(path):
        make_folders(os.path.dirname(path))
        write_file(path, "".join(f"{key}\n" for key in keys[::-1]).encode())


def store_in_keyring(key: CipherKey) -> str:
    """Store a key in the system keyring, and check that it can be read back. Return the name of the keyring."""
    keyring = _keyring()
    name, text = key.header.keyring_name, key.key.hex()
    try:
        keyring.set_password(KEYRING_SERVICE, name, text)
        stored = keyring.get_password(KEYRING_SERVICE, name)
    except Exception as error:  # each backend has different exceptions
        raise errors.InvalidArgument(name="keyring", problem=f"cannot store the key: {error}") from None
    if stored != text:
        raise errors.InvalidArgument(
            name="keyring", problem="does not return what was stored in it; use --key-file"
        )
    return keyring.name


def _keyring() -> "_QuietKeyring":
    """Return the system keyring. Raise InvalidArgument if the package keyring is missing or has no backend."""
    try:
        keyring: Any = import_module("keyring")
        fail: Any = import_module("keyring.backends.fail")
    except ImportError:
        problem = "the package keyring is not installed"
        raise errors.InvalidArgument(name="keyring", problem=problem) from None
    try:
        backend = keyring.get_keyring()
    except Exception as error:
        raise errors.InvalidArgument(name="keyring", problem=f"cannot be used: {error}") from None
    if isinstance(backend, fail.Keyring):
        raise errors.InvalidArgument(name="keyring", problem="this system has no keyring; use --key-file")
    return _QuietKeyring(backend)


class _QuietKeyring:
    """Wraps a backend of the package keyring. All errors of a read are raised as InvalidArgument."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.set_password = backend.set_password
        self.name = str(getattr(backend, "name", type(backend).__name__))

    def get_password(self, service: str, name: str) -> str:
        try:
            return str(self._backend.get_password(service, name) or "")
        except Exception as error:  # each backend has different exceptions
            raise errors.InvalidArgument(
                name="keyring", problem=f"the keyring cannot be read: {error}"
            ) from None


def can_encrypt() -> bool:
    """Return True if the installed apsw includes SQLite3 Multiple Ciphers."""
    import apsw

    return hasattr(apsw, "mc_version")


def require_cipher(path: str) -> None:
    """Raise NoCipher if the installed apsw cannot read encrypted memories."""
    if not can_encrypt():
        raise errors.NoCipher(path=path, install=INSTALL)


def unlock(connection: "apsw.Connection", key: CipherKey) -> None:
    """Set the key of a new connection, before its first statement. The header is written only to a new file."""
    connection.pragma("cipher", "chacha20")
    connection.pragma("key", f"raw:{key.key.hex()}{key.header.raw.hex()}")


def target_uri(path: str, key: CipherKey | None) -> str:
    """Return the URI for VACUUM INTO that encrypts the copy with `key`, or not at all. It contains the key."""
    secret = f"cipher=chacha20&key=raw:{key.key.hex()}{key.header.raw.hex()}" if key else "key="
    return f"file:{quote(path)}?{secret}"


OTHERS_WAIT_MS = 2000
PROGRESS_STEPS = 20_000

Progress = Callable[[int, int, str], None]


def convert(
    path: str, key: CipherKey | None, progress: Progress, image_key: str = "", *, is_backup: bool = False
) -> None:
    """Replace a memory by a copy encrypted with this key, or by an unencrypted copy if `key` is None.

    `image_key`, the key of the images beside the memory, is stored in an encrypted copy that has none yet. A backup
    is converted without the writer lock, and keeps its modification time. Raise InUse if another process has the
    file open, and ReadOnly if the file or its folder cannot be written.
    """
    path = os.path.realpath(path)
    require_cipher(path)
    if not is_writable(path):
        raise errors.ReadOnly(path=path, problem="the file or its folder is write-protected")
    if is_backup:
        made = os.stat(path)
        _convert(path, key, progress, image_key)
        os.utime(path, ns=(made.st_atime_ns, made.st_mtime_ns))
    else:
        lock = WriterLock(path)
        with lock.held():
            _convert(path, key, progress, image_key)
            lock.note(NO_WAL_NOTE)


def _convert(path: str, key: CipherKey | None, progress: Progress, image_key: str) -> None:
    unfinished = path + UNFINISHED_COPY
    with translate_os_errors(path), translate_sqlite_errors(path):
        durable_files.remove_with_sidecars(unfinished)
        connection = connect(path, writable=True)
        try:
            _exclude_others(connection, path)
            durable_files.make_private_file(unfinished)
            os.chmod(unfinished, os.stat(path).st_mode & 0o777)
            _copy(connection, unfinished, key, progress)
            _compare(connection, unfinished, key.header if key else None, progress)
            if key is not None and image_key:
                _set_image_key(unfinished, image_key)
            connection.close()
            durable_files.rename_durably(unfinished, path)
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
        finally:
            connection.close()


def _set_image_key(path: str, image_key: str) -> None:
    copy = connect(path, writable=True)
    try:
        if copy.one("SELECT 1 FROM sqlite_schema WHERE name = 'quaid_config'"):  # schema 5 has no such table
            set_image_key(copy, image_key)
    finally:
        copy.close()


def _exclude_others(connection: Transaction, path: str) -> None:
    """Merge the WAL into the file, and lock out all other processes. Raise InUse if one has the file open."""
    connection.set_busy_timeout(OTHERS_WAIT_MS)
    try:
        connection.pragma("locking_mode", "EXCLUSIVE")
        if connection.pragma("journal_mode", "DELETE") != "delete":
            raise errors.InUse(path=path)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        raise errors.InUse(path=path) from None


def _copy(connection: Transaction, target: str, key: CipherKey | None, progress: Progress) -> None:
    expected = file_size(connection.filename)

    def report() -> bool:
        progress(min(file_size(target), expected), expected, "Writing the new file")
        return False

    connection.set_progress_handler(report, PROGRESS_STEPS)
    try:
        connection.execute("VACUUM INTO ?", (target_uri(target, key),))
    except apsw.FullError:
        raise errors.DiskFull(path=target) from None
    except (apsw.CantOpenError, apsw.IOError) as error:
        # SQLite's message contains the URI, which includes the key.
        raise errors.FileTrouble(path=target, problem=f"cannot be written ({type(error).__name__})") from None
    finally:
        connection.set_progress_handler(None)


def _compare(
    connection: Transaction, unfinished: str, header: "CipherHeader | None", progress: Progress
) -> None:
    """Raise DamagedDatabase unless the copy is intact and has the right key and as many rows as the memory."""
    progress(0, 1, "Checking the new file")
    if cipher_header(unfinished) != header:
        raise errors.DamagedDatabase(path=unfinished, problem="the copy does not have the new key")
    copy = connect(unfinished, writable=False)
    try:
        checked = copy.execute("PRAGMA integrity_check(1)").fetchall()
        if checked != [("ok",)]:
            raise errors.DamagedDatabase(path=unfinished, problem=str(checked[0][0]))
        tables = connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        for (table,) in tables:
            counts = [each.one(f'SELECT count(*) FROM "{table}"') for each in (connection, copy)]  # noqa: S608
            if counts[0] != counts[1]:
                raise errors.DamagedDatabase(path=unfinished, problem=f"the copy lacks rows of {table}")
        if copy.pragma("application_id") != APPLICATION_ID:
            raise errors.DamagedDatabase(path=unfinished, problem="the copy lacks the mark of a memory")
        progress(1, 1, "Checking the new file")
    finally:
        copy.close()

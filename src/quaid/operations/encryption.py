"""Encrypt a memory with its backups and images, decrypt it, and change its key."""

import json
import os
import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

from quaid import config
from quaid.app import Brain
from quaid.errors import FileTrouble, InvalidArgument, QuaidError
from quaid.folders import attachments
from quaid.operations.registry import Arg, op
from quaid.storage import collections, files as durable_files
from quaid.storage.sqlite import backup as backups, encryption
from quaid.storage.sqlite.connection import cipher_header
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.encryption import CipherKey


class EncryptionRecord(NamedTuple):
    path: str
    act: str
    """"encrypted", "decrypted", "rekeyed", or "" if the memory itself was not changed."""
    key: str
    """The location of the key, or "" after a decryption."""
    backups: tuple[str, ...]
    """Backups that were converted together with the memory."""
    images: int
    """Number of converted images of the memory and its backups."""
    left: tuple[str, ...]
    """Unencrypted files that may contain text of the memory."""
    note: str = ""


KeyFile = Annotated[
    str | None, Arg("Keep the key in this file, which is created if it is missing.", path=True)
]
Passphrase = Annotated[bool, Arg("Compute the key from a passphrase, which is asked for.")]
FromEnvironment = Annotated[bool, Arg("Take the key from QUAID_KEY (rekey: QUAID_NEW_KEY).")]


@op(
    "owner",
    examples=("quaid encrypt", "quaid encrypt --key-file ~/.config/quaid.key", "quaid encrypt --passphrase"),
)
def encrypt(
    brain: Brain,
    key_file: KeyFile = None,
    passphrase: Passphrase = False,
    environment: FromEnvironment = False,
) -> EncryptionRecord:
    """Encrypt the memory, its backups beside it and in ~/.quaid/backups, and the images beside them.

    The key is a new random one in the keyring of your system; --key-file, --passphrase or --environment choose
    another place. If the key is lost, the memory is lost. Stop all servers first. Your own files are not encrypted:
    attached folders, notebooks, knowledge bases and exports. The old file is deleted, but a disk may keep its blocks
    for a while. If a backup was left without encryption, run the command again. Needs quaid-memory[encryption]."""
    path = os.path.realpath(brain.settings.db_path)
    chosen = (key_file, passphrase, environment)
    old = cipher_header(path)
    encryption.require_cipher(path)
    _check_choice(*chosen)
    _ = brain.db  # checks the memory, and migrates it before its backups are listed
    image_key = collections.read_image_key(brain.db) or os.urandom(encryption.KEY_BYTES)
    if old is not None:
        if any(chosen):
            raise InvalidArgument(
                name="encrypt", problem="the memory is encrypted already; `quaid rekey` changes its key"
            )
        key, place = encryption.CipherKey(encryption.find_key(path, old), old), "unchanged"
    else:
        key, place = _new_key(brain, "QUAID_KEY", *chosen)
    copies = [copy for copy in _copies(brain, path) if cipher_header(copy) is None]
    if old is None:
        brain.close()
        encryption.convert(path, key, brain.progress, image_key.hex())
    done = _convert_copies(brain, copies, key, image_key)
    images = sum(attachments.reseal_images(file, image_key, is_encrypted=True) for file in (path, *done))
    collections.write_folder_list(brain.db)
    return EncryptionRecord(
        path, "" if old else "encrypted", place, done, images, _plain_files(brain, path, copies, done)
    )


@op(
    "owner",
    examples=("quaid rekey", "quaid rekey --passphrase", "QUAID_NEW_KEY=… quaid rekey --environment"),
)
def rekey(
    brain: Brain,
    key_file: KeyFile = None,
    passphrase: Passphrase = False,
    environment: FromEnvironment = False,
) -> EncryptionRecord:
    """Give an encrypted memory and its backups a new key, or keep the key in another place.

    Without an option, the new key is in the same place as the old one. Older copies elsewhere still need the old key,
    so it is not deleted from the keyring or the key file. Stop all servers first."""
    path = os.path.realpath(brain.settings.db_path)
    _check_choice(key_file, passphrase, environment)
    old = _require_encrypted(path, "rekey")
    old_key = encryption.find_key(path, old)
    if not (key_file or passphrase or environment):
        passphrase = old.kind == "passphrase"
        current = brain.settings.key_file
        if current and old_key.hex() in encryption.read_key_file(current):
            key_file = current
    key, place = _new_key(brain, "QUAID_NEW_KEY", key_file, passphrase, environment, old_key)
    copies = [copy for copy in _copies(brain, path) if cipher_header(copy) is not None]
    brain.close()
    encryption.convert(path, key, brain.progress)
    done = _convert_copies(brain, copies, key, None)
    collections.write_folder_list(brain.db)
    left = tuple(copy for copy in copies if copy not in done)
    note = f"{', '.join(left)} still need the old key" if left else ""
    return EncryptionRecord(path, "rekeyed", place, done, 0, (), note)


@op("owner", examples=("quaid decrypt",))
def decrypt(brain: Brain) -> EncryptionRecord:
    """Store the memory without encryption again, with the images beside it.

    Its backups stay encrypted, and the key stays where it is. Stop all servers first."""
    path = os.path.realpath(brain.settings.db_path)
    image_key = collections.read_image_key(brain.db)
    if cipher_header(path) is None and image_key is None:
        _require_encrypted(path, "decrypt")
    brain.close()
    if cipher_header(path) is not None:
        encryption.convert(path, None, brain.progress)
    images = attachments.reseal_images(path, image_key, is_encrypted=False)
    brain.db.write(collections.delete_image_key)
    collections.write_folder_list(brain.db)
    kept = [copy for copy in _copies(brain, path) if cipher_header(copy) is not None]
    note = f"keep the key: {', '.join(kept)} need it" if kept else ""
    return EncryptionRecord(path, "decrypted", "", (), images, (), note)


def _require_encrypted(path: str, command: str) -> encryption.CipherHeader:
    header = cipher_header(path)
    if header is None:
        raise InvalidArgument(
            name=command, problem="the memory is not encrypted; `quaid encrypt` encrypts it"
        )
    return header


def _check_choice(key_file: str | None, passphrase: bool, environment: bool) -> None:
    if sum((key_file is not None, passphrase, environment)) > 1:
        raise InvalidArgument(
            name="key", problem="has one place: --key-file, --passphrase or --environment, not several"
        )


def _copies(brain: Brain, path: str) -> list[str]:
    return backups.all_copies_of(path, brain.settings.backup_folders)


def _convert_copies(
    brain: Brain, copies: list[str], key: "CipherKey", image_key: bytes | None
) -> tuple[str, ...]:
    """Convert backups and return the converted ones. Damaged and read-only backups are skipped."""
    done = []
    for copy in copies:
        try:
            encryption.convert(
                copy, key, brain.progress, image_key.hex() if image_key else "", is_backup=True
            )
        except QuaidError as error:
            if error.code == "cancelled":
                raise
            continue
        done.append(copy)
    return tuple(done)


def _plain_files(brain: Brain, path: str, copies: list[str], done: tuple[str, ...]) -> tuple[str, ...]:
    """Return unencrypted files that may contain text: backups, unsaved edits, and the WAL of a deleted
    memory.
    """
    files = [copy for copy in copies if copy not in done]
    folder, name = os.path.split(path)
    files += [
        os.path.join(folder, entry)
        for entry in sorted(os.listdir(folder))
        if entry.startswith(f"{name}-wal-of-deleted")
    ]
    edits = os.path.join(brain.settings.home, "edits")
    if os.path.isdir(edits):
        files += [os.path.join(edits, entry) for entry in sorted(os.listdir(edits))]
    return tuple(files)


def _new_key(
    brain: Brain,
    variable: str,
    key_file: str | None,
    passphrase: bool,
    environment: bool,
    old_key: bytes | None = None,
) -> tuple["CipherKey", str]:
    """Return the new key and the name of its place: variable, passphrase, key file or keyring.

    A key in a file or keyring is stored before this returns.
    """
    if environment:
        secret = brain.settings.environ.get(variable, "")
        if not secret:
            raise InvalidArgument(
                name=variable,
                problem="is not set; set it to 64 hexadecimal digits, such as `openssl rand -hex 32` prints",
            )
        return encryption.make_key(secret), variable
    if passphrase:
        return encryption.make_key(_ask_twice(brain, variable)), "your passphrase"
    if key_file:
        return _key_in_file(brain, brain.settings.path(key_file), old_key)
    key = encryption.make_key(os.urandom(encryption.KEY_BYTES).hex())
    return key, f"the keyring ({encryption.store_in_keyring(key)})"


def _ask_twice(brain: Brain, variable: str) -> str:
    if brain.ask is None:
        problem = f"needs a terminal; set {variable} to the passphrase and use --environment instead"
        raise InvalidArgument(name="--passphrase", problem=problem)
    secret = brain.ask("New passphrase: ")
    if not secret.strip():
        raise InvalidArgument(name="passphrase", problem="is empty; type one, such as five random words")
    if brain.ask("The same passphrase again: ") != secret:
        raise InvalidArgument(name="passphrase", problem="the two inputs differ; nothing was changed")
    return secret


def _key_in_file(brain: Brain, path: str, old_key: bytes | None) -> tuple["CipherKey", str]:
    """Return a key from a file. A missing file is created; a new key is added to the keys in the file.

    The old key stays in the file, so that the memory can still be opened if `rekey` is interrupted.
    """
    keys = encryption.read_key_file(path) if os.path.exists(path) else []
    before = [old_key.hex()] if old_key else []
    if not keys or keys[0] in before:
        keys = [os.urandom(encryption.KEY_BYTES).hex(), *keys]
    elif any(len(key) != 2 * encryption.KEY_BYTES for key in keys):
        raise FileTrouble(path=path, problem="must hold 64 hexadecimal digits, or not exist yet")
    encryption.write_key_file(path, list(dict.fromkeys([*keys, *before])))
    key = encryption.make_key(keys[0])
    if os.path.realpath(brain.settings.key_file or "") != os.path.realpath(path):
        _name_key_file(brain, path)
    return key, f"the key file {path}"


def _name_key_file(brain: Brain, path: str) -> None:
    """Write the path of the key file to the config file, so that servers and hooks find it."""
    settings = brain.settings
    file = settings.config_path or os.path.join(os.path.dirname(settings.db_path), config.CONFIG_NAME)
    with translate_os_errors(file):
        text = ""
        if os.path.exists(file):
            with open(file, encoding="utf-8") as source:
                text = source.read()
        lines = [line for line in text.splitlines() if not re.match(r"(key_file|keyFile)\s*:", line)]
        lines.append(f"key_file: {json.dumps(path, ensure_ascii=False)}")
        durable_files.write_file(os.path.realpath(file), ("\n".join(lines) + "\n").encode())
    named = config.read_settings(settings.db_path, settings.environ, settings.cwd, file).key_file
    if os.path.realpath(named) != os.path.realpath(path):
        problem = f"is {named or 'not set'}, not {path}; correct it in the environment or in {file}"
        raise InvalidArgument(name="key_file", problem=problem)

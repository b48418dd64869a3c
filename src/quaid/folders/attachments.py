"""Store the images of pages, named by a hash of their content, beside the page's file or the database."""

import os
import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from quaid.errors import FileChanged, InvalidArgument, NotFound
from quaid.folders import atomic_write
from quaid.folders.scanner import Folder
from quaid.model import plain_text
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from nacl.secret import SecretBox

FOLDER = plain_text.ATTACHMENTS
MAX_BYTES = 5 * 1024 * 1024
MAX_BASE64 = 4 * (MAX_BYTES + 3) // 3
TYPES = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
NAME = plain_text.ATTACHMENT_NAME
_IN_TEXT = re.compile(rf"\({FOLDER}/({NAME.pattern})\)")


def image_ending(data: bytes) -> str:
    """Return the file extension of an image by its first bytes, or "" if it is not PNG, JPEG, GIF or WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def names_in(text: str) -> list[str]:
    """Return the names of the images that a text embeds."""
    return list(dict.fromkeys(_IN_TEXT.findall(text)))


def memory_folder(database_path: str) -> str:
    """Return the folder with the images of pages that have no file: memory.attachments beside memory.db."""
    return f"{os.path.splitext(database_path)[0]}.{FOLDER}"


SEALED = b"QMI1"
"""The first bytes of an encrypted image."""
SEAL_BYTES = len(SEALED) + 24 + 16
"""Number of bytes that encryption adds to an image: the prefix, the nonce and the authentication code."""


def seal(data: bytes, key: bytes | None) -> bytes:
    """Return the bytes to store for an image, encrypted if there is a key."""
    return SEALED + bytes(_box(key).encrypt(data)) if key else data


def _unseal(data: bytes, key: bytes | None) -> bytes:
    """Return the image in a file, or b"" if it is encrypted and cannot be decrypted with `key`."""
    if not data.startswith(SEALED):
        return data
    if key is None:
        return b""
    from nacl.exceptions import CryptoError

    try:
        return bytes(_box(key).decrypt(data[len(SEALED) :]))
    except (CryptoError, ValueError):
        return b""


def _box(key: bytes) -> "SecretBox":
    try:
        from nacl.secret import SecretBox
    except ImportError:
        problem = "need the package pynacl; run pip install 'quaid-memory[encryption]'"
        raise InvalidArgument(name="encrypted images", problem=problem) from None
    return SecretBox(key)


def reseal_images(database_path: str, key: bytes | None, *, is_encrypted: bool) -> int:
    """Encrypt the images beside a database or, unless `is_encrypted`, decrypt them. Return how many were changed.

    Images that are already in the right form are skipped, so a second call continues an interrupted one. Images
    that cannot be decrypted with `key` are left as they are.
    """
    folder, changed = memory_folder(database_path), 0
    for name in _names_in_folder(folder):
        path = os.path.join(folder, name)
        with translate_os_errors(path):
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + SEAL_BYTES)
            if data.startswith(SEALED) == is_encrypted:
                continue
            image = _unseal(data, key)
            if not image:
                continue  # encrypted with another key or damaged, so the image cannot be shown anyway
            durable_files.write_file(path, seal(image, key) if is_encrypted else image)
            changed += 1
    return changed


def store(root: str, inside: str, data: bytes, token: str, key: bytes | None = None) -> tuple[str, bool]:
    """Store an image in a folder below `root`. Return its name, and True if the image was not there yet.

    With `key`, the file is encrypted. Raise InvalidArgument if the image is too large or not PNG, JPEG, GIF or WebP.
    """
    if len(data) > MAX_BYTES:
        problem = f"must have at most {MAX_BYTES:,} bytes; make the image smaller"
        raise InvalidArgument(name="image", problem=problem)
    if not image_ending(data):
        raise InvalidArgument(name="image", problem="must be a PNG, JPEG, GIF or WebP image")
    name = image_name(data)
    with Folder(root) as folder:
        try:
            atomic_write.create_file(folder, f"{inside}{name}", seal(data, key), token)
        except FileChanged:
            return name, False
    return name, True


def image_name(data: bytes) -> str:
    """Return the name under which an image is stored: a hash of its content, and its file extension."""
    return f"{sha256(data).hexdigest()[:32]}.{image_ending(data)}"


def make_memory_folder(database_path: str) -> str:
    folder = memory_folder(database_path)
    with translate_os_errors(folder):
        durable_files.make_folders(folder)
    return folder


def read(root: str, inside: str, name: str, key: bytes | None = None) -> bytes:
    """Return an image, decrypted with `key` if it is encrypted.

    Raise NotFound if the file is missing, too large, cannot be decrypted, or its content does not match its
    extension.
    """
    missing = NotFound(what="image", name=name, hint="")
    if not NAME.fullmatch(name) or not os.path.isdir(root):
        raise missing
    with Folder(root) as folder:
        try:
            data = _unseal(folder.read(f"{inside}{name}", MAX_BYTES + SEAL_BYTES), key)
        except OSError:
            raise missing from None
    if len(data) > MAX_BYTES or image_ending(data) != name.rpartition(".")[2]:
        raise missing
    return data


def is_intact(root: str, name: str, key: bytes | None = None) -> bool:
    """Return True if the folder has an image of this name whose content matches the hash in the name."""
    try:
        return image_name(read(root, "", name, key)) == name
    except NotFound:
        return False


def back_up(database_path: str, backup_path: str, key: bytes | None = None) -> int:
    """Copy the intact images beside a database to the folder of its backup. Return their number.

    Images that the folder of the backup already has are counted, but not written again.
    """
    source, target = memory_folder(database_path), memory_folder(backup_path)
    names = [name for name in _names_in_folder(source) if is_intact(source, name, key)]
    for name in names:
        if not is_intact(target, name, key):
            make_memory_folder(backup_path)
            with translate_os_errors(target):
                durable_files.write_file(os.path.join(target, name), seal(read(source, "", name, key), key))
    return len(names)


def remove_folder(database_path: str) -> None:
    """Delete the images beside a backup, and their folder if it is then empty."""
    folder = memory_folder(database_path)
    for name in _names_in_folder(folder):
        remove(database_path, name)
    with suppress(OSError):
        os.rmdir(folder)


def _names_in_folder(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    with translate_os_errors(folder):
        return sorted(name for name in os.listdir(folder) if NAME.fullmatch(name))


def remove(database_path: str, name: str) -> None:
    """Delete an image beside the database, if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(memory_folder(database_path), name))

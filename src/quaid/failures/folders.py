"""Failures that somebody can meet whose pages are files in folders. Imported from errors.py."""

from quaid.failures import Cancelled, QuaidError


class ReadingStopped(Cancelled):
    """Stopped on request: {done:,} of {total:,} files are read, and the {turns:,} turns found so far stay. The same \
command goes on from there."""


class SyncStopped(Cancelled):
    """Stopped on request: the collection {name} is attached and has {told} so far. `quaid collection sync \
{name}` goes on from there."""


class PageOfFolder(QuaidError):
    """{slug} comes from a file of the collection {collection}, whose folder is the truth. {act} the file there, \
and the memory follows."""

    code, exit_status, http_status, rpc_code = "page_of_folder", 4, 409, -32009


class PartOfOrgFile(QuaidError):
    """{slug} is part of the org file {path}. Its title, tags and properties can be changed here; change its text in \
the file, and the memory follows."""

    code, exit_status, http_status, rpc_code = "part_of_org_file", 4, 409, -32009


class FileChanged(QuaidError):
    """{path} was changed outside since it was last read. Nothing was written: read the page again, merge your \
change, and send it with the new version."""

    code, exit_status, http_status, rpc_code = "file_changed", 4, 409, -32009


class CollectionReadOnly(QuaidError):
    """The collection {name} {why}: its files are not written from here. Edit the file, or choose another \
collection."""

    code, exit_status, http_status, rpc_code = "collection_read_only", 4, 403, -32003


class NoPlaceToRestore(CollectionReadOnly):
    """The collection {name} {why}: no file can be put back there. `quaid collection quarantine export FOLDER \
{slug}` writes the page elsewhere."""


class OnlyHere(QuaidError):
    """{told} what no file has: links, facts or raw data that were added here. Write it out first with `quaid \
collection quarantine export FOLDER`, or add --force to let it go."""

    code, exit_status, http_status, rpc_code = "only_here", 4, 409, -32009


class IdsStopped(Cancelled):
    """Stopped on request: {done:,} of {total:,} files carry their id, and keep it. `quaid collection migrate-ids \
{name}` goes on from there."""


class FolderNotEmpty(QuaidError):
    """{path} is not empty. Choose a new folder, or add --force to write into this one."""

    code, exit_status, http_status, rpc_code = "folder_not_empty", 2, 409, -32602


class RawNeedsImport(QuaidError):
    """--raw needs --import-id: it writes the bytes of one import, not the present state.{hint} For the present \
state, export without --raw."""

    code, exit_status, http_status, rpc_code = "raw_needs_import", 2, 400, -32602

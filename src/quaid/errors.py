"""Every error a user can see: a class whose docstring is the message, including what to do about it.

The attributes of a class are the codes with which the command line, HTTP and MCP report the error. docs/errors.md is
generated from this module.
"""

from typing import Any


class QuaidError(Exception):
    """Something went wrong: {problem}."""

    code = "error"
    exit_status = 1
    http_status = 500
    rpc_code = -32000

    def __init__(self, **facts: Any) -> None:
        if "hint" in facts:
            facts["hint"] = str(facts["hint"]).strip()
        self.facts = facts
        # A hint is a separate sentence in the message, so it needs a space before it.
        hint = f" {facts['hint']}" if facts.get("hint") else ""
        super().__init__((type(self).__doc__ or "").format(**{**facts, "hint": hint}))

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, because errors are passed between processes."""
        return _restore_error, (type(self), self.facts)


def _restore_error(kind: type[QuaidError], facts: dict[str, Any]) -> QuaidError:
    return kind(**facts)


class Cancelled(QuaidError):
    """Stopped on request; nothing was changed."""

    code, exit_status, http_status, rpc_code = "cancelled", 130, 499, -32800


def all_errors() -> list[type[QuaidError]]:
    """Return all error classes in the order of this module, for the documentation."""
    return [
        error
        for error in globals().values()
        if isinstance(error, type) and issubclass(error, QuaidError) and error is not QuaidError
    ]


# Wrong calls


class InvalidArgument(QuaidError):
    """{name}: {problem}."""

    code, exit_status, http_status, rpc_code = "invalid_argument", 2, 400, -32602


class WrongUsage(InvalidArgument):
    """{name}: {problem}. `quaid {command} --help` shows the usage."""


class WrongOption(InvalidArgument):
    """{name}: {problem}. `quaid --help` lists the commands and their options."""


class UnknownCommand(QuaidError):
    """Unknown command: {name!r}.{hint} `quaid --help` lists all commands."""

    code, exit_status, http_status, rpc_code = "unknown_command", 2, 404, -32602


class UnknownTool(QuaidError):
    """Unknown tool: {name!r}.{hint} `quaid --tools-json` lists all tools."""

    code, exit_status, http_status, rpc_code = "unknown_tool", 2, 404, -32602


class InvalidSlug(QuaidError):
    """{slug!r} is not a slug: {problem}. Use lower-case letters, digits, '-' and '_', with '/' between folders, \
as in {example}."""

    code, exit_status, http_status, rpc_code = "invalid_slug", 2, 400, -32602


class InvalidType(QuaidError):
    """{type!r} cannot be a page type. Write a name of at most {longest} characters; any is allowed, and these are \
known: {types}."""

    code, exit_status, http_status, rpc_code = "invalid_type", 2, 400, -32602


class InvalidDate(QuaidError):
    """{name}: {value!r} is not a date. Write YYYY-MM-DD, as in 2026-04-25."""

    code, exit_status, http_status, rpc_code = "invalid_date", 2, 400, -32602


class InvalidPageDate(InvalidDate):
    """{slug}: {name}: {value!r} is not a date. Write YYYY-MM-DD, as in 2026-04-25."""


class MissingDate(InvalidDate):
    """{slug}: a journal page needs a date. Add `{name}: 2026-04-25` to its front matter, or end its slug with the \
date."""


class InvalidFrontMatter(QuaidError):
    """The front matter cannot be parsed: {problem}. Correct it, or remove the block between the '---' lines."""

    code, exit_status, http_status, rpc_code = "invalid_front_matter", 2, 400, -32602


class InvalidBundle(QuaidError):
    """The bundle of a page is invalid: {problem}. Nothing of it was stored. Update Quaid on the device \
that sent it."""

    code, exit_status, http_status, rpc_code = "invalid_bundle", 2, 400, -32602


class InvalidSearch(QuaidError):
    """{query!r} is not FTS5 syntax ({problem}). Omit --raw to search for these words literally."""

    code, exit_status, http_status, rpc_code = "invalid_search", 2, 400, -32602


class TooLarge(QuaidError):
    """{what} has {size:,} bytes; the limit is {limit:,}. Split it into smaller pages."""

    code, exit_status, http_status, rpc_code = "too_large", 2, 413, -32013


class InputTooLarge(TooLarge):
    """Standard input has more than the limit of {limit:,} bytes. Split it into smaller pages."""


class LineTooLarge(TooLarge):
    """The line has more than the limit of {limit:,} bytes of text. Split it into smaller pages."""


class NotAllowed(QuaidError):
    """{name} needs the {needed} scope; the caller has only {granted}."""

    code, exit_status, http_status, rpc_code = "not_allowed", 6, 403, -32003


class OutsideScope(QuaidError):
    """The change is outside the part of the memory that you may use, or its name is taken. Choose another page."""

    code, exit_status, http_status, rpc_code = "outside_scope", 6, 403, -32003


class InvalidConfig(QuaidError):
    """{path} cannot be used: {problem}. Correct it, or remove it; `quaid config list` shows the options."""

    code, exit_status, http_status, rpc_code = "invalid_config", 2, 400, -32602


class MissingConfig(InvalidConfig):
    """There is no config file {path}, which --config or QUAID_CONFIG names. Correct the path, or create the file."""


# Missing objects and conflicts


class PageNotFound(QuaidError):
    """There is no page {slug}.{hint} `quaid list` shows all pages."""

    code, exit_status, http_status, rpc_code = "page_not_found", 3, 404, -32001


class NotFound(QuaidError):
    """There is no {what} {name}.{hint}"""

    code, exit_status, http_status, rpc_code = "not_found", 3, 404, -32001


class NoNotebook(NotFound):
    """There is no notebook yet. `quaid remember` and `quaid log` create one with the first note."""


class AmbiguousSlug(QuaidError):
    """Several collections have a page {slug}: {candidates}. Use one of these names."""

    code, exit_status, http_status, rpc_code = "ambiguous_slug", 2, 409, -32602


class VersionConflict(QuaidError):
    """{slug} is at version {current_version}, not {expected}. Read it again, merge your change, and send version \
{current_version}."""

    code, exit_status, http_status, rpc_code = "version_conflict", 4, 409, -32009


class ContentChanged(VersionConflict):
    """The text of {slug} is not the one with hash {expected}: it is at version {current_version}. Read it again, \
merge your change, and send version {current_version}."""


class NoSuchVersion(VersionConflict):
    """There is no page {slug} yet, so it has no version {expected}. Omit the version to create the page."""


class PageExists(VersionConflict):
    """{slug} already exists, at version {current_version}. Read it, merge your change, and send version \
{current_version}."""


class VersionConflicts(VersionConflict):
    """{count} pages have changed: {detail}. Nothing was written; read them again, merge your changes, and send \
these versions."""


class PageMoved(VersionConflict):
    """{slug} was renamed or merged: it is now {target}, at version {current_version}. Use {target}."""

    code = "page_moved"


class ChangedSinceCreated(VersionConflict):
    """{slug} was not erased, because it was changed after the agent had created it: the agent wrote version \
{expected}, and the page is at version {current_version}. `quaid history {slug}` lists the versions, and \
`quaid forget {slug}` erases the page."""

    code = "changed_since_created"


class NeedsYes(QuaidError):
    """{act}: needs confirmation, but {obstacle}. Add --yes to do it, or --dry-run to see what it would do."""

    code, exit_status, http_status, rpc_code = "needs_yes", 2, 400, -32602


class LinkOverlaps(QuaidError):
    """Link {id} already states {relationship} between these pages for that time. End it first with `quaid \
link-close {id} --valid-until DAY`, or choose other dates."""

    code, exit_status, http_status, rpc_code = "link_overlaps", 4, 409, -32009


class TextSaysSo(LinkOverlaps):
    """The text of the page already states {relationship} (link {id}). Change its dates in the page's front \
matter."""


class LinkFromText(QuaidError):
    """Link {id} comes from the text of {slug}. Change the text; the link is updated from it."""

    code, exit_status, http_status, rpc_code = "link_from_text", 4, 409, -32009


class TagInText(QuaidError):
    """The text of {slug} contains #{tag}. Remove it from the text. Nothing was changed."""

    code, exit_status, http_status, rpc_code = "tag_in_text", 4, 409, -32009


class AlreadyExists(QuaidError):
    """{path} already exists.{hint}"""

    code, exit_status, http_status, rpc_code = "already_exists", 2, 409, -32602


class GapResolved(QuaidError):
    """Gap {id} was resolved on {date}. If the question is asked again without an answer, a new gap is recorded."""

    code, exit_status, http_status, rpc_code = "gap_resolved", 4, 409, -32009


class WrongQuestion(QuaidError):
    """query_text is not the question of gap {id}: its hash differs. Repeat the question as it was asked; case, \
spaces and final punctuation are ignored."""

    code, exit_status, http_status, rpc_code = "wrong_question", 2, 400, -32602


# The database and the machine


class MissingDatabase(QuaidError):
    """There is no memory at {path}. {remedy}"""

    code, exit_status, http_status, rpc_code = "missing_database", 5, 503, -32010


class NotADatabase(QuaidError):
    """{path} is not a Quaid memory ({problem}). Name another file with --db."""

    code, exit_status, http_status, rpc_code = "not_a_database", 5, 503, -32010


class NewerDatabase(QuaidError):
    """{path} has schema version {version}; this Quaid supports versions up to {supported}. Upgrade Quaid. The \
file was not changed."""

    code, exit_status, http_status, rpc_code = "newer_database", 5, 503, -32010


class DamagedDatabase(QuaidError):
    """{path} is damaged ({problem}). `quaid doctor` lists the commands that export the readable pages and restore \
the newest backup."""

    code, exit_status, http_status, rpc_code = "damaged_database", 5, 503, -32010


class MissingKey(QuaidError):
    """{path} is encrypted, and its {kind} was not found ({problem}). Set QUAID_KEY or QUAID_KEY_FILE, unlock the \
keyring, or, for a passphrase, run the command in a terminal. The memory was not changed."""

    code, exit_status, http_status, rpc_code = "missing_key", 5, 503, -32010


class WrongKey(QuaidError):
    """{path} is encrypted with another {kind}: {tried} does not open it. Use the right one; without it the memory \
cannot be read. The memory was not changed."""

    code, exit_status, http_status, rpc_code = "wrong_key", 5, 503, -32010


class NoCipher(QuaidError):
    """{path}: the installed apsw cannot encrypt or decrypt. Run {install}. The memory was not changed."""

    code, exit_status, http_status, rpc_code = "no_cipher", 5, 503, -32010


class InUse(QuaidError):
    """{path} is open in another process. Stop it first: `quaid daemon stop`, and close the dashboard, `quaid watch` \
and the programs that use the memory over MCP. Nothing was changed."""

    code, exit_status, http_status, rpc_code = "in_use", 5, 409, -32014


class MemoryReplaced(QuaidError):
    """{path} was replaced by another file while this process had it open. Nothing was written; start the command or \
server again."""

    code, exit_status, http_status, rpc_code = "memory_replaced", 5, 503, -32014


class UnsafeSqlite(QuaidError):
    """SQLite {version} can lose committed writes. Install apsw 3.51.3 or newer."""

    code, exit_status, http_status, rpc_code = "unsafe_sqlite", 5, 503, -32010


class MigrationFailed(QuaidError):
    """{path} could not be migrated from schema {version} to {target}: {problem}. Nothing was changed; the backup \
is {backup}."""

    code, exit_status, http_status, rpc_code = "migration_failed", 5, 503, -32010


class ReadOnly(QuaidError):
    """{path} cannot be written ({problem}). Check the permissions of the file and its folder, or choose another \
place."""

    code, exit_status, http_status, rpc_code = "read_only", 5, 403, -32011


class DiskFull(QuaidError):
    """No space left on the disk of {path}. The memory was not changed; free some space and try again."""

    code, exit_status, http_status, rpc_code = "disk_full", 5, 507, -32012


class Busy(QuaidError):
    """{path} was locked by another process for {seconds} s. Nothing was changed; try again."""

    code, exit_status, http_status, rpc_code = "busy", 5, 503, -32014


class DreamRunning(QuaidError):
    """Another `quaid dream` is running on {path}. Wait until it has finished, or stop it."""

    code, exit_status, http_status, rpc_code = "dream_running", 5, 409, -32014


class FileTrouble(QuaidError):
    """{path}: {problem}."""

    code, exit_status, http_status, rpc_code = "file_trouble", 5, 409, -32011


class Defect(QuaidError):
    """Internal error ({problem}). This is a bug in Quaid: please report it. QUAID_TRACE=1 prints the traceback."""

    code, exit_status, http_status, rpc_code = "defect", 70, 500, -32603


# The notebook


class NotebookGone(QuaidError):
    """The notebook's folder {path} is missing. Restore it; or detach it with `quaid collection remove {name}` and \
create another with `quaid notebook init`."""

    code, exit_status, http_status, rpc_code = "notebook_gone", 5, 404, -32010


# Embedding models


class EmbeddingStopped(Cancelled):
    """Stopped on request: {made:,} of {total:,} chunks have a vector of {model}; they are kept. `{command}` makes \
the rest."""


class UnknownModel(QuaidError):
    """There is no model {name!r}.{hint} `quaid model list` shows all models."""

    code, exit_status, http_status, rpc_code = "unknown_model", 3, 404, -32001


class InvalidModel(QuaidError):
    """{place} cannot be used as a model: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "invalid_model", 2, 400, -32602


class ModelInUse(QuaidError):
    """{name} is the active model. Switch to another first with `quaid embed --model NAME`."""

    code, exit_status, http_status, rpc_code = "model_in_use", 4, 409, -32009


class MissingFramework(QuaidError, ImportError):
    """{package} is not installed, or its version does not fit ({problem}). Install it with \
`pip install 'quaid-memory[{extra}]'`."""

    code, exit_status, http_status, rpc_code = "missing_framework", 5, 503, -32016


class EmbedderUnavailable(QuaidError):
    """The model {name} is not available: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "embedder_unavailable", 5, 503, -32015


class EmbeddingsOff(EmbedderUnavailable):
    """Semantic search is off. {remedy}."""


# Folders and their files


class ReadingStopped(Cancelled):
    """Stopped on request: {done:,} of {total:,} files were read, and their {turns:,} turns are kept. The same \
command reads the rest."""


class SyncStopped(Cancelled):
    """Stopped on request: the collection {name} is attached and has {detail} so far. `quaid collection sync \
{name}` reads the rest."""


class SpaceSyncStopped(Cancelled):
    """Stopped on request: the shared collection {name} has {detail} so far. `quaid sync {name}` goes on."""


class PageOfFolder(QuaidError):
    """{slug} comes from a file of the collection {collection}. {act} the file in its folder; the memory is \
updated from it."""

    code, exit_status, http_status, rpc_code = "page_of_folder", 4, 409, -32009


class PartOfOrgFile(QuaidError):
    """{slug} is part of the org file {path}. Its title, tags and properties can be changed here. Change its text \
in the file; the memory is updated from it."""

    code, exit_status, http_status, rpc_code = "part_of_org_file", 4, 409, -32009


class FileChanged(QuaidError):
    """{path} was changed by another program since it was last read. Nothing was written: read the page again, \
merge your change, and send it with the new version."""

    code, exit_status, http_status, rpc_code = "file_changed", 4, 409, -32009


class CollectionReadOnly(QuaidError):
    """The collection {name} {why}: its files cannot be written by Quaid. Edit the file itself, or choose another \
collection."""

    code, exit_status, http_status, rpc_code = "collection_read_only", 4, 403, -32003


class NoPlaceToRestore(CollectionReadOnly):
    """The collection {name} {why}: no file can be restored there. `quaid collection quarantine export FOLDER \
{slug}` writes the page elsewhere."""


class OnlyHere(QuaidError):
    """{detail} data that no file contains: links, facts or raw data. Export it first with `quaid collection \
quarantine export FOLDER`, or add --force to delete it."""

    code, exit_status, http_status, rpc_code = "only_here", 4, 409, -32009


class GoldenFails(QuaidError):
    """{change} would make {count} fail: {detail}. It was not applied. `quaid golden run` shows the answers of now; \
add {flag} to apply it, or `quaid golden remove` a question that no longer matters."""

    code, exit_status, http_status, rpc_code = "golden_fails", 4, 409, -32009


class GoldenUnchecked(GoldenFails):
    """{missing:,} texts have no vectors of {name} yet, so golden questions cannot be asked with it. `quaid embed \
--model {name}` makes them, asks the questions and then switches; add --force to switch now."""

    code = "golden_unchecked"


class IdsStopped(Cancelled):
    """Stopped on request: {done:,} of {total:,} files have an id; they keep it. `quaid collection migrate-ids \
{name}` writes the rest."""


class FolderNotEmpty(QuaidError):
    """{path} is not empty. Choose a new folder, or add --force to write into this one."""

    code, exit_status, http_status, rpc_code = "folder_not_empty", 2, 409, -32602


class RawNeedsImport(QuaidError):
    """--raw needs --import-id: it writes the bytes of one import, not the current state.{hint} For the current \
state, export without --raw."""

    code, exit_status, http_status, rpc_code = "raw_needs_import", 2, 400, -32602


# The knowledge base


class StoreMissing(QuaidError):
    """There is no knowledge base at {path}. `ai-kb init` creates one; `ai-kb clone URL` fetches an existing one."""

    code, exit_status, http_status, rpc_code = "store_missing", 5, 404, -32010


class StoreForeign(StoreMissing):
    """There is no knowledge base at {path}; it contains {detail}. Nothing was written. Correct AI_KB_DIR, or \
create a knowledge base among these files with `ai-kb init --force`."""


class StoreOccupied(QuaidError):
    """{path} is not empty; it contains {detail}. Nothing was written. {remedy}."""

    code, exit_status, http_status, rpc_code = "store_occupied", 4, 409, -32009


class RemoteOccupied(QuaidError):
    """The remote {url} contains {detail}, and no knowledge base. Nothing was written, here or there. {remedy}."""

    code, exit_status, http_status, rpc_code = "remote_occupied", 4, 409, -32009


class UnsafeStore(QuaidError):
    """{path} was not changed: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "unsafe_store", 5, 403, -32003


class StoreDirty(QuaidError):
    """{path} has uncommitted changes: {detail}. Nothing was written; commit them with `ai-kb commit`, or revert \
them, and try again."""

    code, exit_status, http_status, rpc_code = "store_dirty", 4, 409, -32009


class StagedBeside(StoreDirty):
    """{detail} is staged in {path}, and is not part of the knowledge base. Nothing was written; unstage it with \
`git -C {path} reset -q -- {first}`, and try again."""


class StoreUnfinished(StoreDirty):
    """A {act} is in progress in {path}. Nothing was written; finish it, or abort it with `git -C {path} {act} \
--abort`, and try again."""


class StoreDiverged(QuaidError):
    """{path} and its remote have diverged (commits only here: {ahead}, only there: {behind}). Nothing was \
written; reconcile them with `git -C {path} pull --rebase`, then try again."""

    code, exit_status, http_status, rpc_code = "store_diverged", 4, 409, -32009


class StoreLocked(QuaidError):
    """{path} is in use by {holder}. Nothing was changed; try again.{hint}"""

    code, exit_status, http_status, rpc_code = "store_locked", 5, 503, -32014


class LintFailed(QuaidError):
    """Lint found: {detail}. Nothing was committed; correct this and try again."""

    code, exit_status, http_status, rpc_code = "lint_failed", 1, 422, -32012


class NearDuplicate(QuaidError):
    """The knowledge base already has this: {detail}. Nothing was written; add to that node with --add-to, or \
write a new one with --force."""

    code, exit_status, http_status, rpc_code = "near_duplicate", 4, 409, -32013


class OppositeAdded(QuaidError):
    """{node} states the opposite: {detail}. Nothing was written. Write a separate node, without --add-to: both \
are marked as contested, and a person decides. Or add it with --force, which marks this node as contested."""

    code, exit_status, http_status, rpc_code = "opposite_added", 4, 409, -32013


class GitMissing(QuaidError):
    """The program git was not found. Install git 2.36 or newer; a knowledge base is a git repository."""

    code, exit_status, http_status, rpc_code = "git_missing", 5, 503, -32010


class GitFailed(QuaidError):
    """git {verb} failed in {path}: {problem}. `quaid kb doctor` checks the repository; then try again."""

    code, exit_status, http_status, rpc_code = "git_failed", 5, 500, -32011


class CloneFailed(GitFailed):
    """{url} could not be cloned: {problem}. Nothing was written. Check the address and your access to it, and try \
again."""


# Settings of other programs


class ClientFile(QuaidError):
    """{path} was not changed: {problem}. Correct it, or add the entry manually."""

    code, exit_status, http_status, rpc_code = "client_file", 5, 500, -32011


# The server and its clients


class NotLoggedIn(QuaidError):
    """{problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "not_logged_in", 6, 401, -32004


class ForeignRequest(QuaidError):
    """This request was refused: {problem}. Only this server's own pages, and programs with a token, are allowed."""

    code, exit_status, http_status, rpc_code = "foreign_request", 6, 403, -32003


class WrongHost(ForeignRequest):
    """{host!r} is not a name of this server. Open it at {address}; its operator allows the name of a proxy with \
--allow-host NAME."""

    code, http_status = "wrong_host", 421


class BodyRefused(QuaidError):
    """The body cannot be read: {problem}. Send a JSON object as application/json."""

    code, exit_status, http_status, rpc_code = "body_refused", 2, 415, -32600


class TooSlow(QuaidError):
    """The body did not arrive within {seconds} s. Send it again."""

    code, exit_status, http_status, rpc_code = "too_slow", 5, 408, -32014


class TooMany(QuaidError):
    """There are already {limit:,} {what}, which is the limit. Try again in a moment."""

    code, exit_status, http_status, rpc_code = "too_many", 5, 429, -32014


class ServerBusy(QuaidError):
    """Requests of all callers hold {limit:,} bytes, which is the limit. Try again in a moment."""

    code, exit_status, http_status, rpc_code = "server_busy", 5, 503, -32014


class NoSuchAddress(QuaidError):
    """There is nothing at {path}. Check the address."""

    code, exit_status, http_status, rpc_code = "no_such_address", 3, 404, -32601


class WrongMethod(QuaidError):
    """{path} does not accept {method}. Use another method."""

    code, exit_status, http_status, rpc_code = "wrong_method", 2, 405, -32600


class PortTaken(QuaidError):
    """Port {port} of {address} is in use by another program or another memory. Choose another with --port, or any \
free one with --port 0."""

    code, exit_status, http_status, rpc_code = "port_taken", 5, 503, -32011


class ServedAlready(PortTaken):
    """This memory is already served at {where}, which provides the dashboard, MCP and the API. `quaid web` opens \
it; use --port to start a second server."""

    code = "served_already"


class OpenToOthers(QuaidError):
    """{address} can be reached from other machines, and without TLS others on the network could read the memory \
and the token. Add --tls-cert FILE and --tls-key FILE, or --behind-proxy --allow-host NAME if a proxy does TLS."""

    code, exit_status, http_status, rpc_code = "open_to_others", 2, 400, -32602


class NoService(QuaidError):
    """{problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "no_service", 5, 503, -32011


class ServiceMissing(QuaidError):
    """The service is not installed: there is no {path}. `quaid daemon install` installs it."""

    code, exit_status, http_status, rpc_code = "service_missing", 2, 404, -32001


# Shared spaces and hubs


class HubUnreachable(QuaidError):
    """The hub {hub} cannot be reached: {problem}. Nothing is lost; `quaid sync` tries again."""

    code, exit_status, http_status, rpc_code = "hub_unreachable", 5, 503, -32011


class DeviceRevoked(QuaidError):
    """The hub {hub} does not accept the token of this device: it was revoked or has expired. Your pages stay here; \
ask an owner of the space for a new invitation, and run `quaid join`."""

    code, exit_status, http_status, rpc_code = "device_revoked", 6, 401, -32003


class DifferentHub(QuaidError):
    """{hub} answers as another hub than the one that this device joined (id {actual}, not {expected}). Nothing was \
sent or changed; check the address, or `quaid leave` the space and join again."""

    code, exit_status, http_status, rpc_code = "different_hub", 4, 409, -32009


class UntrustworthyHub(QuaidError):
    """The hub {hub} sent an answer that cannot be right: {problem}. Nothing was changed; ask its operator to run \
`quaid hub audit --verify`."""

    code, exit_status, http_status, rpc_code = "untrustworthy_hub", 4, 502, -32010


class HubRefused(QuaidError):
    """The hub {hub} refused the request: {problem}"""

    code, exit_status, http_status, rpc_code = "hub_refused", 4, 502, -32010


class InvitationRefused(QuaidError):
    """The invitation is not valid: it was used before, has expired after 24 hours, or has a typo. Ask for a new \
one."""

    code, exit_status, http_status, rpc_code = "invitation_refused", 6, 403, -32003


class HubDatabaseUnavailable(QuaidError):
    """The hub's database {place} cannot be used: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "hub_database_unavailable", 5, 503, -32010


class SpaceRight(QuaidError):
    """Your right in the shared space {space} is `{right}`, which does not allow this change. Nothing was changed; \
ask an owner of the space for the right to write."""

    code, exit_status, http_status, rpc_code = "space_right", 6, 403, -32003


class TextOfPerson(QuaidError):
    """This would change or end what the person has written, which only the person may do. Nothing was changed; \
it can be proposed for review."""

    code, exit_status, http_status, rpc_code = "text_of_person", 6, 403, -32003


class SealKey(QuaidError):
    """The shared space {space} is sealed (its devices encrypt the pages), and {problem}."""

    code, exit_status, http_status, rpc_code = "seal_key", 6, 403, -32003

"""Every failure that a user can meet: a class whose docstring is the message, with the remedy in it.

Its attributes say how a surface reports it. docs/errors.md is made from here. Those of some rooms stand in failures/
and are loaded when one of them is first asked for: a cold command meets few of them.
"""

from quaid.failures import Cancelled as Cancelled, QuaidError as QuaidError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from quaid.failures.clients import (
        ClientFile as ClientFile,
        ClientMissing as ClientMissing,
    )
    from quaid.failures.folders import (
        CollectionReadOnly as CollectionReadOnly,
        FileChanged as FileChanged,
        FolderNotEmpty as FolderNotEmpty,
        IdsStopped as IdsStopped,
        NoPlaceToRestore as NoPlaceToRestore,
        OnlyHere as OnlyHere,
        PageOfFolder as PageOfFolder,
        PartOfOrgFile as PartOfOrgFile,
        RawNeedsImport as RawNeedsImport,
        ReadingStopped as ReadingStopped,
        SyncStopped as SyncStopped,
    )
    from quaid.failures.kb import (
        CloneFailed as CloneFailed,
        GitFailed as GitFailed,
        GitMissing as GitMissing,
        LintFailed as LintFailed,
        NearDuplicate as NearDuplicate,
        OppositeAdded as OppositeAdded,
        RemoteOccupied as RemoteOccupied,
        StagedBeside as StagedBeside,
        StoreDirty as StoreDirty,
        StoreDiverged as StoreDiverged,
        StoreForeign as StoreForeign,
        StoreLocked as StoreLocked,
        StoreMissing as StoreMissing,
        StoreOccupied as StoreOccupied,
        StoreUnfinished as StoreUnfinished,
        UnsafeStore as UnsafeStore,
    )
    from quaid.failures.models import (
        EmbedderUnavailable as EmbedderUnavailable,
        EmbeddingsOff as EmbeddingsOff,
        EmbeddingStopped as EmbeddingStopped,
        InvalidModel as InvalidModel,
        ModelInUse as ModelInUse,
        UnknownModel as UnknownModel,
    )
    from quaid.failures.notebook import NotebookGone as NotebookGone
    from quaid.failures.web import (
        BodyRefused as BodyRefused,
        ForeignRequest as ForeignRequest,
        NoService as NoService,
        NoSuchAddress as NoSuchAddress,
        NotLoggedIn as NotLoggedIn,
        OpenToOthers as OpenToOthers,
        PortTaken as PortTaken,
        ServedAlready as ServedAlready,
        ServiceMissing as ServiceMissing,
        TooMany as TooMany,
        TooSlow as TooSlow,
        Unanswered as Unanswered,
        WrongHost as WrongHost,
        WrongMethod as WrongMethod,
    )
else:

    def __getattr__(name):
        """A failure of a room, whose module is found by looking; from then on it is here."""
        if not name.startswith("_"):
            for room in ROOMS:
                failures = _of_room(room)
                if name in failures:
                    globals().update(failures)
                    return failures[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


ROOMS = ("notebook", "models", "folders", "kb", "clients", "web")
"""Modules of failures/, in the order in which they are looked through."""


def everything() -> list[type[QuaidError]]:
    """All failures, for those who list them: what stands here, then room by room."""
    own = (__name__, QuaidError.__module__)
    here = [each for each in globals().values() if isinstance(each, type) and each.__module__ in own]
    there = [each for room in ROOMS for each in _of_room(room).values()]
    return [each for each in (*here, *there) if each is not QuaidError]


def _of_room(room: str) -> dict[str, type[QuaidError]]:
    module = __import__(f"quaid.failures.{room}", fromlist=[room])
    return {
        name: each
        for name, each in vars(module).items()
        if getattr(each, "__module__", "") == module.__name__
    }


# Wrong calls


class InvalidArgument(QuaidError):
    """{name}: {problem}."""

    code, exit_status, http_status, rpc_code = "invalid_argument", 2, 400, -32602


class WrongUsage(InvalidArgument):
    """{name}: {problem}. `quaid {command} --help` shows how."""


class WrongOption(InvalidArgument):
    """{name}: {problem}. `quaid --help` lists the commands and their options."""


class UnknownCommand(QuaidError):
    """There is no command {name!r}.{hint} `quaid --help` lists them all."""

    code, exit_status, http_status, rpc_code = "unknown_command", 2, 404, -32602


class UnknownTool(QuaidError):
    """There is no tool {name!r}.{hint} `quaid --tools-json` lists them all."""

    code, exit_status, http_status, rpc_code = "unknown_tool", 2, 404, -32602


class InvalidSlug(QuaidError):
    """{slug!r} is not a slug: {problem}. Use lower-case a-z, 0-9, '-' and '_', with '/' between folders, \
as in people/alice."""

    code, exit_status, http_status, rpc_code = "invalid_slug", 2, 400, -32602


class InvalidType(QuaidError):
    """{type!r} is not a page type.{hint} The types are: {known}."""

    code, exit_status, http_status, rpc_code = "invalid_type", 2, 400, -32602


class InvalidDate(QuaidError):
    """{name}: {value!r} is not a date. Write YYYY-MM-DD, as in 2026-04-25."""

    code, exit_status, http_status, rpc_code = "invalid_date", 2, 400, -32602


class InvalidPageDate(InvalidDate):
    """{slug}: {name}: {value!r} is not a date. Write YYYY-MM-DD, as in 2026-04-25."""


class MissingDate(InvalidDate):
    """{slug}: a journal needs a day. Add `{name}: 2026-04-25` to its front matter, or end the slug with the day."""


class InvalidFrontMatter(QuaidError):
    """The front matter cannot be read: {problem}. Mend it, or remove the block between the '---' lines."""

    code, exit_status, http_status, rpc_code = "invalid_front_matter", 2, 400, -32602


class InvalidSearch(QuaidError):
    """{query!r} is not FTS5 syntax ({problem}). Leave out --raw to search for the words as they are."""

    code, exit_status, http_status, rpc_code = "invalid_search", 2, 400, -32602


class TooLarge(QuaidError):
    """{what} has {size:,} bytes; the limit is {limit:,}. Split it into smaller pages."""

    code, exit_status, http_status, rpc_code = "too_large", 2, 413, -32013


class InputTooLarge(TooLarge):
    """Standard input has more than {limit:,} bytes, which is the limit. Split it into smaller pages."""


class LineTooLarge(TooLarge):
    """The line has more than {limit:,} bytes of text, which is the limit. Split it into smaller pages."""


class NotAllowed(QuaidError):
    """{name} needs the {needed} scope; this caller has {given}."""

    code, exit_status, http_status, rpc_code = "not_allowed", 6, 403, -32003


class InvalidConfig(QuaidError):
    """{path} cannot be used: {problem}. Correct it, or remove it; `quaid config list` shows the options."""

    code, exit_status, http_status, rpc_code = "invalid_config", 2, 400, -32602


# What is not there, and what has changed


class PageNotFound(QuaidError):
    """There is no page {slug}.{hint} `quaid list` shows what there is."""

    code, exit_status, http_status, rpc_code = "page_not_found", 3, 404, -32001


class NotFound(QuaidError):
    """There is no {what} {name}.{hint}"""

    code, exit_status, http_status, rpc_code = "not_found", 3, 404, -32001


class NoNotebook(NotFound):
    """There is no notebook yet. `quaid notebook init` makes one."""


class AmbiguousSlug(QuaidError):
    """Several collections have a page {slug}: {candidates}. Write one of these instead."""

    code, exit_status, http_status, rpc_code = "ambiguous_slug", 2, 409, -32602


class VersionConflict(QuaidError):
    """{slug} is at version {current_version}, not {expected}. Read it again, merge your change, and send \
version {current_version}."""

    code, exit_status, http_status, rpc_code = "version_conflict", 4, 409, -32009


class NoSuchVersion(VersionConflict):
    """There is no page {slug} yet, so it has no version {expected}. Leave the version out to make the page."""


class PageExists(VersionConflict):
    """{slug} exists already, at version {current_version}. Read it, merge your change, and send version \
{current_version}."""


class VersionConflicts(VersionConflict):
    """{count} pages are not at the versions that were sent: {told}. Nothing was written; read them again, merge \
your changes, and send these versions."""


class PageMoved(VersionConflict):
    """{slug} is {target} now, at version {current_version}: it was renamed or merged. Use {target}."""

    code = "page_moved"


class NeedsYes(QuaidError):
    """{act}: needs confirmation, but {obstacle}. Add --yes to do it, or --dry-run to see what it would do."""

    code, exit_status, http_status, rpc_code = "needs_yes", 2, 400, -32602


class LinkOverlaps(QuaidError):
    """Link {id} already has {relationship} between these pages for that time. Close it first with `quaid link-close \
{id} --valid-until DAY`, or choose other dates."""

    code, exit_status, http_status, rpc_code = "link_overlaps", 4, 409, -32009


class TextSaysSo(LinkOverlaps):
    """The text of the page already has {relationship} (link {id}). Change its time there, in the front matter."""


class LinkFromText(QuaidError):
    """Link {id} comes from the text of {slug}. Change it there: the graph follows the text."""

    code, exit_status, http_status, rpc_code = "link_from_text", 4, 409, -32009


class TagInText(QuaidError):
    """The text of {slug} says #{tag}: take it out there. Nothing was changed."""

    code, exit_status, http_status, rpc_code = "tag_in_text", 4, 409, -32009


class AlreadyExists(QuaidError):
    """{path} exists already.{hint}"""

    code, exit_status, http_status, rpc_code = "already_exists", 2, 409, -32602


class GapResolved(QuaidError):
    """Gap {id} was resolved on {date}. Asked again without an answer, the question becomes a new gap."""

    code, exit_status, http_status, rpc_code = "gap_resolved", 4, 409, -32009


class WrongQuestion(QuaidError):
    """That is not the question of gap {id}: the hash differs. Give query_text as it was asked; case, spaces and \
punctuation at its end do not matter."""

    code, exit_status, http_status, rpc_code = "wrong_question", 2, 400, -32602


# The database and the machine


class MissingDatabase(QuaidError):
    """There is no memory at {path}. {remedy}"""

    code, exit_status, http_status, rpc_code = "missing_database", 5, 503, -32010


class NotADatabase(QuaidError):
    """{path} is not a Quaid memory ({problem}). Name another file with --db."""

    code, exit_status, http_status, rpc_code = "not_a_database", 5, 503, -32010


class NewerDatabase(QuaidError):
    """{path} has schema version {found}; this Quaid knows versions up to {known}. Upgrade Quaid; the file was \
not touched."""

    code, exit_status, http_status, rpc_code = "newer_database", 5, 503, -32010


class DamagedDatabase(QuaidError):
    """{path} is damaged ({problem}). `quaid doctor` says how to save what can still be read, and how to put the \
newest backup in its place without the old log."""

    code, exit_status, http_status, rpc_code = "damaged_database", 5, 503, -32010


class UnsafeSqlite(QuaidError):
    """SQLite {version} can lose committed writes. Install apsw 3.51.3 or newer."""

    code, exit_status, http_status, rpc_code = "unsafe_sqlite", 5, 503, -32010


class MigrationFailed(QuaidError):
    """{path} could not be brought from schema {found} to {known}: {problem}. Nothing was changed; the backup is \
{backup}."""

    code, exit_status, http_status, rpc_code = "migration_failed", 5, 503, -32010


class ReadOnly(QuaidError):
    """{path} cannot be written ({problem}). Check the permissions of the file and its folder, or choose \
another place."""

    code, exit_status, http_status, rpc_code = "read_only", 5, 403, -32011


class DiskFull(QuaidError):
    """There is no room left for {path}. The memory was not changed; free some space and try again."""

    code, exit_status, http_status, rpc_code = "disk_full", 5, 507, -32012


class Busy(QuaidError):
    """{path} was locked by another process for {seconds} s. Nothing was changed; try again."""

    code, exit_status, http_status, rpc_code = "busy", 5, 503, -32014


class FileTrouble(QuaidError):
    """{path}: {problem}."""

    code, exit_status, http_status, rpc_code = "file_trouble", 5, 409, -32011


class Defect(QuaidError):
    """Quaid itself failed ({problem}). That is a bug: please report it. QUAID_TRACE=1 shows where."""

    code, exit_status, http_status, rpc_code = "defect", 70, 500, -32603

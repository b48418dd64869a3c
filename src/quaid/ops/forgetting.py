"""Forgetting a page: everything of it goes from every layer, and the proof is shown."""

import json
from typing import Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument, PageMoved
from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun
from quaid.ops import editing
from quaid.ops.register import Arg, op
from quaid.storage import erase as erasure, pages
from quaid.storage.erase import EraseTarget
from quaid.storage.sqlite import backup
from quaid.storage.sqlite.backup import DatabaseCopy

AGAIN = "Close what else uses the memory and run `quaid forget --finish`"


class Layer(NamedTuple):
    name: str
    before: int
    after: int | None
    """None while nothing is done."""


class Proof(NamedTuple):
    """One place that was searched for what is left, and what was found there."""

    where: str
    found: tuple[str, ...]


class Mention(NamedTuple):
    """What somebody else says too. It stays: it is not this page's."""

    text: str
    said_by: tuple[str, ...]


class Backup(NamedTuple):
    path: str
    size: int
    made_by: str
    """migration, or backup for a copy of this memory: --backups deletes them; somebody: left alone."""
    holds_it: bool
    deleted: bool


class ForgetRecord(NamedTuple):
    done: bool
    clean: bool
    """Whether it is proved that nothing is left."""
    slug: str
    title: str
    layers: tuple[Layer, ...]
    proof: tuple[Proof, ...] = ()
    mentions: tuple[Mention, ...] = ()
    backups: tuple[Backup, ...] = ()
    files: tuple[str, ...] = ()
    """Of imported folders. They are the person's own, and the next import would bring the page back."""
    problem: str = ""
    """Why bytes may be left in the file although the page is gone."""
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Forgetting {self.slug}"

    @property
    def exit_status(self) -> int:
        return int(self.done and not self.clean)


def _judged(record: ForgetRecord) -> ForgetRecord:
    left = any(each.found for each in record.proof) or any(each.after for each in record.layers)
    return record._replace(clean=not left and not record.problem)


@op(
    "owner",
    examples=(
        "quaid forget people/alice --dry-run",
        "quaid forget people/alice --yes --backups",
        "quaid forget --finish",
    ),
)
def forget(
    brain: Brain,
    slug: Annotated[str | None, Arg("The page, by its exact slug.", positional=True)] = None,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would go.")] = False,
    backups: Annotated[bool, Arg("Delete the backups beside the memory that hold the page, too.")] = False,
    finish: Annotated[bool, Arg("Clean the file of what an earlier forgetting could not.")] = False,
) -> ForgetRecord:
    """Forget a page for good: text, words, vectors, links, facts, imported bytes; then prove that nothing is left.

    Exits 1 when something is left. What other pages say about it is listed, and stays."""
    if finish == bool(slug) or (finish and dry_run):
        problem = "stands alone" if finish else "is required"
        raise InvalidArgument(name="--finish" if finish else "slug", problem=problem)
    if slug is None:
        problem = _told(erasure.vacuum_and_checkpoint(brain.db).problem)
        return ForgetRecord(True, not problem, "", "", (), problem=problem)
    target = _target(brain, slug)
    beside = backup.copies_beside(brain.db.path, target)
    if dry_run or not yes:
        layers = [
            Layer(*each, None) for each in erasure.count_layers(brain.db, target, *_aside(brain, target))
        ]
        return _shown(target, tuple(layers), beside)._replace(ask=not dry_run)
    return _forgotten(brain, target, beside, backups)


def _target(brain: Brain, address: str) -> EraseTarget:
    named, name = slugs.split_address(address)
    collection = named or pages.single_collection_with(brain.db, slugs.check(name)) or "default"
    target = erasure.find_target(brain.db, slugs.check(name), collection)
    if target is None:
        stored = pages.require(brain.db, name, collection)  # which says what there is instead
        raise PageMoved(slug=address, target=stored.slug, expected=None, current_version=stored.version)
    if not target.quarantined:  # else its file is gone
        editing.refuse_folder(brain, target.slug, target.collection, "Delete")
    return target


def _aside(brain: Brain, target: EraseTarget) -> tuple[list[str], list[bytes]]:
    """The paths of its sidecars, and the contents that only this page has."""
    from quaid.folders import indexer

    paths = [indexer.sidecar_path(indexer.page_stem(path)) for path in (*target.files, f"{target.slug}.md")]
    return paths, erasure.own_content_hashes(brain.db, target.id)


def _shown(target: EraseTarget, layers: tuple[Layer, ...], beside: list[DatabaseCopy]) -> ForgetRecord:
    return ForgetRecord(
        done=False,
        clean=False,
        slug=target.slug,
        title=target.title,
        layers=layers,
        backups=tuple(_backup(each, False) for each in beside),
        files=target.files,
    )


def _backup(copy: DatabaseCopy, deleted: bool) -> Backup:
    return Backup(copy.path, copy.size, copy.made_by, copy.holds, deleted)


def _forgotten(brain: Brain, target: EraseTarget, beside: list[DatabaseCopy], backups: bool) -> ForgetRecord:
    db = brain.db
    paths, hashes = _aside(brain, target)
    before = erasure.count_layers(db, target, paths, hashes)
    pieces = _pieces(brain, target)
    words = erasure.own_words(db, target)
    erasure.enable_secure_delete(db)
    db.write(lambda tx: erasure.erase_page(tx, target, paths))
    gone = [each for each in beside if backups and each.ours and each.holds]
    backup.remove_copies(gone)
    cleaned = erasure.vacuum_and_checkpoint(db)
    after = dict(erasure.count_layers(db, target, paths, hashes))
    left, mentions = _left(brain, pieces)
    found = Proof("search and query", _still_found(brain, target, pieces))
    indexes = erasure.count_words_left(db, words)
    held = Proof(
        f"{count_noun(len(words), 'word')} of its own in the indexes",
        (f"{indexes:,} of them",) if indexes else (),
    )
    record = _shown(target, tuple(Layer(name, number, after[name]) for name, number in before), [])._replace(
        done=True,
        proof=(found, held, *left),
        mentions=mentions,
        backups=tuple(_backup(each, each in gone) for each in beside),
        problem=_told(cleaned.problem),
    )
    return _judged(record)


def _told(problem: str) -> str:
    return f"{problem.rstrip('.')}. {AGAIN}." if problem else ""


def _pieces(brain: Brain, target: EraseTarget) -> list[str]:
    """What to look for afterwards."""
    front: Any = json.loads(target.frontmatter)
    data = [
        text for each in pages.read_raw_data(brain.db, target.id) for text in erasure.json_strings(each.data)
    ]
    texts = [target.truth, target.timeline, *erasure.json_strings(front), *data]
    pieces = erasure.erasure_probes(target.slug, target.title, target.uuid, list(target.former), texts)
    return [each for each in pieces if not erasure.is_in_schema(brain.db, each)]


def _left(brain: Brain, pieces: list[str]) -> tuple[list[Proof], tuple[Mention, ...]]:
    """Where pieces of the page are in the files, byte by byte.

    Only a piece that the page alone had proves anything: what others have too is listed as their mention."""
    from quaid.storage.files import scan_files_in_subprocess

    files = [brain.db.path + ending for ending in ("", "-wal", "-shm")]
    found = scan_files_in_subprocess(files, pieces)
    said = {
        piece: erasure.places_with_text(brain.db, piece)
        for piece in dict.fromkeys(piece for _, piece in found)
    }
    mentions = tuple(Mention(piece, tuple(by)) for piece, by in said.items() if by)
    looked = len(pieces) - len(mentions)
    left = [
        Proof(
            f"{looked:,} pieces of it in the bytes of {path.rpartition('/')[2]}",
            tuple(piece for where, piece in found if where == path and not said[piece]),
        )
        for path in files
    ]
    return left, mentions


def _still_found(brain: Brain, target: EraseTarget, pieces: list[str]) -> tuple[str, ...]:
    """By words and names. The model is not asked: the layers show that there are no vectors."""
    from quaid.search import answer as answers, text as text_search

    found: dict[str, None] = {}
    for text in (target.title, target.slug, *pieces[-2:]):
        hits = {hit.slug for hit in text_search.search_pages(brain.db, text, limit=100)}
        answer = answers.answer_question(brain.db, None, text, now=brain.now(), limit=100)
        hits |= {result.slug for result in answer.results}
        if target.slug in hits:
            found[f"{text!r} finds it"] = None
    return tuple(found)

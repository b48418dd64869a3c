"""The one way to write: lock, look, fetch, change, index, lint, commit. A failure leaves the tree as it was.

Agents, people and editors come through here. What is changed is told by the caller; what may be committed is told by
lint. Nothing is pushed. Knows the order of the steps and nothing of nodes.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from quaid.errors import FileChanged, LintFailed, StoreDirty, StoreDiverged, StoreUnfinished
from quaid.kb import (
    catalog as catalogs,
    guarding,
    indexing,
    layout,
    linting,
    locking,
    node as nodes,
    pushing,
    reading,
    state,
)
from quaid.kb.catalog import Catalog
from quaid.kb.git import Git
from quaid.kb.linting import Finding
from quaid.kb.reading import TreeState


class Change(NamedTuple):
    files: Mapping[str, bytes | None]
    """The new bytes of each file; None: it goes."""
    message: str


class Done(NamedTuple):
    commit: str
    """The commit that holds the change; nothing when there was none to make."""
    paths: tuple[str, ...]
    offline: str
    """Why the remote was not reached; nothing when it was, or when there is none."""
    style: tuple[Finding, ...] = ()
    """Findings in these files that did not stop the commit."""
    adopted: tuple[str, ...] = ()
    """Files of these that a person had changed."""
    nodes: int = 0
    """How many nodes there are now."""


Plan = Callable[[Catalog], Change]


def apply(git: Git, now: str, what: str, plan: Plan, *, foreign: bool = False) -> Done:
    """Carry out what `plan` makes of the present nodes, as one commit, or not at all.

    `foreign`: a store without a commit takes over a remote that is not a knowledge base, too."""
    with locking.held(git, what):
        tree = _settled(git)
        _refuse_others(git, tree)
        offline = _up_to_date(git, now, tree, foreign=foreign)
        # What is committed are bytes that we write and compare. The files beside it are known by their looks, as git,
        # which has just said that they are those of the last commit, knows them.
        catalog = catalogs.look(git.root, git.ours, judge=linting.judge())
        change = plan(catalog)
        change = change._replace(files=_different(catalog, change.files))
        if not change.files:
            return Done("", (), offline)
        paths = [*change.files, *_index_paths(catalog)]
        with git.changing(paths, change.files):
            for path, data in change.files.items():
                put(catalog, path, data)
            catalog = catalogs.look_again(catalog, change.files, linting.judge())
            return _finish(git, catalog, now, set(change.files), change.message, offline)


def adopt(git: Git, now: str, message: str = "", what: str = "commit", *, today: str) -> Done:
    """Commit what a person has changed with an editor, through the same gate.

    Their files stay as they are, but for :UPDATED: of the nodes that they edited; a failure puts that back too."""
    with locking.held(git, what):
        tree = _settled(git)
        _refuse_unfinished(git, tree)
        offline = _up_to_date(git, now, tree)
        theirs = {*tree.changed, *(path for path in tree.untracked if layout.is_ours(path))}
        catalog = catalogs.look(git.root, git.ours, certain=bool(theirs), judge=linting.judge())
        adopted = tuple(sorted(path for path in theirs if not layout.is_index(path)))
        index, before = [path for path in _index_paths(catalog) if path not in theirs], git.head()
        with git.changing(index), _restamped(git, catalog, theirs, today) as catalog:
            done = _finish(git, catalog, now, theirs, message or _told(adopted), offline)
        if done.commit == before:  # what was staged or touched is what the last commit has
            done, adopted = done._replace(commit="", paths=tuple(filter(layout.is_index, done.paths))), ()
        return done._replace(adopted=adopted, nodes=catalog.count)


@contextmanager
def _restamped(git: Git, catalog: Catalog, theirs: set[str], today: str) -> Iterator[Catalog]:
    """The catalog with :UPDATED: moved to today in nodes that were edited; a failure puts their bytes back."""
    _refuse(linting.of_files(catalog))  # before a file of theirs is touched
    before = {path: layout.read(catalog.root, path) for path in _edited(git, catalog, theirs, today)}
    stamped = {
        path: nodes.stamped(data.decode("utf-8"), {"UPDATED": today}).encode()
        for path, data in before.items()
    }
    try:
        for path, data in stamped.items():
            put(catalog, path, data)
        catalog = catalogs.look_again(catalog, stamped, linting.judge()) if stamped else catalog
        yield catalog
    except BaseException:
        after = catalogs.look_again(catalog, stamped)
        for path, data in before.items():
            if path in after.files and after.files[path].digest == catalogs.digest(stamped[path]):
                put(after, path, data)
        raise


def _beside(expected: Mapping[str, bytes | None]) -> Iterator[Finding]:
    """What is wrong with files that git knows and the knowledge base does not, as a README that was staged."""
    for path, data in sorted(expected.items()):
        if data is None or layout.is_ours(path):
            continue
        if len(data) > catalogs.LARGEST_RAW:
            yield Finding(
                path, 1, "too-large", "it is too large", f"`git rm --cached -- {path}` lets go of it"
            )
        else:
            yield from linting.secrets_in(path, data)


def _bytes(root: str, path: str) -> bytes | None:
    """A file as it is on the disk; None where there is no plain file."""
    full = os.path.join(root, path)
    if os.path.islink(full) or not os.path.isfile(full):
        return None
    return layout.read(root, path)


def _edited(git: Git, catalog: Catalog, theirs: set[str], today: str) -> list[str]:
    """The nodes whose text differs from the last commit's, while their :UPDATED: is the same as there.

    A node in another file than before is known by its ID; one that only moved was not edited."""
    gone = [path for path in theirs - catalog.files.keys() if layout.is_node(path)]
    moved: dict[str, str] | None = None
    found = []
    for path in sorted(theirs & catalog.files.keys()):
        if not layout.is_node(path) or catalog.node(catalog.files[path]).updated >= today:
            continue
        old = git.content(path)
        if old is None and gone:
            if moved is None:
                texts = [(git.content(each) or b"").decode("utf-8", "replace") for each in gone]
                moved = {nodes.read("", text).node.id: text for text in texts}
            known = moved.get(catalog.node(catalog.files[path]).id)
        else:
            known = None if old is None else old.decode("utf-8", "replace")
        if known is None or known == catalog.text(path):
            continue
        if nodes.read(path, known).node.updated == catalog.node(catalog.files[path]).updated:
            found.append(path)
    return found


def _different(catalog: Catalog, files: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """Those files of a change that are not so already."""
    there = catalog.files
    return {
        path: data
        for path, data in files.items()
        if (path in there) is (data is None)
        or (data is not None and catalogs.digest(data) != there[path].digest)
    }


def whole_index(catalog: Catalog) -> Change:
    """The index as a change of its own."""
    return Change(_index_changes(catalog), "index: made anew")


def _finish(git: Git, catalog: Catalog, now: str, changed: set[str], message: str, offline: str) -> Done:
    _refuse(linting.of_files(catalog))  # no index of what cannot stay
    index = _index_changes(catalog)
    for path, data in index.items():
        put(catalog, path, data)
        changed.add(path)
    catalog = catalogs.look_again(catalog, index, linting.judge())
    findings = linting.lint(catalog, git.ours)
    _refuse(findings)
    expected = _judged(catalog, changed)
    _refuse(list(_beside(expected)))
    commit = git.commit(sorted(changed), message, expected=expected) if changed else ""
    state.note(git.root, indexed_at=now)
    return Done(
        commit, tuple(sorted(changed)), offline, tuple(each for each in findings if each.path in changed)
    )


def _refuse(findings: list[Finding]) -> None:
    fatal = [each for each in findings if each.fatal]
    if fatal:
        raise LintFailed(count=len(fatal), told=_listed(fatal), findings=[each._asdict() for each in fatal])


def _judged(catalog: Catalog, changed: set[str]) -> dict[str, bytes | None]:
    """The bytes that lint has seen: git compares them with what it commits. None: it saw no such file."""
    found: dict[str, bytes | None] = dict.fromkeys(changed)
    for path in changed & catalog.files.keys():
        data = layout.read(catalog.root, path)
        if catalogs.digest(data) != catalog.files[path].digest:
            raise FileChanged(path=path)
        found[path] = data
    for path in changed - catalog.files.keys():
        if not layout.is_ours(path):
            found[path] = _bytes(catalog.root, path)
    return found


def _listed(findings: list[Finding]) -> str:
    first = findings[0]
    told = [f"{first.path}:{first.line}: {first.message} ({first.remedy})"]
    told += [f"{each.path}:{each.line}: {each.message}" for each in findings[1:3]]
    return "; ".join(told) + (f"; and {len(findings) - 3} more" if len(findings) > 3 else "")


# The tree before a change


def _settled(git: Git) -> TreeState:
    """How the tree stands, without what a killed writer left beside its files."""
    tree = git.state()
    if not any(".quaid-" in path for path in tree.untracked):
        return tree
    from quaid.folders import atomic_write
    from quaid.folders.scanner import Folder

    left = [path for path in tree.untracked if atomic_write.is_leftover(path)]
    with Folder(git.root) as folder:
        for path in left:
            atomic_write.settle_leftover(folder, path, "saved.org")
    return git.state()


def _refuse_unfinished(git: Git, tree: TreeState) -> None:
    if tree.in_progress or tree.conflicted:
        raise StoreUnfinished(path=git.root, act=tree.in_progress or "merge")


def _refuse_others(git: Git, tree: TreeState) -> None:
    """Changes that are not ours to commit. The index is made anew anyway; what editors leave behind is nobody's."""
    _refuse_unfinished(git, tree)
    others = [
        path
        for path in (*tree.changed, *tree.untracked)
        if layout.is_ours(path) and not layout.is_index(path)
    ]
    others += [path for path in tree.changed if not layout.is_ours(path)]
    if others:
        raise StoreDirty(path=git.root, told=reading.some(others))


def _up_to_date(git: Git, now: str, tree: TreeState, *, foreign: bool = False) -> str:
    """Learn what the remote has, and take it over if nothing is lost by it. Why it was not reached."""
    if git.remote() is None:
        return ""
    fetched, tree = pushing.fetch(git, now, before=tree, sparing=True)
    if tree.has_diverged:
        raise StoreDiverged(path=git.root, ahead=tree.ahead, behind=tree.behind)
    if tree.head is None and not foreign:
        pushing.refuse_foreign(git)
    if tree.behind or tree.head is None:  # a store without a commit takes over what the remote has
        git.fast_forward()
    return "" if fetched.reached else fetched.problem


# Files


def put(catalog: Catalog, path: str, data: bytes | None) -> None:
    """Give a file new bytes, durably, or take it away. FileChanged when it is not what was looked at."""
    from quaid.folders import atomic_write
    from quaid.folders.scanner import Folder

    guarding.check_path(path)
    token = _token()
    with Folder(catalog.root) as folder:
        if path not in catalog.files:
            if data is not None:
                atomic_write.create_file(folder, path, data, token)
            return
        old = layout.read(catalog.root, path)
        if catalogs.digest(old) != catalog.files[path].digest:
            raise FileChanged(path=path)
        expected = sha256(old).hexdigest()
        if data is None:
            atomic_write.remove_file(folder, path, expected, token)
        elif data != old:
            atomic_write.replace_file(folder, path, data, expected, token)


def _token() -> str:
    """A name that nobody has, in the shape by which leftovers are known."""
    name = os.urandom(16).hex()
    return "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:]))


def _index_paths(catalog: Catalog) -> list[str]:
    """All files that making the index may touch."""
    return sorted(_generated(catalog) | indexing.NAMES)


def _generated(catalog: Catalog) -> set[str]:
    """The files of the index that are there; what a person named so is not among them."""
    there = {path for path in catalog.files if layout.is_index(path)}
    return {path for path in there if path in indexing.NAMES or indexing.is_generated(catalog.text(path))}


def _index_changes(catalog: Catalog) -> dict[str, bytes | None]:
    """What must be written so that the index is that of the nodes."""
    if catalog.index_problem == "":  # somebody has compared them, and no file has changed since
        return {}
    wanted = catalog.index = catalog.index or indexing.build(catalog.nodes)
    there = _generated(catalog)
    changes: dict[str, bytes | None] = dict.fromkeys(there - wanted.keys())
    for path, text in wanted.items():
        data = text.encode("utf-8", "replace")
        if path not in there or layout.read(catalog.root, path) != data:
            changes[path] = data
    return changes


def _told(paths: Sequence[str]) -> str:
    if not paths:
        return "index: made anew"
    return f"edit: {paths[0]}" if len(paths) == 1 else f"edit: {len(paths)} files"

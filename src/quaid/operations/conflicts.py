"""Merge versions of a page: the git merge driver, and the conflict copies of programs that sync folders."""

import os
import shlex
from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.clients import launch_command
from quaid.errors import GitFailed, InvalidArgument, QuaidError
from quaid.folders import atomic_write, indexer
from quaid.folders.scanner import Folder
from quaid.formats import markdown
from quaid.kb import git as git_cli, layout
from quaid.model import merge as merging, slug as slugs, timeline
from quaid.model.bundle import Bundle, json_text
from quaid.model.page import Page
from quaid.model.sync_plan import copied_path
from quaid.operations import history, page_changes, pages
from quaid.operations.collections import collection_sync
from quaid.operations.registry import Arg, op
from quaid.storage import files as durable_files
from quaid.storage.collections import Collection, Collections
from quaid.storage.pages import PageRow

DRIVER = "quaid"
"""The name of the merge driver in the settings of git."""
ATTRIBUTE_LINES = (f"*.md merge={DRIVER}", f"*.markdown merge={DRIVER}")
PAGE_ENDINGS = (".md", ".markdown")


class MergeDriverRecord(NamedTuple):
    path: str
    conflicts: int
    """The number of conflicts that are marked in the file; -1 if neither Quaid nor git could merge it."""

    @property
    def exit_status(self) -> int:
        return int(self.conflicts != 0)


@op(
    "owner",
    command="merge-driver",
    examples=("quaid merge-driver base.md ours.md theirs.md",),
    cli_note="git calls it after `quaid git-setup`. Exits 0 if there are no conflicts, else 1.",
)
def merge_driver(
    brain: Brain,
    base: Annotated[str, Arg("The version that both others are based on.", positional=True, path=True)],
    ours: Annotated[str, Arg("Our version. The result is written here.", positional=True, path=True)],
    theirs: Annotated[str, Arg("Their version.", positional=True, path=True)],
    path: Annotated[str, Arg("The name of the file in the repository.", positional=True)] = "",
) -> MergeDriverRecord:
    """Merge three versions of a page file by parts, as a merge driver of git.

    Conflicts are marked as git marks them. Files that are not Markdown pages in UTF-8 are merged by `git merge-file`.
    """
    paths = [brain.settings.path(name) for name in (base, ours, theirs)]
    name = path or ours
    versions = [_read(file) for file in paths]
    merged = None
    if name.lower().endswith(PAGE_ENDINGS) and not any(b"\0" in data for data in versions):
        try:
            merged = markdown.merge_files(*(data.decode("utf-8") for data in versions))
        except UnicodeDecodeError:
            pass
    if merged is None:
        return MergeDriverRecord(name, _merge_lines(brain, *paths))
    text, conflicts = merged
    with open(paths[1], "wb") as file:
        file.write(text.encode("utf-8"))
    return MergeDriverRecord(name, conflicts)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _merge_lines(brain: Brain, base: str, ours: str, theirs: str) -> int:
    """Merge files by lines with git. Return the number of conflicts, or -1 if they cannot be merged."""
    environ = git_cli.git_environment(brain.settings.environ)
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    command = (git_cli.git_program(brain.settings.environ), "merge-file", *labels, ours, base, theirs)
    status = git_cli.run_command(command, os.path.dirname(ours), environ).status
    return status if 0 <= status < 128 else -1


class GitSetupRecord(NamedTuple):
    folder: str
    driver: str
    """The command that git runs to merge a page; "" if the driver was removed."""
    attributes: str
    """The file that tells git which files are merged by the driver."""
    changed: tuple[str, ...]
    """Descriptions of the changes that were made or, in a dry run, would be made."""
    dry_run: bool


@op(
    "owner",
    command="git-setup",
    examples=("quaid git-setup", "quaid git-setup ~/notes --dry-run", "quaid git-setup ~/notes --remove"),
)
def git_setup(
    brain: Brain,
    folder: Annotated[str, Arg("A folder in a git repository.", positional=True, path=True)] = ".",
    remove: Annotated[bool, Arg("Remove the merge driver.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be changed.")] = False,
) -> GitSetupRecord:
    """Let git merge the pages of a folder by parts, with `quaid merge-driver`.

    This changes the folder's .gitattributes file and the settings of this clone. Other clones merge by lines until
    git-setup runs there.
    """
    root = os.path.realpath(brain.settings.path(folder))
    if not os.path.isdir(root):
        raise InvalidArgument(name="folder", problem=f"{root} is not a folder")
    git_folder = _git(brain, root, "rev-parse", "--absolute-git-dir", may_fail=True).strip()
    if not git_folder:
        raise InvalidArgument(
            name="folder", problem=f"{root} is not in a git repository; run `git init` there"
        )
    if os.path.isdir(os.path.join(git_folder, layout.OWN_FOLDER)):
        raise InvalidArgument(name="folder", problem="is a knowledge base, which has its own way to merge")
    launch = launch_command(brain.settings.db_path, brain.settings.environ)
    driver = shlex.join([launch.command, *launch.args, "merge-driver"]) + " %O %A %B %P"
    attributes = os.path.join(root, ".gitattributes")
    changed = [
        *_set_attributes(attributes, remove, dry_run),
        *_set_driver(brain, root, "" if remove else driver, dry_run),
    ]
    return GitSetupRecord(root, "" if remove else driver, attributes, tuple(changed), dry_run)


def _set_attributes(path: str, remove: bool, dry_run: bool) -> list[str]:
    """Add the lines for the merge driver to a .gitattributes file, or remove them. Return the changes."""
    path = os.path.realpath(path)
    before = _read(path).decode("utf-8", "surrogateescape") if os.path.exists(path) else ""
    end = "\r\n" if "\r\n" in before else "\n"
    lines = before.splitlines()
    if remove:
        lines = [line for line in lines if " ".join(line.split()) not in ATTRIBUTE_LINES]
    else:
        present = {" ".join(line.split()) for line in lines}
        lines += [line for line in ATTRIBUTE_LINES if line not in present]
    if lines == before.splitlines():
        return []
    after = "".join([line + end for line in lines])
    if not dry_run and not after:
        os.unlink(path)
    elif not dry_run:
        mode = os.stat(path).st_mode & 0o777 if before else 0o644
        durable_files.write_file(path, after.encode("utf-8", "surrogateescape"), mode=mode)
    return [f"{path}: {'removed' if remove else 'added'} {', '.join(ATTRIBUTE_LINES)}"]


def _set_driver(brain: Brain, root: str, driver: str, dry_run: bool) -> list[str]:
    """Set or remove the merge driver in the settings of the repository. Return the changes."""
    key = f"merge.{DRIVER}"
    before = _git(brain, root, "config", "--local", "--get", f"{key}.driver", may_fail=True).strip()
    if before == driver:
        return []
    if not dry_run and driver:
        _git(brain, root, "config", "--local", f"{key}.name", "Quaid pages, merged by parts")
        _git(brain, root, "config", "--local", f"{key}.driver", driver)
    elif not dry_run:
        _git(brain, root, "config", "--local", "--remove-section", key)
    return [f"git config {key}.driver: {driver or 'removed'}"]


def _git(brain: Brain, root: str, *arguments: str, may_fail: bool = False) -> str:
    """Run git in the user's repository and return its output. Raise GitFailed if it fails, unless `may_fail`."""
    environ = git_cli.git_environment(brain.settings.environ)
    done = git_cli.run_command((git_cli.git_program(brain.settings.environ), *arguments), root, environ)
    if done.status and not may_fail:
        raise GitFailed(verb=arguments[0], path=root, problem=done.err.strip() or f"status {done.status}")
    return done.out.decode("utf-8", "replace")


# Conflict copies


class ConflictCopy(NamedTuple):
    collection: str
    path: str
    """Path of the conflict copy."""
    page: str
    """Address of the page of which it is a copy; "" if there is none."""
    state: Literal["found", "merged", "left"]
    conflicts: int = 0
    """The number of conflicts that are now in the page, for `quaid review`."""
    problem: str = ""
    """Why the copy was left as it is, or ""."""


class ConflictCopiesRecord(NamedTuple):
    copies: tuple[ConflictCopy, ...]

    @property
    def exit_status(self) -> int:
        return int(any(copy.state == "left" for copy in self.copies))


@op(
    "owner",
    command="collection conflicts",
    examples=("quaid collection conflicts", "quaid collection conflicts notes --merge"),
)
def collection_conflicts(
    brain: Brain,
    name: Annotated[str | None, Arg("The collection [all].", positional=True)] = None,
    merge: Annotated[bool, Arg("Merge each copy into its page, and remove the copy.")] = False,
) -> ConflictCopiesRecord:
    """List the conflict copies that Syncthing, Obsidian, Dropbox or Quaid left in folders, or merge them.

    With --merge, a copy is removed once the file of the page has its content. The page made from the copy stays in
    quarantine for 30 days. Exits 1 if a copy could not be merged.
    """
    chosen = [Collections(brain.db).require(name)] if name else Collections(brain.db).all()
    copies: list[ConflictCopy] = []
    for collection in chosen:
        if collection.root is None or collection.state != "active":
            continue
        collection_sync(brain, collection.name)
        found = _find_copies(brain, collection)
        if merge and found:
            found = [_merge_copy(brain, collection, copy) for copy in found]
            collection_sync(brain, collection.name)
        copies += found
    return ConflictCopiesRecord(tuple(copies))


def _find_copies(brain: Brain, collection: Collection) -> list[ConflictCopy]:
    slugs_by_path = {file.path: file.slug for file in collection.page_files(brain.db) if file.path}
    copies = []
    for path in slugs_by_path:
        original = copied_path(path)
        if original is not None:
            slug = slugs_by_path.get(original)
            page = slugs.address(collection.name, slug) if slug else ""
            copies.append(ConflictCopy(collection.name, path, page, "found"))
    return copies


def _merge_copy(brain: Brain, collection: Collection, copy: ConflictCopy) -> ConflictCopy:
    """Merge a copy into its page, and remove it if all of its content is in the file of the page."""
    left = copy._replace(state="left")
    if not copy.page:
        return left._replace(problem="its original is missing; rename the copy to keep it")
    try:
        with Folder(collection.root or "") as folder:
            data = folder.read(copy.path)
            text = data.decode("utf-8")
            document = markdown.parse(text)
            if indexer.is_org(copy.path) or document.problem:
                return left._replace(problem=document.problem or "is an org file; merge it by hand")
            conflicts, base = _merge_into_page(brain, copy.page, document)
            if not _contains(pages.require_page(brain, copy.page), document, base):
                return left._replace(problem="a part of it is not in the page")
            atomic_write.remove_file(folder, copy.path, indexer.digest(data), brain.new_uuid())
    except UnicodeDecodeError:
        return left._replace(problem="is not UTF-8")
    except OSError as error:
        return left._replace(problem=f"cannot be read: {error.strerror}")
    except QuaidError as error:
        return left._replace(problem=str(error))
    return copy._replace(state="merged", conflicts=conflicts)


def _merge_into_page(brain: Brain, address: str, copy: markdown.MarkdownDocument) -> tuple[int, Page | None]:
    """Merge a copy into the stored page. Return the number of conflicts, and the base version or None."""
    conflicts, base = 0, None

    def change(old: PageRow | None) -> Page:
        nonlocal conflicts, base
        assert old is not None
        base = _base_of(brain, old, copy)
        same = Bundle(old.uuid, old.slug, old.frontmatter, old.truth, old.timeline)
        ours = same._replace(frontmatter=copy.frontmatter, truth=copy.truth, timeline=copy.timeline)
        before = base and same._replace(
            frontmatter=base.frontmatter, truth=base.truth, timeline=base.timeline
        )
        new, left = merging.merge(before, ours, same, "conflict copy", "this file")
        conflicts = len(left)
        return pages.rebuild_page(old, frontmatter=new.frontmatter, truth=new.truth, lines=new.timeline)

    page_changes.edit_page(brain, address, None, change)
    return conflicts, base


def _base_of(brain: Brain, row: PageRow, copy: markdown.MarkdownDocument) -> Page | None:
    """Return the newest stored version whose content the copy contains completely, or None.

    Any other version may be newer than the copy. As the base of a merge, it would make the text that the copy
    lacks look as if the copy had removed it.
    """
    return next((page for page in history.earlier_pages(brain, row) if _contains(copy, page, None)), None)


def _contains(
    whole: "markdown.MarkdownDocument | Page | PageRow",
    part: "markdown.MarkdownDocument | Page",
    base: Page | None,
) -> bool:
    """Return True if `whole` has all blocks, timeline entries and values of `part` that `base` does not have."""
    blocks = {*merging.split_blocks(part.truth)} - {*merging.split_blocks(base.truth if base else "")}
    text = f"\n{whole.truth}\n"
    entries = timeline.missing_entries(part.timeline, whole.timeline)
    old = {entry.text for entry in timeline.split_entries(base.timeline if base else "")[0]}
    values = [
        value
        for key, value in part.frontmatter.items()
        if not base or base.frontmatter.get(key) != value
        for value in (value if isinstance(value, list) else [value])
    ]
    front = json_text(whole.frontmatter)
    return (
        all(f"\n{block}\n" in text for block in blocks)
        and all(entry.text in old for entry in entries)
        and all(json_text(value) in front for value in values)
    )

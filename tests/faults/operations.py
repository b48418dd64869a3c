"""Single operations that are hit at each of their system calls, and how a memory looks before and after them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from tests.faults import old_schema
from tests.faults.worker import DAY, say
from tests.faults.workspace import FOLDER, STORE, files, open_brain, page_text, run
from tests.kb.stores import plain

from quaid.app import Brain

NOTEBOOK = "notebook"
ONCE = "once"
"""The kind of a worker that does one operation."""

IN_FRONT = "in-front"
"""A folder beside a memory whose programs a worker with one operation finds before all others, if it is there."""


class Operation(NamedTuple):
    """One call, as a client makes it."""

    name: str
    call: Callable[[Brain], object]
    prepare: Callable[[Brain, Path], object] = lambda brain, home: None
    """What is there for it, beyond pages with and without files."""
    folders: tuple[str, ...] = ()
    """Collections that it writes into."""
    old_schema: int = 0
    """The schema of the memory that it is the first to open; 0: the current one."""

    @property
    def uses_git(self) -> bool:
        return self.name == "kb remember"


class State(NamedTuple):
    """What a memory says, without what differs from run to run."""

    pages: dict[str, tuple[Any, ...]]
    files: dict[str, bytes]
    nodes: frozenset[str]


def _put(slug: str, word: str, **more: Any) -> Callable[[Brain], object]:
    return lambda brain: run(brain, "put", slug=slug, compiled_truth=page_text(word), **more)


def _ingest(brain: Brain) -> object:
    entry = {"date": DAY, "summary": "met begins. met ends."}
    changes: list[dict[str, Any]] = [
        {"slug": slug, "expected_version": 1, "timeline_entries": [entry]} for slug in (f"{FOLDER}::p0", "d0")
    ]
    changes.append({"slug": f"{FOLDER}::in/new", "content": page_text("new")})
    source = {"content": "Met.", "source_type": "meeting", "source_ref": "meeting/1"}
    return run(brain, "ingest-source", **source, pages=changes)


def _edit_folder(brain: Brain, home: Path) -> None:
    root = home / FOLDER
    (root / "p0.md").write_text(page_text("edited") + "\n")
    (root / "added.md").write_text(page_text("added") + "\n")
    os.rename(root / "p1.md", root / "moved.md")
    (root / "p2.md").unlink()


def _remember_node(brain: Brain) -> object:
    fields = {"text": "All of it. " * 40, "title": "Thing", "summary": "What the thing is"}
    return run(brain, "kb remember", **fields, force=True)


OPERATIONS = (
    Operation("put", _put("d0", "second", expected_version=1)),
    Operation("put into a file", _put(f"{FOLDER}::p0", "second", expected_version=1), folders=(FOLDER,)),
    Operation(
        "put a new file",
        lambda brain: run(brain, "put", slug=f"{FOLDER}::new/page", content=page_text("made")),
        folders=(FOLDER,),
    ),
    Operation(
        "timeline-add",
        lambda brain: run(
            brain, "timeline-add", slug=f"{FOLDER}::p0", date=DAY, summary="met begins. met ends."
        ),
        folders=(FOLDER,),
    ),
    Operation(
        "tag",
        lambda brain: run(brain, "tag", slug=f"{FOLDER}::p0", tag="founder"),
        folders=(FOLDER,),
    ),
    Operation("ingest-source", _ingest, folders=(FOLDER,)),
    Operation(
        "remember",
        lambda brain: run(brain, "remember", content="Sarah prefers email to phone."),
        lambda brain, home: run(brain, "notebook init"),
        folders=(NOTEBOOK,),
    ),
    Operation("collection sync", lambda brain: run(brain, "collection sync", name=FOLDER), _edit_folder),
    Operation("backup", lambda brain: run(brain, "backup", file=os.path.join(brain.settings.cwd, "copy.db"))),
    Operation("kb remember", _remember_node, lambda brain, home: run(brain, "kb init")),
    Operation("migrate 5", lambda brain: brain.db, old_schema=5),
    Operation("migrate 8", lambda brain: brain.db, old_schema=8),
    Operation("migrate 9", lambda brain: brain.db, old_schema=9),
    Operation("migrate 10", lambda brain: brain.db, old_schema=10),
    Operation("migrate 11", lambda brain: brain.db, old_schema=11),
)

BY_NAME = {operation.name: operation for operation in OPERATIONS}


def make(home: Path, name: str) -> None:
    """A memory that an operation can be tried on."""
    operation = BY_NAME[name]
    root = home / FOLDER
    root.mkdir(parents=True)
    if operation.old_schema:
        old_schema.make(home / "memory.db", 12, operation.old_schema)
        return
    for number in range(3):
        (root / f"p{number}.md").write_text(
            f"---\nkey: {number} # mine\n---\n{page_text(f'first{number}')}\n"
        )
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for slug in ("d0", "d1"):
            run(brain, "put", slug=slug, content=page_text("first"))
        operation.prepare(brain, home)


def put_back(home: Path, template: Path) -> None:
    """A memory as it was, in the same folders: a collection whose folder is another one is not synced."""
    for there in home.iterdir():
        if there.name in (FOLDER, NOTEBOOK):
            for path in there.iterdir():
                _remove(path)
        else:
            _remove(there)
    shutil.copytree(template, home, dirs_exist_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def do(home: Path, name: str) -> None:
    """The operation, in a process that dies of it; said when it is acknowledged."""
    if (home.parent / IN_FRONT).is_dir():
        os.environ["PATH"] = f"{home.parent / IN_FRONT}{os.pathsep}{os.environ['PATH']}"
    with open_brain(home) as brain:
        BY_NAME[name].call(brain)
        say("done")


def look(home: Path) -> State:
    """How a memory stands, as it lies: nothing is brought in step."""
    with open_brain(home) as brain:
        rows = brain.db.rows(
            "SELECT c.name || '::' || p.slug, p.version, p.compiled_truth, p.timeline, p.frontmatter,"
            " (SELECT group_concat(tag) FROM tags t WHERE t.page_id = p.id),"
            " (SELECT count(*) FROM timeline_entries t WHERE t.page_id = p.id),"
            " p.quarantined_at IS NULL"
            " FROM pages p JOIN collections c ON c.id = p.collection_id ORDER BY 1"
        )
    return State(
        {row[0]: row[1:] for row in rows},
        {
            f"{name}/{path}": data
            for name in (FOLDER, NOTEBOOK)
            for path, data in files(home / name).items()
            if (home / name).is_dir()
        },
        nodes(home),
    )


def nodes(home: Path) -> frozenset[str]:
    """The titles of the nodes that the last commit of a knowledge base holds."""
    if not (home / STORE).is_dir():
        return frozenset()
    words = ("grep", "-h", "-i", "^#+title:", "HEAD", "--", "*.org", ":!raw", ":!index*", ":!AGENT*")
    git = by_git(home, *words, status=None)
    return frozenset(line.partition(":")[2].strip() for line in git.splitlines())


def by_git(home: Path, *words: str, status: int | None = 0) -> str:
    """What plain git says in the knowledge base."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return plain(home / STORE, *words, environ=environ, status=status)


def agree(home: Path) -> None:
    """Folders and index agree after a sync, every check is clean, and nothing of ours lies about an hour later."""
    with open_brain(home) as brain:
        names = [row[0] for row in brain.db.rows("SELECT name FROM collections WHERE root_path IS NOT NULL")]
        for name in names:
            report = run(brain, "collection sync", name=name)["syncs"][0]
            assert not report["halted"], report
            again = run(brain, "collection sync", name=name)["syncs"][0]
            assert [again[what] for what in ("new", "changed", "moved", "removed", "waiting")] == [0] * 5, (
                again
            )
        assert run(brain, "validate")["violations"] == []
    with open_brain(home, later=7200) as brain:
        for name in names:
            run(brain, "collection sync", name=name)
    left = [path for name in (FOLDER, NOTEBOOK) for path in (home / name).rglob(".quaid-*")]
    assert left == []


def goes_on(home: Path) -> None:
    """The next client can write at once: a page, a file, and where there is a knowledge base a node."""
    with open_brain(home) as brain:
        for slug in ("after", f"{FOLDER}::after"):
            if "::" not in slug or brain.db.one("SELECT 1 FROM collections WHERE name = ?", (FOLDER,)):
                run(brain, "put", slug=f"{slug}{uuid4().hex[:8]}", content=page_text("after"))
        if (home / STORE).is_dir():
            title = f"After {len(nodes(home))}"
            made = run(brain, "kb remember", text="Much.", title=title, summary="What came after", force=True)
            assert by_git(home, "rev-parse", "HEAD").strip() == made["commit"]
            assert by_git(home, "status", "--porcelain") == ""
            by_git(home, "fsck", "--strict", "--no-dangling")
            assert run(brain, "kb lint")["findings"] == []
        assert run(brain, "validate")["violations"] == []

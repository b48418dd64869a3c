"""What only a person may do to the knowledge base: merge, delete, supersede, contest. Each asks first."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.ops import kb
from quaid.ops.kb import Named, NodeRecord
from quaid.ops.register import Arg, op

if TYPE_CHECKING:
    from quaid.kb.catalog import Catalog
    from quaid.kb.node import Node
    from quaid.kb.transaction import StoreChange

Yes = Annotated[bool, Arg("Do it without asking.")]
DryRun = Annotated[bool, Arg("Only show what would change.")]
Force = Annotated[bool, Arg("Also if others link to it; their links become plain words.")]


class KbChangeRecord(NamedTuple):
    """What is done, or would be."""

    act: str
    nodes: tuple[NodeRecord, ...]
    files: tuple[str, ...]
    """Files that change."""
    done: bool
    commit: str
    ask: bool = True
    pointers: tuple[str, ...] = ()
    """Notes of agents outside that name it by its ID."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask and not self.done else {}


@op("owner", command="kb merge", examples=("ai-kb merge 5b1c2d3e 9f8e7d6c",))
def kb_merge(
    brain: Brain,
    node: Named,
    other: Annotated[str, Arg("The node that goes into it.", positional=True)],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Make one node of two. Links to the second, and pointers to its ID, lead to the first from then on."""
    from quaid.kb import edits

    return _change(
        brain,
        "Merging",
        (node, other),
        (yes, dry_run),
        lambda all, of: edits.plan_merge(all, of[0], of[1], _today(brain)),
    )


@op(
    "owner",
    command="kb delete",
    examples=("ai-kb delete 5b1c2d3e", "ai-kb delete raw/20260524140509-on-locks.org"),
)
def kb_delete(
    brain: Brain,
    node: Annotated[
        str, Arg("The node, or the path of a capture below raw/ with its whole file.", positional=True)
    ],
    force: Force = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Delete a node or a capture. Git keeps it in its history; refused while others link to it or name it."""
    from quaid.kb import edits, layout

    path = node.strip()
    if layout.is_raw_file(path):
        return _change(
            brain,
            "Deleting",
            (),
            (yes, dry_run),
            lambda all, _: edits.plan_raw_deletion(all, path, force=force),
            path,
        )
    return _change(
        brain,
        "Deleting",
        (node,),
        (yes, dry_run),
        lambda all, of: edits.plan_deletion(all, of[0], force=force),
    )


@op("owner", command="kb supersede", examples=("ai-kb supersede 5b1c2d3e --by 9f8e7d6c",))
def kb_supersede(
    brain: Brain,
    node: Named,
    by: Annotated[str, Arg("The node that takes its place.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Say that one node has taken the place of another."""
    from quaid.kb import edits

    return _change(
        brain,
        "Superseding",
        (node, by),
        (yes, dry_run),
        lambda all, of: edits.plan_supersession(all, of[0], of[1], _today(brain)),
    )


@op(
    "owner",
    command="kb contest",
    examples=("ai-kb contest 5b1c2d3e --against 9f8e7d6c", "ai-kb contest 5b1c --settle"),
)
def kb_contest(
    brain: Brain,
    node: Named,
    against: Annotated[str | None, Arg("The node that it contradicts.")] = None,
    settle: Annotated[bool, Arg("It holds after all: mark it as current again.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> KbChangeRecord:
    """Mark a node as contested, or as settled."""
    from quaid.kb import edits

    names = (node,) if against is None else (node, against)

    def plan(catalog: "Catalog", of: "list[Node]") -> "StoreChange":
        other = of[1] if len(of) > 1 else None
        return edits.plan_contest(catalog, of[0], other, _today(brain), settle=settle)

    return _change(brain, "Settling" if settle else "Contesting", names, (yes, dry_run), plan)


def _today(brain: Brain) -> str:
    return brain.local()[:10]


def _change(
    brain: Brain,
    verb: str,
    names: tuple[str, ...],
    how: tuple[bool, bool],
    plan: "Callable[[Catalog, list[Node]], StoreChange]",
    what: str = "",
) -> KbChangeRecord:
    from quaid.kb import catalog as catalogs, transaction

    yes, ask = how[0] and not how[1], not how[1]
    git = kb.store(brain)
    planned: list[Any] = []

    def work(catalog: "Catalog") -> "StoreChange":
        nodes = [catalogs.find_node(catalog, name) for name in names]
        change = plan(catalog, nodes)
        planned[:] = [nodes, change]
        return change

    commit = ""
    if yes:
        done = transaction.apply_change(git, brain.now(), verb.lower(), work)
        commit = done.commit
        files = done.paths
    else:
        files = tuple(work(kb.look(brain)).files)
    nodes, change = planned
    if not files:
        raise InvalidArgument(name="node", problem="is that already; nothing to do")
    act = f"{verb} {what or ', '.join(node.pointer for node in nodes)}"
    gone = [node.id for node in nodes if change.files.get(node.path, b"") is None]
    return KbChangeRecord(act, tuple(map(kb.told, nodes)), files, yes, commit, ask, _pointers(brain, gone))


MOST_NOTES, LARGEST_NOTE = 2_000, 1024 * 1024


def _pointers(brain: Brain, ids: list[str]) -> tuple[str, ...]:
    """Notes of projects, as Claude Code keeps them, that name one of these IDs."""
    if not ids:
        return ()
    import glob

    from quaid.clients.known import ClientPaths

    settings = brain.settings
    where = ClientPaths(settings.user_home, settings.cwd, settings.platform, settings.environ)
    found = []
    pattern = os.path.join(glob.escape(where.path("CLAUDE/projects")), "*", "memory", "*.md")
    for path in sorted(glob.glob(pattern))[:MOST_NOTES]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(LARGEST_NOTE).lower()
        except OSError:
            continue
        if any(id in text for id in ids):
            found.append(path)
    return tuple(found)

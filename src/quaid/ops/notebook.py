"""The notebook by intent: remember, recall, log the day, and what an agent should know from the start."""

import os
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument, InvalidConfig, NoNotebook
from quaid.notebook import layout
from quaid.notebook.layout import RecallResult, RememberedLine, SessionPrompt
from quaid.ops import noting
from quaid.ops.register import Arg, op

if TYPE_CHECKING:
    from quaid.notebook.prompt import PromptLimits


class RememberRecord(NamedTuple):
    path: str
    section: str
    lines: tuple[RememberedLine, ...]
    """What is remembered, where each line stands, and whether it was written now."""
    version: int


class LogRecord(NamedTuple):
    path: str
    line: int
    heading: str
    version: int


@op(
    "write",
    tool="remember",
    core=True,
    adds_only=True,
    examples=(
        "quaid remember Sarah prefers email to phone",
        "quaid remember 'buy milk, eggs and bread'",
        "quaid remember 'The Dispossessed' --category lists --file reading",
    ),
)
def remember(
    brain: Brain,
    content: Annotated[
        str, Arg("What to remember, in plain words: one thing, or a list.", positional=True, any_text=True)
    ],
    category: Annotated[
        Literal[
            "lists",
            "reference",
            "knowledge",
            "contacts",
            "preferences",
            "standing-orders",
            "todos",
            "shopping",
            "facts",
            "patterns",
        ]
        | None,
        Arg("What kind of thing it is; told from the words if left out."),
    ] = None,
    file: Annotated[str | None, Arg("The file, as in reading or lists/reading.md.")] = None,
    section: Annotated[str | None, Arg("The heading to put it under; made if it is missing.")] = None,
) -> RememberRecord:
    """Remember in the notebook: a contact, preference, standing order, todo, shopping item, fact or pattern.

    It goes under the right heading of the right file, once."""
    from quaid.notebook import router

    notebook = layout.require_notebook(brain.db)
    there: tuple[str, ...] = ()
    if router.needs_file_list(content, file):
        from quaid.storage import collections

        indexed = [each.path for each in collections.known_files(brain.db, notebook.id)]
        there = tuple(dict.fromkeys([*layout.list_files(notebook.root or ""), *indexed]))
    goal = router.choose_target(content, category, file, section, there)
    written = router.UpdatedNote("", "", ())

    def change(old: str | None) -> str:
        nonlocal written
        written = router.add_lines(old, goal)
        return written.text

    edited = noting.edit(brain, notebook, goal.path, change)
    return RememberRecord(goal.path, written.section, written.lines, edited.version)


@op(
    "read",
    tool="recall",
    core=True,
    examples=("quaid recall sarah phone", "quaid recall 'when do we usually deploy?' --max-results 5"),
)
def recall(
    brain: Brain,
    query: Annotated[
        str, Arg("What to look for, in your own words.", positional=True, any_text=True, question=True)
    ],
    max_results: Annotated[int | None, Arg("How many findings [15].", minimum=1, maximum=200)] = None,
    min_score: Annotated[
        float | None, Arg("The least score, from 0 to 1 [0.25]; from 0.5 on it is a good answer.")
    ] = None,
) -> RecallResult:
    """Search the notebook and the daily logs, by words and by meaning. Try this first; scores can be compared."""
    from quaid.embedding import backfill
    from quaid.notebook import recall as notebook_recall
    from quaid.ops import background, recovery

    recovery.ready(brain)
    max_results = int(brain.option("search.max_results")) if max_results is None else max_results
    min_score = float(brain.option("search.min_score")) if min_score is None else min_score
    if not 0 <= min_score <= 1:
        raise InvalidArgument(name="min_score", problem=f"must be from 0 to 1, not {min_score:g}")
    if not query.strip():
        raise InvalidArgument(name="query", problem="is empty; say what to look for")
    notebook = noting.fresh(brain)
    if brain.db.writable:
        backfill.cut_pages(brain.db, brain.progress)
    embedder, problem = background.asked_model(brain)
    return notebook_recall.search_notebook(
        brain.db,
        notebook,
        embedder,
        query,
        now=brain.now(),
        max_results=max_results,
        min_score=min_score,
        vectors=lambda: brain.vectors,
        no_model=problem,
    )


@op(
    "write",
    command="log",
    tool="daily_log",
    core=True,
    adds_only=True,
    examples=("quaid log Shipped version 2, Anna was happy",),
)
def daily_log(
    brain: Brain,
    entry: Annotated[
        str, Arg("What happened; its first line becomes the heading.", positional=True, any_text=True)
    ],
) -> LogRecord:
    """Add an entry to today's log, under the time of day."""
    from quaid.notebook import files as notebook_files

    notebook = layout.require_notebook(brain.db)
    local = brain.local()
    block = notebook_files.render_entry(local, entry)
    lines: list[int] = []

    def change(old: str | None) -> str:
        logged = notebook_files.add_log_entry(old, local, entry)
        lines[:] = [logged.line]
        return logged.text

    edited = noting.edit(brain, notebook, layout.daily_path(local[:10]), change)
    return LogRecord(edited.path, lines[0], block.partition("\n")[0], edited.version)


@op(
    "read",
    command="prompt",
    tool="memory_context",
    examples=("quaid prompt", "quaid prompt --token-budget 2000", "quaid prompt --project"),
)
def prompt(
    brain: Brain,
    token_budget: Annotated[
        int | None, Arg("Tokens that it may take at most.", minimum=1, maximum=10**9)
    ] = None,
    project: Annotated[bool, Arg("Add what the memory has on the project of this folder.")] = False,
    characters: Annotated[
        int | None, Arg("Characters that it may take at most.", minimum=1, maximum=10**9)
    ] = None,
) -> SessionPrompt:
    """What an agent should know from the start: all of reference, today's and yesterday's log. The same each time."""
    from quaid.notebook.prompt import LEGACY_FOLDER, assemble_prompt

    root = noting.root(brain)
    found = layout.find_notebook(brain.db) if os.path.exists(brain.settings.db_path) else None
    root = found.root or root if found else root
    if not os.path.isdir(root) and not os.path.isdir(os.path.join(os.path.dirname(root), LEGACY_FOLDER)):
        raise layout.folder_missing(found) if found else NoNotebook(what="notebook", name="", hint="")
    about = _about_project(brain) if project else ""
    return assemble_prompt(root, brain.local(), token_budget, _limits(brain), about, characters)


def _limits(brain: Brain) -> "PromptLimits":
    from quaid.notebook.prompt import PromptLimits

    option = brain.settings.option
    folder = str(option("prompt.reference_dir")).strip("/")
    if folder.startswith((".", "~")) or ".." in folder.split("/"):
        raise InvalidConfig(
            path=brain.settings.config_path or "The environment",
            problem=f"prompt.reference_dir must be a folder within the notebook, not {folder!r}",
        )
    return PromptLimits(
        folder,
        int(option("prompt.daily_window")),
        int(option("prompt.max_per_file_chars")),
        int(option("prompt.max_total_reference_chars")),
    )


def _about_project(brain: Brain) -> str:
    """What the memory says of the project in whose folder the caller stands; reference and logs are told anyway."""
    from quaid.notebook import recall as notebook_recall

    name = notebook_recall.project_name(brain.settings.cwd, brain.settings.user_home)
    if not name or not os.path.exists(brain.settings.db_path):
        return ""
    return notebook_recall.project_summary(brain.db, name, layout.find_notebook(brain.db))

"""How a knowledge base comes to be: a repository with a contract, a first node, an index and a place for raw texts.

Doing it again changes nothing and mends what is missing. The contract travels with the store: it tells any agent,
with our tools or without, what a node is and how one is written.
"""

from collections.abc import Mapping

from quaid.errors import RemoteOccupied, StoreOccupied
from quaid.kb import changing, curating, guarding, layout, marker, node as nodes, pushing, state
from quaid.kb.catalog import Catalog
from quaid.kb.changing import Change
from quaid.kb.git import Git
from quaid.kb.node import Draft
from quaid.kb.records import Made

RAW_TEXT = """\
#+title: Raw captures

Excerpts of outside sources, each with its address and the day it was read; whole files are in files/. Nodes name them
in :SOURCE:. Nothing here is a node, and nothing here is a secret.
"""

FORCE_FOLDER = (
    "A knowledge base needs a folder of its own: name a new one, or make one among these files with --force"
)
FORCE_REMOTE = "Name an empty private repository, or add --force to commit and push beside these files"

FIRST = Draft(
    title="How this knowledge base is used",
    summary="What belongs into this knowledge base, who writes it, and how nodes are found again.",
    body="""\
Knowledge that holds beyond one project and one session: principles, preferences, procedures, observations and
references. What belongs to one project stays there.

- Before acting: =ai-kb query WORDS= shows what is known.
- After learning something that lasts: =ai-kb remember= writes it, checks everything and commits.
- A node that is wrong is contested or superseded by a person, never silently overwritten.

The rules are in AGENT_CONTRACT.org.""",
    type="reference",
    created_by="quaid",
    confidence="user-stated",
    source="ai-kb init",
)


def clone(git: Git, url: str, environ: Mapping[str, str], *, force: bool = False) -> Git:
    """Fetch a store from its remote; refused before a file is written when it holds something else."""

    def check(fetched: Git) -> None:
        found = marker.of_remote(fetched)
        if found.is_foreign:
            raise RemoteOccupied(url=guarding.masked(url), told=found.told, remedy=FORCE_REMOTE)

    return Git.clone(url, git.root, environ, check=None if force else check)


def init(git: Git, *, remote: str, now: str, local: str, id: str, force: bool = False) -> Made:
    """Make a store, or mend one. What holds something else is refused before anything is written, unless forced."""
    created = not git.is_repository() or git.head() is None
    if remote:
        remote = guarding.check_url(guarding.from_here(remote), git.root)
    if not force:
        _refuse_foreign(git, remote)
    git.init()
    if remote and git.remote() != remote:
        git.set_remote(remote)
        pushing.fetch(git, now)
    git.follow_the_only_branch()
    if force and git.remote():
        state.note(git.root, accepted=pushing.mark_of(git.remote() or ""))

    def plan(catalog: Catalog) -> Change:
        files: dict[str, bytes | None] = {}
        if layout.CONTRACT not in catalog.files:
            files[layout.CONTRACT] = contract().encode()
        if not any(layout.is_raw(path) for path in catalog.files):
            files[curating.README] = RAW_TEXT.encode()
        if not any(True for _ in catalog.nodes):
            files[nodes.file_name(FIRST.title, local)] = nodes.write(FIRST, id, local[:10]).encode()
        if not files and layout.INDEX + layout.ENDING not in catalog.files:
            return changing.whole_index(catalog)
        return Change(files, "ai-kb: a knowledge base")

    done = changing.apply(git, now, "init", plan, foreign=force)
    return Made(git.root, created, done.paths, guarding.masked(git.remote() or ""), done.commit)


def _refuse_foreign(git: Git, remote: str) -> None:
    found = marker.of_store(git)
    if found.is_foreign:
        raise StoreOccupied(path=git.root, told=found.told, remedy=FORCE_FOLDER)
    is_there = git.is_repository()
    known = git.remote() if is_there else None
    url = remote or known or ""
    if not url or (url == known and git.head() is not None):
        return
    import shutil
    import tempfile

    passing = tempfile.mkdtemp(prefix="ai-kb-")
    try:
        look = git.beside(passing)
        there = marker.of_remote(look) if look.look_into(url) else marker.Contents((), False)
    finally:
        shutil.rmtree(passing, ignore_errors=True)
    if there.is_foreign:
        raise RemoteOccupied(url=guarding.masked(url), told=there.told, remedy=FORCE_REMOTE)


def contract() -> str:
    """The rules, for agents of any make."""
    values = {
        "types": ", ".join(nodes.TYPES),
        "creators": " | ".join(nodes.CREATORS[:4]),
        "confidences": " | ".join(nodes.CONFIDENCES),
        "visibilities": " | ".join(nodes.VISIBILITIES),
        "statuses": " | ".join(nodes.STATUSES),
        "relations": ", ".join(nodes.RELATIONS),
    }
    return _CONTRACT.format(**values)


_CONTRACT = """\
#+title: Agent contract

The rules of this knowledge base, for every agent and every person. It is private, and still no place for secrets.

* What belongs here
Knowledge that is true beyond this session and of use beyond this project: a principle, a preference that was stated,
a procedure that will be needed again, an observation that cost time to make, a reference. Not: status, what can be
read off the code or its history, what concerns one project only. When in doubt, leave it out.

* A node
One org file at the top of this folder, with a drawer at its very beginning:

#+begin_example
:PROPERTIES:
:ID:         a UUID, made by uuidgen; the identity of the node for ever
:PROJECTS:   :general: or slugs of projects, as in :emacs: :deepsat:
:CREATED:    2026-05-24
:UPDATED:    2026-05-24
:CREATED_BY: {creators}
:CONFIDENCE: {confidences}
:VISIBILITY: {visibilities}
:SOURCE:     where it comes from: chat 2026-05-24, or a path below raw/
:STATUS:     {statuses}
:SUMMARY:    One sentence, written to be found.
:END:
#+title: A short title
#+filetags: :principle:emacs:

The body. Other nodes are linked as [[id:THEIR-UUID][Their title]].
#+end_example

One of the tags is the type: {types}. A word before a link says how the two belong together: {relations}. The slug of
a project is the name of its folder in small letters, without a leading dot and a trailing .d or .git, with - for what
is neither letter nor digit; general is for what concerns all.

* Reading
- =ai-kb query WORDS= before a choice of convention, before a procedure of several steps, when something fails oddly.
- =index.org= lists every node with title, ID and summary; =ai-kb show ID= prints one, =ai-kb backlinks ID= who links
  to it.
- A pointer from elsewhere reads =ai-kb: Title (UUID)=; the ID counts, and the title if no node has that ID any more.
- Without the program, read =index.org= first and then only the nodes that matter. Run in this folder:
  - =grep -rl --include='*.org' --exclude-dir=raw 'id:UUID' .= names the nodes that link to a node,
  - =grep -o '\\[\\[id:[^]]*' FILE= what a node links to,
  - =grep -riE --include='*.org' --exclude-dir=raw '^#\\+(title|filetags):.*WORD' .= nodes by title or tag.

* Writing
- =ai-kb remember= is the way: it takes the lock, fetches, writes, makes the index, lints everything and commits.
- Without it: write the file, then run =ai-kb commit=, which does the same. Never edit index files. Never skip lint.
- It does not push; a timer does. Being offline is normal.
- If a new node contradicts one that stands, both are marked contested, and a person decides. Do not overwrite.
- Merging, deleting and superseding are for people.

* Sources
What was read elsewhere is captured below raw/ with address, day and an excerpt (=ai-kb capture=), and the node names
the capture in :SOURCE:. Whole texts only where their licence or their owner allows it.
"""

"""An operation that is repeated with a fault injected at a different system call each time."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import apsw
from tests.faults import operations, syscalls
from tests.faults.killer import End, ForkServer
from tests.faults.operations import State
from tests.faults.workspace import is_whole, open_brain, run

MANY_FILES = ("ingest-source", "collection sync")
"""Operations on several files: each file is old or new independently, as files share no transaction."""

TRIES = 4
"""Names of git objects are random: when the folder of one exists already, git skips the mkdir that is to fail."""

REMEDY = re.compile(
    r"try again|free some space|[Cc]heck|`quaid [a-z-]+|[Pp]ut the newest backup|[Cc]hoose|[Nn]ame a"
)


def names_a_remedy(refusal: str) -> bool:
    """Return True if an error message names a remedy."""
    return REMEDY.search(refusal) is not None


class FaultTarget(NamedTuple):
    """An operation, the state before and after it, and the points where it can fail."""

    fork_server: ForkServer
    name: str
    home: Path
    template: Path
    points: dict[str, syscalls.Point]
    old: State
    new: State

    def faults(self, *kinds: str) -> list[str]:
        """Return the names of these faults at every point: EIO:write:7, KILL:write-tree:fsync:1."""
        return [f"{kind}:{point}" for kind in kinds for point in self.points]

    def hit(self, fault: str) -> End:
        """Restore the memory, run the operation with a fault, and make sure that it was triggered."""
        kind, _, name = fault.partition(":")
        point = self.points[name]
        for _ in range(TRIES if point.program else 1):
            operations.put_back(self.home, self.template)
            ended = syscalls.hit(
                self.fork_server, self.home, self.name, kind, point, self.home.parent / "log"
            )
            if ended is not None:
                return ended
        raise AssertionError(f"{fault} was not triggered")

    def check(self, ended: End) -> None:
        """Assert the old or the new state, at once and after a sync, and that the next client can write."""
        self._check_at_once(ended)
        operations.agree(self.home)
        self._check_later()
        operations.goes_on(self.home)

    def _check_at_once(self, ended: End) -> None:
        """Assert the old or the new state before any recovery; acknowledged changes are present."""
        now = operations.look(self.home)
        output = (self.name, ended)
        if ended.acknowledged:
            assert now == self.new, output
        if self.name == "collection sync":  # takes each kind of change in by itself
            for slug, page in now.pages.items():
                assert page in (self.old.pages.get(slug), self.new.pages.get(slug)), (slug, output)
        else:
            assert now.pages in (self.old.pages, self.new.pages), output
        assert now.nodes in (self.old.nodes, self.new.nodes), output
        for path, data in now.files.items():
            assert data in (self.old.files.get(path), self.new.files.get(path)), (path, output)
        copy = self.home / "copy.db"
        if ended.acknowledged and self.name == "backup":
            assert copy.exists()
        if copy.exists():
            assert apsw.Connection(str(copy)).pragma("integrity_check") == "ok"

    def _check_later(self) -> None:
        """Assert that after a sync every page is old or new."""
        now = operations.look(self.home)
        for slug in {*self.old.pages, *self.new.pages, *now.pages}:
            one = now.pages.get(slug, (0,))[1:]
            allowed = [self.old.pages.get(slug, (0,))[1:], self.new.pages.get(slug, (0,))[1:]]
            assert one in allowed, slug
        if self.name not in MANY_FILES:
            assert now.files in (self.old.files, self.new.files)
        with open_brain(self.home) as brain:
            assert all(
                is_whole(data.decode()) for path, data in now.files.items() if path.startswith("notes/")
            )
            run(brain, "get", slug="d0")


def prepare_target(fork_server: ForkServer, name: str, folder: Path, *, traced: bool = True) -> FaultTarget:
    """Create what the operation needs, list its system calls, and record the states before and after."""
    home, template = folder / "home", folder / "template"
    operations.make(home, name)
    shutil.copytree(home, template)
    old = operations.look(home)
    operations.put_back(home, template)
    points: list[syscalls.Point] = []
    if traced:
        points = syscalls.count(fork_server, home, name, folder / "log")
    else:
        fork_server.spawn(home, operations.ONCE, name)
        assert fork_server.end().acknowledged
    named = {str(point): point for point in points}
    return FaultTarget(fork_server, name, home, template, named, old, operations.look(home))

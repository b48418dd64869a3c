"""An operation, set up to be tried again and again, with a fault at another call each time."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import apsw
from tests.faults import calls, operations
from tests.faults.here import is_whole, open_brain, run
from tests.faults.killer import End, Nursery
from tests.faults.operations import State

MANY_FILES = ("ingest-source", "collection sync")
"""Files have no common transaction: each of several is old or new by itself."""

TRIES = 4
"""The names of git's objects are made by chance, and a folder for one may be there already: then it makes none."""

REMEDY = re.compile(
    r"try again|free some space|[Cc]heck|`quaid [a-z-]+|[Pp]ut the newest backup|[Cc]hoose|[Nn]ame a"
)


def says_what_to_do(refusal: str) -> bool:
    """Whether a person who is told this knows how to go on."""
    return REMEDY.search(refusal) is not None


class Stage(NamedTuple):
    """An operation ready to be tried again and again."""

    nursery: Nursery
    name: str
    home: Path
    template: Path
    points: dict[str, calls.Point]
    old: State
    new: State

    def faults(self, *kinds: str) -> list[str]:
        """Each of these faults at every point, by name: EIO:write:7, KILL:write-tree:fsync:1."""
        return [f"{kind}:{point}" for kind in kinds for point in self.points]

    def hit(self, fault: str) -> End:
        """The operation on a memory as it was, with a fault that has come about."""
        kind, _, name = fault.partition(":")
        point = self.points[name]
        for _ in range(TRIES if point.program else 1):
            operations.put_back(self.home, self.template)
            ended = calls.hit(self.nursery, self.home, self.name, kind, point, self.home.parent / "log")
            if ended is not None:
                return ended
        raise AssertionError(f"{fault} did not come about: nothing was tried")

    def check(self, ended: End) -> None:
        """Old or new, at once and after a sync; and the next client can write."""
        self._check_at_once(ended)
        operations.agree(self.home)
        self._check_later()
        operations.goes_on(self.home)

    def _check_at_once(self, ended: End) -> None:
        """Nothing is in between, even before anybody has tidied up; what was acknowledged is there."""
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
        """After a sync, too, every page is old or new, and so is the whole if it is one page."""
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


def set_stage(nursery: Nursery, name: str, folder: Path, *, traced: bool = True) -> Stage:
    """Make what the operation needs, find all its calls, and see how it is before and after."""
    home, template = folder / "home", folder / "template"
    operations.make(home, name)
    shutil.copytree(home, template)
    old = operations.look(home)
    operations.put_back(home, template)
    points: list[calls.Point] = []
    if traced:
        points = calls.count(nursery, home, name, folder / "log")
    else:
        nursery.bear(home, operations.ONCE, name)
        assert nursery.end().acknowledged
    named = {str(point): point for point in points}
    return Stage(nursery, name, home, template, named, old, operations.look(home))

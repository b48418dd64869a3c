"""A thing to remember, put where it belongs: file, section, line; never twice.

Knows how the place is chosen from what the caller says and what routing.py tells, and when a line is there already.
Does not know how a file is written (vaults.file_editing) nor how a list goes on (formats.sections).
"""

from quaid.core import slug, wording
from quaid.errors import InvalidArgument
from quaid.formats import sections
from quaid.notebook import routing
from quaid.notebook.layout import FOLDERS
from quaid.notebook.records import Line
from quaid.notebook.routing import KINDS, Kind
from quaid.records import NamedTuple
from quaid.vaults.file_editing import check_path

FOLDERS_OF_KINDS = FOLDERS[:3]
LONGEST_SECTION = 100


class Target(NamedTuple):
    """Where something goes, and as what."""

    path: str
    section: str
    lines: list[str]
    box: bool
    within: bool
    """Only a like line of the same section counts as the same: under another heading it says something else."""


def target(
    content: str, category: str | None, file: str | None, section: str | None, there: tuple[str, ...] = ()
) -> Target:
    """The place of a thing. `there` are the notebook's files, among which a bare file name is looked for."""
    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; say what to remember")
    kind = _kind(content, category)
    path = kind.path if file is None else _path(file, category, kind, there)
    named = next((each for each in KINDS.values() if each.path == path), None)
    kind = named or kind._replace(path=path, section=_title(path), box=False, name="")
    title = _checked(section) if section else _section(content, kind)
    lines = [sections.harmless(each) for each in routing.lines(content, kind)]
    return Target(path, title, lines, kind.box, bool(section) or kind.name == "contacts")


class Written(NamedTuple):
    text: str
    section: str
    lines: tuple[Line, ...]


def write(text: str | None, goal: Target) -> Written:
    """The file's text with the lines in it that it lacks, and where each of them stands."""
    text = text or ""
    if goal.path == KINDS["contacts"].path:
        goal = goal._replace(section=_of_person(text, goal.section))
    new: list[str] = []
    told: dict[str, Line] = {}
    for line in goal.lines:
        standing = _standing(text, goal, line)
        if standing:
            told[line] = Line(standing.text, goal.path, standing.line, False)
        elif not any(wording.same(line, each) for each in new):
            new.append(line)
    if new:
        place = sections.find(text, goal.section)
        body = text[place.body : place.end] if place else ""
        added = sections.append(text, goal.section, sections.as_items(new, body, goal.box))
        text, number = added
        for line in new:
            told[line] = Line(line, goal.path, number, True)
            number += line.count("\n") + 1
    return Written(text, goal.section, tuple(told[line] for line in goal.lines if line in told))


def _standing(text: str, goal: Target, line: str) -> "sections.Item | None":
    """Where this is said already, in which words. What is done or bought may be wanted again."""
    place = sections.find(text, goal.section) if goal.within else None
    if goal.within and place is None:
        return None
    first = text.count("\n", 0, place.body) + 1 if place else 1
    last = text.count("\n", 0, place.end) + 1 if place else text.count("\n") + 1
    wanted, *more = line.split("\n")
    every = text.split("\n")
    for item in sections.items(text):
        if first <= item.line <= last and item.box in (None, " ") and wording.same(item.text, wanted):
            below = every[item.line : item.line + len(more)]
            if [each.strip() for each in below] == [each.strip() for each in more]:
                return item
    return None


def _of_person(text: str, name: str) -> str:
    """The section of a person: that of the name, else the only one of somebody who has it as first or last name."""
    if sections.find(text, name):
        return name
    wanted = name.casefold()
    alike = [each.title for each in sections.sections(text) if wanted in each.title.casefold().split()]
    return alike[0] if len(alike) == 1 else name


def _kind(content: str, category: str | None) -> Kind:
    if category in KINDS:
        return KINDS[category]
    among = tuple(name for name, each in KINDS.items() if each.path.startswith(f"{category}/"))
    return routing.route(content, among)


def _path(file: str, category: str | None, kind: Kind, there: tuple[str, ...]) -> str:
    """The file that is meant by a path, or by a bare name as in reading."""
    name = file.strip().removesuffix(".md")
    if name in KINDS and category not in FOLDERS_OF_KINDS:
        return KINDS[name].path
    if "/" in name:
        return check_path(f"{name}.md", "file")
    folder = category if category in FOLDERS_OF_KINDS else None
    known = [path for path in there if path.endswith(f"/{name}.md") and not path.startswith("daily/")]
    if folder is None and len(known) == 1:
        return known[0]
    return check_path(f"{folder or kind.path.partition('/')[0]}/{name}.md", "file")


def _section(content: str, kind: Kind) -> str:
    if kind.name == "contacts":
        return _checked(routing.person(content) or kind.section)
    return kind.section


def _title(path: str) -> str:
    """A heading for a file of the user's own: reading.md has "Reading"."""
    name = slug.from_path(path).rpartition("/")[2].replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


def _checked(section: str) -> str:
    title = sections.title_of(" ".join(section.split()))
    if not title or len(title) > LONGEST_SECTION:
        raise InvalidArgument(name="section", problem=f"is empty or longer than {LONGEST_SECTION} characters")
    return title

"""A thing to remember, put where it belongs: file, section, line; never twice.

Knows how the place is chosen from what the caller says and what routing.py tells, and when a line is there already.
Does not know how a file is written (vaults.file_editing) nor how a list goes on (formats.sections).
"""

from typing import NamedTuple

from quaid.errors import InvalidArgument
from quaid.folders.page_writer import check_page_path
from quaid.formats import sections
from quaid.model import similarity, slug as slugs
from quaid.notebook import lists, routing
from quaid.notebook.layout import DAILY, FOLDERS
from quaid.notebook.records import Line
from quaid.notebook.routing import KINDS, Kind

LONGEST_SECTION = 100
OTHER_KINDS = (".markdown", ".org", ".txt", ".html", ".json", ".yaml")
"""Endings of files that are not files of a notebook."""


class Target(NamedTuple):
    """Where something goes, and as what."""

    path: str
    section: str
    lines: list[str]
    box: bool
    within: bool
    """Only a like line of the same section counts as the same: under another heading it says something else."""
    person: bool = False
    """The section is the name of a person."""


def target(
    content: str, category: str | None, file: str | None, section: str | None, there: tuple[str, ...] = ()
) -> Target:
    """The place of a thing. `there` are the notebook's files, among which a bare name or a list is looked for."""
    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; say what to remember")
    on = lists.named(routing.bare(content))
    listed = _listed(on, there) if on else None
    kind = _kind(content, category, listed)
    path = kind.path if file is None else _path(file, category, kind, there)
    named = next((each for each in KINDS.values() if each.path == path), None)
    if named:
        kind = named
    elif path != kind.path:
        kept = kind if category in KINDS else Kind("", path, "")
        kind = kept._replace(path=path, section=_title(path))
    if on and listed and listed.path == path:
        content = on.items
    person = kind.name == "contacts"
    title = _checked(section) if section else _section(content, kind)
    lines = [sections.sanitize(each) for each in routing.lines(content, kind)]
    return Target(path, title, lines, kind.box, bool(section) or person, person)


def may_name_a_file(content: str, file: str | None) -> bool:
    """Whether `target` needs to know which files there are."""
    return "/" not in file if file else "list" in content[: lists.LONGEST].lower()


class Written(NamedTuple):
    text: str
    section: str
    lines: tuple[Line, ...]


def write(text: str | None, goal: Target) -> Written:
    """The file's text with the lines in it that it lacks, and where each of them stands."""
    text = text or ""
    if goal.person:
        goal = goal._replace(section=_of_person(text, goal.section))
    new: list[str] = []
    told: dict[str, Line] = {}
    for line in goal.lines:
        standing = _standing(text, goal, line)
        if standing:
            told[line] = Line(standing.text, goal.path, standing.line, False)
        elif not any(similarity.same_line(line, each) for each in new):
            new.append(line)
    if new:
        place = sections.find_section(text, goal.section)
        if place is None and not goal.within:
            # A file of somebody's own: its list goes on, rather than a second one under a heading of ours.
            place = sections.find_opening_list(text)
            goal = goal._replace(section="") if place else goal
        block = sections.format_items(new, text[place.body : place.end] if place else "", goal.box)
        added = (
            sections.append_to_place(text, place, block)
            if place
            else sections.append_to_section(text, goal.section, block)
        )
        text, number = added
        for line in new:
            told[line] = Line(line, goal.path, number, True)
            number += line.count("\n") + 1
    return Written(text, goal.section, tuple(told[line] for line in goal.lines if line in told))


def _standing(text: str, goal: Target, line: str) -> "sections.ListItem | None":
    """Where this is said already, in which words. What is done or bought may be wanted again."""
    place = sections.find_section(text, goal.section) if goal.within else None
    if goal.within and place is None:
        return None
    first = text.count("\n", 0, place.body) + 1 if place else 1
    last = text.count("\n", 0, place.end) + 1 if place else text.count("\n") + 1
    wanted, *more = line.split("\n")
    every = text.split("\n")
    for item in sections.list_items(text):
        if first <= item.line <= last and item.box in (None, " ") and similarity.same_line(item.text, wanted):
            below = every[item.line : item.line + len(more)]
            if [each.strip() for each in below] == [each.strip() for each in more]:
                return item
    return None


def _of_person(text: str, name: str) -> str:
    """The section of a person: that of the name, else the only one of somebody who has it as first or last name."""
    if sections.find_section(text, name):
        return name
    wanted = name.casefold()
    alike = [each.title for each in sections.find_sections(text) if wanted in each.title.casefold().split()]
    return alike[0] if len(alike) == 1 else name


def _listed(on: "lists.Named", there: tuple[str, ...]) -> Kind:
    """The kind of the list that a sentence names: one with a place of its own, or a file in lists/."""
    if on.kind:
        return KINDS[on.kind]
    if on.name:
        path = lists.path_of(on.name, there)
        is_its_own = path == lists.path_of(on.name, ())
        return Kind("", path, _heading(on.name.lower()) if is_its_own else _title(path))
    return routing.route(on.items, ("todos", "shopping")) if routing.is_task(on.items) else KINDS["shopping"]


def _kind(content: str, category: str | None, listed: Kind | None) -> Kind:
    if category in KINDS:
        return KINDS[category]
    if listed and (category is None or listed.path.startswith(f"{category}/")):
        return listed
    among = tuple(name for name, each in KINDS.items() if each.path.startswith(f"{category}/"))
    return routing.route(content, among)


def _path(file: str, category: str | None, kind: Kind, there: tuple[str, ...]) -> str:
    """The file that is meant by a path, or by a bare name as in reading. A category's file stays in its folder."""
    name = file.strip()
    name = name[:-3] if name.lower().endswith(".md") else name
    if name.lower().endswith(OTHER_KINDS):
        raise InvalidArgument(name="file", problem=f"{name[:100]!r} must end with .md, or have no ending")
    folder = kind.path.partition("/")[0]
    begins = name.partition("/")[0].casefold() if "/" in name else ""
    if category is None:
        if name in KINDS:
            return KINDS[name].path
        known = [path for path in there if path.endswith(f"/{name}.md") and not path.startswith(f"{DAILY}/")]
        if "/" not in name and len(known) == 1:
            return known[0]
    path = check_page_path(
        f"{name}.md" if begins and (category is None or begins in FOLDERS) else f"{folder}/{name}.md", "file"
    )
    if category is not None and not path.startswith(f"{folder}/"):
        problem = f"{path!r} is not in {folder}/, where category {category} belongs; leave out one of the two"
        raise InvalidArgument(name="file", problem=problem)
    if begins == DAILY:
        problem = f"{path!r} is a daily log; daily_log (`quaid log`) writes there"
        raise InvalidArgument(name="file", problem=problem)
    return path


def _section(content: str, kind: Kind) -> str:
    if kind.name == "contacts":
        return _checked(routing.person(content) or kind.section)
    return kind.section


def _title(path: str) -> str:
    """A heading for a file of the user's own: reading.md has "Reading"."""
    return _heading(slugs.from_path(path).rpartition("/")[2])


def _heading(name: str) -> str:
    name = name.replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


def _checked(section: str) -> str:
    title = sections.heading_title(" ".join(section.split()))
    if not title or len(title) > LONGEST_SECTION:
        raise InvalidArgument(name="section", problem=f"is empty or longer than {LONGEST_SECTION} characters")
    return title

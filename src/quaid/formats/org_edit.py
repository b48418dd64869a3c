"""Edit org text in place: properties, title, tags, appended lines and ids. All other bytes are kept."""

import re
from collections.abc import Iterable, Iterator

from quaid.errors import InvalidArgument
from quaid.formats import org

_PROPERTY = re.compile(r"([ \t]*):(\S+):([ \t]*)((?:[^\n]*[^ \t\r\n])?)([ \t\r]*)(?:\n|\Z)")
_KEYWORD = re.compile(r"([ \t]*#\+\S+?:[ \t]*)((?:[^\n]*[^ \t\r\n])?)([ \t\r]*)(?:\n|\Z)")
_NAME = re.compile(r"[^\s:]+")
_TAG = re.compile(r"[\w@#%]+")
_COMMENTS = re.compile(r"(?:[ \t]*#(?:[ \t][^\n]*|\r)?\n)*")
_TORN_DRAWER = ("unclosed-drawer", "misplaced-drawer", "bad-property")


def set_property(text: str, name: str, value: str) -> str:
    """Set a property in the drawer at the top, which is created if missing."""
    if not _NAME.fullmatch(name) or name.upper() in ("END", "PROPERTIES"):
        raise InvalidArgument(name="name", problem=f"{name!r} cannot be the name of a property")
    value = _one_line(value, "value")
    read = org.parse(text)
    if read.drawer is None:
        _refuse_torn(text, read)
        end = _line_end(text)
        drawer = f":PROPERTIES:{end}{_property_line(name, value)}{end}:END:{end}"
        top = 1 if text.startswith(org.BOM) else 0
        below = _COMMENTS.match(text, top)
        return _insert(text, below.end() if below else top, drawer, end)
    for line in _drawer_lines(text, read.drawer):
        if line[2].upper() == name.upper():
            gap = line[3] if line[3].startswith(" ") else " "
            return text[: line.start(3)] + (gap + value if value else "") + text[line.end(4) :]
        if line[2].upper() == "END":
            here = line.start()
            return _insert(
                text, here, line[1] + _property_line(name, value) + _line_end(text), _line_end(text)
            )
    return text


def remove_property(text: str, name: str) -> str:
    """Remove a property, and the drawer at the top if it held nothing else."""
    read = org.parse(text)
    if read.drawer is None:
        return text
    start, end = read.drawer
    lines = list(_drawer_lines(text, read.drawer))
    named = (name.upper(), f"{name.upper()}+")
    remaining = [line for line in lines if line[2].upper() not in named]
    if len(remaining) == len(lines):
        return text
    if len(remaining) == 2:  # only :PROPERTIES: and :END: are left
        return text[:start] + text[end:]
    return text[:start] + "".join(line[0] for line in remaining) + text[end:]


def set_title(text: str, title: str) -> str:
    """Set the title of the file."""
    return _set_keyword(text, "title", _one_line(title, "title"))


def set_filetags(text: str, tags: Iterable[str]) -> str:
    """Set the file tags, replacing all others."""
    named = list(dict.fromkeys(tags))
    for tag in named:
        if not _TAG.fullmatch(tag):
            problem = f"{tag!r} cannot be a tag in org: letters, digits, _ @ # and % can stand in one"
            raise InvalidArgument(name="tags", problem=problem)
    starts = [start for name, _, start in org.parse(text).keywords if name == "FILETAGS"]
    for start in reversed(starts[1:] if named else starts):
        text = text[:start] + text[_next_line(text, start) :]
    return _set_keyword(text, "filetags", f":{':'.join(named)}:") if named else text


def append_lines(text: str, lines: Iterable[str]) -> str:
    """Append lines to the text."""
    end = _line_end(text)
    added = "".join([line.rstrip("\r\n") + end for line in lines])
    return text + (end if added and text not in ("", org.BOM) and not text.endswith("\n") else "") + added


def replace_id(text: str, old: str, new: str) -> str:
    """Change all links to the id `old` to the id `new`."""
    parts: list[str] = []
    done = 0
    for link in org.parse(text).links:
        if link.kind == "id" and link.target.partition("::")[0] == old:
            at = text.index(old, link.start)
            parts += [text[done:at], new]
            done = at + len(old)
    return "".join([*parts, text[done:]])


def _set_keyword(text: str, name: str, value: str) -> str:
    read = org.parse(text)
    place = next((start for keyword, _, start in read.keywords if keyword == name.upper()), None)
    if place is None:
        if read.drawer is None:
            _refuse_torn(text, read)
        end = _line_end(text)
        return _insert(text, _below_head(text, read, name), f"#+{name}: {value}{end}", end)
    match = _KEYWORD.match(text, place)
    assert match is not None, "parse found a keyword here"
    gap = "" if match[1].endswith((" ", "\t")) or not value else " "
    return text[: match.start(2)] + gap + value + text[match.end(2) :]


def _below_head(text: str, read: org.OrgDocument, name: str) -> int:
    """Return the offset for a new keyword: tags go below the title, a title goes below the drawer."""
    title = next((start for keyword, _, start in read.keywords if keyword == "TITLE"), None)
    if name != "title" and title is not None:
        return _next_line(text, title)
    if read.drawer is not None:
        return read.drawer[1]
    top = 1 if text.startswith(org.BOM) else 0
    below = _COMMENTS.match(text, top)
    return below.end() if below else top


def _refuse_torn(text: str, read: org.OrgDocument) -> None:
    """Raise InvalidArgument if the drawer at the top is invalid, since a new drawer would hide it."""
    until = read.headings[0].line if read.headings else text.count("\n") + 2
    for problem in read.problems:
        if problem.code in _TORN_DRAWER and problem.line < until:
            raise InvalidArgument(
                name="text", problem=f"line {problem.line}: {problem.message}; mend it first"
            )


def _drawer_lines(text: str, drawer: tuple[int, int]) -> Iterator[re.Match[str]]:
    position = drawer[0]
    while position < drawer[1] and (line := _PROPERTY.match(text, position)) is not None:
        yield line
        position = line.end()


def _property_line(name: str, value: str) -> str:
    return f":{name}:{' ' * max(1, 9 - len(name))}{value}".rstrip() if value else f":{name}:"


def _insert(text: str, place: int, lines: str, end: str) -> str:
    """Insert lines at the start of a line, adding a line end before them if it is missing."""
    before = text[:place]
    gap = "" if before in ("", org.BOM) or before.endswith("\n") else end
    return before + gap + lines + text[place:]


def _line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _next_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _one_line(value: str, name: str) -> str:
    value = value.strip()
    if "\n" in value or "\r" in value:
        raise InvalidArgument(name=name, problem="it must be one line")
    return value

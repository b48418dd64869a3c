"""A file of the notebook written as its author says: added to, or replaced, whole or by section.

Knows that who replaces must have read. Does not know versions by itself: file_editing compares them.
"""

from quaid.errors import InvalidArgument
from quaid.formats import sections
from quaid.formats.sections import Added


def write(old: str | None, content: str, section: str | None, replace: bool, expected: int | None) -> Added:
    """The file's new text, and the line where the content begins."""
    if section is not None and not sections.title_of(section):
        raise InvalidArgument(name="section", problem="is empty; name a heading, as in To Do")
    content = content.replace("\r\n", "\n")
    loses = old is not None and bool(old.strip() if section is None else sections.find(old, section))
    if replace and loses and expected is None:
        problem = "is needed to replace what is there; notebook_read (`quaid notebook read --json`) gives it"
        raise InvalidArgument(name="expected_version", problem=problem)
    if not replace and not content.strip():
        raise InvalidArgument(name="content", problem="is empty; there is nothing to add")
    if section is None:
        if replace or old is None:
            return Added(content if content.endswith("\n") or not content else content + "\n", 1)
        return sections.append(old, None, content)
    return (sections.replace if replace else sections.append)(old or "", section, content)

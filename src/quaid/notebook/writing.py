"""A file of the notebook written as its author says: added to, or replaced, whole or by section.

Knows that who replaces must have read. Does not know versions by itself: file_editing compares them.
"""

from quaid.errors import InvalidArgument
from quaid.formats import sections
from quaid.formats.sections import SectionEdit


def write(
    old: str | None, content: str, section: str | None, replace: bool, expected: int | None
) -> SectionEdit:
    """The file's new text, and the line where the content begins."""
    if section is not None and not sections.heading_title(section):
        raise InvalidArgument(name="section", problem="is empty; name a heading, as in To Do")
    content = content.replace("\r\n", "\n")
    loses = old is not None and bool(old.strip() if section is None else sections.find_section(old, section))
    if replace and loses and expected is None:
        problem = "is needed to replace what is there; notebook_read (`quaid notebook read --json`) gives it"
        raise InvalidArgument(name="expected_version", problem=problem)
    if not replace and not content.strip():
        raise InvalidArgument(name="content", problem="is empty; there is nothing to add")
    if section is None:
        if replace or old is None:
            return SectionEdit(content if content.endswith("\n") or not content else content + "\n", 1)
        return sections.append_to_section(old, None, content)
    return (sections.replace_section if replace else sections.append_to_section)(old or "", section, content)

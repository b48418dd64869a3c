"""Open threads: the unticked boxes under a heading of that name.

Knows the text of a page's truth and nothing else: not whose it is, nor how long a thread has been open.
"""

import re

from quaid.core import fences, prose

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+[*_]{0,2}open threads[*_:]{0,3}[ \t]*#*[ \t]*$", re.M | re.I)
_NEXT = re.compile(r"^ {0,3}(#{1,6})[ \t]", re.MULTILINE)
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[ \][ \t]+(\S[^\n]*)", re.MULTILINE)


def unticked(truth: str) -> list[str]:
    """What stands beside each empty box, as plain text; boxes under other headings are no threads."""
    if "[ ]" not in truth:
        return []
    text = fences.cut(truth)
    found: list[str] = []
    for heading in _HEADING.finditer(text):
        end = next(
            (each.start() for each in _NEXT.finditer(text, heading.end()) if len(each[1]) <= len(heading[1])),
            len(text),
        )
        found += [prose.plain(box[1]) for box in _BOX.finditer(text, heading.end(), end)]
    return found

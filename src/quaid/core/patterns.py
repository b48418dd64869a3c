"""Regular expressions that are compiled when they are first used.

A cold command uses few of them, and compiling all would cost it 15 ms.
"""

import re

from quaid.annotations import Any, cast


class _Waiting:
    """Stands for a compiled pattern; each of its methods is looked up once and then kept."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, later."""
    return cast("re.Pattern[str]", _Waiting(source, flags))

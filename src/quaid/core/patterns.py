"""Regular expressions that are compiled when they are first used.

A cold command uses few of them, and compiling all would cost it 15 ms. One that uses none does not even load `re`,
which costs a third of what `import apsw` does: whoever stands on its way takes flags into the pattern, as in (?i).
"""

from quaid.annotations import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import re


class _Waiting:
    """Stands for a compiled pattern; each of its methods is looked up once and then kept."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        import re

        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def pattern(source: str, flags: int = 0) -> "re.Pattern[str]":
    """Like `re.compile`, later."""
    return cast("re.Pattern[str]", _Waiting(source, flags))

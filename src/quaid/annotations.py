"""What annotations are written with, for modules on the way of a cold command.

The type checker sees the names of `typing`; a command sees small stand-ins, of which only the register of operations
reads anything. Loading `typing` is a fourth of what `import apsw` costs (docs/decisions/001). Whatever else needs
`typing` takes it from there.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING or sys.version_info >= (3, 14):  # as in records.py
    from collections.abc import (
        Callable as Callable,
        Iterable as Iterable,
        Iterator as Iterator,
        Mapping as Mapping,
        Sequence as Sequence,
    )
    from typing import (
        IO as IO,
        Annotated as Annotated,
        Any as Any,
        Literal as Literal,
        NoReturn as NoReturn,
        Self as Self,
        TypeVar as TypeVar,
        cast as cast,
        get_args as get_args,
    )
else:
    # Where `collections.abc` has them from. They are there since Python began; with their other name comes
    # `collections`, which is half of what `import apsw` costs.
    from _collections_abc import (
        Callable as Callable,
        Iterable as Iterable,
        Iterator as Iterator,
        Mapping as Mapping,
        Sequence as Sequence,
    )

    class _Form:
        """A type that was made of others: its parts can be read, and it can be one of several."""

        def __init__(self, origin, args, metadata=()):
            self.__origin__ = origin
            self.__args__ = args
            self.__metadata__ = metadata

        def __or__(self, other):
            return _Form("|", (self, other))

        def __ror__(self, other):
            return _Form("|", (other, self))

    class Literal:
        def __class_getitem__(cls, values):
            return _Form(cls, values if isinstance(values, tuple) else (values,))

    class Annotated:
        def __class_getitem__(cls, parts):
            return _Form(parts[0], parts[:1], parts[1:])

    class IO:
        def __class_getitem__(cls, _kind):
            return cls

    class Any:
        pass

    class NoReturn:
        pass

    class Self:
        pass

    def TypeVar(_name, *_bounds, **_more):  # noqa: N802 - the name of typing
        return Any

    def cast(_kind, value):
        return value

    def get_args(form):
        return form.__args__

"""Records whose class costs little to make.

A record is written like a `typing.NamedTuple`, is one to the type checker, and does what one does. Only its
constructor is not compiled with the class, and not for the first few records of it: a cold command makes many
classes, uses some of them, and makes few records of each (docs/decisions/001).
"""

import sys
from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    _Kind = TypeVar("_Kind")

if TYPE_CHECKING or sys.version_info >= (
    3,
    14,
):  # from then on a class does not have its annotations while it is made
    from typing import NamedTuple as NamedTuple
else:
    try:
        from _collections import _tuplegetter as _getter  # where `collections`, which costs 3 ms, has it from
    except ImportError:  # not CPython

        def _getter(place, doc):
            from operator import itemgetter

            return property(itemgetter(place), doc=doc)

    FEW = 12
    """So many records of a class are made without its constructor, which takes as long to compile as forty."""

    _GETTERS = [_getter(place, "A field.") for place in range(32)]

    class _Record(tuple):
        """What all records can do."""

        __slots__ = ()

        def __new__(cls, *values, **named):
            """Reached for the first few records of a class: then it has a constructor of its own."""
            owner = next(each for each in cls.__mro__ if "_field_defaults" in vars(each))
            owner._made += 1
            if owner._made <= FEW:
                left = owner._fields[len(values) :]
                given = {**owner._field_defaults, **named}
                if len(values) <= len(owner._fields) and named.keys() <= {*left} <= given.keys():
                    return tuple.__new__(cls, (*values, *[given[name] for name in left]))
                # A wrong call: the constructor says what is wrong with it.
            names = "".join(f"{name}, " for name in owner._fields)
            source = f"lambda _cls, {names}: _new(_cls, ({names}))"
            new = eval(source, {"_new": tuple.__new__, "__builtins__": {}})  # noqa: S307 - names of fields only
            new.__name__, new.__qualname__ = "__new__", f"{owner.__qualname__}.__new__"
            new.__defaults__ = tuple(owner._field_defaults.values())
            owner.__new__ = staticmethod(new)
            return new(cls, *values, **named)

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changed):
            made = self._make(map(changed.pop, self._fields, self))
            if changed:
                raise ValueError(f"Got unexpected field names: {list(changed)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            told = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({told})"

        def __getnewargs__(self):
            return tuple(self)

    class _Making(type):
        """Makes a record of a class body, once the base below is there."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if fields[len(fields) - len(defaults) :] != tuple(defaults):
                raise TypeError(f"{name}: a field without a default stands behind one that has one")
            while len(_GETTERS) < len(fields):
                _GETTERS.append(_getter(len(_GETTERS), "A field."))
            body.update(zip(fields, _GETTERS, strict=False))
            body.update(
                _fields=fields, _field_defaults=defaults, __match_args__=fields, __slots__=(), _made=0
            )
            return type(name, (_Record,), body)

    class NamedTuple(metaclass=_Making):
        """The base of a record."""


def made(kind: "type[_Kind]", rows: "Iterable[tuple[Any, ...]]") -> "Iterator[_Kind]":
    """A record of each row, which must hold a value for each field: thousands of them without a constructor."""
    new: Any = tuple.__new__
    return map(new, repeat(kind), rows)

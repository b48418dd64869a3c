"""Our records do what typing.NamedTuple does; each test holds one against the other."""

import pickle
import sys
import types
import typing
from typing import Any

import pytest

from quaid import records


class Ours(records.NamedTuple):
    """A record."""

    name: str
    size: int
    tags: tuple[str, ...] = ()
    note: str | None = None

    @property
    def twice(self) -> int:
        return 2 * self.size


class Theirs(typing.NamedTuple):
    """A record."""

    name: str
    size: int
    tags: tuple[str, ...] = ()
    note: str | None = None

    @property
    def twice(self) -> int:
        return 2 * self.size


class Empty(records.NamedTuple):
    pass


class Further(Ours):
    """A class of its own that begins with a record's fields."""


BOTH: list[Any] = [Ours, Theirs]


def test_a_record_is_made_by_place_by_name_and_with_defaults() -> None:
    for kind in BOTH:
        assert kind("a", 2) == kind(name="a", size=2) == ("a", 2, (), None)
        assert kind("a", 2, note="n") == ("a", 2, (), "n")
        assert kind("a", 2).twice == 4


@pytest.mark.parametrize(
    "wrong", [((), {}), (("a",), {}), (("a", 1, (), None, 5), {}), (("a", 1), {"colour": 2})]
)
def test_a_wrong_call_is_a_type_error_the_first_time_and_later(
    wrong: tuple[tuple[Any, ...], dict[str, Any]],
) -> None:
    class Fresh(records.NamedTuple):
        name: str
        size: int
        tags: tuple[str, ...] = ()
        note: str | None = None

    fresh: Any = Fresh
    for _ in range(2):
        for kind in (fresh, Theirs):
            with pytest.raises(TypeError):
                kind(*wrong[0], **wrong[1])
    assert fresh("a", 1) == Theirs("a", 1)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="records.py takes that of typing there")
def test_a_constructor_is_compiled_when_a_class_has_more_than_a_few_records() -> None:
    class Fresh(records.NamedTuple):
        name: str
        size: int = 1

    few = records.FEW  # type: ignore[attr-defined]
    made = [Fresh("a", size=2) for _ in range(few)]
    assert "__new__" not in vars(Fresh)
    made.append(Fresh("a", size=2))
    assert "__new__" in vars(Fresh)
    made.append(Fresh(name="a", size=2))
    assert made == [("a", 2)] * (few + 2)
    assert Fresh("b") == ("b", 1)


def test_its_parts_are_those_of_a_named_tuple() -> None:
    for kind in BOTH:
        record = kind("a", 2, note="n")
        assert kind._fields == kind.__match_args__ == ("name", "size", "tags", "note")
        assert kind._field_defaults == {"tags": (), "note": None}
        assert kind.__annotations__["size"] is int
        assert kind.__doc__ == "A record."
        assert record._asdict() == {"name": "a", "size": 2, "tags": (), "note": "n"}
        assert record._replace(size=3) == ("a", 3, (), "n")
        assert type(record._replace(size=3)) is kind
        assert kind._make(["a", 2, (), "n"]) == record
        assert repr(record) == f"{kind.__name__}(name='a', size=2, tags=(), note='n')"
        assert not hasattr(record, "__dict__")


def test_what_a_named_tuple_refuses_is_refused() -> None:
    for kind in BOTH:
        record = kind("a", 2)
        with pytest.raises(AttributeError):
            record.size = 3
        with pytest.raises(ValueError, match="colour"):
            record._replace(colour=1)
        with pytest.raises(TypeError, match="Expected 4 arguments, got 1"):
            kind._make(["a"])
    with pytest.raises(TypeError):
        _made("Bad", {"__annotations__": {"a": int, "b": int}, "a": 1})


def test_a_record_is_matched_by_its_fields() -> None:
    match Ours("a", 2):
        case Ours("a", size):
            assert size == 2
        case _:
            raise AssertionError


def test_a_record_travels_to_another_process() -> None:
    record = pickle.loads(pickle.dumps(Ours("a", 2, ("x",))))
    assert (type(record), record) == (Ours, ("a", 2, ("x",), None))


def test_a_class_can_be_made_of_a_record() -> None:
    further = Further("a", 2)
    assert (type(further), further.size, further.twice) == (Further, 2, 4)
    assert type(Ours("a", 2)) is Ours


def test_a_record_may_have_no_field_or_more_than_most() -> None:
    assert Empty() == ()
    names = [f"f{number}" for number in range(40)]
    made = _made("Long", {"__annotations__": dict.fromkeys(names, int)})
    assert made(*range(40)).f39 == 39


def test_rows_become_records_like_those_of_the_class() -> None:
    rows = [(f"a{number}", number, (), None) for number in range(20)]
    made = [*records.made(Ours, rows)]
    assert made == [Ours(*row) for row in rows]
    assert (type(made[3]), made[3].size) == (Ours, 3)


def _made(name: str, body: dict[str, Any]) -> Any:
    """A record of a class body that the type checker does not see."""
    return types.new_class(name, (records.NamedTuple,), {}, lambda space: space.update(body))

"""What stands for `typing` on the way of a cold command is read as `typing` is."""

import typing
from typing import Any

from quaid import annotations, errors
from quaid.ops import register
from quaid.ops.register import Arg

ARG = Arg("Help.")


def test_the_register_reads_our_annotations_as_it_reads_those_of_typing() -> None:
    for names in (annotations, typing):
        made: Any = names
        kinds = {
            "text": made.Annotated[str, ARG],
            "number": made.Annotated[int | None, ARG],
            "many": made.Annotated[list[str], ARG],
            "objects": made.Annotated[list[dict[str, made.Any]] | None, ARG],
            "choice": made.Annotated[made.Literal["a", "b"], ARG],
            "one": made.Annotated[made.Literal["a"] | None, ARG],
        }

        def operation(brain, text, number, many, objects, choice, one=None):  # type: ignore[no-untyped-def]
            """An operation."""

        operation.__annotations__ = kinds
        found = [(each.name, each.kind, each.choices, each.items) for each in register._params(operation)]
        assert found == [
            ("text", "string", (), "string"),
            ("number", "integer", (), "string"),
            ("many", "array", (), "string"),
            ("objects", "array", (), "object"),
            ("choice", "string", ("a", "b"), "string"),
            ("one", "string", ("a",), "string"),
        ]


def test_the_values_of_a_literal_can_be_asked_for() -> None:
    assert annotations.get_args(annotations.Literal["a", "b"]) == ("a", "b")


def test_every_failure_of_a_room_can_be_imported_from_errors() -> None:
    listed = errors.everything()
    assert len(listed) == len(set(listed)) > 80
    assert {each.__module__ for each in listed} >= {f"quaid.failures.{room}" for room in errors.ROOMS}
    for each in listed:
        assert getattr(errors, each.__name__) is each


def test_a_failure_that_does_not_exist_is_missed() -> None:
    assert not hasattr(errors, "NoSuchFailure")

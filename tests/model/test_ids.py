"""UUIDs: layout and order."""

import uuid

import pytest
from hypothesis import given, strategies as st

from quaid.model.slug import uuid4, uuid7

MOMENTS = st.integers(0, 2**48 - 1)
DICE = st.binary(min_size=10, max_size=10)


@given(MOMENTS, DICE)
def test_version_variant_and_time_stand_where_the_rfc_puts_them(moment: int, dice: bytes) -> None:
    made = uuid.UUID(uuid7(moment, dice))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == moment
    assert str(made) == uuid7(moment, dice)


@given(MOMENTS, MOMENTS, DICE, DICE)
def test_an_earlier_moment_sorts_first_whatever_the_dice_say(
    one: int, other: int, a: bytes, b: bytes
) -> None:
    if one < other:
        assert uuid7(one, a) < uuid7(other, b)


def test_the_random_bits_are_used() -> None:
    assert uuid7(1, bytes(10)) == "00000000-0001-7000-8000-000000000000"
    assert uuid7(1, b"\xff" * 10) == "00000000-0001-7fff-bfff-ffffffffffff"


def test_too_few_random_bytes_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        uuid7(1, b"123")


def test_a_random_uuid_is_of_version_4() -> None:
    dice = bytes(range(16))
    assert uuid.UUID(uuid4(dice)) == uuid.UUID(bytes=dice, version=4)
    with pytest.raises(ValueError, match="16"):
        uuid4(b"few")

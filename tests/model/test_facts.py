"""When two spellings of an object say the same."""

import pytest

from quaid.model.facts import object_key


@pytest.mark.parametrize(
    "spellings",
    [
        ("$1,000,000", "$1000000", "$1M", "1 million USD", "US$ 1m"),
        ("10 EUR", "€10", "EUR 10.00"),
        ("1,200", "1200", "1 200"),
        ("+47 123 45 678", "+4712345678", "0047 12345678", "+47 (123) 45-678"),
        ("4 July", "July 4", "July 4th"),
        ("4 July 1980", "1980-07-04", "July 4, 1980"),
    ],
)
def test_a_value_in_another_form_is_the_same(spellings: tuple[str, ...]) -> None:
    assert len({object_key(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$10", "€10"),
        ("5 m", "5000000"),
        ("$1", "$1M"),
        ("4 July", "5 July"),
        ("+47 123 45 678", "+46 123 45 678"),
        ("007", "7"),
        ("2026-04-25", "2026-04-26"),
        ("-5", "5"),
        ("10%", "10"),
    ],
)
def test_another_value_is_another(one: str, other: str) -> None:
    assert object_key(one) != object_key(other)

"""How many of a thing there are, in words."""


def count(number: int, noun: str, several: str = "") -> str:
    """A number and its noun: 1 page, 2 pages, 1,000 entries (whose plural has to be told)."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"

"""What the notebook answers with. Values only, so that a cold command need not import how they are found."""

from typing import Literal, NamedTuple


class Line(NamedTuple):
    """A line that is remembered, and where it stands."""

    text: str
    path: str
    line: int
    written: bool
    """False: it was there."""


class Hit(NamedTuple):
    """A stretch of a file that answers."""

    path: str
    start_line: int
    end_line: int
    heading: str
    snippet: str
    score: float
    """From 0 to 1, comparable from question to question."""
    lane: Literal["words", "meaning", "both"] = "words"
    """What found it."""


class Recalled(NamedTuple):
    query: str
    notebook: tuple[Hit, ...]
    """From lists, reference and knowledge."""
    daily: tuple[Hit, ...]
    semantic: bool
    """Whether meaning was looked at, too; false: by words only."""
    note: str
    """Why it was not."""
    missing: str = ""
    """What is wrong when the files could not be looked at, and the index answered alone."""


class Part(NamedTuple):
    """A file in the prompt."""

    path: str
    characters: int
    left_out: int
    """Characters that the limits cut off."""


class Prompt(NamedTuple):
    text: str
    parts: tuple[Part, ...]
    tokens: int


class Move(NamedTuple):
    """A file of the older layout and where it goes."""

    source: str
    path: str
    """Nothing: it stays where it is."""
    outcome: Literal["copied", "same", "differs", "unreadable", "stays", "link"]

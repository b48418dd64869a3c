"""The log of a day: its file, its headings, its clock."""

import os
import time
from collections.abc import Iterator

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import InvalidArgument
from quaid.notebook import layout


def test_the_first_entry_makes_the_day_and_the_next_one_follows() -> None:
    entry = layout.render_entry("2026-04-25T14:05:59", "Called Sarah\nShe is fine.\n")
    first = layout.add_log_entry(None, "2026-04-25", entry)
    assert first == ("# 2026-04-25\n\n## 14:05 — Called Sarah\nShe is fine.\n", 3)
    lunch = layout.render_entry("2026-04-25T14:06:00", "Lunch")
    second = layout.add_log_entry(first[0], "2026-04-25", lunch)
    assert second[0] == first[0] + "\n## 14:06 — Lunch\n"
    assert second[1] == 6


def test_a_long_first_line_is_cut_in_the_heading_and_whole_below() -> None:
    text = layout.render_entry("2026-04-25T09:00:00", "word " * 50)
    heading, body = text.split("\n")
    assert len(heading) < 120
    assert heading.endswith("…")
    assert body == ("word " * 50).strip()


def test_an_entry_cannot_break_the_log() -> None:
    text = layout.render_entry("2026-04-25T09:00:00", "# Big\n---\n## 10:00 — not an entry\n```\nopen")
    assert text == "## 09:00 — Big\n\\---\n\\## 10:00 — not an entry\n```\nopen\n```"
    with pytest.raises(InvalidArgument):
        layout.render_entry("2026-04-25T09:00:00", " \n ")


def test_yesterday_is_the_day_before_in_every_month() -> None:
    assert layout.recent_days("2026-03-01T00:00:01") == ("2026-03-01", "2026-02-28")
    assert layout.recent_days("2024-03-01T23:59:59") == ("2024-03-01", "2024-02-29")
    assert layout.recent_days("2026-01-01T12:00:00") == ("2026-01-01", "2025-12-31")


@pytest.fixture
def berlin() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


MIDNIGHT = 1_777_068_000  # 2026-04-25T00:00 in Berlin, 22:00 UTC of the day before


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("seconds", "local"),
    [
        (MIDNIGHT - 1, "2026-04-24T23:59:59"),
        (MIDNIGHT, "2026-04-25T00:00:00"),
        (1_774_745_999, "2026-03-29T01:59:59"),  # the clock goes forward
        (1_774_746_000, "2026-03-29T03:00:00"),
        (1_792_889_999, "2026-10-25T02:59:59"),  # and back
        (1_792_890_000, "2026-10-25T02:00:00"),
    ],
)
def test_the_day_is_that_of_the_clock_on_the_wall(settings: Settings, seconds: int, local: str) -> None:
    assert Brain(settings, clock=lambda: seconds).local() == local


def test_another_zone_can_be_handed_in(settings: Settings) -> None:
    assert Brain(settings, clock=lambda: 0, offset=lambda _: -3_600).local() == "1969-12-31T23:00:00"

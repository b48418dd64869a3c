"""The table of differences from the design documents is complete in form, and names decisions that exist."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (DOCS / "differences.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| the design says", "|---"))
]


def test_every_row_says_what_differs_and_since_when() -> None:
    assert len(ROWS) > 30
    assert [row for row in ROWS if len(row) != 4 or not row[0] or not row[1] or not row[3]] == []


def test_decisions_that_rows_name_exist() -> None:
    known = {path.name[:3] for path in (DOCS / "decisions").glob("[0-9][0-9][0-9]-*.md")}
    assert {row[3] for row in ROWS} - known - {"0.1.0"} == set()
    assert re.fullmatch(r"\d{3}", max(known))

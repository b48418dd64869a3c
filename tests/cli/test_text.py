"""How numbers are set for people, and that no renderer sets one noun for one and for many."""

import re
from pathlib import Path

from quaid.cli import parser

CLI = Path(parser.__file__).parent


def test_counts_have_the_right_plural() -> None:
    """A number right before a plural would say "1 pages"; "3 of 7 pages" is of several anyway."""
    nouns = "pages|files|links|chunks|vectors|problems|nodes|turns|entries|gaps|tags|facts|notes"
    loose = re.compile(rf"(?<!of )\{{[^{{}}]*\}} (?:{nouns})\b")
    for path in sorted(CLI.glob("render*.py")):
        matches = loose.findall(path.read_text(encoding="utf-8"))
        assert not matches, f"{path.name}: {matches}"


def test_the_overview_cuts_no_list_and_no_bracket() -> None:
    overview = parser.help_overview()
    assert overview.count("(") == overview.count(")")
    rows = " ".join(overview.split())
    assert "query Answer a question from pages, notebook, logs, conversations and knowledge base" in rows
    assert "ingest-source Store a source (meeting, mail, article, chat) as a page" in rows
    assert "propose Commands: forget, merge" in rows
    assert "merge Merge two pages rename" in rows, "the part after a colon is left out"


def test_help_and_manual_page_have_the_exit_codes_that_agents_do_not_see() -> None:
    for text in (parser.help_page("check"), parser.generated_file("quaid.1")):
        assert "Exits 1 while any is open." in text

"""`quaid bench`: quality and speed on one's own memory."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.operations import dispatch
from quaid.operations.golden import held_out_words


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def filled(brain: Brain) -> Brain:
    for number, what in enumerate(("amber beads", "copper kettles", "linen sails", "oak barrels")):
        text = (
            f"# Shop {number}\n\nThe shop near the harbour gate repairs {what} and polishes old brass lamps."
        )
        call(brain, "put", slug=f"shops/{number}", content=text)
    return brain


def test_the_words_of_a_question_are_not_those_of_the_title() -> None:
    code = "```sh\nrm nothing at all in this very long line of code that has many words\n```\n"
    text = f"# Shop\n\n{code}Shop repairs [[x|amber]] beads, **copper** kettles and linen sails."
    assert held_out_words("Shop", text) == "repairs beads kettles sails"
    assert held_out_words("Shop", "Short text.") == ""


def test_all_pages_are_asked_for_and_nothing_is_written(filled: Brain) -> None:
    call(filled, "query", query="amber")  # splits the pages into chunks
    before, stamp = Path(filled.db.path).read_bytes(), filled.db.change_stamp()
    record = call(filled, "bench")
    assert Path(filled.db.path).read_bytes() == before
    assert filled.db.change_stamp() == stamp
    assert (record.pages, record.by_title.asked, record.by_words.asked) == (4, 4, 4)
    assert record.by_title.first == 4
    assert record.by_words.top == 4
    assert record.speeds["query"].runs == 8
    assert record.speeds["get"].cpu_p50 > 0
    assert "golden add" in record.next_steps[-1]
    assert "by words, top 5   100 % (4 of 4)" in render(record)


def test_golden_questions_are_part_of_it(filled: Brain) -> None:
    call(filled, "golden add", query="who repairs amber beads?", expect=["shops/0"])
    call(filled, "golden add", query="where is the lighthouse?", expect=["shops/3"], within=1)
    record = call(filled, "bench")
    assert record.golden_asked == 2
    assert record.golden_passed < 2
    assert "`quaid golden run` shows which golden questions fail" in record.next_steps


def test_an_empty_memory_has_nothing_to_measure(brain: Brain) -> None:
    record = call(brain, "bench")
    assert record.speeds == {}
    assert "quaid import FOLDER" in record.next_steps[0]
    assert "not measured" in render(record)


def test_interruption_shows_what_there_is(filled: Brain) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if what == "Asking for pages" and done == 2:
            raise KeyboardInterrupt

    filled.progress = stop
    record = call(filled, "bench")
    assert (record.stopped, record.exit_status, record.by_title.asked) == (True, 130, 2)
    assert "Stopped after" in render(record)

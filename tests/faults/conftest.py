"""Every fault test names its promise with `@pytest.mark.promise(…)`; what was tried is one table at the end."""

import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.killer import Nursery
from tests.faults.ledger import LONG, PROMISES, Cases
from tests.faults.places import quick_folder


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def quick() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Iterator[Cases]:
    mark = request.node.get_closest_marker("promise")
    assert mark, "a fault test names its promise"
    assert mark.args[0] in PROMISES, "the promises are in tests/faults/ledger.py"
    counted = Cases(request.node, mark.args[0])
    request.node.cases = counted
    yield counted
    request.node.user_properties.append(
        (
            "promise",
            [counted.promise, counted.tried, time.perf_counter() - counted.began, "; ".join(counted.notes)],
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A failed case says how it is run again."""
    report = yield
    counted = getattr(item, "cases", None)
    if call.when == "call" and report.failed and counted is not None and counted.current is not None:
        report.sections.append(("run it again", counted.replay()))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Promise, cases tried, failures, seconds."""
    if not LONG:
        return
    rows: dict[str, list[Any]] = defaultdict(lambda: [0, 0, 0.0, []])
    failed = {report.nodeid for report in terminalreporter.stats.get("failed", [])}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "teardown":
                continue
            for name, value in report.user_properties:
                if name == "promise":
                    promise, tried, seconds, note = value
                    row = rows[promise]
                    row[0] += tried
                    row[1] += report.nodeid in failed
                    row[2] += seconds
                    row[3] += [note] if note else []
    terminalreporter.write_line("")
    terminalreporter.write_line("| promise | cases tried | failures | seconds | figures |")
    terminalreporter.write_line("|---|---|---|---|---|")
    for promise in PROMISES:
        if promise in rows:
            tried, failures, seconds, notes = rows[promise]
            terminalreporter.write_line(
                f"| {promise} | {tried:,} | {failures} | {seconds:.0f} | {'; '.join(notes)} |"
            )

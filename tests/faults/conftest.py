"""Every fault test names its promise with `@pytest.mark.promise(…)`; what was tried is one table at the end."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.filesystems import quick_folder
from tests.faults.killer import ForkServer
from tests.faults.ledger import LONG, PROMISES, Cases, Tried, table


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as fork_server:
        yield fork_server


@pytest.fixture
def quick() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Cases:
    promise = promise_of(request.node)
    assert promise, "a fault test names its promise"
    assert promise in PROMISES, "the promises are in tests/faults/ledger.py"
    counted = Cases(request.node, promise)
    request.node.cases = counted
    return counted


def promise_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("promise")
    return str(mark.args[0]) if mark else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A failed case says how it is run again; and every report says what it is about, even that nothing was tried."""
    report = yield
    counted: Cases | None = getattr(item, "cases", None)
    if call.when == "call" and report.failed and counted is not None:
        report.sections.append(("run it again", counted.replay()))
        counted.fell = True
    if promise := promise_of(item):
        report.user_properties.append(("promise", promise))
        if call.when == "teardown" and counted is not None:
            report.user_properties.append(("tried", counted.told()))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table."""
    if LONG:
        terminalreporter.write_line("")
        for line in table(outcomes(terminalreporter.stats)):
            terminalreporter.write_line(line)


def outcomes(stats: dict[str, list[Any]]) -> list[Tried]:
    """What became of each test that has a promise. One that went wrong is a failure, at whatever stage."""
    results: dict[str, Tried] = {}
    fallen: set[str] = set()
    for report in (report for reports in stats.values() for report in reports):
        properties = dict(getattr(report, "user_properties", ()))
        if "promise" not in properties:
            continue
        before = results.get(report.nodeid, Tried(properties["promise"]))
        tried, failed, seconds, notes = properties.get("tried", (0, 0, 0.0, ()))
        results[report.nodeid] = Tried(
            before.promise,
            before.tried + tried,
            before.failures + failed + (report.failed and report.nodeid not in fallen),
            before.seconds + seconds,
            (*before.notes, *notes),
            reason(report) if report.skipped else before.skipped,
        )
        fallen |= {report.nodeid} if report.failed else set()
    return list(results.values())


def reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    output = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return output.removeprefix("Skipped: ")

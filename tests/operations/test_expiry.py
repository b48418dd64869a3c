"""Pages, lines and facts that expire: they leave every answer, wait for a decision, and are erased."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import AlreadyExists, InvalidArgument, NotFound, PageNotFound, QuaidError
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Operation, all_operations

DAY = 86_400.0
NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z, a Saturday
PAGE, LINE, FACT, NOTE, FILE = (
    *("zpagecanaryz", "zlinecanaryz", "zfactcanaryz"),
    *("znotecanaryz", "zfilecanaryz"),
)
GONE = f"notes/{PAGE}"
CANARIES = (PAGE, LINE, FACT, NOTE, FILE)


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = NOON

    def __call__(self) -> float:
        return self.seconds

    def skip(self, days: float) -> None:
        self.seconds += days * DAY


def open_brain(folder: Path, clock: Callable[[], float], offset: int = 0) -> Brain:
    settings = Settings(
        db_path=str(folder / "memory.db"),
        home=str(folder / "home"),
        cwd=str(folder),
        environ={"QUAID_BACKGROUND_EMBEDDING": "off", "QUAID_EMBEDDING_PLUGIN": "off"},
    )
    return Brain(settings, clock=clock, offset=lambda _: offset)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def brain(tmp_path: Path, clock: HandClock) -> Iterator[Brain]:
    with open_brain(tmp_path, clock) as brain:
        brain.create(brain.settings.db_path)
        yield brain


def run(brain: Brain, command: str, scope: Any = "owner", **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, scope))


def fill(brain: Brain, folder: Path) -> None:
    """Fill a memory with a page, a line, a fact, a note and a file that expire on 2026-05-01."""
    run(brain, "put", slug="people/bob", content="# Bob\n\nBob likes tea. See [[people/alice]].")
    text = (
        "# Alice\n\nAlice likes coffee.\n\n- The door code is on the fridge.\n"
        f"- The safe opens with {LINE} (expires 2026-05-01)\n  and {LINE}more\n- She has a cat.\n\n---\n\n"
        f"- **2026-04-20** | call — Talked about {LINE}. (expires 2026-05-01)\n- **2026-04-21** | call — Talked.\n"
    )
    run(brain, "put", slug="people/alice", content=text)
    run(brain, "put", slug="people/alice", append="Alice lives in Oslo.", expected_version=1)
    run(brain, "assert", slug="people/alice", predicate="works_at", object=f"{FACT} Ltd", **{"for": "5d"})
    run(brain, "assert", slug="people/alice", predicate="lives_in", object="Oslo")
    run(
        brain,
        "put",
        slug=GONE,
        content=f"---\nexpires: 2026-05-01\ntags: [{PAGE}]\naliases: [{PAGE} alias]\n---\n# Gone {PAGE}\n\n"
        f"The vault is {PAGE} beside [[people/alice]]. Alice likes coffee.\n- [ ] call {PAGE} (due 2026-04-30)\n\n"
        f"---\n\n- **2026-04-22** | call — {PAGE} again.\n",
    )
    run(brain, "put", slug=GONE, append=f"More {PAGE}.", expected_version=1)
    run(brain, "link", **{"from": "people/bob", "to": GONE, "relationship": "knows"})
    run(
        brain,
        "remember",
        content=f"The guest wifi password is {NOTE}",
        category="reference",
        file="wifi",
        expires="2026-05-01",
    )
    run(brain, "remember", content="The printer is in the hall", category="reference", file="wifi")
    root = folder / "docs"
    root.mkdir()
    (root / "plan.md").write_text(f"---\nexpires: 2026-05-01\n---\n# Plan {FILE}\n\nThe plan is {FILE}.\n")
    (root / "stay.md").write_text("# Stay\n\nStays here.\n\n- passport (expires 2026-05-01)\n- and this\n")
    run(brain, "collection add", name="docs", path=str(root))


ARGUMENTS: dict[str, Any] = {
    "slug": "people/alice",
    "from": "people/alice",
    "to": "people/bob",
    "query": "Alice safe vault plan coffee wifi",
    "question": "What do you know about Alice, the safe, the vault, the plan and the wifi?",
    "text": "Alice",
    "path": "reference/wifi.md",
    "name": "docs",
    "name_or_slug": "people/alice",
    "subject": "Alice",
    "other": "people/bob",
    "about": "Alice",
    "kind": "slugs",
    "key": "log_gaps",
    "term": "Alice",
    "prefix": "",
    "id": "1",
    "version": 1,
}


def calls(operation: Operation) -> list[dict[str, Any]]:
    """Return arguments for an operation: those it needs, and then each option that widens the answer."""
    needed = {
        param.name: ARGUMENTS.get(param.name, "people/alice") for param in operation.params if param.required
    }
    for param in operation.params:
        if param.name in needed and param.kind == "array":
            needed[param.name] = [needed[param.name]]
        elif param.name in needed and param.kind == "integer":
            needed[param.name] = 1
    every = [needed]
    for param in operation.params:
        if param.kind == "boolean":
            every.append({**needed, param.name: True})
        elif param.choices:
            every += [{**needed, param.name: choice} for choice in param.choices]
        elif param.name in ARGUMENTS and not param.required:
            every.append({**needed, param.name: ARGUMENTS[param.name]})
    for slug in (GONE, "people/bob", "docs::stay"):
        named = [arguments for arguments in every if "slug" in arguments][:8]
        is_list = bool(named) and isinstance(named[0]["slug"], list)
        every += [{**arguments, "slug": [slug] if is_list else slug} for arguments in named]
    return every


def leaks(brain: Brain, scope: Any = "read") -> list[tuple[str, str]]:
    """Run every reading operation of the register, and return the operations whose answer has a canary."""
    found = []
    ran = 0
    for operation in all_operations():
        if operation.scope != "read" or operation.subject == "kb":
            continue
        for arguments in calls(operation):
            is_named = GONE in str(arguments)
            try:
                said = json.dumps(json_value(dispatch.call(brain, operation, arguments, scope)), default=str)
                ran += 1
            except QuaidError as error:
                said = f"{error} {error.facts}"
                said = said.replace(GONE, "") if is_named else said
            found += [(operation.command, word) for word in CANARIES if word in said]
    for word in CANARIES:
        hits = run(brain, "search", scope, query=word)["hits"]
        answer = run(brain, "query", scope, question=f"What about {word}?")
        shown = json.dumps([hits, answer["results"], answer["direct"], answer["facts"]])
        found += [("search for it", word)] if word in shown else []
    near = run(brain, "search", scope, query="zpagecanarz zlinecanarz zfactcanarz znotecanarz zfilecanarz")
    found += [("suggested words", word) for word in CANARIES if word in json.dumps(near)]
    assert ran > 100  # the walk itself works
    return sorted(set(found))


def test_before_the_day_is_over_everything_is_found(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    fill(brain, tmp_path)
    clock.seconds = NOON + 6.4 * DAY  # 2026-05-01T21:36
    seen = {word for _, word in leaks(brain)}
    assert seen == set(CANARIES) - {FACT}  # the fact is kept for five days, until 2026-04-30
    assert run(brain, "expired")["items"][0]["kind"] == "fact"


def test_no_reading_operation_shows_what_has_expired(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    assert leaks(brain) == []
    assert leaks(brain, "owner") == []
    for word in CANARIES:
        assert len(run(brain, "search", query=word)["hits"]) == 0
        assert not run(brain, "query", question=word)["results"]
    out = tmp_path / "out"
    run(brain, "export", dir=str(out))
    texts = "".join(path.read_text() for path in out.rglob("*") if path.is_file())
    assert "Alice lives in Oslo" in texts
    assert not [word for word in CANARIES if word in texts]
    kinds = [item["kind"] for item in run(brain, "expired")["items"]]
    assert sorted(kinds) == ["fact", "line", "line", "line", "page", "page"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
def test_a_memory_that_may_not_be_written_shows_nothing_expired(clock: HandClock) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_brain(folder, clock) as brain:
            brain.create(brain.settings.db_path)
            fill(brain, folder)
            assert leaks(brain)  # also imports the modules, which the other user may not read
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = (folder / "memory.db").read_bytes()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.chdir("/")
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            clock.skip(7)
            try:
                with open_brain(folder, clock) as brain:
                    said = [brain.db.writable, leaks(brain), run(brain, "get", slug=["people/alice"])]
                    try:
                        run(brain, "get", slug=[GONE])
                    except PageNotFound as error:
                        said.append(str(error))
            except BaseException as error:
                said = [repr(error), *traceback.format_exc().split("\n")[-12:]]
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as pipe:
            said = json.loads(pipe.read())
        assert len(said) == 4, said
        writable, found, page, hint = said
        assert (writable, found) == (False, [])
        assert "Alice lives in Oslo" in json.dumps(page)
        assert "expired" in hint
        assert (folder / "memory.db").read_bytes() == before
        for path in [folder, *folder.rglob("*")]:
            path.chmod(stat.S_IRWXU)


def test_an_expired_page_says_so_and_can_be_shown_and_kept(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    with pytest.raises(PageNotFound, match=r"expired: 2026-05-01.*quaid expired notes/zpage"):
        run(brain, "get", slug=[GONE])
    with pytest.raises(AlreadyExists, match="has expired"):
        run(brain, "put", slug=GONE, content="# New")
    (item,) = run(brain, "expired", items=[GONE])["items"]
    assert PAGE in item["text"]
    assert item["erased_on"] == "2026-06-01"
    run(brain, "expired", items=[GONE], keep=True, **{"for": "2d"})
    assert run(brain, "get", slug=[GONE])["frontmatter"]["expires"] == "2026-05-04"
    assert len(run(brain, "search", query=PAGE)["hits"]) == 1
    assert GONE in [link["to_slug"] for link in run(brain, "links", slug="people/bob")["links"]]
    clock.skip(3)
    assert len(run(brain, "search", query=PAGE)["hits"]) == 0


def test_a_kept_line_comes_back_in_its_place(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    fill(brain, tmp_path)
    before = run(brain, "get", slug=["people/alice"])["compiled_truth"]
    clock.skip(7)
    assert LINE not in run(brain, "get", slug=["people/alice"])["compiled_truth"]
    lines = [
        item
        for item in run(brain, "expired")["items"]
        if item["slug"] == "people/alice" and item["kind"] == "line"
    ]
    run(brain, "expired", items=[str(item["id"]) for item in lines], keep=True)
    after = run(brain, "get", slug=["people/alice"])
    assert [line for line in after["compiled_truth"].split("\n") if line] == [
        line for line in before.replace(" (expires 2026-05-01)", "").split("\n") if line
    ]
    assert f"Talked about {LINE}." in after["timeline"]


def test_a_kept_fact_has_its_id_and_its_place_in_the_chain(brain: Brain, clock: HandClock) -> None:
    run(brain, "put", slug="people/alice", content="# Alice")
    first = run(brain, "assert", slug="people/alice", predicate="works_at", object="A", **{"for": "2d"})
    second = run(
        brain, "assert", slug="people/alice", predicate="works_at", object="B", supersedes_id=first["id"]
    )
    before = run(brain, "facts", subject="people/alice", history=True)
    clock.skip(4)
    assert first["id"] not in [
        row["id"] for row in run(brain, "facts", subject="people/alice", history=True)["facts"]
    ]
    (item,) = run(brain, "expired")["items"]
    run(brain, "expired", items=[str(item["id"])], keep=True)
    after = run(brain, "facts", subject="people/alice", history=True)
    assert [row["id"] for row in after["facts"]] == [row["id"] for row in before["facts"]]
    assert second["id"] != first["id"]


def test_after_the_grace_period_the_next_write_erases_with_proof(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    notices: list[str] = []
    brain.notice = notices.append
    clock.skip(7)
    assert len(run(brain, "expired")["items"]) == 6
    clock.skip(29.5)
    run(brain, "put", slug="other/one", content="# One")
    assert len(run(brain, "expired")["items"]) == 6
    clock.skip(1)
    run(brain, "list", "read")
    assert len(run(brain, "expired")["items"]) == 6  # a reader erases nothing
    run(brain, "put", slug="other/two", content="# Two")
    (left,) = run(brain, "expired")["items"]  # the program deletes no file of an attached folder by itself
    assert left["slug"] == "docs::plan"
    assert notices
    assert "erased 5 expired things" in notices[0]
    assert "remains" not in notices[0]
    assert (tmp_path / "docs" / "plan.md").exists()
    run(brain, "expired", now=True, yes=True)
    assert not (tmp_path / "docs" / "plan.md").exists()
    assert "passport" in (tmp_path / "docs" / "stay.md").read_text()
    brain.close()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [word for word in CANARIES if word.encode() in data], path


def test_erasing_now_asks_and_reports_the_proof(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    operation = dispatch.find_command("expired")
    asked = dispatch.call(brain, operation, {"now": True}, "owner")
    assert asked.if_agreed == {"yes": True}
    assert len(run(brain, "expired")["items"]) == 6
    record = dispatch.call(brain, operation, {"now": True, "yes": True}, "owner")
    assert len(record.erased) == 6
    assert all(erased.clean and erased.proof for erased in record.erased)
    assert record.exit_status == 0


def test_files_of_a_read_only_folder_are_only_hidden(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "plan.md").write_text(f"---\nexpires: 2026-05-01\n---\n# Plan\n\n{FILE}\n")
    run(brain, "collection add", name="docs", path=str(root), read_only=True)
    clock.skip(7)
    (item,) = run(brain, "expired")["items"]
    assert (item["slug"], item["erased_on"]) == ("docs::plan", "")
    clock.skip(60)
    run(brain, "put", slug="a", content="# A")
    record = run(brain, "expired", now=True, yes=True)
    assert "stays hidden" in record["problems"][0]
    assert (root / "plan.md").exists()
    assert len(run(brain, "search", query=FILE)["hits"]) == 0


def test_days_that_had_passed_when_a_file_was_first_read_do_not_count(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "contract.md").write_text(f"---\nexpires: 2024-12-31\n---\n# Contract\n\n{FILE}\n")
    run(brain, "collection add", name="docs", path=str(root))
    run(brain, "import", folder=str(root))
    clock.skip(90)
    run(brain, "put", slug="a", content="# A")
    assert run(brain, "expired")["items"] == []
    assert len(run(brain, "search", query=FILE)["hits"]) == 2
    assert (root / "contract.md").exists()


def test_a_file_that_is_edited_after_it_expired_comes_back_only_with_a_later_day(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    plan = tmp_path / "docs" / "plan.md"
    plan.write_text(f"---\nexpires: 2026-05-01\n---\n# Plan\n\nStill {FILE}.\n")
    run(brain, "collection sync")
    assert len(run(brain, "search", query=FILE)["hits"]) == 0
    plan.write_text(f"---\nexpires: 2026-06-01\n---\n# Plan\n\nStill {FILE}.\n")
    run(brain, "collection sync")
    assert len(run(brain, "search", query=FILE)["hits"]) == 1
    assert "docs::plan" not in [item["slug"] for item in run(brain, "expired")["items"]]


def test_retention_counts_from_the_last_change_and_never_is_an_exception(
    brain: Brain, clock: HandClock
) -> None:
    for slug in ("sources/a", "sources/b", "people/c"):
        run(brain, "put", slug=slug, content=f"# {slug}\n\nwords of {slug}")
    run(brain, "expire", slug="sources/b", never=True)
    run(brain, "config set", key="retention.type.source", value="30d")
    clock.skip(20)
    run(brain, "put", slug="sources/a", append="more", expected_version=1)
    clock.skip(29)
    assert {page["slug"] for page in run(brain, "list")["pages"]} == {"sources/a", "sources/b", "people/c"}
    clock.skip(2)
    assert {page["slug"] for page in run(brain, "list")["pages"]} == {"sources/b", "people/c"}
    assert run(brain, "expired")["items"][0]["reason"] == "retention.type.source"
    assert run(brain, "status")["retention"] == [["retention.type.source", "30d"]]
    run(brain, "config set", key="retention.type.source", value="off")
    run(brain, "config set", key="retention.collection.default", value="1y")
    clock.skip(340)
    assert {page["slug"] for page in run(brain, "list")["pages"]} == {"sources/b"}


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("retention.type.source", "0d", "must be a period"),
        ("retention.type.source", "1000000y", "must be a period"),
        ("retention.collection.nowhere", "1y", "nowhere"),
        ("retention", "1y", "needs a collection or a type"),
        ("expiry_grace", "soon", "must be a period"),
        ("expiry_grace", "off", "must be a period"),
    ],
)
def test_settings_are_checked(brain: Brain, key: str, value: str, problem: str) -> None:
    with pytest.raises(QuaidError, match=problem):
        run(brain, "config set", key=key, value=value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"for": "0d"},
        {"for": "-1d"},
        {"for": "1000000y"},
        {"for": "soon"},
        {"for": ""},
        {"expires": "2026-04-24"},
        {"expires": "2026-02-30"},
        {"expires": "yesterday"},
        {"expires": "never"},
        {"expires": "2026-04-25T11:59:59Z"},
        {"expires": "2026-04-25T13:59+02:00"},
        {"expires": "2026-05-01", "for": "1d"},
        {"never": True, "for": "1d"},
        {},
    ],
)
def test_bad_moments_are_refused_in_one_line(brain: Brain, arguments: dict[str, Any]) -> None:
    run(brain, "put", slug="a", content="# A")
    with pytest.raises(InvalidArgument) as refused:
        run(brain, "expire", slug="a", **arguments)
    assert "\n" not in str(refused.value)
    assert run(brain, "get", slug=["a"])["version"] == 1


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-05-01", "2026-05-01"),
        ("today", "2026-04-25"),
        ("Friday", "2026-05-01"),
        ("until 20 November", "2026-11-20"),
        ("in 3 days", "2026-04-28"),
        ("2026-04-25T14:30+02:00", "2026-04-25T12:30:00Z"),
        ("2026-04-25 13:00", "2026-04-25T13:00:00Z"),
    ],
)
def test_days_times_and_words_are_read(brain: Brain, written: str, stored: str) -> None:
    run(brain, "put", slug="a", content="# A")
    assert run(brain, "expire", slug="a", expires=written)["expires"] == stored


def test_a_day_ends_in_the_local_time_zone(tmp_path: Path, clock: HandClock) -> None:
    with open_brain(tmp_path, clock, offset=-8 * 3600) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "put", slug="a", content="---\nexpires: 2026-04-25\n---\n# A")
        clock.seconds = NOON + 19.9 * 3600  # 2026-04-26T07:54Z is 2026-04-25T23:54 there
        assert run(brain, "list")["pages"]
        clock.seconds = NOON + 20.1 * 3600
        assert not run(brain, "list")["pages"]


def test_a_clock_that_jumps_back_brings_nothing_back_and_one_that_jumps_ahead_erases_nothing_early(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    clock.skip(400)  # the clock is wrong, and everything is hidden
    run(brain, "put", slug="x", content="# X")
    assert len(run(brain, "expired")["items"]) == 6  # the grace period begins when it is hidden
    clock.skip(-400)
    assert leaks(brain) == []
    clock.skip(60)
    run(brain, "put", slug="y", content="# Y")
    assert len(run(brain, "expired")["items"]) == 6
    clock.skip(371)
    run(brain, "put", slug="z", content="# Z")
    assert [item["slug"] for item in run(brain, "expired")["items"]] == ["docs::plan"]
    clock.skip(-431)
    with pytest.raises(NotFound):
        run(brain, "expired", items=[GONE])


def test_text_that_only_looks_like_a_mark_stays(brain: Brain, clock: HandClock) -> None:
    text = (
        "# A (expires 2026-04-26)\n\nclosed until Friday\nmy passport expires 2026-04-26\n(expires 2026-99-99) x\n"
        "(expires soon) y\n\n```\ncode (expires 2026-04-26)\n```\n\n## Heading (expires 2026-04-26)\n"
    )
    run(brain, "put", slug="a", content=text)
    clock.skip(10)
    page = run(brain, "get", slug=["a"])
    for words in ("closed until Friday", "passport", "2026-99-99", "soon", "code", "## Heading"):
        assert words in page["compiled_truth"]
    assert run(brain, "expired")["items"] == []


def test_a_hidden_line_survives_a_round_trip_of_the_page_by_an_agent(brain: Brain, clock: HandClock) -> None:
    run(brain, "put", slug="a", content="# A\n\n- one\n- two is here (expires 2026-04-26)\n- three\n")
    clock.skip(3)
    page = run(brain, "get", slug=["a"])
    run(brain, "put", slug="a", content="# A\n\n- one\n- three\n- four\n", expected_version=page["version"])
    (item,) = run(brain, "expired")["items"]
    run(brain, "expired", items=[str(item["id"])], keep=True)
    lines = run(brain, "get", slug=["a"])["compiled_truth"].split("\n")
    assert "- two is here" in lines
    assert "- four" in lines


def test_an_agent_cannot_let_what_others_wrote_be_erased(brain: Brain, clock: HandClock) -> None:
    run(brain, "put", slug="people/boss", content="# Boss\n\nWritten by a person.\n")
    run(brain, "assert", slug="people/boss", predicate="lives_in", object="Oslo")
    run(brain, "config set", key="agent_writes", value="direct")
    page = run(brain, "get", slug=["people/boss"])
    brain.agent = "codex"
    text = "---\nexpires: 2026-04-25\n---\n# Boss\n\nWritten by a person.\n"
    run(brain, "put", "write", slug="people/boss", content=text, expected_version=page["version"])
    run(brain, "put", "write", slug="notes/own", content=text)
    for place in ("Oslo", "Rome"):
        run(brain, "assert", "write", slug="people/boss", predicate="likes", object=place, **{"for": "2d"})
    run(brain, "assert", "write", slug="people/boss", predicate="lives_in", object="Oslo", **{"for": "2d"})
    brain.agent = ""
    for days in (7, 60):
        clock.skip(days)
        run(brain, "put", slug=f"other/{days}", content="# Other")
    (item,) = run(brain, "expired")["items"]
    assert (item["slug"], item["erased_on"]) == ("people/boss", "")
    run(brain, "expired", items=["people/boss"], keep=True)
    assert [row["object"] for row in run(brain, "facts", subject="people/boss")["facts"]] == ["Oslo"]
    assert "Written by a person." in run(brain, "get", slug=["people/boss"])["compiled_truth"]


def test_a_crash_between_hiding_and_erasing_loses_nothing(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    run(brain, "list")
    brain.close()  # nothing was erased yet
    with open_brain(tmp_path, clock) as again:
        items = [str(item["id"]) for item in run(again, "expired")["items"]]
        for item in items:
            run(again, "expired", items=[item], keep=True)
        assert {word for _, word in leaks(again)} == set(CANARIES)


def test_a_validation_finds_nothing_wrong_with_hidden_things(
    brain: Brain, tmp_path: Path, clock: HandClock
) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    run(brain, "list")
    assert run(brain, "validate")["violations"] == []
    run(brain, "rebuild")
    assert run(brain, "validate")["violations"] == []
    assert leaks(brain) == []


def test_the_check_before_an_operation_takes_less_than_a_hundredth_of_a_query(
    brain: Brain, tmp_path: Path
) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(400):
        text = " ".join(f"word{(number * step) % 700}" for step in range(1, 120))
        (root / f"p{number}.md").write_text(f"# Page {number}\n\n{text}\n- x (expires 2031-01-01)\n")
    run(brain, "collection add", name="many", path=str(root))
    run(brain, "query", question="word1")

    def cpu(work: Callable[[], object], times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - start) / times

    queries = min(cpu(lambda: run(brain, "query", question="word3 word77 word210"), 20) for _ in range(3))
    checks = min(cpu(brain.hide_expired, 500) for _ in range(3))
    assert checks < queries / 100


def test_the_review_and_today_count_what_has_expired(brain: Brain, tmp_path: Path, clock: HandClock) -> None:
    fill(brain, tmp_path)
    clock.skip(7)
    waiting = {item["kind"]: item["number"] for item in run(brain, "today")["waiting"]}
    assert waiting["expired"] == 6
    assert "quarantine" not in waiting
    assert run(brain, "status")["expired"] == 6
    findings = {finding["name"]: finding["detail"] for finding in run(brain, "doctor", quick=True)["checks"]}
    assert "6 expired things" in findings["expiry"]


def test_the_worker_of_a_server_erases_what_is_past_its_grace_period(
    tmp_path: Path, clock: HandClock
) -> None:
    clock.seconds = time.time() - 70 * DAY
    with open_brain(tmp_path, clock) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "put", slug="a", content=f"# A\n\n{PAGE}")
        run(brain, "expire", slug="a", **{"for": "5d"})
        clock.skip(10)
        assert not run(brain, "list")["pages"]
        path = brain.settings.db_path
    with open_brain(tmp_path, time.time) as brain:
        assert brain.db.writable
        assert brain.has_past_grace()
    arguments = [sys.executable, "-m", "quaid.worker", "expire", path]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as worker:
        assert worker.wait(60) == 0
    with open_brain(tmp_path, time.time) as brain:
        assert run(brain, "expired")["items"] == []
        assert not brain.has_past_grace()
    assert PAGE.encode() not in Path(path).read_bytes()


def test_what_expires_is_hidden_from_a_restricted_caller_also_if_hiding_changes_what_it_cannot_see(
    tmp_path: Path, clock: HandClock
) -> None:
    with open_brain(tmp_path, clock) as owner:
        owner.create_if_missing()
        text = f"# Alice\n\n- {LINE} is the code. (expires 2026-05-26)\n- Alice likes tea.\n"
        run(owner, "put", slug="people/alice", content=text)
        run(owner, "put", slug="deals/secret", content="# Secret\n\nx\n")
        run(owner, "assert", slug="people/alice", predicate="works_at", object="Acme", expires="2026-05-26")
        run(owner, "assert", slug="deals/secret", subject="Alice", predicate="works_at", object="Globex")
        run(owner, "check")
    clock.skip(60)
    settings = owner.settings._replace(only=(("wing:people",),))
    with Brain(settings, clock=clock, offset=lambda _: 0) as restricted:
        for _ in range(2):
            assert LINE not in run(restricted, "get", "read", slug="people/alice")["compiled_truth"]
        run(
            restricted,
            "timeline-add",
            "write",
            slug="people/alice",
            date="2026-06-24",
            summary="Still likes tea.",
        )
    with open_brain(tmp_path, clock) as owner:
        assert LINE in json.dumps(run(owner, "expired"))


def test_a_memory_whose_expired_items_cannot_be_hidden_is_not_opened(
    tmp_path: Path, clock: HandClock
) -> None:
    with open_brain(tmp_path, clock) as owner:
        owner.create_if_missing()
        run(owner, "put", slug="a", content=f"# A\n\n- {LINE} (expires 2026-05-26)\n")
        owner.db.write(lambda tx: tx.execute("DROP TABLE expired"))
    clock.skip(60)
    with open_brain(tmp_path, clock) as brain:
        for _ in range(2):
            with pytest.raises(Exception, match="expired"):
                brain.db  # noqa: B018 - opening is what is tested

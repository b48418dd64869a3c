"""Four tasks of an agent over MCP: are its questions answered at once, and what do its calls cost?

    python -m bench agents [--quick] [--source=FOLDER] [--keep]

The tasks: 25 meetings of a consultant, 15 sessions of a coding project, notes on 20 papers, and corrections of these.
The calls and questions are in bench/data/agents. They are made by the official client over stdio to `quaid serve` in
an empty home folder, with the tools of the default list. --quick takes the first five of each task.

- A question is answered on the first call if the expected words are in the facts or results of one memory_query with
  the default budget, and nothing above them shows an outdated value as current. Older versions have only results.
- A call is wasted if it failed or only served to learn a version.
- A write is findable if its key sentence in other words finds it at once, on a page or in a file that it changed. A
  second question, which names nothing of it, shows what only meaning finds.
- Tokens are those of all results, and of the tool list and instructions once for each conversation. Checks are not
  counted.

--source measures another copy of the sources. The agent follows the tools that it lists: where every change needs a
version, it reads the page first, and without memory_correct it adds a statement. --keep stores the figures in
bench/data/agents/baseline.json, to compare later runs with.
"""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from bench.table import show, verdict
from bench.vectors import CACHE
from quaid.model.plain_text import count_tokens

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "bench", "data", "agents")
BASELINE = os.path.join(DATA, "baseline.json")
WRITING_TASKS = ("crm", "coding", "papers")
TASKS = (*WRITING_TASKS, "corrections")
TITLES = {
    "crm": "meetings of a consultant",
    "coding": "sessions of a coding project",
    "papers": "notes on papers",
    "corrections": "correcting and forgetting",
}
KINDS = {
    "changed": "a value is corrected",
    "withdrawn": "a statement is withdrawn",
    "ticked": "a to-do is ticked",
    "forgotten": "pages are merged or forgotten",
}
REMEDIES = {"There is no memory": ("init",), "There is no notebook": ("notebook", "init")}
"""Commands with which a person answers an error that an agent cannot solve."""

QUICK_ITEMS = 5
CALL_SECONDS = 60
NOT_PART_OF_THE_ANSWER = frozenset({"query", "question", "notes"})

Row = dict[str, Any]


class Reply(NamedTuple):
    """The result of one call."""

    text: str
    record: Row
    failed: bool
    tokens: int


class CallEntry(NamedTuple):
    """A call that the agent made, for the count."""

    task: str
    tool: str
    wasted: str
    """Why it counts as wasted, or ""."""
    tokens: int


class Finding(NamedTuple):
    """A check with its outcome. `id` names the row of the data."""

    task: str
    id: str
    passed: bool
    detail: str


def main() -> None:
    source = next(
        (word.partition("=")[2] for word in sys.argv if word.startswith("--source=")),
        os.path.join(ROOT, "src"),
    )
    quick = "--quick" in sys.argv
    play = run(source, quick=quick)
    figures = play.figures()
    tables(play, figures, {} if quick else kept_figures())
    for line in play.complaints():
        print(f"  {line}")
    print()
    if "--keep" in sys.argv and not quick:
        with open(BASELINE, "w", encoding="utf-8") as file:
            json.dump({"commit": commit_of(source), **figures}, file, indent=1)
            file.write("\n")


def run(source: str, *, quick: bool) -> "Play":
    """Play all tasks on a new memory."""
    logging.getLogger("client").setLevel(logging.ERROR)  # it warns of each call of a tool that is not listed
    play = Play(source, Data.read(quick=quick))
    anyio.run(play.run)
    return play


class Data(NamedTuple):
    """The rows of bench/data/agents."""

    items: dict[str, list[Row]]
    questions: list[Row]
    facts: list[Row]

    @classmethod
    def read(cls, *, quick: bool) -> "Data":
        items = {task: rows(task)[: QUICK_ITEMS if quick else None] for task in WRITING_TASKS}
        present = {row["id"] for task in WRITING_TASKS for row in items[task]}
        items["corrections"] = []
        for row in rows("corrections"):
            if present.issuperset(row["needs"]):
                items["corrections"].append(row)
                present.add(row["id"])

        def askable(name: str) -> list[Row]:
            return [row for row in rows(name) if present.issuperset(row["needs"])]

        return cls(items, askable("questions"), askable("facts"))


def rows(name: str) -> list[Row]:
    with open(os.path.join(DATA, f"{name}.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Play:
    """The agent that makes the calls, the person who confirms its proposals, and the counts."""

    def __init__(self, source: str, data: Data) -> None:
        self.source = source
        self.data = data
        self.calls: list[CallEntry] = []
        self.answers: list[Finding] = []
        self.found: list[Finding] = []
        self.found_by_meaning: list[Finding] = []
        self.embedded: list[Finding] = []
        self.replaced: list[Finding] = []
        self.ended: list[Finding] = []
        self.failures: list[str] = []
        self.failed_items: set[str] = set()
        self.writes_with_open_facts = 0
        self.list_tokens = 0
        self.list_bytes = 0
        self.task = ""
        self._slugs: set[str] = set()  # pages that the agent has written
        self._refused_types: set[str] = set()
        self._set_up: set[tuple[str, ...]] = set()  # commands that the person has run
        self._arguments: dict[str, list[str]] = {}  # names of the arguments of each listed tool
        self._client: Client | None = None
        self._home = ""

    async def run(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            self._home = home
            async with self._session():
                pass  # only to learn which tools there are
            self.list_tokens = 0
            if "memory_correct" not in self._arguments:  # an older server does not create what is missing
                self.person("init")
                self.person("notebook", "init")
            for task in WRITING_TASKS:
                self.task = task
                async with self._session():
                    for item in self.data.items[task]:
                        await self._write_item(item)
            for task in WRITING_TASKS:
                self.task = task
                async with self._session():
                    await self._ask_questions()
            self.task = "corrections"
            async with self._session():
                for fact in self.data.facts:
                    await self._check_fact(fact)
                for item in self.data.items["corrections"]:
                    await self._correct(item)
                await self._ask_questions()

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[None]:
        """Start a server and connect to it, as each conversation of an agent does."""
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "quaid", "serve"], env=self._environment(), cwd=self._home
        )
        with open(os.path.join(self._home, "stderr.txt"), "a", encoding="utf-8") as log:
            transport = stdio_client(server, errlog=log)
            async with Client(transport, mode="legacy", read_timeout_seconds=CALL_SECONDS) as client:
                self._client = client
                listed = (await client.list_tools()).tools
                self._arguments = {tool.name: list(tool.input_schema["properties"]) for tool in listed}
                dumped = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
                text = json.dumps(dumped, ensure_ascii=False, separators=(",", ":"))
                self.list_bytes = len(text.encode())
                self.list_tokens += count_tokens(text) + count_tokens(client.instructions or "")
                self._refused_types.clear()
                yield

    def person(self, *words: str) -> None:
        """Run a command as the person at the shell."""
        done = subprocess.run(
            [sys.executable, "-m", "quaid", *words],
            env=self._environment(),
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.failures.append(f"quaid {' '.join(words)}: {(done.stderr or done.stdout).strip()[:200]}")

    def _environment(self) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("QUAID_")},
            "HOME": self._home,
            "PYTHONPATH": self.source,
            "QUAID_EMBEDDING_MODELS_DIR": os.path.join(CACHE, "models"),
        }

    async def call(self, tool: str, arguments: Row) -> Reply:
        """Call a tool. A call that fails, times out or breaks the protocol gives a failed reply."""
        assert self._client
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            return Reply(str(error), {}, True, count_tokens(str(error)))
        text = "\n".join(block.text for block in result.content if block.type == "text")
        tokens = count_tokens(text)
        if result.structured_content is not None:
            tokens += count_tokens(json.dumps(result.structured_content, ensure_ascii=False))
        try:
            record = json.loads(text)
        except ValueError:
            record = result.structured_content or {}
        return Reply(text, record if isinstance(record, dict) else {}, bool(result.is_error), tokens)

    async def act(self, tool: str, arguments: Row, item: str, *, wasted: str = "") -> Reply:
        """Make a call that counts. If something is not set up, the person does it and the agent calls again."""
        reply = await self.call(tool, arguments)
        if reply.failed:
            self.failures.append(f"{item}: {tool}: {reply.text[:300]}")
        self.calls.append(CallEntry(self.task, tool, "failed" if reply.failed else wasted, reply.tokens))
        for problem, remedy in REMEDIES.items():
            if reply.failed and problem in reply.text and remedy not in self._set_up:
                self._set_up.add(remedy)
                self.person(*remedy)
                return await self.act(tool, arguments, item, wasted=wasted)
        return reply

    async def _write_item(self, item: Row) -> None:
        for number, call in enumerate(item["calls"], 1):
            reply = await self._write(call, item["id"])
            if reply.failed:
                self.failed_items.add(item["id"])
            self.writes_with_open_facts += bool(_values(reply.record, "open_facts"))
            if "replaces" in call:
                named = _strings([_values(reply.record, "replaced"), _values(reply.record, "contradicts")])
                self._note(self.replaced, item["id"], bool(re.search(call["replaces"], named)), "")
            if "sentence" in call:
                await self._check_findable(call, f"{item['id']}.{number}", reply)

    async def _write(self, call: Row, item: str) -> Reply:
        tool, arguments = call["tool"], call["arguments"]
        if slug := call.get("reads"):
            page = await self.act("memory_get", {"slug": slug}, item)
            arguments = {**arguments, "expected_version": _version(page)}
        elif "content_hash" not in self._arguments["memory_put"]:  # an older server, needs versions always
            arguments = await self._with_versions(arguments, item)
        arguments = self._with_accepted_types(arguments)
        reply = await self.act(tool, arguments, item)
        if reply.failed and (version := reply.record.get("current_version")):
            reply = await self.act(tool, {**arguments, "expected_version": version}, item)
        elif reply.failed and (refused := re.search(r"'(\w+)' is not a page type", reply.text)):
            self._refused_types.add(refused[1])
            reply = await self.act(tool, self._with_accepted_types(arguments), item)
        if not reply.failed:
            self._slugs |= {change["slug"] for change in _changes(arguments)}
        return reply

    def _with_accepted_types(self, arguments: Row) -> Row:
        """Return the arguments with another type for pages whose type was refused before."""
        text = json.dumps(arguments)
        for name in self._refused_types:
            text = text.replace(f"type: {name}", "type: concept").replace(
                f'"type": "{name}"', '"type": "concept"'
            )
        return dict(json.loads(text))

    async def _with_versions(self, arguments: Row, item: str) -> Row:
        """Read the version of every page that is to be changed, as the tools of an older server require."""
        arguments = json.loads(json.dumps(arguments))
        for change in _changes(arguments):
            if change["slug"] in self._slugs:
                page = await self.act("memory_get", {"slug": change["slug"]}, item, wasted="version")
                change["expected_version"] = _version(page)
        return dict(arguments)

    async def _check_findable(self, call: Row, id: str, written: Reply) -> None:
        changed = [address.partition("::")[2] or address for address in _addresses(written.record)]
        for findings, words in ((self.found, call["sentence"]), (self.found_by_meaning, call["indirect"])):
            results = Results.of(await self.call("memory_query", self._question(words)))
            place = results.first(call["gold"], among=changed)
            self._note(findings, id, not written.failed and place is not None, words)
        status = await self.call("memory_status", {})
        missing = status.record.get("model", {}).get("missing", 0)
        self._note(self.embedded, id, not status.failed and not missing, f"{missing} chunks without a vector")

    def _question(self, words: str) -> Row:
        return {"query" if "query" in self._arguments["memory_query"] else "question": words}

    async def _ask_questions(self) -> None:
        for row in self.data.questions:
            if row["task"] == self.task:
                reply = await self.act("memory_query", self._question(row["ask"]), row["id"])
                passed, detail = (False, "failed") if reply.failed else Results.of(reply).judge(row)
                self._note(self.answers, row["id"], passed, f"{row['ask']} ({detail})")

    async def _check_fact(self, row: Row) -> None:
        """Check that the present value holds and that the earlier one is no longer listed as a fact."""
        record = (await self.call("memory_facts", {"subject": row["subject"]})).record
        listed = "\n".join(map(_fact_text, record.get("facts", ())))
        passed = bool(re.search(row["holds"], listed)) and not re.search(row["ended"], listed)
        self._note(self.ended, row["subject"], passed, f"{row['ended']} is still open, or no {row['holds']}")

    async def _correct(self, item: Row) -> None:
        if not item["kind"]:
            await self._write_item(item)
            return
        for call in item["calls"]:
            make = self.act if "memory_correct" in self._arguments else self._correct_by_adding
            reply = await make(call["tool"], call["arguments"], item["id"])
            if candidates := reply.record.get("candidates"):
                reply = await self._choose(candidates, call, item["id"])
            if reply.failed:
                self.failed_items.add(item["id"])
            elif _values(reply.record, "proposal"):
                self.person("review", "--yes")

    async def _choose(self, candidates: list[Row], call: Row, item: str) -> Reply:
        """Repeat a correction with the candidate that has most words of it. The first call counts as wasted."""
        self.calls[-1] = self.calls[-1]._replace(wasted="repeated")
        words = set(_strings([call["arguments"]]).casefold().split())
        best = max(candidates, key=lambda row: len(words & set(_strings(row).casefold().split())))
        return await self.act(call["tool"], {**call["arguments"], "id": best["id"]}, item)

    async def _correct_by_adding(self, _tool: str, arguments: Row, item: str) -> Reply:
        """What an agent can do without memory_correct: add the new statement where the old one is."""
        about, now = arguments.get("about", ""), arguments.get("now", "")
        if not about:
            self.failures.append(f"{item}: no tool for it")
            return Reply("", {}, True, 0)
        text = now or f"Not true: {arguments['was']}"
        if about not in self._slugs:
            return await self.act("remember", {"content": f"{about}: {text}"}, item)
        version = (await self.act("memory_get", {"slug": about}, item, wasted="version")).record.get(
            "version"
        )
        entry = f"- **2026-07-01** | correction — {text}"
        change = {"slug": about, "timeline_append": entry, "expected_version": version}
        return await self.act("memory_put", change, item)

    def _note(self, findings: list[Finding], id: str, passed: bool, detail: str) -> None:
        findings.append(Finding(self.task, id, passed, detail))

    def corrections(self) -> dict[str, bool]:
        """Return for each kind of correction whether its calls succeeded and its questions were answered."""
        passed = {answer.id: answer.passed for answer in self.answers}
        done = {}
        for kind in KINDS:
            ids = {item["id"] for item in self.data.items["corrections"] if item["kind"] == kind}
            asked = [row["id"] for row in self.data.questions if ids.intersection(row["needs"])]
            if ids:
                done[kind] = not ids & self.failed_items and all(passed[id] for id in asked)
        return done

    def figures(self) -> dict[str, float]:
        """Return the figures that are compared with the baseline."""
        return {
            "answered": share(self.answers),
            "wasted": sum(bool(call.wasted) for call in self.calls) / len(self.calls),
            "findable": share(self.found),
            "found_by_meaning": share(self.found_by_meaning),
            "corrections": sum(self.corrections().values()),
            "calls": len(self.calls),
            "result_tokens": sum(call.tokens for call in self.calls),
            "list_tokens": self.list_tokens,
            "tokens": self.list_tokens + sum(call.tokens for call in self.calls),
            "ended": share(self.ended),
            "replaced": share(self.replaced),
            "list_bytes": self.list_bytes,
        }

    def complaints(self) -> Iterator[str]:
        """Yield a line for everything that went wrong."""
        for what, findings in (
            ("not answered", self.answers),
            ("not found after the write", self.found),
            ("not found by meaning", self.found_by_meaning),
            ("without vectors after the question", self.embedded),
            ("fact left open", self.ended),
            ("write did not name what it replaced", self.replaced),
        ):
            yield from (f"{what}: {row.id} {row.detail}" for row in findings if not row.passed)
        yield from (f"failed: {line}" for line in self.failures)


class Results(NamedTuple):
    """Facts and results of a memory_query in order, each as plain text and whether it is marked as outdated."""

    texts: list[str]
    outdated: list[bool]

    @classmethod
    def of(cls, reply: Reply) -> "Results":
        found = reply.record.get("results")
        if not isinstance(found, list):
            return cls([], [])
        outdated = [isinstance(result, dict) and bool(result.get("status")) for result in found]
        facts = [str(line) for line in reply.record.get("facts", ())]  # they come before the results
        marks = (", ended ", ", superseded", ", withdrawn")
        ended = [any(mark in line for mark in marks) for line in facts]
        return cls([*facts, *(_strings(result) for result in found)], [*ended, *outdated])

    def first(self, patterns: list[str], *, current: bool = False, among: Sequence[str] = ()) -> int | None:
        """Return the place of the first result that matches a pattern.

        `current` skips what is struck through and results that are marked as outdated, `among` skips results that
        name none of these addresses.
        """
        for place, text in enumerate(self.texts):
            if current:
                text = re.sub(r"~~.*?~~", "", text)
            if (current and self.outdated[place]) or (among and not any(name in text for name in among)):
                continue
            if any(re.search(pattern, text) for pattern in patterns):
                return place
        return None

    def judge(self, row: Row) -> tuple[bool, str]:
        """Return whether a question is answered, and why not."""
        if row.get("gone"):
            place = self.first(row["gone"])
            return place is None, "" if place is None else f"still there, result {place + 1}"
        wrong = self.first(row.get("wrong", []), current=True)
        if wrong is not None:
            return False, f"shown as current in result {wrong + 1}"
        answer = self.first(row["gold"])
        if answer is None:
            return False, f"not in {len(self.texts)} results"
        stale = self.first(row.get("stale", []), current=True)
        if stale is not None and stale < answer:
            return False, f"outdated value in result {stale + 1}, answer in result {answer + 1}"
        return True, f"result {answer + 1}"


def _strings(value: Any) -> str:
    """Return all texts within a JSON value, with single spaces."""
    if isinstance(value, dict):
        parts = (_strings(item) for key, item in value.items() if key not in NOT_PART_OF_THE_ANSWER)
        return " ".join(parts)
    if isinstance(value, list):
        return " ".join(map(_strings, value))
    return " ".join(str(value).split())


def _values(value: Any, key: str) -> list[Any]:
    """Return the non-empty values of a key anywhere in a JSON value."""
    if isinstance(value, list):
        return [found for item in value for found in _values(item, key)]
    if not isinstance(value, dict):
        return []
    own = [value[key]] if value.get(key) else []
    return own + [found for item in value.values() for found in _values(item, key)]


def _version(page: Reply) -> int | None:
    """Return the version in the result of memory_get, which may hold several pages."""
    return next(iter(_values(page.record, "version")), None)


def _changes(arguments: Row) -> list[Row]:
    """Return the parts of a write that each change one page."""
    return [arguments] if "slug" in arguments else list(arguments.get("pages", ()))


def _addresses(record: Row) -> list[str]:
    """Return the pages and files that a write says it changed, without extension."""
    names = [name for key in ("slug", "source_page", "path", "file") for name in _values(record, key)]
    return [os.path.splitext(name)[0] for name in names if isinstance(name, str)]


def _fact_text(fact: Row) -> str:
    return " ".join(str(value) for key, value in fact.items() if key in ("predicate", "object", "says"))


def share(findings: list[Finding]) -> float:
    return sum(finding.passed for finding in findings) / len(findings) if findings else 0.0


def kept_figures() -> dict[str, Any]:
    if not os.path.exists(BASELINE):
        return {}
    with open(BASELINE, encoding="utf-8") as file:
        return dict(json.load(file))


def commit_of(source: str) -> str:
    done = subprocess.run(
        ["git", "-C", source, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def tables(play: Play, figures: dict[str, float], before: dict[str, Any]) -> None:
    by_task = []
    for task in TASKS:
        calls = [call for call in play.calls if call.task == task]
        by_task.append(
            (
                TITLES[task],
                str(len(play.data.items[task])),
                str(len(calls)),
                str(sum(bool(call.wasted) for call in calls)),
                count([finding for finding in play.answers if finding.task == task]),
                count([finding for finding in play.found if finding.task == task]),
                f"{sum(call.tokens for call in calls):,}",
            )
        )
    head = (
        "task",
        "items",
        "calls",
        "wasted",
        "answered on the first call",
        "found after the write",
        "tokens",
    )
    show("Tasks of an agent over MCP", by_task, head)

    def earlier(name: str, form: Callable[[Any], str]) -> str:
        return form(before[name]) if name in before else ""

    kinds = play.corrections()
    ratio = figures["tokens"] / before["tokens"] if before else 0.0
    summary = [
        (
            "questions answered on the first call",
            percent(figures["answered"]),
            earlier("answered", percent),
            verdict(figures["answered"], 0.9, at_least=True),
        ),
        (
            "wasted calls",
            percent(figures["wasted"]),
            earlier("wasted", percent),
            verdict(figures["wasted"], 0.1),
        ),
        (
            "writes found by the next question",
            percent(figures["findable"]),
            earlier("findable", percent),
            verdict(figures["findable"], 1, at_least=True),
        ),
        ("  with all vectors by then", count(play.embedded), "", ""),
        (
            "  found by a question that names nothing of them",
            percent(figures["found_by_meaning"]),
            earlier("found_by_meaning", percent),
            "",
        ),
        (
            "kinds of correction done",
            f"{figures['corrections']:.0f} of {len(kinds)}",
            earlier("corrections", "{:.0f}".format),
            verdict(figures["corrections"], len(kinds), at_least=True),
        ),
        *((f"  {KINDS[kind]}", "yes" if done else "no", "", "") for kind, done in kinds.items()),
        (
            "tokens of results, tool lists and instructions",
            f"{figures['tokens']:,}" + (f", {percent(ratio)} of before" if before else ""),
            earlier("tokens", "{:,}".format),
            verdict(ratio, 0.4) if before else "",
        ),
        ("  of these tool lists", f"{figures['list_tokens']:,}", earlier("list_tokens", "{:,}".format), ""),
        ("calls", f"{figures['calls']}", earlier("calls", str), ""),
        ("tool list", f"{figures['list_bytes']:,} bytes", earlier("list_bytes", "{:,}".format), ""),
        ("earlier values that ended", count(play.ended), earlier("ended", percent), ""),
        ("writes that name what they replaced", count(play.replaced), earlier("replaced", percent), ""),
        ("writes that name open facts", str(play.writes_with_open_facts), "", ""),
    ]
    title = f"commit {before['commit']}" if before else "earlier"
    show("The agent's tasks in figures", summary, ("what", "figure", title, "target"))


def count(findings: list[Finding]) -> str:
    return f"{sum(finding.passed for finding in findings)} of {len(findings)}"


def percent(value: float) -> str:
    return f"{value:.0%}"


if __name__ == "__main__":
    main()

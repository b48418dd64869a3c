"""Ingest by several processes at once, and by processes that die: all or nothing, and never twice."""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests import commands

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.storage import checks
from quaid.storage.sqlite import backup as backups

CALL = """
    import json, os, signal, sys
    import apsw
    from quaid import config
    from quaid.app import Brain
    from quaid.errors import QuaidError
    from quaid.operations import dispatch
    brain = Brain(config.read_settings(sys.argv[1], {}, "/"))
    arguments = json.loads(sys.argv[2])
    last = int(sys.argv[3])
    looks = 0
    def die():
        global looks
        looks += brain.db.connection.txn_state() == apsw.SQLITE_TXN_WRITE  # reads follow the commit
        if last and looks == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return False
    brain.db.connection.set_progress_handler(die, 500)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        done = dispatch.call(brain, dispatch.find_tool("memory_ingest"), arguments, "write")
        print("wrote" if done.written else "known")
    except QuaidError as error:
        print(error.code)
    brain.close()
    print(looks)
    """
NEVER = 0


def start(path: str, arguments: dict[str, Any], last: int = NEVER) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [commands.script(CALL), path, json.dumps(arguments), str(last)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def together(processes: "list[subprocess.Popen[str]]") -> list[str]:
    """Let all of them go at the same moment, and say what each of them said."""
    for process in processes:
        assert process.stdout
        process.stdout.readline()
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = []
    for process in processes:
        out, errors = process.communicate(timeout=60)
        assert errors == ""
        outputs.append(out.split()[0] if out else "")
    return sorted(outputs)


def source(
    pages: list[dict[str, Any]], content: str = "What was said.", ref: str = "meeting/1"
) -> dict[str, Any]:
    return {"content": content, "source_type": "meeting", "source_ref": ref, "pages": pages}


def many_pages(count: int = 20) -> list[dict[str, Any]]:
    """So many pages, with five things hanging on each."""
    return [
        {
            "slug": f"people/p{number}",
            "content": f"# Person {number}\n\n{'Some words about the harbour. ' * 20}",
            "links": [{"to": f"people/p{(number + 1) % count}", "relationship": "knows"}],
            "timeline_entries": [{"date": "2026-04-25", "summary": f"Spoke of {number}"}],
            "assertions": [{"predicate": "lives_in", "object": f"Town {number}", "valid_from": "2026-01-01"}],
            "tags": [f"t{number}", "all"],
        }
        for number in range(count)
    ]


def counted(brain: Brain) -> dict[str, int]:
    tables = (
        "pages",
        "links",
        "assertions",
        "tags",
        "timeline_entries",
        "raw_imports",
        "import_files",
        "ingest_log",
    )
    return {name: brain.db.rows(f"SELECT count(*) FROM {name}")[0][0] for name in tables}


@pytest.fixture
def memory(brain: Brain) -> Iterator[Brain]:
    dispatch.call(brain, dispatch.find_tool("memory_put"), {"slug": "people/bo", "content": "# Bo"}, "write")
    yield brain
    assert checks.validate(brain.db) == []


def test_exactly_one_of_four_writers_with_the_same_version_wins(memory: Brain) -> None:
    writers = [
        start(
            memory.settings.db_path,
            source(
                [
                    {
                        "slug": "people/bo",
                        "expected_version": 1,
                        "compiled_truth": f"# Bo\n\nSo says {name}.",
                    },
                    {"slug": f"sources/{name}", "content": f"# {name}"},
                ],
                content=name,
                ref=name,
            ),
        )
        for name in ("one", "two", "three", "four")
    ]
    assert together(writers) == ["version_conflict"] * 3 + ["wrote"]
    page = dispatch.call(memory, dispatch.find_tool("memory_get"), {"slug": "people/bo"}, "read")
    assert page.version == 2
    winner = page.compiled_truth.rstrip(".").split()[-1]
    assert [slug for (slug,) in memory.db.rows("SELECT slug FROM pages WHERE slug GLOB 'sources/*'")] == [
        f"sources/{winner}",
        f"sources/{winner}-2",  # the words of the source, beside the page that its author made
    ]


def test_one_of_two_simultaneous_ingests_writes(memory: Brain) -> None:
    ingests = [start(memory.settings.db_path, source(many_pages())) for _ in range(2)]
    assert together(ingests) == ["known", "wrote"]
    assert counted(memory) == {
        "pages": 22,
        "links": 20,
        "assertions": 20,
        "tags": 40,
        "timeline_entries": 20,
        "raw_imports": 1,
        "import_files": 1,
        "ingest_log": 1,
    }


def test_ingest_killed_before_the_commit_leaves_nothing_and_can_be_repeated(memory: Brain) -> None:
    arguments = source(many_pages())
    path, before = memory.settings.db_path, counted(memory)
    aside = f"{path}.aside.db"
    backups.create_backup(memory.db, aside)
    rehearsal = start(aside, arguments)
    looks = int(rehearsal.communicate("\n", timeout=60)[0].split()[-1])
    assert looks > 20
    for attempt in range(20):
        killed = start(path, arguments, last=1 + attempt * (looks - 1) // 20)
        killed.communicate("\n", timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert counted(memory) == before
    assert checks.validate(memory.db) == []
    assert together([start(path, arguments)]) == ["wrote"]
    assert together([start(path, arguments)]) == ["known"]
    assert counted(memory)["pages"] == 22

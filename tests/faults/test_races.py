"""Somebody saves files in every style while Quaid writes the same ones: no text that was saved is lost.

A text is kept when it is in the file, in a conflict copy, or was read before it was replaced. Moments differ from run
to run; what is saved, in which style and after which pause, does not.
"""

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults.ledger import LONG, SHARE, Cases
from tests.faults.workspace import FOLDER, files, open_brain, percentile, run, start

from quaid.app import Brain
from quaid.errors import FileChanged, VersionConflict

RACES = max(200, round(5_000 * SHARE)) if LONG else 120
"""Saves by somebody, each against puts without a pause."""


@pytest.mark.promise("never overwrite unread text")
def test_no_text_of_an_editor_is_lost_while_quaid_writes_the_same_files(tmp_path: Path, cases: Cases) -> None:
    for seed in cases.walk(1, 1):
        root = tmp_path / FOLDER
        root.mkdir()
        (root / "a.md").write_text("# A\n\nFirst.\n")
        with open_brain(tmp_path) as brain:
            brain.create(brain.settings.db_path)
            run(brain, "collection add", name=FOLDER, path=str(root))
            race = against(brain, start("editor.py", root, RACES, seed, "a.md"))
            run(brain, "collection sync", name=FOLDER)
            kept = "\n".join([*race.replaced, *(data.decode() for data in files(root).values())])
            assert len(race.seconds) > RACES // 20
            assert race.refused > RACES // 20
            assert run(brain, "validate")["violations"] == []
        assert len(race.saved) == RACES
        assert [word for word in race.saved if f"{word} ends." not in kept] == []
        assert [path.name for path in root.iterdir() if path.name.startswith(".quaid")] == []
        cases.count(len(race.saved) - 1)
        copies = sum(".conflict-" in path for path in files(root))
        cases.note(
            f"{len(race.seconds):,} puts and {race.refused:,} refused ones against {len(race.saved):,} saves:"
            f" {copies} conflict copies, put p50 {1000 * percentile(race.seconds, 0.5):.0f} ms"
        )


class Race(NamedTuple):
    saved: list[str]
    """The words of the editor's texts."""
    replaced: list[str]
    """What our puts had read before they replaced it."""
    refused: int
    seconds: list[float]
    """How long each put took that was not refused."""


def against(brain: Brain, editor: "subprocess.Popen[str]") -> Race:
    """Put without a pause until the editor is done."""
    refused, replaced = 0, []
    seconds: list[float] = []
    while editor.poll() is None:
        page = run(brain, "get", slug=f"{FOLDER}::a")
        word = f"ours{len(seconds)}"
        text = f"# Ours\n\n{word} begins.\n\n{word} ends."
        began = time.perf_counter()
        try:
            run(brain, "put", slug=f"{FOLDER}::a", compiled_truth=text, expected_version=page["version"])
        except (FileChanged, VersionConflict):
            refused += 1
            continue
        seconds.append(time.perf_counter() - began)
        replaced.append(page["compiled_truth"] + page["timeline"])
    out, errors = editor.communicate()
    assert errors == ""
    return Race(out.split(), replaced, refused, seconds)

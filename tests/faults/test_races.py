"""Somebody saves files in every style while Quaid writes the same ones: no text that was saved is lost.

A text is kept when it is in the file, in a conflict copy, or was read before it was replaced.
"""

import time
from pathlib import Path

import pytest
from tests.faults.here import FOLDER, files, open_brain, percentile, run, start
from tests.faults.ledger import LONG, SHARE, Cases

from quaid.errors import FileChanged, VersionConflict

RACES = max(200, round(5_000 * SHARE)) if LONG else 120
"""Saves by somebody, each against puts without a pause."""


@pytest.mark.promise("never overwrite unread text")
def test_no_text_of_an_editor_is_lost_while_quaid_writes_the_same_files(tmp_path: Path, cases: Cases) -> None:
    root = tmp_path / FOLDER
    root.mkdir()
    (root / "a.md").write_text("# A\n\nFirst.\n")
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        process = start("editor.py", root, RACES, 7, "a.md")
        ours, refused, overwritten = 0, 0, []
        seconds: list[float] = []
        while process.poll() is None:
            page = run(brain, "get", slug=f"{FOLDER}::a")
            began = time.perf_counter()
            try:
                run(
                    brain,
                    "put",
                    slug=f"{FOLDER}::a",
                    compiled_truth=f"# Ours\n\nours{ours} begins.\n\nours{ours} ends.",
                    expected_version=page["version"],
                )
            except (FileChanged, VersionConflict):
                refused += 1
                continue
            seconds.append(time.perf_counter() - began)
            ours += 1
            overwritten.append(page["compiled_truth"] + page["timeline"])
        out, errors = process.communicate()
        assert errors == ""
        run(brain, "collection sync", name=FOLDER)
        kept = "\n".join([*overwritten, *(data.decode() for data in files(root).values())])
        assert ours > RACES // 20
        assert refused > RACES // 20
        assert run(brain, "validate")["violations"] == []
    saved = out.split()
    assert len(saved) == RACES
    assert [word for word in saved if f"{word} ends." not in kept] == []
    cases.count(len(saved))
    copies = sum(".conflict-" in path for path in files(root))
    cases.note(
        f"{ours:,} puts and {refused:,} refused ones against {len(saved):,} saves: {copies} conflict copies,"
        f" put p50 {1000 * percentile(seconds, 0.5):.0f} ms"
    )
    assert [path.name for path in root.iterdir() if path.name.startswith(".quaid")] == []

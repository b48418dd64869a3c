"""Layers of skills: shadowing, unreadable files, and files that extraction keeps."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from quaid import skills
from quaid.skills import Extracted, Problem


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def skill(name: str, description: str = "Does something.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n"


def problems(folder: Path) -> tuple[Problem, ...]:
    return skills.layers([str(folder)])[1].problems


def test_the_embedded_skills_are_whole() -> None:
    (embedded,) = skills.layers(())
    assert embedded.present
    assert embedded.problems == ()
    assert "setup" in [skill.name for skill in embedded.skills]


def test_a_skill_is_named_described_and_hashed(tmp_path: Path) -> None:
    path = write(tmp_path, "mine", skill("mine", "Counts  sheep."))
    (mine,) = skills.layers([str(tmp_path)])[1].skills
    assert mine.name == "mine"
    assert mine.description == "Counts  sheep."
    assert mine.origin == str(tmp_path)
    assert mine.path == str(path)
    assert mine.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_later_layer_shadows_an_earlier_one_of_the_same_name(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "setup", skill("setup", "Of the home folder."))
    here = write(tmp_path / "here", "setup", skill("setup", "Of this folder."))
    results = {
        item.name: item for item in skills.effective_skills([str(tmp_path / "home"), str(tmp_path / "here")])
    }
    embedded = next(item for item in skills.effective_skills(()) if item.name == "setup")
    assert results["setup"].description == "Of this folder."
    assert results["setup"].path == str(here)
    assert results["setup"].shadows == (str(home), embedded.path)


def test_skills_of_different_names_stand_beside_each_other(tmp_path: Path) -> None:
    write(tmp_path, "zebra", skill("zebra"))
    write(tmp_path, "apple", skill("apple"))
    names = [item.name for item in skills.effective_skills([str(tmp_path)])]
    assert names == sorted(names)
    assert {"apple", "setup", "zebra"} <= set(names)
    assert all(item.shadows == () for item in skills.effective_skills([str(tmp_path)]))


def test_a_missing_folder_is_a_layer_that_is_not_present(tmp_path: Path) -> None:
    layer = skills.layers([str(tmp_path / "none")])[1]
    assert not layer.present
    assert layer.problems == ()


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "skills").write_text("not a folder")
    layer = skills.layers([str(tmp_path / "skills")])[1]
    assert not layer.present
    assert "cannot be read" in layer.problems[0].problem


def test_a_folder_that_is_named_twice_shadows_nothing_of_itself(tmp_path: Path) -> None:
    write(tmp_path, "mine", skill("mine"))
    assert len(skills.layers([str(tmp_path), str(tmp_path / ".")])) == 2
    mine = next(
        item for item in skills.effective_skills([str(tmp_path), str(tmp_path / ".")]) if item.name == "mine"
    )
    assert mine.shadows == ()


def test_other_things_in_a_layer_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a file")
    (tmp_path / "scripts").mkdir()
    write(tmp_path, ".hidden", skill(".hidden"))
    layer = skills.layers([str(tmp_path)])[1]
    assert layer.skills == ()
    assert layer.problems == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"---\nname: setup\n\xff\xfe", "is not UTF-8 text (byte 16)"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * (skills.MAX_BYTES + 1), "is larger than"),
    ],
    ids=["not UTF-8", "no bytes", "blank", "too large"],
)
def test_binary_file_does_not_affect_others(tmp_path: Path, content: bytes, problem: str) -> None:
    path = write(tmp_path, "setup", content)
    write(tmp_path, "good", skill("good"))
    results = {item.name: item for item in skills.effective_skills([str(tmp_path)])}
    assert results["setup"].origin == "embedded", "a broken file shadows nothing"
    assert results["good"].origin == str(tmp_path)
    (reported,) = problems(tmp_path)
    assert reported.path == str(path)
    assert problem in reported.problem


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    os.mkfifo(tmp_path / "mine" / "SKILL.md")
    assert "is not a plain file" in problems(tmp_path)[0].problem


def test_a_link_to_nowhere_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "SKILL.md").symlink_to(tmp_path / "gone")
    assert "cannot be read" in problems(tmp_path)[0].problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Only text\n", ["has no front matter"]),
        ("---\nname: mine\ndescription: never closed\n", ["has no front matter"]),
        ("---\ndescription: d\n---\n", ["has no name; write name: mine"]),
        ("---\nname: other\ndescription: d\n---\n", ["calls itself 'other' but lies in the folder 'mine'"]),
        ("---\nname: mine\n---\n", ["has no description"]),
        ("---\nname: mine\ndescription: ''\n---\n", ["has no description"]),
        ("---\nname:\ntitle: x\n---\n", ["has no name", "has no description"]),
    ],
)
def test_a_fault_in_the_front_matter_is_reported_and_the_skill_stays(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    write(tmp_path, "mine", text)
    result = problems(tmp_path)
    assert len(result) == len(expected)
    assert all(start in item.problem for start, item in zip(expected, result, strict=True))
    assert "mine" in [item.name for item in skills.effective_skills([str(tmp_path)])]


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: mine\ndescription: Two lines of it.\n---\n",
        "---\r\nname: mine\r\ndescription: Two lines of it.\r\n---\r\n",
        "\ufeff---\nname: mine\ndescription: Two lines of it.\n---\n",
        "---\nname: 'mine'\ndescription: \"Two lines of it.\"\n---\n",
        "---\nname: mine\ndescription: |\n  Two lines\n  of it.\n---\n",
        "---\n# a remark: here\nname: mine\ndescription: >-\n  Two lines\n  of it.\nmetadata:\n  a: 1\n---\n",
    ],
    ids=["plain", "CRLF", "BOM", "quoted", "literal block", "folded block"],
)
def test_front_matter_is_read_in_its_usual_forms(tmp_path: Path, text: str) -> None:
    write(tmp_path, "mine", text)
    assert problems(tmp_path) == ()
    assert skills.layers([str(tmp_path)])[1].skills[0].description == "Two lines of it."


def test_extraction_writes_the_embedded_bytes_for_the_owner_only(tmp_path: Path) -> None:
    target = tmp_path / "new" / "skills"
    written = skills.extract(str(target))
    assert {item.outcome for item in written} == {"written"}
    for source, copy in zip(skills.effective_skills(()), written, strict=True):
        assert Path(copy.path).read_bytes() == Path(source.path).read_bytes()
        assert stat.S_IMODE(os.stat(copy.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700
    assert [path.name for path in (target / "setup").iterdir()] == ["SKILL.md"]


def test_a_second_extraction_changes_nothing(tmp_path: Path) -> None:
    first = skills.extract(str(tmp_path))
    times = [os.stat(item.path).st_mtime_ns for item in first]
    again = skills.extract(str(tmp_path), force=True)
    assert {item.outcome for item in again} == {"unchanged"}
    assert [os.stat(item.path).st_mtime_ns for item in again] == times


def test_extraction_keeps_a_file_that_differs_unless_forced(tmp_path: Path) -> None:
    mine = write(tmp_path, "setup", skill("setup", "My own."))
    kept = next(item for item in skills.extract(str(tmp_path)) if item.name == "setup")
    assert kept == Extracted("setup", str(mine), "kept")
    assert "My own." in mine.read_text()
    replaced = next(item for item in skills.extract(str(tmp_path), force=True) if item.name == "setup")
    assert replaced.outcome == "replaced"
    assert "My own." not in mine.read_text()


def test_a_failed_extraction_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "setup" / "SKILL.md").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        skills.extract(str(tmp_path), force=True)
    assert [path.name for path in (tmp_path / "setup").iterdir()] == ["SKILL.md"]

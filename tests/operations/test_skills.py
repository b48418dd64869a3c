"""The commands about skills: what a person sees of the layers, and that no memory is needed for them."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import FileTrouble, NotAllowed, NotFound
from quaid.operations import dispatch, registry
from quaid.operations.dispatch import json_value


@pytest.fixture
def brain(settings: Settings) -> Brain:
    """A brain without a memory."""
    return Brain(settings)


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def write(folder: str, name: str, text: str) -> str:
    path = Path(folder) / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return str(path)


def test_the_list_names_the_embedded_skills(brain: Brain) -> None:
    record = run(brain, "skills list")
    setup = next(skill for skill in record.skills if skill.name == "setup")
    assert setup.origin == "embedded"
    assert setup.description.endswith(".")
    assert record.problems == ()
    assert run(brain, "skills") == record


def test_no_memory_is_made_or_opened(brain: Brain, settings: Settings) -> None:
    for command in ("skills", "skills list", "skills doctor", "skills extract"):
        run(brain, command)
    run(brain, "skills show", name="setup")
    assert not os.path.exists(settings.db_path)


def test_the_doctor_shows_every_layer_in_order_whether_present_or_not(
    brain: Brain, settings: Settings
) -> None:
    home, here = settings.skill_folders
    mine = write(here, "setup", "---\nname: setup\ndescription: Mine.\n---\n")
    record = run(brain, "skills doctor")
    assert [(layer.origin, layer.present) for layer in record.layers] == [
        ("embedded", True),
        (home, False),
        (here, True),
    ]
    setup = next(skill for skill in record.skills if skill.name == "setup")
    assert setup.path == mine
    assert setup.shadows == (next(skill.path for skill in record.layers[0].skills if skill.name == "setup"),)
    assert len(setup.sha256) == 64
    assert record.exit_status == 0


def test_the_doctor_fails_on_a_fault(brain: Brain, settings: Settings) -> None:
    path = write(settings.skill_folders[0], "mine", "---\nname: yours\ndescription: d\n---\n")
    record = run(brain, "skills doctor")
    assert record.exit_status == 1
    assert [problem.path for problem in record.problems] == [path]
    assert run(brain, "skills list").problems == record.problems


def test_extraction_goes_to_the_home_folder_and_is_found_there(brain: Brain, settings: Settings) -> None:
    record = run(brain, "skills extract")
    assert record.folder == settings.skill_folders[0]
    assert {skill.outcome for skill in record.skills} == {"written"}
    setup = next(skill for skill in run(brain, "skills list").skills if skill.name == "setup")
    assert setup.origin == settings.skill_folders[0]


def test_extraction_folder_is_relative_to_the_working_directory(brain: Brain, settings: Settings) -> None:
    record = run(brain, "skills extract", dir="skills")
    assert record.folder == settings.skill_folders[1]
    Path(record.skills[0].path).write_text("mine")
    assert run(brain, "skills extract", dir="skills").skills[0].outcome == "kept"
    assert run(brain, "skills extract", dir="skills", force=True).skills[0].outcome == "replaced"


def test_extraction_under_a_file_says_why_not(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileTrouble, match="not a directory"):
        run(brain, "skills extract", dir="file/skills")


def test_show_gives_the_text_of_the_skill_in_force(brain: Brain, settings: Settings) -> None:
    assert run(brain, "skills show", name="setup").text.startswith("---\nname: setup\n")
    write(settings.skill_folders[1], "setup", "---\nname: setup\ndescription: Mine.\n---\nMy words.\n")
    assert run(brain, "skills show", name="setup").text.endswith("My words.\n")


@pytest.mark.parametrize(
    ("name", "hint"), [("stup", "Did you mean 'setup'"), ("../../etc", "`quaid skills` lists all skills")]
)
def test_an_unknown_skill_gets_a_hint(brain: Brain, name: str, hint: str) -> None:
    with pytest.raises(NotFound, match=hint):
        run(brain, "skills show", name=name)


def test_skills_are_the_owners_and_no_tools(brain: Brain) -> None:
    operations = [
        operation for operation in registry.all_operations() if operation.command.startswith("skills ")
    ]
    assert [operation.command for operation in operations] == [
        "skills list",
        "skills doctor",
        "skills extract",
        "skills show",
    ]
    for operation in operations:
        assert not operation.is_tool
        with pytest.raises(NotAllowed):
            dispatch.call(brain, operation, {}, "write")


def test_records_are_plain_json(brain: Brain) -> None:
    record = json_value(run(brain, "skills doctor"))
    assert set(record) == {"layers", "skills", "problems"}
    assert set(record["skills"][0]) == {"name", "description", "origin", "path", "sha256", "shadows"}

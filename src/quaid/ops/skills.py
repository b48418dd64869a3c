"""Skills for agents: which there are, where each comes from, and copies to change. No memory is opened."""

import os
from typing import Annotated, NamedTuple

from quaid import skills
from quaid.brain import Brain
from quaid.errors import NotFound
from quaid.ops.register import Arg, op
from quaid.skills import Extracted, Layer, Problem, Skill


class SkillsRecord(NamedTuple):
    skills: tuple[Skill, ...]
    problems: tuple[Problem, ...]


class SkillsDoctorRecord(NamedTuple):
    layers: tuple[Layer, ...]  # a later one shadows an earlier one
    skills: tuple[Skill, ...]  # those in force
    problems: tuple[Problem, ...]

    @property
    def exit_status(self) -> int:
        return 1 if self.problems else 0


class SkillsExtractRecord(NamedTuple):
    folder: str
    skills: tuple[Extracted, ...]


class SkillRecord(NamedTuple):
    name: str
    description: str
    origin: str
    path: str
    sha256: str
    text: str


@op(
    "owner",
    command="skills list",
    aliases={"skills": {}},
    examples=("quaid skills", "quaid skills list --json"),
)
def skills_list(brain: Brain) -> SkillsRecord:
    """List the skills in force, each with what it is for."""
    order = skills.layers(brain.settings.skill_folders)
    return SkillsRecord(tuple(skills.resolved(order)), _problems(order))


@op("owner", command="skills doctor", examples=("quaid skills doctor",))
def skills_doctor(brain: Brain) -> SkillsDoctorRecord:
    """Show every layer of skills in order, with hashes, shadowing and faults. Exits 1 on a fault."""
    order = skills.layers(brain.settings.skill_folders)
    return SkillsDoctorRecord(tuple(order), tuple(skills.resolved(order)), _problems(order))


@op(
    "owner",
    command="skills extract",
    examples=("quaid skills extract", "quaid skills extract --dir ./skills"),
)
def skills_extract(
    brain: Brain,
    dir: Annotated[str | None, Arg("The folder to write into; else ~/.quaid/skills.", path=True)] = None,
    force: Annotated[bool, Arg("Replace files that differ, too.")] = False,
) -> SkillsExtractRecord:
    """Write the embedded skills into a folder, where they can be changed. Files that differ are kept."""
    folder = brain.settings.skill_folders[0]
    if dir is not None:
        folder = os.path.abspath(os.path.join(brain.settings.cwd, os.path.expanduser(dir)))
    return SkillsExtractRecord(folder, tuple(skills.extract(folder, force)))


@op("owner", command="skills show", examples=("quaid skills show setup",))
def skills_show(
    brain: Brain, name: Annotated[str, Arg("The skill, as in setup.", positional=True)]
) -> SkillRecord:
    """Print the text of a skill, for an agent to read."""
    known = {skill.name: skill for skill in skills.found(brain.settings.skill_folders)}
    if name not in known:
        from quaid.ops.gate import nearest

        raise NotFound(
            what="skill", name=name, hint=nearest(name, known) or " `quaid skills` lists them all."
        )
    skill = known[name]
    return SkillRecord(
        skill.name, skill.description, skill.origin, skill.path, skill.sha256, skills.text_of(skill)
    )


def _problems(order: list[Layer]) -> tuple[Problem, ...]:
    return tuple(problem for layer in order for problem in layer.problems)

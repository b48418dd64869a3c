"""Skills: workflows for agents, written in Markdown. This module finds, resolves and extracts them.

A skill is a file <folder>/<name>/SKILL.md. Each folder of skills is a layer. The first layer holds the
embedded skills, which are beside this module. A skill shadows the skills of the same name in earlier layers.
A file that cannot be read is reported and shadows nothing. This module checks the front matter of a
skill, but not its text or whether the commands in it exist.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Literal, NamedTuple

from quaid.storage import files as durable_files

FILE_NAME = "SKILL.md"
EMBEDDED = "embedded"
MAX_BYTES = 1024 * 1024  # a skill is read into an agent's context, so it should be much smaller


class Skill(NamedTuple):
    name: str  # name of its folder, used for shadowing and by `skills show`
    description: str
    origin: str  # "embedded", or the folder of its layer
    path: str
    sha256: str
    shadows: tuple[str, ...]  # paths of shadowed skills in earlier layers, nearest first


class Problem(NamedTuple):
    path: str
    problem: str


class Layer(NamedTuple):
    origin: str
    path: str
    present: bool
    skills: tuple[Skill, ...]
    problems: tuple[Problem, ...]


class Extracted(NamedTuple):
    name: str
    path: str
    outcome: Literal["written", "replaced", "kept", "unchanged"]


def layers(folders: Iterable[str]) -> list[Layer]:
    """Return all layers in order, the embedded layer first. A folder that is given twice counts once."""
    all_layers = [_layer(EMBEDDED, os.path.dirname(os.path.abspath(__file__)))]
    seen = {os.path.realpath(all_layers[0].path)}
    for folder in folders:
        if os.path.realpath(folder) not in seen:
            seen.add(os.path.realpath(folder))
            all_layers.append(_layer(folder, folder))
    return all_layers


def resolved(order: Iterable[Layer]) -> list[Skill]:
    """Return the effective skill for each name, with the paths that it shadows, sorted by name."""
    winners: dict[str, Skill] = {}
    for layer in order:
        for skill in layer.skills:
            below = winners.get(skill.name)
            winners[skill.name] = skill._replace(shadows=(below.path, *below.shadows) if below else ())
    return [winners[name] for name in sorted(winners)]


def effective_skills(folders: Iterable[str]) -> list[Skill]:
    """Return the effective skills, sorted by name."""
    return resolved(layers(folders))


def text_of(skill: Skill) -> str:
    with open(skill.path, "rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")


def extract(target: str, force: bool = False) -> list[Extracted]:
    """Write the embedded skills into a folder.

    An existing file that differs is kept, unless `force` is set.
    """
    planned = []
    for skill in effective_skills(()):
        path = os.path.join(target, skill.name, FILE_NAME)
        with open(skill.path, "rb") as file:
            content = file.read()
        planned.append((Extracted(skill.name, path, _outcome(path, content, force)), content))
    for item, content in planned:
        if item.outcome in ("written", "replaced"):
            durable_files.make_folders(os.path.dirname(item.path))
            durable_files.write_file(item.path, content)
    return [item for item, _ in planned]


def _layer(origin: str, folder: str) -> Layer:
    try:
        names = sorted(
            entry.name for entry in os.scandir(folder) if not entry.name.startswith(".") and entry.is_dir()
        )
    except FileNotFoundError:
        return Layer(origin, folder, False, (), ())
    except OSError as error:
        return Layer(origin, folder, False, (), (Problem(folder, f"cannot be read: {error.strerror}"),))
    skills: list[Skill] = []
    problems: list[Problem] = []
    for name in names:
        path = os.path.join(folder, name, FILE_NAME)
        if not os.path.lexists(path):
            continue  # not a skill
        data = _read(path)
        if isinstance(data, Problem):
            problems.append(data)
            continue
        facts = _front_matter(data.decode())
        digest = hashlib.sha256(data).hexdigest()
        skills.append(Skill(name, facts.get("description", ""), origin, path, digest, ()))
        problems += [Problem(path, fault) for fault in _faults(name, facts)]
    return Layer(origin, folder, True, tuple(skills), tuple(problems))


def _read(path: str) -> bytes | Problem:
    """Return the content of a file, or the problem that keeps it from being used."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return Problem(path, "is not a plain file, so it is left out")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        return Problem(path, f"cannot be read ({error.strerror}), so it is left out")
    if len(data) > MAX_BYTES:
        return Problem(path, f"is larger than {MAX_BYTES:,} bytes, so it is left out")
    if not data.strip():
        return Problem(path, "is empty, so it is left out")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return Problem(path, f"is not UTF-8 text (byte {error.start}), so it is left out")
    return data


def _faults(name: str, facts: dict[str, str]) -> list[str]:
    if not facts:
        return ["has no front matter; begin it with '---', name:, description: and '---'"]
    faults = []
    if not facts.get("name"):
        faults.append(f"has no name; write name: {name} into its front matter")
    elif facts["name"] != name:
        faults.append(f"calls itself {facts['name']!r} but lies in the folder {name!r}; make them the same")
    if not facts.get("description"):
        faults.append("has no description; agents choose a skill by it")
    return faults


def _front_matter(text: str) -> dict[str, str]:
    """Return the top-level `key: value` pairs of the front matter, or {} if there is no closed block."""
    lines = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}
    facts: dict[str, str] = {}
    key = ""
    for line in lines[1:]:
        if line.rstrip() == "---":
            return {name: _unquoted(value) for name, value in facts.items()}
        if line[:1].isspace():  # continuation of a value that spans lines
            if key:
                facts[key] = f"{facts[key]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        key = name.strip() if colon and not name.startswith("#") else ""
        if key:
            facts[key] = "" if value.strip() in ("|", "|-", ">", ">-") else value.strip()
    return {}


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1].strip()
    return value


def _outcome(path: str, content: bytes, force: bool) -> Literal["written", "replaced", "kept", "unchanged"]:
    try:
        with open(path, "rb") as file:
            old = file.read(len(content) + 1)
    except FileNotFoundError:
        return "written"
    if old == content:
        return "unchanged"
    return "replaced" if force else "kept"

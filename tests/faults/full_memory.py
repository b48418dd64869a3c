"""A memory with pages, a folder, a notebook, conversations and a knowledge base under one HOME."""

import json
import os
import time
from pathlib import Path
from typing import Any

from tests.faults.workspace import FOLDER, run

from quaid.app import Brain
from quaid.config import Settings

KB = "kb"


def settings_for(home: Path) -> Settings:
    """Return the settings that the command line would use with that HOME, without an embedding model."""
    environ = {**environment(home), "QUAID_EMBEDDING_PLUGIN": "off"}
    return Settings(
        db_path=str(home / "memory.db"), home=str(home / ".quaid"), cwd=str(home), environ=environ
    )


def environment(home: Path) -> dict[str, str]:
    """Return the environment variables of its processes."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AI_KB_DIR": str(home / KB),
        "QUAID_BACKGROUND_EMBEDDING": "off",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def open_memory(home: Path) -> Brain:
    """Open an existing memory."""
    return Brain(settings_for(home), clock=time.time, offset=lambda _: 0)


def create_memory(home: Path, *, kb: bool = True) -> Brain:
    """Create and open a memory with an empty folder, notebook and knowledge base."""
    (home / FOLDER).mkdir(parents=True)
    brain = open_memory(home)
    brain.create(brain.settings.db_path)
    run(brain, "collection add", name=FOLDER, path=str(home / FOLDER))
    run(brain, "notebook init")
    if kb:
        run(brain, "kb init")
    return brain


def converse(home: Path, brain: Brain, *turns: str, session: str = "talk-1") -> None:
    """A conversation with these turns, taken in."""
    path = home / "chats" / f"{session}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        for number, text in enumerate(turns):
            line: dict[str, Any] = {"role": "user" if number % 2 == 0 else "assistant", "content": text}
            file.write(json.dumps({**line, "timestamp": int(time.time()), "session": session}) + "\n")
    run(brain, "conversations add", paths=[str(path)])

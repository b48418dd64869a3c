"""Somebody who edits files while Quaid writes them: `editor.py FOLDER SAVES SEED NAME...`.

Each save is a new text of its own, by rename, in place, in place at once, or by appending. The next one comes only
when the text is not in its place any more, so that who replaced it was not the editor. Prints a line for each text
once it is saved; a text counts from then on.
"""

import os
import random
import sys
import time
from pathlib import Path


def main(folder: str, saves: str, seed: str, *names: str) -> None:
    chance = random.Random(seed)
    for number in range(int(saves)):
        path = Path(folder) / chance.choice(names)
        word = f"e{seed}x{number}"
        chance.choice([by_rename, by_rename, in_place, at_once, appending])(path, word)
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()
        wait_for_others(path, word)
        time.sleep(chance.random() * 0.012)


def wait_for_others(path: Path, word: str) -> None:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and not is_replaced(path, word):
        time.sleep(0.001)


def is_replaced(path: Path, word: str) -> bool:
    """Whether the text is gone for good: files that change places may yet change back."""
    return (
        word not in path.read_text()
        and not any(name.startswith(".quaid-") for name in os.listdir(path.parent))
        and word not in path.read_text()
    )


def text(word: str) -> str:
    return f"# Edited\n\n{word} begins.\n\nby somebody\n\n{word} ends.\n"


def by_rename(path: Path, word: str) -> None:
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_text(text(word))
    os.replace(temporary, path)


def in_place(path: Path, word: str) -> None:
    """Truncate, then write in two pieces, as slow programs do."""
    whole = text(word)
    with open(path, "w") as file:
        file.write(whole[:20])
        file.flush()
        time.sleep(0.001)
        file.write(whole[20:])


def at_once(path: Path, word: str) -> None:
    """Open without truncating, write, and cut what is left over."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    time.sleep(0.001)
    written = os.write(handle, text(word).encode())
    os.ftruncate(handle, written)
    os.close(handle)


def appending(path: Path, word: str) -> None:
    with open(path, "a") as file:
        time.sleep(0.001)
        file.write(f"\n{word} begins.\n\nand more\n\n{word} ends.\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

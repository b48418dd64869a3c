"""Paths and names that want out: up, absolute, through links, encoded, too long, in every spelling that we know of.

`outside` holds what nobody may read or change. A folder prepared by `set_traps` has links in it that lead there.
"""

import os
import random
from pathlib import Path

CANARY = "canary7f3a9c"
"""Stands in the files outside; whoever shows it has read them."""

TRAPS = ("trap", "sub/trap", "daily/trap", "reference/trap", "lists/trap")
SPELLINGS = (
    "{up}{target}",
    "./{up}{target}",
    "a/../{up}{target}",
    "sub/../../{up}{target}",
    "{outside}/{target}",
    "/{outside}/{target}",
    "//{outside}/{target}",
    "file://{outside}/{target}",
    "~/../{target}",
    "~root/{target}",
    "trap/{target}",
    "sub/trap/{target}",
    "reference/trap/{target}",
    "trap.md",
    "trap/.",
    "trap/../{target}",
    ".git/config",
    ".git/hooks/post-commit",
    "sub/.git/config",
    "-rf",
    "--help",
    "--output={outside}/{target}",
    "-o{outside}/{target}",
    "a\0b",
    "{up}{target}\0.md",
    "{target}\n",
    "a\n../{target}",
    "notes::{up}{target}",
    "notes::trap/{target}",
    "notes::{outside}/{target}",
    "nowhere::a",
    "::",
    "a::b::c",
    "kb::trap/{target}",
    "notebook::trap/{target}",
    "con",
    "aux.md",
    "c:\\{target}",
    "\\\\host\\share\\{target}",
    "..\\..\\{target}",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/dev/stdin",
    "/dev/zero",
    "/etc/passwd",
    "$HOME/{target}",
    "`id`",
    "$(cat {outside}/{target})",
    "a;touch {outside}/new",
    "|touch {outside}/new",
    "{{{{target}}}}",
    "*",
    "**/*",
    "[a-z]*",
    "?",
    "a" * 300,
    "a/" * 200 + "b",
    "../" * 300 + "etc/passwd",
    ".",
    "..",
    "/",
    "",
    " ",
    " {up}{target}",
    "{up}{target} ",
    "．．/{target}",
    "‥/{target}",
    "\u202e{target}",
    "a\u2044..\u2044{target}",
    "\ud800",
    "e\u0301/{target}",
    "ext::sh -c touch% {outside}/new",
    "memory://pages/{up}{target}",
    ".quaid-0-0-0.tmp",
    "sub/.hidden/{target}",
    "node_modules/{target}",
)


def outside(home: Path) -> Path:
    """The folder beside the household that is out of bounds, with something to steal in it."""
    place = home.parent / "outside"
    place.mkdir(parents=True)
    for name in ("canary.md", "secret.org", "config"):
        (place / name).write_text(f"# Secret\n\n{CANARY} {name}\n")
    return place


def set_traps(root: Path, place: Path) -> None:
    """Links in a folder, to a folder and to a file outside."""
    for trap in TRAPS:
        (root / trap).parent.mkdir(parents=True, exist_ok=True)
        (root / trap).symlink_to(place)
    (root / "trap.md").symlink_to(place / "canary.md")
    (root / "trap.org").symlink_to(place / "secret.org")


def path(seed: int, place: Path) -> str:
    """One hostile path; the first ones are the spellings above, later ones are mixed from them."""
    chance = random.Random(seed)
    target = chance.choice(("canary.md", "canary", "new.md", "new", "secret.org", "config"))
    up = "../" * chance.randrange(1, 9)
    spelling = SPELLINGS[seed] if seed < len(SPELLINGS) else chance.choice(SPELLINGS)
    made = (
        spelling.replace("{up}", up).replace("{target}", target).replace("{outside}", str(place).lstrip("/"))
    )
    made = made if "{outside}" not in spelling or spelling[0] == "-" else made.replace("//", "/", 1)
    if seed >= len(SPELLINGS):
        made = _bent(made, chance)
    return made


def _bent(made: str, chance: random.Random) -> str:
    """The same in another spelling: encoded, in capitals, with doubled separators, with another ending."""
    ways = (
        lambda text: text.replace("/", "%2f").replace("..", "%2e%2e"),
        lambda text: text.replace("/", "%252f"),
        lambda text: text.replace("/", "//"),
        lambda text: text.replace("/", "\\"),
        lambda text: text.replace("/", "/./"),
        lambda text: text.upper(),
        lambda text: text + ".md",
        lambda text: "sub/" + text,
        lambda text: text + "/",
        lambda text: text.replace("..", "..."),
        lambda text: text[: chance.randrange(len(text) + 1)],
        lambda text: "".join(chance.sample(text, len(text))) if len(text) < 40 else text,
        lambda text: text,
    )
    return chance.choice(ways)(made)


def state(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything outside, so that any change of it shows."""
    results = {}
    for folder, _, names in os.walk(place):
        for name in names:
            whole = os.path.join(folder, name)
            facts = os.lstat(whole)
            data = Path(whole).read_bytes() if os.path.isfile(whole) else b""
            results[os.path.relpath(whole, place)] = (facts.st_mtime_ns, facts.st_mode, data)
        results[os.path.relpath(folder, place) + "/"] = (0, os.lstat(folder).st_mode, b"")
    return results

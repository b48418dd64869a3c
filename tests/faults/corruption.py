"""Damage to a database file: flipped bytes, zeroed pages, lost tails, in the file itself or in its log."""

import random
from pathlib import Path

KINDS = ("flip", "flip", "flip", "burst", "zeros", "cut", "swap")


def damage(path: Path, seed: int) -> str:
    """Damage a database in one way, determined by the seed, and return a description."""
    chance = random.Random(seed)
    log = path.with_name(path.name + "-wal")
    victim = log if log.exists() and log.stat().st_size and chance.random() < 0.3 else path
    data = bytearray(victim.read_bytes())
    kind, at = chance.choice(KINDS), chance.randrange(len(data))
    if kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "burst":
        for place in range(at, min(len(data), at + chance.randrange(2, 64))):
            data[place] = chance.randrange(256)
    elif kind == "zeros":
        start = at // 4096 * 4096
        data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    elif kind == "cut":
        del data[at:]
    else:
        other = chance.randrange(len(data)) // 4096 * 4096
        start = at // 4096 * 4096
        data[start : start + 4096], data[other : other + 4096] = (
            data[other : other + 4096],
            data[start : start + 4096],
        )
    victim.write_bytes(bytes(data))
    return f"{kind} at {at} of {victim.name}"

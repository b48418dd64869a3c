"""UUIDs of versions 7 and 4; the caller supplies the time and the random bytes."""


def uuid7(milliseconds: int, random: bytes) -> str:
    """An RFC 9562 UUIDv7: 48 bits of Unix milliseconds, then 74 of the 80 given random bits."""
    if len(random) != 10:
        raise ValueError("uuid7 takes exactly 10 random bytes")
    return _uuid((milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(random, "big"), 7)


def uuid4(random: bytes) -> str:
    """An RFC 9562 UUIDv4, as `uuidgen` makes them: 122 of the 128 given random bits."""
    if len(random) != 16:
        raise ValueError("uuid4 takes exactly 16 random bytes")
    return _uuid(int.from_bytes(random, "big"), 4)


def _uuid(bits: int, version: int) -> str:
    bits = bits & ~(0xF << 76) | version << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

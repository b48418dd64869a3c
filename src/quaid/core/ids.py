"""Identities. Knows the layout of a UUIDv7; the clock and the dice are the caller's."""


def uuid7(milliseconds: int, random: bytes) -> str:
    """An RFC 9562 UUIDv7: 48 bits of Unix milliseconds, then 74 of the 80 given random bits."""
    if len(random) != 10:
        raise ValueError("uuid7 takes exactly 10 random bytes")
    bits = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(random, "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

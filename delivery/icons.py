"""Draw the icons of the installed dashboard: the mark of mark.svg as PNG.

Run `python delivery/icons.py` after a change of the mark, and commit the files.
"""

import math
import os
import struct
import zlib

STATIC = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "quaid", "web", "static"
)
GREEN, PALE = (15, 95, 82), (234, 250, 245)
SHADES = 16
"""Steps between the two colours, and between green and transparent."""
ICONS = {"icon-192.png": (192, False), "icon-512.png": (512, False), "icon-full-512.png": (512, True)}
"""Size of each icon, and whether green fills the square, for systems that cut icons to a shape of their choice."""


def main() -> None:
    for name, (size, is_full) in ICONS.items():
        with open(os.path.join(STATIC, name), "wb") as file:
            file.write(draw(size, is_full))


def draw(size: int, is_full: bool) -> bytes:
    """Return a PNG with a palette: shades from green to pale, then from green to transparent."""
    unit = (40 if is_full else 32) / size  # length of a pixel in the coordinates of mark.svg
    start = -4 if is_full else 0
    rows = []
    for row in range(size):
        y = start + (row + 0.5) * unit
        row_pixels = bytearray(b"\0")
        for column in range(size):
            x = start + (column + 0.5) * unit
            pale, outside = _shade(_distance_to_mark(x, y) / unit), _shade(_distance_to_square(x, y) / unit)
            row_pixels.append(SHADES + outside if outside < SHADES - 1 and not is_full else SHADES - 1 - pale)
        rows.append(bytes(row_pixels))
    return _png(size, b"".join(rows))


def _distance_to_mark(x: float, y: float) -> float:
    """Return the distance to the pale shapes, negative outside: the ring, its handle and the dot."""
    centre = math.hypot(x - 15, y - 15)
    along = min(max((x - 18.5 + y - 18.5) / 13, 0), 1)
    handle = math.hypot(x - 18.5 - 6.5 * along, y - 18.5 - 6.5 * along)
    return max(1.5 - abs(centre - 8), 1.5 - handle, 2.6 - centre)


def _distance_to_square(x: float, y: float) -> float:
    """Return the distance to the edge of the square with round corners, negative outside."""
    return 8 - math.hypot(max(abs(x - 16) - 8, 0), max(abs(y - 16) - 8, 0))


def _shade(pixels: float) -> int:
    """Return how much of a pixel is covered, from 0 to SHADES - 1."""
    return round(min(max(pixels + 0.5, 0), 1) * (SHADES - 1))


def _png(size: int, pixels: bytes) -> bytes:
    mixed = [
        [round(pale + (green - pale) * step / (SHADES - 1)) for green, pale in zip(GREEN, PALE, strict=True)]
        for step in range(SHADES)
    ]
    palette = bytes(value for colour in [*mixed, *[GREEN] * SHADES] for value in colour)
    alpha = bytes([255] * SHADES + [round(255 * step / (SHADES - 1)) for step in range(SHADES)])
    head = struct.pack(">IIBBBBB", size, size, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"PLTE", palette),
        (b"tRNS", alpha),
        (b"IDAT", zlib.compress(pixels, 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


if __name__ == "__main__":
    main()

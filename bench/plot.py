"""A small chart of how cost grows, as SVG: both axes are logarithmic, so a straight line of slope one is linear."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 36, 44
COLOURS = ("#2f6fde", "#c2452d", "#2c8a57", "#8a4fc2", "#b07a14", "#127f8c", "#b03a78", "#5c6470")


class Curve(NamedTuple):
    """Points of several series; `x` and `y` say what is drawn, with its unit."""

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]


def svg(curve: Curve) -> str:
    points = [point for series in curve.series.values() for point in series]
    across = _decades([x for x, _ in points])
    up = _decades([y for _, y in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(curve.title)}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="600" fill="#1c2330">{escape(curve.title)}</text>',
    ]
    for exponent in range(across[0], across[1] + 1):
        x = _place(exponent, across, LEFT, WIDTH - RIGHT)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(_text(x, HEIGHT - BOTTOM + 16, _power(exponent), "middle"))
    for exponent in range(up[0], up[1] + 1):
        y = _place(exponent, up, HEIGHT - BOTTOM, TOP)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 6, y + 4, _power(exponent), "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, curve.x, "middle"))
    parts.append(_text(LEFT, TOP - 4, curve.y, "start"))
    parts += _series(curve, across, up)
    return "\n".join([*parts, "</svg>", ""])


def _series(curve: Curve, across: tuple[int, int], up: tuple[int, int]) -> list[str]:
    parts: list[str] = []
    labels: list[tuple[float, str, str]] = []
    for number, (name, points) in enumerate(curve.series.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [
            (
                _place(math.log10(x), across, LEFT, WIDTH - RIGHT),
                _place(math.log10(y), up, HEIGHT - BOTTOM, TOP),
            )
            for x, y in points
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        labels.append((placed[-1][1], name, colour))
    # Names stand at the ends of their lines, pushed apart where they would touch.
    below = 0.0
    for y, name, colour in sorted(labels):
        below = max(y, below + 15)
        parts.append(
            f'<text x="{WIDTH - RIGHT + 8}" y="{below + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _place(exponent: float, decades: tuple[int, int], start: float, end: float) -> float:
    return start + (exponent - decades[0]) / (decades[1] - decades[0]) * (end - start)


def _power(exponent: int) -> str:
    return f"{10**exponent:,}" if 0 <= exponent <= 6 else f"{10.0**exponent:g}"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e3e6eb"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#4a5260">{escape(words)}</text>'

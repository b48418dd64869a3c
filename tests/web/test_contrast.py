"""The stylesheet by its own figures: contrast in both themes, focus, motion, print. WCAG 2.2, level AA."""

import math
import re
from itertools import combinations

import pytest

from quaid.web.pages import base
from quaid.web.pages.search import COLOURS

CSS = base.static_assets()["app.css"].data.decode()
TEXT, LARGE = 4.5, 3.0
GROUNDS = ("paper", "surface", "sunk")
TYPES = (*COLOURS, "other")


def themes() -> dict[str, dict[str, str]]:
    matches = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS)
    assert len(matches) > 20
    return {
        "light": {name: light for name, light, _ in matches},
        "dark": {name: dark for name, _, dark in matches},
    }


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


PAIRS = [
    *((ink, ground, TEXT) for ink in ("ink", "ink-2", "ink-3", "accent") for ground in GROUNDS),
    *((kind, ground, TEXT) for kind in TYPES for ground in GROUNDS),
    *((tone, f"{tone}-soft", TEXT) for tone in ("good", "warn", "bad", "accent")),
    *((tone, "surface", TEXT) for tone in ("good", "warn", "bad")),
    ("on-accent", "accent", TEXT),
    *((ink, "mark", TEXT) for ink in ("ink", "ink-2", "accent")),
    *(("edge", ground, LARGE) for ground in GROUNDS),  # the border of a field
    *(("accent", ground, LARGE) for ground in ("accent-soft", "sunk")),  # the ring of focus
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme: str) -> None:
    colours = themes()[theme]
    for ink, ground, least in PAIRS:
        ratio = contrast(colours[ink], colours[ground])
        assert ratio >= least, f"{ink} on {ground}: {ratio:.2f}"


def test_contrast_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_colours_are_defined_once_and_used_by_name() -> None:
    rest = CSS[CSS.index("--sans:") :]
    assert re.findall(r"#[0-9a-f]{3,8}\b", rest) == []


def test_stylesheet_handles_focus_motion_print_and_contrast() -> None:
    assert ":focus-visible" in CSS
    assert "outline: none" not in CSS.replace("main:focus { outline: none; }", "").replace(
        "padding: .5rem; outline: none; }",
        "",  # the field of the search page: its frame has the ring
    )
    for media in ("prefers-reduced-motion: reduce", "prefers-contrast: more", "@media print"):
        assert media in CSS


def seen(colour: str) -> tuple[float, float, float]:
    """A colour where equal ways look equally far: OKLab."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    )
    long = (0.4122 * red + 0.5363 * green + 0.0514 * blue) ** (1 / 3)
    middle = (0.2119 * red + 0.6807 * green + 0.1074 * blue) ** (1 / 3)
    short = (0.0883 * red + 0.2817 * green + 0.6300 * blue) ** (1 / 3)
    return (
        0.2105 * long + 0.7936 * middle - 0.0041 * short,
        1.9780 * long - 2.4286 * middle + 0.4506 * short,
        0.0259 * long + 0.7828 * middle - 0.8087 * short,
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_type_colours_are_distinct(theme: str) -> None:
    colours = themes()[theme]
    assert len(COLOURS) == 12
    for one, other in combinations(TYPES, 2):
        apart = math.dist(seen(colours[one]), seen(colours[other]))
        assert apart >= 0.07, f"{one} and {other} in {theme}: {apart:.3f}"


def test_every_type_with_a_colour_has_its_class() -> None:
    for name in COLOURS:
        assert re.search(rf"\.t-{name}\b[^{{}}]*{{ color: var\(--{name}\); }}", CSS), name

"""A lint for prose: words that make a sentence hard to understand, counted per 1,000 words.

`python docs/prose.py` reads the docstrings and comments of src/quaid and the pages of docs, prints each package's
figure and fails if one is over its budget. `python docs/prose.py -v [PATH …]` prints the lines.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 0.5
"""Most matches per 1,000 words. The documentation of comparable projects has 0.1."""

WORDS = re.compile(
    r"\b(?:[Ww]hoever|[Ss]omebody|[Nn]obody|(?<!here )is none|(?<!here )is no(?! longer)|stands(?! for| out)|stood|"
    r"(?<!`)told|of (?:its|their) own|but for|c[oa]me(?:s)? about|at all|lies in|speaks|[Dd]oes not know|[Kk]nows)\b"
)
GENERATED = {"cli.md", "tools.md", "errors.md", "schema.md", "benchmarks.md", "log.md", "faults.md"}


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    parts: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(_files()):
        if words and not any(str(path).startswith(str(Path(word).resolve())) for word in words):
            continue
        parts.setdefault(_part(path), []).extend(_prose(path))
    failed = False
    for part, texts in parts.items():
        count = sum(len(text.split()) for _, text in texts)
        hits = [(place, match[0], text) for place, text in texts for match in WORDS.finditer(text)]
        rate = 1000 * len(hits) / max(count, 1)
        failed |= rate > BUDGET
        print(
            f"{part:12} {count:7,} words  {rate:5.1f} per 1,000{f'  OVER {BUDGET}' if rate > BUDGET else ''}"
        )
        if "-v" in sys.argv:
            print(
                *(f"  {place}: {word!r}: {' '.join(text.split())[:140]}" for place, word, text in hits),
                sep="\n",
            )
    return int(failed)


def _files() -> Iterator[Path]:
    yield from (ROOT / "src" / "quaid").rglob("*.py")
    yield from (path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED)
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))


def _part(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "docs" if parts[0] != "src" else parts[2] if len(parts) > 3 else "top"


def _prose(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and text of each docstring and comment, or of each line of a page."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    if path.suffix == ".md":
        yield from ((f"{name}:{number}", line) for number, line in enumerate(text.split("\n"), 1))
        return
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield f"{name}:{value.lineno}", value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield f"{name}:{token.start[0]}", token.string.lstrip("# ")


if __name__ == "__main__":
    sys.exit(main())

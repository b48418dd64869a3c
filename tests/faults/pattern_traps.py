"""Every regular expression of the package against texts that are made of its own parts.

A pattern whose cost grows faster than its text shows it when one of its parts comes again and again and the end never
comes. Here they are all found, in the modules and in calls like `re.sub("…", …)`, and for each the family of such
texts is made from what it is parsed to.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as code, _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import quaid
from quaid.formats.org import LONGEST_TITLE
from quaid.kb.repository import MAX_MESSAGE_LENGTH
from quaid.model.claims import LONGEST_SENTENCE
from quaid.model.english import LONGEST_LAST_NAME, READ_WINDOW, english_rules
from quaid.model.secrets import secret_rules

SOURCE = Path(quaid.__file__).parent
MOST_UNITS = 60
_CLASSES: dict[Any, str] = {
    code.CATEGORY_DIGIT: "0",
    code.CATEGORY_NOT_DIGIT: "a",
    code.CATEGORY_SPACE: " ",
    code.CATEGORY_NOT_SPACE: "a",
    code.CATEGORY_WORD: "a",
    code.CATEGORY_NOT_WORD: "-",
}
_CALLS = ("sub", "subn", "match", "search", "findall", "finditer", "split", "fullmatch")


BOUNDED = {
    "quaid.model.facts._COMPANY_SUFFIX": 1_000,  # the object of a fact
    "quaid.model.facts._NUMBER": 60,  # the value of a fact
    "quaid.model.english._LAST_NAME": LONGEST_LAST_NAME,
    "quaid.model.english._": 2 * READ_WINDOW,  # what stands around a word in one paragraph
    "quaid.model.secrets._": 96,  # a value, or the name it was given to
    "quaid.model.claims._": 2 * LONGEST_SENTENCE,  # a sentence
    "quaid.formats.org._LINK": LONGEST_TITLE,
    "quaid.kb.repository._": MAX_MESSAGE_LENGTH,
    "quaid.kb.node._RELATION_LABEL": 20,  # what stands before a link
    "quaid.web.pages.markdown._TABLE_CELL": 2_000,  # a row of a snippet
    "quaid.web.pages.markdown._TABLE_ROW": 2_000,
    "quaid.web.pages.markdown._PAGE_FILE": 2_000,  # an address; and the whole of it, or nothing
}
"""Patterns that only ever see short texts, by the beginning of their names, and how long those are at most."""

UNBOUNDED = {
    "quaid.model.claims._DECISIVE",
    "quaid.model.claims._WORD",
    "quaid.model.secrets._DOTTED",
    "quaid.model.secrets._GROUP",
    "quaid.model.secrets._MARK",
    "quaid.model.secrets._patterns.card_digits",
    "quaid.model.secrets._patterns.name",
}
"""Patterns in the same modules that see texts of any length."""


class Found(NamedTuple):
    """A pattern, where it is, and how it is used: from the beginning of a text, or anywhere in it."""

    name: str
    source: str
    flags: int
    anchored: bool

    def run(self, text: str) -> None:
        if self.name.split("[")[0] not in UNBOUNDED:
            text = text[
                : min((most for name, most in BOUNDED.items() if self.name.startswith(name)), default=None)
            ]
        compiled = re.compile(self.source, self.flags)
        if self.anchored:
            compiled.match(text)
            compiled.fullmatch(text)
        else:
            for _ in compiled.finditer(text):
                pass


def patterns() -> list[Found]:
    """All patterns of the package, each once, by name."""
    results: dict[tuple[str, int, bool], Found] = {}
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    everywhere = _uses("\n".join(texts.values()))
    for module in pkgutil.walk_packages([str(SOURCE)], "quaid."):
        if module.name.endswith("__main__") or module.name.startswith("quaid.integrations."):
            continue
        loaded = importlib.import_module(module.name)
        values = vars(loaded)
        here = _uses(texts[Path(str(loaded.__file__))])
        for name, value in list(values.items()):
            for place, item in _within(value, 0):
                source, flags = _read(item)
                uses = (here if name.startswith("_") else everywhere).get(name, {""})
                anchored = uses <= {"match", "fullmatch"} and not place
                known = Found(f"{module.name}.{name}{place}", source, flags, anchored)
                results.setdefault((source, flags, anchored), known)
    for name, source, anchored in (*_secret_patterns(), *_english_patterns()):
        results.setdefault((source, 0, anchored), Found(f"quaid.model.{name}", source, 0, anchored))
    for path, text in texts.items():
        for line, call, source in _literal_calls(text):
            name = f"{path.relative_to(SOURCE)}:{line}"
            anchored = call in ("match", "fullmatch")
            results.setdefault((source, 0, anchored), Found(name, source, 0, anchored))
    return sorted(results.values())


def _secret_patterns() -> Iterator[tuple[str, str, bool]]:
    """Yield the patterns of secret_rules.toml: name, source, and whether it is only matched at a place."""
    rules = secret_rules()
    for name, source in rules.file.data["patterns"].items():
        yield f"secrets._patterns.{name}", rules.file.expand(source), _is_anchored(name, "secrets")
    for rule in {rule for _, rule in (*rules.tokens, *rules.anywhere)} | {*rules.context, rules.discord}:
        yield f"secrets.{rule.kind}[{rule.pattern[:20]!r}]", rule.pattern, False
        yield f"secrets.{rule.kind} lead", rule.lead, False


def _english_patterns() -> Iterator[tuple[str, str, bool]]:
    """Yield the patterns of english.toml, named after the module that uses them and so for the length they see."""
    rules = english_rules()
    claims = (SOURCE / "model/claims.py").read_text(encoding="utf-8")
    for name, source in rules.data["patterns"].items():
        module = "claims" if f'"{name}"' in claims else "english"
        yield f"{module}._{name.upper()}", rules.expand(source), _is_anchored(name, module)
    for word, source, _ in (*rules.data["departures"]["events"], *rules.data["departures"]["states"]):
        yield f"english._phrases[{word!r}]", f"(?i){rules.expand(source)}", True


def _is_anchored(name: str, module: str) -> bool:
    text = (SOURCE / f"model/{module}.py").read_text(encoding="utf-8")
    return set(re.findall(rf'pattern\("{name}"\)\.(\w+)', text)) <= {"match", "fullmatch"}


def _within(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, re.Pattern):
        if isinstance(_read(value)[0], str):
            yield "", value
    elif isinstance(value, dict) and depth < 3:
        for key, item in value.items():
            for place, one in _within(item, depth + 1):
                yield f"[{key!r}]{place}", one
    elif isinstance(value, (list, tuple, frozenset, set)) and depth < 3:
        for at, item in enumerate(value):
            for place, one in _within(item, depth + 1):
                yield f"[{at}]{place}", one


def _read(value: Any) -> tuple[str, int]:
    return value.pattern, value.flags & ~re.UNICODE


def _uses(whole: str) -> dict[str, set[str]]:
    """What is done with each name: `_LINK.sub` is a use of `_LINK`."""
    uses: dict[str, set[str]] = {}
    for name, use in re.findall(r"\b(\w+)(?=\.(\w+))", whole):
        uses.setdefault(name, set()).add(use)
    return uses


def _literal_calls(text: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _CALLS
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.lineno, node.func.attr, node.args[0].value


# What a pattern could match, piece by piece


class Trap(NamedTuple):
    """A text: something, a unit that comes again and again, and an end that fits nothing."""

    before: str
    unit: str
    after: str

    def text(self, size: int) -> str:
        return self.before + self.unit * max(1, size // len(self.unit)) + self.after


def traps(found: Found) -> list[Trap]:
    """Texts made of the parts of a pattern: each part without end, each beginning of it again and again."""
    made: dict[Trap, None] = {}
    for pieces in _sequences(parser.parse(found.source, found.flags)):
        for at, piece in enumerate(pieces):
            before = "".join(pieces[:at])
            for unit in (piece, before + piece, "".join(pieces[at:])):
                if unit:
                    made[Trap("", unit, "")] = None
                    made[Trap("", unit, "\x01")] = None
                    made[Trap(before, unit, "\x01")] = None
    return list(made)[:MOST_UNITS]


def _sequences(tree: Any) -> Iterator[list[str]]:
    """The pieces of every sequence in a pattern, the outermost first."""
    yield [_sample(operation, value) for operation, value in tree]
    for operation, value in tree:
        for inner in _inside(operation, value):
            yield from _sequences(inner)


def _inside(operation: Any, value: Any) -> list[Any]:
    if operation in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return [value[2]]
    if operation is code.SUBPATTERN:
        return [value[3]]
    if operation is code.ATOMIC_GROUP:
        return [value]
    if operation is code.BRANCH:
        return [*value[1][:3], *value[1][-1:]]
    return [value[1]] if operation in (code.ASSERT, code.ASSERT_NOT) else []


def _sample(operation: Any, value: Any) -> str:
    """Something that this part of a pattern matches, or nearly."""
    if operation is code.LITERAL:
        return chr(value)
    if operation is code.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if operation is code.ANY:
        return "a"
    if operation is code.IN:
        return _one_of(value)
    if operation is code.CATEGORY:
        return _CLASSES[value]
    if operation is code.BRANCH:
        return _joined(value[1][0])
    if operation in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return _joined(value[2]) * int(min(max(value[0], 1), 40))
    if operation is code.AT:
        return "\n" if value is code.AT_BEGINNING else ""
    if operation in (code.ASSERT, code.ASSERT_NOT, code.GROUPREF):
        return ""
    return "".join(_joined(item) for item in _inside(operation, value))


def _joined(tree: Any) -> str:
    return "".join([_sample(operation, value) for operation, value in tree])


def _one_of(items: list[Any]) -> str:
    negated = items[0][0] is code.NEGATE
    if not negated:
        operation, value = items[0]
        return chr(value[0]) if operation is code.RANGE else _sample(operation, value)
    for one in "a0 -\n.":
        if not any(_holds(operation, value, one) for operation, value in items[1:]):
            return one
    return "é"


def _holds(operation: Any, value: Any, one: str) -> bool:
    if operation is code.LITERAL:
        return chr(value) == one
    if operation is code.RANGE:
        return bool(value[0] <= ord(one) <= value[1])
    kind = _CLASSES[value]
    fields = {"0": one.isdigit(), "a": one.isalnum(), " ": one.isspace(), "-": not one.isalnum()}
    return fields[kind]

"""Records as text: the functions and sentences for them, and the list of fields of a record without one."""

import importlib
import pkgutil
from collections.abc import Iterator
from string import Formatter
from typing import Any, NamedTuple

import quaid
from quaid.cli import render as renderer
from quaid.cli.render import render


class Item(NamedTuple):
    name: str
    pages: int
    tags: tuple[str, ...] = ()


class Sample(NamedTuple):
    title: str
    items: tuple[Item, ...] = ()
    is_open: bool = False
    note: str | None = None
    next_step: str = ""


SAMPLE = Sample("Tree", (Item("oak", 1, ("a", "b")), Item("birch", 1200)))


def test_record_without_a_renderer_is_listed_by_field() -> None:
    record = SAMPLE._replace(is_open=True, next_step="quaid list")
    assert render(record).splitlines() == [
        "title    Tree",
        "is open  yes",
        "items:",
        "  name   pages  tags",
        "  oak    1      a, b",
        "  birch  1200",
        "Next: quaid list",
    ]


def record_values() -> Iterator[type[Any]]:
    for module in pkgutil.walk_packages(quaid.__path__, "quaid."):
        if not module.name.endswith("__main__") and not module.name.startswith("quaid.integrations."):
            yield from vars(importlib.import_module(module.name)).values()


def test_renderers_are_registered_for_existing_records() -> None:
    classes = {value.__name__ for value in record_values() if isinstance(value, type)}
    assert {*renderer._renderers, *renderer.SENTENCES, *renderer.ROWS, *renderer.FOOTERS} <= classes


def test_sentences_name_fields_of_their_records() -> None:
    classes = {value.__name__: value for value in record_values() if isinstance(value, type)}
    templates = {name: text for name, text in renderer.SENTENCES.items() if isinstance(text, str)}
    assert templates
    for name, text in templates.items():
        fields = {field.split(".")[1] for _, field, _, _ in Formatter().parse(text) if field}
        assert fields <= {*classes[name]._fields}

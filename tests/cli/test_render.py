"""Records as text: the layouts, and the list of fields of a record without one."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

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


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("{title}: {items#}", "Tree: 2"),
        ("{?is_open|open|closed}{?note|: {note}}", "closed"),
        ("{?items#>1&!note|several}", "several"),
        ("{?items#=2,is_open|yes|no}", "yes"),
        (
            "{*items|{@}. {name} of {title}: {pages:#page}}",
            "1. oak of Tree: 1 page\n2. birch of Tree: 1,200 pages",
        ),
        ("{*items[:1]|{name} {tags}|; }", "oak a, b"),
        ("{=|{*items|{name}¦{pages:>5,}}}", "oak        1\nbirch  1,200"),
        ("{%title|Bush=small|Tree=large}", "large"),
        ("{note}\n{title:~3}", "Tr…"),
        ("one\n\n{title:in2}", "one\n\n  Tree"),
    ],
)
def test_layout_fields(layout: str, text: str) -> None:
    assert renderer._fill(layout, (SAMPLE,)) == text


def test_unknown_field_is_an_error() -> None:
    with pytest.raises(LookupError):
        renderer._fill("{titel}", (SAMPLE,))


def test_record_without_layout_is_listed_by_field() -> None:
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


def record_classes() -> Iterator[type[Any]]:
    for module in pkgutil.walk_packages(quaid.__path__, "quaid."):
        if not module.name.endswith("__main__"):
            yield from vars(importlib.import_module(module.name)).values()


def names(layout: str) -> Iterator[str]:
    """Yield the names that a layout reads from its record, outside of lists of other records."""
    for field in renderer._parts(layout)[1::2]:
        head, *bodies = renderer._split(field, "|")
        mark, expression = (head[0], head[1:]) if head[0] in "?%*=>" else ("", head)
        for part in expression.replace("&", ",").split(",") if mark not in ("=", ">") else ():
            yield part.lstrip("!").partition(":")[0].partition(".")[0].rstrip("#")
        if mark == "%":
            bodies = [body.partition("=")[2] for body in bodies]
        for body in bodies if mark != "*" else ():
            yield from names(body)


def test_layouts_name_fields_of_existing_records() -> None:
    classes = {each.__name__: each for each in record_classes() if isinstance(each, type)}
    for name, layout in renderer._layouts().items():
        if name[0].isupper() and " " not in name:
            unknown = {each for each in names(layout) if each.isidentifier()} - {*dir(classes[name])}
            assert not unknown or name in renderer.EXTRAS, f"{name}: {unknown}"

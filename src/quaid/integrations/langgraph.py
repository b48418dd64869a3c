"""LangGraph and LangChain: a store whose items are pages, and a retriever."""

import re
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Any

from quaid import integrations
from quaid.errors import Cancelled, InvalidArgument, MissingFramework, PageNotFound, VersionConflict
from quaid.library import Memory
from quaid.operations.dispatch import MAX_INTEGER

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
    )
except ImportError as error:
    raise MissingFramework(package="langgraph", extra="langgraph", problem=error) from error

FOLDER = "store"
"""First segment of the slugs of all items."""

ITEM, DELETED = "store_item", "deleted_store_item"
"""The type of the page of an item, and its type after the item was deleted."""

MAX_RESULTS = 1_000
"""A search with a query considers at most this many items of the whole store, the best ones."""

MAX_TRIES = 20

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: bool(value == other),
    "$ne": lambda value, other: bool(value != other),
    "$gt": lambda value, other: bool(value > other),
    "$gte": lambda value, other: bool(value >= other),
    "$lt": lambda value, other: bool(value < other),
    "$lte": lambda value, other: bool(value <= other),
}
Path = tuple[str, ...]


class QuaidStore(BaseStore):
    """A store for graph.compile(store=...). Each item is a page that people and `quaid query` can read.

    Deleting an item leaves only a heading on its page; `quaid forget` erases the page and its history.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Execute operations one after the other. Each operation is atomic."""
        return self._run(ops, Event())

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Execute operations on a thread. A cancelled batch stops before its next operation."""
        batch = list(ops)
        return await integrations.in_thread(lambda stop: self._run(batch, stop))

    def _run(self, ops: Iterable[Any], stop: Event) -> list[Any]:
        results: list[Any] = []
        for op in ops:
            if stop.is_set():
                raise Cancelled
            if isinstance(op, GetOp):
                page = self._page(_slug_of(op.namespace, op.key))
                results.append(_item(page) if page is not None and page.type == ITEM else None)
            elif isinstance(op, PutOp):
                self._put(op)
                results.append(None)
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            else:
                raise InvalidArgument(
                    name="ops", problem=f"holds {type(op).__name__}, which is not an operation"
                )
        return results

    def _page(self, slug: str) -> Any:
        try:
            page = self._memory.get(slug)
        except PageNotFound:
            return None
        return page if page.slug == slug else None  # `get` also follows redirects, titles and aliases

    def _put(self, op: PutOp) -> None:
        slug, value = _slug_of(op.namespace, op.key), None if op.value is None else dict(op.value)
        _check_integers(value)
        title = f"# {' '.join(op.key.split()) or 'item'}"
        text = title if value is None else "\n".join([title, "", *_lines(_texts(value, op.index))])
        for attempt in range(1, MAX_TRIES + 1):
            page = self._page(slug)
            if value is None and (page is None or page.type == DELETED):
                return
            try:
                self._memory.put(
                    slug,
                    compiled_truth=text.strip(),
                    frontmatter={"type": DELETED if value is None else ITEM, "value": value},
                    expected_version=page.version if page else 0,
                )
                return
            except VersionConflict:  # another writer has changed the page; read it again
                if attempt == MAX_TRIES:
                    raise

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        if op.query:
            answer = integrations.query(
                self._memory, op.query, type=ITEM, limit=MAX_RESULTS, depth="summary", token_budget=10**6
            )
            scores: dict[str, float | None] = {result.slug: result.score for result in answer.results}
        else:
            scores = dict.fromkeys(self._slugs())
        slugs = [slug for slug in scores if _place(slug)[0][: len(prefix)] == prefix]
        end = op.offset + op.limit
        if not op.filter:
            return list(self._items(slugs[op.offset : end], scores))
        items = [item for item in self._items(slugs, scores) if _matches(item.value, op.filter)]
        return items[op.offset : end]

    def _slugs(self) -> Iterator[str]:
        """Yield the slugs of all items, most recently changed first."""
        offset = 0
        while rows := self._memory.list(type=ITEM, limit=10_000, offset=offset).pages:
            yield from (row.slug for row in rows if row.slug.startswith(f"{FOLDER}/"))
            offset += len(rows)

    def _items(self, slugs: list[str], scores: dict[str, float | None]) -> Iterator[SearchItem]:
        for slug in slugs:
            page = self._page(slug)
            if page is not None and page.type == ITEM:
                yield _item(page, scores[slug])

    def _namespaces(self, op: ListNamespacesOp) -> list[Path]:
        places = {_place(slug)[0] for slug in self._slugs()}
        wanted = {
            place[: op.max_depth]
            for place in places
            if all(_fits(condition, place) for condition in op.match_conditions or ())
        }
        return sorted(wanted)[op.offset : op.offset + op.limit]


class QuaidRetriever(BaseRetriever):
    """Finds passages with `memory.query`, which takes `options` such as limit, type, wing, tag and token_budget."""

    memory: Any
    options: dict[str, Any] = {}  # noqa: RUF012 (a field of a model)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:  # noqa: ARG002
        return self._find(query)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:  # noqa: ARG002
        return await integrations.in_thread(lambda stop: self._find(query, stop))

    def _find(self, question: str, stop: Event | None = None) -> list[Document]:
        answer = integrations.query(self.memory, question, stop, **self.options)
        return [
            Document(
                page_content=result.text,
                id=f"{result.collection}::{result.slug}",
                metadata=integrations.metadata(result),
            )
            for result in answer.results
        ]


def _slug_of(namespace: Iterable[str], key: str) -> str:
    """Return the slug of an item. Different items have different slugs."""
    slug = "/".join([FOLDER, *map(_segment, namespace), _segment(key)])
    if len(slug) > 255:
        problem = (
            f"makes a slug of {len(slug)} characters with its namespace, and 255 are allowed; shorten it"
        )
        raise InvalidArgument(name="key", problem=problem)
    return slug


def _segment(name: str) -> str:
    """Encode a name as a segment of a slug. Bytes other than a-z, 0-9 and - become _ and two hexadecimal digits."""
    return (
        "".join(
            chr(byte) if chr(byte) in "abcdefghijklmnopqrstuvwxyz0123456789-" else f"_{byte:02x}"
            for byte in name.encode()
        )
        or "_"
    )


def _place(slug: str) -> tuple[Path, str]:
    """Return the namespace and the key of an item: the inverse of _slug_of()."""
    names = [
        re.sub(rb"_([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), segment.encode())
        .removesuffix(b"_" if segment == "_" else b"")
        .decode(errors="replace")
        for segment in slug.split("/")[1:]
    ]
    return tuple(names[:-1]), names[-1]


def _item(page: Any, score: float | None = None) -> SearchItem:
    namespace, key = _place(page.slug)
    value = page.frontmatter.get("value") or {}
    return SearchItem(namespace, key, value, page.created_at, page.updated_at, score)


def _check_integers(value: Any) -> None:
    """Raise InvalidArgument for an integer of more than 64 bits, which front matter cannot store."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)
    elif isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InvalidArgument(
            name="value", problem=f"holds {value}, and integers may have 64 bits; send it as text"
        )


def _texts(value: dict[str, Any], index: Any) -> Iterator[str]:
    """Yield the searchable texts of an item: those at the paths in `index`, or all; none if `index` is False."""
    if index is False:
        return
    for path in index or ():
        yield from get_text_at_path(value, tokenize_path(path))
    if not index:
        yield from _leaves("", value)


def _leaves(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(str(key), part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(name, part)
    elif value is not None and value != "":
        yield f"{name}: {value}"


def _lines(texts: Iterable[str]) -> list[str]:
    """Return texts as Markdown list items.

    Continuation lines are indented, so that none is parsed as the line or heading that begins the page's timeline.
    """
    return ["- " + "\n  ".join(text.splitlines()) for text in texts]


def _matches(value: Any, wanted: Any) -> bool:
    """Return True if a value matches a filter. Keys of the filter that begin with $ are comparison operators."""
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    if not any(key.startswith("$") for key in wanted):
        return isinstance(value, dict) and all(_matches(value.get(key), part) for key, part in wanted.items())
    for sign, other in wanted.items():
        if sign not in _COMPARISONS:
            raise InvalidArgument(name="filter", problem=f"{sign!r} is not one of {', '.join(_COMPARISONS)}")
        try:
            if not _COMPARISONS[sign](value, other):
                return False
        except TypeError:  # not comparable, such as a string and a number
            return False
    return True


def _fits(condition: MatchCondition, place: Path) -> bool:
    length = len(condition.path)
    if len(place) < length:
        return False
    part = place[:length] if condition.match_type == "prefix" else place[len(place) - length :]
    return all(pattern in ("*", name) for pattern, name in zip(condition.path, part, strict=True))

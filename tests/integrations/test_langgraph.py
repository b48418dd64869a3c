"""The store of LangGraph, compared with the store that LangGraph keeps in memory, and the retriever of LangChain."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.integrations import frameworks

import quaid
from quaid import errors
from quaid.app import Brain
from quaid.config import Settings
from quaid.model import slug as slugs

frameworks.require("langgraph")

from hypothesis import given, strategies  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402

from quaid.integrations.langgraph import QuaidRetriever, QuaidStore, _place, _slug_of  # noqa: E402

VALUES: list[dict[str, Any]] = [
    {"text": "sardines", "rating": 4, "tags": ["a", "b"], "nested": {"deep": [1, None, 2.5, {"x": True}]}},
    {"text": "---\n\n# not a title\n---\n[[link]]", "date": "2024-01-01", "yes": "no", "null": "~"},
    {"": "", " ": "\n", "1e3": "0x10", "漢": "é"},
    {"rating": 5, "kind": "x"},
    {},
]
PLACES = [("users", "ines"), ("users", "ines", "deep"), ("Users", "ines"), ("docs", "v1"), ("a b", "ü/_")]


def parts(item: Any) -> Any:
    return None if item is None else (item.namespace, item.key, item.value)


def fill(store: Any) -> None:
    for number, place in enumerate(PLACES):
        for at, value in enumerate(VALUES):
            store.put(place, f"k{at}", {**value, "number": number})
    store.put(PLACES[0], "k0", {"text": "changed", "number": 0})
    store.delete(PLACES[0], "k1")
    store.delete(PLACES[0], "never")
    store.delete(PLACES[3], "k2")
    store.put(PLACES[3], "k2", {"again": 1})


def test_get_search_and_namespaces_agree_with_the_store_of_langgraph(memory: quaid.Memory) -> None:
    ours, theirs = QuaidStore(memory), InMemoryStore()
    for store in (ours, theirs):
        fill(store)
    for place in PLACES:
        for at in range(len(VALUES)):
            assert parts(ours.get(place, f"k{at}")) == parts(theirs.get(place, f"k{at}"))
    filters: list[Any] = [
        *(
            None,
            {"rating": 4},
            {"rating": {"$gt": 4}},
            {"rating": {"$gte": 4, "$lt": 5}},
            {"kind": {"$ne": "x"}},
        ),
        *({"nested": {"deep": [1, None, 2.5, {"x": True}]}}, {"number": {"$lte": 1}}, {"kind": {"$eq": "x"}}),
    ]
    for prefix in ((), ("users",), ("users", "ines"), ("Users",), ("nowhere",)):
        for wanted in filters:
            if wanted and any("$g" in str(part) or "$l" in str(part) for part in wanted.values()):
                wanted = {**wanted, "rating": wanted.get("rating", {"$gte": 0})}
                expected = [item for item in theirs.search(prefix, limit=100) if "rating" in item.value]
                expected = [item for item in expected if _fits_rating(item.value, wanted)]
            else:
                expected = theirs.search(prefix, filter=wanted, limit=100)
            found = ours.search(prefix, filter=wanted, limit=100)
            assert sorted(map(str, map(parts, found))) == sorted(map(str, map(parts, expected))), (
                prefix,
                wanted,
            )
    for options in (
        {},
        {"prefix": ("users",)},
        {"suffix": ("ines",)},
        {"prefix": ("*", "ines")},
        {"max_depth": 1},
    ):
        assert ours.list_namespaces(**options) == theirs.list_namespaces(**options), options
    assert ours.list_namespaces(limit=2, offset=1) == theirs.list_namespaces(limit=2, offset=1)
    assert len(ours.search((), limit=3)) == 3
    both = ours.search((), limit=3) + ours.search((), limit=100, offset=3)
    assert list(map(parts, both)) == list(map(parts, ours.search((), limit=100)))


def _fits_rating(value: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Return True for a value that fits a filter; the store of LangGraph fails if a number is missing."""
    signs = {"$gt": "__gt__", "$gte": "__ge__", "$lt": "__lt__", "$lte": "__le__"}
    return all(
        bool(getattr(value[key], signs[sign])(other))
        for key, comparisons in wanted.items()
        for sign, other in comparisons.items()
    )


@given(
    strategies.lists(
        strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=6), min_size=1, max_size=3
    )
)
def test_every_item_has_its_own_slug(names: list[str]) -> None:
    assert _place(_slug_of(names[:-1], names[-1])) == (tuple(names[:-1]), names[-1])
    slugs.check(_slug_of(names[:-1], names[-1]))


def test_questions_find_items_by_their_texts(memory: quaid.Memory) -> None:
    store = QuaidStore(memory)
    store.put(
        ("users", "ines"), "diet", {"text": "She avoids sardines.", "secret": "marzipan"}, index=["text"]
    )
    store.put(("users", "tomas"), "music", {"text": "He plays the cello."})
    store.put(("users", "tomas"), "hidden", {"text": "He hides a trombone."}, index=False)
    found = store.search(("users",), query="sardines")
    assert [(item.key, item.value["secret"]) for item in found] == [("diet", "marzipan")]
    assert found[0].score is not None
    assert found[0].score > 0
    assert store.search(("users", "tomas"), query="sardines") == []
    assert store.search(("users",), query="marzipan") == []
    assert store.search(("users",), query="trombone") == []
    assert memory.query("who plays the cello?").results[0].slug == "store/users/tomas/music"
    item = store.get(("users", "tomas"), "music")
    assert item is not None
    assert item.created_at <= item.updated_at


def test_batches_run_in_order_with_and_without_a_loop(memory: quaid.Memory) -> None:
    store = QuaidStore(memory)
    ops = [
        PutOp(("a",), "k", {"n": 1}),
        GetOp(("a",), "k"),
        SearchOp(("a",)),
        ListNamespacesOp(),
        PutOp(("a",), "k", None),
        GetOp(("a",), "k"),
    ]
    for results in (store.batch(ops), asyncio.run(store.abatch(ops))):
        assert [results[0], parts(results[1]), len(results[2]), results[3], results[4], results[5]] == [
            *(None, (("a",), "k", {"n": 1}), 1, [("a",)]),
            *(None, None),
        ]
    with pytest.raises(errors.InvalidArgument, match="not an operation"):
        store.batch(["get"])

    async def work() -> Any:
        await store.aput(("b",), "k", {"n": 2})
        return await store.aget(("b",), "k"), await store.asearch(("b",)), await store.alist_namespaces()

    item, found, namespaces = asyncio.run(work())
    assert (parts(item), len(found), namespaces) == ((("b",), "k", {"n": 2}), 1, [("b",)])


def test_a_cancelled_batch_leaves_the_loop_free_and_stops_before_its_next_operation(
    memory: quaid.Memory, settings: Settings
) -> None:
    store = QuaidStore(memory)

    async def work() -> None:
        with Brain(settings) as other, other.db.lock.held():
            task = asyncio.create_task(store.abatch([PutOp(("a",), f"k{n}", {"n": n}) for n in range(20)]))
            await asyncio.sleep(0.2)  # the first operation waits for the lock
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(work())  # waits for the threads
    assert memory.list().total <= 1


def test_bad_items_are_refused(memory: quaid.Memory) -> None:
    store = QuaidStore(memory)
    for value in (
        {"n": 2**64},
        {"n": [{"m": -(2**70)}]},
        {"n": float("nan")},
        {"t": "a\0b"},
        {"t": "\ud800"},
    ):
        with pytest.raises(errors.QuaidError):
            store.put(("a",), "k", value)
    with pytest.raises(errors.InvalidArgument, match="shorten it"):
        store.put(("a",), "k" * 300, {})
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(errors.InvalidArgument, match=r"\$like"):
        store.search((), filter={"n": {"$like": 1}})
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=1)
    with quaid.open(memory.location, read_only=True) as reader, pytest.raises(errors.NotAllowed):
        QuaidStore(reader).put(("a",), "k", {"n": 2})
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"n": 1}


def test_writers_at_the_same_time_all_succeed(memory: quaid.Memory) -> None:
    store = QuaidStore(memory)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: store.put(("a",), f"k{n % 2}", {"n": n}), range(16)))
    assert {item.key for item in store.search(("a",))} == {"k0", "k1"}
    assert memory.get("store/a/k0").version + memory.get("store/a/k1").version == 16


def test_a_deleted_item_can_be_read_in_the_history_and_undone(memory: quaid.Memory) -> None:
    store = QuaidStore(memory)
    store.put(("a",), "k", {"text": "sardines"})
    store.delete(("a",), "k")
    assert (store.get(("a",), "k"), store.search((), query="sardines"), store.list_namespaces()) == (
        None,
        [],
        [],
    )
    page = memory.get("store/a/k")
    assert (page.compiled_truth, page.frontmatter) == ("# k", {"type": "deleted_store_item"})
    with quaid.open(memory.location) as owner:
        owner.revert("store/a/k", to=1)
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"text": "sardines"}


def test_the_retriever_returns_documents_with_their_pages(memory: quaid.Memory) -> None:
    memory.put("people/ines", "# Ines\n\nInes restores tidal batteries.")
    memory.put("places/oslo", "# Oslo\n\nBatteries are made in Oslo, too.")
    retriever = QuaidRetriever(memory=memory, options={"limit": 1, "wing": "people"})
    chain = retriever | RunnableLambda(
        lambda documents: [document.metadata["slug"] for document in documents]
    )
    assert chain.invoke("tidal batteries") == ["people/ines"]
    assert asyncio.run(chain.ainvoke("tidal batteries")) == ["people/ines"]
    document = retriever.invoke("tidal batteries " * 1000)[0]
    assert "restores tidal batteries" in document.page_content
    assert (document.id, document.metadata["origin"]) == ("default::people/ines", "page")

"""The dashboard: how long the server takes for each page, at 10,000 linked and dated pages with vectors.

With --browser, also the graph of these pages in Chromium: CPU for each frame while it is moved and zoomed.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from bench.search import percentile, vocabulary
from bench.table import show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.model.page import Page, build_page
from quaid.operations import dispatch, service
from quaid.storage import embedding_queue, page_edits, vectors
from quaid.web import server as web_app
from quaid.web.pages import base

PAGES, QUICK_PAGES = 10_000, 1_000
RUNS, TRIES = 30, 3
"""Of each address the best try counts: others use the same machine."""
WINGS = ("people", "companies", "projects", "concepts", "meetings")
PAGE_MS, SEARCH_MS, FIRST_LOAD_KB = 50, 80, 150
MODEL, DIMENSIONS = "bge-small-en-v1.5", 384
NOW = "2026-04-25T12:00:00Z"


def main() -> None:
    count = QUICK_PAGES if "--quick" in sys.argv else PAGES
    with made_up_memory(count) as settings:
        rows = asyncio.run(measured(settings, count))
        if "--browser" in sys.argv:
            rows += graph_in_browser(settings)
    size = sum(
        len(asset.data)
        for name, asset in base.static_assets().items()
        if name.endswith((".css", ".js", ".svg"))
    )
    rows.append(
        ("all of static, not packed", "", "", f"{size / 1024:.0f} KB", verdict(size / 1024, FIRST_LOAD_KB))
    )
    show(f"Dashboard, {count:,} pages", rows, ("what", "p50, wall", "p50, CPU", "p95, CPU", "target"))


@contextmanager
def made_up_memory(count: int) -> Iterator[Settings]:
    """Provide the settings of a memory with so many made-up pages, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            db_path=os.path.join(folder, "memory.db"),
            home=os.path.join(folder, ".quaid"),
            cwd=folder,
            environ={"QUAID_BACKGROUND_EMBEDDING": "off", "HOME": folder},
        )
        fill(settings, list(made_up(count)))
        yield settings


def made_up(count: int) -> Iterator[Page]:
    rng = random.Random(8)
    words = vocabulary(rng)[:20_000]
    weights = [1 / (place + 8) for place in range(len(words))]
    slugs = [f"{WINGS[number % len(WINGS)]}/page-{number}" for number in range(count)]
    for number, slug in enumerate(slugs):
        text = rng.choices(words, weights, k=180)
        ties = " ".join(f"[[{slugs[int(rng.random() ** 2 * count)]}]]" for _ in range(4))
        truth = (
            f"# Page {number}\n\n> {' '.join(text[:14])}.\n\n## State\n\n{' '.join(text[14:120])} {ties}\n"
        )
        line = "\n".join(
            f"- **202{rng.randint(2, 6)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}** | call — "
            + " ".join(rng.choices(words, weights, k=9))
            for _ in range(4)
        )
        yield build_page(slug, {"tags": [words[number % 50]]}, truth, f"## Timeline\n\n{line}\n")


def uuid_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def fill(settings: Settings, made: list[Page]) -> None:
    """The memory, with vectors that mean nothing: looking through them costs the same."""
    import numpy as np

    rng = np.random.default_rng(8)
    with Brain(settings) as brain:
        db = brain.create(settings.db_path)
        for at in range(0, len(made), 1_000):

            def work(tx: object, at: int = at) -> None:
                for number, page in enumerate(made[at : at + 1_000], at):
                    page_edits.save(tx, page, uuid=uuid_of(number), now=NOW, expected_version=0)  # type: ignore[arg-type]

            db.write(work)
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
        dispatch.call(
            brain, dispatch.find_command("remember"), {"content": "Sarah prefers email to phone"}, "owner"
        )
        dispatch.call(
            brain, dispatch.find_command("recall"), {"query": "sarah"}, "owner"
        )  # has everything cut as configured
        db.write(lambda tx: vectors.register_model(tx, MODEL, DIMENSIONS, NOW))
        db.write(lambda tx: vectors.activate_model(tx, MODEL))
        queue = embedding_queue.ChunkQueue(db, MODEL)
        wanted = queue.missing()
        for at in range(0, len(wanted), 2_000):
            batch = queue.texts(wanted[at : at + 2_000])
            raw = rng.standard_normal((len(batch), DIMENSIONS)).astype(np.float32)
            raw /= np.linalg.norm(raw, axis=1, keepdims=True)
            found = [(each.content_hash, row.tobytes()) for each, row in zip(batch, raw, strict=True)]
            db.write(lambda tx, found=found: vectors.keep_chunk_vectors(tx, MODEL, found, NOW))  # type: ignore[misc]


async def measured(settings: Settings, count: int) -> list[tuple[str, ...]]:
    app = web_app.build_app(settings)
    rng = random.Random(9)
    texts = [
        sorted({word for word in each.truth.split() if word.isalpha() and len(word) > 3})
        for each in made_up(50)
    ]

    def slug() -> str:
        number = rng.randrange(count)
        return f"{WINGS[number % len(WINGS)]}/page-{number}"

    def words(count: int) -> list[str]:
        """Words that stand together in a page, as somebody who looks for it would type them."""
        return rng.sample(rng.choice(texts), count)

    asked: dict[str, Callable[[], str]] = {
        "today": lambda: "/",
        "page": lambda: f"/page/{slug()}",
        "edit": lambda: f"/page/{slug()}/edit",
        "search as one types": lambda: "/ui/search?q=" + quote(" ".join(words(2))[:-1]),
        "search with Enter: three words, and a gap noted": lambda: "/search?q=" + quote(" ".join(words(3))),
        "notebook": lambda: "/notebook",
        "graph": lambda: "/graph",
        "graph around a page": lambda: f"/graph?slug={slug()}",
        "graph around a page, 2,000 nodes for the script": lambda: f"/ui/graph?slug={slug()}&depth=4",
        "graph, whole memory, data": lambda: "/ui/graph",
        "timeline": lambda: "/timeline",
        "review": lambda: "/review",
        "settings": lambda: "/settings",
    }
    rows: list[tuple[str, ...]] = []
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url=f"http://{service.web_host_name(settings)}:{web_app.DEFAULT_PORT}",
        ) as client,
    ):
        await client.post(
            "/login", data={"code": service.login_code(settings, web_app.DEFAULT_PORT, time.time())}
        )
        for name, address in asked.items():
            wall: list[float] = []
            cpu: list[float] = []
            for turn in range(RUNS + 3):
                path = address()
                tries = [await timed(client, path) for _ in range(TRIES)]
                if turn >= 3:  # the first ones load templates, the model, and the codes of the vectors
                    wall.append(min(each for each, _ in tries))
                    cpu.append(min(each for _, each in tries))
            wall.sort()
            cpu.sort()
            last = percentile(cpu, 95)
            target = (
                ""
                if "script" in name or "Enter" in name
                else verdict(last, SEARCH_MS if "search" in name else PAGE_MS)
            )
            figures = (percentile(wall, 50), percentile(cpu, 50), last)
            rows.append((name, *(f"{figure:.0f} ms" for figure in figures), target))
    return rows


MOVE = """(kind) => new Promise((done) => {
  const canvas = document.querySelector('canvas');
  const { left, top } = canvas.getBoundingClientRect();
  const at = (x, y) => ({ pointerId: 1, clientX: left + x, clientY: top + y, cancelable: true });
  const point = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, at(x, y)));
  const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent('wheel', { ...at(300, 300), deltaY }));
  const times = [];
  canvas.setPointerCapture = () => 0;
  if (kind === 'moved') point('pointerdown', 5, 5);
  const step = (now) => {
    times.push(now);
    const n = times.length;
    if (kind === 'moved') point('pointermove', 5 + 150 * Math.sin(n / 15), 5 + 90 * Math.sin(n / 11));
    else wheel(n % 80 < 40 ? -30 : 30);
    if (n < 161) return requestAnimationFrame(step);
    if (kind === 'moved') point('pointerup', 5, 5);
    done(times.slice(1).map((time, i) => time - times[i]));
  };
  requestAnimationFrame(step);
})"""
FRAME_MS = 33


def graph_in_browser(settings: Settings) -> list[tuple[str, ...]]:
    """Move and zoom the graph of the whole memory in Chromium, for 160 frames each."""
    from playwright.sync_api import sync_playwright
    from tests.web.dashboard import CHROMIUM, FLAGS, opened, served

    rows: list[tuple[str, ...]] = []
    with served(settings) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        visit, devtools = opened(browser, settings, address), browser.new_browser_cdp_session()
        before = spent(devtools)
        page = visit.go("/graph")
        page.wait_for_selector(".drawing[data-first]")
        cpu = (spent(devtools) - before) * 1000
        first = page.locator(".drawing").get_attribute("data-first") or ""
        rows.append(("graph in Chromium: first picture", f"{first} ms", f"{cpu:.0f} ms", "", ""))
        page.wait_for_selector(".drawing[data-resting]")
        for kind in ("moved", "zoomed"):
            before = spent(devtools)
            times = sorted(page.evaluate(MOVE, kind))
            cpu = (spent(devtools) - before) * 1000 / len(times)
            wall = f"{percentile(times, 50):.0f} ms"
            rows.append(
                (f"graph in Chromium: frame, {kind}", wall, f"{cpu:.0f} ms", "", verdict(cpu, FRAME_MS))
            )
        browser.close()
    return rows


def spent(devtools: Any) -> float:
    """Return the CPU seconds of all processes and threads of the browser, the worker of the graph included."""
    processes = devtools.send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(float(process["cpuTime"]) for process in processes)


async def timed(client: httpx.AsyncClient, path: str) -> tuple[float, float]:
    """Milliseconds on the clock, and of CPU in all threads."""
    began, spent = time.perf_counter(), time.process_time()
    answer = await client.get(path)
    assert answer.status_code == 200, (path, answer.text[:300])
    return (time.perf_counter() - began) * 1000, (time.process_time() - spent) * 1000


if __name__ == "__main__":
    main()

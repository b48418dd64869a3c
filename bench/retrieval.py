"""How well questions find their answers: words alone, meaning alone, each way of merging, and the default.

    python -m bench.retrieval [--quick] [--beir DIR]... [--chats DIR]... [--longmemeval FILE]... [--write]

The options name public data in its own format, so that anybody can measure data on which nothing was tuned: a
folder with corpus.jsonl, queries.jsonl and qrels/test.tsv, a folder of chats as in BEAM (bench.corpora.chats
describes it), or a LongMemEval file. With one of them, only that data is measured and no figure is compared.
--data takes a folder in BEIR's format or a LongMemEval file and measures it beside the rest.

Everything goes through the real store, the real model and the real pipeline; vectors are kept under
.cache/bench, so that a second run is fast. --quick takes about 80 seconds of CPU without them and is a step of
CI. The figures are compared with bench/baseline.json: one that dropped by more than 2 % makes the exit status
1. --write keeps the present ones. LoCoMo 1-5 were used to choose the weights, 6-10 were not.
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterator

from bench import baseline, reality
from bench.asking import (
    HEAD,
    Figures,
    Judged,
    ask_all,
    figures,
    memory,
    quality,
    row,
    ways,
)
from bench.corpora import (
    CUES,
    STANDING,
    Corpus,
    DataError,
    beir,
    chats,
    data_file,
    locomo,
    long_mem_eval,
    planted,
)
from bench.table import show, verdict
from bench.vectors import Kept

ADVERSARIAL = "5"
CATEGORIES = {"1": "multi-hop", "2": "temporal", "3": "open domain", "4": "single-hop", "5": "adversarial"}


def main() -> None:
    try:
        _measure()
    except DataError as problem:
        print(f"bench.retrieval: {problem}", file=sys.stderr)
        sys.exit(2)


def _measure() -> None:
    quick = "--quick" in sys.argv
    public = [(option, path) for option in PUBLIC for path in _named(option)]
    for option, path in [*public, *(("--data", path) for path in _named("--data"))]:
        if path.startswith("--") or not path:
            raise DataError(f"{option} needs a path")
        if not os.path.exists(path):
            raise DataError(f"{option} {path}: there is no such file or folder")
    if public:
        for option, path in public:
            given(path, quick=quick, corpora=PUBLIC[option])
        return
    found = conversations(quick=quick)
    found.update(reality.figures(quick=quick))
    for path in _named("--data"):
        found.update(given(path, quick=quick))
    if not baseline.compare(found, quick=quick, write="--write" in sys.argv):
        sys.exit(1)


def _named(option: str) -> list[str]:
    """Return the words after each occurrence of an option, and "" after the last word."""
    return [word for before, word in zip(sys.argv, [*sys.argv[1:], ""], strict=True) if before == option]


# LoCoMo


def conversations(*, quick: bool) -> Figures:
    path = data_file("locomo10.json", "retrieval")
    if path is None:
        return {}
    embedder = Kept.open()
    levels: dict[str, list[list[Judged]]] = {"turns": [], "sessions": [], "sessions in windows": []}
    found = without_model(path)
    remarks: dict[str, list[Judged]] = {CUES: [], STANDING: []}
    for number, (turns, sessions) in enumerate(locomo(path)):
        if quick and number >= 2:
            break
        with memory(turns, embedder) as db:
            levels["turns"].append(ask_all(turns, db, embedder))
            levels["sessions"].append(ask_all(sessions, db, embedder))
        with memory(sessions._replace(cut="section"), embedder) as db:
            levels["sessions in windows"].append(ask_all(sessions, db, embedder))
        if number < 5:
            for file, judged in remarks.items():
                corpus = planted(turns, number, file)
                with memory(corpus, embedder) as db:
                    judged += ask_all(corpus, db, embedder)
        print(f"  LoCoMo {number + 1} done", file=sys.stderr, flush=True)
    for level, conversations_ in levels.items():
        found.update(locomo_tables(level, conversations_))
    for name, judged in zip(("oblique cues", "standing instructions"), remarks.values(), strict=True):
        show(f"{name.capitalize()} in LoCoMo 1-5, {len(judged)} questions", ways(judged), HEAD)
        found.update(figures(name, judged, "fraction10"))
    return found


def without_model(path: str) -> Figures:
    """The first five conversations by words and dates alone, as on a machine without a model; seconds of CPU."""
    levels: dict[str, list[Judged]] = {"turns": [], "sessions": []}
    for turns, sessions in itertools.islice(locomo(path), 5):
        with memory(turns, None) as db:
            levels["turns"] += ask_all(turns, db, None)
            levels["sessions"] += ask_all(sessions, db, None)
    found: Figures = {}
    for level, judged in levels.items():
        name = f"locomo {level} 1-5 without a model"
        rows = [row("words", judged, "words"), row("sum (default)", judged)]
        show(f"{name}, {len(judged):,} questions", rows, HEAD)
        found[f"{name} share@10, words"] = quality(judged, "words").fraction10
        found[f"{name} share@10"] = quality(judged).fraction10
    return found


def locomo_tables(level: str, judged: list[list[Judged]]) -> Figures:
    every = [each for conversation in judged for each in conversation]
    show(f"LoCoMo, {level}, {len(every):,} questions, adversarial included", ways(every), HEAD)
    rows = []
    parts = {"1-5 (tuned on)": judged[:5], "6-10 (held out)": judged[5:]}
    for name, part in parts.items():
        some = [each for conversation in part for each in conversation]
        rows += [row(f"conversations {name}", some)] if some else []
    rows.append(row("all but adversarial", [each for each in every if each.ask.category != ADVERSARIAL]))
    for key, name in CATEGORIES.items():
        some = [each for each in every if each.ask.category == key]
        rows += [row(f"{name} ({len(some)})", some)] if some else []
    show(f"LoCoMo, {level}, by the default", rows, ("part", *HEAD[1:]))
    unseen = [each for conversation in judged[5:] for each in conversation]
    found = figures(f"locomo {level}", every, "fraction10", "ndcg10")
    if unseen:
        found[f"locomo {level} 6-10 share@10"] = quality(unseen).fraction10
    return found


# Other data


def _one_folder(path: str) -> Iterator[Corpus]:
    yield beir(path)


Reader = Callable[[str], Iterator[Corpus]]
PUBLIC: dict[str, Reader] = {"--beir": _one_folder, "--chats": chats, "--longmemeval": long_mem_eval}


def given(path: str, *, quick: bool, corpora: Reader | None = None) -> Figures:
    """Public data; without a reader, a folder in BEIR's format or a LongMemEval file."""
    read = corpora or (_one_folder if os.path.isdir(path) else long_mem_eval)
    embedder = Kept.open()
    judged: list[Judged] = []
    for number, corpus in enumerate(read(path)):
        if quick and number >= 20:
            break
        with memory(corpus, embedder) as db:
            judged += ask_all(corpus, db, embedder)
    if not judged:
        raise DataError(f"{path} has no question with evidence; is it in the format of this option?")
    name = os.path.basename(os.path.normpath(path))
    show(f"{name}, {len(judged):,} questions", ways(judged), HEAD)
    by_category: dict[str, list[Judged]] = {}
    for each in judged:
        by_category.setdefault(each.ask.category, []).append(each)
    if len(by_category) > 1:
        rows = [row(f"{key} ({len(some)})", some) for key, some in sorted(by_category.items())]
        show(f"{name}, by the default", rows, ("part", *HEAD[1:]))
    best_single = max(quality(judged, way).ndcg10 for way in ("words", "meaning"))
    gain = quality(judged).ndcg10 - best_single
    rows = [
        ("default above the better of words and meaning", f"{gain:+.4f}", verdict(gain, 0.02, at_least=True))
    ]
    show(f"{name}, nDCG@10", rows, ("figure", "measured", "target"))
    return figures(name, judged, *(("fraction10",) if read is chats else ()), "ndcg10")


if __name__ == "__main__":
    main()

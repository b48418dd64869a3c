"""`python -m bench [NAME ...] [--quick] [--page]`: run all benchmarks or the named ones; --page writes them down.

Options of `retrieval`, each of which measures only the named data:

  --beir DIR           a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv
  --chats DIR          a folder of chats, each with chat.json and probing_questions.json
  --longmemeval FILE   a LongMemEval file
"""

import importlib
import sys
import time
import traceback
from pathlib import Path

from bench import page, table

NAMES = (
    "start",
    "search",
    "retrieval",
    "strength",
    "languages",
    "nearest",
    "embedding",
    "importing",
    "sync",
    "merge",
    "ingest",
    "documents",
    "mcp",
    "agents",
    "current",
    "links",
    "truth",
    "poisoning",
    "notebook",
    "http",
    "dashboard",
    "library",
    "dream",
    "golden",
    "kb",
    "secrets",
    "encryption",
    "opposing",
    "scale",
    "hub",
    "spaces",
    "shape",
    "peers",
)

WITH_VALUE = ("--data", "--beir", "--chats", "--longmemeval", "--guide")
"""Options that are followed by a path."""


def main() -> int:
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print((__doc__ or "").rstrip(), "Benchmarks: " + ", ".join(NAMES), sep="\n\n")
        return 0
    for option, value in zip(sys.argv[1:], [*sys.argv[2:], ""], strict=True):
        if option in WITH_VALUE and (not value or value.startswith("--")):
            print(f"bench: {option} needs a path", file=sys.stderr)
            return 2
    given = [word for before, word in zip(sys.argv, sys.argv[1:], strict=False) if before in WITH_VALUE]
    chosen = [word for word in sys.argv[1:] if not word.startswith("-") and word not in given] or list(NAMES)
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if strange := _unknown_options(chosen):
        print(f"bench: there is no option {strange[0]}; see --help", file=sys.stderr)
        return 2
    failed, parts = [], []
    for name in chosen:
        started = time.monotonic()
        table.SHOWN.clear()
        table.CURVES.clear()
        try:
            importlib.import_module(f"bench.{name}").main()
        except SystemExit as ended:
            if ended.code == 2:  # a wrong option or file, already reported
                return 2
            if ended.code:  # the others are run all the same
                failed.append(f"{name} ({ended.code})")
        except Exception as problem:  # half a part is none: what the page had stays
            traceback.print_exc()
            failed.append(f"{name} ({type(problem).__name__})")
            table.SHOWN.clear()
        seconds = time.monotonic() - started
        print(f"({name}: {seconds:.0f} s)\n", flush=True)
        if table.SHOWN:
            parts.append(
                page.Part(name, list(table.SHOWN), list(table.CURVES), seconds, "--quick" in sys.argv)
            )
        if "--page" in sys.argv:  # after each, so that a run that is stopped has not run for nothing
            page.write(parts, NAMES)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _unknown_options(names: list[str]) -> list[str]:
    """Return the given options that no source file of these benchmarks has as a literal."""
    files = [Path(__file__).with_name(f"{name}.py") for name in ("__main__", *names)]
    source = "".join(file.read_text("utf-8") for file in files)
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    return [option for option in options if f'"{option.partition("=")[0]}' not in source]


if __name__ == "__main__":
    sys.exit(main())

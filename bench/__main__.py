"""`python -m bench [NAME ...] [--quick]`: run every benchmark, or the named ones."""

import importlib
import sys
import time

NAMES = (
    "start",
    "search",
    "retrieval",
    "nearest",
    "embedding",
    "importing",
    "sync",
    "ingest",
    "mcp",
    "links",
    "truth",
    "notebook",
    "http",
    "dashboard",
    "kb",
    "secrets",
    "opposing",
)


def main() -> int:
    given = [word for before, word in zip(sys.argv, sys.argv[1:], strict=False) if before == "--data"]
    chosen = [word for word in sys.argv[1:] if not word.startswith("-") and word not in given] or list(NAMES)
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    failed = []
    for name in chosen:
        started = time.monotonic()
        try:
            importlib.import_module(f"bench.{name}").main()
        except SystemExit as ended:
            if ended.code:  # the others are run all the same
                failed.append(f"{name} ({ended.code})")
        print(f"({name}: {time.monotonic() - started:.0f} s)\n", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

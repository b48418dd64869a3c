"""The first thing that the one file runs: it is told by which name it was called, and where it lies."""

import sys

called, *sys.argv = sys.argv[1:]  # with -I, the folder of this script is not on the path

from quaid.surfaces.cli import knowledge_base, main  # noqa: E402

sys.exit(knowledge_base() if called.startswith("ai-kb") else main())

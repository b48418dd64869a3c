"""The first thing that the one file runs: it is told by which name it was called, and where it lies."""

import sys

called, *sys.argv = sys.argv[1:]  # with -I, the folder of this script is not on the path

if called.startswith("ai-kb"):
    from quaid.__main__ import ai_kb_main as main
else:
    from quaid.__main__ import main

sys.exit(main())

"""Run the command line interface with `python -m quaid`."""

import sys

from quaid.cli.main import main

sys.exit(main())

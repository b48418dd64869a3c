"""`python -m quaid` is `quaid`."""

import sys

from quaid.cli.main import main

sys.exit(main())

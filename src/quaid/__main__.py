"""`python -m quaid` is `quaid`."""

import sys

from quaid.surfaces.cli import main

sys.exit(main())

"""Figures, each measured in one run on one machine: ratios travel, absolute times do not."""

import os

# As a brain does before it loads numpy, and before any part does: what its threads burn while they wait is no work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

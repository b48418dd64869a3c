import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.delivery.stub_archive import COMPILER, build


@pytest.fixture(scope="session")
def program() -> Iterator[Path]:
    """A launcher with a small box, where other users can run it too."""
    if sys.platform != "linux" or shutil.which(COMPILER) is None:
        pytest.skip("the one executable is for Linux, and made with a C compiler")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield build(Path(name))

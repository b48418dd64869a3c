"""Skips a module of tests whose framework is not installed."""

from typing import Any

import pytest


def require(package: str) -> Any:
    """Return an imported package, or skip the tests of the module."""
    reason = (
        f"the package {package} is not installed; `sh .ci/integrations` installs it into .cache/integrations"
    )
    return pytest.importorskip(package, reason=reason)

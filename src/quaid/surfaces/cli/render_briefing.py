"""What `ops.briefing` returns, as text for people."""

from collections.abc import Callable
from typing import Any

RENDERERS: dict[str, Callable[[Any], str]] = {}

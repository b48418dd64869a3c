"""Where an installed package lies, without importing it or anything that knows about packages."""

import os
import sys


def on_path(package: str, *inside: str) -> str | None:
    """The folder of a package, or a place inside it, if it is there."""
    for entry in sys.path:
        place = os.path.join(entry or ".", package, *inside)
        if os.path.exists(place):
            return place
    from importlib.util import find_spec  # twelve milliseconds, so only for unusual installations

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    for entry in (spec.submodule_search_locations or ()) if spec else ():
        place = os.path.join(entry, *inside)
        if os.path.exists(place):
            return place
    return None

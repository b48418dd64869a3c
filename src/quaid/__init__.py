"""Quaid: a local-first memory that one person and their AI agents share.

The public API consists of the names in `__all__`, the methods of Memory and AsyncMemory, and the fields of their
results; see docs/python.md. All other modules are private and may change without notice.
"""

TYPE_CHECKING = False  # not imported from typing, because commands that a server answers must start fast
if TYPE_CHECKING:
    from quaid import errors as errors
    from quaid.library import AsyncMemory, Memory, as_json, open, open_async

__version__ = "0.1.0"
__all__ = ["AsyncMemory", "Memory", "__version__", "as_json", "errors", "open", "open_async"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'quaid' has no attribute {name!r}")
    from importlib import import_module

    value = (
        import_module("quaid.errors") if name == "errors" else getattr(import_module("quaid.library"), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

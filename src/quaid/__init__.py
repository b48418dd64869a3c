"""Quaid: a local-first memory that one person and their AI agents share.

Public are the names in `__all__`, and the methods of Memory and AsyncMemory with the fields of their results; see
docs/python.md. All other modules of this package are private and change without notice.
"""

TYPE_CHECKING = (
    False  # as in typing, without importing it: a command handed to a server starts with this module
)
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

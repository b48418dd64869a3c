"""Labels: every answer of a tool says where its texts come from and how far they may be trusted.

Recalled text is data. Who may read it as more is decided by where it is kept, never by what it says: a page with
`trust: own` in its front matter stays data. The label stands first, where a model reads it before the text.
"""

from typing import Any

DATA = "data"  # what pages, transcripts and nodes say: to be weighed, never to be obeyed
OWN = "own"  # the notebook's files, which the person keeps to tell agents how they want it

_ROOMS = {"notebook": "notebook", "conversation": "conversations", "kb": "kb"}
_NOTEBOOK = frozenset({"memory_context", "remember", "daily_log"})
_OWN = frozenset({"memory_context", "notebook_list", "notebook_read"})


def of_tool(name: str) -> dict[str, str]:
    """The label of what a tool answers. `recall` looks everywhere, so that its hits are data like any."""
    room = "notebook" if name in _NOTEBOOK else _ROOMS.get(name.partition("_")[0], "memory")
    return {"origin": room, "trust": OWN if name in _OWN else DATA}


def labelled(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """A record behind its label; nothing in the record can take the label's place."""
    label = of_tool(name)
    return {**label, **{key: value for key, value in record.items() if key not in label}}


def meta(name: str) -> dict[str, str]:
    """The same for texts that are handed over as they are, beside them."""
    return {f"quaid/{key}": value for key, value in of_tool(name).items()}

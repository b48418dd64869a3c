"""What every failure is, and the one that those of several rooms are made of. All are imported from errors.py."""

from quaid.annotations import Any


class QuaidError(Exception):
    """Something went wrong: {problem}."""

    code = "error"
    exit_status = 1
    http_status = 500
    rpc_code = -32000

    def __init__(self, **facts: Any) -> None:
        told = dict(facts)
        if (
            "hint" in facts
        ):  # as a fact it stands alone; in a message it follows a full stop, if it says anything
            facts["hint"] = str(facts["hint"]).strip()
            told["hint"] = f" {facts['hint']}" if facts["hint"] else ""
        self.facts = facts
        super().__init__((type(self).__doc__ or "").format(**told))


class Cancelled(QuaidError):
    """Stopped on request; nothing was changed."""

    code, exit_status, http_status, rpc_code = "cancelled", 130, 499, -32800

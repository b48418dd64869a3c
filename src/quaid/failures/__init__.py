"""What every failure is. The failures themselves are in errors.py, which is where they are imported from."""

from typing import Any


class QuaidError(Exception):
    """Something went wrong: {problem}."""

    code = "error"
    exit_status = 1
    http_status = 500
    rpc_code = -32000

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        super().__init__((type(self).__doc__ or "").format(**facts))

"""Failures that somebody who keeps a notebook can meet. Imported from errors.py."""

from quaid.failures import QuaidError


class NotebookGone(QuaidError):
    """The folder of the notebook, {path}, is not there. Put it back; or let go of it with \
`quaid collection remove {name}` and make another one with `quaid notebook init`."""

    code, exit_status, http_status, rpc_code = "notebook_gone", 5, 404, -32010

"""Failures on the way into the settings of other programs. Imported from errors.py."""

from quaid.failures import QuaidError


class ClientFile(QuaidError):
    """{path} is left as it is: {problem}. Mend it, or write the entry by hand."""

    code, exit_status, http_status, rpc_code = "client_file", 5, 500, -32011


class ClientMissing(QuaidError):
    """{title} does not seem to be installed: there is no {place}. Add --force to write its settings all the same."""

    code, exit_status, http_status, rpc_code = "client_missing", 3, 404, -32001

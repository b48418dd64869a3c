"""Failures of the web: who may come in, from where, and where a server may listen."""

from quaid.failures import QuaidError


class NotLoggedIn(QuaidError):
    """{problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "not_logged_in", 6, 401, -32004


class ForeignRequest(QuaidError):
    """This request was refused: {problem}. Only this server's own pages and programs with a token may ask."""

    code, exit_status, http_status, rpc_code = "foreign_request", 6, 403, -32003


class WrongHost(ForeignRequest):
    """This server does not answer to the name {host!r}. Open it at {address}; a name of a proxy is allowed with \
`quaid serve --http --allow-host NAME`."""

    code, http_status = "wrong_host", 421


class BodyRefused(QuaidError):
    """The body cannot be read: {problem}. Send a JSON object as application/json."""

    code, exit_status, http_status, rpc_code = "body_refused", 2, 415, -32600


class TooSlow(QuaidError):
    """The body did not arrive within {seconds} s. Send it again."""

    code, exit_status, http_status, rpc_code = "too_slow", 5, 408, -32014


class TooMany(QuaidError):
    """There are {limit:,} {what} already, and that is the most. Try again in a moment."""

    code, exit_status, http_status, rpc_code = "too_many", 5, 429, -32014


class NoSuchAddress(QuaidError):
    """There is nothing at {path}."""

    code, exit_status, http_status, rpc_code = "no_such_address", 3, 404, -32601


class WrongMethod(QuaidError):
    """{path} does not take {method}."""

    code, exit_status, http_status, rpc_code = "wrong_method", 2, 405, -32600


class PortTaken(QuaidError):
    """Port {port} of {address} is taken by another program, or by another memory. Choose another with --port, or \
any that is free with --port 0."""

    code, exit_status, http_status, rpc_code = "port_taken", 5, 503, -32011


class ServedAlready(PortTaken):
    """This memory is served at {where} already: one server is enough for the browser, MCP and the API. `quaid web` \
opens it; choose another port with --port to have a second one."""

    code = "served_already"


class OpenToOthers(QuaidError):
    """{address} can be reached from other machines, and without TLS everybody on the way could read the memory and \
the token. Add --tls-cert FILE and --tls-key FILE, or --behind-proxy --allow-host NAME if a proxy does TLS."""

    code, exit_status, http_status, rpc_code = "open_to_others", 2, 400, -32602


class NoService(QuaidError):
    """{problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "no_service", 5, 503, -32011


class ServiceMissing(QuaidError):
    """The service is not installed: there is no {path}. `quaid daemon install` sets it up."""

    code, exit_status, http_status, rpc_code = "service_missing", 2, 404, -32001


class Unanswered(QuaidError):
    """The resident process that was given `quaid {command}` ended before it answered: whether it was done is not \
known. Look first; doing it again may do it twice. QUAID_HANDOVER=off has every command do its own work."""

    code, exit_status, http_status, rpc_code = "unanswered", 5, 503, -32011

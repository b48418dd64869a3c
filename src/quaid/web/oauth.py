"""OAuth 2.1 for MCP clients: discovery, registration, the owner's approval, tokens and revocation.

The issuer is the address that the client uses, so that a client on this machine, one in the network and one behind
a proxy each find consistent metadata. Only public clients with PKCE (S256) are served. Nothing is stored or granted
before the owner, logged in to the dashboard, approves. Until then, the browser is not redirected to the client,
not even with an error, because anyone can register a redirect address.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from quaid.config import Settings
from quaid.errors import InvalidArgument, NotAllowed, QuaidError
from quaid.http_server import is_loopback
from quaid.model import dates
from quaid.model.slug import parse_only
from quaid.operations import service
from quaid.operations.service import ApprovedAccess, OAuthClient
from quaid.web import api
from quaid.web.auth import SAFE_METHODS, ScopedRoute, media_type
from quaid.web.pages.base import browser_message, consent_page, login_page, read_form
from quaid.web.pages.settings import PERIODS

MCP_PATH = "/mcp"
SCOPES = ("read", "write")
CODE_SECONDS = 60
MAX_CODES = 100
MAX_NAME = 80
MAX_REDIRECT_URIS = 20
MAX_REGISTRATION = 1_500
"""Maximum characters of a client's name and redirect addresses, which are part of its id and thus of URLs."""
MAX_STATE = 1_000
DEFAULT_PERIOD = "90d"
PROGRAM_SCHEMES = ("cursor", "vscode", "vscode-insiders", "windsurf", "zed", "claude")
"""Accepted URL schemes of programs. Schemes with a dot in their names are also accepted (RFC 8252, 7.1)."""
URI = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9\-._~:/?\[\]@!$&()*+,;=%]+")
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


class OAuthProblem(Exception):
    """An error with one of the error codes that OAuth defines."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.code, self.status = code, status


class AuthorizationRequest(NamedTuple):
    """A valid request of a client for the owner's approval."""

    client: OAuthClient
    redirect_uri: str
    challenge: str
    state: str | None
    issuer: str
    may_write: bool

    def answer(self, **values: str) -> str:
        """Return the URL that redirects to the client with these values."""
        state = {"state": self.state} if self.state is not None else {}
        query = urlencode({**values, **state, "iss": self.issuer})
        return f"{self.redirect_uri}{'&' if '?' in self.redirect_uri else '?'}{query}"


class PendingCode(NamedTuple):
    access: ApprovedAccess
    challenge: str
    until: float
    grant: str = ""  # set when the code was used


class AuthorizationCodes:
    """Authorization codes issued after the owner's approval. They are kept in memory, keyed by hash."""

    def __init__(self) -> None:
        self._codes: OrderedDict[bytes, PendingCode] = OrderedDict()

    def add(self, access: ApprovedAccess, challenge: str) -> str:
        code = "qc_" + secrets.token_urlsafe(32)
        self._codes[_digest(code)] = PendingCode(access, challenge, time.time() + CODE_SECONDS)
        while len(self._codes) > MAX_CODES:
            self._codes.popitem(last=False)
        return code

    def redeem(self, settings: Settings, form: Mapping[str, str], issuer: str) -> service.IssuedTokens:
        """Exchange a code for tokens. If a code is used twice, revoke its grant, because the code may be stolen."""
        digest = _digest(form.get("code", ""))
        pending = self._codes.get(digest)
        wrong = OAuthProblem("invalid_grant", "The code is not valid, was used before, or is too old.")
        if pending is None or pending.access.client.id != form.get("client_id"):
            raise wrong
        if pending.grant:
            service.end_grant(settings, pending.grant)
        access, moment = pending.access, time.time()
        if pending.grant or moment > pending.until:
            raise wrong
        verifier = form.get("code_verifier", "")
        expected = base64.urlsafe_b64encode(_digest(verifier)).decode().rstrip("=")
        is_proven = VERIFIER.fullmatch(verifier) and hmac.compare_digest(expected, pending.challenge)
        if not is_proven or form.get("redirect_uri", access.redirect_uri) != access.redirect_uri:
            del self._codes[digest]
            raise OAuthProblem("invalid_grant", "code_verifier or redirect_uri does not belong to the code.")
        if access.resource != issuer + MCP_PATH:
            raise wrong
        del self._codes[digest]
        tokens = service.begin_grant(settings, access, moment)
        self._codes[digest] = pending._replace(grant=tokens.grant)
        return tokens


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


# Discovery


def challenge_header(request: Request) -> str:
    """Return the WWW-Authenticate header, with the URL of the metadata for logging in (RFC 9728)."""
    wrong = 'error="invalid_token", ' if "authorization" in request.headers else ""
    url = f"{request_origin(request)}/.well-known/oauth-protected-resource{MCP_PATH}"
    return f'Bearer {wrong}resource_metadata="{url}"'


def request_origin(request: Request) -> str:
    """Return the address at which the client reached this server. It is also the OAuth issuer."""
    origin: str = request.app.state.sessions.origin(request)
    return origin


async def show_resource(request: Request) -> Response:
    """Describe the MCP endpoint (RFC 9728)."""
    issuer = request_origin(request)
    return api.json_response(
        {
            "resource": issuer + MCP_PATH,
            "authorization_servers": [issuer],
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ["header"],
            "resource_name": "Quaid",
        }
    )


async def show_server(request: Request) -> Response:
    """Describe the authorization server (RFC 8414)."""
    issuer = request_origin(request)
    return api.json_response(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/oauth/authorize",
            "token_endpoint": f"{issuer}/oauth/token",
            "registration_endpoint": f"{issuer}/oauth/register",
            "revocation_endpoint": f"{issuer}/oauth/revoke",
            "scopes_supported": SCOPES,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": False,
        }
    )


# Registration


async def register(request: Request) -> Response:
    """Register a client (RFC 7591). Nothing is stored; see quaid.operations.service."""
    try:
        if media_type(request.headers) != "application/json":
            raise OAuthProblem("invalid_client_metadata", "Send application/json.")
        name, uris = _checked_registration(await request.body())
    except OAuthProblem as problem:
        return _problem_response(problem)
    client = service.register_client(request.app.state.settings, name, uris)
    answer = {
        "client_id": client.id,
        "client_id_issued_at": int(time.time()),
        "client_name": name,
        "redirect_uris": uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return api.json_response(answer, 201)


def _checked_registration(body: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the name and redirect addresses of a registration. The server sets all other values."""
    try:
        metadata = json.loads(body)
        uris, name = metadata["redirect_uris"], metadata.get("client_name", "")
        if not (
            isinstance(uris, list) and all(isinstance(uri, str) for uri in uris) and isinstance(name, str)
        ):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        problem = "Send a JSON object with redirect_uris, a list of texts, and client_name, a text."
        raise OAuthProblem("invalid_client_metadata", problem) from None
    for uri in uris:
        if not is_redirect_uri(uri):
            problem = "A redirect address must be https, http on this machine, or the scheme of a program."
            raise OAuthProblem("invalid_redirect_uri", problem)
    if not 1 <= len(uris) <= MAX_REDIRECT_URIS or sum(map(len, (name[:MAX_NAME], *uris))) > MAX_REGISTRATION:
        problem = f"At most {MAX_REDIRECT_URIS} addresses with {MAX_REGISTRATION} characters are accepted."
        raise OAuthProblem("invalid_redirect_uri", problem)
    return plain_name(name) or "A program without a name", tuple(uris)


def plain_name(text: str) -> str:
    """Return a client's name on one line, without characters that are invisible or change the direction of text."""
    shown = "".join(
        letter if unicodedata.category(letter)[0] not in "CZ" else " "
        for letter in unicodedata.normalize("NFKC", text[: 4 * MAX_NAME])
    )
    return " ".join(shown.split())[:MAX_NAME]


def is_redirect_uri(uri: str) -> bool:
    """Return True if the browser may be sent to this address with a code."""
    if not URI.fullmatch(uri):
        return False
    try:
        address = urlsplit(uri)
        _ = address.port
    except ValueError:
        return False
    if "@" in address.netloc or not address.hostname:
        return False
    if address.scheme == "http":
        return is_loopback(address.hostname)
    return address.scheme == "https" or address.scheme in PROGRAM_SCHEMES or "." in address.scheme


def allows_redirect(client: OAuthClient, uri: str) -> bool:
    """Return True if the client registered this address. The port of a loopback address may differ."""
    return uri in client.redirect_uris or (
        is_redirect_uri(uri)
        and uri.startswith("http:")
        and any(_without_port(uri) == _without_port(registered) for registered in client.redirect_uris)
    )


def _without_port(uri: str) -> tuple[str, ...]:
    address = urlsplit(uri)
    return address.scheme, address.hostname or "", address.path, address.query


# Approval


async def authorize(request: Request) -> Response:
    """Show the owner which access a client requests, and redirect to the client with the decision."""
    form = await read_form(request)
    try:
        # The issuer is set before the login, because the login may continue on another host.
        values = form if form else {"issuer": request_origin(request), **_single_values(request.url.query)}
        if not request.state.scope:
            return _ask_for_login(request, values)
        if request.state.scope != "owner":
            raise NotAllowed(name="connecting a program", needed="owner", granted=request.state.scope)
        authorization = _checked_request(request, values)
        if request.method in SAFE_METHODS:
            return _ask(request, authorization, values)
    except OAuthProblem as problem:
        return consent_page(request, status=problem.status, problem=str(problem))
    if form.get("answer") != "allow":
        denied = authorization.answer(error="access_denied", error_description="The owner refused.")
        return consent_page(request, forward=denied, client=authorization.client, allowed=False)
    try:
        code = _approve(request, authorization, form)
    except QuaidError as error:
        return _ask(request, authorization, form, error)
    return consent_page(
        request, forward=authorization.answer(code=code), client=authorization.client, allowed=True
    )


def _ask_for_login(request: Request, values: Mapping[str, str]) -> Response:
    target = f"/oauth/authorize?{urlencode(values)}"
    # A browser does not send the SameSite=Strict cookie when the user follows a link on another site, but does
    # when this page reloads.
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return consent_page(request, forward=target, again=True)
    heading = "Log in to connect a program"
    return login_page(request, status=401, target=target, heading=heading, code_only=True)


def _ask(
    request: Request,
    authorization: AuthorizationRequest,
    values: Mapping[str, str],
    error: QuaidError | None = None,
) -> Response:
    names = ("client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state")
    fields = {name: values[name] for name in (*names, "scope", "resource", "issuer") if name in values}
    return consent_page(
        request,
        status=error.http_status if error else 200,
        client=authorization.client,
        place=service.redirect_place(authorization.redirect_uri),
        is_local=authorization.redirect_uri.startswith("http:"),
        fields=fields,
        may_write=authorization.may_write,
        name=values.get("name") or service.free_name(request.app.state.settings, authorization.client),
        periods=PERIODS,
        period=values.get("period", DEFAULT_PERIOD),
        only=values.get("only", ""),
        error=browser_message(error) if error else "",
    )


def _approve(request: Request, authorization: AuthorizationRequest, form: Mapping[str, str]) -> str:
    """Create an authorization code for the access that the owner selected in the form."""
    scope, period = form.get("allowed", ""), form.get("period", "")
    if scope not in SCOPES or (scope == "write" and not authorization.may_write):
        raise InvalidArgument(name="allowed", problem="must be chosen: read, or read and write")
    if period not in dict(PERIODS):
        raise InvalidArgument(name="period", problem="must be one of those in the list")
    access = ApprovedAccess(
        authorization.client,
        authorization.redirect_uri,
        form.get("name", "").strip(),
        "write" if scope == "write" else "read",
        authorization.issuer + MCP_PATH,
        dates.period_seconds(period) or 0,
        _chosen_part(form.get("only", "")),
    )
    service.check_access(request.app.state.settings, access)
    code: str = request.app.state.oauth_codes.add(access, authorization.challenge)
    return code


def _chosen_part(text: str) -> tuple[str, ...]:
    """Parse the part of the memory that the owner selected. Its names need not exist."""
    if not text.strip():
        return ()
    try:
        return parse_only(text)
    except ValueError as error:
        raise InvalidArgument(name="only", problem=str(error)) from None


def _checked_request(request: Request, values: Mapping[str, str]) -> AuthorizationRequest:
    """Parse a client's authorization request. Raise OAuthProblem if a parameter is missing or invalid."""
    client = service.find_client(request.app.state.settings, values.get("client_id", ""))
    if client is None:
        problem = (
            "The program is not registered with this memory. Remove its connection there, and add it again."
        )
        raise OAuthProblem("invalid_client", problem)
    only = client.redirect_uris[0] if len(client.redirect_uris) == 1 else ""
    redirect_uri = values.get("redirect_uri", only)
    if not allows_redirect(client, redirect_uri):
        raise OAuthProblem(
            "invalid_request", "The program asks to send you to an address that it did not register."
        )
    issuer, state = values.get("issuer", ""), values.get("state")
    if issuer not in request.app.state.sessions.origins:
        raise OAuthProblem("invalid_request", "The request is for another server.")
    if values.get("response_type") != "code" or len(state or "") > MAX_STATE:
        raise OAuthProblem(
            "unsupported_response_type", "The program asks for another kind of answer than a code."
        )
    challenge = values.get("code_challenge", "")
    if values.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(challenge):
        raise OAuthProblem("invalid_request", "The program does not use PKCE with S256, which is needed.")
    if values.get("resource", issuer).rstrip("/") not in (issuer, issuer + MCP_PATH):
        raise OAuthProblem("invalid_target", "The program asks for access to another server.")
    scopes = values.get("scope", "").split()
    return AuthorizationRequest(
        client, redirect_uri, challenge, state, issuer, not scopes or "write" in scopes
    )


# Tokens


async def issue_tokens(request: Request) -> Response:
    """Exchange a code or a refresh token for new tokens."""
    settings, issuer = request.app.state.settings, request_origin(request)
    try:
        form = await _token_form(request)
        if form.get("resource", issuer).rstrip("/") not in (issuer, issuer + MCP_PATH):
            raise OAuthProblem("invalid_target", "There is no such resource on this server.")
        kind = form.get("grant_type")
        if kind == "authorization_code":
            tokens = request.app.state.oauth_codes.redeem(settings, form, issuer)
        elif kind == "refresh_token":
            tokens = _refreshed(settings, form, issuer)
        else:
            problem = "grant_type must be authorization_code or refresh_token."
            raise OAuthProblem("unsupported_grant_type", problem)
    except OAuthProblem as problem:
        return _problem_response(problem)
    except InvalidArgument as error:  # the chosen name was given to another token in the meantime
        return _problem_response(OAuthProblem("invalid_grant", str(error)))
    answer = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.seconds,
        "refresh_token": tokens.refresh,
        "scope": "read write" if tokens.scope == "write" else "read",
    }
    return api.json_response(answer)


def _refreshed(settings: Settings, form: Mapping[str, str], issuer: str) -> service.IssuedTokens:
    tokens = service.refresh_grant(
        settings, form["client_id"], issuer + MCP_PATH, form.get("refresh_token", ""), time.time()
    )
    if tokens is None:
        raise OAuthProblem(
            "invalid_grant", "The refresh token is not valid, was used before, or was revoked."
        )
    return tokens


async def revoke(request: Request) -> Response:
    """Revoke a token and its grant (RFC 7009). An unknown token is not an error."""
    try:
        form = await _token_form(request)
    except OAuthProblem as problem:
        return _problem_response(problem)
    service.revoke_token(request.app.state.settings, form["client_id"], form.get("token", ""))
    return Response(status_code=200)


async def _token_form(request: Request) -> dict[str, str]:
    """Return the form fields of a request. Raise OAuthProblem unless they name a registered client."""
    if media_type(request.headers) != "application/x-www-form-urlencoded":
        raise OAuthProblem("invalid_request", "Send application/x-www-form-urlencoded.")
    form = _single_values((await request.body()).decode("utf-8", "replace"))
    if service.find_client(request.app.state.settings, form.get("client_id", "")) is None:
        raise OAuthProblem("invalid_client", "The client_id is not registered here.", 401)
    return form


def _single_values(text: str) -> dict[str, str]:
    """Return the fields of a query string or a form. A field may be given only once."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise OAuthProblem("invalid_request", "There are too many fields.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise OAuthProblem("invalid_request", "A field is given twice.")
    return fields


def _problem_response(problem: OAuthProblem) -> Response:
    body = {"error": problem.code, "error_description": str(problem)}
    return api.json_response(body, problem.status)


OAUTH_ROUTES = [
    ScopedRoute(f"/.well-known/oauth-protected-resource{MCP_PATH}", show_resource, GET="public"),
    ScopedRoute("/.well-known/oauth-protected-resource", show_resource, GET="public"),
    ScopedRoute("/.well-known/oauth-authorization-server", show_server, GET="public"),
    ScopedRoute("/oauth/register", register, POST="public"),
    ScopedRoute("/oauth/authorize", authorize, GET="public", POST="owner"),
    ScopedRoute("/oauth/token", issue_tokens, POST="public"),
    ScopedRoute("/oauth/revoke", revoke, POST="public"),
]

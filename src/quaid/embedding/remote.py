"""Models on a server: Ollama and OpenAI-compatible embedding endpoints.

Requests go only to the address that a user added, without redirects or proxies, with a timeout of ten seconds. The
API key is read from the named environment variable for each request and never stored.
"""

import json
import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quaid.embedding.registry import EmbedderEnvironment, ModelDescription
from quaid.errors import EmbedderUnavailable, InvalidModel, QuaidError

TIMEOUT_SECONDS = 10.0  # limit for a whole request
TEXTS_PER_REQUEST = 32
LARGEST_RESPONSE = 64 * 1024 * 1024  # in bytes
CHARACTERS_PER_TOKEN = 4  # texts are truncated by this estimate, because some servers reject long texts
REMEDY = "Start the server or mend its address; until it answers, questions are answered by words alone"


class EndpointAddress(NamedTuple):
    secure: bool
    host: str
    port: int
    path: str

    @property
    def is_local(self) -> bool:
        import ipaddress

        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class WireFormat(NamedTuple):
    """The request and response format of one kind of server."""

    path: str
    default_path: str  # used if the address has no path
    ask: Callable[[str, Sequence[str]], dict[str, Any]]
    vectors: Callable[[Any], Any]


def _vectors_by_index(data: list[dict[str, Any]]) -> list[Any]:
    """Return the vectors ordered by index; raise ValueError if an index is missing or duplicated."""
    by_index = {int(item["index"]): item["embedding"] for item in data}
    if sorted(by_index) != list(range(len(data))):
        raise ValueError("indexes that are missing or there twice")
    return [by_index[place] for place in range(len(data))]


OLLAMA = WireFormat(
    "/api/embed",
    "",
    lambda model, texts: {"model": model, "input": list(texts), "truncate": True},
    lambda answer: answer["embeddings"],
)
OPENAI = WireFormat(
    "/embeddings",
    "/v1",
    lambda model, texts: {"model": model, "input": list(texts), "encoding_format": "float"},
    lambda answer: _vectors_by_index(answer["data"]),
)
WIRE_FORMATS = {"ollama": OLLAMA, "openai": OPENAI}


def open_ollama(description: ModelDescription, surroundings: EmbedderEnvironment) -> "HttpEmbedder":
    """Return an embedder for an Ollama server."""
    return HttpEmbedder(description, OLLAMA, surroundings.environ)


def open_openai(description: ModelDescription, surroundings: EmbedderEnvironment) -> "HttpEmbedder":
    """Return an embedder for an OpenAI-compatible endpoint."""
    return HttpEmbedder(description, OPENAI, surroundings.environ)


class HttpEmbedder:
    """A model on a server. A new connection is opened for each request."""

    def __init__(
        self,
        description: ModelDescription,
        wire: WireFormat,
        environ: Mapping[str, str],
        time_out: float = TIMEOUT_SECONDS,
    ) -> None:
        self.name = description.name
        self.dimensions = description.dimensions
        self.max_tokens = description.max_tokens
        self.query_prefix = description.query_prefix
        self.passage_prefix = description.passage_prefix
        self._description = description
        self._wire = wire
        self._environ = environ
        self._time_out = time_out

    def ready(self) -> str | None:
        description = self._description
        return server_problem(description.place, description.key_env, description.remote, self._environ)

    def embed_query(self, text: str) -> bytes:
        return self._embed([self._cut(self.query_prefix + text)])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            vectors += self._embed(
                [self._cut(self.passage_prefix + text) for text in texts[start : start + TEXTS_PER_REQUEST]]
            )
        return vectors

    def health(self) -> str | None:
        try:
            first, other = self.embed_passages(["A red apple.", "Tax law of 1911."])
        except QuaidError as error:
            return str(error.facts.get("problem", error))
        return "it gives one vector for all texts" if first == other else None

    def _cut(self, text: str) -> str:
        return text[: self.max_tokens * CHARACTERS_PER_TOKEN] or " "

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        problem = self.ready()
        if problem:
            raise self._unavailable(problem)
        answer = self._post(self._wire.ask(self._description.model, texts))
        try:
            vectors = self._wire.vectors(answer)
            packed = [pack_numbers(vector) for vector in vectors]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise self._unavailable(
                f"{self._description.place} answers something else than vectors"
            ) from None
        if len(packed) != len(texts):
            raise self._unavailable(f"it gives {len(packed)} vectors for {len(texts)} texts")
        widths = {len(vector) // 4 for vector in packed}
        if len(widths) != 1 or (self.dimensions and widths != {self.dimensions}):
            expected = self.dimensions or "the same number for each text"
            actual = " and ".join(str(width) for width in sorted(widths))
            raise self._unavailable(
                f"its vectors have {actual} numbers, not {expected}: it is not the model that was added"
            )
        return packed

    def _post(self, body: dict[str, Any]) -> Any:
        place = self._description.place
        path = (parse_address(place).path or self._wire.default_path) + self._wire.path
        key = self._environ.get(self._description.key_env, "")
        try:
            return request_json(place, path, body, key, self._time_out)
        except RequestFailed as failure:
            raise self._unavailable(failure.problem, failure.detail) from None

    def _unavailable(self, problem: str, detail: str = "") -> EmbedderUnavailable:
        """Return the error to raise.

        `detail` is a part of the server's response, which may quote the text that was sent. The message contains it,
        but `noted`, which background work logs instead, does not.
        """
        message = f"{problem} ({detail})" if detail else problem
        return EmbedderUnavailable(name=self.name, problem=message, noted=problem, remedy=REMEDY)


def pack_numbers(numbers: Sequence[float]) -> bytes:
    """Normalize numbers and pack them as little-endian float32. Raise ValueError if that is not possible."""
    if not numbers or not all(type(number) in (int, float) for number in numbers):
        raise ValueError("not numbers")
    length = math.sqrt(math.fsum(number * number for number in numbers))
    if not 0 < length < math.inf:  # also rejects NaN
        raise ValueError("no direction")
    return struct.pack(f"<{len(numbers)}f", *[number / length for number in numbers])


def parse_address(place: str) -> EndpointAddress:
    """Parse the address of a server; raise InvalidModel if it is not valid."""
    from urllib.parse import urlsplit

    def refuse(problem: str) -> InvalidModel:
        return InvalidModel(
            place=place.rpartition("@")[2], problem=problem, remedy="Write it as in http://127.0.0.1:11434"
        )

    try:
        parts = urlsplit(place)
        port = parts.port
    except ValueError as error:
        raise refuse(f"it is not an address ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refuse("it is not an address of http or https")
    if parts.username or parts.password:
        raise refuse("it holds a password, which would be kept; name an environment variable with --key-env")
    if parts.query or parts.fragment:
        raise refuse("it has a part behind ? or #")
    secure = parts.scheme == "https"
    return EndpointAddress(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))


def describe_server(
    description: ModelDescription, allow_remote: bool, environ: Mapping[str, str]
) -> ModelDescription:
    """Validate the description of a model on a server, and test the model with one request.

    Return the description with the number of dimensions.
    """
    sent = "every text that is embedded"
    is_remote = check_server(description.place, description.key_env, allow_remote, sent)
    whole = description._replace(remote=is_remote)
    probe = HttpEmbedder(whole, WIRE_FORMATS[description.kind], environ)
    return whole._replace(dimensions=len(probe.embed_passages(["A probe."])[0]) // 4)


def server_problem(place: str, key_env: str, remote: bool, environ: Mapping[str, str]) -> str | None:
    """Return why a server must not be used (its key is missing, or it is remote and not allowed), or None."""
    if key_env and not environ.get(key_env):
        return f"the environment variable {key_env}, which holds its key, is not set"
    if not parse_address(place).is_local and not remote:
        return f"{place} is another machine, and that was not allowed"
    return None


def check_server(place: str, key_env: str, allow_remote: bool, sent: str) -> bool:
    """Return True if a server is on another machine. Raise InvalidModel if that is not allowed or not safe.

    `sent` names the texts that would be sent to it.
    """
    address = parse_address(place)
    if address.is_local:
        return False
    if not allow_remote:
        raise InvalidModel(
            place=place,
            problem=f"it is another machine, and {sent} would go there",
            remedy="Add --allow-remote if that is what you want",
        )
    if key_env and not address.secure:
        raise InvalidModel(place=place, problem="the key would travel unprotected", remedy="Use https")
    return True


class RequestFailed(Exception):
    """A request without a usable response. `detail` is a part of the response, which may quote the sent text."""

    def __init__(self, problem: str, detail: str = "") -> None:
        super().__init__(problem)
        self.problem, self.detail = problem, detail


def request_json(place: str, path: str, body: dict[str, Any], api_key: str, time_out: float) -> Any:
    """Send a POST request with JSON to the server at `place`. Return the parsed response, or raise RequestFailed."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    try:
        status, answer = _post(parse_address(place), path, json.dumps(body).encode(), headers, time_out)
    except TimeoutError:
        raise RequestFailed(f"{place} did not answer within {time_out:g} seconds") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise RequestFailed(f"{place} cannot be reached ({reason})") from None
    if status != 200:
        excerpt = " ".join(answer[:300].decode("utf-8", "replace").split())[:200]
        raise RequestFailed(f"{place} answers with status {status}", excerpt)
    try:
        return json.loads(answer)
    except ValueError:
        raise RequestFailed(f"{place} answers something else than JSON") from None


def _post(
    address: EndpointAddress, path: str, body: bytes, headers: dict[str, str], time_out: float
) -> tuple[int, bytes]:
    """Send a POST request. Return the status and the body of the response.

    The timeout applies to the whole request, even if the server keeps sending single bytes.
    """
    import http.client
    import socket

    kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=time_out)
    late = threading.Event()
    sockets: list[socket.socket] = []  # the connection drops its reference while the response is read

    def cut_off() -> None:
        late.set()
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    timer = threading.Timer(time_out, cut_off)
    timer.daemon = True
    timer.start()
    try:
        connection.connect()
        sockets.append(connection.sock)
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        answer = response.read(LARGEST_RESPONSE + 1)
        if late.is_set():
            raise TimeoutError
        if len(answer) > LARGEST_RESPONSE:
            raise ValueError("its answer has no end")
        return response.status, answer
    except http.client.HTTPException as error:
        if late.is_set():
            raise TimeoutError from None
        raise ValueError(f"it does not speak HTTP: {type(error).__name__}") from None
    except OSError:
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
        connection.close()

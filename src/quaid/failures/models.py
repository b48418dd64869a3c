"""Failures of the models that turn text into vectors. Imported from errors.py."""

from quaid.failures import Cancelled, QuaidError


class EmbeddingStopped(Cancelled):
    """Stopped on request: {made:,} of {total:,} chunks have a vector of {model}, and keep it. `{command}` goes on \
from there."""


class UnknownModel(QuaidError):
    """There is no model {name!r}.{hint} `quaid model list` shows them all."""

    code, exit_status, http_status, rpc_code = "unknown_model", 3, 404, -32001


class InvalidModel(QuaidError):
    """{place} cannot be used as a model: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "invalid_model", 2, 400, -32602


class ModelInUse(QuaidError):
    """{name} is the active model and stays until another is: `quaid embed --model NAME` switches."""

    code, exit_status, http_status, rpc_code = "model_in_use", 4, 409, -32009


class EmbedderUnavailable(QuaidError):
    """The model {name} cannot be used now: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "embedder_unavailable", 5, 503, -32015


class EmbeddingsOff(EmbedderUnavailable):
    """Semantic search is off. {remedy}."""

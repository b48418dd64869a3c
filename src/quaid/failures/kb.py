"""Failures that somebody who keeps a knowledge base can meet. Imported from errors.py."""

from quaid.failures import QuaidError


class StoreMissing(QuaidError):
    """There is no knowledge base at {path}. `ai-kb init` makes one; `ai-kb clone URL` fetches yours."""

    code, exit_status, http_status, rpc_code = "store_missing", 5, 404, -32010


class StoreForeign(StoreMissing):
    """There is no knowledge base at {path}; it holds {told}. Nothing was written. Correct AI_KB_DIR, or make a \
knowledge base among these files with `ai-kb init --force`."""


class StoreOccupied(QuaidError):
    """{path} is not empty; it holds {told}. Nothing was written. {remedy}."""

    code, exit_status, http_status, rpc_code = "store_occupied", 4, 409, -32009


class RemoteOccupied(QuaidError):
    """The remote {url} holds {told}, and no knowledge base. Nothing was written, here or there. {remedy}."""

    code, exit_status, http_status, rpc_code = "remote_occupied", 4, 409, -32009


class UnsafeStore(QuaidError):
    """{path} is not touched: {problem}. {remedy}."""

    code, exit_status, http_status, rpc_code = "unsafe_store", 5, 403, -32003


class StoreDirty(QuaidError):
    """{path} has uncommitted changes: {told}. Nothing was written; commit them with `ai-kb commit`, or take \
them back, and try again."""

    code, exit_status, http_status, rpc_code = "store_dirty", 4, 409, -32009


class StagedBeside(StoreDirty):
    """{told} is staged in {path}, and is not committed with the knowledge base. Nothing was written; take it back \
with `git -C {path} reset -q -- {first}`, and try again."""


class StoreUnfinished(StoreDirty):
    """A {act} is under way in {path}. Nothing was written; finish it, or give it up with \
`git -C {path} {act} --abort`, and try again."""


class StoreDiverged(QuaidError):
    """{path} and its remote have diverged (commits only here: {ahead}, only there: {behind}). Nothing \
was written; bring them together with `git -C {path} pull --rebase`, then try again."""

    code, exit_status, http_status, rpc_code = "store_diverged", 4, 409, -32009


class StoreLocked(QuaidError):
    """{path} is in use by {holder}. Nothing was changed; try again.{hint}"""

    code, exit_status, http_status, rpc_code = "store_locked", 5, 503, -32014


class LintFailed(QuaidError):
    """Nothing was committed. Lint says: {told}."""

    code, exit_status, http_status, rpc_code = "lint_failed", 1, 422, -32012


class NearDuplicate(QuaidError):
    """The knowledge base has this already: {told}. Nothing was written; add to that node with --add-to, or write a \
new one all the same with --force."""

    code, exit_status, http_status, rpc_code = "near_duplicate", 4, 409, -32013


class OppositeAdded(QuaidError):
    """{node} says the opposite: {told}. Nothing was written. Write it as a node of its own, without --add-to: both \
are contested then, and a person decides. Or add it with --force: this node is contested then."""

    code, exit_status, http_status, rpc_code = "opposite_added", 4, 409, -32013


class GitMissing(QuaidError):
    """The program git was not found. Install git 2.36 or newer; a knowledge base is a git repository."""

    code, exit_status, http_status, rpc_code = "git_missing", 5, 503, -32010


class GitFailed(QuaidError):
    """git {verb} failed in {path}: {problem}. `quaid kb doctor` looks for what is wrong there; then try again."""

    code, exit_status, http_status, rpc_code = "git_failed", 5, 500, -32011


class CloneFailed(GitFailed):
    """{url} could not be cloned: {problem}. Nothing was written. Check the address and your access to it, and try \
again."""

"""What may be trusted in a repository, and what is refused before git is let near it.

Knows the places where a repository could name a program to run (its settings, its attributes, another repository that
it points at), and the shapes of addresses, branches and paths. Calls nothing.

Settings of a repository are not cloned, but a folder copied from elsewhere brings its own. So a store may hold only
settings from a short list, none of which runs anything; all others make it unsafe. Attributes are cloned: the line
that we put at the end of .git/info/attributes, which git asks first, undoes them all.
"""

import os
import re
import stat
from typing import NamedTuple

from quaid.errors import InvalidArgument, StoreMissing, UnsafeStore
from quaid.kb.calling import PROTOCOLS
from quaid.kb.layout import OURS
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

ATTRIBUTES = """\
* !filter !diff !merge !ident !eol !working-tree-encoding -text
/index*.org merge=union
"""
"""Two who wrote nodes have both changed the index: a person who merges keeps all lines, and it is made anew."""

ALLOWED = {
    "core": {
        *(
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
        ),
        *("symlinks", "autocrlf", "sharedrepository"),
    },
    "extensions": {"objectformat"},
    "remote.": {"url", "fetch", "tagopt"},
    "branch.": {"remote", "merge", "rebase", "description"},
    "user": {"name", "email", "signingkey"},
    "commit": {"gpgsign"},
    "pull": {"ff", "rebase"},
    "merge": {"ff", "conflictstyle"},
    "gc": {"auto"},
    "maintenance": {"auto", "strategy"},
    "init": {"defaultbranch"},
}
"""Section, or section with any name, and the keys that may stand there in lower case."""

_SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(?P<host>\[[^\]]+\]|[^/:\s]+):(?!:)")
_USERINFO = re.compile(r"(?i)\b(https?)://[^/@\s]+@")
_PASSWORD = re.compile(r"(\w://[^/:@\s]+):[^/@\s]+@")
_QUERY = re.compile(r"(\w://[^\s?]{1,2000})\?[^\s'\"]+")
LONGEST_MESSAGE = 10_000


class Config(NamedTuple):
    """What git's settings say that we need: the store's remote, and the person."""

    remote: str | None = None
    name: str | None = None
    email: str | None = None
    ssh: str | None = None  # the person's own way to call ssh
    sha256: bool = False


def look_at(root: str) -> os.stat_result | None:
    """Refuse a store whose .git is not simply a folder in it. Its settings file, if there is one."""
    folder = os.path.join(root, ".git")
    try:
        found = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreMissing(path=root) from None
    if not stat.S_ISDIR(found.st_mode):
        raise _unsafe(root, "its .git is not a folder but points elsewhere")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise UnsafeStore(
            path=root, problem="it belongs to another user", remedy="Clone it, or take it over with chown"
        )
    if os.path.lexists(os.path.join(folder, "commondir")):
        raise _unsafe(root, "its settings lie in another repository (.git/commondir)")
    for name in ("info", OURS):
        path = os.path.join(folder, name)
        if os.path.islink(path) or (os.path.lexists(path) and not os.path.isdir(path)):
            raise _unsafe(root, f".git/{name} is not a folder")
    if not os.path.lexists(os.path.join(folder, "HEAD")):
        raise StoreMissing(path=root)
    try:
        return os.stat(os.path.join(folder, "config"))
    except FileNotFoundError:
        return None


def settle_attributes(root: str) -> None:
    """See to it that no attribute of the store has an effect."""
    path = os.path.join(root, ".git", "info", "attributes")
    try:
        with open(path, "rb") as file:
            before = file.read()
    except FileNotFoundError:
        before = b""
    ours = ATTRIBUTES.encode()
    if before == ours or before.endswith(b"\n" + ours):
        return
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
        write_private(path, before + (b"" if not before or before.endswith(b"\n") else b"\n") + ours)


def judge(listing: bytes, root: str) -> Config:
    """Refuse a store that has settings of its own beyond the list; `git config --list -z --show-scope` told them."""
    parts = listing.decode(errors="surrogateescape").split("\0")
    found: dict[str, str] = {}
    remotes: list[str] = []
    for scope, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, value = entry.partition("\n")
        if scope in ("local", "worktree"):
            _judge_one(key, value, root)
            if key == "remote.origin.url":
                remotes.append(value)
        if key != "core.sshcommand" or scope in ("system", "global"):
            found[key] = value
    if len(remotes) > 1:
        raise _unsafe(root, "its remote has several addresses")
    for url in remotes:
        problem = wrong_with_url(url, root)
        if problem:
            raise _unsafe(root, f"its remote {masked(url)!r} {problem}")
    return Config(
        remotes[0] if remotes else None,
        found.get("user.name") or None,
        found.get("user.email") or None,
        found.get("core.sshcommand") or None,
        found.get("extensions.objectformat") == "sha256",
    )


def _judge_one(key: str, value: str, root: str) -> None:
    section, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    if last not in ALLOWED.get(f"{section}." if name else section, ()):
        remedy = f"Clone it afresh, or look at .git/config and remove {key} if you did not set it"
        raise UnsafeStore(path=root, problem=f"its own git settings hold {key}", remedy=remedy)
    if key == "core.bare" and value.lower() not in ("false", "no", "off", "0", ""):
        raise _unsafe(root, "it is a bare repository, without files")


def wrong_with_url(url: str, root: str) -> str | None:
    """Why an address is not used, or None."""
    if not url or url.startswith("-") or any(ord(each) < 32 for each in url):
        return "is not an address"
    scheme, separator, rest = url.partition("://")
    if separator:
        if scheme.lower() not in PROTOCOLS:
            return f"uses {scheme}, not one of {', '.join(PROTOCOLS)}"
        host = rest.partition("/")[0].rpartition("@")[2]
        if host.startswith(("-", "%")):
            return "has a host that begins with a dash"
    elif "::" in url.partition("/")[0]:
        return "names a program to run"
    else:
        like = _SCP_LIKE.match(url)
        if like and like["host"].startswith("-"):
            return "has a host that begins with a dash"
    path = on_disk(url, root)
    if path is not None and within(path, root):
        return "lies in the store itself"
    return None


def on_disk(url: str, root: str) -> str | None:
    """The folder that an address means, when it is one of this machine."""
    scheme, separator, rest = url.partition("://")
    if separator:
        return os.path.join("/", rest.partition("/")[2]) if scheme.lower() == "file" else None
    if _SCP_LIKE.match(url) and not (os.name == "nt" and url[1:2] == ":"):
        return None
    return os.path.normpath(os.path.join(root, url))


def from_here(url: str) -> str:
    """An address as the store can keep it: a path counts from where the caller is."""
    source = on_disk(url, os.getcwd())
    is_path = source is not None and "://" not in url and "::" not in url and not url.startswith("-")
    return source if source is not None and url and is_path else url


def within(path: str, root: str) -> bool:
    """Whether a path is the root, or lies under it, links followed."""
    path, root = os.path.realpath(path), os.path.realpath(root)
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def check_url(url: str, root: str) -> str:
    problem = wrong_with_url(url, root)
    if problem:
        raise InvalidArgument(name="url", problem=f"{masked(url)!r} {problem}")
    return url


def check_branch(name: str) -> str:
    """A branch's name that git takes for nothing else."""
    bad = not name or name.startswith(("-", "/", ".")) or name.endswith(("/", ".", ".lock"))
    if bad or ".." in name or "//" in name or not name.replace("/", "").replace(".", "-").isprintable():
        raise InvalidArgument(name="branch", problem=f"{name!r} is not a name for a branch")
    if any(each in " ~^:?*[\\\x7f@{" for each in name):
        raise InvalidArgument(name="branch", problem=f"{name!r} is not a name for a branch")
    return name


def check_path(path: str) -> str:
    """A file's path inside the store, with '/' between folders."""
    parts = path.split("/")
    if not path or path.startswith("-") or "\0" in path or os.path.isabs(path) or "\\" in path:
        problem = f"{path!r} is not a path inside the store"
    elif any(part in ("", ".", "..") for part in parts):
        problem = f"{path!r} leads out of the store, or nowhere"
    elif any(part.lower().rstrip(". ") == ".git" for part in parts):
        problem = f"{path!r} is git's own"
    else:
        return path
    raise InvalidArgument(name="path", problem=problem)


def check_tracked(path: str) -> str:
    """A path that git told us: names that we would never give, -x or a\\b, are there all the same.

    They are handed on behind `--` or on standard input, where a dash means nothing."""
    named = path if os.name == "nt" else path.replace("\\", "_")
    check_path(f"_{named}" if named.startswith("-") else named)
    return path


def masked(text: str) -> str:
    """A message without the secrets of the addresses in it."""
    from quaid.model.secrets import mask

    text = _USERINFO.sub(r"\1://…@", text[:LONGEST_MESSAGE])
    text = _PASSWORD.sub(r"\1:…@", text)
    return mask(_QUERY.sub(r"\1?…", text)).text


def write_private(path: str, data: bytes) -> None:
    """Put a small file in its place: whole, durable, for its owner only."""
    unfinished = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        durable_files.remove_with_sidecars(unfinished)
        raise
    durable_files.sync_folder(os.path.dirname(path))


def _unsafe(root: str, problem: str) -> UnsafeStore:
    return UnsafeStore(path=root, problem=problem, remedy="Clone it afresh with `ai-kb clone URL`")

"""Run `quaid` commands in processes that are forked from one that has already loaded Quaid.

Importing Quaid takes most of the CPU time of a short command. `install` writes a program that does the same as
`quaid`: it hands its arguments, environment, folder, umask and standard streams to a server, which forks a process
for the command. Signals are passed on, and the exit status or the fatal signal is returned. A program that cannot
hand over its streams, or that runs with `COLD_START=1`, starts Quaid in its own process.
"""

import atexit
import gc
import hashlib
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOT_LOADED = ("quaid.embedding.onnx", "quaid.__main__", "quaid.integrations.")
"""Modules that the server leaves to the commands that use them."""
HEADER = struct.Struct("!q")
HANDLES = 4  # standard input, output and error, and the current folder

SHARED_MODELS = {"QUAID_EMBEDDING_MODELS_DIR": str(ROOT / ".cache" / "models")}
"""Lets all tests use one optimised copy of the default model, which takes half a second of CPU time to make."""
ON_ITS_OWN = {"COLD_START": "1"}
COLD = "from quaid.__main__ import main\nsys.exit(main())\n"
PROGRAM = """\
#!{python} -IS
import sys, marshal, posix, _signal, _socket

def cold():
    posix.execve({python!r}, [{python!r}, {cold!r}, *sys.argv[1:]], posix.environ)

if b"COLD_START" in posix.environ:
    cold()
try:
    for handle in (0, 1, 2):
        posix.fstat(handle)
    handles = [0, 1, 2, posix.open(".", posix.O_RDONLY)]
    server = _socket.socket(_socket.AF_UNIX)
    server.connect({address!r})
except OSError:
    cold()
mask = posix.umask(0)
posix.umask(mask)
request = marshal.dumps((sys.argv, posix.environ, mask, {prelude!r}))
packed = b"".join(handle.to_bytes(4, sys.byteorder) for handle in handles)
header = len(request).to_bytes(8, "big")
server.sendmsg([header], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
server.sendall(request)
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, lambda number, frame: server.send(bytes([number])))
status = int.from_bytes(server.recv(8), "big")
if posix.WIFSIGNALED(status):
    number = posix.WTERMSIG(status)
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    posix.kill(posix.getpid(), number)
posix._exit(posix.WEXITSTATUS(status))
"""


_started: list[tuple[subprocess.Popen[bytes], str]] = []


def start() -> str:
    """Start the server, unless it runs, and return its folder."""
    if not _started:
        folder = tempfile.mkdtemp(prefix="quaid-commands-")
        # One thread in numpy, because only the thread that forks is in the new process.
        path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        environ = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.commands", f"{folder}/socket"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            cwd=folder,
        )
        assert server.stdout
        assert server.stdout.read(1) == b"\n"
        _started.append((server, folder))
    return _started[0][1]


def stop() -> None:
    """Stop the server if it runs. It also ends when this process ends."""
    for server, folder in _started:
        server.communicate()
        shutil.rmtree(folder)
    _started.clear()


def install(path: Path, prelude: str = "") -> None:
    """Write the program, and next to it the one that starts Quaid in its own process.

    `prelude` is Python code to run in the process of each command first.
    """
    cold = path.with_name(f"cold-{path.name}.py")
    cold.write_text(f"import sys\nsys.argv[0] = {str(path)!r}\n{prelude}\n{COLD}")
    address = f"{start()}/socket"
    path.write_text(PROGRAM.format(python=sys.executable, cold=str(cold), address=address, prelude=prelude))
    path.chmod(0o755)


def program(prelude: str = "") -> str:
    """Return the path of a program that is installed once for all tests."""
    path = Path(start(), hashlib.sha256(prelude.encode()).hexdigest()[:12], "quaid")
    if not path.exists():
        path.parent.mkdir()
        install(path, prelude)
    return str(path)


def script(code: str) -> str:
    """Return the path of a program that runs this Python code, with its arguments in sys.argv[1:]."""
    return program(f"{textwrap.dedent(code)}\nimport sys\nsys.exit()\n")


class Server:
    """Forks a process for each connection, and tells the program at its other end how the process ended."""

    def __init__(self, address: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen(64)
        self.wake, self.woken = socket.socketpair()
        self.woken.setblocking(False)
        self.running: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Serve until standard input is closed. Return in each forked process, with its streams and arguments."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.woken.fileno(), warn_on_full_buffer=False)
        while True:
            waited = [sys.stdin, self.wake, self.listener, *self.running.values()]
            ready = select.select(waited, [], [])[0]
            if sys.stdin in ready:
                sys.exit()
            for pid, connection in list(self.running.items()):
                if connection in ready:
                    self.pass_signal_on(pid, connection)
            if self.wake in ready:
                self.wake.recv(4096)
                self.report_ended()
            if self.listener in ready:
                connection = self.listener.accept()[0]
                request, handles = self.receive(connection)
                pid = os.fork()
                if not pid:
                    self.running[pid] = connection
                    return self.become_the_command(request, handles)
                self.running[pid] = connection
                for handle in handles:
                    os.close(handle)

    def pass_signal_on(self, pid: int, connection: socket.socket) -> None:
        """Send the command the signals that its program got; SIGKILL if the program is gone."""
        try:
            numbers = connection.recv(16)
        except ConnectionError:
            numbers = b""
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)
        if not numbers:
            self.running.pop(pid).close()

    def report_ended(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            connection = self.running.pop(pid, None)
            if connection:
                try:
                    connection.sendall(HEADER.pack(status))
                except OSError:
                    pass  # the program is gone
                connection.close()

    def receive(self, connection: socket.socket) -> tuple[bytes, list[int]]:
        """Return the request of a program and the handles that came with it."""
        header, handles, *_ = socket.recv_fds(connection, HEADER.size, HANDLES)
        (size,) = HEADER.unpack(header)
        request = b""
        while len(request) < size:
            request += connection.recv(size - len(request))
        return request, handles

    def become_the_command(self, request: bytes, handles: list[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.argv, environ, mask, prelude = marshal.loads(request)
        for number, handle in enumerate(handles[:3]):
            os.dup2(handle, number)
        os.fchdir(handles[3])
        os.umask(mask)
        for item in (self.listener, self.wake, self.woken, *self.running.values()):
            item.close()
        for handle in handles:
            os.close(handle)
        os.environb.clear()
        os.environb.update(environ)
        time.tzset()
        if environ.get(b"PYTHONWARNINGS") == b"error":
            warnings.simplefilter("error")
        sys.stdin = open(0, closefd=False, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
        exec(prelude, {"__name__": "__main__"})


def load() -> None:
    """Import the modules of Quaid that commands use."""
    import quaid

    for module in pkgutil.walk_packages(quaid.__path__, "quaid."):
        if not module.name.startswith(NOT_LOADED):
            importlib.import_module(module.name)
    atexit._clear()  # a command with exit callbacks ends more slowly
    gc.collect()
    gc.freeze()


def main() -> int:
    from quaid.__main__ import main as run_command

    load()
    server = Server(sys.argv[1])
    sys.stdout.write("\n")
    sys.stdout.flush()
    server.serve()
    return run_command()


if __name__ == "__main__":
    sys.exit(main())

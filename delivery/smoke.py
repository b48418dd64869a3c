"""One short journey through a Quaid that was delivered: `python delivery/smoke.py WHAT PROGRAM`.

It knows nothing of the source: it starts a program with an empty environment, as on a new machine, and looks at what
comes back. `make dist` and `make binary` end with it.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from typing import Any

SKILLS = 10
OF_THE_C_LIBRARY = (
    "m.so.6",
    "pthread.so.0",
    "dl.so.2",
    "rt.so.1",
    "util.so.1",
    "resolv.so.2",
    "nss_files.so.2",
)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "smoke", "version": "1"},
    },
}
PAGE = "# Tidal battery\n\nThe tide charges it twice a day.\n"


class Journey:
    def __init__(self, program: list[str], home: str, root: str = "") -> None:
        self.program, self.home, self.root = program, home, root
        # Nothing but a home: no PATH, on which a Python could be found.
        self.environ = {"HOME": home.removeprefix(root), "PATH": ""}

    def run(self, *words: str, text: str = "", status: int = 0) -> str:
        done = subprocess.run(
            [*self.program, *words],
            input=text,
            capture_output=True,
            text=True,
            env=self.environ,
            cwd=self.home,
            timeout=300,
        )
        if done.returncode != status:
            sys.exit(f"quaid {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *words: str, text: str = "", status: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", text=text, status=status))


def main() -> None:
    what, program = sys.argv[1], [os.path.abspath(sys.argv[2]), *sys.argv[3:]]
    with tempfile.TemporaryDirectory() as home:
        journey = Journey(program, home)
        memory(journey)
        parts(journey)
        web(journey)
        start = measured(journey)
    if what == "binary":
        check_hash(program[0])
        cleaned(program)
        bare(program[0])
    print(f"{what}: a memory made, read, searched, asked and served; quaid version takes {start:.0f} ms CPU")


def memory(journey: Journey) -> None:
    journey.run("init")
    assert journey.json("put", "concepts/tidal-battery", text=PAGE)["version"] == 1
    assert journey.run("get", "concepts/tidal-battery").endswith(PAGE)
    hits = journey.json("search", "tide")["hits"]
    assert [hit["slug"] for hit in hits] == ["concepts/tidal-battery"]
    journey.run("embed")
    answer = journey.json("query", "power from the sea")  # words alone would not find it
    assert answer["results"][0]["slug"] == "concepts/tidal-battery", answer
    assert journey.json("validate")["violations"] == []
    journey.run("notebook", "init")
    journey.run("remember", "Sarah prefers email to phone")
    assert "Sarah" in journey.run("recall", "how to reach Sarah")
    called = journey.run("call", "memory_get", '{"slug": "concepts/tidal-battery"}')
    assert json.loads(called)["title"] == "Tidal battery"
    served = json.loads(journey.run("serve", text=json.dumps(INITIALIZE) + "\n").splitlines()[0])
    assert served["result"]["serverInfo"]["name"] == "quaid"
    proof = journey.json("forget", "concepts/tidal-battery", "--yes")  # starts a process of the same Python
    assert proof, proof
    journey.run("get", "concepts/tidal-battery", status=3)


def parts(journey: Journey) -> None:
    """What has to be carried along beside the code."""
    assert len(journey.json("skills", "list")["skills"]) == SKILLS
    lisp = journey.json("kb", "emacs-file")["path"]
    with open(journey.root + lisp, encoding="utf-8") as file:
        assert "ai-kb" in file.read()
    for shell in ("bash", "zsh", "fish"):
        assert "collection" in journey.run("completion", shell)
    assert journey.run("help", "--man").startswith('.\\"')


def web(journey: Journey) -> None:
    """Pages with their assets, out of a process that is asked to end afterwards."""
    served = subprocess.Popen(
        [*journey.program, "web", "--no-open", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=journey.environ,
        cwd=journey.home,
    )
    try:
        assert served.stdout is not None
        address = ""
        for line in served.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                address = found[0]
                break
        assert address, "quaid web said no address"
        with open(journey.json("token", "list")["owner_file"], encoding="ascii") as file:
            token = file.read().strip()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.addheaders = [("Authorization", f"Bearer {token}")]
        with opener.open(address + "/", timeout=60) as answer:
            page = answer.read().decode()
        assert answer.status == 200
        assert "<html" in page
        assets = re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js)[^"]*)"', page)
        assert assets, page[:2000]
        for asset in assets:
            with opener.open(address + asset, timeout=60) as answer:
                assert len(answer.read()) > 100, asset
    finally:
        served.terminate()
        served.wait(timeout=60)


def cleaned(program: list[str]) -> None:
    """A cache from which a cleaner took a file without which no Python starts."""
    with tempfile.TemporaryDirectory() as home:
        journey = Journey(program, home)
        journey.run("version")
        for place, _, names in os.walk(os.path.join(home, ".cache")):
            if os.path.basename(place) == "encodings":
                for name in names:
                    os.remove(os.path.join(place, name))
        journey.run("version")


def bare(program: str) -> None:
    """The same on a machine that has nothing but a C library: no Python, no shell, no network."""
    tools = [shutil.which(name) for name in ("unshare", "chroot", "mount", "sh", "ldd")]
    if os.geteuid() != 0 or not all(tools):
        print("binary: not tried on a bare machine, for only root can make one (unshare, chroot, mount)")
        return
    with tempfile.TemporaryDirectory() as root:
        for name in ("home", "proc", "dev", "tmp"):
            os.mkdir(os.path.join(root, name))
        shutil.copy(program, os.path.join(root, "quaid"))
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found = set(re.findall(r"(/\S+\.so\S*)", told))
        near = os.path.dirname(next(path for path in found if "libc.so" in path))
        # The C library is in these parts on older systems, and in one on newer ones.
        found |= {os.path.join(near, f"lib{name}") for name in OF_THE_C_LIBRARY}
        for path in filter(os.path.exists, found):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.realpath(path), root + path)
        inside = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /quaid "$@"'
        path = f"export PATH={os.path.dirname(str(tools[2]))}:{os.path.dirname(str(tools[1]))}; "
        command = [str(tools[0]), "--net", "--mount", str(tools[3]), "-c", path + inside, root]
        probe = subprocess.run([*command, "version"], capture_output=True, text=True, env={"HOME": "/home"})
        if "mount" in probe.stderr or "unshare" in probe.stderr:
            print(f"binary: not tried on a bare machine ({probe.stderr.strip()})")
            return
        journey = Journey(command, os.path.join(root, "home"), root)
        memory(journey)
        parts(journey)
    print("binary: the same on a bare machine: no Python, no shell, no network, no environment")


def measured(journey: Journey, times: int = 5) -> float:
    def used() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    before = used()
    for _ in range(times):
        journey.run("version")
    return (used() - before) / times * 1000


def check_hash(path: str) -> None:
    with open(path + ".sha256", encoding="ascii") as file:
        digest, name = file.read().split()
    with open(path, "rb") as data:
        assert hashlib.file_digest(data, "sha256").hexdigest() == digest
    assert name == os.path.basename(path)


if __name__ == "__main__":
    main()

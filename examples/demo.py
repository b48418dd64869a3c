"""The main job in one go, for `make demo`: a new memory from the sample vault, a search, a page, the tools."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def quaid(*words: str, show: bool = True) -> str:
    """Run a command as a person would, and show it."""
    if show:
        print(f"\n$ quaid {' '.join(repr(word) if ' ' in word else word for word in words)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "quaid", *words], stdout=subprocess.PIPE, text=True, check=True
    )
    if show:
        print(done.stdout, end="", flush=True)
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, QUAID_DB=os.path.join(folder, "memory.db"))
        quaid("init")
        quaid("import", os.path.join(HERE, "vault"))
        quaid("search", "who moved to Oslo", "--limit", "3")
        first = json.loads(quaid("search", "who moved to Oslo", "--json", show=False))["hits"][0]["slug"]
        quaid("get", first)
        quaid("stats")
        print("\n$ quaid --tools-json")
        tools = json.loads(quaid("--tools-json", show=False))["tools"]
        for tool in tools:
            print(f"  {tool['name']:22} {tool['description'].splitlines()[0]}")
    print("\nThat was a memory in a temporary folder. Make your own: quaid init; quaid import YOUR-NOTES")


if __name__ == "__main__":
    main()

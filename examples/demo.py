"""The main job in one go, for `make demo`: a sample memory, ten questions to it, and the tools that agents see."""

import json
import os
import subprocess
import sys
import tempfile


def quaid(*words: str) -> str:
    """Run a command as a person would, in a home of its own, and return what it prints."""
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "HOME": home}
        command = [sys.executable, "-m", "quaid", *words]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environ).stdout


def main() -> None:
    print("$ quaid demo --all", flush=True)
    print(quaid("demo", "--all"))
    print("$ quaid --tools-json")
    for tool in json.loads(quaid("--tools-json"))["tools"]:
        print(f"  {tool['name']:22} {tool['description'].splitlines()[0]}")


if __name__ == "__main__":
    main()

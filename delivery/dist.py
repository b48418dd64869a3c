"""`make dist`: a wheel and a source archive, each tried out, with their SHA-256 beside them.

The wheel is installed into a fresh environment and goes through the journey of smoke.py; a wheel that is built out of
the source archive has to hold the same files as the one that is built out of this tree.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CARRIED = (
    "quaid/py.typed",
    "quaid/signatures.pyi",
    "quaid/emacs/ai-kb.el",
    "quaid/kb/agent_contract.org",
    "quaid/kb/org_roam_sync.el",
    "quaid/storage/schema.sql",
    "quaid/model/secret_rules.toml",
    "quaid/model/english.toml",
    "quaid/notebook/routing_rules.toml",
    "quaid/notebook/routing_words.txt",
    "quaid/notebook/routing_weights.txt",
    "quaid/clients/kb_instructions.md",
    "quaid/skills/setup/SKILL.md",
    "quaid/operations/demo_memory.txt",
    "quaid/cli/demo.toml",
    "quaid/cli/generated/quaid.bash",
    "data/share/man/man1/quaid.1",
    "data/share/man/man1/ai-kb.1",
    "data/share/bash-completion/completions/quaid",
    "data/share/bash-completion/completions/ai-kb",
    "data/share/zsh/site-functions/_quaid",
    "data/share/fish/vendor_completions.d/quaid.fish",
    "data/share/fish/vendor_completions.d/ai-kb.fish",
)
FOLDERS = ("quaid/web/templates/", "quaid/web/static/", "quaid/skills/")


def main() -> None:
    folder = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "dist"))
    wheel, source = build(folder)
    complete(wheel)
    with tempfile.TemporaryDirectory() as place:
        same(wheel, source, place)
        installed(wheel, place)
    for path in (wheel, source):
        sign(path)
        print(f"{path} and .sha256: {os.path.getsize(path) / 1e6:.1f} MB")


def build(folder: str) -> tuple[str, str]:
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith("quaid_memory-") and name.endswith((".whl", ".tar.gz", ".sha256")):
            os.remove(os.path.join(folder, name))
    _build("--wheel", "--sdist", "--outdir", folder, ROOT)
    names = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("quaid_memory-")]
    return next(name for name in names if name.endswith(".whl")), next(
        name for name in names if name.endswith(".tar.gz")
    )


def complete(wheel: str) -> None:
    """What is no Python, and easily left behind."""
    names = content(wheel)
    missing = [each for each in CARRIED if not any(name.endswith(each) for name in names)]
    missing += [folder for folder in FOLDERS if not any(name.startswith(folder) for name in names)]
    if missing:
        sys.exit(f"{wheel} lacks {', '.join(missing)}")


def same(wheel: str, source: str, place: str) -> None:
    """The wheel that the source archive gives has to be this one."""
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    unpacked = os.path.join(place, os.path.basename(source).removesuffix(".tar.gz"))
    again = os.path.join(place, "again")
    _build("--wheel", "--outdir", again, unpacked)
    one, other = content(wheel), content(os.path.join(again, os.path.basename(wheel)))
    different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if different:
        sys.exit(f"the source archive gives another wheel: {', '.join(different[:10])}")
    shutil.rmtree(unpacked)


def content(wheel: str) -> dict[str, str]:
    """Each file of a wheel with the hash of its bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {each: hashlib.sha256(archive.read(each)).hexdigest() for each in archive.namelist()}


def installed(wheel: str, place: str) -> None:
    environment = os.path.join(place, "environment")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = os.path.join(environment, "bin", "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True)
    program = os.path.join(environment, "bin", "quaid")
    subprocess.run([sys.executable, os.path.join(HERE, "smoke.py"), "wheel", program], check=True)


def sign(path: str) -> None:
    """Its SHA-256 beside a file, as `sha256sum --check` reads it."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with open(path + ".sha256", "w", encoding="ascii") as file:
        file.write(f"{digest}  {os.path.basename(path)}\n")


def _build(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "build", "--quiet", *words], check=True)


if __name__ == "__main__":
    main()

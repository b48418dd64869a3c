"""`make release`: sdist, wheel and executable built twice with the same bytes, a bill of materials, and checksums.

The second build starts from the unpacked sdist in another folder. The bill of materials is CycloneDX JSON from the
metadata of the packages that are in the executable, with Python and the libraries of the system beside them.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid
from datetime import UTC, datetime
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DISTRIBUTION = "quaid-memory"
STEPS = """
To publish {version}, a person does this. Nothing was uploaded.

1. Check that CI is green for {commit}, and that CHANGELOG.md has a section for {version}.
2. git tag -s v{version} {commit} && git push origin v{version}
3. Attach the files in {folder} to the release of that tag.
4. twine upload {folder}/{stem}*.whl {folder}/{stem}*.tar.gz
5. On another machine: pipx install {name}=={version} && quaid version

To repeat the build: check out the tag, then PIP_CONSTRAINT={constraints} make release
"""


def main() -> None:
    folder = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "dist"))
    commit = git("rev-parse", "--short", "HEAD")
    if git("status", "--porcelain", "--untracked-files=no"):
        print("The working tree has changes, so the files belong to no commit.", file=sys.stderr)
    environ = {
        **os.environ,
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"),
        "PYTHONHASHSEED": "0",
    }
    run(os.path.join(HERE, "dist.py"), folder, environ=environ)
    source = only(folder, ".tar.gz")
    names = [build_binary(ROOT, folder, environ), only(folder, ".whl"), source]
    run(os.path.join(HERE, "smoke.py"), "binary", names[0], environ=environ)
    moment = datetime.fromtimestamp(int(environ["SOURCE_DATE_EPOCH"]), UTC)
    build = os.path.join(ROOT, "build", "binary")
    bill = bill_of_materials(os.path.join(build, "installed"), moment)
    constraints_text = "".join(f"{item['name']}=={item['version']}\n" for item in bill["components"])
    bill["components"] += system_components(os.path.join(build, "box", "lib", "shared"))
    compare_with_second_build(names, source, environ)
    version = bill["metadata"]["component"]["version"]
    stem = f"{DISTRIBUTION.replace('-', '_')}-{version}"
    write(os.path.join(folder, f"{stem}.cdx.json"), json.dumps(bill, indent=2, sort_keys=True) + "\n")
    constraints = os.path.join(folder, f"{stem}.constraints.txt")
    write(constraints, constraints_text)
    paths = [*names, os.path.join(folder, f"{stem}.cdx.json"), constraints]
    write(os.path.join(folder, "SHA256SUMS"), checksums(paths))
    print(checksums(paths), end="")
    print(
        STEPS.format(
            version=version,
            commit=commit,
            folder=folder,
            stem=stem,
            name=DISTRIBUTION,
            constraints=constraints,
        )
    )


def compare_with_second_build(paths: list[str], source: str, environ: dict[str, str]) -> None:
    """Build again from the unpacked sdist, and exit with an error if a file has other bytes."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(source) as archive:
            archive.extractall(place, filter="data")
        root = os.path.join(place, os.path.basename(source).removesuffix(".tar.gz"))
        again = os.path.join(place, "again")
        run("-m", "build", "--quiet", "--wheel", "--sdist", "--outdir", again, root, environ=environ)
        build_binary(root, again, environ)
        different = [
            os.path.basename(path)
            for path in paths
            if digest(path) != digest(os.path.join(again, os.path.basename(path)))
        ]
    if different:
        sys.exit(f"a second build has other bytes: {', '.join(different)}")
    print(f"A second build from the sdist has the same bytes: {len(paths)} files.")


def build_binary(root: str, folder: str, environ: dict[str, str]) -> str:
    target = os.path.join(folder, "quaid")
    run(os.path.join(root, "delivery", "binary.py"), only(folder, ".whl"), target, environ=environ)
    return target


def bill_of_materials(installed: str, moment: datetime) -> dict[str, Any]:
    """Return the packages in a folder as a CycloneDX document. The same packages give the same document."""
    found = sorted(importlib.metadata.distributions(path=[installed]), key=lambda item: normal(item.name))
    components = [component(item) for item in found]
    known = {item["name"]: item["bom-ref"] for item in components}
    ours = next(item for item in components if item["name"] == DISTRIBUTION)
    dependencies = [
        {
            "ref": known[normal(item.name)],
            "dependsOn": sorted({known[name] for name in requirements(item) if name in known}),
        }
        for item in found
    ]
    text = json.dumps([components, dependencies], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**ours, "type": "application"},
        },
        "components": [item for item in components if item is not ours],
        "dependencies": dependencies,
    }


def system_components(shared: str) -> list[dict[str, Any]]:
    """Return Python and the libraries that the executable has from the machine that built it, as CycloneDX."""
    version = platform.python_version()
    purl = f"pkg:generic/python@{version}"
    python = {"type": "framework", "name": "python", "version": version, "purl": purl, "bom-ref": purl}
    libraries = [
        {
            "type": "library",
            "name": name,
            "bom-ref": f"library:{name}",
            "hashes": [{"alg": "SHA-256", "content": digest(os.path.join(shared, name))}],
        }
        for name in sorted(os.listdir(shared))
    ]
    return [python, *libraries]


def component(package: importlib.metadata.Distribution) -> dict[str, Any]:
    name, about = normal(package.name), package.metadata.json
    result: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": package.version,
        "purl": f"pkg:pypi/{name}@{package.version}",
        "bom-ref": f"pkg:pypi/{name}@{package.version}",
    }
    if summary := about.get("summary"):
        result["description"] = summary
    if expression := about.get("license_expression"):
        result["licenses"] = [{"expression": expression}]
    elif (text := str(about.get("license", ""))) and "\n" not in text:
        result["licenses"] = [{"license": {"name": text}}]
    return result


def requirements(package: importlib.metadata.Distribution) -> set[str]:
    """Return the names of the packages that a package needs without extras."""
    lines = [line for line in package.requires or () if "extra ==" not in line]
    return {normal(match[0]) for line in lines if (match := re.match(r"[\w.-]+", line))}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def checksums(paths: list[str]) -> str:
    return "".join(f"{digest(path)}  {os.path.basename(path)}\n" for path in sorted(paths))


def digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def only(folder: str, ending: str) -> str:
    (name,) = (
        name for name in os.listdir(folder) if name.endswith(ending) and name.startswith("quaid_memory-")
    )
    return os.path.join(folder, name)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def git(*words: str) -> str:
    program = shutil.which("git") or sys.exit("make release needs git")
    return subprocess.run(
        [program, *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def run(*words: str, environ: dict[str, str]) -> None:
    """Run a script, which prints what it lacks if it fails."""
    if status := subprocess.run([sys.executable, *words], env=environ).returncode:
        sys.exit(
            f"make release: {' '.join(map(os.path.basename, words[:2]))} failed (exit {status}); see above"
        )


if __name__ == "__main__":
    main()

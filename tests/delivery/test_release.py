"""What `make release` writes beside the packages."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from delivery import release

MOMENT = datetime(2026, 4, 25, tzinfo=UTC)


def install(folder: Path, name: str, version: str, *needs: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", "License-Expression: MIT"]
    (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {each}" for each in needs)]) + "\n")


def test_bill_of_materials_lists_each_package_with_what_it_needs(tmp_path: Path) -> None:
    install(tmp_path, "quaid-memory", "1.2.3", "Jinja2>=3.1", 'psycopg>=3; extra == "hub"')
    install(tmp_path, "Jinja2", "3.1.6")
    bill = release.bill_of_materials(str(tmp_path), MOMENT)
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/quaid-memory@1.2.3"
    assert [item["purl"] for item in bill["components"]] == ["pkg:pypi/jinja2@3.1.6"]
    needed = {item["ref"]: item["dependsOn"] for item in bill["dependencies"]}
    assert needed["pkg:pypi/quaid-memory@1.2.3"] == ["pkg:pypi/jinja2@3.1.6"]
    assert release.bill_of_materials(str(tmp_path), MOMENT) == bill


def test_libraries_of_the_system_are_listed_with_their_hash(tmp_path: Path) -> None:
    (tmp_path / "libz.so.1").write_bytes(b"library")
    python, library = release.system_components(str(tmp_path))
    assert python["name"] == "python"
    assert library["name"] == "libz.so.1"
    assert library["hashes"] == [{"alg": "SHA-256", "content": sha256(b"library").hexdigest()}]


def test_failed_step_ends_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        release.run("-c", "raise SystemExit('make binary needs zlib')", environ={})
    assert "failed (exit 1); see above" in str(ended.value)
    assert capfd.readouterr().err == "make binary needs zlib\n"

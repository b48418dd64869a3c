"""The libraries that are packed into the one executable."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from delivery.binary import remove_absolute_runpath
from tests.delivery.stub_archive import COMPILER

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which(COMPILER) or not shutil.which("readelf"),
    reason="needs Linux, a C compiler and readelf",
)


def library(folder: Path, runpath: str) -> Path:
    source, target = folder / "answer.c", folder / "answer.so"
    source.write_text("int answer(void) { return 42; }\n")
    options = ["-shared", "-fPIC", f"-Wl,--enable-new-dtags,-rpath,{runpath}"]
    subprocess.run([COMPILER, *options, source, "-o", target], check=True)
    return target


def runpath(path: Path) -> bool:
    shown = subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True, check=True)
    assert not shown.stderr
    return "RUNPATH" in shown.stdout


def test_library_forgets_the_folders_of_the_machine_that_built_it(tmp_path: Path) -> None:
    built = library(tmp_path, "/home/builder/lib")
    assert runpath(built)
    remove_absolute_runpath(str(built))
    assert not runpath(built)
    assert ctypes.CDLL(str(built)).answer() == 42


def test_library_keeps_a_folder_beside_it(tmp_path: Path) -> None:
    built = library(tmp_path, "$ORIGIN/../near.libs")
    before = built.read_bytes()
    remove_absolute_runpath(str(built))
    assert built.read_bytes() == before


def test_file_that_is_no_library_is_left_alone(tmp_path: Path) -> None:
    script = tmp_path / "libc.so"
    script.write_text("/* GNU ld script */\n")
    remove_absolute_runpath(str(script))
    assert script.read_text() == "/* GNU ld script */\n"

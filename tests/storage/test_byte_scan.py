"""Bytes in files."""

from pathlib import Path

import pytest

from quaid.storage import files as durable_files


@pytest.mark.parametrize("scan", [durable_files.scan_files, durable_files.scan_files_in_subprocess])
def test_pieces_are_found_wherever_they_are(tmp_path: Path, scan: object) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.write_bytes(b"\0\xffneedle\0" + "é".encode())
    assert callable(scan)
    assert scan([str(here), str(there)], ["needle", "é", "hay"]) == [(str(here), "needle"), (str(here), "é")]


def test_a_piece_across_two_blocks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_files, "SCAN_BLOCK_BYTES", 7)
    file = tmp_path / "file"
    file.write_bytes(b"01234needle89")
    assert durable_files.scan_files([str(file)], ["needle", "89", "0123456"]) == [
        (str(file), "needle"),
        (str(file), "89"),
    ]

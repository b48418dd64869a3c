"""What a walk finds, and where it refuses to go."""

import os
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from quaid.errors import FileTrouble, NotFound
from quaid.folders import scanner
from quaid.folders.scanner import LARGEST_FILE, Folder
from quaid.model.sync_plan import ScannedFile, SkippedEntry, path_key

Fill = Callable[[dict[str, str | bytes]], Path]


def walk(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kinds of files by path, and the reasons of skipped entries by path."""
    with Folder(str(root)) as folder:
        entries = list(folder.walk())
    results: dict[str, str] = {entry.path: entry.kind for entry in entries if isinstance(entry, ScannedFile)}
    return results, {entry.path: entry.reason for entry in entries if isinstance(entry, SkippedEntry)}


def test_files_come_sorted_and_by_kind(vault: Fill) -> None:
    result, left_out = walk(
        vault(
            {
                "b.md": "",
                "a/z.MD": "",
                "a/index.md": "",
                "a/.raw/z.json": "{}",
                "INDEX.md": "",
                "schema.md": "",
                "readme.md": "",
                "c.markdown": "",
            }
        )
    )
    assert list(result.items()) == [
        ("INDEX.md", "special"),
        ("a/.raw/z.json", "sidecar"),
        ("a/index.md", "page"),
        ("a/z.MD", "page"),
        ("b.md", "page"),
        ("c.markdown", "page"),
        ("readme.md", "special"),
        ("schema.md", "special"),
    ]
    assert left_out == {}


def test_everything_else_is_left_out_for_a_reason(vault: Fill) -> None:
    root = vault(
        {
            ".git/config": "",
            ".obsidian/x.md": "",
            ".trash/x.md": "",
            "node_modules/x.md": "",
            "photo.jpg": "",
            ".secret.md": "",
            ".raw/notes.txt": "",
            ".raw/deeper/x.json": "",
        }
    )
    os.mkfifo(root / "pipe.md")
    (root / "link.md").symlink_to("photo.jpg")
    result, left_out = walk(root)
    assert result == {}
    assert left_out == {
        ".git/": scanner.HIDDEN_FOLDER,
        ".obsidian/": scanner.HIDDEN_FOLDER,
        ".trash/": scanner.HIDDEN_FOLDER,
        "node_modules/": scanner.TOOL_FOLDER,
        "photo.jpg": scanner.OTHER_KIND,
        ".secret.md": scanner.HIDDEN_FILE,
        ".raw/notes.txt": scanner.OTHER_KIND,
        ".raw/deeper/": scanner.HIDDEN_FOLDER,
        "pipe.md": scanner.NOT_A_FILE,
        "link.md": scanner.SYMLINK,
    }


def test_links_are_never_followed(vault: Fill, tmp_path: Path) -> None:
    root = vault({"a/page.md": "# In"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("# Out")
    (root / "loop").symlink_to(root)
    (root / "a" / "up").symlink_to("..")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "secret.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "nowhere.md").symlink_to("missing")
    result, left_out = walk(root)
    assert result == {"a/page.md": "page"}
    assert left_out == dict.fromkeys(["a/up", "loop", "nowhere.md", "out", "secret.md"], scanner.SYMLINK)


def test_a_folder_that_becomes_a_link_is_not_read_through(vault: Fill, tmp_path: Path) -> None:
    root = vault({"a/page.md": "# In"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "page.md").write_text("# Out")
    with Folder(str(root)) as folder:
        assert folder.read("a/page.md") == b"# In"
        os.rename(root / "a", root / "b")
        (root / "a").symlink_to(tmp_path / "outside")
        folder.read("b/page.md")
        with pytest.raises(OSError, match=r"directory|symbolic"):
            folder.read("a/page.md")
        (root / "b" / "page.md").unlink()
        (root / "b" / "page.md").symlink_to(tmp_path / "outside" / "page.md")
        with pytest.raises(OSError, match="symbolic"):
            folder.read("b/page.md")


def test_a_pipe_in_place_of_a_file_does_not_hang(vault: Fill) -> None:
    root = vault({})
    os.mkfifo(root / "page.md")
    with Folder(str(root)) as folder, pytest.raises(OSError, match=scanner.NOT_A_FILE):
        folder.read("page.md")


def test_a_failed_read_leaves_no_handle_open(vault: Fill) -> None:
    root = vault({"a/b/page.md": "x"})
    with Folder(str(root)) as folder:
        for _ in range(50):
            with pytest.raises(FileNotFoundError):
                folder.read("a/b/c/page.md")
            folder.read("a/b/page.md")
    assert not open_below(root)


def open_below(root: Path) -> list[str] | None:
    """What of a folder this process has open, whatever else it has; None where the system does not tell."""
    if not os.path.isdir("/proc/self/fd"):
        return None
    results = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            results.append(os.readlink(f"/proc/self/fd/{handle}"))
    return [path for path in results if path.startswith(str(root))]


def test_a_file_is_read_up_to_one_byte_more_than_allowed(vault: Fill) -> None:
    root = vault({"a.md": b"x" * (LARGEST_FILE + 1000), "b.md": b"x" * 1000, "c.md": b""})
    with Folder(str(root)) as folder:
        assert [len(folder.read(name)) for name in ("a.md", "b.md", "c.md")] == [LARGEST_FILE + 1, 1000, 0]


def test_a_name_that_is_not_utf_8_is_reported(vault: Fill) -> None:
    root = vault({"a.md": ""})
    with open(os.fsencode(root) + b"/caf\xe9.md", "w"):
        pass
    result, left_out = walk(root)
    assert list(result) == ["a.md"]
    assert left_out == {"caf\\xe9.md": scanner.BAD_NAME}


def test_two_spellings_of_an_accent_have_one_key(vault: Fill) -> None:
    composed, decomposed = "Käse.md", unicodedata.normalize("NFD", "Käse.md")
    assert composed != decomposed
    assert path_key(composed) == path_key(decomposed)


def test_folders_without_end_are_left_out(tmp_path: Path) -> None:
    root = place = tmp_path / "deep"
    for _ in range(scanner.MAX_DEPTH + 3):
        place = place / "d"
    place.mkdir(parents=True)
    result, left_out = walk(root)
    assert result == {}
    assert list(left_out.values()) == [scanner.TOO_DEEP]


def test_unreadable_files_are_reported(vault: Fill) -> None:
    root = vault({"a/page.md": "", "b.md": ""})
    (root / "a").chmod(0)
    if os.access(root / "a", os.R_OK):
        pytest.skip("the superuser may read everything")
    try:
        assert walk(root) == ({"b.md": "page"}, {"a/": scanner.UNREADABLE})
    finally:
        (root / "a").chmod(0o700)


def test_an_unreadable_root_is_reported(vault: Fill) -> None:
    root = vault({"a.md": ""})
    root.chmod(0)
    try:
        if os.access(root, os.R_OK):
            pytest.skip("the superuser may read everything")
        with pytest.raises(FileTrouble, match="check its permissions"):
            Folder(str(root))
    finally:
        root.chmod(0o700)


def test_root_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no folder"):
        Folder(str(tmp_path / "missing"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileTrouble, match="is a file"):
        Folder(str(tmp_path / "file"))
    with pytest.raises(FileTrouble, match="NUL"):
        Folder("a\0b")


def test_the_root_itself_may_be_a_link(vault: Fill, tmp_path: Path) -> None:
    root = vault({"a.md": ""})
    (tmp_path / "link").symlink_to(root)
    assert walk(tmp_path / "link")[0] == {"a.md": "page"}

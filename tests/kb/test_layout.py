"""Files of a knowledge base are listed and read without following symlinks."""

import os
from pathlib import Path

import pytest

from quaid.kb import layout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.org").write_text("Outside.\n")
    root = tmp_path / "kb"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.org").write_text("At the top.\n")
    (root / "sub" / "a.org").write_text("Below.\n")
    (root / "sub" / "deep" / "a.org").write_text("Deep below.\n")
    return root


def test_files_are_found_in_every_folder_in_the_order_of_their_paths(root: Path) -> None:
    assert [path for path, _ in layout.walk_store(str(root))] == ["a.org", "sub/a.org", "sub/deep/a.org"]


def test_reading_one_file_gives_the_same_as_scanning_all(root: Path) -> None:
    for path, signature in layout.walk_store(str(root)):
        assert layout.stat_file(str(root), path) == signature
    assert layout.read_file(str(root), "sub/deep/a.org") == b"Deep below.\n"


def test_the_store_itself_may_be_a_link(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    assert layout.walk_store(str(root.parent / "link")) == layout.walk_store(str(root))
    assert layout.read_file(str(root.parent / "link"), "sub/a.org") == b"Below.\n"


@pytest.mark.parametrize("path", ["sub/a.org", "sub/deep/a.org"])
def test_a_folder_on_the_way_that_is_a_link_leads_nowhere(root: Path, path: str) -> None:
    folder = root / os.path.dirname(path)
    folder.rename(root.parent / "aside")
    folder.symlink_to(root.parent / "outside")
    assert path not in [path for path, _ in layout.walk_store(str(root))]
    assert layout.stat_file(str(root), path) is None
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        layout.read_file(str(root), path)


def test_symlinks_and_missing_files_are_not_in_the_knowledge_base(root: Path) -> None:
    (root / "link.org").symlink_to(root.parent / "outside" / "a.org")
    for path in ("link.org", "missing.org", "no/such.org", "a.org/below.org"):
        assert layout.stat_file(str(root), path) is None
        with pytest.raises(OSError, match=r"Errno"):
            layout.read_file(str(root), path)


def test_no_handle_stays_open(root: Path) -> None:
    def handles() -> int:
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("handles cannot be counted here")
    before = handles()
    for _ in range(20):
        layout.walk_store(str(root))
        for path in ("sub/deep/a.org", "no/such.org", "sub/missing.org", "a.org/below.org"):
            layout.stat_file(str(root), path)
            try:
                layout.read_file(str(root), path)
            except OSError:
                pass
    assert handles() == before

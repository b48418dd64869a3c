"""Files of other programs, changed so that nothing is lost."""

import os
from pathlib import Path

import pytest

from quaid import clients
from quaid.clients import ConfigChange
from quaid.errors import ClientFile

NOW = "2026-04-25T12:00:00Z"


def test_a_change_leaves_the_old_text_beside_it_with_the_same_mode(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"old\r\n")
    path.chmod(0o640)
    backup = clients.write_config(ConfigChange(str(path), clients.read_config(str(path)), "new\r\n"), NOW)
    assert path.read_bytes() == b"new\r\n"
    assert backup is not None
    assert Path(backup).read_bytes() == b"old\r\n"
    assert Path(backup).name == "settings.json.20260425T120000Z.quaid-backup"
    assert {os.stat(item).st_mode & 0o777 for item in (path, backup)} == {0o640}
    assert clients.write_config(ConfigChange(str(path), "new\r\n", "newer"), NOW) != backup
    assert len(list(tmp_path.iterdir())) == 3


def test_a_new_file_is_private_and_has_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "mcp.json"
    assert clients.read_config(str(path)) is None
    assert clients.write_config(ConfigChange(str(path), None, "{}"), NOW) is None
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("{}", 0o600)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("old")
    link = tmp_path / "mcp.json"
    link.symlink_to(kept)
    clients.write_config(ConfigChange(str(link), "old", "new"), NOW)
    assert link.is_symlink()
    assert kept.read_text() == "new"


def test_a_file_that_changed_in_between_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("theirs")
    with pytest.raises(ClientFile, match="just now"):
        clients.write_config(ConfigChange(str(path), "old", "new"), NOW)
    assert path.read_text() == "theirs"
    assert not [item for item in tmp_path.iterdir() if "quaid-backup" not in item.name and item != path]


def test_binary_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")  # reading it would wait for ever
    (tmp_path / "null.json").symlink_to(os.devnull)
    for name in ("latin.json", "folder.json", "pipe.json", "null.json"):
        with pytest.raises(ClientFile):
            clients.read_config(str(tmp_path / name))


def test_backups_of_one_second_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for text in ("one", "two", "three"):
        before = clients.read_config(str(path))
        clients.write_config(clients.ConfigChange(str(path), before, text), "2026-04-25T12:00:00Z")
    newest = clients.newest_backup(str(path))
    assert newest
    assert Path(newest).read_text() == "two"
    assert [Path(backup).read_text() for backup in clients.list_backups(str(path))] == ["two", "one"]
    assert clients.text_before_install(str(path), lambda text: text == "two") == "one"
    assert clients.text_before_install(str(tmp_path / "missing"), bool) == ""

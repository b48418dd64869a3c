"""Folders in a setting."""

import pytest

from quaid.errors import InvalidArgument
from quaid.model.plain_text import check_folder_list, split_folder_list


@pytest.mark.parametrize(
    ("value", "folders"),
    [
        ("", []),
        ("~/a:/b/c", ["~/a", "/b/c"]),
        ("~:/", ["~", "/"]),
        ("/a;/b\n /c ", ["/a", "/b", "/c"]),
        ("C:\\x:D:/y", ["C:\\x", "D:/y"]),
        ("/with space/é", ["/with space/é"]),
    ],
)
def test_folders_are_parted_by_colons(value: str, folders: list[str]) -> None:
    assert split_folder_list(value) == folders
    check_folder_list("name", value)


@pytest.mark.parametrize("value", ["a", "./a", "/a:b/c", "~bob/x"])
def test_relative_folder_is_refused(value: str) -> None:
    with pytest.raises(InvalidArgument):
        check_folder_list("name", value)

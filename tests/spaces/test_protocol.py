"""Values of the protocol between devices and hubs as JSON."""

import json
from typing import Any

import pytest

from quaid.errors import InvalidArgument
from quaid.spaces.protocol import (
    REQUESTS,
    Change,
    ChangePage,
    Device,
    InvitationLink,
    Push,
    PushResult,
    Space,
    format_link,
    from_json,
    hash_code,
    new_code,
    parse_link,
    to_json,
    types_of,
)

CHANGE = Change(7, "u1", 2, 1, "ab", b"\0\xff{}", "people/mira", False, False, "ana", "", "d1", "2026-11-01")
DEVICE = Device("d1", "laptop", "ana", "", "owner", "2026-11-01", None, None, None, -1)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (ChangePage, ChangePage((CHANGE, CHANGE._replace(seq=8)), 9, True)),
        (list[PushResult], [PushResult("u1", "stored", 1, 2), PushResult("u2", "stale", head=CHANGE)]),
        (list[Push], [Push("u1", 0, "ab", b"{}", "people/mira", additions_only=True)]),
        (list[Device], [DEVICE]),
        (Space | None, None),
        (list[tuple[bytes, bytes]], [(b"hash", b"\x80vector")]),
        (list[str], ["é", "日本"]),
    ],
)
def test_values_survive_json(hint: Any, value: Any) -> None:
    assert from_json(hint, json.loads(json.dumps(to_json(value))), "value") == value


@pytest.mark.parametrize(
    ("hint", "value", "problem"),
    [
        (int, True, "whole number"),
        (int, 1.5, "whole number"),
        (int, 2**63, "whole number"),
        (float, float("inf"), "number"),
        (bool, 1, "true or false"),
        (str, "\0", "text"),
        (str, "\ud800", "text"),
        (bytes, "not base64!", "base64"),
        (bytes, None, "base64"),
        (types_of("set_member")["right"], "root", "one of read, propose"),
        (types_of("set_member")["right"], ["read"], "one of read, propose"),
        (list[str], {"0": "a"}, "list"),
        (list[tuple[bytes, bytes]], [["YQ=="]], "list of 2"),
        (Push, [], "object"),
        (Push, {"uuid": "u1"}, "is missing"),
        (type(None), {}, "null"),
    ],
)
def test_wrong_values_are_refused(hint: Any, value: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        from_json(hint, value, "value")


def test_an_error_names_the_field() -> None:
    with pytest.raises(InvalidArgument, match=r"^pushes\.base: "):
        from_json(list[Push], [{**to_json(Push("u1", 0, "", b"", "")), "base": "1"}], "pushes")


def test_fields_of_newer_programs_are_ignored_and_missing_ones_have_their_default() -> None:
    value = {"uuid": "u1", "status": "stored", "colour": "green"}
    assert from_json(PushResult, value, "value") == PushResult("u1", "stored")


def test_all_types_of_requests_can_be_read() -> None:
    for request in REQUESTS:
        for hint in types_of(request).values():
            with pytest.raises(InvalidArgument):
                from_json(hint, object(), "value")


@pytest.mark.parametrize(
    "link",
    [
        InvitationLink("https://hub.example.org", "AAAA-BBBB-CCCC"),
        InvitationLink("http://127.0.0.1:4399", "AAAA-BBBB-CCCC", "c2VhbGVk"),
    ],
)
def test_links_survive_formatting(link: InvitationLink) -> None:
    assert parse_link(format_link(link)) == link


def test_a_plain_address_is_a_link_without_a_code() -> None:
    assert parse_link(" https://hub.example.org/ ") == InvitationLink("https://hub.example.org", "")


def test_codes_are_compared_without_case_spaces_and_dashes() -> None:
    code = new_code()
    assert len(code) == 14
    assert hash_code(code.lower().replace("-", " ")) == hash_code(code)
    assert hash_code(new_code()) != hash_code(code)

"""Tokens: shown once, kept as a hash, gone when revoked."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.errors import AlreadyExists, FileTrouble, InvalidArgument, MissingDatabase, NotFound
from quaid.operations import dispatch, service

MOMENT = 1_000_000.0


def call(brain: Brain, command: str, **given: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


def scope_of(settings: Settings, token: str) -> str | None:
    grant = service.TokenReader(settings).find(token, time.time())
    return grant.scope if grant and not grant.is_expired else None


def everything_in(folder: str) -> bytes:
    result = b""
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                result += file.read()
    return result


def test_a_token_is_shown_once_and_kept_as_a_hash(brain: Brain) -> None:
    made = call(brain, "token create", name="phone")
    assert made.scope == "read"
    assert service.TOKEN_PATTERN.fullmatch(made.token)
    assert made.token.encode() not in everything_in(brain.settings.home)
    (listed,) = call(brain, "token list").tokens
    assert (listed.name, listed.scope) == ("phone", "read")
    assert not hasattr(listed, "token")


def test_two_tokens_are_never_the_same(brain: Brain) -> None:
    assert len({call(brain, "token create", name=f"t{n}").token for n in range(20)}) == 20


def test_files_are_for_their_owner_only(brain: Brain) -> None:
    call(brain, "token create", name="phone")
    service.owner_token(brain.settings)
    service.login_code(brain.settings, 4321, MOMENT)
    seen = 0
    for place, _, names in os.walk(os.path.join(brain.settings.home, "web")):
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
        for name in names:
            seen += 1
            assert stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) == 0o600
    assert seen == 3


def test_scopes(brain: Brain) -> None:
    owner = service.owner_token(brain.settings)
    phone = call(brain, "token create", name="phone", scope="read").token
    laptop = call(brain, "token create", name="laptop", scope="write").token
    tokens = [scope_of(brain.settings, item) for item in (owner, phone, laptop, "", "qd_x", "é\ud800")]
    assert tokens == ["owner", "read", "write", None, None, None]
    call(brain, "token revoke", name="phone")
    assert scope_of(brain.settings, phone) is None
    assert scope_of(brain.settings, laptop) == "write"


def test_a_token_tells_when_it_was_last_used(brain: Brain) -> None:
    phone = call(brain, "token create", name="phone").token
    call(brain, "token create", name="laptop")
    before = time.time()
    assert scope_of(brain.settings, phone) == "read"
    used = {token.name: token.last_used_at for token in call(brain, "token list").tokens}
    assert used["laptop"] is None
    assert used["phone"] is not None
    assert abs(datetime.fromisoformat(used["phone"]).timestamp() - before) < 120


def test_hash_is_not_a_token(brain: Brain) -> None:
    made = call(brain, "token create", name="phone").token
    assert scope_of(brain.settings, service.token_hash(made)) is None


def test_another_memory_has_other_tokens(brain: Brain, settings: Settings) -> None:
    phone = call(brain, "token create", name="phone").token
    other = settings._replace(db_path=settings.db_path + "2")
    assert scope_of(other, phone) is None
    assert service.owner_token(other) != service.owner_token(settings)


def test_names(brain: Brain) -> None:
    for name in ("", "../x", "A", "x" * 41, "a b", ".x", "a/b"):
        with pytest.raises(InvalidArgument):
            call(brain, "token create", name=name)
    call(brain, "token create", name="phone")
    with pytest.raises(AlreadyExists):
        call(brain, "token create", name="phone")
    with pytest.raises(NotFound):
        call(brain, "token revoke", name="laptop")


def test_a_memory_that_is_not_there_needs_no_token(settings: Settings) -> None:
    with Brain(settings) as brain, pytest.raises(MissingDatabase):
        call(brain, "token create", name="phone")


def test_one_of_many_concurrent_requests_gets_a_token_name(settings: Settings, brain: Brain) -> None:
    def attempt(_: int) -> str:
        with Brain(settings) as mine:
            try:
                return str(call(mine, "token create", name="phone").token)
            except AlreadyExists:
                return ""

    with ThreadPoolExecutor(8) as pool:
        made = [item for item in pool.map(attempt, range(16)) if item]
    assert len(made) == 1
    assert scope_of(settings, made[0]) == "read"


def test_the_owners_token_stays(settings: Settings) -> None:
    assert service.owner_token(settings) == service.owner_token(settings)


def test_an_owners_token_that_others_can_read_is_refused(settings: Settings) -> None:
    service.owner_token(settings)
    os.chmod(service.owner_token_path(settings), 0o644)
    with pytest.raises(FileTrouble, match="read by others"):
        service.owner_token(settings)


def test_file_without_a_token_is_reported(settings: Settings) -> None:
    service.owner_token(settings)
    with open(service.owner_token_path(settings), "w", encoding="ascii") as file:
        file.write("secret")
    with pytest.raises(FileTrouble, match="delete it"):
        service.owner_token(settings)


def test_broken_token_file_refuses_everyone(settings: Settings, brain: Brain) -> None:
    phone = call(brain, "token create", name="phone").token
    folder = os.path.join(os.path.dirname(service.owner_token_path(settings)), "tokens")
    for text in ("", "[]", "{}", '"x"', '{"scope": "owner", "created_at": "", "sha256": ""}', "3"):
        with open(os.path.join(folder, "phone.json"), "w", encoding="ascii") as file:
            file.write(text)
        assert scope_of(settings, phone) is None
        assert call(brain, "token list").tokens == ()


def test_last_use_is_recorded_at_most_once_a_minute(settings: Settings, brain: Brain) -> None:
    phone = call(brain, "token create", name="phone").token
    reader = service.TokenReader(settings)
    path = os.path.join(os.path.dirname(service.owner_token_path(settings)), "tokens", "phone.json")
    used = []
    for moment in (MOMENT, MOMENT + 59, MOMENT + 60, MOMENT + 61):
        assert reader.find(phone, moment)
        used.append(os.stat(path).st_mtime)
    assert used == [MOMENT, MOMENT, MOMENT + 60, MOMENT + 60]
    assert call(brain, "token list").tokens[0].last_used_at == "1970-01-12T13:47:00Z"


@pytest.mark.parametrize(
    ("expires", "expected"),
    [
        ("12h", "2026-04-26T00:00:00Z"),
        ("30d", "2026-05-25T12:00:00Z"),
        ("2w", "2026-05-09T12:00:00Z"),
        ("2026-04-25", "2026-04-25T22:00:00Z"),  # the end of the day in local time
        ("2027-01-31", "2027-01-31T22:00:00Z"),
    ],
)
def test_a_token_expires(settings: Settings, brain: Brain, expires: str, expected: str) -> None:
    noon = 1_777_118_400.0
    with Brain(settings, clock=lambda: noon, offset=lambda _: 7_200) as mine:
        made = call(mine, "token create", name="phone", expires=expires)
        assert made.expires_at == expected
        (listed,) = call(mine, "token list").tokens
        assert (listed.expires_at, listed.is_expired) == (expected, False)
    end = datetime.fromisoformat(expected).timestamp()
    reader = service.TokenReader(settings)
    for moment, is_expired in ((noon, False), (end - 1, False), (end, True), (end + 1e6, True)):
        grant = reader.find(made.token, moment)
        assert grant is not None
        assert (grant.name, grant.is_expired) == ("phone", is_expired)


@pytest.mark.parametrize(
    "expires",
    ["", "30", "d", "0d", "-1d", "1.5d", "soon", "2020-01-01", "2026-02-30", "99999w", "9" * 300 + "d"],
)
def test_an_invalid_expiry_is_refused(brain: Brain, expires: str) -> None:
    with pytest.raises(InvalidArgument, match="expires"):
        call(brain, "token create", name="phone", expires=expires)
    assert call(brain, "token list").tokens == ()


@pytest.mark.parametrize("name", service.RESERVED_NAMES)
def test_a_token_does_not_have_the_name_of_the_owner(brain: Brain, name: str) -> None:
    with pytest.raises(InvalidArgument, match="stands for you"):
        call(brain, "token create", name=name)


def test_changes_of_token_files_count_at_once(settings: Settings, brain: Brain) -> None:
    phone = call(brain, "token create", name="phone").token
    owner, reader = service.owner_token(settings), service.TokenReader(settings)
    path = os.path.join(os.path.dirname(service.owner_token_path(settings)), "tokens", "phone.json")

    def scopes() -> list[str | None]:
        grants = [reader.find(item, time.time()) for item in (owner, phone)]
        return [grant.scope if grant and not grant.is_expired else None for grant in grants]

    assert scopes() == ["owner", "read"]
    with open(path, encoding="ascii") as file:
        text = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(text.replace('"read"', '"write"'))
    assert scopes() == ["owner", "write"]
    with open(path, "w", encoding="ascii") as file:
        file.write(text[:-1] + ', "expires_at": "2020-01-01T00:00:00Z"}')
    assert scopes() == ["owner", None]
    os.unlink(path)
    os.unlink(service.owner_token_path(settings))
    assert scopes() == [None, None]
    assert service.owner_token(settings) != owner
    assert scopes() == [None, None]


# Links


def test_a_code_is_redeemed_only_once(settings: Settings) -> None:
    for _ in range(5):
        code = service.login_code(settings, 4321, MOMENT)
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(service.redeem_login_code, settings, 4321, MOMENT, code) for _ in range(16)]
            came = [call.result() for call in calls]
        assert came.count(True) == 1


def test_a_code_is_over_after_a_minute_and_swept_away(settings: Settings) -> None:
    late = service.login_code(settings, 4321, MOMENT)
    assert not service.redeem_login_code(settings, 4321, MOMENT + 61, late)
    unused = service.login_code(settings, 4321, MOMENT)
    service.login_code(settings, 4321, MOMENT + 100)
    assert not service.redeem_login_code(settings, 4321, MOMENT, unused)
    folder = os.path.join(os.path.dirname(service.owner_token_path(settings)), "logins")
    assert len(os.listdir(folder)) == 1


def test_a_code_is_not_written_down(settings: Settings) -> None:
    code = service.login_code(settings, 4321, MOMENT)
    assert code.encode() not in everything_in(settings.home)


# Codes to type, and logins


def test_a_short_code_works_once(settings: Settings) -> None:
    code = service.short_login_code(settings, 4321, MOMENT)
    assert (len(code), code.isdigit()) == (8, True)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(service.redeem_short_code, settings, 4321, MOMENT, code) for _ in range(16)]
        assert [call.result() for call in calls].count(True) == 1
    assert code.encode() not in everything_in(settings.home)


def test_a_short_code_ends_after_five_wrong_tries(settings: Settings) -> None:
    for wrong, opens in ((4, True), (5, False)):
        code = service.short_login_code(settings, 4321, MOMENT)
        other = f"{(int(code) + 1) % 10**8:08}"
        for _ in range(wrong):
            assert not service.redeem_short_code(settings, 4321, MOMENT, other)
        assert service.redeem_short_code(settings, 4321, MOMENT, code) is opens


def test_a_short_code_is_bound_to_its_port_and_replaced_by_the_next(settings: Settings) -> None:
    code = service.short_login_code(settings, 4321, MOMENT)
    assert not service.redeem_short_code(settings, 4322, MOMENT, code)
    assert not service.redeem_short_code(settings, 4321, MOMENT + 301, code)
    old = service.short_login_code(settings, 4321, MOMENT)
    new = service.short_login_code(settings, 4321, MOMENT)
    assert old == new or not service.redeem_short_code(settings, 4321, MOMENT, old)
    assert service.redeem_short_code(settings, 4321, MOMENT, new)
    assert not service.redeem_short_code(settings, 4321, MOMENT, new)


def test_logins_are_listed_and_ended(settings: Settings, brain: Brain) -> None:
    moment = datetime.fromisoformat(brain.now()).timestamp()
    hosts = ("quaid-x.localhost:4321", "192.0.2.7:4321", "192.0.2.7:4321")
    cookies = [
        service.begin_session(settings, host, f"Browser {number}", moment - number)
        for number, host in enumerate(hosts)
    ]
    logins = call(brain, "login list").value
    assert [(login.device, login.network) for login in logins] == [
        ("Browser 0", False),
        ("Browser 1", True),
        ("Browser 2", True),
    ]
    assert "Browser 1" in render(call(brain, "login list"))
    call(brain, "login end", id=logins[1].id)
    still = [service.find_session(settings, *each, moment) for each in zip(hosts, cookies, strict=True)]
    assert [bool(session) for session in still] == [True, False, True]
    with pytest.raises(NotFound):
        call(brain, "login end", id=logins[1].id)
    for wrong in ({}, {"id": logins[0].id, "all": True}):
        with pytest.raises(InvalidArgument):
            call(brain, "login end", **wrong)
    assert call(brain, "login end", all=True).value == 2
    assert call(brain, "login list").value == ()


def test_login_code_gives_a_code_and_a_link(settings: Settings, brain: Brain) -> None:
    moment = datetime.fromisoformat(brain.now()).timestamp()
    record = call(brain, "login code", url="https://192.0.2.7:4321")
    link = record.link.removeprefix("https://192.0.2.7:4321/login?code=")
    assert service.redeem_login_code(settings, 4321, moment + 290, link)
    assert service.redeem_short_code(settings, 4321, moment, record.code.replace(" ", ""))

"""Tokens: shown once, kept as a hash, gone when revoked."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import AlreadyExists, FileTrouble, InvalidArgument, MissingDatabase, NotFound
from quaid.operations import dispatch, service

MOMENT = 1_000_000.0


def call(brain: Brain, command: str, **given: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


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
    tokens = [
        service.scope_of_token(brain.settings, owner, item)
        for item in (owner, phone, laptop, "", "qd_x", "é\ud800")
    ]
    assert tokens == ["owner", "read", "write", None, None, None]
    call(brain, "token revoke", name="phone")
    assert service.scope_of_token(brain.settings, owner, phone) is None
    assert service.scope_of_token(brain.settings, owner, laptop) == "write"


def test_a_token_tells_when_it_was_last_used(brain: Brain) -> None:
    owner = service.owner_token(brain.settings)
    phone = call(brain, "token create", name="phone").token
    call(brain, "token create", name="laptop")
    before = time.time()
    assert service.scope_of_token(brain.settings, owner, phone) == "read"
    used = {token.name: token.last_used_at for token in call(brain, "token list").tokens}
    assert used["laptop"] is None
    assert used["phone"] is not None
    assert abs(datetime.fromisoformat(used["phone"]).timestamp() - before) < 120


def test_hash_is_not_a_token(brain: Brain) -> None:
    owner = service.owner_token(brain.settings)
    made = call(brain, "token create", name="phone").token
    assert service.scope_of_token(brain.settings, owner, service._token_hash(made)) is None


def test_another_memory_has_other_tokens(brain: Brain, settings: Settings) -> None:
    phone = call(brain, "token create", name="phone").token
    other = settings._replace(db_path=settings.db_path + "2")
    assert service.scope_of_token(other, service.owner_token(other), phone) is None
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
    assert service.scope_of_token(settings, service.owner_token(settings), made[0]) == "read"


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
        assert service.scope_of_token(settings, "owner", phone) is None
        assert call(brain, "token list").tokens == ()


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

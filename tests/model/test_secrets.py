"""Where secrets stand, what lets them pass, and what a scan costs at worst."""

import os
import random
import re
import string
import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from quaid.model.secrets import CHECKS, decode_data, find_secrets, is_text_data, secret_rules

LETTERS = string.ascii_letters + string.digits


def letters(number: int) -> str:
    """Made here, so that no scanner of this repository takes it for a leak."""
    chance = random.Random(number)
    return "7a" + "".join(chance.choice(LETTERS) for _ in range(number - 2))


TOKEN = "ghp_" + letters(36)
PASSWORD = "Harbour" + "88!x"


def kinds(text: str) -> list[str]:
    return [secret.kind for secret in find_secrets(text)]


def test_a_finding_says_where_it_is_and_what_to_do() -> None:
    text = f"one\ntwo {TOKEN} three\nfour\npassword: {PASSWORD}\n"
    first, second = find_secrets(text)
    assert (first.kind, first.line, text[first.start : first.end]) == ("github token", 2, TOKEN)
    assert (second.kind, second.line, text[second.start : second.end]) == ("secret", 4, PASSWORD)
    assert "GitHub" in first.remedy
    assert "allow-secret" in first.remedy


def test_every_rule_compiles_and_names_a_check_and_needles_in_their_case() -> None:
    rules = secret_rules()
    for needle, rule in (*rules.tokens, *rules.anywhere):
        assert needle in rule.needles
    for rule in (*(rule for _, rule in (*rules.tokens, *rules.anywhere)), *rules.context, rules.discord):
        assert rule.kind == rule.kind.lower()
        assert rule.check in CHECKS
        assert "{" not in re.sub(r"\{\d+(?:,\d*)?\}|[\\[]\{", "", rule.pattern), "a name of [parts] is wrong"
        assert re.compile(rule.pattern)
        assert re.compile(rule.lead)
    for name in rules.file.data["patterns"]:
        assert rules.file.pattern(name)
    assert all(needle == needle.lower() for rule in rules.context for needle in rule.needles)
    assert len(rules.kinds) >= 27


def test_the_page_on_secrets_names_every_kind() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "docs", "secrets.md"), encoding="utf-8") as file:
        page = file.read()
    named = {
        part.strip()
        for line in page.splitlines()
        if line.startswith("| ")
        for part in line.split("|")[2].split(",")
    }
    assert secret_rules().kinds - named == set()


def test_findings_do_not_overlap_and_come_in_order() -> None:
    text = f"api_key = {TOKEN}\nhttps://bob:{PASSWORD}@x.example/?token={TOKEN}\nBearer {TOKEN}\n"
    secrets = find_secrets(text)
    assert len(secrets) == 4
    assert all(before.end <= after.start for before, after in pairwise(secrets))


@pytest.mark.parametrize(
    "line",
    [
        f"token = {TOKEN}  # allow-secret",
        f"| {TOKEN} | allow-secret |",
        f"{TOKEN} <!-- allow-secret -->",
        f"@@comment:allow-secret@@ {TOKEN}",
        f"password: {PASSWORD} (allow-secret: the demo's)",
    ],
)
def test_a_marked_line_may_hold_a_secret(line: str) -> None:
    assert find_secrets(f"before\n{line}\nafter") == []
    assert kinds(f"{line}\n{TOKEN}") == ["github token"]
    assert find_secrets(line, marks=False)


@pytest.mark.parametrize("mark", ["disallow-secret", "allow-secrets", "allow-secret-x", "Allow-Secret"])
def test_only_the_mark_itself_is_one(mark: str) -> None:
    assert kinds(f"{TOKEN} {mark}") == ["github token"]


def test_a_secret_of_several_lines_is_let_pass_by_the_line_above_it() -> None:
    body = "\n".join(letters(60 + number) for number in range(4))
    block = "-----BEGIN " + f"PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    assert kinds(block) == ["private key"]
    assert find_secrets(f"# allow-secret, a key for tests\n{block}") == []
    assert kinds(f"# allow-secret\n\n{block}") == ["private key"]
    assert kinds(f"allow-secret\n{TOKEN}") == ["github token"]


PLACEHOLDERS = """\
token: <your-token>
token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
api_key: xxxxxxxxxxxxxxxxxxxx
password: changeme
DB_PASSWORD=${DB_PASSWORD}
OPENAI_API_KEY=sk-...
aws_access_key_id = AKIAIOSFODNN7EXAMPLE
password = "EXAMPLE"
password: {{ db_password }}
api_key=YOUR_API_KEY_HERE
postgres://user:${PASSWORD}@host/db
"""


@pytest.mark.parametrize("line", PLACEHOLDERS.splitlines())
def test_placeholder_is_not_a_secret(line: str) -> None:
    assert find_secrets(line) == []


@pytest.mark.parametrize(
    "text",
    [
        "The password is {}.",
        "Das Passwort für den Router lautet {}",
        "Le mot de passe du wifi est {}",
        "La contraseña del router es {}",
        "La contrasen\u0303a es {}",
        "密码：{}",
        "{} is the password of the NAS.",
        "| user | password |\n|------+----------|\n| bob | {} |",
        "user,password\nbob,{}\n",
        "İstanbul: password: {}",
        "- name: DB_PASSWORD\n  value: {}",
        "machine x.example login bob password {}",
        "sshpass -p '{}' ssh bob@host",
    ],
)
def test_a_password_is_known_by_the_words_around_it(text: str) -> None:
    text = text.format(PASSWORD)
    (result,) = find_secrets(text)
    assert text[result.start : result.end].rstrip(".") == PASSWORD


def test_a_key_without_a_shape_needs_a_name_and_entropy() -> None:
    assert kinds(f"api_key = {letters(32)}") == ["secret"]
    assert kinds(f"cache_key = {letters(32)}") == []
    assert kinds("api_key = summer-holiday-plan-2024-v2") == []
    assert kinds(f"token_id = {letters(32)}") == []
    assert kinds(f"commit {letters(40)}") == []


def test_text_is_distinguished_from_binary() -> None:
    assert is_text_data(b"")
    assert is_text_data("Grüße, 知识\r\n\tx".encode())
    assert is_text_data("Grüße".encode("latin-1"))
    assert is_text_data("with a mark".encode("utf-16"))
    assert is_text_data(b"\x1b[32mgreen\x1b[0m\n")
    assert not is_text_data(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    assert not is_text_data(bytes(range(256)) * 4)
    assert not is_text_data(random.Random(1).randbytes(4096).replace(b"\0", b"\1"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_secret_is_found_in_any_encoding(encoding: str) -> None:
    data = f"Schlüssel: {TOKEN}\n".encode(encoding)
    assert is_text_data(data)
    assert kinds(decode_data(data)) == ["github token"]


@given(st.text(max_size=300))
def test_any_text_can_be_scanned(text: str) -> None:
    for secret in find_secrets(text):
        assert 0 <= secret.start < secret.end <= len(text)
        assert secret.line == text.count("\n", 0, secret.start) + 1


_PIECES = (
    "password: pw = is the secret token api_key key=' \" ` | , \n -----BEGIN PRIVATE KEY----- :// @ eyJ 4111"
)


@given(st.lists(st.sampled_from([*_PIECES.split(" "), " ", "İ", "密码", "hunter2!", "aB3" * 9]), max_size=60))
def test_any_pieces_of_near_misses_can_be_scanned(pieces: list[str]) -> None:
    text = "".join(pieces)
    secrets = find_secrets(text)
    assert all(before.end <= after.start for before, after in pairwise(secrets))


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "password=",
            "password is ",
            "(password(",
            "--password ",
            "token=x",
            "token=",
            "secret:",
            "api_key=",
            "pw",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "eyJaaaaaaaa.",
            "LS0tLS1CRUdJTi",
            "sk-",
            "4",
            "4111 ",
            "://a:",
            "Bearer ",
        ),
        *(
            "password,a\n",
            "|password|\n",
            "password,user\n1,2\n\n",
            "machine a login b password ",
            "curl -u a",
        ),
        *(
            ".aaaaaa." + "a" * 32,
            "İPassword: ",
            "密码",
            "x1! is the password ",
            "seed phrase abandon ",
            "\n",
            "-",
        ),
    ],
)
def test_hostile_text_costs_in_step_with_its_length(piece: str) -> None:
    """Four seconds for a megabyte even on a busy machine; a trap would take minutes."""
    text = piece * (250_000 // len(piece))
    started = time.process_time()
    find_secrets(text)
    assert time.process_time() - started < 2

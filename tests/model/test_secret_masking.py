"""Secrets are masked, and ordinary words are not."""

import base64
import random
import string

import pytest
from hypothesis import given, strategies as st

from quaid.model.secrets import mask, passes_luhn

LETTERS = string.ascii_letters + string.digits


def letters(number: int, alphabet: str = LETTERS) -> str:
    """The same every time; made here, so that no scanner of this repository takes it for a leak."""
    chance = random.Random(number)
    return "7a" + "".join(chance.choice(alphabet) for _ in range(number - 2))


HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits
PRIVATE_KEY = (
    "-----BEGIN RSA "
    + "PRIVATE KEY-----\n"
    + "\n".join(letters(64) for _ in range(4))
    + "\n-----END RSA PRIVATE KEY-----"
)
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256"}', b'{"sub":"12345678"}', b"x" * 32)
)
SECRETS = {
    "private key": PRIVATE_KEY,
    "private key, cut": "-----BEGIN " + "PRIVATE KEY-----\n" + letters(64),
    "age": "AGE-SECRET-KEY-1" + letters(58, CAPITALS).upper(),
    "jwt": JWT,
    "aws": "AKIA" + letters(16, CAPITALS).upper(),
    "anthropic": "sk-ant-" + "api03-" + letters(80),
    "openai": "sk-" + letters(48),
    "openai project": "sk-proj-" + letters(80),
    "openrouter": "sk-or-v1-" + letters(64, HEX),
    "stripe": "sk_live_" + letters(24),
    "stripe webhook": "whsec_" + letters(32),
    "github": "ghp_" + letters(36),
    "github fine-grained": "github_pat_" + letters(60),
    "gitlab": "glpat-" + letters(20),
    "slack": "xoxb-" + "123456789012-" + letters(24),
    "google": "AIza" + letters(35),
    "google oauth": "ya29." + letters(60),
    "huggingface": "hf_" + letters(34),
    "npm": "npm_" + letters(36),
    "pypi": "pypi-" + letters(120),
    "sendgrid": "SG." + letters(22) + "." + letters(43),
    "twilio": "SK" + letters(32, HEX),
    "mailgun": "key-" + letters(32, HEX),
    "digitalocean": "dop_v1_" + letters(64, HEX),
    "databricks": "dapi" + letters(32, HEX),
    "shopify": "shpat_" + letters(32, HEX),
    "telegram": "123456789:AA" + letters(33),
    "vault": "hvs." + letters(40),
    "groq": "gsk_" + letters(52),
    "xai": "xai-" + letters(80),
    "replicate": "r8_" + letters(37),
    "perplexity": "pplx-" + letters(48),
    "linear": "lin_api_" + letters(40),
    "notion": "ntn_" + letters(46),
    "postman": "PMAK-" + letters(24) + "-" + letters(34),
    "card": "4111 1111 1111 1111",
    "card without spaces": "5500005555555559",
    "american express": "3782-822463-10005",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize(
    "around", ["{}", "It is {}, I think.", "KEY={}\nnext line", '{{"value": "{}"}}', "図書館{}図書館"]
)
def test_secret_is_masked_in_every_place(secret: str, around: str) -> None:
    masked = mask(around.format(secret))
    assert secret not in masked[0]
    assert secret[-12:] not in masked[0]
    assert masked[1] == 1
    before, _, after = around.format("|").partition("|")
    assert masked[0].startswith(before)
    assert masked[0].endswith(after)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password: hunter2!", "password: [masked: secret]"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[masked: secret]"),
        ('{"password": "hunter22", "a": 1}', '{"password": "[masked: secret]", "a": 1}'),
        ("my password is hunter2", "my password is [masked: password]"),
        ("Das Passwort lautet g3heim!", "Das Passwort lautet [masked: password]"),
        ("postgres://bob:s3cr3t@db.local/x", "postgres://bob:[masked: url password]@db.local/x"),
        (
            "https://me:" + letters(20) + "@git.example.org/a.git",
            "https://me:[masked: url password]@git.example.org/a.git",
        ),
        ("api_key = '" + letters(20) + "'", "api_key = '[masked: secret]'"),
        ("AWS_SECRET_ACCESS_KEY=" + letters(40), "AWS_SECRET_ACCESS_KEY=[masked: aws secret key]"),
        ("Authorization: Basic " + letters(24) + "==", "Authorization: Basic [masked: authorization]"),
        (
            "curl -H 'authorization: bearer " + letters(30) + "'",
            "curl -H 'authorization: bearer [masked: authorization]'",
        ),
        ("mysql --password=pa55word -u me", "mysql --password=[masked: secret] -u me"),
        ("AccountKey=" + letters(86) + "==;Suffix", "AccountKey=[masked: azure key];Suffix"),
        (
            "https://hooks.slack.com/services/" + "T0AAAA/B0BBBB/" + letters(24),
            "https://hooks.slack.com/services/[masked: webhook]",
        ),
    ],
)
def test_a_secret_goes_and_what_names_it_stays(text: str, left: str) -> None:
    assert mask(text)[0] == left


ORDINARY = """\
The password is wrong.
The password: see the wiki.
Reset your password: it takes a minute.
Password must have at least 12 characters.
password: str = None
def login(user: str, password: str) -> Token:
password = getpass.getpass()
token = request.headers.get("Authorization")
token: string;
const token = await getToken(user);
max_tokens=4096
"max_tokens": 150000,
tokens: 128000 of 200000
The secret: patience.
secret = os.environ["SECRET"]
api_key = settings.api_key
api_key=$API_KEY
api_key: <your-api-key>
OPENAI_API_KEY=sk-...
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
The bearer of this letter is my friend.
postgres://user:password@localhost/db
postgres://localhost:5432/db
http://localhost:8080/@fs/x
git@github.com:owner/name.git
commit 4f9d3b2a1c4f9d3b2a1c4f9d3b2a1c4f9d3b2a1c
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
uuid 3f2a1b4c-5d6e-4f70-8a9b-0c1d2e3f4a5b
primary_key=user_id_2024
cache_key = 'user:1234:abcd'
sort_key: created_at
keyboard: qwerty12
monkey=banana123456
sk-learn and sk-button-primary-large-rounded are names.
1234567890123456 is a number.
4111 1111 1111 1112 is not a card.
Call +49 30 1234567 or 4930-1234-5678.
On 2026-04-25 at 12:00:00.123456789 it was 5105105105.
order 1777118400123 of 2026
IBAN DE89 3704 0044 0532 0130 00
/home/me/.ssh/id_rsa holds the private key.
Generate it with ssh-keygen and keep the PRIVATE KEY safe.
-----BEGIN PUBLIC KEY-----
passing tests: 12 of 12
The passphrase is "correct horse battery staple" in that comic.
class SecretStr: pass
npm_config_registry=https://registry.npmjs.org
hf_hub_download(repo_id="a/b")
AKIA is how such keys begin.
eyJ is how a JWT begins.
credentials: include
token_count = 12345678
pwd: /home/me/project
author: key-value stores
密码是什么？
"""


@pytest.mark.parametrize("text", ORDINARY.splitlines())
def test_an_ordinary_line_stays_as_it_is(text: str) -> None:
    assert mask(text) == (text, 0)


def test_a_masked_text_is_not_masked_again() -> None:
    once = mask("\n".join([*SECRETS.values(), "password: hunter2!", "ssh://a:b1c2@d"]))
    assert once[1] == len(SECRETS) + 2
    assert mask(once[0]) == (once[0], 0)


@given(st.text(max_size=300))
def test_any_text_can_be_masked(text: str) -> None:
    assert isinstance(mask(text)[0], str)


@pytest.mark.parametrize(
    "piece",
    [
        "password:",
        "-----BEGIN PRIVATE KEY-----",
        "://",
        "a:" * 3,
        "Bearer ",
        "4",
        "token=x",
        "eyJ",
        "password is ",
    ],
)
def test_a_long_text_of_near_misses_takes_no_time(piece: str) -> None:
    import time

    started = time.process_time()
    mask(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 2


def test_the_last_digit_of_a_card_must_fit() -> None:
    assert passes_luhn("4111111111111111")
    assert not passes_luhn("4111111111111112")


def test_masking_stops_after_too_many_candidates() -> None:
    real = f"password={letters(20)}"
    masked = mask(f"{real} it said, {'password ' * 20_000}{real}")
    assert letters(20) not in masked[0]
    assert masked[0].startswith("[masked: ") or masked[0].startswith("password=[masked: ")
    assert masked[0].endswith("[masked: too many places to search]")
    assert masked[1] == 2


def test_a_long_list_of_addresses_is_kept_whole() -> None:
    text = "\n".join(f"https://example.org/pages/{number}/index.html" for number in range(4_000))
    assert mask(text) == (text, 0)

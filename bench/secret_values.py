"""Made-up secrets, as each kind looks: letters drawn at random, put together when asked for.

No value stands here or anywhere in the repository, so that nobody's scanner takes it for a leak.
"""

import base64
import json
import random
import string
from collections.abc import Callable

Chance = random.Random
Maker = Callable[[Chance], str]

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits
SMALL = string.ascii_lowercase + string.digits
BASE64 = LETTERS + "+/"
URL = LETTERS + "-_"
WORDS = (
    "harbour river copper velvet lantern marble thunder pepper willow falcon ember cobalt meadow saffron quartz"
    " bramble cinder juniper raven tundra walnut zephyr anchor basil cedar dahlia fennel garnet hazel indigo"
).split()


def some(chance: Chance, alphabet: str, length: int) -> str:
    """Letters at random, with a digit and a letter among them, as nearly every real token has."""
    while True:
        value = "".join(chance.choice(alphabet) for _ in range(length))
        if (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) or length < 8:
            return value


def after(prefix: str, alphabet: str, *lengths: int, end: str = "") -> Maker:
    """A token with a known beginning."""
    return lambda chance: prefix + some(chance, alphabet, chance.choice(lengths)) + end


def one_of(*makers: Maker) -> Maker:
    return lambda chance: chance.choice(makers)(chance)


def password(chance: Chance) -> str:
    """As people make them: a word or two, digits, a sign; or a generator's."""
    word = chance.choice(WORDS)
    return chance.choice(
        (
            word.capitalize() + str(chance.randrange(10, 9999)) + chance.choice("!?#$%&*+"),
            word[:3]
            + chance.choice("!@#_-")
            + chance.choice(WORDS).capitalize()
            + str(chance.randrange(100)),
            word.replace("a", "4").replace("e", "3").replace("o", "0") + str(chance.randrange(10, 99)) + "!",
            some(chance, LETTERS + "!#$%*+=?@", chance.randrange(10, 20)),
            some(chance, LETTERS, chance.randrange(9, 16)) + chance.choice("!?"),
        )
    )


def _pem(kind: str, first: str = "") -> Maker:
    def make(chance: Chance) -> str:
        lines = [first + some(chance, BASE64, 64 - len(first))]
        lines += [some(chance, BASE64, 64) for _ in range(chance.randrange(4, 24))]
        lines += [some(chance, BASE64, chance.randrange(20, 60)) + "=="]
        return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])

    return make


def _pgp(chance: Chance) -> str:
    body = "\n".join(some(chance, BASE64, 64) for _ in range(chance.randrange(8, 20)))
    kind = "PGP PRIVATE KEY " + "BLOCK"
    head = f"-----BEGIN {kind}-----\nComment: made by hand - 2024"
    return f"{head}\n\n{body}\n={some(chance, BASE64, 4)}\n-----END {kind}-----"


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(chance: Chance) -> str:
    head = {"alg": chance.choice(("HS256", "RS256", "ES256")), "typ": "JWT"}
    body = {
        "sub": some(chance, SMALL, 10),
        "iat": chance.randrange(1_600_000_000, 1_800_000_000),
        "role": "admin",
    }
    return f"{_encoded(head)}.{_encoded(body)}.{some(chance, URL, 43)}"


def _discord(chance: Chance) -> str:
    number = base64.b64encode(str(chance.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return f"{number}.{some(chance, LETTERS, 6)}.{some(chance, URL, 38)}"


def _uuid(chance: Chance) -> str:
    return "-".join(some(chance, HEX, length) for length in (8, 4, 4, 4, 12))


def _card(chance: Chance) -> str:
    begin, length = chance.choice((("4", 16), ("52", 16), ("37", 15), ("6011", 16)))
    digits = begin + "".join(chance.choice(string.digits) for _ in range(length - 1 - len(begin)))
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 - place % 2)
        total += number - 9 if number > 9 else number
    digits += str(-total % 10)
    cuts = (4, 10) if length == 15 else (4, 8, 12)
    parts = [digits[a:b] for a, b in zip((0, *cuts), (*cuts, length), strict=True)]
    return chance.choice((" ", "-", "")).join(parts)


# Tokens: they are secrets wherever they stand.
TOKENS: dict[str, Maker] = {
    "aws key": one_of(after("AKIA", CAPITALS, 16), after("ASIA", CAPITALS, 16)),
    "google key": after("AIza", URL, 35),
    "google token": one_of(after("ya29.", URL, 80, 140), after("GOCSPX-", URL, 28)),
    "digitalocean token": after("dop_v1_", HEX, 64),
    "azure secret": lambda chance: some(chance, LETTERS, 3) + "8Q~" + some(chance, LETTERS + "_~", 33) + "a",
    "databricks token": after("dapi", HEX, 32),
    "vault token": one_of(after("hvs.", URL, 24, 90), after("hvb.", URL, 90)),
    "github classic": one_of(after("ghp_", LETTERS, 36), after("gho_", LETTERS, 36)),
    "github fine-grained": lambda chance: (
        f"github_pat_{some(chance, LETTERS, 22)}_{some(chance, LETTERS, 59)}"
    ),
    "github app": one_of(after("ghs_", LETTERS, 36), after("ghu_", LETTERS, 36), after("ghr_", LETTERS, 76)),
    "gitlab token": one_of(after("glpat-", URL, 20), after("glrt-", URL, 20), after("gldt-", URL, 20)),
    "bitbucket token": after("ATBB", LETTERS, 32),
    "atlassian token": after("ATATT3xFfGF0", URL, 171, end="=1A2B3C4D"),
    "npm token": after("npm_", LETTERS, 36),
    "pypi token": after("pypi-AgEIcHlwaS5vcmc", URL, 120, 150),
    "docker hub token": after("dckr_pat_", URL, 27),
    "openai key": one_of(
        after("sk-", LETTERS, 48), after("sk-proj-", URL, 100, 156), after("sk-svcacct-", URL, 90)
    ),
    "anthropic key": one_of(after("sk-ant-api03-", URL, 93), after("sk-ant-oat01-", URL, 93)),
    "openrouter key": after("sk-or-v1-", HEX, 64),
    "groq key": after("gsk_", LETTERS, 52),
    "xai key": after("xai-", LETTERS, 80),
    "hugging face token": after("hf_", LETTERS, 34),
    "replicate token": after("r8_", LETTERS, 37),
    "slack token": lambda chance: (
        f"xox{chance.choice('bp')}-{chance.randrange(10**11, 10**12)}-{chance.randrange(10**11, 10**12)}-"
        + some(chance, LETTERS, 24)
    ),
    "slack webhook": lambda chance: (
        "https://hooks.slack.com/services/"
        + f"T{some(chance, CAPITALS, 8)}/B{some(chance, CAPITALS, 10)}/"
        + some(chance, LETTERS, 24)
    ),
    "discord token": _discord,
    "discord webhook": lambda chance: (
        f"https://discord.com/api/webhooks/{chance.randrange(10**17, 10**18)}/" + some(chance, URL, 68)
    ),
    "telegram token": lambda chance: f"{chance.randrange(10**8, 10**10)}:AA" + some(chance, URL, 33),
    "stripe key": one_of(
        after("sk_live_", LETTERS, 24, 99), after("rk_live_", LETTERS, 24), after("whsec_", LETTERS, 32)
    ),
    "twilio key": after("SK", HEX, 32),
    "sendgrid key": lambda chance: f"SG.{some(chance, URL, 22)}.{some(chance, URL, 43)}",
    "mailgun key": after("key-", HEX, 32),
    "mailchimp key": lambda chance: f"{some(chance, HEX, 32)}-us{chance.randrange(1, 21)}",
    "shopify token": one_of(after("shpat_", HEX, 32), after("shpss_", HEX, 32)),
    "grafana token": lambda chance: f"glsa_{some(chance, LETTERS, 32)}_{some(chance, HEX, 8)}",
    "linear key": after("lin_api_", LETTERS, 40),
    "notion token": after("ntn_", LETTERS, 46),
    "age key": after("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": jwt,
    "card number": _card,
    "sentry token": after("sntryu_", HEX, 64),
    "terraform token": lambda chance: f"{some(chance, LETTERS, 14)}.atlasv1.{some(chance, LETTERS, 67)}",
}

# Blocks of several lines.
BLOCKS: dict[str, Maker] = {
    "private key (PEM)": one_of(
        _pem("RSA " + "PRIVATE KEY", "MIIE"),
        _pem("PRIVATE " + "KEY", "MIIE"),
        _pem("EC " + "PRIVATE KEY", "MHcC"),
    ),
    "private key (OpenSSH)": _pem(
        "OPENSSH " + "PRIVATE KEY", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAA"
    ),
    "private key (PGP)": _pgp,
}

# Secrets only by what is said about them.
LOOSE: dict[str, Maker] = {
    "password": password,
    "api key": one_of(
        lambda chance: some(chance, LETTERS, chance.choice((24, 32, 40))),
        lambda chance: some(chance, HEX, chance.choice((32, 40, 64))),
        _uuid,
        lambda chance: some(chance, URL, chance.choice((32, 43))),
    ),
    "aws secret key": lambda chance: some(chance, BASE64, 39) + "7",
    "azure storage key": lambda chance: some(chance, BASE64, 86) + "==",
    "bearer": one_of(lambda chance: some(chance, LETTERS, 40), lambda chance: some(chance, HEX, 32), jwt),
    "basic": lambda chance: base64.b64encode(f"{chance.choice(WORDS)}:{password(chance)}".encode()).decode(),
}

"""Documents with one secret each, and documents without: the part that the rules were written with.

Everything is drawn from a seed. A template's `{}` is where the secret goes; `Case.start` says where it stands.
"""

import base64
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.secret_values import BLOCKS, CAPITALS, HEX, LETTERS, LOOSE, SMALL, TOKENS, Chance, some

PROSE = (
    "The boat goes back to the yard in October, and the mast stays up over the winter.",
    "Alice asked whether the budget covers the second workshop; Bob will look at it on Friday.",
    "We agreed to move the retrospective to Tuesday, because three people travel on Monday.",
    "The new index is rebuilt from files; nothing in it is kept that a file does not say.",
    "Read the chapter on consensus again: the part on leases is better than I remembered.",
    "The flat in Bergen has a leaking window, and the landlord promised to send somebody.",
    "Latency rose from 40 to 55 ms after the upgrade, so the cache was given more memory.",
    "Notes from the call: pricing is open, the pilot starts in May, legal wants to see the terms.",
)


class Case(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


# Templates: a token is a secret in all of them, so they name nothing.
TOKEN_TEMPLATES = (
    "I made a new one for the build machine: {} and put it into the settings.",
    "{}",
    "- [ ] rotate {} before Friday",
    "KEY={}",
    "export SOME_KEY='{}'",
    'client = Client(key="{}")',
    "const key = '{}';",
    '{{"name": "build", "value": "{}", "active": true}}',
    "config:\n  name: build\n  value: {}\n",
    "| name | value |\n|------+-------|\n| build | {} |",
    "2024-05-02T10:11:12Z INFO client started with {} after 3 retries",
    ":PROPERTIES:\n:ID: 7f1c0a52\n:KEY: {}\n:END:\n",
    "#+begin_src sh\ncurl -s https://api.example.org/v1/items?key={}\n#+end_src",
    "```python\nheaders = {{'x-key': '{}'}}\n```",
    "Use `{}` for the demo, it ends in June.",
    "He wrote ={}= on the whiteboard.",
    '<add key="build" value="{}" />',
    "> the old one was {}\n> please take it out",
    '(setq my-key "{}")',
    "[link](https://x.example/?a=1&t={}&b=2)",
    'let key = String::from("{}"); // for now',
    'key := "{}"',
    "-e KEY={} -p 80:80",
    "Das ist der neue Schlüssel: {}, bitte nicht weitergeben.",
    "first line\\n{}\\nlast line",
)

BLOCK_TEMPLATES = (
    "{}\n",
    "The key of the old server:\n\n{}\n\nIt goes away next month.",
    "#+begin_example\n{}\n#+end_example",
    "```\n{}\n```",
    "id_rsa: |\n{}\n",
    "* Keys :work:\n:PROPERTIES:\n:ID: 1\n:END:\n{}\n",
)

PASSWORD_TEMPLATES = {
    "password prose, English": (
        "The password is {}.",
        "my password for the router is {}",
        "The wifi password at Mum's is {} (all guests).",
        "I changed the password to {} yesterday.",
        "Use the password {} to get in.",
        "{} is the password of the NAS.",
        "The passphrase for the backup is `{}`.",
        "Password: {}",
        "*Password:* {}",
        "- Password :: {}",
        "The admin password was {} until May.",
        'Log in as bob with the password "{}".',
    ),
    "password prose, German": (
        "Das Passwort ist {}.",
        "Das Passwort für den Router lautet {}",
        "Kennwort: {}",
        "Das WLAN-Passwort ist jetzt {}.",
        "Passwort: {}",
        "Das Kennwort vom Drucker war {}.",
        "- *Passwort*: {}",
        "| Passwort | {} |",
    ),
    "password prose, French": (
        "Le mot de passe est {}.",
        "Le mot de passe du wifi est {}",
        "Mot de passe : {}",
        "Mon mot de passe était faux, le mot de passe est {}",
        "- mot de passe: {}",
        "Le mot de passe de la banque est « {} ».",
    ),
    "password prose, Spanish": (
        "La contraseña es {}.",
        "La contraseña del router es {}",
        "Contraseña: {}",
        "Mi contraseña de correo es {}",
        "- contraseña: {}",
        "La clave es {}",
    ),
    "password, other languages": (
        "A senha é {}",
        "Senha: {}",
        "Het wachtwoord is {}",
        "Wachtwoord: {}",
        "Пароль: {}",
        "密码：{}",
        "パスワードは{}",
        "La password è {}",
    ),
    "password in settings": (
        "DB_PASSWORD={}",
        "export PGPASSWORD='{}'",
        'password = "{}"',
        "password: {}",
        '{{"user": "bob", "password": "{}"}}',
        "spring.datasource.password={}",
        "<password>{}</password>",
        "- name: DB_PASSWORD\n  value: {}",
        "    passwd: '{}'",
        "Server=db;User Id=sa;Password={};",
        "requirepass: {}",
        ":PASSWORD: {}",
        "#+PASSWORD: {}",
        "pwd => '{}',",
    ),
    "password in code": (
        'connect(user="bob", password="{}")',
        "const password = '{}';",
        'let db_password = "{}";',
        'os.environ["DB_PASSWORD"] = "{}"',
        "$password = '{}';",
        'String password = "{}";',
        'conn.setPassword("{}");',
        'PASSWORD := "{}"',
    ),
    "password in a table": (
        "| user | password |\n|------+----------|\n| bob  | {} |",
        "| host | user | password | note |\n|---|---|---|---|\n| a | bob | {} | old |",
        "user,password\nbob,{}\n",
        "| password | {} |",
    ),
    "password on a command line": (
        "mysql --password={} -u bob",
        "sshpass -p '{}' ssh bob@host",
        "curl -u bob:{} https://host.example/",
        "tool login --user bob --password {}",
    ),
    "netrc": (
        "machine git.example.org login bob password {}",
        "machine api.example.org\n  login bob\n  password {}\n",
        "default login bob password {}",
    ),
    "url password": (
        "postgres://bob:{}@db.example.org:5432/app",
        "DATABASE_URL=mysql://app:{}@10.0.0.5/app",
        "redis://:{}@cache:6379/0",
        "git clone https://bob:{}@git.example.org/a.git",
        "mongodb+srv://bob:{}@cluster0.example.net/test",
        "amqp://app:{}@mq//",
    ),
}
KEY_TEMPLATES = (
    'api_key = "{}"',
    "API_KEY={}",
    "apiKey: '{}'",
    '{{"api_key": "{}"}}',
    "client_secret: {}",
    "The API key is {}.",
    "auth_token={}",
    "X-Api-Key: {}",
    "export WEATHER_API_KEY={}",
    "| api key | {} |",
    'secret_key => "{}"',
    "token: {}",
    "The API token for the weather service is {}, valid until May.",
    ":API_KEY: {}",
    "tool --api-key {} run",
    "<apiKey>{}</apiKey>",
    'private static final String API_KEY = "{}";',
    "access_token={}&expires=3600",
    "- token: `{}`",
)
OTHER_TEMPLATES = {
    "aws secret key": (
        "aws_secret_access_key = {}",
        "AWS_SECRET_ACCESS_KEY={}",
        '"SecretAccessKey": "{}"',
        "secretAccessKey: '{}'",
        "The secret access key is {}",
        "| AWS secret access key | {} |",
    ),
    "azure storage key": (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net",
        "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        "AZURE_STORAGE_ACCOUNT_KEY={}",
    ),
    "bearer": (
        "Authorization: Bearer {}",
        "curl -H 'Authorization: Bearer {}' https://api.example.org",
        '"Authorization": "Bearer {}"',
        'headers = {{"Authorization": "token {}"}}',
        "It wants Bearer {} in the header.",
    ),
    "basic": (
        "Authorization: Basic {}",
        '{{"auths": {{"registry.example.org": {{"auth": "{}"}}}}}}',
        '-H "authorization: basic {}"',
    ),
}


def filled(chance: Chance, kind: str, template: str, value: str, prose: Sequence[str] = PROSE) -> Case:
    """A document of some prose with the template in it."""
    before, after = template.split("{}")[0], template.rpartition("{}")[2]
    before, after = (part.replace("{{", "{").replace("}}", "}") for part in (before, after))
    head = "".join(chance.choice(prose) + "\n" for _ in range(chance.randrange(3))) + "\n"
    tail = "\n" + "".join(chance.choice(prose) + "\n" for _ in range(chance.randrange(3)))
    start = len(head) + len(before)
    return Case(kind, head + before + value + after + tail, start, start + len(value))


def fits(kind: str, value: str) -> str:
    """A value as a person would write it in this kind of place."""
    if kind == "url password":
        return value.replace("@", "").replace("/", "").replace("#", "").replace("?", "").replace("%", "")
    if kind == "password on a command line":
        return value.replace("$", "").replace("&", "").replace("#", "")
    return value


def secrets(seed: int = 1, each: int = 12) -> list[Case]:
    """At least 540 secrets of at least 27 kinds."""
    chance = random.Random(seed)
    found = []
    for kind, maker in TOKENS.items():
        for number in range(each):
            template = TOKEN_TEMPLATES[(number * 7 + len(kind)) % len(TOKEN_TEMPLATES)]
            found.append(filled(chance, kind, template, maker(chance)))
    for kind, maker in BLOCKS.items():
        for number in range(each):
            value = maker(chance)
            if number % 6 == 4:
                value = "\n".join("  " + line for line in value.split("\n"))
            found.append(filled(chance, kind, BLOCK_TEMPLATES[number % 6], value))
    for kind, templates in PASSWORD_TEMPLATES.items():
        for number in range(each + 2):
            value = fits(kind, LOOSE["password"](chance))
            found.append(filled(chance, kind, templates[number % len(templates)], value))
    for number in range(each + 8):
        found.append(
            filled(chance, "api key", KEY_TEMPLATES[number % len(KEY_TEMPLATES)], LOOSE["api key"](chance))
        )
    for kind, templates in OTHER_TEMPLATES.items():
        for number in range(each):
            found.append(filled(chance, kind, templates[number % len(templates)], LOOSE[kind](chance)))
    return found


# Near misses: each makes a line or a few that hold no secret.


def _uuid(chance: Chance) -> str:
    return "-".join(some(chance, HEX, length) for length in (8, 4, 4, 4, 12))


def _binary(chance: Chance, length: int) -> str:
    return base64.b64encode(bytes(chance.randrange(256) for _ in range(length))).decode()


NEAR: tuple[Callable[[Chance], str], ...] = (
    lambda c: f"commit {some(c, HEX, 40)}\nAuthor: Bob <bob@example.org>",
    lambda c: f"sha256:{some(c, HEX, 64)}  release.tar.gz",
    lambda c: f'"integrity": "sha512-{_binary(c, 64)}"',
    lambda c: f":ID:       {_uuid(c)}",
    lambda c: f"[[id:{_uuid(c)}][Notes on leases]]",
    lambda c: f"![a](data:image/png;base64,{_binary(c, 300)})",
    lambda c: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{some(c, LETTERS, 43)} bob@laptop",
    lambda c: f"-----BEGIN CERTIFICATE-----\n{_binary(c, 48)}\n{_binary(c, 48)}\n-----END CERTIFICATE-----",
    lambda c: f"-----BEGIN PUBLIC KEY-----\n{_binary(c, 48)}\n-----END PUBLIC KEY-----",
    lambda c: (
        f"!function(e,t){{var n={some(c, SMALL, 3)};e.token=t.token;return n.key=e.{some(c, SMALL, 4)}}}(this,{{}});"
    ),
    lambda _: "Passwords must have at least 12 characters, one digit and one sign.",
    lambda _: "The password is stored as a bcrypt hash; it is never written to the log.",
    lambda _: "The password is base64-encoded, which is no protection at all.",
    lambda _: "Change your password every 90 days? The advice was withdrawn.",
    lambda _: "The token is valid for 3600 seconds; a refresh token for 30 days.",
    lambda _: "An API key begins with `sk-` or `ghp_` and is followed by letters and digits.",
    lambda _: "api_key: <your-api-key>",
    lambda _: "API_KEY=your-api-key-here",
    lambda _: "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    lambda _: "OPENAI_API_KEY=sk-...",
    lambda _: "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
    lambda _: "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    lambda _: "password: changeme",
    lambda _: "DB_PASSWORD=${DB_PASSWORD}",
    lambda _: "password: {{ vault_db_password }}",
    lambda _: "password = os.environ['DB_PASSWORD']",
    lambda _: 'token = request.headers.get("Authorization")',
    lambda _: "const { token, secret } = await login(user, password);",
    lambda _: "def login(user: str, password: str) -> Token:",
    lambda _: "login(user=user, password=user_password)",
    lambda _: "postgres://user:password@localhost/db",
    lambda _: "postgresql://localhost:5432/app?sslmode=disable",
    lambda _: "Authorization: Bearer $TOKEN",
    lambda _: "Authorization: Bearer <token>",
    lambda c: f"max_tokens={c.randrange(1000, 9000)}, tokens_used: {c.randrange(10**5)}",
    lambda c: f"cache_key = 'user:{c.randrange(10**4)}:profile'",
    lambda c: f"primary_key=user_id_{c.randrange(2000, 2030)}",
    lambda _: "secretName: tls-example-com-2024",
    lambda _: "token_type: bearer, token_url: https://auth.example.org/oauth2/token",
    lambda c: f"password_hash: $2b$12${some(c, LETTERS, 53)}",
    lambda c: f"idempotency-key: {_uuid(c)}",
    lambda c: f"request id {some(c, HEX, 32)} took {c.randrange(900)} ms",
    lambda c: f"https://example.org/files/{some(c, LETTERS, 22)}/report.pdf",
    lambda c: f"docker pull registry.example.org/app@sha256:{some(c, HEX, 64)}",
    lambda c: f"{c.randrange(10**15, 2 * 10**15)} and +49 30 {c.randrange(10**6, 10**7)} are numbers.",
    lambda c: f"order id 4{c.randrange(10**14, 10**15)} was shipped",
    lambda _: "IBAN DE89 3704 0044 0532 0130 00",
    lambda _: '"password": "Password", "password_hint": "At least 8 characters"',
    lambda _: "passwordField = 'input-password-2'",
    lambda _: "| user | password |\n|------+----------|\n| bob | see 1Password |",
    lambda _: "Das Passwort ist falsch. Passwort vergessen?",
    lambda _: "Le mot de passe est obligatoire.",
    lambda _: "La contraseña es obligatoria.",
    lambda _: "The secret: patience. The key to it: a good night's sleep.",
    lambda c: f'version = "1.{c.randrange(40)}.{c.randrange(20)}"  # was 1.0.0-rc.{c.randrange(9)}',
    lambda c: f"color: #{some(c, HEX, 6)}; background: url(data:image/svg+xml;base64,{_binary(c, 90)})",
    lambda c: f"build {some(c, CAPITALS, 12)} of job {some(c, SMALL, 10)}",
    lambda _: "if password == other_password: raise ValueError('passwords differ')",
    lambda _: "kubectl create secret generic app --from-file=token=./token.txt",
    lambda _: 'The credentials are in the password manager, entry "db prod 2".',
    lambda _: "Bearer tokens (RFC 6750) are sent in the Authorization header.",
    lambda c: f'etag: "{some(c, HEX, 32)}"\nx-amz-request-id: {some(c, CAPITALS, 16)}',
    lambda c: f"trace 00-{some(c, HEX, 32)}-{some(c, HEX, 16)}-01",
    lambda _: "git clone git@github.com:owner/name.git",
    lambda _: "-----BEGIN RSA PRIVATE " + "KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    lambda c: f"eyJ begins a JWT; {some(c, LETTERS, 20)} begins nothing.",
    lambda _: "token = hashlib.sha256(seed).hexdigest()[:16]",
    lambda _: "password: str | None = None  # asked for when missing",
    lambda _: "secret: !vault | \n  see the file",
    lambda c: f"user: bob_{c.randrange(99)}, login: bob@example.org",
)


def clean(
    seed: int = 2,
    number: int = 1_000,
    near: Sequence[Callable[[Chance], str]] = NEAR,
    prose: Sequence[str] = PROSE,
) -> list[str]:
    """Documents without a secret, each with several near misses."""
    chance = random.Random(seed)
    found = []
    for count in range(number):
        lines = [near[count % len(near)](chance)]
        lines += [chance.choice(near)(chance) for _ in range(chance.randrange(1, 5))]
        lines += [chance.choice(prose) for _ in range(chance.randrange(2, 8))]
        chance.shuffle(lines)
        found.append(f"#+title: note {count}\n\n" + "\n\n".join(lines) + "\n")
    return found

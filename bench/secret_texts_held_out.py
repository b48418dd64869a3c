"""Documents with and without secrets in places that were not there when the rules were written.

Other templates, other prose, other near misses and other variants of the tokens than in `bench/secret_texts.py`.
"""

import base64
import random
from collections.abc import Callable

from bench.secret_texts import Case, filled, fits
from bench.secret_values import (
    BASE64,
    BLOCKS,
    HEX,
    LETTERS,
    LOOSE,
    SMALL,
    TOKENS,
    URL,
    Chance,
    Maker,
    after,
    some,
)

PROSE = (
    "Grandmother's recipe wants two eggs, but three make it lighter.",
    "El tren sale a las ocho y media; hay que comprar los billetes antes.",
    "Der Vertrag läuft Ende März aus, die Kündigung muss vorher raus.",
    "On a parlé du budget pendant une heure sans rien décider.",
    "TODO compare the two queues under load, then write down which one wins.",
    "Die Messung von gestern zeigt 12,5 % weniger Verlust als im Vorjahr.",
    "She prefers the aisle seat and never drinks coffee after two.",
    "The parser keeps byte offsets, so an edit touches only what was asked.",
)
VARIANTS: dict[str, Maker] = {
    "gitlab token": after("glptt-", HEX, 40),
    "vault token": after("hvr.", URL, 90),
    "openai key": after("sk-admin-", URL, 120),
    "slack token": lambda chance: (
        f"xapp-1-A{some(chance, '0123456789ABCDEFGHJK', 10)}-{chance.randrange(10**12, 10**13)}-"
        + some(chance, HEX, 64)
    ),
    "discord webhook": lambda chance: (
        f"https://ptb.discord.com/api/webhooks/{chance.randrange(10**17, 10**18)}/" + some(chance, URL, 68)
    ),
    "google token": after("1//0", URL, 100),
    "stripe key": after("sk_test_", LETTERS, 99),
    "docker hub token": after("dckr_oat_", URL, 32),
    "npm token": after("npm_", LETTERS, 36),
    "teams webhook": lambda chance: (
        f"https://acme.webhook.office.com/webhookb2/{_uuid(chance)}@{_uuid(chance)}/IncomingWebhook/"
        f"{some(chance, HEX, 32)}/{_uuid(chance)}"
    ),
    "figma token": after("figd_", URL, 40),
    "postman key": lambda chance: f"PMAK-{some(chance, HEX, 24)}-{some(chance, HEX, 34)}",
    "supabase key": after("sbp_", HEX, 40),
    "tailscale key": lambda chance: (
        f"tskey-auth-k{some(chance, LETTERS, 11)}CNTRL-{some(chance, LETTERS, 32)}"
    ),
    "new relic key": after("NRAK-", "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 27),
    "langsmith key": lambda chance: f"lsv2_pt_{some(chance, HEX, 32)}_{some(chance, HEX, 10)}",
    "airtable token": lambda chance: f"pat{some(chance, LETTERS, 14)}.{some(chance, HEX, 64)}",
    "kubeconfig key": lambda chance: base64.b64encode(BLOCKS["private key (PEM)"](chance).encode()).decode(),
}
TOKEN_TEMPLATES = (
    "** DONE Hand over the deployment\nCLOSED: [2025-02-03 Mon]\nThe bot uses {} since January.\n",
    "Subject: access\n\nHi Ann,\nhere it is:\n\n    {}\n\nBest, B.",
    'WORKER_CREDENTIAL: "{}" # staging',
    "[worker]\nenabled = true\nidentity = {}\n",
    'var cfg = new Config {{ Identity = "{}" }};',
    "  - run: ./deploy.sh --identity={} --fast",
    "ERROR 401 for {}: not allowed (attempt 2)",
    'env:\n- name: IDENTITY\n  value: "{}"\n',
    "1. old: none\n2. new: {}\n3. who: Bob",
    "identity={};Timeout=30",
    'He said "{}" on the phone, I typed it in.',
    "| 2025-01-01 | {} | Bob |",
    "puts 'x' if id == '{}'",
    "GET /v2/items?identity={} HTTP/1.1",
    "<!-- {} -->",
    "#+IDENTITY: {}",
    "Neuer Zugang ({}) gilt ab Montag.",
    "set identity {}\nset colour blue",
    '"a","{}","b"',
    "**{}**",
)
BLOCK_TEMPLATES = (
    "deploy key below\n{}\nend",
    "#+begin_src text\n{}\n#+end_src\n",
    "cat > key <<EOF\n{}\nEOF",
    "const KEY = `{}`;",
    "- the key:\n{}\n- the rest",
)
PASSWORD_TEMPLATES = {
    "password prose, English": (
        "btw the password for the staging box is still {}, change it.",
        'Guest network, password "{}".',
        "The new passcode is: {}",
        "We set the root password to {} on all three.",
        "Her old password was '{}'.",
        "password (admin): {}",
        "His login is bob and the password is {}.",
    ),
    "password prose, German": (
        "Hier das Passwort fürs Intranet: {}",
        "Das neue Passwort lautet: {}",
        'Mein Passwort bei der Bank ist "{}".',
        "Zugang mit Kennwort {} möglich.",
        "Passwort des Druckers ist {}",
    ),
    "password prose, French": (
        "Voici le mot de passe : {}",
        "Le nouveau mot de passe est : {}",
        "Le mot de passe pour le serveur est {}, à changer.",
        "mot de passe = {}",
    ),
    "password prose, Spanish": (
        "Aquí está la contraseña: {}",
        "La nueva contraseña es: {}",
        "La contraseña para el servidor es {}, hay que cambiarla.",
        "contraseña = {}",
    ),
    "password in settings": (
        "MYSQL_ROOT_PASSWORD: {}",
        "[client]\nuser=bob\npassword={}\n",
        'smtp_password: "{}"',
        '"dbPassword" : "{}",',
        "ENV ADMIN_PASSWORD={}",
        "jdbc:mysql://db/app?user=bob&password={}",
        "env:\n  - name: SMTP_PASSWORD\n    value: '{}'",
        "ansible_become_pass={}",
        "keystore.password = {}",
    ),
    "password in code": (
        'val password = "{}"',
        'db.connect(host, user, password: "{}")',
        "@password = '{}'",
        '(setq imap-password "{}")',
        'password <- "{}"',
        'char *password = "{}";',
        "\"password\": '{}',",
        'Password = "{}",',
    ),
    "password in a table": (
        "| Service | Login | Password |\n|---|---|---|\n| wiki | ann | {} |\n| mail | ann | same |",
        "|Passwort|{}|",
        "name;password;note\nann;{};old\n",
    ),
    "password on a command line": (
        "docker login -u ann -p {} registry.example.org",
        'psql "host=db user=ann password={}"',
        "curl --user ann:{} https://x.example",
        "ldapsearch -D cn=ann -w x --password '{}'",
    ),
    "netrc": (
        "machine ftp.example.org\nlogin ann\npassword {}\n",
        "machine mail.example.org login ann account a password {}",
    ),
    "url password": (
        "SQLALCHEMY_DATABASE_URI = 'postgresql+psycopg2://ann:{}@db/app'",
        "sftp://ann:{}@files.example.org",
        '"broker": "redis://default:{}@r.example:6379"',
        "see [repo](https://ann:{}@git.example.org/x)",
        "smtp://ann%40example.org:{}@mail.example.org:587",
    ),
}
KEY_TEMPLATES = (
    'MISTRAL_API_KEY="{}"',
    "clientSecret = '{}'",
    '"accessToken" : "{}"',
    "consumer_secret: {}",
    "Here is the API key you asked for: {}",
    "api-key: {}",
    "x-auth-token: {}",
    'secret = "{}"',
    "?api_key={}&q=rain",
    "JWT_SECRET={}",
    "The secret key is `{}` for now.",
    "SESSION_SECRET: '{}'",
    "| token | {} | ann |",
    "tool set-token --token={}",
    'var apiKey = "{}";',
    "the refresh token was {} last week",
)
OTHER_TEMPLATES = {
    "aws secret key": (
        "aws configure set aws_secret_access_key {}",
        'secret_access_key: "{}"',
        'new AWS.Credentials({{ secretAccessKey: "{}" }})',
    ),
    "azure storage key": (
        '"AzureWebJobsStorage": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}"',
        "account_key: {}",
    ),
    "bearer": (
        'authorization = "Bearer {}"',
        '-H "Authorization: Bearer {}" \\',
        'req.Header.Set("Authorization", "Bearer {}")',
    ),
    "basic": ("proxy-authorization: Basic {}", "_auth={}", "headers: {{ Authorization: 'Basic {}' }}"),
}


def _uuid(chance: Chance) -> str:
    return "-".join(some(chance, HEX, length) for length in (8, 4, 4, 4, 12))


def secrets(seed: int = 101, each: int = 5) -> list[Case]:
    chance = random.Random(seed)
    found = []
    makers = {**TOKENS, **VARIANTS}
    for kind, maker in makers.items():
        for number in range(each):
            template = TOKEN_TEMPLATES[(number * 11 + len(kind) * 3) % len(TOKEN_TEMPLATES)]
            found.append(filled(chance, kind, template, maker(chance), PROSE))
    for kind, maker in BLOCKS.items():
        found += [filled(chance, kind, template, maker(chance), PROSE) for template in BLOCK_TEMPLATES]
    for kind, templates in PASSWORD_TEMPLATES.items():
        for template in templates * 2:
            found.append(filled(chance, kind, template, fits(kind, LOOSE["password"](chance)), PROSE))
    for template in KEY_TEMPLATES * 2:
        found.append(filled(chance, "api key", template, LOOSE["api key"](chance), PROSE))
    for kind, templates in OTHER_TEMPLATES.items():
        for template in templates * 2:
            found.append(filled(chance, kind, template, LOOSE[kind](chance), PROSE))
    return found


NEAR: tuple[Callable[[Chance], str], ...] = (
    lambda c: f"npm ERR! code E404 at {some(c, HEX, 40)}",
    lambda c: f"go.sum: example.org/x v1.2.{c.randrange(9)} h1:{some(c, BASE64, 43)}=",
    lambda c: f"SRI: sha384-{some(c, BASE64, 64)}",
    lambda c: f"Session {_uuid(c)} ended normally.",
    lambda c: f'<img src="data:image/jpeg;base64,/9j/{some(c, BASE64, 400)}">',
    lambda c: f"256 SHA256:{some(c, BASE64, 43)} ann@host (ED25519)",
    lambda c: f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{some(c, BASE64, 300)} ann@host",
    lambda c: (
        f"var _0x{some(c, HEX, 4)}=['\\x70\\x75','{some(c, SMALL, 8)}'];(function(a,b){{}}(_0x{some(c, HEX, 4)}));"
    ),
    lambda _: "Your password has expired. Choose a new password and confirm it.",
    lambda _: "A strong password is long, random and used once.",
    lambda _: "password policy: min 10 chars, max 64, history of 5",
    lambda _: "Password reset links are valid for 24h; tokens for 15min.",
    lambda _: "The secret is rotated by cron every night at 02:30.",
    lambda _: "token: ${{ secrets.GITHUB_TOKEN }}",
    lambda _: "secret: ENC[AES256_GCM,data:...,type:str]",
    lambda _: "password: \"{{ lookup('env', 'PW') }}\"",
    lambda _: "PASSWORD=<redacted>",
    lambda _: "password=********",
    lambda _: "api_key=XXXXXXXXXXXXXXXX",
    lambda _: "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxx",
    lambda _: "token: TODO",
    lambda _: "SECRET_KEY = config('SECRET_KEY')",
    lambda _: "apiKey: process.env.WEATHER_API_KEY,",
    lambda _: "let token = try await auth.token(for: user)",
    lambda _: "private String password; // set by the framework",
    lambda _: "if (!token) throw new Error('missing token');",
    lambda _: "getSecret(name: string, options?: SecretOptions): Promise<string>",
    lambda _: "http://user:pass@example.com/ is how credentials look in an address.",
    lambda _: "redis://localhost:6379/0 and amqp://mq:5672",
    lambda _: "ftp://ftp.example.org:21/pub/x@2x.png",
    lambda _: 'curl -H "Authorization: Bearer ${TOKEN}" https://api.example.org',
    lambda _: "Authorization: Basic <base64>",
    lambda c: f"prompt_tokens: {c.randrange(9999)}, completion_tokens: {c.randrange(9999)}",
    lambda c: f'sort_key = "2025-0{c.randrange(1, 9)}-11#order#{c.randrange(999)}"',
    lambda c: f"partition_key: tenant-{c.randrange(99)}-eu",
    lambda c: f"foreign_key='{some(c, SMALL, 6)}_id'",
    lambda c: f"public_key: {some(c, BASE64, 43)}=",
    lambda c: f"key_id = {some(c, HEX, 16)}",
    lambda c: f"csrf: see RFC; nonce-{some(c, LETTERS, 12)}",
    lambda c: f"https://drive.example.org/file/d/{some(c, URL, 33)}/view",
    lambda c: f"https://youtu.be/{some(c, URL, 11)}?t=42",
    lambda c: f"[[file:~/notes/password-manager.org::{c.randrange(99)}][passwords]]",
    lambda c: f"ISBN 978-3-16-14841{c.randrange(9)}-0, tracking 1Z{some(c, '0123456789ABCDEF', 16)}",
    lambda c: f"sensor {c.randrange(10**11, 10**12)} at {c.random():.12f}",
    lambda _: "Forgot password? Click here. Remember me [x]",
    lambda _: "Passwort ändern: Einstellungen > Konto > Passwort.",
    lambda _: "Das Kennwort muss 8-stellig sein.",
    lambda _: "Saisissez votre mot de passe : il doit contenir 8 caractères.",
    lambda _: "Introduzca su contraseña: mínimo 8 caracteres.",
    lambda _: "A senha é obrigatória e o token expira em 1h.",
    lambda _: "| Field | Type |\n|---|---|\n| password | string(64) |\n| token | varchar(255) |",
    lambda _: "| password | required | min:8 |",
    lambda _: "user,password,role\nann,***,admin",
    lambda c: f"e.password_digest = '{some(c, HEX, 64)}'",
    lambda c: f"nix: /nix/store/{some(c, SMALL, 32)}-openssl-3.0.{c.randrange(9)}",
    lambda c: f"pod web-{some(c, HEX, 10)}-{some(c, SMALL, 5)} restarted",
    lambda c: f"arn:aws:iam::{c.randrange(10**11, 10**12)}:role/deploy",
    lambda c: f"tx 0x{some(c, HEX, 64)} in block {c.randrange(10**7)}",
    lambda c: f"address 0x{some(c, HEX, 40)}",
    lambda c: f"magnet:?xt=urn:btih:{some(c, HEX, 40)}",
    lambda c: f"Message-ID: <{some(c, LETTERS, 24)}@mail.example.org>",
    lambda _: "The passphrase is the weak point, as always.",
    lambda _: "secret santa: Bob draws Ann; budget 20 EUR",
    lambda _: "Tokenizer: 32k vocabulary, token id 50256 ends a text.",
    lambda _: "The API key is read from the environment (WEATHER_API_KEY).",
    lambda _: (
        "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n<paste the key here>\n-----END OPENSSH PRIVATE KEY-----"
    ),
)

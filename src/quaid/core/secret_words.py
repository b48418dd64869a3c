"""Secrets that only the words around them give away, as data: passwords, keys without a shape, headers, commands.

The words are names of settings and the words for a password in a dozen languages. Does not know how a text is
searched; `secrets` does.
"""

import re
from re import IGNORECASE

from quaid.core import secret_looks as looks
from quaid.core.secret_rules import Rule

_TOKENS = r"secret|token|credential"
# A key is a secret only with one of these before it.
_KEY = re.compile(
    r"(?:api|access|private|auth|encryption|signing|master|account|service|license|deploy|app|secret|clé)[_ -]?\Z",
    IGNORECASE,
)
_PASSES = (
    r"pass(?:word|wd|phrase|code|wort|ord)|pwd|kennwort|mot[_ -]?de[_ -]?passe|mdp|contrase(?:ñ|n\u0303|n)a|clave"
    r"|senha|wachtwoord|hasło|пароль|密码|密碼|パスワード|비밀번호|lösenord"
)
# pass, pw and psk are parts of many words: only as the last part of a name, and right before its sign.
_SHORT = (
    r"(?-i:(?<![A-Za-z])|(?<=[A-Z])(?=P[AWS])|(?<=[a-z])(?=P[a-z])|(?<=require))"
    r"(?:pass|pw|psk)(?=[\"']?\s{0,3}[:=])"
)
# As they are searched for, in lower case.
SECRET_WORDS = ("secret", "token", "credential")
PASSWORD_WORDS = (
    *(
        "pass",
        "pw",
        "kennwort",
        "mot de",
        "mot_de",
        "motdepasse",
        "mdp",
        "contrase",
        "clave",
        "senha",
        "wachtwoord",
    ),
    *("hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호", "lösenord"),
)

NAMES = re.compile(f"{_PASSES}|{_SHORT}|{_TOKENS}", IGNORECASE)
"""What must stand at one of those words for any rule to be tried there."""
_QUOTE = r"(?P<quote>\\?[\"'`])?"
_VALUE = r"(?P<secret>(?(quote)[^\"'`\n\\]{4,400}+|[^\s\"'`,;<>|&\\]{4,400}+))"
_SPACE = r"[ \t\u00a0]"
_ASSIGNED = (
    r"s?+(?:[_.-]?[A-Za-z0-9_-]{1,40}+)?)"
    r"(?:\\?[\"'`*~)\]]|=(?= ?:)){0,4}+" + _SPACE + r"{0,20}+(?:"
    # key: value, key = value, key -> value, | key | value |, - key :: value; a value may begin on the next line
    r"(?P<sign>:=|=>|<-|->|→|::|\?=|=(?!=)|[:：|(,]|为|是|>(?=[^<\n]{4,80}</))" + _SPACE + r"{0,20}+"
    r"(?:[*_~]{1,2}" + _SPACE + r"?)?"
    r"(?:(?:[>|][+-]?)?\r?\n" + _SPACE + r"{1,20}(?![\w-]+:))?"
    # - name: DB_PASSWORD, value: …
    r"|,?\s{1,40}[\"']?[vV]alue[\"']?\s{0,3}[:=]\s{0,3})" + _QUOTE + _VALUE
)
# Up to ten words, then a long value; and up to eight words, then "is" or a colon.
_TOLD = (
    r"s?\b(?:[ ,:(\"'`*~=]{1,4}+[^\s.!?;|=,:(\"'`*~]{1,30}+){0,10}?[\"'`*~)]{0,2}[ ,:(\"'`*~=]{1,4}+"
    r"(?P<secret>[A-Za-z0-9_+/.~-]{16,400}+)"
)
_WORDS = r"(?:[ \t]{1,3}+[^\s.!?;:|=]{1,30}+){0,8}?"
_BE = r"(?:is|was|are|were|ist|war|lautet|est|es|era|é|è|es:|becomes|remains|to|heißt|будет|это|to:)"

LOOSE: tuple[Rule, ...] = (
    Rule(
        "authorization",
        ("authorization", "bearer "),
        re.compile(
            r"(?:authorization\\?[\"']?\s{0,3}[:=,]\s{0,3}\\?[\"'`]?(?:basic|token|bearer|apikey|key|digest)\s{1,3}(?P<header>)|bearer\s{1,3})"
            r"[\"'`]?(?P<secret>[A-Za-z0-9._~+/-]{12,2000}+={0,2})",
            IGNORECASE,
        ),
        looks.granted,
        folded=True,
    ),
    Rule(
        "docker login",
        ('"auth"', "_auth"),
        re.compile(r"[\"_]auth\"?\s{0,3}[:=]\s{0,3}\"?(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})", IGNORECASE),
        looks.encoded_login,
        folded=True,
    ),
    Rule(
        "aws secret key",
        (
            "secret_access_key",
            "secretaccesskey",
            "secret access key",
            "secret-access-key",
            "aws_secret",
            "aws secret",
        ),
        re.compile(
            r"(?:aws[_ ])?secret[_ -]?(?:access[_ -]?)?(?:key)?[^\nA-Za-z0-9/+]{1,30}"
            r"(?:(?:is|was)[^\nA-Za-z0-9/+]{1,8})?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
            IGNORECASE,
        ),
        looks.mixed,
        "AWS",
        folded=True,
    ),
    Rule(
        "netrc password",
        ("login ", "login\n"),
        re.compile(
            r"login\s+\S{1,100}\s+(?:account\s+\S{1,100}\s+)?password\s+[\"']?(?P<secret>[^\s\"']{4,200})",
            IGNORECASE,
        ),
        lambda found: not looks.placeholder(found["secret"]) and looks.odd(found["secret"]),
        folded=True,
    ),
    Rule(
        "secret",
        (*PASSWORD_WORDS, *SECRET_WORDS, "psk"),
        re.compile(r"(?P<name>(?:" + "|".join((_PASSES, _TOKENS, _SHORT)) + ")" + _ASSIGNED, IGNORECASE),
        looks.assigned,
        folded=True,
    ),
    Rule(
        "secret",
        ("key",),
        re.compile("(?P<name>key" + _ASSIGNED, IGNORECASE),
        looks.assigned,
        lead=_KEY,
        reach=12,
        folded=True,
    ),
    Rule(
        "secret",
        ("--",),
        re.compile(
            r"--(?:pass(?:word|wd|phrase)?|pwd|token|api-?key|(?:client-)?secret|access-key|auth(?:-?token)?)[ =]"
            r"(?P<quote>[\"'])?(?P<secret>(?(quote)[^\"'\n]{4,400}+|[^\s\"']{4,400}+))",
            IGNORECASE,
        ),
        looks.option,
        folded=True,
    ),
    Rule(
        "password",
        PASSWORD_WORDS,
        re.compile(
            r"(?<!/)(?:"
            + _PASSES
            + r")s?[\"'`*_)]{0,2}"
            + _WORDS
            + r"(?:[ \t]?:(?=\s)|[ \t]{1,3}"
            + _BE
            + r"(?!\w))\s{0,3}"
            r"(?:now |still |simply |just |currently |jetzt |ahora |maintenant )?"
            r"[:=]?\s{0,3}(?P<quote>[\"'`*~=_«“„]{1,2}[ \u00a0]?)?(?P<secret>[^\s\"'`»”“]{5,100}+)",
            IGNORECASE,
        ),
        looks.told,
        folded=True,
    ),
    Rule(
        "password",
        PASSWORD_WORDS,  # "log in with the password hunter2", "パスワードはhunter2"
        re.compile(
            r"(?:"
            + _PASSES
            + r")(?:"
            + _SPACE
            + r"{0,2}(?:は|是|为|為|は、|는|은)|"
            + _SPACE
            + r"{1,3}(?:of |von |de )?)"
            r"[:=：]?\s{0,2}(?P<quote>[\"'`*~=_「«“„]{1,2})?(?P<secret>[!-~]{6,100}+)",
            IGNORECASE,
        ),
        lambda found: looks.told(found) and looks.kinds(found["secret"].rstrip(".,;:)'\"`*~=»”")) >= 3,
        folded=True,
    ),
    # "the API key for the weather service is …"
    Rule(
        "secret",
        SECRET_WORDS,
        re.compile(f"(?:{_TOKENS})" + _TOLD, IGNORECASE),
        looks.told_token,
        folded=True,
    ),
    Rule(
        "secret",
        ("key",),
        re.compile("key" + _TOLD, IGNORECASE),
        looks.told_token,
        lead=_KEY,
        reach=12,
        folded=True,
    ),
    Rule(
        "password",
        ("credential", "creds", "login", "zugangsdaten", "identifiants", "credenciales"),
        re.compile(
            r"(?:credentials?|creds?|log-?in|zugangsdaten|identifiants|credenciales)\b"
            r"[^\n.;:|=]{0,40}[:=]\s{0,3}[\"'`*~=]{0,2}"
            r"[\w.@+-]{2,60}[\"'`*~=]{0,2}"
            + _SPACE
            + r"?[:/]"
            + _SPACE
            + r"?[\"'`*~=]{0,2}(?P<secret>[^\s\"'`]{6,100}+)",
            IGNORECASE,
        ),
        lambda found: looks.told(found) and looks.kinds(found["secret"]) >= 3,
        folded=True,
    ),
    Rule(
        "command password",
        (" -u", " --user", " -p"),
        re.compile(
            r" -(?:(?:u|-user)[ =]?[\"']?[\w.@+-]{1,80}+[:%]|p ?(?P<quote>[\"'])?)(?P<secret>[^\s\"']{4,200}+)",
            IGNORECASE,
        ),
        looks.command,
        folded=True,
    ),
    Rule(
        "session cookie",
        ("sessionid=", "sessid=", "session=", "connect.sid="),
        re.compile(r"(?:sessionid|sessid|session|connect\.sid)=(?P<secret>[^\s;\"'&]{20,600}+)", IGNORECASE),
        lambda found: looks.random(found) and looks.machine_made(found["secret"]),
        folded=True,
    ),
    Rule(
        "seed phrase",
        ("phrase", "mnemonic"),
        re.compile(
            r"(?:phrase|mnemonic)\W{1,20}(?P<secret>[a-z]{3,8}(?:\s{1,3}[a-z]{3,8}){11,23})\b",
            IGNORECASE,
        ),
        looks.seed_phrase,
        folded=True,
    ),
)

BESIDE = Rule("password", PASSWORD_WORDS, re.compile(r"\S+"), looks.told, folded=True)
"""What `secrets` finds before the word (`hunter2! is the password`) and below it, in a table."""

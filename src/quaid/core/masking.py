"""Secrets in a text, replaced by what they were: keys, tokens, passwords, private keys, numbers of cards.

Knows how secrets look, as data: each rule has words without which it is not even tried, a pattern, and perhaps
a second look at what was found. Does not know where a text comes from.

A rule would rather let a doubtful word stand than mask an ordinary one: a hash, a uuid, `max_tokens=4096` and
`password: str` are no secrets. What was masked cannot be had back from the masked text.
"""

from collections.abc import Callable
from re import IGNORECASE, Match, Pattern
from typing import NamedTuple

from quaid.core.patterns import pattern


class Rule(NamedTuple):
    """How one kind of secret looks. The pattern's group `secret` is what goes, else all of it."""

    name: str
    needles: tuple[str, ...]
    """One of them is in every text that holds such a secret; in lower case when `folded`."""
    pattern: Pattern[str]
    holds: Callable[[Match[str]], bool] | None = None
    """Whether what was found is one after all."""
    folded: bool = False


class Masked(NamedTuple):
    text: str
    secrets: int
    """How many were masked."""


def mask(text: str) -> Masked:
    """The text with a note such as [masked: github token] in place of each secret."""
    count = 0
    folded = text.lower()
    for rule in RULES:
        within = folded if rule.folded else text
        for needle in rule.needles:
            if needle in within:
                break
        else:
            continue
        text, number = _apply(rule, text)
        if number:
            count += number
            folded = text.lower()
    if _CARD.search(text):
        text, number = _apply(CARD, text)
        count += number
    return Masked(text, count)


def _apply(rule: Rule, text: str) -> tuple[str, int]:
    pieces: list[str] = []
    at = count = 0
    for found in rule.pattern.finditer(text):
        if rule.holds is not None and not rule.holds(found):
            continue
        group = "secret" if "secret" in found.re.groupindex else 0
        start, end = found.span(group)
        if start < at or text.startswith("[masked", start):
            continue
        pieces += [text[at:start], f"[masked: {rule.name}]"]
        at = end
        count += 1
    if not count:
        return text, 0
    return "".join([*pieces, text[at:]]), count


# A second look


def _mixed(found: Match[str]) -> bool:
    """Letters and digits both: no word and no number."""
    value = found["secret"] if "secret" in found.re.groupindex else found[0]
    return any(each.isdigit() for each in value) and any(each.isalpha() for each in value)


_PLACEHOLDER = pattern(
    r"[<\[{$%].*|[*x•.…_-]{3,}.*|.*[*•…]{3}.*|.*\.\.\."
    r"|(?:your|my|the|some|a|an|new|old|test|example|sample|dummy|fake)[-_ ].*"
    r"|(?:my|your|db|user)?(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|key|user(?:name)?|string|str|text"
    r"|bytes|none|null|nil|undefined|true|false|required|optional|example|changeme|redacted|masked|hidden|empty"
    r"|value|todo|any|object|int|number|bool|boolean|secretstr)",
    IGNORECASE,
)
# What a program says about a value: a call, an index, an attribute, a path, another word of the language.
_CODE = pattern(r".*[(\[{].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w*::.*|/.*|~/.*|https?:.*")


def _plausible(value: str) -> bool:
    return not _PLACEHOLDER.fullmatch(value)


def _kinds(value: str) -> int:
    """Of how many kinds its characters are: small and capital letters, digits, signs."""
    return sum(
        (
            any(each.islower() for each in value),
            any(each.isupper() for each in value),
            any(each.isdigit() for each in value),
            any(not each.isalnum() for each in value),
        )
    )


def _assigned(found: Match[str]) -> bool:
    """A value that somebody gave to a name such as password or api_key."""
    value, name = found["secret"], found["name"].lower()
    quoted = bool(found["quote"])
    if not _plausible(value) or (not quoted and _CODE.fullmatch(value)):
        return False
    if "pass" in name or "pwd" in name:
        tight = found["sign"] == "="  # as in a file of settings: PASSWORD=correcthorse
        return len(value) >= 4 and (
            quoted or tight or (len(value) >= 6 and _kinds(value) >= 2 and _odd(value))
        )
    return (
        len(value) >= 8
        and not value.isdigit()
        and (_digits_and_letters(value) or (quoted and len(value) >= 20 and " " not in value))
    )


def _odd(value: str) -> bool:
    """Not merely a word with a capital letter or a full stop at its end."""
    inner = value.rstrip(".,;:!?")
    return any(not each.isalpha() and each not in "-'’" for each in inner)


def _digits_and_letters(value: str) -> bool:
    return any(each.isdigit() for each in value) and any(each.isalpha() for each in value)


def _told(found: Match[str]) -> bool:
    """A password in a sentence has a digit or a sign in it; a word has not."""
    return _plausible(found["secret"]) and _odd(found["secret"])


def _granted(found: Match[str]) -> bool:
    """What stands behind "Bearer", in a header or elsewhere."""
    is_header = found["header"] is not None
    return _plausible(found["secret"]) and (is_header or _digits_and_letters(found["secret"]))


def _in_address(found: Match[str]) -> bool:
    return _plausible(found["secret"])


def luhn(digits: str) -> bool:
    """Whether the last digit of a card's number fits the others."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


# How the numbers of each brand begin, and how long they are: other long numbers are names of something.
_BRANDS = pattern(
    r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}"
)


def _card(found: Match[str]) -> bool:
    digits = "".join(each for each in found[0] if each.isdigit())
    return _BRANDS.fullmatch(digits) is not None and len(set(digits)) > 1 and luhn(digits)


# The rules


def _rule(name: str, needles: str, source: str, holds: Callable[[Match[str]], bool] | None = None) -> Rule:
    return Rule(name, tuple(needles.split()), pattern(source), holds)


_B = r"(?<![A-Za-z0-9_])"
_NAMES = (
    r"pass(?:word|wd|phrase|code)|passwort|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|encryption[_-]?key|signing[_-]?key|credential"
)

RULES: tuple[Rule, ...] = (
    _rule(
        "private key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})+)",
    ),
    _rule("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _rule("jwt", "eyJ", _B + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _rule("aws key", "AKIA ASIA ABIA ACCA", _B + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("anthropic key", "sk-ant-", _B + r"sk-ant-[A-Za-z0-9_-]{16,}"),
    _rule("openai key", "sk-", _B + r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})", _mixed),
    _rule("openrouter key", "sk-or-", _B + r"sk-or-(?:v1-)?[A-Za-z0-9]{20,}"),
    _rule("stripe key", "k_live_ k_test_ whsec_", _B + r"(?:[rsp]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    _rule("github token", "ghp_ gho_ ghu_ ghs_ ghr_", _B + r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _rule("github token", "github_pat_", _B + r"github_pat_[A-Za-z0-9_]{22,}"),
    _rule("gitlab token", "glpat- gldt- glrt- glptt- glcbt-", _B + r"gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20,}"),
    _rule("slack token", "xox xapp-", _B + r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}", _mixed),
    _rule("webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_-]{20,})"),
    _rule("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{10,}/[A-Za-z0-9_-]{20,})"),
    _rule("google key", "AIza", _B + r"AIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _rule("google token", "ya29. GOCSPX-", _B + r"(?:ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,})"),
    _rule("huggingface token", "hf_", _B + r"hf_[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    _rule("npm token", "npm_", _B + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _rule("pypi token", "pypi-", _B + r"pypi-[A-Za-z0-9_-]{50,}"),
    _rule("sendgrid key", "SG.", _B + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _rule("twilio key", "SK", _B + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("mailgun key", "key-", _B + r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("digitalocean token", "_v1_", _B + r"do[opr]_v1_[a-f0-9]{40,}"),
    _rule("databricks token", "dapi", _B + r"dapi[a-f0-9]{32}"),
    _rule("shopify token", "shpat_ shpca_ shppa_ shpss_", _B + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _rule("telegram token", ":AA", _B + r"\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    _rule("vault token", "hvs. hvb.", _B + r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
    _rule("groq key", "gsk_", _B + r"gsk_[A-Za-z0-9]{30,}"),
    _rule("xai key", "xai-", _B + r"xai-[A-Za-z0-9]{40,}"),
    _rule("replicate token", "r8_", _B + r"r8_[A-Za-z0-9]{30,}"),
    _rule("perplexity key", "pplx-", _B + r"pplx-[A-Za-z0-9]{30,}"),
    _rule("linear key", "lin_api_", _B + r"lin_api_[A-Za-z0-9]{30,}"),
    _rule("notion token", "ntn_ secret_", _B + r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})(?![A-Za-z0-9])"),
    _rule("postman key", "PMAK-", _B + r"PMAK-[A-Za-z0-9]{20,}-[A-Za-z0-9]{30,}"),
    _rule("azure key", "AccountKey= AccessKey=", r"(?:Account|Access)Key=(?P<secret>[A-Za-z0-9+/]{30,}={0,2})"),
    Rule(
        "password",
        ("://",),
        pattern(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@'\"<>`]{0,200}:(?P<secret>[^\s/@'\"<>`]{1,200})@(?=[\w\[])"),
        _in_address,
    ),
    Rule(
        "authorization",
        ("bearer ", "basic ", "token "),
        pattern(
            r"(?:\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|token|bearer)\s+(?P<header>)|\bbearer\s+)"
            r"(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
            IGNORECASE,
        ),
        _granted,
        folded=True,
    ),
    Rule(
        "secret",
        (
            *("password", "passwd", "passphrase", "passcode", "passwort", "pwd", "secret", "token", "credential"),
            *("apikey", "api_key", "api-key", "access_key", "access-key", "accesskey", "private_key", "private-key"),
            *("auth_key", "auth-key", "authkey", "encryption_key", "encryption-key", "signing_key", "signing-key"),
        ),
        pattern(
            r"(?P<name>(?:" + _NAMES + r")s?(?:[_-][A-Za-z0-9_-]{1,40})?)[\"'`]?"
            r"\s{0,3}(?P<sign>=>|:=|=(?=\s)|[=:])\s{0,3}"
            r"(?P<quote>[\"'`])?(?P<secret>(?(quote)[^\"'`\n]{4,400}|[^\s\"'`,;<>]{4,400}))",
            IGNORECASE,
        ),
        _assigned,
        folded=True,
    ),
    Rule(
        "secret",
        ("--pass", "--token", "--api-key", "--secret", "--pwd"),
        pattern(
            r"--(?:password|passwd|passphrase|pwd|token|api-key|secret)[ =][\"']?(?P<secret>[^\s\"']{4,400})",
            IGNORECASE,
        ),
        lambda found: _told(found) and not _CODE.fullmatch(found["secret"]) and not found["secret"].startswith("-"),
        folded=True,
    ),
    Rule(
        "password",
        ("password", "passphrase", "passwort", "passcode", "contraseña", "mot de passe"),
        pattern(
            r"\b(?:password|passphrase|passcode|passwort|contraseña|mot de passe)(?:\s+\w+){0,3}?\s+"
            r"(?:is|was|ist|lautet|es|est)\s*:?\s*[\"'`]?(?P<secret>[^\s\"'`]{5,100})",
            IGNORECASE,
        ),
        _told,
        folded=True,
    ),
)  # fmt: skip

_CARD = pattern(
    r"(?<![A-Za-z0-9_.-])[2-6]\d{3}[ -]?\d{4,6}[ -]?\d{4,5}(?:[ -]?\d{1,7})?(?![A-Za-z0-9_-]|\.\d)"
)
CARD = Rule("card number", (), _CARD, _card)

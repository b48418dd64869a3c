"""Find secrets in text (tokens, keys, passwords, card numbers) and mask them.

A rule has needles (fixed strings to search for), a pattern that is matched where a needle occurs, and a check of
the match. A line that contains `allow-secret` is exempt, except when masking. Exceptions are not caught: a caller
that guards a commit must treat an error as a refusal.
"""

import binascii
import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from re import IGNORECASE, Match, Pattern
from typing import NamedTuple

LONGEST_VALUE_READ = 96
"""Number of leading characters of a value that are examined."""

# Placeholders written in place of a secret, matched against the whole value.
_PLACEHOLDER = re.compile(
    r"[<\[{$&].*|%\w+%|%[({].*|[*x•.…_#-]{3,}.*|.*[*•…]{3}.*|.*\.\.\.+|.*[<{]{1,2}[\w .-]+[>}]{1,2}.*"
    r"|@?(?:your|example|sample|dummy|fake|insert|enter|put|paste|replace|use|ihr|dein|votre)[-_ ].*"
    r"|(?:my|the|some|an?|new|old|test|mein|mon|tu|su|mi)[-_ ][a-z_ -]*"
    r"|(?:my|your|the|db|user|test|new|old|super|top|app|root|admin|some)?[-_ ]?"
    r"(?:pass(?:word|wort|wd|phrase|code|ed|ing)?|p[a4@]ssw[o0]rd|pwd|pw|secret|tokens?"
    r"|(?:api|access|private)?[-_ ]?keys?|user(?:name)?|string|str|text|bytes|none|null|nil|undefined"
    r"|true|false|yes|no|required|optional|example"
    r"|change[-_ ]?(?:me|it)|redacted|masked|hidden|empty|value|todo|tbd|n/?a|any|object|int"
    r"|number|bool|boolean|secretstr|foo(?:bar)?|bar|baz|contraseña|kennwort|mot de passe|encrypted|unchanged|unknown"
    r"|default|prompt|placeholder|credentials?|auth|bearer|here|sample|dummy|test(?:ing)?|xyz|abc)"
    r"[-_ ]?(?:here|1|123|1234|value|string|goes[-_ ]here)?[.!]?",
    IGNORECASE,
)
# Substrings that mark a token of a known format as a sample: AKIA…EXAMPLE, ghp_xxxxxxxx, sk-1234567890.
_SAMPLES = (
    *"example sample dummy placeholder changeme change-me change_me redacted replaceme replace-me".split(),
    *"replace_me your notreal not-real not_real insert- insert_ xxxxx *** ••• ... … < > {{ ${".split(),
    *"1234567890abc abcdefg deadbeef abc123abc123 fake- fake_ test-token test_token testtoken".split(),
    *"00000000 11111111 0123456789 test-key test_key testkey test_secret test-secret".split(),
    *"my-token my_token mytoken my-key my_key my-secret my_secret mysecret".split(),
    *"token-here token_here tokenhere key-here key_here keyhere secret-here secret_here".split(),
)
_REPEATED = re.compile(r"(\w)\1{6}")
# The sample token from the front page of jwt.io, quoted in many tutorials.
_FAMOUS = ("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l",)
# Source code instead of a literal value: a call, an index, an attribute, a path, a keyword.
_CODE = re.compile(
    r".*[(\[{].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[;,)]*|[A-Za-z_]\w*(?:::|->).*|\.{0,2}/.*|~/.*|[A-Za-z]:\\.*"
    r"|[a-z][a-z0-9+.-]*://.*|.*\)|!\w+|&\w+|@\w+(?:[./]\w+)*|--?[a-z].*|[\w./-]+\.(?:ya?ml|json|toml|env|txt|pem|key|crt"
    r"|md|org|py|js|ts|go|rs|rb|sh|conf|cfg|ini|html?|gpg|kdbx|asc|log)[.,;:]?"
)
_CALLED = re.compile(r"[A-Za-z_][\w.]*\(|\$|`|\{\{|<")
# Suffixes of names whose value describes a secret instead of being one (password_length, token_url).
_ABOUT = re.compile(
    r"(?:[_.-]|(?<=[a-z0-9])(?=[A-Z]))(?i:names?|ids?|kid|refs?|reference|paths?|files?|filename|dir|folder|ur[li]|endpoint|host"
    r"|server|type|kind|class|version|expir\w*|ttl|age|len|length|min\w*|max\w*|size|counts?|limit|polic(?:y|ies)|fields?"
    r"|labels?|hints?|title|regexp?|pattern|format|header|provider|namespace|prefix|suffix|hash(?:ed)?|digest|sha\w*"
    r"|fingerprint|checksum|status|state|errors?|message|msg|text|desc\w*|help|placeholder|alias|scopes?|issuer|audience"
    r"|usage|budget|enabled|required|rotation|reset|changed?|updated?|at|date|time\w*|lifetime|seconds|days|hours"
    r"|algorithm|alg|method|encoding|column|table|index|template|examples?|samples?|input|output|generator|factory"
    r"|service|handler|utils?|validator|sources?|location|env|var|variable|selector|manager|store|storage|strategy"
    r"|rate|cost|price|used|per|window|probs?|logprobs?|embeddings?|vocab|position|mask|strength|rules?|requirements?)$"
)
# Technical terms with a digit or sign in them, which may follow "the password is".
_TERM = re.compile(
    r"(?:base(?:16|32|58|62|64|85)|sha-?\d*|md[45]|utf-?(?:8|16)|pbkdf2|argon2\w*|bcrypt|scrypt|[12]fa|mfa|oauth2?|http/?\d?|k8s"
    r"|x\.?509|1password|pkcs\S*|rfc-?\d+|ipv[46]|rsa-?\d*|aes-?\d*\S*|ed25519|iso-?\d+|ascii|s3|ec2|p12|v\d[\d.]*)\b.*"
    r"|\d+[-–]?(?:char\w*|digits?|bytes?|bits?|days?|words?|letters?|stellig\w*|zeichen|hours?|minutes?|months?|years?|x|%|st|nd"
    r"|rd|th|ms|s|kb|mb|gb)\b.*"
    r"|[\d.,:/%–-]+|\d{4}-\d\d-\d\d.*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+[.,;]?|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|de|fr|es|local)\S*"
    r"|[A-Za-z]+(?:[-'’/][A-Za-z]+)+[.,;:!?)]*|(?-i:[A-Z]{2,})-\d+[.,;:]?|\[\[.*|#\w+|@\w+|\\\w+|(?-i:[A-Z_]{3,})\d?[.,;:]?|\w+\.{2,}|.*&\w+;.*"
    r"|[A-Za-z]+[.,;:!?)(]+(?:[A-Za-z]+[.,;:!?)]*)?",
    IGNORECASE,
)
_PARTS = re.compile(r"[-_./:+=\s]+")
_WAVES = re.compile(r"[a-zA-Z](?=\d)|\d(?=[a-zA-Z])")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


# Checks of values


def is_placeholder(value: str) -> bool:
    """Return True if the value is a placeholder for a secret: <your-token>, changeme, ${VAR}, sk-..."""
    value = value[:LONGEST_VALUE_READ]
    return bool(_PLACEHOLDER.fullmatch(value)) or (not value.isdigit() and is_sample(value))


def is_sample(token: str) -> bool:
    """Return True if a token of the right format is a sample from documentation."""
    head = token[:LONGEST_VALUE_READ].lower()
    for each in _SAMPLES:
        if each in head:
            return True
    return bool(_REPEATED.search(head)) or any(famous in token for famous in _FAMOUS)


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    value = value[:LONGEST_VALUE_READ]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values()) if value else 0.0


def character_kinds(value: str) -> int:
    """Return how many character classes occur: lowercase, uppercase, digits, other."""
    value = value[:LONGEST_VALUE_READ]
    return (
        (value != value.upper())
        + (value != value.lower())
        + bool(_DIGIT.search(value))
        + (not value.isalnum())
    )


_DIGIT = re.compile(r"\d")


def has_digits_and_letters(value: str) -> bool:
    value = value[:LONGEST_VALUE_READ]
    return bool(_DIGIT.search(value)) and value.lower() != value.upper()


def is_odd_word(value: str) -> bool:
    """Return True if the value is more than a word with optional capitals, hyphens and final punctuation."""
    inner = value[:LONGEST_VALUE_READ].rstrip(".,;:!?").replace("-", "").replace("'", "").replace("’", "")
    return bool(inner) and not inner.isalpha()


def is_machine_made(value: str) -> bool:
    """Return True if the value looks generated: alternating letters and digits, or a random mix of cases."""
    value = value[:LONGEST_VALUE_READ]
    if _UUID.fullmatch(value) or (_HEX.fullmatch(value) and entropy(value) >= 2.8):
        return has_digits_and_letters(value)
    longest = max(_PARTS.split(value), key=len)
    if len(longest) >= 8 and len(_WAVES.findall(longest)) >= 2 and entropy(longest) >= 2.5:
        return True
    if len(value) < 16 or entropy(value) < 3.3 or any(each.isspace() for each in value):
        return False
    if has_digits_and_letters(longest) and len(longest) >= 16:
        return True
    turns = sum(a.islower() != b.islower() for a, b in pairwise(longest))
    return len(longest) >= 16 and turns > len(longest) * 0.38


# Checks of matches


def is_shaped_token(found: Match[str]) -> bool:
    """Accept a token of a known format unless it is a sample."""
    return not is_sample(matched_secret(found))


def is_mixed_token(found: Match[str]) -> bool:
    """Same as is_shaped_token, but require both letters and digits."""
    value = matched_secret(found)
    return has_digits_and_letters(value) and not is_sample(value)


def is_random_token(found: Match[str]) -> bool:
    """Same as is_mixed_token, but require high entropy; for formats that ordinary words may match."""
    value = matched_secret(found)
    return has_digits_and_letters(value) and entropy(value) >= 3.0 and not is_sample(value)


def matched_secret(found: Match[str]) -> str:
    value: str = found["secret"] if "secret" in found.re.groupindex else found[0]
    return value


_PASSWORDS = ("pass", "pwd", "pw", "psk", "kenn", "contra", "mot", "mdp", "clave", "senha", "wacht", "has")


def is_assigned_value(found: Match[str]) -> bool:
    """Accept a value assigned to a name such as password or api_key."""
    value, name, quoted = found["secret"], found["name"], bool(found["quote"])
    is_password = not name.isascii() or name.lower().startswith(_PASSWORDS)
    mixed = has_digits_and_letters(value)
    alone = not quoted and is_password and _is_alone_on_line(found)
    if not mixed and not (is_password and (quoted or alone or is_odd_word(value))):
        return False
    if found["sign"] in ("(", ",") and not (quoted and mixed):
        return False
    head = value[:LONGEST_VALUE_READ]
    if not quoted and (_CALLED.match(head) if alone else _CODE.fullmatch(head)):
        return False
    if _ABOUT.search(name) or is_placeholder(value):
        return False
    if is_password:
        return _is_password_value(value, quoted=quoted, alone=alone)
    return len(value) >= 8 and _is_token_value(value, name)


def _is_alone_on_line(found: Match[str]) -> bool:
    """Return True for NAME=value alone on its line, as in a settings file."""
    text = found.string
    if found["sign"] not in ("=", "?=") or text[found.end() : found.end() + 1] not in ("", "\n", "\r"):
        return False
    before = text[max(0, found.start() - 60) : found.start()].rpartition("\n")[2].strip()
    return all(each.isalnum() or each in "_ -." for each in before) and before.count(" ") <= 1


def _is_password_value(value: str, *, quoted: bool, alone: bool) -> bool:
    if len(value) < 4:
        return False
    if any(each.isspace() for each in value):  # usually a label, an error or a sentence, rarely a passphrase
        return character_kinds(value) >= 3 and has_digits_and_letters(value) and is_machine_made(value)
    name = value.replace("_", "").replace("-", "").replace(".", "")
    if name != value and name.isalpha():
        return False
    if quoted or alone:
        return not (value[:1].isupper() and name.isalpha())
    return (
        len(value) >= 6
        and character_kinds(value) >= 2
        and is_odd_word(value)
        and not _TERM.fullmatch(value[:LONGEST_VALUE_READ])
    )


def _is_token_value(value: str, name: str) -> bool:
    """Return True if the value looks generated. Short values need less randomness if the name is unambiguous."""
    if is_machine_made(value):
        return True
    clear = not name.lower().startswith(("token", "secret", "credential"))
    return (
        clear
        and len(value) >= 10
        and value.isalnum()
        and entropy(value) >= 3.0
        and sum(map(str.isdigit, value)) >= 3
    )


def is_told_password(found: Match[str]) -> bool:
    """Accept a password in a sentence if it contains a digit or sign and is not a known term or a filename."""
    return _is_password_word(found["secret"])


def is_password_cell(value: str) -> bool:
    """Return True if a table cell in a password column looks like a password."""
    return 6 <= len(value) <= 100 and not any(map(str.isspace, value)) and _is_password_word(value)


def _is_password_word(value: str) -> bool:
    value = value.rstrip(".,;:)")[:LONGEST_VALUE_READ]
    if not has_digits_and_letters(value) and not (character_kinds(value) >= 3 and _SIGN.search(value[:-1])):
        return False
    return is_odd_word(value) and not (
        _TERM.fullmatch(value) or _CODE.fullmatch(value) or is_placeholder(value)
    )


_SIGN = re.compile(r"[!@#$%^&*+=?~]")


# Words between "token" and a long value which show that the value is something else.
_OTHER = re.compile(
    r"hash|sha\d*|digest|fingerprint|checksum|commit|\bid\b|uuid|version|public|https?:|file|path|\]\(",
    IGNORECASE,
)


def is_told_token(found: Match[str]) -> bool:
    """Accept a token in a sentence if it is long and looks generated."""
    value = found["secret"]
    if (
        not has_digits_and_letters(value)
        or value.startswith(("/", "."))
        or "//" in value
        or not is_machine_made(value)
    ):
        return False
    return not (
        _OTHER.search(found[0][: -len(value)])
        or is_placeholder(value)
        or _CODE.fullmatch(value[:LONGEST_VALUE_READ])
    )


def is_option_value(found: Match[str]) -> bool:
    """Accept the argument of an option such as --password."""
    value = found["secret"]
    return is_told_password(found) and not value.startswith("-")


_COMMAND = re.compile(
    r"\b(?:curl|wget|smbclient|sshpass|docker login|podman login|mysql\w*|redis-cli)\b[^\n]*\Z"
)


def is_command_password(found: Match[str]) -> bool:
    """Accept the argument of -u name: or -p if the line runs a program that takes a password there."""
    if not (_is_password_word(found["secret"]) or (found["quote"] and not is_placeholder(found["secret"]))):
        return False
    return _COMMAND.search(found.string, max(0, found.start() - 160), found.start()) is not None


def is_bearer_value(found: Match[str]) -> bool:
    """Accept the value after "Bearer"; outside an Authorization header it must also look random."""
    value = found["secret"]
    if is_placeholder(value) or _CODE.fullmatch(value[:LONGEST_VALUE_READ]):
        return False
    return found["header"] is not None or (has_digits_and_letters(value) and entropy(value) >= 3.0)


def is_url_password(found: Match[str]) -> bool:
    value = found["secret"]
    return not is_placeholder(value) and not (value.isdigit() and len(value) <= 5)


def is_encoded_login(found: Match[str]) -> bool:
    """Return True if the base64 value decodes to name:password, as in Docker's config and Basic authorization."""
    value = found["secret"]
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4)).decode()
    except (ValueError, UnicodeDecodeError):
        return False
    name, colon, password = plain.partition(":")
    return bool(
        colon and name.isprintable() and len(password) >= 4 and password.isprintable()
    ) and not is_placeholder(password)


def is_encoded_key(found: Match[str]) -> bool:
    """Return True if the base64 value, which starts with "-----BEGIN", decodes to a private key."""
    try:
        return b"PRIVATE KEY" in binascii.a2b_base64(found[0][:64])
    except ValueError:
        return False


_ELIDED = re.compile(r"\.\.\.|…|<[\w -]+>|x{8}|\*{4}|\{\{|\$\{|redacted|your|snip", IGNORECASE)


def is_key_block(found: Match[str]) -> bool:
    """Accept a private key block whose body is neither empty nor elided."""
    body = found["body"]
    return len(body) >= 40 and not _ELIDED.search(body[:400]) and not _ELIDED.search(body[-200:])


_SEED_WORD = re.compile(r"[a-z]{3,8}")
_STOP = frozenset(
    "the and for with you your that this are was from not but have has can will its which into".split()
)


def is_seed_phrase(found: Match[str]) -> bool:
    """Accept 12 to 24 short, mostly distinct words without stop words, as in a wallet's seed phrase."""
    words = found["secret"].split()
    return (
        len(words) in (12, 15, 18, 21, 24)
        and all(_SEED_WORD.fullmatch(word) for word in words)
        and len(set(words)) >= len(words) - 2
        and not _STOP.intersection(words)
    )


# Card numbers


def passes_luhn(digits: str) -> bool:
    """Return True if the digits pass the Luhn check."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


# Prefixes and lengths of card numbers by brand; other long numbers are usually identifiers.
_BRANDS = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}"
)
_NUMBERED = re.compile(
    r"(?:\bid|_id|#|\bno|\bnr|order|ticket|invoice|tracking|serial|phone|isbn|account|number|snowflake)\W*\Z",
    IGNORECASE,
)


_PRINTED = ((16,), (15,), (14,), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
"""Groupings in which card numbers are printed, as digits per group."""
_GOES_ON = re.compile(r"(?<!\\)[A-Za-z0-9_.-]\Z")
_STOPS = re.compile(r"(?![A-Za-z0-9_-]|\.\d)")


def card_group_count(text: str, groups: Sequence[Match[str]]) -> int:
    """Return how many of the leading digit groups form a card number, or 0 if they do not.

    Brand prefix, length and Luhn digit must match, and the number must not be labelled as an order, an id or the
    like.
    """
    lengths = tuple(len(group[0]) for group in groups)
    count = next((len(shape) for shape in _PRINTED if lengths[: len(shape)] == shape), 0)
    if not count:
        return 0
    start, end = groups[0].start(), groups[count - 1].end()
    digits = "".join([group[0] for group in groups[:count]])
    if not _BRANDS.fullmatch(digits) or len(set(digits)) == 1 or not passes_luhn(digits):
        return 0
    if _GOES_ON.search(text, max(0, start - 2), start) or not _STOPS.match(text, end):
        return 0
    before = text[max(0, start - 40) : start]
    return count if "card" in before.lower() or not _NUMBERED.search(before) else 0


SecretCheck = Callable[[Match[str]], bool]


class SecretRule(NamedTuple):
    """How to find one kind of secret. The secret is the pattern's group `secret`, or the whole match without it."""

    kind: str
    needles: tuple[str, ...]
    """Strings at one of which the pattern starts to match; lowercase if `folded`."""
    pattern: Pattern[str]
    holds: SecretCheck
    """Final check of a match."""
    issuer: str = ""
    """The service that can revoke it."""
    lead: Pattern[str] | None = None
    r"""Pattern that must match before the needle; ends with \Z. Part of the secret unless that is a group."""
    reach: int = 0
    """Maximum distance between the start of `lead` and the needle, in characters."""
    folded: bool = False
    """True if needles are searched case-insensitively."""


# Where a token may start: after a non-word character, an escaped line end, a terminal color code or a %-escaped byte.
_B = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=\dm)|(?<=%[0-9A-Fa-f]{2}))"
_E = r"(?![A-Za-z0-9])"


def _token_rule(
    kind: str, issuer: str, needles: str, rest: str, holds: SecretCheck = is_shaped_token
) -> SecretRule:
    """Return a rule for tokens that start with one of the needles and continue as `rest`."""
    words = tuple(needles.split())
    begins = "|".join(word.replace(".", r"\.").replace("/", "/") for word in words)
    return SecretRule(kind, words, re.compile(f"{_B}(?:{begins}){rest}"), holds, issuer)


_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>"
    r"(?:[^-]|-(?!----)){0,20000}(?=-----END )|(?:(?:\s|\\[nr]|[>|])+[A-Za-z0-9+/=]{16,200})+)"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)

SHAPED_RULES: tuple[SecretRule, ...] = (
    # private keys and JWTs
    SecretRule("private key", ("-----BEGIN ",), re.compile(_PEM), is_key_block),
    SecretRule(
        "private key",
        ("LS0tLS1CRUdJTi",),
        re.compile(r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/=]{60,}"),
        is_encoded_key,
    ),
    SecretRule(
        "private key",
        ("Private-Lines: ",),
        re.compile(r"Private-Lines: \d+\s+(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s*)+)"),
        is_shaped_token,
    ),
    _token_rule("age key", "", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    _token_rule("jwt", "", "eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _token_rule(
        "jwt",
        "",
        "eyJ",
        r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    _token_rule("wallet key", "", "xprv yprv zprv", r"[1-9A-HJ-NP-Za-km-z]{100,112}" + _E),
    # cloud providers
    _token_rule("aws key", "AWS", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _E),
    _token_rule("aws bedrock key", "AWS", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    SecretRule(
        "aws secret key",
        ("AKIA", "ASIA"),  # the secret key follows its key id
        re.compile(
            r"A[KS]IA[A-Z0-9]{16}\b[^A-Za-z0-9/+](?:[^\n]|\n(?!\n)){0,80}?(?<![A-Za-z0-9/+])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        lambda found: is_random_token(found) and character_kinds(found["secret"]) >= 3,
        "AWS",
    ),
    _token_rule("google key", "Google", "AIza", r"[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _token_rule("google token", "Google", "ya29. GOCSPX- 1//0", r"[0-9A-Za-z_-]{20,}"),
    SecretRule(
        "azure key",
        ("AccountKey=", "AccessKey=", "SharedAccessKey=", "accountkey=", "accesskey="),
        re.compile(r"(?:Shared)?A(?:ccount|ccess)Key=(?P<secret>[A-Za-z0-9+/]{30,}={0,2})", IGNORECASE),
        is_shaped_token,
        "Azure",
    ),
    SecretRule(
        "azure secret",
        ("Q~",),
        re.compile(r"Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"),
        is_shaped_token,
        "Azure",
        lead=re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\d\Z"),
        reach=6,
    ),
    SecretRule(
        "azure secret",
        ("sig=",),
        re.compile(r"sig=(?P<secret>[A-Za-z0-9+/]{20,}(?:[A-Za-z0-9+/]|%2[BF]|%3D|=){20,})"),
        is_mixed_token,
        "Azure",
    ),
    SecretRule(
        "azure secret",
        ("AZDO",),
        re.compile(r"AZDO[A-Za-z0-9]{4}" + _E),
        is_shaped_token,
        "Azure DevOps",
        lead=re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}\Z"),
        reach=78,
    ),
    _token_rule("digitalocean token", "DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,}"),
    _token_rule("alibaba key", "Alibaba Cloud", "LTAI", r"[A-Za-z0-9]{16,22}" + _E, is_mixed_token),
    _token_rule("heroku key", "Heroku", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    _token_rule("fly token", "Fly.io", "fo1_ fm1_ fm2_ fm1r_", r"[A-Za-z0-9+/=,_-]{40,}"),
    _token_rule("netlify token", "Netlify", "nfp_ nfc_ nfu_", r"[A-Za-z0-9_]{36,}", is_mixed_token),
    _token_rule("vercel token", "Vercel", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}", is_mixed_token),
    _token_rule("supabase key", "Supabase", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{20,}", is_mixed_token),
    _token_rule(
        "planetscale key", "PlanetScale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=.-]{32,}"
    ),
    _token_rule("databricks token", "Databricks", "dapi", r"[a-f0-9]{32}(?:-\d)?" + _E),
    _token_rule("tailscale key", "Tailscale", "tskey-", r"[a-z]+-[A-Za-z0-9]{6,}-?[A-Za-z0-9]{16,}"),
    _token_rule("vault token", "HashiCorp Vault", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}"),
    SecretRule(
        "terraform token",
        (".atlasv1.",),
        re.compile(r"\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
        is_shaped_token,
        "HCP Terraform",
        lead=re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\Z"),
        reach=16,
    ),
    _token_rule("pulumi token", "Pulumi", "pul-", r"[a-f0-9]{40}" + _E),
    _token_rule(
        "doppler token", "Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{40,}"
    ),
    _token_rule("1password token", "1Password", "ops_eyJ", r"[A-Za-z0-9+/=_-]{100,}"),
    # code hosting and package registries
    _token_rule("github token", "GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_.-]{30,}"),
    _token_rule("github token", "GitHub", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _token_rule(
        "gitlab token",
        "GitLab",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct- glwt-",
        r"[A-Za-z0-9_.-]{20,}",
    ),
    _token_rule("gitlab token", "GitLab", "GR1348941", r"[A-Za-z0-9_-]{20,}"),
    _token_rule("bitbucket token", "Bitbucket", "ATBB", r"[A-Za-z0-9_=-]{24,}" + _E, is_mixed_token),
    _token_rule("atlassian token", "Atlassian", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,}"),
    _token_rule("npm token", "npm", "npm_", r"[A-Za-z0-9]{36}" + _E),
    _token_rule("pypi token", "PyPI", "pypi-", r"[A-Za-z0-9_-]{50,}"),
    _token_rule("rubygems key", "RubyGems", "rubygems_", r"[a-f0-9]{48}"),
    _token_rule("crates token", "crates.io", "cio", r"[A-Za-z0-9]{32}" + _E, is_random_token),
    _token_rule("nuget key", "NuGet", "oy2", r"[a-z0-9]{43}" + _E),
    _token_rule("artifactory key", "JFrog", "AKCp", r"[A-Za-z0-9]{60,}" + _E),
    _token_rule("docker hub token", "Docker Hub", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{24,}"),
    _token_rule("sonar token", "SonarQube", "sqp_ squ_ sqa_", r"[a-f0-9]{40}" + _E),
    _token_rule("circleci token", "CircleCI", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{40,}"),
    _token_rule("buildkite token", "Buildkite", "bkua_", r"[a-z0-9]{40}" + _E),
    _token_rule("sentry token", "Sentry", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,}"),
    _token_rule("grafana token", "Grafana", "glsa_ glc_", r"[A-Za-z0-9_+/=]{32,}"),
    _token_rule("grafana token", "Grafana", "eyJrIjoi", r"[A-Za-z0-9_+/=]{50,}"),
    _token_rule("new relic key", "New Relic", "NRAK- NRJS-", r"[A-Za-z0-9]{19,}" + _E),
    _token_rule("dynatrace token", "Dynatrace", "dt0c01. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _token_rule("postman key", "Postman", "PMAK-", r"[A-Za-z0-9]{20,}-[A-Za-z0-9]{30,}"),
    # AI model providers
    _token_rule("anthropic key", "Anthropic", "sk-ant-", r"[A-Za-z0-9_-]{16,}"),
    _token_rule("openrouter key", "OpenRouter", "sk-or-", r"(?:v1-)?[A-Za-z0-9]{20,}"),
    _token_rule("langfuse key", "Langfuse", "sk-lf-", r"[a-f0-9-]{36}"),
    _token_rule(
        "openai key",
        "OpenAI",
        "sk-",
        r"(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
        is_mixed_token,
    ),
    _token_rule("huggingface token", "Hugging Face", "hf_ api_org_", r"[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    _token_rule("groq key", "Groq", "gsk_", r"[A-Za-z0-9]{30,}"),
    _token_rule("xai key", "xAI", "xai-", r"[A-Za-z0-9]{40,}"),
    _token_rule("replicate token", "Replicate", "r8_", r"[A-Za-z0-9]{30,}"),
    _token_rule("perplexity key", "Perplexity", "pplx-", r"[A-Za-z0-9]{30,}"),
    _token_rule("nvidia key", "NVIDIA", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    _token_rule("cerebras key", "Cerebras", "csk-", r"[a-z0-9]{40,}", is_mixed_token),
    _token_rule("together key", "Together", "tgp_v1_", r"[A-Za-z0-9_-]{32,}"),
    _token_rule("fireworks key", "Fireworks", "fw_", r"[A-Za-z0-9]{22,24}" + _E, is_random_token),
    _token_rule("langsmith key", "LangSmith", "lsv2_", r"(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _token_rule("pinecone key", "Pinecone", "pcsk_", r"[A-Za-z0-9_]{40,}"),
    _token_rule("jina key", "Jina", "jina_", r"[A-Za-z0-9_-]{50,}"),
    _token_rule("tavily key", "Tavily", "tvly-", r"[A-Za-z0-9-]{24,}", is_mixed_token),
    _token_rule("wandb key", "Weights & Biases", "wandb_v1_", r"[A-Za-z0-9_]{40,}"),
    _token_rule("elevenlabs key", "ElevenLabs", "sk_", r"[a-f0-9]{48}" + _E),
    # messaging
    _token_rule(
        "slack token",
        "Slack",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
        r"[A-Za-z0-9.%-]{10,}",
        is_mixed_token,
    ),
    SecretRule(
        "telegram token",
        (":AA",),
        re.compile(r":AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
        is_shaped_token,
        "Telegram",
        lead=re.compile(r"(?<!\d)\d{8,10}\Z"),
        reach=12,
    ),
    *(
        SecretRule("webhook", (needle,), re.compile(source), is_mixed_token, issuer)
        for issuer, needle, source in (
            (
                "Slack",
                "hooks.slack.com",
                r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
            ),
            ("Discord", "/api/webhooks/", r"/api/webhooks/(?P<secret>\d{10,}/[A-Za-z0-9_-]{20,})"),
            (
                "Microsoft Teams",
                ".webhook.office.com/",
                r"\.webhook\.office\.com/webhookb2/(?P<secret>[a-f0-9@/A-Z-]{40,}[A-Za-z0-9@/-]*)",
            ),
            (
                "Google Chat",
                "chat.googleapis.com/",
                r"chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?(?P<secret>key=[\w-]{20,}&token=[\w%-]{20,})",
            ),
            ("Zapier", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d+/[a-z0-9]{6,})"),
            (
                "IFTTT",
                "maker.ifttt.com/",
                r"maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/(?P<secret>[\w-]{20,})",
            ),
            ("Make", ".make.com/", r"\.make\.com/(?P<secret>[a-z0-9]{30,})"),
        )
    ),
    # payments and mail
    _token_rule("stripe key", "Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"[A-Za-z0-9+/]{16,}"),
    _token_rule("square token", "Square", "sq0atp- sq0csp- EAAAE", r"[A-Za-z0-9_-]{22,}", is_mixed_token),
    _token_rule("razorpay key", "Razorpay", "rzp_live_", r"[A-Za-z0-9]{14,}"),
    _token_rule("shopify token", "Shopify", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    _token_rule("twilio key", "Twilio", "SK", r"[0-9a-f]{32}" + _E),
    _token_rule("sendgrid key", "SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token_rule("mailgun key", "Mailgun", "key-", r"[0-9a-f]{32}" + _E),
    SecretRule(
        "mailchimp key",
        ("-us",),
        re.compile(r"-us\d{1,2}" + _E),
        is_shaped_token,
        "Mailchimp",
        lead=re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}\Z"),
        reach=34,
    ),
    _token_rule("brevo key", "Brevo", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _token_rule("resend key", "Resend", "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}" + _E, is_random_token),
    # productivity tools
    _token_rule("linear key", "Linear", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}"),
    _token_rule(
        "notion token", "Notion", "ntn_ secret_", r"(?:[A-Za-z0-9]{43}|[A-Za-z0-9]{46})" + _E, is_mixed_token
    ),
    _token_rule("airtable token", "Airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _token_rule("figma token", "Figma", "figd_", r"[A-Za-z0-9_-]{36,}"),
    _token_rule("dropbox token", "Dropbox", "sl.", r"[A-Za-z0-9_-]{100,}"),
    _token_rule("hubspot token", "HubSpot", "pat-na1- pat-eu1- pat-na2-", r"[a-f0-9-]{36}"),
    _token_rule("contentful token", "Contentful", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    _token_rule("facebook token", "Meta", "EAA", r"[A-Za-z0-9]{90,}" + _E, is_mixed_token),
    # passwords in URLs
    SecretRule(
        "url password",
        ("://",),
        re.compile(r"://[^\s/:@'\"<>`\\]{0,200}:(?P<secret>[^\s/@'\"<>`]{1,200}+)@(?=[\w\[])"),
        is_url_password,
    ),
    SecretRule(
        "url password",
        ("://",),  # a slash in the password should be escaped, but often is not
        re.compile(r"://[^\s/:@'\"<>`\\]{1,60}:(?P<secret>[^\s@'\"<>`:?]{1,80}+)@[\w.-]+(?=[:/]|\s|\Z)"),
        lambda found: (
            is_url_password(found)
            and character_kinds(found["secret"].partition("/")[0]) >= 2
            and "." not in found["secret"]
        ),
    ),
    SecretRule(
        "url password",
        ("://",),
        re.compile(r"://(?P<secret>[A-Za-z0-9_-]{20,200}+)@(?=[\w\[])"),
        is_random_token,
    ),
)

DISCORD_RULE = SecretRule(
    "discord token",
    (),  # no fixed prefix: `_candidates` searches for its two dots
    re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])"),
    is_random_token,
    "Discord",
    lead=re.compile(r"(?<![A-Za-z0-9_.-])(?:mfa\.)?[MNO][DTjz][A-Za-z0-9]{20,26}\Z"),
    reach=34,
)
CARD_RULE = SecretRule(
    "card number", (), re.compile(r"[0-9](?:[ -]?[0-9]){12,}+"), is_shaped_token, "the bank"
)
"""The pattern only finds runs of enough digits; `card_group_count` checks their groups."""

_TOKENS = r"secret|token|credential"
# "key" names a secret only after one of these words.
_KEY = re.compile(
    r"(?:api|access|private|auth|encryption|signing|master|account|service|license|deploy|app|secret|clé)[_ -]?\Z",
    IGNORECASE,
)
_PASSES = (
    r"pass(?:word|wd|phrase|code|wort|ord)|pwd|kennwort|mot[_ -]?de[_ -]?passe|mdp|contrase(?:ñ|n\u0303|n)a|clave"
    r"|senha|wachtwoord|hasło|пароль|密码|密碼|パスワード|비밀번호|lösenord"
)
# pass, pw and psk occur in many words: match them only as the last part of a name, directly before its sign.
_SHORT = (
    r"(?-i:(?<![A-Za-z])|(?<=[A-Z])(?=P[AWS])|(?<=[a-z])(?=P[a-z])|(?<=require))"
    r"(?:pass|pw|psk)(?=[\"']?\s{0,3}[:=])"
)
# Needles, in lowercase.
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

SECRET_NAMES = re.compile(f"{_PASSES}|{_SHORT}|{_TOKENS}", IGNORECASE)
"""Must match at a needle before any of its rules is tried."""
_QUOTE = r"(?P<quote>\\?[\"'`])?"
_VALUE = r"(?P<secret>(?(quote)[^\"'`\n\\]{4,400}+|[^\s\"'`,;<>|&\\]{4,400}+))"
_SPACE = r"[ \t\u00a0]"
_ASSIGNED = (
    r"s?+(?:[_.-]?[A-Za-z0-9_-]{1,40}+)?)"
    r"(?:\\?[\"'`*~)\]]|=(?= ?:)){0,4}+" + _SPACE + r"{0,20}+(?:"
    # key: value, key = value, key -> value, | key | value |, - key :: value; the value may start on the next line
    r"(?P<sign>:=|=>|<-|->|→|::|\?=|=(?!=)|[:：|(,]|为|是|>(?=[^<\n]{4,80}</))" + _SPACE + r"{0,20}+"
    r"(?:[*_~]{1,2}" + _SPACE + r"?)?"
    r"(?:(?:[>|][+-]?)?\r?\n" + _SPACE + r"{1,20}(?![\w-]+:))?"
    # - name: DB_PASSWORD, value: …
    r"|,?\s{1,40}[\"']?[vV]alue[\"']?\s{0,3}[:=]\s{0,3})" + _QUOTE + _VALUE
)
# _TOLD: up to ten words, then a long value. _WORDS and _BE: up to eight words, then "is" or a colon.
_TOLD = (
    r"s?\b(?:[ ,:(\"'`*~=]{1,4}+[^\s.!?;|=,:(\"'`*~]{1,30}+){0,10}?[\"'`*~)]{0,2}[ ,:(\"'`*~=]{1,4}+"
    r"(?P<secret>[A-Za-z0-9_+/.~-]{16,400}+)"
)
_WORDS = r"(?:[ \t]{1,3}+[^\s.!?;:|=]{1,30}+){0,8}?"
_BE = r"(?:is|was|are|were|ist|war|lautet|est|es|era|é|è|es:|becomes|remains|to|heißt|будет|это|to:)"

LOOSE_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "authorization",
        ("authorization", "bearer "),
        re.compile(
            r"(?:authorization\\?[\"']?\s{0,3}[:=,]\s{0,3}\\?[\"'`]?(?:basic|token|bearer|apikey|key|digest)\s{1,3}(?P<header>)|bearer\s{1,3})"
            r"[\"'`]?(?P<secret>[A-Za-z0-9._~+/-]{12,2000}+={0,2})",
            IGNORECASE,
        ),
        is_bearer_value,
        folded=True,
    ),
    SecretRule(
        "docker login",
        ('"auth"', "_auth"),
        re.compile(r"[\"_]auth\"?\s{0,3}[:=]\s{0,3}\"?(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})", IGNORECASE),
        is_encoded_login,
        folded=True,
    ),
    SecretRule(
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
        is_mixed_token,
        "AWS",
        folded=True,
    ),
    SecretRule(
        "netrc password",
        ("login ", "login\n"),
        re.compile(
            r"login\s+\S{1,100}\s+(?:account\s+\S{1,100}\s+)?password\s+[\"']?(?P<secret>[^\s\"']{4,200})",
            IGNORECASE,
        ),
        lambda found: not is_placeholder(found["secret"]) and is_odd_word(found["secret"]),
        folded=True,
    ),
    SecretRule(
        "secret",
        (*PASSWORD_WORDS, *SECRET_WORDS, "psk"),
        re.compile(r"(?P<name>(?:" + "|".join((_PASSES, _TOKENS, _SHORT)) + ")" + _ASSIGNED, IGNORECASE),
        is_assigned_value,
        folded=True,
    ),
    SecretRule(
        "secret",
        ("key",),
        re.compile("(?P<name>key" + _ASSIGNED, IGNORECASE),
        is_assigned_value,
        lead=_KEY,
        reach=12,
        folded=True,
    ),
    SecretRule(
        "secret",
        ("--",),
        re.compile(
            r"--(?:pass(?:word|wd|phrase)?|pwd|token|api-?key|(?:client-)?secret|access-key|auth(?:-?token)?)[ =]"
            r"(?P<quote>[\"'])?(?P<secret>(?(quote)[^\"'\n]{4,400}+|[^\s\"']{4,400}+))",
            IGNORECASE,
        ),
        is_option_value,
        folded=True,
    ),
    SecretRule(
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
        is_told_password,
        folded=True,
    ),
    SecretRule(
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
        lambda found: (
            is_told_password(found) and character_kinds(found["secret"].rstrip(".,;:)'\"`*~=»”")) >= 3
        ),
        folded=True,
    ),
    # "the API key for the weather service is …"
    SecretRule(
        "secret",
        SECRET_WORDS,
        re.compile(f"(?:{_TOKENS})" + _TOLD, IGNORECASE),
        is_told_token,
        folded=True,
    ),
    SecretRule(
        "secret",
        ("key",),
        re.compile("key" + _TOLD, IGNORECASE),
        is_told_token,
        lead=_KEY,
        reach=12,
        folded=True,
    ),
    SecretRule(
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
        lambda found: is_told_password(found) and character_kinds(found["secret"]) >= 3,
        folded=True,
    ),
    SecretRule(
        "command password",
        (" -u", " --user", " -p"),
        re.compile(
            r" -(?:(?:u|-user)[ =]?[\"']?[\w.@+-]{1,80}+[:%]|p ?(?P<quote>[\"'])?)(?P<secret>[^\s\"']{4,200}+)",
            IGNORECASE,
        ),
        is_command_password,
        folded=True,
    ),
    SecretRule(
        "session cookie",
        ("sessionid=", "sessid=", "session=", "connect.sid="),
        re.compile(r"(?:sessionid|sessid|session|connect\.sid)=(?P<secret>[^\s;\"'&]{20,600}+)", IGNORECASE),
        lambda found: is_random_token(found) and is_machine_made(found["secret"]),
        folded=True,
    ),
    SecretRule(
        "seed phrase",
        ("phrase", "mnemonic"),
        re.compile(
            r"(?:phrase|mnemonic)\W{1,20}(?P<secret>[a-z]{3,8}(?:\s{1,3}[a-z]{3,8}){11,23})\b",
            IGNORECASE,
        ),
        is_seed_phrase,
        folded=True,
    ),
)

BESIDE_RULE = SecretRule("password", PASSWORD_WORDS, re.compile(r"\S+"), is_told_password, folded=True)
"""Rule of passwords found before the word (`hunter2! is the password`) or below it in a table column."""

RULES_VERSION = 3
"""Increment with every change to the rules, so that findings stored with files are computed again."""

SECRET_RULES = (*SHAPED_RULES, DISCORD_RULE, *LOOSE_RULES, BESIDE_RULE, CARD_RULE)
ALLOW_MARK = "allow-secret"
UNSEARCHED = "too many places to search"
_MARK = re.compile(r"(?<![\w-])allow-secret(?![\w-])")
_SHORTEST = 20
"""Length of the shortest token with a known format; shorter words are not searched for token prefixes."""


MOST_PLACES = 50_000
"""Maximum number of needle positions examined in one text. Beyond it, an UNSEARCHED finding is reported."""


class Secret(NamedTuple):
    kind: str
    start: int
    end: int
    line: int
    """Line of the first character, starting at 1."""
    remedy: str


def find_secrets(text: str, *, marks: bool = True, places: int = MOST_PLACES) -> list[Secret]:
    """Return the secrets in a text, in order and without overlaps. `marks`: exempt lines with allow-secret."""
    budget = _Budget(places)
    spans = _without_overlaps(_candidates(text, budget))
    if marks and spans and ALLOW_MARK in text:
        spans = [span for span in spans if not _has_allow_mark(text, span[0], span[1])]
    found = []
    line, at = 1, 0
    remedies: dict[SecretRule, str] = {}
    for start, end, rule in spans:
        line += text.count("\n", at, start)
        at = start
        what = remedies.get(rule) or remedies.setdefault(rule, secret_remedy(rule))
        found.append(Secret(rule.kind, start, end, line, what))
    if budget.stopped is not None:
        start = budget.stopped
        line = text.count("\n", 0, start) + 1
        found.append(Secret(UNSEARCHED, start, start + 1, line, "keep the file outside, or in smaller parts"))
        found.sort(key=lambda secret: secret.start)
    return found


def secret_remedy(rule: SecretRule) -> str:
    """Return the advice for a secret found by this rule."""
    first = f"revoke it at {rule.issuer}" if rule.issuer else "change it where it is used"
    return (
        f"{first}, keep the new one in a password manager, and write only where it is kept; "
        f"a line that holds no real secret may say {ALLOW_MARK}"
    )


def is_text_data(data: bytes) -> bool:
    """Return True if the bytes look like text: UTF-16 with a BOM, or no NUL and few control characters."""
    head = data[:8192]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if b"\0" in head:
        return False
    return len(head) - len(head.translate(None, _CONTROLS)) <= len(head) // 20


_CONTROLS = bytes(each for each in range(32) if each not in b"\t\n\r\f\b\x1b") + b"\x7f"


def decode_data(data: bytes) -> str:
    """Decode a file's text, replacing invalid bytes: a secret in an unexpected encoding is still a secret."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


# Search


class _Budget:
    """Remaining number of positions to examine, and the offset where it ran out."""

    def __init__(self, places: int) -> None:
        self.left = places
        self.stopped: int | None = None


SecretSpan = tuple[int, int, SecretRule]


def _candidates(text: str, budget: _Budget) -> Iterator[SecretSpan]:
    """Yield the matches of all rules, most reliable rules first."""
    dense = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
    for needle, rule in _SHAPES:
        if needle in dense:
            yield from _rule_matches(rule, text, _needle_places(needle, text, text, budget))
    anywhere = {
        needle: _needle_places(needle, text, text, budget) for needle in _SHORT_NEEDLES if needle in text
    }
    for needle, rule in _ANYWHERE:
        if needle in anywhere:
            yield from _rule_matches(rule, text, anywhere[needle])
    if _DOTTED.search(dense):
        yield from _rule_matches(DISCORD_RULE, text, [dots.start() for dots in _DOTTED.finditer(text)])
    folded = _lowercase(text)
    places = {
        needle: _needle_places(needle, text, folded, budget)
        for gate, needles in (_GATES if not text.isascii() else _ASCII_GATES)
        if gate in folded
        for needle in needles
        if needle == gate or needle in folded
    }
    if places:
        for rule in LOOSE_RULES:
            for needle in rule.needles:
                if needle in places:
                    yield from _rule_matches(rule, text, places[needle])
        for needle in PASSWORD_WORDS:
            if needle in places:
                yield from _passwords_before_word(text, folded, places[needle])
                yield from _password_columns(text, folded, places[needle])
    yield from _card_numbers(text)


_SHORT_NEEDLES = ("-----BEGIN ", "Private-Lines: ", "://")
"""Needles of secrets that may be shorter than `_SHORTEST` or contain a space."""
_SHAPES = [(needle, rule) for rule in SHAPED_RULES for needle in rule.needles if needle not in _SHORT_NEEDLES]
_ANYWHERE = [(needle, rule) for rule in SHAPED_RULES for needle in rule.needles if needle in _SHORT_NEEDLES]
_DOTTED = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_GATE_STEMS = ("secret", "auth", "sess", "cred", "login", "mot", " -", "--")
"""Substrings shared by several needles: if one is absent, its needles are not searched for."""


def _gates() -> list[tuple[str, list[str]]]:
    """Group the needles of the loose rules by a shared substring, or by the needle itself."""
    found: dict[str, list[str]] = {}
    for needle in dict.fromkeys(needle for rule in LOOSE_RULES for needle in rule.needles):
        found.setdefault(next((stem for stem in _GATE_STEMS if stem in needle), needle), []).append(needle)
    return list(found.items())


_GATES = _gates()
_ASCII_GATES = [(gate, needles) for gate, needles in _GATES if gate.isascii()]


def _lowercase(text: str) -> str:
    """Lowercase a text without changing its length: the Turkish capital İ would become two characters."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.replace("İ", "i").lower()


def _needle_places(needle: str, text: str, within: str, budget: _Budget) -> list[int]:
    """Return the offsets of a needle; for password and token words, only where SECRET_NAMES matches."""
    names = SECRET_NAMES.match if needle in _NAME_NEEDLES else None
    found: list[int] = []
    end = -1
    at = within.find(needle)
    while at >= 0:
        budget.left -= 1
        if budget.left < 0:
            budget.stopped = at if budget.stopped is None else min(at, budget.stopped)
            break
        name = names(text, at) if names is not None else None
        if name is not None and found and at == end:
            found[-1] = at  # passwordpassword: the last one is the name
        elif name is not None or names is None:
            found.append(at)
        end = name.end() if name is not None else -1
        at = within.find(needle, at + len(needle))
    return found


_NAME_NEEDLES = frozenset((*PASSWORD_WORDS, *SECRET_WORDS, "psk"))


def _rule_matches(rule: SecretRule, text: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Yield the secrets a rule finds at these offsets."""
    match = rule.pattern.match
    past = refused = until = 0
    for at in places:
        found = match(text, at) if at >= past else None
        if found is None:
            continue
        span = _accepted_span(rule, found, text, at)
        if span is not None:
            yield span
            past = span[1]
        elif at >= until:
            refused, until = 1, found.end()
        elif (refused := refused + 1) > _NESTED:
            past = until


_NESTED = 8
"""Retries inside one rejected match before skipping to its end; bounds the cost of token=token=token=…"""


def _accepted_span(rule: SecretRule, found: Match[str], text: str, at: int) -> SecretSpan | None:
    begins = rule.lead.search(text, max(0, at - rule.reach), at) if rule.lead is not None else found
    if begins is None or not rule.holds(found):
        return None
    start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
    return (begins.start() if start == at else start), end, rule


def _passwords_before_word(text: str, folded: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Find passwords written before the word, as in `hunter2! is the password`."""
    for at in places:
        words = folded[max(0, at - 120) : at].split() if at and not folded[at - 1].isalnum() else []
        verb = next(
            (place for place in range(len(words) - 1, max(0, len(words) - 5), -1) if words[place] in _VERBS),
            0,
        )
        if verb:
            start = folded.rfind(words[verb - 1], 0, at)
            value = text[start : start + len(words[verb - 1])].strip("\"'`*,")
            if is_password_cell(value):
                start = text.index(value, start)
                yield start, start + len(value), BESIDE_RULE


_VERBS = frozenset(("is", "was", "as", "ist", "war", "als", "est", "es"))


def _password_columns(text: str, folded: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Find the cells below a `password` header in an org, Markdown or CSV table."""
    end = -1
    for at in places:
        if at < end:
            continue  # one password column per table is enough
        start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
        line = text[start:end] if end - start <= 200 else ""
        sign = next((each for each in "|\t;," if each in line), "")
        if not sign or not _is_table_head(text, start, line, sign):
            continue
        if folded[at:end].partition(sign)[0].strip(" *\"'`").count(" ") <= 1:
            yield from _column_cells(text, end + 1, sign, line.count(sign, 0, at - start), line.count(sign))


def _is_table_head(text: str, start: int, line: str, sign: str) -> bool:
    """Return True if a line is the header row: it holds column names and no table row precedes it."""
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)].strip()
    if sign == "|":
        return line.lstrip().startswith("|") and not above.startswith("|")
    return (not above or above.startswith(("```", "#+"))) and all(
        0 < len(cell) <= 30 and not any(map(str.isdigit, cell)) for cell in line.strip().split(sign)
    )


def _column_cells(text: str, at: int, sign: str, index: int, signs: int) -> Iterator[SecretSpan]:
    for _ in range(_ROWS):
        end = _line_end(text, at)
        if at >= len(text) or end - at > 2_000 or text.count(sign, at, end) != signs:
            if not text.startswith(("|-", "| -", "|:"), at):
                return
        else:
            start = at
            for _ in range(index):
                start = text.index(sign, start) + 1
            stop = text.find(sign, start, end)
            cell = text[start : stop if stop >= 0 else end]
            value = cell.strip(" \t\r\"'`~=")
            if is_password_cell(value):
                begins = start + cell.index(value)
                yield begins, begins + len(value), BESIDE_RULE
        at = end + 1


_ROWS = 100
"""Maximum number of table rows examined."""


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _card_numbers(text: str) -> Iterator[SecretSpan]:
    """Find card numbers, as one run of digits or in groups as printed."""
    for run in CARD_RULE.pattern.finditer(text):
        groups = list(_GROUP.finditer(text, run.start(), min(run.end(), run.start() + 400)))
        place = 0
        while place < len(groups):
            count = card_group_count(text, groups[place : place + 4])
            if count:
                yield groups[place].start(), groups[place + count - 1].end(), CARD_RULE
            place += count or 1


_GROUP = re.compile(r"[0-9]+")


def _without_overlaps(candidates: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort the candidates by position and drop those that overlap one found by a more reliable rule."""
    starts: list[int] = []
    kept: list[SecretSpan] = []
    for span in candidates:
        place = bisect(starts, span[0])
        if (place and kept[place - 1][1] > span[0]) or (place < len(kept) and kept[place][0] < span[1]):
            continue
        starts.insert(place, span[0])
        kept.insert(place, span)
    return kept


def _has_allow_mark(text: str, start: int, end: int) -> bool:
    """Return True if allow-secret is on a line of the secret, or on the line above a multi-line one."""
    begins = text.rfind("\n", 0, start) + 1
    if "\n" in text[start:end].strip() and begins:
        begins = text.rfind("\n", 0, begins - 1) + 1
    return _MARK.search(text, begins, _line_end(text, end - 1)) is not None


class MaskedText(NamedTuple):
    text: str
    secrets: int
    """Number of masked secrets."""


MASK_PLACES, CHARACTERS_PER_PLACE = 1_000, 20
"""Position budget for masking: a base, plus one position per so many characters.

Ordinary conversation has far fewer positions; a transcript made of nothing else, of any size, costs 0.4 s per
megabyte.
"""


def mask(text: str) -> MaskedText:
    """Replace each secret with a note such as [masked: github token].

    If the text has too many positions to search, drop everything from there on, because it may contain secrets.
    """
    pieces: list[str] = []
    at = count = 0
    places = min(MOST_PLACES, MASK_PLACES + len(text) // CHARACTERS_PER_PLACE)
    for secret in find_secrets(text, marks=False, places=places):
        if secret.kind == UNSEARCHED:
            return MaskedText(
                "".join([*pieces, text[at : secret.start], f"[masked: {UNSEARCHED}]"]), count + 1
            )
        if text.startswith("[masked", secret.start):
            continue
        pieces += [text[at : secret.start], f"[masked: {secret.kind}]"]
        at = secret.end
        count += 1
    return MaskedText("".join([*pieces, text[at:]]), count) if count else MaskedText(text, 0)

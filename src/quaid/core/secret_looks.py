"""A second look at what has the shape of a secret: placeholder, word, code, or something made by a machine.

Knows how a value reads, not where it stands. A doubtful word is let stand: a hash, a uuid, `max_tokens=4096` and
`password: str` are no secrets. Only the beginning of a long value is read, so the cost of a look is bounded.
"""

import binascii
import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from re import IGNORECASE, Match

READ = 96
"""Characters of a value that are looked at."""

# What a person writes where a secret would stand, as the whole value.
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
# The same inside a token that has a shape of its own: AKIA…EXAMPLE, ghp_xxxxxxxx, sk-1234567890.
_SAMPLES = (
    *"example sample dummy placeholder changeme change-me change_me redacted replaceme replace-me".split(),
    *"replace_me your notreal not-real not_real insert- insert_ xxxxx *** ••• ... … < > {{ ${".split(),
    *"1234567890abc abcdefg deadbeef abc123abc123 fake- fake_ test-token test_token testtoken".split(),
    *"00000000 11111111 0123456789 test-key test_key testkey test_secret test-secret".split(),
    *"my-token my_token mytoken my-key my_key my-secret my_secret mysecret".split(),
    *"token-here token_here tokenhere key-here key_here keyhere secret-here secret_here".split(),
)
_REPEATED = re.compile(r"(\w)\1{6}")
# The token on the front page of jwt.io, which half of all tutorials quote.
_FAMOUS = ("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l",)
# What a program says about a value: a call, an index, an attribute, a path, another word of the language.
_CODE = re.compile(
    r".*[(\[{].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[;,)]*|[A-Za-z_]\w*(?:::|->).*|\.{0,2}/.*|~/.*|[A-Za-z]:\\.*"
    r"|[a-z][a-z0-9+.-]*://.*|.*\)|!\w+|&\w+|@\w+(?:[./]\w+)*|--?[a-z].*|[\w./-]+\.(?:ya?ml|json|toml|env|txt|pem|key|crt"
    r"|md|org|py|js|ts|go|rs|rb|sh|conf|cfg|ini|html?|gpg|kdbx|asc|log)[.,;:]?"
)
_CALLED = re.compile(r"[A-Za-z_][\w.]*\(|\$|`|\{\{|<")
# A name whose last part says that the value is about a secret and not the secret.
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
# Terms of the trade with a digit or a sign in them, after "the password is".
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


# Values


def placeholder(value: str) -> bool:
    """Whether the value stands where a secret would: <your-token>, changeme, ${VAR}, sk-..."""
    value = value[:READ]
    return bool(_PLACEHOLDER.fullmatch(value)) or (not value.isdigit() and sample(value))


def sample(token: str) -> bool:
    """Whether a token that has the right shape is one of documentation."""
    head = token[:READ].lower()
    for each in _SAMPLES:
        if each in head:
            return True
    return bool(_REPEATED.search(head)) or any(famous in token for famous in _FAMOUS)


def entropy(value: str) -> float:
    """Shannon's, in bits for each character."""
    value = value[:READ]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values()) if value else 0.0


def kinds(value: str) -> int:
    """Of how many kinds its characters are: small and capital letters, digits, signs."""
    value = value[:READ]
    return (
        (value != value.upper())
        + (value != value.lower())
        + bool(_DIGIT.search(value))
        + (not value.isalnum())
    )


_DIGIT = re.compile(r"\d")


def digits_and_letters(value: str) -> bool:
    value = value[:READ]
    return bool(_DIGIT.search(value)) and value.lower() != value.upper()


def odd(value: str) -> bool:
    """Not merely a word with a capital letter or a full stop at its end."""
    inner = value[:READ].rstrip(".,;:!?").replace("-", "").replace("'", "").replace("’", "")
    return bool(inner) and not inner.isalpha()


def machine_made(value: str) -> bool:
    """Whether nobody would write this by hand: letters and digits in turn, or a random mix of cases."""
    value = value[:READ]
    if _UUID.fullmatch(value) or (_HEX.fullmatch(value) and entropy(value) >= 2.8):
        return digits_and_letters(value)
    longest = max(_PARTS.split(value), key=len)
    if len(longest) >= 8 and len(_WAVES.findall(longest)) >= 2 and entropy(longest) >= 2.5:
        return True
    if len(value) < 16 or entropy(value) < 3.3 or any(each.isspace() for each in value):
        return False
    if digits_and_letters(longest) and len(longest) >= 16:
        return True
    turns = sum(a.islower() != b.islower() for a, b in pairwise(longest))
    return len(longest) >= 16 and turns > len(longest) * 0.38


# Matches


def shaped(found: Match[str]) -> bool:
    """A token of a known shape is a secret unless it is a sample."""
    return not sample(secret(found))


def mixed(found: Match[str]) -> bool:
    """The same, with letters and digits both: no word and no number."""
    value = secret(found)
    return digits_and_letters(value) and not sample(value)


def random(found: Match[str]) -> bool:
    """The same, for loose shapes: it must look made by a machine as well."""
    value = secret(found)
    return digits_and_letters(value) and entropy(value) >= 3.0 and not sample(value)


def secret(found: Match[str]) -> str:
    value: str = found["secret"] if "secret" in found.re.groupindex else found[0]
    return value


_PASSWORDS = ("pass", "pwd", "pw", "psk", "kenn", "contra", "mot", "mdp", "clave", "senha", "wacht", "has")


def assigned(found: Match[str]) -> bool:
    """A value that somebody gave to a name such as password or api_key."""
    value, name, quoted = found["secret"], found["name"], bool(found["quote"])
    is_password = not name.isascii() or name.lower().startswith(_PASSWORDS)
    mixed = digits_and_letters(value)
    alone = not quoted and is_password and _alone(found)
    if not mixed and not (is_password and (quoted or alone or odd(value))):
        return False
    if found["sign"] in ("(", ",") and not (quoted and mixed):
        return False
    head = value[:READ]
    if not quoted and (_CALLED.match(head) if alone else _CODE.fullmatch(head)):
        return False
    if _ABOUT.search(name) or placeholder(value):
        return False
    if is_password:
        return _password(value, quoted=quoted, alone=alone)
    return len(value) >= 8 and _token(value, name)


def _alone(found: Match[str]) -> bool:
    """NAME=value on a line of its own, as in a file of settings."""
    text = found.string
    if found["sign"] not in ("=", "?=") or text[found.end() : found.end() + 1] not in ("", "\n", "\r"):
        return False
    before = text[max(0, found.start() - 60) : found.start()].rpartition("\n")[2].strip()
    return all(each.isalnum() or each in "_ -." for each in before) and before.count(" ") <= 1


def _password(value: str, *, quoted: bool, alone: bool) -> bool:
    if len(value) < 4:
        return False
    if any(each.isspace() for each in value):  # a label, an error, a sentence; rarely a phrase
        return kinds(value) >= 3 and digits_and_letters(value) and machine_made(value)
    name = value.replace("_", "").replace("-", "").replace(".", "")
    if name != value and name.isalpha():
        return False
    if quoted or alone:
        return not (value[:1].isupper() and name.isalpha())
    return len(value) >= 6 and kinds(value) >= 2 and odd(value) and not _TERM.fullmatch(value[:READ])


def _token(value: str, name: str) -> bool:
    """A credential must look made by a machine; a short one next to a clear name a little less."""
    if machine_made(value):
        return True
    clear = not name.lower().startswith(("token", "secret", "credential"))
    return (
        clear
        and len(value) >= 10
        and value.isalnum()
        and entropy(value) >= 3.0
        and sum(map(str.isdigit, value)) >= 3
    )


def told(found: Match[str]) -> bool:
    """A password in a sentence has a digit or a sign in it; a word, a term and a file's name have not."""
    return _tells(found["secret"])


def listed(value: str) -> bool:
    """A cell of a table below the word password."""
    return 6 <= len(value) <= 100 and not any(map(str.isspace, value)) and _tells(value)


def _tells(value: str) -> bool:
    value = value.rstrip(".,;:)")[:READ]
    if not digits_and_letters(value) and not (kinds(value) >= 3 and _SIGN.search(value[:-1])):
        return False
    return odd(value) and not (_TERM.fullmatch(value) or _CODE.fullmatch(value) or placeholder(value))


_SIGN = re.compile(r"[!@#$%^&*+=?~]")


# Between "token" and a long value that is something else.
_OTHER = re.compile(
    r"hash|sha\d*|digest|fingerprint|checksum|commit|\bid\b|uuid|version|public|https?:|file|path|\]\(",
    IGNORECASE,
)


def told_token(found: Match[str]) -> bool:
    """A token in a sentence is long and made by a machine."""
    value = found["secret"]
    if (
        not digits_and_letters(value)
        or value.startswith(("/", "."))
        or "//" in value
        or not machine_made(value)
    ):
        return False
    return not (_OTHER.search(found[0][: -len(value)]) or placeholder(value) or _CODE.fullmatch(value[:READ]))


def option(found: Match[str]) -> bool:
    """What follows --password on a command line."""
    value = found["secret"]
    return told(found) and not value.startswith("-")


_COMMAND = re.compile(
    r"\b(?:curl|wget|smbclient|sshpass|docker login|podman login|mysql\w*|redis-cli)\b[^\n]*\Z"
)


def command(found: Match[str]) -> bool:
    """What follows -u name: or -p, after the name of a program that takes a password there."""
    if not (_tells(found["secret"]) or (found["quote"] and not placeholder(found["secret"]))):
        return False
    return _COMMAND.search(found.string, max(0, found.start() - 160), found.start()) is not None


def granted(found: Match[str]) -> bool:
    """What stands behind "Bearer", in a header or elsewhere."""
    value = found["secret"]
    if placeholder(value) or _CODE.fullmatch(value[:READ]):
        return False
    return found["header"] is not None or (digits_and_letters(value) and entropy(value) >= 3.0)


def in_address(found: Match[str]) -> bool:
    value = found["secret"]
    return not placeholder(value) and not (value.isdigit() and len(value) <= 5)


def encoded_login(found: Match[str]) -> bool:
    """Whether base64 holds name:password, as in Docker's settings and in Basic authorization."""
    value = found["secret"]
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4)).decode()
    except (ValueError, UnicodeDecodeError):
        return False
    name, colon, password = plain.partition(":")
    return bool(
        colon and name.isprintable() and len(password) >= 4 and password.isprintable()
    ) and not placeholder(password)


def encoded_key(found: Match[str]) -> bool:
    """Whether base64 of "-----BEGIN" goes on as a private key."""
    try:
        return b"PRIVATE KEY" in binascii.a2b_base64(found[0][:64])
    except ValueError:
        return False


_ELIDED = re.compile(r"\.\.\.|…|<[\w -]+>|x{8}|\*{4}|\{\{|\$\{|redacted|your|snip", IGNORECASE)


def key_block(found: Match[str]) -> bool:
    """A private key with something in it."""
    body = found["body"]
    return len(body) >= 40 and not _ELIDED.search(body[:400]) and not _ELIDED.search(body[-200:])


_SEED_WORD = re.compile(r"[a-z]{3,8}")
_STOP = frozenset(
    "the and for with you your that this are was from not but have has can will its which into".split()
)


def seed_phrase(found: Match[str]) -> bool:
    """Twelve to twenty-four words of a wallet: short, different, and no sentence."""
    words = found["secret"].split()
    return (
        len(words) in (12, 15, 18, 21, 24)
        and all(_SEED_WORD.fullmatch(word) for word in words)
        and len(set(words)) >= len(words) - 2
        and not _STOP.intersection(words)
    )


# Numbers of cards


def luhn(digits: str) -> bool:
    """Whether the last digit of a card's number fits the others."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


# How the numbers of each brand begin, and how long they are: other long numbers are names of something.
_BRANDS = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}"
)
_NUMBERED = re.compile(
    r"(?:\bid|_id|#|\bno|\bnr|order|ticket|invoice|tracking|serial|phone|isbn|account|number|snowflake)\W*\Z",
    IGNORECASE,
)


_PRINTED = ((16,), (15,), (14,), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
"""How many digits stand together."""
_GOES_ON = re.compile(r"(?<!\\)[A-Za-z0-9_.-]\Z")
_STOPS = re.compile(r"(?![A-Za-z0-9_-]|\.\d)")


def card(text: str, groups: Sequence[Match[str]]) -> int:
    """How many of these groups of digits, from the first on, are the number of a card; 0 if it is none.

    Right brand, length and last digit, and not called an order or an id.
    """
    lengths = tuple(len(group[0]) for group in groups)
    count = next((len(shape) for shape in _PRINTED if lengths[: len(shape)] == shape), 0)
    if not count:
        return 0
    start, end = groups[0].start(), groups[count - 1].end()
    digits = "".join([group[0] for group in groups[:count]])
    if not _BRANDS.fullmatch(digits) or len(set(digits)) == 1 or not luhn(digits):
        return 0
    if _GOES_ON.search(text, max(0, start - 2), start) or not _STOPS.match(text, end):
        return 0
    before = text[max(0, start - 40) : start]
    return count if "card" in before.lower() or not _NUMBERED.search(before) else 0

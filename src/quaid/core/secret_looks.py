"""A second look at what has the shape of a secret: placeholder, word, code, or something made by a machine.

Knows how a value reads, not where it stands. A doubtful word is let stand: a hash, a uuid, `max_tokens=4096` and
`password: str` are no secrets. Only the beginning of a long value is read, so the cost of a look is bounded.
"""

import binascii
import math
from collections import Counter
from re import IGNORECASE, Match

from quaid.core.patterns import pattern

READ = 96
"""Characters of a value that are looked at."""

# What a person writes where a secret would stand, as the whole value.
_PLACEHOLDER = pattern(
    r"[<\[{$&].*|%\w+%|%[({].*|[*x•.…_#-]{3,}.*|.*[*•…]{3}.*|.*\.\.\.+|.*[<{]{1,2}[\w .-]+[>}]{1,2}.*"
    r"|@?(?:your|my|the|some|an?|new|old|test|example|sample|dummy|fake|insert|enter|put|paste|replace|use|ihr|dein"
    r"|mein|votre|mon|tu|su|mi)[-_ ].*"
    r"|(?:my|your|the|db|user|test|new|old|super|top|app|root|admin|some)?[-_ ]?"
    r"(?:pass(?:word|wort|wd|phrase|code|ed|ing)?|p[a4@]ssw[o0]rd|pwd|pw|secret|token|tokens?|(?:api|access|private)?[-_ ]?keys?"
    r"|user(?:name)?|string|str|text|bytes|none|null|nil|undefined|true|false|yes|no|required|optional|example"
    r"|change[-_ ]?(?:me|it)|redacted|masked|hidden|empty|value|todo|tbd|n/?a|any|object|int|number|bool|boolean"
    r"|secretstr|foo(?:bar)?|bar|baz|contraseña|kennwort|mot de passe|encrypted|unchanged|unknown|default|prompt"
    r"|placeholder|credentials?|auth|bearer|here|sample|dummy|test(?:ing)?|xyz|abc)"
    r"[-_ ]?(?:here|1|123|1234|value|string|goes[-_ ]here)?[.!]?",
    IGNORECASE,
)
# The same inside a token that has a shape of its own: AKIA…EXAMPLE, ghp_xxxxxxxx, sk-1234567890.
_SAMPLE = pattern(
    r"example|sample|dummy|placeholder|change[-_]?me|your[-_]?\w|redacted|replace[-_]?me|not[-_]?a?[-_]?real|insert[-_]"
    r"|x{5}|\*{3}|•{3}|\.{3}|…|<|>|\{\{|\$\{|0{8}|1{8}|1234567890[a-f]|0123456789|abcdefg|(\w)\1{6}|deadbeef|(?:abc123){2}"
    r"|fake[-_]|test[-_]?(?:token|key|secret)|my[-_]?(?:token|key|secret)|(?:token|secret|key)[-_]?(?:goes)?[-_]?here",
    IGNORECASE,
)
# The token on the front page of jwt.io, which half of all tutorials quote.
_FAMOUS = ("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l",)
# What a program says about a value: a call, an index, an attribute, a path, another word of the language.
_CODE = pattern(
    r".*[(\[{].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[;,)]*|[A-Za-z_]\w*(?:::|->).*|\.{0,2}/.*|~/.*|[A-Za-z]:\\.*"
    r"|[a-z][a-z0-9+.-]*://.*|.*\)|!\w+|&\w+|@\w+(?:[./]\w+)*|--?[a-z].*|[\w./-]+\.(?:ya?ml|json|toml|env|txt|pem|key|crt"
    r"|md|org|py|js|ts|go|rs|rb|sh|conf|cfg|ini|html?|gpg|kdbx|asc|log)[.,;:]?"
)
_CALLED = pattern(r"[A-Za-z_][\w.]*\(|\$|`|\{\{|<")
# A name whose last part says that the value is about a secret and not the secret.
_ABOUT = pattern(
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
_TERM = pattern(
    r"(?:base(?:16|32|58|62|64|85)|sha-?\d*|md[45]|utf-?(?:8|16)|pbkdf2|argon2\w*|bcrypt|scrypt|[12]fa|mfa|oauth2?|http/?\d?|k8s"
    r"|x\.?509|1password|pkcs\S*|rfc-?\d+|ipv[46]|rsa-?\d*|aes-?\d*\S*|ed25519|iso-?\d+|ascii|s3|ec2|p12|v\d[\d.]*)\b.*"
    r"|\d+[-–]?(?:char\w*|digits?|bytes?|bits?|days?|words?|letters?|stellig\w*|zeichen|hours?|minutes?|months?|years?|x|%|st|nd"
    r"|rd|th|ms|s|kb|mb|gb)\b.*"
    r"|[\d.,:/%–-]+|\d{4}-\d\d-\d\d.*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+[.,;]?|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|de|fr|es|local)\S*"
    r"|[A-Za-z]+(?:[-'’/][A-Za-z]+)+[.,;:!?)]*|(?-i:[A-Z]{2,})-\d+[.,;:]?|\[\[.*|#\w+|@\w+|\\\w+|(?-i:[A-Z_]{3,})\d?[.,;:]?|\w+\.{2,}|.*&\w+;.*"
    r"|[A-Za-z]+[.,;:!?)(]+(?:[A-Za-z]+[.,;:!?)]*)?",
    IGNORECASE,
)
_PARTS = pattern(r"[-_./:+=\s]+")
_WAVES = pattern(r"[a-zA-Z](?=\d)|\d(?=[a-zA-Z])")
_HEX = pattern(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_UUID = pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


# Values


def placeholder(value: str) -> bool:
    """Whether the value stands where a secret would: <your-token>, changeme, ${VAR}, sk-..."""
    value = value[:READ]
    return bool(_PLACEHOLDER.fullmatch(value) or (_SAMPLE.search(value) and not value.isdigit()))


def sample(token: str) -> bool:
    """Whether a token that has the right shape is one of documentation."""
    return bool(_SAMPLE.search(token[:READ])) or any(famous in token for famous in _FAMOUS)


def entropy(value: str) -> float:
    """Shannon's, in bits for each character."""
    value = value[:READ]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values()) if value else 0.0


def kinds(value: str) -> int:
    """Of how many kinds its characters are: small and capital letters, digits, signs."""
    value = value[:READ]
    return sum(
        (
            any(each.islower() for each in value),
            any(each.isupper() for each in value),
            any(each.isdigit() for each in value),
            any(not each.isalnum() for each in value),
        )
    )


def digits_and_letters(value: str) -> bool:
    value = value[:READ]
    return any(each.isdigit() for each in value) and any(each.isalpha() for each in value)


def odd(value: str) -> bool:
    """Not merely a word with a capital letter or a full stop at its end."""
    inner = value[:READ].rstrip(".,;:!?")
    return any(not each.isalpha() and each not in "-'’" for each in inner)


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
    turns = sum(a.islower() != b.islower() for a, b in zip(longest, longest[1:], strict=False))
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
    if _ABOUT.search(name) or placeholder(value):
        return False
    alone = not quoted and _alone(found)
    if not quoted and (_CALLED if alone else _CODE).match(value[:READ]) and (alone or _CODE.fullmatch(value[:READ])):
        return False
    if found["sign"] in ("(", ",") and not (quoted and digits_and_letters(value)):
        return False
    if not name.isascii() or name.lower().startswith(_PASSWORDS):
        return _password(value, quoted=quoted, alone=alone)
    return len(value) >= 8 and not value.isdigit() and digits_and_letters(value) and _token(value, name)


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
    if quoted or alone:
        name = value.replace("_", "").replace("-", "").replace(".", "")
        return not (value[:1].isupper() and name.isalpha()) and (name == value or not name.isalpha())
    return len(value) >= 6 and kinds(value) >= 2 and odd(value) and not _TERM.fullmatch(value[:READ])


def _token(value: str, name: str) -> bool:
    """A credential must look made by a machine; a short one next to a clear name a little less."""
    if machine_made(value):
        return True
    clear = not name.lower().startswith(("token", "secret", "credential"))
    return clear and len(value) >= 10 and value.isalnum() and entropy(value) >= 3.0 and sum(map(str.isdigit, value)) >= 3


def told(found: Match[str]) -> bool:
    """A password in a sentence has a digit or a sign in it; a word, a term and a file's name have not."""
    return _tells(found["secret"])


def listed(value: str) -> bool:
    """A cell of a table below the word password."""
    return 6 <= len(value) <= 100 and not any(map(str.isspace, value)) and _tells(value)


def _tells(value: str) -> bool:
    value = value.rstrip(".,;:)")
    if placeholder(value) or not odd(value) or _TERM.fullmatch(value[:READ]) or _CODE.fullmatch(value[:READ]):
        return False
    signs = any(each in "!@#$%^&*+=?~" for each in value[:-1])
    return digits_and_letters(value) or (signs and kinds(value) >= 3)


# Between "token" and a long value that is something else.
_OTHER = pattern(r"hash|sha\d*|digest|fingerprint|checksum|commit|\bid\b|uuid|version|public|https?:|file|path|\]\(", IGNORECASE)


def told_token(found: Match[str]) -> bool:
    """A token in a sentence is long and made by a machine."""
    value = found["secret"]
    if _OTHER.search(found[0][: -len(value)]) or value.startswith(("/", ".")) or "//" in value or placeholder(value):
        return False
    return machine_made(value) and digits_and_letters(value) and not _CODE.fullmatch(value[:READ])


def option(found: Match[str]) -> bool:
    """What follows --password on a command line."""
    value = found["secret"]
    return told(found) and not value.startswith("-")


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
    return bool(colon and name.isprintable() and len(password) >= 4 and password.isprintable()) and not placeholder(
        password
    )


def encoded_key(found: Match[str]) -> bool:
    """Whether base64 of "-----BEGIN" goes on as a private key."""
    try:
        return b"PRIVATE KEY" in binascii.a2b_base64(found[0][:64])
    except ValueError:
        return False


_ELIDED = pattern(r"\.\.\.|…|<[\w -]+>|x{8}|\*{4}|\{\{|\$\{|redacted|your|snip", IGNORECASE)


def key_block(found: Match[str]) -> bool:
    """A private key with something in it."""
    body = found["body"]
    return len(body) >= 40 and not _ELIDED.search(body[:400]) and not _ELIDED.search(body[-200:])


_SEED_WORD = pattern(r"[a-z]{3,8}")
_STOP = frozenset("the and for with you your that this are was from not but have has can will its which into".split())


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
_BRANDS = pattern(
    r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}"
)
_NUMBERED = pattern(
    r"(?:\bid|_id|#|\bno|\bnr|order|ticket|invoice|tracking|serial|phone|isbn|account|number|snowflake)\W*\Z", IGNORECASE
)


_GOES_ON = pattern(r"(?<!\\)[A-Za-z0-9_.-]\Z")


def card(found: Match[str]) -> bool:
    """A number of a card: right brand, length and last digit, and not called an order or an id."""
    text, start = found.string, found.start()
    if _GOES_ON.search(text, max(0, start - 2), start):
        return False
    digits = "".join(each for each in found[0] if each.isdigit())
    if _BRANDS.fullmatch(digits) is None or len(set(digits)) == 1 or not luhn(digits):
        return False
    before = text[max(0, start - 40) : start]
    return "card" in before.lower() or not _NUMBERED.search(before)

"""Find secrets in text (tokens, keys, passwords, card numbers) and mask them.

The rules are in secret_rules.toml. A rule has needles (fixed strings to search for), a pattern that is
matched where a needle occurs, and a check of the match. A line that contains `allow-secret` is exempt, except
when masking. Exceptions are not caught here: a caller that checks a commit must refuse the commit if an
exception occurs.
"""

import binascii
import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from re import Match, Pattern
from typing import Any, NamedTuple

from quaid.model.plain_text import LineCounter, RuleFile

RULES_VERSION = 3
"""Version of the rules.

It must be increased with every change of a rule, so that stored findings are computed again.
"""

LONGEST_VALUE_READ = 96
"""Only this many characters at the start of a value are examined."""

ALLOW_MARK = "allow-secret"
UNSEARCHED = "too many places to search"

MOST_PLACES = 50_000
"""At most this many needle positions are examined in one text. If there are more, UNSEARCHED is reported."""

MASK_PLACES, CHARACTERS_PER_PLACE = 1_000, 20
"""For masking, at most MASK_PLACES needle positions are examined, plus one per CHARACTERS_PER_PLACE characters.

Ordinary conversation has far fewer needles. A transcript that consists only of needles takes 0.4 s per
megabyte.
"""

_SHORTEST = 20
"""Length of the shortest token with a known format. Shorter words are not searched for token prefixes."""
_SHORT_NEEDLES = ("-----BEGIN ", "Private-Lines: ", "://")
"""Needles of secrets that may be shorter than `_SHORTEST` or contain a space."""
_GATE_STEMS = ("secret", "auth", "sess", "cred", "login", "mot", " -", "--")
"""Substrings that several needles share. A text without the substring is not searched for these needles."""
_MOST_ROWS = 100
"""At most this many rows of a table are examined."""
_MOST_RETRIES = 8
"""After a rejected match, this many retries are made inside it before the search continues at its end.

This limits the cost of text such as token=token=…
"""

_MARK = re.compile(r"(?<![\w-])allow-secret(?![\w-])")
_PARTS = re.compile(r"[-_./:+=\s]+")
_WAVES = re.compile(r"[a-zA-Z](?=\d)|\d(?=[a-zA-Z])")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGIT = re.compile(r"\d")
_SIGN = re.compile(r"[!@#$%^&*+=?~]")
_DOTTED = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_SEED_WORD = re.compile(r"[a-z]{3,8}")
_GROUP = re.compile(r"[0-9]+")
_GOES_ON = re.compile(r"(?<!\\)[A-Za-z0-9_.-]\Z")
_STOPS = re.compile(r"(?![A-Za-z0-9_-]|\.\d)")
_CARD_SHAPES = ((16,), (15,), (14,), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
"""Groupings in which card numbers are printed, as digits per group."""
_PASSWORD_NAMES = tuple("pass pwd pw psk kenn contra mot mdp clave senha wacht has".split())
_NOT_SEED_WORDS = frozenset(
    "the and for with you your that this are was from not but have has can will its which into".split()
)
_VERBS = frozenset(("is", "was", "as", "ist", "war", "als", "est", "es"))
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b") + b"\x7f"


class SecretRule(NamedTuple):
    """A rule that finds one kind of secret. secret_rules.toml explains the fields."""

    kind: str
    pattern: str = ""
    """The source of the pattern, which is compiled at its first use."""
    needles: tuple[str, ...] = ()
    check: str = "shaped"
    kinds: int = 0
    issuer: str = ""
    lead: str = ""
    reach: int = 0


class Secret(NamedTuple):
    kind: str
    start: int
    end: int
    line: int
    """Line of the first character, starting at 1."""
    remedy: str


SecretSpan = tuple[int, int, SecretRule]

PASSWORD_RULE = SecretRule("password")
"""The rule for a password before the word "password", or in a table column with that heading."""
CARD_RULE = SecretRule("card number", issuer="the bank")


class SecretRules:
    """The rules of secret_rules.toml, arranged for the search."""

    def __init__(self) -> None:
        self.file = RuleFile("secret_rules.toml")
        data = self.file.data
        self.samples: list[str] = data["samples"]["any_case"].split()
        self.exact_sample: str = data["samples"]["exact"]
        words: dict[str, list[str]] = data["needles"]
        self.password_words = words["password"]
        self.name_needles = frozenset(chain.from_iterable(words.values()))
        self.discord = self._rule(data["discord"])
        tokens = [self._rule(entry) for entry in data["tokens"]]
        pairs = [(needle, rule) for rule in tokens for needle in rule.needles]
        self.tokens = [(needle, rule) for needle, rule in pairs if needle not in _SHORT_NEEDLES]
        self.anywhere = [(needle, rule) for needle, rule in pairs if needle in _SHORT_NEEDLES]
        self.context = [
            self._rule({**entry, "pattern": f"(?i){entry['pattern']}"}, words) for entry in data["context"]
        ]
        self.gates: dict[str, list[str]] = {}
        """The needles of the context rules, grouped by a shared substring or by the needle itself."""
        for needle in dict.fromkeys(needle for rule in self.context for needle in rule.needles):
            stem = next((stem for stem in _GATE_STEMS if stem in needle), needle)
            self.gates.setdefault(stem, []).append(needle)
        self.ascii_gates = {gate: needles for gate, needles in self.gates.items() if gate.isascii()}
        self.kinds = {rule.kind for rule in (*tokens, *self.context, self.discord, PASSWORD_RULE, CARD_RULE)}

    def _rule(self, entry: dict[str, Any], words: dict[str, list[str]] | None = None) -> SecretRule:
        fields = dict(entry)
        if prefixes := fields.pop("prefixes", "").split():
            begin = "|".join(prefix.replace(".", r"\.") for prefix in prefixes)
            fields |= {"needles": prefixes, "pattern": f"{{start}}(?:{begin}){fields.pop('rest')}"}
        named = [needle for name in fields.pop("words", ()) for needle in (words or {})[name]]
        fields["needles"] = (*fields.get("needles", ()), *named)
        fields |= {name: self.file.expand(fields.get(name, "")) for name in ("pattern", "lead")}
        return SecretRule(**fields)


@cache
def secret_rules() -> SecretRules:
    """Return the rules, read at the first scan."""
    return SecretRules()


_compile = cache(re.compile)


def _pattern(name: str) -> Pattern[str]:
    return secret_rules().file.pattern(name)


# Checks of values


def is_placeholder(value: str) -> bool:
    """Return True if the value is a placeholder for a secret: <your-token>, changeme, ${VAR}, sk-..."""
    value = value[:LONGEST_VALUE_READ]
    return bool(_pattern("placeholder").fullmatch(value)) or (not value.isdigit() and is_sample(value))


def is_sample(token: str) -> bool:
    """Return True if a token is a sample from documentation, not a real secret."""
    rules, head = secret_rules(), token[:LONGEST_VALUE_READ].lower()
    for sample in rules.samples:
        if sample in head:
            return True
    return bool(_pattern("repeated").search(head)) or rules.exact_sample in token


def is_code(value: str) -> bool:
    """Return True if the value is source code, not a literal."""
    return _pattern("code").fullmatch(value[:LONGEST_VALUE_READ]) is not None


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    value = value[:LONGEST_VALUE_READ]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values()) if value else 0.0


def character_kinds(value: str) -> int:
    """Return how many character classes occur: lowercase, uppercase, digits, other."""
    value = value[:LONGEST_VALUE_READ]
    cases = (value != value.upper()) + (value != value.lower())
    return cases + bool(_DIGIT.search(value)) + (not value.isalnum())


def has_digits_and_letters(value: str) -> bool:
    value = value[:LONGEST_VALUE_READ]
    return bool(_DIGIT.search(value)) and value.lower() != value.upper()


def is_odd_word(value: str) -> bool:
    """Return True if the value is more than a word with optional capitals, hyphens and final punctuation."""
    inner = value[:LONGEST_VALUE_READ].rstrip(".,;:!?").replace("-", "").replace("'", "").replace("’", "")
    return bool(inner) and not inner.isalpha()


def is_machine_made(value: str) -> bool:
    """Return True if the value looks generated: a UUID, a hash, or a random mix of letters and digits or of cases."""
    value = value[:LONGEST_VALUE_READ]
    if _UUID.fullmatch(value) or (_HEX.fullmatch(value) and entropy(value) >= 2.8):
        return has_digits_and_letters(value)
    longest = max(_PARTS.split(value), key=len)
    if len(longest) >= 8 and len(_WAVES.findall(longest)) >= 2 and entropy(longest) >= 2.5:
        return True
    if len(longest) < 16 or entropy(value) < 3.3 or any(letter.isspace() for letter in value):
        return False
    turns = sum(a.islower() != b.islower() for a, b in pairwise(longest))
    return has_digits_and_letters(longest) or turns > len(longest) * 0.38


# Checks of matches


def matched_secret(match: Match[str]) -> str:
    value: str = match["secret"] if "secret" in match.re.groupindex else match[0]
    return value


def is_shaped_token(match: Match[str]) -> bool:
    """Accept a token of a known format unless it is a sample."""
    return not is_sample(matched_secret(match))


def is_mixed_token(match: Match[str]) -> bool:
    """Accept a token as is_shaped_token does, but require both letters and digits."""
    return has_digits_and_letters(matched_secret(match)) and is_shaped_token(match)


def is_random_token(match: Match[str]) -> bool:
    """Accept a token as is_mixed_token does, but require high entropy; for formats that words may match."""
    return is_mixed_token(match) and entropy(matched_secret(match)) >= 3.0


def is_generated_token(match: Match[str]) -> bool:
    """Accept a token as is_random_token does, but the value must look generated."""
    return is_random_token(match) and is_machine_made(match["secret"])


def is_assigned_value(match: Match[str]) -> bool:
    """Accept a value assigned to a name such as password or api_key."""
    value, name, quoted = match["secret"], match["name"], bool(match["quote"])
    is_password = not name.isascii() or name.lower().startswith(_PASSWORD_NAMES)
    mixed = has_digits_and_letters(value)
    alone = not quoted and is_password and _is_alone_on_line(match)
    if not mixed and not (is_password and (quoted or alone or is_odd_word(value))):
        return False
    if match["sign"] in ("(", ",") and not (quoted and mixed):
        return False
    if not quoted and (_pattern("called").match(value) if alone else is_code(value)):
        return False
    if _pattern("about").search(name) or is_placeholder(value):
        return False
    if is_password:
        return _is_password_value(value, literal=quoted or alone)
    return len(value) >= 8 and _is_token_value(value, name)


def _is_alone_on_line(match: Match[str]) -> bool:
    """Return True if NAME=value is alone on its line, as in a settings file."""
    text = match.string
    if match["sign"] not in ("=", "?=") or text[match.end() : match.end() + 1] not in ("", "\n", "\r"):
        return False
    before = text[max(0, match.start() - 60) : match.start()].rpartition("\n")[2].strip()
    return all(letter.isalnum() or letter in "_ -." for letter in before) and before.count(" ") <= 1


def _is_password_value(value: str, *, literal: bool) -> bool:
    """Return True if the value is a plausible password.

    `literal` means that it is in quotes or alone on its line.
    """
    if len(value) < 4:
        return False
    if any(map(str.isspace, value)):  # usually a label, an error or a sentence, rarely a passphrase
        return character_kinds(value) >= 3 and has_digits_and_letters(value) and is_machine_made(value)
    name = value.replace("_", "").replace("-", "").replace(".", "")
    if name != value and name.isalpha():
        return False
    if literal:
        return not (value[:1].isupper() and name.isalpha())
    if len(value) < 6 or character_kinds(value) < 2 or not is_odd_word(value):
        return False
    return not _pattern("term").fullmatch(value[:LONGEST_VALUE_READ])


def _is_token_value(value: str, name: str) -> bool:
    """Return True if the value looks generated. Less randomness is enough if the name is unambiguous."""
    if is_machine_made(value):
        return True
    if len(value) < 10 or not value.isalnum() or name.lower().startswith(("token", "secret", "credential")):
        return False
    return entropy(value) >= 3.0 and sum(map(str.isdigit, value)) >= 3


def is_password_in_sentence(match: Match[str]) -> bool:
    """Accept a password in a sentence if it mixes letters with digits or signs, and is no known term or code."""
    return _is_password_word(match["secret"])


def is_distinct_password(match: Match[str]) -> bool:
    """Accept a password as is_password_in_sentence does, but require three character classes."""
    return is_password_in_sentence(match) and character_kinds(match["secret"].rstrip(".,;:)'\"`*~=»”")) >= 3


def is_password_cell(value: str) -> bool:
    """Return True if a table cell in a password column looks like a password."""
    return 6 <= len(value) <= 100 and not any(map(str.isspace, value)) and _is_password_word(value)


def _is_password_word(value: str) -> bool:
    value = value.rstrip(".,;:)")[:LONGEST_VALUE_READ]
    if not has_digits_and_letters(value) and not (character_kinds(value) >= 3 and _SIGN.search(value[:-1])):
        return False
    return is_odd_word(value) and not (
        _pattern("term").fullmatch(value) or is_code(value) or is_placeholder(value)
    )


def is_token_in_sentence(match: Match[str]) -> bool:
    """Accept a token in a sentence if it looks generated and has letters and digits."""
    value = match["secret"]
    if not has_digits_and_letters(value) or value.startswith(("/", ".")) or "//" in value:
        return False
    if not is_machine_made(value) or _pattern("other").search(match[0][: -len(value)]):
        return False
    return not (is_placeholder(value) or is_code(value))


def is_option_value(match: Match[str]) -> bool:
    """Accept the argument of an option such as --password if it looks like a password and is no option itself."""
    return is_password_in_sentence(match) and not match["secret"].startswith("-")


def is_command_password(match: Match[str]) -> bool:
    """Accept a password after `-u name:` or `-p` if a program whose option takes a password precedes it."""
    if not (_is_password_word(match["secret"]) or (match["quote"] and not is_placeholder(match["secret"]))):
        return False
    command = _pattern("command").search(match.string, max(0, match.start() - 160), match.start())
    return command is not None


def is_bearer_value(match: Match[str]) -> bool:
    """Accept the value after "Bearer"; outside an Authorization header it must also look random."""
    value = match["secret"]
    if is_placeholder(value) or is_code(value):
        return False
    return match["header"] is not None or (has_digits_and_letters(value) and entropy(value) >= 3.0)


def is_netrc_password(match: Match[str]) -> bool:
    return not is_placeholder(match["secret"]) and is_odd_word(match["secret"])


def is_url_password(match: Match[str]) -> bool:
    value = match["secret"]
    return not is_placeholder(value) and not (value.isdigit() and len(value) <= 5)


def is_url_password_with_slash(match: Match[str]) -> bool:
    """Accept a password that contains a slash, which should be escaped but often is not."""
    value = match["secret"]
    return is_url_password(match) and character_kinds(value.partition("/")[0]) >= 2 and "." not in value


def is_encoded_login(match: Match[str]) -> bool:
    """Return True if the base64 value decodes to name:password, as in Docker's config and Basic auth."""
    value = match["secret"]
    try:
        name, _, password = binascii.a2b_base64(value + "=" * (-len(value) % 4)).decode().partition(":")
    except (ValueError, UnicodeDecodeError):
        return False
    is_login = name.isprintable() and len(password) >= 4 and password.isprintable()
    return is_login and not is_placeholder(password)


def is_encoded_key(match: Match[str]) -> bool:
    """Return True if the base64 value, which starts with "-----BEGIN", decodes to a private key."""
    try:
        return b"PRIVATE KEY" in binascii.a2b_base64(match[0][:64])
    except ValueError:
        return False


def is_key_block(match: Match[str]) -> bool:
    """Accept a private key block whose body is neither empty nor elided."""
    body, is_elided = match["body"], _pattern("elided").search
    return len(body) >= 40 and not is_elided(body[:400]) and not is_elided(body[-200:])


def is_seed_phrase(match: Match[str]) -> bool:
    """Accept 12 to 24 short, mostly distinct words without stop words, as in a wallet's seed phrase."""
    words = match["secret"].split()
    return (
        len(words) in (12, 15, 18, 21, 24)
        and all(_SEED_WORD.fullmatch(word) for word in words)
        and len(set(words)) >= len(words) - 2
        and not _NOT_SEED_WORDS.intersection(words)
    )


CHECKS = {
    "shaped": is_shaped_token,
    "mixed": is_mixed_token,
    "random": is_random_token,
    "generated": is_generated_token,
    "assigned": is_assigned_value,
    "password in sentence": is_password_in_sentence,
    "distinct password": is_distinct_password,
    "token in sentence": is_token_in_sentence,
    "option": is_option_value,
    "command": is_command_password,
    "bearer": is_bearer_value,
    "netrc": is_netrc_password,
    "url password": is_url_password,
    "url password with slash": is_url_password_with_slash,
    "encoded login": is_encoded_login,
    "encoded key": is_encoded_key,
    "key block": is_key_block,
    "seed phrase": is_seed_phrase,
}
"""The checks of matches, by the names that rules use for them."""


# Card numbers


def passes_luhn(digits: str) -> bool:
    """Return True if the digits pass the Luhn check."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def card_group_count(text: str, groups: Sequence[Match[str]]) -> int:
    """Return how many of the leading digit groups form a card number, or 0 if they form none.

    Brand prefix, length and Luhn digit must match, and the number must not be labelled as an order, an id or
    the like.
    """
    lengths = tuple(len(group[0]) for group in groups)
    count = next((len(shape) for shape in _CARD_SHAPES if lengths[: len(shape)] == shape), 0)
    if not count:
        return 0
    start, end = groups[0].start(), groups[count - 1].end()
    digits = "".join([group[0] for group in groups[:count]])
    if not _pattern("card_brand").fullmatch(digits) or len(set(digits)) == 1 or not passes_luhn(digits):
        return 0
    if _GOES_ON.search(text, max(0, start - 2), start) or not _STOPS.match(text, end):
        return 0
    before = text[max(0, start - 40) : start]
    return count if "card" in before.lower() or not _pattern("numbered").search(before) else 0


# Search


def find_secrets(text: str, *, marks: bool = True, places: int = MOST_PLACES) -> list[Secret]:
    """Return the secrets in the text, in order and without overlaps.

    With `marks`, secrets on lines with allow-secret are left out. If the text has more than `places` needle
    positions, an UNSEARCHED finding is added where the search stopped.
    """
    budget = _Budget(places)
    spans = _without_overlaps(_candidates(text, budget))
    if marks and spans and ALLOW_MARK in text:
        spans = [span for span in spans if not _has_allow_mark(text, span[0], span[1])]
    lines = LineCounter(text)
    secrets = [
        Secret(rule.kind, start, end, lines.at(start), _remedy(rule.issuer)) for start, end, rule in spans
    ]
    stop = budget.stopped
    if stop is not None:
        remedy = "keep the file outside, or in smaller parts"
        secrets.append(Secret(UNSEARCHED, stop, stop + 1, lines.at(stop), remedy))
        secrets.sort(key=lambda secret: secret.start)
    return secrets


def _remedy(issuer: str) -> str:
    first = f"revoke it at {issuer}" if issuer else "change it where it is used"
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


def decode_data(data: bytes) -> str:
    """Decode a file's text, replacing invalid bytes, so that secrets are found in any encoding."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


class _Budget:
    """Counts how many positions may still be examined, and records the offset at which the search stopped."""

    def __init__(self, places: int) -> None:
        self.left = places
        self.stopped: int | None = None


def _candidates(text: str, budget: _Budget) -> Iterator[SecretSpan]:
    """Yield the matches of all rules, most reliable rules first."""
    rules = secret_rules()
    dense = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
    for needle, rule in rules.tokens:
        if needle in dense:
            yield from _rule_matches(rule, text, _needle_places(needle, text, text, budget))
    anywhere = {
        needle: _needle_places(needle, text, text, budget) for needle in _SHORT_NEEDLES if needle in text
    }
    for needle, rule in rules.anywhere:
        if needle in anywhere:
            yield from _rule_matches(rule, text, anywhere[needle])
    if _DOTTED.search(dense):
        yield from _rule_matches(rules.discord, text, [dots.start() for dots in _DOTTED.finditer(text)])
    folded = _lowercase(text)
    gates = rules.ascii_gates if text.isascii() else rules.gates
    places = {
        needle: _needle_places(needle, text, folded, budget)
        for gate, needles in gates.items()
        if gate in folded
        for needle in needles
        if needle == gate or needle in folded
    }
    if places:
        for rule in rules.context:
            for needle in rule.needles:
                if needle in places:
                    yield from _rule_matches(rule, text, places[needle])
        for needle in rules.password_words:
            if needle in places:
                yield from _passwords_before_word(text, folded, places[needle])
                yield from _password_columns(text, folded, places[needle])
    yield from _card_numbers(text)


def _lowercase(text: str) -> str:
    """Lowercase text without changing its length. (The Turkish capital İ has two characters in lower case.)"""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.replace("İ", "i").lower()


def _needle_places(needle: str, text: str, within: str, budget: _Budget) -> list[int]:
    """Return the offsets of a needle. For password and token words, the pattern `name` must match at the offset."""
    names = _pattern("name").match if needle in secret_rules().name_needles else None
    positions: list[int] = []
    end = -1
    at = within.find(needle)
    while at >= 0:
        budget.left -= 1
        if budget.left < 0:
            budget.stopped = at if budget.stopped is None else min(at, budget.stopped)
            break
        name = names(text, at) if names is not None else None
        if name is not None and positions and at == end:
            positions[-1] = at  # of a repeated name, such as passwordpassword, use the last
        elif name is not None or names is None:
            positions.append(at)
        end = name.end() if name is not None else -1
        at = within.find(needle, at + len(needle))
    return positions


def _rule_matches(rule: SecretRule, text: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Yield the secrets that a rule finds at these offsets."""
    match = _compile(rule.pattern).match
    past = refused = until = 0
    for at in places:
        rule_match = match(text, at) if at >= past else None
        if rule_match is None:
            continue
        span = _accepted_span(rule, rule_match, text, at)
        if span is not None:
            yield span
            past = span[1]
        elif at >= until:
            refused, until = 1, rule_match.end()
        elif (refused := refused + 1) > _MOST_RETRIES:
            past = until


def _accepted_span(rule: SecretRule, match: Match[str], text: str, at: int) -> SecretSpan | None:
    begins = _compile(rule.lead).search(text, max(0, at - rule.reach), at) if rule.lead else match
    if begins is None or not CHECKS[rule.check](match):
        return None
    start, end = match.span("secret" if "secret" in match.re.groupindex else 0)
    if rule.kinds and character_kinds(text[start:end]) < rule.kinds:
        return None
    return (begins.start() if start == at else start), end, rule


def _passwords_before_word(text: str, folded: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Find passwords written before the word "password", as in `hunter2! is the password`."""
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
                yield start, start + len(value), PASSWORD_RULE


def _password_columns(text: str, folded: str, places: Iterable[int]) -> Iterator[SecretSpan]:
    """Find the cells below a `password` header in an org, Markdown or CSV table."""
    end = -1
    for at in places:
        if at < end:
            continue  # one password column per table is enough
        start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
        line = text[start:end] if end - start <= 200 else ""
        sign = next((separator for separator in "|\t;," if separator in line), "")
        if not sign or not _is_table_head(text, start, line, sign):
            continue
        if folded[at:end].partition(sign)[0].strip(" *\"'`").count(" ") <= 1:
            yield from _column_cells(text, end + 1, sign, line.count(sign, 0, at - start), line.count(sign))


def _is_table_head(text: str, start: int, line: str, sign: str) -> bool:
    """Return True if a line is the header row of a table: no row precedes it, and its cells look like names.

    The cells are not checked if the separator is "|".
    """
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)].strip()
    if sign == "|":
        return line.lstrip().startswith("|") and not above.startswith("|")
    return (not above or above.startswith(("```", "#+"))) and all(
        0 < len(cell) <= 30 and not any(map(str.isdigit, cell)) for cell in line.strip().split(sign)
    )


def _column_cells(text: str, at: int, sign: str, index: int, signs: int) -> Iterator[SecretSpan]:
    for _ in range(_MOST_ROWS):
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
                yield begins, begins + len(value), PASSWORD_RULE
        at = end + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _card_numbers(text: str) -> Iterator[SecretSpan]:
    """Find card numbers, as one run of digits or in groups as printed."""
    for run in _pattern("card_digits").finditer(text):
        groups = list(_GROUP.finditer(text, run.start(), min(run.end(), run.start() + 400)))
        place = 0
        while place < len(groups):
            count = card_group_count(text, groups[place : place + 4])
            if count:
                yield groups[place].start(), groups[place + count - 1].end(), CARD_RULE
            place += count or 1


def _without_overlaps(candidates: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Return the candidates by position, without overlaps.

    The most reliable candidates are passed first; of two that overlap, the one passed first is kept.
    """
    starts: list[int] = []
    spans: list[SecretSpan] = []
    for span in candidates:
        place = bisect(starts, span[0])
        if (place and spans[place - 1][1] > span[0]) or (place < len(spans) and spans[place][0] < span[1]):
            continue
        starts.insert(place, span[0])
        spans.insert(place, span)
    return spans


def _has_allow_mark(text: str, start: int, end: int) -> bool:
    """Return True if allow-secret is on a line of the secret, or on the line above a multi-line secret."""
    begins = text.rfind("\n", 0, start) + 1
    if "\n" in text[start:end].strip() and begins:
        begins = text.rfind("\n", 0, begins - 1) + 1
    return _MARK.search(text, begins, _line_end(text, end - 1)) is not None


def mask(text: str) -> tuple[str, int]:
    """Replace each secret with a note such as [masked: github token]; return the text and the note count.

    If the text has too many positions to search, the part not searched is dropped, because it may contain
    secrets.
    """
    pieces: list[str] = []
    at = count = 0
    places = min(MOST_PLACES, MASK_PLACES + len(text) // CHARACTERS_PER_PLACE)
    for secret in find_secrets(text, marks=False, places=places):
        if secret.kind != UNSEARCHED and text.startswith("[masked", secret.start):
            continue
        pieces += [text[at : secret.start], f"[masked: {secret.kind}]"]
        at = len(text) if secret.kind == UNSEARCHED else secret.end
        count += 1
        if secret.kind == UNSEARCHED:
            break
    return "".join([*pieces, text[at:]]), count

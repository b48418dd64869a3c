"""Claims (statements) in the sentences of knowledge base nodes, and conflicts and duplicates between nodes.

English text is parsed by a few rules. Every finding is shown to a person, so the rules prefer missing a
conflict to reporting a false conflict.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from quaid.model.english import english_rules, pairs, pattern, split_sentences, stem, stems, word_list

LONGEST_SENTENCE = 300
"""A sentence with more characters is skipped, because it usually makes several claims."""

MOST_CLAIM_WORDS = 12
"""A claim whose topic has more words is skipped, because such a topic practically never occurs twice."""

_LEAD = re.compile(r"^[\s>*+#-]*(?:\d+[.)]\s+)?|\[\[[^\]]*\]\[|\]\]|[*=~`](?=\S)|(?<=\S)[*=~`](?!\w)")
_WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")


class ClaimNumber(NamedTuple):
    """A number in a clause."""

    value: tuple[float, ...]
    """The number in the base unit of its dimension; for a version, one element for each part."""
    text: str
    unit: str
    """The dimension of the number, such as time, size or share; "" if the clause names no unit."""
    bound: str
    """"most" or "least" for a bound, or "" for an exact number."""


class Claim(NamedTuple):
    """The statement that one clause makes."""

    quote: str
    """The sentence that contains the clause."""
    kind: str
    """"says" (a plain statement), "setting", "compares" or "chooses"."""
    sign: int
    """1 if the clause supports the topic, -1 if it opposes it."""
    words: frozenset[str]
    """The stems of the words of the topic.

    The topic of a setting is its name. The topic of a comparison is both sides and the comparative, and the
    topic of a choice is the rejected side.
    """
    person: str = ""
    """The person whose preference the clause states; "" if the sentence names no person."""
    number: ClaimNumber | None = None
    value: frozenset[str] = frozenset()
    """The value of a setting, the left side of a comparison, or the preferred side of a choice."""
    relation: str = ""
    several: bool = False
    """True if several values can be valid at once."""
    demands: bool = False
    """True if the clause requires or recommends something, False if it describes a state."""


def parse_claims(sentence: str, *, is_title: bool = False, is_step: bool = False) -> list[Claim]:
    """Return the claims of a sentence.

    A title makes a claim only if it contains a word of word_list("asserting"). A step of a procedure makes a
    claim only if it contains a word of word_list("strong").
    """
    if len(sentence) > 2 * LONGEST_SENTENCE:  # checked before any pattern is applied
        return []
    sentence = _LEAD.sub("", sentence).strip()
    if sentence.endswith("?") or len(sentence) > LONGEST_SENTENCE or pattern("quoted").search(sentence):
        return []
    text = _normalize_sentence(sentence)
    words = text.split()
    if not words or words[0] in word_list("questions") or not word_list("reporting").isdisjoint(words):
        return []
    if (is_step and word_list("strong").isdisjoint(words)) or (
        is_title and word_list("asserting").isdisjoint(words)
    ):
        return []
    if pattern("past_phrase").search(text) or pattern("not_only").search(text):
        return []
    claims: list[Claim] = []
    condition = ""
    person = _leading_person(text) if sentence[0].isupper() else ""
    for number, clause in enumerate(_clauses(text)):
        if pattern("dropped").match(clause):
            continue
        if pattern("condition").match(clause) and number == 0 and "," in text:
            if not word_list("negations").isdisjoint(clause.split()):
                return []  # the claim depends on a negated condition
            condition = " " + clause
            continue
        if number == 0 and person:
            clause = clause[len(person) :].lstrip()
        claims += _clause_claims(clause + condition, sentence, is_step)
    return [claim._replace(person=person) for claim in claims] if person else claims


def _leading_person(text: str) -> str:
    """Return the name at the beginning of a sentence about a preference; "" if it begins with no name."""
    first, *after = text.split()[:4]
    is_name = (
        first.isalpha()
        and first not in word_list("stop")
        and first
        not in word_list("attitudes") | word_list("demands") | word_list("negations") | word_list("refusals")
    )
    return first if is_name and not word_list("attitudes").isdisjoint(after) else ""


def _normalize_sentence(sentence: str) -> str:
    """Convert to lower case, remove parentheses, and write negations as "not" ("can't" becomes "can not")."""
    text = pattern("aside").sub("", sentence.lower()).replace("’", "'").rstrip(".! ")
    text = text.replace("won't", "will not").replace("can't", "can not").replace("cannot", "can not")
    text = text.replace("n't", " not").replace("needs not", "need not")
    return text.replace("no longer than", "at most").replace("no longer", "not")


def _clauses(text: str) -> list[str]:
    """Split a sentence into clauses.

    A setting, a short name before a colon ("formatter: black"), is not split.
    """
    head, colon, value = text.partition(": ")
    if colon and len(head.split()) <= 4 and len(value.split()) <= 3 and "," not in text:
        return [f"{head}: {value}"]
    return [clause.strip() for clause in pattern("clause").split(text) if clause.strip()]


def _clause_claims(clause: str, quote: str, is_step: bool) -> Iterator[Claim]:
    clause = clause.removeprefix("but ").removeprefix("and ")
    compared = pattern("compared").match(clause) if " than " in clause else None
    if compared:
        left, negated, more, right = compared.groups()
        one, other = stem_words(left), stem_words(pattern("rest").split(right, maxsplit=1)[0])
        words = one | stem_words(right) | {stem(more)}
        if one and other and not one & other:
            yield Claim(quote, "compares", -1 if "not" in negated.split() else 1, words, value=one)
        return
    choice = _choice(clause)
    if choice and not pattern("bound").search(clause):
        chosen, left_out = choice.groups()
        left_out, *rest = pattern("rest").split(left_out, maxsplit=1)
        tail = " " + rest[0] if rest else ""
        yield from _plain_claims(chosen + tail, quote, is_step, demands=True)
        yield from _plain_claims("not " + left_out + tail, quote, is_step, demands=True)
        out, preferred = stem_words(left_out + tail), stem_words(chosen + tail)
        if out and preferred and not is_step:
            yield Claim(quote, "chooses", 1, out, value=preferred)
        return
    yield from _plain_claims(clause, quote, is_step)
    if not is_step:
        yield from _setting_claims(clause, quote)


def _choice(clause: str) -> re.Match[str] | None:
    """Match a clause that prefers one thing to another; the groups are the preferred and rejected side."""
    if " than " in clause and (match := pattern("rather_than").match(clause)):
        return match
    if "prefer" in clause and " to " in clause and (match := pattern("prefer_to").match(clause)):
        return match
    return (
        pattern("choice").match(clause)
        if " over " in clause or " of " in clause or " than " in clause
        else None
    )


def _plain_claims(clause: str, quote: str, is_step: bool, demands: bool = False) -> Iterator[Claim]:
    bound = pattern("bound").search(clause)
    if bound:
        clause = clause[: bound.start()] + " " + clause[bound.end() :]
    tokens = _tokens(clause)
    here = set(tokens)
    if here & word_list("hedges") or here & word_list("past") or _is_past(tokens):
        return
    strong = demands or not here.isdisjoint(word_list("strong"))
    is_demand = strong or not here.isdisjoint(word_list("demands"))
    if is_step and not strong:
        return
    sign, words, number = _parse_matter(tokens, bound.lastgroup or "" if bound else "")
    if words and len(words) <= MOST_CLAIM_WORDS:
        several = not here.isdisjoint(word_list("multi_value"))
        yield Claim(quote, "says", sign, frozenset(words), number=number, several=several, demands=is_demand)


def _parse_matter(tokens: list[str], bound: str) -> tuple[int, set[str], ClaimNumber | None]:
    """Return sign, topic words and number of a clause.

    If the clause has several numbers, they count as topic words, and the number is None.
    """
    sign, words, numbers = 1, set[str](), list[ClaimNumber]()
    for place, token in enumerate(tokens):
        if token in word_list("negations") or token in word_list("refusals"):
            sign = -sign
        elif token in word_list("demands"):
            continue
        elif (number_match := pattern("number").match(_number_words().get(token, token))) and (
            not number_match[2] or _unit(number_match[2])
        ):
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            numbers.append(_parse_number(number_match[1], number_match[2] or after, bound))
        elif token in word_list("narrowing"):
            words.add(token)
        elif token not in word_list("stop"):
            if numbers and tokens[place - 1][0].isdigit() and _unit(token):
                continue
            turned = pairs("complements").get(token) or _opposites().get(stem(token))
            if turned:
                sign = -sign
            words.add(fold_word(turned or token))
    words.discard("")
    if len(numbers) > 1:
        words |= {number.text for number in numbers}
    return sign, words, numbers[0] if len(numbers) == 1 else None


def _parse_number(text: str, unit: str, bound: str) -> ClaimNumber:
    dimension, factor = _unit(unit) or ("", 1.0)
    plain = text.replace(",", "")
    if plain.count(".") < 2 and (dimension or plain.startswith("0.")):
        value: tuple[float, ...] = (float(plain) * factor,)
    else:
        value = tuple(map(float, plain.split(".")))  # for a version such as 3.9, which is before 3.11
    shown = f"{text}%" if unit == "%" else f"{text} {unit}" if dimension else text
    return ClaimNumber(value, shown, dimension, bound)


def _unit(word: str) -> tuple[str, float] | None:
    return _units().get(word) or _units().get(word.removesuffix("s"))


def _setting_claims(clause: str, quote: str) -> Iterator[Claim]:
    """Yield the claim of a clause that assigns a setting: "the branch is main", "formatter: black"."""
    for form in ("as_the", "runs_on", "setting"):
        match = pattern(form).match(clause)
        if match:
            break
    else:
        return
    groups = match.groupdict()
    about, value = stem_words(groups["about"]), groups["value"].split()
    here = set(_tokens(clause))
    if (
        not about
        or len(about) > 5
        or not 0 < len(value) <= 4
        or here & (word_list("hedges") | word_list("past") | word_list("negations") | {"also"})
    ):
        return
    relation = groups.get("verb") or ""
    if (
        form != "runs_on"
        and groups.get("sign") != "="
        and (about <= stems("vague_settings") or about.isdisjoint(stems("settings")))
    ):
        return
    if form == "setting" and not groups.get("sign") and not _is_value(value):
        return
    words = stem_words(groups["value"]) or frozenset(value)
    yield Claim(quote, "setting", 1, about, value=words, relation=relation.rpartition(" ")[2])


def _is_value(words: list[str]) -> bool:
    """Return True if the words after "is" name a thing, rather than describe the subject or its place."""
    first = words[0]
    if first in word_list("stop") - {"a", "an", "the", "one"} or first in word_list("adjectives") | word_list(
        "refusals"
    ) | word_list("demands"):
        return False
    return not first.endswith(("ed", "ing", "ly", "able")) and first not in ("a", "an")


def _tokens(clause: str) -> list[str]:
    return [token.removesuffix("'s") for token in pattern("token").findall(clause.replace("'s ", " "))]


def stem_words(text: str) -> frozenset[str]:
    """Return the stems of the words in a lower-case text, except stop words and words of demand, such as "must"."""
    return frozenset(
        fold_word(token)
        for token in _tokens(text)
        if token not in word_list("stop") and token not in word_list("demands")
    ) - {""}


def fold_word(word: str) -> str:
    """Return the stem of a word or of its synonym; "" for a word to drop."""
    other = pairs("synonyms").get(word)
    return stem(word if other is None else other) if other != "" else ""


def _is_past(tokens: list[str]) -> bool:
    """Return True if a clause that begins with a determiner or pronoun reports a past event ("the build failed").

    A clause with "is", "be" or "has" before the verb describes a state instead.
    """
    if not tokens or tokens[0] not in word_list("determiners"):
        return False
    for place, token in enumerate(tokens[1:], 1):
        if token in ("is", "are", "be", "been", "has", "have"):
            return False
        if (
            token.endswith("ed")
            and len(token) > 4
            and place > 1
            and tokens[place - 1] not in word_list("determiners")
        ):
            return True
    return len(tokens) > 1 and tokens[0] in ("we", "i", "they") and tokens[1].endswith("ed")


MOST_CANDIDATES = 40
"""A new statement is compared with at most this many statements.

Those whose title and summary match come first, the shortest first.
"""

SIMILAR_SHARE = 0.75
"""Duplicate statements have at least this Dice similarity of their summaries, or of titles and summaries."""

SURE_SHARE = 0.85
"""The required similarity if each summary has a word that the other lacks, because such a word may be decisive."""

LEAST_SHARED = SIMILAR_SHARE / (2 - SIMILAR_SHARE)
"""Two texts can reach SIMILAR_SHARE only if each contains at least this share of the other's words."""

GENERAL_PROJECT = "general"
"""The project whose statements apply to all projects."""

PROCEDURE_TYPE = "procedure"
"""The node type whose sentences are steps of a procedure."""


class Statement(NamedTuple):
    """The parts of a node that are compared."""

    key: str
    title: str
    summary: str
    body: str = ""
    type: str = ""
    projects: tuple[str, ...] = ()


WordProbe = tuple[tuple[str, ...], int]
"""Words to search for in another text, and how many of them may be missing there."""


class StatementMatch(NamedTuple):
    """A statement that contradicts or nearly repeats a new statement."""

    key: str
    why: str
    one: str = ""
    """The sentence of the new statement. `other` is the sentence that contradicts it; both are "" for duplicates."""
    other: str = ""
    share: float = 0.0
    """Similarity of a near-duplicate."""


def find_conflicts(new: Statement, others: Iterable[Statement], most: int = 5) -> list[StatementMatch]:
    """Return up to `most` statements that contradict a new statement, each with the two contradicting sentences."""
    head, body = _head_claims(new), _body_claims(new)
    probes = _claim_probes(head)
    conflicts = []
    for other, is_near in _candidates(new, probes, _claim_probes(head + body), others):
        for one, two in _claim_pairs(head, body if is_near else None, probes, other):
            why = conflict_reason(one, two)
            if why and _same_context(new, one, other, two):
                conflicts.append(StatementMatch(other.key, why, one.quote, two.quote))
                break
        if len(conflicts) == most:
            break
    return conflicts


def find_conflicts_within(added: Statement, existing: Statement, most: int = 5) -> list[StatementMatch]:
    """Return up to `most` conflicts of text added to a statement with its existing text, one for each added sentence.

    Bodies can be compared with each other here, because they share the context of one node.
    """
    new = _summary_claims(added) + _body_claims(added)
    old = _head_claims(existing) + _body_claims(existing, _claim_probes(new))
    matches: dict[str, StatementMatch] = {}
    for one, two in product(new, old):
        why = conflict_reason(one, two) if one.quote != two.quote else ""
        if why and _same_context(added, one, existing, two):
            matches.setdefault(one.quote, StatementMatch(existing.key, why, one.quote, two.quote))
            if len(matches) == most:
                break
    return list(matches.values())


def _claim_pairs(
    head: list[Claim], body: list[Claim] | None, probes: list[WordProbe], other: Statement
) -> Iterator[tuple[Claim, Claim]]:
    """Yield the pairs of claims to compare. Two bodies are not compared, because each depends on its context.

    `body` is None if the title and summary of the other statement match no claim of the new statement.
    """
    if body is not None:
        for two in _head_claims(other):
            for one in chain(head, body):
                if not one.words.isdisjoint(two.words) or one.kind == "chooses":
                    yield one, two
    if head and other.body:
        yield from product(head, _body_claims(other, probes))


def conflict_reason(one: Claim, other: Claim) -> str:
    """Return why two claims contradict each other; "" if they do not."""
    if one.kind != other.kind or (one.person and other.person and one.person != other.person):
        return ""
    if one.kind == "setting":
        return _setting_conflict(one, other)
    if one.kind == "compares":
        if one.words == other.words and (one.value == other.value) is (one.sign != other.sign):
            return f"they compare the other way round: {_quote_words(one.words, one)}"
        return ""
    if one.kind == "chooses":
        turned = one.words <= other.value and other.words <= one.value and not one.words <= one.value
        return (
            f"they choose the other way round: {_quote_words(one.words | other.words, one)}" if turned else ""
        )
    if one.number and other.number:
        return _number_conflict(one, one.number, other, other.number)
    if one.number or other.number:
        return ""
    if one.sign != other.sign:
        return _polarity_conflict(one, other)
    return _alternative_conflict(one, other) if one.sign > 0 else ""


def _polarity_conflict(one: Claim, other: Claim) -> str:
    common, apart = one.words & other.words, one.words ^ other.words
    if len(apart) > (len(common) >= 4) or apart & word_list("narrowing") or not common:
        return ""
    if len(common) == 1 and not (one.demands and other.demands):
        return ""
    return f"one is for it, the other against: {_quote_words(common, one)}"


def _alternative_conflict(one: Claim, other: Claim) -> str:
    first, second = one.words - other.words, other.words - one.words
    if len(first) != 1 or len(second) != 1 or not one.words & other.words:
        return ""
    (a,), (b,) = first, second
    if b in _alternative_stems().get(a, ()):
        both = _quote_words(one.words & other.words, one)
        return f"“{_quote_words(first, one)}” against “{_quote_words(second, other)}”: {both}"
    return ""


def _number_conflict(one: Claim, first: ClaimNumber, other: Claim, second: ClaimNumber) -> str:
    common, every = one.words & other.words, one.words | other.words
    if (
        not common
        or len(every) - len(common) > (len(common) >= 4)
        or (every - common) & word_list("narrowing")
    ):
        return ""
    if one.sign != other.sign or (first.unit and second.unit and first.unit != second.unit):
        return ""
    if len(common) + bool(first.unit and second.unit) < 2 and not (one.demands and other.demands):
        return ""
    if (one.several or other.several) and not (one.demands and other.demands):
        return ""
    if not _numbers_exclude(first, second):
        return ""
    return f"{first.text} against {second.text}: {_quote_words(common, one)}"


def _numbers_exclude(one: ClaimNumber, other: ClaimNumber) -> bool:
    """Return True if two numbers contradict each other.

    They do if no number satisfies both, or if both are bounds of the same kind with different values. An exact
    number also contradicts every upper bound that is not equal to it.
    """
    if one.bound == other.bound:
        return one.value != other.value
    if {one.bound, other.bound} == {"most", "least"}:
        most, least = (one, other) if one.bound == "most" else (other, one)
        return least.value > most.value
    exact, limit = (one, other) if not one.bound else (other, one)
    # Next to an upper bound, an exact number usually states an upper bound too: "The line length is 88" contradicts
    # "lines have at most 100 characters".
    return exact.value != limit.value if limit.bound == "most" else exact.value < limit.value


def _setting_conflict(one: Claim, other: Claim) -> str:
    if one.words != other.words or one.relation != other.relation or one.value & other.value:
        return ""
    values = f"“{_quote_words(one.value, one)}” against “{_quote_words(other.value, other)}”"
    return f"{values}: {_quote_words(one.words, one)}"


def _quote_words(words: frozenset[str], claim: Claim) -> str:
    """Return the words of the claim's sentence that have these stems, or the stems if there are no such words."""
    written = [word for word in claim.quote.replace("`", "").split() if stem_words(word.lower()) & words]
    return " ".join(word.strip(",;:.!()\"'“”") for word in written) or ", ".join(sorted(words))


def _same_project(one: Statement, other: Statement) -> bool:
    mine, theirs = set(one.projects), set(other.projects)
    return not mine or not theirs or GENERAL_PROJECT in mine | theirs or bool(mine & theirs)


def _same_context(new: Statement, one: Claim, other: Statement, two: Claim) -> bool:
    """Return True if both claims apply to the same context.

    The title of a node can restrict its claims, for example to Makefiles.
    """
    mine, theirs = _content_stems(new.title), _content_stems(other.title)
    first, second = one.words | one.value, two.words | two.value
    if (mine | first) & stems("contexts") != (theirs | second) & stems("contexts"):
        return False
    # Title words that are missing from both sentences name the subject: "Redis pool", "Mail pool".
    quoted = _content_stems(one.quote) | _content_stems(two.quote)
    first, second = mine - quoted, theirs - quoted
    return one.kind == "compares" or not first - theirs or not second - mine


def _head_claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == PROCEDURE_TYPE
    return parse_claims(statement.title, is_title=True, is_step=is_step) + _summary_claims(statement)


def _summary_claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == PROCEDURE_TYPE
    return [
        claim
        for sentence in split_sentences(statement.summary)
        for claim in parse_claims(sentence, is_step=is_step)
    ]


def _body_claims(statement: Statement, probes: list[WordProbe] | None = None) -> list[Claim]:
    """Return the claims of the body; with probes, only of the sentences that match a probe."""
    claims: list[Claim] = []
    is_step = statement.type == PROCEDURE_TYPE
    if probes is not None and not _matches_probe(_lowercase(statement.body), probes):
        return claims
    for sentence in split_sentences(statement.body):
        if probes is None or _matches_probe(_lowercase(sentence), probes):
            claims += parse_claims(sentence, is_step=is_step)
    return claims


def _claim_probes(claims: list[Claim]) -> list[WordProbe]:
    """Return, for each claim, the words that another text must contain to be worth parsing.

    Words that have synonyms or alternatives are left out if other words remain, because the other text may use
    a different form. One word may be missing if the claim has more than four words, or if its several words all have
    other forms. Long words, which are rare, come first, so that most texts fail at the first test.
    """
    probes = {}
    for claim in claims:
        words, spare = claim.words - _variable_stems(), len(claim.words) > 4
        if not words:
            words, spare = claim.words, len(claim.words) > 1
        probes[claim.words] = (tuple(sorted(words, key=lambda word: (-len(word), word))), int(spare))
    return list(probes.values())


def _lowercase(text: str) -> str:
    return text.lower() if text.isascii() else text.lower().replace("’", "'")


def _matches_probe(text: str, probes: list[WordProbe]) -> bool:
    """Return True if lower-case text contains the words of at least one probe."""
    for words, spare in probes:
        for word in words:
            if word not in text:
                if not spare:
                    break
                spare -= 1
        else:
            return True
    return False


def _candidates(
    new: Statement, head_probes: list[WordProbe], probes: list[WordProbe], others: Iterable[Statement]
) -> list[tuple[Statement, bool]]:
    """Return the statements to parse, at most MOST_CANDIDATES.

    Each comes with True if its title and summary match a probe, or False if only its body does.
    """
    near, far = [], []
    for other in others:
        if _matches_probe(_lowercase(f"{other.title} {other.summary}"), probes):
            near.append((other, True))
        elif other.body and _matches_probe(_lowercase(other.body), head_probes):
            far.append((other, False))
    # A short title and summary that match are more likely to be about the same topic.
    near.sort(key=lambda pair: len(pair[0].title) + len(pair[0].summary))
    candidates = [pair for pair in near + far if pair[0].key != new.key and _same_project(new, pair[0])]
    return candidates[:MOST_CANDIDATES]


def find_similar(new: Statement, others: Iterable[Statement], most: int = 5) -> list[StatementMatch]:
    """Return up to `most` near-duplicates of a new statement, most similar first."""
    title, summary = _content_stems(new.title), _content_stems(new.summary)
    probes: list[WordProbe] = [(tuple(title - _synonym_stems()), 0)]
    for words in (summary, title | summary):
        probes.append((tuple(words - _synonym_stems()), int(len(words) * (1 - LEAST_SHARED))))
    matches = []
    for other in others:
        if not _matches_probe(_lowercase(f"{other.title} {other.summary}"), probes) or other.key == new.key:
            continue
        theirs = _content_stems(other.title)
        if title and title == theirs and _weak(new.title) == _weak(other.title):
            matches.append(StatementMatch(other.key, "the same title", share=1.0))
            continue
        share = _similar_share(new, title, summary, other, theirs)
        if share >= SIMILAR_SHARE:
            matches.append(StatementMatch(other.key, "the summaries say the same", share=round(share, 3)))
    return sorted(matches, key=lambda match: -match.share)[:most]


def _similar_share(
    new: Statement, title: frozenset[str], summary: frozenset[str], other: Statement, theirs: frozenset[str]
) -> float:
    second = _content_stems(other.summary)
    share = max(_dice(summary, second), _dice(title | summary, theirs | second))
    if share < (SURE_SHARE if summary - second and second - summary else SIMILAR_SHARE):
        return 0.0
    return 0.0 if _are_opposites(summary ^ second) or corrects_details(new.summary, other.summary) else share


def corrects_details(old: str, new: str) -> bool:
    """Return True if two texts differ in numbers, dates or negations, so that similar words differ in meaning."""
    return Counter(pattern("decisive").findall(old.lower())) != Counter(
        pattern("decisive").findall(new.lower())
    )


def _are_opposites(apart: frozenset[str]) -> bool:
    """Return True if two of the words are opposites or alternatives."""
    return any(not apart.isdisjoint(_alternative_stems().get(word, ())) for word in apart)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _content_stems(text: str) -> frozenset[str]:
    lowered = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(fold_word(word) for word in lowered if word not in word_list("stop")) - {""}


def _weak(title: str) -> frozenset[str]:
    """Return the stop words of a title that still distinguish it from other titles."""
    return frozenset(word.lower() for word in _WORD.findall(title)) & (
        word_list("stop") - word_list("little")
    )


@cache
def _alternative_stems() -> dict[str, frozenset[str]]:
    """Map the stem of a word to the stems of its alternatives and opposites."""
    groups = [group.split() for group in english_rules().data["groups"]["alternatives"].split(",")]
    alternatives: dict[str, frozenset[str]] = {}
    for group in (*groups, *pairs("complements").items()):
        group_stems = frozenset(map(stem, group))
        for word in group_stems:
            alternatives[word] = alternatives.get(word, frozenset()) | (group_stems - {word})
    return alternatives


@cache
def _synonym_stems() -> frozenset[str]:
    return frozenset(map(stem, pairs("synonyms").values()))


@cache
def _variable_stems() -> frozenset[str]:
    """Return the stems of words that have synonyms or alternatives, because another text may use those."""
    return _synonym_stems().union(_alternative_stems())


@cache
def _opposites() -> dict[str, str]:
    return {stem(word): base for word, base in pairs("complements").items()}


@cache
def _units() -> dict[str, tuple[str, float]]:
    """Map each unit to its dimension and its factor to the base unit of that dimension."""
    split = {unit: value.split("*") for unit, value in pairs("units").items()}
    return {unit: (dimension, float(factor)) for unit, (dimension, factor) in split.items()}


@cache
def _number_words() -> dict[str, str]:
    names = english_rules().data["words"]["numbers"].split()
    return {word: str(number) for number, word in enumerate(names, 2)}

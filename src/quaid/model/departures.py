"""Sentences that say something ended ("left Hexa in 2025", "no longer at Hexa"), and their subjects.

A small rule-based reader of English; docs/truth.md lists the phrases. Negated, planned, rumoured and quoted
statements are skipped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.model import markdown_text
from quaid.model.dates import find_dates
from quaid.model.markdown_text import replace_wiki_links
from quaid.model.names import fold_name

OWNER = ""
"""As a subject: the entity that the page is about."""

_BLOCK = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+]|\d+[.)]|\#{1,6}|\|)[ \t])")
_ABBREVIATIONS = (
    "Inc",
    "Ltd",
    "Dr",
    "Mr",
    "Ms",
    "Mrs",
    "St",
    "Co",
    "Jr",
    "vs",
    "etc",
    "Corp",
    "Prof",
    "approx",
)
_END = re.compile(
    r"[.!?](?<!\b[A-Z]\.)"
    + "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
    + r"""["”')\]]*(?=\s|\Z)|;(?=\s)"""
)
READ_WINDOW = 2_000
"""Maximum characters read before and after a match."""
MOST_PRECEDING = 5
"""Maximum preceding sentences that are searched for the antecedent of a pronoun."""

_INLINE_CODE = re.compile(r"`[^`\n]*`")
_VISIBLE = re.compile(r"[^\n]")
_LEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d+[.)])[ \t]+|\#{1,6}[ \t]+)?")
_QUOTE_MARK = re.compile(r"(?<=\n)[ \t]*>[ \t]?")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)|~~")
_MD_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)\)")
_PAGE_PATH = re.compile(r"(?:\.\.?/)*+([\w/.-]+?)\.(?:md|markdown|org)\Z")

_FILLER_WORDS = frozenset(
    (
        "has had have having do does was were is are been be got did made also then later finally eventually recently"
        " formally officially amicably quietly abruptly suddenly just since already again now soon subsequently"
        " voluntarily who himself herself both a an the"
    ).split()
)
_LEADING_TIME = re.compile(
    r"^(?:(?:in|on|by|around|since|from|until|during|at the (?:end|start|beginning) of)\s+)?(?:early|mid|late|spring"
    r"|summer|autumn|fall|winter)?[\s-]*(?:of\s+)?(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:(?:january|february|march|april|may|june"
    r"|july|august|september|october|november|december)\s*(?:\d{1,2},?\s*)?)?(?:(?:19|20)\d\d(?:-\d\d){0,2})\s*[,:–—-]?\s*"
    r"|^(?:update|note|news|then|later|eventually|finally|afterwards|today|meanwhile|sadly"
    r"|last year|this year)\b[,:]?\s*",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"[,;:()—–]|\s-\s|\b(?:and|but|or|then|which|who|that|while|when|because|after|since|before|until|as|so|though"
    r"|although|where)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:[A-ZÀ-ÖØ-Þ][\w'’.-]*|(?<![\w-])[\w-]+(?:/[\w.-]+)+)"
    r"(?:\s+(?:(?:van|von|de|da|der|bin|al|la)\s+)*(?:[A-ZÀ-ÖØ-Þ][\w'’.-]*))*"
)
_PRONOUN = re.compile(r"(?:he|she|they)\Z", re.IGNORECASE)
_ROLE = re.compile(
    r"(?:designer|engineer|founder|co-?founder|ceo|cto|cfo|coo|head|lead|vp|director|manager|partner|investor"
    r"|researcher|writer|sales|product|professor|chief|senior|principal|consultant|analyst|developer|teacher|lawyer"
    r"|joined|worked|met|was|studied|previously|formerly|currently|now|born|lives|married|moved|started|began|became"
    r"|served|ran|built|led|hired|retired|after|before|since|no|not|both|up|until|according)\b",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"\s+(?:(?:of|from|at|in)\s|\w+ly\Z)")
_OTHER_PERSON = re.compile(
    r"\b(?:hired|met|with|knows|married|told|managed|manages|mentored|mentors|introduced|and|replaced|succeeded|by)\s+"
    r"([A-ZÀ-ÖØ-Þ][\w'’-]*(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]*)*)"
)
_AFTER_ROLE = re.compile(r"\s+(?:at|of|in|for|from|with)\b")


class Sentence(NamedTuple):
    """One sentence as plain text, with links replaced by the slugs they name."""

    text: str
    line: int
    """Line number of its first character, from 1."""
    before: tuple[str, ...]
    """The preceding sentences of the same paragraph, at most MOST_PRECEDING."""


class PageOwner(NamedTuple):
    """The entity that a page is about."""

    names: frozenset[str]
    """All its folded names, including first and last name of a person."""
    is_person: bool


def blank_out_code(text: str) -> str:
    """Replace code and comments with spaces; all other characters keep their offsets."""
    spans = (
        [(block.start, block.end) for block in markdown_text.find_fences(text)]
        if "```" in text or "~~~" in text
        else []
    )
    if "`" in text:
        spans += [match.span() for match in _INLINE_CODE.finditer(text)]
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        spans.append((start, end + 3))
        start = text.find("<!--", end)
    kept: list[str] = []
    position = 0
    for first, last in sorted(spans):
        if last > position:
            first = max(first, position)
            kept += [text[position:first], _VISIBLE.sub(" ", text[first:last])]
            position = last
    return "".join([*kept, text[position:]]) if kept else text


class TextBlock(NamedTuple):
    """A paragraph, list item or heading. `cuts` are the sentence boundaries within it."""

    start: int
    end: int
    text: str
    cuts: tuple[int, ...]


def block_at(text: str, position: int) -> TextBlock:
    """Return the paragraph, list item or heading that contains an offset."""
    low, high = max(0, position - READ_WINDOW), min(len(text), position + READ_WINDOW)
    start = max((match.end() for match in _BLOCK.finditer(text, low, position)), default=low)
    following = _BLOCK.search(text, position, high)
    end = following.start() if following else high
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    body = text[start:end]
    if ">" in body:
        body = _QUOTE_MARK.sub(lambda mark: " " * len(mark[0]), body)
    return TextBlock(start, end, body, (0, *(match.end() for match in _END.finditer(body)), len(body)))


def sentence_at(
    text: str, position: int, first_line: int = 1, block: TextBlock | None = None
) -> tuple[Sentence, int] | None:
    """Return the sentence at an offset, and the offset within it; None in an open task, a table or a quotation.

    `block` is the block at the offset, if the caller already has it.
    """
    block = block or block_at(text, position)
    place = position - block.start
    if place < 0 or block.text.startswith(("[ ]", "|")):
        return None
    cuts = block.cuts
    index = next(each for each in range(len(cuts) - 1) if cuts[each + 1] > place or each == len(cuts) - 2)
    raw = block.text[cuts[index] : cuts[index + 1]]
    head = strip_emphasis(block.text[cuts[index] : place])
    if _is_in_quotation(head):
        return None
    tail = strip_emphasis(block.text[place : cuts[index + 1]])
    begin = block.start + cuts[index] + len(raw) - len(raw.lstrip())
    line = first_line + text.count("\n", 0, begin)
    spans = [(cuts[each], cuts[each + 1]) for each in range(max(0, index - MOST_PRECEDING), index)]
    earlier = tuple(strip_emphasis(block.text[low:high]).strip() for low, high in spans)
    head = head.lstrip()
    return Sentence(head + tail.rstrip(), line, earlier), len(head)


def strip_emphasis(text: str) -> str:
    """Remove emphasis, and replace links with the slugs they name."""
    text = replace_wiki_links(text)
    if "](" in text:
        text = _MD_LINK.sub(_link_target, text)
    return re.sub(r"\s", " ", _MARKS.sub("", text))


def _link_target(link: "re.Match[str]") -> str:
    path = _PAGE_PATH.fullmatch(link[2])
    return path[1] if path else link[1]


def candidate_names(text: str) -> set[str]:
    """Return folded candidates for names: runs of one to five capitalized words, and slugs in links."""
    found = set()
    for line in text.split("\n"):
        for match in _NAME.finditer(strip_emphasis(line)):
            words = match[0].split()[:20]
            for first in range(len(words)):
                found |= {
                    fold_name(" ".join(words[first:last]))
                    for last in range(first + 1, min(first + 5, len(words)) + 1)
                }
    return found


def _is_in_quotation(head: str) -> bool:
    return head.count('"') % 2 == 1 or head.count("“") > head.count("”") or head.count("«") > head.count("»")


def verb_subjects(sentence: Sentence, place: int, reader: PageOwner) -> list[str]:
    """Return the subjects of the verb at an offset: OWNER or folded names; an empty list if the subject is
    unclear."""
    head = _without_filler_end(_without_times(sentence.text[:place]).rstrip(" ,")).strip()
    pair = re.fullmatch(rf"({_pattern_source(_NAME)})\s+and\s+({_pattern_source(_NAME)})", head)
    if pair:
        return [_subject_key(each, reader) for each in (pair[1], pair[2])]
    cuts = list(_BOUNDARY.finditer(sentence.text, 0, place))
    last = cuts[-1] if cuts else None
    clause = sentence.text[last.end() if last else 0 : place].strip()
    clause = _without_filler_end(_without_times(clause)).strip(" ,")
    if clause:
        return _clause_subjects(clause, sentence, place, reader)
    if last and last[0].lower() == "who":
        return _antecedent(sentence.text[: last.start()].rstrip(" ,"), reader)
    return _leading_subjects(sentence, reader) if head else [OWNER]


def _clause_subjects(clause: str, sentence: Sentence, place: int, reader: PageOwner) -> list[str]:
    if _PRONOUN.match(clause):
        behind = fold_name(sentence.text[place:])
        heard = _proper_names(sentence.text[: place - len(clause) - 1])
        if any(not _is_owner(each, reader) and fold_name(each) not in behind for each in heard):
            return []
        return _pronoun_subjects(sentence, reader)
    name = _NAME.match(clause)
    if not name or name[0].endswith(("'s", "’s", "s'")):
        return [OWNER] if _ROLE.match(clause) and not name else []
    if name.end() == len(clause):
        return [_subject_key(name[0], reader)]
    rest = clause[name.end() :]
    return [OWNER] if _is_owner(name[0], reader) and _QUALIFIED.match(rest) else []


def _pronoun_subjects(sentence: Sentence, reader: PageOwner) -> list[str]:
    """Return what a pronoun refers to: the subject of a preceding sentence, unless the last one mentions another
    person."""
    for number, earlier in enumerate(reversed(sentence.before)):
        met = [match[1] for match in _OTHER_PERSON.finditer(earlier)]
        if number == 0 and any(not _is_owner(each, reader) for each in met):
            return []
        lead = _lead_name(earlier)
        if lead and not _PRONOUN.fullmatch(lead):
            return [_subject_key(lead, reader)]
    return [OWNER] if reader.is_person else []


def _antecedent(head: str, reader: PageOwner) -> list[str]:
    found = re.search(rf"({_pattern_source(_NAME)})\Z", head)
    return [_subject_key(found[1], reader)] if found else []


def _leading_subjects(sentence: Sentence, reader: PageOwner) -> list[str]:
    """Return the subject of a sentence for a later verb that has no subject."""
    lead = _lead_name(sentence.text)
    if lead is None:
        return []
    if _PRONOUN.fullmatch(lead):
        return _clause_subjects(lead, Sentence(lead, 1, sentence.before), len(lead), reader)
    return [_subject_key(lead, reader)] if lead else [OWNER]


def _lead_name(text: str) -> str | None:
    """Return the name or pronoun at the start of a sentence; "" if the subject is omitted, None if it is something
    else."""
    text = _without_times(text.strip())
    first = text.split(" ", 1)[0].strip(",")
    if _PRONOUN.fullmatch(first):
        return first
    name = _NAME.match(text)
    if name and not _ROLE.match(text) and not _AFTER_ROLE.match(text, name.end()):
        return None if name[0].endswith(("'s", "’s")) or name[0].lower() in _NOT_NAMES else name[0]
    return "" if name or _ROLE.match(text) else None


_NOT_NAMES = {
    "her",
    "his",
    "their",
    "my",
    "our",
    "your",
    "the",
    "a",
    "an",
    "i",
    "we",
    "you",
    "it",
    "its",
    "this",
    "that",
}
_NOT_NAMES |= {
    "these",
    "those",
    "both",
    "all",
    "everyone",
    "nobody",
    "somebody",
    "someone",
    "half",
    "several",
    "many",
}


def _proper_names(text: str) -> list[str]:
    """Return the names in a text, without words that are capitalized only because they start a sentence."""
    found = []
    for match in _NAME.finditer(text):
        words = [word for word in match[0].split() if word.lower() not in _NOT_NAME_WORDS]
        if words and not _ROLE.match(words[0]):
            found.append(" ".join(words))
    return found


_NOT_NAME_WORDS = _NOT_NAMES | set(
    "in on after before when while since he she they then later by at early late mid until from during january"
    " february march april may june july august september october november december monday tuesday wednesday"
    " thursday friday saturday sunday".split()
)


def _subject_key(name: str, reader: PageOwner) -> str:
    return OWNER if _is_owner(name, reader) else fold_name(name) or "?"


def _is_owner(name: str, reader: PageOwner) -> bool:
    return fold_name(name) in reader.names


def _without_times(text: str) -> str:
    while True:
        shorter = _LEADING_TIME.sub("", text, count=1)
        if shorter == text:
            return text
        text = shorter.lstrip(" ,")


def _without_filler_end(text: str) -> str:
    """Remove auxiliary verbs and adverbs from the end: "Bo has since" becomes "Bo"."""
    while (words := text.rsplit(None, 1)) and words[-1].lower() in _FILLER_WORDS:
        text = words[0] if len(words) == 2 else ""
    return text


def _pattern_source(waiting: "re.Pattern[str]") -> str:
    return waiting.pattern


POST = (
    r"(?:acting |interim |deputy |co-)?(?:ceo|cto|cfo|coo|cmo|chief \w+(?: officer)?|chair(?:man|woman|person)?"
    r"|president|managing director|head(?: of \w+)?|vp(?: of \w+)?|vice president|board (?:member|director)"
    r"|director|manager|engineer)(?:\s+and\s+[\w-]+)?"
)
WHOSE = r"(?:his|her|their|the|its|an?)"

# A verb must be followed by something specific: a name, a link, a post or a time.
_THEN = (
    r"(?=(?-i:[^\W\d_a-z])|[\[*_\d\"“]|[\w-]+/"
    r"|(?:the|his|her|their|its|an?|in|on|as|early|late|mid|at the end|from|last)\b)"
)
_A_POST = rf"(?=(?:{WHOSE}\s+)?{POST}\s+(?:of|at)\s)"
_AT = r"(?:(?:worked|employed|an?\s+[\w-]+|[\w-]+)\s+)?(?:at|with"
_PEOPLE = r"(?:engineer|employee|executive|manager|designer|ceo|cto|cfo|researcher|staffer)"
_NOT_NOW = r"\s+(?:at|for|with)\s+(?=[^.]{0,300}\bany\s?(?:more|longer)\b)"
_STAKE = r"(?:(?:all\s+|off\s+)?(?:his|her|their|its|the)\s+(?:\w+\s+)?(?:stake|shares?|interest)s?\s+in\s+)?"

_EVENTS: tuple[tuple[str, str, str], ...] = (
    ("left", r"left\s+(?!an?\s)" + _THEN, "work"),
    ("leav", r"leav(?:es|ing)\s+" + _THEN, "work"),
    ("quit", r"quit(?:s|ting)?\s+" + _THEN, "work"),
    ("depart", r"depart(?:ed|s|ing)\s+(?:from\s+)?" + _THEN, "work"),
    ("exited", r"exited\s+" + _THEN, "work"),
    ("resign", r"resign(?:ed|s|ing)\s+(?:from\s+|(?=as\s|in\s|on\s))", "work"),
    ("retired", r"retired\s+(?:from\s+|(?=as\s))", "work"),
    ("fired", r"fired\s+(?:from|by)\s+", "work"),
    ("sacked", r"sacked\s+(?:from|by)\s+", "work"),
    ("dismissed", r"dismissed\s+(?:from|by)\s+", "work"),
    ("let go", r"let go\s+(?:from|by)\s+", "work"),
    ("laid off", r"laid off\s+(?:from|by|at)\s+", "work"),
    ("redundant", r"redundant\s+(?:at|by|from)\s+", "work"),
    ("parted ways", r"parted ways with\s+", "work"),
    ("stopped working", r"stopped working\s+(?:at|for|with)\s+", "work"),
    ("finished at", r"finished at\s+", "work"),
    ("last day at", r"last day at\s+", "work"),
    ("stepped down", r"stepped down\s+(?:from\s+|(?=as\s|in\s|on\s))", "work"),
    ("stood down", r"stood down\s+(?:from\s+|(?=as\s|in\s|on\s))", "work"),
    ("moved", r"moved\s+(?:on from|(?:away\s+|out\s+)?(?:from|of))\s+", "move"),
    ("relocated", r"relocated\s+from\s+", "move"),
    ("divorced", r"divorced\s+(?:from\s+)?" + _THEN, "marriage"),
    ("separated from", r"separated from\s+", "marriage"),
    ("sold", r"sold\s+(?!to\b)" + _STAKE + _THEN, "property"),
    ("acquired by", r"acquired by\s+", "parent"),
    ("bought by", r"bought by\s+", "parent"),
    ("sold to", r"sold to\s+", "parent"),
    ("dropped out of", r"dropped out of\s+", "study"),
    ("graduated from", r"graduated from\s+", "study"),
    ("until", r"until\s+(?=[^.\n]{0,30}\b(?:19|20)\d\d)", "until"),
    (" to 20", r" to (?=20\d\d\b(?!-))", "until"),
    ("–20", r"–(?=20\d\d\b(?!-))", "until"),
)
_STATES: tuple[tuple[str, str, str], ...] = (
    ("no longer", r"no longer\s+(?:is\s+)?(?:liv(?:es?|ing)\s+)in\s+", "home"),
    ("no longer", r"no longer\s+married\s+to\s+", "marriage"),
    ("no longer", r"no longer\s+owns?\s+", "property"),
    (
        "no longer",
        r"no longer\s+(?:(?:sits?|serves?|serving|sitting)\s+)?on\s+(?=the\s+(?:\w+ )?board\s)",
        "work",
    ),
    ("no longer", r"no longer\s+(?:serves?\s+as\s+)?" + _A_POST, "work"),
    (
        "no longer",
        r"no longer\s+(?:works?|working|employed|active|involved|part|a part|a member|an employee|on staff"
        r"|on the team)?\s*(?:at|with|for|by|of)\s+",
        "work",
    ),
    ("n't work", "n't work" + _NOT_NOW, "work"),
    ("not work", "not work" + _NOT_NOW, "work"),
    ("used to", r"used to\s+(?:work|be|serve)\s+(?:at|for|with)\s+", "work"),
    ("used to", r"used to\s+live\s+in\s+", "home"),
    ("used to", r"used to\s+be\s+" + _A_POST, "work"),
    ("former", r"former(?:ly)?\s+" + _A_POST, "work"),
    ("former", r"former(?:ly)?\s+" + _AT + r"|of)\s+", "work"),
    ("former", rf"former\s+(?=(?-i:[A-Z])[\w-]*(?:\s(?-i:[A-Z])[\w-]*)?\s+{_PEOPLE}\b)", "noun"),
    ("former", r"formerly\s+(?=(?-i:[A-Z]))", "renamed"),
    ("previously", r"previously\s+" + _AT + r")\s+", "work"),
    ("ex-", r"ex-(?=(?-i:[A-Z]))", "noun"),
)

DEPARTURE_PHRASES: dict[str, list[tuple["re.Pattern[str]", str, bool]]] = {}
"""Maps a word to patterns, of which the first match counts, each with its scope and whether it describes an event."""
for _table, _is_event in ((_EVENTS, True), (_STATES, False)):
    for _word, _regex, _scope in _table:
        DEPARTURE_PHRASES.setdefault(_word, []).append((re.compile(_regex, re.IGNORECASE), _scope, _is_event))

HEDGED = re.compile(
    r"\b(?:not|never|nobody|may|might|could|would|should|will|plans?|planning|planned|wants?|wanted|wanting|hopes?"
    r"|hoped|intends?|intended|consider(?:s|ed|ing)|thinking|about to|going to|almost|nearly|if|unless|whether"
    r"|rumou?r\w*|reportedly|allegedly|supposedly|apparently|denie[sd]|denying|threaten\w*|expected|expects|likely"
    r"|probably|perhaps|maybe|possibly|wonder\w*|refuse[sd]|imagin\w*|suppose|instead of|rather than|without|false"
    r"|untrue|contrary|(?:want|ask(?:s|ed)?|offer(?:s|ed)?|decides?|due|set|scheduled|ready) to|cannot|can)\b"
    r"|n['’]t\b|['’]ll\b",
    re.IGNORECASE,
)
"""Before the match: the statement is negated, planned, feared or a rumour."""
DOUBTED = re.compile(
    r"which (?:is|was|turned out to be) (?:wrong|false|untrue|denied|a mistake)|unconfirmed|not true"
    r"|turned out (?:to be )?(?:false|wrong|untrue)|\(\?\)|never happened"
    r"|but (?:stayed|changed (?:his|her|their) mind)|allegedly|reportedly|rumou?r"
    r"|(?:he|she|they) (?:was|were|is|are) not\b",
    re.IGNORECASE,
)
"""After the match: the statement is retracted or doubted."""
REPORTED = re.compile(
    r"\b(?:said|says|saying|told|tells|claim(?:s|ed)?|thinks|thought|believe[sd]?|heard|according to|guess\w*"
    r"|mention(?:s|ed)|writes|wrote|announce[sd]|confirm(?:s|ed)|learned|noted|notes|reports?|reported|dream\w*"
    r"|joke[sd]?|fear(?:s|ed))\b",
    re.IGNORECASE,
)
"""Before the match: reported speech. It is skipped unless the page's own person reports it with a verb of
TRUSTED_REPORT."""
TRUSTED_REPORT = re.compile(
    r"(?:said|says|told|mention(?:s|ed)|writes|wrote|announce[sd]|confirm(?:s|ed))\Z", re.IGNORECASE
)
RETURNED = re.compile(
    r"\bre-?join(?:ed|s|ing)\b|\breturn(?:ed|s|ing)\b(?!\s+(?:a|the|his|her) (?:call|email|favou?r))"
    r"|\b(?:came|come|went|is|was)\s+back\b|\bback (?:at|with|in)\b|\bre-?hired\b|\bremarried\b"
    r"|\bstill (?:works?|at|on|lives?|there)\b",
    re.IGNORECASE,
)
"""The relation resumed or continues."""

MOST_MATCHES = 500
"""Maximum matches that are examined in one text."""

IMPLIED_OBJECT = "@"
"""As an object: the page itself, or the only place that the subject can have left."""

_BOARD = re.compile(
    rf"(?:{WHOSE}\s+)?(?:seat on\s+the\s+)?(?:\w+ )?board(?: of directors)?\s+(?:of|at)\s+", re.IGNORECASE
)
_BOARD_BEHIND = re.compile(r"[^.,;'’]{1,60}['’]s\s+(?:\w+\s+)?board\b", re.IGNORECASE)
_OF_POST = re.compile(
    rf"(?:{WHOSE}\s+)?(?:(?:role|post|position|job)\s+)?(?:as\s+)?(?:{WHOSE}\s+)?(?P<post>{POST})"
    r"(?:\s+(?:role|post|position|job))?(?:\s+(?:of|at|for|with)\s+|(?=\s+(?:in|on)\s|\s*[.,]|\s*\Z))",
    re.IGNORECASE,
)
_OF_JOB = re.compile(
    rf"{WHOSE}\s+(?:\w+\s+)?(?:role|post|position|job|team|staff|career|time|stint|tenure)\s+(?:at|with|of|in)\s+",
    re.IGNORECASE,
)
_OF_COMPANY = re.compile(
    r"the\s+(?:company|firm|startup|start-up|business|team|organi[sz]ation|bank|university|school|lab|agency|studio"
    r"|charity|foundation)\b",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"(?:in|on|at the end of|by|around|early|late|mid|last|this|again)\b|\d|\s*\Z|[.,;)]", re.IGNORECASE
)
_PLACE_BEFORE = re.compile(r"\b(?:joined|at|with|for|of|in|rejoined)\s+(?=[A-Z\[]|[\w-]+/[\w-])")

_CHIEFS = {
    "executive": "ceo",
    "technology": "cto",
    "technical": "cto",
    "financial": "cfo",
    "operating": "coo",
}
_CHIEFS |= {"marketing": "cmo", "product": "cpo"}

_PREPOSITION = re.compile(r"(?:after|since|upon|on|before|following)\s+\Z", re.IGNORECASE)


class Departure(NamedTuple):
    """A statement in a text that a relation ended."""

    subject: str
    """OWNER or a folded name."""
    scope: str
    """The kind of relation that ended: work, post, board, home, move, marriage, property, parent or study."""
    post: str
    """The post, if only that ended."""
    object: str
    """The text from the object on, or IMPLIED_OBJECT."""
    first: str
    last: str
    """First and last day on which it can have happened; "" if the text gives no date."""
    is_event: bool
    line: int
    quote: str


def find_departures(text: str, reader: PageOwner, first_line: int = 1, day: str = "") -> list[Departure]:
    """Return the departures in a text. `day` is the date of the text, if known, as for a timeline entry."""
    matches = _phrase_matches(text)
    if not matches:
        return []
    text = blank_out_code(text)
    found: list[Departure] = []
    block = None
    for place, match, scope, is_event in matches:
        if text[place].isspace() and not match[0][0].isspace():
            continue  # it is in code
        if block is None or not block.start <= place < block.end:
            block = block_at(text, place)
        around = sentence_at(text, place, first_line, block)
        if around:
            found += _read_match(*around, match, scope, is_event, reader, day)
    return found


def may_mention_departure(text: str) -> bool:
    """Return True if the text contains one of the words in DEPARTURE_PHRASES. A cheap test before
    find_departures()."""
    low = text.lower()
    return any(word in low for word in DEPARTURE_PHRASES)


def _phrase_matches(text: str) -> list[tuple[int, "re.Match[str]", str, bool]]:
    """Return the matches of DEPARTURE_PHRASES in text order; at each offset only the first matching pattern
    counts."""
    low = text.lower()
    if len(low) != len(text):  # lower() can make a letter longer, which would shift the offsets
        low = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    found: dict[int, tuple[int, re.Match[str], str, bool]] = {}
    for word, patterns in DEPARTURE_PHRASES.items():
        place = low.find(word)
        while place >= 0:
            inside = place > 0 and word[0].isalpha() and word != "n't work" and low[place - 1].isalnum()
            for wanted, scope, is_event in () if inside else patterns:
                match = wanted.match(text, place)
                if match:
                    found.setdefault(place, (place, match, scope, is_event))
                    break
            place = low.find(word, place + 1)
    return sorted(found.values(), key=lambda each: each[0])[:MOST_MATCHES]


def _read_match(
    sentence: Sentence,
    place: int,
    match: "re.Match[str]",
    scope: str,
    is_event: bool,
    reader: PageOwner,
    day: str,
) -> Iterator[Departure]:
    verb = re.sub(r"\s", " ", match[0])
    head, tail = sentence.text[:place], sentence.text[place + len(verb.rstrip()) :].lstrip()
    if _is_doubtful(sentence, head, tail, reader):
        return
    if scope == "until":
        yield from _until_departures(sentence, place, head, tail, reader)
        return
    if scope == "renamed":
        joined = re.search(r"\b(joined)\s+[^()]{1,60}\(\Z", head)
        if not joined:
            return
        place, scope = joined.start(), "work"
    if _is_gerund(verb) and not _PREPOSITION.search(head):
        return
    start = place - len(_after_word(head)) if _is_gerund(verb) else place
    if verb.lower().startswith("last day"):
        sentence, start = _with_owner(sentence, place)
    scope, post, obj = _departure_object(scope, head, tail)
    first, last = _departure_dates(head, tail, day if is_event or day else "")
    if verb.lower().startswith(("leaves", "departs", "resigns")) and not first:
        return
    for subject in _departing_subjects(sentence, start, reader, _is_gerund(verb)):
        yield Departure(subject, scope, post, obj, first, last, is_event, sentence.line, sentence.text)


def _with_owner(sentence: Sentence, place: int) -> tuple[Sentence, int]:
    """Replace a possessive with a subject: "her last day" becomes "she last day", so that the subject can be
    found."""
    head = re.sub(r"\b(?:his|her|their)\s*\Z", "she ", sentence.text[:place], flags=re.I)
    head = re.sub(r"['’]s\s*\Z", " ", head)
    return sentence._replace(text=head + sentence.text[place:]), len(head)


def _is_gerund(verb: str) -> bool:
    return verb.split()[0].lower().endswith("ing")


def _after_word(head: str) -> str:
    found = _PREPOSITION.search(head)
    return found[0] if found else ""


def _departing_subjects(sentence: Sentence, place: int, reader: PageOwner, gerund: bool) -> list[str]:
    """Return the subjects of a departure; in "After leaving X, Bea joined" the subject follows the comma."""
    if gerund and not sentence.text[:place].strip():
        comma = sentence.text.find(",", place)
        rest = sentence.text[comma + 1 :].strip() if comma >= 0 else ""
        following = re.match(r"(.*?)\s(?=[a-z]+(?:ed|s|ew|an|ok|nt|lt|de|ld)\b)", rest) if rest else None
        if following:
            return verb_subjects(
                Sentence(following[1] + " ", 1, sentence.before), len(following[1]) + 1, reader
            )
    return verb_subjects(sentence, place, reader)


def _is_doubtful(sentence: Sentence, head: str, tail: str, reader: PageOwner) -> bool:
    clause = re.split(r"\bbut\b|;", head)[-1]
    negated = re.sub(r"\bnot only\b", "", clause)
    if sentence.text.rstrip(" )\"'”").endswith("?") or HEDGED.search(negated) or DOUBTED.search(tail):
        return True
    if RETURNED.search(tail) and not re.search(r"\b(?:not|never)\b", tail):
        return True
    told = list(REPORTED.finditer(head))
    if told:
        speaker = verb_subjects(sentence, told[-1].start(), reader)
        return not (TRUSTED_REPORT.match(told[-1][0]) and speaker == [""] and reader.is_person)
    return False


def _departure_object(scope: str, head: str, tail: str) -> tuple[str, str, str]:
    """Return the scope of the departure, the post, and the text that names the other side."""
    if scope == "noun":
        return "work", "", tail
    if scope == "work":
        board, of_post = _BOARD.match(tail), _OF_POST.match(tail)
        if board:
            return "board", "", tail[board.end() :]
        if of_post:
            rest = tail[of_post.end() :]
            post = normalize_post(of_post["post"])
            return (
                ("board" if post == "board" else "post"),
                post,
                rest if _names_something(rest) else IMPLIED_OBJECT,
            )
        if _BOARD_BEHIND.match(tail):
            return "board", "", tail
        job = _OF_JOB.match(tail)
        tail = tail[job.end() :] if job else tail
    if _OF_COMPANY.match(tail):
        return scope, "", IMPLIED_OBJECT
    if _NO_OBJECT.match(tail) and scope != "parent":
        places = list(_PLACE_BEFORE.finditer(head))
        return scope, "", head[places[-1].end() :] if places else IMPLIED_OBJECT
    return scope, "", tail


def _names_something(rest: str) -> bool:
    return bool(rest) and not _NO_OBJECT.match(rest.lstrip())


def _until_departures(
    sentence: Sentence, place: int, head: str, tail: str, reader: PageOwner
) -> Iterator[Departure]:
    """Yield departures from end dates, as in "was at Tarn until March 2025" or "Tarn (2019–2025)".

    The object usually precedes the date.
    """
    told = find_dates(tail[:40])
    if not told or (
        told[0].start > 1
        and not re.match(r"(?:the )?(?:end|start|beginning|middle) of |about |around ", tail)
    ):
        return
    before = list(_PLACE_BEFORE.finditer(head))
    if head.strip() and not before:
        return
    obj = head[before[-1].end() :] if before else ""
    if not before:  # "Until March 2025 she was at Tarn"
        behind = _PLACE_BEFORE.search(tail)
        if not behind:
            return
        obj = tail[behind.end() :]
    said = sentence.text[: place if before else len(sentence.text)]
    scope = "home" if re.search(r"\b(?:liv\w+|resid\w+)\s+in\b", said, re.I) else "work"
    post = ""
    named = re.search(
        rf"\b(?P<post>{POST})\s+(?:of|at)\s+\Z", head[: before[-1].end()] if before else "", re.I
    )
    if named and normalize_post(named["post"]) == "ceo":
        scope, post = "post", "ceo"
    verb = re.search(
        r"\b(?:was|were|worked|been|served|led|ran|lived|studied|had|stayed|is|works?)\b", said, re.I
    )
    where = verb.start() if verb else 0
    who = verb_subjects(sentence, where, reader) if verb and where else [""] if reader.is_person else []
    for subject in who:
        yield Departure(
            subject, scope, post, obj, told[0].first, told[0].last, True, sentence.line, sentence.text
        )


def _departure_dates(head: str, tail: str, day: str) -> tuple[str, str]:
    """Return first and last day of a departure: the first date after the verb, else the last one before it, else
    `day`."""
    told = find_dates(tail) or find_dates(head)[-1:]
    return (told[0].first, told[0].last) if told else (day, day)


def normalize_post(words: str) -> str:
    """Return the post that the words name, in the form that predicates use: ceo, head, board."""
    folded = fold_name(words).split(" and ")[0]
    for short in ("acting ", "interim ", "deputy ", "co "):
        folded = folded.removeprefix(short)
    parts = folded.split()
    if parts[0] == "chief":
        return _CHIEFS.get(parts[1], parts[1])
    if parts[0].startswith("chair"):
        return "chair"
    return {"vice": "vp", "managing": "ceo"}.get(parts[0], parts[0])


def comebacks(text: str) -> list[str]:
    """Return the sentences that say that a person returned or is still there."""
    found = []
    for match in RETURNED.finditer(text) if re.search(r"\b(?:re-?|back|return|still)", text, re.I) else ():
        around = sentence_at(text, match.start())
        if around and not re.search(r"\b(?:not|never|n't)\b", around[0].text):
            found.append(around[0].text)
    return found

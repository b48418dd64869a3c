"""The words by which a text says that something is over, as data.

Each entry: the word that must stand there, the pattern of what belongs to it, what is over then, and whether that
happened on a day (left) or is a state (no longer at).
"""

import re

POST = (
    r"(?:acting |interim |deputy |co-)?(?:ceo|cto|cfo|coo|cmo|chief \w+(?: officer)?|chair(?:man|woman|person)?"
    r"|president|managing director|head(?: of \w+)?|vp(?: of \w+)?|vice president|board (?:member|director)"
    r"|director|manager|engineer)(?:\s+and\s+[\w-]+)?"
)
WHOSE = r"(?:his|her|their|the|its|an?)"

# Behind a verb something must be named: a name, a link, a post, a time.
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

WORDS: dict[str, list[tuple["re.Pattern[str]", str, bool]]] = {}
"""By the word: patterns, the first that fits counts; what is over; whether it is an event."""
for _table, _is_event in ((_EVENTS, True), (_STATES, False)):
    for _word, _source, _scope in _table:
        WORDS.setdefault(_word, []).append((re.compile(_source, re.IGNORECASE), _scope, _is_event))

HEDGED = re.compile(
    r"\b(?:not|never|nobody|may|might|could|would|should|will|plans?|planning|planned|wants?|wanted|wanting|hopes?"
    r"|hoped|intends?|intended|consider(?:s|ed|ing)|thinking|about to|going to|almost|nearly|if|unless|whether"
    r"|rumou?r\w*|reportedly|allegedly|supposedly|apparently|denie[sd]|denying|threaten\w*|expected|expects|likely"
    r"|probably|perhaps|maybe|possibly|wonder\w*|refuse[sd]|imagin\w*|suppose|instead of|rather than|without|false"
    r"|untrue|contrary|(?:want|ask(?:s|ed)?|offer(?:s|ed)?|decides?|due|set|scheduled|ready) to|cannot|can)\b"
    r"|n['’]t\b|['’]ll\b",
    re.IGNORECASE,
)
"""Before the words: it was not so, or only planned, feared or said by nobody in particular."""
DOUBTED = re.compile(
    r"which (?:is|was|turned out to be) (?:wrong|false|untrue|denied|a mistake)|unconfirmed|not true"
    r"|turned out (?:to be )?(?:false|wrong|untrue)|\(\?\)|never happened"
    r"|but (?:stayed|changed (?:his|her|their) mind)|allegedly|reportedly|rumou?r"
    r"|(?:he|she|they) (?:was|were|is|are) not\b",
    re.IGNORECASE,
)
"""Behind them: it is taken back."""
TOLD = re.compile(
    r"\b(?:said|says|saying|told|tells|claim(?:s|ed)?|thinks|thought|believe[sd]?|heard|according to|guess\w*"
    r"|mention(?:s|ed)|writes|wrote|announce[sd]|confirm(?:s|ed)|learned|noted|notes|reports?|reported|dream\w*"
    r"|joke[sd]?|fear(?:s|ed))\b",
    re.IGNORECASE,
)
"""Somebody else's words, unless it is the person's own and one of these:"""
TRUSTED = re.compile(
    r"(?:said|says|told|mention(?:s|ed)|writes|wrote|announce[sd]|confirm(?:s|ed))\Z", re.IGNORECASE
)
BACK = re.compile(
    r"\bre-?join(?:ed|s|ing)\b|\breturn(?:ed|s|ing)\b(?!\s+(?:a|the|his|her) (?:call|email|favou?r))"
    r"|\b(?:came|come|went|is|was)\s+back\b|\bback (?:at|with|in)\b|\bre-?hired\b|\bremarried\b"
    r"|\bstill (?:works?|at|on|lives?|there)\b",
    re.IGNORECASE,
)
"""It began again."""

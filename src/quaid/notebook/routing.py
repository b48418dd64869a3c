"""Where a thing to remember belongs, told from its words.

The rules are data: each names a kind, what it counts, and what it looks for; the kind with most points wins, and what
nothing speaks for is a fact. Also knows how a sentence falls into the lines that are written: lead-ins go, and a
shopping sentence becomes its items. Does not know the notebook's files beyond their names.

`python -m bench notebook` measures the rules on labelled sentences.
"""

# ruff: noqa: E501 (a rule is one line)

from quaid.core.patterns import pattern
from quaid.records import NamedTuple

I = 2  # noqa: E741 (re.IGNORECASE, whose import would be for this alone)


class Kind(NamedTuple):
    """A kind of thing with its file, the section it goes to, and whether it is something to be done."""

    name: str
    path: str
    section: str
    box: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("contacts", "reference/contacts.md", "Contacts"),
        Kind("preferences", "reference/preferences.md", "Preferences"),
        Kind("standing-orders", "reference/standing-orders.md", "Standing Orders"),
        Kind("todos", "lists/todos.md", "To Do", box=True),
        Kind("shopping", "lists/shopping.md", "Shopping List"),
        Kind("facts", "knowledge/facts.md", "Facts"),
        Kind("patterns", "knowledge/patterns.md", "Patterns"),
    )
}

_LETTERS = [chr(code) for code in range(0x41, 0x530)]
_BIG = "".join(each for each in _LETTERS if each.isupper())
_SMALL = "".join(each for each in _LETTERS if each.islower())
_NAME = (
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr|Aunt|Uncle|Grandma|Grandpa)\.? )?"
    rf"[{_BIG}](?:[\w’'-]{{0,40}}[{_SMALL}])(?: [{_BIG}][\w’'-]{{1,40}}){{0,4}}"
)
_KIN = r"(?:wife|husband|partner|brother|sister|son|daughter|mother|father|mum|mom|dad|aunt|uncle|cousin|boss|assistant)"
_JOB = (
    r"(?:dentist|doctor|gp|plumber|electrician|landlord|landlady|accountant|lawyer|vet|hairdresser|neighbou?r|"
    r"therapist|teacher|nurse|manager|engineer|developer|designer|cto|ceo|cfo|rep|agent|contact|colleague|founder)"
)
_DO = (
    r"(?:call|phone|ring|pay|renew|book|reserve|send|mail|email|text|message|schedule|arrange|plan|write|draft|follow up|"
    r"return|submit|file|ask|tell|review|read|check|prepare|pick up|drop off|collect|cancel|look into|look up|find|print|"
    r"get back|make|finish|complete|sign up|sign|register|fix|repair|clean|wash|water|feed|reply|respond|answer|update|"
    r"upload|download|install|set up|organi[sz]e|research|visit|meet|talk to|speak to|bring|take|move|sell|invite|confirm|"
    r"replace|back up|order|apply|contact|remove|delete|test|deploy|pack|paint|mow|transfer|apologi[sz]e|thank|archive|"
    r"put|notify|keep|decline|use|add|sort|run|start|stop|show|give|let|open|close|save|commit|push)"
)
_SUBJECT = rf"(?:i|i[’']m|we|we[’']re|he|she|they|you|it|the|my|our|his|her|their|{_KIN})"

# What a bare list of things to buy is made of: words in small letters, and none that makes a sentence.
_GOODS = rf"[0-9{_SMALL}][\w-]*(?: [0-9{_SMALL}][\w-]*){{0,2}}"
_GOOD = rf"[\w-]+(?: [0-9{_SMALL}][\w-]*){{0,2}}"
_NO_GOODS = (
    "is|are|was|were|be|i|we|you|he|she|they|it|me|us|him|her|them|the|to|no|not|never|always|only|can|will|must|should|"
    "january|february|march|april|may|june|july|august|september|october|november|december"
)

RULES: tuple[tuple[str, float, str, int], ...] = (
    # People and how to reach them
    ("contacts", 3, r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[a-z]{2,}", I),
    ("contacts", 3, r"(?<![\w-])(?:\+|\(|0)\d[\d ()/.-]{5,}\d|(?<![\w-])\d{3}-\d{3,4}(?:-\d{3,4})?(?![\w-])", I),
    ("contacts", 2, r"\b(?:phone|mobile|cell|tel|telephone|fax)(?: number)?\b|\bext(?:ension)?\.? \d|\bhandle\b", I),
    ("contacts", 3, rf"\b{_NAME}[’']s (?:{_KIN}|birthday|e-?mail|address|number|name|handle|mobile|phone|cell)\b", 0),
    ("contacts", 2.5, r"\b(?:birthday|was born|home address|email address|lives (?:at|in|on|near)|moved to)\b", I),
    ("contacts", 2, rf"^(?:[Tt]he |[Mm]y |[Oo]ur )?(?:new )?(?i:{_JOB}|{_KIN})(?: \w+){{0,3}}(?: is|:)(?: called| named)? {_NAME}", 0),
    ("contacts", 2.5, rf"^{_NAME}(?: \w+)? (?:works (?:at|for|as|in)|is (?:the|my|our|a|an)(?: new)?(?: \w+)? ?(?i:{_JOB})|is {_NAME}[’']s)\b", 0),
    ("contacts", 2, r"\b(?:can be reached|reach \w+ (?:on|at|by)|(?:my|our) \w+[’']s name is|is called [A-Z])", I),
    ("contacts", 1, r"\b(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr)\b", 0),
    ("contacts", 2, r"^(?:emergency )?contact\b", I),
    # What somebody likes
    ("preferences", 3, r"\b(?:prefer(?:s|red|ence)?|favou?rite|allergic|intolerant|vegetarian|vegan|dislikes?|hates?|loves?|enjoys?)\b", I),
    ("preferences", 3, r"\b(?:can[’']?t|cannot|can not) stand\b|\bnot (?:a|much of a) (?:big )?fan\b|\b(?:d|would) rather\b|\b(?:don[’']t|do not|doesn[’']t|does not) (?:eat|drink)\b", I),
    ("preferences", 3, r"^no \w+(?: \w+)?, no \w+", I),
    ("preferences", 2.5, rf"^(?:i|we|{_KIN}|[a-z]+) (?:really |don[’']t |do not |doesn[’']t )?likes?\b", I),
    ("preferences", 2, r"^i (?:want|drink|eat|wear|take|use)\b", I),
    ("preferences", 2.5, r"\bplease,? when(?:ever)?\b|\bshoe size\b", I),
    # What shall be done every time
    ("standing-orders", 4, r"^(?:please )?(?:always|never|only)\b", I),
    ("standing-orders", 4, r"^(?:please )?(?:don[’']t|do not) (?!forget|like|eat|drink)", I),
    ("standing-orders", 4, r"\b(?:from now on|going forward|from today|as a rule|in future|on my behalf|without asking|you must|make sure (?:you|to) (?:always|never))\b", I),
    ("standing-orders", 4, rf"^(?:if|when|whenever|every|each|before|after)\b[^,]*, (?:please )?(?:always |never )?{_DO}\b", I),
    ("standing-orders", 3, rf"^(?:if|when|whenever|every|each|before|after)\b[^,]*, (?!{_SUBJECT}\b)[a-z]+ (?:me|it|them|him|her|that|the|all)\b", I),
    ("standing-orders", 3, r"^(?:please )?ask me (?:before|first)|\bbefore you\b", I),
    ("standing-orders", 4, r"^(?:please )?(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? (?:only )?in\b", I),
    # What is to be done once
    ("todos", 5, r"^(?:[-*+] )?\[ ?\]|^to-?do\b", I),
    ("todos", 5.8, r"\b(?:remind me to|remember to|don[’']t forget|do not forget)\b", I),
    ("todos", 3.5, r"\b(?:need to|have to|has to|had better|must|should|ought to|gotta|got to)\b", I),
    ("todos", 3, rf"^(?:please )?{_DO}\b(?! is\b)", I),
    ("todos", 1.5, r"^(?:e-?mail|call|phone|text|message|ask|tell|write)\b.{0,80}\b(?:about|whether|to)\b", I),
    ("todos", 1, r"\b(?:by|until|before|on|this|next) (?:tomorrow|tonight|today|(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|weekend|month|winter|summer|the \d|end of)\b|\btomorrow\b", I),
    # What is to be bought
    ("shopping", 6, r"\b(?:buy|purchase)\b|\bshopping list\b|\bgrocer(?:y|ies)\b", I),
    ("shopping", 5, r"\b(?:out of|low on|no more) (?!office|town|reach|date|scope|\d)", I),
    ("shopping", 5, r"^(?:we |i )?need(?: more| some| new)?:? (?!to\b|help)(?!.{0,80}\bfor \w+ing\b)", I),
    ("shopping", 4, r"^order (?!of)", I),
    ("shopping", 6, r"\b(?:get|grab)\b(?: (?:some|more|a|an|new|\d+))* (?!(?:back|the|to|it|me|up|better|headaches?|my|our|rid|used|ready)\b)\w+(?: \w+)?(?:,| and | from|$)", I),
    ("shopping", 4, r"^pick up (?:(?:some|more|a|an|\d+) |\w+(?:,| and ))", I),
    ("shopping", 5, rf"^(?!.*\b(?i:{_NO_GOODS})\b){_GOOD}(?:(?:, ?|,? and ){_GOODS}){{2,}}$", 0),
    ("shopping", 5, rf"^(?!.*\b(?i:{_NO_GOODS})\b)[\w-]+, ?[{_SMALL}-]+$", 0),
    # What tends to happen
    ("patterns", 4, r"\b(?:usually|typically|mostly|often|rarely|seldom|generally|normally|frequently|habitually|regularly|tends? to|every time|most (?:weekends|days|mornings|evenings|weeks))\b", I),
    ("patterns", 4, r"^(?!please\b)[\w’']+(?: \w+){0,2} (?:always|never)\b", I),
    ("patterns", 3.5, rf"^(?:when(?:ever)?|every|each)\b[^,]*,? {_SUBJECT}\b", I),
    ("patterns", 3, r"\b(?:\w+ times|once|twice) (?:a|per) (?:day|week|month|year)\b|\b(?:every|each) (?:spring|summer|autumn|fall|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", I),
    ("patterns", 3, r"^(?:i|we|i[’']m|we[’']re)\b.*\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b|^on \w+days,? (?:i|we)\b", I),
    ("patterns", 3, rf"\b(?:when|whenever|if|after) (?:i|we|it)\b|\bwhenever\b(?=.*\b{_SUBJECT}\b)", I),
    # What is so
    ("facts", 2.2, r"^(?:the|our|my|this|that)\b(?!.*\b(?:favou?rite|prefer))[^,]*\b(?:is|are|was|were|has|have|uses|runs|takes|costs|ends|expires|starts|leaves|closes|opens|stands)\b", I),
    ("facts", 1.5, r"\b(?:password|code|version|deadline|budget|warranty|invoice|we decided|passport expires)\b", I),
    ("facts", 1, r"", I),
)  # fmt: skip

_COMPILED = tuple((kind, points, pattern(source, flags)) for kind, points, source, flags in RULES)

LEADS = pattern(
    r"^(?:(?:please|hey|ok(?:ay)?|so|also|fyi)[,:]?\s+)*"
    r"(?:(?:can you |could you )?(?:please )?(?:remember|note|save|keep in mind|don[’']t forget)(?: this)?(?::| that\b)\s*|fyi[:,]\s*)",
    I,
)
_TODO_LEADS = pattern(
    r"^(?:[-*+]\s+)?(?:\[ ?\]\s*)?(?:to-?do\s*[:-]\s*)?(?:(?:please\s+)?(?:remind me to|remember to|don[’']t forget to|"
    r"do not forget to|i (?:still |really )?(?:need|have) to|i must|add)\s+(?=.*\w)(?!.*\bto (?:my|the) (?:to-?do|list))|"
    r"add (?=.* to (?:my|the) to-?do list))?",
    I,
)
_TODO_TAIL = pattern(r"(?<!\s)\s+to (?:my|the|our) to-?do list$", I)
_SHOPPING_LEADS = pattern(
    r"^(?:please\s+)?(?:(?:remember|don[’']t forget|remind me|i need|i have|we need|we have|need|have|i must)\s+to\s+)?"
    r"(?:(?:buy|purchase|order|grab|pick up|get|add|put)(?: some| more)?\s+"
    r"|(?:shopping list|grocery list|groceries|shopping|need|to buy)\s*:\s*"
    r"|(?:we |i )?need(?: some| more)?\s+"
    r"|(?:we[’']re |we are |i[’']m |i am )?(?:(?:almost |nearly )?(?:out of|running (?:out of|low on))|low on|no more)\s+"
    r"|we (?:ran|have run|[’']ve run) out of\s+)",
    I,
)
_SHOPPING_TAIL = pattern(
    r"(?<!\s)\s+(?:(?:to|on|onto) (?:my|the|our) (?:shopping |grocery )?list(?: of groceries)?"
    r"|(?:from|at) the (?:supermarket|shops?|store|market|grocer)|on the way home)\s*$",
    I,
)
_PAIRS = pattern(
    r"\b(?:mac and cheese|salt and vinegar|salt and pepper|fish and chips|bread and butter|peanut butter and jelly|"
    r"sour cream and onion|gin and tonic|rum and raisin|cookies and cream|half and half|ham and cheese|cheese and onion|"
    r"oil and vinegar|black and white|surf and turf|bed and breakfast|nuts and bolts|sweet and sour)\b",
    I,
)
_BETWEEN = pattern(r",(?![0-9])\s*(?:and\s+)?|;|(?<=\s)and\s+|&|\n", I)
_NUMBERED = pattern(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]?\]\s*)?")
_PERSON = pattern(rf"\b{_NAME}")
_NO_PERSON = frozenset(
    """the my our your you new email emergency contact home reach phone mobile address birthday call remember i he she they
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december slack signal whatsapp""".split()
)


LONGEST_LIST = 2_000
"""Characters of a sentence that is taken apart into what is to be bought."""

TOLD_BY = 400
"""Characters of a text by which its kind is told: what is longer says it at its beginning, and costs no more."""


def route(content: str, among: tuple[str, ...] = ()) -> Kind:
    """The kind of a thing, of all or of these."""
    text = bare(content[: 2 * TOLD_BY]).split("\n", 1)[0][:TOLD_BY]
    points = dict.fromkeys(among or KINDS, 0.0)
    for kind, count, looked_for in _COMPILED:
        if kind in points and looked_for.search(text):
            points[kind] += count
    return KINDS[max(points, key=lambda kind: points[kind])]


def bare(content: str) -> str:
    """A text without the words that only ask to remember it."""
    text = content.strip()
    found = LEADS.match(text)
    rest = text[found.end() :].strip() if found else ""
    return rest or text


def lines(content: str, kind: Kind | None) -> list[str]:
    """What is written of a text: one line, or, of a list, its items."""
    text = bare(content)
    listed = [line for line in text.splitlines() if line.strip()]
    if len(listed) > 1 and all(_NUMBERED.match(line) for line in listed):
        return [_NUMBERED.sub("", line).strip() for line in listed]
    if kind is not None and kind.name == "shopping" and len(text) <= LONGEST_LIST:
        return _goods(text)
    text = _NUMBERED.sub("", text)
    if kind is not None and kind.name == "todos":
        text = _TODO_TAIL.sub("", text)
        found = _TODO_LEADS.match(text)
        rest = text[found.end() :] if found else text
        return [_capital(rest.strip() or text)]
    return [_capital(text) if text != content.strip() else text]


def _goods(text: str) -> list[str]:
    text = _SHOPPING_TAIL.sub("", text.strip().rstrip(".!"))
    found = _SHOPPING_LEADS.match(text)
    rest = text[found.end() :] if found else text
    rest = _SHOPPING_TAIL.sub("", rest)
    goods = [_NUMBERED.sub("", each.strip()).strip() for each in _BETWEEN.split(_together(rest))]
    if any(each.lower().split()[-1:] in _POINTING for each in goods):
        return [_capital(rest)]  # something to be done with what is bought: no item of its own
    return [_capital(each.replace(_TIE, " and ")) for each in goods if each] or [text]


_TIE = "\0"
_POINTING = (["it"], ["them"], ["him"], ["her"])


def _together(text: str) -> str:
    """The text with pairs that are one thing kept from being cut in two."""
    return _PAIRS.sub(lambda found: found[0].replace(" and ", _TIE), text)


def person(content: str) -> str:
    """The person that a text is about: the first that it names, or nothing."""
    for found in _PERSON.finditer(bare(content[: 2 * TOLD_BY])[:TOLD_BY]):
        words: list[str] = []
        for word in found[0].split():
            name = word.replace("’", "'").removesuffix("'s")
            if words or name.lower() not in _NO_PERSON:
                words.append(name)
            if words and name != word:
                break
        if words:
            return " ".join(words)
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[1:2].islower() or text[1:2] == " " else text

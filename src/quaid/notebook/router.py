"""Choose where a thing to remember belongs (kind, file, section) and add the lines that the file lacks.

The rules are data: each has a kind, points and a pattern. The kind with the most points wins; the default is a
fact. `python -m bench notebook` measures them on labelled sentences.
"""

import re
from typing import NamedTuple

from quaid.errors import InvalidArgument
from quaid.folders.page_writer import check_page_path
from quaid.formats import sections
from quaid.model import similarity, slug as slugs
from quaid.notebook.layout import DAILY, LISTS, NOTEBOOK_FOLDERS, RememberedLine

MAX_LIST_SENTENCE = 2_000
"""Maximum length of a sentence that is searched for a list name, in characters."""

_WHOSE = r"(?:my|the|our|a|an|his|her|their|this|that|your|[\w-]+[’']s)"
_PHRASE = r"(?:[\w’'&-]+ ){0,4}?[\w-]*list(?: (?:of|for) [\w’'& -]{1,40})?"
_POLITE = (
    r"(?:(?:please|pls|plz|hey|ok(?:ay)?|also|and|can you|could you|would you|will you|"
    r"remember to|don[’']t forget to|remind me to|let[’']?s|"
    r"(?:i|we)(?:[’']d| would)? (?:want|like|need|have) to),? )*"
)
_PUT = (
    r"(?:add|put|stick|pop|throw|include|write|jot(?: down)?|note(?: down)?|place|append|save|get|chuck|"
    r"move|log|enter)"
)
_ONTO = r"(?:to|on|onto|in|into|for|under)"

LIST_FORMS = tuple(
    re.compile(rf"(?is)^{_POLITE}{source}$")
    for source in (
        # Add Dune to my reading list
        rf"{_PUT} (?P<items>.+),? {_ONTO} {_WHOSE} (?P<list>{_PHRASE})(?:,? (?:please|too|as well))?",
        # Add to my reading list: Dune. New on my list of restaurants: Noma. Reading list: Dune
        rf"(?:(?:{_PUT}|new)?(?: (?:this|these|one|entry|item|thing))? ?{_ONTO} )?(?:{_WHOSE} )?"
        rf"(?P<list>{_PHRASE})(?: *[:=] *| +[—–-] +)(?P<items>.+)",
        # Dune goes on my reading list. Dune, for the reading list
        rf"(?P<items>.+?),? (?:(?:goes|go|belongs?|should go|should be|has to go|needs to go|can go) {_ONTO}|for)"
        rf" {_WHOSE} (?P<list>{_PHRASE})(?: please)?",
    )
)
_LIST_NAME = re.compile(
    r"(?is)(?P<before>.*?)[ -]?list(?: (?P<by>of|for) (?:(?:my|the|our|all|a) )?(?P<after>.*))?"
)
_OTHER_LISTS = re.compile(
    r"(?i)(?:.*\b)?(?:mailing|waiting|wait|distribution|black|white|block|allow|deny|price)"
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)")
_BETWEEN_QUOTED = re.compile(r"(?i)[\s,;&]*(?:and[\s,]*)?")
_PLURAL = re.compile(r"(?<=[^s\W])s\b")

KNOWN_LISTS = {
    "shopping": "shopping",
    "grocery": "shopping",
    "groceries": "shopping",
    "supermarket": "shopping",
    "things to buy": "shopping",
    "to buy": "shopping",
    "to-do": "todos",
    "to do": "todos",
    "todo": "todos",
    "to-dos": "todos",
    "todos": "todos",
    "task": "todos",
    "tasks": "todos",
    "things to do": "todos",
    "contact": "contacts",
    "contacts": "contacts",
}
"""List names that map to a note kind."""


class NamedList(NamedTuple):
    """The list that a sentence names and the items to add; the name is "" for "the list"."""

    name: str
    items: str

    @property
    def kind(self) -> str:
        """The note kind this list maps to, or "" if there is none."""
        return KNOWN_LISTS.get(self.name.lower(), "")


def find_named_list(text: str) -> NamedList | None:
    """Return the list that a sentence adds something to, or None."""
    text = text.strip().rstrip(".!")
    if len(text) > MAX_LIST_SENTENCE or "list" not in text.lower():
        return None
    for form in LIST_FORMS:
        found = form.match(text)
        if found and not _OTHER_LISTS.fullmatch(found["list"][: -len("list")].rstrip(" -")):
            items = found["items"].strip(" ,")
            name = _list_name(found["list"])
            if items and name is not None:
                return NamedList(name, items)
    return None


def list_path(name: str, there: tuple[str, ...]) -> str:
    """Return the file of a list: an existing one with a matching name, else a new path."""
    wanted = _list_key(name)
    for path in there:
        if path.startswith(f"{LISTS}/") and _list_key(path[len(LISTS) + 1 :].removesuffix(".md")) == wanted:
            return path
    return f"{LISTS}/{slugs.segment(name.replace('’', '').replace(chr(39), ''))[:100].strip('-')}.md"


def quoted_titles(items: str) -> list[str]:
    """Return the titles if a text consists only of quoted titles, else []."""
    rest = _QUOTED.sub("\0", items)
    if not all(not each or _BETWEEN_QUOTED.fullmatch(each) for each in rest.split("\0")) or "\0" not in rest:
        return []
    return [next(filter(None, found)).strip() for found in _QUOTED.findall(items)]


def _list_name(phrase: str) -> str | None:
    found = _LIST_NAME.fullmatch(phrase)
    if found is None:
        return None
    before, after = " ".join(found["before"].split()), " ".join((found["after"] or "").split())
    return f"{before} {found['by']} {after}" if before and after else before or after


def _list_key(name: str) -> str:
    """Return a key that is equal for spelling variants: "Reading List", "reading-list" and "reading"."""
    words = slugs.segment(name).replace("_", "-").split("-")
    kept = [each for each in words if each != "list"] or words
    return _PLURAL.sub("", " ".join(kept))


class NoteKind(NamedTuple):
    """A kind of note: its file, its section, and whether its lines are checkboxes."""

    name: str
    path: str
    section: str
    box: bool = False


NOTE_KINDS = {
    kind.name: kind
    for kind in (
        NoteKind("contacts", "reference/contacts.md", "Contacts"),
        NoteKind("preferences", "reference/preferences.md", "Preferences"),
        NoteKind("standing-orders", "reference/standing-orders.md", "Standing Orders"),
        NoteKind("todos", "lists/todos.md", "To Do", box=True),
        NoteKind("shopping", "lists/shopping.md", "Shopping List"),
        NoteKind("facts", "knowledge/facts.md", "Facts"),
        NoteKind("patterns", "knowledge/patterns.md", "Patterns"),
    )
}

_LETTERS = [chr(code) for code in range(0x41, 0x530)]
_UPPERCASE = "".join(each for each in _LETTERS if each.isupper())
_LOWERCASE = "".join(each for each in _LETTERS if each.islower())
_PERSON_NAME = (
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr|Aunt|Uncle|Grandma|Grandpa)\.? )?"
    rf"[{_UPPERCASE}](?:[\w’'-]{{0,40}}[{_LOWERCASE}])(?: [{_UPPERCASE}][\w’'-]{{1,40}}){{0,4}}"
)
_KIN = (
    r"(?:(?:step|grand|god|half-)?(?:mother|father|brother|sister|son|daughter)(?:[ -]in[ -]law)?|wife|husband|partner|"
    r"girlfriend|boyfriend|fianc[eé]e?|mum|mom|dad|gran|granny|grandma|grandpa|aunt|auntie|uncle|cousin|nephew|niece|"
    r"boss|assistant|friend|flatmate|roommate|baby|twins|kids?|child(?:ren)?|parents|in-laws|ex)"
)
_JOB = (
    r"(?:dentist|doctor|gp|plumber|electrician|landlord|landlady|accountant|lawyer|solicitor|attorney|notary|vet|"
    r"hairdresser|barber|neighbou?r|therapist|physio(?:therapist)?|teacher|tutor|professor|supervisor|nurse|midwife|"
    r"surgeon|p(?:a?e)diatrician|optician|pharmacist|manager|boss|lead|director|head|secretary|engineer|developer|designer|"
    r"architect|builder|joiner|carpenter|gardener|cleaner|mechanic|babysitter|nanny|coach|trainer|recruiter|consultant|"
    r"broker|banker|editor|publisher|translator|cto|ceo|cfo|coo|rep|agent|contact|client|customer|supplier|colleague|"
    r"co-?founder|founder|caretaker|guy|girl|friend|flatmate|roommate)"
)
_TASK_VERB = (
    r"(?:call|phone|ring|pay|renew|book|reserve|send|mail|email|text|message|ping|schedule|reschedule|arrange|plan|write|"
    r"draft|follow up|return|submit|file|ask|tell|remind|review|read|reread|check|double-check|verify|prepare|pick up|"
    r"pick|choose|drop off|drop|collect|fetch|cancel|look into|look up|look for|look at|find|search for|print|scan|copy|"
    r"get back|make|finish|complete|wrap up|wrap|sign up|sign|register|enrol|enroll|join|fix|mend|repair|clean|tidy|wash|"
    r"iron|hoover|vacuum|dust|mop|water|feed|walk|reply|respond|answer|update|upgrade|upload|download|install|uninstall|"
    r"set up|organi[sz]e|research|investigate|debug|refactor|rewrite|rename|document|describe|compare|measure|visit|meet|"
    r"talk to|talk with|speak to|speak with|discuss|decide|bring|take|move|sell|donate|invite|confirm|replace|change|"
    r"swap|switch|back up|order|apply|contact|chase|nudge|remove|delete|empty|fill|charge|test|try|deploy|release|"
    r"publish|post|ship|merge|revert|migrate|pack|unpack|paint|mow|plant|prune|rake|hang|assemble|build|bake|cook|"
    r"defrost|descale|transfer|apologi[sz]e|thank|congratulate|archive|put|notify|forward|keep|decline|accept|use|add|"
    r"sort|run|start|stop|show|give|let|open|close|lock|save|commit|push|learn|study|practi[sc]e|report|request|claim|"
    r"subscribe|unsubscribe|withdraw|deposit|convert|log|record|track|summari[sz]e|translate|block|buy|purchase|go to|go through|hand in|hand over|figure out|work out|find out|wish|ensure|make sure|turn off|turn on|throw|"
    r"get rid of|take out|see about|deal with|catch up)"
)
_SUBJECT = rf"(?:i|i[’']m|we|we[’']re|he|she|they|you|it|the|my|our|his|her|their|{_KIN})"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_IMPERATIVE = (
    rf"^{_TASK_VERB}\b(?!(?: (?!(?:whether|if|that|what|when|who|how|the|a|an|my|our|your)\b)[\w-]+){{0,3}}"
    r" (?:is|are|was|were|has|have|runs|takes|starts|ends|costs|needs|uses|moved|changed|expired)\b)"
)

# A bare shopping list: lowercase words, none of which would form a sentence.
_SHOPPING_ITEM = rf"[0-9{_LOWERCASE}][\w-]*(?: [0-9{_LOWERCASE}][\w-]*){{0,2}}"
_FIRST_SHOPPING_ITEM = rf"[\w-]+(?: [0-9{_LOWERCASE}][\w-]*){{0,2}}"
_NOT_SHOPPING = (
    "is|are|was|were|be|i|we|you|he|she|they|it|me|us|him|her|them|the|to|no|not|never|always|only|can|will|must|should|"
    "january|february|march|april|may|june|july|august|september|october|november|december"
)

_PACK = (
    "pints?|litres?|liters?|kilos?|kg|grams?|g|lbs?|pounds?|packs?|packets?|bottles?|cans?|tins?|box|boxes|loaf|loaves|dozen|"
    "bags?|jars?|bunch|bunches|rolls?|pairs?|tubs?|cartons?|bars?|slices?"
)
_GROCERY = (
    "milk|bread|eggs?|butter|cheese|yog(?:h)?urt|cream|coffee|tea|sugar|salt|pepper|flour|rice|pasta|noodles|oil|vinegar|honey|"
    "jam|cereal|oats|juice|water|beer|wine|apples?|bananas?|oranges?|lemons?|limes?|grapes|berries|tomato(?:es)?|potato(?:es)?|"
    "onions?|garlic|carrots?|peppers|lettuce|spinach|cucumbers?|mushrooms|beans|lentils|chicken|beef|pork|ham|bacon|sausages|"
    "fish|salmon|tuna|tofu|nuts|crisps|chocolate|biscuits|soap|shampoo|toothpaste|deodorant|detergent|bleach|sponges|"
    "tissues|toilet paper|kitchen roll|foil|bin bags|nappies|diapers|batteries|light ?bulbs|candles|stamps|envelopes|tape"
)

RULES: tuple[tuple[str, float, str, int], ...] = (
    # People and contact details
    ("contacts", 3, r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[a-z]{2,}", re.IGNORECASE),
    ("contacts", 3, r"(?<![\w-])(?:\+|\(|0)\d[\d ()/.-]{5,}\d|(?<![\w-])\d{3}-\d{3,4}(?:-\d{3,4})?(?![\w-])|(?<![\w-])\d{3}[ .]\d{3,4}[ .]\d{3,4}(?![\w-])", re.IGNORECASE),
    ("contacts", 2, r"\b(?:phone|mobile|cell|tel|telephone|fax)(?: number)?\b(?! calls?)|\bext(?:ension)?\.? ?\d|\bhandle\b|\blinkedin\b|(?<![\w@])@[\w-]{2,}", re.IGNORECASE),
    ("contacts", 3, rf"\b(?:{_PERSON_NAME}|(?i:{_KIN}|{_JOB}))[’']s (?:new |old |work |home |private )?(?:{_KIN}|birthday|e-?mail|address|number|name|handle|mobile|phone|cell)\b", 0),
    ("contacts", 2.5, r"\b(?:birthday|home address|email address)\b", re.IGNORECASE),
    ("contacts", 2.5, rf"^(?!(?:The|This|That|We|Our) )(?:{_PERSON_NAME}|(?:[Mm]y |[Oo]ur )?(?i:{_KIN}|{_JOB})(?: {_PERSON_NAME})?)(?: (?i:{_KIN}))?(?: now| just)? (?:lives (?:at|in|on|near|with)|moved to|was born|works? (?:at|for|as|in)|turns \d)", 0),
    ("contacts", 2.5, rf"^(?:[Tt]he |[Mm]y |[Oo]ur )?(?:new )?(?:[\w’'-]+ ){{0,2}}?(?i:{_JOB}|{_KIN})(?: \w+){{0,3}}(?: is| =|:)(?: called| named)? {_PERSON_NAME}", 0),
    ("contacts", 2.5, rf"^{_PERSON_NAME}(?: \w+)? (?:works (?:at|for|as|in)|is (?:the|my|our|a|an)(?: new)?(?: [\w’'-]+){{0,2}}? ?(?i:{_JOB}|{_KIN})|is {_PERSON_NAME}[’']s)\b", 0),
    ("contacts", 3.5, rf"\b(?:{_JOB}|{_KIN}) (?:is |are )?(?:called|named) [A-Z]|\b[Nn]ame of (?:my|our|the) (?:\w+ )?(?:{_JOB}|{_KIN}) is\b", 0),
    ("contacts", 2.5, rf"^{_PERSON_NAME} (?:runs|leads|heads|manages|teaches|owns|chairs) .*\b(?:team|department|class|office|school|at {_PERSON_NAME})\b", 0),
    ("contacts", 2, r"\b(?:can be reached|reach \w+(?: \w+)? (?:on|at|by)|(?:my|our) \w+[’']s name is|is called [A-Z])", re.IGNORECASE),
    ("contacts", 1, r"\b(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr)\b", 0),
    ("contacts", 1, rf"\b{_PERSON_NAME} from (?:the )?\w+ (?:team|department)\b", 0),
    ("contacts", 2, r"^(?:emergency )?contact\b", re.IGNORECASE),
    # Likes and dislikes
    ("preferences", 3, r"\b(?:prefer(?:s|red|ence)?|favou?rite|allergic|allergy|intolerant|coeliac|celiac|vegetarian|pescatarian|vegan|halal|kosher|dislikes?|hates?|detests?|loathes?|loves?|adores?|enjoys?)\b", re.IGNORECASE),
    ("preferences", 3, r"\b(?:can[’']?t|cannot|can not) (?:stand|bear|eat|drink|tolerate)\b|\bnot (?:a|much of a) (?:big )?fan\b|\b(?:d|would) rather\b|\b(?:don[’']t|do not|doesn[’']t|does not) (?:really |much )?(?:eat|drink|enjoy|care for|care much)\b", re.IGNORECASE),
    ("preferences", 3, r"\b(?:not |very |quite |really |so )?(?:keen on|fond of|crazy about|fan of|into \w+ing|sick of)\b|\b\w+ person$|\bgo-to\b|\bfavou?rs\b|\bnight owl\b|\bearly bird\b|^i find .+ (?:\w+ing|too \w+)$|\b\w+ over \w+ (?:any day|every time|anytime)\b|\bgiven the choice\b|\bsweet tooth\b", re.IGNORECASE),
    ("preferences", 3, r"^no \w+(?: \w+)?, no \w+", re.IGNORECASE),
    ("preferences", 2.5, rf"^(?:i|we|(?:my |our |the )?{_KIN}|[a-z]+) (?:really |quite |don[’']t |do not |doesn[’']t )?(?:really |much )?likes?\b", re.IGNORECASE),
    ("preferences", 2, r"^i (?:wants?|drinks?|eats?|wears?|takes?|uses?)\b", re.IGNORECASE),
    ("preferences", 3, r"^(?:i|we|he|she|my \w+|our \w+|[a-z]+) only (?:eats?|drinks?|wears?|reads?|listens?|uses?)\b", re.IGNORECASE),
    ("preferences", 2, r"^[\w’' -]{2,40} > [\w’' -]{2,40}$|\btakes? (?:my|his|her|their) (?:tea|coffee)\b", re.IGNORECASE),
    ("preferences", 3.5, r"\bplease,? when(?:ever)?\b|\b(?:shoe|shirt|dress|ring) size\b|\bsize (?:\d|x*[sml]\b)", re.IGNORECASE),
    # Standing instructions
    ("standing-orders", 4, r"^(?:always|never|only)\b", re.IGNORECASE),
    ("standing-orders", 4, r"^(?:don[’']t|do not) (?!(?:really )?(?:forget|like|eat|drink|enjoy|let me forget)\b)", re.IGNORECASE),
    ("standing-orders", 4, r"\b(?:from now on|going forward|from today|as a rule|by default|in future|on my behalf|without asking|you must|make sure (?:you|to) (?:always|never))\b", re.IGNORECASE),
    ("standing-orders", 4.5, r"^you (?:should|must|shall|need to|have to|may|can)(?:n[’']t| not)? (?:always|never|only|not)\b", re.IGNORECASE),
    ("standing-orders", 4, rf"^(?:if|when|whenever|every|each|before|after)\b[^,]*, (?:please )?(?:always |never )?{_TASK_VERB}\b", re.IGNORECASE),
    ("standing-orders", 5, r"^(?:if|when|whenever|every|each|before|after)\b[^,]*, (?:please |then |you should )?(?:always|never|don[’']t|do not|only|make sure)\b", re.IGNORECASE),
    ("standing-orders", 3, rf"^(?:if|when|whenever|every|each|before|after)\b[^,]*, (?!{_SUBJECT}\b)[a-z]+ (?:me|it|them|him|her|that|the|all)\b", re.IGNORECASE),
    ("standing-orders", 4, rf"^(?:if|when|whenever)\b.{{3,80}}(?<! i)(?<! we)(?<! to)(?<! you)(?<! he)(?<! she)(?<! they) {_TASK_VERB} (?:it|them|me|him|her|that|your)\b", re.IGNORECASE),
    ("standing-orders", 3, rf"^(?:every|each) (?:day|night|week|month|morning|evening|{_DAY})(?: (?:morning|evening|night|afternoon))?,? (?:please )?{_TASK_VERB}\b", re.IGNORECASE),
    ("standing-orders", 3, r"^(?:ask|check with|consult|confirm with|tell) me (?:before|first)|\bbefore you\b", re.IGNORECASE),
    ("standing-orders", 4, r"^(?:text|call|tell|notify|alert|warn|wake|remind|email|message|ping|let) me (?:know )?(?:if|when|whenever|every|each|as soon as)\b", re.IGNORECASE),
    ("standing-orders", 3, r"^all [\w -]{2,40} (?:in|with|without|as|go|must|should)\b", re.IGNORECASE),
    ("standing-orders", 4, r"^(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? (?:only )?in\b", re.IGNORECASE),
    ("standing-orders", 5, r"^(?:call|address) me (?!(?:back|tomorrow|tonight|later|at|on|when|if|a|an|about|in|by|after|before|this|next)\b)\w", re.IGNORECASE),
    ("standing-orders", 3.8, r"^(?:use (?!up)|keep|avoid|refrain|stick to|default to|limit|assume|treat|stop \w+ing|skip)\b", re.IGNORECASE),
    ("standing-orders", 3.5, rf"{_IMPERATIVE}(?=.*\b(?:every|each|always|never|ever|any|anything|anyone|everything|everyone|all (?:my|our|the|of)|at all times|instead of|unless)\b)", re.IGNORECASE),
    ("standing-orders", 3, r"\byour (?:answers?|replies|reply|responses?|messages?|tone|output|summar(?:y|ies)|code|commits?)\b", re.IGNORECASE),
    ("standing-orders", 4, r"^no [\w -]{2,40}?(?:,? ever$| (?:before|after|during|without|at|on|in|from|unless)\b)", re.IGNORECASE),
    # One-time tasks
    ("todos", 5, r"^(?:[-*+] )?\[ ?\]|^to[ -]?do\b", re.IGNORECASE),
    ("todos", 5.8, r"\b(?:remind me to|remember to|don[’']t forget|do not forget|let me forget)\b", re.IGNORECASE),
    ("todos", 3.5, r"\b(?:needs? to|have to|has to|had better|must|should|ought to|gotta|got to|needs? (?:\w+ )?\w{2,}ing|needs? to be)\b", re.IGNORECASE),
    ("todos", 3, _IMPERATIVE, re.IGNORECASE),
    ("todos", 3, r"^(?!\w+(?:s|ed|ing)\b|pick )[a-z]{2,12} (?:out|up|off|down|back|over|away|through|on with) (?:the|my|our|a|an|why|how|what|whether|who|to|with|for|some|that|this)\b", re.IGNORECASE),
    ("todos", 3.5, r"^(?:get|have) (?:the|my|our) .+(?:ed|done|cut|fixed|seen to|looked at)\b", re.IGNORECASE),
    ("todos", 1.5, r"^(?:e-?mail|call|phone|text|message|ask|tell|write)\b.{0,80}\b(?:about|whether|to)\b", re.IGNORECASE),
    ("todos", 1, rf"\b(?:by|until|before|on|this|next) (?:tomorrow|tonight|today|{_DAY}|week|weekend|month|winter|summer|the \d|end of|{_MONTH}|\d)\b|\b(?:tomorrow|tonight|at the weekend)\b", re.IGNORECASE),
    # Things to buy
    ("shopping", 6, r"\b(?:buy|purchase)\b|\bshopping list\b|\bgrocer(?:y|ies)\b|^shopping\s*:", re.IGNORECASE),
    ("shopping", 5, r"\b(?:out of|low on|no more) (?!office|town|reach|date|scope|stock|order|ten|five|\d)|\bno [\w -]{2,30} left\b|\bcould do with (?:some |more |a )", re.IGNORECASE),
    ("shopping", 5, r"^(?:we |i )?need(?: more| some| new)?:? (?!to\b|help|\w+ing\b)(?!.{0,80}\bfor \w+ing\b)", re.IGNORECASE),
    ("shopping", 4, r"^order (?!of)", re.IGNORECASE),
    ("shopping", 4, r"\bneed:? (?:[\w-]+ ){0,2}[\w-]+, \w+", re.IGNORECASE),
    ("shopping", 5, rf"^(?:an?|one|two|three|four|five|six|half an?|\d+) (?:{_PACK}) (?:of )?\w+", re.IGNORECASE),
    ("shopping", 2.5, rf"^(?!.*\b(?:{_NOT_SHOPPING})\b)(?:[\w-]+ ){{0,3}}(?:{_GROCERY})(?: and [\w-]+(?: \w+)?)?$", re.IGNORECASE),
    ("shopping", 6, r"\b(?:get|grab)\b(?: (?:some|more|a|an|new|\d+))* (?!(?:back|the|to|it|me|up|better|headaches?|my|our|rid|used|ready)\b)\w+(?: \w+)?(?:,| and | from|$)", re.IGNORECASE),
    ("shopping", 5, r"^(?:get|grab|fetch)(?: me| us)? (?:some|more|a few|a couple of|another|\d+) \w+", re.IGNORECASE),
    ("shopping", 4, rf"^[Pp]ick up (?!the\b|my\b|our\b)[{_LOWERCASE}][\w-]*(?: [{_LOWERCASE}][\w-]*)?$", 0),
    ("shopping", 4, r"^pick up (?:(?:some|more|a|an|\d+) |\w+(?:,| and ))", re.IGNORECASE),
    ("shopping", 5, rf"^(?!.*\b(?i:{_NOT_SHOPPING})\b){_FIRST_SHOPPING_ITEM}(?:(?:, ?|,? and ){_SHOPPING_ITEM}){{2,}}$", 0),
    ("shopping", 5, rf"^(?!.*\b(?i:{_NOT_SHOPPING})\b)[\w-]+, ?[{_LOWERCASE}-]+$", 0),
    # Habits and patterns
    ("patterns", 4, r"\b(?:usually|typically|mostly|often|rarely|seldom|generally|normally|frequently|habitually|regularly|sometimes|occasionally|hardly ever|tends? to|every time|most (?:weekends|days|nights|mornings|evenings|weeks))\b", re.IGNORECASE),
    ("patterns", 4, r"^(?!please\b)[\w’']+(?: \w+){0,2} (?:always|never)\b", re.IGNORECASE),
    ("patterns", 3.5, rf"^(?:when(?:ever)?|every|each)\b[^,]*,? {_SUBJECT}\b", re.IGNORECASE),
    ("patterns", 3, rf"\b(?:\w+ times|once|twice) (?:a|per) (?:day|week|month|year)\b|\b(?:every|each) (?:other |second |single )?(?:spring|summer|autumn|fall|winter|{_DAY}|{_MONTH}|night|day|morning|evening|afternoon|week|weekend|month|year)\b|\b(?:daily|nightly|weekly)$", re.IGNORECASE),
    ("patterns", 3, rf"^(?:i|we|i[’']m|we[’']re)\b.*\bon {_DAY}s\b|^on \w+days,? (?:i|we)\b", re.IGNORECASE),
    ("patterns", 3, rf"\b(?:when|whenever|if|after) (?:i|we|it|he|she|they|there)\b|.\bwhen(?:ever)? (?:the|my|our|his|her|their|someone)\b|\bwhenever\b(?=.*\b{_SUBJECT}\b)", re.IGNORECASE),
    ("patterns", 3.5, r"\b(?:gets?|becomes?|goes|feels?|turns?|am|is|are) \w+ (?:if|when|whenever)\b|\btimes out of (?:ten|\d+)\b", re.IGNORECASE),
    ("patterns", 2, r"\b(?:sleeps?|works?|feels?|writes?|thinks?) (?:\w+ly|best|worst|better|worse)\b|^(?:i|he|she|we|they)\b.* (?:after|before|around) (?:breakfast|lunch|dinner|work|midnight|noon)$", re.IGNORECASE),
    ("patterns", 2, r"^in (?:the )?(?:spring|summer|autumn|winter|mornings?|evenings?|afternoons?),? ", re.IGNORECASE),
    # Facts
    ("facts", 2.2, r"^(?:the|our|my|this|that)\b(?!.*\b(?:favou?rite|prefer|go-to))[^,]*\b(?:is|are|was|were|has|have|uses|runs|takes|costs|ends|expires|starts|leaves|closes|opens|stands)\b", re.IGNORECASE),
    ("facts", 1.5, r"\b(?:password|code|version|deadline|budget|warranty|invoice|we decided|passport expires)\b|^(?:decision|decided)\b", re.IGNORECASE),
    ("facts", 1, r"", re.IGNORECASE),
)  # fmt: skip

_COMPILED_RULES = tuple((kind, points, re.compile(source, flags)) for kind, points, source, flags in RULES)

LEAD_INS = re.compile(
    r"^(?:(?:please|hey|ok(?:ay)?|so|also|fyi)[,:]?\s+)*"
    r"(?:(?:can you |could you )?(?:please )?(?:remember|note|save|keep in mind|don[’']t forget)(?: this)?(?::| that\b)\s*|fyi[:,]\s*)",
    re.IGNORECASE,
)
_TODO_LEADS = re.compile(
    r"^(?:[-*+]\s+)?(?:\[ ?\]\s*)?(?:to-?do\s*[:-]\s*)?(?:(?:please\s+)?(?:remind me to|remember to|don[’']t forget to|"
    r"do not forget to|i (?:still |really )?(?:need|have) to|i must|add)\s+(?=.*\w)(?!.*\bto (?:my|the) (?:to-?do|list))|"
    r"add (?=.* to (?:my|the) to-?do list))?",
    re.IGNORECASE,
)
_TODO_TAIL = re.compile(r"(?<!\s)\s+to (?:my|the|our) to-?do list$", re.IGNORECASE)
_SHOPPING_LEADS = re.compile(
    r"^(?:please\s+)?(?:(?:remember|don[’']t forget|remind me|i need|i have|we need|we have|need|have|i must)\s+to\s+)?"
    r"(?:(?:buy|purchase|order|grab|pick up|get|add|put)(?: some| more)?\s+"
    r"|(?:shopping list|grocery list|groceries|shopping|need|to buy)\s*:\s*"
    r"|(?:we |i )?need(?: some| more)?\s+"
    r"|(?:we[’']re |we are |i[’']m |i am )?(?:(?:almost |nearly )?(?:out of|running (?:out of|low on))|low on|no more)\s+"
    r"|we (?:ran|have run|[’']ve run) out of\s+)",
    re.IGNORECASE,
)
_SHOPPING_TAIL = re.compile(
    r"(?<!\s)\s+(?:(?:to|on|onto) (?:my|the|our) (?:shopping |grocery )?list(?: of groceries)?"
    r"|(?:from|at) the (?:supermarket|shops?|store|market|grocer)|on the way home)\s*$",
    re.IGNORECASE,
)
_FIXED_PAIRS = re.compile(
    r"\b(?:mac and cheese|salt and vinegar|salt and pepper|fish and chips|bread and butter|peanut butter and jelly|"
    r"sour cream and onion|gin and tonic|rum and raisin|cookies and cream|half and half|ham and cheese|cheese and onion|"
    r"oil and vinegar|black and white|surf and turf|bed and breakfast|nuts and bolts|sweet and sour)\b",
    re.IGNORECASE,
)
_ITEM_SEPARATOR = re.compile(r",(?![0-9])\s*(?:and\s+)?|;|(?<=\s)and\s+|&|\n", re.IGNORECASE)
_LIST_MARK = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]?\]\s*)?")
_PERSON = re.compile(rf"\b{_PERSON_NAME}")
_NOT_A_PERSON = frozenset(
    """the my our your you new email emergency contact home reach phone mobile address birthday call remember i he she they
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december slack signal whatsapp""".split()
)


_TASK = re.compile(_IMPERATIVE, re.IGNORECASE)
_SENTENCE = re.compile(
    r",\s+(?:and\s+)?(?:the|because|so|but|which|who|that|if|when)\s|\s(?:is|are|was|were)\s", re.IGNORECASE
)
_NORMALIZATIONS = (
    (
        re.compile(
            r"^(?:(?:please|pls|plz|hey|hi|ok(?:ay)?|so|also|oh|and|but|btw|fyi|just|note|(?:can|could|would|will) you)\b[,:]?\s+)+",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"[,;]?\s+(?:btw|by the way|fyi|please|pls|thanks|thank you)[.!]?$", re.IGNORECASE), ""),
    (re.compile(r"^(?:the )?user[’']s\b", re.IGNORECASE), "My"),
    (re.compile(r"^(?:the )?user (?:is|was)\b", re.IGNORECASE), "I'm"),
    (re.compile(r"^(?:the )?user\b(?=.* )", re.IGNORECASE), "I"),
    (
        re.compile(
            r"^(?:i|we)(?:[’']d| would)? (?:asks?|asked|wants?|like|told|instructed)(?: (?:you|me|claude|the (?:agent|assistant)))? to\s+(?=\w)(?!(?:sit|be|have)\b)",
            re.IGNORECASE,
        ),
        "",
    ),
)


MAX_SHOPPING_LENGTH = 2_000
"""Maximum length of a sentence that is split into shopping items, in characters."""

MAX_ROUTED_LENGTH = 400
"""Number of leading characters used to classify a text. Longer texts show their kind early; bounds the cost."""


def route_kind(content: str, among: tuple[str, ...] = ()) -> NoteKind:
    """Return the best matching kind, of all kinds or of those in `among`."""
    text = _normalize_sentence(
        strip_lead_in(content[: 2 * MAX_ROUTED_LENGTH]).split("\n", 1)[0][:MAX_ROUTED_LENGTH]
    )
    points = dict.fromkeys(among or NOTE_KINDS, 0.0)
    for kind, count, looked_for in _COMPILED_RULES:
        if kind in points and looked_for.search(text):
            points[kind] += count
    return NOTE_KINDS[max(points, key=lambda kind: points[kind])]


def _normalize_sentence(text: str) -> str:
    """Remove courtesies, and change "the user …" to the first person."""
    for looked_for, said in _NORMALIZATIONS:
        text = looked_for.sub(said, text, count=1).strip() or text
    return text


def strip_lead_in(content: str) -> str:
    """Remove a lead-in such as "please remember that"."""
    text = content.strip()
    found = LEAD_INS.match(text)
    rest = text[found.end() :].strip() if found else ""
    return rest or text


def lines_to_write(content: str, kind: NoteKind | None) -> list[str]:
    """Return the lines to write: the items of a list, or the text as one line."""
    text = strip_lead_in(content)
    listed = [line for line in text.splitlines() if line.strip()]
    if len(listed) > 1 and all(_LIST_MARK.match(line) for line in listed):
        return [_LIST_MARK.sub("", line).strip() for line in listed]
    if kind is not None and kind.name == "shopping" and len(text) <= MAX_SHOPPING_LENGTH:
        return _shopping_items(text)
    text = _LIST_MARK.sub("", text)
    if kind is not None and kind.path.startswith(f"{LISTS}/") and not kind.name:
        return _list_entries(text)
    if kind is not None and kind.name == "todos":
        text = _TODO_TAIL.sub("", text)
        found = _TODO_LEADS.match(text)
        rest = text[found.end() :] if found else text
        return [_capitalize(rest.strip() or text)]
    return [_capitalize(text) if text != content.strip() else text]


def is_task(text: str) -> bool:
    """Return True if a text is a task, as opposed to something to buy."""
    return bool(_TASK.search(_normalize_sentence(strip_lead_in(text[:MAX_ROUTED_LENGTH]))))


def _list_entries(text: str) -> list[str]:
    """Return the entries for a custom list: quoted titles, or plain items separated by commas.

    A title may contain commas and "and", so a text with capitalized parts stays one entry.
    """
    titles = quoted_titles(text)
    if titles:
        return titles
    parts = [
        each.strip() for each in _ITEM_SEPARATOR.split(_protect_pairs(text.rstrip(".!"))) if each.strip()
    ]
    plain = [each[0].islower() or each[0].isdigit() for each in parts]
    if len(parts) > 1 and all(plain[1:]) and (plain[0] or len(parts) > 2) and not _SENTENCE.search(text):
        return [_capitalize(each.replace(_PAIR_MARK, " and ")) for each in parts]
    return [_capitalize(text)]


def _shopping_items(text: str) -> list[str]:
    text = _SHOPPING_TAIL.sub("", text.strip().rstrip(".!"))
    found = _SHOPPING_LEADS.match(text)
    rest = text[found.end() :] if found else text
    rest = _SHOPPING_TAIL.sub("", rest)
    goods = [_LIST_MARK.sub("", each.strip()).strip() for each in _ITEM_SEPARATOR.split(_protect_pairs(rest))]
    if any(each.lower().split()[-1:] in _PRONOUNS for each in goods):
        return [_capitalize(rest)]  # a pronoun means a task about the purchase, not another item
    return [_capitalize(each.replace(_PAIR_MARK, " and ")) for each in goods if each] or [text]


_PAIR_MARK = "\0"
_PRONOUNS = (["it"], ["them"], ["him"], ["her"])


def _protect_pairs(text: str) -> str:
    """Protect fixed pairs such as "fish and chips" from being split."""
    return _FIXED_PAIRS.sub(lambda found: found[0].replace(" and ", _PAIR_MARK), text)


def find_person(content: str) -> str:
    """Return the first person named in a text, or ""."""
    for found in _PERSON.finditer(strip_lead_in(content[: 2 * MAX_ROUTED_LENGTH])[:MAX_ROUTED_LENGTH]):
        words: list[str] = []
        for word in found[0].split():
            name = word.replace("’", "'").removesuffix("'s")
            if words or name.lower() not in _NOT_A_PERSON:
                words.append(name)
            if words and name != word:
                break
        if words:
            return " ".join(words)
    return ""


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


MAX_SECTION_LENGTH = 100
OTHER_ENDINGS = (".markdown", ".org", ".txt", ".html", ".json", ".yaml")
"""File extensions that notebook files cannot have."""


class NoteTarget(NamedTuple):
    """Destination of a note: file, section, and the lines to add."""

    path: str
    section: str
    lines: list[str]
    box: bool
    within: bool
    """Look for duplicates only in this section, because the same line under another heading means something else."""
    person: bool = False
    """True if the section title is a person's name."""


def choose_target(
    content: str, category: str | None, file: str | None, section: str | None, there: tuple[str, ...] = ()
) -> NoteTarget:
    """Return the destination of a note. `there` are the notebook's files, searched for a bare name or a list."""
    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; say what to remember")
    on = find_named_list(strip_lead_in(content))
    listed = _list_kind(on, there) if on else None
    kind = _choose_kind(content, category, listed)
    path = kind.path if file is None else _choose_path(file, category, kind, there)
    named = next((each for each in NOTE_KINDS.values() if each.path == path), None)
    if named:
        kind = named
    elif path != kind.path:
        kept = kind if category in NOTE_KINDS else NoteKind("", path, "")
        kind = kept._replace(path=path, section=_title_from_path(path))
    if on and listed and listed.path == path:
        content = on.items
    person = kind.name == "contacts"
    title = _check_section(section) if section else _choose_section(content, kind)
    lines = [sections.sanitize(each) for each in lines_to_write(content, kind)]
    return NoteTarget(path, title, lines, kind.box, bool(section) or person, person)


def needs_file_list(content: str, file: str | None) -> bool:
    """Return True if `choose_target` needs the list of existing files."""
    return "/" not in file if file else "list" in content[:MAX_LIST_SENTENCE].lower()


class UpdatedNote(NamedTuple):
    text: str
    section: str
    lines: tuple[RememberedLine, ...]


def add_lines(text: str | None, goal: NoteTarget) -> UpdatedNote:
    """Add the lines that the file lacks, and return the new text with the location of each line."""
    text = text or ""
    if goal.person:
        goal = goal._replace(section=_person_section(text, goal.section))
    new: list[str] = []
    told: dict[str, RememberedLine] = {}
    for line in goal.lines:
        standing = _find_existing_line(text, goal, line)
        if standing:
            told[line] = RememberedLine(standing.text, goal.path, standing.line, False)
        elif not any(similarity.same_line(line, each) for each in new):
            new.append(line)
    if new:
        place = sections.find_section(text, goal.section)
        if place is None and not goal.within:
            # A user's own file without our heading: continue its list instead of starting a second one.
            place = sections.find_opening_list(text)
            goal = goal._replace(section="") if place else goal
        block = sections.format_items(new, text[place.body : place.end] if place else "", goal.box)
        added = (
            sections.append_to_place(text, place, block)
            if place
            else sections.append_to_section(text, goal.section, block)
        )
        text, number = added
        for line in new:
            told[line] = RememberedLine(line, goal.path, number, True)
            number += line.count("\n") + 1
    return UpdatedNote(text, goal.section, tuple(told[line] for line in goal.lines if line in told))


def _find_existing_line(text: str, goal: NoteTarget, line: str) -> "sections.ListItem | None":
    """Return the list item that already contains this line. Ticked items are ignored: they may be wanted again."""
    place = sections.find_section(text, goal.section) if goal.within else None
    if goal.within and place is None:
        return None
    first = text.count("\n", 0, place.body) + 1 if place else 1
    last = text.count("\n", 0, place.end) + 1 if place else text.count("\n") + 1
    wanted, *more = line.split("\n")
    every = text.split("\n")
    for item in sections.list_items(text):
        if first <= item.line <= last and item.box in (None, " ") and similarity.same_line(item.text, wanted):
            below = every[item.line : item.line + len(more)]
            if [each.strip() for each in below] == [each.strip() for each in more]:
                return item
    return None


def _person_section(text: str, name: str) -> str:
    """Return the person's section: the one with this name, else the only one with it as first or last name."""
    if sections.find_section(text, name):
        return name
    wanted = name.casefold()
    alike = [each.title for each in sections.find_sections(text) if wanted in each.title.casefold().split()]
    return alike[0] if len(alike) == 1 else name


def _list_kind(on: "NamedList", there: tuple[str, ...]) -> NoteKind:
    """Return the kind of a named list: a predefined one, or a file in lists/."""
    if on.kind:
        return NOTE_KINDS[on.kind]
    if on.name:
        path = list_path(on.name, there)
        is_its_own = path == list_path(on.name, ())
        return NoteKind("", path, _heading(on.name.lower()) if is_its_own else _title_from_path(path))
    return route_kind(on.items, ("todos", "shopping")) if is_task(on.items) else NOTE_KINDS["shopping"]


def _choose_kind(content: str, category: str | None, listed: NoteKind | None) -> NoteKind:
    if category in NOTE_KINDS:
        return NOTE_KINDS[category]
    if listed and (category is None or listed.path.startswith(f"{category}/")):
        return listed
    among = tuple(name for name, each in NOTE_KINDS.items() if each.path.startswith(f"{category}/"))
    return route_kind(content, among)


def _choose_path(file: str, category: str | None, kind: NoteKind, there: tuple[str, ...]) -> str:
    """Resolve a path or a bare name to a notebook file. With a category, the file must be in its folder."""
    name = file.strip()
    name = name[:-3] if name.lower().endswith(".md") else name
    if name.lower().endswith(OTHER_ENDINGS):
        raise InvalidArgument(name="file", problem=f"{name[:100]!r} must end with .md, or have no ending")
    folder = kind.path.partition("/")[0]
    begins = name.partition("/")[0].casefold() if "/" in name else ""
    if category is None:
        if name in NOTE_KINDS:
            return NOTE_KINDS[name].path
        known = [path for path in there if path.endswith(f"/{name}.md") and not path.startswith(f"{DAILY}/")]
        if "/" not in name and len(known) == 1:
            return known[0]
    path = check_page_path(
        f"{name}.md"
        if begins and (category is None or begins in NOTEBOOK_FOLDERS)
        else f"{folder}/{name}.md",
        "file",
    )
    if category is not None and not path.startswith(f"{folder}/"):
        problem = f"{path!r} is not in {folder}/, where category {category} belongs; leave out one of the two"
        raise InvalidArgument(name="file", problem=problem)
    if begins == DAILY:
        problem = f"{path!r} is a daily log; daily_log (`quaid log`) writes there"
        raise InvalidArgument(name="file", problem=problem)
    return path


def _choose_section(content: str, kind: NoteKind) -> str:
    if kind.name == "contacts":
        return _check_section(find_person(content) or kind.section)
    return kind.section


def _title_from_path(path: str) -> str:
    """Return the heading for a custom file: reading.md becomes "Reading"."""
    return _heading(slugs.from_path(path).rpartition("/")[2])


def _heading(name: str) -> str:
    name = name.replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


def _check_section(section: str) -> str:
    title = sections.heading_title(" ".join(section.split()))
    if not title or len(title) > MAX_SECTION_LENGTH:
        raise InvalidArgument(
            name="section", problem=f"is empty or longer than {MAX_SECTION_LENGTH} characters"
        )
    return title

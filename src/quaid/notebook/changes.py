"""Parse sentences that finish, remove, end or correct something, and find the lines that they refer to.

The lines may come from notebook files and from pages. `quaid.operations.corrections` changes them.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from quaid.model.corrections import DONE_WORDS
from quaid.notebook import classifier
from quaid.notebook.layout import LISTS

_COMMAND_CLASSES = frozenset(
    """REMOVE PLEASE THE PREP MEMORY LIST ADD I ME MY YOU HE IT BE NOT NOW FIX DO_NOT MUST REMIND DONE RULE DUE COMMA
    POSSESSIVE WHAT DOES ALWAYS IF SHOW""".split()
)
"""Classes of words that belong to the command, as opposed to words that name its object."""
_HINT_CLASSES = frozenset("REACH BUY LIKE LIVES PACK OUT EVERY".split())
"""Classes of words that a matching line need not contain. A line that contains them matches better."""

_PAST = dict(
    pair.split("=")
    for pair in """paid=pay sent=send bought=buy made=make got=get took=take wrote=write written=write brought=bring
    found=find told=tell met=meet sold=sell fed=feed rang=ring gave=give given=give spoke=speak built=build taken=take
    hung=hang swept=sweep mown=mow dealt=deal chose=choose""".split()
)
_GENERAL_VERBS = frozenset("finished completed done sorted".split())
"""Past verbs that can report any task as finished."""
MAX_SENTENCE = 400
"""Maximum characters of a sentence that are read."""

_DONE_FIRST = re.compile(
    rf"(?:(?:{DONE_WORDS}(?: with)?)(?: ?[:：、，,]| [–—-] )|(?!(?:check|tick|complete) )(?:{DONE_WORDS}(?: with)?)"
    r" (?=(?:the|my|our|with) ))(?P<task>.+)",
    re.IGNORECASE,
)
_DONE_LAST = re.compile(rf"(?:{DONE_WORDS})[.!。]?\Z", re.IGNORECASE)
_IS = (" is", " are", " ist", " est", " está")
_PAST_VERB = rf"(?:\w+[^\We]ed|{'|'.join(_PAST)}|did|done|cut|put|read|set|hung|went|saw|won|left)\b"
_HAVE_DONE = re.compile(
    rf"(?:(?:i|we)(?:['’]ve| have)?(?: already| just| finally)? (?={_PAST_VERB})|"
    r"j['’]ai (?:déjà |enfin )?|on a (?:déjà |enfin )?|ich habe? |wir haben |(?:ya )?he |(?:ya )?hemos |我?已经)"
    r"(?P<task>.+)",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    rf"(?i)(?P<what>.+?)(?: (?:is|are|was|were|has been|have been|got)|['’]s(?: been)?)"
    rf"(?: now| already| finally| all| ready and)* (?P<verb>{_PAST_VERB})(?P<rest>.*)"
)
"""Matches a report in the passive: "The parcel to Oslo is sent"."""
_BARE_PAST = re.compile(rf"(?i)(?P<verb>(?:\w+[^\We]ed|{'|'.join(_PAST)}|done)\b) .+")
"""Matches a report without a subject: "Booked the table".

Verbs such as "put", whose past has the same form, are left out, because the sentence may be a command.
"""
_UNSPACED_DONE = re.compile(
    r"(?P<what>\w{1,60}?)(?:我|他|她|我们)?(?:已经|都)(?P<verb>[^\W了]++)了?|"
    r"(?>(?P<object>\w+?)[はを])(?:もう|既に)?(?P<stem>\w*[一-鿿])\w{0,2}(?:ました|た)"
)
"""Matches a report in Chinese or Japanese. The bound and the atomic group keep the time linear."""
_ASIDE_FIRST = re.compile(
    r"(?i)(?:(?:ok(?:ay)?|fyi|hey|so|well|right|good news|just|already|finally|c['’]est bon|voilà|ça y est|also|"
    r"bueno|vale)(?:[,:!.]| -)? )+"
)
_TICK_OFF = (
    r"(?:(?:so |and )?(?:you can |please )?(?:tick|check|cross|strike) (?:(?:that|this|it)(?: one)? )?off)"
)
_ASIDE_LAST = re.compile(
    rf"(?i)(?:,? (?:already|finally|at last|today|just now)|(?:,|\.|!| -) (?:{_TICK_OFF}|all good|finally|"
    r"that[’']?s (?:that|sorted|done)|so that[’']?s done|phew|hurray|at last|enfin|endlich|por fin)){1,8}+\Z"
)
"""Matches remarks at the end. Their number is limited because a search for `+\\Z` is quadratic."""
_CROSS_OFF = re.compile(
    r"(?i)(?:oh |and |please |you can |also )*"
    r"(?:(?:tick|check|cross|strike) off (?P<task>[^,.;]+)|(?:tick|cross|strike) (?P<named>[^,.;]+) off\b.*)"
)
_TICKED_OFF = re.compile(rf"(?i)\b{_TICK_OFF}\W*\Z")
_DONE_ALONE = re.compile(
    rf"(?i)(?:(?:already|just|finally|was|were|is|has been|it was) )?"
    rf"(?:{'|'.join(_PAST)}|\w+[^\We]ed)(?: \w+)?[.!]?\Z"
)
"""Matches a past verb with at most one other word after it: "sent yesterday"."""
_BOUGHT = re.compile(r"(?i)(?:bought|got|purchased|picked up|acheté|gekauft|comprado|买了?)\s*(?=\S)")
_NOT_DONE = re.compile(
    r"(?i)\b(?:not|never|no|nearly|almost|half|when|once|until|till|if|after|before|unless|needed|wanted|planned|"
    r"decided|promised|agreed|forgot|pas|nicht|noch|jamais|nie|nunca|besoin|envie|quand|wenn|cuando|si)\b|"
    r"n[’']t\b|没|未|ない"
)
"""Words of a sentence that mentions a task without reporting that it is finished."""
_MARKERS = (
    r"(?:no+|nope|nah|actually|correction|sorry|wait|oops|hmm|update|edit|in fact|hold on|scratch that|"
    r"i was wrong|i made a mistake|mistake on my part|my mistake|turns out|non|en fait|désolée?|pardon|attends|"
    r"erreur de ma part|je me suis trompée?|finalement|nein|nee|eigentlich|korrektur|moment|mein fehler|"
    r"ich habe mich (?:vertan|geirrt)|en realidad|corrección|perdón|espera|error mío|me equivoqué|"
    r"me he equivocado|al final|不对|其实|更正(?:一下)?|抱歉|等等|我?[说弄搞记]错了|"
    r"いや|実は|訂正|間違えた|すみません|待って|実際は)"
)
# Without a punctuation mark the word may be part of the sentence: "Non mi piace il caffè", "No. 5 is taken".
_CORRECTION_LEAD = re.compile(
    rf"^(?:{_MARKERS}(?:\s*[,:;](?:\s+|$)|\s*[，、：。]\s*|\s+[-–—]\s+|\s*[–—]\s*|\.(?:\s+(?!\d)|$)|(?<=actually)\s+))+",
    re.IGNORECASE,
)
_POSSIBLE_LEAD = re.compile(rf"^(?:{_MARKERS}(?:\s*[-–—,:;，、：.。]\s*|\s+))+", re.IGNORECASE)
_NO_LONGER = re.compile(r"(?i) no longer\b| nicht mehr\b| ya no\b| n(?:e |['’])(?=\w+ plus\b)|已经不|不再")
"""Words which state that something has ended. The rest of the sentence is the ended statement."""
_NOT = re.compile(r"(?i) (?:(?P<be>is|are|am)|does|do)(?: not|n[’']t)\b")
_ANY_MORE = re.compile(r"(?i) any ?(?:more|longer)\Z")
_PLUS = re.compile(r"(?i)(?<=\w) plus\b")
_CHANGE = re.compile(
    r"(?i)\b(?:now|nowadays|no longer|any ?more|moved|joined|became|switched to|changed to|since (?=\d)|"
    r"jetzt|nicht mehr|inzwischen|umgezogen|maintenant|désormais|déménagé|ahora|ya no|mudó)\b|"
    r"\bn(?:e |['’])\w+ plus\b|现在|改成|改为|不再|今は"
)
"""Words of a sentence that clearly reports a change."""
_IS_NOW = re.compile(
    r"(?i)\b(?:(?:is|are) now|(?:ist|sind|heißt) jetzt|(?:est|sont) (?:maintenant|désormais)|ahora (?:es|son))\b"
)
_FORGET = r"(?:remove|delete|erase|forget|unlist|cross off|cross out)"
_DROP = r"(?:drop|take|get|clear|trash|bin|ditch|cancel|scrap|discard|wipe|strike|purge)"
"""Verbs that may ask to remove a line, but more often are part of a task: "cancel the gym", "take out the trash"."""
_COURTESY = r"\W*(?:(?:please|pls|ok(?:ay)?|now|you can|(?:can|could|would) you)[, ]+)*"
_REMOVAL_COMMAND = re.compile(rf"(?i){_COURTESY}{_FORGET}\s")
_REMOVAL_TASK = re.compile(
    rf"(?i){_COURTESY}(?:{_FORGET}|{_DROP})\s+(?:the|my|our|your|his|her|their|a|an|this|that|these|those|all)\b"
)
_STORED_THING = (
    r"(?:numbers?|(?:phone|mobile)(?=\W*$| (?:i|you|we)\b)|address(?:es)?|e-?mail|lines?|notes?|"
    r"entry|entries|reminders?|to-?dos?|tasks?|rules?|contacts?|items?|lists?|notebook|memory|"
    r"everything (?:about|on|you)|(?:what|thing) (?:i|we) (?:said|told))"
)
_EXPLICIT_REMOVAL = re.compile(
    rf"(?i){_COURTESY}(?:{_FORGET}\b.*\b{_STORED_THING}\b|forget\s+(?:that|about|everything|all)\b|"
    rf"{_DROP}\b.*\b(?:off|from)\b.*\b[\w-]*(?:lists?|to-?dos?)\b|{_DROP}\s+(?:the|that|my|this)\s+{_STORED_THING}\b|"
    r"forget (?:that|what|the)\b.*\b(?:i|we) (?:said|told)|"
    r"(?:cancel|drop|scrap|discard|clear|strike)\s+(?:the|that|my|this|our)\s+(?:[\w’'-]+\s+){1,3}"
    r"(?:reminders?|to-?dos?|notes?|entry|entries)\W*$)"
)
_FOREIGN_FORGET = re.compile(
    r"(?i)\W*(?:bitte,? |s[’']il (?:te|vous) pla[iî]t,? |por favor,? |per favore,? )?"
    r"(?:vergiss|vergesst|vergessen sie|oublie[zs]?|olvida|olvide|olvídate|dimentica|dimenticate|esquece|esqueça"
    r"|vergeet|glöm|glem|zapomnij)\b"
    r"(?P<not>\W+(?:\w+\W+)?(?:pas|não|non|inte|ikke)\b"
    r"|(?:(?!\b(?:dass|daß|dat|was|wat|wie|hoe)\b)[^.,;:!?])*\b(?:nicht|niet)\b)?"
)
"""A request to forget something, or with the group `not` a reminder, in languages other than English."""


class StoredLine(Protocol):
    """A line of a notebook file or of a page. `box` is None if it has no checkbox."""

    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def box(self) -> str | None: ...


Line = TypeVar("Line", bound=StoredLine)
Item = TypeVar("Item")


class FinishedTask(NamedTuple):
    """A task that a sentence reports as finished.

    `is_explicit` is True for words such as "done: …" or "tick it off". If `verb` is not "", only a to-do that
    contains this verb can match.
    """

    text: str
    is_explicit: bool = False
    verb: str = ""


def find_subject(text: str, lines: Iterable[Line]) -> list[Line]:
    """Return the lines with the words that identify the subject of a sentence, or the best of them.

    Every required word must be in the line, its section title or its path, and at least one of them in the line or
    the title. Words of _HINT_CLASSES only make a match better, unless the sentence has no other words.
    """
    needed: dict[str, None] = {}
    hints: dict[str, None] = {}
    for word in classifier.tag_words(text, classifier.guess_language(text)):
        if not _COMMAND_CLASSES.intersection(word.classes):
            (hints if _HINT_CLASSES.intersection(word.classes) else needed)[word.text] = None
    if not needed:
        needed, hints = hints, {}
    if not needed:
        return []
    stems = {stem for word in needed for stem in _stems(word)}

    def rank(line: Line) -> int:
        within, section = _Words(line.text), _Words(line.section)
        around = _Words(f"{line.section} {line.path}")
        is_named = any(word in within or word in section for word in needed)
        if not is_named or not all(word in within or word in around for word in needed):
            return 0
        return 1 + sum(word in within for word in hints) + (len(hints) + 1) * (within.stems == stems)

    return best_matches(lines, rank)


def best_matches(items: "Iterable[Item]", rank: "Callable[[Item], int]") -> "list[Item]":
    """Return the items with the highest rank, or [] if no rank is above 0."""
    ranked = [(rank(item), item) for item in items]
    best = max((rank for rank, _ in ranked), default=0)
    return [item for rank, item in ranked if rank == best > 0]


def is_removal_command(text: str) -> bool:
    """Return True if a sentence asks to remove something from the notebook.

    "Take out the trash" and "Sarah no longer eats pork" do not.
    """
    if is_foreign_forget(text):
        return True
    if is_foreign_reminder(text):
        return False
    if ended_statement(text):
        return False
    language = classifier.guess_language(text)
    if language == "en":
        return bool(_REMOVAL_COMMAND.match(text)) or names_stored_thing(text)
    return any("REMOVE" in word.classes for word in classifier.tag_words(text, language))


def is_foreign_forget(text: str) -> bool:
    """Return True if a sentence in a language other than English asks to forget something."""
    match = _FOREIGN_FORGET.match(text[:MAX_SENTENCE])
    return match is not None and not match["not"]


def is_foreign_reminder(text: str) -> bool:
    """Return True if a sentence such as "Vergiss die Milch nicht" asks not to forget something."""
    match = _FOREIGN_FORGET.match(text[:MAX_SENTENCE])
    return match is not None and bool(match["not"])


def is_removal_task(text: str) -> bool:
    """Return True for a task with a verb that may also ask to remove a line, such as "Clear the gutters"."""
    return bool(_REMOVAL_TASK.match(text))


def cancels(text: str) -> bool:
    """Return True if a sentence that removes a to-do cancels it ("cancel …") rather than reports it as done."""
    return bool(re.match(rf"(?i){_COURTESY}cancel\s", text))


def names_stored_thing(text: str) -> bool:
    """Return True if a sentence asks to remove something stored, such as a list, a number, a line or a statement.

    Such a sentence cannot be a note.
    """
    if is_foreign_forget(text):
        return True
    language = classifier.guess_language(text)
    if language == "en":
        return bool(_EXPLICIT_REMOVAL.match(text))
    classes = {name for word in classifier.tag_words(text, language) for name in word.classes}
    return "REMOVE" in classes and bool(classes & {"LIST", "MEMORY", "REACH"})


def find_removed(text: str, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that a sentence asks to remove.

    "Remove the battery" may be a task, so without a word such as "note" or "list" an English sentence matches only
    items in lists/. Of these, items with a checkbox match only if the sentence says "cross" or "unlist".
    """
    if classifier.guess_language(text) == "en" and not names_stored_thing(text):
        crossed = bool(re.search(r"(?i)\b(?:cross|unlist)\b", text))
        lines = [
            line for line in lines if line.path.startswith(f"{LISTS}/") and (crossed or line.box is None)
        ]
    return find_subject(text, (line for line in lines if _has_named_detail(text, line)))


_DETAILS = (
    (
        re.compile(
            r"(?i)\b(?:\w*number|phone|mobile|\w*nummer|num[ée]ro|número|tel[eé]fono)\b|电话|号码|電話"
        ),
        r"\d(?:[ ()/.-]*\d){4}",
    ),
    (re.compile(r"(?i)\be-?mail\b|邮箱|メール"), r"@"),
    (re.compile(r"(?i)\b(?:address|adresse|dirección)\b|地址|住所"), r"\d|@|(?i:liv|wohn|habit|viv)|住"),
)
"""Pairs of patterns: words for a detail of a person, and lines that contain such a detail."""


def _has_named_detail(text: str, line: StoredLine) -> bool:
    """Return False if a sentence names a number or an address that the line does not contain."""
    for words, shape in _DETAILS:
        match = words.search(text)
        if match and not re.search(shape, line.text) and match[0].casefold() not in line.text.casefold():
            return False
    return True


def _plain(text: str) -> str:
    """Return up to MAX_SENTENCE characters of a text, with single spaces and without final punctuation."""
    return " ".join(text[:MAX_SENTENCE].split()).rstrip(" .!?。！,;:")


def finished_task(text: str) -> FinishedTask | None:
    """Return the task that a sentence reports as finished, or None if it reports none."""
    text = " ".join(text.split())
    if len(text) > MAX_SENTENCE or _NOT_DONE.search(text):
        return None
    match = _DONE_FIRST.fullmatch(text)
    if match and match["task"].strip():
        return FinishedTask(match["task"].strip(), is_explicit=True)
    match = _DONE_LAST.search(text)
    before = text[: match.start()].rstrip(" ,，、：:") if match else ""
    before = next((before.removesuffix(verb) for verb in _IS if before.casefold().endswith(verb)), before)
    if before.strip():
        return FinishedTask(before.strip())
    match = _CROSS_OFF.fullmatch(text)
    if match:
        return FinishedTask((match["task"] or match["named"]).strip(), is_explicit=True)
    plain = _ASIDE_LAST.sub("", _ASIDE_FIRST.sub("", text.rstrip(".!。 "), count=1)).rstrip(" ,.!")
    plain = plain.partition(", ")[0]  # without a remark: "the insurance is renewed, forty euros more"
    match = _HAVE_DONE.fullmatch(plain)
    if match:
        return FinishedTask(match["task"].strip())
    return _report_without_person(plain, is_explicit=bool(_TICKED_OFF.search(text)))


def _report_without_person(text: str, *, is_explicit: bool) -> FinishedTask | None:
    """Return the task of a report that does not mention who finished it, or None.

    The verb of the report must also be in the to-do, unless it is one of _GENERAL_VERBS.
    """
    match = _UNSPACED_DONE.fullmatch(text)
    if match:
        thing, verb = match["what"] or match["object"], match["verb"] or match["stem"]
        return FinishedTask(f"{verb}{thing}", verb=verb)
    match = _PASSIVE.fullmatch(text)
    if match:
        if match["verb"].casefold() in _GENERAL_VERBS:
            return FinishedTask(match["what"], is_explicit=True)
        return FinishedTask(f"{match['verb']} {match['what']}{match['rest']}", is_explicit, match["verb"])
    match = _BARE_PAST.fullmatch(text)
    if match is None:
        return None
    if match["verb"].casefold() in _GENERAL_VERBS:
        return FinishedTask(match[0][len(match["verb"]) :].strip(), is_explicit)
    return FinishedTask(match[0], is_explicit, match["verb"])


def says_finished(text: str) -> bool:
    """Return True if a sentence explicitly states that a task is finished, unlike "I paid Tom 40 euros"."""
    task = finished_task(text)
    return task is not None and (
        task.is_explicit or bool(re.match(r"(?i)finished|completed|done", task.text))
    )


def bought_thing(task: str) -> str:
    """Return the thing that was bought, as in "bought the rice", or "" if the task is not a purchase."""
    match = _BOUGHT.match(task)
    return task[match.end() :] if match else ""


def reports_finished(text: str) -> bool:
    """Return True for a report about a task such as "sent yesterday", "I have paid it" or "it is done"."""
    return finished_task(text) is not None or bool(_DONE_ALONE.match(text.strip()))


def find_task(task: str, lines: Iterable[Line], least: int = 1, verb: str = "") -> list[Line]:
    """Return the open to-dos among the lines that share the most words with a finished task.

    The shared words must be at least half of the words of the task, 60 % of the words of the task or the to-do,
    whichever is shorter, and `least` words (or all words of a shorter to-do). The to-do must also contain every name
    in the task, and `verb` if it is given.
    """
    tagged = classifier.tag_words(task, classifier.guess_language(task))
    words = [word.text for word in tagged if _tells(word)]
    names = [word.text for word in tagged[1:] if "NAME" in word.classes]
    possessive = any("POSSESSIVE" in word.classes for word in tagged)

    def shared_words(line: Line) -> int:
        within = _Words(line.text)
        shared = sum(word in within for word in words)
        if possessive and not re.search(r"['’]s\b", line.text):
            return 0  # "I called Anna's brother" does not finish "Call Anna"
        if verb and verb not in within:
            return 0  # "the flights are cancelled" does not finish "Book the flights"
        if shared < min(least, len(within)) or not all(name in within for name in names):
            return 0
        return shared if shared >= max(0.6 * min(len(words), len(within)), 0.5 * len(words)) else 0

    return best_matches(lines, shared_words)


def find_corrected(text: str, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that state another value for the same attribute of the same subject."""
    rest = _POSSIBLE_LEAD.sub("", text.strip()) or text
    new = _Statement(rest)
    return [line for line in lines if line.box is None and new.corrects(_Statement(line.text))]


def ended_statement(text: str) -> str:
    """Return the statement that a sentence reports as ended, or "" if there is none.

    For "Rob doesn't work at Hill any more" this is "Rob work at Hill".
    """
    plain = _plain(text)
    negated = _NOT.search(plain) if _ANY_MORE.search(plain) else None
    match = negated or _NO_LONGER.search(plain)
    if match is None or not match.start():
        return ""
    who = _POSSIBLE_LEAD.sub("", plain[: match.start()]) or plain[: match.start()]
    be = f" {negated['be']}" if negated and negated["be"] else ""
    rest = _ANY_MORE.sub("", plain[match.end() :])
    if match[0][1:2] == "n" and match[0][-1] in " '’":  # French: ne … plus
        rest = " " + _PLUS.sub("", rest, count=1)
    return f"{who}{be}{rest}" if rest.strip() else ""


def tells_change(text: str) -> bool:
    """Return True if a sentence clearly reports that something has changed, as in "Jo works at Acme now"."""
    return bool(_CHANGE.search(text[:MAX_SENTENCE]))


def names_new_value(text: str) -> bool:
    """Return True for a sentence such as "My dentist is now Dr. Fern", which replaces the earlier value."""
    return bool(_IS_NOW.search(text[:MAX_SENTENCE]))


def find_ended(statement: str, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that begin with the words of an ended statement."""
    ended = _Statement(statement)
    return [line for line in lines if line.box is None and ended.is_said_by(_Statement(line.text))]


def similar_subject(text: str, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that share a name, or at least two words other than function words, with a sentence."""
    tagged = classifier.tag_words(_POSSIBLE_LEAD.sub("", text.strip()), classifier.guess_language(text))
    words = [word for word in tagged if _tells(word)]
    chosen = []
    for line in lines:
        within = _Words(line.text)
        shared = [word for word in words if word.text in within]
        if len(shared) > 1 or any("NAME" in word.classes for word in shared):
            chosen.append(line)
    return chosen


def strip_correction(text: str) -> str:
    """Remove the words that announce a correction, such as "no," or "actually:", if punctuation follows them."""
    text = text.strip()
    rest = _CORRECTION_LEAD.sub("", text).strip()
    return rest[:1].upper() + rest[1:] if rest and rest != text else text


def _tells(word: classifier.TaggedWord) -> bool:
    """Return True for a content word, as opposed to a function word such as "the"."""
    return not {
        "THE",
        "PREP",
        "COMMA",
        "POSSESSIVE",
        "PLEASE",
        "BE",
        "NOT",
        "FIX",
        "NOW",
        "MY",
        "I",
    }.intersection(word.classes)


class _Statement:
    """The words of a statement in order, used to compare its subject, verb and value with another statement."""

    def __init__(self, text: str) -> None:
        language = classifier.guess_language(text)
        tagged = [word for word in classifier.tag_words(text, language) if "THE" not in word.classes]
        self._text = text
        self._words = [
            word
            for word in tagged
            if "POSSESSIVE" not in word.classes and not {"NOW", "PLEASE"} & set(word.classes)
        ]
        self._keys = [
            "be" if "BE" in word.classes else " ".join(sorted(_stems(word.text))) or word.text
            for word in self._words
        ]

    def corrects(self, old: "_Statement") -> bool:
        """Return True if both statements have the same subject and verb, and values of the same kind.

        A statement with "not" before the old value also corrects the old statement. A negative old statement is
        never corrected.
        """
        count = 0
        for mine, other in zip(self._keys, old._keys, strict=False):
            if mine != other:
                break
            count += 1
        value, old_value = self._words[count:], old._words[count:]
        if count < 2 or not value or not old_value or not self._same_names(old, count) or old._is_negative():
            return False
        if any("NOT" in word.classes for word in self._words[: count + 1]):
            return False
        if all("NAME" in word.classes for word in self._words[:count]):
            return False  # only the subject is the same
        prefers = any("LIKE" in word.classes for word in self._words[:count])
        if prefers and value[0].text == "," and old_value[0].text in ("to", "over"):
            return False  # "prefers tea, not coffee" says the same as "prefers tea to coffee"
        if self._denies({key for key in old._keys[count:] if key not in self._keys[:count]}):
            return True
        weak = {"be", "ha", "hav", "have", "has"}
        if weak.intersection(self._keys[:count]) and self._keys[count - 1] in weak:
            both_numbers = all(_has_number(words) for words in (value, old_value))
            both_names = all("NAME" in words[0].classes for words in (value, old_value))
            return (both_numbers or both_names) and not _preposition(value) and not _preposition(old_value)
        return _preposition(value) == _preposition(old_value)

    def is_said_by(self, line: "_Statement") -> bool:
        """Return True if a line begins with the words of this statement and contains no negation."""
        count = len(self._keys)
        return (
            count > 1
            and line._keys[:count] == self._keys
            and not line._is_negative()
            and self._same_names(line, 1)
        )

    def _is_negative(self) -> bool:
        return any({"NOT", "DO_NOT"}.intersection(word.classes) for word in self._words)

    def _same_names(self, other: "_Statement", count: int) -> bool:
        """Return True if `other` capitalizes all names that the first `count` words of this statement capitalize."""
        names = [word.text for word in self._words[:count] if "NAME" in word.classes]
        return all(
            re.search(rf"(?<!\w){re.escape(name.title())}", statement._text)
            for name in names
            for statement in (self, other)
            if name.title() in self._text
        )

    def _denies(self, keys: set[str]) -> bool:
        """Return True if one of the words follows a "not" in this statement."""
        places = [place for place, word in enumerate(self._words) if "NOT" in word.classes]
        return any(keys.intersection(self._keys[place + 1 :]) for place in places)


def _has_number(words: list[classifier.TaggedWord]) -> bool:
    return any(re.search(r"\d|[一二三四五六七八九十]", word.text) for word in words)


def _preposition(words: list[classifier.TaggedWord]) -> str:
    return words[0].text if "PREP" in words[0].classes else ""


class _Words:
    """The words of a text that carry its meaning.

    They are compared by stem, so plural and past tense do not matter. In scripts without spaces, a text
    contains a word if the characters of the word occur anywhere in the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        language = classifier.guess_language(text)
        self._unspaced = language in ("zh", "ja")
        self._words = [word.text for word in classifier.tag_words(text, language) if _tells(word)]
        self.stems = _stems(self._text)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: str) -> bool:
        if self._unspaced:
            return word in self._text
        return _stems(word.casefold()) <= self.stems


def _stems(text: str) -> set[str]:
    return {_stem(part) for part in re.findall(r"[^\W_]+", text)}


_FRENCH_PARTICIPLE = re.compile(r"ée?s?\Z")
_GERMAN_PARTICIPLE = re.compile(r"\A(ab|an|auf|aus|ein|mit|nach|vor|weg|zu|zurück)?ge(\w{3,}?)(?:e?t|en)\Z")


def _stem(word: str) -> str:
    word = _GERMAN_PARTICIPLE.sub(r"\1\2", _PAST.get(word, word))
    word = _FRENCH_PARTICIPLE.sub("er", word)
    for end in ("ing", "ied", "ies", "ed", "es", "en", "s", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    if word.endswith("y") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word

"""Choose the kind, file and section for a note, and add the lines that the file does not contain yet.

A sentence is classified in up to three steps, each only if the previous step is unsure: by its words
(classifier.py), then for English also by the rules of routing_rules.toml, and finally by its embedding. A
rule has a kind, points and a pattern. `python -m bench notebook` measures this on labelled sentences.
"""

import os
import re
import tomllib
from array import array
from collections.abc import Callable
from functools import cache, cached_property
from typing import NamedTuple

from quaid.errors import InvalidArgument
from quaid.folders.page_writer import check_page_path
from quaid.formats import sections
from quaid.model import plain_text, slug as slugs
from quaid.notebook import classifier
from quaid.notebook.changes import is_foreign_forget, is_foreign_reminder, strip_correction
from quaid.notebook.layout import DAILY, LISTS, NOTEBOOK_FOLDERS

MAX_LIST_SENTENCE = 2_000
"""A sentence with more characters is not searched for the name of a list."""

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


@cache
def _list_forms() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of sentences that name a list. Compiled on first use, because that takes 15 ms."""
    return tuple(
        re.compile(rf"(?is)^{_POLITE}{source}$")
        for source in (
            # as in "Add Dune to my reading list"
            rf"{_PUT} (?P<items>.+),? {_ONTO} {_WHOSE} (?P<list>{_PHRASE})(?:,? (?:please|too|as well))?",
            # Add to my reading list: Dune. New on my list of restaurants: Noma. Reading list: Dune
            rf"(?:(?:{_PUT}|new)?(?: (?:this|these|one|entry|item|thing))? ?{_ONTO} )?(?:{_WHOSE} )?"
            rf"(?P<list>{_PHRASE})(?: *[:=] *| +[—–-] +)(?P<items>.+)",
            # Dune goes on my reading list. Dune, for the reading list
            rf"(?P<items>.+?),? (?:(?:goes|go|belongs?|should go|should be|has to go|needs to go|can go) {_ONTO}|for)"
            rf" {_WHOSE} (?P<list>{_PHRASE})(?: please)?",
        )
    )


_LIST_WORDS = ("list", "zettel", "清单", "列表", "单", "リスト")
_OTHER_LANGUAGE_LISTS = {
    "fr": (
        r"(?:r?ajoute[rz]?|mets|mett(?:re|ez)|note[rz]?|inscri(?:s|re|vez)|enregistre[rz]?) (?P<items>.+?) (?:à|sur|dans)"
        r" (?:ma|la|notre|une) liste (?P<list>[^:]+?)(?: ?: ?(?P<more>.+))?",
        r"(?:(?:à mettre |r?ajoute[rz]? )?(?:sur|dans|à) )?(?:ma |la |notre )?liste (?P<list>[^:]+?) ?: ?(?P<items>.+)",
    ),
    "de": (
        r"(?:setze?|schreibe?|packe?|füge?|trage?|notiere?|nimm|tu) (?P<items>.+?) (?:auf|zu|zur|in|an)"
        r" (?:(?:die|der|den|dem|mein\w*|unser\w*) )?(?P<list>\w*liste(?: (?:der|für|mit|von) .+?)?|\w+zettel)"
        r"(?: (?:hinzu|ein|auf))?",
        r"(?:auf (?:die |den |mein\w* |unser\w* )?)?(?P<list>[\w-]*liste|\w+zettel) ?: ?(?P<items>.+)",
        r"(?P<items>.+?) (?:kommt|gehört|soll|muss) (?:noch )?auf (?:die|den|mein\w*|unser\w*) (?P<list>\w*liste|\w+zettel)",
    ),
    "es": (
        r"(?:añad[ei]r?|agregar?|pon(?:er)?|apuntar?|meter?|incluye|anotar?|sumar?|guardar?) (?P<items>.+?) (?:a|en)"
        r" (?:mi|la|nuestra|una) lista (?P<list>[^:]+?)(?: ?: ?(?P<more>.+))?",
        r"(?:(?:en|a) )?(?:(?:mi|la|nuestra) )?lista (?P<list>[^:]+?) ?: ?(?P<items>.+)",
    ),
    "zh": (
        r"(?:请|帮我|麻烦)*把(?P<items>.+?)(?:添?加[到入进在]?|放[到进入]|写[到进]|记[到在]|列入|收[进到]|存到)(?:我的|我们的)?"
        r"(?P<list>[^：:]*?(?:清单|列表|单子|[书歌名片]单))[里中上]?(?:[：:](?P<more>.+))?",
        r"(?:在|往)?(?:我的|我们的)?(?P<list>[^：:]*?(?:清单|列表|单子|[书歌名片]单))[里中上]?"
        r"(?:[：:]|添加|加[上入]|新增|加(?:一?[本部个台张首款])?)(?P<items>.+)",
    ),
    "ja": (
        r"(?P<items>.+?)を(?P<list>[^：:、]*?リスト)に(?:追加|入れ|加え|載せ|登録)[^：:]*(?:[：:](?P<more>.+))?",
        r"(?P<list>[^：:、]*?リスト)(?:に|へ)(?P<items>.+?)を?(?:追加|入れ|加え|載せ|登録)(?:し?て|る|ておいて|して(?:おいて|ください))?",
        r"(?P<list>[^：:、]*?リスト)[：:](?P<items>.+)",
        r"(?P<list>[^：:、]*?リスト)に(?P<items>[^をはが]+)",
    ),
}
_LIST_ARTICLE = re.compile(
    r"(?i)^(?:(?:de la|de las|de los|del|de|des|du|d['’]|pour|para|por|à|liste (?:der|für|mit|von))\s*)+"
)


def _find_other_list(text: str) -> tuple[str, str] | None:
    """Like `find_named_list`, for a sentence in a language other than English."""
    language = classifier.guess_language(text)
    for source in _OTHER_LANGUAGE_LISTS.get(language, ()):
        match = re.fullmatch(source, text, re.IGNORECASE)
        if match:
            parts = match.groupdict()
            name = parts["list"].removeprefix("我的").removeprefix("私の")
            name = _LIST_ARTICLE.sub("", name).strip(" ,") or name
            return name, (parts.get("more") or parts["items"]).strip(" ,，、")
    return None


_LIST_NAME = re.compile(
    r"(?is)(?P<before>.*?)[ -]?list(?: (?P<by>of|for) (?:(?:my|the|our|all|a) )?(?P<after>.*))?"
)
_OTHER_LISTS = re.compile(
    r"(?i)(?:.*\b)?(?:mailing|waiting|wait|distribution|black|white|block|allow|deny|price)"
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^“”]+)”|«([^«»]+)»|(?<!\w)'([^']+)'(?!\w)")
_BETWEEN_QUOTED = re.compile(r"(?i)[\s,;&]*(?:and[\s,]*)?")
_PLURAL = re.compile(r"(?<=[^s\W])s\b")

KNOWN_LISTS = {
    **dict.fromkeys(
        ("shopping", "grocery", "groceries", "supermarket", "things to buy", "to buy"), "shopping"
    ),
    **dict.fromkeys(("to-do", "to do", "todo", "to-dos", "todos", "task", "tasks", "things to do"), "todos"),
    **dict.fromkeys(("contact", "contacts"), "contacts"),
    **dict.fromkeys(("courses", "achats", "commissions", "einkaufsliste", "einkaufszettel"), "shopping"),
    **dict.fromkeys(("compra", "la compra", "compras", "súper", "supermercado"), "shopping"),
    **dict.fromkeys(
        ("购物清单", "采购清单", "购物列表", "购物单", "買い物リスト", "お買い物リスト"), "shopping"
    ),
    **dict.fromkeys(("tâches", "choses à faire", "faire", "todo-liste", "aufgabenliste"), "todos"),
    **dict.fromkeys(("tareas", "pendientes", "待办清单", "待办列表", "任务清单", "やることリスト"), "todos"),
}
"""List names that map to a note kind."""


def find_named_list(text: str) -> tuple[str, str] | None:
    """Return the name of the list that a sentence adds to, and the items to add, or None if it names no list.

    The name is "" for "the list".
    """
    text = text.strip().rstrip(".!")
    if len(text) > MAX_LIST_SENTENCE or not _names_list(text):
        return None
    for form in _list_forms() if "list" in text.lower() else ():
        match = form.match(text)
        if match and not _OTHER_LISTS.fullmatch(match["list"][: -len("list")].rstrip(" -")):
            items = match["items"].strip(" ,")
            name = _list_name(match["list"])
            if items and name is not None:
                return name, items
    return _find_other_list(text)


def _names_list(text: str) -> bool:
    return any(word in text.lower() for word in _LIST_WORDS)


def list_path(name: str, paths: tuple[str, ...]) -> str:
    """Return the path of a list's file: an existing file with a matching name, else a new path."""
    keys = (_list_key(name), slugs.escaped_from_path(name))  # earlier versions escaped non-Latin scripts
    for path in paths:
        if path.startswith(f"{LISTS}/") and _list_key(path[len(LISTS) + 1 :].removesuffix(".md")) in keys:
            return path
    return f"{LISTS}/{slugs.segment(name.replace('’', '').replace(chr(39), ''))[:100].strip('-')}.md"


def quoted_titles(items: str) -> list[str]:
    """Return the titles if the text consists only of quoted titles, else []."""
    rest = _QUOTED.sub("\0", items)
    if not all(not part or _BETWEEN_QUOTED.fullmatch(part) for part in rest.split("\0")) or "\0" not in rest:
        return []
    return [next(filter(None, groups)).strip() for groups in _QUOTED.findall(items)]


def _list_name(phrase: str) -> str | None:
    match = _LIST_NAME.fullmatch(phrase)
    if match is None:
        return None
    before, after = " ".join(match["before"].split()), " ".join((match["after"] or "").split())
    return f"{before} {match['by']} {after}" if before and after else before or after


def _list_key(name: str) -> str:
    """Return a key that is equal for spelling variants: "Reading List", "reading-list" and "reading"."""
    words = slugs.segment(name).replace("_", "-").split("-")
    telling = [word for word in words if word != "list"] or words
    return _PLURAL.sub("", " ".join(telling))


class NoteKind(NamedTuple):
    """A kind of note: its file, its section, and True if its lines are checkboxes."""

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


KIND_OF = {
    "todo": "todos",
    "shopping": "shopping",
    "contact": "contacts",
    "order": "standing-orders",
    "preference": "preferences",
    "pattern": "patterns",
    "fact": "facts",
}
"""The kind of note for each category that has a separate file."""

CATEGORY_ARGUMENTS = {**KIND_OF, "list": "lists"}
"""The categories named in results, each with the value of the `category` argument that selects it."""


class _RoutingRules:
    """The patterns and rules of routing_rules.toml. They are compiled at first use, because that takes 60 ms."""

    def __init__(self) -> None:
        with open(os.path.join(os.path.dirname(__file__), "routing_rules.toml"), "rb") as file:
            data = tomllib.load(file)
        letters = [chr(code) for code in range(0x41, 0x530)]
        self.patterns = {
            "UPPER": "".join(letter for letter in letters if letter.isupper()),
            "LOWER": "".join(letter for letter in letters if letter.islower()),
        }
        for name, source in data["patterns"].items():
            self.patterns[name] = self._expanded(source)
        self._sources = data["rules"]

    @cached_property
    def rules(self) -> list[tuple[str, float, re.Pattern[str]]]:
        return [
            (kind, points, re.compile(self._expanded(source), 0 if case else re.IGNORECASE))
            for kind, rules in self._sources.items()
            for points, source, *case in rules
        ]

    def _expanded(self, source: str) -> str:
        return re.sub(r"%([A-Z_]+)%", lambda match: self.patterns[match[1]], source.replace("\n", ""))


_rules = cache(_RoutingRules)


@cache
def _pattern(name: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a compiled pattern of routing_rules.toml."""
    return re.compile(_rules().patterns[name], flags)


_ITEM_SEPARATOR = re.compile(r",(?![0-9])\s*(?:and\s+)?|;|(?<=\s)and\s+|&|\n", re.IGNORECASE)
_SEMICOLON = re.compile(r"[;；\n]")
_BRACKETED = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]")
_TODO_LABEL = re.compile(
    r"(?i)(?:my |our )?(?:to[- ]?dos?|tasks?|to[- ]?do list|à faire|aufgaben?|tareas?|待办|やること)\s*[:：]\s*(?=\S)"
)
_OTHER_SEPARATORS = {
    "fr": r"\s+et\s+|\s*[,;&\n]\s*",
    "de": r"\s+und\s+|\s*[,;&\n]\s*",
    "es": r"\s+[ye]\s+|\s*[,;&\n]\s*",
    "zh": r"[、，,;；\n]|(?<=\w)(?:和|还有|以及)(?=\w)",
    "ja": r"[、，,;；\n]|(?<=\w)と(?=\w)",
}
_OTHER_SHOPPING = {
    "fr": r"(?:.*?\b(?:racheter|acheter|achète|achetez|prends?|prendre|commander?|ramener?|ramène|rapporter?|rapporte|"
    r"besoin|courses\s*:|plus|manque|faut|faudrait)\s+)?(?:(?:du|de la|des|de|un peu de|le|la|les)\s+|(?:de l|d|l)['’])?"
    r"(?P<items>.+?)"
    r"(?:\s+(?:au|à la|en|dans|sur)\s+(?:supermarché|marché|boulangerie|pharmacie|rentrant|la liste.*))?",
    "de": r"(?:(?:bitte\s+)?(?:kaufe?|besorge?|hole?|bringe?|bestelle?)\s+(?:bitte\s+|noch\s+)*|.*?\b(?:brauchen|brauche|"
    r"fehlt|fehlen|haben)(?:\s+(?:wir|ich))?\s+(?:noch\s+|keine?n?\s+)*|(?:einkaufen|einkaufszettel|einkaufsliste)\s*:"
    r"\s*)?(?P<items>.+?)(?:\s+(?:mehr|kaufen|besorgen|holen|mitbringen|mit|bestellen|nachkaufen|ist (?:fast )?(?:alle|"
    r"leer)|sind (?:fast )?(?:alle|leer)|geht zur neige))?",
    "es": r"(?:.*?\b(?:comprar?|compra|trae|traer|pedir|coger?|necesitamos|necesito|faltan?|falta|hacen? falta|quedado sin|"
    r"quedan?|acabó|acabado|acabando|terminado|terminó)(?:\s*:)?\s+)?(?:(?:el|la|los|las|de|unos|unas)\s+)?(?P<items>.+?)"
    r"(?:\s+(?:en|del) (?:el |la )?(?:súper|supermercado|mercado|panadería|farmacia))?",
    "zh": r"(?:.*?(?:购买|[要该再得去]?买[点些]?|带[点些]|下单|订|家里没有|没有|缺|购物[:：]|需要(?!买)))?"
    r"(?P<items>.+?)(?:都?快?(?:没有?|用完|喝完|吃完|不多|见底|该买|不够)?了)?[。！]?",
    "ja": r"(?:(?:.*?(?:スーパー|薬局|コンビニ|帰り)[でに])?)(?P<items>.+?)(?:(?:を|が|は|も)?(?:買(?:う|って.*|わ.*|い.*)|必要.*|"
    r"注文.*|欲しい.*|切れ.*|切らし.*|なくな.*|無くな.*|もうない.*|残り少ない.*|足りない.*|補充.*))?[。！]?",
}
"""Patterns of shopping sentences in languages other than English. The group `items` matches the items."""
_OTHER_ARTICLE = re.compile(
    r"(?i)^(?:du|de la|de l['’]|des|d['’]|le|la|les|el|los|las|einen?|une?|una?)\s*(?<=[\s'’])(?=\S)"
)
_OTHER_TODO_LEADS = re.compile(
    r"(?i)^(?:rappelle-moi (?:de |d['’])|rappelez-moi (?:de |d['’])|n['’]oublie pas (?:de |d['’])|pense[rz]? à |à faire ?: ?|"
    r"erinn?ere? mich (?:bitte )?(?:daran|dran)?,? |(?:vergiss nicht|nicht vergessen|denk (?:daran|dran))[,:]? |"
    r"aufgabe: |recuérdame (?:que )?|no (?:te )?olvides? (?:de )?|acuérdate de |tarea: |提醒我|记得|别忘了|别忘记|待办[:：]|"
    r"やること[:：])(?=.*\w)"
)
_LIST_MARK = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]?\]\s*)?")
_NOT_A_PERSON = frozenset(
    """the my our your you new email emergency contact home reach phone mobile address birthday call remember i he she they
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december slack signal whatsapp""".split()
)

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
    (
        re.compile(r"[,;]?(?<!\s)\s+(?:btw|by the way|fyi|please|pls|thanks|thank you)[.!]?$", re.IGNORECASE),
        "",
    ),
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
"""Maximum characters of a sentence that is split into shopping items."""

MAX_ROUTED_LENGTH = classifier.MAX_CLASSIFIED_LENGTH


Embed = Callable[[str], bytes]
"""A function that returns the embedding of a sentence by the built-in model."""

SURE, UNSURE, NEAR = 0.8, 0.35, 0.12
"""Limits for the probability of the best category, and of other categories.

Above SURE, no further step is taken. Below UNSURE, a note is written as a fact. Other categories above NEAR
are returned as close.
"""

LISTED_AS = {"shopping": "shopping", "todos": "todo", "contacts": "contact"}
"""Maps the kind of a named list to the category of the sentence."""


_ASKED = re.compile(r"\w[\W]*[?？]\W*$")
_REQUEST = re.compile(
    r"(?i)\W*(?:please|(?:can|could|would|will) you|peux-tu|pourrais-tu|pouvez-vous|tu peux|kannst du|könntest du|"
    r"würdest du|puedes|podrías|能不能|能|可以|请|帮)|.*(?:くれる|くれますか|もらえ|ください)"
)
"""Matches a request in the form of a question, as in "Could you add milk to the list?\""""


_OFF_LIST = re.compile(r"(?i)\b(?:off|from)(?: of)? (?:my|the|our) (?:[\w-]+ ){0,2}list\b")
"""Matches words of a sentence that removes something, as in "get the eggs off the shopping list\""""


_FORGET_STATEMENT = re.compile(r"(?i)\W*(?:please |ok(?:ay)?,? )?forget (?:that|about|everything)\s")
_NOT_TO_BUY = re.compile(
    r"(?i)\W*(?:please )?(?:don[’']?t|do not|never)(?: ever)? (?:buy|order|get|purchase)\b"
)
_PRONOUN = "(?:i|you|we|he|she|it|they|there|this|that|these|those)"
_AUXILIARY = (
    "(?:is|are|was|were|am|do|does|did|can|could|will|would|should|has|have|had|may|might|must|isn[’']t|"
    "aren[’']t|wasn[’']t|don[’']t|doesn[’']t|didn[’']t)"
)
_ENGLISH_QUESTION = re.compile(
    rf"(?i)(?:(?:and|so|hey|ok(?:ay)?),? )*(?:(?:what|when|where|who|why|how)(?:[’']?s|[’']re| {_AUXILIARY})\b(?!.* is\b)|"
    rf"(?:which|whose|how (?:many|much|long|often|old|far|big)|what (?:time|day|date|year|colou?r|size|kind|sort|brand|"
    rf"name|number|address|else))\b(?: [\w’'-]+){{0,3}}? {_AUXILIARY}\b|{_AUXILIARY} {_PRONOUN}\b|"
    r"(?:is|are|was|were|does) (?:the|my|our|your|his|her|their)\b)"
)
_ASKING_WORDS = {
    "zh": r"什么|多少|几|哪|谁|吗|呢|怎么|为什么|是不是|有没有|何时",
    "ja": r"か[。]?$|何|いつ|どこ|誰|だれ|どう|なぜ|どれ|いくら|いくつ|だっけ|っけ",
}


def is_asked(content: str) -> bool:
    """Return True if a sentence has the form of a question: a question mark, or inverted word order."""
    text = content.strip()
    if _ASKED.search(text):
        return True
    language = classifier.guess_language(text)
    if language == "en":
        return ":" not in text and bool(_ENGLISH_QUESTION.match(text))
    if language in _ASKING_WORDS:
        return bool(re.search(_ASKING_WORDS[language], text))
    tagged = classifier.tag_words(text, language)
    if len(tagged) < 2 or any("COMMA" in word.classes for word in tagged):
        return False  # "Wer wagt, gewinnt" is a statement
    if "WHAT" in tagged[0].classes:
        return not {"THE", "MY", "I", "HE", "YOU", "NAME"}.intersection(tagged[1].classes)
    return "DOES" in tagged[0].classes


class Classification(NamedTuple):
    """The category of a sentence, and the categories that were close."""

    category: str
    near: tuple[str, ...]


def classify(content: str, embed: Embed | None = None) -> Classification:
    """Return the category of a sentence, one of classifier.CATEGORIES, and the other categories that were close.

    `embed` is called only for English sentences that words and rules do not classify with certainty.
    """
    if _ASKED.search(content) and not _REQUEST.match(content):
        return Classification("question", ())
    if _FORGET_STATEMENT.match(content) or is_foreign_forget(content):
        return Classification("removal", ())
    if _TODO_LABEL.match(content.lstrip()) or is_foreign_reminder(content):
        return Classification("todo", ())
    shares = _category_shares(content, embed)
    ranked = sorted(shares, key=lambda category: -shares[category])
    if ranked[0] == "question" and not is_asked(content):
        ranked.remove("question")
    if ranked[0] == "shopping" and _NOT_TO_BUY.match(content):
        return Classification("order", ())
    best = ranked[0]
    if best not in ("removal", "question", "correction") or shares[best] < SURE / 2:
        if shares["removal"] >= NEAR and _OFF_LIST.search(content):
            return Classification("removal", ())
        on = find_named_list(strip_lead_in(content))
        if on:
            best = LISTED_AS.get(_list_kind(*on, ()).name, "list")
            return Classification(best, ())
    if shares[best] < UNSURE:
        return Classification("fact", tuple(category for category in ranked[:3] if category != "fact"))
    return Classification(best, tuple(name for name in ranked[1:4] if shares[name] >= NEAR))


def _category_shares(content: str, embed: Embed | None) -> dict[str, float]:
    """Return the probability of each category."""
    text = normalize(content)
    language = classifier.guess_language(text)
    scores = classifier.score_words(text, language)
    shares = classifier.probabilities(scores)
    if language == "en" and max(shares.values()) < SURE and any(scores):
        points = rule_points(text)
        shares = classifier.probabilities(classifier.score_again(scores, points))
        if embed and max(shares.values()) < SURE:
            vector = array("f", embed(text))
            shares = classifier.probabilities(classifier.score_again(scores, points, vector))
    return shares


def normalize(content: str) -> str:
    """Return the part of a note that is classified: its first line, without lead-in and courtesies."""
    return _normalize_sentence(
        strip_lead_in(content[: 2 * MAX_ROUTED_LENGTH]).split("\n", 1)[0][:MAX_ROUTED_LENGTH]
    )


def rule_points(text: str) -> list[float]:
    """Return the points for each kind of note, according to the rules."""
    points = dict.fromkeys(NOTE_KINDS, 0.0)
    for kind, count, pattern in _rules().rules:
        if pattern.search(text):
            points[kind] += count
    return list(points.values())


def route_kind(content: str, among: tuple[str, ...] = ()) -> NoteKind:
    """Return the kind of note that matches best, or facts if no kind is likely.

    If `among` is given, only its kinds are considered.
    """
    shares = _category_shares(content, None)
    kinds = {kind: shares[category] for category, kind in KIND_OF.items() if not among or kind in among}
    if max(kinds.values()) < UNSURE and "facts" in kinds:
        return NOTE_KINDS["facts"]
    return NOTE_KINDS[max(kinds, key=lambda kind: kinds[kind])]


def _normalize_sentence(text: str) -> str:
    """Remove courtesies, and change "the user …" to the first person."""
    for pattern, replacement in _NORMALIZATIONS:
        text = pattern.sub(replacement, text, count=1).strip() or text
    return text


def strip_lead_in(content: str) -> str:
    """Remove a lead-in such as "please remember that"."""
    text = content.strip()
    match = _pattern("LEAD_INS").match(text)
    rest = text[match.end() :].strip() if match else ""
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
        return [_todo_text(task) for task in _labelled_tasks(text)]
    return [_capitalize(text) if text != content.strip() else text]


def _labelled_tasks(text: str) -> list[str]:
    """Return the tasks of a text such as "To do: call Ann; pay the rent".

    Commas separate tasks only if each part begins like a task. A text without a label is one task.
    """
    label = _TODO_LABEL.match(text)
    if label is None:
        return [text]
    rest = text[label.end() :]
    for separator in (_SEMICOLON, _ITEM_SEPARATOR):
        tasks = _split_items(rest, separator)
        if len(tasks) > 1 and (separator is _SEMICOLON or all(map(is_task, tasks))):
            return tasks
    return [rest]


def _todo_text(task: str) -> str:
    """Return a task without words such as "remind me to"."""
    task = _OTHER_TODO_LEADS.sub("", task)
    match = _pattern("TODO_LEADS").match(task)
    rest = _pattern("TODO_TAIL").sub("", task[match.end() :] if match else task)
    return _capitalize(rest.strip() or task)


def _split_items(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split a text into items, but not inside parentheses, as in "batteries (AA, 4 pcs.)"."""
    masked = _BRACKETED.sub(lambda match: "x" * len(match[0]), text)
    ends = [match.span() for match in separator.finditer(masked)]
    starts = [0, *(end for _, end in ends)]
    items = (text[start:end] for start, end in zip(starts, [*(a for a, _ in ends), len(text)], strict=True))
    return [item.strip() for item in items if item.strip()]


def is_task(text: str) -> bool:
    """Return True if a list item is a task, as opposed to something to buy."""
    return bool(_pattern("IMPERATIVE").search(_normalize_sentence(strip_lead_in(text[:MAX_ROUTED_LENGTH]))))


def _list_entries(text: str) -> list[str]:
    """Return the entries for a custom list: quoted titles, or lower-case items separated by commas or "and".

    A title may contain commas and "and", so a text with capitalized parts after the first is one entry.
    """
    titles = quoted_titles(text)
    if titles:
        return titles
    parts = _split_items(_protect_pairs(text.rstrip(".!")), _ITEM_SEPARATOR)
    plain = [part[0].islower() or part[0].isdigit() for part in parts]
    if len(parts) > 1 and all(plain[1:]) and (plain[0] or len(parts) > 2) and not _SENTENCE.search(text):
        return [_capitalize(part.replace(_PAIR_MARK, " and ")) for part in parts]
    return [_capitalize(text)]


def _other_shopping_items(text: str, language: str) -> list[str]:
    """Return the items of a shopping sentence in a language other than English."""
    match = re.fullmatch(_OTHER_SHOPPING[language], text.strip().rstrip(".!。！"), re.IGNORECASE)
    items = match["items"] if match else text
    goods = _split_items(items, re.compile(_OTHER_SEPARATORS[language], re.IGNORECASE))
    return [_capitalize(_OTHER_ARTICLE.sub("", good)) for good in goods] or [text]


def _shopping_items(text: str) -> list[str]:
    language = classifier.guess_language(text)
    if language != "en":
        return _other_shopping_items(text, language)
    text = _pattern("SHOPPING_TAIL").sub("", text.strip().rstrip(".!"))
    match = _pattern("SHOPPING_LEADS").match(text)
    rest = text[match.end() :] if match else text
    rest = _pattern("SHOPPING_TAIL").sub("", rest)
    goods = [_LIST_MARK.sub("", part).strip() for part in _split_items(_protect_pairs(rest), _ITEM_SEPARATOR)]
    if any(good.lower().split()[-1:] in _PRONOUNS for good in goods):
        return [_capitalize(rest)]  # a pronoun indicates a task about the purchase, not another item
    return [_capitalize(good.replace(_PAIR_MARK, " and ")) for good in goods if good] or [text]


_PAIR_MARK = "\0"
_PRONOUNS = (["it"], ["them"], ["him"], ["her"])


def _protect_pairs(text: str) -> str:
    """Protect fixed pairs such as "fish and chips" from being split."""
    return _pattern("FIXED_PAIRS").sub(lambda match: match[0].replace(" and ", _PAIR_MARK), text)


_HAN_PERSON = re.compile(r"(?:[^\W\d_]{1,4}?)(?=さん|先生|くん|ちゃん|的|住|在|は|の)|(?<=叫)[^\W\d_]{2,4}")


def find_person(content: str) -> str:
    """Return the first person named in a note, or ""."""
    language = classifier.guess_language(content[:MAX_ROUTED_LENGTH])
    if language in ("zh", "ja"):
        named = _HAN_PERSON.search(content[:MAX_ROUTED_LENGTH])
        return named[0] if named else ""
    for match in _pattern("PERSON", 0).finditer(
        strip_lead_in(content[: 2 * MAX_ROUTED_LENGTH])[:MAX_ROUTED_LENGTH]
    ):
        words: list[str] = []
        for word in match[0].split():
            name = word.replace("’", "'").removesuffix("'s")
            common = _is_common_word(name.lower(), language)
            if common and words and language == "de":  # as in "Annas Nummer"
                words[-1] = words[-1].removesuffix("s")
                break
            if words or not (common or name.lower() in _NOT_A_PERSON):
                words.append(name)
            if words and name != word:
                break
        if words:
            return " ".join(words)
    return ""


def _is_common_word(word: str, language: str) -> bool:
    """Return True if the lexicon of a language other than English contains the word, so that it is not a name."""
    return language != "en" and bool(classifier.lexicon(language).word_classes(word))


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
    """True if only this section is searched for duplicates, because the same line elsewhere has another meaning."""
    person: bool = False
    """True if the section title is a person's name."""


def choose_target(
    content: str,
    category: str | None,
    file: str | None,
    section: str | None,
    paths: tuple[str, ...] = (),
    guessed: str | None = None,
) -> NoteTarget:
    """Return the destination of a note.

    `paths` are the notebook's files, in which a list or the name `file` is looked up. `guessed` is the kind of
    note, if the caller has determined it already.
    """
    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; write what to remember")
    on = find_named_list(strip_lead_in(content))
    listed = _list_kind(*on, paths) if on else None
    kind = NOTE_KINDS[guessed] if guessed and not listed else _choose_kind(content, category, listed)
    path = kind.path if file is None else _choose_path(file, category, kind, paths)
    named = next((kind for kind in NOTE_KINDS.values() if kind.path == path), None)
    if named:
        kind = named
    elif path != kind.path:
        base = kind if category in NOTE_KINDS else NoteKind("", path, "")
        kind = base._replace(path=path, section=_title_from_path(path))
    if on and listed and listed.path == path:
        content = on[1]
    person = kind.name == "contacts"
    title = _check_section(section) if section else _choose_section(content, kind)
    lines = [sections.sanitize(line) for line in lines_to_write(content, kind)]
    return NoteTarget(path, title, lines, kind.box, bool(section) or person, person)


def category_of(path: str) -> str:
    """Return the category of the notes in a file."""
    category = next((name for name, kind in KIND_OF.items() if NOTE_KINDS[kind].path == path), "")
    return category or ("list" if path.startswith(f"{LISTS}/") else "fact")


def needs_file_list(content: str, file: str | None) -> bool:
    """Return True if `choose_target` needs the list of existing files."""
    return "/" not in file if file else _names_list(content[:MAX_LIST_SENTENCE])


class RememberedLine(NamedTuple):
    """A remembered line and its location."""

    text: str
    path: str
    line: int
    written: bool
    """False if the line already existed."""


class UpdatedNote(NamedTuple):
    text: str
    section: str
    lines: tuple[RememberedLine, ...]


def add_lines(text: str | None, goal: NoteTarget) -> UpdatedNote:
    """Add the lines that the file does not contain. Return the new text and the location of each line."""
    text = text or ""
    if goal.person:
        goal = goal._replace(section=_person_section(text, goal.section))
    new: list[str] = []
    remembered: dict[str, RememberedLine] = {}
    for line in goal.lines:
        existing = _find_existing_line(text, goal, line)
        if existing:
            remembered[line] = RememberedLine(existing.text, goal.path, existing.line, False)
        elif not any(plain_text.same_line(line, other) for other in new):
            new.append(line)
    if new:
        place = sections.find_section(text, goal.section)
        if place is None and not goal.within:
            # If a file of the user has no such section, continue its list instead of starting a second list.
            place = sections.find_opening_list(text)
            goal = goal._replace(section="") if place else goal
        block = sections.format_items(new, text[place.body : place.end] if place else "", goal.box)
        text, number = (
            sections.append_to_place(text, place, block)
            if place
            else sections.append_to_section(text, goal.section, block)
        )
        for line in new:
            remembered[line] = RememberedLine(line, goal.path, number, True)
            number += line.count("\n") + 1
    lines = tuple(remembered[line] for line in goal.lines if line in remembered)
    return UpdatedNote(text, goal.section, lines)


def _find_existing_line(text: str, goal: NoteTarget, line: str) -> sections.ListItem | None:
    """Return the list item with the same content as this line, or None. Ticked items are ignored."""
    place = sections.find_section(text, goal.section) if goal.within else None
    if goal.within and place is None:
        return None
    first = text.count("\n", 0, place.body) + 1 if place else 1
    last = text.count("\n", 0, place.end) + 1 if place else text.count("\n") + 1
    first_line, *more = line.split("\n")
    every = text.split("\n")
    for item in sections.list_items(text):
        if (
            first <= item.line <= last
            and item.box in (None, " ")
            and plain_text.same_line(item.text, first_line)
        ):
            below = every[item.line : item.line + len(more)]
            if [row.strip() for row in below] == [row.strip() for row in more]:
                return item
    return None


def _person_section(text: str, name: str) -> str:
    """Return the title of a person's section.

    This is the name, unless no section has this title and exactly one title contains the name as a word.
    """
    if sections.find_section(text, name):
        return name
    folded = name.casefold()
    alike = [
        section.title
        for section in sections.find_sections(text)
        if folded in section.title.casefold().split()
    ]
    return alike[0] if len(alike) == 1 else name


def _list_kind(name: str, items: str, paths: tuple[str, ...]) -> NoteKind:
    """Return the kind of a named list: a predefined kind, or a file in lists/.

    If `name` is "" (for "the list"), the items decide between to-dos and shopping.
    """
    if name.lower() in KNOWN_LISTS:
        return NOTE_KINDS[KNOWN_LISTS[name.lower()]]
    if name:
        path = list_path(name, paths)
        is_new = path == list_path(name, ())
        return NoteKind("", path, _heading(name.lower()) if is_new else _title_from_path(path))
    return route_kind(items, ("todos", "shopping")) if is_task(items) else NOTE_KINDS["shopping"]


def _choose_kind(content: str, category: str | None, listed: NoteKind | None) -> NoteKind:
    if category in NOTE_KINDS:
        return NOTE_KINDS[category]
    if listed and (category is None or listed.path.startswith(f"{category}/")):
        return listed
    among = tuple(name for name, kind in NOTE_KINDS.items() if kind.path.startswith(f"{category}/"))
    return route_kind(content, among)


def _choose_path(file: str, category: str | None, kind: NoteKind, paths: tuple[str, ...]) -> str:
    """Resolve a path or a bare name to a notebook file. With a category, the file must be in its folder."""
    name = file.strip()
    name = name[:-3] if name.lower().endswith(".md") else name
    if name.lower().endswith(OTHER_ENDINGS):
        raise InvalidArgument(name="file", problem=f"{name[:100]!r} must end with .md, or have no extension")
    folder = kind.path.partition("/")[0]
    begins = name.partition("/")[0].casefold() if "/" in name else ""
    if category is None:
        if name in NOTE_KINDS:
            return NOTE_KINDS[name].path
        matching = [
            path for path in paths if path.endswith(f"/{name}.md") and not path.startswith(f"{DAILY}/")
        ]
        if "/" not in name and len(matching) == 1:
            return matching[0]
    has_folder = begins and (category is None or begins in NOTEBOOK_FOLDERS)
    path = check_page_path(f"{name}.md" if has_folder else f"{folder}/{name}.md", "file")
    if category is not None and not path.startswith(f"{folder}/"):
        problem = f"{path!r} is not in {folder}/, the folder of category {category}; omit one of the two"
        raise InvalidArgument(name="file", problem=problem)
    if begins == DAILY:
        problem = f"{path!r} is a daily log; use daily_log (`quaid log`)"
        raise InvalidArgument(name="file", problem=problem)
    return path


def _choose_section(content: str, kind: NoteKind) -> str:
    if kind.name == "contacts":
        return _check_section(find_person(strip_correction(content)) or kind.section)
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

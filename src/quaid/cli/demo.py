"""`quaid demo`: build a sample memory in a separate folder and run ten example commands on it.

The sample pages are in demo_memory.txt. The user's own memory, notebook and settings are never read.
"""

import os
import sys
import time
from contextlib import redirect_stdout
from shlex import quote, split

from quaid.cli.main import main
from quaid.config import Settings
from quaid.errors import AlreadyExists, InvalidArgument

# Facts that the sample pages do not contain. Some of them follow each other in time, and some contradict each
# other.
FACTS = (
    "people/ines-karvonen lives_in Turku --valid-from 2019-08-01 --source dinner"
    ' --evidence-text "She lives in Turku"',
    "people/ines-karvonen lives_in Galway --valid-from 2026-02-01 --source letter",
    'meetings/2026-09-24-trial lives_in Cork --subject "Ines Karvonen" --source call --valid-from 2026-09-24'
    ' --evidence-text "Ines joined from her home in Cork"',
    "companies/saltmarsh employee_count 3 --valid-from 2024-09-01 --source letter",
    "companies/saltmarsh employee_count 7 --valid-from 2026-09-01 --source visit",
)
REMEMBERED = (
    "Ines prefers letters to calls, and answers at night",
    "buy kelp film, string and stamps",
    "Bartholomew's telephone is for emergencies only",
)
LOGGED = ("Called Nkechi: the trial begins in January", "Proofs of the repair book are on the table")
QUESTIONS = (
    (
        "Where did we write about kelp and bread?",
        ("search", "kelp bread", "--limit", "3"),
        "Words, any words: pages with all of them come first. No model is needed for this.",
    ),
    (
        "Who could help to dry something without burning gas?",
        ("query", "warm air for drying without burning fuel", "--limit", "3"),
        "A question by meaning: the decision contains none of the important words, only their meaning. The first line"
        "\n   says how strong the evidence is, and each answer which lines it rests on.",
    ),
    (
        "Who is Ines?",
        ("get", "people/ines-karvonen"),
        "A page: current truth above the line, below it what happened, newest first. It is markdown, and yours.",
    ),
    (
        "Where did she live on the evening when we met?",
        ("facts", "Ines Karvonen", "--as-of", "2025-01-22"),
        "A fact has a first and a last day, and its source. On that evening it was Turku.",
    ),
    (
        "And now? Does everybody agree?",
        ("check", "people/ines-karvonen"),
        "Turku, then Galway is not a contradiction: she moved. Galway and Cork at the same time is one, so both are"
        "\n   quoted, and it stays open until you settle it.",
    ),
    (
        "What has a banker to do with a brewer?",
        ("path", "people/elio-varga", "people/amara-teixeira"),
        "The shortest way over links: his credit union lent to Saltmarsh, whose dryers take the heat of her brewery.",
    ),
    (
        "Who worked at the credit union in the summer of 2025?",
        ("graph", "companies/northgate-credit", "--as-of", "2025-07-01", "--depth", "1"),
        "The graph as it was on a day: Marguerite works there; Elio, who came in 2026, does not yet. Mentions have no"
        "\n   dates, so they are always shown.",
    ),
    (
        "What do we know about submarine cables?",
        ("query", "repair of submarine telephone cables in the Pacific", "--limit", "1"),
        "A memory has to say when it does not know; the closest results are marked as such. Such questions are"
        "\n   counted, without their words: quaid gaps.",
    ),
    (
        "What did I tell my agent about Ines?",
        ("recall", "how to reach Ines"),
        "The notebook: markdown files that you and your agents write, found by words and by meaning.",
    ),
    (
        "What would an agent be told at the start of a session?",
        ("prompt",),
        "What it should always know (contacts, preferences) and the last days of the log; --token-budget limits it.",
    ),
)


NEXT_STEPS = """
Your own: quaid init, then quaid import YOUR-NOTES or quaid put, and quaid connect CLIENT lets an agent use it
(quaid help connect names them). quaid doctor says what is next."""


def run_demo(settings: Settings, folder: str | None, whole: bool, as_json: bool) -> int:
    """Build the sample memory and run the example commands.

    Without a folder, a temporary folder is used and removed afterwards.
    """
    if as_json:
        raise InvalidArgument(name="--json", problem="does not work with demo, which is for people")
    if folder is not None:
        place = settings.path(folder)
        if os.path.exists(place) and (not os.path.isdir(place) or os.listdir(place)):
            raise AlreadyExists(path=place, hint="It is not an empty folder; name a new one, or none.")
        os.makedirs(place, mode=0o700, exist_ok=True)
        status = _run_questions(place, whole)
        _remove_model_copy(place)
        memory = f"quaid --db {quote(os.path.join(place, 'memory.db'))}"
        print(f"\nIt stays in {place}, until you delete it. To go on there:")
        print(f'  {memory} query "who knows about bees?"\n  {memory} web   # all of it, in a browser')
    else:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="quaid-demo-") as place:
            status = _run_questions(place, whole)
        print("\nThat was in a temporary folder, which is deleted. To keep one: quaid demo ~/quaid-demo")
    print(NEXT_STEPS)
    return status


def _run_questions(place: str, whole: bool) -> int:
    _isolate_environment(place)
    print("Making a sample memory in a separate folder; your own data is not read or changed …", flush=True)
    begun = time.monotonic()
    pages = _build_memory(place)
    without_meaning = _run_silently("embed") != 0  # prints the reason on standard error
    seconds, size = time.monotonic() - begun, os.path.getsize(os.path.join(place, "memory.db")) / 1e6
    print(f"{pages} pages: people, companies, meetings over two years, with facts, links and a notebook.")
    print(f"It took {seconds:.0f} s and {size:.1f} MB on this machine: no account, no key, no network.")
    if without_meaning:
        print("So search by meaning does not show here: every question is answered by its words.")
    print("Ten questions to it.")
    asks = not whole and sys.stdin.isatty() and sys.stdout.isatty()
    for number, (question, words, explanation) in enumerate(QUESTIONS, 1):
        if asks and not _continues():
            break
        shown = " ".join(f'"{word}"' if " " in word else word for word in words)
        print(f"\n{number}. {question}\n\n$ quaid {shown}", flush=True)
        status = main(list(words))
        if status > 1:  # status 1 means that a check found something
            return status
        print(f"\n   {explanation}", flush=True)
    return 0


def _continues() -> bool:
    """Wait for Enter. Return False on end of input (Ctrl-D)."""
    try:
        input("\nEnter for the next one ")
    except EOFError:
        print()
        return False
    return True


def _remove_model_copy(place: str) -> None:
    """Remove the demo's copy of the model. Later commands use the copy in the user's home."""
    from shutil import rmtree

    rmtree(os.path.join(place, ".quaid"), ignore_errors=True)


def _isolate_environment(place: str) -> None:
    """Make this process use the demo's home and memory, and remove all Quaid variables except QUAID_TRACE."""
    for name in [name for name in os.environ if name.startswith(("QUAID_", "AI_KB_"))]:
        if name != "QUAID_TRACE":
            del os.environ[name]
    os.environ.update(HOME=place, QUAID_DB=os.path.join(place, "memory.db"))


def _build_memory(place: str) -> int:
    """Create pages, facts and a notebook. Return the number of pages."""
    notes = os.path.join(place, "notes")
    pages = _sample_pages()
    for slug, text in pages:
        path = os.path.join(notes, *slug.split("/")) + ".md"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    for words in (
        ("init",),
        ("import", notes),
        *(("assert", *split(fact)) for fact in FACTS),
        ("notebook", "init", os.path.join(place, "notebook")),
        *(("remember", text) for text in REMEMBERED),
        *(("log", text) for text in LOGGED),
    ):
        if _run_silently(*words):
            raise RuntimeError(f"quaid {' '.join(words)} failed")
    return len(pages)


def _sample_pages() -> list[tuple[str, str]]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo_memory.txt")
    with open(path, encoding="utf-8") as file:
        parts = file.read().split("=== ")[1:]
    return [(slug, text) for slug, _, text in (part.partition("\n") for part in parts)]


def _run_silently(*words: str) -> int:
    """Run a command without showing its standard output. Errors are still shown."""
    from io import StringIO

    with redirect_stdout(StringIO()):
        return main(list(words))

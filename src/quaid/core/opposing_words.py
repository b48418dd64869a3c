"""The words by which statements oppose each other: data of core.stating and core.opposing.

Words stand as people write them; the modules that use them cut off their endings.
"""

NEGATIONS = frozenset("not never no neither nor nobody none stop hardly".split())
"""Each turns what a clause says into its opposite."""

DEMANDS = frozenset(
    """use uses using prefer prefers like likes love loves enjoy enjoys favour favours favor favors want wants choose
    adopt recommend recommends recommended always must should shall ought needs need require requires required allow
    allows allowed permit permits permitted please ensure preferred encouraged mandatory""".split()
)
"""Said for a thing. What is left of the clause is the matter."""

REFUSALS = frozenset(
    """avoid avoids avoiding dislike dislikes hate hates forbid forbids forbidden prohibit prohibits prohibited ban
    bans banned refuse refuses reject rejects refrain shun loathes detests discouraged disallow disallows
    disallowed""".split()
)
"""Said against a thing."""

ATTITUDES = frozenset(
    """prefers likes loves enjoys favours favors wants dislikes hates avoids refuses uses rejects loathes detests
    prefer like love enjoy want dislike hate avoid use rather""".split()
)
"""A name before one of these is whose taste it is, not the matter."""

STRONG = (
    frozenset(
        "always never must should shall ought not no mandatory required prefer forbidden prohibited".split()
    )
    | REFUSALS
)
"""Without one of these a sentence of a procedure is a step, not a rule."""

HEDGES = frozenset(
    "may might could sometimes perhaps maybe occasionally possibly probably rarely seldom".split()
)
"""What is so only at times opposes nothing."""

PAST = frozenset(
    """was were had did took went became ran got gave came previously formerly once ago originally
    historically earlier initially yesterday undecided unclear""".split()
)
"""What is over, or open, opposes nothing."""

ASKING = frozenset("how what why where whether who which whose".split())

REPORTS = frozenset(
    "says say said claims claim claimed argues argue believes believe suggests according".split()
)
"""What somebody else holds is not what the node holds."""

SEVERAL = frozenset(
    """also support supports supported ship ships include includes contain contains has have provides compatible too
    another e.g tested works
    upgrade upgraded update updated bump bumped patch patched release released adds added""".split()
)
"""Verbs of which a thing may have more than one object: two versions can both be supported, or
have been moved to."""

WEAK = frozenset(
    """a an the and or of to in on at for is are be been being am my our your his her their its that this these those
    it i we you he she they with by as into onto from so just very really only own any all every each whole entire new
    ones do does done doing can will would has have having there here then than when if while always s general
    generally usually often normally strictly explicitly simply still now currently today user users owner people
    person one who which where how about up out per via get gets let lets please also too such both time times
    instead rather much many more most least less few""".split()
)
"""Words that say nothing about the matter."""

LITTLE = frozenset("a an the and or of to in on at for with by as is are be my our your its s".split())
"""Those of them that two titles may differ in and still be the same: how, when and who ask for different things."""

NARROWING = frozenset("only except unless without that who whom whose where twice even".split())
"""A clause with one of these is about a part of the matter."""

COMPLEMENTS = {
    "disable": "enable", "exclude": "include", "fail": "pass", "hide": "show", "delete": "keep", "remove": "add",
    "deny": "allow", "close": "open", "unlock": "lock", "decline": "accept", "reject": "accept", "ignore": "heed",
    "asynchronous": "synchronous", "async": "sync", "mutable": "immutable", "unsafe": "safe", "invalid": "valid",
    "insecure": "secure", "unsigned": "signed", "unstable": "stable", "private": "public", "optional": "mandatory",
    "false": "true", "lack": "offer", "uninstall": "install", "discard": "keep", "drop": "keep",
    "unavailable": "available", "impossible": "possible", "incompatible": "compatible", "slow": "fast",
}  # fmt: skip
"""Each is the opposite of the other: not the one means the other."""

ALTERNATIVES = tuple(
    frozenset(group.split())
    for group in (
        "tabs spaces", "before after", "merge rebase squash", "single double triple", "dark light", "lazily eagerly",
        "lazy eager", "camelcase snake_case kebab-case pascalcase", "npm pnpm yarn bun", "pip uv poetry pipenv conda",
        "utc local", "main master trunk develop", "black ruff yapf autopep8", "pytest unittest nose",
        "mypy pyright pyre", "emacs vim neovim nano", "bash zsh fish", "docker podman", "json yaml toml xml ini",
        "postgresql mysql mariadb sqlite", "ascending descending", "first last", "top bottom", "left right",
        "above below", "minimum maximum", "internal external", "monorepo polyrepo", "metric imperial",
        "celsius fahrenheit", "http https", "ssh https", "github gitlab gitea codeberg", "us british",
        "debug info warning error", "optimistic pessimistic", "local remote", "push pull", "explicit implicit",
        "explicitly implicitly", "high low", "manually automatically", "manual automatic", "strict lenient",
        "early late", "static dynamic", "statically dynamically", "upper lower", "uppercase lowercase",
        "singular plural", "monday sunday", "weekly daily monthly hourly yearly", "formal informal", "short long",
        "brief detailed", "small large", "sequential parallel", "sequentially parallel",
        "synchronously asynchronously", "relative absolute",
        "centralised decentralised", "positional keyword", "inside outside", "lf crlf",
    )
)  # fmt: skip
"""Of each group one is chosen. To be against one says nothing for another."""

SETTINGS = frozenset(
    """branch formatter linter editor port shell language framework database license licence timezone zone format
    encoding version name manager runner style theme default host hostname region path url directory folder model
    separator width size limit timeout retention quote broker provider level archive backend engine server address
    domain registry bucket channel color font locale currency schedule strategy protocol compiler interpreter
    distribution distro os browser terminal library tool client orm owner maintainer remote origin mirror key prefix
    extension scheme mode policy convention platform driver queue cache store storage""".split()
)
"""Things that have one value at a time."""

ADJECTIVES = frozenset(
    """fast slow good bad right wrong important useful safe stable new old big small large long short available empty
    full ready public private optional mandatory free open hard easy simple complex clean dirty strict enough
    different same clear fine broken active idle read-only writable case-sensitive unique shared single cheap
    expensive nice ugly set up down responsible worth due""".split()
)
"""What a thing is like is no value of a setting."""

PLACES = frozenset(
    """python javascript typescript java go golang rust ruby perl lisp elisp haskell c c++ makefile makefiles css html
    sql linux macos windows android ios debian ubuntu fedora arch arm x86 ci production staging development testing
    test tests docs documentation laptop laptops server servers home work office chat email weekend weekends friday
    fridays monday mondays markdown org""".split()
)
"""A title that names one of these narrows what its node says to it."""

SYNONYMS = {
    "long": "length", "licence": "license", "colour": "color", "folder": "directory", "postgres": "postgresql",
    "js": "javascript", "ts": "typescript", "golang": "go", "characters": "", "chars": "", "columns": "",
    "lint": "linter", "dir": "directory", "wide": "width", "char": "",
    "kept": "keep", "written": "write", "built": "build", "sent": "send", "made": "make", "held": "hold",
    "shown": "show", "chosen": "choose", "ran": "run", "broken": "break", "done": "do", "taken": "take",
}  # fmt: skip
"""One spelling for two; "" for a word that only counts."""

UNITS = {
    "ms": ("time", 0.001), "millisecond": ("time", 0.001), "s": ("time", 1.0), "sec": ("time", 1.0),
    "second": ("time", 1.0), "min": ("time", 60.0), "minute": ("time", 60.0), "h": ("time", 3600.0),
    "hour": ("time", 3600.0), "day": ("time", 86400.0), "week": ("time", 604800.0), "month": ("time", 2592000.0),
    "year": ("time", 31536000.0), "kb": ("size", 1e3), "mb": ("size", 1e6), "gb": ("size", 1e9), "tb": ("size", 1e12),
    "kib": ("size", 1024.0), "mib": ("size", 1048576.0), "gib": ("size", 1073741824.0), "%": ("share", 1.0),
    "percent": ("share", 1.0), "character": ("length", 1.0), "char": ("length", 1.0), "column": ("length", 1.0),
    "line": ("lines", 1.0), "space": ("spaces", 1.0), "word": ("words", 1.0), "time": ("times", 1.0),
}  # fmt: skip

NUMBERS = {
    word: str(number) for number, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}

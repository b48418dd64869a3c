"""Of which day a page is, as SQL.

Knows where a page says its day. A page is of the date in its front matter, or else in its slug, as of a journal or
a meeting; a page that has none is of the day on which it was last changed: as its front matter says, or else as
the memory knows, which for an import is when it was imported. Days are 2024-03-05, or 2024-03 for a month.
"""

_PLACES = str(list(range(1, 257)))


def _first_day(text: str) -> str:
    """The first day or month in a text, an expression; NULL when there is none."""
    padded = f"(' ' || {text} || ' ')"
    month = f"substr({padded}, place.value + 1, 7)"
    return (
        # Most texts begin with it. Looking further costs ten times as much.
        f"CASE WHEN {text} GLOB '[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]' THEN {text}"  # noqa: S608
        f" WHEN {text} GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*' THEN (SELECT substr({padded}, place.value + 1,"
        f" CASE WHEN substr({padded}, place.value + 8, 4) GLOB '-[0-3][0-9][^0-9]' THEN 10 ELSE 7 END)"
        f" FROM json_each('{_PLACES}') AS place WHERE substr({padded}, place.value, 9)"
        f" GLOB '[^0-9][0-9][0-9][0-9][0-9]-[01][0-9][^0-9]' AND date({month} || '-01') IS NOT NULL LIMIT 1) END"
    )


def _given(key: str) -> str:
    """What the front matter says under a key, looked for only where the key is."""
    value = f"p.frontmatter ->> '$.{key}'"
    return f"""CASE WHEN instr(p.frontmatter, '"{key}"') THEN {_first_day(f"({value})")} END"""


def _whole(day: str) -> str:
    """A day, or the first one of a month."""
    return f"substr(({day}) || '-01', 1, 10)"


OWN_DAY = f"coalesce({_given('date')}, {_first_day('p.slug')})"
"""The day that a page p is about; NULL when it does not say."""

PAGE_DAY = f"coalesce({OWN_DAY}, {_given('updated')}, {_given('created')}, substr(p.updated_at, 1, 10))"
"""The day that a page p is of."""

_FIRST_ENTRY = "(SELECT min(date) FROM timeline_entries WHERE page_id = p.id)"

SAID_DAY = "nullif(min({}), '~')".format(
    ", ".join(f"coalesce({each}, '~')" for each in (_whole(OWN_DAY), _whole(_given("created")), _FIRST_ENTRY))
)
"""The first day that a page p gives as its own: which it is about, on which it was made, or of its first entry."""

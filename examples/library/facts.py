import quaid

with quaid.open() as memory:
    memory.put("people/ines", "# Ines")
    memory.assert_("people/ines", "works_at", "Kestrel Labs", valid_from="2024-03-01", source="interview")
    memory.assert_("people/ines", "works_at", "Brineloop", valid_from="2026-02-01", source="her mail")

    for day in ("2025-06-01", "2026-06-01"):
        for fact in memory.facts("people/ines", as_of=day).facts:
            print(day, fact.predicate, fact.object, f"({fact.source})")

import quaid

with quaid.open() as memory:
    memory.put("people/ines", "# Ines\n\nInes restores tidal batteries at Brineloop in Cádiz.")
    memory.put("people/tomas", "# Tomas\n\nTomas plays the cello and lives in Ostrava.")
    memory.put("people/ines", append="She likes sardines.")

    answer = memory.query("who restores batteries?")
    best = answer.results[0]
    print(best.slug, best.strength)
    print(memory.get(best.slug).compiled_truth)

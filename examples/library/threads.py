from concurrent.futures import ThreadPoolExecutor

import quaid

memory = quaid.open()
memory.put("projects/pod", "# Tidal pod\n\nVisits: 0")


def count_visit(_: int) -> None:
    while True:
        page = memory.get("projects/pod")
        visits = int(page.compiled_truth.rpartition(" ")[2]) + 1
        try:
            text = f"# Tidal pod\n\nVisits: {visits}"
            memory.put("projects/pod", text, expected_version=page.version)
            return
        except quaid.errors.VersionConflict:
            continue  # another thread was faster: read the page again


with ThreadPoolExecutor(4) as pool:
    list(pool.map(count_visit, range(20)))
print(memory.get("projects/pod").compiled_truth)
memory.close()

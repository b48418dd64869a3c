"""Pieces of a page that give it away."""

from quaid.storage import erase as erasure


def test_names_come_first_and_pieces_are_short_and_plain() -> None:
    text = 'A line that is long enough to be a trace of something, "quoted" or not.\nshort\n\\escaped'
    probes = erasure.erasure_probes(
        "people/bo", "Bo", "0190-uuid", ["people/bob"], [text, "extraordinarily long"]
    )
    assert probes[:3] == ["0190-uuid", "people/bo", "people/bob"]
    assert "extraordinarily" in probes
    assert all(5 <= len(item) <= erasure.PROBE_LENGTH for item in probes)
    assert not any(character in item for item in probes for character in '"\\\n')


def test_a_long_page_gives_pieces_from_all_over_it() -> None:
    lines = [f"Line number {number} of a long page" for number in range(1_000)]
    probes = erasure.erasure_probes("a", "A", "0190-uuid", [], ["\n".join(lines)])
    numbers = [int(item.split()[2]) for item in probes if item.startswith("Line")]
    assert len(probes) <= erasure.MOST_PROBES + 8
    assert max(numbers) > 900


def test_texts_are_found_anywhere_in_json() -> None:
    assert erasure.json_strings({"a": ["x", {"b": "y"}, 3, None], "c": True}) == ["x", "y"]

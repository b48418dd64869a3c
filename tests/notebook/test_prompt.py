"""What goes into a prompt: all of reference, two days, within limits, always the same."""

from pathlib import Path

import pytest

from quaid.model.plain_text import count_tokens
from quaid.notebook import layout

NOW = "2026-04-25T14:00:00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "agent/notebook"
    for path, text in {
        "reference/contacts.md": "## Sarah\n- 555\n",
        "reference/a/deep.md": "deep\n",
        "daily/2026-04-25.md": "# 2026-04-25\n",
        "daily/2026-04-24.md": "# 2026-04-24\r\n",
        "daily/2026-04-23.md": "old\n",
        "lists/todos.md": "not told\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def test_reference_then_today_then_yesterday(root: Path) -> None:
    made = layout.assemble_prompt(str(root), NOW)
    assert [part.path for part in made.parts] == [
        "reference/a/deep.md",
        "reference/contacts.md",
        "daily/2026-04-25.md",
        "daily/2026-04-24.md",
    ]
    assert "not told" not in made.text
    assert "old" not in made.text
    assert made == layout.assemble_prompt(str(root), "2026-04-25T23:59:59")


def test_reference_stays_within_its_limit_with_the_names_of_its_files(root: Path) -> None:
    for number in range(900):
        (root / f"reference/fact-{number:03}.md").write_text(f"# Fact {number}\n- one of many small ones\n")
    text = layout.assemble_prompt(str(root), NOW).text
    section = text[: text.index("<!-- daily/2026-04-25.md -->")]
    assert 24_000 < len(section) <= 32_000
    assert "# Fact 0\n" in section
    assert "no room for reference/fact-" in text
    small = layout.assemble_prompt(str(root), NOW, characters=3_000).text
    assert 2_000 < len(small) <= 3_000
    assert "# Fact 0\n" in small
    assert "<!-- daily/2026-04-25.md -->" in small


def test_a_long_file_is_cut_at_a_line_and_says_so(root: Path) -> None:
    (root / "reference/long.md").write_text("x" * 99 + "\n" + "y" * 99 + "\n" * 2 + "z\n" * 10_000)
    made = layout.assemble_prompt(str(root), NOW)
    part = next(part for part in made.parts if part.path == "reference/long.md")
    assert part.characters <= 8_000
    assert part.characters + part.left_out == len("x" * 99 + "\n" + "y" * 99 + "\n\n" + "z\n" * 10_000)
    assert f"[… {part.left_out:,} more characters of reference/long.md were left out" in made.text


@pytest.mark.parametrize(
    "text",
    [
        "x" * 20_000,
        "word " * 4_000,
        "# Title\n\n" + "word " * 4_000,
        "short\n" * 3 + "é" * 9_000 + "\nlast\n",
    ],
)
def test_one_long_paragraph_gives_its_first_characters(root: Path, text: str) -> None:
    (root / "reference/long.md").write_text(text)
    made = layout.assemble_prompt(str(root), NOW)
    part = next(part for part in made.parts if part.path == "reference/long.md")
    assert (part.characters, part.left_out) == (8_000, len(text) - 8_000)
    assert f"-->\n{text[:8_000]}\n[… " in made.text
    short = layout.assemble_prompt(str(root), NOW, 300)
    assert f"-->\n{text[:200]}" in short.text
    assert short.tokens <= 300


@pytest.mark.parametrize("characters", [1, 100, 1_000, 9_500, 32_000, 100_000])
def test_a_limit_of_characters_is_kept_and_used(root: Path, characters: int) -> None:
    for number in range(6):
        (root / f"reference/f{number}.md").write_text("several words in a line\n" * 1_000)
    made = layout.assemble_prompt(str(root), NOW, characters=characters)
    assert len(made.text) <= characters
    assert len(made.text) > 0.9 * min(characters, 32_000) or characters <= 1_000
    both = layout.assemble_prompt(str(root), NOW, 500, characters=characters)
    assert len(both.text) <= characters
    assert both.tokens <= 500


def test_reference_has_a_limit_in_all(root: Path) -> None:
    for number in range(6):
        (root / f"reference/f{number}.md").write_text("line\n" * 1_600)
    made = layout.assemble_prompt(str(root), NOW)
    parts = [part for part in made.parts if part.path.startswith("reference/")]
    assert sum(line.characters for line in parts) <= 32_000
    assert parts[-1].left_out
    assert "daily/2026-04-25.md" in made.text


@pytest.mark.parametrize("budget", [1, 20, 50, 100, 1_000])
def test_a_budget_of_tokens_is_kept(root: Path, budget: int) -> None:
    (root / "reference/long.md").write_text("several words in a line\n" * 400)
    made = layout.assemble_prompt(str(root), NOW, budget)
    assert count_tokens(made.text) <= budget
    assert made.tokens == count_tokens(made.text)
    assert len(made.parts) == 5


def test_the_older_layout_fills_in_what_reference_lacks(root: Path) -> None:
    old = root.parent / "runtime"
    old.mkdir()
    (old / "standing-orders.md").write_text("Never ping.\n")
    (old / "contacts.md").write_text("outdated\n")
    made = layout.assemble_prompt(str(root), NOW)
    assert "Never ping." in made.text
    assert "outdated" not in made.text


def test_symlinks_are_ignored_and_an_empty_notebook_gives_an_empty_prompt(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (root / "reference/link.md").symlink_to(tmp_path / "secret.md")
    assert "secret" not in layout.assemble_prompt(str(root), NOW).text
    assert layout.assemble_prompt(str(tmp_path / "missing"), NOW) == ("", (), 0)


def test_where_not_all_fits_every_file_gets_its_share(root: Path) -> None:
    (root / "reference/contacts.md").write_text("".join(f"## Person {n}\n- 555-{n:04}\n" for n in range(900)))
    (root / "reference/standing-orders.md").write_text("## Standing Orders\n- Never ping before 9am\n")
    (root / "reference/preferences.md").write_text("## Preferences\n- Tea\n")
    for budget in (200, 1_000, 2_400):
        made = layout.assemble_prompt(str(root), NOW, budget)
        assert "Never ping before 9am" in made.text
        assert "Tea" in made.text
        assert "# 2026-04-25" in made.text
        left_out = ("more characters of reference/contacts.md", "no room for reference/contacts.md")
        assert any(item in made.text for item in left_out)
        assert made.tokens <= budget
        assert made.tokens > budget * 0.6


def test_omitted_files_are_named(root: Path) -> None:
    for number in range(20):
        (root / f"reference/f{number:02}.md").write_text("several words in a line\n" * 100)
    made = layout.assemble_prompt(str(root), NOW, 150)
    assert "[… no room for " in made.text
    assert made.tokens <= 150


def test_the_limit_of_reference_is_shared_out_too(root: Path) -> None:
    for number in range(6):
        (root / f"reference/f{number}.md").write_text("line\n" * 1_600)
    (root / "reference/standing-orders.md").write_text("Never ping.\n")
    made = layout.assemble_prompt(str(root), NOW)
    assert "Never ping." in made.text
    messages = [part.characters for part in made.parts if part.path.startswith("reference/f")]
    assert min(messages) > 5_000
    assert sum(messages) <= 32_000


def test_binary_content_is_left_out(root: Path) -> None:
    (root / "reference/bin.md").write_bytes(bytes(range(256)) * 4)
    assert "bin.md" not in layout.assemble_prompt(str(root), NOW).text


@pytest.mark.parametrize(
    ("wants", "total", "given"),
    [
        ([], 5, []),
        ([3, 4], 10, [3, 4]),
        ([10, 2, 10], 12, [5, 2, 5]),
        ([1, 1], 0, [0, 0]),
        ([5, 5], -3, [0, 0]),
    ],
)
def test_the_modest_get_all_they_want(wants: list[int], total: int, given: list[int]) -> None:
    assert layout.fair_shares(wants, total) == given

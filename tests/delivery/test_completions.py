"""Completions and the manual page: made from the register, and tried in the shells themselves."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from delivery import shell_completion
from tests.delivery.shells import Shell, Terminal, Zsh

import quaid
from quaid.cli.commands import COMMANDS
from quaid.cli.main import main
from quaid.model.page import PAGE_TYPES
from quaid.operations import index
from quaid.operations.registry import all_operations
from quaid.operations.shell import COMPLETION_KINDS

PAGES = Path(quaid.__file__).parent / "cli" / "generated"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("shell"))


@pytest.fixture(scope="module")
def zsh(shell: Shell) -> Iterator[Zsh]:
    terminal = Zsh(shell)
    yield terminal
    terminal.close()


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed here")


CASES = [
    ("quaid coll", ["collection"]),
    ("quaid collection i", ["ignore", "info"]),
    ("quaid collection ignore a", ["add"]),
    ("quaid help coll", ["collection"]),
    ("quaid help collection i", ["ignore", "info"]),
    ("quaid list --so", ["--sort"]),
    ("quaid list --sort c", ["created"]),
    ("quaid list --sort=c", ["created"]),
    ("quaid list --type co", ["commitment", "company", "concept"]),
    ("quaid search pier --wing p", ["people", "projects"]),
    ("quaid wing pr", ["projects"]),
    ("quaid get people/al", ["people/alan", "people/alice"]),
    ("quaid backlinks people/ali", ["people/alice"]),
    ("quaid --json get pr", ["projects/pier-ten"]),
    ("quaid link people/alice pr", ["projects/pier-ten"]),
    ("quaid revert people/alice --to p", []),
    ("quaid list --collection not", ["notebook", "notes"]),
    ("quaid collection info notes", ["notes"]),
    ("quaid skills show cur", ["curate"]),
    ("quaid model check bg", ["bge-small-en-v1.5"]),
    ("quaid embeddings use bg", ["bge-small-en-v1.5"]),
    ("quaid config get search.max", ["search.max_results"]),
    ("quaid config set log", ["log_activity", "log_gaps", "log_opened"]),
    ("quaid config set log_gaps o", ["off", "on"]),
    ("quaid config set default", ["default_token_budget"]),
    ("quaid list --tag har", ["harbour", "harp"]),
    ("quaid untag people/alice harp", ["harp"]),
    ("quaid connect claude-d", ["claude-desktop"]),
    ("quaid conversations list --client ch", ["chatgpt"]),
    ("quaid call memory_timeline_", ["memory_timeline_add"]),
    ("quaid --config other/s", ["other/settings.yaml"]),
    ("quaid import other/i", ["other/in"]),
    ("quaid import other/s", []),
    ("quaid --db other/s", []),
    ("quaid ingest other/s", ["other/settings.txt", "other/settings.yaml"]),
    ("quaid --db other/work.db get pe", []),
    ("quaid --db many.db get yards/y21", [f"yards/y21{end}" for end in ("", *range(10))]),
    ("ai-kb back", ["backlinks"]),
    ("ai-kb show python/", ["python/formatter", "python/packaging"]),
    ("quaid history people/alice pe", []),
]
IDS = [line for line, _ in CASES]


@needs("bash")
@pytest.mark.parametrize(("line", "offered"), CASES, ids=IDS)
def test_bash_offers_what_fits(shell: Shell, line: str, offered: list[str]) -> None:
    assert sorted(shell.bash(line)) == offered


@needs("bash")
def test_bash_puts_in_only_what_follows_the_last_colon(shell: Shell) -> None:
    assert shell.bash("quaid get notes::o") == ["one"]


@needs("bash")
def test_a_person_at_bash_gets_a_whole_word_whatever_is_in_it(shell: Shell) -> None:
    """Tab, then the line as the shell understands it: Ctrl-A goes to its beginning."""
    terminal = Terminal(shell, "bash", "--norc", "-i")
    try:
        message = (
            "told() { printf '%s\\n' \"$@\" > telling; mv telling told; }; source complete.bash; told ready\n"
        )
        assert terminal.type(message) == ["ready"]
        for typed, word in (
            ("quaid notebook read lists/m", "lists/my calls.md"),
            ("quaid notebook read lists/my\\ c", "lists/my calls.md"),
            ('quaid notebook read "lists/my c', "lists/my calls.md"),
            ("quaid get notes::o", "notes::one"),
            ("quaid --db many.db get y", "yards/"),
            ("quaid --db many.db get ya\ty21\t9", "yards/y219"),
            ("quaid --db=other/w", "--db=other/work.db"),
            ("quaid --db other/my", "other/my memory.db"),
            ("quaid --db ~/other/w", str(shell.folder / "other" / "work.db")),
        ):
            assert terminal.type(f"{typed}\t\x01told \n")[-1] == word, typed
    finally:
        terminal.close()


@needs("fish")
@pytest.mark.parametrize(("line", "offered"), CASES, ids=IDS)
def test_fish_offers_what_fits(shell: Shell, line: str, offered: list[str]) -> None:
    before = line.rpartition(" ")[2].partition("=")[0] + "=" if "=" in line else ""
    results = [item.removeprefix(before).rstrip("/") for item in shell.fish(line)]
    assert sorted(results) == offered


@needs("fish")
def test_fish_offers_a_whole_name_whatever_is_in_it(shell: Shell) -> None:
    for typed in ("quaid notebook read lists/m", r"quaid notebook read lists/my\ c"):
        assert shell.fish(typed) == ["lists/my calls.md"]
    assert shell.fish("quaid get notes::o") == ["notes::one"]


@needs("zsh")
@pytest.mark.parametrize(("line", "offered"), CASES, ids=IDS)
def test_zsh_offers_what_fits(zsh: Zsh, line: str, offered: list[str]) -> None:
    _, result = zsh.line_and_offers(line)
    assert sorted(result) == [item.removeprefix("other/") for item in offered]


@needs("zsh")
def test_zsh_puts_in_a_whole_word_whatever_is_in_it(zsh: Zsh) -> None:
    for typed, line in (
        ("quaid notebook read lists/m", r"quaid notebook read lists/my\ calls.md "),
        (r"quaid notebook read lists/my\ c", r"quaid notebook read lists/my\ calls.md "),
        ("quaid get notes::o", "quaid get notes::one "),
        ("quaid --db many.db get y", "quaid --db many.db get yards/"),
        ("quaid list --sort=c", "quaid list --sort=created "),
        ("quaid --db=other/w", "quaid --db=other/work.db "),
    ):
        assert zsh.line_and_offers(typed)[0] == line


@needs("zsh")
def test_zsh_knows_the_script_when_it_is_only_read(shell: Shell) -> None:
    output = shell.run(
        "autoload -U compinit; compinit -u -D; source complete.zsh; print $_comps[quaid] $_comps[ai-kb]",
        "zsh",
    )
    assert output == "_quaid _quaid\n"


MEMORIES = ["other/in", "other/my memory.db", "other/work.db"]


@needs("bash")
def test_bash_offers_memories_and_no_lock_or_log_of_them(shell: Shell) -> None:
    assert (shell.folder / "other" / "work.db-lock").exists()
    assert sorted(shell.bash("quaid --db other/")) == MEMORIES
    assert sorted(shell.bash("quaid --db=other/")) == MEMORIES


@needs("fish")
def test_fish_offers_memories_and_no_lock_or_log_of_them(shell: Shell) -> None:
    assert sorted(item.rstrip("/") for item in shell.fish("quaid --db other/")) == MEMORIES


@needs("zsh")
def test_zsh_offers_memories_and_no_lock_or_log_of_them(zsh: Zsh) -> None:
    _, result = zsh.line_and_offers("quaid --db other/")
    assert sorted(result) == [memory.removeprefix("other/") for memory in MEMORIES]


def test_every_command_is_in_the_table() -> None:
    table = shell_completion.completion_table()
    for name in [*COMMANDS, *index.COMMANDS]:
        above, _, word = name.rpartition(" ")
        assert word in [entry.word for entry in table[above]], name
    assert not any(
        "\t" in part or "\n" in part for item in table.values() for entry in item for part in entry
    )


def test_every_kind_is_one_that_the_scripts_know() -> None:
    known = {"@any", "@command", "@files", "@files:db", "@files:yaml,yml", "@folders"}
    known |= {f"@{kind}" for kind in COMPLETION_KINDS}
    kinds = {entry.kind for item in shell_completion.completion_table().values() for entry in item}
    assert {kind for kind in kinds if kind.startswith("@")} == known


def test_every_argument_that_is_singled_out_is_there() -> None:
    params = {name: local.params for name, local in COMMANDS.items()}
    for op in all_operations():
        params.update(dict.fromkeys((op.command, *op.aliases), op.params))
    for command, name in shell_completion.KINDS_BY_ARGUMENT:
        assert name in [param.name for param in params[command]], f"{command} {name}"


def test_words_that_are_known_beforehand_stand_in_the_script() -> None:
    """A Tab on them starts no Quaid."""
    table = {
        name: {entry.word: entry.kind for entry in entries}
        for name, entries in shell_completion.completion_table().items()
    }
    assert table["list"]["--type"].split("|") == list(PAGE_TYPES)
    assert "claude-code" in table["connect"]["1"].split("|")
    assert {"log_gaps", "search.max_results"} <= set(table["config get"]["1"].split("|"))
    assert table["config set log_gaps"]["1"] == "on|words|text|off"
    assert table["help config"] == dict.fromkeys(("get", "set", "list"), "@command")


@pytest.mark.parametrize("kind", COMPLETION_KINDS)
def test_a_tab_in_a_broken_memory_finds_nothing_and_complains_of_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "memory.db"
    main(["init", str(broken)])
    broken.write_bytes(broken.read_bytes()[:4096] + os.urandom(40_000))
    (tmp_path / "config.yaml").write_text("search:\n  no_such_option: 3\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AI_KB_DIR", raising=False)
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert main(["completion", kind, "--db", str(broken), "--", "zz"]) == 0
    assert capsys.readouterr() == ("", "")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_tab_without_a_memory_finds_nothing_and_complains_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUAID_DB", str(tmp_path / "none.db"))
    assert main(["completion", "slugs", "people/"]) == 0
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_shell_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


def test_the_manual_page_names_every_command_and_option() -> None:
    page = (PAGES / "quaid.1").read_text(encoding="utf-8")
    for name in [*COMMANDS, *index.COMMANDS]:
        if not name.startswith("-"):
            assert f"\n.SS quaid {name}\n".replace("-", r"\-") in page, name
    assert r"\fB\-\-timeline\-append\fR \fITEXT\fR" in page


def test_help_prints_the_manual_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man"]) == 0
    assert capsys.readouterr().out == (PAGES / "quaid.1").read_text(encoding="utf-8")


MANUAL_PAGES = sorted(path.name for path in PAGES.glob("*.1"))


@needs("mandoc")
@pytest.mark.parametrize("name", MANUAL_PAGES)
def test_mandoc_finds_nothing_wrong_with_a_manual_page(name: str) -> None:
    page = PAGES / name
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", page], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@needs("groff")
@pytest.mark.parametrize("name", MANUAL_PAGES)
def test_groff_sets_a_manual_page_without_a_warning(name: str) -> None:
    page = PAGES / name
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", page], capture_output=True, text=True)
    assert done.stderr == ""
    assert "SYNOPSIS" in done.stdout

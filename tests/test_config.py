"""Settings at the door: flag, environment, config file, default."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quaid import config
from quaid.app import Brain
from quaid.errors import FileTrouble, InvalidArgument, InvalidConfig
from quaid.operations import dispatch
from quaid.storage import collections

SEED = """\
memory:
  notebookDir: notebook
  database: brain/memory.db
  embedding:
    plugin: embeddings-local
    modelsDir: cache/models
  chunking:
    maxTokens: 300
    overlap_tokens: 60
    respectHeadings: true
  sync:
    watchDebounceMs: 900
    syncOnStart: false
  search:
    maxResults: 7
    minScore: 0.5
    fusionK: 30
  prompt:
    referenceDir: reference
    dailyWindow: 3
    maxPerFileChars: 5000
    maxTotalReferenceChars: 9000
"""


def test_the_memory_is_found_by_flag_variable_folder_and_home(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert config.read_settings(None, environ, str(tmp_path)).db_path == str(
        tmp_path / ".quaid" / "memory.db"
    )
    (tmp_path / "memory.db").touch()
    assert config.read_settings(None, environ, str(tmp_path)).db_path == str(tmp_path / "memory.db")
    environ["QUAID_DB"] = "other.db"
    assert config.read_settings(None, environ, str(tmp_path)).db_path == str(tmp_path / "other.db")
    assert config.read_settings("this.db", environ, str(tmp_path)).db_path == str(tmp_path / "this.db")


def test_every_key_of_the_seed_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(SEED)
    read = config.read_settings(None, {"HOME": "/nowhere"}, "/tmp", str(file))
    assert read.warnings == ()
    assert len(read.options) == 16
    assert read.db_path == str(tmp_path / "brain" / "memory.db")
    assert read.models_folder == str(tmp_path / "cache" / "models")
    assert read.option("search.max_results") == 7
    assert read.option("sync.sync_on_start") is False
    assert read.option("sync.sync_on_search") is True
    assert read.option("chunking.overlap_tokens") == 60


def test_the_file_beside_the_memory_is_read_by_itself(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("search:\n  max_results: 3\n")
    assert config.read_settings("memory.db", {}, str(tmp_path)).option("search.max_results") == 3
    assert config.read_settings("elsewhere/memory.db", {}, str(tmp_path)).option("search.max_results") == 15


def test_the_environment_goes_before_the_file_and_the_file_before_the_memory(
    brain: Brain, tmp_path: Path
) -> None:
    brain.db.write(lambda tx: collections.set_setting(tx, "default_token_budget", "111"))
    assert brain.option("default_token_budget") == 111
    brain.settings = brain.settings._replace(options={"default_token_budget": 222}, config_path="/c.yaml")
    assert brain.option("default_token_budget") == 222
    brain.settings = brain.settings._replace(environ={"QUAID_DEFAULT_TOKEN_BUDGET": "333"})
    assert brain.option("default_token_budget") == 333
    listed = dispatch.call(brain, dispatch.find_command("config list"), {}, "owner").value
    results = {item.key: (item.value, item.source) for item in listed}
    assert results["default_token_budget"] == ("333", "QUAID_DEFAULT_TOKEN_BUDGET")
    assert results["search_merge_strategy"] == ("sum", "memory")
    assert results["search.min_score"] == ("0.25", "default")
    assert set(config.OPTIONS) <= set(results)
    one = dispatch.call(
        brain, dispatch.find_command("config get"), {"key": "memory.search.maxResults"}, "owner"
    )
    assert (one.key, one.value) == ("search.max_results", "15")


def test_the_file_beside_a_memory_cannot_say_where_the_memory_is(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("memory: {database: other/memory.db}\nsearch: {maxResults: 3}\n")
    read = config.read_settings("memory.db", {}, str(tmp_path))
    assert read.db_path == str(tmp_path / "memory.db")
    assert read.warnings == (
        f"{file}: memory.database is ignored, because the file is beside the memory"
        f" {tmp_path / 'memory.db'}; name the file with --config, or the memory with --db",
    )
    assert (read.option("memory.database"), read.option("search.max_results")) == (None, 3)
    named = config.read_settings(None, {"QUAID_CONFIG": str(file)}, str(tmp_path))
    assert (named.db_path, named.warnings) == (str(tmp_path / "other/memory.db"), ())
    file.write_text("memory: {database: memory.db}\n")  # says what is so
    assert config.read_settings("memory.db", {}, str(tmp_path)).warnings == ()


@pytest.mark.parametrize("name", ["--config", "beside"])
def test_a_pipe_in_the_place_of_a_config_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    message = str(tmp_path / "config.yaml") if name == "--config" else None
    with pytest.raises(FileTrouble, match="named pipe"):
        config.read_settings("memory.db", {}, str(tmp_path), message)


def test_a_name_is_only_suggested_where_one_is_near() -> None:
    def said(name: str) -> str:
        return config.parse_options({name: 1})[1][0]

    assert said("completelyDifferent") == "unknown option completelyDifferent"
    assert said("timeout") == "unknown option timeout"
    assert said("maxResult").endswith("did you mean search.max_results?")
    assert said("embeddings.plugin").endswith("did you mean embedding.plugin?")
    assert said("log_gap").endswith("did you mean log_gaps?")


def test_unknown_or_invalid_values_are_reported_and_left_out() -> None:
    options, warnings = config.parse_options(
        {"search": {"maxResult": 3, "minScore": 7}, "memory": {"chunking": {"maxTokens": "many"}}, "x": {}}
    )
    assert options == {}
    assert tuple(warnings) == (
        "unknown option search.maxResult; did you mean search.max_results?",
        "search.minScore must be from 0 to 1, not 7; it is ignored",
        "memory.chunking.maxTokens must be a number, not 'many'; it is ignored",
    )


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("sync.sync_on_start", "off", False),
        ("background_embedding", False, "off"),
        ("embedding.plugin", False, "off"),
        ("search.min_score", 1, 1.0),
        ("search.max_results", "20", 20),
        ("search.max_results", 20.0, 20),
    ],
)
def test_values_are_read_as_they_are_meant(name: str, value: object, read: object) -> None:
    assert config.check_option(name, value) == read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search.max_results", True),
        ("search.max_results", 2.5),
        ("search.max_results", 0),
        ("search.min_score", float("nan")),
        ("memory.notebook_dir", 3),
        ("memory.notebook_dir", " "),
        ("search_merge_strategy", "best"),
        ("sync.sync_on_start", 1),
    ],
)
def test_other_values_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        config.check_option(name, value)


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "a: &x 1\nb: *x\n", "\xff", "x" * 70_000])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidConfig, match=r"config\.yaml"):
        config.read_settings("memory.db", {}, str(tmp_path))


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="There is no config file"):
        config.read_settings(None, {"QUAID_CONFIG": "nothing.yaml"}, str(tmp_path))
    with pytest.raises(InvalidConfig, match="QUAID_SEARCH_MAX_RESULTS"):
        config.read_settings("m.db", {"QUAID_SEARCH_MAX_RESULTS": "x"}, str(tmp_path)).option(
            "search.max_results"
        )


def test_without_a_file_no_yaml_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from quaid.config import read_settings;"
        " read_settings(None, {}, '/tmp'); print('ryaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.stdout == "False\n"


def test_options_that_go_before_a_setting_agree_with_it() -> None:
    from quaid.operations.maintenance import SETTINGS

    for name, option in config.OPTIONS.items():
        if option.choices and name in SETTINGS:
            assert option.choices == SETTINGS[name]
    assert [
        config.canonical_name(name) for name in ("memory.notebookDir", "notebookDir", "memory.search.fusionK")
    ] == [
        "memory.notebook_dir",
        "memory.notebook_dir",
        "search.fusion_k",
    ]


@pytest.mark.parametrize(
    ("value", "folders"),
    [
        ("", []),
        ("~/a:/b/c", ["~/a", "/b/c"]),
        ("~:/", ["~", "/"]),
        ("/a;/b\n /c ", ["/a", "/b", "/c"]),
        ("C:\\x:D:/y", ["C:\\x", "D:/y"]),
        ("/with space/é", ["/with space/é"]),
    ],
)
def test_folders_are_parted_by_colons(value: str, folders: list[str]) -> None:
    assert config.split_folder_list(value) == folders
    config.check_folder_list("name", value)


@pytest.mark.parametrize("value", ["a", "./a", "/a:b/c", "~bob/x"])
def test_relative_folder_is_refused(value: str) -> None:
    with pytest.raises(InvalidArgument):
        config.check_folder_list("name", value)

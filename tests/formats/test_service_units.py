"""Texts of systemd and launchd."""

import configparser
import plistlib

from quaid.formats import config_text

COMMAND = ("/opt/my tools/quaid", "--db", '/home/ada/100% "mine"/$HOME.db', "serve", "--http")


def test_a_unit_runs_the_words_as_they_are() -> None:
    text = config_text.systemd_unit(COMMAND, "Quaid", {"QUAID_CONFIG": "/x y.yaml"})
    unit = configparser.RawConfigParser(strict=True)
    unit.read_string(text)
    assert unit["Service"]["ExecStart"] == (
        r'/usr/bin/env "/opt/my tools/quaid" "--db" "/home/ada/100%% \"mine\"/$$HOME.db" "serve" "--http"'
    )
    assert unit["Service"]["Environment"] == '"QUAID_CONFIG=/x y.yaml"'
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Install"]["WantedBy"] == "default.target"


def test_a_property_list_runs_the_words_as_they_are() -> None:
    plist = plistlib.loads(config_text.launchd_plist(COMMAND, "quaid.daemon", {"A": "b"}, "/log").encode())
    assert plist["ProgramArguments"] == list(COMMAND)
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert plist["EnvironmentVariables"] == {"A": "b"}
    assert plist["StandardErrorPath"] == "/log"


def test_a_word_with_a_line_end_stays_one_line() -> None:
    assert "\n" not in config_text.systemd_quote("a\nb\tc")

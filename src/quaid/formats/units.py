"""Texts that have the system run a program: units of systemd, property lists of launchd.

Knows how both are written. Where they are put, and what is run, is told by whoever asks.
"""

from collections.abc import Mapping, Sequence

SERVICE = """\
[Unit]
Description={description}
After=default.target

[Service]
Type=exec
ExecStart=/usr/bin/env {command}
{environment}Restart=on-failure
RestartSec=5
TimeoutStopSec=5
KillMode=mixed
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


def service(command: Sequence[str], description: str, environment: Mapping[str, str]) -> str:
    """A unit that keeps a program running. Through env, since systemd is choosy about the name of a program."""
    variables = "".join(f"Environment={word(f'{name}={value}')}\n" for name, value in environment.items())
    return SERVICE.format(
        command=" ".join(map(word, command)), description=description, environment=variables
    )


def agent(command: Sequence[str], label: str, environment: Mapping[str, str], log: str) -> str:
    """The same for launchd, which starts a program anew only if it failed."""
    import plistlib

    told = {
        "Label": label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "KeepAlive": {"SuccessfulExit": False},
        "RunAtLoad": True,
        "ProcessType": "Background",
        "StandardErrorPath": log,
        "StandardOutPath": log,
        "Umask": 0o077,
        "ExitTimeOut": 5,
    }
    return plistlib.dumps(told).decode()


def word(text: str) -> str:
    """A word of a command line, so that systemd reads it as it is."""
    for sign, meant in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$"), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(sign, meant)
    return f'"{text}"'

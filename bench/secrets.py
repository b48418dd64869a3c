"""The secret scan: how many labelled secrets are found, how many clean documents are accused, and how fast.

Two labelled sets, both drawn from a seed: one that the rules were written with, one in other places and words. Beside
them 2,453 real pages, which do quote credentials: their findings are listed with `--show`, to be judged by eye.
"""

import os
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bench import secret_texts, secret_texts_held_out
from bench.corpora import data_file
from bench.secret_texts import Case
from bench.table import cpu_of, show, verdict
from quaid.model import secrets

RECALL, FALSE_ALARMS, SPEED, HOSTILE_S, SMALL_MS = 0.98, 1 / 200, 1.0, 1.0, 100
CORPUS = "kubernetes-docs-en.tar.gz"
HOSTILE = (
    *(
        "password=",
        "password is ",
        "(password(",
        "--password ",
        "token=x",
        "secret: ",
        "api key ",
        "://a:",
        "Bearer ",
    ),
    *("-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "sk-", "4111 ", "密码", "mot de passe ", "|password|\n"),
    *(
        "password,user\n1,2\n\n",
        "machine a login b password ",
        ".aaaaaa." + "a" * 32,
        "İPassword: ",
        "\n",
        "-",
    ),
)


class Judged(NamedTuple):
    """How a labelled set came out."""

    found: Counter[str]
    there: Counter[str]
    whole: int
    """Of those found, how many from their first character to the last."""
    accused: int
    documents: int

    @property
    def recall(self) -> float:
        return self.found.total() / self.there.total()


def judge(cases: Sequence[Case], clean: Sequence[str]) -> Judged:
    found: Counter[str] = Counter()
    whole = 0
    for case in cases:
        spans = [(secret.start, secret.end) for secret in secrets.find_secrets(case.text)]
        found[case.kind] += any(start < case.end and end > case.start for start, end in spans)
        whole += any(start <= case.start and end >= case.end for start, end in spans)
    accused = sum(bool(secrets.find_secrets(text)) for text in clean)
    return Judged(found, Counter(case.kind for case in cases), whole, accused, len(clean))


def labelled() -> dict[str, Judged]:
    near, prose = secret_texts_held_out.NEAR, secret_texts_held_out.PROSE
    return {
        "seen": judge(secret_texts.secrets(), secret_texts.clean()),
        "held out": judge(secret_texts_held_out.secrets(), secret_texts.clean(102, 500, near, prose)),
    }


def main() -> None:
    sets = labelled()
    kinds = sorted(set().union(*(each.there for each in sets.values())))
    head = ("kind", *(f"{name}: found of" for name in sets))
    show("Secrets by kind", [(kind, *(_share(each, kind) for each in sets.values())) for kind in kinds], head)
    rows = []
    for name, each in sets.items():
        title = f"{name}: {each.there.total()} secrets of {len(each.there)} kinds"
        rows.append((f"{title}, recall", f"{each.recall:.3f}", verdict(each.recall, RECALL, at_least=True)))
        rows.append((f"{title}, found whole", str(each.whole), ""))
        share = each.accused / each.documents
        what = f"{name}: {each.documents} clean documents, false alarms for each"
        rows.append((what, f"{share:.4f}", verdict(share, FALSE_ALARMS)))
    rows += [*_real(), *_speed()]
    show("The secret scan", rows, ("what", "figure", "target"))


def _share(judged: Judged, kind: str) -> str:
    return f"{judged.found[kind]} of {judged.there[kind]}" if judged.there[kind] else ""


def _real() -> list[tuple[str, str, str]]:
    path = data_file(CORPUS, "secrets")
    if path is None:
        return []
    with tarfile.open(path) as archive:
        files = [member for member in archive if member.name.endswith(".md")]
        pages = {
            file.name: secrets.decode_data(opened.read())
            for file in files
            if (opened := archive.extractfile(file))
        }
    started = time.process_time()
    found = {name: secrets.find_secrets(text) for name, text in pages.items()}
    spent = time.process_time() - started
    if "--show" in sys.argv:
        for name, each in found.items():
            for secret in each:
                print(f"{name}:{secret.line}: {secret.kind}: {pages[name][secret.start : secret.end][:60]!r}")
    speed = sum(len(text.encode()) for text in pages.values()) / 1e6 / spent
    accused = sum(map(bool, found.values()))
    return [
        (f"{len(pages)} real pages: pages with a finding (--show)", str(accused), ""),
        ("real pages, MB/s CPU", f"{speed:.1f}", verdict(speed, SPEED, at_least=True)),
    ]


def _speed() -> list[tuple[str, str, str]]:
    folder = os.path.dirname(os.path.abspath(secrets.__file__))
    code = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                code.append(file.read())
    started = time.process_time()
    for text in code:
        secrets.find_secrets(text)
    speed = sum(len(text.encode()) for text in code) / 1e6 / (time.process_time() - started)
    worst, piece = max(_hostile(piece) for piece in HOSTILE)
    # The least of several runs: what others do on the machine is not ours.
    bare = cpu_of([sys.executable, "-c", "pass"], 9)[0]
    small = cpu_of([sys.executable, "-c", _SMALL], 9)[0] - bare
    return [
        ("our own code, MB/s CPU", f"{speed:.1f}", verdict(speed, SPEED, at_least=True)),
        (
            f"1 MB of {piece!r}, the slowest of {len(HOSTILE)}, CPU s",
            f"{worst:.2f}",
            verdict(worst, HOSTILE_S),
        ),
        ("1,000 notes of 2 KB with import, CPU ms", f"{small * 1000:.0f}", verdict(small * 1000, SMALL_MS)),
    ]


_SMALL = """
from quaid.model.secrets import find_secrets
line = "Line %d of a note about boats, budgets and the weather of a month.\\n"
note = "The token is valid for a day; the password is in the manager.\\n" + "".join(line % each for each in range(30))
for each in range(1000):
    find_secrets(note + str(each))
"""


def _hostile(piece: str) -> tuple[float, str]:
    text = piece * (1_000_000 // len(piece))
    spent = []
    for _ in range(3):
        started = time.process_time()
        secrets.find_secrets(text)
        spent.append(time.process_time() - started)
    return min(spent), piece[:30]


if __name__ == "__main__":
    main()

"""Lint a knowledge base. Fatal findings stop a commit; style findings do not.

Findings in one file are cached with its digest; findings across files (IDs, links, the index) are computed
each time. A failure of the secret scan is a fatal finding.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quaid.kb import catalog as catalogs, layout, node as nodes
from quaid.kb.catalog import Catalog, FileChecker
from quaid.kb.node import FileFinding, Node
from quaid.model import dates, secrets

RULES_VERSION = "4"
"""Version of the rules. It must be increased with every change of a rule, so that files are checked again."""

# Codes that do not stop a commit.
STYLE_CODES = frozenset(
    "no-heading torn-link duplicate-property no-type long-summary same-title merged-link".split()
)
TRANSIENT_CODES = frozenset({"unreadable", "scan-failed"})
REMEDIES = {
    "unclosed-drawer": "close it with a line :END:",
    "misplaced-drawer": "move it there",
    "bad-property": "write it as :NAME: value, or move it below :END:",
    "stray-end": "remove the line, or write :PROPERTIES: above its properties",
    "unclosed-block": "close it with its #+end_ line; put a comma before stars at the beginning of a line in it",
    "duplicate-id": "give one of them a new ID",
    "duplicate-property": "remove one of them",
    "property-twice": "keep the one that holds, and remove the other",
    "second-id": "keep the one that others link to (`ai-kb backlinks`), and remove this line",
    "no-heading": "put a space after the stars",
    "line-ends": "save it with line feeds only",
    "torn-link": "close it with ]]",
    "too-many-marks": "divide the file",
}
NOT_REPEATED = frozenset(nodes.REQUIRED_PROPERTIES) - {"ID"}
"""Properties that may not be repeated, because programs may differ in which value they use. The org parser
reports a repeated ID itself."""

MAX_FINDINGS = 1_000
"""At most this many findings of one kind are reported per file."""


class LintFinding(NamedTuple):
    path: str
    line: int
    code: str
    message: str
    remedy: str
    fatal: bool
    """True if the finding prevents a commit; False for a style finding."""


def finding(path: str, line: int, code: str, message: str, remedy: str) -> LintFinding:
    return LintFinding(path, line, code, message, remedy, code not in STYLE_CODES)


def lint_store(catalog: Catalog, folder: str) -> list[LintFinding]:
    """Return all findings, with fatal findings first. New results are cached in `folder`."""
    before = catalog.files.copy()
    of_index = list(lint_index(catalog))
    findings = [*lint_files(catalog), *of_index]
    problem = index_summary(of_index)
    if catalog.index_problem != problem or catalog.files != before:
        catalog.index_problem = problem
        catalogs.save_catalog(catalog, folder)
    return sorted(findings, key=lambda item: (not item.fatal, item.path, item.line, item.code))


def lint_files(catalog: Catalog) -> list[LintFinding]:
    """Return all findings except those about the index."""
    return [*_cached_findings(catalog), *lint_across_files(catalog.nodes)]


def file_checker() -> FileChecker:
    """Return the checker to use while loading the catalog, so that each file is read and parsed only once."""
    return FileChecker(f"{RULES_VERSION}.{secrets.RULES_VERSION}", TRANSIENT_CODES, check_file)


def _cached_findings(catalog: Catalog) -> Iterator[LintFinding]:
    rules = file_checker().rules
    late = [path for path, file in catalog.files.items() if file.rules != rules]
    if late:
        refreshed = catalogs.refresh_files(catalog, late, file_checker())
        for path in late:
            if path not in refreshed.files or refreshed.files[path].digest != catalog.files[path].digest:
                yield finding(path, 1, "unsettled", "it changed while it was looked at", "run it again")
            else:
                now = refreshed.files[path]
                catalog.files[path] = catalog.files[path]._replace(rules=now.rules, findings=now.findings)
    for path, file in catalog.files.items():
        for problem in file.findings:
            yield finding(path, *problem)


# Single files


def check_file(path: str, data: bytes | None, read: nodes.ParsedNode | None) -> catalogs.CachedFindings:
    """Check the content of one file."""
    if data is None:
        return ((1, "unreadable", "it cannot be read", "make it readable, or remove it"),)
    limit = catalogs.max_file_bytes(path)
    if len(data) > limit:
        problem = f"it is larger than {limit // 1024 // 1024} MB"
        return ((1, "too-large", problem, "keep it outside, and name where it is"),)
    if layout.is_index_file(path):
        return ()  # index files are generated from nodes, which are checked themselves
    findings = list(find_secrets(data))
    if layout.is_node_file(path):
        findings += lint_node(path, data, read)
    return tuple(findings)


def find_secrets(data: bytes) -> Iterator[FileFinding]:
    """Yield the secrets in a file. Binary files are skipped."""
    try:
        if not secrets.is_text_data(data):
            return
        for secret in secrets.find_secrets(secrets.decode_data(data))[:MAX_FINDINGS]:
            yield secret.line, "secret", f"it looks like a secret: {secret.kind}", secret.remedy
    except Exception as error:  # a file that could not be scanned must not count as clean
        problem = f"the secret scan failed ({type(error).__name__}), and nothing is committed unseen"
        yield 1, "scan-failed", problem, "report it, with the file if you may"


def lint_node(path: str, data: bytes, read: nodes.ParsedNode | None = None) -> Iterator[FileFinding]:
    """Check one node: encoding, org syntax, properties, title.

    `read` is the parsed `data`, if already available.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield line, "not-utf8", "it is not UTF-8, so org cannot be read", "save it as UTF-8"
        return
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        yield line, "unparseable", "it holds a NUL character", "remove it"
    read = read or nodes.parse_node(path, text)
    yield from _conflict_marks(text)
    lines = _property_lines(text, read.parsed.drawer)
    repeated = {line for name, places in lines.items() if name in NOT_REPEATED for line in places[1:]}
    for problem in read.parsed.problems[:MAX_FINDINGS]:
        code = "property-twice" if problem.line in repeated else problem.code
        yield problem.line, code, problem.message, REMEDIES.get(code, "mend it")
    yield from nodes.org_roam_problems(text, read.parsed)
    yield from _check_drawer(text, read, {name: places[0] for name, places in lines.items()})


def _conflict_marks(text: str) -> Iterator[FileFinding]:
    if "<<<<<<< " not in text and ">>>>>>> " not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            problem = "a merge of git left its marks here"
            yield number, "conflict", problem, "choose what holds, and remove the marks"


def _check_drawer(text: str, read: nodes.ParsedNode, lines: dict[str, int]) -> Iterator[FileFinding]:
    values = read.parsed.properties
    for name in nodes.REQUIRED_PROPERTIES:
        if values.get(name, "").strip():
            continue
        code = "id-missing" if name == "ID" else "property-missing"
        problem, remedy = (
            (f":{name}: is empty", "write its value")
            if name in values
            else (f":{name}: is missing", "write it into the drawer at the top")
        )
        yield lines.get(name, 1), code, problem, f"{remedy}; {_expected_value(name)}"
    if not read.parsed.title.strip():
        problem = "there is no #+title:" if "#+title" not in text.lower() else "the #+title: is empty"
        yield 1, "title-missing", problem, "write it below the drawer"
    yield from _check_values(values, lines)
    if not read.node.type:
        remedy = f"write one of {', '.join(nodes.NODE_TYPES)} into #+filetags:"
        yield 1, "no-type", "no tag says what type of node it is", remedy


def _check_values(values: dict[str, str], lines: dict[str, int]) -> Iterator[FileFinding]:
    def wrong(name: str, problem: str, code: str = "property-invalid") -> FileFinding:
        return lines.get(name, 1), code, f":{name}: {problem}", _expected_value(name)

    if values.get("ID") and not nodes.UUID_PATTERN.match(values["ID"]):
        yield wrong("ID", "is no UUID", "id-invalid")
    for name, allowed in nodes.ALLOWED_VALUES.items():
        is_agent = name == "CREATED_BY" and nodes.CREATOR_PATTERN.match(values.get(name, ""))
        if values.get(name) and values[name] not in allowed and not is_agent:
            yield wrong(name, f"cannot be {values[name][:60]!r}")
    for name in ("CREATED", "UPDATED", nodes.CURATED_PROPERTY):
        if values.get(name) and not _is_day(nodes.parse_day(values[name])):
            yield wrong(name, f"is no day: {values[name][:60]!r}")
    created, updated = (nodes.parse_day(values.get(name, "")) for name in ("CREATED", "UPDATED"))
    if "UPDATED" in values and _is_day(created) and created > updated:
        yield wrong("UPDATED", "lies before :CREATED:")
    for slug in nodes.parse_projects(values.get("PROJECTS", "")):
        if not nodes.PROJECT_PATTERN.match(slug):
            yield wrong("PROJECTS", f"holds {slug[:60]!r}, which is no slug", "project-bad")
    if len(values.get("SUMMARY", "")) > nodes.MAX_SUMMARY_LENGTH:
        yield wrong("SUMMARY", f"is longer than {nodes.MAX_SUMMARY_LENGTH} characters", "long-summary")


def _expected_value(name: str) -> str:
    if name == "CREATED_BY":
        return f"one of {', '.join(nodes.CREATORS)}, or the name of an agent of a-z, 0-9, - and _"
    if name in nodes.ALLOWED_VALUES:
        return f"one of {', '.join(nodes.ALLOWED_VALUES[name])}"
    return {
        "ID": "a UUID, as `uuidgen` makes them",
        "PROJECTS": "slugs of a-z, 0-9, - and _, as in :general: or :emacs:",
        "CREATED": "a day, as in 2026-05-24",
        "UPDATED": "a day, as in 2026-05-24",
        nodes.CURATED_PROPERTY: "a day, as in 2026-05-24",
        "SOURCE": "where it comes from, as in chat 2026-05-24, or a path below raw/",
        "SUMMARY": "one sentence, written to be found",
    }[name]


def _is_day(value: str) -> bool:
    return len(value) == 10 and dates.is_date(value)


def _property_lines(text: str, drawer: tuple[int, int] | None) -> dict[str, list[int]]:
    """Return the line numbers of each property of a drawer."""
    lines: dict[str, list[int]] = {}
    if drawer is not None:
        first = text.count("\n", 0, drawer[0]) + 1
        for number, line in enumerate(text[drawer[0] : drawer[1]].split("\n"), first):
            lines.setdefault(line.strip().partition(":")[2].partition(":")[0].upper(), []).append(number)
    return lines


# Across files


def lint_across_files(every: Iterable[Node]) -> Iterator[LintFinding]:
    """Yield duplicate IDs, broken links, links to merged nodes and duplicate titles."""
    all_nodes = list(every)
    owners: dict[str, str] = {}
    merged: dict[str, Node] = {}
    for node in all_nodes:
        for id in (node.id, *node.inner):
            if id and id in owners and owners[id] != node.path:
                problem = f"the ID {id} is that of {owners[id]} too"
                yield finding(node.path, 2, "id-duplicate", problem, "give one of them a new ID")
            elif id:
                owners[id] = node.path
        merged.update(dict.fromkeys(node.merged, node))
    titles: dict[str, str] = {}
    for node in all_nodes:
        for link in node.links:
            if link.id in owners:
                continue
            if link.id in merged:
                problem = f"the node {link.id} was merged into {merged[link.id].title}"
                yield finding(node.path, link.line, "merged-link", problem, f"link to {merged[link.id].id}")
            else:
                problem = f"no node has the ID {link.id}"
                yield finding(
                    node.path, link.line, "link-broken", problem, "link to another one, or remove it"
                )
        title = node.title.casefold()
        if title and title in titles:
            problem = f"{titles[title]} has the same title"
            yield finding(node.path, 1, "same-title", problem, "`ai-kb curate --dry-run` shows duplicates")
        titles.setdefault(title, node.path)


def lint_index(catalog: Catalog) -> Iterator[LintFinding]:
    """Compare the index files with the index generated from the nodes."""
    expected = catalog.index = catalog.index or nodes.build_index(catalog.nodes)
    present = {path for path in catalog.files if layout.is_index_file(path)}
    remedy = "`ai-kb index` makes it anew"
    for path in sorted(expected.keys() - present):
        yield finding(path, 1, "index-missing", "it is not there", remedy)
    for path in sorted(present - expected.keys()):
        if nodes.is_generated_index(catalog.text(path)):
            yield finding(path, 1, "index-stale", "it belongs to an earlier index", remedy)
        else:
            problem = "it is named as a part of the index, and is none"
            yield finding(path, 1, "index-foreign", problem, "rename it, so that it can be a node")
    for path in sorted(present & expected.keys()):
        text = catalog.text(path)
        if "[[id:" in text.lower():
            line = text[: text.lower().index("[[id:")].count("\n") + 1
            yield finding(path, line, "index-link", "it holds an id link, which counts as a backlink", remedy)
        elif text != expected[path]:
            line = _first_difference(text, expected[path])
            yield finding(path, line, "index-stale", "it is not what the nodes say", remedy)


def index_summary(findings: Iterable[LintFinding]) -> str:
    """Return the first problem of the index in one line; empty if there is none."""
    first = next(iter(findings), None)
    return f"{first.path}: {first.message}; {first.remedy}" if first else ""


def _first_difference(text: str, expected: str) -> int:
    for number, (one, other) in enumerate(zip(text.split("\n"), expected.split("\n"), strict=False), 1):
        if one != other:
            return number
    return min(text.count("\n"), expected.count("\n")) + 1

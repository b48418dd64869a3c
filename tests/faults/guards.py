"""The guards that keep data safe, each with the lines that take it out and the tests that have to notice.

A guard that nothing misses is no guard. `test_guards.py` copies the house, takes one out, and runs the tests.
"""

from typing import NamedTuple


class Guard(NamedTuple):
    name: str
    file: str
    """In src/quaid."""
    kept: str
    """The text that is the guard, wherever it stands in the file."""
    gone: str
    """What stands there without it."""
    noticed_by: str
    """A test file, or one test in it."""


GUARDS = (
    Guard(
        "a file is on the disk before it has its name",
        "folders/atomic_write.py",
        "            os.fsync(file.fileno())\n",
        "",
        "tests/faults/test_power_loss.py",
    ),
    Guard(
        "a text is never written over another in place",
        "folders/atomic_write.py",
        "        unfinished = _write_unfinished(place, data, token, stat.S_IMODE(before.st_mode))\n",
        "        handle = os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=place)\n"
        "        os.write(handle, data)\n"
        "        os.fsync(handle)\n"
        "        os.close(handle)\n"
        "        return\n",
        "tests/faults/test_power_loss.py",
    ),
    Guard(
        "a name is on the disk before it is acknowledged (fsync of the folder)",
        "folders/atomic_write.py",
        "os.fsync(place)",
        "pass",
        "tests/faults/test_power_loss.py",
    ),
    Guard(
        "a commit is on the disk before it is acknowledged (synchronous=FULL)",
        "storage/sqlite/connection.py",
        'connection.pragma("synchronous", "FULL")',
        'connection.pragma("synchronous", "NORMAL")',
        "tests/faults/test_power_loss.py",
    ),
    Guard(
        "the version check",
        "storage/page_edits.py",
        "if expected_version not in (None, visible_version, stored_version):",
        "if False:",
        "tests/storage/test_pages.py",
    ),
    Guard(
        "the version check, among many who write at once",
        "storage/page_edits.py",
        "if expected_version not in (None, visible_version, stored_version):",
        "if False:",
        "tests/faults/test_many_writers.py",
    ),
    Guard(
        "the removal guard",
        "model/sync_plan.py",
        "FEW_REMOVALS = 10\n",
        "FEW_REMOVALS = 10**9\n",
        "tests/operations/test_collections.py",
    ),
    Guard(
        "the writer lock",
        "storage/sqlite/connection.py",
        "with self.lock.held(), translate_sqlite_errors(self.path):",
        "with translate_sqlite_errors(self.path):",
        "tests/storage/test_db.py",
    ),
    Guard(
        "a write is sure of its turn before it reads",
        "storage/sqlite/connection.py",
        'execute("BEGIN IMMEDIATE")',
        'execute("BEGIN")',
        "tests/storage/test_db.py",
    ),
    Guard(
        "the path check: no link is followed out of a folder",
        "folders/scanner.py",
        'NO_LINK = getattr(os, "O_NOFOLLOW", 0)',
        "NO_LINK = 0",
        "tests/folders/test_scan.py",
    ),
    Guard(
        "a text that nobody read is not overwritten",
        "folders/atomic_write.py",
        "_stable_hash(place, temporary) != expected",
        "False",
        "tests/folders/test_atomic_replace.py",
    ),
    Guard(
        "a failed write changes the file back",
        "storage/sqlite/connection.py",
        "                while self._undo:\n                    self._undo.pop()()\n",
        "",
        "tests/faults/test_interleaving.py",
    ),
    Guard(
        "the host check",
        "http_server.py",
        "if len(named) != 1 or named[0].lower() not in hosts:",
        "if False:",
        "tests/web/test_auth.py",
    ),
    Guard(
        "the origin check",
        "web/auth.py",
        "if origin.lower() not in origins and",
        "if False and",
        "tests/web/test_auth.py",
    ),
    Guard(
        "the scope check",
        "web/auth.py",
        "if SCOPES.index(needed) > SCOPES.index(caller.scope):",
        "if False:",
        "tests/web/test_routes.py",
    ),
    Guard(
        "a newer memory is refused",
        "storage/sqlite/connection.py",
        "if version > SCHEMA_VERSION:",
        "if False:",
        "tests/storage/test_db.py",
    ),
    Guard(
        "a log that lacks acknowledged writes is refused",
        "storage/sqlite/connection.py",
        "and frames > end",
        "and False",
        "tests/storage/test_wal_end.py",
    ),
    Guard(
        "an upgrade is checked before it counts",
        "storage/migrations.py",
        "        _check_result(connection)\n",
        "",
        "tests/storage/test_migrations.py",
    ),
    Guard(
        "a user's words are quoted",
        "search/text.py",
        """f'"{self.text}"'""",
        "self.text",
        "tests/search",
    ),
    Guard(
        "HTML is cleaned",
        "web/pages/markdown.py",
        '{"html": False}',
        '{"html": True}',
        "tests/web/test_markdown.py",
    ),
    Guard(
        "a secret is not committed",
        "kb/catalog.py",
        "    findings = list(find_secrets(data))\n",
        "    findings = []\n",
        "tests/kb/test_lint.py",
    ),
    Guard(
        "git runs nothing that a repository brings",
        "kb/git.py",
        '"core.hooksPath"',
        '"core.hooksPathNot"',
        "tests/kb/test_git_safety.py",
    ),
    Guard(
        "the lock of a git that was killed under us does not stick",
        "kb/transaction.py",
        "                _remove_new_locks(git, before)\n",
        "                pass\n",
        "tests/kb/test_locks.py",
    ),
    Guard(
        "what was being put back is put back whole",
        "kb/git.py",
        "                missing.append(path)\n",
        "                pass\n",
        "tests/kb/test_git.py",
    ),
    Guard(
        "where no difference was told there is none",
        "kb/git.py",
        "                self._check_same(tree, parent)\n",
        "",
        "tests/kb/test_git.py",
    ),
    Guard(
        "a library that can lose commits is refused",
        "storage/sqlite/connection.py",
        "    if not is_safe_sqlite(sqlite_version()):\n",
        "    if False:\n",
        "tests/storage/test_open_checks.py",
    ),
    Guard(
        "a scan that could not read something removes nothing",
        "model/sync_plan.py",
        "    if not complete:\n",
        "    if False:\n",
        "tests/folders/test_untrusted_roots.py",
    ),
    Guard(
        "a file that is gone is looked for again before its page goes",
        "folders/sync.py",
        '(look is None or getattr(look, "path", "") in links)',
        "True",
        "tests/faults/test_interleaving.py",
    ),
    Guard(
        "a file that became empty leaves what it said",
        "storage/history.py",
        "MOST_VERSIONS = 10\n",
        "MOST_VERSIONS = 0\n",
        "tests/faults/test_interleaving.py",
    ),
    Guard(
        "a backup is made before an upgrade",
        "storage/migrations.py",
        "backup = _back_up_before_migration(db, version)",
        'backup = ""',
        "tests/storage/test_migrations.py",
    ),
    Guard(
        "a write of an agent is reviewed where the settings say so",
        "operations/dispatch.py",
        'if brain.agent and operation.scope == "write":',
        "if False:",
        "tests/operations/test_review.py",
    ),
    Guard(
        "what was not reviewed is not written",
        "operations/review.py",
        "if not adds_only and not _was_reviewed(change.diff, row.diff, days):",
        "if False:",
        "tests/operations/test_review.py",
    ),
    Guard(
        "what cannot be undone goes by the very name",
        "operations/cleanup.py",
        "if stored.slug != slugs.split_address(address)[1]:",
        "if False:",
        "tests/operations/test_merge.py",
    ),
    Guard(
        "the token check",
        "web/auth.py",
        "grant = self._tokens.find(token.strip(), time.time())",
        'grant = service.TokenGrant("owner")',
        "tests/web/test_auth.py",
    ),
    Guard(
        "the cap of a body",
        "web/auth.py",
        "    if size > MAX_BODY and (text := await asyncio.to_thread(decoded_size, body)) > MAX_BODY:\n",
        "    if (text := 0) > MAX_BODY:\n",
        "tests/web/test_auth.py",
    ),
    Guard(
        "YAML that repeats itself by aliases is refused",
        "formats/markdown.py",
        "        if shared:\n",
        "        if False:\n",
        "tests/formats/test_front_matter.py",
    ),
    Guard(
        "an answer is labelled by where its text is kept",
        "mcp/tools.py",
        '    label = {"trust": provenance_of(name)["trust"]}\n',
        "    label: dict[str, str] = {}\n",
        "tests/faults/test_stored_text.py",
    ),
    Guard(
        "a text cannot take the place of its label",
        "mcp/tools.py",
        " if key not in label}",
        "}",
        "tests/faults/test_stored_text.py",
    ),
    Guard(
        "a text cannot end the block that it stands in",
        "mcp/tools.py",
        '"&lt;"',
        '"<"',
        "tests/mcp/test_prompts.py",
    ),
    Guard(
        "a mistake of ours leaves no text in the log (stdio)",
        "mcp/server.py",
        'log_to_stderr(f"quaid: internal error: {type(error).__name__}")',
        'log_to_stderr(f"quaid: internal error: {error!r}")',
        "tests/mcp/test_handlers.py",
    ),
    Guard(
        "a mistake of ours leaves no text in the log (HTTP)",
        "web/server.py",
        'log_to_stderr(f"quaid: internal error: {type(error).__name__}")',
        'log_to_stderr(f"quaid: internal error: {error!r}")',
        "tests/faults/test_quiet_logs.py",
    ),
    Guard(
        "a tool's arguments are not written down",
        "operations/dispatch.py",
        "    brain.leaves_marks = scope",
        "    with open(brain.settings.db_path + '-calls', 'a') as file:\n        file.write(repr(arguments))\n"
        "    brain.leaves_marks = scope",
        "tests/faults/test_quiet_logs.py",
    ),
    Guard(
        "what a server of vectors says is not written down: it may repeat a text",
        "embedding/remote.py",
        "noted=problem",
        "noted=told",
        "tests/faults/test_quiet_logs.py",
    ),
    Guard(
        "a lock is its owner's alone",
        "storage/sqlite/connection.py",
        "flags | NO_FOLLOW, 0o600",
        "flags | NO_FOLLOW, 0o644",
        "tests/faults/test_quiet_logs.py",
    ),
    Guard(
        "a frame that is no message is answered",
        "mcp/server.py",
        '            self._send(jsonrpc.failure(None, INVALID_REQUEST, f"Invalid request: {problem}"))\n',
        "            del problem\n",
        "tests/faults/test_malformed_requests.py",
    ),
    Guard(
        "a lock is no link to somebody's file",
        "storage/sqlite/connection.py",
        'NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)',
        "NO_FOLLOW = 0",
        "tests/storage/test_lock.py",
    ),
    Guard(
        "all of a file's text is in the index",
        "folders/indexer.py",
        "        document.truth,\n",
        "        document.truth[: len(document.truth) // 2],\n",
        "tests/faults/test_convergence.py",
    ),
    Guard(
        "a page is called as its file is, wherever it goes",
        "storage/page_edits.py",
        "        derive(tx, saved.id, page, cut=False)\n",
        "        pass\n",
        "tests/operations/test_moved_files.py",
    ),
    Guard(
        "a file that is too large is left out alone",
        "folders/sync.py",
        "            if data is None:\n                continue\n",
        '            if data is None:\n                raise NotFound(what="file", name=file.path, hint="")\n',
        "tests/faults/test_hostile_files.py::test_a_hostile_file_costs_little_and_the_rest_is_found[markdown]",
    ),
    Guard(
        "a watcher brings in what it hears of",
        "folders/watcher.py",
        "                self._sync(folder)\n\n    def once",
        "                pass\n\n    def once",
        "tests/faults/test_missed_events.py",
    ),
    Guard(
        "a hub refuses a push that is not based on the newest revision",
        "hub/revisions.py",
        "        if push.base != revision or (push.base_hash and head and push.base_hash != head.hash):\n",
        "        push = push._replace(base=revision)\n        if False:\n",
        "tests/hub/test_simulation.py",
    ),
    Guard(
        "a device keeps both sides of a conflict",
        "spaces/replica.py",
        "merge(base, ours, theirs, our_name, their_name)",
        "merge(ours, ours, theirs, our_name, their_name)",
        "tests/spaces/test_replica.py::test_a_conflict_keeps_both_sides_on_every_laptop",
    ),
    Guard(
        "a query without a condition shows no other space",
        "hub/postgres_store.py",
        """set_config('role', %s, true)""",
        """set_config('quaid.role', %s, true)""",
        "tests/hub/test_postgres_store.py",
    ),
    Guard(
        "a bundle has the hash that was sent",
        "hub/revisions.py",
        "        if hashlib.sha256(push.bundle).hexdigest() != push.hash:\n",
        "        if False:\n",
        "tests/hub/test_store.py::test_a_bundle_with_another_hash_is_refused",
    ),
)

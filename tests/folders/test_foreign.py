"""Imports of other programs' notes and memories: the pages, a second import, and unreadable parts."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import FileTrouble
from quaid.folders import importer
from quaid.formats import documents
from quaid.operations import dispatch
from quaid.operations.collections import ImportRecord, import_
from quaid.operations.dispatch import json_value

Dump = Callable[[], dict[str, list[Any]]]


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def fill(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def pack(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def take(brain: Brain, source: Any, path: Path) -> ImportRecord:
    """Import twice: the second run changes no row of any table."""
    first = import_(brain, str(path), from_=source)
    before = rows(brain)
    second = import_(brain, str(path), from_=source)
    assert second.report.import_id is None
    assert second.unread == first.unread
    assert rows(brain) == before
    return first


def rows(brain: Brain) -> dict[str, list[Any]]:
    names = [name for (name,) in brain.db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {str(name): brain.db.rows(f'SELECT * FROM "{name}"') for name in names}


def pages(brain: Brain) -> dict[str, Any]:
    return {str(slug): run(brain, "get", slug=slug) for (slug,) in brain.db.rows("SELECT slug FROM pages")}


def facts(brain: Brain) -> set[tuple[str, str, str]]:
    found = brain.db.rows("SELECT subject, predicate, object FROM assertions")
    return {(str(one), str(two), str(three)) for one, two, three in found}


def links(brain: Brain) -> set[tuple[str, str, str]]:
    found = brain.db.rows(
        "SELECT f.slug, l.relationship, t.slug FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id"
    )
    return {(str(one), str(two), str(three)) for one, two, three in found}


def reasons(record: ImportRecord) -> dict[str, str]:
    return {part.path: part.reason for part in record.unread}


def chat(key: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    nodes = {
        f"n{number}": {"id": f"n{number}", "parent": f"n{number - 1}" if number else None, "message": message}
        for number, message in enumerate(messages)
    }
    return {"conversation_id": key, "title": "Trip", "create_time": 1714600000.0, "mapping": nodes}


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    return {
        "id": more.pop("id", text[:8]),
        "author": {"role": role},
        "create_time": 1714654800.5,
        "content": content,
        **more,
    }


CHATGPT = [
    chat(
        "c1",
        [
            message(
                "user",
                "",
                content={
                    "content_type": "user_editable_context",
                    "user_profile": "I build boats.",
                    "user_instructions": "Answer briefly.",
                },
            ),
            message("user", "I moved to Tromsø, remember that."),
            message("assistant", "Lives in Tromsø since May 2024.", recipient="bio", id="bio-1"),
            message("assistant", "Noted."),
            message(
                "system",
                "",
                content={
                    "content_type": "model_editable_context",
                    "model_set_context": (
                        "1. [2024-04-01]. Has a dog called Pelle.\n"
                        "2. [2024-05-02]. Lives in Tromsø since May 2024."
                    ),
                },
            ),
        ],
    ),
    {"no": "conversation"},
]


def test_a_long_memory_without_spaces_has_a_title(brain: Brain, tmp_path: Path) -> None:
    path = tmp_path / "memories.txt"
    path.write_text(f"[2024-05-02] - {'我喜欢' * 40}\n")
    take(brain, "chatgpt", path)
    (page,) = pages(brain).values()
    assert page["frontmatter"]["title"] == "我喜欢" * 26 + "我喜…"


def test_chatgpt_gives_conversations_memories_and_instructions(brain: Brain, tmp_path: Path) -> None:
    path = pack(
        tmp_path / "export.zip",
        {"conversations.json": json.dumps(CHATGPT), "chat.html": "<html>", "user.json": "{}"},
    )
    record = take(brain, "chatgpt", path)
    assert record.conversations
    assert (record.conversations.conversations, record.conversations.turns) == (1, 2)
    found = pages(brain)
    memory = found["memories/chatgpt/bio-1"]
    assert memory["compiled_truth"] == "Lives in Tromsø since May 2024."
    assert memory["frontmatter"]["id"] == "bio-1"
    assert memory["created_at"] == memory["frontmatter"]["created"] == "2024-05-02T13:00:00Z"
    texts = [page["compiled_truth"] for page in found.values()]
    assert "Has a dog called Pelle." in texts
    assert len(texts) == 3, "the memory that is listed again is stored once"
    assert "Answer briefly." in found["memories/chatgpt/custom-instructions"]["compiled_truth"]
    assert reasons(record) == {
        "conversations.json[1]": "not a conversation",
        "chat.html": "no conversations or memories",
        "user.json": "no conversations or memories",
    }
    assert record.reasons == {"no conversations or memories": 2, "not a conversation": 1}
    text = render(record)
    assert "Not read: 3 parts" in text
    assert "conversations.json[1]: not a conversation" in text


def test_claude_gives_memories_and_projects_with_documents(brain: Brain, tmp_path: Path) -> None:
    talk = {
        "uuid": "t1",
        "name": "Hull",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Which wood?", "created_at": "2025-03-01T10:00:00Z"},
            {"uuid": "m2", "sender": "assistant", "text": "Larch.", "created_at": "2025-03-01T10:00:09Z"},
        ],
    }
    project = {
        "uuid": "9f8e7d6c-0000-4000-8000-000000000000",
        "name": "Boat",
        "description": "A clinker boat.",
        "prompt_template": "Use metric units.",
        "created_at": "2025-02-01T08:00:00.123456+00:00",
        "updated_at": "2025-03-01T08:00:00+00:00",
        "docs": [
            {
                "uuid": "d1",
                "filename": "lines.md",
                "content": "# Lines\n\nBeam 2.1 m.",
                "created_at": "2025-02-02T08:00:00Z",
            },
            {"uuid": "d2", "filename": "empty.md", "content": ""},
        ],
    }
    memory = {
        "conversations_memory": "**Work**\n\nBuilds boats.",
        "project_memories": {"9f8e": "Larch on oak."},
    }
    path = pack(
        tmp_path / "claude.zip",
        {
            "conversations.json": json.dumps([talk]),
            "projects.json": json.dumps([project, 7]),
            "memories.json": json.dumps([memory]),
            "users.json": "[]",
        },
    )
    record = take(brain, "claude", path)
    found = pages(brain)
    assert record.conversations
    assert record.conversations.turns == 2
    boat = found["projects/claude/boat-9f8e7d6c"]
    assert boat["created_at"] == "2025-02-01T08:00:00Z"
    assert boat["frontmatter"]["id"] == project["uuid"]
    assert "Use metric units." in boat["compiled_truth"]
    document = "projects/claude/boat-9f8e7d6c/lines-md-d1"
    assert found[document]["created_at"] == "2025-02-02T08:00:00Z"
    assert ("projects/claude/boat-9f8e7d6c", "mentions", document) in links(brain)
    assert found["memories/claude/conversations"]["compiled_truth"] == "**Work**\n\nBuilds boats."
    assert found["memories/claude/9f8e"]["compiled_truth"] == "Larch on oak."
    assert reasons(record) == {
        "projects.json[0].docs[1]": "empty.md has no text",
        "projects.json[1]": "not a project",
    }


def test_gemini_activity_becomes_one_conversation_a_day_in_order(brain: Brain, tmp_path: Path) -> None:
    def activity(time: str, title: str, html: str = "") -> dict[str, Any]:
        item = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
        return {**item, "safeHtmlItem": [{"html": html}]} if html else item

    listed = [
        activity("2025-06-02T09:00:00.000Z", "Prompted And salt?", "<p>A <b>pinch</b>.</p>"),
        activity("2025-06-01T10:05:00.000Z", "Prompted How long?", "<ul><li>20 minutes</li></ul>"),
        activity("2025-06-01T10:00:00.000Z", "Prompted How do I bake flatbread?", "<p>Flour.</p>"),
        activity("2025-06-01T09:00:00.000Z", "Gave feedback"),
    ]
    path = pack(
        tmp_path / "takeout.zip",
        {
            "Takeout/My Activity/Gemini Apps/MyActivity.json": json.dumps(listed),
            "Takeout/archive_browser.html": "<html>",
        },
    )
    record = take(brain, "gemini", path)
    assert record.conversations
    assert (record.conversations.conversations, record.conversations.turns) == (2, 6)
    first = run(brain, "conversations show", session="2025-06-01")
    assert [(turn["role"], turn["text"]) for turn in first["turns"]] == [
        ("user", "How do I bake flatbread?"),
        ("assistant", "Flour."),
        ("user", "How long?"),
        ("assistant", "- 20 minutes"),
    ]
    assert record.conversations.broken == 1
    assert list(reasons(record)) == ["Takeout/archive_browser.html"]


def test_a_list_of_memories_is_read_line_by_line(brain: Brain, tmp_path: Path) -> None:
    path = tmp_path / "memories.txt"
    path.write_text(
        "```\n[2025-01-31] - Plays the nyckelharpa.\n"
        "[unknown] - Allergic to nuts.\n- Prefers trains.\n```\nThat is all.\n"
    )
    record = take(brain, "gemini", path)
    found = {page["compiled_truth"]: page["created_at"] for page in pages(brain).values()}
    assert found.keys() == {"Plays the nyckelharpa.", "Allergic to nuts.", "Prefers trains."}
    assert found["Plays the nyckelharpa."] == "2025-01-31T00:00:00Z"
    assert list(reasons(record)) == ["memories.txt:6"]


def test_mem0_memories_keep_ids_dates_and_owners_and_relations_become_facts(
    brain: Brain, tmp_path: Path
) -> None:
    value = {
        "results": [
            {
                "id": "0a1b2c3d-1111-4222-8333-444455556666",
                "memory": "Prefers window seats",
                "user_id": "siri",
                "categories": ["travel"],
                "metadata": {"trip": 7},
                "created_at": "2024-07-26T08:07:05.123456-07:00",
                "updated_at": "2024-08-01T08:00:00-07:00",
            },
            {"id": "empty"},
        ],
        "relations": [{"source": "siri", "relationship": "works_at", "target": "nordkai"}, {"source": "x"}],
    }
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(value))
    record = take(brain, "mem0", path)
    page = pages(brain)["memories/mem0/0a1b2c3d-1111-4222-8333-444455556666"]
    assert page["created_at"] == "2024-07-26T15:07:05Z"
    assert page["frontmatter"]["updated"] == "2024-08-01T15:00:00Z"
    assert (page["tags"], page["frontmatter"]["user_id"], page["frontmatter"]["metadata"]) == (
        ["travel"],
        "siri",
        {"trip": 7},
    )
    assert facts(brain) == {("siri", "works_at", "nordkai")}
    assert reasons(record) == {
        "mem0.json[1]": "no text of a memory",
        "mem0.json[3]": "a relation needs source, relationship and target",
    }


BASIC_MEMORY = {
    "notes/Coffee.md": (
        "---\ntitle: Coffee\ntype: note\npermalink: notes/coffee-brewing\n"
        "created: 2024-03-04T05:06:07Z\n---\n\n# Coffee\n\n"
        "- [method] Pour over is clearer #taste (own test)\n- [ ] buy beans\n- [site](https://example.org)\n"
        "- requires [[Grinder]] (daily)\n- [[Nowhere]]\n"
    ),
    "notes/Grinder.md": "---\ntitle: Grinder\npermalink: notes/grinder\n---\nBurrs.\n",
    "notes/.hidden/x.md": "hidden",
    "picture.png": "x",
}


def test_basic_memory_observations_are_facts_and_relations_links(brain: Brain, tmp_path: Path) -> None:
    record = take(brain, "basic-memory", fill(tmp_path / "memory", BASIC_MEMORY))
    page = pages(brain)["notes/coffee-brewing"]
    assert page["created_at"] == "2024-03-04T05:06:07Z"
    assert page["frontmatter"]["permalink"] == "notes/coffee-brewing"
    assert facts(brain) == {("Coffee", "method", "Pour over is clearer")}
    assert ("notes/coffee-brewing", "requires", "notes/grinder") in links(brain)
    assert record.reasons == {
        "hidden folder": 1,
        "other kind of file": 1,
        "a relation to a note that does not exist; it stays in the text": 1,
    }


def test_obsidian_text_stays_and_fields_become_facts(brain: Brain, tmp_path: Path) -> None:
    files = {
        "Vault/People/Siri Lund.md": (
            "---\naliases: [Sib]\ncreated: 2023-01-02\n---\nborn:: 1990-05-06\n\n"
            "Knows [[Nordkai AS|the yard]]. [role:: welder]\n\n```\nnot:: this\n```\n"
        ),
        "Vault/Nordkai AS.md": "By [[Sib]].\n",
        "Vault/.obsidian/app.json": "{}",
        "Vault/board.canvas": "{}",
        "Vault/README.md": "A note like any other.\n",
    }
    record = take(brain, "obsidian", pack(tmp_path / "vault.zip", dict(files)))
    found = pages(brain)
    assert found.keys() == {"people/siri-lund", "nordkai-as", "readme"}
    assert found["people/siri-lund"]["title"] == "Siri Lund"
    assert found["people/siri-lund"]["created_at"] == "2023-01-02T00:00:00Z"
    assert "born:: 1990-05-06\n" in found["people/siri-lund"]["compiled_truth"]
    assert facts(brain) == {("Siri Lund", "born", "1990-05-06"), ("Siri Lund", "role", "welder")}
    assert links(brain) == {
        ("people/siri-lund", "mentions", "nordkai-as"),
        ("nordkai-as", "mentions", "people/siri-lund"),
    }
    assert reasons(record) == {
        "Vault/.obsidian/app.json": "hidden file",
        "board.canvas": "other kind of file",
    }


def test_logseq_pages_journals_tasks_and_block_references(brain: Brain, tmp_path: Path) -> None:
    block = "65f1a2b3-0000-4000-8000-000000000001"
    files = {
        "pages/work___Pier.md": (
            f"alias:: The pier\ntags:: site, [[harbour]]\nowner:: [[Siri Lund]]\n\n- # Plan\n"
            f"\t- TODO Order steel\n\t  id:: {block}\n\t- DONE Draw\n\t  collapsed:: true\n"
        ),
        "pages/Siri Lund.md": f"- Waits for (({block}))\n- {{{{embed [[The pier]]}}}}\n- ((00000000-dead))\n",
        "journals/2024_02_29.md": "- Rain at [[work/Pier]]\n",
        "logseq/bak/old.md": "- old\n",
        "assets/a.png": "x",
    }
    record = take(brain, "logseq", fill(tmp_path / "graph", files))
    found = pages(brain)
    assert found.keys() == {"work/pier", "siri-lund", "journals/2024-02-29"}
    pier = found["work/pier"]
    assert (pier["title"], pier["tags"], pier["frontmatter"]["aliases"]) == (
        "work/Pier",
        ["site", "harbour"],
        ["The pier"],
    )
    assert pier["compiled_truth"] == f"- # Plan\n  - [ ] Order steel ^{block}\n  - [x] Draw"
    assert (
        f"- Waits for [[work/Pier#^{block}|TODO Order steel]]\n- ![[The pier]]\n- ((00000000-dead))"
        in found["siri-lund"]["compiled_truth"]
    )
    assert (found["journals/2024-02-29"]["type"], found["journals/2024-02-29"]["frontmatter"]["date"]) == (
        "journal",
        "2024-02-29",
    )
    assert facts(brain) == {("work/Pier", "owner", "Siri Lund")}
    assert {
        ("siri-lund", "mentions", "work/pier"),
        ("journals/2024-02-29", "mentions", "work/pier"),
    } <= links(brain)
    assert record.reasons == {"settings and backups of Logseq": 1, "other kind of file": 1}


def test_roam_blocks_attributes_dates_and_references(brain: Brain, tmp_path: Path) -> None:
    graph = [
        {
            "title": "Siri Lund",
            "uid": "page-1",
            "create-time": 1592095527164,
            "edit-time": 1592181927000,
            "children": [
                {"string": "Role:: welder", "uid": "attr-1"},
                {
                    "string": "{{[[TODO]]}} Call __now__",
                    "uid": "todo-blk",
                    "heading": 2,
                    "children": [{"string": "two\nlines", "uid": "leaf-001"}],
                },
                {"uid": "broken"},
            ],
        },
        {
            "title": "June 14th, 2020",
            "uid": "06-14-2020",
            "children": [{"string": "See ((todo-blk)) of [[Siri Lund]]", "uid": "x"}],
        },
        {"uid": "no title"},
    ]
    path = pack(tmp_path / "roam.zip", {"graph.json": json.dumps(graph)})
    record = take(brain, "roam", path)
    page = pages(brain)["siri-lund"]
    assert page["created_at"] == "2020-06-14T00:45:27Z"
    assert (page["frontmatter"]["id"], page["frontmatter"]["updated"]) == ("page-1", "2020-06-15T00:45:27Z")
    assert page["compiled_truth"] == "- Role:: welder\n- ## [ ] Call *now* ^todo-blk\n  - two\n    lines"
    day = pages(brain)["journals/2020-06-14"]
    assert day["compiled_truth"] == "- See [[Siri Lund#^todo-blk|{{TODO}} Call __now__]] of [[Siri Lund]]"
    assert (day["title"], day["type"]) == ("June 14th, 2020", "journal")
    assert facts(brain) == {("Siri Lund", "role", "welder")}
    assert record.reasons == {"a block without text": 1, "a page without a title": 1}


def test_notion_names_properties_tables_links_and_nested_archives(brain: Brain, tmp_path: Path) -> None:
    one, two, table = (f"{number:032x}" for number in (1, 2, 3))
    inner = pack(
        tmp_path / "Part-1.zip",
        {
            f"Home {one}.md": (
                f"# Home\n\nSee [the pier](Home%20{one}/Tasks%20{table}/Pier%20{two}.md) "
                f"and [tasks](Home%20{one}/Tasks%20{table}.csv).\n"
            ),
            f"Home {one}/Tasks {table}.csv": "Name,Status\nPier,Open\n",
            f"Home {one}/Tasks {table}_all.csv": 'Name,Status\nPier,Open\n"Old | one",Done\n',
            f"Home {one}/Tasks {table}/Pier {two}.md": (
                "# Pier\n\nStatus: Open\nTags: site, steel\n"
                "Created: January 5, 2024 9:30 AM\n\nOrder steel.\n"
            ),
            f"Page {one}.html": "<html>",
        },
    )
    deeper = pack(tmp_path / "deeper.zip", {"x.zip": pack(tmp_path / "x.zip", {"a.md": "a"}).read_bytes()})
    path = pack(
        tmp_path / "notion.zip", {"Export-Part-1.zip": inner.read_bytes(), "deep.zip": deeper.read_bytes()}
    )
    record = take(brain, "notion", path)
    found = pages(brain)
    assert found.keys() == {"home", "home/tasks", "home/tasks/pier"}
    pier = found["home/tasks/pier"]
    assert (pier["frontmatter"]["id"], pier["tags"], pier["created_at"]) == (
        two,
        ["site", "steel"],
        "2024-01-05T09:30:00Z",
    )
    assert pier["compiled_truth"] == "Order steel."
    assert "| Old \\| one | Done |" in found["home/tasks"]["compiled_truth"]
    assert {("home", "mentions", "home/tasks"), ("home", "mentions", "home/tasks/pier")} <= links(brain)
    assert facts(brain) == {("Pier", "status", "Open")}
    assert reasons(record) == {
        "x.zip": importer.INNER_ARCHIVE,
        f"Page {one}.html": 'export from Notion as "Markdown & CSV" instead of HTML',
    }


def test_org_roam_nodes_ids_and_links(brain: Brain, tmp_path: Path) -> None:
    one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    files = {
        "20240105120000-pier.org": (
            f':PROPERTIES:\n:ID: {one}\n:ROAM_ALIASES: "The pier"\n'
            ":CREATED: [2024-01-05 Fri 12:00]\n:END:\n#+title: Pier\n"
            f"#+filetags: :site:\n\n"
            f"Built by [[id:{two}][Siri]], *soon* and /well/, =a=b= [[https://example.org][site]].\n"
            "#+begin_quote\nSalt creeps.\n#+end_quote\n"
            f"* Siri Lund\n:PROPERTIES:\n:ID: {two}\n:END:\nWelder.\n"
        ),
        "notes.md": "not org",
    }
    record = take(brain, "org-roam", fill(tmp_path / "roam", files))
    found = pages(brain)
    assert found.keys() == {"pier", "pier/siri-lund"}
    pier = found["pier"]
    assert (pier["frontmatter"]["id"], pier["created_at"]) == (one, "2024-01-05T12:00:00Z")
    assert (pier["tags"], pier["frontmatter"]["aliases"]) == (["site"], ["The pier"])
    assert f"Built by [[id:{two}|Siri]], **soon** and *well*" in pier["compiled_truth"]
    assert "[site](https://example.org)" in pier["compiled_truth"]
    assert "> Salt creeps." in pier["compiled_truth"]
    assert ("pier", "mentions", "pier/siri-lund") in links(brain)
    assert reasons(record) == {"notes.md": "other kind of file"}


def test_apple_notes_html(brain: Brain, tmp_path: Path) -> None:
    html = (
        "<html><head><title>Bread</title><meta name='created' content='2022-02-03T04:05:06Z'>"
        "<meta name='modified' content='2022-03-04T05:06:07Z'><style>p {}</style></head><body>"
        "<div><h1>Bread</h1></div><div>Flour &amp; <b>water</b></div><ul "
        "class='checklist'><li class='checked'>Buy</li>"
        ""
        "<li>Bake<ul><li>hot</li></ul></li></ul><table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>"
        "<script>alert(1)</script><a href='https://example.org'>more</a></body></html>"
    )
    record = take(
        brain,
        "apple-notes-html",
        fill(tmp_path / "notes", {"Kitchen/Bread.html": html, "empty.html": "<p></p>"}),
    )
    page = pages(brain)["kitchen/bread"]
    assert (page["created_at"], page["frontmatter"]["updated"]) == (
        "2022-02-03T04:05:06Z",
        "2022-03-04T05:06:07Z",
    )
    assert page["compiled_truth"] == (
        "# Bread\n\nFlour & **water**\n\n- [x] Buy\n- Bake\n  - hot\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n[more](https://example.org)"
    )
    assert reasons(record) == {"empty.html": "a note without text"}


def test_a_changed_export_changes_its_page_and_an_edited_page_is_kept(brain: Brain, tmp_path: Path) -> None:
    def memory(text: str) -> Path:
        path = tmp_path / f"{text}.json"
        path.write_text(json.dumps([{"id": "one", "memory": text}]))
        return path

    import_(brain, str(memory("Likes tea")), from_="mem0")
    changed = import_(brain, str(memory("Likes coffee")), from_="mem0")
    assert changed.report.outcomes["changed"] == 1
    page = run(brain, "get", slug="memories/mem0/one")
    assert page["compiled_truth"] == "Likes coffee"
    run(brain, "put", slug="memories/mem0/one", content="Mine.", expected_version=page["version"])
    path = memory("Likes water")
    kept = import_(brain, str(path), from_="mem0")
    assert [conflict.remedy for conflict in kept.report.conflicts] == [
        f"quaid import --from mem0 '{path}' --force"
    ]
    assert run(brain, "get", slug="memories/mem0/one")["compiled_truth"] == "Mine."


def test_unsafe_names_symlinks_and_passwords_cost_only_their_entry(brain: Brain, tmp_path: Path) -> None:
    path = tmp_path / "hostile.zip"
    link = zipfile.ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        for name in (
            "../out.md",
            "/root.md",
            "a/../../b.md",
            "C:evil.md",
            "back\\slash.md",
            "secret.md",
            "good.md",
        ):
            archive.writestr(name, f"# {name}")
        archive.writestr(link, "/etc/passwd")
    data = bytearray(path.read_bytes())
    data[data.rindex(b"secret.md") - 46 + 8] |= 1  # the flag of an encrypted entry in the list of files
    path.write_bytes(data)
    record = import_(brain, str(path), from_="obsidian")
    assert pages(brain).keys() == {"good"}
    assert record.reasons == {importer.UNSAFE_NAME: 5, "encrypted": 1, "link": 1}
    assert sorted(item.name for item in tmp_path.iterdir() if item.suffix == ".md") == []


def test_bombs_and_damaged_archives_are_refused(
    brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = pack(tmp_path / "bomb.zip", {"a.md": b"0" * (documents.RATIO_CHECK_BYTES + 1)})
    with pytest.raises(FileTrouble, match="would unpack"):
        import_(brain, str(bomb), from_="obsidian")
    outer = pack(tmp_path / "outer.zip", {"bomb.zip": bomb.read_bytes(), "a.md": "fine"})
    record = import_(brain, str(outer), from_="obsidian")
    assert "would unpack" in reasons(record)["bomb.zip"]
    assert pages(brain).keys() == {"a"}
    torn = tmp_path / "torn.zip"
    torn.write_bytes(pack(tmp_path / "whole.zip", {"a.md": "text"}).read_bytes()[:40])
    with pytest.raises(FileTrouble, match="damaged archive"):
        import_(brain, str(torn), from_="obsidian")
    monkeypatch.setattr(documents, "MAX_DIRECTORY_BYTES", 10)
    with pytest.raises(FileTrouble, match="list of files"):
        import_(brain, str(outer), from_="obsidian")


@pytest.mark.parametrize(
    "source", ["chatgpt", "claude", "gemini", "mem0", "roam", "notion", "jsonl", "org-roam"]
)
def test_files_of_another_kind_are_reported_and_change_nothing(
    brain: Brain, tmp_path: Path, source: Any
) -> None:
    broken = {
        "conversations.json": '[{"a"',
        "memories.json": "{",
        "data.json": "[[[",
        "x.jsonl": "{\n",
        "y.org": "\0",
        "z.csv": "",
    }
    record = import_(brain, str(fill(tmp_path / "broken", broken)), from_=source)
    assert record.unread
    assert all(part.reason for part in record.unread)
    assert [page for page in pages(brain) if page != "y"] == []

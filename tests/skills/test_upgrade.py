"""The way back that the upgrade skill shows, walked on a real memory of an old schema."""

import re
import subprocess
from pathlib import Path

import apsw
from tests.skills.test_skill_texts import read

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

OLD = Path(__file__).parent.parent / "storage" / "fixtures" / "v5.sql"


def test_going_back_gives_the_memory_as_it_was_and_keeps_the_new_one(
    settings: Settings, tmp_path: Path
) -> None:
    memory = Path(settings.db_path)
    connection = apsw.Connection(str(memory))
    connection.execute(OLD.read_text(encoding="utf-8"))
    before = sorted(connection.execute("SELECT slug, title FROM pages").fetchall())
    connection.close()
    with Brain(settings) as brain:  # the first opening brings it forward
        new = {"slug": "people/after", "content": "# After\n"}
        dispatch.call(brain, dispatch.find_command("put"), new, "owner")
        crashed = memory.with_name("memory.db-wal").read_bytes()
    memory.with_name("memory.db-wal").write_bytes(crashed)  # as a client leaves it that was killed

    block = next(block for block in blocks("upgrade") if block.startswith("MEMORY="))
    script = re.sub(r"^MEMORY=.*$", f'MEMORY="{memory}"', block, flags=re.M).replace("backup-v6", "backup-v5")
    subprocess.run(["sh", "-eu", "-c", script], check=True, cwd=tmp_path)

    assert not memory.with_name("memory.db-wal").exists()
    restored = apsw.Connection(str(memory))
    assert restored.pragma("user_version") == 5
    assert sorted(restored.execute("SELECT slug, title FROM pages").fetchall()) == before
    restored.close()
    with Brain(settings) as brain:
        assert dispatch.call(brain, dispatch.find_command("validate"), {}, "owner").violations == ()
    with Brain(settings._replace(db_path=f"{memory}.failed")) as brain:
        assert (
            dispatch.call(brain, dispatch.find_command("get"), {"slug": "people/after"}, "owner").title
            == "After"
        )


def blocks(name: str) -> list[str]:
    text = read(f"src/quaid/skills/{name}/SKILL.md")
    return re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)

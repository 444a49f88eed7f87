"""Every package that is installed is the one that was looked at: pinned, and by its hashes."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()


def pins(text: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_the_lock_has_what_requirements_txt_asks_for():
    asked, locked = pins((ROOT / "requirements.txt").read_text()), pins(LOCK)
    wrong = {name: version for name, version in asked.items() if locked.get(name) != version}
    assert not wrong, "run script/requirements"


def test_every_package_of_the_lock_has_hashes():
    blocks = re.split(r"\n(?=[A-Za-z0-9])", LOCK.strip())
    assert len(blocks) == len(pins(LOCK))
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []

"""The scenario of docs/adding-a-scenario.md, and its test, as they are printed there."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from runs.scenarios import registry

pytestmark = pytest.mark.openssh

GUIDE = Path(__file__).parents[2] / "docs/adding-a-scenario.md"


def printed(number: int) -> ModuleType:
    """The Python of the guide: 0 is the scenario's module, 1 its test's."""
    code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[number]
    module = ModuleType(f"printed_{number}")
    exec(compile(code, str(GUIDE), "exec"), module.__dict__)
    return module


def test_the_printed_scenario_passes_its_printed_test(direct, plan, base_dir, monkeypatch):
    scenario = printed(0).SCENARIO
    monkeypatch.setitem(registry._SCENARIOS, scenario.slug, scenario)
    printed(1).test_a_standby_follows_while_the_primary_is_read(direct, plan, base_dir)

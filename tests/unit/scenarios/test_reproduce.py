"""The designs that publications name can be asked of the scenarios that they name."""

from pathlib import Path

import yaml

import runs.published
from runs.scenarios import registry

SOURCES = Path(runs.published.__file__).parent.glob("*.yaml")


def faults(slug, wanted):
    """What a design asks that its scenario does not know."""
    scenario = registry.get(wanted["scenario"])
    factors = {each.name: each for each in scenario.factors}
    parameters = {each.name: each for each in scenario.parameters}
    for name, levels in wanted.get("levels", {}).items():
        unknown = name not in factors or not all(map(factors[name].accepts, levels))
        if unknown:
            yield slug, name, levels
    for name, value in wanted.get("parameters", {}).items():
        known = parameters.get(name)
        if known is None or not known.minimum <= value <= known.maximum:
            yield slug, name, value


def test_every_design_is_one_of_its_scenario():
    runnable = {each.slug for each in registry.every()}
    found = [
        fault
        for source in SOURCES
        for each in yaml.safe_load(source.read_text())["campaigns"]
        if (wanted := each.get("reproduce") or {}).get("scenario") in runnable
        for fault in faults(each["slug"], wanted)
    ]
    assert found == []

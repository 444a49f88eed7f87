"""Who made a report is said as its archive says it."""

import pytest

from runs.scenarios import registry


def test_each_scenario_names_the_group_of_the_publications_that_it_repeats():
    """PGECons WG1 is the group of the archive's reports; another group is none of them."""
    groups = {slug.split("-")[0].upper() for slug in places() if slug.startswith("wg")}
    assert groups == {"WG1"}
    faults = [
        (scenario.slug, scenario.source)
        for scenario in registry.every()
        for word in scenario.source.split()
        if word.startswith("WG") and word not in groups
    ]
    assert not faults


def places():
    return [slug for scenario in registry.every() for slug in scenario.places]


@pytest.mark.parametrize("slug", ["replication", "foreign-tables", "operating-systems"])
def test_what_was_named_for_another_group_is_wg1s(slug):
    assert registry.get(slug).source.startswith("PGECons WG1 2017")

"""The registry of what a database has: each kind has a title, and is read per version."""

import pytest

from runs.analysis.why import families
from runs.execution.evidence import objects
from runs.why.selectors import words


@pytest.mark.parametrize("kind", objects.KINDS.keys() - objects.DEFINITIONS)
def test_each_kind_that_is_read_has_a_title_and_a_row_of_counters(kind):
    assert kind in words.KINDS
    assert kind in words.RECORDED_KINDS
    assert families.find_family(kind).name in families.FAMILIES


def test_a_version_is_asked_only_for_what_it_has():
    old, new = objects.objects_sql(90305), objects.objects_sql(180000)
    assert "pg_sequence" not in old
    assert "pg_sequence" in new
    assert "USER_" not in new
    assert new.endswith("ON_ERROR_STOP on\n")


def test_a_kind_without_objects_is_known_to_have_none():
    rows = [
        {"object": "trigger", "name": "t.g", "value": "CREATE TRIGGER g"},
        {"object": "trigger", "name": None, "value": None},
        {"object": "function", "name": None, "value": None},
        {"relation": "t", "kind": "r"},
    ]
    assert objects.objects(rows) == {
        "trigger": {"t.g": "CREATE TRIGGER g"},
        "function": {},
    }

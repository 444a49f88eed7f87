"""Versions as text."""

import pytest

from runs.models import Cell
from runs.selectors.archive import versions
from tests import factories


@pytest.mark.parametrize(
    ("version", "major"),
    [("9.6.24", "9.6"), ("9.2", "9.2"), ("10.23", "10"), ("16.14", "16"), ("18", "18"),
     ("19beta1", "19"), ("19devel", "19"), ("", ""), ("unknown", "")],
)  # fmt: skip
def test_the_major_version_is_two_numbers_before_10_and_one_since(version, major):
    assert versions.major(version) == major


def test_versions_sort_as_they_were_released():
    released = ["", "9.2.24", "9.6.3", "9.6.24", "10.1", "18.4", "19devel", "19beta1", "19beta2",
                "19rc1", "19.0", "19.1"]  # fmt: skip

    assert sorted(set(released), key=versions.order) == released


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("16", ["16.14", "16.3"]),
        ("16.14", ["16.14"]),
        ("16.1", []),
        ("9.6", ["9.6.24"]),
        ("1", []),
        ("19", ["19beta1"]),
    ],
)
def test_a_version_matches_itself_and_its_minor_versions_only(wanted, found):
    campaign = factories.campaign(factors={"version": []})
    for version in ("16.14", "16.3", "18.4", "9.6.24"):
        factories.cell(campaign, {"version": version})
    factories.cell(campaign, {"clients": 1}, version="19beta1", version_num=190000)

    cells = Cell.objects.filter(versions.matching(wanted, field="version"))

    assert sorted(cells.values_list("version", flat=True)) == found

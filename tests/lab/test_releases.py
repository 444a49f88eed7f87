"""Which versions the lab can have, and choosing among them."""

import pytest

from benchlab.lab import releases
from benchlab.lab.errors import LabError


def test_the_lab_has_a_release_of_every_major_version_but_9_2_and_9_4():
    majors = [release.major for release in releases.every()]
    assert majors == ["9.3", "9.5", "9.6", *map(str, range(10, 19))]


def test_without_a_choice_it_is_all_of_them():
    assert releases.choose([]) == releases.every()


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["9.6", "14"], ["9.6.24", "14.19"]),
        (["14.19"], ["14.19"]),
        (["18", "18.0", "9.3"], ["9.3.5", "18.0"]),
    ],
)
def test_a_choice_is_by_major_version_or_release(names, chosen):
    assert [release.version for release in releases.choose(names)] == chosen


@pytest.mark.parametrize("name", ["9.2", "9", "1", "14.1", "--all"])
def test_a_version_that_is_not_to_be_had_is_refused_and_names_the_others(name):
    with pytest.raises(LabError, match=r"9\.3, 9\.5, 9\.6, 10"):
        releases.choose(["14", name])

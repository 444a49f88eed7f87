"""What stands in the way of a release."""

from datetime import date

import pytest

from tests.release import problems_of_changelog, problems_of_version

TODAY = date(2026, 11, 22)
GOOD = "# Changelog\n\n## 0.2.0 (2026-11-22)\n\n- A thing.\n\n## 0.1.0 (2026-11-20)\n\n- Another.\n"


def test_a_dated_section_of_the_version_is_good():
    assert problems_of_changelog(GOOD, "0.2.0", TODAY) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("## 0.2.0 (2026-11-22)", "## Unreleased", "begins with Unreleased"),
        ("0.2.0", "0.3.0", "begins with 0.3.0"),
        (" (2026-11-22)", "", "has no date"),
        ("2026-11-22", "2026-11-23", "dated in the future"),
        ("- A thing.", "", "is empty"),
    ],
)
def test_any_other_changelog_is_not(old, new, told):
    [problem] = problems_of_changelog(GOOD.replace(old, new), "0.2.0", TODAY)
    assert told in problem


def test_a_version_comes_after_the_last_one():
    assert problems_of_version("0.10.0", "v0.9.1") == []
    assert problems_of_version("0.1.0", None) == []
    assert problems_of_version("0.2.0", "v0.2.0") == ["Version 0.2.0 does not come after v0.2.0."]

"""Where the machine of a history changed: in the chart, and as a list below it."""

from dataclasses import replace

import pytest

from runs.models import Campaign
from runs.selectors.histories import histories, host_changes
from runs.services.uploads import GivenProfile
from tests.histories import commit, repeats, store

pytestmark = pytest.mark.django_db

GIB = 1 << 30


def on(number, *, hardware=None, environment=None, **levels):
    """The runs of a revision on a machine of these facts."""
    made = repeats(commit(number), levels=levels or None, tps=[1000 + number, 1001])
    return [
        replace(
            run,
            hardware=GivenProfile(fields=hardware) if hardware else None,
            environment=GivenProfile(fields=environment) if environment else None,
        )
        for run in made
    ]


def found():
    series = histories.histories(Campaign.objects.get()).series
    return [change for each in host_changes.of(series).values() for change in each]


def test_a_change_stands_at_the_first_point_that_has_it():
    store(
        on(1, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(2, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(3, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
        on(4, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
    )
    [change] = found()
    assert change.at.day == 4  # the first commit is of the second of January
    assert [each.told for each in change.differences] == [
        "kernel: Linux 6.1 \N{RIGHTWARDS ARROW} Linux 6.8"
    ]


def test_what_a_run_does_not_tell_is_compared_with_the_last_that_did():
    store(
        on(1, hardware={"cpu_model": "A"}),
        on(2),
        on(3, hardware={"cpu_model": "A"}),
        on(4, hardware={"cpu_model": "B"}),
    )
    assert len(found()) == 1


def test_a_history_of_one_machine_has_no_line(django_assert_num_queries):
    store(on(1, hardware={"cpu_model": "A"}), on(2, hardware={"cpu_model": "A"}))
    series = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(1):
        assert not any(host_changes.of(series).values())


def test_the_queries_do_not_grow_with_points_and_series(django_assert_num_queries):
    store(
        *(
            on(number, hardware={"cpu_model": f"{number}"}, environment={"kernel": f"{number}"},
               clients=clients)
            for number in range(1, 9)
            for clients in (1, 2, 4)
        )
    )  # fmt: skip
    series = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(3):
        assert [len(each) for each in host_changes.of(series).values()] == [7, 7, 7]


def test_the_page_draws_the_line_and_lists_the_change(client):
    before = {"cpu_model": "Xeon", "memory_bytes": 16 * GIB}
    after = {"cpu_model": "Xeon", "memory_bytes": 32 * GIB}
    store(
        on(1, hardware=before, environment={"kernel": "Linux 6.1"}),
        on(2, hardware=after, environment={"kernel": "Linux 6.8"}),
    )
    page = client.get("/campaigns/nightly/history/").content.decode()
    arrow = "\N{RIGHTWARDS ARROW}"
    assert f"memory 16.0 GB {arrow} 32.0 GB; kernel Linux 6.1 {arrow} Linux 6.8" in page
    assert "Changes of the machine" in page
    assert '"dash": "dash"' in page or "dash&quot;: &quot;dash" in page
    assert "+1" in page


def test_a_page_without_a_change_says_nothing_of_machines(client):
    store(on(1, hardware={"cpu_model": "A"}), on(2, hardware={"cpu_model": "A"}))
    page = client.get("/campaigns/nightly/history/").content.decode()
    assert "Changes of the machine" not in page

"""Links to the form of a new campaign: what is not there is said, and nothing takes its place."""

import html
import re

import pytest

from runs.scenarios import registry
from runs.scenarios.definition import ChoiceFactor
from tests import factories

pytestmark = pytest.mark.django_db
READY = "Ready to queue"


def opened(member, address):
    """The answer, and its text as a reader has it."""
    answer = member.get(f"/campaigns/new/?{address}")
    assert answer.status_code == 200
    return answer, " ".join(html.unescape(answer.content.decode()).split())


def ticked(answer, server):
    keys = answer.context["form"].initial["installations"]
    return set(
        server.installations.filter(pk__in=keys).values_list("version", flat=True)
    )


@pytest.mark.parametrize(
    ("address", "sentence", "installed"),
    [
        ("versions=13,17", "PostgreSQL 13, 17 are not installed on db1.", set()),
        ("versions=17,18", "PostgreSQL 17 is not installed on db1.", {"18.4"}),
        ("versions=14", "PostgreSQL 14 is not installed on db1.", set()),
        ("versions=16,18", "", {"16.14", "18.4"}),
        ("versions=18.4,16.14", "", {"16.14", "18.4"}),
        ("versions=all", "", {"16.14", "18.4"}),
        ("", "", {"16.14", "18.4"}),
    ],
)
def test_no_other_version_takes_the_place_of_one_that_is_not_installed(
    member, ready_server, address, sentence, installed
):
    answer, page = opened(member, f"scenario=fixed-point-read&{address}")
    assert ticked(answer, ready_server) == installed
    assert (READY in page) == (len(installed) > 1)
    said = "installed on db1" in page
    assert said == bool(sentence)
    if said:
        # At the top, with the page where something can be done.
        assert page.index(sentence) < page.index("The question")
        assert 'href="/servers/db1/#installations"' in page


def test_each_scenario_keeps_to_the_versions_of_its_link(member, ready_server):
    """Whatever the scenario, nothing but what is asked for is ticked, and none of it is ready."""
    for scenario in registry.runnable():
        answer, page = opened(member, f"scenario={scenario.slug}&versions=9.4,14")
        assert ticked(answer, ready_server) == set(), scenario.slug
        assert READY not in page, scenario.slug
        assert "PostgreSQL 9.4, 14 are not installed on db1." in page, scenario.slug


def test_each_choice_that_a_form_lacks_is_said_and_the_others_are_ticked(
    member, ready_server
):
    number = 0
    for scenario in registry.runnable():
        for factor in scenario.factors:
            if not isinstance(factor, ChoiceFactor) or factor.further:
                continue
            number += 1
            first = next(iter(factor.choices))
            link = f"scenario={scenario.slug}&{factor.name}={first},nowhere"
            answer, page = opened(member, link)
            form = answer.context["form"]
            assert form.initial[factor.name] == [first], (scenario.slug, factor.name)
            assert re.search("“[^”]+” has no nowhere", page), (
                scenario.slug,
                factor.name,
            )
            answer, page = opened(
                member, f"scenario={scenario.slug}&{factor.name}=nowhere"
            )
            assert answer.context["form"].initial[factor.name] == []
            assert READY not in page, (scenario.slug, factor.name)
    assert number > 10


def test_a_server_and_a_factor_that_are_not_there_are_said(member, ready_server):
    _answer, page = opened(member, "scenario=fixed-point-read&server=gone")
    assert "There is no server “gone”; this form is for db1." in page
    _answer, page = opened(member, "scenario=fixed-point-read&placement=slow")
    assert "Placement: “Fixed-point read” does not vary it." in page
    _answer, page = opened(member, "scenario=fixed-point-read&clients=2&server=db1")
    assert "does not vary it" not in page
    assert "There is no server" not in page


def test_one_device_compares_no_placement(member, ready_server):
    link = "scenario=storage-placement&versions=18"
    _answer, page = opened(member, link)
    assert "Nothing is compared: everything is on one device." in page
    assert "register the machine once more" in page
    assert READY not in page
    # Two versions on it are compared.
    _answer, page = opened(member, "scenario=storage-placement&versions=16,18")
    assert "Nothing is compared" not in page


def test_the_estimate_remembers_what_the_link_asked_for(member, ready_server):
    """Until another version is ticked; without a link one version has its clients compared."""
    sent = {
        "title": "18 alone",
        "scenario": "fixed-point-read",
        "server": "db1",
        "installations": [ready_server.installations.get(version="18.4").pk],
        "clients": "1, 2, 4",
        "repeats": "3",
        "scale": "1",
        "duration": "5",
    }

    def estimate(**further):
        answer = member.get("/campaigns/new/estimate/", sent | further)
        return answer.content.decode()

    alone = estimate(versions="17,18")
    assert READY not in alone
    assert "of PostgreSQL 17, 18, only 18 is chosen" in alone
    both = [installation.pk for installation in ready_server.installations.all()]
    assert READY in estimate(versions="17,18", installations=both)
    assert READY in estimate()
    one_cell = estimate(clients="4")
    assert READY not in one_cell
    assert "one version, and one level of each factor" in one_cell
    assert READY in estimate(clients="4", is_a_a="on")


def test_another_server_is_asked_for_what_was_ticked_on_the_first(member, ready_server):
    other = factories.server("db2", name="db2")
    factories.installation(other, "18.4", has_psql=True, pgbench_version_num=180004)
    keys = ready_server.installations.values_list("pk", flat=True)
    link = "scenario=fixed-point-read&server=db2&proposed_title=t&" + "&".join(
        f"installations={key}" for key in keys
    )
    answer, page = opened(member, link)
    assert ticked(answer, other) == {"18.4"}
    assert "PostgreSQL 16.14 is not installed on db2." in page
    only_there = factories.server("db3", name="db3")
    factories.installation(only_there, "9.6.24")
    answer, page = opened(member, link.replace("db2", "db3"))
    assert ticked(answer, only_there) == {"9.6.24"}
    assert "PostgreSQL 16.14, 18.4 are not installed on db3." in page
    sixteen = ready_server.installations.get(version="16.14").pk
    answer, page = opened(
        member, f"scenario=fixed-point-read&server=db2&installations={sixteen}"
    )
    assert ticked(answer, other) == set()
    assert READY not in page

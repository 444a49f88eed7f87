"""The list of bisections."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Bisection, BisectionStep, Build
from tests import factories

pytestmark = pytest.mark.django_db
NOW = timezone.now()
BEFORE, AFTER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)


def bisection(server, *commits, at=NOW):
    made = Bisection.objects.create(
        campaign=factories.campaign(f"of-{Bisection.objects.count()}"),
        server=server,
        state=Bisection.State.FINISHED,
        asked={"base": "a", "head": "b", "metrics": ["tps"], "effect": 2, "ignore": []},
        draft={},
        builds=[
            {"commit": each, "installation": None, "bindir": ""} for each in commits
        ],
        high=len(commits) - 1,
    )
    Bisection.objects.filter(pk=made.pk).update(created_at=at)
    BisectionStep.objects.create(
        bisection=made, campaign=made.campaign, low=0, high=made.high
    )
    return made


def build(server, commit, *, at, state="removed", log=""):
    made = Build.objects.create(
        server=server, commit=commit, bindir=f"/srv/{commit}", state=state, log=log
    )
    Build.objects.filter(pk=made.pk).update(asked_at=at)
    return made


@pytest.mark.parametrize("number", [3, 30])
def test_the_list_takes_six_queries_however_long(
    get, number, django_assert_num_queries
):
    server = factories.server("lab")
    for each in range(number):
        bisection(server, f"a{each}", f"b{each}")
        build(server, f"a{each}", at=AFTER)
    with django_assert_num_queries(6):
        found = get("bisections/")["results"]
    assert [len(each["builds"]) for each in found] == [2] * number


def test_each_has_the_newest_builds_that_were_asked_for_since_it_began(get):
    lab, other = factories.server("lab"), factories.server("other")
    early = bisection(lab, "aaaaaaa", "bbbbbbb", at=BEFORE - timedelta(hours=1))
    late = bisection(lab, "aaaaaaa", "bbbbbbb", at=NOW)
    elsewhere = bisection(other, "aaaaaaa", "bbbbbbb", at=BEFORE - timedelta(hours=1))
    build(lab, "aaaaaaa", at=BEFORE, log="first")
    build(lab, "aaaaaaa", at=BEFORE, log="second")
    build(lab, "bbbbbbb", at=BEFORE, state="failed", log="failed")
    build(lab, "bbbbbbb", at=BEFORE, state="waiting", log="waits")
    build(other, "bbbbbbb", at=AFTER, log="elsewhere")

    logs = {
        each["id"]: [made["log"] for made in each["builds"]]
        for each in get("bisections/")["results"]
    }
    assert logs == {
        early.pk: ["second", "waits"],
        late.pk: ["", "waits"],
        elsewhere.pk: ["", "elsewhere"],
    }
    assert [made["log"] for made in get(f"bisections/{early.pk}/")["builds"]] == logs[
        early.pk
    ]

"""The page of a bisection."""

import pytest

from runs.models import Bisection

pytestmark = pytest.mark.django_db


@pytest.fixture
def bisection(finished_campaign):
    made = Bisection.objects.create(
        campaign=finished_campaign,
        server=finished_campaign.runs.first().server,
        asked={},
        draft={},
        builds=[{"commit": each * 40, "installation": 0} for each in "ab"],
        high=1,
    )
    made.steps.create(campaign=finished_campaign, low=0, high=1)
    return made


@pytest.mark.parametrize(("state", "asks"), [("running", True), ("finished", False)])
def test_it_asks_for_news_until_it_has_ended(client, bisection, state, asks):
    Bisection.objects.filter(pk=bisection.pk).update(state=state)

    page = client.get(f"/bisections/{bisection.pk}/").content.decode()

    assert "a" * 12 in page
    assert "PostgreSQL 16 and 18" in page
    assert (f'hx-get="/bisections/{bisection.pk}/"' in page) is asks

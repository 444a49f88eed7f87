"""A build that makes PostgreSQL slow is seen wherever its figures are."""

import pytest

from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign():
    server = factories.server("db1")
    made = factories.campaign("c", factors={"version": ["9.2.24", "18.4"], "clients": [1]})
    flags = {"9.2.24": ("-g -O0", "--enable-cassert"), "18.4": ("-Wall -g -O2", "--with-icu")}
    for cell in made.cells.all():
        cflags, options = flags[cell.version]
        cell.installation = factories.installation(
            server, cell.version, cflags=cflags, configure_options=options, block_size=8192
        )
        cell.save()
    made.runs.update(server=server)
    return factories.finish_all(made)


def test_server_campaign_run_report_and_api_tell_the_build(client, campaign):
    run = campaign.runs.filter(cell__version="9.2.24").first()

    pages = {
        "server": "/servers/db1/",
        "campaign": "/campaigns/c/",
        "run": f"/runs/{run.pk}/",
        "report": "/campaigns/c/report/?format=html",
    }
    for name, address in pages.items():
        answer = client.get(address)
        assert answer.status_code == 200, name
        text = answer.content.decode(errors="replace")
        assert "-O0, assertions" in text, name
    told = client.get(f"/api/v1/runs/{run.pk}/").json()["build"]
    assert (told["optimisation"], told["assertions"], told["cflags"]) == ("-O0", True, "-g -O0")


def test_the_ratio_of_a_slow_build_is_no_verdict(client, campaign):
    sides = "base=campaign:c~version=9.2.24&head=campaign:c~version=18.4"
    (row,) = client.get(f"/api/v1/compare/?{sides}&metric=tps").json()["rows"]

    assert (row["verdict"], row["reasons"][0]["code"]) == ("not_comparable", "build_differs")

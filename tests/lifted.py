"""What a BenchLab of which a subject was taken out still does: run in its folder, in its database.

The subjects, what the first page, an upload and a campaign need, are asked as users ask.
"""

import io
import logging
import sys

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client, override_settings  # noqa: E402

from runs import background  # noqa: E402
from runs.access.services import projects, tokens  # noqa: E402
from runs.campaigns.services import campaigns, designs, repeats  # noqa: E402
from runs.models import Server  # noqa: E402
from runs.shared import navigation  # noqa: E402
from runs.workloads.services import scenarios  # noqa: E402
from tests import factories  # noqa: E402
from tests.api.upload_bodies import run  # noqa: E402


def asked(client, path, expect=200, **words):
    answer = client.get(path, words, follow=True)
    assert answer.status_code == expect, (
        path,
        answer.status_code,
        answer.content[-3000:],
    )
    return answer.content.decode()


def places(client, user):
    """Each place that the menu still leads to."""
    for section in navigation.SECTIONS:
        for link in navigation._links(section.places, "", user):
            asked(client, link.url)


def upload(client):
    key = tokens.create(
        name="ci", scopes=["read", "upload"], project=projects.default()
    ).text
    bearer = {"Authorization": f"Bearer {key}"}
    for number in range(2):
        body = run(external_id=f"ci-{number}")
        answer = client.post(
            "/api/v1/uploads/", body, "application/json", headers=bearer
        )
        assert answer.status_code == 201, answer.content
    return body["campaign"]


def measured():
    """A campaign that is queued, has finished, and is asked for another round."""
    server = factories.server("lab")
    for version in ("16.14", "18.4"):
        number = factories.version_num(version)
        factories.installation(
            server, version, has_psql=True, pgbench_version_num=number
        )
    draft = factories.draft(server, repeats=3, wanted_half_width=0.02, most_repeats=5)
    campaign = campaigns.queue(
        design=designs.resolve(draft), project=projects.default()
    )
    factories.finish_all(campaign, gain={"18.4": 1.1}, noise=0.2)
    campaign.refresh_from_db()
    assert repeats.add_round(campaign=campaign) > 0
    return campaign


def main():
    call_command("check", stdout=io.StringIO())
    scenarios.sync()
    user = User.objects.create_superuser("operator", password="only for tests")
    reader, operator = Client(), Client()
    operator.force_login(user)
    for client in (reader, operator):
        asked(client, "/")
    campaign, uploaded = measured(), upload(reader)
    cells = list(campaign.cells.order_by("ordinal"))
    for client in (reader, operator):
        places(client, user)
        for slug in (campaign.slug, uploaded):
            asked(client, f"/campaigns/{slug}/")
            asked(client, f"/api/v1/campaigns/{slug}/")
        asked(client, f"/campaigns/{uploaded}/history/")
        asked(client, "/compare/cells/", a=cells[0].pk, b=cells[1].pk)
        asked(client, f"/runs/{campaign.runs.first().pk}/")
        asked(client, f"/servers/{Server.objects.get().slug}/")
    failures = io.StringIO()
    logging.getLogger("runs").addHandler(logging.StreamHandler(failures))
    for _turn in range(background.RARELY):
        background.watch()
    assert not failures.getvalue(), failures.getvalue()
    print("works without", *sys.argv[1:])


if __name__ == "__main__":
    files = {
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        }
    }
    with override_settings(
        RATE_ANONYMOUS=0,
        RATE_TOKEN=0,
        ALLOWED_HOSTS=["*"],
        STORAGES=settings.STORAGES | files,
    ):
        main()

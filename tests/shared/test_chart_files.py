"""Charts at addresses of their own: what is in them, who sees them, and what caches may keep."""

import re
import struct
import xml.etree.ElementTree as ET
from random import Random

import pytest

from runs.access.services import projects
from runs.charts import png as raster
from runs.histories.services import changes
from runs.models import Campaign
from tests import factories
from tests.compared_tables import random_table
from tests.history_points import history, store
from tests.migrated import ROOT
from tests.pictures import pictures_of

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def unlimited(settings):
    settings.RATE_ANONYMOUS = 0


@pytest.fixture
def lab(project):
    """A campaign of two versions, measured here."""
    factories.metric("tps")
    campaign = factories.campaign(
        "lab",
        project=project,
        title="Checksums <on> & “off”\x08",
        factors={"version": ["16.14", "17.9"], "clients": [1, 8]},
    )
    factories.finish_all(campaign, gain={"17.9": 1.1})
    return campaign


@pytest.fixture
def nightly(project):
    store(history([1000] * 40 + [900] * 20))
    campaign = Campaign.objects.get(slug="nightly")
    changes.find(campaign_id=campaign.pk)
    return campaign


def texts_in(svg):
    return [
        "".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")
    ]


def size_of(content):
    """Width and height of a PNG."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


ADDRESSES = (
    "/campaigns/lab/chart.{}",
    "/compare/chart.{}?s=lab",
    "/compare/chart.{}?s=lab&chart=forest",
    "/campaigns/nightly/history/chart.{}",
    "/campaigns/nightly/history/chart.{}?level=clients=8",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_chart_has_title_answer_date_and_source(client, lab, nightly, address):
    answer = client.get(address.format("svg"))

    assert answer.headers["Content-Type"] == "image/svg+xml"
    words = " ".join(texts_in(answer.content))
    assert "http://testserver/" in words
    assert "figures of 20" in words
    slower = "% slower" if "nightly" in address else "% faster"
    assert slower in words.replace("\xa0", " ")


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_chart_is_a_picture_of_twice_its_size(client, lab, nightly, address):
    svg = ET.fromstring(client.get(address.format("svg")).content)
    answer = client.get(address.format("png"))

    assert answer.headers["Content-Type"] == "image/png"
    wanted = [round(2 * float(svg.get(name))) for name in ("width", "height")]
    assert all(
        abs(side - other) <= 1
        for side, other in zip(size_of(answer.content), wanted, strict=True)
    )


@pytest.mark.parametrize(
    "address",
    [
        "/topics/page-checksums/chart.{}",
        "/versions/chart.{}",
        "/versions/chart.{}?by=os",
        "/campaigns/wg1-2013-2-2/chart.{}",
    ],
)
def test_the_archive_has_charts(client, whole_archive, address):
    svg = client.get(address.format("svg"))

    assert svg.status_code == 200
    assert any("http://testserver/" in text for text in texts_in(svg.content))
    assert size_of(client.get(address.format("png")).content)[0] > 1500


def test_every_chart_of_a_publication_has_a_number(client, whole_archive):
    missing = []
    for campaign in Campaign.objects.filter(published__isnull=False).order_by("pk"):
        page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
        for number in range(1, page.count('data-chart-tools="published-') + 1):
            address = f"/campaigns/{campaign.slug}/chart.svg"
            name = number if f'"published-{number}"' in page else "ratios"
            svg = client.get(f"{address}?chart={name}")
            if svg.status_code != 200 or not texts_in(svg.content):
                missing.append((campaign.slug, name))
    assert missing == []


def test_any_table_makes_xml(client):
    generator = Random(7)
    for number in range(10):
        table = random_table(generator, number)
        answer = client.get(f"/campaigns/{table.campaign}/chart.svg")
        if answer.status_code == 200:
            ET.fromstring(answer.content)


@pytest.mark.parametrize(
    "path",
    [
        "/campaigns/lab/chart.gif",
        "/campaigns/none/chart.svg",
        "/compare/chart.svg",
        "/compare/chart.svg?s=none",
        "/campaigns/lab/history/chart.svg",
        "/topics/none/chart.svg",
    ],
)
def test_no_chart_is_not_found(client, lab, path):
    assert client.get(path).status_code == 404


def test_every_chart_of_a_template_has_the_address_of_its_picture():
    """The tag of a chart is the only way to draw one on a page, and each names an address."""
    included = {
        (template.name, include)
        for template in (ROOT / "templates").rglob("*.html")
        for include in re.findall(
            r'{% include "components.html#chart" [^%]*%}', template.read_text()
        )
    }
    still = [
        template.name
        for template in (ROOT / "templates").rglob("*.html")
        if "{% still" in template.read_text()
    ]

    assert len(included) >= 17
    assert [row for row in included if " address=" not in row[1]] == []
    assert set(still) == {"components.html"}


def test_each_operating_system_of_the_line_leads_to_the_picture(client, whole_archive):
    assert len(pictures_of(client, "/versions/?by=os", dated=False)) == 1


# Who sees them


SECRET = (
    "/campaigns/hidden/chart.svg",
    "/compare/chart.svg?s=hidden",
    "/campaigns/nightly--secret/history/chart.svg",
)


@pytest.fixture
def secret(lab):
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign(
        "hidden", project=project, title="Hidden", factors={"clients": [1, 8]}
    )
    factories.finish_all(campaign)
    store(history([1000] * 40 + [900] * 20), project=project)
    return project


def test_a_private_chart_is_for_members_alone(client, secret, django_user_model):
    member = django_user_model.objects.create_user("jane")
    secret.memberships.create(user=member, role="viewer")
    outsider = django_user_model.objects.create_user("ichiro")
    slug = (
        Campaign.objects.filter(project=secret, slug__startswith="nightly").get().slug
    )
    addresses = [path.replace("nightly--secret", slug) for path in SECRET]

    # The member first: nobody may be given what was kept for another.
    for path in addresses:
        client.force_login(member)
        assert client.get(path).status_code == 200, path
        client.force_login(outsider)
        assert client.get(path).status_code == 404, path
        client.logout()
        assert client.get(path).status_code == 404, path


def test_a_comparison_with_a_private_campaign_shows_a_stranger_nothing_of_it(
    client, secret, django_user_model
):
    member = django_user_model.objects.create_user("jane")
    secret.memberships.create(user=member, role="viewer")
    client.force_login(member)
    seen = client.get("/compare/chart.svg?s=lab&s=hidden").content.decode()
    client.logout()

    shown = client.get("/compare/chart.svg?s=lab&s=hidden").content.decode()

    assert "Hidden" in seen
    assert "Hidden" not in shown


def test_what_a_login_asks_for_is_kept_by_nobody_and_framed_by_nobody(
    admin_client, lab, settings
):
    settings.EMBED_ORIGINS = ("*",)

    headers = admin_client.get("/campaigns/lab/chart.svg").headers

    assert set(headers["Cache-Control"].split(", ")) == {"private", "no-store"}
    assert "ETag" not in headers
    assert "Access-Control-Allow-Origin" not in headers
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert {"Cookie", "Authorization"} <= set(headers["Vary"].split(", "))


def test_a_stranger_may_keep_it_and_asks_again_by_its_tag(client, lab):
    first = client.get("/campaigns/lab/chart.svg")

    again = client.get(
        "/campaigns/lab/chart.svg", headers={"If-None-Match": first.headers["ETag"]}
    )

    assert set(first.headers["Cache-Control"].split(", ")) == {"public", "max-age=300"}
    assert {"Cookie", "Authorization", "Accept-Language"} <= set(
        first.headers["Vary"].split(", ")
    )
    assert (again.status_code, again.content) == (304, b"")
    Campaign.objects.filter(pk=lab.pk).update(title="Other")
    changed = client.get(
        "/campaigns/lab/chart.svg", headers={"If-None-Match": first.headers["ETag"]}
    )
    assert changed.status_code == 200


@pytest.mark.parametrize(
    ("origins", "allowed", "ancestors"),
    [
        ((), None, "'none'"),
        (("*",), "*", "'self' *"),
        (
            ("https://wiki.example",),
            "https://wiki.example",
            "'self' https://wiki.example",
        ),
        (("https://other.example",), None, "'self' https://other.example"),
    ],
)
def test_only_named_sites_frame_and_read_it(
    client, lab, settings, origins, allowed, ancestors
):
    settings.EMBED_ORIGINS = origins

    headers = client.get(
        "/campaigns/lab/chart.svg", headers={"Origin": "https://wiki.example"}
    ).headers

    assert headers.get("Access-Control-Allow-Origin") == allowed
    assert headers["Content-Security-Policy"].endswith(f"frame-ancestors {ancestors}")
    assert ("X-Frame-Options" in headers) == (not origins)
    assert "Origin" in headers["Vary"].split(", ")


def test_what_did_not_change_is_framed_and_read_as_before(client, lab, settings):
    """A browser takes the headers of a 304 in place of those that it has kept."""
    settings.EMBED_ORIGINS = ("https://wiki.example",)
    first = client.get("/campaigns/lab/chart.svg")

    again = client.get(
        "/campaigns/lab/chart.svg",
        headers={
            "If-None-Match": first.headers["ETag"],
            "Origin": "https://wiki.example",
        },
    )

    assert again.status_code == 304
    assert again.headers["Access-Control-Allow-Origin"] == "https://wiki.example"
    assert "frame-ancestors 'self' https" in again.headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in again.headers


def test_pages_stay_closed_whatever_may_be_framed(client, lab, settings):
    settings.EMBED_ORIGINS = ("*",)

    headers = client.get("/campaigns/lab/").headers

    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


# Fonts


def test_without_a_font_there_is_no_picture_without_words(client, lab, monkeypatch):
    monkeypatch.setattr(raster, "FAMILIES", ("No Such Font",))

    answer = client.get("/campaigns/lab/chart.png")

    assert answer.status_code == 501
    assert "fonts-dejavu-core" in answer.content.decode()
    assert client.get("/campaigns/lab/chart.svg").status_code == 200


def test_japanese_needs_a_font_that_has_it(client, lab, monkeypatch):
    Campaign.objects.filter(pk=lab.pk).update(title="夜間の測定")
    can_write = raster._writes("DejaVu Sans", raster.JAPANESE)

    answer = client.get("/campaigns/lab/chart.png")

    assert answer.status_code == (200 if can_write else 501)
    assert can_write or "fonts-vlgothic" in answer.content.decode()

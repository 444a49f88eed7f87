"""Settings of two runs, cells, campaigns or configurations, side by side."""

import pytest

from runs.models import Project
from runs.services.configurations import configurations
from runs.services.runs import results as findings
from tests import factories

pytestmark = pytest.mark.django_db


def printed(**settings):
    """pg_settings as a server prints them: name=(setting, unit, source)."""
    return findings.snapshot(
        settings={
            name: {"setting": setting, "unit": unit, "source": source}
            for name, (setting, unit, source) in settings.items()
        }
    )


ONE = {
    "work_mem": ("4096", "kB", "default"),
    "shared_buffers": ("16384", "8kB", "configuration file"),
    "max_wal_size": ("1024", "MB", "default"),
    "data_directory": ("/a", "", "override"),
}
OTHER = ONE | {
    "work_mem": ("65536", "kB", "configuration file"),
    "data_directory": ("/b", "", "override"),
}


@pytest.fixture
def runs(db):
    """Two runs of a campaign of 18 with other work_mem."""
    campaign = factories.campaign("one", factors={"version": ["18.4"]}, repeats=2)
    first, second = campaign.runs.order_by("pk")
    first.settings, second.settings = printed(**ONE), printed(**OTHER)
    first.save()
    second.save()
    return first, second


@pytest.fixture
def diff(client):
    """The rows of a difference as texts, and the response."""

    def compare(a, b, **query):
        response = client.get("/configurations/diff/", {"a": a, "b": b, **query})
        assert response.status_code == 200
        rows = {
            row.name: ([each.text for each in row.a], [each.text for each in row.b])
            for row in response.context.get("rows", [])
        }
        return rows, response

    return compare


def test_two_runs_differ_in_what_their_servers_showed(diff, runs):
    rows, response = diff(f"run:{runs[0].pk}", f"run:{runs[1].pk}")
    assert rows == {"work_mem": (["4MB"], ["64MB"])}
    [row] = response.context["rows"]
    assert (row.a[0].is_default, row.b[0].is_default) == (True, False)


def test_all_settings_are_shown_where_that_is_asked(diff, runs):
    rows, _response = diff(f"run:{runs[0].pk}", f"run:{runs[1].pk}", all="1")
    assert set(rows) == {"work_mem", "shared_buffers", "max_wal_size"}
    assert rows["shared_buffers"] == (["128MB"], ["128MB"])


def test_of_a_campaign_and_a_cell_every_value_is_shown(diff, runs):
    for side in ("campaign:one", f"cell:{runs[0].cell_id}"):
        rows, _response = diff(side, f"run:{runs[0].pk}")
        assert sorted(rows["work_mem"][0]) == ["4MB", "64MB"]


def test_a_configuration_is_compared_in_the_words_of_the_runs_version(diff, runs):
    configurations.store(
        slug="old",
        name="old",
        description="",
        settings={"checkpoint_segments": "16", "work_mem": "4096"},
        initdb_options=[],
        written_for="9.3",
    )
    rows, _response = diff(f"run:{runs[0].pk}", "configuration:old")
    assert rows["max_wal_size"] == (["1GB"], ["768MB"])
    assert "work_mem" not in rows
    assert "checkpoint_segments" not in rows


def test_two_configurations_are_compared_with_their_versions_defaults(diff, db):
    configurations.sync()
    rows, _response = diff("configuration:postgresql-defaults", "configuration:fixed-point-small")
    assert rows["autovacuum"] == (["on"], ["off"])
    assert rows["work_mem"] == (["4MB"], ["16MB"])
    assert "jit" not in rows


def test_configurations_of_two_versions_are_compared_as_the_newer_gets_them(diff, db):
    for slug, settings, major in (
        ("old", {"checkpoint_segments": "16"}, "9.3"),
        ("new", {"max_wal_size": "768MB"}, "17"),
    ):
        configurations.store(
            slug=slug,
            name=slug,
            description="",
            settings=settings,
            initdb_options=[],
            written_for=major,
        )
    rows, _response = diff("configuration:old", "configuration:new")
    assert rows == {"min_wal_size": (["528MB"], ["80MB"])}


@pytest.mark.parametrize(
    "reference",
    [
        "run:999999",
        "run:x",
        "run:" + "9" * 30,
        "run:٣",
        "cell:0",
        "campaign:none",
        "x",
        "nothing:1",
    ],
)
def test_what_is_not_there_is_named(diff, runs, reference):
    rows, response = diff(reference, f"run:{runs[0].pk}")
    assert rows == {}
    assert "Write run:12, cell:7, campaign:slug" in response.content.decode()


def test_a_private_run_is_not_there_for_a_visitor(diff, runs, client, django_user_model):
    campaign = runs[0].campaign
    campaign.project = Project.objects.create(slug="secret", name="secret", is_public=False)
    campaign.save()
    sides = (f"run:{runs[0].pk}", f"run:{runs[1].pk}")
    for side in (*sides, f"cell:{runs[0].cell_id}", "campaign:one"):
        assert diff(side, sides[0])[0] == {}
    member = django_user_model.objects.create_user("m")
    campaign.project.members.add(member)
    client.force_login(member)
    assert set(diff(*sides)[0]) == {"work_mem"}


def test_the_queries_do_not_grow_with_the_runs(client, django_assert_max_num_queries):
    for slug in ("few", "many"):
        repeats = {"few": 1, "many": 12}[slug]
        campaign = factories.campaign(slug, factors={"version": ["18.4"]}, repeats=repeats)
        campaign.runs.update(settings=printed(**ONE))
    for slug in ("few", "many"):
        with django_assert_max_num_queries(7):
            client.get(f"/configurations/diff/?a=campaign:{slug}&b=campaign:few")


def test_run_and_campaign_lead_to_it(client, runs):
    made = configurations.built_in()
    campaign = runs[0].campaign
    campaign.configuration = made
    campaign.save()
    factories.finish(runs[0], tps=1)
    run_page = client.get(f"/runs/{runs[0].pk}/").content.decode()
    assert f"?a=run:{runs[0].pk}&amp;b=configuration:fixed-point-small" in run_page
    campaign_page = client.get("/campaigns/one/").content.decode()
    assert "?a=campaign:one&amp;b=configuration:fixed-point-small" in campaign_page

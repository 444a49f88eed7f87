"""Compared series: which cells belong to them, and what is known of these."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import QueryDict

from runs.cells.selectors import series_cells
from runs.cells.selectors.series_cells import BadSeriesKey, SeriesKey, parse
from runs.compare.selectors.address import candidates
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.address.candidates import CandidateFilters
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.load import series
from runs.models import Cell, Project, Revision, Run, SettingsSnapshot
from tests import factories

pytestmark = pytest.mark.django_db

ANYBODY = AnonymousUser()


def load(*texts, **more):
    return series.load([parse(text) for text in texts], reader=ANYBODY, **more)


def finished(slug="c", **factors):
    return factories.finish_all(factories.campaign(slug, factors=factors or None))


def keys(loaded):
    return [str(each.key) for each in loaded.series]


def test_a_campaign_gives_a_series_for_each_version_along_its_clients():
    finished(version=["18.4", "9.6.24"], clients=[4, 1])

    loaded = load("c")

    assert keys(loaded) == ["c~version=9.6.24", "c~version=18.4"]
    assert loaded.x == "clients"
    assert [cell.x for cell in loaded.series[0].cells] == [1, 4]
    assert loaded.series[0].cells[1].summary.median == pytest.approx(4000)
    assert loaded.metric.name == "tps"
    assert loaded.faults == ()


def test_a_key_keeps_to_its_levels_whether_text_or_number():
    finished(
        version=["16.14", "18.4"],
        clients=[1, 2, 10],
        checksums=["on", "off"],
        fast=[True],
    )

    loaded = load("c~version=18.4~checksums=on~fast=true")

    assert keys(loaded) == ["c~version=18.4~checksums=on~fast=true"]
    assert [cell.x for cell in loaded.series[0].cells] == [1, 2, 10]


def test_any_factor_is_the_x_axis():
    finished(version=["9.6.24", "10.23"], clients=[1, 2])

    loaded = load("c", x="version")

    assert keys(loaded) == ["c~clients=1", "c~clients=2"]
    assert [cell.x for cell in loaded.series[0].cells] == ["9.6.24", "10.23"]


def test_without_an_axis_each_cell_is_a_series():
    finished(version=["16.14"], clients=[1, 2])

    loaded = load("c", x="none")

    assert keys(loaded) == ["c~clients=1", "c~clients=2"]
    assert loaded.x is None


def test_a_series_that_is_named_twice_is_there_once():
    finished()

    assert keys(load("c~version=18.4", "c")) == ["c~version=18.4", "c~version=16.14"]


@pytest.mark.parametrize(
    "level", ["NaN", "1e999", "-Infinity", "[1]", "9" * 5000, "null", "{"]
)
def test_a_level_that_cannot_be_stored_is_just_not_there(level):
    finished()

    assert "No finished run belongs to" in load(f"c~clients={level}").faults[0]


@pytest.mark.parametrize(
    ("texts", "more", "told"),
    [
        (["nowhere"], {}, "There is no campaign nowhere."),
        (["c~version=7"], {}, "No finished run belongs to c~version=7."),
        (["c"], {"metric": "tpz"}, "None of these series has the metric tpz."),
        (["c"], {"x": "colour"}, "The factor colour does not vary"),
    ],
)
def test_what_is_not_there_is_said(texts, more, told):
    finished()

    assert told in load(*texts, **more).faults[0]


def test_conditions_are_those_of_the_finished_runs():
    campaign = finished()
    cell = campaign.cells.first()
    settings = {"jit": {"setting": "on"}}
    snapshot = SettingsSnapshot.objects.create(content_hash="a", settings=settings)
    Run.objects.filter(cell=cell).update(
        hardware=factories.hardware(),
        environment=factories.environment(),
        settings=snapshot,
        tool_name="pgbench",
        tool_version="18.4",
        server_version="16.14",
    )
    factories.run(cell, repeat=9, hardware=factories.hardware("another"))

    loaded = load("c")

    runs = loaded.series[0].cells[0].runs
    assert (runs.count, runs.tools, runs.servers) == (3, ("pgbench 18.4",), ("16.14",))
    assert [loaded.hardware[key].name for key in runs.hardware] == ["two-core"]
    assert [loaded.environments[key].os_name for key in runs.environment] == [
        "Debian 13"
    ]
    assert loaded.settings[runs.settings[0]] == settings
    assert loaded.series[1].cells[0].runs.hardware == ()


def test_uploads_give_their_newest_revision_unless_one_is_asked_for():
    project = Project.objects.create(slug="p", name="p")
    campaign = factories.campaign("ci", factors={"clients": []}, origin="uploaded")
    for number, (sha, day) in enumerate([("newer", 2), ("older", 1)], start=1):
        revision = Revision.objects.create(
            project=project, sha=sha, committed_at=f"2026-01-0{day}T00:00:00Z"
        )
        cell = factories.cell(
            campaign, {"clients": 1}, revision=revision, series_key="clients"
        )
        Cell.objects.filter(pk=cell.pk).update(key=sha)
        factories.finish(cell.runs.first(), tps=1000 * number)

    assert load("ci").series[0].cells[0].summary.median == 1000
    assert load("ci~revision=older").series[0].cells[0].summary.median == 2000
    assert [cell.x for cell in load("ci", x="revision").series[0].cells] == [
        "newer",
        "older",
    ]


def test_a_private_project_is_as_unknown_as_nothing():
    member = User.objects.create_user("ichiro")
    project = Project.objects.create(slug="p", name="p", is_public=False)
    project.members.add(member)
    campaign = finished()
    campaign.project = project
    campaign.save()

    assert load("c").faults == ("There is no campaign c.",)
    assert len(series.load([parse("c")], reader=member).series) == 2
    assert candidates.candidates("c", reader=ANYBODY) == []
    assert len(candidates.candidates("c", reader=member)) == 1


@pytest.mark.parametrize("count", [2, 12])
def test_series_take_the_same_queries_however_many(count, django_assert_num_queries):
    campaign = finished(
        version=[f"{number}.1" for number in range(10, 10 + count)], clients=[1, 2]
    )
    factories.story(campaign.runs.first())
    Run.objects.update(
        hardware=factories.hardware(), environment=factories.environment()
    )

    named = keys(load("c"))
    assert len(named) == count
    with django_assert_num_queries(8):
        load(*named)


@pytest.mark.parametrize(
    "words",
    [
        "fast",
        "速い",
        "the-slug",
        "18",
        "18.4",
        "trixie",
        "EPYC",
        "fixed-point",
        "FAST 18",
        "",
    ],
)
def test_a_campaign_is_found_by_what_it_is_and_ran_on(words):
    campaign = finished("the-slug")
    campaign.title, campaign.title_ja = "A fast machine", "速いマシン"
    campaign.save()
    Run.objects.update(
        hardware=factories.hardware(),
        environment=factories.environment("Debian trixie"),
    )

    (found,) = candidates.candidates(words, reader=ANYBODY)

    assert str(found.key) == "the-slug"
    assert [str(each.key) for each in found.series] == [
        "the-slug~version=16.14",
        "the-slug~version=18.4",
    ]


@pytest.mark.parametrize(
    "filters",
    [
        {"version": "17"},
        {"os": "Windows"},
        {"hardware": "Xeon"},
        {"topology": "fdw"},
        {"origin": "uploaded"},
    ],
)
def test_filters_narrow_what_is_offered(filters):
    finished()

    assert candidates.candidates("", CandidateFilters(**filters), reader=ANYBODY) == []


def test_a_wide_campaign_offers_by_its_factors_what_its_cells_offer(monkeypatch):
    factors = {"version": ["18.4", "9.6.24"], "clients": [1, 2, 4], "scale": [10, 100]}
    factories.finish_all(factories.campaign("wide", factors=factors))
    (by_cells,) = candidates.candidates("wide", reader=ANYBODY)
    monkeypatch.setattr(candidates, "MOST_CELLS", 11)
    assert candidates.candidates("wide", reader=ANYBODY) == [by_cells]


def test_a_campaign_without_a_result_is_not_offered():
    factories.campaign("waiting")

    assert candidates.candidates("", reader=ANYBODY) == []


@pytest.mark.parametrize("count", [1, 5])
def test_candidates_take_three_queries(count, django_assert_num_queries):
    for number in range(count):
        finished(f"c-{number}")

    with django_assert_num_queries(3):
        assert len(candidates.candidates("16", reader=ANYBODY)) == count


@pytest.mark.parametrize(
    "key",
    [
        SeriesKey("a-campaign"),
        SeriesKey("wg1-2013-2-3", (("version", "9.3"), ("checksums", "on"))),
        SeriesKey("odd", (("a~b=c", "x~y=z&s=%2F"), ("部", "同期 1台"), ("empty", ""))),
    ],
)
def test_a_key_is_read_as_it_was_written(key):
    assert series_cells.parse(str(key)) == key


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "“” in “” is not the short name"),
        ("a b~version=1", "“a b”"),
        ("slug~version", "“version” in “slug~version” must be a factor and its level"),
        ("slug~=9.3", "“=9.3”"),
        ("slug~", "“”"),
        ("slug~clients=1~clients=2", "fixes the factor clients twice"),
        ("slug~clients=%00", "a null character"),
        ("slug\0", "a null character"),
    ],
)
def test_a_key_that_cannot_be_read_names_its_part(text, told):
    with pytest.raises(BadSeriesKey) as caught:
        series_cells.parse(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "state",
    [
        CompareState(),
        CompareState(series=(SeriesKey("a"), SeriesKey("b", (("version", "16.14"),)))),
        CompareState(
            series=(SeriesKey("a", (("label", "50 % & more~"),)),),
            x="clients",
            metric="latency_average",
            base="a~label=50%20%25%20%26%20more%7E",
            relative=True,
            log_x=True,
            log_y=True,
            facet="topology",
            matters=True,
            effect=0.5,
            ignore=("hardware", "environment"),
            at="64",
            fit="usl",
        ),
    ],
)
def test_every_state_is_in_its_address(state):
    assert compare_state.read(QueryDict(state.query)) == (state, [])


def test_a_form_says_the_same_as_a_link():
    form = QueryDict("s=a&ignore=hardware&ignore=environment&relative=on&effect=")

    state, faults = compare_state.read(form)

    assert (state.ignore, state.relative, state.effect) == (
        ("hardware", "environment"),
        True,
        3.0,
    )
    assert faults == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("facet=colour", "facet=colour is not known"),
        ("fit=cubic", "fit=cubic is not known; known are amdahl, usl"),
        ("effect=much", "effect=much must be a number of percent"),
        ("effect=-1", "effect=-1"),
        ("effect=nan", "effect=nan"),
        ("ignore=weather", "ignore=weather"),
        ("s=no%20slug", "“no slug”"),
    ],
)
def test_what_cannot_be_read_is_said_and_the_rest_is_kept(query, told):
    state, faults = compare_state.read(QueryDict(f"s=kept&{query}"))

    assert told in faults[0]
    assert state == CompareState(series=(SeriesKey("kept"),))


def test_too_many_series_are_cut_and_said():
    query = "&".join(f"s=c{number}" for number in range(30))

    state, faults = compare_state.read(QueryDict(query))

    assert len(state.series) == compare_state.MOST_SERIES
    assert "30 series are too many" in faults[0]


def test_a_series_is_added_once_and_taken_away_with_its_place_as_base():
    one, two = SeriesKey("one"), SeriesKey("two")
    state = CompareState(series=(one,), base="two")

    assert state.add_series(one) == state
    assert state.add_series(two).series == (one, two)
    assert state.add_series(two).remove_series(two) == CompareState(series=(one,))

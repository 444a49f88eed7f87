"""Loading the archive: as printed, once, and in step with its files."""

import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.archive import services
from runs.archive.selectors import archive as selectors
from runs.models import (
    Artifact,
    Campaign,
    Cell,
    CellSummary,
    Configuration,
    Discrepancy,
    Environment,
    HardwareProfile,
    Measurement,
    PrintedFigure,
    PublishedNode,
    PublishedTable,
    Run,
    Scenario,
    Source,
    Topology,
)
from runs.published import reading, schema
from runs.published.errors import PublishedFileError
from tests import factories

pytestmark = pytest.mark.django_db

SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"
STORED = (
    Source,
    Campaign,
    Cell,
    Run,
    Measurement,
    CellSummary,
    PublishedTable,
    PublishedNode,
    PrintedFigure,
    Discrepancy,
    HardwareProfile,
    Environment,
    Configuration,
    Topology,
    Artifact,
)


@pytest.fixture
def file(tmp_path):
    """A small publication that a test may change."""
    return Path(shutil.copy(SAMPLE, tmp_path))


def change(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def counts():
    return {model.__name__: model.objects.count() for model in STORED}


def keys(model):
    return set(model.objects.values_list("pk", flat=True))


def measurement(printed, table="1.1"):
    return Measurement.objects.get(printed__text=printed, printed__table__number=table)


def test_a_figure_has_its_levels_machine_settings_and_versions(file):
    services.load(files=[file])

    found = measurement("1,000.00")
    run = found.run
    assert (found.value, found.n, found.statistic) == (1000.0, 3, "median")
    assert run.cell.levels == {"clients": 1, "version": "9.2"}
    assert (run.cell.version, run.cell.version_num) == ("9.2", 90204)
    assert (run.origin, run.state, run.repeat) == ("published", "finished", 1)
    assert (run.server_version, run.tool_name, run.tool_version) == (
        "9.2.4",
        "pgbench",
        "9.3",
    )
    assert (run.hardware.name, run.hardware.memory_bytes) == ("Crane", 64 * 2**30)
    assert run.environment.os_name == "Quay Linux 7.1"
    assert run.settings.settings["autovacuum"]["setting"] == "off"


def test_a_campaign_is_described_in_both_languages(file):
    services.load(files=[file])

    campaign = Campaign.objects.get(slug="harbour-reading")
    assert (campaign.title, campaign.title_ja) == ("Reading", "参照")
    assert campaign.factors == {"clients": [1, 2, 4], "version": ["9.2", "9.3"]}
    assert campaign.published.grid[1] == [
        "2",
        "2,000.00",
        "90.00 %",
        "2500.00",
        "120.00 %",
    ]
    for word in (
        "参照",
        "Crane",
        "Quay",
        "PostgreSQL 9.2",
        "shared_buffers",
        "速い",
        "2,500.00",
    ):
        found = selectors.saying(selectors.entries(), word)
        assert campaign in [entry.table.campaign for entry in found], word


def test_printed_repeats_are_runs_and_what_is_printed_of_them_stands_beside(file):
    services.load(files=[file])

    found = Measurement.objects.filter(run__cell__levels__placement="all on HDD")
    rows = found.order_by("run__repeat").values_list(
        "run__repeat", "value", "statistic", "n"
    )
    assert list(rows) == [
        (0, 20.0, "median", 3),
        (1, 10.0, "single", 1),
        (2, 30.0, "single", 1),
        (3, 20.0, "single", 1),
    ]
    summary = CellSummary.objects.get(cell__levels__placement="all on HDD")
    assert (summary.n, summary.median, summary.minimum, summary.maximum) == (
        3,
        20.0,
        10.0,
        30.0,
    )
    assert summary.log_variance > 0


def test_a_single_printed_median_is_summarised_without_a_variance(file):
    services.load(files=[file])

    summary = CellSummary.objects.get(
        cell__campaign__slug="harbour-reading",
        cell__key='{"clients": 2, "version": "9.3"}',
    )
    assert (summary.metric.name, summary.n, summary.median) == ("tps", 3, 2500.0)
    assert summary.log_mean == pytest.approx(7.824046)
    assert summary.log_variance is None


def test_what_is_not_measured_is_kept_as_printed_and_not_summarised(file):
    services.load(files=[file])

    found = measurement("0")
    assert (found.value, found.printed.kind) == (0.0, "not_measured")
    assert not found.run.cell.summaries.filter(metric=found.metric).exists()
    assert Discrepancy.objects.filter(
        kind="not_measured", figure=found.printed
    ).exists()


def test_contradictions_are_found_and_told(file):
    services.load(files=[file])

    found = Discrepancy.objects.order_by("table__ordinal", "ordinal")
    assert list(found.values_list("kind", "printed", "recomputed")) == [
        ("ratio", "120.00 %", "125"),
        ("not_measured", "0", ""),
        ("text", "26%", "25 %"),
        ("median", "31.0", "21"),
    ]
    wrong = PrintedFigure.objects.get(text="120.00 %")
    assert (wrong.differs, wrong.recomputed, wrong.kind) == (True, 125.0, "derived")
    right = PrintedFigure.objects.get(text="105.00 %")
    assert (right.differs, right.recomputed) == (False, 105.0)


def test_artifacts_stand_with_the_first_run_of_their_levels(file):
    services.load(files=[file])

    found = {each.name: each.run.cell.levels for each in Artifact.objects.all()}
    assert found == {
        "script.sql": {"clients": 1, "version": "9.2"},
        "plan.txt": {"clients": 1, "version": "9.3"},
        "stack.txt": {"version": "9.2"},
    }
    assert not Measurement.objects.filter(
        run__campaign__slug="harbour-picture"
    ).exists()


def test_loading_again_changes_nothing(file, django_assert_max_num_queries):
    services.load(files=[file])
    before, runs = counts(), keys(Run)

    with django_assert_max_num_queries(1):
        loaded = services.load(files=[file])

    assert (loaded.stored, loaded.unchanged) == ((), ("harbour-2020",))
    assert (counts(), keys(Run)) == (before, runs)


def test_a_file_that_only_looks_different_stores_the_same_rows_again(file):
    services.load(files=[file])
    before = counts()
    kept = [Campaign, Cell, Run, Measurement, CellSummary, HardwareProfile, Artifact]
    primary_keys = [keys(model) for model in kept]
    change(file, "harbour-2020", "harbour-2020 # still")

    assert services.load(files=[file]).stored == ("harbour-2020",)

    assert counts() == before
    assert [keys(model) for model in kept] == primary_keys


def test_a_changed_value_is_updated_in_its_place(file):
    services.load(files=[file])
    before = measurement("1,000.00")
    change(file, "1,000.00", "1,001.00")

    services.load(files=[file])

    after = measurement("1,001.00")
    assert (after.pk, after.run_id, after.value) == (before.pk, before.run_id, 1001.0)
    assert after.run.cell.summaries.get(metric=after.metric).median == 1001.0


def test_what_is_gone_from_the_file_goes_from_the_archive(file):
    services.load(files=[file])
    change(file, "      2 | 2,000.00 | 90.00 % | 2500.00 | 120.00 %\n", "")
    change(file, '      figures: ["120.00 %"]\n', "")
    change(file, ", environment: quay", "")
    text = file.read_text()
    file.write_text(text[: text.index("  - slug: harbour-picture")])

    services.load(files=[file])

    assert not Cell.objects.filter(levels__clients=2).exists()
    assert not Discrepancy.objects.filter(kind="ratio").exists()
    assert not Campaign.objects.filter(slug="harbour-picture").exists()
    assert not Environment.objects.exists()


def test_a_source_whose_file_is_gone_leaves_nothing_but_what_others_use(file):
    services.load(files=[file])
    crane = HardwareProfile.objects.get()
    factories.run(hardware=crane)
    others = {"HardwareProfile": 1, "Campaign": 1, "Cell": 1, "Run": 1}

    assert services.load(files=[]).removed == ("harbour-2020",)

    assert {name: count for name, count in counts().items() if count} == others


def test_a_load_takes_no_query_a_row(file, django_assert_max_num_queries):
    services.load(files=[file])
    change(file, "1,000.00", "1,001.00")
    with CaptureQueriesContext(connection) as few:
        services.load(files=[file])
    rows = "".join(f"      {clients} | 1 | 1 % | 1 |\n" for clients in range(5, 250))
    change(file, "    not_measured:", rows + "    not_measured:")
    services.load(files=[file])
    change(file, "      249 | 1 |", "      249 | 2 |")

    # Django deletes rows that others refer to a hundred at a time.
    with django_assert_max_num_queries(len(few) + 20):
        services.load(files=[file])

    assert Measurement.objects.count() > 500


def test_all_themes_are_scenarios(file):
    services.load(files=[file])

    assert Scenario.objects.get(slug="fixed-point-read").runnable
    assert not Scenario.objects.get(slug="profile").runnable


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "1050.00 | 105",
            "some | 105",
            "harbour-reading: row 1: “some” is not one number",
        ),
        ("98.25 % |", "98.25 % | 3 |", "row 1: has 6 cells, the table 5 columns"),
        (
            "      2 | 2,000.00",
            "      1 | 2,000.00",
            "row 2: “2,000.00” has the metric tps",
        ),
        ("scenario: profile", "scenario: prophecy", "names the scenario prophecy"),
        (
            "metric: cpu_idle",
            "metric: cpu_busy",
            "the metric cpu_busy is not described",
        ),
        ("hardware: crane, e", "hardware: cran, e", "names the hardware cran"),
        ("repeats: 3", "repeat: 3", "has an unknown field: repeat"),
        (
            "title: {en: Reading, ja: 参照}",
            "title: {en: Reading}",
            "must be a pair of en and ja",
        ),
        ("memory: 64 GB", "memory: plenty", "needs a size such as “2 TB”"),
        ("year: 2020", "year: then", "needs a whole number in “year”"),
        ("    section: 1.2", "    table: 1.2", "“table” is given twice"),
        ("slug: harbour-repeats", "slug: taken", "is the slug of another campaign"),
        ("section: 1.2", "section: " + 50 * "1", "“section” has 50 characters"),
        ("  cpu_idle: {unit", "  tps: {unit", "the metric tps has the unit"),
        ("campaigns:", "campaigns: [", "is no YAML"),
    ],
)
def test_a_fault_names_its_file_and_place_and_stores_nothing(file, old, new, told):
    factories.campaign("taken")
    factories.metric()
    before = counts()
    change(file, old, new)

    with pytest.raises(PublishedFileError) as caught:
        services.load(files=[file])

    assert str(caught.value).startswith("harbour-2020.yaml:")
    assert told in str(caught.value)
    assert counts() == before


def test_every_file_of_the_archive_loads():
    loaded = services.load(files=reading.files())

    assert loaded.stored == tuple(path.stem for path in reading.files())
    assert PrintedFigure.objects.filter(measured_run=None).count() == 0
    assert PrintedFigure.objects.count() == Measurement.objects.count() > 700
    assert Discrepancy.objects.exclude(kind="text").count() >= 8


def test_a_contributor_checks_one_file_in_any_folder(file, capsys):
    call_command("load_published", "--check", str(file))
    told = capsys.readouterr().out
    assert "harbour-2020.yaml can be loaded: " in told
    assert "contradictions" in told

    change(file, "scenario: profile", "scenario: prophecy")
    change(file, "metric: tps, x: clients", "metric: tpz, x: clients")
    with pytest.raises(CommandError, match="2 to mend"):
        call_command("load_published", "--check", str(file))
    told = capsys.readouterr().err
    assert "names the scenario prophecy" in told
    assert "names the metric tpz" in told
    with pytest.raises(CommandError, match="There is no file"):
        call_command("load_published", "--check", str(file.with_name("none.yaml")))


def test_a_place_is_no_longer_than_its_column():
    for name in ("number", "section", "page", "figure"):
        assert PublishedTable._meta.get_field(name).max_length == schema.LONGEST_PLACE

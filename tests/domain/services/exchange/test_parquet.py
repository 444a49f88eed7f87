"""Measurements as Parquet, read again by DuckDB."""

import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from django.core.management import CommandError, call_command

from runs.models import Measurement, Run
from runs.services.exchange import parquet
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab():
    """Runs of two months around the turn of a year, a failed one, and one without an end."""
    campaign = factories.finish_all(factories.campaign('say "hello", world', on=factories.server()))
    keys = list(campaign.runs.order_by("pk").values_list("pk", flat=True))
    ends = (
        datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    for key, end in zip(keys, ends, strict=False):
        Run.objects.filter(pk=key).update(finished_at=end)
    Run.objects.filter(pk__in=keys[2:-2]).update(finished_at=datetime(2026, 1, 31, 12, tzinfo=UTC))
    Run.objects.filter(pk=keys[-2]).update(finished_at=None)
    Run.objects.filter(pk=keys[-1]).update(state="failed")
    return campaign


def asked(folder, sql):
    return duckdb.sql(sql.format(files=f"'{folder}/measurements/*/*.parquet'")).fetchall()


def test_each_measurement_of_a_finished_run_is_in_the_file_of_its_month(lab, tmp_path, capsys):
    call_command("export_parquet", str(tmp_path))

    counted = "SELECT month, count(*) FROM {files} GROUP BY 1 ORDER BY 1"
    assert asked(tmp_path, counted) == [("2025-12", 1), ("2026-01", 15), ("none", 1)]
    assert "measurements/month=2026-01/data.parquet: 15 measurements" in capsys.readouterr().out
    values = asked(tmp_path, "SELECT measurement, value FROM {files} ORDER BY 1")
    stored = Measurement.objects.filter(run__state="finished").order_by("pk")
    assert values == list(stored.values_list("pk", "value"))


def test_a_row_tells_what_it_is_of(lab, tmp_path):
    list(parquet.write(tmp_path))

    first = lab.runs.select_related("cell").earliest("pk")
    names = (
        "run, campaign, scenario, version, major, levels ->> '$.clients', metric, server, revision"
    )
    [row] = asked(tmp_path, f"SELECT {names} FROM {{files}} WHERE run = {first.pk}")
    assert row == (
        *(first.pk, lab.slug, "fixed-point-read", first.cell.version, first.cell_major),
        *(str(first.cell.levels["clients"]), "tps", first.server.slug, None),
    )


def test_a_month_that_changed_is_written_again_and_the_others_are_left_alone(lab, tmp_path):
    list(parquet.write(tmp_path))
    old = (tmp_path / "measurements/month=2025-12/data.parquet").stat()
    Measurement.objects.filter(run__finished_at__year=2026).update(value=7.5)

    written = list(parquet.write(tmp_path, since="2026-01"))

    assert [(each.month, each.rows) for each in written] == [("2026-01", 15)]
    assert asked(tmp_path, "SELECT DISTINCT value FROM {files} WHERE month = '2026-01'") == [(7.5,)]
    now = (tmp_path / "measurements/month=2025-12/data.parquet").stat()
    assert (now.st_ino, now.st_mtime_ns) == (old.st_ino, old.st_mtime_ns)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["measurements"]


def test_an_empty_lab_has_no_file(db, tmp_path):
    assert list(parquet.write(tmp_path)) == []


@pytest.mark.parametrize("since", ["2026", "2026-13", "nonsense"])
def test_what_is_no_month_is_refused(db, tmp_path, since):
    with pytest.raises(CommandError, match="is a month such as"):
        call_command("export_parquet", str(tmp_path), "--since", since)


def test_the_query_of_the_documentation_answers(lab, tmp_path):
    text = (Path(__file__).parents[4] / "docs" / "scaling.md").read_text()
    [query] = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    list(parquet.write(tmp_path))
    query = query.replace("/srv/parquet", str(tmp_path)).replace("= '8'", "= '2'")
    found = duckdb.sql(query).fetchall()
    assert {major for major, *_others in found} == {"16", "18"}

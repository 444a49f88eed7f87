"""What other tools have kept comes in once, with commits, dates, origin, and what was left out.

The files are of the peers' forms, with numbers of our own.
"""

import io
import json
import random
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs.histories.services import changes
from runs.models import Change, Project, Run
from tests.history_points import sha
from tests.unit.tools.reading import sample

SAMPLES = Path(__file__).parents[2] / "samples"

pytestmark = pytest.mark.django_db


def github_action_benchmark(folder):
    entries = [
        {
            "commit": {
                "id": sha(number),
                "timestamp": f"2025-01-{number + 1:02d}T10:00:00+09:00",
                "url": f"https://example.org/commit/{sha(number)}",
            },
            "date": 1735700000000 + number * 86_400_000,
            "tool": "customSmallerIsBetter",
            "benches": [
                {"name": "insert", "value": value, "unit": "ms"},
                {"name": "挿入", "value": 5, "unit": "ms"},
                {"name": "Go", "value": 5, "unit": f"ns/op\t  {9000 + number} B/op"},
            ],
        }
        for number, value in enumerate(steps(30))
    ]
    text = json.dumps({"lastUpdate": 1, "entries": {"Nightly": entries}})
    file = folder / "data.js"
    file.write_text(f"window.BENCHMARK_DATA = {text}")
    return file


def postgresbench(folder):
    results = folder / "harbour" / "results"
    results.mkdir(parents=True)
    (folder / "LICENSE").write_text("\n   Some License\n   Version 1.0\n\n   Terms\n")
    run = {
        "run": 1,
        "tps": 1200.5,
        "transactions": 720300,
        "failed_transactions": 0,
        "latency_avg_ms": 8.25,
        "latency_stddev_ms": 3.5,
        "initial_connection_time_ms": 40,
        "latency_p95_ms": 21.5,
        "latency_p99_ms": 31.5,
    }
    document = {
        "system": "Harbour",
        "date": "2026-02-03",
        "machine": "2vCPU, 8GB RAM",
        "cluster_size": 1,
        "instance": {
            "type": "h2.large",
            "vcpus": 2,
            "ram_gb": 8,
            "instance_storage": None,
            "primary_storage": "NVMe",
        },
        "tuned": "no",
        "comment": "",
        "postgres_version": "18.1 (f00ba4)",
        "benchmark": {
            "tool": "pgbench",
            "workload": "TPC-B (built-in)",
            "scale_factor": 100,
            "clients": 32,
            "threads": 2,
            "duration": 600,
            "query_mode": "prepared",
        },
        "load": {"load_time_seconds": 12.5},
        "results": [run, {**run, "run": 2, "tps": 1250.25}, {"run": 3, "tps": None}],
    }
    (results / "harbour_2cpu_8gb_100.json").write_text(json.dumps(document))
    return folder


def steps(count):
    noise = random.Random(7)
    return [
        (10 if place < count / 2 else 15) * noise.gauss(1, 0.01)
        for place in range(count)
    ]


def asv(folder):
    machine = folder / "results" / "vm"
    machine.mkdir(parents=True)
    units = {"b.time_sum": {"unit": "seconds"}, "b.track": {"unit": "objects"}}
    (folder / "results" / "benchmarks.json").write_text(
        json.dumps({**units, "version": 2})
    )
    (machine / "machine.json").write_text(json.dumps({"machine": "vm", "cpu": "EPYC"}))
    document = {
        "commit_hash": sha(1),
        "date": 1735700000000,
        "params": {"machine": "vm", "python": "3.12", "cpu": "EPYC"},
        "result_columns": ["result", "params", "version"],
        "results": {
            "b.time_sum": [[2.5e-6, None], [["10", "1000"], ["'a'"]], "v"],
            "b.track": [[42], [], "v"],
            "b.broken": [None, [], "v"],
        },
        "version": 2,
    }
    (machine / "11111111-virtualenv-py3.12.json").write_text(json.dumps(document))
    return folder / "results"


def codespeed(folder):
    file = folder / "timeline.json"
    points = [
        ["2025/01/02 10:00:00 +0000", 2.5, "", sha(2), "", "default"],
        ["2025/01/01 10:00:00 +0000", 2.4, 0.1, sha(1), "", "default"],
        ["2025/01/01 10:00:00 +0000", 2.4, 0.1, "1234", "", "default"],
    ]
    timeline = {
        "benchmark": "float",
        "units": "seconds",
        "lessisbetter": " (less is better)",
        "branches": {"default": {"7": points}},
    }
    file.write_text(json.dumps({"timelines": [timeline]}))
    return file


def conbench(folder):
    """What its server answered here, of a run and of one that failed."""
    file = folder / "results.json"
    file.write_bytes((SAMPLES / "conbench.json").read_bytes())
    return file


def phoronix(folder):
    file = folder / "composite.xml"
    file.write_text(
        """<?xml version="1.0"?>
<PhoronixTestSuite>
  <Generated><Title>PostgreSQL here</Title></Generated>
  <System><Identifier>box</Identifier><Hardware>Processor: EPYC, Memory: 8GB</Hardware>
    <TimeStamp>2025-01-01 10:00:00</TimeStamp><TestClientVersion>10.8.4</TestClientVersion>
  </System>
  <Result><Identifier>pts/pgbench-1.14.0</Identifier><Title>PostgreSQL</Title>
    <Description>Scaling Factor: 1 - Clients: 1 - Mode: Read Only</Description>
    <Scale>TPS</Scale><Proportion>HIB</Proportion>
    <Data><Entry><Identifier>box</Identifier><Value>33445.5</Value>
      <RawString>33400:33491</RawString></Entry></Data></Result>
  <Result><Identifier>pts/pgbench-1.14.0</Identifier><Title>PostgreSQL</Title>
    <Description>Scaling Factor: 1 - Clients: 1 - Mode: Read Only - Average Latency</Description>
    <Scale>ms</Scale><Proportion>LIB</Proportion>
    <Data><Entry><Identifier>box</Identifier><Value></Value></Entry></Data></Result>
</PhoronixTestSuite>
"""
    )
    return folder


def hammerdb(folder):
    file = folder / "hammer.DB"
    database = sqlite3.connect(file)
    database.executescript(
        """
        CREATE TABLE JOBMAIN(jobid TEXT, db TEXT, bm TEXT, jobdict TEXT, timestamp DATETIME);
        CREATE TABLE JOBTIMING(jobid TEXT, vu INTEGER, procname TEXT, calls INTEGER, min_ms REAL,
            avg_ms REAL, max_ms REAL, total_ms REAL, p99_ms REAL, p95_ms REAL, p50_ms REAL,
            sd REAL, ratio_pct REAL, summary INTEGER, elapsed_ms REAL);
        CREATE TABLE JOBTCOUNT(jobid TEXT, counter INTEGER, metric TEXT, timestamp DATETIME);
        CREATE TABLE JOBOUTPUT(jobid TEXT, vu INTEGER, output TEXT);
        INSERT INTO JOBMAIN VALUES ('A1', 'PostgreSQL', 'TPC-C', '', '2025-01-01 10:00:00'),
            ('B2', 'PostgreSQL', 'TPC-C', '', '2025-01-02 10:00:00');
        INSERT INTO JOBOUTPUT VALUES ('A1', 1, 'Beginning rampup time of 2 minutes'),
            ('A1', 1, 'Timing test period of 5 in minutes'),
            ('A1', 1, '4 Active Virtual Users configured'),
            ('A1', 1, 'TEST RESULT : System achieved 18342 NOPM from 42427 PostgreSQL TPM'),
            ('B2', 1, 'Beginning rampup time of 2 minutes');
        INSERT INTO JOBTIMING VALUES
            ('A1', 4, 'PAYMENT', 200, 1, 3, 20, 600, 15, 9, 2, 3, 40, 1, 9),
            ('A1', 2, 'PAYMENT', 100, 0.5, 6, 30, 600, 25, 9, 2, 3, 40, 0, 9),
            ('A1', 3, 'PAYMENT', 200, 1, 3, 20, 600, 15, 9, 2, 3, 40, 0, 9);
        INSERT INTO JOBTIMING VALUES ('A1', 2, 'NEWORD', 53589, 1.251, 4.257, 126.83, 228145.1,
            14.536, 7.009, 3.849, 3230.18, 54.171, 1, 420772.0);
        INSERT INTO JOBTCOUNT VALUES ('A1', 41000, 'tpm', '2025-01-01 10:00:10'),
            ('A1', 42000, 'tpm', '2025-01-01 10:00:20');
        """
    )
    database.close()
    return file


def benchbase(folder):
    stem = "tpcc_2025-01-01_10-00-00"
    summary = sample("benchbase", "tpcc.summary.json")
    (folder / f"{stem}.summary.json").write_bytes(summary)
    (folder / f"{stem}.results.csv").write_bytes(
        sample("benchbase", "tpcc.results.csv")
    )
    (folder / f"{stem}.params.json").write_text(json.dumps({"work_mem": "4MB"}))
    (folder / f"{stem}.config.xml").write_text(
        "<parameters><works><work><time>60</time><rate>unlimited</rate></work></works></parameters>"
    )
    (folder / "mysql.summary.json").write_bytes(
        sample("benchbase", "mysql.summary.json")
    )
    return folder


def benchmarksql(folder):
    data = folder / "my_result_2025-01-01_100000" / "data"
    data.mkdir(parents=True)
    (data.parent / "run.properties").write_text("db=postgres\nterminals=4\n# x=1\n")
    (data / "runInfo.csv").write_text(
        "run,driver,driverVersion,db,sessionStart,runMins,loadWarehouses,runWarehouses\n"
        "1,simple,5.1,postgres,2025-01-01 10:00:00.123,2,10,10\n"
    )
    rows = [
        f"1,{place * 1000},{place},{place},NEW_ORDER,0,0,0" for place in range(1, 101)
    ]
    rows += [
        "1,500,3,3,PAYMENT,0,0,0",
        "1,999999999,3,3,PAYMENT,0,0,0",
        "1,9,9,9,DELIVERY_BG,0,0,0",
    ]
    header = "run,elapsed,latency,dblatency,ttype,rbk,dskipped,error"
    (data / "result.csv").write_text("\n".join([header, *rows, ""]))
    return folder


def benchmarksql_6(folder):
    """As BenchmarkSQL 6.0 wrote it here, of two kinds of transactions."""
    data = folder / "my_result_2026-11-26_202902" / "data"
    data.mkdir(parents=True)
    (data / "runInfo.csv").write_text(
        "runID,dbType,jTPCCVersion,application,rampupMins,runMins,runWarehouses,numSUTThreads,"
        "thinkTimeMultiplier\n1,postgres,6.0,Generic,0,1,1,4,0.02\n"
    )
    (data / "summary.csv").write_text(
        "ttype,count,percent,mean,max,rollbacks,errors\n"
        "NEW_ORDER,10,50,0.0099,0.065,1,0\nPAYMENT,10,50,0.0119,0.564,0,0\n"
        "DELIVERY_BG,2,0,0.024,0.098,0,0\n"
    )
    (data / "histogram.csv").write_text(
        "ttype,edge,numtrans\nNEW_ORDER,0.001,5\nNEW_ORDER,0.002,0\nNEW_ORDER,0.02,4\n"
        "NEW_ORDER,0.07,1\nPAYMENT,0.01,10\n"
    )
    return folder


def pgbench_tools(folder):
    def copy(table, columns, *rows):
        lines = "".join("\t".join(row) + "\n" for row in rows)
        return f"COPY public.{table} ({columns}) FROM stdin;\n{lines}\\.\n\n"

    tests = (
        'server, test, "set", scale, dbsize, start_time, end_time, tps, script, clients, workers,'
        " trans, avg_latency, max_latency, percentile_90_latency, wal_written, rate_limit"
    )
    first, second = "2025-01-01 10:00:00", "2025-01-01 10:01:00"
    done = (first, second, "812.5", "select", "4", "2", "48750", "4.9", "31.5", "7.25")
    file = folder / "results.sql"
    file.write_text(
        copy(
            "testset", "server, set, info, category", ("db1", "1", r"first\tset", r"\N")
        )
        + copy(
            "tests",
            tests,
            ("db1", "1", "1", "10", "160000000", *done, "0", r"\N"),
            ("db1", "2", "1", "10", "160000000", first, r"\N", "0", *[r"\N"] * 8),
        )
        + copy(
            "test_settings",
            "server, test, name, setting, unit, source, boot_val, value",
            ("db1", "1", "server_version", "16.4", r"\N", "default", "16.4", "16.4"),
            ("db1", "1", "work_mem", "4096", "kB", "default", "4096", "4MB"),
        )
        + copy(
            "test_metrics_data",
            "collected, value, metric, test, server",
            *[
                (f"2025-01-01 10:00:{s:02d}", str(s), name, "1", "db1")
                for name in ("id", "rate", "sda_rMB/s", "Dirty")
                for s in range(1, 6)
            ],
        )
    )
    return file


# Of each peer: what makes its files, figures, levels, runs, and how many sentences are left out.
PEERS = {
    "github-action-benchmark": (github_action_benchmark, {"go_b_op": 9000}, {}, 30, 0),
    "asv": (
        asv,
        {"b_time_sum_10_a": 2.5e-6, "b_track": 42},
        {"machine": "vm", "python": "3.12"},
        1,
        2,
    ),
    "codespeed": (codespeed, {}, {"executable": "7"}, 2, 1),
    "conbench": (
        conbench,
        {
            "read_compression_snappy": 514168660.8673301,
            "file_write_compression_snappy": 0.10184998514663224,
        },
        {"machine": "diana"},
        2,
        1,
    ),
    "phoronix": (
        phoronix,
        {"postgresql_scaling_factor_1_clients_1_mode_read_only": 33445.5},
        {"system": "box"},
        1,
        1,
    ),
    "hammerdb": (
        hammerdb,
        {"nopm": 18342, "tpm": 42427, "neword_latency_p99": 14.536},
        {"clients": 4, "duration": 300, "rampup": 120},
        1,
        1,
    ),
    "benchbase": (
        benchbase,
        {"throughput": 1913.103115281029, "latency_p50": 6.198},
        {"clients": 8, "duration": 60, "rate": "unlimited", "benchmark": "tpcc"},
        1,
        1,
    ),
    "benchmarksql": (
        benchmarksql,
        {
            "tpmc": 50.0,
            "tpm": 50.5,
            "new_order_latency_p90": 90,
            "new_order_latency_max": 100,
        },
        {"clients": 4, "warehouses": 10, "duration": 120},
        1,
        0,
    ),
    "benchmarksql 6": (
        benchmarksql_6,
        {
            "tpmc": 10.0,
            "tpm": 20.0,
            "new_order_latency_p90": 20.0,
            "new_order_latency_max": 65.0,
        },
        {"warehouses": 1, "duration": 60, "threads": 4, "think_time_multiplier": 0.02},
        1,
        0,
    ),
    "postgresbench": (
        postgresbench,
        {
            "tps": 1200.5,
            "latency_average": 8.25,
            "latency_p99": 31.5,
            "failed_transactions": 0,
        },
        {"system": "Harbour", "machine": "2vCPU, 8GB RAM", "clients": 32, "scale": 100},
        2,
        1,
    ),
    "pgbench-tools": (
        pgbench_tools,
        {
            "tps": 812.5,
            "transactions": 48750,
            "latency_p90": 7.25,
            "latency_average": 4.9,
        },
        {"clients": 4, "threads": 2, "scale": 10, "script": "select"},
        1,
        1,
    ),
}


def imported(peer, source, *options):
    out = io.StringIO()
    call_command("import_results", peer, str(source), *options, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("peer", PEERS)
def test_a_peers_results_come_in_once(peer, tmp_path):
    make, figures, levels, count, left_out = PEERS[peer]
    source = make(tmp_path)
    peer = peer.partition(" ")[0]  # without its version

    first, second = imported(peer, source), imported(peer, source)

    run = Run.objects.order_by("id").first()
    found = dict(run.measurements.values_list("metric__name", "value"))
    assert first.startswith(f"{count} runs are new, 0 were there.")
    assert second.startswith(f"0 runs are new, {count} were there.")
    assert (f"Not taken ({left_out}):" in first) == bool(left_out)
    assert run.state == "finished"
    assert {
        name: pytest.approx(value) for name, value in figures.items()
    }.items() <= found.items()
    assert levels.items() <= run.cell.levels.items()
    assert run.labels["imported_from"].startswith(f"{peer}: ")


def test_a_history_shows_its_change_at_its_commit_and_date(tmp_path):
    imported("github-action-benchmark", github_action_benchmark(tmp_path))
    changes.find(campaign_id=Run.objects.first().campaign_id)

    change = Change.objects.get()
    run = Run.objects.order_by("started_at").first()
    assert change.run.cell.revision.sha == sha(15)
    assert run.cell.revision.committed_at == datetime(2025, 1, 1, 1, tzinfo=UTC)
    assert {m.metric.direction for m in run.measurements.all()} == {"lower"}


def test_two_projects_import_results_that_their_peers_call_the_same(tmp_path):
    Project.objects.create(slug="other", name="Other", is_public=True)
    source = github_action_benchmark(tmp_path)
    imported("github-action-benchmark", source)

    first = imported("github-action-benchmark", source, "--project", "other")
    second = imported("github-action-benchmark", source, "--project", "other")

    assert "30 runs are new, 0 were there.\ncampaign nightly-other" in first
    assert second.startswith("0 runs are new, 30 were there.")


def test_settings_monitors_and_series_come_along(tmp_path):
    imported("pgbench-tools", pgbench_tools(tmp_path))

    run = Run.objects.get()
    assert (run.server_version, run.cell.version) == ("16.4", "16.4")
    assert run.settings.settings["work_mem"]["setting"] == "4MB"
    found = {each.name: (each.unit, each.values) for each in run.series.all()}
    assert found == {
        "cpu_idle": ("%", [1, 2, 3, 4, 5]),
        "tps": ("tps", [1, 2, 3, 4, 5]),
        "disk_read_sda": ("kB/s", [1024, 2048, 3072, 4096, 5120]),
        "monitor_dirty": ("", [1, 2, 3, 4, 5]),
    }


def test_published_results_keep_their_licence_version_and_machine(tmp_path):
    imported("postgresbench", postgresbench(tmp_path))

    run = Run.objects.order_by("id").first()
    assert run.labels["licence"] == "Some License, Version 1.0"
    assert (run.cell.version, run.labels["postgres_version"]) == (
        "18.1",
        "18.1 (f00ba4)",
    )
    assert (run.hardware.threads, run.hardware.memory_bytes) == (2, 8 * 2**30)
    # Without the checkout nobody knows it, and that is said.
    alone = imported("postgresbench", next(tmp_path.glob("*/results/*")), "--dry-run")
    assert "LICENSE" not in alone
    (tmp_path / "LICENSE").unlink()
    assert "LICENSE" in imported("postgresbench", tmp_path, "--dry-run")


def test_what_a_peer_has_added_is_a_level_or_named(tmp_path):
    postgresbench(tmp_path)
    [file] = tmp_path.glob("*/results/*")
    document = json.loads(file.read_text())
    for name, ha in (
        ("b.json", {"label": "none"}),
        ("c.json", {"label": "1 standby, sync"}),
    ):
        added = {"ha": ha, "cloud": "aws", "spot": None}
        (file.parent / name).write_text(json.dumps(document | added))
    file.unlink()

    imported("postgresbench", tmp_path)

    levels = {run.cell.levels["ha"] for run in Run.objects.select_related("cell")}
    assert levels == {"none", "1 standby, sync"}
    assert Run.objects.values("cell").distinct().count() == 2
    (file.parent / "d.json").write_text(json.dumps(document | {"tuning": {"a": [1]}}))
    assert "d.json: nobody knows what tuning is" in imported("postgresbench", tmp_path)


def test_what_hammerdb_copies_of_its_last_user_is_added_up(tmp_path):
    imported("hammerdb", hammerdb(tmp_path))

    found = dict(Run.objects.get().measurements.values_list("metric__name", "value"))
    assert {
        name: value for name, value in found.items() if name.startswith("payment")
    } == {
        "payment_calls": 300,
        "payment_latency_minimum": 0.5,
        "payment_latency_average": 4,
        "payment_latency_max": 30,
    }


def test_a_dry_run_stores_nothing(tmp_path):
    assert imported("asv", asv(tmp_path), "--dry-run").startswith("1 runs can be read.")
    assert not Run.objects.exists()


@pytest.mark.parametrize("peer", [peer for peer in PEERS if " " not in peer])
@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "<a/>", "<!DOCTYPE a><a/>", "\x00\xff", "[[" * 9999]
)
def test_a_file_of_somebody_else_is_named(peer, text, tmp_path):
    file = tmp_path / "x.json"
    file.write_text(text)

    with pytest.raises(CommandError):
        imported(peer, file)


def test_what_contradicts_is_left_out_and_the_rest_stored(tmp_path):
    file = conbench(tmp_path)
    document = json.loads(file.read_text())
    other = {**document["data"][0], "run_id": "r2", "timestamp": "2025-01-02T10:00:00Z"}
    document["data"].append({**other, "stats": {"unit": "s", "mean": 1.0}})
    file.write_text(json.dumps(document))

    told = imported("conbench", file)

    assert told.startswith("2 runs are new")
    assert "conbench-repo r2@diana: The direction of" in told

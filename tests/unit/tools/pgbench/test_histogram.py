"""Latencies counted by awk where the logs lie, against the exact reading of the same logs."""

import os
import random
import subprocess
from shutil import which

import pytest

from runs.tools.pgbench import histogram
from runs.tools.pgbench.command import Log
from runs.tools.pgbench.histogram import Histogram, read_histogram
from runs.tools.pgbench.transaction_log import read_transaction_log
from tests.each import check_each
from tests.unit.tools.pgbench.samples import Sample, samples_with_log

PERCENTS = (50, 90, 95, 99, 99.9)
TRANSACTIONS = [
    run
    for run in samples_with_log()
    if "aggregate" not in run.case and any(name.startswith("pgbench_log.") for name in run.logs)
]
# Those that this machine has, of the kinds that targets have; one at least is its awk.
AWKS = tuple(name for name in ("awk", "mawk", "gawk", "busybox", "original-awk") if which(name))


def counted(folder, **environment) -> Histogram:
    done = subprocess.run(
        histogram.count(Log(str(folder))),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C"} | environment,
    )
    assert done.stderr == ""
    return read_histogram(done.stdout)


def exact(folder):
    logs = folder.glob("pgbench_log.*")
    return read_transaction_log({path.name: path.read_bytes() for path in logs}).latencies


def write_log(folder, latencies, name="pgbench_log.1"):
    lines = [f"0 {n} {latency} 0 1795209656 {n}\n" for n, latency in enumerate(latencies, 1)]
    (folder / name).write_text("".join(lines))


def test_recorded_logs_of_every_version_have_the_percentiles_of_an_exact_reading(tmp_path):
    def check(run: Sample) -> None:
        folder = tmp_path / run.name
        folder.mkdir(parents=True)
        for name, text in run.logs.items():
            (folder / name).write_bytes(text)
        found, truth = counted(folder), exact(folder)
        assert found.transactions == truth.count
        for percent in PERCENTS:
            value = found.percentile(percent)
            if truth.count * (100 - percent) >= 1000:
                assert value == pytest.approx(truth.percentile(percent), rel=0.01)
            else:
                assert value is None

    check_each(TRANSACTIONS, check)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """100,000 transactions from 1 us to hours, in the logs of three threads."""
    folder = tmp_path_factory.mktemp("wide")
    draw = random.Random(7)
    for name in ("pgbench_log.41", "pgbench_log.41.1", "pgbench_log.41.2"):
        write_log(folder, [int(10 ** draw.uniform(0, 10.5)) for _ in range(33_334)], name)
    return folder


@pytest.mark.parametrize("name", AWKS)
def test_every_awk_is_less_than_a_hundredth_off(wide, tmp_path, name):
    (tmp_path / "awk").symlink_to(which(name))
    found = counted(wide, PATH=f"{tmp_path}:{os.environ['PATH']}")
    truth = exact(wide)

    assert found.transactions == truth.count
    for percent in (0.5, 5, 25, *PERCENTS):
        assert found.percentile(percent) == pytest.approx(truth.percentile(percent), rel=0.01)


def test_below_a_millisecond_they_are_exact(tmp_path):
    write_log(tmp_path, [draw for draw in range(1000) for _ in range(2)])

    found = counted(tmp_path)

    assert [found.percentile(percent) for percent in (5, 50, 99)] == [49, 499, 989]
    assert found.percentile_ms(50) == 0.499


def test_what_is_no_transaction_that_ended_well_is_left_out(tmp_path):
    write_log(tmp_path, [*[2500] * 30, "failed", "skipped", "serialization", "deadlock", -3])
    with (tmp_path / "pgbench_log.1").open("a") as log:
        log.write("0 36 25 0 17952\n0 37 26")

    assert counted(tmp_path).buckets == {(2500, 10): 30}


@pytest.mark.parametrize(
    ("transactions", "told"), [(19, []), (20, [50]), (999, [50, 90, 95]), (1000, [50, 90, 95, 99])]
)
def test_a_percentile_needs_ten_transactions_above_it(transactions, told):
    found = Histogram({(100, 1): transactions})

    assert [percent for percent in PERCENTS if found.percentile(percent) is not None] == told


def test_logs_of_several_machines_are_one(tmp_path):
    both, first, second = (tmp_path / name for name in ("both", "first", "second"))
    for folder in (both, first, second):
        folder.mkdir()
    slow, fast = range(5_000, 90_000, 7), range(200, 1_300)
    write_log(first, slow)
    write_log(second, fast)
    write_log(both, [*slow, *fast])

    assert histogram.together([counted(first), counted(second)]) == counted(both)


def test_a_log_that_is_missing_is_a_failure(tmp_path):
    done = subprocess.run(histogram.count(Log(str(tmp_path))), capture_output=True, check=False)

    assert done.returncode != 0


@pytest.mark.parametrize(
    "text", ["Killed", "1200 10 1 2 3", "1200 7" + " 1" * 10, "1 1" + " x" * 10]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="Not a row"):
        read_histogram(text)

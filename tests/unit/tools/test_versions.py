"""Each version that an adapter reads, by a sample: the table of docs/adding-a-tool.md."""

import json
import re

import pytest

from runs.tools import registry
from tests.unit.tools.pgbench.samples import sample as pgbench_sample
from tests.unit.tools.reading import figures, read, sample, series

# Of each sample: figures that a person reads in it.
VERSIONS = [
    (
        "sysbench",
        "0.4.12_oltp.txt",
        {"tps": 166.72, "latency_average": 23.98, "latency_p95": 41.07},
    ),
    ("sysbench", "0.5_oltp.txt", {"tps": 166.68, "latency_max": 201.55, "errors": 1}),
    ("sysbench", "1.0.20_fileio.txt", {"read_iops": 2160.36, "write_bandwidth": 22.5}),
    (
        "sysbench",
        "1.0.20_memory.txt",
        {"memory_bandwidth": 1381.57, "latency_max": 20.06},
    ),
    ("sysbench", "1.0.20_checkpoint.txt", {"events_per_second": 1329.25}),
    (
        "sysbench",
        "0.4.12_real.txt",
        {"tps": 96.31, "deadlocks": 4, "latency_average": 20.76},
    ),
    (
        "sysbench",
        "0.5_intervals.txt",
        {"tps": 255.19, "errors": 5, "latency_p95": 16.69},
    ),
    (
        "sysbench",
        "0.5_memory.txt",
        {"memory_bandwidth": 2923.92, "events_per_second": 2994094.38},
    ),
    ("sysbench", "0.5_fileio.txt", {"transfer_rate": 165.6, "iops": 10598.49}),
    (
        "sysbench",
        "1.1.0_intervals.txt",
        {"tps": 497.4, "qps": 9952.43, "latency_p95": 16.41},
    ),
    ("sysbench", "1.1.0_histogram.txt", {"tps": 51.73, "latency_p99": 13.7}),
    ("sysbench", "1.1.0_cpu.txt", {"events_per_second": 2221.89, "latency_p95": 4.41}),
    ("fio", "2.21.json", {"read_bandwidth": 95.171875, "write_latency_max": 6.215}),
    (
        "fio",
        "2.2.10.json",
        {"read_bandwidth": 194.76953125, "write_latency_max": 33.679},
    ),
    (
        "go_tpc",
        "2020-10_plain.txt",
        {"tpmc": 39453.7, "new_order_latency_p99": 8, "errors": 2},
    ),
    (
        "go_tpc",
        "2022-08_plain.txt",
        {"tpmc": 29445.9, "efficiency": 228972.7, "errors": 2},
    ),
    (
        "go_tpc",
        "2025-11_ch.txt",
        {"qphh": 39258.8, "q22_latency_average": 69.9, "errors": 3},
    ),
    (
        "benchbase",
        "2025_tpcc.summary.json",
        {"goodput": 232.0162302455431, "latency_p99": 69.49, "latency_average": 8.52},
    ),
    ("hammerdb", "6.0_timed.log", {"nopm": 12557, "tpm": 28709}),
    ("pg_test_timing", "9.2.txt", {"clock_read_time": 41.27}),
    ("pg_test_timing", "18.txt", {"clock_read_time": 85.07}),
    (
        "pg_test_timing",
        "19.txt",
        {
            "clock_read_time": 51.02,
            "rdtscp_clock_read_time": 35.5,
            "rdtsc_clock_read_time": 25.25,
        },
    ),
    ("pg_test_fsync", "9.2.txt", {"unsynced_write": 988723.373}),
    ("pg_test_fsync", "german.txt", {"unsynced_write": 988723.373}),
    ("google_benchmark", "1.4_repeated.json", {"bm_x_8_real_time": 0.0025}),
    (
        "google_benchmark",
        "1.8.0_skipped.json",
        {"bm_push_64_cpu_time": 0.0001590127147141226},
    ),
]
REAL = [
    ("pg_test_timing", "15.txt"),
    ("pg_test_timing", "16.txt"),
    ("pg_test_fsync", "15.txt"),
    ("fio", "3_lat_percentiles.json"),
    ("fio", "3.1.json"),
    ("fio", "3.41.json"),
    ("fio", "3.41_status.txt"),
    ("go_test", "uuid_1.6.0.txt"),
    ("google_benchmark", "1.4.1_aggregates.json"),
    ("hyperfine", "1.18.0.json"),
    ("hyperfine", "1.20.0.json"),
    ("pytest_benchmark", "3.4.1.json"),
    ("pytest_benchmark", "4.0.0.json"),
    ("pytest_benchmark", "5.3.1.json"),
]


@pytest.mark.parametrize(("tool", "name", "expected"), VERSIONS)
def test_a_versions_figures_are_read(tool, name, expected):
    reading = read(tool, name)

    assert reading.status == "finished", reading.reasons
    assert {metric: figures(reading).get(metric) for metric in expected} == expected


@pytest.mark.parametrize(("tool", "name"), REAL)
def test_a_version_that_ran_here_is_read(tool, name):
    reading = read(tool, name)

    assert (reading.status, reading.reasons) == ("finished", ())


def test_a_profile_is_of_its_own_run_as_the_job_has_it():
    """The file has two runs, and its summary counts each call twice."""
    files = {
        name: sample("hammerdb", f"4.9_{name}")
        for name in ("timed.log", "xtprofile.log")
    }
    of_log = figures(registry.find("hammerdb").read(files))
    of_job = figures(read("hammerdb", "4.9_job.txt"))

    assert (of_job["nopm"], of_job["neword_calls"]) == (13123, 13222)
    assert of_log.keys() == of_job.keys()
    assert of_log == pytest.approx(of_job, abs=0.0011)  # the summary truncates


def test_aggregates_are_no_benchmarks():
    names = set(figures(read("google_benchmark", "1.4_repeated.json")))
    assert names == {"bm_x_8_real_time", "bm_x_8_cpu_time"}


@pytest.mark.parametrize(
    "name",
    [
        "1.5.6_aggregates.json",
        "1.9.0_aggregates.json",
        "1.7.1_one.json",
        "1.8.3_one.json",
        "1.9.5_one.json",
    ],
)
def test_a_benchmark_that_failed_costs_the_others_no_figure(name):
    reading = read("google_benchmark", name)
    times = [each for each in figures(reading) if each.endswith("cpu_time")]

    assert (reading.status, [each.code for each in reading.reasons]) == (
        "partial",
        ["benchmark_failed"],
    )
    assert len(times) == 4


def test_a_skipped_benchmark_has_no_time():
    assert not [
        name
        for name in figures(read("google_benchmark", "1.8.0_skipped.json"))
        if "unsupported" in name
    ]


def test_intervals_of_0_5_are_series():
    assert series(read("sysbench", "0.5_oltp.txt"))["tps"] == (170.1, 163.3)


def test_percentiles_of_the_whole_latency_are_taken_where_there_are_no_others():
    name = "3_lat_percentiles.json"
    percentiles = json.loads(sample("fio", name))["jobs"][0]["read"]["lat_ns"][
        "percentile"
    ]

    assert (
        figures(read("fio", name))["read_latency_p99"] == percentiles["99.000000"] / 1e6
    )


# Names


@pytest.mark.parametrize("name", ["4.0.0.json", "5.3.1.json"])
def test_names_that_differ_by_a_sign_or_in_japanese_stay_apart(name):
    found = figures(read("pytest_benchmark", name))

    assert len(found) == 3
    assert {"test_shift_1_time", "test_shift_minus_1_time"} < found.keys()


def pytest_file(*names):
    tests = [
        {
            "name": name.partition("::")[2],
            "fullname": name,
            "stats": {"median": place + 1},
        }
        for place, name in enumerate(names)
    ]
    return json.dumps({"version": "5.3.1", "benchmarks": tests})


@pytest.mark.parametrize(
    "names",
    [
        ("a.py::test_insert", "b.py::test_insert"),
        ("a.py::test_挿入", "a.py::test_検索"),
        (f"a.py::test_{'x' * 90}[1]", f"a.py::test_{'x' * 90}[2]"),
        ("a.py::test[a/b]", "a.py::test[a-b]", "a.py::test[a_b]"),
        ("a.py::test[1.5]", "a.py::test[-1.5]"),
        ("a.py::test_sum[f]", "a.py::test_sum[F]"),
        ("a.py::TestSum::test_a", "a.py::testsum::test_a"),
    ],
)
def test_no_two_become_one(names):
    reading = registry.find("pytest_benchmark").read({"stdout": pytest_file(*names)})

    assert sorted(figures(reading).values()) == [
        1000.0 * (n + 1) for n in range(len(names))
    ]


def test_a_name_does_not_depend_on_the_others():
    adapter = registry.find("pytest_benchmark")
    one = adapter.read({"stdout": pytest_file("a.py::test_挿入")})
    two = adapter.read({"stdout": pytest_file("a.py::test_挿入", "a.py::test_検索")})

    assert figures(one).keys() < figures(two).keys()


def test_commands_that_differ_by_a_sign_stay_apart():
    assert sorted(set(figures(read("hyperfine", "1.15_signs.json")).values())) == [
        0.1,
        0.5,
        1.0,
        2.0,
    ]


# What contradicts itself


@pytest.mark.parametrize(("extra", "status"), [(0, "finished"), (1, "partial")])
def test_a_log_of_more_transactions_than_the_run_is_not_its_own(extra, status):
    stdout = pgbench_sample("18.6/a_tpcb").stdout
    count = int(re.search(r"actually processed: (\d+)", stdout)[1]) + extra
    log = "".join(
        f"0 {n} 1000 0 {1741060800 + n // 1000} {n % 1000}\n" for n in range(count)
    )

    reading = registry.find("pgbench").read({"stdout": stdout, "pgbench_log.1": log})

    assert reading.status == status
    assert [each.code for each in reading.reasons] == ["log_of_another_run"] * extra


def test_a_goodput_above_the_throughput_is_no_result():
    text = sample("benchbase", "tpcc.summary.json").decode()
    goodput = json.loads(text)["Goodput (requests/second)"]

    reading = registry.find("benchbase").read(
        {"summary": text.replace(str(goodput), "99999.5")}
    )

    assert (reading.status, reading.reasons[0].code) == ("failed", "contradiction")


@pytest.mark.parametrize(
    "figure",
    [
        "tps=NaN tps",
        "tps=1203,5 tps",
        "tps=1,203.5 tps",
        "tps=",
        "tps=-inf tps",
        "tps=12x",
    ],
)
def test_a_line_that_was_meant_as_a_figure_is_one_or_fails_the_run(figure):
    reading = registry.find("lines").read(
        {"stdout": f"{figure}\nlatency_p99=12.5 ms\n"}
    )

    assert (reading.status, reading.reasons[0].code) == ("failed", "not_a_number")


@pytest.mark.parametrize(
    "notice",
    [
        "fio: this platform does not support process shared mutexes, forcing use of threads.",
        "fio: file hash not empty on exit",
        "fio: sprandom sets norandommap=1",
    ],
)
def test_a_notice_is_no_error(notice):
    text = f"{notice}\n{sample('fio', 'seqwrite_json.txt').decode()}"

    assert registry.find("fio").read({"stdout": text}).status == "finished"


@pytest.mark.parametrize(
    "error",
    [
        "fio: pid=4896, err=5/file:ioengines.c:351, func=td_io_queue, error=Input/output error",
        "fio: io_u error on file /dev/sdb: Input/output error: read offset=1, buflen=4096",
        "fio: terminating on signal 2",
    ],
)
def test_an_error_beside_a_result_makes_it_partial(error):
    text = f"{error}\n{sample('fio', 'seqwrite_json.txt').decode()}"

    assert registry.find("fio").read({"stdout": text}).status == "partial"


def test_intervals_of_files_are_series():
    reports = "".join(
        f"[ {n}s ] reads: 1.50 MiB/s writes: {n}.00 MiB/s fsyncs: 88.31/s "
        f"latency (ms,95%): 0.09{n}\n"
        for n in (1, 2)
    )
    text = sample("sysbench", "1.0.20_fileio.txt").decode()
    text = text.replace(
        "Number of threads: 1\n",
        "Number of threads: 1\nReport intermediate results every 1 second(s)\n",
    )
    found = registry.find("sysbench").read(
        {"stdout": text.replace("File op", reports + "File op")}
    )

    assert series(found)["write_bandwidth"] == (1.0, 2.0)
    assert series(found)["latency_p95"] == (0.091, 0.092)


def test_files_of_0_4_have_their_rate():
    text = (
        sample("sysbench", "0.4.12_oltp.txt").decode().partition("OLTP test statistics")
    )
    files = (
        "Read 0b  Written 2Gb  Total transferred 2Gb  (177.56Mb/sec)\n"
        "   88.78 Requests/sec executed\n"
    )
    rest = "Test execution summary" + text[2].partition("Test execution summary")[2]
    found = figures(registry.find("sysbench").read({"stdout": text[0] + files + rest}))

    assert (found["transfer_rate"], found["iops"]) == (177.56, 88.78)
